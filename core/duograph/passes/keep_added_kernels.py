"""Graph pass that keeps ops for which a plugin has added a kernel, so that the kernel is called.

    %1 = softmax(%0)           ->      %1 = unfused(%0, body=graph(%0) { %1 = softmax(%0) ... })

Other passes would decompose, fuse or replace such an op. The pipeline runs this pass before the
composites are decomposed and again on their bodies. The pass must change nothing if no plugin has
added a kernel.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable

from ..ir.control import SUBGRAPH_OPS, unfused
from ..ir.graph import Graph, GraphNode
from ..types import HostType, TensorType
from .context import PassContext
from .subgraphs import Done, inside

__all__ = ["keep_added_kernels"]


def keep_added_kernels(graph: Graph, context: PassContext) -> Graph:
    """Wrap each node that a plugin's kernel computes in an `unfused` node, also in sub-graphs."""
    if context.added is None:
        return graph
    return _Wrapping(context).graph(graph)


class _Wrapping:
    """One run of the pass on a graph and its sub-graphs.

    Attributes:
        context: facts about the program and its backend.
        bodies: (op, operand types, attributes) -> the body of the wrapped call. Equal calls have
            the same body, so that they can still be merged.
        done: result of the pass for each sub-graph seen.
    """

    def __init__(self, context: PassContext) -> None:
        self.context = context
        self.bodies: dict[Hashable, Graph] = {}
        self.done: Done = {}

    def graph(self, graph: Graph) -> Graph:
        """Return a graph in which each node that a plugin's kernel computes is an `unfused` node.

        The result is the same object if no node had to be wrapped.
        """
        nodes = [self.node(node, graph) for node in graph.nodes]
        if all(a is b for a, b in zip(nodes, graph.nodes)):
            return graph
        return dataclasses.replace(graph, nodes=nodes)

    def node(self, node: GraphNode, graph: Graph) -> GraphNode:
        """Return a node wrapped in an `unfused` node, or with its sub-graphs' nodes wrapped.

        The node itself is returned if no plugin's kernel computes it.
        """
        if node.op in SUBGRAPH_OPS:
            return inside(node, self.graph, self.done)
        op, added = node.op, self.context.added
        kinds = tuple([None if i is None else graph.types[i] for i in node.operands])
        if op.graph_only or op.effects or any(isinstance(t, HostType) for t in kinds):
            return node
        types: tuple[TensorType | None, ...] = kinds  # type: ignore[assignment]
        owner = None if added is None else added(op, types, node.attributes)
        if owner is None:
            return node
        key = (op, types, op.key(types, node.attributes))
        body = self.bodies.get(key)
        if body is None:
            body = self.bodies[key] = _body(node, graph)
            if self.context.notes is not None:
                self.context.notes.append(f"{op.name} is computed by the kernel of {owner}")
        operands = tuple([i for i in node.operands if i is not None])
        return GraphNode(unfused, operands, {"body": body}, node.results, node.single, node.span)


def _body(node: GraphNode, graph: Graph) -> Graph:
    """Return a graph that consists of a copy of one node, for the body of an `unfused` node.

    Its parameters are the operands that are present.
    """
    types = [graph.types[i] for i in node.operands if i is not None]
    n_params = len(types)
    ids = iter(range(n_params))
    operands = tuple([None if i is None else next(ids) for i in node.operands])
    results = tuple(range(n_params, n_params + len(node.results)))
    types += [graph.types[i] for i in node.results]
    alone = dataclasses.replace(node, operands=operands, results=results)
    return Graph(n_params, types, [alone], results, node.single)
