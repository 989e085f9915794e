"""Base classes of dataset sources: rows by number, chosen by a sampler, and rows in a stream.

All sources derive from `Source` or `Stream`, which handle the arguments that sources have in
common: samples, shuffling, samplers, shards, workers and the cache.
"""

from __future__ import annotations

import itertools
import operator
import os
import pathlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias, TypeVar, cast

import numpy as np

from ..errors import ArgumentError, ArgumentValueError
from ..status_line import counted, status_line
from . import config, samplers
from .cache import DatasetCache
from .pipeline import Dataset
from .rows import DAMAGE, Array, DatasetError, Row
from .workers import in_order

__all__ = [
    "AudioBaseDataset", "MappableDataset", "SamplerLike", "Source", "SourceDataset",
    "TextBaseDataset", "UnionBaseDataset", "VisionBaseDataset", "folder_of",
]  # fmt: skip

T = TypeVar("T")
SamplerLike: TypeAlias = "samplers.Sampler | Iterable[int] | None"
Paths: TypeAlias = "str | os.PathLike[str] | Sequence[str | os.PathLike[str]]"  # or patterns


class SourceDataset(Dataset):
    """Base class of the first datasets of pipelines (`mindspore.dataset.SourceDataset`).

    Such a dataset produces rows itself instead of taking them from another dataset.
    """


class MappableDataset(SourceDataset):
    """Base class of sources that read rows by number (`mindspore.dataset.MappableDataset`)."""

    _sampler: samplers.Sampler

    def add_sampler(self, new_sampler: SamplerLike) -> None:
        """Add a sampler, which chooses among the rows that the present sampler chooses.

        Raises:
            TypeError: the argument is not a sampler.
        """
        found = samplers.as_sampler(new_sampler)
        if found is None:
            raise ArgumentError("add_sampler: got None; wanted a sampler")
        found.add_child(self._sampler)
        self._sampler = found

    def use_sampler(self, new_sampler: SamplerLike) -> None:
        """Replace the sampler.

        Raises:
            TypeError: the argument is not a sampler.
        """
        if new_sampler is None:
            raise ArgumentError("use_sampler: got None; wanted a sampler")
        self._sampler = cast("samplers.Sampler", samplers.as_sampler(new_sampler))


class VisionBaseDataset(Dataset):
    """Base class of sources of images (`mindspore.dataset.VisionBaseDataset`)."""


class TextBaseDataset(Dataset):
    """Base class of sources of text (`mindspore.dataset.TextBaseDataset`)."""


class AudioBaseDataset(Dataset):
    """Base class of sources of sound (`mindspore.dataset.AudioBaseDataset`)."""


class UnionBaseDataset(Dataset):
    """Base class of sources of rows of any kind (`mindspore.dataset.UnionBaseDataset`)."""


def checked_counts(
    owner: str, num_samples: int | None, num_shards: int | None, shard_id: int | None
) -> int | None:
    """Check the numbers of samples and shards; return the number of samples, or None for all.

    Raises:
        ArgumentValueError: a value is outside its range, or only one of `num_shards` and `shard_id`
            is given.
    """
    for name, value, low in (
        ("num_samples", num_samples, 0), ("num_shards", num_shards, 1), ("shard_id", shard_id, 0)
    ):  # fmt: skip
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int):
            raise ArgumentError(f"{owner}: got {name}={value!r}; wanted an int")
        if value < low:
            raise ArgumentValueError(f"{owner}: got {name}={value}; wanted {low} or more")
    if (num_shards is None) != (shard_id is None):  # both or neither
        raise ArgumentValueError(f"{owner}: wanted num_shards and shard_id together")
    if num_shards is not None and shard_id is not None and shard_id >= num_shards:
        raise ArgumentValueError(
            f"{owner}: got shard_id={shard_id} of num_shards={num_shards}; "
            f"wanted 0 to {num_shards - 1}"
        )
    return num_samples or None


