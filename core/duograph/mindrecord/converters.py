"""Conversion of datasets, such as CIFAR-10 and CSV files, into MindRecord files.

Users construct the converters; `FileWriter` writes the files.
"""

from __future__ import annotations

import csv
import pathlib
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ..call_errors import explain_methods
from ..dataset.image_sources import Cifar10Dataset, Cifar100Dataset, MnistDataset
from ..dataset.vision.codecs import encode_jpeg, encode_png
from ..status_line import counted, status_line
from .format import SUCCESS, MindRecordError
from .writer import FileWriter

__all__ = ["Cifar100ToMR", "Cifar10ToMR", "CsvToMR", "ImageNetToMR", "MnistToMR"]

_STEP = 256  # rows that are written at a time


def _written(
    path: str,
    schema: Mapping[str, Mapping[str, object]],
    rows: Iterator[dict[str, object]],
    total: int,
    shards: int = 1,
    index: Sequence[str] = (),
) -> None:
    """Write rows into one MindRecord file, or distribute them one by one to `shards` files.

    Args:
        path: path of the file; the paths of several files are this one with numbers as suffixes.
        schema: names and types of the fields, as for `FileWriter.add_schema`.
        rows: the rows, dictionaries from field names to values.
        total: number of the rows, for the progress that a terminal shows.
        shards: number of files.
        index: names of the fields that the SQLite index holds; if empty, it holds all number and
            string fields.
    """
    writer = FileWriter(path, shards)
    writer.add_schema(schema)
    if index:
        writer.add_index(list(index))
    group: list[dict[str, object]] = []
    with status_line(f"writing {path}", total, "rows", False) as line:
        for row in counted(rows, line):
            group.append(row)
            if len(group) == _STEP:
                writer.write_raw_data(group, parallel_writer=True)
                group = []
        writer.write_raw_data(group, parallel_writer=True)
    writer.commit()


class _Converter:
    """Base class of dataset converters; a subclass implements `run`."""

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        explain_methods(cls, "__init__")

    def __init__(self, source: str, destination: str) -> None:
        self.source, self.destination = str(source), str(destination)
        if not pathlib.Path(self.source).exists():
            raise MindRecordError(f"{type(self).__name__}: {self.source} does not exist")

    def run(self) -> None:
        """Convert `source` and write the files to `destination`; subclasses implement it."""
        raise NotImplementedError

    def transform(self) -> str:
        """Run the conversion and return the string "SUCCESS"; failures raise an error."""
        self.run()
        return SUCCESS


class Cifar10ToMR(_Converter):
    """Writes CIFAR-10 into ``destination`` and ``destination_test``
    (`mindspore.mindrecord.Cifar10ToMR`); needs Pillow.

    Fields: id, int64; label, int64; data, the bytes of a JPEG file.

    Args:
        source: folder with the files of CIFAR-10.
        destination: path of the new file with the training rows.

    Raises:
        ValueError: the folder does not exist.
        RuntimeError: the folder has no files of CIFAR-10.
    """

    _source: type[Cifar10Dataset] = Cifar10Dataset
    _labels = {"label": "label"}

    def transform(self, fields: Sequence[str] | None = None) -> str:
        """Run the conversion and write the files; return the string "SUCCESS".

        `fields` names the fields that the SQLite index holds. If it is None or empty, the index
        holds all number and string fields.
        """
        self._index = list(fields or ())
        return super().transform()

    _index: Sequence[str] = ()

    def run(self) -> None:
        schema: dict[str, dict[str, str]] = {"id": {"type": "int64"}, "data": {"type": "bytes"}}
        schema.update({name: {"type": "int64"} for name in self._labels.values()})
        for usage, path in (("train", self.destination), ("test", f"{self.destination}_test")):
            data = self._source(self.source, usage, shuffle=False)
            rows = data.create_dict_iterator(num_epochs=1, output_numpy=True)
            made = (
                {"id": i, "data": encode_jpeg(row["image"]).tobytes(),
                 **{name: int(row[column]) for column, name in self._labels.items()}}
                for i, row in enumerate(rows)
            )  # fmt: skip
            _written(path, schema, made, len(data), 1, self._index)


class Cifar100ToMR(Cifar10ToMR):
    """Writes CIFAR-100 into ``destination`` and ``destination_test``
    (`mindspore.mindrecord.Cifar100ToMR`); needs Pillow.

    Fields: id, fine_label, coarse_label, int64; data, the bytes of a JPEG file. Arguments are those
    of `Cifar10ToMR`.
    """

    _source = Cifar100Dataset
    _labels = {"fine_label": "fine_label", "coarse_label": "coarse_label"}


