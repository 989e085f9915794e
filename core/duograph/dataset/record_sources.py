"""The dataset source of MindRecord files, and the step `save` of `Dataset.save`."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from ..errors import ArgumentError, ArgumentValueError
from ..mindrecord.format import DTYPES
from ..mindrecord.reader import RecordFiles
from ..mindrecord.writer import FileWriter
from ..status_line import counted, status_line
from . import samplers, tfrecord
from .pipeline import Dataset, step
from .rows import Array, DatasetError, Row, as_value
from .source import SamplerLike, Source, UnionBaseDataset

__all__ = ["MindDataset"]


class MindDataset(Source, UnionBaseDataset):
    """Rows of MindRecord files (`mindspore.dataset.MindDataset`).

    The columns are those of the file's schema in alphabetical order; a column of bytes is an array
    (1,) of bytes.

    Args:
        dataset_files: the path of one shard, which stands for all shards, or a list of paths.
        columns_list: the columns to read; by default all.
        shuffle: whether to shuffle the rows; by default True.
        padded_sample, num_padded: a row, as a dictionary, that is appended `num_padded` times.
        num_samples, sampler, num_shards, shard_id, cache: see `MnistDataset`.

    Raises:
        ValueError: a file cannot be read, or does not have a column.

    Examples:
        >>> import pathlib, tempfile
        >>> from duograph import dataset
        >>> path = str(pathlib.Path(tempfile.mkdtemp()) / "rows.mindrecord")
        >>> dataset.NumpySlicesDataset({"x": [1, 2]}, shuffle=False).save(path)
        >>> rows = dataset.MindDataset(path, shuffle=False).create_dict_iterator(1, True)
        >>> [int(row["x"]) for row in rows]
        [1, 2]
    """

    def __init__(
        self,
        dataset_files: str | Sequence[str],
        columns_list: Sequence[str] | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | samplers.Shuffle | None = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        sampler: SamplerLike = None,
        padded_sample: Mapping[str, object] | None = None,
        num_padded: int | None = None,
        num_samples: int | None = None,
        cache: object = None,
    ) -> None:
        names: list[str] = (
            list(dataset_files)
            if isinstance(dataset_files, (list, tuple))
            else [cast("str", dataset_files)]
        )
        if not names or not all(isinstance(n, (str, os.PathLike)) for n in names):
            raise ArgumentError(f"MindDataset: got dataset_files={dataset_files!r}; wanted paths")
        columns = [columns_list] if isinstance(columns_list, str) else columns_list
        self._files = RecordFiles([pathlib.Path(n) for n in names], columns)
        super().__init__(self._files.columns)
        if (padded_sample is None) != (num_padded is None):
            raise ArgumentValueError("MindDataset: wanted padded_sample and num_padded together")
        self._padding = num_padded or 0
        self._padded = None if padded_sample is None else self._converted(padded_sample)
        self._setup(
            sampler, shuffle, num_samples, num_shards, shard_id, num_parallel_workers, cache
        )

    def _count(self) -> int:
        return len(self._files) + self._padding

    def _row(self, index: int) -> Row:
        if self._padded is not None and index >= len(self._files):
            return self._padded
        return self._converted(self._files.row(index))

    def _converted(self, row: Mapping[str, object]) -> Row:
        """Convert a row of the file, column -> value, to a tuple of arrays in column order.

        Raises:
            ArgumentValueError: a column is missing, which can happen only in the user's
                `padded_sample`.
        """
        made = []
        for name in self._columns:
            if name not in row:
                raise ArgumentValueError(f"MindDataset: padded_sample has no {name!r}")
            value, kind = row[name], self._files.fields[name]["type"]
            if isinstance(value, bytes):
                value = np.array([value], f"S{max(len(value), 1)}")
            elif kind in DTYPES:
                value = np.asarray(value, DTYPES[kind])
            made.append(as_value(value))
        return tuple(made)


_TYPES = {"i1": "int32", "i2": "int32", "i4": "int32", "i8": "int64", "u1": "int32", "u2": "int32",
          "u4": "int64", "b1": "int32", "f2": "float32", "f4": "float32",
          "f8": "float64"}  # fmt: skip


@step("save")
def save(data: Dataset, file_name: str, num_files: int, file_type: str) -> None:
    """Write the rows of one pass over a dataset into files.

    Arguments are those of `Dataset.save`.
    """
    if file_type not in ("mindrecord", "tfrecord"):
        raise ArgumentValueError(f"save: got file_type={file_type!r}; wanted 'mindrecord' or "
                                 "'tfrecord'")  # fmt: skip
    if isinstance(num_files, bool) or not isinstance(num_files, int) or num_files < 1:
        raise ArgumentValueError(f"save: got num_files={num_files!r}; wanted 1 or more")
    with status_line(f"reading rows for {file_name}", None, "rows", False) as line:
        rows = cast(
            "list[dict[str, Array]]",
            [
                dict(zip(data.get_col_names(), row))
                for row in counted(data.rows_without_callbacks(), line)
            ],
        )
    if not rows:
        raise DatasetError("save: the dataset has no rows; wanted at least one")
    if file_type == "tfrecord":
        tfrecord.write_examples(file_name, rows, num_files)
        return
    schema: dict[str, dict[str, Any]] = {}
    for name, value in rows[0].items():
        kind = _kind(name, value)
        schema[name] = {"type": kind}
        if value.ndim and kind in DTYPES:
            schema[name]["shape"] = [-1, *value.shape[1:]]
    writer = FileWriter(file_name, num_files, overwrite=True)
    writer.add_schema(schema, "saved by Dataset.save")
    writer.write_raw_data([{n: _plain(n, v, schema[n]["type"]) for n, v in row.items()}
                           for row in rows], parallel_writer=True)  # fmt: skip
    writer.commit()


def _kind(name: str, value: Array) -> str:
    """Return the type of the field that holds the arrays of the column `name`, such as `value`.

    Raises:
        DatasetError: MindRecord has no such type.
    """
    text = {"U": "string", "S": "bytes"}.get(value.dtype.kind)
    kind = text or _TYPES.get(value.dtype.str[1:])
    if kind is None or (text and value.size != 1):
        raise DatasetError(f"save: column {name!r} has {value.dtype} of shape {value.shape}, "
                           "which MindRecord does not have")  # fmt: skip
    return kind


def _plain(name: str, value: Array, kind: str) -> object:
    """Convert the array of a column to a value that FileWriter takes for a field of type `kind`.

    Raises:
        DatasetError: the array has another dtype than that of the first row.
    """
    if _kind(name, value) != kind:
        raise DatasetError(
            f"save: column {name!r} has {value.dtype} after rows of {kind}; wanted one dtype "
            "(transforms.TypeCast in a map before save casts them)"
        )
    if kind == "bytes":
        return value.tobytes()  # item() would omit zero bytes at the end
    if kind == "string":
        return value.item()
    found = value.astype(DTYPES[kind])
    return found if found.ndim else found.item()
