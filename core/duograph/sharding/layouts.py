"""Sharding specifications: `Layout` and strategies of users, and `Placement`, the internal form.

A mesh axis is written as (stride, size): `size` ranks whose positions are `stride` apart. Layouts
of different device matrices can then be compared; for example, the axes of (2, 4) refine the axis
of (8,). Axes of size 1 shard nothing and are left out.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..errors import ArgumentError, ArgumentValueError, ShapeError

__all__ = [
    "Axes",
    "Axis",
    "Layout",
    "Mesh",
    "Placement",
    "check_divisible",
    "StagePlacement",
    "placement_of",
    "placements_of",
]


class Axis(NamedTuple):
    """A mesh axis: `size` ranks whose positions in the mesh are `stride` apart."""

    stride: int
    size: int


Axes = tuple[Axis, ...]


@dataclasses.dataclass(frozen=True)
class Placement:
    """The sharding of a tensor over a mesh of ranks.

    Attributes:
        dims: for each axis of the tensor the mesh axes that shard it, the slowest first.
        ranks: the rank at each position of the mesh.
        names: pairs of a mesh axis and its name, for messages.
    """

    dims: tuple[Axes, ...]
    ranks: tuple[int, ...]
    names: tuple[tuple[Axis, str], ...] = ()

    @property
    def elsewhere(self) -> int | None:
        """The pipeline stage that has the tensor, if this rank has nothing of it; else None."""
        return None

    def whole_shape(self, local: Sequence[int]) -> tuple[int, ...]:
        """Return the global shape of a tensor from the shape of its local shards."""
        return tuple(n * _count(axes) for n, axes in zip(local, self.dims, strict=True))

    def local_shape(self, whole: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of a local shard of a tensor with global shape `whole`."""
        return tuple(n // _count(axes) for n, axes in zip(whole, self.dims, strict=True))

    def part(self, whole: Sequence[int], rank: int) -> tuple[slice, ...]:
        """Return the slices of a global tensor of shape `whole` that select the shard of a rank."""
        at = self.ranks.index(rank)
        found = []
        for n, axes in zip(whole, self.dims, strict=True):
            index = 0
            for axis in axes:
                index = index * axis.size + at // axis.stride % axis.size
            length = n // _count(axes)
            found.append(slice(index * length, (index + 1) * length))
        return tuple(found)


@dataclasses.dataclass(frozen=True)
class StagePlacement(Placement):
    """The placement of a Parameter that belongs to one stage of a pipeline.

    The ranks of the stage hold it, replicated or in shards; on all other ranks it is empty.

    Attributes:
        shape: the global shape.
        stage: the number of the stage.
        here: whether this rank is one of the stage.
        everyone: all ranks of the pipeline.
    """

    shape: tuple[int, ...] = ()
    stage: int = 0
    here: bool = True
    everyone: tuple[int, ...] = ()

    @property
    def elsewhere(self) -> int | None:
        """The stage that has the tensor, if it is not this rank's; else None."""
        return None if self.here else self.stage

    def whole_shape(self, local: Sequence[int]) -> tuple[int, ...]:
        """Return the global shape."""
        return self.shape

    def local_shape(self, whole: Sequence[int]) -> tuple[int, ...]:
        """Return the shape on this rank."""
        return super().local_shape(whole) if self.here else (0, *whole[1:])

    def part(self, whole: Sequence[int], rank: int) -> tuple[slice, ...]:
        """Return the index of what rank `rank` holds of a global tensor of shape `whole`.

        A rank of another stage holds nothing: its index is an empty slice, or False for a 0-d
        tensor, which has no axis to slice.
        """
        if rank in self.ranks:
            return super().part(whole, rank)
        return (slice(0, 0),) if whole else (False,)  # type: ignore[return-value]


def _count(axes: Axes) -> int:
    return math.prod(a.size for a in axes)


class Layout:
    """The sharding of a tensor over a mesh of ranks (`mindspore.parallel.Layout`).

    Args:
        device_matrix: sizes of the mesh axes, such as ``(2, 4)``. Rank numbers grow fastest
            along the last axis.
        alias_name: a name for each mesh axis.
        rank_list: the ranks in row-major order of the mesh; default 0, 1, ...

    A Layout is called with one name, tuple of names or ``"None"`` per axis of a tensor, and then
    returns the layout of that tensor. ``"None"`` leaves the axis unsharded. A name may be used
    once; the tensor is replicated along mesh axes that are not used.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: the numbers of names and sizes differ; a name is empty, ``"None"`` or given
            twice; in a call, a name is unknown or used twice.

    Examples:
        >>> from duograph.parallel import Layout
        >>> layout = Layout((2, 2), ("dp", "mp"))
        >>> layout("dp", "mp").to_dict()["tensor_map"]
        (1, 0)
    """

    def __init__(
        self,
        device_matrix: tuple[int, ...],
        alias_name: tuple[str, ...],
        rank_list: list[int] | None = None,
    ) -> None:
        _check_mesh(device_matrix, alias_name)
        size = math.prod(device_matrix)
        if rank_list is not None:
            if not isinstance(rank_list, list) or not all(type(r) is int for r in rank_list):
                raise ArgumentError(f"Layout: got rank_list={rank_list!r}; wanted a list of ints")
            if len(set(rank_list)) != size:
                raise ArgumentValueError(
                    f"Layout: got rank_list={rank_list}; wanted {size} different ranks, the "
                    f"product of device_matrix={device_matrix}"
                )
        self._sizes, self._names = device_matrix, alias_name
        self._ranks = tuple(range(size)) if rank_list is None else tuple(rank_list)
        self._map: tuple[str | tuple[str, ...], ...] | None = None

    def __call__(self, *tensor_map: str | tuple[str, ...]) -> Layout:
        """Return this layout with `tensor_map`, the sharding of a tensor's axes.

        Argument number i is the name of the mesh axis that shards axis i of the tensor, a tuple of
        such names, or ``"None"`` for an axis that is not sharded.

        Raises:
            ValueError: a name is unknown or occurs twice.
        """
        used: set[str] = set()
        for entry in tensor_map:
            for name in entry if isinstance(entry, tuple) else (entry,):
                if name == "None":
                    continue
                if name not in self._names:
                    raise ArgumentValueError(
                        f"Layout: got the axis {name!r}; wanted one of "
                        f"{', '.join(map(repr, self._names))} or 'None'"
                    )
                if name in used:
                    raise ArgumentValueError(
                        f"Layout: got the axis {name!r} twice in {tensor_map}; wanted it once"
                    )
                used.add(name)
        made = Layout(self._sizes, self._names, list(self._ranks))
        made._map = tensor_map
        return made

    def to_dict(self) -> dict[str, object]:
        """Return the layout as a dict with MindSpore's keys, such as ``device_matrix``.

        ``tensor_map`` has a number for each axis of the tensor: 0 for the last mesh axis, 1 for the
        one before it, and so on; -1 means that the axis is not sharded.

        Raises:
            ValueError: the layout was not called with the axes of a tensor.
        """
        if self._map is None:
            raise ArgumentValueError(
                "Layout: no tensor axes yet; call it, as in layout('dp', 'mp')"
            )

        def number(name: str) -> int:
            return -1 if name == "None" else len(self._names) - 1 - self._names.index(name)

        return {
            "device_matrix": self._sizes,
            "tensor_map": tuple(
                tuple(map(number, e)) if isinstance(e, tuple) else number(e) for e in self._map
            ),
            "interleaved_parallel": "interleaved_parallel" in self._names,
            "alias_name": self._names,
            "rank_list": list(self._ranks),
        }

    def placement(self) -> Placement:
        """Return the placement of a tensor with this layout.

        Raises:
            ValueError: the layout was not called with the axes of a tensor.
        """
        if self._map is None:
            raise ArgumentValueError(
                "Layout: no tensor axes yet; call it, as in layout('dp', 'mp')"
            )
        strides = [math.prod(self._sizes[i + 1 :]) for i in range(len(self._sizes))]
        axes = {n: Axis(s, k) for n, s, k in zip(self._names, strides, self._sizes, strict=True)}
        dims = tuple(
            tuple(
                axes[n]
                for n in (e if isinstance(e, tuple) else (e,))
                if n != "None" and axes[n].size > 1
            )
            for e in self._map
        )
        return Placement(dims, self._ranks, tuple((a, n) for n, a in axes.items() if a.size > 1))

    def __repr__(self) -> str:
        called = "" if self._map is None else f"({', '.join(map(repr, self._map))})"
        return f"Layout({self._sizes}, {self._names}){called}"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Layout):
            return NotImplemented
        mine, others = vars(self), vars(other)
        return mine == others

    def __hash__(self) -> int:
        return hash((self._sizes, self._names, self._ranks, self._map))


