"""MindSpore's communication functions: queries of ranks, and groups of ranks.

A rank is one of several processes that run the same program; a process that no launcher started as
one of several is rank 0 of 1. The first of these functions that needs the ranks connects them.
`comm_func` holds the functions that communicate tensors.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

from ..call_errors import explaining
from ..errors import ArgumentError, ArgumentValueError
from ..option_checks import check_options
from ..random_state import random_stream
from ..ranks.world import WORLD_NAMES, Group, World, world
from ..tensor import Tensor

__all__ = [
    "init",
    "release",
    "get_rank",
    "get_group_size",
    "get_local_rank",
    "get_local_rank_size",
    "create_group",
    "destroy_group",
    "get_process_group_ranks",
    "get_world_rank_from_group_rank",
    "get_group_rank_from_world_rank",
    "tree_sum",
    "micro_batch",
    "GlobalComm",
    "HCCL_WORLD_COMM_GROUP",
    "NCCL_WORLD_COMM_GROUP",
]

HCCL_WORLD_COMM_GROUP, NCCL_WORLD_COMM_GROUP = WORLD_NAMES[:2]


class GlobalComm:
    """Class attributes that MindSpore programs read about the communication.

    `BACKEND` is the name of the engine that connects the ranks, "none" before `init` is called;
    `WORLD_COMM_GROUP` the name of the group of all ranks; `INITED` whether `init` has been called,
    without `release` after it.
    """

    BACKEND = "none"
    WORLD_COMM_GROUP = HCCL_WORLD_COMM_GROUP
    INITED = False


def init(backend_name: str | None = None) -> None:
    """Connect the ranks (`mindspore.communication.init`); a single process only sets a flag.

    Args:
        backend_name: accepted and ignored; the installed engines decide.

    Raises:
        NotImplementedError: a launcher started this process as one of several, and no installed
            engine connects them.
    """
    check_options("communication.init", backend_name=backend_name)
    GlobalComm.BACKEND = world().engine
    GlobalComm.INITED = True


def release() -> None:
    """Destroy the groups of `create_group` and clear the flag that `init` set.

    The ranks stay connected until their processes end, so that `init` can be called again.
    """
    own = world()
    for name in [n for n in (*own.groups, *own.others) if n not in WORLD_NAMES]:
        own.destroy_group(name)
    GlobalComm.INITED = False


@explaining
def get_rank(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """Return the rank of this process in a group, 0 in a single process.

    Raises:
        ValueError: no such group, or this process is no member.
        NotImplementedError: a launcher started several processes, and no engine connects them.

    Examples:
        >>> from duograph.communication import get_rank
        >>> get_rank()
        0
    """
    return _group("get_rank", group).rank


@explaining
def get_group_size(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """Return the number of ranks in a group, 1 in a single process.

    Raises:
        ValueError: no such group.
        NotImplementedError: a launcher started several processes, and no engine connects them.

    Examples:
        >>> from duograph.communication import get_group_size
        >>> get_group_size()
        1
    """
    return len(world().ranks_of("get_group_size", _name("get_group_size", group)))


@explaining
def get_local_rank(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """Return the position of this rank, from 0, among those ranks of a group on this machine.

    Raises:
        ValueError: no such group, or this process is no member.
    """
    own = _group("get_local_rank", group)
    return _on_this_machine(own).index(own.rank)


@explaining
def get_local_rank_size(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """Return the number of ranks of a group on this machine.

    Raises:
        ValueError: no such group, or this process is no member.
    """
    return len(_on_this_machine(_group("get_local_rank_size", group)))


@explaining
def create_group(group: str, rank_ids: list[int], options: object = None) -> None:
    """Form a named group of ranks (`mindspore.communication.create_group`).

    All members must call it, and they wait for each other. Other ranks may call it too; they can
    then query the size and the ranks of the group.

    Args:
        group: name of the new group.
        rank_ids: distinct world ranks of the members, in the order of the group.
        options: accepted and ignored.

    Raises:
        ValueError: the name belongs to a group of other ranks, or a rank does not exist or is
            repeated.

    Examples:
        >>> from duograph.communication import create_group, destroy_group, get_group_size
        >>> create_group("mine", [0])
        >>> get_group_size("mine")
        1
        >>> destroy_group("mine")
    """
    check_options("communication.create_group", options=options)
    name = _name("create_group", group)
    if not isinstance(rank_ids, (list, tuple)) or not all(type(r) is int for r in rank_ids):
        raise ArgumentError(f"create_group: got rank_ids={rank_ids!r}; wanted a list of ints")
    world().create_group(name, rank_ids)


@explaining
def destroy_group(group: str) -> None:
    """Remove a group that `create_group` formed; do nothing if no group has this name.

    Raises:
        ValueError: it is the group of all ranks.
    """
    world().destroy_group(_name("destroy_group", group))


@explaining
def get_process_group_ranks(group: str = HCCL_WORLD_COMM_GROUP) -> list[int]:
    """Return the world ranks of the members of a group.

    Raises:
        ValueError: no such group.

    Examples:
        >>> from duograph.communication import get_process_group_ranks
        >>> get_process_group_ranks()
        [0]
    """
    return list(world().ranks_of("get_process_group_ranks", group))


@explaining
def get_world_rank_from_group_rank(group: str, group_rank_id: int) -> int:
    """Return the world rank of the member with rank `group_rank_id` in a group.

    Raises:
        ValueError: no such group, or no such rank in it.
    """
    owner = "get_world_rank_from_group_rank"
    members = world().ranks_of(owner, group)
    if type(group_rank_id) is not int or not 0 <= group_rank_id < len(members):
        raise ArgumentValueError(
            f"{owner}: got rank {group_rank_id}; wanted one of the {len(members)} of {group!r}, "
            f"from 0 to {len(members) - 1}"
        )
    return members[group_rank_id]


@explaining
def get_group_rank_from_world_rank(world_rank_id: int, group: str) -> int:
    """Return the rank in a group of the member with world rank `world_rank_id`.

    Raises:
        ValueError: no such group, or the rank is no member.
    """
    owner = "get_group_rank_from_world_rank"
    members = world().ranks_of(owner, group)
    if type(world_rank_id) is not int or world_rank_id not in members:
        raise ArgumentValueError(
            f"{owner}: got rank {world_rank_id}; wanted a member of {group!r}: "
            f"{', '.join(map(str, members))}"
        )
    return members.index(world_rank_id)


def tree_sum(tensors: Sequence[Tensor]) -> Tensor:
    """Return the sum of tensors, added in the order in which collectives add over ranks.

    Neighbours are added, then neighbours of these sums, and so on: (x0 + x1) + (x2 + x3). So one
    process that adds the gradients of four micro-batches gets the same bits as four ranks, and as
    two ranks with two micro-batches each.

    Args:
        tensors: Tensors of the same shape and dtype, at least one.

    Raises:
        ValueError: the list is empty.

    Examples:
        >>> import duograph as ms
        >>> from duograph.communication import tree_sum
        >>> print(tree_sum([ms.Tensor([1.0]), ms.Tensor([2.0]), ms.Tensor([4.0])]))
        [7.]
    """
    level = list(tensors)
    if not level:
        raise ArgumentValueError("tree_sum: got no tensors; wanted one or more")
    while len(level) > 1:
        pairs = [level[i] + level[i + 1] for i in range(0, len(level) - 1, 2)]
        level = pairs + level[len(pairs) * 2 :]
    return level[0]


def micro_batch(index: int) -> contextlib.AbstractContextManager[None]:
    """Return a context in which random ops draw the numbers of one micro-batch of the whole batch.

    Each micro-batch has its own random sequence, which continues at the next training step. So
    dropout has the same masks wherever a micro-batch runs: on four ranks that call
    ``micro_batch(get_rank())``, and in one process that calls it for 0 to 3. `Model.train` uses the
    rank under DATA_PARALLEL.

    Args:
        index: number of the micro-batch in the batch of all ranks, 0 or more.

    Raises:
        TypeError: not an int.
        ValueError: below 0, or 2 ** 23 or more.

    Examples:
        >>> import duograph as ms
        >>> from duograph.communication import micro_batch
        >>> ms.set_seed(1)
        >>> with micro_batch(0):
        ...     a = ms.ops.rand(2)
        >>> with micro_batch(1):
        ...     b = ms.ops.rand(2)
        >>> bool((a == b).any())
        False
    """
    if isinstance(index, bool) or not isinstance(index, int):
        raise ArgumentError(f"micro_batch: got {index!r}; wanted an int")
    if not 0 <= index < 2**23:
        raise ArgumentValueError(f"micro_batch: got {index}; wanted 0 to {2**23 - 1}")
    return random_stream(index)


def _name(owner: str, group: object) -> str:
    if not isinstance(group, str):
        raise ArgumentError(f"{owner}: got group={group!r}; wanted the name of a group")
    return group


def _group(owner: str, group: object) -> Group:
    return world().group(owner, _name(owner, group))


def _machine() -> bytes:
    """Return the name of this machine; equal for all processes on it."""
    node = os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")
    return node.encode()


def _on_this_machine(group: Group) -> list[int]:
    """Return the positions in a group of those members that run on this machine.

    The first call in a process gathers the machine names of all ranks of the world, so each of them
    must make it; they wait for each other.
    """
    own: World = group.world
    if own.machines is None:
        own.machines = own.whole.gather_bytes(_machine())
    here = own.machines[own.rank]
    return [i for i, r in enumerate(group.ranks) if own.machines[r] == here]
