"""Builds the CPU backend's compiled module; everything else stands in pyproject.toml.

The elementwise kernels of that module are printed from the `scalar` slots of the op table, so the
build imports `duograph` from the source folder, before it is installed.
"""

import os
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CCompilerError, CompileError

HERE = Path(__file__).resolve().parent
for folder in ("backend_cpu", "core"):
    sys.path.insert(0, str(HERE / folder))

NO_COMPILER = """
duograph's CPU backend is C and its build failed: see the compiler's words above.
If there is no compiler, or Python.h is missing, install them:
  Debian, Ubuntu  apt-get install gcc python3-dev
  Fedora          dnf install gcc python3-devel
  macOS           xcode-select --install
"""


class BuildExt(build_ext):
    """Recompiles when any C source changed, and says what to install without a compiler."""

    def finalize_options(self):
        super().finalize_options()
        folder = HERE / "backend_cpu"
        sources = [str(p) for p in sorted(folder.rglob("*")) if p.suffix in {".c", ".h", ".inc"}]
        for extension in self.extensions or ():
            extension.depends = [*extension.depends, *sources]

    def build_extension(self, extension):
        try:
            super().build_extension(extension)
        except (CCompilerError, CompileError) as error:
            raise SystemExit(f"{error}\n{NO_COMPILER}") from error


# DUOGRAPH_NATIVE=0 installs without the compiled module: the Makefile builds it in a step of its
# own, `python setup.py build_ext --inplace`, which compiles only when something changed.
NATIVE = os.environ.get("DUOGRAPH_NATIVE", "1") != "0"

setup(
    cffi_modules=["backend_cpu/duograph_cpu/build.py:ffibuilder"] if NATIVE else [],
    cmdclass={"build_ext": BuildExt},
    # cffi builds for CPython's stable ABI; tag the wheel accordingly.
    options={"bdist_wheel": {"py_limited_api": "cp310"}},
)
