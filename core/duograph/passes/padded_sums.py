"""Sums of padded pieces are their concatenation: what the gradients of slices of one tensor add up
to.

    %3 = pad_constant(%0, low=(0,), high=(2,), value=0)
    %4 = pad_constant(%1, low=(2,), high=(0,), value=0)    ->    %5 = concat(%0, %1, axis=0)
    %5 = add(%3, %4)

Only above O0: a piece keeps its -0.0, which the sum with +0.0 would make +0.0.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

from ..ir.graph import Graph, GraphNode
from ..op import OPS
from .context import PassContext
from .subgraphs import everywhere

__all__ = ["concatenate_padded_sums"]


class _Pieces(NamedTuple):
    """Where along one axis of a tensor that is zero elsewhere a value lies: by its first index,
    (value, end).
    """

    axis: int
    parts: dict[int, tuple[int, int]]


@everywhere
def concatenate_padded_sums(graph: Graph, context: PassContext) -> Graph:
    """The graph with complete sums of pieces as concatenations; the nodes that these replace are
    dead.
    """
    types: list[Any] = list(graph.types)
    known: dict[int | None, _Pieces] = {}
    nodes: list[GraphNode] = []
    for node in graph.nodes:
        if node.op.name == "pad_constant":
            found = _padded(node, types)
            if found is not None:
                known[node.results[0]] = found
        elif node.op.name == "add":
            a, b = (known.get(i) for i in node.operands)
            if a is not None and b is not None and a.axis == b.axis:
                both = _Pieces(a.axis, dict(sorted([*a.parts.items(), *b.parts.items()])))
                whole = types[node.results[0]].shape[a.axis]
                state = (
                    _cover(both, whole) if len(both.parts) == len(a.parts) + len(b.parts) else None
                )
                if state is not None:
                    known[node.results[0]] = both
                if state:
                    operands = tuple([value for value, _ in both.parts.values()])
                    attributes = {"axis": a.axis}
                    node = dataclasses.replace(
                        node, op=OPS["concat"], operands=operands, attributes=attributes
                    )
        nodes.append(node)
    return Graph(graph.n_params, types, nodes, graph.outputs, graph.single)


def _padded(node: GraphNode, types: list[Any]) -> _Pieces | None:
    low, high = node.attributes["low"], node.attributes["high"]
    axes = [k for k, (a, b) in enumerate(zip(low, high)) if a or b]
    if len(axes) != 1 or node.attributes["value"] != 0 or min(*low, *high) < 0:
        return None
    (axis,) = axes
    source = node.operands[0]
    assert source is not None
    begin = low[axis]
    return _Pieces(axis, {begin: (source, begin + types[source].shape[axis])})


def _cover(pieces: _Pieces, size: int) -> bool | None:
    """True when the pieces fill the axis, False when they leave gaps, None when they overlap."""
    at = 0
    full = True
    for begin, (_, end) in pieces.parts.items():
        if begin < at:
            return None
        full = full and begin == at
        at = end
    return full and at == size
