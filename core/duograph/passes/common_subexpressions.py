"""Merges nodes that compute the same."""

from __future__ import annotations

import dataclasses
from typing import Any

from ..ir.graph import FrozenArray, Graph, GraphNode

__all__ = ["merge_common_subexpressions"]


def merge_common_subexpressions(graph: Graph) -> Graph:
    """Keep the first of equal calls: same op, operands and attributes, no effects.

    ```
      %1 = exp(%0) : float32[3]
      %2 = exp(%0) : float32[3]          ->      %1 = exp(%0) : float32[3]
      %3 = add(%1, %2) : float32[3]              %3 = add(%1, %1) : float32[3]
    ```
    """
    same: dict[int, int] = {}
    seen: dict[Any, GraphNode] = {}
    kept: list[GraphNode] = []
    for node in graph.nodes:
        operands = tuple(None if i is None else same.get(i, i) for i in node.operands)
        key = _key(node, operands)
        first = None if node.op.effects else seen.get(key)
        if first is not None:
            same.update(zip(node.results, first.results, strict=True))
            continue
        if operands != node.operands:
            node = dataclasses.replace(node, operands=operands)
        seen[key] = node
        kept.append(node)
    outputs = tuple(same.get(i, i) for i in graph.outputs)
    return dataclasses.replace(graph, nodes=kept, outputs=outputs)


def _key(node: GraphNode, operands: tuple[int | None, ...]) -> Any:
    attributes = tuple(
        (k, id(v) if isinstance(v, FrozenArray) else v, repr(v) if isinstance(v, float) else None)
        for k, v in node.attributes.items()
    )
    return node.op, operands, attributes
