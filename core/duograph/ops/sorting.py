"""Sorting and searching: sort, argsort, topk, kthvalue and searchsorted.

Users and other op families call them. On every backend, sorting must be stable and put NaN last, so
that results agree.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..call_cache import cached_call
from ..dtype import BOOL, REAL, bool_, int32, int64
from ..errors import ArgumentError, ArgumentValueError, ShapeError
from ..host_arrays import Array
from ..op import op
from ..op_signature import Axis
from ..tensor import Tensor
from ..types import TensorType
from .arguments import int_of
from .axes import axis_of
from .comparison import equal, less, less_equal, not_equal
from .creation import cast_to, fill, iota, zeros_of
from .creation_functions import as_index, beside
from .gather_scatter import gather, gather_elements_by, scatter_elements_set_by
from .logic import logical_and, logical_not, logical_or, select_by
from .methods import tensor_method
from .movement import concat_by, flip_by, identity, pad_by, slice_axis, stop_gradient
from .primitive import primitive
from .shape_primitives import reshape_to
from .shaping import moveaxis

__all__ = [
    "sort", "argsort", "msort", "topk", "top_k", "kthvalue", "searchsorted", "bucketize",
]  # fmt: skip


# ---- sort ----------------------------------------------------------------------------------------


@op(name="sort", composite=False, dtypes=BOOL + REAL)
def sort_by(input: Tensor, axis: Axis, descending: bool):
    """Primitive op: stable sort along `axis`, with NaN last; returns (values, int64 indices)."""


@sort_by.infer
def _(x, axis, descending):
    return x.plain, x.with_(dtype=int64)


def _order(x: Array, axis: int, descending: bool) -> Array:
    """Return the indices that sort a NumPy array along an axis, stably and with NaN last."""
    if x.dtype.kind == "V" or x.dtype.itemsize == 2:
        x = x.astype(np.float32 if x.dtype.kind in "fV" else np.int32)
    if not descending:
        return np.argsort(x, axis, kind="stable")
    order = x.shape[axis] - 1 - np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
    if x.dtype.kind != "f":
        return order
    last = np.argsort(np.isnan(np.take_along_axis(x, order, axis)), axis, kind="stable")
    return np.take_along_axis(order, last, axis)


@sort_by.reference
def _(x, axis, descending):
    order = _order(x, axis, descending)
    return np.take_along_axis(x, order, axis), order.astype(np.int64)


@sort_by.bprop
def _(x, out, dout, axis, descending):
    return (scatter_elements_set_by(zeros_of(x._type.plain), out[1], dout[0], axis),)


@sort_by.decompose
def _(x, axis, descending):
    """Decompose the sort into Batcher's bitonic network on triples (class, key, index).

    The class is 0 for numbers, 1 for NaN and 2 for padding, so that NaN and padding come last.
    """
    n = x.shape[axis]
    if n < 2 or not x.size:
        return identity(x), fill(x.shape, 0, int64)
    moved = moveaxis(x, axis, -1)
    size = 1 << (n - 1).bit_length()
    lead = moved.shape[:-1]
    low, high = (0,) * len(moved.shape), (*(0,) * len(lead), size - n)
    key = cast_to(moved, int32) if x.dtype is bool_ else moved
    key = pad_by(key, low, high, 0) if size > n else key
    index = iota((*lead, size), len(lead), int32)
    group = select_by(less(index, n), fill((), 0, int32), fill((), 2, int32))
    if x.dtype.is_floating:
        nan = not_equal(key, key)
        group = select_by(nan, fill((), 1, int32), group)
        key = select_by(nan, zeros_of(key._type.plain), key)
    lanes: tuple[Tensor, ...] = (group, key, index)
    block = 2
    while block <= size:
        lanes = _exchange(lanes, lead, size, block, True, descending)
        half = block // 2
        while half > 1:
            lanes = _exchange(lanes, lead, size, half, False, descending)
            half //= 2
        block *= 2
    at = moveaxis(slice_axis(lanes[2], len(lead), 0, n), -1, axis)
    order = cast_to(at, int64)
    return gather_elements_by(x, order, axis), order


def _exchange(
    lanes: tuple[Tensor, ...],
    lead: tuple[int, ...],
    size: int,
    block: int,
    mirrored: bool,
    descending: bool,
) -> tuple[Tensor, ...]:
    """Run one stage of a bitonic sort: compare and exchange the halves of each block.

    `lanes` are the tensors (class, key, index), of shape (*lead, size), in blocks of `block`
    elements. With `mirrored`, an element's partner in the second half is counted from the block's
    end. Returns the new lanes.
    """
    half = block // 2
    last = len(lead) + 1
    first, second = [], []
    for lane in lanes:
        blocks = reshape_to(lane, (*lead, size // block, block))
        first.append(slice_axis(blocks, last, 0, half))
        other = slice_axis(blocks, last, half, block)
        second.append(flip_by(other, (last,)) if mirrored else other)
    swap = _before(second, first, descending)
    out = []
    for a, b in zip(first, second, strict=True):
        low, high = select_by(swap, b, a), select_by(swap, a, b)
        joined = concat_by((low, flip_by(high, (last,)) if mirrored else high), last)
        out.append(reshape_to(joined, (*lead, size)))
    return tuple(out)


def _before(a: Sequence[Tensor], b: Sequence[Tensor], descending: bool) -> Tensor:
    """Return elementwise whether the (class, key, index) triple `a` must come before `b`."""
    key = less(b[1], a[1]) if descending else less(a[1], b[1])
    tie = logical_and(equal(a[1], b[1]), less(a[2], b[2]))
    inside = logical_and(equal(a[0], b[0]), logical_or(key, tie))
    return logical_or(less(a[0], b[0]), inside)


@primitive("Sort(axis=-1, descending=False)", op="sort")
@cached_call
def sort(input_x: Tensor, axis: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    """Sort along an axis; return the elements and where they were (`mindspore.ops.sort`).

    Equal elements keep their order; NaN comes last in both orders.

    Args:
        input_x: Tensor of any real dtype, or bool.
        axis: the axis to sort along.
        descending: whether the largest comes first.

    Returns:
        (values, int32 indices), both of the shape of `input_x`.

    Raises:
        ValueError: the axis is out of range.

    Examples:
        >>> import duograph as ms
        >>> values, indices = ms.ops.sort(ms.Tensor([3, 1, 2]))
        >>> print(values, indices)
        [1 2 3] [1 2 0]
    """
    if not input_x.shape:
        return input_x, fill((), 0, int32)
    values, indices = sort_by(input_x, axis_of("sort", axis, len(input_x.shape)), bool(descending))
    return values, cast_to(indices, int32)


@tensor_method("sort")
def _tensor_sort(
    self: Tensor,
    axis: int = -1,
    descending: bool = False,
    stable: bool = True,
    *,
    dim: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Sort along an axis; return (values, indices). See `ops.sort`.

    `dim` is another name of `axis`. `stable` has no effect, since equal elements always keep their
    order.
    """
    return sort(self, axis if dim is None else dim, descending)


