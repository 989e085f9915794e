"""Lowers a graph to an executable for a device: graph passes, fused kernels, linking.

The tape, eager mode and compiled functions call `lower`; `compiler.compiled_program` calls
`lower_program`, which also plans for Parameters and their new values. Lowering must not depend on
the values of tensors, because the executable serves all values.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from .. import context as settings_of
from ..backend import observers, registry
from ..backend.plugin_checks import checked_reason
from ..backend.prepared import Handle, HandleFunction
from ..backend.program import Instruction, Step, steps_in
from ..backend.protocol import Backend
from ..dims import scope_of
from ..effects import Communicates, Random
from ..ir.control import is_single_op
from ..ir.graph import Graph
from ..ir.optimizer import Watch, optimizer
from ..ir.substitution import Substitution
from ..types import Device
from .executable import Executable, InvariantPart, link_steps
from .invariant_steps import Partition, partition, share_packed_operands
from .lowering import Lowering, RegionCalls
from .native_program import compiled_graph, native_program
from .optional_methods import answer
from .producer_consumer import fuse_producer_consumer
from .regions import cannot_compile, compile_regions
from .segments import native_segments
from .strided_operands import read_in_place

__all__ = ["Optimised", "lower", "lower_closed", "lower_program", "optimise"]


def lower(
    graph: Graph,
    device: Device,
    watch: Watch | None = None,
    level: str = "O0",
    notes: list[str] | None = None,
    links: bool = False,
) -> HandleFunction:
    """Run the graph passes and lower a graph to a function on a device's buffer handles.

    The arguments are those of `lower_program`. `links` says whether a graph without control flow
    becomes one native program at "O0" as well. If observers (objects to which each kernel is
    reported) are registered during the lowering, the returned function reports its kernels to them.
    """
    make = _maker(graph, device, watch, level, notes, links=links)
    return make(observers.state.building).run


def lower_program(
    graph: Graph,
    device: Device,
    watch: Watch | None = None,
    level: str = "O0",
    notes: list[str] | None = None,
    updates: Mapping[int, int] | None = None,
    state: Collection[int] = (),
    optimised: Optimised | None = None,
) -> Executable:
    """Run the graph passes of a jit level, then lower the graph to an executable.

    Args:
        graph: the graph before the passes.
        device: the device on which it will run.
        watch: function that is called with the name of each pass and the graph after it, or None.
        level: "O0" runs op by op. "O1" compiles fused regions if the backend can, and makes one
            native program of graphs without control flow. "O2" also makes one of graphs with
            control flow.
        notes: list that receives a line about what was compiled, and one for each reason why
            something was not.
        updates: position of an output -> index of the parameter whose new value it is. If the two
            can have the same memory, the executable has `donations`.
        state: indices of parameters whose values rarely change between calls and which the graph
            does not write. If it pays to compute once what depends on them alone, the executable
            has an `invariant` part.
        optimised: the graph after the passes, which are then not run unless `watch` is given.
    """
    make = _maker(graph, device, watch, level, notes, updates, state, optimised=optimised)
    return make(False)._replace(observed=functools.cache(functools.partial(make, True)))


def _maker(
    graph: Graph,
    device: Device,
    watch: Watch | None,
    level: str,
    notes: list[str] | None,
    updates: Mapping[int, int] | None = None,
    state: Collection[int] = (),
    links: bool = False,
    optimised: Optimised | None = None,
) -> Callable[[bool], Executable]:
    """Run the graph passes; return a function that lowers the resulting graph.

    The returned function takes a bool: whether the executable reports its kernels to observers. The
    arguments are those of `lower_program`.

    Args:
        links: whether a graph without control flow becomes one native program at "O0" as well. The
            program calls the same kernels.
    """
    notes = [] if notes is None else notes
    whole = None if level == "O0" else compiled_graph(graph, device, watch, notes)
    if whole is not None:
        return whole.__getitem__
    if optimised is None or watch is not None:
        optimised = optimise(graph, device, watch, level, state)
    graph, problem, from_passes = optimised
    if problem is not None:
        notes.append(f"runs op by op: {problem}")
    regions: RegionCalls = {}
    if level != "O0" and problem is None:
        regions, (line, *missing) = compile_regions(graph, device)
        notes += [line, *from_passes, *missing]

    def make(observed: bool) -> Executable:
        told = [] if observed else notes
        work = _GraphLowering(graph, device, regions, level, told, None, links, observed)
        return work.executable(updates or {}, state)

    return make


class Optimised(NamedTuple):
    """A graph after the passes of a jit level.

    Attributes:
        graph: the graph.
        problem: why the backend cannot compile regions, so that the graph runs op by op; None if it
            can.
        notes: lines of the passes for the user.
    """

    graph: Graph
    problem: str | None
    notes: list[str]


def optimise(
    graph: Graph, device: Device, watch: Watch | None, level: str, state: Collection[int]
) -> Optimised:
    """Run the graph passes of a jit level; return the new graph and notes on it.

    The arguments are those of `lower_program`.
    """
    problem = None if level == "O0" else cannot_compile(device)
    fuses = level != "O0" and problem is None
    notes: list[str] = []
    if fuses or watch is not None or settings_of.settings.debug or not is_single_op(graph):
        graph = optimizer().optimize(graph, device, level if fuses else "O0", watch, notes, state)
    return Optimised(graph, problem, notes)


def lower_closed(
    graph: Graph,
    device: Device,
    regions: RegionCalls | None = None,
    level: str = "O0",
    backend: Backend | None = None,
    observed: bool = False,
) -> HandleFunction:
    """Lower a graph that the passes have already rewritten, or a sub-graph of one, to a function.

    The function takes and returns buffer handles.

    Args:
        graph: the graph.
        device: the device on which it will run.
        regions: the compiled calls of fused regions; None if there are no such calls.
        level: the jit level.
        backend: the backend; None stands for the backend of the device.
        observed: whether the kernels report to observers.
    """
    work = _GraphLowering(graph, device, regions or {}, level, None, backend, False, observed)
    return work.executable({}, ()).run


def _with_invariant(
    whole: Executable, invariant: InvariantPart
) -> Callable[[Sequence[int]], Executable]:
    """Return `Executable.at` of a program for many sizes that has an invariant part.

    The steps computed once do not depend on sizes, so all sizes use the same function for them. The
    program without an invariant part, `whole`, is made at its first use: most sizes need it never.
    """
    rest = invariant.rest().at
    assert rest is not None and whole.at is not None

    def at(values: Sequence[int]) -> Executable:
        assert rest is not None and whole.at is not None
        made = functools.cache(functools.partial(whole.at, values))

        def run(*handles: Handle) -> Handle:
            return made().run(*handles)

        def run_donating(donated: Sequence[bool], handles: Sequence[Handle]) -> Handle:
            run = made().run_donating
            assert run is not None
            return run(donated, handles)

        return Executable(
            run,
            whole.donations,
            run_donating if whole.donations else None,
            invariant=invariant._replace(rest=functools.partial(rest, values)),
        )

    return at


class _GraphLowering:
    """Lowers one graph that has been through the passes to an executable for a device.

    Attributes:
        work: the `Lowering` with the instructions, constants and sizes that it collected.
        params, outputs: slots (numbers of run-time values) of the graph's parameters and results.
        graph, device, regions, level, notes, links, observed: see `lower_closed` and `_maker`.
    """

    def __init__(
        self,
        graph: Graph,
        device: Device,
        regions: RegionCalls,
        level: str,
        notes: list[str] | None,
        backend: Backend | None = None,
        links: bool = False,
        observed: bool = False,
    ) -> None:
        self.graph = graph
        self.links = links
        self.observed = observed
        self.device = device
        self.regions = regions
        self.level = level
        self.notes = [] if notes is None else notes
        backend = registry.backend(device.name) if backend is None else backend
        inside = functools.partial(
            lower_closed, regions=regions, level=level, backend=backend, observed=observed
        )
        self.work = Lowering(backend, device, regions, level, inside, observed)
        self.params = self.work.parameters(graph)
        self.outputs = self.work.graph(graph, self.params, True)

    def executable(self, updates: Mapping[int, int], state: Collection[int]) -> Executable:
        """Return the lowered graph as an executable; `lower_program` describes the arguments.

        If it pays, the executable has an `invariant` part: the steps that depend only on `state`.
        """
        whole = self._linked(self.work.steps, (), self.notes, updates)
        if whole is None:  # there are loops or branches, which only a native program runs
            lower_level = _GraphLowering(
                self.graph, self.device, self.regions, "O1", self.notes, observed=self.observed
            )
            return lower_level.executable(updates, state)
        found = self._partition(state) if state else None
        if found is None:
            return whole
        self.notes.append(str(found))
        work = self.work
        once = link_steps(
            work.runnable(found.once),
            0,
            work.constants,
            found.kept,
            False,
            len(work.sizes),
            work.device,
            found.reads,
        )
        rest = functools.cache(functools.partial(self._rest, found, updates))
        invariant = InvariantPart(found.reads, once, rest)
        if whole.at is None:
            return whole._replace(invariant=invariant)
        rest()  # it asks questions about sizes, which must become guards now
        return whole._replace(invariant=invariant, at=_with_invariant(whole, invariant))

    def _partition(self, state: Collection[int]) -> Partition | None:
        """Divide the steps into those whose results many calls can use and those of every call.

        Returns None if this is unsafe or does not pay. `state` has the indices of the parameters
        whose values rarely change between calls.
        """
        work = self.work
        if (
            type(work.backend).exclusive is Backend.exclusive
        ):  # the default of the base class: always False
            return None
        if any(not isinstance(e, Random) for e in self.graph.effects):
            return None  # Python could change the state during the call
        return partition(work.steps, set(state), set(work.constants), work.sizes, set(self.outputs))

    def _segments(self, instructions: Sequence[Instruction], notes: list[str]) -> list[Instruction]:
        """Replace each stretch of kernel calls between the collectives of a program by one C call.

        Returns the new instructions, and appends a line about them to `notes`. If the backend
        cannot link programs, the instructions are returned unchanged, without a line.
        """
        work = self.work
        reason = answer(
            work.backend, "links", lambda: checked_reason(work.backend.links(self.device.index))
        )
        if reason is not None:
            return list(instructions)
        found, count = native_segments(
            instructions, self.outputs, work.sizes, work.constants, work.types, work.backend,
            self.device, "O1",
        )  # fmt: skip
        notes.append(f"{count} native calls between collectives and other Python")
        return found

    def _rest(self, found: Partition, updates: Mapping[int, int]) -> Executable:
        """Return the executable of the steps that every call runs.

        Args:
            found: the division of all steps.
            updates: as for `lower_program`.
        """
        rest = self._linked(found.rest, found.kept, [], updates)
        assert rest is not None  # the whole graph was linked
        return rest

    def _stepwise(self, sizes: Sequence[int]) -> HandleFunction:
        """Return a function that runs the graph step by step in Python.

        `sizes` are the values of the symbols in it.
        """
        graph, regions = self.graph, self.regions
        if sizes:
            scope = scope_of(self.work.sizes)
            assert scope is not None
            graph = Substitution(dict(zip(scope.symbols, sizes, strict=True))).graph(graph)
            regions, _ = compile_regions(graph, self.device)
        return lower_closed(graph, self.device, regions, "O1", observed=self.observed)

    def _linked(
        self,
        instructions: Sequence[Instruction],
        further: tuple[int, ...],
        notes: list[str],
        updates: Mapping[int, int],
    ) -> Executable | None:
        """Make an executable of instructions: a native program if possible, else a Python function.

        `further` are slots whose handles a call passes after the graph's parameters;
        `lower_program` describes `notes` and `updates`. The result is None if there are loops or
        branches among the instructions and the backend makes no native program of them.
        """
        work = self.work
        if self.level != "O0" or self.links:
            one_step = len(instructions) == 1 and isinstance(instructions[0], Step)
            if self.level != "O0" and instructions and not one_step:
                shared = share_packed_operands(instructions, work.sizes)
                fused = fuse_producer_consumer(shared, self.outputs)
                instructions = read_in_place(fused, self.outputs)
                left_out = sum(1 for _ in steps_in(fused)) - sum(1 for _ in steps_in(instructions))
                if left_out:
                    notes.append(f"{left_out} copies left out: kernels read operands in place")
            params = [*self.params, *further]
            native = native_program(
                work, self.graph, instructions, params, self.outputs, updates, notes, self._stepwise
            )
            if native is not None:
                return native
        if self.level != "O0" and not self.observed and Communicates() in self.graph.effects:
            instructions = self._segments(instructions, notes)
        run = work.stepwise(self.graph, instructions, further, self.outputs)
        return None if run is None else Executable(run)
