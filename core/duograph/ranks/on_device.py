"""Collectives of arrays in device memory, composed of the transfers of a communication engine.

An engine whose `Communicator.on_device` returns `DeviceTransfers` moves such arrays from device to
device; with other engines, arrays go through host memory. The collectives are generator functions
like those of `transfers`, but take the group instead of its communicator. They add in the same
order: each rank adds its part of the arrays with kernels of the device, so that results have the
bits of a collective of host arrays. Where every order of additions gives the same bits, or under
``set_context(engine_sums=True)``, the engine reduces instead.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..backend import registry
from ..backend.checked_calls import from_device, on_device
from ..backend.collectives import DeviceTransfers, Part, Request
from ..backend.prepared import Handle
from ..backend.prepared_calls import prepared_call
from ..context import settings
from ..dtype import DType, float32
from ..errors import CommunicationError
from ..op import OPS
from ..types import TensorType
from .transfers import Array, Steps, check_lengths

if TYPE_CHECKING:
    from .world import Group

__all__ = ["DeviceArray", "operand", "place", "result"]

_KERNELS = {"sum": "add", "prod": "mul", "max": "maximum", "min": "minimum"}


class DeviceArray:
    """A dense array in the memory of a device, in C order.

    Attributes:
        device: (name of the backend, index of the device).
        handle: the backend's handle of the memory.
        type: dtype and shape.
    """

    __slots__ = ("device", "handle", "type")

    def __init__(self, device: tuple[str, int], handle: Handle, type_: TensorType) -> None:
        self.device, self.handle, self.type = device, handle, type_

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The NumPy dtype."""
        return self.type.dtype.np

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        return self.type.shape

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.type.size

    @property
    def nbytes(self) -> int:
        """Number of bytes."""
        return self.type.nbytes

    def on_host(self) -> Array:
        """Return a copy in host memory."""
        backend = registry.backend(self.device[0])
        return from_device(backend, self.handle, self.shape, self.dtype, self.device[1])

    def like(self, handle: Handle, shape: tuple[int, ...]) -> DeviceArray:
        """Return an array of this dtype on this device, with memory `handle` and another shape."""
        return DeviceArray(self.device, handle, TensorType.of(shape, self.type.dtype))


def place(x: Array | DeviceArray) -> str:
    """Return " on DEVICE" for an array in device memory, for messages; "" for a host array."""
    return f" on {x.device[0]}" if isinstance(x, DeviceArray) else ""


def operand(
    group: Group | None, device: tuple[str, int], handle: Handle, type_: TensorType
) -> Array | DeviceArray:
    """Return the memory `handle` of a tensor as an array that a group's collectives accept.

    The array stays on the device if the group's engine serves that device; otherwise, and if
    `group` is None, it is copied to the host.
    """
    backend = registry.backend(device[0])
    if group is not None and group.comm.serves(backend, device[1]):
        return DeviceArray(device, handle, type_.plain)
    found = from_device(backend, handle, type_.shape, type_.dtype.np, device[1])
    return np.asarray(found, order="C")


def result(device: tuple[str, int], found: Array | DeviceArray) -> Handle:
    """Return the device handle of an array that a collective returned, `found`.

    A host array is copied to the device.
    """
    if isinstance(found, DeviceArray):
        return found.handle
    return on_device(registry.backend(device[0]), found, device[1])


# ---- sums on the device --------------------------------------------------------------------------


def _run(name: str, device: tuple[str, int], kind: DType, handles: Sequence[Handle], n: int,
         **attributes: object) -> Handle:  # fmt: skip
    """Run the elementwise op `name` on buffers of `n` elements of dtype `kind` on a device.

    `handles` are the operands. Returns the handle of the result.

    Raises:
        CommunicationError: the device's backend has no kernel for the op.
    """
    types = (TensorType.of((n,), kind),) * len(handles)
    call = prepared_call(registry.backend(device[0]), OPS[name], types, attributes, device[1])
    if call is None:
        raise CommunicationError(
            f"the {device[0]} backend has no kernel {name} of {kind.name}, which a sum over ranks "
            "needs"
        )
    return call.run(*handles)


