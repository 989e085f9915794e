"""Functions that create tensors: zeros, ones, full, one-hot rows, masks, triangle indices.

Users call them; other families of ops use `as_index` and `beside` to convert index operands.
Functions that create ranges of numbers are in `creation_ranges`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..call_cache import cached_call
from ..dtype import DType, DTypeLike, as_dtype, bool_, float32, int32, int64, promote, scalar_dtype
from ..errors import ArgumentError, ArgumentValueError, DTypeError
from ..ir.builder import GraphTensor
from ..op import op
from ..op_signature import NewAxis, Number
from ..placement import commit
from ..recorded_tensors import is_recorded
from ..tensor import Tensor
from . import powers
from .arguments import Number, Scalar, ints_of
from .axes import axis_of
from .comparison import equal, less
from .creation import cast_to, iota
from .creation import fill as fill_by
from .logic import select_by
from .methods import tensor_method
from .primitive import primitive
from .shape_primitives import broadcast_to, reshape_to
from .shaping import one_tuple

__all__ = [
    "ones", "zeros", "full", "empty", "ones_like", "zeros_like", "full_like", "empty_like", "fill",
    "fills", "eye", "one_hot", "sequence_mask", "tril_indices", "triu_indices", "vander",
]  # fmt: skip


def sizes_of(name: str, shape: object) -> tuple[int, ...]:
    found = ints_of(name, "shape", shape)
    if any([n < 0 for n in found]):
        raise ArgumentValueError(f"{name}: got shape {found}; wanted no negative size")
    return found


# ---- constants
# ---------------------------------------------------------------------------------------


def _element_type(name: str, dtype: DTypeLike | None, shape: object) -> DType:
    if isinstance(dtype, int):
        size = shape if isinstance(shape, int) else "..."
        raise ArgumentError(
            f"{name}: got {dtype} for the dtype; wanted a dtype. The sizes of several axes are one "
            f"tuple, {name}(({size}, {dtype}))"
        )
    return float32 if dtype is None else as_dtype(dtype)


@primitive("Ones")
@cached_call
def ones(shape: int | Sequence[int] | Tensor, dtype: DTypeLike | None = None) -> Tensor:
    """Return a tensor of ones (`mindspore.ops.ones`).

    Args:
        shape: int, or tuple of ints.
        dtype: default float32.

    Raises:
        ValueError: a negative size.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.ones((2, 2), ms.int32)
        Tensor(shape=[2, 2], dtype=Int32, value=
        [[1, 1],
         [1, 1]])
    """
    found = _element_type("ones", dtype, shape)
    return fill_by(sizes_of("ones", shape), _constant(1, found), found)


def _constant(value: int, of: DType) -> bool | int:
    return bool(value) if of is bool_ else value


@primitive("Zeros")
@cached_call
def zeros(size: int | Sequence[int] | Tensor, dtype: DTypeLike | None = None) -> Tensor:
    """Return a tensor of zeros (`mindspore.ops.zeros`).

    Args:
        size: int, or tuple of ints.
        dtype: default float32.

    Raises:
        ValueError: a negative size.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.zeros(3)
        Tensor(shape=[3], dtype=Float32, value= [ 0.00000000e+00,  0.00000000e+00,  0.00000000e+00])
    """
    found = _element_type("zeros", dtype, size)
    return fill_by(sizes_of("zeros", size), _constant(0, found), found)


def converted_number(value: Any, of: DType) -> Scalar:
    """Convert a number to the Python type of a dtype: bool, int, float or complex.

    For an integer dtype, fractions are cut off and large numbers wrap around.
    """
    if of is bool_:
        return bool(value)
    if of.is_integer and not isinstance(value, complex):
        if isinstance(value, float) and not np.isfinite(value):
            raise ArgumentValueError(f"full: got {value} for dtype {of.name}")
        wrapped = int(value) & ((1 << (8 * of.itemsize)) - 1)
        return np.array(wrapped, np.uint64).astype(of.np).item()
    if of.is_complex:
        return complex(value)
    return float(value)


def empty(
    *size: int | Sequence[int], dtype: DTypeLike | None = None, device: str | None = None
) -> Tensor:
    """Return a tensor on a device such as ``"CPU"``, whose values are unspecified (here, zeros).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.empty((2, 3)).shape
        (2, 3)
    """
    return _on(zeros(one_tuple("empty", "size", size), dtype), device)


def _on(made: Tensor, device: str | None) -> Tensor:
    """Move the new tensor `made` to `device`; return it unchanged if `device` is None."""
    return made if device is None else made.move_to(device)


@cached_call
def full(
    size: int | Sequence[int] | Tensor,
    fill_value: Tensor | Scalar,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Return a tensor of one value (`mindspore.ops.full`).

    Args:
        size: int, or tuple of ints.
        fill_value: number, bool or 0-d Tensor.
        dtype: default that of a tensor made of the value: bool, int64, float32 or complex128.

    Raises:
        ValueError: a negative size.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.full((2,), 0.5)
        Tensor(shape=[2], dtype=Float32, value= [ 5.00000000e-01,  5.00000000e-01])
    """
    repeated = _repeated(fill_value, lambda: sizes_of("full", size), dtype)
    if repeated is not None:
        return repeated
    value, own = number_and_dtype("full", fill_value)
    found = own if dtype is None else as_dtype(dtype)
    return fill_by(sizes_of("full", size), converted_number(value, found), found)


