"""Computes cheap values again in the kernels that read them, so that memory need not hold them.

`fusion` calls `recompute` when the fusion groups (future kernels) are formed, and forms them again
on the graph that it returns. A group that reduces rows often computes a value of which it needs
each element only once, but has to write it for other kernels. Two examples from layer_norm:

The sums over columns for the gradients of gamma and beta read `cast(m)` and `mul(cast(m), norm)`,
although `m` and `norm`, with fewer bytes, are in memory. These sums get copies of the two nodes:

    %4, %5, %6 = region(%m, %norm, ...)         %6 = region(%m, %norm, ...)
    %7 = reduce_sum(%4, axis=(0,))       ->     %7, %8 = region(%m, %norm, body=graph(%0, %1) {
    %8 = reduce_sum(%5, axis=(0,))                       %2 = cast(%0)
                                                         %3 = mul(%2, %1)  ...

The region of the forward part returns `norm = mul(sub(x, mean), rstd)` for the gradient, beside
`x`, which later layers read, and `rstd`. It then returns `mean` in the place of `norm`, and each
kernel that reads `norm` gets copies of the `sub` and the `mul`.

The copies are the same ops on the same values, so their results have the same bits.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple, TypeAlias

from ..ir.graph import Graph, GraphNode
from ..ir.loops import Columns, columns_of
from .fusion_groups import Group, Grouping
from .matched_ops import absolute, add, cast, equal, maximum, minimum, mul, neg, select, square, sub

__all__ = ["Division", "recompute"]

# Ops that take a few instructions for each element.
CHEAP = frozenset({absolute, add, cast, equal, maximum, minimum, mul, neg, select, square, sub})

# A kernel that can compute copies of nodes: a fusion group, or the kernel that the copies would
# form with reductions over these columns that are in no fusion group.
Reader: TypeAlias = Group | Columns


class Division(NamedTuple):
    """A graph divided into fusion groups, sets of nodes that one kernel could compute.

    Attributes:
        grouping: the graph and all groups.
        groups: the groups that are to be fused.
    """

    grouping: Grouping
    groups: list[Group]

    @property
    def member(self) -> dict[int, Group]:
        """The group of each fused node, by the node's position."""
        return {at: g for g in self.groups for at in g.nodes}


class Use(NamedTuple):
    """A read of a fusion group's value by a node outside: (position of the node, the value)."""

    at: int
    value: int


class Copies(NamedTuple):
    """Nodes of one fusion group that another kernel is to compute again.

    Attributes:
        nodes: positions of the nodes to copy.
        leaves: values that the copies read from memory.
        uses: the reads in that kernel that get a copy of the value.
    """

    nodes: set[int]
    leaves: set[int]
    uses: list[Use]


class Plan(NamedTuple):
    """The values of one fusion group that are computed again so that the group need not write them.

    Attributes:
        dropped: the values that the group no longer writes.
        copies: the nodes to copy, one item for each kernel that reads the values.
        gain: how many bytes of memory traffic are saved.
    """

    dropped: list[int]
    copies: list[Copies]
    gain: int


class Rewritten(NamedTuple):
    """A graph with copies of nodes, and for each plan the set of ids of its copies' results."""

    graph: Graph
    copied: list[set[int]]


def recompute(division: Division, divide: Callable[[Graph, frozenset[int]], Division]) -> Division:
    """Return a `Division` like `division`, but with cheap values computed where they are read.

    A `Division` is a graph with its fusion groups (future kernels). A value that several kernels
    compute again need not be written to memory and read from there. `divide` forms the fusion
    groups of a graph; its second argument is the set of values that are results of copied nodes.
    Reductions over columns come first, because otherwise each reduction is one more kernel that
    reads values of other groups from memory.
    """
    refused: set[int] = set()
    for columns_only in (True, False):
        while plans := _plans(division, columns_only, refused):
            rewritten = _rewrite(division.grouping, plans)
            made = divide(rewritten.graph, division.grouping.copies.union(*rewritten.copied))
            outside = made.grouping.used_outside(made.member)
            failed = [
                plan
                for plan, copied in zip(plans, rewritten.copied)
                if not outside.isdisjoint(copied.union(plan.dropped))
            ]
            if failed:  # the new grouping differs from the plan
                refused.update(i for plan in failed for i in plan.dropped)
            else:
                division = made
    return division


