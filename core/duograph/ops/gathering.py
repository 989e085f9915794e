"""Public functions that read by index: gather, gather_nd, take, index_select and others.

They check and normalise the arguments of users, then call the primitives of `gather_scatter.py`.
`indexing.py` and `scattering.py` use `linear_index` and `nd_index`. Functions that write by index
belong to `scattering.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..call_cache import cached_call
from ..dtype import int64
from ..errors import ArgumentError, ArgumentValueError, ShapeError
from ..ir.builder import GraphTensor
from ..op import op
from ..op_signature import Axis
from ..tensor import Tensor
from ..types import size_of
from .axes import axis_of
from .comparison import less
from .creation import cast_to, iota
from .creation_functions import as_index, beside
from .division import remainder
from .elementwise import maximum, minimum
from .gather_scatter import (
    checked_labels,
    from_zero,
    gather,
    gather_elements_by,
    normal_indices,
)
from .joining import stack, unstack
from .logic import logical_or, select_by
from .methods import tensor_method
from .movement import slice_axis
from .primitive import primitive
from .repeating import broadcast_tensors
from .shape_primitives import dense_strides, position_dtype, reshape_to, transpose_by

__all__ = [
    "gather",
    "gather_d",
    "gather_elements",
    "gather_nd",
    "index_select",
    "take",
    "reverse_sequence",
]


def linear_index(parts: Sequence[Tensor], sizes: tuple[int, ...]) -> Tensor:
    """Combine one index tensor per axis into indices of one axis that merges axes of `sizes`.

    The index tensors broadcast. An index out of range yields a merged index out of range, which the
    gather or scatter on the merged axis reports.
    """
    if len(parts) == 1:
        return parts[0]
    total = size_of(sizes)
    kind = position_dtype(total)
    wrong = at = None
    for part, n, step in zip(parts, sizes, dense_strides(sizes), strict=True):
        part = part if part.dtype is kind or part.dtype is int64 else cast_to(part, kind)
        own = from_zero(part, n)
        outside = logical_or(less(own, 0), less(n - 1, own))
        wrong = outside if wrong is None else logical_or(wrong, outside)
        own = own * step if step != 1 else own
        at = own if at is None else at + own
    return select_by(wrong, total, at)


def nd_index(shape: tuple[int, ...], indices: Tensor) -> Tensor:
    """Convert rows of indices to indices of one axis that merges the leading axes of `shape`.

    A row runs along the last axis of `indices` and holds one index for each leading axis.
    """
    count = indices.shape[-1]
    lead = indices.shape[:-1]
    last = len(lead)
    parts = [reshape_to(slice_axis(indices, last, j, j + 1), lead) for j in range(count)]
    return linear_index(parts, shape[:count])


def check_nd(name: str, shape: Sequence[int], indices: Tensor) -> int:
    """Return the number of leading axes that the rows (last axis) of `indices` index.

    `shape` is the indexed shape, `name` the user's function in errors.

    Raises:
        ShapeError: the rows index more axes than exist, or none.
    """
    if not indices.shape or not 0 < indices.shape[-1] <= len(shape):
        raise ShapeError(
            f"{name}: got indices of shape {indices.shape} for shape {tuple(shape)}; wanted a "
            f"last axis of "
            f"1 to {len(shape)}, an index for each of that many leading axes"
        )
    return int(indices.shape[-1])


def explain(name: str, n: int, indices: Tensor, axis: int) -> None:
    """Raise IndexRangeError that names the bad index, after a gather kernel reported one.

    `n` is the size of the indexed axis, and `name` the user's function in the message. If the
    indices are computed by the graph that is being built, nothing is raised, since their values are
    unknown.
    """
    if not isinstance(indices, GraphTensor):
        normal_indices(name, indices.asnumpy(), n, axis)


def explain_nd(name: str, shape: Sequence[int], indices: Tensor) -> None:
    """Raise an IndexRangeError that names the index and axis that a gather_nd kernel reported.

    If indices are computed by the graph that is being built, nothing is raised, since their values
    are unknown.
    """
    if isinstance(indices, GraphTensor):
        return
    values = indices.asnumpy()
    for axis in range(values.shape[-1]):
        normal_indices(name, values[..., axis], shape[axis], axis)


@gather.normaliser
def _(input_params: Tensor, input_indices: object, axis: int, batch_dims: int = 0):
    if isinstance(axis, Tensor):
        axis = axis.item()
    shape = input_params.shape
    if not shape:
        raise ShapeError("gather: got a 0-d tensor; wanted at least one axis")
    at = axis_of("gather", axis, len(shape))
    indices = as_index(input_indices, input_params)
    if not batch_dims:
        return (input_params, indices, at)
    b = batch_dims + len(indices.shape) if batch_dims < 0 else batch_dims
    if not 0 <= b <= min(at, len(indices.shape)) or shape[:b] != indices.shape[:b]:
        raise ShapeError(
            f"gather: got batch_dims={batch_dims}, axis={axis} and shapes {shape} and "
            f"{indices.shape}; wanted "
            f"equal leading axes, before the axis"
        )
    try:
        return gather_batch(input_params, indices, at, b)
    except IndexError:
        explain("gather", shape[at], indices, at)
        raise


@op(name="gather_batch")
def gather_batch(input: Tensor, indices: Tensor, axis: Axis, batch_dims: int):
    """Composite op: gather along `axis`, separately for each index of the leading axes.

    `input` and `indices` have the first `batch_dims` axes in common.
    """
    shape = input.shape
    lead, middle, rest = shape[:batch_dims], shape[batch_dims:axis], shape[axis + 1 :]
    batch, outer, n, inner = size_of(lead), size_of(middle), shape[axis], size_of(rest)
    rows = transpose_by(reshape_to(input, (batch, outer, n, inner)), (0, 2, 1, 3))
    own = indices.shape[batch_dims:]
    m = size_of(own)
    flat = reshape_to(indices, (batch, m))
    at = linear_index([iota((batch, m), 0, indices.dtype), flat], (batch, n))
    found = gather(reshape_to(rows, (batch * n, outer, inner)), at, 0)
    return reshape_to(transpose_by(found, (0, 2, 1, 3)), (*lead, *middle, *own, *rest))


@tensor_method("gather")
def _tensor_gather(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Gather elements by ``x.gather(dim, index)``, or slices by ``x.gather(indices, axis)``.

    See `ops.gather_elements` and `ops.gather`.
    """
    if "input_indices" in kwargs or (args and not _is_axis(args[0])):
        return gather.public(self, *args, **kwargs)
    return gather_elements(self, *args, **kwargs)


