"""Graph pass that fuses attention with the slicing of query, key and value from one projection.

    %1 = strided_slice(%0, begin=(0, 0, 0), ...)
    %2 = strided_slice(%0, begin=(0, 0, 256), ...)
    %3 = strided_slice(%0, begin=(0, 0, 512), ...)
    %4, %5, %6 = reshape(%1), reshape(%2), reshape(%3)
    %7, %8 = attention(%4, %5, %6, ...)              ->    %7, %8 = self_attention(%0, ...)

    %9, %10, %11 = attention_grad(%4, %5, %6, ...)
    %12, %13, %14 = reshape(%9), reshape(%10), reshape(%11)
    %15 = concat(%12, %13, %14, axis=2)              ->    %15 = self_attention_grad(%0, ...)

On backends without a kernel for `strided_slice`, `strided_copy` takes its place. The pass applies
where the backend has kernels for the fused ops. They compute like those of `attention`, so results
keep every bit. Nodes that are no longer read stay in the graph for `remove_dead_code`.
"""

from __future__ import annotations

import functools

from ..ir.graph import Graph
from ..op import Op
from ..types import TensorType
from .context import PassContext
from .matched_ops import (
    attention,
    attention_grad,
    concat,
    reshape,
    self_attention,
    self_attention_grad,
    strided_copy,
    strided_slice,
)
from .patterns import Bindings, Call, Value, call, rule
from .replacing import Replacement, ReplacementRules, Site, replace_nodes
from .subgraphs import everywhere

__all__ = ["use_self_attention"]

LAYOUTS = ("BSND", "SBND")


# The attributes that say which slice an op takes.
SLICES = {strided_slice: ("begin", "end", "strides"), strided_copy: ("shape", "strides", "offset")}


def _parts(op: Op) -> tuple[Call, Call, Call]:
    """Return patterns that match query, key and value as reshaped slices of one projection.

    `op` is the op that cuts the slices from the projection: `strided_slice` or `strided_copy`.
    """
    query, key, value = [
        call(
            reshape,
            Call(
                (op,), (Value("projection"),), {a: f"{name}_{a}" for a in SLICES[op]}, "", False, ""
            ),
            result=name,
        )
        for name in ("query", "key", "value")
    ]
    return query, key, value


def _slice(op: Op, whole: TensorType, start: int, end: int) -> tuple[object, ...]:
    """Return the attributes with which `op` slices features `start` to `end` - 1 of the projection.

    `op` is `strided_slice` or `strided_copy`. `whole` is the type of the projection: (batch,
    sequence, features) or (sequence, batch, features).
    """
    one, two, features = whole.shape
    if op is strided_slice:
        return (0, 0, start), (one, two, end), (1, 1, 1)
    return (one, two, end - start), (two * features, features, 1), start


def _heads(graph: Graph, op: Op, found: Bindings) -> dict[str, int] | None:
    """Return how many attention heads a projection has, as attributes of `self_attention`, or None.

    The attribute `heads` is the number of query heads; `own` is that of key heads and that of value
    heads, which are equal. `found` is a match of the patterns of `_parts(op)`. The result is None
    unless query, key and value are adjacent slices that make up the whole projection.
    """
    whole = graph.types[found["projection"]]
    assert isinstance(whole, TensorType)
    if found["layout"] not in LAYOUTS or whole.ndim != 3:
        return None
    start = 0
    heads = []
    for name in ("query", "key", "value"):
        type_ = graph.types[found[name]]
        assert isinstance(type_, TensorType)
        end = start + type_.shape[2] * type_.shape[3]
        slices = tuple([found[f"{name}_{a}"] for a in SLICES[op]])
        if whole.shape[:2] != type_.shape[:2] or slices != _slice(op, whole, start, end):
            return None
        heads.append(type_.shape[2])
        start = end
    if start != whole.shape[2] or graph.types[found["value"]] is not graph.types[found["key"]]:
        return None
    return {"heads": heads[0], "own": heads[1]}


def _forward(
    op: Op, site: Site, projection: int, mask: int | None, **found: int
) -> Replacement | None:
    """Return the `self_attention` call that replaces attention on slices of a projection, or None.

    The result is None unless query, key and value are adjacent slices that make up the whole
    projection.

    Args:
        op: the op that cuts the slices from the projection: `strided_slice` or `strided_copy`.
        site: the graph and the attention node to replace.
        projection: id of the value that is sliced.
        mask: id of the attention mask; None if there is no mask.
        found: the other names that the pattern bound: value ids of query, key and value, and
            attributes.
    """
    heads = _heads(site.graph, op, {"projection": projection, **found})
    if heads is None:
        return None
    return Replacement(self_attention, (projection, mask), {**heads, **site.node.attributes})


# The patterns of the gradients, by the op that takes the slices.
GRADIENTS = {op: call(attention_grad, *_parts(op), rest="others", layout="layout") for op in SLICES}


def _backward(site: Site, query: int, key: int, value: int, axis: int) -> Replacement | None:
    """Return the `self_attention_grad` call that replaces concatenated gradients, or None.

    The node of `site` concatenates reshapes of the values `query`, `key` and `value` (their ids)
    along `axis`. The result is None unless these values are the results of one `attention_grad`
    whose operands are adjacent slices that make up one whole projection.
    """
    graph, producers, node = site
    grad = producers.get(query)
    if grad is None or grad.op is not attention_grad or (query, key, value) != grad.results:
        return None
    for op, pattern in GRADIENTS.items():
        for found in pattern.matches(grad.operands, grad.attributes, producers):
            heads = _heads(graph, op, found)
            projection = found["projection"]
            if (
                heads is not None
                and axis == 2
                and graph.types[node.results[0]] is graph.types[projection]
            ):
                operands = (projection, *found["others"])
                return Replacement(self_attention_grad, operands, {**heads, **grad.attributes})
    return None


RULES: ReplacementRules = ReplacementRules(
    [
        *[
            rule(
                f"attention(parts of x by {op.name}) -> self_attention(x)",
                call(attention, *_parts(op), Value("mask"), layout="layout"),
                functools.partial(_forward, op),
            )
            for op in SLICES
        ],
        rule(
            "concat(gradients of the slices of x) -> self_attention_grad(x)",
            call(
                concat,
                call(reshape, Value("query")),
                call(reshape, Value("key")),
                call(reshape, Value("value")),
                axis="axis",
            ),
            _backward,
        ),
    ]
)


@everywhere
def use_self_attention(graph: Graph, context: PassContext) -> Graph:
    """Replace attention on slices of one projection by fused self-attention ops.

    A node is replaced only if the backend has a kernel for the fused op.
    """

    def claimed(made: Replacement) -> bool:
        types = tuple([None if i is None else graph.types[i] for i in made.operands])
        return context.claims(made.op, types, made.attributes)  # type: ignore[arg-type]

    return replace_nodes(graph, RULES, claimed)
