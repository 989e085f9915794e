"""CUDA kernels of attention and its gradient (cuda/attention.cuh), as launch plans.

`Cuda.plan` finds the builders in the backend's kernel table. A block of threads processes some
queries or keys of one head; for float16 and bfloat16 it uses tensor cores. Nothing here runs a
kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from duograph.backend.attention_layouts import AXES
from duograph.backend.codegen.dialect import SUFFIX
from duograph.backend.grid import Launch, Plan
from duograph.backend.grid.kernel_writer import ceil_div
from duograph.backend.grid.strides import broadcast_steps, dense
from duograph.dtype import DType, bfloat16, bool_, float16, float32, int64
from duograph.types import TensorType

from .device import CudaDevice
from .sources import text

if TYPE_CHECKING:
    from duograph.backend.grid.table import Builder, Types

__all__ = [
    "JOINT",
    "JOINT_GRAD",
    "KERNELS",
    "SEPARATE",
    "SEPARATE_GRAD",
    "Part",
    "packed",
    "separate",
]

KINDS = {float16: "mma_f16", bfloat16: "mma_bf16", float32: "in_f32"}
# Numbers of the buffers: operands, results and scratch, in order.
SEPARATE = {"q": 0, "k": 1, "v": 2, "mask": 3, "out": 4, "log_sum": 5}
SEPARATE_GRAD = {**SEPARATE, "dout": 6, "dq": 7, "dk": 8, "dv": 9, "inner": 10}
JOINT = {"q": 0, "k": 0, "v": 0, "mask": 1, "out": 2, "log_sum": 3}
JOINT_GRAD = {**JOINT, "dout": 4, "dq": 5, "dk": 5, "dv": 5, "inner": 6}


class Part(NamedTuple):
    """A query, key, value or result of attention: a strided view of a buffer.

    Attributes:
        shape: lengths of the axes batch, heads, positions and features.
        steps: strides along these axes, in elements.
        first: offset of the part's first element in the buffer, in elements.
    """

    shape: tuple[int, ...]
    steps: tuple[int, ...]
    first: int = 0


def separate(type_: TensorType, layout: str) -> Part:
    """Return the view (`Part`) of a whole tensor whose axes are in the order of `layout`.

    `layout` is a key of `attention_layouts.AXES`, such as "BNSD".
    """
    steps, axes = dense(type_.shape), AXES[layout]
    return Part(tuple([type_.shape[a] for a in axes]), tuple([steps[a] for a in axes]))


def packed(type_: TensorType, layout: str, heads: int, own: int) -> tuple[Part, Part, Part]:
    """Return the views of query, key and value in a tensor that holds them along its last axis.

    The tensor's other axes are batch and positions, in the order of `layout`. `heads` is the number
    of query heads, `own` the number of key and value heads.
    """
    one, two, features = type_.shape
    width = features // (heads + 2 * own)
    steps = (two * features, features, width, 1)
    found, first = [], 0
    for count in (heads, own, own):
        shape = (one, two, count, width)
        axes = AXES[layout]
        found.append(Part(tuple([shape[a] for a in axes]), tuple([steps[a] for a in axes]), first))
        first += count * width
    return found[0], found[1], found[2]


def _separate(
    device: CudaDevice, types: Types, results: Types, *, layout: str, **attributes: Any
) -> Plan | None:
    """Return the launch plan of `attention` or `attention_grad`.

    `layout` is the order of axes, a key of `attention_layouts.AXES` such as "BNSD". Returns None
    unless the dtype is float16, float32 or, from compute capability 8.0 on, bfloat16, there are at
    most 128 features per head, and query, key and value are not empty.
    """
    mask, given = types[3], types[4:]
    query, key, value = [separate(t, layout) for t in types[:3]]
    out = separate((given or results)[0], layout)
    places = SEPARATE_GRAD if given else SEPARATE
    return _plan(device, types[0].dtype, mask, (query, key, value, out), places, **attributes)


def _joint(
    device: CudaDevice,
    types: Types,
    results: Types,
    *,
    layout: str,
    heads: int,
    own: int,
    **attributes: Any,
) -> Plan | None:
    """Return the launch plan of `self_attention` or `self_attention_grad`.

    `heads` is the number of query heads, `own` that of key heads and of value heads. `layout` is
    the order of axes, a key of `attention_layouts.AXES` such as "BNSD". Returns None unless the
    dtype is float16, float32 or, from compute capability 8.0 on, bfloat16, there are at most 128
    features per head, and the operand is not empty.
    """
    x, mask, *given = types
    out = separate((given or results)[0], layout)
    places = JOINT_GRAD if given else JOINT
    parts = (*packed(x, layout, heads, own), out)
    return _plan(device, x.dtype, mask, parts, places, **attributes)


def _steps(part: Part) -> list[int]:
    return [0 if n == 1 else step for n, step in zip(part.shape[:3], part.steps)]


def _plan(
    device: CudaDevice,
    dtype: DType,
    mask: TensorType | None,
    parts: tuple[Part, Part, Part, Part],
    places: dict[str, int],
    *,
    scale: float,
    low: int,
    high: int,
) -> Plan | None:
    query, key, value, _ = parts
    (batch, heads, queries, depth), (_, own, keys, _) = query.shape, key.shape
    value_depth, stored = value.shape[3], SUFFIX[dtype]
    widest = max(depth, value_depth)
    if dtype not in KINDS or widest > 128 or 0 in (*query.shape, *key.shape, *value.shape):
        return None
    if dtype is bfloat16 and device.capability < (8, 0):
        return None
    padded = 32 if widest <= 32 else 64 if widest <= 64 else 128
    side = 2048 // max(
        16 * dtype.itemsize, padded * dtype.itemsize // 4
    )  # all tiles fit into 48 KiB of shared memory
    masked = 0 if mask is None else 1 if mask.dtype is bool_ else 2
    steps = [n for part in parts for n in _steps(part)]
    steps += [0] * 4 if mask is None else broadcast_steps(mask.shape, mask.shape)
    numbers = (heads, own, queries, keys, depth, value_depth, low, high, *steps)
    kinds = {"log_sum": "f32", "inner": "f32", "mask": "u8" if masked == 1 else stored}
    starts = {
        name: part.first
        for part, names in zip(parts, (("q", "dq"), ("k", "dk"), ("v", "dv")))
        for name in names
        if part.first
    }

    def launch(stem: str, reads: str, writes: str, lines: int, of: int) -> Launch:
        names = [*reads.split(), *writes.split()]
        present = [n for n in names if n != "mask" or masked]
        moved = [n for n in present if n in starts]
        name = f"{stem}_{stored}_{padded}_{masked}" + "_joint" * bool(moved)
        declared = [
            f"{'const ' if n in reads.split() else ''}{kinds.get(n, stored)} *{n}" for n in present
        ]
        declared += ["f32 scale", *[f"i64 n{i}" for i in range(len(numbers))]]
        declared += [f"i64 {n}_first" for n in moved]
        values = ", ".join(
            (f"{n} + {n}_first" if n in moved else n) if n in present else f"(const {stored} *)0"
            for n in names
        )
        source = text("mma.cuh", "attention.cuh") + (
            f"DG_KERNEL void __launch_bounds__({side * 2}) {name}({', '.join(declared)}) {{\n"
            f"const dg_attention p = {{{', '.join(f'n{i}' for i in range(len(numbers)))}}};\n"
            f"dg_{stem}<{KINDS[dtype]}, {padded}, {side}, {masked}>(p, scale, {values});\n}}\n"
        )
        buffers = tuple([places[n] for n in present])
        integers = [*numbers, *[starts[n] for n in moved]]
        scalars = ((float32, scale), *[(int64, n) for n in integers])
        return Launch(
            source, name, buffers, scalars, (ceil_div(lines, side) * of, 1, 1), (side * 2, 1, 1)
        )

    if "dout" not in places:
        return Plan((launch("attend", "q k v mask", "out log_sum", queries, batch * heads),))
    first = launch(
        "attend_queries", "q k v mask out log_sum dout", "dq inner", queries, batch * heads
    )
    second = launch("attend_keys", "q k v mask log_sum dout inner", "dk dv", keys, batch * own)
    return Plan((first, second), (4 * batch * heads * queries,))


KERNELS: dict[str, Builder] = {
    "attention": _separate,
    "attention_grad": _separate,
    "self_attention": _joint,
    "self_attention_grad": _joint,
}
