"""Primitive ops: collectives, which communicate with the other ranks of a group.

The primitive classes (`ops.collective`), `mint.distributed` and the data-parallel layers call them.
The ops exist in graphs only. No backend has kernels for them: each op's `reference` rule does the
communication, on the host. An op looks up its rank when it runs (`ranks.world`), so that threads
that act as ranks can use the same prepared calls; the number of ranks is an attribute, because
result shapes depend on it. Gradients are those of MindSpore's primitives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dtype import DType, int32
from ..effects import Communicates
from ..errors import GradientError, ShapeError
from ..ir.graph import Graph, GraphNode
from ..op import op
from ..ranks.buckets import start_all_reduce
from ..ranks.on_device import DeviceArray
from ..ranks.operations import Operation
from ..ranks.world import world
from ..tensor import Tensor
from ..types import TensorType
from .comparison import equal
from .creation import cast
from .creation_functions import zeros_like
from .elementwise import mul

if TYPE_CHECKING:
    from ..op import Op

__all__ = ["OPTIONS", "all_gather", "all_gather_rows", "all_reduce", "all_to_all", "barrier",
           "broadcast_from", "receive", "receive_all", "reduce_scatter", "reduce_scatter_rows",
           "reduce_to", "runnable", "send", "start_send", "starts"]  # fmt: skip

OPTIONS: dict[str, Any] = {
    "composite": False, "graph_only": True, "host_fallback": True, "effects": (Communicates(),),
}  # fmt: skip


def runnable(x: Any) -> Any:
    """Return an array that a transfer can use: in C order, or a `DeviceArray` (in device memory).

    A `DeviceArray` is always dense and in C order, so it is returned unchanged.
    """
    if isinstance(x, DeviceArray):
        return x
    return np.asarray(x, order="C")  # ascontiguousarray would add an axis to 0-d arrays


def _on_host(x: object) -> np.ndarray:
    """Return the array in host memory and in C order, as the sending of messages needs it."""
    return runnable(x.on_host() if isinstance(x, DeviceArray) else x)


@op(name="all_reduce", **OPTIONS)
def all_reduce(inputs: Sequence[Tensor], reduction: str, group: str, size: int):
    """Graph op: reduce each of several tensors over the ranks of a group.

    Args:
        inputs: tensors of any shapes, the same on all ranks.
        reduction: ``"sum"``, ``"prod"``, ``"max"`` or ``"min"``.
        group: name of the group.
        size: number of ranks of the group.
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
    """Graph op: the tensors (n, ...) of all ranks, concatenated to (size * n, ...).

    `size` is the number of ranks of the group.
    """


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
    """Graph op: reduce tensors (size * n, ...) over a group; return this rank's rows, (n, ...).

    `reduction` is ``"sum"``, ``"prod"``, ``"max"`` or ``"min"``; `size` is the number of ranks.
    """


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
    """Graph op: return the tensors of rank `root` of the group on all its ranks."""


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
    """Graph op: send a part of `x` to each rank, and concatenate the received parts along axis 0.

    Args:
        x: Tensor (sum of lengths, ...), with the part for rank 0 first.
        lengths: number of rows of the part that is sent to each rank.
        received: number of rows of the part that is received from each rank.
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


@op(name="all_gather_rows", **OPTIONS)
def all_gather_rows(x: Tensor, lengths: Sequence[int], group: str):
    """Graph op: the tensors (lengths[rank], ...) of all ranks, concatenated along axis 0."""


@all_gather_rows.infer
def _(x, lengths, group):
    return TensorType.of((sum(lengths), *x.shape[1:]), x.dtype)


@all_gather_rows.reference
def _(x, lengths, group):
    found = world().group("all_gather", group)
    return found.finish(found.start_all_gather_rows(runnable(x), lengths))


@all_gather_rows.bprop
def _(x, out, dout, lengths, group):
    back = reduce_scatter_rows(dout, lengths=lengths, rows=x.shape[0], reduction="sum", group=group)
    return (back,)


@op(name="reduce_scatter_rows", **OPTIONS)
def reduce_scatter_rows(x: Tensor, lengths: Sequence[int], rows: int, reduction: str, group: str):
    """Graph op: reduce tensors over a group; return this rank's lengths[rank] rows of the result.

    The rows of rank 0 come first. `rows` is lengths[rank]: an attribute, because the type of the
    result depends on it.
    """


@reduce_scatter_rows.infer
def _(x, lengths, rows, reduction, group):
    return TensorType.of((rows, *x.shape[1:]), x.dtype)


@reduce_scatter_rows.reference
def _(x, lengths, rows, reduction, group):
    found = world().group("reduce_scatter", group)
    return found.finish(found.start_reduce_scatter_rows(runnable(x), lengths, reduction))


@reduce_scatter_rows.bprop
def _(x, out, dout, lengths, rows, reduction, group):
    if reduction != "sum":
        raise GradientError(f"reduce_scatter: op={reduction!r} has no gradient; wanted 'sum'")
    return (all_gather_rows(dout, lengths=lengths, group=group),)


@op(name="reduce_to", **OPTIONS)
def reduce_to(x: Tensor, root: int, here: bool, reduction: str, group: str):
    """Graph op: reduce tensors over a group; rank `root` gets the result, the others zeros of (1,).

    `here` is whether this rank is the root. It is an attribute because the shape of the result
    depends on it.
    """


@reduce_to.infer
def _(x, root, here, reduction, group):
    return x if here else TensorType.of((1,), x.dtype)


@reduce_to.reference
def _(x, root, here, reduction, group):
    found = world().group("reduce", group)
    out = found.finish(found.start_reduce(runnable(x), root, reduction))
    return out if here else np.zeros(1, out.dtype)


@reduce_to.bprop
def _(x, out, dout, root, here, reduction, group):
    if reduction != "sum":
        raise GradientError(f"reduce: op={reduction!r} has no gradient; wanted 'sum'")
    sent = dout if here else zeros_like(x)
    return (broadcast_from([sent], root=root, group=group)[0],)


@op(name="barrier", differentiable=False, **OPTIONS)
def barrier(group: str):
    """Graph op: wait for all ranks of a group; return a 0 that nothing reads."""


@barrier.infer
def _(group):
    return (TensorType.of((), int32),)


@barrier.reference
def _(group):
    world().group("barrier", group).barrier()
    return (np.zeros((), np.int32),)


def starts(op: Op, group: str, x: np.ndarray, attributes: Mapping[str, object]) -> Operation:
    """Start the communication of a collective op with one operand, without waiting for its end.

    Returns the `ranks.operations.Operation` that represents the running collective; the caller
    waits for it.

    Args:
        op: `all_gather`, `all_gather_rows`, `all_reduce`, `all_to_all`, `broadcast_from`,
            `reduce_scatter`, `reduce_scatter_rows` or `reduce_to`.
        group: name of the group, which has several ranks.
        x: the operand, C-contiguous.
        attributes: attributes of the op's node.
    """
    found = world().group(op.name, group)
    start: Callable[..., Operation] = getattr(found, f"start_{_STARTED.get(op.name, op.name)}")
    taken = ("lengths", "received", "root", "reduction")
    return start(x, *[attributes[name] for name in taken if name in attributes])


_STARTED = {"broadcast_from": "broadcast", "reduce_to": "reduce"}


# ---- comparing compiled programs -----------------------------------------------------------------


class Plan:
    """The collectives of one program in one group, in program order.

    It is an attribute of a `compare_collectives` node.

    Attributes:
        lines: text of each collective: op, operand types and attributes, which must be equal on all
            ranks.
        places: source location of each, such as " at model.py:41", or "" if it is unknown.
    """

    __slots__ = ("lines", "places")

    def __init__(self, lines: Sequence[str], places: Sequence[str]) -> None:
        self.lines, self.places = tuple(lines), tuple(places)

    def __repr__(self) -> str:
        return f"plan of {len(self.lines)}"


@op(name="compare_collectives", differentiable=False, **OPTIONS)
def compare_collectives(group: str, plan: Plan):
    """Graph op: raise an error on all ranks of a group unless their collectives are equal.

    `plan` has the collectives of this rank's program; the ranks exchange and compare each plan
    once. The only result is a 0 that nothing reads.
    """


@compare_collectives.infer
def _(group, plan):
    return (TensorType.of((), int32),)


@compare_collectives.reference
def _(group, plan):
    world().group("jit", group).compare(plan.lines, plan.places)
    return (np.zeros((), np.int32),)


def with_comparison(graph: Graph) -> Graph:
    """Return a program's graph with nodes in front that check its collectives against other ranks.

    The ranks of a group must have equal collectives in equal order; all other nodes of their graphs
    may differ. A graph that sends or receives messages is returned unchanged, because its program
    differs between ranks by design.
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
    """Add the collectives of a graph and its subgraphs to `found`.

    `found` maps the name of a group to (text, source location) of each collective. `inside` names
    the ops that contain the graph. Returns False if the graph sends or receives messages.
    """
    for node in graph.nodes:
        if node.op in (send, receive, start_send, receive_all):
            return False
        if node.op.effects == (Communicates(),):
            shown, attributes = _compared(node.op, node.attributes)
            kinds = ", ".join(shown(graph.types[i]) for i in node.operands if i is not None)
            options = ", ".join(f"{k}={v!r}" for k, v in sorted(attributes.items()))
            place = "" if node.span is None else f" at {node.span.file}:{node.span.line}"
            calls = found.setdefault(node.attributes["group"], [])
            calls.append((f"{inside}{node.op.name}({kinds}) {options}", place))
        for i, each in enumerate(node.graphs):
            if not _collect(each, found, f"{inside}{node.op.name}[{i}] "):
                return False
    return True


