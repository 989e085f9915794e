"""A small backend of two devices, which counts the copies through the host, for tests.

Its memory is NumPy's. A handle knows its device, and a kernel refuses handles of the other one.
"""

from __future__ import annotations

import collections
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from duograph.backend import registry
from duograph.backend.dlpack import array_of, capsule_of, device_of
from duograph.backend.protocol import BackendSpec, DeviceInfo
from duograph_reference.backend import Reference

__all__ = ["Held", "Two", "registered"]

# DLPack's type of devices without a standard (kDLExtDev), so that no other library takes them.
KIND = 12


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


@contextmanager
def registered(kind: type[Two] = Two, **members: Any) -> Iterator[Two]:
    """Return a context manager in which a `Two` with some replaced members is registered."""
    made = type(kind.name, (kind,), members)()
    registry.register(BackendSpec(kind.name, lambda: made, priority=None))
    try:
        yield made
    finally:
        registry.unregister(kind.name)
