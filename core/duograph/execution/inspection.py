"""Collects the memory plans that lowering makes; `compiler.program_facts` shows them.

While the context manager `inspecting` is active, `memory_plan.plan_memory` adds each plan to the
list that the context manager yielded. Otherwise plans are dropped after lowering. The plans must
not be changed.
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

    A *slot* is the number of a run-time value; the *arena* is the block of memory for the program's
    intermediate values.

    Attributes:
        instructions: the instructions in order.
        first, last: for each slot, the times of its first write and last use; -1 for unused slots.
            The time of an instruction is its number in program order, from 1.
        sizes: for each slot, the bytes of its value.
        places: for each slot its offset in the arena in bytes; -1 for slots outside the arena.
        shares: slot -> slot of the program result in whose buffer its value is stored.
        arena: bytes of the arena.
        total: bytes of the values in the arena if none of them had the same memory as another.
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

    These are all plans made in this thread or task while the `with` block runs.
    """
    found: list[InspectedPlan] = []
    token = _plans.set(found)
    try:
        yield found
    finally:
        _plans.reset(token)


def report_plan(plan: InspectedPlan) -> None:
    """Add a memory plan to the list of the active `inspecting` context manager, if there is one."""
    found = _plans.get()
    if found is not None:
        found.append(plan)
