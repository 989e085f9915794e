"""Graphs for tests: written with a builder, and run node by node as the executor must run them."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from duograph.autodiff.replay import call_op
from duograph.ir.builder import GraphBuilder
from duograph.ir.control import (
    SCALAR_FUNCTIONS,
    HostConstant,
    call,
    host_constant,
    switch,
    while_loop,
)
from duograph.ir.graph import Graph, NamedGraph
from duograph.ir.text import parse
from duograph.ir.verify import verify
from duograph.runtime_state import thread_state
from duograph.tensor import Tensor
from duograph.types import BOOL, FLOAT, INT


def here() -> Any:
    """Return the builder of the graph that is being written."""
    return thread_state.builder


def write(types: Sequence[Any], function: Callable[..., Any]) -> Graph:
    """Return the graph of a function of graph values, which returns a tuple."""
    builder = GraphBuilder()
    values = [builder.parameter(t) for t in types]
    with builder.current():
        found = function(*values)
        return builder.finish(tuple(found) if isinstance(found, (tuple, list)) else (found,))


def _types(values: Sequence[Any]) -> list[Any]:
    return [v._type for v in values]


def branch(index: Any, values: Sequence[Any], *functions: Callable[..., Any]) -> Any:
    """Append a switch that chooses by `index` among functions of the values."""
    branches = tuple(write(_types(values), f) for f in functions)
    return here().append(switch, (index, *values), {"branches": branches})


def loop(
    predicate: Any, carries: Sequence[Any], invariants: Sequence[Any], body: Callable[..., Any]
) -> Any:
    """Append a loop whose body returns (predicate, *loop variables)."""
    graph = write(_types([*carries, *invariants]), body)
    return here().append(
        while_loop, (predicate, *carries, *invariants), {"body": graph, "n_carry": len(carries)}
    )


def invoke(target: NamedGraph, *values: Any) -> Any:
    return here().append(call, values, {"target": target})


def host(value: Any) -> Any:
    return here().append(host_constant, (), {"value": HostConstant(value)})


def number(value: Any, dtype: Any) -> Any:
    return here().constant(value, dtype)


def run(graph: Graph, values: Sequence[Any]) -> tuple[Any, ...]:
    """Run a graph op by op on eager tensors and host values.

    Under `grad` this is what the tape sees of the program.
    """
    assert len(values) == graph.n_params
    env: dict[int | None, Any] = {None: None, **dict(enumerate(values))}
    for node in graph.nodes:
        out = _node(node, graph, [env[i] for i in node.operands])
        if node.single:
            env[node.results[0]] = out
        else:
            env.update(zip(node.results, out, strict=True))
    return tuple(env[i] for i in graph.outputs)


def _plain(x: Any) -> Any:
    return x.asnumpy().item() if isinstance(x, Tensor) else x


def _node(node: Any, graph: Graph, operands: list[Any]) -> Any:
    name, attributes = node.op.name, node.attributes
    if name == "switch":
        return run(attributes["branches"][int(_plain(operands[0]))], operands[1:])
    if name == "while_loop":
        going, n = operands[0], attributes["n_carry"]
        carries, invariants = operands[1 : n + 1], operands[n + 1 :]
        while _plain(going):
            going, *carries = run(attributes["body"], [*carries, *invariants])
        return tuple(carries)
    if name == "call":
        return run(attributes["target"].graph, operands)
    if name == "custom_call":
        return run(attributes["graph"], operands)
    if name == "stack_new":
        return ()
    if name == "stack_push":
        return (operands[0], tuple(operands[1:]))
    if name == "stack_pop":
        rest, frame = operands[0]
        assert len(frame) == len(attributes["types"])
        return (rest, rest != (), *frame)
    if name == "stack_holds":
        return operands[0] != ()
    if name == "scalar":
        return SCALAR_FUNCTIONS[attributes["function"]](*operands)
    if name == "to_host":
        return {BOOL: bool, INT: int, FLOAT: float}[attributes["kind"]](_plain(operands[0]))
    if name == "to_tensor":
        return Tensor(np.array(operands[0]).astype(attributes["dtype"].np))
    if name == "host_constant":
        return attributes["value"].value
    if name == "host_call":
        return attributes["run"].function(*operands)
    return call_op(node.op, tuple(operands), attributes)


# ---- text ---------------------------------------------------------------------------------------


def show(graph: Graph) -> str:
    """Return a graph, and the graphs inside it, as indented text.

    Values are numbered in the order of their definition.
    """
    return "\n".join(_lines(graph, "graph"))


def _lines(graph: Graph, title: str) -> list[str]:
    names: dict[int | None, str] = {i: f"%{i}" for i in range(graph.n_params)}
    names[None] = "none"
    lines = [
        f"{title}({', '.join(f'{names[i]}: {graph.types[i]}' for i in range(graph.n_params))})"
    ]
    for node in graph.nodes:
        args = [names[i] for i in node.operands]
        inner: list[str] = []
        for key, value in node.attributes.items():
            if isinstance(value, Graph):
                inner += _lines(value, key)
            elif isinstance(value, tuple) and value and isinstance(value[0], Graph):
                for k, g in enumerate(value):
                    inner += _lines(g, str(k))
            else:
                args.append(f"{key}={value!r}")
        for r in node.results:
            names[r] = f"%{len(names) - 1}"
        left = ", ".join(names[r] for r in node.results)
        lines.append(f"  {left} = {node.op.name}({', '.join(args)})")
        lines += [f"    {line}" for line in inner]
    return [*lines, f"  return {', '.join(names[i] for i in graph.outputs)}"]


def graph_of(head: str, body: str) -> Any:
    inner = textwrap.indent(textwrap.dedent(body).strip(), "  ")
    return verify(parse(f"graph({head}) {{\n{inner}\n}}"))


def shape_of(graph: Any) -> list[str]:
    """Return the names of the ops in order, those of a region in brackets, without literals."""
    found = []
    for node in graph.nodes:
        if node.op.name == "region":
            inner = [n.op.name for n in node.attributes["body"].nodes if n.op.name != "fill"]
            found.append(f"[{' '.join(inner)}]")
        elif node.op.name != "fill":
            found.append(node.op.name)
    return found
