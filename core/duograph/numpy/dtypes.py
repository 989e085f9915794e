"""Element types, constants and promotion of `duograph.numpy`.

Users read them as `duograph.numpy.float32` and so on. The dtypes are the objects of
`duograph.dtype`; the module must not define others.
"""

from __future__ import annotations

import math
from functools import reduce

from ..dtype import (
    DType,
    DTypeLike,
    as_dtype,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    promote,
    uint8,
    uint16,
    uint32,
    uint64,
)
from ..errors import ArgumentError
from ..tensor import Tensor
from .operands import tensor_of

# fmt: off
__all__ = [
    "NINF", "PINF", "bool_", "e", "euler_gamma", "float16", "float32", "float64", "float_", "inf",
    "int16", "int32", "int64", "int8", "int_", "nan", "newaxis", "pi", "promote_types",
    "result_type", "uint", "uint16", "uint32", "uint64", "uint8",
]
# fmt: on

pi, e, inf, nan, newaxis = math.pi, math.e, math.inf, math.nan, None
PINF, NINF = math.inf, -math.inf
euler_gamma = 0.5772156649015329
float_, int_, uint = float32, int32, uint32  # the dtypes of Python numbers here


def promote_types(type1: DTypeLike, type2: DTypeLike) -> DType:
    """Return the dtype to which two dtypes are promoted.

    Args:
        type1: dtype.
        type2: dtype.

    Returns:
        dtype.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.promote_types(mnp.int32, mnp.float16))
        Float16
    """
    return promote(as_dtype(type1), as_dtype(type2))


def result_type(*arrays_and_dtypes: object) -> DType:
    """Return the dtype to which array-likes and dtypes are promoted.

    Args:
        arrays_and_dtypes: Tensors, numbers, sequences, NumPy arrays, dtypes or names of dtypes.

    Returns:
        dtype.

    Raises:
        TypeError: no argument.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.result_type("int16", [1.5], True))
        Float32
    """
    if not arrays_and_dtypes:
        raise ArgumentError("result_type: got no argument; wanted at least one")
    return reduce(promote, map(_dtype_of, arrays_and_dtypes))


def _dtype_of(x: object) -> DType:
    if isinstance(x, Tensor):
        return x.dtype
    if isinstance(x, (DType, str, type)):
        return as_dtype(x)
    return tensor_of(x).dtype
