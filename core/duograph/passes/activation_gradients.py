"""Graph pass that computes derivatives of activations in the forward part of a graph.

    %1 = gelu_tanh(%0)                          %1 = gelu_tanh(%0)
    ...                                         %4 = gelu_tanh_grad(1, %0)
    %3 = gelu_tanh_grad(%2, %0)        ->       ...
                                                %3 = mul(%2, %4)

The fused region of the activation then computes common parts, such as the tanh, once, and the
program keeps the derivative in memory instead of the activation's operand. The gradient ops that
the pass handles compute `dout * derivative(x)`. The pass computes the same two factors and the same
product, so results keep every bit. With 16-bit floats the derivative and the product would each be
rounded; the pass therefore leaves such gradients unchanged.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Mapping, Sequence

from ..dtype import float32, float64
from ..ir.graph import Graph, GraphNode
from ..op import Op
from ..types import TensorType, ValueType
from .context import PassContext
from .matched_ops import (
    fill,
    gelu_erf,
    gelu_erf_grad,
    gelu_tanh,
    gelu_tanh_grad,
    logsigmoid,
    logsigmoid_grad,
    mish,
    mish_grad,
    mul,
    silu,
    silu_grad,
)
from .subgraphs import everywhere

__all__ = ["GRADIENTS", "save_activation_derivatives"]

# Gradients f(dout, x) = dout * derivative(x) that cost much more than a product, and the op whose
# gradient they are.
GRADIENTS: dict[Op, Op] = {
    gelu_tanh_grad: gelu_tanh,
    gelu_erf_grad: gelu_erf,
    silu_grad: silu,
    mish_grad: mish,
    logsigmoid_grad: logsigmoid,
}
ACTIVATIONS = frozenset(GRADIENTS.values())


@everywhere
def save_activation_derivatives(graph: Graph, context: PassContext) -> Graph:
    """Compute the derivative of each activation right after the activation.

    The activation's gradient op then becomes a multiplication by the derivative. This applies only
    if a node computes the activation's operand, and nothing but the activation and its gradient
    reads it.
    """
    readers: dict[int | None, list[GraphNode]] = collections.defaultdict(list)
    for node in graph.nodes:
        for i in dict.fromkeys(node.operands):
            readers[i].append(node)
    computed = {r for node in graph.nodes for r in node.results}.difference(graph.outputs)
    types = list(graph.types)
    derivatives: dict[tuple[Op, int | None], int] = {}  # by gradient op and operand
    nodes: list[GraphNode] = []
    for node in graph.nodes:
        saved = derivatives.get((node.op, node.operands[-1])) if node.operands else None
        if saved is not None:
            nodes.append(dataclasses.replace(node, op=mul, operands=(node.operands[0], saved)))
            continue
        nodes.append(node)
        gradient = _gradient_of(node, readers, graph.types)
        if gradient is not None and node.operands[0] in computed:
            one, derivative = _derivative(node, gradient, types)
            nodes += [one, derivative]
            derivatives[gradient.op, node.operands[0]] = derivative.results[0]
    if not derivatives:
        return graph
    return Graph(graph.n_params, types, nodes, graph.outputs, graph.single)


def _gradient_of(
    node: GraphNode, readers: Mapping[int | None, list[GraphNode]], types: Sequence[ValueType]
) -> GraphNode | None:
    """Return the gradient node of an activation whose derivative may be saved, or None.

    The derivative may be computed beside the activation if only the activation and one gradient
    node read the activation's operand, and if the operand and the gradient's `dout` have the same
    type of float32 or float64. `readers` maps a value to the nodes that read it.
    """
    if node.op not in ACTIVATIONS:
        return None
    x = node.operands[0]
    others = [reader for reader in readers[x] if reader is not node]
    if x is None or len(others) != 1 or GRADIENTS.get(others[0].op) is not node.op:
        return None
    dout, source = others[0].operands
    type_ = types[x]
    if dout is None or source != x or dout == x or types[dout] is not type_:
        return None
    is_float = isinstance(type_, TensorType) and type_.dtype in (float32, float64)
    return others[0] if is_float else None


def _derivative(
    node: GraphNode, gradient: GraphNode, types: list[ValueType]
) -> tuple[GraphNode, GraphNode]:
    """Return two new nodes: the constant 1, and the activation's derivative computed from it.

    The derivative is the gradient op with the constant as its first operand. The types of the
    results of both nodes are appended to `types`.
    """
    x = types[node.operands[0] or 0]
    assert isinstance(x, TensorType)
    first = len(types)
    types += [TensorType.of((), x.dtype), x]
    attributes = {"shape": (), "value": 1.0, "dtype": x.dtype}
    one = GraphNode(fill, (), attributes, (first,), True, node.span)
    derivative = dataclasses.replace(
        gradient, operands=(first, node.operands[0]), results=(first + 1,), span=node.span
    )
    return one, derivative
