"""The walk that rebuilds a graph call by call, each through the rules of its op; the rules are in
other files.

Every rule keeps the value bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ..ir.builder import GraphBuilder
from ..ir.graph import Graph, GraphNode
from .subgraphs import HOLDERS, Done, mapped

__all__ = ["Context", "RULES", "rule", "rewrite", "again", "operand"]


class Context:
    """The graph being rewritten: which node made a value of the new graph."""

    def __init__(self, done: Done) -> None:
        self.builder = GraphBuilder()
        self.maker: dict[int, GraphNode] = {}
        self.done = done

    def made_by(self, x: Any, op: str) -> GraphNode | None:
        """The node that made `x`, if it is a call of that op."""
        node = self.maker.get(x._id)
        return node if node is not None and node.op.name == op else None

    def number(self, x: Any) -> Any:
        """The value of `x` when it is the same number everywhere, else None."""
        node = self.made_by(x, "fill")
        return None if node is None else node.attributes["value"]

    def known(self, x: Any) -> Any:
        """The value of `x`, a host value or a tensor of one element, when it is known while
        compiling, else None.
        """
        node = self.maker.get(x._id)
        if node is None:
            return None
        if node.op.name == "host_constant":
            return node.attributes["value"].value
        if node.op.name == "fill":
            return node.attributes["value"]
        if node.op.name == "constant" and node.attributes["value"].array.size == 1:
            return node.attributes["value"].array.item()
        return None

    def replay(self, graph: Graph, ids: Sequence[int | None]) -> list[int]:
        """Append the nodes of a graph on these values, each through the rules; the ids of its
        outputs.
        """
        builder, maker = self.builder, self.maker
        types, nodes = builder.types, builder.nodes
        known = graph.types
        env: dict[int | None, Any] = dict(enumerate(ids))
        env[None] = None
        outer = builder.span
        for node in graph.nodes:
            operands = tuple([env[i] for i in node.operands])
            rules = RULES.get(node.op.name)
            if rules is not None:
                builder.span = node.span or outer
                found = self._rewritten(rules, node, operands)
                if found is not None:
                    env.update(zip(node.results, found))
                    continue
            first = len(types)
            types.extend([known[r] for r in node.results])
            results = tuple(range(first, len(types)))
            attributes = node.attributes
            if node.op.name in HOLDERS:
                attributes = mapped(attributes, self._inner, self.done)
            span = node.span or outer
            if (
                operands != node.operands
                or results != node.results
                or attributes is not node.attributes
                or span is not node.span
            ):
                node_made = GraphNode(node.op, operands, attributes, results, node.single, span)
            else:
                node_made = node
            nodes.append(node_made)
            for old, r in zip(node.results, results):
                env[old] = r
                maker[r] = node_made
        builder.span = outer
        return [env[i] for i in graph.outputs]

    def _inner(self, graph: Graph) -> Graph:
        return rewrite(graph, self.done)

    def _rewritten(
        self, rules: list[Rule], node: GraphNode, operands: tuple[int | None, ...]
    ) -> Sequence[int] | None:
        tensor = self.builder.tensor
        values = tuple([None if i is None else tensor(i) for i in operands])
        attributes = dict(node.attributes)
        for rewrite_call in rules:
            found = rewrite_call(self, values, attributes)
            if found is not None:
                return (found._id,) if node.single else [v._id for v in found]
        return None

    def call(self, node: GraphNode, operands: tuple[Any, ...]) -> Any:
        """The call of `node` on values of the new graph, through the rules of its op."""
        for rewrite_call in RULES.get(node.op.name, ()):
            found = rewrite_call(self, operands, dict(node.attributes))
            if found is not None:
                return found
        out = self.builder.append(node.op, operands, node.attributes)
        made = self.builder.nodes[-1]
        for i in made.results:
            self.maker[i] = made
        return out


Rule = Callable[[Context, tuple[Any, ...], dict[str, Any]], Any]
RULES: dict[str, list[Rule]] = {}


def rule(*ops: str) -> Callable[[Rule], Rule]:
    """Enter a rewrite under the ops it looks at. It returns the value that stands for the call, or
    None.
    """

    def enter(function: Rule) -> Rule:
        for name in ops:
            RULES.setdefault(name, []).append(function)
        return function

    return enter


def rewrite(graph: Graph, done: Done) -> Graph:
    """The graph with every call through the rules of its op, and so the graphs inside it."""
    context = Context(done)
    for i in range(graph.n_params):
        context.builder.parameter(graph.types[i])
    outputs = context.replay(graph, range(graph.n_params))
    builder = context.builder
    return Graph(graph.n_params, builder.types, builder.nodes, tuple(outputs), graph.single)


def again(context: Context, node: GraphNode, operands: tuple[Any, ...], **attributes: Any) -> Any:
    """The op of `node` with other operands and attributes, through the rules."""
    return context.call(replace(node, attributes={**node.attributes, **attributes}), operands)


def operand(context: Context, node: GraphNode, k: int = 0) -> Any:
    """An operand of a node of the new graph."""
    i = node.operands[k]
    assert i is not None
    return context.builder.tensor(i)
