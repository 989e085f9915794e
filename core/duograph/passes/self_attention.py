"""Graph pass that fuses attention with the slicing of query, key and value from one projection.

    %1 = strided_slice(%0, begin=(0, 0, 0), ...)
    %2 = strided_slice(%0, begin=(0, 0, 256), ...)
    %3 = strided_slice(%0, begin=(0, 0, 512), ...)
    %4, %5, %6 = reshape(%1), reshape(%2), reshape(%3)
    %7, %8 = attention(%4, %5, %6, ...)              ->    %7, %8 = self_attention(%0, ...)

    %9, %10, %11 = attention_grad(%4, %5, %6, ...)
    %12, %13, %14 = reshape(%9), reshape(%10), reshape(%11)
    %15 = concat(%12, %13, %14, axis=2)              ->    %15 = self_attention_grad(%0, ...)

It applies where the backend has kernels for the fused ops. They compute as those of `attention`,
so every bit stays. Nodes that nothing reads any more stay in the graph, dead.
"""

from __future__ import annotations

from typing import Any

from ..ir.graph import Graph
from ..types import TensorType
from .context import PassContext
from .matched_ops import (
    attention,
    attention_grad,
    concat,
    reshape,
    self_attention,
    self_attention_grad,
    strided_slice,
)
from .patterns import Bindings, Call, Value, call, rule
from .replacing import Replacement, ReplacementRules, Site, replace_nodes
from .subgraphs import everywhere

__all__ = ["use_self_attention"]

LAYOUTS = ("BSND", "SBND")


def _part(name: str) -> Call:
    """Return the rewrite pattern of a query, key or value: a reshaped slice of the projection."""
    slices = call(
        strided_slice,
        Value("projection"),
        begin=f"{name}_begin",
        end=f"{name}_end",
        strides=f"{name}_strides",
    )
    return call(reshape, slices, result=name)


PARTS = _part("query"), _part("key"), _part("value")


def _heads(graph: Graph, found: Bindings) -> dict[str, int] | None:
    """Return the attributes with the numbers of query and key heads for fused self-attention.

    None unless query, key and value are adjacent slices that make up the whole projection.
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
        slices = [found[f"{name}_{key}"] for key in ("begin", "end", "strides")]
        if whole.shape[:2] != type_.shape[:2] or slices != [
            (0, 0, start),
            (*whole.shape[:2], end),
            (1, 1, 1),
        ]:
            return None
        heads.append(type_.shape[2])
        start = end
    if start != whole.shape[2] or graph.types[found["value"]] is not graph.types[found["key"]]:
        return None
    return {"heads": heads[0], "own": heads[1]}


def _forward(site: Site, projection: int, mask: int | None, **found: Any) -> Replacement | None:
    heads = _heads(site.graph, {"projection": projection, **found})
    if heads is None:
        return None
    return Replacement(self_attention, (projection, mask), {**heads, **site.node.attributes})


GRADIENT = call(attention_grad, *PARTS, rest="others", layout="layout")


def _backward(site: Site, query: int, key: int, value: int, axis: int) -> Replacement | None:
    """Replace the concatenated gradients of query, key and value by one op for the projection's."""
    graph, producers, node = site
    grad = producers.get(query)
    if grad is None or grad.op is not attention_grad or (query, key, value) != grad.results:
        return None
    for found in GRADIENT.matches(grad.operands, grad.attributes, producers):
        heads = _heads(graph, found)
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
        rule(
            "attention(slices of x) -> self_attention(x)",
            call(attention, *PARTS, Value("mask"), layout="layout"),
            _forward,
        ),
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
    """Replace attention on slices of one projection by fused self-attention ops."""

    def claimed(made: Replacement) -> bool:
        types = tuple([None if i is None else graph.types[i] for i in made.operands])
        return context.claims(made.op, types, made.attributes)  # type: ignore[arg-type]

    return replace_nodes(graph, RULES, claimed)
