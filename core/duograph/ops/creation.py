"""The primitive op `iota`, which counts along an axis, and the dtype conversion `cast`.

The other families of `ops` import them from here; users call `cast` alone. To avoid import
cycles, this module must not import a family that uses it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..call_cache import cached_call
from ..dtype import DType, DTypeLike, as_dtype
from ..errors import ArgumentValueError
from ..ir.basic_ops import cast_to as cast_to
from ..ir.basic_ops import constant as constant
from ..ir.basic_ops import fill as fill
from ..ir.basic_ops import zeros_of as zeros_of
from ..op import op
from ..tensor import Tensor
from ..types import TensorType
from .primitive import primitive

__all__ = ["cast"]  # the primitives are for other modules of ops


@op(name="iota", composite=False, differentiable=False)
def iota(shape: Sequence[int], axis: int, dtype: DType):
    """Primitive op: a tensor whose elements count 0, 1, 2, ... along `axis`."""


@iota.infer
def _(shape, axis, dtype):
    if not 0 <= axis < len(shape):
        raise ArgumentValueError(f"iota: got axis {axis} of the shape {tuple(shape)}")
    return TensorType.of(tuple(shape), dtype)


@iota.reference
def _(shape, axis, dtype):
    count = np.arange(shape[axis]).astype(dtype.np)
    lead = [1] * len(shape)
    lead[axis] = shape[axis]
    return np.array(np.broadcast_to(count.reshape(lead), shape))


@primitive("Cast", op="cast")
@cached_call
def cast(input: object, dtype: DTypeLike) -> Tensor:
    """Convert a tensor, or a number, to another dtype (`mindspore.ops.cast`).

    Args:
        input: Tensor of any shape, or a number.
        dtype: dtype of the result.

    Returns:
        Tensor of the same shape.

    Raises:
        TypeError: `dtype` is not a dtype.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.cast(ms.Tensor([1.7, -1.7]), ms.int32)
        Tensor(shape=[2], dtype=Int32, value= [ 1, -1])
    """
    target = as_dtype(dtype)
    if not isinstance(input, Tensor):
        input = Tensor(input)
    if input._type.dtype is target:
        return input
    return cast_to(input, target)
