"""Transforms that change the colours of images at random.

`dataset.vision` exports them for use in `Dataset.map`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from ...errors import ArgumentError
from ..rows import Array
from .channels import Grayscale
from .colour import (
    AdjustBrightness,
    AdjustContrast,
    AdjustHue,
    AdjustSaturation,
    AdjustSharpness,
    AutoContrast,
    Equalize,
    Invert,
    Posterize,
    Solarize,
    checked_rgb,
)
from .images import (
    ImageT,
    ImageTransform,
    Ints,
    Numbers,
    checked_number,
    checked_probability,
    checked_range,
    random_numbers,
    with_probability,
)
from .resampling import saturated

__all__ = [
    "RandomAdjustSharpness",
    "RandomAutoContrast",
    "RandomColor",
    "RandomColorAdjust",
    "RandomEqualize",
    "RandomGrayscale",
    "RandomInvert",
    "RandomLighting",
    "RandomPosterize",
    "RandomSharpness",
    "RandomSolarize",
]


class _WithProbability:
    """Base class of transforms that apply another transform, `_transform`, with probability `prob`.

    A subclass sets `_transform`.
    """

    _transform: ImageTransform

    def __init__(self, prob: float) -> None:
        self.prob = checked_probability(type(self).__name__, prob)

    def __call__(self, image: ImageT) -> ImageT:
        return with_probability(self.prob, self._transform, image)


class RandomEqualize(_WithProbability):
    """Equalises the histogram with a probability (`mindspore.dataset.vision.RandomEqualize`).

    Raises:
        ValueError: `prob` is not in [0, 1].

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.RandomEqualize(1.0)(np.array([[1, 2, 3]], np.uint8)).tolist()
        [[0, 128, 255]]
    """

    _transform = Equalize()

    def __init__(self, prob: float = 0.5) -> None:
        super().__init__(prob)


class RandomInvert(_WithProbability):
    """Inverts an image with a probability (`mindspore.dataset.vision.RandomInvert`).

    Raises:
        ValueError: `prob` is not in [0, 1].

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.RandomInvert(1.0)(np.full((1, 1, 3), 60, np.uint8)).tolist()
        [[[195, 195, 195]]]
    """

    _transform = Invert()

    def __init__(self, prob: float = 0.5) -> None:
        super().__init__(prob)


class RandomAutoContrast(_WithProbability):
    """Stretches each channel with a probability (`mindspore.dataset.vision.RandomAutoContrast`).

    Args:
        cutoff, ignore: see `AutoContrast`.
        prob: probability with which an image is changed.

    Raises:
        ValueError: an argument is outside its range.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.RandomAutoContrast(prob=1.0)(np.array([[10, 20, 30]], np.uint8)).tolist()
        [[0, 127, 255]]
    """

    def __init__(self, cutoff: float = 0.0, ignore: object = None, prob: float = 0.5) -> None:
        super().__init__(prob)
        self._transform = AutoContrast(cutoff, ignore)


class RandomAdjustSharpness(_WithProbability):
    """Sharpens or smooths with a probability (`mindspore.dataset.vision.RandomAdjustSharpness`).

    Args:
        degree: the factor for `AdjustSharpness`.
        prob: probability with which an image is changed.

    Raises:
        ValueError: an argument is outside its range.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.RandomAdjustSharpness(2.0, 1.0)(np.full((4, 4, 3), 60, np.uint8)).mean()
        np.float64(60.0)
    """

    def __init__(self, degree: float, prob: float = 0.5) -> None:
        super().__init__(prob)
        self._transform = AdjustSharpness(degree)


class RandomGrayscale:
    """Converts to grey levels with a probability (`mindspore.dataset.vision.RandomGrayscale`).

    The number of channels does not change.

    Raises:
        ValueError: `prob` is not in [0, 1].

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.RandomGrayscale(1.0)(np.zeros((4, 4, 3), np.uint8)).shape
        (4, 4, 3)
    """

    def __init__(self, prob: float = 0.1) -> None:
        self.prob = checked_probability("RandomGrayscale", prob)

    def __call__(self, image: ImageT) -> ImageT:
        if hasattr(image, "getbands"):
            channels = len(image.getbands())
        else:
            channels = cast("Array", image).shape[2] if np.ndim(cast("Array", image)) == 3 else 1
        return with_probability(self.prob, Grayscale(3 if channels == 3 else 1), image)


class RandomPosterize(ImageTransform):
    """Keeps only a random number of the highest bits (`mindspore.dataset.vision.RandomPosterize`).

    Args:
        bits: range (smallest, largest) of the number of bits, 1 to 8, or a single number.

    Raises:
        TypeError: a value is no int.
        ValueError: the argument is outside the range.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.RandomPosterize((1, 1))(np.array([[127, 128]], np.uint8)).tolist()
        [[0, 128]]
    """

    def __init__(self, bits: Ints = (8, 8)) -> None:
        several = (bits, bits) if isinstance(bits, int) else bits
        checked_range("RandomPosterize", "bits", several, None, 1, 8)
        if any(not isinstance(b, int) for b in several):
            raise ArgumentError(f"RandomPosterize: got bits={bits!r}; wanted ints")
        self.bits = (int(several[0]), int(several[1]))

    def __call__(self, image: ImageT) -> ImageT:
        return Posterize(int(random_numbers().integers(self.bits[0], self.bits[1] + 1)))(image)


class RandomSolarize(ImageTransform):
    """Inverts the values inside a random range (`mindspore.dataset.vision.RandomSolarize`).

    Args:
        threshold: bounds (lowest, highest), 0 to 255, within which the range is chosen.

    Raises:
        ValueError: the argument is outside the range.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.RandomSolarize((7, 7))(np.array([[7, 8]], np.uint8)).tolist()
        [[248, 8]]
    """

    def __init__(self, threshold: Sequence[int] = (0, 255)) -> None:
        checked_range("RandomSolarize", "threshold", threshold, None, 0, 255)
        self.threshold = (int(threshold[0]), int(threshold[1]))

    def __call__(self, image: ImageT) -> ImageT:
        low, high = self.threshold
        pair = sorted(int(n) for n in random_numbers().integers(low, high + 1, 2))
        return Solarize(tuple(pair))(image)


class _RandomFactor:
    """Base class of transforms whose factor is chosen uniformly from a range for each image."""

    _transform: Callable[[float], ImageTransform]

    def __init__(self, degrees: Sequence[float]) -> None:
        self.degrees = checked_range(type(self).__name__, "degrees", degrees, None, 0)

    def __call__(self, image: ImageT) -> ImageT:
        return type(self)._transform(random_numbers().uniform(*self.degrees))(image)


class RandomColor(_RandomFactor):
    """Changes the saturation at random (`mindspore.dataset.vision.RandomColor`).

    Args:
        degrees: range of the factor for `AdjustSaturation`.

    Raises:
        ValueError: a range is empty or below 0.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.RandomColor()(np.full((1, 1, 3), 60, np.uint8)).tolist()
        [[[60, 60, 60]]]
    """

    _transform = AdjustSaturation

    def __init__(self, degrees: Sequence[float] = (0.1, 1.9)) -> None:
        super().__init__(degrees)


class RandomSharpness(_RandomFactor):
    """Changes the sharpness at random (`mindspore.dataset.vision.RandomSharpness`).

    Args:
        degrees: range of the factor for `AdjustSharpness`.

    Raises:
        ValueError: a range is empty or below 0.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.RandomSharpness()(np.full((4, 4, 3), 60, np.uint8)).mean()
        np.float64(60.0)
    """

    _transform = AdjustSharpness

    def __init__(self, degrees: Sequence[float] = (0.1, 1.9)) -> None:
        super().__init__(degrees)


class RandomColorAdjust:
    """Changes brightness, contrast, saturation and hue at random
    (`mindspore.dataset.vision.RandomColorAdjust`).

    Args:
        brightness, contrast, saturation: range of the factor; a number n means (1 - n, 1 + n).
        hue: range of the shift of the hue, inside [-0.5, 0.5]; a number n means (-n, n).

    Raises:
        TypeError: the values are no numbers.
        ValueError: a range is empty or not allowed.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.RandomColorAdjust(0.2, hue=0.1)(np.zeros((4, 4, 3), np.uint8)).shape
        (4, 4, 3)
    """

    def __init__(
        self,
        brightness: Numbers = (1, 1),
        contrast: Numbers = (1, 1),
        saturation: Numbers = (1, 1),
        hue: Numbers = (0, 0),
    ) -> None:
        owner = "RandomColorAdjust"
        self.brightness = checked_range(owner, "brightness", brightness, 1.0, 0)
        self.contrast = checked_range(owner, "contrast", contrast, 1.0, 0)
        self.saturation = checked_range(owner, "saturation", saturation, 1.0, 0)
        self.hue = checked_range(owner, "hue", hue, 0.0, -0.5, 0.5)

    def __call__(self, image: ImageT) -> ImageT:
        random = random_numbers()
        steps: list[tuple[Callable[[float], ImageTransform], tuple[float, float], float]] = [
            (AdjustBrightness, self.brightness, 1.0), (AdjustContrast, self.contrast, 1.0),
            (AdjustSaturation, self.saturation, 1.0), (AdjustHue, self.hue, 0.0),
        ]  # fmt: skip
        for i in random.permutation(4):
            transform, (low, high), neutral = steps[i]
            if (low, high) != (neutral, neutral):
                image = transform(random.uniform(low, high))(image)
        return image


_EIGENVECTORS = np.array(
    [[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]]
)  # of the colours of ImageNet, published with AlexNet, with the eigenvalues below


_EIGENVALUES = np.array([0.2175, 0.0188, 0.0045]) * 255


class RandomLighting(ImageTransform):
    """Adds a random colour along the principal axes of natural images
    (`mindspore.dataset.vision.RandomLighting`).

    Args:
        alpha: standard deviation of the random weights of the axes, 0 or more.

    Raises:
        ValueError: `alpha` is negative; when called: the image does not have three channels.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.RandomLighting(0.0)(np.full((1, 1, 3), 60, np.uint8)).tolist()
        [[[60, 60, 60]]]
    """

    def __init__(self, alpha: float = 0.05) -> None:
        self.alpha = checked_number("RandomLighting", "alpha", alpha, 0)

    def _array(self, image: Array) -> Array:
        weights = random_numbers().normal(0, self.alpha, 3) if self.alpha else np.zeros(3)
        colour = _EIGENVECTORS @ (weights * _EIGENVALUES)
        return saturated(checked_rgb("RandomLighting", image) + colour, image.dtype)
