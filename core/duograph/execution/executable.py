"""Runs a lowered graph step by step in Python and frees buffers after their last use.

`execution.lower` calls `link_steps`. Programs that a backend linked into one native call are also
represented as `Executable`. Nothing here chooses kernels or plans memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from ..backend.observers import state
from ..backend.plugin_checks import as_many
from ..backend.prepared import Handle, HandleFunction
from ..backend.program import Step
from ..types import Device
from .kernel_failures import name_step

__all__ = ["Executable", "InvariantPart", "link_steps"]

_NONE: Mapping[int, int] = MappingProxyType({})


class Executable(NamedTuple):
    """A lowered graph as a function on buffer handles, and what memory it can reuse.

    Attributes:
        run: function of the parameters' handles that returns one result handle or a tuple.
        donations: position of an output -> position of the parameter whose buffer the output may
            overwrite.
        run_donating: like `run`, but a function of (donated, handles). `donated` says for each of
            `donations`, in order, whether the caller allows the parameter's buffer to be
            overwritten. None if there are no donations.
        bind: function that takes handles for the last parameters and returns a function of the
            other handles (see `LinkedProgram.bind`); None if the backend does not support that.
        invariant: the steps that depend only on rarely changing parameters, if computing them once
            for many calls pays off; else None.
        at: for a graph with symbolic sizes, the function that returns the executable for given
            values of the symbols; `run` must then not be called.
        observed: function that makes the same executable in the form that reports its kernels to
            observers. None if this executable already reports them.
    """

    run: HandleFunction
    donations: Mapping[int, int] = _NONE
    run_donating: Callable[[Sequence[bool], Sequence[Handle]], Handle] | None = None
    bind: Callable[[Sequence[Handle]], Callable[[tuple[Handle, ...]], Handle]] | None = None
    invariant: InvariantPart | None = None
    observed: Callable[[], Executable] | None = None
    at: Callable[[Sequence[int]], Executable] | None = None

    @property
    def form(self) -> Executable:
        """This executable, or, while observers are registered, its form that reports to them."""
        return self.observed() if state.building and self.observed is not None else self


class InvariantPart(NamedTuple):
    """A lowered graph split into steps computed once for many calls, and steps of every call.

    The steps computed once depend only on Parameters and captured tensors that the graph does not
    write.

    Attributes:
        reads: indices of the graph parameters whose handles `once` takes.
        once: function from these handles to a tuple of handles; it runs once for many calls.
        rest: function that makes the executable of the other steps; its calls take the graph's
            parameters, then the handles that `once` returned.
    """

    reads: tuple[int, ...]
    once: HandleFunction
    rest: Callable[[], Executable]


def link_steps(
    steps: Sequence[Step],
    n_params: int,
    constants: Mapping[int, Handle],
    outputs: tuple[int, ...],
    single: bool,
    n_slots: int,
    device: Device,
    further: Sequence[int] = (),
) -> HandleFunction:
    """Link the steps of a lowered graph into one Python function on buffer handles.

    If the graph is a single kernel call on its own parameters, the function is that kernel itself.

    Args:
        steps: kernel calls, in order.
        n_params: number of the graph's parameters, whose slots are 0 .. n_params - 1.
        constants: slot -> handle of a constant.
        outputs: slots of the results.
        single: whether the function returns a single handle instead of a tuple.
        n_slots: number of all slots.
        device: the device that runs the kernels, for messages.
        further: slots whose handles a call passes after the parameters.
    """
    if further:
        return _loop(steps, n_params, constants, outputs, single, n_slots, device, further)
    params = tuple(range(n_params))
    if len(steps) == 1 and not constants:
        (step,) = steps
        if step.operands == params and step.results == outputs and step.single == single:
            return step.call.run if single else _counted(step)
    if not steps and not constants:
        return _select(params, outputs, single)
    if single and len(steps) == 1 and steps[0].single and steps[0].results == outputs:
        found = _one_step(steps[0], n_params, constants)
        if found is not None:
            return found
    return _loop(steps, n_params, constants, outputs, single, n_slots, device)


def _counted(step: Step) -> HandleFunction:
    """Return the call of a step with several results; BackendError if some miss."""
    run, count, name = step.call.run, len(step.results), step.name

    def call(*handles: Handle) -> Sequence[Handle]:
        return as_many(run(*handles), count, name)

    return call


def _select(params: tuple[int, ...], outputs: tuple[int, ...], single: bool) -> HandleFunction:
    """Return a function that returns some of its arguments, for a graph without any step.

    Args:
        params: slots of the arguments.
        outputs: slots of the arguments to return.
        single: whether to return one argument instead of a tuple.
    """
    if single:
        i = outputs[0]
        if len(params) == 1:
            return lambda x: x
        return lambda *handles: handles[i]
    return lambda *handles: tuple([handles[i] for i in outputs])


def _one_step(step: Step, n_params: int, constants: Mapping[int, Handle]) -> HandleFunction | None:
    """Return a function that runs a graph with a single step, a kernel call; or None.

    The result is None if the call reads constants or has absent operands; the caller then uses
    `_loop`. A call on the only parameter and one constant is supported as an exception.
    """
    call = step.call.run
    operands = step.operands
    if n_params == 1 and len(operands) == 2:
        if operands[0] == 0 and operands[1] in constants:
            c = constants[operands[1]]
            return lambda x: call(x, c)
        if operands[1] == 0 and operands[0] in constants:
            c = constants[operands[0]]
            return lambda x: call(c, x)
        if operands == (0, 0):
            return lambda x: call(x, x)
    if n_params == 2 and operands == (1, 0):
        return lambda x, y: call(y, x)
    if n_params == 2 and len(operands) == 1:
        if operands[0] == 0:
            return lambda x, y: call(x)
        if operands[0] == 1:
            return lambda x, y: call(y)
    if all(0 <= i < n_params for i in operands):
        return lambda *handles: call(*[handles[i] for i in operands])
    return None


def _loop(
    steps: Sequence[Step],
    n_params: int,
    constants: Mapping[int, Handle],
    outputs: tuple[int, ...],
    single: bool,
    n_slots: int,
    device: Device,
    further: Sequence[int] = (),
) -> HandleFunction:
    """Return a function that runs all steps and drops each handle after its last use.

    The arguments are those of `link_steps`.
    """
    keep = {*outputs, *constants, *further}
    last: dict[int, int] = {}
    for k, step in enumerate(steps):
        for i in (*step.operands, *step.results):
            last[i] = k
    program = []
    for k, step in enumerate(steps):
        dead = tuple(
            i for i in dict.fromkeys((*step.operands, *step.results))
            if i >= 0 and last[i] == k and i not in keep
        )  # fmt: skip
        result: Any = step.results[0] if step.single else (step.results, step.name)
        a, b = (*step.operands, -1, -1)[:2] if len(step.operands) <= 2 else (-2, -2)
        program.append(
            (step.call.run, len(step.operands), a, b, step.operands, step.single, result, dead)
        )
    template: list[Handle] = [None] * (
        n_slots + 1
    )  # the last slot stays None: absent operands (-1)
    for i, handle in constants.items():
        template[i] = handle
    rest = template[n_params:]
    out0 = outputs[0] if outputs else -1

    def failed(error: Exception, call: HandleFunction, operands: Sequence[int]) -> None:
        step = next(s for s in steps if s.call.run is call and s.operands is operands)
        name_step(error, step, device)

    def run(*handles: Handle) -> Handle | tuple[Handle, ...]:
        if further:
            env = [*handles[:n_params], *rest]
            for i, v in zip(further, handles[n_params:], strict=True):
                env[i] = v
        else:
            env = [*handles, *rest]
        try:
            for call, arity, a, b, operands, one, result, dead in program:
                if arity == 2:
                    value = call(env[a], env[b])
                elif arity == 1:
                    value = call(env[a])
                else:
                    value = call(*[env[i] for i in operands])
                if one:
                    env[result] = value
                else:
                    slots, name = result
                    for i, v in zip(slots, as_many(value, len(slots), name)):
                        env[i] = v
                for i in dead:
                    env[i] = None
        except Exception as error:
            failed(error, call, operands)
            raise
        if single:
            return env[out0]
        return tuple([env[i] for i in outputs])

    return run