def _is_axis(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


@cached_call
def gather_elements(input: Tensor, dim: int, index: object) -> Tensor:
    """Select elements along an axis: out[i][j] = input[i][index[i][j]] for dim 1
    (`mindspore.ops.gather_elements`).

    Args:
        input: Tensor of at least one axis.
        dim: the axis that is indexed.
        index: integer Tensor with as many axes as `input`, of which only `dim` may be longer than
            in `input`; negative indices count from the end.

    Returns:
        Tensor of the shape of `index`.

    Raises:
        IndexError: an index out of range.
        ValueError: the shapes do not match, or an axis out of range.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.gather_elements(ms.Tensor([[1, 2], [3, 4]]), 1, ms.Tensor([[0, 0], [1, 0]]))
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[1, 1],
         [4, 3]])
    """
    indices = as_index(index, input)
    if not input.shape and not indices.shape:
        axis_of("gather_elements", dim, 0)
        flat = gather_elements_by(reshape_to(input, (1,)), reshape_to(indices, (1,)), 0)
        return reshape_to(flat, ())
    axis = axis_of("gather_elements", dim, len(input.shape))
    try:
        return gather_elements_by(input, indices, axis)
    except IndexError:
        explain("gather_elements", input.shape[axis], indices, axis)
        raise


@tensor_method("gather_elements")
def _tensor_gather_elements(self: Tensor, dim: int, index: object) -> Tensor:
    """Select single elements along an axis. See `ops.gather_elements`."""
    return gather_elements(self, dim, index)


@primitive("GatherD", op="gather_elements")
@cached_call
def gather_d(x: Tensor, dim: int, index: object) -> Tensor:
    """Another name of `gather_elements` (`mindspore.ops.gather_d`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.gather_d(ms.Tensor([[1, 2], [3, 4]]), 1, ms.Tensor([[0, 0], [1, 0]]))
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[1, 1],
         [4, 3]])
    """
    return gather_elements(x, dim, index)


@op(name="gather_nd")
def gather_nd_by(input: Tensor, indices: Tensor):
    """Composite op: select slices by coordinates, each a row in the last axis of `indices`."""
    count = check_nd("gather_nd", input.shape, indices)
    rest = input.shape[count:]
    rows = reshape_to(input, (size_of(input.shape[:count]), *rest))
    return gather(rows, nd_index(input.shape, indices), 0)


@primitive("GatherNd", op="gather_nd")
@tensor_method("gather_nd")
@cached_call
def gather_nd(input_x: Tensor, indices: object) -> Tensor:
    """Select elements or slices by rows of indices (`mindspore.ops.gather_nd`).

    Args:
        input_x: Tensor.
        indices: integer Tensor; its last axis has one index for each leading axis of `input_x` that
            is indexed; negative indices count from the end.

    Returns:
        Tensor of shape indices.shape[:-1] + input_x.shape[indices.shape[-1]:].

    Raises:
        IndexError: an index out of range.
        ValueError: more indices than axes.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.gather_nd(ms.Tensor([[1, 2], [3, 4]]), ms.Tensor([[0, 1], [1, 0]]))
        Tensor(shape=[2], dtype=Int64, value= [2, 3])
    """
    at = as_index(indices, input_x)
    try:
        return gather_nd_by(input_x, at)
    except IndexError:
        explain_nd("gather_nd", input_x.shape, at)
        raise


@cached_call
def index_select(input: Tensor, axis: int, index: object) -> Tensor:
    """Select slices along an axis by a 1-d tensor of indices (`mindspore.ops.index_select`).

    Raises:
        IndexError: an index out of range.
        ValueError: `index` has more than one axis, or the axis is out of range.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.index_select(ms.Tensor([[1, 2], [3, 4]]), 1, ms.Tensor([1]))
        Tensor(shape=[2, 1], dtype=Int64, value=
        [[2],
         [4]])
    """
    indices = as_index(index, input)
    if len(indices.shape) > 1:
        raise ShapeError(f"index_select: got an index of shape {indices.shape}; wanted one axis")
    if not indices.shape:
        indices = reshape_to(indices, (1,))
    if not input.shape:
        return reshape_to(gather.public(reshape_to(input, (1,)), indices, 0), ())
    return gather.public(input, indices, axis)


@tensor_method("index_select")
def _tensor_index_select(
    self: Tensor, axis: Any = None, index: object = None, *, dim: Any = None
) -> Tensor:
    """Select slices along an axis by a 1-d tensor of indices. See `ops.index_select`."""
    return index_select(self, dim if axis is None else axis, index)


@cached_call
def take(input: Tensor, index: object) -> Tensor:
    """Select elements of the flattened tensor by indices (`mindspore.ops.take`).

    Raises:
        IndexError: an index out of range.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.take(ms.Tensor([[1, 2], [3, 4]]), ms.Tensor([0, 3]))
        Tensor(shape=[2], dtype=Int64, value= [1, 4])
    """
    return gather(reshape_to(input, (input.size,)), as_index(index, input), 0)


@tensor_method("take")
def _tensor_take(
    self: Tensor,
    indices: object = None,
    axis: int | None = None,
    mode: str = "clip",
    *,
    index: object = None,
) -> Tensor:
    """Select slices along an axis, or elements of the flattened tensor, by indices.

    Args:
        indices: integer Tensor, or nested lists.
        axis: int, or None for the flattened tensor.
        mode: for an index out of range, ``"clip"`` uses the nearest valid one, ``"wrap"`` wraps
            around, ``"raise"`` raises IndexError.
        index: indices into the flattened tensor, instead of the other arguments.
    """
    if index is not None:
        return take(self, index)
    if mode not in ("clip", "wrap", "raise"):
        raise ArgumentValueError(f"take: got mode={mode!r}; wanted 'clip', 'wrap' or 'raise'")
    if indices is None:
        raise ArgumentError("take: got no indices")
    x = reshape_to(self, (self.size,)) if axis is None or not self.shape else self
    at = axis_of("take", 0 if axis is None else axis, len(x.shape))
    n = x.shape[at]
    found = as_index(indices, self)
    if mode == "wrap" and n:
        found = remainder(found, n)
    elif mode == "clip" and n:
        found = maximum(minimum(found, n - 1), -n)
    return gather(x, found, at)


@op(primitive="ReverseSequence(seq_dim, batch_dim=0)")
def reverse_sequence(input: Tensor, lengths: Tensor, seq_axis: Axis, batch_axis: Axis):
    """Reverse the first `seq_lengths[i]` elements of each sequence
    (`mindspore.ops.reverse_sequence`).

    Args:
        x: Tensor.
        seq_lengths: 1-d integer Tensor, a length for each slice of `batch_dim`.
        seq_dim, batch_dim: the axis of the sequence and that of the batch.

    Raises:
        IndexError, ValueError: a length that is negative or larger than the axis.
        ValueError: another number of lengths.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.reverse_sequence(ms.Tensor([[1, 2, 3], [4, 5, 6]]), ms.Tensor([2, 3]), 1)
        Tensor(shape=[2, 3], dtype=Int64, value=
        [[2, 1, 3],
         [6, 5, 4]])
    """
    shape = [1] * len(input.shape)
    shape[batch_axis] = input.shape[batch_axis]
    lengths = checked_labels("reverse_sequence", lengths, input.shape[seq_axis] + 1)
    ends = reshape_to(lengths, shape)
    step = iota(input.shape, seq_axis, lengths.dtype)
    at = select_by(less(step, ends), ends - 1 - step, step)
    return gather_elements_by(input, at, seq_axis)


@reverse_sequence.normaliser
def _(x: Tensor, seq_lengths: Tensor, seq_dim: int, batch_dim: int = 0):
    ndim = len(x.shape)
    seq = axis_of("reverse_sequence", seq_dim, ndim)
    batch = axis_of("reverse_sequence", batch_dim, ndim)
    if seq == batch or seq_lengths.shape != (x.shape[batch],):
        raise ShapeError(
            f"reverse_sequence: got {seq_lengths.shape} lengths for axes {seq_dim} and "
            f"{batch_dim} of {x.shape}"
        )
    return (x, as_index(seq_lengths, x), seq, batch)


@tensor_method("reverse_sequence")
def _tensor_reverse_sequence(
    self: Tensor, seq_lengths: Tensor, seq_dim: int = 0, batch_dim: int = 0
) -> Tensor:
    """Reverse the first `seq_lengths[i]` elements of each sequence; see `ops.reverse_sequence`."""
    found: Tensor = reverse_sequence.public(self, seq_lengths, seq_dim, batch_dim)
    return found


@tensor_method("choose")
def _tensor_choose(
    self: Tensor, choices: Tensor | tuple[Tensor, ...] | list[Tensor], mode: str = "clip"
) -> Tensor:
    """Choose each element from one of several tensors; this tensor has the number of the choice.

    Args:
        choices: tuple or list of Tensors, or one Tensor whose slices along axis 0 are the choices.
            They broadcast with this tensor.
        mode: for a number out of range, ``"clip"`` uses the nearest valid one, ``"wrap"`` wraps
            around, ``"raise"`` raises IndexError.
    """
    parts = choices if isinstance(choices, (tuple, list)) else unstack(choices)
    wide = broadcast_tensors(self, *[beside(self, p) for p in parts])
    rows = stack(wide[1:], 0)
    n = rows.shape[0]
    at = as_index(wide[0])
    if mode == "wrap":
        at = remainder(at, n)
    elif mode == "clip":
        at = maximum(minimum(at, n - 1), 0)
    elif mode == "raise":
        at = checked_labels("choose", at, n)
    else:
        raise ArgumentValueError(f"choose: got mode={mode!r}; wanted 'clip', 'wrap' or 'raise'")
    found = gather_elements_by(rows, reshape_to(at, (1, *at.shape)), 0)
    return reshape_to(found, at.shape)
