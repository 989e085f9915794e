"""Primitive ops that read and write by index: gather, scatter, and their element-wise forms.

`gathering.py`, `scattering.py` and `indexing.py` build the public functions on them. Indices are
int32 or int64, and negative ones count from the end. A kernel must not ignore an index out of
range: IndexError is raised no later than when the user reads a value. For duplicate indices, ops
that set keep the last update, and ops that add add all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..dtype import INTEGER, int32, int64
from ..errors import DTypeError, IndexRangeError, LabelRangeError, ShapeError
from ..host_arrays import Array
from ..op import NO_GRAD, op
from ..op_signature import Axis
from ..tensor import Tensor
from ..types import TensorType
from .creation import cast_to, fill, iota, zeros_of
from .logic import logical_or, select_by
from .shape_primitives import (
    dense_strides,
    flat_positions,
    position_dtype,
    reshape_to,
    strided_copy,
)

__all__: list[str] = []

_INDEX_DTYPES = (int32, int64)


def normal_indices(name: str, indices: Array, n: int, axis: int) -> Array:
    """Return NumPy indices with negative ones made non-negative for an axis of size `n`.

    Raises:
        IndexRangeError: an index is outside -n to n - 1; the message has the op's `name` and
            `axis`.
    """
    wrong = (indices < -n) | (indices >= n)
    if wrong.any():
        raise IndexRangeError(
            f"{name}: got index {indices[wrong].reshape(-1)[0]} for axis {axis} of size {n}; "
            f"wanted {-n} to {n - 1}"
        )
    return np.where(indices < 0, indices + n, indices)


@op(name="checked_labels", composite=False, dtypes=INTEGER, differentiable=False, checks=True)
def checked_labels_by(labels: Tensor, classes: int, owner: str):
    """Primitive op: `labels` unchanged, after a check that each is 0 to `classes` - 1.

    The error names `owner`, the function that the user called.
    """


@checked_labels_by.infer
def _(labels, classes, owner):
    return labels.plain


@checked_labels_by.reference
def _(labels, classes, owner):
    wrong = (labels < 0) | (labels >= classes)
    if wrong.any():
        raise LabelRangeError.of(owner, labels[wrong].reshape(-1)[0], classes)
    return labels


@checked_labels_by.decompose
def _(labels, classes, owner):
    # a negative label becomes an index that no axis of this size has, which the gather reports
    wide = cast_to(labels, int64)
    at = select_by(wide < 0, wide - classes, wide)
    return gather(iota((classes,), 0, labels.dtype), at, 0)


def checked_labels(owner: str, labels: Tensor, classes: int) -> Tensor:
    """Return integer labels as int32 or int64 indices, after a check of their range.

    `owner` is the function that the user called.

    Raises:
        LabelRangeError: a label is not 0 to `classes` - 1. It is raised no later than when the user
            reads a result.
    """
    checked = checked_labels_by(labels, classes, owner)
    return checked if checked.dtype in _INDEX_DTYPES else cast_to(checked, int64)


def _check_indices(name: str, indices: TensorType) -> None:
    if indices.dtype not in _INDEX_DTYPES:
        raise DTypeError(f"{name}: indices have dtype {indices.dtype.name}; wanted int32 or int64")


def from_zero(indices: Tensor, n: int) -> Tensor:
    """Convert negative indices of an axis of size `n` to the non-negative ones that they stand for.

    The conversion is made by ops, so that a graph can contain it.
    """
    return select_by(indices < 0, indices + n, indices)


def gathered_shape(shape: Sequence[int], indices: Sequence[int], axis: int) -> tuple[int, ...]:
    """Return the result shape of a gather: `indices` replaces axis number `axis` of `shape`.

    `indices` is the shape of the index tensor, `shape` that of the indexed tensor.

    Raises:
        ShapeError: `shape` is () and so has no axis.
    """
    if not shape:
        raise ShapeError("gather: got a 0-d operand; wanted at least one axis")
    return (*shape[:axis], *indices, *shape[axis + 1 :])


@op(composite=False, gather="rows", checks=True, primitive="Gather(batch_dims=0)")
def gather(input: Tensor, indices: Tensor, axis: Axis):
    """Select slices along an axis by indices (`mindspore.ops.gather`).

    Args:
        input_params: Tensor from which slices are selected.
        input_indices: integer Tensor of any shape; negative indices count from the end.
        axis: the axis that is indexed.
        batch_dims: number of leading axes that both tensors have in common; the gather is separate
            for each index of these axes.

    Returns:
        Tensor of shape input_params.shape[:axis] + input_indices.shape[batch_dims:] +
        input_params.shape[axis + 1:].

    Raises:
        IndexError: an index out of range.
        TypeError: the indices are not integers.
        ValueError: an axis out of range, or batch axes that differ.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.gather(ms.Tensor([[1, 2], [3, 4]]), ms.Tensor([1, 0]), 1)
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[2, 1],
         [4, 3]])
    """


@gather.infer
def _(x, indices, axis):
    _check_indices("gather", indices)
    return TensorType.of(gathered_shape(x.shape, indices.shape, axis), x.dtype)


@gather.reference
def _(x, indices, axis):
    return np.take(x, normal_indices("gather", indices, x.shape[axis], axis), axis)


@gather.bprop
def _(x, indices, out, dout, axis):
    return scatter_add_by(zeros_of(x._type.plain), indices, dout, axis), NO_GRAD


def _scattered(name: str, x: TensorType, indices: TensorType, updates: TensorType, axis: Axis):
    _check_indices(name, indices)
    wanted = gathered_shape(x.shape, indices.shape, axis)
    if updates.shape != wanted or updates.dtype is not x.dtype:
        raise ShapeError(
            f"{name}: got updates of {updates.plain} for an operand of {x.plain} and indices "
            f"of shape "
            f"{indices.shape} on axis {axis}; wanted {TensorType.of(wanted, x.dtype)}"
        )
    return x.plain


def _rows(name, x, indices, updates, axis):
    """Prepare a NumPy scatter along `axis`; return (copy of x, indices, updates).

    `axis` is moved to the front of the copy and of the updates. The indices are 1-d and not
    negative.
    """
    at = normal_indices(name, indices, x.shape[axis], axis).reshape(-1)
    out = np.moveaxis(np.array(x), axis, 0)
    rows = updates.reshape(*x.shape[:axis], at.size, *x.shape[axis + 1 :])
    return out, at, np.moveaxis(rows, axis, 0)


@op(name="scatter_set", composite=False, scatter="=", checks=True)
def scatter_set_by(input: Tensor, indices: Tensor, updates: Tensor, axis: Axis):
    """Primitive op: a copy of `input` with the slices at `indices` of an axis replaced.

    If several updates have the same index, the last one is kept.
    """


@scatter_set_by.infer
def _(x, indices, updates, axis):
    return _scattered("scatter_set", x, indices, updates, axis)


@scatter_set_by.reference
def _(x, indices, updates, axis):
    out, at, rows = _rows("scatter_set", x, indices, updates, axis)
    for k, i in enumerate(at):
        out[i] = rows[k]
    return np.moveaxis(out, 0, axis)


@scatter_set_by.bprop
def _(x, indices, updates, out, dout, axis):
    dx = scatter_set_by(dout, indices, zeros_of(updates._type.plain), axis)
    taken = gather(dout, indices, axis)
    # of updates with the same index, only the last one, which is kept, has a gradient
    n, count = x.shape[axis], indices.size
    own = iota((count,), 0, int32)
    flat = reshape_to(indices, (count,))
    winner = scatter_set_by(fill((n,), 0, int32), flat, own, 0)
    kept = gather(winner, flat, 0) == own
    lead = (1,) * axis + indices.shape + (1,) * (x.ndim - axis - 1)
    return dx, NO_GRAD, select_by(reshape_to(kept, lead), taken, zeros_of(taken._type.plain))


@op(name="scatter_add", composite=False, scatter="+", checks=True)
def scatter_add_by(input: Tensor, indices: Tensor, updates: Tensor, axis: Axis):
    """Primitive op: copy of `input` with `updates` added to the slices at `indices` of an axis."""


@scatter_add_by.infer
def _(x, indices, updates, axis):
    return _scattered("scatter_add", x, indices, updates, axis)


@scatter_add_by.reference
def _(x, indices, updates, axis):
    out, at, rows = _rows("scatter_add", x, indices, updates, axis)
    for k, i in enumerate(at):
        out[i] = out[i] + rows[k]
    return np.moveaxis(out, 0, axis)


@scatter_add_by.bprop
def _(x, indices, updates, out, dout, axis):
    return dout, NO_GRAD, gather(dout, indices, axis)


# The gradient of a strided copy is attached here because it needs scatter_add.
@strided_copy.bprop
def _(x, out, dout, shape, strides, offset):
    at = flat_positions(shape, strides, offset, x.size)
    zeros = zeros_of(TensorType.of((x.size,), x.dtype))
    flat = scatter_add_by(zeros, reshape_to(at, (at.size,)), reshape_to(dout, (at.size,)), 0)
    return (reshape_to(flat, x.shape),)


# ---- element by element along one axis ----------------------------------------------------------


def _check_elements(name: str, x: TensorType, indices: TensorType, axis: int) -> None:
    _check_indices(name, indices)
    if indices.ndim != x.ndim or any(
        m > n for k, (m, n) in enumerate(zip(indices.shape, x.shape)) if k != axis
    ):
        got = f"{name}: got indices of shape {indices.shape} for a Tensor of shape {x.shape}"
        if indices.ndim != x.ndim:
            raise ShapeError(f"{got}; wanted indices of {x.ndim} axes, as many as the Tensor has")
        raise ShapeError(
            f"{got}; wanted indices that are no longer than the Tensor on all axes but axis {axis}"
        )


def _grid(indices: Array, axis: int) -> tuple[Array, ...]:
    """Return NumPy index arrays that select what ``take_along_axis(x, indices, axis)`` selects.

    There is one array per axis, and they broadcast to the shape of `indices`.
    """
    grids: list[Array] = list(np.ogrid[tuple(slice(n) for n in indices.shape)])
    grids[axis] = indices
    return tuple(grids)


def element_positions(shape: Sequence[int], indices: Tensor, axis: int) -> Tensor:
    """Return the flat offsets of the elements at `indices` along `axis` of a dense buffer.

    `shape` is the shape of the buffer's tensor. An index out of range yields an offset out of
    range, which the gather or scatter that uses it reports.
    """
    steps = list(dense_strides(shape))
    step, steps[axis] = steps[axis], 0
    size = TensorType.of(tuple(shape), int32).size
    dtype = position_dtype(size)
    rest = flat_positions(indices.shape, steps, 0, size)
    n = shape[axis]
    wide = indices if indices.dtype is dtype else cast_to(indices, dtype)
    at = from_zero(wide, n)
    inside = rest + at * step
    # an index out of range yields an offset out of range, which the gather or scatter reports
    return select_by(logical_or(at < 0, at >= n), size, inside)


def _flat(x: Tensor) -> Tensor:
    return reshape_to(x, (x.size,))


@op(name="gather_elements", composite=False, gather="elements", checks=True)
def gather_elements_by(input: Tensor, indices: Tensor, axis: Axis):
    """Primitive op: select elements by `indices` along `axis`, like NumPy's take_along_axis."""


