"""Removes captures that need no guard, because the cache key contains the captured values.

A capture is a value from outside a compiled function that its program contains as a constant. The
cache key compares arrays and frozen dataclasses among the arguments by their contents. A program
found by such a key therefore fits these contents, and its guard need not compare them again.
`compiler.evaluate` calls `without_contents` when a program is finished. The module never changes an
argument.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from ..frontend.state.captures import Capture, Captures
from ..frontend.types import Value
from .arguments import fields_of, is_frozen

__all__ = ["without_contents"]


def without_contents(captures: Captures, arguments: Iterable[Value]) -> None:
    """Remove the captures of contents of arrays and frozen dataclasses among the arguments.

    The cache key compares these arguments by value. Another call may therefore pass another object
    with the same contents, and a guard that compares with the first object would be wrong. Nothing
    is removed if any other capture holds one of these objects, because then the function also
    reaches that object in another way, such as by a global variable.

    Args:
        captures: the captures of the finished evaluation; changed in place.
        arguments: the arguments of the call.
    """
    own: dict[int, Value] = {}
    waiting = [*arguments]
    while waiting:
        x = waiting.pop()
        if isinstance(x, dict):
            waiting += (*x, *x.values())
        elif isinstance(x, (list, tuple, set, frozenset)):
            waiting += x
        elif id(x) not in own and (isinstance(x, np.ndarray) or is_frozen(x)):
            own[id(x)] = x
            waiting += [] if isinstance(x, np.ndarray) else [v for _, v in fields_of(x)]
    known = [key for key, c in captures.items.items() if _asks_only_for(c, own)]
    rest = [c for key, c in captures.items.items() if key not in known]
    if not any(_holds(c.value, own) for c in rest):
        for key in known:
            del captures.items[key]


def _asks_only_for(capture: Capture, own: Mapping[int, Value]) -> bool:
    """Return whether a captured value depends only on the contents of certain argument objects.

    Args:
        capture: the capture.
        own: the objects by id: arrays and frozen dataclasses, which the cache key compares by
            value.
    """
    owner = capture.owner
    if capture.exact or capture.by_identity:
        return False
    if capture.kind == "answer":
        plain = (bool, int, float, complex, str, bytes, type(None), slice)
        asked = [x for x in capture.name if id(x) in own]
        return bool(asked) and all(id(x) in own or type(x) in plain for x in capture.name)
    if capture.kind == "attribute" and id(owner) in own and not isinstance(owner, np.ndarray):
        return any(name == capture.name for name, _ in fields_of(owner))
    return capture.kind == "contents" and id(owner) in own


def _holds(value: Value, own: Mapping[int, Value]) -> bool:
    """Return whether a captured value is an object in `own` (by id), or a tuple containing one."""
    if isinstance(value, tuple):
        return any(_holds(v, own) for v in value)
    return id(value) in own
