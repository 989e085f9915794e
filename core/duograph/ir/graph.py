"""A graph is a flat list of typed nodes in program order. Values are numbered; everything used is
defined before.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..effects import Effect
from ..op import Op
from ..types import ValueType

__all__ = [
    "Attributes",
    "GraphNode",
    "Graph",
    "NamedGraph",
    "FrozenArray",
    "live_nodes",
    "divides",
    "subgraph",
]

# Attributes of a node by name: numbers, strings, dtypes, tuples, arrays, graphs. Which ones an op takes
# is for its own rules to know.
Attributes: TypeAlias = Mapping[str, Any]
# Functions of Python numbers that raise on some of them, as written by the user.
_DIVIDE = {"truediv", "floordiv", "mod", "pow", "lshift", "rshift"}


@dataclasses.dataclass(frozen=True)
class GraphNode:
    """One op call: value ids in (None for an absent optional operand), value ids out."""

    op: Op
    operands: tuple[int | None, ...]
    attributes: Attributes
    results: tuple[int, ...]
    single: bool
    span: Any = None

    @property
    def graphs(self) -> tuple[Graph, ...]:
        """The sub-graphs that the node runs."""
        found: list[Graph] = []
        for value in self.attributes.values():
            if isinstance(value, Graph):
                found.append(value)
            elif isinstance(value, tuple):
                found += [v for v in value if isinstance(v, Graph)]
        return tuple(found)

    @property
    def effects(self) -> frozenset[Effect]:
        """Effects of the op, of the sub-graphs, and of the named graph that the node calls."""
        found = frozenset(self.op.effects)
        for graph in self.graphs:
            found |= graph.effects
        target = self.attributes.get("target")
        if isinstance(target, NamedGraph):
            found |= target.effects
        return found


@dataclasses.dataclass(eq=False)
class Graph:
    """Closed: parameters are values 0 .. n_params - 1, every other value is some node's result.

    Attributes:
        n_params: number of parameters.
        types: the type of every value, by id.
        nodes: in program order.
        outputs: ids of the results.
        single: the graph returns one value rather than a tuple.
    """

    n_params: int
    types: list[ValueType]
    nodes: list[GraphNode]
    outputs: tuple[int, ...]
    single: bool
    _effects: frozenset[Effect] | None = dataclasses.field(default=None, init=False, repr=False)

    @property
    def effects(self) -> frozenset[Effect]:
        """What running the graph does besides returning values."""
        found = self._effects
        if found is None:
            found = frozenset()
            calls = False
            for node in self.nodes:
                found |= node.effects
                calls = calls or "target" in node.attributes
            if not calls:  # those of a named graph may still be worked out
                self._effects = found
        return found

    def __str__(self) -> str:
        return _writer(self)


_writer: Callable[[Graph], str] = repr


def install_writer(writer: Callable[[Graph], str]) -> None:
    """Set the function behind `str(graph)`; `ir.text` installs its printer when it is imported."""
    global _writer
    _writer = writer


class NamedGraph:
    """A graph that nodes call by name, so that it may call itself.

    Attributes:
        name: unique within a program.
        graph: set when the graph is complete.
        result_types: of the results; known before the graph is complete.
        effects: of the whole recursive group; iterated to a fixed point while it is built.
    """

    __slots__ = ("name", "graph", "result_types", "effects", "lowered")

    def __init__(self, name: str, result_types: tuple[ValueType, ...]) -> None:
        self.name = name
        self.graph: Graph | None = None
        self.result_types = result_types
        self.effects: frozenset[Effect] = frozenset()
        self.lowered: dict[Any, Any] = {}  # per device, made by the runtime at the first call

    def __repr__(self) -> str:
        return f"@{self.name}"


class FrozenArray:
    """An array as an attribute value: hashable by identity, read-only."""

    __slots__ = ("array",)

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = np.array(array)
        self.array.flags.writeable = False

    def __repr__(self) -> str:
        return f"array{list(self.array.shape)}"


def divides(node: GraphNode) -> bool:
    """Whether the node may raise as Python's `/` does: it runs though nobody reads the result, as
    in Python.
    """
    return node.op.name == "scalar" and node.attributes["function"] in _DIVIDE


def live_nodes(nodes: Sequence[GraphNode], wanted: set[int]) -> list[GraphNode]:
    """The nodes that `wanted` values need, in order. Nodes with effects or errors always stay."""
    needed = set(wanted)
    kept: list[GraphNode] = []
    for node in reversed(nodes):
        if node.effects or divides(node) or any(r in needed for r in node.results):
            kept.append(node)
            needed.update(i for i in node.operands if i is not None)
    kept.reverse()
    return kept


def subgraph(
    graph: Graph, params: Sequence[int], nodes: Sequence[GraphNode], outputs: Sequence[int]
) -> Graph:
    """Return some nodes of a graph as a closed graph with its own numbering of values.

    `params` are the values, defined outside `nodes`, that become its parameters.
    """
    new_ids: dict[int, int] = {i: k for k, i in enumerate(params)}
    types = [graph.types[i] for i in params]
    made: list[GraphNode] = []
    for node in nodes:
        first = len(types)
        operands = tuple([None if i is None else new_ids[i] for i in node.operands])
        for r in node.results:
            new_ids[r] = len(types)
            types.append(graph.types[r])
        results = tuple(range(first, len(types)))
        if operands != node.operands or results != node.results:
            node = GraphNode(node.op, operands, node.attributes, results, node.single, node.span)
        made.append(node)
    return Graph(len(params), types, made, tuple([new_ids[i] for i in outputs]), graph.single)
