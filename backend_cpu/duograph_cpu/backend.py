"""The CPU backend: implements the backend interface with C kernels, called through cffi.

The core calls the methods of `CPU`. `prepare` looks a kernel builder up by op name in
`kernels.KERNELS`, `compile` builds fused regions, and `link` turns a whole program into one C call.
No method runs a kernel.
"""

from __future__ import annotations

import functools
import os
import platform
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from duograph.backend.costs import Costs, FusionLimits, LayoutCosts
from duograph.backend.dlpack import HOST, array_of, capsule_of
from duograph.backend.locks import importing
from duograph.backend.protocol import Backend, DeviceInfo
from duograph.dtype import ALL, STORAGE
from duograph.errors import BackendError

from . import (  # noqa: F401  (each module enters its kernels into the table)
    attention,
    custom_kernels,
    elementwise,
    indexing,
    linear,
    memory,
    movement,
    normalisation,
    optimizers,
    pooling,
    reductions,
)
from ._native import ffi, lib
from ._recording import watched_call
from .elementwise import prepare_elementwise
from .kernels import EPILOGUE_OPS, KERNELS
from .native_program import link
from .storage import storage_cast

if TYPE_CHECKING:
    from duograph.backend.dlpack import Exporter
    from duograph.backend.health import Finding
    from duograph.backend.observers import State, Work
    from duograph.backend.prepared import HandleFunction, LinkedProgram
    from duograph.backend.program import Program
    from duograph.backend.protocol import Array
    from duograph.ir.graph import Attributes, Graph
    from duograph.op import Op
    from duograph.types import Shape

    from ._native import CData
    from .kernels import Types
    from .native_call import NativeCall

# Measured on x86-64 with AVX2 and AVX-512.
COSTS = Costs(
    fusion=FusionLimits(
        min_row=8, max_row=65536, min_rows=64, max_few_rows=32768, min_width=16, min_run=64
    ),
    layout=LayoutCosts(traffic_per_transpose=6, min_channels=16),
    min_matmul_sum=4,
)


