"""Splits a fused region that begins with a matmul or convolution into that op and the rest.

The rest is the epilogue: elementwise code that a kernel applies to the result before it stores the
result. Backends whose kernels accept an epilogue (`Backend.epilogues`) call this module on the
bodies of regions. It must not change the bodies, because caches hold them.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from .graph import Graph, GraphNode, subgraph

__all__ = ["Epilogue", "epilogue_of"]


class Epilogue(NamedTuple):
    """A fused region split into a matmul or convolution and the elementwise nodes after it.

    Attributes:
        product: the node of the matmul or convolution, which the kernel's main loop computes.
        tail: graph of the elementwise nodes; its first parameter is the result of `product`.
        reads: indices of the region's operands that are the other parameters of `tail`, in order.
    """

    product: GraphNode
    tail: Graph
    reads: tuple[int, ...]


def epilogue_of(body: Graph, names: Collection[str]) -> Epilogue | None:
    """Split the body of a fused region into its matmul or convolution and the nodes after it.

    The first node whose op name is in `names` counts as the matmul or convolution. The result is
    None if no node has one of these names.
    """
    product = next((node for node in body.nodes if node.op.name in names), None)
    if product is None:
        return None
    nodes = [node for node in body.nodes if node is not product]
    used = {i for node in nodes for i in node.operands}
    reads = [i for i in range(body.n_params) if i in used]
    tail = subgraph(body, [product.results[0], *reads], nodes, body.outputs)
    return Epilogue(product, tail, tuple(reads))
