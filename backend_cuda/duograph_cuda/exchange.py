"""Copies buffers asynchronously between CUDA devices and to the host, and exchanges them by DLPack.

The methods of `Cuda` call it. All copies run on the streams of the devices; nothing here may wait
for a device, except `Download.wait`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from duograph.backend.dlpack import array_at, array_of, capsule_of, device_of
from duograph.dtype import as_dtype
from duograph.errors import ArgumentValueError
from duograph.op import OPS
from duograph.types import TensorType

from ._native import Memory

if TYPE_CHECKING:
    from duograph.backend.dlpack import Exporter
    from duograph.backend.protocol import Array

    from .backend import Cuda
    from .device import CudaDevice

__all__ = ["KIND", "Download", "Lent", "capsule", "copied", "imported"]

# DLPack's types of CUDA's device memory and managed memory.
KIND, MANAGED = 2, 13
# Libraries take the memory of an operand to begin at a multiple of so many bytes.
ALIGNMENT = 256
# DLPack's numbers of the default stream, and of no stream at all.
DEFAULT_STREAM, NO_STREAM = 1, -1

Shape = tuple[int, ...]


# ---- copies -------------------------------------------------------------------------------------


def copied(source: CudaDevice, handle: Memory, target: CudaDevice) -> Memory:
    """Queue a copy of a buffer to new memory of a device; return the handle of the copy.

    The copy runs on the stream of `source`. It waits for the work queued on the stream of `target`,
    which may still use that memory for another value, and later work on the stream of `target`
    waits for the copy.
    """
    made = target.allocate(handle.nbytes, "copy_between")
    if not handle.nbytes:
        return made
    if source is target:
        with source.lock:  # a program may move the value meanwhile
            places = made.pointer, handle.pointer
            source.checked(
                "copy_between", "cuMemcpyDtoDAsync", *places, handle.nbytes, source.stream
            )
        return made
    source.wait_for(target)
    with source.lock:
        source.checked(
            "copy_between",
            "cuMemcpyPeerAsync",
            made.pointer,
            target.context,
            handle.pointer,
            source.context,
            handle.nbytes,
            source.stream,
        )
    target.wait_for(source)
    return made


class Download:
    """An asynchronous copy of a buffer to page-locked host memory, possibly not yet complete."""

    def __init__(
        self, device: CudaDevice, handle: Memory, shape: Shape, dtype: np.dtype[np.generic]
    ) -> None:
        self.device = device
        self.handle = handle
        self.out = np.empty(shape, dtype)
        self.place: tuple[int, int, object] | None = None
        if self.out.nbytes:
            with device.lock:
                device.counts["copies_out"] += 1
                device.await_all()
                self.place = device.staging.download(handle.pointer, self.out.nbytes)

    def wait(self) -> Array:
        """Wait for the copy; return the host array."""
        if self.place is not None:
            _, buffer, event = self.place
            self.device.checked("copy_out", "cuEventSynchronize", event)
            ctypes.memmove(self.out.ctypes.data, buffer, self.out.nbytes)
            self._give_back()
        record = self.device.record
        if record is not None and record.unread:
            record.look()
        return self.out

    def _give_back(self) -> None:
        place, self.place = self.place, None
        if place is not None:
            self.device.staging.give_back(*place)

    def __del__(self) -> None:
        if hasattr(self, "place"):
            self._give_back()


# ---- DLPack -------------------------------------------------------------------------------------


class Lent:
    """Owner of memory that another library uses; notifies the device when the library releases it.

    Args:
        device: the device.
        kept: the handles that keep the memory allocated.
        stream: the stream of the other library, on which queued work may still read the memory
            after the release; None if the library waits for that work itself.
    """

    def __init__(self, device: CudaDevice, kept: tuple[Memory, ...], stream: int | None) -> None:
        self.device = device
        self.kept = kept
        self.stream = stream

    def __del__(self) -> None:
        # not at once: a destructor may run anywhere, also while the stream captures
        if self.stream is not None:
            self.device.returned.append((self.kept, self.stream))


def capsule(
    device: CudaDevice,
    handle: Memory,
    shape: Shape,
    dtype: np.dtype[np.generic],
    stream: int | None,
    max_version: tuple[int, int] | None,
    kind: int,
) -> object:
    """Return a DLPack capsule of a buffer; later work on `stream` waits for its value.

    If the value is in the buffer of a captured program (`captured_graph`), which will overwrite the
    buffer, the value is first copied to separate memory.

    Args:
        stream: the consumer's stream as DLPack defines it; None is the default stream, and with -1
            nothing waits.
        max_version: newest DLPack version that the consumer knows; None means a version before 1.0.
        kind: DLPack's device type.

    Raises:
        ArgumentValueError: `stream` is no such number.
    """
    if stream is None:
        stream = DEFAULT_STREAM
    if not isinstance(stream, int) or stream == 0 or stream < NO_STREAM:
        raise ArgumentValueError(
            f"__dlpack__: got stream={stream!r}; wanted None, -1, 1, 2 or the address of a stream"
        )
    device.take_back()
    with device.lock:
        kept: tuple[Memory, ...] = (handle,)
        if handle.borrowed:
            own = copied(device, handle, device)
            handle.move(own)
            kept = (handle, own)
        if stream != NO_STREAM:
            device.await_all()
            device.let_wait(stream)
        lent = Lent(device, kept, None if stream == NO_STREAM else stream)
        array = array_at(kept[-1].pointer, shape, dtype, lent)
    return capsule_of(array, (kind, device.index), max_version)


class _Borrowed:
    """Owner of another library's memory, which is released when queued work no longer reads it."""

    def __init__(self, device: CudaDevice, array: Array) -> None:
        self.device = device
        self.array = array

    def __del__(self) -> None:
        self.device.borrowed.append(self.array)  # until the stream was waited for


