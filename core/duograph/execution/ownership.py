"""Decides by reference count whether a tensor's buffer may be overwritten or assumed constant.

A *holder* of a buffer handle is any Python reference to it: the `_buf` of a Tensor (aliases such as
reshapes refer to the same handle), residuals of a tape, the handles that a compiled program stores
between calls, a NumPy array made by `copy_out`, an argument list of a running call. CPython's
reference count is therefore the exact number of holders, and this module is the only one of the
core that reads it.

A count kept by Tensor itself would need a finaliser on every Tensor; even an empty finaliser adds
18 % to an eager `a + b` of three floats (CPython 3.11). On Python implementations without
exact reference counts, `owns_buffer` is always False: every result then gets a fresh buffer, and no
values are cached between calls.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from ..dtype import float32
from ..tensor import Tensor
from ..types import TensorType

__all__ = ["holders", "owns_buffer"]

_references: Callable[[object], int] = getattr(sys, "getrefcount", lambda _: 0)


def holders(tensor: Tensor) -> int:
    """Return how many Python references to a tensor's buffer handle exist, including its own."""
    return _references(tensor._buf) - 1  # the argument of this call is one more


# One tensor over a fresh handle must count as one holder, or the counts mean nothing.
_EXACT = holders(Tensor._make(TensorType.of((), float32), object())) == 1


def owns_buffer(tensor: Tensor, borrowed: int = 0) -> bool:
    """Return whether the tensor is the only holder of its buffer handle.

    Args:
        tensor: the tensor.
        borrowed: number of further references that the caller knows and that are not counted, such
            as a reference in its own argument list.
    """
    return _EXACT and holders(tensor) == 1 + borrowed
