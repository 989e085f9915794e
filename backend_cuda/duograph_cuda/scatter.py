"""Sums by index in the order of the indices, so that every run gives the same bits.

Atomic additions would add in any order, and then what a compiled function gives would differ from what the same ops
give line by line. Instead each index finds the next one of the same row, and the first of a row walks along them.
"""

from __future__ import annotations

from typing import Any

from duograph.backend.codegen.dialect import SUFFIX
from duograph.backend.grid import Kernel, Launch, Plan
from duograph.backend.grid.movement import copy_launch
from duograph.backend.grid.strides import dense, split_at
from duograph.dtype import DType, bool_, int32, uint32
from duograph.types import TensorType

from .device import CudaDevice
from .dialect import CUDA

__all__ = ["scatter_add"]

# Finding the next one takes time with the square of how many there are; beyond this an item for each column goes
# through all indices, which is slow where columns are few.
MOST = 1 << 17
# With so many columns an item for each fills a device.
MANY_COLUMNS = 1 << 14


def scatter_add(
    device: CudaDevice, types: tuple[TensorType, ...], results: Any, *, axis: int
) -> Plan | None:
    """A copy of x with rows added to, or None where the toolkit's kernel does as well.

    That one adds 32-bit integers by atomic operations, which give the same sum in any order.
    """
    x, indices, updates = types
    outer, n, inner = split_at(x.shape, axis)
    count = indices.size
    if not count or n >= 2**31 or not x.size or x.dtype.is_complex or x.dtype in (int32, uint32):
        return None
    steps = dense(x.shape)
    copied = copy_launch(device, x.dtype, x.shape, (0, steps, 0, x.size), (3, steps, 0, x.size))
    if count > MOST or outer * inner >= MANY_COLUMNS:
        return Plan((copied, _by_columns(device, types, axis)))
    rows = Kernel(device, "rows_of_indices", count)
    rows.read("indices", indices.dtype, 1)
    rows.write("rows", int32, 4)
    rows.watch("scatter_add", axis)
    rows.number("count", count)
    rows.number("n", n)
    rows.line("const ix i = (ix)DG_ITEM(0);", "if (i >= count) return;")
    rows.row(indices.dtype, "indices[i]", "n")
    rows.line("rows[i] = (i32)row;")
    links = Kernel(device, "chains_of_rows", count)
    links.read("rows", int32, 4)
    links.write("next", int32, 5)
    links.write("first", bool_, 6)
    links.number("count", count)
    links.line(
        "const i32 i = (i32)DG_ITEM(0);",
        "if (i >= count) return;",
        "const i32 row = rows[i];",
        "i32 after = i + 1, before = i - 1;",
        "while (after < count && rows[after] != row) after++;",
        "while (before >= 0 && rows[before] != row) before--;",
        "next[i] = after < count ? after : -1;",
        "first[i] = before < 0 && row >= 0;",
    )
    total = updates.size
    walk = Kernel(device, "sums_along_chains", max(x.size, total))
    walk.read("rows", int32, 4)
    walk.read("next", int32, 5)
    walk.read("first", bool_, 6)
    walk.read("updates", x.dtype, 2)
    walk.write("out", x.dtype, 3)
    for name, value in (("n", n), ("inner", inner), ("count", count), ("total", total)):
        walk.number(name, value)
    name, value = SUFFIX[x.dtype], _sum(x.dtype)
    walk.line(
        "const ix e = (ix)DG_ITEM(0);",
        "if (e >= total) return;",
        "const ix line = e / inner, c = e - line * inner, i = line % count, o = line / count;",
        "if (!first[i]) return;",
        "const ix to = (o * n + rows[i]) * inner + c;",
        f"{name} sum = out[to];",
    )
    walk.open("for (ix j = i; j >= 0; j = next[j])")
    walk.line("const ix from = (o * count + j) * inner + c;", f"sum = {value};")
    walk.close()
    walk.line("out[to] = sum;")
    launches = (
        copied,
        rows.launch_items(count),
        links.launch_items(count),
        walk.launch_items(total),
    )
    return Plan(launches, (4 * count, 4 * count, count))


def _sum(dtype: DType) -> str:
    """`sum` and an update, added and rounded as the dtype is."""
    if dtype is bool_:
        return "sum | updates[from]"
    if dtype.is_integer:
        wide = "u64" if dtype.itemsize == 8 else "u32"
        return f"({SUFFIX[dtype]})(({wide})sum + ({wide})updates[from])"
    both = f"{CUDA.load(dtype, 'sum')} + {CUDA.load(dtype, 'updates[from]')}"
    return CUDA.store(dtype, both)


def _by_columns(device: CudaDevice, types: tuple[TensorType, ...], axis: int) -> Launch:
    """An item for each column, which goes through the indices in order."""
    x, indices, updates = types
    outer, n, inner = split_at(x.shape, axis)
    k = Kernel(device, "sums_by_columns", max(x.size, updates.size))
    k.read("indices", indices.dtype, 1)
    k.read("updates", x.dtype, 2)
    k.write("out", x.dtype, 3)
    k.watch("scatter_add", axis)
    for name, value in (
        ("n", n),
        ("inner", inner),
        ("count", indices.size),
        ("total", outer * inner),
    ):
        k.number(name, value)
    k.line(
        "const ix e = (ix)DG_ITEM(0);",
        "if (e >= total) return;",
        "const ix o = e / inner, c = e - o * inner;",
    )
    k.open("for (ix i = 0; i < count; i++)")
    k.row(indices.dtype, "indices[i]", "n")
    k.line(
        "if (row < 0) continue;",
        "const ix from = (o * count + i) * inner + c, to = (o * n + row) * inner + c;",
        f"const {SUFFIX[x.dtype]} sum = out[to];",
        f"out[to] = {_sum(x.dtype)};",
    )
    k.close()
    return k.launch_items(outer * inner)
