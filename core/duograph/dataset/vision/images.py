"""Common parts of all image transforms: kinds of images, checks of arguments, base classes.

The other modules of `dataset.vision` use it. An image is an array (H, W, C) or (H, W), or a Pillow
image. A transform of a Pillow image returns a Pillow image.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias, TypeGuard, TypeVar, cast

import numpy as np

from ...call_errors import explain_methods
from ...errors import ArgumentError, ArgumentValueError, ShapeError
from ...option_checks import check_options
from .. import config
from ..rows import Array
from .codecs import Picture, pillow

if TYPE_CHECKING:
    import PIL.Image

__all__ = [
    "Image", "ImageT", "ImageTransform", "Ints", "Numbers", "checked_image", "checked_member",
    "checked_number", "checked_probability", "checked_range", "checked_size", "is_picture",
    "picture_like", "random_numbers",
]  # fmt: skip

Ints: TypeAlias = "int | Sequence[int]"
Numbers: TypeAlias = "float | Sequence[float]"
Image: TypeAlias = "Array | PIL.Image.Image"
ImageT = TypeVar("ImageT", bound=Image)  # a transform of a Pillow image returns one
_Member = TypeVar("_Member", bound=Enum)

random_numbers = config.random_numbers


def is_picture(image: object) -> TypeGuard[Picture]:
    """Return whether an object is a Pillow image, without importing Pillow."""
    return hasattr(image, "getbands") and hasattr(image, "convert")


def checked_image(owner: str, image: object) -> Array:
    """Return an image as an array with two or three axes.

    Raises:
        ArgumentError: the image holds no numbers; `owner` is the transform, for the message.
        ShapeError: the image has another number of axes.
    """
    found = np.asarray(image.asnumpy() if hasattr(image, "asnumpy") else image)
    if found.dtype.kind not in "uifb":
        said = f"the text {image!r} (a str)" if isinstance(image, str) else type(image).__name__
        raise ArgumentError(
            f"{owner}: got {said}; wanted an image: a PIL image or an array (H, W) or (H, W, C); "
            "PIL.Image.open(path) reads a file"
        )
    if found.ndim not in (2, 3):
        raise ShapeError(
            f"{owner}: got an image of shape {found.shape}; wanted (H, W) or (H, W, C)"
        )
    return found


def picture_like(array: Array, owner: str) -> Picture:
    """Convert an array to a Pillow image; `owner` is the transform, for messages."""
    flat = array[..., 0] if array.ndim == 3 and array.shape[2] == 1 else array
    return pillow(owner).fromarray(np.ascontiguousarray(flat))


_Transform = TypeVar("_Transform", bound="HostTransform")


class HostTransform:
    """Base class of transforms that have MindSpore's method `device`.

    With it, MindSpore can run the transform on an Ascend device; here all run on the CPU.
    """

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        explain_methods(cls, "__init__")

    def device(self: _Transform, device_target: str = "CPU") -> _Transform:
        """Accept the device of the transform.

        Duograph runs all transforms on the CPU, and warns once for Ascend.

        Args:
            device_target: ``"CPU"`` or ``"Ascend"``.

        Returns:
            The transform.

        Raises:
            ValueError: `device_target` is another string.

        Examples:
            >>> from duograph.dataset import vision
            >>> type(vision.Pad(1).device("CPU")).__name__
            'Pad'
        """
        if device_target not in ("CPU", "Ascend"):
            raise ArgumentValueError(
                f"device: got device_target={device_target!r}; wanted 'CPU' or 'Ascend'"
            )
        check_options("dataset.vision.Pad.device", device_target=device_target)
        return self


class ImageTransform(HostTransform):
    """Base class of transforms of one image.

    A subclass implements `_array`, and `_picture` where Pillow's result for a Pillow image differs.
    """

    def __call__(self, image: ImageT) -> ImageT:
        if is_picture(image):
            return cast("ImageT", self._picture(image))
        return cast("ImageT", self._array(checked_image(type(self).__name__, image)))

    def _array(self, image: Array) -> Array:
        """Return the transformed image for an array (H, W, C) or (H, W).

        Every subclass overrides it.
        """
        raise NotImplementedError

    def _picture(self, image: Picture) -> Picture:
        """Return the transformed image for a Pillow image, as a Pillow image."""
        return picture_like(self._array(np.array(image)), type(self).__name__)


def checked_size(
    owner: str, size: Ints, name: str = "size", single: bool = False
) -> tuple[int, ...]:
    """Return an argument `size` as (height, width), or (n,) for one number with `single`.

    Without `single`, one number n becomes (n, n).

    Raises:
        ArgumentError: the values are no ints.
        ArgumentValueError: there are neither one nor two values, or a value is below 1.
    """
    several = (size,) if isinstance(size, (int, np.integer)) else size
    if not isinstance(several, (list, tuple)) or any(
        isinstance(n, bool) or not isinstance(n, (int, np.integer)) for n in several
    ):
        raise ArgumentError(f"{owner}: got {name}={size!r}; wanted an int or two")
    if len(several) not in (1, 2) or any(n < 1 for n in several):
        raise ArgumentValueError(f"{owner}: got {name}={size!r}; wanted an int or two, above 0")
    found = tuple(int(n) for n in several)
    return found if single or len(found) == 2 else found * 2


def checked_number(
    owner: str, name: str, value: object, low: float = -np.inf, high: float = np.inf
) -> float:
    """Return `value` as a float if it is a number in [low, high].

    Raises:
        ArgumentError: the value is no number; `owner` and `name` are the transform and the
            argument.
        ArgumentValueError: the value is outside the range.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise ArgumentError(f"{owner}: got {name}={value!r}; wanted a number")
    if not low <= float(value) <= high:
        raise ArgumentValueError(f"{owner}: got {name}={value}; wanted {low} to {high}")
    return float(value)


