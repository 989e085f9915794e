"""Schedules that are a formula of the step: decay, warm-up, milestones, functions of the user.

The package exports them. None of them reads a metric or restarts.
"""

from __future__ import annotations

import collections
import math
from collections.abc import Callable, Sequence
from typing import Any

from .... import ops
from ....dtype import float32
from ....errors import ArgumentValueError
from ....nn import _check
from ....tensor import Tensor
from ..optimizer import Optimizer
from ._base import LRScheduler, int_argument

__all__ = [
    "ConstantLR", "CosineAnnealingLR", "ExponentialLR", "LambdaLR", "LinearLR", "MultiStepLR",
    "MultiplicativeLR", "PolynomialLR", "StepLR",
]  # fmt: skip


class StepLR(LRScheduler):
    """Schedule that multiplies the rates by `gamma` every `step_size` steps
    (`mindspore.experimental.optim.lr_scheduler.StepLR`).

    Args:
        optimizer, last_epoch: as for `LRScheduler`.
        step_size: number of steps between two changes.
        gamma: factor of the rates.

    Raises:
        TypeError, ValueError, KeyError: as for `LRScheduler`, and for `step_size` and `gamma`.

    Examples:
        >>> import duograph as ms
        >>> from duograph.experimental import optim
        >>> p = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> schedule = optim.lr_scheduler.StepLR(optim.SGD([p], 1.0), step_size=2, gamma=0.5)
        >>> rates = []
        >>> for _ in range(5):
        ...     rates.append(float(schedule.get_last_lr()[0]))
        ...     _ = schedule.step()
        >>> rates
        [1.0, 1.0, 0.5, 0.5, 0.25]
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size = int_argument("StepLR", "step_size", step_size)
        if step_size < 1:
            raise ArgumentValueError(f"StepLR: got step_size={step_size}; wanted 1 or more")
        self.gamma = _check.real("StepLR", "gamma", gamma)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Tensor]:
        at_step = ops.logical_and(
            self.last_epoch > 0, ops.equal(self.last_epoch % self.step_size, 0)
        )
        return self._scaled(ops.where(at_step, self.gamma, 1.0))

    def _get_closed_form_lr(self) -> list[Tensor]:
        return self._scaled_base(self.gamma ** (self.last_epoch // self.step_size))


class LinearLR(LRScheduler):
    """Schedule whose factor of the rates changes linearly from `start_factor` to `end_factor`
    (`mindspore.experimental.optim.lr_scheduler.LinearLR`).

    Args:
        optimizer, last_epoch: as for `LRScheduler`.
        start_factor: first factor, in (0, 1].
        end_factor: last factor, in [0, 1].
        total_iters: number of steps after which the factor is constant.

    Raises:
        TypeError, ValueError, KeyError: as for `LRScheduler`, and for a factor out of range.

    Examples:
        >>> import duograph as ms
        >>> from duograph.experimental import optim
        >>> p = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> schedule = optim.lr_scheduler.LinearLR(optim.SGD([p], 1.0), 0.5, total_iters=4)
        >>> schedule.get_last_lr()
        [Tensor(shape=[], dtype=Float32, value= 0.5)]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        owner = "LinearLR"
        self.start_factor = _check.in_range(
            owner, "start_factor", start_factor, 0, 1, open_low=True
        )
        self.end_factor = _check.in_range(owner, "end_factor", end_factor, 0, 1)
        self.total_iters = int_argument(owner, "total_iters", total_iters)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Tensor]:
        rise = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1.0) * rise
        inside = self.last_epoch <= self.total_iters
        later = ops.where(inside, 1.0 + rise / ops.where(inside, before, 1.0), 1.0)
        return self._scaled(ops.where(self.last_epoch <= 0, self.start_factor, later))

    def _get_closed_form_lr(self) -> list[Tensor]:
        done = ops.minimum(self.last_epoch, float(self.total_iters)) / self.total_iters
        return self._scaled_base(self.start_factor + (self.end_factor - self.start_factor) * done)


