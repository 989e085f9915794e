"""Functions of the gamma family with several arguments: igamma, betainc, zeta, polygamma, mvlgamma.

Users and distributions call them. The host computes the primitive ops by NumPy in float64. The
derivatives by a shape parameter a are exact: a series is evaluated at a + i 1e-30, and its
imaginary part divided by 1e-30 (Squire and Trapp, 1998), so the series must accept complex numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..dtype import FLOATING, float32
from ..errors import ArgumentError, ArgumentValueError, DTypeError, ShapeError
from ..host_arrays import Array
from ..op import op
from ..op_signature import Number
from ..tensor import Tensor
from ..types import elementwise_type
from .creation import cast, cast_to
from .elementwise import mul, neg
from .exponential import exp, log, log1p
from .methods import tensor_method
from .primitive import Primitive, primitive
from .shape_primitives import broadcast_to, unbroadcast
from .special import digamma, lgamma

__all__ = ["Betainc", "igamma", "igammac", "mvlgamma", "polygamma", "zeta"]

_EPSILON = 1e-16
_TINY = 1e-300
_STEP = 1e-30
# B(2k) / (2k)! for k = 1, 2, ...: the Euler-Maclaurin terms of the zeta function
_BERNOULLI = (
    1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000,
    1 / 74724249600, -3617 / 10670622842880000, 43867 / 5109094217170944000,
    -174611 / 802857662698291200000,
)  # fmt: skip

_lgamma = np.vectorize(math.lgamma, otypes=[np.float64])


def _log_gamma(x: Array) -> Array:
    """Return log(gamma(x)) where x is positive, and 0 elsewhere.

    The result for infinity is infinity.
    """
    good = (x > 0) & np.isfinite(x)
    return np.where(good, _lgamma(np.where(good, x, 1.0)), np.where(x == np.inf, np.inf, 0.0))


def _power_series(a: Array, x: Array) -> Array:
    """Return the sum over n >= 0 of x^n / ((a + 1) ... (a + n)), element by element."""
    term = total = np.ones(np.broadcast_shapes(a.shape, x.shape), np.result_type(a, x))
    n = 0
    while term.size and np.any(np.abs(term) > _EPSILON * np.abs(total)) and n < 100_000:
        n += 1
        term = term * (x / (a + n))
        total = total + term
    return total


def _gamma_fraction(a: Array, x: Array) -> Array:
    """Return the upper incomplete gamma function of (a, x) divided by x^a exp(-x), for x > a + 1.

    It is a continued fraction, evaluated by Lentz's method.
    """
    b = x + 1 - a
    c = np.full_like(b, 1 / _TINY)
    d = 1 / b
    h = d
    for i in range(1, 10_000):
        factor = -i * (i - a)
        b = b + 2
        d = 1 / _nonzero(factor * d + b)
        c = _nonzero(b + factor / c)
        h = h * (d * c)
        if np.all(np.abs(d * c - 1) < _EPSILON * 4):
            break
    return h


def _nonzero(x: Array) -> Array:
    return np.where(np.abs(x) < _TINY, _TINY, x)


def _small_upper_ratio(a: Array, x: Array) -> Array:
    """Return Q(a, x) for a up to 0.2 and x up to 1.2, where P(a, x) = 1 - Q(a, x) may round to 1.

    P and Q are the regularised lower and upper incomplete gamma functions. By power series, Q = 1 -
    x^a / gamma(1 + a) * (1 + a * sum((-x)^n / ((a + n) n!))), n from 1 on. For Euler's constant g,
    log(gamma(1 + a)) is -g a + sum(zeta(k) (-a)^k / k), k from 2 on. The terms that do not contain
    a cancel exactly.
    """
    orders = np.arange(2.0, 25.0)
    zetas = _zeta(orders, np.ones_like(orders)).real
    log_gamma = -np.euler_gamma * a
    for k, z in zip(orders, zetas, strict=True):
        log_gamma = log_gamma + z * (-a) ** k / k
    exponent = a * np.log(x) - log_gamma
    term, total = np.ones_like(x), np.zeros_like(x)
    for n in range(1, 30):
        term = term * (-x / n)
        total = total + term / (a + n)
    return -np.expm1(exponent) - np.exp(exponent) * a * total


def _gamma_ratio(a: Array, x: Array, upper: bool) -> Array:
    """Return the regularised incomplete gamma function P(a, x), or Q = 1 - P if `upper`."""
    a, x = np.broadcast_arrays(a, x)
    good = (a > 0) & (x > 0) & np.isfinite(x) & np.isfinite(a)
    aa, xx = np.where(good, a, 1.0), np.where(good, x, 1.0)
    size = np.exp(aa * np.log(xx) - xx - _log_gamma(aa))
    far = xx > aa + 1
    near_x, far_a, far_x = np.where(far, 0.5, xx), np.where(far, aa, 0.5), np.where(far, xx, 9.0)
    lower = size / aa * _power_series(aa, near_x)
    above = size * _gamma_fraction(far_a, far_x)
    if upper:
        small = ~far & (aa <= 0.2)
        tail = _small_upper_ratio(np.where(small, aa, 0.1), np.where(small, xx, 0.5))
        out = np.where(far, above, np.where(small, tail, 1 - lower))
    else:
        out = np.where(far, 1 - above, lower)
    at_zero, at_infinity = (1.0, 0.0) if upper else (0.0, 1.0)
    out = np.where(good, out, np.nan)
    out = np.where((x == 0) & (a > 0), at_zero, out)
    return np.where((x == np.inf) & (a > 0) & (a < np.inf), at_infinity, out)


def _gamma_ratio_by_a(a: Array, x: Array) -> Array:
    """Return dP/da of the regularised incomplete gamma function P(a, x)."""
    a, x = np.broadcast_arrays(a, x)
    good = (a > 0) & (x > 0) & np.isfinite(x) & np.isfinite(a)
    aa, xx = np.where(good, a, 1.0), np.where(good, x, 1.0)
    size = np.exp(aa * np.log(xx) - xx - _log_gamma(aa + 1))
    near = size > 1e-280  # elsewhere P is 0 or 1 to the last digit
    series = _power_series(aa + 1j * _STEP, np.where(near, xx, 1.0))
    value = size * (series.real * (np.log(xx) - _digamma(aa + 1)) + series.imag / _STEP)
    return np.where(good, np.where(near, value, 0.0), np.where((x == 0) & (a > 0), 0.0, np.nan))


def _digamma(x: Array) -> Array:
    """Return the digamma function of positive numbers.

    It is an asymptotic series; the recurrence first moves arguments below 10 up by 10.
    """
    shift = np.zeros_like(x)
    for k in range(10):
        shift = shift + np.where(x < 10, 1 / (x + k), 0.0)
    z = np.where(x < 10, x + 10, x)
    r = 1 / (z * z)
    tail = r * 0.0
    for c in (-691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12):
        tail = r * (tail + c)
    return np.log(z) - 0.5 / z - tail - shift


def _zeta(s: Array, q: Array) -> Array:
    """Return the Hurwitz zeta function, the sum of (q + k)^-s for k >= 0; `s` may be complex.

    The method is Euler-Maclaurin summation. The result is infinite at poles, and NaN where the sum
    diverges.
    """
    s, q = np.broadcast_arrays(s, q)
    order = s.real
    whole = np.floor(q) == q
    integral = np.floor(order) == order
    good = (order > 1) & np.isfinite(q) & ((q > 0) | (~whole & integral))
    ss, qq = np.where(good, s, 2.0), np.where(good, q, 1.0)
    count = 10 + int(max(0.0, np.max(-np.floor(qq), initial=0.0)))
    total = np.zeros(ss.shape, ss.dtype)
    for k in range(count):  # all of these terms also where fewer suffice: they are exact
        base = qq + k
        power = np.exp(-ss * np.log(np.abs(base)))
        odd = (base < 0) & (np.mod(order, 2) == 1)
        total = total + np.where(base == 0, 0, np.where(odd, -power, power))
    w = qq + count
    power = np.exp(-ss * np.log(w))
    total = total + power * w / (ss - 1) + 0.5 * power
    rising = ss
    factor = power / w
    for k, c in enumerate(_BERNOULLI):
        total = total + c * rising * factor
        rising = rising * (ss + 2 * k + 1) * (ss + 2 * k + 2)
        factor = factor / (w * w)
    total = np.where(good, total, np.nan)
    poles = (order == 1) | ((q <= 0) & whole & (order > 1))
    return np.where(poles, np.inf, np.where((q == np.inf) & (order > 1), 0.0, total))


def _polygamma(n: Array, x: Array) -> Array:
    """Return the n-th derivative of digamma, for n of at least 1."""
    sign = np.where(np.mod(n, 2) == 1, 1.0, -1.0)
    return sign * np.exp(_log_gamma(n + 1)) * _zeta(n + 1, x).real


def _beta_fraction(a: Array, b: Array, x: Array) -> Array:
    """Return the continued fraction of the incomplete beta function, by Lentz's method.

    The function itself is the fraction times x^a (1 - x)^b / (a beta(a, b)).
    """
    c = np.ones(np.broadcast_shapes(a.shape, b.shape, x.shape), np.result_type(a, b, x))
    d = 1 / _nonzero(1 - (a + b) * x / (a + 1))
    h = d
    for m in range(1, 10_000):
        for factor in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _nonzero(1 + factor * d)
            c = _nonzero(1 + factor / c)
            h = h * (d * c)
        if np.all(np.abs(d * c - 1) < _EPSILON * 4):
            break
    return h


def _beta_parts(a: Array, b: Array, x: Array) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Transform the arguments of the incomplete beta function so that its fraction converges.

    Returns (inside, swapped, a, b, x, factor). `inside` is False where the arguments are outside
    the domain; there the other values are dummies. `swapped` is True where (b, a, 1 - x) replaces
    (a, b, x). `factor` is x^a (1 - x)^b / beta(a, b), of the original arguments.
    """
    inside = (a > 0) & (b > 0) & (x > 0) & (x < 1) & np.isfinite(a) & np.isfinite(b)
    a, b, x = np.where(inside, a, 1.0), np.where(inside, b, 1.0), np.where(inside, x, 0.5)
    swapped = x > (a + 1) / (a + b + 2)
    p, q, y = np.where(swapped, b, a), np.where(swapped, a, b), np.where(swapped, 1 - x, x)
    ends = _log_gamma(a + b) - _log_gamma(a) - _log_gamma(b)
    factor = np.exp(ends + a * np.log(x) + b * np.log1p(-x))
    return inside, swapped, p, q, y, factor


