"""Groups nodes that one generated kernel can compute into `region` nodes.

Elementwise ops join the regions of their operands, reductions over trailing axes close rows, and
what is computed from a row joins it:

    %3 = reduce_max(%0)                         %8 = region(%0, body=graph(%0) {
    %4 = sub(%0, %3)                                   %1 = reduce_max(%0)
    %5 = exp(%4)                ->                     ...
    %6 = reduce_sum(%5)                                return %5 })
    %7 = div(%5, %6)

Reductions over other axes can end a region, when all leave the same columns (the gradient of a
bias, of a weight of layer_norm):

    %3 = mul(%0, %1)                            %5, %6 = region(%0, %1, body=graph(%0, %1) {
    %4 = reduce_sum(%3, axis=(0,))     ->              %2 = mul(%0, %1)
    %5 = reduce_sum(%0, axis=(0,))                     ...

What an index takes (`gather`, `gather_elements`) is read where the region needs it, so a gather
waits for the op that uses it and is no pass over memory of its own. What it takes from has to lie
in memory: an element that several indices name would be computed for each.

A region that goes on element by element from what a product computes, and is the only one to read
it, takes the product in, if the backend says so (`Backend.epilogues`):

    %3 = matmul(%0, %1)                         %5 = region(%0, %1, %2, body=graph(%0, %1, %2) {
    %4 = add(%3, %2)                ->                 %3 = matmul(%0, %1)
    %5 = relu(%4)                                      ...

Every node has a level: that of its operands when it joins their region, else one more than theirs.
Nodes of one region have one level, so two regions never wait for each other. A value that is needed
outside its region becomes one of its results.
"""

from __future__ import annotations

import dataclasses
import heapq
from collections.abc import Callable, Sequence
from typing import Any

from ..backend.codegen.region_plan import plan_region
from ..ir.control import SUBGRAPH_OPS, region
from ..ir.graph import Graph, GraphNode, live_nodes
from ..ir.loops import (
    columns_of,
    gathers_long_runs,
    is_elementwise,
    is_reduction,
    is_row_value,
    is_view,
    row_length,
    scatter_columns,
)
from ..types import TensorType
from .context import PLAIN, PassContext
from .subgraphs import Done, mapped

__all__ = ["fuse"]


class _Region:
    """Nodes that belong together.

    Attributes:
        level: of all of them.
        n: elements of inner values.
        row: elements of a row, 0 while nothing is reduced.
        nodes: their positions in the graph.
    """

    def __init__(self, level: int, n: int, row: int = 0) -> None:
        self.level = level
        self.n = n
        self.row = row
        self.nodes: list[int] = []
        self.merged: _Region | None = None

    def found(self) -> _Region:
        """The region that this one has become part of."""
        here = self
        while here.merged is not None:
            here = here.merged
        return here


def fuse(graph: Graph, context: PassContext = PLAIN, done: Done | None = None) -> Graph:
    """The graph with its fusable nodes in regions, and so the graphs that its nodes hold."""
    return _Fusion(graph, context, {} if done is None else done).result()


