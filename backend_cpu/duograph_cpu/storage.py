"""Casts to and from the dtypes that only store values, such as float8_e4m3fn, on the CPU.

`CPU.prepare` asks here before the C kernels, which do not have these dtypes. The loops are those of
the package ml_dtypes, called through NumPy, so a program with such a cast is not linked.
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

    Values outside the range of the new dtype become what ml_dtypes makes of them: NaN in
    float8_e4m3fn, infinities in float8_e5m2.
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
