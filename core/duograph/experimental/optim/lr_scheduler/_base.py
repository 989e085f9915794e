"""The base class of all schedules of learning rates, and functions that they share.

The other modules of the package derive from `LRScheduler`. Users import the package, not its
modules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from .... import ops
from ....call_errors import explain_methods
from ....dtype import float32
from ....errors import ArgumentError, ArgumentValueError, MissingRateError
from ....nn import _check
from ....parameter import Parameter
from ....tensor import Tensor
from ..optimizer import Optimizer

__all__ = ["LRScheduler", "MissingRateError", "int_argument", "for_groups", "scalar_parameter"]


def scalar_parameter(value: float, name: str) -> Parameter:
    return Parameter(Tensor(float(value), float32), name=name, requires_grad=False)


def int_argument(owner: str, name: str, value: object) -> int:
    """Return an argument if it is an int; otherwise raise TypeError."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ArgumentError(f"{owner}: got {name}={value!r}; wanted an int")
    return value


class LRScheduler:
    """Base class of schedules (`mindspore.experimental.optim.lr_scheduler.LRScheduler`).

    A subclass implements `get_lr()`, which returns the next rates; it reads `last_epoch`,
    `base_lrs` and `_last_lr`. The constructor calls `step()`, which sets the rates of the first
    step.

    Args:
        optimizer: `experimental.optim.Optimizer`.
        last_epoch: the number of steps that have been taken; -1 for none.

    Raises:
        TypeError: another kind of optimiser, or `last_epoch` no int.
        ValueError: `last_epoch` below -1.
        KeyError: `last_epoch` is non-negative, and a group has no ``initial_lr``.

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

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        explain_methods(cls, "__init__")

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        owner = type(self).__name__
        _check.instance(owner, "optimizer", optimizer, Optimizer)
        if int_argument(owner, "last_epoch", last_epoch) < -1:
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
        self.last_epoch = scalar_parameter(last_epoch, f"last_epoch_{owner}")
        self.step()

    def get_lr(self) -> list[Tensor]:
        """Return the learning rate of each group for step `last_epoch`; subclasses implement it."""
        raise NotImplementedError(f"{type(self).__name__}: has no get_lr")

    def _get_closed_form_lr(self) -> list[Tensor]:
        """Return the rates of step `last_epoch`, computed from the initial rates.

        `step(epoch)` calls it. Subclasses with a formula override it; by default it is `get_lr()`.
        """
        return self.get_lr()

    def get_last_lr(self) -> list[Tensor]:
        """Return the learning rate of each group that the last step set, as Tensors."""
        return [rate.value() for rate in self._last_lr]

    def step(self, epoch: float | Tensor | None = None) -> bool | None:
        """Set the optimiser's rates for the next step, or for step number `epoch` if it is given.

        Returns True; a subclass that overrides the method may return None.
        """
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
        """Return the present rate of each group multiplied by a factor."""
        return [rate * factor for rate in self._last_lr]

    def _scaled_base(self, factor: Tensor | float) -> list[Tensor]:
        """Return the initial rate of each group multiplied by a factor."""
        return [rate * factor for rate in self.base_lrs]


def for_groups(
    owner: str, name: str, value: float | Tensor | Sequence[float | Tensor], optimizer: Optimizer
) -> list[Tensor]:
    """Return an argument, a number or a list with one number per group, as one Tensor per group."""
    count = len(optimizer.param_groups)
    if isinstance(value, (list, tuple)):
        if len(value) != count:
            raise ArgumentValueError(
                f"{owner}: got {len(value)} values for {name}; wanted one for each of the "
                f"{count} groups"
            )
        return [Tensor(float(v), float32) for v in value]
    return [Tensor(float(cast("float", value)), float32)] * count
