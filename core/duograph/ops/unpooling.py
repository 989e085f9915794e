"""Inverse and fractional max pooling, and columns of windows: max_unpool2d, col2im and others.

Users call them. All are made of gathers and scatters, so they run on every backend and have
gradients.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dtype import float32, int64
from ..errors import ArgumentValueError, ShapeError
from ..tensor import Tensor
from .axes import tuple_of
from .convolution_functions import col2im, unfold
from .creation import cast_to, fill
from .data_formats import spatial, wanted_format
from .gather_scatter import gather_elements_by
from .primitive import Primitive
from .random import rand
from .reduction import argmax_along
from .rounding import floor
from .scattering import tensor_scatter_elements
from .shape_primitives import broadcast_to, reshape_to

__all__ = [
    "Col2Im", "FractionalMaxPool3DWithFixedKsize", "FractionalMaxPoolWithFixedKsize", "Im2Col",
    "MaxUnpool2D", "MaxUnpool3D", "fractional_max_pool2d", "fractional_max_pool3d",
    "max_unpool1d", "max_unpool2d", "max_unpool3d",
]  # fmt: skip

Ints = int | Sequence[int]


# ---- unpooling -----------------------------------------------------------------------------------


def _unpool(
    name: str, x: Tensor, indices: Tensor, kernel: Ints, stride: Ints | None, padding: Ints,
    output_size: Sequence[int] | None, n: int,
) -> Tensor:  # fmt: skip
    if x.ndim not in (n + 1, n + 2) or x.shape != indices.shape:
        raise ShapeError(
            f"{name}: got shapes {x.shape} and {indices.shape}; wanted the same, of {n + 1} or "
            f"{n + 2} axes"
        )
    size = tuple_of(name, "kernel_size", kernel, n)
    step = size if stride in (None, 0) else tuple_of(name, "stride", stride, n)
    pad = tuple_of(name, "padding", padding, n)
    lead, have = x.shape[:-n], x.shape[-n:]
    usual = tuple((h - 1) * s - 2 * p + k for h, s, p, k in zip(have, step, pad, size))
    wanted = usual
    if output_size:
        wanted = tuple(int(v) for v in output_size)[-n:]
        if any(abs(a - b) >= s for a, b, s in zip(wanted, usual, step)):
            raise ArgumentValueError(
                f"{name}: got output_size={tuple(output_size)}; wanted about {usual}, by less "
                f"than the stride {step}"
            )
    rows, count = math.prod(lead), math.prod(wanted)
    base = fill((rows, count), 0, x.dtype)
    flat = reshape_to(x, (rows, math.prod(have)))
    places = reshape_to(cast_to(indices, int64), flat.shape)
    return reshape_to(tensor_scatter_elements(base, places, flat, 1), (*lead, *wanted))


def max_unpool1d(
    x: Tensor, indices: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:  # fmt: skip
    """Put the maxima of `max_pool1d` back, with zeros elsewhere (`mindspore.ops.max_unpool1d`).

    Args:
        x: Tensor (N, C, L) or (C, L).
        indices: integer Tensor: where each element was, as `max_pool1d` returns it.
        kernel_size, stride, padding: arguments of the pooling; the stride is `kernel_size` by
            default.
        output_size: size of the result, needed where several sizes are pooled to that of `x`; or
            None.

    Returns:
        Tensor (N, C, L') or (C, L').

    Raises:
        ValueError: shapes that do not fit.
        IndexError: an index out of range.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.max_unpool1d(ms.Tensor([[2.0, 4.0]]), ms.Tensor([[1, 2]]), 2))
        [[0. 2. 4. 0.]]
    """
    name = "max_unpool1d"
    return _unpool(name, x, indices, kernel_size, stride, padding, output_size, 1)


def max_unpool2d(
    x: Tensor, indices: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:  # fmt: skip
    """Put the maxima of `max_pool2d` back, with zeros elsewhere (`mindspore.ops.max_unpool2d`).

    Args:
        x: Tensor (N, C, H, W) or (C, H, W).
        indices, kernel_size, stride, padding, output_size: arguments of
            `max_unpool1d`.

    Returns:
        Tensor (N, C, H', W') or (C, H', W').

    Examples:
        >>> import duograph as ms
        >>> ms.ops.max_unpool2d(ms.ops.ones((1, 2, 2)), ms.Tensor([[[0, 3], [8, 15]]]), 2).shape
        (1, 4, 4)
    """
    name = "max_unpool2d"
    return _unpool(name, x, indices, kernel_size, stride, padding, output_size, 2)


def max_unpool3d(
    x: Tensor, indices: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:  # fmt: skip
    """Put the maxima of `max_pool3d` back, with zeros elsewhere (`mindspore.ops.max_unpool3d`).

    Args:
        x: Tensor (N, C, D, H, W) or (C, D, H, W).
        indices, kernel_size, stride, padding, output_size: arguments of
            `max_unpool1d`.

    Returns:
        Tensor (N, C, D', H', W') or (C, D', H', W').

    Examples:
        >>> import duograph as ms
        >>> ms.ops.max_unpool3d(ms.ops.ones((1, 1, 1, 1)), ms.Tensor([[[[7]]]]), 2).shape
        (1, 2, 2, 2)
    """
    name = "max_unpool3d"
    return _unpool(name, x, indices, kernel_size, stride, padding, output_size, 3)


class _MaxUnpool(Primitive):
    _n = 2
    _format = "NCHW"

    def __init__(
        self, ksize: Ints, strides: Ints = 0, pads: Ints = 0, output_shape: Sequence[int] = (),
        data_format: str = "NCHW",
    ) -> None:  # fmt: skip
        super().__init__()
        name = type(self).__name__
        self.ksize = spatial(name, "ksize", ksize, self._n)
        self.strides = spatial(name, "strides", strides, self._n)
        self.pads = spatial(name, "pads", pads, self._n)
        self.output_shape = tuple(output_shape)
        self.data_format = wanted_format(name, data_format, (self._format,))

    def __call__(self, x: Tensor, argmax: Tensor) -> Tensor:
        """Return a tensor of zeros, except for the elements of `x` at the positions `argmax`.

        `argmax` has the shape of `x`. It has the indices that max pooling returned: positions in
        the flattened spatial axes of the tensor before pooling, which has the shape of the result.
        """
        strides = self.ksize if not any(self.strides) else self.strides
        return _unpool(
            self.name, x, argmax, self.ksize, strides, self.pads, self.output_shape or None,
            self._n,
        )  # fmt: skip


class MaxUnpool2D(_MaxUnpool):
    """Inverse of two-dimensional max pooling, with zeros elsewhere.

    `MaxUnpool2D(ksize, strides=0, pads=0, output_shape=(), data_format="NCHW")(x, argmax)`; strides
    of 0 mean `ksize`.
    """


class MaxUnpool3D(_MaxUnpool):
    """Inverse of three-dimensional max pooling, with zeros elsewhere.

    `MaxUnpool3D(ksize, strides=0, pads=0, output_shape=(), data_format="NCDHW")(x, argmax)`;
    strides of 0 mean `ksize`.
    """

    _n = 3
    _format = "NCDHW"

    def __init__(
        self, ksize: Ints, strides: Ints = 0, pads: Ints = 0, output_shape: Sequence[int] = (),
        data_format: str = "NCDHW",
    ) -> None:  # fmt: skip
        super().__init__(ksize, strides, pads, output_shape, data_format)


# ---- fractional pooling --------------------------------------------------------------------------


def _starts(unit: Tensor, size: int, kernel: int, count: int) -> Tensor:
    """Return where the windows of fractional pooling begin on an axis, int64 (rows, count).

    `unit` (rows, 1) has a random number for each row, `size` is the size of the axis, `kernel` that
    of a window, and `count` the number of windows.
    """
    if count == 1:
        return fill((unit.shape[0], 1), size - kernel, int64)
    alpha = (size - kernel) / (count - 1)
    steps = Tensor(np.arange(count, dtype=np.float32).reshape(1, count))
    begin = floor((steps + unit) * alpha) - floor(unit * alpha)
    last = Tensor((np.arange(count) == count - 1).reshape(1, count))
    moved: Tensor = last.astype("int64") * (size - kernel) + (1 - last.astype("int64")) * cast_to(
        begin, int64
    )
    return moved


def _fractional(
    name: str, x: Tensor, kernel: Ints, output_size: Ints | None, output_ratio: Any,
    samples: Tensor | None, n: int,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    if x.ndim not in (n + 1, n + 2):
        raise ShapeError(f"{name}: got shape {x.shape}; wanted {n + 1} or {n + 2} axes")
    if (output_size is None) == (output_ratio is None):
        raise ArgumentValueError(f"{name}: wanted one of output_size and output_ratio")
    lead, have = x.shape[:-n], x.shape[-n:]
    size = tuple_of(name, "kernel_size", kernel, n)
    if output_size is not None:
        counts = tuple_of(name, "output_size", output_size, n)
    else:
        ratios = (output_ratio,) * n if isinstance(output_ratio, float) else tuple(output_ratio)
        counts = tuple(int(h * r) for h, r in zip(have, ratios))
    if any(c < 1 or c + k - 1 > h for c, k, h in zip(counts, size, have)):
        raise ArgumentValueError(
            f"{name}: got an output of {counts} with windows of {size} for {have}; wanted less"
        )
    rows = math.prod(lead)
    unit = rand((rows, n)) if samples is None else reshape_to(cast_to(samples, float32), (rows, n))
    places: Tensor | None = None
    stride = 1
    for axis in range(n - 1, -1, -1):  # the first random number is that of the last axis
        column = reshape_to(unit[:, n - 1 - axis], (rows, 1))
        begin = _starts(column, have[axis], size[axis], counts[axis])
        inner = Tensor(np.arange(size[axis]).reshape(1, 1, -1))
        at = (reshape_to(begin, (rows, counts[axis], 1)) + inner) * stride
        shape = [rows, *[1] * (2 * n)]
        shape[1 + axis], shape[1 + n + axis] = counts[axis], size[axis]
        part = reshape_to(at, tuple(shape))
        places = part if places is None else places + part
        stride *= have[axis]
    cells, window = math.prod(counts), math.prod(size)
    full = reshape_to(broadcast_to(places, (rows, *counts, *size)), (rows, cells * window))
    found = gather_elements_by(reshape_to(x, (rows, math.prod(have))), full, 1)
    values = reshape_to(found, (rows, cells, window))
    best = reshape_to(cast_to(argmax_along(values, 2), int64), (rows, cells, 1))
    top = gather_elements_by(values, best, 2)
    where = gather_elements_by(reshape_to(full, (rows, cells, window)), best, 2)
    return reshape_to(top, (*lead, *counts)), reshape_to(where, (*lead, *counts))


def fractional_max_pool2d(
    input: Tensor, kernel_size: Ints, output_size: Ints | None = None,
    output_ratio: float | Sequence[float] | None = None, return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Tensor | tuple[Tensor, Tensor]:  # fmt: skip
    """Apply max pooling to windows at random positions (`mindspore.ops.fractional_max_pool2d`).

    Args:
        input: Tensor (N, C, H, W) or (C, H, W).
        kernel_size: int, or (height, width) of a window.
        output_size: int, or (height, width) of the result; or None.
        output_ratio: ratio of the result's size to that of the input; or None.
        return_indices: whether to return also the index of each maximum.
        _random_samples: Tensor (N, C, 2) of numbers in [0, 1); default random ones.

    Returns:
        Tensor (N, C, height, width), or a pair with int64 indices.

    Raises:
        ValueError: other axes, both or none of size and ratio, or windows that do not fit.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.fractional_max_pool2d(ms.ops.ones((1, 2, 6, 6)), 2, output_size=3).shape
        (1, 2, 3, 3)
    """
    found = _fractional(
        "fractional_max_pool2d", input, kernel_size, output_size, output_ratio, _random_samples, 2
    )
    return found if return_indices else found[0]


def fractional_max_pool3d(
    input: Tensor, kernel_size: Ints, output_size: Ints | None = None,
    output_ratio: float | Sequence[float] | None = None, return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Tensor | tuple[Tensor, Tensor]:  # fmt: skip
    """Do what `fractional_max_pool2d` does, for tensors (N, C, D, H, W)
    (`mindspore.ops.fractional_max_pool3d`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.fractional_max_pool3d(ms.ops.ones((1, 2, 6, 6, 6)), 2, output_size=3).shape
        (1, 2, 3, 3, 3)
    """
    found = _fractional(
        "fractional_max_pool3d", input, kernel_size, output_size, output_ratio, _random_samples, 3
    )
    return found if return_indices else found[0]


class _Fractional(Primitive):
    _n = 2
    _format = "NCHW"

    def __init__(self, ksize: Ints, output_shape: Ints, data_format: str = "NCHW") -> None:
        super().__init__()
        self.ksize, self.output_shape = ksize, output_shape
        name = type(self).__name__
        self.data_format = wanted_format(name, data_format, (self._format,))

    def __call__(self, input_x: Tensor, random_samples: Tensor) -> tuple[Tensor, Tensor]:
        """Return (maxima of the fractional pooling windows, their flat spatial indices).

        `random_samples` (N, C, axes) has random numbers in [0, 1), which determine where windows
        begin.
        """
        return _fractional(
            self.name, input_x, self.ksize, self.output_shape, None, random_samples, self._n
        )


class FractionalMaxPoolWithFixedKsize(_Fractional):
    """Fractional max pooling of (N, C, H, W).

    `FractionalMaxPoolWithFixedKsize(ksize, output_shape)(input_x, random_samples)` returns (values,
    indices).
    """


class FractionalMaxPool3DWithFixedKsize(_Fractional):
    """Fractional max pooling of (N, C, D, H, W).

    `FractionalMaxPool3DWithFixedKsize(ksize, output_shape)(x, random_samples)` returns (values,
    indices).
    """

    _n = 3
    _format = "NCDHW"

    def __init__(self, ksize: Ints, output_shape: Ints, data_format: str = "NCDHW") -> None:
        super().__init__(ksize, output_shape, data_format)


# ---- columns of windows --------------------------------------------------------------------------


class Col2Im(Primitive):
    """Image to which columns of sliding windows are added; the adjoint of `Im2Col`.

    `Col2Im(kernel_size, dilation=1, padding=0, stride=1)(x, output_size)`.
    """

    def __init__(
        self, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
    ) -> None:
        super().__init__()
        self.kernel_size, self.dilation = kernel_size, dilation
        self.padding, self.stride = padding, stride

    def __call__(self, x: Tensor, output_size: Tensor | Sequence[int]) -> Tensor:
        """Return an image (N, C, height, width) to which sliding windows are added.

        `x` is (N, C, elements of a window, windows), and `output_size` is (height, width). Where
        windows overlap, their elements are summed.
        """
        return col2im(x, output_size, self.kernel_size, self.dilation, self.padding, self.stride)


class Im2Col(Primitive):
    """Columns of sliding windows: `Im2Col(ksizes, strides=1, dilations=1, pads=0)(x)`.

    The result has shape (N, C, elements of a window, windows).
    """

    def __init__(
        self, ksizes: Ints, strides: Ints = 1, dilations: Ints = 1, pads: Ints = 0
    ) -> None:
        super().__init__()
        self.ksizes, self.strides = ksizes, strides
        self.dilations, self.pads = dilations, pads

    def __call__(self, x: Tensor) -> Tensor:
        """Copy the sliding windows of an image (N, C, H, W) to columns.

        The result has shape (N, C, elements of a window, windows).
        """
        found = unfold.public(x, self.ksizes, self.dilations, self.pads, self.strides)
        n, c = x.shape[:2]
        return reshape_to(found, (n, c, found.shape[1] // c, found.shape[2]))
