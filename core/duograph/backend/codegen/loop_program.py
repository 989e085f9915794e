"""Loop programs: the typed, scheduled form of fused regions that printers turn into source.

`scheduling.schedule` builds a `LoopProgram` from a region plan and a target; `loop_printer` prints
it as C, OpenCL C or CUDA C. A program assigns the work to work items, orders it, and says where
values are kept. It never holds text of a dialect: qualifiers, pragmas, how operands arrive and how
a wrong index is reported are the printer's.
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
    "Operand",
    "Order",
    "Partial",
    "Pointer",
    "Position",
    "Prefetch",
    "Space",
    "Start",
    "Statement",
    "Store",
    "Stream",
    "Take",
    "Work",
    "least",
    "name",
    "number",
]


# ---- index arithmetic ----------------------------------------------------------------------------

_PRECEDENCE = {"?": 0, "<": 1, ">=": 1, "+": 2, "-": 2, "*": 3, "/": 3, "%": 3, "": 4}


@dataclasses.dataclass(frozen=True)
class Index:
    """An integer expression on loop positions, printed the same way in every dialect.

    Values never overflow, so no dialect needs a cast. Nothing is simplified: ``row * 1`` is printed
    as it was built.

    Attributes:
        operator: such as ``"+"``; ``"?"`` selects; ``""``: a name or a number.
        operands: of the operator; the text of a name or a number.
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
    """Return an index expression that is one variable."""
    return Index("", (text,))


def number(value: int) -> Index:
    """Return an index expression that is one integer constant."""
    return Index("", (str(value),))


def least(x: Index, y: Index) -> Index:
    """Return an index expression for the smaller of two index expressions."""
    return Index("?", (x < y, x, y))


class Address(NamedTuple):
    """A pointer plus offsets in elements."""

    base: str
    offsets: tuple[Index, ...] = ()

    def __str__(self) -> str:
        return " + ".join([self.base, *map(str, self.offsets)])


# ---- statements ----------------------------------------------------------------------------------


class Order(enum.Enum):
    """What a loop of a kernel tells the C or kernel compiler about its iterations."""

    SERIAL = "serial"
    INDEPENDENT = "independent"
    ANY_ORDER = "any order"  # independent but for sums, whose order is free


class Space(enum.Enum):
    """The kind of memory that holds an array of a kernel: private, shared or global."""

    PRIVATE = "private"
    ALIGNED = "aligned"  # private, on a cache line of its own
    SHARED = "shared"  # by the work items of a group


class Work(enum.Enum):
    """How the work of a fused region is divided over work items.

    A processor's thread that gets a range of rows is a work item too: SPAN.
    """

    SPAN = "span"  # a range begin .. end of elements, rows or units
    ITEM = "item"  # one element or column each
    GROUP = "group"  # one row for each group of work items


class Combine(Protocol):
    """How a kernel combines two values of a reduction into one, in the order of the elements.

    Attributes:
        dtype: in which it is done and kept.
        start: the text of the neutral element.
    """

    @property
    def dtype(self) -> DType: ...

    @property
    def start(self) -> str: ...

    def text(self, acc: str, x: str) -> str:
        """Return the source text of the statement that combines the value `x` into the
        variable `acc`.
        """


class Let(NamedTuple):
    """A loop-program statement: define integer constants, as ``const i64 row = i / 4, at =
    0;``.
    """

    type: str
    values: tuple[tuple[str, Index], ...]


class Position(NamedTuple):
    """A loop-program statement: define a constant with the id of a work item, group or
    lane.
    """

    type: str
    name: str
    of: str


class Exit(NamedTuple):
    """A loop-program statement: leave the kernel, loop or iteration if a condition holds."""

    condition: Index
    how: str


class Array(NamedTuple):
    """A loop-program statement: declare an array of a constant extent."""

    type: str
    name: str
    extent: Index
    space: Space = Space.PRIVATE


class Pointer(NamedTuple):
    """A loop-program statement: define a constant pointer to elements of device memory."""

    name: str
    dtype: DType
    address: Address
    writable: bool = False


class Locate(NamedTuple):
    """A loop-program statement: count a tensor index from 0; report one that is out of range.

    Names ``LABEL_counted``. A wrong index of a gather reads element 0 (``LABEL_at``); the row of a
    scatter with a wrong index is skipped.
    """

    label: str
    gathered: Gathered
    skips: bool = False


