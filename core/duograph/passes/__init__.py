"""Graph passes: functions from graph to graph, one file each, and the order in which they run.

A pass keeps the parameters, the number and order of the results, and every bit of their values. It takes the graphs
inside of nodes with it, each once.
"""

from __future__ import annotations

from collections.abc import Callable

from .. import context
from ..ir.graph import Graph
from ..ir.verify import verify
from . import folding, inline  # their rules are applied in the walk of `simplify`
from .common_subexpressions import merge_common_subexpressions
from .dead_code import remove_dead_code
from .simplify import simplify
from .subgraphs import HOLDERS

__all__ = ["PIPELINE", "run"]

PIPELINE: tuple[Callable[[Graph], Graph], ...] = (
    simplify,
    merge_common_subexpressions,
    remove_dead_code,
)


def run(graph: Graph) -> Graph:
    """The graph after all passes. A graph of one node is left as it is.

    With `set_context(debug=True)` the verifier looks at the graph before the first and after each pass.
    """
    checked = verify if context.settings.debug else _unchecked
    checked(graph)
    if len(graph.nodes) > 1 or any(node.op.name in HOLDERS for node in graph.nodes):
        for step in PIPELINE:
            graph = checked(step(graph))
    return graph


def _unchecked(graph: Graph) -> Graph:
    return graph
