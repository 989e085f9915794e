"""Graphs as text, and text as graphs: `parse(to_text(graph))` is the graph again.

```
graph(%0: float32[2, 3], %1: float32[3]) {
  %2 = add(%0, %1) : float32[2, 3]
  %3, %4 = topk(%2, k=1, axis=1, largest=True) : float32[2, 1], int64[2, 1]
  return %3, %4
}
```

A single result is returned bare, a tuple of one as ``return %3,``; a node with a tuple of one result is ``%3, = ...``.
`none` stands for an absent optional operand, a dtype for itself, every other attribute for its Python literal.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..dtype import DType, as_dtype
from ..errors import GraphError
from ..op import OPS
from ..types import TensorType
from .graph import FrozenArray, Graph, GraphNode

__all__ = ["to_text", "parse"]

_NUMBERS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}


def _list(items: list[str], single: bool) -> str:
    return ", ".join(items) if single or len(items) != 1 else f"{items[0]},"


def _show(value: Any) -> str:
    if isinstance(value, DType):
        return value.name
    if isinstance(value, FrozenArray):
        array = value.array
        return f"array({array.dtype.name}, {array.shape}, {array.astype(_wide(array)).ravel().tolist()})"
    if isinstance(value, tuple):
        inner = ", ".join(_show(v) for v in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return repr(value)


def _wide(array: np.ndarray[Any, Any]) -> Any:
    return np.float64 if array.dtype.name == "bfloat16" else array.dtype


def to_text(graph: Graph) -> str:
    """The graph as text that a person can read and `parse` can read back."""
    head = ", ".join(f"%{i}: {graph.types[i]}" for i in range(graph.n_params))
    lines = [f"graph({head}) {{"]
    lines += [f"  {node_text(graph, node)}" for node in graph.nodes]
    outputs = _list([f"%{i}" for i in graph.outputs], graph.single)
    return "\n".join([*lines, f"  return {outputs}".rstrip(), "}"])


def node_text(graph: Graph, node: GraphNode) -> str:
    """One node as text."""
    left = _list([f"%{i}" for i in node.results], node.single)
    args = ["none" if i is None else f"%{i}" for i in node.operands]
    args += [f"{k}={_show(v)}" for k, v in node.attributes.items()]
    types = ", ".join(repr(graph.types[i]) for i in node.results)
    return f"{left} = {node.op.name}({', '.join(args)}) : {types}"


_HEAD = re.compile(r"graph\((.*)\) \{")
_NODE = re.compile(r"(%.*?) = (\w+)\((.*)\) : (.*)")
_TYPE = re.compile(r"(\w+)\[([\d, ]*)\]")


def _fail(number: int, line: str, why: str) -> GraphError:
    return GraphError(f"graph text, line {number}: {why}\n  {line.strip()}")


def _split(text: str) -> Iterator[str]:
    """The items of a comma-separated list; commas inside brackets and strings do not count."""
    depth = 0
    quote = ""
    start = 0
    for i, c in enumerate(text):
        if quote:
            if c == quote and text[i - 1] != "\\":
                quote = ""
        elif c in "'\"":
            quote = c
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif c == "," and depth == 0:
            yield text[start:i].strip()
            start = i + 1
    rest = text[start:].strip()
    if rest:
        yield rest


def _type(text: str) -> TensorType:
    found = _TYPE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no type; wanted one such as float32[2, 3]")
    shape = tuple(int(n) for n in found[2].split(",") if n.strip())
    return TensorType.of(shape, as_dtype(found[1]))


def _value(text: str) -> Any:
    if text in _NUMBERS:
        return _NUMBERS[text]
    if text.startswith("array("):
        name, shape, values = _split(text[len("array(") : -1])
        dtype = as_dtype(name)
        data = np.array(_value(values), dtype.np)
        return FrozenArray(data.reshape(ast.literal_eval(shape)))
    if text[:1] in "([":
        items = [_value(v) for v in _split(text[1:-1])]
        return tuple(items) if text[0] == "(" else items
    if text.isidentifier() and text not in ("True", "False", "None"):
        return as_dtype(text)
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return complex(text.strip("()"))


def parse(text: str) -> Graph:
    """The graph that a text describes.

    Raises:
        GraphError: the text is no graph; the message names the line.
    """
    lines = [(i + 1, ln) for i, ln in enumerate(text.splitlines()) if ln.strip()]
    if len(lines) < 3:
        raise GraphError("graph text: got less than a head, a return and a brace")
    number, line = lines[0]
    head = _HEAD.fullmatch(line.strip())
    if head is None:
        raise _fail(number, line, "wanted `graph(%0: type, ...) {`")
    names: dict[str, int] = {}
    types: list[TensorType] = []

    def define(name: str, type_: TensorType) -> int:
        if name in names:
            raise ValueError(f"{name} is defined twice")
        names[name] = len(types)
        types.append(type_)
        return names[name]

    def use(name: str) -> int:
        if name not in names:
            raise ValueError(f"{name} is used before it is defined")
        return names[name]

    nodes: list[GraphNode] = []
    try:
        for item in _split(head[1]):
            name, _, kind = item.partition(":")
            define(name.strip(), _type(kind))
        n_params = len(types)
        for number, line in lines[1:-2]:  # noqa: B007 (read by the handler below)
            nodes.append(_node(line.strip(), define, use))
        number, line = lines[-2]
        body = line.strip()
        if not body.startswith("return"):
            raise ValueError("wanted `return` before the closing brace")
        listed = body[len("return") :].strip()
        outputs = tuple(use(n) for n in _split(listed))
        single = len(outputs) == 1 and not listed.endswith(",")
    except (ValueError, TypeError, KeyError) as error:
        raise _fail(number, line, str(error)) from None
    return Graph(n_params, types, nodes, outputs, single)


def _node(line: str, define: Any, use: Any) -> GraphNode:
    found = _NODE.fullmatch(line)
    if found is None:
        raise ValueError("wanted `%n = op(operands, attribute=value) : type`")
    left, op_name, inside, kinds = found.groups()
    op = OPS.get(op_name)
    if op is None:
        raise ValueError(f"there is no op {op_name!r}")
    operands: list[int | None] = []
    attributes: dict[str, Any] = {}
    for item in _split(inside):
        if item == "none":
            operands.append(None)
        elif item.startswith("%"):
            operands.append(use(item))
        else:
            key, _, value = item.partition("=")
            attributes[key] = _value(value)
    result_types = [_type(k) for k in _split_types(kinds)]
    result_names = list(_split(left))
    if len(result_names) != len(result_types):
        raise ValueError(f"{len(result_names)} results and {len(result_types)} types")
    results = tuple(define(n, t) for n, t in zip(result_names, result_types, strict=True))
    single = len(results) == 1 and not left.rstrip().endswith(",")
    return GraphNode(op, tuple(operands), attributes, results, single)


def _split_types(text: str) -> list[str]:
    return [m[0] for m in _TYPE.finditer(text)]
