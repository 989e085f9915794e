"""Rules of ONNX's element-wise operators, of casts and of random numbers.

`running.apply` calls them through the table `model.RULES`. A rule receives the node and Tensors,
and computes with duograph's ops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import ml_dtypes
import numpy as np
import onnx
from onnx import helper

from .. import ops
from ..dtype import DType, as_computed_dtype, as_dtype, bool_, float32, float64, int64
from ..ops.division import truncate_div
from ..tensor import Tensor
from .model import Array, Dense, Node, Value, onnx_op

__all__ = ["cast_array", "dtype_of", "number_like"]

_UNARY: dict[str, Callable[..., Tensor]] = {
    "Abs": ops.abs, "Acos": ops.acos, "Acosh": ops.acosh, "Asin": ops.asin, "Asinh": ops.asinh,
    "Atan": ops.atan, "Atanh": ops.atanh, "Ceil": ops.ceil, "Cos": ops.cos, "Cosh": ops.cosh,
    "Erf": ops.erf, "Exp": ops.exp, "Floor": ops.floor, "IsNaN": ops.isnan, "Log": ops.log,
    "Neg": ops.neg, "Not": ops.logical_not, "Reciprocal": ops.reciprocal, "Relu": ops.relu,
    "Round": ops.round, "Sigmoid": ops.sigmoid, "Sign": ops.sign, "Sin": ops.sin,
    "Sinh": ops.sinh, "Sqrt": ops.sqrt, "Tan": ops.tan, "Tanh": ops.tanh,
    "BitwiseNot": ops.bitwise_not, "Softsign": ops.softsign,
    "Det": ops.det,
}  # fmt: skip
_BINARY: dict[str, Callable[..., Tensor]] = {
    "Add": ops.add, "Sub": ops.sub, "Mul": ops.mul, "And": ops.logical_and, "Or": ops.logical_or,
    "Xor": ops.logical_xor, "Greater": ops.greater, "GreaterOrEqual": ops.greater_equal,
    "Less": ops.less, "LessOrEqual": ops.less_equal, "BitwiseAnd": ops.bitwise_and,
    "BitwiseOr": ops.bitwise_or, "BitwiseXor": ops.bitwise_xor,
}  # fmt: skip


def _register(table: dict[str, Callable[..., Tensor]]) -> None:
    def rule_of(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        return lambda node, *xs: function(*_aligned(node, xs))

    for name, function in table.items():
        onnx_op(name)(rule_of(function))


def _aligned(node: Node, xs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Reshape the second of two operands so that both broadcast by NumPy's rules.

    Only operators before operator set 7 need it: their attribute `axis` is the axis of the first
    operand with which the second operand's first axis is aligned.
    """
    axis = node.get("axis")
    if node.opset >= 7 or axis is None or len(xs) != 2:
        return xs
    x, y = xs
    missing = x.ndim - axis - y.ndim
    return x, ops.reshape(y, (*y.shape, *[1] * missing))


_register(_UNARY)
_register(_BINARY)


def number_like(x: Tensor, value: float) -> Tensor:
    """Return a number as a 0-d Tensor with the dtype of `x`."""
    return Tensor(np.array(value).astype(x.dtype.np))


@onnx_op("Identity", host=True)
def _(node: Node, x: Value) -> Value:
    return x


@onnx_op("Div")
def _(node: Node, x: Tensor, y: Tensor) -> Tensor:
    x, y = _aligned(node, (x, y))
    return truncate_div(x, y) if x.dtype.is_integer else ops.div(x, y)


@onnx_op("Mod")
def _(node: Node, x: Tensor, y: Tensor) -> Tensor:
    return ops.fmod(x, y) if node.get("fmod", 0) else ops.remainder(x, y)


@onnx_op("Pow")
def _(node: Node, x: Tensor, y: Tensor) -> Tensor:
    if x.dtype is y.dtype:
        return ops.pow(x, y)
    wide = float64 if x.dtype.is_integer or y.dtype is float64 else x.dtype
    return ops.cast(ops.pow(ops.cast(x, wide), ops.cast(y, wide)), x.dtype)


