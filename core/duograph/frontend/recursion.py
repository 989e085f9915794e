"""Functions that call themselves under a condition on a tensor: a named graph that calls itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .frames import Function
from .trace import Trace

__all__ = ["guard"]


def guard(
    t: Trace, f: Function, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Callable[[], Any] | None:
    """How to make the call when it closes a loop of calls, else None."""
    return None
