"""Runs native segments of a program between its collectives, and polls pending collectives.

`execution.lower` cuts the instructions of such a program at every collective and at other steps
that run in Python. The kernels between two cuts become one native call with its own arena. While
collectives are pending, segments are short, and the communication engine is polled after each one.
There must be no progress thread, because it would compete with the kernels for cores.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from ..backend.plugin_checks import as_linked
from ..backend.prepared import HandleFunction, LinkedProgram, PreparedCall
from ..backend.program import Instruction, Program, Step
from ..backend.protocol import Backend
from ..ranks.world import world
from ..types import Device, TensorType
from .control import CONTROL_OPS
from .memory_plan import plan_memory
from .optional_methods import answer

if TYPE_CHECKING:
    from ..backend.prepared import Handle
    from ..types import ValueType

__all__ = ["native_segments", "polling"]

START, FINISH = "start_collective", "finish_collective"
# A segment that runs while collectives are in flight ends after kernels that touch this many bytes.
# At 10 GB/s that is about a millisecond, in which a link of 1 Gbit/s moves 125 KB.
SEGMENT_BYTES = 8 * 2**20


def polling(steps: Sequence[Step]) -> list[Step]:
    """Return the steps, with polling of the communication engine added while collectives run.

    Each step between the start of a collective and the instruction that waits for it polls once,
    after its own work.
    """
    found: list[Step] = []
    pending = 0
    for step in steps:
        pending += (step.name == START) - (step.name == FINISH)
        polls = pending and step.name not in (START, FINISH)
        found.append(step.with_run(_polled(step.call.run)) if polls else step)
    return found


def _polled(run: HandleFunction) -> HandleFunction:
    def call(*handles: Handle) -> Handle | tuple[Handle, ...]:
        found = run(*handles)
        world().poll()
        return found

    return call


def native_segments(
    instructions: Sequence[Instruction],
    outputs: Collection[int],
    sizes: Sequence[int],
    constants: dict[int, Handle],
    types: dict[int, ValueType],
    backend: Backend,
    device: Device,
    level: str,
) -> tuple[list[Instruction], int]:
    """Replace each stretch of kernel calls between steps that run in Python by one C call.

    Args:
        instructions: the instructions in order.
        outputs: slots that are read after them.
        sizes, types: bytes and types of all slots.
        constants: slot of a constant -> its buffer handle.
        backend, device: what runs the instructions.
        level: the jit level.

    Returns:
        the new instructions, and the number of C calls made from several kernel calls. If the
            backend cannot link, or the program has loops or branches, the instructions stay
            unchanged.
    """
    if not all(isinstance(each, Step) for each in instructions):
        return list(instructions), 0
    steps = [each for each in instructions if isinstance(each, Step)]
    last_read: dict[int, int] = dict.fromkeys(outputs, len(steps))
    for k, step in reversed(list(enumerate(steps))):
        for slot in step.operands:
            last_read.setdefault(slot, k)
    make = functools.partial(
        _segment, sizes=sizes, constants=constants, types=types, backend=backend, device=device,
        level=level,
    )  # fmt: skip
    found: list[Instruction] = []
    count = 0
    for begin, end in _runs(steps):
        own = steps[begin:end]
        kept = [s for step in own for s in step.results if last_read.get(s, -1) >= end]
        made = make(own, kept) if len(own) > 1 and kept else None
        found += own if made is None else [made]
        count += made is not None
    return found, count


def _runs(steps: Sequence[Step]) -> list[tuple[int, int]]:
    """Return (begin, end), end exclusive, of the runs of steps that one C call may replace.

    A step that runs in Python is a run by itself.
    """
    found: list[tuple[int, int]] = []
    pending = nbytes = 0
    open_run = False
    for k, step in enumerate(steps):
        pending += (step.name == START) - (step.name == FINISH)
        if not _is_native(step):
            found.append((k, k + 1))
            open_run = False
            continue
        if not open_run or (pending and nbytes > SEGMENT_BYTES):
            found.append((k, k))
            open_run, nbytes = True, 0
        found[-1] = (found[-1][0], k + 1)
        nbytes += sum(t.nbytes for t in step.types if isinstance(t, TensorType))
    return found


def _is_native(step: Step) -> bool:
    """Return whether a step is a pure kernel of the backend, run by neither Python nor the host."""
    return step.op is not None and step.name not in CONTROL_OPS and not (
        step.op.host or step.op.host_fallback or not step.pure
    )  # fmt: skip


def _segment(
    steps: Sequence[Step],
    kept: Sequence[int],
    sizes: Sequence[int],
    constants: dict[int, Handle],
    types: dict[int, ValueType],
    backend: Backend,
    device: Device,
    level: str,
) -> Step | None:
    """Link kernel calls into one C call that returns the slots `kept`, or return None.

    The result is None if the backend refuses to link them. The other arguments are described in
    `native_segments`.
    """
    written = {s for step in steps for s in step.results}
    read = list(dict.fromkeys(s for step in steps for s in step.operands if s >= 0))
    given = [s for s in read if s not in written and s not in constants]
    used = [s for s in read if s in constants]
    number = {s: k for k, s in enumerate([*given, *used, *written])}
    own: list[Instruction] = [
        dataclasses.replace(
            step,
            operands=tuple(number.get(s, -1) for s in step.operands),
            results=tuple(number[s] for s in step.results),
        )
        for step in steps
    ]
    results = tuple(number[s] for s in kept)
    own_sizes = [sizes[s] for s in number]
    held = {number[s]: constants[s] for s in used}
    params = tuple(number[s] for s in given)
    plan = plan_memory(own, [*params, *held], own_sizes, results, {})
    program = Program(
        instructions=tuple(own), params=params, constants=held, hosts={}, sizes=own_sizes,
        places=plan.places, shares=plan.shares, arena=plan.arena, outputs=results, single=False,
        donations={}, level=level, types={number[s]: types[s] for s in number if s in types},
    )  # fmt: skip

    def ask() -> LinkedProgram | str:
        linked = backend.link(program, device.index)
        return linked if isinstance(linked, str) else as_linked(linked, len(params), len(results))

    linked = answer(backend, "link", ask)
    if isinstance(linked, str):
        return None
    call = PreparedCall(_of_handles(linked.run))
    spans = tuple(dict.fromkeys(span for step in steps for span in step.spans))
    return Step(call, tuple(given), tuple(kept), False, "segment", spans=spans)


def _of_handles(run: Callable[..., Handle | tuple[Handle, ...]]) -> HandleFunction:
    return lambda *handles: run(handles)
