"""A small backend of two devices, which counts the copies through the host, for tests.

Its memory is NumPy's. A handle knows its device, and a kernel refuses handles of the other one.
"""

from __future__ import annotations

import collections
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from duograph.backend import registry
from duograph.backend.dlpack import array_of, capsule_of, device_of
from duograph.backend.protocol import BackendSpec, DeviceInfo
from duograph.backend.streams import Streams
from duograph_reference.backend import Reference

__all__ = ["Held", "Queued", "Queues", "Two", "registered"]

# A device type of DLPack that no backend and no library here uses.
KIND = 15


class Held:
    """A handle: memory of one device."""

    def __init__(self, array: np.ndarray[Any, Any], device: int) -> None:
        self.array = array
        self.device = device


class Two(Reference):
    """A backend of two devices that copies between them, to the host, and by DLPack.

    Attributes:
        counts: number of calls of each method.
    """

    name = "Two"

    def __init__(self) -> None:
        self.counts: collections.Counter[str] = collections.Counter()
        self.lock = threading.Lock()

    def count(self, what: str) -> None:
        with self.lock:
            self.counts[what] += 1

    def devices(self) -> list[DeviceInfo]:
        return [DeviceInfo(0, "two"), DeviceInfo(1, "two")]

    def copy_in(self, array: np.ndarray[Any, Any], device_id: int) -> Any:
        self.count("in")
        return Held(np.array(array), device_id)

    def copy_out(self, handle: Any, shape: Any, dtype: Any, device_id: int) -> Any:
        self.count("out")
        return self.at(handle, device_id).reshape(shape).copy()

    def from_host(self, array: np.ndarray[Any, Any], device_id: int) -> Any:
        return None

    def nbytes(self, handle: Any, device_id: int) -> int:
        return self.at(handle, device_id).nbytes

    def at(self, handle: Any, device_id: int) -> np.ndarray[Any, Any]:
        """Return the memory of a handle, which must be on a device."""
        assert handle.device == device_id, f"memory of {handle.device} is used on {device_id}"
        return handle.array

    def prepare(self, op: Any, types: Any, attributes: Any, device_id: int) -> Any:
        call = super().prepare(op, types, attributes, device_id)
        if call is None:
            return None

        def run(*handles: Any) -> Any:
            found = call(*[None if h is None else self.at(h, device_id) for h in handles])
            if isinstance(found, tuple):
                return tuple(Held(f, device_id) for f in found)
            return Held(found, device_id)

        return run

    def copy_between(
        self, handle: Any, shape: Any, dtype: Any, source_id: int, target_id: int
    ) -> Any:
        self.count("between")
        return Held(self.at(handle, source_id).copy(), target_id)

    def copy_out_async(
        self, handle: Any, shape: Any, dtype: Any, device_id: int
    ) -> Callable[[], np.ndarray[Any, Any]] | None:
        self.count("started")

        def wait() -> np.ndarray[Any, Any]:
            self.count("waited")
            return self.at(handle, device_id).reshape(shape).copy()

        return wait

    def dlpack_device(self, device_id: int) -> tuple[int, int] | None:
        return KIND, device_id

    def to_dlpack(
        self, handle: Any, shape: Any, dtype: Any, device_id: int, stream: Any, max_version: Any
    ) -> Any:
        self.count("exported")
        array = self.at(handle, device_id).reshape(shape)
        return capsule_of(array, (KIND, device_id), max_version)

    def from_dlpack(self, source: Any, device_id: int, copy: bool) -> Any:
        where = device_of(source)
        if where[0] != KIND:
            return None
        self.count("imported")
        array = array_of(source, where)
        if copy or where[1] != device_id or not array.flags.c_contiguous:
            array = np.array(array, order="C")
        return Held(array, device_id), array.shape, array.dtype


