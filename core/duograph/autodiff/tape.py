"""The eager tape: nodes that hang on their outputs and die with them, and the walk that pulls
cotangents back.

A node knows its parents' edges, its residuals and its plan. At level 1 residuals are bare handles
and the plan runs prepared kernels; at level 2 (inside another derivative) they are tensors and the
plan runs through the door, recorded in turn.
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ..errors import GradientError
from ..ir.basic_ops import cast_to, zeros_of
from ..ir.builder import trace
from ..ir.graph import Graph, GraphNode
from ..op import Op, dispatch
from ..ops.elementwise import add
from ..runtime.lower import lower
from ..runtime_state import runtime_state, thread_state
from ..tensor import Tensor, commit
from ..types import Device, TensorType
from .linearize import Linearized, linearize

__all__ = ["Node", "Leaf", "Output", "Plan", "GraphPlan", "backward", "edge_of"]

_sequence = itertools.count(1)
next_sequence = _sequence.__next__


class recording:
    """While entered, this thread is inside one more derivative."""

    def __enter__(self) -> int:
        thread_state.derivative_depth += 1
        runtime_state.enter_derivative(next_sequence)
        return thread_state.derivative_depth

    def __exit__(self, *_: object) -> None:
        thread_state.derivative_depth -= 1
        runtime_state.leave_derivative()
        if not thread_state.derivative_depth and thread_state.recorded_writes:
            _settle()


def _settle() -> None:
    """Parameters and buffers that took a recorded value keep the value and let go of the tape."""
    tensors = [ref() for ref in thread_state.recorded_writes.values()]
    thread_state.recorded_writes.clear()
    for t in tensors:
        if t is not None and t._type.level and not getattr(t, "_recording", 0):
            plain = t._type.on(t._type.device)
            t._type = plain
            runtime_state.bindings_version = object()
            del t._edge


def edge_of(t: Tensor) -> Any:
    """The edge of a recorded tensor that an op is about to use.

    A tensor left over from a derivative that is over is cut off here: what it came from is not kept
    alive.
    """
    edge = t._edge
    if edge.seq < runtime_state.horizon:
        edge = t._edge = Leaf(t._type.on(t._type.device))
    return edge


class Plan(Protocol):
    """How a node turns cotangents of its outputs into cotangents of its parents."""

    n_results: int
    result_types: tuple[TensorType, ...]
    device: Device
    # for one result on bare handles: fast(*residuals, cotangent) gives one handle, for parent
    # number fast_index, or a tuple of them, for the parents fast_wrt; None where there is no such
    # call
    fast: Callable[..., Any] | None
    fast_index: int | None
    fast_wrt: tuple[int, ...]

    def run(self, node: Node, cotangents: Sequence[Any], create_graph: bool) -> Sequence[Any]: ...


class Node:
    """One recorded op call. `parents` are edges (None for an operand that nobody records)."""

    __slots__ = ("seq", "plan", "parents", "residuals", "deep", "hooks", "__weakref__")

    def __init__(self, plan: Plan, parents: tuple[Any, ...], residuals: Any, deep: bool) -> None:
        self.seq = next_sequence()
        self.plan = plan
        self.parents = parents
        self.residuals = residuals
        self.deep = deep
        self.hooks = None


class Leaf:
    """Where a derivative ends: an alias of an input, or a weight."""

    __slots__ = ("seq", "type", "hooks", "__weakref__")

    def __init__(self, type_: TensorType) -> None:
        self.seq = next_sequence()
        self.type = type_
        self.hooks: list[Any] | None = None


class Output:
    """The edge to one result of a node that has several."""

    __slots__ = ("node", "index", "seq", "hooks", "__weakref__")

    def __init__(self, node: Node, index: int) -> None:
        self.node = node
        self.index = index
        self.seq = next_sequence()
        self.hooks: list[Any] | None = None


class GraphPlan:
    """Plan of a graph: linearized once per which operands are wanted, lowered once per which
    cotangents come.
    """

    def __init__(
        self, graph: Graph, wanted: tuple[bool, ...], device: Device, name: str, level: str = "O0"
    ) -> None:
        self.graph = graph
        self.level = level
        self.wanted = wanted
        self.device = device
        self.name = name
        self.n_results = len(graph.outputs)
        self.result_types: tuple[Any, ...] = tuple(graph.types[i] for i in graph.outputs)
        # all cotangents present decides the residuals: any fewer need no more of them
        full = tuple(True for _ in graph.outputs)
        self.full = linearize(graph, wanted, full)
        self.residual_types = tuple(self.full.forward.types[i] for i in self.full.residuals)
        self._calls: dict[tuple[bool, ...], tuple[Linearized, Callable[..., Any], Any]] = {}
        self._full_mask = full
        self.fast: Callable[..., Any] | None = None
        self.fast_index: int | None = None
        self.fast_wrt = self.full.wrt
        if graph.single:  # a tuple of one result comes with a list of one cotangent
            self.fast = self._first_fast

    def _first_fast(self, *handles: Any) -> Any:
        """Lower the backward at its first use; most plans of a program that is not trained never
        run.
        """
        back = self.full.backward
        if len(self.full.wrt) == 1:
            back = dataclasses.replace(back, single=True)
            self.fast_index = self.full.wrt[0]
        self.fast = lower(back, self.device, level=self.level)
        return self.fast(*handles)

    def _prepared(self, present: tuple[bool, ...]) -> tuple[Linearized, Callable[..., Any], Any]:
        found = self._calls.get(present)
        if found is None:
            if present == self._full_mask:
                lin, pick = self.full, None
            else:
                lin = linearize(self.graph, self.wanted, present)
                where = {key: k for k, key in enumerate(self.full.keys)}
                pick = tuple(where[key] for key in lin.keys)
            found = (lin, lower(lin.backward, self.device, level=self.level), pick)
            self._calls[present] = found
        return found

    def run(self, node: Node, cotangents: Sequence[Any], create_graph: bool) -> Sequence[Any]:
        present = tuple([c is not None for c in cotangents])
        lin, call, pick = self._prepared(present)
        residuals = node.residuals
        if pick is not None:
            residuals = tuple([residuals[i] for i in pick])
        given = cotangents if False not in present else [c for c in cotangents if c is not None]
        if create_graph:
            found = self._through_door(node, lin, residuals, given)
        else:
            if node.deep:
                residuals = [r._buf if isinstance(r, (Tensor, OwnResult)) else r for r in residuals]
            found = call(*residuals, *given)
        wrt = lin.wrt
        if len(wrt) == len(node.parents):
            return found
        out: list[Any] = [None] * len(node.parents)
        for i, value in zip(wrt, found, strict=True):
            out[i] = value
        return out

    def _through_door(
        self, node: Node, lin: Linearized, residuals: Sequence[Any], given: Sequence[Any]
    ) -> Sequence[Any]:
        types: list[Any] = [lin.forward.types[i] for i in lin.residuals]
        values = []
        for r, t in zip(residuals, types, strict=True):
            if isinstance(r, OwnResult):
                made = Tensor._make(r.type, r.handle)
                made._edge = node if r.index is None else Output(node, r.index)
                values.append(made)
            elif isinstance(r, Tensor):
                values.append(r)
            else:
                values.append(Tensor._make(t.on(self.device), r))
        return interpret(lin.backward, [*values, *given], self.device)


class OwnResult:
    """A residual that is the node's own result: kept without a reference back to the node."""

    __slots__ = ("type", "handle", "index")

    def __init__(self, type_: TensorType, handle: Any, index: int | None) -> None:
        self.type = type_
        self.handle = handle
        self.index = index

    @property
    def _buf(self) -> Any:
        return self.handle


