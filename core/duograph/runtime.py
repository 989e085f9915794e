"""Streams, events, memory statistics and settings of a device (`mindspore.runtime`).

Users call these functions and classes. Where the backend of a device has streams
(`Backend.streams`), work of two streams may overlap. Any other device has a single queue and runs
all work in the order in which the program submits it: its streams are mere names, and to wait for
one of them is to wait for the device. Nothing in the package uses this module.
"""

from __future__ import annotations

import threading
import time
import weakref
from contextlib import AbstractContextManager
from types import TracebackType

from . import context
from .backend import registry
from .backend.checked_calls import naming
from .backend.plugin_checks import shown_value
from .backend.streams import Streams
from .call_errors import explaining
from .errors import ArgumentError, ArgumentValueError, BackendError, UnsupportedOpError
from .execution import device as _device
from .execution.device import (
    empty_cache,
    max_memory_allocated,
    memory_allocated,
    memory_reserved,
)
from .option_checks import warn_moot
from .types import Device

__all__ = [
    "Event", "Stream", "StreamCtx", "communication_stream", "current_stream", "default_stream",
    "dispatch_threads_num", "empty_cache", "launch_blocking", "max_memory_allocated",
    "max_memory_reserved", "memory_allocated", "memory_reserved", "memory_stats",
    "memory_summary", "reset_max_memory_allocated", "reset_max_memory_reserved",
    "reset_peak_memory_stats", "set_cpu_affinity", "set_cur_stream", "set_kernel_launch_capture",
    "set_kernel_launch_group", "set_memory", "synchronize",
]  # fmt: skip


# ---- streams and events ------------------------------------------------------------------------


def _queues_of(device: Device) -> Streams | None:
    """Return the streams of a device's backend, or None if all its work runs in order.

    Raises:
        BackendError: the backend failed, or returned something else.
    """
    backend = registry.backend(device.name)
    with naming(backend, "streams"):
        found = backend.streams(device.index)
    if found is None or isinstance(found, Streams):
        return found
    raise BackendError(
        f"{backend.name}: streams() returned {shown_value(found)}; wanted a Streams or None"
    )


