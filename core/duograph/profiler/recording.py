"""Recorder of the events of a profile, which stores them as cheaply as possible.

`profile` registers a `Recorder` as an observer while it collects. An event is stored as a few raw
values; the rows of a native program stay in the array that the backend filled. `Recorder.records`
looks up names and source lines later, so that the profiled program is not slowed down by it.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from types import CodeType, FrameType
from typing import TYPE_CHECKING, cast

from ..backend import registry
from ..backend.checked_calls import memory_of
from ..backend.observers import (
    DeviceTimer,
    EventLog,
    Marks,
    Work,
    line_of,
    own_files,
    user_frame,
)
from ..execution.optional_methods import answer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["MemorySample", "Range", "Record", "Recorder"]

clock = time.perf_counter_ns
_thread = threading.get_ident
_getframe = sys._getframe
# Asking for the memory in use may take this share of the time at most, and is never more frequent
# than this, in nanoseconds.
_SHARE = 100
_PERIOD = 100_000
# A line is trusted after so many walks of the stack; of so many events one is walked nevertheless.
_TRUSTED = 4
_CHECKED = 1024
_MOST_SITES = 8
_NEVER = -(1 << 60)
_NEVER_SAMPLED = 1 << 62
# Values that are stored for an event.
_STRIDE = 7

# A position in Python code: a code object and the byte offset of the instruction.
Place = tuple[CodeType, int]


@dataclasses.dataclass(frozen=True)
class Record:
    """One event of a profile.

    Attributes:
        work: what ran: kind, name, device, bytes, types; see `backend.observers.Work`.
        begin, end: times on the host, in nanoseconds of `time.perf_counter_ns`.
        thread: identifier of the thread (`threading.get_ident`).
        lines: the user's source lines as (file, line); several for a fused region.
        stack: the user's call stack as (file, line), the innermost line first, if the profile has
            `with_stack`.
        device_time: nanoseconds on the device; None where the device has no clock of its own.
    """

    work: Work
    begin: int
    end: int
    thread: int
    lines: tuple[tuple[str, int], ...] = ()
    stack: tuple[tuple[str, int], ...] = ()
    device_time: int | None = None

    @property
    def kind(self) -> str:
        """The kind of event, one of `backend.observers.KINDS`."""
        return self.work.kind

    @property
    def duration(self) -> int:
        """The duration in nanoseconds, on the device if it has a clock, else on the host."""
        return self.end - self.begin if self.device_time is None else self.device_time


@dataclasses.dataclass(frozen=True)
class Range:
    """A named range of the program, or a mark, whose `begin` and `end` are equal.

    `begin` and `end` are nanoseconds of `time.perf_counter_ns`.
    """

    name: str
    begin: int
    end: int
    thread: int
    domain: str = "default"


@dataclasses.dataclass(frozen=True)
class MemorySample:
    """The bytes on a device that tensors use, and those that the allocator caches, at one time.

    `time` is in nanoseconds of `time.perf_counter_ns`.
    """

    time: int
    device: str
    in_use: int
    cached: int


class Recorder(EventLog):
    """An observer that stores all events, up to a limit.

    Args:
        limit: the most events to store; later ones are only counted, in `dropped`.
        memory: also sample the memory in use.
        stack: also store the call stack of each event.
        quiet: store nothing and count nothing, while the profile only warms up.

    Attributes:
        dropped: number of events beyond the limit.
        samples: the memory in use over time, with `memory`.
        ranges: the ranges and marks of `mstx`.
    """

    def __init__(
        self, limit: int, memory: bool = False, stack: bool = False, quiet: bool = False
    ) -> None:
        self.limit = limit
        self.quiet = quiet
        self.dropped = 0
        self.samples: list[MemorySample] = []
        self.ranges: list[Range] = []
        self._stack = stack
        self.by_compiled_code = not stack
        self._sampling = 1 << 62  # the least nanoseconds that a sample took
        self.limits = [limit * _STRIDE, 0 if memory else _NEVER_SAMPLED]
        self._queued: dict[str, Marks] = {}  # the last work of each device with a queue
        self.values: list[object] = []  # those of an event, `_STRIDE` of them, after another's
        self._extend = self.values.extend

    # ---- being told -----------------------------------------------------------------------------

    def take(self, work: Work, begin: int, end: int, marks: Marks | None) -> None:
        """Store an event.

        `marks` are the device's time marks around a kernel, if it has its own clock.

        This costs every kernel some 0.3 us, so it calls as few functions as possible.

        Values of several events are stored in one flat list, because the garbage collector would
        visit a tuple per event again and again.
        """
        full, next_sample = self.limits
        if len(self.values) >= full:
            self.drop(1)
            return
        code: object = None
        offset: object = 0
        if self._stack:
            code = _places(sys._getframe(1))
        elif not work.spans:
            try:
                for depth, code, offset in work.sites:
                    frame = _getframe(depth)
                    if frame.f_lasti == offset and frame.f_code is code and end % _CHECKED:
                        break
                else:
                    code, offset = self.walk(work, _getframe(0))
            except ValueError:  # the stack is not as deep
                code, offset = self.walk(work, _getframe(0))
        self._extend((work, begin, end, _thread(), code, offset, marks))
        if marks is not None:
            self._queued[work.device] = marks
        if end >= next_sample:
            self.sample(work.device)

    def walk(self, work: Work, frame: FrameType | None) -> tuple[CodeType | None, int]:
        """Return the code object and bytecode offset of the innermost user frame, or (None, 0).

        Stores in `work` at which depth of the stack that frame was found, for later calls: creating
        the objects of all stack frames takes longer than many kernels. So once an event has been
        traced a few times to the same instruction at the same depth of the stack, `take` checks
        that depth alone, and walks the whole stack only occasionally. If such a walk finds another
        line, the short cut is never used for this event again.
        """
        depth = 0
        while frame is not None and own_files[frame.f_code.co_filename]:
            frame, depth = frame.f_back, depth + 1
        if frame is None:
            return None, 0
        code, offset = frame.f_code, frame.f_lasti
        walks = work.walks
        # what looked like the user's line, and was only a caller of it, is never trusted again
        outer = frame.f_back
        while outer is not None:
            walks[id(outer.f_code), outer.f_lasti] = _NEVER, outer.f_code
            outer = outer.f_back
        count = walks.get((id(code), offset), (0, code))[0] + 1
        walks[id(code), offset] = count, code  # the code stays, so that its id is not used again
        site = depth, code, offset
        others = [s for s in work.sites if s != site and walks[id(s[1]), s[2]][0] > 0]
        work.sites[:] = [site, *others][:_MOST_SITES] if count >= _TRUSTED else others
        return code, offset

    def take_program(self, works: Sequence[Work], times: NDArray[np.int64]) -> None:
        count = len(times)
        room = self._room()
        if count > room:
            self.drop(count - room)
            times, count = times[:room], room
        self.limits[0] -= (count - 1) * _STRIDE  # they share one row of `values`
        code: object = None
        offset = 0
        if self._stack:
            code = _places(sys._getframe(1))
        else:
            frame = user_frame(sys._getframe(1))
            if frame is not None:
                code, offset = frame.f_code, frame.f_lasti
        self._extend((works, times, None, _thread(), code, offset, None))
        if clock() >= self.limits[1]:
            self.sample(works[0].device)

    def wait(self) -> None:
        """Wait until devices with a queue have finished the recorded work."""
        for timer, begin, end in list(self._queued.values()):
            timer.elapsed(begin, end)

    def name_range(self, found: Range) -> None:
        """Store a range or a mark of `mstx`."""
        if len(self.ranges) < self.limit:
            self.ranges.append(found)
        else:
            self.drop(1)

    def drop(self, count: int = 1) -> None:
        if self.quiet:
            return
        if not self.dropped:
            warnings.warn(
                f"profile: {self.limit} events are stored, and later ones are only counted; "
                "profile fewer steps with a schedule, or raise profile.max_events",
                RuntimeWarning,
                stacklevel=2,
            )
        self.dropped += count

    def sample(self, device: str) -> None:
        """Store the memory in use of a device now, and set the earliest time of the next sample."""
        name, _, index = device.rpartition(":")
        if not name:
            return
        now = clock()
        self.limits[1] = now + _PERIOD  # also where the backend has no statistics
        backend = registry.backend(name)
        found = answer(backend, "memory_stats", lambda: memory_of(backend, int(index)))
        if not isinstance(found, str) and "in_use" in found:
            sample = MemorySample(now, device, found["in_use"], found.get("cached", 0))
            self.samples.append(sample)
            if len(self.samples) > self.limit:
                del self.samples[::2]
        self._sampling = min(self._sampling, clock() - now)
        self.limits[1] = max(self.limits[1], now + _SHARE * self._sampling)

    # ---- being asked ----------------------------------------------------------------------------

    def records(self) -> list[Record]:
        """Return all events as `Record`s, in the order in which they began."""
        values = list(self.values)
        rows = zip(*[values[k::_STRIDE] for k in range(_STRIDE)])
        found = [record for row in rows for record in _records(*row)]
        return sorted(found, key=lambda r: (r.begin, -r.end))

    def __len__(self) -> int:
        return self.limit - self._room()

    def _room(self) -> int:
        """Return how many events can still be stored."""
        return max(0, (self.limits[0] - len(self.values)) // _STRIDE)


def _places(frame: FrameType | None) -> tuple[Place, ...]:
    """Return the code positions of all user frames (outside duograph), the innermost first."""
    found = []
    frame = user_frame(frame)
    while frame is not None:
        found.append((frame.f_code, frame.f_lasti))
        frame = user_frame(frame.f_back)
    return tuple(found)


def _records(
    what: Work | Sequence[Work],
    begin: int | NDArray[np.int64],
    end: int,
    thread: int,
    code: object,
    offset: int,
    marks: Marks | None,
) -> Iterator[Record]:
    """Yield the events of one stored row; wait for a device that has its own clock.

    A row is one event, or a whole run of a native program: then `what` is the sequence of its
    works, and `begin` the array of its (index, begin, end) rows. `code` and `offset` are the
    position in the user's code, and `marks` the device's time marks.
    """
    stack: tuple[tuple[str, int], ...] = ()
    callers: tuple[tuple[str, int], ...] = ()
    if isinstance(code, tuple):
        stack = tuple([_line(*each) for each in code])
        callers = stack[:1]
    elif code is not None:
        callers = (_line(code, offset),)
    if isinstance(what, Work):
        yield Record(
            what, cast("int", begin), end, thread, _lines(what) or callers, stack, _elapsed(marks)
        )
        return
    for index, first, last in cast("NDArray[np.int64]", begin).tolist():
        yield Record(what[index], first, last, thread, _lines(what[index]) or callers, stack)


def _lines(work: Work) -> tuple[tuple[str, int], ...]:
    return tuple(dict.fromkeys([(s.file, s.line) for s in work.spans]))


@functools.lru_cache(maxsize=65536)
def _line(code: CodeType, offset: int) -> tuple[str, int]:
    return line_of(code, offset)


def _elapsed(marks: Marks | None) -> int | None:
    if marks is None:
        return None
    timer, begin, end = marks
    assert isinstance(timer, DeviceTimer)
    return timer.elapsed(begin, end)
