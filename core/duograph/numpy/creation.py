"""Functions of `duograph.numpy` that make tensors: of one value, of ranges, and from array-likes.

Users call them as `duograph.numpy.NAME`. Gradients flow to the ends of `linspace`, `logspace` and
`geomspace`; a function must not read the value of a Tensor.
"""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as _np

from .. import ops as _ops
from ..dtype import DTypeLike, as_dtype, float32
from ..errors import ArgumentValueError
from ..host_arrays import shape_tuple
from ..tensor import Tensor
from .operands import (
    Ints,
    TensorLike,
    as_floating,
    dtype_or_none,
    is_host_value,
    promoted,
    tensor_of,
    with_dtype,
)

# fmt: off
__all__ = [
    "arange", "array", "asarray", "asfarray", "copy", "empty", "empty_like", "full", "full_like",
    "geomspace", "linspace", "logspace", "ones", "ones_like", "zeros", "zeros_like",
]
# fmt: on


def array(
    obj: TensorLike, dtype: DTypeLike | None = None, copy: bool = True, ndmin: int = 0
) -> Tensor:
    """Return a Tensor made from numbers, sequences, NumPy arrays or Tensors.

    Args:
        obj: Tensor, number, (nested) sequence or NumPy array.
        dtype: element type; None makes int32 of Python ints and float32 of Python floats, and
            keeps the dtype of Tensors and NumPy arrays.
        copy: whether a Tensor of the wanted dtype is copied rather than returned.
        ndmin: the least number of axes of the result; axes of size 1 are put in front.

    Returns:
        Tensor.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.array([1, 2], ndmin=2))
        [[1 2]]
    """
    made = tensor_of(obj, dtype)
    if copy and made is obj:
        made = made.copy()
    if made.ndim < ndmin:
        made = made.reshape((1,) * (ndmin - made.ndim) + made.shape)
    return made


def asarray(a: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Return an array-like as a Tensor; a Tensor of the wanted dtype is returned unchanged.

    Args:
        a: Tensor, number, (nested) sequence or NumPy array.
        dtype: element type; None chooses it as `array` does.

    Returns:
        Tensor.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.asarray([1, 2]).dtype)
        Int32
    """
    return tensor_of(a, dtype)


def asfarray(a: TensorLike, dtype: DTypeLike = float32) -> Tensor:
    """Return an array-like as a Tensor of floats.

    Args:
        a: Tensor, number, (nested) sequence or NumPy array.
        dtype: element type; a dtype that is not floating is replaced by float32.

    Returns:
        Tensor.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.asfarray([1, 2]))
        [1. 2.]
    """
    wanted = as_dtype(dtype)
    return tensor_of(a, wanted if wanted.is_floating else float32)


def copy(a: TensorLike) -> Tensor:
    """Return a copy of an array-like as a Tensor.

    Args:
        a: Tensor, number, (nested) sequence or NumPy array.

    Returns:
        Tensor.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.copy([1, 2]))
        [1 2]
    """
    return array(a)


# ---- one value ----------------------------------------------------------------------------------


def zeros(shape: Ints, dtype: DTypeLike = float32) -> Tensor:
    """Return a tensor of zeros.

    Args:
        shape: int or sequence of ints.
        dtype: element type.

    Returns:
        Tensor of that shape.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.zeros((1, 2)))
        [[0. 0.]]
    """
    return _ops.zeros(shape_tuple(shape), dtype=as_dtype(dtype))


def ones(shape: Ints, dtype: DTypeLike = float32) -> Tensor:
    """Return a tensor of ones.

    Args:
        shape: int or sequence of ints.
        dtype: element type.

    Returns:
        Tensor of that shape.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.ones((1, 2)))
        [[1. 1.]]
    """
    return _ops.ones(shape_tuple(shape), dtype=as_dtype(dtype))


def empty(shape: Ints, dtype: DTypeLike = float32) -> Tensor:
    """Return a tensor of a shape; its elements are zeros.

    Args:
        shape: int or sequence of ints.
        dtype: element type.

    Returns:
        Tensor of that shape.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.empty((1, 2)))
        [[0. 0.]]
    """
    return zeros(shape, dtype)


def full(shape: Ints, fill_value: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Return a tensor filled with a value.

    Args:
        shape: int or sequence of ints.
        fill_value: number, or an array-like that broadcasts to the shape.
        dtype: element type; None takes that of the value.

    Returns:
        Tensor of that shape.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.full((2, 2), [1, 2]))
        [[1 2]
         [1 2]]
    """
    return _ops.broadcast_to(tensor_of(fill_value, dtype), shape_tuple(shape))


