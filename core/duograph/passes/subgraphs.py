"""Helpers that apply a graph pass to the sub-graphs (branches, loop bodies) of nodes.

The passes call them. Each sub-graph must be processed only once, however many nodes hold it, so
that a sub-graph that several nodes hold stays one object.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from ..ir.control import SUBGRAPH_OPS
from ..ir.graph import Attributes, Graph, GraphNode, NamedGraph
from ..op import Op
from .context import PLAIN, PassContext

__all__ = ["Done", "everywhere", "inside", "mapped", "ops_of"]

# What a pass made of the graphs that it has seen; passes keep further facts about graphs here.
Done: TypeAlias = dict[object, Any]


class GraphPass(Protocol):
    """Type of a graph pass whose context argument is optional."""

    def __call__(self, graph: Graph, context: PassContext = PLAIN) -> Graph: ...


def everywhere(step: Callable[[Graph, PassContext], Graph]) -> GraphPass:
    """Decorator that makes a pass on one graph also process its sub-graphs, the innermost first."""

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
    """Return a copy of a node with `step` applied to each of its sub-graphs.

    `done` maps graphs that were processed before to their results; new results are added to it.
    """
    if node.op not in SUBGRAPH_OPS:
        return node
    return dataclasses.replace(node, attributes=mapped(node.attributes, step, done))


def mapped(attributes: Attributes, step: Callable[[Graph], Graph], done: Done) -> Attributes:
    """Return a node's attributes with `step` applied to every graph among them.

    `done` maps graphs that were processed before to their results; new results are added to it. A
    named graph is copied, because nodes outside the processed graph may call the original.
    """
    made = dict(attributes)
    for name, value in attributes.items():
        if isinstance(value, NamedGraph):
            made[name] = _named(value, step, done)
            continue
        several = isinstance(value, tuple)
        graphs = value if several else (value,)
        if not graphs or not isinstance(graphs[0], Graph):
            continue
        for graph in graphs:
            if graph not in done:
                done[graph] = step(graph)
        made[name] = tuple([done[graph] for graph in graphs]) if several else done[value]
    return made


def _named(value: NamedGraph, step: Callable[[Graph], Graph], done: Done) -> NamedGraph:
    """Return a copy of a named graph with `step` applied to its graph.

    `done` maps named graphs to their copies, so that each is copied once.
    """
    if value in done or value.graph is None:
        known: NamedGraph = done.get(value, value)
        return known
    made = done[value] = NamedGraph(value.name, value.result_types)
    made.effects = value.effects
    made.graph = step(value.graph)
    return made


def ops_of(graph: Graph) -> set[Op]:
    """Return the set of ops of a graph and of all graphs that its nodes run."""
    found: set[Op] = set()
    seen: set[Graph] = set()
    waiting = [graph]
    while waiting:
        graph = waiting.pop()
        if graph in seen:
            continue
        seen.add(graph)
        for node in graph.nodes:
            found.add(node.op)
            if node.op in SUBGRAPH_OPS:
                waiting += node.graphs
                target = node.attributes.get("target")
                if isinstance(target, NamedGraph) and target.graph is not None:
                    waiting.append(target.graph)
    return found
