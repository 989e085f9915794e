"""GPU-style kernels that copy elements (transpose, concat, pad ...) or fill with a constant.

Elements are copied as unsigned integers of the same size (words), so that one kernel source serves
all dtypes of that size. Other kernel modules use `copy_launch` and `fill_launch`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...dtype import DType, uint8, uint16, uint32, uint64
from ...types import TensorType
from ..codegen.dialect import SUFFIX
from ..codegen.packs import fits, pack_type, pack_width, read_pack, write_pack
from .device import GridDevice, Launch, Plan
from .kernel_writer import Kernel, ceil_div, element, stretch
from .strides import dense, merged, split_at
from .table import Types, kernel
from .tiled_copy import LANES, Side, tile_bytes, tiled_copy

if TYPE_CHECKING:
    from ..codegen.expression import Number

__all__ = ["WORDS", "copy_launch", "each_launch", "fill_launch"]

# Bytes of an element -> the word in which it is moved, and words for each element.
WORDS: dict[int, tuple[DType, int]] = {
    1: (uint8, 1), 2: (uint16, 1), 4: (uint32, 1), 8: (uint64, 1), 16: (uint64, 2),
}  # fmt: skip
# SQUARE: rows and columns of the squares in which a CPU transposes. LEAST_SIDE: the least rows and
# columns that a GPU (False) or a CPU (True) transposes in tiles or squares.
SQUARE = 32
LEAST_SIDE = {False: 8, True: SQUARE // 2}


def copy_launch(
    device: GridDevice,
    dtype: DType,
    shape: Sequence[int],
    source: tuple[int, Sequence[int], int, int],
    target: tuple[int, Sequence[int], int, int],
) -> Launch:
    """Return the launch that copies a strided view of one buffer to a strided view of another.

    Args:
        device: the device of the launch.
        dtype: dtype of the elements.
        shape: shape of both views.
        source: the view that is read: (number of the buffer, strides, offset of its first element,
            number of elements of the buffer).
        target: the view that is written, in the same form.
    """
    word, words = WORDS[dtype.itemsize]
    shape = [*shape, words]
    read_from, write_to = (
        (place, [*(s * words for s in steps), 1], offset * words, size * words)
        for place, steps, offset, size in (source, target)
    )
    sizes, (in_steps, out_steps) = merged(shape, [read_from[1], write_to[1]])
    n = 1
    for size in sizes:
        n *= size
    if len(sizes) > 1 and out_steps[-1] == 1 and in_steps[-1] > 1:
        dense_axis = next((a for a in range(len(sizes) - 1) if in_steps[a] == 1), None)
        enough = device.serial or (
            device.group >= LANES and device.shared_bytes >= tile_bytes(word)
        )
        least = LEAST_SIDE[device.serial]
        if enough and dense_axis is not None and min(sizes[dense_axis], sizes[-1]) >= least:
            write = _squares if device.serial else tiled_copy
            return write(
                device, word, sizes, dense_axis, (read_from, in_steps), (write_to, out_steps)
            )
    k = Kernel(device, "strided_copy", max(n, read_from[3], write_to[3]))
    k.read("x", word, read_from[0])
    k.write("out", word, write_to[0])
    for name, value in (("n", n), ("x_offset", read_from[2]), ("out_offset", write_to[2])):
        k.number(name, value)
    width = (
        1
        if device.serial
        else _copy_width(word, sizes, (read_from, in_steps), (write_to, out_steps))
    )
    names = ["", *k.numbers("size", sizes)[1:]]
    places = []
    for label, steps in (("x", in_steps), ("out", out_steps)):
        outer = [k.number(f"{label}_step{a}", s) for a, s in enumerate(steps[:-1])]
        inner = "j" if steps[-1] == 1 else f"j * {k.number(f'{label}_step', steps[-1])}"
        places.append((label, outer, inner))
    at = k.elements(n, names, width)
    for label, outer, _ in places:
        terms = [f"{label}_offset", *(f"{a} * {s}" for a, s in zip(at, outer))]
        k.line(f"const ix {label}_from = {' + '.join(terms)};")
    if width == 1:
        moved = [f"out[out_from + {places[1][2]}] = x[x_from + {places[0][2]}];"]
    else:
        left = "left" if n % width else ""
        moved = [
            *(["const ix left = n - i;"] if left else []),
            *read_pack(device.dialect, word, width, "pack", "x + x_from + j", left),
            *write_pack(device.dialect, word, width, "pack", "out + out_from + j", left),
        ]
    return k.end_elements(n, names[-1] or "n", moved, width=width)


def _copy_width(word: DType, sizes: Sequence[int], *sides: Side) -> int:
    """Return how many adjacent words each GPU work item copies in one access.

    `word` is the integer dtype as which elements are copied, `sizes` are the sizes of the axes.
    `sides` are the source and the target: (view as in `copy_launch`, strides along these axes).
    """
    if any(steps[-1] != 1 for _, steps in sides):
        return 1
    width = pack_width([word.itemsize], sizes[-1], len(sizes) == 1)
    while not all(fits(width, steps, whole[2]) for whole, steps in sides):
        width //= 2
    return width


def _squares(
    device: GridDevice,
    word: DType,
    sizes: Sequence[int],
    dense_axis: int,
    source: Side,
    target: Side,
) -> Launch:
    """Return the launch of a transposing copy on a CPU, by squares that use whole cache lines.

    The source is dense along `dense_axis`, the target along the last axis; `sizes` are the sizes of
    the axes. Each work item copies a band: as many positions of `dense_axis` as a square is wide.
    """
    (place, _, offset, size), in_steps = source
    (to_place, _, to_offset, to_size), out_steps = target
    n, last = math.prod(sizes), len(sizes) - 1
    k = Kernel(device, "transposed_copy", max(n, size, to_size))
    k.read("x", word, place)
    k.write("out", word, to_place)
    bands = ceil_div(sizes[dense_axis], SQUARE)
    outer = [a for a in range(last) if a != dense_axis]
    for name, value in (
        ("x_offset", offset),
        ("out_offset", to_offset),
        ("bands", bands),
        ("wide", sizes[dense_axis]),
        ("length", sizes[last]),
        ("x_step", in_steps[last]),
        ("out_step", out_steps[dense_axis]),
    ):
        k.number(name, value)
    names = [k.number(f"size{a}", sizes[a]) for a in outer]
    k.line(
        f"enum {{ side = {SQUARE} }};",
        "const ix band = (ix)DG_ITEM(0) % bands * side, matrix = (ix)DG_ITEM(0) / bands;",
    )
    at = k.split("matrix", names, "at")
    for label, steps in (("x", in_steps), ("out", out_steps)):
        terms = [f"{p} * {k.number(f'{label}_step{a}', steps[a])}" for p, a in zip(at, outer)]
        along = "band" if label == "x" else "band * out_step"
        k.line(f"const ix {label}_from = {' + '.join([f'{label}_offset', along, *terms])};")
    _transpose_squares(k, SUFFIX[word])
    return k.launch(bands * math.prod(sizes[a] for a in outer))


def _transpose_squares(k: Kernel, type_: str) -> None:
    """Append to kernel `k` the loops that transpose a band, a square at a time.

    Each square is copied through a small local array, so that reads and writes use whole cache
    lines. `type_` is the C type of the elements.
    """
    memory = k.dialect.memory
    k.line(
        f"{type_} square[side][side];",
        "const ix width = wide - band < side ? wide - band : side;",
    )
    k.open("for (ix begin = 0; begin < length; begin += side)")
    k.line("const ix many = length - begin < side ? length - begin : side;")
    for test, width in (("width == side", "side"), ("", "width")):
        k.open(f"if ({test})" if test else "else")
        k.open("for (ix j = 0; j < many; j++)")
        k.line(
            f"{memory} const {type_} *const line = x + x_from + (begin + j) * x_step;",
            "DG_INDEPENDENT",
            f"for (ix i = 0; i < {width}; i++) square[i][j] = line[i];",
        )
        k.close()
        k.close()
    k.open("for (ix i = 0; i < width; i++)")
    k.line(
        f"{memory} {type_} *const line = out + out_from + i * out_step + begin;",
        "DG_INDEPENDENT",
        "for (ix j = 0; j < many; j++) line[j] = square[i][j];",
    )
    k.close()
    k.close()


def _view(
    device: GridDevice, types: Types, result: TensorType, steps: Sequence[int], offset: int
) -> Plan:
    """Return the plan that copies a strided view of an op's only operand to its dense result."""
    shape, dtype = result.shape, result.dtype
    source = (0, steps, offset, types[0].size)
    return Plan((copy_launch(device, dtype, shape, source, (1, dense(shape), 0, result.size)),))


