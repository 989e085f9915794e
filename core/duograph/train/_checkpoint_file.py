"""Reader and writer of checkpoint files, in the format safetensors or in MindSpore's own.

`serialization` and `exported` call it. A safetensors file is the length of the header (8 bytes,
little-endian), the header (JSON: dtype, shape and byte range of each tensor), and the data without
gaps. Strings, and the dtypes that safetensors lacks, are recorded in the metadata. MindSpore's own
format, a protocol buffer of named tensors, is in `_mindspore_checkpoint`. Reading never executes
code from the file, and checks all of it; any defect raises CheckpointError.
"""

from __future__ import annotations

import io
import json
import math
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias, TypeGuard, cast

import numpy as np

from ..dtype import as_dtype
from ..errors import CheckpointError
from ..host_arrays import Array
from ..status_line import counted, status_line
from ._atomic_file import replace_file
from ._encryption import Secret, opened, sealed
from ._mindspore_checkpoint import array_of, read_messages, write_messages

__all__ = ["write", "read"]

# dtype names of safetensors; complex numbers are stored as pairs of reals
_CODES = {
    "bool": "BOOL", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64", "uint8": "U8",
    "uint16": "U16", "uint32": "U32", "uint64": "U64", "float16": "F16", "bfloat16": "BF16",
    "float32": "F32", "float64": "F64", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
}  # fmt: skip
_DTYPES = {code: as_dtype(name) for name, code in _CODES.items()}
_PAIRS = {"complex64": "float32", "complex128": "float64"}
_OWN = "duograph"
_PIECE = 16 << 20  # bytes that are read or written at a time

Entry: TypeAlias = "Array | str"  # a tensor, or a string


def write(path: str, entries: Mapping[str, Entry], crc: bool, secret: Secret | None = None) -> None:
    """Write a checkpoint file of arrays and strings, atomically (see `_atomic_file`).

    The format is MindSpore's own if the path ends in ``.ckpt``, else safetensors. `crc` adds a
    checksum. With `secret`, the file is encrypted; None writes it in the open.
    """
    form = write_messages if path.endswith(".ckpt") else _safetensors
    size = sum(value.nbytes for value in entries.values() if not isinstance(value, str))
    with status_line(f"saving {path}", size, "bytes") as line:
        chunks: Iterable[bytes] = form(entries, crc)
        if secret is not None:
            chunks = sealed(list(chunks), secret)
        replace_file(path, counted(_pieces(chunks), line, len))


def _pieces(chunks: Iterable[bytes]) -> Iterator[memoryview]:
    """Split chunks of bytes into pieces of `_PIECE` bytes, between which progress is shown."""
    for chunk in chunks:
        for at in range(0, len(chunk), _PIECE):
            yield memoryview(chunk)[at : at + _PIECE]


def _code(name: str, dtype: str) -> str:
    """Return the safetensors name of a dtype; `name` is the checkpoint entry, for messages.

    Raises:
        CheckpointError: safetensors has no such dtype.
    """
    if dtype not in _CODES:
        raise CheckpointError(
            f"save_checkpoint: got {name!r} of {dtype}, which the format safetensors does not "
            f"have; save to a file that ends in .ckpt, or cast it to int8"
        )
    return _CODES[dtype]


def _safetensors(entries: Mapping[str, Entry], crc: bool) -> list[bytes]:
    """Return the content of a safetensors file as chunks of bytes; `crc` adds a checksum."""
    header: dict[str, object] = {}
    chunks: list[bytes] = []
    offset = 0
    notes: dict[str, Any] = {"version": 1, "texts": {}, "complex": {}, "order": []}
    check = 0
    for name, value in entries.items():
        notes["order"].append(name)
        if crc:
            check = _crc(name, value, check)
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
        header[name] = {
            "dtype": _code(name, dtype.name), "shape": shape,
            "data_offsets": [offset, offset + len(data)],
        }  # fmt: skip
        chunks.append(data)
        offset += len(data)
    if crc:
        notes["crc32"] = check
    header["__metadata__"] = {_OWN: json.dumps(notes)}
    head = json.dumps(header, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)  # data starts at a multiple of 8
    chunks.insert(0, len(head).to_bytes(8, "little") + head)
    return chunks


