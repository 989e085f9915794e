"""Transforms that warp images like a change of the camera's position.

`dataset.vision` exports them for use in `Dataset.map`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import ArgumentError, ArgumentValueError
from ..rows import Array
from .codecs import Picture, pillow
from .enums import Inter
from .geometry import PILLOW_WARPS, WARPS, checked_method, size_of
from .images import (
    ImageT,
    ImageTransform,
    checked_number,
    checked_probability,
    random_numbers,
)
from .resampling import warped_perspective

__all__ = ["Perspective", "RandomPerspective"]


def _projection(begin: Array, end: Array) -> Array:
    """Return the matrix (3, 3) of the projective map from the four points `begin` to `end`.

    Both have shape (4, 2). Raises ArgumentValueError if there is no such map.
    """
    rows, right = [], []
    for (x, y), (u, v) in zip(begin, end):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        right += [u, v]
    try:
        found = np.linalg.solve(np.array(rows, np.float64), np.array(right, np.float64))
    except np.linalg.LinAlgError:
        raise ArgumentValueError(
            f"Perspective: got the points {begin.tolist()}; three of them are on a line"
        ) from None
    return np.append(found, 1).reshape(3, 3)


class Perspective(ImageTransform):
    """Warps an image so that four points move to four others
    (`mindspore.dataset.vision.Perspective`).

    Args:
        start_points, end_points: four (x, y) each: top left, top right, bottom right, bottom left.
        interpolation: an `Inter` other than ANTIALIAS and PILCUBIC.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: there are not four points, or three of them are on a line.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> start, end = [[0, 0], [2, 0], [2, 1], [0, 1]], [[0, 0], [2, 0], [2, 1], [0, 1]]
        >>> vision.Perspective(start, end)(np.ones((2, 3, 1), np.uint8)).sum()
        np.uint64(6)
    """

    def __init__(
        self,
        start_points: Sequence[Sequence[float]],
        end_points: Sequence[Sequence[float]],
        interpolation: Inter = Inter.BILINEAR,
    ) -> None:
        self.interpolation = checked_method("Perspective", interpolation, WARPS)
        points = []
        for name, value in (("start_points", start_points), ("end_points", end_points)):
            if not isinstance(value, (list, tuple)):
                raise ArgumentError(f"Perspective: got {name}={value!r}; wanted four points")
            if len(value) != 4 or any(len(p) != 2 for p in value):
                raise ArgumentValueError(f"Perspective: got {name}={value!r}; wanted four points")
            points.append(np.array(value, np.float64))
        self.start_points, self.end_points = points
        self._map = _projection(self.end_points, self.start_points)

    def _array(self, image: Array) -> Array:
        return warped_perspective(
            image, self._map, image.shape[:2], self.interpolation, np.zeros(1)
        )

    def _picture(self, image: Picture) -> Picture:
        coefficients = (self._map / self._map[2, 2]).ravel()[:8].tolist()
        return image.transform(
            image.size, pillow("Perspective").Transform.PERSPECTIVE, coefficients,
            PILLOW_WARPS[self.interpolation],
        )  # fmt: skip


class RandomPerspective(ImageTransform):
    """Moves the corners of an image at random (`mindspore.dataset.vision.RandomPerspective`).

    Args:
        distortion_scale: how far corners may move, 0 to 1; at 1, up to the middle of the image.
        prob: probability with which an image is changed.
        interpolation: see `Perspective`.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: an argument is outside its range.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.RandomPerspective(prob=1.0)(np.zeros((8, 9, 3), np.uint8)).shape
        (8, 9, 3)
    """

    def __init__(
        self, distortion_scale: float = 0.5, prob: float = 0.5, interpolation: Inter = Inter.BICUBIC
    ) -> None:
        owner = "RandomPerspective"
        self.distortion_scale = checked_number(owner, "distortion_scale", distortion_scale, 0, 1)
        self.prob = checked_probability(owner, prob)
        self.interpolation = checked_method(owner, interpolation, WARPS)

    def __call__(self, image: ImageT) -> ImageT:
        random = random_numbers()
        if random.random() >= self.prob:
            return image
        height, width = size_of("RandomPerspective", image)
        dx, dy = (int(self.distortion_scale * n / 2) + 1 for n in (width, height))
        xs, ys = random.integers(dx, size=4), random.integers(dy, size=4)
        right, bottom = width - 1, height - 1
        start = [[0, 0], [right, 0], [right, bottom], [0, bottom]]
        inward = [(1, 1), (-1, 1), (-1, -1), (1, -1)]
        end = [
            [x + int(dx) * i, y + int(dy) * j]
            for (x, y), (i, j), dx, dy in zip(start, inward, xs, ys)
        ]
        return Perspective(start, end, self.interpolation)(image)
