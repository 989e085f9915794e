"""Builds the functions that run single ops on Tensors, recorded for gradients or not.

`execution.eager` calls `eager_call` and caches the function by operand types. The operand types
alone decide its kind: plain, recorded by a tape (level 1), or recorded inside another derivative
(level 2). A function that records still checks at run time that some derivative is running. Nothing
here may read the values of tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, TypeAlias

from ..autodiff.node_plans import GraphPlan, OwnResult, without_rule
from ..autodiff.replay import replay
from ..autodiff.tape import Edge, Node, Output, edge_of
from ..backend.plugin_checks import as_many
from ..backend.prepared import Handle
from ..dtype import DType
from ..errors import MissingRuleError
from ..ir.basic_ops import cast_to
from ..ir.builder import GraphBuilder, expand
from ..ir.graph import Graph
from ..op import Op
from ..runtime_state import runtime_state
from ..tensor import Tensor
from ..types import Device, TensorType
from .kernel_failures import name_graph
from .lower import lower

__all__ = ["TensorCall", "eager_call", "graph_call"]

Result: TypeAlias = Tensor | tuple[Tensor, ...]
# From operand tensors, None for an absent one, to a `Result`.
TensorCall: TypeAlias = Callable[..., Any]
Pick: TypeAlias = Callable[[tuple[Handle, ...]], tuple[Handle, ...]]

_new = object.__new__


def op_graph(op: Op, types: Sequence[TensorType | None], attributes: Mapping[str, object]) -> Graph:
    """Return a graph that calls one op, after the casts that type promotion requires."""
    builder = GraphBuilder()
    values = [None if t is None else builder.parameter(t.plain) for t in types]
    with builder.current():
        return builder.finish(builder.apply(op, tuple(values), dict(attributes)))


def eager_call(
    op: Op, types: Sequence[TensorType | None], attributes: Mapping[str, object], device: Device
) -> TensorCall:
    """Return a function that runs an op on Tensors of given types, for eager mode.

    A tensor type includes whether a derivative records the tensor. If one of `types` does, the
    function also records the call on the tape. While `detect_anomaly` is on, the function also
    checks its results.
    """
    call = _unwatched_call(op, types, attributes, device)
    watch = runtime_state.watch
    return call if watch is None else watch.watched(op, attributes, call)


def _unwatched_call(
    op: Op, types: Sequence[TensorType | None], attributes: Mapping[str, object], device: Device
) -> TensorCall:
    """Return the function of `eager_call` without the checks of `detect_anomaly`."""
    level = max((t.level for t in types if t is not None), default=0)
    graph = op_graph(op, types, attributes)
    plain = graph_call(graph, types, device)
    if level == 0 or not op.differentiable:
        return plain
    wanted = tuple(t.level > 0 for t in types if t is not None)
    try:
        return _differentiated(op, graph, types, wanted, device, attributes, plain)
    except MissingRuleError as error:
        return _unruled_call(plain, error)


def _unruled_call(plain: TensorCall, error: MissingRuleError) -> TensorCall:
    """Return a function that runs an op without a gradient rule and records its results.

    The call itself succeeds; a backward pass through the results raises `error`. `plain` runs the
    op without recording.
    """

    def call(*operands: Tensor | None) -> Result:
        found: Result = without_rule(plain(*operands), operands, error)
        return found

    return call


def _differentiated(
    op: Op,
    graph: Graph,
    types: Sequence[TensorType | None],
    wanted: tuple[bool, ...],
    device: Device,
    attributes: Mapping[str, object],
    plain: TensorCall,
) -> TensorCall:
    """Return a function that runs an op and records the call on the tape.

    The highest level among the operand types decides how the call is recorded: level 1 for one
    derivative, level 2 for derivatives of derivatives. `wanted` says for each present operand
    whether it needs a gradient; `plain` runs the op without recording.
    """
    if max(t.level for t in types if t is not None) == 1:
        return _recorded_call(op, graph, types, wanted, device, plain)
    target = op.promoted_dtype(types)
    if target is not None and any(
        t is not None and t.dtype is not target for t in types[op.promote_from :]
    ):
        return _guarded(plain, _promoting_call(op, target, attributes))
    if op.body is not None and op.bprop_rule is None:
        body = expand(op, tuple([None if t is None else t.plain for t in types]), attributes)
        return _guarded(plain, _interpreted(body, device))
    return _deep_call(op, graph, types, wanted, device, plain)


def _interpreted(graph: Graph, device: Device) -> TensorCall:
    """Return a function that runs the ops of a composite op's body, each recorded on the tape.

    Each operand first gets a new tape node that passes its cotangent on. In the backward
    pass this node first sums the cotangents from all uses of the operand in the body, then passes
    the sum on. The gradients are therefore bit for bit those of a composite op that is recorded as
    one tape node.
    """

    def call(*operands: Tensor | None) -> Result:
        values = [x for x in operands if x is not None]
        for k in reversed(range(len(values))):
            if values[k]._type.level:
                values[k] = _with_own_edge(values[k])
        found = replay(graph, values, device)
        return found[0] if graph.single else found

    return call


class _OperandPlan:
    """The backward computation of tape nodes that pass the cotangent on unchanged.

    `_with_own_edge` adds such nodes to the tape; their result has the value of their operand.
    """

    n_results = 1
    fast: TensorCall | None = None
    fast_index: int | None = None
    fast_wrt: tuple[int, ...] = ()
    continues_sums = False

    def __init__(self, type_: TensorType) -> None:
        self.result_types: tuple[TensorType, ...] = (type_.plain,)
        self.devices: tuple[Device, ...] = (type_.committed_device,)

    def failed(self, error: Exception) -> None:
        """Do nothing: there is no function `fast` that could raise an error."""

    def run(
        self,
        node: Node,
        cotangents: Sequence[object],
        create_graph: bool,
        sums: Sequence[object] = (),
    ) -> Sequence[object]:
        return cotangents


def _with_own_edge(t: Tensor) -> Tensor:
    """Return a tensor with the buffer of `t` and a new tape node, which leads to `t`.

    The backward pass sums the cotangents of the new tensor before it passes their sum on to `t`.
    """
    made = Tensor._make(t._type, t._buf)
    made._edge = Node(_OperandPlan(t._type), (edge_of(t),), (), True)
    return made


def _type(graph: Graph, i: int) -> TensorType:
    """Return the tensor type of graph value number `i`."""
    found = graph.types[i]
    assert isinstance(found, TensorType)
    return found


def _present(types: Sequence[TensorType | None]) -> tuple[int, ...] | None:
    """Return the indices of the operands that are present (not None); None if all are."""
    if None not in types:
        return None
    return tuple(i for i, t in enumerate(types) if t is not None)


def graph_call(graph: Graph, types: Sequence[TensorType | None], device: Device) -> TensorCall:
    """Return a function that runs a graph on Tensors of given types, without the tape."""
    kernel = lower(graph, device, links=len(graph.nodes) > 2)
    out_types = tuple(_type(graph, i).on(device) for i in graph.outputs)
    here = _present(types)
    failed = partial(name_graph, graph=graph, device=device)
    if graph.single:
        (out_type,) = out_types
        if here is None and len(types) == 2:

            def binary(a: Tensor, b: Tensor) -> Tensor:
                t = _new(Tensor)
                try:
                    t._buf = kernel(a._buf, b._buf)
                except Exception as error:
                    failed(error)
                    raise
                t._type = out_type
                return t

            return binary
        if here is None and len(types) == 1:

            def unary(a: Tensor) -> Tensor:
                t = _new(Tensor)
                try:
                    t._buf = kernel(a._buf)
                except Exception as error:
                    failed(error)
                    raise
                t._type = out_type
                return t

            return unary

        def call(*operands: Tensor) -> Tensor:
            t = _new(Tensor)
            try:
                t._buf = kernel(*[x._buf for x in operands if x is not None])
            except Exception as error:
                failed(error)
                raise
            t._type = out_type
            return t

        return call
    make = Tensor._make
    count = len(out_types)
    text = f"{' and '.join(dict.fromkeys([n.op.name for n in graph.nodes]))} on {device}"

    def several(*operands: Tensor) -> tuple[Tensor, ...]:
        try:
            handles = kernel(*[x._buf for x in operands if x is not None])
        except Exception as error:
            failed(error)
            raise
        return tuple([make(t, h) for t, h in zip(out_types, as_many(handles, count, text))])

    return several


def _pick(indices: Sequence[int]) -> Pick:
    """Return a function that maps a tuple to the tuple of its items at `indices`."""
    if not indices:
        return lambda values: ()
    if len(indices) == 1:
        (i,) = indices
        return lambda values: (values[i],)
    return itemgetter(*indices)


class _Recording:
    """A kernel that also returns an op's residuals, the values that its gradient needs.

    Attributes:
        plan: gradient plan of the tape nodes.
        kernel: function from operand handles to the handles of the results, then of residuals that
            are neither operands nor results.
        pick: function that selects the residuals from the operand handles followed by the kernel's
            results.
        result_types: types of the results, marked as recorded.
        single: whether the op returns a single value instead of a tuple.
        forward_single: whether `kernel` returns a single handle instead of a tuple.
        present: indices of operands that are not None; None if all are present.
        recorded: for each operand, whether a tape records it.
    """

    def __init__(
        self, plan: GraphPlan, graph: Graph, types: Sequence[TensorType | None], device: Device
    ) -> None:
        forward = plan.full.forward
        self.plan = plan
        self.kernel = lower(forward, device)
        self.failed = partial(name_graph, graph=graph, device=device)
        n_params = graph.n_params
        positions = {i: n_params + k for k, i in reversed(list(enumerate(forward.outputs)))}
        self.pick = _pick([i if i < n_params else positions[i] for i in plan.full.residuals])
        self.result_types = tuple(_type(graph, i).on(device, 1) for i in graph.outputs)
        self.single = graph.single
        self.forward_single = forward.single
        self.present = _present(types)
        self.recorded = tuple([t is not None and t.level > 0 for t in types])


def _recorded_call(
    op: Op,
    graph: Graph,
    types: Sequence[TensorType | None],
    wanted: tuple[bool, ...],
    device: Device,
    plain: TensorCall,
) -> TensorCall:
    """Return a function that runs an op and records the call as a tape node.

    `wanted` says for each present operand whether it needs a gradient. If the op has no derivative
    with respect to any of these operands, the result is `plain`, which does not record.
    """
    plan = GraphPlan(graph, wanted, device, op.name)
    if not plan.full.wrt:
        return plain
    recording = _Recording(plan, graph, types, device)
    if recording.single and recording.forward_single and recording.present is None:
        if len(types) == 1:
            return _recorded_unary(recording, plain)
        if len(types) == 2:
            return _recorded_binary(recording, plain)
    return _recorded_general(recording, plain)


def _recorded_unary(recording: _Recording, plain: TensorCall) -> TensorCall:
    """Return a function that runs a kernel with one operand and result, and records a tape node.

    Where no derivative is running, the function calls `plain` instead.
    """
    plan, kernel, pick = recording.plan, recording.kernel, recording.pick
    (out_type,) = recording.result_types
    failed = recording.failed

    def unary(a: Tensor) -> Tensor:
        if not runtime_state.derivatives:
            return plain(a)
        buf = a._buf
        try:
            out = kernel(buf)
        except Exception as error:
            failed(error)
            raise
        t = _new(Tensor)
        t._buf = out
        t._type = out_type
        edge = a._edge
        if edge.seq < runtime_state.horizon:
            edge = edge_of(a)
        t._edge = Node(plan, (edge,), pick((buf, out)), False)
        return t

    return unary


def _recorded_binary(recording: _Recording, plain: TensorCall) -> TensorCall:
    """Return a function as `_recorded_unary` does, for kernels of two operands and one result."""
    plan, kernel, pick = recording.plan, recording.kernel, recording.pick
    (out_type,) = recording.result_types
    first, second = recording.recorded
    failed = recording.failed

    def binary(a: Tensor, b: Tensor) -> Tensor:
        if not runtime_state.derivatives:
            return plain(a, b)
        x = a._buf
        y = b._buf
        try:
            out = kernel(x, y)
        except Exception as error:
            failed(error)
            raise
        t = _new(Tensor)
        t._buf = out
        t._type = out_type
        edge = other = None
        if first:
            edge = a._edge
            if edge.seq < runtime_state.horizon:
                edge = edge_of(a)
        if second:
            other = b._edge
            if other.seq < runtime_state.horizon:
                other = edge_of(b)
        t._edge = Node(plan, (edge, other), pick((x, y, out)), False)
        return t

    return binary


def _recorded_general(recording: _Recording, plain: TensorCall) -> TensorCall:
    """Return a function as `_recorded_unary` does, for any number of operands and results."""
    plan, kernel, pick = recording.plan, recording.kernel, recording.pick
    present, result_types = recording.present, recording.result_types
    single, forward_single = recording.single, recording.forward_single
    recorded = tuple(i for i, r in enumerate(recording.recorded) if r)
    failed, make = recording.failed, Tensor._make

    def call(*operands: Any) -> Result:
        if not runtime_state.derivatives:
            return plain(*operands)
        given = operands if present is None else [operands[i] for i in present]
        handles = tuple([x._buf for x in given])
        try:
            found = kernel(*handles)
        except Exception as error:
            failed(error)
            raise
        if forward_single:
            found = (found,)
        edges: list[Edge | None] = [None] * len(operands)
        for i in recorded:
            edges[i] = edge_of(operands[i])
        parents = tuple(edges) if present is None else tuple([edges[i] for i in present])
        node = Node(plan, parents, pick((*handles, *found)), False)
        if single:
            t = make(result_types[0], found[0])
            t._edge = node
            return t
        results = []
        for i, type_ in enumerate(result_types):
            t = make(type_, found[i])
            t._edge = Output(node, i)
            results.append(t)
        return tuple(results)

    return call


def _deep_call(
    op: Op,
    graph: Graph,
    types: Sequence[TensorType | None],
    wanted: tuple[bool, ...],
    device: Device,
    plain: TensorCall,
) -> TensorCall:
    """Return a function that runs an op and records it for derivatives of derivatives.

    The kernel runs only the op, so all residuals are operands or results. They are kept as Tensors
    that a further derivative can record. `wanted` says for each present operand whether it needs a
    gradient. If the op has no derivative with respect to any of these operands, the result is
    `plain`, which does not record.
    """
    plan = GraphPlan(graph, wanted, device, op.name)
    lin = plan.full
    if not lin.wrt:
        return plain
    kernel = lower(graph, device)
    failed = partial(name_graph, graph=graph, device=device)
    n_params = graph.n_params
    where = {i: k for k, i in enumerate(lin.forward.outputs)}
    out_types = tuple(_type(graph, i).on(device, 2) for i in graph.outputs)
    single = graph.single
    recorded = [t is not None and t.level > 0 for t in types]

    def call(*operands: Tensor | None) -> Result:
        if not runtime_state.derivatives:
            return plain(*operands)
        given = [x for x in operands if x is not None]
        try:
            found = kernel(*[x._buf for x in given])
        except Exception as error:
            failed(error)
            raise
        handles = (found,) if single else found
        residuals: list[Tensor | OwnResult] = []
        for i in lin.residuals:
            if i < n_params:
                residuals.append(_alias(given[i]))
            else:
                k = where[i]
                residuals.append(OwnResult(out_types[k], handles[k], None if single else k))
        parents = tuple(
            [
                edge_of(x) if r else None
                for x, r in zip(operands, recorded, strict=True)
                if x is not None
            ]
        )
        node = Node(plan, parents, tuple(residuals), True)
        results = []
        for k, (h, t) in enumerate(zip(handles, out_types, strict=True)):
            made = Tensor._make(t, h)
            made._edge = node if single else Output(node, k)
            results.append(made)
        for r in () if single else residuals:
            if isinstance(r, OwnResult) and r.index is not None:
                r.recorded_as(results[r.index]._edge)
        return results[0] if single else tuple(results)

    return call


def _alias(t: Tensor) -> Tensor:
    """Return a new tensor with the buffer and tape node of `t`, for use as a residual.

    Later in-place writes to `t` do not change the new tensor. A tape node that only passes the
    cotangent on (from `_with_own_edge`) is replaced by the node to which it passes the cotangent.
    """
    made = Tensor._make(t._type, t._buf)
    if t._type.level:
        edge = t._edge
        while edge.__class__ is Node and edge.plan.__class__ is _OperandPlan:
            (edge,) = edge.parents
        made._edge = edge
    return made


def _promoting_call(op: Op, target: DType, attributes: Mapping[str, object]) -> TensorCall:
    """Return a function that casts operands to dtype `target`, and then runs an op on them.

    The casts and the op are recorded on the tape. Operands before `op.promote_from` are not cast.
    """

    def call(*operands: Tensor | None) -> Result:
        cast = list(operands)
        for i in reversed(range(op.promote_from, len(cast))):  # as GraphBuilder.apply
            x = cast[i]
            if x is not None and x._type.dtype is not target:
                cast[i] = cast_to(x, target)
        packed = (cast,) if op.variadic else op.arguments(cast)
        result: Result = op.function(*packed, **attributes)
        return result

    return call


def _guarded(plain: TensorCall, recorded: TensorCall) -> TensorCall:
    """Return a function that calls `recorded` while a derivative is recording, else `plain`.

    The derivatives of all threads count.
    """

    def call(*operands: Tensor | None) -> Result:
        return recorded(*operands) if runtime_state.derivatives else plain(*operands)

    return call
