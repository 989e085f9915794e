"""The public functions that choose devices and report their memory.

Users call them through `duograph`; nothing inside the package does. The functions must not allocate
device memory, because that would change what they report.
"""

from __future__ import annotations

from .. import context
from ..backend import registry
from ..backend.checked_calls import memory_of, naming, wait_for
from ..call_names import name_call
from ..errors import DeviceError
from ..placement import device_of
from ..types import Device

__all__ = [
    "set_device", "get_current_device", "synchronize", "memory_stats", "memory_allocated",
    "memory_reserved", "max_memory_allocated", "empty_cache",
]  # fmt: skip


def set_device(device_target: str, device_id: int | None = None) -> None:
    """Choose the device on which later ops run (`mindspore.set_device`).

    Raises:
        RuntimeError: no such backend, it cannot run here, or it has no device of that index.

    Examples:
        >>> import duograph as ms
        >>> ms.set_device("CPU")
        >>> ms.get_current_device()
        CPU:0
    """
    asked = {"device_target": device_target, "device_id": device_id or 0}
    settled = context.settle("set_device", asked)
    try:
        chosen = device_of(f"{settled['device_target']}:{settled['device_id']}")
    except DeviceError as error:
        name_call(error, "set_device")
        raise
    context.set_context(device_target=chosen.name, device_id=chosen.index)


def get_current_device() -> Device:
    """Return the current device, which runs ops whose operands are all still on the host."""
    return registry.current_device()


def _where(device: str | None) -> Device:
    return registry.current_device() if device is None else device_of(device)


def synchronize(device: str | None = None) -> None:
    """Wait until all work launched on a device has finished.

    `device` is a name such as "CPU:0"; None is the current device.
    """
    where = _where(device)
    wait_for(registry.backend(where.name), where.index)


def memory_stats(device: str | None = None) -> dict[str, int]:
    """Return the allocator's statistics: bytes `in_use`, `cached`, `peak`, `limit`, and counts.

    `device` is a name such as "CPU:0"; None is the current device.

    Examples:
        >>> import duograph as ms
        >>> stats = ms.memory_stats("CPU")
        >>> stats["in_use"] <= stats["peak"]
        True
    """
    where = _where(device)
    return memory_of(registry.backend(where.name), where.index)


def memory_allocated(device: str | None = None) -> int:
    """Return the bytes of device memory in use by tensors.

    `device` is a name such as "CPU:0"; None is the current device.
    """
    return int(memory_stats(device).get("in_use", 0))


def memory_reserved(device: str | None = None) -> int:
    """Return the bytes of device memory in use by tensors or kept in the allocator's cache.

    `device` is a name such as "CPU:0"; None is the current device.
    """
    stats = memory_stats(device)
    return int(stats.get("in_use", 0) + stats.get("cached", 0))


def max_memory_allocated(device: str | None = None) -> int:
    """Return the highest number of bytes of device memory that were in use at one time so far.

    `device` is a name such as "CPU:0"; None is the current device.
    """
    return int(memory_stats(device).get("peak", 0))


def empty_cache(device: str | None = None) -> None:
    """Give device memory that the allocator has cached back to the system.

    `device` is a name such as "CPU:0"; None is the current device.
    """
    where = _where(device)
    backend = registry.backend(where.name)
    with naming(backend, "empty_cache"):
        backend.empty_cache(where.index)
