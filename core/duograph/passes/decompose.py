"""Graph pass that replaces composite ops without a kernel by their bodies, which can fuse.

    %1 = softplus(%0)                  %1 = exp(%0)
                               ->      %2 = log1p(%1)

A composite node is kept if the backend has a kernel for it, or if a fused region can compute it
without decomposing. Bodies are decomposed recursively. The nodes of a body get the source location
of the node that they replace.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Sequence

from ..ir.control import SUBGRAPH_OPS
from ..ir.graph import Graph, GraphNode
from ..ir.loops import gathers_long_runs, is_elementwise
from ..op import Op
from ..types import HostType, TensorType, ValueType
from .context import PassContext
from .matched_ops import gather_elements, scatter_elements_add
from .subgraphs import Done, mapped

__all__ = ["AT_LABELS", "decompose_composites", "decompose_the_rest"]

# The ops that `compare_labels` rewrites, and that have decompositions.
AT_LABELS = frozenset((gather_elements, scatter_elements_add))

Types = tuple[TensorType | None, ...]


def decompose_composites(graph: Graph, context: PassContext) -> Graph:
    """Replace the composite ops for which the backend has no kernel by their bodies.

    Ops that the pass `compare_labels` may rewrite are kept; `decompose_the_rest` replaces those
    that are still there after that pass.
    """
    kept = AT_LABELS if context.costs.compare_labels else frozenset()
    return _Decomposition(context, kept).graph(graph)


def decompose_the_rest(graph: Graph, context: PassContext) -> Graph:
    """Replace the gathers and scatters that `compare_labels` left in the graph by their bodies.

    Those for which the backend has a kernel are kept.
    """
    return _Decomposition(context).graph(graph) if context.costs.compare_labels else graph


class _Decomposition:
    """One run of the decomposition of composites over a graph and its sub-graphs.

    Attributes:
        context: facts about the program and its backend.
        kept: ops that are never decomposed.
        decomposition: function that returns the graph of an op's decomposition.
        claims: cache of whether the backend has a kernel of its own for an op.
        done: decomposed form of each sub-graph seen.
    """

    def __init__(self, context: PassContext, kept: frozenset[Op] = frozenset()) -> None:
        assert context.decomposition is not None
        self.context = context
        self.kept = kept
        self.decomposition = context.decomposition
        self.claims: dict[Hashable, bool] = {}
        self.done: Done = {}

    def graph(self, graph: Graph) -> Graph:
        """Return a graph, including its sub-graphs, with composite ops replaced by their bodies."""
        types = list(graph.types)
        nodes: list[GraphNode] = []
        new_ids: dict[int | None, int | None] = {i: i for i in range(len(types))}
        self.append(graph.nodes, types, nodes, new_ids)
        outputs = tuple([new_ids[i] for i in graph.outputs])
        return Graph(graph.n_params, types, nodes, outputs, graph.single)  # type: ignore[arg-type]

    def append(
        self,
        source: Sequence[GraphNode],
        types: list[ValueType],
        nodes: list[GraphNode],
        new_ids: dict[int | None, int | None],
    ) -> None:
        """Append the nodes `source` to `nodes`, with composite ops replaced by their bodies.

        `types` are the types of all values of the new graph; `new_ids` maps values of `source` to
        values of the new graph. `nodes`, `types` and `new_ids` are extended in place.
        """
        new_ids[None] = None
        for node in source:
            operands = tuple([new_ids[i] for i in node.operands])
            if node.op in SUBGRAPH_OPS:
                attributes = mapped(node.attributes, self.graph, self.done)
                node = dataclasses.replace(node, attributes=attributes)
            else:
                kinds = tuple([None if i is None else types[i] for i in operands])
                results = [types[i] for r in node.results if (i := new_ids[r]) is not None]
                body = None
                if not self.stays(node, kinds, results):
                    body = self.decomposition(node.op, kinds, node.attributes)  # type: ignore[arg-type]
                if body is not None:
                    inner: dict[int | None, int | None] = dict(
                        enumerate(i for i in operands if i is not None)
                    )
                    for i in range(body.n_params, len(body.types)):
                        inner[i] = len(types)
                        types.append(body.types[i])
                    located = [dataclasses.replace(n, span=node.span) for n in body.nodes]
                    self.append(located, types, nodes, inner)
                    new_ids.update(zip(node.results, [inner[i] for i in body.outputs]))
                    continue
            renumbered = tuple([new_ids[r] for r in node.results])
            nodes.append(
                dataclasses.replace(node, operands=operands, results=renumbered)  # type: ignore[arg-type]
            )

    def stays(
        self, node: GraphNode, kinds: tuple[ValueType | None, ...], results: list[ValueType]
    ) -> bool:
        """Return whether a node is kept instead of being replaced by its op's body.

        It is kept if its op is not a composite, is in `kept`, or can be fused or computed by a
        kernel. `kinds` are the types of its operands, `results` those of its results.
        """
        op = node.op
        own = op.body is not None or op.decompose_rule is not None
        if not (own or op.name in self.context.decomposes) or op in self.kept:
            return True
        if op.is_reduction or op.is_view or op.graph_only:
            return True
        types = [t for t in kinds if isinstance(t, TensorType)]
        if op.scalar_rule is not None and node.single and len(types) == len(kinds):
            n = len(kinds)
            alone = dataclasses.replace(node, operands=tuple(range(n)), results=(n,))
            if is_elementwise(alone, [*types, *results]):
                return True
        result = results[0]
        if op.traits.gather and isinstance(result, TensorType):
            least = self.context.costs.fusion.min_run
            if gathers_long_runs(node, types, result, least):
                return True
        if op.name in self.context.decomposed:
            return False
        assert not any(isinstance(t, HostType) for t in kinds), op
        key = (op, kinds, op.key(kinds, node.attributes))  # type: ignore[arg-type]
        found = self.claims.get(key)
        if found is None:
            found = self.claims[key] = self.context.claims(op, kinds, node.attributes)  # type: ignore[arg-type]
        return found
