"""Links programs: a lowered graph becomes a list of instructions that native/program.c runs in one
call.

A `NativeCall` that can be linked names the C function that it calls; see `Native`. An absent
operand is left out: the builder knew of it, and named a function that does without.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from duograph.backend.prepared import LinkedProgram, PreparedCall
from duograph.backend.program import Alias, Copy, HostStep, Loop, NeedsSteps, Step, steps_in
from duograph.types import BOOL, FLOAT, INT, STACK, TensorType

from . import memory
from ._native import ffi, lib

if TYPE_CHECKING:
    from duograph.backend.prepared import HandleFunction
    from duograph.backend.program import Choice, Instruction, Program
    from duograph.types import HostType, ValueType

    from ._native import CData
    from .convolution_chains import Stage
    from .memory import Maker

(
    CALL,
    LIST,
    JOIN,
    COPY,
    ALIAS,
    RESET,
    ROTATE,
    UNLESS,
    JUMP,
    AGAIN,
    CHOOSE,
    EMPTY,
    PUSH,
    POP,
    HOLDS,
    END,
) = range(16)
# Python's numbers as native/scalar.c knows them.
KINDS = {BOOL: 0, INT: 1, FLOAT: 2}
C_TYPES = {BOOL: "uint8_t[1]", INT: "int64_t[1]", FLOAT: "double[1]"}
FUNCTIONS = (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "neg",
    "pos",
    "invert",
    "abs",
    "and",
    "or",
    "xor",
    "lshift",
    "rshift",
    "lt",
    "le",
    "gt",
    "ge",
    "eq",
    "ne",
    "not",
    "int",
    "float",
    "bool",
    "round",
)
# Arguments of a kernel of the form CALL; native/program.c has as many cases.
MOST = 10


class Native(NamedTuple):
    """What a prepared call calls.

    Attributes:
        function: name of a function of the compiled module.
        constants: the pointer that is its first argument; owns what it points to.
        form: CALL: the results, then the operands, each a pointer. JOIN: a result, and an array of
            the operands. LIST: an array of the operands, then the results.
        failed: called with a code that is not 0; raises. None: the function returns no code.
    """

    function: str
    constants: CData
    form: int = CALL
    failed: Callable[[int], NoReturn] | None = None


def keep(pointer: CData, owner: object) -> CData:
    """The pointer, which keeps what it points into alive."""
    return ffi.gc(pointer, functools.partial(_drop, owner))


def _drop(owner: object, pointer: CData) -> None:
    """The end of what an owner was kept for."""


@dataclasses.dataclass(frozen=True, eq=False)
class NativeCall(PreparedCall):
    """A prepared call of this backend.

    Attributes:
        native: the C function behind it; None where there is none, so that it cannot be linked.
        stage: what `convolution_chains.join` needs to append the call to another one; None where it cannot be.
    """

    native: Native | None = None
    stage: Stage | None = None


class _Writer:
    def __init__(self) -> None:
        self.code: list[int] = []
        self.kernels: list[Native] = []
        self.index: dict[int, int] = {}

    def step(self, step: Step) -> None:
        assert isinstance(step.call, NativeCall) and step.call.native is not None  # `_obstacle`
        native = step.call.native
        k = self.index.setdefault(id(native), len(self.kernels))
        if k == len(self.kernels):
            self.kernels.append(native)
        given = [slot for slot in step.operands if slot != -1]
        slots = (*given, *step.results) if native.form == LIST else (*step.results, *given)
        self.code += (native.form, k, len(slots), *slots)

    def host(self, each: HostStep) -> None:
        name, operands, results = each.name, each.operands, each.results
        if name == "stack_new":
            self.code += (EMPTY, *results)
        elif name == "stack_push":
            self.code += (PUSH, operands[0], results[0], len(operands) - 1, *operands[1:])
        elif name == "stack_pop":
            self.code += (POP, operands[0], results[0], results[1], len(results) - 2, *results[2:])
        elif name == "stack_holds":
            self.code += (HOLDS, *operands, *results)
        else:
            native = Native(f"dg_{name}", _scalar_plan(each), CALL, _needs_steps)
            # a function of one number is given it twice: native/program.c calls by how many there
            # are
            twice = operands * 2 if name == "scalar" and len(operands) == 1 else operands
            self.code += (CALL, len(self.kernels), 1 + len(twice), *results, *twice)
            self.kernels.append(native)

    def block(self, instructions: Sequence[Instruction]) -> None:
        for each in instructions:
            if isinstance(each, Step):
                self.step(each)
            elif isinstance(each, HostStep):
                self.host(each)
            elif isinstance(each, Copy):
                self.code += (COPY, each.source, each.target)
            elif isinstance(each, Alias):
                self.code += (ALIAS, each.source, each.target)
            elif isinstance(each, Loop):
                self.loop(each)
            else:
                self.choice(each)

    def loop(self, each: Loop) -> None:
        for _, following, spare in each.carries:  # a loop inside of a loop begins more than once
            self.code += (RESET, following, RESET, spare)
        start = len(self.code)
        self.code += (UNLESS, each.predicate, 0)
        self.block(each.body)
        for ring in each.carries:
            self.code += (ROTATE, *ring)
        self.code += (AGAIN, start)
        self.code[start + 2] = len(self.code)

    def choice(self, each: Choice) -> None:
        start = len(self.code)
        n = len(each.branches)
        self.code += (CHOOSE, each.index, each.dtype.index, n, *[0] * n)
        ends = []
        for k, branch in enumerate(each.branches):
            self.code[start + 4 + k] = len(self.code)
            self.block(branch)
            self.code += (JUMP, 0)
            ends.append(len(self.code) - 1)
        for at in ends:
            self.code[at] = len(self.code)


def _kind(type_: ValueType | None) -> int:
    """Return the code of a Python number's type, or the dtype code of a tensor."""
    if isinstance(type_, TensorType):
        return type_.dtype.index
    assert type_ is not None
    return KINDS[type_]


