"""Generates source code in a C-like language from loop programs (scheduled kernels).

`LoopPrinter` emits the statements that all languages have in common; differences are attributes of
`Dialect`. Subclasses emit the beginning and the end of a kernel: `CPrinter` for a function on a CPU
(``int name(void **args, i64 begin, i64 end)``), `GridPrinter` for a kernel that runs once for each
work item of a grid (a GPU).

In a generated kernel each op defines a variable that has the op's name, in a line with the user's
source line as a comment. These classes never reorder or split loops; the scheduler has decided the
loops.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from typing import Any

from ...dtype import DType
from ...ir.graph import GraphNode
from . import loop_program as ir
from .dialect import SUFFIX, Dialect, GridDialect
from .expression import Expr, compute_dtype, constant, s
from .group_reduce import group_reduction
from .loop_program import LoopProgram, Order, Space, Statement, Work
from .packs import pack_type, read_pack, write_pack
from .printer import print_expression
from .region_plan import Gathered, Reduction

__all__ = ["CPrinter", "GridPrinter", "least_value", "source_comment"]

_POSITIONS = {"item": "DG_ITEM(0)", "group": "DG_GROUP(0)", "lane": "DG_PLACE(0)"}


class LoopPrinter:
    """Base class that generates source code from one loop program (the schedule of a kernel).

    It has a method for each kind of statement, named after the statement's class. Each method
    appends to `lines`, the kernel's body so far.
    """

    def __init__(self, dialect: Dialect, program: LoopProgram) -> None:
        self.dialect = dialect
        self.program = program
        self.lines: list[str] = []
        self.depth = 1
        self.memory = f"{dialect.memory} " if dialect.memory else ""
        # name of a value that a cast has rounded -> its stored dtype
        self.rounded: dict[str, object] = {}

    def kernel(self, name: str) -> str:
        """Return the source of the kernel's whole definition, as a function called `name`."""
        self.begin()
        self.block(self.program.body)
        return "\n".join([self.head(name), *self.lines, *self.end(), "}", ""])

    def head(self, name: str) -> str:
        """Return the first line of a kernel's definition: its name and parameters."""
        raise NotImplementedError

    def begin(self) -> None:
        """Append the lines before a kernel's body: operand pointers and the range of work."""
        raise NotImplementedError

    def end(self) -> list[str]:
        """Return the lines that follow a kernel's body, before its closing brace."""
        return []

    def wrong_index(self, label: str, g: Gathered) -> None:
        """Append lines that tell the host if an index is out of range.

        The index is in the variable ``LABEL_counted`` of the kernel, where LABEL is the argument
        `label`; `g` describes the indexed axis.
        """
        raise NotImplementedError

    # ---- lines ----------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def open(self, text: str) -> None:
        self.line(text + " {")
        self.depth += 1

    def close(self) -> None:
        self.depth -= 1
        self.line("}")

    def block(self, statements: Sequence[Statement]) -> None:
        for statement in statements:
            _PRINT[type(statement)](self, statement)

    def cast(self, source: str, dtype: DType, target: DType) -> str:
        """Return source that converts the variable `source` of dtype `dtype` to dtype `target`."""
        element = Expr("input", compute_dtype(dtype), (), source)
        return print_expression(self.dialect, s.cast(element, target))[1]

    # ---- declarations ---------------------------------------------------------------------------

    def let(self, x: ir.Let) -> None:
        values = ", ".join(f"{name} = {value}" for name, value in x.values)
        self.line(f"const {x.type} {values};")

    def position(self, x: ir.Position) -> None:
        cast = "" if x.of == "lane" else f"({x.type})"
        self.line(f"const {x.type} {x.name} = {cast}{_POSITIONS[x.of]};")

    def exit(self, x: ir.Exit) -> None:
        self.line(f"if ({x.condition}) {x.how};")

    def array(self, x: ir.Array) -> None:
        shared = "DG_SHARED " if x.space is Space.SHARED else ""
        aligned = " __attribute__((aligned(64)))" if x.space is Space.ALIGNED else ""
        self.line(f"{shared}{x.type} {x.name}[{x.extent}]{aligned};")

    def pointer(self, x: ir.Pointer) -> None:
        const = "" if x.writable else "const "
        self.line(f"{self.memory}{const}{SUFFIX[x.dtype]} *const {x.name} = {x.address};")

    def declare(self, x: ir.Declare) -> None:
        self.line(f"{x.type} {x.name} = {x.value};")

    def locate(self, x: ir.Locate) -> None:
        """Append the range check of an index that the kernel reads from a tensor."""
        label, g = x.label, x.gathered
        signed = f"{g.label} < 0 ? (i64){g.label} + {g.n} : (i64){g.label}"
        self.line(f"const i64 {label}_counted = {signed};")
        self.wrong_index(label, g)
        if x.skips:
            self.line(f"if ((u64){label}_counted >= {g.n}) continue;")
        else:
            self.line(f"const i64 {label}_at = (u64){label}_counted < {g.n} ? {label}_counted : 0;")

    # ---- values ---------------------------------------------------------------------------------

    def load(self, x: ir.Load) -> None:
        element = f"*({x.source})" if x.at is None else f"{x.source}[{x.at}]"
        text = self.dialect.load(x.dtype, element)
        self.line(f"const {SUFFIX[compute_dtype(x.dtype)]} {x.name} = {text};")

    def read_pack(self, x: ir.ReadPack) -> None:
        left = "" if x.left is None else f"{x.left}"
        for line in read_pack(self.dialect, x.dtype, x.width, x.name, f"{x.source}", left):
            self.line(line)

    def new_pack(self, x: ir.NewPack) -> None:
        self.line(f"{pack_type(x.dtype, x.width)} {x.name};")

    def write_pack(self, x: ir.WritePack) -> None:
        left = "" if x.left is None else f"{x.left}"
        for line in write_pack(self.dialect, x.dtype, x.width, x.name, f"{x.target}", left):
            self.line(line)

    def define(self, x: ir.Define) -> None:
        lines, text = print_expression(self.dialect, x.expression, f"{x.name}_")
        for line in lines:
            self.line(line)
        comment = source_comment(x.node)
        self.line(f"const {SUFFIX[compute_dtype(x.dtype)]} {x.name} = {text};{comment}")
        if x.expression.op == "cast":
            self.rounded[x.name] = x.expression.value

    def store(self, x: ir.Store) -> None:
        target = f"{x.target}[{x.at}]"
        text = x.value
        if x.adds:
            dtype = compute_dtype(x.dtype)
            there = Expr("input", dtype, (), self.dialect.load(x.dtype, target))
            element = Expr("input", dtype, (), x.value)
            total = Expr("|" if x.dtype.kind == "b" else "+", dtype, (there, element))
            text = print_expression(self.dialect, total)[1]
        only = "if (lane == 0) " if x.lane_zero else ""
        comment = source_comment(x.node) if x.node is not None else ""
        rounded = self.rounded.get(text) is x.dtype
        self.line(f"{only}{target} = {self.dialect.store(x.dtype, text, rounded)};{comment}")

    def assign(self, x: ir.Assign) -> None:
        text = x.value
        if x.dtype is not None and x.dtype.is_floating:
            text = self.dialect.store(x.dtype, text)
        elif x.dtype is not None:
            text = f"({SUFFIX[x.dtype]}){text}"
        self.line(f"{x.target}[{x.at}] = {text};")

    # ---- reductions -----------------------------------------------------------------------------

    def start(self, x: ir.Start) -> None:
        """Append the declaration of an accumulator (`loop_program.Start`)."""
        v = x.reduction
        acc = compute_dtype(v.dtype)
        first = constant(0, acc) if v.kind == "+" else least_value(acc)
        self.line(f"{SUFFIX[acc]} {v.name} = {print_expression(self.dialect, first)[1]};")
        if _has_flag(v):
            self.line(f"int {v.name}_nan = 0;")

    def accumulate(self, x: ir.Accumulate) -> None:
        v, comment = x.reduction, source_comment(x.reduction.node)
        text = self.cast(v.source, x.source, compute_dtype(v.dtype))
        if v.kind == "+":
            self.line(self.dialect.accumulate(v.name, text) + comment)
            return
        self.line(f"{v.name} = {text} > {v.name} ? {text} : {v.name};{comment}")
        if _has_flag(v):
            self.line(f"{v.name}_nan |= {text} != {text};")

    def finish(self, x: ir.Finish) -> None:
        """Append the end of a reduction: a maximum becomes NaN if any element was NaN."""
        v = x.reduction
        if _has_flag(v):
            _, nan = print_expression(self.dialect, constant(math.nan, compute_dtype(v.dtype)))
            self.line(f"{v.name} = {v.name}_nan ? {nan} : {v.name};")

    def take(self, x: ir.Take) -> None:
        text = self.cast(x.source, x.dtype, x.combine.dtype)
        comment = source_comment(x.node) if x.node is not None else ""
        self.line(x.combine.text(x.target, text) + comment)

    def group_reduce(self, x: ir.GroupReduce) -> None:
        shared = f"shared_{SUFFIX[x.combine.dtype]}"
        assert isinstance(self.dialect, GridDialect)
        lanes = self.program.lanes
        for line in group_reduction(self.dialect, x.combine, f"{x.name}_acc", shared, lanes):
            self.line(line)
        type_ = SUFFIX[compute_dtype(x.dtype)]
        self.line(f"const {type_} {x.name} = ({type_}){x.name}_acc;")

    # ---- loops ----------------------------------------------------------------------------------

    def for_loop(self, x: ir.For) -> None:
        if x.order is Order.INDEPENDENT:
            self.line(self.dialect.independent)
        elif x.order is Order.UNROLLED:
            self.line("DG_UNROLL")
        elif x.order is Order.ANY_ORDER:
            sums = [v.name for v in x.sums if v.kind == "+"]
            maxima = [v.name for v in x.sums if v.kind == "max"]
            flags = [f"{v.name}_nan" for v in x.sums if _has_flag(v)]
            self.line(self.dialect.reduction(sums, maxima, flags + ["wrong"] * x.checks))
        j = x.variable
        self.open(f"for ({x.type} {j} = {x.begin}; {j} < {x.end}; {j}++)")
        self.block(x.body)
        if not x.compact:
            self.close()
            return
        self.depth -= 1
        only = self.lines.pop().strip()
        self.lines[-1] = self.lines[-1].removesuffix("{") + only

    def blocks(self, x: ir.Blocks) -> None:
        """Append a loop over blocks of elements that never cross the end of a row."""
        self.open("for (i64 i = begin; i < end;)")
        self.line(f"const i64 row = i / {x.inner}, first = i - row * {x.inner};")
        self.line(f"i64 count = {x.inner} - first;")
        self.line("if (count > end - i) count = end - i;")
        if x.limit is not None:
            self.line(f"if (count > {x.limit}) count = {x.limit};")
        self.block(x.body)
        self.line("i += count;")
        self.close()

    def lane_loop(self, x: ir.LaneLoop) -> None:
        """Append a loop that divides the elements of a row among the work items of a group."""
        if x.unrolled:
            self.line("DG_UNROLL")
        self.open(f"for (i32 q = 0; q < {x.each}; q++)")
        pack = f"(lane + q * lanes) * {x.width}" if x.width > 1 else "lane + q * lanes"
        self.line(f"const {x.type} j = {pack}{' - shift' if x.edges else ''};")
        if x.each * x.lanes * x.width > x.row:
            self.line(f"if (j >= {x.row}) break;")
        if x.edges:
            self.open(f"if (j < 0 || j + {x.width} > {x.row})")
            last = f"j + {x.width} > {x.row} ? {x.row} : j + {x.width}"
            self.line(f"const {x.type} first = j < 0 ? 0 : j, last = {last};")
            self.open(f"for ({x.type} j = first; j < last; j++)")
            self.block(x.edges)
            self.close()
            self.line("continue;")
            self.close()
        self.block(x.body)
        self.close()

    def prefetch(self, x: ir.Prefetch) -> None:
        self.line(f"{self.dialect.fetch}({x.address}, count * {x.itemsize});")

    def stream(self, x: ir.Stream) -> None:
        self.line(f"{self.dialect.stream}({x.target}, {x.array}, count * {x.itemsize});")


