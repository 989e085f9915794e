"""Implements the streams and events of a CUDA device, which `Cuda.streams` returns.

A device begins with one stream, the main stream. After the first call of `new_stream` the device
synchronizes several streams: freed memory is not reused before all streams have passed the point
where it was freed (`join`), later work of every stream waits for an upload, and a copy to the host
waits for all streams. CUDA graphs and cuDNN always run on the main stream, behind the work of the
caller's stream.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from duograph.backend.observers import DeviceTimer
from duograph.backend.streams import Streams

if TYPE_CHECKING:
    from .device import CudaDevice

__all__ = ["Queues"]

# Freed memory of at most so many bytes is kept before the streams are joined.
KEPT = 64 << 20
# What the driver returns for work that has not finished.
NOT_READY = 600


class _Stream:
    """A stream of a device; after its deletion another `_Stream` can use the driver's stream."""

    def __init__(self, queues: Queues, handle: Any) -> None:
        self.queues = queues
        self.handle = handle

    def __del__(self) -> None:
        self.queues.idle.append(self.handle)


class _Event:
    """An event of a device; after its deletion the driver's event is destroyed when possible."""

    def __init__(self, queues: Queues, handle: Any) -> None:
        self.queues = queues
        self.handle = handle

    def __del__(self) -> None:
        self.queues.old_events.append(self.handle)


class _Local(threading.local):
    """Thread-local state: the thread's chosen stream, and those that `enter_main` replaced."""

    def __init__(self, queues: Queues) -> None:
        self.stream: _Stream | None = None
        self.left: list[_Stream | None] = []
        self.end = _End(queues)


class _End:
    """A thread-local object whose deletion, at the end of its thread, resets the thread's stream.

    A later thread may have the same identifier, and must not get that stream.
    """

    def __init__(self, queues: Queues) -> None:
        self.gate = queues.device.gate
        self.thread = threading.get_ident()

    def __del__(self) -> None:
        self.gate.choose(0, self.thread)


class StreamTimer(DeviceTimer):
    """The clock of a CUDA device: events with a time in the calling thread's stream."""

    def __init__(self, queues: Queues) -> None:
        self.queues = queues

    def mark(self) -> object:
        return self.queues.mark()

    def elapsed(self, begin: Any, end: Any) -> int:
        self.queues.synchronize_event(end)
        return max(0, int(self.queues.elapsed_time(begin, end) * 1e6))


class Queues(Streams):
    """The streams and events of one CUDA device.

    Attributes:
        handles: the driver's streams, the main stream first.
        idle: the driver's streams that no `_Stream` uses.
    """

    def __init__(self, device: CudaDevice) -> None:
        self.device = device
        self.handles: list[object] = [device.main]
        self.idle: list[object] = []
        self.old_events: list[object] = []
        self._local = _Local(self)

    def _check(self, name: str, *arguments: object) -> Any:
        return self.device.checked("stream", name, *arguments)

    def _handle(self, stream: _Stream | None) -> object:
        return self.device.main if stream is None else stream.handle

    # ---- streams --------------------------------------------------------------------------------

    def new_stream(self) -> _Stream:
        device = self.device
        with device.lock:
            if device.queues is None:
                device.queues = self
                device.pool.defer(KEPT, self.join)
            try:
                handle = self.idle.pop()
            except IndexError:
                handle = self._check("cuStreamCreate", device.stream_flags)
                # work on the new stream may read what was uploaded on the others
                self.order(self.handles, [handle])
                self.handles.append(handle)
        return _Stream(self, handle)

    @property
    def current(self) -> object:
        """The driver's stream that the calling thread has chosen."""
        return self._handle(self._local.stream)

    def use_stream(self, stream: _Stream | None) -> None:
        self._local.stream = stream
        self.device.gate.choose(0 if stream is None else int(stream.handle), threading.get_ident())

    def synchronize_stream(self, stream: _Stream | None) -> None:
        self._check("cuStreamSynchronize", self._handle(stream))
        self._look()

    def query_stream(self, stream: _Stream | None) -> bool:
        return self._finished("cuStreamQuery", self._handle(stream))

    def _finished(self, name: str, handle: object) -> bool:
        code, _ = self.device.tried(name, handle)
        if code and int(code) != NOT_READY:
            self.device.failed(code, "stream")
        return not code

    def _look(self) -> None:
        """Raise the error, if any, that finished kernels have recorded, such as a wrong index."""
        record = self.device.record
        if record is not None and record.unread:
            record.look()

    # ---- events ---------------------------------------------------------------------------------

    def mark(self) -> object:
        """Append an event with a time to the calling thread's stream; return the event."""
        return self.record_event(self._local.stream, True)

    def record_event(self, stream: _Stream | None, timing: bool) -> _Event:
        while self.old_events:
            self._check("cuEventDestroy", self.old_events.pop())
        flags = 0 if timing else self.device.no_timing
        event = _Event(self, self._check("cuEventCreate", flags))
        self._check("cuEventRecord", event.handle, self._handle(stream))
        return event

    def wait_event(self, stream: _Stream | None, event: _Event) -> None:
        self._check("cuStreamWaitEvent", self._handle(stream), event.handle, 0)

    def synchronize_event(self, event: _Event) -> None:
        self._check("cuEventSynchronize", event.handle)
        self._look()

    def query_event(self, event: _Event) -> bool:
        return self._finished("cuEventQuery", event.handle)

    def elapsed_time(self, begin: _Event, end: _Event) -> float:
        return float(self._check("cuEventElapsedTime", begin.handle, end.handle))

    # ---- several streams together ---------------------------------------------------------------

    def order(self, first: list[object], then: list[object]) -> None:
        """Make later work of the streams `then` wait for the work queued on streams `first`."""
        for one in first:
            event = self._check("cuEventCreate", self.device.no_timing)
            try:
                self._check("cuEventRecord", event, one)
                for other in then:
                    if other is not one:
                        self._check("cuStreamWaitEvent", other, event, 0)
            finally:
                self._check("cuEventDestroy", event)

    def join(self) -> None:
        """Make all streams wait for each other; then allow the reuse of memory freed before.

        Later work on any stream waits for the work queued so far on all streams, so no queued work
        can use that memory after its reuse.
        """
        with self.device.lock:
            self.device.pool.collect()
            self.order(self.handles, self.handles)
            self.device.pool.settle()

    def synchronize(self) -> None:
        """Wait on the host for all streams, then allow the reuse of memory freed before."""
        with self.device.lock:
            self.device.pool.collect()
            for handle in self.handles:
                self._check("cuStreamSynchronize", handle)
            self.device.pool.settle()

    def enter_main(self) -> None:
        """Switch the calling thread to the main stream, behind its work on its own stream."""
        local = self._local
        own = local.stream
        local.left.append(own)
        if own is not None:
            self.order([own.handle], [self.device.main])
            self.use_stream(None)

    def leave_main(self) -> None:
        """Undo `enter_main`: switch to the thread's own stream, behind the main stream's work."""
        own = self._local.left.pop()
        if own is not None:
            self.order([self.device.main], [own.handle])
            self.use_stream(own)