def _scalar_plan(each: HostStep) -> CData:
    """The `dg_scalar_plan` of a step on numbers."""
    *types, result = each.types
    function = 0
    if each.name == "scalar":
        function = FUNCTIONS.index(each.attributes["function"])
    kinds = [_kind(t) for t in types]
    return ffi.new(
        "dg_scalar_plan *",
        {"function": function, "count": len(kinds), "kinds": kinds, "result": _kind(result)},
    )


def _needs_steps(code: int) -> NoReturn:
    raise NeedsSteps


def _obstacle(program: Program) -> str | None:
    """Why a program cannot be linked, or None."""
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


def link(program: Program) -> LinkedProgram | str:
    """The call of a program, or the reason why there is none."""
    reason = _obstacle(program)
    if reason is not None:
        return reason
    writer = _Writer()
    writer.block(program.instructions)
    writer.code.append(END)
    n_params = len(program.params)
    made = [s for s in dict.fromkeys(program.outputs) if s not in program.params]
    given = {slot: k for k, slot in enumerate((*program.params, *made))}
    n_given = len(given)
    given.update((slot, n_given + k) for k, slot in enumerate(program.constants))
    given.update((slot, given[result]) for slot, result in program.shares.items())
    places = [-1 - given[i] if i in given else max(p, 0) for i, p in enumerate(program.places)]
    kernels = [
        (ffi.cast("void *", ffi.addressof(lib, k.function)), k.constants, k.failed is not None)
        for k in writer.kernels
    ]
    hosts = program.hosts
    sizes = [-1 if hosts.get(slot) is STACK else n for slot, n in enumerate(program.sizes)]
    constants = [
        _number(hosts[slot], v) if slot in hosts else v for slot, v in program.constants.items()
    ]
    if None in constants:
        return "a number of more than 64 bits"
    parts = (
        ffi.new("int32_t[]", writer.code),
        ffi.new("dg_native[]", kernels),
        ffi.new("int64_t[]", places),
        ffi.new("int64_t[]", sizes),
        ffi.new("void *[]", constants),
    )
    makers = [
        functools.partial(ffi.new, C_TYPES[hosts[slot]]) if slot in hosts
        else memory.maker(program.sizes[slot], "jit")
        for slot in made
    ]  # fmt: skip
    place = {slot: k for k, slot in enumerate(program.params)}
    place.update((slot, n_params + k) for k, slot in enumerate(made))
    where = [place[s] for s in program.outputs]
    start = _start(program, parts, n_given, (program, constants), writer.kernels)
    call = _call(program, start, makers, where)
    if any(slot in hosts for slot in (*program.params, *program.outputs)):
        return LinkedProgram(_with_numbers(program, call))

    def bound(last: Sequence[CData]) -> HandleFunction:
        """What takes the parameters in front of these; its pointers to them are constants of
        another program.
        """
        n, first = len(last), n_params - len(last)

        def moved(place: int) -> int:
            k = -1 - place
            if place >= 0 or k < first:
                return place
            return n - 1 - k if k >= n_params else n - 1 - (n_given + len(constants) + k - first)

        code, kernels, _, sizes, _ = parts
        pointers = ffi.new("void *[]", [*constants, *last])
        own = code, kernels, ffi.new("int64_t[]", [moved(p) for p in places]), sizes, pointers
        begin = _start(program, own, n_given - n, (program, constants, last), writer.kernels)
        return _call(program, begin, makers, [k - n for k in where])

    can_bind = not program.donations and all(k >= n_params for k in where)
    return LinkedProgram(call, bind=bound if can_bind else None)


