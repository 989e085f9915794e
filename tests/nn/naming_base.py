"""The table of the naming programs and the small networks of which they are made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["PROGRAMS", "block", "dense", "parameter", "program"]

PROGRAMS: dict[str, Callable[[Any], Any]] = {}


def program(build: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Add a function to the table of programs."""
    PROGRAMS[build.__name__] = build
    return build


def dense(ms: Any) -> Any:
    """Return a layer with the Parameters `weight` and `bias`."""
    return ms.nn.Dense(1, 1)


def block(ms: Any, **children: Any) -> Any:
    """Return a Cell with the given attributes, set in their order."""
    made = ms.nn.Cell()
    for name, value in children.items():
        setattr(made, name, value)
    return made


def parameter(ms: Any, *name: str) -> Any:
    """Return a Parameter, with or without a name of its own."""
    return ms.Parameter(ms.Tensor([1.0], ms.float32), *name)
