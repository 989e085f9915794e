"""The interface that every backend implements: the methods that the core calls, and their data.

A backend subclasses `Backend`. Tier 1 (`devices`, `copy_in`, `copy_out`, `prepare`) is all that
eager and compiled execution need; tier 2 adds compilation, linking and tuning. This module must not
import a backend.

A *handle* is an object of the backend's choice that owns a device buffer. The core stores it,
passes it back and never looks inside. The backend frees the memory when the last reference to the
handle is gone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ..dtype import ALL, DType
from ..host_arrays import Array
from .costs import DEFAULT_COSTS, Costs
from .prepared import Handle, HandleFunction, LinkedProgram, PreparedCall

if TYPE_CHECKING:
    from ..ir.graph import Graph
    from ..op import Op
    from ..types import TensorType
    from .dlpack import Exporter
    from .health import Finding
    from .observers import DeviceTimer, State, Work
    from .program import Program
    from .streams import Streams

__all__ = ["SEAM_VERSION", "Array", "Backend", "BackendSpec", "DeviceInfo", "Call", "Handle"]

# (major, minor): a plugin built for another major version is refused, naming both.
SEAM_VERSION = (1, 5)

# A plain function from operand handles to result handles is a prepared call without optional facts.
Call: TypeAlias = PreparedCall | HandleFunction


@dataclasses.dataclass(frozen=True)
class DeviceInfo:
    """Description of one device, for `duograph devices`.

    Attributes:
        index: number of the device in the backend, from 0.
        name: name that users know, such as that of the GPU.
        description: further facts, to be shown to users.
        memory_bytes: size of the device memory; 0 if unknown.
    """

    index: int
    name: str
    description: str = ""
    memory_bytes: int = 0


@dataclasses.dataclass(frozen=True)
class BackendSpec:
    """A backend's name and factory, which a plugin's `duograph_backend` hook returns.

    Attributes:
        name: the device_target, such as ``"CPU"``.
        factory: function that makes the backend; called once, at first use. Imports and set-up
            belong here, not in the plugin module.
        priority: if the user sets no device_target, the core uses the available backend of highest
            priority. None means that the backend is used only by name.
        seam_version: the version of the backend interface (`SEAM_VERSION`) that the plugin was
            written for.
        aliases: other names that users may set as device_target.
    """

    name: str
    factory: Callable[[], Backend]
    priority: int | None = 0
    seam_version: tuple[int, int] = SEAM_VERSION
    aliases: tuple[str, ...] = ()


class Backend:
    """Base class of backends: a kind of device, its memory, its kernels and its compiler.

    A subclass sets `name` and implements `devices`, `copy_in`, `copy_out` and `prepare`. All other
    methods are optional.

    Attributes:
        name: the device_target.
        dtypes: dtypes that tensors may have on this backend.
        host_fallback: how an op runs that has neither a kernel nor a decomposition here. ``"off"``:
            it raises; ``"warn"``: its reference runs on the host, with one warning per op;
            ``"on"``: its reference runs on the host without warnings. Runs on the host are counted.
        epilogues: ops, such as matmul, that may start a region given to `compile`, followed by
            element-wise ops on their result (tier 2).
        decomposed: ops that have kernels for eager calls, but are replaced in compiled functions by
            simpler ops, which can be fused.
        decompositions: op name -> function with the signature of the op that calls other ops. It
            takes the place of the op's own decomposition where the backend has no kernel; it may
            return NotImplemented for operands that it does not take.
        symbolic_sizes: whether `prepare`, `compile` and `link` take types whose sizes are symbolic
            (`duograph.backend.sizes`), so that one linked program serves many sizes
            (`LinkedProgram.at`).
        passes: functions from graph to graph that run on compiled functions for this backend, from
            O1 on, before fusion.
    """

    name: str = ""
    dtypes: tuple[DType, ...] = ALL
    host_fallback: str = "off"
    epilogues: frozenset[str] = frozenset()
    decomposed: frozenset[str] = frozenset()
    decompositions: Mapping[str, Callable[..., object]] = MappingProxyType({})
    symbolic_sizes: bool = False
    passes: Sequence[Callable[[Graph], Graph]] = ()

    def available(self) -> str | None:
        """Return None if this backend can run here, else the reason why not; must be cheap."""
        return None

    def devices(self) -> list[DeviceInfo]:
        """Return the backend's devices, at least one if `available()` is None."""
        raise NotImplementedError(f"{type(self).__name__}: has no devices()")

    def copy_in(self, array: Array, device_id: int) -> Handle:
        """Copy a C-contiguous host array to a new device buffer; return its handle."""
        raise NotImplementedError(f"{type(self).__name__}: has no copy_in()")

    def copy_out(
        self, handle: Handle, shape: tuple[int, ...], dtype: np.dtype[np.generic], device_id: int
    ) -> Array:
        """Return the values of a device buffer as a C-contiguous host array.

        The array may share memory with the buffer; it must then keep the handle alive.
        """
        raise NotImplementedError(f"{type(self).__name__}: has no copy_out()")

    def from_host(self, array: Array, device_id: int) -> Handle | None:
        """Return a buffer handle that shares a host array's memory and keeps the array alive.

        Returns None if the device cannot use this memory; the core then calls `copy_in`.
        """
        return None

    def exclusive(self, handle: Handle, device_id: int) -> bool:
        """Return whether only holders of a buffer handle can change the memory behind it.

        Arrays that `copy_out` returned count as holders of the handle. Compiled functions cache
        values computed from exclusive handles. Return False if it is not known.
        """
        return False

    def nbytes(self, handle: Handle, device_id: int) -> int | None:
        """Return the bytes of device memory behind a handle, or None if it is not known.

        Debug mode compares this size with the type of each result. If it is unknown, debug mode
        reads every result back with `copy_out`, which must then raise if the memory is too small.
        """
        return None

    def synchronize(self, device_id: int) -> None:
        """Wait until all kernels launched on the device have finished."""

    def prepare(
        self,
        op: Op,
        types: tuple[TensorType, ...],
        attributes: Mapping[str, object],
        device_id: int,
    ) -> Call | None:
        """Return a prepared kernel call for an op and operand types, or None if there is no kernel.

        The call takes the operands' buffer handles, allocates its results and returns one handle,
        or a tuple if the op has several results. `op.infer_types(types, attributes)` returns the
        result types. An absent optional operand has None in place of a type and of a handle. The
        core caches the returned call; programs and threads may use it at the same time.
        """
        raise NotImplementedError(f"{type(self).__name__}: has no prepare()")

    # ---- tier 2: optional -----------------------------------------------------------------------

    def compiles(self, device_id: int) -> str | None:
        """Return None if `compile` works here, else the reason why not; must be cheap."""
        return "the backend has no compiler of its own"

    def compile(self, regions: Sequence[Graph], device_id: int) -> Sequence[Call | str]:
        """Compile fused regions (`passes.fusion`); called once for all regions of a program.

        A region is a graph of element-wise ops, reductions over trailing axes and reshapes. It may
        gather from operands through indices, and end in reductions over other axes or in a scatter.
        If `epilogues` is not empty, a region may also start with one of these ops
        (`ir.epilogue.epilogue_of` splits it off). The modules of `backend.codegen` plan regions and
        generate their source.

        Returns:
            For each region a call from operand handles to result handles, or the reason why there
            is none. If there is no call, the ops of the region run one by one.
        """
        return [self.compiles(device_id) or ""] * len(regions)

    def region_source(self, region: Graph, device_id: int) -> str | None:
        """Return the source of the kernel that `compile` makes of a region, for users (tier 2).

        Returns None if the backend generates no source for it.
        """
        return None

    def examine(self, device_id: int) -> Sequence[Finding]:
        """Return findings on what makes programs slow on a device, with commands to repair it."""
        return ()

    def costs(self, device_id: int) -> Costs:
        """Return this device's costs and limits, by which graph passes decide what saves time."""
        return DEFAULT_COSTS

    def compiler(self, device_id: int) -> str | None:
        """Return the kernel compiler's name, version and flags, for `duograph devices`, or None."""
        return None

    def tune(self, device_id: int) -> Iterator[str]:
        """Measure and store the backend's kernel tuning parameters, for `duograph tune`.

        Yields a line of text for each measurement and each choice, or nothing if the backend has no
        tuning parameters.
        """
        return iter(())

    def links(self, device_id: int) -> str | None:
        """Return None if `link` works here, else the reason why not; must be cheap."""
        return "the backend links no programs"

    def link(self, program: Program, device_id: int) -> LinkedProgram | HandleFunction | str:
        """Compile a whole lowered graph to one native call, or return the reason why there is none.

        The call takes a sequence of the parameters' handles and returns result handles, which
        outlive it; all other values are in an arena that the core has planned (`Program`). A plain
        function `run(handles, donated=())` may be returned in place of a `LinkedProgram`. If the
        backend returns a reason, the steps of the program run one by one.
        """
        return self.links(device_id) or ""

    def compile_graph(
        self, graph: Graph, device_id: int
    ) -> LinkedProgram | HandleFunction | str | None:
        """Compile a whole typed graph before any op is decomposed or fused.

        The core calls it for compiled functions at jit levels O1 and above whose parameters and
        results are tensors and whose ops have no side effects. A function that draws random numbers
        has the states of the generator as further parameters, uint32 (4,), behind its own. Returns
        a call like that of `link`, or the reason why there is none, or None if the backend has no
        such compiler. Without a call, duograph compiles the graph by the other methods.
        """
        return None

    # ---- copies without the host, DLPack, streams: optional -------------------------------------

    def copy_between(
        self,
        handle: Handle,
        shape: tuple[int, ...],
        dtype: np.dtype[np.generic],
        source_id: int,
        target_id: int,
    ) -> Handle | None:
        """Copy a buffer to new memory of another device of this backend, or of the same device.

        It may return before the copy is done, if later work on both devices waits for it. Returns
        None if the devices cannot copy directly; the values are then copied through the host.
        """
        return None

    def copy_out_async(
        self, handle: Handle, shape: tuple[int, ...], dtype: np.dtype[np.generic], device_id: int
    ) -> Callable[[], Array] | None:
        """Start a copy to the host; return a function that waits for it and returns the array.

        The core keeps `handle` until the array is returned, and calls the function once. Returns
        None if the backend has no such copies; the core then uses `copy_out`.
        """
        return None

    def dlpack_device(self, device_id: int) -> tuple[int, int] | None:
        """Return DLPack's (device type, number) of a device, or None if it has none."""
        return None

    def to_dlpack(
        self,
        handle: Handle,
        shape: tuple[int, ...],
        dtype: np.dtype[np.generic],
        device_id: int,
        stream: int | None,
        max_version: tuple[int, int] | None,
    ) -> object:
        """Return a DLPack capsule that shares the memory of a buffer and keeps its handle alive.

        `stream` and `max_version` are those of the protocol's ``__dlpack__``: work that the
        consumer puts on `stream` afterwards must see the values. `backend.dlpack.capsule_of` makes
        capsules.

        Raises:
            BufferError: this memory cannot be shared.
        """
        raise BufferError(f"{self.name}: its memory has no DLPack")

    def from_dlpack(
        self, source: Exporter, device_id: int, copy: bool
    ) -> tuple[Handle, tuple[int, ...], np.dtype[np.generic]] | None:
        """Return (handle, shape, dtype) of the memory of an object with ``__dlpack__``.

        The handle shares that memory and keeps it alive, or refers to a copy if the memory is not
        dense or `copy` is true. `backend.dlpack.array_of` reads `source`. Returns None, or raises
        BufferError, if this device cannot use such memory.
        """
        return None

    def streams(self, device_id: int) -> Streams | None:
        """Return the interface to a device's queues, or None if the device has only one."""
        return None

    def timer(self, device_id: int) -> DeviceTimer | None:
        """Return the clock of a device that runs work after the call that launched it, or None.

        The core calls this only while there are observers, and puts a mark before and after each
        kernel. An implementation must also prepare the device for marks.
        """
        return None

    def watched_call(
        self, state: State, run: HandleFunction, work: Work, otherwise: HandleFunction
    ) -> HandleFunction:
        """Return the form of a kernel call that runs while a profile collects.

        The default is `otherwise`, the form in Python, which takes one to two microseconds more
        than `run`. A backend whose kernels take as little may return one in compiled code: if
        `state.log` is None it calls `otherwise`; else it calls `run` and stores the event in
        `state.log`, as `observers.EventLog` describes.

        Args:
            state: the state of `backend.observers`.
            run: the call.
            work: the description of the call.
            otherwise: the form in Python, for all kinds of observers.
        """
        return otherwise

    # ---- memory ---------------------------------------------------------------------------------

    def memory_stats(self, device_id: int) -> dict[str, int]:
        """Return device memory statistics by name.

        The names are `in_use`, `cached`, `peak` and `limit`, each in bytes, and counters of the
        backend's choice. A statistic that the backend does not know is missing.
        """
        return {}

    def empty_cache(self, device_id: int) -> None:
        """Give free device memory that the backend has cached back to the system."""
