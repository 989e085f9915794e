"""Pooling over sliding windows: primitives, their gradients, and MindSpore's functions.

Layers, primitive classes and users call the functions; passes and channels_last match the ops.
Primitives must only see (N, C, spatial...) and one value per spatial axis.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import TypeAlias, TypeVar

import numpy as np

from ..call_cache import cached_call
from ..dtype import FLOATING, REAL, DType, bool_, int64
from ..errors import ArgumentError, ArgumentValueError, ShapeError
from ..host_arrays import Array
from ..op import NO_GRAD, op
from ..tensor import Tensor
from ..types import TensorType, size_of
from . import powers
from .axes import tuple_of
from .comparison import equal, less
from .creation import cast_to, fill
from .gather_scatter import gather_elements_by, scatter_elements_add_by
from .logic import logical_and, logical_not, logical_or, select_by
from .reduction import reduce_max, reduce_min
from .shape_primitives import broadcast_to, reduce_sum, reshape_to
from .windows import (
    coordinates,
    hashable,
    mode_padding,
    overlap_add,
    pad_pairs,
    padded,
    window_sizes,
    windows,
)

__all__ = [
    "max_pool1d", "max_pool2d", "max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "lp_pool1d",
    "lp_pool2d",
]  # fmt: skip

Ints = Sequence[int]
Pairs = Sequence[tuple[int, int]]
Sizes: TypeAlias = int | Sequence[int]  # of users: one for all spatial axes, or one per axis
Padding: TypeAlias = int | Ints | Pairs
_Sums = TypeVar("_Sums", Tensor, Array)


def _check_input(name: str, x: TensorType) -> None:
    if not 3 <= x.ndim <= 5:
        raise ShapeError(f"{name}: got input of shape {x.shape}; wanted (N, C, spatial...)")


def lowest(dtype: DType) -> bool | int | float:
    """Return the smallest value of a dtype, the neutral element of the maximum."""
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
    """Primitive op: maximum of each window of (N, C, spatial...), and its flat spatial index.

    Padded cells never win. NaN wins over numbers, and the first of equal elements wins.
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
    """Primitive op: add each gradient in `dout` at the index where `max_pool` found its maximum.

    Each index must be of an element in its window.
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

    The divisor is `divisor` unless it is 0, else the number of cells of the window. Padded cells
    count only with `count_include_pad`.
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

    It is `divisor` or, if that is 0, the window's number of cells; padding counts if `include`.
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
    """Primitive op: gradient of `avg_pool`; a window's cells share its gradient equally."""


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


# ---- public functions ----------------------------------------------------------------------------


def batched(name: str, x: object, n: int) -> tuple[Tensor, bool]:
    if not isinstance(x, Tensor):
        raise ArgumentError(f"{name}: got {type(x).__name__} for the input; wanted a Tensor")
    if x.ndim == n + 1:
        return reshape_to(x, (1, *x.shape)), True
    if x.ndim != n + 2:
        raise ShapeError(
            f"{name}: got input of shape {x.shape}; wanted {n + 2} axes, (N, C, spatial...), or "
            f"{n + 1}"
        )
    return x, False


def unbatched(x: Tensor, single: bool) -> Tensor:
    return reshape_to(x, x.shape[1:]) if single else x


def _half_at_most(name: str, pads: Pairs, kernel: Ints, dilation: Ints) -> None:
    for (low, high), k in zip(pads, kernel, strict=True):
        if low > k // 2 or high > k // 2:
            raise ArgumentValueError(
                f"{name}: got padding {(low, high)} for a kernel of {k}; wanted at most half of it"
            )


