"""CUDA kernels of the sums that batch normalisation needs of each channel (cuda/channels.cuh).

The CUDA backend's kernel table has the builders.
"""

from __future__ import annotations

import math
from typing import Any

from duograph.backend.grid import GridDevice, Plan
from duograph.backend.grid.kernel_writer import ceil_div
from duograph.dtype import float32, int64

from .rows import DTYPES
from .templates import launch_of

__all__ = ["KERNELS"]

FILES = ("vectors.cuh", "channels.cuh")
# Threads of a block; elements that a thread reads together; blocks for each multiprocessor;
# elements of a channel for one block at least.
THREADS, TOGETHER, BUSY, LEAST = 256, 16, 8, 8192


def _plan(
    device: GridDevice, x: Any, name: str, reads: Any, results: tuple[int, int]
) -> Plan | None:
    """Return the launches of a kernel that takes parts of channels, and of one that joins them.

    `reads` are its operands as pairs (dtype, position), `results` the positions of its results.
    """
    if x.dtype not in DTYPES or not x.size or x.size >= 1 << 32:
        return None
    images, channels, size = x.shape[0], x.shape[1], math.prod(x.shape[2:])
    v = 16 // x.dtype.itemsize
    if size % v:
        v = 1
    count = images * size
    parts = max(1, min(ceil_div(BUSY * device.units, channels), count // LEAST))
    shape = [(int64, m) for m in (images, channels, size)]
    last = [(float32, place) for place in results]
    there = last if parts == 1 else [(float32, max(results) + 1 + k) for k in range(2)]
    first = launch_of(
        FILES, name, (x.dtype,), (v, max(1, TOGETHER // max(v, 2))), [*reads, *there],
        [*shape, (int64, parts)], channels * parts, THREADS,
    )  # fmt: skip
    if parts == 1:
        return Plan((first,))
    numbers = [*shape, (int64, v)] if name == "channel_moments" else shape[1:2]
    joined = launch_of(
        FILES, f"{name}_joined", (), (), [*there, *last], [*numbers, (int64, parts)],
        ceil_div(channels, 64), 64,
    )  # fmt: skip
    return Plan((first, joined), (4 * channels * parts, 4 * channels * parts))


def batch_moments(device: GridDevice, types: Any, results: Any) -> Plan | None:
    """Return the launches of the mean and the variance of each channel, or None if unsupported."""
    (x,) = types
    return _plan(device, x, "channel_moments", [(x.dtype, 0)], (1, 2))


def batch_products(device: GridDevice, types: Any, results: Any) -> Plan | None:
    """Return the launches of the sums of dout and of dout times (x - mean), or None."""
    dout, x, _ = types
    reads = [(dout.dtype, 0), (x.dtype, 1), (float32, 2)]
    return _plan(device, x, "channel_products", reads, (3, 4))


KERNELS: dict[str, Any] = {"batch_moments": batch_moments, "batch_products": batch_products}
