"""Schedules of the learning rates of `experimental.optim` and `mint.optim` optimisers
(`mindspore.experimental.optim.lr_scheduler`).

`step()` computes the next rates from the present ones, so that several schedules of one optimiser
multiply; `step(epoch)` computes them from the first ones where a formula exists. Rates and the
epoch are Parameters, so that a compiled training step may contain `step()`.
"""

from __future__ import annotations

import collections
import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

from ... import ops
from ...dtype import float32
from ...errors import ArgumentError, ArgumentValueError, DuographError
from ...nn import _check
from ...parameter import Parameter
from ...tensor import Tensor
from .optimizer import Optimizer

__all__ = [
    "StepLR", "LinearLR", "LRScheduler", "ExponentialLR", "PolynomialLR", "MultiplicativeLR",
    "ConstantLR", "MultiStepLR", "LambdaLR", "SequentialLR", "ReduceLROnPlateau", "CyclicLR",
    "CosineAnnealingWarmRestarts", "CosineAnnealingLR",
]  # fmt: skip


class MissingRateError(DuographError, KeyError):
    """Error: a schedule is resumed, but a group has no ``initial_lr``."""


def _number(value: float, name: str) -> Parameter:
    return Parameter(Tensor(float(value), float32), name=name, requires_grad=False)


def _int(owner: str, name: str, value: object) -> int:
    """Return an argument if it is an int; otherwise raise TypeError."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ArgumentError(f"{owner}: got {name}={value!r}; wanted an int")
    return value


class LRScheduler:
    """Base class of schedules (`mindspore.experimental.optim.lr_scheduler.LRScheduler`).

    A subclass implements `get_lr()`, which returns the next rates; it reads `last_epoch`,
    `base_lrs` and `_last_lr`. The constructor takes the first step.

    Args:
        optimizer: `experimental.optim.Optimizer`.
        last_epoch: the number of steps that have been taken; -1 for none.

    Raises:
        TypeError: another kind of optimiser, or `last_epoch` no int.
        ValueError: `last_epoch` below -1.
        KeyError: `last_epoch` of 0 or more, and a group without ``initial_lr``.

    Examples:
        >>> import duograph as ms
        >>> from duograph.experimental import optim
        >>> class Halving(optim.lr_scheduler.LRScheduler):
        ...     def get_lr(self):
        ...         return [rate * 0.5 for rate in self._last_lr]
        >>> p = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> schedule = Halving(optim.SGD([p], 1.0))
        >>> schedule.step()
        True
        >>> schedule.get_last_lr()
        [Tensor(shape=[], dtype=Float32, value= 0.25)]
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        owner = type(self).__name__
        _check.instance(owner, "optimizer", optimizer, Optimizer)
        if _int(owner, "last_epoch", last_epoch) < -1:
            raise ArgumentValueError(f"{owner}: got last_epoch={last_epoch}; wanted -1 or more")
        for number, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", Tensor(float(group["lr"]), float32))
            elif "initial_lr" not in group:
                raise MissingRateError(
                    f"{owner}: group {number} has no initial_lr, with last_epoch={last_epoch}"
                )
        self.optimizer = optimizer
        self.base_lrs: list[Tensor] = [
            value if isinstance(value, Tensor) else Tensor(float(value), float32)
            for value in (group["initial_lr"] for group in optimizer.param_groups)
        ]
        self._last_lr: list[Parameter] = list(optimizer.lrs)
        self.groups_num = len(optimizer.param_groups)
        self.last_epoch = _number(last_epoch, f"last_epoch_{owner}")
        self.step()

    def get_lr(self) -> list[Tensor]:
        """Return the rates of the step that has begun."""
        raise NotImplementedError(f"{type(self).__name__}: has no get_lr")

    def _get_closed_form_lr(self) -> list[Tensor]:
        """Return the rates of any step, from the first ones."""
        return self.get_lr()

    def get_last_lr(self) -> list[Tensor]:
        """Return the rates of the last step as Tensors."""
        return [rate.value() for rate in self._last_lr]

    def step(self, epoch: float | Tensor | None = None) -> bool:
        """Set the rates of the next step, or of a given one; return True."""
        if epoch is None:
            self.last_epoch.set_data(self.last_epoch + 1.0)
            values = self.get_lr()
        else:
            ops.assign(self.last_epoch, epoch)
            values = self._get_closed_form_lr()
        self._set(values)
        return True

    def _set(self, values: Sequence[Tensor | float]) -> None:
        for rate, value in zip(self._last_lr, values, strict=True):
            ops.assign(rate, value)

    def _scaled(self, factor: Tensor | float) -> list[Tensor]:
        """Return the present rates, all multiplied by a factor."""
        return [rate * factor for rate in self._last_lr]

    def _scaled_base(self, factor: Tensor | float) -> list[Tensor]:
        """Return the first rates, all multiplied by a factor."""
        return [rate * factor for rate in self.base_lrs]


