"""Covariances, histograms and counts of `duograph.numpy`.

Users call them as `duograph.numpy.NAME`. Sizes of results depend on the number of bins alone, so
histograms compile; only `bincount` without `length` reads the largest value.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import cast

from .. import ops as _ops
from ..dtype import DTypeLike, float32, int32
from ..errors import ArgumentValueError
from ..tensor import Tensor
from .calculus import diff
from .creation import linspace
from .operands import TensorLike, as_floating, as_indices, promoted, tensor_of, with_dtype
from .reductions import amax, amin
from .reductions import sum as _sum

__all__ = [
    "bincount", "corrcoef", "cov", "digitize", "histogram", "histogram2d", "histogram_bin_edges",
    "histogramdd",
]  # fmt: skip


def cov(
    m: TensorLike,
    y: TensorLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: TensorLike | None = None,
    aweights: TensorLike | None = None,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the covariance matrix of variables.

    Args:
        m: array-like of at most two axes: a variable in each row, an observation in each column.
        y: more variables of the same form.
        rowvar: whether rows are variables; otherwise columns are.
        bias: whether to divide by the number of observations rather than one less.
        ddof: number that is subtracted from the number of observations to form the divisor; it
            overrides `bias`.
        fweights: array-like of ints, the number of times that each observation counts.
        aweights: array-like, the weight of each observation.
        dtype: element type of the result; None leaves it as computed.

    Returns:
        Tensor; for one variable, it has no axes.

    Raises:
        ValueError: an operand has more than two axes, or weights of a wrong size.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.cov([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
        [[ 1. -1.]
         [-1.  1.]]
    """
    rows = [_variables(t, rowvar) for t in (m, y) if t is not None]
    data = _ops.concat(promoted(rows), 0) if len(rows) > 1 else rows[0]
    made = _ops.cov(
        data,
        correction=int(not bias) if ddof is None else ddof,
        fweights=None if fweights is None else as_indices(fweights),
        aweights=None if aweights is None else as_floating(tensor_of(aweights)),
    )
    made = made.reshape(()) if made.size == 1 and data.shape[0] == 1 else made
    return with_dtype(made, dtype)


def _variables(x: TensorLike, rowvar: bool) -> Tensor:
    """Return samples as a matrix of floats with one row per variable.

    With `rowvar` False, the columns of `x` are the variables.
    """
    t = as_floating(tensor_of(x))
    if t.ndim > 2:
        raise ArgumentValueError(f"cov: got shape {t.shape}; wanted at most two axes")
    if t.ndim < 2:
        return t.reshape(1, -1)
    return t if rowvar or t.shape[0] == 1 else _ops.transpose(t, (1, 0))


