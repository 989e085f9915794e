"""Counting and order statistics: histc, bincount, quantiles, confusion matrices, aminmax.

Users and metrics call them. Counts have no gradient; the gradient of a quantile goes to the
elements between which it is interpolated.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..dtype import (
    FLOATING,
    INTEGER,
    DTypeLike,
    as_dtype,
    float32,
    int32,
    int64,
    uint8,
)
from ..errors import ArgumentError, ArgumentValueError, DTypeError, ShapeError
from ..op import op
from ..tensor import Tensor
from ..types import TensorType
from .axes import axis_of
from .comparison import equal, isfinite, isnan, less
from .creation import cast, cast_to, fill, iota
from .elementwise import maximum, minimum
from .extremes import amax, amin
from .gather_scatter import gather_elements_by
from .logic import logical_not, select_by
from .methods import tensor_method
from .primitive import Primitive, primitive
from .reduction import reduce_all, reduce_any
from .rounding import floor
from .segments import unsorted_segment_sum
from .shape_primitives import reduce_sum, reshape_to, transpose_by
from .sorting import sort_by

__all__ = [
    "CompareAndBitpack", "ConfusionMatrix", "EqualCount", "HistogramFixedWidth", "Quantile",
    "aminmax", "bincount", "histc", "intopk", "nanmean", "nanquantile", "quantile",
]  # fmt: skip


# ---- histograms ----------------------------------------------------------------------------------


@op(name="histogram", dtypes=(*FLOATING, *INTEGER), differentiable=False, host_fallback=True)
def histogram_by(input: Tensor, bins: int, low: float, high: float):
    """Primitive op: int64 counts of the elements in `bins` equal bins from `low` to `high`.

    A bin includes its lower bound, and the last one also `high`. Elements outside the range are not
    counted. If low = high, the range is from the smallest to the largest element.
    """


@histogram_by.infer
def _(x, bins, low, high):
    if bins < 1:
        raise ArgumentValueError(f"histc: got bins={bins}; wanted at least 1")
    if not low <= high:
        raise ArgumentValueError(f"histc: got min={low} and max={high}; wanted min <= max")
    return TensorType.of((bins,), int64)


@histogram_by.reference
def _(x, bins, low, high):
    values = x.astype(np.float64).reshape(-1)
    if low == high and values.size:
        low, high = values.min(), values.max()
        if not np.isfinite([low, high]).all():
            raise ArgumentValueError(f"histc: got elements from {low} to {high}; wanted finite")
    if low == high:
        low, high = low - 1, high + 1
    inside = values[(values >= low) & (values <= high)]
    places = ((inside - low) * (bins / (high - low))).astype(np.int64)
    return np.bincount(np.minimum(places, bins - 1), minlength=bins)


@tensor_method("histc")
def histc(input: Tensor, bins: int = 100, min: float = 0.0, max: float = 0.0) -> Tensor:
    """Count elements in equal bins from `min` to `max` (`mindspore.ops.histc`).

    Args:
        input: Tensor of any shape; real.
        bins: number of bins.
        min, max: range of the bins; if both are equal, the range of the elements. Elements outside
            are not counted.

    Returns:
        Tensor (bins,) of the dtype of `input`.

    Raises:
        ValueError: bins below 1, min above max, or elements that are not finite without a range.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.histc(ms.Tensor([1.0, 1, 2, 2, 2, 5, 8]), bins=5, min=0, max=9))
        [2. 3. 1. 0. 1.]
    """
    return cast_to(histogram_by(input, bins, float(min), float(max)), input.dtype)


@primitive("Histogram(bins=100, min=0.0, max=0.0)(x)", op="histogram")
def _histogram(input: Tensor, bins: int, min: float, max: float) -> Tensor:
    return cast_to(histogram_by(input, bins, float(min), float(max)), int32)


class HistogramFixedWidth(Primitive):
    """Histogram whose first and last bin also count the elements outside the range.

    `HistogramFixedWidth(nbins, dtype="int32")(x, range)`

    Examples:
        >>> import duograph as ms
        >>> x = ms.Tensor([-1.0, 0.0, 1.5, 2.0, 5.0, 15.0])
        >>> print(ms.ops.HistogramFixedWidth(5)(x, ms.Tensor([0.0, 5.0])))
        [2 1 1 0 2]
    """

    def __init__(self, nbins: int, dtype: DTypeLike = "int32") -> None:
        super().__init__()
        if isinstance(nbins, bool) or not isinstance(nbins, int) or nbins < 1:
            raise ArgumentValueError(f"HistogramFixedWidth: got nbins={nbins!r}; wanted 1 or more")
        self.nbins, self.dtype = nbins, as_dtype(dtype)

    def __call__(self, x: Tensor, range: Tensor) -> Tensor:
        """Count elements of `x` in `nbins` bins of equal width between range[0] and range[1].

        Returns a 1-d tensor. Elements outside the range count for the first or last bin.
        """
        if range.shape != (2,):
            raise ShapeError(f"HistogramFixedWidth: got range of {range.shape}; wanted (2,)")
        wide, ends = cast_to(x, float32), cast_to(range, float32)
        place = (wide - ends[0]) / (ends[1] - ends[0]) * float(self.nbins)
        inside = maximum(minimum(floor(place), float(self.nbins - 1)), 0.0)
        flat = reshape_to(cast_to(inside, int64), (x.size,))
        ones = fill((x.size,), 1, int64)
        return cast_to(unsorted_segment_sum(ones, flat, self.nbins), self.dtype)


@tensor_method("bincount")
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Count how often each number occurs, or sum its weights (`mindspore.ops.bincount`).

    The length of the result depends on the largest number, so compiled functions refuse it.

    Args:
        input: Tensor of one axis, of non-negative integers.
        weights: Tensor of the same shape; it has a gradient.
        minlength: least length of the result.

    Returns:
        Tensor of at least `minlength` elements, float32, or of the floating dtype of `weights`.

    Raises:
        ValueError: other axes, a negative number, weights of another shape.
        TypeError: elements that are not integers.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.bincount(ms.Tensor([2, 4, 1, 0, 0]), minlength=7))
        [2. 1. 1. 0. 1. 0. 0.]
    """
    if input.dtype.kind not in "iu":
        raise DTypeError(f"bincount: got {input.dtype.name}; wanted integers")
    if input.ndim != 1:
        raise ShapeError(f"bincount: got shape {input.shape}; wanted one axis")
    if isinstance(minlength, bool) or not isinstance(minlength, int) or minlength < 0:
        raise ArgumentValueError(f"bincount: got minlength={minlength!r}; wanted an int >= 0")
    count = 0
    if input.size:
        if int(amin(input).item()) < 0:
            raise ArgumentValueError("bincount: got a negative number; wanted 0 and more")
        count = int(amax(input).item()) + 1
    if weights is None:
        weights = fill(input.shape, 1, float32)
    elif not weights.dtype.is_floating:
        weights = cast_to(weights, float32)
    if weights.shape != input.shape:
        raise ShapeError(f"bincount: got weights of shape {weights.shape}; wanted {input.shape}")
    size = max(count, minlength)
    if not size:
        return fill((0,), 0, weights.dtype)
    return unsorted_segment_sum(weights, input, size)


