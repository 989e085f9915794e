"""Turns a chain of convolutions, each with an elementwise epilogue, into one C call.

An epilogue is elementwise code on a convolution's result. The core calls `join`, as
`PreparedCall.fuse_consumer`, to fuse a convolution with the only reader of its result. A chain is
faster because its intermediate results stay in the caches. The kernel is native/conv_chain.c;
nothing here runs it.
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
        scale, bias, more: positions of these terms among the epilogue's operands, -1 if a term is
            absent. `scale` and `bias` have one element per channel (the last axis); `more` has the
            shape of the convolution's result, which is `value` in the formula.
        low, high: the limits; infinite if there are none.
    """

    scale: int
    bias: int
    more: int
    low: float
    high: float


class Stage(NamedTuple):
    """One channels-last convolution of a chain, with rearranged weights and an epilogue.

    An epilogue is elementwise code on the convolution's result. Below, "the call" is the prepared
    call of this one convolution with its epilogue.

    Attributes:
        native: the C function of the convolution.
        function: the epilogue's generated C function, whose operands are the convolution's result
            and those operands of the call whose positions are in `reads`.
        operands: positions of the convolution's input and weights among the operands of the call.
        reads: positions of the other operands of `function` among the operands of the call.
        operand_count: number of operands of the call.
        result: type of the stage's result, which has as many bytes as the convolution's result.
        name: name of the op, for messages.
        affine: the epilogue as an `Affine`, or None if it does not have this form.
        linked: position of the operand that is the result of the previous stage; -1 for the first
            stage.
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
    """Append a convolution to the chain `stages`; return the call of the longer chain.

    `other` is the call that reads the chain's result as operand number `k`. Returns None if `other`
    is not a convolution which can extend the chain.
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

    Its operands are the operands of all convolutions, one convolution after the other, without
    intermediate results.
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
