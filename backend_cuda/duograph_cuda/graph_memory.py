"""Plans the memory of a program that becomes a CUDA graph: all requests of a run in one arena.

`captured_graph` runs a program once with ordinary memory and a `Trace`, which records every memory
request and release. `Trace.arrange` assigns each request an offset in an arena as the device's own
pool would, so that the arena is about as large as the most memory that the first run used at any
time. While the stream captures, `Places` serves the same requests from that arena. Nothing here
captures or launches.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import TypeVar

from duograph.errors import DeviceError

from ._native import Memory, Pool

__all__ = ["Places", "Trace", "lent"]

Result = TypeVar("Result")

# Where the arena is said to begin while it is planned, a size that it never has, and the multiple
# to which the pool rounds requests.
BASE, ENDLESS, UNIT = 1 << 20, 1 << 60, 512


class Trace:
    """Records the memory requests and releases of one run of a program, and serves them by a pool.

    Attributes:
        sizes: size in bytes of each request.
        events: k for request number k and ~k for its release, in the order of the run.
        numbers: address -> number of the last request that was served with memory there.
    """

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.sizes: list[int] = []
        self.events: list[int] = []
        self.numbers: dict[int, int] = {}

    def allocate(self, nbytes: int, what: str) -> Memory:
        """Return memory of the pool and record the request.

        The release is recorded when the handle is deleted. `what` names the op in errors.
        """
        self.pool.lend(None)
        try:
            block = self.pool.allocate(nbytes, what)
        finally:
            self.pool.lend(self)
        number = len(self.sizes)
        self.sizes.append(nbytes)
        self.events.append(number)
        self.numbers[block.pointer] = number
        return Memory(block.pointer, nbytes, _Use(self, number, block))

    def alive(self) -> set[int]:
        """Return the numbers of the requests whose memory has not been released yet."""
        gone = {~e for e in self.events if e < 0}
        return set(range(len(self.sizes))) - gone

    def arrange(self, elsewhere: set[int]) -> tuple[dict[int, int], int]:
        """Return (dict from request number to byte offset in an arena, size of the arena in bytes).

        Requests whose numbers are in `elsewhere` are omitted.
        """
        pool = Pool(lambda *_: (BASE, ENDLESS), True, ENDLESS)
        offsets: dict[int, int] = {}
        held: dict[int, Memory] = {}
        top = 0
        for event in self.events:
            if event < 0:
                held.pop(~event, None)
            elif event not in elsewhere:
                held[event] = made = pool.allocate(self.sizes[event], "arena")
                offsets[event] = made.pointer - BASE
                top = max(top, offsets[event] + -(-made.nbytes // UNIT) * UNIT)
        return offsets, top


class _Use:
    """Owner of a memory block, which records in a trace when the block's handle is deleted."""

    def __init__(self, trace: Trace, number: int, block: Memory) -> None:
        self.trace = weakref.ref(trace)
        self.number = number
        self.block = block

    def __del__(self) -> None:
        trace = self.trace()
        if trace is not None:
            trace.events.append(~self.number)


class Places:
    """Serves the memory requests of a later run of a program with the planned memory.

    The run must make the same requests in the same order as the first one.

    Args:
        trace: the requests of the first run.
        arena: the memory to which `offsets` refer.
        offsets: request number -> byte offset in the arena.
        elsewhere: request number -> memory, for the requests that are not in the arena.
    """

    def __init__(
        self,
        trace: Trace,
        arena: Memory,
        offsets: Mapping[int, int],
        elsewhere: Mapping[int, Memory],
    ) -> None:
        self.sizes = trace.sizes
        self.arena = arena
        self.offsets = offsets
        self.elsewhere = elsewhere
        self.at = 0

    def allocate(self, nbytes: int, what: str) -> Memory:
        """Return the planned memory of the next request, for `nbytes` bytes.

        `what` names the op in the error.

        Raises:
            DeviceError: the first run requested another number of bytes at this point.
        """
        number, self.at = self.at, self.at + 1
        if number >= len(self.sizes) or self.sizes[number] != nbytes:
            raise DeviceError(f"{what}: asks for other memory than in its first run")
        own = self.elsewhere.get(number)
        if own is not None:
            return Memory(own.pointer, nbytes, own)
        return Memory(self.arena.pointer + self.offsets[number], nbytes, self.arena)


def lent(pool: Pool, lender: object, run: Callable[[], Result]) -> Result:
    """Call `run` while `lender.allocate` serves the pool's memory requests; return the result."""
    before = pool.lend(lender)
    try:
        return run()
    finally:
        pool.lend(before)
