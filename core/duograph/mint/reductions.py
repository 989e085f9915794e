"""Reductions with the signatures of `duograph.mint`: `dim`, `keepdim` and `correction`.

`mint/__init__.py` exports these functions. Every function normalises its arguments and calls
`duograph.ops`; a reduction with `dim=None` covers all axes.
"""

from __future__ import annotations

import builtins

from .. import ops as _ops
from ..dtype import DTypeLike, int64
from ..errors import ArgumentError
from ..tensor import Tensor
from ._arguments import Dims, axes_of, converted

__all__ = [
    "all", "allclose", "amax", "amin", "any", "argmax", "argmin", "count_nonzero", "logsumexp",
    "max", "mean", "median", "min", "nansum", "prod", "std", "std_mean", "sum", "var", "var_mean",
]  # fmt: skip


def sum(
    input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DTypeLike | None = None
) -> Tensor:
    """Return the sum over axes (`mindspore.mint.sum`).

    Args:
        input: Tensor.
        dim: axis or axes; None for all.
        keepdim: whether to keep the axes with length 1.
        dtype: dtype in which to add; default that of `input`, or int64 for integers and bools.

    Returns:
        Tensor without the reduced axes.

    Raises:
        ValueError: an axis out of range or given twice.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.sum(Tensor([[1, 2], [3, 4]]), dim=0))
        [4 6]
    """
    return _ops.sum(converted(input, dtype), axes_of(dim), keepdim)


def mean(
    input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DTypeLike | None = None
) -> Tensor:
    """Return the arithmetic mean over axes (`mindspore.mint.mean`).

    Args:
        input: Tensor; the mean of integers is an integer, unless `dtype` is given.
        dim: axis or axes; None for all.
        keepdim: whether to keep the axes with length 1.
        dtype: dtype in which to compute; default that of `input`.

    Returns:
        Tensor without the reduced axes.

    Raises:
        ValueError: an axis out of range or given twice.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.mean(Tensor([[1.0, 2.0], [3.0, 4.0]]), 1, True))
        [[1.5]
         [3.5]]
    """
    return _ops.mean(converted(input, dtype), axes_of(dim), keepdim)


def prod(
    input: Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the product over an axis, or over all axes for None (`mindspore.mint.prod`).

    Args:
        input: Tensor.
        dim: axis; None for all.
        keepdim: whether to keep the axis with length 1.
        dtype: dtype in which to multiply; default that of `input`, or int64 for integers and
            bools.

    Raises:
        ValueError: the axis is out of range.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.prod(Tensor([[1, 2], [3, 4]]), dim=1))
        [ 2 12]
    """
    return _ops.prod(converted(input, dtype), dim, keepdim)


def nansum(
    input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DTypeLike | None = None
) -> Tensor:
    """Return the sum over axes, where NaN counts as zero (`mindspore.mint.nansum`).

    Args:
        input: real Tensor.
        dim: axis or axes; None for all.
        keepdim: whether to keep the axes with length 1.
        dtype: dtype of the result; default that of `input`, or int64 for integers and bools.

    Raises:
        ValueError: an axis out of range or given twice.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nansum(Tensor([1.0, float("nan")])))
        1.0
    """
    return _ops.nansum(input, axes_of(dim), keepdim, dtype=dtype)


def all(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Return whether all elements along axes are true (`mindspore.mint.all`).

    Args:
        input: Tensor; a number other than 0 is true.
        dim: axis or axes; None for all.
        keepdim: whether to keep the axes with length 1.

    Returns:
        bool Tensor.

    Raises:
        ValueError: an axis out of range or given twice.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.all(Tensor([[True, False], [True, True]]), 1))
        [False  True]
    """
    return _ops.all(input, axes_of(dim), keepdim)


