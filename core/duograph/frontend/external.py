"""Objects from outside as the evaluation sees them: lists, dicts and sets are copied: compiling
changes nothing.
"""

from __future__ import annotations

import collections
from typing import Any

import numpy as np

from .captures import entries_of
from .trace import ARRAY_LIMIT, Trace

__all__ = ["taken", "original", "seen"]


def taken(t: Trace, value: Any, label: str | None) -> Any:
    """A value read from outside, for use in the evaluation; without a label what it holds is not
    captured.
    """
    kind = type(value)
    if kind in (list, dict, set):
        return shadow(t, value, label)
    if kind is tuple:
        items = [taken(t, v, _part(label, i)) for i, v in enumerate(value)]
        return value if all(a is b for a, b in zip(items, value)) else tuple(items)
    if label is None:
        return value
    if isinstance(value, (dict, list, set, collections.deque)):
        t.captures.add("entries", value, None, entries_of(value), label)
    if isinstance(value, np.ndarray):
        t.keep.append(value)
        if value.nbytes > ARRAY_LIMIT and value.dtype.kind in "biuf":
            t.live_arrays[id(value)] = value
        elif value.dtype != object:
            t.captures.contents(value, label)
    return value


def _part(label: str | None, key: Any) -> str | None:
    return None if label is None else f"{label}[{key!r}]"


def shadow(t: Trace, value: Any, label: str | None) -> Any:
    """The copy of a container from outside. Its items are captured when something looks at them:
    see `seen`.
    """
    found = t.shadows.get(id(value))
    if found is not None:
        return found[1]
    made: Any = type(value)()
    t.shadows[id(value)] = (value, made)
    t.shadow_of[id(made)] = value
    if label is not None:
        t.unseen[id(made)] = label
    t.keep.append(made)
    if isinstance(value, list):
        made.extend(taken(t, v, _part(label, i)) for i, v in enumerate(value))
    elif isinstance(value, dict):
        made.update({k: taken(t, v, _part(label, k)) for k, v in value.items()})
    else:
        made.update(value)
    return made


def seen(t: Trace, made: Any) -> None:
    """Something looks at the items of a container: if it came from outside they are captured."""
    label = t.unseen.pop(id(made), None)
    if label is None:
        return
    value = t.shadow_of[id(made)]
    if isinstance(value, list):
        t.captures.add("length", value, None, len(value), f"len({label})")
        for i, v in enumerate(value):
            t.captures.add("index", value, i, v, f"{label}[{i}]")
    elif isinstance(value, dict):
        t.captures.add("keys", value, None, tuple(value), f"keys of {label}")
        for k, v in value.items():
            t.captures.add("item", value, k, v, f"{label}[{k!r}]")
    else:
        t.captures.add("keys", value, None, tuple(sorted(value, key=repr)), f"items of {label}")


def original(t: Trace, value: Any) -> Any:
    """The container from outside that a copy stands for, or the value itself."""
    return t.shadow_of.get(id(value), value)
