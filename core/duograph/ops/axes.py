"""Conversion of users' axis arguments to the form that ops take.

The public functions of `ops` call it. Both of MindSpore's sets of argument names are accepted: axis
and keepdims of NumPy-like functions, dim and keepdim of newer ones. The parameter `name` is the
function that the user called, for error messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, ArgumentValueError
from ..tensor import Tensor

__all__ = ["axes_of", "axis_of", "spelled", "tuple_of"]


def axis_of(name: str, axis: object, ndim: int) -> int:
    """Return `axis` as a non-negative int; a 0-d tensor is treated as 1-d.

    `ndim` is the tensor's number of axes, `name` the user's function in errors. It may also be
    a tensor of one element.

    Raises:
        TypeError: not an int.
        ValueError: outside [-ndim, ndim).
    """
    if axis.__class__ is not int:
        if isinstance(axis, Tensor) and axis.size == 1:
            axis = axis.item()
        if isinstance(axis, (bool, np.bool_)) or not isinstance(axis, (int, np.integer)):
            if isinstance(axis, Tensor):
                raise ArgumentError(
                    f"{name}: got a Tensor of shape {axis.shape} for the axis; wanted an int "
                    f"(several Tensors go into one tuple: {name}((x, y)))"
                )
            raise ArgumentError(f"{name}: got axis {axis!r}; wanted an int")
        axis = int(axis)
    n = ndim or 1
    if not -n <= axis < n:
        raise ArgumentValueError(f"{name}: got axis {axis}; wanted one in [{-n}, {n})")
    return axis + n if axis < 0 else axis


def axes_of(name: str, axis: object, ndim: int) -> tuple[int, ...]:
    """Return `axis` as a sorted tuple of non-negative ints; None and () mean all axes.

    `ndim` is the tensor's number of axes, `name` the user's function in errors.

    Raises:
        TypeError: `axis` is neither an int nor a tuple, list or tensor of ints.
        ValueError: an axis is out of range, or occurs twice.
    """
    if axis is None:
        return tuple(range(ndim))
    if axis.__class__ is int:
        found = axis_of(name, axis, ndim)
        return (found,) if ndim else ()
    if isinstance(axis, Tensor):
        axis = axis.tolist()
    if isinstance(axis, (tuple, list)):
        if not axis:
            return tuple(range(ndim))
        all_ = [axis_of(name, a, ndim) for a in axis]
        if len(set(all_)) != len(all_):
            raise ArgumentValueError(f"{name}: got axis {tuple(axis)}, which names an axis twice")
        return tuple(sorted(all_)) if ndim else ()
    found = axis_of(name, axis, ndim)
    return (found,) if ndim else ()


_AXIS = ("axis", "dim")
_KEEP = ("keepdims", "keep_dims", "keepdim")


def spelled(
    name: str, axis: object, keepdims: object, other: Mapping[str, object]
) -> tuple[Any, bool]:
    """Return (axis, keepdims) from a call that may use the names `dim` and `keepdim` instead.

    `other` has the call's keyword arguments besides `axis` and `keepdims`. `name` is the user's
    function in error messages.

    Raises:
        TypeError: an unknown keyword, an axis under both names, or keepdims that is not a bool.
    """
    for key, value in other.items():
        if key in _AXIS:
            if axis is not None:
                raise ArgumentError(f"{name}: got both axis={axis!r} and {key}={value!r}")
            axis = value
        elif key in _KEEP:
            keepdims = value
        else:
            raise ArgumentError(f"{name}: got the unknown argument {key!r}")
    if keepdims.__class__ is not bool:
        if not isinstance(keepdims, (bool, np.bool_)):
            raise ArgumentError(f"{name}: got keepdims={keepdims!r}; wanted True or False")
        keepdims = bool(keepdims)
    return axis, keepdims


def tuple_of(name: str, what: str, value: object, n: int) -> tuple[int, ...]:
    """Convert an int, or a tuple or list of 1 or `n` ints, to `n` ints.

    `name` and `what` name the user's function and argument in errors.

    Raises:
        TypeError: the value has another type.
        ValueError: the tuple or list has another length.
    """
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return (int(value),) * n
    if isinstance(value, (tuple, list)) and all(
        isinstance(v, (int, np.integer)) and not isinstance(v, bool) for v in value
    ):
        if len(value) == 1:
            return (int(value[0]),) * n
        if len(value) == n:
            return tuple(int(v) for v in value)
        raise ArgumentValueError(f"{name}: got {what}={value!r}; wanted an int or {n} of them")
    raise ArgumentError(f"{name}: got {what}={value!r}; wanted an int or a tuple of {n} ints")


def flattened(shape: Sequence[int]) -> int:
    """Return the number of elements of a shape."""
    n = 1
    for d in shape:
        n *= d
    return n
