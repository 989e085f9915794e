"""Transforms of images for `Dataset.map` (`mindspore.dataset.vision`).

For users. An image is an (H, W, C) or (H, W) array, or a Pillow image. Transforms compute on NumPy;
those that decode files or take Pillow images need Pillow.
"""

from __future__ import annotations

from ..transforms import not_random
from .augment import (
    AutoAugment,
    RandAugment,
    RandomSelectSubpolicy,
    TrivialAugmentWide,
    UniformAugment,
)
from .boxes import (
    BoundingBoxAugment,
    RandomCropWithBBox,
    RandomHorizontalFlipWithBBox,
    RandomResizedCropWithBBox,
    RandomResizeWithBBox,
    RandomVerticalFlipWithBBox,
    ResizeWithBBox,
)
from .channels import ConvertColor, Grayscale, HsvToRgb, RgbToHsv
from .codecs import (
    encode_jpeg,
    encode_png,
    get_image_num_channels,
    get_image_size,
    read_file,
    read_image,
    write_file,
    write_jpeg,
    write_png,
)
from .colour import (
    AdjustBrightness,
    AdjustContrast,
    AdjustGamma,
    AdjustHue,
    AdjustSaturation,
    AdjustSharpness,
    AutoContrast,
    Equalize,
    Invert,
    Posterize,
    Solarize,
)
from .conversion import (
    HWC2CHW,
    Decode,
    GaussianBlur,
    LinearTransformation,
    Normalize,
    NormalizePad,
    Rescale,
    ToNumpy,
    ToPIL,
    ToTensor,
    ToType,
)
from .enums import (
    AutoAugmentPolicy,
    Border,
    ConvertMode,
    ImageBatchFormat,
    ImageReadMode,
    Inter,
    SliceMode,
)
from .erasing import CutOut, Erase, RandomErasing
from .geometry import (
    Affine,
    RandomAffine,
    RandomCropDecodeResize,
    RandomResize,
    RandomResizedCrop,
    RandomRotation,
    Resize,
    ResizedCrop,
    Rotate,
)
from .layout import (
    CenterCrop,
    Crop,
    FiveCrop,
    HorizontalFlip,
    Pad,
    PadToSize,
    RandomCrop,
    RandomHorizontalFlip,
    RandomVerticalFlip,
    SlicePatches,
    TenCrop,
    VerticalFlip,
)
from .mixing import CutMixBatch, MixUp, MixUpBatch
from .perspective import Perspective, RandomPerspective
from .random_colour import (
    RandomAdjustSharpness,
    RandomAutoContrast,
    RandomColor,
    RandomColorAdjust,
    RandomEqualize,
    RandomGrayscale,
    RandomInvert,
    RandomLighting,
    RandomPosterize,
    RandomSharpness,
    RandomSolarize,
)
