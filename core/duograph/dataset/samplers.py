"""Samplers, which choose the rows of a dataset source that a pass reads, and their order.

Sources call `as_sampler` and `Sampler.indices`. A sampler sees only row numbers, never rows;
`PKSampler` is also given the labels by the source.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import numpy as np

from ..call_errors import explain_methods
from ..errors import ArgumentError, ArgumentValueError, SampleRangeError
from . import config
from .rows import DatasetError

__all__ = [
    "BuiltinSampler", "DistributedSampler", "IterSampler", "PKSampler", "RandomSampler", "Sampler",
    "SequentialSampler", "Shuffle", "SubsetRandomSampler", "SubsetSampler",
    "WeightedRandomSampler", "as_sampler",
]  # fmt: skip


class Shuffle(str, enum.Enum):
    """How sources that read files shuffle their rows (`mindspore.dataset.Shuffle`).

    GLOBAL shuffles files and rows, FILES only the order of the files, INFILE only the rows within
    each file. PARTIAL and ADAPTIVE shuffle like GLOBAL, PARTIAL in groups of a million rows.
    """

    FALSE = "false"
    ADAPTIVE = "adaptive"
    GLOBAL = "global"
    PARTIAL = "partial"
    FILES = "files"
    INFILE = "infile"


def _count(owner: str, name: str, value: object, low: int) -> int | None:
    """Return `value` if it is None or an int of at least `low`; raise otherwise."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise ArgumentError(f"{owner}: got {name}={value!r}; wanted an int")
    if value < low:
        raise ArgumentValueError(f"{owner}: got {name}={value}; wanted {low} or more")
    return value


def _flag(owner: str, name: str, value: object) -> bool:
    """Return `value` if it is a bool; raise otherwise."""
    if not isinstance(value, bool):
        raise ArgumentError(f"{owner}: got {name}={value!r}; wanted True or False")
    return value


class Sampler:
    """Base class of samplers, which choose the rows of a dataset (`mindspore.dataset.Sampler`).

    A subclass implements `__iter__`, which yields row numbers; the attribute `dataset_size` is set
    before each call of it.

    Examples:
        >>> from duograph import dataset
        >>> class Even(dataset.Sampler):
        ...     def __iter__(self):
        ...         return iter(range(0, self.dataset_size, 2))
        >>> data = dataset.NumpySlicesDataset([5, 6, 7], ["x"], sampler=Even())
        >>> [int(row["x"]) for row in data.create_dict_iterator(output_numpy=True)]
        [5, 7]
    """

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        explain_methods(cls, "__init__")

    def __init__(self, num_samples: int | None = None) -> None:
        self.dataset_size = 0
        self.num_samples = _count(type(self).__name__, "num_samples", num_samples, 0)
        self.child_sampler: Sampler | None = None

    def __iter__(self) -> Iterator[int]:
        raise NotImplementedError(f"{type(self).__name__}: has no __iter__")

    def add_child(self, sampler: Sampler | Iterable[int] | None) -> None:
        """Add another sampler (the child), which chooses the rows among which this sampler chooses.

        None removes the child.

        Raises:
            RuntimeError: there is a child already.
        """
        if self.get_child() is not None and sampler is not None:
            raise DatasetError(f"{type(self).__name__}: has a child sampler already")
        self.child_sampler = as_sampler(sampler)

    def get_child(self) -> Sampler | None:
        """Return the child sampler, or None."""
        return getattr(self, "child_sampler", None)

    def get_num_samples(self) -> int | None:
        """Return the largest number of rows in a pass, or None if it is not limited."""
        return getattr(self, "num_samples", None)

    def is_shuffled(self) -> bool:
        """Return whether the order of the rows is random."""
        child = self.get_child()
        return child is not None and child.is_shuffled()

    def is_sharded(self) -> bool:
        """Return whether the sampler chooses one of several shards."""
        child = self.get_child()
        return child is not None and child.is_sharded()

    def indices(self, size: int, labels: Sequence[object] | None = None) -> list[int]:
        """Return the row numbers that the sampler chooses in one pass over `size` rows.

        Args:
            size: number of rows.
            labels: the label of each row, which only `PKSampler` reads.

        Raises:
            RuntimeError: a row number is outside the dataset.
        """
        child = self.get_child()
        below = None if child is None else child.indices(size, labels)
        count = size if below is None else len(below)
        self.dataset_size = count
        self._labels = labels
        found = [int(i) for i in self]
        limit = self.get_num_samples()
        found = found if not limit else found[:limit]
        for i in found:
            if not 0 <= i < count:
                raise SampleRangeError(
                    f"{type(self).__name__}: chose row {i} of {count}; wanted 0 to {count - 1}"
                )
        return found if below is None else [below[i] for i in found]

    def length(self, size: int, labels: Sequence[object] | None = None) -> int:
        """Return the number of rows that the sampler chooses in one pass over `size` rows.

        `labels` are those of the rows, which only `PKSampler` reads.

        Raises:
            DatasetError: the sampler or its child is a `PKSampler`, and there are no labels.
        """
        child = self.get_child()
        count = self._length(size if child is None else child.length(size, labels), labels)
        limit = self.get_num_samples()
        return min(count, limit) if limit else count

    def _length(self, size: int, labels: Sequence[object] | None) -> int:
        """Return how many of `size` rows the sampler chooses, before `num_samples` limits it.

        `labels` are those of the rows, which only `PKSampler` reads.
        """
        self.dataset_size, self._labels = size, labels
        return sum(1 for _ in self)