class StepLR(LRScheduler):
    """Multiply the rates by `gamma` every `step_size` steps
    (`mindspore.experimental.optim.lr_scheduler.StepLR`).

    Args:
        optimizer, last_epoch: as of `LRScheduler`.
        step_size: int.
        gamma: number.

    Raises:
        TypeError, ValueError, KeyError: as of `LRScheduler`, and for `step_size` and `gamma`.

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
        self.step_size = _int("StepLR", "step_size", step_size)
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
    """Change the factor of the rates linearly from `start_factor` to `end_factor`
    (`mindspore.experimental.optim.lr_scheduler.LinearLR`).

    Args:
        optimizer, last_epoch: as of `LRScheduler`.
        start_factor: in (0, 1].
        end_factor: in [0, 1].
        total_iters: int, after which the factor stays.

    Raises:
        TypeError, ValueError, KeyError: as of `LRScheduler`, and for a factor out of range.

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
        self.total_iters = _int(owner, "total_iters", total_iters)
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
    """Multiply the rates by `gamma` in every step
    (`mindspore.experimental.optim.lr_scheduler.ExponentialLR`).

    Args:
        optimizer, last_epoch: as of `LRScheduler`.
        gamma: number.

    Raises:
        TypeError, ValueError, KeyError: as of `LRScheduler`.

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
    """Let the rates fall to zero as ``(1 - step / total_iters) ** power``
    (`mindspore.experimental.optim.lr_scheduler.PolynomialLR`).

    Args:
        optimizer, last_epoch: as of `LRScheduler`.
        total_iters: int.
        power: number, 0 or more.

    Raises:
        TypeError, ValueError, KeyError: as of `LRScheduler`, and for a negative power.

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
        self.total_iters = _int("PolynomialLR", "total_iters", total_iters)
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
    """Base of schedules that call a function of the step for each group."""

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
    """Multiply the first rates by a function of the step
    (`mindspore.experimental.optim.lr_scheduler.LambdaLR`).

    Args:
        optimizer, last_epoch: as of `LRScheduler`.
        lr_lambda: function of the step, a 0-d float32 Tensor; or a list of one for each group.

    Raises:
        TypeError, ValueError, KeyError: as of `LRScheduler`, and for a list of another length.

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
    """Multiply the present rates by a function of the step
    (`mindspore.experimental.optim.lr_scheduler.MultiplicativeLR`).

    Args:
        optimizer, lr_lambda, last_epoch: as of `LambdaLR`.

    Raises:
        TypeError, ValueError, KeyError: as of `LambdaLR`.

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
    """Multiply the rates by `gamma` at the steps in a list
    (`mindspore.experimental.optim.lr_scheduler.MultiStepLR`).

    Args:
        optimizer, last_epoch: as of `LRScheduler`.
        milestones: list of ints; one that stands there twice counts twice.
        gamma: number.

    Raises:
        TypeError, ValueError, KeyError: as of `LRScheduler`, and for other milestones.

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
            _int("MultiStepLR", "milestones", step) for step in milestones
        )
        self.gamma = _check.real("MultiStepLR", "gamma", gamma)
        super().__init__(optimizer, last_epoch)

    def _reached(self, compare: Callable[[Any, Any], Tensor]) -> Tensor:
        """Return how many milestones the comparison with the step is true for."""
        count = ops.zeros_like(self.last_epoch.value())
        for step, times in self.milestones.items():
            count = count + compare(self.last_epoch, float(step)).astype(float32) * times
        return count

    def get_lr(self) -> list[Tensor]:
        return self._scaled(self.gamma ** self._reached(ops.equal))

    def _get_closed_form_lr(self) -> list[Tensor]:
        return self._scaled_base(self.gamma ** self._reached(ops.greater_equal))


class ConstantLR(LRScheduler):
    """Multiply the rates by `factor` until step `total_iters`
    (`mindspore.experimental.optim.lr_scheduler.ConstantLR`).

    Args:
        optimizer, last_epoch: as of `LRScheduler`.
        factor: in [0, 1].
        total_iters: int.

    Raises:
        TypeError, ValueError, KeyError: as of `LRScheduler`, and for a factor out of range.

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
        self.total_iters = _int("ConstantLR", "total_iters", total_iters)
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
    """Let the rates swing between the first ones and `eta_min` on a cosine of half period `T_max`
    (Loshchilov and Hutter, 2017; `mindspore.experimental.optim.lr_scheduler.CosineAnnealingLR`).

    Args:
        optimizer, last_epoch: as of `LRScheduler`.
        T_max: int.
        eta_min: number.

    Raises:
        TypeError, ValueError, KeyError: as of `LRScheduler`.

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
        self.T_max = _int("CosineAnnealingLR", "T_max", T_max)
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


def _for_groups(owner: str, name: str, value: Any, optimizer: Optimizer) -> list[Tensor]:
    """Return a number, or a list of one for each group, as Tensors."""
    count = len(optimizer.param_groups)
    if isinstance(value, (list, tuple)):
        if len(value) != count:
            raise ArgumentValueError(
                f"{owner}: got {len(value)} values for {name}; wanted one for each of the "
                f"{count} groups"
            )
        return [Tensor(float(v), float32) for v in value]
    return [Tensor(float(value), float32)] * count


class CyclicLR(LRScheduler):
    """Let the rates go up and down in cycles
    (Smith, 2017; `mindspore.experimental.optim.lr_scheduler.CyclicLR`).

    Args:
        optimizer, last_epoch: as of `LRScheduler`.
        base_lr: lower rate, or a list of one for each group.
        max_lr: upper rate, or a list.
        step_size_up, step_size_down: steps of the two halves of a cycle; None for equal ones.
        mode: ``"triangular"``; ``"triangular2"`` halves the height in each cycle;
            ``"exp_range"`` multiplies it by ``gamma ** step``.
        gamma: number.
        scale_fn: function that gives the factor of the height, instead of a mode.
        scale_mode: ``"cycle"`` or ``"iterations"``: what `scale_fn` is called with.

    Raises:
        TypeError, ValueError, KeyError: as of `LRScheduler`, and for another mode or length.

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
        scale_fn: Callable[[Any], Any] | None = None,
        scale_mode: str = "cycle",
        last_epoch: int = -1,
    ) -> None:
        _check.instance("CyclicLR", "optimizer", optimizer, Optimizer)
        lows = _for_groups("CyclicLR", "base_lr", base_lr, optimizer)
        self.max_lrs = _for_groups("CyclicLR", "max_lr", max_lr, optimizer)
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

    def scale_fn(self, x: Tensor) -> Any:
        """Return the factor of the height of a cycle."""
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
    """Let the rates fall on half a cosine and start again
    (Loshchilov and Hutter, 2017;
    `mindspore.experimental.optim.lr_scheduler.CosineAnnealingWarmRestarts`).

    Args:
        optimizer, last_epoch: as of `LRScheduler`.
        T_0: int, 1 or more: steps until the first restart.
        T_mult: int, 1 or more: factor of the length after each restart.
        eta_min: number, the least rate.

    Raises:
        TypeError, ValueError, KeyError: as of `LRScheduler`, and for `T_0` or `T_mult`.

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
        self.T_i = _number(T_0, "T_i")
        self.T_cur = _number(last_epoch, "T_cur")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Tensor]:
        factor = (1.0 + ops.cos(math.pi * self.T_cur / self.T_i)) / 2.0
        return [self.eta_min + (base - self.eta_min) * factor for base in self.base_lrs]

    def step(self, epoch: float | Tensor | None = None) -> bool:
        """Set the rates of the next step, or of a given one, which may be a fraction."""
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
        return True


class SequentialLR:
    """Use one schedule after another
    (`mindspore.experimental.optim.lr_scheduler.SequentialLR`).

    Its `step()` reads the step on the host, so a compiled function cannot contain it.

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
        self.last_epoch = _number(last_epoch + 1, "last_epoch_SequentialLR")
        for group, rate in zip(optimizer.param_groups, optimizer.lrs, strict=True):
            ops.assign(rate, group["initial_lr"])
        for schedule in self._schedulers:
            schedule.last_epoch.set_data(schedule.last_epoch - 1.0)
        self._schedulers[0].step()
        self._last_lr = list(optimizer.lrs)

    def step(self) -> bool:
        """Set the rates of the next step; return True."""
        self.last_epoch.set_data(self.last_epoch + 1.0)
        number = int(self.last_epoch)
        index = bisect_right(self.milestones, number)
        if index > 0 and self.milestones[index - 1] == number:
            return self._schedulers[index].step(0)
        return self._schedulers[index].step()

    def get_last_lr(self) -> list[Tensor]:
        """Return the rates of the last step as Tensors."""
        return [rate.value() for rate in self._last_lr]


