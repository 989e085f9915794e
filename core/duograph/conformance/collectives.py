"""The conformance cases of communication engines: every transfer, with bytes that are known.

    duograph run -n 4 -m duograph.conformance.collectives

runs them on the ranks and the engine that a launcher started. They need no device, so that they are
no part of the suite of a backend. `check` runs them on a communicator.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..backend.collectives import Communicator, Request
from ..ranks.world import world

__all__ = ["CASES", "check", "main"]

Bytes: TypeAlias = "np.ndarray[Any, Any]"
LENGTHS = (0, 1, 7, 4096, 1_000_001)  # the last is more than engines and sockets buffer
SECONDS = 60.0


def _own(rank: int, n: int, salt: int = 0) -> Bytes:
    """Return the n bytes that a rank sends in a test."""
    return ((np.arange(n) * 7 + rank * 31 + salt * 13) % 251).astype(np.uint8)


def _finish(*requests: Request) -> None:
    """Wait for requests side by side: one may make no progress before another is complete."""
    end = time.monotonic() + SECONDS
    waiting = list(requests)
    while waiting:
        assert time.monotonic() < end, f"a transfer was not complete after {SECONDS:g} s"
        waiting = [r for r in waiting if not r.wait(1e-3)]
    assert all(r.test() for r in requests), "a complete transfer says that it is not"


def _same(found: Bytes, expected: Bytes) -> None:
    np.testing.assert_array_equal(found, expected)


def _all_gather(comm: Communicator, n: int) -> None:
    out = np.zeros(comm.size * n, np.uint8)
    _finish(comm.all_gather(_own(comm.rank, n), out))
    _same(out, np.concatenate([_own(r, n) for r in range(comm.size)]))


def _all_to_all(comm: Communicator, n: int) -> None:
    """Check all_to_all: rank r sends n + r + 2 * s bytes to rank s, but rank 0 none to itself."""

    def count(r: int, s: int) -> int:
        return 0 if r == s == 0 else n + r + 2 * s

    ranks = range(comm.size)
    counts, receives = [count(comm.rank, s) for s in ranks], [count(r, comm.rank) for r in ranks]
    sent = np.concatenate([_own(comm.rank, count(comm.rank, s), s) for s in ranks])
    out = np.zeros(sum(receives), np.uint8)
    _finish(comm.all_to_all(sent, counts, out, receives))
    _same(out, np.concatenate([_own(r, count(r, comm.rank), comm.rank) for r in ranks]))


def _broadcast(comm: Communicator, n: int) -> None:
    for root in range(comm.size):
        data = _own(comm.rank, n)
        _finish(comm.broadcast(data, root))
        _same(data, _own(root, n))


def _messages(comm: Communicator, n: int) -> None:
    """Check messages: each rank sends to the next one, and receives two tags in reverse order."""
    after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    if after == comm.rank:
        return
    sends = [comm.send(_own(comm.rank, n, tag), after, tag) for tag in (3, 5)]
    got = [np.zeros(n, np.uint8) for _ in range(2)]
    receives = [comm.receive(got[1], before, 5), comm.receive(got[0], before, 3)]
    _finish(*sends, *receives)
    for data, tag in zip(got, (3, 5), strict=True):
        _same(data, _own(before, n, tag))


def _in_order(comm: Communicator, n: int) -> None:
    """Check that messages of one tag arrive in the order of sending while a collective runs."""
    after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    out = np.zeros(comm.size * n, np.uint8)
    gathered = comm.all_gather(_own(comm.rank, n), out)
    for number in range(3 if comm.size > 1 else 0):
        sent = comm.send(_own(comm.rank, n, number), after, 0)
        data = np.zeros(n, np.uint8)
        received = comm.receive(data, before, 0)
        _finish(sent, received)
        _same(data, _own(before, n, number))
    _finish(gathered)
    _same(out, np.concatenate([_own(r, n) for r in range(comm.size)]))


def _groups(comm: Communicator, n: int) -> None:
    """Check groups: the ranks in reverse order, two halves (made twice), and one rank alone."""
    ranks = list(range(comm.size))
    halves = [ranks[::2], ranks[1::2]]
    mine = next(half for half in halves if comm.rank in half)
    for members in (ranks[::-1], mine, mine, [comm.rank]):
        part = comm.split(members)
        assert (part.rank, part.size) == (members.index(comm.rank), len(members))
        out = np.zeros(part.size * n, np.uint8)
        _finish(part.all_gather(_own(comm.rank, n), out))
        _same(out, np.concatenate([_own(r, n) for r in members]))
        part.close()


CASES: dict[str, Callable[[Communicator, int], None]] = {
    "all_gather": _all_gather, "all_to_all": _all_to_all, "broadcast": _broadcast,
    "messages": _messages, "messages in order": _in_order, "groups": _groups,
}  # fmt: skip


def check(comm: Communicator, lengths: Sequence[int] = LENGTHS) -> list[str]:
    """Run all cases on every rank of a communicator; return what failed, with the reasons.

    Args:
        comm: of any engine; all its ranks call this.
        lengths: numbers of bytes.
    """
    failed = []
    for name, case in CASES.items():
        for n in lengths:
            try:
                case(comm, n)
            except Exception as error:  # noqa: BLE001 (of the engine; it may be any)
                failed.append(f"{name} of {n} bytes on rank {comm.rank}: {error!r}")
                return failed  # the ranks may be at different cases now
    return failed


def main() -> None:
    """Check the engine of the ranks that a launcher started; exit with 1 if a case fails."""
    own = world()
    failed = check(own.whole.comm)
    if failed:
        sys.stderr.write("\n".join(failed) + "\n")
        sys.exit(1)
    if own.rank == 0:
        done = f"{len(CASES)} cases of {len(LENGTHS)} lengths on {own.size} ranks"
        sys.stdout.write(f"{own.engine}: {done}\n")


if __name__ == "__main__":
    main()
