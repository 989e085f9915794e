"""Primitive classes for the colours and sizes of images and the selection of boxes.

Users construct the classes, such as RGBToHSV and NonMaxSuppressionV3. Colours are on the last axis.
The selection of boxes depends on values and runs eagerly, on the host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..dtype import float32
from ..errors import ArgumentValueError, DTypeError, ShapeError
from ..host_arrays import Array
from ..tensor import Tensor
from .comparison import isfinite
from .creation import cast_to
from .data_formats import wanted_format
from .elementwise import abs as absolute
from .elementwise import maximum, minimum
from .gather_scatter import gather
from .logic import select
from .movement import concat_by, slice_axis
from .nn_functions import interpolate
from .primitive import Primitive
from .rounding import floor

__all__ = [
    "AdjustHue", "AdjustSaturation", "CheckNumerics", "DataFormatVecPermute", "HSVToRGB",
    "NonMaxSuppressionV3", "NonMaxSuppressionWithOverlaps", "RGBToHSV", "ResizeLinear1D",
    "ResizeNearestNeighborV2",
]  # fmt: skip


def _channels(name: str, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the three channels of the last axis, each with a last axis of size 1.

    The channels are float32 or float64. `name` is the op that error messages mention.
    """
    if x.ndim < 1 or x.shape[-1] != 3:
        raise ShapeError(f"{name}: got shape {x.shape}; wanted three channels on the last axis")
    if not x.dtype.is_floating:
        raise DTypeError(f"{name}: got {x.dtype.name}; wanted a floating dtype")
    wide = cast_to(x, float32) if x.dtype.itemsize == 2 else x
    last = x.ndim - 1
    return (
        slice_axis(wide, last, 0, 1),
        slice_axis(wide, last, 1, 2),
        slice_axis(wide, last, 2, 3),
    )