@onnx_op("Equal", host=True)
def _(node: Node, x: Value, y: Value) -> Value:
    if all(isinstance(v, np.ndarray) for v in (x, y)):
        return np.asarray(x == y)
    return ops.equal(*[v if isinstance(v, Tensor) else Tensor(v) for v in (x, y)])


@onnx_op("BitShift")
def _(node: Node, x: Tensor, n: Tensor) -> Tensor:
    return (ops.shift_left if node.get("direction") == "LEFT" else ops.shift_right)(x, n)


@onnx_op("IsInf")
def _(node: Node, x: Tensor) -> Tensor:
    found = ops.isinf(x)
    if not node.get("detect_positive", 1):
        found = ops.logical_and(found, x < 0)
    if not node.get("detect_negative", 1):
        found = ops.logical_and(found, x > 0)
    return found


def _folded(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def rule(node: Node, *xs: Tensor) -> Tensor:
        made = ops.identity(xs[0])
        for x in xs[1:]:
            made = function(made, x)
        return made

    return rule


onnx_op("Sum")(_folded(ops.add))
onnx_op("Max")(_folded(ops.maximum))
onnx_op("Min")(_folded(ops.minimum))


@onnx_op("Mean")
def _(node: Node, *xs: Tensor) -> Tensor:
    return _folded(ops.add)(node, *xs) / number_like(xs[0], len(xs))


@onnx_op("Where")
def _(node: Node, condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return ops.where(condition, x, y)


# ---- activations --------------------------------------------------------------------------------


@onnx_op("Clip")
def _(node: Node, x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Tensor:
    if node.opset < 11:
        low = number_like(x, node.get("min", -3.4028234663852886e38))
        high = number_like(x, node.get("max", 3.4028234663852886e38))
    made = x if low is None else ops.maximum(x, low)
    return ops.identity(made) if high is None else ops.minimum(made, high)


@onnx_op("LeakyRelu")
def _(node: Node, x: Tensor) -> Tensor:
    return ops.where(x < 0, x * number_like(x, node.get("alpha", 0.01)), x)


@onnx_op("PRelu")
def _(node: Node, x: Tensor, slope: Tensor) -> Tensor:
    if node.opset < 7 and slope.ndim == 1 and x.ndim > 1:
        slope = ops.reshape(slope, (-1, *[1] * (x.ndim - 2)))
    return ops.where(x < 0, x * slope, x)


@onnx_op("Elu")
def _(node: Node, x: Tensor) -> Tensor:
    return ops.where(x < 0, number_like(x, node.get("alpha", 1.0)) * ops.expm1(x), x)


@onnx_op("Celu")
def _(node: Node, x: Tensor) -> Tensor:
    alpha = number_like(x, node.get("alpha", 1.0))
    zero = number_like(x, 0)
    return ops.maximum(x, zero) + ops.minimum(alpha * ops.expm1(x / alpha), zero)


@onnx_op("Selu")
def _(node: Node, x: Tensor) -> Tensor:
    alpha = number_like(x, node.get("alpha", 1.67326319217681884765625))
    gamma = number_like(x, node.get("gamma", 1.05070102214813232421875))
    return gamma * ops.where(x > 0, x, alpha * ops.expm1(x))


@onnx_op("HardSigmoid")
def _(node: Node, x: Tensor) -> Tensor:
    line = x * number_like(x, node.get("alpha", 0.2)) + number_like(x, node.get("beta", 0.5))
    return ops.minimum(ops.maximum(line, number_like(x, 0)), number_like(x, 1))


@onnx_op("Softplus")
def _(node: Node, x: Tensor) -> Tensor:
    return ops.maximum(x, number_like(x, 0)) + ops.log1p(ops.exp(-ops.abs(x)))


@onnx_op("Gelu")
def _(node: Node, x: Tensor) -> Tensor:
    return ops.gelu(x, node.get("approximate", "none"))


@onnx_op("ThresholdedRelu")
def _(node: Node, x: Tensor) -> Tensor:
    return ops.where(x > number_like(x, node.get("alpha", 1.0)), x, number_like(x, 0))


@onnx_op("Shrink")
def _(node: Node, x: Tensor) -> Tensor:
    bound = node.get("lambd", 0.5)
    bias = number_like(x, node.get("bias", 0.0))
    zero = number_like(x, 0)
    return ops.where(x < -bound, x + bias, ops.where(x > bound, x - bias, zero))


# ---- casts --------------------------------------------------------------------------------------


def dtype_of(number: int) -> np.dtype[np.generic]:
    """Return the NumPy dtype for ONNX's number of an element type; object stands for strings."""
    if number == onnx.TensorProto.STRING:
        return np.dtype(object)
    return np.dtype(helper.tensor_dtype_to_np_dtype(number))


def _known(dtype: np.dtype[np.generic]) -> DType | None:
    """Return duograph's dtype for a NumPy dtype, or None if no op of duograph computes with it."""
    try:
        return as_computed_dtype(dtype)
    except TypeError:
        return None


@onnx_op("Cast", host=True)
def _(node: Node, x: Value) -> Value:
    return _cast(x, dtype_of(node.get("to")), node)


@onnx_op("CastLike", host=True)
def _(node: Node, x: Value, like: Dense) -> Value:
    return _cast(x, like.dtype.np if isinstance(like, Tensor) else like.dtype, node)


def _cast(x: Value, dtype: np.dtype[np.generic], node: Node) -> Value:
    known = _known(dtype)
    if isinstance(x, Tensor) and known is not None:
        return ops.cast(x, known)
    saturate, up = bool(node.get("saturate", 1)), node.get("round_mode", "up")
    return cast_array(
        np.asarray(x.asnumpy()) if isinstance(x, Tensor) else cast("Array", x), dtype, saturate, up
    )


def cast_array(
    x: Array, dtype: np.dtype[np.generic], saturate: bool = True, round_mode: str = "up"
) -> Array:
    """Convert a NumPy array to any of ONNX's element types, as ONNX's Cast does.

    Args:
        x: the array.
        dtype: a dtype of NumPy or ml_dtypes; object stands for strings.
        saturate: for 8-bit floats, whether values out of range become the largest finite value.
        round_mode: rounding to float8e8m0: "up", "down" or "nearest".
    """
    if x.dtype.kind == "O":
        if dtype.kind == "O":
            return x
        numbers = np.array([float(s) for s in x.reshape(-1)], np.float64).reshape(x.shape)
        return cast_array(numbers, dtype, saturate, round_mode)
    if dtype.kind == "O":
        texts = [_text(v) for v in x.reshape(-1)]
        return np.array(texts, object).reshape(x.shape)
    name = dtype.name
    with np.errstate(all="ignore"):
        if name == "float8_e8m0fnu":
            return _to_exponent(x.astype(np.float32), dtype, saturate, round_mode)
        if name.startswith("float8") or name.startswith("float4"):
            return _to_float8(x.astype(np.float32), dtype, saturate)
        if name in ("int4", "uint4", "int2", "uint2"):
            return _to_narrow(x, dtype)
        if dtype.kind in "iu" and x.dtype.kind not in "biuf":
            return x.astype(np.float32).astype(dtype)
        if dtype == np.bool_:
            return x.astype(np.float32) != 0 if x.dtype.kind not in "biufc" else x != 0
        return x.astype(dtype)


def _text(value: object) -> str:
    """Format a number as ONNX's Cast to strings does, such as "INF" or "3"."""
    if isinstance(value, (float, np.floating)):
        if np.isnan(value):
            return "NaN"
        if np.isinf(value):
            return "INF" if value > 0 else "-INF"
        return np.format_float_positional(value, trim="-") if value == int(value) else str(value)
    return str(value)


def _to_float8(x: Array, dtype: np.dtype[np.generic], saturate: bool) -> Array:
    limits: Any = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    most = np.float32(limits.max)
    if not saturate and not dtype.name.startswith("float4"):
        return x.astype(dtype)
    made = np.clip(x, -most, most).astype(dtype)
    return np.where(np.isnan(x), x.astype(dtype), made).astype(dtype)


def _to_exponent(x: Array, dtype: np.dtype[np.generic], saturate: bool, round_mode: str) -> Array:
    """Convert numbers to float8e8m0, which stores only powers of two; the sign is lost.

    `round_mode` ("up", "down" or "nearest") selects one of the two neighbouring powers. Numbers
    that are too large become the largest power with `saturate`, else NaN.
    """
    mantissa, exponent = np.frexp(np.abs(x))  # mantissa in [0.5, 1)
    exponent = exponent - 1
    exact = mantissa == 0.5
    if round_mode == "up":
        exponent = exponent + ~exact
    elif round_mode == "nearest":
        exponent = exponent + (mantissa >= 0.75)
    bits = exponent + 127
    high = np.where(bits > 254, 254 if saturate else 255, bits)
    found = np.where(bits < 0, 0, high)
    found = np.where(x == 0, 0, found)
    found = np.where(np.isinf(x), 254 if saturate else 255, found)
    found = np.where(np.isnan(x), 255, found)
    return found.astype(np.uint8).view(dtype)


def _to_narrow(x: Array, dtype: np.dtype[np.generic]) -> Array:
    """Convert numbers to integers of 4 or 2 bits: truncate floats, then keep the lowest bits."""
    bits = int(dtype.name.lstrip("uint"))
    whole = (
        x.astype(np.float32).astype(np.int64) if x.dtype.kind not in "biu" else x.astype(np.int64)
    )
    low = whole & (2**bits - 1)
    if not dtype.name.startswith("u"):
        low = np.where(low >= 2 ** (bits - 1), low - 2**bits, low)
    return low.astype(dtype)


@onnx_op("BitCast", host=True)
def _(node: Node, x: Value) -> Value:
    array = np.asarray(x.asnumpy()) if isinstance(x, Tensor) else cast("Array", x)
    return np.ascontiguousarray(array).reshape(array.shape).view(dtype_of(node.get("to")))


# ---- random -------------------------------------------------------------------------------------


@onnx_op("Dropout", static=(1, 2), random=True)
def _(
    node: Node, x: Tensor, ratio: Array | None = None, training: Array | None = None
) -> Tensor | tuple[Tensor, Tensor]:
    p = node.get("ratio", 0.5) if ratio is None else float(ratio)
    active = node.opset >= 12 and training is not None and bool(training)
    if not active or p == 0.0:
        made, mask = ops.identity(x), ops.ones(x.shape, bool_)
    else:
        mask = ops.rand(*x.shape, dtype=float32) >= p
        made = ops.where(mask, x * number_like(x, 1 / (1 - p)), number_like(x, 0))
    return (made, mask) if node.has(1) else made


def _random_dtype(node: Node, x: Tensor | None) -> DType:
    number = node.get("dtype")
    if number is not None:
        return as_dtype(dtype_of(number))
    return float32 if x is None else x.dtype


@onnx_op("RandomNormal", "RandomNormalLike", random=True)
def _(node: Node, x: Tensor | None = None) -> Tensor:
    shape = tuple(node.get("shape", ())) if x is None else x.shape
    made = ops.randn(*shape, dtype=float32) * node.get("scale", 1.0) + node.get("mean", 0.0)
    return ops.cast(made, _random_dtype(node, x))


@onnx_op("RandomUniform", "RandomUniformLike", random=True)
def _(node: Node, x: Tensor | None = None) -> Tensor:
    shape = tuple(node.get("shape", ())) if x is None else x.shape
    low, high = node.get("low", 0.0), node.get("high", 1.0)
    return ops.cast(ops.rand(*shape, dtype=float32) * (high - low) + low, _random_dtype(node, x))


@onnx_op("Bernoulli", random=True)
def _(node: Node, x: Tensor) -> Tensor:
    return ops.cast(
        ops.rand(*x.shape, dtype=float32) < ops.cast(x, float32), _random_dtype(node, x)
    )


@onnx_op("Multinomial", random=True)
def _(node: Node, x: Tensor) -> Tensor:
    n = node.get("sample_size", 1)
    noise = ops.rand(x.shape[0], n, x.shape[1], dtype=float32)
    gumbel = -ops.log(-ops.log(noise + 1e-20) + 1e-20)
    found = ops.argmax(ops.expand_dims(ops.cast(x, float32), 1) + gumbel, 2)
    number = node.get("dtype")
    return ops.cast(found, int64 if number is None else as_dtype(dtype_of(number)))
