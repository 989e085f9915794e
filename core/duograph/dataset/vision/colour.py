"""Transforms of colours: brightness, contrast, saturation, hue, sharpness, histograms.

`dataset.vision` exports them for use in `Dataset.map`. Arrays are transformed as OpenCV does, and
Pillow images by Pillow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...errors import ArgumentError, ShapeError
from ..rows import Array
from .codecs import Picture, pillow
from .images import (
    ImageTransform,
    Numbers,
    checked_number,
    checked_range,
)
from .resampling import saturated

__all__ = [
    "AdjustBrightness",
    "AdjustContrast",
    "AdjustGamma",
    "AdjustHue",
    "AdjustSaturation",
    "AdjustSharpness",
    "AutoContrast",
    "Equalize",
    "Invert",
    "Posterize",
    "Solarize",
]


def grey(image: Array) -> Array:
    """Return the grey levels (H, W) of an RGB image.

    uint8 images are converted in OpenCV's fixed-point arithmetic.
    """
    if image.dtype == np.uint8:
        found = image[..., :3].astype(np.int64) @ np.array([9798, 19235, 3735])
        return ((found + (1 << 14)) >> 15).astype(np.uint8)
    return (image[..., :3].astype(np.float64) @ [0.299, 0.587, 0.114]).astype(image.dtype)


def checked_rgb(owner: str, image: Array) -> Array:
    """Return an image if it is (H, W, 3); raise ShapeError otherwise."""
    if image.ndim != 3 or image.shape[2] != 3:
        raise ShapeError(f"{owner}: got an image of shape {image.shape}; wanted (H, W, 3)")
    return image


def _bytes(owner: str, image: Array) -> Array:
    """Return `image` if its dtype is uint8; raise ArgumentError otherwise."""
    if image.dtype != np.uint8:
        raise ArgumentError(f"{owner}: got an image of {image.dtype}; wanted uint8")
    return image


def _blend(first: Array, second: Array, factor: float) -> Array:
    """Return ``first * (1 - factor) + second * factor``, computed in float32.

    The result has the dtype of `second` and is clamped to its range.
    """
    weight = np.float32(factor)
    found = first.astype(np.float32) * (np.float32(1) - weight) + second.astype(np.float32) * weight
    return saturated(found, second.dtype)


def _enhanced(kind: str, image: Picture, factor: float) -> Picture:
    """Enhance a Pillow image by `factor`, with class `kind` of Pillow's module ImageEnhance.

    Return the result.
    """
    pillow(kind)
    from PIL import ImageEnhance

    return getattr(ImageEnhance, kind)(image).enhance(factor)


def _ops(name: str, image: Picture, *arguments: object) -> Picture:
    """Return the result of Pillow's function ``ImageOps.name`` for a Pillow image."""
    pillow(name)
    from PIL import ImageOps

    return getattr(ImageOps, name)(image, *arguments)


class AdjustBrightness(ImageTransform):
    """Multiplies all values by a factor (`mindspore.dataset.vision.AdjustBrightness`).

    Raises:
        TypeError: the factor is no number.
        ValueError: the factor is below 0.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.AdjustBrightness(2.0)(np.full((1, 1, 3), 60, np.uint8)).tolist()
        [[[120, 120, 120]]]
    """

    def __init__(self, brightness_factor: float) -> None:
        self.factor = checked_number("AdjustBrightness", "brightness_factor", brightness_factor, 0)

    def _array(self, image: Array) -> Array:
        return saturated(image * np.float64(self.factor), image.dtype)

    def _picture(self, image: Picture) -> Picture:
        return _enhanced("Brightness", image, self.factor)


class AdjustContrast(ImageTransform):
    """Scales the distance of values from the mean grey level

    Raises:
        TypeError: the factor is no number.
        ValueError: the factor is below 0; when called: the image does not have three channels.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.AdjustContrast(0.0)(np.full((1, 1, 3), 60, np.uint8)).tolist()
        [[[60, 60, 60]]]
    """

    def __init__(self, contrast_factor: float) -> None:
        self.factor = checked_number("AdjustContrast", "contrast_factor", contrast_factor, 0)

    def _array(self, image: Array) -> Array:
        mean = grey(checked_rgb("AdjustContrast", image)).mean(dtype=np.float64)
        if image.dtype.kind in "ui":
            mean = np.floor(mean + 0.5)
        return _blend(np.full_like(image, mean), image, self.factor)

    def _picture(self, image: Picture) -> Picture:
        return _enhanced("Contrast", image, self.factor)


