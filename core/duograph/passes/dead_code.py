"""Removes nodes that no result needs. Nodes with effects stay."""

from __future__ import annotations

import dataclasses

from ..ir.graph import Graph, live_nodes

__all__ = ["remove_dead_code"]


def remove_dead_code(graph: Graph) -> Graph:
    """Drop what is not used.

    ```
    graph(%0: float32[3]) {                    graph(%0: float32[3]) {
      %1 = exp(%0) : float32[3]          ->      %2 = neg(%0) : float32[3]
      %2 = neg(%0) : float32[3]                  return %2
      return %2                                }
    }
    ```
    """
    return dataclasses.replace(graph, nodes=live_nodes(graph.nodes, set(graph.outputs)))
