"""CUDA kernels of argmax, argmin and scans along an axis (cuda/lines.cuh).

A line is the sequence of elements that differ only in their index along the axis. `Cuda.plan` finds
the builders in the backend's kernel table. Nothing here runs a kernel.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING

from duograph.backend.grid import GridDevice, Plan
from duograph.backend.grid.kernel_writer import ceil_div
from duograph.backend.grid.strides import split_at
from duograph.dtype import DType, bfloat16, float16, float32, int32, int64, uint32

from .templates import launch_of

if TYPE_CHECKING:
    from duograph.backend.grid.device import Launch
    from duograph.backend.grid.table import Builder, Types
    from duograph.types import TensorType

__all__ = ["KERNELS"]

# Threads of a block; the most elements of a line that one warp processes.
THREADS, SHORT = 256, 2048
# The fewest elements of a part of a line, for a block and for a thread. Lines are divided if fewer
# than this number of blocks, or of threads, would run on each multiprocessor.
ROW_PART, COLUMN_PART, BLOCKS, BUSY = 4096, 64, 8, 2048
# Elements that a thread accesses together in scans; bytes that it reads together for an extreme.
PACK, BYTES = 4, 16
SUMS, PRODUCTS, MOST, LEAST = range(4)

launch = functools.partial(launch_of, ("vectors.cuh", "lines.cuh"))


@dataclasses.dataclass(frozen=True)
class Lines:
    """The lines of a tensor along an axis, and how they are divided among threads.

    Attributes:
        count: number of lines.
        n: number of elements of a line.
        step: stride of the axis, in elements. If it is 1, a block of threads processes each part of
            a line, otherwise one thread does.
        parts: number of parts into which each line is divided.
        each: number of elements of a part.
    """

    count: int
    n: int
    step: int
    parts: int
    each: int

    @property
    def blocks(self) -> int:
        """Number of blocks of threads that process all parts of all lines."""
        items = self.count * self.parts
        return items if self.step == 1 else ceil_div(items, THREADS)

    @property
    def sizes(self) -> list[tuple[DType, int]]:
        """The size arguments of the kernels, as (dtype, value).

        Kernels for stride 1 get (n, parts, each), other kernels (count, n, step, parts, each).
        """
        where = (self.n,) if self.step == 1 else (self.count, self.n, self.step)
        return [(int64, v) for v in (*where, self.parts, self.each)]


def _lines(device: GridDevice, x: TensorType, axis: int) -> Lines | None:
    """Return how a tensor's lines along an axis are divided among threads.

    Returns None if the tensor is empty or complex, or a line has 2**31 or more elements.
    """
    outer, n, step = split_at(x.shape, axis)
    count = outer * step
    if not x.size or n >= 1 << 31 or x.dtype.is_complex:
        return None
    least, most = (ROW_PART, BLOCKS) if step == 1 else (COLUMN_PART, BUSY)
    parts = max(1, min(ceil_div(most * device.units, count), n // least))
    each = ceil_div(n, parts)
    if step == 1:
        each = ceil_div(each, BYTES) * BYTES  # packs of elements of any size belong to one part
    return Lines(count, n, step, ceil_div(n, each), each)


def _extreme(kind: int) -> Builder:
    def builder(device: GridDevice, types: Types, results: Types, *, axis: int) -> Plan | None:
        (x,) = types
        lines = _lines(device, x, axis)
        if lines is None:
            return None
        read, out, of = (x.dtype, 0), (int64, 1), (x.dtype,)
        wide = lines.n * x.dtype.itemsize % BYTES == 0
        if lines.step == 1 and lines.parts == 1 and lines.n <= SHORT:
            sizes = [(int64, lines.count), (int64, lines.n)]
            blocks = ceil_div(lines.count * 32, THREADS)
            return Plan(
                (launch("extreme_short", of, (kind, wide), [read, out], sizes, blocks, THREADS),)
            )
        rows = lines.step == 1
        name, choices = ("extreme_rows", (kind, wide)) if rows else ("extreme_columns", (kind,))
        found = out if lines.parts == 1 else (int64, 2)
        first = launch(name, of, choices, [read, found], lines.sizes, lines.blocks, THREADS)
        if lines.parts == 1:
            return Plan((first,))
        joined = launch(
            "extreme_joined", of, (kind,), [read, found, out],
            [(int64, v) for v in (lines.n, lines.step, lines.parts)], lines.count, THREADS,
        )  # fmt: skip
        return Plan((first, joined), (8 * lines.count * lines.parts,))

    return builder


def _scan(
    device: GridDevice, x: TensorType, axis: int, kind: int, exclusive: bool, reverse: bool
) -> Plan | None:
    lines = _lines(device, x, axis)
    if lines is None:
        return None
    acc = float32 if x.dtype in (float16, bfloat16) else x.dtype
    if acc.itemsize < 4:
        acc = int32 if acc.kind == "i" else uint32
    places = kind >= MOST
    last = 3 if places else 2  # buffers before the scratch
    bases: list[tuple[DType, int]] = [(acc, last), (int32, last + 1)]
    if not places:
        bases[1] = (int32, last)  # not used
    results: list[tuple[DType, int]] = [(x.dtype, 1), (int64, 2 if places else 1)]
    if lines.parts == 1:
        bases = [(acc, 1), (int32, 1)]  # not used
    name = "scan_rows" if lines.step == 1 else "scan_columns"

    def run(totals_only: bool) -> Launch:
        choices = [kind, exclusive, reverse, lines.parts > 1, totals_only]
        if lines.step == 1:
            choices.append(lines.n % PACK == 0)
        buffers = [(x.dtype, 0), *results, *bases]
        return launch(name, (x.dtype,), choices, buffers, lines.sizes, lines.blocks, THREADS)

    if lines.parts == 1:
        return Plan((run(False),))
    sizes = [(int64, lines.parts)]
    joined = launch("scan_bases", (x.dtype,), (kind,), bases, sizes, lines.count, THREADS)
    parts = lines.count * lines.parts
    scratch = (parts * acc.itemsize, parts * 4)
    return Plan((run(True), joined, run(False)), scratch[: 2 if places else 1])


def _sums(kind: int) -> Builder:
    def builder(
        device: GridDevice,
        types: Types,
        results: Types,
        *,
        axis: int,
        exclusive: bool,
        reverse: bool,
    ) -> Plan | None:
        return _scan(device, types[0], axis, kind, exclusive, reverse)

    return builder


def _running(kind: int) -> Builder:
    def builder(device: GridDevice, types: Types, results: Types, *, axis: int) -> Plan | None:
        return _scan(device, types[0], axis, kind, False, False)

    return builder


KERNELS: dict[str, Builder] = {
    "argmax": _extreme(MOST),
    "argmin": _extreme(LEAST),
    "cumsum": _sums(SUMS),
    "cumprod": _sums(PRODUCTS),
    "cummax": _running(MOST),
    "cummin": _running(LEAST),
}
