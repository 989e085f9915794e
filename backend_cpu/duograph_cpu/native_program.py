"""Translates lowered programs to bytecode that native/program.c runs in one C call.

`CPU.link` calls `link`. Every kernel of the program must be a `NativeCall`, which names the C
function behind it; otherwise the program is not linked. An absent operand is omitted from the
bytecode, because the kernel builder has then chosen a C function without this operand.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np
from duograph.backend.prepared import HandleFunction, LinkedProgram
from duograph.backend.program import (
    Alias,
    Choice,
    Copy,
    HostStep,
    Instruction,
    Loop,
    NeedsSteps,
    Program,
    Step,
    steps_in,
)
from duograph.backend.sizes import evaluator, scope_of
from duograph.types import BOOL, FLOAT, INT, STACK, HostType, TensorType

from . import memory
from ._native import ffi, lib
from .native_call import CALL, LIST, Code, Native, NativeCall
from .sized_structs import Image, SizedStruct, SizeTable, unsized

if TYPE_CHECKING:
    from duograph.backend.protocol import Array
    from duograph.backend.sizes import Scope

    from ._native import CData
    from .memory import Maker

    # Function that runs a program on the pointers of operands and results; it raises its errors.
    Start: TypeAlias = Callable[[tuple[CData, ...]], None]


# Host type -> its code in native/scalar.c, and the C type of memory for one number.
KINDS = {BOOL: 0, INT: 1, FLOAT: 2}
C_TYPES = {BOOL: "uint8_t[1]", INT: "int64_t[1]", FLOAT: "double[1]"}
FUNCTIONS = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "neg", "pos", "invert", "abs", "and",
    "or", "xor", "lshift", "rshift", "lt", "le", "gt", "ge", "eq", "ne", "not", "int", "float",
    "bool", "round",
)  # fmt: skip
# The most arguments of a kernel of the form CALL; native/program.c has a case for each number.
MOST = 10
# The most kernel times that a program stores before it reports them, as loops may be long.
TIMES = 64


class _Assembler:
    """Assembles the bytecode of a lowered program, and the list of kernels that it calls.

    Attributes:
        code: the bytecode so far: operation codes (`Code`), each followed by its arguments.
        kernels: the kernels that the bytecode calls by their position.
        index: id of a kernel -> its position in `kernels`.
        calls: position in the bytecode of each call, in the order of `steps_in`.
        n_slots: number of slots of the program.
        tables: slot that holds the address of a table of sizes -> the table.
    """

    def __init__(self, n_slots: int) -> None:
        self.code: list[int] = []
        self.calls: list[int] = []
        self.kernels: list[Native] = []
        self.index: dict[int, int] = {}
        self.n_slots = n_slots
        self.tables: dict[int, SizeTable] = {}
        self._slots: dict[int, int] = {}

    def table(self, table: SizeTable) -> int:
        """Return the slot that holds the address of a table of sizes."""
        found = self._slots.get(id(table))
        if found is None:
            found = self._slots[id(table)] = self.n_slots + len(self.tables)
            self.tables[found] = table
        return found

    def step(self, step: Step) -> None:
        """Append the bytecode of one kernel call; a kernel that is called twice is stored once."""
        assert isinstance(step.call, NativeCall) and step.call.native is not None
        native = step.call.native
        k = self.index.setdefault(id(native), len(self.kernels))
        if k == len(self.kernels):
            self.kernels.append(native)
        given = [slot for slot in step.operands if slot != -1]
        table = () if native.table is None else (self.table(native.table),)
        listed = native.form == LIST
        slots = (*given, *table, *step.results) if listed else (*step.results, *given)
        self.calls.append(len(self.code))
        self.code += (native.form, k, len(slots), *slots)

    def host(self, step: HostStep) -> None:
        """Append the bytecode of an instruction on Python numbers or stacks of saved values.

        Gradients of loops keep the values that the backward pass needs on these stacks.
        """
        name, operands, results = step.name, step.operands, step.results
        self.calls.append(len(self.code))
        if name == "stack_new":
            self.code += (Code.STACK_NEW, *results)
        elif name == "stack_push":
            self.code += (
                Code.STACK_PUSH,
                operands[0],
                results[0],
                len(operands) - 1,
                *operands[1:],
            )
        elif name == "stack_pop":
            count = len(results) - 2
            self.code += (Code.STACK_POP, operands[0], results[0], results[1], count, *results[2:])
        elif name == "stack_holds":
            self.code += (Code.STACK_HAS_FRAME, *operands, *results)
        else:
            native = Native(f"dg_{name}", _scalar_plan(step), CALL, _needs_steps)
            # a function of one number receives it twice, so that all have two arguments
            twice = operands * 2 if name == "scalar" and len(operands) == 1 else operands
            self.code += (CALL, len(self.kernels), 1 + len(twice), *results, *twice)
            self.kernels.append(native)

    def block(self, instructions: Sequence[Instruction]) -> None:
        """Append the bytecode of a sequence of instructions of the lowered program."""
        for each in instructions:
            if isinstance(each, Step):
                self.step(each)
            elif isinstance(each, HostStep):
                self.host(each)
            elif isinstance(each, Copy):
                self.code += (Code.COPY, each.source, each.target)
            elif isinstance(each, Alias):
                self.code += (Code.ALIAS, each.source, each.target)
            elif isinstance(each, Loop):
                self.loop(each)
            else:
                self.choice(each)

    def loop(self, loop: Loop) -> None:
        """Append the bytecode of a while loop.

        The bytecode first resets the slots of the loop variables, since a loop inside another loop
        starts more than once.
        """
        for _, following, spare in loop.carries:
            self.code += (Code.RESET, following, Code.RESET, spare)
        start = len(self.code)
        self.code += (Code.JUMP_IF_ZERO, loop.predicate, 0)
        self.block(loop.body)
        for carry in loop.carries:
            self.code += (Code.ROTATE, *carry)
        self.code += (Code.LOOP_BACK, start)
        self.code[start + 2] = len(self.code)

    def choice(self, choice: Choice) -> None:
        """Append the bytecode of a switch; each branch ends with a jump past the last branch."""
        start = len(self.code)
        n = len(choice.branches)
        self.code += (Code.SWITCH, choice.index, choice.dtype.index, n, *[0] * n)
        ends = []
        for k, branch in enumerate(choice.branches):
            self.code[start + 4 + k] = len(self.code)
            self.block(branch)
            self.code += (Code.JUMP, 0)
            ends.append(len(self.code) - 1)
        for at in ends:
            self.code[at] = len(self.code)


def _dtype_index(type_: TensorType | HostType | None) -> int:
    """Return the number that stands in C code for the dtype of a tensor type."""
    assert isinstance(type_, TensorType)
    return type_.dtype.index


def _kind(type_: TensorType | HostType | None) -> int:
    """Return the number that stands in C code for a type of Python number: bool, int or float.

    `type_` must be the HostType of one of them.
    """
    assert isinstance(type_, HostType)
    return KINDS[type_]


def _scalar_plan(step: HostStep) -> CData:
    """Return the C struct `dg_scalar_plan`, which describes an instruction on Python numbers."""
    *types, result = step.types
    if step.name == "scalar":
        function = FUNCTIONS.index(step.attributes["function"])
        kinds, made = [_kind(t) for t in types], _kind(result)
    elif step.name == "to_host":
        function, kinds, made = 0, [_dtype_index(types[0])], _kind(result)
    else:
        function, kinds, made = 0, [_kind(types[0])], _dtype_index(result)
    return ffi.new(
        "dg_scalar_plan *",
        {"function": function, "count": len(kinds), "kinds": kinds, "result": made},
    )


def _needs_steps(code: int) -> NoReturn:
    raise NeedsSteps


def _obstacle(program: Program) -> str | None:
    """Return why a lowered program cannot become one C call, or None if it can."""
    for step in steps_in(program.instructions):
        if isinstance(step, HostStep):
            if step.name == "scalar" and len(step.operands) > 2:
                return f"{step.attributes['function']} of {len(step.operands)} numbers"
            continue
        native = step.call.native if isinstance(step.call, NativeCall) else None
        if native is None:
            return f"{step.name} has no kernel of its own"
        too_many = len(step.operands) + len(step.results) > MOST
        if native.form == CALL and too_many:
            return f"{step.name} has {len(step.operands)} operands"
    return None


class _Linked:
    """A lowered program as bytecode and tables in C memory, ready to run.

    The arena is the memory of a call's intermediate values. The pointers that a call receives are
    numbered: first parameters, then allocated results, then constants. The value of a slot (a
    numbered run-time value) is stored in the arena or in the memory of one of these pointers.

    Attributes:
        made: slots of the results that a call allocates.
        n_given: number of parameters and allocated results.
        offsets: for each slot its byte offset in the arena, or -1 - k if it is in the memory of
            pointer number k. The last slots hold the addresses of tables of sizes.
        sizes: bytes of every slot; -1 for stacks.
        functions: the structs `dg_native` of the kernels.
        where: for each result of the program, its position among parameters and allocated results.
        makers: functions that allocate the results in `made`.
    """

    def __init__(self, program: Program) -> None:
        assembler = _Assembler(len(program.sizes))
        assembler.block(program.instructions)
        assembler.code.append(Code.END)
        self.program, self.kernels = program, assembler.kernels
        self.calls, self.tables = assembler.calls, list(assembler.tables.values())
        params, hosts = program.params, program.hosts
        self.made = [s for s in dict.fromkeys(program.outputs) if s not in params]
        pointer = {slot: k for k, slot in enumerate((*params, *self.made))}
        self.where = [pointer[slot] for slot in program.outputs]
        self.n_given = len(pointer)
        pointer.update((slot, self.n_given + k) for k, slot in enumerate(program.constants))
        pointer.update((slot, pointer[result]) for slot, result in program.shares.items())
        first, places = self.n_given + len(program.constants), program.places
        self.offsets = [
            *[
                -1 - pointer[i] if i in pointer else 0 if p == -1 else p
                for i, p in enumerate(places)
            ],
            *[-1 - first - k for k in range(len(self.tables))],
        ]
        self.code = ffi.new("int32_t[]", assembler.code)
        self.sizes = [
            *[-1 if hosts.get(slot) is STACK else n for slot, n in enumerate(program.sizes)],
            *[table.nbytes for table in self.tables],
        ]
        self.functions: Any = [
            (ffi.cast("void *", ffi.addressof(lib, k.function)), k.constants, k.failed is not None)
            for k in self.kernels
        ]
        self.block: object = None

    def finish(self) -> None:
        """Prepare for calls, when all sizes are numbers."""
        if isinstance(self.functions, list):
            self.functions = ffi.new("dg_native[]", self.functions)
        self.sizes_in_c = ffi.new("int64_t[]", self.sizes)
        self.makers: list[Maker] = [
            functools.partial(ffi.new, C_TYPES[self.program.hosts[slot]])
            if slot in self.program.hosts
            else memory.maker(self.sizes[slot], "jit")
            for slot in self.made
        ]

    def constants(self) -> list[CData] | None:
        """Return C pointers to the program's constants; None if a number exceeds 64 bits."""
        program = self.program
        found: list[CData] = []
        for slot, value in program.constants.items():
            pointer = _number(program.hosts[slot], value) if slot in program.hosts else value
            if pointer is None:
                return None
            found.append(pointer)
        return found

    def call(self, constants: Sequence[CData]) -> HandleFunction:
        """Return the function that runs the program, given the buffer handles of all parameters."""
        start = _starter(self, self.offsets, constants, self.n_given)
        return _runner(self.program, start, self.makers, self.where)

    def timed(self, constants: Sequence[CData]) -> HandleFunction:
        """Return the function for `LinkedProgram.timed`, which also reports times of kernels."""
        start = _timed_starter(self, constants)
        return _timed_runner(self.program, start, self.makers, self.where)

    def bind(
        self, constants: Sequence[CData], last: Sequence[CData]
    ) -> Callable[[tuple[CData, ...]], object]:
        """Return the function that runs the program with given handles for its last parameters.

        `last` are the buffer handles of these parameters. The function takes a tuple of the other
        parameters' handles.
        """
        n, n_params = len(last), len(self.program.params)
        first = n_params - n
        n_pointers = self.n_given + len(constants)

        def moved(offset: int) -> int:
            k = -1 - offset
            if offset >= 0 or k < first:
                return offset
            return n - 1 - k if k >= n_params else n - 1 - (n_pointers + k - first)

        offsets = [moved(offset) for offset in self.offsets]
        start = _starter(self, offsets, [*constants, *last], self.n_given - n)
        return _runner(self.program, start, self.makers, [k - n for k in self.where])


