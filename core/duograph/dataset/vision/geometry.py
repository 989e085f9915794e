"""Transforms that resize, rotate, shear or warp images.

`dataset.vision` exports them for use in `Dataset.map`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from ...errors import ArgumentError, ArgumentValueError
from ..rows import Array
from .codecs import Picture, opened
from .enums import Inter
from .images import (
    Image,
    ImageT,
    ImageTransform,
    Ints,
    Numbers,
    checked_fill,
    checked_member,
    checked_number,
    checked_range,
    checked_size,
    picture_like,
    random_numbers,
)
from .resampling import inverted, resized, warped_affine

if TYPE_CHECKING:
    import PIL.Image

__all__ = [
    "Affine",
    "RandomAffine",
    "RandomCropDecodeResize",
    "RandomResize",
    "RandomResizedCrop",
    "RandomRotation",
    "Resize",
    "ResizedCrop",
    "Rotate",
]

PILLOW = {
    Inter.NEAREST: 0, Inter.ANTIALIAS: 1, Inter.BILINEAR: 2, Inter.BICUBIC: 3, Inter.AREA: 4,
    Inter.PILCUBIC: 3,
}  # fmt: skip  # Pillow's numbers of its filters; 4 is its box filter


def scaled_size(size: Sequence[int], height: int, width: int) -> tuple[int, int]:
    """Return (height, width) of a resized image; a single number in `size` is the shorter side.

    `height` and `width` are those of the original.
    """
    if len(size) == 2:
        return size[0], size[1]
    if height <= width:
        return size[0], int(size[0] * width / height)
    return int(size[0] * height / width), size[0]


def checked_method(
    owner: str, method: object, kinds: Sequence[Inter], name: str = "interpolation"
) -> Inter:
    """Return an interpolation method if it is one of `kinds`; raise otherwise."""
    found: Inter = checked_member(owner, name, method, Inter)
    if found not in kinds:
        raise ArgumentValueError(
            f"{owner}: got {name}={found!r}; wanted one of {[k.name for k in kinds]}"
        )
    return found


_ALL = tuple(Inter)
WARPS = (Inter.NEAREST, Inter.BILINEAR, Inter.BICUBIC, Inter.AREA)


def _resized(owner: str, image: Array, height: int, width: int, method: Inter) -> Array:
    """Resize an array (H, W, ...) by `method`; ANTIALIAS uses Pillow's filter."""
    if method == Inter.ANTIALIAS:
        picture = picture_like(image, owner).resize((width, height), PILLOW[method])
        found = np.array(picture)
        return found if found.ndim == image.ndim else found[..., None]
    return resized(image, height, width, method)


class Resize(ImageTransform):
    """Resizes an image (`mindspore.dataset.vision.Resize`).

    Args:
        size: (height, width), or an int for the shorter side.
        interpolation: an `Inter`, the interpolation method. Arrays are resized as OpenCV does (for
            PILCUBIC and ANTIALIAS as Pillow does), Pillow images by Pillow.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: a size is below 1.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.Resize((4, 6))(np.zeros((2, 3, 3), np.uint8)).shape
        (4, 6, 3)
    """

    def __init__(self, size: Ints, interpolation: Inter = Inter.LINEAR) -> None:
        self.size = checked_size("Resize", size, single=True)
        self.interpolation = checked_method("Resize", interpolation, _ALL)

    def _array(self, image: Array) -> Array:
        height, width = scaled_size(self.size, *image.shape[:2])
        return _resized("Resize", image, height, width, self.interpolation)

    def _picture(self, image: Picture) -> Picture:
        height, width = scaled_size(self.size, image.size[1], image.size[0])
        return image.resize((width, height), PILLOW[self.interpolation])


class RandomResize(Resize):
    """Resizes an image with an interpolation method that is chosen at random
    (`mindspore.dataset.vision.RandomResize`).

    Raises:
        TypeError: a size is no int.
        ValueError: a size is below 1.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.RandomResize((4, 6))(np.zeros((2, 3, 3), np.uint8)).shape
        (4, 6, 3)
    """

    def __init__(self, size: Ints) -> None:
        super().__init__(size)
        self.size = checked_size("RandomResize", size, single=True)

    def __call__(self, image: ImageT) -> ImageT:
        kinds = (Inter.NEAREST, Inter.BILINEAR, Inter.BICUBIC, Inter.AREA)
        return Resize(self.size, kinds[int(random_numbers().integers(4))])(image)


