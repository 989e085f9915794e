"""Makes a graph runnable on one backend: kernel, else composite body or decomposition, else
declared host fallback.
"""

from __future__ import annotations

import collections
import functools
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from .. import context
from .._locks import new_lock
from ..backend import registry
from ..backend.program import (
    Alias,
    Choice,
    Copy,
    HostStep,
    Instruction,
    Loop,
    Step,
)  # fmt: skip
from ..backend.protocol import Backend
from ..dtype import bool_, int64
from ..effects import Random
from ..errors import UnsupportedOpError
from ..ir.graph import FrozenArray, Graph, GraphNode, live_nodes
from ..ir.optimizer import Watch, optimizer
from ..op import Op
from ..types import BOOL, FLOAT, INT, STACK, Device, HostType, TensorType
from .control import control_call, may_raise, placed
from .executor import link
from .joins import join
from .native import native_program
from .regions import cannot_compile, compile_regions
from .still import divide, share_packed

__all__ = ["Divided", "lower", "host_call", "fallback_counts"]

# A constant of at most this many elements is made once, when the graph is prepared.
CONSTANT_LIMIT = 1024

# (backend, op) -> how often the host ran it
fallback_counts: collections.Counter[tuple[str, str]] = collections.Counter()
_warned: set[tuple[str, str]] = set()
_lock = new_lock()
# Bytes of what lives on the host, in a native program; and the ops on such values that programs
# have.
_HOST_BYTES: dict[Any, int] = {INT: 8, FLOAT: 8, BOOL: 1, STACK: 0}
_HOST_OPS = {
    "scalar",
    "to_host",
    "to_tensor",
    "stack_new",
    "stack_push",
    "stack_pop",
    "stack_holds",
}


