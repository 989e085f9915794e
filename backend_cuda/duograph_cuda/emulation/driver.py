"""An emulation of the CUDA driver in Python, with the functions of `cuda.bindings.driver`.

With it, the backend's code for contexts, memory, modules and launches runs unchanged on the CPU, in
tests. The emulation also detects errors that a GPU would not report: fresh memory holds NaN
patterns, and after each launch every buffer is checked for writes outside its bounds.
"""

from __future__ import annotations

import contextlib
import ctypes
import enum
import itertools
import os
import tempfile
import threading
from _ctypes import dlclose  # ctypes has no public way to unload a library
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from duograph.backend.locks import new_lock

from .compiler import HostCompiler
from .streams import EmulatedStreams

if TYPE_CHECKING:
    from duograph.backend.protocol import Array

__all__ = ["EmulatedDriver"]

GUARD = 256
BESIDE = 0xA5
# The context of the first device.
CONTEXT = 0xC0


class CUresult(enum.IntEnum):
    """CUDA result codes, with the CUDA driver's numbers."""

    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_INVALID_IMAGE = 200
    CUDA_ERROR_NOT_FOUND = 500
    CUDA_ERROR_NOT_READY = 600
    CUDA_ERROR_LAUNCH_FAILED = 719
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900


class CUdevice_attribute(enum.IntEnum):
    """CUDA device attributes, with the CUDA driver's numbers."""

    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76


class CUstream_flags(enum.IntEnum):
    """CUDA stream flags, with the CUDA driver's numbers."""

    CU_STREAM_NON_BLOCKING = 1


class CUevent_flags(enum.IntEnum):
    """CUDA event flags, with the CUDA driver's numbers."""

    CU_EVENT_DISABLE_TIMING = 2


class CUstreamCaptureMode(enum.IntEnum):
    """CUDA stream capture modes, with the CUDA driver's numbers."""

    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1


Answer = tuple[Any, ...]
# `CUresult` means the class attribute in annotations of methods
Code = CUresult
_OK = CUresult.CUDA_SUCCESS


