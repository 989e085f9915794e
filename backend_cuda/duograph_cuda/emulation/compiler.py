"""Compiles CUDA C++ to a host library with the machine's C++ compiler (g++, or `CXX`).

A header of the emulation defines CUDA's keywords and built-in functions for the host compiler. The
emulated driver loads the libraries. Only the emulated device, and therefore only tests, use this
module.
"""

from __future__ import annotations

import functools
import os
import pathlib
import re
import shlex
import shutil
import subprocess

from ..compiler import BuildError, Compiler

__all__ = ["HostCompiler", "command"]

HERE = pathlib.Path(__file__).parent
# Kernels run for microseconds in tests and compile for a tenth of a second each: they are not
# optimised.
FLAGS = (
    "-std=c++17",
    "-Og",
    "-w",
    "-fPIC",
    "-shared",
    "-nostdlib",  # its start-up code is not used; searching the libraries takes 20 ms
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-strict-aliasing",
    "-fwrapv",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-asynchronous-unwind-tables",
    # Two mappings of memory per library instead of five: a process may have 65,530 of them, and a
    # run of the conformance suite loads thousands of kernels.
    "-Wl,-z,noseparate-code",
    "-Wl,-z,norelro",
)
# The library that runs kernels, by the identity of its compiler.
_machines: dict[tuple[object, ...], bytes] = {}
_KERNEL = re.compile(r"(?:\bDG_KERNEL|\b__global__) void(?: __launch_bounds__\([^)]*\))? (\w+)\(")


def command() -> list[str] | None:
    """Return the command line of the host's C++ compiler, or None if there is none."""
    chosen = shlex.split(os.environ.get("CXX", ""))
    for words in [chosen] if chosen else [["g++"], ["c++"], ["clang++"]]:
        found = shutil.which(words[0])
        if found:
            return [found, *words[1:]]
    return None


@functools.cache
def _machine_flags() -> tuple[str, ...]:
    """Return the compiler flags that make a fused multiply-add one instruction on this CPU.

    Returns no flags if the processor lacks the instruction; a call of the C library, which takes a
    hundred instructions, then computes it.
    """
    try:
        facts = pathlib.Path("/proc/cpuinfo").read_text()
    except OSError:
        return ()
    return ("-mfma",) if re.search(r"^flags.*\bfma\b", facts, re.MULTILINE) else ()


class HostCompiler(Compiler):
    """The machine's C++ compiler, which builds CUDA sources for the emulated CUDA device.

    Raises:
        FileNotFoundError: there is no C++ compiler.
    """

    suffix = ".so"

    def __init__(self) -> None:
        found = command()
        if found is None:
            raise FileNotFoundError("there is no C++ compiler (looked for CXX, g++, c++, clang++)")
        self.command = found
        self.version = subprocess.run(
            [*found, "--version"], capture_output=True, text=True, check=True
        ).stdout.splitlines()[0]
        self.flags = (*FLAGS, *_machine_flags())
        self.shim = (HERE / "machine.h").read_text() + (HERE / "shim.h").read_text()
        self.identity = ("emulated", self.version, *self.flags, self.shim)

    def describe(self) -> str:
        return f"{self.version}, emulating CUDA"

    def run(self, source: str) -> bytes:
        exports = "".join(f"DG_EXPORT({name})\n" for name in dict.fromkeys(_KERNEL.findall(source)))
        return self.compile(f'{self.shim}#line 1 "kernel.cu"\n{source}\n{exports}')

    def parameters(self, image: bytes, name: str) -> tuple[int, ...] | None:
        # a constant of shim.h: a text with the name, the number of parameters, their sizes
        head = b"parameters of " + name.encode() + b"\0"
        at = image.find(head) + len(head)
        return None if at < len(head) else tuple(image[at + 1 : at + 1 + image[at]])

    def machine(self) -> bytes:
        """Return the bytes of the C++ library that runs emulated kernels (machine.cpp).

        A process compiles it once.
        """
        if self.identity not in _machines:
            text = (HERE / "machine.cpp").read_text()
            header = (HERE / "machine.h").read_text()
            text = text.replace('#include "machine.h"', header)
            _machines[self.identity] = self.compile(text, "-O1")
        return _machines[self.identity]

    def compile(self, text: str, *flags: str) -> bytes:
        """Compile C++ source with the host's compiler; return the shared library's bytes.

        `flags` are appended to the flags that are used for all sources.
        """
        from duograph.backend import disk_cache

        out = disk_cache.scratch(".so")
        out.parent.mkdir(parents=True, exist_ok=True)
        arguments = [*self.command, *self.flags, *flags, "-x", "c++", "-", "-o", str(out), "-lm"]
        done = subprocess.run(arguments, input=text, capture_output=True, text=True)
        try:
            if done.returncode:
                raise BuildError(done.stderr)
            return out.read_bytes()
        finally:
            out.unlink(missing_ok=True)
