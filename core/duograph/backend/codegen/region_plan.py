"""Plans a fused region: its loop nest, the strides of its operands and its scalar expressions.

Backends call `plan_region` with the graph of a fused region when they compile the region, before
`scheduling` turns the plan into a loop program. A plan must be the same for all devices and
languages.

A region is a graph of elementwise ops, optionally with reductions over trailing axes. All its
*inner* values have n elements. Results of reductions, and values computed from them before they are
broadcast again, are *row* values: they have one element for each of the n / (row length) rows.
Elements are visited in one order, so reshapes and axes of size one do not matter. A broadcast
operand has other strides than the loop nest::

    add(float32[8, 128, 256], float32[128, 256])      axes 8, 32768; strides (32768, 1) and (0, 1)

The source of a `gather` or `gather_elements` is read in memory through the index: the index operand
supplies a part of its offset::

    gather(float32[1000, 256], int32[8, 128], axis=0)    axes 1024, 256
    offset of the source in elements: strides (0, 1) along the axes, plus 256 * index;
    the index has strides (1, 0)

A region may instead end in reductions over axes other than the last (*columns*): rows of `width`
adjacent elements are added up one after the other. Or it ends in scatters, which write each of
those rows to the row that an index names. Nothing in the region reads the results of these
reductions or scatters.

A row that is reduced is looped over several times, once for each *pass* (or *stage*). Pass k
computes the values that need the reductions of the passes before it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ...dtype import DType
from ...errors import DuographError
from ...ir.loops import (
    Columns,
    columns_of,
    gather_strides,
    is_row_value,
    merged_strides,
    row_length,
    scatter_columns,
    strides_of,
)
from ...op import Op
from ...types import TensorType
from .expression import Expr, compute_dtype, constant, keeps, narrow, s
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


class NoLoopNest(Exception):
    """Raised by the planner if the operands of a fused region do not fit one loop nest.

    `plan_region` catches it and returns None; the ops of the region then run one by one.
    """


class Gathered(NamedTuple):
    """The part of a memory offset that comes from the index operand of a gather or scatter.

    Attributes:
        label: name, in `RegionPlan.accesses`, of the access that reads the index.
        n: size of the indexed axis.
        stride: stride of that axis, in elements.
        op, axis: name of the op and its axis, for error messages.
    """

    label: str
    n: int
    stride: int
    op: str
    axis: int


class Access(NamedTuple):
    """How a fused kernel's loop nest reads one operand: by strides, plus an index for a gather.

    Attributes:
        operand: position of the operand among those of the region.
        dtype: stored dtype.
        strides: strides in elements, one for each axis of the loop nest, outermost first; 0 where
            the operand is broadcast.
        gathered: for the source of a gather, the index whose value is added to the offset; else
            None.
    """

    operand: int
    dtype: DType
    strides: tuple[int, ...]
    gathered: Gathered | None = None


class Computed(NamedTuple):
    """A value of a fused region that is computed per element or per row by a scalar expression.

    Attributes:
        name: unique name of the value, such as ``exp_3``.
        node: the graph node that computes it, for comments in the source.
        expression: the scalar expression, whose inputs are names of operands and of other values;
            it is rounded to `dtype`.
        dtype: stored dtype.
        row: whether there is one value per row instead of one per element.
        stage: the number, from 0, of the first pass over the row that can compute it. A row value
            is computed before that pass begins.
        uses: names of the region's values that occur in the expression.
    """

    name: str
    node: GraphNode
    expression: Expr
    dtype: DType
    row: bool
    stage: int
    uses: tuple[str, ...]


class Reduction(NamedTuple):
    """A value of a fused region with one element per row or column: the reduction of another value.

    Attributes:
        node: the reduction op in the graph.
        source: name of the value that is reduced.
        dtype: stored dtype of the result.
        stage: the number of the first pass that can use the result; one more than the stage of the
            value `source`.
    """

    name: str
    node: GraphNode
    source: str
    dtype: DType
    stage: int

    @property
    def kind(self) -> str:
        """How the reduction combines elements: "+" or "max"."""
        return self.node.op.traits.reduction or ""


class Scatter(NamedTuple):
    """A scatter at the end of a fused region: updates rows of a copy of a tensor, in index order.

    Attributes:
        source: name of the value that computes the updates.
        dtype: stored dtype of the result.
        at: description of the index of the row to update; its `stride` is the width of a row.
        start: the initial values of the result: the position of an operand of the region that is
            copied, or a constant that fills the result.
    """

    name: str
    node: GraphNode
    source: str
    dtype: DType
    at: Gathered
    start: int | Expr

    @property
    def kind(self) -> str:
        """Whether the scatter adds its updates to the elements ("+") or replaces them ("=")."""
        return self.node.op.traits.scatter or ""


class RegionPlan(NamedTuple):
    """Loop nest, operand reads and expressions of a fused region, before scheduling.

    Attributes:
        n: number of elements that the loop nest visits.
        row: number of elements of a row; 0 if nothing is reduced along rows.
        axes: sizes of the loop nest, outermost first; their product is n. With reductions along
            rows the last axis is the row.
        accesses: name in expressions -> how that operand is read; one operand may have several
            names.
        values: everything the kernel computes, in an order in which each value follows its inputs.
        outputs: (name of the value, stored dtype) for each result of the region.
        n_operands: number of operands of the region.
        columns: (outer, rows, width) of the reductions or scatters at the end of the region; None
            if there are none.
        positions: name in expressions -> integer dtype, for names that stand for an element's
            position in its row.
    """

    n: int
    row: int
    axes: tuple[int, ...]
    accesses: Mapping[str, Access]
    values: tuple[Computed | Reduction | Scatter, ...]
    outputs: tuple[tuple[str, DType], ...]
    n_operands: int
    columns: Columns | None = None
    positions: Mapping[str, DType] = MappingProxyType({})

    @property
    def stages(self) -> int:
        """Number of loops over the elements of each row that the fused region needs."""
        return 1 + max(
            (v.stage for v in self.values if isinstance(v, Computed) and not v.row), default=0
        )


def expression_of(
    op: Op,
    operands: Sequence[Expr],
    dtypes: Collection[DType],
    attributes: Mapping[str, object],
    result: DType,
) -> Expr:
    """Return the scalar expression of an elementwise op, rounded to the dtype `result`.

    `operands` are the expressions of its operands, `dtypes` their stored dtypes.
    """
    assert op.scalar_rule is not None
    real = operands[-1].dtype
    parameters = parameter_names(op)
    values = {
        k: constant(v, real) if k in parameters and isinstance(v, (int, float)) else v
        for k, v in attributes.items()
    }
    value = op.scalar_rule(s, *operands, **values)
    if compute_dtype(result) is result:
        return s.cast(value, result)
    value = s.cast(value, compute_dtype(result))
    if set(dtypes) == {result} and keeps(value, result):
        return value  # nothing is left to round
    return s.cast(narrow(value), result)


_AccessKey: TypeAlias = tuple[int, bool, tuple[tuple[int, int], ...], Gathered | None]


class _Planner:
    """Builds the region plan of one fused region, node by node.

    Attributes:
        accesses: each way in which an operand is read, as a dict from (operand, row, strides,
            gathered) to (label, operand, row, strides); `row` says whether it is read once per row.
        names: id of a graph value -> the name of the planned value.
        literals: id of a graph value -> the constant that fills it.
        gathers: id of a graph value -> the gather node that computes it. The kernel reads the
            gather's source wherever the value is used.
        known: planned values by name.
        counts: id of a graph value that holds the positions in a row (`iota`) -> its dtype.
        positions: name in expressions -> integer dtype, for names that stand for an element's
            position in its row.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.types: list[Any] = list(graph.types)
        self.accesses: dict[_AccessKey, tuple[str, int, bool, list[tuple[int, int]]]] = {}
        self.values: list[Computed | Reduction | Scatter] = []
        self.names: dict[int, str] = {}
        self.literals: dict[int, Expr] = {}
        self.gathers: dict[int, GraphNode] = {}
        self.gathered: dict[str, Gathered] = {}
        self.known: dict[str, Computed | Reduction] = {}
        self.counts: dict[int, DType] = {}
        self.positions: dict[str, DType] = {}
        sizes: list[int] = []
        self.row = 0
        self.columns: Columns | None = None
        for node in graph.nodes:
            if node.op.traits.scatter:
                target, indices, updates = (self.types[i or 0] for i in node.operands)
                self.columns = scatter_columns(node, target, indices)
                sizes.append(updates.size)
                continue
            if node.op.name != "iota":
                sizes += [self.types[r].size for r in node.results]
            if node.op.is_reduction:
                type_ = self.types[node.operands[0] or 0]
                self.row = row_length(node, type_) or self.row
                if not row_length(node, type_):
                    self.columns = columns_of(node, type_)
                sizes.append(type_.size)
        self.n = max(sizes)

    def is_row(self, type_: TensorType) -> bool:
        """Return whether a tensor of this type has one element per row of the loop nest."""
        return self.row != 0 and type_.size != self.n

    def read(self, i: int, shape: tuple[int, ...], row: bool) -> tuple[Expr, str | None]:
        """Return the expression by which a node of the region reads a graph value.

        Args:
            i: id of the graph value.
            shape: the shape to which the reader broadcasts it.
            row: whether the reader has one element per row.

        Returns:
            the expression, and the name of the value in the plan. The name is None for an
            operand, a constant or a gather, which are read directly and are not values of the plan.
        """
        literal = self.literals.get(i)
        if literal is not None:
            return literal, None
        type_ = self.types[i]
        name = self.names.get(i)
        if i in self.counts:
            return self.position(i, shape, row), None
        if name is None and i in self.gathers:
            return self.read_gathered(self.gathers[i], shape, row), None
        if name is not None:
            made = self.known[name]
            if self.is_row(type_) and not row and not is_row_value(type_.shape, shape, self.row):
                raise NoLoopNest("a row value that is broadcast along other axes")
            return Expr("input", compute_dtype(made.dtype), (), name), name
        label = self.access(i, row, strides_of(type_.shape, shape))
        return Expr("input", compute_dtype(type_.dtype), (), label), None

    def position(self, i: int, shape: tuple[int, ...], row: bool) -> Expr:
        """Return the expression of an element's position in its row, for an `iota` value `i`.

        Raises:
            NoLoopNest: the reader has one element per row, or the positions are those along another
                axis.
        """
        if row or shape[-1:] != self.types[i].shape:
            raise NoLoopNest("positions along another axis than that of rows")
        dtype = self.counts[i]
        label = f"position_{dtype.name}"
        self.positions[label] = dtype
        return Expr("input", compute_dtype(dtype), (), label)

    def access(
        self, i: int, row: bool, steps: list[tuple[int, int]], gathered: Gathered | None = None
    ) -> str:
        """Return the label under which the kernel reads operand `i` with the given strides.

        `steps` are (size, stride) pairs, outermost first; `row` says whether the operand is read
        once per row. Equal reads have the same label; a new label is entered in `accesses`.
        """
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
        """Return the expression that reads a gather's source tensor through its index.

        `shape` is the shape to which the gather's result is broadcast; `row` says whether the
        reader has one element per row.

        Raises:
            NoLoopNest: the source or the index is not an operand of the region.
        """
        source, indices = node.operands[0] or 0, node.operands[1] or 0
        if any(i >= self.graph.n_params for i in (source, indices)):
            raise NoLoopNest("a gather of what the region itself computes")
        *strides, stride, n = gather_strides(node, self.types[source], self.types[indices])
        own = self.types[node.results[0]].shape
        lead = len(shape) - len(own)
        along = [
            merged_strides(
                shape, [0] * lead + [0 if size == 1 else s for size, s in zip(own, each)]
            )
            for each in strides
        ]
        label = self.access(indices, row, along[1])
        gathered = Gathered(label, n, stride, node.op.name, node.attributes["axis"])
        label = self.access(source, row, along[0], gathered)
        return Expr("input", compute_dtype(self.types[source].dtype), (), label)

    def add(self, node: GraphNode) -> None:
        """Add to the plan the value, constant, gather or scatter that a graph node computes."""
        op, attributes = node.op, node.attributes
        (result,) = node.results
        type_ = self.types[result]
        if op.name == "fill":
            self.literals[result] = constant(attributes["value"], type_.dtype)
            return
        if op.name == "constant":
            self.literals[result] = constant(attributes["value"].array.item(), type_.dtype)
            return
        if op.name == "iota":
            if type_.shape != (self.row,):
                raise NoLoopNest("positions that do not count the elements of a row")
            self.counts[result] = type_.dtype
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
        if op.is_reduction:
            source = self.types[operands[0]]
            expr, used = self.read(operands[0], source.shape, False)
            if used is None:  # an operand of the region: it gets a name
                used = f"{name}_of"
                self.enter(Computed(used, node, expr, source.dtype, False, 0, ()))
            made = Reduction(name, node, used, type_.dtype, self.known[used].stage + 1)
            if not self.row and columns_of(node, source) != self.columns:
                raise NoLoopNest("reductions that leave different columns")
        else:
            row = self.is_row(type_)
            shape = type_.shape if op.name != "reshape" else self.types[operands[0]].shape
            read = [self.read(i, shape, row) for i in operands]
            uses = tuple(dict.fromkeys(u for _, u in read if u is not None))
            exprs = [e for e, _ in read]
            if op.is_view:
                expression = exprs[0]
            else:
                dtypes = [self.types[i].dtype for i in operands]
                expression = expression_of(op, exprs, dtypes, attributes, type_.dtype)
            stage = max((self.known[u].stage for u in uses), default=0)
            made = Computed(name, node, expression, type_.dtype, row, stage, uses)
        self.names[result] = name
        self.enter(made)

    def scatter(self, node: GraphNode, name: str) -> None:
        """Add a scatter node to the region plan, as a `Scatter` called `name`."""
        target, indices, updates = (i or 0 for i in node.operands)
        if indices >= self.graph.n_params or (
            target >= self.graph.n_params and target not in self.literals
        ):
            raise NoLoopNest("a scatter into what the region itself computes")
        type_ = self.types[target]
        columns = scatter_columns(node, type_, self.types[indices])
        if columns != self.columns:
            raise NoLoopNest("scatters of different rows")
        expression, used = self.read(updates, self.types[updates].shape, False)
        if used is None:
            used = f"{name}_of"
            self.enter(Computed(used, node, expression, type_.dtype, False, 0, ()))
        label = self.access(indices, False, merged_strides(columns, (0, 1, 0)))
        axis = node.attributes["axis"]
        at = Gathered(label, type_.shape[axis], columns.width, node.op.name, axis)
        start = self.literals.get(target, target)
        self.values.append(Scatter(name, node, used, type_.dtype, at, start))
        self.names[node.results[0]] = name

    def enter(self, made: Computed | Reduction) -> None:
        """Append a computed value or a reduction to the plan, under its name."""
        self.values.append(made)
        self.known[made.name] = made

    def axes(self) -> tuple[int, ...]:
        """Return the sizes of the loop nest's axes, outermost first.

        The n elements are split into a further axis wherever the strides of some operand change.

        Raises:
            NoLoopNest: the strides of two operands change at positions that do not divide each
                other, or the strides of one operand change inside a reduced row or inside the rows
                of a column reduction.
        """
        cuts = {self.n, 1}
        if self.row:
            cuts.add(self.row)
        for _, _, row, steps in self.accesses.values():
            unit = self.row if row else 1
            for size, _ in reversed(steps[1:]):
                unit *= size
                cuts.add(unit)
        if any(1 < cut < self.row for cut in cuts):
            raise NoLoopNest("operands that are broadcast inside of a reduced row")
        if self.columns is not None:
            cuts.add(self.columns.width)
            if self.row or any(1 < cut < self.columns.width for cut in cuts):
                raise NoLoopNest("operands that are broadcast inside of reduced columns")
        ordered = sorted(cuts, reverse=True)
        for big, small in itertools.pairwise(ordered):
            if small == 0 or big % small:
                raise NoLoopNest("operands that are broadcast along axes which do not fit together")
        return tuple(big // small for big, small in itertools.pairwise(ordered)) or (1,)

    def plan(self) -> RegionPlan:
        """Plan all nodes of the fused region; return the finished plan."""
        for node in self.graph.nodes:
            self.add(node)
        axes = self.axes()
        accesses = {}
        for label, i, row, steps in self.accesses.values():
            strides = self.nest_strides(axes, steps, row)
            accesses[label] = Access(i, self.types[i].dtype, strides, self.gathered.get(label))
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
            self.positions,
        )

    def nest_strides(
        self, axes: tuple[int, ...], steps: list[tuple[int, int]], row: bool
    ) -> tuple[int, ...]:
        """Convert an operand's strides along its own axes to strides along the loop nest's axes.

        Args:
            axes: sizes of the loop nest, outermost first.
            steps: (size, stride) of each of the operand's own axes.
            row: whether the operand is read once per row; its stride inside a row is then 0.
        """
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
    """Return the plan of a fused region: its loop nest, operand accesses and expressions.

    Returns None if its operands do not fit one loop nest or an op has no scalar expression.
    """
    try:
        return _Planner(graph).plan()
    except (NoLoopNest, DuographError):
        return None