class CPU(Backend):
    """The CPU backend, which presents all cores of this machine as one device.

    A buffer handle is a cffi pointer (`memory`).
    """

    name = "CPU"
    dtypes = (*ALL, *STORAGE)
    epilogues = EPILOGUE_OPS
    symbolic_sizes = True

    def devices(self) -> list[DeviceInfo]:
        """Describe the one CPU device: processor, number of threads and instruction set."""
        level = ("baseline", "AVX2", "AVX-512")[lib.dg_isa()]
        text = f"{_processor()}, {lib.dg_threads()} threads, {level} kernels"
        return [DeviceInfo(0, "CPU", text, memory.TOTAL)]

    def copy_in(self, array: Array, device_id: int) -> CData:
        """Copy a C-contiguous NumPy array into newly allocated memory; return its buffer handle."""
        nbytes = array.nbytes
        handle = memory.maker(nbytes, "copy_in")()
        if nbytes:
            lib.dg_copy(handle, ffi.from_buffer(array.reshape(-1).view(np.uint8)), nbytes)
        return handle

    def from_host(self, array: Array, device_id: int) -> CData | None:
        """Return a buffer handle that shares a NumPy array's bytes and keeps the array alive.

        Returns None if the array is empty, not C-contiguous or not aligned for its dtype.
        """
        if not (array.flags.c_contiguous and array.flags.aligned and array.nbytes):
            return None
        return memory.shared(array)

    def copy_out(
        self, handle: CData, shape: Shape, dtype: np.dtype[np.generic], device_id: int
    ) -> Array:
        """Return a writable NumPy array that shares a buffer's bytes and keeps its handle alive.

        Raises:
            BackendError: the handle has fewer bytes than the array, because a kernel allocated too
                few.
        """
        n = 1
        for size in shape:
            n *= size
        if n == 0:
            return np.empty(shape, dtype)
        try:
            return np.frombuffer(ffi.buffer(handle), dtype, n).reshape(shape)
        except ValueError:
            raise BackendError(
                f"CPU: got a handle of {ffi.sizeof(handle)} bytes for {dtype}{list(shape)}, which "
                f"has {n * dtype.itemsize}"
            ) from None

    def nbytes(self, handle: CData, device_id: int) -> int:
        """Return the size in bytes of the memory behind a handle; 1 for an empty tensor."""
        return ffi.sizeof(handle)

    def exclusive(self, handle: CData, device_id: int) -> bool:
        """Return whether only holders of a buffer handle can change the memory behind it.

        This is true for memory of the allocator, and for memory of a NumPy array without other
        references. Arrays that `copy_out` returned count as holders of the handle.
        """
        return memory.exclusive(handle)

    def dlpack_device(self, device_id: int) -> tuple[int, int]:
        """Return DLPack's (device type, number) of host memory."""
        return HOST

    def to_dlpack(
        self,
        handle: CData,
        shape: Shape,
        dtype: np.dtype[np.generic],
        device_id: int,
        stream: int | None,
        max_version: tuple[int, int] | None,
    ) -> object:
        """Return a DLPack capsule that shares a buffer's bytes and keeps its handle alive.

        `stream` is ignored, since the buffer's value is complete. `max_version` is the newest
        DLPack version that the consumer knows; None means a version before 1.0.
        """
        array = self.copy_out(handle, shape, dtype, device_id)
        return capsule_of(array, max_version=max_version)

    def from_dlpack(
        self, source: Exporter, device_id: int, copy: bool
    ) -> tuple[CData, Shape, np.dtype[np.generic]]:
        """Return (handle, shape, dtype) of the host memory of an object with ``__dlpack__``.

        The memory is copied if `copy` is true, or if it is read-only, empty, not C-contiguous or
        not aligned; otherwise it is shared.
        """
        array = array_of(source)
        shares = not copy and array.flags.writeable
        handle = self.from_host(array, device_id) if shares else None
        if handle is None:
            handle = self.copy_in(np.asarray(array, order="C"), device_id)
        return handle, array.shape, array.dtype

    def synchronize(self, device_id: int) -> None:
        """Do nothing: a CPU kernel has finished when its call returns."""

    def prepare(
        self, op: Op, types: Types, attributes: Attributes, device_id: int
    ) -> NativeCall | None:
        """Return the prepared kernel call of an op for operand types, or None if there is none."""
        if op.name == "cast" and "s" in (types[0].dtype.kind, attributes["dtype"].kind):
            return storage_cast(types[0], *op.infer_types(types, attributes))
        builder = KERNELS.get(op.name)
        if builder is not None:
            return builder(types, op.infer_types(types, attributes), **attributes)
        if op.scalar_rule is not None and not op.variadic:
            (result,) = op.infer_types(types, attributes)
            return prepare_elementwise(op, types, result, attributes)
        return None

    def compiles(self, device_id: int) -> str | None:
        """Return None if `compile` works here, else the reason why not; compiles nothing itself."""
        with importing:
            from . import toolchain  # loads the disk cache, which only compilation needs

        return toolchain.problem()

    def compile(self, regions: Sequence[Graph], device_id: int) -> Sequence[NativeCall | str]:
        """Compile fused regions (groups of ops that one kernel computes) as C.

        Returns for each region a prepared call, or the reason why there is none.
        """
        with importing:
            from .fused_regions import compile_regions
        return compile_regions(regions)

    def region_source(self, region: Graph, device_id: int) -> str | None:
        """Return the C source of a fused region, without the prelude of definitions.

        Returns None if the region does not fit one loop nest.
        """
        with importing:
            from .fused_regions import source_of
        return source_of(region)

    def examine(self, device_id: int) -> list[Finding]:
        """Return findings about C compiler, BLAS, instruction set, threads and huge pages.

        The command `duograph doctor` prints them.
        """
        with importing:
            from . import health
        return health.examine()

    def costs(self, device_id: int) -> Costs:
        """Return the costs and limits by which graph passes decide whether a rewrite pays."""
        return COSTS

    def compiler(self, device_id: int) -> str | None:
        """Describe the machine's C compiler in one line, or say why there is none; never None.

        To learn its version and flags, the method may run the compiler.
        """
        with importing:
            from . import toolchain

        return toolchain.describe()

    def links(self, device_id: int) -> str | None:
        """Return None, which means that `link` works: it needs no compiler."""
        return None

    def link(self, program: Program, device_id: int) -> LinkedProgram | str:
        """Translate a whole program to one C call, or return the reason why that is impossible."""
        return link(program)

    def watched_call(
        self, state: State, run: HandleFunction, work: Work, otherwise: HandleFunction
    ) -> HandleFunction:
        """Return the form of a kernel call that runs while a profile collects, made in C."""
        return watched_call(state, run, work, otherwise)

    def memory_stats(self, device_id: int) -> dict[str, int]:
        """Return statistics of the CPU allocator, which count only memory blocks above 4 KiB."""
        return memory.stats()

    def empty_cache(self, device_id: int) -> None:
        """Return the CPU allocator's cached free memory blocks to the operating system."""
        lib.dg_memory_trim()


@functools.cache
def _processor() -> str:
    """Return the processor's model name as the operating system reports it."""
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
