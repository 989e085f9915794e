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
    """Effect of an op that reads the state named by an operand."""

    operand: str


@dataclasses.dataclass(frozen=True)
class Writes(Effect):
    """Effect of an op that writes the state named by an operand."""

    operand: str


@dataclasses.dataclass(frozen=True)
class IO(Effect):
    """Effect of an op that prints, raises or calls Python; such ops keep their order."""


@dataclasses.dataclass(frozen=True)
class Random(Effect):
    """Effect of an op that advances the random state by one position."""