def _repeated(
    value: object, shape: Callable[[], tuple[int, ...]], dtype: DTypeLike | None
) -> Tensor | None:
    """Broadcast a one-element tensor to a shape, so that gradients flow to it, or return None.

    The result is a Tensor only if `value` is a tensor that eager differentiation records or that a
    graph computes, and if the dtype is floating or complex. If the result is None, the caller must
    make a constant tensor of the value instead.

    Args:
        shape: function that returns the result's shape.
        dtype: dtype of the result, or None for that of `value`.
    """
    if not isinstance(value, Tensor) or value.size != 1:
        return None
    found = value.dtype if dtype is None else as_dtype(dtype)
    if found.kind not in "fc" or not (is_recorded(value) or isinstance(value, GraphTensor)):
        return None
    return broadcast_to(reshape_to(cast_to(value, found), ()), shape())


def number_and_dtype(name: str, value: object) -> tuple[Any, DType]:
    """Return (Python number, dtype) of a number or of a tensor of one element.

    The dtype of a number is that of a Tensor made from it: bool, int64, float32 or complex128.
    `name` is the user's function in errors.
    """
    if isinstance(value, Tensor):
        return value.item(), value.dtype
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, (bool, int, float, complex)):
        raise ArgumentError(f"{name}: got {type(value).__name__}; wanted a number")
    return value, scalar_dtype(value)


@op(differentiable=False)
def full_like(input: Tensor, value: Number, dtype: DType):
    """Return a tensor filled with one value, with the shape of another (`mindspore.ops.full_like`).

    Args:
        input: Tensor of any shape.
        fill_value: number, bool or 0-d Tensor.
        dtype: default that of `input`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.full_like(ms.Tensor([1, 2]), 7)
        Tensor(shape=[2], dtype=Int64, value= [7, 7])
    """
    return fill_by(input.shape, value, dtype)


@full_like.normaliser
def _(input: Tensor, fill_value: Tensor | Scalar, *, dtype: DTypeLike | None = None):
    found = input.dtype if dtype is None else as_dtype(dtype)
    repeated = _repeated(fill_value, lambda: input.shape, found)
    if repeated is not None:
        return repeated
    value = converted_number(number_and_dtype("full_like", fill_value)[0], found)
    return (input, value, found)


def _like(input: object, value: int, dtype: DTypeLike | None) -> Tensor:
    if not isinstance(input, Tensor):
        input = Tensor(input)
    found = input.dtype if dtype is None else as_dtype(dtype)
    return full_like(input, _constant(value, found), found)


@primitive("OnesLike")
@cached_call
def ones_like(input: Tensor, *, dtype: DTypeLike | None = None) -> Tensor:
    """Return a tensor of ones with the shape of another (`mindspore.ops.ones_like`).

    Args:
        input: Tensor of any shape.
        dtype: default that of `input`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.ones_like(ms.Tensor([1.5, 2.5]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  1.00000000e+00])
    """
    return _like(input, 1, dtype)


@primitive("ZerosLike")
@cached_call
def zeros_like(input: Tensor, *, dtype: DTypeLike | None = None) -> Tensor:
    """Return a tensor of zeros with the shape of another (`mindspore.ops.zeros_like`).

    Args:
        input: Tensor of any shape.
        dtype: default that of `input`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.zeros_like(ms.Tensor([1.5, 2.5]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  0.00000000e+00])
    """
    return _like(input, 0, dtype)


def empty_like(
    input: Tensor, *, dtype: DTypeLike | None = None, device: str | None = None
) -> Tensor:
    """Return a tensor with the shape of another, whose values are unspecified (here, zeros).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.empty_like(ms.Tensor([1, 2])).shape
        (2,)
    """
    return _on(_like(input, 0, dtype), device)