def _betainc(a: Array, b: Array, x: Array) -> Array:
    a, b, x = np.broadcast_arrays(a, b, x)
    inside, swapped, p, q, y, factor = _beta_parts(a, b, x)
    part = factor / p * _beta_fraction(p, q, y)
    out = np.where(inside, np.where(swapped, 1 - part, part), np.nan)
    known = (a > 0) & (b > 0)
    return np.where(known & (x == 0), 0.0, np.where(known & (x == 1), 1.0, out))


def _betainc_by(a: Array, b: Array, x: Array, first: bool) -> Array:
    """Return the derivative of the regularised incomplete beta function by `a` or by `b`.

    It is the derivative with respect to `a` if `first` is True.
    """
    a, b, x = np.broadcast_arrays(a, b, x)
    inside, swapped, p, q, y, factor = _beta_parts(a, b, x)
    of_p = np.logical_xor(swapped, first)
    step = 1j * _STEP
    fraction = _beta_fraction(p + np.where(of_p, step, 0), q + np.where(of_p, 0, step), y)
    aa, bb = np.where(inside, a, 1.0), np.where(inside, b, 1.0)
    xx = np.where(inside, x, 0.5)
    own = np.log(xx) - _digamma(aa) if first else np.log1p(-xx) - _digamma(bb)
    rate = _digamma(aa + bb) + own
    rate = rate - np.where(of_p, 1 / p, 0.0)
    value = factor / p * (fraction.real * rate + fraction.imag / _STEP)
    out = np.where(swapped, -value, value)
    return np.where(inside, out, np.where((x == 0) | (x == 1), 0.0, np.nan))


