"""The ranks of a program, which of them this thread is, and the groups that they form.

A process that no launcher started as one of several is a world of one rank, without an engine.
Otherwise the first call of `world` connects the ranks, by an engine that claims the process
(`backend.collectives`). Threads that act as ranks have a world each, in `thread_state.world`.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import sys
from collections.abc import Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np

from ..backend import registry
from ..backend.collectives import Communicator, DeviceTransfers, engines, unavailable
from ..context import settings
from ..errors import ArgumentValueError, CommunicationError, UnsupportedOpError
from ..launched import launched
from ..runtime_state import thread_state
from . import on_device, transfers
from .counting import CountingCommunicator
from .on_device import DeviceArray
from .operations import Operation, Queue
from .transfers import Array, Steps

AnyArray: TypeAlias = "Array | DeviceArray"
A = TypeVar("A", bound=AnyArray)
__all__ = ["WORLD_NAMES", "Group", "World", "end_ranks", "forget_world", "group", "world"]

WORLD_NAMES = ("hccl_world_group", "nccl_world_group", "mccl_world_group")
# Tests in a row that find nothing, after which a poll between kernels ends. With Open MPI over TCP,
# a bucket of gradients is complete after 7 to 9 polls of one test, and after 3 to 5 of eight.
_TESTS = 8


class _Alone(Communicator):
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
        self.alone = isinstance(comm, _Alone)
        self.queue = world.new_queue()
        self._messages: dict[tuple[str, int, int], Queue] = {}
        self._devices: dict[tuple[str, int], DeviceTransfers] = {}

    def on_device(self, device: tuple[str, int]) -> DeviceTransfers:
        """Return the group's transfers for arrays on a device.

        The first call connects the devices.
        """
        found = self._devices.get(device)
        if found is None:
            backend = registry.backend(device[0])
            found = self._devices[device] = self.comm.on_device(backend, device[1], self.name)
        return found

    def start(self, text: str, steps: Steps, compared: bool = True) -> Operation:
        """Start a collective; `finish` waits for it.

        `text` describes the collective, and `steps` is the generator that runs it (see
        `transfers`). With `compared`, the ranks first check that their texts are equal.
        """
        return self._start(Operation(self, text, steps, self.queue, compared))

    def _start(self, operation: Operation) -> Operation:
        if self.world.broken is not None:
            raise self.world.broken
        operation.queue.add(operation)
        return operation

    def _message(self, text: str, steps: Steps, key: tuple[str, int, int]) -> Operation:
        """Start sending or receiving a message.

        `key` is ("send" or "receive", peer, tag). Messages with the same key keep their order.
        """
        queue = self._messages.get(key)
        if queue is None:
            queue = self._messages[key] = self.world.new_queue()
        return self._start(Operation(self, text, steps, queue, compared=False))

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

        The arguments are those of `start`.
        """
        return self.finish(self.start(text, steps, compared))

    # ---- collectives of arrays -------------------------------------------------------------------

    def start_all_reduce(self, x: AnyArray, reduction: str) -> Operation:
        """Start an all-reduce of the arrays of all ranks."""
        if isinstance(x, DeviceArray):
            steps = on_device.one(on_device.all_reduce(self, [x], reduction))
        else:
            steps = transfers.all_reduce(self.comm, x, reduction, settings.engine_sums)
        return self.start(f"AllReduce({reduction}) of {_shown(x)}", steps)

    def all_reduce(self, x: A, reduction: str) -> A:
        """Return the reduction of the arrays of all ranks, on every rank."""
        return x if self.alone else self.finish(self.start_all_reduce(x, reduction))

    def start_reduce(self, x: AnyArray, root: int, reduction: str) -> Operation:
        """Start a reduction of the arrays of all ranks.

        Only rank `root` of the group gets the result.
        """
        text = f"Reduce({reduction}) to rank {root} of {_shown(x)}"
        if isinstance(x, DeviceArray):
            return self.start(text, on_device.reduce(self, x, root, reduction))
        return self.start(text, transfers.reduce(self.comm, x, root, reduction))

    def start_all_gather(self, x: AnyArray) -> Operation:
        """Start to concatenate the arrays of all ranks along axis 0."""
        if isinstance(x, DeviceArray):
            steps = on_device.all_gather(self, x, (x.shape[0],) * self.size)
        else:
            steps = transfers.all_gather(self.comm, x)
        return self.start(f"AllGather of {_shown(x)}", steps)

    def all_gather(self, x: A) -> A:
        """Return the arrays of all ranks, concatenated along axis 0."""
        return x if self.alone else self.finish(self.start_all_gather(x))

    def start_all_gather_rows(self, x: AnyArray, lengths: Sequence[int]) -> Operation:
        """Start to concatenate arrays along axis 0, of which rank r has `lengths[r]` rows."""
        text = f"AllGather of {_rows(x)}, {list(lengths)} by rank"
        if isinstance(x, DeviceArray):
            return self.start(text, on_device.all_gather(self, x, lengths))
        return self.start(text, transfers.all_gather_rows(self.comm, x, lengths))

    def start_reduce_scatter(self, x: AnyArray, reduction: str) -> Operation:
        """Start a reduction of the arrays of all ranks; each rank gets an equal part of axis 0."""
        if isinstance(x, DeviceArray):
            lengths = (x.shape[0] // self.size,) * self.size
            steps = on_device.reduce_scatter(self, x, lengths, reduction)
        else:
            steps = transfers.reduce_scatter(self.comm, x, reduction)
        return self.start(f"ReduceScatter({reduction}) of {_shown(x)}", steps)

    def reduce_scatter(self, x: A, reduction: str) -> A:
        """Return this rank's part along axis 0 of the reduction of the arrays of all ranks."""
        return x if self.alone else self.finish(self.start_reduce_scatter(x, reduction))

    def start_reduce_scatter_rows(
        self, x: AnyArray, lengths: Sequence[int], reduction: str
    ) -> Operation:
        """Start a reduction of the arrays of all ranks, of which rank r gets `lengths[r]` rows."""
        if isinstance(x, DeviceArray):
            steps = on_device.reduce_scatter(self, x, lengths, reduction)
        else:
            steps = transfers.reduce_scatter_rows(self.comm, x, lengths, reduction)
        text = f"ReduceScatter({reduction}) of {_shown(x)}, {list(lengths)} rows by rank"
        return self.start(text, steps)

    def start_broadcast(self, x: AnyArray, root: int) -> Operation:
        """Start to copy the array of rank `root` of the group to every rank."""
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
        """Start an exchange in which every rank sends a part of its `x` (along axis 0) to each.

        Arguments are those of `transfers.all_to_all`.
        """
        if isinstance(x, DeviceArray):
            steps = on_device.all_to_all(self, x, lengths, received)
        else:
            steps = transfers.all_to_all(self.comm, x, lengths, received)
        return self.start(f"AlltoAll of {_rows(x)}", steps)  # the lengths may differ by rank

    def all_to_all(self, x: A, lengths: Sequence[int], received: Sequence[int]) -> A:
        """Exchange parts of arrays; return the parts from all ranks, concatenated along axis 0.

        The arguments are those of `transfers.all_to_all`.
        """
        if self.alone:
            return x
        return self.finish(self.start_all_to_all(x, lengths, received))

    def send(self, x: Array, to: int, tag: int = 0) -> None:
        """Send an array to rank `to` of the group; the receiver must use the same `tag`."""
        self.finish(self.start_send(x, to, tag))

    def start_send(self, x: Array, to: int, tag: int = 0) -> Operation:
        """Start sending an array to rank `to` of the group.

        The receiver must use the same `tag`.
        """
        text = f"Send of {_shown(x)} to rank {to}"
        return self._message(text, _send(self.comm, x, to, tag), ("send", to, tag))

    def receive(self, like: Array, source: int, tag: int = 0) -> Array:
        """Receive an array from rank `source` of the group; `like` gives its shape and dtype."""
        return self.finish(self.start_receive(like, source, tag))

    def start_receive(self, like: Array, source: int, tag: int = 0) -> Operation:
        """Start to receive an array from rank `source` of the group.

        `like` gives its shape and dtype.
        """
        text = f"Receive of {_shown(like)} from rank {source}"
        steps = _receive(self.comm, like, source, tag, text)
        return self._message(text, steps, ("receive", source, tag))

    def start_barrier(self) -> Operation:
        """Start a barrier, which is complete when all ranks of the group have started it."""
        return self.start("Barrier", _nothing())

    def barrier(self) -> None:
        """Wait until all ranks of the group have called this method."""
        if self.size > 1:
            self.finish(self.start_barrier())

    def gather_bytes(self, data: bytes, text: str = "gathering bytes") -> list[bytes]:
        """Gather bytes, which may differ in length, from all ranks.

        `text` describes them in messages.
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


def _nothing() -> Steps:
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


def _send(comm: Communicator, x: Array, to: int, tag: int) -> Steps:
    header = np.frombuffer(_shown(x).encode()[:_HEADER].ljust(_HEADER), np.uint8)
    yield comm.send(header, to, tag)
    if x.size:
        yield comm.send(transfers.as_bytes(x), to, tag)
    return None


def _receive(comm: Communicator, like: Array, source: int, tag: int, text: str) -> Steps:
    header = np.empty(_HEADER, np.uint8)
    yield comm.receive(header, source, tag)
    sent = header.tobytes().decode().strip()
    if sent != _shown(like):
        raise CommunicationError(f"{text}: rank {source} sends {sent}; wanted the same on both")
    out = np.empty(like.shape, like.dtype)
    if out.size:
        yield comm.receive(transfers.as_bytes(out), source, tag)
    return out


class World:
    """All ranks of a program, from the perspective of one of them.

    Attributes:
        engine: name of the engine; "none" with one rank.
        rank: number of this rank.
        size: number of ranks.
        whole: the group of all ranks.
        groups: name -> group, of the groups that contain this rank.
        others: name -> ranks, of the groups that do not contain this rank.
        broken: the error after which no collective can run; None if there was no such error.
        parallel: options of `set_auto_parallel_context`, for a thread that acts as a rank.
        machines: the machine name of each rank; None until first needed.
        compared: (group, text) of the programs that the ranks of the group have compared.
        started_buckets: name of a group -> number of buckets started (`ranks.buckets`).
        queues: the queues of collectives and messages of all groups.
        backends: name of a group -> the engine's name as users write it, such as "nccl".
    """

    def __init__(self, engine: str, comm: Communicator) -> None:
        self.engine = engine
        self.rank, self.size = comm.rank, comm.size
        self.queues: list[Queue] = []
        self.whole = Group(self, WORLD_NAMES[0], tuple(range(comm.size)), comm)
        self.groups: dict[str, Group] = dict.fromkeys(WORLD_NAMES, self.whole)
        self.others: dict[str, tuple[int, ...]] = {}
        self.broken: CommunicationError | None = None
        self.parallel: dict[str, object] = {}
        self.machines: list[bytes] | None = None
        self.compared: set[tuple[str, str]] = set()
        self.started_buckets: dict[str, int] = {}
        self.backends: dict[str, str] = {}

    def new_queue(self) -> Queue:
        """Return a new queue that every wait of this rank advances."""
        self.queues.append(Queue())
        return self.queues[-1]

    def create_group(self, name: str, ranks: Sequence[int]) -> None:
        """Form a named group of ranks; its members wait for each other.

        If a group of this name with these ranks exists, nothing happens.

        Raises:
            ArgumentValueError: the name is taken, or `ranks` are not different ranks of the world.
        """
        members = tuple(ranks)
        if name in self.groups or name in self.others:
            found = self.ranks_of("create_group", name)
            if found == members:
                return
            raise ArgumentValueError(
                f"create_group: the group {name!r} of the ranks {list(found)} exists already; got "
                f"rank_ids={list(members)}; wanted another name, or the same ranks"
            )
        if not members or len(set(members)) < len(members) or not set(members) <= set(
            range(self.size)
        ):  # fmt: skip
            raise ArgumentValueError(
                f"create_group: got rank_ids={list(members)}; wanted different ranks from 0 to "
                f"{self.size - 1}"
            )
        if self.rank not in members:
            self.others[name] = members
            return
        comm = self.whole.comm.split(members) if len(members) > 1 else _Alone()
        self.groups[name] = Group(self, name, members, comm)

    def group_of(self, ranks: Sequence[int]) -> str:
        """Return the name of the group of the given ranks in the given order.

        `ranks` must include this rank. The first call for these ranks forms the group: all of them
        must make it, and they wait for each other.
        """
        members = tuple(ranks)
        if members == self.whole.ranks:
            return self.whole.name
        name = f"ranks {', '.join(map(str, members))}"
        if name not in self.groups:
            self.create_group(name, members)
        return name

    def destroy_group(self, name: str) -> None:
        """Remove a group; do nothing if there is none of this name.

        Raises:
            ArgumentValueError: it is the group of all ranks.
        """
        if name in WORLD_NAMES:
            raise ArgumentValueError(
                f"destroy_group: got {name!r}, which is all ranks; wanted a group of create_group"
            )
        self.others.pop(name, None)
        self.backends.pop(name, None)
        self.started_buckets.pop(name, None)
        for key in [k for k in self.groups if k == name or k.startswith(f"{name}, lane ")]:
            self.groups.pop(key).close()

    def ranks_of(self, owner: str, name: str) -> tuple[int, ...]:
        """Return the ranks of a named group, which need not contain this rank.

        Raises:
            ArgumentValueError: no such group; `owner` is the function that the user called.
        """
        if name in self.groups:
            return self.groups[name].ranks
        if name in self.others:
            return self.others[name]
        known = [
            *WORLD_NAMES[:2],
            *(n for n in self.groups if n not in WORLD_NAMES and ", lane " not in n),
            *self.others,
        ]
        raise ArgumentValueError(
            f"{owner}: got group={name!r}; wanted one of {', '.join(map(repr, known))} (all "
            f"ranks), or a group that create_group({name!r}, ranks) made before"
        )

    def group(self, owner: str, name: str) -> Group:
        """Return a named group that contains this rank.

        Raises:
            ArgumentValueError: no such group, or this rank is no member; `owner` is the function
                that the user called.
        """
        found = self.groups.get(name)
        if found is None:
            members = self.ranks_of(owner, name)
            raise ArgumentValueError(
                f"{owner}: rank {self.rank} is no member of the group {name!r} of the ranks "
                f"{', '.join(map(str, members))}; only members can communicate in it"
            )
        return found

    def end(self) -> None:
        """Wait until all ranks have ended their programs; called at the end of this rank's program.

        Raises:
            CommunicationError: another rank waits in a collective that this rank will not call.
        """
        if self.broken is not None:
            raise self.broken
        several = {id(g): g for g in self.groups.values() if g.size > 1}
        ends = [(g, g.start("the end of the program", _nothing())) for g in several.values()]
        while ends:
            for g, operation in ends:
                with contextlib.suppress(TimeoutError):
                    g.queue.wait(operation, 0.02, late=TimeoutError)
            ends = [(g, operation) for g, operation in ends if not operation.done]
        for queue in self.queues:
            while queue.waiting:
                queue.wait(queue.waiting[0], settings.communication_timeout)

    def poll(self) -> None:
        """Advance all unfinished collectives and messages of this rank without blocking.

        An engine may need several tests to notice what has arrived: MPI handles in one test what it
        has read from the network in the test before. So tests go on until `_TESTS` of them in a row
        have found nothing.
        """
        idle = 0
        while idle < _TESTS:
            busy = [queue for queue in self.queues if queue.waiting]
            if not busy:
                return
            for queue in busy:
                idle = 0 if queue.poll() else idle + 1


_process_world: tuple[int, World] | None = None  # the process that made it, and the world


def world() -> World:
    """Return the world of this thread; the first call connects the ranks.

    Raises:
        UnsupportedOpError: a launcher started several processes, and no engine can connect them.
    """
    own = thread_state.world
    if own is not None:
        return own
    global _process_world
    if _process_world is None or _process_world[0] != os.getpid():
        if launched() is None:
            return _ALONE
        _process_world = (os.getpid(), _connected())
    return _process_world[1]


def group(owner: str, name: str) -> Group:
    """Return a named group of this thread's world; `owner` is the function that the user called.

    Raises:
        ArgumentValueError: no such group, or this rank is no member.
        UnsupportedOpError: see `world`.
    """
    return world().group(owner, name)


def forget_world() -> None:
    """Discard the world of the process, so that the next `world` call makes a new one."""
    global _process_world, _ALONE
    _process_world = None
    _ALONE = World("none", _Alone())


def _end(made: World) -> None:
    """Wait at the exit of the process until all ranks have ended; abort them if one cannot end."""
    try:
        made.end()
    except CommunicationError as error:
        sys.stderr.write(f"duograph: rank {made.rank} has ended its program: {error}\n")
        made.whole.comm.abort(str(error))


def end_ranks(code: object) -> None:
    """End all ranks if this one exits with a status other than 0, because others may wait for it.

    Args:
        code: the argument of `sys.exit`: None or 0 is success, another int the exit status, and
            anything else is printed and means status 1.
    """
    if code in (None, 0) or _process_world is None or _process_world[1].size == 1:
        return
    if not isinstance(code, int):
        sys.stderr.write(f"{code}\n")
    status = code if isinstance(code, int) else 1
    _process_world[1].whole.comm.abort(f"exit status {status}", status)


def _connected() -> World:
    """Return the world made by the first available engine that claims this process."""
    found = launched()
    assert found is not None
    reasons = []
    for spec in engines().values():
        if not spec.claims():
            continue
        reason = unavailable(spec)
        if reason is None:
            made = World(spec.name, spec.world())
            if made.size == found.size:
                atexit.register(_end, made)
                return made
            reason = f"it finds {made.size} ranks"
        reasons.append(f"{spec.name}: {reason}")
    why = "; ".join(reasons) if reasons else "no installed engine knows this launcher"
    raise UnsupportedOpError(
        f"{found.launcher} started this process as one of {found.size} "
        f"({found.variable}={found.size}), and it cannot communicate with the others ({why}): each "
        f"would train a model of its own. Start the ranks with `duograph run -n {found.size}`, "
        f"start one process, or unset {found.variable} to run them as programs of their own"
    )


_ALONE = World("none", _Alone())
