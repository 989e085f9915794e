"""Settings of datasets: the seed of shuffling, and options of MindSpore that are only recorded."""

from __future__ import annotations

import dataclasses

import numpy as np

from .. import random_state
from ..errors import ArgumentError
from ..option_checks import warn_moot

__all__ = [
    "set_seed",
    "get_seed",
    "set_num_parallel_workers",
    "get_num_parallel_workers",
    "set_prefetch_size",
    "get_prefetch_size",
    "set_auto_num_workers",
    "set_enable_shared_mem",
    "random_numbers",
]


@dataclasses.dataclass
class _Settings:
    """Settings of datasets.

    `passes` counts passes over datasets that drew random numbers since the seed was set.
    """

    seed: int | None = None
    workers: int = 1
    prefetch: int = 16
    passes: int = 0


_settings = _Settings()


def set_seed(seed: int) -> None:
    """Set the seed of shuffling and random transforms (`mindspore.dataset.config.set_seed`).

    Raises:
        TypeError: `seed` is not an int of 0 or more.
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ArgumentError(f"dataset.config.set_seed: got {seed!r}; wanted an int of 0 or more")
    _settings.seed, _settings.passes = seed, 0


def get_seed() -> int:
    """Return the dataset seed: the one from `set_seed`, else mindspore's global seed, else 5489."""
    if _settings.seed is not None:
        return _settings.seed
    found = _global_seed()
    return 5489 if found is None else found


def _global_seed() -> int | None:
    found = random_state.get_seed()
    return None if found is None else int(found)


def _on_global_seed(_: int) -> None:
    """Reset the seed of datasets after `mindspore.set_seed`, whose seed they then use."""
    _settings.seed, _settings.passes = None, 0


random_state.on_seed.append(_on_global_seed)


def random_numbers() -> np.random.Generator:
    """Return a random generator for one pass over a dataset, from seed and pass number.

    Without any seed the generator is seeded by the system.
    """
    _settings.passes += 1
    if _settings.seed is None and _global_seed() is None:
        return np.random.default_rng()
    return np.random.Generator(np.random.Philox(key=[get_seed(), _settings.passes]))


def set_num_parallel_workers(num: int) -> None:
    """Record a number of dataset workers, with one warning: rows come from the calling thread."""
    warn_moot("dataset.config.set_num_parallel_workers")
    _settings.workers = num


def get_num_parallel_workers() -> int:
    """Return the number recorded by `set_num_parallel_workers`."""
    return int(_settings.workers)


def set_prefetch_size(size: int) -> None:
    """Record a dataset prefetch size, with one warning: rows are never prefetched."""
    warn_moot("dataset.config.set_prefetch_size")
    _settings.prefetch = size


def get_prefetch_size() -> int:
    """Return the size recorded by `set_prefetch_size`."""
    return int(_settings.prefetch)


def set_auto_num_workers(enable: bool) -> None:
    """Do nothing but warn once: there are no dataset workers whose number could be chosen."""
    if enable:
        warn_moot("dataset.config.set_auto_num_workers")


def set_enable_shared_mem(enable: bool) -> None:
    """Do nothing but warn once: there are no dataset workers that could share memory."""
    if enable:
        warn_moot("dataset.config.set_enable_shared_mem")
