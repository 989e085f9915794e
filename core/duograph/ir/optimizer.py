"""The interface through which lowering calls the graph passes.

Passes match op objects, so `duograph.passes` must be imported after the op families, but lowering
is imported before them. The package `duograph` therefore installs a function here that imports the
passes when they are first needed. Nothing here may import the passes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol, TypeAlias

from ..backend.protocol import Backend
from ..op import Op
from ..types import Device, TensorType
from .graph import Attributes, Graph

__all__ = ["Optimizer", "Watch", "install_optimizer", "optimizer"]

# Called with the name of a pass and the graph after it.
Watch: TypeAlias = Callable[[str, Graph], None]


class Optimizer(Protocol):
    """Interface of the graph passes for code that lowers graphs.

    `duograph.passes` implements it.
    """

    def optimize(
        self,
        graph: Graph,
        device: Device,
        level: str,
        watch: Watch | None,
        notes: list[str],
        state: Collection[int],
    ) -> Graph:
        """Run all passes of a jit level (O0, O1, O2) on a graph; return the optimised graph.

        Args:
            graph: the graph, which is not changed.
            device: the device that will run the graph; the passes ask its backend for costs and
                kernels.
            level: the jit level.
            watch: function that is called with the name of each pass and the graph after it, or
                None.
            notes: list to which passes append lines for the user.
            state: indices of the graph parameters that receive Parameters which the graph does not
                write.
        """

    def decomposition(
        self,
        backend: Backend,
        op: Op,
        types: tuple[TensorType | None, ...],
        attributes: Attributes,
    ) -> Graph | None:
        """Return the optimised graph of an op's decomposition on a backend, or None.

        The decomposition is the backend's own, or else the op's Python body or decomposition rule;
        the result is None if none of these exists. The graph takes operands of the given types;
        None is an absent optional operand.

        Raises:
            BackendError: the backend's decomposition failed.
        """


_loaders: list[Callable[[], Optimizer]] = []


def install_optimizer(load: Callable[[], Optimizer]) -> None:
    """Set the function that loads the graph passes, which lowering calls when first needed."""
    _loaders[:] = [load]


def optimizer() -> Optimizer:
    """Return the graph passes (an `Optimizer`), loaded at first use."""
    return _loaders[0]()
