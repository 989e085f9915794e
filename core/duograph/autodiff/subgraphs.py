"""Edits of sub-graphs during differentiation: new parameters, more nodes, more outputs.

The derivatives of switches, loops and calls apply these functions to the graphs of branches and
bodies. No function changes a graph in place; each returns or extends a copy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from ..ir.builder import GraphBuilder, GraphValue, current_builder
from ..ir.control import stack_new
from ..ir.graph import Graph, GraphNode
from ..types import BOOL, INT, OBJECT, STACK, HostType, ValueType
from .host_rules import additive_identity, filled
from .optional_cotangents import PRESENT

if TYPE_CHECKING:
    from .sweep import Linearized, Sweep

__all__ = [
    "Ids",
    "backward_inputs",
    "by_parameter",
    "reopened",
    "spliced",
    "unread_residual",
    "with_outputs_for",
    "with_parameters",
]

Ids: TypeAlias = "tuple[int | None, ...]"
Item = TypeVar("Item")


def with_parameters(graph: Graph, types: Sequence[ValueType], positions: Sequence[int]) -> Graph:
    """Return a copy of a graph with other parameters.

    Parameter i of the graph becomes parameter `positions[i]` of the copy. `types` are the types of
    all parameters of the copy, which may leave some of them unread.
    """
    n = len(types)
    shift = n - graph.n_params
    number: dict[int | None, int | None] = {
        i: i + shift for i in range(graph.n_params, len(graph.types))
    }
    number.update(enumerate(positions))
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
    outputs = tuple(number[i] for i in graph.outputs)
    return Graph(n, [*types, *graph.types[graph.n_params :]], nodes, outputs, False)  # type: ignore[arg-type]


def reopened(graph: Graph) -> GraphBuilder:
    """Return a graph builder that contains a graph's nodes, so that more can be appended."""
    builder = GraphBuilder()
    builder.types = list(graph.types)
    builder.nodes = list(graph.nodes)
    builder.n_params = graph.n_params
    return builder


def spliced(builder: GraphBuilder, graph: Graph, values: Sequence[GraphValue]) -> list[GraphValue]:
    """Append another graph's nodes to a builder, with `values` for its parameters.

    Returns the outputs. Unlike `GraphBuilder.inline` it gives no source location to nodes without
    one.
    """
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


def unread_residual(type_: ValueType) -> GraphValue:
    """Append a constant of a type to the current graph; return its value.

    A branch of a switch returns the constant for a residual that only other branches compute and
    read.
    """
    if not isinstance(type_, HostType):
        return filled(type_, 0)
    builder = current_builder()
    found: GraphValue
    if type_ is STACK:
        found = builder.append(stack_new, (), {})
    else:
        found = builder.host({INT: 0, BOOL: False, OBJECT: None}.get(type_, 0.0))
    return found


def backward_inputs(sweep: Sweep, ids: Sequence[int], statuses: Sequence[int]) -> list[GraphValue]:
    """Return the arguments with which to call a backward graph: cotangents, then their flags.

    Args:
        sweep: the sweep, which has the cotangents so far.
        ids: values of the forward graph.
        statuses: for each of these values, the status of its cotangent. An ABSENT cotangent is left
            out; a PRESENT one has no flag.
    """
    given = [sweep.cotangents[i] for i, s in zip(ids, statuses) if s]
    flags = [c.flag for c in given if c.flag is not None]
    return [*(c.value for c in given), *flags]


def with_outputs_for(
    graph: Graph,
    halves: Linearized,
    wrt: Sequence[int],
    flagged: Sequence[int],
    types: Sequence[ValueType],
) -> Graph:
    """Return a copy of a backward graph with outputs for all given parameters, in order.

    It returns a cotangent for each parameter in `wrt`, then a flag for each in `flagged`. If the
    graph has no cotangent for a parameter, the copy returns a value that leaves any sum unchanged,
    and a false flag. The flag of a cotangent that exists in every run is true.

    Args:
        graph: the backward graph.
        halves: says which outputs of the graph belong to which parameters.
        wrt, flagged: indices of parameters of the forward graph.
        types: types of these parameters, by index.
    """
    known, flags = by_parameter(halves, graph.outputs)
    if not flagged and len(known) == len(wrt):
        return graph
    builder = reopened(graph)
    with builder.current():
        outputs = [known[i] if i in known else additive_identity(types[i])._id for i in wrt]
        outputs += [flags[i] if i in flags else builder.host(i in known)._id for i in flagged]
    return Graph(builder.n_params, builder.types, builder.nodes, tuple(outputs), False)


def by_parameter(
    halves: Linearized, outputs: Sequence[Item]
) -> tuple[Mapping[int, Item], Mapping[int, Item]]:
    """Map the parameters of a forward graph to what its backward graph returned for them.

    Args:
        halves: the two graphs.
        outputs: what the backward graph returned: cotangents, then flags.

    Returns:
        parameter -> cotangent, and parameter -> flag.
    """
    known = dict(zip(halves.wrt, outputs))
    flagged = [i for i, s in zip(halves.wrt, halves.statuses) if s > PRESENT]
    return known, dict(zip(flagged, outputs[len(halves.wrt) :]))
