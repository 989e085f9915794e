"""Launches of the stable radix sort in cuda/radix.cuh, by digits of 8 bits.

`sorting` calls `radix_passes`, and must convert values to unsigned keys in the same order first.
Nothing here runs a kernel.
"""

from __future__ import annotations

import functools
from typing import Any

from duograph.backend.grid import Launch
from duograph.backend.grid.kernel_writer import ceil_div
from duograph.dtype import DType, int32, int64, uint32

from .templates import launch_of

__all__ = ["BITS", "THREADS", "TILE", "radix_passes", "scratch_of"]

# Bits of a digit; threads of a block; elements that a block sorts together, and if there are few.
BITS, THREADS, TILE, FEW_TILE = 8, 256, 4096, 1024

launch = functools.partial(launch_of, ("vectors.cuh", "radix.cuh"))


def scratch_of(key: DType, rows: int, n: int) -> tuple[int, ...]:
    """Return the size in bytes of each of the six scratch buffers that `radix_passes` needs.

    The sizes are for sorting `rows` rows of `n` keys of dtype `key`.
    """
    counts = rows << BITS
    keys, ids = rows * n * key.itemsize, rows * n * 4
    return keys, ids, keys, ids, counts * ceil_div(n, _tile(key, rows * n)) * 4, counts * 4


def _tile(key: DType, size: int) -> int:
    return FEW_TILE if size < 128 * TILE else TILE * 4 // max(4, key.itemsize)


def radix_passes(key: DType, rows: int, n: int, bits: int, place: int) -> tuple[list[Launch], int]:
    """Return (launches that sort rows of unsigned keys, number of passes).

    The launches sort by the lowest `bits` bits of the keys. The six buffers from number `place` on
    have the sizes of `scratch_of`: keys, ids, keys and ids again, and two for counts. An id is the
    position of a key in its row before sorting. The keys must be in the first buffer. After all
    passes, sorted keys and ids are in the first two buffers if the number of passes is even, else
    in the next two.
    """
    tile = _tile(key, rows * n)
    tiles, each = ceil_div(n, tile), tile // THREADS
    counts, totals = (uint32, place + 4), (uint32, place + 5)
    found = []
    passes = ceil_div(bits, BITS)
    for k in range(passes):
        here, there = place + k % 2 * 2, place + (k + 1) % 2 * 2
        keys: Any = (key, here)
        sizes = [(int64, n), (int64, tiles), (int32, BITS * k)]
        found += [
            launch("radix_count", (key,), (each,), [keys, counts], sizes, rows * tiles, THREADS),
            launch(
                "radix_scan", (), (), [counts, totals], [(int64, rows << BITS), sizes[1]],
                ceil_div(rows << BITS, THREADS // 32), THREADS,
            ),
            launch(
                "radix_move", (key,), (each, k == 0),
                [keys, (uint32, here + 1), counts, totals, (key, there), (uint32, there + 1)],
                sizes, rows * tiles, THREADS,
            ),
        ]  # fmt: skip
    return found, passes