def _crc(name: str, value: Entry, before: int) -> int:
    """Return the CRC-32 of a checkpoint's entries up to and including this one.

    The checksum covers each entry's name, type and value. `before` is the CRC-32 of the earlier
    entries.
    """
    if isinstance(value, str):
        return zlib.crc32(json.dumps([name, "text", value]).encode(), before)
    head = json.dumps([name, as_dtype(value.dtype).name, value.shape])
    return zlib.crc32(value.tobytes(), zlib.crc32(head.encode(), before))


def read(path: str, check_crc: bool, secret: Secret | None = None) -> dict[str, Entry]:
    """Read all entries of a checkpoint file, name -> value, in the order in which they were saved.

    With `check_crc`, the file's checksum is verified. `secret` is None for a file that is not
    encrypted.

    Raises:
        CheckpointError: the file does not exist, is truncated, has another format, fails the
            checksum, or cannot be decrypted with `secret`.
    """
    try:
        data = _content(path)
    except FileNotFoundError:
        raise CheckpointError(f"load_checkpoint: got {path!r}; there is no such file") from None
    except IsADirectoryError:
        raise CheckpointError(
            f"load_checkpoint: got {path!r}; it is a folder, wanted a file"
        ) from None
    if not data:
        raise CheckpointError(f"load_checkpoint: {path!r} is empty; wanted a checkpoint")
    data = opened(path, data, secret)
    if _looks_like_safetensors(data):
        return _read_safetensors(path, data, check_crc)
    try:
        return read_messages(data, check_crc)
    except ValueError as error:
        raise CheckpointError(
            f"load_checkpoint: {path!r} is no checkpoint, or a damaged one ({error}; it starts "
            f"with {data[:16]!r}); wanted a file that save_checkpoint wrote, here or in MindSpore, "
            "or a .safetensors file"
        ) from None


