"""Counts the bytes that a rank sends, for the profiler.

`Group` puts a `CountingCommunicator` around that of the engine. A broadcast counts as one copy for
each other rank, whatever way the engine takes.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..backend.collectives import Buffer, Communicator, Request

__all__ = ["CountingCommunicator"]


class CountingCommunicator(Communicator):
    """A communicator that forwards calls to another one and counts the bytes that it sends.

    Attributes:
        sent: bytes that this rank has sent to other ranks through it.
    """

    def __init__(self, inner: Communicator) -> None:
        self.inner = inner
        self.rank, self.size = inner.rank, inner.size
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

    def close(self) -> None:
        self.inner.close()
