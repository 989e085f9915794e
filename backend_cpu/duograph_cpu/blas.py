"""Opens OpenBLAS once, from the wheel that carries it, and hands it to the C side."""

from __future__ import annotations

import functools
import importlib.util
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from ._native import ffi, lib

if TYPE_CHECKING:
    from ._native import CData


@functools.cache
def open_blas() -> None:
    """Open the library of the `scipy-openblas32` package; without it products run on our own,
    slower loops.
    """
    spec = importlib.util.find_spec("scipy_openblas32")
    folder = Path(spec.origin).parent / "lib" if spec is not None and spec.origin else None
    found = sorted(folder.glob("libscipy_openblas*")) if folder is not None else []
    problem = "the package scipy-openblas32 is not installed"
    if found:
        # OpenBLAS reads these as it loads. Left alone it picks AVX2 kernels on processors with
        # AVX-512 that it does not know, at half the speed, and starts a thread for each core, where
        # the work is split over our own.
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
        f"matrix products run without BLAS, several times slower: {problem}",
        RuntimeWarning,
        stacklevel=2,
    )


def _text(pointer: CData) -> str:
    return ffi.string(pointer).decode(errors="replace")
