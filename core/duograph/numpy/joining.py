"""Functions of `duograph.numpy` that repeat, join and split, and that apply a function to slices.

Users call them as `duograph.numpy.NAME`. Each converts its operands and calls `duograph.ops`; none
may read the value of a Tensor.
"""

from __future__ import annotations

import builtins
import itertools
import operator
from collections.abc import Callable, Sequence

from .. import ops as _ops
from ..errors import ArgumentError, ArgumentValueError
from ..host_arrays import shape_tuple
from ..tensor import Tensor
from .operands import Ints, TensorLike, axis_of, promoted, tensor_of
from .shapes import at_least

__all__ = [
    "append", "apply_along_axis", "apply_over_axes", "array_split", "array_str", "column_stack",
    "concatenate", "dsplit", "dstack", "hsplit", "hstack", "repeat", "split", "stack", "tile",
    "vsplit", "vstack",
]  # fmt: skip


def _tensors(name: str, arrays: object) -> list[Tensor]:
    """Convert a sequence of array-likes to a list of Tensors that all have the same dtype.

    A Tensor is split into its slices along axis 0.
    """
    if isinstance(arrays, Tensor):
        return list(arrays)
    if not isinstance(arrays, (list, tuple)) or not arrays:
        raise ArgumentValueError(
            f"{name}: got {type(arrays).__name__}; wanted a list or tuple of at least one Tensor"
        )
    return promoted([tensor_of(a) for a in arrays])


# ---- repeating -------------------------------------------------------------------------------


def tile(a: TensorLike, reps: Ints) -> Tensor:
    """Repeat an array-like as a whole along each axis.

    Args:
        a: array-like.
        reps: number of repetitions along the last axis, or a sequence of one for each of the last
            axes.

    Returns:
        Tensor.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.tile([1, 2], 2))
        [1 2 1 2]
    """
    x, times = tensor_of(a), shape_tuple(reps)
    return _ops.tile(x, (1,) * (x.ndim - len(times)) + times)


def repeat(a: TensorLike, repeats: Ints, axis: int | None = None) -> Tensor:
    """Repeat each element, or each slice along an axis.

    Args:
        a: array-like.
        repeats: number of repetitions, or a sequence of one for each element.
        axis: the axis; None repeats the flattened elements.

    Returns:
        Tensor.

    Raises:
        ValueError: an axis is out of range.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.repeat([1, 2], 2))
        [1 1 2 2]
    """
    x = tensor_of(a)
    if axis is None:
        x, axis = x.reshape(-1), 0
    count = x.shape[axis_of("repeat", axis, x.ndim)]
    times = shape_tuple(repeats)
    return _ops.repeat_interleave(x, times * count if len(times) == 1 else times, axis)


# ---- joining ---------------------------------------------------------------------------------


def concatenate(arrays: Sequence[TensorLike], axis: int | None = 0) -> Tensor:
    """Join tensors along an axis.

    Args:
        arrays: array-likes that agree in all other axes.
        axis: the axis; None joins the flattened elements.

    Returns:
        Tensor.

    Raises:
        ValueError: the shapes do not agree.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.concatenate(([1, 2], [3])))
        [1 2 3]
    """
    tensors = _tensors("concatenate", arrays)
    if axis is None:
        return _ops.concat([t.reshape(-1) for t in tensors], 0)
    return _ops.concat(tensors, axis)


def append(arr: TensorLike, values: TensorLike, axis: int | None = None) -> Tensor:
    """Join two array-likes.

    Args:
        arr: the first array-like.
        values: the second array-like.
        axis: the axis along which they are joined; None joins the flattened elements.

    Returns:
        Tensor.

    Raises:
        ValueError: the shapes do not agree.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.append([1, 2], [[3], [4]]))
        [1 2 3 4]
    """
    return concatenate((arr, values), axis)


def stack(arrays: Sequence[TensorLike], axis: int = 0) -> Tensor:
    """Join tensors of equal shape along a new axis.

    Args:
        arrays: array-likes.
        axis: position of the new axis.

    Returns:
        Tensor.

    Raises:
        ValueError: the shapes differ.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.stack(([1, 2], [3, 4]), 1))
        [[1 3]
         [2 4]]
    """
    return _ops.stack(_tensors("stack", arrays), axis)


def hstack(tup: Sequence[TensorLike]) -> Tensor:
    """Join tensors along axis 1, or vectors and numbers along axis 0.

    Args:
        tup: array-likes.

    Returns:
        Tensor.

    Raises:
        ValueError: the shapes do not agree.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.hstack(([1, 2], [3])))
        [1 2 3]
    """
    tensors = [at_least(1, t) for t in _tensors("hstack", tup)]
    return _ops.concat(tensors, 0 if tensors[0].ndim == 1 else 1)


