"""Replaces the symbolic dimensions of a graph (`dims.Dim`) by numbers.

The compiler uses `Substitution` to make, from a program for many sizes, the program for the sizes
of one call, without evaluating Python source again. Values keep their ids. Nothing here decides
whether a program may be used for these sizes; the program's guards do.
"""

from __future__ import annotations

import enum
import functools
import weakref
from types import CellType, FunctionType, MethodType
from typing import Any, NamedTuple

import numpy as np

from ..dims import Dim, Real, Values, concrete, is_symbolic, scope_of, symbols_in
from ..dtype import DType
from ..errors import UnsupportedOpError
from ..types import Device, HostType, TensorType, ValueType
from .control import HostCall, HostConstant, random_state
from .graph import Attributes, FrozenArray, Graph, GraphNode, NamedGraph

__all__ = ["Substitution", "check_substitutable", "hinted"]

# Classes of attributes that cannot contain a size.
_PLAIN = (str, bytes, complex, type(None), type(...), DType, Device, FrozenArray, HostType,
          np.generic, enum.Enum)  # fmt: skip


class _Places(NamedTuple):
    """The indices of a graph's types and nodes in which symbols may occur."""

    types: list[int]
    nodes: list[int]


_places: weakref.WeakKeyDictionary[Graph, _Places] = weakref.WeakKeyDictionary()
_NUMBERS = (int, float, bool, str, type(None), DType)


def _places_in(graph: Graph) -> _Places:
    """Return the types and nodes of a graph in which symbols may occur.

    A node with a sub-graph is always among them: when it is copied, so that symbols can be
    replaced, its sub-graph is treated in the same way.
    """
    types = [
        i for i, t in enumerate(graph.types) if isinstance(t, TensorType) and symbols_in(t.shape)
    ]
    nodes = [
        i for i, node in enumerate(graph.nodes) if any(map(_may_hold, node.attributes.values()))
    ]
    return _Places(types, nodes)


def _may_hold(value: object) -> bool:
    """Return whether an attribute value may contain a symbol."""
    if type(value) is tuple:
        return any(map(_may_hold, value))
    return type(value) not in _NUMBERS and not isinstance(value, FrozenArray)


class Substitution:
    """Replaces symbols by their values in graphs, types and attributes.

    Args:
        values: symbol -> its value.
    """

    def __init__(self, values: Values) -> None:
        self.values = values
        self._graphs: dict[int, Graph] = {}
        self._named: dict[int, NamedGraph] = {}
        self._types: dict[int, TensorType] = {}

    def graph(self, graph: Graph) -> Graph:
        """Return a copy of a graph with numbers in place of symbols; value ids are kept."""
        found = self._graphs.get(id(graph))
        if found is None:
            places = _places.get(graph)
            if places is None:
                places = _places[graph] = _places_in(graph)
            types, nodes = list(graph.types), list(graph.nodes)
            for i in places.types:
                types[i] = self.type(types[i])
            for i in places.nodes:
                nodes[i] = self._node(nodes[i])
            found = Graph(graph.n_params, types, nodes, graph.outputs, graph.single, True)
            self._graphs[id(graph)] = found
        return found

    def type(self, type_: ValueType) -> ValueType:
        """Return a type with numbers in place of symbols."""
        return self.tensor_type(type_) if isinstance(type_, TensorType) else type_

    def tensor_type(self, type_: TensorType) -> TensorType:
        """Return a tensor type with numbers in place of symbols."""
        found = self._types.get(id(type_))
        if found is None:
            found = type_
            if symbols_in(type_.shape):
                shape = tuple([concrete(n, self.values) for n in type_.shape])
                found = TensorType.of(shape, type_.dtype).on(type_.device, type_.level)
            self._types[id(type_)] = found
        return found

    def _node(self, node: GraphNode) -> GraphNode:
        attributes = {name: self.value(v) for name, v in node.attributes.items()}
        return GraphNode(node.op, node.operands, attributes, node.results, node.single, node.span)

    def value(self, value: Any) -> Any:
        """Return an attribute value, or a part of one, with numbers in place of symbols."""
        kind = type(value)
        if kind is Dim or kind is Real:
            return concrete(value, self.values)
        if kind is tuple:
            return tuple([self.value(v) for v in value])
        if kind is Graph:
            return self.graph(value)
        if kind is TensorType:
            return self.type(value)
        if kind is NamedGraph:
            return self._named_graph(value)
        if kind is HostConstant:
            return HostConstant(self.value(value.value))
        return value

    def _named_graph(self, named: NamedGraph) -> NamedGraph:
        found = self._named.get(id(named))
        if found is None:
            results = tuple([self.type(t) for t in named.result_types])
            found = self._named[id(named)] = NamedGraph(named.name, results)
            found.effects = named.effects
            if named.graph is not None:
                found.graph = self.graph(named.graph)
        return found


