"""How a pass reaches the graphs that nodes hold: every graph once, wherever it occurs."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from ..ir.graph import Graph, GraphNode, NamedGraph
from .context import PLAIN, PassContext

__all__ = ["HOLDERS", "Done", "everywhere", "has_effects", "inside", "mapped"]

# Ops whose attributes are graphs.
HOLDERS = frozenset({"switch", "while_loop", "call", "custom_call"})


class Rewrite(Protocol):
    def __call__(self, graph: Graph, context: PassContext = PLAIN) -> Graph: ...


# What a pass made of the graphs that it has seen.
Done = dict[Any, Any]


def everywhere(step: Callable[[Graph, PassContext], Graph]) -> Rewrite:
    """The pass that applies `step` to every graph inside of a graph, innermost first, and last to
    the graph itself.
    """

    @functools.wraps(step)
    def whole(graph: Graph, context: PassContext = PLAIN) -> Graph:
        done: Done = {}

        def one(graph: Graph) -> Graph:
            nodes = [inside(node, one, done) for node in graph.nodes]
            return step(
                Graph(graph.n_params, graph.types, nodes, graph.outputs, graph.single), context
            )

        return one(graph)

    return whole


def inside(node: GraphNode, step: Callable[[Graph], Graph], done: Done) -> GraphNode:
    """The node with `step` applied to the graphs that it holds."""
    if node.op.name not in HOLDERS:
        return node
    return dataclasses.replace(node, attributes=mapped(node.attributes, step, done))


def mapped(
    attributes: Mapping[str, Any], step: Callable[[Graph], Graph], done: Done
) -> Mapping[str, Any]:
    """The attributes with `step` applied to every graph in them. Named graphs are made anew: others
    may hold them.
    """
    return {k: _value(v, step, done) for k, v in attributes.items()}


def _value(value: Any, step: Callable[[Graph], Graph], done: Done) -> Any:
    if isinstance(value, Graph):
        found = done.get(value)
        if found is None:
            found = done[value] = step(value)
        return found
    if isinstance(value, NamedGraph):
        if value in done or value.graph is None:
            return done.get(value, value)
        made = done[value] = NamedGraph(value.name, value.result_types)
        made.effects = value.effects
        made.graph = step(value.graph)
        return made
    if value.__class__ is tuple and value and isinstance(value[0], Graph):
        return tuple([_value(v, step, done) for v in value])
    return value


def has_effects(
    node: GraphNode,
    known: dict[Graph, bool],
    more: Callable[[GraphNode], bool] = lambda node: False,
) -> bool:
    """Whether running the node does anything besides returning values; `known` remembers it of
    graphs.

    `more` says of an op without effects whether it counts all the same.
    """
    if node.op.name not in HOLDERS:
        return bool(node.op.effects) or more(node)
    target = node.attributes.get("target")
    if isinstance(target, NamedGraph):
        return bool(target.effects)
    for graph in node.graphs:
        found = known.get(graph)
        if found is None:
            found = known[graph] = any(has_effects(n, known, more) for n in graph.nodes)
        if found:
            return True
    return False
