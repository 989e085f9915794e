"""Functions that run a linked program: they allocate its results and call native/program.c once.

`native_program` calls `starter` and `runner` when it has linked a program. The functions that they
return take and give buffer handles; `with_numbers` makes them take Python numbers too. Every call
of a compiled function runs them: they must not look at types or shapes again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from duograph.backend.prepared import HandleFunction
from duograph.backend.program import NeedsSteps, Program
from duograph.types import BOOL, FLOAT, INT, HostType

from . import memory
from ._native import ffi, lib

if TYPE_CHECKING:
    from duograph.backend.protocol import Array

    from ._native import CData
    from .memory import Maker
    from .native_program import Linked

    # Function that runs a program on the pointers of operands and results; it raises its errors.
    Start: TypeAlias = Callable[[tuple[CData, ...]], None]

__all__ = [
    "C_TYPES", "number_in_c", "runner", "starter", "timed_runner", "timed_starter", "with_numbers",
]  # fmt: skip

# Host type -> C type of memory for one number.
C_TYPES = {BOOL: "uint8_t[1]", INT: "int64_t[1]", FLOAT: "double[1]"}
# The most kernel times that a program stores before it reports them, as loops may be long.
TIMES = 64


def number_in_c(kind: HostType, value: object) -> CData | None:
    """Return a C pointer to a copy of a Python number; None if it needs more than 64 bits."""
    try:
        return ffi.new(C_TYPES[kind], [value])
    except OverflowError:
        return None


def _native_of(
    linked: Linked, offsets: Sequence[int], constants: Sequence[CData], n_given: int
) -> tuple[CData, tuple[CData, ...]]:
    """Return the C struct of a program, and the objects whose memory the struct points to.

    The parameters are those of `starter`: slot offsets, pointers to constants, and the number of
    pointers that a call gets.
    """
    parts = (
        linked.code,
        linked.functions,
        ffi.new("int64_t[]", offsets),
        linked.sizes_in_c,
        ffi.new("void *[]", constants),
    )
    return ffi.new("dg_program *", (*parts, len(linked.sizes), n_given)), parts


def starter(
    linked: Linked, offsets: Sequence[int], constants: Sequence[CData], n_given: int
) -> Start:
    """Return the function that runs a program's bytecode with the pointers of one call.

    The function takes `n_given` pointers, those to parameters and results, and raises an exception
    if a kernel fails. `offsets` and `constants` are those of `linked`, or these lists after
    `native_program.Linked.bind` has changed them.
    """
    program, kernels = linked.program, linked.kernels
    native, parts = _native_of(linked, offsets, constants, n_given)
    n = len(linked.sizes)
    new_slots = ffi.typeof(f"void *[{n + 1}]")
    new_arena = memory.maker(program.arena, "jit")
    run, end = lib.dg_program_run, lib.dg_program_end

    def start(given: tuple[CData, ...], _alive: object = (parts, linked, tuple(constants))) -> None:
        slots = ffi.new(new_slots)
        arena = new_arena()
        at = run(native, slots, given, arena, 0)
        if at < 0:  # a long loop returns now and then, so that Python sees an interrupt
            try:
                while at < 0:
                    at = run(native, slots, given, arena, -at)
            except BaseException:
                end(slots + n)
                raise
        if at:
            failed = kernels[at >> 8].failed
            assert failed is not None
            failed(at & 255)

    return start


def timed_starter(
    linked: Linked, constants: Sequence[CData]
) -> Callable[[tuple[CData, ...], Callable[[Array], None]], None]:
    """Return the function that runs a program's bytecode and reports the times of its kernels.

    The function takes the pointers to parameters and results, and a function to which it reports
    the times as `LinkedProgram.timed` describes. `constants` are pointers to the program's
    constants.
    """
    program, kernels = linked.program, linked.kernels
    native, parts = _native_of(linked, linked.offsets, constants, linked.n_given)
    n = len(linked.sizes)
    new_slots, new_arena = ffi.typeof(f"void *[{n + 1}]"), memory.maker(program.arena, "jit")
    numbers = ffi.new("int32_t[]", len(linked.code))
    for number, position in enumerate(linked.calls):
        numbers[position] = number
    room = max(TIMES, len(linked.calls) + 1)
    new_rows = ffi.typeof(f"int64_t[{3 * room}]")
    run, end = lib.dg_program_timed, lib.dg_program_end

    def start(
        given: tuple[CData, ...],
        report: Callable[[Array], None],
        _alive: object = (parts, linked, tuple(constants)),
    ) -> None:
        slots, arena, at = ffi.new(new_slots), new_arena(), 0
        try:
            while True:
                rows = memory.new_small(new_rows)
                times = ffi.new("dg_times *", (numbers, rows, 0, room))
                at = run(native, slots, given, arena, -at, times)
                if times.count:
                    report(
                        np.frombuffer(ffi.buffer(rows), np.int64, 3 * times.count).reshape(-1, 3)
                    )
                if at >= 0:
                    break
        except BaseException:
            end(slots + n)
            raise
        if at:
            failed = kernels[at >> 8].failed
            assert failed is not None
            failed(at & 255)

    return start


def runner(
    program: Program, start: Start, makers: Sequence[Maker], where: Sequence[int]
) -> Callable[..., CData | tuple[CData, ...]]:
    """Return the function that allocates a program's results, runs it and returns the results.

    The function takes a tuple of parameter handles and, optionally, a flag for each of
    `program.donations`: whether the caller gives up (donates) that parameter. A result that takes a
    donated parameter's buffer is not allocated. `start` runs the bytecode; `makers` allocate
    results; `where` has each result's position among parameters and allocated results.
    """
    single = program.single
    (first, *_) = where or [0]
    results_of = _allocator(program, makers, where)

    def run(handles: tuple[CData, ...], donated: Sequence[bool] = ()) -> CData | tuple[CData, ...]:
        results = results_of(handles, donated) if donated else [make() for make in makers]
        given = (*handles, *results)
        start(given)
        return given[first] if single else tuple([given[k] for k in where])

    return run


def timed_runner(
    program: Program,
    start: Callable[[tuple[CData, ...], Callable[[Array], None]], None],
    makers: Sequence[Maker],
    where: Sequence[int],
) -> HandleFunction:
    """Return the function that runs a program and also reports the times of its kernels.

    The function takes the parameters' handles, a flag for each of `program.donations` (whether the
    caller gives up that parameter), and the function that receives the times
    (`LinkedProgram.timed`). `start` runs the bytecode; `makers` allocate results; `where` has each
    result's position among parameters and allocated results.
    """
    single = program.single
    results_of = _allocator(program, makers, where)

    def run(
        handles: Sequence[CData], donated: Sequence[bool], report: Callable[[Array], None]
    ) -> CData | tuple[CData, ...]:
        given = (*handles, *results_of(handles, donated))
        start(given, report)
        return given[where[0]] if single else tuple([given[k] for k in where])

    return run


def _allocator(
    program: Program, makers: Sequence[Maker], where: Sequence[int]
) -> Callable[[Sequence[CData], Sequence[bool]], list[CData]]:
    """Return the function that allocates a program's results.

    The function takes the parameters' handles and, for each of `program.donations`, whether the
    caller gives up the parameter's buffer. If so, the result that updates the parameter takes that
    buffer, unless it is memory of a NumPy array. `makers` allocate results; `where` has each
    result's position among parameters and allocated results.
    """
    n_params = len(program.params)
    donors = [
        (where[position] - n_params, p, memory.owned_type(program.sizes[program.outputs[position]]))
        for position, p in program.donations.items()
    ]
    typeof = ffi.typeof

    def results_of(handles: Sequence[CData], donated: Sequence[bool]) -> list[CData]:
        made: list[CData | None] = [None] * len(makers)
        for (k, p, owned), give in zip(donors, donated):
            if give and typeof(handles[p]) is owned:  # not memory of a user's NumPy array
                made[k] = handles[p]
        return [make() if h is None else h for make, h in zip(makers, made)]

    return results_of


def _host_types(hosts: Mapping[int, HostType], slots: Sequence[int]) -> list[tuple[int, HostType]]:
    """Return (position in `slots`, type) of each slot that holds a Python number.

    A slot is the number of a run-time value. `hosts` has the type of every slot with a Python
    number.
    """
    return [(k, hosts[slot]) for k, slot in enumerate(slots) if slot in hosts]


def with_numbers(program: Program, call: HandleFunction) -> HandleFunction:
    """Wrap a bytecode program's call so that it takes and returns Python numbers, not pointers."""
    into = _host_types(program.hosts, program.params)
    out = _host_types(program.hosts, program.outputs)

    def pointers(handles: Sequence[object]) -> list[Any]:
        given = list(handles)
        for k, kind in into:
            given[k] = number_in_c(kind, given[k])
            if given[k] is None:
                raise NeedsSteps
        return given

    def numbers(results: Any) -> Any:
        if not out:
            return results
        found = [results] if program.single else list(results)
        for k, kind in out:
            value = found[k][0] if isinstance(found[k], ffi.CData) else found[k]
            found[k] = bool(value) if kind is BOOL else value
        return found[0] if program.single else tuple(found)

    return lambda handles, donated=(), *rest: numbers(call(pointers(handles), donated, *rest))
