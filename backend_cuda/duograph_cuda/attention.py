"""Attention and its gradient, a block for some queries or keys of a head: tensor cores for float16 and bfloat16."""

from __future__ import annotations

import math
from typing import Any

from duograph.backend.codegen.dialect import SUFFIX
from duograph.backend.grid import Launch, Plan
from duograph.backend.grid.writing import ceil_div
from duograph.dtype import bfloat16, bool_, float16, float32, int64

from .device import CudaDevice
from .sources import text

__all__ = ["KERNELS"]

AXES = {"BNSD": (0, 1, 2), "BSND": (0, 2, 1), "SBND": (1, 2, 0)}
KINDS = {float16: "mma_f16", bfloat16: "mma_bf16", float32: "in_f32"}


def _steps(shape: tuple[int, ...], axes: Any) -> list[int]:
    return [0 if shape[i] == 1 else math.prod(shape[i + 1 :]) for i in axes]


def _plan(
    device: CudaDevice, types: Any, results: Any, *, scale: float, low: int, high: int, layout: str
) -> Plan | None:
    query, key, value, mask, *given = types
    dtype, axes, backward = query.dtype, AXES[layout], bool(given)
    widest = max(query.shape[3], value.shape[3])
    if dtype not in KINDS or widest > 128 or 0 in (*query.shape, *key.shape, *value.shape):
        return None
    if dtype is bfloat16 and device.capability < (8, 0):
        return None
    padded = 32 if widest <= 32 else 64 if widest <= 64 else 128
    side = 32 * 64 // max(32, padded * dtype.itemsize // 4)  # four tiles fit in the group memory of a block
    batch, heads, queries = (query.shape[i] for i in axes)
    own, keys = key.shape[axes[1]], key.shape[axes[2]]
    masked = 0 if mask is None else 1 if mask.dtype is bool_ else 2
    out = given[0] if backward else results[0]
    steps = [n for t in (query, key, value, out) for n in _steps(t.shape, axes)]
    hidden = [0] * 4 if mask is None else _steps(mask.shape, range(4))
    numbers = (heads, own, queries, keys, query.shape[3], value.shape[3], low, high, *steps, *hidden)
    stored = SUFFIX[dtype]
    labels = ["q", "k", "v", "mask", "out", "log_sum", "dout", "dq", "dk", "dv", "inner"]
    place = dict(zip(labels, range(11)))
    written = ("dq", "dk", "dv") if backward else ("out", "log_sum")

    def launch(stem: str, used: str, lines: int, of: int) -> Launch:
        name, names = f"{stem[3:]}_{stored}_{padded}_{masked}", used.split()
        present = [n for n in names if n != "mask" or masked]
        changed = (*written, *(["inner"] if stem == "dg_attend_queries" else []))
        kinds = {"log_sum": "f32", "inner": "f32", "mask": "u8" if masked == 1 else stored}
        buffers = [f"{'' if n in changed else 'const '}{kinds.get(n, stored)} *{n}" for n in present]
        scalars = [f"i64 n{i}" for i in range(len(numbers))]
        values = ", ".join(n if n in present else f"(const {stored} *)0" for n in names)
        source = text("mma.cuh", "attention.cuh") + (
            f"DG_KERNEL void __launch_bounds__({side * 2}) {name}({', '.join([*buffers, 'f32 scale', *scalars])}) {{\n"
            f"const dg_attention p = {{{', '.join(f'n{i}' for i in range(len(numbers)))}}};\n"
            f"{stem}<{KINDS[dtype]}, {padded}, {side}, {masked}>(p, scale, {values});\n}}\n"
        )
        made = ((float32, scale), *[(int64, n) for n in numbers])
        groups = (ceil_div(lines, side) * of, 1, 1)
        return Launch(source, name, tuple(place[n] for n in present), made, groups, (side * 2, 1, 1))

    if not backward:
        return Plan((launch("dg_attend", "q k v mask out log_sum", queries, batch * heads),))
    first = launch("dg_attend_queries", "q k v mask out log_sum dout dq inner", queries, batch * heads)
    second = launch("dg_attend_keys", "q k v mask log_sum dout inner dk dv", keys, batch * own)
    return Plan((first, second), (4 * batch * heads * queries,))


KERNELS: dict[str, Any] = {"attention": _plan, "attention_grad": _plan}
