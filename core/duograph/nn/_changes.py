"""The counter of changes to Cells, which the guards of compiled functions compare.

Every attribute, member or hook set on a Cell, and every flag set on a Parameter, increments it.
A guard that sees an unchanged count may skip checking the Cells that it captured.
"""

from __future__ import annotations

__all__ = ["cell_changes", "record_change"]


class ChangeCounter:
    """A process-wide counter; `value` only grows."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0


cell_changes = ChangeCounter()


def record_change() -> None:
    """Count one change to some Cell or Parameter flag."""
    cell_changes.value += 1
