"""GPU-style kernels of ops along one axis: each work item processes a line along that axis.

A line is the sequence of elements that differ only in their index along the axis. The ops are
cumulative sums and extremes, argmax and argmin, sorting, topk, and gather and scatter of elements.
`GridBackend` finds their builders in the kernel table. With only a few long lines, most of a grid
would be idle; the builders then return None, and the op is decomposed.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dtype import bfloat16, bool_, float16, int32, int64
from ...types import TensorType
from ..codegen.dialect import SUFFIX
from .device import GridDevice, Launch, Plan
from .kernel_writer import Kernel, added, ceil_div, element, stretch
from .movement import WORDS, copy_launch
from .reductions import combine_of, greatest
from .strides import dense, split_at
from .table import Types, kernel

__all__ = ["Lines", "lined_up", "places_of_indices"]

# On a GPU, decomposing the op is faster for fewer than FEW_LINES lines longer than LONG_LINE.
FEW_LINES, LONG_LINE = 256, 4096
# Beyond this number topk sorts, which is faster where most elements must be inserted.
MOST_FIRST = 16


class Lines:
    """Writes a kernel in which each work item processes whole lines of a tensor along an axis.

    A line is the sequence of elements that differ only in their index along the axis. The kernel's
    body, written between the calls of `begin` and `end`, may use the variables `line` (the line's
    number), `from` (offset of its first element), `n` (its length) and `step` (its stride).
    """

    def __init__(
        self, device: GridDevice, name: str, shape: Sequence[int], axis: int, extent: int
    ) -> None:
        self.device = device
        outer, self.n, inner = split_at(shape, axis)
        self.count = outer * inner
        self.inner = inner
        self.k = Kernel(device, name, extent)

    @property
    def suits(self) -> bool:
        """Whether the kernel keeps the device busy: on a CPU, or if lines are many or short."""
        return self.device.serial or self.count >= FEW_LINES or self.n <= LONG_LINE

    def begin(self) -> None:
        """Append the start of the kernel's loop over lines; buffers must be declared before."""
        k = self.k
        for name, value in (("count", self.count), ("n", self.n), ("step", self.inner)):
            k.number(name, value)
        self.grain = stretch(self.device, self.count, ceil_div(2048, max(self.n, 1)), 1 << 16)
        if self.device.serial:
            k.stretch("count", self.grain)
            k.open("for (ix line = begin; line < end; line++)")
        else:
            k.open("for (ix line = (ix)DG_ITEM(0); line < count; line += (ix)DG_ITEMS(0))")
        k.line("const ix from = line / step * n * step + line % step;")

    def end(self) -> Launch:
        """Append the end of the kernel's loop over lines, and return the kernel's launch."""
        self.k.close()
        if self.device.serial:
            return self.k.launch(ceil_div(self.count, self.grain))
        return self.k.launch_items(self.count)


def _scan(
    device: GridDevice, name: str, types: Types, axis: int, exclusive: bool, reverse: bool
) -> Plan | None:
    (x,) = types
    if x.dtype.is_complex:
        return None
    lines = Lines(device, f"cum{name}", x.shape, axis, x.size)
    if not lines.suits:
        return None
    k, combine = lines.k, combine_of(device, name, x.dtype)
    k.read("x", x.dtype, 0)
    k.write("out", x.dtype, 1)
    lines.begin()
    acc = SUFFIX[combine.dtype]
    k.line(f"{acc} acc = {combine.start};")
    k.open("for (ix j = 0; j < n; j++)")
    k.line(f"const ix at = from + {'(n - 1 - j)' if reverse else 'j'} * step;")
    k.line(f"const {acc} v = ({acc}){device.dialect.load(x.dtype, 'x[at]')};")
    kept = device.dialect.store(x.dtype, "acc")
    if x.dtype is bool_:
        kept = "acc != 0"
    elif x.dtype not in (float16, bfloat16):
        kept = f"({SUFFIX[x.dtype]})acc"
    taken = f"acc = acc {'+' if name == 'sum' else '*'} v;"
    if x.dtype is bool_:
        taken = combine.text("acc", "(v != 0)")
    k.line(*([f"out[at] = {kept};", taken] if exclusive else [taken, f"out[at] = {kept};"]))
    k.close()
    return Plan((lines.end(),))


