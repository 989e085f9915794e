"""Schedules a fused region: divides its work among work items and arranges it in loops.

`element_program` turns a `RegionPlan` without reductions and the `Target` of a device into a
`LoopProgram`. The modules `row_schedule` and `column_schedule` do this for regions with reductions
along rows, and for regions with reductions of columns or with scatters. All backends call these
functions, which generate no source and depend on no language.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from ...dtype import DType
from .dialect import SUFFIX
from .expression import Expr
from .loop_program import (
    Address,
    Array,
    Blocks,
    Combine,
    Define,
    Exit,
    For,
    Index,
    Let,
    Load,
    Locate,
    LoopProgram,
    NewPack,
    Operand,
    Order,
    Pointer,
    Position,
    Prefetch,
    ReadPack,
    Space,
    Statement,
    Store,
    Stream,
    Work,
    WritePack,
    name,
    number,
)
from .packs import fits, pack_width
from .printer import is_heavy
from .region_plan import Access, Computed, RegionPlan, Scatter, gathered_in

__all__ = ["FETCH_BYTES", "STREAM_BYTES", "Scheduler", "Target", "element_program"]

# Loops over results of at least FETCH_BYTES go by blocks of BLOCK elements and prefetch the
# operands of the next block; results of STREAM_BYTES are written past the caches. Heavy blocks are
# shorter then: a CPU computes the next one while it writes the last.
FETCH_BYTES, STREAM_BYTES, BLOCK, HEAVY_BLOCK = 1 << 20, 32 << 20, 512, 128
# Elements that an index of 32 bits may count; the rest of its range is for positions past the end.
NARROW = 1 << 30


_Read: TypeAlias = Callable[[int, Index | None], tuple[list[Statement], list[Statement]]]


@dataclasses.dataclass(frozen=True)
class Target:
    """The properties of a device and its language on which scheduling depends.

    Attributes:
        spans: whether a work item is a thread of a CPU, which computes a range of the work.
        combine: function of ("+" or "max", dtype) that returns an object which emits the source to
            combine two elements of such a reduction.
        prefetches: whether the language can prefetch memory.
        streams: whether the language can store to memory bypassing the caches.
        narrow: whether index arithmetic is done in 32 bits where 32 bits suffice.
        lanes: function of the number of packs in a row that returns how many work items compute the
            row together; None for a CPU, where one thread computes the row.
        shared_warps: number of work items of a group that computes several short rows, each row in
            a part of a warp; 0 if parts of a warp cannot exchange values.
        split: function of (outer, rows, width) that returns into how many pieces a column reduction
            divides its rows; None means pieces that fit a CPU's caches.
    """

    spans: bool
    combine: Callable[[str, DType], Combine]
    prefetches: bool = False
    streams: bool = False
    narrow: bool = False
    lanes: Callable[[int], int] | None = None
    shared_warps: int = 0
    split: Callable[[int, int, int], int] | None = None


class Scheduler:
    """Base class that builds a kernel's loop program from a region plan.

    It has what all schedules have in common: the index type, statements that address and load
    operands, and the order in which values are computed. A `label` is an operand's name in
    `plan.accesses` and in the kernel; an operand that is read in several ways has several labels.
    """

    def __init__(self, target: Target, plan: RegionPlan) -> None:
        self.target = target
        self.plan = plan
        self.index = "i32" if target.narrow and _reach(plan) < NARROW else "i64"
        self.values = {v.name: v for v in plan.values if not isinstance(v, Scatter)}
        self.computed = {v.name: v for v in plan.values if isinstance(v, Computed)}

    def program(self, work: Work, size: int, unit: int, body: list[Statement]) -> LoopProgram:
        """Return the loop program of the fused region with the given statements as its body.

        `size` is the number of units of work; `unit` is the number of elements that each unit
        computes.
        """
        accesses = self.plan.accesses.items()
        return LoopProgram(
            work,
            size,
            unit,
            self.plan.n_operands,
            tuple([Operand(label, a.operand, a.dtype) for label, a in accesses]),
            tuple([dtype for _, dtype in self.plan.outputs]),
            tuple(gathered_in(self.plan)),
            tuple(body),
        )

    # ---- how operands move ----------------------------------------------------------------------

    def is_indexed(self, label: str) -> bool:
        """Return whether the inner loop reads the source of a gather at a new index each time."""
        g = self.plan.accesses[label].gathered
        return g is not None and self.plan.accesses[g.label].strides[-1] != 0

    def moves(self, label: str) -> bool:
        """Return whether the inner loop reads a new element of an operand in each iteration."""
        return self.plan.accesses[label].strides[-1] != 0 or self.is_indexed(label)

    def is_invariant(self, label: str) -> bool:
        """Return whether the whole loop nest reads only one element of the operand."""
        a = self.plan.accesses[label]
        return not any(a.strides) and not (
            a.gathered and any(self.plan.accesses[a.gathered.label].strides)
        )

    def is_pack(self, label: str, width: int) -> bool:
        """Return whether an operand's elements can be loaded `width` at a time, as packs."""
        a = self.plan.accesses[label]
        offset = a.gathered.stride if a.gathered is not None else 0
        return not self.is_indexed(label) and fits(width, a.strides, offset)

    def is_in_order(self, label: str) -> bool:
        """Return whether an operand's elements are stored in the order of the region's loop."""
        axes, a = self.plan.axes, self.plan.accesses[label]
        in_order = tuple(math.prod(axes[k + 1 :]) for k in range(len(axes)))
        return a.gathered is None and a.strides == in_order

    # ---- statements -----------------------------------------------------------------------------

    def offsets(self, row: Index) -> list[Statement]:
        """Return statements that define ``LABEL_from`` for each operand with an offset per row.

        LABEL stands for the operand's label. The variable is the offset, in elements, at which row
        number `row` of the operand begins. An operand that has the same offset in all rows gets no
        variable.
        """
        axes = self.plan.axes[:-1]
        moving = {
            label: a.strides
            for label, a in self.plan.accesses.items()
            if any(a.strides[: len(axes)])
        }
        found: list[Statement] = []
        for label, steps in list(moving.items()):
            if all(a == b * size for a, b, size in zip(steps, steps[1:], axes[1:])):
                found.append(self.let(f"{label}_from", row * steps[len(axes) - 1]))
                del moving[label]
        if not moving:
            return found
        rest = row
        terms: dict[str, list[Index]] = {label: [] for label in moving}
        for k in range(len(axes) - 1, -1, -1):
            if axes[k] > 1 and any(steps[k] for steps in moving.values()):
                found.append(self.let(f"at{k}", rest % axes[k] if k else rest))
                for label, steps in moving.items():
                    if steps[k]:
                        terms[label].insert(0, name(f"at{k}") * steps[k])
            if k:
                found.append(self.let(f"rest{k}", rest // axes[k]))
                rest = name(f"rest{k}")
        for label, (first, *others) in terms.items():
            found.append(self.let(f"{label}_from", sum(others, first)))
        return found

    def let(self, variable: str, value: Index) -> Let:
        """Return the statement that defines a constant `variable` of the kernel's index type."""
        return Let(self.index, ((variable, value),))

    def row_start(self, label: str, access: Access) -> Address:
        """Return the address at which the current row of an operand begins.

        `access` is how the kernel reads the operand `label`.
        """
        offsets = []
        if any(access.strides[: len(self.plan.axes) - 1]):
            offsets.append(name(f"{label}_from"))
        if access.gathered and not self.is_indexed(label):
            offsets.append(name(f"{label}_at") * access.gathered.stride)
        return Address(f"{label}_data", tuple(offsets))

    def point(self, label: str, first: str = "") -> list[Statement]:
        """Return statements that define ``LABEL_row``, a pointer to the current row of an operand.

        LABEL stands for `label`. The inner loop reads the operand through the pointer. `first`, if
        not empty, names a variable of the kernel: the position in the row at which the inner loop
        begins.
        """
        a = self.plan.accesses[label]
        found: list[Statement] = []
        if a.gathered and not self.is_indexed(label):
            found.append(Locate(label, a.gathered))
        address = self.row_start(label, a)
        if first and a.strides[-1]:
            offset = _scaled(name(first), a.strides[-1])
            address = address._replace(offsets=(*address.offsets, offset))
        return [*found, Pointer(f"{label}_row", a.dtype, address)]

    def hoist(self, labels: Iterable[str]) -> list[Statement]:
        """Return statements, to run before the inner loop, that load the given operands once.

        Each operand must be constant in the inner loop. The one element of it that the loop reads
        becomes a ``const`` variable of the kernel, named by the operand's label.
        """
        found: list[Statement] = []
        for label in labels:
            a = self.plan.accesses[label]
            if a.gathered:
                found.append(Locate(label, a.gathered))
            found.append(Load(label, a.dtype, self.row_start(label, a)))
        return found

    def load(self, label: str, at: Index) -> list[Statement]:
        """Return statements that load an operand's element in iteration `at` of the inner loop.

        The element becomes the ``const`` variable `label` of the kernel.
        """
        a = self.plan.accesses[label]
        step, row = a.strides[-1], Address(f"{label}_row")
        index = _scaled(at, step)
        if not (a.gathered and self.is_indexed(label)):
            return [Load(label, a.dtype, row, index)]
        place = _scaled(name(f"{label}_at"), a.gathered.stride)
        return [
            Locate(label, a.gathered),
            Load(label, a.dtype, row, index + place if step else place),
        ]

    def define(self, value: Computed) -> list[Statement]:
        """Return the statement that computes a value, as a list.

        The list is empty if the value's expression only reads a variable that has the value's name.
        """
        e = value.expression
        if e.op == "input" and str(e.value) == value.name:
            return []
        return [Define(value.name, value.dtype, e, value.node)]

    # ---- values to compute -----------------------------------------------------------------------

    def closure(self, targets: Iterable[str], known: set[str]) -> list[Computed]:
        """Return the computed values needed for `targets`, including them, except those in `known`.

        Arguments are names of values. The result is in the order of computation.
        """
        needed: set[str] = set()
        queue = [t for t in targets if t not in known]
        while queue:
            found = queue.pop()
            if found in needed:
                continue
            needed.add(found)
            value = self.values[found]
            if isinstance(value, Computed):
                queue += [u for u in value.uses if u not in known]
        return [v for v in self.computed.values() if v.name in needed]

    def read_by(self, values: Iterable[Computed]) -> list[str]:
        """Return the labels of all operands, with indices of gathers, that given values read."""
        found: dict[str, None] = {}
        for v in values:
            for label in _inputs(v.expression):
                access = self.plan.accesses.get(label)
                if access is not None and access.gathered is not None:
                    found[access.gathered.label] = None
                if access is not None:
                    found[label] = None
        return list(found)

    def positions_in(self, values: Iterable[Computed]) -> list[str]:
        """Return the names of row positions (`RegionPlan.positions`) that given values read."""
        labels = [label for v in values for label in _inputs(v.expression)]
        return [label for label in dict.fromkeys(labels) if label in self.plan.positions]


def element_program(target: Target, plan: RegionPlan) -> LoopProgram:
    """Return the loop program of a fused region without reductions: one loop over its elements."""
    return _Elements(target, plan).made()


class _Elements(Scheduler):
    """Schedules one loop over a fused region's elements, row by row if an operand is broadcast.

    Attributes:
        inner: size of the innermost axis of the loop nest.
        needed: the values to compute.
        labels: labels of the operands that these values read.
    """

    def made(self) -> LoopProgram:
        self.inner = self.plan.axes[-1]
        self.needed = self.closure([v for v, _ in self.plan.outputs], set())
        self.labels = self.read_by(self.needed)
        self.moving = [x for x in self.labels if self.moves(x)]
        if self.target.spans:
            return self.program(Work.SPAN, self.plan.n, 1, self.span())
        width, widest = self.pack_width(), self.widest_pack()
        across = 2 * width < widest
        if across or width > 1:
            width = widest if across else width
            body = self.packs(width, self.read_across if across else self.read_row)
        else:
            body = self.item()
        made = self.program(Work.ITEM, -(-self.plan.n // width), width, body)
        return dataclasses.replace(made, count=self.plan.n)

    def pack_width(self) -> int:
        """Return how many adjacent elements of one row each GPU work item computes."""
        sizes = [dtype.itemsize for _, dtype in self.plan.outputs]
        dense = [x for x in self.moving if self.is_pack(x, 1)]
        sizes += [self.plan.accesses[x].dtype.itemsize for x in dense]
        # in an incomplete pack, single loads of other operands would read past the end
        tail = len(self.plan.axes) == 1 and len(dense) == len(self.moving)
        return pack_width(sizes, self.inner, tail)

    def widest_pack(self) -> int:
        """Return how many adjacent elements each work item computes, if packs may cross rows."""
        sizes = [dtype.itemsize for _, dtype in self.plan.outputs]
        whole = [x for x in self.moving if self.is_in_order(x)]
        sizes += [self.plan.accesses[x].dtype.itemsize for x in whole]
        return pack_width(sizes, self.plan.n, True)

    def packs(self, width: int, read: _Read) -> list[Statement]:
        """Return the body of a kernel in which each work item computes `width` adjacent elements.

        `read` is `read_row` or `read_across`: a function of (`width`, number of elements left or
        None) that returns the statements that load the operands: those before the loop over the
        elements and those inside it.
        """
        i, e = name("i"), name("e")
        body: list[Statement] = [
            Position(self.index, "item", "item"),
            self.let("i", name("item") * width),
            Exit(i >= name("count"), "return"),
        ]
        left = None
        if self.plan.n % width:
            left = name("left")
            body.append(self.let("left", name("count") - i))
        before, loads = read(width, left)
        results = [(f"made{k}", dtype) for k, (_, dtype) in enumerate(self.plan.outputs)]
        body += [*before, *(NewPack(made, dtype, width) for made, dtype in results)]
        values = self.compute([(f"{made}.v", e) for made, _ in results])
        body.append(For("e", number(0), number(width), [*loads, *values], Order.UNROLLED, "i32"))
        for k, (made, dtype) in enumerate(results):
            body.append(WritePack(Address(f"out{k}", (i,)), dtype, width, made, left))
        return body

    def read_row(self, width: int, left: Index | None) -> tuple[list[Statement], list[Statement]]:
        """Return the statements that load the operands of a pack of results within one row.

        The first list comes before the loop over the elements of the pack, the second inside it. An
        operand whose elements are not adjacent is loaded one element at a time. `left` is the
        number of elements of the region from the pack's first element on; None if every pack is
        complete.
        """
        j, e = name("i"), name("e")
        before: list[Statement] = []
        if len(self.plan.axes) > 1:
            row, j = name("row"), name("j")
            values = (("row", name("i") // self.inner), ("j", name("i") - row * self.inner))
            before += [Let(self.index, values), *self.offsets(row)]
        before += self.hoist(x for x in self.labels if x not in self.moving)
        loads: list[Statement] = []
        for x in self.moving:
            before += self.point(x)
            if self.is_pack(x, width):
                dtype, source = self.plan.accesses[x].dtype, Address(f"{x}_row", (j,))
                before.append(ReadPack(f"{x}_pack", dtype, width, source, left))
                loads.append(Load(x, dtype, Address(f"{x}_pack.v"), e))
            else:
                loads += self.load(x, j + e)
        return before, loads

    def read_across(
        self, width: int, left: Index | None
    ) -> tuple[list[Statement], list[Statement]]:
        """Return the statements that load the operands of a pack of results that may cross rows.

        Arguments and results are those of `read_row`. An operand that is not stored in the order of
        the results is loaded one element at a time.
        """
        i, e, at, row, j = (name(x) for x in ("i", "e", "at", "row", "j"))
        before = self.hoist(x for x in self.labels if self.is_invariant(x))
        place = i + e if left is None else Index("?", (e < left, i + e, i))
        values = (("at", place), ("row", at // self.inner), ("j", at - row * self.inner))
        loads: list[Statement] = [Let(self.index, values), *self.offsets(row)]
        fixed = [x for x in self.labels if x not in self.moving and not self.is_invariant(x)]
        loads += self.hoist(fixed)
        for x in self.moving:
            if self.is_in_order(x):
                dtype, source = self.plan.accesses[x].dtype, Address(f"{x}_data", (i,))
                before.append(ReadPack(f"{x}_pack", dtype, width, source, left))
                loads.append(Load(x, dtype, Address(f"{x}_pack.v"), e))
            else:
                loads += [*self.point(x), *self.load(x, j)]
        return before, loads

    def item(self) -> list[Statement]:
        """Return the body of a kernel in which each work item computes one element."""
        i, j = name("i"), name("i")
        body: list[Statement] = [
            Position(self.index, "i", "item"),
            Exit(i >= name("count"), "return"),
        ]
        if len(self.plan.axes) > 1:
            row, j = name("row"), name("j")
            values = (("row", i // self.inner), ("j", i - row * self.inner))
            body += [Let(self.index, values), *self.offsets(row)]
        body += self.hoist(x for x in self.labels if x not in self.moving)
        for x in self.moving:
            body += [*self.point(x), *self.load(x, j)]
        return [*body, *self.compute([(f"out{k}", i) for k in range(len(self.plan.outputs))])]

    def compute(self, targets: Sequence[tuple[str, Index]]) -> list[Statement]:
        """Return statements that compute one element of every result and store it.

        `targets` are (pointer or array, index) of that element, one for each result.
        """
        body = [statement for v in self.needed for statement in self.define(v)]
        for (target, at), (value, dtype) in zip(targets, self.plan.outputs, strict=True):
            body.append(Store(target, at, dtype, value))
        return body

    def loop(
        self, variable: str, begin: Index, end: Index, targets: Sequence[tuple[str, Index]]
    ) -> For:
        """Return the loop over elements `begin` to `end` - 1 that computes and stores all results.

        `variable` is the loop's variable. `targets` are (pointer or array, index) of the element
        to store, one for each result.
        """
        loads = [s for x in self.moving for s in self.load(x, name(variable))]
        return For(variable, begin, end, [*loads, *self.compute(targets)], Order.INDEPENDENT)

    def span(self) -> list[Statement]:
        """Return the body of a kernel in which a work item computes elements `begin` to `end` - 1.

        Large results are computed in blocks, so that operands can be prefetched and results stored
        with instructions that bypass the caches.
        """
        results = self.plan.outputs
        invariant = [x for x in self.labels if self.is_invariant(x)]
        fixed = [x for x in self.labels if x not in invariant and x not in self.moving]
        body = self.hoist(invariant)
        largest = max(self.plan.n * dtype.itemsize for _, dtype in results)
        fetches = self.target.prefetches and largest >= FETCH_BYTES
        streams = self.target.streams and largest >= STREAM_BYTES
        i, j = name("i"), name("j")
        if len(self.plan.axes) == 1 and not fetches and not streams:
            for x in self.moving:
                body += self.point(x)
            targets = [(f"out{k}", i) for k in range(len(results))]
            return [*body, self.loop("i", name("begin"), name("end"), targets)]
        heavy = streams and any(is_heavy(v.expression) for v in self.needed)
        size = HEAVY_BLOCK if heavy else BLOCK
        targets = [(f"out{k}", i + j) for k in range(len(results))]
        if streams:
            targets = [(f"block{k}", j) for k in range(len(results))]
            for k, (_, dtype) in enumerate(results):
                body.append(array_of(f"block{k}", dtype, size))
        block: list[Statement] = [*self.offsets(name("row")), *self.hoist(fixed)]
        for x in self.moving:
            a = self.plan.accesses[x]
            block += self.point(x, "first")
            in_order = a.strides[-1] == 1 and a.strides[-2:-1] in ((), (self.inner,))
            if fetches and in_order and not a.gathered:
                block.append(Prefetch(Address(f"{x}_row", (number(size),)), a.dtype.itemsize))
        block.append(self.loop("j", number(0), name("count"), targets))
        if streams:
            for k, (_, dtype) in enumerate(results):
                block.append(Stream(Address(f"out{k}", (i,)), f"block{k}", dtype.itemsize))
        return [*body, Blocks(self.inner, size if fetches or streams else None, block)]


def array_of(variable: str, dtype: DType, extent: int) -> Array:
    """Return the declaration of a local array of `extent` elements, aligned to a cache line."""
    return Array(SUFFIX[dtype], variable, number(extent), Space.ALIGNED)


def _scaled(at: Index, step: int) -> Index:
    """Return the index expression ``at * step``, or `at` if the stride `step` is 1."""
    return at if step == 1 else at * step


def _inputs(e: Expr) -> list[str]:
    """Return the names of the inputs of a scalar expression, one for each use."""
    if e.op == "input":
        return [str(e.value)]
    return [label for a in e.args for label in _inputs(a)]


def _reach(plan: RegionPlan) -> int:
    """Return an upper bound of all indices in a region's kernel, from which the index type follows.

    It is the number of elements, or the largest offset into an operand if that is greater.
    """
    found = [plan.n]
    for a in plan.accesses.values():
        far = sum((size - 1) * step for size, step in zip(plan.axes, a.strides, strict=True))
        found.append(far + (a.gathered.n * a.gathered.stride if a.gathered is not None else 0))
    return max(found)
