"""What a device with a grid of work items must bring, and what it is asked to run: plans, made of
launches.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...dtype import DType
from ..codegen.dialect import GridDialect
from ..protocol import Handle
from .index_errors import IndexRecord
from .tiles import GroupTiles, Tiles

if TYPE_CHECKING:
    from .matmul import Matmul

__all__ = ["GridDevice", "Launch", "Plan", "Scalar"]

# An argument that is no buffer: its dtype and its value.
Scalar = tuple[DType, Any]


@dataclasses.dataclass(frozen=True)
class Launch:
    """One launch of one kernel.

    Attributes:
        source: the text of the kernel; the dialect's prelude comes before it.
        name: of the kernel in that text.
        buffers: its first arguments, as places: operands are 0, 1, ..., then come results, then
            scratch; `RECORD` is the device's record of wrong indices.
        scalars: its other arguments, in order.
        groups: how many groups of work items, along three axes.
        size: work items of a group, along three axes.
    """

    source: str
    name: str
    buffers: tuple[int, ...]
    scalars: tuple[Scalar, ...]
    groups: tuple[int, int, int]
    size: tuple[int, int, int]


@dataclasses.dataclass(frozen=True)
class Plan:
    """What one call of an op launches, in order.

    Attributes:
        launches: those of no groups are left out.
        scratch: bytes of each buffer that lives during the call.
    """

    launches: tuple[Launch, ...]
    scratch: tuple[int, ...] = ()


class GridDevice:
    """One device. A backend makes a subclass; `GridBackend.device` returns its instances.

    Attributes:
        dialect: the language of its kernels.
        serial: whether a work item is a thread of a processor, which does best with long loops over
            neighbouring elements. Kernels then give each item a stretch of work, in groups of one
            item; otherwise each item has one element, and a group shares a row.
        group: work items in a group that shares a row or a tile; a power of two, at most what the
            device takes.
        units: compute units; work is cut into some times as many pieces.
        shared_bytes: memory that the items of a group share.
        capabilities: of "fp64", "int64".
        record: of wrong indices; `GridBackend` makes it.
        tiles: of matrix products, of the kind that `serial` asks for; None: the default.
    """

    dialect: GridDialect
    serial: bool = False
    group: int = 256
    units: int = 1
    shared_bytes: int = 32768
    capabilities: frozenset[str] = frozenset()
    record: IndexRecord | None = None
    tiles: Tiles | GroupTiles | None = None

    def build(self, source: str) -> Any:
        """The module of a whole source text, prelude included; equal texts are asked for once.

        Raises:
            DeviceError: it does not build; the message names files with the source and the
                compiler's log.
        """
        raise NotImplementedError(f"{type(self).__name__}: has no build()")

    def launcher(
        self,
        module: Any,
        name: str,
        groups: tuple[int, int, int],
        size: tuple[int, int, int],
        buffers: int,
        scalars: Sequence[Scalar],
    ) -> Callable[..., None]:
        """A function of so many handles that launches the kernel; it returns before the kernel has
        run.

        Launches run in order. A handle may be dropped as soon as the function has returned.
        """
        raise NotImplementedError(f"{type(self).__name__}: has no launcher()")

    def matmul(self, problem: Matmul) -> Launch | None:
        """The device's own kernel for a product, or None.

        Convolutions come here too: their operands compute where an element lies.
        """
        return None

    def allocate(self, nbytes: int, what: str) -> Handle:
        """A handle to so many uninitialised bytes; it owns them. `nbytes` may be 0.

        Raises:
            DeviceMemoryError: there is not that much; `what` names the op for the message.
        """
        raise NotImplementedError(f"{type(self).__name__}: has no allocate()")

    def copy_in(self, array: np.ndarray[Any, Any]) -> Handle:
        """A handle to a copy of a C-contiguous array."""
        raise NotImplementedError(f"{type(self).__name__}: has no copy_in()")

    def copy_out(
        self, handle: Handle, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> np.ndarray[Any, Any]:
        """The values, when all that was launched before has run."""
        raise NotImplementedError(f"{type(self).__name__}: has no copy_out()")

    def synchronize(self) -> None:
        """Return when everything launched so far has run."""
        raise NotImplementedError(f"{type(self).__name__}: has no synchronize()")

    def memory_stats(self) -> dict[str, int]:
        """As `Backend.memory_stats`; `copies_in` and `copies_out` count the copies from and to the
        host.
        """
        return {}

    def empty_cache(self) -> None:
        """Give cached free memory back."""

    def compiler(self) -> str:
        """What builds the sources, with its version: a line for `duograph devices`."""
        return self.dialect.name
