"""GPU-style kernels that gather and scatter rows of a tensor along an axis.

For an index out of range a gather reads an arbitrary valid row and a scatter writes nothing; both
report the index in the device's record (`index_errors`). Scatters are deterministic. On a CPU each
work item updates some columns of all rows, in the order of the indices. On a GPU `scatter_set`
first finds the last index of each row. `scatter_add` uses one work item for each column or, if
columns are too few to keep the device busy, follows a linked list of the indices of each row. Only
32-bit integers use atomic additions.
"""

from __future__ import annotations

from ...dtype import DType, bool_, int32, uint32
from ...types import TensorType
from ..codegen.dialect import SUFFIX
from .device import GridDevice, Launch, Plan
from .index_errors import LABELS
from .kernel_writer import Kernel, added, ceil_div, stretch
from .movement import WORDS, copy_launch, fill_launch
from .strides import dense, split_at
from .table import Types, kernel

__all__ = ["copy_of_target", "rows_of_indices"]

# Columns that fill a grid with one work item each.
MANY_COLUMNS = 4096
# Linking the indices of a row takes quadratic time: beyond this number, one work item for each
# column visits all indices, which is slow where columns are few.
MANY_INDICES = 1 << 17


def _words(dtype: DType, inner: int) -> tuple[DType, int]:
    """Return how to copy `inner` elements of `dtype` as integers: (integer dtype, their number)."""
    word, words = WORDS[dtype.itemsize]
    return word, inner * words


@kernel("gather")
def gather(device: GridDevice, types: Types, results: Types, *, axis: int) -> Plan:
    """Return the kernel launch plan of out[outer, i, inner] = x[outer, indices[i], inner]."""
    x, indices = types
    outer, n, inner = split_at(x.shape, axis)
    row_bytes = inner * x.dtype.itemsize
    word: DType | str
    word, inner = _words(x.dtype, inner)
    if not device.serial and n and row_bytes % 16 == 0:
        word, inner = "uint4", row_bytes // 16
    total = outer * indices.size * inner
    k = Kernel(device, "gather", max(total, outer * n * inner))
    k.read("x", word, 0)
    k.read("indices", indices.dtype, 1)
    k.write("out", word, 2)
    k.watch("gather", axis)
    for name, value in (("total", total), ("n", n), ("inner", inner), ("count", indices.size)):
        k.number(name, value)
    if not device.serial:
        k.line("const ix e = (ix)DG_ITEM(0);", "if (e >= total) return;")
        k.line("const ix line = e / inner, j = e - line * inner, i = line % count;")
        k.row(indices.dtype, "indices[i]", "n")
        read = "x[(line / count * n + (row < 0 ? 0 : row)) * inner + j]" if n else "0"
        k.line(f"out[e] = {read};")
        return Plan((k.launch_items(total),))
    grain = stretch(device, total)
    k.stretch("total", grain)
    k.open("for (ix e = begin; e < end;)")
    k.line("const ix line = e / inner, first = e - line * inner, i = line % count;")
    k.row(indices.dtype, "indices[i]", "n")
    k.line(
        "const ix width = inner - first < end - e ? inner - first : end - e;",
        "const ix from = (line / count * n + (row < 0 ? 0 : row)) * inner + first;",
        "DG_INDEPENDENT",
        f"for (ix j = 0; j < width; j++) out[e + j] = {'x[from + j]' if n else '0'};",
        "e += width;",
    )
    k.close()
    return Plan((k.launch(ceil_div(total, grain)),))


@kernel("checked_labels")
def checked_labels(
    device: GridDevice, types: Types, results: Types, *, classes: int, owner: str
) -> Plan | None:
    """Return the launch plan that copies labels and reports one outside 0 .. classes - 1.

    `owner` is the name of the op in the error message. Returns None if there are no labels.
    """
    (labels,) = types
    if not labels.size:
        return None
    k = Kernel(device, "checked_labels", labels.size)
    k.read("labels", labels.dtype, 0)
    k.write("out", labels.dtype, 1)
    k.watch(owner, LABELS)
    k.number("count", labels.size)
    k.number("n", classes)
    if device.serial:
        grain = stretch(device, labels.size)
        k.stretch("count", grain)
        k.open("for (ix i = begin; i < end; i++)")
    else:
        k.line("const ix i = (ix)DG_ITEM(0);", "if (i >= count) return;")
        k.open("")
    k.row(labels.dtype, "labels[i]", "n", wraps=False)
    k.line("out[i] = labels[i];")
    k.close()
    if device.serial:
        return Plan((k.launch(ceil_div(labels.size, grain)),))
    return Plan((k.launch_items(labels.size),))


def copy_of_target(device: GridDevice, x: TensorType) -> Launch:
    """Return the launch that copies a scatter's operand 0 to its result, buffer 3."""
    steps = dense(x.shape)
    return copy_launch(device, x.dtype, x.shape, (0, steps, 0, x.size), (3, steps, 0, x.size))


