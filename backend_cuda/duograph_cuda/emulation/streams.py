"""Implements the streams and events of the emulated CUDA driver.

While each context has only one stream, work runs immediately. With several streams, work is queued
and runs as late as CUDA allows: when the host waits for it or for an event behind it. Tests thereby
find programs that forget to order work of different streams. An event that is queried repeatedly
without a wait is reached after a few queries.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

from duograph.backend.locks import new_lock

__all__ = ["EmulatedStreams"]

FIRST = 0x50
# The query of an event that runs the work before it: a program may wait by asking.
LAST_QUERY = 4


class EmulatedStreams:
    """Streams as lists of functions that return a CUDA result code; an event is a mark in a list.

    Attributes:
        pending: the first code other than 0 that queued work returned, which the next wait reports;
            else 0.
    """

    def __init__(self) -> None:
        self.lists: dict[int, list[Callable[[], int]]] = {}
        self.contexts: list[int] = []
        self.events: dict[int, tuple[int, Callable[[], int], list[float]]] = {}
        self.numbers = itertools.count(1)
        self.queries: dict[int, int] = {}
        self.lock = new_lock()
        self.pending: int = 0

    @property
    def queues(self) -> bool:
        """Whether work is queued, because some context has several streams."""
        return len(set(self.contexts)) < len(self.contexts)

    def create(self, context: int) -> int:
        with self.lock:
            stream = FIRST + 16 * len(self.lists)
            self.lists[stream] = []
            self.contexts.append(context)
        return stream

    def put(self, stream: int, work: Callable[[], int]) -> int:
        """Run work immediately and return its result code, or queue it on a stream and return 0."""
        with self.lock:
            if self.queues and stream in self.lists:
                self.lists[stream].append(work)
                return 0
            return work()

    def run(self, stream: int, mark: Callable[[], int] | None = None) -> int:
        """Run the queued work of a stream: all of it, or up to and including the function `mark`.

        Return the first result code other than 0 that queued work has returned since the last
        report, else 0.
        """
        with self.lock:
            waiting = self.lists.get(stream, [])
            while waiting and (mark is None or mark in waiting):
                code = waiting.pop(0)()
                self.pending = self.pending or code
            code, self.pending = self.pending, 0
        return code

    def run_all(self) -> int:
        with self.lock:
            codes = [self.run(stream) for stream in reversed(list(self.lists))]
        return next(filter(None, codes), 0)

    # ---- events ---------------------------------------------------------------------------------

    def record(self, event: int, stream: int) -> None:
        times: list[float] = []

        def mark() -> int:
            times.append(time.perf_counter())
            return 0

        with self.lock:
            self.queries.pop(event, None)
            self.events[event] = stream, mark, times
            self.put(stream, mark)

    def wait(self, stream: int, event: int) -> None:
        """Make later work of a stream run after an event.

        There is no effect if the event was never recorded.
        """
        found = self.events.get(event)
        if found is not None:
            of, mark, _ = found
            self.put(stream, lambda: self.run(of, mark))

    def synchronize(self, event: int) -> int:
        found = self.events.get(event)
        return 0 if found is None else self.run(found[0], found[1])

    def finished(self, event: int) -> bool:
        found = self.events.get(event)
        if found is None or found[1] not in self.lists.get(found[0], []):
            return True
        self.queries[event] = self.queries.get(event, 0) + 1
        if self.queries[event] < LAST_QUERY or not self.lock.acquire(blocking=False):
            return False  # another thread waits for the device, which works for it
        try:
            self.pending = self.run(found[0], found[1])
        finally:
            self.lock.release()
        return True

    def elapsed(self, begin: int, end: int) -> float:
        """Return the milliseconds from event `begin` to event `end`; both have been reached."""
        return 1000 * (self.events[end][2][-1] - self.events[begin][2][-1])
