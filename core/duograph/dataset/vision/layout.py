"""Transforms that crop, pad, flip or cut images into patches.

`dataset.vision` exports them for use in `Dataset.map`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from ...errors import ArgumentError, ArgumentValueError
from ..rows import Array
from .codecs import Picture
from .enums import Border, SliceMode
from .images import (
    ImageT,
    ImageTransform,
    Ints,
    checked_fill,
    checked_image,
    checked_member,
    checked_number,
    checked_probability,
    checked_size,
    random_numbers,
    with_probability,
)

__all__ = [
    "CenterCrop",
    "Crop",
    "FiveCrop",
    "HorizontalFlip",
    "Pad",
    "PadToSize",
    "RandomCrop",
    "RandomHorizontalFlip",
    "RandomVerticalFlip",
    "SlicePatches",
    "TenCrop",
    "VerticalFlip",
]


def sides(owner: str, padding: Ints) -> tuple[int, int, int, int]:
    """Return a padding given by 1, 2 or 4 ints as (left, top, right, bottom).

    Two numbers are (left and right, top and bottom).
    """
    several = (padding,) if isinstance(padding, (int, np.integer)) else padding
    if not isinstance(several, (list, tuple)) or any(
        isinstance(p, bool) or not isinstance(p, (int, np.integer)) for p in several
    ):
        raise ArgumentError(f"{owner}: got padding={padding!r}; wanted ints")
    if len(several) not in (1, 2, 4) or any(p < 0 for p in several):
        raise ArgumentValueError(f"{owner}: got padding={padding!r}; wanted 1, 2 or 4 ints")
    if len(several) == 4:
        left, top, right, bottom = several
        return left, top, right, bottom
    x, y = several[0], several[-1]
    return x, y, x, y


def padded_image(image: Array, around: Sequence[int], fill: Sequence[int], mode: Border) -> Array:
    """Return an image with a border of the widths `around`: (left, top, right, bottom).

    `mode` is the kind of border, and `fill` its value for `Border.CONSTANT`.
    """
    left, top, right, bottom = around
    width = [(top, bottom), (left, right)] + [(0, 0)] * (image.ndim - 2)
    if mode != Border.CONSTANT:
        name = {"edge": "edge", "reflect": "reflect", "symmetric": "symmetric"}[mode.value]
        return np.pad(image, width, mode=name)  # type: ignore[call-overload]
    h, w = image.shape[:2]
    colours = np.array(fill if image.ndim == 3 else fill[0])
    if image.ndim == 3 and len(fill) > 1:
        colours = colours[: image.shape[2]]
    made = np.empty((h + top + bottom, w + left + right, *image.shape[2:]), image.dtype)
    made[...] = colours
    made[top : top + h, left : left + w] = image
    return made


class Pad(ImageTransform):
    """Adds a border around an image (`mindspore.dataset.vision.Pad`).

    Args:
        padding: widths of the border in pixels: an int, (left and right, top and bottom), or (left,
            top, right, bottom).
        fill_value: value of the border for `Border.CONSTANT`: an int, or three ints, one per
            channel.
        padding_mode: the kind of border, a Border.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: an argument is outside its range.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.Pad(1)(np.zeros((4, 4, 3), np.uint8)).shape
        (6, 6, 3)
    """

    def __init__(
        self, padding: Ints, fill_value: Ints = 0, padding_mode: Border = Border.CONSTANT
    ) -> None:
        self.sides = sides("Pad", padding)
        self.fill_value = checked_fill("Pad", fill_value)
        self.mode = checked_member("Pad", "padding_mode", padding_mode, Border)

    def _array(self, image: Array) -> Array:
        return padded_image(image, self.sides, self.fill_value, self.mode)


class PadToSize(ImageTransform):
    """Adds a border up to a size (`mindspore.dataset.vision.PadToSize`).

    Args:
        size: (height, width), or an int for both.
        offset: (top, left) of the image in the result; by default the image is in the middle.
        fill_value, padding_mode: see `Pad`.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: an argument is outside its range; when called: the image is larger than the
            size.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.PadToSize(6)(np.zeros((4, 5, 3), np.uint8)).shape
        (6, 6, 3)
    """

    def __init__(
        self,
        size: Ints,
        offset: Ints | None = None,
        fill_value: Ints = 0,
        padding_mode: Border = Border.CONSTANT,
    ) -> None:
        self.size = checked_size("PadToSize", size)
        several = () if offset is None else (offset,) * 2 if isinstance(offset, int) else offset
        self.offset = tuple(several) * (2 if len(several) == 1 else 1)
        if len(self.offset) not in (0, 2) or any(
            isinstance(n, bool) or not isinstance(n, int) or n < 0 for n in self.offset
        ):
            raise ArgumentValueError(f"PadToSize: got offset={offset!r}; wanted (top, left)")
        self.fill_value = checked_fill("PadToSize", fill_value)
        self.mode = checked_member("PadToSize", "padding_mode", padding_mode, Border)

    def _array(self, image: Array) -> Array:
        more = [n - m for n, m in zip(self.size, image.shape)]
        top, left = self.offset or (more[0] // 2, more[1] // 2)
        if top > more[0] or left > more[1] or min(more) < 0:
            raise ArgumentValueError(
                f"PadToSize: got an image of shape {image.shape}; wanted at most {self.size}"
            )
        around = (left, top, more[1] - left, more[0] - top)
        return padded_image(image, around, self.fill_value, self.mode)


class Crop(ImageTransform):
    """Cuts out a rectangle (`mindspore.dataset.vision.Crop`).

    Args:
        coordinates: (top, left) of the rectangle, in pixels.
        size: (height, width), or an int for both.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: a coordinate is negative; when called: the rectangle is not inside the image.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.Crop((1, 0), (2, 3))(np.zeros((4, 4, 3), np.uint8)).shape
        (2, 3, 3)
    """

    def __init__(self, coordinates: Sequence[int], size: Ints) -> None:
        if not isinstance(coordinates, (list, tuple)) or len(coordinates) != 2:
            raise ArgumentError(f"Crop: got coordinates={coordinates!r}; wanted (top, left)")
        for c in coordinates:
            checked_number("Crop", "coordinates", c, 0)
        self.top, self.left = int(coordinates[0]), int(coordinates[1])
        self.size = checked_size("Crop", size)

    def _array(self, image: Array) -> Array:
        bottom, right = self.top + self.size[0], self.left + self.size[1]
        if bottom > image.shape[0] or right > image.shape[1]:
            raise ArgumentValueError(
                f"Crop: got an image of shape {image.shape}; wanted at least ({bottom}, {right})"
            )
        return image[self.top : bottom, self.left : right]


class CenterCrop(ImageTransform):
    """Crops the centre of an image; a smaller image is padded with 0
    (`mindspore.dataset.vision.CenterCrop`).

    Raises:
        TypeError: a size is no int.
        ValueError: a size is below 1.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.CenterCrop(2)(np.zeros((4, 4, 3), np.uint8)).shape
        (2, 2, 3)
    """

    def __init__(self, size: Ints) -> None:
        self.size = checked_size("CenterCrop", size)

    def _array(self, image: Array) -> Array:
        h, w = self.size
        more_h, more_w = max(h - image.shape[0], 0), max(w - image.shape[1], 0)
        if more_h or more_w:
            around = (more_w // 2, more_h // 2, more_w - more_w // 2, more_h - more_h // 2)
            image = padded_image(image, around, (0,), Border.CONSTANT)
        top, left = (image.shape[0] - h) // 2, (image.shape[1] - w) // 2
        return image[top : top + h, left : left + w]


class RandomCrop(ImageTransform):
    """Pads an image and crops it at a random position (`mindspore.dataset.vision.RandomCrop`).

    Args:
        size: (height, width), or an int for both.
        padding: see `Pad`; None does not pad.
        pad_if_needed: pad images that are smaller than `size`.
        fill_value, padding_mode: see `Pad`.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: an argument is outside its range; when called: the image is smaller than the
            size, without `pad_if_needed`.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.RandomCrop(2)(np.zeros((4, 4, 3), np.uint8)).shape
        (2, 2, 3)
    """

    def __init__(
        self,
        size: Ints,
        padding: Ints | None = None,
        pad_if_needed: bool = False,
        fill_value: Ints = 0,
        padding_mode: Border = Border.CONSTANT,
    ) -> None:
        owner = type(self).__name__
        self.size = checked_size(owner, size)
        self.pad = (0, 0, 0, 0) if padding is None else sides(owner, padding)
        if not isinstance(pad_if_needed, bool):
            raise ArgumentError(f"{owner}: got pad_if_needed={pad_if_needed!r}; wanted a bool")
        self.pad_if_needed = pad_if_needed
        self.fill_value = checked_fill(owner, fill_value)
        self.mode = checked_member(owner, "padding_mode", padding_mode, Border)

    def around(self, height: int, width: int) -> tuple[int, int, int, int]:
        """Return the border (left, top, right, bottom) to add to an image of the given size.

        It is the user's padding. With `pad_if_needed`, if the padded image is smaller than the crop
        by n pixels along an axis, n pixels are added on each of its two sides.
        """
        left, top, right, bottom = self.pad
        if self.pad_if_needed:
            more_h = max(self.size[0] - height - top - bottom, 0)
            more_w = max(self.size[1] - width - left - right, 0)
            return left + more_w, top + more_h, right + more_w, bottom + more_h
        return left, top, right, bottom

    def box(self, height: int, width: int) -> tuple[int, int]:
        """Return a random position (top, left) for the crop in a padded image of the given size.

        Raises:
            ArgumentValueError: the image is smaller than the crop.
        """
        h, w = self.size
        if height < h or width < w:
            raise ArgumentValueError(
                f"{type(self).__name__}: got an image of {height} by {width} with its border; "
                f"wanted at least {self.size}"
            )
        random = random_numbers()
        return int(random.integers(height - h + 1)), int(random.integers(width - w + 1))

    def _array(self, image: Array) -> Array:
        around = self.around(*image.shape[:2])
        image = padded_image(image, around, self.fill_value, self.mode)
        top, left = self.box(*image.shape[:2])
        return image[top : top + self.size[0], left : left + self.size[1]]


class HorizontalFlip(ImageTransform):
    """Mirrors an image left to right (`mindspore.dataset.vision.HorizontalFlip`).

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.HorizontalFlip()(np.array([[1, 2]], np.uint8)).tolist()
        [[2, 1]]
    """

    def _array(self, image: Array) -> Array:
        return np.ascontiguousarray(image[:, ::-1])


class VerticalFlip(ImageTransform):
    """Mirrors an image top to bottom (`mindspore.dataset.vision.VerticalFlip`).

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.VerticalFlip()(np.array([[1], [2]], np.uint8)).tolist()
        [[2], [1]]
    """

    def _array(self, image: Array) -> Array:
        return np.ascontiguousarray(image[::-1])


class RandomHorizontalFlip:
    """Mirrors an image left to right with a probability
    (`mindspore.dataset.vision.RandomHorizontalFlip`).

    Raises:
        ValueError: `prob` is not in [0, 1].

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.RandomHorizontalFlip(1.0)(np.array([[1, 2]], np.uint8)).tolist()
        [[2, 1]]
    """

    def __init__(self, prob: float = 0.5) -> None:
        self.prob = checked_probability("RandomHorizontalFlip", prob)

    def __call__(self, image: ImageT) -> ImageT:
        return with_probability(self.prob, HorizontalFlip(), image)


class RandomVerticalFlip:
    """Mirrors an image top to bottom with a probability
    (`mindspore.dataset.vision.RandomVerticalFlip`).

    Raises:
        ValueError: `prob` is not in [0, 1].

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.RandomVerticalFlip(1.0)(np.array([[1], [2]], np.uint8)).tolist()
        [[2], [1]]
    """

    def __init__(self, prob: float = 0.5) -> None:
        self.prob = checked_probability("RandomVerticalFlip", prob)

    def __call__(self, image: ImageT) -> ImageT:
        return with_probability(self.prob, VerticalFlip(), image)


class FiveCrop:
    """Crops the four corners and the centre (`mindspore.dataset.vision.FiveCrop`).

    Args:
        size: (height, width), or an int for both.

    Returns:
        Five images, when called: top left, top right, bottom left, bottom right, centre.

    Raises:
        ValueError: a size is below 1; when called: the image is smaller than that.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> [len(crop) for crop in vision.FiveCrop(2)(np.zeros((4, 4, 3), np.uint8))]
        [2, 2, 2, 2, 2]
    """

    def __init__(self, size: Ints) -> None:
        self.size = checked_size(type(self).__name__, size)

    def __call__(self, image: ImageT) -> tuple[ImageT, ...]:
        if hasattr(image, "getbands"):
            width, height = cast("Picture", image).size
        else:
            height, width = checked_image(type(self).__name__, image).shape[:2]
        h, w = self.size
        if h > height or w > width:
            raise ArgumentValueError(
                f"{type(self).__name__}: got an image of {height} by {width}; wanted at least "
                f"{self.size}"
            )
        bottom, right = height - h, width - w
        centre = (round(bottom / 2), round(right / 2))
        corners = [(0, 0), (0, right), (bottom, 0), (bottom, right), centre]
        return tuple(Crop(c, self.size)(image) for c in corners)


class TenCrop(FiveCrop):
    """Applies `FiveCrop` to an image and to its mirror image (`mindspore.dataset.vision.TenCrop`).

    Args:
        size: (height, width), or an int for both.
        use_vertical_flip: mirror top to bottom instead of left to right.

    Raises:
        ValueError: a size is below 1; when called: the image is smaller than that.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> len(vision.TenCrop(2)(np.zeros((4, 4, 3), np.uint8)))
        10
    """

    def __init__(self, size: Ints, use_vertical_flip: bool = False) -> None:
        super().__init__(size)
        if not isinstance(use_vertical_flip, bool):
            raise ArgumentError(f"TenCrop: got use_vertical_flip={use_vertical_flip!r}")
        self.flip: ImageTransform = VerticalFlip() if use_vertical_flip else HorizontalFlip()

    def __call__(self, image: ImageT) -> tuple[ImageT, ...]:
        return super().__call__(image) + super().__call__(self.flip(image))


class SlicePatches(ImageTransform):
    """Cuts an image into equal patches (`mindspore.dataset.vision.SlicePatches`).

    Args:
        num_height, num_width: number of patches along each axis.
        slice_mode: pad the image with `fill_value` to a multiple of the patches, or drop the
            remainder.
        fill_value: value of padded pixels, 0 to 255.

    Returns:
        The patches row by row, when called, each as an image; one image if there is one patch.

    Raises:
        ValueError: a number is below 1; when called: there are more patches than pixels.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> [p.shape for p in vision.SlicePatches(1, 2)(np.zeros((4, 5, 3), np.uint8))]
        [(4, 3, 3), (4, 3, 3)]
    """

    def __init__(
        self,
        num_height: int = 1,
        num_width: int = 1,
        slice_mode: SliceMode = SliceMode.PAD,
        fill_value: int = 0,
    ) -> None:
        checked_number("SlicePatches", "num_height", num_height, 1)
        checked_number("SlicePatches", "num_width", num_width, 1)
        checked_number("SlicePatches", "fill_value", fill_value, 0, 255)
        self.counts, self.fill_value = (num_height, num_width), fill_value
        self.mode = checked_member("SlicePatches", "slice_mode", slice_mode, SliceMode)

    def _array(self, image: Array) -> Any:
        rows, columns = self.counts
        if rows > image.shape[0] or columns > image.shape[1]:
            raise ArgumentValueError(
                f"SlicePatches: got an image of shape {image.shape}; wanted at least {self.counts}"
            )
        if self.mode == SliceMode.PAD:
            more = [-image.shape[i] % n for i, n in enumerate(self.counts)]
            image = padded_image(image, (0, 0, more[1], more[0]), (self.fill_value,),
                                 Border.CONSTANT)  # fmt: skip
        h, w = image.shape[0] // rows, image.shape[1] // columns
        found = [image[i * h : (i + 1) * h, j * w : (j + 1) * w]
                 for i in range(rows) for j in range(columns)]  # fmt: skip
        return tuple(found) if len(found) > 1 else found[0]
