"""Rules of ONNX's operators that sample images at computed positions.

`running.apply` calls them through the table `model.RULES`.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from .. import ops
from ..dtype import float32, int64
from ..ops.gather_scatter import gather
from ..tensor import Tensor
from .model import Array, Node, onnx_op
from .rules_windows import per_channel, windows_of

__all__: list[str] = []


@onnx_op("GridSample")
def _(node: Node, x: Tensor, grid: Tensor) -> Tensor:
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(*[node.get("mode", "linear")] * 2)
    padding, corners = node.get("padding_mode", "zeros"), bool(node.get("align_corners", 0))
    sizes = x.shape[2:]
    points = []
    for a, n in enumerate(sizes):
        p = ops.cast(grid[..., len(sizes) - 1 - a], float32)
        p = (p + 1.0) * ((n - 1) / 2) if corners else ((p + 1.0) * n - 1.0) / 2.0
        points.append(p)
    if mode == "cubic":
        return _sampled(x, points, 2, padding, corners)
    points = [_folded(p, n, padding, corners) for p, n in zip(points, sizes)]
    if mode == "nearest":
        return _sampled(x, [ops.round(p) for p in points], 0, padding, corners)
    return _sampled(x, points, 1, padding, corners)


def _folded(p: Tensor, n: int, padding: str, corners: bool) -> Tensor:
    """Move sampling positions into an axis of `n` elements, as the mode `padding` says.

    "border" clamps them to [0, n - 1]. "reflection" reflects them at the centres of the outermost
    elements if `corners` (ONNX's align_corners) is True, else at the outer edges of the axis.
    "zeros" returns them unchanged.
    """
    if padding == "border":
        return ops.clamp(p, 0.0, float(n - 1))
    if padding == "reflection":
        low, high = (0.0, float(n - 1)) if corners else (-0.5, n - 0.5)
        span = high - low
        if not span:
            return p * 0.0
        q = ops.abs(p - low)
        turns = ops.floor(q / span)
        rest = q - turns * span
        odd = ops.remainder(turns, 2.0) > 0.5
        return ops.where(odd, high - rest, rest + low)
    return p


def _sampled(x: Tensor, points: list[Tensor], order: int, padding: str, corners: bool) -> Tensor:
    """Interpolate images (N, C, sizes...) at the positions `points`, one tensor per spatial axis.

    Each tensor has shape (N, output sizes...) and counts in elements, 0 being the centre of the
    first. `order` 0 takes the nearest element, 1 interpolates linearly, 2 cubically. `padding` and
    `corners` say how positions outside the image are treated, see `_folded`.
    """
    sizes = x.shape[2:]
    n, c = x.shape[:2]
    taps: list[list[tuple[Tensor, Tensor]]] = []
    for p in points:
        base = ops.floor(p)
        t = p - base
        if order == 0:
            taps.append([(p, ops.ones_like(p))])
        elif order == 1:
            taps.append([(base, 1.0 - t), (base + 1.0, t)])
        else:
            taps.append([(base + float(k), _cubic(ops.abs(t - float(k)))) for k in range(-1, 3)])
    flat = ops.reshape(x, (n, c, -1))
    total: Tensor | None = None
    for combination in itertools.product(*taps):
        weight: Tensor | None = None
        index: Tensor | None = None
        for (position, factor), size in zip(combination, sizes):
            place = _folded(position, size, padding, corners)
            inside = ops.logical_and(place > -0.5, place < size - 0.5)
            w = ops.where(inside, factor, ops.zeros_like(factor))
            weight = w if weight is None else weight * w
            whole = ops.cast(ops.clamp(ops.round(place), 0.0, float(size - 1)), int64)
            index = whole if index is None else index * size + whole
        rows = ops.reshape(index, (n, 1, -1))
        taken = ops.gather_elements(flat, 2, ops.broadcast_to(rows, (n, c, rows.shape[2])))
        part = taken * ops.cast(ops.reshape(weight, (n, 1, -1)), x.dtype)
        total = part if total is None else total + part
    return ops.reshape(total, (n, c, *points[0].shape[1:]))


def _cubic(d: Tensor) -> Tensor:
    """Return the weight of a sample at distance `d` in [0, 2] for cubic convolution (a = -0.75)."""
    a = -0.75
    near = ((a + 2) * d - (a + 3)) * d * d + 1.0
    return ops.where(d <= 1.0, near, ((d - 5.0) * d + 8.0) * d * a - 4.0 * a)


@onnx_op("RoiAlign", static=(1, 2))
def _(node: Node, x: Tensor, rois: Array, batch: Array) -> Tensor:
    height, width = node.get("output_height", 1), node.get("output_width", 1)
    ratio, scale = node.get("sampling_ratio", 0), node.get("spatial_scale", 1.0)
    half = node.opset >= 16 and node.get("coordinate_transformation_mode", "half_pixel") == (
        "half_pixel"
    )
    boxes = rois.astype(np.float64) * scale - (0.5 if half else 0.0)
    rows = []
    for box, b in zip(boxes, batch):
        w, h = box[2] - box[0], box[3] - box[1]
        if not half:
            w, h = max(w, 1.0), max(h, 1.0)
        nh = ratio or math.ceil(h / height)
        nw = ratio or math.ceil(w / width)
        ys = box[1] + (np.arange(height * nh) + 0.5) * h / (height * nh)
        xs = box[0] + (np.arange(width * nw) + 0.5) * w / (width * nw)
        rows.append(_roi(x[int(b)], ys, xs, (height, nh, width, nw), node.get("mode", "avg")))
    return ops.stack(rows, 0)


def _roi(image: Tensor, ys: Array, xs: Array, grid: tuple[int, ...], mode: str) -> Tensor:
    """Pool one region of an image (C, H, W) to bins, from bilinear samples.

    `ys` and `xs` are the positions of the samples along both axes, and `grid` is (number of bins
    down, samples per bin down, bins across, samples per bin across). A bin is the mean of its
    samples or, for `mode` "max", the largest. Returns (C, bins down, bins across).
    """
    height, nh, width, nw = grid
    h, w = image.shape[1:]
    parts: list[Tensor] = []
    for dy, dx in itertools.product((0, 1), (0, 1)):
        at_y, weight_y = _linear_tap(ys, h, dy)
        at_x, weight_x = _linear_tap(xs, w, dx)
        taken = gather(gather(image, Tensor(at_y), 1), Tensor(at_x), 2)
        weight = weight_y[:, None] * weight_x[None, :]
        parts.append(taken * Tensor(weight.astype(image.dtype.np)))
    if mode == "max":
        samples = ops.maximum(ops.maximum(parts[0], parts[1]), ops.maximum(parts[2], parts[3]))
        return ops.amax(ops.reshape(samples, (-1, height, nh, width, nw)), (2, 4))
    samples = parts[0] + parts[1] + parts[2] + parts[3]
    return ops.mean(ops.reshape(samples, (-1, height, nh, width, nw)), (2, 4))


def _linear_tap(p: Array, n: int, which: int) -> tuple[Array, Array]:
    """Return (indices, weights) of the lower (`which` 0) or upper (1) neighbours of positions.

    `n` is the size of the axis.
    """
    outside = (p < -1.0) | (p > n)
    q = np.maximum(p, 0.0)
    low = np.minimum(np.floor(q), n - 1).astype(np.int64)
    high = np.minimum(low + 1, n - 1)
    t = np.where(low >= n - 1, 0.0, q - low)
    weight = t if which else 1.0 - t
    return (high if which else low), np.where(outside, 0.0, weight)


@onnx_op("DeformConv")
def _(
    node: Node,
    x: Tensor,
    w: Tensor,
    offset: Tensor,
    bias: Tensor | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    kernel = w.shape[2:]
    strides, pads, dilations = windows_of(node, x.shape[2:], kernel)
    n, channels = x.shape[:2]
    parts, groups = node.get("offset_group", 1), node.get("group", 1)
    out = offset.shape[2:]
    taps, axes = math.prod(kernel), len(kernel)
    moved = ops.reshape(offset, (n, parts, taps, axes, *out))
    columns = []
    for g in range(parts):
        size = channels // parts
        images = ops.narrow(x, 1, g * size, size)
        rows = []
        for k, place in enumerate(itertools.product(*[range(m) for m in kernel])):
            points = []
            for a in range(axes):
                start = place[a] * dilations[a] - pads[a][0]
                shape = [-1 if i == a else 1 for i in range(axes)]
                base = (np.arange(out[a]) * strides[a] + start).reshape(shape)
                points.append(moved[:, g, k, a] + Tensor(base.astype(x.dtype.np)))
            taken = _sampled(images, points, 1, "zeros", False)
            if mask is not None:
                taken = taken * ops.reshape(mask, (n, parts, taps, *out))[:, g, k][:, None]
            rows.append(taken)
        columns.append(ops.stack(rows, 2))
    flat = ops.concat(columns, 1)  # (N, C, taps, *out)
    flat = ops.reshape(flat, (n, groups, channels // groups * taps, -1))
    weight = ops.reshape(w, (groups, w.shape[0] // groups, -1))
    made = ops.reshape(ops.matmul(weight, flat), (n, w.shape[0], *out))
    return made if bias is None else made + per_channel(bias, made.ndim)
