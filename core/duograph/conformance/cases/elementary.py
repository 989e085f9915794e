"""Elementary functions: exponentials, logarithms, powers, trigonometric and hyperbolic functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ... import ops
from ...dtype import FLOATING, bfloat16, float16, float32, float64
from ...ops.table import P
from ..case import Bad, Make, OpCase, Sample, binary, unary
from .arithmetic import SHAPES, TEXT, fused, no_complex


def powers(make: Make) -> Iterator[Sample]:
    """Positive bases; for integers small ones, and powers of both signs."""
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


def xlogy(x: Any, y: Any) -> Any:
    return np.where((x == 0) & ~np.isnan(y), 0, x * np.log(y))


def xdivy(x: Any, y: Any) -> Any:
    return np.where((x == 0) & ~np.isnan(y), 0, x / y)


CASES = [
    OpCase(P.exp2, unary(-4, 4), errors=[TEXT, no_complex(1, "exp2")]),
    OpCase(P.expm1, unary(-2, 2), errors=[TEXT]),
    OpCase(P.log, unary(0.2, 4), errors=[TEXT]),
    OpCase(P.log1p, unary(-0.5, 4), errors=[TEXT]),
    OpCase(P.log2, unary(0.2, 4), errors=[TEXT]),
    OpCase(P.log10, unary(0.2, 4), errors=[TEXT]),
    OpCase(P.sqrt, unary(0.2, 4), errors=[TEXT]),
    OpCase(P.rsqrt, unary(0.2, 4), errors=[TEXT]),
    OpCase(
        P.pow,
        powers,
        errors=[SHAPES, Bad((np.array([True]), np.array([True])), TypeError, "pow: .*bool")],
    ),
    OpCase(P.hypot, binary(0.3, 2.0), errors=[SHAPES, no_complex(2, "hypot")]),
    OpCase(P.erf, unary(-3, 3), errors=[TEXT, no_complex(1, "erf")]),
    OpCase(P.erfc, unary(-3, 3), errors=[TEXT, no_complex(1, "erfc")]),
    OpCase(P.xlogy, binary(0.3, 2.0), oracle=fused(xlogy), errors=[SHAPES, no_complex(2, "xlogy")]),
    OpCase(P.xdivy, binary(0.3, 2.0), oracle=fused(xdivy), errors=[SHAPES, no_complex(2, "xdivy")]),
    OpCase(
        P.logaddexp,
        binary(),
        oracle=fused(np.logaddexp),
        errors=[SHAPES, no_complex(2, "logaddexp")],
    ),
    OpCase(
        P.logaddexp2,
        binary(),
        oracle=fused(np.logaddexp2),
        errors=[SHAPES, no_complex(2, "logaddexp2")],
    ),
    OpCase(
        ops.logit,
        unary(0.1, 0.9),
        dtypes=FLOATING,
        covers=[P.logit],
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
        P.lgamma,
        unary(0.3, 4),
        errors=[TEXT, no_complex(1, "lgamma")],
    ),
    OpCase(
        P.digamma,
        unary(0.3, 4),
        errors=[TEXT, no_complex(1, "digamma")],
        tol={float16: 2e-2, bfloat16: 1.5e-1, float32: 1e-4, float64: 1e-7},
        why="a sum of fractions that cancel near the zero at 1.46; the series ends where float32 does",
    ),
    OpCase(
        P.erfinv,
        unary(-0.8, 0.8),
        errors=[TEXT, no_complex(1, "erfinv")],
        tol={float16: 1e-2, bfloat16: 6e-2},
        why="the oracle rounds to 16 bits after every step of Newton's method",
    ),
    OpCase(P.sin, unary(-4, 4), errors=[TEXT]),
    OpCase(P.cos, unary(-4, 4), errors=[TEXT]),
    OpCase(P.tan, unary(-1, 1), errors=[TEXT]),
    OpCase(P.asin, unary(-0.9, 0.9), errors=[TEXT]),
    OpCase(P.acos, unary(-0.9, 0.9), errors=[TEXT]),
    OpCase(P.atan, unary(-0.8, 0.8), errors=[TEXT]),
    OpCase(P.atan2, binary(0.3, 2.0), errors=[SHAPES, no_complex(2, "atan2")]),
    OpCase(P.sinh, unary(), errors=[TEXT]),
    OpCase(P.cosh, unary(), errors=[TEXT]),
    OpCase(P.tanh, unary(), errors=[TEXT], covers=[P.tanh_grad]),
    OpCase(P.asinh, unary(-0.8, 0.8), errors=[TEXT]),
    OpCase(P.acosh, unary(1.2, 3), errors=[TEXT]),
    OpCase(P.atanh, unary(-0.8, 0.8), errors=[TEXT]),
    OpCase(P.sinc, unary(0.2, 2), oracle=fused(np.sinc), errors=[TEXT, no_complex(1, "sinc")]),
    OpCase(
        P.deg2rad,
        unary(-360, 360),
        oracle=fused(np.deg2rad),
        errors=[TEXT, no_complex(1, "deg2rad")],
    ),
    OpCase(
        P.rad2deg, unary(-4, 4), oracle=fused(np.rad2deg), errors=[TEXT, no_complex(1, "rad2deg")]
    ),
]
