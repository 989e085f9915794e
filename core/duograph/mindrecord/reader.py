"""Reader of MindRecord files: `FileReader`, and `RecordFiles` for `dataset.MindDataset`.

Files may be malicious: every defect raises MindRecordError with the path.
"""

from __future__ import annotations

import os
import pathlib
import sqlite3
import struct
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from ..call_errors import explaining
from ..errors import ArgumentError
from .encryption import Decrypted
from .format import DTYPES, MindRecordError, decompressed, read_header, unpacked

if TYPE_CHECKING:
    from .format import Field

__all__ = ["FileReader", "RecordFiles"]

_INDEX = ("PAGE_ID_RAW", "PAGE_OFFSET_RAW", "PAGE_OFFSET_RAW_END", "PAGE_ID_BLOB",
          "PAGE_OFFSET_BLOB", "PAGE_OFFSET_BLOB_END")  # fmt: skip


class RecordFiles:
    """The rows of MindRecord files, by their number over all files.

    Args:
        paths: the files; a single path of one shard stands for all shards.
        columns: the fields to read; None for all.

    Raises:
        MindRecordError: a file cannot be read, or the fields of the files differ.
    """

    def __init__(self, paths: Sequence[pathlib.Path], columns: Sequence[str] | None) -> None:
        self._plain = Decrypted()
        headers = {p: read_header(p, self._plain(p)) for p in paths}
        if len(paths) == 1:  # one shard stands for all
            names = headers[paths[0]].get("shard_addresses")
            if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
                raise MindRecordError(f"{paths[0]} is damaged: its header names no shards")
            if len(names) > 1:
                paths = [paths[0].with_name(pathlib.PurePath(n).name) for n in names]
                headers = {p: read_header(p, self._plain(p)) for p in paths}
        schema = headers[paths[0]]["schema"][0]
        self.fields: dict[str, Field] = schema["schema"]
        self.blobs: list[str] = list(schema["blob_fields"])
        for path, header in headers.items():
            if header["schema"][0]["schema"] != self.fields:
                raise MindRecordError(f"{path} has other fields than {paths[0]}")
        names = list(self.fields) if columns is None else list(columns)
        for name in names:
            if name not in self.fields:
                raise MindRecordError(
                    f"{paths[0]} has no field {name!r}; it has {list(self.fields)}"
                )
        self.columns = names
        self.headers = headers
        self._rows = [(path, at) for path in paths for at in self._indexed(path)]

    def __len__(self) -> int:
        return len(self._rows)

    def _indexed(self, path: pathlib.Path) -> list[tuple[int, ...]]:
        """Return, for each row of a file, its pages and offsets from the file's SQLite index."""
        index = pathlib.Path(f"{path}.db")
        if not index.is_file():
            raise MindRecordError(f"{path} has no index {index.name}")
        try:
            plain = self._plain(index).absolute()
            connection = sqlite3.connect(f"{plain.as_uri()}?mode=ro", uri=True)
            try:
                found = connection.execute(
                    f"SELECT {', '.join(_INDEX)} FROM INDEXES ORDER BY ROW_ID"
                ).fetchall()
            finally:
                connection.close()
        except (sqlite3.Error, UnicodeDecodeError) as error:  # a broken name in an error message
            raise MindRecordError(f"{index} is damaged ({error})") from None
        if not all(isinstance(n, int) and n >= 0 for row in found for n in row):
            raise MindRecordError(f"{index} is damaged: an offset is no number")
        return found

    def _bytes(self, path: pathlib.Path, page: int, begin: int, end: int) -> bytes:
        """Read the bytes of a row from offset `begin` to `end` of a page.

        The first 8 bytes hold the length of the rest; they are checked and removed.
        """
        header = self.headers[path]
        size = header["page_size"]
        if not begin + 8 <= end <= size:
            raise MindRecordError(
                f"{path} or its index {path.name}.db is damaged: a row has the offsets {begin} and "
                f"{end}"
            )
        with open(self._plain(path), "rb") as file:
            file.seek(header["header_size"] + page * size + begin)
            data = file.read(end - begin)
        if len(data) != end - begin or struct.unpack_from("<Q", data)[0] != end - begin - 8:
            raise MindRecordError(
                f"{path} is damaged: a row has another length than its index {path.name}.db says"
            )
        return data[8:]

    def row(self, number: int) -> dict[str, object]:
        """Return the fields of a row by name: numbers, strings, bytes and arrays."""
        path, (page_r, begin_r, end_r, page_b, begin_b, end_b) = self._rows[number]
        wanted = set(self.columns)
        try:
            found: dict[str, object] = {}
            if wanted - set(self.blobs):
                found = cast(
                    "dict[str, object]", unpacked(self._bytes(path, page_r, begin_r, end_r))
                )
                for name in wanted - set(self.blobs):
                    self._check(name, found[name])
            if wanted & set(self.blobs):
                data = self._bytes(path, page_b, begin_b, end_b)
                for name, part in zip(self.blobs, self._parts(data)):
                    if name in wanted:
                        found[name] = self._blob(name, part)
            return {name: found[name] for name in self.columns}
        except (OSError, LookupError, ValueError, TypeError, OverflowError) as error:
            if str(path) in str(error):
                raise
            raise MindRecordError(f"{path} is damaged: row {number}: {error}") from None

    def _check(self, name: str, value: object) -> None:
        """Raise ValueError if a number or string of a row does not have the type in the schema."""
        kind = self.fields[name]["type"]
        if kind == "string":
            fits = isinstance(value, str)
        elif kind in ("float32", "float64"):
            fits = isinstance(value, float) or (isinstance(value, int) and abs(value) < 2**1023)
        else:
            info = np.iinfo(cast("np.dtype[np.integer]", DTYPES[kind])) if kind in DTYPES else None
            fits = info is None or (isinstance(value, int) and info.min <= value <= info.max)
        if not fits:
            raise ValueError(f"got {value!r:.60} for the field {name!r} of type {kind}")

    def _parts(self, data: bytes) -> Iterator[bytes]:
        """Split the binary part of a row into the bytes of each binary field."""
        if len(self.blobs) == 1:
            yield data
            return
        at = 0
        for _ in self.blobs:
            if at + 8 > len(data):
                raise MindRecordError("a row ends before its last field")
            (size,) = struct.unpack_from(">Q", data, at)
            at += 8
            if at + size > len(data):
                raise MindRecordError("a row ends inside a field")
            yield data[at : at + size]
            at += size

    def _blob(self, name: str, data: bytes) -> object:
        """Convert the bytes of field `name` to its value: bytes, or an array."""
        field = self.fields[name]
        if field["type"] == "bytes":
            return data
        dtype = DTYPES[field["type"]]
        if dtype.kind == "i":
            array = decompressed(data, dtype)
        else:
            array = np.frombuffer(data, dtype.newbyteorder("<")).astype(dtype)
        return array.reshape(field["shape"])


