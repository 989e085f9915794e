"""Copies buffers between devices without the host, and shares them with other libraries by DLPack.

`Tensor.move_to` and the DLPack functions of `Tensor` call it. Two devices of one backend copy by
`Backend.copy_between`, two backends through DLPack; where neither works, the caller copies the
values through the host. The module checks what a backend returns and must not read values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from .backend import registry
from .backend.checked_calls import (
    checked_array,
    checked_copy,
    checked_dlpack_device,
    checked_import,
    copying,
    from_device,
    naming,
)
from .backend.dlpack import HOST, capsule_of
from .backend.plugin_checks import shown_value
from .backend.protocol import Backend, Handle
from .errors import BackendError
from .placement import check_dtype
from .types import Device, TensorType

if TYPE_CHECKING:
    from .backend.dlpack import Exporter
    from .host_arrays import Array

__all__ = ["Shared", "copied", "copied_out_later", "imported"]


# ---- copies -------------------------------------------------------------------------------------


def copied(type_: TensorType, handle: Handle, target: Device) -> Handle | None:
    """Return a copy of a buffer in new memory of a device, made without the host, or None.

    Returns None if the devices cannot copy in this way.

    Args:
        type_: the type of the tensor, with its device.
        handle: the tensor's buffer.
        target: the device to copy to, which may be that of the tensor.

    Raises:
        DTypeError: `target` has no such dtype.
        BackendError: a backend failed, or returned an invalid value.
    """
    source = type_.committed_device
    backend = registry.backend(target.name)
    check_dtype(backend, type_.dtype, target)
    if source.name == target.name:
        method = "copy_between"
        with naming(backend, method), copying(
            backend, "between devices", target.index, type_.nbytes
        ) as report:  # fmt: skip
            made = backend.copy_between(
                handle, type_.shape, type_.dtype.np, source.index, target.index
            )
            report.happened = made is not None
    else:
        method = "from_dlpack"
        with copying(backend, "between devices", target.index, type_.nbytes) as report:
            made = _through_dlpack(type_, handle, backend, target)
            report.happened = made is not None
    if made is None:
        return None
    return checked_copy(backend, method, made, handle, type_.nbytes, target.index)


def _through_dlpack(
    type_: TensorType, handle: Handle, backend: Backend, target: Device
) -> Handle | None:
    """Return a copy, made through DLPack, of another backend's buffer on the device `target`.

    Returns None if one of the two backends has no DLPack.
    """
    if checked_dlpack_device(backend, target.index) is None:
        return None
    shared = Shared(type_, handle)
    if shared.device is None:
        return None
    try:
        with naming(backend, "from_dlpack"):
            found = backend.from_dlpack(shared, target.index, True)
    except BufferError:
        return None
    if found is None:
        return None
    made, shape, dtype = checked_import(backend, found)
    if (shape, dtype) != (type_.shape, type_.dtype):
        raise BackendError(
            f"{backend.name}: from_dlpack() returned {dtype.name}{list(shape)} for {type_.plain!r}"
        )
    return made


def copied_out_later(type_: TensorType, handle: Handle) -> Callable[[], Array] | None:
    """Start a copy of a buffer to the host; return a function that waits for the array.

    The function returns the array and may be called once. The result is None if the backend cannot
    copy asynchronously.

    Raises:
        BackendError: the backend failed, or returned no function.
    """
    device = type_.committed_device
    backend = registry.backend(device.name)
    shape, dtype = type_.shape, type_.dtype.np
    with naming(backend, "copy_out_async"):
        wait = backend.copy_out_async(handle, shape, dtype, device.index)
    if wait is None:
        return None
    if not callable(wait):
        raise BackendError(
            f"{backend.name}: copy_out_async() returned {shown_value(wait)}; wanted a function "
            "that waits for the array, or None"
        )

    def arrived(kept: Handle = handle) -> Array:
        with naming(backend, "copy_out_async"), copying(
            backend, "from device", device.index, type_.nbytes
        ):  # fmt: skip
            found = wait()
        return checked_array(backend, "copy_out_async", found, shape, dtype)

    return arrived


# ---- DLPack -------------------------------------------------------------------------------------


class Shared:
    """The memory of a tensor's buffer as an object with ``__dlpack__``.

    Args:
        type_: the type of the tensor, with its device.
        held: the tensor's buffer handle, or a NumPy array if the type has no device.

    Attributes:
        device: (device type, device number) of the memory in DLPack's terms. None if the backend
            has no DLPack; capsules then contain a copy on the host.
    """

    def __init__(self, type_: TensorType, held: Handle) -> None:
        self.type = type_
        self.held = held
        self.device: tuple[int, int] | None = HOST
        if type_.device is not None:
            self.backend = registry.backend(type_.device.name)
            self.device = checked_dlpack_device(self.backend, type_.device.index)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device or HOST

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """Return a DLPack capsule, as the protocol of Python's array libraries says.

        Raises:
            BufferError: the memory cannot be shared, or only by a copy where `copy` is False.
        """
        wanted = self.device or HOST if dl_device is None else tuple(map(int, dl_device))
        if self.type.device is None and wanted == HOST:
            return capsule_of(np.array(self.held) if copy else self.held, HOST, max_version)
        if wanted == self.device:
            try:
                return self._own(stream, max_version, copy is True)
            except BufferError:
                if wanted != HOST:
                    raise
        if wanted != HOST:
            raise BufferError(
                f"__dlpack__: got dl_device={wanted} for memory of {self.device or HOST}; wanted "
                f"that, or the host {HOST}"
            )
        if copy is False:
            raise BufferError(
                f"__dlpack__: got copy=False for a tensor on {self.type.device}, which can only be "
                "copied to the host; wanted None or True"
            )
        return capsule_of(self._on_host(), HOST, max_version)

    def _own(self, stream: int | None, max_version: tuple[int, int] | None, copy: bool) -> object:
        """Return a DLPack capsule of the buffer or, with `copy`, of a copy on the same device.

        `stream` and `max_version` are those of ``__dlpack__``.

        Raises:
            BufferError: with `copy`: the device cannot copy its memory.
        """
        type_, handle = self.type, self.held
        device = type_.committed_device
        if copy:
            handle = copied(type_, handle, device)
            if handle is None:
                raise BufferError(f"__dlpack__: {device} makes no copies of its memory")
        with naming(self.backend, "to_dlpack"):
            return self.backend.to_dlpack(
                handle, type_.shape, type_.dtype.np, device.index, stream, max_version
            )

    def _on_host(self) -> Array:
        """Return a copy of the values on the host."""
        type_ = self.type
        index = type_.committed_device.index
        return np.array(from_device(self.backend, self.held, type_.shape, type_.dtype.np, index))


def imported(source: Exporter, where: tuple[int, int]) -> tuple[TensorType, Handle]:
    """Return the type of an object with ``__dlpack__``, and a buffer that uses its memory.

    The buffer is on the current device if that can use the memory, else on the first device that
    can.

    Args:
        source: the object.
        where: (device type, device number) of its memory in DLPack's terms.

    Raises:
        BufferError: no device here can use the memory.
    """
    failures = []
    for device in _devices():
        try:
            found = _imported_to(device, source, where)
        except BackendError as error:
            failures.append(str(error))
            continue
        if found is not None:
            return found
    raise BufferError(
        "; ".join(
            [f"from_dlpack: got memory of the DLPack device {where}, and no device here uses it"]
            + failures
        )
    )


def _imported_to(
    device: Device, source: Exporter, where: tuple[int, int]
) -> tuple[TensorType, Handle] | None:
    """Return (type, buffer) as `imported` does, for one device; None if it cannot use the data."""
    backend = registry.backend(device.name)
    if checked_dlpack_device(backend, device.index) != where:
        return None
    with naming(backend, "from_dlpack"):
        found = backend.from_dlpack(source, device.index, False)
    if found is None:
        return None
    handle, shape, dtype = checked_import(backend, found)
    return TensorType.of(shape, dtype).on(device), handle


def _devices() -> Iterator[Device]:
    """Yield the current device, then the other devices that can run here."""
    first = registry.current_device()
    yield first
    for entry in list(registry.entries().values()):
        if registry.problem_of(entry) is None and entry.backend is not None:
            for info in entry.backend.devices():
                device = Device(entry.name, info.index)
                if device is not first:
                    yield device
