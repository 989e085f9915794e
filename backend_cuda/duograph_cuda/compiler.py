"""Compiles CUDA C++ with NVRTC to an image that the driver loads, with a disk cache.

`CudaDevice.build` calls `Compiler.image`. Nothing here loads or runs an image.

DUOGRAPH_CUDA_SOURCES    a folder for a copy of every source that is requested (`<hash>.cu`)
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import tempfile
from typing import Any

from duograph.backend import disk_cache
from duograph.errors import DeviceError

from .kernel_parameters import parameter_sizes

__all__ = ["OPTIONS", "BuildError", "Compiler", "Nvrtc"]

# Contraction is off, so that the result of an op does not depend on neighbouring ops. Kernels
# request a fused multiply-add explicitly. Denormals, division and square root are IEEE by default.
OPTIONS = ("--std=c++17", "--fmad=false", "--device-as-default-execution-space")

# Version of the cache entries.
FORMAT = 1


class BuildError(Exception):
    """Raised for CUDA source that does not compile; the message is the build log."""


class Compiler:
    """Base class of CUDA C++ compilers; caches compiled images on disk.

    A subclass implements `run` and sets `suffix`, the file name suffix of an image, and `identity`,
    everything besides the source on which an image depends.
    """

    suffix = ".cubin"
    identity: tuple[object, ...] = ()

    def run(self, source: str) -> bytes:
        """Compile CUDA C++ source to an image that the driver can load.

        Raises:
            BuildError: the source does not compile; the message is the log.
        """
        raise NotImplementedError(f"{type(self).__name__}: has no run()")

    def describe(self) -> str:
        """Describe the CUDA C++ compiler in one line, for `duograph devices`."""
        raise NotImplementedError(f"{type(self).__name__}: has no describe()")

    def parameters(self, image: bytes, name: str) -> tuple[int, ...] | None:
        """Return the sizes in bytes of the parameters of kernel `name`; None if unknown."""
        return parameter_sizes(image, name)

    def image(self, source: str) -> bytes:
        """Compile CUDA C++ source, or load its image from the disk cache; return the image.

        Raises:
            DeviceError: the source does not compile; the message has the first lines of the log and
                names a folder with the source and the whole log.
        """
        keep_source(source)
        key = disk_cache.key_of("cuda", FORMAT, *self.identity, source)
        found = disk_cache.read(key, self.suffix)
        if found is not None:
            return found
        try:
            made = self.run(source)
        except BuildError as error:
            raise self.failure(source, str(error)) from None
        with contextlib.suppress(OSError):  # then the next process compiles it again
            disk_cache.store(key, self.suffix, made)
        return made

    def failure(self, source: str, log: str) -> DeviceError:
        """Save the source and log of a failed CUDA build; return an exception that names them."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="duograph-cuda-"))
        (folder / "kernel.cu").write_text(source)
        (folder / "kernel.log").write_text(log)
        lines = [line for line in log.splitlines() if line.strip()][:6]
        return DeviceError(
            f"{self.describe()}: a kernel does not compile; its source and the whole log are in "
            f"{folder}\n  " + "\n  ".join(lines)
        )


def keep_source(source: str) -> None:
    """Write a copy of CUDA source to the folder that DUOGRAPH_CUDA_SOURCES names, if it is set."""
    folder = os.environ.get("DUOGRAPH_CUDA_SOURCES")
    if folder:
        path = pathlib.Path(folder) / f"{disk_cache.key_of(source)[:24]}.cu"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source)


class Nvrtc(Compiler):
    """The CUDA C++ compiler NVRTC for one GPU architecture.

    Args:
        capability: compute capability, such as (9, 0).

    For a device that is newer than this NVRTC, it compiles to PTX of the newest architecture that
    NVRTC supports, and the driver translates the PTX when it loads the image.

    Raises:
        ImportError, RuntimeError: NVRTC is not installed (it comes with the packages
            `cuda-bindings` and `nvidia-cuda-nvrtc`), or supports only newer devices.
    """

    def __init__(self, capability: tuple[int, int]) -> None:
        from cuda.bindings import nvrtc

        self.api = nvrtc
        self.version: tuple[int, int] = tuple(self.call(nvrtc.nvrtcVersion()))
        known = self.call(nvrtc.nvrtcGetSupportedArchs())
        wanted = capability[0] * 10 + capability[1]
        if wanted in known:
            self.architecture = f"sm_{wanted}"
        else:
            older = [a for a in known if a <= wanted]
            if not older:
                raise RuntimeError(
                    f"NVRTC {self.name} compiles for compute capabilities from {min(known) / 10} "
                    "on, and the device "
                    f"has {wanted / 10}"
                )
            self.architecture = f"compute_{max(older)}"
            self.suffix = ".ptx"
        self.options = (*OPTIONS, f"--gpu-architecture={self.architecture}")
        self.identity = ("nvrtc", self.name, *self.options)

    @property
    def name(self) -> str:
        """NVRTC's version number as a string, such as "12.8"."""
        return ".".join(map(str, self.version))

    def describe(self) -> str:
        return f"NVRTC {self.name} {self.architecture}"

    def call(self, answer: tuple[object, ...]) -> Any:
        """Return the results of an NVRTC call; `answer` is its status code followed by its results.

        Raises:
            BuildError: the status code is an error.
        """
        code, *rest = answer
        if code:
            (_, text) = self.api.nvrtcGetErrorString(code)
            raise BuildError(text.decode())
        return rest[0] if len(rest) == 1 else rest

    def run(self, source: str) -> bytes:
        api = self.api
        program = self.call(api.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, [], []))
        try:
            options = [o.encode() for o in self.options]
            (code,) = api.nvrtcCompileProgram(program, len(options), options)
            if code:
                raise BuildError(self.log(program) or str(code))
            if self.architecture.startswith("compute"):
                size, get = api.nvrtcGetPTXSize, api.nvrtcGetPTX
            else:
                size, get = api.nvrtcGetCUBINSize, api.nvrtcGetCUBIN
            image = b" " * self.call(size(program))
            self.call(get(program, image))
            return image
        finally:
            api.nvrtcDestroyProgram(program)

    def log(self, program: object) -> str:
        """Return NVRTC's build log of a program, as text."""
        text = b" " * self.call(self.api.nvrtcGetProgramLogSize(program))
        self.call(self.api.nvrtcGetProgramLog(program, text))
        return text.rstrip(b"\0 ").decode("utf-8", "replace")
