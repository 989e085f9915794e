"""The choice among several prepared calls of an op by their measured times.

DUOGRAPH_CUDA_TUNE    `1` measures; otherwise the libraries' own first choices are used

Algorithms add in different orders, so that the choice decides the last bits of a result. Therefore
nothing is measured unless asked for, and the disk cache keeps each choice: later processes compute
the same bits.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from duograph.backend import disk_cache
from duograph.backend.protocol import Call
from duograph.errors import DeviceMemoryError

if TYPE_CHECKING:
    from .device import CudaDevice

__all__ = ["Candidate", "fastest", "wanted"]

# Version of the entries of the disk cache, and their suffix.
FORMAT, SUFFIX = "1", ".choice"
# Rounds whose shortest counts, and about how long the calls of a round should take, in seconds.
ROUNDS, ROUND = 3, 5e-4
MOST_CALLS = 20


class Candidate(NamedTuple):
    """One way to compute an op: its name, and a function that prepares the call or returns None."""

    name: str
    make: Callable[[], Call | None]


def wanted() -> bool:
    """Return whether DUOGRAPH_CUDA_TUNE asks for choices by time."""
    return os.environ.get("DUOGRAPH_CUDA_TUNE", "0") == "1"


def fastest(
    device: CudaDevice, what: str, candidates: Sequence[Candidate], sizes: Sequence[int]
) -> Call | None:
    """Return the prepared call that takes the least time, as this or an earlier process measured.

    Args:
        device: the device.
        what: text that tells this op and its types from all others.
        candidates: ways to compute it.
        sizes: bytes of the operands.
    """
    key = disk_cache.key_of("cuda choice", FORMAT, device.name, what)
    known = disk_cache.read(key, SUFFIX)
    for candidate in candidates:
        if known is not None and candidate.name == known.decode():
            call = candidate.make()
            if call is not None:
                return call
    best, chosen, name = float("inf"), None, ""
    with device.lock:  # nothing else runs on the device's stream meanwhile
        operands = [device.allocate(nbytes, "tuning") for nbytes in sizes]
        for candidate in candidates:
            call = candidate.make()
            if call is None:
                continue
            try:
                taken = _seconds(device, lambda call=call: call(*operands), best)  # type: ignore[misc]
            except DeviceMemoryError:
                continue
            if taken < best:
                best, chosen, name = taken, call, candidate.name
    if chosen is not None:
        disk_cache.store(key, SUFFIX, name.encode())
    return chosen


def _seconds(device: CudaDevice, run: Callable[[], object], best: float) -> float:
    """Return how long a call takes on the device; only roughly if it is far from the best."""

    def taken(calls: int) -> float:
        device.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            run()
        device.synchronize()
        return (time.perf_counter() - start) / calls

    run()  # loads the kernels
    once = taken(1)
    if once > 3 * best:
        return once
    calls = max(1, min(MOST_CALLS, round(ROUND / once)))
    return min(taken(calls) for _ in range(ROUNDS))
