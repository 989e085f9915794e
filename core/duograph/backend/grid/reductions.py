"""Reduction kernels over any axes: one or two passes per run of adjacent axes.

A pass reduces a source of shape (outer, n, inner) to (outer, parts, inner): part p combines
elements p * chunk up to (p + 1) * chunk of the middle axis. There are two passes if the results are
too few to keep the device busy. On a GPU, a group of work items reduces a row (if inner is 1) or
adjacent columns. The kernel table refers to the builders of this module; fused regions use
`combine_of`, `combine_parts` and `parts_of` too.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from ...dtype import DType, bfloat16, bool_, float16, float32, int32, uint32, uint64
from ...types import TensorType
from ..codegen.dialect import SUFFIX
from ..codegen.expression import constant
from ..codegen.group_reduce import WARP, group_reduction
from ..codegen.packs import pack_width, read_pack
from ..codegen.printer import print_expression
from ..codegen.row_schedule import HELD
from .device import GridDevice, Launch, Plan
from .kernel_writer import Kernel, ceil_div
from .table import Types, kernel

__all__ = [
    "Combine",
    "combine_of",
    "combine_parts",
    "greatest",
    "lanes_for",
    "parts_of",
    "reduce_plan",
    "row_lanes",
    "share_row",
    "sum_parts",
]

# Number of partial extremes that a serial device computes side by side, since compilers do not
# reorder comparisons that propagate NaN.
LANES = 32
# The fewest adjacent elements that the work items of a group read together, if there are as many.
LINE = 32
# Bytes of an element; as many smaller elements are read together as elements of this size, because
# each column that a work item of a grid reads needs an accumulator.
NARROWEST = 2
# Adjacent columns that one work item of a serial device reduces side by side.
BLOCK = 256


@dataclasses.dataclass(frozen=True)
class Combine:
    """Emits the source by which a reduction kernel combines two values.

    Attributes:
        name: "sum", "max", "min", "prod", "all" or "any".
        dtype: dtype of the accumulator, in which partial results are also stored between passes.
        start: source of the initial value, the neutral element.
    """

    name: str
    dtype: DType
    start: str

    def text(self, acc: str, x: str) -> str:
        """Return the C statement that combines the value `x` into the variable `acc`."""
        if self.name == "sum":
            return f"DG_ADD_TO({acc}, {x})"
        if self.name == "prod":
            return f"{acc} *= {x};"
        if self.name in ("all", "any"):
            return f"{acc} {'&' if self.name == 'all' else '|'}= {x};"
        sign = ">" if self.name == "max" else "<"
        nan = f" || {x} != {x}" if self.dtype.is_floating else ""
        return f"{acc} = {x} {sign} {acc}{nan} ? {x} : {acc};"


def combine_of(device: GridDevice, name: str, dtype: DType) -> Combine:
    """Return the `Combine` of a reduction, which emits the source that combines two elements.

    `name` is the name of the reduction, such as "sum". 16-bit floats accumulate in float32; sums
    and products of integers accumulate in unsigned integers, for which overflow is defined to wrap.
    """
    acc = float32 if dtype in (float16, bfloat16) else dtype
    if name in ("all", "any") or (dtype is bool_ and name in ("max", "min", "sum", "prod")):
        word = {"max": "any", "min": "all", "sum": "any", "prod": "all"}.get(name, name)
        return Combine(word, uint32, "1" if word == "all" else "0")
    if name in ("sum", "prod"):
        if dtype.is_integer:
            acc = uint64 if dtype.itemsize == 8 else uint32
        value: float = 0 if name == "sum" else 1
        return Combine(name, acc, print_expression(device.dialect, constant(value, acc))[1])
    if acc.is_floating:
        value = float("-inf" if name == "max" else "inf")
    else:
        if acc.itemsize < 4:
            acc = int32
        bits, signed = 8 * acc.itemsize, acc.kind == "i"
        least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
        value = least if name == "max" else most
    return Combine(name, acc, print_expression(device.dialect, constant(value, acc))[1])


def greatest(k: Kernel, combine: Combine, name: str, value: str, first: str, last: str) -> None:
    """Append to kernel `k` the loop that finds the maximum (or minimum) of an expression.

    The C expression `value` is evaluated for each j from `first` up to, not including, `last`. The
    result is a new variable `name`.
    """
    acc = SUFFIX[combine.dtype]
    k.line(f"{acc} {name} = {combine.start};")
    k.open("")
    k.line(
        f"enum {{ side_by_side = {LANES} }};",
        f"{acc} lanes[side_by_side];",
        f"for (ix c = 0; c < side_by_side; c++) lanes[c] = {combine.start};",
        f"ix at = {first};",
    )
    k.open(f"for (; at + side_by_side <= {last}; at += side_by_side)")
    k.line("DG_INDEPENDENT")
    k.open("for (ix c = 0; c < side_by_side; c++)")
    k.line("const ix j = at + c;", f"const {acc} v = {value};", combine.text("lanes[c]", "v"))
    k.close()
    k.close()
    k.line(
        f"for (ix c = 0; c < side_by_side; c++) {{ {combine.text(name, 'lanes[c]')} }}",
        f"for (ix j = at; j < {last}; j++) {{ const {acc} v = {value}; "
        f"{combine.text(name, 'v')} }}",
    )
    k.close()


def share_row(k: Kernel, combine: Combine, acc: str, lanes: int) -> None:
    """Append to kernel `k` the lines that reduce its variable `acc` over the work items of a group.

    Afterwards each of the `lanes` work items has the result in `acc`.
    """
    k.line(*group_reduction(k.dialect, combine, acc, "shared", lanes))


@dataclasses.dataclass(frozen=True)
class _Pass:
    """One pass of a reduction, from shape (outer, n, inner) to (outer, parts, inner).

    `parts` is 1 in the last pass.
    """

    outer: int
    n: int
    inner: int
    parts: int

    @property
    def size(self) -> int:
        """Number of elements that a reduction pass produces."""
        return self.outer * self.parts * self.inner


def _passes(device: GridDevice, shape: Sequence[int], axes: Sequence[int]) -> list[_Pass]:
    """Return the passes of a reduction over `axes`, one or two for each run of adjacent axes.

    There are two passes if the results are too few to keep the device busy; the first pass then
    produces several partial results for each result.
    """
    runs: list[list[int]] = []
    for axis in sorted(axes):
        if runs and all(shape[a] == 1 for a in range(runs[-1][-1] + 1, axis)):
            runs[-1].append(axis)
        else:
            runs.append([axis])
    sizes = list(shape)
    found = []
    for run in reversed(runs):
        outer = n = inner = 1
        for axis, size in enumerate(sizes):
            if axis < run[0]:
                outer *= size
            elif axis > run[-1]:
                inner *= size
            else:
                n *= size
        for axis in run:
            sizes[axis] = 1
        columns = inner > 1 and not device.serial
        parts = (_column_parts if columns else parts_of)(device, outer, n, inner)
        if parts > 1:
            found.append(_Pass(outer, n, inner, parts))
            n = parts
        found.append(_Pass(outer, n, inner, 1))
    return found or [_Pass(1, 1, math.prod(shape), 1)]


def parts_of(device: GridDevice, outer: int, n: int, inner: int) -> int:
    """Return into how many parts to divide a reduced axis so that all compute units are busy.

    The source has shape (outer, n, inner); the axis of size n is reduced.
    """
    if device.serial:
        workers, least, busy = 4 * device.units, 16384, outer * ceil_div(inner, BLOCK)
    elif inner == 1:
        workers, least, busy = 8 * device.units, 4 * device.group, outer
    else:
        workers, least, busy = 1024 * device.units, 16, outer * inner
    row = n * (min(inner, BLOCK) if device.serial else 1)
    if busy >= workers or row < 2 * least:
        return 1
    return max(1, min(ceil_div(workers, max(busy, 1)), row // least, n))


def _width_of(step: _Pass, source: DType) -> int:
    """Return how many adjacent elements a GPU work item loads in one access in a reduction pass.

    `source` is the source's dtype.
    """
    if step.inner > 1:
        return pack_width([max(source.itemsize, NARROWEST)], step.inner, False)
    return pack_width([source.itemsize], step.n, step.outer == 1)


def _shape_of_group(
    device: GridDevice, outer: int, n: int, inner: int, width: int
) -> tuple[int, int]:
    """Return the arrangement of a group of work items that reduces columns: (across, down).

    The group has `across` work items along a row, which read adjacent elements, `width` each, and
    `down` rows of work items. `across` is doubled from 1 until a row of work items reads LINE
    elements. It is doubled further while `down` exceeds n, the number of rows, and, up to 32, while
    there are more groups than needed to keep the device busy. The doubling ends in any case when a
    row of work items reads all columns or is the whole group.
    """
    across = 1
    while across < device.group and across * width < inner:
        down, groups = device.group // across, outer * ceil_div(inner, across * width)
        if across * width >= LINE and down <= n and (across >= 32 or groups < 8 * device.units):
            break
        across *= 2
    return across, device.group // across


def _column_parts(device: GridDevice, outer: int, n: int, inner: int) -> int:
    """Return into how many parts a GPU divides the n rows of a reduction of columns.

    The source has shape (outer, n, inner). More parts keep more work items busy.
    """
    width = pack_width([4], inner, False)
    across, down = _shape_of_group(device, outer, n, inner, width)
    busy = max(1, outer * ceil_div(inner, across * width))
    return max(1, min(ceil_div(4 * device.units, busy), n // (8 * down)))


class _Reduction:
    """Writes the kernel of one reduction pass, in one of four forms of its loop.

    `source` and `target` are (buffer number, dtype) of the pass's operand and result.
    """

    def __init__(
        self,
        device: GridDevice,
        combine: Combine,
        step: _Pass,
        source: tuple[int, DType],
        target: tuple[int, DType],
    ) -> None:
        self.device, self.combine, self.step = device, combine, step
        self.source, self.target = source[1], target[1]
        self.acc = SUFFIX[combine.dtype]
        extent = max(step.outer * step.n * step.inner, step.size)
        self.k = k = Kernel(device, f"reduce_{combine.name}", extent)
        k.read("x", source[1], source[0])
        k.write("out", target[1], target[0])
        self.width = 1 if device.serial else _width_of(step, source[1])
        self.chunk = ceil_div(step.n, step.parts)
        if step.inner == 1:  # packs of a row belong to one part
            self.chunk = ceil_div(self.chunk, self.width) * self.width
        for name, value in (
            ("count", step.size), ("n", step.n), ("inner", step.inner), ("parts", step.parts),
            ("chunk", self.chunk),
        ):  # fmt: skip
            k.number(name, value)

    def element(self, at: str) -> str:
        """Return the C expression that loads a source element in the accumulator's dtype.

        `at` is the C expression of the stored element, such as ``x[from + j]``.
        """
        loaded = self.device.dialect.load(self.source, at)
        if self.combine.name in ("all", "any"):
            return f"({loaded} != 0)"
        return f"({self.acc}){loaded}" if self.source is not self.combine.dtype else loaded

    def rounded(self, value: str) -> str:
        """Return the C expression that rounds an accumulator to the dtype of the stored result."""
        if self.target is bool_:
            return f"{value} != 0"
        if self.target in (float16, bfloat16):
            return self.device.dialect.store(self.target, value)
        return value if self.target is self.combine.dtype else f"({SUFFIX[self.target]}){value}"

    def range_of(self, part: str) -> None:
        """Append definitions of `first` and `last`, the range of elements of part number `part`."""
        self.k.line(
            f"const ix first = {part} * chunk;",
            "const ix last = first + chunk < n ? first + chunk : n;",
        )

    def group_row(self) -> Launch:
        """Return the launch of a reduction pass in which a group of work items reduces each row.

        If parts of a warp can exchange values, each part of a warp reduces one short row.
        """
        k, acc, combine = self.k, self.acc, self.combine
        packs = ceil_div(self.chunk, self.width)
        lanes, rows = lanes_for(self.device, packs), 1
        if k.dialect.shuffles:
            lanes = min(lanes, 1 << max(packs.bit_length() - 1, 0))
            rows = self.device.group // lanes if lanes <= WARP else 1
        k.line(f"enum {{ lanes = {lanes} }};")
        if rows == 1:
            k.line(
                f"DG_SHARED {acc} shared[lanes];",
                "const i32 lane = DG_PLACE(0);",
                "const ix at = (ix)DG_GROUP(0);",
            )
        else:  # all work items of a warp exchange values: the rest repeats the last row
            k.line(
                "const i32 lane = DG_PLACE(0) % lanes;",
                f"const ix found = (ix)DG_GROUP(0) * {rows} + DG_PLACE(0) / lanes;",
                "const ix at = found < count ? found : count - 1;",
            )
        self.range_of("(at % parts)")
        k.line("const ix from = at / parts * n;")
        self.start_columns()
        k.open(f"for (ix j = first + lane * {self.width}; j < last; j += lanes * {self.width})")
        self.take("from + j", "last - j" if self.step.n % self.width else "")
        k.close()
        k.line(f"{acc} acc = column[0];")
        folded = combine.text("acc", "column[e]")
        if self.width > 1:
            k.line("DG_UNROLL", f"for (i32 e = 1; e < {self.width}; e++) {{ {folded} }}")
        share_row(k, combine, "acc", lanes)
        k.line(f"if (lane == 0) out[at] = {self.rounded('acc')};")
        return k.launch(ceil_div(self.step.size, rows), size=(lanes * rows,))

    def start_columns(self) -> None:
        """Append the array `column`: an initialised accumulator for each element of a pack.

        A pack is a run of adjacent elements that a work item reads together.
        """
        self.k.line(
            f"{self.acc} column[{self.width}];",
            "DG_UNROLL",
            f"for (i32 e = 0; e < {self.width}; e++) column[e] = {self.combine.start};",
        )

    def take(self, at: str, left: str = "") -> None:
        """Append lines that combine the pack at offset `at` of the source into the array `column`.

        `left` is the C expression of the number of elements at that offset, if they may be fewer
        than a pack; else "".
        """
        k, width = self.k, self.width
        if width == 1:
            k.line(f"const {self.acc} v = {self.element(f'x[{at}]')};")
            k.line(self.combine.text("column[0]", "v"))
            return
        k.line(*read_pack(k.dialect, self.source, width, "pack", f"x + {at}", left), "DG_UNROLL")
        k.open(f"for (i32 e = 0; e < {width}; e++)")
        if left:
            k.line(f"if (e >= {left}) break;")
        k.line(f"const {self.acc} v = {self.element('pack.v[e]')};")
        k.line(self.combine.text("column[e]", "v"))
        k.close()

    def span_of_rows(self) -> Launch:
        """Return the launch of a reduction pass in which each CPU thread reduces rows."""
        k, acc, combine, size = self.k, self.acc, self.combine, self.step.size
        most = 16384 // max(self.chunk, 1) or 1
        grain = max(1, min(ceil_div(size, 4 * self.device.units), most))
        k.stretch("count", grain)
        k.open("for (ix at = begin; at < end; at++)")
        self.range_of("(at % parts)")
        k.line("const ix from = at / parts * n;")
        if combine.name in ("max", "min"):
            greatest(k, combine, "acc", self.element("x[from + j]"), "first", "last")
        else:
            k.line(f"{acc} acc = {combine.start};", "DG_ANY_ORDER")
            k.open("for (ix j = first; j < last; j++)")
            k.line(f"const {acc} v = {self.element('x[from + j]')};", combine.text("acc", "v"))
            k.close()
        k.line(f"out[at] = {self.rounded('acc')};")
        k.close()
        return k.launch(ceil_div(size, grain))

    def group_columns(self) -> Launch:
        """Return the launch of a reduction pass in which a group of work items reduces columns.

        It suits GPUs. Each work item reduces some of the rows of a pack of adjacent columns; the
        work items of the same columns combine their values in shared memory.
        """
        k, combine, width = self.k, self.combine, self.width
        across, down = _shape_of_group(
            self.device, self.step.outer * self.step.parts, self.chunk, self.step.inner, width
        )
        lanes = across * down
        blocks = ceil_div(self.step.inner, across * width)
        k.number("blocks", blocks)
        k.line(
            f"enum {{ across = {across}, down = {down}, lanes = {lanes} }};",
            f"DG_SHARED {self.acc} shared[{width}][lanes];",
            "const i32 lane = DG_PLACE(0);",
            "const ix row = (ix)DG_GROUP(0) / blocks;",
            "const ix block = (ix)DG_GROUP(0) - row * blocks;",
            f"const ix place = (block * across + lane % across) * {width};",
        )
        self.range_of("(row % parts)")
        k.line("const ix from = row / parts * n * inner + place;")
        self.start_columns()
        k.open("if (place < inner)")
        k.open("for (ix j = first + lane / across; j < last; j += down)")
        self.take("from + j * inner")
        k.close()
        k.close()
        k.line("DG_UNROLL", f"for (i32 e = 0; e < {width}; e++) shared[e][lane] = column[e];")
        k.open("for (i32 far = lanes / 2; far >= across; far /= 2)")
        k.line("DG_BARRIER();", "if (lane >= far) continue;", "DG_UNROLL")
        both = combine.text("shared[e][lane]", "shared[e][lane + far]")
        k.line(f"for (i32 e = 0; e < {width}; e++) {{ {both} }}")
        k.close()
        k.line("if (lane >= across || place >= inner) return;", "DG_UNROLL")
        stored = f"out[row * inner + place + e] = {self.rounded('shared[e][lane]')};"
        k.line(f"for (i32 e = 0; e < {width}; e++) {stored}")
        return k.launch(self.step.outer * self.step.parts * blocks, size=(lanes,))

    def block_of_columns(self) -> Launch:
        """Return the launch of a reduction pass in which a work item reduces adjacent columns.

        It suits CPUs, where each thread runs many work items one after the other.
        """
        k, acc, combine = self.k, self.acc, self.combine
        blocks = ceil_div(self.step.inner, BLOCK)
        k.number("blocks", blocks)
        k.line(
            f"enum {{ block = {BLOCK} }};",
            f"{acc} acc[block];",
            "const ix row = (ix)DG_ITEM(0) / blocks, column = (ix)DG_ITEM(0) % blocks * block;",
            "const ix width = inner - column < block ? inner - column : block;",
        )
        self.range_of("(row % parts)")
        k.line(
            "const ix from = row / parts * n * inner + column;",
            f"for (ix c = 0; c < width; c++) acc[c] = {combine.start};",
        )
        k.open("for (ix j = first; j < last; j++)")
        k.line("const ix line = from + j * inner;", "DG_INDEPENDENT")
        k.open("for (ix c = 0; c < width; c++)")
        k.line(f"const {acc} v = {self.element('x[line + c]')};", combine.text("acc[c]", "v"))
        k.close()
        k.close()
        stored = f"out[row * inner + column + c] = {self.rounded('acc[c]')};"
        k.line(f"for (ix c = 0; c < width; c++) {stored}")
        return k.launch(self.step.outer * self.step.parts * blocks)


# (whether the device is a CPU, whether rows are reduced) -> how the work of a pass is divided.
_FORMS = {
    (False, True): _Reduction.group_row,
    (True, True): _Reduction.span_of_rows,
    (False, False): _Reduction.group_columns,
    (True, False): _Reduction.block_of_columns,
}


def _launch(
    device: GridDevice,
    combine: Combine,
    step: _Pass,
    source: tuple[int, DType],
    target: tuple[int, DType],
) -> Launch:
    """Return the launch of one reduction pass; `source` and `target` are (buffer number, dtype)."""
    write = _FORMS[device.serial, step.inner == 1]
    return write(_Reduction(device, combine, step, source, target))


def lanes_for(device: GridDevice, n: int) -> int:
    """Return how many work items of a group reduce a row of n elements or packs together.

    It is a power of two: at least 32, but at most the size of a group.
    """
    lanes = 32
    while lanes < device.group and lanes * 2 <= n:
        lanes *= 2
    return min(lanes, device.group)


def row_lanes(device: GridDevice, packs: int) -> int:
    """Return how many work items of a group compute a row of `packs` packs of a fused region.

    A pack is the few adjacent elements that a work item loads in one access. A long row gets more
    work items, so that each can keep its packs in registers, or so that fewer rows are in the cache
    at a time.
    """
    lanes = lanes_for(device, packs)
    while lanes < device.widest and packs > HELD * lanes:
        lanes *= 2
    return lanes


def reduce_plan(
    device: GridDevice, name: str, source: TensorType, result: TensorType, axes: Sequence[int]
) -> Plan | None:
    """Return the launch plan that reduces a tensor over given axes; None for complex dtypes.

    `name` is the name of the reduction, such as "sum"; `result` is the type of the result.
    """
    if source.dtype.is_complex:
        return None
    combine = combine_of(device, name, source.dtype)
    steps = _passes(device, source.shape, axes)
    launches: list[Launch] = []
    scratch: list[int] = []
    here = (0, source.dtype)
    for at, step in enumerate(steps):
        if at == len(steps) - 1:
            there = (1, result.dtype)
        else:
            there = (2 + len(scratch), combine.dtype)
            scratch.append(step.size * combine.dtype.itemsize)
        launches.append(_launch(device, combine, step, here, there))
        here = there
    return Plan(tuple(launches), tuple(scratch))


def _register(op: str, name: str) -> None:
    """Register a builder for the op named `op`; `name` is its kind of reduction, such as "sum"."""

    @kernel(op)
    def builder(
        device: GridDevice,
        types: Types,
        results: Types,
        *,
        axis: Sequence[int] | None,
        keepdims: bool,
    ) -> Plan | None:
        (x,) = types
        axes = range(len(x.shape)) if axis is None else axis
        return reduce_plan(device, name, x, results[0], tuple(axes))


for _op in ("sum", "max", "min", "prod", "all", "any"):
    _register(f"reduce_{_op}", _op)


def sum_parts(
    device: GridDevice, parts: int, n: int, source: tuple[int, DType], target: tuple[int, DType]
) -> Launch:
    """Return the launch that adds up `parts` arrays of n elements, element by element.

    `source` and `target` are (number of the buffer, dtype); the source holds the arrays one after
    the other.
    """
    combine = combine_of(device, "sum", target[1])
    return _launch(device, combine, _Pass(1, parts, n, 1), source, target)


def combine_parts(
    device: GridDevice,
    name: str,
    shape: tuple[int, int, int],
    source: int,
    target: tuple[int, DType],
) -> Launch:
    """Return the launch that reduces the middle axis of (outer, parts, n) partial results.

    `shape` is (outer, parts, n). `source` is the number of the buffer of the partial results, which
    have the accumulator's dtype; `target` is (buffer number, dtype) of the result.
    """
    combine = combine_of(device, name, target[1])
    return _launch(device, combine, _Pass(*shape, 1), (source, combine.dtype), target)
