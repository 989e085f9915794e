"""Turns a whole graph into one C call, by `Backend.compile_graph` or by `Backend.link`.

Above level O0, `execution.lower` calls `compiled_graph` before lowering, and after lowering
`native_program`, which plans memory. If both return None the graph runs step by step in Python.
Nothing here chooses kernels or changes what instructions compute.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from .. import context
from ..backend import registry
from ..backend.checked_calls import to_device
from ..backend.observers import reporting
from ..backend.plugin_checks import as_linked, checked_reason, error_text
from ..backend.prepared import Handle, HandleFunction, LinkedProgram
from ..backend.prepared_calls import added_call
from ..backend.program import Copy, HostStep, Instruction, NeedsSteps, Program, Step, steps_in
from ..backend.protocol import Backend
from ..dims import symbols_in
from ..errors import BackendError, DuographError
from ..ir.graph import Graph, GraphNode
from ..ir.optimizer import Watch, optimizer
from ..types import STACK, Device, HostType, TensorType, ValueType
from .control import draw_call
from .executable import Executable
from .kernel_checks import checked_program
from .lowering import Lowering
from .memory_plan import plan_memory
from .observed import timed_program, watched_graph
from .optional_methods import answer

__all__ = ["compiled_graph", "native_program"]


def native_program(
    work: Lowering,
    graph: Graph,
    instructions: Sequence[Instruction],
    params: Sequence[int],
    outputs: Sequence[int],
    updates: Mapping[int, int],
    notes: list[str],
    stepwise: Callable[[Sequence[int]], HandleFunction],
) -> Executable | None:
    """Plan memory and link a lowered graph to one native program, or return None.

    The result is None if the graph cannot be linked, or if it is one step and nothing is gained.

    Args:
        work: the lowered graph.
        graph: the graph that was lowered.
        instructions: all instructions of `work`, or some of them.
        params: slots of the handles that a call receives: the graph's parameters, and what else the
            instructions read.
        outputs: slots of the results.
        updates: position of an output -> slot of the parameter whose new value it is.
        notes: list that receives lines about the program, or the reason why there is none.
        stepwise: function that makes a function that runs the same graph step by step; it is called
            when the native program meets a value that it cannot compute. It takes the values of the
            symbols if sizes are symbolic.
    """
    if any(work.hosts.get(slot) is STACK for slot in (*params, *outputs)):
        work.python = work.python or "a stack"
    if work.level != "O2" and work.hosts:
        work.python = work.python or "a Python number"
    if work.python:
        notes.append(f"runs step by step: {work.python} runs in Python")
        return None
    draws: list[Step] = []
    steps: list[Instruction] = []
    for each in instructions:
        if isinstance(each, Step) and each.name == "random_state":
            draws.append(each)
        else:
            steps.append(each)
    # if a number does not fit into C's type, the program runs again, and would draw numbers twice
    if draws and any(isinstance(s, HostStep) for s in steps_in(instructions)):
        notes.append("runs step by step: random ops beside Python numbers")
        return None
    sized = symbols_in(work.sizes)
    if len(steps) < 2 and not (updates or sized) and all(isinstance(s, Step) for s in steps):
        return None  # nothing to gain
    backend, index = work.backend, work.device.index
    if answer(backend, "links", lambda: checked_reason(backend.links(index))) is not None:
        return None
    given = [*params, *(s.results[0] for s in draws)]
    program, summary = _planned(work, graph, steps, given, outputs, updates)
    linked = _linked(work, program, [graph.types[i] for i in graph.outputs])
    if isinstance(linked, str):
        notes.append(f"runs step by step: {linked}")
        return None
    if work.observed:
        told = timed_program(linked, steps, work.device)
        if told is None:
            return None
        linked = LinkedProgram(told, linked.donations)
    calls, n_params = [s.call.run for s in draws], graph.n_params

    def executable(linked: LinkedProgram, sizes: Sequence[int]) -> Executable:
        steps_for = functools.cache(functools.partial(stepwise, sizes)) if work.hosts else None
        owner = f"the program that link() of the {backend.name} backend made"
        return _executable(linked, owner, calls, program.donations, steps_for, n_params)

    notes += [f"one native program of {len(list(steps_in(steps)))} kernels", summary]
    if not sized:
        return executable(linked, ())
    at = linked.at
    if at is None:
        notes.append(f"the {backend.name} backend links no programs with symbolic sizes")
        return None
    return Executable(linked.run, program.donations, at=lambda sizes: executable(at(sizes), sizes))


def compiled_graph(
    graph: Graph, device: Device, watch: Watch | None, notes: list[str]
) -> tuple[Executable, Executable] | None:
    """Ask the backend to compile a whole graph (`Backend.compile_graph`); None if it does not.

    The backend receives the graph after the clean-up passes of O0; states that the graph draws from
    the random generator are further parameters. The second executable of the result is the form of
    the first that reports to observers.

    Args:
        graph: the graph before all passes.
        device: the device on which it will run.
        watch: function that is called with the name of each pass and the graph after it, or None.
        notes: list that receives a line if the graph was compiled, or the backend's reason.
    """
    backend, index = registry.backend(device.name), device.index
    if type(backend).compile_graph is Backend.compile_graph:
        return None
    reason = _not_offered(graph)
    if reason is not None:
        notes.append(f"not compiled as a whole: {reason}")
        return None
    graph, draws = _without_draws(optimizer().optimize(graph, device, "O0", watch, [], ()))
    results = [graph.types[i] for i in graph.outputs]

    def ask() -> LinkedProgram | str | None:
        found = backend.compile_graph(graph, index)
        if found is None or isinstance(found, str):
            return found
        return as_linked(found, graph.n_params, len(results))

    added = _added_kernel(graph, backend, index)
    if added is not None:
        notes.append(f"not compiled as a whole: {added}")
        return None
    with reporting("compile", f"compile a graph of {len(graph.nodes)} ops", repr(device)):
        linked = answer(backend, "compile_graph", ask)
    if linked is None or isinstance(linked, str):
        notes += [f"not compiled as a whole: {linked}"] if linked else []
        return None
    notes.append("compiled as a whole by the backend")
    linked = _checked(linked, results, backend, index, "compile_graph")
    told = LinkedProgram(watched_graph(linked.run, graph, device), linked.donations)
    owner = f"the program that compile_graph() of the {backend.name} backend made"

    def executable(program: LinkedProgram, observed: bool) -> Executable:
        taken = [_draw(node, backend, device, observed) for node in draws]
        return _executable(program, owner, taken, {}, None, graph.n_params)

    return executable(linked, False), executable(told, True)


def _not_offered(graph: Graph) -> str | None:
    """Return why a graph does not qualify for compilation as a whole by a backend, or None.

    Its parameters and results must be tensors. No node of the graph or of its sub-graphs may have
    side effects or run on the host, except draws from the random generator outside of sub-graphs.
    """
    ends = [*graph.types[: graph.n_params], *[graph.types[i] for i in graph.outputs]]
    if not all(isinstance(t, TensorType) for t in ends):
        return "it takes or returns a Python value"
    return _impure(graph, {"random_state"})


def _impure(graph: Graph, allowed: Collection[str]) -> str | None:
    """Return a text about the first op that has side effects or runs on the host, or None.

    Sub-graphs are searched too. `allowed` are names of ops that the graph itself may have.
    """
    for node in graph.nodes:
        inner = next(filter(None, [_impure(g, ()) for g in node.graphs]), None)
        if inner is not None:
            return inner
        if (node.effects or node.op.host) and node.op.name not in allowed:
            return f"{node.op.name} has side effects or runs in Python"
    return None


def _without_draws(graph: Graph) -> tuple[Graph, list[GraphNode]]:
    """Turn the states that a graph draws from the random generator into further parameters.

    Returns:
        the graph, whose last parameters are the drawn states in the order of the draws; and the
        nodes that were replaced.
    """
    draws = [node for node in graph.nodes if node.op.name == "random_state"]
    if not draws:
        return graph, draws
    drawn = [node.results[0] for node in draws]
    order = [*range(graph.n_params), *drawn]
    order += [i for i in range(graph.n_params, len(graph.types)) if i not in drawn]
    numbers: dict[int | None, int | None] = {None: None}
    numbers |= {old: new for new, old in enumerate(order)}

    def renumbered(ids: Sequence[int | None]) -> tuple[Any, ...]:
        return tuple([numbers[i] for i in ids])

    made = Graph(
        n_params=graph.n_params + len(draws),
        types=[graph.types[i] for i in order],
        nodes=[
            dataclasses.replace(
                node, operands=renumbered(node.operands), results=renumbered(node.results)
            )
            for node in graph.nodes
            if node.op.name != "random_state"
        ],
        outputs=renumbered(graph.outputs),
        single=graph.single,
        varying=graph.varying,
    )
    return made, draws


def _draw(
    node: GraphNode, backend: Backend, device: Device, observed: bool
) -> Callable[[], Handle]:
    """Return the function of a draw from the random generator; it returns a handle of the state.

    `observed` says whether it reports its copy to the device to observers.
    """
    copy_in = functools.partial(to_device, backend) if observed else backend.copy_in
    return draw_call(node.attributes["take"], copy_in, device.index)


def _added_kernel(graph: Graph, backend: Backend, index: int) -> str | None:
    """Return a note if a plugin's kernel computes an op of a graph, else None.

    The plugin adds kernels to a backend that is not its own. The note names the first such op and
    the plugin; sub-graphs are searched too.
    """
    for node in graph.nodes:
        kinds = tuple([None if i is None else graph.types[i] for i in node.operands])
        if not node.op.graph_only and not any(isinstance(t, HostType) for t in kinds):
            types: tuple[TensorType | None, ...] = kinds  # type: ignore[assignment]
            call = added_call(backend, node.op, types, node.attributes, index)
            if call is not None:
                return f"{node.op.name} is computed by the kernel of {call.owner}"
        for inner in node.graphs:
            found = _added_kernel(inner, backend, index)
            if found is not None:
                return found
    return None


def _linked(work: Lowering, program: Program, results: Sequence[ValueType]) -> LinkedProgram | str:
    """Ask the backend to link a program into one native call.

    Returns that call, or the backend's reason to refuse. `results` are the types of the results.
    """
    backend, index = work.backend, work.device.index

    def ask() -> LinkedProgram | str:
        found = backend.link(program, index)
        if isinstance(found, str):
            return found
        return as_linked(found, len(program.params), len(program.outputs))

    if work.observed:  # the second form, for observers: not reported
        linked = answer(backend, "link", ask)
    else:
        with reporting("compile", f"link {len(program.instructions)} steps", repr(work.device)):
            linked = answer(backend, "link", ask)
    return linked if isinstance(linked, str) else _checked(linked, results, backend, index, "link")


def _checked(
    linked: LinkedProgram, results: Sequence[ValueType], backend: Backend, index: int, method: str
) -> LinkedProgram:
    """Return a program that, in debug mode, checks the number and buffers of its results.

    `method` is the method of the backend that made it.
    """
    if not context.settings.debug:
        return linked
    bind = linked.bind

    def bound(last: Sequence[Handle]) -> Callable[[tuple[Handle, ...]], Handle]:
        assert bind is not None
        return checked_program(bind(last), results, backend, index, method)

    return linked._replace(
        run=checked_program(linked.run, results, backend, index, method),
        bind=None if bind is None else bound,
    )


def _planned(
    work: Lowering,
    graph: Graph,
    steps: list[Instruction],
    given: Sequence[int],
    outputs: Sequence[int],
    updates: Mapping[int, int],
) -> tuple[Program, str]:
    """Plan the memory of instructions; return the program to link, and a line for the log.

    `given` are the slots that a call receives. A result that is a constant, or that has the memory
    of another slot, is copied to a new slot.
    """
    slots = list(outputs)
    for position, slot in enumerate(slots):
        if slot in work.constants or slot in work.aliases:  # a result has memory of its own
            slots[position] = work.slot(graph.types[graph.outputs[position]])
            steps.append(Copy(slot, slots[position]))
    plan = plan_memory(steps, [*given, *work.constants], work.sizes, slots, updates)
    program = Program(
        instructions=tuple(steps),
        params=tuple(given),
        constants=work.constants,
        hosts=work.hosts,
        sizes=work.sizes,
        places=plan.places,
        shares=plan.shares,
        arena=plan.arena,
        outputs=tuple(slots),
        single=graph.single,
        donations=plan.donations,
        level=work.level,
        updates=updates,
        types=work.types,
    )
    return program, str(plan)


def _executable(
    linked: LinkedProgram,
    name: str,
    draws: Sequence[Callable[[], Handle]],
    planned: Mapping[int, int],
    stepwise: Callable[[], HandleFunction] | None,
    n_params: int,
) -> Executable:
    """Wrap a program that the backend linked into one C call as an `Executable`.

    Args:
        linked: the program; it takes one list of buffer handles.
        name: what the program is, for errors.
        draws: functions that advance the random generator and return its state; each call passes
            these states after the other handles.
        planned: donations of the memory plan; used if the program names none of its own.
        stepwise: function that makes a function that runs the same graph in Python, for values that
            the native program cannot compute; None if there are no such values.
        n_params: number of the graph's parameters, which the function made by `stepwise` takes.
    """
    run = linked.run

    def run_plain(*handles: Handle) -> Handle:
        try:
            return run(handles)
        except Exception as error:
            _name(error, name)
            raise

    def run_donating(donated: Sequence[bool], handles: Sequence[Handle]) -> Handle:
        given = [*handles, *[draw() for draw in draws]] if draws else handles
        try:
            return run(given, donated)
        except NeedsSteps:
            assert stepwise is not None
            return stepwise()(*handles[:n_params])
        except Exception as error:
            if stepwise is None:  # else it may be an error of Python's numbers, which is the user's
                _name(error, name)
            raise

    donations = planned if linked.donations is None else linked.donations
    donating = run_donating if donations else None
    if draws or stepwise is not None:
        return Executable(lambda *handles: run_donating((), handles), donations, donating)
    return Executable(run_plain, donations, donating, linked.bind)


def _name(error: Exception, name: str) -> None:
    """Raise BackendError, which names a program, after a call of it has raised an error.

    Returns if the plugin interface allows the error in a kernel; it reaches the user unchanged.
    """
    if not isinstance(error, (DuographError, IndexError, MemoryError)):
        raise BackendError(f"{name} raised {error_text(error)}") from error
