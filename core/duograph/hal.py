"""The devices of this machine, their streams and memory (`mindspore.hal`).

Users call its functions, and `device_context` does. Streams and events are those of `runtime`; the
functions about devices ask the backend of a device target, such as "CPU".
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
    """Return descriptions of all devices of a device target; None means the current target."""
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

    The device has the number `device_id`, from 0, in the target `device_target`, such as "CPU";
    None means the current target.

    Raises:
        IndexError: no such device.
    """
    return _info("get_device_properties", device_id, device_target)


def get_device_name(device_id: int, device_target: str | None = None) -> str:
    """Return the name of the device with the number `device_id`, from 0, in a device target.

    `device_target` is the target, such as "CPU"; None means the current one.

    Raises:
        IndexError: no such device.
    """
    return _info("get_device_name", device_id, device_target).name


def get_device_capability(device_id: int, device_target: str | None = None) -> None:
    """Return None, as MindSpore does for devices whose architecture has no version number.

    The device has the number `device_id`, from 0, in the target `device_target`, such as "CPU";
    None means the current target.

    Raises:
        IndexError: no such device.
    """
    _info("get_device_capability", device_id, device_target)


def get_arch_list(device_target: str | None = None) -> None:
    """Return None, as MindSpore does for devices without a list of architectures.

    `device_target` is only checked; None means the current target.

    Raises:
        RuntimeError: no such target.
    """
    _infos(device_target)


def memory_stats(device_target: str | None = None) -> dict[str, object]:
    """Return the statistics that `runtime.memory_stats` returns for a device's memory.

    `device_target` names the device, such as "CPU:0"; None means the current device.
    """
    return _stats(device_target)


def memory_summary(device_target: str | None = None) -> str:
    """Return the statistics of a device's memory as a printable table.

    `device_target` names the device, such as "CPU:0"; None means the current device.
    """
    return _summary(device_target)


def memory_allocated(device_target: str | None = None) -> int:
    """Return the number of bytes of a device's memory that tensors use now.

    `device_target` names the device, such as "CPU:0"; None means the current device.
    """
    return _device.memory_allocated(device_target)


def memory_reserved(device_target: str | None = None) -> int:
    """Return the number of bytes of a device's memory in use by tensors or cached for reuse.

    The allocator caches free buffers. `device_target` names the device, such as "CPU:0"; None means
    the current device.
    """
    return _device.memory_reserved(device_target)


def max_memory_allocated(device_target: str | None = None) -> int:
    """Return the peak, in bytes, of the device memory used by tensors since the process started.

    `device_target` names the device, such as "CPU:0"; None means the current device.
    """
    return _device.max_memory_allocated(device_target)


def max_memory_reserved(device_target: str | None = None) -> int:
    """Return a lower bound of the peak, in bytes, of the memory held by a device's allocator.

    It is the greater of the peak in use by tensors and what is held now, in use or cached.
    `device_target` names the device, such as "CPU:0"; None means the current device.
    """
    return _max_reserved(device_target)


def empty_cache() -> None:
    """Return to the system the free memory that the current device's allocator has cached."""
    _device.empty_cache()
