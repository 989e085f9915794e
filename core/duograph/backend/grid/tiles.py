"""Tiles of the matrix product on a processor: the part of a result that is kept in registers.

They change how fast a product is and not what it gives. A backend may measure which is best (`measure`, for `duograph
tune`) and keep that.
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

__all__ = ["CHOICES", "DEFAULT", "SIDE", "Tiles", "best_of", "measure"]

# Products of matrices of this many rows and columns are measured, so many times in turn, this many calls together.
SIDE, ROUNDS, CALLS = 512, 9, 3
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
        return f"{self.rows}x{16 * self.vectors}"


# For 32 registers of 512 bits; also what compilers do best with fewer or shorter ones, of those that were measured.
DEFAULT = Tiles(8, 2)
CHOICES = tuple(Tiles(*t) for t in ((4, 1), (6, 1), (4, 2), (8, 2), (12, 2), (14, 2), (8, 3)))


def measure(backend: GridBackend, device_id: int) -> dict[Tiles, float]:
    """Seconds of a float32 product of `SIDE` rows and columns with each choice, the shortest of several."""
    device = backend.device(device_id)
    before = device.tiles
    ones = np.ones((SIDE, SIDE), np.float32)
    x, y = device.copy_in(ones), device.copy_in(ones)
    type_ = TensorType.of(ones.shape, float32)
    calls = {}
    try:
        for tiles in CHOICES:
            device.tiles = tiles
            call = backend.prepare(
                OPS["matmul"], (type_, type_), {"transpose_a": False, "transpose_b": False}, device_id
            )
            assert call is not None  # every grid device multiplies float32
            call(x, y)
            calls[tiles] = call
    finally:
        device.tiles = before
    found = dict.fromkeys(CHOICES, math.inf)
    for _ in range(ROUNDS):
        for tiles, call in calls.items():
            device.synchronize()
            start = time.perf_counter()
            for _ in range(CALLS):
                call(x, y)
            device.synchronize()
            found[tiles] = min(found[tiles], (time.perf_counter() - start) / CALLS)
    return found


def best_of(found: dict[Tiles, float]) -> Tiles:
    """The fastest choice, the default where it is about as fast."""
    fastest = min(found, key=lambda tiles: found[tiles])
    return fastest if found[fastest] * WORTH < found[DEFAULT] else DEFAULT
