"""Samplers, which choose the rows of a dataset source that a pass reads, and their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentValueError
from . import config

__all__ = [
    "Sampler", "SequentialSampler", "RandomSampler", "SubsetSampler", "SubsetRandomSampler",
    "DistributedSampler", "WeightedRandomSampler",
]  # fmt: skip


class Sampler:
    """Base class of samplers, which choose the rows of a dataset (`mindspore.dataset.Sampler`).

    A subclass implements `__iter__`, which yields row numbers; `dataset_size` is set before it.
    """

    def __init__(self, num_samples: int | None = None) -> None:
        self.dataset_size = 0
        self.num_samples = num_samples

    def __iter__(self) -> Iterator[int]:
        raise NotImplementedError(f"{type(self).__name__}: has no __iter__")

    def indices(self, size: int) -> list[int]:
        """Return the row numbers that the sampler chooses in one pass over a dataset of `size`
        rows.
        """
        self.dataset_size = size
        found = [int(i) for i in self]
        limit = getattr(self, "num_samples", None)
        return found if limit is None else found[:limit]

    def length(self, size: int) -> int:
        """Return the number of dataset rows that the sampler chooses in one pass."""
        return len(self.indices(size))


class SequentialSampler(Sampler):
    """Rows in order, from `start_index` (`mindspore.dataset.SequentialSampler`).

    Examples:
        >>> from duograph import dataset
        >>> sorted(dataset.SequentialSampler(1, 2).indices(3))
        [1, 2]
    """

    def __init__(self, start_index: int | None = None, num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        self.start_index = start_index or 0

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.start_index, self.dataset_size))


class RandomSampler(Sampler):
    """Rows in random order (`mindspore.dataset.RandomSampler`).

    Examples:
        >>> from duograph import dataset
        >>> sorted(dataset.RandomSampler().indices(3))
        [0, 1, 2]
    """

    def __init__(self, replacement: bool = False, num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        self.replacement = replacement

    def __iter__(self) -> Iterator[int]:
        random = config.random_numbers()
        if self.replacement:
            n = self.num_samples or self.dataset_size
            return iter(random.integers(0, self.dataset_size, n).tolist())
        return iter(random.permutation(self.dataset_size).tolist())

    def length(self, size: int) -> int:
        limit = self.num_samples
        return size if limit is None else limit if self.replacement else min(size, limit)


class SubsetSampler(Sampler):
    """The rows with the listed numbers, in this order (`mindspore.dataset.SubsetSampler`).

    Examples:
        >>> from duograph import dataset
        >>> sorted(dataset.SubsetSampler([2, 0]).indices(3))
        [0, 2]
    """

    def __init__(self, indices: Sequence[int], num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        self._rows = [int(i) for i in indices]

    def __iter__(self) -> Iterator[int]:
        return iter(self._rows)


class SubsetRandomSampler(SubsetSampler):
    """The rows with the listed numbers, in random order (`mindspore.dataset.SubsetRandomSampler`).

    Examples:
        >>> from duograph import dataset
        >>> sorted(dataset.SubsetRandomSampler([2, 0]).indices(3))
        [0, 2]
    """

    def __iter__(self) -> Iterator[int]:
        return iter(config.random_numbers().permutation(self._rows).tolist())

    def length(self, size: int) -> int:
        return (
            len(self._rows) if self.num_samples is None else min(len(self._rows), self.num_samples)
        )


class WeightedRandomSampler(Sampler):
    """Rows drawn with probabilities proportional to weights
    (`mindspore.dataset.WeightedRandomSampler`).

    Examples:
        >>> from duograph import dataset
        >>> sorted(dataset.WeightedRandomSampler([0, 1, 0]).indices(3))
        [1, 1, 1]
    """

    def __init__(
        self, weights: Sequence[float], num_samples: int | None = None, replacement: bool = True
    ) -> None:
        super().__init__(num_samples)
        self.weights = np.asarray(weights, np.float64)
        self.replacement = replacement

    def __iter__(self) -> Iterator[int]:
        n = self.num_samples or self.dataset_size
        p = self.weights / self.weights.sum()
        return iter(config.random_numbers().choice(len(p), n, self.replacement, p).tolist())

    def length(self, size: int) -> int:
        return self.num_samples or size


class DistributedSampler(Sampler):
    """Every `num_shards`-th row, from `shard_id` (`mindspore.dataset.DistributedSampler`).

    All shards have the same length; the first rows are repeated where rows are missing.

    Raises:
        ValueError: `shard_id` is not in [0, num_shards).

    Examples:
        >>> from duograph import dataset
        >>> sorted(dataset.DistributedSampler(2, 1, shuffle=False).indices(3))
        [0, 1]
    """

    def __init__(
        self, num_shards: int, shard_id: int, shuffle: bool = True, num_samples: int | None = None
    ) -> None:
        super().__init__(num_samples)
        if num_shards < 1 or not 0 <= shard_id < num_shards:
            raise ArgumentValueError(
                f"DistributedSampler: got shard_id={shard_id} of num_shards={num_shards}; "
                f"wanted 0 to {num_shards - 1}"
            )
        self.num_shards, self.shard_id, self.shuffle = num_shards, shard_id, shuffle

    def __iter__(self) -> Iterator[int]:
        n = self.dataset_size
        order = config.random_numbers().permutation(n) if self.shuffle else np.arange(n)
        each = -(-n // self.num_shards)
        return iter([int(order[(self.shard_id + i * self.num_shards) % n]) for i in range(each)])

    def length(self, size: int) -> int:
        each = -(-size // self.num_shards)
        return each if self.num_samples is None else min(each, self.num_samples)


def as_sampler(value: Any) -> Any:
    """Return a sampler: `value` itself, or a SubsetSampler of a list of row numbers."""
    if value is None or isinstance(value, Sampler) or hasattr(value, "indices"):
        return value
    if hasattr(value, "__iter__"):
        return (
            SubsetSampler(list(value))
            if isinstance(value, (list, tuple, range))
            else _IterableSampler(value)
        )
    raise ArgumentValueError(
        f"sampler: got {type(value).__name__}; wanted a Sampler or a list of ints"
    )


class _IterableSampler(Sampler):
    """A dataset sampler that takes its row numbers from any iterable."""

    def __init__(self, rows: Iterable[int]) -> None:
        super().__init__()
        self._rows = rows

    def __iter__(self) -> Iterator[int]:
        return iter(self._rows)
