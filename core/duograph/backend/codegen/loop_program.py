"""Loop programs: the statements and loops of a scheduled kernel, before code generation.

`scheduling`, `row_schedule` and `column_schedule` build a `LoopProgram` from a fused region's plan
and a target; `loop_printer` generates C, OpenCL C or CUDA C from it. A program says which work item
computes what, in which order, and in which memory. It must not contain source of one language: the
code generator adds qualifiers, pragmas, the passing of operands and the report of an index out of
range.
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

    Its source is the same in every dialect. Values never overflow, so no casts are needed. Nothing
    is simplified: ``row * 1`` remains ``row * 1`` in the source.

    Attributes:
        operator: an operator such as ``"+"``; ``"?"`` for a conditional; ``""`` for a name or a
            number.
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
    """How a compiler may order the iterations of a generated loop, for a hint in the source."""

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

    SPAN: a range of elements or rows, as a CPU thread does. ITEM: one element or a few adjacent
    elements. GROUP: a part of one row, which a group of work items computes together.
    """

    SPAN = "span"  # a range begin .. end of elements, rows or units
    ITEM = "item"  # a pack of elements or columns each
    GROUP = "group"  # one row for each group of work items


class Combine(Protocol):
    """Interface of objects that emit source to combine two values of a reduction.

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
    """Kernel statement that defines integer constants, such as ``const i64 row = i / 4, at = 0;``.

    `type` is their C type, `values` are the pairs (name, value).
    """

    type: str
    values: tuple[tuple[str, Index], ...]


class Position(NamedTuple):
    """Kernel statement that defines the constant `name` as an id that the device supplies.

    `of` selects the id: "item" is the work item's id in the grid, "group" the id of its group,
    "lane" its position in that group.
    """

    type: str
    name: str
    of: str


class Exit(NamedTuple):
    """Kernel statement ``if (condition) how;``, where `how` is "return", "continue" or the like."""

    condition: Index
    how: str


class Array(NamedTuple):
    """Kernel statement that declares an uninitialised local array of constant size.

    `extent` is the number of elements; `space` says whether the array is in a group's shared memory
    or private to a work item.
    """

    type: str
    name: str
    extent: Index
    space: Space = Space.PRIVATE


class Pointer(NamedTuple):
    """Kernel statement that defines the constant pointer `name` into an operand or result.

    `writable` says whether the kernel writes through the pointer.
    """

    name: str
    dtype: DType
    address: Address
    writable: bool = False


class Locate(NamedTuple):
    """Kernel statement that validates an index read from a tensor, and reports it if out of range.

    `gathered` describes the index and the axis; LABEL stands for the attribute `label`. A negative
    index counts from the end of the axis; ``LABEL_counted`` is the same index counted from the
    start, from 0. For a gather, ``LABEL_at`` is that index, or 0 if it is out of range. For a
    scatter (`skips`), the rest of the iteration is skipped if the index is out of range.
    """

    label: str
    gathered: Gathered
    skips: bool = False


class Load(NamedTuple):
    """Kernel statement that loads an element into the new constant `name`.

    Loads `source[at]`, or the element at address `source` if `at` is None. The constant has the
    compute dtype: float32 for elements stored as float16 or bfloat16.
    """

    name: str
    dtype: DType
    source: Address
    at: Index | None = None


class ReadPack(NamedTuple):
    """Kernel statement that loads `width` adjacent elements in one access, as the pack `name`.

    `left` is the number of elements that the memory holds from address `source` on; None means at
    least `width`. If they are fewer, the other elements of the pack are copies of the first.
    """

    name: str
    dtype: DType
    width: int
    source: Address
    left: Index | None = None


class NewPack(NamedTuple):
    """Kernel statement that declares an uninitialised variable for a pack of `width` elements."""

    name: str
    dtype: DType
    width: int


class WritePack(NamedTuple):
    """Kernel statement that stores the pack `name` at address `target`, in one access.

    If `left` is not None, only the first `left` elements of the pack are stored.
    """

    target: Address
    dtype: DType
    width: int
    name: str
    left: Index | None = None


class Define(NamedTuple):
    """Kernel statement that computes one value of the fused region as the constant `name`.

    `expression` computes the value; `node` is the graph node that it comes from, for a comment in
    the source.
    """

    name: str
    dtype: DType
    expression: Expr
    node: GraphNode


class Store(NamedTuple):
    """Kernel statement ``target[at] = value``, rounded to the dtype stored there.

    With `adds`, the value is added to the element in memory instead of replacing it. With
    `lane_zero`, only the first work item of a group writes.
    """

    target: str
    at: Index
    dtype: DType
    value: str
    node: GraphNode | None = None
    adds: bool = False
    lane_zero: bool = False


class Declare(NamedTuple):
    """Kernel statement that declares a variable with an initial value."""

    type: str
    name: str
    value: str


class Start(NamedTuple):
    """Kernel statement that declares the accumulator of a reduction that may run in any order.

    For a maximum of a floating dtype, it also declares a flag that says whether an element was NaN.
    """

    reduction: Reduction


class Accumulate(NamedTuple):
    """Kernel statement that combines one element into the accumulator that `Start` declared.

    The element is the current value of the operand that `reduction` reduces; `source` is the dtype
    of this operand.
    """

    reduction: Reduction
    source: DType


class Finish(NamedTuple):
    """Kernel statement after the loop of a reduction that `Start` began.

    It sets a maximum to NaN if an element was NaN. A sum needs no statement. The accumulator then
    holds the result.
    """

    reduction: Reduction


class Take(NamedTuple):
    """Kernel statement that combines a value into an accumulator, in the order of the loop.

    It is part of a loop's body. `combine` emits the code that combines; `source` is the
    value's variable, `target` the accumulator.
    """

    combine: Combine
    target: str
    source: str
    dtype: DType  # in which the source is computed
    node: GraphNode | None = None


class GroupReduce(NamedTuple):
    """Kernel statement that reduces the variable ``NAME_acc`` over all work items of a group.

    NAME stands for the attribute `name`. `combine` emits the source that combines two values. Every
    work item then has the result as the constant ``NAME``, in the dtype in which kernels compute
    `dtype`: float32 for 16-bit floats.
    """

    combine: Combine
    name: str
    dtype: DType


class Assign(NamedTuple):
    """Kernel statement ``target[at] = value``.

    The value is rounded to `dtype`; if that is None, it is stored unchanged.
    """

    target: str
    at: Index
    value: str
    dtype: DType | None  # to which it is rounded; None: stored as it is


class For(NamedTuple):
    """Kernel statement: a loop of `variable` from `begin` up to, not including, `end`.

    `order` says how the compiler may order the iterations; `type` is the C type of the variable. If
    iterations may run in any order, `sums` are the reductions that the loop accumulates and
    `checks` says whether it reports wrong indices. With `compact`, the body is one statement, which
    is written on the loop's own line.
    """

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
    """Kernel statement: a loop over elements in blocks that never cross the end of a row.

    The elements are ``begin`` up to, not including, ``end``. In the body, ``i`` is the block's
    first element, ``row`` its row of `inner` elements, ``first`` its position in the row and
    ``count`` its length, at most `limit`.
    """

    inner: int
    limit: int | None
    body: Sequence[Statement]


class LaneLoop(NamedTuple):
    """Kernel statement: a loop that divides a row's elements among a group's work items (lanes).

    Attributes:
        type: the C type of the index ``j``.
        row: number of elements of the row.
        each: number of iterations of each work item.
        lanes: number of work items that compute the row together.
        body: statements for the `width` adjacent elements from ``j`` on.
        width: number of adjacent elements (a pack) that a work item computes in an iteration.
        edges: statements for the single element ``j`` of an incomplete pack. They are present only
            if the first pack of a row begins before the row, by as many elements as the kernel's
            variable ``shift`` says, so that packs are aligned in memory. Packs are then incomplete
            at both ends of the row.
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
    """Kernel statement that prefetches elements at `address`, for later iterations.

    Their number is the kernel's variable ``count``; `itemsize` is the number of bytes of an
    element.
    """

    address: Address
    itemsize: int


