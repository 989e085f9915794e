"""CUDA kernels of attention and its gradient (cuda/attention.cuh), as launch plans.

A block of threads processes some queries or keys of one head, with tensor cores for float16 and
bfloat16. The CUDA backend's kernel table holds the builders.
"""

from __future__ import annotations

import math
from typing import Any

from duograph.backend.attention_layouts import AXES
from duograph.backend.codegen.dialect import SUFFIX
from duograph.backend.grid import Launch, Plan
from duograph.backend.grid.kernel_writer import ceil_div
from duograph.dtype import bfloat16, bool_, float16, float32, int64

from .device import CudaDevice
from .sources import text

__all__ = ["KERNELS"]

# Buffers: operands, results and scratch, in order. The forward direction has the first six.
PLACES = ("q", "k", "v", "mask", "out", "log_sum", "dout", "dq", "dk", "dv", "inner")
KINDS = {float16: "mma_f16", bfloat16: "mma_bf16", float32: "in_f32"}


def _steps(shape: tuple[int, ...], axes: Any) -> list[int]:
    return [0 if shape[i] == 1 else math.prod(shape[i + 1 :]) for i in axes]


def _plan(
    device: CudaDevice, types: Any, results: Any, *, scale: float, low: int, high: int, layout: str
) -> Any:
    query, key, value, mask, *given = types
    dtype, axes, stored = query.dtype, AXES[layout][:3], SUFFIX[query.dtype]
    widest = max(query.shape[3], value.shape[3])
    if dtype not in KINDS or widest > 128 or 0 in (*query.shape, *key.shape, *value.shape):
        return None
    if dtype is bfloat16 and device.capability < (8, 0):
        return None
    padded = 32 if widest <= 32 else 64 if widest <= 64 else 128
    side = 2048 // max(
        16 * dtype.itemsize, padded * dtype.itemsize // 4
    )  # all tiles fit into 48 KiB of shared memory
    batch, heads, queries = (query.shape[i] for i in axes)
    own, keys = key.shape[axes[1]], key.shape[axes[2]]
    masked = 0 if mask is None else 1 if mask.dtype is bool_ else 2
    steps = [n for t in (query, key, value, (given or results)[0]) for n in _steps(t.shape, axes)]
    steps += [0] * 4 if mask is None else _steps(mask.shape, range(4))
    numbers = (heads, own, queries, keys, query.shape[3], value.shape[3], low, high, *steps)
    kinds = {"log_sum": "f32", "inner": "f32", "mask": "u8" if masked == 1 else stored}

    def launch(stem: str, reads: str, writes: str, lines: int, of: int) -> Launch:
        name, names = f"{stem}_{stored}_{padded}_{masked}", [*reads.split(), *writes.split()]
        present = [n for n in names if n != "mask" or masked]
        declared = [
            f"{'const ' if n in reads.split() else ''}{kinds.get(n, stored)} *{n}" for n in present
        ]
        declared += ["f32 scale", *[f"i64 n{i}" for i in range(len(numbers))]]
        values = ", ".join(n if n in present else f"(const {stored} *)0" for n in names)
        source = text("mma.cuh", "attention.cuh") + (
            f"DG_KERNEL void __launch_bounds__({side * 2}) {name}({', '.join(declared)}) {{\n"
            f"const dg_attention p = {{{', '.join(f'n{i}' for i in range(len(numbers)))}}};\n"
            f"dg_{stem}<{KINDS[dtype]}, {padded}, {side}, {masked}>(p, scale, {values});\n}}\n"
        )
        places = tuple([PLACES.index(n) for n in present])
        scalars = ((float32, scale), *[(int64, n) for n in numbers])
        return Launch(
            source, name, places, scalars, (ceil_div(lines, side) * of, 1, 1), (side * 2, 1, 1)
        )

    if not given:
        return Plan((launch("attend", "q k v mask", "out log_sum", queries, batch * heads),))
    first = launch(
        "attend_queries", "q k v mask out log_sum dout", "dq inner", queries, batch * heads
    )
    second = launch("attend_keys", "q k v mask log_sum dout inner", "dk dv", keys, batch * own)
    return Plan((first, second), (4 * batch * heads * queries,))


KERNELS: dict[str, Any] = {"attention": _plan, "attention_grad": _plan}
