"""Groups of ranks, with the collectives and messages that their ranks can start.

`world` forms groups; `Group` gives each call the steps of `transfers` or `on_device`, and runs them
as an `operations.Operation`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from ..backend import registry
from ..backend.collectives import Communicator, DeviceTransfers
from ..context import settings
from ..errors import CommunicationError
from . import on_device, transfers
from .counting import CountingCommunicator
from .on_device import DeviceArray
from .operations import Operation, Queue
from .transfers import Array, Steps

if TYPE_CHECKING:
    from .world import World

__all__ = ["Alone", "Group", "Unconnected", "nothing", "receive_steps", "send_steps"]

AnyArray: TypeAlias = "Array | DeviceArray"
A = TypeVar("A", bound=AnyArray)


class Alone(Communicator):
    """The communicator of a group of one rank, whose collectives return their operands.

    No transfer may be started with it.
    """

    rank, size = 0, 1

    def _refuse(self, *_: object, **__: object) -> Any:
        raise AssertionError("a group of one rank starts no transfer")

    all_gather = all_to_all = broadcast = send = receive = _refuse

    def split(self, ranks: Sequence[int]) -> Communicator:
        return self

    def abort(self, reason: str, status: int = 1) -> None:
        pass


class Unconnected(Communicator):
    """The communicator in a process that a rank has started, such as one that loads data.

    The process knows the rank's position `rank` in a group of `size`, and cannot communicate.
    `parent` is the rank's number among all ranks, by default `rank`.
    """

    def __init__(self, rank: int, size: int, parent: int | None = None) -> None:
        self.rank, self.size = rank, size
        self.parent = rank if parent is None else parent

    def _refuse(self, *_: object, **__: object) -> Any:
        raise CommunicationError(
            f"rank {self.parent} has started this process, which is no rank itself; got a "
            "collective or message here; wanted it in the process of the rank"
        )

    all_gather = all_to_all = broadcast = send = receive = split = _refuse

    def abort(self, reason: str, status: int = 1) -> None:
        """Do nothing: the rank sees how the process that it has started ends."""


class Group:
    """A set of ranks that includes this one; its collectives run in the order of their calls.

    Attributes:
        name: the name by which programs refer to the group.
        ranks: the rank in the world of each member, in the order of the group.
        rank: position of this rank in `ranks`.
        size: number of ranks.
        alone: whether the group has one rank and no engine: collectives return their operands.
    """

    def __init__(self, world: World, name: str, ranks: tuple[int, ...], comm: Communicator) -> None:
        self.world, self.name, self.ranks = world, name, ranks
        self.comm = CountingCommunicator(comm)
        self.rank, self.size = comm.rank, comm.size
        self.alone = isinstance(comm, Alone)
        self.queue = world.new_queue()
        self._messages: dict[tuple[str, int, int], Queue] = {}
        self._devices: dict[tuple[str, int], DeviceTransfers] = {}

    def on_device(self, device: tuple[str, int]) -> DeviceTransfers:
        """Return the object that transfers device arrays between the ranks of the group.

        `device` is (name of the backend, index of the device). The first call for a device connects
        the ranks' devices, and may wait until all ranks of the group make it.
        """
        found = self._devices.get(device)
        if found is None:
            backend = registry.backend(device[0])
            found = self._devices[device] = self.comm.on_device(backend, device[1], self.name)
        return found

    def start(self, text: str, steps: Steps, compared: bool = True) -> Operation:
        """Start a collective; return its `Operation`, which `finish` waits for.

        `text` describes the collective in messages, and `steps` is the generator that runs it: it
        yields transfer requests and returns the result (see `transfers`). With `compared`, the
        ranks first check that their texts are equal.
        """
        return self._start(Operation(self, text, steps, self.queue, compared))

    def _start(self, operation: Operation) -> Operation:
        if self.world.broken is not None:
            raise self.world.broken
        operation.queue.add(operation)
        return operation

    def message(self, text: str, steps: Steps, key: tuple[str, int, int]) -> Operation:
        """Start sending or receiving a message.

        `key` is ("send" or "receive", peer, tag). Messages with the same key keep their order.
        """
        queue = self._messages.get(key)
        if queue is None:
            queue = self._messages[key] = self.world.new_queue()
        return self._start(Operation(self, text, steps, queue, False, key[1]))

    def finish(self, operation: Operation) -> Any:
        """Wait for a collective or message, and return its result.

        Raises:
            CommunicationError: the ranks call different collectives, one has ended, or the deadline
                (the setting `communication_timeout`) has passed.
        """
        return operation.queue.wait(operation, settings.communication_timeout)

    def close(self) -> None:
        """Free the group and its communicator; every rank of the group must call it."""
        for queue in (self.queue, *self._messages.values()):
            self.world.queues.remove(queue)
        for transfers_ in self._devices.values():
            transfers_.close()
        self.comm.close()

    def run(self, text: str, steps: Steps, compared: bool = True) -> Any:
        """Start a collective, wait for it, and return its result.

        `text` describes the collective in messages, and `steps` is the generator that runs it: it
        yields transfer requests and returns the result (see `transfers`). With `compared`, the
        ranks first check that their texts are equal.
        """
        return self.finish(self.start(text, steps, compared))

    # ---- collectives of arrays -------------------------------------------------------------------

    def start_all_reduce(self, x: AnyArray, reduction: str) -> Operation:
        """Start to reduce `x` over all ranks of the group; return the operation, for `finish`.

        Every rank gets the reduced array. `reduction` is "sum", "prod", "max" or "min".
        """
        if isinstance(x, DeviceArray):
            steps = on_device.one(on_device.all_reduce(self, [x], reduction))
        else:
            steps = transfers.all_reduce(self.comm, x, reduction, settings.engine_sums)
        return self.start(f"AllReduce({reduction}) of {_shown(x)}", steps)

    def all_reduce(self, x: A, reduction: str) -> A:
        """Reduce `x` over all ranks of the group; return the reduced array, on every rank.

        `reduction` is "sum", "prod", "max" or "min".
        """
        return x if self.alone else self.finish(self.start_all_reduce(x, reduction))

    def start_reduce(self, x: AnyArray, root: int, reduction: str) -> Operation:
        """Start to reduce `x` over all ranks of the group; return the operation, for `finish`.

        Rank `root` of the group gets the reduced array, the others get `x`. `reduction` is "sum",
        "prod", "max" or "min".
        """
        text = f"Reduce({reduction}) to rank {root} of {_shown(x)}"
        if isinstance(x, DeviceArray):
            return self.start(text, on_device.reduce(self, x, root, reduction))
        return self.start(text, transfers.reduce(self.comm, x, root, reduction))

    def start_all_gather(self, x: AnyArray) -> Operation:
        """Start to concatenate the ranks' arrays along axis 0; return the operation, for `finish`.

        All ranks must have the same shape.
        """
        if isinstance(x, DeviceArray):
            steps = on_device.all_gather(self, x, (x.shape[0],) * self.size)
        else:
            steps = transfers.all_gather(self.comm, x)
        return self.start(f"AllGather of {_shown(x)}", steps)

    def all_gather(self, x: A) -> A:
        """Return the arrays of all ranks, concatenated along axis 0."""
        return x if self.alone else self.finish(self.start_all_gather(x))

    def start_all_gather_rows(self, x: AnyArray, lengths: Sequence[int]) -> Operation:
        """Start to concatenate the ranks' arrays along axis 0; return the operation, for `finish`.

        The array of rank r has `lengths[r]` rows.
        """
        text = f"AllGather of {_rows(x)}, {list(lengths)} by rank"
        if isinstance(x, DeviceArray):
            return self.start(text, on_device.all_gather(self, x, lengths))
        return self.start(text, transfers.all_gather_rows(self.comm, x, lengths))

    def start_reduce_scatter(self, x: AnyArray, reduction: str) -> Operation:
        """Start to reduce `x` over all ranks of the group; return the operation, for `finish`.

        Rank r gets part r of the reduced array, which is divided evenly along axis 0. `reduction`
        is "sum", "prod", "max" or "min".
        """
        if isinstance(x, DeviceArray):
            lengths = (x.shape[0] // self.size,) * self.size
            steps = on_device.reduce_scatter(self, x, lengths, reduction)
        else:
            steps = transfers.reduce_scatter(self.comm, x, reduction)
        return self.start(f"ReduceScatter({reduction}) of {_shown(x)}", steps)

    def reduce_scatter(self, x: A, reduction: str) -> A:
        """Reduce `x` over all ranks of the group; return this rank's part of the reduced array.

        The array is divided evenly along axis 0. `reduction` is "sum", "prod", "max" or "min".
        """
        return x if self.alone else self.finish(self.start_reduce_scatter(x, reduction))

    def start_reduce_scatter_rows(
        self, x: AnyArray, lengths: Sequence[int], reduction: str
    ) -> Operation:
        """Start to reduce `x` over all ranks of the group; return the operation, for `finish`.

        Rank r gets `lengths[r]` rows (along axis 0) of the reduced array, after those of the ranks
        before it. `reduction` is "sum", "prod", "max" or "min".
        """
        if isinstance(x, DeviceArray):
            steps = on_device.reduce_scatter(self, x, lengths, reduction)
        else:
            steps = transfers.reduce_scatter_rows(self.comm, x, lengths, reduction)
        text = f"ReduceScatter({reduction}) of {_shown(x)}, {list(lengths)} rows by rank"
        return self.start(text, steps)

    def start_broadcast(self, x: AnyArray, root: int) -> Operation:
        """Start to copy the array of rank `root` of the group to every rank; return the operation.

        On other ranks, `x` gives shape and dtype. `finish` waits for the operation and returns the
        copy.
        """
        if isinstance(x, DeviceArray):
            steps = on_device.broadcast(self, x, root)
        else:
            steps = transfers.broadcast(self.comm, x, root)
        return self.start(f"Broadcast from rank {root} of {_shown(x)}", steps)

    def broadcast(self, x: A, root: int) -> A:
        """Return the array of rank `root` of the group.

        On other ranks, `x` gives shape and dtype.
        """
        return x if self.alone else self.finish(self.start_broadcast(x, root))

    def start_all_to_all(
        self, x: AnyArray, lengths: Sequence[int], received: Sequence[int]
    ) -> Operation:
        """Start to send rows of `x` to each rank of the group; return the operation, for `finish`.

        `lengths[r]` rows of `x` (along axis 0) go to rank r, those for rank 0 first, and
        `received[r]` rows come from rank r. The result is the received rows, in the order of the
        ranks.
        """
        if isinstance(x, DeviceArray):
            steps = on_device.all_to_all(self, x, lengths, received)
        else:
            steps = transfers.all_to_all(self.comm, x, lengths, received)
        return self.start(f"AlltoAll of {_rows(x)}", steps)  # the lengths may differ by rank

    def all_to_all(self, x: A, lengths: Sequence[int], received: Sequence[int]) -> A:
        """Send rows of `x` to each rank of the group; return the rows received.

        These are in the order of the sending ranks. `lengths[r]` rows of `x` (along axis 0) go to
        rank r, those for rank 0 first, and `received[r]` rows come from rank r.
        """
        if self.alone:
            return x
        return self.finish(self.start_all_to_all(x, lengths, received))

    def send(self, x: Array, to: int, tag: int = 0) -> None:
        """Send an array to rank `to` of the group; the receiver must use the same `tag`."""
        self.finish(self.start_send(x, to, tag))

    def start_send(self, x: Array, to: int, tag: int = 0) -> Operation:
        """Start to send an array to rank `to` of the group; return the operation, for `finish`.

        The receiver must use the same `tag`.
        """
        text = f"Send of {_shown(x)} to rank {to}"
        return self.message(text, send_steps(self.comm, x, to, tag), ("send", to, tag))

    def receive(self, like: Array, source: int, tag: int = 0) -> Array:
        """Receive an array from rank `source` of the group; `like` gives its shape and dtype."""
        return self.finish(self.start_receive(like, source, tag))

    def start_receive(self, like: Array, source: int, tag: int = 0) -> Operation:
        """Start to receive an array from rank `source` of the group; return the operation.

        `finish` waits for the operation and returns the array. `like` gives the array's shape and
        dtype; the sender must use the same `tag`.
        """
        text = f"Receive of {_shown(like)} from rank {source}"
        steps = receive_steps(self.comm, like, source, tag, text)
        return self.message(text, steps, ("receive", source, tag))

    def start_barrier(self) -> Operation:
        """Start a barrier, which is complete when all ranks of the group have started it.

        Returns the operation, which `finish` waits for.
        """
        return self.start("Barrier", nothing())

    def barrier(self) -> None:
        """Wait until all ranks of the group have called this method."""
        if self.size > 1:
            self.finish(self.start_barrier())

    def gather_bytes(self, data: bytes, text: str = "gathering bytes") -> list[bytes]:
        """Return the bytes that each rank of the group passed as `data`, in the order of the ranks.

        The ranks' bytes may differ in length. `text` describes the call in error messages.
        """
        if self.size == 1:
            return [data]
        return self.run(text, _gather_bytes(self.comm, data))

    def compare(self, lines: Sequence[str], places: Sequence[str]) -> None:
        """Compare a compiled program's collectives with those of the other ranks, once per program.

        Args:
            lines: descriptions of the collectives, which must be equal on all ranks.
            places: " at FILE:LINE" or "" for each, where the user's source calls it.

        Raises:
            CommunicationError: the lines of a rank differ; the message names the first difference.
        """
        text = "\n".join(lines)
        if (self.name, text) in self.world.compared:
            return
        digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
        found = self.gather_bytes(digest, "comparing compiled programs")
        if len(set(found)) > 1:
            located = "\n".join(a + b for a, b in zip(lines, places, strict=True))
            texts = [b.decode().split("\n") for b in self.gather_bytes(located.encode())]
            plain = [b.decode().split("\n") for b in self.gather_bytes(text.encode())]
            longest = max(map(len, plain))
            padded = [p + ["nothing more"] * (longest - len(p)) for p in plain]
            at = next(i for i in range(longest) if len({p[i] for p in padded}) > 1)
            said = [t[at] if at < len(t) else "nothing more" for t in texts]
            shown = "; ".join(f"rank {r}: {s}" for r, s in zip(self.ranks, said, strict=True))
            self.world.broken = CommunicationError(
                f"the ranks of {self.name!r} compile different programs: collective {at + 1} is "
                f"{shown}. Every rank must call the same collectives in the same order"
            )
            raise self.world.broken
        self.world.compared.add((self.name, text))


def _shown(x: AnyArray) -> str:
    return f"{x.dtype} {x.shape}{on_device.place(x)}"


def _rows(x: AnyArray) -> str:
    return f"{x.dtype} rows of {x.shape[1:]}{on_device.place(x)}"


def nothing() -> Steps:
    """Yield no steps: the comparison before each collective already makes the ranks wait."""
    return None
    yield


def _gather_bytes(comm: Communicator, data: bytes) -> Steps:
    lengths = yield from transfers.gathered(comm, np.array(len(data)))
    longest = int(lengths.max())
    own = np.frombuffer(data.ljust(longest), np.uint8)
    found = yield from transfers.gathered(comm, own)
    return [row[:n].tobytes() for row, n in zip(found, lengths)]


_HEADER = 96  # bytes before a message, which say its dtype and shape


def send_steps(comm: Communicator, x: Array, to: int, tag: int) -> Steps:
    """Send an array to rank `to`, after a header that says its dtype and shape."""
    header = np.frombuffer(_shown(x).encode()[:_HEADER].ljust(_HEADER), np.uint8)
    yield comm.send(header, to, tag)
    if x.size:
        yield comm.send(transfers.as_bytes(x), to, tag)
    return None


def receive_steps(comm: Communicator, like: Array, source: int, tag: int, text: str) -> Steps:
    """Return the array that rank `source` sends by `send_steps`; `like` gives its dtype and shape.

    Raises:
        CommunicationError: it sends another dtype or shape; the message begins with `text`.
    """
    header = np.empty(_HEADER, np.uint8)
    yield comm.receive(header, source, tag)
    sent = header.tobytes().decode().strip()
    if sent != _shown(like):
        raise CommunicationError(f"{text}: rank {source} sends {sent}; wanted the same on both")
    out = np.empty(like.shape, like.dtype)
    if out.size:
        yield comm.receive(transfers.as_bytes(out), source, tag)
    return out
