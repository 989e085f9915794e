"""Cheap values that fused regions compute again: graphs before and after.

The numbers are compared in `tests/devices/test_recomputed_values.py`.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from duograph.backend.costs import DEFAULT_COSTS, Costs, FusionLimits
from duograph.ir.verify import verify
from duograph.passes import PassContext
from duograph.passes.fusion import fuse, groups_of
from duograph.passes.fusion_reasons import explain_fusion
from ir.graphs import graph_of

COSTS = Costs(fusion=FusionLimits(max_recomputed=4, min_rows=1, min_row=4, min_width=4, min_run=1))
NOTHING_AGAIN = Costs(fusion=COSTS.fusion._replace(max_recomputed=0))


def kernels(graph: Any, body: str) -> list[str]:
    """Return, for each node but literals and aliases, its ops and the values that it returns.

    The ops of a region stand in brackets, sorted by name, without literals. Values have their names
    in the text `body`.
    """
    found = []
    names = [f"%{i}" for i in range(graph.n_params)] + re.findall(r"^(%\d+) =", body, re.M)
    for node in graph.nodes:
        if node.op.name == "fill" or node.op.alias:
            continue
        ops_of = node.op.name
        if node.op.name == "region":
            inner = sorted(n.op.name for n in node.attributes["body"].nodes)
            ops_of = f"[{' '.join(n for n in inner if n != 'fill')}]"
        found.append(f"{ops_of} -> {', '.join(names[i] for i in node.results)}")
    return sorted(found)


# ---- the graphs ---------------------------------------------------------------------------------

F, B, R, C = "float32[8, 16]", "bfloat16[8, 16]", "float32[8, 1]", "float32[16]"


def rows(of: str, shape: str = R) -> str:
    return f"reduce_sum({of}, axis=(1,), keepdims=True) : {shape}"


def columns(of: str, shape: str = C) -> str:
    return f"reduce_sum({of}, axis=(0,), keepdims=False) : {shape}"


# What a row region computes from %0 in bfloat16; sums over columns read the float32 values.
CAST = f"%10 = cast(%0, dtype=float32) : {F}\n%11 = {rows('%10')}\n%12 = sub(%10, %11) : {F}\n"
M = f"%0: {B}, %1: {F}, %2: {C}"

# Texts of head and body, and the kernels without and with values that are computed again (None: the
# same).
SUMS = {
    "a cast that one sum reads": (
        M,
        f"{CAST}%13 = {columns('%10')}\nreturn %12, %13",
        ["[cast reduce_sum sub] -> %10, %12", "reduce_sum -> %13"],
        ["[cast reduce_sum sub] -> %12", "[cast reduce_sum] -> %13"],
    ),
    "two sums become one kernel": (
        M,
        f"{CAST}%13 = mul(%10, %1) : {F}\n%14 = {rows('%13')}\n%15 = mul(%12, %14) : {F}\n"
        f"%16 = {columns('%10')}\n%17 = {columns('%13')}\nreturn %15, %16, %17",
        [
            "[cast mul mul reduce_sum reduce_sum sub] -> %10, %13, %15",
            "reduce_sum -> %16",
            "reduce_sum -> %17",
        ],
        [
            "[cast mul mul reduce_sum reduce_sum sub] -> %15",
            "[cast mul reduce_sum reduce_sum] -> %16, %17",
        ],
    ),
    "a row value is returned for the sum": (
        M,
        f"{CAST}%13 = {columns('%12')}\n%14 = cast(%12, dtype=bfloat16) : {B}\nreturn %13, %14",
        ["[cast cast reduce_sum sub] -> %12, %14", "reduce_sum -> %13"],
        ["[cast cast reduce_sum sub] -> %11, %14", "[cast reduce_sum sub] -> %13"],
    ),
    "a column of values": (
        M,
        f"{CAST}%13 = mul(%10, %2) : {F}\n%14 = {columns('%13')}\nreturn %12, %14",
        ["[cast mul reduce_sum sub] -> %12, %13", "reduce_sum -> %14"],
        ["[cast mul reduce_sum] -> %14", "[cast reduce_sum sub] -> %12"],
    ),
    "a reshape between": (
        M,
        f"{CAST}%13 = reshape(%10, shape=(2, 4, 16)) : float32[2, 4, 16]\n"
        f"%14 = reduce_sum(%13, axis=(0, 1), keepdims=False) : {C}\nreturn %12, %14",
        ["[cast reduce_sum sub] -> %10, %12", "reduce_sum -> %14"],
        ["[cast reduce_sum sub] -> %12", "[cast reduce_sum reshape] -> %14"],
    ),
    "a result of the graph stays": (
        M,
        f"{CAST}%13 = {columns('%10')}\nreturn %10, %12, %13",
        ["[cast reduce_sum sub] -> %10, %12", "reduce_sum -> %13"],
        None,
    ),
    "a value that a product reads too stays": (
        f"%0: {B}, %1: float32[16, 16]",
        f"{CAST}%13 = {columns('%10')}\n"
        f"%14 = matmul(%10, %1, transpose_a=False, transpose_b=False) : {F}\nreturn %12, %13, %14",
        ["[cast reduce_sum sub] -> %10, %12", "matmul -> %14", "reduce_sum -> %13"],
        None,
    ),
    "sums over different columns": (
        "%0: bfloat16[2, 4, 16]",
        "%10 = cast(%0, dtype=float32) : float32[2, 4, 16]\n"
        "%11 = reduce_sum(%10, axis=(2,), keepdims=True) : float32[2, 4, 1]\n"
        "%12 = sub(%10, %11) : float32[2, 4, 16]\n"
        "%13 = reduce_sum(%10, axis=(0, 1), keepdims=False) : float32[16]\n"
        "%14 = reduce_sum(%10, axis=(1,), keepdims=False) : float32[2, 16]\nreturn %12, %13, %14",
        ["[cast reduce_sum sub] -> %10, %12", "reduce_sum -> %13", "reduce_sum -> %14"],
        [
            "[cast reduce_sum sub] -> %12",
            "[cast reduce_sum] -> %13",
            "[cast reduce_sum] -> %14",
        ],
    ),
    "the sum of an operand joins": (
        f"%0: {F}, %1: {F}",
        f"%10 = mul(%0, %1) : {F}\n%11 = {rows('%10')}\n%12 = sub(%0, %11) : {F}\n"
        f"%13 = {columns('%10')}\n%14 = {columns('%0')}\nreturn %12, %13, %14",
        ["[mul reduce_sum sub] -> %10, %12", "reduce_sum -> %13", "reduce_sum -> %14"],
        ["[mul reduce_sum reduce_sum] -> %13, %14", "[mul reduce_sum sub] -> %12"],
    ),
    "the sum of a reshaped operand joins": (
        f"%0: float32[2, 64], %1: {F}",
        f"%9 = reshape(%0, shape=(8, 16)) : {F}\n%10 = mul(%9, %1) : {F}\n%11 = {rows('%10')}\n"
        f"%12 = sub(%9, %11) : {F}\n%13 = {columns('%10')}\n%14 = {columns('%9')}\n"
        "return %12, %13, %14",
        ["[mul reduce_sum reshape sub] -> %10, %12", "reduce_sum -> %13", "reduce_sum -> %14"],
        ["[mul reduce_sum reduce_sum reshape] -> %13, %14", "[mul reduce_sum reshape sub] -> %12"],
    ),
    "operands have as many bytes as the value": (
        f"%0: {F}, %1: {F}",
        f"%10 = mul(%0, %1) : {F}\n%11 = {rows('%10')}\n%12 = sub(%0, %11) : {F}\n"
        f"%13 = {columns('%10')}\nreturn %12, %13",
        ["[mul reduce_sum sub] -> %10, %12", "reduce_sum -> %13"],
        None,
    ),
    "an exponential is not cheap": (
        M,
        f"%10 = exp(%0) : {B}\n%11 = cast(%10, dtype=float32) : {F}\n%12 = {rows('%11')}\n"
        f"%13 = sub(%11, %12) : {F}\n%14 = {columns('%11')}\nreturn %13, %14",
        ["[cast exp reduce_sum sub] -> %11, %13", "reduce_sum -> %14"],
        None,
    ),
    "the result of an exponential, in memory for others, is read": (
        M,
        f"%10 = exp(%0) : {B}\n%11 = cast(%10, dtype=float32) : {F}\n%12 = {rows('%11')}\n"
        f"%13 = sub(%11, %12) : {F}\n%14 = {columns('%11')}\nreturn %10, %13, %14",
        ["[cast exp reduce_sum sub] -> %10, %11, %13", "reduce_sum -> %14"],
        ["[cast exp reduce_sum sub] -> %10, %13", "[cast reduce_sum] -> %14"],
    ),
    "five nodes are too many": (
        M,
        f"{CAST}%13 = neg(%10) : {F}\n%14 = mul(%13, %1) : {F}\n%15 = neg(%14) : {F}\n"
        f"%16 = mul(%15, %10) : {F}\n%17 = {columns('%16')}\nreturn %12, %17",
        ["[cast mul mul neg neg reduce_sum sub] -> %12, %16", "reduce_sum -> %17"],
        None,
    ),
    "integers": (
        "%0: int8[8, 16]",
        "%10 = cast(%0, dtype=int32) : int32[8, 16]\n"
        f"%11 = {rows('%10', 'int32[8, 1]')}\n%12 = sub(%10, %11) : int32[8, 16]\n"
        f"%13 = {columns('%10', 'int32[16]')}\nreturn %12, %13",
        ["[cast reduce_sum sub] -> %10, %12", "reduce_sum -> %13"],
        ["[cast reduce_sum sub] -> %12", "[cast reduce_sum] -> %13"],
    ),
    "axes of size 1": (
        "%0: float16[8, 1, 16]",
        "%10 = cast(%0, dtype=float32) : float32[8, 1, 16]\n"
        "%11 = reduce_sum(%10, axis=(2,), keepdims=True) : float32[8, 1, 1]\n"
        "%12 = sub(%10, %11) : float32[8, 1, 16]\n"
        f"%13 = reduce_sum(%10, axis=(0, 1), keepdims=False) : {C}\nreturn %12, %13",
        ["[cast reduce_sum sub] -> %10, %12", "reduce_sum -> %13"],
        ["[cast reduce_sum sub] -> %12", "[cast reduce_sum] -> %13"],
    ),
    "a single row has no columns": (
        "%0: float16[1, 16]",
        "%10 = cast(%0, dtype=float32) : float32[1, 16]\n"
        "%11 = reduce_sum(%10, axis=(1,), keepdims=True) : float32[1, 1]\n"
        "%12 = sub(%10, %11) : float32[1, 16]\n"
        f"%13 = reduce_sum(%10, axis=(0,), keepdims=False) : {C}\nreturn %12, %13",
        ["[cast reduce_sum] -> %10, %11", "reduce_sum -> %13", "sub -> %12"],
        None,
    ),
}


# A forward region that computes norm (%14) from x (%10), and a product (%16) that waits for it.
def forward(x: str = f"%10 = mul(%0, %1) : {F}") -> str:
    return (
        f"{x}\n%11 = {rows('%10')}\n%12 = sub(%10, %11) : {F}\n%13 = {rows('%12')}\n"
        f"%14 = mul(%12, %13) : {F}\n%15 = cast(%14, dtype=bfloat16) : {B}\n"
        f"%16 = matmul(%15, %3, transpose_a=False, transpose_b=False) : {B}\n"
    )


# A row region that reads the product and norm.
READER = (
    f"%20 = cast(%16, dtype=float32) : {F}\n%21 = mul(%20, %14) : {F}\n%22 = {rows('%21')}\n"
    f"%23 = sub(%14, %22) : {F}\n"
)
PRODUCTS = (
    f"%4 = matmul(%2, %3, transpose_a=False, transpose_b=False) : {B}\n"
    f"%5 = matmul(%4, %3, transpose_a=False, transpose_b=False) : {B}\n"
)
N = f"%0: {F}, %1: {F}, %2: {B}, %3: bfloat16[16, 16]"
FORWARD = "[cast mul mul reduce_sum reduce_sum sub] ->"
SAVED = {
    "norm is computed again from x": (
        N,
        f"{forward()}{READER}return %10, %23",
        [f"{FORWARD} %10, %14, %15", "[cast mul reduce_sum sub] -> %23", "matmul -> %16"],
        [
            f"{FORWARD} %10, %11, %13, %15",
            "[cast mul mul reduce_sum sub sub] -> %23",
            "matmul -> %16",
        ],
    ),
    "in every region that reads it": (
        N,
        f"{forward()}{READER}"
        "%30 = matmul(%15, %15, transpose_a=True, transpose_b=False) : bfloat16[16, 16]\n"
        f"%31 = matmul(%15, %30, transpose_a=False, transpose_b=False) : {B}\n"
        f"%32 = cast(%31, dtype=float32) : {F}\n%33 = mul(%32, %14) : {F}\nreturn %10, %23, %33",
        [
            f"{FORWARD} %10, %14, %15",
            "[cast mul reduce_sum sub] -> %23",
            "[cast mul] -> %33",
            "matmul -> %16",
            "matmul -> %30",
            "matmul -> %31",
        ],
        [
            f"{FORWARD} %10, %11, %13, %15",
            "[cast mul mul reduce_sum sub sub] -> %23",
            "[cast mul mul sub] -> %33",
            "matmul -> %16",
            "matmul -> %30",
            "matmul -> %31",
        ],
    ),
    "and in sums over columns": (
        N,
        f"{forward()}{READER}%24 = {columns('%21')}\n%25 = {columns('%20')}\n"
        "return %10, %23, %24, %25",
        [
            f"{FORWARD} %10, %14, %15",
            "[cast mul reduce_sum sub] -> %20, %21, %23",
            "matmul -> %16",
            "reduce_sum -> %24",
            "reduce_sum -> %25",
        ],
        [
            f"{FORWARD} %10, %11, %13, %15",
            "[cast mul mul reduce_sum reduce_sum sub] -> %24, %25",
            "[cast mul mul reduce_sum sub sub] -> %23",
            "matmul -> %16",
        ],
    ),
    "from a bfloat16 value": (
        N,
        f"{PRODUCTS}{forward(f'%10 = cast(%5, dtype=float32) : {F}')}{READER}return %23",
        [
            "[cast cast mul reduce_sum reduce_sum sub] -> %14, %15",
            "[cast mul reduce_sum sub] -> %23",
            "matmul -> %16",
            "matmul -> %4",
            "matmul -> %5",
        ],
        [
            "[cast cast mul reduce_sum reduce_sum sub] -> %11, %13, %15",
            "[cast cast mul mul reduce_sum sub sub] -> %23",
            "matmul -> %16",
            "matmul -> %4",
            "matmul -> %5",
        ],
    ),
    "two operands take as long to read as norm to write and read": (
        N,
        f"{forward()}{READER}return %23",
        [f"{FORWARD} %14, %15", "[cast mul reduce_sum sub] -> %23", "matmul -> %16"],
        None,
    ),
    "two values together have more bytes": (
        f"%0: {F}, %1: float32[16, 16], %2: {B}, %3: bfloat16[16, 16]",
        f"%4 = matmul(%0, %1, transpose_a=False, transpose_b=False) : {F}\n"
        f"%5 = matmul(%4, %1, transpose_a=False, transpose_b=False) : {F}\n"
        f"{forward(f'%10 = add(%4, %5) : {F}')}{READER}return %23",
        [
            "[add cast mul reduce_sum reduce_sum sub] -> %14, %15",
            "[cast mul reduce_sum sub] -> %23",
            "matmul -> %16",
            "matmul -> %4",
            "matmul -> %5",
        ],
        None,
    ),
    "a gather reads its source from memory": (
        f"{N}, %4: int32[4]",
        f"{forward()}%20 = gather(%14, %4, axis=0) : float32[4, 16]\n"
        "%21 = neg(%20) : float32[4, 16]\nreturn %10, %16, %21",
        [f"{FORWARD} %10, %14, %15", "[gather neg] -> %21", "matmul -> %16"],
        None,
    ),
    "norm is a result of the graph": (
        N,
        f"{forward()}{READER}return %10, %14, %23",
        [f"{FORWARD} %10, %14, %15", "[cast mul reduce_sum sub] -> %23", "matmul -> %16"],
        None,
    ),
}


@pytest.mark.parametrize("case", [*SUMS.values(), *SAVED.values()], ids=[*SUMS, *SAVED])
def test_values_computed_again(case: tuple[str, str, list[str], list[str] | None]) -> None:
    head, body, before, after = case
    graph = graph_of(head, body)
    plain = verify(fuse(graph, PassContext(costs=NOTHING_AGAIN)))
    again = verify(fuse(graph, PassContext(costs=COSTS)))
    assert kernels(plain, body) == sorted(before)
    assert kernels(again, body) == sorted(after or before)


@pytest.mark.parametrize("case", [*SUMS.values(), *SAVED.values()], ids=[*SUMS, *SAVED])
def test_every_node_is_explained(case: tuple[str, str, list[str], list[str] | None]) -> None:
    graph = graph_of(*case[:2])
    context = PassContext(costs=COSTS)
    known = groups_of(graph, context).grouping.producer
    decisions = explain_fusion(graph, context)
    assert len(decisions) == len(graph.nodes)
    for node, decision in zip(graph.nodes, decisions, strict=True):
        again = "computed again" in decision.reason
        assert again == (node.results[0] not in known)
        assert decision.kernel is None or not again


def test_backends_that_do_not_ask_compute_nothing_again() -> None:
    assert DEFAULT_COSTS.fusion.max_recomputed == 0
