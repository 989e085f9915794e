"""Uploads host arrays through page-locked buffers, so that the upload does not wait for kernels.

If the driver copies an array that is not page-locked, the call waits for the kernels that were
queued before. If the array is page-locked, the call returns before the driver has read the array,
and the caller could change it too early. `Staging` therefore copies an array of more than
`IMMEDIATE` and at most `LARGEST` bytes to a page-locked buffer of its own and queues the transfer
from there. A CUDA event tells when the buffer is free again. The driver copies smaller arrays at
once; the upload of a larger array waits until it is finished. Downloads of results that are read
later use the same buffers. `CudaDevice` and `exchange` call this module.
"""

from __future__ import annotations

import collections
import concurrent.futures
import ctypes
import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .device import CudaDevice

__all__ = ["Staging"]

# The driver copies arrays of at most so many bytes to its own buffers before the call returns,
# if they are not page-locked.
IMMEDIATE = 64 << 10
# Larger arrays go straight to the device, and the call waits for the transfer.
LARGEST = 64 << 20
# Arrays of more bytes are copied in pieces of this size by several threads; each piece is on its
# way while the next ones are copied.
PIECE = 2 << 20
THREADS = 4
# Bytes of page-locked memory that are kept, at most.
LIMIT = 256 << 20
SMALLEST = 1 << 20


@functools.cache
def _threads() -> concurrent.futures.ThreadPoolExecutor:
    """Return the pool of threads that copy large arrays, started at the first call."""
    return concurrent.futures.ThreadPoolExecutor(THREADS, "duograph-upload")


class Staging:
    """The page-locked buffers of one device, which are reused when their transfers are done."""

    def __init__(self, device: CudaDevice) -> None:
        self.device = device
        self.total = 0
        # by size, in the order of their transfers: (address, event)
        self._buffers: dict[int, collections.deque[tuple[int, object]]] = {}

    def upload(self, target: int, source: int, nbytes: int) -> None:
        """Copy host memory to the device; the caller may change the host memory afterwards.

        The copy is queued, and the call does not wait for the device, up to LARGEST bytes. A larger
        copy is made directly, and the call waits. `target` and `source` are addresses. The caller
        must hold the device's lock.
        """
        device = self.device
        if nbytes <= IMMEDIATE:
            kept = ctypes.string_at(source, nbytes)  # certainly not page-locked
            device.checked("copy_in", "cuMemcpyHtoDAsync", target, kept, nbytes, device.stream)
        elif nbytes > LARGEST:
            device.checked("copy_in", "cuMemcpyHtoDAsync", target, source, nbytes, device.stream)
            device.synchronize()
        else:
            size = max(SMALLEST, 1 << (nbytes - 1).bit_length())
            buffer, event = self._buffer(size)
            try:
                self._transfer(target, buffer, source, nbytes)
                device.checked("copy_in", "cuEventRecord", event, device.stream)
            finally:
                self._buffers[size].append((buffer, event))

    def download(self, source: int, nbytes: int) -> tuple[int, int, object]:
        """Queue a copy of device memory to a page-locked buffer.

        Returns (size of the buffer, its address, event behind the copy), which the caller must pass
        to `give_back` when it has read the buffer. The caller must hold the device's lock.
        """
        device = self.device
        size = max(SMALLEST, 1 << (nbytes - 1).bit_length())
        buffer, event = self._buffer(size)
        try:
            device.checked("copy_out", "cuMemcpyDtoHAsync", buffer, source, nbytes, device.stream)
            device.checked("copy_out", "cuEventRecord", event, device.stream)
        except BaseException:
            self.give_back(size, buffer, event)
            raise
        return size, buffer, event

    def give_back(self, size: int, buffer: int, event: object) -> None:
        """Mark the buffer of a download as free for reuse; destructors may call this.

        The parameters are the results of `download`.
        """
        self._buffers[size].append((buffer, event))

    def _transfer(self, target: int, buffer: int, source: int, nbytes: int) -> None:
        """Copy host memory to a page-locked buffer, and queue a transfer from there to the device.

        `target`, `buffer` and `source` are addresses.
        """
        device = self.device
        if nbytes <= PIECE:
            ctypes.memmove(buffer, source, nbytes)
            device.checked("copy_in", "cuMemcpyHtoDAsync", target, buffer, nbytes, device.stream)
            return
        pieces = [(at, min(PIECE, nbytes - at)) for at in range(0, nbytes, PIECE)]
        copies = [
            _threads().submit(ctypes.memmove, buffer + at, source + at, size) for at, size in pieces
        ]
        try:
            for (at, size), copy in zip(pieces, copies):
                copy.result()
                places = target + at, buffer + at
                device.checked("copy_in", "cuMemcpyHtoDAsync", *places, size, device.stream)
        finally:
            concurrent.futures.wait(copies)  # after an error the array may be gone

    def _buffer(self, size: int) -> tuple[int, object]:
        """Return (address, event) of a page-locked buffer of `size` bytes that no transfer uses.

        It is a free buffer of this size if there is one; otherwise a new buffer if the total size
        stays below LIMIT. If it does not, the oldest buffer of this size is returned after its
        transfer; if there is none, all buffers are freed and a new one is made.
        """
        device = self.device
        known = self._buffers.setdefault(size, collections.deque())
        if known:
            code, _ = device.tried("cuEventQuery", known[0][1])
            if code and self.total + size <= LIMIT:
                return self._new(size)
            buffer, event = known.popleft()
            if code:
                device.checked("copy_in", "cuEventSynchronize", event)
            return buffer, event
        if self.total + size > LIMIT:
            self.free()
        return self._new(size)

    def _new(self, size: int) -> tuple[int, object]:
        device = self.device
        event = device.checked(
            "copy_in",
            "cuEventCreate",
            int(device.driver.module.CUevent_flags.CU_EVENT_DISABLE_TIMING),
        )
        buffer = int(device.checked("copy_in", "cuMemHostAlloc", size, 0))
        self.total += size
        return buffer, event

    def free(self) -> None:
        """Wait for the transfers of all page-locked buffers and free the buffers."""
        device = self.device
        for size, known in self._buffers.items():
            while known:
                buffer, event = known.popleft()
                self.total -= size
                device.checked("empty_cache", "cuEventSynchronize", event)
                device.checked("empty_cache", "cuMemFreeHost", buffer)
                device.checked("empty_cache", "cuEventDestroy", event)
