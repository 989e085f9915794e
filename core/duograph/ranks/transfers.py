"""Collectives composed of the transfers of a communication engine; the sums have a fixed order.

Each collective is a generator function. Its generator yields every transfer request that it has
started, and the caller resumes it when that request is complete; the generator's return value is
the result of the collective. No function here blocks. `comm` is the engine's connection to the
ranks of a group, `x` this rank's array, and `reduction` a key of `REDUCTIONS`, such as "sum".

Reductions combine neighbours, then neighbours of the results, and so on: with four ranks
`(x0 + x1) + (x2 + x3)`. A last value without a neighbour is passed on. The order depends on the
number of values alone. So 2 ranks that add 2 micro-batches each in this order (`tree_sum`), 4 ranks
with one, and one process with four get the same bits. Floating-point values of 16 bits or fewer are
added in float32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..backend.collectives import Communicator, Request
from ..errors import CommunicationError
from ..host_arrays import Array

__all__ = ["REDUCTIONS", "Steps", "all_gather", "all_gather_rows", "all_reduce", "all_to_all",
           "as_bytes", "broadcast", "check_lengths", "exchanged", "gathered", "reduce",
           "reduce_scatter", "reduce_scatter_rows", "reduce_tree"]  # fmt: skip

Steps: TypeAlias = Generator[Request, None, Any]

REDUCTIONS: dict[str, Callable[..., Array]] = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}

# Up to this many bytes per rank, every rank gathers all values and reduces all of them.
SMALL = 32768


def as_bytes(array: Array) -> Array:
    """Return a view of a C-contiguous array as uint8 (nbytes,)."""
    return array.reshape(-1).view(np.uint8)


def reduce_tree(values: Sequence[Array], reduction: str, scratch: bool = False) -> Array:
    """Reduce arrays of the same shape and dtype by `reduction`, in the order given in the module.

    Overflow gives infinities and NaN without a warning, as kernels do.

    Args:
        values: the arrays.
        reduction: a key of `REDUCTIONS`.
        scratch: whether `values` may be overwritten.
    """
    combine = REDUCTIONS[reduction]
    dtype = values[0].dtype
    narrow = dtype.itemsize <= 2 and dtype.kind not in "iub"
    level = [v.astype(np.float32) for v in values] if narrow else list(values)
    fresh = narrow or scratch  # whether the arrays of `level` may be overwritten
    with np.errstate(all="ignore"):
        while len(level) > 1:
            pairs = range(0, len(level) - 1, 2)
            nexts = [
                combine(level[i], level[i + 1], out=level[i] if fresh and level[i].ndim else None)
                for i in pairs
            ]
            if len(level) % 2:
                last = level[-1]
                nexts.append(last if fresh else last.copy())
            level, fresh = nexts, True
        return np.asarray(level[0]).astype(dtype, copy=False)


def gathered(comm: Communicator, x: Array) -> Generator[Request, None, Array]:
    """Return a generator that gathers the arrays of all ranks; its return value is their stack.

    The stack has shape (ranks, *x.shape); item r is the array of rank r. All ranks have the same
    shape and dtype. The generator yields each transfer request that it starts; resume it when that
    request is complete.
    """
    out = np.empty((comm.size, *x.shape), x.dtype)
    if x.size:
        yield comm.all_gather(as_bytes(x), as_bytes(out))
    return out


def all_gather(comm: Communicator, x: Array) -> Steps:
    """Return a generator that concatenates the arrays of all ranks; its return value is that array.

    The arrays have equal shapes and are joined along axis 0, in the order of the ranks. The
    generator yields each transfer request that it starts; resume it when that request is complete.
    """
    out = yield from gathered(comm, x)
    return out.reshape(comm.size * x.shape[0], *x.shape[1:])


def all_gather_rows(comm: Communicator, x: Array, lengths: Sequence[int]) -> Steps:
    """Return a generator that concatenates the arrays of all ranks; its return value is that array.

    The array of rank r has `lengths[r]` rows. The arrays are joined along axis 0, in the order of
    the ranks. The generator yields each transfer request that it starts; resume it when that
    request is complete.
    """
    longest = max(lengths)
    if longest == min(lengths):
        return (yield from all_gather(comm, x))
    padded = np.zeros((longest, *x.shape[1:]), x.dtype)
    padded[: x.shape[0]] = x
    found = yield from gathered(comm, padded)
    return np.concatenate([part[:n] for part, n in zip(found, lengths)])


def exchanged(comm: Communicator, x: Array, n: int) -> Generator[Request, None, Array]:
    """Return a generator that sends n elements to each rank; its return value is those received.

    `x` is (ranks * n,): elements r * n to (r + 1) * n - 1 are for rank r. The return value has
    shape (ranks, n); its row r has the elements that rank r sent to this rank. The generator yields
    each transfer request that it starts; resume it when that request is complete.
    """
    out = np.empty((comm.size, n), x.dtype)
    counts = [n * x.itemsize] * comm.size
    yield comm.all_to_all(as_bytes(x), counts, as_bytes(out), counts)
    return out


def _padded(x: Array, ranks: int) -> tuple[Array, int]:
    """Return the elements of an array, flat and padded with zeros, and their number per rank.

    The result shares the memory of `x` if there is nothing to pad.
    """
    n = -(-x.size // ranks)
    if n * ranks == x.size:
        return x.reshape(-1), n
    flat = np.empty(n * ranks, x.dtype)
    flat[: x.size] = x.reshape(-1)
    flat[x.size :] = 0
    return flat, n


def all_reduce(comm: Communicator, x: Array, reduction: str, engine_sums: bool = False) -> Steps:
    """Return a generator that reduces the ranks' arrays; its return value is the reduced array.

    Every rank gets the result. The generator yields each transfer request that it starts; resume it
    when that request is complete.

    Args:
        comm: connection to the ranks of the group.
        x: this rank's array; all ranks have the same shape and dtype.
        reduction: a key of `REDUCTIONS`, such as "sum".
        engine_sums: whether the engine may reduce in an order of its own, if it can reduce this
            dtype; otherwise the order is that of `reduce_tree`.
    """
    if engine_sums:
        out = np.empty_like(x)
        request = comm.all_reduce(x, out, reduction)
        if request is not None:
            yield request
            return out
    if x.nbytes <= SMALL or comm.size == 1:
        parts = yield from gathered(comm, x)
        return reduce_tree(list(parts), reduction)
    flat, n = _padded(x, comm.size)
    parts = yield from exchanged(comm, flat, n)
    mine = reduce_tree(list(parts), reduction, scratch=True)
    whole = yield from gathered(comm, mine)
    return whole.reshape(-1)[: x.size].reshape(x.shape)


def reduce_scatter(comm: Communicator, x: Array, reduction: str) -> Steps:
    """Return a generator that reduces the ranks' arrays; its return value is this rank's part.

    `reduction` is a key of `REDUCTIONS`, such as "sum". The reduced array is divided evenly along
    axis 0, whose length must be a multiple of the number of ranks; rank r gets part r. The
    generator yields each transfer request that it starts; resume it when that request is complete.
    """
    n = x.size // comm.size
    shape = (x.shape[0] // comm.size, *x.shape[1:])
    if not n:
        return np.empty(shape, x.dtype)
    parts = yield from exchanged(comm, x.reshape(-1), n)
    return reduce_tree(list(parts), reduction).reshape(shape)


def reduce_scatter_rows(
    comm: Communicator, x: Array, lengths: Sequence[int], reduction: str
) -> Steps:
    """Return a generator that reduces the ranks' arrays; its return value is this rank's rows.

    `reduction` is a key of `REDUCTIONS`, such as "sum". Rank r gets `lengths[r]` rows (along axis
    0) of the reduced array, after those of the ranks before it. The generator yields each transfer
    request that it starts; resume it when that request is complete.
    """
    if max(lengths) == min(lengths):
        return (yield from reduce_scatter(comm, x, reduction))
    ends = np.cumsum([0, *lengths])
    padded = np.zeros((comm.size, max(lengths), *x.shape[1:]), x.dtype)
    for row, n, at in zip(padded, lengths, ends):
        row[:n] = x[at : at + n]
    found = yield from reduce_scatter(comm, padded, reduction)
    return np.ascontiguousarray(found[0, : lengths[comm.rank]])


def reduce(comm: Communicator, x: Array, root: int, reduction: str) -> Steps:
    """Return a generator that reduces the arrays of all ranks, with the result on one rank only.

    Its return value is the reduced array on rank `root`, and `x` itself on the other ranks.
    `reduction` is a key of `REDUCTIONS`, such as "sum". The generator yields each transfer request
    that it starts; resume it when that request is complete.
    """
    if not x.size:
        return x
    at_root = comm.rank == root
    if x.nbytes <= SMALL:
        parts = yield from _to_root(comm, x.reshape(-1), root)
        return reduce_tree(list(parts), reduction).reshape(x.shape) if at_root else x
    flat, n = _padded(x, comm.size)
    parts = yield from exchanged(comm, flat, n)
    whole = yield from _to_root(comm, reduce_tree(list(parts), reduction, scratch=True), root)
    return whole.reshape(-1)[: x.size].reshape(x.shape) if at_root else x


def _to_root(comm: Communicator, x: Array, root: int) -> Generator[Request, None, Array]:
    """Return a generator that sends an array (n,) of every rank to rank `root`.

    Its return value on rank `root` has shape (ranks, n), with the array of rank r in row r; on the
    other ranks it is an empty array (0, n). The generator yields each transfer request that it
    starts; resume it when that request is complete.
    """
    ranks = comm.size if comm.rank == root else 0
    out = np.empty((ranks, x.size), x.dtype)
    counts = [x.nbytes if r == root else 0 for r in range(comm.size)]
    receives = [x.nbytes if ranks else 0] * comm.size
    yield comm.all_to_all(as_bytes(x), counts, as_bytes(out), receives)
    return out


def broadcast(comm: Communicator, x: Array, root: int) -> Steps:
    """Return a generator that copies rank `root`'s array to every rank and returns the copy.

    `x` is that array on rank `root`; on other ranks, only its shape and dtype are used. The
    generator yields each transfer request that it starts; resume it when that request is complete.
    """
    out = x.copy()
    if out.size:
        yield comm.broadcast(as_bytes(out), root)
    return out


def check_lengths(comm: Communicator, lengths: Sequence[int], received: Sequence[int]) -> Steps:
    """Return a generator that checks that ranks receive as many rows from each other as are sent.

    Both ranks of a pair that does not agree raise; the others would wait for them. `lengths` and
    `received` are those of `all_to_all`. The generator yields each transfer request that it starts;
    resume it when that request is complete.

    Raises:
        CommunicationError: the numbers of two ranks differ.
    """
    own = np.array([lengths, received], np.int64).T
    theirs = yield from exchanged(comm, own.reshape(-1), 2)
    for rank, (sends, takes) in enumerate(theirs.tolist()):
        for source, to, count, wanted in (
            (rank, comm.rank, sends, received[rank]),
            (comm.rank, rank, lengths[rank], takes),
        ):
            if count != wanted:
                raise CommunicationError(
                    f"AlltoAll: member {source} of the group sends {count} rows to member {to}, "
                    f"which receives {wanted} rows from it; wanted the same number on both"
                )


def all_to_all(
    comm: Communicator, x: Array, lengths: Sequence[int], received: Sequence[int]
) -> Steps:
    """Return a generator that sends rows to every rank; its return value is the rows received.

    These are concatenated along axis 0, in the order of the sending ranks. The generator yields
    each transfer request that it starts; resume it when that request is complete.

    Args:
        comm: connection to the ranks of the group.
        x: (sum of `lengths`, ...); the rows for rank 0 come first.
        lengths: number of rows that this rank sends to each rank.
        received: number of rows that this rank receives from each rank.

    Raises:
        CommunicationError: a rank sends another number of rows than the receiver expects.
    """
    yield from check_lengths(comm, lengths, received)
    row = x.itemsize
    for n in x.shape[1:]:
        row *= n
    out = np.empty((sum(received), *x.shape[1:]), x.dtype)
    yield comm.all_to_all(
        as_bytes(x), [n * row for n in lengths], as_bytes(out), [n * row for n in received]
    )
    return out
