"""A compiled program: the graph of one function for one signature, and how it is run."""

from __future__ import annotations

import collections
import dataclasses
import functools
import weakref
from collections.abc import Callable
from sys import getrefcount
from typing import Any

import numpy as np

from .. import passes
from ..autodiff.node_plans import GraphPlan
from ..autodiff.tape import Node, Output, edge_of
from ..backend import registry
from ..dtype import float32
from ..errors import DeviceError, IndexRangeError
from ..frontend.diagnostics import located
from ..frontend.state.evaluation import Evaluation
from ..ir.dump import dump_of
from ..ir.graph import Graph
from ..runtime import regions  # noqa: F401  (`lower` loads it at the first call)
from ..runtime.lower import lower
from ..runtime.still import Still
from ..runtime_state import runtime_state
from ..tensor import Tensor, commit
from ..types import Device, TensorType
from .guards import Guard
from .results import Out, rebuilt

__all__ = ["Changed", "Program"]

# Bytes of state up to which a program remembers the handles.
_SMALL = 1 << 20


def _alone() -> int:
    """What `getrefcount` says of a handle that a tensor and a list of handles hold, in an
    expression as in `_taken`.
    """
    t = Tensor._make(TensorType.of((), float32), object())
    handles = [t._buf]
    (count,) = [getrefcount((t if kind == "arg" else v)._buf) for kind, v in [("arg", t)]]
    del handles
    return count


_ALONE = _alone()


class _Way:
    """One way to run a program.

    Attributes:
        run: from handles to a tuple of handles.
        taking: the same where new values of state may take the memory of the old ones, see
            `runtime.lower`; or None.
        donors: the inputs that give their memory.
    """

    def __init__(self, run: Callable[..., Any], inputs: list[tuple[str, Any]]) -> None:
        self.run = run
        self.taking: Callable[..., Any] | None = getattr(run, "taking", None)
        self.donors = [inputs[p] for p in getattr(run, "donations", {}).values()]

    def bound(self, last: list[Any]) -> Callable[[tuple[Any, ...]], Any]:
        """What runs it on handles of the inputs in front of these, see `Backend.link`."""
        run = self.run
        made = getattr(run, "bound", None)
        found: Callable[[tuple[Any, ...]], Any]
        found = (lambda handles: run(*handles, *last)) if made is None else made(last)
        return found


def _taken(donors: list[tuple[str, Any]], leaves: list[Tensor]) -> list[bool]:
    """For each donor, whether nobody but the tensor holds the memory; the list of handles does so
    too.
    """
    return [getrefcount((leaves[v] if kind == "arg" else v)._buf) == _ALONE for kind, v in donors]


_programs: weakref.WeakSet[Program] = weakref.WeakSet()


def _all_held() -> list[list[Any]]:
    """The handles that programs hold of their state."""
    return [program._held[1] for program in list(_programs)]


class Changed(Exception):
    """A program may not run as it is; see `Program.short`."""


