"""The verifier: re-derives every type from the op's rules and compares it with what the graph says."""

from __future__ import annotations

from typing import Any

from ..errors import DuographError, GraphError
from ..types import TensorType
from .graph import Graph, GraphNode, NamedGraph
from .text import node_text

__all__ = ["verify"]


def verify(graph: Graph) -> Graph:
    """Return the graph if it is well formed.

    Checked: values are defined once and before their use; each node has the operands and attributes of its
    op, already promoted; recorded result types are those that the op's `infer` gives; outputs exist; sub-graphs and
    the named graphs that are called are well formed too, and closed.

    Raises:
        GraphError: naming the node, with its neighbours.
    """
    _verify(graph, set())
    return graph


def _verify(graph: Graph, seen: set[int]) -> None:
    if id(graph) in seen:
        return
    seen.add(id(graph))
    defined = set(range(graph.n_params))
    for k, node in enumerate(graph.nodes):
        problem = _problem(graph, node, defined)
        if problem is not None:
            near = [
                ("> " if j == k else "  ") + node_text(graph, graph.nodes[j])
                for j in range(max(0, k - 2), min(len(graph.nodes), k + 3))
            ]
            raise GraphError(f"{node.op.name}: {problem}\n" + "\n".join(near))
        defined.update(node.results)
        for inner in node.graphs:
            _verify(inner, seen)
        target = node.attributes.get("target")
        if isinstance(target, NamedGraph):
            _verify_named(target, seen)
    for i in graph.outputs:
        if i not in defined:
            raise GraphError(f"graph: output %{i} is not defined")
    if graph.single and len(graph.outputs) != 1:
        raise GraphError(f"graph: says one result and returns {len(graph.outputs)}")


def _verify_named(target: NamedGraph, seen: set[int]) -> None:
    if target.graph is None:
        raise GraphError(f"call: {target} has no graph")
    have = tuple(target.graph.types[i] for i in target.graph.outputs)
    if have != tuple(target.result_types):
        raise GraphError(f"call: {target} returns {have}, recorded as {tuple(target.result_types)}")
    _verify(target.graph, seen)
    if not target.graph.effects <= target.effects:
        missing = sorted(type(e).__name__ for e in target.graph.effects - target.effects)
        raise GraphError(f"call: the effects {missing} of {target} are not recorded")


def _problem(graph: Graph, node: GraphNode, defined: set[int]) -> str | None:
    op = node.op
    for i in node.operands:
        if i is not None and i not in defined:
            return f"operand %{i} is used before it is defined"
    for i in node.results:
        if i in defined:
            return f"result %{i} is defined twice"
    if not op.variadic and len(node.operands) != op.n_operands:
        return f"got {len(node.operands)} operands, wanted {op.n_operands}"
    if set(node.attributes) != set(op.attribute_names):
        return f"got attributes {sorted(node.attributes)}, wanted {sorted(op.attribute_names)}"
    types: tuple[Any, ...] = tuple(None if i is None else graph.types[i] for i in node.operands)
    if op.promote is not None and any(t is not None and not isinstance(t, TensorType) for t in types):
        return f"an operand of {list(types)} lives on the host; wanted tensors"
    target = op.promoted_dtype(types)
    if target is not None:
        for t in types[op.promote_from :]:
            if t is not None and t.dtype is not target:
                return f"an operand has dtype {t.dtype.name}, wanted {target.name} after promotion"
    try:
        op.check_dtypes(types)
        found = op.infer_types(types, node.attributes)
    except DuographError as error:
        return str(error)
    have = tuple(graph.types[i] for i in node.results)
    if found != have:
        return f"results are recorded as {list(have)}, its rule gives {list(found)}"
    return None
