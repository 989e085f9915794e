"""The eager builder: turns the miss of an op's table into a prepared call, and keeps it there.

A prepared call takes the operand tensors and returns the result tensors. Which kind it is depends
on the operand types alone: plain, recorded by a tape (level 1), or recorded inside another
derivative (level 2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from .. import context
from ..autodiff.node_plans import GraphPlan, OwnResult
from ..autodiff.replay import replay
from ..autodiff.tape import Node, Output, edge_of
from ..backend import registry
from ..dtype import promote_scalar, scalar_dtype
from ..errors import ArgumentError, DeviceError
from ..ir.basic_ops import cast_to
from ..ir.builder import GraphBuilder, expand
from ..ir.graph import Graph
from ..op import Op, drop_tables, numbers
from ..placement import check_index, commit
from ..runtime_state import runtime_state
from ..tensor import Tensor
from ..types import Device, TensorType
from .lower import lower

__all__ = ["Eager", "TABLE_LIMIT"]

# Prepared calls kept per op; a program with ever new shapes starts over rather than growing.
TABLE_LIMIT = 4096
# 0-d tensors made of Python numbers, by value, dtype and device.
_numbers: dict[Any, Tensor] = {}
_NUMBER_LIMIT = 1024

_new = object.__new__


class Eager:
    """The builder that runs ops now."""

    def apply(self, op: Op, operands: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
        tensors, device = _on_one_device(op, operands)
        types = [None if t is None else t._type for t in tensors]
        key = op.key(types, attributes)
        call = op.table.get(key)
        if len(operands) == 2:
            _keep_number(operands, tensors)
        if call is None:
            if op.host:
                return _run_on_host(op, tensors, attributes, device)
            call = _prepare(op, types, attributes, device)
            if len(op.table) >= TABLE_LIMIT:
                op.table.clear()
            op.table[key] = call
        return call(*tensors)


runtime_state.eager_builder = Eager()


def _forget() -> None:
    drop_tables()
    _numbers.clear()
    numbers.clear()


def _keep_number(operands: Sequence[Any], tensors: Sequence[Tensor | None]) -> None:
    """Let the fast path of binary ops find the tensor of a number next time."""
    for number, other, made in (
        (operands[1], tensors[0], tensors[1]),
        (operands[0], tensors[1], tensors[0]),
    ):
        if number.__class__ in (int, float, bool) and other is not None and made is not None:
            if number.__class__ is float and number == 0.0:
                continue
            if len(numbers) >= _NUMBER_LIMIT:
                numbers.clear()
            numbers[other._type, number.__class__, number] = made


context.on_device_change.append(_forget)


def _on_one_device(op: Op, operands: tuple[Any, ...]) -> tuple[list[Tensor | None], Device]:
    """Operands as tensors committed to one device: that of the committed ones, else the current
    one.
    """
    device: Device | None = None
    like = None
    for i, x in enumerate(operands):
        if isinstance(x, Tensor):
            if like is None and i >= op.promote_from:
                like = x._type.dtype
            own = x._type.device
            if own is not None and own is not device:
                if device is not None:
                    raise DeviceError(
                        f"{op.name}: got operands on {device} and {own}; wanted all on one device: "
                        f'move one with move_to("{device}")'
                    )
                device = own
    if device is None:
        device = registry.current_device()
        check_index(device.name, device.index)
    tensors: list[Tensor | None] = []
    for i, x in enumerate(operands):
        if isinstance(x, Tensor):
            if x._type.device is None:
                commit(x, device)
            tensors.append(x)
        elif x is None and op.has_optional:
            tensors.append(None)
        elif isinstance(x, (bool, int, float, complex, np.generic)):
            tensors.append(_number(x, like if i >= op.promote_from else None, device))
        elif isinstance(x, (np.ndarray, list, tuple)):
            made = Tensor(x)
            commit(made, device)
            tensors.append(made)
        else:
            raise ArgumentError(
                f"{op.name}: got {type(x).__name__} for an operand; wanted a Tensor or a number"
            )
    return tensors, device


def _number(value: Any, like: Any, device: Device) -> Tensor:
    dtype = scalar_dtype(value) if like is None else promote_scalar(like, value)
    key = (value.__class__, repr(value), dtype, device)
    found = _numbers.get(key)
    if found is None:
        if isinstance(value, int) and dtype.is_integer:  # wraps around, as MindSpore's does
            value = int(value) & ((1 << (8 * dtype.itemsize)) - 1)
            array = np.array(value, np.uint64).astype(dtype.np)
        else:
            array = np.array(value).astype(dtype.np)
        found = Tensor._make(TensorType.of((), dtype), array)
        commit(found, device)
        if len(_numbers) >= _NUMBER_LIMIT:
            _numbers.clear()
        _numbers[key] = found
    return found


def op_graph(op: Op, types: Sequence[TensorType | None], attributes: dict[str, Any]) -> Graph:
    """One call of an op as a graph: its promotion casts and the op itself."""
    builder = GraphBuilder()
    values = [None if t is None else builder.parameter(t.plain) for t in types]
    with builder.current():
        return builder.finish(builder.apply(op, tuple(values), attributes))


def _prepare(
    op: Op, types: Sequence[TensorType | None], attributes: dict[str, Any], device: Device
) -> Callable[..., Any]:
    level = max((t.level for t in types if t is not None), default=0)
    graph = op_graph(op, types, attributes)
    plain = _plain_call(graph, types, device)
    if level == 0 or not op.differentiable:
        return plain
    wanted = tuple(t.level > 0 for t in types if t is not None)
    if level == 1:
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


def _interpreted(graph: Graph, device: Device) -> Callable[..., Any]:
    """A composite op by op, each recorded in turn.

    Operands go in under names of their own, so that their cotangents are summed inside before they
    are added, in operand order, to what is there: as when the composite is one node.
    """

    def call(*operands: Any) -> Any:
        values = [x for x in operands if x is not None]
        for k in reversed(range(len(values))):
            if values[k]._type.level:
                values[k] = _renamed(values[k])
        found = replay(graph, values, device)
        return found[0] if graph.single else found

    return call


class _Rename:
    """Plan of the name under which a composite knows an operand: cotangents pass as they are."""

    n_results = 1
    fast: Callable[..., Any] | None = None
    fast_index: int | None = None
    fast_wrt: tuple[int, ...] = ()

    def __init__(self, type_: TensorType) -> None:
        self.result_types: tuple[TensorType, ...] = (type_.plain,)
        self.device = type_.place

    def run(self, node: Node, cotangents: Sequence[Any], create_graph: bool) -> Sequence[Any]:
        return cotangents


def _renamed(t: Tensor) -> Tensor:
    made = Tensor._make(t._type, t._buf)
    made._edge = Node(_Rename(t._type), (edge_of(t),), (), True)
    return made


def _type(graph: Graph, i: int) -> TensorType:
    """The type of a value of an op's graph: always a tensor's."""
    found = graph.types[i]
    assert isinstance(found, TensorType)
    return found


def _present(types: Sequence[TensorType | None]) -> tuple[int, ...] | None:
    """Indices of operands that are there, or None when all are."""
    if None not in types:
        return None
    return tuple(i for i, t in enumerate(types) if t is not None)


def _plain_call(
    graph: Graph, types: Sequence[TensorType | None], device: Device
) -> Callable[..., Any]:
    kernel = lower(graph, device)
    out_types = tuple(_type(graph, i).on(device) for i in graph.outputs)
    here = _present(types)
    tensor_class = Tensor
    if graph.single:
        (out_type,) = out_types
        if here is None and len(types) == 2:

            def binary(a: Any, b: Any) -> Tensor:
                t = _new(tensor_class)
                t._buf = kernel(a._buf, b._buf)
                t._type = out_type
                return t

            return binary
        if here is None and len(types) == 1:

            def unary(a: Any) -> Tensor:
                t = _new(tensor_class)
                t._buf = kernel(a._buf)
                t._type = out_type
                return t

            return unary

        def call(*operands: Any) -> Tensor:
            t = _new(tensor_class)
            t._buf = kernel(*[x._buf for x in operands if x is not None])
            t._type = out_type
            return t

        return call
    make = Tensor._make

    def several(*operands: Any) -> tuple[Tensor, ...]:
        handles = kernel(*[x._buf for x in operands if x is not None])
        return tuple([make(t, h) for t, h in zip(out_types, handles)])

    return several


def _pick(indices: Sequence[int]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """A function that takes these items of a tuple."""
    if not indices:
        return lambda values: ()
    if len(indices) == 1:
        (i,) = indices
        return lambda values: (values[i],)
    return itemgetter(*indices)


def _recorded_call(
    op: Op,
    graph: Graph,
    types: Sequence[TensorType | None],
    wanted: tuple[bool, ...],
    device: Device,
    plain: Callable[..., Any],
) -> Callable[..., Any]:
    """Run the forward with residuals and hang a node on the results."""
    plan = GraphPlan(graph, wanted, device, op.name)
    lin = plan.full
    if not lin.wrt:
        return plain
    kernel = lower(lin.forward, device)
    n_params, n_results = graph.n_params, lin.n_results
    single = graph.single and lin.forward.single
    positions = {i: n_params + k for k, i in reversed(list(enumerate(lin.forward.outputs)))}
    pick = _pick([i if i < n_params else positions[i] for i in lin.residuals])
    out_types = tuple(_type(graph, i).on(device, 1) for i in graph.outputs)
    here = _present(types)
    tensor_class = Tensor
    levels = [t.level for t in types if t is not None]
    if single and here is None and len(types) == 1:
        (out_type,) = out_types

        def unary(a: Any) -> Tensor:
            if not runtime_state.derivatives:
                return plain(a)
            buf = a._buf
            out = kernel(buf)
            t = _new(tensor_class)
            t._buf = out
            t._type = out_type
            edge = a._edge
            if edge.seq < runtime_state.horizon:
                edge = edge_of(a)
            t._edge = Node(plan, (edge,), pick((buf, out)), False)
            return t

        return unary
    if single and here is None and len(types) == 2:
        (out_type,) = out_types
        first, second = levels[0] > 0, levels[1] > 0

        def binary(a: Any, b: Any) -> Tensor:
            if not runtime_state.derivatives:
                return plain(a, b)
            x = a._buf
            y = b._buf
            out = kernel(x, y)
            t = _new(tensor_class)
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
    make = Tensor._make
    one = graph.single
    forward_single = lin.forward.single
    recorded = tuple(i for i, t in enumerate(types) if t is not None and t.level > 0)

    def call(*operands: Any) -> Any:
        if not runtime_state.derivatives:
            return plain(*operands)
        given = operands if here is None else [operands[i] for i in here]
        handles = tuple([x._buf for x in given])
        found = kernel(*handles)
        if forward_single:
            found = (found,)
        edges: list[Any] = [None] * len(operands)
        for i in recorded:
            edges[i] = edge_of(operands[i])
        parents = tuple(edges) if here is None else tuple([edges[i] for i in here])
        node = Node(plan, parents, pick((*handles, *found)), False)
        if one:
            t = make(out_types[0], found[0])
            t._edge = node
            return t
        results = []
        for i in range(n_results):
            t = make(out_types[i], found[i])
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
    plain: Callable[..., Any],
) -> Callable[..., Any]:
    """As `_recorded_call`, keeping tensors: the graph is the op alone, so residuals are operands
    and results.
    """
    plan = GraphPlan(graph, wanted, device, op.name)
    lin = plan.full
    if not lin.wrt:
        return plain
    kernel = lower(graph, device)
    n_params = graph.n_params
    where = {i: k for k, i in enumerate(lin.forward.outputs)}
    out_types = tuple(_type(graph, i).on(device, 2) for i in graph.outputs)
    single = graph.single
    recorded = [t is not None and t.level > 0 for t in types]

    def call(*operands: Any) -> Any:
        if not runtime_state.derivatives:
            return plain(*operands)
        given = [x for x in operands if x is not None]
        found = kernel(*[x._buf for x in given])
        handles = (found,) if single else found
        residuals: list[Any] = []
        for i in lin.residuals:
            if i < n_params:
                residuals.append(_as_is(given[i]))
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
        return results[0] if single else tuple(results)

    return call


def _as_is(t: Tensor) -> Tensor:
    """A second name for the tensor's present value, which later writes to `t` do not change."""
    made = Tensor._make(t._type, t._buf)
    if t._type.level:
        edge = t._edge
        while edge.__class__ is Node and edge.plan.__class__ is _Rename:
            (edge,) = edge.parents
        made._edge = edge
    return made


