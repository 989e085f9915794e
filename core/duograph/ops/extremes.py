"""Functions for the extremes of a tensor and their indices: max, min, argmax, argmin.

Users call them. They check the arguments and call ops of `ops.reduction`, for which the backends
have kernels.
"""

from __future__ import annotations

from ..call_cache import cached_call
from ..dtype import int32, int64
from ..errors import ArgumentValueError
from ..ir.basic_ops import cast_to
from ..tensor import Tensor
from .arguments import Axis, Number
from .axes import axes_of, axis_of, spelled
from .creation import fill
from .elementwise import maximum, minimum
from .logic import select_by
from .methods import tensor_method
from .reduction import (
    argmax_along,
    argmin_along,
    max_with_index,
    min_with_index,
    reduce_max,
    reduce_min,
)
from .reduction_functions import wanted_tensor
from .shape_primitives import reduced_shape, reshape_to

__all__ = ["max", "min", "amax", "amin", "argmax", "argmin"]


def _extreme_input(
    name: str, x: Tensor, initial: Tensor | Number | None, where: Tensor | bool | None
) -> Tensor:
    """Return `x` with `initial` wherever the mask `where` is False; `x` itself without a mask.

    A mask of None or True means no mask. Raises ArgumentValueError if there is a mask but `initial`
    is None. `name` is the user's function in errors.
    """
    if where is None or where is True:
        return x
    if initial is None:
        raise ArgumentValueError(f"{name}: got where without initial; wanted both")
    return select_by(where, x, initial)


def _initial(out: Tensor, initial: Tensor | Number | None, sign: int) -> Tensor:
    if initial is None:
        return out
    value = initial if isinstance(initial, Tensor) else fill((), initial, out.dtype)
    return maximum(out, value) if sign < 0 else minimum(out, value)


def _extreme(name, input, axis, keepdims, initial, where, sign):
    x = wanted_tensor(name, input)
    x = _extreme_input(name, x, initial, where)
    axes = axes_of(name, axis, x.ndim)
    if initial is not None and 0 in [x.shape[i] for i in axes]:
        value = initial.item() if isinstance(initial, Tensor) else initial
        return fill(reduced_shape(x.shape, axes, keepdims), value, x.dtype)
    out = (reduce_max if sign < 0 else reduce_min)(x, axes, keepdims)
    return _initial(out, initial, sign)


def _max_or_min(name, input, axis, keepdims, initial, where, sign, with_index):
    x = wanted_tensor(name, input)
    if axis is None:
        value = _extreme(name, x, None, False, initial, where, sign)
        return (value, fill((), 0, int64)) if with_index else value
    x = _extreme_input(name, x, initial, where)
    found = max_with_index if sign < 0 else min_with_index
    if x.ndim == 0:
        axis_of(name, axis, 0)
        return _initial(x, initial, sign), fill((), 0, int64)
    return found(_initial(x, initial, sign), axis_of(name, axis, x.ndim), keepdims)


@cached_call
def max(
    input: Tensor,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    initial: Tensor | Number | None = None,
    where: Tensor | bool | None = None,
    **dim: object,
) -> tuple[Tensor, Tensor]:
    """Return the largest element along one axis and its index (`mindspore.ops.max`).

    Args:
        input: Tensor of any shape; any dtype but complex.
        axis: int; None means over all elements, and the index is then 0. Also spelled `dim`.
        keepdims: whether to keep the axis, with size 1. Also spelled `keepdim`.
        initial: lower bound of the result.
        where: bool Tensor; elements where it is False count as `initial`.

    Returns:
        (values, int64 indices) with the axis removed. Elements below `initial` count as `initial`,
        also for the index. NaN counts as the largest number; among equal elements, the first is
        taken.

    Raises:
        ValueError: there are no elements to reduce, or the axis is out of range.

    Examples:
        >>> import duograph as ms
        >>> values, indices = ms.ops.max(ms.Tensor([[1.0, 5.0], [7.0, 2.0]]), 1)
        >>> print(values, indices)
        [5. 7.] [1 0]
    """
    axis, keepdims = spelled("max", axis, keepdims, dim)
    return _max_or_min("max", input, axis, keepdims, initial, where, -1, True)


