"""Functions for DLPack, through which libraries share the memory of tensors (`mindspore.utils`).

Users call them; nothing in the package does.
"""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError
from ..tensor import Tensor

__all__ = ["from_dlpack", "to_dlpack"]


def from_dlpack(dlpack: Any) -> Tensor:
    """Return a tensor that shares the memory of a DLPack capsule, or of an object that makes one.

    Raises:
        TypeError: neither a capsule nor such an object.

    Examples:
        >>> import numpy as np
        >>> import duograph as ms
        >>> print(ms.utils.from_dlpack(np.array([1, 2])))
        [1 2]
    """
    return Tensor.from_dlpack(dlpack)


def to_dlpack(tensor: Tensor) -> Any:
    """Return a DLPack capsule that shares the memory of a tensor, for one consumer.

    Raises:
        TypeError: no Tensor.

    Examples:
        >>> import duograph as ms
        >>> capsule = ms.utils.to_dlpack(ms.Tensor([1, 2]))
        >>> print(ms.utils.from_dlpack(capsule))
        [1 2]
    """
    if not isinstance(tensor, Tensor):
        raise ArgumentError(f"to_dlpack: got {type(tensor).__name__}; wanted a Tensor")
    return tensor.__dlpack__()
