"""Functions of `duograph.numpy` for shapes, axes and the order of elements.

Users call them as `duograph.numpy.NAME`. Each converts its operands and calls `duograph.ops`; none
may read the value of a Tensor.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

from .. import ops as _ops
from ..errors import ArgumentValueError, ShapeError
from ..host_arrays import shape_tuple
from ..tensor import Tensor
from .operands import Ints, TensorLike, axis_of, tensor_of

# fmt: off
__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_to", "expand_dims",
    "flip", "fliplr", "flipud", "moveaxis", "ravel", "reshape", "roll", "rollaxis", "rot90", "size",
    "squeeze", "swapaxes", "transpose",
]
# fmt: on


def reshape(x: TensorLike, new_shape: Ints) -> Tensor:
    """Return the same elements in another shape.

    Args:
        x: array-like.
        new_shape: int or sequence of ints; one may be -1, which is computed.

    Returns:
        Tensor.

    Raises:
        ValueError: the shape has another number of elements.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.reshape([1, 2, 3, 4], (2, -1)))
        [[1 2]
         [3 4]]
    """
    return _ops.reshape(tensor_of(x), shape_tuple(new_shape))


def ravel(x: TensorLike) -> Tensor:
    """Return all elements along one axis.

    Args:
        x: array-like.

    Returns:
        Tensor of one axis.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.ravel([[1, 2], [3, 4]]))
        [1 2 3 4]
    """
    return tensor_of(x).reshape(-1)


def expand_dims(a: TensorLike, axis: Ints) -> Tensor:
    """Insert axes of size 1.

    Args:
        a: array-like.
        axis: position of the new axis in the result, or positions.

    Returns:
        Tensor.

    Raises:
        ValueError: a position is out of range.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.expand_dims([1, 2], 0))
        [[1 2]]
    """
    x = tensor_of(a)
    axes = shape_tuple(axis)
    rank = x.ndim + len(axes)
    for new in sorted(axis_of("expand_dims", p, rank) for p in axes):
        x = _ops.expand_dims(x, new)
    return x


def squeeze(a: TensorLike, axis: Ints | None = None) -> Tensor:
    """Remove axes of size 1.

    Args:
        a: array-like.
        axis: the axis or axes to remove; None removes all of size 1.

    Returns:
        Tensor.

    Raises:
        ValueError: an axis has another size.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.squeeze([[1, 2]]))
        [1 2]
    """
    x = tensor_of(a)
    if axis is None:
        return _ops.squeeze(x)
    places = [axis_of("squeeze", k, x.ndim) for k in shape_tuple(axis)]
    if any(x.shape[k] != 1 for k in places):
        raise ArgumentValueError(f"squeeze: got axis={axis} of shape {x.shape}; wanted size 1")
    return x.reshape([n for k, n in enumerate(x.shape) if k not in places])


def size(a: TensorLike, axis: Ints | None = None) -> int:
    """Return the number of elements.

    Args:
        a: array-like.
        axis: the axis or axes along which to count; None counts all elements.

    Returns:
        int.

    Raises:
        ValueError: an axis is out of range.

    Examples:
        >>> import duograph.numpy as mnp
        >>> mnp.size([[1, 2, 3]], axis=1)
        3
    """
    x = tensor_of(a)
    if axis is None:
        return x.size
    count = 1
    for k in shape_tuple(axis):
        count *= x.shape[axis_of("size", k, x.ndim)]
    return count


def at_least(rank: int, x: Tensor) -> Tensor:
    """Return a tensor with at least `rank` axes, as NumPy's `atleast_3d` and its relatives do."""
    if x.ndim >= rank:
        return _ops.identity(x)
    shape = (1,) * (rank - x.ndim) + x.shape if x.ndim < 2 else (*x.shape, 1)
    if rank == 3 and x.ndim == 1:
        shape = (1, x.shape[0], 1)
    return x.reshape(shape)


def _each_at_least(rank: int, arys: tuple[TensorLike, ...]) -> Tensor | list[Tensor]:
    made = [at_least(rank, tensor_of(a)) for a in arys]
    return made[0] if len(made) == 1 else made


if TYPE_CHECKING:

    @overload
    def atleast_1d(ary: TensorLike, /) -> Tensor: ...

    @overload
    def atleast_1d(*arys: TensorLike) -> Tensor | list[Tensor]: ...


