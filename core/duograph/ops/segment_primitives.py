"""Primitive classes that reduce the rows with the same segment id, such as `SegmentSum`.

Users construct them, or call `sparse_segment_mean`. They check that the ids ascend, and call the
functions of `segments.py`, which has the ops. New ops and formulas do not belong here.
"""

from __future__ import annotations

import numpy as np

from ..dtype import int64
from ..errors import ArgumentValueError, ShapeError
from ..tensor import Tensor
from . import elementwise
from .creation import fill
from .gathering import index_select
from .logic import select_by
from .primitive import Primitive
from .segments import (
    unsorted_segment_max,
    unsorted_segment_min,
    unsorted_segment_prod,
    unsorted_segment_sum,
)
from .shape_primitives import reshape_to

__all__ = [
    "SegmentMax", "SegmentMean", "SegmentMin", "SegmentProd", "SegmentSum", "sparse_segment_mean",
]  # fmt: skip


def _count(name: str, segment_ids: Tensor) -> int:
    ids = segment_ids.asnumpy()
    if ids.ndim != 1 or (len(ids) and (ids[0] < 0 or (np.diff(ids) < 0).any())):
        raise ArgumentValueError(f"{name}: got segment_ids {ids.tolist()}; wanted ascending ones")
    return int(ids[-1]) + 1 if len(ids) else 0


class _Segments(Primitive):
    """Base class of reductions over the rows with the same segment id; ids must be ascending."""

    def __call__(self, input_x: Tensor, segment_ids: Tensor) -> Tensor:
        """Return one row per segment id, from 0 to the last; row i reduces the rows with id i."""
        name = type(self).__name__
        count = _count(name, segment_ids)
        if input_x.ndim < 1 or segment_ids.shape != input_x.shape[:1]:
            raise ShapeError(f"{name}: got shapes {input_x.shape} and {segment_ids.shape}")
        if not count:
            return fill((0, *input_x.shape[1:]), 0, input_x.dtype)
        return self._reduced(input_x, segment_ids, count)

    def _reduced(self, x: Tensor, ids: Tensor, count: int) -> Tensor:
        raise NotImplementedError

    def _or_zero(self, out: Tensor, ids: Tensor, count: int) -> Tensor:
        found = unsorted_segment_sum(fill(ids.shape, 1, int64), ids, count)
        empty = reshape_to(found == 0, (count, *[1] * (out.ndim - 1)))
        return select_by(empty, 0, out)


class SegmentSum(_Segments):
    """Sums of the rows with the same id: `SegmentSum()(input_x, segment_ids)`."""

    def _reduced(self, x: Tensor, ids: Tensor, count: int) -> Tensor:
        return unsorted_segment_sum(x, ids, count)


class SegmentProd(_Segments):
    """Products of the rows with the same id: `SegmentProd()(input_x, segment_ids)`."""

    def _reduced(self, x: Tensor, ids: Tensor, count: int) -> Tensor:
        return unsorted_segment_prod(x, ids, count)


class SegmentMax(_Segments):
    """Largest elements of the rows with the same id: `SegmentMax()(input_x, segment_ids)`."""

    def _reduced(self, x: Tensor, ids: Tensor, count: int) -> Tensor:
        return self._or_zero(unsorted_segment_max(x, ids, count), ids, count)


class SegmentMin(_Segments):
    """Smallest elements of the rows with the same id: `SegmentMin()(input_x, segment_ids)`."""

    def _reduced(self, x: Tensor, ids: Tensor, count: int) -> Tensor:
        return self._or_zero(unsorted_segment_min(x, ids, count), ids, count)


class SegmentMean(_Segments):
    """Means of the rows with the same id: `SegmentMean()(input_x, segment_ids)`.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.SegmentMean()(ms.Tensor([1.0, 3.0, 5.0]), ms.Tensor([0, 0, 2])))
        [2. 0. 5.]
    """

    def _reduced(self, x: Tensor, ids: Tensor, count: int) -> Tensor:
        found = unsorted_segment_sum(fill(ids.shape, 1, x.dtype), ids, count)
        below = elementwise.maximum(reshape_to(found, (count, *[1] * (x.ndim - 1))), 1.0)
        return unsorted_segment_sum(x, ids, count) / below


def sparse_segment_mean(x: Tensor, indices: Tensor, segment_ids: Tensor) -> Tensor:
    """Compute the means of the rows `indices` of `x` that have the same segment id
    (`mindspore.ops.sparse_segment_mean`).

    Raises:
        ValueError: the ids are not ascending, or their number is not that of the indices.

    Examples:
        >>> import duograph as ms
        >>> x, i = ms.Tensor([1.0, 3.0, 5.0]), ms.Tensor([0, 2])
        >>> print(ms.ops.sparse_segment_mean(x, i, ms.Tensor([0, 0])))
        [3.]
    """
    return SegmentMean()(index_select(x, 0, indices), segment_ids)
