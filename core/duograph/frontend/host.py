"""Graph nodes that run Python: what they are given, and what they give back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import UnsupportedSyntaxError
from ..ir.builder import GraphTensor
from ..ir.control import HostCall, host_call
from ..ir.values import HostValue
from ..runtime.source_spans import mark_source
from ..tensor import Tensor
from ..types import OBJECT
from .changes import Snapshot, changed, refuse_changes, snapshot
from .spans import place_of
from .trace import Trace

__all__ = [
    "constant_call",
    "leaves",
    "rebuilt",
    "run_on_host",
    "depends_on_graph",
    "note_effect",
    "written",
]

_calls: dict[Any, HostCall] = {}


def constant_call(function: Callable[..., Any], name: str) -> HostCall:
    """A HostCall."""
    return HostCall(function, name)


class Leaf:
    """Stands for operand `index` in a nest of arguments."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


def leaves(t: Trace, value: Any, found: list[Any], objects: bool = False) -> Any:
    """The nest with its graph values replaced by Leafs; they go to `found`.

    Eager tensors from outside are graph values here: the function may have written them.

    Args:
        objects: Python will keep what it is given, so a tensor is the one object that stands for
            it.
    """
    if objects and isinstance(value, Tensor):
        made = object_of(t, value)
        if made is None:
            return value  # from outside: that object itself, which gets what is written to it
        found.append(t.builder.bring(made))
        return Leaf(len(found) - 1)
    if isinstance(value, (GraphTensor, HostValue)):
        found.append(t.builder.bring(value))
        return Leaf(len(found) - 1)
    if isinstance(value, Tensor):
        slot = t.slots.get(id(value))
        if slot is None or slot.current is slot.incoming:
            return value  # the object itself: the host sees what it holds then
        found.append(t.builder.bring(slot.current))
        return Leaf(len(found) - 1)
    if hasattr(type(value), "as_python"):
        return value.as_python()
    if type(value) in (tuple, list) or hasattr(value, "_fields"):
        items = [leaves(t, v, found, objects) for v in value]
        if isinstance(value, list):
            return items
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if type(value) is dict:
        return {k: leaves(t, v, found, objects) for k, v in value.items()}
    if type(value) is slice:
        return slice(*[leaves(t, v, found, objects) for v in (value.start, value.stop, value.step)])
    return value


def object_of(t: Trace, tensor: Any) -> Any:
    """The Tensor object that stands for a tensor of the evaluation when the graph runs: what a
    place outside keeps.

    One that is written in place later has to be the same object, wherever it was put. None:
    `tensor` is that object.
    """
    known = t.objects.get(id(tensor))
    if known is not None:
        return known[1]
    if not isinstance(tensor, GraphTensor):
        if id(tensor) not in t.fresh:
            return None
        home: Any = t.builder
        while home.depth > t.born.get(id(tensor), 0):
            home = home.parent
        first = home._fresh(tensor)
        slot = t.slots.get(id(tensor))
        later = slot is not None and slot.current is not slot.incoming
    else:
        for made, _, index in t.arguments:
            if made is tensor:
                return t.argument_object(index)
        place = t.place_of.get(id(tensor))
        if place is not None:
            return t.object_input(*place[1])
        first = tensor
        for journal in t.journals:
            entry = journal.get(("tensor", id(tensor), None))
            if entry is not None:
                first = entry[1]
                break
        home = first._builder
        later = first._id != tensor._id or home is not tensor._builder
    run = constant_call(lambda x: (x,), "tensor object")
    with home.current():
        made = home.append(host_call, (home.tensor(first._id),), {"run": run, "types": (OBJECT,)})[
            0
        ]
    t.objects[id(tensor)] = (tensor, made)
    if later:
        written(t, tensor)
    return made


def written(t: Trace, tensor: Any) -> None:
    """A tensor was written in place: so is the object that stands for it, if there is one."""
    if id(tensor) in t.objects or id(tensor) in t.place_of:
        note_effect(t, Tensor._rebind, (object_of(t, tensor), tensor), "set the value")


