"""Primitive classes of pooling, such as `ops.MaxPool(kernel_size)(x)`.

Users construct them. They convert MindSpore's constructor arguments to the attributes of the
pooling ops, to which kernels and gradients belong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..dtype import DTypeLike, as_dtype, int32, int64
from ..errors import ArgumentValueError, ShapeError
from ..tensor import Tensor
from . import adaptive_pooling, nn_functions, pooling, pooling_functions
from .creation import cast_to, iota
from .data_formats import first_to_last, last_to_first, spatial, wanted_format
from .primitive import Primitive
from .windows import pad_pairs

__all__ = [
    "MaxPool", "AvgPool", "MaxPool3D", "AvgPool3D", "MaxPoolWithArgmax", "MaxPoolWithArgmaxV2",
    "AdaptiveMaxPool2D", "AdaptiveMaxPool3D", "MaxPool3DWithArgmax", "UpsampleTrilinear3D",
]  # fmt: skip


class _Pool(Primitive):
    _n = 2
    _formats: tuple[str, ...] = ("NCHW", "NHWC")

    def __init__(
        self,
        kernel_size: int | Sequence[int] = 1,
        strides: int | Sequence[int] = 1,
        pad_mode: str = "valid",
        data_format: str | None = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        self.kernel_size = spatial(name, "kernel_size", kernel_size, self._n)
        self.strides = spatial(name, "strides", strides, self._n)
        if not isinstance(pad_mode, str) or pad_mode.lower() not in ("same", "valid"):
            raise ArgumentValueError(f"{name}: got pad_mode={pad_mode!r}; wanted 'same' or 'valid'")
        self.pad_mode = pad_mode.lower()
        self.data_format = wanted_format(name, data_format or self._formats[0], self._formats)

    def _pool(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def __call__(self, x: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """Return `x` pooled over sliding windows of its spatial axes, as the subclass defines.

        `x` and the result have the data format that was given to the constructor.

        Raises:
            ShapeError: `x` has another number of axes than the data format.
        """
        if x.ndim != self._n + 2:
            raise ShapeError(
                f"{self.name}: got input of shape {x.shape}; wanted {self._n + 2} axes"
            )
        if self.data_format == "NHWC":
            return first_to_last(self._pool(last_to_first(x)))
        return self._pool(x)

    def _pads(self, x: Tensor) -> tuple[tuple[int, int], ...]:
        return pooling_functions.mode_pool(
            self.name, x, self.kernel_size, self.strides, self.pad_mode
        )


class MaxPool(_Pool):
    """Maximum of two-dimensional windows.

    `MaxPool(kernel_size=1, strides=1, pad_mode="valid", data_format="NCHW")(x)`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.MaxPool(2, 2)(ms.ops.ones((1, 1, 4, 4))).shape
        (1, 1, 2, 2)
    """

    op = pooling.max_pool

    def _pool(self, x: Tensor) -> Tensor:
        return pooling.max_pool(x, self.kernel_size, self.strides, self._pads(x), (1,) * self._n)[0]


class AvgPool(_Pool):
    """Mean of windows, in which padded cells do not count.

    `AvgPool(kernel_size=1, strides=1, pad_mode="VALID", data_format="NCHW")(x)`.
    """

    op = pooling.avg_pool

    def _pool(self, x: Tensor) -> Tensor:
        return pooling.avg_pool(x, self.kernel_size, self.strides, self._pads(x), False, 0)


class MaxPool3D(_Pool):
    """Maximum of three-dimensional windows.

    `MaxPool3D(kernel_size=1, strides=1, pad_mode="VALID", pad_list=0, ceil_mode=None)(x)`.
    """

    op = pooling.max_pool
    _n = 3
    _formats = ("NCDHW",)

    def __init__(
        self,
        kernel_size: int | Sequence[int] = 1,
        strides: int | Sequence[int] = 1,
        pad_mode: str = "VALID",
        pad_list: int | Sequence[int] = 0,
        ceil_mode: object = None,
        data_format: str = "NCDHW",
    ) -> None:
        padded = isinstance(pad_mode, str) and pad_mode.lower() == "pad"
        super().__init__(kernel_size, strides, "valid" if padded else pad_mode, data_format)
        self.pad_list = pad_pairs("MaxPool3D", pad_list, 3) if padded else None
        self.ceil_mode = bool(ceil_mode)

    def _pool(self, x: Tensor) -> Any:
        if self.pad_list is not None or self.ceil_mode:
            pads = self.pad_list or ((0, 0),) * 3
            return pooling_functions.max_pool3d(
                x, self.kernel_size, self.strides, pads, 1, False, self.ceil_mode
            )
        return pooling.max_pool(x, self.kernel_size, self.strides, self._pads(x), (1, 1, 1))[0]


class AvgPool3D(_Pool):
    """Mean of three-dimensional windows.

    `AvgPool3D(kernel_size=1, strides=1, pad_mode="valid", pad=0, ceil_mode=False, ...)(x)`.
    """

    op = pooling.avg_pool
    _n = 3
    _formats = ("NCDHW",)

    def __init__(
        self,
        kernel_size: int | Sequence[int] = 1,
        strides: int | Sequence[int] = 1,
        pad_mode: str = "valid",
        pad: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int = 0,
        data_format: str = "NCDHW",
    ) -> None:
        padded = isinstance(pad_mode, str) and pad_mode.lower() == "pad"
        super().__init__(kernel_size, strides, "valid" if padded else pad_mode, data_format)
        self.pad = pad_pairs("AvgPool3D", pad, 3) if padded else None
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def _pool(self, x: Tensor) -> Tensor:
        pads = self.pad
        if pads is None and self.pad_mode == "same":
            return pooling.avg_pool(
                x, self.kernel_size, self.strides, self._pads(x), False, self.divisor_override
            )
        return pooling_functions.avg_pool3d(
            x, self.kernel_size, self.strides, pads or 0, self.ceil_mode, self.count_include_pad,
            self.divisor_override,
        )  # fmt: skip


class MaxPoolWithArgmax(_Pool):
    """Maximum of each window, and its int32 index in the flattened (C, H, W) of a sample.

    `MaxPoolWithArgmax(kernel_size=1, strides=1, pad_mode="valid")(x)` returns (values, indices).
    """

    op = pooling.max_pool

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return (maxima of the pooling windows, their int32 indices).

        An index is the position of the maximum in the flattened (C, H, W) of its sample, one item
        of the batch.
        """
        values, indices = pooling.max_pool(x, self.kernel_size, self.strides, self._pads(x), (1, 1))
        channel = iota(values.shape, 1, indices.dtype) * (x.shape[2] * x.shape[3])
        return values, cast_to(indices + channel, int32)