class ResizedCrop(ImageTransform):
    """Crops a rectangle and resizes it (`mindspore.dataset.vision.ResizedCrop`).

    Args:
        top, left, height, width: the rectangle, in pixels.
        size: (height, width), or an int for both sides.
        interpolation: an `Inter`, the interpolation method.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: a position is negative, or a size is below 1; when called: the rectangle is not
            inside the image.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.ResizedCrop(0, 0, 1, 2, (4, 6))(np.zeros((2, 3, 3), np.uint8)).shape
        (4, 6, 3)
    """

    def __init__(
        self,
        top: int,
        left: int,
        height: int,
        width: int,
        size: Ints,
        interpolation: Inter = Inter.BILINEAR,
    ) -> None:
        for name, value, low in (
            ("top", top, 0), ("left", left, 0), ("height", height, 1), ("width", width, 1)
        ):  # fmt: skip
            checked_number("ResizedCrop", name, value, low, 2**24)
        self.box = top, left, height, width
        self.size = checked_size("ResizedCrop", size)
        self.interpolation = checked_method("ResizedCrop", interpolation, _ALL)

    def _inside(self, height: int, width: int) -> None:
        """Raise ArgumentValueError unless the rectangle to crop lies in an image of this size."""
        top, left, h, w = self.box
        if top + h > height or left + w > width:
            raise ArgumentValueError(
                f"ResizedCrop: got an image of {height} by {width}; wanted at least {top + h} by "
                f"{left + w}"
            )

    def _array(self, image: Array) -> Array:
        self._inside(*image.shape[:2])
        top, left, h, w = self.box
        part = image[top : top + h, left : left + w]
        height, width = self.size
        return _resized("ResizedCrop", part, height, width, self.interpolation)

    def _picture(self, image: Picture) -> Picture:
        self._inside(image.size[1], image.size[0])
        top, left, h, w = self.box
        part = image.crop((left, top, left + w, top + h))
        return part.resize(cast("tuple[int, int]", self.size[::-1]), PILLOW[self.interpolation])


class RandomResizedCrop(ImageTransform):
    """Crops a random rectangle and resizes it (`mindspore.dataset.vision.RandomResizedCrop`).

    Args:
        size: (height, width), or an int for both sides.
        scale: range of the rectangle's area, as a fraction of the image's area.
        ratio: range of the rectangle's width / height.
        interpolation: an `Inter`, the interpolation method.
        max_attempts: number of random rectangles that are tried before the centre is taken.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: a range is empty or below 0.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.RandomResizedCrop(5)(np.zeros((8, 9, 3), np.uint8)).shape
        (5, 5, 3)
    """

    def __init__(
        self,
        size: Ints,
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: Inter = Inter.BILINEAR,
        max_attempts: int = 10,
    ) -> None:
        owner = type(self).__name__
        self.size = checked_size(owner, size)
        self.scale = checked_range(owner, "scale", scale, None, 0, 2**24)
        self.ratio = checked_range(owner, "ratio", ratio, None, 0, 2**24)
        if not self.scale[1] or not self.ratio[0]:
            raise ArgumentValueError(f"{owner}: got scale={scale}, ratio={ratio}; wanted above 0")
        self.interpolation = checked_method(owner, interpolation, _ALL)
        checked_number(owner, "max_attempts", max_attempts, 1)
        self.max_attempts = max_attempts

    def box(self, height: int, width: int) -> tuple[int, int, int, int]:
        """Return a random rectangle (top, left, height, width) in an image of the given size.

        Its share of the area and its aspect ratio are drawn from the ranges `scale` and `ratio`. If
        no rectangle fits in `max_attempts` attempts, a centred one is returned.
        """
        random, area = random_numbers(), height * width
        for _ in range(self.max_attempts):
            target = area * random.uniform(*self.scale)
            aspect = math.exp(random.uniform(math.log(self.ratio[0]), math.log(self.ratio[1])))
            w, h = round(math.sqrt(target * aspect)), round(math.sqrt(target / aspect))
            if 0 < w <= width and 0 < h <= height:
                return int(random.integers(height - h + 1)), int(
                    random.integers(width - w + 1)
                ), h, w  # fmt: skip
        aspect = min(max(width / height, self.ratio[0]), self.ratio[1])
        w = min(width, max(1, round(height * aspect)))
        h = min(height, max(1, round(width / aspect)))
        return (height - h) // 2, (width - w) // 2, h, w

    def __call__(self, image: ImageT) -> ImageT:
        height, width = size_of(type(self).__name__, image)
        return ResizedCrop(*self.box(height, width), self.size, self.interpolation)(image)


