"""Maximum, average, power-average and adaptive pooling over 1 to 3 spatial axes.

The layers translate MindSpore's arguments to the `max_pool` and `avg_pool` primitives, which take
one padding pair per axis. Adaptive pooling uses a matmul or a gather where windows differ in size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from ... import ops
from ...errors import ArgumentError, ArgumentValueError, ShapeError
from ...tensor import Tensor
from .. import _check
from .._operators import Operator
from .._types import Array, Ints
from ..cell import Cell
from .conv import Pairs, same_padding

__all__ = [
    "MaxPool1d", "MaxPool2d", "MaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d",
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "LPPool1d", "LPPool2d",
]  # fmt: skip


def _ceil_padding(
    size: tuple[int, ...],
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    dilation: tuple[int, ...],
    pairs: Pairs,
) -> Pairs:
    """Return the padding pairs `pairs`, enlarged at the end for ceil_mode's partial last window."""
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
        """Return (x with a batch axis, whether the axis was added because `x` had none)."""
        _check.rank(type(self).__name__, x, self._axes + 1, self._axes + 2)
        single = x.ndim == self._axes + 1
        return (x.expand_dims(0) if single else x), single

    def _pairs_for(self, x: Tensor) -> Pairs:
        """Return the (low, high) padding of each spatial axis of `x`, ceil_mode's included."""
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
        dilation: distance of the elements of a window.
        return_indices: also return the int64 index of each maximum in the flattened H x W.
        ceil_mode: a last, partial window counts too.
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
    """Return the divisors of average pooling: each window's number of cells that count.

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
        count_include_pad: count the padding of ``"pad"`` in the mean.
        divisor_override: divide by this number instead of the count.

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


# ---- adaptive pooling ---------------------------------------------------------------------------


def _windows(n: int, out: int) -> list[range]:
    """Split an axis of length `n` into `out` ranges, the windows of adaptive pooling."""
    return [range(i * n // out, -(-(i + 1) * n // out)) for i in range(out)]


OutputSize: TypeAlias = "int | Sequence[int | None] | None"


class _Adaptive(Cell):
    """Base class of the adaptive pooling layers.

    A subclass sets `_axes`, the number of spatial axes.
    """

    _axes = 2

    def __init__(self, output_size: OutputSize) -> None:
        super().__init__()
        owner, axes = type(self).__name__, self._axes
        several = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * axes
        if len(several) != axes:
            raise ArgumentValueError(
                f"{owner}: got output_size={output_size!r}; wanted an int or {axes} of them"
            )
        for n in several:
            if n is not None:
                if isinstance(n, bool) or not isinstance(n, int):
                    raise ArgumentError(f"{owner}: got output_size={output_size!r}; wanted ints")
                if n < 1:
                    raise ArgumentValueError(
                        f"{owner}: got output_size={output_size!r}; wanted above 0"
                    )
        self.output_size = output_size
        self._sizes = tuple(several)

    def _sizes_for(self, x: Tensor) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return (input sizes, output sizes) of the spatial axes of the input `x`."""
        _check.rank(type(self).__name__, x, self._axes + 1, self._axes + 2)
        size = x.shape[-self._axes :]
        return size, tuple(n if o is None else o for n, o in zip(size, self._sizes, strict=True))