@cached_call
def argsort(input: Tensor, axis: int = -1, descending: bool = False) -> Tensor:
    """Return the indices that sort the elements along an axis (`mindspore.ops.argsort`).

    Returns:
        Tensor of int32, of the shape of `input`.

    Raises:
        ValueError: the axis is out of range.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.argsort(ms.Tensor([3, 1, 2]))
        Tensor(shape=[3], dtype=Int32, value= [1, 2, 0])
    """
    return sort(stop_gradient(input), axis, descending)[1]


@tensor_method("argsort")
def _tensor_argsort(
    self: Tensor,
    axis: int = -1,
    descending: bool = False,
    stable: bool = True,
    *,
    dim: int | None = None,
) -> Tensor:
    """Return the indices that sort the tensor along an axis; see `ops.argsort`.

    `dim` is another name of `axis`. `stable` has no effect, since equal elements always keep their
    order.
    """
    return argsort(self, axis if dim is None else dim, descending)


@tensor_method("msort")
@cached_call
def msort(input: Tensor) -> Tensor:
    """Sort the elements along axis 0 (`mindspore.ops.msort`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.msort(ms.Tensor([[3, 1], [2, 4]]))
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[2, 1],
         [3, 4]])
    """
    return sort(input, 0)[0]


# ---- topk ----------------------------------------------------------------------------------------


@op(name="topk", composite=False, dtypes=BOOL + REAL)
def topk_by(input: Tensor, k: int, axis: Axis, largest: bool):
    """Primitive op: the k largest (or smallest) along `axis`, sorted.

    Returns (values, int64 indices); NaN comes last.
    """