def size_of(owner: str, image: Image) -> tuple[int, int]:
    """Return (height, width) of an array or a Pillow image.

    Raises:
        ArgumentValueError: the array has neither two nor three axes.
    """
    if hasattr(image, "getbands"):
        return cast("Picture", image).size[1], cast("Picture", image).size[0]
    shape = np.shape(image)
    if len(shape) not in (2, 3):
        raise ArgumentValueError(f"{owner}: got shape {shape}; wanted (H, W) or (H, W, C)")
    return int(shape[0]), int(shape[1])


class RandomCropDecodeResize(RandomResizedCrop):
    """Decodes an image file, crops a random rectangle and resizes it
    (`mindspore.dataset.vision.RandomCropDecodeResize`); needs Pillow.

    Arguments are those of `RandomResizedCrop`; it is called with the bytes of a file, uint8 (n,).

    Raises:
        TypeError: when called: the input is no array of bytes.
        RuntimeError: when called: the bytes are no image file.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> file = vision.encode_png(np.zeros((8, 9, 3), np.uint8))
        >>> vision.RandomCropDecodeResize(5)(file).shape
        (5, 5, 3)
    """

    def __call__(self, image: ImageT) -> ImageT:
        data = np.asarray(image.asnumpy() if hasattr(image, "asnumpy") else image)
        if data.dtype.kind == "S":
            data = np.frombuffer(data.tobytes(), np.uint8)
        if data.dtype != np.uint8 or data.ndim != 1:
            raise ArgumentError(
                f"RandomCropDecodeResize: got {data.dtype} of shape {data.shape}; wanted the bytes "
                "of a file"
            )
        return super().__call__(
            cast("ImageT", np.array(opened(data, "RGB", "RandomCropDecodeResize")))
        )


# ---- rotations and warps ------------------------------------------------------------------------


def _rotation(angle: float, centre: tuple[float, float]) -> Array:
    """Return the matrix (2, 3) of a rotation about the point `centre` = (x, y).

    The angle is in degrees, counter-clockwise on the screen.
    """
    a, b = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    x, y = centre
    return np.array([[a, b, (1 - a) * x - b * y], [-b, a, b * x + (1 - a) * y]])


class Rotate(ImageTransform):
    """Rotates an image counter-clockwise (`mindspore.dataset.vision.Rotate`).

    Args:
        degrees: angle of the rotation in degrees.
        resample: NEAREST, BILINEAR, BICUBIC or AREA.
        expand: enlarge the result to hold the whole rotated image; `center` is then ignored.
        center: fixed point (x, y) of the rotation; by default the centre of the image.
        fill_value: value of pixels outside the image: an int, or three ints, one per channel.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: an argument is outside its range.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.Rotate(90, expand=True)(np.zeros((2, 3, 3), np.uint8)).shape
        (3, 2, 3)
    """

    def __init__(
        self,
        degrees: float,
        resample: Inter = Inter.NEAREST,
        expand: bool = False,
        center: Sequence[float] | None = None,
        fill_value: Ints = 0,
    ) -> None:
        self.degrees = checked_number("Rotate", "degrees", degrees)
        self.resample = checked_method("Rotate", resample, WARPS, "resample")
        if not isinstance(expand, bool):
            raise ArgumentError(f"Rotate: got expand={expand!r}; wanted True or False")
        self.expand = expand
        self.center = checked_center("Rotate", center)
        self.fill_value = checked_fill("Rotate", fill_value)

    def _array(self, image: Array) -> Array:
        height, width = image.shape[:2]
        centre = ((width - 1) / 2, (height - 1) / 2)
        if self.center is not None and not self.expand:
            centre = self.center
        matrix = _rotation(self.degrees, centre)
        size = (height, width)
        if self.expand:
            c, s = abs(matrix[0, 0]), abs(matrix[0, 1])
            box = height * c + width * s, height * s + width * c
            size = (round(box[0]), round(box[1]))
            matrix[0, 2] += box[1] / 2 - width / 2
            matrix[1, 2] += box[0] / 2 - height / 2
        fill = np.array(self.fill_value[::-1])  # OpenCV's order of colours, as MindSpore's
        return warped_affine(image, inverted(matrix), size, self.resample, fill)

    def _picture(self, image: Picture) -> Picture:
        return image.rotate(
            self.degrees, cast("PIL.Image.Resampling", PILLOW_WARPS[self.resample]),
            self.expand, self.center,
            fillcolor=picture_fill(image, self.fill_value),
        )  # fmt: skip


