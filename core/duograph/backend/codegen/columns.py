"""Prints regions that end in reductions over other axes than the last: rows are added up one after
the other.

So are regions that end in scatters: a unit of work is a tile of all rows then, which go where the
indices say in their order. What the result begins as is written before.

The rows of a block of the columns (`region_plan.Columns`) are cut into pieces, and a row into tiles
that stay in the nearest cache. A unit of work is a piece of a tile and has sums of its own, which a
second function adds up in their order. How it is cut follows from sizes alone, so the bits are the
same on any number of threads.
"""

from __future__ import annotations

from ...ir.loops import Columns
from .dialect import SUFFIX, Dialect
from .expression import Expr, compute_dtype, constant, s
from .loops import FETCH_BYTES, STREAM_BYTES, Writer, least_of, place_of
from .printer import print_expression
from .region_plan import Computed, Reduction, RegionPlan, Scatter

__all__ = ["ColumnLoop", "Cut"]

# Columns that are summed side by side, elements that go into one sum of each, and the least number
# of rows of a piece.
TILE, PIECE, LEAST_ROWS = 512, 32768, 64
# Columns of a tile whose rows go where indices say: narrow, since all rows of a tile are one unit
# of work.
SCATTER_TILE = 128


class Cut:
    """How columns are cut into units of work.

    Attributes:
        tile, tiles: columns of a tile, and how many there are in a row.
        piece, pieces: rows of a piece, and how many there are in a block.
    """

    def __init__(self, columns: Columns, scatters: bool) -> None:
        self.tiles = -(-columns.width // (SCATTER_TILE if scatters else TILE))
        self.tile = -(-columns.width // self.tiles)
        self.piece = columns.rows if scatters else max(LEAST_ROWS, PIECE // self.tile)
        self.pieces = -(-columns.rows // self.piece)

    def units(self, columns: Columns) -> int:
        """How many units of work there are."""
        return columns.outer * self.pieces * self.tiles


class ColumnLoop(Writer):
    """A region with columns: the function that adds up the rows of a piece."""

    def __init__(self, dialect: Dialect, plan: RegionPlan) -> None:
        super().__init__(dialect, plan)
        assert plan.columns is not None
        self.columns = plan.columns
        self.scatters = [v for v in plan.values if isinstance(v, Scatter)]
        self.cut = Cut(plan.columns, bool(self.scatters))
        self.sums = [v for v in plan.values if isinstance(v, Reduction)]
        self.results = {name: k for k, (name, _) in enumerate(plan.outputs)}
        self.inner_results = [
            (k, name, dtype)
            for k, (name, dtype) in enumerate(plan.outputs)
            if name in self.computed
        ]

    def parts(self) -> tuple[list[int], int]:
        """Where in the memory between both stages the sums of each result begin, and the bytes of
        all of them.
        """
        if self.cut.pieces == 1:
            return [], 0
        count = self.columns.outer * self.cut.pieces * self.columns.width
        places, total = [], 0
        for v in self.sums:
            places.append(total)
            total += -(-count * compute_dtype(v.dtype).itemsize // 64) * 64
        return places, total

    def operands(self) -> None:
        """Pointers; sums between both stages come after the results."""
        super().operands()
        last = self.plan.n_operands + len(self.plan.outputs)
        for v, at in zip(self.sums, self.parts()[0]):
            self.line(
                f"{self.accumulator(v)} *const {v.name}_parts = (void *)((u8 *)args[{last}] + {at});"
            )

    def accumulator(self, v: Reduction) -> str:
        """The type in which a sum is kept."""
        return SUFFIX[compute_dtype(v.dtype)]

    def body(self) -> None:
        cut, (_, rows, width) = self.cut, self.columns
        values = self.wanted()
        labels = [*self.read_by(values), *(v.at.label for v in self.scatters)]
        labels = list(dict.fromkeys(labels))
        still = [x for x in labels if self.stays(x)]
        moving = [x for x in labels if self.moves(x)]
        self.hoist(still)
        size = max((dtype.itemsize for _, _, dtype in self.inner_results), default=0)
        streams = bool(self.dialect.stream) and self.plan.n * size >= STREAM_BYTES
        fetches = bool(self.dialect.fetch) and 4 * self.plan.n >= FETCH_BYTES
        for k, _, dtype in self.inner_results if streams else ():
            self.line(f"{SUFFIX[dtype]} block{k}[{cut.tile}] __attribute__((aligned(64)));")
        self.open("for (i64 unit = begin; unit < end; unit++)")
        comment = f"  /* {cut.pieces} of {cut.piece} rows in each block */"
        if cut.tiles == 1:
            self.line(f"const i64 first = 0, count = {width}, piece = unit;{comment}")
        else:
            self.line(
                f"const i64 first = unit % {cut.tiles} * {cut.tile}, piece = unit / {cut.tiles};{comment}"
            )
            self.line(
                f"const i64 count = {width} - first < {cut.tile} ? {width} - first : {cut.tile};"
            )
        if cut.pieces == 1:
            self.line(f"const i64 top = piece * {rows}, bottom = top + {rows};")
        else:
            self.line(
                f"const i64 top = piece / {cut.pieces} * {rows} + piece % {cut.pieces} * {cut.piece};"
            )
            self.line(f"const i64 last = (piece / {cut.pieces} + 1) * {rows};")
            self.line(f"const i64 bottom = last - top < {cut.piece} ? last : top + {cut.piece};")
        for v in self.sums:
            self.line(f"{self.accumulator(v)} {v.name}[{cut.tile}];")
            self.line(f"for (i64 j = 0; j < count; j++) {v.name}[j] = {self.begin(v)};")
        self.open("for (i64 row = top; row < bottom; row++)")
        self.offsets(self.plan.axes[:-1], "row")
        self.hoist(x for x in labels if x not in moving and x not in still)
        for x in moving:
            self.point(x, "first")
            a = self.plan.accesses[x]
            if fetches and a.steps[-1] == 1 and a.steps[-2:-1] == (width,) and not a.gathered:
                self.line(f"{self.dialect.fetch}({x}_row + {width}, count * {a.dtype.itemsize});")
        for end in self.scatters:
            self.aim(end)
        for k, _, dtype in self.inner_results:
            self.line(
                f"{self.memory}{SUFFIX[dtype]} *const out{k}_row = out{k} + row * {width} + first;"
            )
        self.line(self.dialect.independent)
        self.open("for (i64 j = 0; j < count; j++)")
        for x in moving:
            self.load(x, "j")
        for value in values:
            self.define(value)
        for k, name, dtype in self.inner_results:
            target = f"block{k}[j]" if streams else f"out{k}_row[j]"
            self.line(f"{target} = {self.dialect.store(dtype, name)};")
        for v in self.sums:
            self.line(self.take(v, f"{v.name}[j]", self.source(v)) + place_of(v.node))
        for end in self.scatters:
            self.line(self.put(end))
        self.close()
        for k, _, dtype in self.inner_results if streams else ():
            self.line(f"{self.dialect.stream}(out{k}_row, block{k}, count * {dtype.itemsize});")
        self.close()
        for v in self.sums:
            self.line(f"for (i64 j = 0; j < count; j++) {self.target(v)} = {self.value(v)};")
        self.close()

    def wanted(self) -> list[Computed]:
        """The values that all ends and results of the region need."""
        ends = [*(v.source for v in self.sums), *(v.source for v in self.scatters)]
        return self.closure([*ends, *(name for _, name, _ in self.inner_results)], set())

    def first(self, name: str) -> str:
        """The function that gives elements begin .. end of a scatter's result what they begin as."""
        lines = [f"{self.dialect.kernel} int {name}(void **args, i64 begin, i64 end) {{"]
        for v in self.scatters:
            type_, k = SUFFIX[v.dtype], self.plan.n_operands + self.results[v.name]
            if isinstance(v.begin, int):
                text = f"((const {type_} *)args[{v.begin}])[i]"
            else:
                text = self.dialect.store(v.dtype, print_expression(self.dialect, v.begin)[1])
            lines.append(
                f"    for (i64 i = begin; i < end; i++) (({type_} *)args[{k}])[i] = {text};"
            )
        return "\n".join([*lines, "    return 0;", "}", ""])

    def aim(self, v: Scatter) -> None:
        """Lines that name the row of a scatter's result which a row goes to; a wrong index has
        none.
        """
        self.count(v.name, v.at)
        self.line(f"if ((u64){v.name}_counted >= {v.at.n}) continue;")
        place = f"(piece * {v.at.n} + {v.name}_counted) * {self.columns.width} + first"
        self.line(
            f"{self.memory}{SUFFIX[v.dtype]} *const {v.name}_row = out{self.results[v.name]} + {place};"
        )

    def put(self, v: Scatter) -> str:
        """The line that adds a value to an element of the result, or puts it there."""
        element = Expr("input", compute_dtype(v.dtype), (), v.source)
        if v.kind == "=":
            return f"{v.name}_row[j] = {self.dialect.store(v.dtype, v.source)};{place_of(v.node)}"
        before = self.dialect.load(v.dtype, f"{v.name}_row[j]")
        there = Expr("input", compute_dtype(v.dtype), (), before)
        total = Expr("|" if v.dtype.kind == "b" else "+", compute_dtype(v.dtype), (there, element))
        text = print_expression(self.dialect, total)[1]
        return f"{v.name}_row[j] = {self.dialect.store(v.dtype, text)};{place_of(v.node)}"

    def source(self, v: Reduction) -> str:
        """The text of an element, in the dtype of the sum."""
        element = Expr("input", compute_dtype(self.values[v.source].dtype), (), v.source)
        return print_expression(self.dialect, s.cast(element, compute_dtype(v.dtype)))[1]

    def begin(self, v: Reduction) -> str:
        """The text of what changes nothing."""
        acc = compute_dtype(v.dtype)
        return print_expression(self.dialect, constant(0, acc) if v.kind == "+" else least_of(acc))[
            1
        ]

    def take(self, v: Reduction, sum_: str, text: str) -> str:
        """The line that takes a value into a sum, or into the greatest value."""
        if v.kind == "+":
            return f"{sum_} += {text};"
        nan = f" | ({text} != {text})" if compute_dtype(v.dtype).is_floating else ""
        return f"{sum_} = ({text} > {sum_}){nan} ? {text} : {sum_};"

    def target(self, v: Reduction) -> str:
        """Where the sum of column first + j goes."""
        if self.cut.pieces > 1:
            return f"{v.name}_parts[piece * {self.columns.width} + first + j]"
        return f"out{self.results[v.name]}[piece * {self.columns.width} + first + j]"

    def value(self, v: Reduction) -> str:
        """What goes there."""
        return (
            f"{v.name}[j]" if self.cut.pieces > 1 else self.dialect.store(v.dtype, f"{v.name}[j]")
        )

    def second(self, name: str) -> str:
        """The function that adds up the pieces of columns begin .. end; empty when there is one
        piece.
        """
        places, _ = self.parts()
        if not places:
            return ""
        width, pieces = self.columns.width, self.cut.pieces
        last = self.plan.n_operands + len(self.plan.outputs)
        lines = [f"{self.dialect.kernel} int {name}(void **args, i64 begin, i64 end) {{"]
        for v, at in zip(self.sums, places):
            k, acc = self.results[v.name], self.accumulator(v)
            lines += [
                f"    const {acc} *const {v.name}_parts = (const void *)((const u8 *)args[{last}] + {at});",
                f"    {SUFFIX[v.dtype]} *const out{k} = args[{self.plan.n_operands + k}];",
                "    for (i64 i = begin; i < end; i++) {",
                f"        const {acc} *const part = {v.name}_parts + i / {width} * {pieces * width} + i % {width};",
                f"        {acc} all = part[0];",
                f"        for (i64 p = 1; p < {pieces}; p++) {{ {self.take(v, 'all', f'part[p * {width}]')} }}",
                f"        out{k}[i] = {self.dialect.store(v.dtype, 'all')};",
                "    }",
            ]
        return "\n".join([*lines, "    return 0;", "}", ""])
