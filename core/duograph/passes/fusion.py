"""Fusion: the graph pass that replaces nodes by `region` nodes, each computed by one kernel.

Elementwise ops join the regions of their operands. A reduction over the trailing axes
ends a row; ops that compute with the reduced rows join the region, too:

    %3 = reduce_max(%0)                         %8 = region(%0, body=graph(%0) {
    %4 = sub(%0, %3)                                   %1 = reduce_max(%0)
    %5 = exp(%4)                ->                     ...
    %6 = reduce_sum(%5)                                return %5 })
    %7 = div(%5, %6)

A region can end in reductions over other axes if all of them leave the same columns, as the
gradients of a bias or of a weight of layer_norm do:

    %3 = mul(%0, %1)                            %5, %6 = region(%0, %1, body=graph(%0, %1) {
    %4 = reduce_sum(%3, axis=(0,))     ->              %2 = mul(%0, %1)
    %5 = reduce_sum(%0, axis=(0,))                     ...

A gather joins the region of the op that reads it, so that it costs no pass over memory of its own.
Its source must be in memory: elements that several indices select would be computed several times.

A region that continues elementwise from the result of a matmul or convolution, and is the only one
to read it, absorbs that node if the backend has kernels with epilogues (`Backend.epilogues`):

    %3 = matmul(%0, %1)                         %5 = region(%0, %1, %2, body=graph(%0, %1, %2) {
    %4 = add(%3, %2)                ->                 %3 = matmul(%0, %1)
    %5 = relu(%4)                                      ...

A value that is needed outside its region becomes a result of the region. If the backend asks for
it, cheap values are computed again in the regions that read them, which saves memory traffic.

`fusion_groups`, `fusion_readers` and `fusion_ends` decide which nodes belong together,
`fusion_recompute` which values are computed again; this module builds the new graph.
"""

from __future__ import annotations

import dataclasses
import heapq
from typing import TypeAlias

from ..ir.control import SUBGRAPH_OPS
from ..ir.graph import Graph, GraphNode
from .context import PLAIN, PassContext
from .fusion_ends import add_column_ends
from .fusion_groups import Group, Grouping
from .fusion_readers import merge_into_readers
from .fusion_recompute import Division, recompute
from .subgraphs import Done, mapped

__all__ = ["fuse", "groups_of"]

# The position of a node that is in no fusion group, or a fusion group, which becomes a region.
Unit: TypeAlias = int | Group


def fuse(graph: Graph, context: PassContext = PLAIN) -> Graph:
    """Replace groups of fusable nodes by region nodes, one kernel each, in sub-graphs as well."""
    return _fused(graph, context, {})


def _fused(graph: Graph, context: PassContext, done: Done) -> Graph:
    """Return a graph with groups of nodes replaced by region nodes, in its sub-graphs too.

    `done` maps sub-graphs that were processed before to their results.
    """
    holds_graphs = any([node.op in SUBGRAPH_OPS for node in graph.nodes])
    if len(graph.nodes) < context.costs.fusion.min_ops and not holds_graphs:
        return graph
    division = groups_of(graph, context)
    grouping, groups = division
    if not groups and not holds_graphs:
        return graph
    graph = grouping.graph
    member = division.member
    owner = dict(member)
    used_outside = grouping.used_outside(member)
    _release_aliases(graph, owner, used_outside)
    regions = {id(g): grouping.region(g.nodes, used_outside, g.row) for g in groups}
    ordered: list[GraphNode] = []
    for unit in _order(grouping, owner, member):
        if isinstance(unit, Group):
            ordered.append(regions[id(unit)])
            continue
        node = graph.nodes[unit]
        if node.op in SUBGRAPH_OPS:
            attributes = mapped(node.attributes, lambda g: _fused(g, context, done), done)
            node = dataclasses.replace(node, attributes=attributes)
        ordered.append(node)
    return Graph(graph.n_params, list(graph.types), ordered, graph.outputs, graph.single)


