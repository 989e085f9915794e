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


@pytest.mark.parametrize("value", [3.0, 2, True, "a", None, [1.0]])
@pytest.mark.parametrize("function", [ops.stop_gradient, ops.identity])
def test_what_is_no_tensor_is_returned(function: Callable[[Any], Any], value: object) -> None:
    assert function(value) is value


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


NONE: Any = None
X: Any = Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
INTS = Tensor([[5, -3], [7, 2]], ms.int32)
BOOLS, IMAGE = Tensor([[True, True], [False, False]]), ops.ones((1, 1, 4, 4))


@pytest.mark.parametrize("mode", ["eager", "compiled"])
@pytest.mark.parametrize(
    ("call", "dtype", "values"),
    [
        (lambda: ops.RealDiv()(INTS, Tensor(2, ms.int32)), ms.int32, [[2, -1], [3, 1]]),
        (lambda: ops.RealDiv()(INTS, 2), ms.int32, [[2, -1], [3, 1]]),
        (lambda: ops.RealDiv()(INTS, 2.0), ms.float32, [[2.5, -1.5], [3.5, 1]]),
        (lambda: ops.Div()(INTS, Tensor(2, ms.int32)), ms.float32, [[2.5, -1.5], [3.5, 1]]),
        (lambda: ops.ReduceSum()(BOOLS, 1), ms.bool_, [True, False]),
        (lambda: ops.ReduceSum(keep_dims=True)(BOOLS), ms.bool_, [[True]]),
        (lambda: ops.hardswish(INTS), ms.int32, [[5, 0], [7, 1]]),
        (lambda: ops.hardswish(INTS.astype(ms.int8)), ms.int8, [[5, 0], [7, 1]]),
        (lambda: X.inv()[0], ms.float32, [1, 0.5, 1 / 3]),
        (lambda: Tensor([[2.0, 0.0], [0.0, 4.0]]).inverse(), ms.float32, [[0.5, 0], [0, 0.25]]),
        (lambda: X.permute(), ms.float32, [[1, 4], [2, 5], [3, 6]]),
        (lambda: X.swapaxes(True, False), ms.float32, [[1, 4], [2, 5], [3, 6]]),
        (lambda: ops.moveaxis(X, True, 0), ms.float32, [[1, 4], [2, 5], [3, 6]]),
        (lambda: INTS.div(Tensor(2, ms.int32), rounding_mode="FLOOR"), ms.int32,
         [[2, -2], [3, 1]]),
        (lambda: X.cumsum(None), ms.float32, [1, 3, 6, 10, 15, 21]),
        (lambda: ms.numpy.arange(5, 1), ms.int32, []),
        (lambda: ops.clamp(X[0], NAN, 2), ms.float32, [NAN] * 3),
        (lambda: ops.clamp(X[0], max=NAN), ms.float32, [NAN] * 3),
        (lambda: ops.clamp(X[0], Tensor(NAN), 2), ms.float32, [NAN] * 3),
    ],
)  # fmt: skip
def test_results_of_unusual_arguments(
    call: Callable[[], Tensor], dtype: ms.dtype.DType, values: Any, mode: str
) -> None:
    found = (call if mode == "eager" else ms.jit(call))()
    assert found.dtype is dtype
    np.testing.assert_allclose(found.asnumpy(), np.array(values), 1e-5)


@pytest.mark.parametrize("first", [ms.float16, ms.float32])
@pytest.mark.parametrize("second", [ms.float16, ms.float32])
def test_a_loss_of_logits_has_the_dtype_of_the_labels(
    first: ms.dtype.DType, second: ms.dtype.DType
) -> None:
    found = ms.nn.BCEWithLogitsLoss()(Tensor([0.5, 1.0], first), Tensor([0.0, 1.0], second))
    assert found.dtype is second
    np.testing.assert_allclose(found.float().asnumpy(), 0.643669, 2e-3)


@pytest.mark.parametrize("function", ["array_split", "split", "hsplit", "vsplit"])
def test_numpy_splits_at_indices_into_a_list(function: str) -> None:
    split = getattr(ms.numpy, function)
    assert type(split(X, [1])) is list and type(split(X, 1)) is tuple


