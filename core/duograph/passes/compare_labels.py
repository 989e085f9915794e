"""Graph pass that replaces gathers at labels by comparisons of positions, so that rows fuse.

    %2 = checked_labels(%1)                          %2 = checked_labels(%1)
    %3 = gather_elements(%0, %2, axis=1)     ->      %4 = equal(%2, iota)
                                                     %3 = reduce_sum(select(%4, %0, 0), axis=(1,))
    %5 = scatter_elements_add(0, %2, %1, axis=1)  -> %5 = select(%4, add(%1, 0), 0)

If the gathered tensor is computed elementwise from another one and from values per row, such as the
row's maximum, the pass gathers from that other tensor and computes the rest afterwards. A region
then finds the element in its first pass over the row:

    %4 = sub(%0, %rows)                              %6 = reduce_sum(select(%4, %0, 0), axis=(1,))
    %3 = gather_elements(%4, %2, axis=1)     ->      %3 = sub(%6, %rows)

A gather needs its operand in memory, and a scatter writes a whole tensor of zeros. On a device that
computes rows in fused regions, the whole cross entropy and its gradient become one region instead.
No value changes, except that a gathered -0.0 becomes +0.0; the pass therefore runs only above O0.
"""

from __future__ import annotations

from ..dtype import DType, bool_
from ..ir.graph import Attributes, Graph, GraphNode
from ..ir.loops import is_elementwise
from ..op import Op
from ..types import TensorType
from .context import PassContext
from .matched_ops import (
    add,
    checked_labels,
    equal,
    fill,
    gather_elements,
    iota,
    reduce_sum,
    reshape,
    scatter_elements_add,
    select,
)
from .subgraphs import everywhere

__all__ = ["compare_labels"]

# The most elementwise ops that may follow a gather which is rewritten.
MOST_OPS = 8


@everywhere
def compare_labels(graph: Graph, context: PassContext) -> Graph:
    """Replace gathers and scatters at one label per row by comparisons of positions with labels.

    The labels must be results of the op `checked_labels`. The pass runs only if the backend's costs
    (`compare_labels`) ask for it.
    """
    if not context.costs.compare_labels:
        return graph
    return _Comparison(graph, context).graph()


