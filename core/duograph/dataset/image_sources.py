"""Dataset sources of images in the files of well-known datasets: MNIST, CIFAR, folders.

For users. Files may be malicious: `_files` checks their content, and every defect raises
DatasetError with the path.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from ..errors import ArgumentValueError
from . import config
from ._files import read_cifar, read_idx
from .rows import Array, DatasetError, Row, Value
from .source import SamplerLike, Source, VisionBaseDataset, folder_of
from .vision.codecs import decoded

__all__ = [
    "Cifar100Dataset", "Cifar10Dataset", "EMnistDataset", "FakeImageDataset",
    "FashionMnistDataset", "ImageFolderDataset", "KMnistDataset", "MnistDataset", "QMnistDataset",
]  # fmt: skip

PathLike = str | os.PathLike[str]


class _ImageSource(Source, VisionBaseDataset):
    """Base class of the dataset sources whose rows have an image."""


def checked_usage(owner: str, usage: str | None, known: Sequence[str], default: str) -> str:
    """Return `usage` if it is one of `known`, or the default if it is None.

    Raises:
        ArgumentValueError: `usage` is another string; `owner` is the source, for the message.
    """
    if usage is None:
        return default
    if usage not in known:
        raise ArgumentValueError(f"{owner}: got usage={usage!r}; wanted one of {list(known)}")
    return usage


# ---- arrays in memory ---------------------------------------------------------------------------


class _ArraySource(_ImageSource):
    """Base class of sources that hold all images and labels in two arrays."""

    _images: Array  # (n, h, w, c)
    _labels_: Array  # (n,) or (n, k): one number for each column after the first
    _classes = 10

    def _count(self) -> int:
        return len(self._images)

    def _row(self, index: int) -> Row:
        label = np.atleast_1d(self._labels_[index])
        return (np.ascontiguousarray(self._images[index]), *[np.asarray(n) for n in label])

    def _labels(self, column: str) -> Sequence[object] | None:
        if column not in self._columns[1:]:
            return None
        labels = self._labels_.reshape(len(self._images), -1)
        return labels[:, self._columns.index(column) - 1].tolist()

    def num_classes(self) -> int | None:
        return self._classes


def _idx_pair(owner: str, folder: pathlib.Path, stems: tuple[str, str]) -> list[Array]:
    """Read an IDX file of images and one of labels; return [images, labels].

    `stems` are the names of the files. A file may also have the ending ``.gz``, or ``.idx`` in its
    name in place of ``-idx``. The list is empty unless both files exist.

    Raises:
        DatasetError: a file is damaged, or there are not as many labels as images.
    """
    pair, files = [], []
    for stem, ndim in zip(stems, (3, 1)):
        names = (stem, stem + ".gz", stem.replace("-idx", ".idx"))
        path = next((folder / n for n in names if (folder / n).is_file()), None)
        if path is not None:
            pair.append(read_idx(path, ndim, owner))
            files.append(path.name)
    if len(pair) < 2:
        return []
    if len(pair[0]) != len(pair[1]):
        raise DatasetError(
            f"{owner}: {folder} has {len(pair[0])} images in {files[0]} and "
            f"{len(pair[1])} labels in {files[1]}; wanted as many"
        )
    return pair


class _IdxSource(_ArraySource):
    """Base class of MNIST and similar datasets.

    Each part, such as "train", is a pair of IDX files: one of images and one of labels.
    """

    def _read(self, dataset_dir: PathLike, stems: Sequence[tuple[str, str]], usage: str) -> None:
        """Read those parts that exist into the source's arrays.

        Raises DatasetError if no part exists, a file is damaged, or the images differ in size.

        Args:
            dataset_dir: folder of the files.
            stems: names of the file of images and of the file of labels, for each part.
            usage: the user's choice of parts, for the message.
        """
        owner = type(self).__name__
        folder = folder_of(owner, dataset_dir)
        found = [p for p in (_idx_pair(owner, folder, s) for s in stems) if p]
        if not found:
            raise DatasetError(f"{owner}: {folder} has no files of usage {usage!r}")
        if len({pair[0].shape[1:] for pair in found}) > 1:
            raise DatasetError(
                f"{owner}: {folder} has images of the sizes "
                f"{[pair[0].shape[1:] for pair in found]}; wanted one size"
            )
        self._images = np.concatenate([pair[0] for pair in found])[..., None]
        self._labels_ = np.concatenate([pair[1] for pair in found]).astype(np.uint32)


def _stems(prefixes: Sequence[str]) -> list[tuple[str, str]]:
    """Return, for each prefix, the names of the IDX file of images and of the one of labels."""
    return [(f"{p}-images-idx3-ubyte", f"{p}-labels-idx1-ubyte") for p in prefixes]


class MnistDataset(_IdxSource):
    """Images of handwritten digits from IDX files (`mindspore.dataset.MnistDataset`).

    Columns: image, uint8 (28, 28, 1); label, uint32 ().

    Args:
        dataset_dir: folder with ``train-images-idx3-ubyte`` and the other three files, plain or
            ``.gz``.
        usage: ``"train"``, ``"test"`` or ``"all"`` (the default).
        num_samples, shuffle, sampler, num_shards, shard_id: see `GeneratorDataset`; shuffled by
            default.
        cache: a DatasetCache that keeps the rows in memory, or None.

    Raises:
        ValueError: the folder does not exist, or `usage` is unknown.
        RuntimeError: the folder has no such files, or a file is damaged.
    """

    def __init__(
        self,
        dataset_dir: PathLike,
        usage: str | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | None = None,
        sampler: SamplerLike = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: object = None,
    ) -> None:
        super().__init__(["image", "label"])
        usage = checked_usage(type(self).__name__, usage, ("train", "test", "all"), "all")
        parts = {"train": ["train"], "test": ["t10k"]}.get(usage, ["train", "t10k"])
        self._read(dataset_dir, _stems(parts), usage)
        self._setup(
            sampler, shuffle, num_samples, num_shards, shard_id, num_parallel_workers, cache
        )


class FashionMnistDataset(MnistDataset):
    """Images of clothes, in the files of MNIST (`mindspore.dataset.FashionMnistDataset`).

    Columns and arguments are those of `MnistDataset`.
    """


class KMnistDataset(MnistDataset):
    """Images of cursive Japanese characters, in the files of MNIST
    (`mindspore.dataset.KMnistDataset`).

    Columns and arguments are those of `MnistDataset`.
    """


_EMNIST = {"byclass": 62, "bymerge": 47, "balanced": 47, "letters": 26, "digits": 10, "mnist": 10}


class EMnistDataset(_IdxSource):
    """Images of handwritten letters and digits (`mindspore.dataset.EMnistDataset`).

    Columns: image, uint8 (28, 28, 1); label, uint32 ().

    Args:
        dataset_dir: folder with ``emnist-NAME-train-images-idx3-ubyte`` and the other files.
        name: part of the dataset: ``"byclass"``, ``"bymerge"``, ``"balanced"``, ``"letters"``,
            ``"digits"`` or ``"mnist"``.
        usage: ``"train"``, ``"test"`` or ``"all"`` (the default).
        num_samples, shuffle, sampler, num_shards, shard_id, cache: see `MnistDataset`.

    Raises:
        ValueError: the folder does not exist, or `name` or `usage` is unknown.
        RuntimeError: the folder has no such files, or a file is damaged.
    """

    def __init__(
        self,
        dataset_dir: PathLike,
        name: str,
        usage: str | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | None = None,
        sampler: SamplerLike = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: object = None,
    ) -> None:
        super().__init__(["image", "label"])
        usage = checked_usage("EMnistDataset", usage, ("train", "test", "all"), "all")
        if name not in _EMNIST:
            raise ArgumentValueError(f"EMnistDataset: got name={name!r}; wanted {list(_EMNIST)}")
        parts = ["train", "test"] if usage == "all" else [usage]
        self._classes = _EMNIST[name]
        self._read(dataset_dir, _stems([f"emnist-{name}-{p}" for p in parts]), usage)
        self._setup(
            sampler, shuffle, num_samples, num_shards, shard_id, num_parallel_workers, cache
        )


_QMNIST = {
    "train": [("qmnist-train-images-idx3-ubyte", "qmnist-train-labels-idx2-int")],
    "test": [("qmnist-test-images-idx3-ubyte", "qmnist-test-labels-idx2-int")],
    "nist": [("xnist-images-idx3-ubyte", "xnist-labels-idx2-int")],
}


class QMnistDataset(_ArraySource):
    """Images of handwritten digits with detailed labels (`mindspore.dataset.QMnistDataset`).

    Columns: image, uint8 (28, 28, 1); label, uint32 () with `compat`, otherwise (8,).

    Args:
        dataset_dir: folder with ``qmnist-train-images-idx3-ubyte``,
            ``qmnist-train-labels-idx2-int`` and the other files.
        usage: ``"train"``, ``"test"``, ``"test10k"``, ``"test50k"``, ``"nist"`` or ``"all"``.
        compat: whether the label is only the digit; otherwise it is all eight numbers of the file.
        num_samples, shuffle, sampler, num_shards, shard_id, cache: see `MnistDataset`.

    Raises:
        ValueError: the folder does not exist, or `usage` is unknown.
        RuntimeError: the folder has no such files, or a file is damaged.
    """

    def __init__(
        self,
        dataset_dir: PathLike,
        usage: str | None = None,
        compat: bool = True,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | None = None,
        sampler: SamplerLike = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: object = None,
    ) -> None:
        super().__init__(["image", "label"])
        known = ("train", "test", "test10k", "test50k", "nist", "all")
        usage = checked_usage("QMnistDataset", usage, known, "all")
        folder = folder_of("QMnistDataset", dataset_dir)
        wanted = list(_QMNIST) if usage == "all" else ["test" if "test" in usage else usage]
        images, labels = [], []
        for part in wanted:
            for stems in _QMNIST[part]:
                paths = [folder / s for s in stems]
                if all(p.is_file() for p in paths):
                    images.append(read_idx(paths[0], 3, "QMnistDataset"))
                    labels.append(read_idx(paths[1], 2, "QMnistDataset", np.dtype(">i4")))
                    if len(images[-1]) != len(labels[-1]):
                        raise DatasetError(
                            f"QMnistDataset: {paths[0]} has {len(images[-1])} images and "
                            f"{paths[1]} {len(labels[-1])} labels"
                        )
        if not images:
            raise DatasetError(f"QMnistDataset: {folder} has no files of usage {usage!r}")
        cut = {"test10k": slice(0, 10_000), "test50k": slice(10_000, None)}.get(usage, slice(None))
        self._images = np.concatenate(images)[cut][..., None]
        found = np.concatenate(labels)[cut].astype(np.uint32)
        self._compat = bool(compat)
        self._labels_ = found[:, 0] if compat else found
        self._setup(
            sampler, shuffle, num_samples, num_shards, shard_id, num_parallel_workers, cache
        )

    def _row(self, index: int) -> Row:
        return self._images[index], np.asarray(self._labels_[index])


class Cifar10Dataset(_ArraySource):
    """Small colour images of CIFAR-10, binary or Python files (`mindspore.dataset.Cifar10Dataset`).

    Columns: image, uint8 (32, 32, 3); label, uint32 ().

    Args:
        dataset_dir: folder with ``data_batch_1.bin`` ... ``test_batch.bin``, or the same without
            ``.bin``.
        usage: ``"train"``, ``"test"`` or ``"all"`` (the default).
        num_samples, shuffle, sampler, num_shards, shard_id: see `GeneratorDataset`; shuffled by
            default.
        cache: a DatasetCache that keeps the rows in memory, or None.

    Raises:
        ValueError: the folder does not exist, or `usage` is unknown.
        RuntimeError: the folder has no such files, or a file is damaged.
    """

    _label_names: tuple[str, ...] = ("label",)
    _stems_of = {
        "train": [f"data_batch_{i}" for i in range(1, 6)],
        "test": ["test_batch"],
    }

    def __init__(
        self,
        dataset_dir: PathLike,
        usage: str | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | None = None,
        sampler: SamplerLike = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: object = None,
    ) -> None:
        super().__init__(["image", *self._label_names])
        owner = type(self).__name__
        folder = folder_of(owner, dataset_dir)
        usage = checked_usage(owner, usage, ("train", "test", "all"), "all")
        parts = ("train", "test") if usage == "all" else (usage,)
        found = [
            pair
            for part in parts
            for stem in self._stems_of[part]
            if (pair := read_cifar(folder, stem, self._label_names, owner)) is not None
        ]
        if not found:
            raise DatasetError(f"{owner}: {folder} has no files of usage {usage!r}")
        images = np.concatenate([pair[0] for pair in found])
        self._images = images.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        self._labels_ = np.concatenate([pair[1] for pair in found]).astype(np.uint32)
        self._setup(
            sampler, shuffle, num_samples, num_shards, shard_id, num_parallel_workers, cache
        )


class Cifar100Dataset(Cifar10Dataset):
    """Small colour images of CIFAR-100, binary or Python files
    (`mindspore.dataset.Cifar100Dataset`).

    Columns: image, uint8 (32, 32, 3); coarse_label and fine_label, uint32 (). The files are
    ``train.bin`` and ``test.bin``, or the same without ``.bin``; arguments are those of
    `Cifar10Dataset`.
    """

    _classes = 100
    _label_names = ("coarse_label", "fine_label")
    _stems_of = {"train": ["train"], "test": ["test"]}


class FakeImageDataset(_ImageSource):
    """Images of random numbers, for tests (`mindspore.dataset.FakeImageDataset`).

    Columns: image, uint8 of `image_size`; label, uint32 (). Equal values of `base_seed` give equal
    rows, which differ from those of MindSpore.

    Args:
        num_images, image_size, num_classes: number of rows, (height, width, channels), and number
            of labels.
        base_seed: seed of the random numbers, 0 or more.
        num_samples, shuffle, sampler, num_shards, shard_id, cache: see `MnistDataset`.

    Raises:
        ValueError: a number is below 1.

    Examples:
        >>> from duograph import dataset
        >>> data = dataset.FakeImageDataset(2, (4, 5, 3))
        >>> [row["image"].shape for row in data.create_dict_iterator()]
        [(4, 5, 3), (4, 5, 3)]
    """

    def __init__(
        self,
        num_images: int = 1000,
        image_size: Sequence[int] = (224, 224, 3),
        num_classes: int = 10,
        base_seed: int = 0,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | None = None,
        sampler: SamplerLike = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: object = None,
    ) -> None:
        super().__init__(["image", "label"])
        sizes = (num_images, num_classes, *image_size)
        if len(sizes) != 5 or any(isinstance(n, bool) or n < 1 for n in sizes) or base_seed < 0:
            raise ArgumentValueError(
                f"FakeImageDataset: got num_images={num_images}, num_classes={num_classes}, "
                f"image_size={tuple(image_size)}, base_seed={base_seed}; wanted 1 or more, three "
                "sizes, and a seed of 0 or more"
            )
        self._images, self._shape, self._classes = num_images, tuple(image_size), num_classes
        self._seed = base_seed
        self._setup(
            sampler, shuffle, num_samples, num_shards, shard_id, num_parallel_workers, cache
        )

    def _count(self) -> int:
        return self._images

    def _row(self, index: int) -> Row:
        random = config.generator(self._seed, index)
        image = random.integers(0, 256, self._shape, np.uint8)
        return image, np.array(random.integers(self._classes), np.uint32)

    def num_classes(self) -> int | None:
        return self._classes


# ---- files of images ----------------------------------------------------------------------------


class ImageFiles(_ImageSource):
    """Base class of sources of one image file per row.

    A subclass sets `_items`, which holds the path and the other columns of each row.
    """

    _items: Sequence[tuple[pathlib.Path | Value, ...]]
    _decode = False
    _decrypt: Callable[[str], bytes] | None = None

    def _count(self) -> int:
        return len(self._items)

    def _row(self, index: int) -> Row:
        path, *rest = self._items[index]
        return (self._image(cast("pathlib.Path", path)), *cast("list[Value]", rest))

    def _image(self, path: pathlib.Path) -> Array:
        """Return the bytes of an image file as uint8, or with `decode` the decoded image.

        Raises:
            DatasetError: the file cannot be read or, with `decode`, is no image.
        """
        owner = type(self).__name__
        try:
            if self._decrypt is None:
                raw = np.fromfile(path, np.uint8)
            else:
                raw = np.frombuffer(self._decrypt(str(path)), np.uint8)
        except (OSError, ValueError) as error:  # a list of images may hold what is no path
            raise DatasetError(f"{owner}: cannot read {path} ({error})") from None
        if not self._decode:
            return raw
        try:
            return decoded(raw)
        except DatasetError as error:
            raise DatasetError(f"{owner}: {path}: {error}") from None

    def _labels(self, column: str) -> Sequence[object] | None:
        if column not in self._columns[1:]:
            return super()._labels(column)
        at = self._columns.index(column)
        return [item[at] for item in self._items]


IMAGES = (".jpg", ".jpeg", ".png", ".ppm", ".bmp")


class ImageFolderDataset(ImageFiles):
    """Dataset of images in one folder per class (`mindspore.dataset.ImageFolderDataset`).

    Columns: image, uint8: the bytes of the file, or (H, W, 3) with `decode`, which needs Pillow;
        label, int32 ().

    Args:
        dataset_dir: folder that has one folder per class.
        extensions: suffixes of the files; by default those of common image formats.
        class_indexing: dictionary from folder names to labels; by default the folders are numbered
            in alphabetical order.
        decode: whether to decode the files.
        cache: a DatasetCache that keeps the rows in memory, or None.
        decrypt: function from the path of an encrypted file to its content.
        num_samples, shuffle, sampler, num_shards, shard_id: see `GeneratorDataset`; shuffled by
            default.

    Raises:
        ValueError: the folder does not exist.
        RuntimeError: the folder has no images; while reading with `decode`, a file is no image.
    """

    def __init__(
        self,
        dataset_dir: PathLike,
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
        super().__init__(["image", "label"])
        folder = folder_of("ImageFolderDataset", dataset_dir)
        endings = IMAGES if extensions is None else tuple(e.lower() for e in extensions)
        classes = sorted(p.name for p in folder.iterdir() if p.is_dir())
        self.class_indexing = class_indexing or {c: i for i, c in enumerate(classes)}
        self._items = [
            (path, np.array(self.class_indexing[c], np.int32))
            for c in classes if c in self.class_indexing
            for path in sorted((folder / c).rglob("*"))
            if path.name.lower().endswith(endings) and path.is_file()
        ]  # fmt: skip
        if not self._items:
            raise DatasetError(f"ImageFolderDataset: {folder} has no images in folders of classes")
        self._decode, self._decrypt = bool(decode), decrypt
        self._setup(
            sampler, shuffle, num_samples, num_shards, shard_id, num_parallel_workers, cache
        )

    def num_classes(self) -> int | None:
        return len(self.class_indexing)

    def get_class_indexing(self) -> dict[str, int]:
        return dict(self.class_indexing)
