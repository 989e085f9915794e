"""Dead code elimination: the graph pass that removes unused nodes and parts of loops and branches.

It keeps nodes with side effects, and nodes that may raise, as a division of Python numbers does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..ir.control import SUBGRAPH_OPS, switch, while_loop
from ..ir.graph import Graph, GraphNode, subgraph
from ..ir.liveness import may_divide_by_zero
from .context import PLAIN, PassContext
from .subgraphs import Done, has_effects, inside

__all__ = ["remove_dead_code"]


def remove_dead_code(graph: Graph, context: PassContext = PLAIN) -> Graph:
    """Remove the nodes that neither a result nor a side effect needs.

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
        done: results for graphs that keep their parameters and results.
        lives: live nodes and used parameters of a graph, by the graph and the wanted values.
        made: graphs that lost parameters or results, by what they keep.
        effects: whether running a graph has effects.
    """

    def __init__(self) -> None:
        self.done: Done = {}
        self.lives: dict[tuple[Graph, tuple[int, ...]], tuple[list[GraphNode], frozenset[int]]] = {}
        self.made: dict[tuple[Graph, tuple[int, ...], tuple[int, ...]], Graph] = {}
        self.effects: dict[Graph, bool] = {}

    def whole(self, graph: Graph) -> Graph:
        """Return a graph without dead nodes but with all its parameters and results."""
        nodes, _ = self.live(graph, graph.outputs)
        return Graph(graph.n_params, graph.types, nodes, graph.outputs, graph.single)

    def live(self, graph: Graph, wanted: Iterable[int]) -> tuple[list[GraphNode], frozenset[int]]:
        """Return (nodes, parameters): what is needed to compute the wanted values of a graph."""
        key = (graph, tuple(wanted))
        found = self.lives.get(key)
        if found is None:
            needed: set[int | None] = set(key[1])
            kept: list[GraphNode] = []
            for node in reversed(graph.nodes):
                if not needed.isdisjoint(node.results) or has_effects(
                    node, self.effects, may_divide_by_zero
                ):
                    if node.op in SUBGRAPH_OPS:
                        node = self.reduced(node, needed)
                    kept.append(node)
                    needed.update(node.operands)
            kept.reverse()
            used = frozenset(i for i in range(graph.n_params) if i in needed)
            found = self.lives[key] = (kept, used)
        return found

    def reduced(self, node: GraphNode, needed: set[int | None]) -> GraphNode:
        """Return a loop, switch or call node without unused operands, loop variables, results."""
        wanted = [k for k, r in enumerate(node.results) if r in needed]
        if node.op is switch:
            return self._switch(node, wanted)
        if node.op is while_loop:
            return self._while(node, wanted)
        return inside(node, self.whole, self.done)

    def _part(self, graph: Graph, params: Sequence[int], outputs: Sequence[int]) -> Graph:
        """Return a loop body or branch with only the given parameters and outputs; cached.

        It keeps the nodes that the outputs need and the nodes with side effects.
        """
        key = (graph, tuple(params), tuple(outputs))
        found = self.made.get(key)
        if found is None:
            nodes, _ = self.live(graph, outputs)
            found = self.made[key] = subgraph(graph, params, nodes, outputs)
        return found

    def _switch(self, node: GraphNode, wanted: list[int]) -> GraphNode:
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
        body: Graph = node.attributes["body"]
        n: int = node.attributes["n_carry"]
        carries = set(wanted)
        while True:  # a carry is needed by a result, or by the next iteration of a needed carry
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