class EmulatedDriver:
    """An emulation of `cuda.bindings.driver` that runs kernels on the CPU, for tests.

    Args:
        compiler: compiler that builds the library which runs kernels.
        limit: size of the device memory in bytes.
        seed: seed of the random order in which blocks and threads run.
        devices: number of devices, which use the same memory.

    Attributes:
        lose: whether the next launch is to report that the device was lost.
    """

    CUresult = CUresult
    CUdevice_attribute = CUdevice_attribute
    CUstream_flags = CUstream_flags
    CUevent_flags = CUevent_flags
    CUstreamCaptureMode = CUstreamCaptureMode

    def __init__(
        self, compiler: HostCompiler, limit: int = 2 << 30, seed: int = 1, devices: int = 1
    ) -> None:
        self.compiler = compiler
        self.devices = devices
        self.seed = seed
        self._machine: ctypes.CDLL | None = None
        self.lock = new_lock()
        self.limit = limit
        self.buffers: dict[int, tuple[Array, int]] = {}
        self.in_use = 0
        self.functions: dict[int, tuple[int, str]] = {}
        self.pointers: dict[str, Any] = {}
        self.pinned: dict[int, object] = {}
        self.graphs: dict[int, list[Any]] = {}
        self.threads = threading.local()
        self.text = ""
        self.lose = False
        self.capture: list[Any] | None = None
        self.streams = EmulatedStreams()
        self.numbers = itertools.count(1)

    def machine(self) -> ctypes.CDLL:
        """Return the library that runs emulated CUDA kernels, built at the first call."""
        if self._machine is None:
            found = _load(self.compiler.machine())
            found.dg_problem.restype = ctypes.c_char_p
            found.dg_seed.argtypes = [ctypes.c_uint64]
            found.dg_launch.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_uint, ctypes.c_void_p]
            found.dg_seed(self.seed)
            self._machine = found
        return self._machine

    # ---- devices ------------------------------------------------------------------------------

    def cuInit(self, flags: int) -> Answer:
        return (_OK,)

    def cuDriverGetVersion(self) -> Answer:
        return _OK, 13000

    def cuDeviceGetCount(self) -> Answer:
        return _OK, self.devices

    def cuDeviceGet(self, index: int) -> Answer:
        return _OK, index

    def cuDeviceGetName(self, length: int, device: int) -> Answer:
        return _OK, b"emulated CUDA device".ljust(length, b"\0")

    def cuDeviceGetPCIBusId(self, length: int, device: int) -> Answer:
        own = f"emulated by process {os.getpid()}, {device}"
        return _OK, os.environ.get("DUOGRAPH_EMULATED_BUS", own).encode().ljust(length, b"\0")

    def cuDeviceTotalMem(self, device: int) -> Answer:
        return _OK, self.limit

    def cuDeviceGetAttribute(self, attribute: int, device: int) -> Answer:
        return _OK, {16: 4, 75: 9, 76: 0}[int(attribute)]

    def cuDevicePrimaryCtxRetain(self, device: int) -> Answer:
        return _OK, CONTEXT + device

    def cuCtxGetCurrent(self) -> Answer:
        return _OK, getattr(self.threads, "context", 0)

    def cuCtxSetCurrent(self, context: object) -> Answer:
        self.threads.context = context
        return (_OK,)

    def cuGetProcAddress(self, name: bytes, version: int, flags: int) -> Answer:
        """Return (code, address of a C function that calls this object's method `name`, 0)."""
        text = name.decode()
        if text not in self.pointers:
            self.pointers[text] = _POINTERS[text](self)
        return _OK, ctypes.cast(self.pointers[text], ctypes.c_void_p).value, 0

    def cuStreamCreate(self, flags: int) -> Answer:
        return _OK, self.streams.create(getattr(self.threads, "context", 0))

    def cuStreamDestroy(self, stream: int) -> Answer:
        return (CUresult(self.streams.run(stream)),)  # it stays in the list, empty

    def cuStreamSynchronize(self, stream: int) -> Answer:
        if self.capture is not None:
            return self._captures("cuStreamSynchronize")
        return (CUresult(self.streams.run(stream)),)

    def cuStreamQuery(self, stream: int) -> Answer:
        return (CUresult.CUDA_ERROR_NOT_READY if self.streams.lists[stream] else _OK,)

    def cuStreamWaitEvent(self, stream: int, event: int, flags: int) -> Answer:
        if self.capture is not None:
            return self._captures("cuStreamWaitEvent")
        self.streams.wait(stream, event)
        return (_OK,)

    def cuCtxSynchronize(self) -> Answer:
        return (CUresult(self.streams.run_all()),)

    def cuGetErrorName(self, code: Code) -> Answer:
        return _OK, code.name.encode()

    def cuGetErrorString(self, code: Code) -> Answer:
        return _OK, self.text.encode()

    def _captures(self, what: str, *rest: object) -> Answer:
        """Return the error result of a driver call that is not allowed while the stream captures.

        To capture means to record launches as a CUDA graph. `what` is the name of the call; `rest`
        are its results after the status code.
        """
        return self._bad(
            CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, f"{what} while capturing", *rest
        )

    def _bad(self, code: Code, text: str, *rest: object) -> Answer:
        return (self._failed(code, text), *rest)

    def _failed(self, code: Code, text: str) -> Code:
        self.text = text
        return code

    # ---- memory ---------------------------------------------------------------------------------

    def cuMemAlloc(self, nbytes: int) -> Answer:
        """Allocate emulated memory with guard zones on both sides; return (code, address)."""
        if self.capture is not None:
            return self._captures("cuMemAlloc", 0)
        if nbytes <= 0:
            return self._bad(CUresult.CUDA_ERROR_INVALID_VALUE, "an allocation of no bytes", 0)
        with self.lock:
            if self.in_use + nbytes > self.limit:
                return self._bad(CUresult.CUDA_ERROR_OUT_OF_MEMORY, "out of memory", 0)
            whole = np.empty(nbytes + 3 * GUARD, np.uint8)
            at = GUARD + -whole.ctypes.data % GUARD
            pointer = whole.ctypes.data + at
            whole[:at] = whole[at + nbytes :] = BESIDE
            whole[at : at + nbytes] = 0xFF
            self.buffers[pointer] = whole, nbytes
            self.in_use += nbytes
        return _OK, pointer

    def cuMemFree(self, pointer: int) -> Answer:
        if self.capture is not None:
            return self._captures("cuMemFree")
        with self.lock:
            self.streams.run_all()
            _, nbytes = self.buffers.pop(pointer)
            self.in_use -= nbytes
        return (_OK,)

    def cuMemHostAlloc(self, nbytes: int, flags: int) -> Answer:
        kept = ctypes.create_string_buffer(nbytes)
        self.pinned[ctypes.addressof(kept)] = kept
        return _OK, ctypes.addressof(kept)

    def cuMemFreeHost(self, pointer: int) -> Answer:
        del self.pinned[pointer]
        return (_OK,)

    def cuEventCreate(self, flags: int) -> Answer:
        return _OK, next(self.numbers)

    def cuEventDestroy(self, event: int) -> Answer:
        return (_OK,)

    def cuEventRecord(self, event: int, stream: int) -> Answer:
        if self.capture is not None:
            return self._captures("cuEventRecord")
        self.streams.record(event, stream)
        return (_OK,)

    def cuEventQuery(self, event: int) -> Answer:
        return (_OK if self.streams.finished(event) else CUresult.CUDA_ERROR_NOT_READY,)

    def cuEventSynchronize(self, event: int) -> Answer:
        return (CUresult(self.streams.synchronize(event)),)

    def cuEventElapsedTime(self, begin: int, end: int) -> Answer:
        return _OK, self.streams.elapsed(begin, end)

    def _copy(self, target: int, source: int, nbytes: int, stream: int) -> Answer:
        """Queue a copy of `nbytes` bytes from address `source` to `target` on a stream."""

        def move() -> int:
            ctypes.memmove(target, source, nbytes)
            return 0

        return (CUresult(self.streams.put(stream, move)),)

    def cuMemcpyHtoDAsync(self, target: int, source: int, nbytes: int, stream: int) -> Answer:
        if self.capture is not None:
            return self._captures("cuMemcpyHtoDAsync")
        if source in self.pinned:
            return self._copy(target, source, nbytes, stream)
        kept = ctypes.string_at(source, nbytes)
        return (
            CUresult(self.streams.put(stream, lambda: ctypes.memmove(target, kept, nbytes) * 0)),
        )

    def cuMemcpyDtoHAsync(self, target: int, source: int, nbytes: int, stream: int) -> Answer:
        if self.capture is not None:
            return self._captures("cuMemcpyDtoHAsync")
        if not self._holds(source, nbytes):
            return self._bad(
                CUresult.CUDA_ERROR_INVALID_VALUE, f"a copy of {nbytes} bytes reads past a buffer"
            )
        answer = self._copy(target, source, nbytes, stream)
        return answer if target in self.pinned else (CUresult(self.streams.run(stream)),)

    def cuMemcpyPeerAsync(
        self, target: int, to: int, source: int, of: int, nbytes: int, stream: int
    ) -> Answer:
        if self.capture is not None:
            return self._captures("cuMemcpyPeerAsync")
        return self._copy(target, source, nbytes, stream)

    def cuMemcpyDtoDAsync(self, target: int, source: int, nbytes: int, stream: int) -> Answer:
        if self.capture is not None:
            self.capture.append((self.cuMemcpyDtoDAsync, (target, source, nbytes, stream), ()))
            return (_OK,)
        return self._copy(target, source, nbytes, stream)

    # ---- graphs: captured calls, to be repeated ------------------------------------------

    def cuStreamBeginCapture(self, stream: int, mode: int) -> Answer:
        self.capture = []
        return (_OK,)

    def cuStreamEndCapture(self, stream: int) -> Answer:
        captured, self.capture = self.capture, None
        return _OK, captured

    def cuGraphInstantiate(self, graph: Any, flags: int) -> Answer:
        self.graphs[len(self.graphs) + 1] = list(graph)
        return _OK, len(self.graphs)

    def cuGraphDestroy(self, graph: object) -> Answer:
        return (_OK,)

    def cuGraphExecDestroy(self, graph: int) -> Answer:
        self.graphs[graph] = []
        return (_OK,)

    def cuGraphLaunch(self, graph: int, stream: int) -> Answer:
        for function, arguments, _ in self.graphs[graph]:
            answer: Answer = function(*arguments)
            if answer[0]:
                return answer
        return (_OK,)

    # ---- kernels --------------------------------------------------------------------------------

    def cuModuleLoadData(self, image: bytes) -> Answer:
        try:
            return _OK, _load(image)
        except OSError as error:
            return self._bad(CUresult.CUDA_ERROR_INVALID_IMAGE, str(error), None)

    def cuModuleGetFunction(self, module: ctypes.CDLL, name: bytes) -> Answer:
        try:
            kernel = _Kernel.in_dll(module, f"dg_kernel_{name.decode()}")
        except ValueError as error:
            return self._bad(CUresult.CUDA_ERROR_NOT_FOUND, str(error), None)
        address = ctypes.addressof(kernel)
        self.functions[address] = kernel.arity, name.decode()
        return _OK, address

    def cuModuleUnload(self, module: ctypes.CDLL) -> Answer:
        dlclose(module._handle)
        return (_OK,)

    def cuLaunchKernel(
        self,
        function: int,
        gx: int,
        gy: int,
        gz: int,
        bx: int,
        by: int,
        bz: int,
        shared: int,
        stream: int,
        parameters: int,
        extra: int,
    ) -> Answer:
        arity, _ = self.functions[function]
        if self.capture is not None or self.streams.queues:
            given = [
                ctypes.c_uint64.from_address(place or 0).value
                for place in (ctypes.c_void_p * arity).from_address(parameters)
            ]
            slots = (ctypes.c_uint64 * max(arity, 1))(*given)
            start = ctypes.addressof(slots)
            places = (ctypes.c_void_p * max(arity, 1))(*[start + 8 * k for k in range(arity)])
            sizes = (gx, gy, gz, bx, by, bz, shared)
            kept = slots, places
            if self.capture is not None:
                call = (function, *sizes, stream, ctypes.addressof(places), 0)
                self.capture.append((self.cuLaunchKernel, call, kept))
                return (_OK,)

            def later(kept: Any = kept) -> Code:
                return self._launch(function, sizes, ctypes.addressof(kept[1]))

            return (CUresult(self.streams.put(stream, later)),)
        return (self._launch(function, (gx, gy, gz, bx, by, bz, shared), parameters),)

    def _launch(self, function: int, sizes: tuple[int, ...], parameters: int) -> Code:
        """Run a kernel on the CPU; return the CUDA result code.

        Args:
            function: the handle of the kernel.
            sizes: grid sizes along x, y and z, block sizes along x, y and z, and bytes of dynamic
                shared memory.
            parameters: address of an array of pointers to the kernel's arguments.
        """
        arity, name = self.functions[function]
        gx, gy, gz, bx, by, bz, shared = sizes
        grid, block = (ctypes.c_uint * 3)(gx, gy, gz), (ctypes.c_uint * 3)(bx, by, bz)
        with self.lock:
            if self.lose:
                return self._failed(CUresult.CUDA_ERROR_LAUNCH_FAILED, "lost on purpose")
            machine = self.machine()
            if machine.dg_launch(function, grid, block, shared, parameters):
                text = machine.dg_problem().decode()
                return self._failed(CUresult.CUDA_ERROR_INVALID_VALUE, f"{name}: {text}")
            places = (ctypes.c_void_p * arity).from_address(parameters)
            for place in places:
                pointer = ctypes.c_uint64.from_address(place or 0).value
                if pointer in self.buffers and not self._guarded(pointer):
                    return self._failed(
                        CUresult.CUDA_ERROR_INVALID_VALUE, f"{name}: a thread wrote beside a buffer"
                    )
        return _OK

    def _holds(self, pointer: int, nbytes: int) -> bool:
        """Return whether one allocated buffer contains `nbytes` bytes from address `pointer` on."""
        known = self.buffers.get(pointer)
        if known is not None:
            return nbytes <= known[1]
        return any(p <= pointer and pointer + nbytes <= p + b[1] for p, b in self.buffers.items())

    def _guarded(self, pointer: int) -> bool:
        whole, nbytes = self.buffers[pointer]
        at = pointer - whole.ctypes.data
        return bool((whole[:at] == BESIDE).all() and (whole[at + nbytes :] == BESIDE).all())


