"""Transforms of the values and kinds of images: files, Pillow images, dtypes, normalisation.

`dataset.vision` exports them for use in `Dataset.map`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ...dtype import DTypeLike, as_dtype
from ...errors import ArgumentError, ArgumentValueError, ShapeError
from ..rows import Array
from .codecs import Picture, opened
from .images import (
    HostTransform,
    ImageTransform,
    Ints,
    Numbers,
    checked_image,
    checked_number,
    checked_size,
    is_picture,
    picture_like,
)
from .resampling import saturated

__all__ = [
    "Decode", "GaussianBlur", "HWC2CHW", "LinearTransformation", "Normalize", "NormalizePad",
    "Rescale", "ToNumpy", "ToPIL", "ToTensor", "ToType",
]  # fmt: skip


class Rescale:
    """Computes `image * rescale + shift` in float32 (`mindspore.dataset.vision.Rescale`).

    Raises:
        TypeError: an argument is no number.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> print(vision.Rescale(1 / 255, 0.0)(np.full((1, 1), 255, np.uint8)))
        [[1.]]
    """

    def __init__(self, rescale: float, shift: float) -> None:
        self.rescale = np.float32(checked_number("Rescale", "rescale", rescale))
        self.shift = np.float32(checked_number("Rescale", "shift", shift))

    def __call__(self, image: ArrayLike) -> Array:
        return np.asarray(image).astype(np.float32) * self.rescale + self.shift


class Normalize(HostTransform):
    """Computes `(image - mean) / std` per channel in float32
    (`mindspore.dataset.vision.Normalize`).

    Args:
        mean, std: one number per channel, or one for all.
        is_hwc: whether the channels are the last axis rather than the first.

    Raises:
        ValueError: `mean` and `std` differ in length, or a std is not above 0; when called: the
            number of channels is another one.

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

    def __call__(self, image: object) -> Array:
        array = checked_image("Normalize", image).astype(np.float32)
        if array.ndim == 2:
            channels, shape = 1, [1, 1]
        else:
            channels = array.shape[2 if self.is_hwc else 0]
            shape = [1, 1, -1] if self.is_hwc else [-1, 1, 1]
        if len(self.mean) not in (1, channels):
            raise ShapeError(
                f"Normalize: got an image of shape {array.shape} and {len(self.mean)} means; "
                f"wanted one mean and std per channel, {channels}"
            )
        return (array - self.mean.reshape(shape)) / self.std.reshape(shape)


class NormalizePad(Normalize):
    """Applies `Normalize` and appends a channel of zeros (`mindspore.dataset.vision.NormalizePad`).

    Args:
        mean, std, is_hwc: see `Normalize`.
        dtype: dtype of the result, ``"float32"`` or ``"float16"``.

    Raises:
        ValueError: see `Normalize`; or `dtype` is another one; when called: the image does not have
            three channels.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.NormalizePad([1.0] * 3, [2.0] * 3)(np.zeros((4, 4, 3), np.uint8)).shape
        (4, 4, 4)
    """

    def __init__(
        self, mean: ArrayLike, std: ArrayLike, dtype: str = "float32", is_hwc: bool = True
    ) -> None:
        super().__init__(mean, std, is_hwc)
        if dtype not in ("float32", "float16"):
            raise ArgumentValueError(
                f"NormalizePad: got dtype={dtype!r}; wanted 'float32' or 'float16'"
            )
        self.dtype = np.dtype(dtype)

    def __call__(self, image: object) -> Array:
        axis = 2 if self.is_hwc else 0
        array = checked_image("NormalizePad", image)
        if array.ndim != 3 or array.shape[axis] != 3:
            raise ShapeError(f"NormalizePad: got shape {array.shape}; wanted three channels")
        found = super().__call__(array)
        return np.concatenate([found, np.zeros_like(np.take(found, [0], axis))], axis).astype(
            self.dtype
        )


class HWC2CHW:
    """Transposes an image (H, W, C) to (C, H, W) (`mindspore.dataset.vision.HWC2CHW`).

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.HWC2CHW()(np.zeros((4, 4, 3), np.uint8)).shape
        (3, 4, 4)
    """

    def __call__(self, image: object) -> Array:
        array = checked_image("HWC2CHW", image)
        return np.ascontiguousarray(array.transpose(2, 0, 1)) if array.ndim == 3 else array


class ToTensor:
    """Transposes an image to (C, H, W) and divides it by 255 (`mindspore.dataset.vision.ToTensor`).

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.ToTensor()(np.zeros((4, 4, 3), np.uint8)).shape
        (3, 4, 4)
    """

    def __init__(self, output_type: DTypeLike = np.float32) -> None:
        self.output_type = as_dtype(output_type).np

    def __call__(self, image: object) -> Array:
        array = checked_image("ToTensor", image)
        array = array[None] if array.ndim == 2 else array.transpose(2, 0, 1)
        return np.ascontiguousarray(array.astype(np.float32) / np.float32(255)).astype(
            self.output_type
        )


