"""Image files: decoding, encoding, reading and writing, by Pillow.

Sources and the transform `Decode` use it. Pillow is imported only when an image is decoded or
encoded. Files may be malicious: every exception of a decoder becomes a DatasetError.
"""

from __future__ import annotations

import io
import os
import pathlib
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike

from ...errors import ArgumentError, ArgumentValueError
from ..rows import Array, DatasetError
from .enums import ImageReadMode

if TYPE_CHECKING:
    import PIL.Image

__all__ = [
    "Picture", "decoded", "encode_jpeg", "encode_png", "get_image_num_channels", "get_image_size",
    "pillow", "read_file", "read_image", "write_file", "write_jpeg", "write_png",
]  # fmt: skip

Picture: TypeAlias = "PIL.Image.Image"


def pillow(owner: str) -> ModuleType:
    """Import and return the module `PIL.Image`; `owner` is the caller, for the message.

    Raises:
        ImportError: Pillow is not installed.
    """
    try:
        from PIL import Image
    except ImportError:
        raise ImportError(
            f"{owner}: needs Pillow; install it with: pip install duograph[data]"
        ) from None
    return Image


def decoded(data: Array, mode: str | None = "RGB", owner: str = "Decode") -> Array:
    """Decode the bytes of an image file.

    Args:
        data: bytes as uint8 (n,).
        mode: the channels, as a mode of Pillow such as "RGB"; None keeps those of the file.
        owner: name of the transform, for messages.

    Returns:
        uint8 (H, W, C), or (H, W) for one channel.

    Raises:
        DatasetError: the bytes are no image, or the image is damaged.
    """
    return np.array(opened(data, mode, owner))


def opened(data: Array, mode: str | None, owner: str) -> Picture:
    """Decode the bytes of an image file to a Pillow image.

    Arguments and errors are those of `decoded`.
    """
    image = pillow(owner)
    try:
        picture = image.open(io.BytesIO(data.tobytes()))
        if mode is None:
            mode = "RGB" if picture.mode in ("P", "CMYK", "YCbCr", "LAB", "HSV") else picture.mode
        return picture.convert(mode)
    except Exception as error:  # noqa: BLE001 (decoders raise whatever a damaged file leads to)
        raise DatasetError(
            f"{owner}: got {data.size} bytes that are no image ({type(error).__name__}: {error})"
        ) from None


def read_file(filename: str | os.PathLike[str]) -> Array:
    """Read a file as an array of bytes (`mindspore.dataset.vision.read_file`).

    Returns:
        uint8 (n,).

    Raises:
        RuntimeError: the file cannot be read.

    Examples:
        >>> import pathlib, tempfile
        >>> from duograph.dataset import vision
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "file"
        >>> _ = path.write_bytes(b"ab")
        >>> vision.read_file(str(path))
        array([97, 98], dtype=uint8)
    """
    if not isinstance(filename, (str, os.PathLike)):
        raise ArgumentError(f"read_file: got {filename!r}; wanted a path")
    try:
        return np.frombuffer(pathlib.Path(filename).read_bytes(), np.uint8).copy()
    except OSError as error:
        raise DatasetError(f"read_file: cannot read {filename!s} ({error})") from None


def write_file(filename: str | os.PathLike[str], data: ArrayLike) -> None:
    """Write an array of bytes into a file (`mindspore.dataset.vision.write_file`).

    Raises:
        TypeError: `data` is no uint8 array with one axis.
        RuntimeError: the file cannot be written.

    Examples:
        >>> import pathlib, tempfile
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "file"
        >>> vision.write_file(str(path), np.array([97, 98], np.uint8))
        >>> path.read_bytes()
        b'ab'
    """
    found = _bytes("write_file", data)
    try:
        pathlib.Path(filename).write_bytes(found.tobytes())
    except OSError as error:
        raise DatasetError(f"write_file: cannot write {filename!s} ({error})") from None


