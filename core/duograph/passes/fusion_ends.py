"""Adds column reductions and scatters to the ends of fusion groups, which become kernels.

`fusion` calls `add_column_ends` after the groups of elementwise ops and of row reductions are
formed. A column reduction reduces axes before the last. A column reduction or scatter must be at
the end of its group: no other node of the group may read its result, which is complete only after
the last row.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..ir.graph import Graph
from ..ir.loops import Columns, columns_of, fits_column_loop, scatter_columns
from .fusion_groups import Group, Grouping

__all__ = ["add_column_ends"]


def add_column_ends(grouping: Grouping) -> None:
    """Add column reductions and scatters to the fusion groups that can end in them.

    A column reduction reduces axes before the last. It is added to a group that computes or reads
    its operand. Groups that then end in the same columns and read a common operand are merged.
    """
    ends: dict[tuple[int, Columns], list[Group]] = {}
    for group in grouping.groups:
        if group.merged or group.row or grouping.epilogue_producer(group) is not None:
            continue
        found = _reductions_near(grouping, group)
        for columns in sorted(found, key=lambda c: -len(found[c])):
            if _fits(grouping, [*group.nodes, *found[columns]]):
                group.nodes += found[columns]
                grouping.home.update(dict.fromkeys(found[columns], group))
                ends.setdefault((group.level, columns), []).append(group)
                break
    _add_scatters(grouping)
    for same in ends.values():
        for k, group in enumerate(same):
            for other in same[:k]:
                if (
                    other.merged is None
                    and _share_operand(grouping, group, other)
                    and _fits(grouping, group.nodes + other.nodes)
                ):
                    group.nodes += other.nodes
                    other.merged = group


def _reductions_near(grouping: Grouping, group: Group) -> dict[Columns, list[int]]:
    """Return the column reductions that could be added to a fusion group.

    These are reductions over axes before the last whose operand the group computes or reads. The
    result maps a description of the columns to the positions of the nodes that reduce them.
    """
    graph = grouping.graph
    found: dict[Columns, list[int]] = {}
    near: set[int | None] = set()
    for at in group.nodes:
        near.update(graph.nodes[at].results, graph.nodes[at].operands)
    for value in sorted(i for i in near if i is not None and i not in grouping.literals):
        for at in dict.fromkeys(grouping.readers.get(value, ())):
            node = graph.nodes[at]
            if at in grouping.home or not node.op.is_reduction:
                continue
            type_ = grouping.tensor(value)
            # at a lower level, the group may need the result
            if type_.size != group.n or grouping.level[at] < group.level:
                continue
            if {type_.dtype.kind, grouping.tensor(node.results[0]).dtype.kind} & set("bc"):
                continue
            columns = columns_of(node, type_)
            if columns is not None and columns.width >= grouping.limits.min_width:
                found.setdefault(columns, []).append(at)
    return found


def _add_scatters(grouping: Grouping) -> None:
    """Add scatters to the fusion groups that compute their updates and do not end in a reduction.

    A scatter into a tensor of equal elements may also form a new group, which saves the kernel that
    fills that tensor.
    """
    for at, node in enumerate(grouping.graph.nodes):
        if not node.op.traits.scatter or None in node.operands or not node.single:
            continue
        target, indices, updates = node.operands
        into, values = grouping.tensor(target), grouping.tensor(updates)
        columns = scatter_columns(node, into, grouping.tensor(indices))
        if columns.width < grouping.limits.min_width or into.dtype.is_complex or not values.size:
            continue
        if indices in grouping.literals or updates in grouping.literals:
            continue
        producer = grouping.producer.get(updates or 0)
        home = grouping.home[producer].current() if producer in grouping.home else None
        waits = max(
            -1 if i in grouping.literals else grouping.level_of(i) for i in (target, indices)
        )
        if home is not None and _can_end_in_scatter(grouping, home, waits, at):
            home.nodes.append(at)
            grouping.home[at] = home
        elif target in grouping.literals and _fits(grouping, [at]):
            made = Group(grouping.level[at], values.size)
            made.nodes.append(at)
            grouping.groups.append(made)
            grouping.home[at] = made


def _can_end_in_scatter(grouping: Grouping, group: Group, waits: int, at: int) -> bool:
    """Return whether a fusion group can end in the scatter node at position `at`.

    `waits` is the dependency level at which the scatter's target and indices are computed. It must
    be lower than the group's level, because a group can read only what groups of lower levels have
    computed. The group must contain no scatter or reduction, must not be able to become the
    epilogue of a matmul or convolution, and must fit into one loop nest over columns with the
    scatter.
    """
    if group.row or waits >= group.level or grouping.epilogue_producer(group) is not None:
        return False
    ops = {grouping.graph.nodes[k].op for k in group.nodes}
    if any(op.traits.scatter or op.is_reduction for op in ops):
        return False
    return _fits(grouping, [*group.nodes, at])


def _fits(grouping: Grouping, positions: list[int]) -> bool:
    """Return whether one loop nest over columns can compute the nodes at `positions`.

    They must also read no more values than the backend allows a kernel to have pointers.
    """
    results = {r for at in positions for r in grouping.graph.nodes[at].results}
    body: Graph = grouping.region(positions, results).attributes["body"]
    return body.n_params <= grouping.limits.max_pointers and fits_column_loop(body)


def _share_operand(grouping: Grouping, a: Group, b: Group) -> bool:
    """Return whether two fusion groups read a common value.

    Constants of equal elements do not count, since kernels contain them as numbers.
    """

    def read(positions: Iterable[int]) -> set[int | None]:
        operands = {i for at in positions for i in grouping.graph.nodes[at].operands}
        return operands - grouping.literals

    return not read(a.nodes).isdisjoint(read(b.nodes))
