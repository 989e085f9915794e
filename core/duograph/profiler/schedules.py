"""Choice of the steps of a program that a profile records: `schedule` and `ProfilerAction`."""

from __future__ import annotations

import enum

from ..errors import ArgumentError, ArgumentValueError

__all__ = ["ProfilerAction", "schedule"]


class ProfilerAction(enum.Enum):
    """What a profile does during a step.

    NONE: nothing. WARM_UP: events are created and discarded. RECORD: events are stored.
    RECORD_AND_SAVE: events are stored, and at the end of the step `on_trace_ready` is called.
    """

    NONE = 0
    WARM_UP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


class schedule:
    """Choose the steps that a profile records (`mindspore.profiler.schedule`).

    After `skip_first` steps, each cycle waits, warms up and records. The program ends a step by
    `profile.step()`.

    Args:
        wait: number of steps at the start of a cycle in which nothing happens; at least 0.
        active: number of steps at the end of a cycle that are recorded; at least 1.
        warmup: number of steps between these, whose events are discarded; at least 0. The first
            call of each op under a profile takes longer, because it prepares a call that reports
            events.
        repeat: number of cycles; 0 repeats until the profile stops.
        skip_first: number of steps before the first cycle; at least 0.

    Raises:
        TypeError: an argument is no int.
        ValueError: an argument is below its smallest value.

    Examples:
        >>> import duograph as ms
        >>> plan = ms.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
        >>> [plan(step).name for step in range(5)]
        ['NONE', 'WARM_UP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """

    def __init__(
        self, *, wait: int, active: int, warmup: int = 0, repeat: int = 0, skip_first: int = 0
    ) -> None:
        given = {
            "wait": wait, "active": active, "warmup": warmup, "repeat": repeat,
            "skip_first": skip_first,
        }  # fmt: skip
        for name, value in given.items():
            least = int(name == "active")
            if not isinstance(value, int) or isinstance(value, bool):
                raise ArgumentError(f"schedule: got {name}={value!r}; wanted an int")
            if value < least:
                raise ArgumentValueError(
                    f"schedule: got {name}={value}; wanted {least} or a larger number"
                )
        self.wait, self.active, self.warmup = wait, active, warmup
        self.repeat, self.skip_first = repeat, skip_first

    def __call__(self, step: int) -> ProfilerAction:
        """Return the action for the step with index `step`, from 0.

        Raises:
            ValueError: `step` is negative.
        """
        if step < 0:
            raise ArgumentValueError(f"schedule: got step {step}; wanted 0 or a larger number")
        step -= self.skip_first
        cycle = self.wait + self.warmup + self.active
        if step < 0 or (self.repeat and step >= self.repeat * cycle):
            return ProfilerAction.NONE
        step %= cycle
        if step < self.wait:
            return ProfilerAction.NONE
        if step < self.wait + self.warmup:
            return ProfilerAction.WARM_UP
        last = step == cycle - 1
        return ProfilerAction.RECORD_AND_SAVE if last else ProfilerAction.RECORD

    def to_dict(self) -> dict[str, int]:
        """Return the arguments of the constructor by name."""
        return {
            "wait": self.wait, "active": self.active, "warmup": self.warmup,
            "repeat": self.repeat, "skip_first": self.skip_first,
        }  # fmt: skip

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value}" for name, value in self.to_dict().items())
        return f"schedule({given})"
