"""Functions that flip, roll and rotate tensors along axes.

Users and other op families call them; axes may be negative.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..call_cache import cached_call
from ..errors import ArgumentError, ArgumentValueError
from ..op import op
from ..tensor import Tensor
from .arguments import ints_of
from .axes import axes_of, axis_of
from .methods import tensor_method
from .movement import concat_by, flip_by, identity, slice_axis
from .primitive import primitive
from .shape_primitives import reshape_to
from .shaping import one_tuple, ravel, swapaxes

__all__ = [
    "flip", "fliplr", "flipud", "reverse", "roll", "rot90",
]  # fmt: skip


@tensor_method("flip")
def _tensor_flip(
    self: Tensor, *axes: int | Sequence[int], dims: int | Sequence[int] | None = None
) -> Tensor:
    """Reverse the order of the elements along axes, given singly or as `dims`. See `ops.flip`."""
    return flip(self, one_tuple("flip", "dims", axes) if dims is None else dims)


@cached_call
def flip(input: Tensor, dims: int | Sequence[int]) -> Tensor:
    """Reverse the order of the elements along axes (`mindspore.ops.flip`).

    Args:
        input: Tensor of any shape.
        dims: int or tuple of ints.

    Raises:
        ValueError: an axis out of range, or twice.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.flip(ms.Tensor([[1, 2], [3, 4]]), (0,))
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[3, 4],
         [1, 2]])
    """
    axes = ints_of("flip", "dims", dims)
    found = axes_of("flip", axes, len(input.shape)) if axes else ()
    return flip_by(input, found) if found else identity(input)


@cached_call
def fliplr(input: Tensor) -> Tensor:
    """Reverse the order of the elements along axis 1 (`mindspore.ops.fliplr`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.fliplr(ms.Tensor([[1, 2], [3, 4]]))
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[2, 1],
         [4, 3]])
    """
    return flip(input, (1,))


@cached_call
def flipud(input: Tensor) -> Tensor:
    """Reverse the order of the elements along axis 0 (`mindspore.ops.flipud`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.flipud(ms.Tensor([[1, 2], [3, 4]]))
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[3, 4],
         [1, 2]])
    """
    return flip(input, (0,))


tensor_method("fliplr")(fliplr)
tensor_method("flipud")(flipud)


@primitive("ReverseV2(axis)", op="flip")
@tensor_method("reverse")
@cached_call
def reverse(x: Tensor, axis: int | Sequence[int]) -> Tensor:
    """Reverse the order of the elements along axes (`mindspore.ops.reverse`).

    Raises:
        ValueError: an axis out of range, or twice.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.reverse(ms.Tensor([1, 2, 3]), (0,))
        Tensor(shape=[3], dtype=Int64, value= [3, 2, 1])
    """
    return flip(x, axis)


@primitive("Roll(shifts, dims=None)", op="roll")
@tensor_method("roll")
@cached_call
def roll(
    input: Tensor, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None
) -> Tensor:
    """Shift elements along axes; those that leave at one end enter at the other
    (`mindspore.ops.roll`).

    Args:
        input: Tensor of any shape.
        shifts: int or tuple of ints.
        dims: int or ints: an axis for each shift; None rolls the flattened tensor.

    Raises:
        ValueError: an axis out of range, or another number of axes than shifts.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.roll(ms.Tensor([0, 1, 2, 3, 4]), 2)
        Tensor(shape=[5], dtype=Int64, value= [3, 4, 0, 1, 2])
    """
    steps = ints_of("roll", "shifts", shifts)
    if dims is None:
        if len(steps) != 1:
            raise ArgumentValueError(f"roll: got shifts={shifts} without dims; wanted one shift")
        return reshape_to(roll_by(ravel(input), steps, (0,)), input.shape)
    axes = tuple(axis_of("roll", a, len(input.shape)) for a in ints_of("roll", "dims", dims))
    if len(steps) == 1:
        steps = steps * len(axes)
    if len(steps) != len(axes):
        raise ArgumentValueError(f"roll: got shifts={shifts} for dims={dims}; wanted one an axis")
    return roll_by(input, steps, axes)


@op(name="roll")
def roll_by(input: Tensor, shifts: Sequence[int], axes: Sequence[int]):
    """Composite op: shift elements cyclically along axes, by one shift per axis."""
    out = input
    for shift, axis in zip(shifts, axes, strict=True):
        n = input.shape[axis] if input.shape else 1
        cut = -shift % n if n else 0
        if cut:
            out = concat_by((slice_axis(out, axis, cut, n), slice_axis(out, axis, 0, cut)), axis)
    return out


@tensor_method("rot90")
@cached_call
def rot90(input: Tensor, k: int = 1, dims: int | Sequence[int] = (0, 1)) -> Tensor:
    """Rotate by `k` quarter turns in the plane of two axes, from the first towards the second
    (`mindspore.ops.rot90`).

    Raises:
        ValueError: not two different axes.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.rot90(ms.Tensor([[0, 1], [2, 3]]), 1, (0, 1))
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[1, 3],
         [0, 2]])
    """
    axes = [axis_of("rot90", a, len(input.shape)) for a in ints_of("rot90", "dims", dims)]
    if len(axes) != 2 or axes[0] == axes[1]:
        raise ArgumentValueError(f"rot90: got dims={dims}; wanted two different axes")
    if not isinstance(k, (int, np.integer)):
        raise ArgumentError(f"rot90: got k={k!r}; wanted an int")
    first, second = axes
    turns = int(k) % 4
    if turns == 0:
        return input
    if turns == 2:
        return flip(input, (first, second))
    if turns == 1:
        return swapaxes(flip(input, (second,)), first, second)
    return flip(swapaxes(input, first, second), (second,))
