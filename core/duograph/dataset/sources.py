"""Dataset sources of rows: Python objects, arrays, and files of images."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..dtype import DTypeLike, as_dtype
from ..errors import ArgumentError, ArgumentValueError
from ..option_checks import check_options
from . import samplers
from ._files import read_cifar, read_idx
from .pipeline import Dataset
from .rows import Columns, DatasetError, Row, as_array
from .vision import Decode

SamplerLike: TypeAlias = "samplers.Sampler | Iterable[int] | None"

__all__ = [
    "GeneratorDataset",
    "NumpySlicesDataset",
    "MnistDataset",
    "Cifar10Dataset",
    "ImageFolderDataset",
]


class _Source(Dataset):
    """Base class of dataset sources with numbered rows, of which a sampler selects rows.

    A subclass implements `_count` and `_row`.
    """

    _random_by_default = True

    def _set_sampler(
        self,
        sampler: SamplerLike,
        shuffle: bool | None,
        num_samples: int | None,
        num_shards: int | None,
        shard_id: int | None,
    ) -> None:
        """Set the dataset's sampler from constructor arguments: `sampler`, `shuffle` and others."""
        owner = type(self).__name__
        if num_samples is not None and (isinstance(num_samples, bool) or num_samples < 0):
            raise ArgumentValueError(f"{owner}: got num_samples={num_samples!r}; wanted 0 or more")
        if (num_shards is None) != (shard_id is None):  # both or neither
            raise ArgumentValueError(f"{owner}: wanted num_shards and shard_id together")
        if sampler is not None and shuffle is not None:
            raise ArgumentValueError(f"{owner}: got sampler and shuffle; wanted one of them")
        if sampler is not None and num_shards is not None:
            raise ArgumentValueError(f"{owner}: got sampler and num_shards; wanted one of them")
        random = self._random_by_default if shuffle is None else bool(shuffle)
        limit = num_samples or None
        if sampler is not None:
            found = samplers.as_sampler(sampler)
            if limit is not None:
                found.num_samples = limit
        elif num_shards is not None and shard_id is not None:
            found = samplers.DistributedSampler(num_shards, shard_id, random, limit)
        elif random:
            found = samplers.RandomSampler(num_samples=limit)
        else:
            found = samplers.SequentialSampler(num_samples=limit)
        self._sampler = found

    def _count(self) -> int:
        raise NotImplementedError

    def _row(self, index: int) -> Row:
        raise NotImplementedError

    def _size(self) -> int | None:
        return self._sampler.length(self._count())

    def _generate(self) -> Iterator[Row]:
        for i in self._sampler.indices(self._count()):
            yield self._row(i)

    def rows_in_order(self) -> Iterator[Row]:
        """Return all rows of the dataset source in order, without using the sampler."""
        return (self._row(i) for i in range(self._count()))


