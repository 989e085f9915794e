"""NumPy's elementwise functions: arithmetic, exponentials, rounding and bits.

Users call them as `duograph.numpy.NAME`. Each is a row of a table: the op of `duograph.ops` that
computes it, a summary, and an example; `trigonometry` has those of angles. Nothing may be computed
here that an op computes.
"""

from __future__ import annotations

import builtins

from .. import ops as _ops
from ..dtype import DTypeLike
from ..errors import ArgumentValueError
from ..tensor import Tensor
from .function_rows import binary, floating, unary, unary_of_a
from .operands import TensorLike, as_floating, tensor_of, with_dtype

# fmt: off
__all__ = [
    "abs", "absolute", "add", "around", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor",
    "cbrt", "ceil", "clip", "copysign", "divide", "divmod", "exp", "exp2", "expm1", "fabs", "fix",
    "float_power", "floor", "floor_divide", "fmod", "gcd", "heaviside", "hypot", "invert", "lcm",
    "log", "log10", "log1p", "log2", "logaddexp", "logaddexp2", "maximum", "minimum", "mod",
    "multiply", "negative", "positive", "power", "reciprocal", "remainder", "rint", "round", "sign",
    "signbit", "sqrt", "square", "subtract", "true_divide", "trunc",
]
# fmt: on


def _cube_root(x: Tensor) -> Tensor:
    """Return the real cube root of each element.

    At 0 the power is not computed, because its derivative is infinite there.
    """
    x = as_floating(x)
    zero = _ops.equal(x, 0)
    size = _ops.where(zero, 1, _ops.abs(x))
    root = _ops.pow(size, 1 / 3)
    root = root - (root * root * root - size) / (3 * root * root)  # one step of Newton's method
    return _ops.where(zero, x, _ops.sign(x) * root)


def _exp2(x: Tensor) -> Tensor:
    return _ops.pow(2, as_floating(x))


# ---- arithmetic ---------------------------------------------------------------------------------

add = binary(
    "add", _ops.add, "Return the sum of two tensors, element by element.", "[1, 2], 3", "[4 5]"
)
subtract = binary(
    "subtract", _ops.sub, "Return `x1` minus `x2`, element by element.", "[1, 2], 3", "[-2 -1]"
)
multiply = binary(
    "multiply",
    _ops.mul,
    "Return the product of two tensors, element by element.",
    "[1, 2], 3",
    "[3 6]",
)
divide = binary(
    "divide",
    _ops.div,
    "Return `x1` divided by `x2`, element by element.",
    "[1, 2], 4",
    "[0.25 0.5 ]",
)
true_divide = binary(
    "true_divide",
    _ops.div,
    "Return `x1` divided by `x2`, element by element.",
    "[1, 2], 4",
    "[0.25 0.5 ]",
)
floor_divide = binary(
    "floor_divide",
    _ops.floor_div,
    "Return `x1` divided by `x2`, rounded down.",
    "[7, -7], 2",
    "[ 3 -4]",
)
remainder = binary(
    "remainder",
    _ops.floor_mod,
    "Return the remainder of `x1` divided by `x2`, with the sign of the divisor `x2`.",
    "[7, -7], 3",
    "[1 2]",
)
mod = binary(
    "mod",
    _ops.floor_mod,
    "Return the remainder of `x1` divided by `x2`, with the sign of the divisor `x2`.",
    "[7, -7], 3",
    "[1 2]",
)
fmod = binary(
    "fmod",
    _ops.fmod,
    "Return the remainder of `x1` divided by `x2`, with the sign of the dividend `x1`.",
    "[7, -7], 3",
    "[ 1 -1]",
)
power = binary("power", _ops.pow, "Return `x1` raised to the power of `x2`.", "[2, 3], 2", "[4 9]")
float_power = binary(
    "float_power",
    lambda x, y: _ops.pow(as_floating(x), as_floating(y)),
    "Return `x1` raised to the power of `x2`, computed in floating point.",
    "[2, 3], -1",
    "[0.5        0.33333334]",
)
maximum = binary(
    "maximum",
    _ops.maximum,
    "Return the larger element of each pair; NaN if either is NaN.",
    "[1, 5], 3",
    "[3 5]",
)
minimum = binary(
    "minimum",
    _ops.minimum,
    "Return the smaller element of each pair; NaN if either is NaN.",
    "[1, 5], 3",
    "[1 3]",
)
copysign = binary(
    "copysign",
    lambda x, y: _ops.copysign(x, y).astype(x.dtype),
    "Return the magnitude of `x1` with the sign of `x2`, element by element.",
    "[1.0, 2.0], -3.0",
    "[-1. -2.]",
)
hypot = binary(
    "hypot",
    floating(_ops.hypot),
    "Return sqrt(x1**2 + x2**2), the hypotenuse of a right triangle, without overflow.",
    "3.0, 4.0",
    "5.0",
)
heaviside = binary(
    "heaviside",
    _ops.heaviside,
    "Return 0 where `x1` is negative, 1 where `x1` is positive, and `x2` where `x1` is 0.",
    "[-1.0, 0.0, 2.0], 0.5",
    "[0.  0.5 1. ]",
)
abs = unary(
    "abs", _ops.abs, "Return the absolute value of each element.", "[-1.5, 2.0]", "[1.5 2. ]"
)
absolute = unary(
    "absolute", _ops.abs, "Return the absolute value of each element.", "[-1.5, 2.0]", "[1.5 2. ]"
)
fabs = unary(
    "fabs",
    lambda x: _ops.abs(as_floating(x)),
    "Return the absolute value of each element, as a float.",
    "[-1, 2]",
    "[1. 2.]",
)
negative = unary_of_a(
    "negative",
    _ops.neg,
    "Return each element with the opposite sign.",
    "[-1.5, 2.0]",
    "[ 1.5 -2. ]",
)
positive = unary_of_a(
    "positive", _ops.positive, "Return a copy of the operand.", "[-1.5, 2.0]", "[-1.5  2. ]"
)
sign = unary(
    "sign",
    _ops.sign,
    "Return the sign of each element: -1, 0 or 1.",
    "[-1.5, 0.0, 2.0]",
    "[-1.  0.  1.]",
)
signbit = unary(
    "signbit",
    _ops.signbit,
    "Return whether the sign bit of each element is set, which it is for -0.0 too.",
    "[-1.5, 0.0, 2.0]",
    "[ True False False]",
)
square = unary(
    "square", _ops.square, "Return the square of each element.", "[-1.5, 2.0]", "[2.25 4.  ]"
)
sqrt = unary("sqrt", _ops.sqrt, "Return the square root of each element.", "[4.0, 9.0]", "[2. 3.]")
cbrt = unary(
    "cbrt", _cube_root, "Return the cube root of each element.", "[8.0, -27.0]", "[ 2. -3.]"
)
reciprocal = unary(
    "reciprocal",
    _ops.reciprocal,
    "Return 1 divided by each element.",
    "[2.0, -4.0]",
    "[ 0.5  -0.25]",
)

