"""Special functions of mathematics (lgamma, digamma, erfinv) as elementwise ops.

Users and distributions call them. Each op has a decomposition into other ops, or a body of other
ops, for backends that lack the function.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dtype import FLOATING, float64
from ..op import op
from ..tensor import Tensor
from .elementwise import abs, mul, true_divide
from .error_functions import erf, erfc
from .exponential import exp, log
from .logic import logical_and, select
from .powers import sqrt
from .rounding import floor, rint
from .trigonometry import sin, tan

__all__ = ["digamma", "erfinv", "lgamma"]

# The recurrence of lgamma raises the argument to at least 6, where few terms of Stirling's series
# suffice.
_SHIFT = 6
_HALF_LOG_2PI = 0.9189385332046727
# Stirling's series in 1/z, highest power first; float32 takes the last three terms.
_STIRLING = (
    43867 / 244188, -3617 / 122400, 1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360,
    1 / 12,
)  # fmt: skip

# digamma has a root in (1, 2) and one between any two poles. Next to the two that lie nearest to 0
# it is (x - root) times a polynomial, so no digit is lost; a root is a sum of three numbers, the
# first a float32. The polynomials interpolate at Chebyshev nodes:
# digamma(x) x (x + 1) / (x - root) in x - 1.5 on [1, 2], and digamma(x) / (x - root) in x - root
# within 1/32 of the negative root.
_ROOT = (1.4616321325302124, 1.2438149938918909e-08, 4.341643069426251e-25)
_NEGATIVE_ROOT = (-0.5040830373764038, 2.911194839933548e-08, 1.5503830626950666e-24)
_NEAR_ROOT = (
    -1.6118384502575828e-08, 5.766756463549883e-08, -1.9369005194115507e-07,
    7.055666083154274e-07, -2.6106561304999995e-06, 9.82844925649363e-06,
    -3.803566297286451e-05, 0.0001533186145462289, -0.0006580250114228293,
    0.003130508724393092, -0.017975945770499064, 0.1585805068089286, 2.2156206743218547,
    3.5664595351193733,
)  # fmt: skip
_NEAR_NEGATIVE_ROOT = (
    -1767.1511832040903, 8332.054033042003, -368.552147349235, 2055.428465108669,
    -75.37701394847782, 513.2705173228494, -14.706721732487654, 128.27342341845826,
    -2.761011648791083, 32.25857206491655, -0.8093454625306507, 8.939798558792134,
)  # fmt: skip
# Asymptotic series in 1/x^2, highest power first: of log(x) - 1/(2x) - digamma(x) from 10 on, and
# of (trigamma(x) - 1/x - 1/(2x^2)) x from 12 on. The coefficients are Bernoulli numbers, over 2k
# for digamma.
_DIGAMMA_SERIES = (1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12)
_TRIGAMMA_SERIES = (7 / 6, -691 / 2730, 5 / 66, -1 / 30, 1 / 42, -1 / 30, 1 / 6)


def _polynomial(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    """Evaluate a polynomial at `x` by Horner's rule; coefficients start with the highest power."""
    out: Any = coefficients[0]
    for c in coefficients[1:]:
        out = out * x + c
    return out