class Source(MappableDataset):
    """Base class of dataset sources with numbered rows, of which a sampler selects rows.

    A subclass calls `_setup` and implements `_count` and `_row`.
    """

    _processes = False
    _random_by_default = True

    def _setup(
        self,
        sampler: SamplerLike,
        shuffle: bool | samplers.Shuffle | None,
        num_samples: int | None,
        num_shards: int | None,
        shard_id: int | None,
        num_parallel_workers: int | None = None,
        cache: object = None,
    ) -> None:
        """Check the arguments that all sources have; set the sampler, workers and cache."""
        owner = type(self).__name__
        limit = checked_counts(owner, num_samples, num_shards, shard_id)
        given = [n for n, v in (("shuffle", shuffle), ("num_shards", num_shards)) if v is not None]
        if sampler is not None and given:
            raise ArgumentValueError(f"{owner}: got sampler and {given[0]}; wanted one of them")
        if shuffle is not None and not isinstance(shuffle, (bool, samplers.Shuffle)):
            raise ArgumentError(f"{owner}: got shuffle={shuffle!r}; wanted True or False")
        random = self._random_by_default if shuffle is None else shuffle not in (
            False, samplers.Shuffle.FALSE
        )  # fmt: skip
        if sampler is not None:
            found = cast("samplers.Sampler", samplers.as_sampler(sampler))
            if limit is not None:
                found.num_samples = limit
        elif num_shards is not None and shard_id is not None:
            found = samplers.DistributedSampler(num_shards, shard_id, random, limit)
        elif random:
            found = samplers.RandomSampler(num_samples=limit)
        else:
            found = samplers.SequentialSampler(num_samples=limit)
        self._sampler = found
        config.workers(num_parallel_workers)
        self._workers = num_parallel_workers
        if cache is not None and not isinstance(cache, DatasetCache):
            raise ArgumentError(
                f"{owner}: got {type(cache).__name__} for cache; wanted a DatasetCache"
            )
        self._cache = cache

    def _count(self) -> int:
        """Return the number of rows of the source; subclasses implement it."""
        raise NotImplementedError

    def _row(self, index: int) -> Row:
        """Return row number `index`, from 0 to the number of rows - 1; subclasses implement it."""
        raise NotImplementedError

    def _labels(self, column: str) -> Sequence[object] | None:
        """Return the value in `column` of every row; None if the source has no such column."""
        if column not in self._columns:
            return None
        at = self._columns.index(column)
        return [self._row(i)[at] for i in range(self._count())]

    def _labels_for(self, sampler: samplers.Sampler | None) -> Sequence[object] | None:
        """Return the labels of the rows if `sampler` or a child of it is a PKSampler, else None."""
        while sampler is not None:
            if isinstance(sampler, samplers.PKSampler):
                return self._labels(sampler.class_column)
            sampler = sampler.get_child()
        return None

    def _size(self) -> int | None:
        return self._sampler.length(self._count(), self._labels_for(self._sampler))

    def is_shuffled(self) -> bool:
        return bool(self._sampler.is_shuffled())

    def is_sharded(self) -> bool:
        return bool(self._sampler.is_sharded())

    def _generate(self) -> Iterator[Row]:
        order = self._sampler.indices(self._count(), self._labels_for(self._sampler))
        return self._rows_at(order)

    def _rows_at(self, numbers: Sequence[int]) -> Iterator[Row]:
        """Return an iterator over the rows with the given numbers, read by the source's workers."""
        read = self._row if self._cache is None else self._cache.reader(self._row)
        return in_order(read, numbers, config.workers(self._workers), self._processes)

    def picked(self, numbers: Sequence[int]) -> Iterator[Row]:
        return self._rows_at(numbers)

    def _picks_before_shuffling(self) -> bool:
        return True

    def _numbers(self) -> Sequence[int]:
        return samplers.chosen(self._sampler, self._count(), self._labels_for(self._sampler))


def folder_of(owner: str, path: str | os.PathLike[str]) -> pathlib.Path:
    """Return `path` as a pathlib.Path; raise ArgumentValueError if there is no such folder."""
    found = pathlib.Path(os.fspath(path))
    if not found.is_dir():
        raise ArgumentValueError(
            f"{owner}: got dataset_dir={os.fspath(path)!r}; there is no such folder"
        )
    return found