class _Kernel(ctypes.Structure):
    """The C struct `dg_kernel` of machine.h, which describes a kernel in a compiled library."""

    _fields_ = [
        ("run", ctypes.c_void_p),
        ("shared_begin", ctypes.c_void_p),
        ("shared_end", ctypes.c_void_p),
        ("waits_begin", ctypes.c_void_p),
        ("waits_end", ctypes.c_void_p),
        ("machine", ctypes.c_void_p),
        ("arity", ctypes.c_int),
    ]


def _get_current(driver: EmulatedDriver) -> Callable[..., Answer]:
    """Return a C function pointer to `cuCtxGetCurrent` of an emulated driver."""

    def get(place: int) -> int:
        code, context = driver.cuCtxGetCurrent()
        ctypes.c_void_p.from_address(place).value = context
        return int(code)

    return ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(get)


def _set_current(driver: EmulatedDriver) -> Callable[..., Answer]:
    """Return a C function pointer to `cuCtxSetCurrent` of an emulated driver."""
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
    return kind(lambda context: int(driver.cuCtxSetCurrent(context)[0]))


def _launch_kernel(driver: EmulatedDriver) -> Callable[..., Answer]:
    """Return a C function pointer to `cuLaunchKernel` of an emulated driver."""
    sizes, pointers = [ctypes.c_uint] * 7, [ctypes.c_void_p] * 3
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *sizes, *pointers)
    return kind(lambda *arguments: int(driver.cuLaunchKernel(*arguments)[0]))


def _launch_graph(driver: EmulatedDriver) -> Callable[..., Answer]:
    """Return a C function pointer to `cuGraphLaunch` of an emulated driver."""
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    return kind(lambda graph, stream: int(driver.cuGraphLaunch(graph, stream)[0]))


_POINTERS = {
    "cuGraphLaunch": _launch_graph,
    "cuCtxGetCurrent": _get_current,
    "cuCtxSetCurrent": _set_current,
    "cuLaunchKernel": _launch_kernel,
}


def _load(image: bytes) -> ctypes.CDLL:
    """Load a shared library into this process from its bytes, through a temporary file."""
    file, path = tempfile.mkstemp(suffix=".so")
    try:
        with open(file, "wb") as out:
            out.write(image)
        return ctypes.CDLL(path)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)
