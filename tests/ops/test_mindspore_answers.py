"""Answers that MindSpore gives, by its documentation or to sampled calls.

Another choice would have been natural.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor, ops

NAN = float("nan")
SMALL = (ms.bool_, ms.int8, ms.uint8, ms.int16)
ROWS = [[2, 5, 1, 6], [3, -7, -2, 4], [8, -4, 1, -3]]
GROUPS, INSTANCES = ms.nn.GroupNorm(1, 2), ms.nn.InstanceNorm1d(1)
MASK = [[True, False, True, False], [False, False, True, True], [True, True, True, False]]


@pytest.mark.parametrize("mode", ["eager", "compiled"])
@pytest.mark.parametrize(
    ("call", "dtype", "values"),
    [
        *[(lambda d=d: Tensor([1, 1], d).cumsum(0), ms.int32, [1, 2]) for d in SMALL],
        (lambda: ms.numpy.cumsum(Tensor([1, 1], ms.uint8)), ms.int32, [1, 2]),
        (lambda: ops.clip_by_value(Tensor([1, 5, 9], ms.int32), 2.5, 7.5), ms.int32, [2, 5, 7]),
        (lambda: ops.clip_by_value(Tensor([1.0], ms.float16), Tensor(1.5)), ms.float16, [1.5]),
        (lambda: ops.clamp(Tensor([1, 5], ms.int32), 2.5, 7.5), ms.float32, [2.5, 5]),
        (lambda: ops.clamp(Tensor([1.0, NAN]), Tensor([NAN, 2.0])), ms.float32, [NAN, NAN]),
        (lambda: Tensor([1, 2], ms.float16).sub(Tensor(1), alpha=0.5), ms.float16, [0.5, 1.5]),
        (lambda: Tensor([1], ms.float16).add(Tensor([True]), alpha=2), ms.float16, [3]),
        (
            lambda: GROUPS(Tensor([[[400.0], [-400.0]]], ms.float16)),
            ms.float16,
            [[[1], [-1]]],
        ),
        (
            lambda: INSTANCES(Tensor([[[400.0, -400.0]]], ms.float16)),
            ms.float16,
            [[[1, -1]]],
        ),
        (lambda: ops.outer(Tensor(2.0), Tensor([[3.0]])), ms.float32, [[6.0]]),
        (
            lambda: ops.min(Tensor(ROWS), 1, initial=0, where=Tensor(MASK))[1],
            ms.int64,
            [0, 2, 1],
        ),
        (lambda: ops.max(Tensor(ROWS), 1, initial=7)[1], ms.int64, [0, 0, 0]),
        (
            lambda: ops.ROIAlign(2, 2, 0.5, 2)(
                Tensor([[[[1.0, 2.0], [3.0, 4.0]]]]), Tensor([[0, 0.2, 0.3, 0.2, 0.3]])
            ),
            ms.float32,
            [[[[1.775, 2.025], [2.275, 2.525]]]],
        ),
        (
            lambda: ms.nn.AdaptiveAvgPool2d(2)(
                Tensor([[[NAN, 1, 2], [3, 4, 5], [6, 7, 8]]], ms.float32)
            ),
            ms.float32,
            [[[NAN, 3], [5, 6]]],
        ),
        (
            lambda: ms.nn.ResizeBilinear()(Tensor([[[[NAN, 1.0, 2.0]]]]), (1, 6)),
            ms.float32,
            [[[[NAN, NAN, 1, 1.5, 2, 2]]]],
        ),
    ],
)  # fmt: skip
def test_dtypes_and_values(
    call: Callable[[], Tensor], dtype: ms.dtype.DType, values: Any, mode: str
) -> None:
    found = (call if mode == "eager" else ms.jit(call))()
    assert found.dtype is dtype
    np.testing.assert_allclose(found.asnumpy(), np.array(values), 1e-5)


@pytest.mark.parametrize("mode", ["eager", "compiled"])
@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (lambda x: ops.maximum(x, Tensor(5.0)), [0, 0.5, 1, 1]),
        (lambda x: ops.minimum(x, Tensor(5.0)), [1, 0.5, 0, 0]),
        (lambda x: ops.maximum(Tensor(5.0), x), [0, 0.5, 1, 1]),
        (lambda x: ops.clip_by_value(x, 5, 9), [0, 0.5, 1, 0.5]),
        (lambda x: ops.clip_by_value(x, Tensor(5.0), Tensor(9.0)), [0, 0.5, 1, 0.5]),
        (lambda x: ops.clamp(x, 5, 9), [0, 1, 1, 1]),
        (lambda x: ops.clamp(x, Tensor(5.0), Tensor(9.0)), [0, 1, 1, 1]),
        (lambda x: ops.relu(x - 5), [0, 0, 1, 1]),
        (lambda x: ops.softplus(x - 5) * 0 + ops.softplus(x - 5), None),
    ],
)
def test_gradients_at_the_limits(
    function: Callable[[Tensor], Tensor], wanted: list[float] | None, mode: str
) -> None:
    x = Tensor([1.0, 5.0, 7.0, 9.0])
    found = ms.grad(function if mode == "eager" else ms.jit(function))(x)
    expected = wanted if wanted is not None else 1 / (1 + np.exp(5.0 - x.asnumpy()))
    np.testing.assert_allclose(found.asnumpy(), expected, 1e-5)


@pytest.mark.parametrize("value", [3.0, 2, True, "a", None])
def test_stop_gradient_returns_what_has_none(value: object) -> None:
    assert ops.stop_gradient(value) is value


def test_a_list_is_clipped_to_a_tuple() -> None:
    found = ops.clip_by_value([Tensor([1.0]), Tensor([9.0])], 2, 5)
    assert type(found) is tuple and [t.item() for t in found] == [2.0, 5.0]
    with pytest.raises(ValueError, match="neither limit"):
        ops.clip_by_value(Tensor([1.0]))


@pytest.mark.parametrize("value", [None, "x", 1.5, object()])
@pytest.mark.parametrize(
    "call",
    [
        lambda v: ops.L2Normalize()(v),
        lambda v: ops.OneHot()(v, 3, Tensor(1.0), Tensor(0.0)),
        lambda v: ops.Tile()(v, (2,)),
        lambda v: ops.ger(v, Tensor([1.0])),
        lambda v: ops.clamp(v, 0, 1),
    ],
)
def test_what_is_no_tensor_is_a_type_error(call: Callable[[object], Tensor], value: object) -> None:
    with pytest.raises(TypeError, match="Tensor"):
        call(value)


SCATTERED = {
    "none": np.array([[2.0, 7.0, 3.0], [4.0, 5.0, 6.0]]),
    "add": np.array([[1.0 + 2.0, 2.0 + 3.0 + 7.0, 3.0], [4.0, 5.0, 6.0]]),
    "multiply": np.array([[1.0 * 2.0, 2.0 * 3.0 * 7.0, 3.0], [4.0, 5.0, 6.0]]),
}


@pytest.mark.parametrize("mode", ["eager", "compiled"])
@pytest.mark.parametrize("dtype", [ms.float32, ms.float16, ms.int32, ms.int64])
@pytest.mark.parametrize("reduce", SCATTERED)
@pytest.mark.parametrize("method", ["scatter", "scatter_"])
def test_scatter_reduces(method: str, reduce: str, dtype: ms.dtype.DType, mode: str) -> None:
    def function(x: Tensor, index: Tensor, source: Tensor) -> Tensor:
        return getattr(x, method)(dim=1, index=index, src=source, reduce=reduce)

    x = Tensor([[1, 2, 3], [4, 5, 6]], dtype)
    index, source = Tensor([[0, 1, -2]]), Tensor([[2, 3, 7]], dtype)
    found = (function if mode == "eager" else ms.jit(function))(x, index, source)
    assert found.dtype is dtype
    np.testing.assert_array_equal(found.asnumpy(), SCATTERED[reduce])


@pytest.mark.parametrize(
    ("reduce", "by_x", "by_source"),
    [
        ("add", [[1, 1, 1], [1, 1, 1]], [[1, 1, 1]]),
        ("multiply", [[2, 21, 1], [1, 1, 1]], [[1, 14, 6]]),
    ],
)
def test_gradients_of_scatters_that_reduce(reduce: str, by_x: Any, by_source: Any) -> None:
    def function(x: Tensor, source: Tensor) -> Tensor:
        return x.scatter(1, Tensor([[0, 1, -2]]), source, reduce=reduce).sum()

    x, source = Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), Tensor([[2.0, 3.0, 7.0]])
    found = ms.grad(function, (0, 1))(x, source)
    np.testing.assert_array_equal(found[0].asnumpy(), by_x)
    np.testing.assert_array_equal(found[1].asnumpy(), by_source)


@pytest.mark.parametrize("method", ["scatter", "scatter_"])
def test_scatter_refuses_other_reductions_and_indices(method: str) -> None:
    x, index = Tensor([[1.0, 2.0]]), Tensor([[0]])
    with pytest.raises(ValueError, match="'add' or 'multiply'"):
        getattr(x, method)(0, index, Tensor([[1.0]]), reduce="mul")
    with pytest.raises(IndexError, match="index 5 for axis 1 of size 2"):
        getattr(x, method)(1, index + 5, Tensor([[1.0]]), reduce="multiply")
