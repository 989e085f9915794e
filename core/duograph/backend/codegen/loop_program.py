"""Loop programs: the statements and loops of a scheduled kernel, before they are printed.

`scheduling.schedule` builds a `LoopProgram` from a fused region's plan and a target;
`loop_printer` prints it as C, OpenCL C or CUDA C. A program says which work item computes what, in
which order, and where values are kept. It never contains source of one language: the printer adds
qualifiers, pragmas, the passing of operands and the report of an index out of range.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ...dtype import DType
from ...ir.graph import GraphNode
from .expression import Expr
from .region_plan import Gathered, Reduction

__all__ = [
    "Accumulate",
    "Address",
    "Array",
    "Assign",
    "Blocks",
    "Combine",
    "Declare",
    "Define",
    "Exit",
    "Finish",
    "For",
    "GroupReduce",
    "Index",
    "LaneLoop",
    "Let",
    "Load",
    "Locate",
    "LoopProgram",
    "NewPack",
    "Operand",
    "Order",
    "Partial",
    "Pointer",
    "Position",
    "Prefetch",
    "ReadPack",
    "Space",
    "Start",
    "Statement",
    "Store",
    "Stream",
    "Take",
    "Work",
    "WritePack",
    "least",
    "name",
    "number",
]


# ---- index arithmetic ----------------------------------------------------------------------------

_PRECEDENCE = {"?": 0, "<": 1, ">=": 1, "+": 2, "-": 2, "*": 3, "/": 3, "%": 3, "": 4}


@dataclasses.dataclass(frozen=True)
class Index:
    """An integer expression over loop variables, for offsets and bounds in a generated kernel.

    It prints the same way in every dialect. Values never overflow, so no casts are needed. Nothing
    is simplified: ``row * 1`` is printed as it was built.

    Attributes:
        operator: such as ``"+"``; ``"?"`` for a conditional; ``""`` for a name or a number.
        operands: the operator's operands, or the source of the name or number.
    """

    operator: str
    operands: tuple[Index | str, ...]

    def __add__(self, other: Index | int) -> Index:
        return self._with("+", other)

    def __sub__(self, other: Index | int) -> Index:
        return self._with("-", other)

    def __mul__(self, other: Index | int) -> Index:
        return self._with("*", other)

    def __floordiv__(self, other: Index | int) -> Index:
        return self._with("/", other)

    def __mod__(self, other: Index | int) -> Index:
        return self._with("%", other)

    def __lt__(self, other: Index | int) -> Index:
        return self._with("<", other)

    def __ge__(self, other: Index | int) -> Index:
        return self._with(">=", other)

    def _with(self, operator: str, other: Index | int) -> Index:
        return Index(operator, (self, number(other) if isinstance(other, int) else other))

    def __str__(self) -> str:
        if not self.operator:
            return str(self.operands[0])
        if self.operator == "?":
            condition, x, y = self.operands
            return f"{condition} ? {x} : {y}"
        own = _PRECEDENCE[self.operator]
        left, right = self.operands
        assert isinstance(left, Index) and isinstance(right, Index)
        x = f"({left})" if _PRECEDENCE[left.operator] < own else f"{left}"
        y = f"({right})" if _PRECEDENCE[right.operator] <= own else f"{right}"
        return f"{x} {self.operator} {y}"


def name(text: str) -> Index:
    """Return the `Index` expression of one variable of the generated source, given by its name."""
    return Index("", (text,))


def number(value: int) -> Index:
    """Return the index expression (`Index`) of one integer constant."""
    return Index("", (str(value),))


def least(x: Index, y: Index) -> Index:
    """Return the index expression for the smaller of two index expressions."""
    return Index("?", (x < y, x, y))


class Address(NamedTuple):
    """A pointer expression of a generated kernel: a base pointer plus offsets in elements."""

    base: str
    offsets: tuple[Index, ...] = ()

    def __str__(self) -> str:
        return " + ".join([self.base, *map(str, self.offsets)])


# ---- statements ----------------------------------------------------------------------------------


class Order(enum.Enum):
    """How the iterations of a generated loop may be ordered; printed as a hint to the compiler."""

    SERIAL = "serial"
    INDEPENDENT = "independent"
    ANY_ORDER = "any order"  # independent but for sums, whose order is free
    UNROLLED = "unrolled"  # as many copies of the body as there are iterations


class Space(enum.Enum):
    """The memory in which a generated kernel keeps a local array."""

    PRIVATE = "private"
    ALIGNED = "aligned"  # private, on a cache line of its own
    SHARED = "shared"  # by the work items of a group


class Work(enum.Enum):
    """What one work item of a generated kernel computes.

    SPAN: a range of elements or rows, as a processor's thread does. ITEM: adjacent elements.
    GROUP: a group of work items computes one row together.
    """

    SPAN = "span"  # a range begin .. end of elements, rows or units
    ITEM = "item"  # a pack of elements or columns each
    GROUP = "group"  # one row for each group of work items


class Combine(Protocol):
    """Prints how a kernel combines two values of a reduction that runs in element order.

    Attributes:
        dtype: dtype of the accumulator.
        start: source of the initial value, the neutral element.
    """

    @property
    def dtype(self) -> DType: ...

    @property
    def start(self) -> str: ...

    def text(self, acc: str, x: str) -> str:
        """Return source of the statement that combines the value `x` into the variable `acc`."""


class Let(NamedTuple):
    """Kernel statement that defines integer constants, as ``const i64 row = i / 4, at = 0;``."""

    type: str
    values: tuple[tuple[str, Index], ...]


class Position(NamedTuple):
    """Kernel statement that defines a constant with the id of the work item, group or lane."""

    type: str
    name: str
    of: str


class Exit(NamedTuple):
    """Kernel statement that leaves the kernel, the loop or the iteration if a condition holds."""

    condition: Index
    how: str


class Array(NamedTuple):
    """Kernel statement that declares a local array of constant size."""

    type: str
    name: str
    extent: Index
    space: Space = Space.PRIVATE


class Pointer(NamedTuple):
    """Kernel statement that defines a constant pointer to elements of device memory."""

    name: str
    dtype: DType
    address: Address
    writable: bool = False


class Locate(NamedTuple):
    """Kernel statement that validates an index read from a tensor, and reports it if out of range.

    A negative index counts from the end of the axis; ``LABEL_counted`` is the index counted from 0.
    For a gather, ``LABEL_at`` is that index, or 0 if it is out of range. For a scatter (`skips`),
    the
    row of an index out of range is skipped.
    """

    label: str
    gathered: Gathered
    skips: bool = False


class Load(NamedTuple):
    """Kernel statement that loads an element into a named constant of its compute dtype.

    Loads `source[at]`, or the element at `source` if `at` is None.
    """

    name: str
    dtype: DType
    source: Address
    at: Index | None = None


class ReadPack(NamedTuple):
    """Kernel statement that loads `width` adjacent elements at once, as the pack `name`.

    `left`: the number of elements that are there, if they may be fewer (`packs.read_pack`).
    """

    name: str
    dtype: DType
    width: int
    source: Address
    left: Index | None = None


class NewPack(NamedTuple):
    """Kernel statement that declares a pack of `width` elements, for results."""

    name: str
    dtype: DType
    width: int


class WritePack(NamedTuple):
    """Kernel statement that stores the pack `name` at once, or its first `left` elements."""

    target: Address
    dtype: DType
    width: int
    name: str
    left: Index | None = None


class Define(NamedTuple):
    """Kernel statement that computes a value of the fused region and names it as a constant."""

    name: str
    dtype: DType
    expression: Expr
    node: GraphNode


class Store(NamedTuple):
    """Kernel statement that writes a value to memory, rounded to the dtype stored there.

    `adds`: add to the element in memory instead of replacing it. `lane_zero`: only the first work
    item
    of a group writes.
    """

    target: str
    at: Index
    dtype: DType
    value: str
    node: GraphNode | None = None
    adds: bool = False
    lane_zero: bool = False


class Declare(NamedTuple):
    """Kernel statement that declares a variable with an initial value; both are source text."""

    type: str
    name: str
    value: str


class Start(NamedTuple):
    """Kernel statement that declares the accumulators of a reduction that may run in any order."""

    reduction: Reduction


class Accumulate(NamedTuple):
    """Kernel statement that adds an element to a reduction's accumulators, in an ANY_ORDER loop."""

    reduction: Reduction
    source: DType


