"""Kernel calls that a backend prepares, with optional facts that let the core optimise them.

A backend returns a `PreparedCall` for one op or one fused region, and a `LinkedProgram` for a whole
program. It may return a plain function if none of the optional facts hold. The core calls the `run`
functions directly, so the other fields cost nothing at run time. This module must not look inside
buffer handles.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from .views import View

if TYPE_CHECKING:
    from ..host_arrays import Array

__all__ = [
    "FuseConsumer",
    "Handle",
    "HandleFunction",
    "LinkedProgram",
    "Packing",
    "PreparedCall",
]

# Device memory of one value. Only the backend knows the type; the core keeps handles and passes
# them back.
Handle: TypeAlias = Any
# From operand handles, by position, to one result handle or a tuple of them.
HandleFunction: TypeAlias = Callable[..., Any]
# From a prepared call that reads the result of another one, and the position of that operand, to
# one call that does the work of both, or None; see `PreparedCall.fuse_consumer`.
FuseConsumer: TypeAlias = "Callable[[PreparedCall, int], PreparedCall | None]"


@dataclasses.dataclass(frozen=True, eq=False)
class PreparedCall:
    """A kernel call prepared for fixed operand types, and facts that help plan its memory.

    Attributes:
        run: function from the operands' buffer handles to those of the results, which it allocates.
        overwrites: pairs (operand number, result number). If both have the same size in bytes, the
            caller may let the call write the result into the operand's memory.
        infallible: `run` never raises. The memory planner lets a step overwrite a donated buffer
            only if that step and all later ones are infallible.
        packings: operand number -> a function without arguments, for each operand that may be
            packed (rearranged in memory before the call, so that the kernel reads it faster). The
            function returns a `Packing`, which holds a call that reads the packed operand and whose
            results are equal bit for bit, or None if there is no such call.
        fuse_consumer: function that fuses this call with the only reader of its result into one
            call whose results are equal bit for bit, or returns None. The fused call's operands are
            those of this call, then those of the reader without the result. It may be fused with
            its own reader again.
        layouts: operand number -> the layouts of `backend.views.LAYOUTS` that the call can take
            beside dense C order. Compiled functions above O0 then pass the buffer that holds the
            operand transposed, sliced or broadcast, and make no copy.
        with_views: function from the views of one or more operands in `layouts` to the call that
            reads these from the buffers that hold them, or None if it cannot. The `overwrites` and
            `packings` of that call must name only the other operands.
        owner: who provides the call, for messages; "" means the backend. The core sets it.
        precedes: whether a plugin added the call with precedence over the backend's own kernel.
            Compiled functions must then neither fuse nor replace its op. The core sets it.
    """

    run: HandleFunction
    overwrites: tuple[tuple[int, int], ...] = ()
    infallible: bool = False
    packings: Mapping[int, Callable[[], Packing | None]] = dataclasses.field(default_factory=dict)
    fuse_consumer: FuseConsumer | None = None
    layouts: Mapping[int, Collection[str]] = dataclasses.field(default_factory=dict)
    with_views: Callable[[Mapping[int, View]], PreparedCall | HandleFunction | None] | None = None
    owner: str = ""
    precedes: bool = False

    @property
    def sized(self) -> bool:
        """Whether the call was prepared for symbolic sizes: it can be linked, but not run."""
        return False

    def __call__(self, *handles: Handle) -> Handle:
        """Run the kernel on the operands' buffer handles; return what `run` returns.

        That is the buffer handle of the result, or a tuple of handles if there are several results.
        """
        return self.run(*handles)


@dataclasses.dataclass(frozen=True)
class Packing:
    """How a kernel call takes an operand that was packed (rearranged in memory) in advance.

    The core packs an operand in advance if its value is the same in many calls of a program or in
    several steps of one call.

    Attributes:
        pack: call from the operand to the packed buffer.
        nbytes: size of the packed buffer.
        call: the kernel call that takes the packed buffer instead of the operand; it may have
            `packings` too.
        layout: key of the packed format; two packings with equal keys produce the same bytes from
            the same operand.
    """

    pack: PreparedCall
    nbytes: int
    call: PreparedCall
    layout: Hashable


class LinkedProgram(NamedTuple):
    """A compiled program that one native call runs, made by a backend (`Backend.link`).

    Attributes:
        run: `run(handles, donated=())` computes the results from the parameters' buffer handles.
            `donated` says for each of `donations`, in order, whether the caller owns the
            parameter's buffer alone and gives it up; `run` may then use it for the result.
        donations: position of an output -> position of the parameter whose buffer it may take; None
            means the donations of the `Program`.
        bind: function that takes the handles of the last parameters, which stay the same for many
            calls, and returns a function of a tuple of the other handles; None if not supported.
        timed: a function like `run` with a third argument, a function that receives the times of
            all kernels that ran, in order: an int64 array of rows (number of the kernel in
            `steps_in` of the program's instructions, begin, end), in nanoseconds of the clock
            `time.perf_counter_ns`. It may be called several times. If it is None, the core runs the
            steps one by one while there are observers.
        at: for a program with symbolic sizes, the function that returns the program for given
            values of the symbols, in the order of `Scope.symbols`, if these fulfil the guards of
            the scope. `run` must then not be called. See `Backend.symbolic_sizes`.
    """

    run: HandleFunction
    donations: Mapping[int, int] | None = None
    bind: Callable[[Sequence[Handle]], Callable[[tuple[Handle, ...]], Handle]] | None = None
    timed: Callable[[Sequence[Handle], Sequence[bool], Callable[[Array], None]], Handle] | None = (
        None
    )
    at: Callable[[Sequence[int]], LinkedProgram] | None = None