def _content(path: str) -> bytes:
    """Return the content of a file; a terminal shows the progress if it takes over a second."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        with status_line(f"loading {path}", size, "bytes") as line:
            if not line.shown:
                return file.read()
            made = io.BytesIO()
            for piece in counted(iter(lambda: file.read(_PIECE), b""), line, len):
                made.write(piece)
            return made.getvalue()


def _looks_like_safetensors(data: bytes) -> bool:
    return len(data) > 8 and data[8:9] == b"{" and int.from_bytes(data[:8], "little") < 100_000_000


def _read_safetensors(path: str, data: bytes, check_crc: bool) -> dict[str, Entry]:
    try:
        notes, arrays = _parts(data)
        found = _entries(notes, arrays)
    except ValueError as error:
        raise CheckpointError(
            f"load_checkpoint: {path!r} is truncated or damaged ({error}); nothing was loaded"
        ) from None
    if check_crc:
        check = 0
        for name, value in found.items():
            check = _crc(name, value, check)
        if notes.get("crc32") != check:
            known = "has no checksum" if "crc32" not in notes else "does not match its checksum"
            raise CheckpointError(f"load_checkpoint: {path!r} {known}; nothing was loaded")
    return found


def _parts(data: bytes) -> tuple[dict[str, object], dict[str, Array]]:
    """Parse a safetensors file; return (metadata that duograph wrote, stored arrays by name).

    Complex arrays are still pairs of reals, as the file stores them.

    Raises:
        ValueError: the file is damaged.
    """
    length = int.from_bytes(data[:8], "little")
    header = _json("the header", data[8 : 8 + length])
    metadata = _dictionary("__metadata__", header.pop("__metadata__", {}))
    text = metadata.get(_OWN, "{}")
    if not isinstance(text, str):
        raise ValueError(f"the metadata of {_OWN} is {type(text).__name__}, wanted a text")
    return _json(f"the metadata of {_OWN}", text), _arrays(header, memoryview(data)[8 + length :])


def _json(what: str, text: str | bytes) -> dict[str, object]:
    """Parse a JSON object; raise ValueError if it is damaged or has a key twice.

    `what` names the object in the error.
    """
    try:
        return _dictionary(what, json.loads(text, object_pairs_hook=_distinct))
    except RecursionError:
        raise ValueError(f"{what} is nested too deeply") from None
    except ValueError as error:  # of JSON, of UTF-8, or of a number with too many digits
        raise ValueError(f"{what}: {error}") from None


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a name occurs twice")
    return made


def _dictionary(what: str, value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise ValueError(f"{what} is {type(value).__name__}, wanted a JSON object")
    return value


def _entries(notes: dict[str, object], arrays: dict[str, Array]) -> dict[str, Entry]:
    """Return a checkpoint's tensors and strings in the order in which they were saved.

    Args:
        notes: duograph's own metadata of the file, with the order and the strings.
        arrays: the stored tensors by name.

    Raises:
        ValueError: the metadata is damaged or does not fit the tensors.
    """
    texts = _dictionary("texts", notes.get("texts", {}))
    pairs = _dictionary("complex", notes.get("complex", {}))
    order = notes.get("order", list(arrays))
    if not isinstance(order, list) or not all(isinstance(name, str) for name in order):
        raise ValueError("the order of the entries is no list of names")
    known = {*arrays, *texts}
    if len(order) != len(arrays) + len(texts) or set(order) != known or not known.issuperset(pairs):
        raise ValueError("the metadata lists other entries than the file has")
    found: dict[str, Entry] = {}
    for name in order:
        if name in arrays:
            found[name] = (
                _complex(name, arrays[name], pairs[name]) if name in pairs else arrays[name]
            )
        elif isinstance(texts[name], str):
            found[name] = cast("str", texts[name])
        else:
            raise ValueError(f"{name} is {type(texts[name]).__name__}, wanted a text")
    return found


def _complex(name: str, array: Array, wanted: object) -> Array:
    """Return a stored array of pairs of reals as a complex array.

    Raises ValueError if the array is not what the metadata (`wanted`, a complex dtype) needs.
    """
    if _PAIRS.get(str(wanted)) != array.dtype.name or array.shape[-1:] != (2,):
        raise ValueError(f"{name} has dtype {array.dtype} and shape {array.shape}, not {wanted}")
    return array.view(as_dtype(str(wanted)).np).reshape(array.shape[:-1])


def _arrays(header: dict[str, object], data: memoryview) -> dict[str, Array]:
    """Return the arrays that a safetensors header describes, by name.

    Raises ValueError unless their byte ranges cover `data` exactly, without gaps.
    """
    listed: list[tuple[list[int], str, Any]] = []
    for name, entry in header.items():
        if not name:
            raise ValueError("a tensor has an empty name")
        where = _dictionary(name, entry).get("data_offsets")
        if not _sizes(where) or len(where) != 2:
            raise ValueError(f"{name} has the bytes {where!r}, wanted a first and a last one")
        listed.append((where, name, entry))
    found: dict[str, Array] = {}
    end = 0
    for (first, last), name, entry in sorted(listed, key=lambda item: item[0]):
        code, shape = entry.get("dtype"), entry.get("shape")
        dtype = _DTYPES.get(code) if isinstance(code, str) else None
        if dtype is None:
            raise ValueError(f"{name} has dtype {code!r}, wanted one of {', '.join(_DTYPES)}")
        if not _sizes(shape):
            raise ValueError(f"{name} has shape {shape!r}, wanted a list of sizes")
        size = math.prod(shape) * dtype.itemsize
        if first != end or last - first != size or last > len(data):
            raise ValueError(
                f"{name} of shape {tuple(shape)} has bytes {first} to {last} of {len(data)}, "
                f"wanted {size} bytes from {end}"
            )
        found[name] = array_of(name, data[first:last], dtype, tuple(shape))
        end = last
    if end != len(data):
        raise ValueError(f"{len(data) - end} bytes are left over")
    return found


def _sizes(value: object) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(type(n) is int and n >= 0 for n in value)
