"""Inlining: rewrite rules that replace a node which runs a graph by the nodes of that graph.

    %1 = host_constant(value=host(True)) : bool
    %2, = switch(%1, %0) : float32[3] {
      branches[0] = ...
      branches[1] = graph(%0: float32[3]) {            ->      %2 = exp(%0) : float32[3]
        %1 = exp(%0) : float32[3]
        return %1,
      }
    }

The rules may apply only if the graph is known to run exactly once, or, for a loop, not at all.
`simplify` applies them.
"""

from __future__ import annotations

from ..ir.control import call as call_op
from ..ir.control import custom_call, switch, while_loop
from ..ir.graph import Graph, NamedGraph
from .patterns import call, known, rule
from .rewriting import Found, GraphValue, Rewriter, RewriteRule

__all__ = ["INLINING", "is_recursive"]

# Calls are no longer inlined into a graph of this size, in nodes: nested calls can grow it
# exponentially.
MAX_NODES = 100_000

Values = tuple[GraphValue, ...]


def inlined(g: Rewriter, graph: Graph, xs: Values) -> Found:
    """Append copies of a graph's nodes to the new graph, rewritten; return the symbolic results.

    `xs` are the values for the parameters of `graph`.
    """
    return tuple([g.builder.tensor(i) for i in g.replay(graph, [x._id for x in xs])])


def inline_branch(g: Rewriter, index: int, xs: Values, branches: tuple[Graph, ...]) -> Found | None:
    """Append the nodes of the branch that a known index selects; return its results, or None.

    The result is None, and the switch stays in the graph, if there is no such branch.
    """
    if not 0 <= int(index) < len(branches):
        return None
    return inlined(g, branches[int(index)], xs)


def inline_call(g: Rewriter, xs: Values, target: NamedGraph) -> Found | None:
    """Append the nodes of the called graph in place of the call; return its results, or None.

    The result is None, and the call stays in the graph, if the called graph is recursive or the new
    graph has over MAX_NODES nodes.
    """
    key = ("recursive", target)
    found = g.done.get(key)
    if found is None:
        found = g.done[key] = is_recursive(target)
    if found or len(g.nodes) > MAX_NODES:
        return None
    assert target.graph is not None
    return inlined(g, target.graph, xs)


def is_recursive(target: NamedGraph) -> bool:
    """Return whether a named graph may call itself; an unfinished graph counts as recursive."""
    seen: set[Graph] = set()
    graphs: list[Graph | None] = [target.graph]
    while graphs:
        graph = graphs.pop()
        if graph is None:
            return True
        if graph in seen:
            continue
        seen.add(graph)
        for node in graph.nodes:
            graphs.extend(node.graphs)
            callee = node.attributes.get("target")
            if callee is target:
                return True
            if isinstance(callee, NamedGraph):
                graphs.append(callee.graph)
    return False


INLINING: list[RewriteRule] = [
    rule(
        "switch(number, xs) -> branches[number](xs)",
        call(switch, known("index"), rest="xs", branches="branches"),
        inline_branch,
    ),
    rule(
        "while_loop(False, carries, invariants) -> carries",
        call(while_loop, known("going"), rest="xs", n_carry="n"),
        lambda g, going, xs, n: None if going else xs[:n],
    ),
    rule(
        "custom_call(xs) -> graph(xs); its gradient is taken by now",
        call(custom_call, rest="xs", graph="graph"),
        lambda g, xs, graph: inlined(g, graph, xs),
    ),
    rule(
        "call(xs) -> target(xs), unless the target is recursive",
        call(call_op, rest="xs", target="target"),
        inline_call,
    ),
]
