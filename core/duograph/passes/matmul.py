"""Graph passes on matmuls above O0: they absorb transposes and merge sums of matmuls into one.

The pipeline in `passes` runs them. They must not run at O0, because merged sums round differently.
Nodes that they make superfluous stay in the graph; `remove_dead_code` removes them.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Mapping

from ..ir.graph import Graph, GraphNode
from ..types import TensorType
from .context import PassContext
from .matched_ops import add, concat, matmul, transpose
from .patterns import Value, call, rule
from .replacing import Replacement, ReplacementRules, replace_nodes
from .subgraphs import everywhere

__all__ = ["fold_transposes", "merge_matmul_sums"]

X, Y = Value("x"), Value("y")


def swaps_last_axes(perm: tuple[int, ...]) -> bool:
    """Return whether a permutation exchanges the last two axes and keeps the others."""
    n = len(perm)
    return n > 1 and tuple(a % n for a in perm) == (*range(n - 2), n - 1, n - 2)


def _flagged(perm: tuple[int, ...], x: int, y: int, a: bool, b: bool) -> Replacement | None:
    if not swaps_last_axes(perm):
        return None
    return Replacement(matmul, (x, y), {"transpose_a": a, "transpose_b": b})


FOLD_TRANSPOSES: ReplacementRules = ReplacementRules([
    rule(
        "matmul(transpose(x, p), y) -> matmul(x, y, transpose_a), if p swaps the last two axes",
        call(matmul, call(transpose, X, perm="p"), Y, transpose_a="a", transpose_b="b"),
        lambda site, x, y, p, a, b: _flagged(p, x, y, not a, b),
    ),
    rule(
        "matmul(x, transpose(y, p)) -> matmul(x, y, transpose_b), if p swaps the last two axes",
        call(matmul, X, call(transpose, Y, perm="p"), transpose_a="a", transpose_b="b"),
        lambda site, x, y, p, a, b: _flagged(p, x, y, a, not b),
    ),
])  # fmt: skip


@everywhere
def fold_transposes(graph: Graph, context: PassContext) -> Graph:
    """Replace a transpose before a matmul by the matmul's own transpose attribute.

        %2 = transpose(%1, perm=(0, 2, 1))
        %3 = matmul(%0, %2, transpose_b=False)    ->    %3 = matmul(%0, %1, transpose_b=True)

    The transpose stays in the graph; it is dead unless something else reads it.
    """
    return replace_nodes(graph, FOLD_TRANSPOSES)


@everywhere
def merge_matmul_sums(graph: Graph, context: PassContext) -> Graph:
    """Replace a sum of many matmuls of 2-d operands by one matmul of concatenations.

    The gradient of a weight that every iteration of a loop uses is such a sum.

        %6 = add(matmul(%0, %1, transpose_a=True), matmul(%2, %3, transpose_a=True))
        ->  matmul(concat(%0, %2, axis=0), concat(%1, %3, axis=0), transpose_a=True)
    """
    uses = collections.Counter(i for node in graph.nodes for i in node.operands)
    uses.update(graph.outputs)
    producers: dict[int | None, GraphNode] = {r: node for node in graph.nodes for r in node.results}
    inner: set[int] = set()  # sums that are operands of another sum alone
    for node in graph.nodes:
        if node.op is add:
            inner.update(i for i in node.operands if i is not None and uses[i] == 1)
    types = list(graph.types)
    nodes: list[GraphNode] = []
    for node in graph.nodes:
        if node.op is add and node.results[0] not in inner:
            terms = _terms(node, producers, uses)
            if terms is not None and len(terms) >= context.costs.min_matmul_sum:
                operands = [_concatenated(terms, k, graph) for k in (0, 1)]
                if None not in operands:
                    first = len(types)
                    for parts, axis, type_ in filter(None, operands):
                        types.append(type_)
                        ids = (len(types) - 1,)
                        nodes.append(GraphNode(concat, parts, {"axis": axis}, ids, True, node.span))
                    node = dataclasses.replace(
                        node,
                        op=matmul,
                        operands=(first, first + 1),
                        attributes=terms[0].attributes,
                    )
        nodes.append(node)
    return Graph(graph.n_params, types, nodes, graph.outputs, graph.single)


def _terms(
    root: GraphNode,
    producers: Mapping[int | None, GraphNode],
    uses: collections.Counter[int | None],
) -> list[GraphNode] | None:
    """Return the matmuls whose results a tree of additions sums, from left to right, or None.

    `root` is the last addition. `producers` maps values to the nodes that compute them, `uses` the
    number of readers of each value. The result is None if the tree adds anything but matmuls, if a
    summand has another reader, or if the matmuls differ in attributes.
    """
    found: list[GraphNode] = []
    queue = list(reversed(root.operands))
    while queue:
        i = queue.pop()
        node = producers.get(i)
        if node is None or uses[i] != 1:
            return None
        if node.op is add:
            queue += reversed(node.operands)
            continue
        if node.op is not matmul or (found and node.attributes != found[0].attributes):
            return None
        found.append(node)
    return found


def _concatenated(
    terms: list[GraphNode], k: int, graph: Graph
) -> tuple[tuple[int | None, ...], int, TensorType] | None:
    """Return how to concatenate operand `k` of several matmuls along their contracted axis.

    `terms` are the matmuls; `k` is 0 or 1. The result is (values to concatenate, axis, result
    type), or None unless the values are 2-d and of the same type.
    """
    parts = tuple([term.operands[k] for term in terms])
    types = tuple([graph.types[i] for i in parts if i is not None])
    first = types[0]
    if not isinstance(first, TensorType) or first.ndim != 2 or any(t is not first for t in types):
        return None
    flag = terms[0].attributes["transpose_b" if k else "transpose_a"]
    axis = int(bool(flag) == bool(k))
    made = concat.result_types((first,) * len(types), {"axis": axis})
    assert isinstance(made, TensorType)
    return parts, axis, made
