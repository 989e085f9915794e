"""Matrix products.

On a grid, a group computes a tile of 64 by 64 through group memory, each item 4 by 4 of it. On a processor both
operands are first packed into panels, in the dtype of the sum and padded to whole tiles, so that the innermost loop is
one run over two streams: 8 values of x times 32 of y, kept in registers. Goto and van de Geijn, "Anatomy of
High-Performance Matrix Multiplication" (2008).
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from ...dtype import DType, bfloat16, float16, float32, uint32, uint64
from ...types import TensorType
from ..codegen.dialect import SUFFIX
from .device import GridDevice, Launch, Plan
from .strides import broadcast_steps, merged
from .table import kernel
from .writing import Kernel, ceil_div

__all__ = ["Matrices", "product_launches"]

# Columns of a packed panel of y; rows of a tile of results; elements of k between which sums stay in registers.
COLUMNS, TILE_ROWS, DEPTH = 32, 64, 256
# Products with fewer rows are not worth packing.
THIN = 4


@dataclasses.dataclass(frozen=True)
class Matrices:
    """A batch of matrices in a buffer: place, stored dtype, steps of rows and columns, and of the axes of the batch."""

    place: int
    dtype: DType
    row_step: int
    column_step: int
    batch_steps: tuple[int, ...]
    count: int
    size: int


def sum_dtype(dtype: DType) -> DType:
    """In which products of this dtype are added up."""
    if dtype in (float16, bfloat16):
        return float32
    if dtype.is_integer:
        return uint64 if dtype.itemsize == 8 else uint32
    return dtype


@kernel("matmul")
def matmul(
    device: GridDevice,
    types: Any,
    results: Any,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> Plan | None:
    """Batched products; a batch of rows against one matrix becomes one product."""
    x, y = types
    (out,) = results
    if x.dtype.is_complex:
        return None
    m, n = out.shape[-2:]
    depth = x.shape[-2] if transpose_a else x.shape[-1]
    batch = out.shape[:-2]
    x_batch, y_batch = x.shape[:-2], y.shape[:-2]
    if math.prod(y_batch) == 1 and not transpose_a:
        m, batch, x_batch, y_batch = m * math.prod(batch), (), (), ()
    sizes, (x_steps, y_steps) = merged(
        batch, [broadcast_steps(x_batch, batch), broadcast_steps(y_batch, batch)]
    )
    if not batch:
        x_steps, y_steps = [0], [0]
    a = Matrices(
        0, x.dtype, 1 if transpose_a else depth, m if transpose_a else 1, tuple(x_steps),
        math.prod(x_batch), x.size,
    )  # fmt: skip
    b = Matrices(
        1, y.dtype, 1 if transpose_b else n, depth if transpose_b else 1, tuple(y_steps),
        math.prod(y_batch), y.size,
    )  # fmt: skip
    return product_launches(device, (m, n, depth), tuple(sizes), a, b, out, 2)


def product_launches(
    device: GridDevice,
    sizes: tuple[int, int, int],
    batch: tuple[int, ...],
    x: Matrices,
    y: Matrices,
    out: TensorType,
    place: int,
) -> Plan:
    """out[b, i, j] = sum over k of x[b, i, k] * y[b, k, j].

    Args:
        device: where.
        sizes: rows, columns, and length of the sums.
        batch: axes of the batch; steps of `Matrices.batch_steps` are in whole matrices.
        x, y: the operands.
        out: its dtype is that of the results, dense.
        place: its place; scratch comes after it.
    """
    if not device.serial:
        return Plan((_tiles(device, sizes, batch, x, y, out, place),))
    m, n, depth = sizes
    if m < THIN or n < THIN or depth < THIN:
        return Plan((_thin(device, sizes, batch, x, y, out, place),))
    acc = sum_dtype(x.dtype)
    rows = 8 if acc.itemsize == 4 else 4
    x_panels, y_panels = ceil_div(m, rows), ceil_div(n, COLUMNS)
    x_pack = _pack(device, x, (m, x.row_step), (depth, x.column_step), rows, acc, place + 1)
    y_pack = _pack(device, y, (n, y.column_step), (depth, y.row_step), COLUMNS, acc, place + 2)
    scratch = (
        x.count * x_panels * rows * depth * acc.itemsize,
        y.count * y_panels * COLUMNS * depth * acc.itemsize,
    )
    run = _packed(device, sizes, batch, (x, y), acc, rows, out, place)
    return Plan((x_pack, y_pack, run), scratch)


def _pack(
    device: GridDevice,
    source: Matrices,
    across: tuple[int, int],
    along: tuple[int, int],
    width: int,
    acc: DType,
    place: int,
) -> Launch:
    """Panels of `width` lines: panel[k][w] = source line (panel * width + w) at k, 0 past the last line."""
    lines, depth = across[0], along[0]
    panels = ceil_div(lines, width)
    k = Kernel(device, "pack", max(source.size, source.count * panels * width * depth))
    k.read("x", source.dtype, source.place)
    k.write("out", acc, place)
    for name, size in (
        ("lines", lines), ("depth", depth), ("across", across[1]), ("along", along[1]), ("panels", panels),
    ):  # fmt: skip
        k.number(name, size)
    zero = f"({SUFFIX[acc]})0"
    value = f"({SUFFIX[acc]}){device.dialect.load(source.dtype, 'from[w * across + k * along]')}"
    k.line(
        f"enum {{ width = {width} }};",
        "const ix panel = (ix)DG_ITEM(0) % panels, matrix = (ix)DG_ITEM(0) / panels;",
        f"{device.dialect.memory} const {SUFFIX[source.dtype]} *from = x + matrix * lines * depth + "
        "panel * width * across;",
        f"{device.dialect.memory} {SUFFIX[acc]} *to = out + (ix)DG_ITEM(0) * width * depth;",
        "const ix whole = lines - panel * width < width ? lines - panel * width : width;",
    )
    k.open("if (whole == width)")
    if along[1] == 1:
        # blocks of k, so that each line's cache lines are used up before they go
        k.open("for (ix begin = 0; begin < depth; begin += 16)")
        k.line("const ix end = begin + 16 < depth ? begin + 16 : depth;")
        k.line("for (ix w = 0; w < width; w++)")
        k.line(f"    for (ix k = begin; k < end; k++) to[k * width + w] = {value};")
        k.close()
    else:
        k.line("for (ix k = 0; k < depth; k++)", "    DG_INDEPENDENT")
        k.line(f"    for (ix w = 0; w < width; w++) to[k * width + w] = {value};")
    k.close()
    k.open("else")
    k.line("for (ix k = 0; k < depth; k++)")
    k.line(f"    for (ix w = 0; w < width; w++) to[k * width + w] = w < whole ? {value} : {zero};")
    k.close()
    return k.launch(source.count * panels)


def _batch(k: Kernel, batch: tuple[int, ...], operands: tuple[Matrices, Matrices], at: str) -> None:
    """Lines with the number of the matrix of x and of y for the place `at` in the batch."""
    places = k.split(at, ["", *k.numbers("batch", batch)[1:]], "b")
    for label, matrices in zip("xy", operands):
        terms = [
            f"{p} * {k.number(f'{label}_batch{a}', s)}"
            for a, (p, s) in enumerate(zip(places, matrices.batch_steps))
        ]
        k.line(f"const ix {label}_matrix = {' + '.join(terms) or '0'};")


def _kept(device: GridDevice, out: TensorType, value: str) -> str:
    if out.dtype in (float16, bfloat16):
        return device.dialect.store(out.dtype, value)
    return f"({SUFFIX[out.dtype]})({value})"


def _packed(
    device: GridDevice,
    sizes: tuple[int, int, int],
    batch: tuple[int, ...],
    operands: tuple[Matrices, Matrices],
    acc: DType,
    rows: int,
    out: TensorType,
    place: int,
) -> Launch:
    m, n, depth = sizes
    count = math.prod(batch)
    strips, panels = ceil_div(m, TILE_ROWS), ceil_div(n, COLUMNS)
    # packed buffers are longer than the operands by what fills up the last tiles
    k = Kernel(device, "product", (max(m, rows) + rows) * depth * count + (n + COLUMNS) * depth * count + out.size)
    k.read("x", acc, place + 1)
    k.read("y", acc, place + 2)
    k.write("out", out.dtype, place)
    for name, value in (("m", m), ("n", n), ("depth", depth), ("strips", strips), ("panels", panels)):
        k.number(name, value)
    type_, memory = SUFFIX[acc], device.dialect.memory
    vector = f"{type_}x16"
    k.line(
        f"enum {{ rows = {rows}, columns = {COLUMNS}, tile = {TILE_ROWS}, deep = {DEPTH} }};",
        f"{vector} sums[tile][2];",
        "const ix item = (ix)DG_ITEM(0), strip = item % strips, rest = item / strips;",
        "const ix panel = rest % panels, at = rest / panels;",
    )
    _batch(k, batch, operands, "at")
    k.line(
        "const ix x_panels = (m + rows - 1) / rows, first = strip * (tile / rows);",
        "const ix blocks = x_panels - first < tile / rows ? x_panels - first : tile / rows;",
        f"{memory} const {type_} *const xs = x + (x_matrix * x_panels + first) * rows * depth;",
        f"{memory} const {type_} *const ys = y + (y_matrix * panels + panel) * columns * depth;",
    )
    k.open("for (ix begin = 0; begin < depth || begin == 0; begin += deep)")
    k.line("const ix end = begin + deep < depth ? begin + deep : depth;")
    k.open("for (ix block = 0; block < blocks; block++)")
    k.line(f"{memory} const {type_} *const xb = xs + block * rows * depth;")
    names = [(r, c, f"s{r}_{c}") for r in range(rows) for c in range(2)]
    k.line(f"{vector} {', '.join(name for _, _, name in names)};")
    k.open("if (begin == 0)")
    k.line(" ".join(f"{name} = ({vector})(0);" for _, _, name in names))
    k.close()
    k.open("else")
    k.line(" ".join(f"{name} = sums[block * rows + {r}][{c}];" for r, c, name in names))
    k.close()
    k.open("for (ix k = begin; k < end; k++)")
    k.line(
        f"const {vector} y0 = dg_load_{vector}(ys + k * columns), y1 = dg_load_{vector}(ys + k * columns + 16);"
    )
    for r in range(rows):
        k.line(
            f"{{ const {vector} a = ({vector})(xb[k * rows + {r}]); "
            f"s{r}_0 = dg_fma_{vector}(a, y0, s{r}_0); s{r}_1 = dg_fma_{vector}(a, y1, s{r}_1); }}"
        )
    k.close()
    k.line(" ".join(f"sums[block * rows + {r}][{c}] = {name};" for r, c, name in names))
    k.close()
    k.close()
    k.line(
        "const ix left = m - strip * tile < tile ? m - strip * tile : tile;",
        "const ix width = n - panel * columns < columns ? n - panel * columns : columns;",
    )
    k.open("for (ix r = 0; r < left; r++)")
    k.line(
        f"{memory} {SUFFIX[out.dtype]} *const to = out + (at * m + strip * tile + r) * n + panel * columns;",
        f"const {type_} *const from = (const {type_} *)sums[r];",
        f"for (ix c = 0; c < width; c++) to[c] = {_kept(device, out, 'from[c]')};",
    )
    k.close()
    return k.launch(count * strips * panels)


def _thin(
    device: GridDevice,
    sizes: tuple[int, int, int],
    batch: tuple[int, ...],
    x: Matrices,
    y: Matrices,
    out: TensorType,
    place: int,
) -> Launch:
    """Few rows or columns, on a processor: an item has a block of columns of one row."""
    m, n, depth = sizes
    acc = SUFFIX[sum_dtype(x.dtype)]
    count = math.prod(batch)
    k = Kernel(device, "thin_product", max(x.size, y.size, out.size))
    k.read("x", x.dtype, x.place)
    k.read("y", y.dtype, y.place)
    k.write("out", out.dtype, place)
    blocks = ceil_div(n, 256)
    for name, value in (
        ("m", m), ("n", n), ("depth", depth), ("x_row", x.row_step), ("x_step", x.column_step),
        ("y_row", y.row_step), ("y_step", y.column_step), ("blocks", blocks),
    ):  # fmt: skip
        k.number(name, value)
    k.line(
        "enum { wide = 256 };",
        f"{acc} sums[wide];",
        "const ix item = (ix)DG_ITEM(0), block = item % blocks, rest = item / blocks;",
        "const ix row = rest % m, at = rest / m;",
    )
    _batch(k, batch, (x, y), "at")
    a = f"({acc}){device.dialect.load(x.dtype, 'x[x_from + k * x_step]')}"
    b = f"({acc}){device.dialect.load(y.dtype, 'y[y_from + k * y_row + c * y_step]')}"
    k.line(
        "const ix width = n - block * wide < wide ? n - block * wide : wide;",
        "const ix x_from = x_matrix * m * depth + row * x_row;",
        "const ix y_from = y_matrix * n * depth + block * wide * y_step;",
    )
    if y.column_step == 1 and n > 1:
        k.line("for (ix c = 0; c < width; c++) sums[c] = 0;")
        k.open("for (ix k = 0; k < depth; k++)")
        k.line(f"const {acc} a = {a};", "DG_INDEPENDENT")
        k.line(f"for (ix c = 0; c < width; c++) sums[c] += a * {b.replace('c * y_step', 'c')};")
        k.close()
    else:
        k.open("for (ix c = 0; c < width; c++)")
        k.line(f"{acc} sum = 0;", "DG_ANY_ORDER")
        k.open("for (ix k = 0; k < depth; k++)")
        k.line(f"const {acc} both = {a} * {b};", "DG_ADD_TO(sum, both)")
        k.close()
        k.line("sums[c] = sum;")
        k.close()
    k.line(
        f"{device.dialect.memory} {SUFFIX[out.dtype]} *const to = out + (at * m + row) * n + block * wide;",
        f"for (ix c = 0; c < width; c++) to[c] = {_kept(device, out, 'sums[c]')};",
    )
    return k.launch(count * m * blocks)


def _tiles(
    device: GridDevice,
    sizes: tuple[int, int, int],
    batch: tuple[int, ...],
    x: Matrices,
    y: Matrices,
    out: TensorType,
    place: int,
) -> Launch:
    """A group for each tile of results."""
    m, n, depth = sizes
    acc = SUFFIX[sum_dtype(x.dtype)]
    side = 16 if device.group >= 256 else 8 if device.group >= 64 else 4
    tile = side * 4
    tiles_m, tiles_n = ceil_div(m, tile), ceil_div(n, tile)
    count = math.prod(batch)
    k = Kernel(device, "product", max(x.size, y.size, out.size))
    k.read("x", x.dtype, x.place)
    k.read("y", y.dtype, y.place)
    k.write("out", out.dtype, place)
    for name, value in (
        ("m", m), ("n", n), ("depth", depth), ("x_row", x.row_step), ("x_step", x.column_step),
        ("y_row", y.row_step), ("y_step", y.column_step), ("tiles_m", tiles_m), ("tiles_n", tiles_n),
    ):  # fmt: skip
        k.number(name, value)
    k.line(
        f"enum {{ side = {side}, each = 4, tile = side * each, deep = 16, items = side * side }};",
        f"DG_SHARED {acc} xs[deep * (tile + 1)];",
        f"DG_SHARED {acc} ys[deep * (tile + 1)];",
        "const i32 place = DG_PLACE(0), px = place % side, py = place / side;",
        "const ix group = (ix)DG_GROUP(0), tile_n = group % tiles_n, rest = group / tiles_n;",
        "const ix tile_m = rest % tiles_m, at = rest / tiles_m;",
    )
    _batch(k, batch, (x, y), "at")
    load_x = f"({acc}){device.dialect.load(x.dtype, 'x[x_from + (tile_m * tile + r) * x_row + (begin + k) * x_step]')}"
    load_y = f"({acc}){device.dialect.load(y.dtype, 'y[y_from + (begin + k) * y_row + (tile_n * tile + c) * y_step]')}"
    k.line(
        "const ix x_from = x_matrix * m * depth, y_from = y_matrix * n * depth;",
        f"{acc} sums[each][each];",
        "for (i32 i = 0; i < each; i++) for (i32 j = 0; j < each; j++) sums[i][j] = 0;",
    )
    k.open("for (ix begin = 0; begin < depth; begin += deep)")
    # neighbouring items read neighbouring elements, whichever axis is dense
    for label, axis, limit, load, dense in (
        ("x", "r", "m - tile_m * tile", load_x, x.column_step == 1),
        ("y", "c", "n - tile_n * tile", load_y, y.row_step == 1),
    ):
        k.open("for (i32 e = place; e < deep * tile; e += items)")
        if dense:
            k.line(f"const i32 k = e % deep, {axis} = e / deep;")
        else:
            k.line(f"const i32 {axis} = e % tile, k = e / tile;")
        k.line(
            f"{label}s[k * (tile + 1) + {axis}] = {axis} < {limit} && k < depth - begin ? {load} : ({acc})0;"
        )
        k.close()
    k.line("DG_BARRIER();")
    k.open("for (i32 k = 0; k < deep; k++)")
    k.line(
        f"{acc} a[each], b[each];",
        "for (i32 i = 0; i < each; i++) a[i] = xs[k * (tile + 1) + py + i * side];",
        "for (i32 j = 0; j < each; j++) b[j] = ys[k * (tile + 1) + px + j * side];",
    )
    fma = f"dg_fma_{acc}(a[i], b[j], sums[i][j])" if acc in ("f32", "f64") else "a[i] * b[j] + sums[i][j]"
    k.line(f"for (i32 i = 0; i < each; i++) for (i32 j = 0; j < each; j++) sums[i][j] = {fma};")
    k.close()
    k.line("DG_BARRIER();")
    k.close()
    k.open("for (i32 i = 0; i < each; i++) for (i32 j = 0; j < each; j++)")
    k.line(
        "const ix r = tile_m * tile + py + i * side, c = tile_n * tile + px + j * side;",
        f"if (r < m && c < n) out[(at * m + r) * n + c] = {_kept(device, out, 'sums[i][j]')};",
    )
    k.close()
    return k.launch(count * tiles_m * tiles_n, size=(side * side,))
