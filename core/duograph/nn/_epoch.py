"""A count of changes to Cells: what was read from them is still right while it stands."""

from __future__ import annotations

__all__ = ["count", "moved"]

count = [0]


def moved() -> None:
    """An attribute, a member or a hook of some Cell was set, or a flag of a Parameter."""
    count[0] += 1
