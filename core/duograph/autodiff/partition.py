"""Splits a graph with forward and backward nodes into two graphs, linked by residuals.

`sweep` calls `partition`. Residuals are the forward values that backward nodes use. Cheap values
that depend only on constants are computed again in the backward graph, and are therefore not
residuals. The nodes must stay the same except for their value ids.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ..ir.graph import Graph, GraphNode
from ..ir.liveness import live_nodes
from ..types import ValueType

__all__ = ["Linearized", "partition", "renumbered"]

# Ops whose results are recomputed in the backward graph when they depend on constants alone.
_CHEAP = frozenset({"reshape", "broadcast_to", "cast", "to_tensor", "scalar"})


@dataclasses.dataclass(frozen=True)
class Linearized:
    """A differentiated graph: a forward graph with residuals, and a backward graph.

    Attributes:
        forward: the forward graph: parameters -> (results of the graph..., extra residuals...).
        n_results: how many results the differentiated graph has.
        residuals: ids in `forward` of the values that `backward` takes first.
        backward: the backward graph: (residuals..., cotangents of results..., cotangents of
            parameters to add to..., flags...) -> (cotangents..., flags...). A flag says at run time
            whether a cotangent exists; only cotangents that are not PRESENT have one.
        wrt: for each cotangent that `backward` returns, the index of the parameter it belongs to.
        keys: for each residual, its id before the split. Linearizations of one graph for different
            cotangents have these ids in common.
        statuses: for each cotangent that `backward` returns, its status (see
            `optional_cotangents`); all are PRESENT unless the graph is a sub-graph.
    """

    forward: Graph
    n_results: int
    residuals: tuple[int, ...]
    backward: Graph
    wrt: tuple[int, ...]
    keys: tuple[int, ...]
    statuses: tuple[int, ...] = ()


def partition(
    types: list[ValueType],
    nodes: Sequence[GraphNode],
    n_forward: int,
    n_defined: int,
    graph: Graph,
    results: Sequence[int],
    cotangents: list[int],
    gradients: list[int],
    wrt: tuple[int, ...],
    statuses: tuple[int, ...],
) -> Linearized:
    """Split a graph of forward and backward nodes (the joint graph) into two graphs.

    Args:
        types: types of the values of the joint graph.
        nodes: the forward nodes, then the backward nodes.
        n_forward: number of forward nodes.
        n_defined: ids below it are parameters and results of forward nodes.
        graph: the graph that was differentiated.
        results: ids of the results of `graph` in the joint graph.
        cotangents: ids of the cotangents and flags that the backward graph takes after the
            residuals.
        gradients: ids of the values that the backward graph returns.
        wrt, statuses: see `Linearized`.
    """
    backward = live_nodes(nodes[n_forward:], set(gradients))
    used: dict[int, None] = {}
    for node in backward:
        for i in node.operands:
            if i is not None and i < n_defined:
                used[i] = None
    used.update((i, None) for i in gradients if i < n_defined)
    makers = _constant_nodes(nodes[:n_forward])
    recomputed: dict[int, GraphNode] = {}  # by first result
    residuals: list[int] = []
    for i in used:
        if i in makers:
            _recompute(i, makers, recomputed)
        else:
            residuals.append(i)
    back, _ = renumbered(
        types,
        [*residuals, *cotangents],
        [*(recomputed[i] for i in sorted(recomputed)), *backward],
        gradients,
        False,
    )
    known = set(results)
    extra = [i for i in residuals if i >= graph.n_params and i not in known]
    forward, numbering = renumbered(
        types,
        list(range(graph.n_params)),
        live_nodes(nodes[:n_forward], {*results, *extra}),
        [*results, *extra],
        graph.single and not extra,
    )
    return Linearized(
        forward,
        len(results),
        tuple([numbering[i] for i in residuals]),
        back,
        wrt,
        tuple(residuals),
        statuses,
    )


def _constant_nodes(nodes: Sequence[GraphNode]) -> dict[int, GraphNode]:
    """Return the nodes that compute values cheaply from constants alone, by result id."""
    makers: dict[int, GraphNode] = {}
    for node in nodes:
        if node.operands:
            if node.op.name not in _CHEAP or any(i not in makers for i in node.operands):
                continue
        elif node.op.effects:
            continue
        for r in node.results:
            makers[r] = node
    return makers


def _recompute(i: int, makers: dict[int, GraphNode], into: dict[int, GraphNode]) -> None:
    """Add to `into`, keyed by first result, the nodes that compute value `i` from constants.

    `makers` are the nodes that may be copied, by the value that they compute.
    """
    node = makers[i]
    into[node.results[0]] = node
    for operand in node.operands:
        assert operand is not None
        _recompute(operand, makers, into)


def renumbered(
    types: Sequence[ValueType],
    params: list[int],
    nodes: Sequence[GraphNode],
    outputs: Sequence[int],
    single: bool,
) -> tuple[Graph, dict[int, int]]:
    """Copy nodes into a separate graph with new value ids; return it and a dict old id -> new id.

    `params` are the old ids of the new graph's parameters, and `outputs` those of its results.
    `single` says whether the graph returns one value instead of a tuple.
    """
    number: dict[int, int] = {i: k for k, i in enumerate(params)}
    kinds = [types[i] for i in params]
    made: list[GraphNode] = []
    for node in nodes:
        operands = tuple([None if i is None else number[i] for i in node.operands])
        first = len(kinds)
        for r in node.results:
            number[r] = len(kinds)
            kinds.append(types[r])
        results = tuple(range(first, len(kinds)))
        made.append(GraphNode(node.op, operands, node.attributes, results, node.single, node.span))
    out = tuple([number[i] for i in outputs])
    return Graph(len(params), kinds, made, out, single), number