def atleast_1d(*arys: TensorLike) -> Tensor | list[Tensor]:
    """Return array-likes with at least one axis.

    Args:
        arys: array-likes.

    Returns:
        Tensor, or a list of Tensors for several operands.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.atleast_1d(3.0))
        [3.]
    """
    return _each_at_least(1, arys)


if TYPE_CHECKING:

    @overload
    def atleast_2d(ary: TensorLike, /) -> Tensor: ...

    @overload
    def atleast_2d(*arys: TensorLike) -> Tensor | list[Tensor]: ...


def atleast_2d(*arys: TensorLike) -> Tensor | list[Tensor]:
    """Return array-likes with at least two axes; new ones are put in front.

    Args:
        arys: array-likes.

    Returns:
        Tensor, or a list of Tensors for several operands.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.atleast_2d([1, 2]))
        [[1 2]]
    """
    return _each_at_least(2, arys)


if TYPE_CHECKING:

    @overload
    def atleast_3d(ary: TensorLike, /) -> Tensor: ...

    @overload
    def atleast_3d(*arys: TensorLike) -> Tensor | list[Tensor]: ...


def atleast_3d(*arys: TensorLike) -> Tensor | list[Tensor]:
    """Return array-likes with at least three axes: (N,) as (1, N, 1), (M, N) as (M, N, 1).

    Args:
        arys: array-likes.

    Returns:
        Tensor, or a list of Tensors for several operands.

    Examples:
        >>> import duograph.numpy as mnp
        >>> mnp.atleast_3d([1, 2]).shape
        (1, 2, 1)
    """
    return _each_at_least(3, arys)


def broadcast_to(array: TensorLike, shape: Ints) -> Tensor:
    """Broadcast an array-like to a shape.

    Args:
        array: array-like.
        shape: int or sequence of ints.

    Returns:
        Tensor of that shape.

    Raises:
        ValueError: the shape of `array` does not broadcast to it.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.broadcast_to([1, 2], (2, 2)))
        [[1 2]
         [1 2]]
    """
    return _ops.broadcast_to(tensor_of(array), shape_tuple(shape))


def broadcast_arrays(*args: TensorLike) -> list[Tensor]:
    """Broadcast array-likes to their common shape.

    Args:
        args: array-likes.

    Returns:
        List of Tensors.

    Raises:
        ValueError: the shapes do not broadcast.

    Examples:
        >>> import duograph.numpy as mnp
        >>> x, y = mnp.broadcast_arrays([1, 2], [[3], [4]])
        >>> print(x.shape, y.shape)
        (2, 2) (2, 2)
    """
    return broadcast_all([tensor_of(a) for a in args])


