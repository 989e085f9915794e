"""Whole workloads, written once for each framework in its usual style.

`data` has weights, under their PyTorch names, and batches as NumPy arrays. Every other module has
`CASES`, a table from the name of a workload to a function that prepares it and returns a `Case`.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from sides import Case, repeat

# Losses of so many steps are compared before any time counts.
COMPARED_STEPS = 6


def training(step: Callable[[], Any], number: Callable[[Any], float]) -> Case:
    """Return a training step as a benchmark case; the loss is read after each step."""
    notes: dict[str, float] = {}

    def losses() -> list[np.ndarray]:
        begin = perf_counter()
        first = number(step())
        notes["first step"] = perf_counter() - begin
        return [np.array([first, *(number(step()) for _ in range(COMPARED_STEPS - 1))])]

    return Case(repeat(lambda: number(step())), losses, notes)


def function(call: Callable[[], Any], array: Callable[[Any], np.ndarray], wait: Any = None) -> Case:
    """Return the case of a function whose result is compared.

    `wait` synchronises asynchronous calls.
    """
    notes: dict[str, float] = {}

    def values() -> list[np.ndarray]:
        begin = perf_counter()
        first = array(call())
        notes["first step"] = perf_counter() - begin
        return [first]

    return Case(repeat(call, wait), values, notes)
