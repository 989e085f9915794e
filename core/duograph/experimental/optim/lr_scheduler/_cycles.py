"""Schedules with a state of their own: cycles, restarts, sequences of schedules, plateaus.

The package exports them.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence

from .... import ops
from ....call_errors import explaining
from ....dtype import float32
from ....errors import ArgumentValueError
from ....nn import _check
from ....tensor import Tensor
from ..optimizer import Optimizer
from ._base import LRScheduler, for_groups, scalar_parameter

__all__ = ["CosineAnnealingWarmRestarts", "CyclicLR", "ReduceLROnPlateau", "SequentialLR"]


class CyclicLR(LRScheduler):
    """Schedule in which the rates rise and fall in cycles
    (Smith, 2017; `mindspore.experimental.optim.lr_scheduler.CyclicLR`).

    Args:
        optimizer, last_epoch: as for `LRScheduler`.
        base_lr: lower rate, or a list of one for each group.
        max_lr: upper rate, or a list.
        step_size_up, step_size_down: numbers of steps in the two halves of a cycle; None for as
            many as in the first half.
        mode: ``"triangular"``; ``"triangular2"`` halves the height in each cycle;
            ``"exp_range"`` multiplies it by ``gamma ** step``.
        gamma: base of the factor in the mode ``"exp_range"``.
        scale_fn: function that returns the factor of the height; it replaces the mode.
        scale_mode: argument of `scale_fn`: the number of the cycle (``"cycle"``) or of the step
            (``"iterations"``).

    Raises:
        TypeError, ValueError, KeyError: as for `LRScheduler`, and for another mode or length.

    Examples:
        >>> import duograph as ms
        >>> from duograph.experimental import optim
        >>> p = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> schedule = optim.lr_scheduler.CyclicLR(optim.SGD([p], 1.0), 0.5, 1.0, step_size_up=2)
        >>> _ = schedule.step()
        >>> schedule.get_last_lr()
        [Tensor(shape=[], dtype=Float32, value= 0.75)]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[Tensor], Tensor | float] | None = None,
        scale_mode: str = "cycle",
        last_epoch: int = -1,
    ) -> None:
        _check.instance("CyclicLR", "optimizer", optimizer, Optimizer)
        lows = for_groups("CyclicLR", "base_lr", base_lr, optimizer)
        self.max_lrs = for_groups("CyclicLR", "max_lr", max_lr, optimizer)
        down = step_size_up if step_size_down is None else step_size_down
        self.total_step_size = float(step_size_up + down)
        self.step_up_ratio = step_size_up / self.total_step_size
        if scale_fn is None:
            _check.one_of("CyclicLR", "mode", mode, ("triangular", "triangular2", "exp_range"))
            scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.mode, self.gamma, self.scale_mode = mode, gamma, scale_mode
        self._custom = scale_fn
        if last_epoch == -1:
            for low, rate in zip(lows, optimizer.lrs, strict=True):
                ops.assign(rate, low)
                for group in optimizer.param_groups:
                    if group["lr"] is rate:
                        group["initial_lr"] = low
        super().__init__(optimizer, last_epoch)
        self.base_lrs = lows

    def scale_fn(self, x: Tensor) -> Tensor | float:
        """Return the factor by which a cycle's amplitude is scaled.

        `x` is the number of the cycle or of the step, as `scale_mode` says.
        """
        if self._custom is not None:
            return self._custom(x)
        if self.mode == "triangular":
            return 1.0
        return 0.5 ** (x - 1.0) if self.mode == "triangular2" else self.gamma**x

    def get_lr(self) -> list[Tensor]:
        step = self.last_epoch.value()
        cycle = ops.floor(1.0 + step / self.total_step_size)
        x = 1.0 + step / self.total_step_size - cycle
        up = x / self.step_up_ratio
        height = ops.where(x <= self.step_up_ratio, up, (x - 1.0) / (self.step_up_ratio - 1.0))
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else step)
        return [
            low + (high - low) * height * scale
            for low, high in zip(self.base_lrs, self.max_lrs, strict=True)
        ]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Schedule in which the rates fall on half a cosine and start again
    (Loshchilov and Hutter, 2017;
    `mindspore.experimental.optim.lr_scheduler.CosineAnnealingWarmRestarts`).

    Args:
        optimizer, last_epoch: as for `LRScheduler`.
        T_0: int, 1 or more: steps until the first restart.
        T_mult: int, 1 or more: factor of the length after each restart.
        eta_min: number, the least rate.

    Raises:
        TypeError, ValueError, KeyError: as for `LRScheduler`, and for `T_0` or `T_mult`.

    Examples:
        >>> import duograph as ms
        >>> from duograph.experimental import optim
        >>> p = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> schedule = optim.lr_scheduler.CosineAnnealingWarmRestarts(optim.SGD([p], 1.0), 2)
        >>> _ = schedule.step()
        >>> schedule.get_last_lr()
        [Tensor(shape=[], dtype=Float32, value= 0.5)]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0,
        last_epoch: int = -1,
    ) -> None:
        owner = "CosineAnnealingWarmRestarts"
        for name, value in (("T_0", T_0), ("T_mult", T_mult)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ArgumentValueError(f"{owner}: got {name}={value!r}; wanted an int from 1 on")
        self.T_0, self.T_mult = T_0, T_mult
        self.eta_min = _check.real(owner, "eta_min", eta_min)
        self.T_i = scalar_parameter(T_0, "T_i")
        self.T_cur = scalar_parameter(last_epoch, "T_cur")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Tensor]:
        factor = (1.0 + ops.cos(math.pi * self.T_cur / self.T_i)) / 2.0
        return [self.eta_min + (base - self.eta_min) * factor for base in self.base_lrs]

    def step(self, epoch: float | Tensor | None = None) -> None:
        """Set the rates of the next step, or those of step `epoch` if it is not None.

        `epoch` may be a fraction.

        Raises:
            ValueError: `epoch` is negative.
        """
        if epoch is None:
            current = self.T_cur + 1.0
            over = current >= self.T_i
            self.T_cur.set_data(ops.where(over, current - self.T_i, current))
            self.T_i.set_data(ops.where(over, self.T_i * self.T_mult, self.T_i))
            self.last_epoch.set_data(ops.floor(self.last_epoch + 1.0))
        else:
            number = float(epoch)
            if number < 0:
                raise ArgumentValueError(
                    f"CosineAnnealingWarmRestarts.step: got epoch={number}; wanted 0 or more"
                )
            cycle, begin, length = 0, 0.0, float(self.T_0)
            if self.T_mult == 1:
                begin = number // length * length
            else:
                cycle = int(math.log(number / self.T_0 * (self.T_mult - 1) + 1, self.T_mult) + 1e-9)
                begin = self.T_0 * (self.T_mult**cycle - 1) / (self.T_mult - 1)
                length = float(self.T_0 * self.T_mult**cycle)
            ops.assign(self.T_cur, number - begin)
            ops.assign(self.T_i, length)
            ops.assign(self.last_epoch, float(math.floor(number)))
        self._set(self.get_lr())


