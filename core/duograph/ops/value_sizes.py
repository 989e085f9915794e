"""Ops whose result size depends on values: nonzero, unique, masked_select.

Users call them. The ops run on the host. In a graph under construction they must raise an error,
because the shapes of their results are unknown; a compiled function then calls Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

import numpy as np

from ..dtype import bool_, int32
from ..errors import ArgumentError, DTypeError, ShapeError, UnsupportedOpError
from ..ir.values import NeedsValue
from ..op import op
from ..runtime_state import staged_builder
from ..tensor import Tensor
from ..types import TensorType, broadcast_shapes
from .axes import axis_of
from .creation import cast_to
from .creation_functions import beside
from .gather_scatter import gather
from .methods import tensor_method
from .movement import pad_by, slice_axis
from .primitive import primitive
from .repeating import broadcast_to
from .shape_primitives import reshape_to

__all__ = [
    "unique", "unique_consecutive", "unique_with_pad", "nonzero", "argwhere", "masked_select",
]  # fmt: skip


def _needs_values(name: str) -> Callable[..., NoReturn]:
    def infer(*types: TensorType, **attributes: object) -> NoReturn:
        if staged_builder() is not None:  # the compiled function then calls Python for this op
            raise NeedsValue(
                f"{name}: the size of its result is known only when the compiled function runs; "
                "use a mask "
                f"with ops.select"
            )
        raise UnsupportedOpError(
            f"{name}: the size of its result depends on values, which a graph under construction "
            "does "
            f"not have; call it outside, or use a mask with ops.select"
        )

    return infer


@op(name="nonzero", composite=False, differentiable=False, host=True)
def nonzero_by(input: Tensor):
    """Primitive op, on the host: int64 coordinates of the nonzero elements, a row for each."""


nonzero_by.infer(_needs_values("nonzero"))


@nonzero_by.reference
def _(x):
    return np.argwhere(x).astype(np.int64)


def nonzero(input: Tensor, *, as_tuple: bool = False) -> Tensor | tuple[Tensor, ...]:
    """Return the coordinates of the elements that are not zero (`mindspore.ops.nonzero`).

    Args:
        input: Tensor of any shape and dtype.
        as_tuple: whether to return a 1-d Tensor for each axis, else one Tensor with a row for each
            element.

    Returns:
        Tensor of int64 of shape (number of elements, ndim), or a tuple of Tensors.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.nonzero(ms.Tensor([0, 5, 6]))
        Tensor(shape=[2, 1], dtype=Int64, value=
        [[1],
         [2]])
    """
    found = nonzero_by(input)
    if not as_tuple:
        return found
    if not input.shape:
        return nonzero(reshape_to(input, (1,)), as_tuple=True)
    count = found.shape[0]
    return tuple(
        reshape_to(slice_axis(found, 1, i, i + 1), (count,)) for i in range(len(input.shape))
    )


tensor_method("nonzero")(nonzero)


@primitive("NonZero", op="nonzero")
@tensor_method("argwhere")
def argwhere(input: Tensor) -> Tensor:
    """Return the coordinates of the nonzero elements, a row for each (`mindspore.ops.argwhere`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.argwhere(ms.Tensor([0, 5, 6]))
        Tensor(shape=[2, 1], dtype=Int64, value=
        [[1],
         [2]])
    """
    return nonzero_by(input)


@primitive("MaskedSelect")
@tensor_method("masked_select")
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """Return the elements where a mask is True, on one axis (`mindspore.ops.masked_select`).

    Args:
        input: Tensor.
        mask: Tensor of bool; the shapes broadcast.

    Raises:
        TypeError: `mask` is not bool.
        ValueError: the shapes do not broadcast.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.masked_select(ms.Tensor([1, 2, 3]), ms.Tensor([True, False, True]))
        Tensor(shape=[2], dtype=Int64, value= [1, 3])
    """
    if mask.dtype is not bool_:
        raise DTypeError(f"masked_select: mask has dtype {mask.dtype.name}; wanted bool")
    shape = broadcast_shapes(input.shape, mask.shape)
    if shape is None:
        raise ShapeError(
            f"masked_select: got shapes {input.shape} and {mask.shape}; wanted ones that broadcast"
        )
    wide = broadcast_to.public(beside(mask, input), shape)
    where = broadcast_to.public(beside(input, mask), shape)
    at = nonzero_by(reshape_to(where, (where.size,)))
    return gather(reshape_to(wide, (wide.size,)), reshape_to(at, (at.size,)), 0)


@op(name="unique", composite=False, host=True)
def unique_by(input: Tensor, sorted: bool, axis: int | None):
    """Primitive op, on the host: (distinct elements or slices, indices into them, counts).

    There is one index for each element of `input` (or slice along `axis`): the position, among the
    distinct ones, of the one that is equal.
    """


unique_by.infer(_needs_values("unique"))


@unique_by.reference
def _unique(x, sorted, axis):
    shape = x.shape
    if x.dtype.kind == "V":  # NumPy cannot sort bfloat16
        values, *rest = _unique(x.astype(np.float32), sorted, axis)
        return (values.astype(x.dtype), *rest)
    flat = x.reshape(-1) if axis is None else x
    values, first, inverse, counts = np.unique(
        flat, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    inverse = inverse.reshape(-1)
    if not sorted:
        order = np.argsort(first, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(order.size)
        values = np.take(values, order, 0 if axis is None else axis)
        inverse, counts = rank[inverse], counts[order]
    if axis is None:
        inverse = inverse.reshape(shape)
    return values, inverse.astype(np.int64), counts.astype(np.int64)


@primitive("Unique", op="unique")
def unique(input: Tensor) -> tuple[Tensor, Tensor]:
    """Return the distinct elements, and which of them each element is (`mindspore.ops.unique`).

    The distinct elements are in the order of their first occurrence.

    Returns:
        (values of one axis, int32 indices of the shape of `input`).

    Examples:
        >>> import duograph as ms
        >>> values, inverse = ms.ops.unique(ms.Tensor([3, 1, 3]))
        >>> print(values, inverse)
        [3 1] [0 1 0]
    """
    found = unique_by(input, False, None)
    return found[0], cast_to(found[1], int32)


@tensor_method("unique")
def _tensor_unique(
    self: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """Return the distinct elements and, on request, inverse indices and counts.

    Args:
        sorted: whether they are in ascending order, else in the order of first occurrence.
        return_inverse: whether to return which of the distinct elements each element is, int64.
        return_counts: whether to return how often each distinct element occurs, int64.
        dim: axis whose slices are compared, or None for all elements.
    """
    axis = None if dim is None else axis_of("unique", dim, len(self.shape))
    found = unique_by(self, bool(sorted), axis)  # in compiled code an object of Python's
    if not return_inverse and not return_counts:
        return found[0]
    out = (found[0], found[1]) if return_inverse else (found[0],)
    return (*out, found[2]) if return_counts else out


@op(name="unique_consecutive", composite=False, host=True)
def unique_consecutive_by(input: Tensor, axis: int | None):
    """Primitive op, on the host: merge adjacent equal elements, or slices along `axis`.

    Returns (the merged elements or slices, the int64 index of each original one among them, the
    int64 number of originals of each).
    """


unique_consecutive_by.infer(_needs_values("unique_consecutive"))


@unique_consecutive_by.reference
def _(x, axis):
    shape = x.shape
    rows = x.reshape(-1, 1) if axis is None else np.moveaxis(x, axis, 0).reshape(x.shape[axis], -1)
    n = rows.shape[0]
    new = np.ones(n, bool)
    if n:
        new[1:] = (rows[1:] != rows[:-1]).any(1)
    at = np.flatnonzero(new)
    inverse = np.cumsum(new) - 1
    counts = np.diff(np.append(at, n))
    values = x.reshape(-1)[at] if axis is None else np.take(x, at, axis)
    if axis is None:
        inverse = inverse.reshape(shape)
    return values, inverse.astype(np.int64), counts.astype(np.int64)


@primitive("UniqueConsecutive(return_inverse=False, return_counts=False, dim=None)")
@tensor_method("unique_consecutive")
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Tensor | tuple[Tensor, ...]:
    """Drop elements that equal the one before (`mindspore.ops.unique_consecutive`).

    Args:
        input: Tensor of any shape.
        return_inverse, return_counts: whether to return also which of the values each element is,
            and the number of elements of each value (int64).
        dim: axis whose slices are compared; default the flattened elements.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.unique_consecutive(ms.Tensor([1, 1, 2, 1]))
        Tensor(shape=[3], dtype=Int64, value= [1, 2, 1])
    """
    axis = None if dim is None else axis_of("unique_consecutive", dim, len(input.shape))
    found = unique_consecutive_by(input, axis)  # in compiled code an object of Python's
    if not return_inverse and not return_counts:
        return found[0]
    out = (found[0], found[1]) if return_inverse else (found[0],)
    return (*out, found[2]) if return_counts else out


@primitive("UniqueWithPad")
@tensor_method("unique_with_pad")
def unique_with_pad(x: Tensor, pad_num: Tensor | int | float) -> tuple[Tensor, Tensor]:
    """Do what `unique` does, and pad the values by a number to the size of `x`
    (`mindspore.ops.unique_with_pad`).

    Examples:
        >>> import duograph as ms
        >>> values, inverse = ms.ops.unique_with_pad(ms.Tensor([3, 1, 3]), 0)
        >>> print(values, inverse)
        [3 1 0] [0 1 0]
    """
    values, inverse = unique(x)
    value = pad_num.item() if isinstance(pad_num, Tensor) else pad_num
    if not isinstance(value, (int, float)):
        raise ArgumentError(f"unique_with_pad: got pad_num={pad_num!r}; wanted a number")
    return pad_by(values, (0,), (x.size - values.size,), value), inverse
