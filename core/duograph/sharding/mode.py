"""Whether programs are partitioned for several ranks, and how their arguments are sharded.

The options of `set_auto_parallel_context` decide both. According to ``dataset_strategy``, a rank
passes a local shard of each argument or the global tensor; compiled code always sees global
tensors.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from ..context import get_auto_parallel_context
from ..errors import ShapeError
from ..launched import launched
from ..runtime_state import thread_state
from .layouts import Axis, Placement, placement_of

__all__ = ["argument_placement", "dividing", "dividing_key", "full_batch", "all_ranks",
           "own_rank"]  # fmt: skip

if TYPE_CHECKING:
    from ..ranks.world import World

_MODES = ("semi_auto_parallel", "auto_parallel")


def dividing() -> tuple[int, ...] | None:
    """Return the ranks among which programs compiled now are partitioned.

    The result is None if they are not partitioned: with one rank, or in a parallel mode that shards
    no tensors.
    """
    if launched() is None and thread_state.world is None:
        return None
    if get_auto_parallel_context("parallel_mode") not in _MODES:
        return None
    found = all_ranks()
    return found if len(found) > 1 else None


def dividing_key() -> Hashable:
    """Return what partitioning adds to the cache key of a program that is compiled now.

    It is None if programs are not partitioned (see `dividing`).
    """
    ranks = dividing()
    if ranks is None:
        return None
    return ranks, full_batch(), get_auto_parallel_context("dataset_strategy")


def all_ranks() -> tuple[int, ...]:
    """Return the numbers of all ranks of the world; a partitioned program runs on all of them."""
    return tuple(range(_world().size))


def own_rank() -> int:
    """Return the rank of the calling thread if threads act as ranks, else that of this process."""
    return _world().rank


def _world() -> World:
    from ..ranks.world import world  # `import duograph` stays fast

    return world()


def full_batch() -> bool:
    """Return whether each rank passes the global batch to programs, rather than its shard."""
    strategy = get_auto_parallel_context("dataset_strategy")
    return bool(get_auto_parallel_context("full_batch")) or strategy == "full_batch"


def argument_placement(index: int, local: Sequence[int]) -> Placement:
    """Return the placement of argument number `index` of a program, as the user's options say.

    `local` is the shape that each rank passes: that of a shard or, with `full_batch`, of the whole
    argument, which is then replicated. By default axis 0 is sharded among all ranks.

    Raises:
        ShapeError: ``dataset_strategy`` gives a layout with another number of axes.
    """
    ranks = all_ranks()
    strategy = get_auto_parallel_context("dataset_strategy")
    whole = Placement(((),) * len(local), ranks)
    if full_batch() or not local:
        return whole
    if isinstance(strategy, tuple):
        if index >= len(strategy):
            return whole
        owner = f"dataset_strategy[{index}]"
        found = placement_of(owner, strategy[index], ranks)
        if len(found.dims) != len(local):
            raise ShapeError(
                f"{owner}: got a layout of {len(found.dims)} axes for a tensor of shape "
                f"{tuple(local)}; wanted {len(local)}"
            )
        return found
    return Placement(((Axis(1, len(ranks)),), *((),) * (len(local) - 1)), ranks)
