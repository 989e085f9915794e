"""Cumulative results and softmax along an axis, with the signatures of `duograph.mint`.

`mint/__init__.py` exports these functions. Every function normalises its arguments and calls
`duograph.ops`.
"""

from __future__ import annotations

from .. import ops as _ops
from ..dtype import DTypeLike, int64
from ..tensor import Tensor
from ._arguments import converted

__all__ = ["cummax", "cummin", "cumprod", "cumsum", "softmax"]


def cumsum(input: Tensor, dim: int, dtype: DTypeLike | None = None) -> Tensor:
    """Return the cumulative sums along an axis (`mindspore.mint.cumsum`).

    Args:
        input: Tensor.
        dim: axis.
        dtype: dtype in which to add; default that of `input`, or int64 for integers and bools.

    Raises:
        ValueError: the axis is out of range.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.cumsum(Tensor([1, 2, 3]), 0))
        [1 3 6]
    """
    return _ops.cumsum(_accumulated(input, dtype), dim)


def cumprod(input: Tensor, dim: int, dtype: DTypeLike | None = None) -> Tensor:
    """Return the cumulative products along an axis (`mindspore.mint.cumprod`).

    Args:
        input: Tensor.
        dim: axis.
        dtype: dtype in which to multiply; default that of `input`, or int64 for integers and
            bools.

    Raises:
        ValueError: the axis is out of range.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.cumprod(Tensor([1, 2, 3]), 0))
        [1 2 6]
    """
    return _ops.cumprod(_accumulated(input, dtype), dim)


def _accumulated(x: Tensor, dtype: DTypeLike | None) -> Tensor:
    """Return a tensor cast to the dtype of its cumulative sums.

    That dtype is `dtype` if given, else int64 for integers and bools, else the tensor's own.
    """
    if dtype is not None:
        return x.astype(dtype)
    return x if x.dtype.is_floating or x.dtype.is_complex else x.astype(int64)


def cummax(input: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Return the largest element so far along an axis and its index (`mindspore.mint.cummax`).

    Args:
        input: real Tensor.
        dim: axis.

    Returns:
        (values, int64 indices), both of the shape of `input`.

    Raises:
        ValueError: the axis is out of range.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.cummax(Tensor([1.0, 3.0, 2.0]), 0)[0])
        [1. 3. 3.]
    """
    values, indices = _ops.cummax(input, dim)
    return values, indices


def cummin(input: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Return the smallest element so far along an axis and its index (`mindspore.mint.cummin`).

    Args:
        input: real Tensor.
        dim: axis.

    Returns:
        (values, int64 indices), both of the shape of `input`.

    Raises:
        ValueError: the axis is out of range.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.cummin(Tensor([2.0, 3.0, 1.0]), 0)[0])
        [2. 2. 1.]
    """
    values, indices = _ops.cummin(input, dim)
    return values, indices.astype(int64)


def softmax(input: Tensor, dim: int, *, dtype: DTypeLike | None = None) -> Tensor:
    """Return the softmax along an axis (`mindspore.mint.softmax`).

    Args:
        input: floating Tensor, unless `dtype` is one.
        dim: axis.
        dtype: dtype in which to compute.

    Raises:
        TypeError: the elements are not floating.
        ValueError: the axis is out of range.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.softmax(Tensor([0.0, 0.0]), 0))
        [0.5 0.5]
    """
    return _ops.softmax(converted(input, dtype), dim)
