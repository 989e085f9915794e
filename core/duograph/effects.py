"""What an op does besides returning a value.

Dead-code removal, merging and reordering consult these and nothing else.
"""

from __future__ import annotations

import dataclasses

__all__ = ["Effect", "Reads", "Writes", "IO", "Random"]


@dataclasses.dataclass(frozen=True)
class Effect:
    """Base class."""


@dataclasses.dataclass(frozen=True)
class Reads(Effect):
    """Reads the state named by an operand."""

    operand: str


@dataclasses.dataclass(frozen=True)
class Writes(Effect):
    """Writes the state named by an operand."""

    operand: str


@dataclasses.dataclass(frozen=True)
class IO(Effect):
    """Prints, raises or calls the host; ordered among its like."""


@dataclasses.dataclass(frozen=True)
class Random(Effect):
    """Advances the random state by one."""
