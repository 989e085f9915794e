"""Splits a fused region that ends in a scatter, for GPUs, whose work items run in parallel.

Two work items must not update the same row at the same time. Therefore the scatter runs as the op's
own kernel, and the rest of the region, which computes the updates, as a fused kernel.
`fused_regions` calls `split_scatter` before it plans a region, and `joined` when the launches of
the fused kernel are known.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...ir.graph import Graph
from ...ir.liveness import live_nodes
from ...types import TensorType
from .device import GridDevice, Launch, Plan
from .index_errors import RECORD
from .movement import fill_launch

if TYPE_CHECKING:
    from .backend import GridBackend

__all__ = ["Split", "joined", "split_scatter"]


class Split(NamedTuple):
    """A fused region divided into its final scatter and a graph of everything before it.

    Attributes:
        graph: the region without the scatter, with the scatter's updates as one of its results;
            None if the region has no other op.
        buffers: numbers of the buffers that hold the results of `graph`.
        scatter: the launches of the scatter.
        scratch: size in bytes of each temporary buffer of the call.
    """

    graph: Graph | None
    buffers: tuple[int, ...]
    scatter: tuple[Launch, ...]
    scratch: tuple[int, ...]


def split_scatter(backend: GridBackend, device: GridDevice, graph: Graph) -> Split | str | None:
    """Divide a fused region that ends in a scatter into the scatter and the rest (`Split`).

    Returns None if the region has no scatter, or a string with the reason why it cannot be split.
    """
    node = next((n for n in graph.nodes if n.op.traits.scatter), None)
    if node is None:
        return None
    target, indices, updates = (i or 0 for i in node.operands)
    types: Sequence[Any] = graph.types
    (result,) = node.results
    buffer = {i: i for i in range(graph.n_params)}
    buffer.update((i, graph.n_params + k) for k, i in enumerate(graph.outputs))
    outputs = [i for i in graph.outputs if i != result]
    scratch: list[int] = []
    last = graph.n_params + len(graph.outputs)
    if updates not in buffer:
        buffer[updates] = last
        scratch.append(types[updates].nbytes)
        outputs.append(updates)
    operands = (types[target], types[indices], types[updates])
    plan = backend.plan(device, node.op, operands, (types[result],), node.attributes)
    if not isinstance(plan, Plan) or any(0 in x.buffers for x in plan.launches[1:]):
        return f"{node.op.name} has no plan that begins with a copy"
    own = [buffer.get(target, buffer[result]), buffer[indices], buffer[updates], buffer[result]]
    own += range(last + len(scratch), last + len(scratch) + len(plan.scratch))
    launches = _with_buffers(plan, own)
    if target not in buffer:
        launches[0] = _fill(device, graph, target, buffer)
    rest = live_nodes([n for n in graph.nodes if n is not node], set(outputs))
    inner = None
    if any(n.results for n in rest):
        inner = Graph(graph.n_params, list(types), rest, tuple(outputs), len(outputs) == 1)
    scratch += plan.scratch
    return Split(inner, tuple(buffer[i] for i in outputs), tuple(launches), tuple(scratch))


def _fill(device: GridDevice, graph: Graph, target: int, buffer: Mapping[int, int]) -> Launch:
    """Return the launch that initialises the result of a region's scatter with one value.

    The value is that of graph value `target`, the result of a fill or constant node. `buffer` is a
    dict from graph value to buffer number.
    """
    node = next(n for n in graph.nodes if target in n.results)
    value = node.attributes["value"]
    if node.op.name != "fill":
        value = value.array.item()
    type_ = graph.types[target]
    assert isinstance(type_, TensorType)
    result = next(n.results[0] for n in graph.nodes if n.op.traits.scatter)
    return fill_launch(device, type_, value, buffer[result])


def joined(split: Split, plan: Plan | None, n_params: int) -> Plan:
    """Return the launch plan of a split fused region: first the updates, then the scatter.

    `plan` is the plan of `split.graph`, or None if that is None. `n_params` is the number of the
    region's operands.
    """
    if plan is None:
        return Plan(split.scatter, split.scratch)
    launches = _with_buffers(plan, [*range(n_params), *split.buffers])
    return Plan((*launches, *split.scatter), split.scratch)


def _with_buffers(plan: Plan, buffers: Sequence[int]) -> list[Launch]:
    """Return the launches of a plan with renumbered buffers: number b becomes ``buffers[b]``."""
    return [
        dataclasses.replace(x, buffers=tuple([b if b == RECORD else buffers[b] for b in x.buffers]))
        for x in plan.launches
    ]