class AdjustSaturation(ImageTransform):
    """Scales the distance of colours from their grey levels

    Raises:
        TypeError: the factor is no number.
        ValueError: the factor is below 0; when called: the image does not have three channels.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.AdjustSaturation(0.0)(np.full((1, 1, 3), 60, np.uint8)).tolist()
        [[[60, 60, 60]]]
    """

    def __init__(self, saturation_factor: float) -> None:
        self.factor = checked_number("AdjustSaturation", "saturation_factor", saturation_factor, 0)

    def _array(self, image: Array) -> Array:
        level = grey(checked_rgb("AdjustSaturation", image))[..., None]
        return _blend(level, image, self.factor)

    def _picture(self, image: Picture) -> Picture:
        return _enhanced("Color", image, self.factor)


class AdjustSharpness(ImageTransform):
    """Blends an image with a smoothed one (`mindspore.dataset.vision.AdjustSharpness`).

    Args:
        sharpness_factor: 0 smooths the image, 1 does not change it, more than 1 sharpens it.

    Raises:
        TypeError: the factor is no number.
        ValueError: the factor is below 0.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.AdjustSharpness(0.0)(np.full((4, 4, 3), 60, np.uint8)).mean()
        np.float64(60.0)
    """

    def __init__(self, sharpness_factor: float) -> None:
        self.factor = checked_number("AdjustSharpness", "sharpness_factor", sharpness_factor, 0)

    def _array(self, image: Array) -> Array:
        h, w = image.shape[:2]
        smooth = image.copy()
        if h > 2 and w > 2:
            wide = image.astype(np.float64)
            total = 4 * wide[1:-1, 1:-1]
            for i in range(3):
                for j in range(3):
                    total = total + wide[i : h - 2 + i, j : w - 2 + j]
            smooth[1:-1, 1:-1] = saturated(total / 13, image.dtype)
        return _blend(smooth, image, self.factor)

    def _picture(self, image: Picture) -> Picture:
        return _enhanced("Sharpness", image, self.factor)


class AdjustGamma(ImageTransform):
    """Computes `gain * image ** gamma` for an image scaled to the range 0 to 1
    (`mindspore.dataset.vision.AdjustGamma`).

    Raises:
        TypeError: an argument is no number.
        ValueError: `gamma` is below 0.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.AdjustGamma(2.0)(np.full((1, 1, 3), 128, np.uint8)).tolist()
        [[[64, 64, 64]]]
    """

    def __init__(self, gamma: float, gain: float = 1) -> None:
        self.gamma = checked_number("AdjustGamma", "gamma", gamma, 0)
        self.gain = checked_number("AdjustGamma", "gain", gain)

    def _array(self, image: Array) -> Array:
        if image.dtype.kind == "f":
            return np.clip(self.gain * image**self.gamma, 0, 1).astype(image.dtype)
        if image.dtype.kind not in "ui":
            raise ArgumentError(f"AdjustGamma: got an image of {image.dtype}; wanted numbers")
        table = np.clip((np.arange(256) / 255) ** self.gamma * self.gain * 255, 0, 255)
        return np.rint(table).astype(np.uint8)[np.clip(image, 0, 255)].astype(image.dtype)

    def _picture(self, image: Picture) -> Picture:
        table = [
            min(max(int((255 + 1 - 1e-3) * self.gain * (v / 255) ** self.gamma), 0), 255)
            for v in range(256)
        ]
        return image.point(table * len(image.getbands()))


def _to_hsv(image: Array) -> tuple[Array, Array, Array]:
    """Convert a uint8 RGB image to HSV as OpenCV does; 256 steps of hue are the full circle."""
    r, g, b = (image[..., i].astype(np.int64) for i in range(3))
    v = np.maximum(np.maximum(r, g), b)
    diff = v - np.minimum(np.minimum(r, g), b)
    by_value = np.rint((255 << 12) / np.maximum(np.arange(256), 1)).astype(np.int64)
    by_value[0] = 0
    by_diff = np.rint((256 << 12) / (6 * np.maximum(np.arange(256), 1))).astype(np.int64)
    by_diff[0] = 0
    s = (diff * by_value[v] + (1 << 11)) >> 12
    h = np.where(v == r, g - b, np.where(v == g, b - r + 2 * diff, r - g + 4 * diff))
    h = (h * by_diff[diff] + (1 << 11)) >> 12
    return np.where(h < 0, h + 256, h) % 256, s, v