def _like(
    a: TensorLike, dtype: DTypeLike | None, shape: Ints | None
) -> tuple[tuple[int, ...], DTypeLike]:
    """Return (shape, dtype): the arguments `shape` and `dtype`, or those of `a` for None."""
    x = tensor_of(a)
    return x.shape if shape is None else shape_tuple(shape), x.dtype if dtype is None else dtype


def zeros_like(a: TensorLike, dtype: DTypeLike | None = None, shape: Ints | None = None) -> Tensor:
    """Return a tensor of zeros in the shape and dtype of an array-like.

    Args:
        a: Tensor, number, (nested) sequence or NumPy array.
        dtype: element type; None takes that of `a`.
        shape: shape of the result; None takes that of `a`.

    Returns:
        Tensor.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.zeros_like([1.5, 2.5]))
        [0. 0.]
    """
    return zeros(*_like(a, dtype, shape))


def ones_like(a: TensorLike, dtype: DTypeLike | None = None, shape: Ints | None = None) -> Tensor:
    """Return a tensor of ones in the shape and dtype of an array-like.

    Args:
        a: Tensor, number, (nested) sequence or NumPy array.
        dtype: element type; None takes that of `a`.
        shape: shape of the result; None takes that of `a`.

    Returns:
        Tensor.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.ones_like([1.5, 2.5]))
        [1. 1.]
    """
    return ones(*_like(a, dtype, shape))


def empty_like(
    prototype: TensorLike, dtype: DTypeLike | None = None, shape: Ints | None = None
) -> Tensor:
    """Return a tensor in the shape and dtype of an array-like; its elements are zeros.

    Args:
        prototype: Tensor, number, (nested) sequence or NumPy array.
        dtype: element type; None takes that of `prototype`.
        shape: shape of the result; None takes that of `prototype`.

    Returns:
        Tensor.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.empty_like([1.5, 2.5]))
        [0. 0.]
    """
    return zeros(*_like(prototype, dtype, shape))


def full_like(
    a: TensorLike, fill_value: TensorLike, dtype: DTypeLike | None = None, shape: Ints | None = None
) -> Tensor:
    """Return a tensor in the shape and dtype of an array-like, filled with a value.

    Args:
        a: Tensor, number, (nested) sequence or NumPy array.
        fill_value: number, or an array-like that broadcasts to the shape.
        dtype: element type; None takes that of `a`.
        shape: shape of the result; None takes that of `a`.

    Returns:
        Tensor.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.full_like([1.5, 2.5], 7))
        [7. 7.]
    """
    dims, kind = _like(a, dtype, shape)
    return full(dims, fill_value, kind)


# ---- ranges -------------------------------------------------------------------------------------


def arange(
    start: float,
    stop: float | None = None,
    step: float | None = None,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Return evenly spaced numbers from `start` up to, but not including, `stop`.

    Args:
        start: first number; the end, if `stop` is None.
        stop: the end, which is not included.
        step: distance of the numbers; None is 1.
        dtype: element type; None is int32 if all arguments are ints, else float32.

    Returns:
        1-D Tensor.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.arange(2, 8, 3))
        [2 5]
    """
    begin, end = (0, start) if stop is None else (start, stop)
    values = [begin, end, 1 if step is None else step]
    wanted = dtype_or_none(dtype)
    if wanted is None:
        wanted = promoted([tensor_of(v) for v in values])[0].dtype
    first, last, by = values
    if (last - first) * by < 0:
        last = first
    return _ops.arange(first, last, by, dtype=wanted)


def _spaced(
    start: TensorLike, stop: TensorLike, num: int, endpoint: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return (start, stop, fractions, step) for `num` evenly spaced samples, as floating tensors.

    Sample k is start + fractions[k] * (stop - start). `fractions` has a first axis of size `num`,
    and axes of size 1 so that it broadcasts with start and stop. `step` is the distance between
    samples; it is NaN if there are no samples, or only one and `endpoint` is True.
    """
    if num < 0:
        raise ArgumentValueError(f"got num={num}; wanted a number of samples of at least 0")
    first, last = promoted([as_floating(tensor_of(x)) for x in (start, stop)])
    count = builtins.max(num - 1 if endpoint else num, 0)
    steps = _np.arange(num) / builtins.max(count, 1)
    rank = builtins.max(first.ndim, last.ndim)
    fractions = Tensor(steps.reshape((num,) + (1,) * rank), first.dtype)
    step = (last - first) / count if count else Tensor(math.nan, first.dtype)
    return first, last, fractions, step


