"""Helpers for sliding windows: output sizes, padding and strided copies.

Convolution, pooling and unfold call these functions. They work on (N, C, spatial...); other data
formats must be converted by the callers.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Sequence

import numpy as np

from ..dtype import int64
from ..errors import ArgumentError, ArgumentValueError, ShapeError
from ..tensor import Tensor
from ..types import size_of
from .axes import tuple_of
from .creation import fill, iota
from .gather_scatter import scatter_add_by
from .movement import pad_by, slice_by
from .shape_primitives import reshape_to, strided_copy

__all__ = ["windows", "window_sizes", "pad_pairs", "mode_padding", "overlap_add", "coordinates"]

Ints = Sequence[int]
Pairs = Sequence[tuple[int, int]]


def window_sizes(
    name: str, sizes: Ints, kernel: Ints, stride: Ints, padding: Pairs, dilation: Ints
) -> tuple[int, ...]:
    """Return the number of windows along each spatial axis.

    `sizes` are the input's sizes along these axes, `name` the user's function in errors.

    Raises:
        ValueError: a window is larger than the padded input, or an argument is not positive.
    """
    out = []
    for n, k, s, (low, high), d in zip(sizes, kernel, stride, padding, dilation, strict=True):
        if min(k, s, d) < 1 or min(low, high) < 0 or max(k, s, d, low, high) >= 2**31:
            raise ArgumentValueError(
                f"{name}: got kernel {k}, stride {s}, dilation {d}, padding ({low}, {high}); "
                "wanted a "
                f"kernel, stride and dilation of at least 1, padding of at least 0, all below 2**31"
            )
        span = d * (k - 1) + 1
        if n + low + high < span:
            raise ShapeError(
                f"{name}: got a spatial axis of size {n} with padding ({low}, {high}) and a "
                f"kernel of {span}; wanted an input at least as large as the kernel: a larger "
                "input, a smaller kernel, or padding"
            )
        out.append((n + low + high - span) // s + 1)
    return tuple(out)


def pad_pairs(name: str, padding: object, n: int) -> tuple[tuple[int, int], ...]:
    """Return a pair (cells before, cells after) for each of `n` axes.

    `padding` is one int, `n` ints, `2n` ints or `n` pairs; `name` is the function that errors name.

    Raises:
        TypeError: `padding` has another type.
        ValueError: another number of ints, or negative ones.
    """
    if (
        isinstance(padding, (tuple, list))
        and len(padding) == 2 * n
        and all(isinstance(p, (int, np.integer)) and not isinstance(p, bool) for p in padding)
    ):
        found = tuple((int(padding[2 * i]), int(padding[2 * i + 1])) for i in range(n))
    elif isinstance(padding, (tuple, list)) and padding and isinstance(padding[0], (tuple, list)):
        if len(padding) != n or any(len(p) != 2 for p in padding):
            raise ArgumentValueError(f"{name}: got padding={padding!r}; wanted {n} pairs")
        found = tuple((int(p[0]), int(p[1])) for p in padding)
    else:
        found = tuple((p, p) for p in tuple_of(name, "padding", padding, n))
    if any(p < 0 for pair in found for p in pair):
        raise ArgumentValueError(f"{name}: got padding={padding!r}; wanted 0 or more")
    return found


def mode_padding(
    name: str,
    pad_mode: object,
    padding: object,
    sizes: Ints,
    kernel: Ints,
    stride: Ints,
    dilation: Ints,
) -> tuple[tuple[int, int], ...]:
    """Return the (before, after) padding per axis for MindSpore's pad_mode: same, valid or pad.

    `padding` is used by the mode "pad" only; `sizes` are the input's sizes along the spatial axes.

    Raises:
        ValueError: another mode, or padding given with a mode other than pad.
    """
    if not isinstance(pad_mode, str):
        raise ArgumentError(f"{name}: got pad_mode={pad_mode!r}; wanted 'same', 'valid' or 'pad'")
    mode = pad_mode.lower()
    n = len(kernel)
    if mode == "pad":
        return pad_pairs(name, padding, n)
    if mode not in ("same", "valid"):
        raise ArgumentValueError(
            f"{name}: got pad_mode={pad_mode!r}; wanted 'same', 'valid' or 'pad'"
        )
    if any(p != 0 for pair in pad_pairs(name, padding, n) for p in pair):
        raise ArgumentValueError(
            f"{name}: got padding={padding!r} with pad_mode={pad_mode!r}; wanted pad_mode='pad', "
            "or padding=0"
        )
    if mode == "valid":
        return ((0, 0),) * n
    out = []
    for size, k, s, d in zip(sizes, kernel, stride, dilation, strict=True):
        total = max((-(-size // s) - 1) * s + d * (k - 1) + 1 - size, 0)
        out.append((total // 2, total - total // 2))
    return tuple(out)


@functools.lru_cache(maxsize=4096)
def convolution_arguments(
    name: str,
    stride: object,
    pad_mode: object,
    padding: object,
    dilation: object,
    sizes: tuple[int, ...],
    kernel: tuple[int, ...],
) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...], tuple[int, ...]]:
    """Return a convolution's (stride, padding, dilation), each with an item per spatial axis.

    An item of the padding is (cells before, cells after). The arguments are those of the user's
    function `name`, with lists converted to tuples; `sizes` and `kernel` are the sizes of the input
    and of the window along the spatial axes. Results are cached, because a layer repeats the same
    arguments on every call.
    """
    n = len(kernel)
    strides = tuple_of(name, "stride", stride, n)
    dilations = tuple_of(name, "dilation", dilation, n)
    return (
        strides,
        mode_padding(name, pad_mode, padding, sizes, kernel, strides, dilations),
        dilations,
    )


def hashable(value: object) -> Hashable:
    """Convert lists, nested ones too, to tuples, so that arguments can be keys of a dictionary."""
    if isinstance(value, (list, tuple)):
        return tuple(hashable(v) for v in value)
    if isinstance(value, (dict, set)):
        raise ArgumentError(f"got {value!r}; wanted an int or a tuple of ints")
    return value


def padded(x: Tensor, padding: Pairs, value: int | float) -> Tensor:
    """Pad the spatial axes (from axis 2 on) of `x` with `value`; negative pads remove elements."""
    lead = x.ndim - len(padding)
    if any(p < 0 for pair in padding for p in pair):
        begin = (0,) * lead + tuple(max(-low, 0) for low, _ in padding)
        end = tuple(x.shape[:lead]) + tuple(
            n - max(-high, 0) for n, (_, high) in zip(x.shape[lead:], padding, strict=True)
        )
        x = slice_by(x, begin, end, (1,) * x.ndim)
        padding = [(max(low, 0), max(high, 0)) for low, high in padding]
    if not any(p for pair in padding for p in pair):
        return x
    low = (0,) * lead + tuple(p for p, _ in padding)
    high = (0,) * lead + tuple(p for _, p in padding)
    return pad_by(x, low, high, value)


def windows(
    x: Tensor,
    kernel: Ints,
    stride: Ints,
    padding: Pairs,
    dilation: Ints,
    out: Ints,
    value: int | float = 0,
) -> Tensor:
    """Return all windows of `x`, of shape (N, C, kernel..., out...).

    `out` has the number of windows along each spatial axis; padded cells are `value`.
    """
    x = padded(x, padding, value)
    steps = []
    step = 1
    for n in reversed(x.shape):
        steps.append(step)
        step *= n
    steps.reverse()
    spatial = steps[2:]
    strides = (
        *steps[:2],
        *[d * t for d, t in zip(dilation, spatial, strict=True)],
        *[s * t for s, t in zip(stride, spatial, strict=True)],
    )
    return strided_copy(x, (*x.shape[:2], *kernel, *out), tuple(strides), 0)


def coordinates(
    kernel: Ints, stride: Ints, padding: Pairs, dilation: Ints, out: Ints
) -> list[Tensor]:
    """Return, for each spatial axis, the input coordinate of each element of each window.

    The tensors are int64 of shape (kernel..., out...). A coordinate outside [0, size of the axis)
    is in the padding. `out` has the number of windows along each axis.
    """
    shape = (*kernel, *out)
    found = []
    for i, (s, (low, _), d) in enumerate(zip(stride, padding, dilation, strict=True)):
        inner = iota(shape, i, int64) * d
        outer = iota(shape, len(kernel) + i, int64) * s
        found.append(inner + outer - low)
    return found


def overlap_add(
    parts: Tensor,
    sizes: Ints,
    kernel: Ints,
    stride: Ints,
    padding: Pairs,
    dilation: Ints,
    out: Ints,
) -> Tensor:
    """Add windows to a tensor of zeros at their positions; return it. The adjoint of `windows`.

    `parts` (N, C, kernel..., out...) has the elements of all windows; `out` has the number of
    windows along each spatial axis. Where windows overlap, their elements are summed. The result
    has shape (N, C, sizes...).
    """
    n, c = parts.shape[:2]
    large = [size + low + high for size, (low, high) in zip(sizes, padding, strict=True)]
    position = None
    step = 1
    steps = []
    for size in reversed(large):
        steps.append(step)
        step *= size
    steps.reverse()
    for where, t in zip(
        coordinates(kernel, stride, ((0, 0),) * len(kernel), dilation, out), steps, strict=True
    ):
        position = where * t if position is None else position + where * t
    count = size_of(kernel) * size_of(out)
    flat = scatter_add_by(
        fill((n * c, step), 0, parts.dtype),
        reshape_to(position, (count,)),
        reshape_to(parts, (n * c, count)),
        1,
    )
    whole = reshape_to(flat, (n, c, *large))
    return padded(whole, [(-low, -high) for low, high in padding], 0)


def dilated(x: Tensor, stride: Ints) -> Tensor:
    """Insert stride - 1 zeros between neighbours along the spatial axes of `x`."""
    n, c, *sizes = x.shape
    stride = [s if size > 1 else 1 for s, size in zip(stride, sizes, strict=True)]
    if 0 in sizes or all(s == 1 for s in stride):
        return x
    apart = reshape_to(x, (n, c, *[d for size in sizes for d in (size, 1)]))
    high = (0, 0, *[d for s in stride for d in (0, s - 1)])
    wide = pad_by(apart, (0,) * apart.ndim, high, 0)
    wide = reshape_to(wide, (n, c, *[size * s for size, s in zip(sizes, stride, strict=True)]))
    return padded(wide, [(0, 1 - s) for s in stride], 0)
