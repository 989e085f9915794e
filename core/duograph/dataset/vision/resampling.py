"""Resizing and warping of images with the fixed-point arithmetic of OpenCV, on NumPy.

The geometric transforms call `resized`, `warped_affine` and `warped_perspective`. Images are arrays
(H, W, C) or (H, W). The results of uint8 images equal OpenCV's; others are computed in float64.
"""

from __future__ import annotations

import numpy as np

from ..rows import Array
from .enums import Inter

__all__ = ["inverted", "resized", "warped_affine", "warped_perspective"]

_ONE = 2048  # OpenCV's unit of resizing weights
_FRACTIONS = 32  # positions between two pixels that a warp distinguishes


def _cubic(t: Array, a: float) -> Array:
    """Return the four weights of cubic interpolation at the fractions `t`, shape (n, 4).

    `a` is the parameter of the cubic kernel.
    """
    d = np.stack([t + 1, t, 1 - t, 2 - t], axis=-1)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, far)


def _taps(n: int, out: int, method: Inter) -> tuple[Array, Array]:
    """Return the samples to read for resizing an axis from n to `out` samples by `method`.

    The result is (positions, weights), both (out, k): output sample i is the weighted sum of the
    samples at positions[i].
    """
    scale = n / out
    if method == Inter.NEAREST:
        at = np.minimum((np.arange(out) * scale).astype(np.int64), n - 1)
        return at[:, None], np.ones((out, 1))
    if method == Inter.AREA and out <= n:
        return _area_taps(n, out)
    if method == Inter.PILCUBIC:
        return _pillow_taps(n, out)
    at = (np.arange(out) + 0.5) * scale - 0.5
    if method == Inter.AREA:  # enlarging: linear with other positions
        low = np.floor(np.arange(out) * scale)
        t = (np.arange(out) + 1) - (low + 1) / scale
        t = np.where(t <= 0, 0.0, t - np.floor(t))
        at = low + t
    at = at.astype(np.float32).astype(np.float64)
    low = np.floor(at)
    t = at - low
    if method == Inter.BICUBIC:
        weights = _cubic(t, -0.75)
        found = low.astype(np.int64)[:, None] + np.arange(-1, 3)
    else:
        t = np.where((low < 0) | (low >= n - 1), 0.0, t)
        weights = np.stack([1 - t, t], axis=-1)
        found = np.clip(low, 0, n - 1).astype(np.int64)[:, None] + np.arange(2)
    return np.clip(found, 0, n - 1), weights


def _area_taps(n: int, out: int) -> tuple[Array, Array]:
    """Return (positions, weights), (out, k), which average over the interval of each output sample.

    The arguments are those of `_taps`.
    """
    scale = n / out
    begin, end = np.arange(out) * scale, (np.arange(out) + 1) * scale
    k = int(np.ceil(scale)) + 1
    found = np.floor(begin).astype(np.int64)[:, None] + np.arange(k)
    overlap = np.minimum(found + 1, end[:, None]) - np.maximum(found, begin[:, None])
    weights = np.clip(overlap, 0, None)
    return np.clip(found, 0, n - 1), weights / weights.sum(1, keepdims=True)


def _pillow_taps(n: int, out: int) -> tuple[Array, Array]:
    """Return (positions, weights), (out, k), of Pillow's bicubic filter.

    It averages over more samples when the image shrinks. The arguments are those of `_taps`.
    """
    scale = n / out
    width = max(scale, 1.0)
    centre = (np.arange(out) + 0.5) * scale
    first = np.maximum((centre - 2 * width + 0.5).astype(np.int64), 0)
    k = int(np.ceil(4 * width)) + 2
    found = first[:, None] + np.arange(k)
    last = np.minimum((centre + 2 * width + 0.5).astype(np.int64), n)
    d = np.abs((found - centre[:, None] + 0.5) / width)
    a = -0.5
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    weights = np.where(d < 1, near, np.where(d < 2, far, 0.0)) * (found < last[:, None])
    return np.clip(found, 0, n - 1), weights / weights.sum(1, keepdims=True)


def _along(array: Array, positions: Array, weights: Array, axis: int) -> Array:
    """Sum the samples at `positions` along an axis, weighted by `weights`; both are (out, k)."""
    shape = [1] * array.ndim
    shape[axis] = -1
    found = np.take(array, positions[:, 0], axis) * weights[:, 0].reshape(shape)
    for k in range(1, positions.shape[1]):
        found = found + np.take(array, positions[:, k], axis) * weights[:, k].reshape(shape)
    return found


