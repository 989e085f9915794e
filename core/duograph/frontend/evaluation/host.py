"""Graph nodes that run Python code, and the Tensor objects that such code holds.

`run_on_host` makes a node with results, `append_effect` one without. Both keep program order with
the writes around them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from ...errors import UnsupportedSyntaxError
from ...ir.builder import GraphTensor
from ...ir.control import HostCall, host_call
from ...ir.values import HostValue
from ...tensor import Tensor
from ...types import OBJECT
from ..state.evaluation import Evaluation
from ..types import Args, Kwargs, Value
from .host_mutation import Snapshot, refuse_mutation, was_changed, with_snapshots
from .spans import call_spans


class Operand:
    """Stands for operand `index` in a nest of arguments."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


def take_operands(ev: Evaluation, value: Value, found: list[Value], objects: bool = False) -> Value:
    """The nest with its graph values replaced by Leafs; they go to `found`.

    Eager tensors from outside are graph values here: the function may have written them.

    Args:
        objects: Python will keep what it is given, so a tensor is the one object that stands for it.
    """
    if objects and isinstance(value, Tensor):
        made = object_of(ev, value)
        if made is None:
            return value  # from outside: that object itself, which gets what is written to it
        found.append(ev.builder.bring(made))
        return Operand(len(found) - 1)
    if isinstance(value, (GraphTensor, HostValue)):
        found.append(ev.builder.bring(value))
        return Operand(len(found) - 1)
    if isinstance(value, Tensor):
        slot = ev.inputs.slots.get(id(value))
        if slot is None or slot.current is slot.incoming:
            return value  # the object itself: the host sees what it holds then
        found.append(ev.builder.bring(slot.current))
        return Operand(len(found) - 1)
    if hasattr(type(value), "as_python"):
        return value.as_python()
    if type(value) in (tuple, list) or hasattr(value, "_fields"):
        items = [take_operands(ev, v, found, objects) for v in value]
        if isinstance(value, list):
            return items
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if type(value) is dict:
        return {k: take_operands(ev, v, found, objects) for k, v in value.items()}
    if type(value) is slice:
        return slice(
            *[take_operands(ev, v, found, objects) for v in (value.start, value.stop, value.step)]
        )
    return value


def object_of(ev: Evaluation, tensor: Value) -> Value:
    """The Tensor object that stands for a tensor of the evaluation when the graph runs: what a place outside keeps.

    One that is written in place later has to be the same object, wherever it was put. None: `tensor` is that object.
    """
    known = ev.host_objects.get(id(tensor))
    if known is not None:
        return known[1]
    if not isinstance(tensor, GraphTensor):
        if id(tensor) not in ev.owned.tensors:
            return None
        home = ev.builder
        while home.depth > ev.owned.depths.get(id(tensor), 0):
            assert home.parent is not None
            home = home.parent
        first = home.made_constant(tensor)
        slot = ev.inputs.slots.get(id(tensor))
        later = slot is not None and slot.current is not slot.incoming
    else:
        for made, _, index in ev.inputs.arguments:
            if made is tensor:
                return ev.inputs.argument_object(index)
        place = ev.inputs.locations.get(id(tensor))
        if place is not None:
            return ev.inputs.object(*place[1])
        first = tensor
        for journal in ev.journal.branches:
            entry = journal.get(("tensor", id(tensor), None))
            if entry is not None:
                first = entry[1]
                break
        home = first._builder
        later = first._id != tensor._id or home is not tensor._builder
    run = HostCall(lambda x: (x,), "tensor object")
    with home.current():
        made = home.append(host_call, (home.tensor(first._id),), {"run": run, "types": (OBJECT,)})[
            0
        ]
    ev.host_objects[id(tensor)] = (tensor, made)
    if later:
        write_through(ev, tensor)
    return made


def write_through(ev: Evaluation, tensor: Value) -> None:
    """A tensor was written in place: so is the object that stands for it, if there is one."""
    if id(tensor) in ev.host_objects or id(tensor) in ev.inputs.locations:
        append_effect(ev, Tensor._rebind, (object_of(ev, tensor), tensor), "set the value")


