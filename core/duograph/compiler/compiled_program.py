"""A compiled program: the graph of one function for one signature, and how a call runs it.

`compiler.function` calls a program with the tensors of the arguments. The program reads its inputs,
runs the lowered graph, rebinds the tensors that the function writes and rebuilds the result. It
never evaluates Python source, and it never decides which program serves a call.
"""

from __future__ import annotations

import collections
import copy
import dataclasses
import functools
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..backend import observers
from ..backend.plugin_checks import as_many
from ..backend.prepared import Handle, HandleFunction
from ..errors import IndexRangeError
from ..execution.cached_values import CachedValues
from ..execution.executable import Executable
from ..execution.kernel_failures import name_graph
from ..execution.lower import Optimised, lower_program
from ..execution.ownership import owns_buffer
from ..execution.source_spans import source_of
from ..frontend.diagnostics import Span, located
from ..frontend.state.evaluation import Evaluation
from ..frontend.state.inputs import tensor_at
from ..frontend.types import Value
from ..ir.dump import dump_of
from ..ir.graph import Graph
from ..ir.optimizer import Watch
from ..placement import commit
from ..runtime_state import runtime_state
from ..tensor import Tensor
from ..types import Device, TensorType
from .arguments import Slots
from .guard_code import StateChanged
from .guards import Guard
from .inputs import Input, read_input
from .interpret import interpret
from .results import Out, rebuilt

if TYPE_CHECKING:
    from ..sharding.partition import Divided
    from .symbolic_program import SymbolicProgram

__all__ = ["CompiledProgram"]

# Bytes of state up to which a program keeps the handles bound between calls.
MAX_BOUND_BYTES = 1 << 20


class _Route:
    """One of the executables of a compiled program, with its inputs and run functions.

    Every program has an executable that computes the whole graph. It may have a second one, which
    takes cached values as its last inputs. Cached values are those that depend only on state
    tensors that the program does not write, such as Parameters.

    Attributes:
        run: function from the handles of the inputs to a tuple of handles of the results.
        run_donating: like `run`, but results may reuse buffers of inputs; see
            `Executable.run_donating`.
        donors: the inputs whose buffers results may take, in the order of `Executable.donations`.
    """

    def __init__(self, executable: Executable, inputs: Sequence[Input]) -> None:
        self.run = executable.run
        self.run_donating = executable.run_donating
        self.donors = [inputs[p] for p in executable.donations.values()]
        self._bind = executable.bind

    def bound(self, last: Sequence[Handle]) -> Callable[[tuple[Handle, ...]], Handle]:
        """Return a function that runs the executable with `last` as its last input handles.

        The function takes a tuple of the handles of all other inputs.
        """
        if self._bind is not None:
            return self._bind(last)
        run = self.run
        return lambda handles: run(*handles, *last)

    def owned(self, leaves: Sequence[Tensor]) -> list[bool]:
        """Return, for each of `donors`, whether the call may overwrite the buffer of that input.

        The call may do so if nothing refers to the buffer except the input's tensor and the call's
        own list of handles. `leaves` are the tensors among the arguments.
        """
        return [owns_buffer(leaves[v] if kind == "arg" else v, 1) for kind, v in self.donors]


class _Bound:
    """Buffer handles of state tensors, valid until any tensor is bound to another buffer.

    State tensors are those that the program reads although they are not arguments.

    Attributes:
        version: `runtime_state.bindings_version` when the handles were read; None if no handles are
            bound.
        handles: the handles of the state tensors, then those of the cached values.
        route: the executable that takes these handles as its last inputs.
        run: the executable with the handles bound; None before its first use.
    """

    __slots__ = ("version", "handles", "route", "run")

    def __init__(self, version: object, handles: list[Handle], route: _Route) -> None:
        self.version = version
        self.handles = handles
        self.route = route
        self.run: Callable[[tuple[Handle, ...]], Handle] | None = None


_programs: weakref.WeakSet[CompiledProgram] = weakref.WeakSet()


def _bound_handles() -> list[list[Handle]]:
    """Return the state tensors' buffer handles that compiled programs store between calls.

    There is one list per program. `CachedValues` counts the references to buffers, to find those
    that something outside holds; it subtracts the references in these lists.
    """
    return [program._bound.handles for program in list(_programs)]


