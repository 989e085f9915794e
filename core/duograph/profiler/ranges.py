"""`mstx`: named ranges and marks of user code, which a profile that is running records."""

from __future__ import annotations

import itertools
import threading
import time

from .._locks import new_lock
from ..errors import ArgumentError
from ..runtime import Stream
from .recording import Range, Recorder

__all__ = ["mstx", "recorders"]

# The recorders of running profiles, which get each range when it ends.
recorders: list[Recorder] = []
_numbers = itertools.count(1)
_open: dict[int, tuple[str, int, int, str]] = {}
_lock = new_lock()


class mstx:
    """Functions that name parts of a program in the traces of running profiles
    (`mindspore.profiler.mstx`).

    Examples:
        >>> import duograph as ms
        >>> with ms.profile() as p:
        ...     number = ms.profiler.mstx.range_start("my step")
        ...     y = ms.Tensor([1.0]) + 1
        ...     ms.profiler.mstx.range_end(number)
        >>> [r.name for r in p.ranges]
        ['my step']
    """

    @staticmethod
    def mark(message: str, stream: Stream | None = None, domain: str = "default") -> None:
        """Store a named point in time in all running profiles.

        Args:
            message: name of the mark.
            stream: a Stream whose work to wait for first.
            domain: a name for marks that belong together.

        Raises:
            TypeError: an argument has a wrong type.
        """
        _check("mark", message, stream, domain)
        now = time.perf_counter_ns()
        _store(Range(message, now, now, threading.get_ident(), domain))

    @staticmethod
    def range_start(message: str, stream: Stream | None = None, domain: str = "default") -> int:
        """Begin a range and return its number for `range_end`, or 0 if no profile is recording.

        Ranges may be nested.

        Args:
            message: name of the range.
            stream: a Stream whose work to wait for first.
            domain: a name for ranges that belong together.

        Raises:
            TypeError: an argument has a wrong type.
        """
        _check("range_start", message, stream, domain)
        if not recorders:
            return 0
        number = next(_numbers)
        with _lock:
            _open[number] = (message, time.perf_counter_ns(), threading.get_ident(), domain)
        return number

    @staticmethod
    def range_end(range_id: int, domain: str = "default") -> None:
        """End the range with the number `range_id`; do nothing for 0 or a range that has ended.

        Raises:
            TypeError: `range_id` is no int.
        """
        if not isinstance(range_id, int) or isinstance(range_id, bool):
            raise ArgumentError(f"mstx.range_end: got {range_id!r}; wanted an int")
        with _lock:
            found = _open.pop(range_id, None)
        if found is not None:
            name, begin, thread, of = found
            _store(Range(name, begin, time.perf_counter_ns(), thread, of))


def _check(method: str, message: object, stream: Stream | None, domain: object) -> None:
    if not isinstance(message, str) or not isinstance(domain, str):
        raise ArgumentError(f"mstx.{method}: got {message!r}, {domain!r}; wanted strings")
    if stream is not None:
        if not isinstance(stream, Stream):
            raise ArgumentError(f"mstx.{method}: got {stream!r} for a stream; wanted a Stream")
        stream.synchronize()


def _store(found: Range) -> None:
    for recorder in list(recorders):
        recorder.name_range(found)
