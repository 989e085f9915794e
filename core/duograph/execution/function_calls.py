"""Prepares eager calls of whole functions that consist of ops, for `call_cache`.

A function is traced into a graph, which then runs without the function's Python code. The module
must not prepare a call whose values or gradients could differ by even one bit from those of the
function. If it cannot be sure, it returns None and the function runs as written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..backend import registry
from ..errors import DuographError
from ..ir.basic_ops import constant
from ..ir.builder import GraphBuilder, GraphTensor
from ..ir.graph import Graph
from ..runtime_state import runtime_state, thread_state
from ..tensor import Tensor
from ..types import Device, TensorType
from .eager_calls import TensorCall, eager_call, graph_call

if TYPE_CHECKING:
    from .eager_calls import Result

__all__ = ["function_call"]


class _Tracer(GraphBuilder):
    """Graph builder for tracing a function; random ops raise instead of advancing the generator."""

    draws = False


def function_call(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, object], result: Any
) -> TensorCall | None:
    """Return a function that computes the same as `function`, or None if that is uncertain.

    The returned function is valid for tensor arguments of the same types and equal other arguments.
    If a derivative records operands, the result is None unless `function` calls only a single op: a
    graph of several ops would add cotangents in another order than the ops would, called one by
    one.

    Args:
        function: a function of tensors and attributes whose result depends on nothing else.
        args, kwargs: arguments of a call that has already run.
        result: the result of that call.
    """
    if runtime_state.watch is not None:  # the watch must see each op
        return None
    values = (*args, *kwargs.values())
    positions = [i for i, x in enumerate(values) if isinstance(x, Tensor)]
    types = [values[i]._type for i in positions]
    if types:
        device = types[0].device
    else:
        device = None if thread_state.device is not None else registry.current_device()
    if device is None or any(t.device is not device for t in types):
        return None
    graph = _traced(function, args, kwargs, types)
    if graph is None or not _same_types(graph, result, device):
        return None
    if len(graph.nodes) == 1:
        (node,) = graph.nodes
        if node.results != graph.outputs or node.single != graph.single:
            return None
        operands = [None if i is None else types[i] for i in node.operands]
        key = node.op.key(operands, node.attributes)
        inner = node.op.table.get(key)
        if inner is None:
            inner = eager_call(node.op, operands, node.attributes, device)
        if not operands:
            return _without_operands(inner, function)
        return _with_arguments(
            inner, [None if i is None else positions[i] for i in node.operands], len(args)
        )
    if not types or any(t.level for t in types):
        return None
    return _with_arguments(graph_call(graph, types, device), positions, len(args))


def _traced(
    function: Callable[..., object],
    args: tuple[object, ...],
    kwargs: Mapping[str, object],
    types: Sequence[TensorType],
) -> Graph | None:
    """Return the graph of a function's op calls on tensors of the given types, or None.

    The result is None if the graph may not replace the function. That is so if the function reads
    values, writes an argument in place, has effects, calls no op, uses an array as a constant,
    calls an op that runs on the host, returns neither a tensor nor a tuple, returns one of its
    arguments, or returns one value at two positions.
    """
    builder = _Tracer()
    params = [builder.parameter(t.plain) for t in types]
    symbols = iter(params)
    with builder.current():
        try:
            found = function(
                *[next(symbols) if isinstance(x, Tensor) else x for x in args],
                **{k: next(symbols) if isinstance(x, Tensor) else x for k, x in kwargs.items()},
            )
        except DuographError:  # the function depends on values
            return None
        if not isinstance(found, GraphTensor) and found.__class__ is not tuple:
            return None
        graph = builder.finish(found)
    outputs = graph.outputs
    if (
        graph.effects
        or any(x._id != i for i, x in enumerate(params))  # an argument was written in place
        or not graph.nodes
        or any(node.op is constant or node.op.host for node in graph.nodes)
        or any(i < graph.n_params for i in outputs)
        or len(set(outputs)) < len(outputs)
    ):
        return None
    return graph


def _same_types(graph: Graph, result: Any, device: Device) -> bool:
    """Return whether a graph's results have the types and device of what its function returned."""
    results = (result,) if graph.single else result
    if graph.single != isinstance(result, Tensor) or len(results) != len(graph.outputs):
        return False
    return all(
        isinstance(x, Tensor) and x._type.device == device and x._type.plain is graph.types[i]
        for x, i in zip(results, graph.outputs, strict=True)
    )


def _without_operands(inner: TensorCall, function: Callable[..., Any]) -> TensorCall:
    """Return a function that calls `inner`, a prepared call without operands.

    If a device has been selected for the calling thread alone, or the thread is building a graph,
    the returned function calls `function` instead, because `inner` runs on a fixed device.
    """

    def call(*args: object, **kwargs: object) -> Result:
        if thread_state.device is None and thread_state.builder is None:
            return inner()
        return function(*args, **kwargs)

    return call


def _with_arguments(inner: TensorCall, positions: Sequence[int | None], n_args: int) -> TensorCall:
    """Return a function that passes only its own arguments at `positions` on to `inner`.

    Positions count positional arguments, then keyword arguments in the order of the call; for a
    position None, `inner` receives None. `n_args` is the number of positional arguments.
    """
    # positional-only, because a keyword argument of the call may have the name x or y
    if positions == [0] and n_args >= 1:
        return lambda x, /, *_, **__: inner(x)
    if positions == [0, 1] and n_args >= 2:
        return lambda x, y, /, *_, **__: inner(x, y)

    def call(*args: object, **kwargs: object) -> Result:
        values = (*args, *kwargs.values())
        return inner(*[None if i is None else values[i] for i in positions])

    return call
