"""DLPack capsules of memory on any device, made and read through NumPy.

Backends and the core use it. NumPy owns the structures of a capsule and frees them at the right
time, but supports host memory only. `capsule_of` therefore lets NumPy describe an array, and writes
another device or element type into the description; `array_of` does the reverse. An array over the
memory of another device is an address and a shape: its elements must not be read.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..dtype import STORAGE, as_dtype, bfloat16
from ..errors import ArgumentError, DTypeError

if TYPE_CHECKING:
    from ..host_arrays import Array

__all__ = ["HOST", "Exporter", "array_at", "array_of", "capsule_of", "device_of", "source_of"]

# DLPack's device type and number of the memory of the host.
HOST = (1, 0)
# The codes of DLPack for kinds of elements, and the element types of duograph among them.
_INT, _UINT, _FLOAT, _BFLOAT, _COMPLEX, _BOOL = 0, 1, 2, 4, 5, 6
_KINDS = {"i": _INT, "u": _UINT, "f": _FLOAT, "c": _COMPLEX, "b": _BOOL}
_VERSIONED, _UNVERSIONED = b"dltensor_versioned", b"dltensor"
# Bytes before the DLTensor in a versioned structure: version, context, deleter, flags.
_LEAD = 32


class Exporter(Protocol):
    """Interface of an object that shares its memory through Python's DLPack protocol."""

    @property
    def __dlpack__(self) -> Callable[..., object]: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...


class _DLTensor(ctypes.Structure):
    """The C structure DLTensor of DLPack, which describes a tensor's memory."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    ]


_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.argtypes, _is_valid.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_int
_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_get_pointer.restype = ctypes.c_void_p


def _described(capsule: object) -> _DLTensor:
    """Return the DLTensor structure inside a DLPack capsule that no consumer has used yet.

    It is not a copy: changes to it change the capsule.

    Raises:
        ArgumentError: `capsule` is not a DLPack capsule, or was used before.
    """
    for name, lead in ((_VERSIONED, _LEAD), (_UNVERSIONED, 0)):
        if type(capsule).__name__ == "PyCapsule" and _is_valid(capsule, name):
            return _DLTensor.from_address(_get_pointer(capsule, name) + lead)
    raise ArgumentError(
        f"from_dlpack: got {capsule!r}; wanted an object with __dlpack__, or a DLPack capsule that "
        "was not used before"
    )


# ---- making capsules ----------------------------------------------------------------------------


class _Place:
    """An object with NumPy's array interface for memory at a given address."""

    def __init__(self, pointer: int, shape: tuple[int, ...], text: str, owner: object) -> None:
        self.owner = owner
        self.__array_interface__ = {
            "data": (pointer, False), "shape": shape, "typestr": text, "version": 3,
        }  # fmt: skip


def array_at(
    pointer: int, shape: tuple[int, ...], dtype: np.dtype[np.generic], owner: object
) -> Array:
    """Return an array over dense memory at an address of any device; it keeps `owner` alive."""
    plain = np.dtype(np.uint16) if dtype == bfloat16.np else dtype
    if 0 in shape:
        return np.empty(shape, dtype)
    return np.asarray(_Place(pointer, shape, plain.str, owner)).view(dtype)


def capsule_of(
    array: Array, device: tuple[int, int] = HOST, max_version: tuple[int, int] | None = None
) -> object:
    """Return a DLPack capsule of an array's memory, which keeps the array alive.

    Args:
        array: an array in host memory, or one that `array_at` made.
        device: DLPack's type and number of the device where the memory is.
        max_version: the newest version of DLPack that the consumer knows; None means a version
            before 1.0.

    Raises:
        BufferError: NumPy cannot share the array, for instance because it is read-only or has a
            dtype that only stores values, such as int4.
    """
    if array.dtype in [d.np for d in STORAGE]:
        raise BufferError(
            f"__dlpack__: got an array of {array.dtype}; wanted a dtype that others read by "
            "DLPack, as after x.astype(float32)"
        )
    short = array.dtype == bfloat16.np
    shared = array.view(np.uint16) if short else array
    try:
        capsule = shared.__dlpack__(max_version=max_version)  # type: ignore[call-arg,unused-ignore]
    except TypeError:  # NumPy before 2.1
        capsule = shared.__dlpack__()
    found = _described(capsule)
    found.device_type, found.device_id = device
    if short:
        found.code = _BFLOAT
    if device != HOST and not array.size:
        found.data = None
    return capsule