def link(program: Program) -> LinkedProgram | str:
    """Translate a lowered program to one C call, or return the reason why that is impossible."""
    reason = _obstacle(program)
    if reason is not None:
        return reason
    linked = _Linked(program)
    constants = linked.constants()
    if constants is None:
        return "a number of more than 64 bits"
    scope = scope_of(linked.sizes)
    if scope is not None:
        return LinkedProgram(unsized, at=_SizedProgram(linked, constants, scope).at)
    return _finished(linked, constants)


class _SizedProgram:
    """A linked program whose sizes are symbolic, and the numbers to compute for each call.

    Args:
        linked: the program, with expressions among its sizes and offsets.
        constants: pointers to the program's constants.
        scope: the symbols.
    """

    def __init__(self, linked: _Linked, constants: list[CData], scope: Scope) -> None:
        self._linked, self._constants = linked, constants
        image = self._image = Image()
        functions = SizedStruct(f"dg_native[{len(linked.kernels)}]", linked.functions)
        self._functions = image.add(functions)
        self._tables = [image.add(table) for table in linked.tables]
        image.finish()
        wanted = [linked.sizes, linked.offsets, linked.program.arena, image.numbers]
        self._evaluate = evaluator(scope.symbols, wanted)

    def at(self, values: Sequence[int]) -> LinkedProgram:
        """Return the program for given values of the symbols."""
        sizes, offsets, arena, numbers = self._evaluate(*values)
        made = copy.copy(self._linked)
        made.block, address = self._image.filled(numbers)
        made.program = dataclasses.replace(made.program, sizes=sizes, arena=arena)
        made.sizes, made.offsets = sizes, offsets
        made.functions = ffi.cast("dg_native *", address + self._functions)
        tables = [ffi.cast("void *", address + offset) for offset in self._tables]
        return _finished(made, [*self._constants, *tables])


