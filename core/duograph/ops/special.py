"""Special functions of mathematics (lgamma, digamma, erfinv) as elementwise ops.

Users and distributions call them. Each has a decomposition or body for backends that lack the
function.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..dtype import FLOATING
from ..op import op
from ..tensor import Tensor
from .elementwise import abs, mul, true_divide
from .error_functions import erf
from .exponential import exp, log
from .logic import logical_and, logical_or, select
from .powers import sqrt
from .rounding import floor
from .trigonometry import sin, tan

__all__ = ["digamma", "erfinv", "lgamma"]

# The recurrence of digamma and lgamma raises the argument to at least 6, where few terms of
# Stirling's series suffice.
_SHIFT = 6
_HALF_LOG_2PI = 0.9189385332046727


@op(method="lgamma", primitive="Lgamma", dtypes=FLOATING, promote="float")
def lgamma(input: Tensor):
    """Logarithm of the absolute value of the gamma function (`mindspore.ops.lgamma`).

    Args:
        input: Tensor of any shape; floating; integers and bool are taken as float32.

    Returns:
        Tensor of the shape of `input`; infinity at 0 and the negative whole numbers.

    Raises:
        TypeError: complex elements.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.lgamma(ms.Tensor([1.0, 4.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  1.79175949e+00])
    """


def _lgamma_of_number(x: float) -> float:
    if math.isnan(x):
        return x
    if math.isinf(x) or (x <= 0 and x == math.floor(x)):
        return math.inf
    return math.lgamma(x)


@lgamma.reference
def _(x):
    wide = np.vectorize(_lgamma_of_number, otypes=[np.float64])(x.astype(np.float64))
    return wide.astype(x.dtype)


@lgamma.scalar
def _(s, x):
    return s.lgamma(x)


@lgamma.bprop
def _(x, out, dout):
    return (mul(dout, digamma(x)),)


@lgamma.decompose
def _(x):
    positive = x > 0
    y = select(positive, x, 1 - x)
    product: Any = y
    for k in range(1, _SHIFT):
        product = product * (y + k)
    z = y + _SHIFT
    series = (z - 0.5) * log(z) - z + _HALF_LOG_2PI
    r = true_divide(1, z)
    series = series + r * (1 / 12 - r * r * (1 / 360 - r * r / 1260))
    value = select(y > 1e8, y * (log(y) - 1), series - log(product))
    pole = logical_and(x <= 0, floor(x) == x)
    reflected = math.log(math.pi) - log(abs(sin(select(pole, 0.5, x) * math.pi))) - value
    value = select(positive, value, select(pole, float("inf"), reflected))
    value = select(abs(x) == float("inf"), float("inf"), value)
    return select(x == x, value, x)


@op(method="digamma", primitive="Digamma", dtypes=FLOATING, promote="float")
def digamma(input: Tensor):
    """Derivative of `lgamma` (`mindspore.ops.digamma`).

    Args:
        input: Tensor of any shape; floating; integers and bool are taken as float32.

    Returns:
        Tensor of the shape of `input`; NaN at 0 and the negative whole numbers.

    Raises:
        TypeError: complex elements.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.digamma(ms.Tensor([4.0]))
        Tensor(shape=[1], dtype=Float32, value= [ 1.25611770e+00])
    """
    positive = input > 0
    y = select(positive, input, 1 - input)
    below: Any = true_divide(1, y)
    for k in range(1, _SHIFT):
        below = below + true_divide(1, y + k)
    z = y + _SHIFT
    r = true_divide(1, z * z)
    value = (
        log(z)
        - true_divide(0.5, z)
        - r * (1 / 12 - r * (1 / 120 - r * (1 / 252 - r / 240)))
        - below
    )
    pole = logical_and(input <= 0, floor(input) == input)
    # tan has period 1 in this argument; where it is not used, it has a finite gradient
    part = select(logical_or(positive, pole), 0.25, input - floor(input))
    reflected = value - true_divide(math.pi, tan(part * math.pi))
    return select(positive, value, select(pole, float("nan"), reflected))


@digamma.scalar
def _(s, x):
    y = s.where(x > 0, x, 1 - x)
    below = 1 / y
    for k in range(1, _SHIFT):
        below = below + 1 / (y + k)
    z = y + _SHIFT
    r = 1 / (z * z)
    value = s.log(z) - 0.5 / z - r * (1 / 12 - r * (1 / 120 - r * (1 / 252 - r / 240))) - below
    whole = s.floor(x) == x
    reflected = value - math.pi / s.tan((x - s.floor(x)) * math.pi)
    return s.where(x > 0, value, s.where(whole, s.nan, reflected))


@op(method="erfinv", primitive="Erfinv", dtypes=FLOATING, promote="float")
def erfinv(input: Tensor):
    """Inverse of the error function (`mindspore.ops.erfinv`).

    Args:
        input: Tensor of any shape; floating; integers and bool are taken as float32.

    Returns:
        Tensor of the shape of `input`; infinities at -1 and 1, NaN outside.

    Raises:
        TypeError: complex elements.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.erfinv(ms.Tensor([0.0, 0.5]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  4.76936281e-01])
    """
    # Winitzki's approximation (2008), then three steps of Newton's method
    edge = abs(input) == 1
    x = select(edge, 0, input)
    tail = log(1 - x * x)
    base = 4.330746750799873 + tail * 0.5
    y = sqrt(sqrt(base * base - tail * 6.802721088435374) - base)
    y = select(x < 0, -y, y)
    for _ in range(3):
        y = y - (erf(y) - x) * exp(y * y) * 0.886226925452758
    return select(edge, input * float("inf"), y)


@erfinv.scalar
def _(s, x):
    tail = s.log(1 - x * x)
    base = 4.330746750799873 + tail * 0.5
    y = s.sqrt(s.sqrt(base * base - tail * 6.802721088435374) - base)
    y = s.where(x < 0, -y, y)
    for _ in range(3):
        y = y - (s.erf(y) - x) * s.exp(y * y) * 0.886226925452758
    return s.where(s.abs(x) == 1, x * s.inf, y)


@erfinv.bprop
def _(x, out, dout):
    return (mul(dout, exp(out * out) * 0.886226925452758),)