@explaining
class Stream:
    """A queue of work of the current device (`mindspore.runtime.Stream`).

    The launches and copies of a thread go to its current stream. Work of one stream runs in the
    order of the program; work of two streams may overlap if the device has several queues, and
    `wait_event` and `wait_stream` order it. On a device with one queue, such as the CPU, all work
    runs in the order of the program.

    Args:
        priority: accepted for compatibility; must be 0.

    Raises:
        ValueError: another priority.

    Examples:
        >>> import duograph as ms
        >>> stream = ms.runtime.Stream()
        >>> with ms.runtime.StreamCtx(stream):
        ...     y = ms.Tensor([1.0]) + 1
        >>> stream.synchronize()
        >>> stream.query()
        True
    """

    _made = 0
    _known: weakref.WeakValueDictionary[tuple[Device, int], Stream] = weakref.WeakValueDictionary()

    def __init__(self, priority: int = 0, **kwargs: int) -> None:
        if priority != 0:
            raise ArgumentValueError(f"Stream: got priority={priority!r}; wanted 0")
        number = kwargs.pop("stream_id", None)
        if kwargs:
            raise ArgumentError(f"Stream: got unknown options {', '.join(kwargs)}; wanted none")
        self._device = registry.current_device()
        self._queues = _queues_of(self._device)
        self._queue: object = None  # the backend's stream; None is the default one
        if number is None:
            Stream._made += 1
            number = Stream._made
            if self._queues is not None:
                with self._naming():
                    self._queue = self._queues.new_stream()
            Stream._known[self._device, number] = self
        elif number != 0 and self._queues is not None:
            known = Stream._known.get((self._device, number))
            if known is None:
                raise ArgumentValueError(
                    f"Stream: got stream_id={number!r}, and {self._device} has no such stream"
                )
            self._queue = known._queue
        self.id = self.stream_id = number

    def _naming(self) -> AbstractContextManager[None]:
        """Return a context manager that turns unexpected errors of the backend into BackendErrors.

        Such an error names the backend and its method `streams`.
        """
        return naming(registry.backend(self._device.name), "streams")

    @property
    def device_name(self) -> str:
        """The name of the stream's device."""
        return self._device.name

    @property
    def device_id(self) -> int:
        """The index of the stream's device."""
        return self._device.index

    def synchronize(self) -> None:
        """Wait until the work of the stream has finished."""
        if self._queues is None:
            _device.synchronize(repr(self._device))
            return
        with self._naming():
            self._queues.synchronize_stream(self._queue)

    def query(self) -> bool:
        """Return whether the work of the stream has finished.

        On a device without streams of its own (one queue), wait for the device and return True.
        """
        if self._queues is None:
            self.synchronize()
            return True
        with self._naming():
            return bool(self._queues.query_stream(self._queue))

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event after the work submitted so far to this stream; return the event.

        With None, a new event is recorded.
        """
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Make later work of this stream wait for an event; no effect if it was never recorded."""
        if not isinstance(event, Event):
            raise ArgumentError(f"wait_event: got {type(event).__name__}; wanted an Event")
        event._let_wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Make later work of this stream wait for the work submitted so far to another stream."""
        self.wait_event(_check_stream("wait_stream", stream).record_event())

    def _make_current(self) -> None:
        """Send this thread's work on the stream's device to this stream from now on."""
        if self._queues is not None:
            with self._naming():
                self._queues.use_stream(self._queue)
        if self.id == 0:
            _current.streams.pop(self._device, None)
        else:
            _current.streams[self._device] = self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and (other.id, other._device) == (self.id, self._device)

    def __hash__(self) -> int:
        return hash((self.id, self._device))

    def __repr__(self) -> str:
        place = f"device_name={self.device_name}, device_id:{self.device_id}"
        return f"Stream({place}, stream id:{self.id})"


def _check_stream(name: str, stream: object) -> Stream:
    if not isinstance(stream, Stream):
        raise ArgumentError(f"{name}: got {type(stream).__name__}; wanted a Stream")
    return stream


class Event:
    """A mark in a stream, which is reached when the work submitted before it has finished
    (`mindspore.runtime.Event`).

    Args:
        enable_timing: whether `elapsed_time` may be called; if so, `record` waits for the device
            where it has one queue.
        blocking: whether `wait` also blocks the host until the mark is reached.

    Examples:
        >>> import duograph as ms
        >>> begin, end = (ms.runtime.Event(enable_timing=True) for _ in range(2))
        >>> begin.record()
        >>> y = ms.Tensor([1.0]) + 1
        >>> end.record()
        >>> begin.elapsed_time(end) >= 0
        True
    """

    def __init__(self, enable_timing: bool = False, blocking: bool = False) -> None:
        for name, value in (("enable_timing", enable_timing), ("blocking", blocking)):
            if not isinstance(value, bool):
                raise ArgumentError(f"Event: got {name}={value!r}; wanted True or False")
        self._timing = enable_timing
        self._blocking = blocking
        self._time: float | None = None
        self._stream: Stream | None = None
        self._mark: object = None  # the backend's event

    def record(self, stream: Stream | None = None) -> None:
        """Place this event after the work submitted so far to a stream, by default the current one.

        An event that was recorded before moves to the new position.
        """
        found = current_stream() if stream is None else _check_stream("record", stream)
        if found._queues is not None:
            with found._naming():
                self._mark = found._queues.record_event(found._queue, self._timing)
        elif self._timing:
            found.synchronize()
            self._time = time.perf_counter()
        self._stream = found

    def wait(self, stream: Stream | None = None) -> None:
        """Make later work of a stream, by default the current one, wait for this event.

        There is no effect if the event was never recorded.
        """
        self._let_wait(current_stream() if stream is None else _check_stream("wait", stream))

    def _let_wait(self, stream: Stream) -> None:
        """Make later work of `stream` wait until this event is reached.

        The host waits instead if the event was made with `blocking`, or is on another device. There
        is no effect if the event was never recorded.
        """
        if self._stream is None:
            return
        if self._blocking or self._stream._device is not stream._device:
            self.synchronize()
        elif stream._queues is not None:
            with stream._naming():
                stream._queues.wait_event(stream._queue, self._mark)

    def synchronize(self) -> None:
        """Wait on the host until this event is reached; return at once if it was never recorded."""
        stream = self._stream
        if stream is None:
            return
        if stream._queues is None:
            stream.synchronize()
            return
        with stream._naming():
            stream._queues.synchronize_event(self._mark)

    def query(self) -> bool:
        """Return whether this event is reached; True if it was never recorded.

        On a device with one queue, wait for the device and return True.
        """
        stream = self._stream
        if stream is None:
            return True
        if stream._queues is None:
            return stream.query()
        with stream._naming():
            return bool(stream._queues.query_event(self._mark))

    def elapsed_time(self, end_event: Event) -> float:
        """Return the milliseconds between this event and `end_event`, after waiting for both.

        Raises:
            RuntimeError: one of the events was not recorded, or was made without `enable_timing`,
                or they belong to different devices.
        """
        if not isinstance(end_event, Event):
            raise ArgumentError(f"elapsed_time: got {type(end_event).__name__}; wanted an Event")
        begin, end = self._stream, end_event._stream
        if begin is None or end is None or not (self._timing and end_event._timing):
            raise UnsupportedOpError(
                "elapsed_time: got an event without a time; wanted two that were made with "
                "enable_timing=True and recorded"
            )
        if begin._device is not end._device:
            raise UnsupportedOpError(
                f"elapsed_time: got events of {begin._device} and {end._device}; wanted two of one "
                "device"
            )
        if begin._queues is None:
            assert self._time is not None and end_event._time is not None
            return (end_event._time - self._time) * 1000.0
        self.synchronize()
        end_event.synchronize()
        with begin._naming():
            return float(begin._queues.elapsed_time(self._mark, end_event._mark))


class _Current(threading.local):
    """The current streams of a thread, by device; other devices use their default stream."""

    def __init__(self) -> None:
        self.streams: dict[Device, Stream] = {}


_current = _Current()


def default_stream() -> Stream:
    """Return the default stream of the current device, on which work runs if no stream is set."""
    return Stream(stream_id=0)


def communication_stream() -> Stream:
    """Return the stream of communication between devices: the default one."""
    return default_stream()


def current_stream() -> Stream:
    """Return this thread's current stream of the current device."""
    return _current.streams.get(registry.current_device()) or default_stream()


