"""The numeric tolerances of the conformance suite: one table by dtype for all devices.

The tests read it. A tolerance must not depend on the device; a case may override it with
`OpCase.tol`, which needs a reason.
"""

from __future__ import annotations

import dataclasses

from ..dtype import (
    DType,
    bfloat16,
    complex64,
    complex128,
    float16,
    float32,
    float64,
)

__all__ = ["FORWARD", "GRADIENT_FACTOR", "Tolerance", "forward_tolerance", "gradient_tolerance"]


@dataclasses.dataclass(frozen=True)
class Tolerance:
    """The error that a test allows: `|computed - expected| <= absolute + relative * |expected|`."""

    relative: float
    absolute: float

    def __str__(self) -> str:
        return f"{self.absolute:g} + {self.relative:g} * |expected|"


EXACT = Tolerance(0.0, 0.0)

# Integers and bool are exact. Floating tolerances allow for another order of summation over a few
# dozen elements, and for elementary functions accurate to 4 units in the last place.
FORWARD: dict[DType, Tolerance] = {
    float16: Tolerance(4e-3, 1e-3),
    bfloat16: Tolerance(3e-2, 8e-3),
    float32: Tolerance(1e-5, 2e-6),
    float64: Tolerance(1e-12, 1e-13),
    complex64: Tolerance(1e-5, 2e-6),
    complex128: Tolerance(1e-12, 1e-13),
}

# A gradient rounds after each op of its rule.
GRADIENT_FACTOR = 10.0

# Gradients against differences in float64: the step is 1e-6, so about ten digits of sixteen are
# lost.
DIFFERENCE = Tolerance(2e-5, 1e-6)
STEP = 1e-6


def forward_tolerance(dtype: DType, own: float | None = None) -> Tolerance:
    """Return the tolerance for an op's results of a dtype.

    `own`, if given, replaces both its relative and its absolute part.
    """
    if own is not None:
        return Tolerance(own, own)
    return FORWARD.get(dtype, EXACT)


def gradient_tolerance(dtype: DType, own: float | None = None) -> Tolerance:
    """Return the tolerance for gradients of a dtype.

    `own`, if given, replaces both its relative and its absolute part.
    """
    if own is not None:
        return Tolerance(own, own)
    base = FORWARD.get(dtype, EXACT)
    return Tolerance(base.relative * GRADIENT_FACTOR, base.absolute * GRADIENT_FACTOR)
