"""Applies rewrite rules that replace one node of a graph by another with the same results.

Passes above O0 that exchange one op for another call `replace_nodes`. Unlike `rewriting`, it keeps
all value ids. Nodes whose results are no longer read stay in the graph for `remove_dead_code`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from ..ir.graph import Attributes, Graph, GraphNode
from ..op import Op
from .patterns import Producers, Rule, Rules

__all__ = ["Replacement", "ReplacementRule", "ReplacementRules", "Site", "replace_nodes"]


class Replacement(NamedTuple):
    """The op call that a rewrite rule puts in the place of a graph node."""

    op: Op
    operands: tuple[int | None, ...]
    attributes: Attributes


class Site(NamedTuple):
    """What a rewrite rule may look at: the graph, each value's producer, and the matching node."""

    graph: Graph
    producers: Producers
    node: GraphNode


# A rule's function receives the site, and by name what the pattern has bound.
ReplacementRule: TypeAlias = Rule[Replacement]
ReplacementRules: TypeAlias = Rules[Replacement]


def replace_nodes(
    graph: Graph,
    rules: ReplacementRules,
    accepts: Callable[[Replacement], bool] = lambda made: True,
) -> Graph:
    """Replace single nodes of a graph by calls that rewrite rules compute.

    The rules for a node's op are applied in order, each to the result of the one before, so that
    both transposes of `matmul(transpose(x), transpose(y))` are folded. `accepts` may refuse a
    replacement. If no rule applies, `graph` itself is returned.
    """
    producers: dict[int | None, GraphNode] = {}
    nodes: list[GraphNode] = []
    changed = False
    for node in graph.nodes:
        for rule in rules.by_op.get(node.op, ()):
            made = _replacement(Site(graph, producers, node), rule)
            if made is not None and accepts(made):
                node = dataclasses.replace(
                    node, op=made.op, operands=made.operands, attributes=made.attributes
                )
                changed = True
        producers.update(dict.fromkeys(node.results, node))
        nodes.append(node)
    if not changed:
        return graph
    return Graph(graph.n_params, list(graph.types), nodes, graph.outputs, graph.single)


def _replacement(site: Site, rule: ReplacementRule) -> Replacement | None:
    """Return the replacement of a site's node by a rule; None if the rule does not apply."""
    node = site.node
    for bindings in rule.pattern.matches(node.operands, node.attributes, site.producers):
        made = rule.replace(site, **bindings)
        if made is not None:
            return made
    return None
