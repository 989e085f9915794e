"""Trigonometric functions and their inverses, as elementwise ops.

Users and other ops call them. Angles are in radians, except in deg2rad and rad2deg. Decompositions
must stay accurate near the roots.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..dtype import FLOATING, INEXACT, float64
from ..op import op
from ..tensor import Tensor
from .elementwise import abs, mul, neg, reciprocal, square, true_divide
from .logic import logical_and, logical_or, select
from .pointwise import conjugate
from .powers import rsqrt, sqrt
from .rounding import floor, rint
from .shape_primitives import unbroadcast

__all__ = [
    "acos",
    "arccos",
    "arctan",
    "arctan2",
    "asin",
    "atan",
    "atan2",
    "cos",
    "deg2rad",
    "rad2deg",
    "sin",
    "sinc",
    "tan",
]

_HALF_PI = math.pi / 2
# pi/2 as the nearest float32 (False) or float64 (True), and the rest.
_HALF_PI_PARTS = {
    False: (1.5707963705062866, -4.3711390001862426e-08),
    True: (1.5707963267948966, 6.123233995736766e-17),
}


def signed(x: Tensor, size: Tensor) -> Tensor:
    """Return the non-negative `size` with the sign of `x`."""
    return select(x < 0, neg(size), size)


@op(method="sin", primitive="Sin", dtypes=INEXACT, promote="float")
def sin(input: Tensor):
    """Return the sine of the elements, which are angles in radians (`mindspore.ops.sin`).

    Args:
        input: Tensor of any shape; floating or complex; integers and bool are converted to float32.

    Returns:
        Tensor of the shape of `input`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.sin(ms.Tensor([0.0, 0.5]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  4.79425550e-01])
    """


sin.reference(np.sin)


@sin.scalar
def _(s, x):
    return s.sin(x)


@sin.bprop
def _(x, out, dout):
    return (mul(dout, cos(conjugate(x))),)


@op(method="cos", primitive="Cos", dtypes=INEXACT, promote="float")
def cos(input: Tensor):
    """Return the cosine of the elements, which are angles in radians (`mindspore.ops.cos`).

    Args:
        input: Tensor of any shape; floating or complex; integers and bool are converted to float32.

    Returns:
        Tensor of the shape of `input`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.cos(ms.Tensor([0.0, 1.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  5.40302277e-01])
    """


cos.reference(np.cos)


@cos.scalar
def _(s, x):
    return s.cos(x)


@cos.bprop
def _(x, out, dout):
    return (neg(mul(dout, sin(conjugate(x)))),)


@cos.decompose
def _(x):
    if x.dtype.is_complex:
        return 1 - 2 * square(sin(x * 0.5))
    # sin(pi/2 - x), whose first difference is exact around the roots at +-pi/2
    a = abs(x)
    high, low = _HALF_PI_PARTS[x.dtype is float64]
    near = sin((high - select(a < 4, a, 0)) + low)
    return select(a < 4, near, 1 - 2 * square(sin(x * 0.5)))


@op(method="tan", primitive="Tan", dtypes=INEXACT, promote="float")
def tan(input: Tensor):
    """Return the tangent of the elements, which are angles in radians (`mindspore.ops.tan`).

    Args:
        input: Tensor of any shape; floating or complex; integers and bool are converted to float32.

    Returns:
        Tensor of the shape of `input`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.tan(ms.Tensor([0.0, 1.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  1.55740774e+00])
    """


tan.reference(np.tan)


@tan.scalar
def _(s, x):
    return s.tan(x)


@tan.bprop
def _(x, out, dout):
    return (mul(dout, square(conjugate(out)) + 1),)


@tan.decompose
def _(x):
    return true_divide(sin(x), cos(x))


@op(method=["asin", "arcsin"], primitive="Asin", dtypes=INEXACT, promote="float")
def asin(input: Tensor):
    """Return the inverse sine, in radians; NaN outside [-1, 1] (`mindspore.ops.asin`).

    Args:
        input: Tensor of any shape; floating or complex; integers and bool are converted to float32.

    Returns:
        Tensor of the shape of `input`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.asin(ms.Tensor([0.0, 1.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  1.57079637e+00])
    """


asin.reference(np.arcsin)


@asin.scalar
def _(s, x):
    return s.asin(x)


@asin.bprop
def _(x, out, dout):
    return (mul(dout, rsqrt(1 - square(conjugate(x)))),)


@asin.decompose
def _(x):
    return 2 * atan(true_divide(x, 1 + sqrt((1 - x) * (1 + x))))


@op(method=["acos", "arccos"], dtypes=INEXACT, promote="float", primitive=["Acos", "ACos"])
def acos(input: Tensor):
    """Return the inverse cosine, in radians; NaN outside [-1, 1] (`mindspore.ops.acos`).

    Args:
        input: Tensor of any shape; floating or complex; integers and bool are converted to float32.

    Returns:
        Tensor of the shape of `input`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.acos(ms.Tensor([0.0, 1.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.57079637e+00,  0.00000000e+00])
    """


acos.reference(np.arccos)


@acos.scalar
def _(s, x):
    return s.acos(x)


@acos.bprop
def _(x, out, dout):
    return (neg(mul(dout, rsqrt(1 - square(conjugate(x))))),)


@acos.decompose
def _(x):
    if x.dtype.is_complex:
        return _HALF_PI - asin(x)
    return select(x == -1, math.pi, 2 * atan(sqrt(true_divide(1 - x, 1 + x))))


@op(method=["atan", "arctan"], primitive="Atan", dtypes=INEXACT, promote="float")
def atan(input: Tensor):
    """Return the inverse tangent, in radians (`mindspore.ops.atan`).

    Args:
        input: Tensor of any shape; floating or complex; integers and bool are converted to float32.

    Returns:
        Tensor of the shape of `input`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.atan(ms.Tensor([0.0, 1.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  7.85398185e-01])
    """


atan.reference(np.arctan)


@atan.scalar
def _(s, x):
    return s.atan(x)


@atan.bprop
def _(x, out, dout):
    return (true_divide(dout, square(conjugate(x)) + 1),)


@atan.decompose
def _(x):
    a = abs(x)
    t: Tensor = select(a > 1, reciprocal(select(a > 1, a, 1)), a)
    for _ in range(2):  # halve the angle twice: at most pi/16 remains
        t = true_divide(t, 1 + sqrt(1 + t * t))
    z = t * t
    last = 21 if x.dtype is float64 else 13  # t is at most 0.2
    series: Any = 1 / last
    for k in range(last - 2, 0, -2):
        series = 1 / k - z * series
    series = t * series
    return signed(x, select(a > 1, _HALF_PI - 4 * series, 4 * series))


@op(method=["atan2", "arctan2"], primitive="Atan2", dtypes=FLOATING, promote="float")
def atan2(input: Tensor, other: Tensor):
    """Return the angle of the point (`other`, `input`), in radians (`mindspore.ops.atan2`).

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
        >>> ms.ops.atan2(ms.Tensor([1.0, -1.0]), ms.Tensor([1.0, 0.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 7.85398185e-01, -1.57079637e+00])
    """


atan2.reference(np.arctan2)


@atan2.scalar
def _(s, x, y):
    return s.atan2(x, y)


@atan2.bprop
def _(x, y, out, dout):
    size = square(x) + square(y)
    size = select(size == 0, 1, size)
    dx = mul(dout, true_divide(y, size))
    dy = neg(mul(dout, true_divide(x, size)))
    return unbroadcast(dx, x), unbroadcast(dy, y)


@atan2.decompose
def _(x, y):
    ax, ay = abs(x), abs(y)
    high, low = select(ax > ay, ax, ay), select(ax > ay, ay, ax)
    both = logical_and(ax == float("inf"), ay == float("inf"))
    ratio = select(both, 1, true_divide(low, select(high == 0, 1, high)))
    angle = atan(ratio)
    angle = select(ax > ay, _HALF_PI - angle, angle)
    left = logical_or(y < 0, true_divide(1, y) < 0)
    angle = select(left, math.pi - angle, angle)
    angle = select(logical_or(x < 0, true_divide(1, x) < 0), neg(angle), angle)
    return select(x + y == x + y, angle, select(both, angle, x + y))


@op(method="sinc", primitive="Sinc", dtypes=FLOATING, promote="float", elementwise=True)
def sinc(input: Tensor):
    """Return ``sin(pi x) / (pi x)`` for each element x, and 1 at zero (`mindspore.ops.sinc`).

    Args:
        input: Tensor of any shape; floating; integers and bool are converted to float32.

    Returns:
        Tensor of the shape of `input`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.sinc(ms.Tensor([0.0, 0.5]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  6.36619747e-01])
    """
    # the sine of the exact distance to the nearest whole number: sinc is 0 there
    zero = input == 0
    x = select(zero, 1, input)
    whole = rint(x)
    odd = whole - 2 * floor(whole * 0.5)
    sine = sin((x - whole) * math.pi) * (1 - 2 * odd)
    return select(zero, 1, sine / (x * math.pi))


@op(method="deg2rad", dtypes=FLOATING, promote="float", elementwise=True)
def deg2rad(x: Tensor):
    """Convert degrees to radians (`mindspore.ops.deg2rad`).

    Args:
        x: Tensor of any shape; floating; integers and bool are converted to float32.

    Returns:
        Tensor of the shape of `x`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.deg2rad(ms.Tensor([180.0, 90.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 3.14159274e+00,  1.57079637e+00])
    """
    return x * (math.pi / 180)


@op(method="rad2deg", dtypes=FLOATING, promote="float", elementwise=True)
def rad2deg(x: Tensor):
    """Convert radians to degrees (`mindspore.ops.rad2deg`).

    Args:
        x: Tensor of any shape; floating; integers and bool are converted to float32.

    Returns:
        Tensor of the shape of `x`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.rad2deg(ms.Tensor([3.0, 1.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.71887344e+02,  5.72957802e+01])
    """
    return x * (180 / math.pi)


def _times_i(x: Tensor, sign: int = 1) -> Tensor:
    """Multiply a complex tensor by the imaginary unit i or, if `sign` is -1, by -i."""
    return mul(x, sign * 1j)


arccos, arctan, arctan2 = acos, atan, atan2
