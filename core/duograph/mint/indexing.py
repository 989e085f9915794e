"""Lookups, writes at indices, sorting and counting with the signatures of `duograph.mint`.

`mint/__init__.py` exports these functions. Every function normalises its arguments and calls
`duograph.ops` or a Tensor method; indices in results are int64.
"""

from __future__ import annotations

from .. import ops as _ops
from ..dtype import int64
from ..errors import ArgumentError
from ..tensor import Tensor
from ._arguments import Number

__all__ = [
    "argsort", "bincount", "gather", "histc", "index_add", "index_select", "kthvalue", "scatter",
    "scatter_add", "sort", "topk", "unique", "where",
]  # fmt: skip


def where(
    condition: Tensor,
    input: Tensor | Number | None = None,
    other: Tensor | Number | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """Choose elements of two tensors by a condition, or find where it holds
    (`mindspore.mint.where`).

    Args:
        condition: bool Tensor.
        input: Tensor or number, taken where the condition holds.
        other: Tensor or number, taken elsewhere.

    Returns:
        Tensor of the broadcast shape; with the condition alone, a tuple with the int64 indices
        of its true elements along each axis.

    Raises:
        TypeError: one of `input` and `other` without the other.
        ValueError: the shapes do not broadcast.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.where(Tensor([True, False]), Tensor([1, 2]), 0))
        [1 0]
    """
    if input is None and other is None:
        return tuple(_ops.nonzero(condition, as_tuple=True))
    if input is None or other is None:
        raise ArgumentError(
            "where: got one of input and other; wanted both, or the condition alone"
        )
    return _ops.where(condition, input, other)


def gather(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Return the elements at indices along an axis (`mindspore.mint.gather`).

    Args:
        input: Tensor.
        dim: axis.
        index: integer Tensor with as many axes; no other axis is longer than that of `input`.

    Returns:
        Tensor of the shape of `index`.

    Raises:
        ValueError: shapes that do not match, or an axis out of range.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.gather(Tensor([[1, 2], [3, 4]]), 1, Tensor([[0], [1]])))
        [[1]
         [4]]
    """
    return _ops.gather_elements(input, dim, index)


def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Return the parts of a tensor at indices of one axis (`mindspore.mint.index_select`).

    Args:
        input: Tensor.
        dim: axis.
        index: integer Tensor of one axis.

    Raises:
        ValueError: an index that is not 1-d, or an axis out of range.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.index_select(Tensor([[1, 2], [3, 4]]), 1, Tensor([1])))
        [[2]
         [4]]
    """
    return _ops.index_select(input, dim, index)


def scatter(input: Tensor, dim: int, index: Tensor, src: Tensor | Number) -> Tensor:
    """Return a copy of `input` with the elements of `src` at indices along an axis
    (`mindspore.mint.scatter`).

    Args:
        input: Tensor.
        dim: axis.
        index: integer Tensor with as many axes.
        src: Tensor at least as large as `index`, or a number.

    Returns:
        Tensor of the shape of `input`. If an index comes twice, one of the values is taken.

    Raises:
        ValueError: shapes that do not match, or an axis out of range.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.scatter(Tensor([1, 2, 3]), 0, Tensor([2, 0]), Tensor([8, 9])))
        [9 2 8]
    """
    return input.scatter(dim, index, src)


def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Return `input` with the elements of `src` added at indices along an axis
    (`mindspore.mint.scatter_add`).

    Args:
        input: Tensor.
        dim: axis.
        index: integer Tensor with as many axes; indices may come several times.
        src: Tensor at least as large as `index`.

    Raises:
        ValueError: shapes that do not match, or an axis out of range.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.scatter_add(Tensor([1, 2, 3]), 0, Tensor([2, 2]), Tensor([10, 20])))
        [ 1  2 33]
    """
    return input.scatter_add(dim, index, src)


def index_add(
    input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Number = 1
) -> Tensor:
    """Return `input` with ``alpha * source`` added to its parts at indices of an axis
    (`mindspore.mint.index_add`).

    Args:
        input: Tensor.
        dim: axis.
        index: integer Tensor of one axis; indices may come several times.
        source: Tensor of the shape of `input`, with one part for each index along the axis.
        alpha: the factor of `source`.

    Raises:
        ValueError: shapes that do not match, or an axis out of range.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.index_add(Tensor([1, 2, 3]), 0, Tensor([0, 0]), Tensor([1, 1]), alpha=5))
        [11  2  3]
    """
    return input.index_add(dim, index, source, alpha=alpha)


def sort(
    input: Tensor, *, dim: int = -1, descending: bool = False, stable: bool = False
) -> tuple[Tensor, Tensor]:
    """Sort along an axis (`mindspore.mint.sort`).

    Args:
        input: real Tensor; NaN comes last.
        dim: axis.
        descending: whether the largest element comes first.
        stable: whether equal elements must keep their order; they always do.

    Returns:
        (values, int64 indices), both of the shape of `input`.

    Raises:
        ValueError: the axis is out of range.

    Examples:
        >>> from duograph import Tensor, mint
        >>> values, indices = mint.sort(Tensor([3, 1, 2]))
        >>> print(values, indices)
        [1 2 3] [1 2 0]
    """
    values, indices = _ops.sort(input, dim, descending)
    return values, indices.astype(int64)


def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """Return the indices that sort along an axis (`mindspore.mint.argsort`).

    Args:
        input: real Tensor; NaN comes last.
        dim: axis.
        descending: whether the largest element comes first.
        stable: whether equal elements must keep their order; they always do.

    Returns:
        int64 Tensor of the shape of `input`.

    Raises:
        ValueError: the axis is out of range.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.argsort(Tensor([3, 1, 2])))
        [1 2 0]
    """
    return _ops.argsort(input, dim, descending).astype(int64)


def topk(
    input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Tensor, Tensor]:
    """Return the k largest or smallest elements along an axis (`mindspore.mint.topk`).

    Args:
        input: real Tensor of at least one axis.
        k: number of elements.
        dim: axis.
        largest: whether to return the largest rather than the smallest elements.
        sorted: whether the elements must come in order; they always do.

    Returns:
        (values, int64 indices).

    Raises:
        ValueError: k is negative or larger than the axis.

    Examples:
        >>> from duograph import Tensor, mint
        >>> values, indices = mint.topk(Tensor([3, 1, 2]), 2)
        >>> print(values, indices)
        [3 2] [0 2]
    """
    values, indices = _ops.topk(input, k, dim, largest, sorted)
    return values, indices.astype(int64)


def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Return the k-th smallest element along an axis (`mindspore.mint.kthvalue`).

    Args:
        input: real Tensor.
        k: 1 for the smallest.
        dim: axis.
        keepdim: whether to keep the axis with length 1.

    Returns:
        (values, int64 indices).

    Raises:
        ValueError: k is below 1 or larger than the axis.

    Examples:
        >>> from duograph import Tensor, mint
        >>> value, index = mint.kthvalue(Tensor([3, 1, 2]), 2)
        >>> print(value, index)
        2 2
    """
    values, indices = _ops.kthvalue(input, k, dim, keepdim)
    return values, indices.astype(int64)


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """Return the different elements, or the different parts of an axis (`mindspore.mint.unique`).

    Args:
        input: real Tensor.
        sorted: whether the elements must come in ascending order; they always do.
        return_inverse: whether to return also where each element of `input` is in the result.
        return_counts: whether to return also how often each element of the result occurs in
            `input`.
        dim: axis whose parts are compared; None compares single elements.

    Returns:
        A Tensor, or a tuple (values, inverse, counts) of those asked for; the last two are int64.

    Raises:
        ValueError: the axis is out of range.

    Examples:
        >>> from duograph import Tensor, mint
        >>> values, counts = mint.unique(Tensor([2, 1, 2]), return_counts=True)
        >>> print(values, counts)
        [1 2] [1 2]
    """
    return input.unique(sorted, return_inverse, return_counts, dim)


