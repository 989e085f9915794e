"""Convolutions, each with the region that follows it, one after the other as one call:
native/conv_chain.c.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NamedTuple

from . import memory
from ._native import ffi, lib
from .kernels import fail
from .native_program import LIST, Native, NativeCall, keep

if TYPE_CHECKING:
    from duograph.backend.prepared import PreparedCall
    from duograph.types import TensorType

    from ._native import CData

# The fields of `dg_affine`: which operands are scale, bias and summand (-1: none), and the limits.
Affine = tuple[int, int, int, float, float]

# The C struct has as many; and the places of a stage.
STAGES, PLACES = 3, 12


class Stage(NamedTuple):
    """A call of a convolution with packed weights, channels last, and what follows it element by
    element.

    Attributes:
        native: of the convolution.
        address: of the generated function, whose operands are the convolution's value and those at
            `reads`.
        operands: where the input and the weights are among the operands of the call.
        reads: where the function finds its other operands.
        operand_count: number of operands of the call.
        result: the type of its result, which has as many bytes as the value.
        name: for messages.
        affine: the fields of `dg_affine` when the function is one.
        linked: which operand is the result of the stage before; -1 at the first.
    """

    native: Native
    address: int
    operands: tuple[int, int]
    reads: tuple[int, ...]
    operand_count: int
    result: TensorType
    name: str
    affine: Affine | None
    linked: int = -1


def join(stages: tuple[Stage, ...], other: PreparedCall, k: int) -> NativeCall | None:
    """One call of these stages and of another prepared call, whose operand `k` is their result; or
    None.
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
    return _call(stages) if all(len(s.reads) + 2 <= PLACES for s in stages) else None


def _call(stages: tuple[Stage, ...]) -> NativeCall:
    """The operands of all stages in order, without those that are the result of the stage before."""
    places: list[list[int]] = [[] for _ in stages]
    count = 0
    for of, stage in zip(places, stages):
        for k in range(stage.operand_count):
            of.append(-1 if k == stage.linked else count)
            count += k != stage.linked
    parts = []
    for of, stage in zip(places, stages):
        own = [-1, *(of[k] for k in stage.reads), -1]  # the result lies where the value does
        function = ffi.cast("dg_generated", stage.address)
        affine = stage.affine is not None, stage.affine or ()
        parts.append(
            (stage.native.constants, function, of[stage.operands[1]], *affine, len(own), own)
        )
    first = 0 if lib.dg_conv_line_takes(stages[0].native.constants) else -1
    chain = ffi.new(
        "dg_chain *", (len(stages), first, places[0][stages[0].operands[0]], count, parts)
    )
    chain = keep(chain, stages)
    name = stages[-1].name
    make = memory.maker(stages[-1].result.nbytes, name)
    failed = functools.partial(fail, name)
    run = lib.dg_conv_chain

    def call(*handles: CData) -> CData:
        out = make()
        code = run(chain, (*handles, out))
        if code:
            failed(code)
        return out

    native = Native("dg_conv_chain", chain, LIST, failed)
    return NativeCall(call, fuse_consumer=functools.partial(join, stages), native=native)
