"""Rebuilds a graph call by call, applying the rewrite rules of each call's op.

The pass `simplify` uses it. The operands that a rule sees have already been rewritten, and calls
that a rule makes go through the rules again. Every rule must keep the value bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..dims import is_symbolic, symbols_in
from ..ir.builder import GraphBuilder, GraphValue
from ..ir.control import SUBGRAPH_OPS
from ..ir.graph import Attributes, Graph, GraphNode, SourceSpan
from ..op import Op
from ..types import TensorType, ValueType
from .matched_ops import constant, fill
from .patterns import Bindings, Rule, Rules, Value, known_value
from .subgraphs import Done, mapped

if TYPE_CHECKING:
    from ..host_arrays import Array

__all__ = ["Found", "GraphValue", "Rewriter", "RewriteRule", "RewriteRules"]

# What replaces a call: its result, or the results of an op with several.
Found: TypeAlias = GraphValue | Sequence[GraphValue]
RewriteRule: TypeAlias = Rule[Found]
RewriteRules: TypeAlias = Rules[Found]
# Folds a call whose operands are constants.
Fold: TypeAlias = "Callable[[Rewriter, Op, Sequence[int | None], Attributes], Found | None]"


class Rewriter:
    """Copies a graph node by node into a new graph, replacing calls that rewrite rules match.

    A rule's function receives the Rewriter first, then what the rule's pattern matched: symbolic
    values of the new graph, and attributes.

    Attributes:
        types, nodes: types and nodes of the new graph.
        span: the source location that new nodes get.
        producers: value of the new graph -> the node that computes it.
        rules: the rewrite rules.
        fold: function that computes a call whose operands are all constants.
        done: rewritten form of each sub-graph rewritten so far; several nodes may hold the same
            sub-graph.
    """

    def __init__(self, rules: RewriteRules, fold: Fold, done: Done) -> None:
        self.types: list[ValueType] = []
        self.nodes: list[GraphNode] = []
        self.span: SourceSpan | None = None
        self._builder: GraphBuilder | None = None
        self.producers: dict[int | None, GraphNode] = {}
        self.rules = rules
        self.fold = fold
        self.done = done

    @property
    def builder(self) -> GraphBuilder:
        """The graph builder that appends to the new graph; created at first use."""
        made = self._builder
        if made is None:
            made = self._builder = GraphBuilder()
            made.types, made.nodes = self.types, self.nodes
        made.span = self.span
        return made

    # ---- the walk -----------------------------------------------------------------------------

    def graph(self, graph: Graph) -> Graph:
        """Return a copy of a graph with the rewrite rules applied to it and its sub-graphs."""
        self.types.extend(graph.types[: graph.n_params])
        outputs = self.replay(graph, range(graph.n_params))
        return Graph(graph.n_params, self.types, self.nodes, tuple(outputs), graph.single)

    def replay(self, graph: Graph, ids: Sequence[int | None]) -> list[int]:
        """Append the nodes of a graph to the new graph, each rewritten by the rules that match.

        A replacement whose types are not those of the node's results is not used.

        `ids` are the values of the new graph that stand for the parameters of `graph`. Returns the
        ids of the outputs in the new graph.
        """
        types, nodes, producers = self.types, self.nodes, self.producers
        old_types = graph.types
        new_ids: dict[int | None, Any] = dict(enumerate(ids))
        new_ids[None] = None
        outer = self.span
        for node in graph.nodes:
            operands = tuple([new_ids[i] for i in node.operands])
            op = node.op
            if op.traits.folds or op in self.rules.by_op:
                self.span = node.span or outer
                found = self.rewritten(op, operands, node.attributes)
                if found is not None:
                    made_ids = [v._id for v in ((found,) if node.single else found)]
                    # a replacement of another type would be read as if it had the old one
                    if [types[i] for i in made_ids] == [old_types[r] for r in node.results]:
                        new_ids.update(zip(node.results, made_ids))
                        continue
            first = len(types)
            types.extend([old_types[r] for r in node.results])
            made = self.copied(node, operands, tuple(range(first, len(types))), outer)
            nodes.append(made)
            for old, r in zip(node.results, made.results):
                new_ids[old] = r
                producers[r] = made
        self.span = outer
        return [new_ids[i] for i in graph.outputs]

    def copied(
        self,
        node: GraphNode,
        operands: tuple[int | None, ...],
        results: tuple[int, ...],
        outer: SourceSpan | None,
    ) -> GraphNode:
        """Return a copy of a node with other ids of operands and results and rewritten sub-graphs.

        `outer` is the source location for a node that has none.
        """
        attributes = node.attributes
        if node.op in SUBGRAPH_OPS:
            attributes = mapped(attributes, self.inner, self.done)
        span = node.span or outer
        if (
            operands == node.operands
            and results == node.results
            and attributes is node.attributes
            and span is node.span
        ):
            return node
        return GraphNode(node.op, operands, attributes, results, node.single, span)

    def inner(self, graph: Graph) -> Graph:
        return Rewriter(self.rules, self.fold, self.done).graph(graph)

    def rewritten(self, op: Op, operands: Sequence[int | None], attributes: Attributes) -> Any:
        """Return what the new graph gets in place of an op call, or None to append the call itself.

        A call whose operands are constants is computed (folded) if possible. Otherwise the first
        rewrite rule that matches replaces it. The result is a symbolic value of the new graph, or a
        sequence of them for an op with several results.

        Args:
            op: the op that is called.
            operands: ids of values of the new graph; None for an absent operand.
            attributes: the op's attributes.
        """
        if op.traits.folds and self.are_constant(operands):
            folded = self.fold(self, op, operands, attributes)
            if folded is not None:
                return folded
        for rule in self.rules.by_op.get(op, ()):
            pattern = rule.pattern
            for bindings in pattern.matches(operands, attributes, self.producers):
                found = rule.replace(self, **self.values(pattern, bindings))
                if found is not None:
                    return found
        return None

    def values(self, pattern: Value, bindings: Bindings) -> Bindings:
        """Replace the value ids in a pattern's match by symbolic values; return the same dict.

        The functions of rules can compute with symbolic values as with tensors.
        """
        tensor = self.builder.tensor
        for name in pattern.value_names:
            found = bindings[name]
            if found.__class__ is tuple:
                bindings[name] = tuple([None if i is None else tensor(i) for i in found])
            elif found is not None:
                bindings[name] = tensor(found)
        return bindings

    # ---- for the functions of rules -----------------------------------------------------------

    def call(self, op: Op, *operands: GraphValue | None, **attributes: object) -> Any:
        """Append an op call, or what the rewrite rules replace it by, to the new graph.

        Returns the symbolic result, or a tuple of results for an op with several.
        """
        found = self.rewritten(op, [None if x is None else x._id for x in operands], attributes)
        return self.append(op, operands, attributes) if found is None else found

    def append(self, op: Op, operands: Sequence[GraphValue | None], attributes: Attributes) -> Any:
        """Append an op call to the new graph without applying rewrite rules; return its result."""
        made = self.builder.append(op, tuple(operands), attributes)
        node = self.nodes[-1]
        for i in node.results:
            self.producers[i] = node
        return made

    def known(self, x: GraphValue) -> Any:
        """Return the Python value of a graph value that is known at compile time, else None."""
        return known_value(x._id, self.producers)

    def number(self, x: GraphValue) -> Any:
        """Return the number of which all elements of `x` consist; a `fill` must compute `x`."""
        return self.producers[x._id].attributes["value"]

    def are_constant(self, values: Sequence[int | None]) -> bool:
        """Return whether all given values are results of `constant` or `fill` nodes."""
        for i in values:
            node = self.producers.get(i)
            if node is None or (node.op is not constant and node.op is not fill):
                return False
        return True

    def array(self, i: int | None, limit: int) -> Array | None:
        """Return the elements of a constant tensor with at most `limit` elements, else None."""
        node = self.producers.get(i)
        if i is None or node is None or (node.op is not constant and node.op is not fill):
            return None
        type_ = self.types[i]
        if not isinstance(type_, TensorType) or symbols_in(type_.shape) or type_.size > limit:
            return None
        if node.op is constant:
            array: Array = node.attributes["value"].array
            return array
        value = node.attributes["value"]
        return None if is_symbolic(value) else np.full(type_.shape, value, type_.dtype.np)