class GeneratorDataset(_Source):
    """Rows from any Python source (`mindspore.dataset.GeneratorDataset`).

    Args:
        source: object with `__getitem__` and `__len__`, an iterable, or a function that returns an
            iterator; a row is a tuple of arrays or numbers.
        column_names: name, or list of names.
        column_types: list of dtypes to check the rows against.
        num_samples: largest number of rows in a pass.
        shuffle: by default, sources with numbered rows are shuffled and others are not.
        sampler: Sampler, or list of row numbers.
        num_shards, shard_id: read one of several equal parts.

    Raises:
        TypeError: the source is not iterable.
        ValueError: no column names, or shuffling or sampling of a source without numbered rows.
        RuntimeError: while reading: a row with another number of columns.

    Examples:
        >>> from duograph import dataset
        >>> data = dataset.GeneratorDataset(lambda: ((i, i * i) for i in range(3)), ["x", "y"])
        >>> [(int(x), int(y)) for x, y in data]
        [(0, 0), (1, 1), (2, 4)]
    """

    def __init__(
        self,
        source: Any,
        column_names: Columns = None,
        column_types: Sequence[DTypeLike] | None = None,
        schema: object = None,
        num_samples: int | None = None,
        num_parallel_workers: int = 1,
        shuffle: bool | None = None,
        sampler: SamplerLike = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        python_multiprocessing: bool = True,
        max_rowsize: object = None,
        batch_sampler: object = None,
        collate_fn: Callable[..., Any] | None = None,
    ) -> None:
        check_options(
            "dataset.GeneratorDataset",
            schema=schema,
            num_parallel_workers=num_parallel_workers,
            python_multiprocessing=python_multiprocessing,
            max_rowsize=max_rowsize,
            batch_sampler=batch_sampler,
            collate_fn=collate_fn,
        )
        if column_names is None:
            raise ArgumentValueError(
                "GeneratorDataset: got no column_names; wanted a name for each column"
            )
        names = [column_names] if isinstance(column_names, str) else list(column_names)
        super().__init__(names)
        self.source = source
        self._types = None if column_types is None else [as_dtype(t) for t in column_types]
        self._numbered = hasattr(source, "__getitem__") and hasattr(source, "__len__")
        if not self._numbered:
            if (
                not callable(source)
                and not hasattr(source, "__iter__")
                and not hasattr(source, "__next__")
            ):
                raise ArgumentError(
                    f"GeneratorDataset: got {type(source).__name__}; wanted something to iterate "
                    "over"
                )
            if shuffle or sampler is not None or num_shards is not None:
                raise ArgumentValueError(
                    "GeneratorDataset: got shuffle, sampler or shards for a source without "
                    "numbered rows; "
                    "wanted __getitem__ and __len__, or .shuffle()"
                )
            self._limit = num_samples or None
        else:
            self._set_sampler(sampler, shuffle, num_samples, num_shards, shard_id)

    def _size(self) -> int | None:
        if self._numbered:
            return super()._size()
        if hasattr(self.source, "__len__"):
            n = len(self.source)
            return n if self._limit is None else min(n, self._limit)
        return None

    def _count(self) -> int:
        return len(self.source)

    def _row(self, index: int) -> Row:
        return self._checked(self.source[index])

    def _generate(self) -> Iterator[Row]:
        if self._numbered:
            yield from super()._generate()
            return
        rows = self.source() if callable(self.source) else iter(self.source)
        for done, row in enumerate(rows):
            if self._limit is not None and done >= self._limit:
                return
            yield self._checked(row)

    def rows_in_order(self) -> Iterator[Row]:
        return super().rows_in_order() if self._numbered else self.rows()

    def _checked(self, row: object) -> Row:
        """Convert a dataset source's row to arrays; check number and dtypes of the columns."""
        items = row if isinstance(row, tuple) else (row,)
        if len(items) != len(self._columns):
            raise DatasetError(
                f"GeneratorDataset: the source gave a row of {len(items)} columns; "
                f"wanted {len(self._columns)}: {', '.join(self._columns)}"
            )
        arrays = tuple(as_array(x) for x in items)
        if self._types is not None:
            for name, a, t in zip(self._columns, arrays, self._types, strict=True):
                if a.dtype != t.np:
                    raise DatasetError(
                        f"GeneratorDataset: column {name!r} has dtype {a.dtype}; wanted {t.name}"
                    )
        return arrays


class NumpySlicesDataset(_Source):
    """Rows that are slices of arrays along their first axis
    (`mindspore.dataset.NumpySlicesDataset`).

    Args:
        data: list or array (one column), tuple of them, or dictionary of columns.
        column_names: names; by default ``column_0``, ... or the keys.
        num_samples, shuffle, sampler, num_shards, shard_id: as for `GeneratorDataset`; shuffled by
            default.

    Raises:
        ValueError: the columns differ in length, or there is not one name for each.

    Examples:
        >>> from duograph import dataset
        >>> data = dataset.NumpySlicesDataset({"a": [1, 2], "b": [3, 4]}, shuffle=False)
        >>> data.get_col_names(), data.get_dataset_size()
        (['a', 'b'], 2)
    """

    def __init__(
        self,
        data: Any,
        column_names: Columns = None,
        num_samples: int | None = None,
        num_parallel_workers: int = 1,
        shuffle: bool | None = None,
        sampler: SamplerLike = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
    ) -> None:
        check_options("dataset.NumpySlicesDataset", num_parallel_workers=num_parallel_workers)
        if isinstance(data, dict):
            found, names = [as_array(v) for v in data.values()], list(data)
        elif isinstance(data, tuple):
            found = [as_array(v) for v in data]
            names = [f"column_{i}" for i in range(len(found))]
        else:
            found, names = [as_array(data)], ["column_0"]
        if column_names is not None:
            names = [column_names] if isinstance(column_names, str) else list(column_names)
        if len(names) != len(found):
            raise ArgumentValueError(
                f"NumpySlicesDataset: got {len(found)} columns and {len(names)} names; wanted one "
                "each"
            )
        lengths = {len(a) for a in found}
        if len(lengths) != 1:
            raise ArgumentValueError(
                f"NumpySlicesDataset: got columns of the lengths {sorted(lengths)}; wanted one "
                "length"
            )
        super().__init__(names)
        self._arrays = found
        self._set_sampler(sampler, shuffle, num_samples, num_shards, shard_id)

    def _count(self) -> int:
        return len(self._arrays[0])

    def _row(self, index: int) -> Row:
        return tuple(np.asarray(a[index]) for a in self._arrays)

    def row_groups(self, size: int, drop: bool) -> Iterator[Row]:
        """Yield batches of dataset rows, each gathered from the source arrays in one step."""
        order = self._sampler.indices(self._count())
        end = len(order) - len(order) % size if drop else len(order)
        for first in range(0, end, size):
            picked = np.asarray(order[first : first + size], np.int64)
            yield tuple(a[picked] for a in self._arrays)


