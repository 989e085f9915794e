"""Tiles of matrix products: the part of a result that a work item keeps in registers.

They change how fast a product is and not what it gives. A backend may measure which is best
(`measure`, for `duograph tune`) and keep that.
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
    "GroupTiles",
    "Tiles",
    "best_of",
    "choices_of",
    "measure",
    "side_of",
]

# Products are measured so many times in turn, this many calls together.
ROUNDS, CALLS = 9, 3
# Another choice than the default must be so much faster: less than this is noise.
WORTH = 1.03


@dataclasses.dataclass(frozen=True)
class Tiles:
    """The tile of a processor's product, for sums of 4 bytes; sums of 8 bytes take half the rows.

    Attributes:
        rows: of results in registers.
        vectors: of sixteen columns each in registers.
    """

    rows: int
    vectors: int

    @property
    def strip(self) -> int:
        """Rows of results that one work item computes: whole tiles, about 64."""
        return self.rows * (64 // self.rows)

    def __str__(self) -> str:
        return f"{self.rows}x{16 * self.vectors} in registers"


@dataclasses.dataclass(frozen=True)
class GroupTiles:
    """The tile of a product on a grid.

    Attributes:
        each: rows, and columns, of results that an item keeps in registers.
        deep: products between barriers; as many elements of each line are in group memory. Sums of
            8 bytes, and devices with little group memory, take fewer.
    """

    each: int
    deep: int

    def __str__(self) -> str:
        return f"{self.each}x{self.each} in registers, {self.deep} deep in group memory"


# The choices; the first is the default. It suits 32 registers of 512 bits; of those that were
# measured it is also what compilers do best with fewer or shorter ones.
PROCESSOR = tuple(Tiles(*t) for t in ((8, 2), (4, 1), (6, 1), (4, 2), (12, 2), (14, 2), (8, 3)))
GROUP = tuple(GroupTiles(*t) for t in ((4, 16), (4, 8), (4, 32), (8, 8), (8, 16), (2, 16)))


def choices_of(device: GridDevice) -> tuple[Tiles, ...] | tuple[GroupTiles, ...]:
    """The tiles that the device may take, its default first."""
    return PROCESSOR if device.serial else GROUP


def side_of(device: GridDevice) -> int:
    """Rows and columns of the matrices whose product is measured."""
    return 512 if device.serial else 2048


def measure(backend: GridBackend, device_id: int, side: int) -> dict[Tiles | GroupTiles, float]:
    """Seconds of a float32 product of so many rows and columns with each choice, the shortest of
    several.
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
    """The fastest choice, the default (the first) where it is about as fast."""
    default = next(iter(found))
    fastest = min(found, key=lambda tiles: found[tiles])
    return fastest if found[fastest] * WORTH < found[default] else default