_PRINT: dict[type, Callable[[LoopPrinter, Any], None]] = {
    ir.Let: LoopPrinter.let,
    ir.Position: LoopPrinter.position,
    ir.Exit: LoopPrinter.exit,
    ir.Array: LoopPrinter.array,
    ir.Pointer: LoopPrinter.pointer,
    ir.Declare: LoopPrinter.declare,
    ir.Locate: LoopPrinter.locate,
    ir.Load: LoopPrinter.load,
    ir.ReadPack: LoopPrinter.read_pack,
    ir.NewPack: LoopPrinter.new_pack,
    ir.WritePack: LoopPrinter.write_pack,
    ir.Define: LoopPrinter.define,
    ir.Store: LoopPrinter.store,
    ir.Assign: LoopPrinter.assign,
    ir.Start: LoopPrinter.start,
    ir.Accumulate: LoopPrinter.accumulate,
    ir.Finish: LoopPrinter.finish,
    ir.Take: LoopPrinter.take,
    ir.GroupReduce: LoopPrinter.group_reduce,
    ir.For: LoopPrinter.for_loop,
    ir.Blocks: LoopPrinter.blocks,
    ir.LaneLoop: LoopPrinter.lane_loop,
    ir.Prefetch: LoopPrinter.prefetch,
    ir.Stream: LoopPrinter.stream,
}