def _finished(linked: _Linked, constants: list[CData]) -> LinkedProgram:
    """Return the functions that run a program whose sizes are numbers.

    `constants` are pointers to its constants, then to its tables of sizes.
    """
    program = linked.program
    linked.finish()
    call, timed = linked.call(constants), _once(functools.partial(linked.timed, constants))
    if any(slot in program.hosts for slot in (*program.params, *program.outputs)):
        return LinkedProgram(_with_numbers(program, call), timed=_with_numbers(program, timed))
    can_bind = not program.donations and all(k >= len(program.params) for k in linked.where)
    bind = functools.partial(linked.bind, constants) if can_bind else None
    return LinkedProgram(call, bind=bind, timed=timed)


def _once(make: Callable[[], HandleFunction]) -> HandleFunction:
    """Return a function whose implementation `make` creates at the first call."""
    made = functools.cache(make)
    return lambda *arguments: made()(*arguments)


def _number(kind: HostType, value: object) -> CData | None:
    """Return a C pointer to a copy of a Python number; None if it needs more than 64 bits."""
    try:
        return ffi.new(C_TYPES[kind], [value])
    except OverflowError:
        return None


def _native_of(
    linked: _Linked, offsets: Sequence[int], constants: Sequence[CData], n_given: int
) -> tuple[CData, tuple[CData, ...]]:
    """Return the C struct of a program, and the objects whose memory the struct points to.

    The parameters are those of `_starter`: slot offsets, pointers to constants, and the number of
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


def _starter(
    linked: _Linked, offsets: Sequence[int], constants: Sequence[CData], n_given: int
) -> Start:
    """Return the function that runs a program's bytecode with the pointers of one call.

    The function takes `n_given` pointers, those to parameters and results, and raises an exception
    if a kernel fails. `offsets` and `constants` are those of `linked`, or these lists after
    `_Linked.bind` has changed them.
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


def _timed_starter(
    linked: _Linked, constants: Sequence[CData]
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


def _runner(
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


def _timed_runner(
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


def _with_numbers(program: Program, call: HandleFunction) -> HandleFunction:
    """Wrap a bytecode program's call so that it takes and returns Python numbers, not pointers."""
    into = _host_types(program.hosts, program.params)
    out = _host_types(program.hosts, program.outputs)

    def pointers(handles: Sequence[object]) -> list[Any]:
        given = list(handles)
        for k, kind in into:
            given[k] = _number(kind, given[k])
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