@gather_elements_by.infer
def _(x, indices, axis):
    _check_elements("gather_elements", x, indices, axis)
    return TensorType.of(indices.shape, x.dtype)


@gather_elements_by.reference
def _(x, indices, axis):
    at = normal_indices("gather_elements", indices, x.shape[axis], axis)
    return x[_grid(at, axis)]


@gather_elements_by.decompose
def _(x, indices, axis):
    at = element_positions(x.shape, indices, axis)
    return reshape_to(gather(_flat(x), _flat(at), 0), indices.shape)


@gather_elements_by.bprop
def _(x, indices, out, dout, axis):
    return scatter_elements_add_by(zeros_of(x._type.plain), indices, dout, axis), NO_GRAD


def _scattered_elements(
    name: str, x: TensorType, indices: TensorType, updates: TensorType, axis: int
) -> TensorType:
    _check_elements(name, x, indices, axis)
    if updates.shape != indices.shape or updates.dtype is not x.dtype:
        raise ShapeError(
            f"{name}: got updates of {updates.plain} for indices of shape {indices.shape} and an "
            f"operand of {x.plain}; wanted the shape of the indices and the dtype of the operand"
        )
    return x.plain


@op(name="scatter_elements_set", composite=False, checks=True)
def scatter_elements_set_by(input: Tensor, indices: Tensor, updates: Tensor, axis: Axis):
    """Primitive op: a copy of `input` with the elements at `indices` along an axis replaced.

    For axis 1, for example, out[i, indices[i, j]] = updates[i, j].
    """


