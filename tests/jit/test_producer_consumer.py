"""Fused producer-consumer steps: chains of convolutions and overwritten residuals, same bits."""

from __future__ import annotations

import os
import subprocess
import sys

import duograph as ms
import numpy as np
import pytest
from duograph import Parameter, Tensor, ops
from duograph.execution import lower as lowering
from duograph.ops.channels_last import conv_channels_last

COMPILES = ms.backend.registry.backend("CPU").compiles(0) is None
pytestmark = pytest.mark.skipif(not COMPILES, reason="this machine has no C compiler")

RNG = np.random.default_rng(3)


def tensor(*shape):
    return Tensor(RNG.uniform(-1, 1, shape).astype(np.float32))


def parameter(*shape):
    return Parameter(tensor(*shape), name="w")


class Convolution:
    """With channels last, and what follows it.

    Args:
        kind: "point" (a kernel of one), "depth" (a channel by itself) or "full".
        channels: of the input, and of the output.
        kernel: and stride, dilation: along both axes.
        then: a function of the value, of a scale and of a bias for each channel.
    """

    def __init__(
        self,
        kind,
        channels,
        kernel=3,
        stride=1,
        dilation=1,
        then=lambda v, a, b: ops.relu6(v * a + b),
    ):
        i, o = channels
        self.groups = i if kind == "depth" else 1
        self.kernel, self.stride, self.dilation = (
            (1 if kind == "point" else kernel),
            stride,
            dilation,
        )
        self.w = parameter(o, i // self.groups, self.kernel, self.kernel)
        self.a, self.b = parameter(1, 1, 1, o), parameter(1, 1, 1, o)
        self.then = then

    def __call__(self, x):
        pad = (self.kernel - 1) * self.dilation // 2
        pads, steps = ((pad, pad),) * 2, (self.stride,) * 2
        value = conv_channels_last(x, self.w, steps, pads, (self.dilation,) * 2, self.groups)
        return self.then(value, self.a, self.b)


def linear(v, a, b):
    return v * a + b


def gelu(v, a, b):
    return ops.gelu(v + b, approximate="tanh")


def block(*parts, residual=False):
    def run(x):
        y = x
        for part in parts:
            y = part(y)
        return y + x if residual else y

    return run


C = Convolution
P1, P2 = (16, 96), (96, 96)
# what makes a function, the shape of its operand, and how many kernels are left of its convolutions
TABLE = {
    "all three": (
        lambda: block(C("point", P1), C("depth", P2), C("point", (96, 24))),
        (1, 60, 57, 16),
        1,
    ),
    "with a residual": (
        lambda: block(
            C("point", (24, 120)),
            C("depth", (120, 120)),
            C("point", (120, 24), then=linear),
            residual=True,
        ),
        (1, 56, 56, 24),
        1,
    ),
    "in steps of two": (
        lambda: block(
            C("point", (20, 100)), C("depth", (100, 100), stride=2), C("point", (100, 40))
        ),
        (1, 63, 58, 20),
        1,
    ),
    "of a batch": (
        lambda: block(C("point", (8, 64)), C("depth", (64, 64)), C("point", (64, 20))),
        (3, 41, 40, 8),
        1,
    ),
    "5x5 with holes": (
        lambda: block(
            C("point", (8, 96)), C("depth", P2, kernel=5, dilation=2), C("point", (96, 17))
        ),
        (2, 40, 44, 8),
        1,
    ),
    "no kernel of one at first": (
        lambda: block(
            C("full", (3, 32), stride=2), C("depth", (32, 32)), C("point", (32, 16), then=linear)
        ),
        (1, 190, 188, 3),
        1,
    ),
    "what follows is compiled": (
        lambda: block(
            C("point", P1, then=gelu), C("depth", P2, then=gelu), C("point", (96, 24), then=gelu)
        ),
        (1, 60, 57, 16),
        1,
    ),
    "deep products": (
        lambda: block(C("point", (300, 520)), C("depth", (520, 520)), C("point", (520, 33))),
        (1, 30, 30, 300),
        1,
    ),
    "without a product at last": (
        lambda: block(C("point", P1), C("depth", P2, stride=2)),
        (1, 60, 60, 16),
        1,
    ),
    "without one at first": (
        lambda: block(C("depth", P2), C("point", (96, 24))),
        (2, 14, 14, 96),
        1,
    ),
    "few channels": (lambda: block(C("depth", (12, 12)), C("point", (12, 5))), (1, 33, 30, 12), 1),
    "two chains": (
        lambda: block(
            C("depth", (40, 40)), C("point", (40, 48)), C("depth", (48, 48)), C("point", (48, 40))
        ),
        (1, 20, 20, 40),
        2,
    ),
    # not joined
    "small images": (lambda: block(C("point", (32, 64)), C("depth", (64, 64))), (1, 14, 14, 32), 2),
    "narrow images": (lambda: block(C("depth", (64, 64)), C("point", (64, 24))), (1, 60, 3, 64), 2),
    "3x3 at first": (lambda: block(C("full", (64, 64)), C("depth", (64, 64))), (1, 80, 80, 64), 2),
    "rows that share sets of the cache": (
        lambda: block(C("depth", (1024, 1024)), C("point", (1024, 80))),
        (1, 16, 16, 1024),
        2,
    ),
    "products in a row": (
        lambda: block(C("point", (32, 96)), C("point", (96, 32))),
        (1, 56, 56, 32),
        2,
    ),
    "steps of two at last": (
        lambda: block(C("depth", (48, 48)), C("point", (48, 40), stride=2)),
        (1, 30, 30, 48),
        2,
    ),
}


def run(function, x, level, monkeypatch, join):
    """Return the third call's results, and the fused kernels of the program that it ran.

    By the third call all constant operands are packed.
    """
    programs = []

    def recorded(instructions, outputs):
        programs.append(join(instructions, outputs))
        return programs[-1]

    monkeypatch.setattr(lowering, "fuse_producer_consumer", recorded)
    compiled = ms.jit(function, jit_level=level)
    for _ in range(3):
        y = compiled(x)
    parts = y if isinstance(y, tuple) else (y,)
    kernels = [step.call.native.function for step in programs[-1]]
    return [p.asnumpy() for p in parts], [
        k for k in kernels if k in ("dg_fused_run", "dg_conv_chain")
    ]


def apart(instructions, outputs):
    return list(instructions)


@pytest.mark.parametrize("level", ["O1", "O2"])
@pytest.mark.parametrize("name", TABLE)
def test_fused_chain_has_the_same_bits(name, level, monkeypatch):
    make, shape, left = TABLE[name]
    function, x = make(), tensor(*shape)
    x.asnumpy()[0, 0, 0, 0] = np.nan  # goes where its taps reach, and no further
    x.asnumpy()[0, -1, -1, -1] = np.inf
    join = lowering.fuse_producer_consumer
    (want,), alone = run(function, x, level, monkeypatch, apart)
    (found,), joined = run(function, x, level, monkeypatch, join)
    assert len(joined) == left <= len(alone), joined
    assert ("dg_conv_chain" in joined) == (left < len(alone))
    np.testing.assert_array_equal(want, found)


def both(x, parts):
    y = parts[0](x)
    return parts[1](y), y


def twice(x, parts):
    y = parts[0](x)
    return parts[1](y) + y.sum(3, keepdims=True)


@pytest.mark.parametrize("body", [both, twice])
def test_value_with_several_readers_is_not_fused_away(body, monkeypatch):
    parts = C("point", (16, 96)), C("depth", (96, 96))
    join = lowering.fuse_producer_consumer
    want, _ = run(lambda x: body(x, parts), x := tensor(1, 60, 60, 16), "O1", monkeypatch, apart)
    found, joined = run(lambda x: body(x, parts), x, "O1", monkeypatch, join)
    assert "dg_conv_chain" not in joined
    for a, b in zip(want, found, strict=True):
        np.testing.assert_array_equal(a, b)


def test_weights_that_change_take_effect(monkeypatch):
    parts = C("point", (16, 96)), C("depth", (96, 96)), C("point", (96, 24))
    x = tensor(1, 60, 57, 16)
    compiled = ms.jit(block(*parts), jit_level="O2")
    for turn in range(3):
        for _ in range(3):
            found = compiled(x).asnumpy()
        want = ms.jit(block(*parts), jit_level="O0")(x).asnumpy()
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)
        parts[turn].w.set_data(parts[turn].w * 0.5)


