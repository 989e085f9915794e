"""An emulation of the CUDA driver in Python, with the functions of `cuda.bindings.driver`.

The backend's code for contexts, memory, modules and launches therefore runs as on a GPU. The
emulation also detects errors that a GPU would not report: fresh memory holds NaN patterns, and
every buffer of a launch is checked for writes outside its bounds.
"""

from __future__ import annotations

import contextlib
import ctypes
import enum
import os
import tempfile
from typing import Any

import numpy as np
from duograph.backend.locks import new_lock

from .compiler import HostCompiler

__all__ = ["EmulatedDriver"]

GUARD = 256
BESIDE = 0xA5


class CUresult(enum.IntEnum):
    """CUDA result codes, with the CUDA driver's numbers."""

    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_INVALID_IMAGE = 200
    CUDA_ERROR_NOT_FOUND = 500
    CUDA_ERROR_LAUNCH_FAILED = 719
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900


class CUdevice_attribute(enum.IntEnum):
    """CUDA device attributes, with the CUDA driver's numbers."""

    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76
    CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115


class CUmemPool_attribute(enum.IntEnum):
    """CUDA memory pool attributes, with the CUDA driver's numbers."""

    CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4
    CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT = 5
    CU_MEMPOOL_ATTR_USED_MEM_CURRENT = 7
    CU_MEMPOOL_ATTR_USED_MEM_HIGH = 8


