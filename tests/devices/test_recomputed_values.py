"""Cheap values that fused regions compute again: the numbers of the kernels of single ops.

The graphs are tested in `tests/ir/test_fusion_recompute.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duograph as ms
import numpy as np
import pytest
from devices import device  # noqa: F401 (a fixture)
from duograph import mint, ops
from duograph.backend import registry
from duograph.passes import fusion
from duograph.passes.fusion_recompute import recompute


def value(shape: tuple[int, ...], dtype: Any, seed: int) -> ms.Tensor:
    found = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    return ms.Tensor(found).astype(dtype)


def layers(x: ms.Tensor, w: ms.Tensor, norm: Callable[[ms.Tensor], ms.Tensor]) -> ms.Tensor:
    """Return two layers with residual connections: norms in float32, products in the dtype of w."""
    for _ in range(2):
        x = x + ops.matmul(norm(x).astype(w.dtype), w).astype(ms.float32)
    return (ops.tanh(x) * x).sum()


def layer_norm(x: ms.Tensor, g: ms.Tensor, b: ms.Tensor, w: ms.Tensor) -> ms.Tensor:
    return layers(x, w, lambda h: mint.nn.functional.layer_norm(h, g.shape, g, b))


def rms_norm(x: ms.Tensor, g: ms.Tensor, b: ms.Tensor, w: ms.Tensor) -> ms.Tensor:
    return layers(x, w, lambda h: ops.rms_norm(h, g)[0] + b)


def scaled_softmax(x: ms.Tensor, g: ms.Tensor, b: ms.Tensor, w: ms.Tensor) -> ms.Tensor:
    return layers(x, w, lambda h: ops.softmax(h * g, -1) * g + b)


def centred(x: ms.Tensor, g: ms.Tensor, b: ms.Tensor) -> ms.Tensor:
    h = x - x.mean(-1, keep_dims=True)
    return h * ops.rsqrt((h * h).mean(-1, keep_dims=True) + 1e-3) * g + b


def written_out(x: ms.Tensor, g: ms.Tensor, b: ms.Tensor, w: ms.Tensor) -> ms.Tensor:
    return layers(x, w, lambda h: centred(h, g, b))


def size_of_gradient(x: ms.Tensor, g: ms.Tensor, b: ms.Tensor, w: ms.Tensor) -> ms.Tensor:
    inner = ms.grad(written_out)(x, g, b, w)
    return (inner * inner).sum()


def sums_of_integers(x: ms.Tensor, g: ms.Tensor, b: ms.Tensor, w: ms.Tensor) -> Any:
    k = (x * 50).astype(ms.int8).astype(ms.int32)
    return k - k.sum(-1, keepdims=True), k.sum((0, 1)), (k * k).sum((0, 1))


def gradients(f: Callable[..., ms.Tensor]) -> Callable[..., Any]:
    return ms.grad(f, (0, 1, 2, 3))


# Function, shape of its operand, dtype of products, op that a backend must decompose to have
# something to fuse.
FUNCTIONS = {
    "layer_norm in bfloat16": (gradients(layer_norm), (96, 32), ms.bfloat16, "layer_norm"),
    "layer_norm in float16": (gradients(layer_norm), (96, 32), ms.float16, "layer_norm"),
    "layer_norm in float32": (gradients(layer_norm), (96, 32), ms.float32, "layer_norm"),
    "a norm of three dimensions": (gradients(written_out), (3, 40, 24), ms.bfloat16, ""),
    "a norm with an axis of size 1": (gradients(written_out), (70, 1, 24), ms.bfloat16, ""),
    "rms_norm": (gradients(rms_norm), (2, 64, 32), ms.bfloat16, ""),
    "softmax of scaled values": (gradients(scaled_softmax), (96, 32), ms.bfloat16, "softmax"),
    "gradients of gradients": (gradients(size_of_gradient), (2, 40, 32), ms.bfloat16, ""),
    "integers": (sums_of_integers, (2, 40, 32), ms.int32, ""),
}
# Tolerances, relative to the largest element: kernels may add up sums in another order.
NEAR = {ms.int32: 0, ms.float32: 1e-4, ms.float16: 1e-2, ms.bfloat16: 5e-2}


@pytest.mark.parametrize("case", FUNCTIONS.values(), ids=FUNCTIONS)
def test_recomputed_values(
    case: tuple[Any, tuple[int, ...], Any, str], device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    f, shape, dtype, whole = case
    backend = registry.backend(device)
    copies: list[int] = []

    def counted(*args: Any) -> Any:
        found = recompute(*args)
        copies.append(len(found.grouping.copies))
        return found

    monkeypatch.setattr(fusion, "recompute", counted)
    row = shape[-1:]
    operands = [value(s, ms.float32, k) for k, s in enumerate((shape, row, row))]
    operands.append(value(row + row, dtype, 3) * 0.1)
    results = []
    for most, level in ((0, "O0"), (0, "O2"), (4, "O2")):
        costs = backend.costs(0)
        costs = costs._replace(fusion=costs.fusion._replace(max_recomputed=most))
        with monkeypatch.context() as patch:
            patch.setattr(type(backend), "costs", lambda self, index, costs=costs: costs)
            found = ms.jit(f, jit_level=level)(*operands)
        results.append([v.astype(ms.float32).asnumpy() for v in found])
    assert len(copies) == 1  # only the last run asks
    assert copies[0] > 0 or whole not in ("", *backend.decomposed)
    for plain, saved, again in zip(*results, strict=True):
        near = NEAR[dtype] * np.abs(plain).max()
        np.testing.assert_allclose(again, plain, rtol=0, atol=near)
        np.testing.assert_allclose(again, saved, rtol=0, atol=near / 10)
