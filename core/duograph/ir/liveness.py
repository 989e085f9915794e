"""Liveness: finds the graph nodes that results need, or that have effects or may raise.

Lowering, fusion and differentiation drop all other nodes. The module changes no graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..types import INT
from .control import scalar, to_host
from .graph import GraphNode, NamedGraph

__all__ = ["live_nodes", "may_raise"]

# Functions of Python numbers that raise for some operands: a division by 0, `int` of NaN.
RAISING_FUNCTIONS = {
    "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "int", "float", "round",
}  # fmt: skip


def may_raise(node: GraphNode) -> bool:
    """Return whether running a node may raise an error of Python numbers, such as division by 0.

    True for arithmetic and conversions of numbers, and for a node with such a node in one of its
    sub-graphs or in a graph that it calls. The node must then run even if nothing reads its
    results, because the same code in eager mode would raise the error.
    """
    return _any_raises([node], set())


def _any_raises(nodes: Iterable[GraphNode], called: set[NamedGraph]) -> bool:
    """Return whether one of the given nodes may raise an error of Python numbers.

    Args:
        nodes: the nodes.
        called: the named graphs that the search has already entered; they may be recursive.
    """
    for node in nodes:
        if node.op is scalar:
            found = node.attributes["function"] in RAISING_FUNCTIONS
        elif node.op is to_host:  # `int` of a tensor that is NaN or infinite
            found = node.attributes["kind"] is INT
        else:
            found = any(_any_raises(g.nodes, called) for g in node.graphs)
            target = node.attributes.get("target")
            if isinstance(target, NamedGraph) and target.graph and target not in called:
                called.add(target)
                found = found or _any_raises(target.graph.nodes, called)
        if found:
            return True
    return False


def live_nodes(nodes: Sequence[GraphNode], wanted: set[int]) -> list[GraphNode]:
    """Return the nodes that must run if only the values `wanted` are read, in program order.

    These are the nodes on which the wanted values depend, the nodes with side effects, the nodes
    that may raise, and all nodes that one of these depends on.
    """
    needed: set[int | None] = set(wanted)
    kept: list[GraphNode] = []
    for node in reversed(nodes):
        if not needed.isdisjoint(node.results) or node.effects or may_raise(node):
            kept.append(node)
            needed.update(node.operands)
    kept.reverse()
    return kept
