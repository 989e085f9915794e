"""The kernel table: builders of plans by the name of the op.

A builder takes the device, operand types, result types and the op's attributes by keyword, and
returns a plan, or None when it has no kernel for this combination; the op is then taken apart:

    @kernel("gather")
    def gather(device, types, results, *, axis): ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .device import Plan

__all__ = ["KERNELS", "Builder", "kernel"]

Builder = Callable[..., Plan | None]

KERNELS: dict[str, Builder] = {}


def kernel(*names: str) -> Callable[[Any], Any]:
    """Enter a builder into the table under the names of the ops it serves."""

    def enter(builder: Builder) -> Builder:
        for name in names:
            KERNELS[name] = builder
        return builder

    return enter