@explaining
class FileReader:
    """Reads the rows of MindRecord files (`mindspore.mindrecord.FileReader`).

    Args:
        file_name: the path of one shard, which stands for all shards of the file, or a list of
            paths.
        num_consumer: checked and ignored; rows are read in the calling thread.
        columns: the fields to read; None for all.
        operator: must be None.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: a file cannot be read.

    Examples:
        >>> import pathlib, tempfile
        >>> from duograph.mindrecord import FileReader, FileWriter
        >>> path = str(pathlib.Path(tempfile.mkdtemp()) / "rows.mindrecord")
        >>> writer = FileWriter(path)
        >>> writer.add_schema({"x": {"type": "int64", "shape": [-1]}})
        >>> _ = writer.write_raw_data([{"x": [1, 2]}, {"x": [3]}]), writer.commit()
        >>> [row["x"].tolist() for row in FileReader(path).get_next()]
        [[1, 2], [3]]
    """

    def __init__(
        self,
        file_name: str | Sequence[str],
        num_consumer: int = 4,
        columns: Sequence[str] | None = None,
        operator: object = None,
    ) -> None:
        names: list[str] = (
            list(file_name) if isinstance(file_name, (list, tuple)) else [cast("str", file_name)]
        )
        if not names or not all(isinstance(n, (str, os.PathLike)) for n in names):
            raise ArgumentError(f"FileReader: got file_name={file_name!r}; wanted paths")
        if isinstance(num_consumer, bool) or not isinstance(num_consumer, int) or num_consumer < 1:
            raise MindRecordError(f"FileReader: got num_consumer={num_consumer!r}; wanted >= 1")
        if columns is not None and not isinstance(columns, (list, tuple)):
            raise ArgumentError(f"FileReader: got columns={columns!r}; wanted a list")
        if operator is not None:
            raise MindRecordError("FileReader: got operator, which is not offered; read all rows")
        self._files: RecordFiles | None = RecordFiles([pathlib.Path(n) for n in names], columns)

    def _open(self) -> RecordFiles:
        """Return the RecordFiles of this reader; raise if it was closed."""
        if self._files is None:
            raise MindRecordError("FileReader: it was closed")
        return self._files

    def get_next(self) -> Iterator[dict[str, object]]:
        """Yield the rows as dictionaries from field names to values."""
        files = self._open()
        for i in range(len(files)):
            yield files.row(i)

    def schema(self) -> dict[str, dict[str, object]]:
        """Return the fields in the form of the argument of `FileWriter.add_schema`."""
        return {k: dict(v) for k, v in self._open().fields.items()}

    def len(self) -> int:
        """Return the number of rows."""
        return self._open().__len__()

    def close(self) -> None:
        """Close the reader; later calls of its methods raise an error."""
        self._files = None
