"""Powers and roots: sqrt, rsqrt, pow, hypot and float_power, as elementwise ops.

Users and other ops call them. On every backend, integer powers must wrap around as NumPy's do.
"""

from __future__ import annotations

import numpy as np

from ..dtype import FLOATING, INEXACT, NUMERIC, complex128, float64
from ..op import op
from ..tensor import Tensor
from .creation import cast
from .elementwise import abs, mul, neg, reciprocal, true_divide
from .exponential import exp, log
from .logic import bitwise_and, logical_and, logical_or, select, shift_right
from .methods import tensor_method
from .pointwise import conjugate
from .rounding import floor
from .shape_primitives import unbroadcast

__all__ = ["float_power", "hypot", "pow", "rsqrt", "sqrt"]


@op(method="sqrt", primitive="Sqrt", dtypes=INEXACT, promote="float")
def sqrt(x: Tensor):
    """Return the square root; NaN below 0 (`mindspore.ops.sqrt`).

    Args:
        x: Tensor of any shape; floating or complex; integers and bool are converted to float32.

    Returns:
        Tensor of the shape of `x`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.sqrt(ms.Tensor([4.0, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 2.00000000e+00,  1.41421354e+00])
    """


sqrt.reference(np.sqrt)


@sqrt.scalar
def _(s, x):
    return s.sqrt(x)


@sqrt.bprop
def _(x, out, dout):
    return (true_divide(dout, conjugate(out) * 2),)


@op(method="rsqrt", primitive="Rsqrt", dtypes=INEXACT, promote="float")
def rsqrt(input: Tensor):
    """Return 1 divided by the square root (`mindspore.ops.rsqrt`).

    Args:
        input: Tensor of any shape; floating or complex; integers and bool are converted to float32.

    Returns:
        Tensor of the shape of `input`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.rsqrt(ms.Tensor([4.0, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 5.00000000e-01,  7.07106769e-01])
    """


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
    """Return `input` to the power of `exponent` (`mindspore.ops.pow`).

    Args:
        input: Tensor of any shape, or a number; integer, floating or complex.
        exponent: Tensor or number; the shapes broadcast and the dtypes are promoted to a common
            one.

    Returns:
        Tensor of the broadcast shape and the common dtype. A negative power of an integer is 0,
        except for 1 and -1.

    Raises:
        ValueError: the shapes do not broadcast.
        TypeError: another dtype.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.pow(ms.Tensor([1.0, 2.0, 3.0]), 2)
        Tensor(shape=[3], dtype=Float32, value= [ 1.00000000e+00,  4.00000000e+00,  9.00000000e+00])
    """


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
    base = select(
        x == 0, 1, x_
    )  # log(0) is avoided: 0**y is constant in y > 0, so its derivative is 0
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
    """Return ``sqrt(input**2 + other**2)`` without overflow (`mindspore.ops.hypot`).

    Args:
        input: Tensor of any shape, or a number; floating; integers and bool are converted to
            float32.
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


hypot.reference(np.hypot)


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
    out = select(a + b == a + b, high * sqrt(ratio * ratio + 1), a + b)
    infinite = logical_or(a == float("inf"), b == float("inf"))  # also beside NaN
    return select(infinite, float("inf"), out)


def float_power(input: Tensor | int | float, exponent: Tensor | int | float) -> Tensor:
    """Return `input` to the power of `exponent`, computed in float64 (`mindspore.ops.float_power`).

    Args:
        input, exponent: Tensors or numbers, at least one a Tensor; the shapes broadcast.

    Returns:
        Tensor of float64, or of complex128 if an operand is complex.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.float_power(ms.Tensor([2, 3]), 2)
        Tensor(shape=[2], dtype=Float64, value= [ 4.00000000e+00,  9.00000000e+00])
    """
    tensors = [t for t in (input, exponent) if isinstance(t, Tensor)]
    wide = complex128 if any(t.dtype.is_complex for t in tensors) else float64
    x, y = (cast(t, wide) if isinstance(t, Tensor) else t for t in (input, exponent))
    return pow(x, y)


@tensor_method("float_power")
def _tensor_float_power(self: Tensor, other: Tensor | int | float) -> Tensor:
    """Return this tensor to the power of `other`, computed in float64; see `ops.float_power`."""
    return float_power(self, other)
