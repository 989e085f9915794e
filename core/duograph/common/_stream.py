"""A stream of random numbers that starts from one position of the global random state.

Each initial value draws from its own stream, so `initializer.py` can create it at any later time.
Creating a stream advances the global state by one position; drawing from it must not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .. import random_state
from ..host_arrays import Array

__all__ = ["Stream"]


class Stream:
    """Random number stream with a fixed seed state; each draw continues after the previous one."""

    def __init__(self) -> None:
        self._state = tuple(int(word) for word in random_state.next_state())
        self._drawn = 0

    def rewind(self) -> None:
        """Restart the random stream, so that it repeats the same numbers."""
        self._drawn = 0

    def _words(self, n: int) -> Array:
        words = random_state.philox(self._state, self._drawn + n)[self._drawn :]
        self._drawn += n
        return words

    def uniform(self, shape: Sequence[int], low: float, high: float) -> Array:
        """Return uniform random float64 numbers in [low, high), with 32 random bits each."""
        n = math.prod(shape)
        return (low + (high - low) * (self._words(n) * 2.0**-32)).reshape(tuple(shape))

    def normal(self, shape: Sequence[int]) -> Array:
        """Return standard normal random float64 numbers by the method of Box and Muller (1958)."""
        n = math.prod(shape)
        half = (n + 1) // 2
        words = self._words(2 * half)
        radius = np.sqrt(-2.0 * np.log((words[:half] + 0.5) * 2.0**-32))
        angle = (2.0 * np.pi * 2.0**-32) * words[half:]
        both = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])
        return both[:n].reshape(tuple(shape))
