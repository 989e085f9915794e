"""Launches of the kernel that copies a matrix to rows of another pitch (cuda/pitch.cuh).

The pitch is the distance from one row to the next. `cublaslt` copies matrices for tensor cores,
which need rows whose starts and lengths are multiples of 16 bytes. Without tensor cores a matmul
takes six times as long, so a copy pays for large matrices.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from duograph.backend.grid import GridDevice, Launch, Plan
from duograph.backend.grid.kernel_writer import ceil_div
from duograph.dtype import DType, int64
from duograph.types import TensorType

from .sources import text

if TYPE_CHECKING:
    from duograph.backend.grid.table import Builder

__all__ = ["BYTES", "KERNELS", "copy_rows"]

# Pitches and base addresses that are multiples of it are aligned; also the bytes of a store.
BYTES = 16
# Threads of a block, and blocks along the axis of rows, at most.
THREADS, MOST_ROWS = 256, 4096


def copy_rows(
    dtype: DType,
    rows: int,
    columns: int,
    from_pitch: int,
    to_rows: int,
    to_columns: int,
    to_pitch: int,
) -> Launch:
    """Return the launch that copies a matrix in buffer 0 to buffer 1 with another pitch.

    A pitch is the number of elements from the start of one row to the start of the next. The source
    has `rows` rows of `columns` elements. The target has `to_rows` rows of `to_columns` elements;
    those that the source lacks are filled with zeros.
    """
    stored = f"u{8 * dtype.itemsize}"
    name = f"copy_rows_{stored}"
    names = ("rows", "columns", "from_pitch", "to_rows", "to_columns", "to_pitch")
    source = text("pitch.cuh") + (
        f"DG_KERNEL void __launch_bounds__({THREADS}) {name}(const {stored} *from, {stored} *to, "
        f"{', '.join(f'i64 {n}' for n in names)}) {{\n"
        f"dg_copy_rows(from, to, {', '.join(names)});\n}}\n"
    )
    stores = to_columns * dtype.itemsize // BYTES + 2  # with those at the ends of a row
    numbers = (rows, columns, from_pitch, to_rows, to_columns, to_pitch)
    scalars = tuple([(int64, n) for n in numbers])
    groups = (ceil_div(stores, THREADS), min(to_rows, MOST_ROWS), 1)
    return Launch(source, name, (0, 1), scalars, groups, (THREADS, 1, 1))


def _pad_constant(
    device: GridDevice,
    types: tuple[TensorType, ...],
    results: tuple[TensorType, ...],
    *,
    low: tuple[int, ...],
    high: tuple[int, ...],
    value: float,
) -> Plan | None:
    """Return the launch plan of padding with zeros at the end of a matrix's rows and columns.

    Leading axes that are not padded count as rows. Returns None for other kinds of padding.
    """
    (x,), (out,) = types, results
    zero = value == 0 and math.copysign(1.0, value) > 0
    if x.ndim < 2 or any(low) or any(high[:-2]) or not zero or x.dtype.itemsize > 8:
        return None
    if (x.ndim > 2 and high[-2]) or 0 in out.shape:
        return None
    sizes = [(math.prod(t.shape[:-1]), t.shape[-1]) for t in (x, out)]
    return Plan((copy_rows(x.dtype, *sizes[0], sizes[0][1], *sizes[1], sizes[1][1]),))


KERNELS: dict[str, Builder] = {"pad_constant": _pad_constant}
