"""Making tensors: constants, counters, casts, and the random bits that all random ops are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dtype import DType, as_dtype
from ..errors import ArgumentError
from ..op import op
from ..tensor import Tensor
from ..types import TensorType

__all__ = ["cast"]  # the primitives are for the other families


@op(name="fill", composite=False, differentiable=False)
def fill(shape: Sequence[int], value: Any, dtype: DType):
    """Primitive: a tensor of `shape` and `dtype` with every element `value`."""


@fill.infer
def _(shape, value, dtype):
    if not isinstance(value, (int, float, complex)):
        raise ArgumentError(f"fill: got value={value!r}; wanted a number")
    return TensorType.of(tuple(shape), dtype)


@fill.reference
def _(shape, value, dtype):
    return np.full(shape, value, dtype.np)


@op(name="iota", composite=False, differentiable=False)
def iota(shape: Sequence[int], axis: int, dtype: DType):
    """Primitive: counts 0, 1, 2, ... along one axis of a tensor of `shape`."""


@iota.infer
def _(shape, axis, dtype):
    return TensorType.of(tuple(shape), dtype)


@iota.reference
def _(shape, axis, dtype):
    count = np.arange(shape[axis]).astype(dtype.np)
    lead = [1] * len(shape)
    lead[axis] = shape[axis]
    return np.array(np.broadcast_to(count.reshape(lead), shape))


@op(name="constant", composite=False, differentiable=False)
def constant(value: Any):
    """Primitive of graphs: an array known while the graph is built."""


@constant.infer
def _(value):
    return TensorType.of(value.array.shape, as_dtype(value.array.dtype))


@constant.reference
def _(value):
    return np.array(value.array)


@op(name="cast", composite=False)
def cast_to(input: Tensor, dtype: DType):
    """Primitive: every element converted to `dtype`.

    Float to bool is ``!= 0``; float to integer truncates; complex to real keeps the real part.
    """


@cast_to.infer
def _(x, dtype):
    return TensorType.of(x.shape, dtype)


@cast_to.reference
def _(x, dtype):
    with np.errstate(all="ignore"):
        if x.dtype.kind == "c" and dtype.kind in "biuf":
            x = (x != 0) if dtype.kind == "b" else x.real
        return x.astype(dtype.np)


@cast_to.scalar
def _(s, x, dtype):
    return s.cast(x, dtype)


@cast_to.bprop
def _(x, out, dout, dtype):
    return (cast_to(dout, x.dtype),)


def cast(input: Any, dtype: Any) -> Tensor:
    """Convert a tensor, or a number, to another dtype (`mindspore.ops.cast`).

    Args:
        input: Tensor of any shape, or a number.
        dtype: the dtype wanted.

    Returns:
        Tensor of the same shape.

    Raises:
        TypeError: `dtype` names no dtype.

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


def zeros_of(type_: TensorType) -> Tensor:
    """Zeros of a type."""
    zero: Any = False if type_.dtype.kind == "b" else 0
    return fill(type_.shape, zero, type_.dtype)
