"""The byte format of MindRecord: MessagePack rows, compressed integers and the header.

`writer` and `reader` use it. Files may be malicious: every defect raises MindRecordError.
"""

from __future__ import annotations

import json
import pathlib
import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from ..errors import MindRecordError

__all__ = [
    "DTYPES", "FAILED", "HEADER", "PAGE", "SUCCESS", "MindRecordError", "compressed",
    "decompressed", "packed", "read_header", "unpacked",
]  # fmt: skip

HEADER = 1 << 24  # bytes before the first page
PAGE = 1 << 25  # bytes of a page
SUCCESS, FAILED = "SUCCESS", "FAILED"
DTYPES: dict[str, np.dtype[np.generic]] = {
    "int32": np.dtype(np.int32), "int64": np.dtype(np.int64), "float32": np.dtype(np.float32),
    "float64": np.dtype(np.float64),
}  # fmt: skip

if TYPE_CHECKING:

    class Field(TypedDict, total=False):
        """A field of a schema: a name of `DTYPES`, "string" or "bytes", and of arrays the shape."""

        type: str
        shape: list[int]

    class Page(TypedDict):
        """A page of a file as the header describes it."""

        end_row_id: int
        page_id: int
        page_size: int
        page_type: str
        page_type_id: int
        row_group_ids: list[dict[str, int]]
        shard_id: int
        start_row_id: int

    class Schema(TypedDict):
        """The schema of a header, with the names of the fields that are stored as bytes."""

        blob_fields: list[str]
        desc: str
        schema: dict[str, Field]

    class Header(TypedDict):
        """The header of a file, a JSON object."""

        header_size: int
        index_fields: list[dict[str, str | int]]
        page: list[Page]
        page_size: int
        compression_size: int
        schema: list[Schema]
        shard_addresses: list[str]
        shard_id: int
        statistics: None
        version: str


Scalar: TypeAlias = "int | float | str | bool | None"  # what a row holds beside bytes


# ---- integers -----------------------------------------------------------------------------------

_WIDTHS = [np.dtype(f"<i{n}") for n in (1, 2, 4, 8)]