_FUNCTIONS: dict[str, Callable[..., Array]] = {
    "igamma": lambda a, x: _gamma_ratio(a, x, False),
    "igammac": lambda a, x: _gamma_ratio(a, x, True),
    "igamma_by_a": _gamma_ratio_by_a,
    "zeta": lambda s, q: _zeta(s, q).real,
    "zeta_by_s": lambda s, q: _zeta(s + 1j * _STEP, q).imag / _STEP,
    "polygamma": _polygamma,
    "betainc": _betainc,
    "betainc_by_a": lambda a, b, x: _betainc_by(a, b, x, True),
    "betainc_by_b": lambda a, b, x: _betainc_by(a, b, x, False),
}


def _on_host(kind: str, *arrays: Array) -> Array:
    wide = [x.astype(np.float64) for x in arrays]
    with np.errstate(all="ignore"):
        found = np.asarray(_FUNCTIONS[kind](*wide))
        for x in wide:
            found = np.where(np.isnan(x), np.nan, found)
        return found.astype(arrays[-1].dtype)


# ---- ops -----------------------------------------------------------------------------------------


@op(name="gamma_of_two", dtypes=FLOATING, promote="float", host_fallback=True)
def gamma_of_two(input: Tensor, other: Tensor, kind: str):
    """Primitive op: the function of two operands that `kind` names.

    It is "igamma" of (a, x), "igammac" of (a, x), "zeta" of (s, q) or "polygamma" of (n, x).
    """