def interpret(
    graph: Graph, values: Sequence[Tensor], device: Device | None = None
) -> tuple[Tensor, ...]:
    """Run a graph through the door on tensors: every op is dispatched, and recorded where they are.

    Nodes without operands make their constants on `device`; without one, where ops run now.
    """
    env: dict[int, Any] = dict(enumerate(values))
    for node in graph.nodes:
        if not node.operands and device is not None:
            made = _constants(node, graph, device)
            env.update(zip(node.results, made, strict=True))
            continue
        operands = tuple(None if i is None else env[i] for i in node.operands)
        out = call_op(node.op, operands, node.attributes)
        if node.single:
            env[node.results[0]] = out
        else:
            env.update(zip(node.results, out, strict=True))
    return tuple(env[i] for i in graph.outputs)


_makers: dict[Any, Callable[..., Any]] = {}


def _constants(node: GraphNode, graph: Graph, device: Device) -> list[Tensor]:
    """The results of a node without operands, made on a device."""
    key = (node.op, node.op.key((), node.attributes), device)
    call = _makers.get(key)
    types: list[Any] = [graph.types[i] for i in node.results]
    if call is None:
        ids = tuple(range(len(types)))
        alone = dataclasses.replace(node, results=ids)
        call = lower(Graph(0, types, [alone], ids, node.single), device)
        if len(_makers) > 1024:
            _makers.clear()
        _makers[key] = call
    found = call()
    handles = (found,) if node.single else found
    return [Tensor._make(t.on(device), h) for t, h in zip(types, handles, strict=True)]


