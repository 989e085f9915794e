"""Automatic augmentation policies.

`dataset.vision` exports them for use in `Dataset.map`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, cast

import numpy as np

from ...errors import ArgumentError, ArgumentValueError, ShapeError
from ..rows import Array
from .codecs import Picture
from .colour import (
    AdjustBrightness,
    AdjustContrast,
    AdjustSaturation,
    AdjustSharpness,
    AutoContrast,
    Equalize,
    Invert,
    Posterize,
    Solarize,
)
from .enums import AutoAugmentPolicy, Inter
from .geometry import Affine, Rotate
from .images import (
    Image,
    ImageT,
    Ints,
    checked_fill,
    checked_member,
    checked_number,
    checked_probability,
    random_numbers,
)

__all__ = [
    "AutoAugment", "RandAugment", "RandomSelectSubpolicy", "TrivialAugmentWide", "UniformAugment",
]  # fmt: skip


class Transform(Protocol):
    """A transform of one image, an array or a Pillow image."""

    def __call__(self, image: ImageT, /) -> ImageT: ...


def _operation(name: str, size: tuple[int, int], m: float, method: Inter, fill: Ints) -> Transform:
    """Return the transform that a policy calls `name`, such as "ShearX", with magnitude `m`.

    `size` is the (height, width) of the image; `method` (interpolation) and `fill` are for
    geometric transforms.
    """
    height, width = size
    if name in ("ShearX", "ShearY"):
        angle = float(np.degrees(np.arctan(m)))
        shear = (angle, 0.0) if name == "ShearX" else (0.0, angle)
        return Affine(0.0, (0.0, 0.0), 1.0, shear, method, fill)
    if name in ("TranslateX", "TranslateY"):
        across = (m / width, 0.0) if name == "TranslateX" else (0.0, m / height)
        return Affine(0.0, across, 1.0, (0.0, 0.0), method, fill)
    return _SIMPLE[name](m, method, fill)


_SIMPLE: dict[str, Callable[[float, Inter, Ints], Transform]] = {
    "Identity": lambda m, method, fill: lambda image: image,
    "Rotate": lambda m, method, fill: Rotate(m, method, fill_value=fill),
    "Brightness": lambda m, method, fill: AdjustBrightness(1 + m),
    "Color": lambda m, method, fill: AdjustSaturation(1 + m),
    "Contrast": lambda m, method, fill: AdjustContrast(1 + m),
    "Sharpness": lambda m, method, fill: AdjustSharpness(1 + m),
    "Posterize": lambda m, method, fill: Posterize(int(m)),
    "Solarize": lambda m, method, fill: Solarize((m, 255)),
    "AutoContrast": lambda m, method, fill: AutoContrast(),
    "Equalize": lambda m, method, fill: Equalize(),
    "Invert": lambda m, method, fill: Invert(),
}

_Space: TypeAlias = dict[str, tuple[Array | None, bool]]


def _space(bins: int, size: tuple[int, int], wide: bool = False, auto: bool = False) -> _Space:
    """Return, for each operation of a policy, its `bins` magnitudes and whether its sign is random.

    Magnitudes are None for operations without one. `wide` and `auto` select the ranges of
    TrivialAugment and AutoAugment. `size` is the (height, width) of the image.
    """
    height, width = size
    part = 0.99 if wide else 0.9
    lowest = 6 if wide else 4
    posterize = (
        8 - np.rint(np.arange(bins) / ((bins - 1) / lowest)) if bins > 1 else np.array([8.0])
    )
    moves = (32.0, 32.0) if wide else (150 / 331 * width, 150 / 331 * height)
    found: _Space = {
        "Identity": (None, False),
        "ShearX": (np.linspace(0, 0.99 if wide else 0.3, bins), True),
        "ShearY": (np.linspace(0, 0.99 if wide else 0.3, bins), True),
        "TranslateX": (np.minimum(np.linspace(0, moves[0], bins), width), True),
        "TranslateY": (np.minimum(np.linspace(0, moves[1], bins), height), True),
        "Rotate": (np.linspace(0, 135.0 if wide else 30.0, bins), True),
        "Brightness": (np.linspace(0, part, bins), True),
        "Color": (np.linspace(0, part, bins), True),
        "Contrast": (np.linspace(0, part, bins), True),
        "Sharpness": (np.linspace(0, part, bins), True),
        "Posterize": (posterize, False),
        "Solarize": (np.linspace(255, 0, bins), False),
        "AutoContrast": (None, False),
        "Equalize": (None, False),
    }
    if auto:
        found["Invert"] = (None, False)
    return found


class _Policy:
    """Base class of transforms that apply the operations of an augmentation policy to an image."""

    def __init__(self, interpolation: Inter, fill_value: Ints) -> None:
        owner = type(self).__name__
        self.interpolation = checked_member(owner, "interpolation", interpolation, Inter)
        if interpolation not in (Inter.NEAREST, Inter.BILINEAR, Inter.BICUBIC, Inter.AREA):
            raise ArgumentValueError(
                f"{owner}: got interpolation={interpolation!r}; wanted NEAREST, BILINEAR, BICUBIC "
                "or AREA"
            )
        checked_fill(owner, fill_value)
        self.fill_value = fill_value

    def _applied(self, image: ImageT, space: _Space, name: str, at: int, sign: bool) -> ImageT:
        """Apply the operation `name` to an image, with magnitude number `at` of that operation.

        Return the result.

        `sign` makes the magnitude negative, for operations whose sign is random. `space`, the
        result of `_space`, says which these are.
        """
        magnitudes, signed = space[name]
        m = 0.0 if magnitudes is None else float(magnitudes[at])
        m = -m if signed and sign else m
        size = _size(type(self).__name__, image)
        return _operation(name, size, m, self.interpolation, self.fill_value)(image)


def _size(owner: str, image: Image) -> tuple[int, int]:
    """Return (height, width) of an RGB image, an array or a Pillow image.

    Raises:
        ShapeError: an array is not (H, W, 3); `owner` is the transform, for the message.
    """
    if hasattr(image, "getbands"):
        return cast("Picture", image).size[1], cast("Picture", image).size[0]
    if np.ndim(image) != 3 or np.shape(image)[2] != 3:
        raise ShapeError(f"{owner}: got an image of shape {np.shape(image)}; wanted (H, W, 3)")
    return int(np.shape(image)[0]), int(np.shape(image)[1])


class RandAugment(_Policy):
    """Applies several random operations, all of the same strength
    (`mindspore.dataset.vision.RandAugment`).

    Args:
        num_ops: number of operations to apply.
        magnitude: strength of the operations, an int from 0 to `num_magnitude_bins` - 1.
        num_magnitude_bins: number of levels of strength, 2 or more.
        interpolation: NEAREST, BILINEAR, BICUBIC or AREA.
        fill_value: value of pixels outside the image: an int, or three ints, one per channel.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: an argument is outside its range; when called: the image does not have three
            channels.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.RandAugment()(np.zeros((8, 8, 3), np.uint8)).shape
        (8, 8, 3)
    """

    def __init__(
        self,
        num_ops: int = 2,
        magnitude: int = 9,
        num_magnitude_bins: int = 31,
        interpolation: Inter = Inter.NEAREST,
        fill_value: Ints = 0,
    ) -> None:
        super().__init__(interpolation, fill_value)
        checked_number("RandAugment", "num_ops", num_ops, 0)
        checked_number("RandAugment", "num_magnitude_bins", num_magnitude_bins, 2)
        checked_number("RandAugment", "magnitude", magnitude, 0, num_magnitude_bins - 1)
        self.num_ops, self.magnitude, self.bins = num_ops, magnitude, num_magnitude_bins

    def __call__(self, image: ImageT) -> ImageT:
        space = _space(self.bins, _size("RandAugment", image))
        random = random_numbers()
        for _ in range(self.num_ops):
            name = list(space)[int(random.integers(len(space)))]
            image = self._applied(image, space, name, self.magnitude, random.random() < 0.5)
        return image


class TrivialAugmentWide(_Policy):
    """Applies one random operation of random strength
    (`mindspore.dataset.vision.TrivialAugmentWide`).

    Args:
        num_magnitude_bins: number of levels of strength, 2 or more.
        interpolation, fill_value: see `RandAugment`.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: an argument is outside its range; when called: the image does not have three
            channels.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.TrivialAugmentWide()(np.zeros((8, 8, 3), np.uint8)).shape
        (8, 8, 3)
    """

    def __init__(
        self,
        num_magnitude_bins: int = 31,
        interpolation: Inter = Inter.NEAREST,
        fill_value: Ints = 0,
    ) -> None:
        super().__init__(interpolation, fill_value)
        checked_number("TrivialAugmentWide", "num_magnitude_bins", num_magnitude_bins, 2)
        self.bins = num_magnitude_bins

    def __call__(self, image: ImageT) -> ImageT:
        space = _space(self.bins, _size("TrivialAugmentWide", image), wide=True)
        random = random_numbers()
        name = list(space)[int(random.integers(len(space)))]
        at = int(random.integers(self.bins))
        return self._applied(image, space, name, at, random.random() < 0.5)


# Pairs of (operation, probability in tenths, number of the magnitude), as published.
_IMAGENET = """
Posterize 4 8 Rotate 6 9|Solarize 6 5 AutoContrast 6 0|Equalize 8 0 Equalize 6 0|
Posterize 6 7 Posterize 6 6|Equalize 4 0 Solarize 2 4|Equalize 4 0 Rotate 8 8|
Solarize 6 3 Equalize 6 0|Posterize 8 5 Equalize 10 0|Rotate 2 3 Solarize 6 8|
Equalize 6 0 Posterize 4 6|Rotate 8 8 Color 4 0|Rotate 4 9 Equalize 6 0|
Equalize 0 0 Equalize 8 0|Invert 6 0 Equalize 10 0|Color 6 4 Contrast 10 8|
Rotate 8 8 Color 10 2|Color 8 8 Solarize 8 7|Sharpness 4 7 Invert 6 0|
ShearX 6 5 Equalize 10 0|Color 4 0 Equalize 6 0|Equalize 4 0 Solarize 2 4|
Solarize 6 5 AutoContrast 6 0|Invert 6 0 Equalize 10 0|Color 6 4 Contrast 10 8|
Equalize 8 0 Equalize 6 0"""
_CIFAR10 = """
Invert 1 0 Contrast 2 6|Rotate 7 2 TranslateX 3 9|Sharpness 8 1 Sharpness 9 3|
ShearY 5 8 TranslateY 7 9|AutoContrast 5 0 Equalize 9 0|ShearY 2 7 Posterize 3 7|
Color 4 3 Brightness 6 7|Sharpness 3 9 Brightness 7 9|Equalize 6 0 Equalize 5 0|
Contrast 6 7 Sharpness 6 5|Color 7 7 TranslateX 5 8|Equalize 3 0 AutoContrast 4 0|
TranslateY 4 3 Sharpness 2 6|Brightness 9 6 Color 2 8|Solarize 5 2 Invert 0 0|
Equalize 2 0 AutoContrast 6 0|Equalize 2 0 Equalize 6 0|Color 9 9 Equalize 6 0|
AutoContrast 8 0 Solarize 2 8|Brightness 1 3 Color 7 0|Solarize 4 5 AutoContrast 9 0|
TranslateY 9 9 TranslateY 7 9|AutoContrast 9 0 Solarize 8 3|Equalize 8 0 Invert 1 0|
TranslateY 7 9 AutoContrast 9 0"""
_SVHN = """
ShearX 9 4 Invert 2 0|ShearY 9 8 Invert 7 0|Equalize 6 0 Solarize 6 6|
Invert 9 0 Equalize 6 0|Equalize 6 0 Rotate 9 3|ShearX 9 4 AutoContrast 8 0|
ShearY 9 8 Invert 4 0|ShearY 9 5 Solarize 2 6|Invert 9 0 AutoContrast 8 0|
Equalize 6 0 Rotate 9 3|ShearX 9 4 Solarize 3 3|ShearY 8 8 Invert 7 0|
Equalize 9 0 TranslateY 6 6|Invert 9 0 Equalize 6 0|Contrast 3 3 Rotate 8 4|
Invert 8 0 TranslateY 0 2|ShearY 7 6 Solarize 4 8|Invert 6 0 Rotate 8 4|
ShearY 3 7 TranslateX 9 3|ShearX 1 6 Invert 6 0|Solarize 7 2 TranslateY 6 7|
ShearY 8 4 Invert 8 0|ShearX 7 9 TranslateY 8 3|ShearY 8 5 AutoContrast 7 0|
ShearX 7 2 Invert 1 0"""


def _parsed(text: str) -> list[list[tuple[str, float, int]]]:
    """Parse a policy's text to a list of pairs of operations.

    An operation is (name, probability, index of its magnitude).
    """
    found = []
    for pair in text.replace("\n", "").split("|"):
        w = pair.split()
        found.append([(w[i], int(w[i + 1]) / 10, int(w[i + 2])) for i in (0, 3)])
    return found


_POLICIES = {
    AutoAugmentPolicy.IMAGENET: _parsed(_IMAGENET), AutoAugmentPolicy.CIFAR10: _parsed(_CIFAR10),
    AutoAugmentPolicy.SVHN: _parsed(_SVHN),
}  # fmt: skip


class AutoAugment(_Policy):
    """Applies one of 25 published pairs of operations (`mindspore.dataset.vision.AutoAugment`).

    Args:
        policy: the dataset for which the pairs were found.
        interpolation, fill_value: see `RandAugment`.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: when called: the image does not have three channels.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.AutoAugment()(np.zeros((8, 8, 3), np.uint8)).shape
        (8, 8, 3)
    """

    def __init__(
        self,
        policy: AutoAugmentPolicy = AutoAugmentPolicy.IMAGENET,
        interpolation: Inter = Inter.NEAREST,
        fill_value: Ints = 0,
    ) -> None:
        super().__init__(interpolation, fill_value)
        self.pairs = _POLICIES[checked_member("AutoAugment", "policy", policy, AutoAugmentPolicy)]

    def __call__(self, image: ImageT) -> ImageT:
        space = _space(10, _size("AutoAugment", image), auto=True)
        random = random_numbers()
        for name, probability, at in self.pairs[int(random.integers(len(self.pairs)))]:
            if random.random() <= probability:
                image = self._applied(image, space, name, at, random.random() < 0.5)
        return image


def _functions(owner: str, name: str, value: object) -> list[Transform]:
    """Return the argument `name` as a list if it is a non-empty list of functions.

    Raise otherwise.
    """
    if not isinstance(value, (list, tuple)):
        raise ArgumentError(f"{owner}: got {name}={value!r}; wanted a list of transforms")
    for f in value:
        if not callable(f):
            raise ArgumentError(f"{owner}: got {type(f).__name__} in {name}; wanted functions")
    if not value:
        raise ArgumentValueError(f"{owner}: got no {name}; wanted at least one")
    return list(value)


class UniformAugment:
    """Applies some transforms of a list, which are chosen at random
    (`mindspore.dataset.vision.UniformAugment`).

    Args:
        transforms: the transforms to choose from.
        num_ops: number of transforms to choose; each of these is applied with probability 1/2.

    Raises:
        TypeError: an element is no function.
        ValueError: `num_ops` is below 1, or larger than the number of transforms.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> augment = vision.UniformAugment([vision.Invert(), vision.Equalize()], 1)
        >>> augment(np.zeros((8, 8, 3), np.uint8)).shape
        (8, 8, 3)
    """

    def __init__(self, transforms: Sequence[Transform], num_ops: int = 2) -> None:
        self.transforms = _functions("UniformAugment", "transforms", transforms)
        checked_number("UniformAugment", "num_ops", num_ops, 1, len(self.transforms))
        self.num_ops = num_ops

    def __call__(self, image: ImageT) -> ImageT:
        random = random_numbers()
        for i in random.choice(len(self.transforms), self.num_ops, replace=False):
            if random.random() < 0.5:
                image = self.transforms[i](image)
        return image


class RandomSelectSubpolicy:
    """Applies the transforms of a randomly chosen list, each with its probability
    (`mindspore.dataset.vision.RandomSelectSubpolicy`).

    Args:
        policy: list of lists of pairs (transform, probability).

    Raises:
        TypeError: `policy` has another form.
        ValueError: a list is empty, or a probability is outside [0, 1].

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> choice = vision.RandomSelectSubpolicy([[(vision.Invert(), 1.0)]])
        >>> choice(np.full((1, 1, 3), 60, np.uint8)).tolist()
        [[[195, 195, 195]]]
    """

    def __init__(self, policy: Sequence[Sequence[tuple[Transform, float]]]) -> None:
        owner = "RandomSelectSubpolicy"
        if not isinstance(policy, (list, tuple)):
            raise ArgumentError(f"{owner}: got {type(policy).__name__}; wanted a list of lists")
        if not policy or not all(policy):
            raise ArgumentValueError(f"{owner}: got an empty list; wanted (transform, probability)")
        for part in policy:
            if not isinstance(part, (list, tuple)):
                raise ArgumentError(f"{owner}: got {part!r} in the list; wanted lists")
            for pair in part:
                if not isinstance(pair, tuple) or len(pair) != 2 or not callable(pair[0]):
                    raise ArgumentError(f"{owner}: got {pair!r}; wanted (transform, probability)")
                checked_probability(owner, pair[1])
        self.policy = [list(part) for part in policy]

    def __call__(self, image: ImageT) -> ImageT:
        random = random_numbers()
        for transform, probability in self.policy[int(random.integers(len(self.policy)))]:
            if random.random() < probability:
                image = transform(image)
        return image


# ---- batches ------------------------------------------------------------------------------------
