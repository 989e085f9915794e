"""Defines the CUDA C++ dialect for generated kernels, and reads the hand-written CUDA sources.

The kernel builders of the CUDA backend call `text` for files under cuda/, and the code generators
use the dialect `CUDA`. Nothing here compiles a source.
"""

from __future__ import annotations

import functools
import pathlib

from duograph.backend.codegen.dialect import GridDialect

__all__ = ["CUDA", "text"]

CUDA = GridDialect(
    name="CUDA C++",
    prelude_file="prelude_cuda.h",
    memory="",
    shuffles=True,
    bounds="__launch_bounds__({})",
    narrow=frozenset({"exp", "tanh", "/"}),
)
HERE = pathlib.Path(__file__).parent / "cuda"


@functools.cache
def text(*names: str) -> str:
    """Return the concatenated source of the CUDA files `names` under cuda/."""
    return "".join((HERE / name).read_text() for name in names)
