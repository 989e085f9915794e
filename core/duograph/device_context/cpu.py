"""Number and availability of the devices of the target "CPU" (`mindspore.device_context.cpu`).

Users call its functions, which ask `hal`.
"""

from __future__ import annotations

from .. import hal as _hal

__all__ = ["device_count", "is_available"]


def device_count() -> int:
    """Return how many devices the target ``"CPU"`` has: one.

    Examples:
        >>> import duograph as ms
        >>> ms.device_context.cpu.device_count()
        1
    """
    return _hal.device_count("CPU")


def is_available() -> bool:
    """Return whether the target ``"CPU"`` can be used.

    Examples:
        >>> import duograph as ms
        >>> ms.device_context.cpu.is_available()
        True
    """
    return _hal.is_available("CPU")