def any(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Return whether some element along axes is true (`mindspore.mint.any`).

    Args:
        input: Tensor; a number other than 0 is true.
        dim: axis or axes; None for all.
        keepdim: whether to keep the axes with length 1.

    Returns:
        bool Tensor.

    Raises:
        ValueError: an axis out of range or given twice.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.any(Tensor([[True, False], [False, False]]), 1))
        [ True False]
    """
    return _ops.any(input, axes_of(dim), keepdim)


def max(
    input: Tensor,
    dim: Tensor | int | None = None,
    keepdim: bool = False,
    *,
    other: Tensor | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """Return the largest element, the largest ones along an axis, or the larger of two tensors
    (`mindspore.mint.max`).

    Args:
        input: Tensor.
        dim: axis; None for all. A Tensor here is taken as `other`.
        keepdim: whether to keep the axis with length 1.
        other: a second Tensor; the result is then `maximum(input, other)`.

    Returns:
        One Tensor; with `dim`, the pair (values, int64 indices). NaN is the largest.

    Raises:
        TypeError: `other` together with an axis.
        ValueError: the axis is out of range, or there is no element.

    Examples:
        >>> from duograph import Tensor, mint
        >>> values, indices = mint.max(Tensor([[1.0, 5.0], [4.0, 2.0]]), 1)
        >>> print(values, indices)
        [5. 4.] [1 0]
    """
    return _extreme("max", input, dim, keepdim, other)


def min(
    input: Tensor,
    dim: Tensor | int | None = None,
    keepdim: bool = False,
    *,
    other: Tensor | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """Return the smallest element, the smallest ones along an axis, or the smaller of two tensors
    (`mindspore.mint.min`).

    Args:
        input: Tensor.
        dim: axis; None for all. A Tensor here is taken as `other`.
        keepdim: whether to keep the axis with length 1.
        other: a second Tensor; the result is then `minimum(input, other)`.

    Returns:
        One Tensor; with `dim`, the pair (values, int64 indices). NaN is the smallest.

    Raises:
        TypeError: `other` together with an axis.
        ValueError: the axis is out of range, or there is no element.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.min(Tensor([[1.0, 5.0], [4.0, 2.0]])))
        1.0
    """
    return _extreme("min", input, dim, keepdim, other)


def _extreme(
    name: str,
    input: Tensor,
    dim: Tensor | int | None,
    keepdim: bool,
    other: Tensor | None,
) -> Tensor | tuple[Tensor, Tensor]:
    if isinstance(dim, Tensor):
        dim, other = None, dim
    if other is not None:
        if dim is not None or keepdim:
            raise ArgumentError(f"{name}: got 'other' together with an axis; wanted one of them")
        return (_ops.maximum if name == "max" else _ops.minimum)(input, other)
    if dim is None:
        if keepdim:
            raise ArgumentError(f"{name}: got keepdim=True without dim; wanted an axis")
        return (_ops.amax if name == "max" else _ops.amin)(input, None, False)
    values, indices = (_ops.max if name == "max" else _ops.min)(input, dim, keepdim)
    return values, indices


def amax(input: Tensor, dim: Dims = (), keepdim: bool = False) -> Tensor:
    """Return the largest elements along axes; equal ones get equal parts of the gradient
    (`mindspore.mint.amax`).

    Args:
        input: real Tensor.
        dim: axis or axes; () for all.
        keepdim: whether to keep the axes with length 1.

    Raises:
        ValueError: an axis out of range or given twice.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.amax(Tensor([[1.0, 5.0], [4.0, 2.0]]), 0))
        [4. 5.]
    """
    return _ops.amax(input, axes_of(dim), keepdim)


def amin(input: Tensor, dim: Dims = (), keepdim: bool = False) -> Tensor:
    """Return the smallest elements along axes; equal ones get equal parts of the gradient
    (`mindspore.mint.amin`).

    Args:
        input: real Tensor.
        dim: axis or axes; () for all.
        keepdim: whether to keep the axes with length 1.

    Raises:
        ValueError: an axis out of range or given twice.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.amin(Tensor([[1.0, 5.0], [4.0, 2.0]]), 0))
        [1. 2.]
    """
    return _ops.amin(input, axes_of(dim), keepdim)


def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Return the index of the largest element along an axis (`mindspore.mint.argmax`).

    Args:
        input: real Tensor.
        dim: axis; None for the flattened tensor.
        keepdim: whether to keep the axis with length 1.

    Returns:
        int64 Tensor.

    Raises:
        ValueError: the axis is out of range.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.argmax(Tensor([[1.0, 5.0], [4.0, 2.0]]), 1))
        [1 0]
    """
    return _ops.argmax(input, dim, keepdim).astype(int64)