def _to_hsv(r: Tensor, g: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    value = maximum(maximum(r, g), b)
    span = value - minimum(minimum(r, g), b)
    flat = span == 0
    below = select(flat, 1.0, span)
    saturation = select(value == 0, 0.0, span / select(value == 0, 1.0, value))
    of_red = (g - b) / below
    other = select(value == g, (b - r) / below + 2.0, (r - g) / below + 4.0)
    hue = select(value == r, of_red, other)
    hue = select(flat, 0.0, hue) / 6.0
    return select(hue < 0, hue + 1.0, hue), saturation, value


def _to_rgb(h: Tensor, s: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    six = h * 6.0
    shares = (absolute(six - 3.0) - 1.0, 2.0 - absolute(six - 2.0), 2.0 - absolute(six - 4.0))
    red, green, blue = ((1.0 - s + s * minimum(maximum(c, 0.0), 1.0)) * v for c in shares)
    return red, green, blue


def _joined(parts: tuple[Tensor, Tensor, Tensor], like: Tensor) -> Tensor:
    out = concat_by(parts, like.ndim - 1)
    return out if out.dtype is like.dtype else cast_to(out, like.dtype)


class RGBToHSV(Primitive):
    """Conversion of red, green and blue in [0, 1] to hue, saturation, value: `RGBToHSV()(images)`.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.RGBToHSV()(ms.Tensor([0.5, 0.25, 0.25])))
        [0.  0.5 0.5]
    """

    def __call__(self, images: Tensor) -> Tensor:
        """Convert colours on the last axis from RGB to HSV; return a tensor of the same shape."""
        return _joined(_to_hsv(*_channels("RGBToHSV", images)), images)


class HSVToRGB(Primitive):
    """Conversion of hue, saturation, value in [0, 1] to red, green and blue: `HSVToRGB()(x)`.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.HSVToRGB()(ms.Tensor([0.0, 0.5, 0.5])))
        [0.5  0.25 0.25]
    """

    def __call__(self, x: Tensor) -> Tensor:
        """Convert colours on the last axis from HSV to RGB; return a tensor of the same shape."""
        return _joined(_to_rgb(*_channels("HSVToRGB", x)), x)


class AdjustHue(Primitive):
    """Rotation of the hues of an image by `delta`, a part of a full circle.

    It is called as `AdjustHue()(image, delta)`.
    """

    def __call__(self, image: Tensor, delta: Tensor | float) -> Tensor:
        """Return an RGB image with hues rotated by `delta`, where 1 is a full turn."""
        h, s, v = _to_hsv(*_channels("AdjustHue", image))
        turned = h + delta
        return _joined(_to_rgb(turned - floor(turned), s, v), image)


class AdjustSaturation(Primitive):
    """Scaling of the saturation of an image: `AdjustSaturation()(image, scale)`."""

    def __call__(self, image: Tensor, scale: Tensor | float) -> Tensor:
        """Return an RGB image (..., 3), its saturations times `scale` and clamped to [0, 1]."""
        h, s, v = _to_hsv(*_channels("AdjustSaturation", image))
        return _joined(_to_rgb(h, minimum(maximum(s * scale, 0.0), 1.0), v), image)


# ---- sizes ---------------------------------------------------------------------------------------


def _sizes(size: Tensor | Sequence[int]) -> tuple[int, ...]:
    return tuple(size.tolist()) if isinstance(size, Tensor) else tuple(size)


class ResizeNearestNeighborV2(Primitive):
    """Resizing of images by nearest neighbours.

    `ResizeNearestNeighborV2(align_corners=False, half_pixel_centers=False)(x, size)`; both options
    must be False.
    """

    def __init__(self, align_corners: bool = False, half_pixel_centers: bool = False) -> None:
        super().__init__()
        if align_corners or half_pixel_centers:
            raise ArgumentValueError(
                "ResizeNearestNeighborV2: got align_corners or half_pixel_centers; only plain "
                "sizes are built: use ops.interpolate(mode='nearest')"
            )
        self.align_corners, self.half_pixel_centers = align_corners, half_pixel_centers

    def __call__(self, x: Tensor, size: Tensor | Sequence[int]) -> Tensor:
        """Resize images (N, C, H, W) to `size`, a pair (height, width), by nearest neighbours."""
        return interpolate(x, _sizes(size), mode="nearest")


class ResizeLinear1D(Primitive):
    """Resizing of signals by linear interpolation.

    `ResizeLinear1D(coordinate_transformation_mode="align_corners")(x, size)`.
    """

    def __init__(self, coordinate_transformation_mode: str = "align_corners") -> None:
        super().__init__()
        if coordinate_transformation_mode not in ("align_corners", "half_pixel"):
            raise ArgumentValueError(
                f"ResizeLinear1D: got {coordinate_transformation_mode!r}; wanted 'align_corners' "
                "or 'half_pixel'"
            )
        self.coordinate_transformation_mode = coordinate_transformation_mode

    def __call__(self, x: Tensor, size: Tensor | Sequence[int]) -> Tensor:
        """Resize signals (N, C, L) by linear interpolation to `size`, a tuple of one int."""
        corners = self.coordinate_transformation_mode == "align_corners"
        return interpolate(x, _sizes(size), mode="linear", align_corners=corners)


class DataFormatVecPermute(Primitive):
    """Permutation of one value per axis from one data format to another.

    `DataFormatVecPermute(src_format="NHWC", dst_format="NCHW")(input_x)`

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.DataFormatVecPermute()(ms.Tensor([1, 2, 3, 4])))
        [1 4 2 3]
    """

    def __init__(self, src_format: str = "NHWC", dst_format: str = "NCHW") -> None:
        super().__init__()
        self.src_format = wanted_format("DataFormatVecPermute", src_format, ("NHWC", "NCHW"))
        self.dst_format = wanted_format("DataFormatVecPermute", dst_format, ("NHWC", "NCHW"))

    def __call__(self, input_x: Tensor) -> Tensor:
        """Reorder four values (4,), or pairs of values (4, 2), to the destination's data format.

        Each value or pair belongs to an axis of the source format.
        """
        if input_x.shape not in ((4,), (4, 2)):
            raise ShapeError(
                f"DataFormatVecPermute: got shape {input_x.shape}; wanted (4,) or (4, 2)"
            )
        order = np.array([self.src_format.index(c) for c in self.dst_format])
        return gather(input_x, order, 0)


class CheckNumerics(Primitive):
    """Check that all elements are finite: `CheckNumerics()(x)` returns `x` or raises an error."""

    def __call__(self, x: Tensor) -> Tensor:
        """Return `x` unchanged after checking that all elements are finite.

        Raises:
            ValueError: an element is NaN or infinite.
        """
        if not bool(isfinite(x).all()):
            raise ArgumentValueError("CheckNumerics: got NaN or infinities; wanted finite elements")
        return x


# ---- choices among boxes -------------------------------------------------------------------------


def _chosen(
    overlaps: Callable[[int, int], float | Array],
    scores: Array,
    most: int,
    limit: float,
    least: float,
) -> Array:
    """Select boxes by non-maximum suppression; return their int32 indices, the best first.

    Args:
        overlaps: function of two box indices that returns their overlap.
        scores: score of each box.
        most: maximum number of boxes to select.
        limit: largest overlap that a box may have with a better selected box.
        least: boxes with a score up to this one are never selected.
    """
    order = [i for i in np.argsort(-scores, kind="stable").tolist() if scores[i] > least]
    kept: list[int] = []
    for i in order:
        if len(kept) >= most:
            break
        if all(overlaps(i, k) <= limit for k in kept):
            kept.append(i)
    return np.array(kept, np.int32)


def _number(x: Tensor | float) -> Tensor | float:
    return x.item() if isinstance(x, Tensor) else x


class NonMaxSuppressionV3(Primitive):
    """Non-maximum suppression: greedy selection of boxes (y1, x1, y2, x2) by score.

    `NonMaxSuppressionV3()(boxes, scores, max_output_size, iou_threshold, score_threshold)`

    Examples:
        >>> import duograph as ms
        >>> boxes = ms.Tensor([[0.0, 0, 1, 1], [0.0, 0, 1, 0.9], [2.0, 2, 3, 3]])
        >>> print(ms.ops.NonMaxSuppressionV3()(boxes, ms.Tensor([0.5, 0.9, 0.1]), 3, 0.5, 0.0))
        [1 2]
    """

    def __call__(
        self, boxes: Tensor, scores: Tensor, max_output_size: Tensor | int,
        iou_threshold: Tensor | float, score_threshold: Tensor | float,
    ) -> Tensor:  # fmt: skip
        """Select boxes (n, 4) that overlap no better selected box; return their int32 indices.

        The box with the best score comes first. Boxes with a score up to `score_threshold` are left
        out. Two selected boxes have an intersection over union of at most `iou_threshold`. At most
        `max_output_size` boxes are selected.
        """
        if boxes.ndim != 2 or boxes.shape[1] != 4 or scores.shape != boxes.shape[:1]:
            raise ShapeError(
                f"NonMaxSuppressionV3: got shapes {boxes.shape} and {scores.shape}; wanted (n, 4) "
                "and (n,)"
            )
        b = boxes.asnumpy().astype(np.float64)
        low, high = np.minimum(b[:, :2], b[:, 2:]), np.maximum(b[:, :2], b[:, 2:])
        area = (high - low).prod(1)

        def overlap(i: int, k: int) -> float:
            inner = np.maximum(np.minimum(high[i], high[k]) - np.maximum(low[i], low[k]), 0).prod()
            whole = area[i] + area[k] - inner
            return float(inner / whole) if whole > 0 else 0.0

        found = _chosen(
            overlap, scores.asnumpy().astype(np.float64), int(_number(max_output_size)),
            float(_number(iou_threshold)), float(_number(score_threshold)),
        )  # fmt: skip
        return Tensor(found)


class NonMaxSuppressionWithOverlaps(Primitive):
    """Non-maximum suppression with given overlaps (n, n) of all pairs of boxes.

    It is called with (overlaps, scores, max_output_size, overlap_threshold, score_threshold).
    """

    def __call__(
        self, overlaps: Tensor, scores: Tensor, max_output_size: Tensor | int,
        overlap_threshold: Tensor | float, score_threshold: Tensor | float,
    ) -> Tensor:  # fmt: skip
        """Select boxes that overlap no better selected box; return their int32 indices.

        `overlaps` (n, n) has the overlap of each pair of boxes, which is at most
        `overlap_threshold` for two selected boxes. The box with the best score comes first; boxes
        with a score up to `score_threshold` are left out. At most `max_output_size` boxes are
        selected.
        """
        n = scores.shape[0] if scores.ndim == 1 else -1
        if overlaps.shape != (n, n):
            raise ShapeError(
                f"NonMaxSuppressionWithOverlaps: got shapes {overlaps.shape} and {scores.shape}; "
                "wanted (n, n) and (n,)"
            )
        table = overlaps.asnumpy().astype(np.float64)
        found = _chosen(
            lambda i, k: table[i, k], scores.asnumpy().astype(np.float64),
            int(_number(max_output_size)), float(_number(overlap_threshold)),
            float(_number(score_threshold)),
        )  # fmt: skip
        return Tensor(found)
