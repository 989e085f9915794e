"""Reductions of `duograph.numpy`: sums, extremes and means.

Users call them as `duograph.numpy.NAME`. Each calls the reduction of `duograph.ops` with NumPy's
arguments; a new reduction belongs there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import ops as _ops
from ..dtype import DTypeLike
from ..errors import ArgumentValueError
from ..host_arrays import shape_tuple
from ..tensor import Tensor
from .operands import Ints, TensorLike, as_floating, tensor_of, with_dtype

# fmt: off
__all__ = [
    "all", "amax", "amin", "any", "argmax", "argmin", "average", "count_nonzero", "max", "mean",
    "min", "prod", "ptp", "sometrue", "std", "sum", "var",
]
# fmt: on


def _axes(axis: Ints | None) -> tuple[int, ...] | None:
    return None if axis is None else shape_tuple(axis)


def sum(
    a: TensorLike,
    axis: Ints | None = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
    initial: float | None = None,
) -> Tensor:
    """Return the sum of the elements.

    Args:
        a: array-like.
        axis: the axis or axes; None is all.
        dtype: element type in which the sum is computed; None is int64 for bools and integers.
        keepdims: whether the axes stay, with size 1.
        initial: number that is added.

    Returns:
        Tensor.

    Raises:
        ValueError: an axis is out of range.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.sum([[1, 2], [3, 4]], axis=0))
        [4 6]
    """
    out = _ops.sum(tensor_of(a), _axes(axis), keepdims, dtype=dtype)
    return out if initial is None else with_dtype(out + initial, dtype)


def prod(a: TensorLike, axis: Ints | None = None, keepdims: bool = False) -> Tensor:
    """Return the product of the elements.

    Args:
        a: array-like.
        axis: the axis or axes; None is all.
        keepdims: whether the axes stay, with size 1.

    Returns:
        Tensor.

    Raises:
        ValueError: an axis is out of range.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.prod([[1, 2], [3, 4]], axis=0))
        [3 8]
    """
    return _ops.prod(tensor_of(a), _axes(axis), keepdims)


def any(a: TensorLike, axis: Ints | None = None, keepdims: bool = False) -> Tensor:
    """Return whether any element is true.

    Args:
        a: array-like.
        axis: the axis or axes; None is all.
        keepdims: whether the axes stay, with size 1.

    Returns:
        bool Tensor.

    Raises:
        ValueError: an axis is out of range.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.any([[True, False], [False, False]], axis=1))
        [ True False]
    """
    return _ops.any(tensor_of(a), _axes(axis), keepdims)


def sometrue(a: TensorLike, axis: Ints | None = None, keepdims: bool = False) -> Tensor:
    """Return whether any element is true; another name of `any`.

    Args:
        a: array-like.
        axis: the axis or axes; None is all.
        keepdims: whether the axes stay, with size 1.

    Returns:
        bool Tensor.

    Raises:
        ValueError: an axis is out of range.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.sometrue([0, 1]))
        True
    """
    return any(a, axis, keepdims)


def all(a: TensorLike, axis: Ints | None = None, keepdims: bool = False) -> Tensor:
    """Return whether all elements are true.

    Args:
        a: array-like.
        axis: the axis or axes; None is all.
        keepdims: whether the axes stay, with size 1.

    Returns:
        bool Tensor.

    Raises:
        ValueError: an axis is out of range.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.all([[True, False], [True, True]], axis=1))
        [False  True]
    """
    return _ops.all(tensor_of(a), _axes(axis), keepdims)


def count_nonzero(x: TensorLike, axis: Ints | None = None, keepdims: bool = False) -> Tensor:
    """Return the number of elements that are not 0.

    Args:
        x: array-like.
        axis: the axis or axes; None is all.
        keepdims: whether the axes stay, with size 1.

    Returns:
        int32 Tensor.

    Raises:
        ValueError: an axis is out of range.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.count_nonzero([[1, 0], [3, 4]], axis=0))
        [2 1]
    """
    return _ops.count_nonzero(tensor_of(x), _axes(axis), keepdims)


# ---- extremes -----------------------------------------------------------------------------------


def _extreme(
    name: str,
    op: Callable[..., Tensor],
    a: TensorLike,
    axis: Ints | None,
    keepdims: bool,
    initial: float | None,
    where: TensorLike,
) -> Tensor:
    selects = where is not True
    if selects and initial is None:
        raise ArgumentValueError(f"{name}: got where without initial; wanted both")
    x = tensor_of(a)
    if selects:
        return op(x, _axes(axis), keepdims, initial=initial, where=tensor_of(where))
    return op(x, _axes(axis), keepdims, initial=initial)


def amax(
    a: TensorLike,
    axis: Ints | None = None,
    keepdims: bool = False,
    initial: float | None = None,
    where: TensorLike = True,
) -> Tensor:
    """Return the largest element; NaN if one is NaN.

    Args:
        a: array-like.
        axis: the axis or axes; None is all.
        keepdims: whether the axes stay, with size 1.
        initial: lower limit of the result; None for no limit.
        where: bool array-like that broadcasts with `a` and selects elements; it requires `initial`.

    Returns:
        Tensor.

    Raises:
        ValueError: an axis is out of range; there is neither an element nor `initial`; or `where`
            without it.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.amax([[1, 2], [3, 4]], axis=0))
        [3 4]
    """
    return _extreme("amax", _ops.amax, a, axis, keepdims, initial, where)


def amin(
    a: TensorLike,
    axis: Ints | None = None,
    keepdims: bool = False,
    initial: float | None = None,
    where: TensorLike = True,
) -> Tensor:
    """Return the smallest element; NaN if one is NaN.

    Args:
        a: array-like.
        axis: the axis or axes; None is all.
        keepdims: whether the axes stay, with size 1.
        initial: upper limit of the result; None for no limit.
        where: bool array-like that broadcasts with `a` and selects elements; it requires `initial`.

    Returns:
        Tensor.

    Raises:
        ValueError: an axis is out of range; there is neither an element nor `initial`; or `where`
            without it.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.amin([[1, 2], [3, 4]], axis=1))
        [1 3]
    """
    return _extreme("amin", _ops.amin, a, axis, keepdims, initial, where)


max, min = amax, amin


def argmax(a: TensorLike, axis: int | None = None) -> Tensor:
    """Return the index of the largest element, the first of several.

    Args:
        a: array-like.
        axis: the axis; None is the index in the flattened elements.

    Returns:
        int64 Tensor.

    Raises:
        ValueError: the axis is out of range, or there is no element.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.argmax([[1, 5], [4, 3]], axis=1))
        [1 0]
    """
    return tensor_of(a).argmax(axis)


def argmin(a: TensorLike, axis: int | None = None) -> Tensor:
    """Return the index of the smallest element, the first of several.

    Args:
        a: array-like.
        axis: the axis; None is the index in the flattened elements.

    Returns:
        int32 Tensor; that of `argmax` is int64.

    Raises:
        ValueError: the axis is out of range, or there is no element.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.argmin([[1, 5], [4, 3]], axis=1))
        [0 1]
    """
    return tensor_of(a).argmin(axis)


def ptp(x: TensorLike, axis: Ints | None = None, keepdims: bool = False) -> Tensor:
    """Return the largest element minus the smallest.

    Args:
        x: array-like.
        axis: the axis or axes; None is all.
        keepdims: whether the axes stay, with size 1.

    Returns:
        Tensor.

    Raises:
        ValueError: an axis is out of range, or there is no element.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.ptp([[1, 5], [4, 3]], axis=1))
        [4 1]
    """
    t = tensor_of(x)
    return amax(t, axis, keepdims) - amin(t, axis, keepdims)


# ---- means --------------------------------------------------------------------------------------


def mean(
    a: TensorLike, axis: Ints | None = None, keepdims: bool = False, dtype: DTypeLike | None = None
) -> Tensor:
    """Return the mean of the elements; that of bools and integers is float32.

    Args:
        a: array-like.
        axis: the axis or axes; None is all.
        keepdims: whether the axes stay, with size 1.
        dtype: element type of the result; None leaves it as computed.

    Returns:
        Tensor.

    Raises:
        ValueError: an axis is out of range.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.mean([[1, 2], [3, 4]], axis=0))
        [2. 3.]
    """
    return with_dtype(_ops.mean(as_floating(tensor_of(a)), _axes(axis), keepdims), dtype)


def std(x: TensorLike, axis: Ints | None = None, ddof: int = 0, keepdims: bool = False) -> Tensor:
    """Return the standard deviation of the elements.

    Args:
        x: array-like.
        axis: the axis or axes; None is all.
        ddof: the sum of squares is divided by the number of elements minus this.
        keepdims: whether the axes stay, with size 1.

    Returns:
        Tensor of floats.

    Raises:
        ValueError: an axis is out of range.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.std([[1.0, 3.0], [2.0, 6.0]], axis=1))
        [1. 2.]
    """
    return _ops.std(as_floating(tensor_of(x)), _axes(axis), ddof, keepdims)


def var(x: TensorLike, axis: Ints | None = None, ddof: int = 0, keepdims: bool = False) -> Tensor:
    """Return the variance of the elements.

    Args:
        x: array-like.
        axis: the axis or axes; None is all.
        ddof: the sum of squares is divided by the number of elements minus this.
        keepdims: whether the axes stay, with size 1.

    Returns:
        Tensor of floats.

    Raises:
        ValueError: an axis is out of range.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.var([[1.0, 3.0], [2.0, 6.0]], axis=1))
        [1. 4.]
    """
    return _ops.var(as_floating(tensor_of(x)), _axes(axis), ddof, keepdims)


def average(
    x: TensorLike,
    axis: Ints | None = None,
    weights: TensorLike | None = None,
    returned: bool = False,
) -> Any:
    """Return the weighted mean of the elements.

    Args:
        x: array-like.
        axis: the axis or axes; None is all.
        weights: array-like of the shape of `x`, or of the size of the axis; None weighs all alike.
        returned: whether to return the sum of the weights as well.

    Returns:
        Tensor; with `returned` a pair of the mean and the sum of the weights.

    Raises:
        ValueError: the weights have another shape.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.average([1.0, 2.0, 6.0], weights=[1, 1, 2]))
        3.75
    """
    t = as_floating(tensor_of(x))
    if weights is None:
        out = mean(t, axis)
        total = _ops.ones_like(out) * (t.size / out.size if out.size else math.nan)
        return (out, total) if returned else out
    w = with_dtype(tensor_of(weights), t.dtype)
    if w.shape != t.shape:
        if w.ndim != 1 or not isinstance(axis, int) or w.size != t.shape[axis]:
            raise ArgumentValueError(
                f"average: got weights of shape {w.shape} for {t.shape} and axis={axis}; "
                f"wanted the same shape, or the size of the axis"
            )
        place = axis % t.ndim
        shape = (1,) * place + (w.size,) + (1,) * (t.ndim - place - 1)
        w = _ops.broadcast_to(w.reshape(shape), t.shape)
    total = sum(w, axis)
    out = sum(t * w, axis) / total
    return (out, total) if returned else out