def reduce_tree(like: DeviceArray, handles: Sequence[Handle], n: int, reduction: str) -> Handle:
    """Reduce device buffers elementwise in the order of a binary tree; return the result's handle.

    `handles` are the buffers, each of `n` elements of the dtype of `like`, on its device.
    `reduction` is a key of `transfers.REDUCTIONS`, such as "sum". Neighbours are combined, then
    neighbours of the results, as `transfers.reduce_tree` does on the host.
    """
    dtype, device = like.type.dtype, like.device
    narrow = dtype.itemsize <= 2 and dtype.np.kind not in "iub"
    level = list(handles)
    if narrow:
        level = [_run("cast", device, dtype, [h], n, dtype=float32) for h in level]
    wide = float32 if narrow else dtype
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2])
        nexts = [_run(_KERNELS[reduction], device, wide, pair, n) for pair in pairs]
        level = nexts + level[len(nexts) * 2 :]
    return _run("cast", device, float32, level, n, dtype=dtype) if narrow else level[0]


def _any_order(d: DeviceTransfers, like: DeviceArray, reduction: str, ranks: int) -> bool:
    """Return whether to leave the reduction to the engine.

    That is so if the engine can reduce this dtype and either every order of additions gives the
    same bits or the setting `engine_sums` allows any order.
    """
    dtype = like.type.dtype
    if not d.reduces(dtype, reduction):
        return False
    same = dtype.np.kind in "iub" or (ranks <= 2 and reduction in ("sum", "prod"))
    return same or settings.engine_sums


# ---- collectives ---------------------------------------------------------------------------------

Cuts = Sequence[int]  # of the elements of an array: rank r has those from cuts[r] to cuts[r + 1]