def call_op(op: Op, operands: tuple[Any, ...], attributes: Any) -> Any:
    """An op on flat operands."""
    types = [None if x is None else x._type for x in operands]
    call = None if runtime_state.staging else op.table.get(op.key(types, attributes))
    if call is None:
        return dispatch(op, operands, dict(attributes))
    return call(*operands)


def backward(
    outputs: Sequence[tuple[Any, Any]],
    leaves: Sequence[Any],
    create_graph: bool,
    start: int,
) -> list[Any]:
    """Pull cotangents back from output edges to leaves.

    Nodes are taken in descending sequence number, that is in reverse program order, so a node's
    cotangent is complete when its turn comes and sums are formed in one order whatever the shape of
    the graph.

    Args:
        outputs: pairs of edge and cotangent: handles, or tensors when `create_graph`.
        leaves: edges at which to stop; their cotangents are returned.
        create_graph: run through the door on tensors, so that the result can be differentiated
        again.
        start: nodes older than this sequence number cannot lead to a leaf.

    Returns:
        One cotangent per leaf, None where no path leads.
    """
    cotangents: dict[Any, Any] = {}
    heap: list[tuple[int, Any]] = []
    push, pop = heapq.heappush, heapq.heappop
    accumulate = _add_tensors if create_graph else _add_handles
    take = cotangents.pop
    get = cotangents.get
    stop = set(leaves)

    def give(edge: Any, value: Any) -> None:
        have = get(edge)
        if have is None:
            cotangents[edge] = value
            if edge.seq >= start and edge not in stop:
                push(heap, (-edge.seq, edge))
        else:
            cotangents[edge] = accumulate(edge, have, value)

    for edge, value in outputs:
        if edge is not None and value is not None:
            give(edge, value)
    partial: dict[Any, list[Any]] = {}
    while heap:
        edge = pop(heap)[1]
        value = take(edge)
        if edge.hooks:
            value = _run_hooks(edge, value, create_graph)
        if edge.__class__ is Node:
            plan = edge.plan
            parents = edge.parents
            call = plan.fast
            if call is not None and not create_graph and not edge.deep:
                found = call(*edge.residuals, value)
                if plan.fast_index is not None:
                    parent = parents[plan.fast_index]
                    have = get(parent)
                    if have is None:
                        cotangents[parent] = found
                        if parent.seq >= start and parent not in stop:
                            push(heap, (-parent.seq, parent))
                    else:
                        cotangents[parent] = accumulate(parent, have, found)
                else:
                    for i, grad in zip(plan.fast_wrt, found):
                        give(parents[i], grad)
                continue
            values: Sequence[Any] = (value,) if edge not in partial else partial.pop(edge)
            grads = plan.run(edge, values, create_graph)
            for parent, grad in zip(parents, grads):
                if parent is not None and grad is not None:
                    give(parent, grad)
        elif edge.__class__ is Output:
            node = edge.node
            slots = partial.get(node)
            if slots is None:
                slots = partial[node] = [None] * node.plan.n_results
                cotangents[node] = slots
                if node.seq >= start:
                    push(heap, (-node.seq, node))
            have = slots[edge.index]
            slots[edge.index] = value if have is None else accumulate(edge, have, value)
    result = []
    for leaf in leaves:
        value = get(leaf)
        if value is not None and leaf.hooks:
            value = _run_hooks(leaf, value, create_graph)
        result.append(value)
    return result


