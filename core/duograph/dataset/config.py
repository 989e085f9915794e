"""Settings of datasets: the seed of shuffling, and options that are accepted and recorded."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import random_state
from ..errors import ArgumentError

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

_options: dict[str, Any] = {"seed": None, "workers": 1, "prefetch": 16, "drawn": 0}


def set_seed(seed: int) -> None:
    """Seed of shuffling and random transforms (`mindspore.dataset.config.set_seed`).

    Raises:
        TypeError: no int of 0 or more.
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ArgumentError(f"dataset.config.set_seed: got {seed!r}; wanted an int of 0 or more")
    _options["seed"] = seed
    _options["drawn"] = 0


def get_seed() -> int:
    """The seed set here, else the global one, else 5489."""
    if _options["seed"] is not None:
        return int(_options["seed"])
    found = _global_seed()
    return 5489 if found is None else found


def _global_seed() -> int | None:
    found = random_state.get_seed()
    return None if found is None else int(found)


def _start_over(_: int) -> None:
    """`mindspore.set_seed` was called: it is the seed of datasets too, and passes are counted anew."""
    _options.update(seed=None, drawn=0)


random_state.on_seed.append(_start_over)


def random_numbers() -> np.random.Generator:
    """A generator for one pass: by the seed and the number of passes before; unseeded when no seed
    was set.
    """
    _options["drawn"] += 1
    if _options["seed"] is None and _global_seed() is None:
        return np.random.default_rng()
    return np.random.Generator(np.random.Philox(key=[get_seed(), _options["drawn"]]))


def set_num_parallel_workers(num: int) -> None:
    """Recorded: rows are made in the calling thread."""
    _options["workers"] = num


def get_num_parallel_workers() -> int:
    """What `set_num_parallel_workers` recorded."""
    return int(_options["workers"])


def set_prefetch_size(size: int) -> None:
    """Recorded: nothing is fetched ahead."""
    _options["prefetch"] = size


def get_prefetch_size() -> int:
    """What `set_prefetch_size` recorded."""
    return int(_options["prefetch"])


def set_auto_num_workers(enable: bool) -> None:
    """Accepted without effect."""


def set_enable_shared_mem(enable: bool) -> None:
    """Accepted without effect."""
