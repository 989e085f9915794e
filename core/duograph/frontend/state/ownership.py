"""Ownership: records which objects the evaluated code created, and at which graph depth.

An object that no outside code can reach may be changed at compile time; `frontend.evaluation`
checks this before a change. The module must not copy or change an object.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ...runtime_state import thread_state
from ...tensor import Tensor
from ..types import Value

__all__ = ["Ownership", "base_array"]


class Ownership:
    """Record of the objects that evaluated code created while compiling, by id.

    Attributes:
        objects: objects that only the evaluated code can see.
        depths: id of an object or tensor -> nesting depth of the graph in which it was made.
        tensors: eager tensors made while compiling; they become constants of the graph.
        kept: ids of lists, dicts and sets that outside code stores when the graph runs; evaluated
            code may no longer change them.
        ambiguous: lists and dicts among which a graph condition chooses at run time; evaluated code
            may not change them.
        chosen: id of the list, dict or tuple that represents the chosen one after the condition ->
            the candidates from before it. The representative is another object than the candidates;
            its contents are those of the chosen one, and only the running graph could tell which
            one it is.
        lazy: ids of iterators whose items are computed when they are asked for, such as a generator
            expression -> the class, list or tuple, of what a compiled function returns instead.
        uncertain: ids of iterators of which a graph condition decides how many items are left.
        ahead: how many iterators are being asked for an item before it is known whether the code
            asks for it. Other iterators that give items meanwhile become uncertain, too.
    """

    def __init__(self) -> None:
        self.objects: dict[int, Value] = {}
        self.depths: dict[int, int] = {}
        self.tensors: dict[int, Tensor] = {}
        self.kept: set[int] = set()
        self.ambiguous: dict[int, Value] = {}
        self.chosen: dict[int, list[Value]] = {}
        self.lazy: dict[int, type] = {}
        self.uncertain: set[int] = set()
        self.ahead = 0

    def represent(self, value: Value, of: Iterable[Value] = ()) -> Value:
        """Record that a list, dict or tuple represents one of several, and return it.

        A graph condition decides at run time which one. Evaluated code may not change `value`, nor
        compare it by identity. `of` are the candidates that existed before the condition.
        """
        self.ambiguous[id(value)] = value
        self.chosen[id(value)] = list(of)
        return value

    def add(self, value: Value, sources: Iterable[Value] = ()) -> Value:
        """Record that evaluated code made `value`, at the present graph depth; return it.

        `sources` are arrays that the code received. A view of one of them counts as made by
        evaluated code only if the array that owns its memory does.
        """
        builder = thread_state.builder
        depth: int = builder.depth  # type: ignore[union-attr]
        if isinstance(value, np.ndarray):
            base = base_array(value)
            if id(base) in self.objects:
                depth = self.depths[id(base)]
            elif any(base_array(x) is base for x in sources):
                return value
            self.objects[id(base)] = base
            self.depths[id(base)] = depth
        self.objects[id(value)] = value
        self.depths[id(value)] = depth
        return value

    def owns_data(self, value: Value) -> bool:
        """Return whether evaluated code made an object, or the array of which it is a view."""
        return value is not None and (
            id(value) in self.objects or id(base_array(value)) in self.objects
        )


def base_array(value: Value) -> Value:
    """Return the array that owns an array's memory; return any other object unchanged."""
    while isinstance(value, np.ndarray) and value.base is not None:
        value = value.base
    return value
