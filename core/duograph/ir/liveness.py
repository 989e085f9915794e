"""Liveness: finds the graph nodes that results need, or that have effects or may raise."""

from __future__ import annotations

from collections.abc import Sequence

from .control import scalar
from .graph import GraphNode

__all__ = ["live_nodes", "may_divide_by_zero"]

# Functions of Python numbers that raise for some operands.
RAISING_FUNCTIONS = {"truediv", "floordiv", "mod", "pow", "lshift", "rshift"}


def may_divide_by_zero(node: GraphNode) -> bool:
    """Return whether a graph node on Python numbers may raise, as a division by 0 does.

    As in Python, it must run even if nothing reads its result.
    """
    return node.op is scalar and node.attributes["function"] in RAISING_FUNCTIONS


def live_nodes(nodes: Sequence[GraphNode], wanted: set[int]) -> list[GraphNode]:
    """Return the graph nodes that the wanted values need, that have side effects or may raise."""
    needed: set[int | None] = set(wanted)
    kept: list[GraphNode] = []
    for node in reversed(nodes):
        if not needed.isdisjoint(node.results) or node.effects or may_divide_by_zero(node):
            kept.append(node)
            needed.update(node.operands)
    kept.reverse()
    return kept