@topk_by.infer
def _(x, k, axis, largest):
    if not 0 <= k <= x.shape[axis]:
        raise ShapeError(
            f"topk: got k={k} for axis {axis} of size {x.shape[axis]}; wanted 0 to {x.shape[axis]}"
        )
    shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    return TensorType.of(shape, x.dtype), TensorType.of(shape, int64)


@topk_by.reference
def _(x, k, axis, largest):
    order = np.take(_order(x, axis, largest), np.arange(k), axis)
    return np.take_along_axis(x, order, axis), order.astype(np.int64)


@topk_by.decompose
def _(x, k, axis, largest):
    values, indices = sort_by(x, axis, largest)
    return slice_axis(values, axis, 0, k), slice_axis(indices, axis, 0, k)


@topk_by.bprop
def _(x, out, dout, k, axis, largest):
    return (scatter_elements_set_by(zeros_of(x._type.plain), out[1], dout[0], axis),)


@cached_call
def topk(
    input: Tensor, k: int, dim: int | None = None, largest: bool = True, sorted: bool = True
) -> tuple[Tensor, Tensor]:
    """Return the k largest, or smallest, elements along an axis and where they were
    (`mindspore.ops.topk`).

    Args:
        input: Tensor of any real dtype, of at least one axis.
        k: int, at most the size of the axis.
        dim: int; default the last axis.
        largest: whether to return the largest elements, else the smallest.
        sorted: without effect; the elements are always sorted.

    Returns:
        (values, int32 indices). NaN comes last in both cases.

    Raises:
        ValueError: k is below 1 or larger than the axis.

    Examples:
        >>> import duograph as ms
        >>> values, indices = ms.ops.topk(ms.Tensor([1, 4, 2, 3]), 2)
        >>> print(values, indices)
        [4 3] [1 3]
    """
    if not input.shape:
        raise ShapeError("topk: got a 0-d tensor; wanted at least one axis")
    count = int_of("topk", "k", k)
    if count == 0:
        raise ArgumentValueError("topk: got k=0; wanted at least 1")
    axis = axis_of("topk", -1 if dim is None else dim, len(input.shape))
    values, indices = topk_by(input, count, axis, bool(largest))
    return values, cast_to(indices, int32)


tensor_method("topk")(topk)


@tensor_method("top_k")
@cached_call
def top_k(input_x: Tensor, k: int, sorted: bool = True) -> tuple[Tensor, Tensor]:
    """Return the k largest elements along the last axis, and their indices (`mindspore.ops.top_k`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.top_k(ms.Tensor([1, 4, 2, 3]), 1)
        (Tensor(shape=[1], dtype=Int64, value= [4]), Tensor(shape=[1], dtype=Int32, value= [1]))
    """
    return topk(input_x, k, None, True, sorted)


