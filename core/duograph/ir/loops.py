"""Decides which graph nodes one loop nest can compute, and with which strides.

The pass `fusion` asks this module which nodes one kernel can compute; the planner of
`backend.codegen` asks it for rows, columns and strides. The module may use only types and the
traits of ops; it generates no code.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from ..dtype import DType
from ..types import TensorType, ValueType
from .graph import Graph, GraphNode

__all__ = [
    "Columns",
    "columns_of",
    "dense_strides",
    "fits_column_loop",
    "gather_strides",
    "gathers_long_runs",
    "is_elementwise",
    "is_row_value",
    "merged_strides",
    "operand_types",
    "reduced_axes",
    "row_length",
    "scatter_columns",
    "strides_of",
]


class Columns(NamedTuple):
    """A tensor's elements seen as `outer` blocks of `rows` rows of `width` adjacent elements.

    A reduction over columns combines the rows of each block into one row of `width` elements. For
    example, float32[2, 3, 4] reduced over axis 1 has Columns(outer=2, rows=3, width=4).
    """

    outer: int
    rows: int
    width: int


# ---- kinds of nodes -----------------------------------------------------------------------------


def is_elementwise(node: GraphNode, types: Sequence[ValueType]) -> bool:
    """Return whether an op's scalar rule computes each element of a node's result.

    The result is False for nodes with complex tensors, dtypes that only store values, absent
    operands or several results.
    """
    op = node.op
    if op.scalar_rule is None or op.variadic or None in node.operands or not node.single:
        return False
    dtypes = [t.dtype for t in operand_types(node, types)]
    result = types[node.results[0]]
    if not isinstance(result, TensorType) or any(d.kind in "cs" for d in (*dtypes, result.dtype)):
        return False
    real = op.real_attributes
    for name, value in node.attributes.items():
        if not isinstance(value, DType) and not (name in real and isinstance(value, (int, float))):
            return False
    return not real or all(d.is_floating for d in dtypes[op.promote_from :])


def operand_types(node: GraphNode, types: Sequence[ValueType]) -> list[TensorType]:
    """Return the types of a node's operands, which must be tensors, without absent ones."""
    found = [types[i] for i in node.operands if i is not None]
    return [t for t in found if isinstance(t, TensorType)]


# ---- strides ------------------------------------------------------------------------------------


def dense_strides(shape: Sequence[int]) -> list[int]:
    """Return the strides, in elements, of a contiguous row-major array of the given shape."""
    return [math.prod(shape[k + 1 :]) for k in range(len(shape))]


def merged_strides(sizes: Sequence[int], strides: Sequence[int]) -> list[tuple[int, int]]:
    """Return (size, stride) for each axis after merging adjacent axes that one stride can describe.

    Axes of size 1 are dropped; if no axis is left the result is [(1, 0)]. For example, sizes (3, 4)
    with strides (4, 1) become [(12, 1)].
    """
    found: list[tuple[int, int]] = []
    for size, stride in zip(sizes, strides, strict=True):
        if size == 1:
            continue
        if found and found[-1][1] == stride * size:
            found[-1] = (found[-1][0] * size, stride)
        else:
            found.append((size, stride))
    return found or [(1, 0)]


def strides_of(operand: Sequence[int], shape: Sequence[int]) -> list[tuple[int, int]]:
    """Return how an operand that is broadcast to `shape` is read, as (size, stride) per axis.

    Axes are outermost first, and adjacent axes that one stride describes are merged. Strides count
    elements of the operand; a broadcast axis has stride 0.

    Examples:
        >>> from duograph.ir.loops import strides_of
        >>> strides_of((3, 4), (2, 3, 4)), strides_of((2, 3, 4), (2, 3, 4))
        ([(2, 0), (12, 1)], [(24, 1)])
        >>> strides_of((2, 1), (2, 3))
        [(2, 1), (3, 0)]
    """
    own = (1,) * (len(shape) - len(operand)) + tuple(operand)
    strides = [0 if n == 1 else stride for n, stride in zip(own, dense_strides(own))]
    return merged_strides(shape, strides)


# ---- rows and columns of reductions -------------------------------------------------------------


def reduced_axes(node: GraphNode, type_: TensorType) -> list[int]:
    """Return the axes, sorted and not negative, over which a reduction node reduces its operand.

    `type_` is the type of the operand.
    """
    axes = node.attributes["axis"]
    ndim = len(type_.shape)
    if axes is None or axes == ():
        axes = tuple(range(ndim))
    axes = (axes,) if isinstance(axes, int) else axes
    return sorted(a % ndim for a in axes) if ndim else []


