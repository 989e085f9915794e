"""Exponentials, logarithms, powers, roots and the error function."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..dtype import FLOATING, INEXACT, NUMERIC, complex128, float64
from ..op import op
from ..tensor import Tensor
from .broadcasting import unbroadcast
from .creation import cast
from .elementwise import abs, mul, neg, reciprocal, true_divide
from .logic import bitwise_and, logical_and, logical_or, select, shift_right
from .methods import tensor_method
from .pointwise import broadcast_type, conjugate, same_type
from .rounding import floor

__all__ = [
    "erf", "erfc", "exp", "exp2", "expm1", "float_power", "hypot", "ldexp", "log", "log10", "log1p",
    "log2", "logaddexp", "logaddexp2", "logit", "pow", "rsqrt", "sqrt", "xdivy", "xlogy",
]  # fmt: skip

_LN2 = 0.6931471805599453


# Fits to float32 accuracy, for decompositions: erf(x)/x - 1 in x^2 below 0.875, log(erfc(x)) above, and
# exp(x^2) erfc(x) (1 + 2x) in (x-2)/(x+2). The kernels have the same (backend/codegen/floating.h).
_ERF_NEAR = [
    7.918161e-5, -8.035051e-4, 5.1914393e-3, -2.6855474e-2, 1.12836234e-1, -3.761263e-1, 1.2837917e-1,
]  # fmt: skip
_LOG_ERFC = [
    -2.0564385e-5, 4.2832264e-4, -4.141335e-3, 2.5041314e-2, -1.0815972e-1, -6.3345575e-1,
    -1.1294614, 1.6363524e-4,
]  # fmt: skip
_ERFCX = [
    -7.479906605428339e-06, -2.742591352594387e-05, -3.244653582350771e-06, 0.00014380666415771357,
    0.00020555899020000497, -0.0004514402815674969, -0.001456173935323107, 0.0012707107754869255,
    0.00872249897566301, -0.008033943544426533, -0.05421998538449404, 0.16405127630472316,
    -0.16603039816768983, -0.09276382652678344, 1.2769783815555644,
]  # fmt: skip


def _horner(x: Any, coefficients: list[float]) -> Any:
    """A polynomial, made of ops; the highest power's coefficient first."""
    out: Any = coefficients[0]
    for c in coefficients[1:]:
        out = out * x + c
    return out


def _by_math(function: Any, x: Any) -> Any:
    """A function of Python's math module on every element."""
    return np.vectorize(function, otypes=[np.float64])(x.astype(np.float64)).astype(x.dtype)


@op(method="exp", primitive="Exp", dtypes=INEXACT, promote="float")
def exp(input: Tensor):
    """e to the power of the elements (`mindspore.ops.exp`).

    Args:
        input: Tensor of any shape; floating or complex; integers and bool are taken as float32.

    Returns:
        Tensor of the shape of `input`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.exp(ms.Tensor([0.0, 1.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  2.71828175e+00])
    """


exp.infer(same_type)


@exp.reference
def _(x):
    return np.exp(x)


@exp.scalar
def _(s, x):
    return s.exp(x)


@exp.bprop
def _(x, out, dout):
    return (mul(dout, conjugate(out)),)


@op(method="exp2", dtypes=FLOATING, promote="float")
def exp2(input: Tensor):
    """2 to the power of the elements (`mindspore.ops.exp2`).

    Args:
        input: Tensor of any shape; floating; integers and bool are taken as float32.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        TypeError: another dtype.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.exp2(ms.Tensor([0.0, 3.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  8.00000000e+00])
    """


exp2.infer(same_type)


@exp2.reference
def _(x):
    return np.exp2(x)


@exp2.scalar
def _(s, x):
    return s.exp2(x)


@exp2.bprop
def _(x, out, dout):
    return (mul(dout, out * _LN2),)


@exp2.decompose
def _(x):
    return exp(x * _LN2)


@op(method="expm1", primitive="Expm1", dtypes=INEXACT, promote="float")
def expm1(input: Tensor):
    """``exp(x) - 1``, exact for small elements too (`mindspore.ops.expm1`).

    Args:
        input: Tensor of any shape; floating or complex; integers and bool are taken as float32.

    Returns:
        Tensor of the shape of `input`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.expm1(ms.Tensor([0.0, 1.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  1.71828175e+00])
    """


expm1.infer(same_type)


@expm1.reference
def _(x):
    return np.expm1(x)


@expm1.scalar
def _(s, x):
    return s.expm1(x) if x.dtype.is_floating else s.exp(x) - 1


