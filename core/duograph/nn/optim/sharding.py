"""ZeRO-1: each rank stores and updates its part of the optimiser state (Rajbhandari et al., 2020).

`set_auto_parallel_context(enable_parallel_optimizer=True)` asks for it. An optimiser that is then
made has a `Sharding`. A step gets this rank's parts of the gradients (or takes them from whole
ones), updates its parts of the Parameters, and gathers the new Parameters from all ranks. Parts are
those of `ranks.buckets`; updates of single elements give the same bits on parts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from ...context import get_auto_parallel_context
from ...errors import ArgumentValueError, UnsupportedOpError
from ...ops import shard_primitives as primitives
from ...ops.collective_primitives import all_reduce
from ...parameter import Parameter, Part
from ...ranks.buckets import part_length
from ...ranks.world import WORLD_NAMES, world
from ...tensor import Tensor

__all__ = ["Sharding", "buckets", "sharding_of"]

BUCKET_BYTES = 25 * 2**20  # of one collective
THRESHOLD = 64  # KiB; smaller Parameters are updated on all ranks, as in MindSpore


def buckets(tensors: Sequence[Tensor], most: int = BUCKET_BYTES) -> list[list[Tensor]]:
    """Split tensors into runs of at most `most` bytes, a larger tensor alone."""
    runs: list[list[Tensor]] = []
    room = 0
    for x in tensors:
        nbytes = x.size * x.itemsize
        if not runs or nbytes > room:
            runs.append([])
            room = most
        runs[-1].append(x)
        room -= nbytes
    return runs


@dataclasses.dataclass(frozen=True)
class Sharding:
    """Which Parameters of an optimiser are updated in parts.

    Attributes:
        group: name of the group of ranks that share the Parameters.
        rank, size: of this rank in the group.
        sharded: for each Parameter, whether each rank updates a part of it.
    """

    group: str
    rank: int
    size: int
    sharded: tuple[bool, ...]

    def part(self, x: Tensor) -> Tensor:
        """Return this rank's part of a whole tensor."""
        return primitives.part_of(x, self.rank, self.size)

    def shape(self, i: int, parameter: Tensor) -> tuple[int, ...]:
        """Return the shape in which this rank updates Parameter `i`."""
        return (part_length(parameter.size, self.size),) if self.sharded[i] else parameter.shape

    def stored(self, i: int, parameter: Tensor) -> Part | None:
        """Return what state of Parameter `i` says about the whole; None if it is whole."""
        return Part(parameter.shape, self.rank, self.size) if self.sharded[i] else None

    def fitting(self, x: Tensor, like: Tensor) -> Tensor:
        """Return a whole Parameter, or this rank's part of it if that has the shape of `like`."""
        return x if x.shape == like.shape else self.part(x)

    def reduce_scatter(self, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
        """Return this rank's parts of the sums of tensors over the ranks."""
        found: Sequence[Tensor] = primitives.reduce_scatter_parts(
            list(tensors), group=self.group, size=self.size
        )
        return found

    def sums(self, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
        """Return the sums of tensors over the ranks."""
        found: Sequence[Tensor] = all_reduce(
            list(tensors), reduction="sum", group=self.group, size=self.size
        )
        return found

    def write(self, updated: Sequence[tuple[Parameter, Tensor]]) -> None:
        """Gather the new values of Parameters, of which each rank has computed its part."""
        whole = {id(part): p for p, part in updated}
        for bucket in buckets([part for _, part in updated], BUCKET_BYTES // self.size):
            into = [whole[id(part)] for part in bucket]
            shapes = tuple(p.shape for p in into)
            values = primitives.all_gather_parts(
                bucket, shapes=shapes, group=self.group, size=self.size
            )
            for p, value in zip(into, values, strict=True):
                p.set_data(value)


def sharding_of(owner: str, parameters: Sequence[Parameter], needs_whole: str) -> Sharding | None:
    """Return how an optimiser that is being made shares its Parameters among ranks; None: not.

    Args:
        owner: name of the optimiser.
        parameters: what it updates.
        needs_whole: why it must update whole Parameters; "" if it need not.

    Raises:
        UnsupportedOpError: `enable_parallel_optimizer` is set, and the optimiser needs whole
            Parameters, or ranks are not data parallel.
    """
    if not get_auto_parallel_context("enable_parallel_optimizer"):
        return None
    own = world()
    if own.size == 1:
        return None
    mode = get_auto_parallel_context("parallel_mode")
    if mode != "data_parallel":
        raise UnsupportedOpError(
            f"{owner}: got enable_parallel_optimizer=True with parallel_mode={str(mode)!r}; wanted "
            "set_auto_parallel_context(parallel_mode='data_parallel') before the optimiser is made"
        )
    if needs_whole:
        raise UnsupportedOpError(
            f"{owner}: {needs_whole}, so that enable_parallel_optimizer=True cannot share "
            "its update among ranks; wanted False, or another optimiser such as Momentum, Adam, "
            "AdamWeightDecay or Lamb"
        )
    config: dict[str, Any] = get_auto_parallel_context("parallel_optimizer_config") or {}
    least = 1024 * config.get("parallel_optimizer_threshold", THRESHOLD)
    if config.get("optimizer_weight_shard_size", -1) not in (-1, own.size):
        raise ArgumentValueError(
            f"{owner}: got optimizer_weight_shard_size={config['optimizer_weight_shard_size']}; "
            f"wanted -1 or {own.size}, the number of ranks"
        )
    sharded = tuple(
        p.size > 1 and p.parallel_optimizer and p.size * p.itemsize >= least for p in parameters
    )
    return Sharding(WORLD_NAMES[0], own.rank, own.size, sharded)
