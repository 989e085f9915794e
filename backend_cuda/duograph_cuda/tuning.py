"""Chooses among several prepared calls of an op by their measured times.

DUOGRAPH_CUDA_TUNE    `1` measures; otherwise the libraries' own first choices are used

`Cuda.prepare` and `cublaslt` call `fastest`. Algorithms add in different orders, so the choice
affects the last bits of a result. Therefore nothing may be measured unless the user switches
measurements on, and the disk cache keeps each choice, so that later processes compute the same
bits.
"""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from duograph.backend import disk_cache
from duograph.backend.protocol import Call
from duograph.errors import DeviceMemoryError

if TYPE_CHECKING:
    from .device import CudaDevice

__all__ = ["fastest", "wanted"]

# Version of the entries of the disk cache, and their suffix.
FORMAT, SUFFIX = "1", ".choice"
# Rounds of which the shortest counts, and the seconds that the calls of a round should take.
ROUNDS, ROUND = 2, 5e-4
MOST_CALLS = 20


def wanted() -> bool:
    """Return whether kernels are chosen by timing them, as DUOGRAPH_CUDA_TUNE=1 requests."""
    return os.environ.get("DUOGRAPH_CUDA_TUNE", "0") == "1"


def fastest(
    device: CudaDevice,
    what: str,
    candidates: Iterable[tuple[str, Call]],
    make: Callable[[str], Call | None],
    sizes: Sequence[int],
) -> Call | None:
    """Return the fastest of several prepared calls, as this or an earlier process has measured.

    Returns None if no candidate had enough memory to run, or `make` returns None for the fastest.

    Args:
        device: the device that runs the calls.
        what: text that identifies the op and its operand types, used as the key of the choice.
        candidates: (name, prepared call) of each way to compute the op; each is measured before the
            next is requested.
        make: function of a candidate's name that returns the prepared call of that name, or None.
        sizes: size in bytes of each operand.
    """
    key = disk_cache.key_of("cuda choice", FORMAT, device.name, what)
    known = disk_cache.read(key, SUFFIX)
    kept = None if known is None else make(known.decode())
    if kept is not None:
        return kept
    best, chosen = float("inf"), ""
    with device.alone:  # nothing else runs on the device's stream meanwhile
        operands = [device.allocate(nbytes, "tuning") for nbytes in sizes]
        for name, call in candidates:
            try:
                taken = _seconds(device, functools.partial(call, *operands), best)
            except DeviceMemoryError:
                continue
            if taken < best:
                best, chosen = taken, name
    if not chosen:
        return None
    with contextlib.suppress(OSError):  # the next process measures again
        disk_cache.store(key, SUFFIX, chosen.encode())
    return make(chosen)


def _seconds(device: CudaDevice, run: Callable[[], object], best: float) -> float:
    """Return the seconds that a call takes on the device.

    The call is measured only once if it is much slower than `best`, the shortest time so far.
    """

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