def last(x, w, padding=0):
    return conv_channels_last(x, w, (1, 1), ((padding, padding),) * 2, (1, 1), 1)


# function of a value, which it may write over, and of Parameters; shapes of these; whether the
# residual is written over
RESIDUALS = {
    "added": (lambda r, w, a, b: ops.relu(last(r * 2, w) * a + b + r), (64, 64, 1, 1), True),
    "added to": (lambda r, w, a, b: ops.relu6(r + (last(r * 2, w) + b)), (64, 64, 1, 1), True),
    "alone": (lambda r, w, a, b: last(r * 2, w) + r, (64, 64, 1, 1), True),
    "3x3": (lambda r, w, a, b: last(r * 2, w, 1) * a + r, (64, 64, 3, 3), False),
    "its own operand": (lambda r, w, a, b: last(r, w) + b + r, (64, 64, 1, 1), False),
    "after the limit": (lambda r, w, a, b: ops.relu(last(r * 2, w) + b) + r, (64, 64, 1, 1), False),
}


@pytest.mark.parametrize("size", [(1, 5, 6), (2, 30, 31)])
@pytest.mark.parametrize("name", RESIDUALS)
def test_residual_buffer_is_overwritten(name, size, monkeypatch):
    from duograph.execution import native_program as native

    function, shape, wanted = RESIDUALS[name]
    w, a, b = parameter(*shape), parameter(64), parameter(64)
    x = tensor(*size, 64)
    overs = []

    def watched(steps, *rest):
        made = plain(steps, *rest)
        overs[:] = [s.call.overwrites for s in steps if s.call.native.function == "dg_fused_run"]
        return made

    plain = native.plan_memory
    monkeypatch.setattr(native, "plan_memory", watched)

    def step(x):
        return function(ops.cumsum(x, 3), w, a, b)

    compiled = ms.jit(step, jit_level="O1")
    for _ in range(3):
        found = compiled(x).asnumpy()
    assert bool(overs and overs[-1]) == wanted
    np.testing.assert_allclose(
        found, ms.jit(step, jit_level="O0")(x).asnumpy(), rtol=1e-4, atol=1e-4
    )


SCRIPT = """
import hashlib, os, sys
threads, isa = int(sys.argv[1]), int(sys.argv[2])
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
from duograph_cpu._native import lib
lib.dg_isa_limit(isa)
sys.path.insert(0, sys.argv[3])
import test_producer_consumer as t
import duograph as ms
from duograph.execution import lower
if sys.argv[4] == "apart":
    lower.fuse_producer_consumer = t.apart
found = hashlib.md5()
for name, (make, shape, _) in t.TABLE.items():
    compiled = ms.jit(make(), jit_level="O1")
    x = t.tensor(*shape)
    for _ in range(3):
        y = compiled(x)
    found.update(y.asnumpy().tobytes())
print(found.hexdigest())
"""


@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="threads are those of the affinity mask"
)
@pytest.mark.parametrize("isa", [0, 1, 2])
def test_bits_depend_on_neither_threads_nor_fusion(isa):
    def digest(threads, how):
        command = [
            sys.executable,
            "-c",
            SCRIPT,
            str(threads),
            str(isa),
            os.path.dirname(__file__),
            how,
        ]
        return subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=300
        ).stdout

    assert digest(1, "joined") == digest(2, "joined") == digest(2, "apart") != ""
