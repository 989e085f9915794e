"""From CUDA C++ to an image that the driver loads: NVRTC behind the disk cache.

DUOGRAPH_CUDA_SOURCES    a folder that gets a copy of every source that is asked for (`<hash>.cu`)
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import tempfile
from typing import Any

from duograph.backend import disk_cache
from duograph.errors import DeviceError

__all__ = ["OPTIONS", "BuildError", "Compiler", "Nvrtc"]

# Contraction is off: what an op computes may not depend on what stands beside it. Kernels that want
# a fused multiply-add write one. Denormals, divisions and square roots are IEEE's by default, and
# stay so.
OPTIONS = ("--std=c++17", "--fmad=false", "--device-as-default-execution-space")

# Counts up when what is stored changes.
FORMAT = 1


class BuildError(Exception):
    """A source that does not compile; the message is the compiler's log."""


class Compiler:
    """Turns sources into images, and keeps them on disk.

    A subclass sets `suffix` and `identity`, everything that an image depends on beside the source,
    and writes `run`.
    """

    suffix = ".cubin"
    identity: tuple[Any, ...] = ()

    def run(self, source: str) -> bytes:
        """Compile.

        Raises:
            BuildError: with the log.
        """
        raise NotImplementedError(f"{type(self).__name__}: has no run()")

    def describe(self) -> str:
        """One line for `duograph devices`."""
        raise NotImplementedError(f"{type(self).__name__}: has no describe()")

    def image(self, source: str) -> bytes:
        """The image of a source, from the disk cache where it has been compiled before.

        Raises:
            DeviceError: it does not compile; the message has the first lines of the log, and the
                folder that holds
            the source and the whole log.
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
        """What is raised for a source that does not compile; source and log are kept for whoever
        looks into it.
        """
        folder = pathlib.Path(tempfile.mkdtemp(prefix="duograph-cuda-"))
        (folder / "kernel.cu").write_text(source)
        (folder / "kernel.log").write_text(log)
        lines = [line for line in log.splitlines() if line.strip()][:6]
        return DeviceError(
            f"{self.describe()}: a kernel does not compile; its source and the whole log are in {folder}\n  "
            + "\n  ".join(lines)
        )


def keep_source(source: str) -> None:
    """Write a source to the folder that DUOGRAPH_CUDA_SOURCES names, if it does."""
    folder = os.environ.get("DUOGRAPH_CUDA_SOURCES")
    if folder:
        path = pathlib.Path(folder) / f"{disk_cache.key_of(source)[:24]}.cu"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source)


class Nvrtc(Compiler):
    """NVRTC for one architecture.

    Args:
        capability: compute capability, such as (9, 0).

    A device newer than the compiler gets the code of the newest virtual architecture that the
    compiler knows, which the driver translates when it loads it.

    Raises:
        ImportError, RuntimeError: there is no NVRTC (`cuda-bindings` and `nvidia-cuda-nvrtc` bring
            it).
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
                    f"NVRTC {self.name} compiles for compute capabilities from {min(known) / 10} on, and the device "
                    f"has {wanted / 10}"
                )
            self.architecture = f"compute_{max(older)}"
            self.suffix = ".ptx"
        self.options = (*OPTIONS, f"--gpu-architecture={self.architecture}")
        self.identity = ("nvrtc", self.name, *self.options)

    @property
    def name(self) -> str:
        """The version as text."""
        return ".".join(map(str, self.version))

    def describe(self) -> str:
        return f"NVRTC {self.name} {self.architecture}"

    def call(self, answer: tuple[Any, ...]) -> Any:
        """What an NVRTC function gave, without its code; a code that is not success raises."""
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

    def log(self, program: Any) -> str:
        """What the compiler said."""
        text = b" " * self.call(self.api.nvrtcGetProgramLogSize(program))
        self.call(self.api.nvrtcGetProgramLog(program, text))
        return text.rstrip(b"\0 ").decode("utf-8", "replace")