@kernel("strided_copy")
def strided_copy(
    device: GridDevice,
    types: Types,
    results: Types,
    *,
    shape: Sequence[int],
    strides: Sequence[int],
    offset: int,
) -> Plan:
    """Return the launch plan of the op that copies a strided view of a buffer to a dense one."""
    return _view(device, types, results[0], strides, offset)


@kernel("transpose")
def transpose(device: GridDevice, types: Types, results: Types, *, perm: Sequence[int]) -> Plan:
    """Return the kernel launch plan of a transpose: a copy of a tensor with permuted axes."""
    steps = dense(types[0].shape)
    return _view(device, types, results[0], [steps[p] for p in perm], 0)


@kernel("concat")
def concat(device: GridDevice, types: Types, results: Types, *, axis: int) -> Plan:
    """Return the launch plan of a concatenation: one copy of each operand into the result."""
    (out,) = results
    steps = dense(out.shape)
    launches, at = [], 0
    for place, t in enumerate(types):
        target = (len(types), steps, at * steps[axis], out.size)
        source = (place, dense(t.shape), 0, t.size)
        launches.append(copy_launch(device, out.dtype, t.shape, source, target))
        at += t.shape[axis]
    return Plan(tuple(launches))


@kernel("slice_update")
def slice_update(
    device: GridDevice,
    types: Types,
    results: Types,
    *,
    begin: Sequence[int],
    end: Sequence[int],
    strides: Sequence[int],
) -> Plan:
    """Return the launch plan that copies operand 0 to the result and operand 1 to a slice of it.

    The slice of the result is given by `begin`, `end` and `strides`, one number for each axis.
    """
    x, v = types
    steps = dense(x.shape)
    whole = copy_launch(device, x.dtype, x.shape, (0, steps, 0, x.size), (2, steps, 0, x.size))
    offset = sum(b * s for b, s in zip(begin, steps))
    target = (2, [s * by for s, by in zip(steps, strides)], offset, x.size)
    part = copy_launch(device, x.dtype, v.shape, (1, dense(v.shape), 0, v.size), target)
    return Plan((whole, part))


