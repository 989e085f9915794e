"""Polynomials of `duograph.numpy`, as vectors of coefficients, the highest power first.

Users call them as `duograph.numpy.NAME`. All are made of ops, so gradients flow through them.
"""

from __future__ import annotations

import builtins

import numpy as _np

from .. import ops as _ops
from ..errors import ArgumentValueError
from ..tensor import Tensor
from .calculus import convolve
from .operands import TensorLike, as_floating, pair, promoted, tensor_of, with_dtype

__all__ = ["polyadd", "polyder", "polyint", "polymul", "polysub", "polyval"]


def _coefficients(name: str, p: TensorLike) -> Tensor:
    t = tensor_of(p)
    if t.ndim == 0:
        t = t.reshape(1)
    if t.ndim != 1:
        raise ArgumentValueError(f"{name}: got shape {t.shape}; wanted a vector of coefficients")
    return t


def _aligned(name: str, a1: TensorLike, a2: TensorLike) -> list[Tensor]:
    """Return two vectors of coefficients in the same dtype, the shorter with zeros in front."""
    both = promoted([_coefficients(name, a) for a in (a1, a2)])
    size = builtins.max(t.size for t in both)
    return [
        t if t.size == size else _ops.concat([_ops.zeros((size - t.size,), dtype=t.dtype), t], 0)
        for t in both
    ]


def polyadd(a1: TensorLike, a2: TensorLike) -> Tensor:
    """Return the sum of two polynomials.

    Args:
        a1: array-like of coefficients.
        a2: array-like of coefficients.

    Returns:
        Tensor of one axis.

    Raises:
        ValueError: an operand has several axes.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.polyadd([1, 2], [9, 5, 4]))
        [9 6 6]
    """
    x, y = _aligned("polyadd", a1, a2)
    return x + y


def polysub(a1: TensorLike, a2: TensorLike) -> Tensor:
    """Return the difference of two polynomials.

    Args:
        a1: array-like of coefficients.
        a2: array-like of coefficients.

    Returns:
        Tensor of one axis.

    Raises:
        ValueError: an operand has several axes.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.polysub([2, 10, -2], [3, 10, -4]))
        [-1  0  2]
    """
    x, y = _aligned("polysub", a1, a2)
    return x - y


def polymul(a1: TensorLike, a2: TensorLike) -> Tensor:
    """Return the product of two polynomials.

    Args:
        a1: array-like of coefficients.
        a2: array-like of coefficients.

    Returns:
        Tensor of one axis.

    Raises:
        ValueError: an operand has several axes.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.polymul([3, 1, 2], [2, 5]))
        [ 6 17  9 10]
    """
    return convolve(_coefficients("polymul", a1), _coefficients("polymul", a2))


def polyval(p: TensorLike, x: TensorLike) -> Tensor:
    """Return the values of a polynomial, by Horner's rule.

    Args:
        p: array-like of coefficients.
        x: array-like of points.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        ValueError: `p` has several axes.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.polyval([3.0, 0.0, 1.0], 5.0))
        76.0
    """
    coefficients, at = pair("polyval", _coefficients("polyval", p), x)
    out = _ops.zeros_like(at)
    for k in range(coefficients.size):
        out = out * at + coefficients[k]
    return out


def polyder(p: TensorLike, m: int = 1) -> Tensor:
    """Return the derivative of a polynomial.

    Args:
        p: array-like of coefficients.
        m: order of the derivative.

    Returns:
        Tensor of one axis.

    Raises:
        ValueError: `m` is negative, or `p` has several axes.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.polyder([1, 1, 1, 1]))
        [3 2 1]
    """
    if m < 0:
        raise ArgumentValueError(f"polyder: got m={m}; wanted at least 0")
    t = _coefficients("polyder", p)
    for _ in range(m):
        if t.size < 2:
            return t[:0]
        t = t[:-1] * Tensor(_np.arange(t.size - 1, 0, -1), t.dtype)
    return t


def polyint(p: TensorLike, m: int = 1, k: TensorLike | None = None) -> Tensor:
    """Return an integral of a polynomial.

    Args:
        p: array-like of coefficients.
        m: number of integrations.
        k: constants of integration: a number, or one for each integration; None is 0.

    Returns:
        Tensor of floats of one axis.

    Raises:
        ValueError: `m` is negative, `p` has several axes, or `k` has another size than `m`.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.polyint([2.0, 2.0]))
        [1. 2. 0.]
    """
    if m < 0:
        raise ArgumentValueError(f"polyint: got m={m}; wanted at least 0")
    t = as_floating(_coefficients("polyint", p))
    constants = with_dtype(tensor_of(0 if k is None else k).reshape(-1), t.dtype)
    if constants.size == 1 and m > 1:
        constants = _ops.broadcast_to(constants, (m,))
    if constants.size != m and m:
        raise ArgumentValueError(f"polyint: got {constants.size} constants; wanted 1 or {m}")
    for turn in range(m):
        powers = Tensor(_np.arange(t.size, 0, -1), t.dtype)
        t = _ops.concat([t / powers, constants[turn : turn + 1]], 0)
    return t
