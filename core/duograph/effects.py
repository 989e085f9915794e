"""Side effects that ops declare, such as printing or advancing the random generator.

Graph passes that remove, merge or reorder nodes consult these declarations and nothing else. The
declarations stand with the ops; this module names no op.
"""

from __future__ import annotations

import dataclasses

__all__ = ["Effect", "Reads", "Writes", "IO", "Communicates", "Random"]


@dataclasses.dataclass(frozen=True)
class Effect:
    """Base class of side effects: what an op does besides returning values."""


@dataclasses.dataclass(frozen=True)
class Reads(Effect):
    """Side effect of an op that reads mutable state, which the operand named `operand` holds."""

    operand: str


@dataclasses.dataclass(frozen=True)
class Writes(Effect):
    """Side effect of an op that writes mutable state, which the operand named `operand` holds."""

    operand: str


@dataclasses.dataclass(frozen=True)
class IO(Effect):
    """Side effect of an op that prints, raises or calls Python; such ops keep their order."""


@dataclasses.dataclass(frozen=True)
class Communicates(IO):
    """Side effect of a collective, which all ranks must call equally often in the same order."""


@dataclasses.dataclass(frozen=True)
class Random(Effect):
    """Side effect of an op that advances the random generator to its next position."""
