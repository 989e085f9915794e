"""Whether programs are partitioned for several ranks, and how their arguments are sharded.

The options of `set_auto_parallel_context` decide both. According to ``dataset_strategy``, a rank
passes a local shard of each argument or the global tensor; compiled code always sees global
tensors.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from ..context import get_auto_parallel_context
from ..errors import ArgumentValueError, ShapeError
from ..launched import launched
from ..runtime_state import thread_state
from .layouts import Axis, Placement, placement_of

__all__ = [
    "all_ranks", "argument_placement", "batch_shards", "dividing", "dividing_key", "full_batch",
    "mesh_ranks", "own_rank", "own_stage", "pipeline_scheduler", "pipeline_stages", "stage_ranks",
]  # fmt: skip

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
    count = pipeline_stages()
    if get_auto_parallel_context("parallel_mode") not in _MODES:
        if count > 1:
            raise ArgumentValueError(
                f"pipeline_stages: got {count} stages in the parallel mode "
                f"{str(get_auto_parallel_context('parallel_mode'))!r}; wanted "
                "parallel_mode='semi_auto_parallel', in which compiled code is divided"
            )
        return None
    found = mesh_ranks()
    return found if len(found) > 1 or count > 1 else None


def pipeline_stages() -> int:
    """Return the number of pipeline stages of the programs of several ranks."""
    return int(get_auto_parallel_context("pipeline_stages"))


def pipeline_scheduler() -> str:
    """Return in which order the stages of a pipeline run their passes: "1f1b" or "gpipe"."""
    config = get_auto_parallel_context("pipeline_config") or {}
    found = config.get("pipeline_scheduler", get_auto_parallel_context("pipeline_scheduler"))
    return str(found)


def own_stage() -> int:
    """Return the pipeline stage of this rank."""
    return own_rank() // (_world().size // pipeline_stages())


def stage_ranks(stage: int) -> tuple[int, ...]:
    """Return the ranks of a pipeline stage, which are neighbours."""
    each = _world().size // pipeline_stages()
    return tuple(range(stage * each, (stage + 1) * each))


def mesh_ranks() -> tuple[int, ...]:
    """Return the ranks among which tensors are sharded: all, or those of this rank's stage.

    Raises:
        ArgumentValueError: the ranks cannot form equally many stages.
    """
    count, size = pipeline_stages(), _world().size
    if count == 1:
        return all_ranks()
    if size % count:
        raise ArgumentValueError(
            f"pipeline_stages: got {count} stages for {size} ranks; wanted a number that divides "
            "the number of ranks"
        )
    return stage_ranks(own_stage())


def dividing_key() -> Hashable:
    """Return what partitioning adds to the cache key of a program that is compiled now.

    It is None if programs are not partitioned (see `dividing`).
    """
    ranks = dividing()
    if ranks is None:
        return None
    stages = pipeline_stages(), pipeline_scheduler()
    return ranks, stages, full_batch(), get_auto_parallel_context("dataset_strategy")


def all_ranks() -> tuple[int, ...]:
    """Return the numbers of all ranks of the world."""
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


def batch_shards(index: int, ndim: int) -> int:
    """Return the number of shards of axis 0 of argument `index` of a program, divided among ranks.

    It is 1 where nothing is divided. `ndim` is the number of axes of the argument.
    """
    if dividing() is None or not ndim:
        return 1
    axes = argument_placement(index, (1,) * ndim).dims[0]
    return math.prod(axis.size for axis in axes)


def argument_placement(index: int, local: Sequence[int]) -> Placement:
    """Return the placement of argument number `index` of a program, as the user's options say.

    `local` is the shape that each rank passes: that of a shard or, with `full_batch`, of the whole
    argument, which is then replicated. By default axis 0 is sharded among all ranks.

    Raises:
        ShapeError: ``dataset_strategy`` gives a layout with another number of axes.
    """
    ranks = mesh_ranks()
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
