"""Calls of the methods of a backend that copy data, wait or count memory, with checks.

The core uses these functions in place of the methods. If a method fails or returns an invalid
value, they raise BackendError, which names the backend and the method, and says what was returned
and what was expected. Exceptions that the plugin interface allows in a method pass unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, TypeGuard

import numpy as np

from ..dtype import DType, as_dtype
from ..errors import BackendError, DuographError
from . import observers
from .plugin_checks import array_text, error_text, is_int, shown_value
from .prepared import Handle
from .protocol import Backend

if TYPE_CHECKING:
    from ..host_arrays import Array

__all__ = [
    "bytes_of",
    "checked_array",
    "checked_copy",
    "checked_dlpack_device",
    "checked_import",
    "copying",
    "from_device",
    "memory_of",
    "naming",
    "on_device",
    "shared",
    "to_device",
    "wait_for",
]

# Exceptions that a method of a backend may raise: they reach the user unchanged.
_UNCHANGED = (DuographError, MemoryError, IndexError)


def _raised(backend: Backend, method: str, error: BaseException) -> BackendError:
    return BackendError(f"{backend.name}: {method}() raised {error_text(error)}")


@contextmanager
def naming(backend: Backend, method: str) -> Iterator[None]:
    """Return a context manager that turns an unexpected error of a backend into BackendError.

    The BackendError names the backend and the method. Exceptions of duograph, MemoryError,
    IndexError and BufferError (by which DLPack refuses memory) pass unchanged.

    Raises:
        BackendError: any other exception was raised inside.
    """
    try:
        yield
    except (*_UNCHANGED, BufferError):
        raise
    except Exception as error:
        raise _raised(backend, method, error) from error


# ---- data between host and device ----------------------------------------------------------------


def to_device(backend: Backend, array: Array, device_id: int) -> Handle:
    """Copy a C-contiguous host array to a device of a backend; return the buffer handle.

    Raises:
        BackendError: the backend failed, or returned None.
    """
    try:
        if observers.state.take is None:
            handle = backend.copy_in(array, device_id)
        else:
            with copying(backend, "to device", device_id, array.nbytes):
                handle = backend.copy_in(array, device_id)
    except _UNCHANGED:
        raise
    except Exception as error:
        raise _raised(backend, "copy_in", error) from error
    if handle is None:
        raise BackendError(f"{backend.name}: copy_in() returned None; wanted a handle")
    return handle


def on_device(backend: Backend, array: Array, device_id: int) -> Handle:
    """Return a buffer handle for a host array that only the caller refers to.

    The buffer shares the array's memory if the backend can do that; otherwise the array is copied.

    Raises:
        BackendError: the backend failed, or returned None in place of a handle.
    """
    handle = shared(backend, array, device_id)
    return to_device(backend, np.ascontiguousarray(array), device_id) if handle is None else handle


def shared(backend: Backend, array: Array, device_id: int) -> Handle | None:
    """Return a buffer handle that shares a host array's memory (`Backend.from_host`), or None.

    Raises:
        BackendError: the backend failed.
    """
    try:
        return backend.from_host(array, device_id)
    except _UNCHANGED:
        raise
    except Exception as error:
        raise _raised(backend, "from_host", error) from error


def from_device(
    backend: Backend,
    handle: Handle,
    shape: tuple[int, ...],
    dtype: np.dtype[np.generic],
    device_id: int,
) -> Array:
    """Copy the values behind a buffer handle to a host array of the given shape and dtype.

    Raises:
        BackendError: the backend failed, or returned something else than an array of that shape and
            dtype.
    """
    try:
        if observers.state.take is None:
            found = backend.copy_out(handle, shape, dtype, device_id)
        else:
            with copying(backend, "from device", device_id, math.prod(shape) * dtype.itemsize):
                found = backend.copy_out(handle, shape, dtype, device_id)
    except _UNCHANGED:
        raise
    except Exception as error:
        text = f"copy_out() of {shown_value(handle)} as {dtype}{list(shape)} raised"
        raise BackendError(
            f"{backend.name}: {text} {error_text(error)}. If a kernel made this handle, "
            "set_context(debug=True) says which"
        ) from error
    return checked_array(backend, "copy_out", found, shape, dtype)


def copying(
    backend: Backend, name: str, device_id: int, nbytes: int
) -> AbstractContextManager[observers.Report]:
    """Return a context manager whose `with` block is reported to observers as one copy.

    Observers are objects that users or plugins register to be notified of kernels, copies and
    compilations. The block may set `happened` of the yielded object to False if it copies nothing.

    Args:
        name: "to device", "from device" or "between devices".
        backend, device_id: the device, which is reported as, for example, "CUDA:0".
        nbytes: number of bytes that the block copies.
    """
    return observers.reporting("copy", name, f"{backend.name}:{device_id}", nbytes)


def checked_array(
    backend: Backend,
    method: str,
    found: object,
    shape: tuple[int, ...],
    dtype: np.dtype[np.generic],
) -> Array:
    """Return the array that a method of a backend returned, if it has the given shape and dtype.

    Raises:
        BackendError: the method returned something else.
    """
    if (
        isinstance(found, np.ndarray)
        and found.shape == shape
        and (found.dtype is dtype or found.dtype == dtype)
    ):
        return found
    got = array_text(found) if isinstance(found, np.ndarray) else shown_value(found)
    raise BackendError(
        f"{backend.name}: {method}() returned {got}; wanted an array of {dtype} {list(shape)}"
    )


# ---- waiting and memory --------------------------------------------------------------------------


def wait_for(backend: Backend, device_id: int) -> None:
    """Wait until all work launched on a device has finished (`Backend.synchronize`).

    An error that a kernel found, such as an IndexError, may be raised here.

    Raises:
        BackendError: the method failed in another way.
    """
    with naming(backend, "synchronize"):
        backend.synchronize(device_id)


def memory_of(backend: Backend, device_id: int) -> dict[str, int]:
    """Return what a backend's `memory_stats` returned, if these are numbers of bytes by name.

    Raises:
        BackendError: the method failed, or returned something else.
    """
    with naming(backend, "memory_stats"):
        found: object = backend.memory_stats(device_id)
    if not isinstance(found, Mapping):
        raise BackendError(
            f"{backend.name}: memory_stats() returned {shown_value(found)}; wanted a dict of ints "
            "by name, such as {'in_use': 0}"
        )
    for name, value in found.items():
        if not isinstance(name, str) or not _is_count(value):
            raise BackendError(
                f"{backend.name}: memory_stats() has {shown_value(name)}: {shown_value(value)}; "
                "wanted a name and an int from 0 on"
            )
    return {name: int(value) for name, value in found.items()}


def _is_count(value: object) -> TypeGuard[int]:
    """Return whether a value is an int from 0 on, of Python or NumPy."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and int(value) >= 0