class ExponentialLR(LRScheduler):
    """Schedule that multiplies the rates by `gamma` in every step
    (`mindspore.experimental.optim.lr_scheduler.ExponentialLR`).

    Args:
        optimizer, last_epoch: as for `LRScheduler`.
        gamma: factor of the rates.

    Raises:
        TypeError, ValueError, KeyError: as for `LRScheduler`.

    Examples:
        >>> import duograph as ms
        >>> from duograph.experimental import optim
        >>> p = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> schedule = optim.lr_scheduler.ExponentialLR(optim.SGD([p], 1.0), 0.5)
        >>> _ = schedule.step()
        >>> schedule.get_last_lr()
        [Tensor(shape=[], dtype=Float32, value= 0.5)]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = _check.real("ExponentialLR", "gamma", gamma)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Tensor]:
        return self._scaled(ops.where(self.last_epoch > 0, self.gamma, 1.0))

    def _get_closed_form_lr(self) -> list[Tensor]:
        return self._scaled_base(self.gamma**self.last_epoch)


class PolynomialLR(LRScheduler):
    """Schedule in which the rates fall to zero as ``(1 - step / total_iters) ** power``
    (`mindspore.experimental.optim.lr_scheduler.PolynomialLR`).

    Args:
        optimizer, last_epoch: as for `LRScheduler`.
        total_iters: number of steps until the rates are zero.
        power: exponent of the formula, non-negative.

    Raises:
        TypeError, ValueError, KeyError: as for `LRScheduler`, and for a negative power.

    Examples:
        >>> import duograph as ms
        >>> from duograph.experimental import optim
        >>> p = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> schedule = optim.lr_scheduler.PolynomialLR(optim.SGD([p], 1.0), total_iters=4)
        >>> _ = schedule.step()
        >>> schedule.get_last_lr()
        [Tensor(shape=[], dtype=Float32, value= 0.75)]
    """

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        self.total_iters = int_argument("PolynomialLR", "total_iters", total_iters)
        self.power = _check.in_range("PolynomialLR", "power", power, 0)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Tensor]:
        inside = ops.logical_and(self.last_epoch > 0, self.last_epoch <= self.total_iters)
        left = ops.where(inside, self.total_iters - self.last_epoch, 1.0)
        before = ops.where(inside, self.total_iters - self.last_epoch + 1.0, 1.0)
        return self._scaled((left / before) ** self.power)

    def _get_closed_form_lr(self) -> list[Tensor]:
        done = ops.minimum(self.last_epoch, float(self.total_iters)) / self.total_iters
        return self._scaled_base((1.0 - done) ** self.power)


_Factor = Callable[[Any], Any]


class _LambdaScheduler(LRScheduler):
    """Base of schedules that multiply rates by a user's function of the step, one per group."""

    def __init__(
        self, optimizer: Optimizer, lr_lambda: _Factor | Sequence[_Factor], last_epoch: int = -1
    ) -> None:
        owner = type(self).__name__
        _check.instance(owner, "optimizer", optimizer, Optimizer)
        count = len(optimizer.param_groups)
        if isinstance(lr_lambda, (list, tuple)):
            if len(lr_lambda) != count:
                raise ArgumentValueError(
                    f"{owner}: got {len(lr_lambda)} functions; wanted one for each of the {count} "
                    "groups"
                )
            self.lr_lambdas = list(lr_lambda)
        else:
            self.lr_lambdas = [lr_lambda] * count
        super().__init__(optimizer, last_epoch)


class LambdaLR(_LambdaScheduler):
    """Schedule that multiplies the initial rates by a function of the step
    (`mindspore.experimental.optim.lr_scheduler.LambdaLR`).

    Args:
        optimizer, last_epoch: as for `LRScheduler`.
        lr_lambda: function of the step, a 0-d float32 Tensor; or a list of one for each group.

    Raises:
        TypeError, ValueError, KeyError: as for `LRScheduler`, and for a list of another length.

    Examples:
        >>> import duograph as ms
        >>> from duograph.experimental import optim
        >>> p = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> schedule = optim.lr_scheduler.LambdaLR(optim.SGD([p], 1.0), lambda step: 0.5**step)
        >>> _ = schedule.step()
        >>> schedule.get_last_lr()
        [Tensor(shape=[], dtype=Float32, value= 0.5)]
    """

    def get_lr(self) -> list[Tensor]:
        step = self.last_epoch.value()
        return [rate * f(step) for f, rate in zip(self.lr_lambdas, self.base_lrs, strict=True)]


class MultiplicativeLR(_LambdaScheduler):
    """Schedule that multiplies the present rates by a function of the step
    (`mindspore.experimental.optim.lr_scheduler.MultiplicativeLR`).

    Args:
        optimizer, lr_lambda, last_epoch: as for `LambdaLR`.

    Raises:
        TypeError, ValueError, KeyError: as for `LambdaLR`.

    Examples:
        >>> import duograph as ms
        >>> from duograph.experimental import optim
        >>> p = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> schedule = optim.lr_scheduler.MultiplicativeLR(optim.SGD([p], 1.0), lambda step: 0.5)
        >>> _ = schedule.step()
        >>> schedule.get_last_lr()
        [Tensor(shape=[], dtype=Float32, value= 0.5)]
    """

    def get_lr(self) -> list[Tensor]:
        step = self.last_epoch.value()
        return [
            rate * ops.where(step > 0, f(step), 1.0)
            for f, rate in zip(self.lr_lambdas, self._last_lr, strict=True)
        ]