@kernel("cumsum")
def cumsum(
    device: GridDevice, types: Types, results: Types, *, axis: int, exclusive: bool, reverse: bool
) -> Plan | None:
    """Return the launch plan of cumulative sums along an axis.

    With `exclusive`, each sum omits its own element; with `reverse`, sums start at the end of the
    axis. Returns None for complex elements, or if the lines are too few and long.
    """
    return _scan(device, "sum", types, axis, exclusive, reverse)


@kernel("cumprod")
def cumprod(
    device: GridDevice, types: Types, results: Types, *, axis: int, exclusive: bool, reverse: bool
) -> Plan | None:
    """Return the launch plan of cumulative products along an axis.

    With `exclusive`, each product omits its own element; with `reverse`, products start at the end
    of the axis. Returns None for complex elements, or if the lines are too few and long.
    """
    return _scan(device, "prod", types, axis, exclusive, reverse)


def _extreme(device: GridDevice, types: Types, axis: int, sign: str, running: bool) -> Plan | None:
    """Return the launch plan of cummax, cummin, argmax or argmin, in which NaN beats any number.

    `sign` is ">" for a maximum, "<" for a minimum; `running` says whether the op is cummax or
    cummin. Returns None if the lines are too few and long.
    """
    (x,) = types
    if not x.size:
        return Plan(())  # a line may be empty, and the kernel reads its first element
    lines = Lines(device, "extreme", x.shape, axis, x.size)
    if not lines.suits:
        return None
    k, type_ = lines.k, element(x.dtype)
    k.read("x", x.dtype, 0)
    if running:
        k.write("values", x.dtype, 1)
    k.write("indices", int64, 2 if running else 1)
    lines.begin()

    def load(at: str) -> str:
        return f"({type_}){device.dialect.load(x.dtype, f'x[{at}]')}"

    if device.serial and not running and lines.inner == 1 and x.dtype is not bool_:
        # first the extreme, by a loop that compilers vectorise, then its index
        combine = combine_of(device, "max" if sign == ">" else "min", x.dtype)
        v = f"({SUFFIX[combine.dtype]}){device.dialect.load(x.dtype, 'x[from + j]')}"
        greatest(k, combine, "best", v, "0", "n")
        k.line(
            "ix j = 0;",
            f"if (best != best) while ({v} == {v}) j++;",
            f"else while ({v} != best) j++;",
            "indices[line] = j;",
        )
        return Plan((lines.end(),))
    k.line(f"{type_} best = {load('from')};", "ix found = 0;")
    if running:
        k.line("values[from] = x[from];", "indices[from] = 0;")
    k.open("for (ix j = 1; j < n; j++)")
    k.line(f"const {type_} v = {load('from + j * step')};")
    if running:
        k.line(f"const int better = v != v || (v {sign}= best && best == best);")
    else:
        k.line(f"const int better = best == best && (v {sign} best || v != v);")
    k.line("best = better ? v : best;", "found = better ? j : found;")
    if running:
        k.line(
            "values[from + j * step] = x[from + found * step];", "indices[from + j * step] = found;"
        )
    k.close()
    if not running:
        k.line("indices[line] = found;")
    return Plan((lines.end(),))


def _register(name: str, sign: str, running: bool) -> None:
    """Register the kernel of cummax, cummin, argmax or argmin (`name`) in the kernel table.

    `sign` is ">" for a maximum, "<" for a minimum; `running` says whether the op is cummax or
    cummin.
    """

    @kernel(name)
    def builder(device: GridDevice, types: Types, results: Types, *, axis: int) -> Plan | None:
        return _extreme(device, types, axis, sign, running)


for _name, _sign, _running in (
    ("argmax", ">", False), ("argmin", "<", False), ("cummax", ">", True), ("cummin", "<", True),
):  # fmt: skip
    _register(_name, _sign, _running)


