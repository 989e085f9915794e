"""MindSpore's functions of pooling over sliding windows, such as `max_pool2d`.

Users and layers call them. The functions check arguments and translate them to those of the
primitives of `pooling`, which compute the results.
"""

from __future__ import annotations

import functools

from ..call_cache import cached_call
from ..errors import ArgumentError, ArgumentValueError, ShapeError
from ..tensor import Tensor
from . import powers
from .axes import tuple_of
from .pooling import Ints, Padding, Pairs, Sizes, avg_pool, max_pool
from .shape_primitives import reshape_to
from .windows import (
    hashable,
    mode_padding,
    pad_pairs,
    padded,
)

__all__ = [
    "max_pool1d", "max_pool2d", "max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "lp_pool1d",
    "lp_pool2d",
]  # fmt: skip


def batched(name: str, x: object, n: int) -> tuple[Tensor, bool]:
    """Return the input of a pooling function as (N, C, n spatial axes), and whether N was added.

    `name` is the user's function in errors.
    """
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
    """Return `x` without its batch axis if the user's input had none (`single`)."""
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
    """Return how many cells ceil_mode adds behind each spatial axis of the input, as pairs (0, n).

    The n cells come after the padding `pads` of the axis, so that a last window that extends past
    the end fits. A window that would start behind the end of the input is left out. `sizes` are the
    input's sizes along the spatial axes; every argument has one item per spatial axis.
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
    """Return max pooling's (kernel, stride, padding, dilation), each with an item per spatial axis.

    `sizes` are the input's sizes along the spatial axes. An item of the padding is (cells before,
    cells after); with `ceil_mode`, the cells after include those that a last window needs which
    extends past the end. `name` is the user's function in errors.
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
    """Return the values to format a pooling function's docstring template with, by placeholder.

    `n` is the number of spatial axes.
    """
    four, two = ", ".join(["4"] * n), ", ".join(["2"] * n)
    return {"n": n, "axes": ", ".join("DHW"[3 - n :]), "four": four, "two": two}


_MAX_DOC = """Return the largest element of each sliding window (`mindspore.ops.max_pool{n}d`).

    The result for a window with a NaN is NaN. Of equal elements, the first one counts.

    Args:
        x: Tensor (N, C, {axes}), or (C, {axes}) for a single example.
        kernel_size: size of the window: int, or one int for each spatial axis.
        stride: step from window to window: int, or one int for each spatial axis; None means
            `kernel_size`.
        padding: number of positions, at most half the kernel's size, that are added at both ends of
            the spatial axes: int, one int for each axis, or two for each (low and high end). An
            added position is never the largest element.
        dilation: distance of neighbouring elements of a window: int, or one int for each axis.
        return_indices: whether to return each element's index, too, in the flattened spatial axes.
        ceil_mode: whether the last window of an axis may extend past the end of the input.

    Returns:
        Tensor (N, C, {axes}), without N if `x` has none; with `return_indices` a tuple of it and an
        int64 Tensor of the same shape.

    Raises:
        ValueError: `x` has another number of axes, or a window is larger than the input.

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


_AVG_DOC = """Return the mean of each sliding window (`mindspore.ops.avg_pool{n}d`).

    Args:
        input_x: Tensor (N, C, {axes}), or (C, {axes}) for a single example.
        kernel_size: size of the window: int, or one int for each spatial axis.
        stride: step from window to window: int, or one int for each spatial axis.
        padding: number of zeros, at most half the kernel's size, that are added at both ends of the
            spatial axes: int, one int for each axis, or two for each (low and high end).
        ceil_mode: whether the last window of an axis may extend past the end of the padded input;
            positions past the end do not count as elements of the window.
        count_include_pad: whether the zeros of `padding` count as elements of a window.{divisor}

    Returns:
        Tensor (N, C, {axes}), without N if `input_x` has none.

    Raises:
        ValueError: `input_x` has another number of axes, or a window is larger than the input.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.avg_pool{n}d(ms.ops.ones((1, 1, {four})), 2, 2).shape)
        (1, 1, {two})
    """

_DIVISOR_DOC = """
        divisor_override: number by which the sum of a window is divided; 0 means the number of its
            elements."""


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
    """Return (sum of x^p)^(1/p) over sliding windows, where p is `norm_type`
    (`mindspore.ops.lp_pool1d`).

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
    """Return (sum of x^p)^(1/p) over sliding windows, where p is `norm_type`
    (`mindspore.ops.lp_pool2d`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.lp_pool2d(ms.ops.ones((1, 1, 2, 2)), 1.0, 2))
        [[[[4.]]]]
    """
    return _lp("lp_pool2d", x, norm_type, kernel_size, stride, ceil_mode, 2)


def mode_pool(
    name: str, x: Tensor, kernel: Ints, stride: Ints, pad_mode: str
) -> tuple[tuple[int, int], ...]:
    """Return the padding of a pooling primitive class whose `pad_mode` is 'same' or 'valid'.

    The result has a pair (cells before, cells after) per spatial axis. `x` is the input; `kernel`
    and `stride` have one item per spatial axis. `name` is the name of the class in errors.
    """
    return mode_padding(name, pad_mode, 0, x.shape[2:], kernel, stride, (1,) * len(kernel))


for _n in (1, 2, 3):
    globals()[f"max_pool{_n}d"].__doc__ = _MAX_DOC.format(**doc_words(_n))
    globals()[f"avg_pool{_n}d"].__doc__ = _AVG_DOC.format(
        divisor=_DIVISOR_DOC if _n > 1 else "", **doc_words(_n)
    )