def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Return the index of the smallest element along an axis (`mindspore.mint.argmin`).

    Args:
        input: real Tensor.
        dim: axis; None for the flattened tensor.
        keepdim: whether to keep the axis with length 1.

    Returns:
        int64 Tensor.

    Raises:
        ValueError: the axis is out of range.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.argmin(Tensor([[1.0, 5.0], [4.0, 2.0]]), 1))
        [0 1]
    """
    return _ops.argmin(input, dim, keepdim).astype(int64)


def median(
    input: Tensor, dim: int | None = None, keepdim: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """Return the middle element, or the lower one of two (`mindspore.mint.median`).

    Args:
        input: real Tensor of at least one element.
        dim: axis; None for the flattened tensor.
        keepdim: whether to keep the axis with length 1; only with `dim`.

    Returns:
        A 0-d Tensor; with `dim`, the pair (values, int64 indices).

    Raises:
        TypeError: keepdim without an axis.
        ValueError: the axis is out of range, or there is no element.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.median(Tensor([3.0, 1.0, 2.0])))
        2.0
    """
    if dim is None:
        if keepdim:
            raise ArgumentError("median: got keepdim=True without dim; wanted an axis")
        return _ops.median(_ops.reshape(input, (-1,)), 0)[0]
    values, indices = _ops.median(input, dim, keepdim)
    return values, indices


def var(input: Tensor, dim: Dims = None, *, correction: int = 1, keepdim: bool = False) -> Tensor:
    """Return the variance over axes (`mindspore.mint.var`).

    Args:
        input: Tensor.
        dim: axis or axes; None for all.
        correction: number that is subtracted from the number of elements to form the divisor; 1 is
            Bessel's correction.
        keepdim: whether to keep the axes with length 1.

    Raises:
        ValueError: an axis out of range or given twice.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.var(Tensor([1.0, 2.0, 3.0])), mint.var(Tensor([1.0, 3.0]), correction=0))
        1.0 1.0
    """
    return _ops.var(input, axes_of(dim), correction, keepdim)


def std(input: Tensor, dim: Dims = None, *, correction: int = 1, keepdim: bool = False) -> Tensor:
    """Return the standard deviation over axes (`mindspore.mint.std`).

    Args:
        input: Tensor.
        dim: axis or axes; None for all.
        correction: number that is subtracted from the number of elements to form the divisor; 1 is
            Bessel's correction.
        keepdim: whether to keep the axes with length 1.

    Raises:
        ValueError: an axis out of range or given twice.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.std(Tensor([1.0, 2.0, 3.0])))
        1.0
    """
    return _ops.std(input, axes_of(dim), correction, keepdim)


def var_mean(
    input: Tensor, dim: Dims = None, *, correction: int = 1, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the variance and the mean over axes (`mindspore.mint.var_mean`).

    The arguments are those of `var`.

    Examples:
        >>> from duograph import Tensor, mint
        >>> variance, mean = mint.var_mean(Tensor([1.0, 2.0, 3.0]))
        >>> print(variance, mean)
        1.0 2.0
    """
    variance, mean_ = _ops.var_mean(input, axes_of(dim), correction, keepdim)
    return variance, mean_


def std_mean(
    input: Tensor, dim: Dims = None, *, correction: int = 1, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the standard deviation and the mean over axes (`mindspore.mint.std_mean`).

    The arguments are those of `std`.

    Examples:
        >>> from duograph import Tensor, mint
        >>> deviation, mean = mint.std_mean(Tensor([1.0, 2.0, 3.0]))
        >>> print(deviation, mean)
        1.0 2.0
    """
    deviation, mean_ = _ops.std_mean(input, axes_of(dim), correction, keepdim)
    return deviation, mean_


def logsumexp(input: Tensor, dim: int | tuple[int, ...], keepdim: bool = False) -> Tensor:
    """Return the logarithm of the sum of exponentials over axes (`mindspore.mint.logsumexp`).

    Args:
        input: Tensor; integers and bools are converted to float32.
        dim: axis or axes.
        keepdim: whether to keep the axes with length 1.

    Raises:
        ValueError: an axis out of range or given twice.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.logsumexp(Tensor([[0.0, 0.0]]), 1))
        [0.6931472]
    """
    return _ops.logsumexp(input, dim, keepdim)


def count_nonzero(input: Tensor, dim: Dims = None) -> Tensor:
    """Return the number of elements other than zero along axes (`mindspore.mint.count_nonzero`).

    Args:
        input: Tensor.
        dim: axis or axes; None for all.

    Returns:
        int64 Tensor.

    Raises:
        ValueError: an axis out of range or given twice.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.count_nonzero(Tensor([[0, 1], [2, 3]]), 1))
        [1 2]
    """
    return _ops.sum(_ops.ne(input, 0), axes_of(dim), dtype=int64)


def allclose(
    input: Tensor,
    other: Tensor,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> bool:
    """Return whether all elements of two tensors are close (`mindspore.mint.allclose`).

    The result is a Python bool, so compiled code that calls it must know the values.

    Args:
        input, other: Tensors whose shapes broadcast.
        rtol, atol: tolerances: ``abs(input - other) <= atol + rtol * abs(other)``.
        equal_nan: whether NaN is close to NaN.

    Examples:
        >>> from duograph import Tensor, mint
        >>> mint.allclose(Tensor([1.0]), Tensor([1.0 + 1e-7]))
        True
    """
    return builtins.bool(_ops.all(_ops.isclose(input, other, rtol, atol, equal_nan)))
