"""Writer of MindRecord files: `FileWriter`.

Each shard is a file with a header and pages, and an SQLite index beside it. A call that writes rows
checks all of them before it writes any.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import sqlite3
import struct
import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, BinaryIO, cast

import numpy as np

from ..call_errors import explaining
from ..errors import ArgumentError
from ..status_line import counted, status_line
from .encryption import encrypt, encrypts
from .format import DTYPES, HEADER, PAGE, SUCCESS, MindRecordError, compressed, packed
from .reader import RecordFiles

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .format import Field, Header, Page, Scalar

__all__ = ["FileWriter"]

_NAME = re.compile(r"[0-9A-Za-z_]+")
_SQL = {"string": "TEXT", "int32": "INTEGER", "int64": "INTEGER", "float32": "NUMERIC",
        "float64": "NUMERIC"}  # fmt: skip


def shard_paths(file_name: str, shard_num: int) -> list[pathlib.Path]:
    """Return the paths of the `shard_num` files of a file name.

    Several files get numbers as suffixes.
    """
    if shard_num == 1:
        return [pathlib.Path(file_name)]
    width = len(str(shard_num - 1))
    return [pathlib.Path(f"{file_name}{i:0{width}d}") for i in range(shard_num)]


class _Shard:
    """One MindRecord file that is being written, with the contents of its header and index."""

    def __init__(self, path: pathlib.Path, header: int, page: int) -> None:
        self.path, self.header, self.page = path, header, page
        # An older file of the name stays whole until `publish` replaces it.
        self._part = path.with_name(f"{path.name}.part")
        self.file: BinaryIO = open(self._part, "w+b")  # noqa: SIM115 (closed by commit)
        self._discard = weakref.finalize(self, _discarded, self.file, self._part)
        self.pages: list[Page] = []
        self.index: list[tuple[int, ...]] = []
        self.fields: list[dict[str, Scalar]] = []
        self.saved = 0
        self._last: dict[str, int] = {}

    def _open(self, kind: str, start: int) -> Page:
        """Append an empty page of type `kind`; return its description for the header.

        `start` is the number of the first row in the page.
        """
        number = sum(p["page_type"] == kind for p in self.pages)
        self.pages.append({
            "end_row_id": start, "page_id": len(self.pages), "page_size": 0, "page_type": kind,
            "page_type_id": number, "row_group_ids": [], "shard_id": 0, "start_row_id": start,
        })  # fmt: skip
        self._last[kind] = len(self.pages) - 1
        return self.pages[-1]

    def _place(self, kind: str, data: bytes, start: int) -> tuple[Page, int]:
        """Write bytes into the last page of type `kind`, or into a new page if they do not fit.

        Returns (description of the page, offset of the bytes in it). `start` is the number of the
        first row of a new page.
        """
        if len(data) > self.page:
            raise MindRecordError(
                f"FileWriter: got a row of {len(data)} bytes for pages of {self.page}; use "
                "set_page_size"
            )
        page = self.pages[self._last[kind]] if kind in self._last else None
        if page is None or page["page_size"] + len(data) > self.page:
            page = self._open(kind, start)
        at = page["page_size"]
        self.file.seek(self.header + page["page_id"] * self.page + at)
        self.file.write(data)
        page["page_size"] += len(data)
        return page, at

    def add(self, raw: dict[str, Scalar], blob: bytes, saved: int) -> None:
        """Write one row and record its position for the index.

        Args:
            raw: field -> number or string of the row.
            blob: the encoded binary fields of the row.
            saved: number of bytes that compression has saved.
        """
        row = len(self.index)
        data = struct.pack("<Q", len(blob)) + blob
        page_b, at_b = self._place("BLOB_DATA", data, row)
        page_b["end_row_id"] = row + 1
        if not page_b["row_group_ids"]:
            page_b["row_group_ids"] = [{"id": 0, "offset": 0}]
        text = packed(raw)
        packed_row = struct.pack("<Q", len(text)) + text
        page_r, at_r = self._place("RAW_DATA", packed_row, 0)
        page_r["end_row_id"] = page_r["start_row_id"] = 0
        group = page_b["page_type_id"]
        if all(g["id"] != group for g in page_r["row_group_ids"]):
            page_r["row_group_ids"].append({"id": group, "offset": at_r})
        self.saved += saved
        self.fields.append(raw)
        self.index.append((row, page_r["page_id"], at_r, at_r + len(packed_row), group,
                           page_b["page_id"], at_b, at_b + len(data)))  # fmt: skip

    def finish(self, header: Header, kinds: dict[str, str]) -> None:
        """Write the header and the index; `publish` then gives the two files their names.

        `kinds` maps the names of the indexed fields to their types.
        """
        text = json.dumps(header, separators=(",", ":")).encode()
        if len(text) + 8 > self.header:
            raise MindRecordError(f"FileWriter: {self.path} needs a larger header; use "
                                  "set_header_size")  # fmt: skip
        self.file.seek(0)
        self.file.write(struct.pack("<Q", len(text)) + text)
        self.file.seek(0, os.SEEK_END)
        if self.file.tell() < self.header:
            self.file.truncate(self.header)
        self.file.close()
        index = pathlib.Path(f"{self._part}.db")
        self._write_index(index, kinds)
        encrypt(self._part)
        encrypt(index)

    def publish(self) -> None:
        """Give the complete files their names, in place of older files."""
        os.replace(self._part, self.path)
        os.replace(f"{self._part}.db", f"{self.path}.db")
        self._discard.detach()

    def _write_index(self, path: pathlib.Path, kinds: dict[str, str]) -> None:
        """Write the SQLite index, each row's offsets and its indexed fields, to `path`."""
        path.unlink(missing_ok=True)
        columns = ["ROW_ID", "PAGE_ID_RAW", "PAGE_OFFSET_RAW", "PAGE_OFFSET_RAW_END",
                   "ROW_GROUP_ID", "PAGE_ID_BLOB", "PAGE_OFFSET_BLOB",
                   "PAGE_OFFSET_BLOB_END"]  # fmt: skip
        made = [f"{c} INT NOT NULL" for c in columns]
        keys = ["ROW_ID"]
        for i, (name, kind) in enumerate(kinds.items()):
            made += [f"INC_{i} INT", f"{name}_0 {_SQL[kind]}"]
            keys.append(f"INC_{i}")
        places = ",".join("?" * (len(columns) + 2 * len(kinds)))
        connection = sqlite3.connect(path)
        try:
            connection.execute("CREATE TABLE SHARD_NAME(NAME TEXT NOT NULL)")
            connection.execute("INSERT INTO SHARD_NAME VALUES(?)", (self.path.name,))
            connection.execute(
                f"CREATE TABLE INDEXES({', '.join(made)}, PRIMARY KEY({','.join(keys)}))"
            )
            connection.executemany(
                f"INSERT INTO INDEXES VALUES({places})",
                [(*at, *[v for name in kinds for v in (0, raw[name])])
                 for at, raw in zip(self.index, self.fields)],
            )  # fmt: skip
            connection.commit()
        finally:
            connection.close()


