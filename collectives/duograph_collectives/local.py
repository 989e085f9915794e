"""The communication engine `local`, whose ranks are threads of one process.

Tests compare the other engines with it, and users run a program for several ranks under a
debugger::

    from duograph_collectives.local import run_ranks

    losses = run_ranks(train, 2)     # calls train() on two threads, which are rank 0 and rank 1

Each rank has its own random generator, parallel options and groups. All ranks use the same settings
of `set_context`, the same modules and the same objects in them.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

import numpy as np
from duograph.backend.collectives import Buffer, CollectivesSpec, Communicator, Request
from duograph.backend.hookspecs import hookimpl
from duograph.errors import CommunicationError
from duograph.random_state import Generator, default_generator
from duograph.ranks.world import World
from duograph.runtime_state import runtime_state, thread_state

__all__ = ["duograph_collectives", "run_ranks"]

Result = TypeVar("Result")


class _Shared:
    """State that all rank threads of one run have in common, guarded by the lock `changed`.

    Attributes:
        posted: key of a transfer -> rank -> the data that this rank has sent.
        taken: key of a transfer -> number of ranks that have received their results.
        reason: why the run has ended, or None.
        ended: the ranks whose function has returned.
    """

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.posted: dict[Hashable, dict[int, object]] = {}
        self.taken: dict[Hashable, int] = {}
        self.reason: str | None = None
        self.ended: set[int] = set()

    def post(self, key: Hashable, rank: int, data: object) -> None:
        """Store the data that a rank sends in the transfer `key`, so that receivers can take it."""
        with self.changed:
            self.posted.setdefault(key, {})[rank] = data
            self.changed.notify_all()

    def returned(self, rank: int) -> None:
        """Record that a rank's function has returned.

        Ranks that wait for data which it has not sent then fail.
        """
        with self.changed:
            self.ended.add(rank)
            self.changed.notify_all()

    def end(self, reason: str) -> None:
        """Make every rank that waits now or later fail with an error that names `reason`."""
        with self.changed:
            self.reason = self.reason or reason
            self.changed.notify_all()


class _Transfer(Request):
    """A transfer that is complete when all its senders have sent their data.

    `key` identifies the transfer. `senders` is a dict from rank in the group to rank among all
    ranks. `take` receives the data by rank in the group; `readers` is the number of ranks that
    receive data.
    """

    def __init__(
        self,
        shared: _Shared,
        key: Hashable,
        senders: dict[int, int],
        readers: int,
        take: Callable[[dict[int, Any]], None],
    ) -> None:
        self._shared, self._key, self._senders = shared, key, senders
        self._readers, self._take, self._done = readers, take, False

    def test(self) -> bool:
        return self.wait(0.0)

    def wait(self, seconds: float) -> bool:
        shared, end = self._shared, time.monotonic() + seconds
        with shared.changed:
            while not self._done:
                posted = shared.posted.get(self._key, {})
                missing = [w for r, w in self._senders.items() if r not in posted]
                if not missing:
                    self._take(posted)
                    self._done = True
                    shared.taken[self._key] = shared.taken.get(self._key, 0) + 1
                    if shared.taken[self._key] == self._readers:
                        del shared.posted[self._key], shared.taken[self._key]
                elif shared.reason is not None:
                    raise CommunicationError(shared.reason)
                elif not shared.ended.isdisjoint(missing):
                    ended = min(shared.ended.intersection(missing))
                    raise CommunicationError(f"rank {ended} has ended")
                else:
                    left = end - time.monotonic()
                    if left <= 0:
                        return False
                    shared.changed.wait(min(left, 1.0))
        return True


class _Sent(Request):
    """A message that was sent; the request is complete from the start."""

    def test(self) -> bool:
        return True


class LocalCommunicator(Communicator):
    """A group of rank threads, from the viewpoint of one of them."""

    def __init__(
        self, shared: _Shared, name: tuple[object, ...], rank: int, ranks: Sequence[int]
    ) -> None:
        self.rank, self.size = rank, len(ranks)
        self._ranks = tuple(ranks)  # of the world
        self._shared, self._name = shared, name
        self._count = 0  # of collectives so far; the n-th ones of the ranks belong together
        self._messages: dict[tuple[int, int, int], int] = {}
        self._splits: dict[tuple[int, ...], int] = {}

    def _meet(self, data: object, take: Callable[[dict[int, Any]], None]) -> Request:
        key = (self._name, self._count)
        self._count += 1
        self._shared.post(key, self.rank, data)
        return _Transfer(self._shared, key, dict(enumerate(self._ranks)), self.size, take)

    def all_gather(self, sent: Buffer, received: Buffer) -> Request:
        def take(posted: dict[int, Any]) -> None:
            received[:] = np.concatenate([posted[r] for r in range(self.size)])

        return self._meet(sent.copy(), take)

    def all_to_all(
        self, sent: Buffer, counts: Sequence[int], received: Buffer, receives: Sequence[int]
    ) -> Request:
        ends = np.cumsum([0, *counts])
        parts = [sent[a:b].copy() for a, b in itertools.pairwise(ends)]

        def take(posted: dict[int, Any]) -> None:
            received[:] = np.concatenate([posted[r][self.rank] for r in range(self.size)])

        return self._meet(parts, take)

    def broadcast(self, data: Buffer, root: int) -> Request:
        def take(posted: dict[int, Any]) -> None:
            data[:] = posted[root]

        return self._meet(data.copy() if self.rank == root else None, take)

    def _message(self, source: int, to: int, tag: int) -> tuple[object, ...]:
        count = self._messages.get((source, to, tag), 0)
        self._messages[source, to, tag] = count + 1
        return (self._name, "message", source, to, tag, count)

    def send(self, data: Buffer, to: int, tag: int) -> Request:
        self._shared.post(self._message(self.rank, to, tag), self.rank, data.copy())
        return _Sent()

    def receive(self, data: Buffer, source: int, tag: int) -> Request:
        def take(posted: dict[int, Any]) -> None:
            data[:] = posted[source]

        key = self._message(source, self.rank, tag)
        return _Transfer(self._shared, key, {source: self._ranks[source]}, 1, take)

    def split(self, ranks: Sequence[int]) -> Communicator:
        members = tuple(ranks)
        again = self._splits.get(members, 0)
        self._splits[members] = again + 1
        name = (*self._name, members, again)
        world = [self._ranks[r] for r in members]
        return LocalCommunicator(self._shared, name, members.index(self.rank), world)

    def abort(self, reason: str, status: int = 1) -> None:
        self._shared.end(reason)


def run_ranks(function: Callable[..., Result], size: int, *args: object) -> list[Result]:
    """Call a function on `size` threads, each of which is a rank; return the results.

    Args:
        function: the function, called with `args` on every rank.
        size: number of ranks.

    Returns:
        The results of all ranks, in the order of the ranks.

    Raises:
        Exception: the first exception that a rank has raised. The other ranks end at their next
            collective.

    Examples:
        >>> import duograph as ms
        >>> from duograph_collectives.local import run_ranks
        >>> def total():
        ...     return ms.ops.AllReduce()(ms.Tensor([ms.communication.get_rank() + 1.0]))
        >>> print(run_ranks(total, 2)[1])
        [3.]
    """
    shared = _Shared()
    results: list[Any] = [None] * size
    failed: list[BaseException] = []
    state = default_generator.get_state()

    def run(rank: int) -> None:
        thread_state.world = World("local", LocalCommunicator(shared, (), rank, range(size)))
        thread_state.generator = Generator()
        thread_state.generator.set_state(state)
        try:
            results[rank] = function(*args)
            shared.returned(rank)
        except BaseException as error:  # noqa: BLE001 (it is raised again below)
            failed.append(error)
            shared.end(f"rank {rank} has ended with {type(error).__name__}: {error}")

    threads = [
        threading.Thread(target=run, args=(r,), name=f"rank {r}", daemon=True) for r in range(size)
    ]
    runtime_state.enter_thread_world()
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        shared.end("the main thread has ended")
        runtime_state.leave_thread_world()
    if failed:
        raise failed[0]
    return results


def _refuse_world() -> Communicator:
    raise CommunicationError("ranks that are threads are started by run_ranks")


@hookimpl
def duograph_collectives() -> CollectivesSpec:
    """Return the specification of the engine `local`, which `run_ranks` starts."""
    return CollectivesSpec("local", world=_refuse_world, claims=lambda: False)
