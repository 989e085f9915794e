"""Computes convolutions of images with channels last, and their gradients, with cuDNN.

Compiled functions get these ops from the pass `duograph.passes.channels_last`. cuDNN's fastest
kernels, for tensor cores, read images and weights with channels last and write such results; with
other layouts cuDNN copies its operands and results first. The ops have weights (O, C / groups,
kernel...), which are copied here to *packed* weights (O, kernel..., C / groups). The core packs the
weights of inference once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from duograph.backend.prepared import Packing, PreparedCall
from duograph.backend.protocol import Call
from duograph.dtype import float32
from duograph.op import OPS, Op
from duograph.types import TensorType, size_of

from .cudnn_operations import CHANNELS_LAST, CONVOLUTIONS
from .products import uses_tf32

if TYPE_CHECKING:
    from .cudnn import Operation
    from .device import Memory

__all__ = ["prepare"]

# Prepares our own kernels of an op for operand types.
Own: TypeAlias = Callable[[Op, tuple[TensorType, ...], dict[str, Any]], Call | None]
# Prepares cuDNN's call of an operation, given the function that prepares what takes over if it
# fails.
ByLibrary: TypeAlias = Callable[["Operation", Callable[[], Call | None]], Call | None]


def prepare(
    op: Op,
    types: tuple[TensorType, ...],
    attributes: dict[str, Any],
    by_library: ByLibrary,
    own: Own,
) -> Call | None:
    """Return the prepared call of a convolution in `CHANNELS_LAST`.

    Returns None where the layout saves no time, because no tensor cores compute (float32 without
    TF32), and where cuDNN has no algorithm; the op is then decomposed.
    """
    if types[0].dtype is float32 and not uses_tf32():
        return None
    first = OPS[CHANNELS_LAST[op.name]]
    makes_weight = first.name == "conv_weight_grad"
    images = 2 if makes_weight else 1
    given = (*[_first(t) for t in types[:images]], *types[images:])
    (result,) = first.infer_types(given, attributes)
    operation = CONVOLUTIONS[first.name](given, (result,), last=True, **attributes)
    if operation is None:
        return None
    turned = functools.partial(_turned, own)
    # what takes over reads and writes all tensors with channels last, as cuDNN does
    instead = functools.partial(_by_transposes, own, first, given, result, attributes)
    call = by_library(operation, instead)
    if call is None:
        return None
    if makes_weight:
        unpack = turned(result, to_last=False)
        return call if unpack is None else lambda x, dout: unpack(call(x, dout))
    pack = turned(given[1], to_last=True)
    if pack is None:
        return call

    layout = ("weights with channels last", given[1].shape, given[1].dtype.name)
    packing = Packing(PreparedCall(pack), given[1].nbytes, PreparedCall(call), layout)
    return PreparedCall(lambda x, w: call(x, pack(w)), packings={1: lambda: packing})


def _first(type_: TensorType) -> TensorType:
    """Return the type of images with channels last as one with channels as axis 1."""
    n, *spatial, c = type_.shape
    return type_.with_((n, c, *spatial))


def _turned(own: Own, type_: TensorType, to_last: bool) -> Call | None:
    """Return the call that copies a tensor from channels as axis 1 to channels last, or back.

    `type_` has the channels as axis 1. Returns None if both layouts are the same in memory.
    """
    n, c, *spatial = type_.shape
    if c == 1 or size_of(spatial) == 1:
        return None
    rank = type_.ndim
    source = type_ if to_last else type_.with_((n, *spatial, c))
    perm = (0, *range(2, rank), 1) if to_last else (0, rank - 1, *range(1, rank - 1))
    return own(OPS["transpose"], (source,), {"perm": perm})


def _by_transposes(
    own: Own,
    first: Op,
    given: Sequence[TensorType],
    result: TensorType,
    attributes: dict[str, Any],
) -> Call | None:
    """Return the call of our own kernels: those of channels as axis 1, between transposes.

    `first` is the op with channels as axis 1, `given` and `result` are its types.
    """
    call = own(first, tuple(given), attributes)
    if call is None:
        return None
    moves = [_turned(own, t, to_last=False) for t in given]
    back = _turned(own, result, to_last=True)

    def run(*operands: Memory) -> Memory:
        return _moved(back, call(*map(_moved, moves, operands)))

    return run


def _moved(move: Call | None, handle: Memory) -> Memory:
    """Return a tensor after a copy to another layout, if one is necessary."""
    return handle if move is None else move(handle)
