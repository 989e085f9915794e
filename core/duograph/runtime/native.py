"""Makes one native program of a lowered graph: what `Backend.link` is given, and what is made of
its answer.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..backend.program import Copy, HostStep, Instruction, NeedsSteps, Program, Step, steps_in
from ..ir.graph import Graph
from ..types import STACK
from .memory_plan import plan_memory

if TYPE_CHECKING:
    from .lower import Lowering

__all__ = ["native_program"]


def native_program(
    work: Lowering,
    graph: Graph,
    instructions: Sequence[Instruction],
    params: list[int],
    outputs: list[int],
    updates: Mapping[int, int],
    notes: list[str],
    stepwise: Callable[[], Callable[..., Any]],
) -> Callable[..., Any] | None:
    """A graph as one native program of these instructions, or None when the backend makes none of
    it.

    Args:
        work: what it was lowered to.
        graph: as it was given to be lowered.
        instructions: all of `work`, or some of them.
        params: slots of what is given: the graph's parameters, and what else the instructions read.
        outputs: slots of the results.
        updates: see `lower`.
        notes: gets what was made, or the reason why nothing was.
        stepwise: makes the call that runs step by step, for where the program cannot go on.
    """
    if any(work.hosts.get(slot) is STACK for slot in (*params, *outputs)):
        work.python = work.python or "a stack"
    if work.level != "O2" and work.hosts:
        work.python = work.python or "a number of Python"
    if work.python:
        notes.append(f"runs step by step: {work.python} runs in Python")
        return None
    drawn: list[Step] = []
    steps: list[Instruction] = []
    for each in instructions:
        if isinstance(each, Step) and each.name == "random_state":
            drawn.append(each)
        else:
            steps.append(each)
    numbers = any(isinstance(s, HostStep) for s in steps_in(instructions))
    if drawn and numbers:  # to run again from the start would draw again
        notes.append("runs step by step: random numbers beside numbers of Python")
        return None
    if len(steps) < 2 and not updates and all(isinstance(s, Step) for s in steps):
        return None  # nothing to gain
    problem = work.backend.links(work.device.index)
    if problem is not None:
        return None
    given = [*params, *(s.results[0] for s in drawn)]
    outputs = list(outputs)
    for position, slot in enumerate(outputs):
        if slot in work.constants or slot in work.named:  # a result has memory of its own
            outputs[position] = work.slot(graph.types[graph.outputs[position]])
            steps.append(Copy(slot, outputs[position]))
    plan = plan_memory(steps, [*given, *work.constants], work.sizes, outputs, updates)
    program = Program(
        tuple(steps),
        tuple(given),
        work.constants,
        work.hosts,
        work.sizes,
        plan.places,
        plan.shares,
        plan.arena,
        tuple(outputs),
        graph.single,
        plan.donations,
        work.level,
        updates,
    )
    run = work.backend.link(program, work.device.index)
    if isinstance(run, str):
        notes.append(f"runs step by step: {run}")
        return None
    notes += [f"one native program of {sum(1 for _ in steps_in(steps))} kernels", str(plan)]
    draws = [s.call for s in drawn]
    donations = getattr(run, "donations", plan.donations)
    return _call_of(
        run, draws, donations, functools.cache(stepwise) if work.hosts else None, graph.n_params
    )


def _call_of(
    run: Callable[..., Any],
    draws: list[Callable[..., Any]],
    donations: Mapping[int, int],
    stepwise: Callable[[], Any] | None,
    n_params: int,
) -> Callable[..., Any]:
    """What `Backend.link` returned, as a call like any other; see `lower` for its attributes.

    Args:
        run: the linked call.
        draws: what gives its last parameters, the states of the random generator.
        donations: of the program, or those that the call has instead.
        stepwise: gives the same graph step by step, for where `run` cannot go on; None where that
            cannot be.
        n_params: how many handles that takes.
    """

    def taking(taken: Sequence[bool], handles: Sequence[Any]) -> Any:
        given = [*handles, *[draw() for draw in draws]] if draws else handles
        try:
            return run(given, taken)
        except NeedsSteps:
            assert stepwise is not None
            return stepwise()(*handles[:n_params])

    if draws or stepwise is not None:

        def call(*handles: Any) -> Any:
            return taking((), handles)

    else:

        def call(*handles: Any) -> Any:
            return run(handles)

        if hasattr(run, "bound"):
            call.bound = run.bound  # type: ignore[attr-defined]

    if donations:
        call.taking = taking  # type: ignore[attr-defined]
        call.donations = donations  # type: ignore[attr-defined]
    return call