class Stream(NamedTuple):
    """Kernel statement that copies elements of `array` to `target`, bypassing the caches.

    Their number is the kernel's variable ``count``; `itemsize` is the number of bytes of an
    element.
    """

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
    """A kernel argument: an operand of the fused region, read by the pointer ``LABEL_data``.

    LABEL stands for the attribute `label`; `operand` is the operand's position among those of the
    region. An operand that is read with different strides has several labels.
    """

    label: str
    operand: int
    dtype: DType


class Partial(NamedTuple):
    """A kernel argument: the memory ``NAME_parts`` for `size` partial results of a reduction.

    NAME stands for the attribute `name`. A second kernel combines the partial results.
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
        unit: number of the fused region's elements that one unit of work computes.
        n_operands: number of operands of the region.
        operands: the operands that the kernel reads.
        results: dtypes of the results ``out0``, ``out1`` ...
        partials: memory for partial results that a second kernel combines.
        checks: the gathers and scatters whose indices the kernel checks.
        body: the kernel's statements.
        lanes: number of work items that compute one row together, if `work` is GROUP.
        rows: number of rows that a group computes, if `work` is GROUP.
        count: number of elements or rows, passed as the kernel's argument ``count`` so that its
            source does not depend on the number; None if there is no such argument.
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
        """The distinct (op name, axis) pairs of the gathers and scatters in `checks`."""
        return list(dict.fromkeys((g.op, g.axis) for g in self.checks))