PILLOW_WARPS = {Inter.NEAREST: 0, Inter.BILINEAR: 2, Inter.BICUBIC: 3, Inter.AREA: 2}


def checked_center(owner: str, center: object) -> tuple[float, float] | None:
    """Return an argument `center` as (x, y), or None if it is None; raise for anything else."""
    if center is None:
        return None
    if not isinstance(center, (list, tuple)) or len(center) != 2:
        raise ArgumentValueError(f"{owner}: got center={center!r}; wanted (x, y)")
    x, y = (checked_number(owner, "center", c) for c in center)
    return x, y


def picture_fill(image: Picture, fill: tuple[int, ...]) -> int | tuple[int, ...]:
    """Convert a fill value to the form that Pillow takes for the channels of an image."""
    bands = len(image.getbands())
    return fill[0] if bands == 1 else (fill * bands)[:bands] if len(fill) == 1 else fill


class RandomRotation(ImageTransform):
    """Rotates an image by a random angle (`mindspore.dataset.vision.RandomRotation`).

    Args:
        degrees: range of the angle in degrees; a number n means (-n, n).
        resample, expand, center, fill_value: see `Rotate`.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: an argument is outside its range.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.RandomRotation(30)(np.zeros((2, 3, 3), np.uint8)).shape
        (2, 3, 3)
    """

    def __init__(
        self,
        degrees: Numbers,
        resample: Inter = Inter.NEAREST,
        expand: bool = False,
        center: Sequence[float] | None = None,
        fill_value: Ints = 0,
    ) -> None:
        self.degrees = checked_range("RandomRotation", "degrees", degrees, 0.0)
        self.options = (resample, expand, center, fill_value)
        Rotate(0, *self.options)

    def __call__(self, image: ImageT) -> ImageT:
        return Rotate(random_numbers().uniform(*self.degrees), *self.options)(image)


class Affine(ImageTransform):
    """Rotates, shears, scales and translates an image about its centre
    (`mindspore.dataset.vision.Affine`).

    Args:
        degrees: angle of the rotation in degrees, clockwise.
        translate: shift (x, y) as fractions of the width and height, -1 to 1.
        scale: factor of the size, above 0.
        shear: angle in degrees along x, or angles along x and y.
        resample: NEAREST, BILINEAR, BICUBIC or AREA.
        fill_value: value of pixels outside the image: an int, or three ints, one per channel.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: an argument is outside its range.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> image = np.arange(6, dtype=np.uint8).reshape(2, 3, 1)
        >>> vision.Affine(0, (0.34, 0), 1.0, 0)(image)[..., 0].tolist()
        [[0, 0, 1], [0, 3, 4]]
    """

    def __init__(
        self,
        degrees: float,
        translate: Sequence[float],
        scale: float,
        shear: Numbers,
        resample: Inter = Inter.NEAREST,
        fill_value: Ints = 0,
    ) -> None:
        self.degrees = checked_number("Affine", "degrees", degrees)
        if not isinstance(translate, (list, tuple)):
            raise ArgumentError(f"Affine: got translate={translate!r}; wanted two numbers")
        if len(translate) != 2:
            raise ArgumentValueError(f"Affine: got translate={translate!r}; wanted two numbers")
        self.translate = [checked_number("Affine", "translate", t, -1, 1) for t in translate]
        self.scale = checked_number("Affine", "scale", scale, 1e-12)
        several = (shear, 0.0) if isinstance(shear, (int, float)) else shear
        if not isinstance(several, (list, tuple)) or len(several) != 2:
            raise ArgumentError(f"Affine: got shear={shear!r}; wanted a number or two")
        self.shear = [checked_number("Affine", "shear", s) for s in several]
        self.resample = checked_method("Affine", resample, WARPS, "resample")
        self.fill_value = checked_fill("Affine", fill_value)

    def matrix(self, height: int, width: int) -> Array:
        """Return the (2, 3) affine map from positions in the result to positions in the image.

        `height` and `width` are the size of the image.
        """
        angle, sx, sy = (math.radians(a) for a in (self.degrees, *self.shear))
        a = math.cos(angle - sy) / math.cos(sy)
        b = -math.cos(angle - sy) * math.tan(sx) / math.cos(sy) - math.sin(angle)
        c = math.sin(angle - sy) / math.cos(sy)
        d = -math.sin(angle - sy) * math.tan(sx) / math.cos(sy) + math.cos(angle)
        found = np.array([[d, -b, 0.0], [-c, a, 0.0]]) / self.scale
        x, y = (width - 1) / 2, (height - 1) / 2
        tx, ty = self.translate[0] * width, self.translate[1] * height
        found[:, 2] = found[:, :2] @ [-x - tx, -y - ty] + [x, y]
        return found

    def _array(self, image: Array) -> Array:
        matrix = self.matrix(*image.shape[:2])
        fill = np.array(self.fill_value[::-1])  # OpenCV's order of colours, as MindSpore's
        return warped_affine(image, matrix, image.shape[:2], self.resample, fill)

    def _picture(self, image: Picture) -> Picture:
        matrix = self.matrix(image.size[1], image.size[0])
        # Pillow's positions are the corners of pixels, ours the centres.
        matrix[:, 2] += 0.5 - matrix[:, :2] @ [0.5, 0.5]
        return image.transform(
            image.size, cast("PIL.Image.Transform", 0), matrix.ravel().tolist(),
            PILLOW_WARPS[self.resample],
            fillcolor=picture_fill(image, self.fill_value),
        )  # fmt: skip