class _AdaptiveAvg(_Adaptive):
    """Base of the adaptive average pooling layers."""

    def construct(self, x: Tensor) -> Tensor:
        size, out = self._sizes_for(x)
        lead = x.shape[: -self._axes]
        if all(n % o == 0 for n, o in zip(size, out, strict=True)):
            if all(o == 1 for o in out):
                return x.mean(tuple(range(-self._axes, 0)), True)
            kernel = tuple(n // o for n, o in zip(size, out, strict=True))
            pooled = ops.avg_pool(
                x.reshape(1, math.prod(lead), *size), kernel=kernel, stride=kernel,
                padding=((0, 0),) * self._axes, count_include_pad=True, divisor=0,
            )  # fmt: skip
            return pooled.reshape(*lead, *out)
        pool = (
            ops.adaptive_avg_pool1d,
            ops.adaptive_avg_pool2d,
            ops.adaptive_avg_pool3d,
        )[self._axes - 1]
        return pool(x.reshape(1, math.prod(lead), *size), out).reshape(*lead, *out)


class AdaptiveAvgPool2d(_AdaptiveAvg):
    """Average pooling to a given output size (`mindspore.nn.AdaptiveAvgPool2d`).

    Args:
        output_size: int, or (H, W); None keeps the length.

    Raises:
        ValueError: a size below 1, or an input of another rank.

    Examples:
        >>> import duograph as ms
        >>> ms.nn.AdaptiveAvgPool2d((1, None))(ms.ops.ones((1, 3, 4, 5), ms.float32)).shape
        (1, 3, 1, 5)
    """

    adaptive_avgpool2d = Operator("AdaptiveAvgPool2D", lambda c: {"output_size": c.output_size})


class AdaptiveAvgPool1d(_AdaptiveAvg):
    """`AdaptiveAvgPool2d` for (N, C, L) (`mindspore.nn.AdaptiveAvgPool1d`).

    Examples:
        >>> import duograph as ms
        >>> ms.nn.AdaptiveAvgPool1d(2)(ms.ops.ones((1, 3, 4), ms.float32)).shape
        (1, 3, 2)
    """

    _axes = 1


class AdaptiveAvgPool3d(_AdaptiveAvg):
    """`AdaptiveAvgPool2d` for (N, C, D, H, W) (`mindspore.nn.AdaptiveAvgPool3d`).

    Examples:
        >>> import duograph as ms
        >>> ms.nn.AdaptiveAvgPool3d(2)(ms.ops.ones((1, 3, 4, 4, 4), ms.float32)).shape
        (1, 3, 2, 2, 2)
    """

    adaptive_avg_pool3d = Operator("AdaptiveAvgPool3D", lambda c: {"output_size": c.output_size})

    _axes = 3


class _AdaptiveMax(_Adaptive):
    """Base of the adaptive max pooling layers."""

    def __init__(self, output_size: OutputSize, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = _check.boolean(type(self).__name__, "return_indices", return_indices)

    def construct(self, x: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        size, out = self._sizes_for(x)
        lead = x.shape[: -self._axes]
        # flat input positions of every window; shorter windows repeat their first cell
        flat = np.zeros((1, 1), np.int64)
        for n, o in zip(size, out, strict=True):
            windows = _windows(n, o)
            widest = max(map(len, windows))
            rows = np.array([[*w, *[w[0]] * (widest - len(w))] for w in windows])
            flat = (flat[:, None, :, None] * n + rows[None, :, None, :]).reshape(
                flat.shape[0] * o, -1
            )
        flat.sort(axis=1)
        picked = ops.gather(x.reshape(*lead, math.prod(size)), Tensor(flat), x.ndim - self._axes)
        values = ops.amax(picked, -1).reshape(*lead, *out)
        if not self.return_indices:
            return values
        best = ops.argmax(picked, -1)
        table = ops.broadcast_to(Tensor(flat), picked.shape)
        indices = ops.gather_elements(table, -1, best.expand_dims(-1))
        return values, indices.reshape(*lead, *out)


class AdaptiveMaxPool2d(_AdaptiveMax):
    """Maximum pooling to a given output size (`mindspore.nn.AdaptiveMaxPool2d`).

    Args:
        output_size: int, or (H, W); None keeps the length.
        return_indices: also return the int64 indices in the flattened H x W.

    Raises:
        ValueError: a size below 1, or an input of another rank.

    Examples:
        >>> import duograph as ms
        >>> ms.nn.AdaptiveMaxPool2d(2)(ms.ops.ones((1, 3, 4, 5), ms.float32)).shape
        (1, 3, 2, 2)
    """


class AdaptiveMaxPool1d(_AdaptiveMax):
    """`AdaptiveMaxPool2d` for (N, C, L) (`mindspore.nn.AdaptiveMaxPool1d`).

    Examples:
        >>> import duograph as ms
        >>> ms.nn.AdaptiveMaxPool1d(2)(ms.ops.ones((1, 3, 4), ms.float32)).shape
        (1, 3, 2)
    """

    _axes = 1


class AdaptiveMaxPool3d(_AdaptiveMax):
    """`AdaptiveMaxPool2d` for (N, C, D, H, W) (`mindspore.nn.AdaptiveMaxPool3d`).

    Examples:
        >>> import duograph as ms
        >>> ms.nn.AdaptiveMaxPool3d(2)(ms.ops.ones((1, 3, 4, 4, 4), ms.float32)).shape
        (1, 3, 2, 2, 2)
    """

    _axes = 3