@primitive("Bincount()(array, size, weights)")
def _bincount(input: Tensor, size: Tensor | int, weights: Tensor) -> Tensor:
    """Count the numbers 0 to size - 1 in `input`; with `weights`, sum the weights instead.

    Returns a tensor (size,). An empty tensor of weights means no weights. Larger numbers are
    ignored.
    """
    length = int(size.item()) if isinstance(size, Tensor) else size
    flat = reshape_to(input, (input.size,))
    w = reshape_to(weights, (input.size,)) if weights.size else fill((input.size,), 1, float32)
    outside = logical_not(less(flat, length))
    return unsorted_segment_sum(w, select_by(outside, -1, flat), length)


# ---- quantiles -----------------------------------------------------------------------------------


def _last(x: Tensor, axis: int | None, name: str) -> tuple[Tensor, tuple[int, ...], int]:
    """Move an axis of `x` to the end; if `axis` is None, flatten `x`.

    Returns (the tensor, the sizes of its other axes, the axis's former number or -1 if it was
    None). `name` is the user's function in errors.
    """
    if axis is None:
        return reshape_to(x, (x.size,)), (), -1
    at = axis_of(name, axis, x.ndim)
    if x.ndim == 0:
        return reshape_to(x, (1,)), (), 0
    order = (*[i for i in range(x.ndim) if i != at], at)
    moved = transpose_by(x, order) if order != tuple(range(x.ndim)) else x
    return moved, moved.shape[:-1], at