# ---- exponentials and logarithms ----------------------------------------------------------------

exp = unary(
    "exp",
    _ops.exp,
    "Return e raised to the power of each element.",
    "[0.0, 1.0]",
    "[1.        2.7182817]",
)
exp2 = unary(
    "exp2", _exp2, "Return 2 raised to the power of each element.", "[1.0, 3.0]", "[2. 8.]"
)
expm1 = unary(
    "expm1",
    _ops.expm1,
    "Return exp(x) - 1 for each element x, accurate near 0.",
    "[0.0, 1.0]",
    "[0.        1.7182817]",
)
log = unary(
    "log",
    _ops.log,
    "Return the natural logarithm of each element.",
    "[1.0, 2.0]",
    "[0.        0.6931472]",
)
log2 = unary(
    "log2", _ops.log2, "Return the logarithm of each element to base 2.", "[1.0, 8.0]", "[0. 3.]"
)
log10 = unary(
    "log10",
    _ops.log10,
    "Return the logarithm of each element to base 10.",
    "[1.0, 100.0]",
    "[0. 2.]",
)
log1p = unary(
    "log1p",
    _ops.log1p,
    "Return log(1 + x) for each element x, accurate near 0.",
    "[0.0, 1.0]",
    "[0.        0.6931472]",
)
logaddexp = binary(
    "logaddexp",
    floating(_ops.logaddexp),
    "Return log(exp(x1) + exp(x2)) without overflow.",
    "0.0, 0.0",
    "0.6931472",
)
logaddexp2 = binary(
    "logaddexp2",
    floating(_ops.logaddexp2),
    "Return log2(2**x1 + 2**x2) without overflow.",
    "1.0, 1.0",
    "2.0",
)

# ---- rounding -----------------------------------------------------------------------------------

