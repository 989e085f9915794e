"""Removes captures that need no guard, because the cache key holds what they ask for.

`compiler.evaluate` calls it when a program is finished. It never changes an argument.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from ..frontend.state.captures import Capture, Captures
from ..frontend.types import Value
from .arguments import fields_of, is_frozen

__all__ = ["without_contents"]


def without_contents(captures: Captures, arguments: Iterable[Value]) -> None:
    """Remove the captures that ask for contents of arguments which are part of the cache key.

    Another call may pass another object with the same contents; that the first one has changed is
    then no news. What the function reaches in another way, too, is kept.

    Args:
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
    """Return whether the contents of some objects, given by id, determine a capture's answer."""
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
    """Return whether a captured value is one of some objects, by id, or a tuple with one."""
    if isinstance(value, tuple):
        return any(_holds(v, own) for v in value)
    return id(value) in own