def _scatter(
    device: GridDevice, name: str, types: Types, axis: int, dtype: DType, words: int
) -> Kernel:
    """Return the writer of a scatter kernel, with its arguments declared and no body yet.

    `dtype` is the dtype by which elements are accessed, `words` how many values of `dtype` form one
    element.
    """
    x, indices, updates = types
    outer, n, inner = split_at(x.shape, axis)
    k = Kernel(device, name, max(x.size, updates.size) * words)
    k.read("indices", indices.dtype, 1)
    k.read("updates", dtype, 2)
    k.write("out", dtype, 3)
    k.watch(name, axis)
    for label, value in (
        ("outer", outer), ("n", n), ("inner", inner * words), ("count", indices.size),
    ):  # fmt: skip
        k.number(label, value)
    return k


def _columns(
    device: GridDevice, name: str, types: Types, axis: int, dtype: DType, words: int, text: str
) -> Launch:
    """Return the launch of a scatter in which each work item updates some columns of all rows.

    Updates are made in the order of the indices. `dtype` is the dtype by which elements are
    accessed, `words` how many values of `dtype` form one element. `text` is the C statement that
    updates ``out[to]`` with ``updates[from]``.
    """
    x, indices, _ = types
    outer, _, inner = split_at(x.shape, axis)
    inner *= words
    k = _scatter(device, name, types, axis, dtype, words)
    if not device.serial:
        k.line("const ix e = (ix)DG_ITEM(0);", "if (e >= outer * inner) return;")
        k.line("const ix o = e / inner, c = e - o * inner;")
        k.open("for (ix i = 0; i < count; i++)")
        k.row(indices.dtype, "indices[i]", "n")
        k.line("const ix from = (o * count + i) * inner + c, to = (o * n + row) * inner + c;")
        k.line(f"if (row >= 0) {text}")
        k.close()
        return k.launch_items(outer * inner)
    width = max(16, ceil_div(inner, max(1, 4 * device.units // max(outer, 1))))
    blocks = ceil_div(inner, width)
    k.number("width", width)
    k.number("blocks", blocks)
    k.line(
        "const ix o = (ix)DG_ITEM(0) / blocks, first = (ix)DG_ITEM(0) % blocks * width;",
        "const ix last = first + width < inner ? first + width : inner;",
    )
    k.open("for (ix i = 0; i < count; i++)")
    k.row(indices.dtype, "indices[i]", "n")
    k.line("if (row < 0) continue;", "DG_INDEPENDENT")
    k.open("for (ix c = first; c < last; c++)")
    k.line("const ix from = (o * count + i) * inner + c, to = (o * n + row) * inner + c;", text)
    k.close()
    k.close()
    return k.launch(outer * blocks)


@kernel("scatter_set")
def scatter_set(device: GridDevice, types: Types, results: Types, *, axis: int) -> Plan:
    """Return the launch plan of a copy of x with indexed rows replaced by updates.

    If several indices are equal, the last one wins.
    """
    x, indices, updates = types
    word, words = WORDS[x.dtype.itemsize]
    copied = copy_of_target(device, x)
    if device.serial:
        text = "out[to] = updates[from];"
        return Plan((copied, _columns(device, "scatter_set", types, axis, word, words, text)))
    n = x.shape[axis]
    owners = TensorType.of((n,), int32)
    mark = Kernel(device, "last_of_equal", max(n, indices.size))
    mark.read("indices", indices.dtype, 1)
    mark.write("owner", int32, 4)
    mark.number("n", n)
    mark.number("count", indices.size)
    mark.line("const ix i = (ix)DG_ITEM(0);", "if (i >= count) return;")
    mark.row(indices.dtype, "indices[i]", "n")
    mark.line("if (row >= 0) dg_atomic_max_i32(owner + row, (i32)i);")
    k = _scatter(device, "scatter_set", types, axis, word, words)
    total = updates.size * words
    k.parameters.insert(2, f"{device.dialect.memory} const i32 *owner")
    k.buffers.insert(2, 4)
    k.number("total", total)
    k.line("const ix e = (ix)DG_ITEM(0);", "if (e >= total) return;")
    k.line("const ix line = e / inner, c = e - line * inner, i = line % count, o = line / count;")
    k.row(indices.dtype, "indices[i]", "n")
    k.line("if (row >= 0 && owner[row] == i) out[(o * n + row) * inner + c] = updates[e];")
    fresh = fill_launch(device, owners, -1, 4)
    launches = (copied, fresh, mark.launch_items(indices.size), k.launch_items(total))
    return Plan(launches, (owners.nbytes,))


@kernel("scatter_add")
def scatter_add(device: GridDevice, types: Types, results: Types, *, axis: int) -> Plan | None:
    """Return the launch plan of a copy of x with updates added to rows, in index order.

    Floats are not added atomically, because the order of atomic additions is not fixed: two runs,
    or a compiled function and the same ops run eagerly, would differ in their last bits. Returns
    None for complex elements.
    """
    x, indices, updates = types
    if x.dtype.is_complex:
        return None
    outer, n, inner = split_at(x.shape, axis)
    copied = copy_of_target(device, x)
    exact = x.dtype in (int32, uint32)  # sums do not depend on the order
    many = outer * inner >= MANY_COLUMNS or (indices.size > MANY_INDICES and not exact)
    if device.serial or many or not updates.size or n >= 1 << 31:
        text = f"out[to] = {added(device, x.dtype, 'out[to]', 'updates[from]')};"
        return Plan((copied, _columns(device, "scatter_add", types, axis, x.dtype, 1, text)))
    if exact:
        k = _scatter(device, "scatter_add", types, axis, x.dtype, 1)
        k.number("total", updates.size)
        k.line("const ix e = (ix)DG_ITEM(0);", "if (e >= total) return;")
        k.line(
            "const ix line = e / inner, c = e - line * inner, i = line % count, o = line / count;"
        )
        k.row(indices.dtype, "indices[i]", "n")
        add = f"dg_atomic_add_{SUFFIX[x.dtype]}"
        k.line(f"if (row >= 0) {add}(out + (o * n + row) * inner + c, updates[e]);")
        return Plan((copied, k.launch_items(updates.size)))
    return _chains(device, copied, types, axis)


def rows_of_indices(device: GridDevice, types: Types, axis: int) -> Launch:
    """Return the launch that writes the row of each index of a scatter_add to buffer 4, as int32.

    For an index out of range it writes -1 and reports the index.
    """
    x, indices, _ = types
    count = indices.size
    rows = Kernel(device, "rows_of_indices", count)
    rows.read("indices", indices.dtype, 1)
    rows.write("rows", int32, 4)
    rows.watch("scatter_add", axis)
    rows.number("count", count)
    rows.number("n", x.shape[axis])
    rows.line("const ix i = (ix)DG_ITEM(0);", "if (i >= count) return;")
    rows.row(indices.dtype, "indices[i]", "n")
    rows.line("rows[i] = (i32)row;")
    return rows.launch_items(count)


def _links(device: GridDevice, count: int) -> Launch:
    """Return the launch that links those indices of a scatter that refer to the same row.

    It reads the row of each index from buffer 4. For each index it writes to buffer 5 the position
    of the next index of the same row, or -1, and to buffer 6 whether the index is the first of its
    row.
    """
    links = Kernel(device, "chains_of_rows", count)
    links.read("rows", int32, 4)
    links.write("next", int32, 5)
    links.write("first", bool_, 6)
    links.number("count", count)
    links.line(
        "const i32 i = (i32)DG_ITEM(0);",
        "if (i >= count) return;",
        "const i32 row = rows[i];",
        "i32 after = i + 1, before = i - 1;",
        "while (after < count && rows[after] != row) after++;",
        "while (before >= 0 && rows[before] != row) before--;",
        "next[i] = after < count ? after : -1;",
        "first[i] = before < 0 && row >= 0;",
    )
    return links.launch_items(count)


def _chains(device: GridDevice, copied: Launch, types: Types, axis: int) -> Plan:
    """Return the launch plan of a scatter_add that follows a linked list of each row's indices.

    `copied` is the launch that initialises the result with a copy of x.
    """
    x, indices, updates = types
    _, n, inner = split_at(x.shape, axis)
    count, total = indices.size, updates.size
    walk = Kernel(device, "sums_along_chains", max(x.size, total))
    for label, dtype, place in (
        ("rows", int32, 4),
        ("next", int32, 5),
        ("first", bool_, 6),
        ("updates", x.dtype, 2),
    ):
        walk.read(label, dtype, place)
    walk.write("out", x.dtype, 3)
    for label, value in (("n", n), ("inner", inner), ("count", count), ("total", total)):
        walk.number(label, value)
    walk.line(
        "const ix e = (ix)DG_ITEM(0);",
        "if (e >= total) return;",
        "const ix line = e / inner, c = e - line * inner, i = line % count, o = line / count;",
        "if (!first[i]) return;",
        "const ix to = (o * n + rows[i]) * inner + c;",
        f"{SUFFIX[x.dtype]} sum = out[to];",
    )
    walk.open("for (ix j = i; j >= 0; j = next[j])")
    walk.line(
        "const ix from = (o * count + j) * inner + c;",
        f"sum = {added(device, x.dtype, 'sum', 'updates[from]')};",
    )
    walk.close()
    walk.line("out[to] = sum;")
    launches = (
        copied,
        rows_of_indices(device, types, axis),
        _links(device, count),
        walk.launch_items(total),
    )
    return Plan(launches, (4 * count, 4 * count, count))
