"""FormulaDistribution, the base of distributions that are given by formulas of their parameters.

The modules of this folder derive from it, and share the functions below in their formulas. It
checks parameters once, in the constructor.
"""

from __future__ import annotations

from typing import Any, ClassVar

from .... import ops
from ....dtype import DType, float32
from ....tensor import Tensor
from ..._types import DTypeLike
from .._distribution import Distribution
from .._parameters import Value, check_positive, check_probability, checked_dtype

__all__ = ["FormulaDistribution", "dtype_of", "held", "log_beta", "softplus", "unit_numbers"]


def held(name: str, text: str) -> Any:
    """Return a property that reads the parameter `name`; `text` is its docstring."""
    return property(lambda self: getattr(self, f"_{name}"), doc=text)


def dtype_of(owner: str, dtype: DTypeLike | None, whole: bool = False) -> DType:
    """Return the dtype of a distribution's samples after checking it; None means float32.

    It must be floating or, if `whole` is True, floating or an integer dtype. `owner` is the
    distribution's name in errors.
    """
    return checked_dtype(owner, float32 if dtype is None else dtype, whole)


class FormulaDistribution(Distribution):
    """Base of distributions with formulas, which get all parameters as Tensors of the same shape.

    A subclass names the parameters that must be positive or probabilities, which the constructor
    checks.
    """

    _positive: ClassVar[tuple[str, ...]] = ()
    _probabilities: ClassVar[tuple[str, ...]] = ()
    _whole_dtypes: ClassVar[bool] = False  # samples may have an integer dtype

    def __init__(
        self, seed: int | None, dtype: DTypeLike, name: str, values: dict[str, Value]
    ) -> None:
        owner = type(self).__name__
        param = {**values, "seed": seed, "dtype": dtype, "name": name, "param_dict": values}
        super().__init__(seed, dtype_of(owner, dtype, self._whole_dtypes), name, param)
        self._hold(values)
        for key, value in zip(self.parameter_names, self.default_parameters, strict=True):
            if key in self._positive:
                check_positive(owner, key, value)
            if key in self._probabilities:
                check_probability(owner, key, value)


def unit_numbers(owner: Distribution, shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Return uniform numbers strictly between 0 and 1, of `shape` followed by the shape of `like`.

    `owner` is the distribution whose seed is used.
    """
    drawn = ops.uniform((*shape, *like.shape), 0.0, 1.0, owner._draw_seed())
    return ops.clamp(drawn, 2.0**-25, 1.0 - 2.0**-24)


def softplus(x: Tensor) -> Tensor:
    """Return ``log(1 + exp(x))`` without overflow."""
    return -ops.logsigmoid(-x)


def log_beta(a: Tensor, b: Tensor) -> Tensor:
    """Return the logarithm of the beta function B(a, b), by element."""
    return ops.lgamma(a) + ops.lgamma(b) - ops.lgamma(a + b)
