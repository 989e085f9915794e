"""A device that computes nothing and keeps every source that the backend emits for it."""

from __future__ import annotations

import ctypes
from typing import Any

from duograph_cuda.backend import Cuda
from duograph_cuda.compiler import Compiler
from duograph_cuda.driver import Driver
from duograph_cuda.emulation.driver import CUresult, EmulatedDriver

NAME = "CUDA-recording"
_OK = CUresult.CUDA_SUCCESS


class RecordingDriver(EmulatedDriver):
    """A CUDA driver that launches nothing; its memory reads as zeros."""

    def __init__(self) -> None:
        super().__init__(None)

    def cuMemAlloc(self, nbytes: int) -> tuple[Any, ...]:
        code, pointer = super().cuMemAlloc(nbytes)
        ctypes.memset(pointer, 0, nbytes)
        return code, pointer

    def cuModuleLoadData(self, image: bytes) -> tuple[Any, ...]:
        return _OK, object()

    def cuModuleGetFunction(self, module: Any, name: bytes) -> tuple[Any, ...]:
        return _OK, 1

    def cuModuleUnload(self, module: Any) -> tuple[Any, ...]:
        return (_OK,)

    def cuLaunchKernel(self, *arguments: Any) -> tuple[Any, ...]:
        return (_OK,)


class Recorder(Compiler):
    """A CUDA compiler that only collects sources, in `seen`."""

    def __init__(self, seen: set[str]) -> None:
        self.seen = seen

    def image(self, source: str) -> bytes:
        self.seen.add(source)
        return b""

    def describe(self) -> str:
        return "nothing"


class Recording(Cuda):
    """The CUDA backend with a compiler that only collects sources, in `seen`."""

    name = NAME
    find_library = staticmethod(lambda: "nothing is computed")
    find_cudnn = staticmethod(lambda stream: "nothing is computed")

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def available(self) -> None:
        return None

    def driver(self) -> Driver:
        if self._driver is None:
            self._driver = Driver(RecordingDriver(), caching=False)
        return self._driver

    def new_compiler(self, capability: tuple[int, int]) -> Compiler:
        return Recorder(self.seen)
