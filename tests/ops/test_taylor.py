"""Tests of `ops.jet` and `ops.derivative`; the wanted numbers are those of MindSpore."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor, ops

A = Tensor([1.0, 2.0])
CURVE = Tensor([[1.0, 1.0], [2.0, 0.0], [0.0, 1.0]])


def one(x: Tensor) -> Tensor:
    return ops.exp(ops.sin(x))


def two(x: Tensor, y: Tensor) -> Tensor:
    return ops.sin(x) * ops.exp(y)


def pair(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return ops.sin(x) * y, ops.exp(y)


class Net(ms.nn.Cell):
    def construct(self, x: Tensor) -> Tensor:
        return one(x)


ONE = [2.319777, 2.482577]
ROWS: list[tuple[Callable[[], Any], Any, Any]] = [
    (lambda: ops.jet(one, A, CURVE), ONE,
     [[1.253381, -1.033117], [1.231941, -1.827473], [-11.70046, 2.639318]]),
    (lambda: ops.jet(Net(), A, CURVE[:1]), ONE, [[1.253381, -1.033117]]),
    (lambda: ops.jet(Net(), A, CURVE[0]), ONE, [[1.253381, -1.033117]]),
    (lambda: ops.jet(two, (A, A), (CURVE, CURVE)), [2.287353, 6.718853],
     [[3.756046, 3.643919], [10.449478, -6.149868], [15.986992, -15.943655]]),
    (lambda: ops.jet(pair, (A, A), (CURVE, CURVE)), [[0.841471, 1.818595], [2.71828, 7.38906]],
     [[[1.381773, 0.0770037], [3.002680, -2.650888], [-1.629914, -1.818595]],
      [[2.71828, 7.38906], [8.15484, 7.38906], [19.027958, 14.77812]]]),
    (lambda: ops.derivative(one, A, 3), ONE, [-4.051537, 3.672435]),
    (lambda: ops.derivative(Net(), A, 2), ONE, [-1.274820, -1.827473]),
    (lambda: ops.derivative(Net(), Tensor([1, 2]), 1), ONE, [1.253381, -1.033117]),
    (lambda: ops.derivative(two, (A, A), 2), [2.287353, 6.718853], [2.937386, -6.149868]),
    (lambda: ops.derivative(pair, (A, A), 2), [[0.841471, 1.818595], [2.71828, 7.38906]],
     [[0.239134, -2.650888], [2.71828, 7.38906]]),
]  # fmt: skip


@pytest.mark.parametrize("mode", ["eager", "compiled"])
@pytest.mark.parametrize("row", range(len(ROWS)))
def test_values_and_derivatives(row: int, mode: str) -> None:
    call, value, derivatives = ROWS[row]
    found = (call if mode == "eager" else ms.jit(call))()
    for mine, wanted in zip(found, (value, derivatives), strict=True):
        several = isinstance(mine, list)
        parts = mine if several else [mine]
        for part, numbers in zip(parts, wanted if several else [wanted], strict=True):
            np.testing.assert_allclose(part.asnumpy(), numbers, 1e-5, 1e-5)


@pytest.mark.parametrize("dtype", [ms.float16, ms.float32, ms.float64])
def test_the_dtype_stays(dtype: ms.dtype.DType) -> None:
    value, found = ops.derivative(lambda x: x * x * x, Tensor([2.0], dtype), 2)
    assert value.dtype is dtype and found.dtype is dtype
    np.testing.assert_allclose(found.asnumpy(), [12.0], 1e-3)


def test_a_derivative_can_be_differentiated() -> None:
    found = ms.grad(lambda z: ops.derivative(lambda x: x * x * x, z, 1)[1].sum())(A)
    np.testing.assert_allclose(found.asnumpy(), [6.0, 12.0], 1e-5)


WRONG: Any = "x"


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: ops.derivative(one, A, 0), ValueError),
        (lambda: ops.derivative(one, A, WRONG), TypeError),
        (lambda: ops.derivative(one, WRONG, 1), TypeError),
        (lambda: ops.jet(one, A, WRONG), TypeError),
        (lambda: ops.jet(one, A, (CURVE,)), TypeError),
        (lambda: ops.jet(two, (A, A), (CURVE,)), ValueError),
        (lambda: ops.jet(one, A, Tensor([[1.0], [0.0]])), ValueError),
    ],
)
def test_refusals(call: Callable[[], object], error: type[Exception]) -> None:
    with pytest.raises(error):
        call()
