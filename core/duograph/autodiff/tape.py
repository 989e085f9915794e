"""The eager tape: records op calls as nodes, and walks back over them to compute gradients.

There is no global list of calls: a recorded tensor refers to its *edge*, the edge's node refers to
the edges of its operands, and a node is freed with the last tensor that depends on it. A node has a
plan (`node_plans`), which computes the cotangents of its operands. `execution.eager_calls` and
`compiler.recorded_call` create nodes; `recording` calls `backward`. At level 1 residuals are buffer
handles and plans run compiled kernels; at level 2 (inside another derivative) residuals are tensors
and plans dispatch ops, which the outer derivative records.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

from ..backend import registry
from ..backend.protocol import Handle
from ..errors import DeviceError, GradientError
from ..execution.lower import lower
from ..ir.basic_ops import cast_to
from ..ir.builder import trace
from ..op_tables import kernel_cache
from ..ops.elementwise import add
from ..placement import commit
from ..runtime_state import runtime_state, thread_state
from ..tensor import Tensor
from ..types import Device, TensorType

__all__ = [
    "Edge",
    "Hook",
    "Leaf",
    "LeafListener",
    "Node",
    "Output",
    "Plan",
    "backward",
    "edge_of",
    "edge_type",
    "fitted",
    "handle_of",
    "hooks_of",
    "with_present_edge",
]

_sequence = itertools.count(1)
next_sequence = _sequence.__next__


class DerivativeScope:
    """Context manager within which the tape records; scopes may be nested in a thread.

    Entering returns the nesting depth, 1 for the outermost. When a thread leaves its outermost
    scope, tensors that got a recorded value by an in-place write are detached from the tape.
    """

    def __enter__(self) -> int:
        thread_state.derivative_depth += 1
        runtime_state.enter_derivative(next_sequence)
        return thread_state.derivative_depth

    def __exit__(self, *_: object) -> None:
        thread_state.derivative_depth -= 1
        runtime_state.leave_derivative()
        if not thread_state.derivative_depth and thread_state.recorded_writes:
            _detach_written_tensors()


def _detach_written_tensors() -> None:
    """Detach from the tape the tensors to which a recorded value was written in place."""
    tensors = [ref() for ref in thread_state.recorded_writes.values()]
    thread_state.recorded_writes.clear()
    for t in tensors:
        if t is not None and t._type.level and not getattr(t, "_recording", ()):
            plain = t._type.on(t._type.device)
            t._type = plain
            runtime_state.bindings_version = object()
            t._edge = Leaf(plain)  # another thread may have read the old type already


def hooks_of(t: Tensor) -> list[Hook]:
    """Return the list of the gradient hooks of a tensor, to which hooks can be added.

    Hooks of a recorded value belong to its tape edge: after an in-place write the tensor has
    others. Hooks of a Parameter belong to it as long as it has the value of its leaf.
    """
    edge: Edge | None = t._edge if t._type.level else None
    if edge is not None and edge is not getattr(t, "_leaf", None):
        if edge.hooks is None:
            edge.hooks = []
        return edge.hooks
    if not hasattr(t, "_hooks"):
        t._hooks = []
    if edge is not None:
        edge.hooks = t._hooks
    return t._hooks


def with_present_edge(t: Tensor) -> Tensor:
    """Return a new Tensor with the buffer and the tape edge that `t` has now.

    If `t` has no device yet, it is first placed on the current device. Later in-place writes to `t`
    do not change the new Tensor.
    """
    made = Tensor._make(t._type, t._buf)
    if t._type.level:
        made._edge = t._edge
    elif t._type.device is None:
        commit(t, registry.current_device())
        made = Tensor._make(t._type, t._buf)
    return made


def edge_of(t: Tensor) -> Edge:
    """Return the tape edge of a recorded tensor that an op is about to read.

    If the edge is older than every running derivative, the derivative that recorded it has ended. A
    new `Leaf` then replaces it, so that the old nodes can be freed. An old leaf stays: it keeps no
    node alive, and another thread may just be recording its Parameter again.
    """
    edge: Edge = t._edge
    if edge.seq < runtime_state.horizon and edge.__class__ is not Leaf:
        edge = t._edge = Leaf(t._type.on(t._type.device))
    return edge


class Plan(Protocol):
    """Interface of objects that compute the cotangents of a recorded call's operands.

    Attributes:
        n_results: number of results of the call.
        result_types: types of the results, without a device.
        devices: for each result, the device of its cotangent.
        fast: for calls with one result, a function `fast(*residuals, cotangent)` on buffer handles;
            None if `run` must be used.
        fast_index: index of the operand to which the single result of `fast` belongs; None if
            `fast` returns a tuple.
        fast_wrt: indices of the operands to which the items of that tuple belong.
        continues_sums: whether `run` takes the sums of cotangents that the operands have so far,
            and returns these sums with its own contributions added.
    """

    n_results: int
    result_types: tuple[TensorType, ...]
    devices: tuple[Device, ...]
    fast: Callable[..., Handle] | None
    fast_index: int | None
    fast_wrt: tuple[int, ...]
    continues_sums: bool

    def failed(self, error: Exception) -> None:
        """Say in an error that `fast` raised what it was to compute."""

    def run(
        self,
        node: Node,
        cotangents: Sequence[Cotangent | None],
        create_graph: bool,
        sums: Sequence[Cotangent | None] = (),
    ) -> Sequence[Cotangent | None]: ...


class LeafListener(Protocol):
    """Interface of an object to which a backward pass reports gradients once they are complete.

    `complete(position, handle)` is called with the position of a leaf and the buffer handle of its
    cotangent, once no later step can change it. Leaves without a cotangent, or with hooks, are not
    reported. `poll()` is called before the backward pass visits the next tape edge.
    """

    def complete(self, position: int, handle: Handle) -> None: ...

    def poll(self) -> None: ...


class Node:
    """A tape node: one recorded call. It is also the edge of its result if there is only one.

    Attributes:
        seq: sequence number, larger than those of all nodes on which this one depends.
        plan: computes the cotangents of the operands.
        parents: the edges of the operands; None for an operand that is not recorded.
        residuals: tuple of the forward values that the plan needs: handles or tensors.
        deep: whether the call was recorded at level 2, that is inside another derivative. Residuals
            are then tensors.
        hooks: gradient hooks of the result, or None.
    """

    __slots__ = ("seq", "plan", "parents", "residuals", "deep", "hooks", "__weakref__")

    def __init__(
        self,
        plan: Plan,
        parents: tuple[Edge | None, ...],
        residuals: Sequence[Cotangent],
        deep: bool,
    ) -> None:
        self.seq = next_sequence()
        self.plan = plan
        self.parents = parents
        self.residuals = residuals
        self.deep = deep
        self.hooks: list[Hook] | None = None


class Leaf:
    """The tape edge of an input or weight of a derivative, at which the backward pass stops.

    Attributes:
        seq: sequence number.
        type: the type of the tensor, with its device.
        hooks: gradient hooks of the tensor, or None.
    """

    __slots__ = ("seq", "type", "hooks", "__weakref__")

    def __init__(self, type_: TensorType) -> None:
        self.seq = next_sequence()
        self.type = type_
        self.hooks: list[Hook] | None = None


class Output:
    """The tape edge of one result of a node that has several results.

    Attributes:
        node: the node.
        index: index of the result.
        seq: sequence number.
        hooks: gradient hooks of the result, or None.
    """

    __slots__ = ("node", "index", "seq", "hooks", "__weakref__")

    def __init__(self, node: Node, index: int) -> None:
        self.node = node
        self.index = index
        self.seq = next_sequence()
        self.hooks: list[Hook] | None = None


class Hook:
    """The handle of a gradient hook registered on a Tensor; `remove()` unregisters the hook.

    A function that is registered twice has two handles.
    """

    def __init__(self, hooks: list[Hook], function: Callable[[Tensor], object]) -> None:
        self.function = function
        self._hooks = hooks
        hooks.append(self)

    def remove(self) -> None:
        """Unregister the gradient hook; a second call does nothing."""
        if self in self._hooks:
            self._hooks.remove(self)
            runtime_state.cells_version += 1  # compiled functions compare a Parameter's hooks


Edge: TypeAlias = "Node | Leaf | Output"
# The gradient of a result: a tensor if the gradient is itself differentiated, else a handle.
Cotangent: TypeAlias = "Tensor | Handle"


def backward(
    outputs: Sequence[tuple[Edge | None, Cotangent | None]],
    leaves: Sequence[Edge],
    create_graph: bool,
    start: int,
) -> list[Cotangent | None]:
    """Propagate cotangents through the tape, from outputs back to the edges in `leaves`.

    Edges are visited in descending order of their sequence numbers, that is in reverse program
    order. The cotangent of a node is therefore complete when the node is visited, and the order of
    every sum is independent of the shape of the graph. The loop is one long function because each
    further function call would cost as much as the rest of a visit.

    Args:
        outputs: pairs of an edge and its cotangent: a tensor with `create_graph`, otherwise a
            handle.
        leaves: edges at which to stop.
        create_graph: whether to compute with recorded ops on tensors, so that the gradients can be
            differentiated again.
        start: nodes with a smaller sequence number cannot lead to a leaf and are not visited.

    Returns:
        One cotangent per leaf; None for a leaf on which no output depends.
    """
    cotangents: dict[Edge, Cotangent] = {}
    heap: list[tuple[int, Edge]] = []
    push, pop = heapq.heappush, heapq.heappop
    accumulate = _add_tensors if create_graph else _add_handles
    take = cotangents.pop
    get = cotangents.get
    stop = set(leaves)
    # an enclosing derivative records further tensors, from which no path leads to a leaf
    leading = _leading_to(outputs, stop, start) if create_graph else None
    watch = runtime_state.watch
    fast = not create_graph and watch is None

    def give(edge: Edge, value: Cotangent) -> None:
        if leading is not None and edge not in leading:
            return
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
    slots_of: dict[
        Node, list[Cotangent | None]
    ] = {}  # cotangents of the results of nodes with several
    listener = None if create_graph else thread_state.leaf_listener
    pending: list[tuple[int, int]] = []
    if listener is not None:
        thread_state.leaf_listener = None  # it is not for backward passes inside this one
        pending = _last_uses([edge for edge, _ in outputs], leaves, start)
    while heap:
        edge = pop(heap)[1]
        if listener is not None:
            while pending and pending[-1][0] > edge.seq:
                _tell(listener, leaves, pending.pop()[1], get)
            listener.poll()
        value = take(edge)
        if edge.hooks and edge.__class__ is not Leaf:  # a leaf of another derivative
            value = _run_hooks(edge, value, create_graph)
        if edge.__class__ is Node:
            plan = edge.plan
            parents: tuple[Any, ...] = edge.parents
            call = plan.fast
            if call is not None and fast and not edge.deep:
                try:
                    found = call(*edge.residuals, value)
                except Exception as error:
                    plan.failed(error)
                    raise
                if plan.fast_index is not None:
                    give(parents[plan.fast_index], found)
                else:
                    for i, grad in zip(plan.fast_wrt, found):
                        give(parents[i], grad)
                continue
            values = (value,) if edge not in slots_of else slots_of.pop(edge)
            if plan.continues_sums:
                sums = [None if p is None else get(p) for p in _first_uses(parents)]
                run = plan.run if watch is None else watch.gradient
                totals = run(edge, values, create_graph, sums)
                for parent, have, total in zip(parents, sums, totals):
                    if have is not None:
                        cotangents[parent] = total
                    elif parent is not None and total is not None:
                        give(parent, total)
                continue
            grads = (plan.run if watch is None else watch.gradient)(edge, values, create_graph)
            for parent, grad in zip(parents, grads):
                if parent is not None and grad is not None:
                    give(parent, grad)
        elif edge.__class__ is Output:
            node = edge.node
            if node not in slots_of:
                cotangents[node] = slots_of[node] = [None] * node.plan.n_results
                if node.seq >= start:
                    push(heap, (-node.seq, node))
            slots = slots_of[node]
            have = slots[edge.index]
            slots[edge.index] = value if have is None else accumulate(edge, have, value)
    if listener is not None:
        while pending:
            _tell(listener, leaves, pending.pop()[1], get)
    return [_at_leaf(leaf, get(leaf), create_graph) for leaf in leaves]


def _leading_to(
    outputs: Sequence[tuple[Edge | None, Cotangent | None]], leaves: set[Edge], start: int
) -> set[Edge]:
    """Return the edges between outputs and leaves: those that need a cotangent, leaves included.

    The arguments are those of `backward`.
    """
    seen: set[Edge] = set()
    waiting = [edge for edge, _ in outputs if edge is not None]
    while waiting:
        edge = waiting.pop()
        if edge in seen:
            continue
        seen.add(edge)
        if edge in leaves or edge.seq < start:
            continue
        if isinstance(edge, Output):
            waiting.append(edge.node)
        elif isinstance(edge, Node):
            waiting.extend([p for p in edge.parents if p is not None])
    found = leaves & seen
    for edge in sorted(seen - leaves, key=lambda e: e.seq):  # operands before results
        below = (edge.node,) if isinstance(edge, Output) else getattr(edge, "parents", ())
        if edge.seq >= start and any(p in found for p in below):
            found.add(edge)
    return found


def _last_uses(
    outputs: Sequence[Edge | None], leaves: Sequence[Edge], start: int
) -> list[tuple[int, int]]:
    """Return when the cotangents of leaves are complete, as pairs (sequence number, position).

    The number is that of the last node to be visited that reads the leaf; the position is that of
    the leaf. The pairs are sorted by number; leaves that no node reads are left out. Nodes whose
    sequence number is less than `start` are not visited.
    """
    positions = {leaf: i for i, leaf in enumerate(leaves)}
    found: dict[int, int] = {}
    seen: set[Edge] = set()
    waiting = [edge for edge in outputs if edge is not None]
    while waiting:
        edge = waiting.pop()
        node = edge.node if isinstance(edge, Output) else edge
        if node in seen or not isinstance(node, Node) or node.seq < start:
            continue
        seen.add(node)
        for parent in node.parents:
            if parent is None:
                continue
            i = positions.get(parent)
            if i is None:
                waiting.append(parent)
            else:
                found[i] = min(found.get(i, node.seq), node.seq)
    return sorted((seq, i) for i, seq in found.items())


def _tell(
    listener: LeafListener,
    leaves: Sequence[Edge],
    position: int,
    get: Callable[[Edge], Cotangent | None],
) -> None:
    """Report the cotangent of a leaf to a listener, if the leaf has a cotangent and no hooks.

    `position` is the position of the leaf, and `get` returns the cotangent of an edge.
    """
    handle = get(leaves[position])
    if handle is not None and not leaves[position].hooks:
        listener.complete(position, handle)


def _first_uses(parents: Sequence[Edge | None]) -> list[Edge | None]:
    """Return the edges of a call's operands, with None for repetitions of an earlier edge."""
    first = {p: k for k, p in reversed(list(enumerate(parents)))}
    return [p if first[p] == k else None for k, p in enumerate(parents)]


