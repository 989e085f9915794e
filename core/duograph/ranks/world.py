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

import numpy as np

from ..backend.collectives import Communicator, engines, unavailable
from ..context import settings
from ..errors import ArgumentValueError, CommunicationError, UnsupportedOpError
from ..launched import launched, mark_rank, rank_of_parent
from ..runtime_state import thread_state
from .group import Alone, Group, Unconnected, nothing, receive_steps, send_steps
from .operations import Queue, user_line

__all__ = ["WORLD_NAMES", "Group", "World", "end_ranks", "forget_world", "group", "world"]

WORLD_NAMES = ("hccl_world_group", "nccl_world_group", "mccl_world_group")
_FORMING = 32002  # tag of the messages by which ranks agree on a new group
_SHOWN = 400  # bytes of its description


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
        """Return a new queue; every wait of this rank also runs the operations in it."""
        self.queues.append(Queue())
        return self.queues[-1]

    def create_group(self, name: str, ranks: Sequence[int]) -> None:
        """Form a named group of ranks.

        All members must call this method, and wait for each other. A rank that is no member only
        stores the group's name and ranks. If a group of this name with these ranks exists, nothing
        happens.

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
        self._check_members(members)
        if self.rank not in members:
            self.others[name] = members
            return
        if len(members) > 1 and thread_state.builder is None:  # else see `group_of`
            self._agree(name, members)
        self._form(name, members)

    def _check_members(self, members: tuple[int, ...]) -> None:
        if not members or len(set(members)) < len(members) or not set(members) <= set(
            range(self.size)
        ):  # fmt: skip
            raise ArgumentValueError(
                f"create_group: got rank_ids={list(members)}; wanted different ranks from 0 to "
                f"{self.size - 1}"
            )

    def _form(self, name: str, members: tuple[int, ...]) -> None:
        comm = self.whole.comm.split(members) if len(members) > 1 else Alone()
        self.groups[name] = Group(self, name, members, comm)

    def _agree(self, name: str, members: tuple[int, ...]) -> None:
        """Wait until all members of a new group form it, and check that all form the same one.

        An engine forms groups without a deadline, in the order of the calls, and does not know
        their names. Members that form groups in different orders would mix them up.

        Raises:
            CommunicationError: a member forms another group, or does not call in time.
        """
        shown = f"{name!r} of the ranks {', '.join(map(str, members))}{user_line()}"
        digest = hashlib.blake2b(repr((name, members)).encode(), digest_size=16).digest()
        own = np.frombuffer(digest + shown.encode()[:_SHOWN].ljust(_SHOWN), np.uint8)
        first, whole = min(members), self.whole
        others = [r for r in members if r != self.rank] if self.rank == first else [first]
        sent, awaited = [], []
        for r in others:
            steps = send_steps(whole.comm, own, r, _FORMING)
            text = f"create_group({name!r}): message to rank {r}"
            sent.append(whole.message(text, steps, ("send", r, _FORMING)))
            text = f"create_group({name!r}): message from rank {r}"
            steps = receive_steps(whole.comm, own, r, _FORMING, text)
            awaited.append(whole.message(text, steps, ("receive", r, _FORMING)))
        received = [whole.finish(operation) for operation in awaited]
        for operation in sent:
            whole.finish(operation)
        for rank, said in zip(others, received, strict=True):
            if (said[:16] != own[:16]).any():
                other = said[16:].tobytes().decode(errors="replace").strip()
                self.broken = CommunicationError(
                    f"ranks form different groups: rank {self.rank} forms {shown}; rank {rank} "
                    f"forms {other}. All members of a group must form the same groups in the same "
                    "order"
                )
                raise self.broken

    def group_of(self, ranks: Sequence[int]) -> str:
        """Return the name of the group of the given ranks in the given order.

        `ranks` must include this rank. The first call for these ranks forms the group: all of them
        must make it. The compiler calls it while it holds locks that other ranks, as threads, wait
        for; so they must not exchange messages here. They need not agree on a name.
        """
        members = tuple(ranks)
        if members == self.whole.ranks:
            return self.whole.name
        name = f"ranks {', '.join(map(str, members))}"
        if name not in self.groups:
            self._check_members(members)
            self._form(name, members)
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
        ends = [(g, g.start("the end of the program", nothing())) for g in several.values()]
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

        Polls until as many in a row as the engine needs (`Communicator.idle_polls`) find nothing.
        """
        idle = 0
        while idle < self.whole.comm.idle_polls:
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
        _process_world = (os.getpid(), _of_parent() or _connected())
    return _process_world[1]


def _of_parent() -> World | None:
    """Return a world without communication if a rank has started this process, which is no rank.

    Its rank, size and groups are those of the rank. Such processes load data, for example. Had they
    the rank's connections, they would take messages that the rank waits for.
    """
    told = rank_of_parent()
    if told is None:
        return None
    made = World("none", Unconnected(*told))
    if _process_world is not None:  # a fork has the rank's groups too
        before = _process_world[1]
        made.others, made.backends = dict(before.others), dict(before.backends)
        made.machines = before.machines
        for name, each in before.groups.items():
            if name not in WORLD_NAMES:
                comm = Alone() if each.alone else Unconnected(each.rank, each.size, told[0])
                made.groups[name] = Group(made, name, each.ranks, comm)
    return made


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
    _ALONE = World("none", Alone())


def _end(made: World, process: int) -> None:
    """Wait at the exit of the process until all ranks have ended; abort them if one cannot end.

    In a fork of the rank, which is process number `process`, nothing happens.
    """
    if os.getpid() != process:
        return
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
    if _process_world[0] != os.getpid():  # a fork of a rank ends by itself
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
                mark_rank(made.rank, made.size)
                atexit.register(_end, made, os.getpid())
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


_ALONE = World("none", Alone())
