"""Process groups of `duograph.mint.distributed`: creation, ranks and sizes.

`mint/distributed/__init__.py` exports these functions; `duograph.communication` stores the groups.
"""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Sequence

from ... import communication as _comm
from ...context import set_context
from ...errors import ArgumentError, ArgumentValueError
from ...option_checks import check_options
from ...ranks.world import WORLD_NAMES, world

__all__ = [
    "destroy_process_group", "get_backend", "get_global_rank", "get_group_rank",
    "get_process_group_ranks", "get_rank", "get_world_size", "init_process_group", "is_available",
    "is_initialized", "new_group",
]  # fmt: skip

WORLD = _comm.HCCL_WORLD_COMM_GROUP
_BACKENDS = ("hccl", "nccl", "mccl", "gloo")


def name_of(owner: str, group: str | None) -> str:
    """Return the name of a process group; raise an error if there is no such group."""
    if group is not None and not isinstance(group, str):
        raise ArgumentError(f"{owner}: got group={group!r}; wanted a string or None")
    world().ranks_of(owner, group or WORLD)  # it knows the groups, and says which there are
    return group or WORLD


def is_available() -> bool:
    """Return whether communication is available: True.

    Examples:
        >>> from duograph import mint
        >>> mint.distributed.is_available()
        True
    """
    return True


def is_initialized() -> bool:
    """Return whether `init_process_group` was called.

    Examples:
        >>> from duograph import mint
        >>> mint.distributed.init_process_group()
        >>> mint.distributed.is_initialized()
        True
        >>> mint.distributed.destroy_process_group()
        >>> mint.distributed.is_initialized()
        False
    """
    return bool(_comm.GlobalComm.INITED)


def init_process_group(
    backend: str = "hccl",
    init_method: str | None = None,
    timeout: object = None,
    world_size: int = -1,
    rank: int = -1,
    store: object = None,
    group_name: str = "",
    pg_options: object = None,
    device_id: object = None,
) -> None:
    """Create the group of all processes
    (`mindspore.mint.distributed.init_process_group`).

    Args:
        backend: name that `get_backend` returns; it does not select the engine that communicates.
        init_method, store, group_name, pg_options, device_id: have no meaning here: the launcher
            connects the ranks.
        timeout: `datetime.timedelta` after which a collective fails; None leaves the setting
            `communication_timeout` unchanged.
        world_size: number of ranks, or -1 for as many as there are.
        rank: number of this rank, or -1.

    Raises:
        TypeError: a `timeout` that is no `timedelta`.
        ValueError: an unknown backend, or another `world_size` or `rank` than the launcher's.

    Examples:
        >>> from duograph import mint
        >>> mint.distributed.init_process_group()
        >>> mint.distributed.get_world_size()
        1
        >>> mint.distributed.destroy_process_group()
    """
    check_options(
        "mint.distributed.init_process_group", init_method=init_method, store=store,
        group_name=group_name, pg_options=pg_options, device_id=device_id,
    )  # fmt: skip
    if backend not in _BACKENDS:
        raise ArgumentValueError(
            f"init_process_group: got backend={backend!r}; wanted one of {', '.join(_BACKENDS)}"
        )
    own = world()
    for name, given, wanted in (("world_size", world_size, own.size), ("rank", rank, own.rank)):
        if given not in (-1, wanted):
            raise ArgumentValueError(
                f"init_process_group: got {name}={given}; wanted {wanted}, as the launcher of this "
                f"process says, or -1. `duograph run -n N script.py` starts N ranks"
            )
    if timeout is not None:
        if not isinstance(timeout, datetime.timedelta):
            raise ArgumentError(
                f"init_process_group: got timeout={timeout!r}; wanted a datetime.timedelta or None"
            )
        set_context(communication_timeout=timeout.total_seconds())
    _comm.init()
    own.backends[WORLD] = backend


def destroy_process_group(group: str | None = None) -> None:
    """Remove a group; None removes all groups
    (`mindspore.mint.distributed.destroy_process_group`).

    Raises:
        ValueError: no such group.
    """
    name = name_of("destroy_process_group", group)
    if name not in WORLD_NAMES:
        _comm.destroy_group(name)
        return
    world().backends.pop(WORLD, None)
    _comm.release()