def _quantile(
    name: str, input: Tensor, q: Tensor | float, axis: int | None, keepdims: bool, skip: bool
) -> Tensor:
    if not input.dtype.is_floating:
        raise DTypeError(f"{name}: got {input.dtype.name}; wanted a floating dtype")
    if not isinstance(q, Tensor):
        if isinstance(q, bool) or not isinstance(q, (int, float, np.number)):
            raise ArgumentError(f"{name}: got q={q!r}; wanted a number or Tensor")
        if not 0 <= q <= 1:
            raise ArgumentValueError(f"{name}: got q={q}; wanted 0 to 1")
        q = cast(Tensor(np.array(float(q))), input.dtype)
    if q.ndim > 1:
        raise ShapeError(f"{name}: got q of shape {q.shape}; wanted at most one axis")
    x, lead, at = _last(input, axis, name)
    n = x.shape[-1]
    if n == 0:
        raise ShapeError(f"{name}: got shape {input.shape}; wanted elements along the axis")
    last = x.ndim - 1
    ordered = sort_by(x, last, False)[0]
    nan = isnan(x)
    found = cast_to(reduce_sum(cast_to(nan, int64), (last,), True), x.dtype)
    highest = maximum((n - 1) - found, 0.0) if skip else fill((*lead, 1), float(n - 1), x.dtype)
    m = q.size
    place = highest * reshape_to(cast(q, x.dtype), (*[1] * len(lead), m))
    below = floor(place)
    weight = place - below
    above = minimum(below + 1.0, highest)
    low = gather_elements_by(ordered, cast_to(below, int64), last)
    high = gather_elements_by(ordered, cast_to(above, int64), last)
    part = low + select_by(weight == 0, 0.0, high - low) * weight
    if not skip:
        part = select_by(reduce_any(nan, (last,), True), float("nan"), part)
    moved = transpose_by(part, (last, *range(last))) if last else part  # (m, *lead)
    kept: tuple[int, ...] = lead
    if keepdims:
        kept = (1,) * input.ndim if axis is None else (*lead[:at], 1, *lead[at:])
    return reshape_to(moved, kept if q.ndim == 0 else (m, *kept))


@tensor_method("quantile")
def quantile(
    input: Tensor, q: Tensor | float, axis: int | None = None, keepdims: bool = False
) -> Tensor:
    """Return the quantiles along an axis, interpolated linearly (`mindspore.ops.quantile`).

    Args:
        input: Tensor, floating.
        q: number in [0, 1], or Tensor of at most one axis.
        axis: int, or None for all elements.
        keepdims: whether to keep the axis, with size 1.

    Returns:
        Tensor without the axis; the axis of `q`, if it has one, comes first. A quantile of
        elements with a NaN is NaN.

    Raises:
        ValueError: q outside of [0, 1] or of two axes, or an axis that is out of range or empty.
        TypeError: elements that are not floating.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.quantile(ms.Tensor([1.0, 2.0, 4.0]), 0.75))
        3.0
    """
    return _quantile("quantile", input, q, axis, keepdims, False)