def _compared(
    op: Op, attributes: Mapping[str, object]
) -> tuple[Callable[[Any], str], Mapping[str, object]]:
    """Return (function, attributes) by which a collective is compared between ranks.

    The function converts an operand's type to text; text and attributes leave out what may differ
    between ranks, such as the number of rows.
    """
    own = _OF_THE_RANK.get(op.name)
    if own is None:
        return str, attributes
    kept = {k: v for k, v in attributes.items() if k not in own}
    if op in (reduce_scatter_rows, reduce_to):
        return str, kept
    return lambda t: f"{t.dtype.name} rows of {t.shape[1:]}", kept


# Ops with attributes that may differ by rank, and those attributes.
_OF_THE_RANK: dict[str, tuple[str, ...]] = {
    "all_to_all": ("lengths", "received"), "all_gather_rows": (), "reduce_scatter_rows": ("rows",),
    "reduce_to": ("here",),
}  # fmt: skip


# ---- messages ------------------------------------------------------------------------------------


@op(name="send", differentiable=False, **OPTIONS)
def send(x: Tensor, to: int, tag: int, group: str):
    """Graph op: send a tensor to rank `to` of the group, with number `tag`; return the tensor."""


@send.infer
def _(x, to, tag, group):
    return x


@send.reference
def _(x, to, tag, group):
    world().group("send", group).send(_on_host(x), to, tag)
    return x


