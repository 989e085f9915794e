"""Prints graphs as text that `parse` reads back: `parse(to_text(graph))` equals the graph.

`str(graph)`, dumps, tests and the cache of compiled regions use it.

```
graph(%0: float32[2, 3], %1: float32[3], %2: bool) {
  %3 = add(%0, %1) : float32[2, 3]  # model.py:12
  %4, = switch(%2, %3) : float32[2, 3] ! io {
    branches[0] = graph(%0: float32[2, 3]) {
      return %0,
    }
    branches[1] = graph(%0: float32[2, 3]) {
      host_call(%0, run=host.print, types=()) ! io
      %1, = call(%0, target=@walk) : float32[2, 3]
      return %1,
    }
  }
  return %4
}
@walk = graph(%0: float32[2, 3]) : float32[2, 3] {
  ...
}
```

A single result is written bare and a tuple of one with a comma: ``return %3,`` and ``%3, = ...``.
An absent optional operand is `none`. A dtype is written by its name, any other attribute as a
Python literal. Effects of a node follow `!`, its source location `#`. Sub-graphs are blocks and
number their values from %0, because they are closed; named graphs follow the main one. Python
objects are shown but cannot be read back: a host call that was parsed raises when it runs.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from ..dtype import EXTENSIONS, DType
from ..effects import IO, Effect, Random, Reads, Writes
from .control import HostCall, HostConstant
from .graph import FrozenArray, Graph, GraphNode, NamedGraph, install_writer
from .parsing import parse

if TYPE_CHECKING:
    from ..host_arrays import Array

__all__ = ["attributes_text", "effects_text", "node_text", "parse", "subgraphs_of", "to_text"]

# The largest array, in elements, that `str(graph)` shows.
_SHOWN = 16


def _list(items: list[str], single: bool) -> str:
    """Return items separated by commas; a tuple of one item ends in a comma."""
    return ", ".join(items) if single or len(items) != 1 else f"{items[0]},"


class _Writer:
    """Prints one graph, and the named graphs that its nodes call.

    Attributes:
        whole: whether arrays are printed with all elements.
        locations: whether lines end in source locations.
        names: `id` of a named graph -> its printed name.
        named: the named graphs met so far, which are printed after the main graph.
    """

    def __init__(self, whole: bool, locations: bool = True) -> None:
        self.whole = whole
        self.locations = locations
        self.names: dict[int, str] = {}
        self.named: list[NamedGraph] = []

    def name(self, target: NamedGraph) -> str:
        """Return the name of a called graph in the printed text, unique within the text."""
        found = self.names.get(id(target))
        if found is None:
            base = found = re.sub(r"[^\w.]", "_", target.name)
            count = 1
            while found in self.names.values():
                count += 1
                found = f"{base}.{count}"
            self.names[id(target)] = found
            self.named.append(target)
        return f"@{found}"

    def value(self, value: object) -> str:
        """Return the value of a node's attribute as text for the printed graph."""
        if isinstance(value, DType):
            return value.name
        if isinstance(value, NamedGraph):
            return self.name(value)
        if isinstance(value, FrozenArray):
            array = value.array
            if array.size > _SHOWN and not self.whole:
                return f"array({array.dtype.name}, {array.shape}, ...)"
            return f"array({array.dtype.name}, {array.shape}, {_plain(array)})"
        if isinstance(value, HostConstant):
            return f"host({_literal(value.value)})"
        if isinstance(value, HostCall):
            return "host." + re.sub(r"[^\w.]", "_", value.name)
        if isinstance(value, tuple):
            inner = ", ".join(self.value(v) for v in value)
            return f"({inner},)" if len(value) == 1 else f"({inner})"
        return repr(value)

    def head(self, node: GraphNode) -> str:
        """Return a graph node as text: its op, operands and attributes, without sub-graphs."""
        args = ["none" if i is None else f"%{i}" for i in node.operands]
        args += [f"{k}={self.value(v)}" for k, v in node.attributes.items() if not _has_graphs(v)]
        return f"{node.op.name}({', '.join(args)})"

    def node(self, graph: Graph, node: GraphNode) -> list[str]:
        """Return the lines of a node, with its sub-graphs indented."""
        left = _list([f"%{i}" for i in node.results], node.single)
        line = f"{left} = {self.head(node)}" if left else self.head(node)
        if node.results:
            line += " : " + ", ".join(repr(graph.types[i]) for i in node.results)
        line += _effects(node.effects)
        blocks = subgraphs_of(node)
        line += " {" if blocks else ""
        if node.span is not None and self.locations:
            line += f"  # {os.path.basename(node.span.file)}:{node.span.line}"
        lines = [line]
        for name, inner in blocks:
            lines += [f"  {text}" for text in self.graph(inner, f"{name} = ")]
        return [*lines, "}"] if blocks else lines

    def graph(self, graph: Graph, title: str = "", tail: str = "") -> list[str]:
        """Return the lines of a graph; in the first, `title` is before the header, `tail` after."""
        head = ", ".join(f"%{i}: {graph.types[i]}" for i in range(graph.n_params))
        lines = [f"{title}graph({head}){tail} {{"]
        for node in graph.nodes:
            lines += [f"  {text}" for text in self.node(graph, node)]
        outputs = _list([f"%{i}" for i in graph.outputs], graph.single)
        return [*lines, f"  return {outputs}".rstrip(), "}"]

    def named_graph(self, target: NamedGraph) -> list[str]:
        """Return the lines of a named graph, with its result types and effects."""
        types = ", ".join(repr(t) for t in target.result_types)
        tail = (f" : {types}" if types else "") + _effects(target.effects)
        if target.graph is None:
            return [f"{self.name(target)} = unfinished{tail}"]
        return self.graph(target.graph, f"{self.name(target)} = ", tail)


