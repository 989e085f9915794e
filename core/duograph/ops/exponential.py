"""Exponentials and logarithms, as elementwise ops with gradients.

Users and other ops call them. Functions such as `expm1` and `log1p` must stay accurate near zero
in decompositions, too.
"""

from __future__ import annotations

import math

import numpy as np

from ..dtype import FLOATING, INEXACT
from ..op import op
from ..tensor import Tensor
from .elementwise import mul, neg, true_divide
from .logic import logical_and, logical_or, select
from .methods import tensor_method
from .pointwise import conjugate
from .shape_primitives import unbroadcast

__all__ = [
    "exp", "exp2", "expm1", "ldexp", "log", "log10", "log1p", "log2", "logaddexp", "logaddexp2",
    "logit", "xdivy", "xlogy",
]  # fmt: skip

_LN2 = 0.6931471805599453


@op(method="exp", primitive="Exp", dtypes=INEXACT, promote="float")
def exp(input: Tensor):
    """Return e to the power of the elements (`mindspore.ops.exp`).

    Args:
        input: Tensor of any shape; floating or complex; integers and bool are converted to float32.

    Returns:
        Tensor of the shape of `input`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.exp(ms.Tensor([0.0, 1.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  2.71828175e+00])
    """


exp.reference(np.exp)


@exp.scalar
def _(s, x):
    return s.exp(x)


@exp.bprop
def _(x, out, dout):
    return (mul(dout, conjugate(out)),)


@op(method="exp2", dtypes=FLOATING, promote="float")
def exp2(input: Tensor):
    """Return 2 to the power of the elements (`mindspore.ops.exp2`).

    Args:
        input: Tensor of any shape; floating; integers and bool are converted to float32.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        TypeError: the dtype is not supported.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.exp2(ms.Tensor([0.0, 3.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  8.00000000e+00])
    """


exp2.reference(np.exp2)


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
    """Return ``exp(x) - 1`` for each element x, also accurate for small elements
    (`mindspore.ops.expm1`).

    Args:
        input: Tensor of any shape; floating or complex; integers and bool are converted to float32.

    Returns:
        Tensor of the shape of `input`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.expm1(ms.Tensor([0.0, 1.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  1.71828175e+00])
    """


expm1.reference(np.expm1)


@expm1.scalar
def _(s, x):
    if x.dtype.is_floating:
        return s.expm1(x)
    # Re(exp(a + ib)) - 1 = expm1(a) cos(b) - 2 sin(b/2)^2, without a difference of equal numbers
    a, b, power = s.real(x), s.imag(x), s.exp(x)
    half = s.sin(b * 0.5)
    near = s.expm1(a) * s.cos(b) - half * half * 2
    return s.complex(s.where(s.abs(a) < 1, near, s.real(power) - 1), s.imag(power))


@expm1.bprop
def _(x, out, dout):
    return (mul(dout, conjugate(out) + 1),)


@expm1.decompose
def _(x):
    u = exp(x)
    least = u - 1
    middle = mul(least, true_divide(x, log(u)))  # Kahan's method: the error of u cancels
    return select(u == 1, x, select(logical_or(least == -1, u == float("inf")), least, middle))


@op(method="log", primitive="Log", dtypes=INEXACT, promote="float")
def log(input: Tensor):
    """Return the natural logarithm; NaN below 0, minus infinity at 0 (`mindspore.ops.log`).

    Args:
        input: Tensor of any shape; floating or complex; integers and bool are converted to float32.

    Returns:
        Tensor of the shape of `input`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.log(ms.Tensor([1.0, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  6.93147182e-01])
    """


log.reference(np.log)


@log.scalar
def _(s, x):
    return s.log(x)


@log.bprop
def _(x, out, dout):
    return (true_divide(dout, conjugate(x)),)


@op(method="log1p", primitive="Log1p", dtypes=INEXACT, promote="float")
def log1p(input: Tensor):
    """Return ``log(1 + x)`` for each element x, also accurate for small elements
    (`mindspore.ops.log1p`).

    Args:
        input: Tensor of any shape; floating or complex; integers and bool are converted to float32.

    Returns:
        Tensor of the shape of `input`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.log1p(ms.Tensor([0.0, 1.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  6.93147182e-01])
    """


@log1p.reference
def _(x):
    if x.dtype.kind != "c":
        return np.log1p(x)
    # NumPy rounds 1 + x first; within this square, squares of the parts lose nothing
    a, b = x.real, x.imag
    with np.errstate(all="ignore"):
        out = np.array(np.log(x + 1))
        small = (np.abs(a) < 0.5) & (np.abs(b) < 0.5)
        out.real = np.where(small, np.log1p(a * (a + 2) + b * b) / 2, out.real)
    return out.astype(x.dtype)


@log1p.scalar
def _(s, x):
    if x.dtype.is_floating:
        return s.log1p(x)
    # log|1 + a + ib| = log1p(a (2 + a) + b^2) / 2; further out the squares might overflow
    a, b, whole = s.real(x), s.imag(x), s.log(x + 1)
    near = s.log1p(a * (a + 2) + b * b) * 0.5
    small = (s.abs(a) < 0.5) & (s.abs(b) < 0.5)
    return s.complex(s.where(small, near, s.real(whole)), s.imag(whole))


@log1p.bprop
def _(x, out, dout):
    return (true_divide(dout, conjugate(x) + 1),)