class BuiltinSampler(Sampler):
    """Base class of the samplers of the package (`mindspore.dataset.BuiltinSampler`)."""


class SequentialSampler(BuiltinSampler):
    """Chooses the rows in order, from `start_index` (`mindspore.dataset.SequentialSampler`).

    Raises:
        ValueError: an argument is negative.
        RuntimeError: when rows are chosen: the dataset has no row with the number `start_index`.

    Examples:
        >>> from duograph import dataset
        >>> sorted(dataset.SequentialSampler(1, 2).indices(3))
        [1, 2]
    """

    def __init__(self, start_index: int | None = None, num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        self.start_index = _count("SequentialSampler", "start_index", start_index, 0) or 0

    def __iter__(self) -> Iterator[int]:
        if self.start_index and self.start_index >= self.dataset_size:
            raise SampleRangeError(
                f"SequentialSampler: got start_index={self.start_index} for {self.dataset_size} "
                "rows; wanted less"
            )
        return iter(range(self.start_index, self.dataset_size))

    def _length(self, size: int, labels: Sequence[object] | None) -> int:
        return max(size - self.start_index, 0)


class RandomSampler(BuiltinSampler):
    """Chooses rows in random order (`mindspore.dataset.RandomSampler`).

    Args:
        replacement: whether a row may be chosen several times.
        num_samples: number of rows in a pass; by default all.
        shuffle: `Shuffle.GLOBAL`, or PARTIAL, which shuffles in groups of a million rows.

    Raises:
        ValueError: `shuffle` is another member of Shuffle.

    Examples:
        >>> from duograph import dataset
        >>> sorted(dataset.RandomSampler().indices(3))
        [0, 1, 2]
    """

    _GROUP = 1_000_000

    def __init__(
        self,
        replacement: bool = False,
        num_samples: int | None = None,
        shuffle: Shuffle = Shuffle.GLOBAL,
    ) -> None:
        super().__init__(num_samples)
        self.replacement = _flag("RandomSampler", "replacement", replacement)
        if shuffle not in (Shuffle.GLOBAL, Shuffle.PARTIAL, Shuffle.ADAPTIVE):
            raise ArgumentValueError(
                f"RandomSampler: got shuffle={shuffle!r}; wanted Shuffle.GLOBAL, PARTIAL or "
                "ADAPTIVE"
            )
        self.shuffle = shuffle

    def __iter__(self) -> Iterator[int]:
        random, size = config.random_numbers(), self.dataset_size
        if self.replacement:
            return iter(random.integers(0, size, self.num_samples or size).tolist())
        if self.shuffle == Shuffle.PARTIAL and size > self._GROUP:
            starts = random.permutation(np.arange(0, size, self._GROUP))
            return (
                i for s in starts for i in random.permutation(range(s, min(s + self._GROUP, size)))
            )
        return iter(random.permutation(size).tolist())

    def is_shuffled(self) -> bool:
        return True

    def _length(self, size: int, labels: Sequence[object] | None) -> int:
        return self.num_samples or size if self.replacement else size


class SubsetSampler(BuiltinSampler):
    """Chooses the rows with the given numbers, in this order (`mindspore.dataset.SubsetSampler`).

    Raises:
        TypeError: a number is no int.

    Examples:
        >>> from duograph import dataset
        >>> sorted(dataset.SubsetSampler([2, 0]).indices(3))
        [0, 2]
    """

    def __init__(self, indices: Sequence[int] | int, num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        several = indices if isinstance(indices, Iterable) else [indices]
        self._rows: list[int] = []
        for i in several:
            if isinstance(i, bool) or not isinstance(i, (int, np.integer)):
                raise ArgumentError(f"{type(self).__name__}: got {i!r} in indices; wanted ints")
            self._rows.append(int(i))

    def __iter__(self) -> Iterator[int]:
        return iter(self._rows)

    def _length(self, size: int, labels: Sequence[object] | None) -> int:
        return len(self._rows)


class SubsetRandomSampler(SubsetSampler):
    """Chooses the rows with the given numbers, in random order

    Examples:
        >>> from duograph import dataset
        >>> sorted(dataset.SubsetRandomSampler([2, 0]).indices(3))
        [0, 2]
    """

    def __iter__(self) -> Iterator[int]:
        return iter(config.random_numbers().permutation(self._rows).tolist())

    def is_shuffled(self) -> bool:
        return True


class WeightedRandomSampler(BuiltinSampler):
    """Chooses rows at random with probabilities proportional to weights
    (`mindspore.dataset.WeightedRandomSampler`).

    Args:
        weights: one non-negative number for each of the first rows, not all 0; further rows are
            never chosen.
        num_samples: number of rows in a pass; by default that of the dataset.
        replacement: whether a row may be chosen several times.

    Raises:
        TypeError: a weight is no number.
        ValueError: there are no weights, one is negative, or all are 0.
        RuntimeError: when rows are chosen: there are more weights than rows, or fewer rows than
            requested.

    Examples:
        >>> from duograph import dataset
        >>> sorted(dataset.WeightedRandomSampler([0, 1, 0]).indices(3))
        [1, 1, 1]
    """

    def __init__(
        self, weights: Sequence[float], num_samples: int | None = None, replacement: bool = True
    ) -> None:
        super().__init__(num_samples)
        several = weights if isinstance(weights, Iterable) else [weights]
        found = list(several)
        for w in found:
            if isinstance(w, bool) or not isinstance(w, (int, float, np.number)):
                raise ArgumentError(f"WeightedRandomSampler: got {w!r} in weights; wanted numbers")
        self.weights = np.asarray(found, np.float64)
        if not found or not (self.weights >= 0).all() or not self.weights.any():
            raise ArgumentValueError(
                f"WeightedRandomSampler: got weights={found}; wanted numbers of 0 or more, not all "
                "0"
            )
        self.replacement = _flag("WeightedRandomSampler", "replacement", replacement)

    def __iter__(self) -> Iterator[int]:
        n = self.num_samples or self.dataset_size
        if len(self.weights) > self.dataset_size:
            raise SampleRangeError(
                f"WeightedRandomSampler: got {len(self.weights)} weights for {self.dataset_size} "
                "rows; wanted one each at most"
            )
        p = self.weights / self.weights.sum()
        random = config.random_numbers()
        if self.replacement:
            return iter(random.choice(len(p), n, True, p).tolist())
        if n > len(p):
            raise SampleRangeError(
                f"WeightedRandomSampler: got {len(p)} weights for {n} rows without replacement; "
                "wanted a weight for each"
            )
        # The order of exponential times with the weights as rates; rows of weight 0 come last.
        with np.errstate(divide="ignore"):
            return iter(np.argsort(random.exponential(size=len(p)) / p)[:n].tolist())

    def is_shuffled(self) -> bool:
        return True

    def _length(self, size: int, labels: Sequence[object] | None) -> int:
        return self.num_samples or size


class DistributedSampler(BuiltinSampler):
    """Chooses every `num_shards`-th row, from `shard_id` (`mindspore.dataset.DistributedSampler`).

    Args:
        num_shards, shard_id: number of shards, and the shard to choose.
        shuffle: shuffle all rows first; the order depends only on the seed and the number of the
            pass, so that it is equal for all shards.
        num_samples: largest number of rows in a pass.
        offset: the shard that reads row 0. With -1, all shards get the same length, by repeating
            the first rows.

    Raises:
        ValueError: `shard_id` is not in [0, num_shards), or `offset` is above `num_shards`.

    Examples:
        >>> from duograph import dataset
        >>> sorted(dataset.DistributedSampler(2, 1, shuffle=False).indices(3))
        [0, 1]
    """

    def __init__(
        self,
        num_shards: int,
        shard_id: int,
        shuffle: bool = True,
        num_samples: int | None = None,
        offset: int = -1,
    ) -> None:
        super().__init__(num_samples)
        for name, value in (("num_shards", num_shards), ("shard_id", shard_id), ("offset", offset)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise ArgumentError(f"DistributedSampler: got {name}={value!r}; wanted an int")
        if num_shards < 1 or not 0 <= shard_id < num_shards:
            raise ArgumentValueError(
                f"DistributedSampler: got shard_id={shard_id} of num_shards={num_shards}; "
                f"wanted 0 to {num_shards - 1}"
            )
        if not -1 <= offset <= num_shards:
            raise ArgumentValueError(
                f"DistributedSampler: got offset={offset}; wanted -1 to num_shards={num_shards}"
            )
        self.num_shards, self.shard_id, self.offset = num_shards, shard_id, offset
        self._passes = 0
        self.shuffle = _flag("DistributedSampler", "shuffle", shuffle)

    def __iter__(self) -> Iterator[int]:
        n = self.dataset_size
        order = np.arange(n)
        if self.shuffle:
            order = config.generator(config.key_of_shards(self._passes)).permutation(n)
        if self.offset == -1:
            each = -(-n // self.num_shards)
            at = [(self.shard_id + i * self.num_shards) % n for i in range(each)]
        else:
            at = list(range((self.shard_id - self.offset) % self.num_shards, n, self.num_shards))
        return iter(order[at].tolist() if at else [])

    def indices(self, size: int, labels: Sequence[object] | None = None) -> list[int]:
        self._passes += 1
        with config.row_random(config.key_of_shards(self._passes), 1):  # for random child samplers
            return super().indices(size, labels)

    def is_shuffled(self) -> bool:
        return self.shuffle or super().is_shuffled()

    def is_sharded(self) -> bool:
        return self.num_shards > 1 or super().is_sharded()

    def _length(self, size: int, labels: Sequence[object] | None) -> int:
        if self.offset == -1:
            return -(-size // self.num_shards)
        return len(range((self.shard_id - self.offset) % self.num_shards, size, self.num_shards))


class PKSampler(BuiltinSampler):
    """Chooses `num_val` rows of each class (`mindspore.dataset.PKSampler`).

    Args:
        num_val: number of rows of each class; rows of smaller classes are repeated.
        num_class: number of classes; must be None, which means all classes.
        shuffle: shuffle the rows of all classes together.
        class_column: name of the column with the label.
        num_samples: largest number of rows in a pass.

    Raises:
        ValueError: `num_val` is below 1.
        NotImplementedError: `num_class` is given.
        RuntimeError: when rows are chosen: the source has no labels.

    Examples:
        >>> from duograph import dataset
        >>> dataset.PKSampler(1).indices(3, [4, 4, 2])[0]
        2
    """

    def __init__(
        self,
        num_val: int,
        num_class: int | None = None,
        shuffle: bool = False,
        class_column: str = "label",
        num_samples: int | None = None,
    ) -> None:
        super().__init__(num_samples)
        if _count("PKSampler", "num_val", num_val, 1) is None:
            raise ArgumentError("PKSampler: got num_val=None; wanted an int")
        if num_class is not None:
            raise NotImplementedError("PKSampler: got num_class; only None, all classes, is taken")
        if not isinstance(class_column, str):
            raise ArgumentError(f"PKSampler: got class_column={class_column!r}; wanted a str")
        self.num_val, self.class_column = num_val, class_column
        self.shuffle = _flag("PKSampler", "shuffle", shuffle)

    def __iter__(self) -> Iterator[int]:
        if self._labels is None:
            raise DatasetError("PKSampler: the source has no labels; wanted one for each row")
        random = config.random_numbers()
        rows: dict[Any, list[int]] = {}
        for i, label in enumerate(self._labels):
            rows.setdefault(np.asarray(label).item(), []).append(i)
        found: list[int] = []
        for label in sorted(rows):
            of_class = rows[label]
            replace = len(of_class) < self.num_val
            found += random.choice(of_class, self.num_val, replace).tolist()
        return iter(random.permutation(found).tolist() if self.shuffle else found)

    def is_shuffled(self) -> bool:
        return True

    def _length(self, size: int, labels: Sequence[object] | None) -> int:
        if labels is None:
            raise DatasetError("PKSampler: the source has no labels; wanted one for each row")
        return self.num_val * len({np.asarray(label).item() for label in labels})


class IterSampler(Sampler):
    """Chooses the row numbers that an iterable yields (`mindspore.dataset.IterSampler`).

    Examples:
        >>> from duograph import dataset
        >>> dataset.IterSampler(range(3, 0, -1)).indices(4)
        [3, 2, 1]
    """

    def __init__(self, sampler: object, num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        if not hasattr(sampler, "__iter__") and not hasattr(sampler, "__getitem__"):
            raise ArgumentError(
                f"sampler: got {type(sampler).__name__}; wanted __iter__ or __getitem__"
            )
        self.sampler = sampler

    def __iter__(self) -> Iterator[int]:
        if hasattr(self.sampler, "__next__"):  # it could be read once: for the size, or for a pass
            self.sampler = list(itertools.islice(cast("Iterator[int]", self.sampler), self._most()))
        return iter(cast("Iterable[int]", self.sampler))

    def _most(self) -> int | None:
        """Return how many row numbers `indices` keeps, or None for all."""
        return self.num_samples or None


def chosen(
    sampler: Sampler | None, size: int, labels: Sequence[object] | None = None
) -> Sequence[int]:
    """Return which of `size` rows a sampler chooses, in ascending order if it shuffles them.

    Without a sampler (None), they are all rows; `labels` are those of the rows.
    """
    if sampler is None:
        return range(size)
    found = sampler.indices(size, labels)
    return sorted(found) if sampler.is_shuffled() else found


def as_sampler(value: object) -> Sampler | None:
    """Return a Sampler for a sampler, a list of row numbers, or another iterable of them.

    None is returned as None.

    Raises:
        ArgumentError: the value is something else.
    """
    if value is None or isinstance(value, Sampler):
        return value
    if isinstance(value, (list, tuple, range)):
        return SubsetSampler(value)
    return IterSampler(value)