def saturated(array: Array, dtype: np.dtype) -> Array:
    """Convert to a dtype; for an integer dtype, round half to even and clip to its range first."""
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.clip(np.rint(array), info.min, info.max).astype(dtype)
    return array.astype(dtype)


def resized(image: Array, height: int, width: int, method: Inter) -> Array:
    """Resize an image.

    Args:
        image: (H, W, C) or (H, W).
        height, width: size of the resulting image.
        method: any `Inter` but ANTIALIAS, which only Pillow implements.
    """
    if image.shape[:2] == (height, width):
        return image.copy()
    rows, columns = _taps(image.shape[0], height, method), _taps(image.shape[1], width, method)
    if method == Inter.NEAREST:
        return image[rows[0][:, 0]][:, columns[0][:, 0]]
    fixed = image.dtype == np.uint8 and method in (Inter.BILINEAR, Inter.BICUBIC)
    if fixed or (
        image.dtype == np.uint8 and method == Inter.AREA
        and (height > image.shape[0] or width > image.shape[1])
    ):  # fmt: skip
        if method == Inter.AREA:
            rows, columns = (_enlarging(image.shape[i], n) for i, n in ((0, height), (1, width)))
        return _fixed_point(image, rows, columns)
    if image.dtype == np.uint8 and method == Inter.PILCUBIC:
        return _pillow_fixed(image, rows, columns)
    across = _along(image.astype(np.float64), *columns, 1)
    return saturated(_along(across, *rows, 0), image.dtype)


def _enlarging(n: int, out: int) -> tuple[Array, Array]:
    """Return (positions, weights), both (out, 2), of Inter.AREA if the height or width grows.

    The arguments are those of `_taps`.
    """
    scale = n / out
    low = np.floor(np.arange(out) * scale)
    t = (np.arange(out) + 1) - (low + 1) / scale
    t = np.where(t <= 0, 0.0, t - np.floor(t))
    t = np.where(low >= n - 1, 0.0, t)
    found = low.astype(np.int64)[:, None] + np.arange(2)
    return np.clip(found, 0, n - 1), np.stack([1 - t, t], axis=-1)


def _fixed_point(image: Array, rows: tuple[Array, Array], columns: tuple[Array, Array]) -> Array:
    """Resize a uint8 image with integer weights of 11 bits, as OpenCV does.

    `rows` and `columns` are the (positions, weights) of the two axes.
    """
    across = _along(image.astype(np.int64), columns[0], np.rint(columns[1] * _ONE).astype(int), 1)
    weights = np.rint(rows[1] * _ONE).astype(int)
    if weights.shape[1] == 2:
        shape = [-1] + [1] * (image.ndim - 1)
        parts = [
            (np.take(across >> 4, rows[0][:, k], 0) * weights[:, k].reshape(shape)) >> 16
            for k in range(2)
        ]
        found = (parts[0] + parts[1] + 2) >> 2
    else:
        found = (_along(across, rows[0], weights, 0) + (1 << 21)) >> 22
    return np.clip(found, 0, 255).astype(np.uint8)


def _pillow_fixed(image: Array, rows: tuple[Array, Array], columns: tuple[Array, Array]) -> Array:
    """Resize a uint8 image with integer weights of 22 bits, as Pillow does.

    `rows` and `columns` are the (positions, weights) of the two axes. The result for the columns is
    rounded before the rows are resized.
    """
    found = image.astype(np.int64)
    for (positions, weights), axis in ((columns, 1), (rows, 0)):
        fixed = np.where(weights < 0, np.ceil(weights * (1 << 22) - 0.5), np.floor(
            weights * (1 << 22) + 0.5)).astype(np.int64)  # fmt: skip
        found = np.clip((_along(found, positions, fixed, axis) + (1 << 21)) >> 22, 0, 255)
    return found.astype(np.uint8)


# ---- warps --------------------------------------------------------------------------------------


def inverted(matrix: Array) -> Array:
    """Return the inverse of an affine map, both as (2, 3) matrices."""
    (a, b, c), (d, e, f) = matrix
    det = a * e - b * d
    det = 1 / det if det else 0.0
    a2, b2, d2, e2 = e * det, -b * det, -d * det, a * det
    return np.array([[a2, b2, -a2 * c - b2 * f], [d2, e2, -d2 * c - e2 * f]])


