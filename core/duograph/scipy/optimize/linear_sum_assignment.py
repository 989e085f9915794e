"""Solves the linear assignment problem by shortest augmenting paths.

Users call `linear_sum_assignment`. The algorithm is that of Jonker and Volgenant (1987) in the form
of Crouse (2016); its time is cubic. It runs on the host and has no gradient.
"""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np

from ...errors import ArgumentError, ArgumentValueError, ShapeError
from ...host_arrays import Array
from ...tensor import Tensor

__all__ = ["linear_sum_assignment"]


class _Module(types.ModuleType):
    """The class of this module, which makes the module callable.

    Programs for MindSpore import the module by its path and call the module itself as the function.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        return linear_sum_assignment(*args, **kwargs)


sys.modules[__name__].__class__ = _Module
_NO_LIMIT = Tensor(2**63 - 1)


def linear_sum_assignment(
    cost_matrix: Tensor, maximize: bool, dimension_limit: Tensor = _NO_LIMIT
) -> tuple[Tensor, Tensor]:
    """Assign rows to columns, each at most once, with the smallest sum of costs.

    Args:
        cost_matrix: Tensor of shape (m, n), real.
        maximize: whether to find the largest sum instead.
        dimension_limit: integer Tensor without axes: number of first columns that are used.

    Returns:
        Two int64 Tensors of shape (min(m, n),): the rows in rising order, and the column of each.
        If `dimension_limit` leaves fewer columns, the ends are filled with -1.

    Raises:
        TypeError: an argument of another type.
        ValueError: the matrix has another number of axes, or elements that are not finite.

    Examples:
        >>> import duograph as ms
        >>> from duograph.scipy.optimize import linear_sum_assignment
        >>> rows, columns = linear_sum_assignment(ms.Tensor([[2.0, 1.0], [1.0, 5.0]]), False)
        >>> print(rows, columns)
        [0 1] [1 0]
    """
    if not isinstance(cost_matrix, Tensor) or cost_matrix.dtype.is_complex:
        raise ArgumentError("linear_sum_assignment: wanted a Tensor of real numbers as cost_matrix")
    if not isinstance(maximize, bool):
        raise ArgumentError(f"linear_sum_assignment: got maximize={maximize!r}; wanted a bool")
    if cost_matrix.ndim != 2:
        raise ShapeError(f"linear_sum_assignment: got shape {cost_matrix.shape}; wanted a matrix")
    size = min(cost_matrix.shape)
    columns_used = min(int(dimension_limit), cost_matrix.shape[1])
    if columns_used < 0:
        raise ArgumentValueError(
            f"linear_sum_assignment: got dimension_limit={columns_used}; wanted at least 0"
        )
    costs = cost_matrix.asnumpy().astype(np.float64)[:, :columns_used]
    if not np.isfinite(costs).all():
        raise ArgumentValueError("linear_sum_assignment: got costs that are not finite")
    costs = -costs if maximize else costs
    if costs.shape[0] > costs.shape[1]:
        rows = _assigned(costs.T)
        order = np.argsort(rows, kind="stable")
        found = rows[order], order
    else:
        found = np.arange(costs.shape[0]), _assigned(costs)
    padded = [np.full(size, -1, np.int64) for _ in found]
    for out, values in zip(padded, found, strict=True):
        out[: values.size] = values
    return Tensor(padded[0]), Tensor(padded[1])


def _assigned(costs: Array) -> Array:
    """Return the column assigned to each row so that the sum of costs is smallest.

    `costs` has at least as many columns as rows.
    """
    m, n = costs.shape
    of_rows, of_columns = np.zeros(m), np.zeros(n)  # the dual variables
    row_of = np.full(n, -1)
    column_of = np.full(m, -1)
    for start in range(m):
        lengths, before = np.full(n, np.inf), np.full(n, -1)
        open_columns, seen_rows = np.ones(n, bool), [start]
        row, shortest = start, 0.0
        while True:
            ahead = shortest + costs[row] - of_rows[row] - of_columns
            closer = open_columns & (ahead < lengths)
            lengths[closer], before[closer] = ahead[closer], row
            column = _nearest(lengths, open_columns, row_of)
            shortest = float(lengths[column])
            open_columns[column] = False
            if row_of[column] < 0:
                break
            row = int(row_of[column])
            seen_rows.append(row)
        of_rows[start] += shortest
        for other in seen_rows[1:]:
            of_rows[other] += shortest - lengths[column_of[other]]
        of_columns[~open_columns] -= shortest - lengths[~open_columns]
        while True:  # exchange the assignments along the path
            row = int(before[column])
            row_of[column] = row
            column_of[row], column = column, column_of[row]
            if row == start:
                break
    return column_of


def _nearest(lengths: Array, open_columns: Array, row_of: Array) -> int:
    """Return the column of least `lengths` (path lengths) among those that `open_columns` marks.

    Of several such columns, the first that no row is assigned to is preferred. `row_of` has the row
    assigned to each column, or -1.
    """
    places = np.flatnonzero(open_columns & (lengths == lengths[open_columns].min()))
    free = places[row_of[places] < 0]
    return int(free[0] if free.size else places[0])
