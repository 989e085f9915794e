"""Ownership: which objects the evaluated code made itself, and at which depth.

An object that no code outside can reach may be changed at compile time; `evaluation` checks this
before it changes one. The module never copies or changes an object.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ...runtime_state import thread_state
from ...tensor import Tensor
from ..types import Value

__all__ = ["Ownership", "base_array"]


class Ownership:
    """Objects made while compiling, by id.

    Attributes:
        objects: objects that only the evaluated code can see.
        depths: per such object (and per tensor below), the depth of the graph where it was made.
        tensors: eager tensors made while compiling; they become constants.
        ambiguous: lists and dicts of which a graph condition picks one. A change would have to
            reach every name of the picked one, so it is refused.
    """

    def __init__(self) -> None:
        self.objects: dict[int, Value] = {}
        self.depths: dict[int, int] = {}
        self.tensors: dict[int, Tensor] = {}
        self.ambiguous: dict[int, Value] = {}

    def add(self, value: Value, sources: Iterable[Value] = ()) -> Value:
        """Record that `value` was made while compiling, unless it is a view of one of `sources`."""
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
        """Return whether the evaluated code made `value`, or the array that it is a view of."""
        return value is not None and (
            id(value) in self.objects or id(base_array(value)) in self.objects
        )


def base_array(value: Value) -> Value:
    """The array that owns the memory of an array; any other object itself."""
    while isinstance(value, np.ndarray) and value.base is not None:
        value = value.base
    return value