def corrcoef(
    x: TensorLike,
    y: TensorLike | None = None,
    rowvar: bool = True,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the matrix of Pearson's correlation coefficients of variables.

    Args:
        x: array-like of at most two axes: a variable in each row, an observation in each column.
        y: more variables of the same form.
        rowvar: whether rows are variables; otherwise columns are.
        dtype: element type of the result; None leaves it as computed.

    Returns:
        Tensor; for one variable, it has no axes.

    Raises:
        ValueError: an operand has more than two axes.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.corrcoef([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
        [[ 1. -1.]
         [-1.  1.]]
    """
    c = cov(x, y, rowvar)
    if c.ndim == 0:
        return with_dtype(c / c, dtype)
    deviation = _ops.sqrt(_ops.diagonal(c))
    made = c / _ops.expand_dims(deviation, 1) / _ops.expand_dims(deviation, 0)
    return with_dtype(_ops.clamp(made, -1, 1), dtype)


# ---- counts -------------------------------------------------------------------------------------


def bincount(
    x: TensorLike,
    weights: TensorLike | None = None,
    minlength: int = 0,
    length: int | None = None,
) -> Tensor:
    """Return how often each integer from 0 occurs.

    Args:
        x: array-like of one axis of ints that are not negative.
        weights: array-like with the weight of each element; None is 1.
        minlength: least size of the result.
        length: size of the result; larger integers are left out. Compiled functions need it.

    Returns:
        float32 Tensor of one axis.

    Raises:
        ValueError: `x` is no vector, or the weights have another size.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.bincount([0, 1, 1, 3]))
        [1. 2. 0. 1.]
    """
    index = as_indices(x)
    if index.ndim != 1:
        raise ArgumentValueError(f"bincount: got shape {index.shape}; wanted a vector")
    if length is None:
        size = builtins.max(int(index.max()) + 1 if index.size else 0, minlength)
    else:
        size = builtins.max(length, minlength)
    if weights is None:
        values = _ops.ones(index.shape, dtype=float32)
    else:
        values = as_floating(tensor_of(weights))
    if values.shape != index.shape:
        raise ArgumentValueError(
            f"bincount: got weights of shape {values.shape}; wanted {index.shape}"
        )
    return _totals(values, index, size)


def _totals(values: Tensor, index: Tensor, size: int) -> Tensor:
    """Sum `values` by index: element i of the result is the sum of those with index i.

    The result has `size` elements; values with other indices are ignored.
    """
    if not size or not index.size:
        return _ops.zeros((size,), dtype=values.dtype)
    return _ops.unsorted_segment_sum(values, _ops.where(_ops.less(index, size), index, -1), size)


def digitize(x: TensorLike, bins: TensorLike, right: bool = False) -> Tensor:
    """Return the number of the bin that each element falls into.

    Args:
        x: array-like.
        bins: array-like of one axis: the edges, in rising or falling order.
        right: whether a bin contains its right edge rather than its left one.

    Returns:
        int32 Tensor of the shape of `x`: 0 before the first edge, ``len(bins)`` behind the last.

    Raises:
        ValueError: `bins` is no vector.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.digitize([0.5, 1.0, 9.0], [1.0, 2.0]))
        [0 1 2]
    """
    t, edges = promoted([tensor_of(x), tensor_of(bins)])
    if edges.ndim != 1:
        raise ArgumentValueError(f"digitize: got bins of shape {edges.shape}; wanted a vector")
    if edges.size == 0:
        return _ops.zeros(t.shape, dtype=int32)
    side = "left" if right else "right"
    rising = _ops.searchsorted(edges, t, side=side)
    falling = edges.size - _ops.searchsorted(_ops.flip(edges, (0,)), t, side=side)
    made: Tensor = _ops.where(_ops.less_equal(edges[0], edges[-1]), rising, falling)
    return made.astype(int32)


# ---- histograms ---------------------------------------------------------------------------------


def histogram_bin_edges(
    a: TensorLike,
    bins: TensorLike = 10,
    range: Sequence[float] | None = None,
    weights: TensorLike | None = None,
) -> Tensor:
    """Return the edges of the bins of a histogram.

    Args:
        a: array-like, which is flattened.
        bins: number of bins of equal width, or array-like of the edges.
        range: lowest and highest edge; None takes the smallest and the largest element.
        weights: array-like of the shape of `a`; it does not affect the edges.

    Returns:
        Tensor of one axis.

    Raises:
        ValueError: `bins` is less than 1, no vector or a string, or `range` is no range.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.histogram_bin_edges([0, 1, 5], 2))
        [0.  2.5 5. ]
    """
    x = tensor_of(a).reshape(-1)
    if weights is not None and tensor_of(weights).size != x.size:
        raise ArgumentValueError("histogram_bin_edges: got weights of another shape than a")
    if isinstance(bins, str):
        raise ArgumentValueError(
            f"histogram_bin_edges: got bins={bins!r}; wanted a number of bins or the edges"
        )
    if not isinstance(bins, int):
        edges = tensor_of(bins)
        if edges.ndim == 1:
            return edges
        if edges.ndim:
            raise ArgumentValueError(
                f"histogram_bin_edges: got bins of shape {edges.shape}; wanted a vector"
            )
        bins = int(edges)
    if bins < 1:
        raise ArgumentValueError(f"histogram_bin_edges: got bins={bins}; wanted at least 1")
    if range is not None:
        low, high = (float(limit) for limit in range)
        if not (low <= high and math.isfinite(low) and math.isfinite(high)):
            raise ArgumentValueError(f"histogram_bin_edges: got range={range}; wanted a range")
        wide = 0.5 if low == high else 0.0
        made: Tensor = linspace(low - wide, high + wide, bins + 1)
        return made
    if not x.size:
        return tensor_of(linspace(0.0, 1.0, bins + 1))
    first, last = (as_floating(t) for t in (amin(x), amax(x)))
    apart = _ops.where(_ops.equal(first, last), 0.5, 0.0)
    made = linspace(first - apart, last + apart, bins + 1)
    return made


def _bin_of(x: Tensor, edges: Tensor) -> Tensor:
    """Return the number of the bin that contains each element of `x`, or -1 if no bin does.

    `edges` are the ascending bounds of the bins. A bin includes its left edge but not its right
    one, except for the last bin, which includes both.
    """
    t, line = promoted([x, edges])
    index = _ops.searchsorted(line, t, side="right") - 1
    count = edges.size - 1
    index = _ops.where(_ops.equal(t, line[-1]), count - 1, index)
    return _ops.where(_ops.less(index, count), index, -1)


def _weights_of(weights: TensorLike | None, count: int) -> Tensor:
    if weights is None:
        return _ops.ones((count,), dtype=float32)
    found = as_floating(tensor_of(weights)).reshape(-1)
    if found.size != count:
        raise ArgumentValueError(
            f"histogram: got {found.size} weights for {count} elements; wanted one for each"
        )
    return found


def histogram(
    a: TensorLike,
    bins: TensorLike = 10,
    range: Sequence[float] | None = None,
    weights: TensorLike | None = None,
    density: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return how many elements fall into each bin.

    Args:
        a: array-like, which is flattened.
        bins: number of bins of equal width, or array-like of the edges.
        range: lowest and highest edge; None takes the smallest and the largest element.
        weights: array-like of the shape of `a` with the weight of each element; None is 1.
        density: whether to return a density, whose integral is 1, rather than counts.

    Returns:
        float32 Tensor of the counts, and Tensor of the edges, which is one longer.

    Raises:
        ValueError: `bins`, `range` or `weights` have values or shapes that do not fit.

    Examples:
        >>> import duograph.numpy as mnp
        >>> counts, edges = mnp.histogram([1, 2, 1], bins=[0, 1, 2, 3])
        >>> print(counts, edges)
        [0. 2. 1.] [0 1 2 3]
    """
    x = tensor_of(a).reshape(-1)
    edges = histogram_bin_edges(x, bins, range)
    counts = _totals(_weights_of(weights, x.size), _bin_of(x, edges), edges.size - 1)
    if density:
        counts = counts / _sum(counts) / with_dtype(diff(edges), counts.dtype)
    return counts, edges


