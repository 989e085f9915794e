"""Writes transposing copies for GPUs, in which tiles pass through shared memory.

Adjacent work items read adjacent elements of the source and write adjacent elements of the target;
in between, a group of work items keeps a square tile in shared memory. `movement` calls
`tiled_copy`; it has another kernel for CPUs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

from ...dtype import DType
from ..codegen.dialect import SUFFIX
from ..codegen.packs import fits, pack_type, read_pack, write_pack
from .device import GridDevice, Launch
from .kernel_writer import Kernel, ceil_div

__all__ = ["LANES", "Side", "tile_bytes", "tiled_copy"]

# Source or target of a copy: (number of the buffer, strides, offset, number of words), and the
# strides after axes were merged.
Side: TypeAlias = tuple[tuple[int, object, int, int], Sequence[int]]

# LANES adjacent work items access LINE bytes together. Groups copy BAND tiles one after the other
# along the source's dense axis before they go on along the target's, so that runs are long in both.
LANES, LINE, BAND = 32, 128, 8


def tile_bytes(word: DType) -> int:
    """Return how many bytes of shared memory `tiled_copy` needs for elements of dtype `word`."""
    side = max(LANES, LINE // word.itemsize)
    return side * (side + 1) * word.itemsize


def tiled_copy(
    device: GridDevice,
    word: DType,
    sizes: Sequence[int],
    dense_axis: int,
    source: Side,
    target: Side,
) -> Launch:
    """Return the launch of a transposing copy by square tiles in shared memory.

    The source is dense along `dense_axis`, the target along the last axis. `sizes` are the sizes of
    the merged axes.
    """
    (place, _, offset, size), in_steps = source
    (to_place, _, to_offset, to_size), out_steps = target
    last = len(sizes) - 1
    n = math.prod(sizes)
    each = max(1, LINE // LANES // word.itemsize)
    side = LANES * each
    k = Kernel(device, "tiled_copy", max(n, size, to_size))
    k.read("x", word, place)
    k.write("out", word, to_place)
    outer = [a for a in range(last) if a != dense_axis]
    along, across = ceil_div(sizes[dense_axis], side), ceil_div(sizes[last], side)
    for name, value in (
        ("x_offset", offset),
        ("out_offset", to_offset),
        ("along", along),
        ("across", across),
        ("wide", sizes[dense_axis]),
        ("length", sizes[last]),
        ("x_step", in_steps[last]),
        ("out_step", out_steps[dense_axis]),
    ):
        k.number(name, value)
    names = [k.number(f"size{a}", sizes[a]) for a in outer]
    threads = min(device.group, 256)
    _position(k, side, threads)
    at = k.split("matrix", names, "at")
    for label, steps in (("x", in_steps), ("out", out_steps)):
        terms = [f"{p} * {k.number(f'{label}_step{a}', steps[a])}" for p, a in zip(at, outer)]
        corner = ["column", "row * x_step"] if label == "x" else ["column * out_step", "row"]
        k.line(f"const ix {label}_from = {' + '.join([f'{label}_offset', *corner, *terms])};")
    in_packs = _packs(each, sizes[dense_axis], in_steps, dense_axis, offset)
    out_packs = _packs(each, sizes[last], out_steps, last, to_offset)
    _read_tile(k, word, side, each, threads, in_packs)
    k.line("DG_BARRIER();")
    _write_tile(k, word, side, each, threads, out_packs)
    groups = along * across * math.prod(sizes[a] for a in outer)
    return k.launch(groups, size=(threads,))


def _packs(each: int, extent: int, steps: Sequence[int], axis: int, offset: int) -> bool:
    """Return whether a work item can access `each` adjacent words of a tensor in one instruction.

    `axis` is the axis along which the tensor is dense, `extent` its size; `steps` and `offset` are
    the tensor's strides and offset.
    """
    others = [step for a, step in enumerate(steps) if a != axis]
    return each > 1 and extent % each == 0 and fits(each, [*others, 1], offset)


def _position(k: Kernel, side: int, threads: int) -> None:
    """Append to kernel `k` definitions that tell a group which tile it copies.

    They are `matrix`, `row` and `column`: the number of the matrix, and the tile's first row and
    column. Columns are counted along the source's dense axis, rows along the target's. `side` is
    the number of rows and of columns of a tile, `threads` the number of work items of a group.
    """
    k.line(
        f"enum {{ side = {side}, warps = {threads // LANES} }};",
        f"const i32 lane = DG_PLACE(0) % {LANES}, warp = DG_PLACE(0) / {LANES};",
        "const ix matrix = (ix)DG_GROUP(0) / (along * across);",
        "const ix inside = (ix)DG_GROUP(0) - matrix * along * across;",
        f"const ix first = inside / ({BAND} * across) * {BAND};",
        f"const ix many = along - first < {BAND} ? along - first : {BAND};",
        "const ix rest = inside - first * across;",
        "const ix row = rest / many * side, column = (first + rest % many) * side;",
    )


def _read_tile(k: Kernel, word: DType, side: int, each: int, threads: int, packs: bool) -> None:
    """Append to kernel `k` the loops that read a tile, first to registers, then to shared memory.

    `side` is the number of rows and of columns of the tile, `each` the number of words that a work
    item reads of a row; `packs` says whether it reads them in one instruction. `threads` is the
    number of work items of the group.
    """
    type_, steps = SUFFIX[word], side // (threads // LANES)
    k.lines.insert(0, f"    DG_SHARED {type_} tile[{side}][{side} + 1];")
    k.line(
        f"{pack_type(word, each) if packs else type_} held[{steps}]{'' if packs else f'[{each}]'};"
    )
    k.line("DG_UNROLL")
    k.open(f"for (i32 s = 0; s < {steps}; s++)")
    k.line("const i32 r = s * warps + warp;")
    k.line("if (row + r >= length) continue;")
    if packs:
        source = f"x + x_from + r * x_step + lane * {each}"
        k.line(f"if (column + lane * {each} >= wide) continue;")
        k.line(*read_pack(k.dialect, word, each, "pack", source), "held[s] = pack;")
    else:
        k.line("DG_UNROLL")
        k.open(f"for (i32 e = 0; e < {each}; e++)")
        k.line(f"const i32 c = lane + e * {LANES};")
        k.line("if (column + c < wide) held[s][e] = x[x_from + r * x_step + c];")
        k.close()
    k.close()
    k.line("DG_UNROLL")
    k.open(f"for (i32 s = 0; s < {steps}; s++)")
    k.line("DG_UNROLL")
    place, held = (
        (f"lane * {each} + e", "held[s].v[e]") if packs else (f"lane + e * {LANES}", "held[s][e]")
    )
    k.line(f"for (i32 e = 0; e < {each}; e++) tile[s * warps + warp][{place}] = {held};")
    k.close()


def _write_tile(k: Kernel, word: DType, side: int, each: int, threads: int, packs: bool) -> None:
    """Append to kernel `k` the loops that write a tile's columns as rows of the target.

    The arguments are those of `_read_tile`.
    """
    steps = side // (threads // LANES)
    k.line("DG_UNROLL")
    k.open(f"for (i32 s = 0; s < {steps}; s++)")
    k.line("const i32 r = s * warps + warp;")
    k.line("if (column + r >= wide) continue;")
    if packs:
        k.line(f"if (row + lane * {each} >= length) continue;")
        k.line(f"{pack_type(word, each)} pack;", "DG_UNROLL")
        k.line(f"for (i32 e = 0; e < {each}; e++) pack.v[e] = tile[lane * {each} + e][r];")
        target = f"out + out_from + r * out_step + lane * {each}"
        k.line(*write_pack(k.dialect, word, each, "pack", target))
    else:
        k.line("DG_UNROLL")
        k.open(f"for (i32 e = 0; e < {each}; e++)")
        k.line(f"const i32 c = lane + e * {LANES};")
        k.line("if (row + c < length) out[out_from + r * out_step + c] = tile[c][r];")
        k.close()
    k.close()
