"""Creation of tensors with the signatures of `duograph.mint`: sizes, fill values and ranges.

`mint/__init__.py` exports these functions, and users call them. Every function normalises its
arguments and calls `duograph.ops`; none may compute anything itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from .. import ops as _ops
from ..dtype import DTypeLike, float32
from ..errors import ArgumentError
from ..tensor import Tensor
from ._arguments import refuse_pinned

__all__ = [
    "arange", "empty", "empty_like", "full", "linspace", "meshgrid", "ones", "zeros",
]  # fmt: skip


def zeros(size: int | Sequence[int] | Tensor, *, dtype: DTypeLike | None = None) -> Tensor:
    """Return a tensor of zeros (`mindspore.mint.zeros`).

    Args:
        size: int, tuple, list or Tensor of ints.
        dtype: default float32.

    Returns:
        Tensor of that size.

    Raises:
        TypeError: a size that is not an int.
        ValueError: a negative size.

    Examples:
        >>> from duograph import mint
        >>> print(mint.zeros((2, 2)))
        [[0. 0.]
         [0. 0.]]
    """
    return _ops.zeros(size, float32 if dtype is None else dtype)


def ones(size: int | Sequence[int] | Tensor, *, dtype: DTypeLike | None = None) -> Tensor:
    """Return a tensor of ones (`mindspore.mint.ones`).

    Args:
        size: int, tuple, list or Tensor of ints.
        dtype: default float32.

    Returns:
        Tensor of that size.

    Raises:
        TypeError: a size that is not an int.
        ValueError: a negative size.

    Examples:
        >>> from duograph import mint
        >>> print(mint.ones(3))
        [1. 1. 1.]
    """
    return _ops.ones(size, float32 if dtype is None else dtype)


def full(
    size: int | Sequence[int] | Tensor,
    fill_value: Tensor | int | float | bool,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Return a tensor whose elements all have one value (`mindspore.mint.full`).

    Args:
        size: int, tuple, list or Tensor of ints.
        fill_value: number, bool, or 0-d Tensor.
        dtype: default that of the value: bool, int64 or float32.

    Returns:
        Tensor of that size.

    Raises:
        TypeError: a size that is not an int.
        ValueError: a negative size.

    Examples:
        >>> from duograph import mint
        >>> print(mint.full((2,), 7))
        [7 7]
    """
    return _ops.full(size, fill_value, dtype=dtype)


def empty(
    *size: int | Sequence[int],
    dtype: DTypeLike | None = None,
    device: str | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """Return a tensor whose values are unspecified; they are zeros (`mindspore.mint.empty`).

    Args:
        size: ints, or one tuple or list of them.
        dtype: default float32.
        device: name of a device such as ``"CPU"``; default the current one.
        pin_memory: only False is offered.

    Returns:
        Tensor of that size.

    Raises:
        TypeError: a size that is not an int.
        ValueError: a negative size, an unknown device, or `pin_memory`.

    Examples:
        >>> from duograph import mint
        >>> mint.empty(2, 3).shape
        (2, 3)
    """
    refuse_pinned("empty", pin_memory)
    return _ops.empty(*size, dtype=dtype, device=device)


def empty_like(
    input: Tensor,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """Return a tensor of the shape of another, with unspecified values
    (`mindspore.mint.empty_like`).

    Args:
        input: Tensor that gives the shape.
        dtype: default that of `input`.
        device: name of a device such as ``"CPU"``; default that of `input`.
        pin_memory: only False is offered.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        ValueError: an unknown device, or `pin_memory`.

    Examples:
        >>> from duograph import Tensor, mint
        >>> mint.empty_like(Tensor([[1, 2]])).shape
        (1, 2)
    """
    refuse_pinned("empty_like", pin_memory)
    return _ops.empty_like(input, dtype=dtype, device=device)


def arange(
    start: Tensor | int | float = 0,
    end: Tensor | int | float | None = None,
    step: Tensor | int | float = 1,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Return evenly spaced numbers from `start` up to, but not including, `end`
    (`mindspore.mint.arange`).

    Args:
        start: the first number; with one argument, the end of a range from 0.
        end: where the range stops.
        step: the distance of neighbours, not 0.
        dtype: default int64 if all arguments are ints, else float32.

    Returns:
        Tensor of one axis.

    Raises:
        ValueError: a step of 0, or one that leads away from `end`.

    Examples:
        >>> from duograph import mint
        >>> print(mint.arange(1, 7, 2))
        [1 3 5]
    """
    return _ops.arange(start, end, step, dtype=dtype)


def linspace(
    start: Tensor | float, end: Tensor | float, steps: int, *, dtype: DTypeLike | None = None
) -> Tensor:
    """Return `steps` evenly spaced numbers from `start` to `end`, both included
    (`mindspore.mint.linspace`).

    Args:
        start, end: numbers or 0-d Tensors.
        steps: how many numbers, 1 or more.
        dtype: default float32.

    Returns:
        Tensor of shape (steps,).

    Raises:
        ValueError: fewer than 1 step.

    Examples:
        >>> from duograph import mint
        >>> print(mint.linspace(0, 1, 5))
        [0.   0.25 0.5  0.75 1.  ]
    """
    first = start if isinstance(start, Tensor) else float(start)
    made = _ops.linspace(first, end, steps)
    return made if dtype is None else made.astype(dtype)


def meshgrid(
    *tensors: Tensor | Sequence[Tensor], indexing: str | None = None
) -> tuple[Tensor, ...]:
    """Return the coordinates of a grid, one tensor for each axis (`mindspore.mint.meshgrid`).

    Args:
        tensors: 0-d or 1-d Tensors, or one tuple or list of them.
        indexing: ``"ij"``, the default, or ``"xy"``, which exchanges the first two axes.

    Returns:
        Tuple of Tensors of the same shape, which has the sizes of `tensors`.

    Raises:
        TypeError: an argument that is not a Tensor.
        ValueError: another `indexing`.

    Examples:
        >>> from duograph import Tensor, mint
        >>> rows, columns = mint.meshgrid(Tensor([1, 2]), Tensor([3, 4, 5]))
        >>> print(rows)
        [[1 1 1]
         [2 2 2]]
    """
    several = tensors[0] if len(tensors) == 1 and not isinstance(tensors[0], Tensor) else tensors
    for t in several:
        if not isinstance(t, Tensor):
            raise ArgumentError(f"meshgrid: got {type(t).__name__}; wanted Tensors")
    lines = [_ops.reshape(t, (-1,)) for t in several]
    made = _ops.meshgrid(*lines, indexing="ij" if indexing is None else indexing)
    return tuple(made)
