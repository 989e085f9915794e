"""The dataset source of TFRecord files, and the writer that `Dataset.save` uses.

The module implements the published format without TensorFlow: records with their length and
checksums, and in each record a `tf.train.Example` in the wire format of protocol buffers. Files may
be malicious: every defect raises DatasetError with the path.
"""

from __future__ import annotations

import pathlib
import struct
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from ..errors import ArgumentValueError
from ..status_line import counted, status_line
from . import samplers
from .rows import Array, DatasetError, Row
from .schema import schema_of
from .source import Stream, UnionBaseDataset, damaged, files_of

if TYPE_CHECKING:
    from .schema import SchemaColumn, SchemaLike
    from .source import Paths

__all__ = ["TFRecordDataset"]


def _crc_table() -> list[int]:
    """Return the 256 entries of the lookup table of CRC-32C."""
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
        table.append(n)
    return table


_TABLE = _crc_table()


def masked_crc(data: bytes) -> int:
    """Return the masked CRC-32C checksum of the TFRecord format: rotated, and a constant added."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 255]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(path: pathlib.Path, owner: str) -> Iterator[bytes]:
    """Yield the records of a file.

    The checksums of their lengths are verified, those of data are not.

    Raises:
        DatasetError: the file is damaged; `owner` is the source, for the message.
    """
    size = path.stat().st_size
    with open(path, "rb") as file:
        while head := file.read(12):
            if len(head) < 12:
                raise damaged(owner, path, "it ends inside a record")
            length, crc = struct.unpack("<QI", head)
            if crc != masked_crc(head[:8]):
                raise damaged(owner, path, "a record has a wrong checksum")
            if length > size:
                raise damaged(owner, path, "a record is longer than the file")
            data = file.read(length + 4)
            if len(data) < length + 4:
                raise damaged(owner, path, "it ends inside a record")
            yield data[:length]


# ---- protocol buffers ---------------------------------------------------------------------------


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Decode a protocol buffer varint at offset `at`; return (number, next offset)."""
    found = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("a number does not end")
        byte = data[at]
        at += 1
        found |= (byte & 127) << shift
        if byte < 128:
            return found, at
        shift += 7


