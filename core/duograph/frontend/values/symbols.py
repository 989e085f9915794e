"""Keeps symbolic sizes (`dims.Dim`) away from code that needs their numbers."""

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
    """Return a value for code that could hash a symbolic size: those in it are pinned.

    Args:
        scope: of the symbolic sizes; None: there are none.

    Raises:
        UnsupportedSyntaxError: an object that is no list, tuple, dict or slice holds one.
    """
    if scope is None:
        return value
    found = pinned(value)
    refuse_symbols(found)
    return found


def refuse_symbols(value: Value) -> None:
    """Raise if an object holds a symbolic size, which it keeps.

    Raises:
        UnsupportedSyntaxError: the object holds one.
    """
    if reaches(value, is_symbolic, opaque=(Function, Choice)):
        raise UnsupportedSyntaxError(
            f"size: got a {type(value).__name__} that holds a symbolic size, for code that needs "
            "its number",
            construct="size",
        )
