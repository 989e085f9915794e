"""Transforms of images for `Dataset.map` (`mindspore.dataset.vision`).

An image is an (H, W, C) or (H, W) array.
"""

from __future__ import annotations

import enum
import io
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..dtype import DTypeLike, as_dtype
from ..errors import ArgumentError, ArgumentValueError, ShapeError
from . import config
from .rows import Array, DatasetError

Ints: TypeAlias = "int | Sequence[int]"

__all__ = [
    "Inter",
    "Border",
    "Rescale",
    "Normalize",
    "HWC2CHW",
    "ToTensor",
    "ToType",
    "Resize",
    "Pad",
    "CenterCrop",
    "RandomCrop",
    "RandomHorizontalFlip",
    "RandomVerticalFlip",
    "HorizontalFlip",
    "VerticalFlip",
    "Grayscale",
    "Decode",
]


class Inter(enum.IntEnum):
    """Interpolation methods of the image transform `Resize`."""

    NEAREST = 0
    ANTIALIAS = 1
    LINEAR = 2
    BILINEAR = 2
    CUBIC = 3
    BICUBIC = 3


class Border(str, enum.Enum):
    """The kind of border that `Pad` and `RandomCrop` add."""

    CONSTANT = "constant"
    EDGE = "edge"
    REFLECT = "reflect"
    SYMMETRIC = "symmetric"


def _image(owner: str, image: ArrayLike) -> Array:
    """Check that an image transform's input has two or three axes and return it as an array."""
    array = np.asarray(image)
    if array.ndim not in (2, 3):
        raise ShapeError(
            f"{owner}: got an image of shape {array.shape}; wanted (H, W) or (H, W, C)"
        )
    return array


class Rescale:
    """`image * rescale + shift`, float32 (`mindspore.dataset.vision.Rescale`).

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> print(vision.Rescale(1 / 255, 0.0)(np.full((1, 1), 255, np.uint8)))
        [[1.]]
    """

    def __init__(self, rescale: float, shift: float) -> None:
        self.rescale, self.shift = np.float32(rescale), np.float32(shift)

    def __call__(self, image: ArrayLike) -> Array:
        return np.asarray(image).astype(np.float32) * self.rescale + self.shift


class Normalize:
    """`(image - mean) / std` per channel, float32 (`mindspore.dataset.vision.Normalize`).

    Args:
        mean, std: one number per channel, or one for all.
        is_hwc: whether channels are the last axis rather than the first.

    Raises:
        ValueError: an image with another number of channels, or a std of 0 or less.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.Normalize([1.0], [2.0])(np.zeros((4, 4, 3), np.uint8)).shape
        (4, 4, 3)
    """

    def __init__(self, mean: ArrayLike, std: ArrayLike, is_hwc: bool = True) -> None:
        self.mean, self.std = (np.atleast_1d(np.asarray(v, np.float32)) for v in (mean, std))
        if self.mean.shape != self.std.shape or (self.std <= 0).any():
            raise ArgumentValueError(
                f"Normalize: got mean={mean!r} and std={std!r}; wanted the same number, std above 0"
            )
        self.is_hwc = is_hwc

    def __call__(self, image: ArrayLike) -> Array:
        array = _image("Normalize", image).astype(np.float32)
        if array.ndim == 2:
            channels, shape = 1, [1, 1]
        else:
            channels = array.shape[2 if self.is_hwc else 0]
            shape = [1, 1, -1] if self.is_hwc else [-1, 1, 1]
        if len(self.mean) not in (1, channels):
            raise ShapeError(
                f"Normalize: got an image of shape {array.shape} and {len(self.mean)} means; "
                f"wanted one per channel"
            )
        return (array - self.mean.reshape(shape)) / self.std.reshape(shape)


class HWC2CHW:
    """Moves the channels first (`mindspore.dataset.vision.HWC2CHW`).

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.HWC2CHW()(np.zeros((4, 4, 3), np.uint8)).shape
        (3, 4, 4)
    """

    def __call__(self, image: ArrayLike) -> Array:
        array = _image("HWC2CHW", image)
        return np.ascontiguousarray(array.transpose(2, 0, 1)) if array.ndim == 3 else array


