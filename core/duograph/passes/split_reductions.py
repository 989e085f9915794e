"""Reductions that take the last axes and others too, as two: the last ones can then join what
computes the elements.

    %1 = relu_grad(%0, ...)                              %1 = relu_grad(%0, ...)
    %2 = reduce_sum(%1, axis=(0, 2, 3))      ->          %3 = reduce_sum(%1, axis=(2, 3),
    keepdims=True)
                                                         %2 = reduce_sum(%3, axis=(0, 2, 3))

So it is with the gradient of a convolution's bias, and with statistics of channels. Only above O0:
sums are taken in another order.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from ..dtype import float32, float64, int32, int64
from ..ir.graph import Graph, GraphNode
from ..ir.loops import is_elementwise, is_reduction, reduced_axes
from ..types import TensorType
from .context import PassContext
from .subgraphs import everywhere

__all__ = ["split_reductions"]

# Sums of smaller dtypes would be rounded once more.
DTYPES = (float32, float64, int32, int64)


@everywhere
def split_reductions(graph: Graph, context: PassContext) -> Graph:
    """The graph with such reductions of what it computes element by element in two steps."""
    types: list[Any] = list(graph.types)
    made: set[int] = set()
    nodes: list[GraphNode] = []
    for node in graph.nodes:
        if is_reduction(node.op) and node.operands[0] in made:
            first = _last_axes(node, types, context.costs.fusion.min_split)
            if first is not None:
                nodes.append(first)
                node = dataclasses.replace(node, operands=first.results)
        elif is_elementwise(node, types):
            made.add(node.results[0])
        nodes.append(node)
    return Graph(graph.n_params, types, nodes, graph.outputs, graph.single)


def _last_axes(node: GraphNode, types: list[Any], least: int) -> GraphNode | None:
    """The reduction of the last axes alone, whose result gets a number in `types`."""
    source: TensorType = types[node.operands[0] or 0]
    axes, ndim = reduced_axes(node, source), len(source.shape)
    last = ndim
    while last - 1 in axes:
        last -= 1
    others = [a for a in axes if a < last and source.shape[a] != 1]
    kept = math.prod(source.shape[a] for a in range(last) if a not in axes)
    if not others or kept == 1 or math.prod(source.shape[last:]) < least:
        return None
    if (
        source.dtype not in DTYPES
        or types[node.results[0]].dtype is not source.dtype
        or not source.size
    ):
        return None
    shape = (*source.shape[:last], *(1 for _ in source.shape[last:]))
    types.append(TensorType.of(shape, source.dtype))
    attributes = {**node.attributes, "axis": tuple(range(last, ndim)), "keepdims": True}
    return dataclasses.replace(node, attributes=attributes, results=(len(types) - 1,))
