"""Random tensors of `duograph.numpy`.

Users call `rand`, `randn` and `randint`. They draw from the same random state as `duograph.ops`;
no state may be kept here.
"""

from __future__ import annotations

from .. import ops as _ops
from ..dtype import DTypeLike, as_dtype, float32, int32
from ..errors import ArgumentError, ArgumentValueError
from ..host_arrays import shape_tuple
from ..tensor import Tensor
from .operands import Ints

__all__ = ["rand", "randint", "randn"]


def _sizes(name: str, shape: tuple[Ints, ...], dtype: DTypeLike) -> tuple[int, ...]:
    if not as_dtype(dtype).is_floating:
        raise ArgumentValueError(f"{name}: got dtype={dtype}; wanted a floating dtype")
    if len(shape) == 1:
        return shape_tuple(shape[0])
    return shape_tuple(shape)


def rand(*shape: Ints, dtype: DTypeLike = float32) -> Tensor:
    """Return random numbers, uniform in [0, 1).

    Args:
        shape: ints, or one tuple or list of ints.
        dtype: floating element type.

    Returns:
        Tensor of that shape.

    Raises:
        ValueError: the dtype is not floating.

    Examples:
        >>> import duograph.numpy as mnp
        >>> mnp.rand(2, 3).shape
        (2, 3)
    """
    return _ops.rand(*_sizes("rand", shape, dtype), dtype=as_dtype(dtype))


def randn(*shape: Ints, dtype: DTypeLike = float32) -> Tensor:
    """Return random numbers of the standard normal distribution.

    Args:
        shape: ints, or one tuple or list of ints.
        dtype: floating element type.

    Returns:
        Tensor of that shape.

    Raises:
        ValueError: the dtype is not floating.

    Examples:
        >>> import duograph.numpy as mnp
        >>> mnp.randn((2, 3)).shape
        (2, 3)
    """
    return _ops.randn(*_sizes("randn", shape, dtype), dtype=as_dtype(dtype))


def randint(
    minval: int, maxval: int | None = None, shape: Ints | None = None, dtype: DTypeLike = int32
) -> Tensor:
    """Return random integers in the half-open interval [minval, maxval).

    Args:
        minval: the lowest integer; without `maxval` the end, and 0 is the lowest.
        maxval: the end, which is not included.
        shape: int or sequence of ints; None returns one integer.
        dtype: integer element type.

    Returns:
        Tensor of that shape.

    Raises:
        TypeError: a limit is no int.
        ValueError: the range is empty, or the dtype is no integer type.

    Examples:
        >>> import duograph.numpy as mnp
        >>> mnp.randint(1, 7, (2, 3)).shape
        (2, 3)
    """
    low, high = (0, minval) if maxval is None else (minval, maxval)
    for limit in (low, high):
        if isinstance(limit, bool) or not isinstance(limit, int):
            raise ArgumentError(f"randint: got {limit!r} for a limit; wanted an int")
    if low >= high:
        raise ArgumentValueError(f"randint: got the range {low} to {high}; wanted a range")
    wanted = as_dtype(dtype)
    if not wanted.is_integer:
        raise ArgumentValueError(f"randint: got dtype={dtype}; wanted an integer dtype")
    return _ops.randint(low, high, () if shape is None else shape_tuple(shape), dtype=wanted)