floor = unary("floor", floating(_ops.floor), "Round each element down.", "[-1.5, 1.5]", "[-2.  1.]")
ceil = unary("ceil", floating(_ops.ceil), "Round each element up.", "[-1.5, 1.5]", "[-1.  2.]")
trunc = unary(
    "trunc", floating(_ops.trunc), "Round each element towards 0.", "[-1.5, 1.5]", "[-1.  1.]"
)
rint = unary(
    "rint",
    floating(_ops.round),
    "Round each element to the nearest integer, and halves to the even one.",
    "[-1.5, 0.5, 2.5]",
    "[-2.  0.  2.]",
)


def fix(x: TensorLike) -> Tensor:
    """Round each element towards 0.

    Args:
        x: Tensor, number, (nested) sequence or NumPy array.

    Returns:
        Tensor of floats of the shape of `x`.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.fix([-1.5, 1.5]))
        [-1.  1.]
    """
    return _ops.trunc(as_floating(tensor_of(x)))


def around(a: TensorLike, decimals: int = 0) -> Tensor:
    """Round each element to a number of decimals, halves to the even digit.

    Args:
        a: Tensor, number, (nested) sequence or NumPy array.
        decimals: digits behind the point; a negative number rounds to tens, hundreds, ...

    Returns:
        Tensor of the shape and dtype of `a`.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.around([1.25, -0.5], 1))
        [ 1.2 -0.5]
    """
    x = tensor_of(a)
    if x.dtype.kind in "biu" and decimals >= 0:
        return _ops.positive(x)
    if decimals == 0:
        return _ops.round(x)
    scale = 10.0 ** builtins.abs(decimals)
    scaled = _ops.round(x * scale) / scale if decimals > 0 else _ops.round(x / scale) * scale
    return with_dtype(scaled, x.dtype)


round = around


def clip(
    x: TensorLike,
    xmin: TensorLike | None,
    xmax: TensorLike | None,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Limit each element to the range from `xmin` to `xmax`.

    Args:
        x: Tensor, number, (nested) sequence or NumPy array.
        xmin: the lower limit, which broadcasts with `x`; None is no limit.
        xmax: the upper limit, which broadcasts with `x`; None is no limit.
        dtype: element type of the result; None leaves it as computed.

    Returns:
        Tensor.

    Raises:
        ValueError: both limits are None.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.clip([1, 5, 9], 2, 6))
        [2 5 6]
    """
    if xmin is None and xmax is None:
        raise ArgumentValueError("clip: got None for both limits; wanted at least one")
    out = tensor_of(x)
    if xmin is not None:
        out = maximum(out, xmin)
    if xmax is not None:
        out = minimum(out, xmax)
    return with_dtype(out, dtype)


def divmod(x1: TensorLike, x2: TensorLike, dtype: DTypeLike | None = None) -> tuple[Tensor, Tensor]:
    """Return quotient rounded down, and remainder with the sign of the divisor.

    Args:
        x1: the dividend.
        x2: the divisor, which broadcasts with `x1`.
        dtype: element type of the results; None leaves it as computed.

    Returns:
        Two Tensors.

    Examples:
        >>> import duograph.numpy as mnp
        >>> quotient, rest = mnp.divmod([7, -7], 2)
        >>> print(quotient, rest)
        [ 3 -4] [1 1]
    """
    return floor_divide(x1, x2, dtype), remainder(x1, x2, dtype)


# ---- integers -----------------------------------------------------------------------------------

bitwise_and = binary(
    "bitwise_and",
    _ops.bitwise_and,
    "Return the bitwise and of two integers, element by element.",
    "13, 17",
    "1",
)
bitwise_or = binary(
    "bitwise_or",
    _ops.bitwise_or,
    "Return the bitwise or of two integers, element by element.",
    "13, 16",
    "29",
)
bitwise_xor = binary(
    "bitwise_xor",
    _ops.bitwise_xor,
    "Return the bitwise exclusive or of two integers, element by element.",
    "13, 17",
    "28",
)
bitwise_not = unary(
    "bitwise_not",
    _ops.bitwise_not,
    "Return each element with all bits inverted.",
    "[0, 13]",
    "[ -1 -14]",
)
invert = unary(
    "invert",
    _ops.bitwise_not,
    "Return each element with all bits inverted.",
    "[0, 13]",
    "[ -1 -14]",
)
gcd = binary(
    "gcd",
    _ops.gcd,
    "Return the greatest common divisor of each pair of integers.",
    "[4, 6], 20",
    "[4 2]",
)
lcm = binary(
    "lcm",
    _ops.lcm,
    "Return the least common multiple of each pair of integers.",
    "[4, 6], 20",
    "[20 60]",
)