@cached_call
def min(
    input: Tensor,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    initial: Tensor | Number | None = None,
    where: Tensor | bool | None = None,
    **dim: object,
) -> tuple[Tensor, Tensor]:
    """Return the smallest element along one axis and its index (`mindspore.ops.min`).

    Args:
        input: Tensor of any shape; any dtype but complex.
        axis: int; None means over all elements, and the index is then 0. Also spelled `dim`.
        keepdims: whether to keep the axis, with size 1. Also spelled `keepdim`.
        initial: upper bound of the result.
        where: bool Tensor; elements where it is False count as `initial`.

    Returns:
        (values, int64 indices) with the axis removed. Elements above `initial` count as `initial`,
        also for the index. NaN counts as the smallest number; among equal elements, the first is
        taken.

    Raises:
        ValueError: there are no elements to reduce, or the axis is out of range.

    Examples:
        >>> import duograph as ms
        >>> values, indices = ms.ops.min(ms.Tensor([[1.0, 5.0], [7.0, 2.0]]), 1)
        >>> print(values, indices)
        [1. 2.] [0 1]
    """
    axis, keepdims = spelled("min", axis, keepdims, dim)
    return _max_or_min("min", input, axis, keepdims, initial, where, 1, True)


def _method(name, x, args, initial, where, return_indices, other, sign):
    """Implement Tensor.max (`sign` -1) and Tensor.min (`sign` 1) in all their call forms.

    A call with (dim, keepdim) returns (values, indices). A call with (axis, keepdims) returns the
    values alone, unless `return_indices` is set. `args` are the positional arguments, `other` the
    keyword arguments for axes. An only positional argument is taken as `dim`, unless it is a tuple
    or list, or the call names `axis` or `keepdims`.
    """
    if len(args) > 2:
        raise ArgumentValueError(f"{name}: got {len(args)} positional arguments; wanted at most 2")
    older = "axis" in other or "keepdims" in other or (args and isinstance(args[0], (tuple, list)))
    newer = not older and (bool(args) or "dim" in other or "keepdim" in other)
    given = (*args, *(None, False)[len(args) :])
    axis, keepdims = spelled(name, given[0], given[1], other)
    if axis is None:
        out = _extreme(name, x, None, keepdims, initial, where, sign)
        if not return_indices:
            return out
        along = argmax_along if sign < 0 else argmin_along
        return out, _arg(name, x, None, False, along)
    if newer or return_indices:
        return _max_or_min(name, x, axis, keepdims, initial, where, sign, True)
    return _extreme(name, x, axis, keepdims, initial, where, sign)


@tensor_method("max")
@cached_call
def tensor_max(
    input: Tensor,
    *args: object,
    initial: Tensor | Number | None = None,
    where: Tensor | bool | None = None,
    return_indices: bool = False,
    **other: object,
) -> Tensor | tuple[Tensor, Tensor]:
    """Return the largest element (`mindspore.Tensor.max`).

    Three forms: `x.max()` over all elements; `x.max(dim, keepdim=False)` returns (values, indices);
    `x.max(axis=..., keepdims=False, initial=None, where=True, return_indices=False)` returns the
    values or, with `return_indices`, the pair.

    Examples:
        >>> import duograph as ms
        >>> x = ms.Tensor([[1.0, 5.0], [7.0, 2.0]])
        >>> print(x.max(), x.max(axis=1), x.max(1)[1])
        7.0 [5. 7.] [1 0]
    """
    return _method("max", input, args, initial, where, return_indices, other, -1)


@tensor_method("min")
@cached_call
def tensor_min(
    input: Tensor,
    *args: object,
    initial: Tensor | Number | None = None,
    where: Tensor | bool | None = None,
    return_indices: bool = False,
    **other: object,
) -> Tensor | tuple[Tensor, Tensor]:
    """Return the smallest element (`mindspore.Tensor.min`), in the three forms of `Tensor.max`.

    Examples:
        >>> import duograph as ms
        >>> x = ms.Tensor([[1.0, 5.0], [7.0, 2.0]])
        >>> print(x.min(), x.min(axis=1), x.min(1)[1])
        1.0 [1. 2.] [0 1]
    """
    return _method("min", input, args, initial, where, return_indices, other, 1)