@gamma_of_two.infer
def _(x, y, kind):
    if kind not in ("igamma", "igammac", "zeta", "polygamma"):
        raise ArgumentValueError(f"gamma_of_two: got kind={kind!r}; wanted a function of two")
    return elementwise_type(kind, x, y)


@gamma_of_two.reference
def _(x, y, kind):
    return _on_host(kind, x, y)


@op(name="gamma_derivative", dtypes=FLOATING, host_fallback=True)
def gamma_derivative(input: Tensor, other: Tensor, kind: str):
    """Primitive op: derivative of igamma(a, x) by a, or of zeta(s, q) by s.

    `kind` is "igamma_by_a" or "zeta_by_s"; `input` is a or s, `other` is x or q. The op itself has
    no derivative.
    """


@gamma_derivative.infer
def _(x, y, kind):
    if kind not in ("igamma_by_a", "zeta_by_s"):
        raise ArgumentValueError(f"gamma_derivative: got kind={kind!r}; wanted a derivative")
    return elementwise_type(kind, x, y)


@gamma_derivative.reference
def _(x, y, kind):
    return _on_host(kind, x, y)


def _by_x(a: Tensor, x: Tensor) -> Tensor:
    """Return the derivative by x of igamma, the regularised lower incomplete gamma function."""
    return exp((a - 1) * log(x) - x - lgamma(a))


@gamma_of_two.bprop
def _(x, y, out, dout, kind):
    first: Tensor
    if kind in ("igamma", "igammac"):
        sign = 1.0 if kind == "igamma" else -1.0
        first = gamma_derivative(x, y, "igamma_by_a") * sign
        second = _by_x(x, y) * sign
    elif kind == "zeta":
        first = gamma_derivative(x, y, "zeta_by_s")
        second = neg(x) * gamma_of_two(x + 1, y, "zeta")
    else:
        first, second = x * 0.0, gamma_of_two(x + 1, y, "polygamma")
    return unbroadcast(mul(dout, first), x), unbroadcast(mul(dout, second), y)


@op(name="betainc", dtypes=FLOATING, promote="float", host_fallback=True)
def betainc_by(a: Tensor, b: Tensor, x: Tensor):
    """Primitive op: the regularised incomplete beta function I(x; a, b)."""


@betainc_by.infer
def _(a, b, x):
    return elementwise_type("betainc", a, b, x)


@betainc_by.reference
def _(a, b, x):
    return _on_host("betainc", a, b, x)


@op(name="betainc_derivative", dtypes=FLOATING, host_fallback=True)
def betainc_derivative(a: Tensor, b: Tensor, x: Tensor, kind: str):
    """Primitive op: the derivative of `betainc` by a or b; the op has no derivative.

    `kind` is "betainc_by_a" or "betainc_by_b".
    """


@betainc_derivative.infer
def _(a, b, x, kind):
    if kind not in ("betainc_by_a", "betainc_by_b"):
        raise ArgumentValueError(
            f"betainc_derivative: got kind={kind!r}; wanted 'betainc_by_a' or _b"
        )
    return elementwise_type("betainc_derivative", a, b, x)


@betainc_derivative.reference
def _(a, b, x, kind):
    return _on_host(kind, a, b, x)


@betainc_by.bprop
def _(a, b, x, out, dout):
    density = exp(
        lgamma(a + b) - lgamma(a) - lgamma(b) + (a - 1) * log(x) + (b - 1) * log1p(neg(x))
    )
    return (
        unbroadcast(mul(dout, betainc_derivative(a, b, x, "betainc_by_a")), a),
        unbroadcast(mul(dout, betainc_derivative(a, b, x, "betainc_by_b")), b),
        unbroadcast(mul(dout, density), x),
    )


# ---- public functions ----------------------------------------------------------------------------


def _two(name: str, x: object, y: object, kind: str) -> Tensor:
    if not isinstance(x, Tensor) and not isinstance(y, Tensor):
        raise ArgumentError(f"{name}: got {x!r} and {y!r}; wanted at least one Tensor")
    found: Tensor = gamma_of_two(x, y, kind)
    return found