def set_cur_stream(stream: Stream) -> None:
    """Make a stream the current one of its device, for this thread.

    Raises:
        TypeError: `stream` is no Stream.
    """
    _check_stream("set_cur_stream", stream)._make_current()


class StreamCtx:
    """A context in which a stream is this thread's current one (`mindspore.runtime.StreamCtx`).

    Args:
        ctx_stream: the stream; None keeps the current one.
    """

    def __init__(self, ctx_stream: Stream | None) -> None:
        self._stream = None if ctx_stream is None else _check_stream("StreamCtx", ctx_stream)
        self._before: Stream | None = None

    def __enter__(self) -> None:
        if self._stream is not None:
            self._before = _current.streams.get(self._stream._device)
            self._stream._make_current()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._stream is None:
            return
        if self._before is not None:
            self._before._make_current()
            return
        _current.streams.pop(self._stream._device, None)
        if self._stream._queues is not None:
            with self._stream._naming():
                self._stream._queues.use_stream(None)


def synchronize() -> None:
    """Wait until all work of the current device has finished."""
    _device.synchronize()


def launch_blocking() -> None:
    """Make each op from now on wait for the device, so that an error is raised at its op's line."""
    context.set_context(pynative_synchronize=True)


# ---- memory ------------------------------------------------------------------------------------


