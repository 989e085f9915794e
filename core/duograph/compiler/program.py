"""A compiled program: the graph of one function for one signature, and how it is run."""

from __future__ import annotations

import collections
import copy
import dataclasses
import functools
import time
import weakref
from collections.abc import Callable
from sys import getrefcount
from typing import Any

import numpy as np

from .. import passes
from ..autodiff.tape import GraphPlan, Node, Output, active, edge_of
from ..backend import registry
from ..dtype import float32
from ..errors import ArgumentError, DeviceError, UnsupportedSyntaxError
from ..frontend import builtin_functions, statements  # noqa: F401  (one fills a table; both would load at the first call)
from ..frontend.calls import Dead, Function, call
from ..frontend.diagnostics import located
from ..frontend.external import seen
from ..frontend.spans import chain_of
from ..frontend.trace import Restart, Trace
from ..ir.builder import GraphTensor
from ..ir.dump import dump_of
from ..ir.graph import Graph
from ..ir.values import HostValue
from ..nn.cell import Cell
from ..op import staging, thread_state
from ..runtime import regions  # noqa: F401  (`lower` loads it at the first call)
from ..runtime.lower import lower
from ..runtime.still import Still
from ..tensor import Tensor, commit, rebound
from ..types import OBJECT, Device, HostType, TensorType
from .arguments import entering
from .guards import Guard

__all__ = ["Changed", "Program", "compile_program"]

_RESTARTS = 50
# Bytes of state up to which a program remembers the handles.
_SMALL = 1 << 20


def _alone() -> int:
    """What `getrefcount` says of a handle that a tensor and a list of handles hold, in an expression as in `_taken`."""
    t = Tensor._make(TensorType.of((), float32), object())
    handles = [t._buf]
    (count,) = [getrefcount((t if kind == "arg" else v)._buf) for kind, v in [("arg", t)]]
    del handles
    return count


_ALONE = _alone()


class ArgumentContainer:
    """A list or dict among the arguments, for writes to it: an input of the graph once one is needed."""

    def __init__(self, t: Trace, index: int) -> None:
        self.t = t
        self.index = index
        self._value: Any = None

    def value(self) -> Any:
        if self._value is None:
            made = self.t.root.parameter(OBJECT)
            self.t.inputs.append(("container", self.index))
            self._value = made
        return self.t.root.tensor(self._value._id)


class _Out:
    """Stands for output `index` of the graph in the result."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


class _Argument:
    """Stands for tensor `index` of the arguments, which the function returns as it is."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


class _Container(_Argument):
    """Stands for container `index` of the arguments."""


class _Copy:
    """Stands for a value that was made while compiling, and that each call gets its own of."""

    def __init__(self, value: Any) -> None:
        self.value = copy.deepcopy(value)

    def made(self) -> Any:
        return copy.deepcopy(self.value)


class _Made:
    """Stands for an object that the function made: its class, and its attributes."""

    def __init__(self, cls: Any, attributes: dict[str, Any]) -> None:
        self.cls = cls
        self.attributes = attributes


class _Way:
    """One way to run a program.

    Attributes:
        run: from handles to a tuple of handles.
        taking: the same where new values of state may take the memory of the old ones, see `runtime.lower`; or None.
        donors: the inputs that give their memory.
    """

    def __init__(self, run: Callable[..., Any], inputs: list[tuple[str, Any]]) -> None:
        self.run = run
        self.taking: Callable[..., Any] | None = getattr(run, "taking", None)
        self.donors = [inputs[p] for p in getattr(run, "donations", {}).values()]


