"""CUDA kernels of softmax, layer_norm and their gradients along rows (cuda/rows.cuh).

Depending on its length, a row is processed by a part of a warp, by a warp or by a block of threads.
`Cuda.plan` finds the builders in the backend's kernel table. Nothing here runs a kernel.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from duograph.backend.grid import GridDevice, Launch, Plan, Scalar
from duograph.backend.grid.kernel_writer import ceil_div
from duograph.dtype import DType, bfloat16, float16, float32, int32, int64

from .templates import launch_of

if TYPE_CHECKING:
    from duograph.backend.grid.table import Builder, Types

__all__ = ["KERNELS"]

launch = functools.partial(launch_of, ("vectors.cuh", "rows.cuh"))
DTYPES = (float16, bfloat16, float32)
# The most elements of a row in the registers of a thread, and the number if a block shares the row.
HELD, SHARED = 32, 16
# Threads of a block if a row takes at most a warp.
THREADS = 128
# Elements that a thread reads together, of rows that do not fit into registers.
PAGE = 16
# Limits for one kernel that computes the gradient of x, and sums those of gamma and beta in
# registers: elements of a thread if a warp has a row, and if a block has a row; elements of a row.
WARP_SUMS, BLOCK_SUMS, LONGEST_SUMS = 24, 8, 8192
# For gradients of gamma and beta: warps of a block with a row for each warp; warps for each
# multiprocessor, in such blocks and if a block shares a row; the fewest rows of a warp or block;
# threads that add up a column of the partial sums together.
WARPS, BUSY, BUSY_SHARING, ROWS, DEEP = 8, 16, 32, 4, 16
# For gradients of gamma and beta of longer rows: number of rows that one thread adds up.
COLUMN = 64
# The most elements of a row: positions in it are 32-bit integers.
MOST = 1 << 30


class Division(NamedTuple):
    """How a row is divided among threads: the template parameters of rows.cuh.

    Attributes:
        lanes: number of threads that process a row together.
        vectors: number of vectors, of 16 bytes each, that a thread loads together.
        edges: whether the row's length is not a multiple of a vector's length.
        paged: whether the row is longer than the vectors of all its threads, so that they loop over
            it.
    """

    lanes: int
    vectors: int
    edges: bool
    paged: bool

    @property
    def threads(self) -> int:
        """Number of threads of a block."""
        return max(self.lanes, THREADS)

    def blocks(self, rows: int) -> int:
        """Return the number of blocks of threads that process `rows` rows."""
        return ceil_div(rows * self.lanes, self.threads)


def division_of(n: int, dtype: DType) -> Division:
    """Return how many threads share a row of n elements, and how many vectors each loads together.

    A vector has 16 bytes. The result also says whether the row's length is a multiple of a vector's
    length, and whether the threads loop over the row.
    """
    v = 16 // dtype.itemsize
    edges = n % v != 0
    lanes = 16 if edges else 8  # the elements outside of the vectors need as many threads
    while lanes < 32 and lanes * v < n:
        lanes *= 2
    if lanes * HELD < n:
        lanes = 128
        while lanes * (SHARED if lanes < 512 else HELD) < n and lanes < 1024:
            lanes *= 2
    paged = lanes * HELD < n
    return Division(lanes, PAGE // v if paged else ceil_div(n, lanes * v), edges, paged)


def _rows(
    name: str,
    dtypes: Sequence[DType],
    shape: tuple[int, int],
    buffers: Sequence[tuple[DType, int]],
    *more: Scalar,
    last: tuple[bool, ...] = (),
) -> Launch:
    """Return the launch of a kernel that processes each row of a matrix of dtype `dtypes[0]`.

    Args:
        name: name of the template in rows.cuh.
        dtypes: dtype arguments of the template.
        shape: number of rows, and number of elements of a row.
        buffers: (dtype, buffer number) of each pointer argument.
        more: further scalar arguments, as (dtype, value).
        last: further template arguments.
    """
    rows, n = shape
    by = division_of(n, dtypes[0])
    scalars = ((int64, rows), (int32, n), *more)
    return launch(name, dtypes, (*by, *last), buffers, scalars, by.blocks(rows), by.threads)


def _softmax(grad: bool, log: bool) -> Builder:
    def builder(device: GridDevice, types: Types, results: Types, *, axis: int) -> Plan | None:
        x = types[0]
        if x.dtype not in DTYPES or not x.shape or any(t != x for t in types):
            return None
        axis %= len(x.shape)
        n = x.shape[axis]
        if math.prod(x.shape[axis + 1 :]) != 1 or not x.size or n > MOST:
            return None
        buffers = [(x.dtype, place) for place in range(len(types) + 1)]
        shape = (x.size // n, n)
        if grad:
            return Plan((_rows("softmax_grad", (x.dtype,), shape, buffers, last=(log,)),))
        by = division_of(n, x.dtype)
        name = "softmax_paged" if by.paged else "softmax"
        choices = (*by[:3], log)
        scalars = ((int64, shape[0]), (int32, n))
        blocks = by.blocks(shape[0])
        return Plan((launch(name, (x.dtype,), choices, buffers, scalars, blocks, by.threads),))

    return builder


def _supported(types: Types, results: Types, axis: int) -> bool:
    return (
        None not in types
        and types[0].size > 0
        and math.prod(types[0].shape[axis:]) <= MOST
        and all(t.dtype in DTYPES for t in (*types, *results))
    )


def layer_norm_core(
    device: GridDevice, types: Types, results: Types, *, axis: int, eps: float
) -> Plan | None:
    """Return the launches of layer_norm on CUDA over the axes from `axis` on.

    The op's results are the normalised tensor, the mean and the reciprocal standard deviation.
    Returns None if a dtype is not float16, bfloat16 or float32, x is empty, or a row has more than
    MOST elements.
    """
    if not _supported(types, results, axis):
        return None
    dtypes = [t.dtype for t in (*types, *results)]
    n = math.prod(types[0].shape[axis:])
    shape = (types[0].size // n, n)
    buffers = [(d, place) for place, d in enumerate(dtypes)]
    return Plan((_rows("layer_norm", dtypes[:5], shape, buffers, (float32, eps)),))


def layer_norm_grad(device: GridDevice, types: Types, results: Types, *, axis: int) -> Plan | None:
    """Return the launches of layer_norm's gradients with respect to x, gamma and beta.

    The gradients of gamma and beta are sums over the rows. Partial sums are computed first; a last
    launch adds them in a fixed order. Returns None if a dtype is not float16, bfloat16 or float32,
    x is empty, or a row has more than MOST elements.
    """
    if not _supported(types, results, axis):
        return None
    x, gamma, mean, _, dout, dx, dgamma, dbeta = (t.dtype for t in (*types, *results))
    n = math.prod(types[0].shape[axis:])
    rows = types[0].size // n
    read = [(x, 0), (gamma, 1), (mean, 2), (mean, 3), (dout, 4)]
    sums = [(float32, 8), (float32, 9)]
    dtypes = (x, gamma, mean, dout, dx)
    if n <= LONGEST_SUMS:
        v = 1 if n % (16 // x.itemsize) else 16 // x.itemsize
        lanes = 32 if n <= 32 * WARP_SUMS else 128
        while lanes > 32 and lanes * BLOCK_SUMS < n:
            lanes *= 2
        team = WARPS if lanes == 32 else 1
        busy = BUSY // team if lanes == 32 else BUSY_SHARING * 32 // lanes
        parts = max(1, min(busy * device.units, ceil_div(rows, ROWS * team)))
        first = [launch(
            "layer_norm_grad", dtypes, (lanes, ceil_div(n, lanes * v), v, team),
            [*read, (dx, 5), *sums], ((int64, rows), (int32, n), (int64, parts * team)),
            parts, lanes * team,
        )]  # fmt: skip
    else:
        parts = ceil_div(rows, COLUMN)
        scalars = [(int64, m) for m in (rows, n, ceil_div(rows, parts), parts)]
        groups = ceil_div(parts * n, 256)
        columns = [*read[:1], *read[2:], *sums]
        first = [
            _rows("layer_norm_grad_rows", dtypes, (rows, n), [*read, (dx, 5)]),
            launch("layer_norm_columns", (x, mean, dout), (), columns, scalars, groups, 256),
        ]
    together = launch(
        "layer_norm_parts", (dgamma, dbeta), (DEEP,), [*sums, (dgamma, 6), (dbeta, 7)],
        [(int64, n), (int64, parts)], ceil_div(n, 32), 32 * DEEP,
    )  # fmt: skip
    return Plan((*first, together), (4 * parts * n, 4 * parts * n))


KERNELS: dict[str, Builder] = {
    "softmax": _softmax(False, False),
    "log_softmax": _softmax(False, True),
    "softmax_grad": _softmax(True, False),
    "log_softmax_grad": _softmax(True, True),
    "layer_norm_core": layer_norm_core,
    "layer_norm_grad": layer_norm_grad,
}