def groups_of(graph: Graph, context: PassContext) -> Division:
    """Divide a graph's nodes into fusion groups, of which some are fused; return a `Division`.

    A fusion group is a set of nodes that one kernel could compute. The `Division` holds all groups
    and, separately, the groups to fuse, those that save a kernel launch. Each of these becomes one
    region (a node that one kernel computes). The graph in the `Division` contains copies of nodes
    if the backend wants cheap values to be computed again in several kernels (`fusion_recompute`).
    """

    def divide(graph: Graph, copies: frozenset[int] = frozenset()) -> Division:
        grouping = Grouping(graph, context, copies)
        merge_into_readers(grouping)
        add_column_ends(grouping)
        return Division(grouping, _worthwhile(grouping))

    division = divide(graph)
    if not context.costs.fusion.max_recomputed:
        return division
    return recompute(division, divide)


def _worthwhile(grouping: Grouping) -> list[Group]:
    """Return the fusion groups that save kernel launches if one kernel computes all their nodes.

    Where the backend can make a group the epilogue of a matmul or convolution, the node of that op
    is added to the group.
    """
    found = []
    for group in grouping.groups:
        if group.merged is None:
            producer = grouping.epilogue_producer(group)
            least = grouping.limits.min_ops if producer is None else 1
            if _kernels(grouping, group) >= least:
                found.append(group)
                if producer is not None:
                    group.nodes.append(producer)
    return found


def _kernels(grouping: Grouping, group: Group) -> int:
    """Return how many kernel launches the nodes of a fusion group would take unfused.

    A scatter into a tensor of equal elements takes two: one fills that tensor.
    """
    nodes = [grouping.graph.nodes[at] for at in group.nodes]
    filled = sum(
        node.op.traits.scatter is not None and node.operands[0] in grouping.literals
        for node in nodes
    )
    return sum(not node.op.is_view for node in nodes) + filled


def _release_aliases(graph: Graph, owner: dict[int, Group], used_outside: set[int]) -> None:
    """Remove from regions those aliases, such as reshapes, that nodes outside them read.

    An alias has the same bytes as its operand. The region then returns the operand instead, and the
    alias node runs after the region. Changes `owner` (region of each node, by position) and
    `used_outside` (values that regions return) in place.
    """
    for at in range(len(graph.nodes) - 1, -1, -1):
        node = graph.nodes[at]
        if at in owner and node.op.alias and node.results[0] in used_outside:
            used_outside.discard(node.results[0])
            used_outside.add(node.operands[0] or 0)
            del owner[at]


def _order(grouping: Grouping, owner: dict[int, Group], member: dict[int, Group]) -> list[Unit]:
    """Return nodes and fusion groups in topological order, close to the original order.

    Nodes with effects keep their order.

    Args:
        grouping: the graph and facts about its values.
        owner: position of a node -> the group that it is in.
        member: the same groups before `_release_aliases` removed alias nodes from them.
    """
    nodes = grouping.graph.nodes
    units: list[Unit] = [owner.get(at, at) for at in range(len(nodes))]
    last = {unit: at for at, unit in enumerate(units)}
    waits: dict[Unit, set[Unit]] = {unit: set() for unit in last}
    effect: int | None = None
    for at, node in enumerate(nodes):
        unit = units[at]
        for i in node.operands:
            producer = None if i is None else grouping.producer.get(i)
            if producer is None:
                continue
            before = units[producer]
            if before is not unit and member.get(producer) is not unit:
                waits[unit].add(before)
        if node.effects:
            if effect is not None:
                waits[unit].add(effect)
            effect = at
    followers: dict[Unit, list[Unit]] = {unit: [] for unit in last}
    for unit, earlier in waits.items():
        for before in earlier:
            followers[before].append(unit)
    ready = [(last[unit], unit) for unit, earlier in waits.items() if not earlier]
    heapq.heapify(ready)
    missing = {unit: len(earlier) for unit, earlier in waits.items()}
    found: list[Unit] = []
    while ready:
        _, unit = heapq.heappop(ready)
        found.append(unit)
        for follower in followers[unit]:
            missing[follower] -= 1
            if not missing[follower]:
                heapq.heappush(ready, (last[follower], follower))
    assert len(found) == len(last), "fusion: regions wait for each other"
    return found
