"""Enumerations of image transforms: interpolation, borders, colours and formats.

Users pass their members to the transforms of this package.
"""

from __future__ import annotations

import enum

__all__ = [
    "AutoAugmentPolicy", "Border", "ConvertMode", "ImageBatchFormat", "ImageReadMode", "Inter",
    "SliceMode",
]  # fmt: skip


class Inter(enum.IntEnum):
    """Interpolation methods of image transforms (`mindspore.dataset.vision.Inter`)."""

    NEAREST = 0
    ANTIALIAS = 1
    BILINEAR = LINEAR = 2
    BICUBIC = CUBIC = 3
    AREA = 4
    PILCUBIC = 5


class Border(str, enum.Enum):
    """Kinds of borders that padding adds (`mindspore.dataset.vision.Border`)."""

    CONSTANT = "constant"
    EDGE = "edge"
    REFLECT = "reflect"
    SYMMETRIC = "symmetric"


class ConvertMode(enum.IntEnum):
    """Conversions of `ConvertColor` (`mindspore.dataset.vision.ConvertMode`)."""

    COLOR_BGR2BGRA = COLOR_RGB2RGBA = 0
    COLOR_BGRA2BGR = COLOR_RGBA2RGB = 1
    COLOR_BGR2RGBA = COLOR_RGB2BGRA = 2
    COLOR_RGBA2BGR = COLOR_BGRA2RGB = 3
    COLOR_BGR2RGB = COLOR_RGB2BGR = 4
    COLOR_BGRA2RGBA = COLOR_RGBA2BGRA = 5
    COLOR_BGR2GRAY = 6
    COLOR_RGB2GRAY = 7
    COLOR_GRAY2BGR = COLOR_GRAY2RGB = 8
    COLOR_GRAY2BGRA = COLOR_GRAY2RGBA = 9
    COLOR_BGRA2GRAY = 10
    COLOR_RGBA2GRAY = 11


class ImageBatchFormat(enum.IntEnum):
    """Position of the channels in a batch of images (`mindspore.dataset.vision`)."""

    NHWC = 0
    NCHW = 1


class ImageReadMode(enum.IntEnum):
    """Which channels `read_image` returns (`mindspore.dataset.vision.ImageReadMode`)."""

    UNCHANGED = 0
    GRAYSCALE = 1
    COLOR = 2


class SliceMode(enum.IntEnum):
    """What `SlicePatches` does with a remainder (`mindspore.dataset.vision.SliceMode`)."""

    PAD = 0
    DROP = 1


class AutoAugmentPolicy(str, enum.Enum):
    """The policies of `AutoAugment` (`mindspore.dataset.vision.AutoAugmentPolicy`)."""

    IMAGENET = "imagenet"
    CIFAR10 = "cifar10"
    SVHN = "svhn"
