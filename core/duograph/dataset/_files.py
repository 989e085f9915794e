"""Readers of the files of image datasets: IDX (MNIST) and CIFAR.

`image_sources` calls them. Files may be malicious: everything in them is checked, and every defect
raises DatasetError with the path. No code from a file is executed.
"""

from __future__ import annotations

import gzip
import math
import pathlib
import struct
import zlib
from collections.abc import Callable, Sequence
from typing import IO, cast

import numpy as np

from ._plain_pickle import read_plain_pickle
from .rows import Array, DatasetError

__all__ = ["read_cifar", "read_idx"]

_STEP = 1 << 24


def read_idx(
    path: pathlib.Path, ndim: int, owner: str, dtype: np.dtype[np.generic] | None = None
) -> Array:
    """Read an array with `ndim` axes in the IDX format of MNIST, plain or gzipped.

    Args:
        path: the file.
        ndim: the number of axes that the array must have.
        owner: name of the dataset source, for messages.
        dtype: dtype of the elements, uint8 or big-endian int32; by default uint8.

    Raises:
        DatasetError: the gzip data is damaged, or the content is not an IDX array of this dtype and
            number of axes.
    """
    try:
        opened: Callable[..., IO[bytes]] = cast(
            "Callable[..., IO[bytes]]", gzip.open if path.suffix == ".gz" else open
        )
        with opened(path, "rb") as file:
            return _idx(path, file, ndim, owner, dtype or np.dtype(np.uint8))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DatasetError(f"{owner}: {path} is damaged ({error})") from None


def _idx(
    path: pathlib.Path, file: IO[bytes], ndim: int, owner: str, dtype: np.dtype[np.generic]
) -> Array:
    head = file.read(4)
    code = 8 if dtype == np.uint8 else 12
    if len(head) < 4 or head[:2] != b"\0\0" or head[2] != code:
        raise DatasetError(
            f"{owner}: {path} is no IDX file of {dtype.name} (it starts with {head!r})"
        )
    sizes = file.read(4 * ndim)
    if head[3] != ndim or len(sizes) < 4 * ndim:
        raise DatasetError(f"{owner}: {path} has {head[3]} axes; wanted {ndim}")
    shape = struct.unpack(f">{ndim}I", sizes)
    wanted = math.prod(shape) * dtype.itemsize
    # One byte more than wanted, in steps: neither the header nor a compressed file of nothing but
    # zeros decides how much memory is taken.
    data = bytearray()
    while len(data) <= wanted:
        part = file.read(min(_STEP, wanted + 1 - len(data)))
        if not part:
            break
        data += part
    if len(data) != wanted:
        found = f"more than {wanted}" if len(data) > wanted else len(data)
        raise DatasetError(
            f"{owner}: {path} has {found} bytes of data; wanted {wanted} for {shape}"
        )
    return np.frombuffer(bytes(data), dtype).reshape(shape)


def read_cifar(
    folder: pathlib.Path, stem: str, labels: Sequence[str], owner: str
) -> tuple[Array, Array] | None:
    """Read a CIFAR file, binary or pickled; return None if it is missing.

    Args:
        folder, stem: folder and name of the file: ``STEM.bin`` is a binary file and, if there is no
            such file, ``STEM`` a pickled one.
        labels: names of the labels of each image, one for CIFAR-10 and two for CIFAR-100.
        owner: name of the dataset source, for messages.

    Returns:
        Images (n, 3072), and labels (n, len(labels)).

    Raises:
        DatasetError: the content of the file is not that of a CIFAR file.
    """
    readers: tuple[tuple[pathlib.Path, Callable[[bytes, Sequence[str]], tuple[Array, Array]]], ...]
    readers = ((folder / f"{stem}.bin", _binary), (folder / stem, _pickled))
    for path, read in readers:
        if path.is_file():
            try:
                return read(path.read_bytes(), labels)
            except ValueError as error:
                raise DatasetError(f"{owner}: {path} is damaged: {error}") from None
    return None


def _binary(data: bytes, names: Sequence[str]) -> tuple[Array, Array]:
    n = len(names)
    if len(data) % (3072 + n):
        raise ValueError(f"got {len(data)} bytes; wanted a multiple of {3072 + n}")
    rows = np.frombuffer(data, np.uint8).reshape(-1, 3072 + n)
    return rows[:, n:], rows[:, :n]


def _pickled(data: bytes, names: Sequence[str]) -> tuple[Array, Array]:
    found = read_plain_pickle(data)
    keys = (
        [b"labels"] if len(names) == 1 else [n.replace("label", "labels").encode() for n in names]
    )
    if not isinstance(found, dict) or not {b"data", *keys} <= set(found):
        raise ValueError(f"it holds no dictionary with data and {b', '.join(keys).decode()}")
    columns = [_labels(found[key]) for key in keys]
    images = found[b"data"]
    if not isinstance(images, np.ndarray) or images.dtype != np.uint8:
        raise ValueError("its data is no array of uint8")
    if any(images.shape != (len(c), 3072) or (c < 0).any() for c in columns):
        raise ValueError(f"it has data of shape {images.shape} and {len(columns[0])} labels")
    return images, np.stack(columns, axis=1)


def _labels(labels: object) -> Array:
    """Return the labels of a pickled CIFAR file as a 1-d array of integers.

    Raises:
        ValueError: the labels are neither a list of ints in [0, 2**32) nor a 1-d array of integers.
    """
    if isinstance(labels, list) and all(type(n) is int and 0 <= n < 2**32 for n in labels):
        labels = np.array(labels, np.uint32)
    if not isinstance(labels, np.ndarray) or labels.dtype.kind not in "iu" or labels.ndim != 1:
        raise ValueError("its labels are no list of numbers in [0, 2**32)")
    return labels