@primitive("Igamma()(a, x)", op="gamma_of_two")
@tensor_method("igamma")
def igamma(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """Return the regularised lower incomplete gamma function P(a, x) (`mindspore.ops.igamma`).

    Args:
        input: Tensor or number, the shape parameter a, positive.
        other: Tensor or number, the limit x, at least 0; the shapes broadcast.

    Returns:
        Tensor of the broadcast shape; NaN outside of the domain. Both arguments have a gradient.

    Raises:
        ValueError: shapes that do not broadcast.
        TypeError: complex elements.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.igamma(ms.Tensor([2.0, 4.0]), ms.Tensor([2.0, 3.0])).round(decimals=4))
        [0.594  0.3528]
    """
    return _two("igamma", input, other, "igamma")


@primitive("Igammac()(a, x)", op="gamma_of_two")
@tensor_method("igammac")
def igammac(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """Return the regularised upper incomplete gamma function, 1 - `igamma`
    (`mindspore.ops.igammac`).

    Args:
        input, other: the arguments of `igamma`.

    Returns:
        Tensor of the broadcast shape; NaN outside of the domain.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.igammac(ms.Tensor([2.0, 4.0]), ms.Tensor([2.0, 3.0])).round(decimals=4))
        [0.406  0.6472]
    """
    return _two("igammac", input, other, "igammac")


@primitive("Zeta()(x, q)", op="gamma_of_two")
def zeta(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """Return the Hurwitz zeta function: the sum of (k + q)^-x over k = 0, 1, ...
    (`mindspore.ops.zeta`).

    Args:
        input: Tensor or number, the exponent x, above 1.
        other: Tensor or number, the offset q; the shapes broadcast.

    Returns:
        Tensor of the broadcast shape; infinite at poles, NaN where the sum diverges.

    Raises:
        TypeError: two numbers, or complex elements.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.zeta(ms.Tensor([10.0]), 1.0).round(decimals=4))
        [1.001]
    """
    return _two("zeta", input, other, "zeta")


@primitive("Polygamma()(a, x)", op="gamma_of_two")
def polygamma(n: Tensor | int, input: Tensor) -> Tensor:
    """Return the n-th derivative of the digamma function (`mindspore.ops.polygamma`).

    Args:
        n: int, or integer Tensor of one element, at least 0.
        input: Tensor of any shape; floating; integers are converted to float32.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        ValueError: n below 0, or of several elements.
        TypeError: n is not an integer.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.polygamma(1, ms.Tensor([1.0])).round(decimals=4))
        [1.6449]
    """
    if isinstance(n, Tensor):
        if n.dtype.kind not in "iu":
            raise DTypeError(f"polygamma: got n of {n.dtype.name}; wanted an integer")
        if n.size != 1:
            raise ShapeError(f"polygamma: got n of shape {n.shape}; wanted one element")
        n = int(n.item())
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)):
        raise ArgumentError(f"polygamma: got n={n!r}; wanted an int")
    if n < 0:
        raise ArgumentValueError(f"polygamma: got n={n}; wanted 0 or more")
    if n == 0:
        return digamma(input)
    x = input if input.dtype.is_floating else cast_to(input, float32)
    order = broadcast_to(cast(Tensor(float(n)), x.dtype), x.shape)
    found: Tensor = gamma_of_two(order, x, "polygamma")
    return found


@primitive("Mvlgamma(p)(x)")
@tensor_method("mvlgamma")
def mvlgamma(input: Tensor, p: int) -> Tensor:
    """Return the logarithm of the multivariate gamma function of dimension p
    (`mindspore.ops.mvlgamma`).

    Args:
        input: Tensor of any shape, floating, above (p - 1) / 2.
        p: dimension, at least 1.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        ValueError: p below 1.
        TypeError: p is not an int.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.mvlgamma(ms.Tensor([3.0]), 2).round(decimals=4))
        [1.5502]
    """
    if isinstance(p, bool) or not isinstance(p, (int, np.integer)):
        raise ArgumentError(f"mvlgamma: got p={p!r}; wanted an int")
    if p < 1:
        raise ArgumentValueError(f"mvlgamma: got p={p}; wanted at least 1")
    out = lgamma(input)
    for k in range(1, p):
        out = out + lgamma(input - k / 2)
    return out + p * (p - 1) / 4 * math.log(math.pi)


class Betainc(Primitive):
    """Regularised incomplete beta function: `Betainc()(a, b, x)` (`mindspore.ops.Betainc`).

    Examples:
        >>> import duograph as ms
        >>> a, b, x = ms.Tensor([2.0]), ms.Tensor([3.0]), ms.Tensor([0.5])
        >>> print(ms.ops.Betainc()(a, b, x).round(decimals=4))
        [0.6875]
    """

    op = betainc_by

    def __call__(self, a: Tensor, b: Tensor, x: Tensor) -> Tensor:
        """Return the regularised incomplete beta function I(x; a, b) of equal-shaped tensors."""
        if not a.shape == b.shape == x.shape:
            raise ShapeError(
                f"Betainc: got shapes {a.shape}, {b.shape} and {x.shape}; wanted the same"
            )
        found: Tensor = betainc_by(a, b, x)
        return found
