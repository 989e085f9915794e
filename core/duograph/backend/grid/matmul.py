"""Matrix products.

On a grid, a group computes a tile of 64 by 64 through group memory, each item 4 by 4 of it. On a
processor both operands are first packed into panels, in the dtype of the sum and padded to whole
tiles, so that the innermost loop is one run over two streams: some values of x times one or more
vectors of y, kept in registers (`tiles.py`). Rows of x that are as the loop reads them stay where
they are. Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008).
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from ...dtype import DType, bfloat16, float16, float32, uint32, uint64
from ...types import TensorType
from ..codegen.dialect import SUFFIX
from .device import GridDevice, Launch, Plan
from .kernel_writer import Kernel, ceil_div
from .strides import broadcast_steps, merged
from .table import kernel
from .tiles import GROUP, PROCESSOR, GroupTiles, Tiles

__all__ = [
    "Matrices",
    "Operand",
    "Matmul",
    "define",
    "few_lines",
    "matrix_numbers",
    "matmul_plan",
    "sum_dtype",
    "tiles",
]

# Elements of k between which sums stay in registers.
DEPTH = 256
# Products with fewer rows are not worth packing, nor are they worth tiles on a grid.
THIN = 4


@dataclasses.dataclass(frozen=True)
class Operand:
    """A batch of matrices: what is multiplied, line by line (rows of x, columns of y), along the
    depth of the sums.

    Attributes:
        place: of the buffer.
        dtype: as stored.
        size: elements of the buffer.
        batch_steps: in whole matrices, along the axes of the batch.
        count: of the matrices.
        along: whether neighbours in memory lie along the depth, rather than in neighbouring lines.
    """

    place: int
    dtype: DType
    size: int
    batch_steps: tuple[int, ...]
    count: int

    @property
    def along(self) -> bool:
        return False

    def numbers(self, k: Kernel, label: str) -> None:
        """Declare the arguments that the texts below use; `label` is the name of the buffer."""

    def of_line(self, label: str, line: str) -> list[tuple[str, str]]:
        """Names and texts of what follows from the number of a line, each an `ix`."""
        return []

    def of_depth(self, label: str, depth: str) -> list[tuple[str, str]]:
        """The same for a place along the depth."""
        return []

    def of_matrix(self, label: str, matrix: str) -> list[tuple[str, str]]:
        """The same for the number of a matrix."""
        return []

    def element(self, label: str) -> str:
        """The element as it is stored, from the names above."""
        raise NotImplementedError

    def value(self, k: Kernel, label: str) -> str:
        """The element, loaded."""
        return k.dialect.load(self.dtype, self.element(label))


@dataclasses.dataclass(frozen=True)
class Matrices(Operand):
    """Matrices that lie in the buffer with steps.

    Attributes:
        lines: of a matrix.
        depth: of a matrix.
        line_step: from one line to the next.
        step: along the depth.
    """

    lines: int
    depth: int
    line_step: int
    step: int

    def numbers(self, k: Kernel, label: str) -> None:
        k.number(f"{label}_line_step", self.line_step)
        k.number(f"{label}_step", self.step)
        k.number(f"{label}_matrix_size", self.lines * self.depth)

    def of_line(self, label: str, line: str) -> list[tuple[str, str]]:
        return [(f"{label}_line", f"{line} * {label}_line_step")]

    def of_depth(self, label: str, depth: str) -> list[tuple[str, str]]:
        return [(f"{label}_along", f"{depth} * {label}_step")]

    def of_matrix(self, label: str, matrix: str) -> list[tuple[str, str]]:
        return [(f"{label}_from", f"{matrix} * {label}_matrix_size")]

    def element(self, label: str) -> str:
        return f"{label}[{label}_from + {label}_line + {label}_along]"

    @property
    def along(self) -> bool:
        return self.step == 1


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
        0, x.dtype, x.size, tuple(x_steps), math.prod(x_batch), m, depth,
        1 if transpose_a else depth, m if transpose_a else 1,
    )  # fmt: skip
    b = Matrices(
        1, y.dtype, y.size, tuple(y_steps), math.prod(y_batch), n, depth,
        depth if transpose_b else 1, 1 if transpose_b else n,
    )  # fmt: skip
    if device.serial and min(m, n, depth) < THIN:
        return Plan((_thin(device, (m, n, depth), tuple(sizes), a, b, out),))
    return matmul_plan(device, (m, n, depth), tuple(sizes), a, b, out.dtype, 2)


@dataclasses.dataclass(frozen=True)
class Matmul:
    """out[b, i, j] = sum over k of x[b, i, k] * y[b, k, j], on a grid.

    Attributes:
        sizes: rows, columns, and length of the sums.
        batch: axes of the batch.
        x, y: the operands.
        dtype: of the results.
        place: where the results go.
        run: columns that lie together; results of all rows and matrices stand between them and the
            next ones.
    """

    sizes: tuple[int, int, int]
    batch: tuple[int, ...]
    x: Operand
    y: Operand
    dtype: DType
    place: int
    run: int

    @property
    def count(self) -> int:
        """Of the matrices."""
        return math.prod(self.batch)

    @property
    def extent(self) -> int:
        """The largest number of elements that an index counts (`Kernel`)."""
        return max(self.x.size, self.y.size, self.count * self.sizes[0] * self.sizes[1])

    def result(self, k: Kernel) -> str:
        """Where the result in row r and column c of matrix `at` goes."""
        if self.run == self.sizes[1]:
            return "(at * m + r) * n + c"
        k.number("run", self.run)
        k.number("matrices", self.count)
        return "((c / run * matrices + at) * m + r) * run + c % run"


def matmul_plan(
    device: GridDevice,
    sizes: tuple[int, int, int],
    batch: tuple[int, ...],
    x: Operand,
    y: Operand,
    dtype: DType,
    place: int,
    scratch_place: int | None = None,
    offset: int = 0,
    run: int | None = None,
) -> Plan:
    """out[b, i, j] = sum over k of x[b, i, k] * y[b, k, j].

    Args:
        device: where.
        sizes: rows, columns, and length of the sums.
        batch: axes of the batch.
        x, y: the operands.
        dtype: of the results.
        place: where the results go, dense.
        scratch_place: of the first scratch buffer; by default the one after `place`.
        offset: of the first result in its buffer, on a processor.
        run: of a `Matmul`, on a grid; by default all columns of a row.
    """
    if not device.serial:
        product = Matmul(sizes, batch, x, y, dtype, place, sizes[1] if run is None else run)
        return Plan(
            (device.matmul(product) or few_lines(device, product) or tiles(device, product),)
        )
    m, n, depth = sizes
    acc = sum_dtype(x.dtype)
    kept = device.tiles if isinstance(device.tiles, Tiles) else PROCESSOR[0]
    if acc.itemsize == 8:
        kept = dataclasses.replace(kept, rows=kept.rows // 2)
    rows, columns = kept.rows, 16 * kept.vectors
    scratch_place = place + 1 if scratch_place is None else scratch_place
    y_pack = _pack(device, y, n, depth, columns, acc, scratch_place)
    scratch = [y.count * ceil_div(n, columns) * columns * depth * acc.itemsize]
    packs = [y_pack]
    if not _as_it_is(x, acc):
        packs.append(_pack(device, x, m, depth, rows, acc, scratch_place + 1))
        scratch.append(x.count * ceil_div(m, rows) * rows * depth * acc.itemsize)
    packed = _packed(device, sizes, batch, (x, y), acc, kept, dtype, place, scratch_place, offset)
    return Plan((*packs, packed), tuple(scratch))


def _as_it_is(x: Operand, acc: DType) -> bool:
    """Whether the rows of x need no packing: their elements follow each other, in the dtype of the
    sum.
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
    """Panels of `width` lines: panel[k][w] = source line (panel * width + w) at k, 0 past the last
    line.
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
        # blocks of k, so that each line's cache lines are used up before they go
        k.open("for (ix begin = 0; begin < depth; begin += 16)")
        k.line("const ix end = begin + 16 < depth ? begin + 16 : depth;")
        k.open("for (ix w = 0; w < whole; w++)")
        define(k, of_line)
        k.open("for (ix k = begin; k < end; k++)")
        define(
            k, [(name, text.replace(" * x_step", "")) for name, text in source.of_depth("x", "k")]
        )
        k.line(f"to[k * width + w] = {value};")
        k.close()
        k.close()
        k.close()
        k.line("for (ix k = 0; k < depth; k++)")
        k.line(f"    for (ix w = whole; w < width; w++) to[k * width + w] = ({type_})0;")
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


def define(k: Kernel, values: list[tuple[str, str]]) -> None:
    """Lines that name places."""
    for name, text in values:
        k.line(f"const ix {name} = {text};")


def matrix_numbers(
    k: Kernel, batch: tuple[int, ...], operands: tuple[Operand, Operand], at: str
) -> None:
    """Lines with the number of the matrix of x and of y for the place `at` in the batch."""
    places = k.split(at, ["", *k.numbers("batch", batch)[1:]], "b")
    for label, matrices in zip("xy", operands):
        terms = [
            f"{p} * {k.number(f'{label}_batch{a}', s)}"
            for a, (p, s) in enumerate(zip(places, matrices.batch_steps))
        ]
        k.line(f"const ix {label}_matrix = {' + '.join(terms) or '0'};")


def _kept(device: GridDevice, dtype: DType, value: str) -> str:
    if dtype in (float16, bfloat16):
        return device.dialect.store(dtype, value)
    return f"({SUFFIX[dtype]})({value})"


def _packed(
    device: GridDevice,
    sizes: tuple[int, int, int],
    batch: tuple[int, ...],
    operands: tuple[Operand, Operand],
    acc: DType,
    kept: Tiles,
    dtype: DType,
    place: int,
    scratch_place: int,
    offset: int,
) -> Launch:
    m, n, depth = sizes
    rows, columns = kept.rows, 16 * kept.vectors
    count = math.prod(batch)
    strips, panels = ceil_div(m, kept.strip), ceil_div(n, columns)
    # packed buffers are longer than the operands by what fills up the last tiles
    extent = (m + rows) * depth * count + (n + columns) * depth * count + offset + count * m * n
    k = Kernel(device, "product", extent)
    x = operands[0]
    whole = _as_it_is(x, acc)
    k.read("x", acc, x.place if whole else scratch_place + 1)
    k.read("y", acc, scratch_place)
    k.write("out", dtype, place)
    for name, value in (
        ("m", m),
        ("n", n),
        ("depth", depth),
        ("strips", strips),
        ("panels", panels),
        ("offset", offset),
    ):
        k.number(name, value)
    if whole:
        x.numbers(k, "x")
    type_, memory = SUFFIX[acc], device.dialect.memory
    vector = f"{type_}x16"
    k.line(
        f"enum {{ rows = {rows}, columns = {columns}, tile = {kept.strip}, deep = {DEPTH} }};",
        f"{vector} sums[tile][{kept.vectors}];",
        "const ix item = (ix)DG_ITEM(0), strip = item % strips, rest = item / strips;",
        "const ix panel = rest % panels, at = rest / panels;",
    )
    matrix_numbers(k, batch, operands, "at")
    k.line(
        "const ix x_panels = (m + rows - 1) / rows, first = strip * (tile / rows);",
        "const ix blocks = x_panels - first < tile / rows ? x_panels - first : tile / rows;",
        f"{memory} const {type_} *const xs = x + "
        + (
            "x_matrix * x_matrix_size;"
            if whole
            else "(x_matrix * x_panels + first) * rows * depth;"
        ),
        f"{memory} const {type_} *const ys = y + (y_matrix * panels + panel) * columns * depth;",
    )
    k.open("for (ix begin = 0; begin < depth || begin == 0; begin += deep)")
    k.line("const ix end = begin + deep < depth ? begin + deep : depth;")
    k.open("for (ix block = 0; block < blocks; block++)")
    if whole:  # past the last row it is read again, and what comes of it is not kept
        for r in range(rows):
            row = f"(first + block) * rows + {r}"
            k.line(
                f"{memory} const {type_} *const x{r} = xs + ({row} < m ? {row} : m - 1) * x_line_step;"
            )
    else:
        k.line(f"{memory} const {type_} *const xb = xs + block * rows * depth;")
    names = [(r, c, f"s{r}_{c}") for r in range(rows) for c in range(kept.vectors)]
    k.line(f"{vector} {', '.join(name for _, _, name in names)};")
    k.open("if (begin == 0)")
    k.line(" ".join(f"{name} = ({vector})(0);" for _, _, name in names))
    k.close()
    k.open("else")
    k.line(" ".join(f"{name} = sums[block * rows + {r}][{c}];" for r, c, name in names))
    k.close()
    k.open("for (ix k = begin; k < end; k++)")
    for c in range(kept.vectors):
        k.line(f"const {vector} y{c} = dg_load_{vector}(ys + k * columns + {16 * c});")
    for r in range(rows):
        sums = " ".join(
            f"s{r}_{c} = dg_fma_{vector}(a, y{c}, s{r}_{c});" for c in range(kept.vectors)
        )
        one = f"x{r}[k]" if whole else f"xb[k * rows + {r}]"
        k.line(f"{{ const {vector} a = ({vector})({one}); {sums} }}")
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
        f"{memory} {SUFFIX[dtype]} *const to = out + offset + (at * m + strip * tile + r) * n + panel * columns;",
        f"const {type_} *const from = (const {type_} *)sums[r];",
        f"for (ix c = 0; c < width; c++) to[c] = {_kept(device, dtype, 'from[c]')};",
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
) -> Launch:
    """Few rows or columns, on a processor: an item has a block of columns of one row."""
    m, n, depth = sizes
    acc = SUFFIX[sum_dtype(x.dtype)]
    count = math.prod(batch)
    k = Kernel(device, "thin_product", max(x.size, y.size, out.size))
    k.read("x", x.dtype, x.place)
    k.read("y", y.dtype, y.place)
    k.write("out", out.dtype, 2)
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
    matrix_numbers(k, batch, (x, y), "at")
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
    k.line(
        f"{device.dialect.memory} {SUFFIX[out.dtype]} *const to = out + (at * m + row) * n + block * wide;",
        f"for (ix c = 0; c < width; c++) to[c] = {_kept(device, out.dtype, 'sums[c]')};",
    )
    return k.launch(count * m * blocks)


def few_lines(device: GridDevice, product: Matmul) -> Launch | None:
    """A product on a grid with so few rows or columns that tiles would be all but empty, or None.

    Where both operands lie along the depth, a group shares one result: each item adds up every so
    many products, and the items' sums are added in a tree. Else an item has a result to itself,
    neighbours those of neighbouring lines.
    """
    (m, n, depth), x, y, count = product.sizes, product.x, product.y, product.count
    if min(m, n) >= THIN or 0 in product.sizes:
        return None
    acc = SUFFIX[sum_dtype(x.dtype)]
    shared = x.along and y.along and depth >= 2 * device.group
    k = Kernel(device, "few_lines", product.extent)
    k.read("x", x.dtype, x.place)
    k.read("y", y.dtype, y.place)
    k.write("out", product.dtype, product.place)
    for name, value in (("m", m), ("n", n), ("depth", depth), ("total", count * m * n)):
        k.number(name, value)
    to = product.result(k)
    x.numbers(k, "x")
    y.numbers(k, "y")
    if shared:
        k.line(f"enum {{ lanes = {device.group} }};", f"DG_SHARED {acc} sums[lanes];")
        k.line("const i32 lane = DG_PLACE(0);", "const ix e = (ix)DG_GROUP(0);")
    else:
        k.line(
            "enum { lane = 0, lanes = 1 };",
            "const ix e = (ix)DG_ITEM(0);",
            "if (e >= total) return;",
        )
    inner, split = ("n", "r = rest % m, c") if n >= m else ("m", "c = rest % n, r")
    k.line(
        f"const ix rest = e / {inner}, {split} = e - rest * {inner}, at = rest / {'m' if n >= m else 'n'};"
    )
    matrix_numbers(k, product.batch, (x, y), "at")
    for label, operand, line in (("x", x, "r"), ("y", y, "c")):
        define(k, operand.of_matrix(label, f"{label}_matrix"))
        define(k, operand.of_line(label, line))
    k.line(f"{acc} sum = 0;")
    k.open("for (ix k = lane; k < depth; k += lanes)")
    for label, operand in (("x", x), ("y", y)):
        define(k, operand.of_depth(label, "k"))
    a, b = (f"({acc}){operand.value(k, label)}" for label, operand in (("x", x), ("y", y)))
    k.line(f"sum = dg_fma_{acc}({a}, {b}, sum);" if acc in ("f32", "f64") else f"sum += {a} * {b};")
    k.close()
    if shared:
        k.line("sums[lane] = sum;", "DG_BARRIER();")
        k.open("for (i32 far = lanes / 2; far > 0; far /= 2)")
        k.line("if (lane < far) sums[lane] += sums[lane + far];", "DG_BARRIER();")
        k.close()
        k.line(f"if (lane == 0) out[{to}] = {_kept(device, product.dtype, 'sums[0]')};")
        return k.launch(count * m * n, size=(device.group,))
    k.line(f"out[{to}] = {_kept(device, product.dtype, 'sum')};")
    return k.launch_items(count * m * n)


def tiles(device: GridDevice, product: Matmul) -> Launch:
    """A group for each tile of results."""
    (m, n, depth), x, y, count = product.sizes, product.x, product.y, product.count
    acc = SUFFIX[sum_dtype(x.dtype)]
    side = 16 if device.group >= 256 else 8 if device.group >= 64 else 4
    chosen = device.tiles if isinstance(device.tiles, GroupTiles) else GROUP[0]
    tile, deep = side * chosen.each, chosen.deep
    while 2 * deep * (tile + 1) * sum_dtype(x.dtype).itemsize > device.shared_bytes:
        deep //= 2
    tiles_m, tiles_n = ceil_div(m, tile), ceil_div(n, tile)
    k = Kernel(device, "product", product.extent)
    k.read("x", x.dtype, x.place)
    k.read("y", y.dtype, y.place)
    k.write("out", product.dtype, product.place)
    for name, value in (
        ("m", m),
        ("n", n),
        ("depth", depth),
        ("tiles_m", tiles_m),
        ("tiles_n", tiles_n),
    ):
        k.number(name, value)
    at = product.result(k)
    x.numbers(k, "x")
    y.numbers(k, "y")
    k.line(
        f"enum {{ side = {side}, each = {chosen.each}, tile = side * each, deep = {deep}, items = side * side }};",
        f"DG_SHARED {acc} xs[deep * (tile + 1)];",
        f"DG_SHARED {acc} ys[deep * (tile + 1)];",
        "const i32 place = DG_PLACE(0), px = place % side, py = place / side;",
        "const ix group = (ix)DG_GROUP(0), tile_n = group % tiles_n, rest = group / tiles_n;",
        "const ix tile_m = rest % tiles_m, at = rest / tiles_m;",
    )
    matrix_numbers(k, product.batch, (x, y), "at")
    for label, operand in (("x", x), ("y", y)):
        define(k, operand.of_matrix(label, f"{label}_matrix"))
    k.line(
        f"{acc} sums[each][each];",
        "for (i32 i = 0; i < each; i++) for (i32 j = 0; j < each; j++) sums[i][j] = 0;",
    )
    k.open("for (ix begin = 0; begin < depth; begin += deep)")
    for label, operand, limit, first in (
        ("x", x, "m", "tile_m * tile"),
        ("y", y, "n", "tile_n * tile"),
    ):
        k.open("for (i32 e = place; e < deep * tile; e += items)")
        # neighbouring items read neighbouring elements, whichever axis is dense
        k.line(
            "const i32 k = e % deep, l = e / deep;"
            if operand.along
            else "const i32 l = e % tile, k = e / tile;",
            f"const ix line = {first} + l, here = begin + k;",
            f"{acc} v = 0;",
        )
        k.open(f"if (line < {limit} && here < depth)")
        define(k, operand.of_line(label, "line"))
        define(k, operand.of_depth(label, "here"))
        k.line(f"v = ({acc}){operand.value(k, label)};")
        k.close()
        k.line(f"{label}s[k * (tile + 1) + l] = v;")
        k.close()
    k.line("DG_BARRIER();")
    k.open("for (i32 k = 0; k < deep; k++)")
    k.line(
        f"{acc} a[each], b[each];",
        "for (i32 i = 0; i < each; i++) a[i] = xs[k * (tile + 1) + py + i * side];",
        "for (i32 j = 0; j < each; j++) b[j] = ys[k * (tile + 1) + px + j * side];",
    )
    fma = (
        f"dg_fma_{acc}(a[i], b[j], sums[i][j])"
        if acc in ("f32", "f64")
        else "a[i] * b[j] + sums[i][j]"
    )
    k.line(f"for (i32 i = 0; i < each; i++) for (i32 j = 0; j < each; j++) sums[i][j] = {fma};")
    k.close()
    k.line("DG_BARRIER();")
    k.close()
    k.open("for (i32 i = 0; i < each; i++) for (i32 j = 0; j < each; j++)")
    k.line(
        "const ix r = tile_m * tile + py + i * side, c = tile_n * tile + px + j * side;",
        f"if (r < m && c < n) out[{at}] = {_kept(device, product.dtype, 'sums[i][j]')};",
    )
    k.close()
    return k.launch(count * tiles_m * tiles_n, size=(side * side,))