def _number(kind: HostType, value: object) -> CData | None:
    """A pointer to a number of Python, or None when it does not fit."""
    try:
        return ffi.new(C_TYPES[kind], [value])
    except OverflowError:
        return None


def _start(
    program: Program,
    parts: tuple[CData, ...],
    n_given: int,
    keep: object,
    kernels: Sequence[Native],
) -> Callable[[Sequence[object]], None]:
    """What runs a program once pointers are there; `keep` is what the parts point to."""
    native = ffi.new("dg_program *", (*parts, len(program.sizes), n_given))
    new_slots = ffi.typeof(f"void *[{len(program.sizes) + 1}]")
    new_arena = memory.maker(program.arena, "jit")
    run, end, n = lib.dg_program_run, lib.dg_program_end, len(program.sizes)

    def start(given: Sequence[object], _keep: object = (parts, keep)) -> None:
        slots = ffi.new(new_slots)
        arena = new_arena()
        at = run(native, slots, given, arena, 0)
        if at < 0:  # a loop that runs long comes back, so that Python sees an interrupt
            try:
                while at < 0:
                    at = run(native, slots, given, arena, -at)
            except BaseException:
                end(slots + n)
                raise
        if at:
            kernels[at >> 8].failed(at & 255)

    return start


def _call(
    program: Program,
    start: Callable[[Sequence[object]], None],
    makers: Sequence[Maker],
    where: Sequence[int],
) -> HandleFunction:
    single, n_params = program.single, len(program.params)
    (first, *_) = where or [0]
    donors = [
        (where[position] - n_params, p, memory.owned_type(program.sizes[program.outputs[position]]))
        for position, p in program.donations.items()
    ]
    typeof = ffi.typeof

    def run(handles: Sequence[Any], taken: Sequence[bool] = ()) -> Any:
        if taken:
            made: list[CData | None] = [None] * len(makers)
            for (k, p, owned), give in zip(donors, taken):
                if give and typeof(handles[p]) is owned:  # not an array of the user's
                    made[k] = handles[p]
            made = [make() if h is None else h for make, h in zip(makers, made)]
        else:
            made = [make() for make in makers]
        given = (*handles, *made)
        start(given)
        return given[first] if single else tuple([given[k] for k in where])

    return run


def _with_numbers(program: Program, call: HandleFunction) -> HandleFunction:
    """A call that takes and gives numbers of Python where the program has some."""
    into = [
        (k, program.hosts[slot]) for k, slot in enumerate(program.params) if slot in program.hosts
    ]
    out = [
        (k, program.hosts[slot]) for k, slot in enumerate(program.outputs) if slot in program.hosts
    ]

    def given(handles: Sequence[Any]) -> list[Any]:
        handles = list(handles)
        for k, kind in into:
            handles[k] = _number(kind, handles[k])
            if handles[k] is None:
                raise NeedsSteps
        return handles

    def found(results: Any) -> Any:
        if not out:
            return results
        results = [results] if program.single else list(results)
        for k, kind in out:
            value = results[k][0] if isinstance(results[k], ffi.CData) else results[k]
            results[k] = bool(value) if kind is BOOL else value
        return results[0] if program.single else tuple(results)

    return lambda handles, taken=(): found(call(given(handles), taken))