@primitive("Fill", op="fill")
def fill(type: DTypeLike, shape: int | Sequence[int] | Tensor, value: Tensor | Scalar) -> Tensor:
    """Return a tensor of one value (`mindspore.ops.fill`).

    Args:
        type: the dtype.
        shape: int, or tuple of ints.
        value: number or 0-d Tensor.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.fill(ms.float32, (2,), 1)
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  1.00000000e+00])
    """
    return full(shape, value, dtype=type)


@tensor_method("fill", "fills")
def _tensor_fill(self: Tensor, value: Tensor | Scalar) -> Tensor:
    """Return a tensor of this tensor's shape and dtype whose elements are all `value`."""
    return full_like.public(self, value)


@primitive("Fills")
def fills(x: Tensor, value: Tensor | Scalar) -> Tensor:
    """Return a tensor like `x` whose elements are all `value` (`mindspore.ops.fills`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.fills(ms.Tensor([1, 2]), 5)
        Tensor(shape=[2], dtype=Int64, value= [5, 5])
    """
    return full_like.public(x, value)


@op(name="new_full", differentiable=False)
def new_full_by(input: Tensor, shape: Sequence[int], value: Number, dtype: DType):
    """Composite op: a tensor of `shape` filled with `value`, on the device of `input`."""
    return fill_by(shape, value, dtype)


@op(differentiable=False, primitive="Eye")
def eye(n: int, m: int, offset: int, dtype: DType):
    """Return a matrix with ones on the diagonal and zeros elsewhere (`mindspore.ops.eye`).

    Args:
        n: number of rows.
        m: number of columns; default `n`.
        dtype: default float32.

    Raises:
        ValueError: a negative number.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.eye(2, 3, ms.int32)
        Tensor(shape=[2, 3], dtype=Int32, value=
        [[1, 0, 0],
         [0, 1, 0]])
    """
    return cast_to(equal(iota((n, m), 1, int32) - offset, iota((n, m), 0, int32)), dtype)


@eye.normaliser
def _(n: int, m: int | None = None, dtype: DTypeLike | None = None):
    rows, columns = sizes_of("eye", (n, n if m is None else m))
    return (rows, columns, 0, float32 if dtype is None else as_dtype(dtype))


# ---- one-hot and masks
# -------------------------------------------------------------------------------


@op(name="one_hot_mask", differentiable=False)
def one_hot_mask(indices: Tensor, depth: int, axis: NewAxis):
    """Composite op: True where the position along a new axis equals the index.

    The new axis is number `axis` of the result and has size `depth`.
    """
    shape = indices.shape
    wide = shape[:axis] + (depth,) + shape[axis:]
    narrow = shape[:axis] + (1,) + shape[axis:]
    return equal(reshape_to(indices, narrow), iota(wide, axis, indices.dtype))


@op(differentiable=False)
def one_hot(indices: Tensor, depth: int, axis: NewAxis, on: Number, off: Number, dtype: DType):
    """Return `on_value` where the position along a new axis is the index, `off_value` elsewhere
    (`mindspore.ops.one_hot`).

    Args:
        indices: Tensor of any shape, integer; the row of an index outside [0, depth) has
            `off_value` everywhere.
        depth: size of the new axis.
        on_value, off_value: numbers or 0-d Tensors; their dtype is that of the result.
        axis: position of the new axis in the result.

    Raises:
        TypeError: `indices` is not integer.
        ValueError: `depth` is negative, or `axis` out of range.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.one_hot(ms.Tensor([0, 2]), 3)
        Tensor(shape=[2, 3], dtype=Int64, value=
        [[1, 0, 0],
         [0, 0, 1]])
    """
    return select_by(
        one_hot_mask(indices, depth, axis), fill_by((), on, dtype), fill_by((), off, dtype)
    )


@one_hot.normaliser
def _(
    indices: Tensor,
    depth: int,
    on_value: Tensor | Number = 1,
    off_value: Tensor | Number = 0,
    axis: int = -1,
):
    if not indices.dtype.is_integer:
        raise DTypeError(
            f"one_hot: indices have dtype {indices.dtype.name} (the first argument); wanted an "
            f"integer dtype (.astype(ms.int32) converts them)"
        )
    (count,) = sizes_of("one_hot", depth)
    at = axis_of("one_hot", axis, len(indices.shape) + 1)
    if not isinstance(on_value, Tensor) and not isinstance(off_value, Tensor):
        kind = promote(scalar_dtype(on_value), scalar_dtype(off_value))
        return (as_index(indices), count, at, on_value, off_value, kind)
    mask = one_hot_mask(as_index(indices), count, at)
    on = on_value if isinstance(on_value, Tensor) else Tensor(on_value)
    off = off_value if isinstance(off_value, Tensor) else Tensor(off_value)
    return select_by(mask, _zero_d(on), _zero_d(off))


