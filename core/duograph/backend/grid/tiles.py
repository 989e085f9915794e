"""Tile sizes of matmul kernels: how large a part of the result a work item keeps in registers.

The sizes affect the speed of a matmul, never its result. `GridDevice.tiles` holds the choice. A
backend may measure which size is best (`measure`, for `duograph tune`) and store it.
"""

from __future__ import annotations

import dataclasses
import math
import time
from typing import TYPE_CHECKING

import numpy as np

from ...dtype import float32
from ...op import OPS
from ...types import TensorType

if TYPE_CHECKING:
    from .backend import GridBackend
    from .device import GridDevice

__all__ = [
    "GROUP",
    "PROCESSOR",
    "SHORT_VECTORS",
    "GroupTiles",
    "Tiles",
    "best_of",
    "choices_of",
    "measure",
    "side_of",
]

# Rounds of measurement, and calls of each choice in a round; choices alternate within a round.
ROUNDS, CALLS = 9, 3
# Factor by which a choice must be faster than the default; smaller differences are noise.
WORTH = 1.03


@dataclasses.dataclass(frozen=True)
class Tiles:
    """The tile size of a matmul on a CPU, for 4-byte sums; 8-byte sums halve the rows.

    Attributes:
        rows: number of rows of results in registers.
        vectors: number of vectors, of sixteen columns each, in registers.
    """

    rows: int
    vectors: int

    @property
    def strip(self) -> int:
        """Number of result rows of a work item: the largest multiple of `rows` up to 64."""
        return self.rows * (64 // self.rows)

    def __str__(self) -> str:
        return f"{self.rows}x{16 * self.vectors} in registers"


@dataclasses.dataclass(frozen=True)
class GroupTiles:
    """The tile size of a matmul on a grid of parallel work items.

    Attributes:
        each: number of rows, and of columns, of the square of results that a work item keeps in
            registers.
        deep: number of elements along the summed axis that are in shared memory at a time, between
            two barriers. Kernels lower it for sums of 8 bytes and on devices with little shared
            memory.
    """

    each: int
    deep: int

    def __str__(self) -> str:
        return f"{self.each}x{self.each} in registers, {self.deep} deep in group memory"


# The choices; the first is the default. It suits 32 registers of 512 bits.
PROCESSOR = tuple(Tiles(*t) for t in ((8, 2), (4, 1), (6, 1), (4, 2), (12, 2), (14, 2), (8, 3)))
# The default for 16 registers of 256 bits: 12 of them hold sums. With LLVM 14, which compiles for
# such registers, it is 1.5 times as fast as the first choice.
SHORT_VECTORS = PROCESSOR[2]
GROUP = tuple(GroupTiles(*t) for t in ((4, 16), (4, 8), (4, 32), (8, 8), (8, 16), (2, 16)))


def choices_of(device: GridDevice) -> tuple[Tiles, ...] | tuple[GroupTiles, ...]:
    """Return the matmul tile sizes to choose from for a device, its default first."""
    return PROCESSOR if device.serial else GROUP


def side_of(device: GridDevice) -> int:
    """Return the size of the square matrices with which `duograph tune` measures tile sizes."""
    return 512 if device.serial else 2048


def measure(backend: GridBackend, device_id: int, side: int) -> dict[Tiles | GroupTiles, float]:
    """Time a float32 matmul of `side` x `side` matrices with each tile size.

    Returns a dict from tile size to the seconds per call in its fastest round of CALLS calls. The
    device's tile size is restored afterwards.
    """
    device = backend.device(device_id)
    before = device.tiles
    ones = np.ones((side, side), np.float32)
    x, y = device.copy_in(ones), device.copy_in(ones)
    type_ = TensorType.of(ones.shape, float32)
    calls = {}
    try:
        for tiles in choices_of(device):
            device.tiles = tiles
            call = backend.prepare(
                OPS["matmul"],
                (type_, type_),
                {"transpose_a": False, "transpose_b": False},
                device_id,
            )
            assert call is not None  # every grid device multiplies float32
            call(x, y)
            calls[tiles] = call
    finally:
        device.tiles = before
    found: dict[Tiles | GroupTiles, float] = dict.fromkeys(calls, math.inf)
    for _ in range(ROUNDS):
        for tiles, call in calls.items():
            device.synchronize()
            start = time.perf_counter()
            for _ in range(CALLS):
                call(x, y)
            device.synchronize()
            found[tiles] = min(found[tiles], (time.perf_counter() - start) / CALLS)
    return found


def best_of(found: dict[Tiles | GroupTiles, float]) -> Tiles | GroupTiles:
    """Return the fastest tile size; `found` is a result of `measure`.

    The default, which comes first, is returned unless another size is faster by a factor of more
    than WORTH.
    """
    default = next(iter(found))
    fastest = min(found, key=lambda tiles: found[tiles])
    return fastest if found[fastest] * WORTH < found[default] else default
