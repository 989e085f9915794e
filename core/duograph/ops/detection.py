"""Ops of object detection: overlap, encoding, non-maximum suppression, cropping.

Users and their detection models call them. A box is (x1, y1, x2, y2) unless an op says otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..dtype import FLOATING, bool_, int32, int64
from ..errors import ArgumentError, ArgumentValueError, ShapeError
from ..op import op
from ..tensor import Tensor
from ..types import TensorType
from .axes import tuple_of
from .comparison import less
from .creation import cast_to, fill
from .elementwise import maximum, minimum
from .exponential import exp, log
from .gather_scatter import checked_labels, gather
from .linalg import widened
from .logic import logical_and, logical_not, logical_or, select_by
from .movement import concat_by, slice_by, stop_gradient
from .primitive import Primitive, primitive
from .reduction import reduce_mean
from .rounding import floor, round_half_even
from .shape_primitives import broadcast_to, reshape_to, transpose_by

__all__ = [
    "iou",
    "bounding_box_encode",
    "bounding_box_decode",
    "check_valid",
    "roi_align",
    "crop_and_resize",
    "nms_with_mask",
    "BoundingBoxEncode",
    "BoundingBoxDecode",
    "NMSWithMask",
]


def _sides(boxes: Tensor) -> list[Tensor]:
    """Split boxes of shape (n, 4) into their four coordinates, each of shape (n,)."""
    n = boxes.shape[0]
    return [reshape_to(slice_by(boxes, (0, i), (n, i + 1), (1, 1)), (n,)) for i in range(4)]


def _joined(columns: Sequence[Tensor]) -> Tensor:
    n = columns[0].shape[0]
    return concat_by([reshape_to(c, (n, 1)) for c in columns], 1)


def _check_boxes(name: str, **boxes: Tensor) -> None:
    for what, t in boxes.items():
        if t.ndim != 2 or t.shape[1] != 4:
            raise ShapeError(f"{name}: got {what} of shape {t.shape}; wanted (n, 4)")


@op(dtypes=FLOATING, promote="common", primitive='IOU(mode="iou")(anchor_boxes, gt_boxes)')
def iou(anchor_boxes: Tensor, gt_boxes: Tensor, of_ground: bool):
    """Return the overlap of each pair of boxes, from 0 to 1 (`mindspore.ops.iou`).

    Args:
        anchor_boxes: Tensor (n, 4), floating.
        gt_boxes: Tensor (m, 4).
        mode: ``"iou"``: intersection over union; ``"iof"``: intersection over ground-truth box.

    Returns:
        Tensor (m, n).

    Raises:
        ValueError: other shapes, or another mode.

    Examples:
        >>> import duograph as ms
        >>> box = ms.Tensor([[0.0, 0.0, 1.0, 1.0]])
        >>> print(ms.ops.iou(box, box))
        [[1.]]
    """
    a, g = _sides(widened(anchor_boxes)), _sides(widened(gt_boxes))
    n, m = a[0].shape[0], g[0].shape[0]
    ax1, ay1, ax2, ay2 = (reshape_to(v, (1, n)) for v in a)
    gx1, gy1, gx2, gy2 = (reshape_to(v, (m, 1)) for v in g)
    zero = fill((), 0.0, ax1.dtype)
    width = maximum(minimum(ax2, gx2) - maximum(ax1, gx1) + 1.0, zero)
    height = maximum(minimum(ay2, gy2) - maximum(ay1, gy1) + 1.0, zero)
    inner = width * height
    ground = (gx2 - gx1 + 1.0) * (gy2 - gy1 + 1.0)
    whole = ground if of_ground else ground + (ax2 - ax1 + 1.0) * (ay2 - ay1 + 1.0) - inner
    out = inner / whole
    return out if out.dtype is anchor_boxes.dtype else cast_to(out, anchor_boxes.dtype)


@iou.normaliser
def _(anchor_boxes: Tensor, gt_boxes: Tensor, mode: str = "iou"):
    _check_boxes("iou", anchor_boxes=anchor_boxes, gt_boxes=gt_boxes)
    if mode not in ("iou", "iof"):
        raise ArgumentValueError(f"iou: got mode={mode!r}; wanted 'iou' or 'iof'")
    return (anchor_boxes, gt_boxes, mode == "iof")


def _centres(boxes: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    x1, y1, x2, y2 = _sides(boxes)
    return (x1 + x2) * 0.5, (y1 + y2) * 0.5, x2 - x1 + 1.0, y2 - y1 + 1.0


@op(dtypes=FLOATING, promote="common")
def bounding_box_encode(
    anchor_box: Tensor, groundtruth_box: Tensor, means: Sequence[float], stds: Sequence[float]
):
    """Encode ground-truth boxes as offsets from anchor boxes (`mindspore.ops.bounding_box_encode`).

    Args:
        anchor_box, groundtruth_box: Tensors (n, 4), floating.
        means, stds: four numbers each; an offset d becomes (d - mean) / std.

    Returns:
        Tensor (n, 4): the differences of the centres divided by the width or height of the anchor,
        and the logarithms of the ratios of widths and heights.

    Raises:
        ValueError: boxes that are not (n, 4), or means and stds of another length.

    Examples:
        >>> import duograph as ms
        >>> box = ms.Tensor([[0.0, 0.0, 4.0, 4.0]])
        >>> print(ms.ops.bounding_box_encode(box, box))
        [[0. 0. 0. 0.]]
    """
    ax, ay, aw, ah = _centres(widened(anchor_box))
    gx, gy, gw, gh = _centres(widened(groundtruth_box))
    offsets = ((gx - ax) / aw, (gy - ay) / ah, log(gw / aw), log(gh / ah))
    out = _joined([(d - m) / s for d, m, s in zip(offsets, means, stds, strict=True)])
    return out if out.dtype is anchor_box.dtype else cast_to(out, anchor_box.dtype)


@bounding_box_encode.normaliser
def _(
    anchor_box: Tensor,
    groundtruth_box: Tensor,
    means: float | Sequence[float] = (0.0, 0.0, 0.0, 0.0),
    stds: float | Sequence[float] = (1.0, 1.0, 1.0, 1.0),
):
    _check_boxes("bounding_box_encode", anchor_box=anchor_box, groundtruth_box=groundtruth_box)
    name = "bounding_box_encode"
    return (anchor_box, groundtruth_box, _four(name, "means", means), _four(name, "stds", stds))


@op(dtypes=FLOATING, promote="common")
def bounding_box_decode(
    anchor_box: Tensor,
    deltas: Tensor,
    max_shape: Sequence[int],
    means: Sequence[float],
    stds: Sequence[float],
    wh_ratio_clip: float,
):
    """Decode boxes from anchor boxes and offsets, and clip them to `max_shape`
    (`mindspore.ops.bounding_box_decode`).

    Args:
        anchor_box: Tensor (n, 4), floating.
        deltas: Tensor (n, 4): offsets as `bounding_box_encode` returns them.
        max_shape: (height, width) of the image.
        means, stds: the arguments of `bounding_box_encode`.
        wh_ratio_clip: bound of the widths and heights relative to those of the anchor, which are
            clamped to [wh_ratio_clip, 1 / wh_ratio_clip].

    Returns:
        Tensor (n, 4).

    Raises:
        ValueError: boxes that are not (n, 4), or means and stds of another length.

    Examples:
        >>> import duograph as ms
        >>> box = ms.Tensor([[0.0, 0.0, 4.0, 4.0]])
        >>> print(ms.ops.bounding_box_decode(box, box * 0, (20, 20)))
        [[0. 0. 4. 4.]]
    """
    ax, ay, aw, ah = _centres(widened(anchor_box))
    d = [v * s + m for v, m, s in zip(_sides(widened(deltas)), means, stds, strict=True)]
    limit = abs(math.log(wh_ratio_clip))

    def bounded(v: Tensor, low: float, high: float) -> Tensor:
        return minimum(maximum(v, fill((), low, v.dtype)), fill((), high, v.dtype))

    w = aw * exp(bounded(d[2], -limit, limit))
    h = ah * exp(bounded(d[3], -limit, limit))
    x, y = ax + aw * d[0], ay + ah * d[1]
    height, width = float(max_shape[0]), float(max_shape[1])
    out = _joined([
        bounded(x - w * 0.5 + 0.5, 0.0, width), bounded(y - h * 0.5 + 0.5, 0.0, height),
        bounded(x + w * 0.5 - 0.5, 0.0, width), bounded(y + h * 0.5 - 0.5, 0.0, height),
    ])  # fmt: skip
    return out if out.dtype is anchor_box.dtype else cast_to(out, anchor_box.dtype)


@bounding_box_decode.normaliser
def _(
    anchor_box: Tensor,
    deltas: Tensor,
    max_shape: Sequence[int],
    means: float | Sequence[float] = (0.0, 0.0, 0.0, 0.0),
    stds: float | Sequence[float] = (1.0, 1.0, 1.0, 1.0),
    wh_ratio_clip: float = 0.016,
):
    _check_boxes("bounding_box_decode", anchor_box=anchor_box, deltas=deltas)
    name = "bounding_box_decode"
    return (
        anchor_box,
        deltas,
        tuple_of(name, "max_shape", max_shape, 2),
        _four(name, "means", means),
        _four(name, "stds", stds),
        float(wh_ratio_clip),
    )


def _four(name: str, what: str, value: object) -> tuple[float, ...]:
    if not isinstance(value, (tuple, list)) or len(value) != 4:
        raise ArgumentValueError(f"{name}: got {what}={value!r}; wanted four numbers")
    return tuple(float(v) for v in value)


@primitive("CheckValid()(bboxes, img_metas)")
def check_valid(bboxes: Tensor, img_metas: Tensor) -> Tensor:
    """Return whether boxes (n, 4) are inside an image (`mindspore.ops.check_valid`).

    `img_metas` has the height, the width and a factor by which both are multiplied.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.check_valid(ms.Tensor([[0.0, 0.0, 4.0, 4.0]]), ms.Tensor([5.0, 5.0, 1.0])))
        [ True]
    """
    _check_boxes("check_valid", bboxes=bboxes)
    x1, y1, x2, y2 = _sides(bboxes)
    height = img_metas[0] * img_metas[2] - 1
    width = img_metas[1] * img_metas[2] - 1
    return (x1 >= 0) & (y1 >= 0) & (x2 <= width) & (y2 <= height)


@op(host=True)
def nms_with_mask(bboxes: Tensor, iou_threshold: float):
    """Primitive op: greedy non-maximum suppression of boxes (n, 5), on the host.

    A box is (x1, y1, x2, y2, score). Returns the boxes by descending score, the int32 numbers 0 ..
    n - 1, and a mask of the boxes to keep: those whose intersection over union with each kept box
    before is at most `iou_threshold`.
    """


@nms_with_mask.infer
def _(bboxes, iou_threshold):
    n = bboxes.shape[0]
    return bboxes, TensorType.of((n,), int32), TensorType.of((n,), bool_)


@nms_with_mask.reference
def _(bboxes, iou_threshold):
    if bboxes.ndim != 2 or bboxes.shape[1] != 5:
        raise ShapeError(f"nms_with_mask: got bboxes of shape {bboxes.shape}; wanted (n, 5)")
    boxes = bboxes[np.argsort(-bboxes[:, 4].astype(np.float32), kind="stable")]
    x1, y1, x2, y2 = (boxes[:, i].astype(np.float32) for i in range(4))
    area = (x2 - x1) * (y2 - y1)
    n = len(boxes)
    keep = np.ones(n, bool)
    for i in range(n):
        if keep[i]:
            width = np.maximum(np.minimum(x2[i], x2) - np.maximum(x1[i], x1), 0)
            height = np.maximum(np.minimum(y2[i], y2) - np.maximum(y1[i], y1), 0)
            inner = width * height
            near = inner > iou_threshold * (area[i] + area - inner)
            keep[i + 1 :] &= ~near[i + 1 :]
    return boxes, np.arange(n, dtype=np.int32), keep


# ---- sampling -----------------------------------------------------------------------------------


def _corners(p: Tensor, size: int) -> list[tuple[Tensor, Tensor]]:
    """Return the two cells beside each position `p` on an axis, for linear interpolation.

    The result is [(index, weight), (index, weight)], of tensors like `p`; `size` is the number of
    cells of the axis.
    """
    low = stop_gradient(floor(p))
    part = p - low
    first = minimum(cast_to(low, int64), fill((), size - 1, int64))
    second = minimum(first + 1, fill((), size - 1, int64))
    return [(first, 1.0 - part), (second, part)]


def _bilinear(rows: Tensor, start: Tensor, y: Tensor, x: Tensor, height: int, width: int) -> Tensor:
    """Interpolate feature maps bilinearly at positions (y, x); return a tensor (n, p, q, C).

    `rows` (cells, C) has the cells of all maps, one map of height * width cells after another.
    `start` is the row where each box's map begins; it broadcasts with `y` and `x` (n, p, q), the
    positions in units of cells.
    """
    total: Tensor | None = None
    for iy, wy in _corners(y, height):
        for ix, wx in _corners(x, width):
            value = gather(rows, start + iy * width + ix, 0)
            weight = wy * wx
            value = value * reshape_to(weight, (*weight.shape, 1))
            total = value if total is None else total + value
    assert total is not None
    return total


@op(
    dtypes=FLOATING,
    promote="common",
    primitive=(
        "ROIAlign(pooled_height, pooled_width, spatial_scale, sample_num=2, roi_end_mode=1)"
        "(features, rois)"
    ),
)
def roi_align(
    features: Tensor,
    rois: Tensor,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
    sample_num: int,
    roi_end_mode: int,
):
    """Resample regions of interest of feature maps to the same size (He et al., 2017).

    Args:
        features: Tensor (N, C, H, W), floating.
        rois: Tensor (m, 5): batch index, x1, y1, x2, y2 in the coordinates of the original image.
        pooled_height, pooled_width: size of the result.
        spatial_scale: size of the features divided by that of the original image.
        sample_num: positions per cell and axis, at least 1.
        roi_end_mode: 1 if the end pixel belongs to the box; with 0, a box is at least one pixel
            of the features.

    Returns:
        Tensor (m, C, pooled_height, pooled_width).

    Raises:
        ValueError: other shapes; sample_num below 1.

    Examples:
        >>> import duograph as ms
        >>> x = ms.ops.ones((1, 2, 4, 4))
        >>> ms.ops.roi_align(x, ms.Tensor([[0.0, 0, 0, 3, 3]]), 2, 2, 1.0).shape
        (1, 2, 2, 2)
    """
    x = widened(features)
    r = rois if rois.dtype is x.dtype else cast_to(rois, x.dtype)
    n, c, height, width = x.shape
    m = r.shape[0]
    batch, x1, y1, x2, y2 = (
        reshape_to(slice_by(r, (0, i), (m, i + 1), (1, 1)), (m, 1)) for i in range(5)
    )
    one, zero = fill((), 1.0, x.dtype), fill((), 0.0, x.dtype)

    def line(begin: Tensor, end: Tensor, cells: int, size: int) -> tuple[Tensor, Tensor]:
        begin = begin * spatial_scale
        length = (end + float(roi_end_mode)) * spatial_scale - begin
        length = length if roi_end_mode else maximum(length, one)
        steps = (np.arange(cells * sample_num) + 0.5) / (cells * sample_num)
        p = begin + length * steps.astype(x.dtype.np).reshape(1, -1)
        beyond = less(fill((), float(size), p.dtype), p)
        inside = logical_not(logical_or(less(p, -one), beyond))
        return minimum(maximum(p, zero), fill((), size - 1.0, p.dtype)), inside

    h, w = pooled_height * sample_num, pooled_width * sample_num
    y, y_inside = line(y1, y2, pooled_height, height)
    x_at, x_inside = line(x1, x2, pooled_width, width)
    y = broadcast_to(reshape_to(y, (m, h, 1)), (m, h, w))
    x_at = broadcast_to(reshape_to(x_at, (m, 1, w)), (m, h, w))
    start = reshape_to(cast_to(batch, int64) * (height * width), (m, 1, 1))
    rows = reshape_to(transpose_by(x, (0, 2, 3, 1)), (n * height * width, c))
    found = _bilinear(rows, start, y, x_at, height, width)
    inside = logical_and(reshape_to(y_inside, (m, h, 1, 1)), reshape_to(x_inside, (m, 1, w, 1)))
    found = select_by(inside, found, zero)
    cells = reshape_to(found, (m, pooled_height, sample_num, pooled_width, sample_num, c))
    out = transpose_by(reduce_mean(cells, (2, 4), False), (0, 3, 1, 2))
    return out if out.dtype is features.dtype else cast_to(out, features.dtype)


@roi_align.normaliser
def _(
    features: Tensor,
    rois: Tensor,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
    sample_num: int = 2,
    roi_end_mode: int = 1,
):
    if features.ndim != 4 or rois.ndim != 2 or rois.shape[1] != 5:
        raise ShapeError(
            f"roi_align: got features of shape {features.shape} and rois of shape {rois.shape}; "
            "wanted "
            f"(N, C, H, W) and (m, 5)"
        )
    if sample_num < 1:
        raise ArgumentValueError(f"roi_align: got sample_num={sample_num}; wanted at least 1")
    return (
        features,
        rois,
        int(pooled_height),
        int(pooled_width),
        float(spatial_scale),
        int(sample_num),
        int(roi_end_mode),
    )


@op(
    primitive=(
        'CropAndResize(method="bilinear", extrapolation_value=0.0)'
        "(x, boxes, box_indices, crop_size)"
    )
)
def crop_and_resize(
    image: Tensor,
    boxes: Tensor,
    box_indices: Tensor,
    crop_size: Sequence[int],
    method: str,
    outside: float,
):
    """Crop boxes from images and resample them to a given size (`mindspore.ops.crop_and_resize`).

    Args:
        image: Tensor (N, H, W, C).
        boxes: Tensor (m, 4) of y1, x1, y2, x2 in the unit square; may extend outside it.
        box_indices: Tensor (m,): the image of each box.
        crop_size: (height, width) of the result.
        method: ``"bilinear"`` or ``"nearest"``.
        extrapolation_value: value of pixels outside the image.

    Returns:
        Tensor (m, height, width, C) of float32.

    Raises:
        ValueError: other shapes, or another method.

    Examples:
        >>> import duograph as ms
        >>> x = ms.ops.ones((1, 4, 4, 1))
        >>> boxes = ms.Tensor([[0.0, 0.0, 1.0, 1.0]])
        >>> ms.ops.crop_and_resize(x, boxes, ms.Tensor([0]), (2, 2)).shape
        (1, 2, 2, 1)
    """
    n, height, width, c = image.shape
    m = boxes.shape[0]
    y1, x1, y2, x2 = (reshape_to(v, (m, 1)) for v in _sides(boxes))

    def line(begin: Tensor, end: Tensor, cells: int, size: int) -> tuple[Tensor, Tensor]:
        steps = np.arange(cells) / (cells - 1) if cells > 1 else np.full(1, 0.5)
        p = (begin + (end - begin) * steps.astype(boxes.dtype.np).reshape(1, -1)) * float(size - 1)
        low, high = fill((), 0.0, p.dtype), fill((), size - 1.0, p.dtype)
        inside = logical_and(logical_not(less(p, low)), logical_not(less(high, p)))
        return minimum(maximum(p, low), high), inside

    h, w = crop_size
    y, y_inside = line(y1, y2, h, height)
    x, x_inside = line(x1, x2, w, width)
    y = broadcast_to(reshape_to(y, (m, h, 1)), (m, h, w))
    x = broadcast_to(reshape_to(x, (m, 1, w)), (m, h, w))
    box_indices = checked_labels("crop_and_resize", box_indices, n)
    start = reshape_to(cast_to(box_indices, int64) * (height * width), (m, 1, 1))
    rows = reshape_to(
        image if image.dtype is boxes.dtype else cast_to(image, boxes.dtype),
        (n * height * width, c),
    )
    if method == "nearest":
        iy, ix = (cast_to(round_half_even(stop_gradient(v)), int64) for v in (y, x))
        found = gather(rows, start + iy * width + ix, 0)
    else:
        found = _bilinear(rows, start, y, x, height, width)
    inside = logical_and(reshape_to(y_inside, (m, h, 1, 1)), reshape_to(x_inside, (m, 1, w, 1)))
    return select_by(inside, found, fill((), outside, found.dtype))


@crop_and_resize.normaliser
def _(
    image: Tensor,
    boxes: Tensor,
    box_indices: Tensor,
    crop_size: Sequence[int],
    method: str = "bilinear",
    extrapolation_value: float = 0.0,
):
    if (
        image.ndim != 4
        or boxes.ndim != 2
        or boxes.shape[1] != 4
        or box_indices.shape != boxes.shape[:1]
    ):
        raise ShapeError(
            f"crop_and_resize: got image of shape {image.shape}, boxes of shape {boxes.shape} and "
            "box_indices "
            f"of shape {box_indices.shape}; wanted (N, H, W, C), (m, 4) and (m,)"
        )
    if method not in ("bilinear", "nearest"):
        raise ArgumentValueError(
            f"crop_and_resize: got method={method!r}; wanted 'bilinear' or 'nearest'"
        )
    return (
        image,
        boxes,
        box_indices,
        tuple_of("crop_and_resize", "crop_size", crop_size, 2),
        method,
        float(extrapolation_value),
    )


# ---- primitive classes --------------------------------------------------------------------------


class BoundingBoxEncode(Primitive):
    """Offsets of ground-truth boxes from anchor boxes.

    `BoundingBoxEncode(means=(0, 0, 0, 0), stds=(1, 1, 1, 1))(anchor_box, groundtruth_box)`.
    """

    op = bounding_box_encode

    def __init__(
        self,
        means: float | Sequence[float] = (0.0, 0.0, 0.0, 0.0),
        stds: float | Sequence[float] = (1.0, 1.0, 1.0, 1.0),
    ) -> None:
        super().__init__()
        self.means, self.stds = means, stds

    def __call__(self, anchor_box: Tensor, groundtruth_box: Tensor) -> Tensor:
        """Return the offsets of the ground truth boxes from the anchors."""
        return bounding_box_encode.public(anchor_box, groundtruth_box, self.means, self.stds)


class BoundingBoxDecode(Primitive):
    """Boxes decoded from anchor boxes and offsets.

    `BoundingBoxDecode(max_shape, means, stds, wh_ratio_clip=0.016)(anchor_box, deltas)`.
    """

    op = bounding_box_decode

    def __init__(
        self,
        max_shape: Sequence[int],
        means: float | Sequence[float] = (0.0, 0.0, 0.0, 0.0),
        stds: float | Sequence[float] = (1.0, 1.0, 1.0, 1.0),
        wh_ratio_clip: float = 0.016,
    ) -> None:
        super().__init__()
        self.max_shape, self.means, self.stds, self.wh_ratio_clip = (
            max_shape,
            means,
            stds,
            wh_ratio_clip,
        )

    def __call__(self, anchor_box: Tensor, deltas: Tensor) -> Tensor:
        """Return the boxes that result from moving `anchor_box` by the encoded offsets `deltas`."""
        return bounding_box_decode.public(
            anchor_box, deltas, self.max_shape, self.means, self.stds, self.wh_ratio_clip
        )


class NMSWithMask(Primitive):
    """Non-maximum suppression on the host: `NMSWithMask(iou_threshold=0.5)(bboxes)`."""

    op = nms_with_mask

    def __init__(self, iou_threshold: float = 0.5) -> None:
        super().__init__()
        if isinstance(iou_threshold, bool) or not isinstance(iou_threshold, (int, float)):
            raise ArgumentError(
                f"NMSWithMask: got iou_threshold={iou_threshold!r}; wanted a number"
            )
        self.iou_threshold = float(iou_threshold)

    def __call__(self, bboxes: Tensor) -> Tensor:
        """Apply non-maximum suppression to boxes (n, 5): four coordinates and a score.

        Returns (boxes by descending score, the numbers 0 .. n - 1, mask of the sorted boxes to
        keep).
        """
        if bboxes.ndim != 2 or bboxes.shape[1] != 5:
            raise ShapeError(f"NMSWithMask: got bboxes of shape {bboxes.shape}; wanted (n, 5)")
        return nms_with_mask(bboxes, self.iou_threshold)