def _folder(owner: str, path: str | os.PathLike[str]) -> pathlib.Path:
    """Return `path` as a pathlib.Path; raise ArgumentValueError if the folder does not exist."""
    found = pathlib.Path(os.fspath(path))
    if not found.is_dir():
        raise ArgumentValueError(
            f"{owner}: got dataset_dir={os.fspath(path)!r}; there is no such folder"
        )
    return found


class MnistDataset(_Source):
    """Images of handwritten digits from IDX files (`mindspore.dataset.MnistDataset`).

    Columns: image, uint8 (28, 28, 1); label, uint32 ().

    Args:
        dataset_dir: folder with ``train-images-idx3-ubyte`` and the other three files, plain or
            ``.gz``.
        usage: ``"train"``, ``"test"`` or ``"all"`` (the default).
        num_samples, shuffle, sampler, num_shards, shard_id: as for `GeneratorDataset`; shuffled by
            default.

    Raises:
        ValueError: the folder does not exist, or another usage.
        RuntimeError: the folder has no such files, or damaged ones.
    """

    def __init__(
        self,
        dataset_dir: str | os.PathLike[str],
        usage: str | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | None = None,
        sampler: SamplerLike = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: object = None,
    ) -> None:
        check_options(
            "dataset.MnistDataset", num_parallel_workers=num_parallel_workers, cache=cache
        )
        super().__init__(["image", "label"])
        folder = _folder("MnistDataset", dataset_dir)
        if usage not in (None, "train", "test", "all"):
            raise ArgumentValueError(
                f"MnistDataset: got usage={usage!r}; wanted 'train', 'test' or 'all'"
            )
        parts = {"train": ["train"], "test": ["t10k"]}.get(usage or "all", ["train", "t10k"])
        images, labels = [], []
        for part in parts:
            pair, files = [], []
            for stem, ndim in ((f"{part}-images-idx3-ubyte", 3), (f"{part}-labels-idx1-ubyte", 1)):
                names = (stem, stem + ".gz", stem.replace("-idx", ".idx"))
                path = next((folder / n for n in names if (folder / n).is_file()), None)
                if path is not None:
                    pair.append(read_idx(path, ndim))
                    files.append(path.name)
            if len(pair) == 2:
                if len(pair[0]) != len(pair[1]):
                    raise DatasetError(
                        f"MnistDataset: {folder} has {len(pair[0])} images in {files[0]} and "
                        f"{len(pair[1])} labels in {files[1]}; wanted as many"
                    )
                images.append(pair[0])
                labels.append(pair[1])
        if not images or (usage in ("train", "test") and not images):
            raise DatasetError(f"MnistDataset: {folder} has no files of usage {usage or 'all'!r}")
        if len({i.shape[1:] for i in images}) > 1:
            raise DatasetError(
                f"MnistDataset: {folder} has images of the sizes {[i.shape[1:] for i in images]}; "
                "wanted one size"
            )
        self._images = np.concatenate(images)[..., None]
        self._labels = np.concatenate(labels).astype(np.uint32)
        self._set_sampler(sampler, shuffle, num_samples, num_shards, shard_id)

    def _count(self) -> int:
        return len(self._labels)

    def _row(self, index: int) -> Row:
        return self._images[index], np.asarray(self._labels[index])

    def num_classes(self) -> int | None:
        return 10


