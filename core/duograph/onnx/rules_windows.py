"""Rules of ONNX's operators on windows and images: convolutions, pooling, resizing, sampling.

`running.apply` calls them through the table `model.RULES`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from .. import ops
from ..dtype import float32, float64, int32, int64
from ..errors import OnnxError
from ..ops.convolution import conv, conv_input_grad
from ..ops.gather_scatter import gather
from ..ops.movement import pad_by
from ..ops.pooling import avg_pool, max_pool
from ..tensor import Tensor
from .model import Array, Node, onnx_op
from .rules_elementwise import number_like
from .rules_reductions import requantised

__all__ = ["per_channel", "windows_of"]

Pairs = tuple[tuple[int, int], ...]
Ints: TypeAlias = tuple[int, ...]


def windows_of(
    node: Node, spatial: Sequence[int], kernel: Sequence[int]
) -> tuple[tuple[int, ...], Pairs, tuple[int, ...]]:
    """Return strides, padding (low, high) and dilations of a convolution or pooling.

    Args:
        node: the node with the attributes `auto_pad`, `pads`, `strides` and `dilations`.
        spatial: sizes of the spatial axes of the input.
        kernel: sizes of the window.
    """
    n = len(spatial)
    strides = tuple(node.get("strides", [1] * n))
    dilations = tuple(node.get("dilations", [1] * n))
    mode = node.get("auto_pad", "NOTSET")
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        pads = []
        for size, k, s, d in zip(spatial, kernel, strides, dilations):
            total = max((-(-size // s) - 1) * s + d * (k - 1) + 1 - size, 0)
            less, more = total // 2, total - total // 2
            pads.append((less, more) if mode == "SAME_UPPER" else (more, less))
        return strides, tuple(pads), dilations
    given = [0] * 2 * n if mode == "VALID" else node.get("pads", [0] * 2 * n)
    return strides, tuple(zip(given[:n], given[n:])), dilations


@onnx_op("Conv")
def _(node: Node, x: Tensor, w: Tensor, bias: Tensor | None = None) -> Tensor:
    strides, pads, dilations = windows_of(node, x.shape[2:], w.shape[2:])
    made = conv(x, w, strides, pads, dilations, node.get("group", 1))
    return made if bias is None else made + per_channel(bias, x.ndim)


def per_channel(v: Tensor, rank: int) -> Tensor:
    """Reshape a vector with one number per channel so that it broadcasts along axis 1.

    `rank` is the number of axes of the result.
    """
    return ops.reshape(v, (-1, *[1] * (rank - 2)))


@onnx_op("ConvInteger")
def _(
    node: Node, x: Tensor, w: Tensor, x_zero: Tensor | None = None, w_zero: Tensor | None = None
) -> Tensor:
    return ops.cast(_integer_conv(node, x, w, x_zero, w_zero), int32)


def _integer_conv(
    node: Node, x: Tensor, w: Tensor, x_zero: Tensor | None, w_zero: Tensor | None
) -> Tensor:
    """Convolve the quantised tensors `x` and `w`, minus their zero points `x_zero` and `w_zero`.

    A zero point of None means 0. The result holds integers in float64, which represents them
    exactly.
    """
    a, b = ops.cast(x, float64), ops.cast(w, float64)
    if x_zero is not None:
        a = a - ops.cast(x_zero, float64)
    if w_zero is not None:
        point = ops.cast(w_zero, float64)
        b = b - (ops.reshape(point, (-1, *[1] * (w.ndim - 1))) if point.ndim else point)
    strides, pads, dilations = windows_of(node, x.shape[2:], w.shape[2:])
    return conv(a, b, strides, pads, dilations, node.get("group", 1))


@onnx_op("QLinearConv")
def _(
    node: Node,
    x: Tensor,
    x_scale: Tensor,
    x_zero: Tensor,
    w: Tensor,
    w_scale: Tensor,
    w_zero: Tensor,
    scale: Tensor,
    zero: Tensor,
    bias: Tensor | None = None,
) -> Tensor:
    whole = _integer_conv(node, x, w, x_zero, w_zero)
    if bias is not None:
        whole = whole + per_channel(ops.cast(bias, float64), x.ndim)
    factor = ops.cast(x_scale, float64) * ops.cast(w_scale, float64) / ops.cast(scale, float64)
    return requantised(whole, per_channel(factor, x.ndim) if factor.ndim else factor, zero)


@onnx_op("ConvTranspose")
def _(node: Node, x: Tensor, w: Tensor, bias: Tensor | None = None) -> Tensor:
    n = x.ndim - 2
    groups = node.get("group", 1)
    strides, dilations = tuple(node.get("strides", [1] * n)), tuple(node.get("dilations", [1] * n))
    rest = node.get("output_padding", [0] * n)
    full = [
        s * (size - 1) + r + (k - 1) * d + 1
        for size, k, s, d, r in zip(x.shape[2:], w.shape[2:], strides, dilations, rest)
    ]
    pads = _transposed_pads(node, x.shape[2:], full, strides)
    sizes = [f - low - high for f, (low, high) in zip(full, pads)]
    shape = (x.shape[0], w.shape[1] * groups, *full)
    made = conv_input_grad(x, w, shape, strides, ((0, 0),) * n, dilations, groups)
    for a, ((low, high), size) in enumerate(zip(pads, sizes)):
        made = pad_by(
            made, [max(-low, 0) if i == a + 2 else 0 for i in range(n + 2)],
            [max(-high, 0) if i == a + 2 else 0 for i in range(n + 2)], 0.0,
        ) if low < 0 or high < 0 else made  # fmt: skip
        made = ops.narrow(made, a + 2, max(low, 0), size)
    return made if bias is None else made + per_channel(bias, x.ndim)


def _transposed_pads(
    node: Node, spatial: Sequence[int], full: Sequence[int], strides: Sequence[int]
) -> list[tuple[int, int]]:
    """Return, per axis, how many elements a transposed convolution removes at the low and high end.

    `full` are the output sizes without this removal.
    """
    n, mode, shape = len(spatial), node.get("auto_pad", "NOTSET"), node.get("output_shape")
    if shape is None and mode not in ("SAME_UPPER", "SAME_LOWER"):
        given = [0] * 2 * n if mode == "VALID" else node.get("pads", [0] * 2 * n)
        return list(zip(given[:n], given[n:]))
    wanted = [a * s for a, s in zip(spatial, strides)] if shape is None else shape[-n:]
    totals = [f - m for f, m in zip(full, wanted)]
    less = [t // 2 for t in totals]
    more = [t - t // 2 for t in totals]
    return list(zip(less, more) if mode == "SAME_UPPER" else zip(more, less))


# ---- pooling ------------------------------------------------------------------------------------


def _pooling(node: Node, x: Tensor) -> tuple[Ints, Ints, Ints, Pairs, Pairs]:
    """Return (kernel, strides, dilations, pads, widened pads) of a pooling node.

    The widened pads include the extra elements that the attribute `ceil_mode` adds.
    """
    kernel = tuple(node.get("kernel_shape"))
    strides, pads, dilations = windows_of(node, x.shape[2:], kernel)
    if not node.get("ceil_mode", 0) or node.get("auto_pad", "NOTSET") != "NOTSET":
        return kernel, strides, dilations, pads, pads
    wide = []
    for size, k, s, d, (low, high) in zip(x.shape[2:], kernel, strides, dilations, pads):
        span = size + low + high - d * (k - 1) - 1
        count = -(-span // s) + 1
        if (count - 1) * s >= size + low:  # a window may not start in the padding after the end
            count -= 1
        wide.append((low, high + max((count - 1) * s - span, 0)))
    return kernel, strides, dilations, pads, tuple(wide)


@onnx_op("MaxPool")
def _(node: Node, x: Tensor) -> Tensor | tuple[Tensor, Tensor]:
    kernel, strides, dilations, _, pads = _pooling(node, x)
    wide = ops.cast(x, float32) if not x.dtype.is_floating else x
    values, at = max_pool(wide, kernel, strides, pads, dilations)
    values = ops.cast(values, x.dtype)
    if not node.has(1):
        return values
    spatial = x.shape[2:]
    if node.get("storage_order", 0):  # positions count along the first spatial axis first
        parts, rest = [], at
        for n in spatial[::-1]:
            parts.append(ops.remainder(rest, n))
            rest = ops.floor_divide(rest, n)
        at, step = parts[-1] * 0, 1
        for part, n in zip(parts[::-1], spatial):
            at, step = at + part * step, step * n
    planes = np.arange(x.shape[0] * x.shape[1]).reshape(x.shape[0], x.shape[1], *[1] * len(spatial))
    return values, at + Tensor((planes * math.prod(spatial)).astype(np.int64))


def _window_sums(x: Tensor, node: Node) -> tuple[Tensor, Array]:
    """Return the sums over the pooling windows, and the divisors that make averages of them.

    The divisors are the numbers of elements of the windows, with or without padding as the node
    says.
    """
    kernel, strides, dilations, own, pads = _pooling(node, x)
    n = len(kernel)
    c = x.shape[1]
    flat = ops.reshape(x, (x.shape[0] * c, 1, *x.shape[2:]))
    ones = ops.ones((1, 1, *kernel), x.dtype)
    sums = conv(flat, ones, strides, pads, dilations, 1)
    sums = ops.reshape(sums, (x.shape[0], c, *sums.shape[2:]))
    counts = np.ones([1] * n)
    included = node.get("count_include_pad", 0)
    for a in range(n):
        size, (low, high), (_, after) = x.shape[2 + a], own[a], pads[a]
        valid = np.zeros(low + size + after)
        valid[0 if included else low : low + size + (high if included else 0)] = 1
        starts = range(0, len(valid) - dilations[a] * (kernel[a] - 1), strides[a])
        along = np.array([valid[s : s + dilations[a] * kernel[a] : dilations[a]].sum()
                          for s in starts])  # fmt: skip
        counts = counts * along.reshape([-1 if i == a else 1 for i in range(n)])
    return sums, counts


@onnx_op("AveragePool")
def _(node: Node, x: Tensor) -> Tensor:
    kernel, strides, dilations, own, pads = _pooling(node, x)
    if own == pads and set(dilations) == {1} and len(kernel) < 4:
        return avg_pool(x, kernel, strides, pads, bool(node.get("count_include_pad", 0)), 0)
    sums, counts = _window_sums(x, node)
    return sums / Tensor(counts.astype(x.dtype.np))


@onnx_op("LpPool")
def _(node: Node, x: Tensor) -> Tensor:
    p = node.get("p", 2)
    sums, _ = _window_sums(ops.pow(ops.abs(x), number_like(x, p)), node)
    return ops.pow(sums, number_like(x, 1 / p))


@onnx_op("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def _(node: Node, x: Tensor) -> Tensor:
    axes = tuple(range(2, x.ndim))
    if node.op_type == "GlobalAveragePool":
        return ops.mean(x, axes, True)
    if node.op_type == "GlobalMaxPool":
        return ops.amax(x, axes, True)
    p = node.get("p", 2)
    return ops.pow(ops.sum(ops.pow(ops.abs(x), number_like(x, p)), axes, True),
                   number_like(x, 1 / p))  # fmt: skip


@onnx_op("MaxUnpool", static=(2,))
def _(node: Node, x: Tensor, at: Tensor, shape: Array | None = None) -> Tensor:
    kernel = node.get("kernel_shape")
    strides, pads, _ = windows_of(node, x.shape[2:], kernel)
    sizes = [(n - 1) * s + k - low - high
             for n, s, k, (low, high) in zip(x.shape[2:], strides, kernel, pads)]  # fmt: skip
    own = (*x.shape[:2], *sizes)
    flat = ops.zeros((math.prod(own),), x.dtype)
    position = ops.reshape(ops.cast(at, int64), (-1, 1))
    made = ops.reshape(ops.tensor_scatter_update(flat, position, ops.reshape(x, (-1,))), own)
    if shape is None or tuple(shape.tolist()) == own:
        return made
    wanted = shape.tolist()
    # positions were counted in the smaller tensor; the rest is zero
    return pad_by(made, [0] * made.ndim, [m - n for m, n in zip(wanted, own)], 0.0)


@onnx_op("Col2Im", static=(1, 2))
def _(node: Node, x: Tensor, image: Array, block: Array) -> Tensor:
    n = len(block)
    strides, pads, dilations = windows_of(node, image.tolist(), block.tolist())
    padded = [int(size) + low + high for size, (low, high) in zip(image, pads)]
    counts = [(m - d * (int(k) - 1) - 1) // s + 1
              for m, d, k, s in zip(padded, dilations, block, strides)]  # fmt: skip
    kernel = [int(k) for k in block]
    channels = x.shape[1] // math.prod(kernel)
    at = np.zeros([1] * (2 * n), np.int64)
    for a in range(n):
        along = (np.arange(kernel[a]) * dilations[a])[:, None] + np.arange(counts[a]) * strides[a]
        shape = [1] * (2 * n)
        shape[a], shape[n + a] = kernel[a], counts[a]
        at = at + along.reshape(shape) * math.prod(padded[a + 1 :])
    rows = ops.reshape(x, (x.shape[0] * channels, -1))
    total = ops.zeros((math.prod(padded), rows.shape[0]), x.dtype)
    put = ops.tensor_scatter_add(
        total, Tensor(np.ascontiguousarray(at.reshape(-1, 1))), ops.transpose(rows, (1, 0))
    )
    made = ops.reshape(ops.transpose(put, (1, 0)), (x.shape[0], channels, *padded))
    for a, (size, (low, _)) in enumerate(zip(image, pads)):
        made = ops.narrow(made, a + 2, low, int(size))
    return made


# ---- resizing -----------------------------------------------------------------------------------


@onnx_op("Upsample", static=(1,))
def _(node: Node, x: Tensor, scales: Array | None = None) -> Tensor:
    found = node.get("scales") if scales is None else scales.tolist()
    sizes = [math.floor(n * s) for n, s in zip(x.shape, found)]
    linear = node.get("mode", "nearest") in ("linear", "bilinear")
    for a, (size, scale) in enumerate(zip(sizes, found)):
        if size != x.shape[a]:
            weights = _axis_weights(x.shape[a], size, scale, "linear" if linear else "nearest",
                                    "asymmetric", "floor", -0.75, False, (0.0, 1.0))  # fmt: skip
            x = _along(x, a, weights[0])
    return x


@onnx_op("Resize", static=(1, 2, 3))
def _(
    node: Node,
    x: Tensor,
    roi: Array | None = None,
    scales: Array | None = None,
    sizes: Array | None = None,
) -> Tensor:
    if node.opset < 11:
        roi, scales = None, roi
    axes = [a % x.ndim for a in node.get("axes", range(x.ndim))]
    wanted, factors = _targets(node, x.shape, axes, scales, sizes)
    mode = node.get("mode", "nearest")
    transform = node.get("coordinate_transformation_mode", "half_pixel" if node.opset > 10
                         else "asymmetric")  # fmt: skip
    rounding = node.get("nearest_mode", "round_prefer_floor" if node.opset > 10 else "floor")
    outside = None
    original = x.dtype
    wide = x if original.is_floating and original.itemsize > 2 else ops.cast(x, float32)
    for k, a in enumerate(axes):
        n, m, scale = x.shape[a], wanted[k], factors[k]
        region = (0.0, 1.0)
        if transform == "tf_crop_and_resize" and roi is not None:
            region = (float(roi[k]), float(roi[k + len(axes)]))
        elif n == m and scale == 1.0:
            continue
        weights, wrong = _axis_weights(
            n, m, scale, mode, transform, rounding, node.get("cubic_coeff_a", -0.75),
            bool(node.get("exclude_outside", 0)), region, bool(node.get("antialias", 0)),
        )  # fmt: skip
        wide = _along(wide, a, weights)
        if transform == "tf_crop_and_resize":
            mask = wrong.reshape([-1 if i == a else 1 for i in range(x.ndim)])
            outside = mask if outside is None else outside | mask
    if outside is not None and outside.any():
        value = number_like(wide, node.get("extrapolation_value", 0.0))
        wide = ops.where(Tensor(np.broadcast_to(outside, wide.shape).copy()), value, wide)
    if original.is_integer:
        wide = ops.round(wide) if mode != "nearest" else wide
    return ops.cast(wide, original)


def _targets(
    node: Node,
    shape: Sequence[int],
    axes: Sequence[int],
    scales: Array | None,
    sizes: Array | None,
) -> tuple[list[int], list[float]]:
    """Return (new sizes, scale factors) of the resized axes, from ONNX's inputs of Resize.

    `sizes` decides if it is neither None nor empty, with the attribute keep_aspect_ratio_policy;
    otherwise `scales` does. `shape` is the shape of the input.

    Raises:
        OnnxError: both are None or empty.
    """
    if sizes is None or not sizes.size:
        if scales is None or not scales.size:
            raise OnnxError("got neither scales nor sizes; wanted one of them")
        factors = [float(s) for s in scales]
        return [math.floor(shape[a] * s) for a, s in zip(axes, factors)], factors
    wanted = [int(n) for n in sizes]
    policy = node.get("keep_aspect_ratio_policy", "stretch")
    if policy != "stretch":
        choose = min if policy == "not_larger" else max
        scale = choose(n / shape[a] for n, a in zip(wanted, axes))
        wanted = [math.floor(scale * shape[a] + 0.5) for a in axes]
        return wanted, [scale] * len(axes)
    return wanted, [n / shape[a] for n, a in zip(wanted, axes)]


def _along(x: Tensor, axis: int, weights: Array) -> Tensor:
    """Multiply an axis of `x` by a matrix (new size, old size).

    A matrix whose rows each select one element is applied by a gather.
    """
    chosen = weights.argmax(1)
    if np.array_equal(weights, np.eye(weights.shape[1])[chosen]):
        return gather(x, Tensor(chosen.astype(np.int64)), axis)
    moved = ops.movedim(x, axis, -1)
    made = ops.matmul(moved, Tensor(np.ascontiguousarray(weights.T).astype(x.dtype.np)))
    return ops.movedim(made, -1, axis)


def _source(m: int, n: int, scale: float, transform: str, region: tuple[float, float]) -> Array:
    """Return the position in the input at which each element of a resized axis is sampled.

    `n` is the size of the axis in the input, `m` in the output; the result has `m` positions.
    `scale` is output size / input size, `transform` is ONNX's attribute
    coordinate_transformation_mode, and `region` has the axis's entries (start, end) of the input
    `roi`.
    """
    i = np.arange(m, dtype=np.float64)
    if transform == "half_pixel":
        return (i + 0.5) / scale - 0.5
    if transform == "asymmetric":
        return i / scale
    if transform == "align_corners":
        return i * (n - 1) / (scale * n - 1) if m > 1 else i * 0
    if transform == "pytorch_half_pixel":
        return (i + 0.5) / scale - 0.5 if m > 1 else i * 0
    if transform == "half_pixel_symmetric":
        adjusted = m / (scale * n)
        return n / 2 * (1 - adjusted) + (i + 0.5) / scale - 0.5
    if transform == "tf_half_pixel_for_nn":
        return (i + 0.5) / scale
    if transform == "tf_crop_and_resize":
        start, end = region
        if m > 1:
            return start * (n - 1) + i * (end - start) * (n - 1) / (m - 1)
        return np.full(m, 0.5 * (start + end) * (n - 1))
    raise OnnxError(f"got coordinate_transformation_mode {transform!r}, which ONNX does not have")


def _axis_weights(
    n: int,
    m: int,
    scale: float,
    mode: str,
    transform: str,
    rounding: str,
    cubic: float,
    exclude: bool,
    region: tuple[float, float],
    antialias: bool = False,
) -> tuple[Array, Array]:
    """Return a matrix (m, n) that resizes an axis, and a bool mask (m,).

    `n` and `m` are the old and the new size of the axis. The mask is True for an output element
    that samples a position outside the input. The other arguments are ONNX's attributes of Resize.
    """
    at = _source(m, n, scale, transform, region)
    wrong = (at < 0) | (at > n - 1)
    weights = np.zeros((m, n))
    if mode == "nearest":
        functions: dict[str, Callable[[Array], Array]] = {
            "floor": np.floor, "ceil": np.ceil,
            "round_prefer_floor": lambda v: np.ceil(v - 0.5),
            "round_prefer_ceil": lambda v: np.floor(v + 0.5),
        }  # fmt: skip
        chosen = np.clip(functions[rounding](at), 0, n - 1).astype(int)
        weights[np.arange(m), chosen] = 1
        return weights, wrong
    stretch = min(scale, 1.0) if antialias else 1.0
    radius = (1 if mode in ("linear", "bilinear") else 2) / stretch
    for row, position in enumerate(at):
        first = math.floor(position - radius) + 1
        last = math.ceil(position + radius)
        taps = np.arange(first, last)
        distance = np.abs(taps - position) * stretch
        if mode in ("linear", "bilinear"):
            values = np.maximum(1 - distance, 0)
        else:
            values = np.where(
                distance <= 1,
                ((cubic + 2) * distance - (cubic + 3)) * distance**2 + 1,
                np.where(distance < 2, ((distance - 5) * distance + 8) * distance * cubic
                         - 4 * cubic, 0.0),
            )  # fmt: skip
        if exclude:
            values = np.where((taps < 0) | (taps > n - 1), 0.0, values)
        if exclude or antialias:
            values = values / values.sum()
        np.add.at(weights[row], np.clip(taps, 0, n - 1), values)
    return weights, wrong
