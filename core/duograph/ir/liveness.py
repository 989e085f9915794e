"""Liveness: finds the graph nodes that results need, or that have effects or may raise.

Lowering, fusion and differentiation drop all other nodes. It changes no graph.
"""

from __future__ import annotations

from collections.abc import Sequence

from .control import scalar
from .graph import GraphNode

__all__ = ["live_nodes", "may_divide_by_zero"]

# Functions of Python numbers that raise for some operands.
RAISING_FUNCTIONS = {"truediv", "floordiv", "mod", "pow", "lshift", "rshift"}


def may_divide_by_zero(node: GraphNode) -> bool:
    """Return whether a node computes with Python numbers and may raise, as a division by 0 does.

    Such a node must run even if nothing reads its result, because Python would raise there too.
    """
    return node.op is scalar and node.attributes["function"] in RAISING_FUNCTIONS


def live_nodes(nodes: Sequence[GraphNode], wanted: set[int]) -> list[GraphNode]:
    """Return the nodes that must run if only the values `wanted` are read, in program order.

    These are the nodes on which the wanted values depend, the nodes with side effects, the nodes
    that may raise, and all nodes that one of these depends on.
    """
    needed: set[int | None] = set(wanted)
    kept: list[GraphNode] = []
    for node in reversed(nodes):
        if not needed.isdisjoint(node.results) or node.effects or may_divide_by_zero(node):
            kept.append(node)
            needed.update(node.operands)
    kept.reverse()
    return kept
