"""The benchmark cases, written once for each framework.

Every module has `CASES`, a table from the name of a case to a function that prepares it and returns
a `Case`. The inputs come from `inputs.py`, so that values can be compared before timing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np


@dataclass(frozen=True)
class Case:
    """A prepared case: `run(n)` times n repetitions, `values()` returns the results of one.

    `notes` are timings of the preparation, by name.
    """

    run: Callable[[int], float]
    values: Callable[[], Sequence[np.ndarray]]
    notes: dict[str, float] = field(default_factory=dict)


def repeat(call: Callable[[], object], wait: Callable[[object], object] | None = None):
    """Return the plain timing loop of a call: n -> seconds of n repetitions.

    `wait` is called on each result, for frameworks that return before they have computed it.
    """

    def run(n: int) -> float:
        begin = perf_counter()
        if wait is None:
            for _ in range(n):
                call()
        else:
            for _ in range(n):
                wait(call())
        return perf_counter() - begin

    return run
