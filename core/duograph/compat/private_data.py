"""Private functions of MindSpore's datasets that published packages import.

Programs import them by MindSpore's paths, which `paths.PATHS` maps to this module; nothing in
duograph imports it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..errors import ArgumentError

if TYPE_CHECKING:
    from ..host_arrays import Array

__all__ = ["hwc_to_chw", "is_numpy"]


def is_numpy(img: object) -> bool:
    """Return whether an image is a NumPy array."""
    return isinstance(img, np.ndarray)


def hwc_to_chw(img: object) -> Array:
    """Transpose an image (height, width, channels) to (channels, height, width).

    An array that has not 3 axes is returned unchanged.

    Raises:
        TypeError: the image is no array.
    """
    if not isinstance(img, np.ndarray):
        raise ArgumentError(f"hwc_to_chw: got {type(img).__name__}; wanted an array")
    return img.transpose(2, 0, 1).copy() if img.ndim == 3 else img
