"""Functions that return learning rates as lists with one number for each step.

User code passes them to an optimiser. The Cells in `learning_rate_schedule` have the same formulas.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ..call_errors import explaining
from ..errors import ArgumentError, ArgumentValueError
from . import _check

__all__ = [
    "piecewise_constant_lr", "exponential_decay_lr", "natural_exp_decay_lr", "inverse_decay_lr",
    "cosine_decay_lr", "polynomial_decay_lr", "warmup_lr",
]  # fmt: skip


def piecewise_constant_lr(milestone: Sequence[int], learning_rates: Sequence[float]) -> list[float]:
    """Return the rate `learning_rates[i]` for each step up to step `milestone[i]`
    (`mindspore.nn.piecewise_constant_lr`).

    Raises:
        TypeError: an argument is not a list.
        ValueError: the lists differ in length, or the milestones are not increasing.

    Examples:
        >>> from duograph import nn
        >>> nn.piecewise_constant_lr([2, 3], [0.1, 0.01])
        [0.1, 0.1, 0.01]
    """
    owner = "piecewise_constant_lr"
    if not isinstance(milestone, (list, tuple)) or not isinstance(learning_rates, (list, tuple)):
        raise ArgumentError(f"{owner}: wanted two lists or tuples")
    if len(milestone) != len(learning_rates) or not milestone:
        raise ArgumentValueError(
            f"{owner}: got {len(milestone)} milestones and {len(learning_rates)} rates; "
            "wanted the same number, at least one: rate i holds until milestone i, as in "
            "piecewise_constant_lr([30, 60], [0.1, 0.01]) for 60 steps"
        )
    rates: list[float] = []
    last = 0
    for step, rate in zip(milestone, learning_rates, strict=True):
        _check.positive_int(owner, "milestone", step)
        _check.in_range(owner, "learning_rates", rate, 0)
        if step < last:
            raise ArgumentValueError(f"{owner}: got milestones {milestone}; wanted them to rise")
        rates += [rate] * (step - last)
        last = step
    return rates


def _decayed(
    owner: str,
    formula: Callable[[int], float],
    learning_rate: float,
    decay_rate: float,
    total_step: int,
    step_per_epoch: int,
    decay_epoch: int,
    is_stair: bool,
) -> list[float]:
    """Check the arguments of a decay function; return `total_step` rates, each ``formula(epoch)``.

    Step i is in epoch i // step_per_epoch. With `is_stair`, the epoch is rounded down to a multiple
    of `decay_epoch`.
    """
    _check.in_range(owner, "learning_rate", learning_rate, 0, open_low=True)
    _check.in_range(owner, "decay_rate", decay_rate, 0, open_low=True)
    _check_steps(owner, total_step, step_per_epoch, decay_epoch)
    _check.boolean(owner, "is_stair", is_stair)
    epochs = [i // step_per_epoch for i in range(total_step)]
    return [formula(e // decay_epoch * decay_epoch if is_stair else e) for e in epochs]


def _check_steps(owner: str, total_step: int, step_per_epoch: int, epochs: int) -> None:
    _check.positive_int(owner, "total_step", total_step)
    _check.positive_int(owner, "step_per_epoch", step_per_epoch)
    _check.positive_int(owner, "epochs", epochs)


def exponential_decay_lr(
    learning_rate: float,
    decay_rate: float,
    total_step: int,
    step_per_epoch: int,
    decay_epoch: int,
    is_stair: bool = False,
) -> list[float]:
    """Return the rate `learning_rate * decay_rate ** (epoch / decay_epoch)` of each step
    (`mindspore.nn.exponential_decay_lr`).

    There are `total_step` steps, `step_per_epoch` in an epoch. `epoch` is an int; with `is_stair`
    it is rounded down to a multiple of `decay_epoch`.

    Examples:
        >>> from duograph import nn
        >>> nn.exponential_decay_lr(0.1, 0.5, 4, 2, 1)
        [0.1, 0.1, 0.05, 0.05]
    """
    return _decayed(
        "exponential_decay_lr",
        lambda epoch: learning_rate * decay_rate ** (epoch / decay_epoch),
        learning_rate, decay_rate, total_step, step_per_epoch, decay_epoch, is_stair,
    )  # fmt: skip


def natural_exp_decay_lr(
    learning_rate: float,
    decay_rate: float,
    total_step: int,
    step_per_epoch: int,
    decay_epoch: int,
    is_stair: bool = False,
) -> list[float]:
    """Return the rate `learning_rate * exp(-decay_rate * epoch)` of each step
    (`mindspore.nn.natural_exp_decay_lr`).

    There are `total_step` steps, `step_per_epoch` in an epoch. `epoch` is an int; with `is_stair`
    it is rounded down to a multiple of `decay_epoch`.

    Examples:
        >>> import duograph as ms
        >>> ms.nn.natural_exp_decay_lr(0.5, 1.0, 2, 1, 1)
        [0.5, 0.18393972058572117]
    """
    return _decayed(
        "natural_exp_decay_lr",
        lambda epoch: learning_rate * math.exp(-decay_rate * epoch),
        learning_rate, decay_rate, total_step, step_per_epoch, decay_epoch, is_stair,
    )  # fmt: skip


def inverse_decay_lr(
    learning_rate: float,
    decay_rate: float,
    total_step: int,
    step_per_epoch: int,
    decay_epoch: int,
    is_stair: bool = False,
) -> list[float]:
    """Return the rate `learning_rate / (1 + decay_rate * epoch / decay_epoch)` of each step
    (`mindspore.nn.inverse_decay_lr`).

    There are `total_step` steps, `step_per_epoch` in an epoch. `epoch` is an int; with `is_stair`
    it is rounded down to a multiple of `decay_epoch`.

    Examples:
        >>> import duograph as ms
        >>> ms.nn.inverse_decay_lr(0.5, 1.0, 3, 1, 1)
        [0.5, 0.25, 0.16666666666666666]
    """
    return _decayed(
        "inverse_decay_lr",
        lambda epoch: learning_rate / (1 + decay_rate * (epoch / decay_epoch)),
        learning_rate, decay_rate, total_step, step_per_epoch, decay_epoch, is_stair,
    )  # fmt: skip


def cosine_decay_lr(
    min_lr: float, max_lr: float, total_step: int, step_per_epoch: int, decay_epoch: int
) -> list[float]:
    """Return rates from `max_lr` to `min_lr` along half a cosine over `decay_epoch` epochs
    (`mindspore.nn.cosine_decay_lr`).

    There is one rate for each of `total_step` steps, of which `step_per_epoch` are in an epoch.

    Raises:
        ValueError: min_lr is not below max_lr.

    Examples:
        >>> import duograph as ms
        >>> ms.nn.cosine_decay_lr(0.0, 0.1, 3, 1, 2)
        [0.1, 0.05, 0.0]
    """
    owner = "cosine_decay_lr"
    _check.in_range(owner, "min_lr", min_lr, 0)
    _check.in_range(owner, "max_lr", max_lr, 0, open_low=True)
    _check_steps(owner, total_step, step_per_epoch, decay_epoch)
    if min_lr >= max_lr:
        raise ArgumentValueError(
            f"{owner}: got min_lr={min_lr}, max_lr={max_lr}; wanted min below max"
        )
    half = 0.5 * (max_lr - min_lr)
    return [
        min_lr
        + half * (1 + math.cos(math.pi * min(i // step_per_epoch, decay_epoch) / decay_epoch))
        for i in range(total_step)
    ]


def polynomial_decay_lr(
    learning_rate: float,
    end_learning_rate: float,
    total_step: int,
    step_per_epoch: int,
    decay_epoch: int,
    power: float,
    update_decay_epoch: bool = False,
) -> list[float]:
    """Return rates that fall from `learning_rate` to `end_learning_rate` by a power of the epoch
    (`mindspore.nn.polynomial_decay_lr`).

    The end is reached after `decay_epoch` epochs. With `update_decay_epoch`, the length of the
    decay is the smallest multiple of `decay_epoch` that is not below the epoch. There is one rate
    for each of `total_step` steps, of which `step_per_epoch` are in an epoch.

    Raises:
        ValueError: end_learning_rate is not below learning_rate, or power is 0 or less.

    Examples:
        >>> import duograph as ms
        >>> ms.nn.polynomial_decay_lr(0.5, 0.0, 3, 1, 2, 1.0)
        [0.5, 0.25, 0.0]
    """
    owner = "polynomial_decay_lr"
    _check.in_range(owner, "learning_rate", learning_rate, 0, open_low=True)
    _check.in_range(owner, "end_learning_rate", end_learning_rate, 0)
    _check.in_range(owner, "power", power, 0, open_low=True)
    _check_steps(owner, total_step, step_per_epoch, decay_epoch)
    if end_learning_rate >= learning_rate:
        raise ArgumentValueError(
            f"{owner}: got end_learning_rate={end_learning_rate}, learning_rate={learning_rate}; "
            f"wanted the end below the start"
        )
    span = learning_rate - end_learning_rate
    found = []
    for i in range(total_step):
        epoch = i // step_per_epoch
        length = decay_epoch
        if update_decay_epoch:
            length = decay_epoch * max(math.ceil(epoch / decay_epoch), 1)
        found.append(end_learning_rate + span * (1 - min(epoch, length) / length) ** power)
    return found


@explaining
def warmup_lr(
    learning_rate: float, total_step: int, step_per_epoch: int, warmup_epoch: int
) -> list[float]:
    """Return rates that grow linearly from 0 to `learning_rate` over `warmup_epoch` epochs
    (`mindspore.nn.warmup_lr`).

    There is one rate for each of `total_step` steps, of which `step_per_epoch` are in an epoch.

    Examples:
        >>> import duograph as ms
        >>> ms.nn.warmup_lr(0.5, 3, 1, 2)
        [0.0, 0.25, 0.5]
    """
    owner = "warmup_lr"
    _check.in_range(owner, "learning_rate", learning_rate, 0)
    _check_steps(owner, total_step, step_per_epoch, max(warmup_epoch, 1))
    if warmup_epoch <= 0:
        return [float(learning_rate)] * total_step
    return [
        learning_rate * min(i // step_per_epoch, warmup_epoch) / warmup_epoch
        for i in range(total_step)
    ]
