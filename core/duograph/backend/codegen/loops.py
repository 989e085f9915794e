"""Prints regions as C functions of one form: ``int name(void **args, i64 begin, i64 end)``.

`args` are the operands of the region, then its results. Without reductions begin .. end are
elements, with them rows; whoever calls splits the range as it likes. A function reads top to bottom
like the program it comes from: one line for each op, with the op's name and the place in the user's
source. `backend.grid.fused_regions` prints the same loops as kernels of a grid.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ...dtype import DType
from .dialect import SUFFIX, Dialect
from .expression import Expr, compute_dtype, constant, s
from .printer import is_heavy, print_expression
from .region_plan import Access, Computed, Gathered, Reduction, RegionPlan, Scatter, gathered_in
from .scalar_kernels import GRAIN, grain_of

__all__ = [
    "FETCH_BYTES",
    "STREAM_BYTES",
    "ElementLoop",
    "PrintedRegion",
    "RowLoop",
    "Writer",
    "least_of",
    "place_of",
    "print_region",
]

# Bytes of a row that are kept between two passes, on the stack.
ROW_BYTES = 32768
# Loops over results of at least so many bytes go by blocks of so many elements, and ask for the
# operands of the next block before they compute one; still larger results are written past the
# caches. Where elements cost much and are written so, blocks are shorter: a processor computes the
# next one while it writes what it has just computed.
FETCH_BYTES, STREAM_BYTES, BLOCK, HEAVY_BLOCK = 1 << 20, 32 << 20, 512, 128


class PrintedRegion(NamedTuple):
    """A function, and how to call it.

    Attributes:
        text: its definition; the dialect's prelude comes before it.
        n: of the range to split.
        grain: the smallest piece of the range that is worth a thread.
        second: name, range and grain of the function that is called after it, when there is one.
        memory: bytes that both share; their address follows operands and results.
    """

    text: str
    n: int
    grain: int
    second: tuple[str, int, int] | None = None
    memory: int = 0


def print_region(dialect: Dialect, name: str, plan: RegionPlan) -> PrintedRegion:
    """The function of that name which computes a region."""
    heavy = any(isinstance(v, Computed) and is_heavy(v.expression) for v in plan.values)
    grain = grain_of(heavy)
    if plan.columns is not None:
        return _print_columns(dialect, name, plan, grain)
    writer = RowLoop(dialect, plan) if plan.row else ElementLoop(dialect, plan)
    text = writer.function(name)
    if plan.row:
        return PrintedRegion(text, plan.n // plan.row, max(1, grain // plan.row))
    return PrintedRegion(text, plan.n, grain)


def _print_columns(dialect: Dialect, name: str, plan: RegionPlan, grain: int) -> PrintedRegion:
    from .columns import ColumnLoop  # which prints with what stands below

    writer = ColumnLoop(dialect, plan)
    columns, cut = writer.columns, writer.cut
    units, unit = cut.units(columns), cut.tile * min(cut.piece, columns.rows)
    if writer.scatters:
        text = writer.first(name) + writer.function(f"{name}_second")
        n = columns.outer * writer.scatters[0].at.n * columns.width
        return PrintedRegion(text, n, GRAIN, (f"{name}_second", units, max(1, grain // unit)))
    text = writer.function(name)
    after = writer.second(f"{name}_second")
    n = columns.outer * columns.width
    second = (f"{name}_second", n, max(1, grain // cut.pieces)) if after else None
    return PrintedRegion(text + after, units, max(1, grain // unit), second, writer.parts()[1])


class Writer:
    """Lines of a function, and how values of the region are written in it."""

    index = "i64"  # the type in which places are counted

    def __init__(self, dialect: Dialect, plan: RegionPlan) -> None:
        self.dialect = dialect
        self.plan = plan
        self.lines: list[str] = []
        self.depth = 1
        self.values = {v.name: v for v in plan.values if not isinstance(v, Scatter)}
        self.computed = {v.name: v for v in plan.values if isinstance(v, Computed)}
        self.inner = plan.axes[-1]
        self.memory = f"{dialect.memory} " if dialect.memory else ""
        self.gathers = bool(gathered_in(plan))

    def function(self, name: str) -> str:
        """The whole definition."""
        self.operands()
        self.body()
        return "\n".join([self.head(name), *self.lines, *self.tail(), "}", ""])

    def head(self, name: str) -> str:
        """The line before the body."""
        return f"{self.dialect.kernel} int {name}(void **args, i64 begin, i64 end) {{"

    def tail(self) -> list[str]:
        """The lines after the body."""
        return ["    return wrong ? 2 : 0;" if self.gathers else "    return 0;"]

    def body(self) -> None:
        raise NotImplementedError

    # ---- text -----------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def open(self, text: str) -> None:
        self.line(text + " {")
        self.depth += 1

    def close(self) -> None:
        self.depth -= 1
        self.line("}")

    def operands(self) -> None:
        """Pointers to the operands that are read, and to the results."""
        for label, a in self.plan.accesses.items():
            self.line(f"const {SUFFIX[a.dtype]} *const {label}_data = args[{a.index}];")
        for k, (_, dtype) in enumerate(self.plan.outputs):
            self.line(f"{SUFFIX[dtype]} *const out{k} = args[{self.plan.n_operands + k}];")
        if self.gathers:
            self.line("int wrong = 0;")

    def offsets(self, axes: Sequence[int], row: str) -> None:
        """A variable with the offset of each access that moves along the outer `axes`, at the place
        `row` in them.
        """
        moving = {
            label: a.steps for label, a in self.plan.accesses.items() if any(a.steps[: len(axes)])
        }
        if not moving:
            return
        for label, steps in list(moving.items()):
            if all(a == b * size for a, b, size in zip(steps, steps[1:], axes[1:])):
                self.line(f"const {self.index} {label}_from = {row} * {steps[len(axes) - 1]};")
                del moving[label]
        if not moving:
            return
        rest = row
        terms: dict[str, list[str]] = {label: [] for label in moving}
        for k in range(len(axes) - 1, -1, -1):
            place = f"{rest} % {axes[k]}" if k else rest
            if axes[k] > 1 and any(steps[k] for steps in moving.values()):
                self.line(f"const {self.index} at{k} = {place};")
                for label, steps in moving.items():
                    if steps[k]:
                        terms[label].append(f"at{k} * {steps[k]}")
            if k:
                self.line(f"const {self.index} rest{k} = {rest} / {axes[k]};")
                rest = f"rest{k}"
        for label, parts in terms.items():
            self.line(f"const {self.index} {label}_from = {' + '.join(reversed(parts))};")

    def start(self, label: str, access: Access) -> str:
        """The pointer to where the current row of an operand begins."""
        n_outer = len(self.plan.axes) - 1
        terms = [f"{label}_data"]
        if any(access.steps[:n_outer]):
            terms.append(f"{label}_from")
        if access.gathered and not self.turns(label):
            terms.append(f"{label}_at * {access.gathered.step}")
        return " + ".join(terms)

    def point(self, label: str, first: str = "") -> None:
        """A variable with the pointer from which the inner loop reads an operand."""
        a = self.plan.accesses[label]
        if a.gathered and not self.turns(label):
            self.locate(label, a.gathered)
        extra = ""
        if first and a.steps[-1]:
            extra = f" + {first}" if a.steps[-1] == 1 else f" + {first} * {a.steps[-1]}"
        text = f"{self.start(label, a)}{extra}"
        self.line(f"{self.memory}const {SUFFIX[a.dtype]} *const {label}_row = {text};")

    def turns(self, label: str) -> bool:
        """Whether the inner loop reads a gathered operand through another index in each turn."""
        g = self.plan.accesses[label].gathered
        return g is not None and self.plan.accesses[g.label].steps[-1] != 0

    def moves(self, label: str) -> bool:
        """Whether the inner loop reads another element of the operand in each turn."""
        return self.plan.accesses[label].steps[-1] != 0 or self.turns(label)

    def stays(self, label: str) -> bool:
        """Whether all of the loop nest reads one element of the operand."""
        a = self.plan.accesses[label]
        return not any(a.steps) and not (
            a.gathered and any(self.plan.accesses[a.gathered.label].steps)
        )

    def locate(self, label: str, g: Gathered) -> None:
        """A variable with the index of a gathered operand, counted from 0; that of a wrong one is
        0.
        """
        self.count(label, g)
        self.line(f"const i64 {label}_at = (u64){label}_counted < {g.n} ? {label}_counted : 0;")

    def count(self, label: str, g: Gathered) -> None:
        """A variable with an index, counted from 0; when that is wrong, it is said."""
        signed = f"{g.label} < 0 ? (i64){g.label} + {g.n} : (i64){g.label}"
        self.line(f"const i64 {label}_counted = {signed};")
        self.wrong(label, g)

    def wrong(self, label: str, g: Gathered) -> None:
        """The line that says of an index whether it is wrong."""
        self.line(f"wrong |= (u64){label}_counted >= {g.n};  /* {g.op} along axis {g.axis} */")

    def hoist(self, accesses: Iterable[str]) -> None:
        """Values of operands that stay the same in the inner loop."""
        for label in accesses:
            a = self.plan.accesses[label]
            if a.gathered:
                self.locate(label, a.gathered)
            text = self.dialect.load(a.dtype, f"*({self.start(label, a)})")
            self.line(f"const {SUFFIX[compute_dtype(a.dtype)]} {label} = {text};")

    def load(self, label: str, at: str) -> None:
        """The element of a moving operand at place `at` of the inner loop."""
        a = self.plan.accesses[label]
        step = a.steps[-1]
        index = at if step == 1 else f"{at} * {step}"
        if a.gathered and self.turns(label):
            self.locate(label, a.gathered)
            place = f"{label}_at * {a.gathered.step}" if a.gathered.step != 1 else f"{label}_at"
            index = f"{index} + {place}" if step else place
        text = self.dialect.load(a.dtype, f"{label}_row[{index}]")
        self.line(f"const {SUFFIX[compute_dtype(a.dtype)]} {label} = {text};")

    def define(self, value: Computed) -> None:
        """The line of one value."""
        if value.expression.op == "input" and str(value.expression.value) == value.name:
            return
        lines, text = print_expression(self.dialect, value.expression, f"{value.name}_")
        for line in lines:
            self.line(line)
        place = place_of(value.node)
        self.line(f"const {SUFFIX[compute_dtype(value.dtype)]} {value.name} = {text};{place}")

    def flags(self, used: Iterable[str]) -> list[str]:
        """Variables into which the inner loop or-s whether something is wrong."""
        return ["wrong"] if any(self.turns(x) for x in used) else []

    # ---- what is needed --------------------------------------------------------------------------

    def closure(self, targets: Iterable[str], known: set[str]) -> list[Computed]:
        """The values to compute for `targets`, in order, when `known` ones are there."""
        needed: set[str] = set()
        queue = [t for t in targets if t not in known]
        while queue:
            name = queue.pop()
            if name in needed:
                continue
            needed.add(name)
            value = self.values[name]
            if isinstance(value, Computed):
                queue += [u for u in value.uses if u not in known]
        return [v for v in self.computed.values() if v.name in needed]

    def read_by(self, values: Iterable[Computed]) -> list[str]:
        """Labels of the operands in the expressions of these values, in order."""
        found: dict[str, None] = {}
        for v in values:
            for label in _inputs(v.expression):
                access = self.plan.accesses.get(label)
                if access is not None and access.gathered is not None:
                    found[access.gathered.label] = None
                if access is not None:
                    found[label] = None
        return list(found)


class ElementLoop(Writer):
    """A region without reductions: one loop over elements, within rows when an operand is spread."""

    def body(self) -> None:
        names = [name for name, _ in self.plan.outputs]
        values = self.closure(names, set())
        labels = self.read_by(values)
        still = [x for x in labels if self.stays(x)]
        static = [x for x in labels if x not in still and not self.moves(x)]
        moving = [x for x in labels if self.moves(x)]
        self.hoist(still)
        outputs = self.plan.outputs
        largest = max(self.plan.n * dtype.itemsize for _, dtype in outputs)
        fetches = bool(self.dialect.fetch) and largest >= FETCH_BYTES
        streams = bool(self.dialect.stream) and largest >= STREAM_BYTES
        if len(self.plan.axes) == 1 and not fetches and not streams:
            for x in moving:
                self.point(x)
            self.loop(
                "i", "begin", "end", moving, values, [f"out{k}[i]" for k in range(len(names))]
            )
            return
        targets = [f"out{k}[i + j]" for k in range(len(names))]
        size = HEAVY_BLOCK if streams and any(is_heavy(v.expression) for v in values) else BLOCK
        if streams:
            targets = [f"block{k}[j]" for k in range(len(names))]
            for k, (_, dtype) in enumerate(outputs):
                self.line(f"{SUFFIX[dtype]} block{k}[{size}] __attribute__((aligned(64)));")
        self.open("for (i64 i = begin; i < end;)")
        self.line(f"const i64 row = i / {self.inner}, first = i - row * {self.inner};")
        self.line(f"i64 count = {self.inner} - first;")
        self.line("if (count > end - i) count = end - i;")
        if fetches or streams:
            self.line(f"if (count > {size}) count = {size};")
        self.offsets(self.plan.axes[:-1], "row")
        self.hoist(static)
        for x in moving:
            a = self.plan.accesses[x]
            self.point(x, "first")
            if (
                fetches
                and a.steps[-1] == 1
                and a.steps[-2:-1] in ((), (self.inner,))
                and not a.gathered
            ):
                self.line(f"{self.dialect.fetch}({x}_row + {size}, count * {a.dtype.itemsize});")
        self.loop("j", "0", "count", moving, values, targets)
        if streams:
            for k, (_, dtype) in enumerate(outputs):
                self.line(f"{self.dialect.stream}(out{k} + i, block{k}, count * {dtype.itemsize});")
        self.line("i += count;")
        self.close()

    def loop(
        self,
        j: str,
        begin: str,
        end: str,
        moving: list[str],
        values: list[Computed],
        targets: list[str],
    ) -> None:
        """The loop over elements begin .. end; each result goes to its target."""
        self.line(self.dialect.independent)
        self.open(f"for (i64 {j} = {begin}; {j} < {end}; {j}++)")
        for x in moving:
            self.load(x, j)
        for v in values:
            self.define(v)
        for k, (name, dtype) in enumerate(self.plan.outputs):
            self.line(f"{targets[k]} = {self.dialect.store(dtype, name)};")
        self.close()


class RowLoop(Writer):
    """A region with reductions: each row is walked once for each pass."""

    def __init__(self, dialect: Dialect, plan: RegionPlan) -> None:
        super().__init__(dialect, plan)
        self.rows = plan.n // plan.row
        self.inner_values = {v.name for v in plan.values if isinstance(v, Computed) and not v.row}
        # The targets of each pass: results that it can write, and sources of its reductions.
        self.targets: list[list[str]] = [[] for _ in range(plan.stages + 1)]
        for name, _ in plan.outputs:
            if name in self.inner_values:
                self.targets[self.values[name].stage].append(name)
        for v in plan.values:
            if isinstance(v, Reduction):
                self.targets[v.stage - 1].append(v.source)
        self.kept = self.to_keep()

    def to_keep(self) -> set[str]:
        """Values that two passes need and that cost more than a load: kept in a row on the stack."""
        passes: dict[str, int] = {}
        for targets in self.targets:
            for v in self.closure(targets, set()):
                if v.name in self.inner_values:
                    passes[v.name] = passes.get(v.name, 0) + 1
        found: set[str] = set()
        room = ROW_BYTES
        for name, value in self.computed.items():
            if passes.get(name, 0) > 1 and is_heavy(value.expression):
                room -= compute_dtype(value.dtype).itemsize * self.plan.row
                if room >= 0:
                    found.add(name)
        return found

    def body(self) -> None:
        row = self.plan.row
        for name in sorted(self.kept):
            self.line(f"{SUFFIX[compute_dtype(self.values[name].dtype)]} {name}_kept[{row}];")
        self.open("for (i64 row = begin; row < end; row++)")
        self.passes(self.start_row())
        for k, (name, dtype) in enumerate(self.plan.outputs):
            if name not in self.inner_values:
                self.line(f"out{k}[row] = {self.dialect.store(dtype, name)};")
        self.close()

    def start_row(self) -> list[str]:
        """Lines with the pointers to a row; labels of the operands that move along it."""
        row = self.plan.row
        self.offsets(self.plan.axes[:-1], "row")
        labels = self.read_by(self.computed.values())
        moving = [x for x in labels if self.moves(x)]
        self.hoist(x for x in labels if x not in moving)
        for x in moving:
            self.point(x)
        for k, (name, dtype) in enumerate(self.plan.outputs):
            if name in self.inner_values:
                self.line(f"{self.memory}{SUFFIX[dtype]} *const out{k}_row = out{k} + row * {row};")
        return moving

    def passes(self, moving: list[str]) -> None:
        """All passes over a row, each after the row values that it needs."""
        known: set[str] = set()
        for stage, targets in enumerate(self.targets):
            for row_value in self.computed.values():
                if row_value.row and row_value.stage == stage:
                    self.define(row_value)
                    known.add(row_value.name)
            if targets:
                self.walk(stage, targets, known, moving)

    def walk(self, stage: int, targets: list[str], known: set[str], moving: list[str]) -> None:
        """One pass over the row: its loop, and what its reductions are started and finished with."""
        sums = [v for v in self.plan.values if isinstance(v, Reduction) and v.stage == stage + 1]
        loads_kept = {n for n in self.kept if self.values[n].stage < stage}
        values = self.closure(targets, known | loads_kept)
        for v in sums:
            acc = compute_dtype(v.dtype)
            begin = constant(0, acc) if v.kind == "+" else least_of(acc)
            _, text = print_expression(self.dialect, begin)
            self.line(f"{SUFFIX[acc]} {v.name} = {text};")
            if v.kind == "max" and acc.is_floating:
                self.line(f"int {v.name}_nan = 0;")
        used = set(self.read_by(values))
        plus, greatest, bits = _accumulators(sums)
        bits += self.flags(used)
        self.line(
            self.dialect.reduction(plus, greatest, bits) if sums else self.dialect.independent
        )
        self.open(f"for (i64 j = 0; j < {self.plan.row}; j++)")
        for x in moving:
            if x in used:
                self.load(x, "j")
        wanted = {u for v in values for u in v.uses} | set(targets)
        for name in sorted(loads_kept & wanted):
            self.line(
                f"const {SUFFIX[compute_dtype(self.values[name].dtype)]} {name} = {name}_kept[j];"
            )
        for value in values:
            self.define(value)
            if value.name in self.kept and value.stage == stage:
                self.line(f"{value.name}_kept[j] = {value.name};")
        for k, (name, dtype) in enumerate(self.plan.outputs):
            if name in self.inner_values and self.values[name].stage == stage:
                self.line(f"out{k}_row[j] = {self.dialect.store(dtype, name)};")
        for v in sums:
            self.accumulate(v)
        self.close()
        for v in sums:
            if v.kind == "max" and compute_dtype(v.dtype).is_floating:
                _, nan = print_expression(self.dialect, constant(math.nan, compute_dtype(v.dtype)))
                self.line(f"{v.name} = {v.name}_nan ? {nan} : {v.name};")
            known.add(v.name)

    def accumulate(self, v: Reduction) -> None:
        source = self.values[v.source]
        acc = compute_dtype(v.dtype)
        element = Expr("input", compute_dtype(source.dtype), (), v.source)
        _, text = print_expression(self.dialect, s.cast(element, acc))
        if v.kind == "+":
            self.line(self.dialect.accumulate(v.name, text) + place_of(v.node))
            return
        self.line(f"{v.name} = {text} > {v.name} ? {text} : {v.name};{place_of(v.node)}")
        if acc.is_floating:
            self.line(f"{v.name}_nan |= {text} != {text};")


def _accumulators(sums: Sequence[Reduction]) -> tuple[list[str], list[str], list[str]]:
    """Names of the variables that a loop adds to, takes the greatest of, and joins bits of."""
    plus = [v.name for v in sums if v.kind == "+"]
    greatest = [v.name for v in sums if v.kind == "max"]
    bits = [f"{v.name}_nan" for v in sums if v.kind == "max" and v.dtype.is_floating]
    return plus, greatest, bits


def least_of(dtype: DType) -> Expr:
    """What every element is at least."""
    if dtype.is_floating:
        return constant(-math.inf, dtype)
    bits = 8 * dtype.itemsize
    return constant(-(2 ** (bits - 1)) if dtype.kind == "i" else 0, dtype)


def _inputs(e: Expr) -> list[str]:
    if e.op == "input":
        return [str(e.value)]
    return [name for a in e.args for name in _inputs(a)]


def place_of(node: Any) -> str:
    """A comment with the place in the user's source."""
    span = node.span
    if span is None:
        return ""
    name = os.path.basename(span.file).replace("*/", "")
    return f"  /* {name}:{span.line} */"
