"""The inputs of the function's own graph, and the graph values that eager tensors have now.

Reading a tensor, an array, or a number that the function also writes, from outside the function,
adds a parameter to the *root* graph, which is the graph of the function itself, not of a branch or
loop body. The compiled program fetches the value at each call. The module must not read data at
compile time.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ...dtype import as_dtype
from ...ir.builder import GraphTensor
from ...ir.values import kind_of
from ...parameter import whole_type
from ...tensor import Tensor
from ...types import OBJECT, TensorType
from ..types import GraphValue, Value
from .captures import QUESTIONS
from .ownership import Ownership

if TYPE_CHECKING:
    from .builder import StagedBuilder

__all__ = ["GraphInputs", "Location", "Slot", "shared_objects", "tensor_at"]

# kind ("attribute", "item" or "cell"), owner and name of a location outside the function
Location: TypeAlias = tuple[str, Value, Value]


def tensor_at(location: Location) -> Value:
    """Return the object that an attribute, dict item or closure cell holds now, or MISSING.

    Args:
        location: (kind, owner, name) of a location outside the compiled function.
    """
    kind, owner, name = location
    return QUESTIONS[kind](owner, name)


def shared_objects(locations: tuple[Location, ...], state: tuple[Tensor, ...]) -> tuple[int, ...]:
    """Return, for each location outside the function, a number that stands for the object it holds.

    The tensors in `state` have the numbers 0, 1, ...; the locations have the numbers after them.
    Each location gets the lowest number that stands for its object. With state (t,) and three
    locations that hold (a, t, a), the result is (1, 0, 1). A program that writes to one of these
    objects in place may only run while the result is the same as at compile time.
    """
    found: list[int] = []
    first = {id(t): i for i, t in enumerate(state)}
    for i, location in enumerate(locations, len(state)):
        found.append(first.setdefault(id(tensor_at(location)), i))
    return tuple(found)


class Slot:
    """An eager tensor's graph values: at the start of the traced function, and at present.

    Attributes:
        tensor: the eager tensor.
        incoming: the graph tensor with the value at the start.
        current: the graph tensor with the value after the writes traced so far.
        fresh: whether the tensor was made while compiling, so that `incoming` is a constant.
    """

    def __init__(
        self, tensor: Tensor, incoming: GraphTensor, current: GraphTensor, fresh: bool
    ) -> None:
        self.tensor = tensor
        self.incoming = incoming
        self.current = current
        self.fresh = fresh

    @property
    def written(self) -> bool:
        """Whether the traced function has changed the eager tensor in place so far."""
        return self.current is not self.incoming


class GraphInputs:
    """Parameters of a function's root graph, and the source from which a call reads each.

    Attributes:
        entries: one pair (kind, source) per parameter, in order: what a compiled call fetches.
        slots: id of an eager tensor -> its graph values at the start and at present.
        large_arrays: NumPy arrays from outside the function that are too large to capture by value.
        arguments: for each tensor argument (graph tensor, its first value id, its index).
        held: tensors fetched from a location outside that the function also writes.
        locations: id of a graph tensor in `held` -> (the graph tensor, its location).
        parameters: the arguments that are Parameters, by id of their graph tensor.
        objects: for each tensor in `held`: the eager tensor there while compiling, the graph
            tensor, its first value id, and the location.
        compared: whether the function compares a tensor argument with another tensor by identity.
    """

    def __init__(self, root: StagedBuilder, owned: Ownership) -> None:
        self._root = root
        self._owned = owned
        self.entries: list[tuple[str, Value]] = []
        self.slots: dict[int, Slot] = {}
        self.large_arrays: dict[int, np.ndarray] = {}
        self.arguments: list[tuple[GraphTensor, int, int]] = []
        self.held: dict[Hashable, GraphTensor] = {}
        self.locations: dict[int, tuple[GraphTensor, tuple[str, Value, Value]]] = {}
        self.parameters: dict[int, Tensor] = {}
        self.objects: list[tuple[Tensor, GraphTensor, int, Location]] = []
        self.compared = False
        self._parameters: dict[Hashable, GraphValue] = {}

    def slot(self, tensor: Tensor) -> Slot:
        """Return an eager tensor's `Slot`: its graph values at the start of the function and now.

        The first call for a tensor creates the slot. That adds a graph input, or a constant for a
        tensor made while compiling.
        """
        found = self.slots.get(id(tensor))
        if found is None:
            root = self._root
            fresh = id(tensor) in self._owned.tensors
            if fresh:
                with root.current():
                    incoming = root.constant(tensor)
            else:
                root.evaluation.check_device(tensor._type.device, f"a {type(tensor).__name__} on")
                incoming = root.parameter(whole_type(tensor))
                self.entries.append(("state", tensor))
            incoming = root.tensor(incoming._id)
            found = self.slots[id(tensor)] = Slot(tensor, incoming, incoming, fresh)
            depths = self._owned.depths
            depths[id(found)] = depths.get(id(tensor), 0) if fresh else 0
        return found

    def array(self, array: np.ndarray) -> GraphTensor:
        """Return a graph parameter for a large NumPy array that each call copies in again."""
        return self._parameter(
            ("array", id(array)),
            TensorType.of(array.shape, as_dtype(array.dtype)),
            ("array", array),
        )

    def tensor(self, kind: str, owner: Value, name: Value, value: Tensor) -> GraphTensor:
        """Return a graph parameter for the Tensor that an outside location holds at a call's start.

        It is used for locations that the function also rebinds, so that each call reads them anew.

        Args:
            kind, owner, name: the location.
            value: the Tensor there while compiling; it determines the type.
        """
        key = (kind, id(owner), name)
        if key not in self._parameters:
            self._root.evaluation.check_device(value._type.device, f"a {type(value).__name__} on")
            held = self._parameter(key, whole_type(value), (kind, (owner, name)))
            self.held[key] = held
            self.locations[id(held)] = (held, (kind, owner, name))
            self.objects.append((value, held, held._id, (kind, owner, name)))
        return self.held[key]

    def writes(self) -> set[tuple[int, int, int]]:
        """Return identifiers of the tensors from outside that were written in place.

        These are arguments, tensors in attributes, globals and closures, and other eager tensors.
        An item is (id of the tensor, id of the builder of its value, number of its value in that
        graph). Items of the same tensor therefore differ if another value has been written.
        """
        given = [(t, first) for t, first, _ in self.arguments]
        given += [(held, first) for _, held, first, _ in self.objects]
        written = [t for t, first in given if t._id != first or t._builder is not self._root]
        written += [s.current for s in self.slots.values() if s.written]
        return {(id(t), id(t._builder), t._id) for t in written}

    def writes_in_place(self) -> bool:
        """Return whether the function writes in place to a tensor from outside the function."""
        written = any(s.written and not s.fresh for s in self.slots.values())
        return written or any(held._id != first for _, held, first, _ in self.objects)

    def written_aliases(self) -> list[Tensor]:
        """Return the tensors with several graph inputs, one of which is written in place.

        For example, a tensor can be reached through two attributes. A write to one input would not
        reach the other one.
        """
        inputs: dict[int, list[bool]] = {}
        for tensor, held, first, _ in self.objects:
            inputs.setdefault(id(tensor), []).append(held._id != first)
        for tensor, _, _, _ in self.objects:
            slot = self.slots.get(id(tensor))
            if slot is not None:
                inputs[id(tensor)].append(slot.written)
        several = {k for k, written in inputs.items() if len(written) > 1 and any(written)}
        return [tensor for tensor, _, _, _ in self.objects if id(tensor) in several]

    def plain_state(self) -> tuple[Tensor, ...]:
        """Return the eager tensors from outside that the function reads, without Parameters."""
        state = [s.tensor for s in self.slots.values() if not s.fresh]
        return tuple([t for t in state if type(t) is Tensor])

    def object(self, kind: str, owner: Value, name: Value) -> GraphValue:
        """Return a graph parameter for the Tensor object that a location from outside holds.

        The parameter is the Python object itself, not the value of the tensor.
        """
        source = ("held", (kind, owner, name))
        return self._parameter(("held", kind, id(owner), name), OBJECT, source)

    def argument_object(self, index: int) -> GraphValue:
        """Return a graph parameter for the Tensor object that is passed as argument `index`.

        The parameter is the Python object itself, not the value of the tensor.
        """
        return self._parameter(("argument", index, None), OBJECT, ("argument", index))

    def number(self, kind: str, owner: Value, name: Value, value: Value) -> GraphValue:
        """Return a graph parameter for a number from outside, as it is at the start of a call.

        It is used for locations, such as a global, that the function also rebinds. `kind`, `owner`
        and `name` are the location, `value` is the number there now.
        """
        type_ = kind_of(value)
        assert type_ is not None
        return self._parameter((kind, id(owner), name), type_, (kind, (owner, name)))

    def _parameter(self, key: Hashable, type_: Value, source: tuple[str, Value]) -> Value:
        """Return the root graph's parameter for one source of a value; append it at first request.

        Args:
            key: identifies the source.
            type_: the type of the parameter.
            source: how a call obtains the value, as an item of `entries`.
        """
        found = self._parameters.get(key)
        if found is None:
            found = self._parameters[key] = self._root.parameter(type_)
            self.entries.append(source)
        return self._root.tensor(found._id)

    def forget(self, n_types: int) -> None:
        """Remove the graph inputs that an abandoned branch added: ids of `n_types` or higher."""
        kept = [i for i, p in enumerate(self._root.params) if p < n_types]
        self.entries = [self.entries[i] for i in kept]
        self.slots = {k: s for k, s in self.slots.items() if s.incoming._id < n_types}
        self._parameters = {k: s for k, s in self._parameters.items() if s._id < n_types}
        self.objects = [o for o in self.objects if o[2] < n_types]
        left = {id(held) for _, held, _, _ in self.objects}
        self.held = {k: held for k, held in self.held.items() if id(held) in left}
        self.locations = {k: where for k, where in self.locations.items() if k in left}
