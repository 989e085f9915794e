"""One CUDA device: context, stream, memory and kernel launches.

`duograph.backend.grid` calls the methods of `CudaDevice`.
"""

from __future__ import annotations

import collections
import ctypes
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from duograph.backend.grid import GridDevice, Launch, Scalar
from duograph.backend.grid.matmul_operands import Matmul
from duograph.backend.grid.matmul_tiled import few_lines, tiles
from duograph.backend.locks import new_lock
from duograph.errors import DeviceError, DeviceMemoryError

from .compiler import Compiler
from .cublaslt import Called, Library
from .cudnn import Library as Cudnn
from .driver import LOST, OUT_OF_MEMORY, Driver
from .products import launch_of
from .sources import CUDA

__all__ = ["CudaDevice", "Memory"]

# Limits: blocks of a grid along each axis, and threads of a block.
GRID_LIMITS = (2**31 - 1, 65535, 65535)
BLOCK_LIMIT = 1024
# The pool keeps all freed memory until `empty_cache` is called or another allocation needs it.
KEEP = 2**64 - 1


class _Here(threading.local):
    """The device whose CUDA context is current, for each thread."""

    device: CudaDevice | None = None


_here = _Here()
_devices: weakref.WeakSet[CudaDevice] = weakref.WeakSet()


def _forked() -> None:
    """Mark all CUDA devices as unusable; called in a forked child process.

    The child must not use or free the parent's CUDA objects.
    """
    for device in _devices:
        device.problem = (
            "this process was forked from one that had used the device, and CUDA does not go "
            "along; use the "
            "start method 'spawn', or fork before the first use"
        )
        device.forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class Memory:
    """Handle that owns CUDA device memory, freed in stream order with its last reference.

    Attributes:
        pointer: address on the device; 0 for no bytes.
        nbytes: size in bytes.
    """

    __slots__ = ("pointer", "nbytes", "device")

    def __init__(self, pointer: int, nbytes: int, device: CudaDevice) -> None:
        self.pointer = pointer
        self.nbytes = nbytes
        self.device = device

    def __del__(self) -> None:
        if self.pointer:
            self.device.release(self.pointer)


