"""The op that conjugates complex numbers, which most gradients of elementwise ops use.

The elementwise families import it; to avoid import cycles, it must import none of them.
"""

from __future__ import annotations

import numpy as np

from ..dtype import BOOL, NUMERIC, DType, complex64, complex128, float32, float64
from ..op import op
from ..tensor import Tensor

__all__ = ["conj", "conjugate", "real_dtype"]

_REAL = {complex64: float32, complex128: float64}


def real_dtype(dtype: DType) -> DType:
    """Return the dtype of the real part of a complex dtype, or any other dtype itself."""
    return _REAL.get(dtype, dtype)


@op(method="conj", primitive="Conj", dtypes=BOOL + NUMERIC)
def conj(input: Tensor):
    """Return the complex conjugates; a real tensor is returned unchanged (`mindspore.ops.conj`).

    Args:
        input: Tensor of any shape and dtype.

    Returns:
        Tensor of the shape of `input`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.conj(ms.Tensor([1 + 2j, 3 - 4j]))
        Tensor(shape=[2], dtype=Complex128, value= [1-2j, 3+4j])
    """


@conj.reference
def _(x):
    return np.conj(x) if x.dtype.kind == "c" else x


@conj.scalar
def _(s, x):
    return s.conj(x) if x.dtype.is_complex else x


@conj.bprop
def _(x, out, dout):
    return (conj(dout),)


def conjugate(x: Tensor) -> Tensor:
    """Return the conjugate of a complex tensor, or any other tensor itself."""
    return conj(x) if x.dtype.is_complex else x
