"""Rewrites of matrix products, only above O0, because products may then be summed in another order."""

from __future__ import annotations

import collections
import dataclasses
from typing import Any

from ..ir.graph import Graph, GraphNode
from ..op import OPS
from .context import PassContext
from .subgraphs import everywhere

__all__ = ["fold_transposes", "merge_matmul_sums"]


@everywhere
def fold_transposes(graph: Graph, context: PassContext) -> Graph:
    """Products read the operand of a transpose of their last two axes, the other way round.

        %2 = transpose(%1, perm=(0, 2, 1))
        %3 = matmul(%0, %2, transpose_b=False)    ->    %3 = matmul(%0, %1, transpose_b=True)

    The transpose itself stays; it is dead unless something else reads it.
    """
    makers: dict[int | None, GraphNode] = {}
    nodes: list[GraphNode] = []
    for node in graph.nodes:
        if node.op.name == "matmul":
            node = _folded(node, makers)
        makers.update(dict.fromkeys(node.results, node))
        nodes.append(node)
    return Graph(graph.n_params, list(graph.types), nodes, graph.outputs, graph.single)


def _folded(node: GraphNode, makers: dict[int | None, GraphNode]) -> GraphNode:
    operands = list(node.operands)
    attributes: dict[str, Any] = dict(node.attributes)
    for k, flag in enumerate(("transpose_a", "transpose_b")):
        maker = makers.get(operands[k])
        if maker is not None and maker.op.name == "transpose" and _swaps(maker.attributes["perm"]):
            operands[k] = maker.operands[0]
            attributes[flag] = not attributes[flag]
    return dataclasses.replace(node, operands=tuple(operands), attributes=attributes)


def _swaps(perm: tuple[int, ...]) -> bool:
    """Whether a permutation exchanges the last two axes and leaves the others."""
    n = len(perm)
    return n > 1 and tuple(a % n for a in perm) == (*range(n - 2), n - 1, n - 2)


@everywhere
def merge_matmul_sums(graph: Graph, context: PassContext) -> Graph:
    """A sum of many products is one product of concatenations: what a weight used at every step of
    a loop gets.

    %6 = add(matmul(%0, %1, transpose_a=True), matmul(%2, %3, transpose_a=True))
    ->  matmul(concat(%0, %2, axis=0), concat(%1, %3, axis=0), transpose_a=True)
    """
    types: list[Any] = list(graph.types)
    uses = collections.Counter(i for node in graph.nodes for i in node.operands)
    uses.update(graph.outputs)
    makers: dict[int | None, GraphNode] = {r: node for node in graph.nodes for r in node.results}
    inside: set[int] = set()  # sums that are part of a greater one
    for node in graph.nodes:
        if node.op.name == "add":
            inside.update(i for i in node.operands if i is not None and uses[i] == 1)
    nodes: list[GraphNode] = []
    for node in graph.nodes:
        if node.op.name == "add" and node.results[0] not in inside:
            leaves = _leaves(node, makers, uses)
            if leaves is not None and len(leaves) >= context.costs.min_matmul_sum:
                nodes += _joined(node, leaves, types)
                continue
        nodes.append(node)
    return Graph(graph.n_params, types, nodes, graph.outputs, graph.single)


def _leaves(
    root: GraphNode, makers: dict[int | None, GraphNode], uses: collections.Counter[Any]
) -> list[GraphNode] | None:
    """The products that a tree of additions adds, if it adds nothing else and all are of one form."""
    found: list[GraphNode] = []
    queue: list[int | None] = list(reversed(root.operands))
    while queue:
        i = queue.pop()
        node = makers.get(i)
        if node is None or uses[i] != 1:
            return None
        if node.op.name == "add":
            queue += reversed(node.operands)
            continue
        if node.op.name != "matmul" or (found and node.attributes != found[0].attributes):
            return None
        found.append(node)
    return found


def _joined(root: GraphNode, leaves: list[GraphNode], types: list[Any]) -> list[GraphNode]:
    """The nodes of one product in place of the sum `root`; none when the operands do not fit."""
    made: list[GraphNode] = []
    operands: list[int] = []
    for k, flag in enumerate(("transpose_a", "transpose_b")):
        parts = tuple([leaf.operands[k] for leaf in leaves])
        kinds = tuple([types[i] for i in parts if i is not None])
        if any(len(t.shape) != 2 or t is not kinds[0] for t in kinds):
            return [root]
        axis = int(bool(leaves[0].attributes[flag]) == bool(k))  # the one that is summed over
        concat = OPS["concat"]
        types.append(concat.result_types(kinds, {"axis": axis}))
        operands.append(len(types) - 1)
        made.append(GraphNode(concat, parts, {"axis": axis}, (operands[-1],), True, root.span))
    product = dataclasses.replace(
        root, op=leaves[0].op, operands=tuple(operands), attributes=leaves[0].attributes
    )
    return [*made, product]