@expm1.bprop
def _(x, out, dout):
    return (mul(dout, conjugate(out) + 1),)


@expm1.decompose
def _(x):
    u = exp(x)
    if x.dtype.is_complex:
        return u - 1
    least = u - 1
    middle = true_divide(mul(least, x), log(u))  # Kahan's: the error of u cancels
    return select(u == 1, x, select(logical_or(least == -1, u == float("inf")), least, middle))


@op(method="log", primitive="Log", dtypes=INEXACT, promote="float")
def log(input: Tensor):
    """Natural logarithm; NaN below 0, minus infinity at 0 (`mindspore.ops.log`).

    Args:
        input: Tensor of any shape; floating or complex; integers and bool are taken as float32.

    Returns:
        Tensor of the shape of `input`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.log(ms.Tensor([1.0, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  6.93147182e-01])
    """


log.infer(same_type)


@log.reference
def _(x):
    return np.log(x)


@log.scalar
def _(s, x):
    return s.log(x)


@log.bprop
def _(x, out, dout):
    return (true_divide(dout, conjugate(x)),)


@op(method="log1p", primitive="Log1p", dtypes=INEXACT, promote="float")
def log1p(input: Tensor):
    """``log(1 + x)``, exact for small elements too (`mindspore.ops.log1p`).

    Args:
        input: Tensor of any shape; floating or complex; integers and bool are taken as float32.

    Returns:
        Tensor of the shape of `input`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.log1p(ms.Tensor([0.0, 1.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  6.93147182e-01])
    """


log1p.infer(same_type)


@log1p.reference
def _(x):
    return np.log1p(x)


@log1p.scalar
def _(s, x):
    return s.log1p(x) if x.dtype.is_floating else s.log(x + 1)


@log1p.bprop
def _(x, out, dout):
    return (true_divide(dout, conjugate(x) + 1),)


@log1p.decompose
def _(x):
    u = x + 1
    if x.dtype.is_complex:
        return log(u)
    return select(u == 1, x, select(u == float("inf"), u, true_divide(mul(log(u), x), u - 1)))


@op(method="log2", dtypes=INEXACT, promote="float")
def log2(input: Tensor):
    """Logarithm to the base 2 (`mindspore.ops.log2`).

    Args:
        input: Tensor of any shape; floating or complex; integers and bool are taken as float32.

    Returns:
        Tensor of the shape of `input`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.log2(ms.Tensor([1.0, 8.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  3.00000000e+00])
    """


log2.infer(same_type)


@log2.reference
def _(x):
    return np.log2(x)


@log2.scalar
def _(s, x):
    return s.log2(x) if x.dtype.is_floating else s.log(x) * (1 / _LN2)


@log2.bprop
def _(x, out, dout):
    return (true_divide(dout, conjugate(x) * _LN2),)


@log2.decompose
def _(x):
    return log(x) * (1 / _LN2)


@op(method="log10", dtypes=INEXACT, promote="float")
def log10(input: Tensor):
    """Logarithm to the base 10 (`mindspore.ops.log10`).

    Args:
        input: Tensor of any shape; floating or complex; integers and bool are taken as float32.

    Returns:
        Tensor of the shape of `input`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.log10(ms.Tensor([1.0, 100.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  2.00000000e+00])
    """


log10.infer(same_type)


@log10.reference
def _(x):
    return np.log10(x)


@log10.scalar
def _(s, x):
    return s.log10(x) if x.dtype.is_floating else s.log(x) * (1 / math.log(10))


@log10.bprop
def _(x, out, dout):
    return (true_divide(dout, conjugate(x) * math.log(10)),)


@log10.decompose
def _(x):
    return log(x) * (1 / math.log(10))


@op(method="sqrt", primitive="Sqrt", dtypes=INEXACT, promote="float")
def sqrt(input: Tensor):
    """Square root; NaN below 0 (`mindspore.ops.sqrt`).

    Args:
        input: Tensor of any shape; floating or complex; integers and bool are taken as float32.

    Returns:
        Tensor of the shape of `input`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.sqrt(ms.Tensor([4.0, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 2.00000000e+00,  1.41421354e+00])
    """


sqrt.infer(same_type)


@sqrt.reference
def _(x):
    return np.sqrt(x)


@sqrt.scalar
def _(s, x):
    return s.sqrt(x)


@sqrt.bprop
def _(x, out, dout):
    return (true_divide(dout, conjugate(out) * 2),)