def imported(
    backend: Cuda, source: Exporter, device: CudaDevice, copy: bool, kinds: tuple[int, ...]
) -> tuple[Memory, Shape, np.dtype[np.generic]] | None:
    """Return (handle, shape, dtype) of another library's memory on a device, or None.

    Returns None if the memory is not on this device. The memory is copied if `copy` is true, if it
    is not dense, or if it does not begin at a multiple of `ALIGNMENT`; otherwise it is shared.
    `kinds` are the accepted DLPack device types.
    """
    where = device_of(source)
    if where[0] not in kinds or where[1] != device.index:
        return None
    device.take_back()
    array = array_of(source, where, int(device.stream))
    shape, dtype = array.shape, array.dtype
    if not array.size:
        return Memory(0, 0), shape, dtype
    owner = _Borrowed(device, array)
    pointer = array.ctypes.data
    if array.flags.c_contiguous and pointer % ALIGNMENT == 0:
        shared = Memory(pointer, array.nbytes, owner)
        return (copied(device, shared, device) if copy else shared), shape, dtype
    return _dense(backend, device, array, owner), shape, dtype


def _dense(backend: Cuda, device: CudaDevice, array: Array, owner: _Borrowed) -> Memory:
    """Queue a copy of strided device memory to new dense memory; return its handle.

    `array` describes the memory by its address, shape and strides, and `owner` keeps it allocated.

    Raises:
        BufferError: the elements are not aligned to their size.
    """
    size = array.itemsize
    reach = [(n - 1) * step for n, step in zip(array.shape, array.strides)]
    low = array.ctypes.data + sum(min(0, r) for r in reach)
    start = low - low % ALIGNMENT  # inside the same allocation, which begins at such a multiple
    end = array.ctypes.data + sum(max(0, r) for r in reach) + size
    if (array.ctypes.data - start) % size or any(step % size for step in array.strides):
        raise BufferError(f"from_dlpack: got elements of {size} bytes that are not aligned")
    around = Memory(start, end - start, owner)
    whole = TensorType.of(((end - start) // size,), as_dtype(array.dtype))
    call: Callable[..., Memory] | Any = backend.prepare(
        OPS["strided_copy"],
        (whole,),
        {
            "shape": array.shape,
            "strides": tuple([step // size for step in array.strides]),
            "offset": (array.ctypes.data - start) // size,
        },
        device.index,
    )
    made: Memory = call(around)
    return made
