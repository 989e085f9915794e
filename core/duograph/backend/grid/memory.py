"""A pool of device buffers that caches freed buffers by size class, up to a limit.

Device drivers may use it to implement `GridDevice.allocate`. The pool must never wait for the
device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._locks import new_lock
from ...errors import DeviceMemoryError

__all__ = ["Block", "Pool"]


class Block:
    """A handle that owns a device buffer, which returns to its pool when the handle is deleted.

    Attributes:
        memory: the buffer, as an object of the driver.
        size: its size in bytes.
    """

    __slots__ = ("memory", "size", "_pool")

    def __init__(self, memory: Any, size: int, pool: Pool) -> None:
        self.memory = memory
        self.size = size
        self._pool = pool

    def __del__(self) -> None:
        self._pool.give_back(self.memory, self.size)


class Pool:
    """A pool of the buffers of one device, which reuses freed buffers by size class.

    Args:
        take: function that allocates a buffer from the driver, or raises DeviceMemoryError.
        free: function that returns a buffer to the driver.
        limit: most bytes of buffers in use and cached buffers together.
        name: name of the device, for messages.
        largest: most bytes of one buffer; None if only `limit` restricts them.

    Work on a device runs in order, so a buffer may be reused before the kernels that used it have
    run.
    """

    def __init__(
        self,
        take: Callable[[int], Any],
        free: Callable[[Any], None],
        limit: int,
        name: str,
        largest: int | None = None,
    ) -> None:
        self.take = take
        self.free = free
        self.limit = limit
        self.name = name
        self.largest = limit if largest is None else largest
        self.in_use = self.cached = self.peak = self.allocations = self.hits = 0
        self._free: dict[int, list[Any]] = {}
        self._lock = new_lock()

    def allocate(self, nbytes: int, what: str) -> Block:
        """Return the handle of a buffer of at least `nbytes` bytes, a freed one if possible.

        Raises:
            DeviceMemoryError: there is no memory even after the cache was emptied; the message
                names the op, `what`.
        """
        size = _class_of(nbytes)
        if size > self.largest:
            size = self._exact(nbytes, what)
        with self._lock:
            found = self._free.get(size)
            if found:
                memory = found.pop()
                self.cached -= size
                self.hits += 1
            else:
                memory = self._fresh(size, nbytes, what)
            self.in_use += size
            if self.in_use > self.peak:
                self.peak = self.in_use
        return Block(memory, size, self)

    def _exact(self, nbytes: int, what: str) -> int:
        """Return the size to allocate for a request that cannot be rounded up to its size class.

        The size class would exceed `largest`, the size of the largest buffer that the device can
        allocate. The result is the requested size itself, at least 1. `what` begins the message of
        an error.

        Raises:
            DeviceMemoryError: the request itself exceeds `largest`, and `largest` is below the
                limit of the pool.
        """
        if nbytes <= self.largest or self.largest >= self.limit:
            return max(nbytes, 1)
        raise DeviceMemoryError(
            f"{what}: no memory for {nbytes} bytes on {self.name}: one buffer there has at most "
            f"{self.largest} bytes. Work on smaller tensors"
        )

    def _fresh(self, size: int, nbytes: int, what: str) -> Any:
        self.allocations += 1
        if self.in_use + self.cached + size > self.limit:
            self.empty()
        if self.in_use + size <= self.limit:
            try:
                return self.take(size)
            except DeviceMemoryError:
                self.empty()
            try:
                return self.take(size)
            except DeviceMemoryError as error:
                raise self._error(nbytes, what, str(error)) from None
        raise self._error(nbytes, what, "the limit is reached")

    def _error(self, nbytes: int, what: str, why: str) -> DeviceMemoryError:
        return DeviceMemoryError(
            f"{what}: no memory for {nbytes} bytes on {self.name} ({why}); in use {self.in_use}, "
            f"cached {self.cached}, limit {self.limit} bytes. Free tensors, or work on smaller ones"
        )

    def give_back(self, memory: Any, size: int) -> None:
        """Take back a freed buffer of `size` bytes and keep it for reuse."""
        with self._lock:
            self.in_use -= size
            self.cached += size
            self._free.setdefault(size, []).append(memory)

    def empty(self) -> None:
        """Give all cached free buffers back to the driver."""
        with self._lock:
            for buffers in self._free.values():
                for memory in buffers:
                    self.free(memory)
            self._free.clear()
            self.cached = 0

    def stats(self) -> dict[str, int]:
        """Return the pool's statistics, by name.

        "in_use", "cached", "peak" (the most that was in use) and "limit" are bytes. "allocations"
        counts the buffers requested from the driver, "hits" the calls of `allocate` that a cached
        buffer served.
        """
        return {
            "in_use": self.in_use, "cached": self.cached, "peak": self.peak, "limit": self.limit,
            "allocations": self.allocations, "hits": self.hits,
        }  # fmt: skip


def _class_of(nbytes: int) -> int:
    """Return the size of the pool's buffers that serve a request of `nbytes` bytes.

    Sizes are rounded up to one of eight classes for each power of two; the smallest is 64 bytes.
    """
    if nbytes <= 64:
        return 64
    step = max(64, 1 << (nbytes.bit_length() - 4))
    return -(-nbytes // step) * step