def _taken(donors: list[tuple[str, Any]], leaves: list[Tensor]) -> list[bool]:
    """For each donor, whether nobody but the tensor holds the memory; the list of handles does so too."""
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
        trace: Trace,
        device: Device,
        name: str,
        level: str,
    ) -> None:
        self.graph = graph
        self.level = level
        self.inputs = inputs
        self.template = template
        self.writes = writes
        self.captures = trace.captures
        self.effects = graph.effects
        self.keep = trace.keep
        self.device = device
        self.name = name
        self.state: list[Tensor] = [v for kind, v in inputs if kind == "state"]
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
        alone = not writes and isinstance(template, _Out) and len(graph.outputs) == 1
        self._single = self.tensor_types[0] if alone else None  # the type of the only result
        self.simple = (
            self._single is not None
            and kinds == ["arg"] * len(kinds)
            and [v for _, v in inputs] == list(range(len(kinds)))
        )
        watch = None if self.dump is None else self.dump.watch()
        if self.simple:
            single = lower(dataclasses.replace(graph, single=True), device, watch, level, self.notes)
            self.run_single = single
            self.run: Callable[..., Any] = lambda *handles: (single(*handles),)
        else:
            self.run = lower(graph, device, watch, level, self.notes, self._updates(), self._unwritten())
        self._way = _Way(self.run, inputs)
        # what follows from state alone; see `runtime.still`
        divided = None if level == "O0" else getattr(self.run, "divided", None)
        self._still: Still | None = None
        if divided is not None:
            tensors = [inputs[p][1] for p in divided.reads]
            self._still = Still(tensors, device, divided.once, _all_held, self.notes)
            self._rest = functools.cache(lambda: _Way(divided.rest, inputs))
        # handles of the state, right while `rebound` is the same; of much state, or with donors, they would keep memory
        self._held: tuple[Any, list[Any], _Way] = (None, [], self._way)
        _programs.add(self)
        self._holds = not self._way.donors and sum(t.nbytes for t in self.state_types) <= _SMALL
        n_args = sum(k == "arg" for k in kinds)
        self._plain_order = kinds == ["arg"] * n_args + ["state"] * (len(kinds) - n_args) and [
            v for k, v in inputs if k == "arg"
        ] == list(range(n_args))

    # ---- running ------------------------------------------------------------------------------

    def ready(self) -> bool:
        """Whether the state is as it was compiled for: on the device, unrecorded, of the same types."""
        now = rebound[0]
        if self._held[0] is now:
            return True
        if [t._type for t in self.state] != self.state_types:
            return False
        if self._holds and (self._still is None or self._still.settled()):
            way, values = self._kept()
            self._held = (now, [*[t._buf for t in self.state], *values], way)
        return True

    def fits(self) -> bool:
        """Whether the state has the shapes and dtypes that it was compiled for; commits what is on no device."""
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

    def call(self, leaves: list[Tensor], numbers: list[Any], containers: list[Any]) -> Any:
        """Run on arguments that match the signature."""
        held = self._held
        if self._plain_order and held[0] is rebound[0]:
            handles = [*[x._buf for x in leaves], *held[1]]
            way = held[2]
        else:
            way, values = self._kept()
            if self._plain_order:
                handles = [*[x._buf for x in leaves], *[x._buf for x in self.state], *values]
            else:
                handles = [self._read(kind, v, leaves, numbers, containers) for kind, v in self.inputs]
                handles += values
        try:
            if way.taking is None:
                found = way.run(*handles)
            else:
                found = way.taking(_taken(way.donors, leaves), handles)
        except Exception as error:
            _locate(error)
            raise
        if self._single is not None:
            return Tensor._make(self._single, found[0])
        return self._results(found, leaves, containers, None)

    def short(self, guard: Guard) -> Callable[..., Any] | None:
        """What may be called with the handles of the arguments instead of `call`, while they keep their types.

        It gives the handle of the result, and raises `Changed` where something else is not as it was. None for
        programs of which more than that would have to be looked at.
        """
        if self.simple and guard.empty:
            return self.run_single
        if not (self._single is not None and self._plain_order and self._holds and self.state):
            return None
        holds = guard.holds

        def short(*handles: Any) -> Any:
            token, state, way = self._held
            if token is not rebound[0] or not holds():
                raise Changed
            self.hits += 1
            return way.run(*handles, *state)[0]

        return short

    def _updates(self) -> dict[int, int]:
        """Output -> the input of which it is the new value."""
        def key(kind: str, v: Any) -> Any:
            return kind, id(v) if kind == "state" else v

        tensors = [(k, kind, v) for k, (kind, v) in enumerate(self.inputs) if kind in ("arg", "state")]
        where = {key(kind, v): k for k, kind, v in tensors}
        pairs = [(i, where.get(key(kind, v))) for kind, v, i in self.writes if kind in ("arg", "state")]
        once = collections.Counter(i for i, _ in pairs)
        return {i: k for i, k in pairs if k is not None and once[i] == 1}

    def _unwritten(self) -> list[int]:
        """The inputs that are state which the function does not write."""
        written = {id(v) for kind, v, _ in self.writes if kind == "state"}
        return [k for k, (kind, v) in enumerate(self.inputs) if kind == "state" and id(v) not in written]

    def _kept(self) -> tuple[_Way, tuple[Any, ...]]:
        """How to run now, and what that is given behind the inputs."""
        if self._still is not None:
            self._held = (None, [], self._way)  # who holds the state keeps it from being looked at
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
        return self._rebuilt(self.template, values, leaves, containers)

    def _rebuilt(self, nest: Any, values: Any, leaves: Any, containers: Any) -> Any:
        kind = nest.__class__
        if kind is _Out:
            return values[nest.index]
        if kind is _Argument:
            return leaves[nest.index]
        if kind is _Container:
            return containers[nest.index]
        if kind is tuple or hasattr(nest, "_fields"):
            items = [self._rebuilt(v, values, leaves, containers) for v in nest]
            return kind(*items) if kind is not tuple else tuple(items)
        if kind is list:
            return [self._rebuilt(v, values, leaves, containers) for v in nest]
        if kind is dict:
            return {k: self._rebuilt(v, values, leaves, containers) for k, v in nest.items()}
        if kind is _Copy:
            return nest.made()
        if kind is _Made:
            made = object.__new__(nest.cls)
            for k, v in nest.attributes.items():
                made.__dict__[k] = self._rebuilt(v, values, leaves, containers)
            return made
        return nest

    # ---- under a derivative -------------------------------------------------------------------

    def recorded(self, leaves: list[Tensor], numbers: list[Any], containers: list[Any]) -> bool:
        """Whether a tape records an input."""
        if not active[0]:
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
            _locate(error)
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
                passes.run(lin.backward, self.dump.watch("backward"))  # the tape lowers it at first use
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
        return self._rebuilt(self.template, found, leaves, containers)


