"""Chains of convolutions run as one C call, each with an elementwise epilogue on its result.

The core calls `join`, as `PreparedCall.fuse_consumer`, to find out whether a convolution and the
only reader of its result become one call. Such a chain keeps intermediate results in the caches.
The kernel is native/conv_chain.c.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NamedTuple

from duograph.backend.prepared import PreparedCall
from duograph.types import TensorType

from ._native import ffi, lib
from .kernels import fail
from .native_call import LIST, Native, NativeCall, keep, list_call

if TYPE_CHECKING:
    from ._native import CData

# Sizes of the arrays in the C struct: stages, and operands of a stage.
STAGES, OPERANDS = 3, 12


class Affine(NamedTuple):
    """A convolution's epilogue of the form min(max(value * scale + bias + more, low), high).

    Attributes:
        scale, bias, more: positions among the epilogue's operands, -1 where absent. The operands
            scale and bias have one element per channel, the last axis; more has the shape of the
            value.
        low, high: the limits; infinite where there are none.
    """

    scale: int
    bias: int
    more: int
    low: float
    high: float


class Stage(NamedTuple):
    """One convolution of a chain: channels-last, with packed weights and an elementwise epilogue.

    "The call" is the prepared call of this one convolution with its epilogue.

    Attributes:
        native: the C function of the convolution.
        function: the epilogue's generated function, whose operands are the convolution's result and
            the operands of the call at `reads`.
        operands: positions of input and weights among the operands of the call.
        reads: positions of the function's other operands.
        operand_count: number of operands of the call.
        result: type of the stage's result, which has as many bytes as the convolution's.
        name: name of the op, for messages.
        affine: the epilogue, if it is affine.
        linked: position of the operand that is the result of the previous stage; -1 at the first.
    """

    native: Native
    function: CData
    operands: tuple[int, ...]
    reads: tuple[int, ...]
    operand_count: int
    result: TensorType
    name: str
    affine: Affine | None
    linked: int = -1


def join(stages: tuple[Stage, ...], other: PreparedCall, k: int) -> NativeCall | None:
    """Append a convolution to a chain of convolutions; return the call of the longer chain.

    `other` is the call that reads the chain's result as its operand `k`. Returns None if it is not
    a convolution that can extend the chain.
    """
    stage = other.stage if isinstance(other, NativeCall) else None
    if (
        stage is None
        or len(stages) == STAGES
        or stage.operands[0] != k
        or k in (stage.operands[1], *stage.reads)
    ):
        return None
    if not lib.dg_conv_chains(stages[-1].native.constants, stage.native.constants):
        return None
    stages = (*stages, stage._replace(linked=k))
    return _call(stages) if all(len(s.reads) + 2 <= OPERANDS for s in stages) else None


def _call(stages: tuple[Stage, ...]) -> NativeCall:
    """Return the prepared call that runs a whole chain of convolutions in C.

    Its operands are those of all convolutions, one convolution after the other, without the results
    that the convolutions pass on.
    """
    positions: list[list[int]] = [[] for _ in stages]
    count = 0
    for of, stage in zip(positions, stages):
        for k in range(stage.operand_count):
            of.append(-1 if k == stage.linked else count)
            count += k != stage.linked
    parts = []
    for of, stage in zip(positions, stages):
        own = [-1, *(of[k] for k in stage.reads), -1]  # in place of the convolution's result
        affine = stage.affine is not None, stage.affine or ()
        parts.append(
            (stage.native.constants, stage.function, of[stage.operands[1]], *affine, len(own), own)
        )
    first = 0 if lib.dg_conv_line_takes(stages[0].native.constants) else -1
    chain = ffi.new(
        "dg_chain *", (len(stages), first, positions[0][stages[0].operands[0]], count, parts)
    )
    name = stages[-1].name
    native = Native("dg_conv_chain", keep(chain, stages), LIST, functools.partial(fail, name))
    run = list_call(native, (stages[-1].result,), name)
    return NativeCall(run, fuse_consumer=functools.partial(join, stages), native=native)
