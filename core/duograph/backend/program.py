"""A lowered graph as data: what a backend that links whole programs is given (`Backend.link`, tier
2).

Values live in numbered *slots*. Some are given to each call, some hold constants; every other slot
is written by one instruction, but for those that loops and choices write anew.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..dtype import DType
from ..types import HostType

__all__ = [
    "Alias",
    "Choice",
    "Copy",
    "HostStep",
    "Instruction",
    "Loop",
    "NeedsSteps",
    "Packing",
    "Program",
    "Step",
    "steps_in",
]


@dataclasses.dataclass(frozen=True)
class Step:
    """One prepared call: slots in (-1: absent operand), slots out, one handle or a tuple; `name` is
    the op's.

    `pure`: the results follow from the operands, and have memory of their own.
    """

    call: Callable[..., Any]
    operands: tuple[int, ...]
    results: tuple[int, ...]
    single: bool
    name: str = ""
    pure: bool = False


# A prepared call may have an attribute `joins`: a function of another prepared call and of which of
# its operands is the result of the first, which nothing else reads. It gives one call of both, from
# the operands of the first and then the other ones of the second to the results of the second, with
# the same bits; or None. That call may have it in turn.


@dataclasses.dataclass(frozen=True)
class Packing:
    """How a prepared call would have an operand laid out, where that is the same in many calls or
    several steps of one.

    A prepared call may have an attribute `packs`: operand -> a function without arguments that
    gives one of these, or None. Both calls must give the same bits.

    Attributes:
        pack: a prepared call like any other, from the operand to what it is packed into.
        nbytes: of that.
        call: the prepared call again, with the packed handle in place of the operand; it may have
            `packs` in turn.
        layout: equal for packings that give the same bytes for the same operand; hashable.
    """

    pack: Callable[[Any], Any]
    nbytes: int
    call: Callable[..., Any]
    layout: Any


@dataclasses.dataclass(frozen=True)
class HostStep:
    """What a host computes with numbers of Python and stacks of residuals: an op of `ir.control`,
    by its name.

    Attributes:
        name: "scalar", "to_host", "to_tensor", "stack_new", "stack_push", "stack_pop" or
            "stack_holds".
        operands: slots.
        results: slots.
        types: of the operands, then of the results.
        attributes: of the op.
    """

    name: str
    operands: tuple[int, ...]
    results: tuple[int, ...]
    types: tuple[Any, ...]
    attributes: Mapping[str, Any]


class NeedsSteps(Exception):
    """Raised by a linked call that came to a number which only Python computes, such as one of more
    than 64 bits.

    Nothing has been changed: the graph is then run step by step.
    """


@dataclasses.dataclass(frozen=True)
class Copy:
    """The bytes of one slot go to another of the same size."""

    source: int
    target: int


@dataclasses.dataclass(frozen=True)
class Alias:
    """From here on the target is the memory of the source."""

    source: int
    target: int


@dataclasses.dataclass(frozen=True)
class Loop:
    """While the predicate, a slot of one byte, is not 0, run the body.

    Attributes:
        predicate: aliased by the body to what it computes.
        carries: (carry, next, spare): the body reads `carry` and writes `next`. After a turn the
            carry is what was `next`, whose memory becomes that of `spare` after the first turn and
            that of the carry after later ones; before the loop, the carry is an alias of its first
            value.
        body: instructions.
    """

    predicate: int
    carries: tuple[tuple[int, int, int], ...]
    body: tuple[Instruction, ...]


@dataclasses.dataclass(frozen=True)
class Choice:
    """Run one of the branches: that of the index, one element of an integer dtype or bool, kept
    within range.
    """

    index: int
    dtype: DType
    branches: tuple[tuple[Instruction, ...], ...]


Instruction = Step | HostStep | Copy | Alias | Loop | Choice


@dataclasses.dataclass(frozen=True)
class Program:
    """Everything that a backend needs to run a lowered graph in one piece.

    Attributes:
        instructions: in order.
        params: slots of what each call is given, as handles.
        constants: handles by slot; numbers where `hosts` has the slot.
        hosts: the type of every slot that holds a number of Python or a stack. Parameters and
            results of such a type are Python's numbers.
        sizes: bytes of every slot.
        places: where in the arena a slot lies; -1 for what is given, constant, a result or an
            alias.
        shares: slot -> the result in whose memory it lies until the result is written over it.
        arena: bytes of memory that a call needs for everything but its results.
        outputs: slots of the results.
        single: the call returns one handle rather than a tuple.
        donations: position of an output -> position of the parameter whose memory it may take, if
            the caller gives that away.
        level: "O1" or "O2": what was asked for; at O1 there is no control flow.
        updates: position of an output -> position of the parameter of which it is the new value. A
            backend that can use the memory of more of these than `donations` has says so by an
            attribute of that name of its call.
    """

    instructions: tuple[Instruction, ...]
    params: tuple[int, ...]
    constants: Mapping[int, Any]
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


def steps_in(instructions: Sequence[Instruction]) -> Iterator[Step | HostStep]:
    """All steps, those in loops and branches included."""
    for each in instructions:
        if isinstance(each, (Step, HostStep)):
            yield each
        elif isinstance(each, Loop):
            yield from steps_in(each.body)
        elif isinstance(each, Choice):
            for branch in each.branches:
                yield from steps_in(branch)