class Finish(NamedTuple):
    """Kernel statement that names the result of an any-order reduction.

    It is NaN if the reduction's NaN flag is set.
    """

    reduction: Reduction


class Take(NamedTuple):
    """Kernel statement that combines an element into accumulator `target`, in element order."""

    combine: Combine
    target: str
    source: str
    dtype: DType  # in which the source is computed
    node: GraphNode | None = None


class GroupReduce(NamedTuple):
    """Kernel statement that combines ``NAME_acc`` of all work items of a group.

    Every work item then has the result as ``NAME``.
    """

    combine: Combine
    name: str
    dtype: DType


class Assign(NamedTuple):
    """Kernel statement that stores an accumulator, rounded if the stored dtype is narrower."""

    target: str
    at: Index
    value: str
    dtype: DType | None  # to which it is rounded; None: stored as it is


class For(NamedTuple):
    """Kernel statement: a loop of a variable from `begin` up to `end`."""

    variable: str
    begin: Index
    end: Index
    body: Sequence[Statement]
    order: Order = Order.SERIAL
    type: str = "i64"
    sums: tuple[Reduction, ...] = ()  # of an ANY_ORDER loop
    checks: bool = False  # whether an ANY_ORDER loop reports wrong indices
    compact: bool = False  # one statement, on the same line


