"""Implements one CUDA device: its context, stream, memory and kernel launches.

`duograph.backend.grid` calls the methods of `CudaDevice`. All work of the device is queued on its
main stream, unless the program creates further streams (`queues`).
"""

from __future__ import annotations

import collections
import math
import os
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, SupportsInt

import numpy as np
from duograph.backend.grid import GridDevice, Launch, Scalar
from duograph.backend.grid.matmul_operands import Matmul
from duograph.backend.grid.matmul_tiled import few_lines, tiles
from duograph.backend.locks import new_lock
from duograph.errors import DeviceError, DeviceMemoryError

from ._native import Computation, Gate, Kernel, Memory, Pool
from .compiler import Compiler
from .cublaslt import Called, Library
from .cudnn import Library as Cudnn
from .device_contexts import Alone, Inside, OnMain
from .driver import LOST, OUT_OF_MEMORY, Driver
from .products import launch_of
from .queues import Queues
from .sources import CUDA
from .staging import Staging

if TYPE_CHECKING:
    from duograph.backend.protocol import Array

__all__ = ["CudaDevice", "Memory"]

# Limits: blocks of a grid along each axis, and threads of a block.
GRID_LIMITS = (2**31 - 1, 65535, 65535)
BLOCK_LIMIT = 1024
# Requests of at most so many bytes are served from segments of their own.
SMALL = 1 << 20
# Bytes of a segment for small requests, of one for others, and the unit of larger ones.
SMALL_SEGMENT, SEGMENT, SEGMENT_UNIT = 2 << 20, 20 << 20, 2 << 20
# Before an arena of at least so many bytes is allocated, cached memory is returned to the driver.
LARGE = 64 << 20

_devices: weakref.WeakSet[CudaDevice] = weakref.WeakSet()


