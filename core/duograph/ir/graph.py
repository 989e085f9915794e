"""Graphs, the intermediate representation: flat lists of typed nodes in program order.

Values are numbered, and every value is defined before its first use. The front end and tracing
build graphs, passes rewrite them, and lowering runs them. Nothing here depends on a particular op.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from ..effects import Effect
from ..op import Op
from ..pages import notebook
from ..types import ValueType

if TYPE_CHECKING:
    from ..backend.prepared import HandleFunction
    from ..host_arrays import Array

__all__ = [
    "Attributes",
    "GraphNode",
    "Graph",
    "NamedGraph",
    "FrozenArray",
    "SourceSpan",
    "subgraph",
]

# Attributes of a node by name: numbers, strings, dtypes, tuples, arrays, graphs. The rules of an op
# know the types of its own.
Attributes: TypeAlias = Mapping[str, Any]


class SourceSpan(Protocol):
    """Interface of a location in the user's source: file and line from which a graph node comes."""

    @property
    def file(self) -> str: ...
    @property
    def line(self) -> int: ...


@dataclasses.dataclass(frozen=True)
class GraphNode:
    """A graph node: one call of an op on numbered values.

    Attributes:
        op: the op.
        operands: value ids; None for an absent optional operand.
        attributes: attribute values by name.
        results: ids of the values that the node defines.
        single: whether the op returns a single value instead of a tuple.
        span: the source location, or None if it is not known.
    """

    op: Op
    operands: tuple[int | None, ...]
    attributes: Attributes
    results: tuple[int, ...]
    single: bool
    span: SourceSpan | None = None

    @property
    def graphs(self) -> tuple[Graph, ...]:
        """The sub-graphs (branches, loop bodies) among a graph node's attributes."""
        found: list[Graph] = []
        for value in self.attributes.values():
            if isinstance(value, Graph):
                found.append(value)
            elif isinstance(value, tuple):
                found += [v for v in value if isinstance(v, Graph)]
        return tuple(found)

    @property
    def effects(self) -> frozenset[Effect]:
        """Side effects of a graph node: those of its op, its sub-graphs and the graph it calls."""
        found = frozenset(self.op.effects)
        for graph in self.graphs:
            found |= graph.effects
        target = self.attributes.get("target")
        if isinstance(target, NamedGraph):
            found |= target.effects
        return found


@dataclasses.dataclass(eq=False)
class Graph:
    """A typed graph of op calls that uses only its parameters and its own nodes' results.

    Attributes:
        n_params: number of parameters, which are values 0 .. n_params - 1.
        types: the type of every value, by id.
        nodes: the nodes in program order.
        outputs: ids of the results.
        single: whether the graph returns one value instead of a tuple.
        varying: whether the graph was made from a graph with symbolic sizes, so that more graphs
            that differ only in sizes will follow. A backend may then compile one kernel for all of
            them.
    """

    n_params: int
    types: list[ValueType]
    nodes: list[GraphNode]
    outputs: tuple[int, ...]
    single: bool
    varying: bool = dataclasses.field(default=False, repr=False)
    _effects: frozenset[Effect] | None = dataclasses.field(default=None, init=False, repr=False)

    @property
    def effects(self) -> frozenset[Effect]:
        """Side effects of running the graph, such as printing: the union of its nodes' effects."""
        found = self._effects
        if found is None:
            found = frozenset()
            calls = False
            for node in self.nodes:
                found |= node.effects
                calls = calls or "target" in node.attributes
            if not calls:  # the effects of a named graph may still grow
                self._effects = found
        return found

    def _repr_html_(self) -> str:
        return notebook.pre(str(self))

    def __str__(self) -> str:
        return _writer(self)


_writer: Callable[[Graph], str] = repr


def install_writer(writer: Callable[[Graph], str]) -> None:
    """Set the function that returns the text of a graph for `str(graph)`."""
    global _writer
    _writer = writer


class NamedGraph:
    """A graph that `call` nodes refer to by name, so that the graph may call itself.

    Attributes:
        name: the name, unique within a program.
        graph: the graph; None until it is complete.
        result_types: types of the graph's results, set before the graph is complete.
        effects: side effects of the graph and of all graphs that it calls recursively; set once
            these graphs are complete.
        lowered: device -> compiled program of the graph, which the runtime stores at the first
            call.
    """

    __slots__ = ("name", "graph", "result_types", "effects", "lowered")

    def __init__(self, name: str, result_types: tuple[ValueType, ...]) -> None:
        self.name = name
        self.graph: Graph | None = None
        self.result_types = result_types
        self.effects: frozenset[Effect] = frozenset()
        self.lowered: dict[Hashable, HandleFunction] = {}

    def __repr__(self) -> str:
        return f"@{self.name}"


class FrozenArray:
    """A read-only copy of a NumPy array as a node attribute; compared by identity."""

    __slots__ = ("array",)

    def __init__(self, array: Array) -> None:
        self.array = np.array(array)
        self.array.flags.writeable = False

    def __repr__(self) -> str:
        return f"array{list(self.array.shape)}"


def subgraph(
    graph: Graph, params: Sequence[int], nodes: Sequence[GraphNode], outputs: Sequence[int]
) -> Graph:
    """Copy some nodes of a graph into a separate graph whose values are numbered from 0.

    Args:
        graph: the graph that the nodes are in.
        params: ids of the values that become the parameters, in this order. They must include
            all values that `nodes` read and do not define.
        nodes: the nodes to copy, in program order.
        outputs: ids of the values that the new graph returns.
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
