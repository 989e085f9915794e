"""Runs a graph through the door on tensors, control flow included: every op is dispatched, and
recorded where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..autodiff.custom import custom_gradient
from ..autodiff.replay import call_op, constants_of
from ..ir.control import SCALAR_FUNCTIONS
from ..ir.graph import Graph, GraphNode
from ..placement import commit
from ..runtime.source_spans import mark_source
from ..tensor import Tensor
from ..types import Device, HostType

__all__ = ["interpret"]

# Runs a sub-graph on values.
Run = Callable[[Graph, Sequence[Any]], tuple[Any, ...]]


def interpret(
    graph: Graph,
    values: Sequence[Any],
    device: Device,
    watch: Callable[[GraphNode, tuple[Any, ...]], None] | None = None,
) -> tuple[Any, ...]:
    """The results of a graph on tensors and host values. `watch` sees every node that ran, with its
    results.

    An error knows the place in the source of the innermost node that raised it.
    """
    env: dict[int, Any] = dict(enumerate(values))

    def again(inner: Graph, given: Sequence[Any]) -> tuple[Any, ...]:
        return interpret(inner, given, device, watch)

    for node in graph.nodes:
        operands = [None if i is None else env[i] for i in node.operands]
        run = _RUN.get(node.op.name)
        try:
            if run is not None:
                found = run(node, operands, again, device)
            elif not operands:
                found = tuple(constants_of(node, graph, device))
            else:
                out = call_op(node.op, tuple(operands), node.attributes)
                found = (out,) if node.single else out
        except Exception as error:
            if node.span is not None:
                mark_source(error, (node.span,))
            raise
        env.update(zip(node.results, found, strict=True))
        if watch is not None:
            watch(node, tuple(found))
    return tuple(env[i] for i in graph.outputs)


def _truth(value: Any) -> int:
    return int(value.item()) if isinstance(value, Tensor) else int(value)


def _switch(node: GraphNode, operands: Any, again: Run, device: Device) -> Any:
    branches = node.attributes["branches"]
    k = min(max(_truth(operands[0]), 0), len(branches) - 1)
    return again(branches[k], operands[1:])


def _while(node: GraphNode, operands: Any, again: Run, device: Device) -> Any:
    n = node.attributes["n_carry"]
    going, carries, rest = operands[0], operands[1 : 1 + n], operands[1 + n :]
    while _truth(going):
        going, *carries = again(node.attributes["body"], [*carries, *rest])
    return tuple(carries)


def _call(node: GraphNode, operands: Any, again: Run, device: Device) -> Any:
    target = node.attributes["target"].graph
    return again(target, operands)


def _custom(node: GraphNode, operands: Any, again: Run, device: Device) -> Any:
    n = node.attributes["n_args"]
    forward, backward = node.attributes["graph"], node.attributes["backward"]
    rest = operands[n:]

    def run(*xs: Any) -> Any:
        return again(forward, [*xs, *rest])

    def bprop(*args: Any) -> Any:
        *xs, out, dout = args
        return again(backward, [*xs, *rest, *out, *dout])

    return custom_gradient(run, bprop, operands[:n], "bprop")


def _host_call(node: GraphNode, operands: Any, again: Run, device: Device) -> Any:
    return node.attributes["run"].function(*operands)


def _scalar(node: GraphNode, operands: Any, again: Run, device: Device) -> Any:
    return (SCALAR_FUNCTIONS[node.attributes["function"]](*operands),)


def _host_constant(node: GraphNode, operands: Any, again: Run, device: Device) -> Any:
    return (node.attributes["value"].value,)


def _to_host(node: GraphNode, operands: Any, again: Run, device: Device) -> Any:
    kind: HostType = node.attributes["kind"]
    return ({"int": int, "float": float, "bool": bool}[kind.name](operands[0].item()),)


def _to_tensor(node: GraphNode, operands: Any, again: Run, device: Device) -> Any:
    made = Tensor(operands[0], node.attributes["dtype"])
    commit(made, device)
    return (made,)


def _random(node: GraphNode, operands: Any, again: Run, device: Device) -> Any:
    made = Tensor(node.attributes["take"].function())
    commit(made, device)
    return (made,)


_RUN = {
    "switch": _switch,
    "while_loop": _while,
    "call": _call,
    "custom_call": _custom,
    "host_call": _host_call,
    "scalar": _scalar,
    "host_constant": _host_constant,
    "to_host": _to_host,
    "to_tensor": _to_tensor,
    "random_state": _random,
}