class Lowering:
    """Collects the instructions of one graph."""

    def __init__(
        self, device: Device, regions: Mapping[Graph, Callable[..., Any]], level: str
    ) -> None:
        self.device = device
        self.regions = regions
        self.level = level
        self.backend = registry.backend(device.name)
        self.steps: list[Instruction] = []
        self.constants: dict[int, Any] = {}
        self.sizes: list[int] = []
        self.hosts: dict[int, HostType] = {}
        self.python = ""  # what keeps the graph from being one native program
        self.host: set[int] = set()  # slots of constants that are Python objects
        self.named: set[int] = set()  # slots that are other names of memory
        self.depth = 0  # of loops and branches around

    def slot(self, type_: Any) -> int:
        """A new slot for a value of this type."""
        slot = len(self.sizes)
        if isinstance(type_, TensorType):
            self.sizes.append(type_.nbytes)
            return slot
        self.sizes.append(_HOST_BYTES.get(type_, 0))
        self.hosts[slot] = type_
        if type_ not in _HOST_BYTES:
            self.python = self.python or "an object of Python"
        return slot

    def graph(self, graph: Graph, slots: list[int], results: set[int], root: bool) -> list[int]:
        """Lower the nodes of `graph` on parameter slots; the slots of its outputs."""
        env = dict(enumerate(slots))
        out = set(graph.outputs)
        for node in live_nodes(graph.nodes, out):
            is_result = root and any(r in out for r in node.results)
            found = self.node(node, graph, env, is_result)
            env.update(zip(node.results, found, strict=True))
        return [env[i] for i in graph.outputs]

    def node(
        self, node: GraphNode, graph: Graph, env: dict[int, int], is_result: bool
    ) -> list[int]:
        op = node.op
        operands = [-1 if i is None else env[i] for i in node.operands]
        if op.alias:
            return [operands[0]]
        kinds: Sequence[Any] = graph.types
        types = tuple([None if i is None else kinds[i] for i in node.operands])
        results = tuple([kinds[i] for i in node.results])
        if op.name == "constant":
            slot = self.slot(results[0])
            frozen: FrozenArray = node.attributes["value"]
            array = np.asarray(frozen.array, order="C")
            self.constants[slot] = self.backend.copy_in(array, self.device.index)
            return [slot]
        if op.name == "host_constant":
            slot = self.slot(results[0])
            self.constants[slot] = node.attributes["value"].value
            self.host.add(slot)
            return [slot]
        if op.name == "region":
            body: Graph = node.attributes["body"]
            call = self.regions.get(body)
            if call is None:
                return self.graph(body, operands, set(), is_result)
            return self.step(node, call, operands, results, True)
        if op.name == "custom_call" and self.level != "O0":
            return self.graph(node.attributes["graph"], operands, set(), is_result)
        if self.level == "O2" and op.name in _HOST_OPS:
            slots = [self.slot(t) for t in results]
            made = HostStep(
                op.name, tuple(operands), tuple(slots), (*types, *results), node.attributes
            )
            self.steps.append(made)
            if op.name == "stack_pop":
                self.named.update(slots[2:])
            return slots
        if self.level == "O2" and op.name in ("while_loop", "switch"):
            return (self.loop if op.name == "while_loop" else self.choice)(node, operands, types)
        inside = functools.partial(lower_closed, regions=self.regions, level=self.level)
        call = control_call(self.backend, op.name, types, node.attributes, self.device, inside)
        if call is not None:
            if node.span is not None and may_raise(op.name, node.attributes):
                call = placed(call, node.span)
            if op.name != "random_state" or self.depth:
                self.python = self.python or op.name
            return self.step(node, call, operands, results)
        call = kernel(self.backend, op, types, node.attributes, self.device)
        pure = call is not None and not op.effects
        if call is None and (op.body is not None or op.decompose_rule is not None):
            inner = optimizer().body_of(op, types, node.attributes)
            found = tuple(inner.types[i] for i in inner.outputs)
            # a handle of another size than its type says would be read past its end
            assert found == results, f"{op.name}: its body gives {found}, its infer rule {results}"
            given = [s for s in operands if s != -1]
            return self.graph(inner, given, set(), is_result)
        if call is None:
            call = fallback(self.backend, op, types, node.attributes, self.device, results)
        if not operands and node.single and results[0].size <= CONSTANT_LIMIT and not is_result:
            slot = self.slot(results[0])
            self.constants[slot] = call()
            return [slot]
        return self.step(node, call, operands, results, pure)

    def step(
        self,
        node: GraphNode,
        call: Callable[..., Any],
        operands: list[int],
        results: Any,
        pure: bool = False,
    ) -> list[int]:
        slots = [self.slot(t) for t in results]
        self.steps.append(
            Step(call, tuple(operands), tuple(slots), node.single, node.op.name, pure)
        )
        return slots

    def inside(self, graph: Graph, slots: list[int]) -> tuple[list[Instruction], list[int]]:
        """Instructions of a sub-graph, and the slots of its outputs."""
        before, self.steps = self.steps, []
        self.depth += 1
        found = self.graph(graph, slots, set(), False)
        self.depth -= 1
        made, self.steps = self.steps, before
        return made, found

    def loop(self, node: GraphNode, operands: list[int], types: Any) -> list[int]:
        """A while loop as an instruction: two pieces of memory for each carry, which change places."""
        body: Graph = node.attributes["body"]
        n = node.attributes["n_carry"]
        first, carried, rest = operands[0], operands[1 : 1 + n], operands[1 + n :]
        predicate = self.name(first, types[0])
        carries = [self.name(x, t) for x, t in zip(carried, types[1:])]
        turn, found = self.inside(body, [*carries, *rest])
        own = {r for s in turn if isinstance(s, (Step, HostStep)) for r in s.results} - self.named
        ring = []
        for carry, slot, t in zip(carries, found[1:], types[1:]):
            if slot in own:
                own.discard(slot)  # another carry that takes this value gets a copy
            else:
                copy = self.slot(t)
                turn.append(Alias(slot, copy) if t is STACK else Copy(slot, copy))
                slot = copy
            ring.append((carry, slot, self.slot(t)))
        turn.append(Alias(found[0], predicate))
        self.steps.append(Loop(predicate, tuple(ring), tuple(turn)))
        return carries

    def choice(self, node: GraphNode, operands: list[int], types: Any) -> list[int]:
        """A switch as an instruction: the results are other names of what the branch that runs
        computes.
        """
        branches: Sequence[Graph] = node.attributes["branches"]
        kinds = [branches[0].types[i] for i in branches[0].outputs]
        results = [self.slot(t) for t in kinds]
        self.named.update(results)
        made = []
        for branch in branches:
            steps, found = self.inside(branch, operands[1:])
            made.append((*steps, *[Alias(a, b) for a, b in zip(found, results)]))
        dtype = {INT: int64, BOOL: bool_}.get(types[0]) or types[0].dtype
        self.steps.append(Choice(operands[0], dtype, tuple(made)))
        return results

    def name(self, slot: int, type_: Any) -> int:
        """Another name of a slot."""
        made = self.slot(type_)
        self.steps.append(Alias(slot, made))
        self.named.add(made)
        return made

    def stepwise(
        self,
        graph: Graph,
        instructions: Sequence[Instruction],
        further: Sequence[int],
        outputs: list[int],
    ) -> Callable[..., Any] | None:
        """The graph as a call of one step after the other; None with loops and branches among the
        instructions.
        """
        steps = [s for s in instructions if isinstance(s, Step)]
        if len(steps) < len(instructions):
            return None
        outputs = list(outputs)
        for position, i in enumerate(outputs):
            # a result may not share its buffer with a constant that lives on
            if i in self.constants and i not in self.host:
                type_: Any = graph.types[graph.outputs[position]]
                slot = self.slot(type_)
                fresh = functools.partial(
                    _copy, self.backend, self.device, type_, self.constants[i]
                )
                steps.append(Step(fresh, (), (slot,), True))
                outputs[position] = slot
        n_slots = len(self.sizes)
        return link(
            steps, graph.n_params, self.constants, tuple(outputs), graph.single, n_slots, further
        )


