"""Converts one graph to channels-last layout: which nodes, which clusters, and the new nodes.

The pass `channels_last` makes a `Conversion` for each graph and sub-graph. The new graph must have
the parameters and results of the old one, in the same layout.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..ir.control import SUBGRAPH_OPS, custom_call, switch, while_loop
from ..ir.graph import Attributes, Graph, GraphNode
from ..ir.loops import is_elementwise
from ..op import Op
from ..types import TensorType, ValueType, size_of
from .channels_last_costs import Cluster, pays, suits
from .matched_ops import (
    avg_pool,
    avg_pool_channels_last,
    avg_pool_grad,
    avg_pool_grad_channels_last,
    batch_moments,
    batch_products,
    concat,
    conv,
    conv_channels_last,
    conv_input_grad,
    conv_input_grad_channels_last,
    conv_weight_grad,
    conv_weight_grad_channels_last,
    max_pool,
    max_pool_channels_last,
    max_pool_grad,
    max_pool_grad_channels_last,
    max_pool_indices_channels_last,
    reshape,
    transpose,
)

if TYPE_CHECKING:
    from .channels_last import Conversions

__all__ = ["Conversion"]

CONVOLUTIONS: dict[Op, Op] = {
    conv: conv_channels_last,
    conv_input_grad: conv_input_grad_channels_last,
    conv_weight_grad: conv_weight_grad_channels_last,
}
POOLING: dict[Op, Op] = {
    max_pool: max_pool_channels_last,
    avg_pool: avg_pool_channels_last,
    max_pool_grad: max_pool_grad_channels_last,
    avg_pool_grad: avg_pool_grad_channels_last,
}
# Sums over channels, whose channels-last form is the op itself on a matrix with a column for each
# channel -> how many of its operands are images.
BATCH_SUMS: dict[Op, int] = {batch_moments: 1, batch_products: 2}


class _Member(NamedTuple):
    """The op and attributes that compute a graph node in channels-last layout.

    Attributes:
        op, attributes: op and attributes of the new node.
        rank: number of axes of the channels-last values.
        converts_result: whether the results are channels-last; if not, they equal the original
            results, as for a reduction over all but the channels.
        images: number of leading operands that are channels-last, as opposed to weights and numbers
            per channel; None if all are.
        flat: whether these operands are reshaped to matrices with a column for each channel.
    """

    op: Op
    attributes: Attributes
    rank: int
    converts_result: bool
    images: int | None = None
    flat: bool = False


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


def _matrix(shape: Sequence[int]) -> tuple[int, int]:
    """Return the shape of channels-first images as a matrix with a column for each channel."""
    return shape[0] * size_of(shape[2:]), shape[1]


def _moves(shape: Sequence[int], rank: int) -> bool:
    """Return whether converting a tensor of this shape to channels-last moves elements in memory.

    It does not if the channel axis, or every axis after it, has length 1.
    """
    whole = _extended(shape, rank)
    return whole[1] > 1 and size_of(whole[2:]) > 1


class Conversion:
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

    def __init__(self, graph: Graph, invariant: frozenset[int], walk: Conversions) -> None:
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
                self.restore(self.weights(node, found), node)
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
                    self.convertible.update(self.converted_results(node))

    def member(self, node: GraphNode) -> _Member | None:
        """Return how to compute a node in channels-last layout, or None if that is not possible."""
        if node.op in CONVOLUTIONS:
            return self.convolution(node)
        if node.op in POOLING:
            return self.pooling(node)
        if node.op in BATCH_SUMS:
            return self.batch_sums(node)
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
        """Return how to compute a convolution, or a gradient of one, in channels-last layout.

        Returns None if the convolution is to stay channels-first, and counts the reason, such as a
        backend without a kernel, in `Conversions.rejected`.
        """
        x, second = node.operands
        walk, type_ = self.walk, self.tensor(x)
        if node.op is conv_weight_grad:
            weight, images = self.tensor(node.results[0]), 2
        else:
            weight, images = self.tensor(second), 1
        changes = images == 1 and second not in self.invariant
        if changes and not walk.costs.changing_weights:
            walk.rejected["their weights may change from call to call"] += node.op is conv
            return None
        if not suits(weight, node.attributes["groups"], x in self.convertible, walk.costs):
            walk.rejected["vectors of their channels would not be full"] += node.op is conv
            return None
        op = CONVOLUTIONS[node.op]
        types = [self.tensor(i) for i in node.operands]
        if not self.claimed(op, types, images, node.attributes):
            walk.rejected["the backend has no kernel of its own for them"] += node.op is conv
            return None
        found = _Member(op, node.attributes, type_.ndim, images == 1, images)
        return found if self.ends(node, found) else None

    def pooling(self, node: GraphNode) -> _Member | None:
        """Return how to compute pooling, or its gradient, in channels-last layout.

        Returns None if that is impossible.
        """
        op, types = POOLING[node.op], [self.tensor(i) for i in node.operands]
        if not self.convertible.issuperset(node.operands):
            return None
        if self.wants_indices(node):
            op = max_pool_indices_channels_last
        if not self.claimed(op, types, len(types), node.attributes):
            return None
        return _Member(op, node.attributes, types[0].ndim, True)

    def wants_indices(self, node: GraphNode) -> bool:
        """Return whether a node is max pooling of which the indices of the maxima are read."""
        return node.op is max_pool and not self.used.isdisjoint(node.results[1:])

    def converted_results(self, node: GraphNode) -> tuple[int, ...]:
        """Return the results that the channels-last form of a node has: all that are read."""
        return node.results if self.wants_indices(node) else node.results[:1]

    def batch_sums(self, node: GraphNode) -> _Member | None:
        """Return how to compute sums over channels in channels-last layout, or None if impossible.

        It is impossible if the backend has no kernel of its own, or no operand is channels-last.
        """
        images = BATCH_SUMS[node.op]
        types = [self.tensor(i) for i in node.operands]
        if self.convertible.isdisjoint(node.operands[:images]):
            return None
        flat = [t.with_(_matrix(t.shape)) for t in types[:images]]
        if not self.walk.claimed(node.op, (*flat, *types[images:]), node.attributes):
            return None
        return _Member(node.op, node.attributes, types[0].ndim, False, images, True)

    def claimed(
        self, op: Op, types: Sequence[TensorType], images: int, attributes: Attributes
    ) -> bool:
        """Return whether the backend has its own kernel for a channels-last op.

        `types` are those of the channels-first operands, of which the first `images` become
        channels-last.
        """
        last = [t.with_(_shape_last(t.shape, t.ndim)) for t in types[:images]]
        return self.walk.claimed(op, (*last, *types[images:]), attributes)

    # ---- which clusters -----------------------------------------------------------------------

    def select(self) -> None:
        """Remove from `members` and `convertible` the clusters whose conversion does not pay."""
        roots = self.connected()
        convolutions: collections.Counter[int] = collections.Counter()
        traffic: collections.Counter[int] = collections.Counter()
        for at, member in self.members.items():
            node = self.graph.nodes[at]
            if node.op in CONVOLUTIONS:
                ends = self.ends(node, member)
                key = roots[ends[0]]
                convolutions[key] += node.op is conv
                traffic[key] += sum(self.tensor(k).nbytes for k in ends)
        borders = self.borders(roots)
        chosen: dict[int, bool] = {}
        for key, count in convolutions.items():  # 0 if there are gradients alone
            moved = sum(self.tensor(i).nbytes for i in borders[key])
            cluster = Cluster(count, traffic[key], moved, len(borders[key]))
            chosen[key] = pays(cluster, self.walk.costs)
            if chosen[key]:
                self.walk.converted.append(cluster)
            else:
                why = "transposes around them would cost more than is won"
                self.walk.rejected[why] += count
        before = {at: self.ends(self.graph.nodes[at], m)[0] for at, m in self.members.items()}
        for at, some in before.items():
            if not chosen[roots[some]]:
                del self.members[at]
                self.convertible.difference_update(self.graph.nodes[at].results)

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
            ends = self.ends(self.graph.nodes[at], member)
            for i in ends:
                parent[root(i)] = root(ends[0])
        return {i: root(i) for i in list(parent)}

    def ends(self, node: GraphNode, member: _Member) -> list[int]:
        """Return the values that connect a node to its cluster: what it reads and computes.

        Operands whose elements have the same order in both layouts are left out, unless they are
        computed in the cluster.
        """
        made = self.converted_results(node) if member.converts_result else ()
        return [
            *made,
            *[
                i
                for i in self.read(node, member)
                if i in self.convertible or _moves(self.tensor(i).shape, member.rank)
            ],
        ]

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
            for i in filter(self.leaves, self.weights(node, member)):
                assert i is not None
                found[roots[i]].add(i)
        for i in filter(self.leaves, self.graph.outputs):
            found[roots[i]].add(i)
        return found

    def leaves(self, i: int | None) -> bool:
        """Return whether readers that stay channels-first need a transpose of a value.

        The result is False for a value that is not converted to channels-last, and for one whose
        elements have the same order in both layouts.
        """
        return i in self.convertible and _moves(self.tensor(i).shape, self.tensor(i).ndim)

    def read(self, node: GraphNode, member: _Member) -> list[int]:
        """Return the ids of the operands that a node to be converted reads in channels-last form.

        Call-invariant values are left out.
        """
        operands = node.operands[: member.images]
        return [i for i in operands if i is not None and i not in self.invariant]

    def weights(self, node: GraphNode, member: _Member) -> tuple[int | None, ...]:
        """Return the operands that a node to be converted reads as they are, such as weights."""
        return () if member.images is None else node.operands[member.images :]

    # ---- the new graph ------------------------------------------------------------------------

    def convert(self, node: GraphNode, member: _Member) -> None:
        """Append the channels-last form of a node to the new graph, and the transposes it needs."""
        read = node.operands[: member.images]
        operands = [None if i is None else self.last(i, member.rank, node) for i in read]
        if member.flat:
            operands = [None if i is None else self.matrix(i, node) for i in operands]
        operands += self.weights(node, member)
        results, single = node.results, node.single
        if member.converts_result:
            results = tuple([self.converted_value(r, member) for r in self.converted_results(node)])
            single = len(results) == 1
        self.nodes.append(
            GraphNode(member.op, tuple(operands), member.attributes, results, single, node.span)
        )

    def converted_value(self, value: int, member: _Member) -> int:
        """Make the channels-last form of a result of `member`; return its id."""
        type_ = self.tensor(value)
        made = self.new_value(type_.with_(_shape_last(type_.shape, member.rank)))
        self.converted[value, member.rank] = made
        return made

    def matrix(self, i: int, node: GraphNode) -> int:
        """Return the id of channels-last value `i` as a matrix with a column for each channel."""
        *lead, channels = self.tensor(i).shape
        shape = (size_of(lead), channels)
        return (
            i if self.tensor(i).shape == shape else self.append(reshape, i, {"shape": shape}, node)
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
