"""Reductions over axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..op import op
from ..tensor import Tensor
from ..types import TensorType

__all__ = ["reduce_sum"]


def reduced_shape(shape: Sequence[int], axis: Sequence[int], keepdims: bool) -> tuple[int, ...]:
    """The shape after reducing `axis` (non-negative ints)."""
    if keepdims:
        return tuple(1 if i in axis else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in axis)


@op(name="reduce_sum", composite=False)
def reduce_sum(input: Tensor, axis: Sequence[int], keepdims: bool):
    """Primitive: sum over `axis`, a tuple of non-negative ints; () reduces nothing."""


@reduce_sum.infer
def _(x, axis, keepdims):
    return TensorType.of(reduced_shape(x.shape, axis, keepdims), x.dtype)


@reduce_sum.reference
def _(x, axis, keepdims):
    wide = np.float32 if x.dtype.itemsize == 2 and x.dtype.kind in "fV" else x.dtype
    with np.errstate(all="ignore"):
        return np.sum(x, axis=tuple(axis), keepdims=keepdims, dtype=wide).astype(x.dtype)


@reduce_sum.bprop
def _(x, out, dout, axis, keepdims):
    from .movement import broadcast_to, reshape_to

    kept = reduced_shape(x.shape, axis, True)
    return (broadcast_to(dout if keepdims else reshape_to(dout, kept), x.shape),)