class Stream(SourceDataset):
    """Base class of sources that read files from first to last, such as lines of text.

    A subclass calls `_setup` and implements `_read`, which yields the rows of one file.
    """

    _BUFFER = 10_000  # rows among which the global shuffle draws, if it cannot hold all
    _equal_shards = True
    _passes = 0  # with files in random order

    def _setup(
        self,
        files: Sequence[pathlib.Path],
        shuffle: bool | samplers.Shuffle | None,
        num_samples: int | None,
        num_shards: int | None,
        shard_id: int | None,
        num_parallel_workers: int | None = None,
        cache: object = None,
    ) -> None:
        """Check the arguments that all streams have; set the files, shards, workers and cache."""
        owner = type(self).__name__
        self._limit = checked_counts(owner, num_samples, num_shards, shard_id)
        if shuffle is not None and not isinstance(shuffle, (bool, samplers.Shuffle)):
            raise ArgumentError(f"{owner}: got shuffle={shuffle!r}; wanted a bool or a Shuffle")
        if shuffle in (True, None):
            shuffle = samplers.Shuffle.GLOBAL
        self._shuffle = samplers.Shuffle.FALSE if shuffle is False else samplers.Shuffle(shuffle)
        self._files = list(files)
        self._shards, self._shard = num_shards or 1, shard_id or 0
        config.workers(num_parallel_workers)
        self._workers = num_parallel_workers
        if cache is not None and not isinstance(cache, DatasetCache):
            raise ArgumentError(
                f"{owner}: got {type(cache).__name__} for cache; wanted a DatasetCache"
            )
        self._cache = cache
        self._known: list[int] | None = None
        if not self._equal_shards and self._shards > len(self._files):
            raise ArgumentValueError(
                f"{owner}: got num_shards={num_shards} for {len(self._files)} files; wanted at "
                "most as many shards as files, or shard_equal_rows=True"
            )

    def _read(self, path: pathlib.Path) -> Iterator[object]:
        """Yield the undecoded rows of one file; subclasses implement it."""
        raise NotImplementedError

    def _decode(self, raw: object) -> Row:
        """Convert an item that `_read` yielded to a row; workers call this method.

        An exception of one of the classes in `DAMAGE` is reported as a DatasetError of the file.
        """
        return cast("Row", raw)

    def is_shuffled(self) -> bool:
        return self._shuffle != samplers.Shuffle.FALSE

    def is_sharded(self) -> bool:
        return self._shards > 1

    def _size(self) -> int | None:
        if self._equal_shards:
            count = -(-self._whole_count() // self._shards)
        else:
            count = sum(self._counts()[self._shard :: self._shards])
        return count if self._limit is None else min(count, self._limit)

    def _counts(self) -> list[int]:
        """Return the number of rows of each file; they are counted once."""
        if self._known is None:
            with status_line("counting the rows of files", None, "rows", False) as line:
                self._known = [sum(1 for _ in counted(self._read(p), line)) for p in self._files]
        return self._known

    def _whole_count(self) -> int:
        """Return the number of rows in all files."""
        return sum(self._counts())

    def _raw(self) -> Iterator[tuple[pathlib.Path, object]]:
        """Yield (path of the file, undecoded row) for each row of one pass, in shuffled order."""
        mode = self._shuffle
        random = config.random_numbers() if mode != samplers.Shuffle.FALSE else None
        files = self._own_files()
        if random is not None and mode != samplers.Shuffle.INFILE:
            files = [files[i] for i in self._order_of_files(random, len(files))]
        rows = self._shard_of(files)
        if random is None or mode == samplers.Shuffle.FILES:
            yield from rows
        elif mode == samplers.Shuffle.INFILE:
            for _, of_file in itertools.groupby(rows, key=operator.itemgetter(0)):
                yield from _mixed(of_file, random, self._BUFFER)
        else:
            yield from _mixed(rows, random, self._BUFFER)

    def _own_files(self) -> list[pathlib.Path]:
        """Return the files of which this shard has rows: all of them, or every n-th one.

        A shard has the same files in every pass, so that its number of rows is known. (MindSpore
        shuffles the files of all shards first, and its sizes are then those of other files.)
        """
        return self._files if self._equal_shards else self._files[self._shard :: self._shards]

    def _order_of_files(self, random: np.random.Generator, count: int) -> Array:
        """Return the numbers of `count` files in random order, the same order for all shards."""
        if self._shards > 1:  # other processes read the other shards, with or without a seed
            self._passes += 1
            random = config.generator(config.key_of_shards(self._passes))
        return random.permutation(count)

    def _shard_of(self, files: Sequence[pathlib.Path]) -> Iterator[tuple[pathlib.Path, object]]:
        """Yield (path, undecoded row) for each row of this shard of its files, in order.

        Equal shards are consecutive rows, the last of which repeat the first rows of the files.
        Otherwise a shard has all rows of `files`.
        """
        if not self._equal_shards or self._shards == 1:
            return (row for path in files for row in self._located(path))
        count = self._whole_count()
        each = -(-count // self._shards)
        first = self._shard * each % count if count else 0
        again = (row for _ in range(2) for path in files for row in self._located(path))
        return itertools.islice(again, first, first + each)

    def _located(self, path: pathlib.Path) -> Iterator[tuple[pathlib.Path, object]]:
        """Yield (path, undecoded row) for each row of one file; errors name the path."""
        return ((path, row) for row in self._read(path))

    def _decode_located(self, item: tuple[pathlib.Path, object]) -> Row:
        """Decode the row of one (path, undecoded row) pair that `_raw` yielded."""
        path, raw = item
        try:
            return self._decode(raw)
        except DAMAGE as error:
            raise damaged(type(self).__name__, path, error) from None

    def _generate(self) -> Iterator[Row]:
        return self._decoded(itertools.islice(self._raw(), self._limit))

    def picked(self, numbers: Sequence[int]) -> Iterator[Row]:
        wanted = set(numbers)
        rows = enumerate(
            itertools.islice(self._shard_of(self._own_files()), max(wanted, default=-1) + 1)
        )
        kept = {i: row for i, row in rows if i in wanted}
        return self._decoded(kept[i] for i in numbers)

    def _picks_before_shuffling(self) -> bool:
        return True

    def _decoded(self, rows: Iterator[tuple[pathlib.Path, object]]) -> Iterator[Row]:
        """Return an iterator over the decoded rows of (path, undecoded row) pairs, in order."""
        decode: Callable[[tuple[pathlib.Path, object]], Row] = self._decode_located
        if self._cache is not None:
            decode = self._cache.reader(decode)
        return in_order(decode, rows, config.workers(self._workers), False)


def _mixed(rows: Iterator[T], random: np.random.Generator, size: int) -> Iterator[T]:
    """Yield all rows in random order, as far as a buffer of `size` rows can mix them."""
    buffer: list[T] = []
    for row in rows:
        if len(buffer) < size:
            buffer.append(row)
            continue
        i = int(random.integers(size))
        yield buffer[i]
        buffer[i] = row
    for i in random.permutation(len(buffer)):
        yield buffer[i]


def files_of(owner: str, paths: object) -> list[pathlib.Path]:
    """Return all files that match `paths`: a path, a glob pattern, or a list of paths and patterns.

    Raises:
        ArgumentError: a path is neither a str nor an os.PathLike.
        ArgumentValueError: a path or pattern matches no file, or the list is empty.
    """
    several = paths if isinstance(paths, (list, tuple)) else [paths]
    found: list[pathlib.Path] = []
    for path in several:
        if not isinstance(path, (str, os.PathLike)):
            raise ArgumentError(f"{owner}: got {path!r} in dataset_files; wanted paths")
        text = os.fspath(path)
        if os.path.isfile(text):
            found.append(pathlib.Path(text))
            continue
        root = pathlib.Path(text).anchor or "."
        pattern = text[len(root) :] if root != "." else text
        matches = sorted(p for p in pathlib.Path(root).glob(pattern) if p.is_file())
        if not matches:
            raise ArgumentValueError(f"{owner}: got {text!r}; there is no such file")
        found += matches
    if not found:
        raise ArgumentValueError(f"{owner}: got no files; wanted at least one")
    return found


def damaged(owner: str, path: pathlib.Path, why: object) -> DatasetError:
    """Return the error for a file that violates its format; `why` is the reason."""
    if isinstance(why, (KeyError, RecursionError)):  # whose texts alone say little
        why = repr(why)
    return DatasetError(f"{owner}: {path} is damaged: {why}")
