"""Common subexpression elimination: graph pass that merges nodes computing the same value.

It is part of `passes.CLEANUP`, which runs at every jit level. It must never merge nodes with side
effects, because each of these effects must happen.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from typing import Any

from ..dims import text_of
from ..ir.control import SUBGRAPH_OPS
from ..ir.graph import FrozenArray, Graph, GraphNode
from .context import PLAIN, PassContext
from .subgraphs import Done, inside

__all__ = ["merge_common_subexpressions"]


def merge_common_subexpressions(graph: Graph, context: PassContext = PLAIN) -> Graph:
    """Keep only the first of several equal calls (same op, operands and attributes, no effects).

    %1 = exp(%0) : float32[3]
    %2 = exp(%0) : float32[3]          ->      %1 = exp(%0) : float32[3]
    %3 = add(%1, %2) : float32[3]              %3 = add(%1, %1) : float32[3]
    """
    return _merged(graph, {})


def _merged(graph: Graph, done: Done) -> Graph:
    """Return a graph with equal calls merged, in its sub-graphs too.

    `done` maps sub-graphs that were processed before to their results.
    """
    same: dict[int | None, int] = {}
    seen: dict[Hashable, GraphNode] = {}
    kept: list[GraphNode] = []
    for node in graph.nodes:
        operands = node.operands
        if same and not same.keys().isdisjoint(operands):
            operands = tuple([None if i is None else same.get(i, i) for i in operands])
        holder = node.op in SUBGRAPH_OPS
        if not (node.effects if holder else node.op.effects):
            key = (node.op, operands, *[_key(v) for v in node.attributes.values()])
            first = seen.setdefault(key, node)
            if first is not node:
                same.update(zip(node.results, first.results))
                continue
        if operands is not node.operands:
            node = dataclasses.replace(node, operands=operands)
        if holder:
            node = inside(node, lambda inner: _merged(inner, done), done)
        kept.append(node)
    outputs = tuple([same.get(i, i) for i in graph.outputs])
    return Graph(graph.n_params, graph.types, kept, outputs, graph.single)


def _key(value: Any) -> Hashable:
    """Return a hashable key for an attribute: equal keys mean equal attributes.

    1.0 and 1 have different keys, and so have 0.0 and -0.0. Arrays are compared by identity.
    """
    kind = value.__class__
    if kind is float or kind is complex:
        return kind, text_of(value)
    if kind is tuple and not any(isinstance(v, Graph) for v in value):
        return tuple([_key(v) for v in value])
    return kind, id(value) if kind is FrozenArray else value