@tensor_method("kthvalue")
@cached_call
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Return the k-th smallest element along an axis, counted from 1, and where it was.

    Returns:
        (values, int32 indices), without the axis unless `keepdim`.

    Raises:
        ValueError: k is not in 1 to the size of the axis.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.kthvalue(ms.Tensor([3, 1, 2]), 2)
        (Tensor(shape=[], dtype=Int64, value= 2), Tensor(shape=[], dtype=Int32, value= 2))
    """
    axis = axis_of("kthvalue", dim, len(input.shape))
    n = input.shape[axis] if input.shape else 1
    if not 1 <= k <= n:
        raise ArgumentValueError(f"kthvalue: got k={k} for an axis of size {n}; wanted 1 to {n}")
    if not input.shape:
        return input, fill((), 0, int32)
    found = [slice_axis(part, axis, k - 1, k) for part in sort(input, axis)]
    if not keepdim:
        shape = input.shape[:axis] + input.shape[axis + 1 :]
        found = [reshape_to(part, shape) for part in found]
    return found[0], found[1]


# ---- search --------------------------------------------------------------------------------------


@op(name="searchsorted", differentiable=False, promote="common")
def searchsorted_by(sequence: Tensor, values: Tensor, right: bool):
    """Composite op: int64 positions by binary search along the last axis of `sequence`.

    `sequence` has one axis, or the leading axes of `values`. With `right`, a position is behind
    equal elements, else before them.
    """
    n = sequence.shape[-1]
    at = fill(values.shape, 0, int32)
    step = 1 << (n.bit_length() - 1) if n else 0
    while step:
        try_ = at + step
        # a step past the end probes the last element; `less_equal` below discards its result
        probe = select_by(less(n, try_), fill((), n, int32), try_) - 1
        if sequence.ndim == 1:
            seen = gather(sequence, probe, 0)
        else:
            seen = gather_elements_by(sequence, probe, sequence.ndim - 1)
        below = logical_not(_less(values, seen)) if right else _less(seen, values)
        at = select_by(logical_and(less_equal(try_, n), below), try_, at)
        step //= 2
    return cast_to(at, int64)


def _less(a: Tensor, b: Tensor) -> Tensor:
    """Return ``a < b`` elementwise, with NaN greater than all numbers."""
    if not a.dtype.is_floating:
        return less(a, b)
    return logical_or(less(a, b), logical_and(not_equal(b, b), equal(a, a)))


@cached_call
def searchsorted(
    sorted_sequence: Tensor,
    values: Tensor | int | float,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """Find where values can be inserted in a sorted sequence so that it stays sorted
    (`mindspore.ops.searchsorted`).

    Args:
        sorted_sequence: Tensor sorted along its last axis: of one axis, or with the leading axes of
            `values`.
        values: Tensor or number.
        out_int32: whether the indices are int32, else int64.
        right: whether to insert behind equal elements, else before them; ``side="right"`` is the
            same.
        sorter: indices that sort `sorted_sequence`, if it is not sorted; or None.

    Returns:
        Tensor of the shape of `values`.

    Raises:
        ValueError: leading axes that differ, or a `side` that contradicts `right`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.searchsorted(ms.Tensor([1, 3, 5]), ms.Tensor([3, 6]))
        Tensor(shape=[2], dtype=Int64, value= [1, 3])
    """
    if side not in (None, "left", "right") or (side == "left" and right):
        raise ArgumentValueError(f"searchsorted: got side={side!r} and right={right}")
    values = beside(sorted_sequence, values)
    sorted_sequence = beside(values, sorted_sequence)
    shape = sorted_sequence.shape
    if not shape or (len(shape) > 1 and shape[:-1] != values.shape[:-1]):
        raise ShapeError(
            f"searchsorted: got a sequence of shape {shape} and values of shape {values.shape}; "
            "wanted "
            f"one axis, or equal leading ones"
        )
    if sorter is not None:
        sorted_sequence = gather_elements_by(
            sorted_sequence, as_index(sorter, sorted_sequence), len(shape) - 1
        )
    found = searchsorted_by(sorted_sequence, values, bool(right) or side == "right")
    return cast_to(found, int32) if out_int32 else found


@tensor_method("searchsorted")
@cached_call
def _tensor_searchsorted(
    self: Tensor,
    v: Tensor | int | float,
    side: str = "left",
    sorter: Tensor | None = None,
    *,
    out_int32: bool = True,
    right: bool = False,
) -> Tensor:
    """Find where values can be inserted in this sorted tensor, as int32; see `ops.searchsorted`.

    Examples:
        >>> import duograph as ms
        >>> ms.Tensor([1, 3, 5]).searchsorted([3, 6], side="right")
        Tensor(shape=[2], dtype=Int32, value= [2, 3])
    """
    side_ = None if right and side == "left" else side
    return searchsorted(self, v, out_int32=out_int32, right=right, side=side_, sorter=sorter)


@cached_call
def bucketize(
    input: Tensor, boundaries: Tensor | Sequence[float] | Array, *, right: bool = False
) -> Tensor:
    """Return the interval between boundaries that each element is in (`mindspore.ops.bucketize`).

    Args:
        input: Tensor of any shape.
        boundaries: list, tuple or 1-d Tensor, in ascending order.
        right: whether the intervals are closed on the left, else on the right.

    Returns:
        Tensor of int32, of the shape of `input`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.bucketize(ms.Tensor([3, 1, 2]), [1, 2])
        Tensor(shape=[3], dtype=Int32, value= [2, 0, 1])
    """
    if not isinstance(boundaries, Tensor):
        if not isinstance(boundaries, (tuple, list, np.ndarray)):
            raise ArgumentError(
                f"bucketize: got boundaries={boundaries!r}; wanted a list, a tuple or a Tensor"
            )
        boundaries = Tensor(list(boundaries), input.dtype)
    return searchsorted(boundaries, input, out_int32=True, right=right)
