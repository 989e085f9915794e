"""Liveness: finds the graph nodes that results need, or that have effects or may raise.

Lowering, fusion and differentiation drop all other nodes. It changes no graph.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..types import INT
from .control import scalar, to_host
from .graph import GraphNode

__all__ = ["RAISING_FUNCTIONS", "live_nodes", "may_raise"]

# Functions of Python numbers that raise for some operands: a division by 0, `int` of NaN.
RAISING_FUNCTIONS = {
    "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "int", "float", "round",
}  # fmt: skip


def may_raise(node: GraphNode) -> bool:
    """Return whether a node computes a Python number and may raise, as a division by 0 does.

    Such a node must run even if nothing reads its result, because Python would raise there too.
    """
    if node.op is to_host:  # `int` of a tensor that is NaN or infinite
        return node.attributes["kind"] is INT
    return node.op is scalar and node.attributes["function"] in RAISING_FUNCTIONS


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
