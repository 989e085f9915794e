"""Matrix products: tensor cores for float16 and bfloat16 (and, when asked for, TF32), register tiles for float32."""

from __future__ import annotations

import math
import os
from typing import Any

from duograph.backend.grid import Launch, Plan
from duograph.backend.grid.strides import broadcast_steps, merged
from duograph.backend.grid.writing import ceil_div
from duograph.dtype import bfloat16, float16, float32, int64
from duograph.types import TensorType

from .device import CudaDevice
from .sources import text

__all__ = ["matmul", "uses_tf32"]


def uses_tf32() -> bool:
    """Whether products of float32 may drop 13 bits of the mantissa: the environment has DUOGRAPH_CUDA_TF32=1."""
    return os.environ.get("DUOGRAPH_CUDA_TF32", "0") == "1"


def _kind(device: CudaDevice, dtype: Any) -> str | None:
    """The tensor-core product of a dtype, or None."""
    if dtype is float16:
        return "mma_f16"
    if device.capability < (8, 0):
        return None
    if dtype is bfloat16:
        return "mma_bf16"
    return "mma_tf32" if dtype is float32 and uses_tf32() else None


def matmul(
    device: CudaDevice,
    types: tuple[TensorType, ...],
    results: tuple[TensorType, ...],
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> Plan | None:
    """The plan of a product, or None for dtypes and batches that the toolkit's own kernel is for."""
    x, y = types
    (out,) = results
    kind = _kind(device, x.dtype)
    if kind is None and x.dtype is not float32:
        return None
    m, n = out.shape[-2:]
    depth = x.shape[-2] if transpose_a else x.shape[-1]
    batch, x_batch, y_batch = out.shape[:-2], x.shape[:-2], y.shape[:-2]
    if math.prod(y_batch) == 1 and not transpose_a:
        m, batch, x_batch, y_batch = m * math.prod(batch), (), (), ()
    sizes, (x_steps, y_steps) = merged(
        batch, [broadcast_steps(x_batch, batch), broadcast_steps(y_batch, batch)]
    )
    if len(sizes) > 1 or out.size == 0 or depth == 0:
        return None
    count = math.prod(batch)
    x_matrix, y_matrix = (m * depth * x_steps[0], n * depth * y_steps[0]) if batch else (0, 0)
    x_pitch, y_pitch = (m if transpose_a else depth), (depth if transpose_b else n)
    in_16_bytes = 16 // x.dtype.itemsize
    whole = all(v % in_16_bytes == 0 for v in (x_pitch, y_pitch, x_matrix, y_matrix))
    flags = ", ".join(str(flag).lower() for flag in (transpose_a, not transpose_b, whole))
    # the larger tile where there are enough of them to keep every multiprocessor busy
    large = ceil_div(m, 128) * ceil_div(n, 128) * count >= 2 * device.units
    side = 128 if large else 64
    stored = {"mma_f16": "u16", "mma_bf16": "u16"}.get(kind or "", "f32")
    if kind is not None:
        name = f"product_{kind}_{side}"
        body = f"dg_tensor_product<{kind}, {stored}, {side}, {flags}>"
        threads = side * 2
    else:
        name = f"product_f32_{side}"
        body = f"dg_plain_product<{side // 16}, {flags}>"
        threads = 256
    source = text("mma.cuh", "product.cuh") + (
        f"DG_KERNEL void __launch_bounds__({threads}) {name}(const {stored} *x, const {stored} *y, {stored} *out, "
        "i64 m, i64 n, i64 depth, i64 x_pitch, i64 y_pitch, i64 x_matrix, i64 y_matrix) {\n"
        "    const dg_operand ox = {m, depth, x_pitch}, oy = {n, depth, y_pitch};\n"
        f"    {body}(x, y, out, ox, oy, x_matrix, y_matrix);\n}}\n"
    )
    numbers = (m, n, depth, x_pitch, y_pitch, x_matrix, y_matrix)
    groups = ceil_div(m, side) * ceil_div(n, side) * count
    launch = Launch(
        source, name, (0, 1, 2), tuple((int64, v) for v in numbers), (groups, 1, 1), (threads, 1, 1)
    )
    return Plan((launch,))
