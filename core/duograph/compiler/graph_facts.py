"""Converts graphs to JSON-like data for the HTML page that `JitFunction.show` returns.

`program_facts` calls `GraphFacts.graph` for each *stage* of a program, which is its graph after one
pass, and `changes` for each pair of successive stages. The data may consist only of lists, strings
and numbers.

A graph is `{"p": parameters, "n": nodes, "o": ids of the results}`. A parameter is `[type, name,
kind]`. A node is `[head, operands, results]`, then, if it has sub-graphs, `[[title, graph], ...]`.
The *head* is the index of `[op, attributes, result types, file, line, effects, called graph,
kind]` in `GraphFacts.heads`; most heads occur in several stages. The kind is the result of
`kind_of`.
"""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import Any

from ..ir.graph import Graph, GraphNode, NamedGraph
from ..ir.text import attributes_text, effects_text, subgraphs_of

__all__ = ["GraphFacts", "changes"]

# [type, name, kind] of a parameter of a graph.
ParameterFact = list[str]


class GraphFacts:
    """Converts graphs to JSON-like data, in which what equal nodes have in common is stored once.

    Attributes:
        heads: for each distinct head, which is a node without its operands: op, attributes, result
            types, file, line, effects, called graph and kind.
        files: the source files that nodes come from.
        named: name -> data of the named graph that `call` nodes run.
    """

    def __init__(self) -> None:
        self.heads: list[list[Any]] = []
        self.files: list[str] = []
        self.named: dict[str, dict[str, object] | None] = {}
        self._numbers: dict[tuple[object, ...], int] = {}
        self._known: dict[tuple[object, ...], tuple[int, object]] = {}

    def graph(self, graph: Graph, parameters: Sequence[ParameterFact] | None = None) -> Any:
        """Return a graph as a dict of lists, for JSON.

        `parameters` holds [type, name, kind] of each parameter. None, as for sub-graphs, takes the
        types from the graph and leaves the names empty.
        """
        if parameters is None:
            parameters = [[repr(t), "", "inner"] for t in graph.types[: graph.n_params]]
        nodes = [self.node(graph, node) for node in graph.nodes]
        return {"p": list(parameters), "n": nodes, "o": list(graph.outputs)}

    def node(self, graph: Graph, node: GraphNode) -> list[object]:
        """Return a node as a list for JSON: `[head, operands, results]`, then any sub-graphs.

        The head is the index in `heads` of what the node has besides operands: op, attributes,
        result types and source line.
        """
        made: list[object] = [self.head(graph, node), list(node.operands), list(node.results)]
        inner = [[title, self.graph(g)] for title, g in subgraphs_of(node)]
        return [*made, inner] if inner else made

    def head(self, graph: Graph, node: GraphNode) -> int:
        """Return the index in `heads` of a node's data without operands; add them if they are new.

        These data, called the head, are op, attributes, result types, source line, effects and
        kind.
        """
        # most nodes pass from stage to stage with the same attributes
        same = (node.op, id(node.attributes), node.span, *[graph.types[i] for i in node.results])
        known = self._known.get(same)
        if known is None:
            known = self._known[same] = self._head(graph, node), node.attributes
        return known[0]

    def _head(self, graph: Graph, node: GraphNode) -> int:
        types = [repr(graph.types[i]) for i in node.results]
        file, line = -1, 0
        if node.span is not None:
            if node.span.file not in self.files:
                self.files.append(node.span.file)
            file, line = self.files.index(node.span.file), node.span.line
        target = node.attributes.get("target")
        called = self.called(target) if isinstance(target, NamedGraph) else ""
        if node.op.name == "region":
            body: Graph = node.attributes["body"]
            attributes = ", ".join(n.op.name for n in body.nodes)
        else:
            attributes = attributes_text(node)
        effects = effects_text(node.effects)
        key = (node.op.name, attributes, tuple(types), file, line, effects, called)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.heads)
            self.heads.append([key[0], attributes, types, *key[3:], kind_of(node)])
        return number

    def called(self, target: NamedGraph) -> str:
        """Return the name of a called graph; add its data to `named` if they are not there yet."""
        if target.name not in self.named:
            self.named[target.name] = None  # it may call itself
            if target.graph is not None:
                self.named[target.name] = self.graph(target.graph)
        return target.name


def kind_of(node: GraphNode) -> str:
    """Return the kind of a node, for its colour on the page.

    The kinds are: fused (a region of fused ops), control (control flow), host (Python code),
    constant, view, reduction, elementwise, and kernel for any other op, such as matmul.
    """
    op = node.op
    facts = {
        "fused": op.name == "region",
        "control": bool(node.graphs) or "target" in node.attributes,
        "host": op.host or op.name == "host_call",
        "constant": not node.operands and not op.effects,
        "view": op.is_view or bool(op.alias),
        "reduction": op.is_reduction,
        "elementwise": op.scalar_rule is not None,
    }
    return next((kind for kind, holds in facts.items() if holds), "kernel")


def changes(old: Any, new: Any) -> dict[str, object]:
    """Return what differs between the graphs before and after a pass, both as JSON-like data.

    A node of the new graph corresponds to an old node with the same head (op, attributes, result
    types and source line), preferably to one whose operands also correspond.

    Args:
        old, new: the graphs, in the form that `GraphFacts.graph` returns.

    Returns:
        a dict of four entries. "new": positions of new nodes without an old counterpart; "rewired":
            positions of new nodes whose counterpart has other operands; "gone": positions of old
            nodes without a new counterpart; "inner": position of a new node, as text -> list of the
            changes of each of its sub-graphs that differs.
    """
    by_head: dict[int, collections.deque[int]] = collections.defaultdict(collections.deque)
    exact: dict[tuple[object, ...], collections.deque[int]] = collections.defaultdict(
        collections.deque
    )
    for at, node in enumerate(old["n"]):
        by_head[node[0]].append(at)
        exact[node[0], tuple(node[1])].append(at)
    before = {i: i for i in range(len(new["p"]))}  # value id -> id of its old counterpart
    used: set[int] = set()
    found: dict[str, Any] = {"new": [], "rewired": [], "gone": [], "inner": {}}

    def first(queue: collections.deque[int]) -> int | None:
        while queue and queue[0] in used:
            queue.popleft()
        return queue[0] if queue else None

    for at, node in enumerate(new["n"]):
        operands = tuple([i if i is None else before.get(i, -1) for i in node[1]])
        same = first(exact[node[0], operands])
        match = first(by_head[node[0]]) if same is None else same
        if match is None:
            found["new"].append(at)
            continue
        used.add(match)
        before.update(zip(node[2], old["n"][match][2]))
        if same is None:
            found["rewired"].append(at)
        if len(node) > 3:
            inner = [
                changes(a[1], b[1]) for a, b in zip(old["n"][match][3], node[3]) if a[1] != b[1]
            ]
            if inner:
                found["inner"][str(at)] = inner
    found["gone"] = [at for at in range(len(old["n"])) if at not in used]
    return found
