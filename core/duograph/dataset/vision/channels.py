"""Transforms between colour spaces, and between orders and numbers of channels.

`dataset.vision` exports them for use in `Dataset.map`.
"""

from __future__ import annotations

import numpy as np

from ...errors import ArgumentError, ArgumentValueError, ShapeError
from ..rows import Array
from .codecs import Picture, pillow
from .colour import grey
from .enums import ConvertMode
from .images import (
    ImageTransform,
    checked_member,
)

__all__ = ["ConvertColor", "Grayscale", "HsvToRgb", "RgbToHsv"]


class Grayscale(ImageTransform):
    """Converts to grey levels, in one or three equal channels
    (`mindspore.dataset.vision.Grayscale`).

    Raises:
        TypeError: the argument is no int.
        ValueError: `num_output_channels` is neither 1 nor 3.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.Grayscale()(np.zeros((4, 4, 3), np.uint8)).shape
        (4, 4, 1)
    """

    def __init__(self, num_output_channels: int = 1) -> None:
        if isinstance(num_output_channels, bool) or not isinstance(num_output_channels, int):
            raise ArgumentError(f"Grayscale: got {num_output_channels!r} channels; wanted an int")
        if num_output_channels not in (1, 3):
            raise ArgumentValueError(
                f"Grayscale: got num_output_channels={num_output_channels!r}; wanted 1 or 3"
            )
        self.channels = num_output_channels

    def _array(self, image: Array) -> Array:
        level = image if image.ndim == 2 else grey(image) if image.shape[2] >= 3 else image[..., 0]
        return np.repeat(level[..., None], self.channels, axis=2)

    def _picture(self, image: Picture) -> Picture:
        level = image.convert("L")
        return level if self.channels == 1 else pillow("Grayscale").merge("RGB", (level,) * 3)


_CONVERSIONS: dict[int, tuple[int, str]] = {  # channels before, and what makes the channels after
    0: (3, "012A"), 1: (4, "012"), 2: (3, "210A"), 3: (4, "210"), 4: (3, "210"), 5: (4, "2103"),
    6: (3, "b"), 7: (3, "r"), 8: (1, "000"), 9: (1, "000A"), 10: (4, "b"), 11: (4, "r"),
}  # fmt: skip


class ConvertColor(ImageTransform):
    """Converts between orders and numbers of channels (`mindspore.dataset.vision.ConvertColor`).

    Args:
        convert_mode: the conversion, a ConvertMode.

    Raises:
        TypeError: `convert_mode` is no ConvertMode.
        ValueError: when called: the number of channels is wrong.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> mode = vision.ConvertMode.COLOR_RGB2BGR
        >>> vision.ConvertColor(mode)(np.array([[[1, 2, 3]]], np.uint8)).tolist()
        [[[3, 2, 1]]]
    """

    def __init__(self, convert_mode: ConvertMode) -> None:
        self.mode = checked_member("ConvertColor", "convert_mode", convert_mode, ConvertMode)

    def _array(self, image: Array) -> Array:
        channels, made = _CONVERSIONS[int(self.mode)]
        flat = image if image.ndim == 3 else image[..., None]
        if flat.shape[2] != channels:
            raise ShapeError(
                f"ConvertColor: got an image of shape {image.shape} for {self.mode.name}; wanted "
                f"{channels} channels"
            )
        if made in "rb":
            return grey(flat if made == "r" else flat[..., [2, 1, 0]])
        opaque = 255 if image.dtype.kind in "ui" else 1
        parts = [np.full_like(flat[..., 0], opaque) if c == "A" else flat[..., int(c)]
                 for c in made]  # fmt: skip
        return np.stack(parts, -1)


def _channels_first(owner: str, image: object, is_hwc: bool) -> Array:
    """Return RGB images with the channels on the last axis, (..., H, W, 3).

    `is_hwc` says that they are in this order already; otherwise they are (..., 3, H, W).
    """
    array = np.asarray(image)
    if array.ndim not in (3, 4) or array.shape[-1 if is_hwc else -3] != 3:
        raise ShapeError(
            f"{owner}: got shape {array.shape}; wanted (..., {'H, W, 3' if is_hwc else '3, H, W'})"
        )
    return array if is_hwc else np.moveaxis(array, -3, -1)


class RgbToHsv:
    """Converts RGB to hue (0 to 1), saturation (0 to 1) and value (in the range of the input)
    (`mindspore.dataset.vision.RgbToHsv`).

    Args:
        is_hwc: whether the channels are the last axis; otherwise they are the third to last.

    Raises:
        TypeError: `is_hwc` is no bool.
        ValueError: when called: the image does not have three channels.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.RgbToHsv(is_hwc=True)(np.array([[[0, 255, 0]]], np.uint8)).round(2).tolist()
        [[[0.33, 1.0, 255.0]]]
    """

    def __init__(self, is_hwc: bool = False) -> None:
        if not isinstance(is_hwc, bool):
            raise ArgumentError(f"RgbToHsv: got is_hwc={is_hwc!r}; wanted True or False")
        self.is_hwc = is_hwc

    def __call__(self, rgb_imgs: object) -> Array:
        image = _channels_first("RgbToHsv", rgb_imgs, self.is_hwc).astype(np.float64)
        r, g, b = image[..., 0], image[..., 1], image[..., 2]
        v = image.max(-1)
        diff = v - image.min(-1)
        safe = np.where(diff == 0, 1, diff)
        h = np.where(v == r, (g - b) / safe, np.where(v == g, 2 + (b - r) / safe,
                                                      4 + (r - g) / safe)) / 6  # fmt: skip
        h = np.where(diff == 0, 0, h % 1)
        s = np.where(v == 0, 0, diff / np.where(v == 0, 1, v))
        found = np.stack([h, s, v], -1)
        return found if self.is_hwc else np.moveaxis(found, -1, -3)


class HsvToRgb:
    """Converts hue, saturation and value, each 0 to 1, to RGB
    (`mindspore.dataset.vision.HsvToRgb`).

    Args:
        is_hwc: whether the channels are the last axis; otherwise they are the third to last.

    Raises:
        TypeError: `is_hwc` is no bool.
        ValueError: when called: the image does not have three channels.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.HsvToRgb(True)(np.array([[[0.5, 1.0, 1.0]]])).tolist()
        [[[0.0, 1.0, 1.0]]]
    """

    def __init__(self, is_hwc: bool = False) -> None:
        if not isinstance(is_hwc, bool):
            raise ArgumentError(f"HsvToRgb: got is_hwc={is_hwc!r}; wanted True or False")
        self.is_hwc = is_hwc

    def __call__(self, hsv_imgs: object) -> Array:
        image = _channels_first("HsvToRgb", hsv_imgs, self.is_hwc).astype(np.float64)
        h, s, v = image[..., 0], image[..., 1], image[..., 2]
        at = h * 6
        sector = np.floor(at).astype(np.int64)
        f = at - sector
        table = np.stack([v, v * (1 - s), v * (1 - s * f), v * (1 - s * (1 - f))])
        order = np.array([[0, 3, 1], [2, 0, 1], [1, 0, 3], [1, 2, 0], [3, 1, 0], [0, 1, 2]])
        found = np.take_along_axis(table[..., None], order[sector % 6][None], 0)[0]
        return found if self.is_hwc else np.moveaxis(found, -1, -3)