class CudaDevice(GridDevice):
    """One CUDA device with its context, stream and memory.

    Args:
        driver: the driver API.
        index: the device's number.
        compiler: makes a compiler for a compute capability.
        find_library: returns cuBLASLt for the current context, or the reason why there is none.
        find_cudnn: returns cuDNN for the current context and a stream, or the reason.

    All work runs on one stream in the order of the calls. Memory is allocated and freed in stream
    order too, so a handle may be dropped while kernels that use it are still queued.
    """

    dialect = CUDA
    capabilities = frozenset(("fp64", "int64"))
    # Shared memory that a block may use without opting in to more.
    shared_bytes = 48 * 1024

    def __init__(
        self,
        driver: Driver,
        index: int,
        compiler: Callable[[tuple[int, int]], Compiler],
        find_library: Callable[[], Library | str],
        find_cudnn: Callable[[int], Cudnn | str],
    ) -> None:
        self._library: Library | str | None = None
        self._find_library = find_library
        self._cudnn: Cudnn | str | None = None
        self._find_cudnn = find_cudnn
        self.driver = driver
        self.index = index
        self.problem: str | None = None
        self.forked = False
        self.lock = new_lock()
        self._lent: Any = None
        self._lent_to = 0
        self._freed: collections.deque[int] = collections.deque()
        module = driver.module
        number = driver.call("cuDeviceGet", index)
        self.name = driver.call("cuDeviceGetName", 256, number).split(b"\0", 1)[0].decode()
        self.capability = (
            driver.attribute(number, "COMPUTE_CAPABILITY_MAJOR"),
            driver.attribute(number, "COMPUTE_CAPABILITY_MINOR"),
        )
        self.units = driver.attribute(number, "MULTIPROCESSOR_COUNT")
        if not driver.attribute(number, "MEMORY_POOLS_SUPPORTED"):
            raise DeviceError(
                f"{self.name}: it has no stream-ordered memory pools, which this backend needs"
            )
        self.compile = compiler(self.capability)
        self.total = int(driver.call("cuDeviceTotalMem", number))
        self.context = driver.call("cuDevicePrimaryCtxRetain", number)
        driver.call("cuCtxSetCurrent", self.context)
        _here.device = self
        non_blocking = module.CUstream_flags.CU_STREAM_NON_BLOCKING
        self.stream = driver.call("cuStreamCreate", int(non_blocking))
        self.pool = driver.call("cuDeviceGetDefaultMemPool", number)
        attributes = module.CUmemPool_attribute
        driver.call(
            "cuMemPoolSetAttribute",
            self.pool,
            attributes.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
            module.cuuint64_t(KEEP),
        )
        self.counts = {"allocations": 0, "launches": 0, "copies_in": 0, "copies_out": 0}
        self._free = module.cuMemFreeAsync
        self._success = module.CUresult.CUDA_SUCCESS
        _devices.add(self)

    # ---- the present thread, and failures -------------------------------------------------------

    def enter(self) -> None:
        """Make a device's CUDA context current on this thread.

        Raises:
            DeviceError: the device was lost, or this process was forked after its use.
        """
        if self.problem is not None:
            raise DeviceError(f"{self.name}: {self.problem}")
        if _here.device is not self:
            self.driver.call("cuCtxSetCurrent", self.context)
            _here.device = self

    def failed(self, code: Any, what: str) -> None:
        """Raise the exception for a CUDA error code; mark the device if it is lost."""
        if int(code) in LOST:
            self.problem = (
                f"the device was lost ({self.driver.words(code)}, seen at {what}); what was on it "
                "is gone, and this "
                "process cannot use it again. Start a new one; compute-sanitizer names the kernel "
                "at fault"
            )
            raise DeviceError(f"{self.name}: {self.problem}")
        raise self.driver.error(code, what)

    def checked(self, what: str, name: str, *arguments: Any) -> Any:
        """Call a CUDA driver function in this device's context; raise if it returns an error.

        Returns the function's results. No other thread may capture a CUDA graph at the same time,
        so the
        call holds `lock`.
        """
        with self.lock:
            self.enter()
            code, *rest = getattr(self.driver.module, name)(*arguments)
            if code:
                self.failed(code, what)
        return rest[0] if len(rest) == 1 else rest

    # ---- memory ---------------------------------------------------------------------------------

    def allocate(self, nbytes: int, what: str) -> Memory:
        if nbytes == 0:
            return Memory(0, 0, self)
        if self._lent is not None and self._lent_to == threading.get_ident():
            lent, self._lent = (
                self._lent,
                None,
            )  # the program's own allocations do not come from its blocks
            try:
                return lent.allocate(nbytes, what)
            finally:
                self._lent = lent
        with self.lock:
            if _here.device is not self or self.problem is not None:
                self.enter()
            self._free_all()
            allocate = self.driver.module.cuMemAllocAsync
            code, pointer = allocate(nbytes, self.stream)
            if code and int(code) == OUT_OF_MEMORY:
                self.empty_cache()
                code, pointer = allocate(nbytes, self.stream)
                if code and int(code) == OUT_OF_MEMORY:
                    raise self.no_memory(nbytes, what)
            if code:
                self.failed(code, what)
        self.counts["allocations"] += 1
        return Memory(int(pointer), nbytes, self)

    def lend(self, blocks: Any) -> None:
        """Make this thread's allocations come from a CUDA graph's memory blocks; None ends that.

        The caller holds `lock`, so that no other thread launches meanwhile.
        """
        self._lent, self._lent_to = blocks, threading.get_ident()

    def no_memory(self, nbytes: int, what: str) -> DeviceMemoryError:
        """Return the exception to raise for a CUDA memory allocation that failed twice."""
        now = self.memory_stats()
        return DeviceMemoryError(
            f"{what}: no memory for {nbytes} bytes on {self.name}; in use {now['in_use']}, cached "
            f"{now['cached']}, "
            f"limit {now['limit']} bytes. Free tensors, or work on smaller ones"
        )

    def release(self, pointer: int) -> None:
        """Queue device memory to be freed at the next allocation; called by `Memory`."""
        # Not at once: a destructor may run anywhere, also while the stream captures.
        self._freed.append(pointer)

    def _free_all(self) -> None:
        """Free all device memory that was queued for release, in stream order.

        The caller holds `lock`, and the stream must not capture.
        """
        freed = self._freed
        while freed:
            self._free(freed.pop(), self.stream)

    def memory_stats(self) -> dict[str, int]:
        names = self.driver.module.CUmemPool_attribute

        def of(name: str) -> int:
            key = getattr(names, f"CU_MEMPOOL_ATTR_{name}")
            return int(self.checked("memory_stats", "cuMemPoolGetAttribute", self.pool, key))

        with self.lock:
            self._free_all()
        in_use = of("USED_MEM_CURRENT")
        cached, peak = of("RESERVED_MEM_CURRENT") - in_use, of("USED_MEM_HIGH")
        return {
            "in_use": in_use,
            "cached": cached,
            "peak": peak,
            "limit": self.total,
            **self.counts,
        }

    def empty_cache(self) -> None:
        with self.lock:
            self._free_all()
        self.synchronize()
        self.checked("empty_cache", "cuMemPoolTrimTo", self.pool, 0)

    # ---- copies ---------------------------------------------------------------------------------

    def nbytes(self, handle: Memory) -> int:
        return handle.nbytes

    def copy_in(self, array: np.ndarray[Any, Any]) -> Memory:
        # The driver stages memory that is not page-locked before it returns, so the array may
        # change after that.
        memory = self.allocate(array.nbytes, "copy_in")
        if array.nbytes:
            array = np.ascontiguousarray(array)
            self.counts["copies_in"] += 1
            source = array.ctypes.data
            self.checked(
                "copy_in", "cuMemcpyHtoDAsync", memory.pointer, source, array.nbytes, self.stream
            )
        return memory

    def copy_out(
        self, handle: Memory, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> np.ndarray[Any, Any]:
        out = np.empty(shape, dtype)
        if out.nbytes:
            self.counts["copies_out"] += 1
            target = out.ctypes.data
            with self.lock:  # a program may move the value meanwhile
                self.checked(
                    "copy_out", "cuMemcpyDtoHAsync", target, handle.pointer, out.nbytes, self.stream
                )
        self.synchronize()
        return out

    def synchronize(self) -> None:
        self.checked("synchronize", "cuStreamSynchronize", self.stream)

    # ---- kernels --------------------------------------------------------------------------------

    def library(self) -> Library | str:
        """Return cuBLASLt, loaded at the first call, or the reason why it is not available."""
        with self.lock:
            if self._library is None:
                self.enter()
                self._library = self._find_library()
            return self._library

    def cudnn(self) -> Cudnn | str:
        """Return cuDNN, loaded at the first call, or the reason why it is not available."""
        with self.lock:
            if self._cudnn is None:
                self.enter()
                self._cudnn = self._find_cudnn(int(self.stream))
            return self._cudnn

    def matmul(self, problem: Matmul) -> Launch:
        own = (
            few_lines(self, problem)
            or launch_of(self, self.capability, problem)
            or tiles(self, problem)
        )
        library = self.library()
        chosen = None if isinstance(library, str) else library.choose(problem)
        return own if chosen is None else Called(**vars(own), chosen=chosen)

    def compiler(self) -> str:
        library = self.library()
        if isinstance(library, str):
            by = f"our own kernels (cuBLASLt: {library})"
        else:
            by = f"cuBLASLt {library.version}"
        found = self.cudnn()
        others = (
            f"cuDNN {found.version}"
            if not isinstance(found, str)
            else f"our own kernels (cuDNN: {found})"
        )
        return f"{self.compile.describe()}; matmul by {by}; convolution and attention by {others}"

    def build(self, source: str) -> Any:
        image = self.compile.image(source)
        return self.checked("build", "cuModuleLoadData", image)

    def launcher(
        self,
        module: Any,
        name: str,
        groups: Any,
        size: Any,
        buffers: int,
        scalars: Sequence[Scalar],
    ) -> Callable[..., None]:
        if any(n > limit for n, limit in zip(groups, GRID_LIMITS)) or np.prod(size) > BLOCK_LIMIT:
            raise DeviceError(
                f"{name}: a grid of {groups} blocks of {size} threads; a device takes "
                f"{GRID_LIMITS} blocks of "
                f"{BLOCK_LIMIT} threads"
            )
        function = self.checked(name, "cuModuleGetFunction", module, name.encode())
        count = buffers + len(scalars)
        slots = (ctypes.c_uint64 * max(count, 1))()
        start = ctypes.addressof(slots)
        for k, (dtype, value) in enumerate(scalars):
            raw = np.array(value, dtype.np).tobytes()
            ctypes.memmove(start + 8 * (buffers + k), raw, len(raw))
        addresses = (ctypes.c_void_p * max(count, 1))(*[start + 8 * k for k in range(count)])
        launch_kernel = self.driver.module.cuLaunchKernel
        # the driver copies the arguments before it returns
        tail = (self.stream, ctypes.addressof(addresses), 0)
        lock, counts = self.lock, self.counts

        def launch(*handles: Memory, kept: Any = addresses) -> None:
            if _here.device is not self or self.problem is not None:
                self.enter()
            with lock:
                for k, handle in enumerate(handles):
                    slots[k] = handle.pointer
                (code,) = launch_kernel(function, *groups, *size, 0, *tail)
                counts["launches"] += 1
            if code:
                self.failed(code, name)

        return launch
