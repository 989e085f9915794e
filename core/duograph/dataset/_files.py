"""Readers of the files of image data sets: IDX (MNIST) and CIFAR.

`sources` calls them. Files may come from strangers: everything in them is checked, and whatever is
wrong raises DatasetError with the path. No code from a file runs.
"""

from __future__ import annotations

import gzip
import math
import pathlib
import struct
import zlib
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np

from ._plain_pickle import read_plain_pickle
from .rows import Array, DatasetError

__all__ = ["read_cifar", "read_idx"]

_STEP = 1 << 24


def read_idx(path: pathlib.Path, ndim: int) -> Array:
    """Read an array of bytes with `ndim` axes in the IDX format of MNIST, plain or gzipped.

    Raises:
        DatasetError: the file is damaged, or holds something else.
    """
    try:
        opened: Any = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rb") as file:
            return _idx(path, file, ndim)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DatasetError(f"MnistDataset: {path} is damaged ({error})") from None


def _idx(path: pathlib.Path, file: BinaryIO, ndim: int) -> Array:
    head = file.read(4)
    if len(head) < 4 or head[:2] != b"\0\0" or head[2] != 8:
        raise DatasetError(
            f"MnistDataset: {path} is no IDX file of bytes (it starts with {head!r})"
        )
    sizes = file.read(4 * ndim)
    if head[3] != ndim or len(sizes) < 4 * ndim:
        raise DatasetError(f"MnistDataset: {path} has {head[3]} axes; wanted {ndim}")
    shape = struct.unpack(f">{ndim}I", sizes)
    wanted = math.prod(shape)
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
            f"MnistDataset: {path} has {found} bytes of data; wanted {wanted} for {shape}"
        )
    return np.frombuffer(bytes(data), np.uint8).reshape(shape)


def read_cifar(folder: pathlib.Path, stem: str) -> tuple[Array, Array] | None:
    """Read images (n, 3072) and labels of a CIFAR file, binary or pickled; None if it is missing.

    Raises:
        DatasetError: the file is damaged, or holds something else.
    """
    readers: tuple[tuple[pathlib.Path, Callable[[bytes], tuple[Array, Array]]], ...] = (
        (folder / f"{stem}.bin", _binary),
        (folder / stem, _pickled),
    )
    for path, read in readers:
        if path.is_file():
            try:
                return read(path.read_bytes())
            except ValueError as error:
                raise DatasetError(f"Cifar10Dataset: {path} is damaged: {error}") from None
    return None


def _binary(data: bytes) -> tuple[Array, Array]:
    if len(data) % 3073:
        raise ValueError(f"got {len(data)} bytes; wanted a multiple of 3073")
    rows = np.frombuffer(data, np.uint8).reshape(-1, 3073)
    return rows[:, 1:], rows[:, 0]


def _pickled(data: bytes) -> tuple[Array, Array]:
    found = read_plain_pickle(data)
    if not isinstance(found, dict) or not {b"data", b"labels"} <= set(found):
        raise ValueError("it holds no dictionary with data and labels")
    images, labels = found[b"data"], found[b"labels"]
    if isinstance(labels, list) and all(type(n) is int and 0 <= n < 2**32 for n in labels):
        labels = np.array(labels, np.uint32)
    if not isinstance(labels, np.ndarray) or labels.dtype.kind not in "iu" or labels.ndim != 1:
        raise ValueError("its labels are no list of numbers in [0, 2**32)")
    if not isinstance(images, np.ndarray) or images.dtype != np.uint8:
        raise ValueError("its data is no array of uint8")
    if images.shape != (len(labels), 3072) or (labels < 0).any():
        raise ValueError(f"it has data of shape {images.shape} and {len(labels)} labels")
    return images, labels
