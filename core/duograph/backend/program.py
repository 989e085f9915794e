"""Compiled programs as data: the instructions that the core emits and `Backend.link` receives.

Run-time values are numbered; such a number is called a *slot*. Parameters and constants fill some
slots. Every other slot is written by exactly one instruction, except the variables of a loop, which
each iteration writes again, and the results of a branch, which each arm writes. The module has data
classes alone: it must not run, plan or generate anything.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from ..dtype import DType
from ..types import HostType, TensorType
from .prepared import HandleFunction, PreparedCall
from .views import View

if TYPE_CHECKING:
    from ..ir.graph import Attributes, SourceSpan
    from ..op import Op
    from .prepared import Handle

__all__ = [
    "Alias",
    "Choice",
    "Copy",
    "HostStep",
    "Instruction",
    "Loop",
    "NeedsSteps",
    "Program",
    "Step",
    "slots_read",
    "steps_in",
]


@dataclasses.dataclass(frozen=True)
class Step:
    """Program instruction that calls a prepared kernel on slots (numbers of run-time values).

    Attributes:
        call: the prepared kernel call.
        operands: slots that it reads; -1 for an absent operand.
        results: slots that it writes.
        single: whether the call returns one buffer handle rather than a tuple of handles.
        name: name of the op.
        pure: True if the step is a kernel of an op without side effects, so that its results depend
            on the operands alone and have memory of their own. False for all other steps, such as
            Python code and calls of NumPy on the host.
        op: the op, so that a backend can compute the step in its own way; None for a step that only
            `call` can run, such as a copy. A fused region is the op `region`.
        types: types of the operands, then of the results; None for an absent operand. A type may
            differ in shape, and only in shape, from that of the step that wrote the slot: a reshape
            is not an instruction.
        attributes: the op's attributes; those of a region are its graph, ``body``.
        spans: locations in the user's source, for messages; several for a fused region.
        views: operand number -> the shape, strides and offset with which `call` reads the operand
            from the buffer in its slot; `View.size` is the number of elements of the buffer. Each
            operand without an entry fills its buffer in C order. Only operands for which `call` has
            an entry in `layouts` can have one here.
    """

    call: PreparedCall
    operands: tuple[int, ...]
    results: tuple[int, ...]
    single: bool
    name: str = ""
    pure: bool = False
    op: Op | None = None
    types: tuple[TensorType | HostType | None, ...] = ()
    attributes: Attributes = dataclasses.field(default_factory=dict)
    spans: tuple[SourceSpan, ...] = ()
    views: Mapping[int, View] = dataclasses.field(default_factory=dict)

    def with_run(self, run: HandleFunction) -> Step:
        """Return a copy of the step whose call runs another function."""
        return dataclasses.replace(self, call=dataclasses.replace(self.call, run=run))


@dataclasses.dataclass(frozen=True)
class HostStep:
    """Program instruction that computes with Python numbers or with stacks of saved values.

    Attributes:
        name: name of the op: "scalar", "to_host", "to_tensor", "stack_new", "stack_push",
            "stack_pop" or "stack_holds".
        operands: slots that it reads.
        results: slots that it writes.
        types: types of the operands, then of the results.
        attributes: the op's attributes.
    """

    name: str
    operands: tuple[int, ...]
    results: tuple[int, ...]
    types: tuple[TensorType | HostType | None, ...]
    attributes: Attributes


class NeedsSteps(Exception):
    """Raised by a native program (one C call for a whole graph) for a value that it cannot handle.

    An example is an int of more than 64 bits. The program must not have changed the buffer of any
    parameter before. The core catches the exception and runs the graph again from the beginning,
    one instruction after another from Python.
    """


@dataclasses.dataclass(frozen=True)
class Copy:
    """Program instruction that copies the bytes of slot `source` to the memory of slot `target`.

    A slot is the number of a run-time value.
    """

    source: int
    target: int


@dataclasses.dataclass(frozen=True)
class Alias:
    """Program instruction that makes slot `target` refer to the memory of slot `source`.

    A slot is the number of a run-time value.
    """

    source: int
    target: int


@dataclasses.dataclass(frozen=True)
class Loop:
    """Program instruction that repeats its body while the byte in the predicate's slot is not 0.

    Attributes:
        predicate: slot of the condition; the body aliases it to the next iteration's condition.
        carries: three slots (carry, next, spare) for each loop variable. The body reads the
            variable from `carry` and writes its next value to `next`. Before the loop, `carry` is
            an alias of the initial value, which the loop must not overwrite. After each iteration
            `carry` is made to refer to the memory of `next`. At the same time `next` is made to
            refer to the memory of `spare` after the first iteration, and to the former memory of
            `carry` after each later one.
        body: instructions of one iteration.
    """

    predicate: int
    carries: tuple[tuple[int, int, int], ...]
    body: tuple[Instruction, ...]


@dataclasses.dataclass(frozen=True)
class Choice:
    """Program instruction that runs one of several branches, selected by an index.

    Attributes:
        index: slot of one integer or bool element; it is clamped to 0 .. number of branches - 1.
        dtype: dtype of the index.
        branches: instructions of each branch.
    """

    index: int
    dtype: DType
    branches: tuple[tuple[Instruction, ...], ...]


Instruction: TypeAlias = Step | HostStep | Copy | Alias | Loop | Choice


@dataclasses.dataclass(frozen=True)
class Program:
    """Everything that a backend needs to run a lowered graph as one native call.

    Attributes:
        instructions: the instructions in order.
        params: slots of the buffer handles that each call receives.
        constants: buffer handles by slot; Python numbers for the slots in `hosts`.
        hosts: slot -> type, for the slots that hold a Python number or a stack of saved values
            rather than a buffer handle. A call takes and returns Python numbers for such slots.
        sizes: size in bytes of the value in each slot, indexed by slot.
        places: offset in bytes of each slot's value from the start of the arena, indexed by slot;
            -1 for a slot whose value is not in the arena: parameters, constants, results, aliases,
            the slots in `shares`, and slots that no instruction writes.
        shares: slot of an intermediate value -> slot of the result in whose memory the value is
            stored, until the result overwrites it.
        arena: bytes of the arena, the one block of memory that a call needs for the intermediate
            values that are not in `shares`; results are allocated separately.
        outputs: slots of the results.
        single: whether the call returns one handle rather than a tuple of handles.
        donations: position of an output -> position of the parameter whose buffer the output may
            use if the caller donates it (gives it up).
        level: the jit level (amount of optimisation) that the user chose, "O1" or "O2"; at O1 there
            is no control flow.
        types: the type of the value in every slot, as the instruction that writes it declares.
        updates: position of an output -> position of the parameter that gets the output as its new
            value after the call, such as a weight that an optimiser step changes. `donations` are
            the pairs among them in which the output may overwrite the parameter's buffer during the
            call. A backend that can do so for more of the pairs says so in
            `LinkedProgram.donations`.
    """

    instructions: tuple[Instruction, ...]
    params: tuple[int, ...]
    constants: Mapping[int, Handle]
    hosts: Mapping[int, HostType]
    sizes: Sequence[int]
    places: Sequence[int]
    shares: Mapping[int, int]
    arena: int
    outputs: tuple[int, ...]
    single: bool
    donations: Mapping[int, int]
    level: str = "O1"
    updates: Mapping[int, int] = dataclasses.field(default_factory=dict)
    types: Mapping[int, TensorType | HostType] = dataclasses.field(default_factory=dict)


def steps_in(instructions: Sequence[Instruction]) -> Iterator[Step | HostStep]:
    """Yield all kernel and host calls among instructions, also in loops and branches."""
    for each in instructions:
        if isinstance(each, (Step, HostStep)):
            yield each
        elif isinstance(each, Loop):
            yield from steps_in(each.body)
        elif isinstance(each, Choice):
            for branch in each.branches:
                yield from steps_in(branch)


def slots_read(instructions: Sequence[Instruction]) -> list[int]:
    """Return the slots (numbers of run-time values) that instructions read, with repetitions.

    Instructions inside loops and branches are included.
    """
    found: list[int] = []
    for each in instructions:
        if isinstance(each, Loop):
            carries = (slot for carry in each.carries for slot in carry)
            found += [each.predicate, *carries, *slots_read(each.body)]
        elif isinstance(each, Choice):
            found += [each.index, *(s for branch in each.branches for s in slots_read(branch))]
        elif isinstance(each, (Copy, Alias)):
            found.append(each.source)
        else:
            found += each.operands
    return found