@pytest.mark.parametrize(
    ("call", "error"),
    [
        # a list or a bool is no int
        (lambda: X.topk([1]), TypeError),
        (lambda: ops.chunk(X, [2]), TypeError),
        (lambda: X.chunk(2, axis=[0]), TypeError),
        (lambda: X.narrow(0, 0, [1]), TypeError),
        (lambda: ops.expand_dims(X, [0]), TypeError),
        (lambda: X.argmax([1]), TypeError),
        (lambda: ops.tril(X, True), TypeError),
        (lambda: X.triu(True), TypeError),
        (lambda: ops.Split(0, True)(X), TypeError),
        (lambda: ops.Randperm(4, True), TypeError),
        (lambda: X.std(1, correction=True), TypeError),
        # an argument that must be given
        (lambda: X.softmax(), TypeError),
        (lambda: ms.mint.squeeze(X), TypeError),
        (lambda: ops.cumsum(X, None), TypeError),
        (lambda: ms.mint.cumsum(X, None), TypeError),
        (lambda: ops.ReduceMax()(X, None), TypeError),
        (lambda: ops.ReduceSum()(X, None), TypeError),
        (lambda: X.new_zeros(), TypeError),
        (lambda: X.new_ones(), TypeError),
        (lambda: X.flatten(None), TypeError),
        # values outside of what is allowed
        (lambda: X.topk(0), ValueError),
        (lambda: ops.arange(5, 1), ValueError),
        (lambda: ops.range(1, 5, -1), ValueError),
        (lambda: ms.mint.arange(5, 1), ValueError),
        (lambda: ops.clamp(X, True, 3), ValueError),
        (lambda: X.clip([1], 3), TypeError),
        (lambda: ops.Pad(((-1, 0), (0, 0)))(X), ValueError),
        (lambda: ms.nn.Pad(((0, 0), (-1, 1)), "REFLECT"), ValueError),
        (lambda: ops.ResizeNearestNeighbor((0, 1))(IMAGE), ValueError),
        (lambda: ops.Argmax(output_type=ms.bool_)(X), ValueError),
        (lambda: ms.nn.BCEWithLogitsLoss()(X[0], INTS[0, :1].broadcast_to((3,))), TypeError),
        (lambda: ops.UniformReal(-1), ValueError),
        (lambda: ops.StandardNormal(True), TypeError),
        (lambda: ops.Split(1, 2)(X), ValueError),
        # MindSpore raises one or the other, depending on the function
        (lambda: ms.nn.MSELoss(NONE), ValueError),
        (lambda: ms.nn.MSELoss(NONE), TypeError),
        (lambda: ms.nn.AvgPool2d([2]), TypeError),
        (lambda: ms.nn.AvgPool2d((2,)), ValueError),
        (lambda: ops.concat((X, None)), TypeError),
        (lambda: ops.concat((X, 1.0)), TypeError),
        (lambda: ops.gather(X, None, 0), TypeError),
        (lambda: ops.matmul(X, X), ValueError),
        (lambda: ops.matmul(X, X), RuntimeError),
        (lambda: ops.gather(X, Tensor([5]), 0).asnumpy(), RuntimeError),
        (lambda: ops.gather(X, Tensor([5]), 0).asnumpy(), IndexError),
        (lambda: X.repeat_interleave(-1, 0), RuntimeError),
        # a primitive whose operand is no Tensor
        (lambda: ops.MatMul()(1.0, X), TypeError),
        (lambda: ops.Conv2D(3, 2)(IMAGE, "x"), TypeError),
        (lambda: ops.ReduceMean()("x"), TypeError),
        (lambda: ops.Reshape()(1.0, (1, 1)), TypeError),
        (lambda: ops.Split()(None), TypeError),
        (lambda: ops.ResizeNearestNeighbor((2, 2))(None), TypeError),
    ],
)
def test_refusals(call: Callable[[], object], error: type[Exception]) -> None:
    with pytest.raises(error):
        call()