def _discarded(file: BinaryIO, path: pathlib.Path) -> None:
    """Close and remove the file, and the index, of a writer that ended without `commit`."""
    file.close()
    path.unlink(missing_ok=True)
    pathlib.Path(f"{path}.db").unlink(missing_ok=True)


@explaining
class FileWriter:
    """Writes rows into MindRecord files (`mindspore.mindrecord.FileWriter`).

    The files get their names when `commit` completes them; until then, they end with ``.part``, and
    older files of the names keep their content.

    Args:
        file_name: path of the file; with several shards, a number is appended to it.
        shard_num: number of files among which the rows are distributed.
        overwrite: replace files that exist.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: `shard_num` is not from 1 to 1000, or a file exists already.

    Examples:
        >>> import pathlib, tempfile
        >>> from duograph.mindrecord import FileReader, FileWriter
        >>> path = str(pathlib.Path(tempfile.mkdtemp()) / "rows.mindrecord")
        >>> writer = FileWriter(path)
        >>> writer.add_schema({"label": {"type": "int32"}, "data": {"type": "bytes"}})
        >>> _ = writer.write_raw_data([{"label": 3, "data": b"ab"}])
        >>> _ = writer.commit()
        >>> list(FileReader(path).get_next())
        [{'data': b'ab', 'label': 3}]
    """

    def __init__(self, file_name: str, shard_num: int = 1, overwrite: bool = False) -> None:
        if not isinstance(file_name, (str, os.PathLike)):
            raise ArgumentError(f"FileWriter: got file_name={file_name!r}; wanted a path")
        if isinstance(shard_num, bool) or not isinstance(shard_num, int):
            raise ArgumentError(f"FileWriter: got shard_num={shard_num!r}; wanted an int")
        if not 1 <= shard_num <= 1000:
            raise MindRecordError(f"FileWriter: got shard_num={shard_num}; wanted 1 to 1000")
        if shard_num > 1 and encrypts():
            raise MindRecordError(
                f"FileWriter: got shard_num={shard_num} for encrypted files; wanted 1 (write the "
                "shards one by one, or set_enc_key(None))"
            )
        self._paths = shard_paths(os.fspath(file_name), shard_num)
        self._overwrite = overwrite
        self._header, self._page = HEADER, PAGE
        self._schema: dict[str, Field] = {}
        self._description = ""
        self._index: list[str] | None = None
        self._shards: list[_Shard] = []
        self._closed = False

    def set_header_size(self, header_size: int) -> None:
        """Set the size of the header in bytes: 16 KB to 128 MB and a multiple of 4.

        Raises:
            ValueError: the size is not allowed, or rows were written before.
        """
        self._header = self._size("set_header_size", header_size, 1 << 14, 1 << 27)

    def set_page_size(self, page_size: int) -> None:
        """Set the size of a page in bytes: 32 KB to 256 MB and a multiple of 4.

        Raises:
            ValueError: the size is not allowed, or rows were written before.
        """
        self._page = self._size("set_page_size", page_size, 1 << 15, 1 << 28)

    def _size(self, owner: str, value: int, low: int, high: int) -> int:
        """Return `value` if it is a multiple of 4 in [low, high].

        Raises MindRecordError otherwise, and also if rows were written before.
        """
        if not isinstance(value, int) or not low <= value <= high or value % 4:
            raise MindRecordError(f"FileWriter.{owner}: got {value!r}; wanted {low} to {high}")
        if self._shards:
            raise MindRecordError(f"FileWriter.{owner}: rows were written before")
        return value

    def add_schema(
        self, content: Mapping[str, Mapping[str, object]], desc: str | None = None
    ) -> None:
        """Set the fields of the rows.

        Args:
            content: for each field ``{"type": ..., "shape": [...]}`` with the types int32, int64,
                float32, float64, string and bytes; ``shape`` only for arrays of numbers.
            desc: a description, which is stored in the file.

        Raises:
            ValueError: a name, type or shape is not allowed, or there is a schema already.
        """
        if self._schema:
            raise MindRecordError("FileWriter.add_schema: there is a schema already")
        if not isinstance(content, dict) or not content:
            raise MindRecordError("FileWriter.add_schema: wanted a dictionary of fields")
        for name, field in content.items():
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                raise MindRecordError(
                    f"FileWriter.add_schema: got the name {name!r}; wanted letters, digits and _"
                )
            kind = field.get("type") if isinstance(field, dict) else None
            if kind not in (*DTYPES, "string", "bytes") or set(field) - {"type", "shape"}:
                raise MindRecordError(f"FileWriter.add_schema: got {field!r} for {name!r}")
            shape = field.get("shape")
            if shape is not None and (
                kind not in DTYPES
                or not isinstance(shape, list)
                or not all(isinstance(n, int) and (n == -1 or n > 0) for n in shape)
            ):
                raise MindRecordError(
                    f"FileWriter.add_schema: got shape={shape!r} for {name!r} of {kind}; wanted a "
                    "list of ints for numbers"
                )
        self._schema = cast("dict[str, Field]", {k: dict(content[k]) for k in sorted(content)})
        self._description = desc or ""

    def add_index(self, index_fields: Sequence[str]) -> None:
        """Set the number and string fields that the index holds; by default it holds all of them.

        Raises:
            TypeError: `index_fields` is no list.
            ValueError: a field is unknown, or holds arrays or bytes.
        """
        if not isinstance(index_fields, (list, tuple)):
            raise ArgumentError(f"FileWriter.add_index: got {index_fields!r}; wanted a list")
        for name in index_fields:
            if name not in self._raw_fields():
                raise MindRecordError(
                    f"FileWriter.add_index: got {name!r}; wanted one of {self._raw_fields()}"
                )
        self._index = list(index_fields)

    def _raw_fields(self) -> list[str]:
        """Return the names of the schema's number and string fields, not of bytes and arrays."""
        return [k for k, f in self._schema.items() if f["type"] != "bytes" and "shape" not in f]

    def write_raw_data(
        self, raw_data: Sequence[Mapping[str, object]], parallel_writer: bool = False
    ) -> None:
        """Write rows into the files.

        Args:
            raw_data: the rows, dictionaries from field names to values.
            parallel_writer: distribute the rows to the shards one by one, instead of in consecutive
                parts.

        Raises:
            ValueError: there is no schema, or a row does not fit it; no row is then written.
        """
        if self._closed:
            raise MindRecordError("FileWriter.write_raw_data: the files are complete")
        if not self._schema:
            raise MindRecordError("FileWriter.write_raw_data: there is no schema; use add_schema")
        if not isinstance(raw_data, (list, tuple)):
            raise ArgumentError(
                f"FileWriter.write_raw_data: got {type(raw_data).__name__}; wanted a list of rows"
            )
        path = self._paths[0]
        with status_line(f"encoding rows for {path}", len(raw_data), "rows") as line:
            rows = [self._row(row) for row in counted(raw_data, line)]
        self.open_and_set_header()
        n = len(self._shards)
        each = max(1, -(-len(rows) // n))
        with status_line(f"writing {path}", len(rows), "rows") as line:
            for i, row in enumerate(counted(rows, line)):
                self._shards[i % n if parallel_writer else i // each].add(*row)

    def open_and_set_header(self) -> str:
        """Open the files and return the string "SUCCESS"; `write_raw_data` calls this method.

        Raises:
            ValueError: a file exists, and `overwrite` was not set.
        """
        if not self._shards:
            for path in self._paths:
                if path.exists() and not self._overwrite:
                    raise MindRecordError(f"FileWriter: {path} exists; use overwrite=True")
            self._shards = [_Shard(p, self._header, self._page) for p in self._paths]
        return SUCCESS

    def _row(self, row: Mapping[str, object]) -> tuple[dict[str, Scalar], bytes, int]:
        """Encode a row: return (field -> number or string, bytes of other fields, bytes saved).

        Raises MindRecordError for a row that does not fit the schema.
        """
        if not isinstance(row, dict) or not set(row) >= set(self._schema):
            missing = sorted(set(self._schema) - set(row)) if isinstance(row, dict) else "fields"
            raise MindRecordError(f"FileWriter: got a row without {missing}")
        raw = {k: self._plain(k, row[k]) for k in self._raw_fields()}
        parts, saved = [], 0
        for name, field in self._schema.items():
            if name in raw:
                continue
            value = row[name]
            if field["type"] == "bytes":
                data = self._binary(name, value)
            else:
                array = self._array(name, field, value)
                data = array.tobytes()
                if array.dtype.kind == "i":
                    saved += len(data)
                    data = compressed(array)
                    saved -= len(data)
            parts.append(data)
        if not parts:
            return raw, bytes(4), 0
        if len(parts) == 1:
            return raw, parts[0], saved
        return raw, b"".join(struct.pack(">Q", len(p)) + p for p in parts), saved

    def _plain(self, name: str, value: object) -> Scalar:
        """Convert the value of a number or string field to int, float or str.

        Raises MindRecordError if it does not fit the type of the field.
        """
        kind = self._schema[name]["type"]
        found = value.item() if isinstance(value, (np.generic, np.ndarray)) else value
        if kind == "string" and isinstance(found, str):
            return found
        if kind in ("int32", "int64") and type(found) is int:
            info = np.iinfo(cast("np.dtype[np.integer]", DTYPES[kind]))
            if info.min <= found <= info.max:
                return found
        if kind in ("float32", "float64") and type(found) in (int, float):
            return float(cast("float", found))
        raise MindRecordError(f"FileWriter: got {value!r} for the field {name!r} of type {kind}")

    @staticmethod
    def _binary(name: str, value: object) -> bytes:
        """Return bytes, a bytearray or a uint8 array as bytes; else raise MindRecordError."""
        if isinstance(value, (bytes, bytearray)):
            return bytes(value)
        if isinstance(value, np.ndarray) and value.dtype == np.uint8:
            return value.tobytes()
        raise MindRecordError(f"FileWriter: got {type(value).__name__} for the bytes {name!r}")

    @staticmethod
    def _array(name: str, field: Field, value: object) -> NDArray[np.generic]:
        """Convert the value of an array field to the field's dtype.

        Raises MindRecordError if its dtype or shape does not fit.
        """
        array, dtype, shape = np.asarray(value), DTYPES[field["type"]], field["shape"]
        if array.dtype != dtype and not isinstance(value, list):
            raise MindRecordError(f"FileWriter: got {array.dtype} for {name!r} of {dtype}")
        made = array
        if array.dtype != dtype:  # of a list
            with np.errstate(invalid="ignore"):
                made = array.astype(dtype)
            if made.dtype.kind == "i" and not np.array_equal(made, array):
                raise MindRecordError(
                    f"FileWriter: got {value!r:.60} for {name!r} of {dtype}; wanted whole numbers "
                    "in its range"
                )
        fits = array.ndim == len(shape) and all(n in (-1, m) for n, m in zip(shape, array.shape))
        if -1 in shape and array.size % abs(int(np.prod([n for n in shape if n != -1]))) == 0:
            fits = True
        if not fits or not array.size:
            raise MindRecordError(
                f"FileWriter: got shape {array.shape} for {name!r}; wanted {shape}, not empty"
            )
        return made

    def commit(self) -> None:
        """Complete the files: write their headers and indexes, and close them.

        Raises:
            ValueError: there is no schema, or the header size is too small.
        """
        if not self._schema:
            raise MindRecordError("FileWriter.commit: there is no schema; use add_schema")
        self.open_and_set_header()
        indexed = self._raw_fields() if self._index is None else self._index
        kinds = {name: self._schema[name]["type"] for name in indexed}
        blobs = [k for k in self._schema if k not in self._raw_fields()]
        for number, shard in enumerate(self._shards):
            header = {
                "header_size": self._header,
                "index_fields": [{"index_field": n, "schema_id": 0} for n in indexed],
                "page": [{**p, "shard_id": number} for p in shard.pages],
                "page_size": self._page,
                "compression_size": shard.saved,
                "schema": [{"blob_fields": blobs, "desc": self._description,
                            "schema": self._schema}],
                "shard_addresses": [p.name for p in self._paths],
                "shard_id": number,
                "statistics": None,
                "version": "3.0",
            }  # fmt: skip
            with status_line(f"writing the index of {shard.path}"):
                shard.finish(cast("Header", header), kinds)
        for shard in self._shards:
            shard.publish()
        self._closed = True

    @classmethod
    def open_for_append(cls, file_name: str) -> FileWriter:
        """Return a writer with the rows of an existing file, to which rows can be added.

        Raises:
            ValueError: the file cannot be read.
        """
        path = pathlib.Path(file_name)
        files = RecordFiles([path], None)
        header = files.headers[next(iter(files.headers))]
        names = header["shard_addresses"]
        if len(names) > 1:
            path = path.with_name(names[0][: -len(str(len(names) - 1))])
        rows = [files.row(i) for i in range(len(files))]
        made = cls(str(path), len(names), True)
        made._header, made._page = header["header_size"], header["page_size"]
        made.add_schema(header["schema"][0]["schema"], header["schema"][0]["desc"])
        made.add_index([cast("str", f["index_field"]) for f in header["index_fields"]])
        made.write_raw_data(rows)
        return made
