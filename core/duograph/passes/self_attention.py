"""Attention reads query, key and value where one projection left them, and writes their gradients
there.

    %1 = strided_slice(%0, begin=(0, 0, 0), ...)
    %2 = strided_slice(%0, begin=(0, 0, 256), ...)
    %3 = strided_slice(%0, begin=(0, 0, 512), ...)
    %4, %5, %6 = reshape(%1), reshape(%2), reshape(%3)
    %7, %8 = attention(%4, %5, %6, ...)              ->    %7, %8 = self_attention(%0, ...)

    %9, %10, %11 = attention_grad(%4, %5, %6, ...)
    %12, %13, %14 = reshape(%9), reshape(%10), reshape(%11)
    %15 = concat(%12, %13, %14, axis=2)              ->    %15 = self_attention_grad(%0, ...)

Where the backend has kernels for that; what nobody reads any more is dead. The kernels are those of
`attention`, so bits stay.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ..ir.graph import Graph, GraphNode
from ..op import OPS
from ..types import TensorType
from .context import PassContext
from .subgraphs import everywhere

__all__ = ["use_self_attention"]

_LAYOUTS = ("BSND", "SBND")


@everywhere
def use_self_attention(graph: Graph, context: PassContext) -> Graph:
    """The graph with such attention on one operand, where the backend has a kernel of its own for
    it.
    """
    types = graph.types
    makers: dict[int | None, GraphNode] = {r: node for node in graph.nodes for r in node.results}
    nodes: list[GraphNode] = []
    changed = False
    for node in graph.nodes:
        made = None
        if node.op.name == "attention":
            made = _forward(node, makers, types)
        elif node.op.name == "concat" and len(node.operands) == 3:
            made = _backward(node, makers, types)
        if made is not None:
            kinds: Any = tuple([None if i is None else types[i] for i in made.operands])
            if context.claims(made.op, kinds, made.attributes):
                node, changed = made, True
        nodes.append(node)
    if not changed:
        return graph
    return Graph(graph.n_params, list(types), nodes, graph.outputs, graph.single)


def _forward(
    node: GraphNode, makers: Mapping[int | None, GraphNode], types: Any
) -> GraphNode | None:
    found = _source(node, makers, types)
    if found is None:
        return None
    source, heads = found
    return dataclasses.replace(
        node,
        op=OPS["self_attention"],
        operands=(source, node.operands[3]),
        attributes={**heads, **node.attributes},
    )


def _backward(
    node: GraphNode, makers: Mapping[int | None, GraphNode], types: Any
) -> GraphNode | None:
    """The gradient of the operand of `_source`, in place of what joins the three gradients."""
    parts = [makers.get(i) for i in node.operands]
    if any(part is None or part.op.name != "reshape" for part in parts):
        return None
    grads = [part.operands[0] for part in parts if part is not None]
    maker = makers.get(grads[0])
    if maker is None or maker.op.name != "attention_grad" or tuple(grads) != maker.results:
        return None
    found = _source(maker, makers, types)
    if (
        found is None
        or node.attributes["axis"] != 2
        or types[node.results[0]] is not types[found[0]]
    ):
        return None
    source, heads = found
    operands = (source, *maker.operands[3:])
    return dataclasses.replace(
        node,
        op=OPS["self_attention_grad"],
        operands=operands,
        attributes={**heads, **maker.attributes},
    )


def _source(
    node: GraphNode, makers: Mapping[int | None, GraphNode], types: Any
) -> tuple[int, dict[str, Any]] | None:
    """The value in whose last axis query, key and value of a node lie side by side, and how many
    heads these have.
    """
    if node.attributes["layout"] not in _LAYOUTS:
        return None
    found: int | None = None
    at = 0
    for i in node.operands[:3]:
        type_: TensorType = types[i]
        apart = makers.get(i)
        part = (
            makers.get(apart.operands[0])
            if apart is not None and apart.op.name == "reshape"
            else None
        )
        if part is None or part.op.name != "strided_slice" or found not in (None, part.operands[0]):
            return None
        found = part.operands[0]
        whole: TensorType = types[found]
        end = at + type_.shape[2] * type_.shape[3]
        expected = {"begin": (0, 0, at), "end": (*whole.shape[:2], end), "strides": (1, 1, 1)}
        if (
            whole.ndim != 3
            or whole.shape[:2] != type_.shape[:2]
            or dict(part.attributes) != expected
        ):
            return None
        at = end
    query, key, value = (types[i] for i in node.operands[:3])
    if found is None or at != types[found].shape[2] or value is not key:
        return None
    return found, {"heads": query.shape[2], "own": key.shape[2]}