class ToTensor:
    """Moves the channels first and divides by 255 (`mindspore.dataset.vision.ToTensor`).

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.ToTensor()(np.zeros((4, 4, 3), np.uint8)).shape
        (3, 4, 4)
    """

    def __init__(self, output_type: DTypeLike = np.float32) -> None:
        self.output_type = as_dtype(output_type).np

    def __call__(self, image: ArrayLike) -> Array:
        array = _image("ToTensor", image)
        array = array[None] if array.ndim == 2 else array.transpose(2, 0, 1)
        return np.ascontiguousarray(array.astype(np.float32) / np.float32(255)).astype(
            self.output_type
        )


class ToType:
    """Casts to a dtype (`mindspore.dataset.vision.ToType`).

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.ToType(np.float32)(np.zeros((4, 4, 3), np.uint8)).dtype
        dtype('float32')
    """

    def __init__(self, data_type: DTypeLike) -> None:
        self.data_type = as_dtype(data_type).np

    def __call__(self, image: ArrayLike) -> Array:
        return np.asarray(image).astype(self.data_type)


class Resize:
    """Resizes an image (`mindspore.dataset.vision.Resize`).

    Args:
        size: (height, width), or an int for the shorter side.
        interpolation: `Inter.LINEAR` (pixel centres at halves) or `Inter.NEAREST`.

    Raises:
        ValueError: a size below 1, or another interpolation.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.Resize((4, 6))(np.zeros((2, 3, 3), np.uint8)).shape
        (4, 6, 3)
    """

    def __init__(self, size: Ints, interpolation: Inter = Inter.LINEAR) -> None:
        several = (size,) if isinstance(size, int) else tuple(size)
        if len(several) not in (1, 2) or any(isinstance(n, bool) or n < 1 for n in several):
            raise ArgumentValueError(f"Resize: got size={size!r}; wanted an int or two, above 0")
        if interpolation not in (Inter.LINEAR, Inter.NEAREST):
            raise ArgumentValueError(
                f"Resize: got interpolation={interpolation!r}; wanted Inter.LINEAR or Inter.NEAREST"
            )
        self.size, self.interpolation = several, interpolation

    def __call__(self, image: ArrayLike) -> Array:
        array = _image("Resize", image)
        h, w = array.shape[:2]
        if len(self.size) == 2:
            out_h, out_w = self.size
        elif h <= w:
            out_h, out_w = self.size[0], int(self.size[0] * w / h)
        else:
            out_h, out_w = int(self.size[0] * h / w), self.size[0]
        if self.interpolation == Inter.NEAREST:
            rows = np.minimum((np.arange(out_h) * (h / out_h)).astype(np.int64), h - 1)
            columns = np.minimum((np.arange(out_w) * (w / out_w)).astype(np.int64), w - 1)
            return array[rows][:, columns]
        found = _linear(_linear(array.astype(np.float64), out_h, 0), out_w, 1)
        if array.dtype.kind in "iu":
            info = np.iinfo(array.dtype)
            found = np.clip(np.ceil(found - 0.5), info.min, info.max)  # round half down
        return found.astype(array.dtype)


def _linear(array: Array, out: int, axis: int) -> Array:
    """Resize an array along one axis to the length `out` by linear interpolation."""
    n = array.shape[axis]
    at = np.clip((np.arange(out) + 0.5) * (n / out) - 0.5, 0, n - 1)
    low = np.floor(at).astype(np.int64)
    high = np.minimum(low + 1, n - 1)
    shape = [1] * array.ndim
    shape[axis] = out
    weight = (at - low).reshape(shape)
    return np.take(array, low, axis) * (1 - weight) + np.take(array, high, axis) * weight