def gathered_in(plan: RegionPlan) -> list[Gathered]:
    """Return the indices of all gathers and scatters by which a fused region reads or writes."""
    found = [a.gathered for a in plan.accesses.values() if a.gathered is not None]
    return found + [v.at for v in plan.values if isinstance(v, Scatter)]


def overwrites(plan: RegionPlan) -> list[tuple[int, int]]:
    """Return the (operand, result) pairs of a fused region that may occupy the same buffer.

    The first number of a pair is a position among the region's operands, the second among its
    results. The region must not reduce rows and must read the operand only at the element that it
    writes next. The elements of the operand and of the result must have the same size. Results of
    reductions and scatters are in no pair.
    """
    if plan.row:
        return []
    random = {a.operand for a in plan.accesses.values() if a.gathered is not None}
    random |= {plan.accesses[g.label].operand for g in gathered_in(plan)}
    random |= {v.start for v in plan.values if isinstance(v, Scatter) and isinstance(v.start, int)}
    in_order = tuple(math.prod(plan.axes[k + 1 :]) for k in range(len(plan.axes)))
    sums = {v.name for v in plan.values if not isinstance(v, Computed)}
    read: dict[int, list[Access]] = {}
    for access in plan.accesses.values():
        read.setdefault(access.operand, []).append(access)
    return [
        (index, k)
        for index, accesses in read.items()
        if index not in random
        for k, (name, dtype) in enumerate(plan.outputs)
        if name not in sums
        if all(a.strides == in_order and a.dtype.itemsize == dtype.itemsize for a in accesses)
    ]
