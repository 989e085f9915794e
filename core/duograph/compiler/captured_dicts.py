"""Finds the dict that stores a captured attribute, so that one change is reported only once.

A capture is a value from outside that a program contains as a constant. Several captures may read
the same dict entry: `self.level`, `Net.level` and `type(self).level` may all be the entry `level`
in the `__dict__` of the class `Net`. `compiler.guards` uses this module to warn about a changed
entry once, however many captures have read it. The module changes nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping

from ..frontend.state.captures import Capture, same
from ..frontend.state.journal import MISSING
from ..frontend.types import Value

__all__ = ["Homes", "changed_entries", "homes_of"]

# (key of a dict, content of an attribute there), for each dict in which Python looks it up.
Homes = list[tuple[Hashable, Value]]


def homes_of(capture: Capture) -> Homes:
    """Return the dicts in which Python looks up a captured attribute, with its value in each.

    The dicts are the `__dict__` of the object and those of the classes in its MRO, in lookup order.
    An item is (id of the dict, present value or MISSING). The result is empty for captures that are
    not of an attribute or a method.
    """
    if capture.kind not in ("attribute", "method"):
        return []
    owner, name = capture.owner, capture.name
    return [(key, held.get(name, MISSING)) for key, held in _dicts(owner, capture.kind)]


def changed_entries(capture: Capture, now: Value, before: Homes) -> set[Hashable]:
    """Return the dict entries whose change explains that a captured value has changed.

    Args:
        capture: the capture.
        now: the present value of what was captured.
        before: the result of `homes_of` when the program was compiled.

    Returns:
        pairs (id of the dict, key). If no changed entry explains the change, as with the value of a
            property, the result is one pair that stands for the capture itself.
    """
    owner, name = capture.owner, capture.name
    if capture.kind == "item":
        return {(id(owner), name)}
    if capture.kind == "entries" and isinstance(owner, dict):
        return _changed_keys(owner, capture.value, now)
    present = dict(homes_of(capture))
    for key, was in before:
        if present.get(key, MISSING) is not was:
            return {(key, name)}
    return {(id(capture), "capture")}  # such as the value of a property


def _dicts(owner: Value, kind: str) -> Iterator[tuple[Hashable, Mapping[str, Value]]]:
    """Yield (id, dict) for the dicts in which Python looks for an attribute of `owner`, in order.

    `kind` is the kind of the capture. For "method" the only dict is that of the class `owner`.
    """
    if not isinstance(owner, type):
        held = getattr(owner, "__dict__", None)
        if isinstance(held, dict):
            yield id(held), held  # the key that a captured item of this dict also has
        owner = type(owner)
    for cls in owner.__mro__ if kind == "attribute" else (owner,):
        yield id(cls), vars(cls)


def _changed_keys(owner: Value, was: Value, now: Value) -> set[Hashable]:
    """Return (id of the dict, key) for keys that were added to, removed from or changed in a dict.

    Args:
        owner: the dict.
        was, now: its earlier and its present content, each as one flat tuple of the keys followed
            by the values.
    """
    before, after = (dict(zip(x[: len(x) // 2], x[len(x) // 2 :], strict=True)) for x in (was, now))
    keys = before.keys() | after.keys()
    return {(id(owner), k) for k in keys if not same(before.get(k, MISSING), after.get(k, MISSING))}