def lower(
    graph: Graph,
    device: Device,
    watch: Watch | None = None,
    level: str = "O0",
    notes: list[str] | None = None,
    updates: Mapping[int, int] | None = None,
    state: Collection[int] = (),
) -> Callable[..., Any]:
    """A callable from parameter handles to result handle(s) of this graph on `device`.

    Args:
        graph: as it came; passes run here.
        device: where it is to run.
        watch: sees the graph after each pass.
        level: "O0" runs op by op, "O1" compiles fused regions where the backend can and makes one
            native program of what has no control flow, "O2" also of what has.
        notes: gets a line about what was compiled, and one for each reason why something was not.
        updates: position of an output -> parameter of which it is the new value. Where their memory
            can be shared, the result has attributes `donations` (the same, of those) and `taking`,
            a call of (taken, handles) as described at `Backend.link`.
        state: parameters that are mostly the same from call to call. Where something that follows
            from them alone is worth being computed once, the result has an attribute `divided`,
            which is a `Divided`.
    """
    notes = [] if notes is None else notes
    problem = None if level == "O0" else cannot_compile(device)
    if problem is not None:
        notes.append(f"runs op by op: {problem}")
    fuses = level != "O0" and problem is None
    said: list[str] = []  # by the passes
    graph = optimizer().optimize(graph, device, level if fuses else "O0", watch, said, state)
    regions: Mapping[Graph, Callable[..., Any]] = {}
    if fuses:
        regions, (line, *missing) = compile_regions(graph, device)
        notes += [line, *said, *missing]
    return lower_closed(graph, device, regions, level, notes, updates, state)


class Divided:
    """A lowered graph in two parts: what follows from state alone, and the rest.

    Attributes:
        reads: parameters that the first part reads.
        once: a call from their handles to the values that the rest takes behind all parameters.
        rest: a call like that of the whole graph, with its attributes; made when it is first asked
            for.
    """

    def __init__(
        self,
        reads: tuple[int, ...],
        once: Callable[..., Any],
        rest: Callable[[], Callable[..., Any]],
    ) -> None:
        self.reads = reads
        self.once = once
        self._rest = rest

    @functools.cached_property
    def rest(self) -> Callable[..., Any]:
        return self._rest()


