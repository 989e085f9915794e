"""Resharding: inserts slices and collectives that change the layout of a value.

A value is sharded along some mesh axes, a partial sum along others, and replicated along the rest.
Slices come first, because they need no communication; then reduce-scatter and all-reduce, then
all-to-all, and all-gather for the mesh axes that remain.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..ir.basic_ops import fill
from ..ops.collective_primitives import all_gather, all_reduce, all_to_all, reduce_scatter
from ..ops.movement import slice_by
from ..ops.shape_primitives import reshape_to, transpose_by
from ..ranks.world import World
from .layouts import Axes, Axis, Mesh
from .propagation import Dims

if TYPE_CHECKING:
    from ..tensor import Tensor

__all__ = ["Communication", "Redistributor", "State"]


@dataclasses.dataclass(frozen=True)
class State:
    """The layout of a value: the mesh axes that shard its axes, and those of partial sums.

    The value is a partial sum along the mesh axes in `partial`.
    """

    dims: Dims
    partial: frozenset[Axis] = frozenset()

    @property
    def used(self) -> set[Axis]:
        """All mesh axes that shard some axis of the value."""
        return {a for axes in self.dims for a in axes}

    def divided(self, i: int, axes: Axes) -> State:
        """Return this layout with axis `i` of the tensor sharded by `axes` instead."""
        return dataclasses.replace(self, dims=(*self.dims[:i], axes, *self.dims[i + 1 :]))


@dataclasses.dataclass(frozen=True)
class Communication:
    """One collective that a redistribution inserted.

    Attributes:
        kind: name of the op.
        axes: names of the mesh axes.
        nbytes: number of bytes that a rank sends with a ring algorithm.
        why: name of the op that needs the value, or "a result".
        place: " at FILE:LINE" of the user's source, or "".
    """

    kind: str
    axes: str
    nbytes: int
    why: str
    place: str


class Redistributor:
    """Inserts redistributions into the graph that is being built, for one rank of the mesh.

    Attributes:
        found: the collectives inserted so far.
        why, place: recorded with the collectives of the next redistributions (see `Communication`).
    """

    def __init__(self, mesh: Mesh, world: World) -> None:
        self.mesh, self.world = mesh, world
        self.found: list[Communication] = []
        self.why = self.place = ""

    def change(self, x: Tensor, have: State, want: State) -> Tensor:
        """Redistribute the graph value `x` from layout `have` to layout `want`.

        Return the new value.
        """
        more = want.partial - have.partial
        whole = dataclasses.replace(want, partial=want.partial - more)
        x, have = self._sliced(x, have, whole)
        x, have = self._summed(x, have, whole)
        x, have = self._exchanged(x, have, whole)
        x, have = self._gathered(x, have, whole)
        x, have = self._sliced(x, have, whole)
        assert have == whole, (have, want)
        # replicated to partial: only the first rank keeps the value, the others have zeros
        if any(self.mesh.coordinate(axis, self.world.rank) for axis in more):
            x = fill(shape=x.shape, value=0, dtype=x.dtype)
        return x

    # ---- steps -----------------------------------------------------------------------------------

    def _sliced(self, x: Tensor, have: State, want: State) -> tuple[Tensor, State]:
        """Slice out this rank's shard along mesh axes along which the value is replicated.

        This method, `_summed`, `_exchanged` and `_gathered` are the steps of a redistribution of
        `x` from layout `have` to `want`. Each returns the new value and its layout.
        """
        for i, axes in enumerate(want.dims):
            now = have.dims[i]
            while len(now) < len(axes) and axes[: len(now)] == now:
                axis = axes[len(now)]
                if axis in have.used or axis in have.partial:
                    break
                length = x.shape[i] // axis.size
                begin = self.mesh.coordinate(axis, self.world.rank) * length
                low, high = [0] * x.ndim, list(x.shape)
                low[i], high[i] = begin, begin + length
                x = slice_by(x, tuple(low), tuple(high), (1,) * x.ndim)
                now = (*now, axis)
                have = have.divided(i, now)
        return x, have

    def _summed(self, x: Tensor, have: State, want: State) -> tuple[Tensor, State]:
        """Complete the partial sums that `want` does not have, by reduce-scatter or all-reduce.

        A reduce-scatter is used for a mesh axis that shards the value in layout `want`. Returns the
        new value and its layout.
        """
        left = have.partial - want.partial
        for i, axes in enumerate(want.dims):
            now = have.dims[i]
            while len(now) < len(axes) and axes[: len(now)] == now and axes[len(now)] in left:
                axis = axes[len(now)]
                group = self._group((axis,), "reduce_scatter", x, (axis.size - 1) / axis.size)
                x = _in_front(x, i, lambda v: reduce_scatter(v, "sum", group, axis.size))  # noqa: B023
                left -= {axis}
                now = (*now, axis)
                have = dataclasses.replace(have.divided(i, now), partial=have.partial - {axis})
        if left:
            x = self.reduced(x, tuple(sorted(left, reverse=True)), "sum")
            have = dataclasses.replace(have, partial=have.partial - left)
        return x, have

    def reduced(self, x: Tensor, axes: Axes, reduction: str) -> Tensor:
        """All-reduce a value along mesh axes by `reduction` ("sum", ...); return the new value."""
        size = math.prod(a.size for a in axes)
        group = self._group(axes, "all_reduce", x, 2 * (size - 1) / size)
        (x,) = all_reduce([x], reduction, group, size)
        return x

    def _exchanged(self, x: Tensor, have: State, want: State) -> tuple[Tensor, State]:
        """Move a mesh axis that shards one axis of the tensor to another axis, by an all-to-all.

        This brings `x` closer from layout `have` to layout `want`. Returns the new value and its
        layout.
        """
        for i, axes in enumerate(want.dims):
            now = have.dims[i]
            if len(now) < len(axes) and axes[: len(now)] == now:
                axis = axes[len(now)]
                for j, others in enumerate(have.dims):
                    if others and others[-1] == axis and want.dims[j][: len(others)] != others:
                        x = self._exchange(x, i, j, axis)
                        have = have.divided(j, others[:-1]).divided(i, (*now, axis))
                        break
        return x, have

    def _exchange(self, x: Tensor, split: int, join: int, axis: Axis) -> Tensor:
        n = axis.size
        group = self._group((axis,), "all_to_all", x, (n - 1) / n)
        shape = list(x.shape)
        shape[split : split + 1] = [n, shape[split] // n]
        x = reshape_to(x, tuple(shape))
        x = transpose_by(x, (split, *(k for k in range(len(shape)) if k != split)))
        x = all_to_all(x, (1,) * n, (1,) * n, group)
        shape = list(x.shape)[1:]
        order = [*range(1, len(shape) + 1)]
        order.insert(join, 0)
        x = transpose_by(x, tuple(order))
        shape[join] *= n
        return reshape_to(x, tuple(shape))

    def _gathered(self, x: Tensor, have: State, want: State) -> tuple[Tensor, State]:
        """All-gather the shards along mesh axes that do not shard the value in layout `want`.

        `have` is the layout of `x`. Returns the new value and its layout.
        """
        for i, axes in enumerate(have.dims):
            wanted = want.dims[i]
            same = 0
            while same < min(len(axes), len(wanted)) and axes[same] == wanted[same]:
                same += 1
            for run in reversed(_runs(axes[same:])):
                size = math.prod(a.size for a in run)
                group = self._group(run, "all_gather", x, size - 1)
                x = _in_front(x, i, lambda v: all_gather(v, group, size))  # noqa: B023
            have = have.divided(i, axes[:same])
        return x, have

    # ---- groups ----------------------------------------------------------------------------------

    def _group(self, axes: Axes, kind: str, x: Tensor, share: float) -> str:
        """Return the name of the group of ranks along mesh axes.

        Also record in `found` that a collective of this group, the op `kind`, will be appended for
        the value `x`. `share` is the number of bytes that a rank sends, per byte of `x`.
        """
        names = ", ".join(map(self.mesh.name, axes))
        sent = round(x._type.nbytes * share)
        self.found.append(Communication(kind, names, sent, self.why, self.place))
        return self.world.group_of(self.mesh.group(axes, self.world.rank))


def _runs(axes: Axes) -> list[Axes]:
    """Split a sequence of mesh axes into the longest runs in which the strides decrease.

    A group of ranks along such a run is ordered by rank in the same way as the shards are.
    """
    runs: list[Axes] = []
    for axis in axes:
        if runs and runs[-1][-1].stride > axis.stride:
            runs[-1] = (*runs[-1], axis)
        else:
            runs.append((axis,))
    return runs


def _in_front(x: Tensor, i: int, call: Callable[[Tensor], Tensor]) -> Tensor:
    """Apply a collective that works along axis 0 along axis `i` of x; return the result.

    Axis `i` is moved to the front before `call`, the collective, and back after it.
    """
    if i == 0:
        return call(x)
    order = (i, *(k for k in range(x.ndim) if k != i))
    back = tuple(order.index(k) for k in range(x.ndim))
    return transpose_by(call(transpose_by(x, order)), back)
