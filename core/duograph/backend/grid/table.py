"""The kernel table of GPU-style devices, a dict from an op's name to a builder of launch plans.

Kernel modules register builders at import; `GridBackend.plan` looks them up. A builder takes the
device, operand types, result types and the op's attributes by keyword. It returns a plan, or None
if it has no kernel for these types and attributes; the op is then decomposed::

    @kernel("gather")
    def gather(device, types, results, *, axis): ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

from ...types import TensorType
from .device import Plan

__all__ = ["KERNELS", "Builder", "Types", "kernel"]

Builder: TypeAlias = Callable[..., Plan | None]
Types: TypeAlias = tuple[TensorType, ...]
B = TypeVar("B", bound=Builder)

KERNELS: dict[str, Builder] = {}


def kernel(*names: str) -> Callable[[B], B]:
    """Return a decorator that registers a builder of launch plans for the named ops."""

    def register(builder: B) -> B:
        for name in names:
            KERNELS[name] = builder
        return builder

    return register