class _Comparison:
    """One run of the pass on a graph.

    Attributes:
        old: the graph before the pass.
        limits: the backend's limits on fused regions.
        nodes, types: nodes and types of the new graph; values keep their ids.
        producer: value -> the node of the old graph that computes it.
        masks: (labels, shape) -> id of a bool value that is True at each row's label.
    """

    def __init__(self, graph: Graph, context: PassContext) -> None:
        self.old = graph
        self.limits = context.costs.fusion
        self.types = list(graph.types)
        self.nodes: list[GraphNode] = []
        self.producer: dict[int | None, GraphNode] = {
            r: node for node in graph.nodes for r in node.results
        }
        self.masks: dict[tuple[int, tuple[int, ...]], int] = {}

    def graph(self) -> Graph:
        """Return the graph with comparisons in place of gathers and scatters that fit.

        If none fits, it is the old graph itself.
        """
        for node in self.old.nodes:
            if node.op is gather_elements and self.fits(node):
                self.gather(node)
            elif node.op is scatter_elements_add and self.fits(node):
                self.scatter(node)
            else:
                self.nodes.append(node)
        if not self.masks:
            return self.old
        return Graph(self.old.n_params, self.types, self.nodes, self.old.outputs, self.old.single)

    def tensor(self, i: int | None) -> TensorType:
        """Return the tensor type of a graph value, which must be a tensor."""
        assert i is not None
        type_ = self.types[i]
        assert isinstance(type_, TensorType)
        return type_

    def fits(self, node: GraphNode) -> bool:
        """Return whether a gather or scatter can be replaced by comparing positions with labels.

        It must access one element of each row, at an index computed by the op `checked_labels`. A
        gather must read the result of an elementwise op, and a scatter must add to zeros.
        """
        x, labels = self.tensor(node.operands[0]), self.tensor(node.operands[1])
        last = len(x.shape) - 1
        if node.attributes["axis"] != last or labels.shape != (*x.shape[:-1], 1):
            return False
        if not self.limits.min_row <= x.shape[-1] <= self.limits.max_row or x.dtype.is_complex:
            return False
        origin = self.producer.get(node.operands[0])
        if origin is None or not self.is_checked(node.operands[1]):
            return False
        if node.op is gather_elements:
            return is_elementwise(origin, self.types)
        return origin.op is fill and origin.attributes["value"] == 0

    def is_checked(self, i: int | None) -> bool:
        """Return whether a value is the result of `checked_labels`, possibly after reshapes."""
        node = self.producer.get(i)
        while node is not None and node.op is reshape:
            node = self.producer.get(node.operands[0])
        return node is not None and node.op is checked_labels

    def append(
        self,
        like: GraphNode,
        op: Op,
        operands: tuple[int, ...],
        result: TensorType,
        **attributes: object,
    ) -> int:
        """Append a call of `op`; return the id of its result, which has the type `result`.

        The node has the source location of node `like`.
        """
        self.types.append(result)
        at = len(self.types) - 1
        self.nodes.append(GraphNode(op, operands, attributes, (at,), True, like.span))
        return at

    def zero(self, like: GraphNode, dtype: DType) -> int:
        """Append a node that computes a 0-d zero of a dtype; return its result's id.

        The node has the source location of node `like`.
        """
        return self.append(like, fill, (), TensorType.of((), dtype), shape=(), value=0, dtype=dtype)

    def mask(self, like: GraphNode, labels: int, shape: tuple[int, ...]) -> int:
        """Return the id of a bool value that is True at each row's label.

        The nodes that compute it are appended once for each (labels, shape). They have the source
        location of node `like`.
        """
        found = self.masks.get((labels, shape))
        if found is None:
            dtype = self.tensor(labels).dtype
            row = TensorType.of(shape[-1:], dtype)
            positions = self.append(like, iota, (), row, shape=row.shape, axis=0, dtype=dtype)
            found = self.append(like, equal, (labels, positions), TensorType.of(shape, bool_))
            self.masks[labels, shape] = found
        return found

    def selected(self, node: GraphNode, value: int, result: int | None) -> int:
        """Append nodes for a tensor with `value` at each row's label and zeros elsewhere.

        Returns the id of the tensor: `result`, or a new id if `result` is None.
        """
        x, labels = self.tensor(node.operands[0]), node.operands[1]
        assert labels is not None
        mask = self.mask(node, labels, x.shape)
        dtype = self.tensor(value).dtype
        zero = self.zero(node, dtype)
        if result is None:
            return self.append(node, select, (mask, value, zero), TensorType.of(x.shape, dtype))
        self.nodes.append(GraphNode(select, (mask, value, zero), {}, (result,), True, node.span))
        return result

    def gather(self, node: GraphNode) -> None:
        """Append nodes that replace a gather: they sum rows that are zero except at the label.

        While the gathered tensor is computed elementwise from one tensor of the same shape and
        values per row, the nodes gather from that tensor and compute the elementwise ops on the
        found elements.
        """
        x = self.tensor(node.operands[0])
        after: list[tuple[GraphNode, int]] = []  # later ops, and the values that they read
        value = node.operands[0]
        assert value is not None
        while len(after) < MOST_OPS:
            origin = self.producer[value]
            inner = self.only_full_operand(origin, x.shape)
            if inner is None:
                break
            after.append((origin, inner))
            value = inner
        mask = self.selected(node, value, None)
        rows = (*x.shape[:-1], 1)
        attributes = {"axis": (len(x.shape) - 1,), "keepdims": True}
        found = self.call(node, reduce_sum, (mask,), value, rows, attributes, not after)
        for k, (origin, inner) in enumerate(reversed(after), 1):
            operands = tuple([found if i == inner else i for i in origin.operands])
            end = k == len(after)
            made = origin.results[0]
            found = self.call(node, origin.op, operands, made, rows, origin.attributes, end)

    def call(
        self,
        gather: GraphNode,
        op: Op,
        operands: tuple[int | None, ...],
        like: int,
        shape: tuple[int, ...],
        attributes: Attributes,
        end: bool,
    ) -> int:
        """Append a call of `op`, one of several that replace `gather`; return its result's id.

        The result has the given shape and the dtype of value `like`. `end` says that the call is
        the last one; it then defines the id of the gather's result.
        """
        if end:
            (result,) = gather.results
        else:
            result = len(self.types)
            self.types.append(TensorType.of(shape, self.tensor(like).dtype))
        self.nodes.append(GraphNode(op, operands, attributes, (result,), True, gather.span))
        return result

    def only_full_operand(self, node: GraphNode, shape: tuple[int, ...]) -> int | None:
        """Return the only operand of an elementwise node that has a given shape, or None.

        Returns None unless this operand is itself computed by an elementwise op and each other
        operand has one element per row, or one element.
        """
        if not is_elementwise(node, self.types):
            return None
        full = {i for i in node.operands if i is not None and self.tensor(i).shape == shape}
        others = [self.tensor(i).shape for i in node.operands if i not in full]
        if len(full) != 1 or any(s not in ((), (*shape[:-1], 1)) for s in others):
            return None
        (found,) = full
        origin = self.producer.get(found)
        if origin is None or not self.tensor(found).dtype.is_floating:
            return None
        return found if is_elementwise(origin, self.types) else None

    def scatter(self, node: GraphNode) -> None:
        """Append nodes that replace a scatter into zeros: they select the updates at the labels."""
        updates = self.tensor(node.operands[2])
        assert node.operands[2] is not None
        zero = self.zero(node, updates.dtype)
        plus = self.append(node, add, (node.operands[2], zero), updates)  # -0.0 becomes +0.0
        self.selected(node, plus, node.results[0])