# ---- reading capsules ---------------------------------------------------------------------------


class _Once:
    """Wraps a DLPack capsule in an object whose method ``__dlpack__`` returns the capsule."""

    def __init__(self, capsule: object) -> None:
        found = _described(capsule)
        self.device = int(found.device_type), int(found.device_id)
        self.capsule = capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, **_: object) -> object:
        return self.capsule


def source_of(value: Any) -> Exporter:
    """Return an object with ``__dlpack__`` and ``__dlpack_device__``: `value`, or its wrapper.

    Raises:
        ArgumentError: `value` is neither such an object nor an unused capsule.
    """
    if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
        return value
    return _Once(value)


def device_of(source: Exporter) -> tuple[int, int]:
    """Return DLPack's type and number of the device where the memory of `source` is."""
    kind, number = source.__dlpack_device__()
    return int(kind), int(number)


class _Lent:
    """Wraps an object so that NumPy makes an array from its DLPack capsule, whatever its device.

    The array gives shape, strides and address; its elements must not be read unless the host can
    read the memory. NumPy refuses capsules of other devices than the host. `__dlpack__` therefore
    writes the host into the capsule; `restore` writes the true device back.
    """

    def __init__(self, source: Exporter, stream: int | None) -> None:
        self.source = source
        self.stream = {} if stream is None else {"stream": stream}
        self.restore: Callable[[], None] = lambda: None

    def __dlpack_device__(self) -> tuple[int, int]:
        return HOST

    def __dlpack__(self, **options: Any) -> Any:
        """Return a capsule of the wrapped object that describes host memory of a NumPy dtype."""
        known = {k: v for k, v in options.items() if k == "max_version"}
        try:
            capsule = self.source.__dlpack__(**self.stream, **known)
        except TypeError:  # an object that knows no versions
            capsule = self.source.__dlpack__(**self.stream)
        found = _described(capsule)
        before = found.device_type, found.device_id, found.code
        self.dtype = _dtype_of(found)

        def restore() -> None:
            found.device_type, found.device_id, found.code = before

        self.restore = restore
        found.device_type, found.device_id = HOST
        if found.code == _BFLOAT:
            found.code = _UINT
        return capsule


def _dtype_of(found: _DLTensor) -> np.dtype[np.generic]:
    """Return the element type of a DLTensor.

    Raises:
        DTypeError: duograph has no such dtype.
    """
    code, bits = found.code, found.bits
    if found.lanes == 1 and bits % 8 == 0:
        if (code, bits) == (_BFLOAT, 16):
            return bfloat16.np
        for kind, known in _KINDS.items():
            if known == code:
                try:
                    return as_dtype(np.dtype(f"{kind}{bits // 8}")).np
                except TypeError:  # NumPy or duograph has no such type
                    break
    raise DTypeError(
        f"from_dlpack: got elements of DLPack's code {code} with {bits} bits and {found.lanes} "
        "lanes; wanted an element type of duograph"
    )


def array_of(source: Exporter, device: tuple[int, int] = HOST, stream: int | None = None) -> Array:
    """Return an array over the memory of an object with ``__dlpack__``; it keeps the object alive.

    The array may have strides, and may be read-only. If `device` is not the host, its elements
    must not be read; `array.ctypes.data` is the address on the device.

    Args:
        source: an object that `source_of` returned.
        device: DLPack's type and number of the device where the memory must be.
        stream: the consumer's stream, whose later work must see the values; None means the default
            stream.

    Raises:
        BufferError: the memory is on another device, or cannot be shared.
        DTypeError: duograph has no such element type.
    """
    found = device_of(source)
    if found != device:
        raise BufferError(f"from_dlpack: got memory of the DLPack device {found}; wanted {device}")
    lent = _Lent(source, stream)
    try:
        array: Array = np.from_dlpack(lent)
    finally:
        lent.restore()
    return array.view(lent.dtype)