class Program:
    """One compiled signature.

    Attributes:
        graph: before optimisation; what gradients are taken of.
        inputs: what its parameters are read from: ("arg", i), ("number", i), ("state", tensor), ...
        writes: per written tensor: ("arg", i) or ("state", tensor), and the output with its value.
        captures: what was taken as constant, with how to look it up.
        seconds: that compiling took.
        knows_shared: whether it is for arguments of which some are one object, and not among the
            inputs: see `shared`.
        simple: whether it is one Tensor of its arguments, in their order.
        run: from handles of the inputs to a tuple of handles.
        run_single: the same of a simple program, to the handle of its only result.
    """

    def __init__(
        self,
        graph: Graph,
        inputs: list[tuple[str, Any]],
        template: Any,
        writes: list[tuple[str, Any, int]],
        evaluation: Evaluation,
        device: Device,
        name: str,
        level: str,
        knows_shared: bool = False,
    ) -> None:
        self.graph = graph
        self.level = level
        self.inputs = inputs
        self.template = template
        self.writes = writes
        self.captures = evaluation.captures
        self.effects = graph.effects
        self.keep = evaluation.keep
        self.knows_shared = knows_shared
        self.device = device
        self.name = name
        self.state: list[Tensor] = [v for kind, v in inputs if kind == "state"]
        self._writes_arguments = any(kind == "arg" for kind, _, _ in writes)
        self._state_ids = frozenset(map(id, self.state))
        self.state_types = [t._type.plain.on(device) for t in self.state]
        self.out_types = [graph.types[i] for i in graph.outputs]
        self.tensor_types = [
            t.on(device) if isinstance(t, TensorType) else None for t in self.out_types
        ]
        self.seconds = 0.0
        self.hits = 0
        self.dump = dump_of(name)
        self.notes: list[str] = []  # of compiling: see `runtime.lower`
        self._plans: dict[tuple[bool, ...], Any] = {}
        kinds = [k for k, _ in inputs]
        alone = not writes and isinstance(template, Out) and len(graph.outputs) == 1
        self._single = self.tensor_types[0] if alone else None  # the type of the only result
        self.simple = (
            self._single is not None
            and kinds == ["arg"] * len(kinds)
            and [v for _, v in inputs] == list(range(len(kinds)))
        )
        watch = None if self.dump is None else self.dump.watch()
        if self.simple:
            single = lower(
                dataclasses.replace(graph, single=True), device, watch, level, self.notes
            )
            self.run_single = single
            self.run: Callable[..., Any] = lambda *handles: (single(*handles),)
        else:
            self.run = lower(
                graph, device, watch, level, self.notes, self._updates(), self._unwritten()
            )
        self._way = _Way(self.run, inputs)
        # what follows from state alone; see `runtime.still`
        divided = None if level == "O0" else getattr(self.run, "divided", None)
        self._still: Still | None = None
        if divided is not None:
            tensors = [inputs[p][1] for p in divided.reads]
            self._still = Still(tensors, device, divided.once, _all_held, self.notes)
            self._rest = functools.cache(lambda: _Way(divided.rest, inputs))
        # handles of the state, right while `rebound` is the same; of much state, or with donors,
        # they would keep memory last, once it is asked for: the way bound to them
        self._held: tuple[Any, list[Any], _Way, Any] = (None, [], self._way, None)
        _programs.add(self)
        self._holds = not self._way.donors and sum(t.nbytes for t in self.state_types) <= _SMALL
        n_args = sum(k == "arg" for k in kinds)
        self._plain_order = (
            not knows_shared
            and kinds == ["arg"] * n_args + ["state"] * (len(kinds) - n_args)
            and [v for k, v in inputs if k == "arg"] == list(range(n_args))
        )

    # ---- running ------------------------------------------------------------------------------

    def ready(self) -> bool:
        """Whether the state is as it was compiled for: on the device, unrecorded, of the same
        types.
        """
        now = runtime_state.bindings_version
        if self._held[0] is now:
            return True
        if [t._type for t in self.state] != self.state_types:
            return False
        if self._holds and (self._still is None or self._still.settled()):
            way, values = self._kept()
            self._held = (now, [*[t._buf for t in self.state], *values], way, None)
        return True

    def fits(self) -> bool:
        """Whether the state has the shapes and dtypes that it was compiled for; commits what is on
        no device.
        """
        for t, want in zip(self.state, self.state_types, strict=True):
            if t._type.device is None:
                commit(t, self.device)
            if t._type.plain is not want.plain:
                return False
            if t._type.device is not self.device:
                raise DeviceError(
                    f"{self.name}: got arguments on {self.device} and a Parameter or captured Tensor on "
                    f"{t._type.device}; wanted all on one device: move one with move_to"
                )
        return True

    def shared(self, leaves: list[Tensor] | tuple[Tensor, ...]) -> dict[int, int | None]:
        """Which of these arguments are one object with another, or with state, while the function
        writes in place.

        What is written to one must then be seen in the other: there is a program of its own for
        that.

        Returns:
            place of an argument -> that of the first which is the same object; None: it is state.
        """
        found: dict[int, int | None] = {}
        first: dict[int, int] = {}
        for i, x in enumerate(leaves):
            if id(x) in self._state_ids:
                found[i] = None
            elif self._writes_arguments and first.setdefault(id(x), i) != i:
                found[i] = first[id(x)]
        return found

    def call(self, leaves: list[Tensor], numbers: list[Any], containers: list[Any]) -> Any:
        """Run on arguments that match the signature."""
        held = self._held
        if self._plain_order and held[0] is runtime_state.bindings_version:
            handles = [*[x._buf for x in leaves], *held[1]]
            way = held[2]
        else:
            way, values = self._kept()
            if self._plain_order:
                handles = [*[x._buf for x in leaves], *[x._buf for x in self.state], *values]
            else:
                handles = [
                    self._read(kind, v, leaves, numbers, containers) for kind, v in self.inputs
                ]
                handles += values
        try:
            if way.taking is None:
                found = way.run(*handles)
            else:
                found = way.taking(_taken(way.donors, leaves), handles)
        except Exception as error:
            self._locate(error, handles[: len(self.inputs)])
            raise
        if self._single is not None:
            return Tensor._make(self._single, found[0])
        return self._results(found, leaves, containers, None)

    def _locate(self, error: Exception, handles: list[Any]) -> None:
        """Say in an error of a call where in the source it arose."""
        place = getattr(error, "_duograph_place", None)
        if place is None and isinstance(error, IndexRangeError) and not self.effects:
            place = self._place_of(error, handles)
        if place is not None:
            located(error, place)

    def _place_of(self, error: IndexRangeError, handles: list[Any]) -> Any:
        """Where an error of a kernel belongs: node by node, it is raised again there.

        A call that raises has changed nothing; but what prints or draws may not run twice.
        """
        from .interpret import interpret

        types = [self.graph.types[i] for i in range(self.graph.n_params)]
        pairs = zip(types, handles, strict=True)
        values = [
            Tensor._make(t.on(self.device), h) if isinstance(t, TensorType) else h for t, h in pairs
        ]
        try:
            interpret(self.graph, values, self.device)
        except IndexRangeError as again:
            return getattr(again, "_duograph_place", None) if str(again) == str(error) else None
        return None

    def short(self, guard: Guard) -> Callable[..., Any] | None:
        """What may be called with the handles of the arguments instead of `call`, while they keep
        their types.

        It gives the handle of the result, and raises `Changed` where something else is not as it
        was. None for programs of which more than that would have to be looked at.
        """
        if self.simple and guard.empty:
            return self.run_single
        if not (self._single is not None and self._plain_order and self._holds and self.state):
            return None
        holds = guard.holds

        def short(*handles: Any) -> Any:
            token, state, way, run = self._held
            if token is not runtime_state.bindings_version or not holds():
                raise Changed
            self.hits += 1
            if run is None:
                run = way.bound(state)
                self._held = (token, state, way, run)
            return run(handles)[0]

        return short

    def _updates(self) -> dict[int, int]:
        """Output -> the input of which it is the new value."""

        def key(kind: str, v: Any) -> Any:
            return kind, id(v) if kind == "state" else v

        tensors = [
            (k, kind, v) for k, (kind, v) in enumerate(self.inputs) if kind in ("arg", "state")
        ]
        where = {key(kind, v): k for k, kind, v in tensors}
        pairs = [
            (i, where.get(key(kind, v))) for kind, v, i in self.writes if kind in ("arg", "state")
        ]
        once = collections.Counter(i for i, _ in pairs)
        return {i: k for i, k in pairs if k is not None and once[i] == 1}

    def _unwritten(self) -> list[int]:
        """The inputs that are state which the function does not write."""
        written = {id(v) for kind, v, _ in self.writes if kind == "state"}
        return [
            k for k, (kind, v) in enumerate(self.inputs) if kind == "state" and id(v) not in written
        ]

    def _kept(self) -> tuple[_Way, tuple[Any, ...]]:
        """How to run now, and what that is given behind the inputs."""
        if self._still is not None:
            self._held = (
                None,
                [],
                self._way,
                None,
            )  # who holds the state keeps it from being looked at
            values = self._still.values()
            if values is not None:
                return self._rest(), values
        return self._way, ()

    def _read(self, kind: str, v: Any, leaves: Any, numbers: Any, containers: Any) -> Any:
        if kind == "arg":
            return leaves[v]._buf
        if kind == "state":
            return v._buf
        if kind == "argument":
            return leaves[v]
        if kind == "number":
            return numbers[v]
        if kind == "container":
            return containers[v]
        if kind == "array":
            backend = registry.backend(self.device.name)
            return backend.copy_in(np.array(v), self.device.index)
        as_object = kind == "held"
        if as_object:
            kind, *v = v
        owner, name = v
        if kind == "item":
            held = owner[name]
        else:
            held = owner.cell_contents if kind == "cell" else getattr(owner, name)
        if as_object or not isinstance(held, Tensor):
            return held
        if held._type.device is None:
            commit(held, self.device)
        return held._buf

    def _results(self, found: Any, leaves: Any, containers: Any, edges: Any) -> Any:
        values: list[Any] = []
        make = Tensor._make
        for i, (t, h) in enumerate(zip(self.tensor_types, found, strict=True)):
            values.append(h if t is None else make(t, h) if edges is None else edges(i, t, h))
        for kind, v, i in self.writes:
            target = leaves[v] if kind == "arg" else v
            target._rebind(values[i])
        return rebuilt(self.template, values, leaves, containers)

    # ---- under a derivative -------------------------------------------------------------------

    def recorded(self, leaves: list[Tensor], numbers: list[Any], containers: list[Any]) -> bool:
        """Whether a tape records an input."""
        if not runtime_state.derivatives:
            return False
        return any(x._type.level for x in leaves) or any(x._type.level for x in self.state)

    def call_recorded(self, leaves: list[Tensor], numbers: list[Any], containers: list[Any]) -> Any:
        """Run as one node of the tape, with its own compiled backward."""
        sources: list[Any] = []
        for kind, v in self.inputs:
            sources.append(leaves[v] if kind == "arg" else v if kind == "state" else None)
        level = max(x._type.level for x in sources if x is not None)
        handles = [self._read(kind, v, leaves, numbers, containers) for kind, v in self.inputs]
        if level > 1:
            return self._call_interpreted(sources, handles, leaves, containers)
        wanted = tuple(
            x is not None and x._type.level > 0 and isinstance(x._type, TensorType) for x in sources
        )
        plan, kernel, pick = self._plan(wanted)
        # before Python, called by the graph, gives some of them other values
        edges = tuple(edge_of(x) if w else None for x, w in zip(sources, wanted, strict=True))
        try:
            found = kernel(*handles)
        except Exception as error:
            self._locate(error, handles)
            raise
        n = len(self.out_types)
        node = Node(plan, edges, pick((*handles, *found)), False)

        def edged(i: int, type_: TensorType, handle: Any) -> Tensor:
            if not _differentiable(type_):
                return Tensor._make(type_, handle)
            made = Tensor._make(type_.on(self.device, 1), handle)
            made._edge = Output(node, i)
            return made

        return self._results(found[:n], leaves, containers, edged)

    def _plan(self, wanted: tuple[bool, ...]) -> Any:
        made = self._plans.get(wanted)
        if made is None:
            plan = GraphPlan(self.graph, wanted, self.device, self.name, self.level)
            lin = plan.full
            watch = None
            if self.dump is not None:
                watch = self.dump.watch("forward")
                # the tape lowers it at first use
                passes.run(lin.backward, passes.PassContext(watch=self.dump.watch("backward")))
            kernel = lower(lin.forward, self.device, watch, self.level)
            n = self.graph.n_params
            positions = {i: n + k for k, i in reversed(list(enumerate(lin.forward.outputs)))}
            where = [i if i < n else positions[i] for i in lin.residuals]
            made = (plan, kernel, lambda values: tuple([values[i] for i in where]))
            self._plans[wanted] = made
        return made

    def _call_interpreted(self, sources: Any, handles: Any, leaves: Any, containers: Any) -> Any:
        """Inside a derivative of a derivative every node is recorded in turn."""
        from .interpret import interpret

        values = []
        for x, h, i in zip(sources, handles, range(self.graph.n_params), strict=True):
            if x is not None:
                made = Tensor._make(x._type, x._buf)
                if x._type.level:
                    made._edge = edge_of(x)
                values.append(made)
            else:
                t = self.graph.types[i]
                values.append(
                    Tensor._make(t.on(self.device), h) if isinstance(t, TensorType) else h
                )
        found = interpret(self.graph, values, self.device)
        for kind, v, i in self.writes:
            (leaves[v] if kind == "arg" else v)._rebind(found[i])
        return rebuilt(self.template, found, leaves, containers)


def _differentiable(type_: TensorType) -> bool:
    return type_.dtype.kind in "fciub"
