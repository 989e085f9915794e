"""The device target `CUDA-emulated`: the CUDA backend on the emulated driver.

The plugin module `duograph_cuda` makes the backend when a test names the target. Programs should
not use it, because it is slow.
"""

from __future__ import annotations

import os
import platform

from ..backend import Cuda
from ..compiler import Compiler
from ..driver import Driver
from .compiler import HostCompiler, command
from .driver import EmulatedDriver

__all__ = ["CudaEmulated"]


class CudaEmulated(Cuda):
    """The CUDA backend on an emulated driver; kernels are built with the host's C++ compiler.

    DUOGRAPH_CUDA_SEED seeds the random order in which blocks and threads run.
    """

    name = "CUDA-emulated"
    # DLPack's type for devices of no known kind: no other library takes this memory for a GPU's
    dlpack_kinds = (12,)

    @staticmethod
    def find_library() -> str:
        return "the emulated device runs nothing but the sources of this backend"

    @staticmethod
    def find_cudnn(stream: int) -> str:
        return CudaEmulated.find_library()

    def available(self) -> str | None:
        if platform.machine() not in ("x86_64", "aarch64") or os.name != "posix":
            return f"the emulation has no fibres for {platform.machine()} under {os.name}"
        if command() is None:
            return "there is no C++ compiler (looked for CXX, g++, c++, clang++)"
        return None

    def driver(self) -> Driver:
        if self._driver is None:
            seed = int(os.environ.get("DUOGRAPH_CUDA_SEED", "1"))
            self._driver = Driver(EmulatedDriver(HostCompiler(), seed=seed), caching=False)
        return self._driver

    def new_compiler(self, capability: tuple[int, int]) -> Compiler:
        return HostCompiler()