def _promoting_call(op: Op, target: Any, attributes: dict[str, Any]) -> Callable[..., Any]:
    def call(*operands: Any) -> Any:
        cast = list(operands)
        for i in reversed(range(op.promote_from, len(cast))):  # as GraphBuilder.apply
            x = cast[i]
            if x is not None and x._type.dtype is not target:
                cast[i] = cast_to(x, target)
        return (
            op.function(*op.packed(cast), **attributes)
            if not op.variadic
            else op.function(cast, **attributes)
        )

    return call


def _guarded(plain: Callable[..., Any], recorded: Callable[..., Any]) -> Callable[..., Any]:
    """`plain` when no derivative is running any more."""

    def call(*operands: Any) -> Any:
        return recorded(*operands) if runtime_state.derivatives else plain(*operands)

    return call


def _run_on_host(
    op: Op, tensors: Sequence[Tensor | None], attributes: dict[str, Any], device: Device
) -> Any:
    """Ops whose result size depends on values: the reference on the host, results back on the
    device.
    """
    arrays = [None if t is None else t.asnumpy() for t in tensors]
    assert op.reference_rule is not None
    found = op.reference_rule(*op.packed(arrays), **attributes)
    parts = found if isinstance(found, tuple) else (found,)
    out = []
    for array in parts:
        made = Tensor(np.asarray(array))
        commit(made, device)
        out.append(made)
    return tuple(out) if isinstance(found, tuple) else out[0]
