"""Merges a fusion group into the only group that reads it; the pass `fusion` calls it.

Groups are formed in program order, and a node joins the groups of its operands only on its own
dependency level. Nodes that depend on parameters alone therefore start a new group, long before
their result is needed. Examples are the decayed moment of an optimiser, which is added to the
gradient later, or the comparison of labels with positions, which is combined with the logits. If
only one other group reads such a group, one kernel computes both, and the values between them never
reach memory.

A group with reductions is merged only into a group with the same row length. A group without
reductions may also be merged into a group that becomes the epilogue of a matmul.
"""

from __future__ import annotations

from .fusion_groups import Group, Grouping

__all__ = ["merge_into_readers"]


def merge_into_readers(grouping: Grouping) -> None:
    """Merge each fusion group that only one other group reads into that group, if possible.

    Groups of later dependency levels come first, so that chains of groups become one group.
    """
    groups = [g for g in grouping.groups if g.merged is None]
    # last groups first, so that a chain becomes one
    for group in sorted(groups, key=lambda g: -g.level):
        reader = _only_reader(grouping, group)
        if reader is not None and _fits(grouping, group, reader):
            reader.nodes += group.nodes
            group.merged = reader


def _only_reader(grouping: Grouping, group: Group) -> Group | None:
    """Return the only other fusion group that reads this group's values, or None.

    The result is None if nothing reads them, or if several groups, a node outside all groups or the
    graph's outputs do.
    """
    found: Group | None = None
    for at in group.nodes:
        for value in grouping.graph.nodes[at].results:
            if value in grouping.graph.outputs:
                return None
            for k in grouping.readers.get(value, ()):
                home = grouping.home.get(k)
                home = None if home is None else home.current()
                if home is group:
                    continue
                if home is None or found not in (None, home):
                    return None
                found = home
    return found


def _fits(grouping: Grouping, group: Group, reader: Group) -> bool:
    """Return whether the kernel of the fusion group `reader` can also compute the group `group`.

    Both groups must loop over the same number of elements, and the kernel must stay within the
    backend's limits.
    """
    if group.n != reader.n or group.row not in (0, reader.row):
        return False
    if len(group.nodes) + len(reader.nodes) > grouping.limits.max_nodes:
        return False
    if len(grouping.values_read([group, reader])) > grouping.limits.max_pointers:
        return False
    inside = {v for at in group.nodes for v in grouping.graph.nodes[at].results}
    for at in reader.nodes:
        node = grouping.graph.nodes[at]
        for i in inside.intersection(node.operands):
            shape = grouping.loop_of(node)
            if shape is None or not grouping.can_read(reader, node, i, *shape):
                return False
    return True