def _sides(owner: str, padding: Ints) -> tuple[int, int, int, int]:
    """Return an image padding of 1, 2 or 4 ints as (left, top, right, bottom)."""
    several = (padding,) if isinstance(padding, int) else tuple(padding)
    if len(several) not in (1, 2, 4) or any(p < 0 for p in several):
        raise ArgumentValueError(f"{owner}: got padding={padding!r}; wanted 1, 2 or 4 ints")
    if len(several) == 4:
        return several
    x, y = several * 2 if len(several) == 1 else several
    return x, y, x, y


class Pad:
    """Adds a border around an image (`mindspore.dataset.vision.Pad`).

    The padding is an int, (x, y) or (left, top, right, bottom).

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.Pad(1)(np.zeros((4, 4, 3), np.uint8)).shape
        (6, 6, 3)
    """

    def __init__(
        self, padding: Ints, fill_value: ArrayLike = 0, padding_mode: Border = Border.CONSTANT
    ) -> None:
        self.sides = _sides("Pad", padding)
        self.fill_value, self.mode = fill_value, Border(padding_mode).value

    def __call__(self, image: ArrayLike) -> Array:
        array = _image("Pad", image)
        left, top, right, bottom = self.sides
        width = [(top, bottom), (left, right)] + [(0, 0)] * (array.ndim - 2)
        if self.mode == "constant":
            return np.pad(array, width, constant_values=self.fill_value)
        return np.pad(array, width, mode=self.mode)  # type: ignore[call-overload]


def _pair(owner: str, size: Ints) -> tuple[int, int]:
    """Return an image size argument as (height, width)."""
    several = (size, size) if isinstance(size, int) else tuple(size)
    if len(several) != 2 or any(isinstance(n, bool) or n < 1 for n in several):
        raise ArgumentValueError(f"{owner}: got size={size!r}; wanted an int or two, above 0")
    return several