class Queued(Two):
    """The same devices with streams: work runs as late as it may, and other streams' work first.

    A kernel of one stream that reads what another stream has not written yet finds -1 there.
    """

    name = "Queued"

    def __init__(self) -> None:
        super().__init__()
        self.queues = [Queues(self), Queues(self)]

    def streams(self, device_id: int) -> Any:
        return self.queues[device_id]

    def prepare(self, op: Any, types: Any, attributes: Any, device_id: int) -> Any:
        call = Reference.prepare(self, op, types, attributes, device_id)
        if call is None:
            return None
        results = op.infer_types(types, attributes)

        def run(*handles: Any) -> Any:
            made = [Held(np.full(t.shape, -1).astype(t.dtype.np), device_id) for t in results]
            read = [None if h is None else self.at(h, device_id) for h in handles]

            def work() -> None:
                found = call(*read)
                for held, array in zip(made, found if isinstance(found, tuple) else (found,)):
                    held.array[...] = array

            self.queues[device_id].launch(work)
            return made[0] if len(made) == 1 else tuple(made)

        return run

    def synchronize(self, device_id: int) -> None:
        self.queues[device_id].finish()

    def copy_out(self, handle: Any, shape: Any, dtype: Any, device_id: int) -> Any:
        self.synchronize(device_id)
        return super().copy_out(handle, shape, dtype, device_id)

    def copy_out_async(
        self, handle: Any, shape: Any, dtype: Any, device_id: int
    ) -> Callable[[], np.ndarray[Any, Any]] | None:
        self.count("started")
        return lambda: self.copy_out(handle, shape, dtype, device_id)

    def copy_between(
        self, handle: Any, shape: Any, dtype: Any, source_id: int, target_id: int
    ) -> Any:
        self.synchronize(source_id)
        return super().copy_between(handle, shape, dtype, source_id, target_id)


class Queues(Streams):
    """The streams of one device. A stream is a list of functions, an event a mark in a list."""

    def __init__(self, backend: Two) -> None:
        self.backend = backend
        self.lists: dict[Any, list[Any]] = {None: []}
        self.local = threading.local()
        self.lock = threading.RLock()

    def launch(self, work: Callable[[], None]) -> None:
        with self.lock:
            self.lists[getattr(self.local, "stream", None)].append(work)

    def run_until(self, stream: Any, mark: object) -> None:
        """Run the work of a stream up to a mark in it; all of it if the mark is None."""
        with self.lock:
            waiting = self.lists[stream]
            while waiting and (mark is None or mark in waiting):
                waiting.pop(0)()

    def finish(self) -> None:
        with self.lock:
            for stream in reversed(list(self.lists)):
                self.run_until(stream, None)

    def new_stream(self) -> Any:
        self.backend.count("new_stream")
        stream = f"stream {len(self.lists)}"
        self.lists[stream] = []
        return stream

    def use_stream(self, stream: Any) -> None:
        self.local.stream = stream

    def synchronize_stream(self, stream: Any) -> None:
        self.run_until(stream, None)

    def query_stream(self, stream: Any) -> bool:
        return not self.lists[stream]

    def record_event(self, stream: Any, timing: bool) -> Any:
        times: list[float] = []

        def mark() -> None:
            times.append(time.perf_counter())

        with self.lock:
            self.lists[stream].append(mark)
        return stream, mark, times if timing else None

    def wait_event(self, stream: Any, event: Any) -> None:
        with self.lock:
            self.lists[stream].append(lambda: self.synchronize_event(event))

    def synchronize_event(self, event: Any) -> None:
        stream, mark, _ = event
        self.run_until(stream, mark)

    def query_event(self, event: Any) -> bool:
        stream, mark, _ = event
        return mark not in self.lists[stream]

    def elapsed_time(self, begin: Any, end: Any) -> float:
        return 1000 * (end[2][-1] - begin[2][-1])


@contextmanager
def registered(kind: type[Two] = Two, **members: Any) -> Iterator[Two]:
    """Return a context manager in which a `Two` with some replaced members is registered."""
    made = type(kind.name, (kind,), members)()
    registry.register(BackendSpec(kind.name, lambda: made, priority=None))
    try:
        yield made
    finally:
        registry.unregister(kind.name)
