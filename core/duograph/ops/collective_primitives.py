"""Primitive ops: collectives, which communicate with the other ranks of a group.

The primitive classes (`ops.collective`), `mint.distributed` and the data-parallel layers call them.
They exist in graphs only, have no kernels, and run on the host: `reference` is the collective
itself. The rank is found when an op runs (`ranks.world`), so that threads that act as ranks can
share prepared calls; the number of ranks is an attribute, because result shapes depend on it.
Gradients are those of MindSpore's primitives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dtype import DType, int32
from ..effects import Communicates
from ..errors import GradientError, ShapeError
from ..ir.graph import Graph, GraphNode
from ..op import op
from ..ranks.buckets import start_all_reduce
from ..ranks.world import world
from ..tensor import Tensor
from ..types import TensorType
from .comparison import equal
from .creation import cast
from .elementwise import mul

__all__ = ["OPTIONS", "all_gather", "all_reduce", "all_to_all", "broadcast_from", "receive",
           "reduce_scatter", "runnable", "send"]  # fmt: skip

OPTIONS: dict[str, Any] = {
    "composite": False, "graph_only": True, "host_fallback": True, "effects": (Communicates(),),
}  # fmt: skip


def runnable(x: Tensor | TensorType) -> np.ndarray:
    """Return a host array with the layout that transfers need."""
    return np.ascontiguousarray(x)


@op(name="all_reduce", **OPTIONS)
def all_reduce(inputs: Sequence[Tensor], reduction: str, group: str, size: int):
    """Graph op: the reductions of tensors over the ranks of a group.

    Args:
        inputs: tensors of any shapes, the same on all ranks.
        reduction: ``"sum"``, ``"prod"``, ``"max"`` or ``"min"``.
        group: name of the group.
        size: its number of ranks.
    """


@all_reduce.infer
def _(types, reduction, group, size):
    return tuple(types)


@all_reduce.reference
def _(arrays, reduction, group, size):
    found = world().group("all_reduce", group)
    return tuple(start_all_reduce(found, [runnable(x) for x in arrays], reduction).finish())


@all_reduce.bprop
def _(inputs, out, dout, reduction, group, size):
    if reduction == "prod":
        raise GradientError("AllReduce: op='prod' has no gradient; wanted 'sum', 'max' or 'min'")
    sums = all_reduce(list(dout), reduction="sum", group=group, size=size)
    if reduction == "sum":
        return tuple(sums)
    return tuple(
        mul(d, cast(equal(x, y), d.dtype)) for d, x, y in zip(sums, inputs, out, strict=True)
    )


@op(name="all_gather", **OPTIONS)
def all_gather(x: Tensor, group: str, size: int):
    """Graph op: the tensors (n, ...) of all ranks, concatenated to (size * n, ...)."""


@all_gather.infer
def _(x, group, size):
    if not x.shape:
        raise ShapeError("AllGather: got a tensor without axes; wanted one axis or more")
    return TensorType.of((x.shape[0] * size, *x.shape[1:]), x.dtype)


@all_gather.reference
def _(x, group, size):
    return world().group("all_gather", group).all_gather(runnable(x))


@all_gather.bprop
def _(x, out, dout, group, size):
    return (reduce_scatter(dout, reduction="sum", group=group, size=size),)


@op(name="reduce_scatter", **OPTIONS)
def reduce_scatter(x: Tensor, reduction: str, group: str, size: int):
    """Graph op: the part of this rank, (n, ...), of the reduction of tensors (size * n, ...)."""


@reduce_scatter.infer
def _(x, reduction, group, size):
    if not x.shape or x.shape[0] % size:
        raise ShapeError(
            f"ReduceScatter: got a tensor of shape {x.shape}; wanted axis 0 divisible by the "
            f"{size} ranks of {group!r}"
        )
    return TensorType.of((x.shape[0] // size, *x.shape[1:]), x.dtype)


@reduce_scatter.reference
def _(x, reduction, group, size):
    return world().group("reduce_scatter", group).reduce_scatter(runnable(x), reduction)


@reduce_scatter.bprop
def _(x, out, dout, reduction, group, size):
    if reduction != "sum":
        raise GradientError(f"ReduceScatter: op={reduction!r} has no gradient; wanted 'sum'")
    return (all_gather(dout, group=group, size=size),)


@op(name="broadcast_from", **OPTIONS)
def broadcast_from(inputs: Sequence[Tensor], root: int, group: str):
    """Graph op: the tensors of rank `root` of the group, on all its ranks."""


@broadcast_from.infer
def _(types, root, group):
    return tuple(types)


@broadcast_from.reference
def _(arrays, root, group):
    found = world().group("broadcast", group)
    return tuple(found.broadcast(runnable(x), root) for x in arrays)


@broadcast_from.bprop
def _(inputs, out, dout, root, group):
    return tuple(dout)


@op(name="all_to_all", **OPTIONS)
def all_to_all(x: Tensor, lengths: Sequence[int], received: Sequence[int], group: str):
    """Graph op: parts of the tensors of all ranks, concatenated along axis 0.

    Args:
        x: Tensor (sum of lengths, ...), the part for rank 0 first.
        lengths: lengths of the parts for each rank.
        received: lengths of the parts from each rank.
        group: name of the group.
    """


@all_to_all.infer
def _(x, lengths, received, group):
    if not x.shape or x.shape[0] != sum(lengths):
        raise ShapeError(
            f"AlltoAll: got a tensor of shape {x.shape} for parts of the lengths {tuple(lengths)}; "
            "wanted an axis 0 of their sum"
        )
    return TensorType.of((sum(received), *x.shape[1:]), x.dtype)


@all_to_all.reference
def _(x, lengths, received, group):
    return world().group("all_to_all", group).all_to_all(runnable(x), lengths, received)


@all_to_all.bprop
def _(x, out, dout, lengths, received, group):
    return (all_to_all(dout, lengths=received, received=lengths, group=group),)


# ---- comparing compiled programs -----------------------------------------------------------------


class Plan:
    """The collectives of one program in one group, in program order; an attribute of a node.

    Attributes:
        lines: op, operand types and attributes of each, the same on all ranks.
        places: " at FILE:LINE" of each.
    """

    __slots__ = ("lines", "places")

    def __init__(self, lines: Sequence[str], places: Sequence[str]) -> None:
        self.lines, self.places = tuple(lines), tuple(places)

    def __repr__(self) -> str:
        return f"plan of {len(self.lines)}"


@op(name="compare_collectives", differentiable=False, **OPTIONS)
def compare_collectives(group: str, plan: Plan):
    """Graph op: raise an error on all ranks of a group if their programs have other collectives.

    Ranks compare each plan once. The only result is 0, which nothing reads.
    """


@compare_collectives.infer
def _(group, plan):
    return (TensorType.of((), int32),)


@compare_collectives.reference
def _(group, plan):
    world().group("jit", group).compare(plan.lines, plan.places)
    return (np.zeros((), np.int32),)


def with_comparison(graph: Graph) -> Graph:
    """Return the graph of a program that first compares its collectives with other ranks.

    Programs of ranks may differ in everything else. Those that send or receive messages differ by
    nature, and are not compared.
    """
    found: dict[str, list[tuple[str, str]]] = {}
    if not _collect(graph, found, ""):
        return graph
    nodes, types = list(graph.nodes), list(graph.types)
    for group, calls in found.items():
        plan = Plan([c[0] for c in calls], [c[1] for c in calls])
        attributes = {"group": group, "plan": plan}
        nodes.insert(0, GraphNode(compare_collectives, (), attributes, (len(types),), False))
        types.append(TensorType.of((), int32))
    return Graph(graph.n_params, types, nodes, graph.outputs, graph.single)


def _collect(graph: Graph, found: dict[str, list[tuple[str, str]]], inside: str) -> bool:
    """Add the collectives of a graph to `found`, by group; return False if it has messages."""
    for node in graph.nodes:
        if node.op in (send, receive):
            return False
        if node.op.effects == (Communicates(),):
            kinds = ", ".join(str(graph.types[i]) for i in node.operands if i is not None)
            options = ", ".join(f"{k}={v!r}" for k, v in sorted(node.attributes.items()))
            place = "" if node.span is None else f" at {node.span.file}:{node.span.line}"
            calls = found.setdefault(node.attributes["group"], [])
            calls.append((f"{inside}{node.op.name}({kinds}) {options}", place))
        for i, each in enumerate(node.graphs):
            if not _collect(each, found, f"{inside}{node.op.name}[{i}] "):
                return False
    return True


# ---- messages ------------------------------------------------------------------------------------


@op(name="send", differentiable=False, **OPTIONS)
def send(x: Tensor, to: int, tag: int, group: str):
    """Graph op: send a tensor to a rank of the group; the result is the tensor."""


@send.infer
def _(x, to, tag, group):
    return x


@send.reference
def _(x, to, tag, group):
    world().group("send", group).send(runnable(x), to, tag)
    return x


@op(name="receive", differentiable=False, **OPTIONS)
def receive(shape: Sequence[int], dtype: DType, source: int, tag: int, group: str):
    """Graph op: the tensor of a shape and dtype that a rank of the group sends."""


@receive.infer
def _(shape, dtype, source, tag, group):
    return TensorType.of(tuple(shape), dtype)


@receive.reference
def _(shape, dtype, source, tag, group):
    like = np.empty(tuple(shape), dtype.np)
    return world().group("receive", group).receive(like, source, tag)
