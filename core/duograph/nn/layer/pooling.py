"""Maximum, average and power-average pooling over 1 to 3 spatial axes.

The layers translate MindSpore's arguments to the `max_pool` and `avg_pool` primitives, which take
one padding pair per axis. Users construct them. The module `adaptive_pooling` has layers whose
output size is given instead.
"""

from __future__ import annotations

import numpy as np

from ... import ops
from ...errors import ArgumentValueError, ShapeError
from ...tensor import Tensor
from .. import _check
from .._operators import Operator
from .._types import Array, Ints
from ..cell import Cell
from .conv import Pairs, same_padding

__all__ = [
    "MaxPool1d", "MaxPool2d", "MaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d",
    "LPPool1d", "LPPool2d",
]  # fmt: skip


def _ceil_padding(
    size: tuple[int, ...],
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    dilation: tuple[int, ...],
    pairs: Pairs,
) -> Pairs:
    """Return `pairs` with more padding at the end, where ceil_mode adds a last, partial window.

    All arguments have one item per spatial axis; that of `pairs` is (elements before, after).
    """
    found = []
    for n, k, s, d, (low, high) in zip(size, kernel, stride, dilation, pairs, strict=True):
        reach = d * (k - 1) + 1
        out = -(-(n + low + high - reach) // s) + 1
        if (out - 1) * s >= n + low:
            out -= 1
        found.append((low, max((out - 1) * s + reach - n - low, high)))
    return tuple(found)


class _Pool(Cell):
    """Base of the pooling layers with fixed windows: checks windows, strides and padding.

    A subclass sets `_axes`, the number of spatial axes.
    """

    _axes = 2

    def __init__(
        self,
        kernel_size: Ints,
        stride: Ints,
        pad_mode: str,
        padding: Ints,
        dilation: Ints,
        ceil_mode: bool,
    ) -> None:
        super().__init__()
        owner, axes = type(self).__name__, self._axes
        self._kernel = _check.ints(owner, "kernel_size", kernel_size, axes)
        self._stride = _check.ints(owner, "stride", stride, axes)
        self._dilation = _check.ints(owner, "dilation", dilation, axes)
        if not isinstance(pad_mode, str) or pad_mode.lower() not in ("valid", "same", "pad"):
            raise ArgumentValueError(
                f"{owner}: got pad_mode={pad_mode!r}; wanted 'valid', 'same' or 'pad'"
            )
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.pad_mode = pad_mode.upper()
        self.ceil_mode = _check.boolean(owner, "ceil_mode", ceil_mode)
        both = _check.ints(owner, "padding", padding, axes, low=0)
        if self.pad_mode != "PAD" and any(both):
            raise ArgumentValueError(
                f"{owner}: got padding={padding!r} with pad_mode={pad_mode!r}; wanted "
                "pad_mode='pad'"
            )
        for p, k in zip(both, self._kernel, strict=True):
            if p > k // 2:
                raise ArgumentValueError(
                    f"{owner}: got padding={padding!r} for kernel_size={kernel_size!r}; "
                    f"wanted at most half of it"
                )
        self._pairs = tuple((p, p) for p in both)

    def _batched(self, x: Tensor) -> tuple[Tensor, bool]:
        """Return `x` with a batch axis, and whether the axis was added because `x` had none."""
        _check.rank(type(self).__name__, x, self._axes + 1, self._axes + 2)
        single = x.ndim == self._axes + 1
        return (x.expand_dims(0) if single else x), single

    def _pairs_for(self, x: Tensor) -> Pairs:
        """Return the (before, after) padding of each spatial axis of `x`.

        With `ceil_mode`, it includes the additional padding at the end. Raises ShapeError if the
        padded input is smaller than the window.
        """
        size = x.shape[2:]
        if self.pad_mode == "SAME":
            return same_padding(size, self._kernel, self._stride, self._dilation)
        pairs = self._pairs
        if self.ceil_mode:
            pairs = _ceil_padding(size, self._kernel, self._stride, self._dilation, pairs)
        for n, k, d, (low, high) in zip(size, self._kernel, self._dilation, pairs, strict=True):
            if n + low + high < d * (k - 1) + 1:
                raise ShapeError(
                    f"{type(self).__name__}: input has shape {x.shape}, smaller than "
                    f"kernel_size={self.kernel_size!r}; wanted a larger input or padding"
                )
        return pairs

    def extend_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, pad_mode={self.pad_mode}"


class _MaxPool(_Pool):
    """Base class of the max pooling layers; its constructor is that of the 1-D and 3-D layers."""

    def __init__(
        self,
        kernel_size: Ints = 1,
        stride: Ints = 1,
        pad_mode: str = "valid",
        padding: Ints = 0,
        dilation: Ints = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, padding, dilation, ceil_mode)
        self.return_indices = return_indices

    def construct(self, x: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        x, single = self._batched(x)
        values, indices = ops.max_pool(
            x, kernel=self._kernel, stride=self._stride, padding=self._pairs_for(x),
            dilation=self._dilation,
        )  # fmt: skip
        if single:
            values, indices = values.squeeze(0), indices.squeeze(0)
        return (values, indices) if self.return_indices else values


class MaxPool2d(_MaxPool):
    """Maximum over windows of (N, C, H, W) or (C, H, W) (`mindspore.nn.MaxPool2d`).

    Args:
        kernel_size, stride: int, or two ints; both 1 by default.
        pad_mode: ``"valid"`` (the default), ``"same"`` or ``"pad"``.
        padding: with ``"pad"``: int or two ints, at most half the kernel; padded cells count as
            minus infinity.
        dilation: distance between adjacent elements of a window.
        return_indices: whether to return also the int64 index of each maximum in the flattened H x
            W.
        ceil_mode: whether a partial window at the end also yields an output.
        data_format: ``"NCHW"`` or ``"NHWC"``.

    Raises:
        ValueError: an argument out of range, or an input of another rank.

    Examples:
        >>> import duograph as ms
        >>> ms.nn.MaxPool2d(2, 2)(ms.ops.ones((1, 3, 4, 4), ms.float32)).shape
        (1, 3, 2, 2)
    """

    max_pool = Operator(
        "MaxPool",
        lambda c: {
            "kernel_size": c._kernel, "strides": c._stride, "pad_mode": c.pad_mode,
            "data_format": c.data_format,
        },
    )  # fmt: skip

    def __init__(
        self,
        kernel_size: Ints = 1,
        stride: Ints = 1,
        pad_mode: str = "valid",
        padding: Ints = 0,
        dilation: Ints = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
        data_format: str = "NCHW",
    ) -> None:
        super().__init__(
            kernel_size, stride, pad_mode, padding, dilation, return_indices, ceil_mode
        )
        self.data_format = _check.one_of("MaxPool2d", "data_format", data_format, ("NCHW", "NHWC"))

    def construct(self, x: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        if self.data_format == "NHWC":
            found = super().construct(x.transpose(0, 3, 1, 2))
            if isinstance(found, tuple):
                values, indices = found
                return values.transpose(0, 2, 3, 1), indices.transpose(0, 2, 3, 1)
            return found.transpose(0, 2, 3, 1)
        return super().construct(x)


class MaxPool1d(_MaxPool):
    """Maximum over windows of (N, C, L) or (C, L) (`mindspore.nn.MaxPool1d`); see `MaxPool2d`.

    Examples:
        >>> import duograph as ms
        >>> ms.nn.MaxPool1d(2, 2)(ms.ops.ones((1, 3, 4), ms.float32)).shape
        (1, 3, 2)
    """

    expand = Operator("ExpandDims")
    squeeze = Operator("Squeeze", lambda c: {"axis": 2})

    _axes = 1


class MaxPool3d(_MaxPool):
    """Maximum over windows of (N, C, D, H, W) or (C, D, H, W) (`mindspore.nn.MaxPool3d`).

    See `MaxPool2d`.

    Examples:
        >>> import duograph as ms
        >>> ms.nn.MaxPool3d(2, 2)(ms.ops.ones((1, 3, 4, 4, 4), ms.float32)).shape
        (1, 3, 2, 2, 2)
    """

    _axes = 3


class _AvgPool(_Pool):
    """Base class of the average pooling layers; its constructor is that of the 3-D layer."""

    def __init__(
        self,
        kernel_size: Ints = 1,
        stride: Ints = 1,
        pad_mode: str = "valid",
        padding: Ints = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, padding, 1, ceil_mode)
        owner = type(self).__name__
        self.count_include_pad = _check.boolean(owner, "count_include_pad", count_include_pad)
        if divisor_override is not None and (
            isinstance(divisor_override, bool)
            or not isinstance(divisor_override, int)
            or divisor_override == 0
        ):
            raise ArgumentValueError(
                f"{owner}: got divisor_override={divisor_override!r}; wanted an int other than 0"
            )
        self.divisor_override = divisor_override

    def construct(self, x: Tensor) -> Tensor:
        x, single = self._batched(x)
        pairs = self._pairs_for(x)
        if pairs == self._pairs or self.divisor_override is not None:
            out = ops.avg_pool(
                x, kernel=self._kernel, stride=self._stride, padding=pairs,
                count_include_pad=self.count_include_pad, divisor=self.divisor_override or 0,
            )  # fmt: skip
        else:
            # the mean never counts cells that "same" or ceil_mode added
            counted = self._pairs if self.count_include_pad else ((0, 0),) * self._axes
            sums = ops.avg_pool(
                x, kernel=self._kernel, stride=self._stride, padding=pairs,
                count_include_pad=True, divisor=1,
            )  # fmt: skip
            counts = _window_counts(x.shape[2:], self._kernel, self._stride, pairs, counted)
            out = sums / Tensor(counts, x.dtype)
        return out.squeeze(0) if single else out


def _window_counts(
    size: tuple[int, ...],
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    pairs: Pairs,
    counted: Pairs,
) -> Array:
    """Return the divisors of average pooling: the number of cells that count in each window.

    A cell counts if it is in the input or in the padding `counted`, which is part of the padding
    `pairs`. The array has one axis per spatial axis.
    """
    per_axis = []
    for n, k, s, (low, high), (c_low, c_high) in zip(
        size, kernel, stride, pairs, counted, strict=True
    ):
        starts = np.arange(0, n + low + high - k + 1, s) - low
        ends = np.minimum(starts + k, n + c_high)
        per_axis.append(ends - np.maximum(starts, -c_low))
    counts = per_axis[0]
    for more in per_axis[1:]:
        counts = counts[..., None] * more
    return counts


class AvgPool2d(_AvgPool):
    """Mean over windows of (N, C, H, W) or (C, H, W) (`mindspore.nn.AvgPool2d`).

    Args:
        kernel_size, stride, pad_mode, padding, ceil_mode, data_format: as for `MaxPool2d`.
        count_include_pad: whether cells of the padding of ``"pad"`` count in the mean.
        divisor_override: number by which sums are divided instead of the count; None for the count.

    Raises:
        ValueError: an argument out of range, or an input of another rank.

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.AvgPool2d(2, 2)(ms.ops.ones((1, 1, 2, 2), ms.float32)))
        [[[[1.]]]]
    """

    avg_pool = Operator(
        "AvgPool",
        lambda c: {
            "kernel_size": c._kernel, "strides": c._stride, "pad_mode": c.pad_mode,
            "data_format": c.data_format,
        },
    )  # fmt: skip

    def __init__(
        self,
        kernel_size: Ints = 1,
        stride: Ints = 1,
        pad_mode: str = "valid",
        padding: Ints = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
        data_format: str = "NCHW",
    ) -> None:
        super().__init__(
            kernel_size, stride, pad_mode, padding, ceil_mode, count_include_pad, divisor_override
        )
        self.data_format = _check.one_of("AvgPool2d", "data_format", data_format, ("NCHW", "NHWC"))

    def construct(self, x: Tensor) -> Tensor:
        if self.data_format == "NHWC":
            return super().construct(x.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1)
        return super().construct(x)


class AvgPool1d(_AvgPool):
    """Mean over windows of (N, C, L) or (C, L) (`mindspore.nn.AvgPool1d`); see `AvgPool2d`.

    Examples:
        >>> import duograph as ms
        >>> ms.nn.AvgPool1d(2, 2)(ms.ops.ones((1, 3, 4), ms.float32)).shape
        (1, 3, 2)
    """

    expand = Operator("ExpandDims")
    squeeze = Operator("Squeeze", lambda c: {"axis": 2})
    reduce_mean = Operator("ReduceMean", lambda c: {"keep_dims": True})
    slice = Operator("Slice")

    _axes = 1

    def __init__(
        self,
        kernel_size: Ints = 1,
        stride: Ints = 1,
        pad_mode: str = "valid",
        padding: Ints = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, padding, ceil_mode, count_include_pad)


class AvgPool3d(_AvgPool):
    """Mean over windows of (N, C, D, H, W) or (C, D, H, W) (`mindspore.nn.AvgPool3d`).

    See `AvgPool2d`.

    Examples:
        >>> import duograph as ms
        >>> ms.nn.AvgPool3d(2, 2)(ms.ops.ones((1, 3, 4, 4, 4), ms.float32)).shape
        (1, 3, 2, 2, 2)
    """

    _axes = 3


class LPPool2d(_Pool):
    """`(sum of x ** norm_type over windows) ** (1 / norm_type)` (`mindspore.nn.LPPool2d`).

    Examples:
        >>> import duograph as ms
        >>> ms.nn.LPPool2d(2.0, 2)(ms.ops.ones((1, 3, 4, 4), ms.float32)).shape
        (1, 3, 2, 2)
    """

    def __init__(
        self,
        norm_type: float,
        kernel_size: Ints,
        stride: Ints | None = None,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__(
            kernel_size, kernel_size if stride is None else stride, "valid", 0, 1, ceil_mode
        )
        self.norm_type = float(norm_type)

    def construct(self, x: Tensor) -> Tensor:
        x, single = self._batched(x)
        sums = ops.avg_pool(
            ops.pow(x, self.norm_type), kernel=self._kernel, stride=self._stride,
            padding=self._pairs_for(x), count_include_pad=True, divisor=1,
        )  # fmt: skip
        out = ops.pow(sums, 1.0 / self.norm_type)
        return out.squeeze(0) if single else out


class LPPool1d(LPPool2d):
    """`LPPool2d` for (N, C, L) or (C, L) (`mindspore.nn.LPPool1d`).

    Examples:
        >>> import duograph as ms
        >>> ms.nn.LPPool1d(2.0, 2)(ms.ops.ones((1, 3, 4), ms.float32)).shape
        (1, 3, 2)
    """

    _axes = 1
