"""The devices of this machine, their streams and memory (`mindspore.hal`).

Users call its functions. Streams and events are those of `runtime`; the functions about devices ask
the backend of a device target. Nothing in the package uses this module.
"""

from __future__ import annotations

from .backend import registry
from .backend.protocol import DeviceInfo
from .errors import DeviceError, IndexRangeError
from .execution import device as _device
from .runtime import (
    Event,
    Stream,
    StreamCtx,
    communication_stream,
    current_stream,
    default_stream,
    reset_max_memory_allocated,
    reset_max_memory_reserved,
    reset_peak_memory_stats,
    set_cur_stream,
    synchronize,
)
from .runtime import max_memory_reserved as _max_reserved
from .runtime import memory_stats as _stats
from .runtime import memory_summary as _summary

__all__ = [
    "Event", "Stream", "StreamCtx", "communication_stream", "current_stream", "default_stream",
    "device_count", "empty_cache", "get_arch_list", "get_device_capability", "get_device_name",
    "get_device_properties", "is_available", "is_initialized", "max_memory_allocated",
    "max_memory_reserved", "memory_allocated", "memory_reserved", "memory_stats",
    "memory_summary", "reset_max_memory_allocated", "reset_max_memory_reserved",
    "reset_peak_memory_stats", "set_cur_stream", "synchronize",
]  # fmt: skip


def _infos(device_target: str | None) -> list[DeviceInfo]:
    """Return descriptions of all devices of a backend, by default of the current one."""
    name = registry.current_device().name if device_target is None else device_target
    return registry.backend(registry.check_target(name)).devices()


def device_count(device_target: str | None = None) -> int:
    """Return how many devices a target has, by default the current one.

    Raises:
        RuntimeError: no such target, or it cannot run here.

    Examples:
        >>> import duograph as ms
        >>> ms.hal.device_count("CPU")
        1
    """
    return len(_infos(device_target))


def is_available(device_target: str) -> bool:
    """Return whether a device target, such as ``"CPU"``, is installed and can run here.

    Examples:
        >>> import duograph as ms
        >>> ms.hal.is_available("CPU"), ms.hal.is_available("Ascend")
        (True, False)
    """
    try:
        return device_count(device_target) > 0
    except DeviceError:
        return False


def is_initialized(device_target: str) -> bool:
    """Return whether a target is in use: it is the current one and its backend has started.

    Raises:
        RuntimeError: no such target.
    """
    return registry.check_target(device_target) == registry.current_device().name


def _info(name: str, device_id: int, device_target: str | None) -> DeviceInfo:
    infos = _infos(device_target)
    for info in infos:
        if info.index == device_id:
            return info
    raise IndexRangeError(f"{name}: got device {device_id}; wanted 0 to {len(infos) - 1}")


def get_device_properties(device_id: int, device_target: str | None = None) -> DeviceInfo:
    """Return the name and description of a device, and the size of its memory in bytes.

    Raises:
        IndexError: no such device.
    """
    return _info("get_device_properties", device_id, device_target)


def get_device_name(device_id: int, device_target: str | None = None) -> str:
    """Return the name of a device.

    Raises:
        IndexError: no such device.
    """
    return _info("get_device_name", device_id, device_target).name


def get_device_capability(device_id: int, device_target: str | None = None) -> None:
    """Return None, as MindSpore does for devices whose architecture has no version number.

    Raises:
        IndexError: no such device.
    """
    _info("get_device_capability", device_id, device_target)


def get_arch_list(device_target: str | None = None) -> None:
    """Return None, as MindSpore does for devices without a list of architectures.

    Raises:
        RuntimeError: no such target.
    """
    _infos(device_target)


def memory_stats(device_target: str | None = None) -> dict[str, object]:
    """Return the statistics of a device's memory, as `runtime.memory_stats`."""
    return _stats(device_target)


def memory_summary(device_target: str | None = None) -> str:
    """Return the statistics of a device's memory as a table."""
    return _summary(device_target)


def memory_allocated(device_target: str | None = None) -> int:
    """Return the number of bytes of device memory in use by tensors."""
    return _device.memory_allocated(device_target)


def memory_reserved(device_target: str | None = None) -> int:
    """Return the number of bytes in use by tensors or kept in the allocator's cache."""
    return _device.memory_reserved(device_target)


def max_memory_allocated(device_target: str | None = None) -> int:
    """Return the highest number of bytes that tensors have used at any one time."""
    return _device.max_memory_allocated(device_target)


def max_memory_reserved(device_target: str | None = None) -> int:
    """Return the largest known number of bytes that the allocator has held at any one time."""
    return _max_reserved(device_target)


def empty_cache() -> None:
    """Return the allocator's cached free device memory to the system."""
    _device.empty_cache()