@scatter_elements_set_by.infer
def _(x, indices, updates, axis):
    return _scattered_elements("scatter_elements_set", x, indices, updates, axis)


@scatter_elements_set_by.reference
def _(x, indices, updates, axis):
    at = normal_indices("scatter_elements_set", indices, x.shape[axis], axis)
    out = np.array(x)
    grid = np.broadcast_arrays(*_grid(at, axis))
    for where in zip(*[g.reshape(-1) for g in grid], updates.reshape(-1)):
        out[where[:-1]] = where[-1]
    return out


@scatter_elements_set_by.decompose
def _(x, indices, updates, axis):
    at = element_positions(x.shape, indices, axis)
    return reshape_to(scatter_set_by(_flat(x), _flat(at), _flat(updates), 0), x.shape)


@scatter_elements_set_by.bprop
def _(x, indices, updates, out, dout, axis):
    zeros = zeros_of(updates._type.plain)
    dx = scatter_elements_set_by(dout, indices, zeros, axis)
    # of updates with the same index, only the last one, which is kept, has a gradient
    own = iota(indices.shape, axis, int32)
    winner = scatter_elements_set_by(fill(x.shape, -1, int32), indices, own, axis)
    kept = gather_elements_by(winner, indices, axis) == own
    taken = gather_elements_by(dout, indices, axis)
    return dx, NO_GRAD, select_by(kept, taken, zeros)


