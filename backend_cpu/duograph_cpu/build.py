"""Builds the C extension `duograph_cpu._native` when the package is installed.

Its sources are the C files under native/ and the generated elementwise kernels. setup.py runs the
build through `ffibuilder`. cffi parses the declarations of native/native.h unchanged. This module
must not be imported at run time.
"""

import importlib.util
import os
import sys
from pathlib import Path

from cffi import FFI

HERE = Path(__file__).resolve().parent
NATIVE = HERE / "native"

# -O3: gcc 12 at -O2 vectorises only loops of a known length. Signed zeros, infinities and NaN keep
# their meaning; errno, floating point flags and signalling NaN are given up. Signed integers wrap
# around, as in NumPy. No exception passes through C, so it has no tables for unwinding (280 KB).
# Aligned jumps and labels, other than the heads of loops, would be another 100 KB.
FLAGS = [
    "-O3",
    "-std=gnu11",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fwrapv",
    "-fvisibility=hidden",
    "-fno-asynchronous-unwind-tables",
    "-fno-align-jumps",
    "-fno-align-labels",
]

# The Python functions that C calls; native/pool.c declares them too.
FROM_C = """
extern "Python+C" int dg_handle_signals(void);
"""


def _generated() -> tuple[str, list[Path]]:
    """Write the C files of elementwise kernels; return (cffi declarations, file paths).

    Both results are empty if generate.py is missing.
    """
    path = HERE / "generate.py"
    if not path.exists():
        return "", []
    spec = importlib.util.spec_from_file_location("duograph_cpu_generate", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    declarations, sources = module.generate(HERE / "_generated")
    return declarations, [Path(s) for s in sources]


def _builder() -> FFI:
    declarations, generated = _generated()
    sources = sorted(NATIVE.glob("*.c")) + generated
    ffi = FFI()
    ffi.cdef((NATIVE / "native.h").read_text() + declarations + FROM_C)
    ffi.set_source(
        "duograph_cpu._native",
        '#include "common.h"\n' + declarations,
        sources=[os.path.relpath(s) for s in sources],
        include_dirs=[os.path.relpath(NATIVE)],
        depends=[os.path.relpath(p) for p in sorted(NATIVE.iterdir())],
        extra_compile_args=FLAGS,
        libraries=["m", "pthread"] + (["dl"] if sys.platform == "linux" else []),
    )
    return ffi


ffibuilder = _builder()
