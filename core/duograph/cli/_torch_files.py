"""Reads PyTorch state dicts without PyTorch, and writes them with it; `convert` calls both.

A file of `torch.save` is a zip archive: `data.pkl` is a pickle that names storages, and `data/0`,
`data/1` ... are the bytes of these storages. Unpickling can run any code, so only the few functions
that rebuild tensors are allowed.
"""

from __future__ import annotations

import collections
import importlib
import importlib.util
import io
import math
import pathlib
import pickle
import sys
import zipfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, BinaryIO

import ml_dtypes
import numpy as np

from ..status_line import status_line

if TYPE_CHECKING:
    from ..host_arrays import Array

__all__ = ["read", "write"]

DTYPES = {
    "FloatStorage": np.float32, "DoubleStorage": np.float64, "HalfStorage": np.float16,
    "BFloat16Storage": ml_dtypes.bfloat16, "LongStorage": np.int64, "IntStorage": np.int32,
    "ShortStorage": np.int16, "CharStorage": np.int8, "ByteStorage": np.uint8,
    "BoolStorage": np.bool_, "ComplexFloatStorage": np.complex64,
    "ComplexDoubleStorage": np.complex128,
}  # fmt: skip


class _Storage:
    """A storage class in the pickle, such as `FloatStorage`; it stands for a dtype."""

    def __init__(self, name: str) -> None:
        self.dtype = np.dtype(DTYPES[name])


class _Unpickler(pickle.Unpickler):
    """Unpickler that rebuilds tensors as NumPy arrays and refuses objects of other classes.

    Python's own plain values, such as dicts, numbers and strings, are allowed.

    Args:
        file: the pickle `data.pkl`.
        archive: the zip archive of `torch.save`, with the bytes of the storages.
        folder: path in the archive of the folder that holds `data.pkl`, ending with "/", or "".
    """

    def __init__(self, file: io.BytesIO, archive: zipfile.ZipFile, folder: str) -> None:
        super().__init__(file)
        self.archive = archive
        self.folder = folder
        self.storages: dict[str, Array] = {}

    def find_class(self, module: str, name: str) -> object:
        allowed = {
            ("collections", "OrderedDict"): collections.OrderedDict,
            ("torch._utils", "_rebuild_tensor_v2"): _tensor,
            ("torch._utils", "_rebuild_parameter"): lambda data, *rest: data,
            ("torch", "Size"): tuple,
        }
        if module == "torch" and name in DTYPES:
            return _Storage(name)
        if (module, name) not in allowed:
            raise pickle.UnpicklingError(f"it holds an object of {module}.{name}, not only tensors")
        return allowed[module, name]

    def persistent_load(self, pid: tuple[str, object, str, object, int]) -> Array:
        kind, storage, key, _, count = pid
        if kind != "storage" or not isinstance(storage, _Storage):
            raise pickle.UnpicklingError(f"it refers to {kind!r}")
        if key not in self.storages:
            data = self.archive.read(f"{self.folder}data/{key}")
            self.storages[key] = np.frombuffer(data, storage.dtype, count)
        return self.storages[key]


def _tensor(
    storage: Array,
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    *rest: object,
) -> Array:
    """Return a strided view of a 1-d storage as a dense NumPy array.

    A pickle of tensors calls `torch._utils._rebuild_tensor_v2`; this function takes its place and
    ignores its further arguments `rest`. `offset` and `strides` count elements.

    Raises:
        pickle.UnpicklingError: an element lies outside the storage.
    """
    if math.prod(shape) == 0:
        return np.zeros(shape, storage.dtype)
    last = offset + sum((n - 1) * s for n, s in zip(shape, strides))
    if min(offset, *strides, 0) < 0 or last >= storage.size:
        raise pickle.UnpicklingError("a tensor reaches beyond its storage")
    size = storage.dtype.itemsize
    view = np.lib.stride_tricks.as_strided(storage[offset:], shape, [s * size for s in strides])
    return np.ascontiguousarray(view).reshape(shape)


def read(path: pathlib.Path) -> dict[str, Array]:
    """Read a state dict; return NumPy arrays by name.

    The keys of nested dicts, and the positions in lists, are joined by dots. Other values, such as
    the number of an epoch, are left out, and a line on the standard error output names them.

    Raises:
        ValueError: the file is damaged or older than PyTorch 1.6, is no dict, holds objects of
            other classes than tensors and plain values, or gives two tensors one name.
    """
    try:
        with status_line(f"loading {path}"), zipfile.ZipFile(path) as archive:
            name = next(n for n in archive.namelist() if n.endswith("data.pkl"))
            file = io.BytesIO(archive.read(name))
            found = _Unpickler(file, archive, name.removesuffix("data.pkl")).load()
    except (zipfile.BadZipFile, StopIteration):
        raise ValueError(
            f"{path} is no file of torch.save since PyTorch 1.6, or is damaged; load it in PyTorch "
            "and save its state_dict() again"
        ) from None
    except Exception as error:  # noqa: BLE001 (a damaged pickle may raise anything)
        raise ValueError(
            f"{path} is no state dict: {error}; save model.state_dict() instead of the model"
        ) from None
    if not isinstance(found, (dict, np.ndarray)):
        raise ValueError(f"{path} holds {type(found).__name__}; wanted a state dict")
    left_out: list[str] = []
    values = _flatten(found, "", {}, left_out)
    say_left_out(left_out)
    return values


def say_left_out(names: Sequence[str]) -> None:
    """Say on the standard error output which entries of a file are no tensors, if there are any."""
    if names:
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        text = ", ".join(names[:5])
        sys.stderr.write(f"duograph convert: left out, since no tensors: {text}{more}\n")


def _flatten(
    found: object, prefix: str, values: dict[str, Array], left_out: list[str]
) -> dict[str, Array]:
    """Add the arrays of nested dicts and lists to `values`, under their keys joined by dots.

    Args:
        found: what the file holds at this place.
        prefix: the joined keys that lead to it; "" for the whole file.
        values: arrays by name, to which this adds. It is also the result.
        left_out: names of other values, to which this adds.

    Raises:
        ValueError: two arrays have one name, such as {"a.b": x, "a": {"b": y}}.
    """
    if isinstance(found, np.ndarray):
        if prefix in values:
            raise ValueError(f"two tensors have the name {prefix}, once keys are joined by dots")
        values[prefix] = found
    elif isinstance(found, (dict, list, tuple)):
        items = found.items() if isinstance(found, dict) else enumerate(found)
        for key, value in items:
            _flatten(value, f"{prefix}.{key}" if prefix else str(key), values, left_out)
    else:
        left_out.append(prefix)
    return values


def write(values: dict[str, Array], path: pathlib.Path, file: BinaryIO) -> None:
    """Write a state dict by `torch.save` to an open file; `path` is its path, for messages.

    Raises:
        ValueError: PyTorch is not installed.
    """
    if importlib.util.find_spec("torch") is None:
        raise ValueError(
            f"{path.suffix} files are written by PyTorch, which is not installed: pip install "
            "torch, or write .safetensors, which PyTorch's users load with safetensors"
        )
    torch = importlib.import_module("torch")
    made = collections.OrderedDict()
    for name, array in values.items():
        if array.dtype == ml_dtypes.bfloat16:
            made[name] = torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16)
        else:
            made[name] = torch.from_numpy(np.array(array))
    torch.save(made, file)
