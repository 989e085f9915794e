"""Reader and writer of checkpoint files. The format is safetensors, whatever the file's suffix.

`serialization` and `exported` call it. A file is the length of the header (8 bytes, little-endian),
the header (JSON: dtype, shape and byte range of each tensor), and the data without gaps. Strings,
and the dtypes that safetensors lacks, are recorded in the metadata. MindSpore's own format (a
protocol buffer of named tensors) can be read but not written. Reading never executes code from the
file, and every length and byte range is checked.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..dtype import ALL, DType, as_dtype
from ..errors import CheckpointError

__all__ = ["write", "read"]

# dtype names of safetensors; complex numbers are stored as pairs of reals
_CODES = {
    "bool": "BOOL", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64", "uint8": "U8",
    "uint16": "U16", "uint32": "U32", "uint64": "U64", "float16": "F16", "bfloat16": "BF16",
    "float32": "F32", "float64": "F64",
}  # fmt: skip
_DTYPES = {code: as_dtype(name) for name, code in _CODES.items()}
_PAIRS = {"complex64": "float32", "complex128": "float64"}
_OWN = "duograph"

Array: TypeAlias = np.ndarray[Any, Any]
Entry: TypeAlias = "Array | str"  # a tensor, or a string


def write(path: str, entries: Mapping[str, Entry], crc: bool) -> None:
    """Write a checkpoint file of arrays and strings atomically: old or complete new content."""
    header: dict[str, Any] = {}
    chunks: list[bytes] = []
    offset = 0
    notes: dict[str, Any] = {"version": 1, "texts": {}, "complex": {}}
    order: list[str] = []
    check = 0
    for name, value in entries.items():
        order.append(name)
        if isinstance(value, str):
            notes["texts"][name] = value
            continue
        array = np.ascontiguousarray(value).reshape(value.shape)
        dtype = as_dtype(array.dtype)
        shape = list(array.shape)
        if dtype.is_complex:
            notes["complex"][name] = dtype.name
            dtype = as_dtype(_PAIRS[dtype.name])
            shape.append(2)
        data = array.tobytes()
        if crc:
            check = zlib.crc32(data, zlib.crc32(name.encode(), check))
        header[name] = {
            "dtype": _CODES[dtype.name], "shape": shape,
            "data_offsets": [offset, offset + len(data)],
        }  # fmt: skip
        chunks.append(data)
        offset += len(data)
    notes["order"] = order
    if crc:
        notes["crc32"] = check
    header["__metadata__"] = {_OWN: json.dumps(notes)}
    head = json.dumps(header, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)  # data starts at a multiple of 8
    _replace_file(path, [len(head).to_bytes(8, "little") + head, *chunks])


def _replace_file(path: str, chunks: list[bytes]) -> None:
    """Replace the file `path` atomically by writing a temporary file, flushing and renaming it."""
    folder = os.path.dirname(os.path.abspath(path))
    os.makedirs(folder, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=".", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as f:
            f.writelines(chunks)
            f.flush()
            os.fsync(f.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def read(path: str, check_crc: bool) -> dict[str, Entry]:
    """Read all (name, value) entries of a checkpoint file, in the order they were saved in.

    Raises:
        CheckpointError: the file does not exist, is truncated, or has another format.
    """
    try:
        with open(path, "rb") as f:
            data = f.read()
    except FileNotFoundError:
        raise CheckpointError(f"load_checkpoint: got {path!r}; there is no such file") from None
    except IsADirectoryError:
        raise CheckpointError(
            f"load_checkpoint: got {path!r}; it is a folder, wanted a file"
        ) from None
    if not data:
        raise CheckpointError(f"load_checkpoint: {path!r} is empty; wanted a checkpoint")
    if _looks_like_safetensors(data):
        return _read_safetensors(path, data, check_crc)
    if check_crc:
        raise CheckpointError(f"load_checkpoint: {path!r} has no checksum; wanted crc_check=False")
    found = _read_mindspore(data)
    if found is None:
        start = data[:16]
        raise CheckpointError(
            f"load_checkpoint: {path!r} is no checkpoint, or a damaged one (it starts with "
            f"{start!r}); "
            f"wanted safetensors, or MindSpore's format"
        )
    return found


def _looks_like_safetensors(data: bytes) -> bool:
    return len(data) > 8 and data[8:9] == b"{" and int.from_bytes(data[:8], "little") < 100_000_000


def _read_safetensors(path: str, data: bytes, check_crc: bool) -> dict[str, Entry]:
    length = int.from_bytes(data[:8], "little")
    try:
        header = json.loads(data[8 : 8 + length])
        notes = json.loads(header.pop("__metadata__", {}).get(_OWN, "{}"))
        arrays = _arrays(header, memoryview(data)[8 + length :])
        found: dict[str, Entry] = {}
        for name in notes.get("order", arrays):
            if name in notes.get("texts", {}):
                found[name] = str(notes["texts"][name])
                continue
            array = arrays[name]
            complex_name = notes.get("complex", {}).get(name)
            if complex_name:
                array = array.view(as_dtype(complex_name).np).reshape(array.shape[:-1])
            found[name] = array
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise CheckpointError(
            f"load_checkpoint: {path!r} is truncated or damaged ({error}); nothing was loaded"
        ) from None
    if check_crc:
        check = 0
        for name, array in arrays.items():
            check = zlib.crc32(array.tobytes(), zlib.crc32(name.encode(), check))
        if notes.get("crc32") != check:
            known = "has no checksum" if "crc32" not in notes else "does not match its checksum"
            raise CheckpointError(f"load_checkpoint: {path!r} {known}; nothing was loaded")
    return found


def _arrays(header: dict[str, Any], data: memoryview) -> dict[str, Array]:
    """Return a file's tensors; raise ValueError unless their byte ranges cover the data exactly."""
    found: dict[str, Array] = {}
    end = 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        dtype = _DTYPES.get(entry["dtype"])
        if dtype is None:
            raise ValueError(
                f"{name} has dtype {entry['dtype']!r}, wanted one of {', '.join(_DTYPES)}"
            )
        shape = tuple(int(n) for n in entry["shape"])
        first, last = entry["data_offsets"]
        size = math.prod(shape) * dtype.itemsize
        if first != end or last - first != size or last > len(data) or any(n < 0 for n in shape):
            raise ValueError(
                f"{name} of shape {shape} has bytes {first} to {last} of {len(data)}, "
                f"wanted {size} bytes from {end}"
            )
        found[name] = np.frombuffer(data[first:last], dtype.np).reshape(shape)
        end = last
    if end != len(data):
        raise ValueError(f"{len(data) - end} bytes are left over")
    return found


