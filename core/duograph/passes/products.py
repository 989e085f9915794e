"""Transposes that a matrix product can do on its way: only above O0, because a kernel may then sum in another order."""

from __future__ import annotations

import dataclasses
from typing import Any

from ..ir.graph import Graph, GraphNode
from .subgraphs import HOLDERS, Done, mapped

__all__ = ["fold_transposes"]


def fold_transposes(graph: Graph, done: Done | None = None) -> Graph:
    """Products read the operand of a transpose of their last two axes, the other way round.

        %2 = transpose(%1, perm=(0, 2, 1))
        %3 = matmul(%0, %2, transpose_b=False)    ->    %3 = matmul(%0, %1, transpose_b=True)

    The transpose itself stays; it is dead unless something else reads it.
    """
    done = {} if done is None else done
    makers: dict[int | None, GraphNode] = {}
    nodes: list[GraphNode] = []
    for node in graph.nodes:
        if node.op.name == "matmul":
            node = _folded(node, makers)
        elif node.op.name in HOLDERS:
            attributes = mapped(node.attributes, lambda g: fold_transposes(g, done), done)
            node = dataclasses.replace(node, attributes=attributes)
        makers.update(dict.fromkeys(node.results, node))
        nodes.append(node)
    return Graph(graph.n_params, list(graph.types), nodes, graph.outputs, graph.single)


def _folded(node: GraphNode, makers: dict[int | None, GraphNode]) -> GraphNode:
    operands = list(node.operands)
    attributes: dict[str, Any] = dict(node.attributes)
    for k, flag in enumerate(("transpose_a", "transpose_b")):
        maker = makers.get(operands[k])
        if maker is not None and maker.op.name == "transpose" and _swaps(maker.attributes["perm"]):
            operands[k] = maker.operands[0]
            attributes[flag] = not attributes[flag]
    return dataclasses.replace(node, operands=tuple(operands), attributes=attributes)


def _swaps(perm: tuple[int, ...]) -> bool:
    """Whether a permutation exchanges the last two axes and leaves the others."""
    n = len(perm)
    return n > 1 and tuple(a % n for a in perm) == (*range(n - 2), n - 1, n - 2)
