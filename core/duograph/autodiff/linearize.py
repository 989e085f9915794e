"""From a graph to its derivative: a forward graph that also returns residuals, and a backward graph.

The bprop rules are traced onto the end of the forward nodes; what the live part of the backward
uses of the forward are the residuals. So a shape that a rule asks for costs nothing, and a rule
that uses only its output keeps only its output.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from .. import context
from ..errors import GradientError, ShapeError
from ..ir.builder import GraphBuilder, GraphTensor, expand
from ..ir.graph import Graph, GraphNode, live_nodes
from ..op import NO_GRAD, Op
from ..types import TensorType

__all__ = ["Linearized", "linearize"]


@dataclasses.dataclass(frozen=True)
class Linearized:
    """The two halves of a derivative.

    Attributes:
        forward: parameters -> (results of the graph..., extra residuals...).
        n_results: how many results the graph itself has.
        residuals: for each residual of the backward, its value id in `forward`.
        backward: (residuals..., cotangents present...) -> cotangents.
        wrt: for each output of `backward`, the parameter it belongs to.
        keys: names of the residuals that two linearizations of one graph share.
    """

    forward: Graph
    n_results: int
    residuals: tuple[int, ...]
    backward: Graph
    wrt: tuple[int, ...]
    keys: tuple[int, ...]


def linearize(graph: Graph, wanted: Sequence[bool], present: Sequence[bool]) -> Linearized:
    """Differentiate `graph` with respect to the `wanted` parameters.

    Args:
        wanted: per parameter, whether its cotangent is asked for.
        present: per result, whether a cotangent will be given (else it is zero).

    Raises:
        GradientError: an op on the way has no rule, or a rule returned something of the wrong kind.
    """
    builder = GraphBuilder()
    params = [builder.parameter(graph.types[i]) for i in range(graph.n_params)]
    # cotangents come in as parameters too, so that ids stay in one numbering
    seeds = [builder.parameter(graph.types[i]) for i in graph.outputs]
    active = {p._id for p, w in zip(params, wanted, strict=True) if w}
    with builder.current():
        outputs = _forward(builder, graph, params, active)
        n_forward = len(builder.nodes)
        cotangents: dict[int, GraphTensor] = {}
        for out, seed, given in zip(outputs, seeds, present, strict=True):
            if given:
                _accumulate(cotangents, out._id, seed)
        for node in reversed(builder.nodes[:n_forward]):
            _backward_node(builder, node, active, cotangents)
    wrt = tuple(i for i, p in enumerate(params) if wanted[i] and p._id in cotangents)
    grads = [cotangents[params[i]._id] for i in wrt]
    return _split(builder, graph, n_forward, outputs, seeds, present, grads, wrt)


def _forward(
    builder: GraphBuilder, graph: Graph, params: list[GraphTensor], active: set[int]
) -> list[GraphTensor]:
    """Copy the nodes, expanding composites without a rule that lie on the way of a cotangent."""
    env: dict[int, GraphTensor] = dict(enumerate(params))
    for node in graph.nodes:
        values = tuple(None if i is None else env[i] for i in node.operands)
        on_the_way = any(v is not None and v._id in active for v in values)
        op = node.op
        if on_the_way and op.bprop_rule is None and op.body is not None and op.differentiable:
            types = tuple(None if v is None else v._type for v in values)
            inner = expand(op, types, node.attributes)
            made = _forward(builder, inner, [v for v in values if v is not None], active)
        else:
            out = builder.append(op, values, node.attributes)
            made = [out] if node.single else list(out)
            if on_the_way and op.differentiable:
                active.update(m._id for m in made)
        env.update(zip(node.results, made, strict=True))
    return [env[i] for i in graph.outputs]


def _accumulate(cotangents: dict[int, GraphTensor], id_: int, value: GraphTensor) -> None:
    have = cotangents.get(id_)
    cotangents[id_] = value if have is None else have + value


def _backward_node(
    builder: GraphBuilder,
    node: GraphNode,
    active: set[int],
    cotangents: dict[int, GraphTensor],
) -> None:
    douts = [cotangents.get(i) for i in node.results]
    if all(d is None for d in douts) or not any(r in active for r in node.results):
        return
    needed = [i is not None and i in active for i in node.operands]
    if not any(needed):
        return
    op = node.op
    if op.bprop_rule is None:
        raise GradientError(
            f"{op.name}: has no gradient rule; register one with "
            f"bprop_getters.register, or wrap the operand in ops.stop_gradient"
        )
    from ..ops.creation import zeros_of

    filled = [
        d if d is not None else zeros_of(builder.types[i])
        for d, i in zip(douts, node.results, strict=True)
    ]
    values = [None if i is None else builder.tensor(i) for i in node.operands]
    outs = [builder.tensor(i) for i in node.results]
    rule = op.bprop_rule(node.attributes)
    found = rule(
        *op.arguments(values),
        outs[0] if node.single else tuple(outs),
        filled[0] if node.single else tuple(filled),
    )
    for operand, need, grad in zip(node.operands, needed, checked(op, values, found), strict=True):
        if need and grad is not NO_GRAD and grad is not None:
            _accumulate(cotangents, operand, _fitted(builder, op, operand, grad))  # type: ignore[arg-type]


def checked(op: Op, operands: Sequence[Any], found: Any) -> tuple[Any, ...]:
    """What a rule returned, one item per operand.

    Raises:
        GradientError: another number of gradients than operands.
    """
    if op.variadic and isinstance(found, (tuple, list)) and len(found) == 1:
        inner = found[0]
        if isinstance(inner, (tuple, list)):
            found = inner
    if not isinstance(found, (tuple, list)):
        found = (found,)
    # a rule of the older form also returns items for attributes that it takes as inputs
    if len(found) < len(operands) or (
        len(found) > len(operands) and len(found) > len(op.parameters)
    ):
        raise GradientError(
            f"{op.name}: its bprop returned {len(found)} gradients, wanted {len(operands)}, "
            f"one per operand"
        )
    return tuple(found[: len(operands)])


def _fitted(builder: GraphBuilder, op: Op, operand: int, grad: Any) -> GraphTensor:
    """The gradient as a value of the operand's type; another shape is an error, another dtype is cast."""
    want: TensorType = builder.types[operand]
    value = builder.operand(grad, want.dtype)
    assert value is not None
    if value._type.shape != want.shape:
        raise GradientShapeError(
            f"{op.name}: its bprop returned a gradient of shape {value._type.shape} for an "
            f"operand of shape {want.shape}; wanted the operand's shape"
        )
    if value._type.dtype is not want.dtype:
        if context.settings.debug:
            raise GradientError(
                f"{op.name}: its bprop returned a {value._type.dtype.name} gradient for a "
                f"{want.dtype.name} operand; wanted the operand's dtype"
            )
        from ..ops.creation import cast_to

        value = builder.append(cast_to, (value,), {"dtype": want.dtype})
    return value


