"""Collectives of several arrays at once, which travel as one message (a bucket).

A *part* of an array is the flat shard that one rank owns: the elements in C order, padded with
zeros to a multiple of the number of ranks and split evenly, `part_length` elements per rank. A
bucket is laid out by rank: shard 0 of all arrays, then shard 1, and so on, so that one exchange
reduces all of it. Sums are added in the order of `transfers.reduce_tree`, so that an element gets
the same bits whichever arrays share its bucket.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np

from ..backend.collectives import Communicator
from ..context import settings
from . import on_device
from .group import nothing
from .on_device import DeviceArray
from .transfers import SMALL, Array, Steps, all_reduce, exchanged, gathered, reduce_tree

if TYPE_CHECKING:
    from .operations import Operation
    from .world import Group

__all__ = ["Started", "part_length", "start_all_gather", "start_all_reduce",
           "start_reduce_scatter"]  # fmt: skip

AnyArray: TypeAlias = "Array | DeviceArray"


def part_length(size: int, ranks: int) -> int:
    """Return how many elements each rank owns of an array of `size` elements: ceil(size / ranks).

    The flattened array is divided evenly among `ranks` ranks after padding with zeros.
    """
    return -(-size // ranks)


def shown(arrays: Sequence[AnyArray]) -> str:
    """Return the dtype and the shapes of the arrays of a bucket as text, for messages."""
    kind, there = arrays[0].dtype, on_device.place(arrays[0])
    if len(arrays) == 1:
        return f"{kind} {arrays[0].shape}{there}"
    shapes = " ".join(str(x.shape) for x in arrays)
    return f"{len(arrays)} tensors of {kind}{there}: {shapes}"


def packed(arrays: Sequence[Array], ranks: int) -> Array:
    """Return arrays of the same dtype as one 2-d array (a bucket) with one row per rank.

    Each array is flattened, padded with zeros and divided into `ranks` shards of equal length. Row
    r of the result holds shard r of the first array, then shard r of the second, and so on.
    """
    lengths = [part_length(x.size, ranks) for x in arrays]
    out = np.empty((ranks, sum(lengths)), arrays[0].dtype)
    at = 0
    for x, n in zip(arrays, lengths, strict=True):
        whole = x.size // n if n else 0  # ranks whose shard has no padding
        flat = x.reshape(-1)
        out[:whole, at : at + n] = flat[: whole * n].reshape(whole, n)
        if whole < ranks:
            rest = x.size - whole * n
            out[whole:, at : at + n] = 0
            out[whole, at : at + rest] = flat[whole * n :]
        at += n
    return out


def joined(arrays: Sequence[Array], ranks: int) -> tuple[Array, list[int]]:
    """Return the flat concatenation of arrays of the same dtype, and the offset of each.

    Offsets and length are in elements. Each array begins at a multiple of 64 bytes, and the length
    is a multiple of `ranks`; the gaps are filled with zeros.
    """
    step = max(64 // arrays[0].itemsize, 1)
    begins = [0]
    for x in arrays:
        begins.append(begins[-1] + part_length(x.size, step) * step)
    out = np.empty(part_length(begins.pop(), ranks) * ranks, arrays[0].dtype)
    end = 0
    for begin, x in zip(begins, arrays, strict=True):
        out[end:begin] = 0
        end = begin + x.size
        out[begin:end] = x.reshape(-1)
    out[end:] = 0
    return out, begins


def unpacked(bucket: Array, shapes: Sequence[tuple[int, ...]]) -> list[Array]:
    """Return the arrays, of the given shapes, that `packed` stored in a bucket.

    A bucket is a 2-d array whose row r holds shard r of each flattened, zero-padded array.
    """
    ranks = len(bucket)
    found = []
    at = 0
    for shape in shapes:
        size = int(np.prod(shape, dtype=np.int64))
        n = part_length(size, ranks)
        flat = np.ascontiguousarray(bucket[:, at : at + n]).reshape(-1)
        found.append(flat[:size].reshape(shape))
        at += n
    return found


def split_parts(flat: Array, shapes: Sequence[tuple[int, ...]], ranks: int) -> list[Array]:
    """Return this rank's shard of each array of a bucket, given this rank's row of the bucket.

    `flat` is the row, which holds the shards one after the other. `shapes` are the shapes of the
    whole arrays; a shard of an array of n elements has ceil(n / ranks) elements.
    """
    lengths = [part_length(int(np.prod(s, dtype=np.int64)), ranks) for s in shapes]
    ends = np.cumsum([0, *lengths])
    return [flat[a:b] for a, b in itertools.pairwise(ends)]


def reduce_scatter_parts(comm: Communicator, arrays: Sequence[Array], reduction: str) -> Steps:
    """Return a generator that reduces the ranks' arrays; its return value lists this rank's shards.

    The arrays have the same dtype and are exchanged together. A shard is 1-d: an array of n
    elements, flattened and padded with zeros, is divided into shards of ceil(n / ranks) elements.
    `reduction` is a key of `transfers.REDUCTIONS`, such as "sum". The generator yields each
    transfer request that it starts; resume it when that request is complete.
    """
    bucket = packed(arrays, comm.size)
    n = bucket.shape[1]
    mine = bucket.reshape(-1)
    if n:
        parts = yield from exchanged(comm, mine, n)
        mine = reduce_tree(list(parts), reduction)
    return split_parts(mine, [x.shape for x in arrays], comm.size)


def all_gather_parts(
    comm: Communicator, parts: Sequence[Array], shapes: Sequence[tuple[int, ...]]
) -> Steps:
    """Return a generator that joins the shards of all ranks; its return value lists the arrays.

    `parts` are this rank's 1-d shards, all of the same dtype, and `shapes` the shapes of the whole
    arrays. The generator yields each transfer request that it starts; resume it when that request
    is complete.
    """
    mine = parts[0] if len(parts) == 1 else np.concatenate(parts)
    bucket = yield from gathered(comm, np.ascontiguousarray(mine))
    return unpacked(bucket, shapes)


def all_reduce_bucket(
    comm: Communicator, arrays: Sequence[Array], reduction: str, engine_sums: bool = False
) -> Steps:
    """Return a generator that reduces the ranks' arrays; its return value lists the reduced ones.

    The arrays have the same dtype and travel together as one message. `reduction` is a key of
    `transfers.REDUCTIONS`, such as "sum". With `engine_sums`, the engine may reduce in an order of
    its own, if it can reduce this dtype. The generator yields each transfer request that it starts;
    resume it when that request is complete.
    """
    shapes = [x.shape for x in arrays]
    if len(arrays) == 1:
        return [(yield from all_reduce(comm, arrays[0], reduction, engine_sums))]
    if engine_sums or sum(x.nbytes for x in arrays) <= SMALL:
        flat = np.concatenate([x.reshape(-1) for x in arrays])
        flat = yield from all_reduce(comm, flat, reduction, engine_sums)
        ends = np.cumsum([0, *(x.size for x in arrays)])
        return [
            flat[a:b].reshape(s) for (a, b), s in zip(itertools.pairwise(ends), shapes, strict=True)
        ]
    flat, begins = joined(arrays, comm.size)
    parts = yield from exchanged(comm, flat, flat.size // comm.size)
    mine = reduce_tree(list(parts), reduction, scratch=True)
    whole = (yield from gathered(comm, mine)).reshape(-1)
    return [whole[a : a + x.size].reshape(x.shape) for a, x in zip(begins, arrays, strict=True)]


# ---- in a group ----------------------------------------------------------------------------------


def by_dtype(arrays: Sequence[AnyArray]) -> list[list[int]]:
    """Group arrays by dtype; return one list of positions in `arrays` for each dtype.

    The dtypes are in the order in which they first occur.
    """
    found: dict[np.dtype[np.generic], list[int]] = {}
    for i, x in enumerate(arrays):
        found.setdefault(x.dtype, []).append(i)
    return list(found.values())


LANES = 4  # buckets of a group that are in flight at once


def _lane(group: Group) -> Group:
    """Return, in turn, the group itself or one of its copies that have queues of their own (lanes).

    The messages of one bucket run one after the other, and each needs two or three polls between
    kernels. The next buckets use other lanes, so that the link is not idle meanwhile. All ranks
    start buckets in the same order, and so in the same lanes.
    """
    world = group.world
    count = world.started_buckets[group.name] = world.started_buckets.get(group.name, -1) + 1
    number = count % LANES
    if not number:
        return group
    key = f"{group.name}, lane {number}"
    found = world.groups.get(key)
    if found is None:
        group.run("another lane of buckets", nothing())  # an engine may split without a deadline
        comm = group.comm.split(range(group.size))
        found = world.groups[key] = type(group)(world, group.name, group.ranks, comm)
    return found


class Started:
    """Collectives of a list of arrays that were started together, one for each dtype."""

    def __init__(self, operations: Sequence[tuple[Operation, list[int]]]) -> None:
        self.operations = operations

    def finish(self) -> list[AnyArray]:
        """Wait for all collectives; return the resulting arrays in the order of the list.

        For arrays on a device, the host does not wait: work that the device gets later will wait.

        Raises:
            CommunicationError: the ranks call different collectives, a rank has ended, or the
                deadline (the setting `communication_timeout`) has passed.
        """
        found: dict[int, AnyArray] = {}
        for operation, positions in self.operations:
            found.update(zip(positions, operation.group.finish(operation), strict=True))
        return [found[i] for i in range(len(found))]


def _taken(group: Group, arrays: Sequence[AnyArray], beside: bool) -> tuple[Group, bool]:
    """Return the group in which to start a bucket, and whether its arrays are in device memory.

    With `beside`, buckets of host arrays take the lanes of the group in turn (`_lane`).
    Buckets of device arrays do not, because a device runs them one after the other anyway.
    """
    there = bool(arrays) and isinstance(arrays[0], DeviceArray)
    return (_lane(group) if beside and not there else group), there


def start_all_reduce(
    group: Group, arrays: Sequence[AnyArray], reduction: str, beside: bool = False
) -> Started:
    """Start to all-reduce arrays over a group, one collective per dtype; return the handle.

    `reduction` is a key of `transfers.REDUCTIONS`, such as "sum". With `beside`, these collectives
    may run at the same time as those that the previous such call started in this group; without it,
    they run after them.
    """
    group, there = _taken(group, arrays, beside)
    operations = []
    for positions in by_dtype(arrays):
        some: list[AnyArray] = [arrays[i] for i in positions]
        if there:
            steps = on_device.all_reduce(group, cast("list[DeviceArray]", some), reduction)
        else:
            steps = all_reduce_bucket(
                group.comm, cast("list[Array]", some), reduction, settings.engine_sums
            )
        text = f"AllReduce({reduction}) of {shown(some)}"
        operations.append((group.start(text, steps), positions))
    return Started(operations)


def start_reduce_scatter(
    group: Group, arrays: Sequence[AnyArray], reduction: str, beside: bool = False
) -> Started:
    """Start to reduce-scatter arrays over a group, one collective per dtype; return the handle.

    The handle's `finish` returns this rank's 1-d shard of each reduced array. `reduction` is a key
    of `transfers.REDUCTIONS`, such as "sum". With `beside`, these collectives may run at the same
    time as those that the previous such call started in this group; without it, they run after
    them.
    """
    group, there = _taken(group, arrays, beside)
    operations = []
    for positions in by_dtype(arrays):
        some: list[AnyArray] = [arrays[i] for i in positions]
        if there:
            steps = on_device.reduce_scatter_parts(
                group, cast("list[DeviceArray]", some), reduction
            )
        else:
            steps = reduce_scatter_parts(group.comm, cast("list[Array]", some), reduction)
        text = f"ReduceScatter({reduction}) of parts of {shown(some)}"
        operations.append((group.start(text, steps), positions))
    return Started(operations)


def start_all_gather(
    group: Group,
    parts: Sequence[AnyArray],
    shapes: Sequence[tuple[int, ...]],
    beside: bool = False,
) -> Started:
    """Start to gather arrays from the ranks' shards, one collective per dtype; return the handle.

    `parts` are this rank's 1-d shards, and `shapes` the shapes of the whole arrays. With `beside`,
    these collectives may run at the same time as those that the previous such call started in this
    group; without it, they run after them.
    """
    group, there = _taken(group, parts, beside)
    operations = []
    for positions in by_dtype(parts):
        some: list[AnyArray] = [parts[i] for i in positions]
        wanted = [shapes[i] for i in positions]
        if there:
            steps = on_device.all_gather_parts(group, cast("list[DeviceArray]", some), wanted)
        else:
            steps = all_gather_parts(group.comm, cast("list[Array]", some), wanted)
        kind = f"{some[0].dtype}{on_device.place(some[0])}"
        text = f"AllGather of parts of {kind} {' '.join(map(str, wanted))}"
        operations.append((group.start(text, steps), positions))
    return Started(operations)
