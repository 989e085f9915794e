"""Transforms of an image together with its bounding boxes, for `Dataset.map`.

Boxes are an array (n, 4 or more) of left, top, width and height in pixels; further columns are not
changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...errors import ArgumentError, ArgumentValueError, ShapeError
from ..rows import Array
from .enums import Border, Inter
from .geometry import RandomResizedCrop, Resize, ResizedCrop, scaled_size
from .images import (
    Ints,
    checked_image,
    checked_number,
    checked_probability,
    checked_size,
    random_numbers,
)
from .layout import HorizontalFlip, RandomCrop, VerticalFlip, padded_image

__all__ = [
    "BoundingBoxAugment", "RandomCropWithBBox", "RandomHorizontalFlipWithBBox",
    "RandomResizeWithBBox", "RandomResizedCropWithBBox", "RandomVerticalFlipWithBBox",
    "ResizeWithBBox",
]  # fmt: skip


def _checked(owner: str, image: object, boxes: object) -> tuple[Array, Array]:
    """Return an image and a copy of its boxes as arrays, if all boxes lie inside the image.

    Raises:
        ShapeError: the boxes are not (n, 4 or more).
        ArgumentValueError: a box is not inside the image.
    """
    array, found = checked_image(owner, image), np.array(boxes)
    if found.ndim != 2 or found.shape[1] < 4:
        raise ShapeError(f"{owner}: got boxes of shape {found.shape}; wanted (n, 4)")
    height, width = array.shape[:2]
    x, y, w, h = (found[:, i] for i in range(4))
    if (x < 0).any() or (y < 0).any() or (x + w > width).any() or (y + h > height).any():
        raise ArgumentValueError(
            f"{owner}: got boxes {found[:, :4].tolist()} for an image of {height} by {width}; "
            "wanted boxes inside it"
        )
    return array, found


def _clipped(boxes: Array, height: int, width: int) -> Array:
    """Return boxes clipped to an image of the given size, without boxes outside the image.

    Boxes without area are left out as well. If no box remains, the result is one box of zeros.
    """
    left, top = np.clip(boxes[:, 0], 0, width), np.clip(boxes[:, 1], 0, height)
    right = np.clip(boxes[:, 0] + boxes[:, 2], 0, width)
    bottom = np.clip(boxes[:, 1] + boxes[:, 3], 0, height)
    made = boxes.copy()
    made[:, 0], made[:, 1], made[:, 2], made[:, 3] = left, top, right - left, bottom - top
    kept = made[(made[:, 2] > 0) & (made[:, 3] > 0)]
    if len(kept):
        return kept
    empty = np.zeros_like(boxes[:1])  # one box without area says that none is left
    return empty


def _scaled(boxes: Array, y: float, x: float) -> Array:
    """Return boxes with left and width multiplied by `x`, and top and height by `y`.

    The dtype is that of `boxes`; for integers, the products are rounded towards zero.
    """
    made = boxes.copy()
    factors = np.array([x, y, x, y])
    made[:, :4] = (boxes[:, :4] * factors).astype(boxes.dtype)
    return made


class ResizeWithBBox:
    """Resizes an image and its boxes (`mindspore.dataset.vision.ResizeWithBBox`).

    Args:
        size: (height, width), or an int for the shorter side.
        interpolation: an `Inter`, the interpolation method.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: a size is below 1; when called: a box is outside the image.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> resize = vision.ResizeWithBBox((4, 6))
        >>> resize(np.zeros((2, 3, 3), np.uint8), np.array([[1, 1, 1, 1]]))[1].tolist()
        [[2, 2, 2, 2]]
    """

    def __init__(self, size: Ints, interpolation: Inter = Inter.LINEAR) -> None:
        self.size = checked_size(type(self).__name__, size, single=True)
        self.resize = Resize(size, interpolation)

    def _resize(self) -> Resize:
        return self.resize

    def __call__(self, image: object, bboxes: object) -> tuple[Array, Array]:
        array, boxes = _checked(type(self).__name__, image, bboxes)
        height, width = scaled_size(self.size, *array.shape[:2])
        found = _scaled(boxes, height / array.shape[0], width / array.shape[1])
        return self._resize()(array), found


class RandomResizeWithBBox(ResizeWithBBox):
    """Resizes an image and its boxes, with a random interpolation method
    (`mindspore.dataset.vision.RandomResizeWithBBox`).

    Raises:
        ValueError: a size is below 1; when called: a box is outside the image.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> resize = vision.RandomResizeWithBBox((4, 6))
        >>> resize(np.zeros((2, 3, 3), np.uint8), np.array([[1, 1, 1, 1]]))[1].tolist()
        [[2, 2, 2, 2]]
    """

    def __init__(self, size: Ints) -> None:
        super().__init__(size)

    def _resize(self) -> Resize:
        kinds = (Inter.NEAREST, Inter.BILINEAR, Inter.BICUBIC, Inter.AREA)
        return Resize(self.size, kinds[int(random_numbers().integers(4))])


class RandomHorizontalFlipWithBBox:
    """Mirrors an image and its boxes left to right with a probability
    (`mindspore.dataset.vision.RandomHorizontalFlipWithBBox`).

    Raises:
        ValueError: `prob` is not in [0, 1]; when called: a box is outside the image.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> flip = vision.RandomHorizontalFlipWithBBox(1.0)
        >>> flip(np.zeros((2, 3, 3), np.uint8), np.array([[0, 1, 1, 1]]))[1].tolist()
        [[2, 1, 1, 1]]
    """

    def __init__(self, prob: float = 0.5) -> None:
        self.prob = checked_probability("RandomHorizontalFlipWithBBox", prob)

    def __call__(self, image: object, bboxes: object) -> tuple[Array, Array]:
        array, boxes = _checked("RandomHorizontalFlipWithBBox", image, bboxes)
        if random_numbers().random() < self.prob:
            array = HorizontalFlip()(array)
            boxes[:, 0] = array.shape[1] - boxes[:, 0] - boxes[:, 2]
        return array, boxes


class RandomVerticalFlipWithBBox:
    """Mirrors an image and its boxes top to bottom with a probability
    (`mindspore.dataset.vision.RandomVerticalFlipWithBBox`).

    Raises:
        ValueError: `prob` is not in [0, 1]; when called: a box is outside the image.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> flip = vision.RandomVerticalFlipWithBBox(1.0)
        >>> flip(np.zeros((2, 3, 3), np.uint8), np.array([[0, 1, 1, 1]]))[1].tolist()
        [[0, 0, 1, 1]]
    """

    def __init__(self, prob: float = 0.5) -> None:
        self.prob = checked_probability("RandomVerticalFlipWithBBox", prob)

    def __call__(self, image: object, bboxes: object) -> tuple[Array, Array]:
        array, boxes = _checked("RandomVerticalFlipWithBBox", image, bboxes)
        if random_numbers().random() < self.prob:
            array = VerticalFlip()(array)
            boxes[:, 1] = array.shape[0] - boxes[:, 1] - boxes[:, 3]
        return array, boxes


class RandomCropWithBBox:
    """Pads an image, crops it at a random position, and clips its boxes
    (`mindspore.dataset.vision.RandomCropWithBBox`).

    Arguments are those of `RandomCrop`. Boxes outside the result are removed; if none is left, the
    result has one box of zeros.

    Raises:
        ValueError: an argument is outside its range; when called: a box is outside the image.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> crop = vision.RandomCropWithBBox((2, 3))
        >>> crop(np.zeros((2, 3, 3), np.uint8), np.array([[0, 1, 1, 1]]))[1].tolist()
        [[0, 1, 1, 1]]
    """

    def __init__(
        self,
        size: Ints,
        padding: Ints | None = None,
        pad_if_needed: bool = False,
        fill_value: Ints = 0,
        padding_mode: Border = Border.CONSTANT,
    ) -> None:
        self.crop = RandomCrop(size, padding, pad_if_needed, fill_value, padding_mode)

    def __call__(self, image: object, bboxes: object) -> tuple[Array, Array]:
        array, boxes = _checked("RandomCropWithBBox", image, bboxes)
        around = self.crop.around(*array.shape[:2])
        array = padded_image(array, around, self.crop.fill_value, self.crop.mode)
        top, left = self.crop.box(*array.shape[:2])
        h, w = self.crop.size
        boxes[:, 0] = boxes[:, 0] + around[0] - left
        boxes[:, 1] = boxes[:, 1] + around[1] - top
        return array[top : top + h, left : left + w], _clipped(boxes, h, w)


class RandomResizedCropWithBBox:
    """Crops a random rectangle, resizes it, and clips and scales the boxes
    (`mindspore.dataset.vision.RandomResizedCropWithBBox`).

    Arguments are those of `RandomResizedCrop`; boxes are clipped like those of
    `RandomCropWithBBox`.

    Raises:
        ValueError: an argument is outside its range; when called: a box is outside the image.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> crop = vision.RandomResizedCropWithBBox((4, 6))
        >>> crop(np.zeros((2, 3, 3), np.uint8), np.array([[0, 0, 3, 2]]))[1].tolist()
        [[0, 0, 6, 4]]
    """

    def __init__(
        self,
        size: Ints,
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: Inter = Inter.BILINEAR,
        max_attempts: int = 10,
    ) -> None:
        self.crop = RandomResizedCrop(size, scale, ratio, interpolation, max_attempts)

    def __call__(self, image: object, bboxes: object) -> tuple[Array, Array]:
        array, boxes = _checked("RandomResizedCropWithBBox", image, bboxes)
        top, left, h, w = self.crop.box(*array.shape[:2])
        boxes[:, 0] = boxes[:, 0] - left
        boxes[:, 1] = boxes[:, 1] - top
        size = self.crop.size
        found = _scaled(_clipped(boxes, h, w), size[0] / h, size[1] / w)
        return ResizedCrop(top, left, h, w, size, self.crop.interpolation)(array), found


class BoundingBoxAugment:
    """Applies a transform to the inside of some randomly chosen boxes
    (`mindspore.dataset.vision.BoundingBoxAugment`).

    Args:
        transform: function of an image that returns an image of the same size.
        ratio: fraction of the boxes to choose, 0 to 1.

    Raises:
        TypeError: the argument is no function.
        ValueError: `ratio` is not in [0, 1]; when called: a box is outside the image.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> augment = vision.BoundingBoxAugment(vision.Invert(), 1.0)
        >>> augment(np.zeros((2, 1, 3), np.uint8), np.array([[0, 1, 1, 1]]))[0].tolist()
        [[[0, 0, 0]], [[255, 255, 255]]]
    """

    def __init__(self, transform: Callable[[Array], object], ratio: float = 0.3) -> None:
        if not callable(transform):
            raise ArgumentError(
                f"BoundingBoxAugment: got {type(transform).__name__}; wanted a transform"
            )
        self.transform = transform
        self.ratio = checked_number("BoundingBoxAugment", "ratio", ratio, 0, 1)

    def __call__(self, image: object, bboxes: object) -> tuple[Array, Array]:
        array, boxes = _checked("BoundingBoxAugment", image, bboxes)
        array = array.copy()
        count = round(len(boxes) * self.ratio)
        for i in random_numbers().choice(len(boxes), count, replace=False):
            x, y, w, h = (int(n) for n in boxes[i, :4])
            part = np.asarray(self.transform(array[y : y + h, x : x + w]))
            if part.shape != array[y : y + h, x : x + w].shape:
                raise ShapeError(
                    f"BoundingBoxAugment: the transform returned {part.shape} for a box of "
                    f"{(h, w)}; wanted the same size"
                )
            array[y : y + h, x : x + w] = part
        return array, boxes