@op(method="lgamma", primitive="Lgamma", dtypes=FLOATING, promote="float")
def lgamma(input: Tensor):
    """Return the logarithm of the absolute value of the gamma function (`mindspore.ops.lgamma`).

    Args:
        input: Tensor of any shape; floating; integers and bool are converted to float32.

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
    try:
        return math.lgamma(x)
    except OverflowError:  # beyond 2.5e305
        return math.inf


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
    infinite = abs(x) == float("inf")
    x = select(infinite, 1, x)
    positive = x > 0
    y = select(positive, x, 1 - x)
    small = y < 16  # the product of the recurrence would overflow for large arguments
    product: Tensor = select(small, y, 1)
    for k in range(1, _SHIFT):
        product = product * select(small, y + k, 1)
    z = select(small, y + _SHIFT, y)
    r = true_divide(1, z)
    series: Tensor | float = 0.0
    for c in _STIRLING if x.dtype is float64 else _STIRLING[-3:]:
        series = (series * r) * r + c
    value = (z - 0.5) * (log(z) - 1) - 0.5 + _HALF_LOG_2PI + series * r - log(product)
    pole = logical_and(x <= 0, floor(x) == x)
    turn = abs(select(pole, 0.5, x - floor(x + 0.5)))  # |sin(pi x)| has period 1
    tiny = turn < 1e-9  # where pi times a subnormal number would have few digits
    sine = select(tiny, log(turn) + math.log(math.pi), log(sin(turn * math.pi)))
    reflected = math.log(math.pi) - sine - value
    value = select(positive, value, select(pole, float("inf"), reflected))
    return select(infinite, float("inf"), value)


@op(method="digamma", primitive="Digamma", dtypes=FLOATING, promote="float", elementwise=True)
def digamma(input: Tensor):
    """Return the derivative of `lgamma` (`mindspore.ops.digamma`).

    Args:
        input: Tensor of any shape; floating; integers and bool are converted to float32.

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
    # 1 <= u < 2 by one step of the recurrence from y < 3
    below, above = y < 1, y >= 2
    u = select(below, y + 1, select(above, y - 1, y))
    step = select(below, -1 / y, select(above, 1 / u, 0))
    from_root = u - _ROOT[0] - _ROOT[1] - _ROOT[2]
    near = from_root * _polynomial(u - 1.5, _NEAR_ROOT) / (u * (u + 1)) + step
    # from 3 on, the series after seven steps
    z = y + 7
    steps: Tensor = 1 / y
    for k in range(1, 7):
        steps = steps + 1 / (y + k)
    r = 1 / (z * z)
    far = log(z) - 0.5 / z - r * _polynomial(r, _DIGAMMA_SERIES) - steps
    value = select(y < 3, near, far)
    pole = logical_and(input <= 0, floor(input) == input)
    turn = select(pole, 0.25, input - rint(input))  # tan has period 1 in this argument
    reflected = value - math.pi / tan(turn * math.pi)
    d = input - _NEGATIVE_ROOT[0] - _NEGATIVE_ROOT[1] - _NEGATIVE_ROOT[2]
    reflected = select(abs(d) < 0.03125, d * _polynomial(d, _NEAR_NEGATIVE_ROOT), reflected)
    return select(positive, value, select(pole, float("nan"), reflected))


@op(dtypes=FLOATING, elementwise=True)
def trigamma(x: Tensor):
    """Composite op: derivative of `digamma`; infinite at 0 and the negative whole numbers."""
    positive = x > 0
    y = select(positive, x, 1 - x)
    z = y + 12
    r = 1 / (z * z)
    value: Tensor = (1 / z) * (1 + r * _polynomial(r, _TRIGAMMA_SERIES)) + 0.5 * r
    for k in range(11, -1, -1):  # the smallest term first
        value = value + 1 / ((y + k) * (y + k))
    sine = sin(select(positive, 0.25, x - rint(x)) * math.pi) / math.pi
    return select(positive, value, 1 / (sine * sine) - value)


@digamma.bprop
def _(x, out, dout):
    return (mul(dout, trigamma(x)),)


@op(method="erfinv", primitive="Erfinv", dtypes=FLOATING, promote="float", elementwise=True)
def erfinv(input: Tensor):
    """Return the inverse of the error function (`mindspore.ops.erfinv`).

    Args:
        input: Tensor of any shape; floating; integers and bool are converted to float32.

    Returns:
        Tensor of the shape of `input`; infinities at -1 and 1, NaN outside.

    Raises:
        TypeError: complex elements.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.erfinv(ms.Tensor([0.0, 0.5]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  4.76936281e-01])
    """
    # Winitzki's approximation (2008), then steps of Halley's method, each of which triples the
    # digits. Beyond 1/2 they solve erfc(y) = 1 - |x|, whose right side is exact.
    a = abs(input)
    edge = a == 1
    a = select(edge, 0, a)
    rest = 1 - a
    tail = log(rest * (1 + a))
    base = 4.330746750799873 + tail * 0.5
    y = sqrt(sqrt(base * base - tail * 6.802721088435374) - base)
    outer = a > 0.5
    for _ in range(3 if input.dtype is float64 else 2):
        error = select(outer, rest - erfc(y), erf(y) - a)
        newton = error * exp(y * y) * 0.886226925452758
        y = y - newton / (1 + y * newton)
    return select(edge, input * float("inf"), select(input < 0, -y, y))


@erfinv.bprop
def _(x, out, dout):
    return (mul(dout, exp(out * out) * 0.886226925452758),)
