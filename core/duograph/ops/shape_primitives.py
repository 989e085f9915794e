"""The primitive ops of shape: reshape, transpose, strided copy, broadcast_to and reduce_sum.

Their gradients use each other, so they are in one module. Every op family uses them, and
`unbroadcast` in its gradients; to avoid import cycles, this module must not use another family.
Callers must normalise shapes and axes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..dtype import NUMERIC, DType, int32, int64
from ..errors import ShapeError
from ..op import op
from ..op_signature import Axes
from ..tensor import Tensor
from ..types import TensorType, broadcast_shapes, size_of
from .creation import fill, iota

__all__: list[str] = []


def dense_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides, in elements, of a C-ordered buffer of this shape."""
    out: list[int] = []
    step = 1
    for n in reversed(shape):
        out.append(step)
        step *= n
    return tuple(reversed(out))


def position_dtype(size: int) -> DType:
    """Return int32 if it can hold the positions of `size` elements, else int64."""
    return int32 if size < 2**31 else int64


def flat_positions(shape: Sequence[int], strides: Sequence[int], offset: int, size: int) -> Tensor:
    """Return a tensor of `shape` with offset + sum(i * strides) at each index tuple i.

    The numbers are positions in a buffer of `size` elements; strides are in elements.
    """
    dtype = position_dtype(size)
    shape = tuple(shape)
    out = fill(shape, offset, dtype)
    for axis, (n, step) in enumerate(zip(shape, strides, strict=True)):
        if n > 1 and step:
            out = out + iota(shape, axis, dtype) * step
    return out


@op(name="reshape", composite=False, alias=True, folds="biufc")
def reshape_to(input: Tensor, shape: Sequence[int]):
    """Primitive op: reshape to another shape of the same size; the result uses the same buffer."""


@reshape_to.infer
def _(x, shape):
    if size_of(shape) != x.size:
        raise ShapeError(
            f"reshape: got shape {x.shape} of {x.size} elements; wanted {tuple(shape)}, "
            f"which has {size_of(shape)}"
        )
    return TensorType.of(tuple(shape), x.dtype)


@reshape_to.reference
def _(x, shape):
    return np.reshape(x, shape)


@reshape_to.bprop
def _(x, out, dout, shape):
    return (reshape_to(dout, x.shape),)


@op(name="strided_copy", composite=False)
def strided_copy(input: Tensor, shape: Sequence[int], strides: Sequence[int], offset: int):
    """Primitive op: out[i] = input.flat[offset + sum(i * strides)] for each index tuple i.

    The result has shape `shape`. Strides and offset are in elements; strides may be negative or 0.
    """


@strided_copy.infer
def _(x, shape, strides, offset):
    if len(shape) != len(strides):
        raise ShapeError(
            f"strided_copy: got shape {tuple(shape)} and strides {tuple(strides)}; wanted one "
            f"stride an axis"
        )
    if max(map(abs, (*strides, offset))) >= 2**62:
        raise ShapeError(f"strided_copy: got strides {tuple(strides)}; wanted ones below 2**62")
    if size_of(shape):
        ends = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
        low = offset + sum(e for e in ends if e < 0)
        high = offset + sum(e for e in ends if e > 0)
        if low < 0 or high >= x.size:
            raise ShapeError(
                f"strided_copy: got positions {low} to {high} for {x.size} elements; "
                f"wanted all inside"
            )
    return TensorType.of(tuple(shape), x.dtype)


@strided_copy.reference
def _(x, shape, strides, offset):
    at = np.full(shape, offset, np.int64)
    for axis, (n, step) in enumerate(zip(shape, strides, strict=True)):
        lead = [1] * len(shape)
        lead[axis] = n
        at = at + np.arange(n).reshape(lead) * step
    return np.reshape(x, -1)[at] if at.size else np.empty(shape, x.dtype)


@op(name="transpose", storage=True, composite=False, folds="biufc")
def transpose_by(input: Tensor, perm: Sequence[int]):
    """Primitive op: permute axes; axis i of the result is axis perm[i] of `input`."""


@transpose_by.infer
def _(x, perm):
    if sorted(perm) != list(range(x.ndim)):
        raise ShapeError(
            f"transpose: got perm={tuple(perm)} for shape {x.shape}; wanted each axis once"
        )
    return TensorType.of(tuple([x.shape[p] for p in perm]), x.dtype)


@transpose_by.reference
def _(x, perm):
    return np.transpose(x, perm)


@transpose_by.decompose
def _(x, perm):
    steps = dense_strides(x.shape)
    return strided_copy(x, [x.shape[p] for p in perm], [steps[p] for p in perm], 0)