def _differentiable(type_: TensorType) -> bool:
    return type_.dtype.kind in "fciub"


def _locate(error: Exception) -> None:
    place = getattr(error, "_duograph_place", None)
    if place is not None:
        located(error, place)


# ---- compiling ----------------------------------------------------------------------------------


def compile_program(
    target: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    strict: bool,
    device: Device,
    name: str,
    level: str = "O0",
) -> Program:
    """Evaluate a call of `target` into a graph, and make it runnable at this level (`runtime.lower`).

    Raises:
        UnsupportedSyntaxError: something that compiled code cannot have.
    """
    start = time.perf_counter()
    written: set[Any] = set()
    keep: list[Any] = []
    for _ in range(_RESTARTS):
        t = Trace(strict, written)
        t.keep.append(keep)
        staging.append(1)
        before = thread_state.builder
        thread_state.builder = t.root
        try:
            program = _evaluate(t, target, args, kwargs, device, name, level)
            program.seconds = time.perf_counter() - start
            return program
        except Restart:
            keep += t.keep
            continue
        except RecursionError as error:
            raise _too_deep(error) from None
        except Exception as error:
            located(error, chain_of(error))
            raise
        finally:
            thread_state.builder = before
            staging.pop()
    raise UnsupportedSyntaxError(
        f"{name}: the evaluation started over {_RESTARTS} times because of what it writes",
        construct="setattr",
        remedy="Write fewer attributes of different objects",
    )


def _too_deep(error: RecursionError) -> RecursionError:
    chain = chain_of(error)
    if "maximum recursion depth" in str(error):  # Python's own
        error = RecursionError(
            "Exceed function call depth limit: the function calls itself without end, or too deep"
        )
    return located(error, chain)


def _evaluate(
    t: Trace,
    target: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    device: Device,
    name: str,
    level: str,
) -> Program:
    root = t.root
    leaves: list[Any] = []
    containers: list[Any] = []
    count = [0]

    def tensor(value: Tensor) -> Any:
        made = root.parameter(value._type.plain)
        t.inputs.append(("arg", len(leaves)))
        t.arguments.append((made, made._id, len(leaves)))
        leaves.append((made, made._id))
        return made

    def number(kind: HostType) -> Any:
        made = root.parameter(kind)
        t.inputs.append(("number", count[0]))
        count[0] += 1
        return made

    def container(value: Any) -> Any:
        copy: Any = [] if isinstance(value, list) else {}
        t.own[id(copy)] = copy
        t.shadow_of[id(copy)] = ArgumentContainer(t, len(containers))
        t.keep.append(copy)
        containers.append(copy)
        return copy

    enter = entering(tensor, number, container)
    given = tuple(enter(v) for v in args)
    named = {k: enter(v) for k, v in kwargs.items()}
    outputs: list[Any] = []
    index: dict[int, int] = {}

    def put(value: Any) -> int:
        found = root.value(value)
        k = index.get(found._id)
        if k is None:
            k = index[found._id] = len(outputs)
            outputs.append(root.tensor(found._id))
        return k

    if args and isinstance(args[0], Cell):  # the receiver of a compiled method
        t.captures.members(args[0])
    try:
        result = call(t, target, given, named)
        template = _template(t, result, put, leaves, containers, 0)
    except Dead:
        template = None
    writes: list[tuple[str, Any, int]] = []
    for i, (made, first) in enumerate(leaves):
        if made._id != first:
            writes.append(("arg", i, put(made)))
    for slot in t.slots.values():
        if not slot.fresh and slot.current._id != slot.incoming._id:
            writes.append(("state", slot.tensor, put(slot.current)))
    for owner in t.exact_owners.values():
        for capture in t.captures.items.values():
            if capture.owner is owner:
                capture.exact = True
    graph = root.whole(outputs)
    written = {id(v) for kind, v, _ in writes if kind == "state"}
    for tensor_ in [v for kind, v in t.inputs if kind == "state"]:
        if tensor_._type.device is None:
            commit(tensor_, device, own=id(tensor_) in written)
    thread_state.builder = None
    staging.pop()
    try:
        return Program(graph, t.inputs, template, writes, t, device, name, level)
    finally:
        staging.append(1)