class MultiStepLR(LRScheduler):
    """Schedule that multiplies the rates by `gamma` at the steps in a list
    (`mindspore.experimental.optim.lr_scheduler.MultiStepLR`).

    Args:
        optimizer, last_epoch: as for `LRScheduler`.
        milestones: list of the numbers of these steps; a step that is listed twice counts twice.
        gamma: factor of the rates.

    Raises:
        TypeError, ValueError, KeyError: as for `LRScheduler`, and for other milestones.

    Examples:
        >>> import duograph as ms
        >>> from duograph.experimental import optim
        >>> p = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> schedule = optim.lr_scheduler.MultiStepLR(optim.SGD([p], 1.0), [1, 3], gamma=0.5)
        >>> _ = schedule.step()
        >>> schedule.get_last_lr()
        [Tensor(shape=[], dtype=Float32, value= 0.5)]
    """

    def __init__(
        self, optimizer: Optimizer, milestones: list[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        _check.instance("MultiStepLR", "milestones", milestones, list)
        self.milestones = collections.Counter(
            int_argument("MultiStepLR", "milestones", step) for step in milestones
        )
        self.gamma = _check.real("MultiStepLR", "gamma", gamma)
        super().__init__(optimizer, last_epoch)

    def _reached(self, compare: Callable[..., Tensor]) -> Tensor:
        """Return for how many milestones m ``compare(last_epoch, m)`` is true.

        A milestone that the user listed k times counts k times.
        """
        count = ops.zeros_like(self.last_epoch.value())
        for step, times in self.milestones.items():
            count = count + compare(self.last_epoch, float(step)).astype(float32) * times
        return count

    def get_lr(self) -> list[Tensor]:
        return self._scaled(self.gamma ** self._reached(ops.equal))

    def _get_closed_form_lr(self) -> list[Tensor]:
        return self._scaled_base(self.gamma ** self._reached(ops.greater_equal))


class ConstantLR(LRScheduler):
    """Schedule that multiplies the rates by `factor` until step `total_iters`
    (`mindspore.experimental.optim.lr_scheduler.ConstantLR`).

    Args:
        optimizer, last_epoch: as for `LRScheduler`.
        factor: factor of the initial rates, in [0, 1].
        total_iters: number of the step from which the rates are the initial ones.

    Raises:
        TypeError, ValueError, KeyError: as for `LRScheduler`, and for a factor out of range.

    Examples:
        >>> import duograph as ms
        >>> from duograph.experimental import optim
        >>> p = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> schedule = optim.lr_scheduler.ConstantLR(optim.SGD([p], 1.0), 0.5, total_iters=1)
        >>> schedule.get_last_lr()
        [Tensor(shape=[], dtype=Float32, value= 0.5)]
        >>> _ = schedule.step()
        >>> schedule.get_last_lr()
        [Tensor(shape=[], dtype=Float32, value= 1)]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        self.factor = _check.in_range("ConstantLR", "factor", factor, 0, 1)
        self.total_iters = int_argument("ConstantLR", "total_iters", total_iters)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Tensor]:
        at_end = ops.equal(self.last_epoch, float(self.total_iters))
        # a factor of 0 leaves rates of 0, from which only the first ones lead back
        end = 1.0 / self.factor if self.factor else 0.0
        scale = ops.where(self.last_epoch <= 0, self.factor, ops.where(at_end, end, 1.0))
        if self.factor:
            return self._scaled(scale)
        return [
            ops.where(at_end, base, rate * scale)
            for base, rate in zip(self.base_lrs, self._last_lr, strict=True)
        ]

    def _get_closed_form_lr(self) -> list[Tensor]:
        return self._scaled_base(ops.where(self.last_epoch >= self.total_iters, 1.0, self.factor))


class CosineAnnealingLR(LRScheduler):
    """Schedule in which the rates swing between the initial ones and `eta_min` on a cosine
    (Loshchilov and Hutter, 2017; `mindspore.experimental.optim.lr_scheduler.CosineAnnealingLR`).

    Args:
        optimizer, last_epoch: as for `LRScheduler`.
        T_max: number of steps in half a period of the cosine.
        eta_min: least rate.

    Raises:
        TypeError, ValueError, KeyError: as for `LRScheduler`.

    Examples:
        >>> import duograph as ms
        >>> from duograph.experimental import optim
        >>> p = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> schedule = optim.lr_scheduler.CosineAnnealingLR(optim.SGD([p], 1.0), T_max=2)
        >>> _ = schedule.step()
        >>> schedule.get_last_lr()
        [Tensor(shape=[], dtype=Float32, value= 0.5)]
    """

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max = int_argument("CosineAnnealingLR", "T_max", T_max)
        if T_max < 1:
            raise ArgumentValueError(f"CosineAnnealingLR: got T_max={T_max}; wanted 1 or more")
        self.eta_min = _check.real("CosineAnnealingLR", "eta_min", eta_min)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Tensor]:
        step = self.last_epoch.value()
        angle = math.pi / self.T_max
        turning = ops.equal((step - 1.0 - self.T_max) % (2 * self.T_max), 0)
        below = ops.where(turning, 1.0, 1.0 + ops.cos(angle * (step - 1.0)))
        ratio = (1.0 + ops.cos(angle * step)) / below
        rise = (1.0 - math.cos(angle)) / 2
        found = []
        for base, rate in zip(self.base_lrs, self._last_lr, strict=True):
            swung = ratio * (rate - self.eta_min) + self.eta_min
            moved = ops.where(turning, rate + (base - self.eta_min) * rise, swung)
            found.append(ops.where(step <= 0, rate, moved))
        return found

    def _get_closed_form_lr(self) -> list[Tensor]:
        factor = (1.0 + ops.cos(math.pi * self.last_epoch / self.T_max)) / 2.0
        return [self.eta_min + (base - self.eta_min) * factor for base in self.base_lrs]