def _check_mesh(device_matrix: object, alias_name: object) -> None:
    for what, value, kind in (
        ("device_matrix", device_matrix, int), ("alias_name", alias_name, str),
    ):  # fmt: skip
        if not isinstance(value, tuple) or not all(type(v) is kind for v in value):
            raise ArgumentError(f"Layout: got {what}={value!r}; wanted a tuple of {kind.__name__}")
    assert isinstance(device_matrix, tuple) and isinstance(alias_name, tuple)
    if len(device_matrix) != len(alias_name):
        raise ArgumentValueError(
            f"Layout: got {len(alias_name)} names for {len(device_matrix)} axes; wanted one each"
        )
    if any(n < 1 for n in device_matrix):
        raise ArgumentValueError(f"Layout: got device_matrix={device_matrix}; wanted 1 or more")
    if "" in alias_name or "None" in alias_name or len(set(alias_name)) < len(alias_name):
        raise ArgumentValueError(
            f"Layout: got alias_name={alias_name}; wanted different names, not '' or 'None'"
        )
    if "interleaved_parallel" in alias_name:
        raise ArgumentValueError(
            "Layout: got the axis 'interleaved_parallel', which splits the work of one rank to "
            "overlap it with communication; this is not built. Use another name"
        )


def placement_of(owner: str, strategy: object, ranks: Sequence[int]) -> Placement:
    """Return the placement given by a Layout or by a strategy such as ``(2, 1)``.

    A strategy is the number of shards along each axis of a tensor; the first number takes the
    slowest mesh axis, and so on. `owner` names the caller in messages.

    Raises:
        ArgumentError: `strategy` is neither a Layout nor a tuple of ints.
        ArgumentValueError: the Layout has other ranks than `ranks`, or the product of the numbers
            of shards does not divide the number of ranks.
    """
    if isinstance(strategy, Layout):
        found = strategy.placement()
        if sorted(found.ranks) != sorted(ranks):
            raise ArgumentValueError(
                f"{owner}: got {strategy!r} for the ranks {_listed(found.ranks)}; wanted a "
                f"device_matrix of {len(ranks)} ranks, {_listed(ranks)}"
            )
        return found
    if not isinstance(strategy, tuple) or not all(type(n) is int for n in strategy):
        raise ArgumentError(
            f"{owner}: got {strategy!r}; wanted a Layout, or a tuple of ints: the number of shards "
            "along each axis"
        )
    dims, left = [], len(ranks)
    for n in strategy:
        if n < 1 or left % n:
            raise ArgumentValueError(
                f"{owner}: got the strategy {strategy}; wanted numbers of parts whose product "
                f"divides the {len(ranks)} ranks"
            )
        left //= n
        dims.append((Axis(left, n),) if n > 1 else ())
    return Placement(tuple(dims), tuple(ranks))


