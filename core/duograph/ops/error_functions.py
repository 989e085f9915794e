"""The error function erf and its complement erfc, as elementwise ops.

Users and activations call them. Their decompositions evaluate the same polynomials as the kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..dtype import FLOATING, float64
from ..host_arrays import Array
from ..op import op
from ..tensor import Tensor
from .elementwise import abs, mul, neg, true_divide
from .exponential import exp
from .logic import select
from .rounding import floor

__all__ = ["erf", "erfc"]

# Polynomials for decompositions, of float32 accuracy: erf(x)/x - 1 in x^2 below 0.875, log(erfc(x))
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
# Of float64 accuracy: the Taylor series of erf(x)/x - 1 in x^2 below 0.5, and the interpolation of
# the last function above at 27 Chebyshev nodes.
_ERF_NEAR_64 = [
    -1.2290555301717928e-09, 1.4807192815879218e-08, -1.6365844691234924e-07,
    1.6462114365889248e-06, -1.492565035840625e-05, 0.00012055332981789664, -0.0008548327023450853,
    0.005223977625442188, -0.026866170645131252, 0.11283791670955126, -0.37612638903183754,
    0.1283791670955126,
]  # fmt: skip
_ERFCX_64 = [
    4.752424040740216e-09, 2.911517491244454e-10, -4.515927686002671e-08, -2.644971268139972e-08,
    1.7986347916004118e-07, 2.369185588570594e-07, -2.7684409428378495e-07, -9.500039459797192e-07,
    -6.883411118543479e-07, 1.594444171146069e-06, 5.221327995736811e-06, 3.6614674104859934e-06,
    -1.3492120628345726e-05, -3.640472013912015e-05, -1.5100550146974035e-06,
    0.00015103435873054077, 0.0002063672554900935, -0.0004543400070213104, -0.001456813952819064,
    0.0012713388781666975, 0.008722653876123063, -0.008034015077164825, -0.054220000992050155,
    0.1640512800332955, -0.16603039761528926, -0.0927638265857448, 1.2769783815525286,
]  # fmt: skip


def _by_math(function: Callable[[float], float], x: Array) -> Array:
    """Apply a function of Python's math module to each element, in float64.

    The result has the dtype of `x`.
    """
    return np.vectorize(function, otypes=[np.float64])(x.astype(np.float64)).astype(x.dtype)


def _horner(x: Tensor, coefficients: list[float]) -> Tensor:
    """Evaluate a polynomial of `x` by Horner's rule; coefficients start with the highest power."""
    out: Any = coefficients[0]
    for c in coefficients[1:]:
        out = out * x + c
    return out


@op(method="erf", primitive="Erf", dtypes=FLOATING, promote="float")
def erf(input: Tensor):
    """Return the error function (`mindspore.ops.erf`).

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
    if x.dtype is float64:
        near = x + x * _horner(select(a < 0.5, x * x, 0), _ERF_NEAR_64)
        far = 1 - erfc(a)
        return select(a < 0.5, near, select(x < 0, neg(far), far))
    near = x + x * _horner(x * x, _ERF_NEAR)
    far = 1 - exp(_horner(select(a > 4, 4, a), _LOG_ERFC))
    return select(a < 0.875, near, select(x < 0, neg(far), far))


@op(method="erfc", primitive="Erfc", dtypes=FLOATING, promote="float")
def erfc(input: Tensor):
    """Return ``1 - erf(x)`` for each element x, also accurate for large elements
    (`mindspore.ops.erfc`).

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
    # exp(-a^2) from a square that is exact and a small rest; it is 0 beyond 30 in every dtype
    a = abs(x)
    b = select(a < 30, a, select(a == a, 30, a))
    high = floor(b * 32) * 0.03125
    gauss = exp(neg(high * high)) * exp((high - b) * (high + b))
    q = true_divide(b - 2, b + 2)
    tail = gauss * true_divide(_horner(q, _ERFCX_64 if x.dtype is float64 else _ERFCX), 1 + 2 * b)
    return select(x < 0, 2 - tail, tail)