def get_rank(group: str | None = None) -> int:
    """Return the number of this process in a group, or -1 if it is no member
    (`mindspore.mint.distributed.get_rank`).

    Raises:
        ValueError: no such group.

    Examples:
        >>> from duograph import mint
        >>> mint.distributed.get_rank()
        0
    """
    name = name_of("get_rank", group)
    return _comm.get_rank(name) if name in world().groups else -1


def get_world_size(group: str | None = None) -> int:
    """Return the number of processes in a group, -1 if this one is no member
    (`mindspore.mint.distributed.get_world_size`).

    Raises:
        ValueError: no such group.

    Examples:
        >>> from duograph import mint
        >>> mint.distributed.get_world_size()
        1
    """
    name = name_of("get_world_size", group)
    return _comm.get_group_size(name) if name in world().groups else -1


def get_backend(group: str | None = None) -> str:
    """Return the name of the backend that a group was created with, ``"hccl"`` by default
    (`mindspore.mint.distributed.get_backend`).

    Raises:
        ValueError: no such group.

    Examples:
        >>> from duograph import mint
        >>> mint.distributed.get_backend()
        'hccl'
    """
    return world().backends.get(name_of("get_backend", group), "hccl")


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: object = None,
    backend: str | None = None,
    pg_options: object = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
) -> str:
    """Create a group and return its name (`mindspore.mint.distributed.new_group`).

    Members wait for each other. A second call with the same arguments returns the same group.

    Args:
        ranks: the members, ranks of the world, which are sorted; None for all.
        timeout, pg_options, use_local_synchronization: have no meaning here.
        backend: name that `get_backend` returns; default that of the world.
        group_desc: name of the group; default one made of the ranks.

    Returns:
        The name, which other functions accept as `group`; this process need not be a member.

    Raises:
        TypeError: `ranks` is no list of ints.
        ValueError: ranks that do not exist, or an unknown backend.

    Examples:
        >>> from duograph import mint
        >>> mint.distributed.get_world_size(mint.distributed.new_group([0]))
        1
    """
    check_options(
        "mint.distributed.new_group", timeout=timeout, pg_options=pg_options,
        use_local_synchronization=use_local_synchronization,
    )  # fmt: skip
    own = world()
    if ranks is None and group_desc is None and backend is None:
        return WORLD
    if ranks is not None and (
        not isinstance(ranks, (list, tuple)) or not all(type(r) is int for r in ranks)
    ):
        raise ArgumentError(f"new_group: got ranks={ranks!r}; wanted a list of ints or None")
    if backend is not None and backend not in _BACKENDS:
        raise ArgumentValueError(
            f"new_group: got backend={backend!r}; wanted one of {', '.join(_BACKENDS)}"
        )
    called = backend or get_backend()
    members = list(range(own.size)) if ranks is None else sorted(ranks)
    digest = hashlib.blake2b("_".join(map(str, members)).encode(), digest_size=16).hexdigest()
    name = group_desc or f"{called}_{len(members)}_{digest}"
    _comm.create_group(name, members)
    own.backends[name] = called
    return name


def get_global_rank(group: str | None, group_rank: int) -> int:
    """Return the rank in the world for a rank in a group
    (`mindspore.mint.distributed.get_global_rank`).

    Raises:
        ValueError: no such group, or no such rank in it.

    Examples:
        >>> from duograph import mint
        >>> mint.distributed.get_global_rank(None, 0)
        0
    """
    return _comm.get_world_rank_from_group_rank(name_of("get_global_rank", group), group_rank)


def get_group_rank(group: str | None, global_rank: int) -> int:
    """Return the rank in a group for a rank in the world
    (`mindspore.mint.distributed.get_group_rank`).

    Raises:
        ValueError: no such group, or no such rank in it.

    Examples:
        >>> from duograph import mint
        >>> mint.distributed.get_group_rank(None, 0)
        0
    """
    return _comm.get_group_rank_from_world_rank(global_rank, name_of("get_group_rank", group))


def get_process_group_ranks(group: str | None = None) -> list[int]:
    """Return the ranks of a group
    (`mindspore.mint.distributed.get_process_group_ranks`).

    Raises:
        ValueError: no such group.

    Examples:
        >>> from duograph import mint
        >>> mint.distributed.get_process_group_ranks()
        [0]
    """
    return _comm.get_process_group_ranks(name_of("get_process_group_ranks", group))