def _plain(array: Array) -> list[object]:
    """Return the elements of an array as a flat list of Python numbers."""
    wide = np.float64 if array.dtype in EXTENSIONS else array.dtype
    found: list[object] = array.astype(wide).ravel().tolist()
    return found


def _literal(value: object) -> str:
    """Return the text of a Python object: a literal, or else its class in angle brackets."""
    text = repr(value)
    try:
        if isinstance(value, float) or (len(text) < 1000 and repr(ast.literal_eval(text)) == text):
            return text
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        pass
    return text if text.startswith("<of ") else f"<of {type(value).__name__}>"


def _has_graphs(value: object) -> bool:
    return isinstance(value, Graph) or (
        isinstance(value, tuple) and bool(value) and isinstance(value[0], Graph)
    )


def subgraphs_of(node: GraphNode) -> list[tuple[str, Graph]]:
    """Return (name of the printed block, sub-graph) for each sub-graph of a node.

    A name is that of the attribute, such as `body`, or `branches[1]` for an item of a tuple.
    """
    found: list[tuple[str, Graph]] = []
    for key, value in node.attributes.items():
        if isinstance(value, Graph):
            found.append((key, value))
        elif _has_graphs(value):
            found += [(f"{key}[{i}]", g) for i, g in enumerate(value)]
    return found


def effects_text(effects: Iterable[Effect]) -> str:
    """Return effects as sorted text such as ``io, writes(0)``, or "" if there are none."""
    return ", ".join(sorted(_effect(e) for e in effects))


def _effects(effects: Iterable[Effect]) -> str:
    """Return the effects of a node as the end of its printed line, such as `` ! io``."""
    shown = effects_text(effects)
    return f" ! {shown}" if shown else ""


def _effect(effect: Effect) -> str:
    if isinstance(effect, (IO, Random)):
        return type(effect).__name__.lower()
    if isinstance(effect, (Reads, Writes)):
        return f"{type(effect).__name__.lower()}({effect.operand})"
    return type(effect).__name__


def to_text(graph: Graph, whole: bool = True, locations: bool = True) -> str:
    """Return the text of a graph, which people and `parse` can read.

    Args:
        graph: the graph; named graphs that it calls are printed after it.
        whole: whether to write all elements of arrays. Otherwise long arrays are written as `...`,
            which `parse` refuses.
        locations: whether to write source locations. Without them, equal graphs traced from
            different source lines have the same text.
    """
    writer = _Writer(whole, locations)
    lines = writer.graph(graph)
    done = 0
    while done < len(writer.named):  # writing a named graph may add further ones
        lines += writer.named_graph(writer.named[done])
        done += 1
    return "\n".join(lines)


def node_text(graph: Graph, node: GraphNode) -> str:
    """Return a graph node as one line of text, without its sub-graphs."""
    line = _Writer(False).node(graph, node)[0]
    return line.replace(" {", " { ... }", 1) if node.graphs else line


def attributes_text(node: GraphNode) -> str:
    """Return the attributes of a graph node as text such as ``axis=1``, without sub-graphs."""
    writer = _Writer(False)
    pairs = [(k, v) for k, v in node.attributes.items() if not _has_graphs(v)]
    return ", ".join(f"{k}={writer.value(v)}" for k, v in pairs)


install_writer(lambda graph: to_text(graph, whole=False))
