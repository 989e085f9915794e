"""Schedules fused regions that end in reductions over leading axes (column sums) or in scatters.

The region's elements are seen as (outer, rows, width) (`ir.loops.Columns`): a sum over the axis
`rows` adds whole rows of `width` adjacent elements. Work is divided twice: each row is cut into
*tiles* of columns that stay in the L1 cache, and the rows are cut into *pieces* (runs of rows). A
unit of work is one tile of one piece. Each piece writes partial results, which a second kernel
combines in a fixed order. The division depends only on sizes, so results are equal bit for bit on
any number of threads.

For a scatter, a unit of work is one tile of all rows. It visits the rows in order and updates the
result rows that the indices name. Another kernel initialises the result first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ...ir.loops import Columns
from .dialect import SUFFIX
from .loop_program import (
    Address,
    Array,
    Assign,
    Combine,
    Exit,
    For,
    Index,
    Let,
    Load,
    Locate,
    LoopProgram,
    NewPack,
    Order,
    Partial,
    Pointer,
    Position,
    Prefetch,
    ReadPack,
    Statement,
    Store,
    Stream,
    Take,
    Work,
    WritePack,
    least,
    name,
    number,
)
from .packs import pack_width
from .region_plan import Reduction, RegionPlan, Scatter
from .scheduling import FETCH_BYTES, STREAM_BYTES, Scheduler, Target, array_of

__all__ = ["column_program", "scatters_of"]

# TILE: columns of a tile, whose sums are computed side by side. PIECE: elements of a piece, a range
# of rows of a tile that is one unit of work. LEAST_ROWS: the fewest rows of a piece. SCATTER_TILE:
# columns of a tile of scatters, which is narrow because all of its rows are one unit of work.
TILE, PIECE, LEAST_ROWS, SCATTER_TILE = 512, 32768, 64, 128


@dataclasses.dataclass(frozen=True)
class Cut:
    """How a column reduction is divided into units of work: tiles of columns times pieces of rows.

    Attributes:
        tile: number of columns in a tile.
        tiles: number of tiles in a row.
        piece: number of rows in a piece.
        pieces: number of pieces that the reduced rows are divided into.
    """

    tile: int
    tiles: int
    piece: int
    pieces: int


def cut_of(target: Target, columns: Columns, scatters: bool, pack: int = 1) -> Cut:
    """Return into how many tiles of columns and pieces of rows a column reduction is divided.

    Args:
        target: the device. `Target.split`, if present, decides the number of pieces.
        columns: (outer, rows, width) of the reduced elements.
        scatters: whether the region ends in scatters; tiles are then narrow and rows are not
            divided.
        pack: adjacent columns that one GPU work item reduces.
    """
    outer, rows, width = columns
    tiles = -(-width // (SCATTER_TILE if scatters else TILE))
    tile = -(-width // tiles)
    piece = rows if scatters else max(LEAST_ROWS, PIECE // tile)
    if target.split is not None:
        piece = -(-rows // target.split(outer, rows, width // pack))
    return Cut(tile, tiles, piece, -(-rows // piece))


def scatters_of(plan: RegionPlan) -> list[Scatter]:
    """Return the scatter ops at the end of a fused region."""
    return [v for v in plan.values if isinstance(v, Scatter)]


def column_program(target: Target, plan: RegionPlan) -> LoopProgram:
    """Return the loop program of a fused region that ends in column reductions or in scatters."""
    return _Columns(target, plan).made()


class _Columns(Scheduler):
    """Builds the loop program of a fused region that ends in column reductions or in scatters.

    Column reductions reduce the axis `rows` of elements seen as (outer, rows, width). For a
    reduction and for a scatter, a unit of work visits rows in order and handles some adjacent
    columns of each row.
    """

    def __init__(self, target: Target, plan: RegionPlan) -> None:
        super().__init__(target, plan)
        assert plan.columns is not None
        self.columns = plan.columns
        self.scatters = scatters_of(plan)
        self.sums = [v for v in plan.values if isinstance(v, Reduction)]
        self.results = {result: k for k, (result, _) in enumerate(plan.outputs)}
        self.inner_results = [
            (k, result, dtype)
            for k, (result, dtype) in enumerate(plan.outputs)
            if result in self.computed
        ]
        ends = [*(v.source for v in self.sums), *(v.source for v in self.scatters)]
        self.needed = self.closure([*ends, *(r for _, r, _ in self.inner_results)], set())
        labels = [*self.read_by(self.needed), *(v.at.label for v in self.scatters)]
        self.labels = list(dict.fromkeys(labels))
        self.moving = [x for x in self.labels if self.moves(x)]
        self.pack = 1 if target.spans else self.pack_of_columns()
        self.cut = cut_of(target, plan.columns, bool(self.scatters), self.pack)

    def pack_of_columns(self) -> int:
        """Return how many adjacent columns a GPU work item reduces."""
        dense = [x for x in self.moving if self.is_pack(x, 1)]
        sizes = [self.plan.accesses[x].dtype.itemsize for x in dense]
        sizes += [dtype.itemsize for _, _, dtype in self.inner_results]
        # at most four: a work item has an accumulator for each, and many rows must be in flight
        return pack_width([max(size, 4) for size in sizes or [4]], self.columns.width, False)

    def made(self) -> LoopProgram:
        """Return the loop program, with memory for partial results if there are several pieces."""
        (outer, rows, width), cut = self.columns, self.cut
        if self.target.split is None:
            units, unit = outer * cut.pieces * cut.tiles, cut.tile * min(cut.piece, rows)
            made = self.program(Work.SPAN, units, unit, self.span())
        else:
            items = outer * cut.pieces * (width // self.pack)
            made = self.program(Work.ITEM, items, self.pack, self.item())
        if cut.pieces == 1:
            return made
        count = outer * cut.pieces * width
        partials = tuple([Partial(v.name, self.combine(v).dtype, count) for v in self.sums])
        return dataclasses.replace(made, partials=partials)

    def combine(self, v: Reduction) -> Combine:
        """Return the object that emits source to combine two values of reduction `v`."""
        return self.target.combine(v.kind, v.dtype)

    def rows(self) -> list[Statement]:
        """Return statements that define `top` and `bottom`, the range of rows of a unit of work.

        `bottom` is one past the last row. The statements read the variable `piece`, the number of
        the piece of rows.
        """
        rows, cut, piece = self.columns.rows, self.cut, name("piece")
        top, last = name("top"), name("last")
        first = piece // cut.pieces * rows + piece % cut.pieces * cut.piece
        end = Index("?", (last - top < number(cut.piece), last, top + cut.piece))
        return [
            self.let("top", first),
            self.let("last", (piece // cut.pieces + 1) * rows),
            self.let("bottom", end),
        ]

    # ---- adjacent columns of a piece for each work item ------------------------------------------

    def item(self) -> list[Statement]:
        """Return the body of the kernel for a GPU: each work item reduces adjacent columns."""
        (outer, _, width), cut, pack = self.columns, self.cut, self.pack
        at, piece, row, j, e = (name(x) for x in ("at", "piece", "row", "j", "e"))
        packs = width // pack
        columns = (("piece", at // packs), ("j", (at - piece * packs) * pack))
        body: list[Statement] = [
            Position(self.index, "at", "item"),
            Exit(at >= outer * cut.pieces * packs, "return"),
            Let(self.index, columns),
            *self.rows(),
        ]
        for v in self.sums:
            body.append(Array(SUFFIX[self.combine(v).dtype], v.name, number(pack)))
        starts = [Assign(v.name, e, self.combine(v).start, None) for v in self.sums]
        body.append(self.each(starts))
        loop = [*self.offsets(row), *self.hoist(x for x in self.labels if x not in self.moving)]
        loads: list[Statement] = []
        for x in self.moving:
            loop += self.point(x)
            if pack > 1 and self.is_pack(x, pack):
                dtype = self.plan.accesses[x].dtype
                loop.append(ReadPack(f"{x}_pack", dtype, pack, Address(f"{x}_row", (j,))))
                loads.append(Load(x, dtype, Address(f"{x}_pack.v"), e))
            else:
                loads += self.load(x, j + e)
        loop += [NewPack(f"made{k}", dtype, pack) for k, _, dtype in self.inner_results]
        inner = [*loads, *(s for value in self.needed for s in self.define(value))]
        inner += [Store(f"made{k}.v", e, dtype, v) for k, v, dtype in self.inner_results]
        inner += [self.take(v, f"{v.name}[e]") for v in self.sums]
        loop.append(self.each(inner))
        for k, _, dtype in self.inner_results:
            target = Address(f"out{k}", (row * width, j))
            loop.append(WritePack(target, dtype, pack, f"made{k}"))
        body.append(For("row", name("top"), name("bottom"), loop, type=self.index))
        ends = [self.finished(v, piece * width + j + e, f"{v.name}[e]") for v in self.sums]
        return [*body, self.each(ends)]

    def each(self, body: Sequence[Statement]) -> For:
        """Return an unrolled loop that runs `body` for each column ``e`` of one work item."""
        return For("e", number(0), number(self.pack), body, Order.UNROLLED, "i32")

    def take(self, v: Reduction, target: str) -> Take:
        """Return the statement that combines the current element into the accumulator `target`.

        `v` is the reduction to which the accumulator belongs.
        """
        return Take(self.combine(v), target, v.source, self.values[v.source].dtype, v.node)

    def finished(self, v: Reduction, at: Index, value: str) -> Assign:
        """Return the statement that stores an accumulator's value after the last of its rows.

        If the rows are divided into several pieces, it stores the value as element `at` of the
        memory for partial results; otherwise as element `at` of the region's result, rounded to the
        result's dtype. `v` is the accumulator's reduction, `value` the source of its value.
        """
        if self.cut.pieces > 1:
            return Assign(f"{v.name}_parts", at, value, None)
        rounded = v.dtype if v.dtype is not self.combine(v).dtype else None
        return Assign(f"out{self.results[v.name]}", at, value, rounded)

    # ---- a span of units for each work item ------------------------------------------------------

    def span(self) -> list[Statement]:
        """Return the body of the kernel for a CPU, which computes a range of units of work."""
        width, n = self.columns.width, self.plan.n
        invariant = [x for x in self.labels if self.is_invariant(x)]
        size = max((dtype.itemsize for _, _, dtype in self.inner_results), default=0)
        streams = self.target.streams and n * size >= STREAM_BYTES
        body = self.hoist(invariant)
        blocks = self.inner_results if streams else []
        body += [array_of(f"block{k}", dtype, self.cut.tile) for k, _, dtype in blocks]
        j, count = name("j"), name("count")
        unit = self.unit()
        for v in self.sums:
            c = self.combine(v)
            unit.append(Array(SUFFIX[c.dtype], v.name, number(self.cut.tile)))
            start = Assign(v.name, j, c.start, None)
            unit.append(For("j", number(0), count, [start], compact=True))
        row = [*self.pointers(invariant), self.columns_loop(streams)]
        for k, _, dtype in blocks:
            row.append(Stream(Address(f"out{k}_row"), f"block{k}", dtype.itemsize))
        unit.append(For("row", name("top"), name("bottom"), row))
        for v in self.sums:
            at = name("piece") * width + name("first") + j
            stored = self.finished(v, at, f"{v.name}[j]")
            unit.append(For("j", number(0), count, [stored], compact=True))
        return [*body, For("unit", name("begin"), name("end"), unit)]

    def unit(self) -> list[Statement]:
        """Return statements that define the columns and rows of the unit of work ``unit``.

        They are columns ``first`` to ``first + count - 1`` and rows ``top`` to ``bottom - 1``.
        """
        (_, rows, width), cut, unit = self.columns, self.cut, name("unit")
        if cut.tiles == 1:
            values = (("first", number(0)), ("count", number(width)), ("piece", unit))
            found: list[Statement] = [Let("i64", values)]
        else:
            first = unit % cut.tiles * cut.tile
            found = [Let("i64", (("first", first), ("piece", unit // cut.tiles)))]
            left = number(width) - name("first")
            found.append(Let("i64", (("count", least(left, number(cut.tile))),)))
        if cut.pieces > 1:
            return [*found, *self.rows()]
        top = name("piece") * rows
        return [*found, Let("i64", (("top", top), ("bottom", name("top") + rows)))]

    def pointers(self, invariant: list[str]) -> list[Statement]:
        """Return statements that define a pointer to the current row of each operand and result.

        They also load operands that are constant along the row, prefetch the next row of large
        operands, and find the result row that each scatter updates. `invariant` are the labels of
        operands that are already loaded.
        """
        width, row, first = self.columns.width, name("row"), name("first")
        fetches = self.target.prefetches and 4 * self.plan.n >= FETCH_BYTES
        fixed = [x for x in self.labels if x not in self.moving and x not in invariant]
        found = [*self.offsets(row), *self.hoist(fixed)]
        for x in self.moving:
            found += self.point(x, "first")
            a = self.plan.accesses[x]
            if fetches and a.strides[-1] == 1 and a.strides[-2:-1] == (width,) and not a.gathered:
                found.append(Prefetch(Address(f"{x}_row", (number(width),)), a.dtype.itemsize))
        for v in self.scatters:
            target = f"out{self.results[v.name]}"
            counted = (name("piece") * v.at.n + name(f"{v.name}_counted")) * width
            address = Address(target, (counted, first))
            found += [
                Locate(v.name, v.at, skips=True),
                Pointer(f"{v.name}_row", v.dtype, address, writable=True),
            ]
        for k, _, dtype in self.inner_results:
            address = Address(f"out{k}", (row * width, first))
            found.append(Pointer(f"out{k}_row", dtype, address, writable=True))
        return found

    def columns_loop(self, streams: bool) -> For:
        """Return the loop over ``j`` that computes the columns of one row and accumulates them.

        If `streams` is true, results are stored in a local block, which is later written to memory,
        bypassing the caches.
        """
        j = name("j")
        body = [s for x in self.moving for s in self.load(x, j)]
        for value in self.needed:
            body += self.define(value)
        for k, result, dtype in self.inner_results:
            body.append(Store(f"block{k}" if streams else f"out{k}_row", j, dtype, result))
        body += [self.take(v, f"{v.name}[j]") for v in self.sums]
        body += [self.put(v) for v in self.scatters]
        return For("j", number(0), name("count"), body, Order.INDEPENDENT)

    def put(self, v: Scatter) -> Store:
        """Return the statement that writes the current update of a scatter to its result row.

        The update is added to the element there or replaces it, according to `v.kind`.
        """
        return Store(f"{v.name}_row", name("j"), v.dtype, v.source, v.node, adds=v.kind == "+")