class Cifar10Dataset(_Source):
    """Small colour images of CIFAR-10, binary or Python files (`mindspore.dataset.Cifar10Dataset`).

    Columns: image, uint8 (32, 32, 3); label, uint32 ().

    Args:
        dataset_dir: folder with ``data_batch_1.bin`` ... ``test_batch.bin``, or the same without
            ``.bin``.
        usage: ``"train"``, ``"test"`` or ``"all"`` (the default).
        num_samples, shuffle, sampler, num_shards, shard_id: as for `GeneratorDataset`; shuffled by
            default.

    Raises:
        ValueError: the folder does not exist, or another usage.
        RuntimeError: the folder has no such files, or damaged ones.
    """

    def __init__(
        self,
        dataset_dir: str | os.PathLike[str],
        usage: str | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | None = None,
        sampler: SamplerLike = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: object = None,
    ) -> None:
        check_options(
            "dataset.Cifar10Dataset", num_parallel_workers=num_parallel_workers, cache=cache
        )
        super().__init__(["image", "label"])
        folder = _folder("Cifar10Dataset", dataset_dir)
        if usage not in (None, "train", "test", "all"):
            raise ArgumentValueError(
                f"Cifar10Dataset: got usage={usage!r}; wanted 'train', 'test' or 'all'"
            )
        train = [f"data_batch_{i}" for i in range(1, 6)]
        stems = {"train": train, "test": ["test_batch"]}.get(usage or "all", [*train, "test_batch"])
        images, labels = [], []
        for stem in stems:
            found = read_cifar(folder, stem)
            if found is not None:
                images.append(found[0])
                labels.append(found[1])
        if not images:
            raise DatasetError(f"Cifar10Dataset: {folder} has no files of usage {usage or 'all'!r}")
        self._images = np.concatenate(images).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        self._labels = np.concatenate(labels).astype(np.uint32)
        self._set_sampler(sampler, shuffle, num_samples, num_shards, shard_id)

    def _count(self) -> int:
        return len(self._labels)

    def _row(self, index: int) -> Row:
        return np.ascontiguousarray(self._images[index]), np.asarray(self._labels[index])

    def num_classes(self) -> int | None:
        return 10


class ImageFolderDataset(_Source):
    """Dataset of images in one folder per class (`mindspore.dataset.ImageFolderDataset`).

    Columns: image, uint8: the bytes of the file, or (H, W, 3) with `decode`, which needs Pillow;
        label, int32 ().

    Args:
        dataset_dir: folder of folders.
        extensions: suffixes of the files; by default those of common image formats.
        class_indexing: dictionary from folder names to labels; by default numbered in order.
        decode: whether to decode the files.
        decrypt: function from the path of an encrypted file to its content.
        num_samples, shuffle, sampler, num_shards, shard_id: as for `GeneratorDataset`; shuffled by
            default.

    Raises:
        ValueError: the folder does not exist.
        RuntimeError: the folder has no images; while reading with `decode`, a file is no image.
    """

    def __init__(
        self,
        dataset_dir: str | os.PathLike[str],
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | None = None,
        sampler: SamplerLike = None,
        extensions: Sequence[str] | None = None,
        class_indexing: dict[str, int] | None = None,
        decode: bool = False,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: object = None,
        decrypt: Callable[[str], bytes] | None = None,
    ) -> None:
        check_options(
            "dataset.ImageFolderDataset", num_parallel_workers=num_parallel_workers, cache=cache
        )
        super().__init__(["image", "label"])
        folder = _folder("ImageFolderDataset", dataset_dir)
        endings = tuple(e.lower() for e in extensions or (".jpg", ".jpeg", ".png", ".ppm", ".bmp"))
        classes = sorted(p.name for p in folder.iterdir() if p.is_dir())
        self.class_indexing = class_indexing or {c: i for i, c in enumerate(classes)}
        self._files = [
            (path, self.class_indexing[c])
            for c in classes if c in self.class_indexing
            for path in sorted((folder / c).iterdir())
            if path.name.lower().endswith(endings) and path.is_file()
        ]  # fmt: skip
        if not self._files:
            raise DatasetError(f"ImageFolderDataset: {folder} has no images in folders of classes")
        self.decode, self.decrypt = decode, decrypt
        self._set_sampler(sampler, shuffle, num_samples, num_shards, shard_id)

    def _count(self) -> int:
        return len(self._files)

    def _row(self, index: int) -> Row:
        path, label = self._files[index]
        if self.decrypt is None:
            raw = np.fromfile(path, np.uint8)
        else:
            raw = np.frombuffer(self.decrypt(str(path)), np.uint8)
        if self.decode:
            try:
                raw = Decode()(raw)
            except DatasetError as error:
                raise DatasetError(f"ImageFolderDataset: {path}: {error}") from None
        return raw, np.array(label, np.int32)

    def num_classes(self) -> int | None:
        return len(self.class_indexing)

    def get_class_indexing(self) -> dict[str, int]:
        """Return a dictionary from class folder names to integer labels."""
        return dict(self.class_indexing)
