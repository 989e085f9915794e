"""Conversion of what users pass to functions of `duograph.numpy`.

Every family of the package calls these functions. They must not read the value of a Tensor, so that
the callers work in compiled functions and under derivatives.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import reduce
from typing import TypeAlias

import numpy as _np
from numpy.typing import ArrayLike

from .. import ops as _ops
from ..dtype import (
    DType,
    DTypeLike,
    as_dtype,
    float32,
    int32,
    int64,
    promote,
    promote_scalar,
    uint32,
)
from ..errors import ArgumentError, ArgumentValueError
from ..host_arrays import array_of
from ..tensor import Tensor

__all__ = [
    "Ints",
    "TensorLike",
    "along",
    "as_floating",
    "as_indices",
    "axis_of",
    "dtype_or_none",
    "is_host_value",
    "pair",
    "promoted",
    "tensor_of",
    "widened",
    "with_dtype",
]

TensorLike: TypeAlias = "Tensor | ArrayLike | Sequence[Tensor]"
Ints: TypeAlias = "int | Sequence[int]"

_INT32 = _np.iinfo(_np.int32)


def dtype_or_none(dtype: DTypeLike | None) -> DType | None:
    """Return a dtype, given as a name, type or object, as a `DType`; None stays None."""
    return None if dtype is None else as_dtype(dtype)


def with_dtype(x: Tensor, dtype: DTypeLike | None) -> Tensor:
    """Return `x` cast to a dtype, or unchanged for None."""
    wanted = dtype_or_none(dtype)
    return x if wanted is None or x.dtype is wanted else x.astype(wanted)


def _holds_tensor(x: object) -> bool:
    if isinstance(x, (list, tuple)):
        return any(map(_holds_tensor, x))
    return isinstance(x, Tensor)


def _holds_numpy(x: object) -> bool:
    if isinstance(x, (list, tuple)):
        return any(map(_holds_numpy, x))
    return isinstance(x, (_np.ndarray, _np.generic))


def is_host_value(x: object) -> bool:
    """Return whether `x` is a number, array or sequence without a Tensor in it."""
    return not _holds_tensor(x)


def tensor_of(x: object, dtype: DTypeLike | None = None) -> Tensor:
    """Return a Tensor, number, nested sequence or array as a Tensor.

    Python ints become int32 if they fit and int64 otherwise, Python floats float32; NumPy values
    keep their dtype. Gradients flow to the Tensors inside a sequence, which are stacked.
    """
    wanted = dtype_or_none(dtype)
    if isinstance(x, Tensor):
        return with_dtype(x, wanted)
    if isinstance(x, (list, tuple)) and _holds_tensor(x):
        return with_dtype(_ops.stack(promoted([tensor_of(v) for v in x])), wanted)
    array = array_of(x, wanted, type(x).__name__)
    small = wanted is None and array.dtype == _np.int64 and not _holds_numpy(x)
    if small and (not array.size or (array.min() >= _INT32.min and array.max() <= _INT32.max)):
        array = array.astype(int32.np)
    return Tensor(array)


def promoted(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return the tensors cast to their common dtype."""
    if not tensors:
        return []
    common = reduce(promote, [t.dtype for t in tensors])
    return [with_dtype(t, common) for t in tensors]


def as_floating(x: Tensor) -> Tensor:
    """Return integers and bools as float32, other tensors unchanged."""
    return x.astype(float32) if x.dtype.kind in "biu" else x


def axis_of(name: str, axis: int, ndim: int) -> int:
    """Return an axis as a number from 0 to `ndim` - 1.

    Raises:
        ValueError: the axis is out of range.
    """
    found = operator.index(axis)
    if not -ndim <= found < ndim:
        raise ArgumentValueError(
            f"{name}: got axis={axis} for {ndim} axes; wanted {-ndim} to {ndim - 1}"
        )
    return found % ndim


def widened(x: Tensor) -> Tensor:
    """Cast bools and integers of less than 32 bits to 32 bits; return other tensors unchanged.

    Unsigned integers become uint32; bools and signed integers become int32.
    """
    if x.dtype.kind not in "biu" or (x.dtype.kind != "b" and x.dtype.itemsize >= 4):
        return x
    return x.astype(uint32 if x.dtype.kind == "u" else int32)


def as_indices(x: TensorLike) -> Tensor:
    """Return indices as an int64 tensor."""
    return tensor_of(x).astype(int64)


def along(x: Tensor, axis: int, part: slice) -> Tensor:
    """Return the elements of a tensor that the slice `part` selects along `axis`.

    `axis` counts from 0; all elements of the other axes are selected.
    """
    return x[(slice(None),) * axis + (part,)]


def pair(name: str, x1: object, x2: object) -> tuple[Tensor, Tensor]:
    """Return two operands as Tensors of the same dtype; a Python number takes the other's dtype.

    A number of a higher kind, such as a float beside integers, changes the dtype. `name` is the
    calling function, for the error.
    """
    numbers = [isinstance(x, (bool, int, float, complex)) for x in (x1, x2)]
    if x1 is None or x2 is None:
        raise ArgumentError(f"{name}: got None for an operand; wanted a Tensor or an array-like")
    if numbers == [True, False]:
        other = tensor_of(x2)
        return tensor_of(x1, promote_scalar(other.dtype, x1)), other
    if numbers == [False, True]:
        other = tensor_of(x1)
        return other, tensor_of(x2, promote_scalar(other.dtype, x2))
    first, second = promoted([tensor_of(x1), tensor_of(x2)])
    return first, second
