"""What a compiled function returns: a nest of Python values with places for what is known only when
it runs.
"""

from __future__ import annotations

import collections
import copy
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, UnsupportedSyntaxError
from ..frontend.state.evaluation import Evaluation
from ..frontend.values.functions import Function
from ..ir.builder import GraphTensor
from ..ir.values import HostValue
from ..tensor import Tensor
from ..types import OBJECT

__all__ = ["Argument", "ArgumentContainer", "Out", "rebuilt", "template_of"]


class ArgumentContainer:
    """A list or dict among the arguments, for writes to it: an input of the graph once one is
    needed.
    """

    def __init__(self, ev: Evaluation, index: int) -> None:
        self.ev = ev
        self.index = index
        self._value: Any = None

    def value(self) -> Any:
        if self._value is None:
            made = self.ev.root.parameter(OBJECT)
            self.ev.inputs.entries.append(("container", self.index))
            self._value = made
        return self.ev.root.tensor(self._value._id)


class Out:
    """Stands for output `index` of the graph in the result."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


class Argument:
    """Stands for tensor `index` of the arguments, which the function returns as it is."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


class _Container(Argument):
    """Stands for container `index` of the arguments."""


class _Copy:
    """Stands for a value that was made while compiling, and that each call gets its own of."""

    def __init__(self, value: Any) -> None:
        self.value = copy.deepcopy(value)

    def made(self) -> Any:
        return copy.deepcopy(self.value)


class _Made:
    """Stands for an object that the function made: its class, and its attributes."""

    def __init__(self, cls: Any, attributes: dict[str, Any]) -> None:
        self.cls = cls
        self.attributes = attributes


def rebuilt(
    nest: Any, values: Sequence[Any], leaves: Sequence[Tensor], containers: Sequence[object]
) -> Any:
    """The result of a call: `nest` with what its places stand for."""
    kind = nest.__class__
    if kind is Out:
        return values[nest.index]
    if kind is Argument:
        return leaves[nest.index]
    if kind is _Container:
        return containers[nest.index]
    if kind is tuple or hasattr(nest, "_fields"):
        items = [rebuilt(v, values, leaves, containers) for v in nest]
        return kind(*items) if kind is not tuple else tuple(items)
    if kind is list:
        return [rebuilt(v, values, leaves, containers) for v in nest]
    if kind is dict:
        return {k: rebuilt(v, values, leaves, containers) for k, v in nest.items()}
    if kind is _Copy:
        return nest.made()
    if kind is _Made:
        made = object.__new__(nest.cls)
        for k, v in nest.attributes.items():
            made.__dict__[k] = rebuilt(v, values, leaves, containers)
        return made
    return nest


_ITERATORS = (zip, map, filter, enumerate, range, reversed)


def template_of(
    ev: Evaluation, value: Any, put: Any, leaves: Any, containers: Any, depth: int
) -> Any:
    """The result with its graph values replaced by places to find them."""
    if isinstance(value, GraphTensor):
        for i, (made, first) in enumerate(leaves):
            if value is made or (value._id == first and made._id == first):
                return Argument(i)
        return Out(put(value))
    if isinstance(value, HostValue):
        return Out(put(value))
    if isinstance(value, Tensor):
        slot = ev.inputs.slots.get(id(value))
        if id(value) in ev.owned.tensors and slot is not None and slot.current is not slot.incoming:
            return Out(put(slot.current))
        if id(value) in ev.owned.tensors:
            return Out(put(value))  # a fresh buffer at every call
        return value
    if isinstance(value, (list, dict, set)):
        ev.copies.observe(value)
        for i, c in enumerate(containers):
            if c is value:
                return _Container(i)
        outside = ev.copies.originals.get(id(value))
        if outside is not None and not isinstance(outside, ArgumentContainer):
            return outside
    if depth > 50:
        raise ArgumentError("jit: got a result that contains itself; wanted a tree")

    def again(v: Any) -> Any:
        return template_of(ev, v, put, leaves, containers, depth + 1)

    if isinstance(value, tuple):
        items = [again(v) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if type(value) is list:
        return [again(v) for v in value]
    if type(value) is dict:
        return {k: again(v) for k, v in value.items()}
    if isinstance(value, _ITERATORS):
        items = [again(v) for v in value]
        return tuple(items) if isinstance(value, (zip, enumerate, range)) else items
    if type(value).__name__ in (
        "list_iterator",
        "tuple_iterator",
        "generator",
        "dict_keys",
        "dict_values",
    ):
        items = [again(v) for v in value]
        return (
            tuple(items)
            if type(value).__name__ in ("tuple_iterator", "dict_keys", "dict_values")
            else items
        )
    if type(value).__name__ == "dict_items":
        return [again(v) for v in value]
    if isinstance(value, Function):
        if value.original is not None:
            return value.original
        raise UnsupportedSyntaxError(
            f"return: got the function {value.__name__}, which the compiled function defines; wanted Tensors and "
            f"Python values",
            construct="Return",
            remedy="Define the function outside the compiled one",
        )
    if isinstance(value, (dict, set, frozenset, collections.deque)):
        held = value.values() if isinstance(value, dict) else value
        if any(map(_of_graph, held)):
            raise UnsupportedSyntaxError(
                f"return: got a {type(value).__name__} that holds what is known only when the function runs; wanted a "
                f"list, tuple or dict",
                construct="Return",
                remedy="Return list(...) or dict(...) of it",
            )
    if _own_data(ev, value):
        return _Copy(value)
    plain = isinstance(value, (type, np.ndarray)) or type(value).__module__ == "builtins"
    if id(value) in ev.owned.objects and hasattr(value, "__dict__") and not plain:
        return _Made(type(value), {k: again(v) for k, v in vars(value).items()})
    return value


def _own_data(ev: Evaluation, value: Any) -> bool:
    """Whether a value is data that can change, and that the function made: not one that is there
    outside of it.
    """
    base = value
    while isinstance(base, np.ndarray) and base.base is not None:
        base = base.base
    if id(value) not in ev.owned.objects and id(base) not in ev.owned.objects:
        return False
    return isinstance(value, (np.ndarray, set, bytearray)) or type(value).__module__ in (
        "collections",
        "array",
    )


def _of_graph(value: Any) -> bool:
    if isinstance(value, (tuple, list, dict, set)):
        return any(map(_of_graph, value.values() if isinstance(value, dict) else value))
    return isinstance(value, (GraphTensor, HostValue))
