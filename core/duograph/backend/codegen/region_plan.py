"""What a fused region computes, ready to be printed: the loop nest, how each operand is read, what
each pass computes.

A region is a graph of elementwise ops, with perhaps reductions over trailing axes. All its *inner*
values have one number of elements, n; results of reductions, and what is computed from them before
they are spread again, are *row* values, of which there are n / row length. The elements lie in one
order, so reshapes and axes of size one mean nothing here; an operand that is broadcast is read with
steps of its own::

    add(float32[8, 128, 256], float32[128, 256])      axes 8, 32768; steps (32768, 1) and (0, 1)

What `gather` and `gather_elements` take is read where it lies, through the index: an operand whose
place has a part that another operand says::

    gather(float32[1000, 256], int32[8, 128], axis=0)    axes 1024, 256; steps (0, 1), and 256 times
    x1, of steps (1, 0)

A region may end in reductions over other axes than the last, which all leave the same *columns*:
rows of `width` neighbours are added up one after the other. Nothing in the region reads what they
give. Or it ends in scatters, which put each of those rows where an index says.

A row that is reduced is walked once per pass. Pass k computes what needs the reductions of the
passes before it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...dtype import DType
from ...errors import DuographError
from ...ir.loops import (
    Columns,
    columns_of,
    gather_strides,
    is_reduction,
    is_row_value,
    is_view,
    merged_strides,
    row_length,
    scatter_columns,
    strides_of,
)
from ...op import Op
from ...types import TensorType
from .expression import Expr, compute_dtype, constant, s
from .scalar_kernels import parameter_names

if TYPE_CHECKING:
    from ...ir.graph import Graph, GraphNode

__all__ = [
    "Access",
    "Computed",
    "Gathered",
    "Reduction",
    "RegionPlan",
    "Scatter",
    "expression_of",
    "gathered_in",
    "overwrites",
    "plan_region",
]


class NotPrintable(Exception):
    """A region whose operands do not fit one loop nest; the caller runs its ops one by one."""


class Gathered(NamedTuple):
    """The part of a place that an index says.

    Attributes:
        label: of the access that reads the index.
        n: the index counts so many.
        step: in elements, from one to the next.
        op, axis: for messages.
    """

    label: str
    n: int
    step: int
    op: str
    axis: int


class Access:
    """How an operand is read.

    Attributes:
        index: which operand of the region.
        dtype: as stored.
        steps: in elements, per axis of the loop nest, outermost first.
        per_row: whether it has at most one element for each row.
        gathered: what an index adds to the place.
    """

    __slots__ = ("index", "dtype", "steps", "per_row", "gathered")

    def __init__(
        self,
        index: int,
        dtype: DType,
        steps: tuple[int, ...],
        per_row: bool,
        gathered: Gathered | None = None,
    ) -> None:
        self.index = index
        self.dtype = dtype
        self.steps = steps
        self.per_row = per_row
        self.gathered = gathered


class Computed(NamedTuple):
    """A value of the region, as an expression over operands and other values, which it names.

    Attributes:
        name: such as ``exp_3``.
        node: what it comes from; for comments.
        expression: rounded to `dtype`.
        dtype: as stored.
        row: whether it is a row value.
        stage: an inner value: the first pass in which it can be computed; a row value: it is known
            before that pass.
        uses: names in the expression.
    """

    name: str
    node: GraphNode
    expression: Expr
    dtype: DType
    row: bool
    stage: int
    uses: tuple[str, ...]


class Reduction(NamedTuple):
    """A row value that pass `stage - 1` accumulates from the inner value `source`."""

    name: str
    node: GraphNode
    source: str
    dtype: DType
    stage: int

    @property
    def kind(self) -> str:
        """ "+" or "max"."""
        return self.node.op.traits.reduction or ""


class Scatter(NamedTuple):
    """A result that begins as another tensor, and whose rows the region changes, one after the
    other.

    Attributes:
        source: the inner value that is added or put there.
        at: what the index says; `step` is the width of the columns.
        index: the operand with the indices.
        begin: the operand that the result begins as; an expression where it is one number
            throughout.
    """

    name: str
    node: GraphNode
    source: str
    dtype: DType
    at: Gathered
    begin: int | Expr

    @property
    def kind(self) -> str:
        """ "+" or "="."""
        return self.node.op.traits.scatter or ""


class RegionPlan(NamedTuple):
    """Everything that a printer needs.

    Attributes:
        n: inner elements.
        row: elements of a row; 0 when nothing is reduced.
        axes: sizes of the loop nest, outermost first; the product is n. With reductions the last
            axes make up the row.
        accesses: by the name of the operand in expressions; one operand may be read in several
            ways.
        values: in order.
        outputs: per result of the region, the name of the value and its stored dtype.
        n_operands: of the region.
        columns: what the reductions at the end of the region leave, when it has such.
    """

    n: int
    row: int
    axes: tuple[int, ...]
    accesses: Mapping[str, Access]
    values: tuple[Computed | Reduction | Scatter, ...]
    outputs: tuple[tuple[str, DType], ...]
    n_operands: int
    columns: Columns | None = None

    @property
    def stages(self) -> int:
        """Passes over a row."""
        return 1 + max(
            (v.stage for v in self.values if isinstance(v, Computed) and not v.row), default=0
        )


def expression_of(
    op: Op, operands: Sequence[Expr], attributes: Mapping[str, Any], result: DType
) -> Expr:
    """The value of an elementwise op, rounded to `result`, as the op's own kernel computes it."""
    assert op.scalar_rule is not None
    real = operands[-1].dtype
    parameters = parameter_names(op)
    values = {
        k: constant(v, real) if k in parameters and isinstance(v, (int, float)) else v
        for k, v in attributes.items()
    }
    return s.cast(op.scalar_rule(s, *operands, **values), result)


