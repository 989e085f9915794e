"""Loads OpenBLAS, which computes large matmuls, from the `scipy-openblas32` wheel.

Builders of matmul and convolution call `open_blas` when the first kernel needs BLAS; native/blas.c
keeps the function pointers. Importing this module must not load the library, which takes time and
memory.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from duograph.backend.locks import new_lock

from ._native import ffi, lib

if TYPE_CHECKING:
    from ._native import CData

_loading = new_lock()


@functools.cache
def open_blas() -> None:
    """Load OpenBLAS, unless that was done before in this process.

    If it is missing or cannot be loaded, warn that matmul uses duograph's own, slower loops.
    """
    with _loading:  # two threads would take each other's variables for the user's
        _open()


def _open() -> None:
    """Load OpenBLAS with environment variables that select its kernels, and restore these."""
    spec = importlib.util.find_spec("scipy_openblas32")
    folder = Path(spec.origin).parent / "lib" if spec is not None and spec.origin else None
    found = sorted(folder.glob("libscipy_openblas*")) if folder is not None else []
    problem = "the package scipy-openblas32 is not installed"
    if found:
        # OpenBLAS reads these variables as it loads. By default it selects AVX2 kernels, at half
        # the speed, on AVX-512 processors that it does not know, and starts a thread per core,
        # while our own pool splits the work.
        wanted = {"OPENBLAS_NUM_THREADS": "1"}
        if lib.dg_isa() == 2 and "OPENBLAS_CORETYPE" not in os.environ:
            wanted["OPENBLAS_CORETYPE"] = "SkylakeX"
        before = {name: os.environ.get(name) for name in wanted}
        os.environ.update(wanted)
        try:
            problem = lib.dg_blas_open(str(found[0]).encode())
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
        if not problem:
            return
        problem = _text(problem)
    warnings.warn(
        f"matmul runs without BLAS, several times slower: {problem}",
        RuntimeWarning,
        stacklevel=2,
    )


def _text(pointer: CData) -> str:
    return ffi.string(pointer).decode(errors="replace")
