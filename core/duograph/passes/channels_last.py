"""Lays convolutions out channels last, and with them what lies between them, where that pays.

    %2 = conv(%0, %1)                           %4 = transpose(%0, perm=(0, 2, 3, 1))
    %3 = relu(%2)                    ->         %5 = conv_channels_last(%4, %1)
                                                %6 = relu(%5)
                                                %3 = transpose(%6, perm=(0, 3, 1, 2))

A *cluster* is what hangs together by values of such a form: convolutions whose weights follow from
state that stays, pooling, elementwise ops, reductions, and movement along axes. Types are explicit,
so a value that is laid out is simply one of another shape. It is transposed where something outside
of the cluster reads it, and what the cluster reads from outside is transposed on the way in, each
once; what has one element for each channel is only given another shape. A cluster is rewritten as a
whole, or left alone when its borders cost more than is won (`pays`).

Graphs keep their parameters and results, those inside of others too: a cluster ends at the border
of its graph.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..backend.costs import LayoutCosts
from ..ir.graph import Graph, GraphNode
from ..ir.loops import is_elementwise
from ..op import OPS, Op
from ..types import TensorType, size_of
from .context import PLAIN, PassContext
from .subgraphs import HOLDERS

__all__ = ["Cluster", "convert_to_channels_last", "pays", "suits"]

_REDUCTIONS = {"reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_all", "reduce_any"}
# Ops that move elements along axes -> their attributes with one item for each axis.
_PER_AXIS = {
    "pad_constant": ("low", "high"),
    "strided_slice": ("begin", "end", "strides"),
    "broadcast_to": ("shape",),
}


class Cluster(NamedTuple):
    """What `pays` decides on.

    Attributes:
        convolutions: how many.
        traffic: bytes of what they read and write, weights left out.
        moved: bytes of the values that are transposed at the borders.
        borders: how many these are.
    """

    convolutions: int
    traffic: int
    moved: int
    borders: int


def pays(cluster: Cluster, costs: LayoutCosts) -> bool:
    """Whether a cluster is laid out: a convolution alone between two transposes is not."""
    return cluster.moved * costs.traffic_per_transpose <= cluster.traffic


def suits(weight: TensorType, groups: int, follows: bool, costs: LayoutCosts) -> bool:
    """Whether a convolution is as fast with channels last as with channels first, or nearly so.

    Vectors of channels are what makes it fast, so all channels are together, or each is by itself,
    and they are enough. One of kernels of one element that has its input laid out costs less than
    to transpose that.
    """
    outputs, inputs, *kernel = weight.shape
    full = outputs >= costs.min_channels and (groups == 1 or (inputs == 1 and outputs == groups))
    return full or (follows and groups == 1 and size_of(kernel) == 1)


def convert_to_channels_last(graph: Graph, context: PassContext = PLAIN) -> Graph:
    """The graph with its clusters laid out channels last, and so the graphs that its nodes hold.

    Composites are decomposed already, and dead nodes removed. `context.notes` gets a line for what
    was laid out, and for each reason why something was not.
    """
    work = _Walk(context)
    made = work.graph(graph, context.state)
    if context.notes is not None:
        context.notes.extend(work.notes())
    return made if work.laid else graph


class _Walk:
    """Lays out graphs, each once for what is still of its parameters; counts what was done."""

    def __init__(self, context: PassContext) -> None:
        self.claims = context.claims
        self.costs = context.costs.layout
        self.known: dict[Any, bool] = {}
        self.done: dict[tuple[Graph, frozenset[int]], Graph] = {}
        self.laid: list[Cluster] = []
        self.left: collections.Counter[str] = collections.Counter()

    def graph(self, graph: Graph, still: frozenset[int]) -> Graph:
        found = self.done.get((graph, still))
        if found is None:
            found = self.done[graph, still] = _Layout(graph, still, self).result()
        return found

    def claimed(self, op: Op, types: tuple[TensorType, ...], attributes: Mapping[str, Any]) -> bool:
        key = op, types, tuple(attributes.items())
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = self.claims(op, types, attributes)
        return found

    def notes(self) -> list[str]:
        found = []
        if self.laid:
            borders = sum(c.borders for c in self.laid)
            found.append(
                f"{_convolutions(sum(c.convolutions for c in self.laid))} laid out channels last, "
                f"{borders} value{'s' * (borders != 1)} transposed"
            )
        for why, count in self.left.items():
            found.append(f"{_convolutions(count)} with channels first: {why}")
        return found


def _convolutions(count: int) -> str:
    return f"{count} convolution{'s' * (count != 1)}"


class _Member(NamedTuple):
    """A node in its new form.

    Attributes:
        op: of the new node.
        attributes: of the new node.
        rank: of the values that are laid out.
        laid: whether the result is laid out; else it is the same in either form.
    """

    op: Op
    attributes: Mapping[str, Any]
    rank: int
    laid: bool


def _perm(rank: int) -> tuple[int, ...]:
    """The axes of a value that is laid out, by where they were."""
    return (0, *range(2, rank), 1)


def _back(rank: int) -> tuple[int, ...]:
    return (0, rank - 1, *range(1, rank - 1))


def _laid_out(shape: Sequence[int], rank: int) -> tuple[int, ...]:
    """The shape of a value that is laid out; one of fewer axes is first given those that
    broadcasting adds.
    """
    whole = (1,) * (rank - len(shape)) + tuple(shape)
    return tuple([whole[a] for a in _perm(rank)])


def _moves(shape: Sequence[int], rank: int) -> bool:
    """Whether elements change places, or all stay where they are in memory."""
    whole = (1,) * (rank - len(shape)) + tuple(shape)
    return whole[1] > 1 and size_of(whole[2:]) > 1


class _Layout:
    """Lays out one graph."""

    def __init__(self, graph: Graph, still: frozenset[int], walk: _Walk) -> None:
        self.graph = graph
        self.walk = walk
        self.still: set[int | None] = {None, *still}
        self.types: list[Any] = list(graph.types)
        self.members: dict[int, _Member] = {}  # by position
        self.laid: set[int | None] = set()  # values
        self.maker: dict[int | None, GraphNode] = {}
        self.nodes: list[GraphNode] = []
        self.read_at_all = {i for node in graph.nodes for i in node.operands} | set(graph.outputs)
        self.form: dict[tuple[int, int], int] = {}  # of a value, for members of a rank
        self.given: set[int] = set()  # values that are laid out and there in their first form too

    def result(self) -> Graph:
        for at, node in enumerate(self.graph.nodes):
            self.maker.update(dict.fromkeys(node.results, node))
            # what follows from what is still is computed once in any form
            if (
                self.still.issuperset(node.operands)
                and not node.op.effects
                and node.op.name not in HOLDERS
            ):
                self.still.update(node.results)
                continue
            member = self.member(node)
            if member is not None:
                self.members[at] = member
                if member.laid:
                    self.laid.add(node.results[0])
        self.select()
        graph = self.graph
        if not self.members and not any(node.op.name in HOLDERS for node in graph.nodes):
            return graph
        for at, node in enumerate(graph.nodes):
            found = self.members.get(at)
            if found is None:
                self.first(node.operands, node)
                self.nodes.append(self.inner(node))
            else:
                self.rewrite(node, found)
        if graph.nodes:
            self.first(graph.outputs, graph.nodes[-1])
        return Graph(graph.n_params, self.types, self.nodes, graph.outputs, graph.single)

    # ---- which nodes --------------------------------------------------------------------------

    def member(self, node: GraphNode) -> _Member | None:
        """The node in its new form, if it has one here."""
        op, name = node.op, node.op.name
        if name == "conv":
            return self.convolution(node)
        if name in ("max_pool", "avg_pool"):
            return self.pooling(node)
        laid = [i for i in node.operands if i in self.laid]
        result = self.types[node.results[0]] if node.single else None
        if not laid or not isinstance(result, TensorType):
            return None
        rank = self.types[laid[0] or 0].ndim
        if is_elementwise(node, self.types):
            return _Member(op, node.attributes, rank, True) if result.ndim == rank else None
        attributes = dict(node.attributes)
        if name in _REDUCTIONS:
            axes = tuple(sorted(_perm(rank).index(a % rank) for a in attributes["axis"]))
            kept = [a for k, a in enumerate(_perm(rank)) if k not in axes]
            if not attributes["keepdims"] and kept != sorted(kept):
                return None
            return _Member(op, {**attributes, "axis": axes}, rank, attributes["keepdims"])
        if result.ndim != rank or any(self.types[i or 0].ndim != rank for i in node.operands):
            return None
        if name == "concat":
            axis = _perm(rank).index(attributes["axis"] % rank)
            return _Member(op, {**attributes, "axis": axis}, rank, True)
        if name in _PER_AXIS:
            for key in _PER_AXIS[name]:
                attributes[key] = tuple([attributes[key][a] for a in _perm(rank)])
            return _Member(op, attributes, rank, True)
        return None

    def convolution(self, node: GraphNode) -> _Member | None:
        x, w = node.operands
        if w not in self.still:
            self.walk.left["their weights may change from call to call"] += 1
            return None
        if not suits(
            self.types[w or 0], node.attributes["groups"], x in self.laid, self.walk.costs
        ):
            self.walk.left["vectors of their channels would not be full"] += 1
            return None
        type_ = self.types[x or 0]
        shape = _laid_out(type_.shape, type_.ndim)
        op = OPS["conv_channels_last"]
        if not self.walk.claimed(op, (type_.with_(shape), self.types[w or 0]), node.attributes):
            self.walk.left["the backend has no kernel of its own for them"] += 1
            return None
        return _Member(op, node.attributes, type_.ndim, True)

    def pooling(self, node: GraphNode) -> _Member | None:
        (x,) = node.operands
        # where the largest elements were found is a result that has no other form
        if x not in self.laid or not self.read_at_all.isdisjoint(node.results[1:]):
            return None
        op, type_ = OPS[f"{node.op.name}_channels_last"], self.types[x or 0]
        if not self.walk.claimed(
            op, (type_.with_(_laid_out(type_.shape, type_.ndim)),), node.attributes
        ):
            return None
        return _Member(op, node.attributes, type_.ndim, True)

    # ---- which clusters -----------------------------------------------------------------------

    def select(self) -> None:
        """Leave alone the clusters that do not pay."""
        parent: dict[Any, Any] = {}

        def root(i: Any) -> Any:
            while parent.setdefault(i, i) != i:
                parent[i] = i = parent[parent[i]]
            return i

        for at, member in self.members.items():
            node = self.graph.nodes[at]
            ends = [
                i
                for i in self.read(node, member)
                if i in self.laid or _moves(self.types[i].shape, member.rank)
            ]
            ends += node.results[:1] if member.laid else ()
            for i in ends:
                parent[root(i)] = root(ends[0])
        convolutions: collections.Counter[Any] = collections.Counter()
        traffic: collections.Counter[Any] = collections.Counter()
        borders: dict[Any, set[int | None]] = collections.defaultdict(set)
        for at, node in enumerate(self.graph.nodes):
            found = self.members.get(at)
            if found is None:
                for out in node.operands:
                    if not self.turns(node) and self.leaves(out):
                        borders[root(out)].add(out)
                continue
            read = self.read(node, found)
            if node.op.name == "conv":
                key = root(node.results[0])
                convolutions[key] += 1
                traffic[key] += sum(self.types[k].nbytes for k in (*read, *node.results))
            for i in read:
                if (
                    i not in self.laid
                    and _moves(self.types[i].shape, found.rank)
                    and not self.was_turned(i)
                ):
                    borders[root(i)].add(i)
        for i in filter(self.leaves, self.graph.outputs):
            borders[root(i)].add(i)
        chosen: dict[Any, bool] = {}
        for key, count in convolutions.items():
            moved = sum(self.types[i or 0].nbytes for i in borders[key])
            cluster = Cluster(count, traffic[key], moved, len(borders[key]))
            chosen[key] = pays(cluster, self.walk.costs)
            if chosen[key]:
                self.walk.laid.append(cluster)
            else:
                self.walk.left["transposes around them would cost more than is won"] += count
        every = frozenset(self.laid)
        for at in list(self.members):
            node = self.graph.nodes[at]
            if not chosen[root(next(i for i in (*node.results, *node.operands) if i in every))]:
                del self.members[at]
                self.laid.difference_update(node.results)

    def leaves(self, i: int | None) -> bool:
        """Whether a value is transposed where it is read outside."""
        return i in self.laid and _moves(self.types[i or 0].shape, self.types[i or 0].ndim)

    def read(self, node: GraphNode, member: _Member) -> list[int]:
        """The operands that are laid out for a member and change from call to call."""
        operands = node.operands[:1] if node.op.name == "conv" else node.operands
        return [i for i in operands if i is not None and i not in self.still]

    def turns(self, node: GraphNode) -> bool:
        """Whether a node gives what it reads in the form that is there already."""
        return node.op.name == "transpose" and tuple(node.attributes["perm"]) == _perm(
            len(node.attributes["perm"])
        )

    def was_turned(self, i: int) -> bool:
        """Whether what is laid out of a value is there already."""
        node = self.maker.get(i)
        if node is None or node.op.name != "transpose":
            return False
        perm = tuple(node.attributes["perm"])
        return perm == _back(len(perm))

    # ---- the new graph ------------------------------------------------------------------------

    def rewrite(self, node: GraphNode, member: _Member) -> None:
        read = node.operands[:1] if node.op.name == "conv" else node.operands
        operands = [None if i is None else self.last(i, member.rank, node) for i in read]
        operands += node.operands[len(operands) :]
        results = node.results
        if member.laid:
            r = results[0]
            type_ = self.types[r]
            results = (self.value(type_.with_(_laid_out(type_.shape, member.rank))),)
            self.form[r, member.rank] = results[0]
        self.nodes.append(
            GraphNode(member.op, tuple(operands), member.attributes, results, True, node.span)
        )

    def value(self, type_: TensorType) -> int:
        self.types.append(type_)
        return len(self.types) - 1

    def add(
        self,
        op: str,
        operand: int,
        attributes: dict[str, Any],
        node: GraphNode,
        result: int | None = None,
    ) -> int:
        """A node for `node`; its result, a new one unless it is given."""
        if result is None:
            type_ = OPS[op].result_types((self.types[operand],), attributes)
            assert isinstance(type_, TensorType)
            result = self.value(type_)
        self.nodes.append(GraphNode(OPS[op], (operand,), attributes, (result,), True, node.span))
        return result

    def last(self, i: int, rank: int, node: GraphNode) -> int:
        """A value, of which `node` reads the form that is laid out."""
        found = self.form.get((i, rank))
        if found is not None:
            return found
        type_ = self.types[i]
        if type_.size == 1 and type_.ndim < rank:
            return i
        shape = _laid_out(type_.shape, rank)
        if not _moves(type_.shape, rank):
            made = i if shape == type_.shape else self.add("reshape", i, {"shape": shape}, node)
        else:
            whole = (1,) * (rank - type_.ndim) + type_.shape
            made = i if whole == type_.shape else self.add("reshape", i, {"shape": whole}, node)
            made = self.add("transpose", made, {"perm": _perm(rank)}, node)
        self.form[i, rank] = made
        return made

    def first(self, values: Sequence[int | None], node: GraphNode) -> None:
        """Give values that are laid out, and that `node` reads, in their first form too."""
        for i in values:
            if i is None or i not in self.laid or i in self.given:
                continue
            self.given.add(i)
            type_ = self.types[i]
            laid = self.form[i, type_.ndim]
            if _moves(type_.shape, type_.ndim):
                self.add("transpose", laid, {"perm": _back(type_.ndim)}, node, i)
            else:
                self.add("reshape", laid, {"shape": type_.shape}, node, i)

    def inner(self, node: GraphNode) -> GraphNode:
        """The node with the graphs that it runs laid out; which operands are their parameters
        depends on the op.
        """
        name, attributes = node.op.name, node.attributes
        if name == "switch":
            still = self.parameters(node.operands[1:])
            branches = tuple([self.walk.graph(g, still) for g in attributes["branches"]])
            return dataclasses.replace(node, attributes={**attributes, "branches": branches})
        if name == "while_loop":
            carried = attributes["n_carry"]
            still = frozenset(k for k in self.parameters(node.operands[1:]) if k >= carried)
            return dataclasses.replace(
                node, attributes={**attributes, "body": self.walk.graph(attributes["body"], still)}
            )
        if name == "custom_call":
            inner = self.walk.graph(attributes["graph"], self.parameters(node.operands))
            return dataclasses.replace(node, attributes={**attributes, "graph": inner})
        return node

    def parameters(self, operands: Sequence[int | None]) -> frozenset[int]:
        return frozenset(k for k, i in enumerate(operands) if i in self.still)