def _bytes(owner: str, data: object) -> Array:
    """Return the bytes of a file, given as an array or Tensor, as a 1-d uint8 array.

    Raises:
        ArgumentError: the dtype is not uint8, or there is not exactly one axis.
    """
    found = np.asarray(getattr(data, "asnumpy", lambda: data)())
    if found.dtype != np.uint8 or found.ndim != 1:
        raise ArgumentError(
            f"{owner}: got {found.dtype} of shape {found.shape}; wanted the bytes of a file"
        )
    return found


def read_image(
    filename: str | os.PathLike[str], mode: ImageReadMode = ImageReadMode.UNCHANGED
) -> Array:
    """Read an image file (`mindspore.dataset.vision.read_image`); needs Pillow.

    Args:
        filename: path of the file.
        mode: which channels to return: those of the file, grey levels or RGB.

    Returns:
        uint8 (H, W, C).

    Raises:
        TypeError: `mode` is no ImageReadMode.
        RuntimeError: the file cannot be read or is no image.

    Examples:
        >>> import pathlib, tempfile
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> path = str(pathlib.Path(tempfile.mkdtemp()) / "image.png")
        >>> vision.write_png(path, np.zeros((4, 6, 3), np.uint8))
        >>> vision.read_image(path).shape
        (4, 6, 3)
    """
    if not isinstance(mode, ImageReadMode):
        raise ArgumentError(f"read_image: got mode={mode!r}; wanted an ImageReadMode")
    names = {ImageReadMode.GRAYSCALE: "L", ImageReadMode.COLOR: "RGB"}
    found = decoded(read_file(filename), names.get(mode), "read_image")
    return found if found.ndim == 3 else found[..., None]


def _checked_image(owner: str, image: object) -> Array:
    """Return an image to be encoded as a uint8 array (H, W, 3) or (H, W).

    Raises if it has another dtype or shape.
    """
    found = np.asarray(getattr(image, "asnumpy", lambda: image)())
    if found.dtype != np.uint8:
        raise ArgumentError(f"{owner}: got {found.dtype}; wanted uint8")
    if found.ndim == 3 and found.shape[2] == 1:
        found = found[..., 0]
    if not (found.ndim == 2 or (found.ndim == 3 and found.shape[2] == 3)) or not found.size:
        raise ArgumentValueError(
            f"{owner}: got an image of shape {found.shape}; wanted (H, W), (H, W, 1) or (H, W, 3)"
        )
    return found


def _level(owner: str, name: str, value: object, low: int, high: int) -> int:
    """Return the encoder option `name` if it is an int in [low, high]; raise otherwise."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ArgumentError(f"{owner}: got {name}={value!r}; wanted an int")
    if not low <= value <= high:
        raise ArgumentValueError(f"{owner}: got {name}={value}; wanted {low} to {high}")
    return value


def encode_jpeg(image: object, quality: int = 75) -> Array:
    """Encode an image as a JPEG file (`mindspore.dataset.vision.encode_jpeg`); needs Pillow.

    Args:
        image: uint8 (H, W), (H, W, 1) or (H, W, 3), RGB.
        quality: quality of the compression, 1 to 100.

    Returns:
        The bytes of the file, uint8 (n,).

    Raises:
        TypeError: the dtype is not uint8.
        ValueError: the shape is another one, or `quality` is out of range.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.encode_jpeg(np.zeros((4, 6, 3), np.uint8))[:2]
        array([255, 216], dtype=uint8)
    """
    quality = _level("encode_jpeg", "quality", quality, 1, 100)
    return _encoded("encode_jpeg", image, "JPEG", quality=quality)


def encode_png(image: object, compression_level: int = 6) -> Array:
    """Encode an image as a PNG file (`mindspore.dataset.vision.encode_png`); needs Pillow.

    Args:
        image: uint8 (H, W), (H, W, 1) or (H, W, 3), RGB.
        compression_level: strength of the compression, 0 to 9.

    Returns:
        The bytes of the file, uint8 (n,).

    Raises:
        TypeError: the dtype is not uint8.
        ValueError: the shape is another one, or `compression_level` is out of range.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> bytes(vision.encode_png(np.zeros((4, 6, 3), np.uint8))[1:4])
        b'PNG'
    """
    level = _level("encode_png", "compression_level", compression_level, 0, 9)
    return _encoded("encode_png", image, "PNG", compress_level=level)


def _encoded(owner: str, image: object, kind: str, **options: int) -> Array:
    """Encode an image to the format `kind`, such as "PNG"; return the file's bytes as uint8."""
    file = io.BytesIO()
    pillow(owner).fromarray(_checked_image(owner, image)).save(file, kind, **options)
    return np.frombuffer(file.getvalue(), np.uint8).copy()