def lower_closed(
    graph: Graph,
    device: Device,
    regions: Mapping[Graph, Callable[..., Any]] | None = None,
    level: str = "O0",
    notes: list[str] | None = None,
    updates: Mapping[int, int] | None = None,
    state: Collection[int] = (),
) -> Callable[..., Any]:
    """`lower` for a graph whose passes have run, as part of the graph around it.

    `regions` are calls of bodies of `region` nodes; the nodes of others run one by one.
    """
    notes = [] if notes is None else notes
    work = Lowering(device, regions or {}, level)
    params = [work.slot(t) for t in graph.types[: graph.n_params]]
    outputs = work.graph(graph, params, set(graph.outputs), True)

    def linked(
        instructions: Sequence[Instruction], further: tuple[int, ...], notes: list[str]
    ) -> Any:
        if level != "O0":
            instructions = join(share_packed(instructions, work.sizes), outputs)
            by_steps = functools.partial(lower_closed, graph, device, regions, "O1")
            native = native_program(
                work,
                graph,
                instructions,
                [*params, *further],
                outputs,
                updates or {},
                notes,
                by_steps,
            )
            if native is not None:
                return native
        return work.stepwise(graph, instructions, further, outputs)

    run = linked(work.steps, (), notes)
    if run is None:  # loops and branches, and no native program for them
        return lower_closed(graph, device, regions, "O1", notes, updates, state)
    if not state or type(work.backend).exclusive is Backend.exclusive:  # which never knows
        return run
    if any(
        not isinstance(e, Random) for e in graph.effects
    ):  # Python could change the state meanwhile
        return run
    division = divide(work.steps, set(state), set(work.constants), work.sizes, set(outputs))
    if division is None:
        return run
    notes.append(str(division))
    once = link(
        division.once, 0, work.constants, division.kept, False, len(work.sizes), division.reads
    )

    def whole(*handles: Any) -> Any:
        return run(*handles)

    for name in ("taking", "donations", "bound"):
        if hasattr(run, name):
            setattr(whole, name, getattr(run, name))
    rest = functools.partial(linked, division.rest, division.kept, [])
    whole.divided = Divided(division.reads, once, rest)  # type: ignore[attr-defined]
    return whole


def _copy(backend: Backend, device: Device, type_: TensorType, handle: Any) -> Any:
    """A handle to a copy."""
    array = backend.copy_out(handle, type_.shape, type_.dtype.np, device.index)
    return backend.copy_in(np.array(array), device.index)


def kernel(
    backend: Backend,
    op: Op,
    types: tuple[TensorType | None, ...],
    attributes: Mapping[str, Any],
    device: Device,
) -> Callable[..., Any] | None:
    """The backend's own call for this op, or None."""
    if op.host:
        return None
    return backend.prepare(op, types, attributes, device.index)  # type: ignore[arg-type]


def fallback(
    backend: Backend,
    op: Op,
    types: tuple[TensorType | None, ...],
    attributes: Mapping[str, Any],
    device: Device,
    results: tuple[TensorType, ...],
) -> Callable[..., Any]:
    """The host's call for an op that the backend cannot run, if that is allowed."""
    if op.host:  # that is where it runs on every device
        return host_call(backend, op, types, attributes, device, results)
    policy = context.settings.host_fallback
    if policy == "backend":
        policy = backend.host_fallback
    shown = ", ".join("none" if t is None else repr(t) for t in types)
    if policy == "off" or op.reference_rule is None:
        raise UnsupportedOpError(
            f"{op.name}({shown}): the {backend.name} backend has no kernel for it and the op has no "
            f"decomposition; write a kernel, or allow the host to run it with "
            f"set_context(host_fallback='warn')"
        )
    key = (backend.name, op.name)
    if policy == "warn" and key not in _warned:
        _warned.add(key)
        warnings.warn(
            f"{op.name}({shown}) runs on the host: the {backend.name} backend has no kernel for it",
            RuntimeWarning,
            stacklevel=2,
        )
    run = host_call(backend, op, types, attributes, device, results)

    def counted(*handles: Any) -> Any:
        with _lock:
            fallback_counts[key] += 1
        return run(*handles)

    return counted


def host_call(
    backend: Backend,
    op: Op,
    types: tuple[TensorType | None, ...],
    attributes: Mapping[str, Any],
    device: Device,
    results: tuple[TensorType, ...],
) -> Callable[..., Any]:
    """A call that copies out, runs the op's reference and copies in."""
    reference = op.reference_rule
    assert reference is not None
    single = len(results) == 1

    def run(*handles: Any) -> Any:
        arrays = [
            None if t is None else backend.copy_out(h, t.shape, t.dtype.np, device.index)
            for h, t in zip(handles, types, strict=True)
        ]
        found = reference(*op.packed(arrays), **attributes)
        parts = found if isinstance(found, tuple) else (found,)
        out = [
            backend.copy_in(np.array(a, dtype=t.dtype.np, order="C").reshape(t.shape), device.index)
            for a, t in zip(parts, results, strict=True)
        ]
        return out[0] if single and not isinstance(found, tuple) else tuple(out)

    return run
