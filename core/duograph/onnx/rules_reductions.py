"""Rules of ONNX's reductions, normalisations, contractions and quantised operators.

`running.apply` calls them through the table `model.RULES`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import ml_dtypes
import numpy as np

from .. import ops
from ..dtype import as_dtype, float32, float64, int32, int64
from ..tensor import Tensor
from .model import RULES, Array, Dense, Node, onnx_op
from .rules_elementwise import cast_array, dtype_of, number_like
from .rules_shapes import axes_of

__all__ = ["batch_norm"]


def _log_sum_exp(x: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
    """Return log(sum(exp(x))) over axes without overflow; integers and empty axes are allowed.

    With `keep`, the reduced axes stay with size 1.
    """
    top = ops.amax(x, axes, True) if x.size else number_like(x, 0)
    top = ops.where(ops.isfinite(top), top, number_like(x, 0)) if x.dtype.is_floating else top
    total = ops.log(ops.sum(ops.exp(x - top), axes, True)) + top
    if keep:
        return total
    return ops.reshape(total, tuple(n for i, n in enumerate(x.shape) if i not in axes))


_REDUCTIONS: dict[str, Callable[[Tensor, tuple[int, ...], bool], Tensor]] = {
    "ReduceSum": lambda x, a, k: ops.sum(x, a, k),
    "ReduceMean": lambda x, a, k: ops.mean(x, a, k),
    "ReduceProd": lambda x, a, k: ops.reduce_prod(x, a, k),
    "ReduceMax": lambda x, a, k: _extreme(x, a, k, True),
    "ReduceMin": lambda x, a, k: _extreme(x, a, k, False),
    "ReduceL1": lambda x, a, k: ops.sum(ops.abs(x), a, k),
    "ReduceL2": lambda x, a, k: ops.sqrt(ops.sum(x * x, a, k)),
    "ReduceLogSum": lambda x, a, k: ops.log(ops.sum(x, a, k)),
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceSumSquare": lambda x, a, k: ops.sum(x * x, a, k),
}


def _extreme(x: Tensor, axes: tuple[int, ...], keep: bool, largest: bool) -> Tensor:
    """Return the maximum if `largest`, else the minimum, over axes; `keep` keeps them with size 1.

    Without elements the result is the limit of the dtype, such as -inf for a maximum.
    """
    if all(x.shape[a] for a in axes):
        if x.dtype.kind == "b":
            return (ops.reduce_any if largest else ops.reduce_all)(x, axes, keep)
        return (ops.amax if largest else ops.amin)(x, axes, keep)
    if x.dtype.is_floating:
        value: object = -math.inf if largest else math.inf
    elif x.dtype.kind == "b":
        value = not largest
    else:
        limits = np.iinfo(x.dtype.np)
        value = limits.min if largest else limits.max
    shape = [1 if i in axes else n for i, n in enumerate(x.shape) if keep or i not in axes]
    return ops.full(tuple(shape), value, dtype=x.dtype)


def _reduction(node: Node, x: Tensor, axes: Array | None = None) -> Tensor:
    found = axes_of(node, axes)
    keep = bool(node.get("keepdims", 1))
    if not found:
        if node.get("noop_with_empty_axes", 0):
            return ops.identity(x) if node.op_type in ("ReduceSum", "ReduceMean", "ReduceProd",
                                                       "ReduceMax", "ReduceMin") else (
                _REDUCTIONS[node.op_type](ops.expand_dims(x, 0), (0,), False)
            )  # fmt: skip
        found = list(range(x.ndim))
    at = tuple(a % x.ndim for a in found)
    if not at:
        x, at, keep = ops.reshape(x, (1,)), (0,), False
    wide = ops.cast(x, float32) if x.dtype.is_integer and _floating(node.op_type) else x
    made = _REDUCTIONS[node.op_type](wide, at, keep)
    return made if made.dtype is x.dtype else ops.cast(made, x.dtype)


def _floating(op_type: str) -> bool:
    return op_type in ("ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean")


for _name in _REDUCTIONS:
    onnx_op(_name, static=(1,))(_reduction)


@onnx_op("ArgMax", "ArgMin")
def _(node: Node, x: Tensor) -> Tensor:
    axis = node.get("axis", 0) % x.ndim
    function = ops.argmax if node.op_type == "ArgMax" else ops.argmin
    if node.get("select_last_index", 0):
        found = x.shape[axis] - 1 - function(ops.flip(x, (axis,)), axis)
    else:
        found = function(x, axis)
    found = ops.cast(found, int64)
    return ops.expand_dims(found, axis) if node.get("keepdims", 1) else found


@onnx_op("CumSum", "CumProd", static=(1,))
def _(node: Node, x: Tensor, axis: Array) -> Tensor:
    at = int(axis.reshape(-1)[0]) % x.ndim
    back, shifted = node.get("reverse", 0), node.get("exclusive", 0)
    x = ops.flip(x, (at,)) if back else x
    total = node.op_type == "CumSum"
    made = ops.cumsum(x, at) if total else ops.cumprod(x, at)
    if shifted:
        first = [1 if i == at else n for i, n in enumerate(x.shape)]
        start = ops.full(tuple(first), 0 if total else 1, dtype=made.dtype)
        made = ops.concat((start, ops.narrow(made, at, 0, x.shape[at] - 1)), at)
    made = ops.flip(made, (at,)) if back else made
    return ops.cast(made, x.dtype)


@onnx_op("TopK", static=(1,))
def _(node: Node, x: Tensor, k: Array | None = None) -> tuple[Tensor, Tensor]:
    count = node.get("k") if k is None else int(k.reshape(-1)[0])
    axis = node.get("axis", -1) % x.ndim
    values, at = ops.topk(x, count, axis, bool(node.get("largest", 1)))
    return values, ops.cast(at, int64)


# ---- softmax and normalisation ------------------------------------------------------------------


@onnx_op("Softmax", "LogSoftmax", "Hardmax")
def _(node: Node, x: Tensor) -> Tensor:
    function = {"Softmax": ops.softmax, "LogSoftmax": ops.log_softmax, "Hardmax": _hardmax}[
        node.op_type
    ]
    if node.opset >= 13:
        return function(x, node.get("axis", -1) % x.ndim)
    axis = node.get("axis", 1) % max(x.ndim, 1)
    flat = ops.reshape(x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))
    return ops.reshape(function(flat, 1), x.shape)


def _hardmax(x: Tensor, axis: int) -> Tensor:
    at = ops.expand_dims(ops.cast(ops.argmax(x, axis), int64), axis)
    shape = [-1 if i == axis else 1 for i in range(x.ndim)]
    along = np.arange(x.shape[axis]).reshape(shape).astype(np.int64)
    return ops.cast(ops.equal(at, Tensor(along)), x.dtype)


@onnx_op("LpNormalization")
def _(node: Node, x: Tensor) -> Tensor:
    axis = node.get("axis", -1) % x.ndim
    size = ops.sum(ops.abs(x), axis, True) if node.get("p", 2) == 1 else ops.sqrt(
        ops.sum(x * x, axis, True)
    )  # fmt: skip
    zero = ops.equal(size, number_like(x, 0))
    return ops.where(zero, number_like(x, 0), x / ops.where(zero, number_like(x, 1), size))


def _per_channel(v: Tensor, rank: int) -> Tensor:
    return ops.reshape(v, (-1, *[1] * (rank - 2)))


def batch_norm(
    x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, var: Tensor, eps: float
) -> Tensor:
    """Normalise `x` by the given statistics of each channel, which is axis 1."""
    scale, bias, mean, var = [_per_channel(v, x.ndim) for v in (scale, bias, mean, var)]
    found = (x - mean) / ops.sqrt(var + number_like(var, eps)) * scale + bias
    return ops.cast(found, x.dtype)


@onnx_op("BatchNormalization")
def _(
    node: Node, x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, var: Tensor
) -> Tensor | tuple[Tensor, ...]:
    eps = node.get("epsilon", 1e-5)
    if not node.get("training_mode", 0):
        return batch_norm(x, scale, bias, mean, var, eps)
    axes = tuple(i for i in range(x.ndim) if i != 1)
    wide = ops.cast(x, mean.dtype)
    new_mean, new_var = ops.mean(wide, axes), ops.var(wide, axes)
    share = node.get("momentum", 0.9)
    running = [old * share + new * (1 - share) for old, new in ((mean, new_mean), (var, new_var))]
    return (batch_norm(x, scale, bias, new_mean, new_var, eps), *running)


@onnx_op("InstanceNormalization")
def _(node: Node, x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    axes = tuple(range(2, x.ndim))
    centred = x - ops.mean(x, axes, True)
    var = ops.mean(centred * centred, axes, True)
    made = centred / ops.sqrt(var + number_like(x, node.get("epsilon", 1e-5)))
    return made * _per_channel(scale, x.ndim) + _per_channel(bias, x.ndim)


@onnx_op("LayerNormalization")
def _(node: Node, x: Tensor, scale: Tensor, bias: Tensor | None = None) -> tuple[Tensor, ...]:
    axis = node.get("axis", -1) % x.ndim
    axes = tuple(range(axis, x.ndim))
    wide = ops.cast(x, float32) if x.dtype.itemsize < 4 else x
    mean = ops.mean(wide, axes, True)
    centred = wide - mean
    var = ops.mean(centred * centred, axes, True)
    inverse = ops.reciprocal(ops.sqrt(var + number_like(var, node.get("epsilon", 1e-5))))
    made = ops.cast(centred * inverse, x.dtype) * scale
    return (made if bias is None else made + bias), mean, inverse


@onnx_op("GroupNormalization")
def _(node: Node, x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    groups = node.get("num_groups")
    flat = ops.reshape(ops.cast(x, float32), (x.shape[0], groups, -1))
    centred = flat - ops.mean(flat, 2, True)
    var = ops.mean(centred * centred, 2, True)
    made = ops.reshape(centred / ops.sqrt(var + node.get("epsilon", 1e-5)), x.shape)
    made = ops.cast(made, x.dtype)
    if scale.shape[0] == groups != x.shape[1]:  # before operator set 21: one number per group
        scale, bias = [ops.repeat_interleave(v, x.shape[1] // groups, 0) for v in (scale, bias)]
    return made * _per_channel(scale, x.ndim) + _per_channel(bias, x.ndim)


@onnx_op("LRN")
def _(node: Node, x: Tensor) -> Tensor:
    size = node.get("size")
    low, high = (size - 1) // 2, size - 1 - (size - 1) // 2
    square = ops.pad(ops.reshape(x * x, (x.shape[0], x.shape[1], -1)), (0, 0, low, high))
    total = ops.narrow(square, 1, 0, x.shape[1])
    for k in range(1, size):
        total = total + ops.narrow(square, 1, k, x.shape[1])
    total = ops.reshape(total, x.shape)
    base = node.get("bias", 1.0) + (node.get("alpha", 1e-4) / size) * total
    return x / ops.pow(base, node.get("beta", 0.75))


@onnx_op("MeanVarianceNormalization")
def _(node: Node, x: Tensor) -> Tensor:
    axes = tuple(node.get("axes", [0, 2, 3]))
    mean = ops.mean(x, axes, True)
    var = ops.mean(x * x, axes, True) - mean * mean
    return (x - mean) / (ops.sqrt(var) + number_like(x, 1e-9))


# ---- contractions -------------------------------------------------------------------------------


@onnx_op("MatMul")
def _(node: Node, x: Tensor, y: Tensor) -> Tensor:
    return ops.matmul(x, y)


@onnx_op("Gemm")
def _(node: Node, a: Tensor, b: Tensor, c: Tensor | None = None) -> Tensor:
    a = ops.transpose(a, (1, 0)) if node.get("transA", 0) else a
    b = ops.transpose(b, (1, 0)) if node.get("transB", 0) else b
    made = ops.matmul(a, b)
    alpha, beta = node.get("alpha", 1.0), node.get("beta", 1.0)
    made = made if alpha == 1.0 else made * number_like(made, alpha)
    if c is None:
        return made
    return made + (c if beta == 1.0 else c * number_like(c, beta))


@onnx_op("Einsum")
def _(node: Node, *xs: Tensor) -> Tensor:
    equation = node.get("equation").replace(" ", "")
    return ops.einsum(equation, *xs)


# ---- quantised numbers --------------------------------------------------------------------------


def _blocks(v: Dense | None, node: Node, shape: tuple[int, ...]) -> Dense | None:
    """Expand a scale or zero point of quantisation so that it broadcasts with a tensor of `shape`.

    `v` may be one number, one per index along an axis, or one per block of `block_size` elements of
    the axis, as the attributes `axis` and `block_size` of the node say. None is returned unchanged.
    """
    if v is None or not v.shape:
        return v
    axis = node.get("axis", 1) % len(shape)
    size = node.get("block_size", 0)
    if v.ndim == len(shape) and size:
        repeated = np.repeat(v, size, axis) if isinstance(v, np.ndarray) else (
            ops.repeat_interleave(v, size, axis)
        )  # fmt: skip
        index = tuple(slice(0, shape[axis]) if i == axis else slice(None) for i in range(v.ndim))
        return repeated[index]
    if v.ndim == 1 and v.shape[0] == 1:
        return v.reshape(())
    return v.reshape(tuple(-1 if i == axis else 1 for i in range(len(shape))))


def _array(v: Dense) -> Array:
    return None if v is None else v if isinstance(v, np.ndarray) else np.asarray(v.asnumpy())


_NARROW = ("int4", "uint4", "int2", "uint2")


@onnx_op("QuantizeLinear", host=True)
def _(node: Node, x: Dense, scale: Dense, zero: Dense | None = None) -> Dense:
    number = node.get("output_dtype", 0)
    given = None if zero is None else zero.dtype.np if isinstance(zero, Tensor) else zero.dtype
    dtype = dtype_of(number) if number else np.dtype(np.uint8) if given is None else given
    plain = dtype.kind in "iu" and dtype.name not in _NARROW
    scale, zero = cast("Dense", _blocks(scale, node, x.shape)), _blocks(zero, node, x.shape)
    if plain and isinstance(x, Tensor):
        limits = np.iinfo(dtype)
        s = scale if isinstance(scale, Tensor) else Tensor(scale)
        made = ops.round(ops.cast(x, float32) / ops.cast(s, float32))
        if zero is not None:
            made = made + ops.cast(zero if isinstance(zero, Tensor) else Tensor(zero), float32)
        made = ops.cast(ops.clamp(made, float(limits.min), float(limits.max)), int32)
        return ops.cast(made, as_dtype(dtype))
    array = _array(x).astype(np.float32) / _array(scale).astype(np.float32)
    if plain or dtype.name in _NARROW:
        low, high = _limits(dtype)
        whole = np.rint(array) + (0 if zero is None else _array(zero).astype(np.float32))
        return np.clip(whole, low, high).astype(np.int32).astype(dtype)
    return cast_array(array, dtype, bool(node.get("saturate", 1)))


def _limits(dtype: np.dtype[np.generic]) -> tuple[int, int]:
    if dtype.name in _NARROW:
        found: Any = ml_dtypes.iinfo(dtype)  # type: ignore[no-untyped-call]
    else:
        found = np.iinfo(dtype)
    return int(found.min), int(found.max)


@onnx_op("DequantizeLinear", host=True)
def _(node: Node, x: Dense, scale: Dense, zero: Dense | None = None) -> Dense:
    number = node.get("output_dtype", 0)
    own = scale.dtype.np if isinstance(scale, Tensor) else scale.dtype
    dtype = dtype_of(number) if number else own
    scale, zero = cast("Dense", _blocks(scale, node, x.shape)), _blocks(zero, node, x.shape)
    if isinstance(x, Tensor):
        made = ops.cast(x, float32)
        if zero is not None:
            made = made - ops.cast(zero if isinstance(zero, Tensor) else Tensor(zero), float32)
        s = scale if isinstance(scale, Tensor) else Tensor(scale)
        return ops.cast(made * ops.cast(s, float32), as_dtype(dtype))
    array = x.astype(np.float32)
    if zero is not None:
        array = array - _array(zero).astype(np.float32)
    return (array * _array(scale).astype(np.float32)).astype(dtype)


@onnx_op("DynamicQuantizeLinear")
def _(node: Node, x: Tensor) -> tuple[Tensor, ...]:
    low = ops.minimum(ops.amin(x), number_like(x, 0))
    high = ops.maximum(ops.amax(x), number_like(x, 0))
    scale = (high - low) / 255.0
    scale = ops.where(ops.equal(scale, number_like(x, 0)), number_like(x, 1), scale)
    zero = ops.clamp(ops.round(-low / scale), 0.0, 255.0)
    made = ops.clamp(ops.round(x / scale) + zero, 0.0, 255.0)
    uint8 = as_dtype(np.uint8)
    return ops.cast(ops.cast(made, int32), uint8), scale, ops.cast(ops.cast(zero, int32), uint8)


def _shifted(x: Tensor, zero: Tensor | None, by_row: bool) -> Tensor:
    """Return a quantised tensor minus its zero point, as int32.

    A `zero` of None means 0. A 1-d `zero` has one element per row if `by_row` is True, else one per
    column (last axis).
    """
    whole = ops.cast(x, int32)
    if zero is None:
        return whole
    point = ops.cast(zero, int32)
    if point.ndim == 1 and point.shape[0] > 1 and by_row:
        point = ops.reshape(point, (-1, 1))
    return whole - point


@onnx_op("MatMulInteger")
def _(
    node: Node, a: Tensor, b: Tensor, a_zero: Tensor | None = None, b_zero: Tensor | None = None
) -> Tensor:
    return ops.matmul(_shifted(a, a_zero, True), _shifted(b, b_zero, False))


@onnx_op("QLinearMatMul")
def _(
    node: Node,
    a: Tensor,
    a_scale: Tensor,
    a_zero: Tensor,
    b: Tensor,
    b_scale: Tensor,
    b_zero: Tensor,
    scale: Tensor,
    zero: Tensor,
) -> Tensor:
    whole = ops.matmul(_shifted(a, a_zero, True), _shifted(b, b_zero, False))
    factor = ops.cast(a_scale, float64) * ops.cast(b_scale, float64) / ops.cast(scale, float64)
    return requantised(whole, factor, zero)


def requantised(whole: Tensor, factor: Tensor, zero: Tensor) -> Tensor:
    """Multiply an int32 tensor by a factor, round, add `zero`, and clamp to the dtype of `zero`."""
    limits = np.iinfo(zero.dtype.np)
    made = ops.round(ops.cast(whole, float64) * factor) + ops.cast(zero, float64)
    return ops.cast(ops.clamp(made, float(limits.min), float(limits.max)), zero.dtype)


# ---- losses -------------------------------------------------------------------------------------


@onnx_op("NegativeLogLikelihoodLoss")
def _(node: Node, x: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor:
    ignored = node.get("ignore_index")
    label = ops.cast(target, int64)
    if ignored is not None:
        skip = ops.equal(label, ignored)
        label = ops.where(skip, ops.zeros_like(label), label)
    taken = -ops.squeeze(ops.gather_elements(x, 1, ops.expand_dims(label, 1)), 1)
    factor = ops.ones_like(taken) if weight is None else ops.gather(weight, label, 0)
    if ignored is not None:
        factor = ops.where(skip, ops.zeros_like(factor), factor)
    loss = taken * factor
    reduction = node.get("reduction", "mean")
    if reduction == "none":
        return loss
    total = ops.sum(loss)
    return total if reduction == "sum" else total / ops.sum(factor)


@onnx_op("SoftmaxCrossEntropyLoss")
def _(node: Node, x: Tensor, target: Tensor, weight: Tensor | None = None) -> tuple[Tensor, Tensor]:
    logs = ops.log_softmax(x, 1)
    rule = RULES["NegativeLogLikelihoodLoss"]
    return cast("Tensor", rule.function(node, logs, target, weight)), logs