@tensor_method("amax")
@cached_call
def amax(
    input: Tensor,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    initial: Tensor | Number | None = None,
    where: Tensor | bool | None = None,
    **dim: object,
) -> Tensor:
    """Return the largest element over axes (`mindspore.ops.amax`).

    Args:
        input: Tensor of any shape; any dtype but complex.
        axis: int or tuple of ints; None and () mean all. Also spelled `dim`.
        keepdims: whether to keep the reduced axes, with size 1. Also spelled `keepdim`.
        initial: lower bound of the result.
        where: bool Tensor; elements where it is False count as `initial`.

    Returns:
        Tensor with the axes removed; NaN if an element is NaN. The gradient is divided among equal
        largest elements.

    Raises:
        ValueError: there are no elements and no `initial`, or an axis is out of range.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.amax(ms.Tensor([[1.0, 5.0], [7.0, 2.0]]), 0))
        [7. 5.]
    """
    axis, keepdims = spelled("amax", axis, keepdims, dim)
    return _extreme("amax", input, axis, keepdims, initial, where, -1)


@tensor_method("amin")
@cached_call
def amin(
    input: Tensor,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    initial: Tensor | Number | None = None,
    where: Tensor | bool | None = None,
    **dim: object,
) -> Tensor:
    """Return the smallest element over axes (`mindspore.ops.amin`).

    Args:
        input: Tensor of any shape; any dtype but complex.
        axis: int or tuple of ints; None and () mean all. Also spelled `dim`.
        keepdims: whether to keep the reduced axes, with size 1. Also spelled `keepdim`.
        initial: upper bound of the result.
        where: bool Tensor; elements where it is False count as `initial`.

    Returns:
        Tensor with the axes removed; NaN if an element is NaN. The gradient is divided among equal
        smallest elements.

    Raises:
        ValueError: there are no elements and no `initial`, or an axis is out of range.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.amin(ms.Tensor([[1.0, 5.0], [7.0, 2.0]]), 0))
        [1. 2.]
    """
    axis, keepdims = spelled("amin", axis, keepdims, dim)
    return _extreme("amin", input, axis, keepdims, initial, where, 1)


def _arg(name, input, axis, keepdims, along):
    x = wanted_tensor(name, input)
    if axis is None or x.ndim == 0:
        if axis is not None:
            axis_of(name, axis, 0)
        out = along(reshape_to(x, (x.size,)), 0)
        return reshape_to(out, (1,) * x.ndim) if keepdims and axis is not None else out
    axis = axis_of(name, axis, x.ndim)
    out = along(x, axis)
    return reshape_to(out, reduced_shape(x.shape, (axis,), True)) if keepdims else out


@tensor_method("argmax")
@cached_call
def argmax(input: Tensor, axis: Axis = None, keepdims: bool = False, **dim: object) -> Tensor:
    """Return the index of the largest element along an axis (`mindspore.ops.argmax`).

    Args:
        input: Tensor of any shape; any dtype but complex.
        axis: int; None means in the flattened tensor. Also spelled `dim`.
        keepdims: whether to keep the axis, with size 1. Also spelled `keepdim`.

    Returns:
        Tensor of int64. NaN counts as the largest number; among equal elements, the first is taken.

    Raises:
        ValueError: there are no elements, or the axis is out of range.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.argmax(ms.Tensor([[1.0, 5.0], [7.0, 2.0]]), 1))
        [1 0]
    """
    axis, keepdims = spelled("argmax", axis, keepdims, dim)
    return _arg("argmax", input, axis, keepdims, argmax_along)


@tensor_method("argmin")
@cached_call
def argmin(input: Tensor, axis: Axis = None, keepdims: bool = False, **dim: object) -> Tensor:
    """Return the index of the smallest element along an axis (`mindspore.ops.argmin`).

    Args:
        input: Tensor of any shape; any dtype but complex.
        axis: int; None means in the flattened tensor. Also spelled `dim`.
        keepdims: whether to keep the axis, with size 1. Also spelled `keepdim`.

    Returns:
        Tensor of int32, where `argmax` has int64. NaN counts as the smallest number; among
        equal elements, the first is taken.

    Raises:
        ValueError: there are no elements, or the axis is out of range.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.argmin(ms.Tensor([[1.0, 5.0], [7.0, 2.0]]), 1))
        [0 1]
    """
    axis, keepdims = spelled("argmin", axis, keepdims, dim)
    return cast_to(_arg("argmin", input, axis, keepdims, argmin_along), int32)