def even_cuts(size: int, ranks: int) -> list[int]:
    """Return the bounds of the parts of a flat array of `size` elements that is divided evenly.

    Rank r has the elements from bounds[r] to bounds[r + 1] - 1. Every part has ceil(size / ranks)
    elements, except that the last parts may be shorter or empty.
    """
    n = -(-size // ranks)
    return [min(r * n, size) for r in range(ranks + 1)]


def scaled_cuts(lengths: Sequence[int], row: int) -> list[int]:
    """Return the bounds of the parts of a flattened array of which rank r has `lengths[r]` rows.

    Rank r has the elements from bounds[r] to bounds[r + 1] - 1. A row has `row` elements.
    """
    return [0, *itertools.accumulate(n * row for n in lengths)]


def _reduced_parts(
    d: DeviceTransfers, arrays: Sequence[DeviceArray], cuts: Sequence[Cuts], reduction: str,
    rank: int, padded: Sequence[int] | None = None,
) -> Generator[Request, None, list[Handle]]:  # fmt: skip
    """Return a generator that reduces the ranks' arrays; its return value lists handles.

    These are the handles of this rank's part of each reduced array. `reduction` is a key of
    `transfers.REDUCTIONS`, such as "sum". `cuts` has the bounds of the parts of each array: rank r
    owns the elements from cut[r] up to, but not including, cut[r + 1]. `padded` has the number of
    elements to which each part is padded with zeros; None means no padding. The generator yields
    each transfer request that it starts; resume it when that request is complete.
    """
    ranks = len(cuts[0]) - 1
    sends, receives, all_parts = [], [], []
    for k, (x, cut) in enumerate(zip(arrays, cuts, strict=True)):
        width = x.dtype.itemsize
        n = (cut[rank + 1] - cut[rank]) * width
        whole = n if padded is None else padded[k] * width
        zeros = None
        if whole > n:
            zeros = on_device(registry.backend(x.device[0]), np.zeros(whole - n, np.uint8),
                              x.device[1])  # fmt: skip
        parts = [d.allocate(whole) for _ in range(ranks)]
        for r, part in enumerate(parts):
            sends.append(Part(x.handle, cut[r] * width, (cut[r + 1] - cut[r]) * width, r))
            receives.append(Part(part, 0, n, r))
        if zeros is not None:  # from this rank to itself
            sends += [Part(zeros, 0, whole - n, rank) for _ in parts]
            receives += [Part(part, n, whole - n, rank) for part in parts]
        all_parts.append((parts, whole // width))
    yield d.exchange(sends, receives, d.mark())
    return [
        reduce_tree(x, parts, n, reduction) if n else parts[0]
        for x, (parts, n) in zip(arrays, all_parts, strict=True)
    ]


def _gathered_parts(
    d: DeviceTransfers, parts: Sequence[Handle], likes: Sequence[DeviceArray],
    cuts: Sequence[Cuts], rank: int, root: int | None = None,
) -> Generator[Request, None, list[Handle]]:  # fmt: skip
    """Return a generator that joins the parts of all ranks; its return value lists handles.

    These are the handles of the whole arrays. `parts` are the handles of this rank's parts, `likes`
    give the shapes and dtypes of the whole arrays, and `cuts` has the bounds of the parts of each
    array: rank r owns the elements from cut[r] up to, but not including, cut[r + 1]. With `root`,
    only that rank gets whole arrays; on other ranks, the handles are of buffers with arbitrary
    contents. The generator yields each transfer request that it starts; resume it when that request
    is complete.
    """
    ranks = len(cuts[0]) - 1
    sends, receives, outs = [], [], []
    for part, x, cut in zip(parts, likes, cuts, strict=True):
        width = x.dtype.itemsize
        out = d.allocate(cut[-1] * width)
        n = (cut[rank + 1] - cut[rank]) * width
        sends += [Part(part, 0, n, r) for r in range(ranks) if root in (None, r)]
        if root in (None, rank):
            receives += [
                Part(out, cut[r] * width, (cut[r + 1] - cut[r]) * width, r) for r in range(ranks)
            ]
        outs.append(out)
    yield d.exchange(sends, receives, d.mark())
    return outs


def all_reduce(group: Group, arrays: Sequence[DeviceArray], reduction: str) -> Steps:
    """Return a generator that reduces the ranks' arrays; its return value lists the reduced ones.

    `reduction` is a key of `transfers.REDUCTIONS`, such as "sum". The arrays have the same dtype;
    every rank gets the results. The generator yields each transfer request that it starts; resume
    it when that request is complete.
    """
    d = group.on_device(arrays[0].device)
    if _any_order(d, arrays[0], reduction, group.size):
        outs = [d.allocate(x.nbytes) for x in arrays]
        pairs = [(x.handle, out, x.size) for x, out in zip(arrays, outs) if x.size]
        yield d.all_reduce(pairs, arrays[0].type.dtype, reduction, d.mark())
    else:
        cuts = [even_cuts(x.size, group.size) for x in arrays]
        mine = yield from _reduced_parts(d, arrays, cuts, reduction, group.rank)
        outs = yield from _gathered_parts(d, mine, arrays, cuts, group.rank)
    return [x.like(out, x.shape) for x, out in zip(arrays, outs, strict=True)]


def one(steps: Steps) -> Steps:
    """Return a generator that runs `steps` and returns the only item of its list.

    `steps` is the generator of a collective whose return value is a list of one array; that array
    is the return value of the new generator. Both yield the same transfer requests.
    """
    (found,) = yield from steps
    return found


def reduce(group: Group, x: DeviceArray, root: int, reduction: str) -> Steps:
    """Return a generator that reduces the arrays of all ranks, with the result on one rank only.

    Its return value is the reduced array on rank `root`, and `x` itself on the other ranks.
    `reduction` is a key of `transfers.REDUCTIONS`, such as "sum". The generator yields each
    transfer request that it starts; resume it when that request is complete.
    """
    d = group.on_device(x.device)
    cuts = [even_cuts(x.size, group.size)]
    mine = yield from _reduced_parts(d, [x], cuts, reduction, group.rank)
    (out,) = yield from _gathered_parts(d, mine, [x], cuts, group.rank, root)
    return x.like(out, x.shape) if group.rank == root else x


def reduce_scatter(
    group: Group, x: DeviceArray, lengths: Sequence[int], reduction: str
) -> Steps:  # fmt: skip
    """Return a generator that reduces the ranks' arrays; its return value is this rank's rows.

    `reduction` is a key of `transfers.REDUCTIONS`, such as "sum". Rank r gets `lengths[r]` rows
    (along axis 0) of the reduced array, after those of the ranks before it. The generator yields
    each transfer request that it starts; resume it when that request is complete.
    """
    d = group.on_device(x.device)
    row = int(np.prod(x.shape[1:], dtype=np.int64))
    shape = (lengths[group.rank], *x.shape[1:])
    if len(set(lengths)) == 1 and x.size and _any_order(d, x, reduction, group.size):
        n = lengths[0] * row
        out = d.allocate(n * x.dtype.itemsize)
        yield d.reduce_scatter(x.handle, out, n, x.type.dtype, reduction, d.mark())
    else:
        cuts = [scaled_cuts(lengths, row)]
        (out,) = yield from _reduced_parts(d, [x], cuts, reduction, group.rank)
    return x.like(out, shape)


def reduce_scatter_parts(group: Group, arrays: Sequence[DeviceArray], reduction: str) -> Steps:
    """Return a generator that reduces the ranks' arrays; its return value lists this rank's shards.

    `reduction` is a key of `transfers.REDUCTIONS`, such as "sum". A shard is 1-d: an array of n
    elements, flattened and padded with zeros, is divided into shards of ceil(n / ranks) elements.
    The arrays have the same dtype. The generator yields each transfer request that it starts;
    resume it when that request is complete.
    """
    d = group.on_device(arrays[0].device)
    cuts = [even_cuts(x.size, group.size) for x in arrays]
    lengths = [-(-x.size // group.size) for x in arrays]
    mine = yield from _reduced_parts(d, arrays, cuts, reduction, group.rank, lengths)
    return [x.like(h, (n,)) for x, h, n in zip(arrays, mine, lengths, strict=True)]


def all_gather_parts(
    group: Group, parts: Sequence[DeviceArray], shapes: Sequence[tuple[int, ...]]
) -> Steps:
    """Return a generator that joins the shards of all ranks; its return value lists the arrays.

    `parts` are this rank's 1-d shards, and `shapes` the shapes of the whole arrays. The generator
    yields each transfer request that it starts; resume it when that request is complete.
    """
    d = group.on_device(parts[0].device)
    cuts = [even_cuts(int(np.prod(s, dtype=np.int64)), group.size) for s in shapes]
    handles = [p.handle for p in parts]
    outs = yield from _gathered_parts(d, handles, parts, cuts, group.rank)
    return [p.like(h, tuple(s)) for p, h, s in zip(parts, outs, shapes, strict=True)]


def all_gather(group: Group, x: DeviceArray, lengths: Sequence[int]) -> Steps:
    """Return a generator that concatenates the arrays of all ranks; its return value is that array.

    The array of rank r has `lengths[r]` rows. The arrays are joined along axis 0, in the order of
    the ranks. The generator yields each transfer request that it starts; resume it when that
    request is complete.
    """
    d = group.on_device(x.device)
    shape = (sum(lengths), *x.shape[1:])
    if len(set(lengths)) == 1:
        out = d.allocate(x.nbytes * group.size)
        if x.size:
            yield d.all_gather(x.handle, out, x.nbytes, d.mark())
    else:
        cuts = [scaled_cuts(lengths, int(np.prod(x.shape[1:], dtype=np.int64)))]
        (out,) = yield from _gathered_parts(d, [x.handle], [x], cuts, group.rank)
    return x.like(out, shape)


def broadcast(group: Group, x: DeviceArray, root: int) -> Steps:
    """Return a generator that copies rank `root`'s array to every rank and returns the copy.

    `x` is that array on rank `root`; on other ranks, only its shape and dtype are used. The
    generator yields each transfer request that it starts; resume it when that request is complete.
    """
    d = group.on_device(x.device)
    out = d.allocate(x.nbytes)
    if x.size:
        yield d.broadcast(x.handle, out, x.nbytes, root, d.mark())
    return x.like(out, x.shape)


def all_to_all(
    group: Group, x: DeviceArray, lengths: Sequence[int], received: Sequence[int]
) -> Steps:
    """Exchange parts of arrays among all ranks.

    Arguments, result and errors are those of `transfers.all_to_all`.
    """
    yield from check_lengths(group.comm, lengths, received)
    d = group.on_device(x.device)
    row = int(np.prod(x.shape[1:], dtype=np.int64)) * x.dtype.itemsize
    out = d.allocate(sum(received) * row)
    sends, receives = (
        [Part(handle, a, b - a, r) for r, (a, b) in enumerate(itertools.pairwise(cut))]
        for handle, cut in (
            (x.handle, scaled_cuts(lengths, row)), (out, scaled_cuts(received, row)),
        )
    )  # fmt: skip
    yield d.exchange(sends, receives, d.mark())
    return x.like(out, (sum(received), *x.shape[1:]))
