"""Graph pass that overlaps communication and computation by splitting collectives.

A collective starts as soon as its operands are computed; the wait is where its results are read.

    %2 = neg(%0)                     %2 = neg(%0)
    %3 = exp(%1)                     %7 = start_collective(%2)
    %4, %5 = all_reduce(%3, %2)      %3 = exp(%1)
    %6 = add(%5, %5)           ->    %8 = start_collective(%3)
                                     %5, = finish_collective(%7)
                                     %6 = add(%5, %5)
                                     %4, = finish_collective(%8)

Consecutive collectives of one kind form a run. Its tensors are put in buckets in program order, but
the tensors of one collective last first: gradients are listed in the order of the layers, and the
backward pass computes those of the last layer first. The order must not depend on when this rank
computes a tensor: all ranks must start the same collectives in the same order, also if their
programs compute the gradients in different orders. Starts keep their order, and stay after every
collective, input or output that preceded them. The readers of results are sorted by
the bucket that they need, up to the next node with effects.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..effects import IO
from ..ir.graph import Graph, GraphNode
from ..types import OBJECT, TensorType, ValueType
from .context import PassContext
from .matched_ops import (
    all_gather_parts,
    all_reduce,
    finish_collective,
    reduce_scatter_parts,
    start_collective,
)

if TYPE_CHECKING:
    from ..dtype import DType

__all__ = ["SPLIT", "overlap_collectives"]

SPLIT = (all_reduce, reduce_scatter_parts, all_gather_parts)
BUCKET_BYTES = 2 * 2**20


class _Item(NamedTuple):
    """One tensor of a collective.

    Its fields are the index of the node that computes the operand (-1 if the operand is a
    parameter), the ids of the operand and the result, and the option of this tensor, such as its
    shape.
    """

    ready: int
    operand: int
    result: int
    option: Any


class _Run:
    """Consecutive collectives of one kind, with no other effect between them.

    Attributes:
        key: the op, the group of ranks, and the options that all of them have in common.
        items: the tensors of all these collectives.
        node: the first collective.
        results: ids of the results of all these collectives.
    """

    def __init__(self, key: tuple[Any, ...], node: GraphNode) -> None:
        self.key, self.node = key, node
        self.items: list[_Item] = []
        self.results: set[int] = set()


def overlap_collectives(graph: Graph, context: PassContext) -> Graph:
    """Split the collectives of a graph into starts and waits; sub-graphs stay unchanged."""
    del context
    return _Overlap(graph).graph() if any(n.op in SPLIT for n in graph.nodes) else graph


class _Overlap:
    """Builds the graph with split collectives.

    Attributes:
        source: the graph before the pass.
        types: types of the values of the new graph.
        starts: index of a node (-1: before all nodes) -> the nodes to insert after it.
        finishes: the waits to insert, each with the index of a node that precedes all its readers.
        ready: value -> index of the node that computes it.
        earliest: index of the node after which the next start may be inserted.
        run: the current run of collectives, whose results nothing has read so far, or None.
    """

    def __init__(self, source: Graph) -> None:
        self.source = source
        self.types: list[ValueType] = list(source.types)
        self.starts: dict[int, list[GraphNode]] = {}
        self.finishes: list[tuple[GraphNode, int]] = []
        self.ready: dict[int, int] = {}
        self.earliest = -1
        self.run: _Run | None = None

    def graph(self) -> Graph:
        """Return the new graph."""
        source = self.source
        for k, node in enumerate(source.nodes):
            if self.run is not None and not self.run.results.isdisjoint(node.operands):
                self._end_run(k - 1)
            if node.op in SPLIT:
                self._join(k, node)
            elif any(isinstance(e, IO) for e in node.effects):
                self._end_run(k - 1)
                self.earliest = k
            self.ready.update(dict.fromkeys(node.results, k))
        self._end_run(len(source.nodes) - 1)
        return Graph(source.n_params, self.types, self._ordered(), source.outputs, source.single)

    def _join(self, k: int, node: GraphNode) -> None:
        """Add the collective `node` at index `k` to the current run, or begin a new run with it."""
        shapes = node.op is all_gather_parts
        common = None if shapes else node.attributes.get("reduction")
        key = (node.op, node.attributes["group"], common)
        if self.run is None or self.run.key != key:
            self._end_run(k - 1)
            self.run = _Run(key, node)
        options = node.attributes["shapes"] if shapes else [None] * len(node.operands)
        tensors = list(zip(node.operands, node.results, options, strict=True))
        for operand, result, option in reversed(tensors):
            assert operand is not None
            item = _Item(self.ready.get(operand, -1), operand, result, option)
            self.run.items.append(item)
        self.run.results.update(node.results)

    def _end_run(self, last: int) -> None:
        """Split the collectives of the current run into starts and waits, and end the run.

        The waits are inserted after the node with index `last`. That node is the run's last one or
        a later one, and precedes all nodes that read results of the run.
        """
        run, self.run = self.run, None
        if run is None:
            return
        for bucket in self._buckets(run.items):
            op, group, common = run.key
            options = tuple(i.option for i in bucket) if op is all_gather_parts else (common,)
            started = self._value(OBJECT)
            attributes = {"collective": op.name, "options": options, "group": group}
            operands = tuple(i.operand for i in bucket)
            start = GraphNode(
                start_collective, operands, attributes, (started,), True, run.node.span
            )
            self.earliest = max(self.earliest, *(i.ready for i in bucket))
            self.starts.setdefault(self.earliest, []).append(start)
            results = tuple(i.result for i in bucket)
            kinds = [k for r in results if isinstance(k := self.types[r], TensorType)]
            made = {"shapes": tuple(k.shape for k in kinds), "dtype": kinds[0].dtype}
            finish = GraphNode(finish_collective, (started,), made, results, False, run.node.span)
            self.finishes.append((finish, last))

    def _buckets(self, items: Sequence[_Item]) -> list[list[_Item]]:
        found: list[list[_Item]] = []
        room = 0
        for item in items:
            kind = self.types[item.operand]
            assert isinstance(kind, TensorType)
            same = found and self._dtype(found[-1][-1]) is kind.dtype
            if not same or kind.nbytes > room:
                found.append([])
                room = BUCKET_BYTES
            found[-1].append(item)
            room -= kind.nbytes
        return found

    def _dtype(self, item: _Item) -> DType:
        kind = self.types[item.operand]
        assert isinstance(kind, TensorType)
        return kind.dtype

    def _value(self, kind: ValueType) -> int:
        self.types.append(kind)
        return len(self.types) - 1

    def _ordered(self) -> list[GraphNode]:
        """Return all nodes in their new order, with each wait before the readers of its results."""
        nodes = self.source.nodes
        pending = sorted(self.finishes, key=lambda f: f[1])  # stable
        made = list(self.starts.get(-1, []))
        block: list[GraphNode] = []  # nodes whose order may change
        waiting: list[GraphNode] = []  # the waits among them
        for k, node in enumerate(nodes):
            if node.op not in SPLIT:
                if node.effects:
                    made += _by_need(block, waiting)
                    block, waiting = [], []
                    made.append(node)
                else:
                    block.append(node)
            while pending and pending[0][1] <= k:
                waiting.append(pending.pop(0)[0])
            block += self.starts.get(k, [])
        return made + _by_need(block, waiting)


def _by_need(block: Sequence[GraphNode], waits: Sequence[GraphNode]) -> list[GraphNode]:
    """Return nodes and waits in an order in which a node precedes the waits that it does not need.

    `block` has the nodes and waits in program order, `waits` the waits among them. Nodes that need
    the same waits keep their order, and so do all starts.
    """
    level: dict[int | None, int] = {}
    for number, wait in enumerate(waits, 1):
        level.update(dict.fromkeys(wait.results, number))
    found: list[list[GraphNode]] = [[] for _ in range(len(waits) + 1)]
    started = 0
    for node in block:
        need = max((level.get(i, 0) for i in node.operands), default=0)
        if node.op is start_collective:
            need = started = max(need, started)
        level.update(dict.fromkeys(node.results, need))
        found[need].append(node)
    made = list(found[0])
    for wait, readers in zip(waits, found[1:], strict=True):
        made += [wait, *readers]
    return made
