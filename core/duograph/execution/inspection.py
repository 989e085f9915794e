"""Lets people look at the memory plans that lowering makes; `compiler.program_facts` shows them.

While the context manager `inspecting` is active, `memory_plan.plan_memory` adds each plan to the
list that it returned. Otherwise plans are dropped after lowering, and nothing is kept.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from ..backend.program import Instruction

__all__ = ["InspectedPlan", "inspecting", "report_plan"]


@dataclasses.dataclass(frozen=True)
class InspectedPlan:
    """A memory plan with the instructions that it was made for.

    Attributes:
        instructions: the instructions in order.
        first, last: for each slot, the times of its first write and last use; -1 for unused slots.
            The time of an instruction is its number in program order, from 1.
        sizes: bytes of every slot.
        places: for each slot its offset in the arena in bytes; -1 for slots outside the arena.
        shares: slot -> slot of the result whose buffer it uses.
        arena: bytes of the arena.
        total: bytes of the values in the arena if each had memory of its own.
        results: bytes of the results that do not overwrite a parameter's buffer.
        donations: position of an output -> slot of the parameter whose buffer it overwrites.
        outputs: slots of the results.
    """

    instructions: Sequence[Instruction]
    first: Sequence[int]
    last: Sequence[int]
    sizes: Sequence[int]
    places: Sequence[int]
    shares: Mapping[int, int]
    arena: int
    total: int
    results: int
    donations: Mapping[int, int]
    outputs: Sequence[int]


_plans: contextvars.ContextVar[list[InspectedPlan] | None] = contextvars.ContextVar(
    "plans", default=None
)


@contextlib.contextmanager
def inspecting() -> Iterator[list[InspectedPlan]]:
    """Return a context manager that yields a list, to which memory plans are added.

    They are all plans made while its `with` block runs.
    """
    found: list[InspectedPlan] = []
    token = _plans.set(found)
    try:
        yield found
    finally:
        _plans.reset(token)


def report_plan(plan: InspectedPlan) -> None:
    """Add a memory plan to the list of the active `inspecting`, if there is one."""
    found = _plans.get()
    if found is not None:
        found.append(plan)
