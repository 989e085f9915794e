"""The part of `explain`, the report on a compiled function, that describes its partitioning."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .layouts import Mesh
from .propagation import Dims

if TYPE_CHECKING:
    from .partition import Divided

__all__ = ["report"]


def report(divided: Divided, names: Sequence[str]) -> tuple[str, ...]:
    """Return lines on the layouts, the collectives, and the ops that run on global tensors.

    Args:
        divided: the partitioned program.
        names: the names of its inputs.
    """
    mesh = divided.mesh
    axes = " x ".join(f"{mesh.name(a)}={a.size}" for a in mesh.axes)
    lines = [] if divided.stages is None else list(divided.stages.report())
    if len(mesh.ranks) == 1:
        return tuple(lines)
    lines += [f"divided among {len(mesh.ranks)} ranks, {axes}:"]
    for name, shape, dims in zip(names, divided.shapes, divided.inputs, strict=True):
        if shape is not None:
            lines.append(f"  {name}: {layout_text(mesh, shape, dims)}")
    counts: dict[tuple[str, str], list[int]] = collections.defaultdict(list)
    for each in divided.communications:
        counts[each.kind, each.axes].append(each.nbytes)
    total = sum(each.nbytes for each in divided.communications)
    lines.append(f"communicates {total} bytes per rank and call:")
    for (kind, along), sizes in counts.items():
        lines.append(f"  {len(sizes)} {kind} along {along}: {sum(sizes)} bytes")
    places = collections.Counter(
        (f"{c.kind} along {c.axes} for {c.why}{c.place}", c.nbytes) for c in divided.communications
    )
    for (text, nbytes), count in places.items():
        lines.append(f"  {text}: {nbytes} bytes" + (f", {count} times" if count > 1 else ""))
    if divided.whole:
        lines.append("on whole tensors, because there is no index equation:")
        lines += [f"  {op}" for op in divided.whole]
    return tuple(lines)


def layout_text(mesh: Mesh, shape: Sequence[int], dims: Dims) -> str:
    """Return a global shape with the names of its mesh axes, such as ``(16/mp, 8)``.

    ``16/mp`` is an axis of global size 16 that the mesh axis mp shards. `dims` has the mesh axes
    that shard each axis.
    """
    items = [
        f"{n}/{'/'.join(map(mesh.name, axes))}" if axes else str(n)
        for n, axes in zip(shape, dims, strict=True)
    ]
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