def _fields(data: bytes) -> Iterator[tuple[int, int, bytes | int]]:
    """Yield (field number, wire type, value) of each field of a protocol buffer message.

    The value of a varint is an int, any other value is bytes.
    """
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield key >> 3, kind, value
            continue
        if kind == 2:
            size, at = _varint(data, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError(f"a message has the wire type {kind}")
        if at + size > len(data):
            raise ValueError("a message ends inside a field")
        yield key >> 3, kind, data[at : at + size]
        at += size


def _list(data: bytes) -> list[bytes] | Array:
    """Decode a `tf.train.Feature` to a list of bytes, or to an array of float32 or int64.

    A feature without any list becomes an empty list.

    Raises:
        ValueError: the bytes are not a valid feature.
    """
    texts: list[bytes] = []
    numbers: list[Array] = []
    for field, kind, value in _fields(data):
        if field not in (1, 2, 3) or kind != 2 or not isinstance(value, bytes):
            continue
        for inner, wire, item in _fields(value):
            if inner != 1:
                continue
            if field == 1 and isinstance(item, bytes):
                texts.append(item)
            elif field == 2 and isinstance(item, bytes):
                if len(item) % 4:
                    raise ValueError("a list of floats has a broken length")
                numbers.append(np.frombuffer(item, "<f4").astype(np.float32))
            elif field == 3:
                numbers.append(_integers(cast("bytes", item) if wire == 2 else [cast("int", item)]))
        if field == 1:
            return texts
        empty = np.zeros(0, np.float32 if field == 2 else np.int64)
        return np.concatenate([empty, *numbers])
    return []


def _integers(packed: bytes | list[int]) -> Array:
    """Return int64 numbers from bytes of packed varints, or from a list of decoded varints."""
    if isinstance(packed, list):
        found = packed
    else:
        found, at = [], 0
        while at < len(packed):
            value, at = _varint(packed, at)
            found.append(value)
    return np.array([n & (1 << 64) - 1 for n in found], np.uint64).view(np.int64)


def parse_example(data: bytes) -> dict[str, list[bytes] | Array]:
    """Decode a `tf.train.Example`; return its features by name.

    Raises:
        ValueError: the bytes are something else.
    """
    try:
        return _features(data)
    except ValueError as error:
        raise ValueError(f"a record is no Example ({error})") from None


def _features(data: bytes) -> dict[str, list[bytes] | Array]:
    found: dict[str, list[bytes] | Array] = {}
    for field, _, features in _fields(data):
        if field != 1 or not isinstance(features, bytes):
            continue
        for inner, _, entry in _fields(features):
            if inner != 1 or not isinstance(entry, bytes):
                continue
            parts = {number: value for number, _, value in _fields(entry)}
            name, feature = parts.get(1, b""), parts.get(2, b"")
            if not isinstance(name, bytes) or not isinstance(feature, bytes):
                raise ValueError("a feature has no name")
            found[name.decode()] = _list(feature)
    return found


# ---- writing ------------------------------------------------------------------------------------


def _number(n: int) -> bytes:
    """Encode an int as a protocol buffer varint."""
    out = bytearray()
    n &= (1 << 64) - 1
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def _message(field: int, data: bytes) -> bytes:
    """Encode one length-delimited field of a protocol buffer message: its number and the bytes."""
    return _number(field << 3 | 2) + _number(len(data)) + data


def example(row: dict[str, Array]) -> bytes:
    """Encode a row as a `tf.train.Example`.

    Raises:
        DatasetError: the format does not support a dtype.
    """
    features = b""
    for name, value in row.items():
        flat = np.asarray(value).ravel()
        if flat.dtype.kind in "SU":
            texts = flat.tolist() if flat.size != 1 or flat.dtype.kind == "U" else [flat.tobytes()]
            items = [v if isinstance(v, bytes) else str(v).encode() for v in texts]
            feature = _message(1, b"".join(_message(1, item) for item in items))
        elif flat.dtype.kind in "iub":
            if flat.dtype == np.uint64 and (flat > np.iinfo(np.int64).max).any():
                raise DatasetError(
                    f"save: column {name!r} has {flat.max()}; TFRecord holds numbers up to 2^63 - 1"
                )
            packed = b"".join(_number(int(v)) for v in flat)
            feature = _message(3, _message(1, packed))
        elif flat.dtype.kind == "f":
            feature = _message(2, _message(1, flat.astype("<f4").tobytes()))
        else:
            raise DatasetError(f"save: column {name!r} has {flat.dtype}, which TFRecord lacks")
        features += _message(1, _message(1, name.encode()) + _message(2, feature))
    return _message(1, features)


def write_examples(file_name: str, rows: Sequence[dict[str, Array]], num_files: int) -> None:
    """Write rows into `num_files` TFRecord files, row i into file number i % `num_files`.

    A single file has the name `file_name`; several have their number appended to it.
    """
    with status_line(f"writing {file_name}", len(rows), "rows") as line:
        # all rows before an old file is opened, in case of an error
        encoded = [example(row) for row in counted(rows, line)]
        for number in range(num_files):
            path = file_name if num_files == 1 else f"{file_name}{number}"
            with open(path, "wb") as file:
                for data in encoded[number::num_files]:
                    head = struct.pack("<Q", len(data))
                    file.write(head + struct.pack("<I", masked_crc(head)))
                    file.write(data + struct.pack("<I", masked_crc(data)))


class TFRecordDataset(Stream, UnionBaseDataset):
    """Rows of TFRecord files of `tf.train.Example` (`mindspore.dataset.TFRecordDataset`).

    A column is an int64 or float32 array with one axis; for a single string, its bytes as uint8;
    for several strings, an array of bytes. A schema can declare other dtypes and shapes.

    Args:
        dataset_files: path or glob pattern, or a list of these.
        schema: a Schema, or the path of its file; by default the columns are the features of the
            first row.
        columns_list: the columns to read; by default all.
        num_samples, num_shards, shard_id, cache: see `MnistDataset`.
        shuffle: whether to shuffle, or a Shuffle that says how.
        shard_equal_rows: give all shards the same number of consecutive rows, the last of which
            repeat the first rows of the files. Otherwise each shard has every n-th file.
        compression_type: must be None or ``""``; compressed files are not supported.

    Raises:
        ValueError: a file does not exist, `compression_type` is given, or there are fewer files
            than shards and `shard_equal_rows` is False.
        RuntimeError: while reading: a file is damaged, or a row lacks a column.

    Examples:
        >>> import pathlib, tempfile
        >>> from duograph import dataset
        >>> path = str(pathlib.Path(tempfile.mkdtemp()) / "rows.tfrecord")
        >>> dataset.NumpySlicesDataset({"x": [1, 2]}, shuffle=False).save(path, 1, "tfrecord")
        >>> rows = dataset.TFRecordDataset(path, shuffle=False).create_dict_iterator(1, True)
        >>> [row["x"].tolist() for row in rows]
        [[1], [2]]
    """

    def __init__(
        self,
        dataset_files: Paths,
        schema: SchemaLike = None,
        columns_list: Sequence[str] | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | samplers.Shuffle = samplers.Shuffle.GLOBAL,
        num_shards: int | None = None,
        shard_id: int | None = None,
        shard_equal_rows: bool = False,
        cache: object = None,
        compression_type: str | None = None,
    ) -> None:
        if compression_type not in (None, ""):
            raise ArgumentValueError(
                f"TFRecordDataset: got compression_type={compression_type!r}; only files that are "
                "not compressed are read"
            )
        files = sorted(files_of("TFRecordDataset", dataset_files))
        self._schema = schema_of(schema)
        if self._schema is not None:
            names = [c["name"] for c in self._schema.columns]
        else:
            first = next(records(files[0], "TFRecordDataset"), b"")
            try:
                names = sorted(parse_example(first))
            except ValueError as error:
                raise damaged("TFRecordDataset", files[0], error) from None
        wanted = [columns_list] if isinstance(columns_list, str) else columns_list
        super().__init__(list(wanted or names))
        self._equal_shards = bool(shard_equal_rows)
        self._setup(files, shuffle, num_samples, num_shards, shard_id, num_parallel_workers, cache)

    def _read(self, path: pathlib.Path) -> Iterator[bytes]:
        return records(path, "TFRecordDataset")

    def _decode(self, raw: object) -> Row:
        features = parse_example(cast("bytes", raw))
        columns = {} if self._schema is None else {c["name"]: c for c in self._schema.columns}
        row = []
        for name in self._columns:
            if name not in features:
                raise ValueError(f"a row has no feature {name!r}; it has {sorted(features)}")
            row.append(_column(name, features[name], columns.get(name)))
        return tuple(row)


def _column(name: str, value: list[bytes] | Array, column: SchemaColumn | None) -> Array:
    """Convert a decoded feature to an array with the dtype and shape of the schema's `column`.

    Without a schema (None), a single string becomes the uint8 array of its bytes, and any other
    value an array as it is.

    Raises:
        ValueError: the value does not fit the dtype or shape; `name` is the column.
    """
    made = np.array(value) if isinstance(value, list) else value
    if column is None:
        one = isinstance(value, list) and len(value) == 1
        return np.frombuffer(value[0], np.uint8).copy() if one else made
    kind, shape = column["type"], column.get("shape")
    try:
        if kind == "string":
            made = np.array([v.decode() if isinstance(v, bytes) else str(v) for v in value])
        elif isinstance(value, list) and kind != "bytes":
            made = np.frombuffer(b"".join(value), kind)
        elif kind != "bytes":
            made = made.astype(kind)
        return made if shape is None else made.reshape(shape)
    except (ValueError, UnicodeDecodeError) as error:
        raise ValueError(f"column {name!r} does not fit ({error})") from None
