"""Planning of ``x[index]``: which slices, which reshape, and which axes are gathered.

`indexing.py` calls `plan_of` when it prepares a call for a shape and an index. Since a prepared
call serves all tensors of its shape, this module must not touch tensors or their values.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, TypeAlias

from ..errors import IndexKindError, IndexRangeError, ShapeError
from ..sizes import range_length, slice_bounds
from .movement import slice_shape

__all__: list[str] = []

# The `index` attribute: ints, slices as tuples, None, Ellipsis, and the placeholders below.
Items: TypeAlias = tuple[object, ...]

# Placeholders for operands in the `index` attribute: an index array for one axis or, for a bool
# scalar, for a new axis of size 1.
ARRAY, NEW_ARRAY = "array", "new array"


@dataclasses.dataclass(frozen=True)
class Plan:
    """Steps that apply an index: a slice, a reshape to `middle`, a gather along some axes.

    Attributes:
        begin, end, strides: bounds and step of the slice of each axis of the operand.
        middle: shape of the sliced operand without the axes of ints and with axes for None.
        axes: axes of `middle` to which the index arrays apply, in order.
        position: the first axis of the result that comes from the index arrays; it is also the
            number of other axes before these.
    """

    begin: tuple[int, ...]
    end: tuple[int, ...]
    strides: tuple[int, ...]
    middle: tuple[int, ...]
    axes: tuple[int, ...]
    position: int

    def whole(self, shape: Sequence[int]) -> bool:
        """Return whether the slices select all elements of a tensor of `shape`, in their order."""
        return slice_shape(self.begin, self.end, self.strides) == tuple(shape) and all(
            s == 1 for s in self.strides
        )


def axes_consumed(item: object) -> int:
    """Return the number of tensor axes, 0 or 1, that one item of an index applies to.

    Masks must have been converted to index arrays.
    """
    return 0 if item is None or item is Ellipsis or item == NEW_ARRAY else 1


def plan_of(shape: Sequence[int], index: Sequence[Any]) -> Plan:
    """Return the slice, reshape and gather that apply an index to a tensor of `shape`.

    `index` has ints, slices as tuples, None, Ellipsis, and two markers for index arrays: ARRAY for
    an array that indexes one axis, NEW_ARRAY for a 0-d bool mask, which indexes a new axis of size
    1.

    Raises:
        IndexRangeError: an int out of range, or more items than axes.
        IndexKindError: two Ellipses.
    """
    used = sum(axes_consumed(i) for i in index)
    if used > len(shape):
        got = f"index: got {used} {'index' if used == 1 else 'indices'} for shape {tuple(shape)}"
        raise IndexRangeError(
            f"{got} of {len(shape)} axes; wanted at most {len(shape)}"
            if shape
            else f"{got} of 0 axes, a Tensor of one number; wanted none (`float(x)` or "
            "`x.asnumpy()` gives the number of a Tensor x)"
        )
    dots = [k for k, i in enumerate(index) if i is Ellipsis]
    if len(dots) > 1:
        raise IndexKindError("index: got more than one Ellipsis (`...`)")
    fill: list[object] = [(None, None, None)] * (len(shape) - used)
    at = dots[0] if dots else len(index)
    # an Ellipsis separates index arrays even if it matches no axis
    items = [*index[:at], *(fill or [Ellipsis] * len(dots)), *index[at + 1 :]]
    begin, end, strides, middle, axes, chosen = [], [], [], [], [], []
    axis = 0
    for k, item in enumerate(items):
        if item is Ellipsis:
            continue
        if item is None:
            middle.append(1)
            continue
        if item == NEW_ARRAY:
            chosen.append(k)
            axes.append(len(middle))
            middle.append(1)
            continue
        n = shape[axis]
        if item.__class__ is tuple:
            b, e, s = _slice_of(item, n)
            middle.append(range_length(b, e, s))
        elif item == ARRAY:
            b, e, s = 0, n, 1
            chosen.append(k)
            axes.append(len(middle))
            middle.append(n)
        else:
            if not -n <= item < n:
                raise IndexRangeError(
                    f"index: got {item} for axis {axis} of size {n}; wanted {-n} to {n - 1}"
                )
            b = item + n if item < 0 else item
            e, s = b + 1, 1
            chosen.append(k)
        begin.append(b)
        end.append(e)
        strides.append(s)
        axis += 1
    position = 0
    if axes and chosen == list(range(chosen[0], chosen[-1] + 1)):
        position = sum(1 for item in items[: chosen[0]] if item is None or item.__class__ is tuple)
    return Plan(tuple(begin), tuple(end), tuple(strides), tuple(middle), tuple(axes), position)


def _slice_of(item: tuple[int | None, ...], n: int) -> tuple[int, int, int]:
    if item[2] == 0:
        raise ShapeError("index: got a slice with step 0; wanted another step, such as 1")
    begin, end, step = slice_bounds(item[0], item[1], item[2], n)
    return (begin, end, step) if range_length(begin, end, step) else (0, 0, 1)
