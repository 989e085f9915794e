"""Types and conversions of arguments that several modules of `duograph.mint` share.

The modules of `duograph.mint` use them. They must not depend on the values of tensors, because code
that is being compiled calls them with tensors that have no values yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ..dtype import DTypeLike
from ..errors import ArgumentValueError
from ..tensor import Tensor

__all__ = ["Dims", "Number", "axes_of", "converted", "refuse_pinned"]

Number: TypeAlias = int | float | bool
Dims: TypeAlias = "int | Sequence[int] | None"


def refuse_pinned(name: str, pin_memory: bool) -> None:
    """Raise ArgumentValueError if `pin_memory` is True, which is not offered.

    `name` is the function that the message names.
    """
    if pin_memory:
        raise ArgumentValueError(
            f"{name}: got pin_memory={pin_memory!r}, which is not offered; wanted False"
        )


def converted(x: Tensor, dtype: DTypeLike | None) -> Tensor:
    """Return a tensor cast to `dtype`; None returns it unchanged."""
    return x if dtype is None else x.astype(dtype)


def axes_of(dim: Dims) -> Dims:
    """Return a `dim` argument in the form of `ops`: an empty tuple becomes None, for all axes."""
    return None if isinstance(dim, (tuple, list)) and not dim else dim
