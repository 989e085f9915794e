"""CUDA C++ as a dialect of the kernel printer."""

from __future__ import annotations

from duograph.backend.codegen.dialect import GridDialect

__all__ = ["CUDA"]

CUDA = GridDialect(name="CUDA C++", prelude_file="prelude_cuda.h", memory="")