def edge_type(edge: Any) -> TensorType:
    """Type, with device, of the value an edge stands for."""
    if isinstance(edge, Leaf):
        return edge.type
    if isinstance(edge, Output):
        plan = edge.node.plan
        return plan.result_types[edge.index].on(plan.device)
    return edge.plan.result_types[0].on(edge.plan.device)


_adders: dict[TensorType, Callable[..., Any]] = {}


def _add_handles(edge: Any, a: Any, b: Any) -> Any:
    type_ = edge_type(edge)
    type_ = type_.on(type_.device)
    call = _adders.get(type_)
    if call is None:
        assert type_.device is not None
        call = lower(trace(add, [type_, type_]), type_.device)
        if len(_adders) > 4096:
            _adders.clear()
        _adders[type_] = call
    return call(a, b)


def _add_tensors(edge: Any, a: Any, b: Any) -> Any:
    del edge
    return a + b


def _run_hooks(edge: Any, value: Any, create_graph: bool) -> Any:
    """Gradient hooks see a Tensor and may return another one."""
    type_ = edge_type(edge)
    shown = value if create_graph else Tensor._make(type_.on(type_.device), value)
    for hook in list(edge.hooks):
        found = hook(shown)
        if found is not None:
            if not isinstance(found, Tensor) or found.shape != shown.shape:
                got = found.shape if isinstance(found, Tensor) else type(found).__name__
                raise GradientError(
                    f"hook: {getattr(hook, '__name__', hook)} returned {got}; "
                    f"wanted None or a Tensor of shape {shown.shape}"
                )
            shown = found
    return shown if create_graph else handle_of(shown, type_)


def handle_of(t: Tensor, like: TensorType) -> Any:
    """The handle of `t` on the device of `like`, cast to its dtype."""
    if t._type.device is None:
        assert like.device is not None
        commit(t, like.device)
    if t._type.dtype is not like.dtype:
        t = cast_to(t, like.dtype)
    return t._buf


class PythonPlan:
    """Plan of a node whose backward is a Python function of tensors: a Cell's own bprop, hooks.

    The function takes whether its result will be differentiated again, and one cotangent per
    result.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        result_types: tuple[TensorType, ...],
        parent_types: tuple[TensorType | None, ...],
        device: Device,
        name: str,
    ) -> None:
        self.function = function
        self.result_types = result_types
        self.parent_types = parent_types
        self.n_results = len(result_types)
        self.device = device
        self.name = name
        self.fast: Callable[..., Any] | None = None
        self.fast_index: int | None = None
        self.fast_wrt: tuple[int, ...] = ()

    def run(self, node: Node, cotangents: Sequence[Any], create_graph: bool) -> Sequence[Any]:
        given = []
        for c, t in zip(cotangents, self.result_types, strict=True):
            if c is None:
                given.append(zeros_of(t))
            else:
                given.append(c if create_graph else Tensor._make(t.on(self.device), c))
        found = self.function(create_graph, *given)
        if len(found) != len(node.parents):
            raise GradientError(
                f"{self.name}: returned {len(found)} gradients, wanted {len(node.parents)}"
            )
        if create_graph:
            return found
        out = []
        for g, want in zip(found, self.parent_types, strict=True):
            out.append(None if g is None or want is None else handle_of(g, want.on(self.device)))
        return out