def rebuilt(nest: Any, values: Any) -> Any:
    """A nest with its Leafs replaced."""
    if isinstance(nest, Leaf):
        return values[nest.index]
    if isinstance(nest, Snapshot):
        return nest.array.copy()
    if type(nest) in (tuple, list) or hasattr(nest, "_fields"):
        items = [rebuilt(v, values) for v in nest]
        if isinstance(nest, list):
            return items
        return type(nest)(*items) if hasattr(nest, "_fields") else tuple(items)
    if type(nest) is dict:
        return {k: rebuilt(v, values) for k, v in nest.items()}
    if type(nest) is slice:
        return slice(*[rebuilt(v, values) for v in (nest.start, nest.stop, nest.step)])
    return nest


def depends_on_graph(value: Any) -> bool:
    """Whether a nest holds a value that is known only when the graph runs."""
    if isinstance(value, (GraphTensor, HostValue)):
        return True
    if isinstance(value, (tuple, list, set, frozenset)):
        return any(map(depends_on_graph, value))
    if isinstance(value, dict):
        return any(map(depends_on_graph, value.values()))
    if isinstance(value, slice):
        return any(map(depends_on_graph, (value.start, value.stop, value.step)))
    return False


def run_on_host(
    t: Trace,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    name: str,
    types: tuple[Any, ...] = (OBJECT,),
) -> Any:
    """A node that calls `function` when the graph runs, at this place of the program order.

    Writes before it are made first, and what it may have written is read again after it.

    Returns:
        the results as graph values: one, or a tuple for several types, None for none.
    """
    refuse_changes(t, function, args, kwargs, name)
    found: list[Any] = []
    nest = snapshot(t, leaves(t, (args, kwargs), found))
    commits = commit_writes(t, found)
    place = place_of(t)

    def run(*values: Any) -> tuple[Any, ...]:
        for target, index in commits:
            (values[target] if isinstance(target, int) else target)._rebind(values[index])
        given, named = rebuilt(nest, values)
        try:
            result = function(*given, **named)
            if changed(nest, (given, named)):
                raise UnsupportedSyntaxError(
                    f"{name}: has changed a list or an array that was made while compiling, of which it got a copy; "
                    f"use a function that returns a new one, or call it outside of compiled code"
                )
        except Exception as error:
            mark_source(error, place)
            raise
        if not types:
            return ()
        return (result,) if len(types) == 1 else tuple(result)

    out = t.builder.append(
        host_call, tuple(found), {"run": HostCall(run, name), "types": tuple(types)}
    )
    if not types:
        return None
    return out[0] if len(types) == 1 else out


def commit_writes(t: Trace, found: list[Any]) -> list[tuple[Tensor | int, int]]:
    """Let the host see what was written so far.

    Returns:
        pairs of a tensor from outside, or of the operand that is one of the arguments, and the
        operand with its value.
    """
    commits: list[tuple[Tensor | int, int]] = []
    for slot in t.slots.values():
        if not slot.fresh and slot.current is not slot.incoming:
            found.append(t.builder.bring(slot.current))
            commits.append((slot.tensor, len(found) - 1))
    for made, first, index in t.arguments:
        if made._id != first or made._builder is not t.root:
            found += [t.builder.bring(t.argument_object(index)), t.builder.bring(made)]
            commits.append((len(found) - 2, len(found) - 1))
    return commits


def note_effect(
    t: Trace,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    name: str,
    commit: bool = False,
    objects: bool = False,
) -> None:
    """A node without results that runs Python: a print, a write to an object outside, a raise."""
    found: list[Any] = []
    nest = leaves(t, args, found, objects)
    commits = commit_writes(t, found) if commit else []
    place = place_of(t)

    def run(*values: Any) -> tuple[Any, ...]:
        for target, index in commits:
            (values[target] if isinstance(target, int) else target)._rebind(values[index])
        try:
            function(*rebuilt(nest, values))
        except Exception as error:
            mark_source(error, place)
            raise
        return ()

    t.builder.append(host_call, tuple(found), {"run": HostCall(run, name), "types": ()})
