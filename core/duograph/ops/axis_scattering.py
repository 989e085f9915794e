"""Functions that return a copy with some slices of an axis overwritten, such as `index_fill`.

Users call the functions; the in-place methods of Tensor use `index_write`. No function may change
its input.
"""

from __future__ import annotations

from typing import Any

from ..dtype import bool_
from ..errors import ArgumentValueError, DTypeError, ShapeError
from ..tensor import Tensor
from .arguments import ints_of, refuse_complex
from .axes import axis_of
from .creation import cast
from .creation_functions import as_index, beside
from .gather_scatter import gathered_shape, scatter_add_by, scatter_set_by
from .methods import tensor_method
from .movement import slice_axis, update_by
from .primitive import primitive
from .repeating import broadcast_to
from .scattering import Index, scatter_rows
from .shape_primitives import reshape_to
from .value_sizes import nonzero_by

__all__ = [
    "index_fill", "masked_scatter", "select_scatter", "slice_scatter", "inplace_update",
    "inplace_add", "inplace_sub",
]  # fmt: skip


def index_write(
    name: str, input: Tensor, axis: int, index: object, source: object, add: bool = False
) -> Tensor:
    """Return a copy of `input` with its slices at the indices of an axis set to `source`.

    With `add`, `source` is added to the slices instead. `index` has one axis or none. `source` has
    one slice per index, or is a number. `name` is the function that errors name.
    """
    shape = input.shape
    if not shape:
        raise ShapeError(f"{name}: got a 0-d tensor; wanted at least one axis")
    at = axis_of(name, axis, len(shape))
    indices = as_index(index, input)
    if len(indices.shape) > 1:
        raise ShapeError(f"{name}: got an index of shape {indices.shape}; wanted one axis")
    indices = reshape_to(indices, (indices.size,))
    wanted = gathered_shape(shape, indices.shape, at)
    refuse_complex(name, source, input.dtype)
    new = beside(input, source)
    if new.shape != wanted:
        if new.shape != ():
            raise ShapeError(f"{name}: got a source of shape {new.shape}; wanted {wanted}")
        new = broadcast_to.public(new, wanted)
    write = scatter_add_by if add else scatter_set_by
    return write(input, indices, cast(new, input.dtype), at)


@tensor_method("index_fill")
def _tensor_index_fill(
    self: Tensor, axis: Any = None, index: object = None, value: object = None, *, dim: Any = None
) -> Tensor:
    """Return a copy whose slices at `index` of an axis have the given value; see `ops.index_fill`.

    `dim` is another name of `axis`.
    """
    return index_fill(self, dim if axis is None else axis, index, value)


def index_fill(x: Tensor, axis: int, index: object, value: object) -> Tensor:
    """Return a copy whose slices at given indices of an axis are set to a value
    (`mindspore.ops.index_fill`).

    Args:
        x: Tensor of at least one axis.
        axis: the axis that is indexed.
        index: indices of the slices, a 0-d or 1-d integer Tensor.
        value: the new value, a number or 0-d Tensor.

    Raises:
        IndexError: an index out of range.
        ValueError: an index of more axes, or an axis out of range.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.index_fill(ms.ops.zeros((2, 2)), 1, ms.Tensor([0]), 5.0)
        Tensor(shape=[2, 2], dtype=Float32, value=
        [[ 5.00000000e+00,  0.00000000e+00],
         [ 5.00000000e+00,  0.00000000e+00]])
    """
    if isinstance(value, Tensor) and value.size == 1:
        value = reshape_to(value, ())
    return index_write("index_fill", x, axis, index, value)


def _rows_of(name: str, x: Tensor, v: Tensor, indices: Index, mode: str) -> Tensor:
    new = beside(x, v)
    found = as_index(
        indices if isinstance(indices, Tensor) else list(ints_of(name, "indices", indices)), x
    )
    if new.shape != found.shape + x.shape[1:] and new.shape == x.shape[1:] and found.size == 1:
        new = reshape_to(new, (1, *new.shape))
    return scatter_rows(name, x, found, new, mode)


def inplace_update(x: Tensor, v: Tensor, indices: Index) -> Tensor:
    """Return a copy with the rows at given indices replaced (`mindspore.ops.inplace_update`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.inplace_update(ms.ops.zeros((2, 2)), ms.Tensor([[1.0, 2.0]]), (1,))
        Tensor(shape=[2, 2], dtype=Float32, value=
        [[ 0.00000000e+00,  0.00000000e+00],
         [ 1.00000000e+00,  2.00000000e+00]])
    """
    return _rows_of("inplace_update", x, v, indices, "update")


def inplace_add(x: Tensor, v: Tensor, indices: Index) -> Tensor:
    """Return a copy with `v` added to the rows at given indices (`mindspore.ops.inplace_add`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.inplace_add(ms.ops.ones((2, 2)), ms.Tensor([[1.0, 2.0]]), (1,))
        Tensor(shape=[2, 2], dtype=Float32, value=
        [[ 1.00000000e+00,  1.00000000e+00],
         [ 2.00000000e+00,  3.00000000e+00]])
    """
    return _rows_of("inplace_add", x, v, indices, "add")


