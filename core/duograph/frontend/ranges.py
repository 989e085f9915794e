"""`range` of a number that is known only when the graph runs."""

from __future__ import annotations

from typing import Any

from ..ir.values import NeedsValue, number_of
from ..types import INT

__all__ = ["GraphRange"]


class GraphRange:
    """start, start + step, ... below stop (above it for a negative step); the step is known."""

    def __init__(self, *args: Any) -> None:
        if len(args) == 1:
            start, stop, step = 0, args[0], 1
        else:
            start, stop, step = (*args, 1)[:3]
        if not isinstance(step, int):
            raise NeedsValue(
                "range: got a step that is known only when the compiled function runs; wanted a constant"
            )
        if step == 0:
            raise ValueError("range() arg 3 must not be zero")
        self.start = number_of(start, INT)
        self.stop = number_of(stop, INT)
        self.step = step

    def __len__(self) -> int:
        raise NeedsValue("range: got a length that is known only when the compiled function runs")

    def holds(self, i: Any) -> Any:
        """Whether `i` is still in the range."""
        return i < self.stop if self.step > 0 else i > self.stop