def memory_stats(device: str | None = None) -> dict[str, object]:
    """Return the statistics of the current device's memory, under MindSpore's names, in bytes.

    Examples:
        >>> import duograph as ms
        >>> sorted(ms.runtime.memory_stats())[:2]
        ['common_mem_pool_stats', 'max_allocated_memory']
    """
    found = _device.memory_stats(device)
    in_use, cached = int(found.get("in_use", 0)), int(found.get("cached", 0))
    pool = {"block_unit_size": 0, "block_counts": 0, "blocks_info": {}}
    return {
        "total_reserved_memory": in_use + cached,
        "total_allocated_memory": in_use,
        "total_idle_memory": cached,
        "total_eager_free_memory": 0,
        "max_reserved_memory": max(max_memory_reserved(device), in_use + cached),
        "max_allocated_memory": int(found.get("peak", 0)),
        "common_mem_pool_stats": dict(pool),
        "persistent_mem_pool_stats": dict(pool),
    }


def max_memory_reserved(device: str | None = None) -> int:
    """Return the peak, in bytes, of the memory that a device's allocator has held.

    The device is `device`, or the current one for None. The result is at least what the allocator
    holds now, used and cached.
    """
    found = _device.memory_stats(device)
    in_use, cached = int(found.get("in_use", 0)), int(found.get("cached", 0))
    return max(int(found.get("peak", 0)), in_use + cached)


def memory_summary(device: str | None = None) -> str:
    """Return the statistics of a device's memory, by default the current one's, as a table."""
    rows = [(k, v) for k, v in memory_stats(device).items() if isinstance(v, int)]
    lines = [f"| {k.replace('_', ' '):24} | {v:>16,} B |" for k, v in rows]
    rule = "|" + "-" * (len(lines[0]) - 2) + "|"
    return "\n".join([rule, *lines, rule, ""])


def _no_reset(name: str) -> UnsupportedOpError:
    return UnsupportedOpError(
        f"{name}: the peak that a device counts cannot be reset; take differences of "
        "memory_allocated() instead"
    )


def reset_peak_memory_stats() -> None:
    """Raise NotImplementedError, because devices count their peak of memory from their start.

    Raises:
        NotImplementedError: always.
    """
    raise _no_reset("reset_peak_memory_stats")


def reset_max_memory_allocated() -> None:
    """Raise NotImplementedError, because devices count their peak of memory from their start."""
    raise _no_reset("reset_max_memory_allocated")


def reset_max_memory_reserved() -> None:
    """Raise NotImplementedError, because devices count their peak of memory from their start."""
    raise _no_reset("reset_max_memory_reserved")


# ---- settings without a meaning ----------------------------------------------------------------


def set_memory(
    init_size: str = "2GB",
    increase_size: str = "2GB",
    max_size: str = "1024GB",
    optimize_level: str = "O0",
    huge_page_reserve_size: str = "0GB",
) -> None:
    """Accept the settings of MindSpore's memory pool, without effect; one warning says so."""
    warn_moot("set_memory")


def set_cpu_affinity(
    enable_affinity: bool,
    affinity_cpu_list: list[str] | None = None,
    module_to_cpu_dict: dict[str, list[int]] | None = None,
    bind_file: str | None = None,
) -> None:
    """Accept a binding of threads to cores; it has no effect, and one warning says so."""
    warn_moot("set_cpu_affinity")


def set_kernel_launch_capture(
    enable_capture_graph: bool, op_capture_skip: list[str] | None = None
) -> None:
    """Accept the switch of MindSpore's capture of kernel launches, without effect; warn once."""
    warn_moot("set_kernel_launch_capture")


def set_kernel_launch_group(thread_num: int = 2, kernel_group_num: int = 8) -> None:
    """Accept a number of threads that launch kernels; it has no effect, and one warning says so."""
    warn_moot("set_kernel_launch_group")


def dispatch_threads_num(threads_num: int) -> None:
    """Accept a number of threads that dispatch ops; it has no effect, and one warning says so."""
    warn_moot("dispatch_threads_num")
