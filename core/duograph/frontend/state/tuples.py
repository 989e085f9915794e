"""Makes a tuple of the same class as a given tuple, which may be of a subclass of `tuple`."""

from __future__ import annotations

from collections.abc import Sequence

from ..types import Value

__all__ = ["tuple_like"]


def tuple_like(original: Value, items: Sequence[Value]) -> Value:
    """Return items as a tuple of the class of `original`, without running code of the class."""
    kind = type(original)
    if kind is tuple:
        return tuple(items)
    if isinstance(vars(kind).get("n_sequence_fields"), int):  # a class in C, such as struct_time
        return kind(items)
    return tuple.__new__(kind, items)