def hinted(
    types: tuple[TensorType | None, ...], attributes: Attributes
) -> tuple[tuple[TensorType | None, ...], Attributes]:
    """Return operand types and attributes with example sizes in place of symbols.

    The example sizes are the symbols' hints. Using them records no guard (condition on the sizes),
    so the result may only serve decisions that are right for any size, such as whether the graph
    passes leave an op to a kernel.
    """
    scope = scope_of([n for t in types if t is not None for n in t.shape])
    if scope is None:
        return types, attributes
    replace = Substitution({s: s.hint for s in scope.symbols})
    return (
        tuple([None if t is None else replace.tensor_type(t) for t in types]),
        {name: replace.value(v) for name, v in attributes.items()},
    )


def check_substitutable(graph: Graph) -> None:
    """Raise an error if an attribute in a graph may contain sizes that `Substitution` cannot see.

    Raises:
        UnsupportedOpError: an attribute is an object, such as a function that the user passed.
    """
    seen: set[int] = set()
    _check_graph(graph, seen)


def _check_graph(graph: Graph, seen: set[int]) -> None:
    if id(graph) in seen:
        return
    seen.add(id(graph))
    for node in graph.nodes:
        if node.op is random_state:  # its function draws from a generator, whatever the sizes
            continue
        for value in node.attributes.values():
            _check_value(node.op.name, value, seen)


def _check_value(op: str, value: Any, seen: set[int]) -> None:
    kind = type(value)
    if kind in (int, float, bool, Dim, Real, TensorType) or isinstance(value, _PLAIN):
        return
    if kind is tuple:
        for v in value:
            _check_value(op, v, seen)
    elif kind is Graph:
        _check_graph(value, seen)
    elif kind is NamedGraph:
        if value.graph is not None:
            _check_graph(value.graph, seen)
    elif kind is HostConstant and (type(value.value) is tuple or is_symbolic(value.value)):
        _check_value(op, value.value, seen)
    elif kind in (HostCall, HostConstant):
        held = value.function if kind is HostCall else value.value
        if _reaches_size(held):
            raise UnsupportedOpError(f"{op}: {held!r} contains a size")
    elif value is not Ellipsis:
        raise UnsupportedOpError(
            f"{op}: got an attribute of class {kind.__name__}, which may contain a size"
        )


def _reaches_size(function: object) -> bool:
    """Return whether a symbolic size can be reached from the closures of a host call's function.

    The compiler passes sizes to host calls as operands of their nodes; none may be left here.
    Objects of the user are not searched: the compiler stores no symbolic size in them.
    """
    waiting: list[Any] = [function]
    seen: set[int] = set()
    while waiting:
        value = waiting.pop()
        if is_symbolic(value):
            return True
        if id(value) in seen:
            continue
        seen.add(id(value))
        kind = type(value)
        if isinstance(value, FunctionType):
            cells = [c.cell_contents for c in value.__closure__ or () if _is_bound(c)]
            waiting += [*cells, *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
        elif isinstance(value, MethodType):
            waiting += [value.__func__, value.__self__]
        elif isinstance(value, functools.partial):
            waiting += [value.func, value.args, value.keywords]
        elif isinstance(value, (tuple, list, set, frozenset)):
            waiting += value
        elif isinstance(value, dict):
            waiting += [*value, *value.values()]
        elif isinstance(value, slice):
            waiting += [value.start, value.stop, value.step]
        elif kind.__module__.startswith("duograph.frontend."):
            slots = [name for c in kind.__mro__ for name in getattr(c, "__slots__", ())]
            names = [*slots, *getattr(value, "__dict__", ())]
            waiting += [getattr(value, name, None) for name in names]
    return False


def _is_bound(cell: CellType) -> bool:
    """Return whether a closure cell has a value."""
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True