class RandomAffine(ImageTransform):
    """Rotates, shears, scales and translates an image at random
    (`mindspore.dataset.vision.RandomAffine`).

    Args:
        degrees: range of the angle in degrees; a number n means (-n, n).
        translate: range (x0, x1) of the shift along x, or (x0, x1, y0, y1), as fractions of width
            and height; None does not shift.
        scale: range of the factor of the size; None does not scale.
        shear: range of the angle in degrees along x, or of both angles (x0, x1, y0, y1); a number n
            means (-n, n).
        resample, fill_value: see `Affine`.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: an argument is outside its range.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.RandomAffine(10, (-0.1, 0.1))(np.zeros((8, 9, 3), np.uint8)).shape
        (8, 9, 3)
    """

    def __init__(
        self,
        degrees: Numbers,
        translate: Sequence[float] | None = None,
        scale: Sequence[float] | None = None,
        shear: Numbers | None = None,
        resample: Inter = Inter.NEAREST,
        fill_value: Ints = 0,
    ) -> None:
        owner = "RandomAffine"
        self.degrees = checked_range(owner, "degrees", degrees, 0.0)
        self.translate = _two_ranges(owner, "translate", translate, -1, 1)
        self.scale = (1.0, 1.0) if scale is None else checked_range(owner, "scale", scale, None, 0)
        if not self.scale[1]:
            raise ArgumentValueError(f"{owner}: got scale={scale!r}; wanted above 0")
        if isinstance(shear, (int, float)) and not isinstance(shear, bool):
            shear = checked_range(owner, "shear", shear, 0.0)
        self.shear = _two_ranges(owner, "shear", shear, -360, 360)
        self.resample = checked_method(owner, resample, WARPS, "resample")
        self.fill_value = checked_fill(owner, fill_value)
        self.fill = fill_value

    def __call__(self, image: ImageT) -> ImageT:
        random = random_numbers()
        degrees, scale = random.uniform(*self.degrees), random.uniform(*self.scale)
        translate = [random.uniform(*r) for r in self.translate]
        shear = [random.uniform(*r) for r in self.shear]
        scale = max(scale, 1e-12)
        return Affine(degrees, translate, scale, shear, self.resample, self.fill)(image)


def _two_ranges(
    owner: str, name: str, value: object, low: float, high: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the ranges along x and y from a list of four numbers, or of two for x alone.

    A range that is not given is (0, 0). If `value` is None, both ranges are (0, 0).

    Raises:
        ArgumentError: `value` is no list or tuple, or has items that are no numbers.
        ArgumentValueError: there are neither two nor four numbers, a range does not ascend, or a
            number is outside [low, high].
    """
    if value is None:
        return (0.0, 0.0), (0.0, 0.0)
    if not isinstance(value, (list, tuple)):
        raise ArgumentError(f"{owner}: got {name}={value!r}; wanted two or four numbers")
    if len(value) not in (2, 4):
        raise ArgumentValueError(f"{owner}: got {name}={value!r}; wanted two or four numbers")
    across = checked_range(owner, name, value[:2], None, low, high)
    down = checked_range(owner, name, value[2:], None, low, high) if len(value) == 4 else (0.0, 0.0)
    return across, down
