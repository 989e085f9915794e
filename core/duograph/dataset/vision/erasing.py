"""Transforms that erase parts of images, such as CutOut and RandomErasing.

`dataset.vision` exports them for use in `Dataset.map`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import ArgumentError, ArgumentValueError
from ..rows import Array
from .images import (
    ImageTransform,
    Numbers,
    checked_number,
    checked_probability,
    checked_range,
    random_numbers,
)

__all__ = ["CutOut", "Erase", "RandomErasing"]


class Erase(ImageTransform):
    """Sets a rectangle of an image to a value (`mindspore.dataset.vision.Erase`).

    Args:
        top, left, height, width: the rectangle, in pixels.
        value: a number from 0 to 255, or one such number per channel.
        inplace: change the given array instead of a copy.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: an argument is outside its range.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.Erase(0, 0, 1, 1, 9)(np.zeros((2, 1, 3), np.uint8)).tolist()
        [[[9, 9, 9]], [[0, 0, 0]]]
    """

    def __init__(
        self,
        top: int,
        left: int,
        height: int,
        width: int,
        value: Numbers = 0.0,
        inplace: bool = False,
    ) -> None:
        for name, v, low in (
            ("top", top, 0), ("left", left, 0), ("height", height, 1), ("width", width, 1)
        ):  # fmt: skip
            checked_number("Erase", name, v, low)
        several = value if isinstance(value, (list, tuple)) else (value,)
        for v in several:
            checked_number("Erase", "value", v, 0, 255)
        if not isinstance(inplace, bool):
            raise ArgumentError(f"Erase: got inplace={inplace!r}; wanted True or False")
        self.box, self.value, self.inplace = (top, left, height, width), several, inplace

    def _array(self, image: Array) -> Array:
        made = image if self.inplace else image.copy()
        top, left, h, w = self.box
        channels = image.shape[2] if image.ndim == 3 else 1
        if len(self.value) not in (1, channels):
            raise ArgumentValueError(
                f"Erase: got {len(self.value)} values for an image of shape {image.shape}"
            )
        made[top : top + h, left : left + w] = np.array(self.value).astype(image.dtype)
        return made


class RandomErasing:
    """Overwrites a random rectangle of a (C, H, W) array with a probability
    (`mindspore.dataset.vision.RandomErasing`).

    Args:
        prob: probability with which an array is changed.
        scale: range of the rectangle's area, as a fraction of the image's area.
        ratio: range of the rectangle's height / width.
        value: the value to write: a number, one number per channel, or ``"random"``.
        inplace: change the given array instead of a copy.
        max_attempts: number of random rectangles that are tried until one fits into the image.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: an argument is outside its range.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> bool(vision.RandomErasing(1.0, value=1)(np.zeros((3, 8, 8))).any())
        True
    """

    def __init__(
        self,
        prob: float = 0.5,
        scale: Sequence[float] = (0.02, 0.33),
        ratio: Sequence[float] = (0.3, 3.3),
        value: Numbers | str = 0,
        inplace: bool = False,
        max_attempts: int = 10,
    ) -> None:
        owner = "RandomErasing"
        self.prob = checked_probability(owner, prob)
        self.scale = checked_range(owner, "scale", scale, None, 0, 1)
        self.ratio = checked_range(owner, "ratio", ratio, None, 1e-12)
        if isinstance(value, str) and value != "random":
            raise ArgumentValueError(f"{owner}: got value={value!r}; wanted numbers or 'random'")
        for v in () if isinstance(value, str) else np.atleast_1d(value).tolist():
            checked_number(owner, "value", v, 0, 255)
        checked_number(owner, "max_attempts", max_attempts, 1)
        if not isinstance(inplace, bool):
            raise ArgumentError(f"RandomErasing: got inplace={inplace!r}; wanted True or False")
        self.value, self.inplace, self.max_attempts = value, inplace, max_attempts

    def __call__(self, np_img: object) -> Array:
        array = np.asarray(np_img)
        if array.ndim != 3:
            raise ArgumentValueError(f"RandomErasing: got shape {array.shape}; wanted (C, H, W)")
        random = random_numbers()
        if random.random() >= self.prob:
            return array
        made = array if self.inplace else array.copy()
        _, height, width = array.shape
        for _ in range(self.max_attempts):
            area = height * width * random.uniform(*self.scale)
            aspect = random.uniform(*self.ratio)
            h, w = round((area * aspect) ** 0.5), round((area / aspect) ** 0.5)
            if 0 < h < height and 0 < w < width:
                top, left = int(random.integers(height - h)), int(random.integers(width - w))
                part = made[:, top : top + h, left : left + w]
                if isinstance(self.value, str):
                    part[...] = random.standard_normal(part.shape)
                else:
                    part[...] = np.reshape(np.atleast_1d(self.value), (-1, 1, 1))
                break
        return made


class CutOut:
    """Sets random squares to 0 (`mindspore.dataset.vision.CutOut`).

    Args:
        length: side of a square in pixels.
        num_patches: number of squares.
        is_hwc: whether the channels are the last axis.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: a number is below 1; when called: the image is smaller than that.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> int((vision.CutOut(2)(np.ones((4, 4, 1), np.uint8)) == 0).sum()) <= 4
        True
    """

    def __init__(self, length: int, num_patches: int = 1, is_hwc: bool = True) -> None:
        checked_number("CutOut", "length", length, 1)
        checked_number("CutOut", "num_patches", num_patches, 1)
        if not isinstance(is_hwc, bool):
            raise ArgumentError(f"CutOut: got is_hwc={is_hwc!r}; wanted True or False")
        self.length, self.num_patches, self.is_hwc = length, num_patches, is_hwc

    def __call__(self, image: object) -> Array:
        array = np.asarray(image).copy()
        if array.ndim != 3:
            raise ArgumentValueError(f"CutOut: got shape {array.shape}; wanted three axes")
        height, width = array.shape[:2] if self.is_hwc else array.shape[1:]
        if self.length > height or self.length > width:
            raise ArgumentValueError(
                f"CutOut: got an image of {height} by {width}; wanted at least {self.length}"
            )
        random = random_numbers()
        for _ in range(self.num_patches):
            top = int(random.integers(height)) - self.length // 2
            left = int(random.integers(width)) - self.length // 2
            rows = slice(max(top, 0), max(top + self.length, 0))
            columns = slice(max(left, 0), max(left + self.length, 0))
            if self.is_hwc:
                array[rows, columns] = 0
            else:
                array[:, rows, columns] = 0
        return array
