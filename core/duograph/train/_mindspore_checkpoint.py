"""MindSpore's own checkpoint files: a protocol buffer of named tensors, and a checksum at the end.

`_checkpoint_file` calls it. The messages are

    Checkpoint { repeated Value value = 1; }    Value { string tag = 1; Tensor tensor = 2; }
    Tensor { repeated int64 dims = 1; string tensor_type = 2; bytes tensor_content = 3; }

Large tensors span several values of one tag. Every byte that is read is checked, and any defect
raises ValueError.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..dtype import ALL, STORAGE, DType, as_dtype

if TYPE_CHECKING:
    from ..host_arrays import Array

__all__ = ["array_of", "read_messages", "write_messages"]

_BY_DISPLAY: dict[str, DType] = {str(d).lower(): d for d in (*ALL, *STORAGE)}
_LARGEST = 512 << 20  # bytes of one message; a protocol buffer holds less than 2 GiB
_CHECKSUM = b"crc_num"  # stands before the 10 bytes of the checksum, big-endian


def write_messages(entries: Mapping[str, Array | str], crc: bool) -> Iterator[bytes]:
    """Yield the content of a checkpoint file as chunks of bytes; `crc` adds a checksum."""
    check = 0
    for name, value in entries.items():
        if isinstance(value, str):
            shape, kind, data = (0,), "str", value.encode("utf-32-le")
        else:
            array = np.ascontiguousarray(value)
            shape, kind, data = value.shape, str(as_dtype(array.dtype)), array.tobytes()
        dims = b"".join(b"\x08" + _number(n) for n in shape)
        head = dims + _field(2, kind.encode())
        for start in range(0, max(len(data), 1), _LARGEST):
            tensor = head + _field(3, data[start : start + _LARGEST])
            chunk = _field(1, _field(1, name.encode()) + _field(2, tensor))
            if crc:
                check = zlib.crc32(chunk, check)
            yield chunk
    if crc:
        yield _CHECKSUM + check.to_bytes(10, "big")


def _number(value: int) -> bytes:
    """Encode a protocol buffer varint."""
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)


def _field(number: int, content: bytes) -> bytes:
    """Encode protocol buffer field `number` that holds bytes: key, length and content."""
    return bytes([number << 3 | 2]) + _number(len(content)) + content


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Decode a protocol buffer varint at offset `at`; return the integer and the next offset."""
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("a number is cut off or too long")
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
                raise ValueError(f"a field has {len(data) - at} of {length} bytes")
            yield key >> 3, data[at : at + length]
            at += length
        else:
            raise ValueError("its fields are not those of a checkpoint")


def _bytes(what: str, value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError(f"{what} is a number")
    return value


def _text(what: str, value: int | bytes, encoding: str = "utf-8") -> str:
    try:
        return _bytes(what, value).decode(encoding)
    except UnicodeDecodeError:
        raise ValueError(f"{what} is no text in {encoding}") from None


class _TensorMessage(NamedTuple):
    """Decoded `Tensor` message of a MindSpore checkpoint.

    A large tensor is stored as several such messages.
    """

    dims: tuple[int, ...]
    dtype: str
    content: bytes


def _tensor_message(data: bytes) -> _TensorMessage:
    dims: list[int] = []
    dtype, content = "", b""
    for field, value in _fields(data):
        if field == 1 and isinstance(value, int):
            dims.append(value)
        elif field == 1:
            packed, at = _bytes("a shape", value), 0
            while at < len(packed):
                n, at = _varint(packed, at)
                dims.append(n)
        elif field == 2:
            dtype = _text("a dtype", value)
        elif field == 3:
            content = _bytes("the data of a tensor", value)
    return _TensorMessage(tuple(dims), dtype, content)


def _messages(data: bytes) -> dict[str, list[_TensorMessage]]:
    """Return the `Tensor` messages of a MindSpore `Checkpoint` message, grouped by tag (name)."""
    found: dict[str, list[_TensorMessage]] = {}
    for number, value in _fields(data):
        if number != 1:
            raise ValueError(f"there is no field {number}")
        tag, tensor = "", b""
        for field, content in _fields(_bytes("an entry", value)):
            if field == 1:
                tag = _text("a name", content)
            elif field == 2:
                tensor = _bytes("a tensor", content)
        if not tag:
            raise ValueError("a tensor has no name")
        found.setdefault(tag, []).append(_tensor_message(tensor))
    return found


def read_messages(data: bytes, check_crc: bool) -> dict[str, Array | str]:
    """Return the entries of a MindSpore checkpoint, given as bytes.

    Raises:
        ValueError: the bytes are no such checkpoint; or, with `check_crc`, the checksum is missing
            or does not match.
    """
    found: dict[str, Array | str] = {}
    end = len(data) - len(_CHECKSUM) - 10
    if end >= 0 and data[end : end + len(_CHECKSUM)] == _CHECKSUM:
        if check_crc and int.from_bytes(data[-10:], "big") != zlib.crc32(data[:end]):
            raise ValueError("it does not match its checksum")
        data = data[:end]
    elif check_crc:
        raise ValueError("it has no checksum; wanted crc_check=False")
    for tag, parts in _messages(data).items():
        first = parts[0]
        joined = b"".join(p.content for p in parts)
        if first.dtype == "str":
            found[tag] = _text(f"the value of {tag}", joined, "utf-32-le")  # a NumPy string
            continue
        dtype = _BY_DISPLAY.get(first.dtype.lower())
        if dtype is None:
            raise ValueError(f"{tag} has the unknown dtype {first.dtype!r}")
        shape = () if first.dims == (0,) and joined else first.dims
        if math.prod(shape) * dtype.itemsize != len(joined):
            raise ValueError(f"{tag} of shape {shape} has {len(joined)} bytes")
        found[tag] = array_of(tag, joined, dtype, shape)
    return found


def array_of(name: str, data: bytes | memoryview, dtype: DType, shape: tuple[int, ...]) -> Array:
    """Return an array over bytes; the caller has checked that their number fits dtype and shape.

    Raises ValueError if NumPy cannot make such an array; `name` is the tensor's, for the message.
    """
    try:
        made = np.frombuffer(data, dtype.np).reshape(shape)
    except (ValueError, OverflowError) as error:  # too many axes, or too long ones beside a zero
        raise ValueError(f"{name} has shape {shape}: {error}") from None
    if dtype.name == "bool" and (made.view(np.uint8) > 1).any():
        raise ValueError(f"{name} has dtype bool and bytes other than 0 and 1")
    return made
