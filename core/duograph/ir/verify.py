"""The graph verifier: derives every type and effect from the ops' rules and compares them.

Tests and debug mode call it after each pass; graphs of plugin passes are always checked. The
verifier must not change a graph: it returns the graph or raises an error.
"""

from __future__ import annotations

from typing import TypeAlias

from ..errors import GraphError
from ..runtime_state import runtime_state
from ..types import HostType
from .graph import Graph, GraphNode, NamedGraph
from .text import node_text

__all__ = ["verify"]

# Nodes that an error shows before and after the wrong one.
_NEAR = 2
# The nodes around a sub-graph, innermost first: (graph, position of the node in it).
Context: TypeAlias = tuple[tuple[Graph, int], ...]


def verify(graph: Graph) -> Graph:
    """Check that a graph is well formed, and return the graph itself.

    Values must be defined once, and before their use in the same graph. Each node must have the
    operands and attributes of its op, with promoted dtypes, and the result types that the op
    infers. Outputs must exist. Sub-graphs and named graphs are also checked; a named graph must
    have the result types and effects that it declares.

    Raises:
        GraphError: the graph is wrong; the message names the node and shows its neighbours.
    """
    _Verifier().graph(graph, ())
    return graph


class _Verifier:
    """Checks the types, effects and value definitions of a graph and of all graphs inside it.

    Attributes:
        done: `id` of each graph already checked, so that a graph that several nodes call is checked
            once.
    """

    def __init__(self) -> None:
        self.done: set[int] = set()

    def graph(self, graph: Graph, context: Context) -> None:
        """Check a graph and its sub-graphs; raise GraphError for the first mistake.

        `context` has the nodes around the graph, which the error names.
        """
        if id(graph) in self.done:
            return
        self.done.add(id(graph))
        if not 0 <= graph.n_params <= len(graph.types):
            raise GraphError(
                f"graph: got {graph.n_params} parameters and {len(graph.types)} types"
                f"{_inside(context)}"
            )
        defined = set(range(graph.n_params))
        for k, node in enumerate(graph.nodes):
            problem = _problem(graph, node, defined)
            if problem is not None:
                raise GraphError(f"{node.op.name}: {problem}{_inside(context)}\n{_near(graph, k)}")
            defined.update(node.results)
            inside = ((graph, k), *context)
            for inner in node.graphs:
                self.graph(inner, inside)
            for value in node.attributes.values():
                if isinstance(value, NamedGraph):
                    self.named(value, inside)
        for i in graph.outputs:
            if i not in defined:
                raise GraphError(f"graph: output %{i} is not defined{_inside(context)}")
        if graph.single and len(graph.outputs) != 1:
            raise GraphError(
                f"graph: says one result and returns {len(graph.outputs)}{_inside(context)}"
            )

    def named(self, target: NamedGraph, context: Context) -> None:
        """Check a named graph, and that it declares the result types and effects of its graph."""
        graph = target.graph
        if graph is None:
            raise GraphError(f"{target}: is called and was never finished{_inside(context)}")
        if id(graph) in self.done:
            return
        found = tuple(graph.types[i] if 0 <= i < len(graph.types) else None for i in graph.outputs)
        if found != tuple(target.result_types):
            raise GraphError(
                f"{target}: declares results {list(target.result_types)}, its graph returns "
                f"{list(found)}{_inside(context)}"
            )
        self.graph(graph, context)
        # recursive calls have the declared effects, so equality means that these are a fixed point
        hidden = graph.effects - target.effects
        if hidden:
            raise GraphError(
                f"{target}: its graph has effects that it does not declare: "
                f"{', '.join(sorted(repr(e) for e in hidden))}{_inside(context)}"
            )


def _inside(context: Context) -> str:
    """Return lines of an error message that show where in the whole graph the wrong node is.

    They show, innermost first, the nodes whose sub-graphs enclose the wrong node.
    """
    return "".join(f"\nin a graph of\n{_near(graph, k)}" for graph, k in context)


def _near(graph: Graph, k: int) -> str:
    """Return the text of node `k` of a graph with those of its neighbours; ">" marks node `k`."""
    return "\n".join(
        ("> " if j == k else "  ") + _line(graph, graph.nodes[j])
        for j in range(max(0, k - _NEAR), min(len(graph.nodes), k + _NEAR + 1))
    )


def _line(graph: Graph, node: GraphNode) -> str:
    known = all(0 <= i < len(graph.types) for i in node.results)
    return node_text(graph, node) if known else f"{node.results} = {node.op.name}{node.operands}"


# Ops that take any number of operands, none included; all other variadic ops join tensors.
_WITHOUT_OPERANDS = {"host_call", "call", "region", "unfused", "custom_call"}


def _problem(graph: Graph, node: GraphNode, defined: set[int]) -> str | None:
    """Return what is wrong with a node, or None; `defined` are the values defined before it."""
    op = node.op
    for i in node.operands:
        if i is not None and i not in defined:
            return f"operand %{i} is used before it is defined"
    for i in node.results:
        if i in defined:
            return f"result %{i} is defined twice"
        if not 0 <= i < len(graph.types):
            return f"result %{i} has no type"
    if not op.variadic and len(node.operands) != op.n_operands:
        return f"got {len(node.operands)} operands, wanted {op.n_operands}"
    if set(node.attributes) != set(op.attribute_names):
        return f"got attributes {sorted(node.attributes)}, wanted {sorted(op.attribute_names)}"
    types = tuple(None if i is None else graph.types[i] for i in node.operands)
    required = [p.kind != "optional" for p in op.parameters if p.kind != "attribute"]
    if op.variadic:
        least = 0 if op.name in _WITHOUT_OPERANDS else 1
        required = [True] * max(least, len(types))
    if len(required) != len(types) or any(r and t is None for r, t in zip(required, types)):
        return f"got the operands {list(types)}, one of which is missing"
    if not op.graph_only:
        for i, t in zip(node.operands, types, strict=True):
            if isinstance(t, HostType):
                return (
                    f"operand %{i} is a host {t}, wanted a tensor; to_tensor makes one of a number"
                )
    try:
        op.check_attributes(node.attributes)
        if not op.graph_only:
            hash(tuple(node.attributes.values()))
        target = op.promoted_dtype(types)  # type: ignore[arg-type]
        if target is not None:
            for t in types[op.promote_from :]:
                if t is not None and t.dtype is not target:  # type: ignore[union-attr]
                    return (
                        f"an operand has dtype {t.dtype.name}, "  # type: ignore[union-attr]
                        f"wanted {target.name} after promotion"
                    )
        op.check_dtypes(types)  # type: ignore[arg-type]
        found = op.result_types(types, node.attributes)  # type: ignore[arg-type]
        if op.body is not None and op.infer_rule is not None:
            # the infer rule must return the types of the body; only the body checks all operands
            body = runtime_state.expand_body(op, types, node.attributes)
            traced = tuple(body.types[i] for i in body.outputs)
            if traced != (found if isinstance(found, tuple) else (found,)):
                return f"its rule gives {found}, its body {list(traced)}"
    except Exception as error:  # noqa: BLE001 (rules may raise anything on what no caller gives)
        return str(error) or type(error).__name__
    single = not isinstance(found, tuple)
    if single is not node.single:
        return f"says {'one result' if node.single else 'a tuple'}, its rule gives {found}"
    have = tuple(graph.types[i] for i in node.results)
    kinds = found if isinstance(found, tuple) else (found,)
    if kinds != have:
        return f"results are recorded as {list(have)}, its rule gives {list(kinds)}"
    return None