class GradientShapeError(GradientError, ShapeError):
    """A rule returned a gradient of another shape than the operand's."""


def _split(
    builder: GraphBuilder,
    graph: Graph,
    n_forward: int,
    outputs: list[GraphTensor],
    seeds: list[GraphTensor],
    present: Sequence[bool],
    grads: list[GraphTensor],
    wrt: tuple[int, ...],
) -> Linearized:
    """Cut the joint graph in two at `n_forward`; what crosses the cut are the residuals."""
    types = builder.types
    n_params = graph.n_params
    seed_ids = [s._id for s in seeds]
    defined_forward = set(range(n_params))
    for node in builder.nodes[:n_forward]:
        defined_forward.update(node.results)
    backward = live_nodes(builder.nodes[n_forward:], {g._id for g in grads})
    # constants that the rules share with the forward are made again rather than kept as residuals
    makers = {r: n for n in builder.nodes[:n_forward] if not n.operands for r in n.results}
    used: list[int] = []
    remade: list[GraphNode] = []
    for node in backward:
        for i in node.operands:
            if i is not None and i in defined_forward:
                used.append(i)
    used += [g._id for g in grads if g._id in defined_forward]
    residuals: list[int] = []
    for i in dict.fromkeys(used):
        maker = makers.get(i)
        if maker is None:
            residuals.append(i)
        elif maker not in remade:
            remade.append(maker)
    back = _renumber(
        types,
        [*residuals, *(s for s, p in zip(seed_ids, present, strict=True) if p)],
        [*remade, *backward],
        [g._id for g in grads],
        single=False,
    )
    out_ids = [o._id for o in outputs]
    extra = [i for i in residuals if i >= n_params and i not in out_ids]
    forward_nodes = live_nodes(builder.nodes[:n_forward], {*out_ids, *extra})
    forward, numbering = _renumbered(
        types,
        list(range(n_params)),
        forward_nodes,
        [*out_ids, *extra],
        single=graph.single and not extra,
    )
    return Linearized(
        forward, len(out_ids), tuple(numbering[i] for i in residuals), back, wrt, tuple(residuals)
    )


def _renumber(
    types: list[TensorType],
    params: list[int],
    nodes: list[GraphNode],
    outputs: list[int],
    single: bool,
) -> Graph:
    return _renumbered(types, params, nodes, outputs, single)[0]


def _renumbered(
    types: list[TensorType],
    params: list[int],
    nodes: list[GraphNode],
    outputs: list[int],
    single: bool,
) -> tuple[Graph, dict[int, int]]:
    """A graph of its own numbering made of some nodes of another one."""
    number: dict[int, int] = {}
    kinds: list[TensorType] = []

    def define(i: int) -> int:
        number[i] = len(kinds)
        kinds.append(types[i])
        return number[i]

    for i in params:
        define(i)
    made: list[GraphNode] = []
    for node in nodes:
        operands = tuple(None if i is None else number[i] for i in node.operands)
        results = tuple(define(i) for i in node.results)
        made.append(dataclasses.replace(node, operands=operands, results=results))
    out = tuple(number[i] for i in outputs)
    return Graph(len(params), kinds, made, out, single), number