# ---- planning -----------------------------------------------------------------------------------


def _plans(division: Division, columns_only: bool, refused: Collection[int]) -> list[Plan]:
    """Return, for all fusion groups that reduce rows, which values to compute again.

    No plan reads a value from memory that another plan drops. With `columns_only`, only reductions
    over columns compute values again. The values in `refused` stay in memory.
    """
    found: list[Plan] = []
    member = division.member
    outside = division.grouping.used_outside(member)
    kept = set(refused)
    for group in sorted(division.groups, key=lambda g: -g.level):
        if group.row:
            plan = _Planner(division.grouping, member, outside, group, columns_only).plan(kept)
            if plan is not None:
                found.append(plan)
                kept.update(i for copies in plan.copies for i in copies.leaves)
    return found


class _Planner:
    """Decides which values of one fusion group other kernels compute again.

    Attributes:
        own: value of the group -> position of the node that computes it.
        uses: value that must be in memory now -> the reads of it outside the group. An alias, such
            as a reshape, counts as the value whose memory it uses.
        readers: value in memory -> the kernels that read it, with their reads; None if one of these
            kernels can compute nothing again.
    """

    def __init__(
        self,
        grouping: Grouping,
        member: dict[int, Group],
        outside: set[int],
        group: Group,
        columns_only: bool,
    ) -> None:
        self.grouping = grouping
        self.graph = grouping.graph
        self.member = member
        self.group = group
        self.columns_only = columns_only
        self.own = {r: at for at in group.nodes for r in self.graph.nodes[at].results}
        self.uses: dict[int, list[Use]] = {}
        for value in sorted(outside.intersection(self.own)):
            reads = self.uses.setdefault(self.memory_of(value), [])
            for at in dict.fromkeys(grouping.readers.get(value, ())):
                if member.get(at) is not group:
                    reads.append(Use(at, value))
        self.readers = {i: self.readers_of(i) for i in self.uses}

    def memory_of(self, value: int) -> int:
        """Return the value in whose memory a value lies: itself or, for an alias, its operand's."""
        at = self.own.get(value)
        while at is not None and self.graph.nodes[at].op.alias:
            value = self.graph.nodes[at].operands[0] or 0
            at = self.own.get(value)
        return value

    def readers_of(self, value: int) -> dict[Reader, list[Use]] | None:
        """Return the kernels that read a value of this planner's group, with their reads.

        Only kernels outside the group count, each of which could recompute the value instead of
        reading it. Returns None if one of them cannot, so that the value must be in memory. With
        `columns_only`, recomputation is limited to column reductions: the result is None unless
        the only reader is a kernel of such reductions.
        """
        found: dict[Reader, list[Use]] = {}
        for use in self.uses[value]:
            reader = self.reader_at(use)
            if reader is None:
                return None
            found.setdefault(reader, []).append(use)
        if self.columns_only and (len(found) != 1 or not isinstance(next(iter(found)), Columns)):
            return None
        return found

    def reader_at(self, use: Use) -> Reader | None:
        """Return the kernel that makes a read, or None if it could not compute the value itself."""
        node = self.graph.nodes[use.at]
        group = self.member.get(use.at)
        if group is None:
            return self.columns_at(use)
        if group.n != self.group.n or node.op.traits.gather or node.op.traits.scatter:
            return None
        names = {self.graph.nodes[at].op.name for at in group.nodes}
        return group if names.isdisjoint(self.grouping.epilogues) else None

    def columns_at(self, use: Use) -> Columns | None:
        """Return the columns over which the node that makes a read reduces, or None.

        `use` is the read. The result is None if the node is no reduction, is in a fusion group, or
        reduces columns that are too narrow for a kernel; see `ir.loops.Columns`.
        """
        node = self.graph.nodes[use.at]
        if not node.op.is_reduction or use.at in self.member:
            return None
        columns = columns_of(node, self.grouping.tensor(use.value))
        wide = columns is not None and columns.width >= self.grouping.limits.min_width
        return columns if wide else None

    def plan(self, kept: Collection[int]) -> Plan | None:
        """Return which values to compute again, or None if that would not save memory traffic.

        The values in `kept`, and those in the same memory, stay in memory.
        """
        stays = {self.memory_of(i) for i in self.own if i in self.graph.outputs or i in kept}
        dropped = [
            i
            for i, readers in self.readers.items()
            if readers and i in self.own and i not in stays and self.is_full(i)
        ]
        best: Plan | None = None
        while dropped:
            dropped = self.computable(dropped)
            plan = self.plan_of(dropped)
            if plan.gain > 0 and (best is None or plan.gain >= best.gain):
                best = plan
            rest = [[i for i in dropped if i != out] for out in dropped]
            dropped = max(rest, key=lambda some: self.plan_of(some).gain, default=[])
        return best

    def is_full(self, value: int) -> bool:
        """Return whether a value has one element for each step of the group's loop."""
        return self.grouping.tensor(value).size == self.group.n

    def computable(self, dropped: list[int]) -> list[int]:
        """Return the subset of `dropped` that can be computed again if none of them is in memory.

        A value that cannot be computed again is left in memory, where later values can read it.
        """
        left = sorted(dropped, key=lambda i: self.own[i])
        while True:
            bad = next((i for i in left if self.copies_of(i, left) is None), None)
            if bad is None:
                return left
            left.remove(bad)

    def copies_of(self, value: int, dropped: Collection[int]) -> dict[Reader, Copies] | None:
        """Return the copies that each kernel needs if value `value` is not in memory, or None.

        The result is None if the copies would cost too many instructions, or keep more bytes alive
        than the value has. `dropped` are all values that are not in memory.
        """
        found: dict[Reader, Copies] = {}
        for reader, uses in (self.readers[value] or {}).items():
            copies = Copies(set(), set(), uses)
            if not all(self.trace(use.value, dropped, copies) for use in uses):
                return None
            found[reader] = copies
            computed = [at for at in copies.nodes if not self.graph.nodes[at].op.is_view]
            if len(computed) > self.grouping.limits.max_recomputed:
                return None
            alive = [i for i in copies.leaves if i >= self.graph.n_params and self.is_full(i)]
            if not self.columns_only and self.bytes_of(alive) > self.bytes_of([value]):
                return None
        return found

    def trace(self, value: int, dropped: Collection[int], copies: Copies) -> bool:
        """Add to `copies` the nodes that compute a value from values in memory.

        `dropped` are the values that are not in memory. Returns False if the nodes are not cheap to
        compute again.
        """
        at = self.own.get(value)
        if value in self.grouping.literals or at in copies.nodes:
            return True
        if at is None or not self.is_full(value):  # an operand of the group, or a row value
            copies.leaves.add(value)
            return True
        if value in self.uses and value not in dropped and self.memory_of(value) == value:
            copies.leaves.add(value)
            return True
        node = self.graph.nodes[at]
        if node.op not in CHEAP and not node.op.is_view:
            return False
        copies.nodes.add(at)
        return all(self.trace(i, dropped, copies) for i in node.operands if i is not None)

    def plan_of(self, dropped: list[int]) -> Plan:
        """Return the plan that drops the given values, all of which can be computed again."""
        merged: dict[Reader, Copies] = {}
        for value in dropped:
            for reader, copies in (self.copies_of(value, dropped) or {}).items():
                other = merged.setdefault(reader, Copies(set(), set(), []))
                other.nodes.update(copies.nodes)
                other.leaves.update(copies.leaves)
                other.uses.extend(copies.uses)
        saved = self.bytes_of(dropped)  # these are no longer written
        returned = set()
        for reader, copies in merged.items():
            read = set(copies.leaves)
            if isinstance(reader, Group):
                saved += self.bytes_of({self.memory_of(use.value) for use in copies.uses})
                read -= self.grouping.values_read([reader])
            else:  # each reduction was a kernel of its own
                copies.uses.extend(self.joining(reader, copies))
                saved += self.bytes_of(use.value for use in copies.uses)
            saved -= self.bytes_of(read)
            returned |= {
                i for i in copies.leaves if i in self.own and self.memory_of(i) not in self.uses
            }
        return Plan(dropped, list(merged.values()), saved - self.bytes_of(returned))

    def joining(self, columns: Columns, copies: Copies) -> list[Use]:
        """Return more reductions over the same columns that can join the kernel of some copies.

        They read a value that the copies also read from memory, or an alias of it. Adds the nodes
        of such aliases to the copies.
        """
        level = self.grouping.level_after(copies.leaves)
        found = []
        aliases = [i for i in self.own if self.memory_of(i) in copies.leaves and self.is_full(i)]
        for i in sorted(copies.leaves.union(aliases)):
            for at in dict.fromkeys(self.grouping.readers.get(i, ())):
                use = Use(at, i)
                if self.columns_at(use) == columns and self.grouping.level[at] >= level:
                    self.trace(i, (), copies)
                    found.append(use)
        return found

    def bytes_of(self, values: Iterable[int]) -> int:
        return sum(self.grouping.tensor(i).nbytes for i in values)


