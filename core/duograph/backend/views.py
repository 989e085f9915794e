"""Views of operands that a kernel reads from a larger or permuted buffer, without a copy.

In `PreparedCall.layouts` a kernel names the layouts that it accepts beside dense C order;
`execution.strided_operands` then omits the copy of a transposed, sliced or broadcast operand. The
module computes with shapes and strides and never reads a buffer.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["CHANNELS_LAST", "LAYOUTS", "STRIDED", "View", "dense_strides"]

# Any strides: 0 where an operand is broadcast, negative where it is flipped; any offset.
STRIDED = "strided"
# A whole dense buffer in which axis 1 of at least three is the last one, as in NHWC.
CHANNELS_LAST = "channels_last"
LAYOUTS = (STRIDED, CHANNELS_LAST)


class View(NamedTuple):
    """Where the elements of an operand lie in a buffer, counted in elements.

    Element ``(i, j, ...)`` is number ``offset + i * strides[0] + j * strides[1] + ...``.

    Attributes:
        shape: the shape of the operand.
        strides: distance, in elements, to the next element along each axis.
        offset: the number of the first element.
        size: the number of elements of the buffer.

    Examples:
        >>> from duograph.backend.views import View
        >>> View((3, 2), (1, 3), 0, 6).layouts  # a transposed (2, 3)
        frozenset({'strided'})
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    size: int

    @property
    def layouts(self) -> frozenset[str]:
        """The names in `LAYOUTS` that describe this view, such as "strided"."""
        found = {STRIDED}
        rank = len(self.shape)
        if rank >= 3 and self.offset == 0 and self.size == math.prod(self.shape):
            last = (0, *range(2, rank), 1)
            lies = dense_strides([self.shape[axis] for axis in last])
            if all(
                self.shape[axis] == 1 or self.strides[axis] == stride
                for axis, stride in zip(last, lies, strict=True)
            ):
                found.add(CHANNELS_LAST)
        return frozenset(found)

    def within(self, inner: View) -> View | None:
        """Compose two views: return this view of the elements of `inner` as a view of its buffer.

        Returns None if the elements do not lie at equal distances in that buffer, so that no
        strides describe them. For example, a transposed slice of a transposed buffer can be
        described as one view.
        """
        if not math.prod(self.shape):
            return None
        dense = dense_strides(inner.shape)
        first = [self.offset // step % n for step, n in zip(dense, inner.shape, strict=True)]
        low, high = list(first), list(first)
        strides = []
        for n, stride in zip(self.shape, self.strides, strict=True):
            axis = _axis_of(abs(stride), inner.shape, dense)
            if n == 1 or stride == 0:
                strides.append(0)
                continue
            if axis is None:
                return None
            steps = stride // dense[axis] if stride > 0 else -(-stride // dense[axis])
            (high if steps > 0 else low)[axis] += steps * (n - 1)
            strides.append(steps * inner.strides[axis])
        if min(low, default=0) < 0 or any(h >= n for h, n in zip(high, inner.shape, strict=True)):
            return None  # it goes on in the next row
        offset = inner.offset + sum(i * s for i, s in zip(first, inner.strides, strict=True))
        return View(self.shape, tuple(strides), offset, inner.size)


def dense_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides, in elements, of a dense array in C order.

    Examples:
        >>> from duograph.backend.views import dense_strides
        >>> dense_strides((2, 3, 4))
        (12, 4, 1)
    """
    behind = itertools.accumulate(reversed(shape[1:]), lambda a, b: a * b, initial=1)
    return tuple(behind)[::-1] if shape else ()


def _axis_of(stride: int, shape: Sequence[int], dense: Sequence[int]) -> int | None:
    """Return the first axis of a dense array along which `stride` elements are whole steps.

    `dense` holds the strides of the array in elements. `stride` must be a multiple of the axis's
    stride and shorter than the whole axis. Returns None if there is no such axis.
    """
    for axis, step in enumerate(dense):
        if shape[axis] > 1 and stride and stride % step == 0 and stride // step < shape[axis]:
            return axis
    return None