class CenterCrop:
    """Crops the centre of an image; a smaller image is padded with 0
    (`mindspore.dataset.vision.CenterCrop`).

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.CenterCrop(2)(np.zeros((4, 4, 3), np.uint8)).shape
        (2, 2, 3)
    """

    def __init__(self, size: Ints) -> None:
        self.size = _pair("CenterCrop", size)

    def __call__(self, image: ArrayLike) -> Array:
        array = _image("CenterCrop", image)
        h, w = self.size
        more_h, more_w = max(h - array.shape[0], 0), max(w - array.shape[1], 0)
        if more_h or more_w:
            array = Pad((more_w // 2, more_h // 2, more_w - more_w // 2, more_h - more_h // 2))(
                array
            )
        top, left = (array.shape[0] - h + 1) // 2, (array.shape[1] - w + 1) // 2
        return array[top : top + h, left : left + w]


class RandomCrop:
    """Pads an image and crops it at a random position (`mindspore.dataset.vision.RandomCrop`).

    Raises:
        ValueError: when called: the image is smaller than the size, without `pad_if_needed`.

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
        fill_value: ArrayLike = 0,
        padding_mode: Border = Border.CONSTANT,
    ) -> None:
        self.size = _pair("RandomCrop", size)
        self.pad = None if padding is None else Pad(padding, fill_value, padding_mode)
        self.pad_if_needed, self.fill_value, self.mode = pad_if_needed, fill_value, padding_mode

    def __call__(self, image: ArrayLike) -> Array:
        array = _image("RandomCrop", image)
        if self.pad is not None:
            array = self.pad(array)
        h, w = self.size
        if self.pad_if_needed:
            more_h, more_w = max(h - array.shape[0], 0), max(w - array.shape[1], 0)
            array = Pad((more_w, more_h), self.fill_value, self.mode)(array)
        if array.shape[0] < h or array.shape[1] < w:
            raise ArgumentValueError(
                f"RandomCrop: got an image of shape {array.shape}; wanted at least {self.size}"
            )
        random = config.random_numbers()
        top = int(random.integers(array.shape[0] - h + 1))
        left = int(random.integers(array.shape[1] - w + 1))
        return array[top : top + h, left : left + w]


class HorizontalFlip:
    """Mirrors an image left to right (`mindspore.dataset.vision.HorizontalFlip`).

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.HorizontalFlip()(np.zeros((4, 4, 3), np.uint8)).shape
        (4, 4, 3)
    """

    def __call__(self, image: ArrayLike) -> Array:
        return np.ascontiguousarray(_image("HorizontalFlip", image)[:, ::-1])


class VerticalFlip:
    """Mirrors an image top to bottom (`mindspore.dataset.vision.VerticalFlip`).

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.VerticalFlip()(np.zeros((4, 4, 3), np.uint8)).shape
        (4, 4, 3)
    """

    def __call__(self, image: ArrayLike) -> Array:
        return np.ascontiguousarray(_image("VerticalFlip", image)[::-1])


class _RandomFlip:
    """Base class of the transforms that mirror an image at random, with probability `prob`."""

    _flip: type[HorizontalFlip] | type[VerticalFlip] = HorizontalFlip

    def __init__(self, prob: float = 0.5) -> None:
        if not 0 <= prob <= 1:
            raise ArgumentValueError(f"{type(self).__name__}: got prob={prob!r}; wanted 0 to 1")
        self.prob = prob

    def __call__(self, image: ArrayLike) -> Array:
        if config.random_numbers().random() < self.prob:
            return self._flip()(image)
        return np.asarray(image)


class RandomHorizontalFlip(_RandomFlip):
    """Mirrors an image left to right with a probability
    (`mindspore.dataset.vision.RandomHorizontalFlip`).

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.RandomHorizontalFlip(0.5)(np.zeros((4, 4, 3), np.uint8)).shape
        (4, 4, 3)
    """


class RandomVerticalFlip(_RandomFlip):
    """Mirrors an image top to bottom with a probability
    (`mindspore.dataset.vision.RandomVerticalFlip`).

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.RandomVerticalFlip(0.5)(np.zeros((4, 4, 3), np.uint8)).shape
        (4, 4, 3)
    """

    _flip = VerticalFlip


class Grayscale:
    """Converts to grey levels, in one or three equal channels
    (`mindspore.dataset.vision.Grayscale`).

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.Grayscale()(np.zeros((4, 4, 3), np.uint8)).shape
        (4, 4, 1)
    """

    def __init__(self, num_output_channels: int = 1) -> None:
        if num_output_channels not in (1, 3):
            raise ArgumentValueError(
                f"Grayscale: got num_output_channels={num_output_channels!r}; wanted 1 or 3"
            )
        self.channels = num_output_channels

    def __call__(self, image: ArrayLike) -> Array:
        array = _image("Grayscale", image)
        grey = np.rint(array[..., :3] @ np.array([0.299, 0.587, 0.114])).astype(array.dtype)
        return np.repeat(grey[..., None], self.channels, axis=2)


class Decode:
    """Decodes an image file to (H, W, 3) uint8 (`mindspore.dataset.vision.Decode`); needs Pillow.

    Raises:
        TypeError: the input is not a 1-D array of bytes.
        RuntimeError: the bytes are no image, or a damaged one.
        ImportError: Pillow is not installed.
    """

    def __init__(self, to_pil: bool = False) -> None:
        self.to_pil = to_pil

    def __call__(self, image: ArrayLike) -> Any:
        try:
            from PIL import Image
        except ImportError:
            raise ImportError("Decode: needs Pillow; install it with: pip install pillow") from None
        array = np.asarray(image)
        if array.dtype != np.uint8 or array.ndim != 1:
            raise ArgumentError(
                f"Decode: got {array.dtype} of shape {array.shape}; wanted the bytes of a file"
            )
        try:
            picture = Image.open(io.BytesIO(array.tobytes())).convert("RGB")
        except Exception as error:  # noqa: BLE001 (decoders raise whatever a damaged file leads to)
            raise DatasetError(
                f"Decode: got {array.size} bytes that are no image ({type(error).__name__}: "
                f"{error})"
            ) from None
        return picture if self.to_pil else np.asarray(picture)
