"""MindSpore's functions `slice` and `strided_slice`, which copy a part of a tensor.

Users call them. Python's indexing syntax, whose op `strided_slice` uses, is in `indexing`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import ShapeError
from ..tensor import Tensor
from .arguments import ints_of
from .indexing import getitem_by
from .movement import slice_by
from .primitive import primitive

__all__ = ["tensor_slice", "slice", "strided_slice"]


@primitive("Slice")
def slice(input_x: Tensor, begin: int | Sequence[int], size: int | Sequence[int]) -> Tensor:
    """Copy `size` elements from `begin` on along each axis (`mindspore.ops.slice`).

    Args:
        input_x: Tensor.
        begin, size: an int for each axis; a size of -1 means up to the end.

    Raises:
        ValueError: the part is not inside the tensor.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.slice(ms.Tensor([[1, 2, 3], [4, 5, 6]]), (0, 1), (1, 2))
        Tensor(shape=[1, 2], dtype=Int64, value=
        [[2, 3]])
    """
    from_ = ints_of("slice", "begin", begin)
    count = ints_of("slice", "size", size)
    shape = input_x.shape
    if not len(from_) == len(count) == len(shape):
        raise ShapeError(
            f"slice: got begin={from_}, size={count} for shape {shape}; wanted one an axis"
        )
    end = [n if c == -1 else b + c for n, b, c in zip(shape, from_, count, strict=True)]
    if any(
        b < 0 or c < -1 or e > n or b > n
        for n, b, c, e in zip(shape, from_, count, end, strict=True)
    ):
        raise ShapeError(f"slice: got begin={from_}, size={count} for shape {shape}: not inside")
    return slice_by(input_x, from_, end, [1] * len(shape))


tensor_slice = slice


@primitive(
    "StridedSlice(begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0, shrink_axis_mask=0)"
)
def strided_slice(
    input_x: Tensor,
    begin: int | Sequence[int],
    end: int | Sequence[int],
    strides: int | Sequence[int],
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> Tensor:
    """Copy a slice begin:end:stride along each axis, as in Python (`mindspore.ops.strided_slice`).

    Args:
        input_x: Tensor.
        begin, end, strides: ints, as many of each; the axes beyond them are copied whole.
        begin_mask, end_mask: bit i is set if item i has no begin (end).
        ellipsis_mask: bit i is set if item i selects all remaining axes in full.
        new_axis_mask: bit i is set if item i is a new axis of size 1.
        shrink_axis_mask: bit i is set if item i is the element at its begin, without the axis.

    Raises:
        ValueError: unequal lengths, a stride of 0, or more than one Ellipsis.
        IndexError: an element out of range.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.strided_slice(ms.Tensor([1, 2, 3, 4]), (3,), (0,), (-2,))
        Tensor(shape=[2], dtype=Int64, value= [4, 2])
    """
    b, e, s = (
        ints_of("strided_slice", n, v)
        for n, v in (("begin", begin), ("end", end), ("strides", strides))
    )
    if not len(b) == len(e) == len(s):
        raise ShapeError(f"strided_slice: got begin={b}, end={e}, strides={s}; wanted one length")
    items: list[object] = []
    for i, (first, last, step) in enumerate(zip(b, e, s, strict=True)):
        bit = 1 << i
        if ellipsis_mask & bit:
            items.append(Ellipsis)
        elif new_axis_mask & bit:
            items.append(None)
        elif shrink_axis_mask & bit:
            items.append(first)
        else:
            items.append(
                (None if begin_mask & bit else first, None if end_mask & bit else last, step)
            )
    return getitem_by((input_x,), tuple(items))