def vstack(tup: Sequence[TensorLike]) -> Tensor:
    """Join tensors along axis 0; a vector counts as one row.

    Args:
        tup: array-likes.

    Returns:
        Tensor of at least two axes.

    Raises:
        ValueError: the shapes do not agree.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.vstack(([1, 2], [3, 4])))
        [[1 2]
         [3 4]]
    """
    return _ops.concat([at_least(2, t) for t in _tensors("vstack", tup)], 0)


def dstack(tup: Sequence[TensorLike]) -> Tensor:
    """Join tensors along axis 2; (N,) counts as (1, N, 1), (M, N) as (M, N, 1).

    Args:
        tup: array-likes.

    Returns:
        Tensor of at least three axes.

    Raises:
        ValueError: the shapes do not agree.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.dstack(([1, 2], [3, 4])))
        [[[1 3]
          [2 4]]]
    """
    return _ops.concat([at_least(3, t) for t in _tensors("dstack", tup)], 2)


def column_stack(tup: Sequence[TensorLike]) -> Tensor:
    """Join tensors along axis 1; a vector counts as one column.

    Args:
        tup: array-likes.

    Returns:
        Tensor of at least two axes.

    Raises:
        ValueError: the shapes do not agree.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.column_stack(([1, 2], [3, 4])))
        [[1 3]
         [2 4]]
    """
    tensors = _tensors("column_stack", tup)
    return _ops.concat([t.reshape(-1, 1) if t.ndim < 2 else t for t in tensors], 1)


# ---- splitting -------------------------------------------------------------------------------


def array_split(
    x: TensorLike, indices_or_sections: Ints, axis: int = 0
) -> tuple[Tensor, ...] | list[Tensor]:
    """Split along an axis into parts whose sizes differ by at most one, or at indices.

    Args:
        x: array-like.
        indices_or_sections: number of parts, or the indices where parts begin.
        axis: the axis.

    Returns:
        Tuple of Tensors, or a list if there are indices.

    Raises:
        ValueError: the number of parts is less than 1.

    Examples:
        >>> import duograph.numpy as mnp
        >>> first, second = mnp.array_split([1, 2, 3], 2)
        >>> print(first, second)
        [1 2] [3]
    """
    t = tensor_of(x)
    length = t.shape[axis_of("array_split", axis, t.ndim)]
    if isinstance(indices_or_sections, int):
        parts = operator.index(indices_or_sections)
        if parts < 1:
            raise ArgumentValueError(f"array_split: got {parts} sections; wanted at least 1")
        small, larger = builtins.divmod(length, parts)
        ends = [k * small + builtins.min(k, larger) for k in range(parts + 1)]
    else:
        ends = [0, *[slice(n).indices(length)[1] for n in indices_or_sections], length]
    take = [slice(None)] * t.ndim
    out = []
    for start, stop in itertools.pairwise(ends):
        take[axis] = slice(start, builtins.max(start, stop))
        out.append(t[tuple(take)])
    return tuple(out) if isinstance(indices_or_sections, int) else out


def split(
    x: TensorLike, indices_or_sections: Ints, axis: int = 0
) -> tuple[Tensor, ...] | list[Tensor]:
    """Split along an axis into equal parts, or at indices.

    Args:
        x: array-like.
        indices_or_sections: number of parts, or the indices where parts begin.
        axis: the axis.

    Returns:
        Tuple of Tensors, or a list if there are indices.

    Raises:
        ValueError: the axis is not divisible by the number of parts.

    Examples:
        >>> import duograph.numpy as mnp
        >>> first, second = mnp.split([1, 2, 3, 4], 2)
        >>> print(first, second)
        [1 2] [3 4]
    """
    t = tensor_of(x)
    if isinstance(indices_or_sections, int):
        length = t.shape[axis_of("split", axis, t.ndim)]
        if indices_or_sections < 1 or length % indices_or_sections:
            raise ArgumentValueError(
                f"split: got {indices_or_sections} sections of an axis of {length}; "
                f"wanted a number that divides it"
            )
    return array_split(t, indices_or_sections, axis)


def hsplit(x: TensorLike, indices_or_sections: Ints) -> tuple[Tensor, ...] | list[Tensor]:
    """Split along axis 1, or a vector along axis 0.

    Args:
        x: array-like of at least one axis.
        indices_or_sections: number of equal parts, or the indices where parts begin.

    Returns:
        Tuple of Tensors.

    Raises:
        ValueError: the axis is not divisible by the number of parts.

    Examples:
        >>> import duograph.numpy as mnp
        >>> first, second = mnp.hsplit([[1, 2], [3, 4]], 2)
        >>> print(first.shape, second.shape)
        (2, 1) (2, 1)
    """
    t = tensor_of(x)
    return split(t, indices_or_sections, 0 if t.ndim == 1 else 1)


