"""Computes strides of tensors for kernel builders: dense and broadcast strides, merged axes.

All strides count elements. The functions are pure shape arithmetic; they read no tensor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["broadcast_steps", "dense", "merged", "split_at"]


def dense(shape: Sequence[int]) -> list[int]:
    """Return the strides, in elements, of a C-contiguous array of the given shape."""
    steps, step = [], 1
    for n in reversed(shape):
        steps.append(step)
        step *= n
    return steps[::-1]


def broadcast_steps(own: Sequence[int], shape: Sequence[int]) -> list[int]:
    """Return the strides of a contiguous operand along the axes of `shape`; 0 if broadcast."""
    padded = (1,) * (len(shape) - len(own)) + tuple(own)
    return [0 if n == 1 else step for n, step in zip(padded, dense(padded))]


def merged(
    shape: Sequence[int], steps: Sequence[Sequence[int]]
) -> tuple[list[int], list[list[int]]]:
    """Merge adjacent axes that are contiguous in every buffer; return (sizes, strides by buffer).

    `steps` has the strides of each buffer along the axes of `shape`. At least one axis is left.

    Examples:
        >>> from duograph.backend.grid.strides import merged
        >>> merged((2, 3, 4), [(12, 4, 1), (0, 4, 1)])
        ([2, 12], [[12, 1], [0, 1]])
    """
    sizes: list[int] = []
    rows: list[list[int]] = [[] for _ in steps]
    for axis in range(len(shape) - 1, -1, -1):
        n = shape[axis]
        if n == 1:
            continue
        if sizes and all(own[axis] == row[-1] * sizes[-1] for own, row in zip(steps, rows)):
            sizes[-1] *= n
            continue
        sizes.append(n)
        for own, row in zip(steps, rows):
            row.append(own[axis])
    if not sizes:
        return [1], [[1] for _ in steps]
    return sizes[::-1], [row[::-1] for row in rows]


def split_at(shape: Sequence[int], axis: int) -> tuple[int, int, int]:
    """Return the products (outer, n, inner) of a shape's sizes before, at and after an axis."""
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