class CPrinter(LoopPrinter):
    """Generates from a loop program a C function that computes a range of the outermost loop.

    The function is ``int name(void **args, i64 begin, i64 end)``. It computes iterations `begin` up
    to, not including, `end`. `args` holds the addresses of the operands, then of the results and,
    if the program has partial results, of the memory for these. The caller divides the whole range
    among threads. The function returns 2 if an index was out of range, otherwise 0.
    """

    def head(self, name: str) -> str:
        return f"{self.dialect.kernel} int {name}(void **args, i64 begin, i64 end) {{"

    def begin(self) -> None:
        p = self.program
        for x in p.operands:
            self.line(f"const {SUFFIX[x.dtype]} *const {x.label}_data = args[{x.operand}];")
        for k, dtype in enumerate(p.results):
            self.line(f"{SUFFIX[dtype]} *const out{k} = args[{p.n_operands + k}];")
        if p.checks:
            self.line("int wrong = 0;")
        last = p.n_operands + len(p.results)
        for part, at in zip(p.partials, partial_offsets(p)):
            data = f"(void *)((u8 *)args[{last}] + {at})"
            self.line(f"{SUFFIX[part.dtype]} *const {part.name}_parts = {data};")

    def end(self) -> list[str]:
        return ["    return wrong ? 2 : 0;" if self.program.checks else "    return 0;"]

    def wrong_index(self, label: str, g: Gathered) -> None:
        self.line(f"wrong |= (u64){label}_counted >= {g.n};  /* {g.op} along axis {g.axis} */")