def checked_probability(owner: str, prob: object) -> float:
    """Return the argument `prob` as a float if it is a number in [0, 1]; raise otherwise."""
    return checked_number(owner, "prob", prob, 0, 1)


def checked_range(
    owner: str,
    name: str,
    value: object,
    around: float | None = None,
    low: float = -np.inf,
    high: float = np.inf,
) -> tuple[float, float]:
    """Return a range given as two ascending numbers, or as one number n of 0 or more.

    n means (max(around - n, low), around + n); it is allowed only if `around` is not None.

    Raises:
        ArgumentError: the values are no numbers.
        ArgumentValueError: there are not two values, they do not ascend, or are outside [low,
            high]; or n is negative.
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool) and around is not None:
        if value < 0:
            raise ArgumentValueError(f"{owner}: got {name}={value}; wanted 0 or more")
        value = (max(around - value, low), around + value)
    if not isinstance(value, (list, tuple)):
        raise ArgumentError(f"{owner}: got {name}={value!r}; wanted two numbers")
    for v in value:
        checked_number(owner, name, v, low, high)
    if len(value) != 2 or value[0] > value[1]:
        raise ArgumentValueError(f"{owner}: got {name}={value!r}; wanted two ascending numbers")
    return float(value[0]), float(value[1])


def checked_member(owner: str, name: str, value: object, kind: type[_Member]) -> _Member:
    """Return `value` if it is a member of the enumeration `kind`.

    Raises:
        ArgumentError: the value is something else.
    """
    if not isinstance(value, kind):
        raise ArgumentError(f"{owner}: got {name}={value!r}; wanted a {kind.__name__}")
    return value


def checked_fill(owner: str, value: object) -> tuple[int, ...]:
    """Return a fill value as a tuple of one or three ints in [0, 255].

    Raises:
        ArgumentError: a value is no int.
        ArgumentValueError: a value is outside the range, or there are neither one nor three values.
    """
    several = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    for v in several:
        if isinstance(v, bool) or not isinstance(v, (int, np.integer)):
            raise ArgumentError(f"{owner}: got fill_value={value!r}; wanted an int or three")
        checked_number(owner, "fill_value", v, 0, 255)
    if len(several) not in (1, 3):
        raise ArgumentValueError(f"{owner}: got fill_value={value!r}; wanted an int or three")
    return several


def with_probability(prob: float, function: Callable[[ImageT], ImageT], image: ImageT) -> ImageT:
    """Return `function(image)` with probability `prob`, else the image itself."""
    return function(image) if random_numbers().random() < prob else image