def _zero_d(x: Tensor) -> Tensor:
    return reshape_to(x, ()) if x.shape and x.size == 1 else x


def beside(like: Tensor, value: object) -> Tensor:
    """Convert `value` to a Tensor on the device of `like`.

    A Tensor that has been placed on a device already stays there.
    """
    if not isinstance(value, Tensor):
        value = Tensor(value)
    device = like._type.device
    if device is not None and value._type.device is None and not isinstance(value, GraphTensor):
        commit(value, device)
    return value


def as_index(indices: object, like: Tensor | None = None) -> Tensor:
    """Convert indices to int32 or int64, the dtypes that gather and scatter accept.

    Args:
        like: the indexed tensor, on whose device the indices are placed; None leaves them unplaced.

    Raises:
        DTypeError: the indices are not integers.
    """
    if like is not None:
        indices = beside(like, indices)
    elif not isinstance(indices, Tensor):
        indices = Tensor(indices)
    kind = indices.dtype
    if kind is int32 or kind is int64:
        return indices
    if not kind.is_integer:
        if indices.size == 0 and indices.dtype is float32:
            return cast_to(indices, int64)  # an empty list has a floating dtype
        raise DTypeError(f"index: got indices of dtype {kind.name}; wanted integers")
    return cast_to(indices, int64)


@op(differentiable=False)
def sequence_mask(lengths: Tensor, maxlen: int):
    """Return a mask of positions before the end of each sequence (`mindspore.ops.sequence_mask`).

    Args:
        lengths: integer Tensor, or tuple or list.
        maxlen: size of the new last axis; default the largest length, which is then read from the
            device.

    Returns:
        Tensor of bool, of shape lengths.shape + (maxlen,).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.sequence_mask(ms.Tensor([1, 3]), 4)
        Tensor(shape=[2, 4], dtype=Bool, value=
        [[ True, False, False, False],
         [ True,  True,  True, False]])
    """
    shape = lengths.shape
    count = iota((*shape, maxlen), len(shape), lengths.dtype)
    return less(count, reshape_to(lengths, (*shape, 1)))


@sequence_mask.normaliser
def _(lengths: Tensor | Sequence[int], maxlen: int | None = None):
    found = as_index(lengths)
    if maxlen is None:
        maxlen = int(found.asnumpy().max()) if found.size else 0
    (count,) = sizes_of("sequence_mask", maxlen)
    return (found, count)


def _triangle_indices(
    name: str, row: int, col: int, offset: int, dtype: DTypeLike, lower: bool
) -> Tensor:
    rows, columns = sizes_of(name, (row, col))
    found = (
        np.tril_indices(rows, offset, columns) if lower else np.triu_indices(rows, offset, columns)
    )
    return Tensor(np.stack(found).astype(as_dtype(dtype).np))


def tril_indices(row: int, col: int, offset: int = 0, *, dtype: DTypeLike = int64) -> Tensor:
    """Return the row and column indices of the lower triangle of a matrix, as two rows
    (`mindspore.ops.tril_indices`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.tril_indices(2, 2)
        Tensor(shape=[2, 3], dtype=Int64, value=
        [[0, 1, 1],
         [0, 0, 1]])
    """
    return _triangle_indices("tril_indices", row, col, offset, dtype, True)


def triu_indices(row: int, col: int, offset: int = 0, *, dtype: DTypeLike = int64) -> Tensor:
    """Return the row and column indices of the upper triangle of a matrix, as two rows
    (`mindspore.ops.triu_indices`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.triu_indices(2, 2)
        Tensor(shape=[2, 3], dtype=Int64, value=
        [[0, 0, 1],
         [0, 1, 1]])
    """
    return _triangle_indices("triu_indices", row, col, offset, dtype, False)


@cached_call
def vander(x: Tensor, N: int | None = None) -> Tensor:
    """Return the powers N - 1, ..., 1, 0 of a 1-d tensor as columns (`mindspore.ops.vander`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.vander(ms.Tensor([1.0, 2.0, 3.0]))
        Tensor(shape=[3, 3], dtype=Float32, value=
        [[ 1.00000000e+00,  1.00000000e+00,  1.00000000e+00],
         [ 4.00000000e+00,  2.00000000e+00,  1.00000000e+00],
         [ 9.00000000e+00,  3.00000000e+00,  1.00000000e+00]])
    """
    if len(x.shape) != 1:
        raise ArgumentValueError(f"vander: got shape {x.shape}; wanted one axis")
    (count,) = sizes_of("vander", x.shape[0] if N is None else N)
    power = Tensor(np.arange(count)[::-1].astype(x.dtype.np))
    return powers.pow(reshape_to(x, (x.size, 1)), power)
