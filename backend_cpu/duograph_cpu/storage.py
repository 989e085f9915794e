"""Casts to and from the dtypes that only store values, such as float8_e4m3fn, on the CPU.

`CPU.prepare` calls `storage_cast` for these dtypes, which the C kernels do not support. NumPy and
the package ml_dtypes compute the cast in Python, so a program with such a cast cannot become a
single C call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import memory
from ._native import ffi
from .native_call import NativeCall

if TYPE_CHECKING:
    from duograph.types import TensorType

    from ._native import CData

__all__ = ["storage_cast"]


def storage_cast(source: TensorType, result: TensorType) -> NativeCall:
    """Return the call that casts a tensor of type `source` to the dtype of `result`.

    Values outside the range of the new dtype are converted as ml_dtypes does: to NaN in
    float8_e4m3fn, to infinities in float8_e5m2.
    """
    make = memory.maker(result.nbytes, "cast")
    size, old, new = source.size, source.dtype.np, result.dtype.np

    def run(handle: CData) -> CData:
        made = make()
        if size:
            values = np.frombuffer(ffi.buffer(handle), old, size)
            with np.errstate(all="ignore"):
                if old.kind == "c":
                    values = values.real
                np.frombuffer(ffi.buffer(made), new, size)[:] = values
        return made

    return NativeCall(run)
