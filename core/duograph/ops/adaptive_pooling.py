"""Adaptive pooling: windows that split each spatial axis into a given number of cells.

Layers and users call the functions. Strides, paddings and windows of one given size belong to
`pooling_functions`, not here.
"""

from __future__ import annotations

import numpy as np

from ..call_cache import cached_call
from ..dtype import FLOATING
from ..errors import ArgumentValueError, DeviceMemoryError
from ..host_arrays import Array
from ..op import op
from ..tensor import Tensor
from ..types import size_of
from .axes import tuple_of
from .creation import fill
from .gather_scatter import gather, gather_elements_by
from .logic import select_by
from .pooling import Ints, lowest
from .pooling_functions import batched, doc_words, unbatched
from .primitive import primitive
from .reduction import max_with_index, reduce_mean
from .shape_primitives import broadcast_to, reduce_sum, reshape_to, transpose_by

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool2d", "adaptive_max_pool3d",
]  # fmt: skip


def _bins(n: int, out: int) -> tuple[Array, Array, Array]:
    """Divide an axis of size `n` into `out` adaptive pooling windows.

    Returns (indices, mask, count). `indices` (out, longest window) has the input positions of each
    window, `mask` is False where a window is shorter than the longest, and `count` (out,) is the
    length of each window.
    """
    try:
        begin = np.arange(out) * n // out
    except MemoryError as error:
        raise DeviceMemoryError(f"adaptive pooling: output size {out}: {error}") from error
    end = -(-(np.arange(1, out + 1) * n) // out)
    most = int((end - begin).max(initial=1))
    index = begin[:, None] + np.arange(most)[None, :]
    mask = index < end[:, None]
    return np.minimum(index, n - 1).astype(np.int64), mask, end - begin


@op(name="adaptive_avg_pool", dtypes=FLOATING)
def adaptive_avg(input: Tensor, output_size: Ints):
    """Composite op: mean over windows that split each spatial axis into nearly equal cells.

    `input` has shape (N, C, spatial...); `output_size` has the number of cells of each spatial
    axis.
    """
    x = input
    for i, out in enumerate(output_size):
        axis = 2 + i
        n = x.shape[axis]
        lead, tail = x.shape[:axis], x.shape[axis + 1 :]
        if out and n % out == 0:
            x = reshape_to(x, (*lead, out, n // out, *tail))
            x = reduce_mean(x, (axis + 1,), False)
            continue
        index, mask, count = _bins(n, out)
        parts = gather(x, index, axis)
        shape = (*index.shape, *[1] * len(tail))
        parts = select_by(mask.reshape(shape), parts, fill((), 0, x.dtype))
        total = reduce_sum(parts, (axis + 1,), False)
        x = total / count.reshape(out, *[1] * len(tail)).astype(x.dtype.np)
    return x


@op(name="adaptive_max_pool", dtypes=FLOATING)
def adaptive_max(input: Tensor, output_size: Ints):
    """Composite op: maximum of each adaptive window, and its index among the flattened positions.

    `input` has shape (N, C, spatial...), `output_size` has the number of cells of each spatial
    axis, and both results have shape (N, C, *output_size). An index is the position of the maximum
    in the flattened spatial axes.
    """
    n, c, *sizes = input.shape
    k = len(sizes)
    x = input
    place, inside = None, None
    most = []
    for i, (size, out) in enumerate(zip(sizes, output_size, strict=True)):
        index, mask, _ = _bins(size, out)
        x = gather(x, index, 2 + 2 * i)  # axes become out, most per spatial axis
        shape = [1] * (2 * k)
        shape[2 * i : 2 * i + 2] = index.shape
        most.append(index.shape[1])
        here = index.reshape(shape) * size_of(sizes[i + 1 :])
        place = here if place is None else place + here
        inside = mask.reshape(shape) if inside is None else inside & mask.reshape(shape)
    assert inside is not None and place is not None  # there is at least one spatial axis
    perm = (0, 1, *range(2, 2 + 2 * k, 2), *range(3, 3 + 2 * k, 2))
    order = (*range(0, 2 * k, 2), *range(1, 2 * k, 2))
    flat = (*output_size, size_of(most))
    parts = reshape_to(transpose_by(x, perm), (n, c, *flat))
    inside = np.ascontiguousarray(inside.transpose(order)).reshape(flat)
    place = np.ascontiguousarray(place.transpose(order)).reshape(flat)
    parts = select_by(inside, parts, fill((), lowest(input.dtype), input.dtype))
    values, first = max_with_index(parts, 2 + k, True)
    places = gather_elements_by(broadcast_to(place, (n, c, *flat)), first, 2 + k)
    full = (n, c, *output_size)
    return reshape_to(values, full), reshape_to(places, full)


def _output_size(name: str, x: Tensor, output_size: object, n: int) -> tuple[int, ...]:
    given = (output_size,) * n if not isinstance(output_size, (tuple, list)) else tuple(output_size)
    if len(given) != n:
        raise ArgumentValueError(
            f"{name}: got output_size={output_size!r}; wanted an int or {n} of them"
        )
    sizes = tuple(
        x.shape[2 + i] if v is None else tuple_of(name, "output_size", v, 1)[0]
        for i, v in enumerate(given)
    )
    if any(v < 1 for v in sizes) or 0 in x.shape[2:]:
        raise ArgumentValueError(
            f"{name}: got output_size={output_size!r} for input of shape {x.shape}; wanted "
            "positive sizes"
        )
    return sizes


_ADAPTIVE_DOC = """Return the {what} of each window, for windows that divide the spatial axes
    into `output_size` nearly equal parts (`mindspore.ops.adaptive_{kind}_pool{n}d`).

    Element i of an axis of the result stands for the window of the elements j of the input with
    floor(i * size / out) <= j < ceil((i + 1) * size / out), where `size` and `out` are the sizes of
    the axis before and after.

    Args:
        input: floating Tensor (N, C, {axes}), or (C, {axes}) for a single example.
        output_size: int, or one int for each spatial axis; None instead of an int keeps an axis's
            size.{extra}

    Returns:
        Tensor (N, C, {axes}) with spatial axes of `output_size`, without N if `input` has
        none{pair}.

    Raises:
        ValueError: `input` has another number of axes, or a size is not positive.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.adaptive_{kind}_pool{n}d(ms.ops.ones((1, 1, {four})), 2).shape)
        (1, 1, {two})
    """


def _adaptive_avg(name, input, output_size, n):
    x, single = batched(name, input, n)
    return unbatched(adaptive_avg(x, _output_size(name, x, output_size, n)), single)


def _adaptive_max(name, input, output_size, return_indices, n):
    x, single = batched(name, input, n)
    values, indices = adaptive_max(x, _output_size(name, x, output_size, n))
    values = unbatched(values, single)
    return (values, unbatched(indices, single)) if return_indices else values


@cached_call
def adaptive_avg_pool1d(input: Tensor, output_size: int | Ints) -> Tensor:
    return _adaptive_avg("adaptive_avg_pool1d", input, output_size, 1)


@primitive("AdaptiveAvgPool2D(output_size)(x)", op="adaptive_avg_pool")
@cached_call
def adaptive_avg_pool2d(input: Tensor, output_size: int | Ints) -> Tensor:
    return _adaptive_avg("adaptive_avg_pool2d", input, output_size, 2)


@primitive("AdaptiveAvgPool3D(output_size)(x)", op="adaptive_avg_pool")
@cached_call
def adaptive_avg_pool3d(input: Tensor, output_size: int | Ints) -> Tensor:
    return _adaptive_avg("adaptive_avg_pool3d", input, output_size, 3)


@cached_call
def adaptive_max_pool1d(
    input: Tensor, output_size: int | Ints, return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    return _adaptive_max("adaptive_max_pool1d", input, output_size, return_indices, 1)


@cached_call
def adaptive_max_pool2d(
    input: Tensor, output_size: int | Ints, return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    return _adaptive_max("adaptive_max_pool2d", input, output_size, return_indices, 2)


@cached_call
def adaptive_max_pool3d(
    input: Tensor, output_size: int | Ints, return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    return _adaptive_max("adaptive_max_pool3d", input, output_size, return_indices, 3)


for _n in (1, 2, 3):
    globals()[f"adaptive_avg_pool{_n}d"].__doc__ = _ADAPTIVE_DOC.format(
        what="mean", kind="avg", extra="", pair="", **doc_words(_n)
    )
    globals()[f"adaptive_max_pool{_n}d"].__doc__ = _ADAPTIVE_DOC.format(
        what="largest element",
        kind="max",
        extra=(
            "\n        return_indices: whether to return each element's index, too, in the "
            "flattened spatial axes."
        ),
        pair=";\n        with `return_indices` a tuple of it and an int64 Tensor of the same shape",
        **doc_words(_n),
    )