class Load(NamedTuple):
    """A loop-program statement: load an element into a named constant of its compute dtype.

    `at`: the element behind a pointer; None: the one at the address.
    """

    name: str
    dtype: DType
    source: Address
    at: Index | None = None


class Define(NamedTuple):
    """A loop-program statement: compute a value of the fused region and name it as a
    constant.
    """

    name: str
    dtype: DType
    expression: Expr
    node: GraphNode


class Store(NamedTuple):
    """A loop-program statement: store a value in memory, rounded to the dtype of the memory.

    `adds`: to the element that is there. `lane_zero`: only the first work item of a group writes.
    """

    target: str
    at: Index
    dtype: DType
    value: str
    node: GraphNode | None = None
    adds: bool = False
    lane_zero: bool = False


class Declare(NamedTuple):
    """A loop-program statement: declare a variable with a start value, both as source
    text.
    """

    type: str
    name: str
    value: str


class Start(NamedTuple):
    """A loop-program statement: declare the variables of a reduction whose order is free."""

    reduction: Reduction


class Accumulate(NamedTuple):
    """A loop-program statement: add an element to a started reduction, in an ANY_ORDER
    loop.
    """

    reduction: Reduction
    source: DType


class Finish(NamedTuple):
    """A loop-program statement: name the result of a started reduction; NaN if its flag is
    set.
    """

    reduction: Reduction


class Take(NamedTuple):
    """A loop-program statement: accumulate one element into the variable `target`, in
    element order.
    """

    combine: Combine
    target: str
    source: str
    dtype: DType  # in which the source is computed
    node: GraphNode | None = None


class GroupReduce(NamedTuple):
    """A loop-program statement: reduce ``NAME_acc`` over a group's work items; all get
    NAME.
    """

    combine: Combine
    name: str
    dtype: DType


class Assign(NamedTuple):
    """A loop-program statement: store an accumulator, rounded if the stored dtype is
    narrower.
    """

    target: str
    at: Index
    value: str
    dtype: DType | None  # to which it is rounded; None: stored as it is


class For(NamedTuple):
    """A loop-program statement: a loop over begin .. end with a body of statements."""

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
    """A loop-program statement: a loop by blocks, each inside one row of `inner` elements.

    Names ``i``, the first element; ``row``; ``first``, its position in the row; ``count``, at most
    `limit`.
    """

    inner: int
    limit: int | None
    body: Sequence[Statement]


class LaneLoop(NamedTuple):
    """A loop-program statement: a group's loop over a row, where lanes take elements in
    turn.
    """

    type: str
    row: int
    each: int
    lanes: int
    body: Sequence[Statement]


class Prefetch(NamedTuple):
    """A loop-program statement: prefetch ``count`` elements that are read soon."""

    address: Address
    itemsize: int


class Stream(NamedTuple):
    """A loop-program statement: copy ``count`` array elements to memory, past the caches."""

    target: Address
    array: str
    itemsize: int


Statement = (
    Let | Position | Exit | Array | Pointer | Locate | Load | Define | Store | Declare | Start
    | Accumulate | Finish | Take | GroupReduce | Assign | For | Blocks | LaneLoop | Prefetch
    | Stream
)  # fmt: skip


# ---- programs ------------------------------------------------------------------------------------


class Operand(NamedTuple):
    """A kernel argument: the pointer ``LABEL_data`` to an operand of the fused region."""

    label: str
    operand: int
    dtype: DType


class Partial(NamedTuple):
    """A kernel argument: memory ``NAME_parts`` for partial results that another kernel
    combines.
    """

    name: str
    dtype: DType
    size: int

    @property
    def nbytes(self) -> int:
        """The size in bytes of all partial results of a kernel's reductions."""
        return self.size * self.dtype.itemsize


@dataclasses.dataclass(frozen=True)
class LoopProgram:
    """The schedule of one kernel: arguments, loops and statements, independent of the
    language.

    Attributes:
        work: how work is divided.
        size: elements, rows or units of work; the range that spans divide.
        unit: inner elements of the region that one of them computes.
        n_operands: of the region.
        operands: those that are read.
        results: dtypes of the results ``out0 ..``.
        partials: for results that are combined later.
        checks: every index that the kernel reads through.
        body: its statements.
        lanes: work items of a group (GROUP).
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

    @property
    def watched(self) -> list[tuple[str, int]]:
        """Return the distinct (op name, axis) pairs whose indices the kernel checks for
        range.
        """
        return list(dict.fromkeys((g.op, g.axis) for g in self.checks))
