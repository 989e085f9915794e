"""Decides which captures must never be stale: those of what the function changes, or leads to it.

The policy `stale_captures` may keep old values of what a function only reads. A function that
changes an object must reach the present one, with its present contents. `compiler.evaluate` calls
`require_present` once per evaluation; the module reads no values from outside.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator

import numpy as np

from ..types import Value
from .captures import Capture
from .evaluation import Evaluation

__all__ = ["require_present"]


def require_present(ev: Evaluation, reachable: Callable[[Value], dict[int, Value]]) -> None:
    """Make captures exact whose change must compile the function again at every policy.

    Args:
        ev: the finished evaluation.
        reachable: returns an object and all that it holds, by id.
    """
    captures = list(ev.captures.items.values())
    for c in captures if ev.captures.arrays else ():
        if c.kind != "answer" and any(id(v) in ev.captures.arrays for v in _flat(c.value)):
            c.by_identity = True
    changed = {**ev.outside.targets, **ev.outside.changed_containers}
    for slot in ev.inputs.slots.values():
        if slot.written and not slot.fresh:
            changed[id(slot.tensor)] = slot.tensor
    written = ev.outside.written
    if not changed and not written:
        return
    dicts = {id(d) for v in changed.values() if isinstance(d := getattr(v, "__dict__", None), dict)}
    wanted = {*changed, *dicts}
    classes = {id(k) for v in changed.values() for k in type(v).__mro__}
    for c in captures:
        c.exact |= (c.kind == "method" and id(c.owner) in classes) or _concerns(
            c, wanted, reachable
        )
        if c.kind != "answer":  # whose name is the arguments of the question
            c.exact |= (c.kind, id(c.owner), c.name) in written
        if c.kind == "attribute" and isinstance(c.owner, types.ModuleType):
            c.exact |= ("item", id(vars(c.owner)), c.name) in written
    _follow(captures, wanted | {number for kind, number, _ in written if kind == "cell"})


def _concerns(
    capture: Capture, wanted: set[int], reachable: Callable[[Value], dict[int, Value]]
) -> bool:
    """Return whether a capture is about the contents of one of some objects, given by id."""
    if capture.kind == "answer":
        return any(id(x) in wanted for x in capture.name) or not wanted.isdisjoint(
            reachable(capture.name)
        )
    return id(capture.owner) in wanted


def _follow(captures: list[Capture], wanted: set[int]) -> None:
    """Make captures exact through which the function reaches one of some objects, given by id."""
    waiting = [c for c in captures if c.kind in ("item", "attribute", "cell", "entries", "function",
                                                  "method", "answer")]  # fmt: skip
    found = True
    while found:
        found = False
        for c in list(waiting):
            if any(id(v) in wanted for v in _flat(c.value)):
                c.exact = found = True
                wanted.add(id(c.owner))
                waiting.remove(c)


def _flat(value: Value) -> Iterator[Value]:
    """Yield the objects that a captured value stands for: items of tuples, parts of functions."""
    yield value
    if isinstance(value, tuple):
        for v in value:
            yield from _flat(v)
    elif isinstance(value, types.FunctionType):
        yield from value.__closure__ or ()
    elif isinstance(value, (types.MethodType, types.BuiltinFunctionType)):
        if not isinstance(value.__self__, types.ModuleType):
            yield from _flat((value.__self__, getattr(value, "__func__", None)))
    elif isinstance(value, functools.partial):
        yield from _flat((value.func, *value.args))
    elif isinstance(value, types.ModuleType):
        yield vars(value)
    elif isinstance(value, np.ndarray) and value.base is not None:
        yield value.base