def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Return how often each number occurs, or the sum of its weights (`mindspore.mint.bincount`).

    The length of the result depends on the largest number, so compiled code cannot know it.

    Args:
        input: Tensor of one axis, of non-negative integers.
        weights: Tensor of the same shape; it has a gradient.
        minlength: least length of the result.

    Returns:
        int64 Tensor, or one of the floating dtype of `weights`.

    Raises:
        TypeError: elements that are no integers.
        ValueError: other axes, a negative number, or weights of another shape.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.bincount(Tensor([1, 3, 1]), minlength=5))
        [0 2 0 1 0]
    """
    found = _ops.bincount(input, weights, minlength)
    return found.astype(int64) if weights is None else found


def histc(input: Tensor, bins: int = 100, min: Number = 0, max: Number = 0) -> Tensor:
    """Return the numbers of elements in equal bins from `min` to `max` (`mindspore.mint.histc`).

    Args:
        input: real Tensor of any shape.
        bins: number of bins.
        min, max: ends of the range of the bins. If both are equal, the range is that of the
            elements. Elements outside the range do not count.

    Returns:
        Tensor (bins,) of the dtype of `input`.

    Raises:
        ValueError: bins below 1, min above max, or elements that are not finite without a range.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.histc(Tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3))
        [0. 2. 1. 0.]
    """
    return _ops.histc(input, bins, min, max)