def _on_axis(x: Tensor, axis: int, dtype: DTypeLike | None) -> Tensor:
    return with_dtype(_ops.moveaxis(x, 0, axis) if x.ndim > 1 else x, dtype)


def linspace(
    start: TensorLike,
    stop: TensorLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Any:
    """Return evenly spaced numbers from `start` to `stop`.

    Args:
        start: first number, or array-like of first numbers.
        stop: last number, or array-like that broadcasts with `start`.
        num: number of numbers.
        endpoint: whether `stop` is the last number; otherwise it would be the next one.
        retstep: whether to return the distance of the numbers as well.
        dtype: element type; None is float32, or that of floating Tensors.
        axis: the axis of the numbers, if the ends are array-likes.

    Returns:
        Tensor; with `retstep` a pair of the Tensor and the distance.

    Raises:
        ValueError: `num` is negative.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.linspace(0, 1, 5))
        [0.   0.25 0.5  0.75 1.  ]
    """
    first, last, t, step = _spaced(start, stop, num, endpoint)
    if is_host_value(start) and is_host_value(stop):  # in float64, then rounded once
        values = _np.linspace(
            _np.asarray(start), _np.asarray(stop), num, endpoint=endpoint, dtype=_np.float64
        )
        made = Tensor(values, first.dtype)
    else:
        made = first + _ops.arange(0, num, 1).reshape(t.shape).astype(first.dtype) * step
        if endpoint and num > 1:  # rounding of the steps does not change the end
            made = _ops.concat([made[:-1], _ops.expand_dims(last + 0 * step, 0)], 0)
        elif num == 1:
            made = _ops.expand_dims(first + 0 * last, 0)
    made = _on_axis(made, axis, dtype)
    return (made, step) if retstep else made


def logspace(
    start: TensorLike,
    stop: TensorLike,
    num: int = 50,
    endpoint: bool = True,
    base: float = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Tensor:
    """Return numbers from ``base ** start`` to ``base ** stop``, spaced evenly on a log scale.

    Args:
        start: exponent of the first number, or array-like of exponents.
        stop: exponent of the last number, or array-like that broadcasts with `start`.
        num: number of numbers.
        endpoint: whether ``base ** stop`` is the last number.
        base: the base of the powers.
        dtype: element type; None is float32, or that of floating Tensors.
        axis: the axis of the numbers, if the ends are array-likes.

    Returns:
        Tensor.

    Raises:
        ValueError: `num` is negative.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.logspace(0, 3, 4, base=2.0))
        [1. 2. 4. 8.]
    """
    made: Tensor = _ops.pow(base, linspace(start, stop, num, endpoint))
    return _on_axis(made, axis, dtype)


def geomspace(
    start: TensorLike,
    stop: TensorLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Tensor:
    """Return numbers from `start` to `stop`, each a constant multiple of the one before.

    Args:
        start: first number, or array-like of first numbers; not 0.
        stop: last number, or array-like that broadcasts with `start`; of the sign of `start`.
        num: number of numbers.
        endpoint: whether `stop` is the last number.
        dtype: element type; None is float32, or that of floating Tensors.
        axis: the axis of the numbers, if the ends are array-likes.

    Returns:
        Tensor.

    Raises:
        ValueError: `num` is negative.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.geomspace(1, 8, 4))
        [1. 2. 4. 8.]
    """
    first, last, t, _ = _spaced(start, stop, num, endpoint)
    if is_host_value(start) and is_host_value(stop):  # in float64, then rounded once
        ends = [_np.asarray(x, _np.float64) for x in (start, stop)]
        made = Tensor(_np.geomspace(ends[0], ends[1], num, endpoint), first.dtype)
    else:
        made = first * _ops.pow(last / first, t)
    return _on_axis(made, axis, dtype)
