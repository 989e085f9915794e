"""Side effects that ops declare.

Passes that remove, merge or reorder nodes consult these declarations and nothing else. This module
knows no op.
"""

from __future__ import annotations

import dataclasses

__all__ = ["Effect", "Reads", "Writes", "IO", "Random"]


@dataclasses.dataclass(frozen=True)
class Effect:
    """Something that an op does besides returning values."""


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
    """Prints, raises or calls Python; such nodes keep their order."""


@dataclasses.dataclass(frozen=True)
class Random(Effect):
    """Advances the random state by one position."""