def compressed(array: NDArray[np.generic]) -> bytes:
    """Encode integers, each in the smallest of 1, 2, 4 and 8 bytes that holds it.

    The encoding is the count (4 bytes, big-endian), two bits per integer for its width, and the
    integers.
    """
    flat = array.ravel().astype(np.int64)
    kinds = np.zeros(len(flat), np.uint8)
    for width, dtype in enumerate(_WIDTHS[:3], 1):
        info = np.iinfo(dtype)
        kinds[(flat < info.min) | (flat > info.max)] = width
    quads = np.zeros(-(-len(flat) // 4) * 4, np.uint8)
    quads[: len(flat)] = kinds
    four = quads.reshape(-1, 4)
    bits = four[:, 0] << 6 | four[:, 1] << 4 | four[:, 2] << 2 | four[:, 3]
    values = b"".join(int(v).to_bytes(1 << k, "little", signed=True) for v, k in zip(flat, kinds))
    return struct.pack(">I", len(flat)) + bits.astype(np.uint8).tobytes() + values


def decompressed(data: bytes, dtype: np.dtype[np.generic]) -> NDArray[np.generic]:
    """Decode the integers that `compressed` has encoded; return an array of `dtype`.

    Raises:
        MindRecordError: there are fewer or more bytes than the integers take.
    """
    if len(data) < 4:
        raise MindRecordError("integers without a count")
    (count,) = struct.unpack_from(">I", data)
    start = 4 + -(-count // 4)
    if start + count > len(data):
        raise MindRecordError(f"{len(data)} bytes for {count} integers")
    bits = np.frombuffer(data, np.uint8, start - 4, 4)
    kinds = np.stack([bits >> 6, bits >> 4 & 3, bits >> 2 & 3, bits & 3], 1).ravel()[:count]
    sizes = 1 << kinds.astype(np.int64)
    if start + int(sizes.sum()) != len(data):
        raise MindRecordError(f"{len(data)} bytes for {count} integers")
    ends = start + np.cumsum(sizes)
    found = [int.from_bytes(data[e - n : e], "little", signed=True) for e, n in zip(ends, sizes)]
    return np.array(found, np.int64).astype(dtype)


# ---- MessagePack --------------------------------------------------------------------------------


def packed(row: Mapping[str, object]) -> bytes:
    """Encode a row of numbers and strings as a MessagePack map with sorted keys."""
    out = bytearray([0x80 | len(row)] if len(row) < 16 else b"\xde" + struct.pack(">H", len(row)))
    for key in sorted(row):
        _pack(out, key)
        _pack(out, row[key])
    return bytes(out)


def _pack(out: bytearray, value: object) -> None:
    """Append the MessagePack encoding of a string or number to `out`."""
    if isinstance(value, str):
        data = value.encode()
        if len(data) < 32:
            out.append(0xA0 | len(data))
        elif len(data) < 256:
            out += bytes([0xD9, len(data)])
        elif len(data) < 1 << 16:
            out += b"\xda" + struct.pack(">H", len(data))
        else:
            out += b"\xdb" + struct.pack(">I", len(data))
        out += data
    elif isinstance(value, int):
        if 0 <= value < 128:
            out.append(value)
        elif value >= 0:
            for code, form, top in _UNSIGNED:
                if value < top:
                    out += bytes([code]) + struct.pack(form, value)
                    break
        elif value >= -32:
            out += struct.pack(">b", value)
        else:
            for code, form, top in _SIGNED:
                if value >= -top:
                    out += bytes([code]) + struct.pack(form, value)
                    break
    else:
        out += b"\xcb" + struct.pack(">d", value)


_UNSIGNED = (
    (0xCC, ">B", 1 << 8), (0xCD, ">H", 1 << 16), (0xCE, ">I", 1 << 32), (0xCF, ">Q", 1 << 64),
)  # fmt: skip
_SIGNED = (
    (0xD0, ">b", 1 << 7), (0xD1, ">h", 1 << 15), (0xD2, ">i", 1 << 31), (0xD3, ">q", 1 << 63),
)  # fmt: skip
_NUMBERS = {
    0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b",
    0xD1: ">h", 0xD2: ">i", 0xD3: ">q",
}  # fmt: skip
_TEXTS = {0xD9: ">B", 0xDA: ">H", 0xDB: ">I"}


def unpacked(data: bytes) -> dict[str, Scalar]:
    """Decode a row: a MessagePack map from strings to numbers and strings.

    Raises:
        MindRecordError: the bytes do not begin with such a map.
    """
    try:
        at = 0
        if data[at] >> 4 == 8:
            count, at = data[at] & 15, 1
        elif data[at] == 0xDE:
            count, at = struct.unpack_from(">H", data, 1)[0], 3
        else:
            raise MindRecordError(f"a row starts with byte {data[at]:#x}; wanted a map")
        found = {}
        for _ in range(count):
            key, at = _unpack(data, at)
            found[key], at = _unpack(data, at)
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise MindRecordError(f"a row is damaged ({error})") from None
    if at != len(data) or not all(isinstance(k, str) for k in found):
        raise MindRecordError("a row is damaged")
    return cast("dict[str, Scalar]", found)


def _unpack(data: bytes, at: int) -> tuple[Scalar, int]:
    """Decode a MessagePack string or number at offset `at`; return (value, next offset)."""
    code = data[at]
    at += 1
    if code < 0x80:
        return code, at
    if code >= 0xE0:
        return code - 256, at
    if code in _NUMBERS:
        form = _NUMBERS[code]
        return struct.unpack_from(form, data, at)[0], at + struct.calcsize(form)
    if code in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[code], at
    if code >> 5 == 5:
        size = code & 31
    elif code in _TEXTS:
        (size,) = struct.unpack_from(_TEXTS[code], data, at)
        at += struct.calcsize(_TEXTS[code])
    else:
        raise MindRecordError(f"a row holds the unknown code {code:#x}")
    if at + size > len(data):
        raise MindRecordError("a row ends inside a text")
    return data[at : at + size].decode(), at + size


# ---- the header ---------------------------------------------------------------------------------


def read_header(path: pathlib.Path, plain: pathlib.Path | None = None) -> Header:
    """Return the header of a file.

    `plain` is the file with its decrypted content, if that is another one.

    Raises:
        MindRecordError: the file cannot be read, or is no MindRecord file.
    """
    try:
        content = plain or path
        with open(content, "rb") as file:
            (size,) = struct.unpack("<Q", file.read(8))
            if size > content.stat().st_size:
                raise MindRecordError(f"{path} is no MindRecord file: its header is too long")
            found = json.loads(file.read(size))
        fields = found["schema"][0]["schema"]
        blobs = found["schema"][0]["blob_fields"]
        sizes = found["header_size"], found["page_size"]
        if not all(isinstance(n, int) and n > 0 for n in sizes) or not isinstance(fields, dict):
            raise MindRecordError(f"{path} is damaged: its header has the sizes {sizes}")
        if not set(blobs) <= set(fields):
            raise MindRecordError(f"{path} is damaged: its schema lacks a field")
        for field in fields.values():
            if field["type"] not in (*DTYPES, "string", "bytes"):
                raise MindRecordError(f"{path} has the unknown type {field['type']!r}")
    except (OSError, struct.error, ValueError, KeyError, TypeError, IndexError) as error:
        if isinstance(error, MindRecordError):
            raise
        raise MindRecordError(f"{path} is no MindRecord file ({error})") from None
    return found
