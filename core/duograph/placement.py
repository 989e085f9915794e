"""Moves tensors' data to devices, creates deferred initial values, and parses device names.

An op copies host data to a device once, when it first uses it (`commit`). The module also has the
registry `watched` of buffers from which cached values were computed. Code that allows a buffer to
be overwritten, or assigns another buffer to a tensor, must call `release` to drop these values.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ._locks import new_lock
from .backend import registry
from .backend.checked_calls import shared, to_device
from .backend.protocol import Backend, Handle
from .dtype import DType
from .errors import DeviceDTypeError, DeviceError
from .runtime_state import runtime_state, thread_state
from .status_line import status_line
from .types import Device

if TYPE_CHECKING:
    from .host_arrays import Array
    from .tensor import Tensor

__all__ = [
    "Arriving", "check_dtype", "check_index", "commit", "commit_lock", "device_of", "materialise",
    "release", "settle", "thread_device", "watched",
]  # fmt: skip

# Held while a tensor's data moves from the host to a device.
commit_lock = new_lock()


class CachedValues(Protocol):
    """Interface of a cache of values computed from tensors' buffers; it can discard them."""

    def drop(self) -> None:
        """Discard the cached values, because a buffer that they were computed from may change."""


# By id of a handle: weak references to the values cached from its contents.
watched: dict[int, tuple[weakref.ref[Any], ...]] = {}


def release(handle: Handle) -> None:
    """Drop the values cached from a buffer, because its memory may be written from now on."""
    for ref in watched.get(id(handle), ()):
        cached: CachedValues | None = ref()
        if cached is not None:
            cached.drop()


# From so many values on, a line on the terminal says that they are made: it takes up to a second.
_MANY = 1 << 22


class Arriving:
    """The data of a tensor that is still being copied to the host.

    The tensor has it as `_init` until the copy has ended; a tensor whose data was never created has
    its Initializer there.

    Args:
        wait: function that waits for the copy and returns the array; called once.
        device: the device to which the tensor was moved, and to which the array is copied next.
    """

    def __init__(self, wait: Callable[[], Array], device: Device) -> None:
        self.wait = wait
        self.device = device

    def __call__(self, array: object) -> Array:
        return np.array(self.wait(), order="C")


def settle(t: Tensor) -> None:
    """Complete the move of a tensor between devices whose data is still being copied to the host.

    Waits for the data and copies it to the device to which the tensor was moved. Does nothing if no
    such copy is running.
    """
    init = getattr(t, "_init", None)
    if isinstance(init, Arriving):
        commit(t, init.device)


def materialise(t: Tensor) -> None:
    """Create the data of a tensor that was made with an Initializer, by running the Initializer.

    Does nothing for a tensor that has data.
    """
    if hasattr(t, "_init"):
        init = t._init
        array = np.empty(t._type.shape, t._type.dtype.np)
        made: Array | None = array
        if callable(init):
            many = array.size >= _MANY and not isinstance(init, Arriving)
            line = status_line(f"making {array.size:,} initial values") if many else nullcontext()
            with line:
                made = init(array)
        t._buf = np.ascontiguousarray(array if made is None else made, t._type.dtype.np).reshape(
            t._type.shape
        )
        del t._init


def commit(t: Tensor, device: Device, own: bool = False) -> None:
    """Copy a tensor's host data to a device, where the tensor stays from then on.

    Does nothing for a tensor that is on a device already.

    Args:
        t: the tensor, changed in place.
        device: the device.
        own: whether to copy to memory of the device even where the device could share the array's
            memory, so that a program may overwrite the buffer.

    Raises:
        DTypeError: the device has no such dtype.
    """
    with commit_lock:
        if t._type.device is not None:
            return
        materialise(t)
        backend = registry.backend(device.name)
        check_dtype(backend, t._type.dtype, device)
        array = t._buf
        handle = None if own else shared(backend, array, device.index)
        if handle is None:
            handle = to_device(backend, array, device.index)
        t._buf = handle  # before the type: a thread that reads the new type reads the new buffer
        t._type = t._type.on(device, t._type.level)
        runtime_state.bindings_version = object()


def check_dtype(backend: Backend, dtype: DType, device: Device) -> None:
    """Raise DeviceDTypeError if a device of `backend` has no tensors of a dtype."""
    if dtype not in backend.dtypes:
        raise DeviceDTypeError(
            f"{device}: got a {dtype.name} tensor; this device has "
            f"{', '.join(d.name for d in backend.dtypes)}"
        )


def device_of(text: str) -> Device:
    """Parse a device name such as ``"CPU"`` or ``"CPU:0"``; return the Device.

    Raises:
        DeviceError: no such backend, or it has no device of that index.
    """
    if not isinstance(text, str):
        raise DeviceError(f"device: got {text!r}; wanted the name of one, such as 'CPU' or 'CPU:0'")
    name, _, index = text.partition(":")
    known = registry.check_target(name)
    if index and not index.isdigit():
        raise DeviceError(f"device: got {text!r}; wanted NAME or NAME:INDEX")
    number = int(index or 0)
    check_index(known, number)
    return Device(known, number)


@contextmanager
def thread_device(device: Device) -> Iterator[None]:
    """Return a context manager that makes `device` the current device of this thread."""
    before = thread_state.device
    thread_state.device = device
    try:
        yield
    finally:
        thread_state.device = before


_checked_devices: set[tuple[str, int]] = set()


def check_index(name: str, index: int) -> None:
    """Raise DeviceError if a backend has no device of the given index."""
    if (name, index) in _checked_devices:
        return
    found = registry.backend(name).devices()
    if index not in [d.index for d in found]:
        raise DeviceError(
            f"device_id: got {index} for {name}; wanted "
            + (" or ".join(f"{d.index} ({d.name})" for d in found) or "another: it has no devices")
        )
    _checked_devices.add((name, index))