def bytes_of(backend: Backend, handle: Handle, device_id: int) -> int | None:
    """Return the bytes of device memory behind a handle, or None if the backend does not know.

    Raises:
        BackendError: `nbytes` failed, or returned something else.
    """
    with naming(backend, "nbytes"):
        found: object = backend.nbytes(handle, device_id)
    if found is None:
        return None
    if _is_count(found):
        return int(found)
    raise BackendError(
        f"{backend.name}: nbytes() returned {shown_value(found)}; wanted the number of bytes, or "
        "None if it is not known"
    )


# ---- copies between devices, DLPack --------------------------------------------------------------


def checked_copy(
    backend: Backend, method: str, found: Handle, source: Handle, nbytes: int, device_id: int
) -> Handle:
    """Return `found`, the handle of a copy that a backend's method made, after checking it.

    Raises:
        BackendError: `found` is `source`, the handle of the original, and `nbytes` is not 0; or the
            memory of `found` is known to have fewer than `nbytes` bytes.
    """
    if found is source and nbytes:
        raise BackendError(
            f"{backend.name}: {method}() returned the handle that it was to copy; wanted a handle "
            "of other memory, or None"
        )
    has = bytes_of(backend, found, device_id)
    if has is not None and has < nbytes:
        raise BackendError(
            f"{backend.name}: {method}() returned memory of {has} bytes; wanted {nbytes}"
        )
    return found


def checked_dlpack_device(backend: Backend, device_id: int) -> tuple[int, int] | None:
    """Return DLPack's (type, number) of a backend's device, or None if its memory has none.

    Raises:
        BackendError: `dlpack_device` failed, or returned anything but None or a pair of ints.
    """
    with naming(backend, "dlpack_device"):
        found = backend.dlpack_device(device_id)
    if found is None:
        return None
    if isinstance(found, tuple) and len(found) == 2 and all(map(is_int, found)):
        return found
    raise BackendError(
        f"{backend.name}: dlpack_device() returned {shown_value(found)}; wanted DLPack's device "
        "type and number, such as (2, 0), or None"
    )


def checked_import(backend: Backend, found: object) -> tuple[Handle, tuple[int, ...], DType]:
    """Return the handle, the shape and the dtype that `from_dlpack` of a backend returned.

    Raises:
        BackendError: the method returned something else, or a dtype that the backend does not
            declare.
    """
    if isinstance(found, tuple) and len(found) == 3:
        handle, shape, dtype = found
        if (
            handle is not None
            and isinstance(shape, tuple)
            and all(is_int(n) and n >= 0 for n in shape)
            and isinstance(dtype, np.dtype)
            and any(dtype == known.np for known in backend.dtypes)
        ):
            return handle, shape, as_dtype(dtype)
    raise BackendError(
        f"{backend.name}: from_dlpack() returned {shown_value(found)}; wanted a handle, a shape "
        "and a NumPy dtype among those of the backend, or None"
    )
