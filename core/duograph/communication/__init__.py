"""MindSpore's communication functions for a single process, which is rank 0 of 1.

They exist so that scripts for several devices run unchanged; nothing is communicated. `comm_func`
holds the functions that communicate tensors.
"""

from __future__ import annotations

from ..call_errors import explaining
from ..errors import ArgumentValueError
from ..launched import refuse_ranks
from ..option_checks import check_options

__all__ = [
    "init",
    "release",
    "get_rank",
    "get_group_size",
    "get_local_rank",
    "get_local_rank_size",
    "create_group",
    "destroy_group",
    "get_world_rank_from_group_rank",
    "get_group_rank_from_world_rank",
    "GlobalComm",
    "HCCL_WORLD_COMM_GROUP",
    "NCCL_WORLD_COMM_GROUP",
]

HCCL_WORLD_COMM_GROUP = "hccl_world_group"
NCCL_WORLD_COMM_GROUP = "nccl_world_group"
_groups: dict[str, list[int]] = {}


class GlobalComm:
    """Names of the world group, as in MindSpore."""

    BACKEND = "none"
    WORLD_COMM_GROUP = HCCL_WORLD_COMM_GROUP
    INITED = False


def init(backend_name: str | None = None) -> None:
    """Initialise communication; in a single process, only a flag is set.

    Raises:
        NotImplementedError: a launcher such as mpiexec started this process as one of several.
    """
    refuse_ranks("communication.init")
    check_options("communication.init", backend_name=backend_name)
    GlobalComm.INITED = True


def release() -> None:
    """Shut down communication: clear the flag that `init` set."""
    GlobalComm.INITED = False


def get_rank(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """Return the rank of this process in a group, always 0.

    Raises:
        ValueError: no such group.
        NotImplementedError: a launcher such as mpiexec started this process as one of several.
    """
    _check_group("get_rank", group)
    return 0


@explaining
def get_group_size(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """Return the number of processes in a group, always 1.

    Raises:
        ValueError: no such group.
        NotImplementedError: a launcher such as mpiexec started this process as one of several.
    """
    _check_group("get_group_size", group)
    return 1


get_local_rank = get_rank
get_local_rank_size = get_group_size


@explaining
def create_group(group: str, rank_ids: list[int], options: object = None) -> None:
    """Create a named group of ranks; the only rank is 0.

    Raises:
        ValueError: a rank other than 0.
    """
    refuse_ranks("create_group")
    check_options("communication.create_group", options=options)
    if list(rank_ids) != [0]:
        raise ArgumentValueError(
            f"create_group: got rank_ids={list(rank_ids)}; wanted [0], the only process"
        )
    _groups[group] = list(rank_ids)


def destroy_group(group: str) -> None:
    """Remove a communication group by name."""
    _groups.pop(group, None)


@explaining
def get_world_rank_from_group_rank(group: str, group_rank_id: int) -> int:
    """Return the world rank for a rank in a group, always 0.

    Raises:
        ValueError: no such group, or a rank other than 0.
    """
    _check_group("get_world_rank_from_group_rank", group)
    return _only_rank("get_world_rank_from_group_rank", group_rank_id)


@explaining
def get_group_rank_from_world_rank(world_rank_id: int, group: str) -> int:
    """Return the rank in a group for a world rank, always 0.

    Raises:
        ValueError: no such group, or a rank other than 0.
    """
    _check_group("get_group_rank_from_world_rank", group)
    return _only_rank("get_group_rank_from_world_rank", world_rank_id)


def _check_group(name: str, group: str) -> None:
    """Raise ArgumentValueError unless `group` is the world or was created by `create_group`.

    Raises UnsupportedOpError in a process that is one of several.
    """
    refuse_ranks(name)
    if group not in (HCCL_WORLD_COMM_GROUP, NCCL_WORLD_COMM_GROUP, *_groups):
        raise ArgumentValueError(
            f"{name}: got group={group!r}; wanted {HCCL_WORLD_COMM_GROUP!r}, "
            f"{NCCL_WORLD_COMM_GROUP!r} or a group of create_group"
        )


def _only_rank(name: str, rank: int) -> int:
    if rank != 0:
        raise ArgumentValueError(f"{name}: got rank {rank}; wanted 0, the only process")
    return rank
