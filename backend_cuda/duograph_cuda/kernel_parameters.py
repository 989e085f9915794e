"""Reads from a compiled CUDA image how many parameters a kernel has, and their sizes.

The driver copies as many arguments as the kernel has parameters, without knowing how many a launch
passes. `CudaDevice.launcher` therefore compares the two numbers. Nothing here loads an image.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

__all__ = ["parameter_sizes"]

# Attributes in the section .nv.info.KERNEL of a cubin: one parameter; the bytes of all parameters.
# A record is a byte for the form of the value, a byte for the attribute, and two bytes: the value,
# or in form 4 the size of the value that follows.
_PARAMETER, _ALL_PARAMETERS, _SIZED = 0x17, 0x19, 4
_PTX_SIZE = re.compile(r"\.[a-z]+(\d+)\b")
_PTX_ARRAY = re.compile(r"\[(\d+)\]\s*$")


def parameter_sizes(image: bytes, name: str) -> tuple[int, ...] | None:
    """Return the sizes in bytes of the parameters of a kernel, in order.

    The result is None if the image does not say it in a form that is known here.

    Args:
        image: a cubin, or PTX as text.
        name: name of the kernel.
    """
    if not image.startswith(b"\x7fELF"):
        return _in_ptx(image.decode("ascii", "replace"), name)
    try:
        info = _section(image, f".nv.info.{name}")
        return None if info is None else _in_records(list(_records(info)))
    except (struct.error, ValueError, IndexError):
        return None  # the driver says what is wrong with a damaged image


def _in_records(records: list[tuple[int, bytes]]) -> tuple[int, ...] | None:
    """Return the sizes of parameters from the records (attribute, value) of a cubin's section."""
    sizes: dict[int, int] = {}
    for attribute, value in records:
        if attribute == _PARAMETER:
            _, place, _, flags = struct.unpack("<IHHI", value)
            sizes[place] = flags >> 18
    if sorted(sizes) != list(range(len(sizes))):
        return None
    if not sizes and any(attribute == _ALL_PARAMETERS for attribute, _ in records):
        return None  # parameters in another form
    return tuple(sizes[k] for k in range(len(sizes)))


def _section(image: bytes, name: str) -> bytes | None:
    """Return the contents of a section of an ELF file of 64 bits; None if there is none."""
    (table,) = struct.unpack_from("<Q", image, 40)
    size, count, names = struct.unpack_from("<HHH", image, 58)
    headers = [struct.unpack_from("<IIQQQQ", image, table + size * k) for k in range(count)]
    texts = headers[names][4]
    for where, _, _, _, begin, nbytes in headers:
        at = texts + where
        if image[at : image.index(b"\0", at)] == name.encode():
            return image[begin : begin + nbytes]
    return None


def _records(info: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield (attribute, value) of each record of a section .nv.info.KERNEL."""
    at = 0
    while at < len(info):
        form, attribute, value = struct.unpack_from("<BBH", info, at)
        at += 4
        nbytes = value if form == _SIZED else 0
        yield attribute, info[at : at + nbytes]
        at += nbytes


def _in_ptx(text: str, name: str) -> tuple[int, ...] | None:
    """Return the sizes of the parameters of a kernel from PTX."""
    entry = re.search(rf"\.entry\s+{re.escape(name)}\s*\(([^)]*)\)", text)
    if entry is None:
        return None
    sizes = []
    for parameter in filter(str.strip, entry[1].split(",")):
        kind, length = _PTX_SIZE.search(parameter), _PTX_ARRAY.search(parameter)
        if kind is None:
            return None
        sizes.append(int(kind[1]) // 8 * (int(length[1]) if length else 1))
    return tuple(sizes)
