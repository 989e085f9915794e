"""The interface that a GPU-style device driver implements, and descriptions of kernel launches.

`GridBackend` and the kernel builders use a `GridDevice`; a backend subclasses it for its driver.
`Launch` and `Plan` are data: this module builds and runs no kernel.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ...dtype import DType
from ...errors import DeviceError
from ..codegen.dialect import GridDialect
from ..protocol import Handle
from .index_errors import IndexRecord
from .tiles import GroupTiles, Tiles

if TYPE_CHECKING:
    from ...host_arrays import Array
    from .matmul import Matmul

__all__ = ["GridDevice", "GroupTooLargeError", "Launch", "Plan", "Scalar", "fitting"]

T = TypeVar("T")

# A kernel argument other than a buffer: its dtype and its value.
Scalar = tuple[DType, object]


@dataclasses.dataclass(frozen=True)
class Launch:
    """Description of one kernel launch: source, buffers, scalar arguments and number of work items.

    Attributes:
        source: source of the kernel, without the dialect's prelude.
        name: the kernel's name in that source.
        buffers: numbers of the buffers that are its first arguments: operands are 0, 1, ..., then
            come results, then scratch buffers; `RECORD` stands for the device's record of wrong
            indices.
        scalars: the kernel's other arguments, as (dtype, value), in order.
        groups: number of groups of work items along three axes.
        size: number of work items of a group along three axes.
    """

    source: str
    name: str
    buffers: tuple[int, ...]
    scalars: tuple[Scalar, ...]
    groups: tuple[int, int, int]
    size: tuple[int, int, int]


@dataclasses.dataclass(frozen=True)
class Plan:
    """The kernel launches that compute one op call, in order.

    Attributes:
        launches: the launches; those with 0 groups are skipped.
        scratch: size in bytes of each temporary buffer of the call.
    """

    launches: tuple[Launch, ...]
    scratch: tuple[int, ...] = ()


class GroupTooLargeError(DeviceError):
    """Raised if a compiled kernel cannot run with the number of work items per group of its launch.

    A kernel's own limit depends on the registers and the shared memory that the compiler gave it.

    Attributes:
        limit: the most work items that a group may have; at least 1.
    """

    def __init__(self, message: str, limit: int) -> None:
        super().__init__(message)
        self.limit = limit


class GridDevice:
    """Interface of one device with a grid of work items: build, launch, allocate, copy.

    Attributes:
        dialect: the language of its kernels.
        serial: whether a work item is a thread of a CPU, which is fastest with long loops over
            adjacent elements. Each work item then computes a range of elements, in groups of one
            item; otherwise each item computes a few adjacent elements, and a group computes a row
            together.
        group: number of work items of a group that computes a row or a tile; a power of two, within
            the device's limit.
        widest: number of work items of the largest group that may compute a long row.
        units: number of compute units; work is divided into a small multiple of this number.
        shared_bytes: bytes of shared memory of a group.
        capabilities: names of what the device can do. Kernels need "fp64" for 64-bit floats.
        record: buffer for reports of wrong indices; `GridBackend` creates it.
        tiles: tile sizes of matmul, `Tiles` if `serial`, else `GroupTiles`; None means the default.
    """

    dialect: GridDialect
    serial: bool = False
    group: int = 256
    widest: int = 256
    units: int = 1
    shared_bytes: int = 32768
    capabilities: frozenset[str] = frozenset()
    record: IndexRecord | None = None
    tiles: Tiles | GroupTiles | None = None

    def build(self, source: str) -> object:
        """Compile a kernel source that includes the prelude; return the compiled module.

        Raises:
            DeviceError: the source does not compile; the message names files with the source and
                the log.
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
        """Return a function that launches a kernel of a built module and does not wait for it.

        The function takes buffer handles; `buffers` is their number. Launches run in order. The
        caller may drop a handle as soon as the function has returned. `name` is the kernel's name;
        `groups`, `size` and `scalars` are as in `Launch`.

        Raises:
            GroupTooLargeError: the kernel cannot run with groups of that size; `fitting` then plans
                smaller groups.
        """
        raise NotImplementedError(f"{type(self).__name__}: has no launcher()")

    def computing(self, run: Callable[..., None], nbytes: int, what: str) -> Callable[..., Handle]:
        """Return a function that allocates a result, launches a kernel and returns the result.

        `run` is a function that `launcher` returned, perhaps wrapped. The new function takes all
        handles but the last, which is the result, of `nbytes` bytes; `what` names the op in errors.
        """
        allocate = self.allocate

        def computed(*operands: Handle) -> Handle:
            out = allocate(nbytes, what)
            run(*operands, out)
            return out

        return computed

    def matmul(self, problem: Matmul) -> Launch | None:
        """Return the launch of a matmul kernel that this device has of its own, or None.

        None means that the kernels of this package are used. Convolutions call this method too,
        with operands whose offsets are computed.
        """
        return None

    def narrowed(self, group: int) -> GridDevice:
        """Return a description of this device that allows groups of at most `group` work items.

        Plans are made for the description; the device itself builds and launches their kernels.
        """
        narrow = copy.copy(self)
        narrow.group = min(self.group, group)
        narrow.widest = min(self.widest, group)
        return narrow

    def allocate(self, nbytes: int, what: str) -> Handle:
        """Return a buffer handle that owns `nbytes` (possibly 0) bytes of device memory.

        Raises:
            DeviceMemoryError: there is not enough memory; `what` names the op for the message.
        """
        raise NotImplementedError(f"{type(self).__name__}: has no allocate()")

    def copy_in(self, array: Array) -> Handle:
        """Copy a C-contiguous host array to a new device buffer; return its handle."""
        raise NotImplementedError(f"{type(self).__name__}: has no copy_in()")

    def copy_out(
        self, handle: Handle, shape: tuple[int, ...], dtype: np.dtype[np.generic]
    ) -> Array:
        """Copy a device buffer to a host array, after all kernels launched before have run."""
        raise NotImplementedError(f"{type(self).__name__}: has no copy_out()")

    def nbytes(self, handle: Handle) -> int | None:
        """Return the size in bytes of the buffer behind a handle; None if it is unknown."""
        return None

    def synchronize(self) -> None:
        """Wait until all kernels launched so far have run."""
        raise NotImplementedError(f"{type(self).__name__}: has no synchronize()")

    def memory_stats(self) -> dict[str, int]:
        """Return memory statistics as `Backend.memory_stats` does, and counts of transfers."""
        return {}

    def empty_cache(self) -> None:
        """Give the cached free buffers back to the driver."""

    def compiler(self) -> str:
        """Return a line that names the kernel compiler and its version, for `duograph devices`."""
        return self.dialect.name


def fitting(device: GridDevice, make: Callable[[GridDevice], T]) -> T:
    """Return `make(device)`, with smaller groups of work items if a kernel cannot run otherwise.

    `make` plans launches for its argument, which is `device` or a copy of it with a lower limit of
    the group size, and builds them on `device`.

    Raises:
        GroupTooLargeError: a kernel does not run even with the smallest groups.
    """
    planned = device
    while True:
        try:
            return make(planned)
        except GroupTooLargeError as error:
            if planned.group == 1:
                raise
            limit = max(1, min(error.limit, planned.group // 2))
            planned = planned.narrowed(1 << (limit.bit_length() - 1))
