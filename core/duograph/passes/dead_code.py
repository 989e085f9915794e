"""Dead code elimination: graph pass that removes unused nodes, loop variables and results.

It is part of `passes.CLEANUP`, which runs at every jit level. It must never remove a node with side
effects, or a node that may raise an error, such as a division of Python numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..ir.control import SUBGRAPH_OPS, switch, while_loop
from ..ir.graph import Graph, GraphNode, subgraph
from ..ir.liveness import may_raise
from .context import PLAIN, PassContext
from .subgraphs import Done, inside

__all__ = ["remove_dead_code"]


def remove_dead_code(graph: Graph, context: PassContext = PLAIN) -> Graph:
    """Remove the nodes on which no output, side effect or possible error depends.

    graph(%0: float32[3]) {                    graph(%0: float32[3]) {
      %1 = exp(%0) : float32[3]          ->      %2 = neg(%0) : float32[3]
      %2 = neg(%0) : float32[3]                  return %2
      return %2                                }
    }
    """
    return _Removal().whole(graph)


class _Removal:
    """One run of dead code removal over a graph and its sub-graphs, with caches.

    Attributes:
        done: graph -> the graph without dead nodes, but with all its parameters and outputs.
        lives: (graph, wanted values) -> the live nodes and the parameters that they read.
        made: (graph, parameters, outputs) -> the graph with only these parameters and outputs.
    """

    def __init__(self) -> None:
        self.done: Done = {}
        self.lives: dict[tuple[Graph, tuple[int, ...]], tuple[list[GraphNode], frozenset[int]]] = {}
        self.made: dict[tuple[Graph, tuple[int, ...], tuple[int, ...]], Graph] = {}

    def whole(self, graph: Graph) -> Graph:
        """Return a graph without dead nodes but with all its parameters and outputs."""
        nodes, _ = self.live(graph, graph.outputs)
        return Graph(graph.n_params, graph.types, nodes, graph.outputs, graph.single)

    def live(self, graph: Graph, wanted: Iterable[int]) -> tuple[list[GraphNode], frozenset[int]]:
        """Return the nodes that must run if `wanted` values are read, and the parameters they read.

        Nodes that have side effects, or may raise an error, are always included. Dead code inside
        the loops and branches of the returned nodes has been removed. The result is cached.
        """
        key = (graph, tuple(wanted))
        found = self.lives.get(key)
        if found is None:
            needed: set[int | None] = set(key[1])
            kept: list[GraphNode] = []
            for node in reversed(graph.nodes):
                if not needed.isdisjoint(node.results) or node.effects or may_raise(node):
                    if node.op in SUBGRAPH_OPS:
                        node = self.reduced(node, needed)
                    kept.append(node)
                    needed.update(node.operands)
            kept.reverse()
            used = frozenset(i for i in range(graph.n_params) if i in needed)
            found = self.lives[key] = (kept, used)
        return found

    def reduced(self, node: GraphNode, needed: set[int | None]) -> GraphNode:
        """Return a copy of a node that runs sub-graphs, with dead code removed from them.

        A switch also loses the operands and results that are not needed; a loop loses the loop
        variables that are not needed. A call or `custom_call` keeps all of them. `needed` are the
        values that later nodes or outputs read.
        """
        wanted = [k for k, r in enumerate(node.results) if r in needed]
        if node.op is switch:
            return self._switch(node, wanted)
        if node.op is while_loop:
            return self._while(node, wanted)
        return inside(node, self.whole, self.done)

    def _part(self, graph: Graph, params: Sequence[int], outputs: Sequence[int]) -> Graph:
        """Return a loop body or branch with only the given parameters and outputs.

        The nodes that these outputs need stay, and so do nodes that have side effects or may raise.
        The new graph is cached.
        """
        key = (graph, tuple(params), tuple(outputs))
        found = self.made.get(key)
        if found is None:
            nodes, _ = self.live(graph, outputs)
            found = self.made[key] = subgraph(graph, params, nodes, outputs)
        return found

    def _switch(self, node: GraphNode, wanted: list[int]) -> GraphNode:
        """Return a switch without the operands and results that are not needed.

        `wanted` are the positions of the needed results.
        """
        branches: tuple[Graph, ...] = node.attributes["branches"]
        used: set[int] = set()
        for b in branches:
            used |= self.live(b, [b.outputs[k] for k in wanted])[1]
        params = sorted(used)
        made = tuple([self._part(b, params, [b.outputs[k] for k in wanted]) for b in branches])
        operands = (node.operands[0], *(node.operands[i + 1] for i in params))
        results = tuple([node.results[k] for k in wanted])
        return GraphNode(node.op, operands, {"branches": made}, results, False, node.span)

    def _while(self, node: GraphNode, wanted: list[int]) -> GraphNode:
        """Return a loop without the loop variables and loop-invariant operands that nothing needs.

        `wanted` are the positions of the needed results.
        """
        body: Graph = node.attributes["body"]
        n: int = node.attributes["n_carry"]
        carries = set(wanted)
        while True:  # until no further carry is needed for the next values of these
            outputs = [body.outputs[0], *(body.outputs[k + 1] for k in sorted(carries))]
            _, used = self.live(body, outputs)
            more = {i for i in used if i < n} - carries
            if not more:
                break
            carries |= more
        kept = sorted(carries)
        params = [*kept, *(i for i in sorted(used) if i >= n)]
        made = self._part(body, params, outputs)
        operands = (node.operands[0], *(node.operands[i + 1] for i in params))
        results = tuple([node.results[k] for k in kept])
        attributes = {"body": made, "n_carry": len(kept)}
        return GraphNode(node.op, operands, attributes, results, False, node.span)