def _unbind() -> None:
    """Make every program choose its executable anew, after an observer was added or removed.

    A program has one executable that reports its kernels to observers, such as a profiler, and one
    that does not.
    """
    for program in list(_programs):
        program._bound = _Bound(None, [], program._whole)


observers.on_change.append(_unbind)


class CompiledProgram:
    """A function compiled for one signature of arguments: its graph and the lowered executable.

    State tensors are the tensors from outside the function that the graph reads as inputs.

    Args:
        graph: the graph before optimisation.
        inputs: the source of each parameter of the graph: an argument, state or a captured object.
        template: the result, with the placeholders `Out` and `Argument` for run-time values.
        writes: one tuple per written tensor: ("arg", position of the argument, output) or ("state",
            tensor, output), where `output` is the number of the graph output with the new value.
        evaluation: the evaluation that made the graph.
        device: the device that the program runs on.
        name: the name of the function, for messages.
        level: the optimisation level: "O0", "O1" or "O2".
        for_shared_tensors: see the attribute of this name.
        optimised: the graph after the passes of the level. If None, the passes run now. The graph
            is not stored.

    Attributes:
        captures: values that the evaluation took as constant, and how to look them up again.
        outside: the lists, dicts and sets that the function reads and that are not arguments, by
            id.
        only_for: arrays and frozen dataclasses among the arguments, by position, that the function
            changes, passes to Python code, or compares by identity.
        distinguishes: whether the program depends on which arguments are the same object; see
            `shared`.
        divided: how the program is divided among ranks, or None.
        symbolic: the program for many sizes (`SymbolicProgram`) from which this one was made, or
            None.
        seconds: how long compiling took.
        notes: at levels above O0, which parts of the graph were compiled to kernels, and why others
            were not.
        for_shared_tensors: whether the program serves calls in which some tensors are the same
            object; see `shared`.
    """

    def __init__(
        self,
        graph: Graph,
        inputs: list[Input],
        template: Value,
        writes: list[tuple[str, Value, int]],
        evaluation: Evaluation,
        device: Device,
        name: str,
        level: str,
        for_shared_tensors: bool = False,
        optimised: Optimised | None = None,
    ) -> None:
        self._graph: Graph | Callable[[], Graph] = graph
        self._again: Callable[[], Optimised] | None = None
        self.level = level
        self.inputs = inputs
        self.template = template
        self.writes = writes
        self.captures = evaluation.captures
        self.effects = graph.effects
        self.outside = evaluation.copies.outside()
        self.only_for: dict[int, Value] = {}
        in_place = evaluation.inputs.writes_in_place() or bool(writes)
        self._locations = [where for *_, where in evaluation.inputs.objects] if in_place else []
        self.distinguishes = in_place or evaluation.inputs.compared
        self.keep = evaluation.keep  # objects whose ids the program knows
        self.for_shared_tensors = for_shared_tensors
        self.device = device
        self.name = name
        self.divided: Divided | None = None
        self.symbolic: SymbolicProgram | None = None
        self.seconds = 0.0
        self.notes: list[str] = []
        self.dump = dump_of(name)
        self.state: list[Tensor] = [v for kind, v in inputs if kind == "state"]
        self.state_types = [t._type.plain.on(device) for t in self.state]
        self._state_ids = frozenset(map(id, self.state))
        self._compares = evaluation.inputs.compared
        self._writes_arguments = self._compares or any(kind == "arg" for kind, _, _ in writes)
        self.result_types = [
            t.on(device) if isinstance(t, TensorType) else None
            for t in (graph.types[i] for i in graph.outputs)
        ]
        single = not writes and isinstance(template, Out) and len(graph.outputs) == 1
        self._single = self.result_types[0] if single else None  # None if there are more results
        arguments = [v for kind, v in inputs if kind == "arg"]
        in_order = arguments == list(range(len(arguments)))
        self._only_arguments = (
            self._single is not None and in_order and len(arguments) == len(inputs)
        )
        kinds = [kind for kind, _ in inputs]
        self._arguments_then_state = (
            not for_shared_tensors
            and in_order
            and kinds == ["arg"] * len(arguments) + ["state"] * (len(kinds) - len(arguments))
        )
        self._lower(optimised)
        _programs.add(self)

    @property
    def graph(self) -> Graph:
        """The graph before optimisation."""
        if not isinstance(self._graph, Graph):
            self._graph = self._graph()
        return self._graph

    @property
    def serves_sizes(self) -> bool:
        """Whether the graph has symbolic sizes, and the program an executable for all of them."""
        return self._plain.at is not None

    def at(
        self,
        sizes: Sequence[int],
        graph: Callable[[], Graph],
        optimised: Callable[[], Optimised],
        result_types: list[TensorType | None],
        template: Value,
    ) -> CompiledProgram:
        """Return the program for given sizes, made from this one, whose graph has symbolic sizes.

        Args:
            sizes: the values of the symbols, in the order of `Scope.symbols`.
            graph, optimised: functions that return the graph before and after the passes for these
                sizes; they are called if something asks for the graph.
            result_types, template: see `CompiledProgram`.
        """
        assert self._plain.at is not None
        executable = self._plain.at(sizes)
        made = copy.copy(self)
        made._graph, made._again = graph, optimised
        made.result_types, made.template = result_types, template
        made._single = None if self._single is None else result_types[0]
        made.notes = list(self.notes)
        made._plain = executable
        made._use(executable, False)
        _programs.add(made)
        return made

    def _lower(self, optimised: Optimised | None) -> None:
        """Lower the graph to an executable, and prepare a second one that takes cached values.

        From level O1 on, values that depend only on state tensors, such as Parameters, that the
        program does not write are computed once and cached.
        """
        watch = None if self.dump is None else self.dump.watch()
        executable = self._plain = self._executable(watch, optimised)
        self._cached: CachedValues | None = None
        invariant = None if self.level == "O0" else executable.invariant
        if invariant is not None:
            tensors = [self.inputs[p][1] for p in invariant.reads]
            self._cached = CachedValues(
                tensors, self.device, invariant.once, _bound_handles, self.notes
            )
        self._use(executable, False)
        # bound handles keep memory alive: too much of large state, and that of donated operands
        small = sum(t.nbytes for t in self.state_types) <= MAX_BOUND_BYTES
        self._may_bind = small and not self._whole.donors

    def _executable(self, watch: Watch | None, optimised: Optimised | None) -> Executable:
        given = (self.device, watch, self.level, self.notes)
        if self._only_arguments:
            graph = dataclasses.replace(self.graph, single=True)
            if optimised is not None:
                optimised = optimised._replace(
                    graph=dataclasses.replace(optimised.graph, single=True)
                )
            return lower_program(graph, *given, optimised=optimised)
        return lower_program(self.graph, *given, self.updates(), self.unwritten(), optimised)

    def _use(self, executable: Executable, observed: bool) -> None:
        """Make `executable` the one that calls run from now on.

        Args:
            executable: an executable of the graph.
            observed: whether it reports its kernels to observers. The executable with reports and
                the one without use the same cached values.
        """
        self._observed = observed
        if self._only_arguments:
            single: HandleFunction = executable.run
            self.run_single = single
            executable = Executable(lambda *handles: (single(*handles),))
        self._whole = _Route(executable, self.inputs)
        if self._cached is not None:
            assert executable.invariant is not None
            _, once, rest = executable.invariant
            self._cached.compute = once
            self._rest = functools.cache(lambda: _Route(rest(), self.inputs))
        self._bound = _Bound(None, [], self._whole)

    def updates(self) -> dict[int, int]:
        """Return the map output position -> input position for tensors that the function writes.

        The input is the value of such a tensor before the call, the output its value after the
        call. Tensors that are not inputs, and outputs that are the new value of several tensors,
        are left out.
        """

        def key(kind: str, v: Value) -> tuple[str, int]:
            return kind, id(v) if kind == "state" else v

        tensors = ("arg", "state")
        where = {key(kind, v): k for k, (kind, v) in enumerate(self.inputs) if kind in tensors}
        pairs = [(i, where.get(key(kind, v))) for kind, v, i in self.writes if kind in tensors]
        once = collections.Counter(i for i, _ in pairs)
        return {i: k for i, k in pairs if k is not None and once[i] == 1}

    def unwritten(self) -> list[int]:
        """Return the positions of graph inputs that are state tensors the function never writes.

        State tensors, such as Parameters, are those that the graph reads and that are no arguments.
        """
        written = {id(v) for kind, v, _ in self.writes if kind == "state"}
        return [
            k for k, (kind, v) in enumerate(self.inputs) if kind == "state" and id(v) not in written
        ]

    @property
    def run(self) -> HandleFunction:
        """The program's executable: a function from input handles to a tuple of output handles."""
        return self._whole.run

    # ---- checks before a call -----------------------------------------------------------------

    def ready(self) -> bool:
        """Return whether the state tensors have exactly the types that the program is for.

        State tensors, such as Parameters, are those that the graph reads and that are no arguments.
        A type includes the device and the recording level, the number of gradient tapes that record
        the tensor. If the types match, the method may store the buffer handles of the state
        tensors. Later calls then use these handles without comparing types, until any Tensor gets
        another buffer or type.
        """
        now = runtime_state.bindings_version
        if self._bound.version is now:
            return True
        if [t._type for t in self.state] != self.state_types:
            return False
        if self._may_bind and (self._cached is None or self._cached.settled()):
            route, values = self._route()
            self._bound = _Bound(now, [*[t._buf for t in self.state], *values], route)
        return True

    def fits(self) -> bool:
        """Return whether the state tensors have the shapes and dtypes of the graph's inputs.

        State tensors, such as Parameters, are those that the graph reads and that are no arguments.
        A state tensor without a device is moved to the device of the program. The result is False
        if a state tensor is on another device.
        """
        for t, want in zip(self.state, self.state_types, strict=True):
            if t._type.device is None:
                commit(t, self.device)
            if t._type.plain is not want.plain or t._type.device is not self.device:
                return False
        return True

    def shared(self, leaves: Sequence[Tensor]) -> dict[int, int | None]:
        """Return which tensor arguments are the same object as an earlier one or a state tensor.

        If the function writes such a tensor in place, every alias must see the write; the function
        may also compare tensors with `is`. Calls in which tensors are the same object are therefore
        compiled separately. Repeated arguments are left out if the function neither writes an
        argument nor compares tensors. If the function writes in place, tensors that it reads from
        globals and attributes also count as state tensors.

        Args:
            leaves: the tensors among the arguments.

        Returns:
            a dict: position of an argument -> position of the first argument that is the same
                object, or None if the argument is also a state tensor.
        """
        found: dict[int, int | None] = {}
        first: dict[int, int] = {}
        held = {id(tensor_at(where)) for where in self._locations}
        for i, x in enumerate(leaves):
            if id(x) in self._state_ids or id(x) in held:
                found[i] = None
            elif self._writes_arguments and first.setdefault(id(x), i) != i:
                found[i] = first[id(x)]
        return found

    def is_for(self, slots: Slots) -> bool:
        """Return whether the program may serve a call with exactly these argument objects.

        Returns False if the function also reaches a list, dict or set argument in another way, such
        as by a global variable, or if an argument is not the object that `only_for` requires at its
        position.
        """
        if not all(slots.objects[i] is v for i, v in self.only_for.items()):
            return False
        return not any(id(c) in self.outside for c in slots.containers)

    # ---- running ------------------------------------------------------------------------------

    def call(
        self,
        leaves: Sequence[Tensor],
        numbers: Sequence[object] = (),
        containers: Sequence[object] = (),
    ) -> Value:
        """Run the program on arguments that match its signature and return the function's result.

        Tensors that the function changes are bound to their new values.

        Args:
            leaves: the tensors among the arguments, in the order of `arguments.Slots`.
            numbers: the numbers among the arguments that are marked mutable.
            containers: the lists, dicts and sets among the arguments.
        """
        bound = self._bound
        if self._arguments_then_state and bound.version is runtime_state.bindings_version:
            handles = [*[x._buf for x in leaves], *bound.handles]
            route = bound.route
        else:
            route, values = self._route()
            if self._arguments_then_state:
                handles = [*[x._buf for x in leaves], *[x._buf for x in self.state], *values]
            else:
                handles = self.read(leaves, numbers, containers)
                handles += values
        try:
            if route.run_donating is None:
                found = route.run(*handles)
            else:
                found = route.run_donating(route.owned(leaves), handles)
        except Exception as error:
            self.locate(error, handles[: len(self.inputs)])
            raise
        if self._single is not None:
            return Tensor._make(self._single, found[0])
        make = Tensor._make
        found = as_many(found, len(self.result_types), f"a compiled program on {self.device}")
        results = [h if t is None else make(t, h) for t, h in zip(self.result_types, found)]
        return self.finish(results, leaves, containers)

    def fast_call(self, guard: Guard) -> HandleFunction | None:
        """Return a short form of `call`, a function from argument handles to the result handle.

        The returned function may be called only with handles of Tensors of the program's argument
        types. It raises `StateChanged` if a captured value has changed, or if a tensor that the
        program reads besides its arguments may have another buffer or type. The result is None for
        programs that need other checks before a call. `guard` compares the captured values.
        """
        if self._compares or self.effects:  # after an error in a fast call, `call` repeats it
            return None
        if self._only_arguments:
            if guard.empty:
                return self.run_single
            return guard.guarded(self.run_single, len(self.inputs))
        if not (
            self._single is not None
            and self._arguments_then_state
            and self._may_bind
            and self.state
        ):
            return None
        holds = guard.holds

        def fast(*handles: Handle) -> Handle:
            bound = self._bound
            if bound.version is not runtime_state.bindings_version or not holds():
                raise StateChanged
            run = bound.run
            if run is None:
                run = bound.run = bound.route.bound(bound.handles)
            return run(handles)[0]

        return fast

    def _route(self) -> tuple[_Route, tuple[Handle, ...]]:
        """Return the executable for the next run, and the cached values to pass as last inputs.

        The tuple is empty if the executable is the one that computes the whole graph, because there
        are no cached values at present.
        """
        if self._observed is not observers.state.building:
            if self._again is not None:  # only a program lowered for its sizes has the other form
                again, self._again = self._again, None
                self._lower(again())
            self._use(self._plain.form, not self._observed)
        if self._cached is not None:
            # nothing could be cached while `_bound` holds the handles of the state
            self._bound = _Bound(None, [], self._whole)
            values = self._cached.values()
            if values is not None:
                return self._rest(), values
        return self._whole, ()

    def read(
        self, leaves: Sequence[Tensor], numbers: Sequence[object], containers: Sequence[object]
    ) -> list[Handle]:
        """Return what a call passes for each input of the program, in graph order.

        That is a buffer handle for a tensor, otherwise a number or an object. The parameters are
        those of `call`.
        """
        device = self.device
        return [read_input(source, leaves, numbers, containers, device) for source in self.inputs]

    def finish(
        self, values: Sequence[Value], leaves: Sequence[Tensor], containers: Sequence[object]
    ) -> Value:
        """Bind written tensors to their new values and return the function's result.

        Args:
            values: the outputs of the graph after a run.
            leaves: the tensors among the arguments.
            containers: the lists, dicts and sets among the arguments.
        """
        for kind, v, i in self.writes:
            target: Tensor = leaves[v] if kind == "arg" else v
            target._rebind(values[i])
        return rebuilt(self.template, values, leaves, containers)

    # ---- errors -------------------------------------------------------------------------------

    def locate(self, error: Exception, handles: Sequence[Handle]) -> None:
        """Add the user's source line to an error that a run of the program raised.

        An unexpected error of a kernel also gets a note with the op. `handles` are the inputs of
        that run.
        """
        name_graph(error, self.graph, self.device)
        spans = source_of(error)
        if spans is None and isinstance(error, IndexRangeError) and not self.effects:
            spans = self._spans_of(error, handles)
        if spans is not None:
            located(error, spans)

    def _spans_of(self, error: IndexRangeError, handles: Sequence[Handle]) -> Sequence[Span] | None:
        """Find an index error's source lines by running the graph node by node; None if not found.

        `handles` are the inputs of the run that raised the error. Running again is safe because a
        call that raises has changed nothing; the caller excludes graphs with side effects, which
        may not run twice. The result is None if the error does not occur again.
        """
        values = [
            Tensor._make(t.on(self.device), h) if isinstance(t, TensorType) else h
            for t, h in zip(self.graph.types[: self.graph.n_params], handles, strict=True)
        ]
        try:
            interpret(self.graph, values, self.device)
        except IndexRangeError as again:
            return source_of(again) if str(again) == str(error) else None
        return None