# ---- MindSpore's own files ----------------------------------------------------------------------
# message Checkpoint { repeated Value value = 1; }  Value { string tag = 1; Tensor tensor = 2; }
# Tensor { repeated int64 dims = 1; string tensor_type = 2; bytes tensor_content = 3; }

_BY_DISPLAY: dict[str, DType] = {str(d).lower(): d for d in ALL}


class _Malformed(Exception):
    """Internal error: the bytes of a checkpoint file are not a valid protocol buffer message."""


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Decode a protocol buffer varint at offset `at`; return the integer and the next offset."""
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise _Malformed
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if not byte & 0x80:
            return value, at
        shift += 7


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield (number, value) of each protocol buffer field: varints as int, other kinds as bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
        elif kind == 2:
            length, at = _varint(data, at)
            if at + length > len(data):
                raise _Malformed
            yield key >> 3, data[at : at + length]
            at += length
        else:
            raise _Malformed


class _TensorMessage(NamedTuple):
    """Decoded `Tensor` message of a MindSpore checkpoint; large tensors span several messages."""

    dims: tuple[int, ...]
    dtype: str
    content: bytes


def _tensor_message(data: bytes) -> _TensorMessage:
    dims: list[int] = []
    dtype, content = "", b""
    for field, value in _fields(data):
        if isinstance(value, int):
            if field in (2, 3):
                raise _Malformed
            if field == 1:
                dims.append(value)
        elif field == 1:
            at = 0
            while at < len(value):
                n, at = _varint(value, at)
                dims.append(n)
        elif field == 2:
            dtype = value.decode()
        elif field == 3:
            content = value
    return _TensorMessage(tuple(dims), dtype, content)


def _messages(data: bytes) -> dict[str, list[_TensorMessage]]:
    """Return the `Tensor` messages of a MindSpore `Checkpoint` message, grouped by tag (name)."""
    found: dict[str, list[_TensorMessage]] = {}
    for number, value in _fields(data):
        if number != 1 or not isinstance(value, bytes):
            raise _Malformed
        tag, tensor = "", b""
        for field, content in _fields(value):
            if isinstance(content, int):
                if field in (1, 2):
                    raise _Malformed
            elif field == 1:
                tag = content.decode()
            elif field == 2:
                tensor = content
        found.setdefault(tag, []).append(_tensor_message(tensor))
    return found


def _read_mindspore(data: bytes) -> dict[str, Entry] | None:
    """Return the entries of a MindSpore checkpoint, given as bytes; None for another format."""
    try:
        messages = _messages(data)
    except (_Malformed, UnicodeDecodeError):
        return None
    found: dict[str, Entry] = {}
    for tag, parts in messages.items():
        first = parts[0]
        joined = b"".join(p.content for p in parts)
        if first.dtype == "str":
            found[tag] = joined.decode("utf-32-le")  # a NumPy string
            continue
        dtype = _BY_DISPLAY.get(first.dtype.lower())
        if dtype is None:
            return None
        shape = () if first.dims == (0,) else first.dims
        if math.prod(shape) * dtype.itemsize != len(joined):
            return None
        found[tag] = np.frombuffer(joined, dtype.np).reshape(shape)
    return found or None
