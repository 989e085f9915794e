"""Philox 4x32-10 on the host, in NumPy: the generator of `random_bits`, for values that are made before any device is used."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import random_state

__all__ = ["philox", "Stream", "next_stream", "reset"]

_MUL = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_ADD = (np.uint32(0x9E3779B9), np.uint32(0xBB67AE85))
_LOW = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)
# The third counter word of initial values: their streams never meet those of the random ops.
_DOMAIN = 0x494E4954

_lock = threading.Lock()
_state = {"seed": random_state.initial_seed(), "count": 0}


def philox(key: tuple[int, int], offset: tuple[int, int], start: int, blocks: int) -> Any:
    """`4 * blocks` uint32 words: block i has the counter (start + i, offset)."""
    index = np.arange(start, start + blocks, dtype=np.uint64)
    c0 = (index & _LOW).astype(np.uint32)
    c1 = (index >> _SHIFT).astype(np.uint32)
    c2 = np.full(blocks, offset[0], np.uint32)
    c3 = np.full(blocks, offset[1], np.uint32)
    k0, k1 = np.uint32(key[0]), np.uint32(key[1])
    with np.errstate(over="ignore"):
        for _ in range(10):
            p0 = c0.astype(np.uint64) * _MUL[0]
            p1 = c2.astype(np.uint64) * _MUL[1]
            high0, low0 = (p0 >> _SHIFT).astype(np.uint32), (p0 & _LOW).astype(np.uint32)
            high1, low1 = (p1 >> _SHIFT).astype(np.uint32), (p1 & _LOW).astype(np.uint32)
            c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
            k0, k1 = k0 + _ADD[0], k1 + _ADD[1]
    return np.stack([c0, c1, c2, c3], axis=1).reshape(-1)


class Stream:
    """Numbers from one (seed, position): every draw goes on where the last one ended."""

    def __init__(self, seed: int, position: int) -> None:
        self._key = (seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF)
        self._offset = (_DOMAIN, position & 0xFFFFFFFF)
        self._block = 0

    def _words(self, n: int) -> Any:
        blocks = (n + 3) // 4
        words = philox(self._key, self._offset, self._block, blocks)
        self._block += blocks
        return words[:n]

    def uniform(self, shape: Sequence[int], low: float, high: float) -> Any:
        """float64 in [low, high), 32 random bits each."""
        n = math.prod(shape)
        return (low + (high - low) * (self._words(n) * 2.0**-32)).reshape(tuple(shape))

    def normal(self, shape: Sequence[int]) -> Any:
        """Standard normal float64 (Box and Muller), two words each pair."""
        n = math.prod(shape)
        half = (n + 1) // 2
        words = self._words(2 * half)
        radius = np.sqrt(-2.0 * np.log((words[:half] + 0.5) * 2.0**-32))
        angle = (2.0 * np.pi * 2.0**-32) * words[half:]
        both = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])
        return both[:n].reshape(tuple(shape))


def next_stream() -> Stream:
    """The stream of the next call of `initializer`."""
    with _lock:
        position = _state["count"]
        _state["count"] += 1
    return Stream(_state["seed"], position)


def reset(seed: int) -> None:
    """Start over: `set_seed` calls this."""
    with _lock:
        _state["seed"] = seed
        _state["count"] = 0


random_state.on_seed.append(reset)