def histogramdd(
    sample: TensorLike | Sequence[TensorLike],
    bins: int | Sequence[int | TensorLike] = 10,
    range: Sequence[Sequence[float] | None] | None = None,
    weights: TensorLike | None = None,
    density: bool = False,
) -> tuple[Tensor, list[Tensor]]:
    """Return how many points fall into each cell of a grid.

    Args:
        sample: Tensor of a point in each row, or a list of the coordinates along each axis.
        bins: number of bins along every axis, or for each axis a number or an array-like of edges.
        range: for each axis the lowest and highest edge, or None.
        weights: array-like with the weight of each point; None is 1.
        density: whether to return a density, whose integral is 1, rather than counts.

    Returns:
        float32 Tensor of the counts with an axis for each coordinate, and the list of the edges.

    Raises:
        ValueError: `bins`, `range` or `weights` have values or shapes that do not fit.

    Examples:
        >>> import duograph.numpy as mnp
        >>> counts, edges = mnp.histogramdd(mnp.array([[0, 0], [1, 1], [1, 1]]), bins=2)
        >>> print(counts)
        [[1. 0.]
         [0. 2.]]
    """
    columns = _coordinates(sample)
    rank = len(columns)
    each = [bins] * rank if isinstance(bins, int) else list(bins)
    limits = [None] * rank if range is None else list(range)
    if len(each) != rank or len(limits) != rank:
        raise ArgumentValueError(
            f"histogramdd: got bins or range for {len(each)} and {len(limits)} axes; wanted {rank}"
        )
    edges = [histogram_bin_edges(x, b, r) for x, b, r in zip(columns, each, limits, strict=True)]
    cell, outside = tensor_of(0), tensor_of(False)
    for x, line in zip(columns, edges, strict=True):
        index = _bin_of(x, line)
        cell = cell * (line.size - 1) + index
        outside = _ops.logical_or(outside, _ops.less(index, 0))
    shape = tuple(line.size - 1 for line in edges)
    values = _weights_of(weights, columns[0].size)
    counts = _totals(values, _ops.where(outside, -1, cell), math.prod(shape)).reshape(shape)
    if density:
        counts = counts / _sum(counts)
        for k, line in enumerate(edges):
            widths = with_dtype(diff(line), counts.dtype)
            counts = counts / widths.reshape((-1, *(1,) * (rank - k - 1)))
    return counts, edges


def _coordinates(sample: object) -> list[Tensor]:
    """Return a list with one tensor per axis: the coordinates of all points along that axis.

    `sample` is such a list already, or an array with one point per row.
    """
    if isinstance(sample, (list, tuple)):
        return [tensor_of(x).reshape(-1) for x in sample]
    points = tensor_of(sample)
    if points.ndim == 1:
        return [points]
    if points.ndim != 2:
        raise ArgumentValueError(
            f"histogramdd: got shape {points.shape}; wanted a point in each row"
        )
    return [points[:, k] for k in builtins.range(points.shape[1])]


def histogram2d(
    x: TensorLike,
    y: TensorLike,
    bins: int | Sequence[int | TensorLike] = 10,
    range: Sequence[Sequence[float] | None] | None = None,
    weights: TensorLike | None = None,
    density: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return how many points of a plane fall into each cell of a grid.

    Args:
        x: array-like of the first coordinates.
        y: array-like of the second coordinates.
        bins: number of bins or array-like of edges for both axes, or a pair of these.
        range: for each axis the lowest and highest edge, or None.
        weights: array-like with the weight of each point; None is 1.
        density: whether to return a density, whose integral is 1, rather than counts.

    Returns:
        float32 Tensor of the counts, and two Tensors of the edges.

    Raises:
        ValueError: `bins`, `range` or `weights` have values or shapes that do not fit.

    Examples:
        >>> import duograph.numpy as mnp
        >>> counts, rows, columns = mnp.histogram2d([0, 1, 1], [0, 1, 1], bins=2)
        >>> print(counts)
        [[1. 0.]
         [0. 2.]]
    """
    both = bins
    if not isinstance(bins, int) and len(bins) != 2:
        both = cast("Sequence[TensorLike]", [bins, bins])
    counts, edges = histogramdd([x, y], both, range, weights, density)
    return counts, edges[0], edges[1]
