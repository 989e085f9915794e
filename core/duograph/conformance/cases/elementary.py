"""Conformance test cases of exponentials, logarithms, powers and trigonometric functions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ... import ops
from ...dtype import FLOATING, bfloat16, float16, float32, float64
from ...ops import exponential
from ...ops import powers as powers_ops
from ...ops.error_functions import erf, erfc
from ...ops.exponential import exp2, expm1, log, log1p, log2, log10, logaddexp, logaddexp2, logit
from ...ops.hyperbolic import acosh, asinh, atanh, cosh, sinh, tanh, tanh_grad
from ...ops.powers import hypot, rsqrt, sqrt
from ...ops.special import digamma, erfinv, lgamma, trigamma
from ...ops.trigonometry import acos, asin, atan, atan2, cos, deg2rad, rad2deg, sin, sinc, tan
from ..case import Array, Bad, Make, OpCase, Sample, binary, unary
from .arithmetic import SHAPES, TEXT, fused, no_complex


def powers(make: Make) -> Iterator[Sample]:
    """Yield test samples of a power, mostly with positive bases, some with 0 or negative bases."""
    if make.dtype.is_floating or make.dtype.is_complex:
        yield from binary(0.3, 2.0, scalar=2)(make)
        x = np.array([-2, -2, 0, 0, 3]).astype(make.dtype.np)
        yield Sample((x, np.array([2, 3, 2, 0, 0]).astype(make.dtype.np)), kind="edge", grad=False)
        return
    yield from binary(0, 3, second=(0, 3), scalar=2)(make)
    if make.dtype.kind == "i":
        x = np.array([2, 1, -1, -1, -3], make.dtype.np)
        y = np.array([-1, -2, -3, -2, 3], make.dtype.np)
        yield Sample((x, y), kind="edge", name="negative powers")


def xlogy(x: Array, y: Array) -> Array:
    return np.where((x == 0) & ~np.isnan(y), 0, x * np.log(y))


def xdivy(x: Array, y: Array) -> Array:
    return np.where((x == 0) & ~np.isnan(y), 0, x / y)


CASES = [
    OpCase(exp2, unary(-4, 4), errors=[TEXT, no_complex(1, "exp2")]),
    OpCase(expm1, unary(-2, 2), errors=[TEXT]),
    OpCase(log, unary(0.2, 4), errors=[TEXT]),
    OpCase(log1p, unary(-0.5, 4), errors=[TEXT]),
    OpCase(log2, unary(0.2, 4), errors=[TEXT]),
    OpCase(log10, unary(0.2, 4), errors=[TEXT]),
    OpCase(sqrt, unary(0.2, 4), errors=[TEXT]),
    OpCase(rsqrt, unary(0.2, 4), errors=[TEXT]),
    OpCase(
        powers_ops.pow,
        powers,
        errors=[SHAPES, Bad((np.array([True]), np.array([True])), TypeError, "pow: .*bool")],
    ),
    OpCase(hypot, binary(0.3, 2.0), errors=[SHAPES, no_complex(2, "hypot")]),
    OpCase(erf, unary(-3, 3), errors=[TEXT, no_complex(1, "erf")]),
    OpCase(erfc, unary(-3, 3), errors=[TEXT, no_complex(1, "erfc")]),
    OpCase(
        exponential.xlogy,
        binary(0.3, 2.0),
        oracle=fused(xlogy),
        errors=[SHAPES, no_complex(2, "xlogy")],
    ),
    OpCase(
        exponential.xdivy,
        binary(0.3, 2.0),
        oracle=fused(xdivy),
        errors=[SHAPES, no_complex(2, "xdivy")],
    ),
    OpCase(
        logaddexp,
        binary(),
        oracle=fused(np.logaddexp),
        errors=[SHAPES, no_complex(2, "logaddexp")],
    ),
    OpCase(
        logaddexp2,
        binary(),
        oracle=fused(np.logaddexp2),
        errors=[SHAPES, no_complex(2, "logaddexp2")],
    ),
    OpCase(
        ops.logit,
        unary(0.1, 0.9),
        dtypes=FLOATING,
        covers=[logit],
        oracle=fused(lambda x: np.log(x / (1 - x))),
        errors=[no_complex(1, "logit")],
    ),
    OpCase(
        ops.float_power,
        binary(0.3, 2.0, scalar=2),
        dtypes=(float32, float64),
        grad=False,
        oracle=lambda x, y: np.float_power(x, y),
        errors=[SHAPES],
    ),
    OpCase(
        ops.ldexp,
        binary(scalar=None),
        dtypes=(float32, float64),
        errors=[SHAPES],
        oracle=fused(lambda x, y: x * np.exp2(y)),
    ),
    OpCase(
        lgamma,
        unary(0.3, 4),
        errors=[TEXT, no_complex(1, "lgamma")],
    ),
    OpCase(
        digamma,
        unary(0.3, 4),
        errors=[TEXT, no_complex(1, "digamma")],
        tol={float16: 2e-2, bfloat16: 1.5e-1, float32: 1e-5, float64: 1e-13},
        why="the oracle rounds to 16 bits after every step, and terms cancel",
    ),
    OpCase(
        trigamma,
        unary(0.3, 4),
        errors=[TEXT],
        tol={float16: 2e-2, bfloat16: 1.5e-1},
        why="the oracle rounds to 16 bits after every step",
    ),
    OpCase(
        erfinv,
        unary(-0.8, 0.8),
        errors=[TEXT, no_complex(1, "erfinv")],
        tol={float16: 1e-2, bfloat16: 6e-2},
        why="the oracle rounds to 16 bits after every step of Newton's method",
    ),
    OpCase(sin, unary(-4, 4), errors=[TEXT]),
    OpCase(cos, unary(-4, 4), errors=[TEXT]),
    OpCase(tan, unary(-1, 1), errors=[TEXT]),
    OpCase(asin, unary(-0.9, 0.9), errors=[TEXT]),
    OpCase(acos, unary(-0.9, 0.9), errors=[TEXT]),
    OpCase(atan, unary(-0.8, 0.8), errors=[TEXT]),
    OpCase(atan2, binary(0.3, 2.0), errors=[SHAPES, no_complex(2, "atan2")]),
    OpCase(sinh, unary(), errors=[TEXT]),
    OpCase(cosh, unary(), errors=[TEXT]),
    OpCase(tanh, unary(), errors=[TEXT], covers=[tanh_grad]),
    OpCase(asinh, unary(-0.8, 0.8), errors=[TEXT]),
    OpCase(acosh, unary(1.2, 3), errors=[TEXT]),
    OpCase(atanh, unary(-0.8, 0.8), errors=[TEXT]),
    OpCase(sinc, unary(0.2, 2), oracle=fused(np.sinc), errors=[TEXT, no_complex(1, "sinc")]),
    OpCase(
        deg2rad,
        unary(-360, 360),
        oracle=fused(np.deg2rad),
        errors=[TEXT, no_complex(1, "deg2rad")],
    ),
    OpCase(
        rad2deg, unary(-4, 4), oracle=fused(np.rad2deg), errors=[TEXT, no_complex(1, "rad2deg")]
    ),
]
