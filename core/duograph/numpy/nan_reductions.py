"""Reductions of `duograph.numpy` that leave out NaN.

Users call them as `duograph.numpy.NAME`. Each replaces NaN by a value that changes nothing and
calls the ordinary reduction; no gradient flows to an element that is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from .. import ops as _ops
from ..dtype import DTypeLike
from ..tensor import Tensor
from .operands import Ints, TensorLike, as_floating, tensor_of, with_dtype
from .reductions import all, amax, amin, sum

__all__ = ["nanmax", "nanmean", "nanmin", "nanstd", "nansum", "nanvar"]


def _without_nan(a: TensorLike, value: float) -> tuple[Tensor, Tensor]:
    """Return (`a` as floats with each NaN replaced by `value`, bool mask of the NaNs)."""
    x = as_floating(tensor_of(a))
    missing = _ops.isnan(x)
    return _ops.where(missing, value, x), missing


def nansum(
    a: TensorLike,
    axis: Ints | None = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Return the sum of the elements that are not NaN.

    Args:
        a: array-like.
        axis: the axis or axes; None is all.
        dtype: element type of the result; None leaves it as computed.
        keepdims: whether the axes stay, with size 1.

    Returns:
        Tensor.

    Raises:
        ValueError: an axis is out of range.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.nansum([1.0, mnp.nan, 3.0]))
        4.0
    """
    x = tensor_of(a)
    if x.dtype.kind in "biu":
        return sum(x, axis, dtype, keepdims)
    return with_dtype(sum(_without_nan(x, 0)[0], axis, None, keepdims), dtype)


def _nan_extreme(
    op: Callable[..., Tensor],
    limit: float,
    a: TensorLike,
    axis: Ints | None,
    dtype: DTypeLike | None,
    keepdims: bool,
) -> Tensor:
    x = tensor_of(a)
    if x.dtype.kind in "biu":
        return with_dtype(op(x, axis, keepdims), dtype)
    filled, missing = _without_nan(x, limit)
    out = _ops.where(all(missing, axis, keepdims), math.nan, op(filled, axis, keepdims))
    return with_dtype(out, dtype)


def nanmax(
    a: TensorLike,
    axis: Ints | None = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Return the largest element that is not NaN; NaN if all are.

    Args:
        a: array-like.
        axis: the axis or axes; None is all.
        dtype: element type of the result; None leaves it as computed.
        keepdims: whether the axes stay, with size 1.

    Returns:
        Tensor.

    Raises:
        ValueError: an axis is out of range, or there is no element.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.nanmax([1.0, mnp.nan, 3.0]))
        3.0
    """
    return _nan_extreme(amax, -math.inf, a, axis, dtype, keepdims)


def nanmin(
    a: TensorLike,
    axis: Ints | None = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Return the smallest element that is not NaN; NaN if all are.

    Args:
        a: array-like.
        axis: the axis or axes; None is all.
        dtype: element type of the result; None leaves it as computed.
        keepdims: whether the axes stay, with size 1.

    Returns:
        Tensor.

    Raises:
        ValueError: an axis is out of range, or there is no element.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.nanmin([1.0, mnp.nan, 3.0]))
        1.0
    """
    return _nan_extreme(amin, math.inf, a, axis, dtype, keepdims)


def _known(missing: Tensor, axis: Ints | None, keepdims: bool, like: Tensor) -> Tensor:
    """Return the number of elements along an axis that are not NaN, in the dtype of `like`.

    `missing` is True where an element is NaN.
    """
    return sum(with_dtype(_ops.logical_not(missing), like.dtype), axis, None, keepdims)


def nanmean(
    a: TensorLike,
    axis: Ints | None = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Return the mean of the elements that are not NaN; NaN if all are.

    Args:
        a: array-like.
        axis: the axis or axes; None is all.
        dtype: element type of the result; None leaves it as computed.
        keepdims: whether the axes stay, with size 1.

    Returns:
        Tensor.

    Raises:
        ValueError: an axis is out of range.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.nanmean([1.0, mnp.nan, 3.0]))
        2.0
    """
    filled, missing = _without_nan(a, 0)
    total = sum(filled, axis, None, keepdims)
    return with_dtype(total / _known(missing, axis, keepdims, filled), dtype)


def nanvar(
    a: TensorLike,
    axis: Ints | None = None,
    dtype: DTypeLike | None = None,
    ddof: int = 0,
    keepdims: bool = False,
) -> Tensor:
    """Return the variance of the elements that are not NaN; NaN if there are too few.

    Args:
        a: array-like.
        axis: the axis or axes; None is all.
        dtype: element type of the result; None leaves it as computed.
        ddof: the sum of squares is divided by the number of elements minus this.
        keepdims: whether the axes stay, with size 1.

    Returns:
        Tensor.

    Raises:
        ValueError: an axis is out of range.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.nanvar([1.0, mnp.nan, 3.0]))
        1.0
    """
    filled, missing = _without_nan(a, 0)
    centre = nanmean(a, axis, None, True)
    squares = _ops.where(missing, 0, _ops.square(filled - centre))
    count = _known(missing, axis, keepdims, filled) - ddof
    total = sum(squares, axis, None, keepdims)
    return with_dtype(_ops.where(_ops.greater(count, 0), total / count, math.nan), dtype)


def nanstd(
    a: TensorLike,
    axis: Ints | None = None,
    dtype: DTypeLike | None = None,
    ddof: int = 0,
    keepdims: bool = False,
) -> Tensor:
    """Return the standard deviation of the elements that are not NaN; NaN if there are too few.

    Args:
        a: array-like.
        axis: the axis or axes; None is all.
        dtype: element type of the result; None leaves it as computed.
        ddof: the sum of squares is divided by the number of elements minus this.
        keepdims: whether the axes stay, with size 1.

    Returns:
        Tensor.

    Raises:
        ValueError: an axis is out of range.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.nanstd([1.0, mnp.nan, 3.0]))
        1.0
    """
    return with_dtype(_ops.sqrt(nanvar(a, axis, None, ddof, keepdims)), dtype)
