"""The derivative of an activation is computed beside it, and its gradient is a product.

    %1 = gelu_tanh(%0)                          %1 = gelu_tanh(%0)
    ...                                         %4 = gelu_tanh_grad(1, %0)
    %3 = gelu_tanh_grad(%2, %0)        ->       ...
                                                %3 = mul(%2, %4)

What both have in common, such as the tanh, is then computed once, in the region that ends in the
activation; the derivative is kept in place of the operand. The gradients here are products of their
first operand, so bits stay; those of 16-bit floats are rounded once and stay as they are.
"""

from __future__ import annotations

import collections
import dataclasses
from typing import Any

from ..dtype import float32, float64
from ..ir.graph import Graph, GraphNode
from ..op import OPS
from ..types import TensorType
from .context import PassContext
from .subgraphs import everywhere

__all__ = ["save_activation_derivatives"]

# Gradients f(dout, x) = dout * (something of x) that cost much more than a product -> the op whose
# gradient they are.
GRADIENTS = {
    "gelu_tanh_grad": "gelu_tanh",
    "gelu_erf_grad": "gelu_erf",
    "silu_grad": "silu",
    "mish_grad": "mish",
    "logsigmoid_grad": "logsigmoid",
}


@everywhere
def save_activation_derivatives(graph: Graph, context: PassContext) -> Graph:
    """The graph with derivatives beside the activations whose operand nothing else reads."""
    readers: dict[int | None, list[GraphNode]] = collections.defaultdict(list)
    for node in graph.nodes:
        for i in dict.fromkeys(node.operands):
            readers[i].append(node)
    made = {r for node in graph.nodes for r in node.results}
    types: list[Any] = list(graph.types)
    slopes: dict[tuple[str, int | None], int] = {}  # (gradient, operand) -> the derivative
    nodes: list[GraphNode] = []
    for node in graph.nodes:
        key = node.op.name, node.operands[-1] if node.operands else None
        if key in slopes:
            nodes.append(
                dataclasses.replace(node, op=OPS["mul"], operands=(node.operands[0], slopes[key]))
            )
            continue
        nodes.append(node)
        gradient = _gradient(node, readers, graph.types)
        if (
            gradient is not None
            and node.operands[0] in made
            and node.operands[0] not in graph.outputs
        ):
            one, slope = _slope(node, gradient, types)
            nodes += [one, slope]
            slopes[gradient.op.name, node.operands[0]] = slope.results[0]
    return Graph(graph.n_params, types, nodes, graph.outputs, graph.single) if slopes else graph


def _gradient(node: GraphNode, readers: Any, types: Any) -> GraphNode | None:
    """The gradient of an activation, if the two are all that reads the operand."""
    if node.op.name not in GRADIENTS.values():
        return None
    x = node.operands[0]
    others = [reader for reader in readers[x] if reader is not node]
    if len(others) != 1 or GRADIENTS.get(others[0].op.name) != node.op.name:
        return None
    dout, of = others[0].operands
    fits = (
        of == x and dout != x and types[dout] is types[x] and types[x].dtype in (float32, float64)
    )
    return others[0] if fits else None


def _slope(node: GraphNode, gradient: GraphNode, types: list[Any]) -> tuple[GraphNode, GraphNode]:
    """The number 1, and the gradient where that is what comes back."""
    x: TensorType = types[node.operands[0] or 0]
    first = len(types)
    types += [TensorType.of((), x.dtype), x]
    fill = {"shape": (), "value": 1.0, "dtype": x.dtype}
    one = GraphNode(OPS["fill"], (), fill, (first,), True, node.span)
    slope = dataclasses.replace(
        gradient, operands=(first, node.operands[0]), results=(first + 1,), span=node.span
    )
    return one, slope