def _from_hsv(h: Array, s: Array, v: Array) -> Array:
    """Convert (hue, saturation, value), as `_to_hsv` returns them, to a uint8 RGB image."""
    at = h.astype(np.float32) * np.float32(6 / 255)
    sector = np.floor(at).astype(np.int64) % 6
    f = at - np.floor(at)
    s, v = s.astype(np.float32) / np.float32(255), v.astype(np.float32) / np.float32(255)
    table = np.stack([v, v * (1 - s), v * (1 - s * f), v * (1 - s * (1 - f))])
    order = np.array([[0, 3, 1], [2, 0, 1], [1, 0, 3], [1, 2, 0], [3, 1, 0], [0, 1, 2]])
    picks = order[sector]
    found = np.take_along_axis(table[..., None], picks[None], 0)[0]
    return saturated(found * np.float32(255), np.dtype(np.uint8))


class AdjustHue(ImageTransform):
    """Shifts the hue of all colours (`mindspore.dataset.vision.AdjustHue`).

    Args:
        hue_factor: the shift as a fraction of the colour circle, -0.5 to 0.5.

    Raises:
        TypeError: the factor is no number; when called: the dtype is not uint8.
        ValueError: the factor is outside the range; when called: the image does not have three
            channels.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.AdjustHue(0.5)(np.full((1, 1, 3), 60, np.uint8)).tolist()
        [[[60, 60, 60]]]
    """

    def __init__(self, hue_factor: float) -> None:
        self.factor = checked_number("AdjustHue", "hue_factor", hue_factor, -0.5, 0.5)

    def _array(self, image: Array) -> Array:
        h, s, v = _to_hsv(_bytes("AdjustHue", checked_rgb("AdjustHue", image)))
        return _from_hsv((h + int(self.factor * 255)) % 256, s, v)

    def _picture(self, image: Picture) -> Picture:
        if image.mode in ("1", "L", "I", "F"):
            return image
        h, s, v = image.convert("HSV").split()
        turned = (np.array(h).astype(np.int64) + int(self.factor * 255)) % 256
        h = pillow("AdjustHue").fromarray(turned.astype(np.uint8))
        return pillow("AdjustHue").merge("HSV", (h, s, v)).convert(image.mode)


# ---- histograms ---------------------------------------------------------------------------------


def _by_channel(image: Array, function: Callable[[Array], Array]) -> Array:
    """Map the values of each channel of a uint8 image by a table of 256 values.

    `function` computes the table from the channel.
    """
    flat = image if image.ndim == 3 else image[..., None]
    made = np.stack([function(flat[..., c])[flat[..., c]] for c in range(flat.shape[2])], -1)
    return made.astype(np.uint8).reshape(image.shape)


class AutoContrast(ImageTransform):
    """Stretches the values of each channel to 0 to 255 (`mindspore.dataset.vision.AutoContrast`).

    Args:
        cutoff: percentage of the darkest and of the brightest pixels to ignore, 0 to 50.
        ignore: a value, or list of values, to ignore.

    Raises:
        TypeError: an argument has a wrong type; when called: the dtype is not uint8.
        ValueError: an argument is outside its range.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.AutoContrast()(np.array([[10, 20, 30]], np.uint8)).tolist()
        [[0, 127, 255]]
    """

    def __init__(self, cutoff: float = 0.0, ignore: object = None) -> None:
        self.cutoff = checked_number(type(self).__name__, "cutoff", cutoff, 0, 50)
        several = [] if ignore is None else [ignore] if isinstance(ignore, int) else ignore
        if not isinstance(several, (list, tuple)) or any(
            isinstance(v, bool) or not isinstance(v, int) for v in several
        ):
            raise ArgumentError(f"AutoContrast: got ignore={ignore!r}; wanted an int or several")
        for v in several:
            checked_number("AutoContrast", "ignore", v, 0, 255)
        self.ignore = list(several)

    def _array(self, image: Array) -> Array:
        return _by_channel(_bytes("AutoContrast", image), self._table)

    def _table(self, channel: Array) -> Array:
        counts = np.bincount(channel.ravel(), minlength=256)
        counts[self.ignore] = 0
        cut = int(counts.sum() * self.cutoff / 100)
        low = self._without(counts, cut, range(256))
        high = self._without(counts, cut, range(255, -1, -1))
        used = np.flatnonzero(counts)
        if not len(used):
            return np.arange(256)
        low, high = int(used[0]), int(used[-1])
        if high <= low:
            return np.arange(256)
        scale = 255.0 / (high - low)
        return np.clip((np.arange(256) * scale - low * scale).astype(np.int64), 0, 255)

    @staticmethod
    def _without(counts: Array, cut: int, order: Sequence[int]) -> int:
        """Remove `cut` pixels from the histogram `counts`, in place.

        `order` lists pixel values in the order in which their pixels are removed. Returns how many
        of the `cut` pixels could not be removed.
        """
        for v in order:
            taken = min(cut, int(counts[v]))
            counts[v] -= taken
            cut -= taken
            if not cut:
                break
        return cut

    def _picture(self, image: Picture) -> Picture:
        return _ops("autocontrast", image, self.cutoff, self.ignore or None)


