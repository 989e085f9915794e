"""Graph passes: functions from graph to graph, one file each, and the order in which they run.

A pass keeps the parameters, the number and order of the results, and every bit of their values. It
takes the graphs inside of nodes with it, each once.
"""

from __future__ import annotations

from collections.abc import Callable

from .. import context
from ..ir.graph import Graph
from ..ir.verify import verify
from . import (  # their rules are applied in the walk of `simplify`
    constant_folding,
    inlining,
    plugin_passes,
)
from .common_subexpressions import merge_common_subexpressions
from .dead_code import remove_dead_code
from .simplify import simplify
from .subgraphs import HOLDERS

__all__ = ["PIPELINE", "Watch", "run"]

# Sees a graph, and what was done to it last.
Watch = Callable[[str, Graph], None]

PIPELINE: tuple[Callable[[Graph], Graph], ...] = (
    simplify,
    merge_common_subexpressions,
    remove_dead_code,
)


def run(graph: Graph, watch: Watch | None = None) -> Graph:
    """The graph after all passes, those of plugins last. A graph of one node is left as it is.

    With `set_context(debug=True)` the verifier looks at the graph before the first and after each
    pass; it always looks after those of plugins. `watch` sees the graph as it came, after each
    pass, and as it is done.
    """
    checked = verify if context.settings.debug else _unchecked
    watch = watch or _unseen
    watch("read", checked(graph))
    if len(graph.nodes) > 1 or any(node.op.name in HOLDERS for node in graph.nodes):
        for step in PIPELINE:
            graph = checked(step(graph))
            watch(step.__name__, graph)
        for plugin, step in plugin_passes.plugin_passes():
            graph = plugin_passes.apply(plugin, step, graph)
            watch(f"{plugin}.{plugin_passes.name_of(step)}", graph)
    watch("done", graph)
    return graph


def _unchecked(graph: Graph) -> Graph:
    return graph


def _unseen(what: str, graph: Graph) -> None:
    pass