class MaxPoolWithArgmaxV2(Primitive):
    """Maximum of each window of (N, C, H, W), and its index in the flattened (H, W) of its channel.

    `MaxPoolWithArgmaxV2(kernel_size, strides=None, pads=0, dilation=(1, 1), ceil_mode=False,
    argmax_type=int64)(x)` returns (values, indices). `strides` None means `kernel_size`.
    """

    op = pooling.max_pool

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        strides: int | Sequence[int] | None = None,
        pads: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = (1, 1),
        ceil_mode: bool = False,
        argmax_type: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size, self.strides, self.pads = kernel_size, strides, pads
        self.dilation, self.ceil_mode = dilation, ceil_mode
        self.argmax_type = None if argmax_type is None else as_dtype(argmax_type)

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return (maxima of the pooling windows of `x`, their indices), two tensors of one shape.

        `x` is (N, C, H, W). An index is the position of the maximum in the channel's flattened (H,
        W); its dtype is the constructor's `argmax_type`, int64 if that is None.
        """
        values, indices = pooling_functions.max_pool2d(
            x, self.kernel_size, self.strides, self.pads, self.dilation, True, self.ceil_mode
        )
        return values, indices if self.argmax_type is None else cast_to(indices, self.argmax_type)


class AdaptiveMaxPool2D(Primitive):
    """Adaptive maximum: `AdaptiveMaxPool2D(output_size)(x)` returns (values, int64 indices)."""

    op = adaptive_pooling.adaptive_max

    def __init__(self, output_size: int | Sequence[int]) -> None:
        super().__init__()
        self.output_size = output_size

    def __call__(self, x: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """Return (maxima of the adaptive windows, their int64 indices).

        An index is the position of the maximum in the channel's flattened (H, W).
        """
        return adaptive_pooling.adaptive_max_pool2d(x, self.output_size, True)


class AdaptiveMaxPool3D(Primitive):
    """Adaptive maximum: `AdaptiveMaxPool3D()(x, output_size)` returns (values, int32 indices)."""

    op = adaptive_pooling.adaptive_max

    def __call__(
        self, x: Tensor, output_size: Tensor | int | Sequence[int]
    ) -> tuple[Tensor, Tensor]:
        """Return (maxima of the adaptive windows, their int32 indices).

        An index is the position of the maximum in the channel's flattened (D, H, W). `output_size`
        is the number of windows along each of these axes.
        """
        size = output_size.tolist() if isinstance(output_size, Tensor) else output_size
        values, indices = adaptive_pooling.adaptive_max_pool3d(x, size, True)
        return values, cast_to(indices, int32)


class MaxPool3DWithArgmax(Primitive):
    """Maximum of each window, and its index in the flattened (D, H, W) of its channel.

    `MaxPool3DWithArgmax(ksize, strides, pads, dilation=(1, 1, 1), ceil_mode=False,
    data_format="NCDHW", argmax_type=int64)(x)` returns (values, indices).
    """

    op = pooling.max_pool

    def __init__(
        self,
        ksize: int | Sequence[int],
        strides: int | Sequence[int],
        pads: int | Sequence[int],
        dilation: int | Sequence[int] = (1, 1, 1),
        ceil_mode: bool = False,
        data_format: str = "NCDHW",
        argmax_type: DTypeLike = int64,
    ) -> None:
        super().__init__()
        wanted_format("MaxPool3DWithArgmax", data_format, ("NCDHW",))
        self.ksize, self.strides, self.pads = ksize, strides, pads
        self.dilation, self.ceil_mode, self.data_format = dilation, ceil_mode, data_format
        self.argmax_type = as_dtype(argmax_type)

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return (maxima of the windows, their indices in the flattened (D, H, W) of a channel)."""
        values, indices = pooling_functions.max_pool3d(
            x, self.ksize, self.strides, self.pads, self.dilation, True, self.ceil_mode
        )
        return values, cast_to(indices, self.argmax_type)


class UpsampleTrilinear3D(Primitive):
    """Trilinear resampling of tensors (N, C, D, H, W).

    `UpsampleTrilinear3D(align_corners=False)(x, output_size, scales)`; either `output_size` or
    `scales` is None.
    """

    def __init__(self, align_corners: bool = False) -> None:
        super().__init__()
        self.align_corners = align_corners

    def __call__(
        self, x: Tensor, output_size: Sequence[int] | None, scales: Sequence[float] | None
    ) -> Tensor:
        """Resample the last three axes to `output_size`, or by the factors `scales`.

        Either `output_size` or `scales` is None.
        """
        return nn_functions.interpolate(
            x,
            None if output_size is None else tuple(output_size),
            None if scales is None else tuple(scales),
            "trilinear",
            self.align_corners,
        )
