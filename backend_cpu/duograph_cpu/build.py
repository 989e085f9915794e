"""Builds `duograph_cpu._native`: the C under native/ and the elementwise kernels printed from the
op table.

`ffibuilder` is what setup.py names. The declarations of native/native.h are given to cffi as they
stand.
"""

import importlib.util
import os
import sys
from pathlib import Path

from cffi import FFI

HERE = Path(__file__).resolve().parent
NATIVE = HERE / "native"

# -O3: gcc 12 at -O2 vectorises only loops whose length it knows. Signed zeros, infinities and NaN
# keep their meaning; given up are errno, the floating point flags and signalling NaN. Signed
# integers wrap around, as NumPy's do.
FLAGS = [
    "-O3",
    "-std=gnu11",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fwrapv",
    "-fvisibility=hidden",
]


def _generated() -> tuple[str, list[Path]]:
    """Declarations and sources of the elementwise kernels."""
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
    ffi.cdef((NATIVE / "native.h").read_text() + declarations)
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