def _ceil_padding(
    sizes: Ints, kernel: Ints, stride: Ints, pads: Pairs, dilation: Ints
) -> tuple[tuple[int, int], ...]:
    """Return the extra (0, high) padding of each axis that ceil_mode's last window needs.

    The last window of an axis may be partial, but may not start in the padding behind the input.
    """
    found = []
    for n, k, s, (low, high), d in zip(sizes, kernel, stride, pads, dilation, strict=True):
        span = d * (k - 1) + 1
        out = -(-(n + low + high - span) // s) + 1
        if (out - 1) * s >= n + low:  # no window may start in the padding after the input
            out -= 1
        found.append((0, max((out - 1) * s + span - (n + low + high), 0)))
    return tuple(found)


@functools.lru_cache(maxsize=4096)
def _max_arguments(
    name: str,
    kernel_size: Sizes,
    stride: Sizes,
    padding: Padding,
    dilation: Sizes,
    ceil_mode: bool,
    sizes: tuple[int, ...],
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[tuple[int, int], ...], tuple[int, ...]]:
    """Return max pooling's (kernel, stride, padding, dilation), each with one item per axis.

    Only spatial axes count; their sizes are `sizes`. The padding includes that of `ceil_mode`.
    """
    n = len(sizes)
    kernel = tuple_of(name, "kernel_size", kernel_size, n)
    strides = kernel if stride is None else tuple_of(name, "stride", stride, n)
    dilations = tuple_of(name, "dilation", dilation, n)
    pads = pad_pairs(name, padding, n)
    _half_at_most(name, pads, kernel, dilations)
    if ceil_mode:
        extra = _ceil_padding(sizes, kernel, strides, pads, dilations)
        pads = tuple((a, b + e) for (a, b), (_, e) in zip(pads, extra, strict=True))
    return kernel, strides, pads, dilations


def _max(name, x, kernel_size, stride, padding, dilation, return_indices, ceil_mode, n):
    x, single = batched(name, x, n)
    values, indices = max_pool(
        x,
        *_max_arguments(
            name,
            hashable(kernel_size),
            hashable(stride),
            hashable(padding),
            hashable(dilation),
            bool(ceil_mode),
            x.shape[2:],
        ),
    )
    values = unbatched(values, single)
    return (values, unbatched(indices, single)) if return_indices else values


def doc_words(n: int) -> dict[str, object]:
    """Return the words in a pooling function's docstring that depend on its spatial axes."""
    four, two = ", ".join(["4"] * n), ", ".join(["2"] * n)
    return {"n": n, "n2": 2 * n, "axes": ", ".join("DHW"[3 - n :]), "four": four, "two": two}


_MAX_DOC = """Largest element of sliding windows (`mindspore.ops.max_pool{n}d`).

    Args:
        x: Tensor (N, C, {axes}), or without N.
        kernel_size: int, or {n} of them.
        stride: likewise; default `kernel_size`.
        padding: int, {n} ints, or {n2} ints; at most half of the kernel. Padded cells never win.
        dilation: distance of neighbouring cells of a window.
        return_indices: also return the int64 index of each element in the flattened spatial axes.
        ceil_mode: keep windows that extend past the end.

    Returns:
        Tensor (N, C, {axes}), or a pair with the indices. NaN wins; of equals the first.

    Raises:
        ValueError: another number of axes, or a window larger than the input.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.max_pool{n}d(ms.ops.ones((1, 1, {four})), 2).shape)
        (1, 1, {two})
    """


@cached_call
def max_pool1d(
    x: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Padding = 0,
    dilation: Sizes = 1, return_indices: bool = False, ceil_mode: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:  # fmt: skip
    return _max(
        "max_pool1d", x, kernel_size, stride, padding, dilation, return_indices, ceil_mode, 1
    )


@cached_call
def max_pool2d(
    x: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Padding = 0,
    dilation: Sizes = 1, return_indices: bool = False, ceil_mode: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:  # fmt: skip
    return _max(
        "max_pool2d", x, kernel_size, stride, padding, dilation, return_indices, ceil_mode, 2
    )


@cached_call
def max_pool3d(
    x: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Padding = 0,
    dilation: Sizes = 1, return_indices: bool = False, ceil_mode: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:  # fmt: skip
    return _max(
        "max_pool3d", x, kernel_size, stride, padding, dilation, return_indices, ceil_mode, 3
    )


def _avg(name, x, kernel_size, stride, padding, ceil_mode, include, divisor, n):
    x, single = batched(name, x, n)
    kernel = tuple_of(name, "kernel_size", kernel_size, n)
    strides = kernel if stride is None else tuple_of(name, "stride", stride, n)
    pads = pad_pairs(name, padding, n)
    _half_at_most(name, pads, kernel, (1,) * n)
    divisor = divisor or 0
    if isinstance(divisor, bool) or not isinstance(divisor, int) or divisor < 0:
        raise ArgumentValueError(f"{name}: got divisor_override={divisor!r}; wanted a positive int")
    if ceil_mode:
        extra = _ceil_padding(x.shape[2:], kernel, strides, pads, (1,) * n)
        if any(e for _, e in extra):
            if (
                include
            ):  # requested padding counts in the divisor, padding added by ceil_mode does not
                x = padded(x, pads, 0)
                pads, include = extra, False
            else:
                pads = tuple((a, b + e) for (a, b), (_, e) in zip(pads, extra, strict=True))
    return unbatched(avg_pool(x, kernel, strides, pads, bool(include), divisor), single)


_AVG_DOC = """Mean of sliding windows (`mindspore.ops.avg_pool{n}d`).

    Args:
        input_x: Tensor (N, C, {axes}), or without N.
        kernel_size, stride: int, or {n} of them.
        padding: int, {n} ints, or {n2} ints; at most half of the kernel.
        ceil_mode: keep windows that extend past the end; cells outside do not count.
        count_include_pad: padded cells count in the divisor.
        divisor_override: divide by this instead.

    Returns:
        Tensor (N, C, {axes}).

    Raises:
        ValueError: another number of axes, or a window larger than the input.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.avg_pool{n}d(ms.ops.ones((1, 1, {four})), 2, 2).shape)
        (1, 1, {two})
    """


@cached_call
def avg_pool1d(
    input_x: Tensor, kernel_size: Sizes = 1, stride: Sizes = 1, padding: Padding = 0,
    ceil_mode: bool = False, count_include_pad: bool = True,
) -> Tensor:  # fmt: skip
    return _avg(
        "avg_pool1d", input_x, kernel_size, stride, padding, ceil_mode, count_include_pad, 0, 1
    )  # fmt: skip


@cached_call
def avg_pool2d(
    input_x: Tensor, kernel_size: Sizes = 1, stride: Sizes = 1, padding: Padding = 0,
    ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int = 0,
) -> Tensor:  # fmt: skip
    return _avg(
        "avg_pool2d", input_x, kernel_size, stride, padding, ceil_mode, count_include_pad,
        divisor_override, 2,
    )  # fmt: skip


@cached_call
def avg_pool3d(
    input_x: Tensor, kernel_size: Sizes = 1, stride: Sizes = 1, padding: Padding = 0,
    ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int = 0,
) -> Tensor:  # fmt: skip
    return _avg(
        "avg_pool3d", input_x, kernel_size, stride, padding, ceil_mode, count_include_pad,
        divisor_override, 3,
    )  # fmt: skip


def _lp(name, x, norm_type, kernel_size, stride, ceil_mode, n):
    kernel = tuple_of(name, "kernel_size", kernel_size, n)
    total = _avg(name, powers.pow(x, norm_type), kernel, stride, 0, ceil_mode, True, 1, n)
    return powers.pow(total, 1.0 / norm_type)


@cached_call
def lp_pool1d(
    x: Tensor,
    norm_type: float,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """(sum of x^p)^(1/p) over sliding windows (`mindspore.ops.lp_pool1d`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.lp_pool1d(ms.ops.ones((1, 1, 4)), 1.0, 2))
        [[[2. 2.]]]
    """
    return _lp("lp_pool1d", x, norm_type, kernel_size, stride, ceil_mode, 1)


@cached_call
def lp_pool2d(
    x: Tensor,
    norm_type: float,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """(sum of x^p)^(1/p) over sliding windows (`mindspore.ops.lp_pool2d`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.lp_pool2d(ms.ops.ones((1, 1, 2, 2)), 1.0, 2))
        [[[[4.]]]]
    """
    return _lp("lp_pool2d", x, norm_type, kernel_size, stride, ceil_mode, 2)


def mode_pool(
    name: str, x: Tensor, kernel: Ints, stride: Ints, pad_mode: str
) -> tuple[tuple[int, int], ...]:
    """Return the padding of a pooling primitive class, whose mode is 'same' or 'valid'."""
    return mode_padding(name, pad_mode, 0, x.shape[2:], kernel, stride, (1,) * len(kernel))


for _n in (1, 2, 3):
    globals()[f"max_pool{_n}d"].__doc__ = _MAX_DOC.format(**doc_words(_n))
    globals()[f"avg_pool{_n}d"].__doc__ = _AVG_DOC.format(**doc_words(_n))
