"""Calls that a backend prepares, and what the core may do with them.

A backend returns a `PreparedCall` for one op or one fused region, and a `LinkedProgram` for a whole
program; a plain function is as good where none of the optional facts hold. The core calls `run`
directly, so the fields cost nothing at run time. This module must not look inside handles.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

__all__ = [
    "FuseConsumer",
    "Handle",
    "HandleFunction",
    "LinkedProgram",
    "Packing",
    "PreparedCall",
]

# Device memory of one value. Only the backend knows the type; the core keeps handles and passes them
# back.
Handle: TypeAlias = Any
# From operand handles, by position, to one result handle or a tuple of them.
HandleFunction: TypeAlias = Callable[..., Any]
# From a prepared call that reads the result of another one, and the position of that operand, to
# one call that does the work of both, or None; see `PreparedCall.fuse_consumer`.
FuseConsumer: TypeAlias = "Callable[[PreparedCall, int], PreparedCall | None]"


@dataclasses.dataclass(frozen=True, eq=False)
class PreparedCall:
    """A kernel call prepared for fixed operand types, with the properties that a planner
    may use.

    Attributes:
        run: computes the results from operand handles; it allocates the results.
        overwrites: pairs (operand, result) of equal size that may share memory.
        infallible: `run` never raises, so memory of an operand may be given away before it.
        packings: operand -> a function that returns how the call takes this operand packed, or
            None. Both calls compute the same bits.
        fuse_consumer: returns one call of this one and of the only reader of its result, with the
            same bits: its operands are those of this call, then those of the reader without the
            result. It may be fused with its own reader again.
    """

    run: HandleFunction
    overwrites: tuple[tuple[int, int], ...] = ()
    infallible: bool = False
    packings: Mapping[int, Callable[[], Packing | None]] = dataclasses.field(default_factory=dict)
    fuse_consumer: FuseConsumer | None = None

    def __call__(self, *handles: Handle) -> Any:
        """Run the prepared kernel on operand handles."""
        return self.run(*handles)


@dataclasses.dataclass(frozen=True)
class Packing:
    """How a prepared kernel call takes an operand that was packed (rearranged) in advance.

    The core uses it where the operand is the same in many calls, or in several steps of one.

    Attributes:
        pack: from the operand to the packed buffer.
        nbytes: size of the packed buffer.
        call: the call with the packed buffer in place of the operand; it may have `packings` too.
        layout: equal for packings that produce the same bytes from the same operand.
    """

    pack: PreparedCall
    nbytes: int
    call: PreparedCall
    layout: Hashable


class LinkedProgram(NamedTuple):
    """A whole lowered graph as one call, made by a backend (`Backend.link`).

    Attributes:
        run: `run(handles, donated=())` computes the results from the parameter handles. `donated`
            says for each of `donations`, in order, whether the caller owns the parameter's buffer
            alone and gives it up; `run` may then use it for the result.
        donations: position of an output -> position of the parameter whose buffer it may take;
            None: those of the program.
        bind: from the handles of the last parameters, which stay the same for many calls, to a
            function of a tuple of the other handles; None where the program cannot be bound.
    """

    run: HandleFunction
    donations: Mapping[int, int] | None = None
    bind: Callable[[Sequence[Handle]], Callable[[tuple[Handle, ...]], Any]] | None = None
