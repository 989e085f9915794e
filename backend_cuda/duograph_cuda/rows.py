"""CUDA kernels of softmax, layer_norm and their gradients along rows (cuda/rows.cuh).

One warp or one block of threads processes a row. The CUDA backend's kernel table has the builders.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from duograph.backend.codegen.dialect import SUFFIX
from duograph.backend.grid import GridDevice, Launch, Plan, Scalar
from duograph.backend.grid.kernel_writer import ceil_div
from duograph.dtype import DType, bfloat16, float16, float32, int64

from .sources import text

__all__ = ["KERNELS"]

DTYPES = (float16, bfloat16, float32)
# Rows up to this length are processed by one warp each, four per block.
SHORT = 1024
WARPS, LANES = 4, 256
# Gradients of gamma and beta: rows that one thread adds up, and the maximal number of parts.
DEEP, MOST_PARTS = 64, 256


def _launch(
    name: str,
    dtypes: Any,
    buffers: Any,
    scalars: Sequence[Scalar],
    groups: int,
    threads: int,
    lanes: int = 0,
) -> Launch:
    """Return the description (`Launch`) of a CUDA kernel that calls `dg_<name>` of rows.cuh.

    The kernel's source is generated here: it instantiates that template for `dtypes` and `lanes`.
    `buffers` are pairs (dtype, position among the op's operands and results).
    """
    names = [SUFFIX[d] for d in dtypes]
    kernel = "_".join([name, *names, *([str(lanes)] if lanes else [])])
    types = [f"{SUFFIX[d]} *" for d, _ in buffers] + [f"{SUFFIX[d]} " for d, _ in scalars]
    given = ", ".join(f"{t}a{k}" for k, t in enumerate(types))
    chosen = ", ".join([*([str(lanes)] if lanes else []), *(f"dg_of_{n}" for n in names)])
    source = text("rows.cuh") + (
        f"DG_KERNEL void __launch_bounds__({threads}) {kernel}({given}) {{\n"
        f"    dg_{name}<{chosen}>({', '.join(f'a{k}' for k in range(len(types)))});\n}}\n"
    )
    places = tuple(place for _, place in buffers)
    return Launch(source, kernel, places, tuple(scalars), (groups, 1, 1), (threads, 1, 1))


def _rows(
    name: str, dtypes: Sequence[DType], buffers: Any, rows: int, n: int, *more: Scalar
) -> Launch:
    """Return a launch of a CUDA kernel whose warps or blocks process one tensor row each."""
    short = n <= SHORT
    groups, threads, lanes = (
        (ceil_div(rows, WARPS), WARPS * 32, 32) if short else (rows, LANES, LANES)
    )
    return _launch(
        name, dtypes, buffers, ((int64, rows), (int64, n), *more), groups, threads, lanes
    )


def _softmax(name: str) -> Any:
    def builder(device: GridDevice, types: Any, results: Any, *, axis: int) -> Plan | None:
        x = types[0]
        if x.dtype not in DTYPES or not x.shape or any(t != x for t in types):
            return None
        axis %= len(x.shape)
        n = x.shape[axis]
        if math.prod(x.shape[axis + 1 :]) != 1 or not x.size:
            return None
        buffers = [(x.dtype, place) for place in range(len(types) + 1)]
        return Plan((_rows(name, (x.dtype,), buffers, x.size // n, n),))

    return builder


def _supported(types: Any, results: Any) -> bool:
    return (
        None not in types
        and types[0].size > 0
        and all(t.dtype in DTYPES for t in (*types, *results))
    )


def layer_norm_core(
    device: GridDevice, types: Any, results: Any, *, axis: int, eps: float
) -> Plan | None:
    """Return the launches of layer_norm on CUDA over the axes from `axis` on; None if unsupported.

    The results are y, mean and the reciprocal standard deviation.
    """
    if not _supported(types, results):
        return None
    dtypes = [t.dtype for t in (*types, *results)]
    n = math.prod(types[0].shape[axis:])
    rows = types[0].size // n
    buffers = [(d, place) for place, d in enumerate(dtypes)]
    return Plan((_rows("layer_norm", dtypes[:5], buffers, rows, n, (float32, eps)),))


def layer_norm_grad(device: GridDevice, types: Any, results: Any, *, axis: int) -> Plan | None:
    """Return the launches of layer_norm's gradients for x, gamma, beta on CUDA, or None.

    One kernel computes the gradient of x by rows; two sum those of gamma and beta over the rows, in
    parts with a fixed order. None means that the dtypes are not supported, or x is empty.
    """
    if not _supported(types, results):
        return None
    x, gamma, mean, _, dout, dx, dgamma, dbeta = (t.dtype for t in (*types, *results))
    n = math.prod(types[0].shape[axis:])
    count = types[0].size // n
    parts = max(1, min(MOST_PARTS, ceil_div(count, DEEP)))
    each = ceil_div(count, parts)
    read = [(x, 0), (gamma, 1), (mean, 2), (mean, 3), (dout, 4)]
    sums = [(float32, 8), (float32, 9)]
    columns = _launch(
        "layer_norm_columns", (x, mean, dout), [*read[:1], *read[2:], *sums],
        [(int64, v) for v in (count, n, each, parts)], ceil_div(parts * n, 256), 256,
    )  # fmt: skip
    together = _launch(
        "layer_norm_parts",
        (dgamma, dbeta),
        [*sums, (dgamma, 6), (dbeta, 7)],
        [(int64, n), (int64, parts)],
        ceil_div(n, 256),
        256,
    )
    rows = _rows("layer_norm_grad", (x, gamma, mean, dout, dx), [*read, (dx, 5)], count, n)
    return Plan((rows, columns, together), (4 * parts * n, 4 * parts * n))


KERNELS: dict[str, Any] = {
    **{
        name: _softmax(name)
        for name in ("softmax", "log_softmax", "softmax_grad", "log_softmax_grad")
    },
    "layer_norm_core": layer_norm_core,
    "layer_norm_grad": layer_norm_grad,
}
