"""Explains for each node of a graph why fusion puts it into a kernel with others, or why not.

`compiler.program_facts` calls `explain_fusion` with the graph before the pass `fuse`. The module
repeats the decisions of `fusion_groups` on that graph; it makes no decision itself and must not
change the graph.
"""

from __future__ import annotations

from typing import NamedTuple

from ..ir.graph import Graph, GraphNode
from .context import PassContext
from .fusion import groups_of
from .fusion_groups import Group, Grouping

__all__ = ["NodeFusion", "explain_fusion"]


class NodeFusion(NamedTuple):
    """What fusion decided about one node.

    Attributes:
        kernel: number of the fused kernel that computes the node, from 0; None if no fused kernel
            does.
        reason: why the node is fused or not.
        apart: pairs (operand, reason) for operands that another fused kernel computes: why they are
            not computed in the kernel of this node.
    """

    kernel: int | None
    reason: str
    apart: tuple[tuple[int, str], ...] = ()


OTHER_LEVEL = "one of the kernels would have to wait for a value that depends on the other"


def explain_fusion(graph: Graph, context: PassContext) -> list[NodeFusion]:
    """Return what fusion decides about each node of a graph, in order, without its sub-graphs."""
    grouping, groups = groups_of(graph, context)
    member = {at: k for k, group in enumerate(groups) for at in group.nodes}
    divided = [
        (at, node)
        for at, node in enumerate(grouping.graph.nodes)
        if grouping.copies.isdisjoint(node.results)
    ]
    left = iter(divided)
    found = []
    for original in graph.nodes:
        if original.results and original.results[0] not in grouping.producer:
            found.append(NodeFusion(None, "computed again in each kernel that reads it"))
            continue
        at, node = next(left)
        apart = tuple(_apart(grouping, member, at, node)) if at in member else ()
        kernel = member.get(at)
        found.append(NodeFusion(kernel, _reason(grouping, groups, kernel, at, node), apart))
    return found


def _reason(
    grouping: Grouping, groups: list[Group], kernel: int | None, at: int, node: GraphNode
) -> str:
    if kernel is not None:
        group = groups[kernel]
        rows = f" in rows of {group.row}" if group.row else ""
        loop = f"one loop over {group.n} elements{rows} computes {len(group.nodes)} nodes"
        if at in grouping.refusals and node.op.name in grouping.epilogues:
            return f"the kernel applies the elementwise nodes that follow to its result: {loop}"
        return f"fused: {loop}"
    if set(node.results) & grouping.literals:
        return "a constant of equal elements, which kernels contain as a number"
    if node.op.alias:
        return "it shares the memory of its operand and runs no kernel"
    if at in grouping.refusals:
        return f"not fused: {grouping.refusals[at]}"
    return (
        "not fused: no neighbour can share its loop, and for fewer than "
        f"{grouping.limits.min_ops} nodes the prebuilt kernel is as good"
    )


def _apart(
    grouping: Grouping, member: dict[int, int], at: int, node: GraphNode
) -> list[tuple[int, str]]:
    found = []
    for i in dict.fromkeys(node.operands):
        producer = None if i is None else grouping.producer.get(i)
        if i is None or producer is None or member.get(producer) in (None, member[at]):
            continue
        whole = f"{node.op.name} reads its whole operand from memory"
        default = whole if at in grouping.refusals else OTHER_LEVEL
        found.append((i, grouping.apart.get((at, i), default)))
    return found