@log1p.decompose
def _(x):
    u = x + 1
    # log(u) with a factor for the rounding of u; infinite only with x
    nearly = mul(log(u), true_divide(x, select(u == float("inf"), 1, u - 1)))
    return select(u == 1, x, select(u == float("inf"), u, nearly))


@op(method="log2", dtypes=INEXACT, promote="float")
def log2(input: Tensor):
    """Return the logarithm to the base 2 (`mindspore.ops.log2`).

    Args:
        input: Tensor of any shape; floating or complex; integers and bool are converted to float32.

    Returns:
        Tensor of the shape of `input`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.log2(ms.Tensor([1.0, 8.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  3.00000000e+00])
    """


log2.reference(np.log2)


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
    """Return the logarithm to the base 10 (`mindspore.ops.log10`).

    Args:
        input: Tensor of any shape; floating or complex; integers and bool are converted to float32.

    Returns:
        Tensor of the shape of `input`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.log10(ms.Tensor([1.0, 100.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  2.00000000e+00])
    """


log10.reference(np.log10)


@log10.scalar
def _(s, x):
    return s.log10(x) if x.dtype.is_floating else s.log(x) * (1 / math.log(10))


@log10.bprop
def _(x, out, dout):
    return (true_divide(dout, conjugate(x) * math.log(10)),)


@log10.decompose
def _(x):
    return log(x) * (1 / math.log(10))


@op(method="xlogy", primitive="Xlogy", dtypes=FLOATING, promote="float")
def xlogy(input: Tensor, other: Tensor):
    """Return ``input * log(other)``, and 0 where `input` is 0 (`mindspore.ops.xlogy`).

    Args:
        input, other: Tensors or numbers; floating, the shapes broadcast; integers and bool are
            converted to float32.

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


@xlogy.scalar
def _(s, x, y):
    return s.where((x == 0) & (y == y), 0, x * s.log(y))


@op(method="xdivy", primitive="Xdivy", dtypes=FLOATING, promote="float")
def xdivy(x: Tensor, y: Tensor):
    """Return ``x / y``, and 0 where `x` is 0 (`mindspore.ops.xdivy`).

    Args:
        x, y: Tensors or numbers; floating, the shapes broadcast; integers and bool are converted to
            float32.

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


@xdivy.scalar
def _(s, x, y):
    return s.where((x == 0) & (y == y), 0, x / y)


@op(method="logaddexp", dtypes=FLOATING, promote="float", elementwise=True)
def logaddexp(input: Tensor, other: Tensor):
    """Return ``log(exp(input) + exp(other))`` without overflow (`mindspore.ops.logaddexp`).

    Args:
        input, other: Tensors or numbers; floating, the shapes broadcast; integers and bool are
            converted to float32.

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
    gap = select(low == high, 0, low - high)  # the difference of equal infinities is NaN
    return high + log1p(exp(gap))


@logaddexp.bprop
def _(x, y, out, dout):
    by_x, by_y = _shares(x - y)
    return unbroadcast(dout * by_x, x), unbroadcast(dout * by_y, y)


def _shares(d: Tensor) -> tuple[Tensor, Tensor]:
    """Return the derivatives of log(exp(x) + exp(y)) by x and by y, for d = x - y.

    They are 1 / (1 + exp(-d)) and 1 / (1 + exp(d)), and both 1/2 where `d` is NaN, as it is for
    equal infinities.
    """
    d = select(d == d, d, 0)
    return true_divide(1, 1 + exp(neg(d))), true_divide(1, 1 + exp(d))


@op(method="logaddexp2", dtypes=FLOATING, promote="float")
def logaddexp2(input: Tensor, other: Tensor):
    """Return ``log2(2**input + 2**other)`` without overflow (`mindspore.ops.logaddexp2`).

    Args:
        input, other: Tensors or numbers; floating, the shapes broadcast; integers and bool are
            converted to float32.

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


@logaddexp2.bprop
def _(x, y, out, dout):
    by_x, by_y = _shares((x - y) * _LN2)
    return unbroadcast(dout * by_x, x), unbroadcast(dout * by_y, y)


@logaddexp2.scalar
def _(s, x, y):
    high = s.where(x >= y, x, y)
    low = s.where(x >= y, y, x)
    gap = s.where(low == high, 0, low - high)
    return high + s.log1p(s.exp2(gap)) * (1 / _LN2)


@op(method="logit", dtypes=FLOATING, promote="float", elementwise=True)
def logit(input: Tensor):
    """Return ``log(x / (1 - x))`` for each element x, the inverse of sigmoid
    (`mindspore.ops.logit`).

    Args:
        input: Tensor of any shape; floating.
        eps: if a number, elements are clamped to ``[eps, 1 - eps]`` first.

    Returns:
        Tensor of the shape of `input`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.logit(ms.Tensor([0.1, 0.5]))
        Tensor(shape=[2], dtype=Float32, value= [-2.19722462e+00,  0.00000000e+00])
    """
    # log1p of a quotient whose numerator is exact keeps the digits around the root, 1/2
    rest = 1 - input
    return select(input > 0.25, log1p((2 * input - 1) / rest), log(input / rest))


@logit.bprop
def _(x, out, dout):
    return (true_divide(dout, x * (1 - x)),)


@logit.normaliser
def _(input: Tensor, eps: float | None = None):
    if eps is not None:
        input = input.clamp(eps, 1 - eps)
    return (input,)


@tensor_method("ldexp")
def ldexp(x: Tensor, other: Tensor) -> Tensor:
    """Return ``x * 2**other`` (`mindspore.ops.ldexp`).

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
