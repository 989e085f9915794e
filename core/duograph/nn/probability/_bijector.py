"""Bijector, the base class of invertible functions, and TransformedDistribution.

A transformed distribution is the distribution of a bijector's results for samples of another
distribution. The classes in `bijector/` derive from Bijector and hold formulas only. Both classes
are in this module because a bijector that is called with a distribution returns a transformed one.
"""

from __future__ import annotations

import math
from typing import Any

from ... import ops
from ...dtype import DType
from ...errors import ArgumentError, ArgumentValueError
from ...tensor import Tensor
from .. import _check
from .._types import DTypeLike
from ..cell import Cell
from ._distribution import Distribution
from ._parameters import Value, as_parameter, checked_dtype, common_shape, number_text

__all__ = ["Bijector", "TransformedDistribution"]

_FUNCTIONS = ("forward", "inverse", "forward_log_jacobian", "inverse_log_jacobian")


class Bijector(Cell):
    """Base class of invertible functions (`mindspore.nn.probability.bijector.Bijector`).

    A subclass defines ``_forward``, ``_inverse``, ``_forward_log_jacobian`` and
    ``_inverse_log_jacobian``. Called with a distribution, a bijector returns the distribution of
    the transformed numbers; called with the name of a function, such as ``"forward"``, it calls
    this function.

    Args:
        is_constant_jacobian: whether the derivative is the same everywhere.
        is_injective: whether the function takes no value twice.
        name: name used in error messages.
        dtype: floating dtype that values must have; None takes every floating dtype.
        param: dictionary of the constructor's arguments; ``param["param_dict"]`` holds the
            parameters by name.

    Raises:
        TypeError: an argument of the wrong kind.

    Examples:
        >>> import duograph as ms
        >>> from duograph.nn.probability.bijector import Bijector
        >>> class Twice(Bijector):
        ...     def __init__(self):
        ...         super().__init__(is_constant_jacobian=True, name="Twice")
        ...     def _forward(self, x):
        ...         return x * 2
        >>> print(Twice().forward(ms.Tensor([1.0, 2.0])))
        [2. 4.]
    """

    def __init__(
        self,
        is_constant_jacobian: bool = False,
        is_injective: bool = True,
        name: str | None = None,
        dtype: DTypeLike | None = None,
        param: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        owner = type(self).__name__
        self._name = _check.instance(owner, "name", owner if name is None else name, str)
        self._is_constant_jacobian = _check.boolean(
            owner, "is_constant_jacobian", is_constant_jacobian
        )
        self._is_injective = _check.boolean(owner, "is_injective", is_injective)
        self._dtype = None if dtype is None else checked_dtype(owner, dtype)
        self._parameters = {
            key: value
            for key, value in (param or {}).items()
            if key not in ("self", "param") and not key.startswith("_")
        }
        self.default_parameters: list[Tensor] = []
        self.parameter_names: list[str] = []
        self.common_dtype: DType | None = None
        values: dict[str, Value] | None = self._parameters.get("param_dict")
        self._is_scalar_batch = values is not None and all(
            isinstance(value, (int, float)) for value in values.values()
        )
        self._batch_shape: tuple[int, ...] | None = None
        if values is not None:
            made = [as_parameter(owner, key, value, None) for key, value in values.items()]
            self._batch_shape = common_shape(owner, [p.shape for p in made])

    @property
    def name(self) -> str:
        """Name of the bijector."""
        return self._name

    @property
    def dtype(self) -> DType | None:
        """Dtype that values must have; None if every floating dtype is accepted."""
        return self._dtype

    @property
    def parameters(self) -> dict[str, object]:
        """The arguments of the constructor by name.

        The parameters of the formula are in a dict of their own, under the name ``param_dict``.
        """
        return self._parameters

    @property
    def is_constant_jacobian(self) -> bool:
        """Whether the derivative is the same everywhere."""
        return self._is_constant_jacobian

    @property
    def is_injective(self) -> bool:
        """Whether the function never has the same result for two values."""
        return self._is_injective

    @property
    def batch_shape(self) -> tuple[int, ...] | None:
        """Broadcast shape of the parameters; None if the bijector has no parameters."""
        return self._batch_shape

    @property
    def is_scalar_batch(self) -> bool:
        """Whether the bijector has parameters and all are numbers."""
        return self._is_scalar_batch

    def _add_parameter(self, value: Value, name: str) -> Tensor:
        """Register a parameter of the constructor; return it as a Tensor.

        Raises:
            TypeError: the value is not of a floating dtype, or its dtype is not that of the
                bijector or of the parameters registered before.
        """
        made = as_parameter(self._name, name, value, None)
        wanted = self._dtype or self.common_dtype or made.dtype
        if not made.dtype.is_floating or made.dtype is not wanted:
            text = wanted if wanted.is_floating else "a floating dtype"
            raise ArgumentError(f"{self._name}: got {name} of {made.dtype}; wanted {text}")
        self.common_dtype = made.dtype
        self.default_parameters.append(made)
        self.parameter_names.append(name)
        return made

    def _check_value(self, value: object, name: str) -> Tensor:
        """Return `value` if it is a Tensor; `name` is its name in the error.

        Raises:
            TypeError: another type.
        """
        if not isinstance(value, Tensor):
            raise ArgumentError(
                f"{self._name}: got {type(value).__name__} for {name}; wanted a Tensor"
            )
        return value

    def _check_value_dtype(self, value: object) -> Tensor:
        """Return `value` after checking that it is a Tensor of the bijector's dtype.

        If the bijector's dtype is None, any floating dtype is accepted. Raises TypeError otherwise.
        """
        found = self._check_value(value, "the value")
        right = found.dtype.is_floating if self._dtype is None else found.dtype is self._dtype
        if not right:
            raise ArgumentError(
                f"{self._name}: got a value of {found.dtype}; wanted "
                f"{self._dtype or 'a floating dtype'}"
            )
        return found

    def cast_param_by_value(self, value: Tensor, para: Tensor) -> Tensor:
        """Return the parameter `para` cast to the dtype of `value`."""
        return para.astype(value.dtype)

    def shape_mapping(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the result for a value of this shape."""
        return common_shape(self._name, [tuple(shape), self._batch_shape or ()])

    def _apply(self, function: str, value: object, *args: Value, **kwargs: Value) -> Tensor:
        formula = getattr(self, f"_{function}", None)
        if formula is None:
            raise NotImplementedError(f"{function} is not implemented for {self._name}")
        return formula(self._check_value_dtype(value), *args, **kwargs)

    def forward(self, value: Tensor, *args: Value, **kwargs: Value) -> Tensor:
        """Return the result of the bijector for each element of `value`, a floating Tensor."""
        return self._apply("forward", value, *args, **kwargs)

    def inverse(self, value: Tensor, *args: Value, **kwargs: Value) -> Tensor:
        """Return, for each element of `value`, the number that the bijector maps to it."""
        return self._apply("inverse", value, *args, **kwargs)

    def forward_log_jacobian(self, value: Tensor, *args: Value, **kwargs: Value) -> Tensor:
        """Return the logarithm of the absolute derivative of `forward` at `value`."""
        return self._apply("forward_log_jacobian", value, *args, **kwargs)

    def inverse_log_jacobian(self, value: Tensor, *args: Value, **kwargs: Value) -> Tensor:
        """Return the logarithm of the absolute derivative of `inverse` at `value`."""
        return self._apply("inverse_log_jacobian", value, *args, **kwargs)

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Return the TransformedDistribution of a distribution, or call a function of the bijector.

        The first argument is the distribution (others are then ignored), or the name of the
        function, such as ``"forward"``, which gets the other arguments.
        """
        if args and isinstance(args[0], Distribution):
            return TransformedDistribution(self, args[0])
        return super().__call__(*args, **kwargs)

    def construct(self, name: str, *args: object, **kwargs: object) -> Tensor:
        """Call the function `name`, such as ``"forward"``, with the other arguments.

        Raises:
            ValueError: no such function.
        """
        if name not in _FUNCTIONS:
            raise ArgumentValueError(
                f"{self._name}: got {name!r}; wanted one of {', '.join(_FUNCTIONS)}"
            )
        return getattr(self, name)(*args, **kwargs)

    def extend_repr(self) -> str:
        if not self._is_scalar_batch:
            return f"batch_shape = {self._batch_shape}"
        return number_text(
            dict(zip(self.parameter_names, self.default_parameters, strict=True)), {}
        )


class TransformedDistribution(Distribution):
    """Distribution of ``bijector(x)``, where x has another distribution
    (`mindspore.nn.probability.distribution.TransformedDistribution`).

    The parameters that functions take are those of the underlying distribution.

    Args:
        bijector: Bijector; it must be increasing for `cdf` and the functions that are derived from
            `cdf`.
        distribution: Distribution of a floating dtype.
        seed, name: as for `Distribution`.

    Raises:
        TypeError: an argument of the wrong kind.
        ValueError: shapes of the parameters of the two that do not broadcast; `mean` of a bijector
            that is not linear.

    Examples:
        >>> import duograph as ms
        >>> import duograph.nn.probability.bijector as msb
        >>> import duograph.nn.probability.distribution as msd
        >>> shifted = msd.TransformedDistribution(msb.ScalarAffine(2.0, 1.0), msd.Normal(0.0, 1.0))
        >>> print(shifted.mean(), shifted.cdf(ms.Tensor([1.0])))
        1.0 [0.5]
    """

    def __init__(
        self,
        bijector: Bijector,
        distribution: Distribution,
        seed: int | None = None,
        name: str = "transformed_distribution",
    ) -> None:
        owner = type(self).__name__
        _check.instance(owner, "bijector", bijector, Bijector)
        _check.instance(owner, "distribution", distribution, Distribution)
        dtype = checked_dtype(owner, distribution.dtype)
        param = {"bijector": bijector, "distribution": distribution}
        super().__init__(seed, dtype, name, {**param, "seed": seed, "name": name})
        self._bijector = bijector
        self._distribution = distribution
        self._is_linear_transformation = bijector.is_constant_jacobian
        self._is_scalar_batch = distribution.is_scalar_batch and bijector.is_scalar_batch
        self._batch_shape = distribution.batch_shape
        self._broadcast_shape = None
        if self._batch_shape is not None and bijector.batch_shape is not None:
            shapes = (bijector.batch_shape, self._batch_shape)
            self._broadcast_shape = common_shape(owner, shapes)
        self.parameter_type = distribution.parameter_type

    @property
    def bijector(self) -> Bijector:
        """The bijector that maps the samples of the underlying distribution."""
        return self._bijector

    @property
    def distribution(self) -> Distribution:
        """The underlying distribution."""
        return self._distribution

    @property
    def is_linear_transformation(self) -> bool:
        """Whether the derivative of the bijector is the same everywhere."""
        return self._is_linear_transformation

    def _cdf(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return self._distribution.cdf(self._bijector.inverse(value), *args, **kwargs)

    def _log_prob(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        inner = self._distribution.log_prob(self._bijector.inverse(value), *args, **kwargs)
        change = self._bijector.inverse_log_jacobian(value)
        # outside the support the derivative may be infinite, which must not make NaN of -inf
        return ops.where(ops.equal(inner, -math.inf), inner, inner + change)

    def _sample(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._bijector.forward(self._distribution.sample(*args, **kwargs))

    def _mean(self, *args: Any, **kwargs: Any) -> Tensor:
        if not self._is_linear_transformation:
            raise ArgumentValueError(
                f"{self._name}.mean: got a bijector that is not linear; wanted a subclass that "
                "defines _mean"
            )
        return self._bijector.forward(self._distribution.mean(*args, **kwargs))
