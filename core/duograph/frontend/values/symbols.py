"""Replaces or refuses symbolic sizes (`dims.Dim`) in values for code that needs plain numbers."""

from __future__ import annotations

from ...dims import is_symbolic
from ...errors import UnsupportedSyntaxError
from ...scopes import Scope
from ...sizes import pinned
from ..types import Value
from .functions import Choice, Function
from .nested import reaches

__all__ = ["refuse_symbols", "without_symbols"]


def without_symbols(scope: Scope | None, value: Value) -> Value:
    """Return a nested value with a fixed number in place of each symbolic size.

    It is used before code that could hash a size. Each size is replaced by its number in the
    present call, and the compiled program then serves only calls with that number.

    Args:
        scope: the symbolic sizes of the evaluation; None if there are none.
        value: the value, nested in lists, tuples, dicts and slices.

    Raises:
        UnsupportedSyntaxError: another object in `value` holds a symbolic size.
    """
    if scope is None:
        return value
    found = pinned(value)
    refuse_symbols(found)
    return found


def refuse_symbols(value: Value) -> None:
    """Raise if a symbolic size can be reached from an object, directly or through other objects.

    Raises:
        UnsupportedSyntaxError: a symbolic size can be reached.
    """
    if reaches(value, is_symbolic, opaque=(Function, Choice)):
        raise UnsupportedSyntaxError(
            f"size: got a {type(value).__name__} that holds a symbolic size, for code that needs "
            "its number",
            construct="size",
        )
