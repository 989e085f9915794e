"""Runs a graph op by op in eager mode, so that an enclosing derivative records every op.

`node_plans` and `execution.eager_calls` call it where compiled kernels cannot be used: for a
derivative of a derivative, and for composite ops inside one. It supports no control flow;
`compiler.interpret` is the version that does.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from ..execution.lower import lower
from ..ir.graph import Graph, GraphNode
from ..op import Op
from ..op_calls import dispatch
from ..op_tables import kernel_cache
from ..runtime_state import runtime_state
from ..tensor import Tensor
from ..types import Device, TensorType

__all__ = ["call_op", "constants_of", "replay"]

_CACHE_LIMIT = 1024
_constant_kernels = kernel_cache()


def replay(
    graph: Graph, values: Sequence[Tensor], device: Device | None = None
) -> tuple[Tensor, ...]:
    """Run a graph op by op on tensors in eager mode; return the tensors that the graph outputs.

    The tape records every op. A node without operands computes its constant on `device`, or on the
    current device if `device` is None.
    """
    env: dict[int, Tensor] = dict(enumerate(values))
    for node in graph.nodes:
        if not node.operands and device is not None:
            env.update(zip(node.results, constants_of(node, graph, device), strict=True))
            continue
        operands = tuple(None if i is None else env[i] for i in node.operands)
        out = call_op(node.op, operands, node.attributes)
        if node.single:
            env[node.results[0]] = out
        else:
            env.update(zip(node.results, out, strict=True))
    return tuple(env[i] for i in graph.outputs)


def constants_of(node: GraphNode, graph: Graph, device: Device) -> list[Tensor]:
    """Run a graph node without operands on `device`; return its results as tensors."""
    key = (node.op, node.op.key((), node.attributes), device)
    kernel = _constant_kernels.get(key)
    types = [graph.types[i] for i in node.results]
    if kernel is None:
        ids = tuple(range(len(types)))
        alone = dataclasses.replace(node, results=ids)
        kernel = lower(Graph(0, types, [alone], ids, node.single), device)
        if len(_constant_kernels) > _CACHE_LIMIT:
            _constant_kernels.clear()
        _constant_kernels[key] = kernel
    found = kernel()
    made = []
    for type_, handle in zip(types, (found,) if node.single else found, strict=True):
        assert isinstance(type_, TensorType)
        made.append(Tensor._make(type_.on(device), handle))
    return made


def call_op(op: Op, operands: tuple[Tensor | None, ...], attributes: Mapping[str, object]) -> Any:
    """Call an op on tensors and return its result, or a tuple of results.

    Uses the prepared call for these operand types, if there is one. While the front end builds a
    graph, no prepared call is used.
    """
    types = [None if x is None else x._type for x in operands]
    call = None if runtime_state.staging else op.table.get(op.key(types, attributes))
    if call is None:
        return dispatch(op, operands, dict(attributes))
    return call(*operands)