@transpose_by.bprop
def _(x, out, dout, perm):
    inverse = sorted(range(len(perm)), key=lambda i: perm[i])
    return (transpose_by(dout, tuple(inverse)),)


@op(composite=False, folds="biufc", per_axis=("shape",), broadcasts=True)
def broadcast_to(input: Tensor, shape: Sequence[int]):
    """Broadcast a tensor to `shape` by NumPy's rules (`mindspore.ops.broadcast_to`).

    Args:
        input: Tensor of any shape.
        shape: ints; -1 keeps the size of that axis.

    Raises:
        ValueError: the shape of `input` does not broadcast to `shape`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.broadcast_to(ms.Tensor([1, 2]), (2, -1))
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[1, 2],
         [1, 2]])
    """


def _why_not(have: Sequence[int], wanted: Sequence[int]) -> str:
    """Return why one shape does not broadcast to another, and what to do."""
    if len(have) > len(wanted):
        return f"wanted a shape of at least {len(have)} axes, as many as the Tensor has"
    for i in range(-1, -len(have) - 1, -1):
        if have[i] not in (1, wanted[i]):
            return (
                f"axis {i} of size {have[i]} cannot become {wanted[i]}, wanted a size of 1 or "
                f"{wanted[i]} there (ops.tile repeats the elements of an axis)"
            )
    return "wanted equal sizes, or 1 in the Tensor, from the last axis on"


@broadcast_to.infer
def _(x, shape):
    shape = tuple(shape)
    if broadcast_shapes(x.shape, shape) != shape:
        raise ShapeError(
            f"broadcast_to: got shape {x.shape}, which does not broadcast to {shape}; "
            f"{_why_not(x.shape, shape)}"
        )
    return TensorType.of(shape, x.dtype)


@broadcast_to.reference
def _(x, shape):
    return np.broadcast_to(x, shape)


@broadcast_to.decompose
def _(x, shape):
    steps = dense_strides(x.shape)
    own = [0 if n == 1 else s for n, s in zip(x.shape, steps, strict=True)]
    return strided_copy(x, shape, [0] * (len(shape) - len(own)) + own, 0)


@broadcast_to.bprop
def _(x, out, dout, shape):
    return (unbroadcast(dout, x),)


# ---- reduction


def reduced_shape(shape: Sequence[int], axis: Axes, keepdims: bool) -> tuple[int, ...]:
    """Return the shape after reducing `axis`, a tuple of non-negative ints."""
    if keepdims:
        return tuple([1 if i in axis else n for i, n in enumerate(shape)])
    return tuple([n for i, n in enumerate(shape) if i not in axis])


def broadcast_reduced(value: Tensor, shape: Sequence[int], axis: Axes, keepdims: bool) -> Tensor:
    """Broadcast a reduced tensor back to the shape before the reduction, for gradient rules.

    `axis` and `keepdims` are those of the reduction.
    """
    if not keepdims:
        value = reshape_to(value, reduced_shape(shape, axis, True))
    return broadcast_to(value, tuple(shape))


@op(dtypes=NUMERIC, folds="biu", reduction="+")
def reduce_sum(input: Tensor, axis: Axes, keepdims: bool):
    """Primitive op: sum over `axis`, a tuple of non-negative ints; () reduces nothing."""


@reduce_sum.infer
def _(x, axis, keepdims):
    return TensorType.of(reduced_shape(x.shape, axis, keepdims), x.dtype)


@reduce_sum.reference
def _(x, axis, keepdims):
    wide = np.float32 if x.dtype.itemsize == 2 and x.dtype.kind in "fV" else x.dtype
    return np.sum(x, axis=tuple(axis), keepdims=keepdims, dtype=wide).astype(x.dtype)


@reduce_sum.bprop
def _(x, out, dout, axis, keepdims):
    return (broadcast_reduced(dout, x.shape, axis, keepdims),)


def unbroadcast(grad: Tensor, like: Tensor) -> Tensor:
    """Sum a gradient over the axes that broadcasting added or widened, to the shape of `like`."""
    shape = like.shape
    have = grad.shape
    if len(have) == len(shape) and have == shape:
        return grad
    lead = len(have) - len(shape)
    axes = tuple(range(lead)) + tuple(
        lead + i for i, n in enumerate(shape) if n == 1 and have[lead + i] != 1
    )
    if axes:
        grad = reduce_sum(grad, axes, False)
    return grad if grad.shape == shape else reshape_to(grad, shape)