# ---- rewriting ----------------------------------------------------------------------------------


def _rewrite(grouping: Grouping, plans: Sequence[Plan]) -> Rewritten:
    """Return the graph with the copies of some plans, each after the node that it copies.

    A node is left out if only its copies are needed. All values keep their ids.
    """
    graph = grouping.graph
    types = list(graph.types)
    after: dict[int, list[GraphNode]] = {}
    renamed: dict[tuple[int, int | None], int] = {}
    copied: list[set[int]] = []
    for plan in plans:
        copied.append(set())
        for copies in plan.copies:
            ids: dict[int | None, int] = {}
            for at in sorted(copies.nodes):
                node = graph.nodes[at]
                operands = tuple([ids.get(i, i) for i in node.operands])
                ids[node.results[0]] = len(types)
                types.append(graph.types[node.results[0]])
                node = dataclasses.replace(node, operands=operands, results=(len(types) - 1,))
                after.setdefault(at, []).append(node)
            copied[-1].update(ids.values())
            renamed.update({use: ids.get(use.value, use.value) for use in copies.uses})
    nodes: list[GraphNode] = []
    for at, node in enumerate(graph.nodes):
        operands = tuple([renamed.get((at, i), i) for i in node.operands])
        if operands != node.operands:
            node = dataclasses.replace(node, operands=operands)
        nodes += [node, *after.get(at, ())]
    originals = {graph.nodes[at].results[0] for at in after}
    nodes = _without_unread(nodes, originals.difference(graph.outputs))
    return Rewritten(Graph(graph.n_params, types, nodes, graph.outputs, graph.single), copied)


def _without_unread(nodes: list[GraphNode], values: Collection[int]) -> list[GraphNode]:
    """Return the nodes except those whose first result is in `values` and is read by no kept node.

    `nodes` are in program order, and so is the result.
    """
    read: set[int | None] = set()
    kept: list[GraphNode] = []
    for node in reversed(nodes):
        if node.results and node.results[0] in values and node.results[0] not in read:
            continue
        kept.append(node)
        read.update(node.operands)
    kept.reverse()
    return kept
