"""Bessel functions of order 0 and 1: I, J, K and Y, and I and K scaled by an exponential.

Users call the functions; the gradients are Bessel functions again. The host computes all of them
in float64, whatever the dtype, from the Chebyshev tables of `bessel_tables`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ..dtype import FLOATING
from ..errors import ArgumentValueError
from ..host_arrays import Array
from ..op import op
from ..tensor import Tensor
from . import bessel_tables as tables
from .elementwise import mul, neg, sign, true_divide
from .logic import select
from .methods import tensor_method
from .primitive import primitive

__all__ = [
    "bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e", "bessel_j0", "bessel_j1", "bessel_k0",
    "bessel_k0e", "bessel_k1", "bessel_k1e", "bessel_y0", "bessel_y1", "i0",
]  # fmt: skip


def _series(t: Array, coefficients: Sequence[float]) -> Array:
    """Evaluate the Chebyshev series sum(coefficients[k] * T_k(t)) at each `t` in [-1, 1].

    `coefficients` begins with that of T_0, which is not halved. Method: Clenshaw, 1955.
    """
    later = last = np.zeros_like(t)
    for c in coefficients[:0:-1]:
        later, last = c + 2 * t * later - last, later
    return coefficients[0] + t * later - last


def _modified_first(x: Array, order: int) -> Array:
    """Return exp(-|x|) * I(x), where I is the modified Bessel function of the first kind.

    `order` is 0 or 1.
    """
    a = np.abs(x)
    near, far = (tables.I1_NEAR, tables.I1_FAR) if order else (tables.I0_NEAR, tables.I0_FAR)
    small = _series(np.minimum(a, 8) / 4 - 1, near)
    if order:
        small = small * np.minimum(a, 8)
    bound = np.maximum(a, 8)
    large = _series(16 / bound - 1, far) / np.sqrt(bound)
    out = np.where(a <= 8, small, large)
    return np.where(x < 0, -out, out) if order else out


def _modified_second(x: Array, order: int) -> Array:
    """Return exp(x) * K(x), where K is the modified Bessel function of the second kind.

    `order` is 0 or 1. The result is infinite at 0 and NaN for negative x.
    """
    a = np.clip(x, np.finfo(np.float64).tiny, 2)
    t = a * a / 2 - 1
    logarithm = np.log(a / 2) * np.exp(a) * _modified_first(a, order)
    if order:
        small = logarithm + _series(t, tables.K1_NEAR) / a
    else:
        small = _series(t, tables.K0_NEAR) - logarithm
    bound = np.maximum(x, 2)
    far = _series(4 / bound - 1, tables.K1_FAR if order else tables.K0_FAR) / np.sqrt(bound)
    out = np.where(x <= 2, small * np.exp(a), far)
    return np.where(x == 0, np.inf, np.where(x < 0, np.nan, out))


def _far(a: Array, order: int) -> tuple[Array, Array]:
    """Return the Bessel functions (J, Y) of order 0 or 1 for numbers `a` of at least 8."""
    p, q = (tables.P1_FAR, tables.Q1_FAR) if order else (tables.P0_FAR, tables.Q0_FAR)
    t = 128 / (a * a) - 1
    # cos and sin of a - pi / 4, or of a - 3 pi / 4, times sqrt(2): the difference would be rounded
    c, s = np.cos(a) + np.sin(a), np.sin(a) - np.cos(a)
    if order:
        c, s = s, -c
    size = np.sqrt(1 / (math.pi * a))
    first, second = _series(t, p), _series(t, q) / a
    return size * (first * c - second * s), size * (first * s + second * c)


def _first(x: Array, order: int) -> Array:
    a = np.abs(x)
    small = np.minimum(a, 8)
    near = _series(small * small / 32 - 1, tables.J1_NEAR if order else tables.J0_NEAR)
    if order:
        near = near * small
    with np.errstate(invalid="ignore"):
        far = np.where(np.isinf(a), 0, _far(np.maximum(a, 8), order)[0])
    out = np.where(a <= 8, near, far)
    return np.where(x < 0, -out, out) if order else out


def _second(x: Array, order: int) -> Array:
    a = np.clip(x, np.finfo(np.float64).tiny, 8)
    t = a * a / 32 - 1
    logarithm = np.log(a) * _first(a, order)
    if order:
        near = _series(t, tables.Y1_NEAR) * a + 2 / math.pi * (logarithm - 1 / a)
    else:
        near = _series(t, tables.Y0_NEAR) + 2 / math.pi * logarithm
    with np.errstate(invalid="ignore"):
        far = np.where(np.isinf(x), 0, _far(np.maximum(x, 8), order)[1])
    out = np.where(x <= 8, near, far)
    return np.where(x == 0, -np.inf, np.where(x < 0, np.nan, out))


def _grown(values: Array, x: Array) -> Array:
    """Return values * exp(|x|), multiplied by exp(|x| / 2) twice.

    `values` is a Bessel function I(x) scaled by exp(-|x|). exp(|x|) alone would overflow for some x
    where I(x) is still finite.
    """
    half = np.exp(np.abs(x) / 2)
    return np.where(np.isinf(x), np.copysign(np.inf, values), values * half * half)


_FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "i0": lambda x: _grown(_modified_first(x, 0), x),
    "i0e": lambda x: _modified_first(x, 0),
    "i1": lambda x: _grown(_modified_first(x, 1), x),
    "i1e": lambda x: _modified_first(x, 1),
    "j0": lambda x: _first(x, 0),
    "j1": lambda x: _first(x, 1),
    "k0": lambda x: _modified_second(x, 0) * np.exp(-x),
    "k0e": lambda x: _modified_second(x, 0),
    "k1": lambda x: _modified_second(x, 1) * np.exp(-x),
    "k1e": lambda x: _modified_second(x, 1),
    "y0": lambda x: _second(x, 0),
    "y1": lambda x: _second(x, 1),
}


@op(name="bessel", dtypes=FLOATING, promote="float", host_fallback=True)
def bessel(input: Tensor, kind: str):
    """Primitive op: the Bessel function that `kind` names, such as ``"i0e"``, of each element."""


@bessel.infer
def _(x, kind):
    if kind not in _FUNCTIONS:
        raise ArgumentValueError(
            f"bessel: got kind={kind!r}; wanted one of {', '.join(_FUNCTIONS)}"
        )
    return x


@bessel.reference
def _(x, kind):
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        found = np.where(np.isnan(wide), wide, _FUNCTIONS[kind](wide))
        return found.astype(x.dtype)


def _over(value: Tensor, x: Tensor) -> Tensor:
    """Return value / x, and the limit 1/2 where x is 0 (used for I1(x) / x and J1(x) / x)."""
    zero = x == 0
    return select(zero, 0.5, true_divide(value, select(zero, 1, x)))


_DERIVATIVES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "i0": lambda x, y: bessel(x, "i1"),
    "i0e": lambda x, y: bessel(x, "i1e") - sign(x) * y,
    "i1": lambda x, y: bessel(x, "i0") - _over(y, x),
    "i1e": lambda x, y: bessel(x, "i0e") - _over(y, x) - sign(x) * y,
    "j0": lambda x, y: neg(bessel(x, "j1")),
    "j1": lambda x, y: bessel(x, "j0") - _over(y, x),
    "k0": lambda x, y: neg(bessel(x, "k1")),
    "k0e": lambda x, y: y - bessel(x, "k1e"),
    "k1": lambda x, y: neg(bessel(x, "k0")) - y / x,
    "k1e": lambda x, y: y - y / x - bessel(x, "k0e"),
    "y0": lambda x, y: neg(bessel(x, "y1")),
    "y1": lambda x, y: bessel(x, "y0") - y / x,
}


@bessel.bprop
def _(x, out, dout, kind):
    return (mul(dout, _DERIVATIVES[kind](x, out)),)


@primitive("BesselI0()(x)", op="bessel")
def bessel_i0(x: Tensor) -> Tensor:
    """Return the modified Bessel function of the first kind, order 0 (`mindspore.ops.bessel_i0`).

    Args:
        x: Tensor of any shape; floating; integers and bool are converted to float32.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        TypeError: complex elements.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.bessel_i0(ms.Tensor([1.0])).round(decimals=3))
        [1.266]
    """
    return bessel(x, "i0")


@primitive("BesselI0e()(x)", op="bessel")
def bessel_i0e(x: Tensor) -> Tensor:
    """Return `bessel_i0` times exp(-|x|) (`mindspore.ops.bessel_i0e`).

    Args:
        x: Tensor of any shape; floating; integers and bool are converted to float32.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        TypeError: complex elements.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.bessel_i0e(ms.Tensor([1.0])).round(decimals=3))
        [0.466]
    """
    return bessel(x, "i0e")


@primitive("BesselI1()(x)", op="bessel")
def bessel_i1(x: Tensor) -> Tensor:
    """Return the modified Bessel function of the first kind, order 1 (`mindspore.ops.bessel_i1`).

    Args:
        x: Tensor of any shape; floating; integers and bool are converted to float32.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        TypeError: complex elements.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.bessel_i1(ms.Tensor([1.0])).round(decimals=3))
        [0.565]
    """
    return bessel(x, "i1")


@primitive("BesselI1e()(x)", op="bessel")
def bessel_i1e(x: Tensor) -> Tensor:
    """Return `bessel_i1` times exp(-|x|) (`mindspore.ops.bessel_i1e`).

    Args:
        x: Tensor of any shape; floating; integers and bool are converted to float32.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        TypeError: complex elements.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.bessel_i1e(ms.Tensor([1.0])).round(decimals=3))
        [0.208]
    """
    return bessel(x, "i1e")


@primitive("BesselJ0()(x)", op="bessel")
def bessel_j0(x: Tensor) -> Tensor:
    """Return the Bessel function of the first kind, order 0 (`mindspore.ops.bessel_j0`).

    Args:
        x: Tensor of any shape; floating; integers and bool are converted to float32.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        TypeError: complex elements.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.bessel_j0(ms.Tensor([1.0])).round(decimals=3))
        [0.765]
    """
    return bessel(x, "j0")


@primitive("BesselJ1()(x)", op="bessel")
def bessel_j1(x: Tensor) -> Tensor:
    """Return the Bessel function of the first kind, order 1 (`mindspore.ops.bessel_j1`).

    Args:
        x: Tensor of any shape; floating; integers and bool are converted to float32.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        TypeError: complex elements.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.bessel_j1(ms.Tensor([1.0])).round(decimals=3))
        [0.44]
    """
    return bessel(x, "j1")


@primitive("BesselK0()(x)", op="bessel")
def bessel_k0(x: Tensor) -> Tensor:
    """Return the modified Bessel function of the second kind, order 0; infinite at 0, NaN below
    (`mindspore.ops.bessel_k0`).

    Args:
        x: Tensor of any shape; floating; integers and bool are converted to float32.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        TypeError: complex elements.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.bessel_k0(ms.Tensor([1.0])).round(decimals=3))
        [0.421]
    """
    return bessel(x, "k0")


@primitive("BesselK0e()(x)", op="bessel")
def bessel_k0e(x: Tensor) -> Tensor:
    """Return `bessel_k0` times exp(x) (`mindspore.ops.bessel_k0e`).

    Args:
        x: Tensor of any shape; floating; integers and bool are converted to float32.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        TypeError: complex elements.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.bessel_k0e(ms.Tensor([1.0])).round(decimals=3))
        [1.144]
    """
    return bessel(x, "k0e")


@primitive("BesselK1()(x)", op="bessel")
def bessel_k1(x: Tensor) -> Tensor:
    """Return the modified Bessel function of the second kind, order 1; infinite at 0, NaN below
    (`mindspore.ops.bessel_k1`).

    Args:
        x: Tensor of any shape; floating; integers and bool are converted to float32.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        TypeError: complex elements.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.bessel_k1(ms.Tensor([1.0])).round(decimals=3))
        [0.602]
    """
    return bessel(x, "k1")


@primitive("BesselK1e()(x)", op="bessel")
def bessel_k1e(x: Tensor) -> Tensor:
    """Return `bessel_k1` times exp(x) (`mindspore.ops.bessel_k1e`).

    Args:
        x: Tensor of any shape; floating; integers and bool are converted to float32.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        TypeError: complex elements.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.bessel_k1e(ms.Tensor([1.0])).round(decimals=3))
        [1.636]
    """
    return bessel(x, "k1e")


@primitive("BesselY0()(x)", op="bessel")
def bessel_y0(x: Tensor) -> Tensor:
    """Return the Bessel function of the second kind, order 0; -inf at 0, NaN below
    (`mindspore.ops.bessel_y0`).

    Args:
        x: Tensor of any shape; floating; integers and bool are converted to float32.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        TypeError: complex elements.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.bessel_y0(ms.Tensor([1.0])).round(decimals=3))
        [0.088]
    """
    return bessel(x, "y0")


@primitive("BesselY1()(x)", op="bessel")
def bessel_y1(x: Tensor) -> Tensor:
    """Return the Bessel function of the second kind, order 1; -inf at 0, NaN below
    (`mindspore.ops.bessel_y1`).

    Args:
        x: Tensor of any shape; floating; integers and bool are converted to float32.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        TypeError: complex elements.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.bessel_y1(ms.Tensor([1.0])).round(decimals=3))
        [-0.781]
    """
    return bessel(x, "y1")


i0 = bessel_i0
tensor_method("i0")(i0)
