"""Primitive ops: collectives of flat shards of tensors, for the ZeRO-1 of `nn.optim.sharding`.

A shard, also called a part, is that of `ranks.buckets`: the elements of a tensor in C order are
padded with zeros and divided evenly among the ranks. Its shape is (shard length,).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..op import op
from ..ranks.buckets import part_length, start_all_gather, start_reduce_scatter
from ..ranks.world import world
from ..tensor import Tensor
from ..types import TensorType
from .collective_primitives import OPTIONS, runnable
from .movement import reshape, slice_by
from .padding import pad_with

__all__ = ["all_gather_parts", "part_of", "reduce_scatter_parts"]


def part_of(x: Tensor, rank: int, size: int) -> Tensor:
    """Return the 1-D shard of one rank: a part of the flattened replicated tensor `x`.

    All `size` ranks have shards of the same length; zeros pad the last ones.
    """
    n = part_length(x.size, size)
    begin = min(rank * n, x.size)
    end = min(begin + n, x.size)
    part = slice_by(reshape(x, (-1,)), [begin], [end], [1])
    return part if end - begin == n else pad_with(part, [0], [n - (end - begin)], 0)


@op(name="reduce_scatter_parts", **OPTIONS)
def reduce_scatter_parts(inputs: Sequence[Tensor], group: str, size: int):
    """Graph op: sum tensors over a group; return this rank's shard of each, (shard length,).

    `size` is the number of ranks.
    """


@reduce_scatter_parts.infer
def _(types, group, size):
    return tuple(TensorType.of((part_length(t.size, size),), t.dtype) for t in types)


@reduce_scatter_parts.reference
def _(arrays, group, size):
    found = world().group("reduce_scatter", group)
    return tuple(start_reduce_scatter(found, [runnable(x) for x in arrays], "sum").finish())


@reduce_scatter_parts.bprop
def _(inputs, out, dout, group, size):
    shapes = tuple(x.shape for x in inputs)
    return tuple(all_gather_parts(list(dout), shapes=shapes, group=group, size=size))


@op(name="all_gather_parts", **OPTIONS)
def all_gather_parts(
    inputs: Sequence[Tensor], shapes: Sequence[Sequence[int]], group: str, size: int
):
    """Graph op: all-gather tensors from the shards of all ranks.

    Args:
        inputs: this rank's shards, each (shard length,).
        shapes: shapes of the whole tensors.
        group: name of the group.
        size: number of ranks of the group.
    """


@all_gather_parts.infer
def _(types, shapes, group, size):
    return tuple(TensorType.of(tuple(s), t.dtype) for s, t in zip(shapes, types, strict=True))


@all_gather_parts.reference
def _(arrays, shapes, group, size):
    found = world().group("all_gather", group)
    wanted = [tuple(s) for s in shapes]
    return tuple(start_all_gather(found, [runnable(x) for x in arrays], wanted).finish())


@all_gather_parts.bprop
def _(inputs, out, dout, shapes, group, size):
    return tuple(reduce_scatter_parts(list(dout), group=group, size=size))
