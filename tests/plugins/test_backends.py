"""Tests of the duties of a backend: selection, launches, streams, the smallest set of kernels."""

from __future__ import annotations

import pathlib
import re

import duograph as ms
import pytest

PRIMITIVES = pathlib.Path(__file__).resolve().parents[2] / "docs" / "primitives.md"


def test_set_context_picks_the_device(site, device) -> None:
    """A11: `set_context(device_target=...)` picks the hardware"""
    site.install("one", device("One", count=2))
    site.install("two", device("Two"))
    said = site.run(
        """
        import duograph as ms
        for name, index in (("One", 0), ("Two", 0), ("One", 1), ("CPU", 0)):
            ms.set_context(device_target=name, device_id=index)
            print((ms.Tensor([1.0]) + 1).device, ms.get_context("device_target"))
        """
    )
    assert said == "One:0 One\nTwo:0 Two\nOne:1 One\nCPU:0 CPU\n"


LAUNCHES = """
import duograph as ms
from duograph import ops
from duograph.backend import registry
ms.set_context(device_target="Null")
launched = registry.backend("Null").calls_of()
x, y = ms.Tensor([[1.0, 2.0]]), ms.Tensor([[3.0, 4.0]])
square = ms.Tensor([[1.0, 2.0], [3.0, 4.0]])
for name, call in {
    "mul": lambda: x * y, "exp": lambda: ops.exp(x), "matmul": lambda: ops.matmul(x, square),
    "reduce_sum": lambda: x.sum(0), "cast": lambda: x.astype(ms.int32),
}.items():
    call()
    before = launched.copy()
    for _ in range(3):
        call()
    print(name, dict(launched - before))
"""


def test_one_launch_each(site) -> None:
    """A27: Eager op goes to exactly one kernel on the selected device

    H09: Kernel mode: backend supplies kernels for single ops
    """
    pytest.importorskip("duograph_null")
    for line in site.run(LAUNCHES).splitlines():
        name, _, counts = line.partition(" ")
        assert counts == str({name: 3})


def test_streams_are_optional(site, device) -> None:
    """H12: Streams optional; single stream if absent"""
    source = device("Toy")
    assert "synchronize" not in source
    assert "stream" not in source
    site.install("toy", source)
    said = site.run(
        """
        import duograph as ms
        x = ms.Tensor([1.0], device="Toy") + 1
        ms.set_context(device_target="Toy", pynative_synchronize=True)
        x = x + 1
        ms.synchronize()
        print(x.asnumpy())
        """
    )
    assert said == "[3.]\n"


def test_minimal_seam_is_sufficient(site) -> None:
    """H17: Minimal required kernel set small and listed; everything else decomposes to it"""
    ring = pytest.importorskip("duograph_inner_ring.backend").INNER_RING
    text = PRIMITIVES.read_text()
    (listed,) = re.findall(r"Required kernels of every backend \([^)]*\): `([^`]*)`", text)
    assert set(re.findall(r"\w+", listed)) == ring
    assert len(ring) <= 32
    said = site.run(
        """
        import numpy as np
        import duograph as ms
        from duograph import nn, ops
        from duograph.execution.kernel_choice import fallback_counts
        ms.set_context(device_target="InnerRing")
        ms.set_seed(1)
        net = nn.SequentialCell(
            nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.GELU(), nn.MaxPool2d(2, 2),
            nn.Flatten(), nn.LayerNorm((16,)), nn.Dropout(p=0.1), nn.Dense(16, 3)).set_train()
        loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
        optimizer = nn.Adam(net.trainable_params(), 0.01)
        step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), optimizer)
        x = ms.Tensor(np.random.default_rng(0).normal(size=(8, 1, 4, 4)), ms.float32)
        y = ms.Tensor(np.arange(8) % 3, ms.int32)
        losses = [float(step(x, y)) for _ in range(5)]
        print(losses[-1] < losses[0], dict(fallback_counts))
        """
    )
    assert said == "True {}\n"


def test_the_cpu_backend_is_c_through_cffi() -> None:
    """H03: CPU backend in C through cffi"""
    from duograph.backend import registry
    from duograph_cpu import _native

    assert type(_native.ffi).__module__ == "_cffi_backend"
    assert pathlib.Path(_native.__file__).suffix in (".so", ".pyd")
    x = ms.Tensor([1.0, 2.0], device="CPU") + 1
    assert _native.ffi.typeof(_native.lib.dg_memory_limits).kind == "function"
    assert "CPU" in registry.entries()
    assert x.device == "CPU:0"