def broadcast_all(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return the tensors, each broadcast to their common shape."""
    rank = builtins.max((t.ndim for t in tensors), default=0)
    shape: list[int] = []
    for sizes in zip(*[(1,) * (rank - t.ndim) + t.shape for t in tensors], strict=True):
        wide = [n for n in sizes if n != 1] or [1]
        if len(set(wide)) > 1:
            shapes = ", ".join(str(t.shape) for t in tensors)
            raise ShapeError(f"broadcast_arrays: got shapes {shapes}; wanted shapes that broadcast")
        shape.append(wide[0])
    return [_ops.broadcast_to(t, tuple(shape)) for t in tensors]


# ---- axes ---------------------------------------------------------------------------------------


def transpose(a: TensorLike, axes: Sequence[int] | None = None) -> Tensor:
    """Permute the axes.

    Args:
        a: array-like.
        axes: the axis of `a` at each position of the result; None reverses the axes.

    Returns:
        Tensor.

    Raises:
        ValueError: `axes` is no permutation.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.transpose([[1, 2], [3, 4]]))
        [[1 3]
         [2 4]]
    """
    x = tensor_of(a)
    return _ops.transpose(x, tuple(range(x.ndim))[::-1] if axes is None else shape_tuple(axes))


def swapaxes(x: TensorLike, axis1: int, axis2: int) -> Tensor:
    """Exchange two axes.

    Args:
        x: array-like.
        axis1: one axis.
        axis2: the other axis.

    Returns:
        Tensor.

    Raises:
        ValueError: an axis is out of range.

    Examples:
        >>> import duograph.numpy as mnp
        >>> mnp.swapaxes(mnp.ones((2, 3, 4)), 0, 2).shape
        (4, 3, 2)
    """
    return _ops.swapaxes(tensor_of(x), axis1, axis2)


def moveaxis(a: TensorLike, source: Ints, destination: Ints) -> Tensor:
    """Move axes to other positions; the rest keep their order.

    Args:
        a: array-like.
        source: the axis or axes to move.
        destination: their positions in the result.

    Returns:
        Tensor.

    Raises:
        ValueError: an axis is out of range or repeated.

    Examples:
        >>> import duograph.numpy as mnp
        >>> mnp.moveaxis(mnp.ones((2, 3, 4)), 0, -1).shape
        (3, 4, 2)
    """
    return _ops.moveaxis(tensor_of(a), source, destination)


def rollaxis(x: TensorLike, axis: int, start: int = 0) -> Tensor:
    """Move an axis to the position before another one.

    Args:
        x: array-like.
        axis: the axis to move.
        start: the axis before which it is put, from ``-x.ndim`` to ``x.ndim``.

    Returns:
        Tensor.

    Raises:
        ValueError: an axis is out of range.

    Examples:
        >>> import duograph.numpy as mnp
        >>> mnp.rollaxis(mnp.ones((2, 3, 4)), 2).shape
        (4, 2, 3)
    """
    t = tensor_of(x)
    source = axis_of("rollaxis", axis, t.ndim)
    if not -t.ndim <= start <= t.ndim:
        raise ArgumentValueError(f"rollaxis: got start={start}; wanted {-t.ndim} to {t.ndim}")
    target = start + t.ndim if start < 0 else start
    return _ops.moveaxis(t, source, target - 1 if source < target else target)


# ---- order of elements --------------------------------------------------------------------------


def flip(m: TensorLike, axis: Ints | None = None) -> Tensor:
    """Reverse the elements along axes.

    Args:
        m: array-like.
        axis: the axis or axes; None is all.

    Returns:
        Tensor.

    Raises:
        ValueError: an axis is out of range.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.flip([[1, 2], [3, 4]]))
        [[4 3]
         [2 1]]
    """
    x = tensor_of(m)
    return _ops.flip(x, tuple(range(x.ndim)) if axis is None else shape_tuple(axis))


def flipud(m: TensorLike) -> Tensor:
    """Reverse the elements along axis 0.

    Args:
        m: array-like of at least one axis.

    Returns:
        Tensor.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.flipud([[1, 2], [3, 4]]))
        [[3 4]
         [1 2]]
    """
    return _ops.flip(tensor_of(m), (0,))


def fliplr(m: TensorLike) -> Tensor:
    """Reverse the elements along axis 1.

    Args:
        m: array-like of at least two axes.

    Returns:
        Tensor.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.fliplr([[1, 2], [3, 4]]))
        [[2 1]
         [4 3]]
    """
    return _ops.flip(tensor_of(m), (1,))


def roll(a: TensorLike, shift: Ints, axis: Ints | None = None) -> Tensor:
    """Shift the elements along axes; those that leave at one end enter at the other.

    Args:
        a: array-like.
        shift: number of places, or one for each axis.
        axis: the axis or axes; None shifts the flattened elements.

    Returns:
        Tensor.

    Raises:
        ValueError: an axis is out of range.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.roll([1, 2, 3], 1))
        [3 1 2]
    """
    x = tensor_of(a)
    if axis is None:
        return _ops.roll(x, shift)
    axes, shifts = shape_tuple(axis), shape_tuple(shift)
    count = builtins.max(len(axes), len(shifts))
    pairs = [v * count if len(v) == 1 else v for v in (shifts, axes)]
    for steps, k in zip(*pairs, strict=True):
        x = _ops.roll(x, steps, k)
    return x


def rot90(a: TensorLike, k: int = 1, axes: Sequence[int] = (0, 1)) -> Tensor:
    """Rotate by 90 degrees in the plane of two axes.

    Args:
        a: array-like of at least two axes.
        k: number of rotations, from the first axis towards the second.
        axes: the two axes.

    Returns:
        Tensor.

    Raises:
        ValueError: the axes are not two, or out of range.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.rot90([[1, 2], [3, 4]]))
        [[2 4]
         [1 3]]
    """
    return _ops.rot90(tensor_of(a), k, axes)