def with_operands(nest: Value, values: Value) -> Value:
    """A nest with its Leafs replaced."""
    if isinstance(nest, Operand):
        return values[nest.index]
    if isinstance(nest, Snapshot):
        return nest.array.copy()
    if type(nest) in (tuple, list) or hasattr(nest, "_fields"):
        items = [with_operands(v, values) for v in nest]
        if isinstance(nest, list):
            return items
        return type(nest)(*items) if hasattr(nest, "_fields") else tuple(items)
    if type(nest) is dict:
        return {k: with_operands(v, values) for k, v in nest.items()}
    if type(nest) is slice:
        return slice(*[with_operands(v, values) for v in (nest.start, nest.stop, nest.step)])
    return nest


def run_on_host(
    ev: Evaluation,
    function: Callable[..., Value],
    args: Args,
    kwargs: Kwargs,
    name: str,
    types: tuple[Value, ...] = (OBJECT,),
) -> Value:
    """A node that calls `function` when the graph runs, at this place of the program order.

    Writes before it are made first, and what it may have written is read again after it.

    Returns:
        the results as graph values: one, or a tuple for several types, None for none.
    """
    refuse_mutation(ev, function, args, kwargs, name)
    found: list[Value] = []
    nest = with_snapshots(ev, take_operands(ev, (args, kwargs), found))
    commits = take_writes(ev, found)
    place = call_spans(ev)

    def run(*values: Value) -> tuple[Value, ...]:
        for target, index in commits:
            (values[target] if isinstance(target, int) else target)._rebind(values[index])
        given, named = with_operands(nest, values)
        try:
            result = function(*given, **named)
            if was_changed(nest, (given, named)):
                raise UnsupportedSyntaxError(
                    f"{name}: has changed a list or an array that was made while compiling, of which it got a copy; "
                    f"use a function that returns a new one, or call it outside of compiled code"
                )
        except Exception as error:
            _note_spans(error, place)
            raise
        if not types:
            return ()
        return (result,) if len(types) == 1 else tuple(result)

    out = ev.builder.append(
        host_call, tuple(found), {"run": HostCall(run, name), "types": tuple(types)}
    )
    if not types:
        return None
    return out[0] if len(types) == 1 else out


def take_writes(ev: Evaluation, found: list[Value]) -> list[tuple[Tensor | int, int]]:
    """Let the host see what was written so far.

    Returns:
        pairs of a tensor from outside, or of the operand that is one of the arguments, and the operand with its value.
    """
    commits: list[tuple[Tensor | int, int]] = []
    for slot in ev.inputs.slots.values():
        if not slot.fresh and slot.current is not slot.incoming:
            found.append(ev.builder.bring(slot.current))
            commits.append((slot.tensor, len(found) - 1))
    for made, first, index in ev.inputs.arguments:
        if made._id != first or made._builder is not ev.root:
            found += [ev.builder.bring(ev.inputs.argument_object(index)), ev.builder.bring(made)]
            commits.append((len(found) - 2, len(found) - 1))
    return commits


def append_effect(
    ev: Evaluation,
    function: Callable[..., Value],
    args: Args,
    name: str,
    commit: bool = False,
    objects: bool = False,
) -> None:
    """A node without results that runs Python: a print, a write to an object outside, a raise."""
    found: list[Value] = []
    nest = take_operands(ev, args, found, objects)
    commits = take_writes(ev, found) if commit else []
    place = call_spans(ev)

    def run(*values: Value) -> tuple[Value, ...]:
        for target, index in commits:
            (values[target] if isinstance(target, int) else target)._rebind(values[index])
        try:
            function(*with_operands(nest, values))
        except Exception as error:
            _note_spans(error, place)
            raise
        return ()

    ev.builder.append(host_call, tuple(found), {"run": HostCall(run, name), "types": ()})


def _note_spans(error: Exception, place: Value) -> None:
    """Remember where in the user's source an error arose, unless it says so already."""
    if not hasattr(error, "_duograph_place"):
        with contextlib.suppress(AttributeError):  # an exception class with slots
            error._duograph_place = place  # type: ignore[attr-defined]


def with_item(tensor: Value, index: Value, value: Value) -> Value:
    """Python writes a tensor of its own; the name here takes its value."""
    tensor[index] = value
    return tensor