@tensor_method("nanquantile")
def nanquantile(
    input: Tensor, q: Tensor | float, axis: int | None = None, keepdims: bool = False
) -> Tensor:
    """Return the quantiles of the elements that are not NaN (`mindspore.ops.nanquantile`).

    Args:
        input, q, axis, keepdims: the arguments of `quantile`.

    Returns:
        Tensor of the shape of `quantile`; NaN where all elements are NaN.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.nanquantile(ms.Tensor([1.0, float("nan"), 4.0]), 0.5))
        2.5
    """
    return _quantile("nanquantile", input, q, axis, keepdims, True)


class Quantile(Primitive):
    """Quantiles along an axis: `Quantile(dim=None, keep_dims=False, ignore_nan=False)(x, q)`."""

    def __init__(
        self, dim: int | None = None, keep_dims: bool = False, ignore_nan: bool = False
    ) -> None:
        super().__init__()
        self.dim, self.keep_dims, self.ignore_nan = dim, keep_dims, ignore_nan

    def __call__(self, x: Tensor, q: Tensor | float) -> Tensor:
        """Return the quantiles of `x`, for probabilities `q`, along the constructor's axis `dim`.

        If `dim` is None, they are the quantiles of all elements.
        """
        return _quantile("Quantile", x, q, self.dim, self.keep_dims, self.ignore_nan)


@tensor_method("nanmean")
def nanmean(
    input: Tensor,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the mean of the elements that are not NaN (`mindspore.ops.nanmean`).

    Args:
        input: Tensor, floating; integers are converted to float32.
        axis: int or tuple of ints; default all.
        keepdims: whether to keep the axes, with size 1.
        dtype: dtype of the result.

    Returns:
        Tensor without the axes; NaN where all elements are NaN.

    Raises:
        ValueError: an axis out of range.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.nanmean(ms.Tensor([1.0, float("nan"), 4.0])))
        2.5
    """
    x = input if input.dtype.kind in "fc" else cast_to(input, float32)
    if dtype is not None:
        x = cast(x, dtype)
    missing = isnan(x)
    total = select_by(missing, 0.0, x).sum(axis, keepdims=keepdims)
    count = cast_to(logical_not(missing), x.dtype).sum(axis, keepdims=keepdims)
    return total / count


# ---- other counts --------------------------------------------------------------------------------


@tensor_method("aminmax")
def aminmax(
    input: Tensor, *, axis: int | None = 0, keepdims: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the smallest and the largest elements along an axis (`mindspore.ops.aminmax`).

    Args:
        input: Tensor, real.
        axis: int, or None for all elements.
        keepdims: whether to keep the axis, with size 1.

    Returns:
        (smallest, largest) without the axis, of the elements that are not NaN; NaN if all are.

    Raises:
        ValueError: an axis out of range.

    Examples:
        >>> import duograph as ms
        >>> print(*ms.ops.aminmax(ms.Tensor([3.0, 1.0, 2.0])))
        1.0 3.0
    """
    if not input.dtype.is_floating:
        return amin(input, axis, keepdims), amax(input, axis, keepdims)
    missing = isnan(input)
    axes = tuple(range(input.ndim)) if axis is None else (axis_of("aminmax", axis, input.ndim),)
    alone = reduce_all(missing, axes if input.ndim else (), keepdims)
    low = amin(select_by(missing, float("inf"), input), axis, keepdims)
    high = amax(select_by(missing, float("-inf"), input), axis, keepdims)
    return select_by(alone, float("nan"), low), select_by(alone, float("nan"), high)


