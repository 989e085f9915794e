"""Graph pass that converts convolutions and nearby ops to channels-last if that pays.

    %2 = conv(%0, %1)                           %4 = transpose(%0, perm=(0, 2, 3, 1))
    %3 = relu(%2)                    ->         %5 = conv_channels_last(%4, %1)
                                                %6 = relu(%5)
                                                %3 = transpose(%6, perm=(0, 3, 1, 2))

A *cluster* is a set of nodes connected by values that can be channels-last: convolutions whose
weights are call-invariant, pooling, elementwise ops, reductions, and movement along axes. A layout
is visible in the shape: the channels-last form of a value is another value, of another shape. A
value is transposed at most once where it enters a cluster, and at most once where a node outside
reads it; a value with one element per channel is only reshaped. A cluster is converted as a whole.
It is left unchanged if its transposes would cost more than the faster convolutions save (`pays`).

Graphs and sub-graphs keep their parameters and results, so a cluster never extends into another
graph.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

from ..backend.costs import LayoutCosts
from ..ir.control import SUBGRAPH_OPS, custom_call, switch, while_loop
from ..ir.graph import Attributes, Graph, GraphNode
from ..ir.loops import is_elementwise
from ..op import Op
from ..types import TensorType, ValueType, size_of
from .context import PLAIN, PassContext
from .matched_ops import (
    avg_pool,
    avg_pool_channels_last,
    concat,
    conv,
    conv_channels_last,
    max_pool,
    max_pool_channels_last,
    reshape,
    transpose,
)

__all__ = ["Cluster", "convert_to_channels_last", "pays", "suits"]

POOLING: dict[Op, Op] = {max_pool: max_pool_channels_last, avg_pool: avg_pool_channels_last}


class Cluster(NamedTuple):
    """Costs and gain of converting one cluster, a set of connected nodes, to channels-last.

    The function `pays` decides from these numbers whether the cluster is converted.

    Attributes:
        convolutions: number of convolutions among the nodes.
        traffic: bytes that the convolutions read and write, without weights.
        moved: bytes of the values that must be transposed at the borders of the cluster.
        borders: number of such values.
    """

    convolutions: int
    traffic: int
    moved: int
    borders: int


def pays(cluster: Cluster, costs: LayoutCosts) -> bool:
    """Return whether converting a cluster to channels-last saves more than its transposes cost."""
    return cluster.moved * costs.traffic_per_transpose <= cluster.traffic


def suits(weight: TensorType, groups: int, follows: bool, costs: LayoutCosts) -> bool:
    """Return whether a convolution is fast enough in channels-last layout to be converted.

    Channels-last kernels are fast if there are enough output channels to fill their vectors and the
    convolution is dense or depthwise. A 1x1 convolution whose input is already channels-last
    (`follows`) is converted in any case, because transposing its input back would cost more.
    `weight` is the type of the weight.
    """
    outputs, inputs, *kernel = weight.shape
    depthwise = inputs == 1 and outputs == groups
    full = outputs >= costs.min_channels and (groups == 1 or depthwise)
    return full or (follows and groups == 1 and size_of(kernel) == 1)


def convert_to_channels_last(graph: Graph, context: PassContext = PLAIN) -> Graph:
    """Convert clusters of convolutions and nearby ops to channels-last where that pays.

    Composites must be decomposed, and dead nodes removed, before this pass. The pass appends to
    `context.notes` a line about what it converted, and one for each reason why it left convolutions
    channels-first.
    """
    work = _Conversions(context)
    made = work.graph(graph, context.state)
    if context.notes is not None:
        context.notes.extend(work.notes())
    return made if work.converted else graph


class _Conversions:
    """Converts a graph and its sub-graphs to channels-last layout, and counts conversions.

    A sub-graph is converted once for each set of parameters that are call-invariant, which means
    that they are the same in every call.

    Attributes:
        context: facts about the program and its backend.
        costs: the backend's costs of layouts.
        claims: cache of whether the backend has a kernel of its own for an op.
        done: converted graphs by (graph, call-invariant parameters).
        converted: the clusters that were converted.
        rejected: reason -> number of convolutions that stay channels-first for this reason.
    """

    def __init__(self, context: PassContext) -> None:
        self.context = context
        self.costs = context.costs.layout
        self.claims: dict[Hashable, bool] = {}
        self.done: dict[tuple[Graph, frozenset[int]], Graph] = {}
        self.converted: list[Cluster] = []
        self.rejected: collections.Counter[str] = collections.Counter()  # convolutions by reason

    def graph(self, graph: Graph, invariant: frozenset[int]) -> Graph:
        """Return the graph in channels-last layout where that pays; the result is cached.

        `invariant` has the ids of the graph's parameters whose values are equal in all calls.
        """
        found = self.done.get((graph, invariant))
        if found is None:
            found = self.done[graph, invariant] = _Conversion(graph, invariant, self).result()
        return found

    def claimed(self, op: Op, types: tuple[TensorType, ...], attributes: Attributes) -> bool:
        """Return whether the backend has its own kernel for an op on operands of these types."""
        key = op, types, tuple(attributes.items())
        found = self.claims.get(key)
        if found is None:
            found = self.claims[key] = self.context.claims(op, types, attributes)
        return found

    def notes(self) -> list[str]:
        """Return lines for the user: what was converted, and why other convolutions were not."""
        found = []
        if self.converted:
            borders = sum(c.borders for c in self.converted)
            found.append(
                f"{_count(sum(c.convolutions for c in self.converted))} laid out channels last, "
                f"{borders} value{'s' * (borders != 1)} transposed"
            )
        for why, count in self.rejected.items():
            found.append(f"{_count(count)} with channels first: {why}")
        return found


def _count(convolutions: int) -> str:
    return f"{convolutions} convolution{'s' * (convolutions != 1)}"


class _Member(NamedTuple):
    """The op and attributes that compute a graph node in channels-last layout.

    Attributes:
        op, attributes: op and attributes of the new node.
        rank: number of axes of the channels-last values.
        converts_result: whether the result is channels-last; if not, it equals the original
            result, as for a reduction over all but the channels.
    """

    op: Op
    attributes: Attributes
    rank: int
    converts_result: bool


# ---- axes ---------------------------------------------------------------------------------------


def _to_last(rank: int) -> tuple[int, ...]:
    """Return the axis permutation from channels-first to channels-last for `rank` axes."""
    return (0, *range(2, rank), 1)


def _to_first(rank: int) -> tuple[int, ...]:
    """Return the axis permutation from channels-last to channels-first for `rank` axes."""
    return (0, rank - 1, *range(1, rank - 1))


def _extended(shape: Sequence[int], rank: int) -> tuple[int, ...]:
    """Return a shape padded on the left with axes of length 1 to `rank` axes."""
    return (*(1,) * (rank - len(shape)), *shape)


def _shape_last(shape: Sequence[int], rank: int) -> tuple[int, ...]:
    """Return the channels-last form of a shape that is broadcast to `rank` axes.

    For example, (N, C, H, W) becomes (N, H, W, C), and (C, 1, 1) with rank 4 becomes (1, 1, 1, C).
    """
    whole = _extended(shape, rank)
    return tuple([whole[a] for a in _to_last(rank)])


def _moves(shape: Sequence[int], rank: int) -> bool:
    """Return whether converting a tensor of this shape to channels-last moves elements in memory.

    It does not if the channel axis, or every axis after it, has length 1.
    """
    whole = _extended(shape, rank)
    return whole[1] > 1 and size_of(whole[2:]) > 1


class _Conversion:
    """Converts one graph to channels-last layout.

    Attributes:
        invariant: values that are the same in every call; they are computed once per value of the
            Parameters, so their layout does not matter.
        members: position of a node that can be channels-last -> how to compute it; after `select`,
            only the nodes that will be converted.
        convertible: ids of values that can be channels-last; after `select`, only the values that
            will be converted.
        producers: value -> the node that computes it.
        nodes: nodes of the new graph.
        used: values that a node or the graph's outputs read.
        converted: (value, number of axes) -> id of the value's channels-last form.
        restored: converted values that were transposed back to channels-first.
    """

    def __init__(self, graph: Graph, invariant: frozenset[int], walk: _Conversions) -> None:
        self.graph = graph
        self.walk = walk
        self.invariant: set[int | None] = {None, *invariant}
        self.types: list[ValueType] = list(graph.types)
        self.members: dict[int, _Member] = {}
        self.convertible: set[int | None] = set()
        self.producers: dict[int | None, GraphNode] = {}
        self.nodes: list[GraphNode] = []
        self.used = {i for node in graph.nodes for i in node.operands} | set(graph.outputs)
        self.converted: dict[tuple[int, int], int] = {}
        self.restored: set[int] = set()

    def tensor(self, i: int | None) -> TensorType:
        """Return the tensor type of a graph value, which must be a tensor."""
        assert i is not None
        type_ = self.types[i]
        assert isinstance(type_, TensorType)
        return type_

    def result(self) -> Graph:
        """Return the converted graph, or the same graph if nothing is converted."""
        graph = self.graph
        self.find_members()
        self.select()
        if not self.members and not any(node.op in SUBGRAPH_OPS for node in graph.nodes):
            return graph
        for at, node in enumerate(graph.nodes):
            found = self.members.get(at)
            if found is None:
                self.restore(node.operands, node)
                self.nodes.append(self.inner(node))
            else:
                self.convert(node, found)
        if graph.nodes:
            self.restore(graph.outputs, graph.nodes[-1])
        return Graph(graph.n_params, self.types, self.nodes, graph.outputs, graph.single)

    # ---- which nodes --------------------------------------------------------------------------

    def find_members(self) -> None:
        """Decide which nodes can be converted; fill `members`, `convertible` and `invariant`."""
        for at, node in enumerate(self.graph.nodes):
            self.producers.update(dict.fromkeys(node.results, node))
            is_invariant = (
                self.invariant.issuperset(node.operands)
                and not node.op.effects
                and node.op not in SUBGRAPH_OPS
            )
            if is_invariant:
                self.invariant.update(node.results)
                continue
            member = self.member(node)
            if member is not None:
                self.members[at] = member
                if member.converts_result:
                    self.convertible.add(node.results[0])

    def member(self, node: GraphNode) -> _Member | None:
        """Return how to compute a node in channels-last layout, or None if that is not possible."""
        if node.op is conv:
            return self.convolution(node)
        if node.op in POOLING:
            return self.pooling(node)
        last = [i for i in node.operands if i in self.convertible]
        result = self.types[node.results[0]] if node.single else None
        if not last or not isinstance(result, TensorType):
            return None
        rank = self.tensor(last[0]).ndim
        if is_elementwise(node, self.types):
            return _Member(node.op, node.attributes, rank, True) if result.ndim == rank else None
        return self.movement(node, rank, result)

    def movement(self, node: GraphNode, rank: int, result: TensorType) -> _Member | None:
        """Return how to compute a reduction or an op that moves axes in channels-last layout.

        The result is None if that is not possible. `rank` is the number of axes of the node's
        channels-last operand, `result` the type of its result.
        """
        op, traits, to_last = node.op, node.op.traits, _to_last(rank)
        attributes = dict(node.attributes)
        if traits.reduction:
            axes = tuple(sorted(to_last.index(a % rank) for a in attributes["axis"]))
            kept = [a for k, a in enumerate(to_last) if k not in axes]
            if not attributes["keepdims"] and kept != sorted(kept):
                return None
            return _Member(op, {**attributes, "axis": axes}, rank, attributes["keepdims"])
        if result.ndim != rank or any(self.tensor(i).ndim != rank for i in node.operands):
            return None
        if op is concat:
            axis = to_last.index(attributes["axis"] % rank)
            return _Member(op, {**attributes, "axis": axis}, rank, True)
        if traits.per_axis:
            for key in traits.per_axis:
                attributes[key] = tuple([attributes[key][a] for a in to_last])
            return _Member(op, attributes, rank, True)
        return None

    def convolution(self, node: GraphNode) -> _Member | None:
        """Return how to compute a convolution in channels-last layout.

        Returns None if the convolution is to stay channels-first, and counts the reason, such as a
        backend without a kernel, in `_Conversions.rejected`.
        """
        x, w = node.operands
        walk = self.walk
        if w not in self.invariant:
            walk.rejected["their weights may change from call to call"] += 1
            return None
        weight, type_ = self.tensor(w), self.tensor(x)
        if not suits(weight, node.attributes["groups"], x in self.convertible, walk.costs):
            walk.rejected["vectors of their channels would not be full"] += 1
            return None
        last = type_.with_(_shape_last(type_.shape, type_.ndim))
        if not walk.claimed(conv_channels_last, (last, weight), node.attributes):
            walk.rejected["the backend has no kernel of its own for them"] += 1
            return None
        return _Member(conv_channels_last, node.attributes, type_.ndim, True)

    def pooling(self, node: GraphNode) -> _Member | None:
        """Return how to compute a pooling op in channels-last layout, or None if impossible."""
        (x,) = node.operands
        # the positions of maxima have no channels-last form
        if x not in self.convertible or not self.used.isdisjoint(node.results[1:]):
            return None
        op, type_ = POOLING[node.op], self.tensor(x)
        last = type_.with_(_shape_last(type_.shape, type_.ndim))
        if not self.walk.claimed(op, (last,), node.attributes):
            return None
        return _Member(op, node.attributes, type_.ndim, True)

    # ---- which clusters -----------------------------------------------------------------------

    def select(self) -> None:
        """Remove from `members` and `convertible` the clusters whose conversion does not pay."""
        roots = self.connected()
        convolutions: collections.Counter[int] = collections.Counter()
        traffic: collections.Counter[int] = collections.Counter()
        for at, member in self.members.items():
            node = self.graph.nodes[at]
            if node.op is conv:
                key = roots[node.results[0]]
                convolutions[key] += 1
                sizes = [self.tensor(k).nbytes for k in (*self.read(node, member), *node.results)]
                traffic[key] += sum(sizes)
        borders = self.borders(roots)
        chosen: dict[int, bool] = {}
        for key, count in convolutions.items():
            moved = sum(self.tensor(i).nbytes for i in borders[key])
            cluster = Cluster(count, traffic[key], moved, len(borders[key]))
            chosen[key] = pays(cluster, self.walk.costs)
            if chosen[key]:
                self.walk.converted.append(cluster)
            else:
                why = "transposes around them would cost more than is won"
                self.walk.rejected[why] += count
        before = frozenset(self.convertible)
        for at in list(self.members):
            node = self.graph.nodes[at]
            some = next(i for i in (*node.results, *node.operands) if i in before)
            if not chosen[roots[some or 0]]:
                del self.members[at]
                self.convertible.difference_update(node.results)

    def connected(self) -> dict[int, int]:
        """Return, for each value of a cluster, one value that represents the whole cluster.

        Two values are in one cluster if they have the same representative.
        """
        parent: dict[int, int] = {}

        def root(i: int) -> int:
            while parent.setdefault(i, i) != i:
                parent[i] = i = parent[parent[i]]
            return i

        for at, member in self.members.items():
            node = self.graph.nodes[at]
            ends = [
                i
                for i in self.read(node, member)
                if i in self.convertible or _moves(self.tensor(i).shape, member.rank)
            ]
            ends += node.results[:1] if member.converts_result else ()
            for i in ends:
                parent[root(i)] = root(ends[0])
        return {i: root(i) for i in list(parent)}

    def borders(self, roots: dict[int, int]) -> dict[int, set[int]]:
        """Return the values that must be transposed at the borders of each cluster.

        `roots` maps each value to the representative of its cluster, as `connected` returns it. The
        keys of the result are also these representatives.
        """
        found: dict[int, set[int]] = collections.defaultdict(set)
        for at, node in enumerate(self.graph.nodes):
            member = self.members.get(at)
            if member is None:
                if not _is_transpose(node, _to_last):
                    for i in filter(self.leaves, node.operands):
                        assert i is not None
                        found[roots[i]].add(i)
                continue
            for i in self.read(node, member):
                moves = _moves(self.tensor(i).shape, member.rank)
                if i not in self.convertible and moves:
                    producer = self.producers.get(i)
                    if producer is None or not _is_transpose(producer, _to_first):
                        found[roots[i]].add(i)
        for i in filter(self.leaves, self.graph.outputs):
            found[roots[i]].add(i)
        return found

    def leaves(self, i: int | None) -> bool:
        """Return whether a value that becomes channels-last must be transposed for nodes outside.

        Nodes outside are those that stay channels-first. The result is False for a value that is
        not converted, and for one whose elements have the same order in both layouts.
        """
        return i in self.convertible and _moves(self.tensor(i).shape, self.tensor(i).ndim)

    def read(self, node: GraphNode, member: _Member) -> list[int]:
        """Return the ids of the operands that a node to be converted reads in channels-last form.

        Weights of convolutions and call-invariant values are left out.
        """
        operands = node.operands[:1] if node.op is conv else node.operands
        return [i for i in operands if i is not None and i not in self.invariant]

    # ---- the new graph ------------------------------------------------------------------------

    def convert(self, node: GraphNode, member: _Member) -> None:
        """Append the channels-last form of a node to the new graph, and the transposes it needs."""
        read = node.operands[:1] if node.op is conv else node.operands
        operands = [None if i is None else self.last(i, member.rank, node) for i in read]
        operands += node.operands[len(operands) :]
        results = node.results
        if member.converts_result:
            r = results[0]
            type_ = self.tensor(r)
            results = (self.new_value(type_.with_(_shape_last(type_.shape, member.rank))),)
            self.converted[r, member.rank] = results[0]
        self.nodes.append(
            GraphNode(member.op, tuple(operands), member.attributes, results, True, node.span)
        )

    def new_value(self, type_: TensorType) -> int:
        self.types.append(type_)
        return len(self.types) - 1

    def append(
        self, op: Op, i: int, attributes: Attributes, node: GraphNode, result: int | None = None
    ) -> int:
        """Append a call of `op` on value `i` to the new graph; return the id of its result.

        The new node gets the source location of `node`. `result` is the id to define; None makes a
        new id.
        """
        if result is None:
            type_ = op.result_types((self.tensor(i),), attributes)
            assert isinstance(type_, TensorType)
            result = self.new_value(type_)
        self.nodes.append(GraphNode(op, (i,), attributes, (result,), True, node.span))
        return result

    def last(self, i: int, rank: int, node: GraphNode) -> int:
        """Return the id of a value's channels-last form, with `rank` axes.

        If there is none yet, append the transpose or reshape that computes it, with the source
        location of `node`.
        """
        found = self.converted.get((i, rank))
        if found is not None:
            return found
        type_ = self.tensor(i)
        if type_.size == 1 and type_.ndim < rank:
            return i
        moves = _moves(type_.shape, rank)
        shape = _extended(type_.shape, rank) if moves else _shape_last(type_.shape, rank)
        made = i if shape == type_.shape else self.append(reshape, i, {"shape": shape}, node)
        if moves:
            made = self.append(transpose, made, {"perm": _to_last(rank)}, node)
        self.converted[i, rank] = made
        return made

    def restore(self, values: Sequence[int | None], node: GraphNode) -> None:
        """Append transposes back to channels-first for those of `values` that are channels-last.

        The transposes define the original value ids, which nodes outside clusters read. A value is
        transposed back at most once. The transposes get the source location of `node`.
        """
        for i in values:
            if i is None or i not in self.convertible or i in self.restored:
                continue
            self.restored.add(i)
            type_ = self.tensor(i)
            last = self.converted[i, type_.ndim]
            if _moves(type_.shape, type_.ndim):
                self.append(transpose, last, {"perm": _to_first(type_.ndim)}, node, i)
            else:
                self.append(reshape, last, {"shape": type_.shape}, node, i)

    def inner(self, node: GraphNode) -> GraphNode:
        """Return a node with its sub-graphs (branches, loop bodies) converted to channels-last."""
        attributes = node.attributes
        convert = self.walk.graph
        if node.op is switch:
            invariant = self.invariant_parameters(node.operands[1:])
            branches = tuple([convert(g, invariant) for g in attributes["branches"]])
            changed: Attributes = {"branches": branches}
        elif node.op is while_loop:
            invariant = self.invariant_parameters(node.operands[1:])
            carries = attributes["n_carry"]
            kept = frozenset(k for k in invariant if k >= carries)
            changed = {"body": convert(attributes["body"], kept)}
        elif node.op is custom_call:
            invariant = self.invariant_parameters(node.operands)
            changed = {"graph": convert(attributes["graph"], invariant)}
        else:
            return node
        return dataclasses.replace(node, attributes={**attributes, **changed})

    def invariant_parameters(self, operands: Sequence[int | None]) -> frozenset[int]:
        return frozenset(k for k, i in enumerate(operands) if i in self.invariant)


def _is_transpose(node: GraphNode, permutation: Callable[[int], tuple[int, ...]]) -> bool:
    """Return whether a node is a transpose by the permutation `permutation(rank)`."""
    if node.op is not transpose:
        return False
    perm = tuple(node.attributes["perm"])
    return perm == permutation(len(perm))