@explaining
class SequentialLR:
    """Schedule that uses several schedules one after the other
    (`mindspore.experimental.optim.lr_scheduler.SequentialLR`).

    Its `step()` reads the number of the step on the host, so a compiled function cannot contain it.

    Args:
        optimizer: `experimental.optim.Optimizer`.
        schedulers: list of schedules of this optimiser.
        milestones: list of the steps at which the next schedule begins, one less than schedules.
        last_epoch: the number of steps that have been taken; -1 for none.

    Raises:
        ValueError: a schedule of another optimiser, or another number of milestones.

    Examples:
        >>> import duograph as ms
        >>> from duograph.experimental import optim
        >>> from duograph.experimental.optim import lr_scheduler
        >>> sgd = optim.SGD([ms.Parameter(ms.Tensor([1.0]), name="w")], 1.0)
        >>> first = lr_scheduler.ConstantLR(sgd, 0.5, total_iters=9)
        >>> schedule = lr_scheduler.SequentialLR(sgd, [first, lr_scheduler.StepLR(sgd, 2)], [1])
        >>> schedule.get_last_lr()
        [Tensor(shape=[], dtype=Float32, value= 0.5)]
        >>> _ = schedule.step()
        >>> schedule.get_last_lr()
        [Tensor(shape=[], dtype=Float32, value= 1)]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
        last_epoch: int = -1,
    ) -> None:
        for number, schedule in enumerate(schedulers):
            if schedule.optimizer is not optimizer:
                raise ArgumentValueError(
                    f"SequentialLR: got schedule {number} of another optimiser; wanted one for all"
                )
        if len(milestones) != len(schedulers) - 1:
            raise ArgumentValueError(
                f"SequentialLR: got {len(schedulers)} schedules and {len(milestones)} milestones; "
                "wanted one milestone less than schedules"
            )
        self.optimizer = optimizer
        self._schedulers, self.milestones = list(schedulers), list(milestones)
        self.last_epoch = scalar_parameter(last_epoch + 1, "last_epoch_SequentialLR")
        for group, rate in zip(optimizer.param_groups, optimizer.lrs, strict=True):
            ops.assign(rate, group["initial_lr"])
        for schedule in self._schedulers:
            schedule.last_epoch.set_data(schedule.last_epoch - 1.0)
        self._schedulers[0].step()
        self._last_lr = list(optimizer.lrs)

    def step(self) -> None:
        """Set the rates of the next step."""
        self.last_epoch.set_data(self.last_epoch + 1.0)
        number = int(self.last_epoch)
        index = bisect_right(self.milestones, number)
        if index > 0 and self.milestones[index - 1] == number:
            self._schedulers[index].step(0)
        else:
            self._schedulers[index].step()

    def get_last_lr(self) -> list[Tensor]:
        """Return the learning rate of each group that the last step set, as Tensors."""
        return [rate.value() for rate in self._last_lr]


@explaining
class ReduceLROnPlateau:
    """Schedule that reduces the rates when a metric has stopped improving
    (`mindspore.experimental.optim.lr_scheduler.ReduceLROnPlateau`).

    Args:
        optimizer: `experimental.optim.Optimizer`.
        mode: ``"min"`` or ``"max"``: which change of the metric is an improvement.
        factor: factor of the rates in a reduction, below 1.
        patience: number of steps without improvement that are allowed.
        threshold: least change of the metric that is an improvement.
        threshold_mode: whether `threshold` is a fraction of the best metric (``"rel"``) or an
            absolute number (``"abs"``).
        cooldown: number of steps after a reduction that do not count.
        min_lr: the least rate, or a list of one for each group.
        eps: least change of a rate; smaller changes are not made.

    Raises:
        TypeError: another kind of optimiser.
        ValueError: another mode, a factor of 1 or more, or a list of another length.

    Examples:
        >>> import duograph as ms
        >>> from duograph.experimental import optim
        >>> sgd = optim.SGD([ms.Parameter(ms.Tensor([1.0]), name="w")], 1.0)
        >>> schedule = optim.lr_scheduler.ReduceLROnPlateau(sgd, factor=0.5, patience=0)
        >>> for loss in (3.0, 2.0, 2.0):
        ...     _ = schedule.step(loss)
        >>> schedule.get_last_lr()
        [Tensor(shape=[], dtype=Float32, value= 0.5)]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | list[float] = 0,
        eps: float = 1e-8,
    ) -> None:
        owner = "ReduceLROnPlateau"
        if factor >= 1.0:
            raise ArgumentValueError(f"{owner}: got factor={factor}; wanted less than 1")
        _check.instance(owner, "optimizer", optimizer, Optimizer)
        self.mode = _check.one_of(owner, "mode", mode, ("min", "max"))
        self.threshold_mode = _check.one_of(owner, "threshold_mode", threshold_mode, ("rel", "abs"))
        self.optimizer = optimizer
        self.min_lrs = for_groups(owner, "min_lr", min_lr, optimizer)
        self.factor, self.patience, self.threshold = factor, patience, threshold
        self.cooldown, self.eps = cooldown, eps
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.last_epoch = scalar_parameter(0, f"last_epoch_{owner}")
        self.best = scalar_parameter(self.mode_worse, "best")
        self.cooldown_counter = scalar_parameter(0, "cooldown_counter")
        self.wait = scalar_parameter(0, "wait")
        self._last_lr = list(optimizer.lrs)

    def _is_improvement(self, current: Tensor, best: Tensor) -> Tensor:
        sign = -1.0 if self.mode == "min" else 1.0
        if self.threshold_mode == "rel":
            # before the first metric the best one is infinite, and so is its multiple
            bound = best * (1.0 + sign * self.threshold)
        else:
            bound = best + sign * self.threshold
        return current < bound if self.mode == "min" else current > bound

    def in_cooldown(self) -> Tensor:
        """Return whether the cooldown after a reduction is still running, as a bool Tensor."""
        return self.cooldown_counter > 0

    def step(self, metrics: float | Tensor) -> bool:
        """Compare a metric with the best one so far; reduce the rates if it stopped improving.

        It has stopped if there was no improvement in more than `patience` steps in a row, not
        counting the steps of the cooldown after a reduction. Returns True.
        """
        current = (metrics if isinstance(metrics, Tensor) else Tensor(float(metrics))).astype(
            float32
        )
        better = self._is_improvement(current, self.best.value())
        cooling = self.in_cooldown()
        wait = ops.where(ops.logical_or(better, cooling), 0.0, self.wait + 1.0)
        counter = ops.where(cooling, self.cooldown_counter - 1.0, self.cooldown_counter.value())
        stale = wait > self.patience
        self.last_epoch.set_data(self.last_epoch + 1.0)
        self.best.set_data(ops.where(better, current, self.best.value()))
        self.wait.set_data(ops.where(stale, 0.0, wait))
        self.cooldown_counter.set_data(ops.where(stale, float(self.cooldown), counter))
        for rate, least in zip(self._last_lr, self.min_lrs, strict=True):
            new = ops.maximum(rate * self.factor, least)
            reduce = ops.logical_and(stale, rate > new + self.eps)
            rate.set_data(ops.where(reduce, new, rate.value()))
        return True

    def get_last_lr(self) -> list[Tensor]:
        """Return the learning rate of each group that the last step set, as Tensors."""
        return [rate.value() for rate in self._last_lr]