@op(name="scatter_elements_add", composite=False, checks=True)
def scatter_elements_add_by(input: Tensor, indices: Tensor, updates: Tensor, axis: Axis):
    """Primitive op: a copy of `input` with `updates` added to the elements at `indices` of an axis.

    For axis 1, for example, out[i, indices[i, j]] += updates[i, j].
    """


@scatter_elements_add_by.infer
def _(x, indices, updates, axis):
    return _scattered_elements("scatter_elements_add", x, indices, updates, axis)


@scatter_elements_add_by.reference
def _(x, indices, updates, axis):
    at = normal_indices("scatter_elements_add", indices, x.shape[axis], axis)
    out = np.array(x)
    grid = np.broadcast_arrays(*_grid(at, axis))
    for where in zip(*[g.reshape(-1) for g in grid], updates.reshape(-1)):
        out[where[:-1]] = out[where[:-1]] + where[-1]
    return out


@scatter_elements_add_by.decompose
def _(x, indices, updates, axis):
    at = element_positions(x.shape, indices, axis)
    return reshape_to(scatter_add_by(_flat(x), _flat(at), _flat(updates), 0), x.shape)


@scatter_elements_add_by.bprop
def _(x, indices, updates, out, dout, axis):
    return dout, NO_GRAD, gather_elements_by(dout, indices, axis)