class Blocks(NamedTuple):
    """Kernel statement: a loop over blocks of elements, none of which crosses the end of a row.

    In the body, ``i`` is the block's first element, ``row`` its row of `inner` elements, ``first``
    its
    position in the row and ``count`` its length, at most `limit`.
    """

    inner: int
    limit: int | None
    body: Sequence[Statement]


class LaneLoop(NamedTuple):
    """Kernel statement: a loop in which a group's work items (lanes) share a row's elements.

    Attributes:
        type: the index type.
        row: number of elements.
        each: number of iterations.
        lanes: number of work items.
        body: statements for the `width` elements from ``j`` on.
        width: adjacent elements of an iteration.
        edges: statements for one element ``j``, if packs do not begin with the row but ``shift``
            elements before it; they run for the elements of incomplete packs at both ends.
        unrolled: whether the loop must be unrolled, so that arrays stay in registers.
    """

    type: str
    row: int
    each: int
    lanes: int
    body: Sequence[Statement]
    width: int = 1
    edges: Sequence[Statement] = ()
    unrolled: bool = False


class Prefetch(NamedTuple):
    """Kernel statement that prefetches ``count`` elements that later iterations read."""

    address: Address
    itemsize: int


class Stream(NamedTuple):
    """Kernel statement that copies ``count`` elements of a local array past the caches."""

    target: Address
    array: str
    itemsize: int


Statement = (
    Let | Position | Exit | Array | Pointer | Locate | Load | ReadPack | NewPack | WritePack
    | Define | Store | Declare | Start | Accumulate | Finish | Take | GroupReduce | Assign | For
    | Blocks | LaneLoop | Prefetch | Stream
)  # fmt: skip


# ---- programs ------------------------------------------------------------------------------------


class Operand(NamedTuple):
    """A kernel argument: an operand of a fused region, as pointer ``LABEL_data``."""

    label: str
    operand: int
    dtype: DType


class Partial(NamedTuple):
    """A kernel argument: memory ``NAME_parts`` for partial results.

    A second kernel combines these.
    """

    name: str
    dtype: DType
    size: int

    @property
    def nbytes(self) -> int:
        """Size in bytes of one reduction's partial results."""
        return self.size * self.dtype.itemsize


@dataclasses.dataclass(frozen=True)
class LoopProgram:
    """The schedule of one kernel: its arguments, loops and statements, for any C-like language.

    Attributes:
        work: what one work item computes.
        size: number of units of work: elements, rows or tiles.
        unit: elements of the fused region that one unit computes.
        n_operands: operands of the region.
        operands: the operands that the kernel reads.
        results: dtypes of the results ``out0``, ``out1`` ...
        partials: memory for partial results that a second kernel combines.
        checks: the gathers and scatters whose indices the kernel checks.
        body: the kernel's statements.
        lanes: work items that share a row, if `work` is GROUP.
        rows: rows of a group, if `work` is GROUP.
        count: number of elements or rows that the kernel gets as its argument ``count``, so that
            its source does not depend on it; None: there is no such argument.
    """

    work: Work
    size: int
    unit: int
    n_operands: int
    operands: tuple[Operand, ...]
    results: tuple[DType, ...]
    checks: tuple[Gathered, ...]
    body: tuple[Statement, ...]
    partials: tuple[Partial, ...] = ()
    lanes: int = 1
    rows: int = 1
    count: int | None = None

    @property
    def watched(self) -> list[tuple[str, int]]:
        """Return the distinct (op name, axis) pairs whose indices the kernel checks for range."""
        return list(dict.fromkeys((g.op, g.axis) for g in self.checks))
