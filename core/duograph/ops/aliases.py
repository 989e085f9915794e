"""Older names of elementwise functions, and those of their Primitive classes that have arguments.

Users of MindSpore's older names call them. Each name computes exactly what the current name does.
"""

from __future__ import annotations

from ..dtype import float32
from ..tensor import Tensor
from . import (
    comparison,
    division,
    elementwise,
    exponential,
    logic,
    powers,
    reduction_functions,
    trigonometry,
)
from .creation import cast
from .methods import tensor_method
from .primitive import Primitive, respelled
from .rectifiers import softshrink
from .reduction import reduce_all
from .shape_primitives import reshape_to

__all__ = [
    "FloatStatus",
    "IsClose",
    "Logit",
    "arcsin",
    "bool_and",
    "bool_eq",
    "bool_not",
    "bool_or",
    "floor_div",
    "floor_mod",
    "floordiv",
    "floormod",
    "inv",
    "mean",
    "pows",
    "soft_shrink",
    "subtract",
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
    "truncate_div",
    "truncate_mod",
]

tensor_add, tensor_sub, tensor_mul = elementwise.add, elementwise.sub, elementwise.mul
tensor_pow = powers.pow
tensor_floordiv = floordiv = division.floor_divide
# functions whose parameters have other names in MindSpore than under the name above
tensor_div = respelled(elementwise.true_divide, "tensor_div", x="input", y="other")
tensor_mod = respelled(division.remainder, "tensor_mod", x="input", y="other")
floormod = respelled(division.remainder, "floormod", x="input", y="other")
floor_mod = respelled(division.remainder, "floor_mod", x="input", y="other")
floor_div = respelled(division.floor_divide, "floor_div", x="input", y="other")
truncate_mod = respelled(division.fmod, "truncate_mod", x="input", y="other")
truncate_div = respelled(division.truncate_div, "truncate_div", x="input", y="other")
arcsin = respelled(trigonometry.asin, "arcsin", x="input")
inv = respelled(elementwise.reciprocal, "inv", x="input")
mean = respelled(reduction_functions.mean, "mean", x="input", keep_dims="keepdims")
subtract = elementwise._tensor_sub
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


class Logit(Primitive):
    """Primitive form of `ops.logit`: ``Logit(eps)(x)``; a negative `eps` disables clamping."""

    def __init__(self, eps: float = -1.0) -> None:
        super().__init__()
        self.eps = eps

    def __call__(self, x: Tensor) -> Tensor:
        """Return ``log(x / (1 - x))``, element by element.

        If `eps` of the constructor is not negative, x is first clamped to [eps, 1 - eps].
        """
        return exponential.logit.public(x, None if self.eps < 0 else self.eps)


class IsClose(Primitive):
    """Primitive form of `ops.isclose`: ``IsClose(rtol, atol, equal_nan)(x, y)``."""

    def __init__(self, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = True) -> None:
        super().__init__()
        self.rtol, self.atol, self.equal_nan = rtol, atol, equal_nan

    def __call__(self, input: Tensor, other: Tensor) -> Tensor:
        """Return a bool tensor: True where the elements of `input` and `other` are close.

        Close means within the tolerances `rtol` and `atol` of the constructor.
        """
        found = comparison.isclose(input, other, self.rtol, self.atol, self.equal_nan)
        return found


class FloatStatus(Primitive):
    """Primitive that detects overflow: 1.0 if any element is NaN or infinite, else 0.0.

    The result has shape (1,).
    """

    def __call__(self, x: Tensor) -> Tensor:
        """Return float32 of shape (1,): 1.0 if `x` has a NaN or infinite element, else 0.0."""
        good = reduce_all(comparison.isfinite(x), tuple(range(x.ndim)), False)
        return reshape_to(cast(logic.logical_not(good), float32), (1,))