def inplace_sub(x: Tensor, v: Tensor, indices: Index) -> Tensor:
    """Return a copy with `v` subtracted from rows at given indices (`mindspore.ops.inplace_sub`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.inplace_sub(ms.ops.ones((2, 2)), ms.Tensor([[1.0, 2.0]]), (1,))
        Tensor(shape=[2, 2], dtype=Float32, value=
        [[ 1.00000000e+00,  1.00000000e+00],
         [ 0.00000000e+00, -1.00000000e+00]])
    """
    return _rows_of("inplace_sub", x, v, indices, "sub")


@tensor_method("inplace_update")
def _tensor_inplace_update(self: Tensor, v: Tensor, indices: Index) -> Tensor:
    """Return a copy with the rows at `indices` replaced by `v`. See `ops.inplace_update`."""
    return inplace_update(self, v, indices)


@primitive("MaskedScatter")
@tensor_method("masked_scatter")
def masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Return a copy whose elements where `mask` is True are replaced by elements of `source`.

    The first True takes the first element of `source`, and so on, in row-major order.

    Args:
        x: Tensor.
        mask: Tensor of bool that broadcasts to the shape of `x`.
        source: Tensor with at least as many elements as the mask has True.

    Raises:
        TypeError: `mask` is not bool.
        ValueError: the mask does not broadcast, or `source` is too small.

    Examples:
        >>> import duograph as ms
        >>> mask = ms.Tensor([True, False, True])
        >>> ms.ops.masked_scatter(ms.Tensor([1, 2, 3]), mask, ms.Tensor([8, 9]))
        Tensor(shape=[3], dtype=Int64, value= [8, 2, 9])
    """
    if mask.dtype is not bool_:
        raise DTypeError(f"masked_scatter: mask has dtype {mask.dtype.name}; wanted bool")
    source = beside(x, source)
    where = broadcast_to.public(beside(x, mask), x.shape)
    at = nonzero_by(reshape_to(where, (where.size,)))
    count = at.shape[0]
    if source.size < count:
        raise ShapeError(f"masked_scatter: got {source.size} elements for a mask with {count} True")
    new = slice_axis(reshape_to(cast(source, x.dtype), (source.size,)), 0, 0, count)
    flat = scatter_set_by(reshape_to(x, (x.size,)), reshape_to(at, (count,)), new, 0)
    return reshape_to(flat, x.shape)


@tensor_method("select_scatter")
def select_scatter(input: Tensor, src: Tensor, axis: int, index: int) -> Tensor:
    """Return a copy with one slice of an axis replaced (`mindspore.ops.select_scatter`).

    Args:
        input: Tensor of at least one axis.
        src: Tensor of the shape of ``input`` without the axis.
        axis: the axis to index.
        index: number of the slice that is replaced.

    Raises:
        ValueError: shapes that do not fit, or an axis or index out of range.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.select_scatter(ms.ops.zeros((2, 2)), ms.Tensor([1.0, 2.0]), 0, 1)
        Tensor(shape=[2, 2], dtype=Float32, value=
        [[ 0.00000000e+00,  0.00000000e+00],
         [ 1.00000000e+00,  2.00000000e+00]])
    """
    at = axis_of("select_scatter", axis, len(input.shape))
    n = input.shape[at] if input.shape else 0
    if not -n <= index < n:
        raise ArgumentValueError(f"select_scatter: got index {index} for an axis of size {n}")
    row = index + n if index < 0 else index
    wanted = input.shape[:at] + input.shape[at + 1 :]
    if src.shape != wanted:
        raise ShapeError(f"select_scatter: got src of shape {src.shape}; wanted {wanted}")
    new = reshape_to(src, (*wanted[:at], 1, *wanted[at:]))
    return slice_scatter(input, new, at, row, row + 1)


@tensor_method("slice_scatter")
def slice_scatter(
    input: Tensor,
    src: Tensor,
    axis: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Tensor:
    """Return a copy with a slice of an axis replaced (`mindspore.ops.slice_scatter`).

    Args:
        input: Tensor of at least one axis.
        src: Tensor of the shape of that slice, or one that broadcasts to it.
        axis: the axis that is sliced.
        start, end, step: bounds and step of the slice, as in Python; `step` is positive.

    Raises:
        ValueError: shapes that do not fit, or a `step` that is not positive.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.slice_scatter(ms.ops.zeros((3,)), ms.Tensor([1.0, 2.0]), 0, 0, 3, 2)
        Tensor(shape=[3], dtype=Float32, value= [ 1.00000000e+00,  0.00000000e+00,  2.00000000e+00])
    """
    if step < 1:
        raise ArgumentValueError(f"slice_scatter: got step={step}; wanted a positive int")
    if not input.shape:
        raise ShapeError("slice_scatter: got a 0-d tensor; wanted at least one axis")
    at = axis_of("slice_scatter", axis, len(input.shape))
    first, last, by = slice(start, end, step).indices(input.shape[at])
    begin, stop, strides = [0] * len(input.shape), list(input.shape), [1] * len(input.shape)
    begin[at], stop[at], strides[at] = first, last, by
    wanted = gathered_shape(input.shape, (len(range(first, last, by)),), at)
    new = broadcast_to.public(cast(beside(input, src), input.dtype), wanted)
    return update_by(input, new, begin, stop, strides)