class MnistToMR(_Converter):
    """Writes MNIST into ``destination_train.mindrecord`` and ``destination_test.mindrecord``
    (`mindspore.mindrecord.MnistToMR`); needs Pillow.

    Fields: label, int64; data, the bytes of a PNG file.

    Args:
        source: folder with the files of MNIST.
        destination: prefix of the paths of the new files.
        partition_number: number of files for the training rows, and for the test rows.

    Raises:
        ValueError: the folder does not exist.
        RuntimeError: the folder has no files of MNIST.
    """

    def __init__(self, source: str, destination: str, partition_number: int = 1) -> None:
        super().__init__(source, destination)
        self.partition_number = partition_number

    def run(self) -> None:
        schema = {"label": {"type": "int64"}, "data": {"type": "bytes"}}
        for usage in ("train", "test"):
            data = MnistDataset(self.source, usage, shuffle=False)
            rows = data.create_dict_iterator(num_epochs=1, output_numpy=True)
            made = ({"label": int(r["label"]), "data": encode_png(r["image"]).tobytes()}
                    for r in rows)  # fmt: skip
            path = f"{self.destination}_{usage}.mindrecord"
            _written(path, schema, made, len(data), self.partition_number)


class CsvToMR(_Converter):
    """Writes the rows of a CSV file that begins with a line of names
    (`mindspore.mindrecord.CsvToMR`).

    A column of ints becomes int64, one of other numbers float64, and any other string.

    Args:
        source: path of the CSV file.
        destination: path of the new file.
        columns_list: the columns to write; by default all.
        partition_number: number of new files.

    Raises:
        ValueError: the file does not exist, or lacks a column.
    """

    def __init__(
        self,
        source: str,
        destination: str,
        columns_list: Sequence[str] | None = None,
        partition_number: int = 1,
    ) -> None:
        super().__init__(source, destination)
        self.columns_list, self.partition_number = columns_list, partition_number

    def run(self) -> None:
        with open(self.source, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        names = list(self.columns_list or (rows[0] if rows else ()))
        for row in rows:
            if None in row or any(row.get(n) is None for n in names):
                raise MindRecordError(f"CsvToMR: {self.source} has a row without {names}")
        kinds = {name: _kind([row[name] for row in rows]) for name in names}
        convert = {"int64": int, "float64": float, "string": str}
        made = ({n: convert[kinds[n]](row[n]) for n in names} for row in rows)
        schema = {n: {"type": kinds[n]} for n in names}
        _written(self.destination, schema, made, len(rows), self.partition_number)


def _kind(texts: Sequence[str]) -> str:
    """Return the narrowest field type for the texts of a column: int64, float64 or string."""
    for kind, convert in (("int64", np.int64), ("float64", float)):
        try:
            for text in texts:
                convert(text)
        except (ValueError, OverflowError):
            continue
        return kind
    return "string"


class ImageNetToMR(_Converter):
    """Writes image files from one folder per class (`mindspore.mindrecord.ImageNetToMR`).

    Fields: file_name, string; label, int64; data, the bytes of the file.

    Args:
        map_file: text file with a line ``folder label ...`` for each class.
        image_dir: folder that contains the folders of the classes.
        destination: path of the new file.
        partition_number: number of new files.

    Raises:
        ValueError: a file or folder does not exist, or a line of `map_file` is malformed.
    """

    def __init__(
        self, map_file: str, image_dir: str, destination: str, partition_number: int = 1
    ) -> None:
        super().__init__(image_dir, destination)
        if not pathlib.Path(map_file).is_file():
            raise MindRecordError(f"ImageNetToMR: {map_file} does not exist")
        self.map_file, self.partition_number = map_file, partition_number

    def run(self) -> None:
        labels = {}
        for line in pathlib.Path(self.map_file).read_text(encoding="utf-8").splitlines():
            words = line.split()
            if words and (len(words) < 2 or not words[1].isdigit()):
                raise MindRecordError(f"ImageNetToMR: {self.map_file} has the line {line!r}")
            if words:
                labels[words[0]] = int(words[1])
        paths = [
            (path, label)
            for name, label in labels.items()
            for path in sorted((pathlib.Path(self.source) / name).glob("*"))
            if path.is_file()
        ]
        made = (
            {"file_name": path.name, "label": label, "data": path.read_bytes()}
            for path, label in paths
        )
        schema = {"file_name": {"type": "string"}, "label": {"type": "int64"},
                  "data": {"type": "bytes"}}  # fmt: skip
        index = ["label", "file_name"]
        _written(self.destination, schema, made, len(paths), self.partition_number, index)