class _Planner:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.types: list[Any] = list(graph.types)
        self.accesses: dict[Any, tuple[str, int, bool, list[tuple[int, int]]]] = {}
        self.values: list[Computed | Reduction | Scatter] = []
        self.names: dict[int, str] = {}
        self.literals: dict[int, Expr] = {}
        self.gathers: dict[int, GraphNode] = {}
        self.gathered: dict[str, Gathered] = {}
        self.known: dict[str, Computed | Reduction] = {}
        sizes: list[int] = []
        self.row = 0
        self.columns: Columns | None = None
        for node in graph.nodes:
            if node.op.traits.scatter:
                target, indices, updates = (self.types[i or 0] for i in node.operands)
                self.columns = scatter_columns(node, target, indices)
                sizes.append(updates.size)
                continue
            sizes += [self.types[r].size for r in node.results]
            if is_reduction(node.op):
                type_ = self.types[node.operands[0] or 0]
                self.row = row_length(node, type_) or self.row
                if not row_length(node, type_):
                    self.columns = columns_of(node, type_)
                sizes.append(type_.size)
        self.n = max(sizes)

    def is_row(self, type_: TensorType) -> bool:
        return self.row != 0 and type_.size != self.n

    def read(self, i: int, shape: tuple[int, ...], row: bool) -> tuple[Expr, str | None]:
        """Operand i of the region where a value of this shape is computed."""
        literal = self.literals.get(i)
        if literal is not None:
            return literal, None
        type_ = self.types[i]
        name = self.names.get(i)
        if name is None and i in self.gathers:
            return self.read_gathered(self.gathers[i], shape, row), None
        if name is not None:
            made = self.known[name]
            if self.is_row(type_) and not row and not is_row_value(type_.shape, shape, self.row):
                raise NotPrintable("a row value that is spread along other axes")
            return Expr("input", compute_dtype(made.dtype), (), name), name
        label = self.access(i, row, strides_of(type_.shape, shape))
        return Expr("input", compute_dtype(type_.dtype), (), label), None

    def access(
        self, i: int, row: bool, steps: list[tuple[int, int]], gathered: Gathered | None = None
    ) -> str:
        """The label of operand i, read with these steps."""
        key = (i, row, tuple(steps), gathered)
        found = self.accesses.get(key)
        if found is None:
            others = sum(k[0] == i for k in self.accesses)
            label = f"x{i}" + (f"_{others}" if others else "")
            found = self.accesses[key] = (label, i, row, steps)
            if gathered is not None:
                self.gathered[label] = gathered
        return found[0]

    def read_gathered(self, node: GraphNode, shape: tuple[int, ...], row: bool) -> Expr:
        """What a gather takes, spread to `shape`."""
        source, indices = node.operands[0] or 0, node.operands[1] or 0
        if any(i >= self.graph.n_params for i in (source, indices)):
            raise NotPrintable("a gather of what the region itself computes")
        *steps, step, n = gather_strides(node, self.types[source], self.types[indices])
        own = self.types[node.results[0]].shape
        lead = len(shape) - len(own)
        along = [
            merged_strides(
                shape, [0] * lead + [0 if size == 1 else s for size, s in zip(own, each)]
            )
            for each in steps
        ]
        label = self.access(indices, row, along[1])
        gathered = Gathered(label, n, step, node.op.name, node.attributes["axis"])
        label = self.access(source, row, along[0], gathered)
        return Expr("input", compute_dtype(self.types[source].dtype), (), label)

    def add(self, node: GraphNode) -> None:
        op, attributes = node.op, node.attributes
        (result,) = node.results
        type_ = self.types[result]
        if op.name == "fill":
            self.literals[result] = constant(attributes["value"], type_.dtype)
            return
        if op.name == "constant":
            self.literals[result] = constant(attributes["value"].array.item(), type_.dtype)
            return
        name = f"{op.name}_{result}"
        operands = [i for i in node.operands if i is not None]
        made: Computed | Reduction
        if op.traits.scatter:
            self.scatter(node, name)
            return
        if op.traits.gather:
            self.gathers[result] = node
            if result not in self.graph.outputs:
                return
            expression = self.read_gathered(node, type_.shape, self.is_row(type_))
            self.enter(Computed(name, node, expression, type_.dtype, self.is_row(type_), 0, ()))
            self.names[result] = name
            return
        if is_reduction(op):
            source = self.types[operands[0]]
            expr, used = self.read(operands[0], source.shape, False)
            if used is None:  # an operand of the region: it gets a name
                used = f"{name}_of"
                self.enter(Computed(used, node, expr, source.dtype, False, 0, ()))
            made = Reduction(name, node, used, type_.dtype, self.known[used].stage + 1)
            if not self.row and columns_of(node, source) != self.columns:
                raise NotPrintable("reductions that leave different columns")
        else:
            row = self.is_row(type_)
            shape = type_.shape if op.name != "reshape" else self.types[operands[0]].shape
            read = [self.read(i, shape, row) for i in operands]
            uses = tuple(dict.fromkeys(u for _, u in read if u is not None))
            exprs = [e for e, _ in read]
            if is_view(op):
                expression = exprs[0]
            else:
                expression = expression_of(op, exprs, attributes, type_.dtype)
            stage = max((self.known[u].stage for u in uses), default=0)
            made = Computed(name, node, expression, type_.dtype, row, stage, uses)
        self.names[result] = name
        self.enter(made)

    def scatter(self, node: GraphNode, name: str) -> None:
        """Enter a scatter of what the region computes."""
        target, indices, updates = (i or 0 for i in node.operands)
        if indices >= self.graph.n_params or (
            target >= self.graph.n_params and target not in self.literals
        ):
            raise NotPrintable("a scatter into what the region itself computes")
        type_ = self.types[target]
        columns = scatter_columns(node, type_, self.types[indices])
        if columns != self.columns:
            raise NotPrintable("scatters of different rows")
        expression, used = self.read(updates, self.types[updates].shape, False)
        if used is None:
            used = f"{name}_of"
            self.enter(Computed(used, node, expression, type_.dtype, False, 0, ()))
        label = self.access(indices, False, merged_strides(columns, (0, 1, 0)))
        axis = node.attributes["axis"]
        at = Gathered(label, type_.shape[axis], columns.width, node.op.name, axis)
        begin = self.literals.get(target, target)
        self.values.append(Scatter(name, node, used, type_.dtype, at, begin))
        self.names[node.results[0]] = name

    def enter(self, made: Computed | Reduction) -> None:
        self.values.append(made)
        self.known[made.name] = made

    def axes(self) -> tuple[int, ...]:
        """The loop nest into which every access fits: cut where any of them is cut."""
        cuts = {self.n, 1}
        if self.row:
            cuts.add(self.row)
        for _, _, row, steps in self.accesses.values():
            unit = self.row if row else 1
            for size, _ in reversed(steps[1:]):
                unit *= size
                cuts.add(unit)
        if any(1 < cut < self.row for cut in cuts):
            raise NotPrintable("operands that are spread inside of a row that is reduced")
        if self.columns is not None:
            cuts.add(self.columns.width)
            if self.row or any(1 < cut < self.columns.width for cut in cuts):
                raise NotPrintable("operands that are spread inside of the columns that are left")
        ordered = sorted(cuts, reverse=True)
        for big, small in itertools.pairwise(ordered):
            if small == 0 or big % small:
                raise NotPrintable("operands that are spread along axes which do not fit together")
        return tuple(big // small for big, small in itertools.pairwise(ordered)) or (1,)

    def plan(self) -> RegionPlan:
        for node in self.graph.nodes:
            self.add(node)
        axes = self.axes()
        accesses = {}
        for label, i, row, steps in self.accesses.values():
            places = self.spread(axes, steps, row)
            accesses[label] = Access(i, self.types[i].dtype, places, row, self.gathered.get(label))
        outputs = tuple([(self.names[i], self.types[i].dtype) for i in self.graph.outputs])
        return RegionPlan(
            self.n,
            self.row,
            axes,
            accesses,
            tuple(self.values),
            outputs,
            self.graph.n_params,
            self.columns,
        )

    def spread(
        self, axes: tuple[int, ...], steps: list[tuple[int, int]], row: bool
    ) -> tuple[int, ...]:
        """Steps on the axes of the nest of what has these steps on its own."""
        found = []
        unit = self.n
        for size in axes:
            unit //= size  # one step along this axis moves so many inner elements
            distance = unit
            if row:
                if unit % self.row:
                    found.append(0)  # inside a row
                    continue
                distance = unit // self.row
            offset = 0
            for own_size, own_step in reversed(steps):
                offset += distance % own_size * own_step
                distance //= own_size
            found.append(offset)
        return tuple(found)


def plan_region(graph: Graph) -> RegionPlan | None:
    """The plan of a region, or None when its operands do not fit one loop nest or its ops have no
    scalar form.
    """
    try:
        return _Planner(graph).plan()
    except (NotPrintable, DuographError):
        return None


def gathered_in(plan: RegionPlan) -> list[Gathered]:
    """All that indices say in a region."""
    found = [a.gathered for a in plan.accesses.values() if a.gathered is not None]
    return found + [v.at for v in plan.values if isinstance(v, Scatter)]


def overwrites(plan: RegionPlan) -> list[tuple[int, int]]:
    """Pairs (operand, result) that may share memory: element by element the one is read before the
    other is written.

    Only of regions of one pass, where every way to read the operand is the order in which the
    result is written.
    """
    if plan.row:
        return []
    random = {a.index for a in plan.accesses.values() if a.gathered is not None}
    random |= {plan.accesses[g.label].index for g in gathered_in(plan)}
    random |= {v.begin for v in plan.values if isinstance(v, Scatter) and isinstance(v.begin, int)}
    steps = tuple(math.prod(plan.axes[k + 1 :]) for k in range(len(plan.axes)))
    sums = {v.name for v in plan.values if not isinstance(v, Computed)}
    read: dict[int, list[Access]] = {}
    for access in plan.accesses.values():
        read.setdefault(access.index, []).append(access)
    return [
        (index, k)
        for index, accesses in read.items()
        if index not in random
        for k, (name, dtype) in enumerate(plan.outputs)
        if name not in sums
        if all(a.steps == steps and a.dtype.itemsize == dtype.itemsize for a in accesses)
    ]
