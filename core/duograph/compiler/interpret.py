"""Interprets a graph node by node on Tensors and Python values, control flow included.

Every op goes through eager dispatch, so gradient tapes record it. Compiled programs call
`interpret` under nested derivatives and to find the source line of an error; `train.exported` calls
it to run a loaded graph, and `conformance.parity` to compare every value. It never changes the
graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from ..autodiff.activity import lost_in_bprop
from ..autodiff.custom import custom_gradient
from ..autodiff.replay import call_op, constants_of
from ..execution.source_spans import mark_source
from ..ir.control import SCALAR_FUNCTIONS
from ..ir.graph import Graph, GraphNode
from ..placement import commit
from ..recorded_tensors import is_recorded
from ..tensor import Tensor
from ..types import Device, HostType

__all__ = ["interpret"]

# A Tensor, a Python number or object, or a stack of residuals.
RunValue: TypeAlias = Any
Results: TypeAlias = tuple[RunValue, ...]
# Runs a subgraph on values.
RunGraph: TypeAlias = Callable[[Graph, Sequence[RunValue]], Results]
# Runs a control op on operands.
Rule: TypeAlias = Callable[[GraphNode, Sequence[RunValue], RunGraph, Device], Results]


def interpret(
    graph: Graph,
    values: Sequence[RunValue],
    device: Device,
    watch: Callable[[GraphNode, Results], None] | None = None,
) -> Results:
    """Run a graph node by node on tensors and Python values and return the graph's outputs.

    An error carries the source span of the innermost node that raised it.

    Args:
        graph: the graph.
        values: the values of the graph's parameters.
        device: the device on which constants, and results of Python code, are placed.
        watch: function that is called after each node with the node and its results.
    """
    env: dict[int, RunValue] = dict(enumerate(values))

    def again(inner: Graph, given: Sequence[RunValue]) -> Results:
        return interpret(inner, given, device, watch)

    for node in graph.nodes:
        operands = [None if i is None else env[i] for i in node.operands]
        run = _RULES.get(node.op.name)
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


def _truth(value: RunValue) -> int:
    """Return a condition or branch index, which may be a tensor or a number, as a Python int."""
    return int(value.item()) if isinstance(value, Tensor) else int(value)


def _switch(
    node: GraphNode, operands: Sequence[RunValue], again: RunGraph, device: Device
) -> Results:
    branches = node.attributes["branches"]
    k = min(max(_truth(operands[0]), 0), len(branches) - 1)
    return again(branches[k], operands[1:])


def _while(
    node: GraphNode, operands: Sequence[RunValue], again: RunGraph, device: Device
) -> Results:
    n = node.attributes["n_carry"]
    going, carries, rest = operands[0], operands[1 : 1 + n], operands[1 + n :]
    while _truth(going):
        going, *carries = again(node.attributes["body"], [*carries, *rest])
    return tuple(carries)


def _call(
    node: GraphNode, operands: Sequence[RunValue], again: RunGraph, device: Device
) -> Results:
    target = node.attributes["target"].graph
    return again(target, operands)


def _custom(
    node: GraphNode, operands: Sequence[RunValue], again: RunGraph, device: Device
) -> Results:
    n = node.attributes["n_args"]
    forward, backward = node.attributes["graph"], node.attributes["backward"]
    name: str = node.attributes["name"]
    rest = operands[n:]
    lost = False

    def run(*xs: RunValue) -> Results:
        nonlocal lost
        found = again(forward, [*xs, *rest])
        # `custom_gradient` passes inputs that are not recorded: these results depend on others
        lost = any(isinstance(x, Tensor) and is_recorded(x) for x in found)
        return found

    def bprop(*args: RunValue) -> Results:
        if lost:
            raise lost_in_bprop(name)
        *xs, out, dout = args
        return again(backward, [*xs, *rest, *out, *dout])

    return custom_gradient(run, bprop, operands[:n], name)


def _host_call(
    node: GraphNode, operands: Sequence[RunValue], again: RunGraph, device: Device
) -> Results:
    return node.attributes["run"].function(*operands)


def _scalar(
    node: GraphNode, operands: Sequence[RunValue], again: RunGraph, device: Device
) -> Results:
    return (SCALAR_FUNCTIONS[node.attributes["function"]](*operands),)


def _host_constant(
    node: GraphNode, operands: Sequence[RunValue], again: RunGraph, device: Device
) -> Results:
    return (node.attributes["value"].value,)


def _to_host(
    node: GraphNode, operands: Sequence[RunValue], again: RunGraph, device: Device
) -> Results:
    kind: HostType = node.attributes["kind"]
    return ({"int": int, "float": float, "bool": bool}[kind.name](operands[0].item()),)


def _to_tensor(
    node: GraphNode, operands: Sequence[RunValue], again: RunGraph, device: Device
) -> Results:
    made = Tensor(operands[0], node.attributes["dtype"])
    commit(made, device)
    return (made,)


def _random(
    node: GraphNode, operands: Sequence[RunValue], again: RunGraph, device: Device
) -> Results:
    made = Tensor(node.attributes["take"].function())
    commit(made, device)
    return (made,)


# ---- stacks of residuals: linked lists (below, values), the empty one is None --------------------


def _stack_new(
    node: GraphNode, operands: Sequence[RunValue], again: RunGraph, device: Device
) -> Results:
    return (None,)


def _stack_push(
    node: GraphNode, operands: Sequence[RunValue], again: RunGraph, device: Device
) -> Results:
    return ((operands[0], operands[1:]),)


def _stack_pop(
    node: GraphNode, operands: Sequence[RunValue], again: RunGraph, device: Device
) -> Results:
    below, values = operands[0]
    return (below, below is not None, *values)


def _stack_holds(
    node: GraphNode, operands: Sequence[RunValue], again: RunGraph, device: Device
) -> Results:
    return (operands[0] is not None,)


_RULES: dict[str, Rule] = {
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
    "stack_new": _stack_new,
    "stack_push": _stack_push,
    "stack_pop": _stack_pop,
    "stack_holds": _stack_holds,
}