def vsplit(x: TensorLike, indices_or_sections: Ints) -> tuple[Tensor, ...] | list[Tensor]:
    """Split along axis 0.

    Args:
        x: array-like of at least two axes.
        indices_or_sections: number of equal parts, or the indices where parts begin.

    Returns:
        Tuple of Tensors.

    Raises:
        ValueError: the axis is not divisible by the number of parts.

    Examples:
        >>> import duograph.numpy as mnp
        >>> first, second = mnp.vsplit([[1, 2], [3, 4]], 2)
        >>> print(first, second)
        [[1 2]] [[3 4]]
    """
    return split(x, indices_or_sections, 0)


def dsplit(x: TensorLike, indices_or_sections: Ints) -> tuple[Tensor, ...] | list[Tensor]:
    """Split along axis 2.

    Args:
        x: array-like of at least three axes.
        indices_or_sections: number of equal parts, or the indices where parts begin.

    Returns:
        Tuple of Tensors.

    Raises:
        ValueError: the axis is not divisible by the number of parts.

    Examples:
        >>> import duograph.numpy as mnp
        >>> first, second = mnp.dsplit(mnp.ones((1, 2, 4)), 2)
        >>> print(first.shape, second.shape)
        (1, 2, 2) (1, 2, 2)
    """
    return split(x, indices_or_sections, 2)


# ---- functions of slices ------------------------------------------------------------------------


def apply_along_axis(
    func1d: Callable[..., object], axis: int, arr: TensorLike, *args: object, **kwargs: object
) -> Tensor:
    """Apply a function to every 1-D slice along an axis.

    Args:
        func1d: takes a Tensor of one axis, then `args` and `kwargs`; returns a Tensor or number.
        axis: the axis of the slices.
        arr: array-like.
        args: more arguments of the function.
        kwargs: keyword arguments of the function.

    Returns:
        Tensor, in which the axes of the function's result replace the axis.

    Raises:
        ValueError: the axis is out of range.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.apply_along_axis(lambda row: row.max() - row.min(), 1, [[1, 5], [2, 3]]))
        [4 1]
    """
    x = tensor_of(arr)
    own_axis = axis_of("apply_along_axis", axis, x.ndim)
    rows = _ops.moveaxis(x, own_axis, -1)
    outer = rows.shape[:-1]
    flat = rows.reshape(-1, rows.shape[-1])
    if not flat.shape[0]:
        raise ArgumentValueError(f"apply_along_axis: got shape {x.shape}; wanted at least one row")
    made = stack([tensor_of(func1d(flat[i], *args, **kwargs)) for i in range(flat.shape[0])])
    made = made.reshape((*outer, *made.shape[1:]))
    new = range(len(outer), made.ndim)  # the axes of the result of the function
    return _ops.moveaxis(made, tuple(new), tuple(own_axis + k for k in range(len(new))))


def apply_over_axes(func: Callable[..., object], a: TensorLike, axes: Ints) -> Tensor:
    """Apply a function along several axes, one after the other.

    Args:
        func: called with a Tensor and an axis; returns a Tensor with that axis or without it.
        a: array-like.
        axes: the axis or axes.

    Returns:
        Tensor with the number of axes of `a`.

    Raises:
        ValueError: the function's result has another number of axes.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.apply_over_axes(mnp.sum, [[1, 2], [3, 4]], (0, 1)))
        [[10]]
    """
    x = tensor_of(a)
    for axis in shape_tuple(axes):
        own_axis = axis_of("apply_over_axes", axis, x.ndim)
        made = tensor_of(func(x, own_axis))
        if made.ndim == x.ndim - 1:
            made = _ops.expand_dims(made, own_axis)
        if made.ndim != x.ndim:
            raise ArgumentValueError(
                f"apply_over_axes: got a result of {made.ndim} axes from the function; "
                f"wanted {x.ndim} or {x.ndim - 1}"
            )
        x = made
    return x


def array_str(a: TensorLike) -> str:
    """Return the values as text, as `print` shows them.

    Args:
        a: array-like.

    Returns:
        str.

    Examples:
        >>> import duograph.numpy as mnp
        >>> mnp.array_str([1, 2])
        '[1 2]'
    """
    if a is None:
        raise ArgumentError("array_str: got None; wanted an array-like")
    return str(tensor_of(a))