def write_jpeg(filename: str | os.PathLike[str], image: object, quality: int = 75) -> None:
    """Write an image into a JPEG file (`mindspore.dataset.vision.write_jpeg`); needs Pillow.

    Arguments and errors are those of `encode_jpeg` and `write_file`.

    Examples:
        >>> import pathlib, tempfile
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> path = str(pathlib.Path(tempfile.mkdtemp()) / "image.jpg")
        >>> vision.write_jpeg(path, np.full((4, 6, 3), 7, np.uint8))
        >>> int(vision.read_image(path).mean())
        7
    """
    write_file(filename, encode_jpeg(image, quality))


def write_png(filename: str | os.PathLike[str], image: object, compression_level: int = 6) -> None:
    """Write an image into a PNG file (`mindspore.dataset.vision.write_png`); needs Pillow.

    Arguments and errors are those of `encode_png` and `write_file`.

    Examples:
        >>> import pathlib, tempfile
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> path = str(pathlib.Path(tempfile.mkdtemp()) / "image.png")
        >>> vision.write_png(path, np.full((4, 6, 3), 7, np.uint8))
        >>> int(vision.read_image(path).mean())
        7
    """
    write_file(filename, encode_png(image, compression_level))


def _plain(owner: str, image: object) -> tuple[int, ...]:
    """Return the shape of an array or Tensor, or (height, width, channels) of a Pillow image.

    Raises ArgumentError if the value has no shape, DatasetError if it has fewer than two axes.
    """
    if hasattr(image, "getbands"):
        return (
            cast("Picture", image).size[1],
            cast("Picture", image).size[0],
            len(image.getbands()),
        )
    shape = getattr(image, "shape", None)
    if shape is None:
        raise ArgumentError(f"{owner}: got {type(image).__name__}; wanted an array or an image")
    if len(shape) < 2:
        raise DatasetError(
            f"{owner}: got the shape {tuple(shape)}; wanted (..., H, W, C) or (H, W)"
        )
    return tuple(shape)


def get_image_size(image: object) -> list[int]:
    """Return [height, width] of an array (..., H, W, C) or (H, W), or of a Pillow image
    (`mindspore.dataset.vision.get_image_size`).

    Raises:
        TypeError: the argument is no image.
        RuntimeError: the array has fewer than two axes.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.get_image_size(np.zeros((4, 6, 3)))
        [4, 6]
    """
    shape = _plain("get_image_size", image)
    return list(shape[-3:-1]) if len(shape) > 2 else list(shape)


def get_image_num_channels(image: object) -> int:
    """Return the number of channels of an image (`mindspore.dataset.vision`).

    The channels are the last axis of an array; an array (H, W) has one channel.

    Raises:
        TypeError: the argument is no image.
        RuntimeError: the array has fewer than two axes.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import vision
        >>> vision.get_image_num_channels(np.zeros((4, 6, 3)))
        3
    """
    shape = _plain("get_image_num_channels", image)
    return int(shape[-1]) if len(shape) > 2 else 1