class ReduceLROnPlateau:
    """Reduce the rates when a metric has stopped to improve
    (`mindspore.experimental.optim.lr_scheduler.ReduceLROnPlateau`).

    Args:
        optimizer: `experimental.optim.Optimizer`.
        mode: ``"min"`` or ``"max"``: which change of the metric is an improvement.
        factor: below 1.
        patience: how many steps without improvement are allowed.
        threshold: by how much the metric must change.
        threshold_mode: ``"rel"`` as a share of the best metric, or ``"abs"``.
        cooldown: steps after a reduction that do not count.
        min_lr: the least rate, or a list of one for each group.
        eps: smaller changes of a rate are left out.

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
        self.min_lrs = _for_groups(owner, "min_lr", min_lr, optimizer)
        self.factor, self.patience, self.threshold = factor, patience, threshold
        self.cooldown, self.eps = cooldown, eps
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.last_epoch = _number(0, f"last_epoch_{owner}")
        self.best = _number(self.mode_worse, "best")
        self.cooldown_counter = _number(0, "cooldown_counter")
        self.wait = _number(0, "wait")
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
        """Return whether steps do not count at present, as a bool Tensor."""
        return self.cooldown_counter > 0

    def step(self, metrics: float | Tensor) -> bool:
        """Take the metric of a step into account; return True."""
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
        """Return the rates of the last step as Tensors."""
        return [rate.value() for rate in self._last_lr]