_ITERATORS = (zip, map, filter, enumerate, range, reversed)


def _template(t: Trace, value: Any, put: Any, leaves: Any, containers: Any, depth: int) -> Any:
    """The result with its graph values replaced by places to find them."""
    if isinstance(value, GraphTensor):
        for i, (made, first) in enumerate(leaves):
            if value is made or (value._id == first and made._id == first):
                return _Argument(i)
        return _Out(put(value))
    if isinstance(value, HostValue):
        return _Out(put(value))
    if isinstance(value, Tensor):
        slot = t.slots.get(id(value))
        if id(value) in t.fresh and slot is not None and slot.current is not slot.incoming:
            return _Out(put(slot.current))
        if id(value) in t.fresh:
            return _Out(put(value))  # a fresh buffer at every call
        return value
    if isinstance(value, (list, dict, set)):
        seen(t, value)
        for i, c in enumerate(containers):
            if c is value:
                return _Container(i)
        outside = t.shadow_of.get(id(value))
        if outside is not None and not isinstance(outside, ArgumentContainer):
            return outside
    if depth > 50:
        raise ArgumentError("jit: got a result that contains itself; wanted a tree")

    def again(v: Any) -> Any:
        return _template(t, v, put, leaves, containers, depth + 1)

    if isinstance(value, tuple):
        items = [again(v) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if type(value) is list:
        return [again(v) for v in value]
    if type(value) is dict:
        return {k: again(v) for k, v in value.items()}
    if isinstance(value, _ITERATORS):
        items = [again(v) for v in value]
        return tuple(items) if isinstance(value, (zip, enumerate, range)) else items
    if type(value).__name__ in (
        "list_iterator",
        "tuple_iterator",
        "generator",
        "dict_keys",
        "dict_values",
    ):
        items = [again(v) for v in value]
        return (
            tuple(items)
            if type(value).__name__ in ("tuple_iterator", "dict_keys", "dict_values")
            else items
        )
    if type(value).__name__ == "dict_items":
        return [again(v) for v in value]
    if isinstance(value, Function):
        if value.original is not None:
            return value.original
        raise UnsupportedSyntaxError(
            f"return: got the function {value.__name__}, which the compiled function defines; wanted Tensors and "
            f"Python values",
            construct="Return",
            remedy="Define the function outside the compiled one",
        )
    if isinstance(value, (dict, set, frozenset, collections.deque)):
        held = value.values() if isinstance(value, dict) else value
        if any(map(_of_graph, held)):
            raise UnsupportedSyntaxError(
                f"return: got a {type(value).__name__} that holds what is known only when the function runs; wanted a "
                f"list, tuple or dict",
                construct="Return",
                remedy="Return list(...) or dict(...) of it",
            )
    if _own_data(t, value):
        return _Copy(value)
    plain = isinstance(value, (type, np.ndarray)) or type(value).__module__ == "builtins"
    if id(value) in t.own and hasattr(value, "__dict__") and not plain:
        return _Made(type(value), {k: again(v) for k, v in vars(value).items()})
    return value


def _own_data(t: Trace, value: Any) -> bool:
    """Whether a value is data that can change, and that the function made: not one that is there outside of it."""
    base = value
    while isinstance(base, np.ndarray) and base.base is not None:
        base = base.base
    if id(value) not in t.own and id(base) not in t.own:
        return False
    return isinstance(value, (np.ndarray, set, bytearray)) or type(value).__module__ in (
        "collections",
        "array",
    )


def _of_graph(value: Any) -> bool:
    if isinstance(value, (tuple, list, dict, set)):
        return any(map(_of_graph, value.values() if isinstance(value, dict) else value))
    return isinstance(value, (GraphTensor, HostValue))
