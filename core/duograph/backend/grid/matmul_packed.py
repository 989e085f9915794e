"""Matmul kernels for a CPU, which copy operands into panels and keep a tile of sums in registers.

`matmul_plan` calls `packed_plan`. For operands x and y, it packs (copies and reorders) both in the
dtype of the sum and pads them to whole tiles, so that the innermost loop reads values of x and
vectors of y in the order of memory (`tiles.py` has the tile sizes). x is not packed if the elements
of its rows are adjacent and have the dtype of the sum; the last tile then reads the last row in
place of missing rows and discards their sums. Nothing here runs a kernel. Reference: Goto and van
de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008).
"""

from __future__ import annotations

import dataclasses

from ...dtype import DType
from ..codegen.dialect import SUFFIX
from .device import GridDevice, Launch, Plan
from .kernel_writer import Kernel, ceil_div
from .matmul_operands import (
    Matmul,
    Matrices,
    Operand,
    define,
    matrix_numbers,
    rounded,
    sum_dtype,
)
from .tiles import PROCESSOR, Tiles

__all__ = ["packed_plan", "thin_launch"]

# Elements of the depth between which sums stay in registers.
DEPTH = 256


def packed_plan(device: GridDevice, problem: Matmul) -> Plan:
    """Return the launch plan of a matmul on a CPU: copy the operands into panels, then multiply."""
    (m, n, depth), x, y = problem.sizes, problem.x, problem.y
    acc = sum_dtype(x.dtype)
    tiles = device.tiles if isinstance(device.tiles, Tiles) else PROCESSOR[0]
    if acc.itemsize == 8:
        tiles = dataclasses.replace(tiles, rows=tiles.rows // 2)
    rows, columns = tiles.rows, 16 * tiles.vectors
    packs = [_pack(device, y, n, depth, columns, acc, problem.place + 1)]
    scratch = [y.count * ceil_div(n, columns) * columns * depth * acc.itemsize]
    if not _is_dense(x, acc):
        packs.append(_pack(device, x, m, depth, rows, acc, problem.place + 2))
        scratch.append(x.count * ceil_div(m, rows) * rows * depth * acc.itemsize)
    return Plan((*packs, _packed(device, problem, tiles, acc)), tuple(scratch))


def _is_dense(x: Operand, acc: DType) -> bool:
    """Return whether a matmul operand's lines (rows of x, columns of y) need no packing.

    Their elements must be adjacent in memory and have the dtype of the sum, `acc`.
    """
    return isinstance(x, Matrices) and x.step == 1 and x.dtype is acc


def _pack(
    device: GridDevice,
    source: Operand,
    lines: int,
    depth: int,
    width: int,
    acc: DType,
    place: int,
) -> Launch:
    """Return the launch that copies a matmul operand into zero-padded panels of `width` lines.

    A line is a row of x or a column of y, with `depth` elements. A panel holds the first element
    of each of its lines, then the second of each, and so on. Elements are converted to `acc` and
    written to buffer number `place`.
    """
    panels = ceil_div(lines, width)
    k = Kernel(device, "pack", max(source.size, source.count * panels * width * depth))
    k.read("x", source.dtype, source.place)
    k.write("out", acc, place)
    for name, size in (("lines", lines), ("depth", depth), ("panels", panels)):
        k.number(name, size)
    source.numbers(k, "x")
    type_ = SUFFIX[acc]
    value = f"({type_}){source.value(k, 'x')}"
    k.line(
        f"enum {{ width = {width} }};",
        "const ix panel = (ix)DG_ITEM(0) % panels, matrix = (ix)DG_ITEM(0) / panels;",
        f"{device.dialect.memory} {type_} *const to = out + (ix)DG_ITEM(0) * width * depth;",
        "const ix whole = lines - panel * width < width ? lines - panel * width : width;",
    )
    define(k, source.of_matrix("x", "matrix"))
    of_line = source.of_line("x", "(panel * width + w)")
    if isinstance(source, Matrices) and source.step == 1:
        _pack_dense(k, source, of_line, value, type_)
        return k.launch(source.count * panels)
    for name, _ in of_line:
        k.line(f"ix {name}_of[width];")
    k.open("for (ix w = 0; w < whole; w++)")
    k.line(*(f"{name}_of[w] = {text};" for name, text in of_line))
    k.close()
    k.open("for (ix k = 0; k < depth; k++)")
    define(k, source.of_depth("x", "k"))
    for test, width_text in (("whole == width", "width"), ("", "whole")):
        k.open(f"if ({test})" if test else "else")
        k.line("DG_INDEPENDENT")
        k.open(f"for (ix w = 0; w < {width_text}; w++)")
        define(k, [(name, f"{name}_of[w]") for name, _ in of_line])
        k.line(f"to[k * width + w] = {value};")
        k.close()
        k.close()
    k.line(f"for (ix w = whole; w < width; w++) to[k * width + w] = ({type_})0;")
    k.close()
    return k.launch(source.count * panels)


def _pack_dense(
    k: Kernel, source: Operand, of_line: list[tuple[str, str]], value: str, type_: str
) -> None:
    """Append to kernel `k` the loops that copy lines with adjacent elements into panels.

    A line is a row of x or a column of y. The loops read one cache line of each line at a time.
    `of_line` are the index variables of a line, `value` is the C expression of an element, `type_`
    the C type of the sums.
    """
    k.open("for (ix begin = 0; begin < depth; begin += 16)")
    k.line("const ix end = begin + 16 < depth ? begin + 16 : depth;")
    k.open("for (ix w = 0; w < whole; w++)")
    define(k, of_line)
    k.open("for (ix k = begin; k < end; k++)")
    define(k, [(name, text.replace(" * x_step", "")) for name, text in source.of_depth("x", "k")])
    k.line(f"to[k * width + w] = {value};")
    k.close()
    k.close()
    k.close()
    k.line("for (ix k = 0; k < depth; k++)")
    k.line(f"    for (ix w = whole; w < width; w++) to[k * width + w] = ({type_})0;")


def _packed(device: GridDevice, problem: Matmul, tiles: Tiles, acc: DType) -> Launch:
    """Return the launch that multiplies operands in panels; a work item computes a strip of rows.

    `tiles` has the tile of sums that is kept in registers; `acc` is the dtype of the sums.
    """
    (m, n, depth), x, count = problem.sizes, problem.x, problem.count
    rows, columns = tiles.rows, 16 * tiles.vectors
    strips, panels = ceil_div(m, tiles.strip), ceil_div(n, columns)
    # packed buffers are longer than the operands by the padding of the last tiles
    packed = (m + rows) * depth * count + (n + columns) * depth * count
    k = Kernel(device, "matmul", packed + problem.offset + count * m * n)
    dense = _is_dense(x, acc)
    k.read("x", acc, x.place if dense else problem.place + 2)
    k.read("y", acc, problem.place + 1)
    k.write("out", problem.dtype, problem.place)
    for name, value in (
        ("m", m), ("n", n), ("depth", depth), ("strips", strips), ("panels", panels),
        ("offset", problem.offset),
    ):  # fmt: skip
        k.number(name, value)
    if dense:
        x.numbers(k, "x")
    type_, memory = SUFFIX[acc], device.dialect.memory
    k.line(
        f"enum {{ rows = {rows}, columns = {columns}, tile = {tiles.strip}, deep = {DEPTH} }};",
        f"{type_}x16 sums[tile][{tiles.vectors}];",
        "const ix item = (ix)DG_ITEM(0), strip = item % strips, rest = item / strips;",
        "const ix panel = rest % panels, at = rest / panels;",
    )
    matrix_numbers(k, problem.batch, (x, problem.y), "at")
    first = "x_matrix * x_matrix_size" if dense else "(x_matrix * x_panels + first) * rows * depth"
    k.line(
        "const ix x_panels = (m + rows - 1) / rows, first = strip * (tile / rows);",
        "const ix blocks = x_panels - first < tile / rows ? x_panels - first : tile / rows;",
        f"{memory} const {type_} *const xs = x + {first};",
        f"{memory} const {type_} *const ys = y + (y_matrix * panels + panel) * columns * depth;",
    )
    k.open("for (ix begin = 0; begin < depth || begin == 0; begin += deep)")
    k.line("const ix end = begin + deep < depth ? begin + deep : depth;")
    k.open("for (ix block = 0; block < blocks; block++)")
    _block(k, tiles, type_, dense)
    k.close()
    k.close()
    k.line(
        "const ix left = m - strip * tile < tile ? m - strip * tile : tile;",
        "const ix width = n - panel * columns < columns ? n - panel * columns : columns;",
    )
    k.open("for (ix r = 0; r < left; r++)")
    k.line(
        f"{memory} {SUFFIX[problem.dtype]} *const to = "
        "out + offset + (at * m + strip * tile + r) * n + panel * columns;",
        f"const {type_} *const from = (const {type_} *)sums[r];",
        f"for (ix c = 0; c < width; c++) to[c] = {rounded(device, problem.dtype, 'from[c]')};",
    )
    k.close()
    return k.launch(count * strips * panels)


def _block(k: Kernel, tiles: Tiles, type_: str, dense: bool) -> None:
    """Append to kernel `k` the loop that multiplies one tile's rows of x by a panel of y.

    The loop runs over a range of the summed axis. The tile's sums are in registers during the loop,
    and in the array `sums` before and after it. `type_` is the C type of the sums; `dense` says
    whether x is read in place rather than from packed panels.
    """
    memory, vector = k.dialect.memory, f"{type_}x16"
    if dense:  # rows past the last one read it again; their results are not stored
        for r in range(tiles.rows):
            row = f"(first + block) * rows + {r}"
            line = f"({row} < m ? {row} : m - 1) * x_line_step"
            k.line(f"{memory} const {type_} *const x{r} = xs + {line};")
    else:
        k.line(f"{memory} const {type_} *const xb = xs + block * rows * depth;")
    names = [(r, c, f"s{r}_{c}") for r in range(tiles.rows) for c in range(tiles.vectors)]
    k.line(f"{vector} {', '.join(name for _, _, name in names)};")
    k.open("if (begin == 0)")
    k.line(" ".join(f"{name} = ({vector})(0);" for _, _, name in names))
    k.close()
    k.open("else")
    k.line(" ".join(f"{name} = sums[block * rows + {r}][{c}];" for r, c, name in names))
    k.close()
    k.open("for (ix k = begin; k < end; k++)")
    for c in range(tiles.vectors):
        k.line(f"const {vector} y{c} = dg_load_{vector}(ys + k * columns + {16 * c});")
    for r in range(tiles.rows):
        sums = " ".join(
            f"s{r}_{c} = dg_fma_{vector}(a, y{c}, s{r}_{c});" for c in range(tiles.vectors)
        )
        one = f"x{r}[k]" if dense else f"xb[k * rows + {r}]"
        k.line(f"{{ const {vector} a = ({vector})({one}); {sums} }}")
    k.close()
    k.line(" ".join(f"sums[block * rows + {r}][{c}] = {name};" for r, c, name in names))


def thin_launch(device: GridDevice, problem: Matmul, x: Matrices, y: Matrices) -> Launch:
    """Return the launch of a matmul on a CPU that reads its operands in place, without packing.

    It is the fastest kernel for few rows, few columns or a short sum.
    """
    m, n, depth = problem.sizes
    acc = SUFFIX[sum_dtype(x.dtype)]
    k = Kernel(device, "thin_matmul", problem.extent)
    problem.declare(k)
    blocks = ceil_div(n, 256)
    for name, value in (
        ("m", m), ("n", n), ("depth", depth), ("x_row", x.line_step), ("x_step", x.step),
        ("y_row", y.step), ("y_step", y.line_step), ("blocks", blocks),
    ):  # fmt: skip
        k.number(name, value)
    k.line(
        "enum { wide = 256 };",
        f"{acc} sums[wide];",
        "const ix item = (ix)DG_ITEM(0), block = item % blocks, rest = item / blocks;",
        "const ix row = rest % m, at = rest / m;",
    )
    matrix_numbers(k, problem.batch, (x, y), "at")
    a = f"({acc}){device.dialect.load(x.dtype, 'x[x_from + k * x_step]')}"
    b = f"({acc}){device.dialect.load(y.dtype, 'y[y_from + k * y_row + c * y_step]')}"
    k.line(
        "const ix width = n - block * wide < wide ? n - block * wide : wide;",
        "const ix x_from = x_matrix * m * depth + row * x_row;",
        "const ix y_from = y_matrix * n * depth + block * wide * y_step;",
    )
    if y.line_step == 1 and n > 1:
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
    out = SUFFIX[problem.dtype]
    k.line(
        f"{device.dialect.memory} {out} *const to = out + (at * m + row) * n + block * wide;",
        f"for (ix c = 0; c < width; c++) to[c] = {rounded(device, problem.dtype, 'sums[c]')};",
    )
    return k.launch(problem.count * m * blocks)
