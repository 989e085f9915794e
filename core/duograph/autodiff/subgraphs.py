"""Sub-graphs taken apart and put together again while a graph is differentiated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..ir.builder import GraphBuilder
from ..ir.control import stack_new
from ..ir.graph import Graph, GraphNode
from ..runtime_state import thread_state
from ..types import BOOL, INT, OBJECT, STACK, HostType, ValueType
from .host_rules import full, nothing
from .optional_cotangents import PRESENT

if TYPE_CHECKING:
    from .sweep import Linearized, Sweep

__all__ = ["Ids", "rewired", "reopened", "spliced", "filler", "inputs", "answering", "answers"]

Ids = tuple[int | None, ...]


def rewired(graph: Graph, kinds: Sequence[ValueType], places: Sequence[int]) -> Graph:
    """The graph on other parameters: its parameter i is the new number `places[i]`."""
    n = len(kinds)
    shift = n - graph.n_params
    number: dict[int | None, int | None] = {
        i: i + shift for i in range(graph.n_params, len(graph.types))
    }
    number.update(enumerate(places))
    number[None] = None
    nodes = [
        GraphNode(
            node.op,
            tuple([number[i] for i in node.operands]),
            node.attributes,
            tuple([r + shift for r in node.results]),
            node.single,
            node.span,
        )
        for node in graph.nodes
    ]
    types = [*kinds, *graph.types[graph.n_params :]]
    return Graph(n, types, nodes, tuple(number[i] for i in graph.outputs), False)  # type: ignore[misc]


def reopened(graph: Graph) -> GraphBuilder:
    """A builder that goes on where the graph ends."""
    builder = GraphBuilder()
    builder.types = list(graph.types)
    builder.nodes = list(graph.nodes)
    builder.n_params = graph.n_params
    return builder


def spliced(builder: GraphBuilder, graph: Graph, values: Sequence[Any]) -> list[Any]:
    """Append the nodes of a closed graph on these values, as they are; its outputs."""
    env: dict[int | None, int | None] = {k: v._id for k, v in enumerate(values)}
    env[None] = None
    for node in graph.nodes:
        first = len(builder.types)
        builder.types.extend([graph.types[r] for r in node.results])
        results = tuple(range(first, len(builder.types)))
        operands = tuple([env[i] for i in node.operands])
        builder.nodes.append(
            GraphNode(node.op, operands, node.attributes, results, node.single, node.span)
        )
        env.update(zip(node.results, results))
    return [builder.tensor(env[i]) for i in graph.outputs]  # type: ignore[arg-type]


def filler(type_: ValueType) -> Any:
    """A residual that nobody will read."""
    builder: Any = thread_state.builder
    if not isinstance(type_, HostType):
        return full(type_, 0)
    if type_ is STACK:
        return builder.append(stack_new, (), {})
    return builder.host({INT: 0, BOOL: False, OBJECT: None}.get(type_, 0.0))


def inputs(sweep: Sweep, ids: Sequence[int], statuses: Sequence[int]) -> list[Any]:
    """What a backward graph for cotangents of these statuses takes: the cotangents, then the flags."""
    given = [sweep.cotangent(i) for i, s in zip(ids, statuses) if s]
    return [*(c.value for c in given), *(c.flag for c in given if c.status > PRESENT)]


def answering(
    graph: Graph,
    halves: Linearized,
    wrt: Sequence[int],
    flagged: Sequence[int],
    types: Sequence[ValueType],
) -> Graph:
    """The graph returning a cotangent for every parameter of `wrt`, then a flag for each of
    `flagged`.
    """
    known, flags = answers(halves, graph.outputs)
    if not flagged and len(known) == len(wrt):
        return graph
    builder = reopened(graph)
    with builder.current():
        outputs = [known[i] if i in known else nothing(types[i])._id for i in wrt]
        outputs += [flags[i] if i in flags else builder.host(i in known)._id for i in flagged]
    return Graph(builder.n_params, builder.types, builder.nodes, tuple(outputs), False)


def answers(halves: Linearized, outputs: Sequence[Any]) -> tuple[dict[int, Any], dict[int, Any]]:
    """What a backward graph returned: cotangents by parameter, and the flags of those that have
    one.
    """
    known = dict(zip(halves.wrt, outputs))
    flagged = [i for i, s in zip(halves.wrt, halves.statuses) if s > PRESENT]
    return known, dict(zip(flagged, outputs[len(halves.wrt) :]))
