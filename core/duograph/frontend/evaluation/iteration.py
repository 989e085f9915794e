"""Iteration over values at compile time.

Loops, unpacking and built-in functions call `iterate`. It never iterates over a length that is
known only when the graph runs.
"""

from __future__ import annotations

from ..state.evaluation import Evaluation
from ..types import Value
from .dispatch import call


def iterate(ev: Evaluation, items: Value) -> Value:
    """Return a compile-time iterator over a value; evaluate a user's `__iter__` from source."""
    ev.copies.observe(items)
    kind = type(items)
    found = getattr(kind, "__iter__", None)
    if (
        found is not None
        and hasattr(found, "__code__")
        and not kind.__module__.startswith("duograph")
    ):
        items = call(ev, items.__iter__, (), {})
        if hasattr(type(items), "__next__") and hasattr(type(items).__next__, "__code__"):
            return _staged_iterator(ev, items)
    return iter(items)


def _staged_iterator(ev: Evaluation, items: Value) -> Value:
    """Yield the items of a user's iterator at compile time; trace its `__next__` into the graph."""
    while True:
        try:
            yield call(ev, items.__next__, (), {})
        except StopIteration:
            return


def is_iterable(value: Value) -> bool:
    """Return whether a value's class defines `__iter__` or `__getitem__`."""
    return hasattr(type(value), "__iter__") or hasattr(type(value), "__getitem__")
