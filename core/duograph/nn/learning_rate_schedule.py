"""Learning rate schedules: Cells that map the number of a step to a learning rate.

Optimisers call them. The functions in `dynamic_lr` have the same formulas and return lists.
"""

from __future__ import annotations

import math

from .. import ops
from ..errors import ArgumentValueError
from ..tensor import Tensor
from . import _check
from .cell import Cell

__all__ = [
    "LearningRateSchedule",
    "ExponentialDecayLR",
    "NaturalExpDecayLR",
    "InverseDecayLR",
    "CosineDecayLR",
    "PolynomialDecayLR",
    "WarmUpLR",
]


class LearningRateSchedule(Cell):
    """Base class of schedules: `construct(global_step)` returns the rate of a step
    (`mindspore.nn.learning_rate_schedule`).

    Examples:
        >>> import duograph as ms
        >>> from duograph import nn, ops
        >>> class Halving(nn.learning_rate_schedule.LearningRateSchedule):
        ...     def construct(self, global_step):
        ...         return 0.5 ** ops.cast(global_step, ms.float32)
        >>> print(Halving()(ms.Tensor(2, ms.int32)))
        0.25
    """

    def construct(self, global_step: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: has no construct(global_step)")


def _float(step: Tensor | int) -> Tensor:
    return ops.cast(step if isinstance(step, Tensor) else Tensor(step), "float32")


class _Decay(LearningRateSchedule):
    """Base class of learning rates that decay with step / decay_steps.

    With `is_stair`, that ratio is rounded down.
    """

    def __init__(
        self, learning_rate: float, decay_rate: float, decay_steps: int, is_stair: bool = False
    ) -> None:
        super().__init__()
        owner = type(self).__name__
        self.learning_rate = _check.in_range(
            owner, "learning_rate", learning_rate, 0, open_low=True
        )
        self.decay_rate = _check.in_range(owner, "decay_rate", decay_rate, 0, open_low=True)
        self.decay_steps = _check.positive_int(owner, "decay_steps", decay_steps)
        self.is_stair = _check.boolean(owner, "is_stair", is_stair)

    def _progress(self, step: Tensor) -> Tensor:
        """Return ``step / decay_steps`` as a float Tensor, rounded down with `is_stair`."""
        part = _float(step) / self.decay_steps
        return ops.floor(part) if self.is_stair else part


class ExponentialDecayLR(_Decay):
    """`learning_rate * decay_rate ** (step / decay_steps)` (`mindspore.nn.ExponentialDecayLR`).

    With `is_stair`, the exponent is rounded down.

    Raises:
        ValueError: an argument of 0 or less.

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.ExponentialDecayLR(0.1, 0.5, 2, True)(ms.Tensor(5, ms.int32)))
        0.025
    """

    def construct(self, global_step: Tensor) -> Tensor:
        return self.learning_rate * ops.pow(self.decay_rate, self._progress(global_step))


class NaturalExpDecayLR(_Decay):
    """Rate `learning_rate * exp(-decay_rate * step)` (`mindspore.nn.NaturalExpDecayLR`).

    With `is_stair`, the step is rounded down to a multiple of `decay_steps`.

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.NaturalExpDecayLR(0.1, 0.5, 1)(ms.Tensor(1, ms.int32)))
        0.060653068
    """

    def construct(self, global_step: Tensor) -> Tensor:
        step = _float(global_step)
        if self.is_stair:
            step = ops.floor(step / self.decay_steps) * self.decay_steps
        return self.learning_rate * ops.exp(-self.decay_rate * step)


class InverseDecayLR(_Decay):
    """`learning_rate / (1 + decay_rate * step / decay_steps)` (`mindspore.nn.InverseDecayLR`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.InverseDecayLR(0.1, 1.0, 1)(ms.Tensor(1, ms.int32)))
        0.05
    """

    def construct(self, global_step: Tensor) -> Tensor:
        return self.learning_rate / (1.0 + self.decay_rate * self._progress(global_step))


class CosineDecayLR(LearningRateSchedule):
    """From max_lr to min_lr along half a cosine over decay_steps (`mindspore.nn.CosineDecayLR`).

    Raises:
        ValueError: min_lr is below 0, or not below max_lr.

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.CosineDecayLR(0.0, 0.1, 2)(ms.Tensor(1, ms.int32)))
        0.049999997
    """

    def __init__(self, min_lr: float, max_lr: float, decay_steps: int) -> None:
        super().__init__()
        self.min_lr = _check.in_range("CosineDecayLR", "min_lr", min_lr, 0)
        self.max_lr = _check.in_range("CosineDecayLR", "max_lr", max_lr, 0, open_low=True)
        self.decay_steps = _check.positive_int("CosineDecayLR", "decay_steps", decay_steps)
        if min_lr >= max_lr:
            raise ArgumentValueError(
                f"CosineDecayLR: got min_lr={min_lr} and max_lr={max_lr}; wanted min_lr below "
                "max_lr"
            )

    def construct(self, global_step: Tensor) -> Tensor:
        step = ops.minimum(_float(global_step), float(self.decay_steps))
        half = 0.5 * (self.max_lr - self.min_lr)
        return self.min_lr + half * (1.0 + ops.cos(step * (math.pi / self.decay_steps)))


class PolynomialDecayLR(LearningRateSchedule):
    """From learning_rate to end_learning_rate by a power of the step
    (`mindspore.nn.PolynomialDecayLR`).

    The end is reached at `decay_steps`. With `update_decay_steps`, it is reached at the smallest
    multiple of `decay_steps` that is not below the step instead.

    Raises:
        ValueError: an argument out of range, or end_learning_rate not below learning_rate.

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.PolynomialDecayLR(0.1, 0.0, 2, 1.0)(ms.Tensor(1, ms.int32)))
        0.05
    """

    def __init__(
        self,
        learning_rate: float,
        end_learning_rate: float,
        decay_steps: int,
        power: float,
        update_decay_steps: bool = False,
    ) -> None:
        super().__init__()
        owner = "PolynomialDecayLR"
        self.learning_rate = _check.in_range(
            owner, "learning_rate", learning_rate, 0, open_low=True
        )
        self.end_learning_rate = _check.in_range(owner, "end_learning_rate", end_learning_rate, 0)
        if end_learning_rate >= learning_rate:
            raise ArgumentValueError(
                f"{owner}: got end_learning_rate={end_learning_rate} and "
                f"learning_rate={learning_rate}; "
                f"wanted the end below the start"
            )
        self.decay_steps = _check.positive_int(owner, "decay_steps", decay_steps)
        self.power = _check.in_range(owner, "power", power, 0, open_low=True)
        self.update_decay_steps = _check.boolean(owner, "update_decay_steps", update_decay_steps)

    def construct(self, global_step: Tensor) -> Tensor:
        step = _float(global_step)
        if self.update_decay_steps:
            length = self.decay_steps * ops.maximum(ops.ceil(step / self.decay_steps), 1.0)
        else:
            step = ops.minimum(step, float(self.decay_steps))
            length = float(self.decay_steps)
        span = self.learning_rate - self.end_learning_rate
        return self.end_learning_rate + span * ops.pow(1.0 - step / length, self.power)


class WarmUpLR(LearningRateSchedule):
    """Linear growth from 0 to learning_rate over warmup_steps (`mindspore.nn.WarmUpLR`).

    Raises:
        ValueError: learning_rate is below 0, or warmup_steps below 1.

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.WarmUpLR(0.1, 2)(ms.Tensor(1, ms.int32)))
        0.05
    """

    def __init__(self, learning_rate: float, warmup_steps: int) -> None:
        super().__init__()
        self.learning_rate = _check.in_range("WarmUpLR", "learning_rate", learning_rate, 0)
        self.warmup_steps = _check.positive_int("WarmUpLR", "warmup_steps", warmup_steps)

    def construct(self, global_step: Tensor) -> Tensor:
        step = ops.minimum(_float(global_step), float(self.warmup_steps))
        return self.learning_rate * step / self.warmup_steps
