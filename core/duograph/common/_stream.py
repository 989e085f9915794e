"""The random numbers of one initial value: as many as it wants, from one position of the random
state.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .. import random_state
from ..host_arrays import Array

__all__ = ["Stream"]


class Stream:
    """Numbers from one state: every draw goes on where the last one ended."""

    def __init__(self) -> None:
        self._state = tuple(int(word) for word in random_state.next_state())
        self._drawn = 0

    def rewind(self) -> None:
        """Start over: the same numbers come again."""
        self._drawn = 0

    def _words(self, n: int) -> Array:
        words = random_state.philox(self._state, self._drawn + n)[self._drawn :]
        self._drawn += n
        return words

    def uniform(self, shape: Sequence[int], low: float, high: float) -> Array:
        """float64 in [low, high), 32 random bits each."""
        n = math.prod(shape)
        return (low + (high - low) * (self._words(n) * 2.0**-32)).reshape(tuple(shape))

    def normal(self, shape: Sequence[int]) -> Array:
        """Standard normal float64 (Box and Muller, 1958), two words each pair."""
        n = math.prod(shape)
        half = (n + 1) // 2
        words = self._words(2 * half)
        radius = np.sqrt(-2.0 * np.log((words[:half] + 0.5) * 2.0**-32))
        angle = (2.0 * np.pi * 2.0**-32) * words[half:]
        both = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])
        return both[:n].reshape(tuple(shape))