@op(method="rsqrt", primitive="Rsqrt", dtypes=INEXACT, promote="float")
def rsqrt(input: Tensor):
    """One divided by the square root (`mindspore.ops.rsqrt`).

    Args:
        input: Tensor of any shape; floating or complex; integers and bool are taken as float32.

    Returns:
        Tensor of the shape of `input`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.rsqrt(ms.Tensor([4.0, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 5.00000000e-01,  7.07106769e-01])
    """


rsqrt.infer(same_type)


@rsqrt.reference
def _(x):
    return (1 / np.sqrt(x)).astype(x.dtype)


@rsqrt.scalar
def _(s, x):
    return s.rsqrt(x) if x.dtype.is_floating else 1 / s.sqrt(x)


@rsqrt.bprop
def _(x, out, dout):
    root = conjugate(out)
    return (mul(dout, root * root * root * -0.5),)


@rsqrt.decompose
def _(x):
    return reciprocal(sqrt(x))


@op(
    method="pow", operators=["__pow__"], reflected=["__rpow__"], primitive="Pow", dtypes=NUMERIC,
    promote="common",
)  # fmt: skip
def pow(input: Tensor, exponent: Tensor):
    """`input` to the power of `exponent` (`mindspore.ops.pow`).

    Args:
        input: Tensor of any shape, or a number; integer, floating or complex.
        exponent: Tensor or number; the shapes broadcast and the dtypes are promoted to a common one.

    Returns:
        Tensor of the broadcast shape and the common dtype. Integers to a negative power give 0, except 1 and -1.

    Raises:
        ValueError: the shapes do not broadcast.
        TypeError: another dtype.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.pow(ms.Tensor([1.0, 2.0, 3.0]), 2)
        Tensor(shape=[3], dtype=Float32, value= [ 1.00000000e+00,  4.00000000e+00,  9.00000000e+00])
    """


pow.infer(broadcast_type("pow"))


@pow.reference
def _(x, y):
    if x.dtype.kind not in "iu":
        return np.power(x, y)
    whole = np.power(x, np.maximum(y, 0))
    odd = (y & 1) != 0
    inverse = (
        np.where(x == 1, 1, np.where(x == -1, np.where(odd, -1, 1), 0))
        if x.dtype.kind == "i"
        else 0
    )
    return np.where(y < 0, inverse, whole).astype(x.dtype)


@pow.scalar
def _(s, x, y):
    return s.pow(x, y)


@pow.bprop
def _(x, y, out, dout):
    x_, y_ = conjugate(x), conjugate(y)
    dx = mul(dout, select(y == 0, 0, y_ * pow(x_, y_ - 1)))
    base = select(x == 0, 1, x_)  # 0 to a positive power does not change with the power
    dy = mul(dout, mul(conjugate(out), log(base)))
    return unbroadcast(dx, x), unbroadcast(dy, y)


@pow.decompose
def _(x, y):
    if x.dtype.is_complex:
        return select(y == 0, 1, exp(y * log(x)))
    if x.dtype.is_floating:
        size = exp(y * log(abs(x)))
        whole = logical_or(floor(y) == y, x == float("-inf"))
        odd = logical_and(floor(y) == y, floor(y * 0.5) * 2 != y)
        out = select(x < 0, select(whole, select(odd, neg(size), size), float("nan")), size)
        return select(logical_or(y == 0, x == 1), 1, out)
    out, base, rest = x * 0 + 1, x, y
    for _ in range(8 * x.dtype.itemsize - (x.dtype.kind == "i")):
        out = select(bitwise_and(rest, 1) != 0, out * base, out)
        base, rest = base * base, shift_right(rest, 1)
    if x.dtype.kind == "u":
        return out
    sign = select(bitwise_and(y, 1) != 0, x, 1)
    return select(y < 0, select(logical_or(x == 1, x == -1), sign, 0), out)


@op(method="hypot", primitive="Hypot", dtypes=FLOATING, promote="float")
def hypot(input: Tensor, other: Tensor):
    """``sqrt(input**2 + other**2)`` without overflow (`mindspore.ops.hypot`).

    Args:
        input: Tensor of any shape, or a number; floating; integers and bool are taken as float32.
        other: Tensor or number; the shapes broadcast and the dtypes are promoted to a common one.

    Returns:
        Tensor of the broadcast shape and the common dtype.

    Raises:
        ValueError: the shapes do not broadcast.
        TypeError: another dtype.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.hypot(ms.Tensor([3.0, 5.0]), ms.Tensor([4.0, 12.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 5.00000000e+00,  1.30000000e+01])
    """


hypot.infer(broadcast_type("hypot"))


