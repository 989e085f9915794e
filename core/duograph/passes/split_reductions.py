"""Graph pass that splits a reduction over trailing and other axes in two, so that one can fuse.

    %1 = relu_grad(%0, ...)                         %1 = relu_grad(%0, ...)
    %2 = reduce_sum(%1, axis=(0, 2, 3))     ->      %3 = reduce_sum(%1, axis=(2, 3), keepdims=True)
                                                    %2 = reduce_sum(%3, axis=(0, 2, 3))

The first of the two joins the kernel of its operand. Gradients of convolution biases and statistics
of channels are such reductions. The pass runs only above O0, because it changes the order of
summation.
"""

from __future__ import annotations

import dataclasses
import math

from ..dtype import float32, float64, int32, int64
from ..ir.graph import Graph, GraphNode
from ..ir.loops import is_elementwise, reduced_axes
from ..types import TensorType, ValueType
from .context import PassContext
from .subgraphs import everywhere

__all__ = ["split_reductions"]

# Dtypes whose sums may be split; partial sums of smaller dtypes would be rounded once more.
DTYPES = (float32, float64, int32, int64)


@everywhere
def split_reductions(graph: Graph, context: PassContext) -> Graph:
    """Split reductions of elementwise results into one over trailing axes and one over the rest."""
    types = list(graph.types)
    elementwise: set[int | None] = set()  # values
    nodes: list[GraphNode] = []
    for node in graph.nodes:
        if node.op.is_reduction and node.operands[0] in elementwise:
            first = _trailing(node, types, context.costs.fusion.min_split)
            if first is not None:
                nodes.append(first)
                node = dataclasses.replace(node, operands=first.results)
        elif is_elementwise(node, types):
            elementwise.add(node.results[0])
        nodes.append(node)
    return Graph(graph.n_params, types, nodes, graph.outputs, graph.single)


def _trailing(node: GraphNode, types: list[ValueType], least: int) -> GraphNode | None:
    """Return a node that reduces only the trailing axes among those that `node` reduces.

    The trailing axes are the last axes as long as all of them are reduced. The result is None if
    `node` reduces no other axis, if the trailing axes have less than `least` elements, or if a
    partial sum would be rounded. The type of the new node's result is appended to `types`.
    """
    source, result = types[node.operands[0] or 0], types[node.results[0]]
    assert isinstance(source, TensorType) and isinstance(result, TensorType)
    axes, ndim = reduced_axes(node, source), source.ndim
    last = ndim
    while last - 1 in axes:
        last -= 1
    others = [a for a in axes if a < last and source.shape[a] != 1]
    kept = math.prod(source.shape[a] for a in range(last) if a not in axes)
    if not others or kept == 1 or math.prod(source.shape[last:]) < least:
        return None
    if source.dtype not in DTYPES or result.dtype is not source.dtype or not source.size:
        return None
    shape = (*source.shape[:last], *(1 for _ in source.shape[last:]))
    types.append(TensorType.of(shape, source.dtype))
    attributes = {**node.attributes, "axis": tuple(range(last, ndim)), "keepdims": True}
    return dataclasses.replace(node, attributes=attributes, results=(len(types) - 1,))
