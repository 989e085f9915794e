"""How passes reach the sub-graphs of nodes: each graph once, however many nodes share it."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, TypeVar

from ..ir.control import SUBGRAPH_OPS
from ..ir.graph import Attributes, Graph, GraphNode, NamedGraph
from .context import PLAIN, PassContext

__all__ = ["Done", "everywhere", "has_effects", "inside", "mapped"]

# What a pass made of the graphs that it has seen; passes keep further facts about graphs here.
Done: TypeAlias = dict[Any, Any]
T = TypeVar("T")


class GraphPass(Protocol):
    """A pass that may be called without a context."""

    def __call__(self, graph: Graph, context: PassContext = PLAIN) -> Graph: ...


def everywhere(step: Callable[[Graph, PassContext], Graph]) -> GraphPass:
    """Make a pass of a function that rewrites one graph; innermost sub-graphs come first."""

    @functools.wraps(step)
    def whole(graph: Graph, context: PassContext = PLAIN) -> Graph:
        done: Done = {}

        def one(graph: Graph) -> Graph:
            if any(node.op in SUBGRAPH_OPS for node in graph.nodes):
                nodes = [inside(node, one, done) for node in graph.nodes]
                graph = dataclasses.replace(graph, nodes=nodes)
            return step(graph, context)

        return one(graph)

    return whole


def inside(node: GraphNode, step: Callable[[Graph], Graph], done: Done) -> GraphNode:
    """The node with `step` applied to its sub-graphs."""
    if node.op not in SUBGRAPH_OPS:
        return node
    return dataclasses.replace(node, attributes=mapped(node.attributes, step, done))


def mapped(attributes: Attributes, step: Callable[[Graph], Graph], done: Done) -> Attributes:
    """The attributes with `step` applied to every graph in them.

    A named graph is copied, since graphs outside may call it.
    """
    return {k: _value(v, step, done) for k, v in attributes.items()}


def _value(value: T, step: Callable[[Graph], Graph], done: Done) -> T:
    made: Any = value
    if isinstance(value, Graph):
        made = done.get(value)
        if made is None:
            made = done[value] = step(value)
    elif isinstance(value, NamedGraph):
        if value in done or value.graph is None:
            made = done.get(value, value)
        else:
            made = done[value] = NamedGraph(value.name, value.result_types)
            made.effects = value.effects
            made.graph = step(value.graph)
    elif isinstance(value, tuple) and value and isinstance(value[0], Graph):
        made = tuple([_value(v, step, done) for v in value])
    result: T = made
    return result


def has_effects(
    node: GraphNode,
    known: dict[Graph, bool],
    more: Callable[[GraphNode], bool] = lambda node: False,
) -> bool:
    """Return whether running a node does more than return values.

    `known` caches the answer per sub-graph. `more` may count further nodes without effects.
    """
    if node.op not in SUBGRAPH_OPS:
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
