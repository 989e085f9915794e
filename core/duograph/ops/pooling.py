"""Pooling over sliding windows: the primitives `max_pool` and `avg_pool`, and their gradients.

`pooling_functions`, layers and ONNX rules call them; graph passes recognise the ops. Callers must
add missing batch axes and give one size, stride and padding pair per spatial axis, since the ops
check little.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias, TypeVar

import numpy as np

from ..dtype import FLOATING, REAL, DType, bool_, int64
from ..errors import ShapeError
from ..host_arrays import Array
from ..op import NO_GRAD, op
from ..tensor import Tensor
from ..types import TensorType, size_of
from .comparison import equal, less
from .creation import cast_to, fill
from .gather_scatter import gather_elements_by, scatter_elements_add_by
from .logic import logical_and, logical_not, logical_or, select_by
from .reduction import reduce_max, reduce_min
from .shape_primitives import broadcast_to, reduce_sum, reshape_to
from .windows import (
    coordinates,
    overlap_add,
    window_sizes,
    windows,
)

__all__: list[str] = []

Ints = Sequence[int]
Pairs = Sequence[tuple[int, int]]
Sizes: TypeAlias = int | Sequence[int]  # of users: one for all spatial axes, or one per axis
Padding: TypeAlias = int | Ints | Pairs
_Sums = TypeVar("_Sums", Tensor, Array)


def _check_input(name: str, x: TensorType) -> None:
    if not 3 <= x.ndim <= 5:
        raise ShapeError(f"{name}: got input of shape {x.shape}; wanted (N, C, spatial...)")


def lowest(dtype: DType) -> bool | int | float:
    """Return the smallest value of a dtype, such as -inf: the neutral element of the maximum."""
    if dtype.is_floating:
        return -float("inf")
    return False if dtype is bool_ else int(np.iinfo(dtype.np).min)


def _taps(kernel: Ints, out: Ints, stride: Ints, dilation: Ints) -> Iterator[tuple[slice, ...]]:
    for k in np.ndindex(*kernel):
        yield tuple(
            slice(i * d, i * d + (o - 1) * s + 1, s)
            for i, d, o, s in zip(k, dilation, out, stride, strict=True)
        )


# ---- max -----------------------------------------------------------------------------------------


@op(dtypes=REAL)
def max_pool(input: Tensor, kernel: Ints, stride: Ints, padding: Pairs, dilation: Ints):
    """Primitive op: maximum of each window of (N, C, spatial...), and its int64 index.

    The index is that in the flattened spatial axes. Padded cells are never taken. NaN counts as the
    largest number; among equal elements, the first is taken.
    """


@max_pool.infer
def _(x, kernel, stride, padding, dilation):
    _check_input("max_pool", x)
    out = window_sizes("max_pool", x.shape[2:], kernel, stride, padding, dilation)
    shape = (*x.shape[:2], *out)
    return TensorType.of(shape, x.dtype), TensorType.of(shape, int64)


@max_pool.reference
def _(x, kernel, stride, padding, dilation):
    sizes = x.shape[2:]
    out = window_sizes("max_pool", sizes, kernel, stride, padding, dilation)
    wide = np.pad(x, ((0, 0), (0, 0), *padding))
    where = np.pad(np.arange(size_of(sizes)).reshape(sizes), padding, constant_values=-1)
    best = np.zeros((*x.shape[:2], *out), x.dtype)
    index = np.full(best.shape, -1, np.int64)
    for tap in _taps(kernel, out, stride, dilation):
        value = wide[(slice(None), slice(None), *tap)]
        place = np.broadcast_to(where[tap], best.shape)
        # `not <=` is true for NaN; a NaN that won is never replaced
        better = (place >= 0) & ((index < 0) | (~(value <= best) & ~np.isnan(best)))
        best = np.where(better, value, best)
        index = np.where(better, place, index)
    return best, index


@max_pool.bprop
def _(x, out, dout, kernel, stride, padding, dilation):
    return (max_pool_grad(dout[0], out[1], x.shape, kernel, stride, padding, dilation),)


@max_pool.decompose
def _(input, kernel, stride, padding, dilation):
    sizes = input.shape[2:]
    out = window_sizes("max_pool", sizes, kernel, stride, padding, dilation)
    parts = windows(input, kernel, stride, padding, dilation, out, lowest(input.dtype))
    axes = tuple(range(2, 2 + len(kernel)))
    values = reduce_max(parts, axes, False)
    best = reshape_to(values, (*input.shape[:2], *[1] * len(kernel), *out))
    hit = equal(parts, best)
    if input.dtype.is_floating:
        hit = logical_or(hit, logical_not(equal(parts, parts)))
    place, inside, step = None, None, 1
    for n, c in zip(reversed(sizes), reversed(coordinates(kernel, stride, padding, dilation, out))):
        place = c * step if place is None else place + c * step
        within = logical_and(logical_not(less(c, 0)), less(c, n))
        inside = within if inside is None else logical_and(inside, within)
        step *= n
    # the elements of a window are in row-major order: the first of equals has the least index
    index = select_by(logical_and(hit, inside), place, fill((), step, int64))
    return values, reduce_min(index, axes, False)


def _check_gradient(
    name: str,
    dout: TensorType,
    input_shape: Ints,
    kernel: Ints,
    stride: Ints,
    padding: Pairs,
    dilation: Ints,
) -> None:
    if len(input_shape) != dout.ndim or dout.ndim < 3 or dout.shape[:2] != tuple(input_shape[:2]):
        raise ShapeError(
            f"{name}: got a gradient of shape {dout.shape} for the input {tuple(input_shape)}; "
            "wanted the same batch, the same channels and spatial axes"
        )
    out = window_sizes(name, input_shape[2:], kernel, stride, padding, dilation)
    if dout.shape[2:] != out:
        raise ShapeError(
            f"{name}: got a gradient of shape {dout.shape} for the input "
            f"{tuple(input_shape)}; wanted the spatial axes {out}"
        )


@op(dtypes=REAL, promote=None)
def max_pool_grad(
    dout: Tensor,
    indices: Tensor,
    input_shape: Ints,
    kernel: Ints,
    stride: Ints,
    padding: Pairs,
    dilation: Ints,
):
    """Primitive op: gradient of `max_pool` with respect to its input, of shape `input_shape`.

    Each element of `dout`, the cotangent of the maxima, is added at the index where `max_pool`
    found the maximum; each index must be that of an element in its window.
    """


@max_pool_grad.infer
def _(dout, indices, input_shape, kernel, stride, padding, dilation):
    _check_gradient("max_pool_grad", dout, input_shape, kernel, stride, padding, dilation)
    if indices.plain is not dout.with_(dtype=int64):
        raise ShapeError(
            f"max_pool_grad: got indices of {indices} for a gradient of {dout}; wanted an "
            "int64 for each element"
        )
    return TensorType.of(tuple(input_shape), dout.dtype)


@max_pool_grad.reference
def _(dout, indices, input_shape, kernel, stride, padding, dilation):
    n, c = input_shape[:2]
    wide = np.float32 if dout.dtype.itemsize == 2 else dout.dtype
    dx = np.zeros((n, c, size_of(input_shape[2:])), wide)
    i, j = np.ogrid[:n, :c]
    flat = indices.reshape(n, c, size_of(indices.shape[2:]))
    np.add.at(dx, (i[..., None], j[..., None], flat), dout.reshape(flat.shape).astype(wide))
    return dx.reshape(input_shape).astype(dout.dtype)


@max_pool_grad.bprop
def _(dout, indices, out, dx, input_shape, kernel, stride, padding, dilation):
    n, c = input_shape[:2]
    flat = reshape_to(dx, (n, c, size_of(input_shape[2:])))
    places = reshape_to(indices, (n, c, size_of(indices.shape[2:])))
    return reshape_to(gather_elements_by(flat, places, 2), dout.shape), NO_GRAD


@max_pool_grad.decompose
def _(dout, indices, input_shape, kernel, stride, padding, dilation):
    n, c = input_shape[:2]
    flat = (n, c, size_of(dout.shape[2:]))
    zeros = fill((n, c, size_of(input_shape[2:])), 0, dout.dtype)
    found = scatter_elements_add_by(zeros, reshape_to(indices, flat), reshape_to(dout, flat), 2)
    return reshape_to(found, tuple(input_shape))


# ---- mean ----------------------------------------------------------------------------------------


@op(dtypes=REAL)
def avg_pool(
    input: Tensor, kernel: Ints, stride: Ints, padding: Pairs, count_include_pad: bool, divisor: int
):
    """Primitive op: mean of each window of (N, C, spatial...).

    The sum of a window is divided by `divisor` or, if that is 0, by the number of cells of the
    window, of which padded ones count only with `count_include_pad`.
    """


@avg_pool.infer
def _(x, kernel, stride, padding, count_include_pad, divisor):
    _check_input("avg_pool", x)
    out = window_sizes("avg_pool", x.shape[2:], kernel, stride, padding, (1,) * len(kernel))
    return TensorType.of((*x.shape[:2], *out), x.dtype)


def _counts(sizes: Ints, kernel: Ints, stride: Ints, padding: Pairs, out: Ints) -> Array:
    """Return, as float64, how many cells of each average-pooling window are not padding.

    The array has one axis per spatial axis of the result; counts below 1 are raised to 1.
    """
    total = np.ones((1,) * len(kernel))
    for i, (n, k, s, (low, _), o) in enumerate(
        zip(sizes, kernel, stride, padding, out, strict=True)
    ):
        begin = np.arange(o) * s - low
        inside = np.minimum(begin + k, n) - np.maximum(begin, 0)
        shape = [1] * len(kernel)
        shape[i] = o
        total = total * np.maximum(inside, 1).reshape(shape)
    return total


def _divided(
    total: _Sums,
    sizes: Ints,
    kernel: Ints,
    stride: Ints,
    padding: Pairs,
    include: bool,
    divisor: int,
) -> _Sums:
    """Divide `total`, one number per average-pooling window, by the window's divisor.

    The divisor is `divisor` or, if that is 0, the window's number of cells, of which padded ones
    count only with `include`. `sizes` are the input's sizes along the spatial axes.
    """
    if divisor:
        return total / divisor
    if include or not any(p for pair in padding for p in pair):
        return total / size_of(kernel)
    counts = _counts(sizes, kernel, stride, padding, total.shape[2:])
    if isinstance(total, Tensor):
        return total / counts.astype(total.dtype.np)
    return total / counts


@avg_pool.reference
def _(x, kernel, stride, padding, count_include_pad, divisor):
    sizes = x.shape[2:]
    out = window_sizes("avg_pool", sizes, kernel, stride, padding, (1,) * len(kernel))
    wide = np.pad(x, ((0, 0), (0, 0), *padding)).astype(np.float64)
    total = np.zeros((*x.shape[:2], *out))
    for tap in _taps(kernel, out, stride, (1,) * len(kernel)):
        total = total + wide[(slice(None), slice(None), *tap)]
    return _divided(total, sizes, kernel, stride, padding, count_include_pad, divisor).astype(
        x.dtype
    )


@avg_pool.bprop
def _(x, out, dout, kernel, stride, padding, count_include_pad, divisor):
    return (avg_pool_grad(dout, x.shape, kernel, stride, padding, count_include_pad, divisor),)


@avg_pool.decompose
def _(input, kernel, stride, padding, count_include_pad, divisor):
    sizes = input.shape[2:]
    one = (1,) * len(kernel)
    out = window_sizes("avg_pool", sizes, kernel, stride, padding, one)
    parts = windows(input, kernel, stride, padding, one, out)
    total = reduce_sum(parts, tuple(range(2, 2 + len(kernel))), False)
    found = _divided(total, sizes, kernel, stride, padding, count_include_pad, divisor)
    return found if found.dtype is input.dtype else cast_to(found, input.dtype)


@op(dtypes=FLOATING)
def avg_pool_grad(
    dout: Tensor,
    input_shape: Ints,
    kernel: Ints,
    stride: Ints,
    padding: Pairs,
    count_include_pad: bool,
    divisor: int,
):
    """Primitive op: gradient of `avg_pool` with respect to its input, of shape `input_shape`.

    Each element of `dout`, divided by the window's divisor, is added to all cells of its window.
    """


@avg_pool_grad.infer
def _(dout, input_shape, kernel, stride, padding, count_include_pad, divisor):
    one = (1,) * len(kernel)
    _check_gradient("avg_pool_grad", dout, input_shape, kernel, stride, padding, one)
    return TensorType.of(tuple(input_shape), dout.dtype)


@avg_pool_grad.reference
def _(dout, input_shape, kernel, stride, padding, count_include_pad, divisor):
    sizes = input_shape[2:]
    share = _divided(
        dout.astype(np.float64), sizes, kernel, stride, padding, count_include_pad, divisor
    )
    wide = np.zeros((*input_shape[:2], *[n + a + b for n, (a, b) in zip(sizes, padding)]))
    for tap in _taps(kernel, dout.shape[2:], stride, (1,) * len(kernel)):
        wide[(slice(None), slice(None), *tap)] += share
    inside = [slice(a, a + n) for n, (a, _) in zip(sizes, padding)]
    return wide[(slice(None), slice(None), *inside)].astype(dout.dtype)


@avg_pool_grad.bprop
def _(dout, out, dx, input_shape, kernel, stride, padding, count_include_pad, divisor):
    return (avg_pool(dx, kernel, stride, padding, count_include_pad, divisor),)


@avg_pool_grad.decompose
def _(dout, input_shape, kernel, stride, padding, count_include_pad, divisor):
    sizes = input_shape[2:]
    out = dout.shape[2:]
    share = _divided(dout, sizes, kernel, stride, padding, count_include_pad, divisor)
    share = reshape_to(share, (*dout.shape[:2], *[1] * len(kernel), *out))
    parts = broadcast_to(share, (*dout.shape[:2], *kernel, *out))
    return overlap_add(parts, sizes, kernel, stride, padding, (1,) * len(kernel), out)