@hypot.reference
def _(x, y):
    return np.hypot(x, y)


@hypot.scalar
def _(s, x, y):
    return s.hypot(x, y)


@hypot.bprop
def _(x, y, out, dout):
    size = select(out == 0, 1, out)
    return unbroadcast(mul(dout, true_divide(x, size)), x), unbroadcast(
        mul(dout, true_divide(y, size)), y
    )


@hypot.decompose
def _(x, y):
    a, b = abs(x), abs(y)
    high = select(a > b, a, b)
    low = select(a > b, b, a)
    scale = select(logical_or(high == 0, high == float("inf")), 1, high)
    ratio = true_divide(low, scale)
    out = select(high == float("inf"), high, high * sqrt(ratio * ratio + 1))
    return select(a + b == a + b, out, select(high == float("inf"), high, a + b))


@op(method="erf", primitive="Erf", dtypes=FLOATING, promote="float")
def erf(input: Tensor):
    """The error function (`mindspore.ops.erf`).

    Args:
        input: Tensor of any shape; floating; integers and bool are taken as float32.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        TypeError: another dtype.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.erf(ms.Tensor([0.0, 1.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  8.42700779e-01])
    """


erf.infer(same_type)


@erf.reference
def _(x):
    return _by_math(math.erf, x)


@erf.scalar
def _(s, x):
    return s.erf(x)


@erf.bprop
def _(x, out, dout):
    return (mul(dout, exp(neg(x * x)) * 1.1283791670955126),)


@erf.decompose
def _(x):
    a = abs(x)
    near = x + x * _horner(x * x, _ERF_NEAR)
    far = 1 - exp(_horner(select(a > 4, 4, a), _LOG_ERFC))
    return select(a < 0.875, near, select(x < 0, neg(far), far))


@op(method="erfc", primitive="Erfc", dtypes=FLOATING, promote="float")
def erfc(input: Tensor):
    """``1 - erf(x)``, exact for large elements too (`mindspore.ops.erfc`).

    Args:
        input: Tensor of any shape; floating; integers and bool are taken as float32.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        TypeError: another dtype.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.erfc(ms.Tensor([0.0, 1.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  1.57299206e-01])
    """


erfc.infer(same_type)


@erfc.reference
def _(x):
    return _by_math(math.erfc, x)


@erfc.scalar
def _(s, x):
    return s.erfc(x)


@erfc.bprop
def _(x, out, dout):
    return (mul(dout, exp(neg(x * x)) * -1.1283791670955126),)


@erfc.decompose
def _(x):
    a = abs(x)
    q = true_divide(a - 2, a + 2)
    tail = exp(neg(a * a)) * true_divide(_horner(q, _ERFCX), 1 + 2 * a)
    out = select(x < 0, 2 - tail, tail)
    return select(a == float("inf"), select(x < 0, 2.0, 0.0), out)


@op(method="xlogy", primitive="Xlogy", dtypes=FLOATING, promote="float")
def xlogy(input: Tensor, other: Tensor):
    """``input * log(other)``, 0 where `input` is 0 (`mindspore.ops.xlogy`).

    Args:
        input, other: Tensors or numbers; floating, the shapes broadcast; integers and bool are taken as float32.

    Returns:
        Tensor of the broadcast shape.

    Raises:
        TypeError: complex elements.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.xlogy(ms.Tensor([0.0, 2.0]), ms.Tensor([0.0, 3.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  2.19722462e+00])
    """
    zero = logical_and(input == 0, other == other)
    return select(zero, 0, input * log(select(zero, 1, other)))


xlogy.infer(broadcast_type("xlogy"))


@xlogy.scalar
def _(s, x, y):
    return s.where((x == 0) & (y == y), 0, x * s.log(y))


@op(method="xdivy", primitive="Xdivy", dtypes=FLOATING, promote="float")
def xdivy(x: Tensor, y: Tensor):
    """``x / y``, 0 where `x` is 0 (`mindspore.ops.xdivy`).

    Args:
        x, y: Tensors or numbers; floating, the shapes broadcast; integers and bool are taken as float32.

    Returns:
        Tensor of the broadcast shape.

    Raises:
        TypeError: complex elements.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.xdivy(ms.Tensor([0.0, 2.0]), ms.Tensor([0.0, 4.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  5.00000000e-01])
    """
    zero = logical_and(x == 0, y == y)
    return select(zero, 0, x / select(zero, 1, y))


xdivy.infer(broadcast_type("xdivy"))


