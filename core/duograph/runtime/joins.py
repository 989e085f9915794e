"""Steps that a backend would rather run together."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Collection, Sequence

from ..backend.program import Instruction, Step
from .still import read_by

__all__ = ["join"]


def join(instructions: Sequence[Instruction], outputs: Collection[int]) -> list[Instruction]:
    """Instructions in which a step and the only one that reads its result are one where the call of
    the first `joins`.

    It then runs where the second did; between them there are steps alone, which write nothing that
    was there before.

    Args:
        instructions: in order; slots that steps read are written once, before.
        outputs: slots that are read afterwards.
    """
    times = collections.Counter([*read_by(instructions), *outputs])
    made: list[Instruction | None] = list(instructions)
    for at, each in enumerate(made):
        if (
            not (isinstance(each, Step) and each.pure and each.single)
            or times[each.results[0]] != 1
        ):
            continue
        joins = getattr(each.call, "joins", None)
        if joins is None:
            continue
        (slot,) = each.results
        for later in range(at + 1, len(made)):
            other = made[later]
            if not isinstance(other, Step):
                break
            if slot not in other.operands:
                continue
            k = other.operands.index(slot)
            call = joins(other.call, k) if other.pure else None
            if call is not None:
                operands = (*each.operands, *other.operands[:k], *other.operands[k + 1 :])
                made[later] = dataclasses.replace(other, call=call, operands=operands)
                made[at] = None
            break
    return [each for each in made if each is not None]
