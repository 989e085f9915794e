"""The interface of a device's queues of work, if a program can choose among several.

A *stream* is a queue of launches and copies that run in order; work of two streams may overlap. An
*event* is a mark in a stream. Streams and events are objects of the backend's choice, which the
core never looks into. `duograph.runtime` calls the methods; a backend without streams has one queue
for all work.
"""

from __future__ import annotations

from typing import Any

__all__ = ["Streams"]


class Streams:
    """Base class of the streams and events of one device; a subclass must define all methods.

    As an argument, None stands for the device's default stream. Memory is freed and used again on
    any stream, so a backend must not reuse a buffer while work of another stream may still read it.
    """

    def new_stream(self) -> Any:
        """Return a new stream."""
        raise NotImplementedError(f"{type(self).__name__}: has no new_stream()")

    def use_stream(self, stream: Any) -> None:
        """Queue later launches and copies of the calling thread on a stream."""
        raise NotImplementedError(f"{type(self).__name__}: has no use_stream()")

    def synchronize_stream(self, stream: Any) -> None:
        """Wait until the work of a stream has finished; raise the errors of its kernels."""
        raise NotImplementedError(f"{type(self).__name__}: has no synchronize_stream()")

    def query_stream(self, stream: Any) -> bool:
        """Return whether the work of a stream has finished; must not wait."""
        raise NotImplementedError(f"{type(self).__name__}: has no query_stream()")

    def record_event(self, stream: Any, timing: bool) -> Any:
        """Append a new event to a stream and return it.

        If `timing` is true, `elapsed_time` can read the time of the event.
        """
        raise NotImplementedError(f"{type(self).__name__}: has no record_event()")

    def wait_event(self, stream: Any, event: Any) -> None:
        """Make later work of a stream start after an event; the host must not wait."""
        raise NotImplementedError(f"{type(self).__name__}: has no wait_event()")

    def synchronize_event(self, event: Any) -> None:
        """Wait until the work before an event has finished."""
        raise NotImplementedError(f"{type(self).__name__}: has no synchronize_event()")

    def query_event(self, event: Any) -> bool:
        """Return whether the work before an event has finished; must not wait."""
        raise NotImplementedError(f"{type(self).__name__}: has no query_event()")

    def elapsed_time(self, begin: Any, end: Any) -> float:
        """Return the milliseconds between two finished events that were recorded with `timing`."""
        raise NotImplementedError(f"{type(self).__name__}: has no elapsed_time()")
