"""`range` with a bound that is known only when the graph runs.

`evaluation.loop_statements` turns a `for` over a `GraphRange` into a graph loop. The class must not
report a length, because none is known at compile time.
"""

from __future__ import annotations

from ...ir.values import NeedsValue, number_of
from ...types import INT
from ..types import Flag, Value

__all__ = ["GraphRange"]


class GraphRange:
    """A `range` whose bounds may be values of the graph: start, start + step, ... before stop.

    `start` and `stop` may be values of the graph; `step` must be a Python int.
    """

    def __init__(self, *args: Value) -> None:
        if len(args) == 1:
            start, stop, step = 0, args[0], 1
        else:
            start, stop, step = (*args, 1)[:3]
        if not isinstance(step, int):
            raise NeedsValue(
                "range: got a step that is known only when the compiled function runs; wanted a "
                "constant"
            )
        if step == 0:
            raise ValueError("range() arg 3 must not be zero")
        self.start = number_of(start, INT)
        self.stop = number_of(stop, INT)
        self.step = step

    def __len__(self) -> int:
        raise NeedsValue("range: got a length that is known only when the compiled function runs")

    def _unknown(self, *_: Value) -> Value:
        raise NeedsValue("range: got a bound that is known only when the compiled function runs")

    # What else Python can ask a range; without these a `range` would answer like any object.
    __iter__ = __getitem__ = __contains__ = __eq__ = __ne__ = __repr__ = __format__ = _unknown
    __reversed__ = __array__ = index = count = _unknown

    def __hash__(self) -> int:
        raise NeedsValue("range: got a bound that is known only when the compiled function runs")

    def holds(self, i: Value) -> Flag:
        """Return whether the number `i` is before the end of the range, as a Python or graph bool.

        The test checks neither that `i` is past the start nor that it is the start plus whole
        steps.
        """
        found: Flag = i < self.stop if self.step > 0 else i > self.stop
        return found
