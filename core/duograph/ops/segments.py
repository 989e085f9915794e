"""Segment reductions: sum, product, maximum and minimum of the rows with the same segment id.

Users call the functions. Rows with a negative segment id must not contribute to any segment.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..dtype import largest_finite
from ..errors import DTypeError, ShapeError
from ..op import op
from ..op_signature import Number
from ..tensor import Tensor
from .comparison import less
from .creation import fill
from .creation_functions import as_index
from .gather_scatter import checked_labels
from .logic import select_by
from .methods import tensor_method
from .movement import slice_axis
from .scattering import scatter_rows
from .shape_primitives import reshape_to

__all__ = [
    "unsorted_segment_sum", "unsorted_segment_max", "unsorted_segment_min", "unsorted_segment_prod",
]  # fmt: skip


# The functions of modes that have another name.
_NAMES = {"add": "sum", "mul": "prod"}


def _segments(
    name: str,
    x: Tensor,
    segment_ids: Tensor | Sequence[int] | int,
    num_segments: Tensor | int,
    mode: str,
    start: int | float,
) -> Tensor:
    ids = as_index(segment_ids, x)
    if isinstance(num_segments, Tensor):
        num_segments = num_segments.item()
    k = len(ids.shape)
    if x.shape[:k] != ids.shape or num_segments < 1:
        raise ShapeError(
            f"{name}: got shape {x.shape}, segment_ids of shape {ids.shape}, "
            f"num_segments={num_segments}; wanted "
            f"equal leading axes and at least one segment"
        )
    return segments_by(x, ids, int(num_segments), mode, start)


@op(name="unsorted_segment")
def segments_by(input: Tensor, segment_ids: Tensor, count: int, mode: str, start: Number):
    """Composite op: reduce the rows of each segment, those with the same segment id.

    `segment_ids` has the leading axes of `input`; rows with a negative id are ignored. `count` is
    the number of segments. `mode` is "add", "mul", "max" or "min", and `start` is the value of an
    empty segment.
    """
    ids = segment_ids
    rest = input.shape[len(ids.shape) :]
    m = ids.size
    flat = reshape_to(ids, (m,))
    none = less(flat, 0)
    owner = f"unsorted_segment_{_NAMES.get(mode, mode)}"
    flat = checked_labels(owner, select_by(none, 0, flat), count)
    # rows without a segment go to an extra segment, which is removed at the end
    flat = select_by(none, count, flat)
    rows = reshape_to(input, (m, *rest))
    base = fill((count + 1, *rest), start, input.dtype)
    out = scatter_rows("unsorted_segment", base, flat, rows, mode)
    return slice_axis(out, 0, 0, count)


def _lowest(name: str, x: Tensor, lowest: bool) -> int | float:
    if x.dtype.kind not in "iuf":
        raise DTypeError(f"{name}: got {x.dtype.name}; wanted integers or floats")
    if x.dtype.is_floating:
        top = largest_finite(x.dtype)
        return -top if lowest else top
    info = np.iinfo(x.dtype.np)
    return int(info.min if lowest else info.max)


def unsorted_segment_sum(
    input_x: Tensor, segment_ids: Tensor | Sequence[int] | int, num_segments: int
) -> Tensor:
    """Sum the rows of each segment (`mindspore.ops.unsorted_segment_sum`).

    Args:
        input_x: Tensor.
        segment_ids: integer Tensor whose shape is that of the leading axes of `input_x`; rows with
            a negative id belong to no segment.
        num_segments: number of segments; ids are below it.

    Returns:
        Tensor of shape (num_segments,) + the other axes.

    Raises:
        IndexError: an id beyond the last segment.
        ValueError: shapes that do not fit.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.unsorted_segment_sum(ms.Tensor([1.0, 2.0, 3.0]), ms.Tensor([0, 1, 0]), 2)
        Tensor(shape=[2], dtype=Float32, value= [ 4.00000000e+00,  2.00000000e+00])
    """
    return _segments("unsorted_segment_sum", input_x, segment_ids, num_segments, "add", 0)


def unsorted_segment_max(
    x: Tensor, segment_ids: Tensor | Sequence[int] | int, num_segments: int
) -> Tensor:
    """Return the elementwise maximum of each segment's rows; the lowest number for an empty segment
    (`mindspore.ops.unsorted_segment_max`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.unsorted_segment_max(ms.Tensor([1.0, 2.0, 3.0]), ms.Tensor([0, 1, 0]), 2)
        Tensor(shape=[2], dtype=Float32, value= [ 3.00000000e+00,  2.00000000e+00])
    """
    name = "unsorted_segment_max"
    return _segments(name, x, segment_ids, num_segments, "max", _lowest(name, x, True))


def unsorted_segment_min(
    x: Tensor, segment_ids: Tensor | Sequence[int] | int, num_segments: int
) -> Tensor:
    """Return the elementwise minimum of each segment's rows; the highest number for an empty one
    (`mindspore.ops.unsorted_segment_min`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.unsorted_segment_min(ms.Tensor([1.0, 2.0, 3.0]), ms.Tensor([0, 1, 0]), 2)
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  2.00000000e+00])
    """
    name = "unsorted_segment_min"
    return _segments(name, x, segment_ids, num_segments, "min", _lowest(name, x, False))


def unsorted_segment_prod(
    x: Tensor, segment_ids: Tensor | Sequence[int] | int, num_segments: int
) -> Tensor:
    """Multiply the rows of each segment; 1 for an empty one
    (`mindspore.ops.unsorted_segment_prod`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.unsorted_segment_prod(ms.Tensor([1.0, 2.0, 3.0]), ms.Tensor([0, 1, 0]), 2)
        Tensor(shape=[2], dtype=Float32, value= [ 3.00000000e+00,  2.00000000e+00])
    """
    return _segments("unsorted_segment_prod", x, segment_ids, num_segments, "mul", 1)


for _function in (unsorted_segment_max, unsorted_segment_min, unsorted_segment_prod):
    tensor_method(_function.__name__)(_function)