def row_length(node: GraphNode, type_: TensorType) -> int:
    """Return how many elements a reduction over trailing axes combines into one.

    `type_` is the type of the operand. The result is 0 for a reduction over other axes.
    """
    found, ndim = reduced_axes(node, type_), len(type_.shape)
    if not found or found != list(range(ndim - len(found), ndim)):
        return 0
    return math.prod(type_.shape[found[0] :])


def columns_of(node: GraphNode, type_: TensorType) -> Columns | None:
    """Return how a reduction over axes before the last divides its operand into columns, or None.

    `type_` is the type of the operand. Axes of length 1 are ignored. The result is None if the
    reduced axes are not adjacent, if no reduced axis remains, or if no axis follows them.
    """
    found, shape = reduced_axes(node, type_), type_.shape
    found = [a for a in found if shape[a] != 1]
    if not found or any(shape[a] != 1 for a in range(found[0], found[-1]) if a not in found):
        return None
    outer, width = math.prod(shape[: found[0]]), math.prod(shape[found[-1] + 1 :])
    return Columns(outer, type_.size // (outer * width), width) if width > 1 else None


def is_row_value(operand: Sequence[int], shape: Sequence[int], row: int) -> bool:
    """Return whether an operand broadcast to `shape` has one element per row of `row` elements.

    Examples:
        >>> from duograph.ir.loops import is_row_value
        >>> is_row_value((8, 1), (8, 4), 4), is_row_value((4,), (8, 4), 4)
        (True, False)
        >>> is_row_value((8, 1, 1), (8, 2, 2), 4)
        True
    """
    if math.prod(operand) * row != math.prod(shape):
        return False
    return strides_of(operand, shape) == [(math.prod(operand), 1), (row, 0)]


# ---- gathers and scatters -----------------------------------------------------------------------


def gather_strides(
    node: GraphNode, source: TensorType, indices: TensorType
) -> tuple[list[int], list[int], int, int]:
    """Return the strides with which a gather node reads its source and its indices.

    Returns:
        Strides of the source and of the indices per axis of the result, the stride that one unit
        of an index moves in the source, and the number of valid indices.

    Examples:
        One row of the source per index:

            gather(float32[1000, 256], int32[8, 128], axis=0)
            ([0, 0, 1], [128, 1, 0], 256, 1000)
    """
    axis = node.attributes["axis"]
    own, at = dense_strides(source.shape), dense_strides(indices.shape)
    if node.op.traits.gather == "rows":
        strides = [*own[:axis], *[0] * len(at), *own[axis + 1 :]]
        index_strides = [*[0] * axis, *at, *[0] * (len(own) - axis - 1)]
    else:
        strides = [0 if k == axis else stride for k, stride in enumerate(own)]
        index_strides = at
    return strides, index_strides, own[axis], source.shape[axis]


def gathers_long_runs(
    node: GraphNode, operands: Sequence[TensorType], result: TensorType, least: int
) -> bool:
    """Return whether a gather reads runs of at least `least` elements with constant strides.

    A run is a sequence of result elements along which the reads of the source and of the indices
    advance by constant strides. If the runs are long, a fused loop may read the source of the
    gather through the indices. A run that covers the whole result counts as long. The result is
    False for complex and empty gathers. `operands` are the types of the source and the indices,
    `result` is the type of the result.
    """
    source, indices = operands
    if result.dtype.is_complex or not source.size or not result.size:
        return False
    *strides, _, _ = gather_strides(node, source, indices)
    run = min(merged_strides(result.shape, each)[-1][0] for each in strides)
    return run >= least or run == result.size


def scatter_columns(node: GraphNode, target: TensorType, indices: TensorType) -> Columns:
    """Return how a scatter divides its updates: for each index, one row of adjacent elements.

    `target` and `indices` are the types of these operands.
    """
    axis = node.attributes["axis"]
    return Columns(
        math.prod(target.shape[:axis]), indices.size, math.prod(target.shape[axis + 1 :])
    )


# ---- loops over columns -------------------------------------------------------------------------


def fits_column_loop(body: Graph) -> bool:
    """Return whether one loop nest over columns can compute `body`, the graph of a fused region.

    The region must end in reductions or scatters that all have the same `Columns`. The loop over
    all elements is cut wherever the strides of an operand change, which happens after a fixed
    number of elements for each axis of the operand. Of any two of these numbers one must divide the
    other, and none may be smaller than the width of a row.
    """
    return _ColumnLoop(body).fits()


class _ColumnLoop:
    """Checks whether one loop nest over columns can compute a fused region.

    Attributes:
        body: the graph of the region.
        literals: ids of results of `fill` and `constant` nodes, which become numbers in the
            generated code.
        inner_gathers: result id -> gather whose result other nodes of the region read.
        columns: the columns of all reductions and scatters, and None if some reduction has none.
        cuts: numbers of elements after which the strides of an operand change.
        n: number of elements of the whole loop, which is the largest size of any value.
    """

    def __init__(self, body: Graph) -> None:
        self.body = body
        self.literals: set[int] = set()
        self.inner_gathers: dict[int, GraphNode] = {}
        self.columns: set[Columns | None] = set()
        self.cuts: set[int] = {1}
        self.n = 0

    def fits(self) -> bool:
        """Return whether one loop nest over columns can compute the region (`fits_column_loop`)."""
        if not all(self.add(node) for node in self.body.nodes) or len(self.columns) != 1:
            return False
        (columns,) = self.columns
        if columns is None:
            return False
        cuts = self.cuts | {self.n, columns.width}
        if any(1 < cut < columns.width for cut in cuts):
            return False
        ordered = sorted(cuts, reverse=True)
        return all(small and not big % small for big, small in itertools.pairwise(ordered))

    def tensor(self, i: int | None) -> TensorType:
        assert i is not None
        type_ = self.body.types[i]
        assert isinstance(type_, TensorType)
        return type_

    def add(self, node: GraphNode) -> bool:
        """Record the strides with which a node reads its operands, and its columns if it reduces.

        Returns False if no loop nest over columns can compute the node.
        """
        result = node.results[0]
        if not node.operands:
            self.literals.add(result)
            self.n = max(self.n, self.tensor(result).size)
            return True
        if node.op.traits.scatter:
            return self.scatter(node)
        self.n = max(self.n, self.tensor(result).size)
        if node.op.traits.gather:
            if result not in self.body.outputs:
                self.inner_gathers[result] = node
                return True
            return self.gather(node, self.tensor(result).shape)
        if node.op.is_reduction:
            source = self.tensor(node.operands[0])
            self.columns.add(None if row_length(node, source) else columns_of(node, source))
            self.n = max(self.n, source.size)
            return self.read(node.operands[0], source.shape)
        first = self.tensor(node.operands[0])
        shape = first.shape if node.op.alias else self.tensor(result).shape
        return all(self.read(i, shape) for i in node.operands)

    def read(self, i: int | None, shape: Sequence[int]) -> bool:
        """Record the strides of value `i` where the region reads it broadcast to `shape`.

        Returns False if the loop nest cannot read the value. None as `i`, an absent operand, needs
        no strides.
        """
        if i is None or i in self.literals:
            return True
        if i in self.inner_gathers:
            return self.gather(self.inner_gathers[i], shape)
        if i < self.body.n_params:
            self.cut(strides_of(self.tensor(i).shape, shape))
        return True

    def gather(self, node: GraphNode, shape: Sequence[int]) -> bool:
        """Record the strides of a gather's operands where its result is broadcast to `shape`.

        Returns False if an operand is not a parameter of the region, because the loop nest cannot
        read it.
        """
        source, indices = node.operands
        if max(source or 0, indices or 0) >= self.body.n_params:
            return False
        *strides, _, _ = gather_strides(node, self.tensor(source), self.tensor(indices))
        own = self.tensor(node.results[0]).shape
        lead = [0] * (len(shape) - len(own))
        for each in strides:
            broadcast = [0 if size == 1 else stride for size, stride in zip(own, each)]
            self.cut(merged_strides(shape, lead + broadcast))
        return True

    def scatter(self, node: GraphNode) -> bool:
        """Record the columns and strides of a scatter at the end of a fused region.

        Returns False if the loop nest cannot compute the scatter.
        """
        target, indices, updates = node.operands
        assert target is not None and indices is not None
        n_params = self.body.n_params
        if indices >= n_params or (target >= n_params and target not in self.literals):
            return False
        columns = scatter_columns(node, self.tensor(target), self.tensor(indices))
        self.columns.add(columns)
        self.n = max(self.n, self.tensor(updates).size)
        self.cut(merged_strides(columns, (0, 1, 0)))
        return self.read(updates, self.tensor(updates).shape)

    def cut(self, strides: list[tuple[int, int]]) -> None:
        """Add to `cuts` the positions at which the strides of one operand change."""
        unit = 1
        for size, _ in reversed(strides[1:]):
            unit *= size
            self.cuts.add(unit)