def warped_affine(
    image: Array, matrix: Array, size: tuple[int, int], method: Inter, fill: Array
) -> Array:
    """Warp an image by an affine map.

    Args:
        image: (H, W, C) or (H, W).
        matrix: the map (2, 3) from positions (x, y) in the result to positions in `image`.
        size: (height, width) of the result.
        method: NEAREST, BILINEAR or BICUBIC; AREA means BILINEAR.
        fill: value of each channel outside the image.
    """
    height, width = size
    x, y = np.arange(width), np.arange(height)[:, None]
    unit = 1024
    nearest = method == Inter.NEAREST
    delta = unit // 2 if nearest else unit // _FRACTIONS // 2
    shift = 10 if nearest else 5
    at_x = np.rint(matrix[0, 0] * x * unit).astype(np.int64) + (
        np.rint((matrix[0, 1] * y + matrix[0, 2]) * unit).astype(np.int64) + delta
    )
    at_y = np.rint(matrix[1, 0] * x * unit).astype(np.int64) + (
        np.rint((matrix[1, 1] * y + matrix[1, 2]) * unit).astype(np.int64) + delta
    )
    return _gathered(image, at_x >> shift, at_y >> shift, method, fill)


def warped_perspective(
    image: Array, matrix: Array, size: tuple[int, int], method: Inter, fill: Array
) -> Array:
    """Warp an image by a projective map, a (3, 3) matrix.

    Other arguments are those of `warped_affine`.
    """
    height, width = size
    x, y = np.meshgrid(np.arange(width), np.arange(height))
    w = matrix[2, 0] * x + matrix[2, 1] * y + matrix[2, 2]
    unit = 1 if method == Inter.NEAREST else _FRACTIONS
    w = np.where(w == 0, 0.0, unit / np.where(w == 0, 1.0, w))
    at_x = np.rint((matrix[0, 0] * x + matrix[0, 1] * y + matrix[0, 2]) * w).astype(np.int64)
    at_y = np.rint((matrix[1, 0] * x + matrix[1, 1] * y + matrix[1, 2]) * w).astype(np.int64)
    return _gathered(image, at_x, at_y, method, fill)


def _gathered(image: Array, at_x: Array, at_y: Array, method: Inter, fill: Array) -> Array:
    """Interpolate an image at the positions (at_x, at_y); outside the image the value is `fill`.

    Positions are integers, in units of a pixel for NEAREST and of 1/32 pixel otherwise.
    """
    flat = image if image.ndim == 3 else image[..., None]
    h, w = flat.shape[:2]
    fill = np.broadcast_to(np.asarray(fill, np.float64).ravel()[: flat.shape[2]], flat.shape[2:])

    def pixels(x: Array, y: Array) -> Array:
        inside = (x >= 0) & (x < w) & (y >= 0) & (y < h)
        found = flat[np.clip(y, 0, h - 1), np.clip(x, 0, w - 1)].astype(np.float64)
        return np.where(inside[..., None], found, fill)

    if method == Inter.NEAREST:
        made = pixels(at_x, at_y)
    else:
        x, y = at_x >> 5, at_y >> 5
        weights_x, weights_y = (_weights(t & 31, method) for t in (at_x, at_y))
        first = -1 if method == Inter.BICUBIC else 0
        made = np.zeros((*at_x.shape, flat.shape[2]))
        k = weights_x.shape[-1]
        for i in range(k):
            for j in range(k):
                part = weights_y[..., i] * weights_x[..., j]
                if image.dtype == np.uint8:
                    part = np.rint(part * 32768)
                made += pixels(x + first + j, y + first + i) * part[..., None]
        if image.dtype == np.uint8:
            made = np.floor((made + 16384) / 32768)
    made = saturated(made, image.dtype)
    return made if image.ndim == 3 else made[..., 0]


def _weights(fractions: Array, method: Inter) -> Array:
    """Return the weights of the 2 or 4 neighbouring pixels for fractions in units of 1/32 pixel."""
    t = fractions / _FRACTIONS
    if method == Inter.BICUBIC:
        return _cubic(t, -0.75)
    return np.stack([1 - t, t], axis=-1)