def _forked() -> None:
    """Mark all CUDA devices as unusable; `os` calls it in every forked child process.

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


class Module:
    """A compiled CUDA source, which is on the device only while one of its kernels is in use.

    Attributes:
        image: the compiled source.
    """

    def __init__(self, device: CudaDevice, image: bytes) -> None:
        self.device = device
        self.image = image
        self._loaded: weakref.ref[Loaded] | None = None

    def load(self) -> Loaded:
        """Return the module on the device, loaded if necessary.

        The caller must hold the returned object as long as it uses kernels of the module.
        """
        found = None if self._loaded is None else self._loaded()
        if found is None:
            self.device.unload()
            found = Loaded(
                self.device, self.device.checked("build", "cuModuleLoadData", self.image)
            )
            self._loaded = weakref.ref(found)
        return found


class Loaded:
    """A module on the device; `CudaDevice.unload` unloads it when nothing refers to it."""

    def __init__(self, device: CudaDevice, handle: object) -> None:
        self.device = device
        self.handle = handle

    def __del__(self) -> None:
        # not at once: a destructor may run anywhere, also while the stream captures
        self.device.unused.append(self.handle)


class CudaDevice(GridDevice):
    """One CUDA device with its context, stream and memory.

    Args:
        driver: the driver API.
        index: the device's number.
        compiler: function of a compute capability that returns a compiler.
        find_library: function that returns cuBLASLt for the current context, or the reason why
            there is none.
        find_cudnn: function of a stream that returns cuDNN for it and the current context, or the
            reason why there is none.

    Until the program creates further streams (`queues`), all work runs on one stream in the order
    of the calls. Therefore a handle may be dropped, and its memory reused, while kernels that use
    it are still queued.
    """

    dialect = CUDA
    capabilities = frozenset(("fp64", "int64"))
    # Shared memory that a block may use without opting in to more.
    shared_bytes = 48 * 1024
    widest = BLOCK_LIMIT

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
        self.forked = False
        self.lock = new_lock()
        self.unused: collections.deque[object] = collections.deque()
        # memory that other libraries have used on their streams: (handles, stream)
        self.returned: collections.deque[tuple[tuple[Memory, ...], int]] = collections.deque()
        # memory of other libraries that queued work may still read
        self.borrowed: collections.deque[Array] = collections.deque()
        number = driver.call("cuDeviceGet", index)
        self.name = driver.call("cuDeviceGetName", 256, number).split(b"\0", 1)[0].decode()
        self.capability = (
            driver.attribute(number, "COMPUTE_CAPABILITY_MAJOR"),
            driver.attribute(number, "COMPUTE_CAPABILITY_MINOR"),
        )
        self.units = driver.attribute(number, "MULTIPROCESSOR_COUNT")
        self.compile = compiler(self.capability)
        self.total = int(driver.call("cuDeviceTotalMem", number))
        self.context = driver.call("cuDevicePrimaryCtxRetain", number)
        self.no_timing = int(driver.module.CUevent_flags.CU_EVENT_DISABLE_TIMING)
        before = driver.call("cuCtxGetCurrent")
        driver.call("cuCtxSetCurrent", self.context)
        self.stream_flags = int(driver.module.CUstream_flags.CU_STREAM_NON_BLOCKING)
        self.main = driver.call("cuStreamCreate", self.stream_flags)
        self.queues: Queues | None = None  # once there are several streams
        if int(before):
            driver.call("cuCtxSetCurrent", before)
        self._problem: str | None = None
        self._interruption: Exception | None = None
        self.gate = Gate(
            driver.address("cuCtxGetCurrent"),
            driver.address("cuCtxSetCurrent"),
            driver.address("cuLaunchKernel"),
            int(self.context),
            int(self.main),
            self.lock,
            self.refuse,
            self.failed,
            driver.address("cuGraphLaunch"),
        )
        self.on_main = OnMain(self)
        self.alone = Alone(self)
        self.inside = Inside(self)
        self.caching = driver.caching
        self.pool = Pool(self._segment, self.caching, SMALL)
        self.__dict__["allocate"] = self.pool.allocate  # direct calls of the C method
        self._arena: weakref.ref[Memory] | None = None
        self.staging = Staging(self)
        # launches by libraries; the gate counts those of kernels
        self.counts = {"launches": 0, "copies_in": 0, "copies_out": 0}
        _devices.add(self)

    # ---- the present thread, and failures -------------------------------------------------------

    @property
    def stream(self) -> Any:
        """The stream for launches and copies of the calling thread."""
        return self.main if self.queues is None else self.queues.current

    @property
    def problem(self) -> str | None:
        """The reason why the device can no longer be used; None while it can be used."""
        return self._problem

    @problem.setter
    def problem(self, text: str) -> None:
        self._problem = text
        self.gate.blocked = True

    def interrupt(self, error: Exception) -> None:
        """Make all later uses of the device raise an error, since the state of its work is unknown.

        Any thread may call it, even while another thread waits for the device.
        """
        self._interruption = error
        self.problem = str(error)

    def refuse(self) -> None:
        """Raise the error that was passed to `interrupt` or, if there was none, a DeviceError.

        The DeviceError names the reason (`problem`) why the device can no longer be used.
        """
        if self._interruption is not None:
            raise self._interruption
        raise DeviceError(f"{self.name}: {self.problem}")

    def failed(self, code: SupportsInt, what: str) -> NoReturn:
        """Raise the exception for a CUDA error code; `what` is the name of the op or call.

        If the code means that the device is lost, the device becomes unusable.
        """
        if int(code) in LOST:
            self.problem = (
                f"the device was lost ({self.driver.words(code)}, seen at {what}); what was on it "
                "is gone, and this "
                "process cannot use it again. Start a new one; compute-sanitizer names the kernel "
                "at fault"
            )
            self.refuse()
        raise self.driver.error(code, what)

    def tried(self, name: str, *arguments: object) -> tuple[Any, Any]:
        """Call a CUDA driver function in this device's context; return (status code, its results).

        Raises:
            DeviceError: the device was lost, or this process was forked after its use.
        """
        with self.inside:
            code, *rest = getattr(self.driver.module, name)(*arguments)
        return code, rest[0] if len(rest) == 1 else rest

    def checked(self, what: str, name: str, *arguments: object) -> Any:
        """Call a CUDA driver function in this device's context; return its results.

        For an error code it raises the exception as `failed` does; `what` is the name of the op or
        call in the message.
        """
        code, found = self.tried(name, *arguments)
        if code:
            self.failed(code, what)
        return found

    # ---- memory ---------------------------------------------------------------------------------

    def allocate(self, nbytes: int, what: str) -> Memory:
        return self.pool.allocate(nbytes, what)

    def _segment(self, size: int, nbytes: int, what: str) -> tuple[int, int]:
        """Return (address, bytes) of new memory from the driver, for a block of `size` bytes.

        The memory may be larger than `size`, since the pool divides it into blocks. `nbytes` is the
        number of bytes that the op `what` has requested.

        Raises:
            DeviceMemoryError: there is not enough memory, even after the pool's cached memory was
                freed.
        """
        wanted = size
        if not self.caching:
            self._return_unused(what)
        elif nbytes <= SMALL:
            wanted = SMALL_SEGMENT
        else:
            wanted = SEGMENT if size < SEGMENT // 2 else -(-size // SEGMENT_UNIT) * SEGMENT_UNIT
        code, pointer = self.tried("cuMemAlloc", wanted)
        if code and int(code) == OUT_OF_MEMORY:
            self.empty_cache()  # it also takes memory back from other libraries
            code, pointer = self.tried("cuMemAlloc", wanted)
            if code and int(code) == OUT_OF_MEMORY and wanted > size:
                wanted = size
                code, pointer = self.tried("cuMemAlloc", wanted)
            if code and int(code) == OUT_OF_MEMORY:
                raise self.no_memory(nbytes, what)
        if code:
            self.failed(code, what)
        return int(pointer), wanted

    def _return_unused(self, what: str) -> None:
        for address, _ in self.pool.trim():
            self.checked(what, "cuMemFree", address)

    def arena(self, nbytes: int, what: str) -> Memory:
        """Return the device memory in which CUDA graphs keep intermediate values.

        The memory has at least `nbytes` bytes. All graphs use the same memory, since they run one
        after the other and no value in it outlives a run. `what` is the program's name, for errors.
        """
        known = None if self._arena is None else self._arena()
        if known is None or known.nbytes < nbytes:
            if nbytes >= LARGE:
                self.empty_cache()
            known = self.allocate(nbytes, what)
            self._arena = weakref.ref(known)
        return known

    def no_memory(self, nbytes: int, what: str) -> DeviceMemoryError:
        """Return the exception for a failed CUDA memory allocation; the caller raises it.

        `nbytes` is the number of bytes that the op or program `what` has requested.
        """
        now = self.memory_stats()
        return DeviceMemoryError(
            f"{what}: no memory for {nbytes} bytes on {self.name}; in use {now['in_use']}, cached "
            f"{now['cached']}, "
            f"limit {now['limit']} bytes. Free tensors, or work on smaller ones"
        )

    def memory_stats(self) -> dict[str, int]:
        with self.inside:  # a lost device has no memory
            pool = self.pool
        return {
            "in_use": pool.in_use,
            "cached": pool.reserved - pool.in_use,
            "peak": pool.peak,
            "limit": self.total,
            "allocations": pool.allocations,
            **self.counts,
            "launches": self.counts["launches"] + self.gate.launches,
        }

    def empty_cache(self) -> None:
        with self.lock:
            self.synchronize()
            self.staging.free()
            self.unload()
            self._return_unused("empty_cache")

    # ---- copies ---------------------------------------------------------------------------------

    def nbytes(self, handle: Memory) -> int:
        return handle.nbytes

    def copy_in(self, array: Array) -> Memory:
        memory = self.allocate(array.nbytes, "copy_in")
        if array.nbytes:
            array = np.ascontiguousarray(array)
            with self.lock:
                self.counts["copies_in"] += 1
                self.staging.upload(memory.pointer, array.ctypes.data, array.nbytes)
                self.publish()  # the value may be kept, and used on any stream
        return memory

    def copy_out(
        self, handle: Memory, shape: tuple[int, ...], dtype: np.dtype[np.generic]
    ) -> Array:
        out = np.empty(shape, dtype)
        if not out.nbytes:
            self.synchronize()
            return out
        self.counts["copies_out"] += 1
        target = out.ctypes.data
        unused = self._no_longer_borrowed()
        with self.lock:  # else a program could move the value while it is copied
            self.await_all()
            self.checked(
                "copy_out", "cuMemcpyDtoHAsync", target, handle.pointer, out.nbytes, self.stream
            )
        self.checked("copy_out", "cuStreamSynchronize", self.stream)
        if self._interruption is not None:  # meanwhile
            self.refuse()
        del unused
        self.take_back()
        return out

    def synchronize(self) -> None:
        unused = self._no_longer_borrowed()
        if self.queues is None:
            self.checked("synchronize", "cuStreamSynchronize", self.main)
        else:
            self.queues.synchronize()
        if self._interruption is not None:
            self.refuse()
        del unused
        self.take_back()

    def _no_longer_borrowed(self) -> list[Array]:
        """Return the owners of other libraries' memory that only queued work may still read.

        The caller must drop them after it has waited for that work.
        """
        with self.lock:
            return [self.borrowed.popleft() for _ in range(len(self.borrowed))]

    # ---- other streams --------------------------------------------------------------------------

    def await_all(self) -> None:
        """Make later work of this thread's stream wait for all work queued so far.

        The work may be on any stream of the device.
        """
        if self.queues is not None:
            self.queues.order(self.queues.handles, [self.stream])

    def publish(self) -> None:
        """Make later work of all streams wait for the work queued on this thread's stream."""
        if self.queues is not None:
            self.queues.order([self.stream], self.queues.handles)

    def let_wait(self, stream: object) -> None:
        """Make later work of a CUDA stream wait for the work queued so far on this thread's stream.

        `stream` is the driver's handle or address of the stream, which may be another library's.
        """
        event = self.checked("event", "cuEventCreate", self.no_timing)
        try:
            self.checked("event", "cuEventRecord", event, self.stream)
            self.checked("event", "cuStreamWaitEvent", stream, event, 0)
        finally:
            self.checked("event", "cuEventDestroy", event)

    def wait_for(self, other: CudaDevice) -> None:
        """Make later work of this device wait for the work queued so far on another device.

        On both devices, this concerns the work on the calling thread's stream.
        """
        event = other.checked("event", "cuEventCreate", self.no_timing)
        try:
            other.checked("event", "cuEventRecord", event, other.stream)
            self.checked("event", "cuStreamWaitEvent", self.stream, event, 0)
        finally:
            other.checked("event", "cuEventDestroy", event)

    def take_back(self) -> None:
        """Take back the memory that other libraries have released, so that it can be reused.

        A library may still have queued work on the memory; later work of this device first waits
        for it.
        """
        while self.returned:
            try:
                kept, stream = self.returned.popleft()
            except IndexError:  # another thread was faster
                return
            event = self.checked("take_back", "cuEventCreate", self.no_timing)
            code, _ = self.tried("cuEventRecord", event, stream)
            if code:  # the other library has destroyed the stream
                self.checked("take_back", "cuCtxSynchronize")
            else:
                self.checked("take_back", "cuStreamWaitEvent", self.stream, event, 0)
            self.checked("take_back", "cuEventDestroy", event)
            del kept

    # ---- kernels --------------------------------------------------------------------------------

    def library(self) -> Library | str:
        """Return cuBLASLt, loaded at the first call, or the reason why it is missing (a str)."""
        with self.inside:
            if self._library is None:
                self._library = self._find_library()
            return self._library

    def cudnn(self) -> Cudnn | str:
        """Return cuDNN, loaded at the first call, or the reason why it is missing (a str)."""
        with self.inside:
            if self._cudnn is None:
                self._cudnn = self._find_cudnn(int(self.main))
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

    def build(self, source: str) -> Module:
        module = Module(self, self.compile.image(source))
        module.load()  # an image that does not load is known at once
        return module

    def unload(self) -> None:
        """Wait for the queued work, then unload the modules whose kernels are no longer in use."""
        if self.unused:
            self.synchronize()
        while self.unused:
            self.checked("unload", "cuModuleUnload", self.unused.pop())

    def launcher(
        self,
        module: Module,
        name: str,
        groups: tuple[int, int, int],
        size: tuple[int, int, int],
        buffers: int,
        scalars: Sequence[Scalar],
    ) -> Callable[..., None]:
        if any(n > limit for n, limit in zip(groups, GRID_LIMITS)) or math.prod(size) > BLOCK_LIMIT:
            raise DeviceError(
                f"{name}: a grid of {groups} blocks of {size} threads; a device takes "
                f"{GRID_LIMITS} blocks of "
                f"{BLOCK_LIMIT} threads"
            )
        self._check_parameters(module, name, buffers, scalars)
        loaded = module.load()
        function = self.checked(name, "cuModuleGetFunction", loaded.handle, name.encode())
        raw = b"".join([np.array(v, dtype.np).tobytes().ljust(8, b"\0") for dtype, v in scalars])
        blocks, threads = ((int(x), int(y), int(z)) for x, y, z in (groups, size))
        return Kernel(
            self.gate, int(function), blocks, threads, 0, buffers, raw, name, loaded
        ).launch

    def _check_parameters(
        self, module: Module, name: str, buffers: int, scalars: Sequence[Scalar]
    ) -> None:
        """Raise DeviceError if a kernel has other parameters than a launch passes.

        The driver would read arguments that nobody wrote. Nothing is compared if the compiled image
        does not tell the parameters.
        """
        sizes = self.compile.parameters(module.image, name)
        if sizes is None:
            return
        wanted = [(8, "a pointer")] * buffers + [(d.itemsize, d.name) for d, _ in scalars]
        if len(sizes) != len(wanted):
            raise DeviceError(
                f"{name}: the kernel has {len(sizes)} parameters; wanted {len(wanted)}"
            )
        for k, (got, (nbytes, kind)) in enumerate(zip(sizes, wanted)):
            if got != nbytes:
                raise DeviceError(
                    f"{name}: parameter {k} of the kernel has {got} bytes; wanted the {nbytes} of "
                    f"{kind}"
                )

    def computing(self, run: Callable[..., None], nbytes: int, what: str) -> Callable[..., Memory]:
        kernel = getattr(run, "__self__", None)
        if isinstance(kernel, Kernel):
            return Computation(kernel, self.pool, nbytes, what).run  # a single call of C
        return super().computing(run, nbytes, what)
