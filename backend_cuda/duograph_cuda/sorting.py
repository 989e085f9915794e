"""CUDA kernels of sort and topk along an axis, and of scatter_add (cuda/sort.cuh, scatter.cuh).

All of them use the radix sort of `radix`. `Cuda.plan` finds the builders in the backend's kernel
table. Equal elements must keep their order, so that results do not vary between runs.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

from duograph.backend.grid import GridDevice, Launch, Plan
from duograph.backend.grid.along_axis import lined_up, places_of_indices
from duograph.backend.grid.indexing import copy_of_target, rows_of_indices
from duograph.backend.grid.kernel_writer import ceil_div
from duograph.dtype import DType, bfloat16, float16, float32, int32, int64, uint32, uint64

from .radix import THREADS, TILE, radix_passes, scratch_of
from .templates import launch_of

if TYPE_CHECKING:
    from duograph.backend.grid.table import Builder, Types
    from duograph.types import TensorType

__all__ = ["KERNELS"]

# Sorted indices that one work item of a scatter adds up, as in scatter.cuh.
CHUNK = 32
# A scatter has a work item for each line, instead of one for each element, if there are at least
# this number of lines for each element that it writes to a line.
FEW = 64

launch = functools.partial(launch_of, ("vectors.cuh", "radix.cuh", "sort.cuh"))
scatter = functools.partial(launch_of, ("vectors.cuh", "scatter.cuh"))


def _sort(x: TensorType, axis: int, descending: bool, chosen: int) -> Plan | None:
    """Return the launches that sort a tensor along an axis and store the first `chosen` elements.

    The sort is ascending unless `descending` is set. The op's results are these elements and their
    indices. Returns None if x is empty or complex, `chosen` is 0, or the axis has 2**31 or more
    elements.
    """
    n, step = x.shape[axis], math.prod(x.shape[axis + 1 :])
    if not x.size or not chosen or n >= 1 << 31 or x.dtype.is_complex:
        return None
    key: DType = uint64 if x.dtype.itemsize == 8 else uint32
    lines = x.size // n
    if n <= TILE * 4 // key.itemsize:
        each = 1
        while each * THREADS < n:
            each *= 2
        buffers = [(x.dtype, 0), (x.dtype, 1), (int64, 2)]
        sizes = [(int32, n), (int64, step), (int32, chosen)]
        choices = (each, descending)
        dtypes = (x.dtype, key)
        return Plan((launch("sort_lines", dtypes, choices, buffers, sizes, lines, THREADS),))
    sizes = [(int64, x.size), (int64, n), (int64, step)]
    keys = launch(
        "sort_keys", (x.dtype, key), (descending,), [(x.dtype, 0), (key, 3)], sizes,
        ceil_div(x.size, THREADS), THREADS,
    )  # fmt: skip
    passes, count = radix_passes(key, lines, n, 8 * x.dtype.itemsize, 3)
    ids = (uint32, 4 if count % 2 == 0 else 6)
    sizes = [(int64, v) for v in (lines * chosen, n, step, chosen)]
    results = launch(
        "sort_results", (x.dtype,), (), [(x.dtype, 0), ids, (x.dtype, 1), (int64, 2)], sizes,
        ceil_div(lines * chosen, THREADS), THREADS,
    )  # fmt: skip
    return Plan((keys, *passes, results), scratch_of(key, lines, n))


def sort(
    device: GridDevice, types: Types, results: Types, *, axis: int, descending: bool
) -> Plan | None:
    """Return the launches of a stable sort along an axis.

    The results are the sorted elements and their indices. Returns None if x is empty or complex, or
    the axis has 2**31 or more elements.
    """
    return _sort(types[0], axis, descending, types[0].shape[axis])


def topk(
    device: GridDevice, types: Types, results: Types, *, k: int, axis: int, largest: bool
) -> Plan | None:
    """Return the launches of topk: the k first elements of a sort, and their indices.

    The sort is in descending order with `largest`, else in ascending order. Returns None if x is
    empty or complex, k is 0, or the axis has 2**31 or more elements.
    """
    return _sort(types[0], axis, largest, k)


def _added(
    device: GridDevice,
    types: Types,
    rows_of: Launch,
    shape: tuple[int, int, int],
    last: bool = False,
) -> Plan:
    """Return the launches of a scatter: copy x, sort the updates by row, apply them in order.

    Args:
        device: the device.
        types: types of x, of the indices, and of the updates.
        rows_of: the launch that writes the row of each update to buffer 4.
        shape: (number of updates of each column, rows of x, elements of a row).
        last: whether the last update of a row replaces its value, instead of adding all updates; a
            row is then one element.
    """
    x = types[0]
    count, n, inner = shape
    columns = x.size // n
    passes, p = radix_passes(uint32, 1, count, n.bit_length(), 4)
    rows, ids = (int32, 4 if p % 2 == 0 else 6), (uint32, 5 if p % 2 == 0 else 7)
    before = (copy_of_target(device, x), rows_of, *passes)
    scratch = scratch_of(uint32, 1, count)
    updates, out = (x.dtype, 2), (x.dtype, 3)
    if last:
        groups = ceil_div(count, THREADS)
        sizes = [(int64, count)]
        set_ = scatter(
            "scatter_last", (x.dtype,), (), [rows, ids, updates, out], sizes, groups, THREADS
        )
        return Plan((*before, set_), scratch)
    acc = float32 if x.dtype in (float16, bfloat16) else x.dtype
    heads, tails = (acc, 10), (acc, 11)
    items = ceil_div(count, CHUNK) * columns
    sizes = [(int64, v) for v in (count, n, inner, columns)]
    groups = ceil_div(items, THREADS)
    chunks = scatter(
        "scatter_chunks", (x.dtype,), (), [rows, ids, updates, out, heads, tails], sizes, groups,
        THREADS,
    )  # fmt: skip
    joined = scatter(
        "scatter_joined", (x.dtype,), (), [rows, heads, tails, out], sizes, groups, THREADS
    )
    sums = items * acc.itemsize
    return Plan((*before, chunks, joined), (*scratch, sums, sums))


def scatter_add(device: GridDevice, types: Types, results: Types, *, axis: int) -> Plan | None:
    """Return the launches of scatter_add; None if the kernels of `backend.grid` are to be used.

    The updates of a row are added in a fixed order, by chunks of the sorted indices.
    """
    x, indices, updates = types
    n, inner = x.shape[axis], math.prod(x.shape[axis + 1 :])
    count = indices.size
    if x.dtype in (int32, uint32) or x.dtype.is_complex:
        return None  # the common kernels use atomic additions of 32-bit integers
    if not updates.size or not x.size or max(n, count) >= 1 << 31:
        return None
    return _added(device, types, rows_of_indices(device, types, axis), (count, n, inner))


def _scatter_elements(name: str) -> Builder:
    def builder(device: GridDevice, types: Types, results: Types, *, axis: int) -> Plan | None:
        x, indices, _ = types
        if not lined_up(x, indices, axis) or x.dtype.is_complex or not indices.size or not x.size:
            return None
        chosen = indices.shape[axis]
        if max(x.size, indices.size) >= 1 << 28 or x.size // x.shape[axis] >= FEW * chosen:
            return None  # the common kernels let a work item process a line
        places = places_of_indices(device, types, axis, name)
        last = name == "scatter_elements_set"
        return _added(device, types, places, (indices.size, x.size, 1), last)

    return builder


KERNELS: dict[str, Builder] = {
    "sort": sort,
    "topk": topk,
    "scatter_add": scatter_add,
    "scatter_elements_add": _scatter_elements("scatter_elements_add"),
    "scatter_elements_set": _scatter_elements("scatter_elements_set"),
}
