"""Links programs: a lowered graph becomes a list of instructions that native/program.c runs in one call.

A prepared call that can be linked has an attribute `native`, which says what it would call; see `Native`.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

from duograph.backend.program import Alias, Choice, Copy, Loop, Step, steps_in

from . import memory
from ._native import ffi, lib

CALL, LIST, JOIN, COPY, ALIAS, RESET, ROTATE, UNLESS, JUMP, AGAIN, CHOOSE, END = range(12)
# Arguments of a kernel of the form CALL; native/program.c has as many cases.
MOST = 10


@dataclasses.dataclass(frozen=True)
class Native:
    """What a prepared call calls.

    Attributes:
        function: name of a function of the compiled module.
        constants: the pointer that is its first argument; owns what it points to.
        form: CALL: the results, then the operands, each a pointer. JOIN: a result, and an array of the operands. LIST:
            an array of the operands, then the results.
        failed: called with a code that is not 0; raises. None: the function returns no code.
    """

    function: str
    constants: Any
    form: int = CALL
    failed: Callable[[int], None] | None = None


def describe(call, native, overwrites=(), sure=False):
    """Let the core know how a prepared call can be linked.

    Args:
        call: a function, which is returned.
        native: what it calls.
        overwrites: pairs (operand, result) of equal size that may share memory.
        sure: whether it cannot fail.
    """
    call.native = native
    call.overwrites = tuple(overwrites)
    call.sure = sure
    return call


class _Writer:
    def __init__(self):
        self.code = []
        self.kernels = []
        self.index = {}

    def step(self, step):
        native = step.call.native
        k = self.index.setdefault(id(native), len(self.kernels))
        if k == len(self.kernels):
            self.kernels.append(native)
        slots = (*step.operands, *step.results) if native.form == LIST else (*step.results, *step.operands)
        self.code += (native.form, k, len(slots), *slots)

    def block(self, instructions):
        for each in instructions:
            kind = type(each)
            if kind is Step:
                self.step(each)
            elif kind is Copy:
                self.code += (COPY, each.source, each.target)
            elif kind is Alias:
                self.code += (ALIAS, each.source, each.target)
            elif kind is Loop:
                self.loop(each)
            else:
                self.choice(each)

    def loop(self, each):
        for _, following, spare in each.carries:  # a loop inside of a loop begins more than once
            self.code += (RESET, following, RESET, spare)
        start = len(self.code)
        self.code += (UNLESS, each.predicate, 0)
        self.block(each.body)
        for ring in each.carries:
            self.code += (ROTATE, *ring)
        self.code += (AGAIN, start)
        self.code[start + 2] = len(self.code)

    def choice(self, each):
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


def _obstacle(program):
    """Why a program cannot be linked, or None."""
    for step in steps_in(program.instructions):
        native = getattr(step.call, "native", None)
        if native is None:
            return f"{step.name} has no kernel of its own"
        too_many = len(step.operands) + len(step.results) > MOST
        if -1 in step.operands or (native.form == CALL and too_many):
            return f"{step.name} has {len(step.operands)} operands, some absent"
    return None


def link(program):
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
    parts = (
        ffi.new("int32_t[]", writer.code), ffi.new("dg_native[]", kernels), ffi.new("int64_t[]", places),
        ffi.new("int64_t[]", program.sizes), ffi.new("void *[]", list(program.constants.values())),
    )  # fmt: skip
    native = ffi.new("dg_program *", (*parts, len(program.sizes), n_given))
    makers = [memory.maker(program.sizes[slot], "jit") for slot in made]
    place = {slot: k for k, slot in enumerate(program.params)}
    place.update((slot, n_params + k) for k, slot in enumerate(made))
    return _call(program, native, parts, writer.kernels, makers, [place[s] for s in program.outputs])


def _call(program, native, parts, kernels, makers, where):
    new_slots = ffi.typeof(f"void *[{max(len(program.sizes), 1)}]")
    new_arena = memory.maker(program.arena, "jit")
    start = lib.dg_program_run
    keep = program, parts  # what the pointers in `native` point to
    single, n_params = program.single, len(program.params)
    (first, *_) = where or [0]

    def finish(given, arena):
        """Run, and go on where a long loop came back."""
        slots = ffi.new(new_slots)
        at = start(native, slots, given, arena, 0)
        while at < 0:
            at = start(native, slots, given, arena, -at)
        if at:
            kernels[at >> 8].failed(at & 255)

    def run(*handles, _keep=keep):
        given = (*handles, *[make() for make in makers])
        finish(given, new_arena())
        return given[first] if single else tuple([given[k] for k in where])

    if not program.donations:
        return run
    donors = [
        (where[position] - n_params, p, memory.owned_type(program.sizes[program.outputs[position]]))
        for position, p in program.donations.items()
    ]
    typeof = ffi.typeof

    def taking(taken, handles, _keep=keep):
        """As run; for each donation, whether the memory of the parameter becomes that of the result."""
        made = [None] * len(makers)
        for (k, p, owned), give in zip(donors, taken):
            if give and typeof(handles[p]) is owned:  # not an array of the user's
                made[k] = handles[p]
        given = (*handles, *[make() if h is None else h for make, h in zip(makers, made)])
        finish(given, new_arena())
        return given[first] if single else tuple([given[k] for k in where])

    run.taking = taking
    run.donations = program.donations
    return run
