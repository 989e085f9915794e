"""Marks captures as *exact* if they lead to an object which the function changes.

A capture is a value read from outside the function as a constant. The user's setting
`stale_captures` may allow a call to use old values of what a function only reads. But a function
that changes an object must change the object that exists at the call, with the contents that it has
then. An exact capture therefore compiles the function again when its value changes, whatever the
setting. `compiler.evaluate` calls `require_present` once per evaluation. The module must not read
values from outside the function.
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
    """Mark captures as exact if the function changes what they read, or reaches it through them.

    An exact capture compiles the function again when its value changes, whatever the user's setting
    `stale_captures` says. Captures of arrays are marked `by_identity` if the function depends on
    which array object it reads.

    Args:
        ev: the finished evaluation.
        reachable: function from an object to a dict, by id, of it and all objects that it holds.
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
        if c.kind != "answer":  # its `name` has a call's arguments
            c.exact |= (c.kind, id(c.owner), c.name) in written
        if c.kind == "attribute" and isinstance(c.owner, types.ModuleType):
            c.exact |= ("item", id(vars(c.owner)), c.name) in written
    _follow(captures, wanted | {number for kind, number, _ in written if kind == "cell"})


def _concerns(
    capture: Capture, wanted: set[int], reachable: Callable[[Value], dict[int, Value]]
) -> bool:
    """Return whether a capture was read from one of the objects whose ids are in `wanted`.

    A capture of kind "answer" holds the result of a call such as `len(x)`; it was read from all
    arguments of the call and everything they hold. `reachable` returns, by id, an object and all
    objects that it holds.
    """
    if capture.kind == "answer":
        return any(id(x) in wanted for x in capture.name) or not wanted.isdisjoint(
            reachable(capture.name)
        )
    return id(capture.owner) in wanted


def _follow(captures: list[Capture], wanted: set[int]) -> None:
    """Mark captures as exact that lead, through one or more captures, to an object in `wanted`.

    An exact capture compiles the function again whenever its value has changed. For example, the
    function changes the object `net.cfg.items`. The captures of `cfg.items`, of `net.cfg` and of
    the global `net` become exact. The ids of the owners of these captures are added to `wanted`.
    """
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
    """Yield a captured value and the objects in it through which the function reaches others.

    These are the items of tuples, closure cells of functions, receivers of bound methods, parts of
    `functools.partial`, dicts of modules and base arrays of views.
    """
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