class Equalize(ImageTransform):
    """Equalises the histogram of each channel (`mindspore.dataset.vision.Equalize`).

    Raises:
        TypeError: when called: the dtype is not uint8.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.Equalize()(np.array([[1, 2, 3]], np.uint8)).tolist()
        [[0, 128, 255]]
    """

    def _array(self, image: Array) -> Array:
        return _by_channel(_bytes(type(self).__name__, image), self._table)

    @staticmethod
    def _table(channel: Array) -> Array:
        counts = np.bincount(channel.ravel(), minlength=256)
        used = np.flatnonzero(counts)
        if len(used) <= 1:
            return np.arange(256)
        rest = counts.sum() - counts[used[0]]
        found = np.rint((np.cumsum(counts) - counts[used[0]]) * np.float32(255 / rest))
        return np.clip(found, 0, 255).astype(np.int64)

    def _picture(self, image: Picture) -> Picture:
        return _ops("equalize", image)


class Invert(ImageTransform):
    """Computes `255 - image` (`mindspore.dataset.vision.Invert`).

    Raises:
        ValueError: when called: the image does not have three channels.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.Invert()(np.full((1, 1, 3), 60, np.uint8)).tolist()
        [[[195, 195, 195]]]
    """

    def _array(self, image: Array) -> Array:
        return (255 - checked_rgb(type(self).__name__, image)).astype(image.dtype)

    def _picture(self, image: Picture) -> Picture:
        return _ops("invert", image)


class Posterize(ImageTransform):
    """Keeps only the highest bits of all values (`mindspore.dataset.vision.Posterize`).

    Args:
        bits: number of bits to keep, 0 to 8.

    Raises:
        TypeError: the argument is no int; when called: the dtype is not uint8.
        ValueError: the argument is outside the range.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.Posterize(1)(np.array([[127, 128]], np.uint8)).tolist()
        [[0, 128]]
    """

    def __init__(self, bits: int) -> None:
        if isinstance(bits, bool) or not isinstance(bits, int):
            raise ArgumentError(f"Posterize: got bits={bits!r}; wanted an int")
        checked_number("Posterize", "bits", bits, 0, 8)
        self.bits = bits

    def _array(self, image: Array) -> Array:
        return _bytes("Posterize", image) & np.uint8(256 - (1 << (8 - self.bits)))

    def _picture(self, image: Picture) -> Picture:
        return image.point(lambda v: v & (256 - (1 << (8 - self.bits))))


class Solarize(ImageTransform):
    """Inverts the values inside a range (`mindspore.dataset.vision.Solarize`).

    Args:
        threshold: the range (lowest, highest), 0 to 255; a single number is the lowest value, up to
            255.

    Raises:
        TypeError: the values are no numbers.
        ValueError: a number is outside the range, or they do not ascend.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.Solarize((100, 200))(np.array([[99, 100, 201]], np.uint8)).tolist()
        [[99, 155, 201]]
    """

    def __init__(self, threshold: Numbers) -> None:
        several = (threshold, 255) if isinstance(threshold, (int, float)) else threshold
        self.threshold = checked_range("Solarize", "threshold", several, None, 0, 255)

    def _array(self, image: Array) -> Array:
        low, high = self.threshold
        inside = (image >= low) & (image <= high)
        return np.where(inside, 255 - image, image).astype(image.dtype)