@xdivy.scalar
def _(s, x, y):
    return s.where((x == 0) & (y == y), 0, x / y)


@op(method="logaddexp", dtypes=FLOATING, promote="float")
def logaddexp(input: Tensor, other: Tensor):
    """``log(exp(input) + exp(other))`` without overflow (`mindspore.ops.logaddexp`).

    Args:
        input, other: Tensors or numbers; floating, the shapes broadcast; integers and bool are taken as float32.

    Returns:
        Tensor of the broadcast shape.

    Raises:
        TypeError: complex elements.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.logaddexp(ms.Tensor([1.0]), ms.Tensor([2.0]))
        Tensor(shape=[1], dtype=Float32, value= [ 2.31326175e+00])
    """
    high = select(input >= other, input, other)
    low = select(input >= other, other, input)
    gap = select(low == high, 0, low - high)  # two equal infinities have no difference
    return high + log1p(exp(gap))


logaddexp.infer(broadcast_type("logaddexp"))


@logaddexp.scalar
def _(s, x, y):
    high = s.where(x >= y, x, y)
    low = s.where(x >= y, y, x)
    gap = s.where(low == high, 0, low - high)
    return high + s.log1p(s.exp(gap))


@op(method="logaddexp2", dtypes=FLOATING, promote="float")
def logaddexp2(input: Tensor, other: Tensor):
    """``log2(2**input + 2**other)`` without overflow (`mindspore.ops.logaddexp2`).

    Args:
        input, other: Tensors or numbers; floating, the shapes broadcast; integers and bool are taken as float32.

    Returns:
        Tensor of the broadcast shape.

    Raises:
        TypeError: complex elements.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.logaddexp2(ms.Tensor([1.0]), ms.Tensor([2.0]))
        Tensor(shape=[1], dtype=Float32, value= [ 2.58496237e+00])
    """
    high = select(input >= other, input, other)
    low = select(input >= other, other, input)
    gap = select(low == high, 0, low - high)
    return high + log1p(exp(gap * _LN2)) * (1 / _LN2)


logaddexp2.infer(broadcast_type("logaddexp2"))


@logaddexp2.scalar
def _(s, x, y):
    high = s.where(x >= y, x, y)
    low = s.where(x >= y, y, x)
    gap = s.where(low == high, 0, low - high)
    return high + s.log1p(s.exp2(gap)) * (1 / _LN2)


@op(name="logit", dtypes=FLOATING, promote="float")
def logit_of(input: Tensor):
    """Composite: ``log(x / (1 - x))``."""
    return log(input / (1 - input))


@logit_of.scalar
def _(s, x):
    return s.log(x / (1 - x))


@tensor_method("logit")
def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """``log(x / (1 - x))``, the inverse of sigmoid (`mindspore.ops.logit`).

    Args:
        input: Tensor of any shape; floating.
        eps: with a number, elements are limited to ``[eps, 1 - eps]`` first.

    Returns:
        Tensor of the shape of `input`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.logit(ms.Tensor([0.1, 0.5]))
        Tensor(shape=[2], dtype=Float32, value= [-2.19722462e+00,  0.00000000e+00])
    """
    if eps is not None:
        input = input.clamp(eps, 1 - eps)
    return logit_of(input)


@tensor_method("float_power")
def float_power(input: Any, exponent: Any) -> Tensor:
    """`input` to the power of `exponent`, computed in float64 (`mindspore.ops.float_power`).

    Args:
        input, exponent: Tensors or numbers, at least one a Tensor; the shapes broadcast.

    Returns:
        Tensor of float64 (complex128 when one is complex).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.float_power(ms.Tensor([2, 3]), 2)
        Tensor(shape=[2], dtype=Float64, value= [ 4.00000000e+00,  9.00000000e+00])
    """
    tensors = [t for t in (input, exponent) if isinstance(t, Tensor)]
    wide = complex128 if any(t.dtype.is_complex for t in tensors) else float64
    x, y = (cast(t, wide) if isinstance(t, Tensor) else t for t in (input, exponent))
    return pow(x, y)


def ldexp(x: Tensor, other: Tensor) -> Tensor:
    """``x * 2**other`` (`mindspore.ops.ldexp`).

    Args:
        x: Tensor of any shape.
        other: Tensor that broadcasts with `x`, usually of integers.

    Returns:
        Tensor of the broadcast shape; floating.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.ldexp(ms.Tensor([1.5]), ms.Tensor([2]))
        Tensor(shape=[1], dtype=Float32, value= [ 6.00000000e+00])
    """
    return mul(x, exp2(other))