def partial_offsets(program: LoopProgram) -> list[int]:
    """Return the byte offset of each reduction's partial results in one scratch buffer.

    The last item is the total size in bytes. Each offset is a multiple of 64.
    """
    offsets = [0]
    for part in program.partials:
        offsets.append(offsets[-1] + -(-part.nbytes // 64) * 64)
    return offsets


class GridPrinter(LoopPrinter):
    """Generates from a loop program a GPU-style kernel, which a grid runs once per work item.

    Parameters of the kernel are the operands, the results, the memory for partial results, and
    numbers that say how much work there is. If the kernel checks indices, it has further parameters
    for reporting an index that is out of range: the buffer ``record`` and the numbers ``watched0``,
    ``watched1`` ...
    """

    dialect: GridDialect

    def head(self, name: str) -> str:
        p, memory = self.program, self.memory
        dtypes = {x.operand: SUFFIX[x.dtype] for x in p.operands}
        parameters = [f"{memory}const {dtypes.get(k, 'u8')} *arg{k}" for k in range(p.n_operands)]
        # results of an element-wise kernel may share memory with operands: see `overwrites`
        shared = p.work is Work.ITEM and p.count is not None
        alone = "" if shared else "DG_RESTRICT "
        parameters += [
            f"{memory}{SUFFIX[dtype]} *{alone}out{k}" for k, dtype in enumerate(p.results)
        ]
        parameters += [f"{memory}{SUFFIX[x.dtype]} *DG_RESTRICT {x.name}_parts" for x in p.partials]
        if p.checks:
            parameters.append(f"{memory}i64 *record")
        if p.work is Work.SPAN:
            parameters += ["const i64 total", "const i64 grain"]
        if p.count is not None:
            parameters.append("const i64 count")
        parameters += [f"const i32 watched{k}" for k in range(len(p.watched))]
        lanes = p.lanes * p.rows if p.work is Work.GROUP else 0
        return f"{self.dialect.definition(name, lanes)}({', '.join(parameters)}) {{"

    def begin(self) -> None:
        p = self.program
        for x in p.operands:
            pointer = f"{self.memory}const {SUFFIX[x.dtype]} *const {x.label}_data"
            self.line(f"{pointer} = arg{x.operand};")
        if p.work is Work.SPAN:
            self.line("const i64 begin = DG_ITEM(0) * grain;")
            self.line("const i64 end = total - begin < grain ? total : begin + grain;")
        if p.work is Work.GROUP:
            self.line(f"enum {{ lanes = {p.lanes} }};")

    def wrong_index(self, label: str, g: Gathered) -> None:
        number = f"watched{self.program.watched.index((g.op, g.axis))}"
        claim = f"dg_atomic_claim_i32(({self.memory}i32 *)record, {number})"
        self.line(f"if ((u64){label}_counted >= {g.n} && {claim}) {{")
        self.line(f"    record[1] = {g.label}, record[2] = {g.n};")
        self.line("}")


def _has_flag(v: Reduction) -> bool:
    """Return whether a reduction needs a flag for NaN elements, as maxima of floats do."""
    return v.kind == "max" and v.dtype.is_floating


def least_value(dtype: DType) -> Expr:
    """Return the least value of a dtype, with which a maximum starts, as a constant expression."""
    if dtype.is_floating:
        return constant(-math.inf, dtype)
    bits = 8 * dtype.itemsize
    return constant(-(2 ** (bits - 1)) if dtype.kind == "i" else 0, dtype)


def source_comment(node: GraphNode) -> str:
    """Return a C comment such as ``/* net.py:12 */``: where the user's code created a graph node.

    Returns "" if the node has no source location.
    """
    span = node.span
    if span is None:
        return ""
    name = os.path.basename(span.file).replace("*/", "")
    return f"  /* {name}:{span.line} */"
