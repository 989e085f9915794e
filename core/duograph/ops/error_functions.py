"""The error function erf and its complement erfc, as elementwise ops.

Users and activations call them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..dtype import FLOATING
from ..host_arrays import Array
from ..op import op
from ..tensor import Tensor
from .elementwise import abs, mul, neg, true_divide
from .exponential import exp
from .logic import select

__all__ = ["erf", "erfc"]

# Polynomials of float32 accuracy for decompositions: erf(x)/x - 1 in x^2 below 0.875, log(erfc(x))
# above, and exp(x^2) erfc(x) (1 + 2x) in (x-2)/(x+2). Kernels use the same polynomials
# (backend/codegen/floating.h).
_ERF_NEAR = [
    7.918161e-5,
    -8.035051e-4,
    5.1914393e-3,
    -2.6855474e-2,
    1.12836234e-1,
    -3.761263e-1,
    1.2837917e-1,
]
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


def _by_math(function: Callable[[float], float], x: Array) -> Array:
    """Apply a function of Python's math module to every element."""
    return np.vectorize(function, otypes=[np.float64])(x.astype(np.float64)).astype(x.dtype)


def _horner(x: Tensor, coefficients: list[float]) -> Tensor:
    """Evaluate a polynomial of `x` by Horner's rule; coefficients start with the highest power."""
    out: Any = coefficients[0]
    for c in coefficients[1:]:
        out = out * x + c
    return out


@op(method="erf", primitive="Erf", dtypes=FLOATING, promote="float")
def erf(input: Tensor):
    """The error function (`mindspore.ops.erf`).

    Args:
        input: Tensor of any shape; floating; integers and bool are converted to float32.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        TypeError: the dtype is not supported.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.erf(ms.Tensor([0.0, 1.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  8.42700779e-01])
    """


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
    """``1 - erf(x)``, accurate for large elements too (`mindspore.ops.erfc`).

    Args:
        input: Tensor of any shape; floating; integers and bool are converted to float32.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        TypeError: the dtype is not supported.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.erfc(ms.Tensor([0.0, 1.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  1.57299206e-01])
    """


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
