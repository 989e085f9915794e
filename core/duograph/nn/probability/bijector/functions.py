"""The bijectors: power, affine, softplus, Gumbel, and the inverse of another one.

Users call them through the functions of `Bijector`, which checks the values; the formulas here
receive floating Tensors.
"""

from __future__ import annotations

from .... import ops
from ....errors import ArgumentError
from ....tensor import Tensor
from ... import _check
from .._bijector import Bijector
from .._parameters import Value, check_positive

__all__ = ["Exp", "GumbelCDF", "Invert", "PowerTransform", "ScalarAffine", "Softplus"]


class PowerTransform(Bijector):
    """``(1 + power * x) ** (1 / power)``, ``exp(x)`` for power 0
    (`mindspore.nn.probability.bijector.PowerTransform`).

    Args:
        power: floating number, list, array or Tensor, non-negative.
        name: name used in error messages.

    Raises:
        TypeError: a power that is not floating.
        ValueError: a negative power.

    Examples:
        >>> import duograph as ms
        >>> bijector = ms.nn.probability.bijector.PowerTransform(0.5)
        >>> print(bijector.forward(ms.Tensor([2.0, 4.0])))
        [4. 9.]
        >>> print(bijector.inverse(ms.Tensor([4.0, 9.0])))
        [2. 4.]
    """

    def __init__(self, power: Value = 0.0, name: str = "PowerTransform") -> None:
        super().__init__(name=name, param={"name": name, "param_dict": {"power": power}})
        self._power = self._add_parameter(power, "power")
        check_positive("PowerTransform", "power", self._power, zero=True)

    @property
    def power(self) -> Tensor:
        """The parameter `power` of the formula."""
        return self._power

    def _powers(self, value: Tensor) -> tuple[Tensor, Tensor]:
        """Return (mask that is True where the power is 0, the power with 1 in place of 0).

        The power is cast to the dtype of `value`.
        """
        power = self.cast_param_by_value(value, self._power)
        zero = ops.equal(power, 0.0)
        return zero, ops.where(zero, ops.ones_like(power), power)

    def _forward(self, x: Tensor) -> Tensor:
        zero, power = self._powers(x)
        return ops.exp(ops.where(zero, x, ops.log1p(ops.where(zero, 0.0, x * power)) / power))

    def _inverse(self, y: Tensor) -> Tensor:
        zero, power = self._powers(y)
        log = ops.log(y)
        return ops.where(zero, log, ops.expm1(ops.where(zero, 0.0, log * power)) / power)

    def _forward_log_jacobian(self, x: Tensor) -> Tensor:
        zero, power = self._powers(x)
        steep = (1.0 / power - 1.0) * ops.log1p(ops.where(zero, 0.0, x * power))
        return ops.where(zero, x, steep)

    def _inverse_log_jacobian(self, y: Tensor) -> Tensor:
        return (self.cast_param_by_value(y, self._power) - 1.0) * ops.log(y)


class Exp(PowerTransform):
    """``exp(x)`` (`mindspore.nn.probability.bijector.Exp`).

    Examples:
        >>> import duograph as ms
        >>> bijector = ms.nn.probability.bijector.Exp()
        >>> print(bijector.forward(ms.Tensor([0.0])), bijector.inverse(ms.Tensor([1.0])))
        [1.] [0.]
    """

    def __init__(self, name: str = "Exp") -> None:
        super().__init__(name=name)

    def extend_repr(self) -> str:
        return "exp"


class ScalarAffine(Bijector):
    """``scale * x + shift`` (`mindspore.nn.probability.bijector.ScalarAffine`).

    Args:
        scale, shift: floating numbers, lists, arrays or Tensors of the same dtype.
        name: name used in error messages.

    Raises:
        TypeError: a parameter that is not floating, or two dtypes.

    Examples:
        >>> import duograph as ms
        >>> bijector = ms.nn.probability.bijector.ScalarAffine(2.0, 1.0)
        >>> print(bijector.forward(ms.Tensor([1.0, 2.0])))
        [3. 5.]
    """

    def __init__(self, scale: Value = 1.0, shift: Value = 0.0, name: str = "ScalarAffine") -> None:
        values = {"scale": scale, "shift": shift}
        super().__init__(
            is_constant_jacobian=True, name=name, param={"name": name, "param_dict": values}
        )
        self._scale = self._add_parameter(scale, "scale")
        self._shift = self._add_parameter(shift, "shift")

    @property
    def scale(self) -> Tensor:
        """The parameter `scale` of the formula."""
        return self._scale

    @property
    def shift(self) -> Tensor:
        """The parameter `shift` of the formula."""
        return self._shift

    def _forward(self, x: Tensor) -> Tensor:
        scale = self.cast_param_by_value(x, self._scale)
        return scale * x + self.cast_param_by_value(x, self._shift)

    def _inverse(self, y: Tensor) -> Tensor:
        shifted = y - self.cast_param_by_value(y, self._shift)
        return shifted / self.cast_param_by_value(y, self._scale)

    def _forward_log_jacobian(self, x: Tensor) -> Tensor:
        return ops.log(ops.abs(self.cast_param_by_value(x, self._scale)))

    def _inverse_log_jacobian(self, y: Tensor) -> Tensor:
        return -self._forward_log_jacobian(y)


