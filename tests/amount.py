"""How much the tests do: `make test` samples some tables, of which `make test-all` runs every row.

DUOGRAPH_TESTS    `full`: every row of these tables, every dtype and every device
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Sequence
from typing import TypeVar

__all__ = ["FULL", "spread"]

FULL = os.environ.get("DUOGRAPH_TESTS") == "full"

A = TypeVar("A")
B = TypeVar("B")


def spread(
    rows: Iterable[A], kinds: Iterable[B], each: int = 1, whole: bool = FULL
) -> list[tuple[A, B]]:
    """Return pairs of rows and kinds that contain every row and every kind; all pairs if `whole`.

    The first kind is paired with every row, each other kind with `each` rows, taken in turn.
    """
    rows, (first, *others) = list(rows), list(kinds)
    if whole:
        return [(row, kind) for row in rows for kind in (first, *others)]
    turns: Sequence[A] = rows * (1 + each * len(others))
    found = [(row, first) for row in rows]
    at = iter(turns)
    for kind in others:
        found += [(row, kind) for row in itertools.islice(at, min(each, len(rows)))]
    return found