@op(name="receive", differentiable=False, **OPTIONS)
def receive(shape: Sequence[int], dtype: DType, source: int, tag: int, group: str):
    """Graph op: wait for the tensor that rank `source` of the group sends with number `tag`.

    `shape` and `dtype` are those of the tensor.
    """


@receive.infer
def _(shape, dtype, source, tag, group):
    return TensorType.of(tuple(shape), dtype)


@receive.reference
def _(shape, dtype, source, tag, group):
    like = np.empty(tuple(shape), dtype.np)
    return world().group("receive", group).receive(like, source, tag)


@op(name="start_send", differentiable=False, **OPTIONS)
def start_send(x: Tensor, to: int, tag: int, group: str):
    """Graph op: start sending a copy of a tensor to rank `to`; return a 0 that nothing reads.

    The op does not wait. The transfer proceeds while this rank waits in later communication ops,
    and is complete at the latest at the end of the program. `tag` is the number of the message.
    """


@start_send.infer
def _(x, to, tag, group):
    return (TensorType.of((), int32),)


@start_send.reference
def _(x, to, tag, group):
    world().group("isend", group).start_send(np.array(_on_host(x), order="C"), to, tag)
    return (np.zeros((), np.int32),)


@op(name="receive_all", differentiable=False, **OPTIONS)
def receive_all(likes: Sequence[Tensor], sources: Sequence[int], tags: Sequence[int], group: str):
    """Graph op: receive several tensors from ranks of a group at the same time; return all of them.

    Args:
        likes: tensors of the shapes and dtypes to receive.
        sources: rank that sends each tensor.
        tags: number of each message.
        group: name of the group.
    """


@receive_all.infer
def _(types, sources, tags, group):
    return tuple(types)


@receive_all.reference
def _(arrays, sources, tags, group):
    found = world().group("recv", group)
    likes = [np.empty(x.shape, x.dtype) for x in arrays]
    started = [
        found.start_receive(x, source, tag)
        for x, source, tag in zip(likes, sources, tags, strict=True)
    ]
    return tuple(found.finish(operation) for operation in started)