class Softplus(Bijector):
    """``log(1 + exp(sharpness * x)) / sharpness`` (`mindspore.nn.probability.bijector.Softplus`).

    Args:
        sharpness: floating number, list, array or Tensor.
        name: name used in error messages.

    Raises:
        TypeError: a parameter that is not floating.

    Examples:
        >>> import duograph as ms
        >>> bijector = ms.nn.probability.bijector.Softplus(2.0)
        >>> print(bijector.inverse(bijector.forward(ms.Tensor([1.0, 3.0]))))
        [1. 3.]
    """

    def __init__(self, sharpness: Value = 1.0, name: str = "Softplus") -> None:
        super().__init__(name=name, param={"name": name, "param_dict": {"sharpness": sharpness}})
        self._sharpness = self._add_parameter(sharpness, "sharpness")

    @property
    def sharpness(self) -> Tensor:
        """The parameter `sharpness` of the formula."""
        return self._sharpness

    def _forward(self, x: Tensor) -> Tensor:
        sharpness = self.cast_param_by_value(x, self._sharpness)
        return -ops.logsigmoid(-(sharpness * x)) / sharpness

    def _inverse(self, y: Tensor) -> Tensor:
        sharpness = self.cast_param_by_value(y, self._sharpness)
        scaled = sharpness * y
        return (scaled + ops.log(-ops.expm1(-scaled))) / sharpness

    def _forward_log_jacobian(self, x: Tensor) -> Tensor:
        return ops.logsigmoid(self.cast_param_by_value(x, self._sharpness) * x)

    def _inverse_log_jacobian(self, y: Tensor) -> Tensor:
        return -ops.log(-ops.expm1(-(self.cast_param_by_value(y, self._sharpness) * y)))


class GumbelCDF(Bijector):
    """``exp(-exp(-(x - loc) / scale))``, the distribution function of Gumbel numbers
    (`mindspore.nn.probability.bijector.GumbelCDF`).

    Args:
        loc: floating number, list, array or Tensor.
        scale: the same, above 0.
        name: name used in error messages.

    Raises:
        TypeError: a parameter that is not floating, or two dtypes.
        ValueError: a scale of 0 or less.

    Examples:
        >>> import duograph as ms
        >>> bijector = ms.nn.probability.bijector.GumbelCDF(1.0, 2.0)
        >>> print(bijector.forward(ms.Tensor([1.0])))
        [0.36787945]
    """

    def __init__(self, loc: Value = 0.0, scale: Value = 1.0, name: str = "GumbelCDF") -> None:
        values = {"loc": loc, "scale": scale}
        super().__init__(name=name, param={"name": name, "param_dict": values})
        self._loc = self._add_parameter(loc, "loc")
        self._scale = self._add_parameter(scale, "scale")
        check_positive("GumbelCDF", "scale", self._scale)

    @property
    def loc(self) -> Tensor:
        """The parameter `loc` of the formula."""
        return self._loc

    @property
    def scale(self) -> Tensor:
        """The parameter `scale` of the formula."""
        return self._scale

    def _standard(self, x: Tensor) -> Tensor:
        """Return the standardised number ``(loc - x) / scale``."""
        return (self.cast_param_by_value(x, self._loc) - x) / self.cast_param_by_value(
            x, self._scale
        )

    def _forward(self, x: Tensor) -> Tensor:
        return ops.exp(-ops.exp(self._standard(x)))

    def _inverse(self, y: Tensor) -> Tensor:
        scale = self.cast_param_by_value(y, self._scale)
        return self.cast_param_by_value(y, self._loc) - scale * ops.log(-ops.log(y))

    def _forward_log_jacobian(self, x: Tensor) -> Tensor:
        z = self._standard(x)
        return z - ops.exp(z) - ops.log(self.cast_param_by_value(x, self._scale))

    def _inverse_log_jacobian(self, y: Tensor) -> Tensor:
        return ops.log(self.cast_param_by_value(y, self._scale) / (-y * ops.log(y)))


class Invert(Bijector):
    """The inverse of another bijector (`mindspore.nn.probability.bijector.Invert`).

    Args:
        bijector: Bijector.
        name: str; "" means "Invert" and the name of the bijector.

    Raises:
        TypeError: something else than a Bijector.

    Examples:
        >>> import duograph as ms
        >>> import duograph.nn.probability.bijector as msb
        >>> print(msb.Invert(msb.Exp()).forward(ms.Tensor([1.0])))
        [0.]
    """

    def __init__(self, bijector: Bijector, name: str = "") -> None:
        if not isinstance(bijector, Bijector):
            raise ArgumentError(f"Invert: got {type(bijector).__name__}; wanted a Bijector")
        name = _check.instance("Invert", "name", name, str) or f"Invert{bijector.name}"
        super().__init__(
            is_constant_jacobian=bijector.is_constant_jacobian,
            is_injective=bijector.is_injective,
            name=name,
            dtype=bijector.dtype,
            param={"bijector": bijector, "name": name},
        )
        self._bijector = bijector
        self._batch_shape = bijector.batch_shape
        self._is_scalar_batch = bijector.is_scalar_batch

    @property
    def bijector(self) -> Bijector:
        """The bijector whose inverse this is."""
        return self._bijector

    def _forward(self, x: Tensor) -> Tensor:
        return self._bijector.inverse(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self._bijector.forward(y)

    def _forward_log_jacobian(self, x: Tensor) -> Tensor:
        return self._bijector.inverse_log_jacobian(x)

    def _inverse_log_jacobian(self, y: Tensor) -> Tensor:
        return self._bijector.forward_log_jacobian(y)

    def extend_repr(self) -> str:
        return ""
