"""Builds the compiled modules of the CPU and the CUDA backend; the rest is in pyproject.toml.

That of the CUDA backend needs no CUDA: it gets the driver's functions as addresses. The build
prints the element-wise kernels from the op table, so it imports `duograph` from the
source folder before it is installed.
"""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CCompilerError, CompileError

HERE = Path(__file__).resolve().parent
for folder in ("backend_cpu", "core"):
    sys.path.insert(0, str(HERE / folder))

NO_COMPILER = """
a part of duograph is C and its build failed: see the compiler's output above.
If there is no compiler, or Python.h is missing, install them:
  Debian, Ubuntu  apt-get install gcc python3-dev
  Fedora          dnf install gcc python3-devel
  macOS           xcode-select --install
"""


class BuildExt(build_ext):
    """Compiles changed sources on all cores; without a compiler it says what to install."""

    def build_extension(self, extension):
        try:
            self.compile_sources(extension)
            super().build_extension(extension)
        except (CCompilerError, CompileError) as error:
            raise SystemExit(f"{error}\n{NO_COMPILER}") from error

    def compile_sources(self, extension):
        """Compile all changed sources except the first one, which cffi printed."""
        if self.compiler.compiler_type == "unix" and not self.debug:
            # Python's own flags ask for debug information, two thirds of what would be installed.
            extension.extra_compile_args = [*extension.extra_compile_args, "-g0"]
            if sys.platform == "linux" and "-fsanitize" not in os.environ.get("LDFLAGS", ""):
                # Symbols of functions that only this module calls; a sanitizer names them.
                extension.extra_link_args = [*extension.extra_link_args, "-Wl,--strip-all"]
        first, *sources = extension.sources
        cpu = extension.name.startswith("duograph_cpu.")
        folder = HERE / ("backend_cpu" if cpu else "backend_cuda/duograph_cuda/native")
        shared = [p for p in folder.rglob("*") if p.suffix in {".h", ".inc"}]
        if cpu:
            shared.append(HERE / "backend_cpu/duograph_cpu/build.py")  # the compiler's flags
        changed = max(path.stat().st_mtime for path in shared)

        def compiled(source):
            (target,) = self.compiler.object_filenames([source], output_dir=self.build_temp)
            newest = max(changed, os.path.getmtime(source))
            if not os.path.exists(target) or os.path.getmtime(target) <= newest:
                self.compiler.compile(
                    [source],
                    output_dir=self.build_temp,
                    include_dirs=extension.include_dirs,
                    debug=self.debug,
                    extra_postargs=extension.extra_compile_args,
                )
            return target

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = list(pool.map(compiled, sources))
        extension.sources = [first]
        extension.extra_objects = [*extension.extra_objects, *objects]
        extension.depends = [*extension.depends, *objects]


# DUOGRAPH_NATIVE=0 installs without the compiled modules; the Makefile builds them separately with
# `python setup.py build_ext --inplace`, which compiles only changed sources.
NATIVE = os.environ.get("DUOGRAPH_NATIVE", "1") != "0"

CUDA = Extension(
    "duograph_cuda._native",
    [f"backend_cuda/duograph_cuda/native/{name}.c" for name in ("gate", "pool")],
    depends=["backend_cuda/duograph_cuda/native/native.h"],
    py_limited_api=True,
)

RECORDING = Extension(
    "duograph_cpu._recording",
    ["backend_cpu/duograph_cpu/native/python/recording.c"],
    py_limited_api=True,
)

setup(
    cffi_modules=["backend_cpu/duograph_cpu/build.py:ffibuilder"] if NATIVE else [],
    ext_modules=[RECORDING, CUDA] if NATIVE else [],
    cmdclass={"build_ext": BuildExt},
    # cffi builds for CPython's stable ABI; tag the wheel accordingly.
    options={"bdist_wheel": {"py_limited_api": "cp310"}},
)
