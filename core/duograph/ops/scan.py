"""Cumulative sums, products, extremes and logsumexp along an axis.

Users call the functions, other op families the primitives. Every backend must support exclusive and
reverse scans, since gradients use them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..dtype import (
    BOOL,
    FLOATING,
    NUMERIC,
    REAL,
    DTypeLike,
    as_dtype,
    bool_,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
)
from ..errors import ArgumentError, ShapeError
from ..host_arrays import Array
from ..op import op
from ..op_signature import Axis
from ..tensor import Tensor
from ..types import TensorType
from . import creation
from .arguments import tensor_of
from .axes import axis_of
from .comparison import equal, less
from .creation import cast_to, iota
from .elementwise import add, maximum, minimum, mul, neg
from .exponential import exp, log, log1p
from .gather_scatter import scatter_elements_add_by
from .linalg import widened
from .logic import logical_and, logical_not, logical_or, select_by
from .methods import tensor_method
from .movement import concat_by, identity, slice_by
from .pointwise import conjugate
from .primitive import primitive
from .shape_primitives import reduce_sum, reshape_to

__all__ = ["cumsum", "cumprod", "cummax", "cummin", "logcumsumexp", "trapz"]


# ---- sums and products ---------------------------------------------------------------------------


@op(name="cumsum", dtypes=NUMERIC)
def scan_sum(input: Tensor, axis: Axis, exclusive: bool, reverse: bool):
    """Primitive op: cumulative sum along one axis.

    With `exclusive`, an element is not part of its own sum; with `reverse`, the sums begin at the
    end of the axis.
    """


@op(name="cumprod", dtypes=NUMERIC)
def scan_prod(input: Tensor, axis: Axis, exclusive: bool, reverse: bool):
    """Primitive op: cumulative product along one axis.

    With `exclusive`, an element is not part of its own product; with `reverse`, the products begin
    at the end of the axis.
    """


def _same(x, axis, exclusive, reverse):
    return x


scan_sum.infer(_same)
scan_prod.infer(_same)


def _scanned(
    accumulate: Callable[..., Array],
    x: Array,
    axis: int,
    exclusive: bool,
    reverse: bool,
    neutral: int,
) -> Array:
    dtype = x.dtype
    if dtype.itemsize == 2 and dtype.kind in "fV":
        x = x.astype(np.float32)
    x = np.flip(x, axis) if reverse else x
    out = accumulate(x, axis=axis, dtype=x.dtype)
    if exclusive:
        first = np.full_like(np.take(out, [0] if out.shape[axis] else [], axis), neutral)
        rest = np.take(out, range(out.shape[axis] - 1), axis) if out.shape[axis] else first
        out = np.concatenate([first, rest], axis)
    return (np.flip(out, axis) if reverse else out).astype(dtype)


@scan_sum.reference
def _(x, axis, exclusive, reverse):
    return _scanned(np.cumsum, x, axis, exclusive, reverse, 0)


@scan_prod.reference
def _(x, axis, exclusive, reverse):
    return _scanned(np.cumprod, x, axis, exclusive, reverse, 1)


def _moved(x: Tensor, axis: int, by: int, reverse: bool, fill: object) -> Tensor:
    """Shift `x` by `by` elements towards the end of an axis, or the beginning if `reverse`.

    The shape stays the same: elements beyond the edge are dropped, and the gap is filled with
    `fill`.
    """
    n = x.shape[axis]
    begin, end = [0] * x.ndim, list(x.shape)
    if reverse:
        begin[axis] = by
    else:
        end[axis] = n - by
    shape = (*x.shape[:axis], by, *x.shape[axis + 1 :])
    rest = slice_by(x, tuple(begin), tuple(end), (1,) * x.ndim)
    pad = creation.fill(shape, fill, x.dtype)
    return concat_by((rest, pad) if reverse else (pad, rest), axis)


def _doubling(
    combine: Callable[[Tensor, Tensor], Tensor],
    x: Tensor,
    axis: int,
    exclusive: bool,
    reverse: bool,
    neutral: object,
) -> Tensor:
    """Return the cumulative results of `combine` along an axis, computed in log2(n) rounds.

    Round k combines elements that are 2**k apart.

    Args:
        combine: the associative operation, such as addition.
        exclusive: whether an element is left out of its own result.
        reverse: whether to begin at the end of the axis.
        neutral: neutral element of `combine`.

    Source: Hillis and Steele, 1986.
    """
    n = x.shape[axis]
    if exclusive and n:
        x = _moved(x, axis, 1, reverse, neutral)
    by = 1
    while by < n:
        x = combine(x, _moved(x, axis, by, reverse, neutral))
        by *= 2
    return x


@scan_sum.decompose
def _(input, axis, exclusive, reverse):
    if input.shape[axis] < 2 and not exclusive:
        return identity(input)
    return _doubling(add, input, axis, exclusive, reverse, 0)


@scan_prod.decompose
def _(input, axis, exclusive, reverse):
    if input.shape[axis] < 2 and not exclusive:
        return identity(input)
    return _doubling(mul, input, axis, exclusive, reverse, 1)


@scan_sum.bprop
def _(x, out, dout, axis, exclusive, reverse):
    return (scan_sum(dout, axis, exclusive, not reverse),)


@scan_prod.bprop
def _(x, out, dout, axis, exclusive, reverse):
    # Nonzero elements: the sum of dout * out from here on, divided by x. At the first zero: the
    # same sum of products in which that zero is 1. At later zeros all products are 0.
    zero, one = creation.fill((), 0, x.dtype), creation.fill((), 1, x.dtype)
    is_zero = equal(x, zero)
    count = scan_sum(cast_to(is_zero, int32), axis, False, reverse)
    first = logical_and(is_zero, equal(count, creation.fill((), 1, int32)))
    filled = select_by(first, one, x)
    lifted = scan_prod(filled, axis, exclusive, reverse)
    at_zero = scan_sum(dout * conjugate(lifted), axis, exclusive, not reverse)
    elsewhere = scan_sum(dout * conjugate(out), axis, exclusive, not reverse)
    elsewhere = elsewhere / conjugate(select_by(is_zero, one, x))
    return (select_by(first, at_zero, select_by(is_zero, zero, elsewhere)),)


# ---- extremes ------------------------------------------------------------------------------------


@op(name="cummax", dtypes=BOOL + REAL)
def scan_max(input: Tensor, axis: Axis):
    """Primitive op: cumulative maximum along one axis, and its int64 index.

    NaN counts as the maximum; among equal elements, the last is taken.
    """


@op(name="cummin", dtypes=BOOL + REAL)
def scan_min(input: Tensor, axis: Axis):
    """Primitive op: cumulative minimum along one axis, and its int64 index.

    NaN counts as the minimum; among equal elements, the last is taken.
    """


def _with_index(x, axis):
    return x, TensorType.of(x.shape, int64)


scan_max.infer(_with_index)
scan_min.infer(_with_index)


def _extremes(x: Array, axis: int, better: Callable[[Array, Array], Array]) -> tuple[Array, Array]:
    values, index = np.array(x), np.zeros(x.shape, np.int64)
    v, i = np.moveaxis(values, axis, 0), np.moveaxis(index, axis, 0)
    for k in range(1, v.shape[0]):
        before, now = v[k - 1], v[k]
        # NaN wins over a number; of two NaN the later wins
        take = (now != now) | (better(now, before) & (before == before))
        v[k] = np.where(take, now, before)
        i[k] = np.where(take, k, i[k - 1])
    return values, index


@scan_max.reference
def _(x, axis):
    return _extremes(x, axis, np.greater_equal)


@scan_min.reference
def _(x, axis):
    return _extremes(x, axis, np.less_equal)


def _pairwise(x: Tensor, axis: int, largest: bool) -> tuple[Tensor, Tensor]:
    """Return cumulative maxima (or minima, unless `largest`) and their indices.

    They are computed in log2(n) rounds; round k combines elements 2**k apart.
    """
    n = x.shape[axis]
    index = iota(x.shape, axis, int64)
    by = 1
    while by < n:
        before = _moved(x, axis, by, False, 0)
        before_index = _moved(index, axis, by, False, -1)
        # keep the later element unless the earlier one is better
        worse = less(x, before) if largest else less(before, x)
        if x.dtype.is_floating:
            numbers = logical_and(equal(x, x), equal(before, before))
            earlier_nan = logical_and(logical_not(equal(before, before)), equal(x, x))
            worse = logical_or(logical_and(worse, numbers), earlier_nan)
        take = logical_and(worse, less(creation.fill((), -1, int64), before_index))
        x, index = select_by(take, before, x), select_by(take, before_index, index)
        by *= 2
    return x, index


@scan_max.decompose
def _(input, axis):
    x, index = _pairwise(cast_to(input, int32) if input.dtype in BOOL else input, axis, True)
    return (x if x.dtype is input.dtype else cast_to(x, input.dtype)), index


@scan_min.decompose
def _(input, axis):
    x, index = _pairwise(cast_to(input, int32) if input.dtype in BOOL else input, axis, False)
    return (x if x.dtype is input.dtype else cast_to(x, input.dtype)), index


def _to_source(x, out, dout, axis):
    return (scatter_elements_add_by(creation.fill(x.shape, 0, x.dtype), out[1], dout[0], axis),)


scan_max.bprop(_to_source)
scan_min.bprop(_to_source)


# ---- public functions ----------------------------------------------------------------------------


def _arguments(
    name: str, x: object, axis: object, dtype: DTypeLike | None, dim: Mapping[str, object]
) -> tuple[Tensor, int | None]:
    if not isinstance(x, Tensor):
        raise ArgumentError(f"{name}: got {type(x).__name__} for the input; wanted a Tensor")
    for key, value in dim.items():
        if key not in ("axis", "dim"):
            raise ArgumentError(f"{name}: got the unknown argument {key!r}")
        axis = value
    if dtype is not None:
        target = as_dtype(dtype)
        x = x if x.dtype is target else cast_to(x, target)
    return x, None if axis is None else axis_of(name, axis, x.ndim)


def _line(x: Tensor, axis: int | None, run: Callable[[Tensor, int], Any]) -> Any:
    """Return ``run(x, axis)`` for a cumulative function `run`.

    If `axis` is None, `x` is flattened. A 0-d tensor is treated as a 1-d tensor of one element, and
    the results are 0-d again.
    """
    if axis is None:
        return run(reshape_to(x, (x.size,)), 0)
    if x.ndim == 0:
        found = run(reshape_to(x, (1,)), 0)
        return (
            tuple(reshape_to(f, ()) for f in found)
            if isinstance(found, tuple)
            else reshape_to(found, ())
        )
    return run(x, axis)


@tensor_method("cumsum")
def _tensor_cumsum(
    self: Tensor,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    **dim: object,
) -> Tensor:
    """Return the running sum along an axis, or of all elements if it is None; see `ops.cumsum`.

    Without `dtype`, sums of bool and small integers are int32.

    Examples:
        >>> import duograph as ms
        >>> ms.Tensor([True, True]).cumsum(0)
        Tensor(shape=[2], dtype=Int32, value= [1, 2])
    """
    if dtype is None and self.dtype in (bool_, int8, int16, uint8, uint16):
        dtype = int32
    if axis is None and not any(n is not None for n in dim.values()):
        self, axis = reshape_to(self, (self.size,)), 0
    return cumsum(self, axis, dtype, **dim)


def cumsum(
    x: Tensor,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    **dim: object,
) -> Tensor:
    """Return the running sum along an axis (`mindspore.ops.cumsum`).

    Args:
        x: Tensor of any shape; bool is converted to int64.
        axis: int, also spelled `dim`.
        dtype: dtype to which `x` is cast first.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        TypeError: there is no axis.
        ValueError: an axis out of range.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.cumsum(ms.Tensor([1.0, 2.0, 3.0]), 0))
        [1. 3. 6.]
    """
    x, axis = _arguments("cumsum", x, axis, dtype, dim)
    if axis is None:
        raise ArgumentError("cumsum: got no axis; wanted an int")
    if x.dtype in BOOL:
        x = cast_to(x, int64)
    return _line(x, axis, lambda t, i: scan_sum(t, i, False, False))


@tensor_method("cumprod")
def cumprod(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    **axis: object,
) -> Tensor:
    """Return the running product along an axis (`mindspore.ops.cumprod`).

    Args:
        input: Tensor of any shape; bool and integers are converted to int64.
        dim: int; None means along the flattened tensor. Also spelled `axis`.
        dtype: dtype to which `input` is cast first.

    Returns:
        Tensor of the shape of `input`. The gradient is also correct where elements are 0.

    Raises:
        ValueError: an axis out of range.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.cumprod(ms.Tensor([1.0, 2.0, 3.0]), 0))
        [1. 2. 6.]
    """
    x, along = _arguments("cumprod", input, dim, dtype, axis)
    if dtype is None and x.dtype.kind in "biu" and x.dtype is not int64:
        x = cast_to(x, int64)
    return _line(x, along, lambda t, i: scan_prod(t, i, False, False))


@primitive("Cummax(axis)(x)", op="cummax")
@tensor_method("cummax")
def cummax(input: Tensor, axis: int | Sequence[int] = 0, **dim: object) -> tuple[Tensor, Tensor]:
    """Return the largest element so far along an axis, and its index (`mindspore.ops.cummax`).

    Args:
        input: Tensor of any shape; any dtype but complex.
        axis: int. Also spelled `dim`.

    Returns:
        (values, int64 indices). NaN counts as the largest number; among
        equal elements, the last is taken.

    Raises:
        ValueError: an axis out of range.

    Examples:
        >>> import duograph as ms
        >>> print(*ms.ops.cummax(ms.Tensor([1.0, 3.0, 2.0]), 0))
        [1. 3. 3.] [0 1 1]
    """
    x, along = _arguments("cummax", input, axis, None, dim)
    return _line(x, along, scan_max)


@primitive("Cummin(axis)(x)", op="cummin")
@tensor_method("cummin")
def cummin(input: Tensor, axis: int | Sequence[int] = 0, **dim: object) -> tuple[Tensor, Tensor]:
    """Return the smallest element so far along an axis, and its index (`mindspore.ops.cummin`).

    Args:
        input: Tensor of any shape; any dtype but complex.
        axis: int. Also spelled `dim`.

    Returns:
        (values, int32 indices). NaN counts as the smallest number; among equal elements, the last
        is taken.

    Raises:
        ValueError: an axis out of range.

    Examples:
        >>> import duograph as ms
        >>> print(*ms.ops.cummin(ms.Tensor([2.0, 1.0, 3.0]), 0))
        [2. 1. 1.] [0 1 1]
    """
    x, along = _arguments("cummin", input, axis, None, dim)
    values, indices = _line(x, along, scan_min)
    return values, cast_to(indices, int32)


def _log_sum(x: Tensor, y: Tensor) -> Tensor:
    """Return log(exp(x) + exp(y)) without overflow, also for infinities."""
    high, low = maximum(x, y), minimum(x, y)
    apart = select_by(equal(low, high), creation.fill((), 0.0, x.dtype), low - high)
    return high + log1p(exp(apart))


@op(name="logcumsumexp", dtypes=FLOATING)
def scan_logsumexp(input: Tensor, axis: Axis, reverse: bool):
    """Composite op: logarithm of the cumulative sum of exp along one axis.

    With `reverse`, the sums begin at the end of the axis.
    """
    x = widened(input)
    out = _doubling(_log_sum, x, axis, False, reverse, float("-inf"))
    return out if out.dtype is input.dtype else cast_to(out, input.dtype)


@scan_logsumexp.infer
def _(x, axis, reverse):
    return x


@scan_logsumexp.bprop
def _(x, out, dout, axis, reverse):
    # the sum over k of dout[k] * exp(x - out[k]), computed by logarithms to avoid overflow
    never = creation.fill((), float("-inf"), x.dtype)
    parts = []
    for share in (dout, neg(dout)):
        positive = less(creation.fill((), 0, x.dtype), share)
        size = log(select_by(positive, share, creation.fill((), 1, x.dtype))) - out
        total = scan_logsumexp(select_by(positive, size, never), axis, not reverse)
        parts.append(exp(total + x))
    return (parts[0] - parts[1],)


@tensor_method("logcumsumexp")
def logcumsumexp(input: Tensor, axis: int) -> Tensor:
    """Return the logarithm of the running sum of exp along an axis (`mindspore.ops.logcumsumexp`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.logcumsumexp(ms.Tensor([0.0, 0.0]), 0))
        [0.        0.6931472]
    """
    x, along = _arguments("logcumsumexp", input, axis, None, {})
    return _line(x, along, lambda t, i: scan_logsumexp(t, i, False))


def trapz(y: Tensor, x: Tensor | None = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """Return the integral by the trapezoidal rule (`mindspore.ops.trapz`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.trapz(ms.Tensor([1.0, 2.0, 3.0])))
        4.0
    """
    axis = axis_of("trapz", dim, y.ndim)
    if not y.ndim:
        raise ShapeError("trapz: got y of shape (); wanted at least one axis")
    n = y.shape[axis]

    def part(t: Tensor, begin: int, end: int, along: int) -> Tensor:
        low, high = [0] * t.ndim, list(t.shape)
        low[along], high[along] = begin, end
        return slice_by(t, tuple(low), tuple(high), (1,) * t.ndim)

    pairs = (part(y, 0, n - 1, axis) + part(y, 1, n, axis)) * 0.5
    if x is None:
        return reduce_sum(pairs, (axis,), False) * dx
    if tensor_of("trapz", "x", x).ndim == 1:
        x = reshape_to(x, (x.shape[0], *[1] * (y.ndim - 1 - axis)))
        along = 0
    else:
        along = axis
    m = x.shape[along]
    return reduce_sum(pairs * (part(x, 1, m, along) - part(x, 0, m - 1, along)), (axis,), False)
