"""Records what observers are told, as cheaply as possible, and turns it into a list when asked.

`Profile` adds a `Recorder` while it collects. Each report is stored as one tuple; the rows of a
native program stay the array that the backend filled. Names and source lines are looked up by
`Recorder.records`, after the program that was profiled has gone on.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from types import CodeType
from typing import Any

from ..backend import registry
from ..backend.observers import DeviceTimer, Marks, Observer, Work, line_of, user_frame

__all__ = ["MemorySample", "Range", "Record", "Recorder"]

clock = time.perf_counter_ns
_thread = threading.get_ident
# Asking for the memory in use may take this share of the time at most, and is never more frequent
# than this, in nanoseconds.
_SHARE = 100
_PERIOD = 100_000

# A place in Python code: a code object and the byte offset of the instruction.
Place = tuple[CodeType, int]


@dataclasses.dataclass(frozen=True)
class Record:
    """One event of a profile.

    Attributes:
        work: what ran: kind, name, device, bytes, types; see `backend.observers.Work`.
        begin, end: on the host, in nanoseconds of `time.perf_counter_ns`.
        thread: `threading.get_ident` of the thread.
        lines: the user's source lines as (file, line); several for a fused region.
        stack: lines of the callers of the first one, if the profile has `with_stack`.
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
        """One of `backend.observers.KINDS`."""
        return self.work.kind

    @property
    def duration(self) -> int:
        """Nanoseconds on the device if it has a clock of its own, else on the host."""
        return self.end - self.begin if self.device_time is None else self.device_time


@dataclasses.dataclass(frozen=True)
class Range:
    """A part of the program that the user named; `end` equals `begin` for a mark. Nanoseconds."""

    name: str
    begin: int
    end: int
    thread: int
    domain: str = "default"


@dataclasses.dataclass(frozen=True)
class MemorySample:
    """The bytes of a device that tensors used at a time in nanoseconds."""

    time: int
    device: str
    in_use: int
    cached: int


class Recorder(Observer):
    """An observer that stores all events, up to a limit.

    Args:
        limit: the most events to store. Later ones are counted in `dropped`.
        memory: also sample the memory in use.
        stack: also store the callers of each line.
        quiet: store nothing and count nothing: the profile only warms up.

    Attributes:
        dropped: events beyond the limit.
        samples: the memory over time, if asked for.
        ranges: what the user named.
    """

    def __init__(
        self, limit: int, memory: bool = False, stack: bool = False, quiet: bool = False
    ) -> None:
        self.limit = limit
        self.quiet = quiet
        self.dropped = 0
        self.samples: list[MemorySample] = []
        self.ranges: list[Range] = []
        self._memory = memory
        self._stack = stack
        self._next_sample = 0
        self._sampling = 1 << 62  # the least nanoseconds that a sample took
        self._room = limit
        self._rows: list[tuple[Any, ...]] = []

    # ---- being told -----------------------------------------------------------------------------

    def take(self, work: Work, begin: int, end: int, marks: Marks | None) -> None:
        if self._room <= 0:
            self._drop(1)
            return
        self._room -= 1
        place: Place | tuple[Place, ...] | None = None
        if self._stack:
            place = _places(sys._getframe(1))
        elif not work.spans:
            frame = user_frame(sys._getframe(1))
            if frame is not None:
                place = frame.f_code, frame.f_lasti
        self._rows.append((work, begin, end, _thread(), place, marks))
        if self._memory and end >= self._next_sample:
            self.sample(work.device)

    def take_program(self, works: Sequence[Work], times: Any) -> None:
        count = len(times)
        if count > self._room:
            room = max(self._room, 0)
            self._drop(count - room)
            times, count = times[:room], room
        self._room -= count
        place: Place | tuple[Place, ...] | None
        if self._stack:
            place = _places(sys._getframe(1))
        else:
            frame = user_frame(sys._getframe(1))
            place = None if frame is None else (frame.f_code, frame.f_lasti)
        self._rows.append((works, times, None, _thread(), place, None))
        if self._memory and clock() >= self._next_sample:
            self.sample(works[0].device)

    def name_range(self, found: Range) -> None:
        """Store a range or a mark of the user."""
        if len(self.ranges) < self.limit:
            self.ranges.append(found)
        else:
            self._drop(1)

    def _drop(self, count: int) -> None:
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
        """Store the memory in use of a device now, and when to look again."""
        name, _, index = device.rpartition(":")
        if not name:
            return
        now = clock()
        self._next_sample = now + _PERIOD  # also where the backend has no statistics
        found = registry.backend(name).memory_stats(int(index))
        if "in_use" in found:
            sample = MemorySample(now, device, int(found["in_use"]), int(found.get("cached", 0)))
            self.samples.append(sample)
            if len(self.samples) > self.limit:
                del self.samples[::2]
        self._sampling = min(self._sampling, clock() - now)
        self._next_sample = max(self._next_sample, now + _SHARE * self._sampling)

    # ---- being asked ----------------------------------------------------------------------------

    def records(self) -> list[Record]:
        """Return all events in the order in which they began."""
        found = [record for row in list(self._rows) for record in _records(row)]
        return sorted(found, key=lambda r: (r.begin, -r.end))

    def __len__(self) -> int:
        return self.limit - max(self._room, 0)


def _places(frame: Any) -> tuple[Place, ...]:
    """Return the places of all callers outside duograph, the innermost first."""
    found = []
    frame = user_frame(frame)
    while frame is not None:
        found.append((frame.f_code, frame.f_lasti))
        frame = user_frame(frame.f_back)
    return tuple(found)


def _records(row: tuple[Any, ...]) -> Iterator[Record]:
    """Yield the events of one stored row; waits for a device that keeps its own times."""
    what, begin, end, thread, place, marks = row
    stack: tuple[tuple[str, int], ...] = ()
    if place is not None and place.__class__ is tuple and place and isinstance(place[0], tuple):
        stack = tuple([_line(*each) for each in place])
        callers = stack[:1]
    else:
        callers = () if place is None or not place else (_line(*place),)
    if isinstance(what, Work):
        yield Record(what, begin, end, thread, _lines(what) or callers, stack, _elapsed(marks))
        return
    for index, first, last in begin.tolist():
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