@kernel("sort")
def sort(
    device: GridDevice, types: Types, results: Types, *, axis: int, descending: bool
) -> Plan | None:
    """Return the launch plan of a sort along an axis; its results are sorted values and indices.

    The sort is stable and puts NaN last. Each work item merge-sorts the indices of a line (a
    sequence of elements along the axis), then gathers the values. Returns None if the lines are too
    few and long.
    """
    (x,) = types
    lines = Lines(device, "sort", x.shape, axis, x.size)
    if not lines.suits:
        return None
    k, type_ = lines.k, element(x.dtype)
    k.read("x", x.dtype, 0)
    k.write("values", x.dtype, 1)
    k.write("indices", int64, 2)
    k.write("other", int64, 3)
    lines.begin()

    def key(at: str) -> str:
        return f"({type_}){device.dialect.load(x.dtype, f'x[from + (ix){at} * step]')}"

    memory = device.dialect.memory
    k.line(
        f"{memory} i64 *in = indices + from, *out = other + from;",
        "for (ix j = 0; j < n; j++) in[j * step] = j;",
    )
    k.open("for (ix width = 1; width < n; width *= 2)")
    k.open("for (ix low = 0; low < n; low += 2 * width)")
    k.line(
        "const ix middle = low + width < n ? low + width : n;",
        "const ix high = middle + width < n ? middle + width : n;",
        "ix a = low, b = middle;",
    )
    k.open("for (ix j = low; j < high; j++)")
    k.line("int later = a >= middle;")
    k.open("if (a < middle && b < high)")
    sign = ">" if descending else "<"
    k.line(
        f"const {type_} left = {key('in[a * step]')}, right = {key('in[b * step]')};",
        f"later = right {sign} left || (left != left && right == right);",
    )
    k.close()
    k.line("out[j * step] = in[(later ? b : a) * step];", "a += !later;", "b += later;")
    k.close()
    k.close()
    k.line(f"{memory} i64 *const now = out;", "out = in;", "in = now;")
    k.close()
    k.open("for (ix j = 0; j < n; j++)")
    k.line(
        "const i64 at = in[j * step];", "indices[from + j * step] = at;",
        "values[from + j * step] = x[from + (ix)at * step];",
    )  # fmt: skip
    k.close()
    return Plan((lines.end(),), (max(8, x.size * 8),))


@kernel("topk")
def topk(
    device: GridDevice, types: Types, results: Types, *, k: int, axis: int, largest: bool
) -> Plan | None:
    """Return the launch plan of the k first elements of a sort along an axis, and their indices.

    Each work item reads a line once and inserts an element into the results if it precedes the last
    one of them. Returns None if k is too large for that, or if the lines are too few and long; the
    op then sorts.
    """
    (x,) = types
    if not results[0].size:
        return Plan(())
    lines = Lines(device, "topk", x.shape, axis, x.size)
    if k > MOST_FIRST or not lines.suits:
        return None
    w, type_ = lines.k, element(x.dtype)
    w.read("x", x.dtype, 0)
    w.write("values", x.dtype, 1)
    w.write("indices", int64, 2)
    w.number("chosen", k)
    lines.begin()
    w.line("const ix to = line / step * chosen * step + line % step;", "ix kept = 0;")
    w.open("for (ix j = 0; j < n; j++)")
    w.line(
        f"const {SUFFIX[x.dtype]} stored = x[from + j * step];",
        f"const {type_} v = ({type_}){device.dialect.load(x.dtype, 'stored')};",
        "ix place = kept;",
    )
    w.open("while (place > 0)")
    last = "values[to + (place - 1) * step]"
    w.line(
        f"const {type_} before = ({type_}){device.dialect.load(x.dtype, last)};",
        # of equals the first stays in front
        f"if (!(v {'>' if largest else '<'} before || (before != before && v == v))) break;",
        "place--;",
    )
    w.close()
    w.line("if (place == chosen) continue;", "kept += kept < chosen;")
    w.open("for (ix p = kept - 1; p > place; p--)")
    for name in ("values", "indices"):
        w.line(f"{name}[to + p * step] = {name}[to + (p - 1) * step];")
    w.close()
    w.line("values[to + place * step] = stored;", "indices[to + place * step] = j;")
    w.close()
    return Plan((lines.end(),))


def lined_up(x: TensorType, indices: TensorType, axis: int) -> bool:
    """Return whether a tensor and its indices have the same shape except at `axis`.

    A line is the sequence of elements that differ only in their index along `axis`. If the result
    is True, each line of indices belongs to one line of the tensor.
    """
    return x.shape[:axis] + x.shape[axis + 1 :] == indices.shape[:axis] + indices.shape[axis + 1 :]


