"""MindSpore's functions of sums, means, products and truth over axes, such as `ops.sum`.

Users call them. They check the arguments, in every spelling that MindSpore accepts, and call the
ops of `reduction.py`. New ops do not belong here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..call_cache import cached_call
from ..dtype import DType, DTypeLike, as_dtype, bool_, int32, int64
from ..errors import DTypeError
from ..tensor import Tensor
from .axes import axes_of, spelled
from .comparison import equal
from .creation import cast_to, fill
from .logic import select_by
from .methods import tensor_method
from .reduction import reduce_all, reduce_any, reduce_mean, reduce_prod
from .shape_primitives import reduce_sum

__all__ = ["sum", "prod", "all", "any", "count_nonzero", "nansum"]


def _cast(x: Tensor, dtype: DTypeLike) -> Tensor:
    target = as_dtype(dtype)
    return x if x.dtype is target else cast_to(x, target)


def wanted_tensor(name: str, x: object) -> Tensor:
    """Return a Tensor unchanged; convert an array or a number to one.

    Raises DTypeError, which names the user's function `name`, for other values.
    """
    if isinstance(x, Tensor):
        return x
    if isinstance(x, (bool, int, float, complex, np.ndarray, np.generic)):
        return Tensor(x)
    raise DTypeError(f"{name}: got {type(x).__name__} for the input; wanted a Tensor")


def _dtype_second(keepdims: object, dtype: object, initial: object) -> tuple[object, Any, object]:
    """Return (keepdims, dtype, initial) for sum and prod, whose arguments have two orders.

    The orders are (axis, keepdims, dtype) and (axis, dtype, keepdims). If the value passed as
    `keepdims` is a dtype or None, the second order was used, and the first two are exchanged.
    """
    if keepdims is None or isinstance(keepdims, (DType, str, type, np.dtype)):
        return (dtype if isinstance(dtype, bool) else False), keepdims, initial
    return keepdims, dtype, initial


@tensor_method("sum")
@cached_call
def sum(
    input: Tensor,
    axis: int | Sequence[int] | None = None,
    keepdims: object = False,
    dtype: DTypeLike | None = None,
    initial: object = None,
    **dim: object,
) -> Tensor:
    """Return the sum of the elements over axes (`mindspore.ops.sum`).

    Args:
        input: Tensor of any shape and dtype.
        axis: int or tuple of ints; None and () mean all. Also spelled `dim`.
        keepdims: whether to keep the reduced axes, with size 1. Also spelled `keepdim`,
            `keep_dims`.
        dtype: dtype of the result, to which `input` is cast first; default that of `input`, but
            int64 for bool and integers. The older order (axis, dtype, keepdims) is also accepted.
        initial: number added to the sum.

    Returns:
        Tensor with the axes removed; 0 where there is nothing to sum.

    Raises:
        ValueError: an axis out of range, or named twice.

    Examples:
        >>> import duograph as ms
        >>> x = ms.Tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> print(x.sum(), x.sum(1), x.sum(dim=0, keepdim=True))
        10.0 [3. 7.] [[4. 6.]]
    """
    if keepdims.__class__ is not bool:
        keepdims, dtype, initial = _dtype_second(keepdims, dtype, initial)
    if dim or keepdims.__class__ is not bool:
        axis, keepdims = spelled("sum", axis, keepdims, dim)
    x = wanted_tensor("sum", input)
    if dtype is not None:
        x = _cast(x, dtype)
    elif x.dtype.kind in "biu" and x.dtype is not int64:
        x = cast_to(x, int64)
    out = reduce_sum(x, axes_of("sum", axis, x.ndim), keepdims)
    return out if initial is None else out + initial


@tensor_method("mean")
@cached_call
def mean(
    input: Tensor,
    axis: int | Sequence[int] | None = None,
    keepdims: object = False,
    dtype: DTypeLike | None = None,
    **dim: object,
) -> Tensor:
    """Return the mean of the elements over axes (`mindspore.ops.mean`).

    Args:
        input: Tensor of any shape; numbers, not bool.
        axis: int or tuple of ints; None and () mean all. Also spelled `dim`.
        keepdims: whether to keep the reduced axes, with size 1. Also spelled `keepdim`,
            `keep_dims`.
        dtype: dtype of the result, to which `input` is cast first. Without it the mean of integers
            is an integer, rounded towards zero.

    Returns:
        Tensor with the axes removed; NaN where there is nothing to average.

    Raises:
        ValueError: an axis out of range, or named twice.
        TypeError: `input` is bool.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.mean(ms.Tensor([[1.0, 2.0], [3.0, 5.0]]), 1))
        [1.5 4. ]
    """
    if dim or keepdims.__class__ is not bool:
        axis, keepdims = spelled("mean", axis, keepdims, dim)
    x = wanted_tensor("mean", input)
    if dtype is not None:
        x = _cast(x, dtype)
    return reduce_mean(x, axes_of("mean", axis, x.ndim), keepdims)


@tensor_method("prod")
@cached_call
def prod(
    input: Tensor,
    axis: int | Sequence[int] | None = None,
    keepdims: object = False,
    dtype: DTypeLike | None = None,
    **dim: object,
) -> Tensor:
    """Return the product of the elements over axes (`mindspore.ops.prod`).

    Args:
        input: Tensor of any shape and dtype.
        axis: int or tuple of ints; None and () mean all. Also spelled `dim`.
        keepdims: whether to keep the reduced axes, with size 1. Also spelled `keepdim`,
            `keep_dims`.
        dtype: dtype of the result, to which `input` is cast first; default that of
            `input`, but int64 for bool and integers.

    Returns:
        Tensor with the axes removed; 1 where there is nothing to multiply.

    Raises:
        ValueError: an axis out of range, or named twice.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.prod(ms.Tensor([[1.0, 2.0], [3.0, 4.0]]), 1))
        [ 2. 12.]
    """
    if keepdims.__class__ is not bool:
        keepdims, dtype, _ = _dtype_second(keepdims, dtype, None)
    if dim or keepdims.__class__ is not bool:
        axis, keepdims = spelled("prod", axis, keepdims, dim)
    x = wanted_tensor("prod", input)
    if dtype is not None:
        x = _cast(x, dtype)
    elif x.dtype.kind in "biu" and x.dtype is not int64:
        x = cast_to(x, int64)
    return reduce_prod(x, axes_of("prod", axis, x.ndim), keepdims)


@tensor_method("all")
@cached_call
def all(
    input: Tensor, axis: int | Sequence[int] | None = None, keep_dims: object = False, **dim: object
) -> Tensor:
    """Return the logical and of the elements over axes (`mindspore.ops.all`).

    Args:
        input: Tensor of any shape and dtype; elements that are not 0 are true.
        axis: int or tuple of ints; None and () mean all. Also spelled `dim`.
        keep_dims: whether to keep the reduced axes, with size 1. Also spelled `keepdims`,
            `keepdim`.

    Returns:
        Tensor of bool; True where there are no elements.

    Raises:
        ValueError: an axis out of range, or named twice.

    Examples:
        >>> import duograph as ms
        >>> print(ms.Tensor([[True, False], [True, True]]).all(axis=1))
        [False  True]
    """
    axis, keep_dims = spelled("all", axis, keep_dims, dim)
    x = wanted_tensor("all", input)
    return reduce_all(x, axes_of("all", axis, x.ndim), keep_dims)


@tensor_method("any")
@cached_call
def any(
    input: Tensor, axis: int | Sequence[int] | None = None, keep_dims: object = False, **dim: object
) -> Tensor:
    """Return the logical or of the elements over axes (`mindspore.ops.any`).

    Args:
        input: Tensor of any shape and dtype; elements that are not 0 are true.
        axis: int or tuple of ints; None and () mean all. Also spelled `dim`.
        keep_dims: whether to keep the reduced axes, with size 1. Also spelled `keepdims`,
            `keepdim`.

    Returns:
        Tensor of bool; False where there are no elements.

    Raises:
        ValueError: an axis out of range, or named twice.

    Examples:
        >>> import duograph as ms
        >>> print(ms.Tensor([[True, False], [False, False]]).any(axis=1))
        [ True False]
    """
    axis, keep_dims = spelled("any", axis, keep_dims, dim)
    x = wanted_tensor("any", input)
    return reduce_any(x, axes_of("any", axis, x.ndim), keep_dims)


@tensor_method("count_nonzero")
@cached_call
def count_nonzero(
    x: Tensor,
    axis: int | Sequence[int] | None = None,
    keep_dims: object = False,
    dtype: DTypeLike = int32,
    **dim: object,
) -> Tensor:
    """Count the nonzero elements over axes (`mindspore.ops.count_nonzero`).

    Args:
        x: Tensor of any shape and dtype.
        axis: int or tuple of ints; None and () mean all. Also spelled `dim`.
        keep_dims: whether to keep the reduced axes, with size 1.
        dtype: dtype of the result.

    Returns:
        Tensor of `dtype`.

    Raises:
        ValueError: an axis out of range.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.count_nonzero(ms.Tensor([[0, 1], [1, 1]]), 1))
        [1 2]
    """
    axis, keep_dims = spelled("count_nonzero", axis, keep_dims, dim)
    return reduce_sum(
        _cast(_cast(x, bool_), dtype), axes_of("count_nonzero", axis, x.ndim), keep_dims
    )


@tensor_method("nansum")
@cached_call
def nansum(
    input: Tensor,
    axis: int | Sequence[int] | None = None,
    keepdims: object = False,
    *,
    dtype: DTypeLike | None = None,
    **dim: object,
) -> Tensor:
    """Sum that counts NaN as 0 (`mindspore.ops.nansum`).

    Args:
        input, axis, keepdims, dtype: the arguments of `sum`.

    Returns:
        Tensor with the axes removed.

    Raises:
        ValueError: an axis out of range.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.nansum(ms.Tensor([1.0, float("nan"), 2.0])))
        3.0
    """
    x = input
    if x.dtype.kind in "fc":
        x = select_by(equal(x, x), x, fill((), 0, x.dtype))
    return sum(x, axis, keepdims, dtype, **dim)