class CUstream_flags(enum.IntEnum):
    """CUDA stream flags, with the CUDA driver's numbers."""

    CU_STREAM_NON_BLOCKING = 1


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
        compiler: builds the library that runs kernels.
        limit: memory of the device in bytes.
        seed: seeds the random order in which blocks and threads run.

    Attributes:
        lose: if set, the next launch reports that the device was lost.
    """

    CUresult = CUresult
    CUdevice_attribute = CUdevice_attribute
    CUmemPool_attribute = CUmemPool_attribute
    CUstream_flags = CUstream_flags
    CUstreamCaptureMode = CUstreamCaptureMode
    cuuint64_t = int

    def __init__(self, compiler: HostCompiler, limit: int = 2 << 30, seed: int = 1) -> None:
        self.compiler = compiler
        self.seed = seed
        self._machine: ctypes.CDLL | None = None
        self.lock = new_lock()
        self.limit = limit
        self.buffers: dict[int, tuple[np.ndarray[Any, Any], int]] = {}
        self.in_use = self.reserved = self.peak = 0
        self.text = ""
        self.lose = False
        self.capture: list[Any] | None = None

    def machine(self) -> ctypes.CDLL:
        """Return the library that runs emulated CUDA kernels, built at the first launch."""
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
        return _OK, 1

    def cuDeviceGet(self, index: int) -> Answer:
        return _OK, index

    def cuDeviceGetName(self, length: int, device: int) -> Answer:
        return _OK, b"emulated CUDA device".ljust(length, b"\0")

    def cuDeviceTotalMem(self, device: int) -> Answer:
        return _OK, self.limit

    def cuDeviceGetAttribute(self, attribute: int, device: int) -> Answer:
        return _OK, {16: 4, 75: 9, 76: 0, 115: 1}[int(attribute)]

    def cuDevicePrimaryCtxRetain(self, device: int) -> Answer:
        return _OK, object()

    def cuCtxSetCurrent(self, context: Any) -> Answer:
        return (_OK,)

    def cuStreamCreate(self, flags: int) -> Answer:
        return _OK, 0

    def cuStreamSynchronize(self, stream: int) -> Answer:
        if self.capture is not None:
            return self._captures("cuStreamSynchronize")
        return (_OK,)

    def cuGetErrorName(self, code: Code) -> Answer:
        return _OK, code.name.encode()

    def cuGetErrorString(self, code: Code) -> Answer:
        return _OK, self.text.encode()

    def _captures(self, what: str, *rest: Any) -> Answer:
        """Return the error of a driver call that is illegal in stream capture: code and message."""
        return self._bad(
            CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, f"{what} while capturing", *rest
        )

    def _bad(self, code: Code, text: str, *rest: Any) -> Answer:
        self.text = text
        return (code, *rest)

    # ---- memory ---------------------------------------------------------------------------------

    def cuDeviceGetDefaultMemPool(self, device: int) -> Answer:
        return _OK, 0

    def cuMemPoolSetAttribute(self, pool: int, attribute: int, value: int) -> Answer:
        return (_OK,)

    def cuMemPoolGetAttribute(self, pool: int, attribute: int) -> Answer:
        names = CUmemPool_attribute
        return _OK, {
            names.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: self.reserved,
            names.CU_MEMPOOL_ATTR_USED_MEM_CURRENT: self.in_use,
            names.CU_MEMPOOL_ATTR_USED_MEM_HIGH: self.peak,
        }[names(attribute)]

    def cuMemPoolTrimTo(self, pool: int, keep: int) -> Answer:
        self.reserved = max(self.in_use, keep)
        return (_OK,)

    def cuMemAllocAsync(self, nbytes: int, stream: int) -> Answer:
        """Allocate emulated device memory, with guard zones around it.

        Freed memory stays reserved, as if the memory were fragmented.
        """
        if self.capture is not None:
            return self._captures("cuMemAllocAsync", 0)
        if nbytes <= 0:
            return self._bad(CUresult.CUDA_ERROR_INVALID_VALUE, "an allocation of no bytes", 0)
        with self.lock:
            if self.reserved + nbytes > self.limit:
                return self._bad(CUresult.CUDA_ERROR_OUT_OF_MEMORY, "out of memory", 0)
            whole = np.empty(nbytes + 3 * GUARD, np.uint8)
            at = GUARD + -whole.ctypes.data % GUARD
            pointer = whole.ctypes.data + at
            whole[:at] = whole[at + nbytes :] = BESIDE
            whole[at : at + nbytes] = 0xFF
            self.buffers[pointer] = whole, nbytes
            self.in_use += nbytes
            self.reserved = max(self.reserved, self.in_use)
            self.peak = max(self.peak, self.in_use)
        return _OK, pointer

    def cuMemFreeAsync(self, pointer: int, stream: int) -> Answer:
        if self.capture is not None:
            return self._captures("cuMemFreeAsync")
        with self.lock:
            _, nbytes = self.buffers.pop(pointer)
            self.in_use -= nbytes
        return (_OK,)

    def cuMemcpyHtoDAsync(self, target: int, source: int, nbytes: int, stream: int) -> Answer:
        if self.capture is not None:
            return self._captures("cuMemcpyHtoDAsync")
        ctypes.memmove(target, source, nbytes)
        return (_OK,)

    def cuMemcpyDtoHAsync(self, target: int, source: int, nbytes: int, stream: int) -> Answer:
        if self.capture is not None:
            return self._captures("cuMemcpyDtoHAsync")
        if source not in self.buffers or nbytes > self.buffers[source][1]:
            return self._bad(
                CUresult.CUDA_ERROR_INVALID_VALUE, f"a copy of {nbytes} bytes reads past a buffer"
            )
        ctypes.memmove(target, source, nbytes)
        return (_OK,)

    def cuMemcpyDtoDAsync(self, target: int, source: int, nbytes: int, stream: int) -> Answer:
        if self.capture is not None:
            self.capture.append((self.cuMemcpyDtoDAsync, (target, source, nbytes, stream), ()))
        else:
            ctypes.memmove(target, source, nbytes)
        return (_OK,)

    # ---- graphs: captured calls, to be repeated ------------------------------------------

    def cuStreamBeginCapture(self, stream: int, mode: int) -> Answer:
        self.capture = []
        return (_OK,)

    def cuStreamEndCapture(self, stream: int) -> Answer:
        captured, self.capture = self.capture, None
        return _OK, captured

    def cuGraphInstantiate(self, graph: Any, flags: int) -> Answer:
        return _OK, list(graph)

    def cuGraphDestroy(self, graph: Any) -> Answer:
        return (_OK,)

    def cuGraphExecDestroy(self, graph: Any) -> Answer:
        return (_OK,)

    def cuGraphLaunch(self, graph: Any, stream: int) -> Answer:
        for function, arguments, _ in graph:
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
        return _OK, (ctypes.addressof(kernel), kernel.arity, name.decode(), module)

    def cuLaunchKernel(
        self,
        function: Any,
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
        address, arity, name, _ = function
        if self.capture is not None:
            given = [
                ctypes.c_uint64.from_address(place).value
                for place in (ctypes.c_void_p * arity).from_address(parameters)
            ]
            slots = (ctypes.c_uint64 * max(arity, 1))(*given)
            start = ctypes.addressof(slots)
            places = (ctypes.c_void_p * max(arity, 1))(*[start + 8 * k for k in range(arity)])
            call = (function, gx, gy, gz, bx, by, bz, shared, stream, ctypes.addressof(places), 0)
            self.capture.append((self.cuLaunchKernel, call, (slots, places)))
            return (_OK,)
        grid, block = (ctypes.c_uint * 3)(gx, gy, gz), (ctypes.c_uint * 3)(bx, by, bz)
        with self.lock:
            if self.lose:
                return self._bad(CUresult.CUDA_ERROR_LAUNCH_FAILED, "lost on purpose")
            machine = self.machine()
            if machine.dg_launch(address, grid, block, shared, parameters):
                text = machine.dg_problem().decode()
                return self._bad(CUresult.CUDA_ERROR_INVALID_VALUE, f"{name}: {text}")
            places = (ctypes.c_void_p * arity).from_address(parameters)
            for place in places:
                pointer = ctypes.c_uint64.from_address(place).value
                if pointer in self.buffers and not self._guarded(pointer):
                    return self._bad(
                        CUresult.CUDA_ERROR_INVALID_VALUE, f"{name}: a thread wrote beside a buffer"
                    )
        return (_OK,)

    def _guarded(self, pointer: int) -> bool:
        whole, nbytes = self.buffers[pointer]
        at = pointer - whole.ctypes.data
        return bool((whole[:at] == BESIDE).all() and (whole[at + nbytes :] == BESIDE).all())


class _Kernel(ctypes.Structure):
    """The C struct `dg_kernel` of machine.h, which describes an emulated kernel launch."""

    _fields_ = [
        ("run", ctypes.c_void_p),
        ("shared_begin", ctypes.c_void_p),
        ("shared_end", ctypes.c_void_p),
        ("waits_begin", ctypes.c_void_p),
        ("waits_end", ctypes.c_void_p),
        ("machine", ctypes.c_void_p),
        ("arity", ctypes.c_int),
    ]


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