@kernel("gather_elements")
def gather_elements(device: GridDevice, types: Types, results: Types, *, axis: int) -> Plan | None:
    """Return the launch plan of out[line, i] = x[line, indices[line, i]] along an axis.

    Returns None if x and indices differ in the size of another axis.
    """
    x, indices = types
    if not lined_up(x, indices, axis):
        return None
    word, words = WORDS[x.dtype.itemsize]
    lines = Lines(device, "gather_elements", x.shape, axis, max(x.size, indices.size) * words)
    k = lines.k
    k.read("x", word, 0)
    k.read("indices", indices.dtype, 1)
    k.write("out", word, 2)
    k.watch("gather_elements", axis)
    k.number("chosen", indices.shape[axis])

    def copy(to: str) -> None:
        k.row(indices.dtype, f"indices[{to}]", "n")
        for part in range(words):
            at = "from + (row < 0 ? 0 : row) * step"
            read = f"x[({at}) * {words} + {part}]" if x.size else "0"
            k.line(f"out[({to}) * {words} + {part}] = {read};")

    if not device.serial:
        total = k.number("total", indices.size)
        k.number("n", lines.n)
        k.number("step", lines.inner)
        k.line(
            "const ix e = (ix)DG_ITEM(0);",
            f"if (e >= {total}) return;",
            "const ix outer = e / (chosen * step), from = outer * n * step + e % step;",
        )
        copy("e")
        return Plan((k.launch_items(indices.size),))
    lines.begin()
    k.line("const ix to = line / step * chosen * step + line % step;")
    k.open("for (ix j = 0; j < chosen; j++)")
    copy("to + j * step")
    k.close()
    return Plan((lines.end(),))


def places_of_indices(device: GridDevice, types: Types, axis: int, name: str) -> Launch:
    """Return the launch that computes, for each update of a scatter, the element that it changes.

    For each update it writes the offset of that element in `x`, the first operand, to buffer 4, as
    int32. For an index out of range it writes -1 and reports the index for the op `name`.
    """
    x, indices = types[:2]
    _, n, step = split_at(x.shape, axis)
    k = Kernel(device, "places_of_indices", max(x.size, indices.size))
    k.read("indices", indices.dtype, 1)
    k.write("places", int32, 4)
    k.watch(name, axis)
    for label, value in (
        ("total", indices.size), ("chosen", indices.shape[axis]), ("n", n), ("step", step),
    ):  # fmt: skip
        k.number(label, value)
    k.line("const ix e = (ix)DG_ITEM(0);", "if (e >= total) return;")
    k.row(indices.dtype, "indices[e]", "n")
    k.line("places[e] = row < 0 ? -1 : (i32)((e / (chosen * step) * n + row) * step + e % step);")
    return k.launch_items(indices.size)


def _scatter_elements(device: GridDevice, types: Types, axis: int, add: bool) -> Plan | None:
    x, indices = types[:2]
    if not lined_up(x, indices, axis) or x.dtype.is_complex:
        return None
    lines = Lines(device, "scatter_elements", x.shape, axis, max(x.size, indices.size))
    if not lines.suits:
        return None
    k = lines.k
    k.read("indices", indices.dtype, 1)
    k.read("updates", x.dtype, 2)
    k.write("out", x.dtype, 3)
    k.watch("scatter_elements_add" if add else "scatter_elements_set", axis)
    k.number("chosen", indices.shape[axis])
    lines.begin()
    k.line("const ix taken = line / step * chosen * step + line % step;")
    k.open("for (ix j = 0; j < chosen; j++)")
    k.row(indices.dtype, "indices[taken + j * step]", "n")
    value = "updates[taken + j * step]"
    if add:
        value = added(device, x.dtype, "out[from + row * step]", value)
    k.line(f"if (row >= 0) out[from + row * step] = {value};")
    k.close()
    steps = dense(x.shape)
    whole = copy_launch(device, x.dtype, x.shape, (0, steps, 0, x.size), (3, steps, 0, x.size))
    return Plan((whole, lines.end()))


@kernel("scatter_elements_set")
def scatter_elements_set(
    device: GridDevice, types: Types, results: Types, *, axis: int
) -> Plan | None:
    """Return the launch plan of a copy of x with elements replaced, in the order of the indices.

    Returns None for complex elements, for too few and long lines, or if x and the indices differ in
    the size of another axis.
    """
    return _scatter_elements(device, types, axis, False)


@kernel("scatter_elements_add")
def scatter_elements_add(
    device: GridDevice, types: Types, results: Types, *, axis: int
) -> Plan | None:
    """Return the launch plan of a copy of x with updates added, in the order of the indices.

    Returns None for complex elements, for too few and long lines, or if x and the indices differ in
    the size of another axis.
    """
    return _scatter_elements(device, types, axis, True)