def placements_of(owner: str, strategies: object, ranks: Sequence[int]) -> tuple[Placement, ...]:
    """Return the placements given by a tuple with one Layout or one strategy per tensor.

    `ranks` are the ranks of the mesh; `owner` names the caller in messages. See `placement_of`.

    Raises:
        ArgumentError: `strategies` is not a tuple, or mixes Layouts and strategies.
    """
    if not isinstance(strategies, tuple):
        raise ArgumentError(
            f"{owner}: got {strategies!r}; wanted a tuple with one Layout, or tuple of ints, per "
            "tensor"
        )
    if len({isinstance(s, Layout) for s in strategies}) > 1:
        raise ArgumentError(f"{owner}: got Layouts and tuples of ints together; wanted one kind")
    return tuple(placement_of(owner, s, ranks) for s in strategies)


def check_divisible(owner: str, shape: Sequence[int], placement: Placement) -> None:
    """Raise ShapeError unless a placement has the axes of a tensor and shards them evenly.

    `owner` names the caller in the message.
    """
    if len(placement.dims) != len(shape):
        raise ShapeError(
            f"{owner}: got a layout of {len(placement.dims)} axes for a tensor of shape "
            f"{tuple(shape)}; wanted {len(shape)}"
        )
    names = dict(placement.names)
    for i, (n, axes) in enumerate(zip(shape, placement.dims, strict=True)):
        if n % _count(axes):
            along = " and ".join(names.get(a, f"of {a.size} ranks") for a in axes)
            raise ShapeError(
                f"{owner}: axis {i} of size {n} of the shape {tuple(shape)} cannot be divided into "
                f"{_count(axes)} equal parts, along the mesh axis {along}; wanted a multiple of "
                f"{_count(axes)}"
            )