class ConfusionMatrix(Primitive):
    """Count pairs of classes: `ConfusionMatrix(num_classes, dtype="int32")(labels, predictions)`.

    Examples:
        >>> import duograph as ms
        >>> y = ms.Tensor([0, 1, 1])
        >>> print(ms.ops.ConfusionMatrix(2)(y, ms.Tensor([0, 1, 0])))
        [[1 0]
         [1 1]]
    """

    def __init__(self, num_classes: int, dtype: DTypeLike = "int32") -> None:
        super().__init__()
        if isinstance(num_classes, bool) or not isinstance(num_classes, int) or num_classes < 1:
            raise ArgumentValueError(f"ConfusionMatrix: got {num_classes!r}; wanted 1 or more")
        self.num_classes, self.dtype = num_classes, as_dtype(dtype)

    def __call__(
        self, labels: Tensor, predictions: Tensor, weights: Tensor | None = None
    ) -> Tensor:
        """Return the matrix (classes, classes) of counts.

        The entry at row i, column j counts the items with label i and prediction j. If `weights` is
        not None, it is the sum of the weights of these items instead.
        """
        n = self.num_classes
        cells = cast_to(labels, int64) * n + cast_to(predictions, int64)
        w = fill(labels.shape, 1, int64) if weights is None else weights
        return cast(reshape_to(unsorted_segment_sum(w, cells, n * n), (n, n)), self.dtype)


class EqualCount(Primitive):
    """Number of equal elements of two tensors of the same shape: `EqualCount()(x, y)`."""

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the number of positions at which `x` and `y` are equal, as int32 of shape (1,)."""
        if x.shape != y.shape or x.dtype is not y.dtype:
            raise ShapeError(
                f"EqualCount: got {x.shape} {x.dtype.name} and {y.shape} {y.dtype.name}; wanted "
                "the same"
            )
        same = cast_to(x == y, int32)
        return reshape_to(cast_to(reduce_sum(same, tuple(range(x.ndim)), False), int32), (1,))


class CompareAndBitpack(Primitive):
    """Comparison with a threshold, 8 results to a byte: `CompareAndBitpack()(x, threshold)`.

    Examples:
        >>> import duograph as ms
        >>> x = ms.Tensor([1.0, 2, 3, 4, 5, 6, 7, 8])
        >>> print(ms.ops.CompareAndBitpack()(x, ms.Tensor(3.0)))
        [31]
    """

    def __call__(self, x: Tensor, threshold: Tensor) -> Tensor:
        """Pack the bits ``x > threshold`` into uint8, eight elements of the last axis to a byte.

        The first of the eight is the highest bit.
        """
        if x.ndim < 1 or x.shape[-1] % 8:
            raise ShapeError(
                f"CompareAndBitpack: got shape {x.shape}; wanted a last axis of a multiple of 8"
            )
        above: Tensor = x > threshold
        bits = reshape_to(cast_to(above, int32), (*x.shape[:-1], x.shape[-1] // 8, 8))
        packed = reduce_sum(bits * Tensor(np.array([128, 64, 32, 16, 8, 4, 2, 1], np.int32)),
                            (x.ndim,), False)  # fmt: skip
        return cast_to(packed, uint8)


@primitive("InTopK(k)(x1, x2)")
def intopk(x1: Tensor, x2: Tensor, k: int) -> Tensor:
    """Return whether the score of a given class is among the k highest (`mindspore.ops.intopk`).

    Args:
        x1: scores (n, classes), floating.
        x2: class of each row (n,), integer.
        k: number of highest scores that count.

    Returns:
        bool Tensor (n,); False for a class out of range or a score that is not finite.

    Raises:
        ValueError: other shapes.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.intopk(ms.Tensor([[1.0, 8, 5, 2, 7]]), ms.Tensor([1]), 3))
        [ True]
    """
    if x1.ndim != 2 or x2.shape != x1.shape[:1]:
        raise ShapeError(f"intopk: got shapes {x1.shape} and {x2.shape}; wanted (n, c) and (n,)")
    n, c = x1.shape
    index = cast_to(x2, int64)
    good = logical_not(less(index, 0)) & less(index, c)
    own_class = equal(iota((n, c), 1, int64), reshape_to(index, (n, 1)))
    own = reduce_sum(select_by(own_class, x1, 0.0), (1,), True)
    higher = reduce_sum(cast_to(x1 > own, int64), (1,), False)
    finite = reshape_to(isfinite(own), (n,))
    return good & finite & less(higher, k)
