"""Private names of MindSpore's data sets that published packages import.

The table of paths serves them; nothing in duograph imports this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..errors import ArgumentError

if TYPE_CHECKING:
    from ..host_arrays import Array

__all__ = ["hwc_to_chw", "is_numpy"]


def is_numpy(img: object) -> bool:
    """Return whether an image is an array."""
    return isinstance(img, np.ndarray)


def hwc_to_chw(img: object) -> Array:
    """Return an image (height, width, channels) as (channels, height, width); others unchanged.

    Raises:
        TypeError: no array.
    """
    if not isinstance(img, np.ndarray):
        raise ArgumentError(f"hwc_to_chw: got {type(img).__name__}; wanted an array")
    return img.transpose(2, 0, 1).copy() if img.ndim == 3 else img
