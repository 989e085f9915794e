"""Cumulative sums, differences, integrals, interpolation and convolution of `duograph.numpy`.

Users call them as `duograph.numpy.NAME`. All are made of ops, so gradients flow through them and
they compile; none may read the value of a Tensor.
"""

from __future__ import annotations

import math
from typing import Any

from .. import ops as _ops
from ..dtype import DTypeLike, int32, uint8, uint16
from ..errors import ArgumentValueError
from ..host_arrays import shape_tuple
from ..tensor import Tensor
from .operands import (
    Ints,
    TensorLike,
    along,
    as_floating,
    axis_of,
    pair,
    promoted,
    tensor_of,
    widened,
    with_dtype,
)
from .reductions import sum as _sum

__all__ = [
    "convolve", "correlate", "cumprod", "cumsum", "diff", "ediff1d", "gradient", "interp",
    "nancumsum", "trapz", "unwrap",
]  # fmt: skip


def cumsum(a: TensorLike, axis: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """Return, for each element, the sum of all elements up to it along an axis.

    Args:
        a: array-like.
        axis: the axis; None takes the flattened elements.
        dtype: element type of the result; None is that of `a`, and int32 for smaller integers.

    Returns:
        Tensor.

    Raises:
        ValueError: the axis is out of range.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.cumsum([1, 2, 3]))
        [1 3 6]
    """
    x = tensor_of(a)
    x = with_dtype(x.astype(int32) if x.dtype in (uint8, uint16) else widened(x), dtype)
    return _ops.cumsum(x.reshape(-1) if axis is None else x, 0 if axis is None else axis)


def cumprod(a: TensorLike, axis: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """Return, for each element, the product of all elements up to it along an axis.

    Args:
        a: array-like.
        axis: the axis; None takes the flattened elements.
        dtype: element type of the result; None is that of `a`, with at least 32 bits.

    Returns:
        Tensor.

    Raises:
        ValueError: the axis is out of range.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.cumprod([1, 2, 3]))
        [1 2 6]
    """
    x = with_dtype(widened(tensor_of(a)), dtype)
    return _ops.cumprod(x.reshape(-1) if axis is None else x, 0 if axis is None else axis)


def nancumsum(a: TensorLike, axis: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """Return, for each element, the sum of all elements up to it along an axis; NaN counts as 0.

    Args:
        a: array-like.
        axis: the axis; None takes the flattened elements.
        dtype: element type of the result; None is that of `a`, with at least 32 bits.

    Returns:
        Tensor.

    Raises:
        ValueError: the axis is out of range.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.nancumsum([1.0, mnp.nan, 3.0]))
        [1. 1. 4.]
    """
    x = tensor_of(a)
    if x.dtype.kind not in "biu":
        x = _ops.where(_ops.isnan(x), 0, x)
    return cumsum(x, axis, dtype)


# ---- differences --------------------------------------------------------------------------------


def diff(
    a: TensorLike,
    n: int = 1,
    axis: int = -1,
    prepend: TensorLike | None = None,
    append: TensorLike | None = None,
) -> Tensor:
    """Return the differences of neighbours along an axis.

    Args:
        a: array-like of at least one axis.
        n: how many times differences are taken.
        axis: the axis.
        prepend: number or array-like that is put in front of `a`; None for nothing.
        append: number or array-like that is put behind `a`; None for nothing.

    Returns:
        Tensor; the axis is `n` shorter.

    Raises:
        ValueError: `n` is negative, or the axis is out of range.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.diff([1, 3, 6]))
        [2 3]
    """
    if n < 0:
        raise ArgumentValueError(f"diff: got n={n}; wanted at least 0")
    x = tensor_of(a)
    own_axis = axis_of("diff", axis, x.ndim)
    parts = []
    for part in (prepend, x, append):
        if part is None:
            continue
        t = tensor_of(part)
        if t.ndim == 0:
            t = _ops.broadcast_to(t, (*x.shape[:own_axis], 1, *x.shape[own_axis + 1 :]))
        parts.append(t)
    x = _ops.concat(promoted(parts), own_axis) if len(parts) > 1 else x
    for _ in range(n):
        later, earlier = along(x, own_axis, slice(1, None)), along(x, own_axis, slice(None, -1))
        x = _ops.not_equal(later, earlier) if x.dtype.kind == "b" else later - earlier
    return x


def ediff1d(
    ary: TensorLike, to_end: TensorLike | None = None, to_begin: TensorLike | None = None
) -> Tensor:
    """Return the differences of neighbours among the flattened elements.

    Args:
        ary: array-like.
        to_end: array-like that is put behind the differences.
        to_begin: array-like that is put in front of them.

    Returns:
        Tensor of one axis.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.ediff1d([1, 3, 6], to_end=9))
        [2 3 9]
    """
    x = tensor_of(ary)
    steps = diff(x.reshape(-1))
    parts = [
        part if part is steps else with_dtype(tensor_of(part).reshape(-1), x.dtype)
        for part in (to_begin, steps, to_end)
        if part is not None
    ]
    return _ops.concat(parts, 0) if len(parts) > 1 else steps


def gradient(
    f: TensorLike, *varargs: TensorLike, axis: Ints | None = None, edge_order: int = 1
) -> Any:
    """Return numerical derivatives: central differences inside, one-sided ones at the ends.

    Args:
        f: array-like of samples.
        varargs: distance of the samples; one number for all axes, or for each axis a number or
            an array-like of coordinates.
        axis: the axis or axes; None is all.
        edge_order: 1 or 2, the order of accuracy at the ends.

    Returns:
        Tensor of the shape of `f`, or a list of Tensors for several axes.

    Raises:
        ValueError: an axis is too short, or the number of distances or `edge_order` is wrong.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.gradient([1.0, 2.0, 4.0, 7.0]))
        [1.  1.5 2.5 3. ]
    """
    x = as_floating(tensor_of(f))
    given = range(x.ndim) if axis is None else shape_tuple(axis)
    axes = [axis_of("gradient", k, x.ndim) for k in given]
    if edge_order not in (1, 2):
        raise ArgumentValueError(f"gradient: got edge_order={edge_order}; wanted 1 or 2")
    steps = list(varargs or (1.0,))
    if len(steps) == 1:
        steps = steps * len(axes)
    if len(steps) != len(axes):
        raise ArgumentValueError(
            f"gradient: got {len(varargs)} distances for {len(axes)} axes; wanted one for each"
        )
    made = [_derivative(x, k, step, edge_order) for k, step in zip(axes, steps, strict=True)]
    return made[0] if len(made) == 1 else made


def _derivative(x: Tensor, axis: int, step: TensorLike, edge_order: int) -> Tensor:
    """Return the numerical derivative of `x` along an axis (Fornberg, 1988).

    Args:
        step: distance of the samples (0-d), or their coordinates (1-d).
        edge_order: order of accuracy at the two ends, 1 or 2.
    """
    size = x.shape[axis]
    if size <= edge_order:
        raise ArgumentValueError(
            f"gradient: got an axis of {size} samples; wanted at least {edge_order + 1}"
        )
    spacing = with_dtype(tensor_of(step), x.dtype)
    if spacing.ndim == 0:
        spacing = _ops.broadcast_to(spacing, (size - 1,))
    elif spacing.shape == (size,):
        spacing = spacing[1:] - spacing[:-1]
    else:
        raise ArgumentValueError(
            f"gradient: got coordinates of shape {spacing.shape}; wanted ({size},)"
        )
    rest = (1,) * (x.ndim - axis - 1)
    gaps = spacing.reshape((1,) * axis + (size - 1, *rest))
    slopes = (along(x, axis, slice(1, None)) - along(x, axis, slice(None, -1))) / gaps
    first, last = along(slopes, axis, slice(0, 1)), along(slopes, axis, slice(-1, None))
    if size == 2:
        return _ops.concat([first, last], axis)
    before, after = along(gaps, axis, slice(None, -1)), along(gaps, axis, slice(1, None))
    left, right = along(slopes, axis, slice(None, -1)), along(slopes, axis, slice(1, None))
    inside = (left * after + right * before) / (before + after)
    if edge_order == 2:  # the parabola through the three samples at each end
        curve = (right - left) / (before + after)
        first = first - along(curve * before, axis, slice(0, 1))
        last = last + along(curve * after, axis, slice(-1, None))
    return _ops.concat([first, inside, last], axis)


# ---- integrals and interpolation ----------------------------------------------------------------


def trapz(y: TensorLike, x: TensorLike | None = None, dx: float = 1.0, axis: int = -1) -> Tensor:
    """Return the integral along an axis by the trapezoidal rule.

    Args:
        y: array-like of samples.
        x: array-like of their coordinates, of the shape of `y` or the size of the axis; None
            takes the distance `dx`.
        dx: distance of the samples.
        axis: the axis.

    Returns:
        Tensor of floats without the axis.

    Raises:
        ValueError: the axis is out of range.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.trapz([1.0, 2.0, 3.0]))
        4.0
    """
    t = as_floating(tensor_of(y))
    own_axis = axis_of("trapz", axis, t.ndim)
    means = (along(t, own_axis, slice(1, None)) + along(t, own_axis, slice(None, -1))) / 2
    if x is None:
        return _sum(means * dx, own_axis)
    at = with_dtype(tensor_of(x), t.dtype)
    if at.ndim == 1:
        at = at.reshape((-1, *(1,) * (t.ndim - own_axis - 1)))
    return _sum(means * diff(at, axis=own_axis - t.ndim), own_axis)


def interp(
    x: TensorLike,
    xp: TensorLike,
    fp: TensorLike,
    left: float | None = None,
    right: float | None = None,
) -> Tensor:
    """Return the piecewise linear function through given points.

    Args:
        x: array-like of points at which the function is wanted.
        xp: array-like of one axis: coordinates of the points, increasing.
        fp: array-like of the size of `xp`: values at the points.
        left: result to the left of the points; None is the first value.
        right: result to the right of the points; None is the last value.

    Returns:
        Tensor of floats of the shape of `x`.

    Raises:
        ValueError: `xp` and `fp` are not vectors of the same size.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.interp([0.0, 1.5, 4.0], [1.0, 2.0, 3.0], [3.0, 2.0, 0.0]))
        [3.  2.5 0. ]
    """
    at, knots, values = promoted([as_floating(tensor_of(t)) for t in (x, xp, fp)])
    if knots.ndim != 1 or knots.shape != values.shape or not knots.size:
        raise ArgumentValueError(
            f"interp: got xp of shape {knots.shape} and fp of shape {values.shape}; "
            f"wanted vectors of one size"
        )
    low, high = knots[0], knots[-1]
    if knots.size > 1:
        inside = _ops.maximum(_ops.minimum(at, high), low)
        index = _ops.searchsorted(knots, inside, side="right") - 1
        index = _ops.clamp(index, 0, knots.size - 2)
        x0, y0 = _ops.gather(knots, index, 0), _ops.gather(values, index, 0)
        x1, y1 = _ops.gather(knots, index + 1, 0), _ops.gather(values, index + 1, 0)
        out = y0 + (y1 - y0) / (x1 - x0) * (inside - x0)
    else:
        out = _ops.zeros_like(at) + values[0]
    out = _ops.where(_ops.isnan(at), math.nan, out)
    out = _ops.where(_ops.less(at, low), values[0] if left is None else left, out)
    return _ops.where(_ops.greater(at, high), values[-1] if right is None else right, out)


def unwrap(p: TensorLike, discont: float = math.pi, axis: int = -1) -> Tensor:
    """Add multiples of 2 pi to angles, so that neighbours differ by at most pi.

    Args:
        p: array-like of angles in radians.
        discont: neighbours that differ by less are not changed; at least pi.
        axis: the axis.

    Returns:
        Tensor of floats of the shape of `p`.

    Raises:
        ValueError: the axis is out of range.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.unwrap([0.0, 3.0, 6.5]))
        [0.       3.       0.216815]
    """
    x = as_floating(tensor_of(p))
    own_axis = axis_of("unwrap", axis, x.ndim)
    steps = diff(x, axis=own_axis)
    wrapped = _ops.floor_mod(steps + math.pi, 2 * math.pi) - math.pi
    # a jump of exactly pi stays positive
    at_edge = _ops.logical_and(_ops.equal(wrapped, -math.pi), _ops.greater(steps, 0))
    wrapped = _ops.where(at_edge, math.pi, wrapped)
    shift = _ops.where(_ops.less(_ops.abs(steps), discont), 0, wrapped - steps)
    later = along(x, own_axis, slice(1, None)) + _ops.cumsum(shift, own_axis)
    return _ops.concat([along(x, own_axis, slice(0, 1)), later], own_axis)


# ---- convolution --------------------------------------------------------------------------------


def _full_convolution(a: Tensor, v: Tensor) -> Tensor:
    """Return the full convolution of two vectors, of n + m - 1 elements.

    It adds up the rows of the outer product, row i shifted by i columns. The shift is a reshape:
    each of the m rows is padded from n to n + m elements, then the flat elements are read as rows
    of n + m - 1 elements.
    """
    n, m = a.size, v.size
    rows = _ops.outer(v, a)
    padded = _ops.concat([rows, _ops.zeros((m, m), dtype=rows.dtype)], 1).reshape(-1)
    return with_dtype(_sum(padded[: m * (n + m - 1)].reshape(m, n + m - 1), 0), rows.dtype)


def _vectors(name: str, a: TensorLike, v: TensorLike, mode: str) -> tuple[Tensor, Tensor]:
    x, y = pair(name, a, v)
    for t in (x, y):
        if t.ndim != 1 or not t.size:
            raise ArgumentValueError(f"{name}: got shape {t.shape}; wanted a vector with elements")
    if mode not in ("full", "same", "valid"):
        raise ArgumentValueError(f"{name}: got mode={mode!r}; wanted 'full', 'same' or 'valid'")
    return x, y


def _cut(out: Tensor, mode: str, long: int, short: int) -> Tensor:
    """Return the part of a full convolution for `mode` "full", "same" or "valid".

    `long` and `short` are the lengths of the two operands.
    """
    if mode == "full":
        return out
    if mode == "valid":
        return out[short - 1 : long]
    start = (short - 1) // 2
    return out[start : start + long]


def convolve(a: TensorLike, v: TensorLike, mode: str = "full") -> Tensor:
    """Return the convolution of two vectors.

    Args:
        a: array-like of one axis.
        v: array-like of one axis.
        mode: ``"full"`` returns every overlap, ``"same"`` as many as the longer vector has
            elements, ``"valid"`` only complete overlaps.

    Returns:
        Tensor of one axis.

    Raises:
        ValueError: an operand is empty or no vector, or another mode.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.convolve([1, 2, 3], [1, 1]))
        [1 3 5 3]
    """
    x, y = _vectors("convolve", a, v, mode)
    sizes = sorted((x.size, y.size))
    return _cut(_full_convolution(x, y), mode, sizes[1], sizes[0])


def correlate(a: TensorLike, v: TensorLike, mode: str = "valid") -> Tensor:
    """Return the cross-correlation of two vectors.

    Args:
        a: array-like of one axis.
        v: array-like of one axis; complex numbers are conjugated.
        mode: ``"full"``, ``"same"`` or ``"valid"``, as in `convolve`.

    Returns:
        Tensor of one axis.

    Raises:
        ValueError: an operand is empty or no vector, or another mode.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.correlate([1, 2, 3], [0, 1]))
        [2 3]
    """
    x, y = _vectors("correlate", a, v, mode)
    if y.dtype.is_complex:
        y = _ops.conj(y)
    long, short = sorted((x.size, y.size), reverse=True)
    out = _full_convolution(x, _ops.flip(y, (0,)))
    if mode == "same" and x.size < y.size:  # the longer vector decides where the middle is
        start = short // 2
        return out[start : start + long]
    return _cut(out, mode, long, short)
