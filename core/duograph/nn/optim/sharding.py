"""ZeRO-1: optimiser state sharded over data-parallel ranks (Rajbhandari et al., 2020).

`set_auto_parallel_context(enable_parallel_optimizer=True)` enables it for optimisers that are made
later; each of these has a `Sharding`. A step first reduce-scatters the gradients; if they were
all-reduced already, it takes this rank's slice of each instead. Then it updates the local shards of
the Parameters, and all-gathers the new Parameters. A shard is a 1-d slice of the flattened tensor,
see `ranks.buckets`; element-wise updates compute the same bits on shards as on whole tensors.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

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
THRESHOLD = 64  # KiB; the state of smaller Parameters is replicated, as in MindSpore


def buckets(tensors: Sequence[Tensor], most: int = BUCKET_BYTES) -> list[list[Tensor]]:
    """Split a list of tensors into consecutive lists of at most `most` bytes each.

    A tensor of more than `most` bytes is in a list of its own.
    """
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
    """Which Parameters of an optimiser have sharded state, and over which ranks.

    Attributes:
        group: name of the data-parallel group.
        rank: number of this rank in the group.
        size: number of ranks in the group.
        sharded: for each Parameter, whether a rank stores and updates only a shard of its state.
    """

    group: str
    rank: int
    size: int
    sharded: tuple[bool, ...]

    def part(self, x: Tensor) -> Tensor:
        """Return this rank's shard of `x`, a tensor of any shape that is equal on all ranks.

        The shard is a 1-d slice of the flattened tensor, padded with zeros to the same length on
        all ranks.
        """
        return primitives.part_of(x, self.rank, self.size)

    def shape(self, i: int, parameter: Tensor) -> tuple[int, ...]:
        """Return the shape in which this rank updates Parameter number `i`, which is `parameter`.

        If its state is sharded, that is the 1-d shape of a shard, else the Parameter's own shape.
        """
        return (part_length(parameter.size, self.size),) if self.sharded[i] else parameter.shape

    def stored(self, i: int, parameter: Tensor) -> Part | None:
        """Return the `Part` that describes this rank's shard of the state of Parameter number `i`.

        The result is None if the state of this Parameter is not sharded.
        """
        return Part(parameter.shape, self.rank, self.size) if self.sharded[i] else None

    def fitting(self, x: Tensor, like: Tensor) -> Tensor:
        """Return a replicated tensor `x` if `like` has its shape, else this rank's shard of `x`."""
        return x if x.shape == like.shape else self.part(x)

    def reduce_scatter(self, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
        """Return this rank's shards of the sums of tensors over the ranks."""
        found: Sequence[Tensor] = primitives.reduce_scatter_parts(
            list(tensors), group=self.group, size=self.size
        )
        return found

    def sums(self, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
        """All-reduce tensors: return their sums over the ranks."""
        found: Sequence[Tensor] = all_reduce(
            list(tensors), reduction="sum", group=self.group, size=self.size
        )
        return found

    def write(self, updated: Sequence[tuple[Parameter, Tensor]]) -> None:
        """All-gather the new values of Parameters from the shards that the ranks have computed.

        `updated` has pairs of a Parameter and this rank's shard of its new value.
        """
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
    """Return the sharding of a new optimiser's state over ranks; None if the state is replicated.

    Args:
        owner: name of the optimiser.
        parameters: the Parameters that it updates.
        needs_whole: reason why it must update unsharded Parameters; "" if it need not.

    Raises:
        UnsupportedOpError: `enable_parallel_optimizer` is set, and the optimiser needs unsharded
            Parameters, or ranks are not data parallel.
        ArgumentValueError: `optimizer_weight_shard_size` is neither -1 nor the number of ranks.
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
            f"{owner}: {needs_whole}, so that enable_parallel_optimizer=True cannot shard "
            "its state among ranks; wanted False, or another optimiser such as Momentum, Adam, "
            "AdamWeightDecay or Lamb"
        )
    config: dict[str, int] = get_auto_parallel_context("parallel_optimizer_config") or {}
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
