"""The interface through which lowering calls the graph passes.

Passes match op objects, so `duograph.passes` lies above the op families, and lowering below them.
The package `duograph` therefore installs a function here that imports them when they are first
needed. Nothing here may import them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol, TypeAlias

from ..op import Op
from ..types import Device, TensorType
from .graph import Attributes, Graph

__all__ = ["Optimizer", "Watch", "install_optimizer", "optimizer"]

# Called with the name of a pass and the graph after it.
Watch: TypeAlias = Callable[[str, Graph], None]


class Optimizer(Protocol):
    """Interface of the graph passes that lowering calls."""

    def optimize(
        self,
        graph: Graph,
        device: Device,
        level: str,
        watch: Watch | None,
        notes: list[str],
        state: Collection[int],
    ) -> Graph:
        """Return the graph after all passes of a jit level, for the backend of `device`.

        Passes append lines for the user to `notes`; `state` are parameters that hold state which
        the graph does not write.
        """

    def body_of(
        self, op: Op, types: tuple[TensorType | None, ...], attributes: Attributes
    ) -> Graph:
        """Return the optimised body, or decomposition, of an op for operands of given types."""


_loaders: list[Callable[[], Optimizer]] = []


def install_optimizer(load: Callable[[], Optimizer]) -> None:
    """Install the object through which lowering runs the graph passes."""
    _loaders[:] = [load]


def optimizer() -> Optimizer:
    """Return the installed object through which lowering runs the graph passes."""
    return _loaders[0]()
