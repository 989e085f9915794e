"""Schedules fused regions that reduce along rows: each row is looped over once for each pass.

Pass k computes the values that depend on the reductions of the passes before it. Either one work
item computes whole rows (`_RowSpan`), or a group of work items divides each row (`_GroupRow`).
Backends call `row_program`; nothing here generates source.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from ...dtype import DType
from .dialect import SUFFIX
from .expression import compute_dtype
from .group_reduce import WARP
from .loop_program import (
    Accumulate,
    Address,
    Array,
    Assign,
    Combine,
    Declare,
    Finish,
    For,
    GroupReduce,
    Index,
    LaneLoop,
    Let,
    Load,
    LoopProgram,
    NewPack,
    Order,
    Pointer,
    Position,
    ReadPack,
    Space,
    Start,
    Statement,
    Store,
    Take,
    Work,
    WritePack,
    least,
    name,
    number,
)
from .packs import pack_type, pack_width
from .printer import is_heavy
from .region_plan import Computed, Reduction, RegionPlan
from .scheduling import Scheduler, Target

__all__ = ["HELD", "row_program"]

# ROW_BYTES: most bytes of a row that a CPU keeps on the stack between two passes. KEPT: most
# elements that a GPU work item keeps; HELD: most packs of one operand. On a GPU, one work item
# computes a row of up to SHORT_ROW elements, or up to FEW where parts of a warp can share a row.
# UNEVEN: from this length on, rows that packs do not divide have incomplete packs at their ends.
ROW_BYTES, KEPT, HELD, SHORT_ROW, FEW, UNEVEN = 32768, 16, 4, 16, 4, 512
# Bytes of registers for held packs; work items of a group of 1024 have half as many registers.
HELD_BYTES = 192


def row_program(target: Target, plan: RegionPlan) -> LoopProgram:
    """Return the loop program of a fused region that reduces along rows."""
    if target.spans or plan.row <= (FEW if target.shared_warps else SHORT_ROW):
        return _RowSpan(target, plan).made()
    return _GroupRow(target, plan).made()


class _Rows(Scheduler):
    """Base class that schedules the loops (passes) over one row of a reducing fused region."""

    def __init__(self, target: Target, plan: RegionPlan) -> None:
        super().__init__(target, plan)
        self.inner_values = {v.name for v in plan.values if isinstance(v, Computed) and not v.row}
        # The targets of each pass: results that it can write, and sources of its reductions.
        self.targets: list[list[str]] = [[] for _ in range(plan.stages + 1)]
        for result, _ in plan.outputs:
            if result in self.inner_values:
                value = self.values[result]
                self.targets[value.stage].append(result)
        self.reductions = [v for v in plan.values if isinstance(v, Reduction)]
        for v in self.reductions:
            self.targets[v.stage - 1].append(v.source)
        labels = self.read_by(self.computed.values())
        self.moving = [x for x in labels if self.moves(x)]
        self.fixed = [x for x in labels if x not in self.moving]
        self.kept = self.to_keep()

    def to_keep(self) -> set[str]:
        """Return the names of values that are computed once per row and kept for its later passes.

        A value is kept in a local array if it is costly to compute, is needed by at least two
        passes, and fits into ROW_BYTES together with the others.
        """
        passes: dict[str, int] = {}
        for targets in self.targets:
            for v in self.closure(targets, set()):
                if v.name in self.inner_values:
                    passes[v.name] = passes.get(v.name, 0) + 1
        found: set[str] = set()
        room = ROW_BYTES
        for value in self.computed.values():
            if passes.get(value.name, 0) > 1 and is_heavy(value.expression):
                room -= compute_dtype(value.dtype).itemsize * self.plan.row
                if room >= 0:
                    found.add(value.name)
        return found

    def kept_arrays(self, extent: int) -> list[Statement]:
        """Return declarations of the arrays that keep values of a row between passes.

        There is one array of `extent` elements for each value of `to_keep`.
        """
        return [
            Array(SUFFIX[compute_dtype(self.values[v].dtype)], f"{v}_kept", number(extent))
            for v in sorted(self.kept)
        ]

    def row(self) -> list[Statement]:
        """Return the statements that compute one row: pointers to operands, then the passes."""
        row = name("row")
        body = [*self.offsets(row), *self.hoist(self.fixed)]
        for x in self.moving:
            body += self.point(x)
        for k, (result, dtype) in enumerate(self.plan.outputs):
            if result in self.inner_values:
                address = Address(f"out{k}", (row * self.plan.row,))
                body.append(Pointer(f"out{k}_row", dtype, address, writable=True))
        known: set[str] = set()
        for stage, targets in enumerate(self.targets):
            for value in self.computed.values():
                if value.row and value.stage == stage:
                    body += self.define(value)
                    known.add(value.name)
            if targets:
                sums = [v for v in self.reductions if v.stage == stage + 1]
                body += self.walk(stage, targets, known, sums)
                known.update(v.name for v in sums)
        return body

    def results(self, lane_zero: bool = False) -> list[Statement]:
        """Return the statements that store the results with one element per row.

        With `lane_zero`, only the first work item of a group stores them.
        """
        return [
            Store(f"out{k}", name("row"), dtype, result, lane_zero=lane_zero)
            for k, (result, dtype) in enumerate(self.plan.outputs)
            if result not in self.inner_values
        ]

    def walk(
        self, stage: int, targets: list[str], known: set[str], sums: list[Reduction]
    ) -> list[Statement]:
        """Return the statements of one pass over a row: start its reductions, loop, finish them.

        Args:
            stage: number of the pass.
            targets: names of the values that the pass must compute.
            known: names of the values that are computed already.
            sums: reductions that the pass accumulates.
        """
        raise NotImplementedError

    def load_at_j(self, label: str) -> list[Statement]:
        """Return the statements that load element ``j`` of an operand's row.

        `label` is the operand's name in `plan.accesses`. The element becomes the ``const`` variable
        `label` of the kernel.
        """
        return self.load(label, name("j"))

    def store_at_j(self, k: int, dtype: DType, value: str) -> Statement:
        """Return the statement that stores `value` as element ``j`` of a row of result `k`."""
        return Store(f"out{k}_row", name("j"), dtype, value)

    def elements(
        self,
        stage: int,
        targets: list[str],
        known: set[str],
        at: Index,
        position: Index,
        load: Callable[[str], list[Statement]],
        store: Callable[[int, DType, str], Statement],
    ) -> tuple[list[Statement], set[str]]:
        """Return (statements that compute one element in a pass, labels of the operands they read).

        Args:
            stage, targets, known: number of the pass, names of the values that it must compute, and
                names of the values that are computed already.
            at: the element's index in the arrays of values that are kept between passes.
            position: the element's index in its row.
            load: function of an operand's label that returns the statements which load its element.
            store: function of (result number, dtype, value name) that returns the statement which
                stores the element of a result.
        """
        loads_kept = {v for v in self.kept if self.values[v].stage < stage}
        values = self.closure(targets, known | loads_kept)
        used = set(self.read_by(values))
        body = [s for x in self.moving if x in used for s in load(x)]
        for label in self.positions_in(values):
            body.append(Let(SUFFIX[self.plan.positions[label]], ((label, position),)))
        wanted = {u for v in values for u in v.uses} | set(targets)
        for v in sorted(loads_kept & wanted):
            body.append(Load(v, compute_dtype(self.values[v].dtype), Address(f"{v}_kept"), at))
        for value in values:
            body += self.define(value)
            if value.name in self.kept and value.stage == stage:
                body.append(Store(f"{value.name}_kept", at, compute_dtype(value.dtype), value.name))
        for k, (result, dtype) in enumerate(self.plan.outputs):
            if result in self.inner_values and self.values[result].stage == stage:
                body.append(store(k, dtype, result))
        return body, used


class _RowSpan(_Rows):
    """Schedules a reducing fused region so that each work item computes whole rows in sequence."""

    def made(self) -> LoopProgram:
        rows = For("row", name("begin"), name("end"), [*self.row(), *self.results()])
        body = [*self.kept_arrays(self.plan.row), rows]
        return self.program(Work.SPAN, self.plan.n // self.plan.row, self.plan.row, body)

    def walk(
        self, stage: int, targets: list[str], known: set[str], sums: list[Reduction]
    ) -> list[Statement]:
        body, used = self.elements(
            stage, targets, known, name("j"), name("j"), self.load_at_j, self.store_at_j
        )
        body += [Accumulate(v, self.values[v.source].dtype) for v in sums]
        loop = For(
            "j",
            number(0),
            number(self.plan.row),
            body,
            Order.ANY_ORDER if sums else Order.INDEPENDENT,
            sums=tuple(sums),
            checks=any(self.is_indexed(x) for x in used),
        )
        return [*map(Start, sums), loop, *map(Finish, sums)]


class _GroupRow(_Rows):
    """Schedules a reducing fused region so that a group of work items computes each row together.

    Attributes:
        width: adjacent elements (a pack) that a work item computes in one iteration.
        uneven: whether packs may cross the beginning of a row, because `width` need not divide the
            length of a row.
        packed: operands that are read in packs.
        held: packed operands that several passes read. Each work item reads their packs once and
            keeps them in registers.
        lanes: number of work items that compute one row.
        rows: number of rows that a group computes.
        each: number of packs of a row that each work item computes.
        read: held operands whose packs are already in registers, since an earlier pass has read
            them.
    """

    def __init__(self, target: Target, plan: RegionPlan) -> None:
        super().__init__(target, plan)
        assert target.lanes is not None
        self.width, self.uneven = self.pack_of_row()
        self.packed = [x for x in self.moving if self.in_packs(x)] if self.width > 1 else []
        count = -(-(plan.row + (self.width - 1) * self.uneven) // self.width)
        self.lanes, self.rows = target.lanes(count), 1
        if target.shared_warps:
            if count < WARP:
                self.lanes = 1 << (count.bit_length() - 1)
            if self.lanes <= WARP:
                self.rows = target.shared_warps // self.lanes
        self.each = -(-count // self.lanes)
        if self.uneven or self.each * self.width > KEPT:
            self.kept = set()
        self.held = set()
        if not self.uneven and self.each <= HELD:
            passes = [set(self.read_by(self.closure(t, set()))) for t in self.targets]
            self.held = {x for x in self.packed if sum(x in used for used in passes) > 1}
        sizes = [self.plan.accesses[x].dtype.itemsize for x in self.held]
        if sum(sizes) * self.width * self.each > HELD_BYTES // (1 + self.lanes // 1024):
            self.held = set()
        self.read: set[str] = set()

    def pack_of_row(self) -> tuple[int, bool]:
        """Return (number of elements of a pack, whether packs may cross the beginning of a row)."""
        row = self.plan.row
        dense = [x for x in self.moving if self.is_pack(x, 1)]
        sizes = [self.plan.accesses[x].dtype.itemsize for x in dense]
        sizes += [d.itemsize for v, d in self.plan.outputs if v in self.inner_values]
        if not sizes:
            return 1, False
        width, widest = pack_width(sizes, row, False), pack_width(sizes, row, True)
        if width < widest and row >= UNEVEN:
            # short packs: the single loads of other operands then touch fewer cache lines at once
            others = any(not self.is_in_order(x) for x in self.moving)
            return min(widest, 4) if others else widest, True
        while not self.target.shared_warps and width > 1 and row // width < WARP:
            width //= 2
        return width, False

    def in_packs(self, label: str) -> bool:
        """Return whether an operand can be read in packs at the same positions as the results.

        `label` is the operand's name in `plan.accesses`.
        """
        return self.is_in_order(label) if self.uneven else self.is_pack(label, self.width)

    def combine(self, v: Reduction) -> Combine:
        """Return the object that emits source to combine two values of reduction `v`."""
        return self.target.combine(v.kind, v.dtype)

    def made(self) -> LoopProgram:
        shared = sorted({SUFFIX[self.combine(v).dtype] for v in self.reductions})
        rows = self.plan.n // self.plan.row
        body: list[Statement] = []
        if self.rows == 1:
            body += [Array(t, f"shared_{t}", name("lanes"), Space.SHARED) for t in shared]
            body += [Position("i32", "lane", "lane"), Position(self.index, "row", "group")]
        else:
            place, found = name("place"), name("found")
            body += [Position("i32", "place", "lane"), Position(self.index, "group", "group")]
            body.append(Let("i32", (("lane", place % self.lanes),)))
            body.append(self.let("found", name("group") * self.rows + place // self.lanes))
            # all work items of a warp must take part in exchanges: surplus ones repeat the last row
            body.append(self.let("row", least(found, name("count") - 1)))
        body += self.kept_arrays(self.each * self.width)
        for x in sorted(self.held):
            type_ = pack_type(self.plan.accesses[x].dtype, self.width)
            body.append(Array(type_, f"{x}_held", number(self.each)))
        if self.uneven:
            body.append(self.let("shift", name("row") * self.plan.row % self.width))
        body += [*self.row(), *self.results(lane_zero=True)]
        made = self.program(Work.GROUP, rows, self.plan.row, body)
        count = rows if self.rows > 1 else None
        return dataclasses.replace(made, lanes=self.lanes, rows=self.rows, count=count)

    def walk(
        self, stage: int, targets: list[str], known: set[str], sums: list[Reduction]
    ) -> list[Statement]:
        takes, started = [], []
        for v in sums:
            c = self.combine(v)
            started.append(Declare(SUFFIX[c.dtype], f"{v.name}_acc", c.start))
            takes.append(Take(c, f"{v.name}_acc", v.source, self.values[v.source].dtype))
        single, used = self.elements(
            stage, targets, known, name("q"), name("j"), self.load_at_j, self.store_at_j
        )
        body, edges = [*single, *takes], []
        if self.width > 1:
            edges = body if self.uneven else []
            body = self.pack(stage, targets, known, takes, used)
        loop = LaneLoop(
            self.index,
            self.plan.row,
            self.each,
            self.lanes,
            body,
            self.width,
            edges,
            bool(self.held or self.kept) and self.width > 1,
        )
        return [*started, loop, *(GroupReduce(self.combine(v), v.name, v.dtype) for v in sums)]

    def pack(
        self, stage: int, targets: list[str], known: set[str], takes: list[Take], used: set[str]
    ) -> list[Statement]:
        """Return the statements that compute one pack of elements in a pass over a row.

        `stage` is the number of the pass, `targets` are the values that it must compute, `known`
        those that are computed already; `takes` are the statements that accumulate an element, and
        `used` the labels of the operands that the pass reads.
        """
        body: list[Statement] = []
        e, j = name("e"), name("j")
        for x in self.packed:
            if x not in used or x in self.read:
                continue
            a = self.plan.accesses[x]
            body.append(ReadPack(f"{x}_pack", a.dtype, self.width, Address(f"{x}_row", (j,))))
            if x in self.held:
                body.append(Assign(f"{x}_held", name("q"), f"{x}_pack", None))
                self.read.add(x)

        def load(x: str) -> list[Statement]:
            if x not in self.packed:
                return self.load(x, j + e)
            held = x in self.held
            source = Address(f"{x}_held[q].v" if held else f"{x}_pack.v")
            return [Load(x, self.plan.accesses[x].dtype, source, e)]

        stored: dict[int, DType] = {}

        def store(k: int, dtype: DType, value: str) -> Statement:
            stored[k] = dtype
            return Store(f"made{k}.v", e, dtype, value)

        at = name("q") * self.width + e
        each, _ = self.elements(stage, targets, known, at, j + e, load, store)
        body += [NewPack(f"made{k}", dtype, self.width) for k, dtype in stored.items()]
        order = Order.UNROLLED
        body.append(For("e", number(0), number(self.width), [*each, *takes], order, "i32"))
        for k, dtype in stored.items():
            target = Address(f"out{k}_row", (j,))
            body.append(WritePack(target, dtype, self.width, f"made{k}"))
        return body
