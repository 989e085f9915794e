"""Decides which graph nodes are fused into one kernel; the pass `fusion` uses the decision.

Groups are formed in program order. A node joins the groups of its operands if one loop nest can
compute all of them. Every node has a *dependency level*: the level of its operands' group if it
joins that group, else one more than the highest level among its operands. All nodes of a group have
the same level, so two groups never wait for each other. This module must not change the graph.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from ..dims import text_of
from ..ir.control import region
from ..ir.graph import Graph, GraphNode
from ..ir.liveness import live_nodes
from ..ir.loops import (
    gathers_long_runs,
    is_elementwise,
    is_row_value,
    row_length,
)
from ..types import TensorType, ValueType
from .context import PassContext
from .matched_ops import constant, fill, iota, reshape

__all__ = ["Group", "Grouping"]


class Group:
    """A fusion group: graph nodes that one generated kernel is to compute.

    Attributes:
        level: the dependency level of all its nodes; groups of one level read no values of each
            other.
        n: number of elements over which the group's loop runs.
        row: number of elements that one reduction of the group combines; 0 if it reduces nothing.
        nodes: positions of its nodes in the graph.
        merged: the group into which it was merged; None if it was not merged.
    """

    def __init__(self, level: int, n: int, row: int = 0) -> None:
        self.level = level
        self.n = n
        self.row = row
        self.nodes: list[int] = []
        self.merged: Group | None = None

    def current(self) -> Group:
        """Return this group, or the group into which its nodes have been merged."""
        found = self
        while found.merged is not None:
            found = found.merged
        return found


class Grouping:
    """The division of a graph's nodes into fusion groups (future kernels), in program order.

    Attributes:
        home: position of a node -> its group, which may be merged into another (`Group.current`).
        producer: value -> position of the node that computes it.
        level: position of a node outside all groups -> its dependency level.
        literals: constants of equal elements, which kernels contain as numbers.
        positions: values of `iota` that count along rows, which kernels of rows can compute.
        groups: all groups, including those that were merged into others.
        readers: value -> positions of the nodes that read it.
        refusals: position of a node that is in no group -> the reason.
        apart: (position of a node, operand) -> why the node is not in the group of the operand.
        copies: results of nodes that `fusion_recompute` copied for one group each. These nodes read
            all other values from memory. They are therefore never in a group that computes a value
            which they read.
    """

    def __init__(
        self, graph: Graph, context: PassContext, copies: frozenset[int] = frozenset()
    ) -> None:
        self.graph = graph
        self.copies = copies
        self.limits = context.costs.fusion
        self.epilogues = context.epilogues
        self.home: dict[int, Group] = {}
        self.producer: dict[int, int] = {}
        self.level: dict[int, int] = {}
        self.literals: set[int | None] = set()
        self.positions: set[int | None] = set()
        self.groups: list[Group] = []
        self.readers: dict[int, list[int]] = {}
        self.refusals: dict[int, str] = {}
        self.apart: dict[tuple[int, int], str] = {}
        self._effect_level = 0  # level of the latest node with an effect
        compares = context.costs.compare_labels
        for at, node in enumerate(graph.nodes):
            if compares and node.op is iota and self.tensor(node.results[0]).ndim == 1:
                self.positions.update(node.results)
            self.producer.update(dict.fromkeys(node.results, at))
            for i in node.operands:
                if i is not None:
                    self.readers.setdefault(i, []).append(at)
        for at, node in enumerate(graph.nodes):  # `enter` needs all readers of a value
            self.enter(at, node)

    def tensor(self, i: int | None) -> TensorType:
        """Return the tensor type of a graph value, which must be a tensor."""
        assert i is not None
        type_ = self.graph.types[i]
        assert isinstance(type_, TensorType)
        return type_

    def enter(self, at: int, node: GraphNode) -> None:
        """Put the node at position `at` into a fusion group, if it can be fused.

        A node that cannot be fused, or a constant of equal elements, is put into no group; only its
        dependency level is stored.
        """
        if self.is_literal(node):
            self.literals.add(node.results[0])
            self.level[at] = 0
            return
        shape = self.loop_or_refusal(node)
        if isinstance(shape, str):
            self.refusals[at] = shape
            self.level[at] = self.level_after(node.operands)
            if node.effects:  # it must come after the previous effect too
                self.level[at] = self._effect_level = max(self.level[at], self._effect_level)
        else:
            self.join(at, node, *shape)

    def is_literal(self, node: GraphNode) -> bool:
        """Return whether a node is a constant of equal elements, which kernels can inline."""
        if node.op is constant:
            array = node.attributes["value"].array
            return bool(array.size == 1 and array.dtype.kind in "biuf")
        return node.op is fill and self.tensor(node.results[0]).dtype.kind in "biuf"

    def loop_of(self, node: GraphNode) -> tuple[int, int] | None:
        """Return (number of elements, row length) of the loop that computes a node.

        The row length, the number of elements that a reduction combines, is 0 for other nodes.
        Returns None if no loop can compute the node.
        """
        found = self.loop_or_refusal(node)
        return None if isinstance(found, str) else found

    def loop_or_refusal(self, node: GraphNode) -> tuple[int, int] | str:
        """Return (number of elements, row length) of a node's loop, or why no loop can compute it.

        The row length, the number of elements that a reduction combines, is 0 for other nodes. The
        reason why no loop can compute the node is a text for the user.
        """
        limits = self.limits
        if node.op.is_reduction:
            source, result = self.tensor(node.operands[0]), self.tensor(node.results[0])
            row = row_length(node, source)
            if source.dtype.is_complex or result.dtype.is_complex:
                return "a reduction of complex numbers"
            if not row:
                return "it does not reduce the last axes, so its input has no rows"
            if not limits.min_row <= row <= limits.max_row:
                return (
                    f"it reduces rows of {text_of(row)} elements; a fused kernel takes rows of "
                    f"{limits.min_row} to {limits.max_row}"
                )
            few = source.size // row < limits.min_rows
            if few and source.size > limits.max_few_rows:
                return (
                    f"it has {source.size // row} rows; fewer than {limits.min_rows} rows of so "
                    "many elements run faster in the kernel of the op"
                )
            return source.size, row
        if node.graphs or node.op.host or node.op.name in ("call", "host_call"):
            return "it runs other graphs or Python code"
        type_ = self.graph.types[node.results[0]] if node.single else None
        if not isinstance(type_, TensorType):
            return "it does not return one tensor"
        if type_.size == 0:
            return "it has no elements"
        if node.op.traits.gather:
            fits = self.literals.isdisjoint(node.operands) and gathers_long_runs(
                node, [self.tensor(i) for i in node.operands], type_, limits.min_run
            )
        elif node.op.is_view:
            fits = not type_.dtype.is_complex
        else:
            fits = is_elementwise(node, self.graph.types)
        if fits:
            return type_.size, 0
        if node.op.traits.gather:
            return "it reads runs of elements that are too short, or from a constant"
        return "it is not elementwise and runs in a kernel of its own"

    def level_of(self, i: int | None) -> int:
        """Return the dependency level of the node that computes a value; -1 for parameters.

        A node's level is that of its fusion group, or else one more than the highest level of its
        operands.
        """
        at = None if i is None else self.producer.get(i)
        if at is None:
            return -1
        home = self.home.get(at)
        return self.level[at] if home is None else home.current().level

    def level_after(self, values: Iterable[int | None]) -> int:
        """Return the lowest dependency level of a node that reads the given values from memory.

        It is one more than the highest level of the nodes that compute them, and 0 without values.
        """
        return 1 + max((self.level_of(i) for i in values), default=-1)

    # ---- joining ------------------------------------------------------------------------------

    def join(self, at: int, node: GraphNode, n: int, row: int) -> None:
        """Add the node at position `at` to the fusion groups of its operands, or to a new group.

        If it joins several groups, they are merged. A loop over `n` elements, in rows of `row`
        elements, computes the node; `row` is 0 if the node reduces nothing.
        """
        groups, level = self.candidates(at, node, n, row)
        chosen = [g for g in groups if g.level == level]
        rows = {g.row for g in chosen if g.row} | ({row} if row else set())
        refusal = ""
        if len(rows) > 1:
            refusal = "the operands' kernels reduce rows of different lengths"
        elif sum(len(g.nodes) for g in chosen) >= self.limits.max_nodes:
            refusal = f"a kernel may have {self.limits.max_nodes} nodes"
        elif not self.can_merge(chosen, node):
            refusal = (
                "the operands' kernels run over different numbers of elements, or would read more "
                f"than {self.limits.max_pointers} values together"
            )
        if refusal:
            self.apart.update({(at, i): refusal for i in node.operands if i is not None})
            chosen = []
            level = self.level_after(i for i in node.operands if i not in self.literals)
        if not chosen:
            chosen = [Group(level, n, row)]
            self.groups += chosen
        first = chosen[0]
        for other in chosen[1:]:
            first.nodes += other.nodes
            first.row = first.row or other.row
            other.merged = first
        if rows:
            first.row = rows.pop()
        first.nodes.append(at)
        self.home[at] = first

    def candidates(self, at: int, node: GraphNode, n: int, row: int) -> tuple[list[Group], int]:
        """Return the fusion groups that a node can join, and the dependency level that it then has.

        Nodes of one group have the same level; a node that joins no group has a level above those
        of its operands. Only the groups that compute its operands are considered. A group that
        consists of a single gather, which only this node reads, is changed in place: it gets the
        node's level and number of elements. `n` is the number of elements of the node's loop, `row`
        the length of its rows (0 if the node reduces nothing).
        """
        groups: list[Group] = []
        gathers: list[Group] = []
        level = 0
        for i in node.operands:
            if i is None or i in self.literals:
                continue
            producer = self.producer.get(i)
            home = self.home[producer].current() if producer in self.home else None
            if home is None or self.reads_memory(node, i):
                if home is not None and node.op.traits.gather:
                    self.apart[at, i] = "a gather reads from memory"
                level = max(level, self.level_of(i) + 1)
            elif self.is_movable_gather(home, at) and (not row or home.n == n):
                if home not in gathers:
                    gathers.append(home)
            elif self.can_read(home, node, i, n, row):
                if home not in groups:
                    groups.append(home)
            else:
                self.apart[at, i] = (
                    f"that kernel runs over {text_of(home.n)} elements"
                    + (f" in rows of {text_of(home.row)}" if home.row else "")
                    + f", this node over {text_of(n)}"
                    + (f" in rows of {text_of(row)}" if row else "")
                )
                level = max(level, self.level_of(i) + 1)
        level = max([level, *(g.level for g in groups), *(g.level for g in gathers)])
        for g in gathers:
            g.level, g.n = level, groups[0].n if groups else n
        return groups + gathers, level

    def reads_memory(self, node: GraphNode, i: int) -> bool:
        """Return whether a node must read operand `i` from memory even if a group computes it.

        A gather must. So must a copy that `fusion_recompute` made of a node, unless the operand is
        the result of such a copy, too.
        """
        copied = not self.copies.isdisjoint(node.results)
        return node.op.traits.gather is not None or (copied and i not in self.copies)

    def is_movable_gather(self, group: Group, at: int) -> bool:
        """Return whether a group is a single gather that only the node at position `at` reads.

        Such a gather can be computed wherever that node is.
        """
        if len(group.nodes) != 1:
            return False
        node = self.graph.nodes[group.nodes[0]]
        if not node.op.traits.gather:
            return False
        (value,) = node.results
        return set(self.readers[value]) == {at} and value not in self.graph.outputs

    def can_read(self, group: Group, node: GraphNode, i: int, n: int, row: int) -> bool:
        """Return whether a node could read value `i` of a fusion group if it joined the group.

        It could if the group's loop, when it reaches the node, has computed the element or the row
        of `i` that the node reads. `n` is the number of elements of the loop that computes the
        node, `row` the length of its rows (0 if the node reduces nothing).
        """
        value = self.tensor(i)
        if row:  # a reduction reads inner values
            return group.n == n and value.size == n and group.row in (0, row) and n != n // row
        if group.n == n and value.size == n:
            return True
        if not group.row:
            return False
        if n == group.n:  # an inner value reads a row value
            read = self.tensor(node.operands[0] if node.op is reshape else node.results[0])
            return is_row_value(value.shape, read.shape, group.row)
        return n * group.row == group.n and value.size == n  # a row value reads a row value

    def can_merge(self, groups: list[Group], node: GraphNode) -> bool:
        """Return whether one kernel can compute several fusion groups and a node.

        The groups must loop over the same number of elements. All of them and the node together
        must not read more values than a kernel may have pointers.
        """
        if len({g.n for g in groups}) > 1:
            return False
        return len(self.values_read(groups).union(node.operands)) <= self.limits.max_pointers

    def values_read(self, groups: Iterable[Group]) -> set[int | None]:
        """Return the ids of all operands of the nodes in the given fusion groups."""
        nodes = [self.graph.nodes[at] for g in groups for at in g.nodes]
        return {i for node in nodes for i in node.operands}

    # ---- producers of epilogues ---------------------------------------------------------------

    def epilogue_producer(self, group: Group) -> int | None:
        """Return the position of the matmul or convolution whose epilogue a group can be, or None.

        An epilogue is elementwise code that the kernel of such an op applies to its result. The
        result must have as many elements as the group's loop, and only the group may read it. The
        group must consist of elementwise nodes alone.
        """
        nodes = self.graph.nodes
        if group.row or not self.epilogues:
            return None
        for op in [nodes[at].op for at in group.nodes]:
            if op.is_reduction or op.traits.gather or op.traits.scatter:
                return None
        found = None
        inside = set(group.nodes)
        for at in group.nodes:
            for i in nodes[at].operands:
                producer = None if i is None else self.producer.get(i)
                if i is None or producer is None or producer in inside:
                    continue
                node = nodes[producer]
                if node.op.name not in self.epilogues or self.tensor(i).size != group.n:
                    continue
                if None in node.operands or not self.literals.isdisjoint(node.operands):
                    continue
                if self.stays_inside(i, inside):
                    found = max(producer, found or 0)
        return found

    def stays_inside(self, i: int, nodes: set[int]) -> bool:
        """Return whether only the nodes at the given positions read a value and its aliases."""
        if i in self.graph.outputs:
            return False
        for at in self.readers.get(i, ()):
            node = self.graph.nodes[at]
            if at not in nodes or (node.op.alias and not self.stays_inside(node.results[0], nodes)):
                return False
        return True

    # ---- regions ------------------------------------------------------------------------------

    def used_outside(self, member: dict[int, Group]) -> set[int]:
        """Return ids of the outputs and of the values read outside the region that computes them.

        A region must return those of its own values that are among them. A node outside all regions
        counts as a region of its own. `member` maps the position of a fused node to its region.
        """
        found = set(self.graph.outputs)
        for at, node in enumerate(self.graph.nodes):
            for i in node.operands:
                producer = None if i is None else self.producer.get(i)
                if i is None or producer is None:
                    continue
                # a producer outside all regions counts as itself
                if member.get(at) is not member.get(producer, at):
                    found.add(i)
        return found

    def region(self, positions: Iterable[int], used_outside: set[int], row: int = 0) -> GraphNode:
        """Return a `region` node (one fused kernel) whose body has the graph nodes at `positions`.

        It returns the values of these nodes that are in `used_outside`; nodes not needed for these
        values are left out. Constants of equal elements are copied into the body. So are `iota`
        values (0, 1, 2, ...) that count the elements of a row, if their size is `row`, the row
        length.
        """
        nodes = [self.graph.nodes[at] for at in sorted(positions)]
        outputs = tuple([r for node in nodes for r in node.results if r in used_outside])
        nodes = live_nodes(nodes, set(outputs))
        own = {r for node in nodes for r in node.results}
        operands: list[int] = []
        literals: list[int] = []
        for node in nodes:
            for i in node.operands:
                if i is None or i in own or i in operands or i in literals:
                    continue
                counts = i in self.positions and self.tensor(i).size == row
                (literals if counts or i in self.literals else operands).append(i)
        new_ids = {i: k for k, i in enumerate(operands)}
        types: list[ValueType] = [self.graph.types[i] for i in operands]
        made: list[GraphNode] = []
        for node in [*(self.graph.nodes[self.producer[i]] for i in literals), *nodes]:
            for r in node.results:
                new_ids[r] = len(types)
                types.append(self.graph.types[r])
            ids = tuple([None if i is None else new_ids[i] for i in node.operands])
            results = tuple([new_ids[r] for r in node.results])
            made.append(dataclasses.replace(node, operands=ids, results=results))
        single = len(outputs) == 1
        body = Graph(len(operands), types, made, tuple([new_ids[r] for r in outputs]), single)
        span = nodes[-1].span
        return GraphNode(region, tuple(operands), {"body": body}, outputs, single, span)
