"""Layers over images: resizing, pixel rearrangement, patches, and similarity measures.

`nn` exports them; all computation is done by public ops.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ... import ops
from ...errors import ArgumentValueError, ShapeError
from ...tensor import Tensor
from .. import _check
from .._types import Ints
from ..cell import Cell
from .conv import same_padding
from .padding import pad_constant

__all__ = [
    "Upsample",
    "ResizeBilinear",
    "PixelShuffle",
    "PixelUnshuffle",
    "ChannelShuffle",
    "Unfold",
    "MSSSIM",
    "SSIM",
    "PSNR",
]


class Upsample(Cell):
    """Resizes the spatial axes of (N, C, ...) by interpolation (`mindspore.nn.Upsample`).

    Args:
        size: lengths of the output's spatial axes; None if `scale_factor` is given.
        scale_factor: factors of the lengths; None if `size` is given.
        mode: ``"nearest"``, ``"linear"``, ``"bilinear"``, ``"trilinear"`` or another mode of
            `ops.interpolate`.
        align_corners: whether to align the centres of the corner pixels of input and output.
        recompute_scale_factor: whether to interpolate with the factors that follow from the rounded
            lengths.

    Examples:
        >>> import duograph as ms
        >>> ms.nn.Upsample(size=(4, 4))(ms.ops.ones((1, 3, 2, 2), ms.float32)).shape
        (1, 3, 4, 4)
    """

    def __init__(
        self,
        size: Ints | None = None,
        scale_factor: float | Sequence[float] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        if (size is None) == (scale_factor is None):
            raise ArgumentValueError("Upsample: wanted exactly one of size and scale_factor")
        self.size, self.scale_factor, self.mode = size, scale_factor, mode
        self.align_corners, self.recompute_scale_factor = align_corners, recompute_scale_factor

    def construct(self, x: Tensor) -> Tensor:
        return ops.interpolate(
            x,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            self.recompute_scale_factor,
        )


class ResizeBilinear(Cell):
    """Bilinear resizing of (N, C, H, W) (`mindspore.nn.ResizeBilinear`, of older versions).

    Inputs: x, size (H, W) or scale_factor, align_corners.

    Raises:
        ValueError: not exactly one of size and scale_factor.

    Examples:
        >>> import duograph as ms
        >>> ms.nn.ResizeBilinear()(ms.ops.ones((1, 3, 2, 2), ms.float32), size=(5, 5)).shape
        (1, 3, 5, 5)
    """

    def __init__(self, half_pixel_centers: bool = False) -> None:
        super().__init__()
        self.half_pixel_centers = half_pixel_centers

    def construct(
        self,
        x: Tensor,
        size: tuple[int, int] | None = None,
        scale_factor: float | None = None,
        align_corners: bool = False,
    ) -> Tensor:
        _check.rank("ResizeBilinear", x, 4)
        if (size is None) == (scale_factor is None):
            raise ArgumentValueError("ResizeBilinear: wanted exactly one of size and scale_factor")
        if scale_factor is not None:
            size = (int(x.shape[2] * scale_factor), int(x.shape[3] * scale_factor))
        for axis, out in zip((2, 3), size or (), strict=True):
            x = _interpolate(x, axis, int(out), align_corners, self.half_pixel_centers)
        return x


def _interpolate(x: Tensor, axis: int, out: int, align: bool, half: bool) -> Tensor:
    """Resize axis number `axis` of `x` to length `out` by linear interpolation.

    If `align` is True, the centres of the first and last cells of input and output coincide.
    Otherwise, if `half` is True, their outer edges coincide; if both are False, output cell i is at
    the input position i * (input length) / `out`. An output cell reads only its two neighbours: a
    matmul with a matrix of weights would spread one NaN or infinity over the whole axis.
    """
    n = x.shape[axis]
    step = (n - 1) / (out - 1) if align and out > 1 else n / out
    at = (np.arange(out) + 0.5) * step - 0.5 if half and not align else np.arange(out) * step
    at = np.clip(at, 0, n - 1)
    low = np.floor(at).astype(np.int64)
    high = np.minimum(low + 1, n - 1)
    share = Tensor((at - low).reshape(-1, *[1] * (x.ndim - axis - 1)), x.dtype)
    first, second = (ops.gather(x, Tensor(index), axis) for index in (low, high))
    return first * (1 - share) + second * share


class PixelShuffle(Cell):
    """Rearranges (..., C r^2, H, W) to (..., C, H r, W r), r the factor
    (`mindspore.nn.PixelShuffle`).

    Raises:
        ValueError: a factor below 1, or a number of channels that is not a multiple of r^2.

    Examples:
        >>> import duograph as ms
        >>> ms.nn.PixelShuffle(2)(ms.ops.ones((1, 8, 2, 2), ms.float32)).shape
        (1, 2, 4, 4)
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = _check.positive_int("PixelShuffle", "upscale_factor", upscale_factor)

    def construct(self, x: Tensor) -> Tensor:
        r = self.upscale_factor
        if x.ndim < 3 or x.shape[-3] % (r * r):
            raise ShapeError(
                f"PixelShuffle: input has shape {x.shape}; wanted channels in multiples of {r * r}"
            )
        lead, (c, h, w) = x.shape[:-3], x.shape[-3:]
        k = len(lead)
        x = x.reshape(*lead, c // (r * r), r, r, h, w)
        x = x.transpose(*range(k), k, k + 3, k + 1, k + 4, k + 2)
        return x.reshape(*lead, c // (r * r), h * r, w * r)


class PixelUnshuffle(Cell):
    """Rearranges (..., C, H r, W r) to (..., C r^2, H, W), r the factor
    (`mindspore.nn.PixelUnshuffle`).

    Examples:
        >>> import duograph as ms
        >>> ms.nn.PixelUnshuffle(2)(ms.ops.ones((1, 2, 4, 4), ms.float32)).shape
        (1, 8, 2, 2)
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = _check.positive_int(
            "PixelUnshuffle", "downscale_factor", downscale_factor
        )

    def construct(self, x: Tensor) -> Tensor:
        r = self.downscale_factor
        if x.ndim < 3 or x.shape[-1] % r or x.shape[-2] % r:
            raise ShapeError(
                f"PixelUnshuffle: input has shape {x.shape}; wanted H and W in multiples of {r}"
            )
        lead, (c, h, w) = x.shape[:-3], x.shape[-3:]
        k = len(lead)
        x = x.reshape(*lead, c, h // r, r, w // r, r)
        x = x.transpose(*range(k), k, k + 2, k + 4, k + 1, k + 3)
        return x.reshape(*lead, c * r * r, h // r, w // r)


class ChannelShuffle(Cell):
    """Interleaves groups of channels (`mindspore.nn.ChannelShuffle`).

    Examples:
        >>> import duograph as ms
        >>> ms.nn.ChannelShuffle(2)(ms.ops.ones((1, 4, 2, 2), ms.float32)).shape
        (1, 4, 2, 2)
    """

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = _check.positive_int("ChannelShuffle", "groups", groups)

    def construct(self, x: Tensor) -> Tensor:
        n, c = x.shape[:2]
        if c % self.groups:
            raise ShapeError(
                f"ChannelShuffle: input has shape {x.shape}; "
                f"wanted channels in multiples of {self.groups}"
            )
        rest = math.prod(x.shape[2:])
        return (
            x.reshape(n, self.groups, c // self.groups, rest).transpose(0, 2, 1, 3).reshape(x.shape)
        )


class Unfold(Cell):
    """Rearranges patches of (N, C, H, W) into channels (`mindspore.nn.Unfold`).

    The output is (N, kh * kw * C, H', W').

    Args:
        ksizes, strides, rates: size, distance and dilation of the patches, each as [1, rows,
            columns, 1].
        padding: ``"valid"`` or ``"same"``.

    Raises:
        ValueError: a list of another form, or another padding.

    Examples:
        >>> import duograph as ms
        >>> layer = ms.nn.Unfold([1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1])
        >>> layer(ms.ops.ones((1, 3, 4, 4), ms.float32)).shape
        (1, 12, 2, 2)
    """

    def __init__(
        self,
        ksizes: Sequence[int],
        strides: Sequence[int],
        rates: Sequence[int],
        padding: str = "valid",
    ) -> None:
        super().__init__()
        for name, value in (("ksizes", ksizes), ("strides", strides), ("rates", rates)):
            if (
                not isinstance(value, (tuple, list))
                or len(value) != 4
                or value[0] != 1
                or value[3] != 1
            ):
                raise ArgumentValueError(
                    f"Unfold: got {name}={value!r}; wanted [1, rows, columns, 1]"
                )
        self._kernel = tuple(ksizes[1:3])
        self._stride = tuple(strides[1:3])
        self._rate = tuple(rates[1:3])
        self.padding = _check.one_of("Unfold", "padding", padding.lower(), ("valid", "same"))

    def construct(self, x: Tensor) -> Tensor:
        _check.rank("Unfold", x, 4)
        n, c, h, w = x.shape
        if self.padding == "same":
            pairs = same_padding((h, w), self._kernel, self._stride, self._rate)
            x = pad_constant(x, ((0, 0), (0, 0), *pairs), 0.0)
            h, w = x.shape[2:]
        taps = []  # per axis: (kernel, output) positions in the input
        for size, k, s, r in zip((h, w), self._kernel, self._stride, self._rate, strict=True):
            first = np.arange(0, size - r * (k - 1), s)
            taps.append(np.arange(k)[:, None] * r + first[None, :])
        rows, columns = taps
        flat = rows[:, None, :, None] * w + columns[None, :, None, :]  # kh, kw, H', W'
        picked = ops.gather(x.reshape(n, c, h * w), Tensor(flat.reshape(-1).astype(np.int64)), 2)
        picked = picked.reshape(n, c, flat.shape[0] * flat.shape[1], *flat.shape[2:])
        return picked.transpose(0, 2, 1, 3, 4).reshape(n, -1, *flat.shape[2:])


class SSIM(Cell):
    """Structural similarity of two batches of images (Wang et al., 2004; `mindspore.nn.SSIM`).

    The output has shape (N,).

    Args:
        max_val: largest possible pixel value.
        filter_size, filter_sigma: side length and standard deviation of the Gaussian window.
        k1, k2: constants of the measure.

    Raises:
        ValueError: the images differ in shape, or are smaller than the window.

    Examples:
        >>> import duograph as ms
        >>> x = ms.ops.ones((1, 3, 16, 16), ms.float32)
        >>> print(ms.nn.SSIM()(x, x))
        [1.]
    """

    def __init__(
        self,
        max_val: float = 1.0,
        filter_size: int = 11,
        filter_sigma: float = 1.5,
        k1: float = 0.01,
        k2: float = 0.03,
    ) -> None:
        super().__init__()
        self.max_val = _check.in_range("SSIM", "max_val", max_val, 0, open_low=True)
        self.filter_size = _check.positive_int("SSIM", "filter_size", filter_size)
        self.filter_sigma = _check.in_range("SSIM", "filter_sigma", filter_sigma, 0, open_low=True)
        self.c1, self.c2 = (k1 * max_val) ** 2, (k2 * max_val) ** 2

    def construct(self, img1: Tensor, img2: Tensor) -> Tensor:
        return self._similarity(img1, img2)[0].mean(1)

    def _similarity(self, img1: Tensor, img2: Tensor) -> tuple[Tensor, Tensor]:
        """Return (mean structural similarity, mean of its contrast factor) of two image batches.

        `img1` and `img2` have shape (N, C, H, W). Both results have shape (N, C): they are means
        over the positions of the sliding window.
        """
        owner = type(self).__name__
        _check.rank(owner, img1, 4)
        if img1.shape != img2.shape or min(img1.shape[2:]) < self.filter_size:
            raise ShapeError(
                f"{owner}: the images have shapes {img1.shape} and {img2.shape}; wanted the same, "
                f"at least {self.filter_size} high and wide"
            )
        at = np.arange(self.filter_size) - (self.filter_size - 1) / 2
        line = np.exp(-0.5 * (at / self.filter_sigma) ** 2)
        window = np.outer(line, line) / line.sum() ** 2
        n, c, h, w = img1.shape
        kernel = Tensor(window[None, None], img1.dtype)

        def mean(x: Tensor) -> Tensor:
            return ops.conv(
                x.reshape(n * c, 1, h, w), kernel, stride=(1, 1), padding=((0, 0), (0, 0)),
                dilation=(1, 1), groups=1,
            )  # fmt: skip

        mu1, mu2 = mean(img1), mean(img2)
        joint, squares = mu1 * mu2, mu1 * mu1 + mu2 * mu2
        covariance = mean(img1 * img2) - joint
        variances = mean(img1 * img1 + img2 * img2) - squares
        light = (2.0 * joint + self.c1) / (squares + self.c1)
        contrast = (2.0 * covariance + self.c2) / (variances + self.c2)
        return (light * contrast).reshape(n, c, -1).mean(2), contrast.reshape(n, c, -1).mean(2)


class MSSSIM(SSIM):
    """Structural similarity on several scales (Wang et al., 2003; `mindspore.nn.MSSSIM`).

    The output has shape (N,). Every scale halves the images. The result is a product over the
    scales, of the whole similarity for the last scale and of its contrast part for the others, each
    to the power of its factor.

    Args:
        max_val, filter_size, filter_sigma, k1, k2: as for `SSIM`.
        power_factors: tuple of one exponent for each scale.

    Raises:
        TypeError: an argument of the wrong kind.
        ValueError: the images differ in shape, or are smaller than the window on a scale.

    Examples:
        >>> import duograph as ms
        >>> x = ms.ops.ones((1, 3, 64, 64), ms.float32)
        >>> print(ms.nn.MSSSIM(power_factors=(0.5, 0.5))(x, x))
        [1.]
    """

    def __init__(
        self,
        max_val: float = 1.0,
        power_factors: tuple[float, ...] = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333),
        filter_size: int = 11,
        filter_sigma: float = 1.5,
        k1: float = 0.01,
        k2: float = 0.03,
    ) -> None:
        super().__init__(max_val, filter_size, filter_sigma, k1, k2)
        found = _check.instance("MSSSIM", "power_factors", power_factors, (tuple, list))
        self.power_factors = tuple(_check.real("MSSSIM", "power_factors", v) for v in found)

    def construct(self, img1: Tensor, img2: Tensor) -> Tensor:
        product: Tensor | None = None
        for scale, power in enumerate(self.power_factors):
            if scale:
                img1, img2 = (ops.avg_pool2d(x, 2, 2) for x in (img1, img2))
            whole, contrast = self._similarity(img1, img2)
            part = whole if scale == len(self.power_factors) - 1 else contrast
            factor = ops.relu(part) ** power
            product = factor if product is None else product * factor
        if product is None:
            return ops.ones((img1.shape[0],), img1.dtype)
        return product.mean(1)


class PSNR(Cell):
    """Peak signal-to-noise ratio of two batches of images in dB (`mindspore.nn.PSNR`).

    The output has shape (N,).

    Raises:
        ValueError: the images differ in shape.

    Examples:
        >>> import duograph as ms
        >>> x = ms.ops.ones((1, 1, 2, 2), ms.float32)
        >>> print(ms.nn.PSNR()(x, x * 0.9).round())
        [20.]
    """

    def __init__(self, max_val: float = 1.0) -> None:
        super().__init__()
        self.max_val = _check.in_range("PSNR", "max_val", max_val, 0, open_low=True)

    def construct(self, img1: Tensor, img2: Tensor) -> Tensor:
        _check.rank("PSNR", img1, 4)
        if img1.shape != img2.shape:
            raise ShapeError(
                f"PSNR: the images have shapes {img1.shape} and {img2.shape}; wanted the same"
            )
        error = ops.square(img1 - img2).reshape(img1.shape[0], -1).mean(1)
        return (10.0 / math.log(10)) * ops.log(self.max_val**2 / error)