class _Fusion:
    def __init__(self, graph: Graph, context: PassContext, done: Done) -> None:
        self.graph = graph
        self.context = context
        self.limits = context.costs.fusion
        self.products = context.epilogues
        self.done = done
        self.types: Sequence[Any] = graph.types
        self.home: dict[int, _Region] = {}  # of a node, by position
        self.maker: dict[int, int] = {}  # position of the node that makes a value
        self.level: dict[int, int] = {}  # of nodes that are in no region, by position
        self.literals: set[int] = set()  # values that every region writes as numbers
        self.regions: list[_Region] = []
        self.users: dict[int, list[int]] = {}  # positions of the nodes that read a value

    # ---- grouping -----------------------------------------------------------------------------

    def group(self) -> None:
        for at, node in enumerate(self.graph.nodes):
            for r in node.results:
                self.maker[r] = at
            for i in node.operands:
                if i is not None:
                    self.users.setdefault(i, []).append(at)
            if self.is_literal(node):
                self.literals.add(node.results[0])
                self.level[at] = 0
                continue
            shape = self.fits(node)
            if shape is None:
                self.level[at] = 1 + max((self.level_of(i) for i in node.operands), default=-1)
                continue
            self.join(at, node, *shape)

    def is_literal(self, node: GraphNode) -> bool:
        name = node.op.name
        if name == "constant":
            array = node.attributes["value"].array
            return array.size == 1 and array.dtype.kind in "biuf"
        return name == "fill" and self.types[node.results[0]].dtype.kind in "biuf"

    def fits(self, node: GraphNode) -> tuple[int, int] | None:
        """The elements and the row length of a loop that could hold the node, or None."""
        if is_reduction(node.op):
            type_, result = self.types[node.operands[0] or 0], self.types[node.results[0]]
            row = row_length(node, type_)
            if (
                type_.dtype.is_complex
                or result.dtype.is_complex
                or not self.limits.min_row <= row <= self.limits.max_row
            ):
                return None
            if type_.size // row < self.limits.min_rows and type_.size > self.limits.max_few_rows:
                return None
            return type_.size, row
        type_ = self.types[node.results[0]] if node.single else None
        if not isinstance(type_, TensorType) or type_.size == 0:
            return None
        if node.op.traits.gather:
            operands = [i for i in node.operands if i is not None]
            apart = self.literals.isdisjoint(operands)
            kinds = [self.types[i] for i in operands]
            loads = apart and gathers_long_runs(node, kinds, type_, self.limits.min_run)
            return (type_.size, 0) if loads else None
        if type_.dtype.is_complex if is_view(node.op) else not is_elementwise(node, self.types):
            return None
        return type_.size, 0

    def level_of(self, i: int | None) -> int:
        """The level after which a value is there."""
        at = None if i is None else self.maker.get(i)
        if at is None:
            return -1
        home = self.home.get(at)
        return self.level[at] if home is None else home.found().level

    def join(self, at: int, node: GraphNode, n: int, row: int) -> None:
        """Put a node into the region of an operand, or into a new one."""
        candidates: list[_Region] = []
        loads: list[_Region] = []  # which can wait for this node
        level = 0
        for i in node.operands:
            if i is None or i in self.literals:
                continue
            maker = self.maker.get(i)
            home = self.home[maker].found() if maker in self.home else None
            if home is None or node.op.traits.gather:
                level = max(level, self.level_of(i) + 1)
            elif self.is_load(home, at) and (not row or home.n == n):
                if home not in loads:
                    loads.append(home)
            elif self.matches(home, node, i, n, row):
                if home not in candidates:
                    candidates.append(home)
            else:
                level = max(level, self.level_of(i) + 1)
        level = max([level, *(g.level for g in candidates), *(g.level for g in loads)])
        for g in loads:
            g.level, g.n = level, candidates[0].n if candidates else n
        candidates += loads
        chosen = [g for g in candidates if g.level == level]
        rows = {g.row for g in chosen if g.row} | ({row} if row else set())
        if (
            len(rows) > 1
            or sum(len(g.nodes) for g in chosen) >= self.limits.max_nodes
            or not self.agree(chosen, node, n)
        ):
            chosen = []
            level = 1 + max(
                (self.level_of(i) for i in node.operands if i not in self.literals), default=-1
            )
        if not chosen:
            made = _Region(level, n, row)
            self.regions.append(made)
            chosen = [made]
        first = chosen[0]
        for other in chosen[1:]:
            first.nodes += other.nodes
            first.row = first.row or other.row
            other.merged = first
        if rows:
            first.row = rows.pop()
        first.nodes.append(at)
        self.home[at] = first

    def is_load(self, home: _Region, at: int) -> bool:
        """Whether all that the region does is to take by an index what the node at this position
        alone reads.
        """
        if len(home.nodes) != 1 or not self.graph.nodes[home.nodes[0]].op.traits.gather:
            return False
        (value,) = self.graph.nodes[home.nodes[0]].results
        return set(self.users[value]) == {at} and value not in self.graph.outputs

    def matches(self, home: _Region, node: GraphNode, i: int, n: int, row: int) -> bool:
        """Whether the node can use the value i of a region inside of it."""
        value = self.types[i]
        if row:  # a reduction: of an inner value
            return home.n == n and value.size == n and home.row in (0, row) and n != n // row
        if home.n == n and value.size == n:
            return True
        if not home.row:
            return False
        if n == home.n:  # a row value spread over its row
            return is_row_value(value.shape, self.shape(node), home.row)
        return n * home.row == home.n and value.size == n  # from row value to row value

    def shape(self, node: GraphNode) -> tuple[int, ...]:
        """The shape along which the node reads its operands."""
        if node.op.name == "reshape":
            found: tuple[int, ...] = self.types[node.operands[0] or 0].shape
        else:
            found = self.types[node.results[0]].shape
        return found

    def agree(self, chosen: list[_Region], node: GraphNode, n: int) -> bool:
        """Whether regions can become one: same elements, and pointers enough."""
        if len({g.n for g in chosen}) > 1:
            return False
        read: set[int | None] = set(node.operands)
        for g in chosen:
            for at in g.nodes:
                read.update(self.graph.nodes[at].operands)
        return len(read) <= self.limits.max_pointers

    # ---- the new graph ------------------------------------------------------------------------

    def result(self) -> Graph:
        self.group()
        graph, nodes = self.graph, self.graph.nodes
        self.end_in_columns()
        live = []
        for g in self.regions:
            if g.merged is None:
                product = self.product(g)
                if self.pays(g, self.limits.min_ops if product is None else 1):
                    live.append(g)
                    if product is not None:
                        g.nodes.append(product)
        member: dict[int, _Region] = {at: g for g in live for at in g.nodes}
        owner = dict(member)
        if not live and not any(node.op in SUBGRAPH_OPS for node in nodes):
            return graph
        used_outside = set(graph.outputs)
        for at, node in enumerate(nodes):
            for i in node.operands:
                if (
                    i is not None
                    and i in self.maker
                    and member.get(at) is not member.get(self.maker[i], at)
                ):
                    used_outside.add(i)
        for at in range(len(nodes) - 1, -1, -1):
            node = nodes[at]
            if at in owner and node.op.alias and node.results[0] in used_outside:
                # the same bytes under another shape: no result of the region, but a name for one
                used_outside.discard(node.results[0])
                used_outside.add(node.operands[0] or 0)
                del owner[at]
        made = [self.body(g, used_outside) for g in live]
        by_region = {id(g): m for g, m in zip(live, made)}
        ordered: list[GraphNode] = []
        for key in self.order(owner, member):
            if isinstance(key, int):
                ordered.append(self.inner(nodes[key]))
            else:
                ordered.append(by_region[id(key)])
        return Graph(graph.n_params, list(graph.types), ordered, graph.outputs, graph.single)

    def inner(self, node: GraphNode) -> GraphNode:
        if node.op not in SUBGRAPH_OPS:
            return node
        attributes = mapped(node.attributes, lambda g: fuse(g, self.context, self.done), self.done)
        return dataclasses.replace(node, attributes=attributes)

    def pays(self, g: _Region, least: int) -> bool:
        """Whether a kernel of its own is better than those that are there: it saves at least one of
        them.
        """
        nodes = [self.graph.nodes[at] for at in g.nodes]
        filled = sum(
            node.op.traits.scatter is not None and node.operands[0] in self.literals
            for node in nodes
        )
        return sum(not is_view(node.op) for node in nodes) + filled >= least

    def end_in_columns(self) -> None:
        """Let regions end in reductions over other axes than the last, which all leave the same
        columns of one region.

        What is reduced is a value of the region, or an operand that it reads. Regions that read the
        same become one.
        """
        ends: dict[Any, list[_Region]] = {}
        for g in self.regions:
            if g.merged is not None or g.row or self.product(g) is not None:
                continue
            found = self.columns_near(g)
            for columns in sorted(found, key=lambda c: -len(found[c])):
                if self.fits_columns([*g.nodes, *found[columns]]):
                    g.nodes += found[columns]
                    self.home.update(dict.fromkeys(found[columns], g))
                    ends.setdefault((g.level, columns), []).append(g)
                    break
        self.end_in_scatters()
        for same in ends.values():
            for k, g in enumerate(same):
                for other in same[:k]:
                    if (
                        other.merged is None
                        and self.meet(g, other)
                        and self.fits_columns(g.nodes + other.nodes)
                    ):
                        g.nodes += other.nodes
                        other.merged = g

    def end_in_scatters(self) -> None:
        """Let regions without other ends put what they compute where indices say.

        A scatter into one number throughout is a region of its own if need be: that saves to fill
        and to copy it.
        """
        for at, node in enumerate(self.graph.nodes):
            if not node.op.traits.scatter or None in node.operands or not node.single:
                continue
            target, indices, updates = (i or 0 for i in node.operands)
            columns = scatter_columns(node, self.types[target], self.types[indices])
            dtype = self.types[target].dtype
            if (
                columns.width < self.limits.min_width
                or dtype.is_complex
                or not self.types[updates].size
            ):
                continue
            if indices in self.literals or updates in self.literals:
                continue
            maker = self.maker.get(updates)
            home = self.home[maker].found() if maker in self.home else None
            waits = max(-1 if i in self.literals else self.level_of(i) for i in (target, indices))
            if home is not None and self.can_scatter(home, waits, at):
                home.nodes.append(at)
                self.home[at] = home
            elif target in self.literals and self.fits_columns([at]):
                made = _Region(self.level[at], self.types[updates].size)
                made.nodes.append(at)
                self.regions.append(made)
                self.home[at] = made

    def can_scatter(self, home: _Region, waits: int, at: int) -> bool:
        """Whether a region can end in the scatter at this position, whose other operands wait for
        level `waits`.
        """
        if home.row or waits >= home.level or self.product(home) is not None:
            return False
        ops = {self.graph.nodes[k].op for k in home.nodes}
        ends = any(op.traits.scatter or is_reduction(op) for op in ops)
        return not ends and self.fits_columns([*home.nodes, at])

    def columns_near(self, g: _Region) -> dict[Any, list[int]]:
        """Positions of such reductions of what the region computes or reads, by what they leave."""
        found: dict[Any, list[int]] = {}
        near = {
            i
            for at in g.nodes
            for i in (*self.graph.nodes[at].results, *self.graph.nodes[at].operands)
        }
        for value in sorted(i for i in near if i is not None and i not in self.literals):
            type_ = self.types[value]
            for user in dict.fromkeys(self.users.get(value, ())):
                node = self.graph.nodes[user]
                if user in self.home or not is_reduction(node.op) or type_.size != g.n:
                    continue
                if self.level[user] < g.level:  # what the region computes may need it
                    continue
                if {type_.dtype.kind, self.types[node.results[0]].dtype.kind} & set("bc"):
                    continue
                columns = columns_of(node, type_)
                if columns is not None and columns.width >= self.limits.min_width:
                    found.setdefault(columns, []).append(user)
        return found

    def fits_columns(self, nodes: list[int]) -> bool:
        """Whether these nodes fit the loops over columns."""
        whole = _Region(0, 0)
        whole.nodes = nodes
        made = self.body(whole, {r for at in nodes for r in self.graph.nodes[at].results})
        body: Graph = made.attributes["body"]
        return body.n_params <= self.limits.max_pointers and plan_region(body) is not None

    def meet(self, a: _Region, b: _Region) -> bool:
        """Whether two regions read the same operand."""
        read = [
            {i for at in g.nodes for i in self.graph.nodes[at].operands} - self.literals
            for g in (a, b)
        ]
        return not read[0].isdisjoint(read[1])

    def product(self, g: _Region) -> int | None:
        """The position of the last product whose result nothing else needs, read element by
        element.
        """
        if (
            g.row
            or not self.products
            or any(self.graph.nodes[at].op.traits.gather for at in g.nodes)
        ):
            return None
        found = None
        inside = set(g.nodes)
        for at in g.nodes:
            for i in self.graph.nodes[at].operands:
                maker = self.maker.get(-1 if i is None else i)
                if i is None or maker is None or maker in inside or self.types[i].size != g.n:
                    continue
                node = self.graph.nodes[maker]
                if node.op.name not in self.products or None in node.operands:
                    continue
                if not self.literals.isdisjoint(node.operands) or not self.stays_inside(i, inside):
                    continue
                found = max(maker, found or 0)
        return found

    def stays_inside(self, i: int, nodes: set[int]) -> bool:
        """Whether only these nodes read the bytes of a value, under any name."""
        if i in self.graph.outputs:
            return False
        for at in self.users.get(i, ()):
            node = self.graph.nodes[at]
            if at not in nodes or (node.op.alias and not self.stays_inside(node.results[0], nodes)):
                return False
        return True

    def body(self, g: _Region, used_outside: set[int]) -> GraphNode:
        """The `region` node of a group."""
        nodes = [self.graph.nodes[at] for at in sorted(g.nodes)]
        outputs = tuple([r for node in nodes for r in node.results if r in used_outside])
        nodes = live_nodes(nodes, set(outputs))
        own = {r for node in nodes for r in node.results}
        operands: list[int] = []
        literals: list[int] = []
        for node in nodes:
            for i in node.operands:
                if i is None or i in own or i in operands or i in literals:
                    continue
                (literals if i in self.literals else operands).append(i)
        number: dict[int | None, int] = {i: k for k, i in enumerate(operands)}
        types: list[Any] = [self.types[i] for i in operands]
        made: list[GraphNode] = []
        for node in [*(self.graph.nodes[self.maker[i]] for i in literals), *nodes]:
            for r in node.results:
                number[r] = len(types)
                types.append(self.types[r])
            ids = tuple([None if i is None else number[i] for i in node.operands])
            results = tuple([number[r] for r in node.results])
            made.append(dataclasses.replace(node, operands=ids, results=results))
        body = Graph(
            len(operands), types, made, tuple([number[r] for r in outputs]), len(outputs) == 1
        )
        return GraphNode(
            region, tuple(operands), {"body": body}, outputs, len(outputs) == 1, nodes[-1].span
        )

    def order(self, owner: dict[int, _Region], member: dict[int, _Region]) -> list[int | _Region]:
        """Nodes and regions so that operands come first, else in the order of the graph; effects
        keep theirs.

        `member` says which region computes a value for itself, though a node of its own may compute
        it too.
        """
        nodes = self.graph.nodes
        unit: Callable[[int], Any] = lambda at: owner.get(at, at)  # noqa: E731
        last: dict[Any, int] = {}
        for at in range(len(nodes)):
            last[unit(at)] = at
        waits: dict[Any, set[Any]] = {u: set() for u in last}
        effect: int | None = None
        for at, node in enumerate(nodes):
            here = unit(at)
            for i in node.operands:
                if i is not None and i in self.maker:
                    before = unit(self.maker[i])
                    if before is not here and member.get(self.maker[i]) is not here:
                        waits[here].add(before)
            if node.effects:
                if effect is not None:
                    waits[here].add(effect)
                effect = at
        followers: dict[Any, list[Any]] = {u: [] for u in last}
        for u, before in waits.items():
            for b in before:
                followers[b].append(u)
        ready = [(last[u], u) for u, before in waits.items() if not before]
        heapq.heapify(ready)
        found: list[int | _Region] = []
        left = {u: len(before) for u, before in waits.items()}
        while ready:
            _, u = heapq.heappop(ready)
            found.append(u)
            for f in followers[u]:
                left[f] -= 1
                if not left[f]:
                    heapq.heappush(ready, (last[f], f))
        assert len(found) == len(last), "fusion: regions wait for each other"
        return found
