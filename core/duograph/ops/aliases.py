"""Older and shorter names of elementwise functions, and primitive classes that take attributes when
they are made.
"""

from __future__ import annotations

from typing import Any

from ..dtype import float32
from ..tensor import Tensor
from . import combinations, comparison, elementwise, exponential, logic, powers, rounding
from .complex_numbers import angle
from .creation import cast
from .methods import tensor_method
from .primitive import Primitive
from .rectifiers import softshrink
from .reduction import reduce_all
from .shape_primitives import reshape_to

__all__ = [
    "Addcdiv",
    "Addcmul",
    "Angle",
    "ApproximateEqual",
    "ComplexAbs",
    "FloatStatus",
    "Inv",
    "IsClose",
    "LerpScalar",
    "Logit",
    "MaskedFill",
    "NanToNum",
    "bool_and",
    "bool_eq",
    "bool_not",
    "bool_or",
    "floordiv",
    "floormod",
    "pows",
    "soft_shrink",
    "tensor_add",
    "tensor_div",
    "tensor_exp",
    "tensor_expm1",
    "tensor_floordiv",
    "tensor_ge",
    "tensor_gt",
    "tensor_le",
    "tensor_lt",
    "tensor_mod",
    "tensor_mul",
    "tensor_pow",
    "tensor_sub",
]

tensor_add, tensor_sub, tensor_mul = elementwise.add, elementwise.sub, elementwise.mul
tensor_div, tensor_pow = elementwise.true_divide, powers.pow
tensor_mod = floormod = rounding.remainder
tensor_floordiv = floordiv = rounding.floor_divide
tensor_exp, tensor_expm1 = exponential.exp, exponential.expm1
tensor_lt, tensor_le = comparison.less, comparison.less_equal
tensor_gt, tensor_ge = comparison.greater, comparison.greater_equal
pows = powers.pow
bool_not, bool_and, bool_or = logic.logical_not, logic.logical_and, logic.logical_or
bool_eq = comparison.equal


@tensor_method("soft_shrink")
def soft_shrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Older name of `softshrink`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.soft_shrink(ms.Tensor([-1.0, 0.3, 2.0]))
        Tensor(shape=[3], dtype=Float32, value= [-5.00000000e-01,  0.00000000e+00,  1.50000000e+00])
    """
    return softshrink(input, lambd)


class Inv(Primitive):
    """Older name of `Reciprocal`."""

    op = elementwise.reciprocal


class ComplexAbs(Primitive):
    """The magnitude of complex numbers."""

    op = elementwise.abs


class MaskedFill(Primitive):
    """Primitive form of `ops.masked_fill`."""

    def __call__(self, input_x: Tensor, mask: Tensor, value: Any) -> Tensor:
        """`input_x` with `value` where `mask` holds."""
        return logic.masked_fill(input_x, mask, value)


class Angle(Primitive):
    """Primitive form of `ops.angle`."""

    def __call__(self, input: Tensor) -> Tensor:
        """The argument of the elements."""
        return angle(input)


class Addcmul(Primitive):
    """Primitive form of `ops.addcmul`; `value` is a tensor."""

    def __call__(self, input: Tensor, x1: Tensor, x2: Tensor, value: Any) -> Tensor:
        """``input + value * x1 * x2``."""
        return combinations.addcmul.public(input, x1, x2, value)


class Addcdiv(Primitive):
    """Primitive form of `ops.addcdiv`; `value` is a tensor."""

    def __call__(self, input: Tensor, x1: Tensor, x2: Tensor, value: Any) -> Tensor:
        """``input + value * x1 / x2``."""
        return combinations.addcdiv.public(input, x1, x2, value)


class LerpScalar(Primitive):
    """Primitive form of `ops.lerp` with a number for the weight."""

    op = combinations.lerp


class Logit(Primitive):
    """Primitive form of `ops.logit`: ``Logit(eps)(x)``; a negative `eps` means none."""

    def __init__(self, eps: float = -1.0) -> None:
        super().__init__()
        self.eps = eps

    def __call__(self, x: Tensor) -> Tensor:
        """``log(x / (1 - x))``."""
        return exponential.logit.public(x, None if self.eps < 0 else self.eps)


class IsClose(Primitive):
    """Primitive form of `ops.isclose`: ``IsClose(rtol, atol, equal_nan)(x, y)``."""

    def __init__(self, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = True) -> None:
        super().__init__()
        self.rtol, self.atol, self.equal_nan = rtol, atol, equal_nan

    def __call__(self, input: Tensor, other: Tensor) -> Tensor:
        """Whether elements are close."""
        found = comparison.isclose(input, other, self.rtol, self.atol, self.equal_nan)
        return found


class ApproximateEqual(Primitive):
    """Primitive form of `ops.approximate_equal`: ``ApproximateEqual(tolerance)(x, y)``."""

    def __init__(self, tolerance: float = 1e-05) -> None:
        super().__init__()
        self.tolerance = tolerance

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        """Whether elements differ by less than the tolerance."""
        return comparison.approximate_equal(x, y, self.tolerance)


class NanToNum(Primitive):
    """Primitive form of `ops.nan_to_num`: ``NanToNum(nan, posinf, neginf)(x)``."""

    def __init__(
        self, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
    ) -> None:
        super().__init__()
        self.nan, self.posinf, self.neginf = nan, posinf, neginf

    def __call__(self, x: Tensor) -> Tensor:
        """`x` with numbers in place of NaN and the infinities."""
        return rounding.nan_to_num.public(x, self.nan, self.posinf, self.neginf)


class FloatStatus(Primitive):
    """Whether any element is NaN or infinite: one element, float32, 1 when so, else 0."""

    def __call__(self, x: Tensor) -> Tensor:
        """The status of `x`, of shape (1,)."""
        good = reduce_all(comparison.isfinite(x), tuple(range(x.ndim)), False)
        return reshape_to(cast(logic.logical_not(good), float32), (1,))
