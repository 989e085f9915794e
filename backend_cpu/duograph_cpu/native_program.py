"""Translates lowered programs to bytecode that native/program.c runs in one C call.

`CPU.link` calls `link`. Every kernel of the program must be a `NativeCall`, which names the C
function behind it; otherwise the program is not linked. An absent operand is omitted from the
bytecode, because the kernel builder has then chosen a C function without this operand.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

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
from .program_runners import (
    C_TYPES,
    number_in_c,
    runner,
    starter,
    timed_runner,
    timed_starter,
    with_numbers,
)
from .sized_structs import Image, SizedStruct, SizeTable, unsized

if TYPE_CHECKING:
    from duograph.backend.sizes import Scope

    from ._native import CData
    from .memory import Maker

# Host type -> its code in native/scalar.c.
KINDS = {BOOL: 0, INT: 1, FLOAT: 2}
FUNCTIONS = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "neg", "pos", "invert", "abs", "and",
    "or", "xor", "lshift", "rshift", "lt", "le", "gt", "ge", "eq", "ne", "not", "int", "float",
    "bool", "round",
)  # fmt: skip
# The most arguments of a kernel of the form CALL; native/program.c has a case for each number.
MOST = 10


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


class Linked:
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
            pointer = number_in_c(program.hosts[slot], value) if slot in program.hosts else value
            if pointer is None:
                return None
            found.append(pointer)
        return found

    def call(self, constants: Sequence[CData]) -> HandleFunction:
        """Return the function that runs the program, given the buffer handles of all parameters."""
        start = starter(self, self.offsets, constants, self.n_given)
        return runner(self.program, start, self.makers, self.where)

    def timed(self, constants: Sequence[CData]) -> HandleFunction:
        """Return the function for `LinkedProgram.timed`, which also reports times of kernels."""
        start = timed_starter(self, constants)
        return timed_runner(self.program, start, self.makers, self.where)

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
        start = starter(self, offsets, [*constants, *last], self.n_given - n)
        return runner(self.program, start, self.makers, [k - n for k in self.where])


def link(program: Program) -> LinkedProgram | str:
    """Translate a lowered program to one C call, or return the reason why that is impossible."""
    reason = _obstacle(program)
    if reason is not None:
        return reason
    linked = Linked(program)
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

    def __init__(self, linked: Linked, constants: list[CData], scope: Scope) -> None:
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


def _finished(linked: Linked, constants: list[CData]) -> LinkedProgram:
    """Return the functions that run a program whose sizes are numbers.

    `constants` are pointers to its constants, then to its tables of sizes.
    """
    program = linked.program
    linked.finish()
    call, timed = linked.call(constants), _once(functools.partial(linked.timed, constants))
    if any(slot in program.hosts for slot in (*program.params, *program.outputs)):
        return LinkedProgram(with_numbers(program, call), timed=with_numbers(program, timed))
    can_bind = not program.donations and all(k >= len(program.params) for k in linked.where)
    bind = functools.partial(linked.bind, constants) if can_bind else None
    return LinkedProgram(call, bind=bind, timed=timed)


def _once(make: Callable[[], HandleFunction]) -> HandleFunction:
    """Return a function whose implementation `make` creates at the first call."""
    made = functools.cache(make)
    return lambda *arguments: made()(*arguments)
