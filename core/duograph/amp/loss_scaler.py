"""Loss scaling for training loops that users write as functions, and the test for overflow.

User code calls `scale` on the loss, `unscale` on the gradients, and `adjust` after each step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from .. import ops
from ..autodiff.pytrees import rebuilt
from ..dtype import float32
from ..nn import _check
from ..nn.wrap.loss_scale import divided
from ..parameter import Parameter
from ..tensor import Tensor

__all__ = ["LossScaler", "StaticLossScaler", "DynamicLossScaler", "all_finite", "init_status"]

N = TypeVar("N")  # a Tensor, or nested tuples and lists of Tensors


def _mapped(value: N, function: Callable[[Tensor], Tensor]) -> N:
    """Apply a function to a Tensor, or to each Tensor in nested tuples and lists.

    Returns the results in the structure of `value`.
    """
    if isinstance(value, (tuple, list)):
        return cast("N", rebuilt(value, [_mapped(v, function) for v in value]))
    return cast("N", function(cast("Tensor", value)))


def all_finite(inputs: object) -> Tensor:
    """Return whether every element of every Tensor is finite, as a 0-d bool Tensor
    (`mindspore.amp.all_finite`).

    Args:
        inputs: Tensor, or (nested) tuple or list of Tensors.

    Examples:
        >>> import duograph as ms
        >>> print(ms.amp.all_finite((ms.Tensor([1.0, float("inf")]), ms.Tensor(2.0))))
        False
    """
    parts: list[Tensor] = []

    def collect(t: Tensor) -> Tensor:
        parts.append(ops.isfinite(t).all())
        return t

    _mapped(inputs, collect)
    if not parts:
        return Tensor(True)
    found = parts[0]
    for p in parts[1:]:
        found = ops.logical_and(found, p)
    return found


def init_status() -> Tensor:
    """Return a Tensor of zeros, the status that older MindSpore scripts pass to overflow checks
    (`mindspore.amp.init_status`).

    The checks here do not use the status.
    """
    return Tensor([0.0] * 8, float32)


class LossScaler:
    """Base class of loss scalers (`mindspore.amp.LossScaler`).

    A subclass sets the Parameter `scale_value`, by which `scale` and `unscale` multiply and divide,
    and defines `adjust`.
    """

    scale_value: Parameter

    def scale(self, inputs: N) -> N:
        """Multiply a Tensor, or nested Tensors, by the loss scale."""
        return _mapped(inputs, lambda t: t * ops.cast(self.scale_value, t.dtype))

    def unscale(self, inputs: N) -> N:
        """Divide a Tensor, or nested Tensors, by the loss scale; 16-bit floats in float32."""
        return _mapped(inputs, lambda t: divided(t, self.scale_value))

    def adjust(self, grads_finite: Tensor | bool) -> bool:
        """Adjust the loss scale after a training step.

        Returns whether the scale may have changed.
        """
        raise NotImplementedError(f"{type(self).__name__}: has no adjust(grads_finite)")


class StaticLossScaler(LossScaler):
    """A constant loss scale (`mindspore.amp.StaticLossScaler`).

    Raises:
        ValueError: the scale is 0 or less.

    Examples:
        >>> import duograph as ms
        >>> scaler = ms.amp.StaticLossScaler(4.0)
        >>> print(scaler.unscale(scaler.scale(ms.Tensor([1.5]))))
        [1.5]
    """

    def __init__(self, scale_value: float) -> None:
        value = _check.in_range("StaticLossScaler", "scale_value", scale_value, 0, open_low=True)
        self.scale_value = Parameter(
            Tensor(value, float32), name="scale_value", requires_grad=False
        )

    def adjust(self, grads_finite: Tensor | bool) -> bool:
        return False


class DynamicLossScaler(LossScaler):
    """A loss scale that shrinks when gradients are not finite and grows after finite steps
    (`mindspore.amp.DynamicLossScaler`).

    Args:
        scale_value: initial scale, above 0.
        scale_factor: factor of a change, above 0.
        scale_window: number of finite steps before the scale grows.

    Raises:
        ValueError: an argument out of range.

    Examples:
        >>> import duograph as ms
        >>> scaler = ms.amp.DynamicLossScaler(1024, 2, 100)
        >>> _ = scaler.adjust(ms.Tensor(False))
        >>> print(scaler.scale_value.asnumpy())
        512.0
    """

    def __init__(self, scale_value: float, scale_factor: int, scale_window: int) -> None:
        owner = "DynamicLossScaler"
        value = _check.in_range(owner, "scale_value", scale_value, 0, open_low=True)
        self.scale_value = Parameter(
            Tensor(value, float32), name="scale_value", requires_grad=False
        )
        self.scale_factor = _check.positive_int(owner, "scale_factor", scale_factor)
        self.scale_window = _check.positive_int(owner, "scale_window", scale_window)
        self.counter = Parameter(Tensor(0, "int32"), name="counter", requires_grad=False)

    def adjust(self, grads_finite: Tensor | bool) -> bool:
        scale = float(self.scale_value.asnumpy())
        count = int(self.counter.asnumpy())
        if bool(grads_finite):
            count += 1
            if count >= self.scale_window:
                grown = scale * self.scale_factor
                scale, count = grown if grown <= 3.4e38 else scale, 0
        else:
            scale, count = max(scale / self.scale_factor, 1.0), 0
        self.scale_value.set_data(Tensor(scale, float32))
        self.counter.set_data(Tensor(count, "int32"))
        return True
