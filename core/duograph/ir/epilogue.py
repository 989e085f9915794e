"""Splits a fused region that continues from the result of a matmul or convolution.

Backends whose kernels accept an epilogue (`Backend.epilogues`) call it on the bodies of regions.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from .graph import Graph, GraphNode, subgraph

__all__ = ["Epilogue", "epilogue_of"]


class Epilogue(NamedTuple):
    """A fused region split into a matmul or convolution and the elementwise nodes after it.

    Attributes:
        product: the matmul, convolution or other op that the backend computes with its own kernel.
        tail: the elementwise rest; its first parameter is the result of `product`.
        reads: the operands of the region that the other parameters of `tail` are.
    """

    product: GraphNode
    tail: Graph
    reads: tuple[int, ...]


def epilogue_of(body: Graph, names: Collection[str]) -> Epilogue | None:
    """Split a region body at its first node with one of the named ops; None if there is none."""
    product = next((node for node in body.nodes if node.op.name in names), None)
    if product is None:
        return None
    nodes = [node for node in body.nodes if node is not product]
    used = {i for node in nodes for i in node.operands}
    reads = [i for i in range(body.n_params) if i in used]
    tail = subgraph(body, [product.results[0], *reads], nodes, body.outputs)
    return Epilogue(product, tail, tuple(reads))