class ToType:
    """Casts an image to a dtype (`mindspore.dataset.vision.ToType`).

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


class ToNumpy:
    """Converts a Pillow image to an array (`mindspore.dataset.vision.ToNumpy`).

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.ToNumpy()(vision.ToPIL()(np.zeros((4, 6, 3), np.uint8))).shape
        (4, 6, 3)
    """

    def __call__(self, img: object) -> Array:
        return np.array(img)


class ToPIL:
    """Converts an array to a Pillow image (`mindspore.dataset.vision.ToPIL`); needs Pillow.

    Raises:
        TypeError: when called: the input is no array or image.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.ToPIL()(np.zeros((4, 6, 3), np.uint8)).size
        (6, 4)
    """

    def __call__(self, img: object) -> Picture:
        if is_picture(img):
            return img
        array = checked_image("ToPIL", img)
        return picture_like(array, "ToPIL")


class Decode:
    """Decodes an image file to (H, W, 3) uint8 (`mindspore.dataset.vision.Decode`); needs Pillow.

    Args:
        to_pil: return a Pillow image instead of an array.

    Raises:
        TypeError: the input is not a 1-D array of bytes.
        RuntimeError: the bytes are no image, or the image is damaged.
        ImportError: Pillow is not installed.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.Decode()(vision.encode_png(np.zeros((4, 6, 3), np.uint8))).shape
        (4, 6, 3)
    """

    def __init__(self, to_pil: bool = False) -> None:
        if not isinstance(to_pil, bool):
            raise ArgumentError(f"Decode: got to_pil={to_pil!r}; wanted True or False")
        self.to_pil = to_pil

    def __call__(self, img: object) -> Array | Picture:
        array = np.asarray(img.asnumpy() if hasattr(img, "asnumpy") else img)
        if array.dtype.kind == "S":
            array = np.frombuffer(array.tobytes(), np.uint8)
        if array.dtype != np.uint8 or array.ndim != 1:
            raise ArgumentError(
                f"Decode: got {array.dtype} of shape {array.shape}; wanted the bytes of a file"
            )
        picture = opened(array, "RGB", "Decode")
        return picture if self.to_pil else np.array(picture)


class LinearTransformation:
    """Flattens an image (C, H, W), subtracts a mean and multiplies by a matrix
    (`mindspore.dataset.vision.LinearTransformation`).

    Args:
        transformation_matrix: array (n, n), where n is the number of elements of an image.
        mean_vector: array (n,).

    Raises:
        TypeError: an argument is no array.
        ValueError: the arrays have other shapes; when called: the image does not have n elements.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> t = vision.LinearTransformation(2 * np.eye(4), np.ones(4))
        >>> t(np.full((1, 2, 2), 3.0)).tolist()
        [[[4.0, 4.0], [4.0, 4.0]]]
    """

    def __init__(self, transformation_matrix: Array, mean_vector: Array) -> None:
        for name, value in (("matrix", transformation_matrix), ("mean_vector", mean_vector)):
            if not isinstance(value, np.ndarray):
                raise ArgumentError(f"LinearTransformation: got {name}={value!r}; wanted an array")
        n = len(mean_vector)
        if transformation_matrix.shape != (n, n) or mean_vector.shape != (n,):
            raise ArgumentValueError(
                f"LinearTransformation: got a matrix {transformation_matrix.shape} and a mean "
                f"{mean_vector.shape}; wanted (n, n) and (n,)"
            )
        self.matrix, self.mean = transformation_matrix, mean_vector

    def __call__(self, np_img: object) -> Array:
        array = np.asarray(np_img)
        if array.size != len(self.mean):
            raise ShapeError(
                f"LinearTransformation: got an image of shape {array.shape}; wanted "
                f"{len(self.mean)} values"
            )
        return ((array.reshape(1, -1) - self.mean) @ self.matrix).reshape(array.shape)


class GaussianBlur(ImageTransform):
    """Smooths an image with a Gaussian filter (`mindspore.dataset.vision.GaussianBlur`).

    Args:
        kernel_size: odd size of the filter, or its odd (width, height).
        sigma: standard deviation in pixels, or (along x, along y); by default it depends on the
            size.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: a size is even, or a sigma is negative.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.GaussianBlur(3)(np.full((4, 4, 1), 7, np.uint8)).mean()
        np.float64(7.0)
    """

    def __init__(self, kernel_size: Ints, sigma: Numbers | None = None) -> None:
        self.sizes = checked_size("GaussianBlur", kernel_size, "kernel_size")
        if any(n % 2 == 0 for n in self.sizes):
            raise ArgumentValueError(
                f"GaussianBlur: got kernel_size={kernel_size!r}; wanted odd sizes"
            )
        several = 0.0 if sigma is None else sigma
        several = (several,) if isinstance(several, (int, float)) else several
        for s in several:
            checked_number("GaussianBlur", "sigma", s, 0)
        if len(several) not in (1, 2):
            raise ArgumentValueError(f"GaussianBlur: got sigma={sigma!r}; wanted one or two")
        self.sigmas = (several[0], several[-1])

    def _array(self, image: Array) -> Array:
        found = image.astype(np.float64)
        for axis, n, sigma in zip((1, 0), self.sizes, self.sigmas):
            sigma = sigma or 0.15 * n + 0.35
            x = np.arange(n) - n // 2
            weights = np.exp(-(x**2) / (2 * sigma**2))
            weights = weights / weights.sum()
            pad = [(0, 0)] * image.ndim
            pad[axis] = (n // 2, n // 2)
            wide = np.pad(found, pad, "reflect" if image.shape[axis] > n // 2 else "edge")
            found = sum(
                np.take(wide, np.arange(image.shape[axis]) + k, axis) * weights[k] for k in range(n)
            )
        return saturated(found, image.dtype)
