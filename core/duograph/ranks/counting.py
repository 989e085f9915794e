"""Counting of the bytes that a rank sends, for the profiler.

`Group` wraps the communicator of its engine in a `CountingCommunicator`. A broadcast counts as one
copy for each other rank, whatever route the engine takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..backend.collectives import (
    Buffer,
    Communicator,
    DeviceRequest,
    DeviceTransfers,
    Part,
    Request,
)

if TYPE_CHECKING:
    from ..backend.prepared import Handle
    from ..backend.protocol import Backend
    from ..dtype import DType

__all__ = ["CountingCommunicator"]


class CountingCommunicator(Communicator):
    """A communicator that forwards calls to another one and counts the bytes that this rank sends.

    Attributes:
        sent: bytes that this rank has sent to other ranks through it.
    """

    def __init__(self, inner: Communicator) -> None:
        self.inner = inner
        self.rank, self.size = inner.rank, inner.size
        self.idle_polls = inner.idle_polls
        self.sent = 0

    def all_gather(self, sent: Buffer, received: Buffer) -> Request:
        self.sent += sent.nbytes * (self.size - 1)
        return self.inner.all_gather(sent, received)

    def all_to_all(
        self, sent: Buffer, counts: Sequence[int], received: Buffer, receives: Sequence[int]
    ) -> Request:
        self.sent += sum(counts) - counts[self.rank]
        return self.inner.all_to_all(sent, counts, received, receives)

    def broadcast(self, data: Buffer, root: int) -> Request:
        self.sent += data.nbytes * (self.size - 1) if self.rank == root else 0
        return self.inner.broadcast(data, root)

    def send(self, data: Buffer, to: int, tag: int) -> Request:
        self.sent += data.nbytes
        return self.inner.send(data, to, tag)

    def receive(self, data: Buffer, source: int, tag: int) -> Request:
        return self.inner.receive(data, source, tag)

    def all_reduce(self, data: Buffer, received: Buffer, reduction: str) -> Request | None:
        request = self.inner.all_reduce(data, received, reduction)
        if request is not None:  # what each rank must send at least
            self.sent += 2 * data.nbytes * (self.size - 1) // self.size
        return request

    def split(self, ranks: Sequence[int]) -> Communicator:
        return self.inner.split(ranks)

    def abort(self, reason: str, status: int = 1) -> None:
        self.inner.abort(reason, status)

    def serves(self, backend: Backend, device_id: int) -> bool:
        return self.inner.serves(backend, device_id)

    def on_device(self, backend: Backend, device_id: int, name: str) -> DeviceTransfers:
        return _CountingTransfers(self, self.inner.on_device(backend, device_id, name))

    def close(self) -> None:
        self.inner.close()


class _CountingTransfers(DeviceTransfers):
    """Transfers of device arrays that forward calls and add the bytes sent to `total.sent`."""

    def __init__(self, total: CountingCommunicator, inner: DeviceTransfers) -> None:
        self.total, self.inner = total, inner

    def mark(self) -> object:
        return self.inner.mark()

    def allocate(self, nbytes: int) -> Handle:
        return self.inner.allocate(nbytes)

    def reduces(self, dtype: DType, reduction: str) -> bool:
        return self.inner.reduces(dtype, reduction)

    def exchange(
        self, sends: Sequence[Part], receives: Sequence[Part], after: object
    ) -> DeviceRequest:
        self.total.sent += sum(p.nbytes for p in sends if p.rank != self.total.rank)
        return self.inner.exchange(sends, receives, after)

    def all_reduce(
        self,
        pairs: Sequence[tuple[Handle, Handle, int]],
        dtype: DType,
        reduction: str,
        after: object,
    ) -> DeviceRequest:
        size, nbytes = self.total.size, sum(n for _, _, n in pairs) * dtype.itemsize
        self.total.sent += 2 * nbytes * (size - 1) // size  # what each rank must send at least
        return self.inner.all_reduce(pairs, dtype, reduction, after)

    def reduce_scatter(
        self, x: Handle, out: Handle, count: int, dtype: DType, reduction: str, after: object
    ) -> DeviceRequest:
        self.total.sent += count * dtype.itemsize * (self.total.size - 1)
        return self.inner.reduce_scatter(x, out, count, dtype, reduction, after)

    def all_gather(self, x: Handle, out: Handle, nbytes: int, after: object) -> DeviceRequest:
        self.total.sent += nbytes * (self.total.size - 1)
        return self.inner.all_gather(x, out, nbytes, after)

    def broadcast(
        self, x: Handle, out: Handle, nbytes: int, root: int, after: object
    ) -> DeviceRequest:
        self.total.sent += nbytes * (self.total.size - 1) if self.total.rank == root else 0
        return self.inner.broadcast(x, out, nbytes, root, after)

    def close(self) -> None:
        self.inner.close()
