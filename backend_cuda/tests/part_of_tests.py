"""A plugin of pytest (`-p part_of_tests`) that runs one part of the collected tests.

TESTS_PART=2/6 chooses the second of six parts. `check_gpu` divides long suites so that each part
takes a few minutes.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, TypeVar

T = TypeVar("T")


def part(items: Sequence[T], number: int, parts: int) -> Sequence[T]:
    """Return part `number` (from 1) of `parts` parts of adjacent items, of nearly equal sizes."""
    if not 1 <= number <= parts:
        raise ValueError(f"TESTS_PART: got {number}/{parts}; wanted a part from 1 to {parts}")
    return items[(number - 1) * len(items) // parts : number * len(items) // parts]


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Keep one part of the collected tests; pytest calls it."""
    number, parts = map(int, os.environ["TESTS_PART"].split("/"))
    kept = part(items, number, parts)
    dropped = {id(item) for item in items} - {id(item) for item in kept}
    config.hook.pytest_deselected(items=[item for item in items if id(item) in dropped])
    items[:] = kept