def _at_leaf(leaf: Edge, value: Cotangent | None, create_graph: bool) -> Cotangent | None:
    """Run the gradient hooks of an input or weight on its cotangent `value`; return the result.

    Returns None if there is no cotangent. With `create_graph`, the cotangent is a tensor, computed
    by recorded ops; otherwise it is a buffer handle.
    """
    if value is not None and leaf.hooks:
        return _run_hooks(leaf, value, create_graph)
    return value


def edge_type(edge: Edge) -> TensorType:
    """Return the type, with device, of the tensor to which a tape edge belongs."""
    if isinstance(edge, Leaf):
        return edge.type
    if isinstance(edge, Output):
        plan = edge.node.plan
        return plan.result_types[edge.index].on(plan.devices[edge.index])
    return edge.plan.result_types[0].on(edge.plan.devices[0])


_CACHE_LIMIT = 4096
_add_kernels = kernel_cache()


def _add_handles(edge: Edge, a: Handle, b: Handle) -> Handle:
    """Return the buffer handle of the sum of two cotangents of one edge; its kernel is cached."""
    type_ = edge_type(edge)
    type_ = type_.on(type_.device)
    kernel = _add_kernels.get(type_)
    if kernel is None:
        assert type_.device is not None
        kernel = lower(trace(add, [type_, type_]), type_.device)
        if len(_add_kernels) > _CACHE_LIMIT:
            _add_kernels.clear()
        _add_kernels[type_] = kernel
    return kernel(a, b)