class Mesh:
    """The common refinement of the meshes of all layouts in a program.

    Attributes:
        ranks: the rank at each position of the mesh.
        axes: the mesh axes, the slowest first; no layout splits one of them further.
    """

    def __init__(self, placements: Iterable[Placement], ranks: Sequence[int]) -> None:
        placements = list(placements)
        orders = {p.ranks for p in placements} or {tuple(ranks)}
        if len(orders) > 1:
            raise ArgumentValueError(
                "Layout: the layouts of one program have different rank lists: "
                f"{' and '.join(map(_listed, sorted(orders)))}; wanted one"
            )
        (self.ranks,) = orders
        used = {a for p in placements for axes in p.dims for a in axes}
        used |= {a for p in placements for a, _ in p.names}
        strides = {1, len(self.ranks)}
        strides |= {s for a in used for s in (a.stride, a.stride * a.size)}
        chain = sorted(strides, reverse=True)
        for large, small in itertools.pairwise(chain):
            if large % small:
                raise ArgumentValueError(
                    f"Layout: the layouts of one program divide {len(self.ranks)} ranks into "
                    f"{large} and into {small} neighbours, which do not nest; "
                    "wanted device matrices of which one refines the other"
                )
        self.axes = tuple(Axis(b, a // b) for a, b in itertools.pairwise(chain))
        self._names: dict[Axis, str] = {}
        for p in placements:
            for axis, name in p.names:
                parts = self.parts(axis)
                for i, part in enumerate(parts):
                    self._names.setdefault(part, name if len(parts) == 1 else f"{name}[{i}]")

    def parts(self, axis: Axis) -> Axes:
        """Return the axes of this mesh into which a mesh axis of a layout is split."""
        return tuple(a for a in self.axes if axis.stride <= a.stride < axis.stride * axis.size)

    def refined(self, placement: Placement) -> tuple[Axes, ...]:
        """Return, for each axis of a placed tensor, the axes of this mesh that shard it."""
        return tuple(tuple(p for a in axes for p in self.parts(a)) for axes in placement.dims)

    def name(self, axis: Axis) -> str:
        """Return the name of an axis for messages."""
        found = self._names.get(axis)
        return f"axis {self.axes.index(axis)}" if found is None else found

    def coordinate(self, axis: Axis, rank: int) -> int:
        """Return the coordinate of a rank along a mesh axis."""
        return self.ranks.index(rank) // axis.stride % axis.size

    def group(self, axes: Axes, rank: int) -> tuple[int, ...]:
        """Return the ranks that differ from `rank` only in their coordinates along `axes`.

        They are ordered by these coordinates; the first axis is the slowest.
        """
        at = self.ranks.index(rank)
        base = at - sum(at // a.stride % a.size * a.stride for a in axes)
        offsets = itertools.product(*(range(0, a.stride * a.size, a.stride) for a in axes))
        return tuple(self.ranks[base + sum(o)] for o in offsets)


def _listed(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks))