@kernel("pad_constant")
def pad_constant(
    device: GridDevice,
    types: Types,
    results: Types,
    *,
    low: Sequence[int],
    high: Sequence[int],
    value: Number,
) -> Plan:
    """Return the launch plan of padding: fill the result, then copy the operand inside."""
    (x,), (out,) = types, results
    steps = dense(out.shape)
    offset = sum(at * s for at, s in zip(low, steps))
    inner = (1, steps, offset, out.size)
    copy = copy_launch(device, x.dtype, x.shape, (0, dense(x.shape), 0, x.size), inner)
    return Plan((fill_launch(device, out, value, 1), copy))


def fill_launch(device: GridDevice, out: TensorType, value: Number, place: int) -> Launch:
    """Return the launch that sets all elements of buffer number `place` to a value.

    `out` is the type of the tensor in the buffer.
    """
    word, words = WORDS[out.dtype.itemsize]
    bits = np.array(value).astype(out.dtype.np).reshape(1).view(word.np)
    n = out.size * words
    k = Kernel(device, "fill", n)
    k.write("out", word, place)
    k.number("n", n)
    for part in range(words):
        k.number(f"value{part}", int(bits[part]), word)
    chosen = "value0" if words == 1 else "{} & 1 ? value1 : value0"
    if device.serial:
        return each_launch(device, k, n, f"out[i] = {chosen.format('i')};")
    width = pack_width([word.itemsize], n, True)
    k.elements(n, [""], width)
    if width == 1:
        return k.end_elements(n, "n", [f"out[i] = {chosen.format('i')};"])
    left = "left" if n % width else ""
    lines = [
        *(["const ix left = n - i;"] if left else []),
        f"{pack_type(word, width)} pack;",
        "DG_UNROLL",
        f"for (i32 e = 0; e < {width}; e++) pack.v[e] = {chosen.format('e')};",
        *write_pack(device.dialect, word, width, "pack", "out + i", left),
    ]
    return k.end_elements(n, "n", lines, width=width)


def each_launch(
    device: GridDevice, k: Kernel, n: int, text: str, independent: bool = True
) -> Launch:
    """Return the launch of a kernel that runs the C statement `text` for each `i` from 0 to n - 1.

    `independent` says whether a CPU's compiler may vectorise the loop over `i`.
    """
    grain = stretch(device, n)
    if device.serial:
        k.stretch("n", grain)
        if independent:
            k.line("DG_INDEPENDENT")
        k.line(f"for (ix i = begin; i < end; i++) {text}")
        return k.launch(ceil_div(n, grain))
    k.line("const ix i = (ix)DG_ITEM(0);", "if (i >= n) return;", text)
    return k.launch_items(n)


@kernel("fill")
def fill(
    device: GridDevice,
    types: Types,
    results: Types,
    *,
    shape: Sequence[int],
    value: Number,
    dtype: DType,
) -> Plan:
    """Return the kernel launch plan of a tensor filled with one value."""
    return Plan((fill_launch(device, results[0], value, 0),))


@kernel("iota")
def iota(
    device: GridDevice,
    types: Types,
    results: Types,
    *,
    shape: Sequence[int],
    axis: int,
    dtype: DType,
) -> Plan | None:
    """Return the launch plan of a tensor that counts from 0 along one axis.

    Returns None if the dtype is complex.
    """
    if dtype.is_complex:
        return None
    (out,) = results
    _, n, inner = split_at(shape, axis)
    k = Kernel(device, "iota", out.size)
    k.write("out", dtype, 0)
    for name, size in (("n", out.size), ("size", n), ("inner", inner)):
        k.number(name, size)
    count = "(i / inner) % size"
    if dtype.name == "bool":
        count = f"{count} != 0"
    value = device.dialect.store(dtype, f"({element(dtype)})({count})")
    return Plan((each_launch(device, k, out.size, f"out[i] = {value};"),))