def _add_tensors(edge: Edge, a: Tensor, b: Tensor) -> Tensor:
    del edge
    return a + b


def _run_hooks(edge: Edge, value: Cotangent, create_graph: bool) -> Tensor | Handle:
    """Call the gradient hooks of a tensor in order, each on the result of the one before.

    A hook that returns None leaves the gradient unchanged.

    Args:
        edge: the tape edge of the tensor.
        value: the gradient: a tensor with `create_graph`, otherwise a buffer handle. The result is
            of the same kind.
        create_graph: whether gradients are tensors, computed by recorded ops.

    Raises:
        GradientError: a hook returned neither None nor a Tensor of the gradient's shape.
    """
    type_ = edge_type(edge)
    # a new tensor: a hook may write to it, and the gradient may be another value's gradient too
    if create_graph:
        shown = with_present_edge(value)
    else:
        shown = Tensor._make(type_.on(type_.device), value)
    for hook in list(edge.hooks or ()):
        found = hook.function(shown)
        if found is not None:
            if not isinstance(found, Tensor) or found.shape != shown.shape:
                got = found.shape if isinstance(found, Tensor) else type(found).__name__
                raise GradientError(
                    f"hook: {getattr(hook.function, '__name__', hook.function)} returned {got}; "
                    f"wanted None or a Tensor of shape {shown.shape}"
                )
            shown = found
    fit = fitted if create_graph else handle_of
    return fit(shown, type_)


def handle_of(t: Tensor, like: TensorType) -> Handle:
    """Return the buffer handle of a cotangent, cast to the dtype of the type `like`.

    Raises:
        DeviceError: the cotangent is on another device than `like`.
    """
    return fitted(t, like)._buf


def fitted(t: Tensor, like: TensorType) -> Tensor:
    """Return a cotangent cast to the dtype of `like`, the type of the value it belongs to.

    A cotangent without a device is placed on the device of `like`.

    Raises:
        DeviceError: the cotangent is on another device.
    """
    if t._type.device is None:
        commit(t, like.committed_device)
    elif t._type.device is not like.device:
        raise DeviceError(
            f"grad: got a gradient on {t._type.device} for a value on {like.device}; wanted it on "
            f'the device of the value: move it with move_to("{like.device}")'
        )
    return t if t._type.dtype is like.dtype else cast_to(t, like.dtype)
