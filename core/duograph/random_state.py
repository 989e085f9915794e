"""The random state: a seed and a position, from which every random op derives its numbers.

The numbers are Philox 4x32-10 of (seed, position, index) alone (Salmon et al., "Parallel random
numbers: as easy as 1, 2, 3", 2011), so they are the same on every backend. Every random op advances
the position by one, whether its result is used or not. Nothing here runs on a device.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from ._locks import new_lock
from .call_errors import explaining
from .dtype import uint8
from .errors import ArgumentError, ArgumentValueError
from .ir.values import NeedsValue
from .runtime_state import runtime_state, staged_builder, thread_state
from .tensor import Tensor

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .host_arrays import Array

__all__ = [
    "Generator",
    "default_generator",
    "get_rng_state",
    "get_seed",
    "host_normal",
    "host_uniform",
    "initial_seed",
    "manual_seed",
    "next_state",
    "on_seed",
    "philox",
    "random_stream",
    "seed",
    "set_rng_state",
    "set_seed",
]

_MASK = 0xFFFFFFFF
_ROUND = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (0x9E3779B9, 0xBB67AE85)

# Called with the seed by set_seed and manual_seed.
on_seed: list[Callable[[int], None]] = []


def philox(state: Sequence[int] | Array, count: int) -> Array:
    """Return `count` random uint32 words of the Philox generator.

    Word i is word i % 4 of the block with counter (i // 4, offset).

    Args:
        state: four 32-bit words: the low and high half of the key (seed), and of the offset
            (position).
        count: how many words.

    Examples:
        >>> from duograph.random_state import philox
        >>> [hex(w) for w in philox((0, 0, 0, 0), 2)]
        ['0x6627e8d5', '0xe169c58d']
    """
    low, shift = np.uint64(_MASK), np.uint64(32)
    blocks = np.arange((count + 3) // 4, dtype=np.uint64)
    c = [blocks & low, blocks >> shift,
         np.full_like(blocks, int(state[2])), np.full_like(blocks, int(state[3]))]  # fmt: skip
    k0, k1 = int(state[0]), int(state[1])
    for _ in range(10):
        p0, p1 = c[0] * _ROUND[0], c[2] * _ROUND[1]
        c = [
            (p1 >> shift) ^ c[1] ^ np.uint64(k0),
            p1 & low,
            (p0 >> shift) ^ c[3] ^ np.uint64(k1),
            p0 & low,
        ]
        k0, k1 = (k0 + _WEYL[0]) & _MASK, (k1 + _WEYL[1]) & _MASK
    return np.stack(c, axis=1).reshape(-1)[:count].astype(np.uint32)


def _checked_seed(name: str, seed: object) -> int:
    """Return a random seed as a 64-bit int; errors begin with `name`, the public function."""
    if isinstance(seed, Tensor):
        seed = seed.item()
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
        raise ArgumentError(f"{name}: got {seed!r} for the seed; wanted an int")
    if not -(2**63) <= seed < 2**64:
        raise ArgumentValueError(f"{name}: got the seed {seed}; wanted one of 64 bits")
    return int(seed) & (2**64 - 1)


@explaining
class Generator:
    """A random generator: a seed, and how many positions it has given out (`mindspore.Generator`).

    A new generator starts from a seed of the operating system.

    Examples:
        >>> import duograph as ms
        >>> g = ms.Generator().manual_seed(5)
        >>> g.initial_seed()
        5
    """

    def __init__(self) -> None:
        self._lock = new_lock()
        self._seed = int.from_bytes(os.urandom(8), "little")
        self._position = 0
        self._streams: dict[int, Generator] = {}

    def manual_seed(self, seed: object) -> Generator:
        """Reset a random generator to a given seed, and return the generator.

        Raises:
            TypeError: not an int.
            ValueError: more than 64 bits.
        """
        value = _checked_seed("manual_seed", seed)
        with self._lock:
            self._seed, self._position = value, 0
            self._streams.clear()
        return self

    def stream(self, index: int) -> Generator:
        """Return child generator number `index`, which has this one's seed but another position.

        The positions of different children are so far apart that their numbers differ. Calls with
        the same index return the same object, until this generator's seed or state is set.
        """
        with self._lock:
            found = self._streams.get(index)
            if found is None:
                found = self._streams[index] = Generator()
                found._seed, found._position = self._seed, (index + 1) << 40
            return found

    def seed(self) -> int:
        """Reset a random generator to a seed from the operating system, and return the seed."""
        value = int.from_bytes(os.urandom(8), "little")
        self.manual_seed(value)
        return value

    def initial_seed(self) -> int:
        """Return the seed that a random generator started from."""
        return self._seed

    def get_state(self) -> Tensor:
        """Return a random generator's seed and position as a uint8 Tensor, for `set_state`."""
        with self._lock:
            data = self._seed.to_bytes(8, "little") + self._position.to_bytes(8, "little")
        return Tensor(np.frombuffer(data, np.uint8).copy(), uint8)

    def set_state(self, state: ArrayLike | Tensor) -> None:
        """Restore a random generator's state from a Tensor that `get_state` returned.

        Raises:
            ValueError: an array of another size.
        """
        data = np.asarray(
            state.asnumpy() if isinstance(state, Tensor) else state, np.uint8
        ).tobytes()
        if len(data) != 16:
            raise ArgumentValueError(
                f"set_state: got a state of {len(data)} bytes; wanted the 16 that get_state gives"
            )
        with self._lock:
            self._seed = int.from_bytes(data[:8], "little")
            self._position = int.from_bytes(data[8:], "little")
            self._streams.clear()

    def take(self) -> tuple[int, int]:
        """Return the generator's (seed, position) for one random op; advance the position."""
        with self._lock:
            position = self._position
            self._position = position + 1
            return self._seed, position

    def __repr__(self) -> str:
        return f"Generator(seed={self._seed}, position={self._position})"


default_generator = Generator()


def _global_generator() -> Generator:
    """Return the global generator of this thread: each thread that acts as a rank has its own."""
    return thread_state.generator or default_generator


@contextmanager
def random_stream(index: int) -> Iterator[None]:
    """Return a context manager in which this thread's random ops draw from a child generator.

    The child has number `index` and belongs to the generator that the thread would use otherwise.
    """
    before = thread_state.generator
    thread_state.generator = _global_generator().stream(index)
    try:
        yield
    finally:
        thread_state.generator = before


def next_state(seed: object = None, generator: Generator | None = None) -> Array:
    """Advance a generator by one position; return the state for the next random op.

    The state has four uint32: the low and high half of the key (seed), and of the offset
    (position).

    Args:
        seed: the op's own seed, or None. With one, the numbers depend on it, on the position, and
            on the generator's seed; for the global generator, on the seed given to `set_seed` or
            `manual_seed` instead (0 if there was none).
        generator: the generator to advance; None means the global one.

    Raises:
        NeedsValue: this thread is compiling or tracing a function.
    """
    if staged_builder() is not None or not getattr(thread_state.builder, "draws", True):
        raise NeedsValue("got a random number that is made on the host, while compiling")
    if generator is not None and not isinstance(generator, Generator):
        raise ArgumentError(f"got {type(generator).__name__} for generator; wanted a Generator")
    key, position = (generator or _global_generator()).take()
    if seed is not None:
        own = _checked_seed("seed", seed)
        base = key if generator is not None else runtime_state.seed or 0
        # odd multiplier (splitmix64): different pairs give different keys
        key = (base ^ ((own + 1) * 0x9E3779B97F4A7C15)) & (2**64 - 1)
    return np.array([key & _MASK, key >> 32, position & _MASK, (position >> 32) & _MASK], np.uint32)


def set_seed(seed: object) -> None:
    """Seed the global generator (`mindspore.set_seed`).

    Also seeds the global generators of NumPy and Python, and the initial values of Parameters.

    Args:
        seed: int of at most 64 bits.

    Raises:
        TypeError: not an int.
        ValueError: negative or too large.

    Examples:
        >>> import duograph as ms
        >>> ms.set_seed(1)
        >>> a = ms.ops.rand(3)
        >>> ms.set_seed(1)
        >>> bool((a == ms.ops.rand(3)).all())
        True
    """
    if isinstance(seed, int) and not isinstance(seed, bool) and seed < 0:
        raise ArgumentValueError(f"set_seed: got {seed}; wanted 0 or more")
    value = _checked_seed("set_seed", seed)
    _global_generator().manual_seed(value)
    runtime_state.seed = value
    random.seed(value)
    np.random.seed(value & _MASK)
    for changed in on_seed:
        changed(value)


def get_seed() -> int | None:
    """Return the seed that was given to `set_seed`, or None (`mindspore.get_seed`)."""
    return runtime_state.seed


def manual_seed(seed: object) -> Generator:
    """Reset the global random generator to a seed; return it (`mindspore.manual_seed`)."""
    value = _checked_seed("manual_seed", seed)
    _global_generator().manual_seed(value)
    runtime_state.seed = value
    for changed in on_seed:
        changed(value)
    return _global_generator()


def seed() -> int:
    """Reset the global random generator to a seed of the operating system; return the seed."""
    value = _global_generator().seed()
    runtime_state.seed = None
    for changed in on_seed:
        changed(value)
    return value


def initial_seed() -> int:
    """Return the seed that the global random generator started from."""
    return _global_generator().initial_seed()


def get_rng_state() -> Tensor:
    """Return the state of the global random generator (`mindspore.get_rng_state`)."""
    return _global_generator().get_state()


@explaining
def set_rng_state(state: ArrayLike | Tensor) -> None:
    """Restore the global generator's state from `get_rng_state` (`mindspore.set_rng_state`)."""
    _global_generator().set_state(state)


def host_uniform(n: int, generator: Generator | None = None) -> Array:
    """Draw `n` uniform float64 numbers in [0, 1) on the host; advances the generator.

    `generator` is the one to draw from; None means the global one.
    """
    return philox(next_state(generator=generator), n) * 2.0**-32


def host_normal(n: int, generator: Generator | None = None) -> Array:
    """Draw `n` standard normal float64 numbers on the host; advances the generator.

    `generator` is the one to draw from; None means the global one.
    """
    half = (n + 1) // 2
    words = philox(next_state(generator=generator), 2 * half)
    radius = np.sqrt(-2.0 * np.log((words[:half] + 0.5) * 2.0**-32))
    angle = (2.0 * np.pi * 2.0**-32) * words[half:]
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:n]
