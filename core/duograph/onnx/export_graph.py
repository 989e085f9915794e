"""Writer of a graph of duograph as ONNX nodes, control flow included.

`export` calls it with the graph of a network. A call without a rule in `export_rules` is replaced
by the body or decomposition of its op, as in lowering. The nodes must not depend on values of
tensors, which are unknown at export.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from onnx import helper

from ..errors import DuographError, OnnxError
from ..ir.control import custom_call
from ..ir.graph import Graph, GraphNode, NamedGraph
from ..passes import body_of
from ..passes.inlining import is_recursive
from ..types import INT, HostType, TensorType
from .export_rules import RULES, Call, has_rule, refuse_complex
from .writer import Writer, host_dtype, value_info

if TYPE_CHECKING:
    import onnx

__all__ = ["write_graph"]


def write_graph(w: Writer, graph: Graph, values: Sequence[str]) -> list[str]:
    """Append a graph's nodes to the model and return the names of the graph's results.

    Args:
        w: the Writer that collects the nodes.
        graph: the graph.
        values: ONNX names of the graph's parameters.

    Raises:
        OnnxError: ONNX cannot express an op; the message names the op and the source line.
    """
    env: dict[int | None, str] = {None: "", **dict(enumerate(values))}
    read = {i for node in graph.nodes for i in node.operands} | set(graph.outputs)
    for node in graph.nodes:
        before = w.where
        if node.span is not None:
            w.where = f"{os.path.basename(node.span.file)}:{node.span.line}"
        xs = tuple([env[i] for i in node.operands])
        control = _CONTROL.get(node.op.name)
        if control is not None:
            found = control(w, node, xs, graph)
        else:
            found = _write_call(w, node, xs, graph, read)
        env.update(zip(node.results, found, strict=True))
        w.where = before
    return [env[i] for i in graph.outputs]


def _write_call(
    w: Writer, node: GraphNode, xs: tuple[str, ...], graph: Graph, read: set[int | None]
) -> Sequence[str]:
    """Write one call of an op as ONNX nodes, by its export rule or else by the op's body.

    Args:
        xs: ONNX names of the operands.
        read: ids of the graph values that some node reads, or that are results of the graph.

    Returns the ONNX names of the results.
    """
    types = tuple([None if i is None else _tensor_type(graph, i) for i in node.operands])
    results = tuple([_tensor_type(graph, i) for i in node.results])
    used = tuple([i in read for i in node.results])
    call = Call(node.op.name, xs, types, results, node.attributes, used)
    try:
        if not any(t.size for t in results):  # operators differ in what they do without elements
            return [w.constant(np.empty(t.shape, t.dtype.np)) for t in results]
        if has_rule(call):
            refuse_complex(call)
            made = RULES[call.name](w, call)
            return (made,) if isinstance(made, str) else made
    except OnnxError as error:
        raise _refused(w, node, str(error)) from None
    op = node.op
    if op.body is None and op.decompose_rule is None:
        raise _refused(w, node, f"ONNX has no operator for {op.name}")
    try:
        body = body_of(op, types, node.attributes)
    except DuographError as error:
        raise _refused(w, node, f"{op.name} cannot be decomposed: {error}") from None
    try:
        return write_graph(w, body, [x for x, t in zip(xs, types) if t is not None])
    except OnnxError as error:
        raise _refused(w, node, getattr(error, "why", str(error))) from None


def _refused(w: Writer, node: GraphNode, why: str) -> OnnxError:
    """Return the error for an op that ONNX cannot express; it names the op that the user called."""
    made = OnnxError(
        f"export: {node.op.name} at {w.where} cannot be written as ONNX: {why}; wanted a network "
        "without it, or file_format='MINDIR'"
    )
    made.why = why
    return made


def _tensor_type(graph: Graph, i: int) -> TensorType:
    found = graph.types[i]
    assert isinstance(found, TensorType)
    return found


# ---- control flow -------------------------------------------------------------------------------

Control = Callable[[Writer, GraphNode, tuple[str, ...], Graph], Sequence[str]]


def _subgraph(w: Writer, graph: Graph, values: Sequence[str], stem: str) -> onnx.GraphProto:
    """Return a graph as an ONNX branch: a GraphProto without inputs.

    `values` are the names of outer values, which the branch reads in place of its parameters.
    `stem` is the beginning of the branch's name.
    """
    with w.graph() as scope:
        results = [w.call("Identity", x) for x in write_graph(w, graph, values)]
    infos = [value_info(x, graph.types[i]) for x, i in zip(results, graph.outputs, strict=True)]
    return helper.make_graph(scope.nodes, w.name(stem), [], infos)


def _switch(w: Writer, node: GraphNode, xs: tuple[str, ...], graph: Graph) -> Sequence[str]:
    branches = node.attributes["branches"]
    index, rest = xs[0], xs[1:]
    if len(branches) == 1:
        return write_graph(w, branches[0], rest)
    index = w.cast(index, np.int64)

    def choose(k: int) -> list[str]:
        """Write an ONNX If node that runs branch `k` if the index is <= `k`, else a later one.

        The else branch contains the If node for branch k + 1. Returns the names of the node's
        results.
        """
        condition = w.call("Less", index, w.constant(np.array(k + 1, np.int64)))
        then = _subgraph(w, branches[k], rest, "branch")
        if k + 2 == len(branches):
            other = _subgraph(w, branches[k + 1], rest, "branch")
        else:
            with w.graph() as scope:
                found = [w.call("Identity", x) for x in choose(k + 1)]
            types = [branches[0].types[i] for i in branches[0].outputs]
            infos = [value_info(x, t) for x, t in zip(found, types, strict=True)]
            other = helper.make_graph(scope.nodes, w.name("branch"), [], infos)
        n = len(branches[0].outputs)
        return w.nodes("If", [condition], n, then_branch=then, else_branch=other)

    return choose(0) if branches[0].outputs else []


def _while(w: Writer, node: GraphNode, xs: tuple[str, ...], graph: Graph) -> Sequence[str]:
    n, body = node.attributes["n_carry"], node.attributes["body"]
    carries, rest = xs[1 : 1 + n], xs[1 + n :]
    types = [body.types[i] for i in body.outputs]
    with w.graph() as scope:
        counter, before = w.name("iteration"), w.name("condition")
        entered = [w.name("carry") for _ in carries]
        results = [w.call("Identity", x) for x in write_graph(w, body, [*entered, *rest])]
    # iteration number and condition come first; a while loop ignores both
    count_type, bool_type = value_info(counter, INT), value_info(before, types[0])
    inputs = [count_type, bool_type, *map(value_info, entered, types[1:])]
    outputs = [value_info(x, t) for x, t in zip(results, types, strict=True)]
    made = helper.make_graph(scope.nodes, w.name("body"), inputs, outputs)
    return w.nodes("Loop", ["", *xs[:1], *carries], n, body=made) if n else []


def _call(w: Writer, node: GraphNode, xs: tuple[str, ...], graph: Graph) -> Sequence[str]:
    target: NamedGraph = node.attributes["target"]
    if target.graph is None or is_recursive(target):
        raise _refused(w, node, f"{target} calls itself, and ONNX has no recursion")
    return write_graph(w, target.graph, xs)


def _custom(w: Writer, node: GraphNode, xs: tuple[str, ...], graph: Graph) -> Sequence[str]:
    assert node.op is custom_call
    return write_graph(w, node.attributes["graph"], xs)


# ---- Python numbers -----------------------------------------------------------------------------

_SCALARS = {
    "add": "Add", "sub": "Sub", "mul": "Mul", "neg": "Neg", "abs": "Abs", "pow": "Pow",
    "lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual", "eq": "Equal",
    "not": "Not", "mod": "Mod", "truediv": "Div", "pos": "Identity", "int": "Cast",
    "float": "Cast", "bool": "Cast", "ne": "Equal",
}  # fmt: skip


def _host_constant(w: Writer, node: GraphNode, xs: tuple[str, ...], graph: Graph) -> Sequence[str]:
    value = node.attributes["value"].value
    type_ = graph.types[node.results[0]]
    if not isinstance(value, (bool, int, float)):
        raise _refused(w, node, f"it has the Python object {type(value).__name__}")
    assert isinstance(type_, HostType)
    return (w.constant(np.array(value, host_dtype(type_))),)


def _scalar(w: Writer, node: GraphNode, xs: tuple[str, ...], graph: Graph) -> Sequence[str]:
    function = node.attributes["function"]
    result = graph.types[node.results[0]]
    kinds = [graph.types[i] for i in node.operands if i is not None]
    target = _SCALARS.get(function)
    assert isinstance(result, HostType)
    floating = any(getattr(t, "name", "") == "float" for t in (*kinds, result))
    if target is None or (function == "mod" and floating):
        raise _refused(w, node, f"ONNX has no counterpart of Python's {function} on numbers")
    if target == "Cast":
        return (w.cast(xs[0], host_dtype(result)),)
    if function != "not":
        common = np.float64 if floating else np.int64
        xs = tuple([w.cast(x, common) for x in xs])
    found = w.call(target, *xs)
    if function == "ne":
        found = w.call("Not", found)
    return (found if result.name == "bool" else w.cast(found, host_dtype(result)),)


def _to_host(w: Writer, node: GraphNode, xs: tuple[str, ...], graph: Graph) -> Sequence[str]:
    flat = w.call("Reshape", xs[0], w.ints([]))
    return (w.cast(flat, host_dtype(node.attributes["kind"])),)


def _to_tensor(w: Writer, node: GraphNode, xs: tuple[str, ...], graph: Graph) -> Sequence[str]:
    return (w.cast(xs[0], node.attributes["dtype"]),)


def _stack(w: Writer, node: GraphNode, xs: tuple[str, ...], graph: Graph) -> Sequence[str]:
    raise _refused(w, node, "it is part of the gradient of a loop")


_CONTROL: dict[str, Control] = {
    "switch": _switch,
    "while_loop": _while,
    "call": _call,
    "custom_call": _custom,
    "host_constant": _host_constant,
    "scalar": _scalar,
    "to_host": _to_host,
    "to_tensor": _to_tensor,
    **dict.fromkeys(("stack_new", "stack_push", "stack_pop", "stack_holds"), _stack),
}
