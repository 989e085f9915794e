"""Fuses a kernel call of a lowered graph with the only call that reads its result.

`execution.lower` calls this with the instructions of every graph above level O0. A kernel call must
not move past an instruction that overwrites a value, because the call may read that value.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Collection, Sequence

from ..backend.plugin_checks import as_fused
from ..backend.prepared import PreparedCall
from ..backend.program import Instruction, Step, slots_read

__all__ = ["fuse_producer_consumer"]


def fuse_producer_consumer(
    instructions: Sequence[Instruction], outputs: Collection[int]
) -> list[Instruction]:
    """Fuse each kernel call with the only later call that reads its result, if both calls allow it.

    The function `PreparedCall.fuse_consumer` of the first call makes the fused call, which takes
    the position of the second. Only kernel calls may be between the two, because these write only
    new memory. Returns the instructions that remain.

    Args:
        instructions: the instructions in order; each slot that a kernel call reads is written once,
            before.
        outputs: slots that are read after the instructions.
    """
    reads = collections.Counter([*slots_read(instructions), *outputs])
    kept: list[Instruction | None] = list(instructions)
    for at, each in enumerate(kept):
        if not (isinstance(each, Step) and each.pure and each.single):
            continue
        (slot,) = each.results
        if reads[slot] != 1 or each.call.fuse_consumer is None:
            continue
        for later in range(at + 1, len(kept)):
            other = kept[later]
            if not isinstance(other, Step):
                break
            if slot not in other.operands:
                continue
            k = other.operands.index(slot)
            call: PreparedCall | None = None
            if other.pure:
                call = as_fused(each.call.fuse_consumer(other.call, k))
            if call is not None:
                operands = (*each.operands, *other.operands[:k], *other.operands[k + 1 :])
                kept[later] = dataclasses.replace(other, call=call, operands=operands)
                kept[at] = None
            break
    return [each for each in kept if each is not None]
