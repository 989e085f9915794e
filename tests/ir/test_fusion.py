"""Fusion on graphs written as text: which nodes come into one region, and in which order regions
stand.
"""

from __future__ import annotations

from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph.backend.costs import DEFAULT_COSTS
from duograph.execution.lower import lower_closed
from duograph.ir.builder import trace
from duograph.ir.epilogue import epilogue_of
from duograph.ir.text import parse, to_text
from duograph.ir.verify import verify
from duograph.passes import PassContext, run
from duograph.passes.compare_labels import compare_labels
from duograph.passes.fusion import fuse
from duograph.passes.matmul import fold_transposes, merge_matmul_sums
from duograph.passes.padded_sums import concatenate_padded_sums
from duograph.passes.split_reductions import split_reductions
from duograph.types import TensorType
from ir.graphs import graph_of, shape_of

LEAST_MATMULS = DEFAULT_COSTS.min_matmul_sum


X = "%0: float32[8, 16]"
F = "float32[8, 16]"

CASES = {
    "a chain is one region": (
        X,
        f"%1 = exp(%0) : {F}\n%2 = neg(%1) : {F}\n%3 = mul(%2, %0) : {F}\nreturn %3",
        ["[exp neg mul]"],
    ),
    "one op alone has a kernel already": (X, f"%1 = exp(%0) : {F}\nreturn %1", ["exp"]),
    "what a product separates stays apart": (
        "%0: float32[8, 8]",
        "%1 = exp(%0) : float32[8, 8]\n%2 = neg(%1) : float32[8, 8]\n"
        "%3 = matmul(%2, %0, transpose_a=False, transpose_b=False) : float32[8, 8]\n"
        "%4 = add(%3, %2) : float32[8, 8]\n%5 = exp(%4) : float32[8, 8]\nreturn %5",
        ["[exp neg]", "matmul", "[add exp]"],
    ),
    "a row is reduced and spread again": (
        X,
        "%1 = reduce_max(%0, axis=(1,), keepdims=True) : float32[8, 1]\n"
        f"%2 = sub(%0, %1) : {F}\n%3 = exp(%2) : {F}\n"
        "%4 = reduce_sum(%3, axis=(1,), keepdims=True) : float32[8, 1]\n"
        f"%5 = div(%3, %4) : {F}\nreturn %5",
        ["[reduce_max sub exp reduce_sum div]"],
    ),
    "columns are added up at the end of a region": (
        X,
        f"%1 = exp(%0) : {F}\n%2 = neg(%1) : {F}\n"
        "%3 = reduce_sum(%2, axis=(0,), keepdims=False) : float32[16]\nreturn %3",
        ["[exp neg reduce_sum]"],
    ),
    "a row value that is spread along the row's axis by mistake of shape is apart": (
        "%0: float32[16, 16]",
        "%1 = exp(%0) : float32[16, 16]\n"
        "%2 = reduce_sum(%1, axis=(1,), keepdims=False) : float32[16]\n"
        "%3 = add(%1, %2) : float32[16, 16]\n%4 = exp(%3) : float32[16, 16]\nreturn %4",
        ["[exp reduce_sum]", "[add exp]"],
    ),
    "rows of two lengths are two regions": (
        "%0: float32[8, 16, 16]",
        "%1 = exp(%0) : float32[8, 16, 16]\n"
        "%2 = reduce_sum(%1, axis=(2,), keepdims=False) : float32[8, 16]\n"
        "%3 = reduce_sum(%1, axis=(1, 2), keepdims=False) : float32[8]\nreturn %2, %3",
        ["[exp reduce_sum]", "reduce_sum"],
    ),
    "a reshape between elementwise ops": (
        X,
        f"%1 = exp(%0) : {F}\n%2 = reshape(%1, shape=(128,)) : float32[128]\n"
        "%3 = neg(%2) : float32[128]\nreturn %3",
        ["[exp reshape neg]"],
    ),
    "a reshape for others is no result of a region": (
        X,
        f"%1 = exp(%0) : {F}\n%2 = neg(%1) : {F}\n"
        "%3 = reshape(%2, shape=(128,)) : float32[128]\nreturn %3",
        ["[exp neg]", "reshape"],
    ),
    "numbers are written where they are used": (
        X,
        "%1 = fill(shape=(), value=2.0, dtype=float32) : float32[]\n"
        f"%2 = mul(%0, %1) : {F}\n%3 = add(%2, %1) : {F}\nreturn %3",
        ["[mul add]"],
    ),
    "an empty tensor has nothing to fuse": (
        "%0: float32[0, 16]",
        "%1 = exp(%0) : float32[0, 16]\n%2 = neg(%1) : float32[0, 16]\nreturn %2",
        ["exp", "neg"],
    ),
    "complex numbers run op by op": (
        "%0: complex64[8]",
        "%1 = exp(%0) : complex64[8]\n%2 = neg(%1) : complex64[8]\nreturn %2",
        ["exp", "neg"],
    ),
}


MATMUL = "matmul(%0, %0, transpose_a=False, transpose_b=False)"
Q = "float32[8, 8]"
EARLY = {
    "a value that only a later region reads is computed there": (
        "%0: float32[8, 8]",
        f"%1 = exp(%0) : {Q}\n%2 = {MATMUL} : {Q}\n%3 = add(%2, %1) : {Q}\n"
        f"%4 = neg(%3) : {Q}\nreturn %4",
        ["matmul", "[exp add neg]"],
    ),
    "one op joins one op": (
        "%0: float32[8, 8]",
        f"%1 = exp(%0) : {Q}\n%2 = {MATMUL} : {Q}\n%3 = add(%2, %1) : {Q}\nreturn %3",
        ["matmul", "[exp add]"],
    ),
    "two readers in one region": (
        "%0: float32[8, 8]",
        f"%1 = exp(%0) : {Q}\n%2 = {MATMUL} : {Q}\n%3 = add(%2, %1) : {Q}\n"
        f"%4 = mul(%3, %1) : {Q}\nreturn %4",
        ["matmul", "[exp add mul]"],
    ),
    "a value that something else reads stays in memory": (
        "%0: float32[8, 8]",
        f"%1 = exp(%0) : {Q}\n%2 = matmul(%0, %1, transpose_a=False, transpose_b=False) : {Q}\n"
        f"%3 = add(%2, %1) : {Q}\n%4 = neg(%3) : {Q}\nreturn %4",
        ["exp", "matmul", "[add neg]"],
    ),
    "a result of the graph stays in memory": (
        "%0: float32[8, 8]",
        f"%1 = exp(%0) : {Q}\n%2 = {MATMUL} : {Q}\n%3 = add(%2, %1) : {Q}\n"
        f"%4 = neg(%3) : {Q}\nreturn %4, %1",
        ["exp", "matmul", "[add neg]"],
    ),
    "readers in two regions": (
        "%0: float32[8, 8]",
        f"%1 = exp(%0) : {Q}\n%2 = {MATMUL} : {Q}\n%3 = add(%2, %1) : {Q}\n"
        f"%4 = neg(%3) : {Q}\n%5 = matmul(%4, %0, transpose_a=False, transpose_b=False) : {Q}\n"
        f"%6 = add(%5, %1) : {Q}\n%7 = neg(%6) : {Q}\nreturn %7",
        ["exp", "matmul", "[add neg]", "matmul", "[add neg]"],
    ),
    "a chain of early groups": (
        "%0: float32[8, 8]",
        f"%1 = exp(%0) : {Q}\n%2 = {MATMUL} : {Q}\n%3 = add(%2, %1) : {Q}\n"
        f"%4 = matmul(%2, %0, transpose_a=False, transpose_b=False) : {Q}\n"
        f"%5 = mul(%4, %3) : {Q}\nreturn %5",
        ["matmul", "matmul", "[exp add mul]"],
    ),
    "rows join the same rows": (
        "%0: float32[8, 8]",
        f"%1 = exp(%0) : {Q}\n%2 = reduce_sum(%1, axis=(1,), keepdims=True) : float32[8, 1]\n"
        f"%3 = {MATMUL} : {Q}\n"
        "%4 = reduce_sum(%3, axis=(1,), keepdims=True) : float32[8, 1]\n"
        f"%5 = mul(%3, %2) : {Q}\n%6 = mul(%5, %4) : {Q}\nreturn %6",
        ["matmul", "[exp reduce_sum reduce_sum mul mul]"],
    ),
    "rows leave a region without rows alone": (
        "%0: float32[8, 8]",
        f"%1 = exp(%0) : {Q}\n%2 = reduce_sum(%1, axis=(1,), keepdims=True) : float32[8, 1]\n"
        f"%3 = div(%1, %2) : {Q}\n%4 = {MATMUL} : {Q}\n%5 = add(%4, %3) : {Q}\n"
        f"%6 = neg(%5) : {Q}\nreturn %6",
        ["matmul", "[exp reduce_sum div]", "[add neg]"],
    ),
}


@pytest.mark.parametrize("case", EARLY.values(), ids=EARLY)
def test_groups_merge_into_their_only_reader(case: tuple[str, str, list[str]]) -> None:
    head, body, want = case
    graph = graph_of(head, body)
    fused = verify(fuse(graph))
    assert sorted(shape_of(fused)) == sorted(want)
    x = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32) / 4
    backend = ms.backend.registry.backend("CPU")
    types = [graph.types[i] for i in graph.outputs]
    for got, want_, type_ in zip(values_of(fused, [x]), values_of(graph, [x]), types, strict=True):
        got, want_ = (backend.copy_out(h, type_.shape, type_.dtype.np, 0) for h in (got, want_))
        np.testing.assert_allclose(got, want_, rtol=1e-6)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_fuse(case: tuple[str, str, list[str]]) -> None:
    head, body, want = case
    graph = graph_of(head, body)
    fused = verify(fuse(graph))
    assert shape_of(fused) == want
    text = to_text(parse(to_text(fused)))
    assert to_text(parse(text)) == text


M = "float32[8, 8]"
P = f"%2 = matmul(%0, %1, transpose_a=False, transpose_b=False) : {M}\n"
PRODUCTS = {
    "one op is enough": (P + f"%3 = exp(%2) : {M}\nreturn %3", ["[matmul exp]"]),
    "through a reshape": (
        P + "%3 = reshape(%2, shape=(64,)) : float32[64]\n%4 = exp(%3) : float32[64]\nreturn %4",
        ["[matmul reshape exp]"],
    ),
    "not only a reshape": (
        P + "%3 = reshape(%2, shape=(64,)) : float32[64]\nreturn %3",
        ["matmul", "reshape"],
    ),
    "not when it is a result too": (P + f"%3 = exp(%2) : {M}\nreturn %2, %3", ["matmul", "exp"]),
    "not when another name of it is a result": (
        P
        + "%3 = reshape(%2, shape=(64,)) : float32[64]\n%4 = exp(%3) : float32[64]\nreturn %3, %4",
        ["matmul", "reshape", "exp"],
    ),
    "not when something else reads it": (
        P
        + f"%3 = exp(%2) : {M}\n%4 = matmul(%2, %3, transpose_a=False, transpose_b=False) : {M}\n"
        + f"%5 = neg(%4) : {M}\nreturn %5",
        ["matmul", "exp", "[matmul neg]"],
    ),
    "not when it is spread": (
        "%2 = matmul(%0, %1, transpose_a=False, transpose_b=False) : float32[8, 8]\n"
        "%3 = broadcast_to(%2, shape=(2, 8, 8)) : float32[2, 8, 8]\n%4 = exp(%3) : float32[2, 8, "
        "8]\n"
        "%5 = neg(%4) : float32[2, 8, 8]\nreturn %5",
        ["matmul", "[broadcast_to exp neg]"],
    ),
    "not before a row is reduced": (
        P
        + f"%3 = exp(%2) : {M}\n%4 = reduce_sum(%3, axis=(1,), keepdims=True) : float32[8, 1]\n"
        + f"%5 = div(%3, %4) : {M}\nreturn %5",
        ["matmul", "[exp reduce_sum div]"],
    ),
    "the last of two": (
        P + f"%3 = matmul(%1, %0, transpose_a=False, transpose_b=False) : {M}\n"
        f"%4 = add(%2, %3) : {M}\nreturn %4",
        ["matmul", "[matmul add]"],
    ),
}


@pytest.mark.parametrize("case", PRODUCTS.values(), ids=list(PRODUCTS))
def test_matmul_joins_its_epilogue(case: tuple[str, list[str]]) -> None:
    body, want = case
    graph = graph_of("%0: float32[8, 8], %1: float32[8, 8]", body)
    fused = verify(fuse(graph, PassContext(epilogues=frozenset({"matmul"}))))
    assert shape_of(fused) == want
    for node in fused.nodes:
        found = (
            epilogue_of(node.attributes["body"], {"matmul"}) if node.op.name == "region" else None
        )
        if found is not None:
            assert found.product.op.name == "matmul"
            verify(found.tail)
            assert (
                found.tail.types[0]
                == found.product.op.infer_types(
                    tuple(node.attributes["body"].types[i] for i in found.product.operands),
                    found.product.attributes,
                )[0]
            )
    xs = [np.random.default_rng(k).standard_normal((8, 8)).astype(np.float32) for k in (0, 1)]
    device = ms.execution.device.get_current_device()
    backend = ms.backend.registry.backend(device.name)
    for i, a, b in zip(graph.outputs, values_of(graph, xs), values_of(fused, xs), strict=True):
        type_ = graph.types[i]
        shown = [backend.copy_out(h, type_.shape, type_.dtype.np, device.index) for h in (a, b)]
        np.testing.assert_array_equal(*shown)


def values_of(graph: Any, arrays: list[Any]) -> list[Any]:
    device = ms.Tensor(arrays[0])._type.device or ms.execution.device.get_current_device()
    handles = [(ms.Tensor(a) + 0)._buf for a in arrays]
    call = lower_closed(graph, device)
    found = call(*handles)
    return list(found) if isinstance(found, tuple) else [found]


def test_uncompiled_region_runs_op_by_op() -> None:
    """Its body is put where it stands: the same kernels, the same bits."""
    f = lambda x, y: (ms.ops.exp(x) * y + 1, ms.ops.sum(x * y, 1))  # noqa: E731
    x, y = (np.random.default_rng(k).standard_normal((70, 9)).astype(np.float32) for k in (0, 1))
    graph = run(trace(f, [TensorType.of((70, 9), ms.float32)] * 2))
    fused = fuse(graph)
    assert any(node.op.name == "region" for node in fused.nodes)
    device = ms.execution.device.get_current_device()
    handles = [(ms.Tensor(a) + 0)._buf for a in (x, y)]
    backend = ms.backend.registry.backend(device.name)
    for i, (a, b) in enumerate(
        zip(
            lower_closed(graph, device)(*handles),
            lower_closed(fused, device)(*handles),
            strict=True,
        )
    ):
        type_ = graph.types[graph.outputs[i]]
        shown = [backend.copy_out(h, type_.shape, type_.dtype.np, device.index) for h in (a, b)]
        np.testing.assert_array_equal(*shown)


def test_regions_have_a_size_limit() -> None:
    def f(x: Any) -> Any:
        for _ in range(3 * DEFAULT_COSTS.fusion.max_nodes):
            x = ms.ops.sin(x) + 1
        return x

    fused = fuse(trace(f, [TensorType.of((10,), ms.float32)]))
    sizes = [len(n.attributes["body"].nodes) for n in fused.nodes if n.op.name == "region"]
    assert len(sizes) >= 3
    assert max(sizes) <= 2 * DEFAULT_COSTS.fusion.max_nodes


def test_effects_keep_their_order() -> None:
    net = ms.jit(
        lambda x: (print("a", x.sum()), print("b", (ms.ops.exp(x) * x).sum()), x * 2 + 1)[2]
    )
    x = ms.Tensor(np.ones(3, np.float32))
    assert net(x).asnumpy().tolist() == [3, 3, 3]


@pytest.mark.parametrize("depth", range(6))
@pytest.mark.parametrize("effects", [1, 2])
def test_a_region_does_not_wait_for_effects_that_read_it(depth: int, effects: int) -> None:
    """Random numbers are drawn after a print of what the region computes, at any depth."""

    def f(x: Any, y: Any) -> Any:
        for _ in range(depth):
            x = ms.ops.cumsum(x, 0)
        a = ms.ops.tanh(x) * y
        for _ in range(effects):
            print(a.sum())
        r = ms.ops.standard_normal((300,))
        return (a * 2 + 1) * r

    x = ms.Tensor(np.linspace(-1, 1, 300, dtype=np.float32))
    fused = verify(fuse(ms.jit(f).graph(x, x)))
    acts = [n.op.name for n in fused.nodes if n.effects]
    assert acts == ["host_call"] * effects + ["random_state"]
    regions = [n for n in fused.nodes if n.op.name == "region"]
    assert regions and "tanh" in shape_of(regions[0].attributes["body"])
    ms.set_seed(3)
    want = f(x, x)
    ms.set_seed(3)
    np.testing.assert_allclose(ms.jit(f, jit_level="O1")(x, x).asnumpy(), want.asnumpy(), 1e-4)


@pytest.mark.parametrize(
    ("perm", "flags"), [((0, 2, 1), (False, True)), ((1, 0, 2), (False, False))]
)
def test_fold_transposes(perm: tuple[int, ...], flags: tuple[bool, bool]) -> None:
    graph = graph_of(
        "%0: float32[4, 4, 4], %1: float32[4, 4, 4]",
        f"%2 = transpose(%1, perm={perm}) : float32[4, 4, 4]\n"
        "%3 = matmul(%0, %2, transpose_a=False, transpose_b=False) : float32[4, 4, 4]\nreturn %3",
    )
    found = run(verify(fold_transposes(graph)))
    (product,) = [n for n in found.nodes if n.op.name == "matmul"]
    assert (product.attributes["transpose_a"], product.attributes["transpose_b"]) == flags
    assert len(found.nodes) == 1 + (flags == (False, False))


@pytest.mark.parametrize("flags", [(False, False), (True, False), (False, True), (True, True)])
def test_merge_matmul_sums(flags: tuple[bool, bool]) -> None:
    a, b = flags
    left, right = ("5, 3" if a else "3, 5"), ("7, 5" if b else "5, 7")
    head = ", ".join(
        f"%{2 * k}: float32[{left}], %{2 * k + 1}: float32[{right}]" for k in range(LEAST_MATMULS)
    )
    at = 2 * LEAST_MATMULS
    lines = [
        f"%{at + k} = matmul(%{2 * k}, %{2 * k + 1}, transpose_a={a}, transpose_b={b}) : "
        "float32[3, 7]"
        for k in range(LEAST_MATMULS)
    ]
    total = at
    for k in range(1, LEAST_MATMULS):
        here = at + LEAST_MATMULS + k - 1
        lines.append(f"%{here} = add(%{total}, %{at + k}) : float32[3, 7]")
        total = here
    graph = graph_of(head, "\n".join([*lines, f"return %{total}"]))
    joined = run(verify(merge_matmul_sums(graph)))
    assert [n.op.name for n in joined.nodes] == ["concat", "concat", "matmul"]
    device = ms.execution.device.get_current_device()
    rng = np.random.default_rng(0)
    handles = [
        (ms.Tensor(rng.standard_normal(t.shape).astype(np.float32)) + 0)._buf
        for t in graph.types[: graph.n_params]
    ]
    backend = ms.backend.registry.backend(device.name)
    shown = [
        backend.copy_out(lower_closed(g, device)(*handles), (3, 7), np.dtype(np.float32), 0)
        for g in (graph, joined)
    ]
    np.testing.assert_allclose(*shown, rtol=1e-5, atol=1e-5)


def test_merge_matmul_sums_leaves_other_sums() -> None:
    """A product that something else reads, a sum of few, and operands of two kinds stay as they
    are.
    """
    few = "%2 = matmul(%0, %1, transpose_a=False, transpose_b=False) : float32[4, 4]\n"
    graph = graph_of(
        "%0: float32[4, 4], %1: float32[4, 4]",
        few + "%3 = add(%2, %2) : float32[4, 4]\n%4 = add(%3, %2) : float32[4, 4]\nreturn %4",
    )
    assert [n.op.name for n in merge_matmul_sums(graph).nodes] == ["matmul", "add", "add"]


PIECES = """
%2 = pad_constant(%0, low=(0, 0), high=(3, 0), value=0) : float32[5, 4]
%3 = pad_constant(%1, low=({low}, 0), high=({high}, 0), value=0) : float32[5, 4]
%4 = add(%2, %3) : float32[5, 4]
return %4
"""


@pytest.mark.parametrize(
    ("rows", "low", "want"),
    [(3, 2, ["concat"]), (2, 2, ["pad_constant", "pad_constant", "add"]),
     (3, 1, ["pad_constant", "pad_constant", "add"])],
    ids=["complete", "with a gap", "overlapping"],
)  # fmt: skip
def test_concatenate_padded_sums(rows: int, low: int, want: list[str]) -> None:
    body = PIECES.format(low=low, high=5 - rows - low).strip()
    graph = graph_of(f"%0: float32[2, 4], %1: float32[{rows}, 4]", body)
    assert [n.op.name for n in run(verify(concatenate_padded_sums(graph))).nodes] == want


LABELS = """
%2 = checked_labels(%1, classes={classes}, owner="cross_entropy") : int32[8]
%3 = reshape(%2, shape=(8, 1)) : int32[8, 1]
"""
PICK = """
%4 = exp(%0) : float32[8, {classes}]
%5 = gather_elements(%4, %3, axis=1) : float32[8, 1]
"""
PUT = """
%6 = fill(shape=(8, {classes}), value={start}, dtype=float32) : float32[8, {classes}]
%7 = scatter_elements_add(%6, %3, %5, axis=1) : float32[8, {classes}]
%8 = mul(%7, %0) : float32[8, {classes}]
return %8, %5
"""
COMPARED = {
    "a gather and a scatter": (LABELS + PICK + PUT, {"classes": 50, "start": 0}, True),
    "a scatter into other numbers": (LABELS + PICK + PUT, {"classes": 50, "start": 1}, False),
    "rows too short to be reduced": (LABELS + PICK + PUT, {"classes": 5, "start": 0}, False),
    "labels that nothing checked": (
        "%3 = reshape(%1, shape=(8, 1)) : int32[8, 1]\n" + PICK + PUT,
        {"classes": 50, "start": 0},
        False,
    ),
    "an operand in memory": (
        LABELS + "%5 = gather_elements(%0, %3, axis=1) : float32[8, 1]\nreturn %5",
        {"classes": 50},
        False,
    ),
}


@pytest.mark.parametrize("case", COMPARED.values(), ids=COMPARED)
def test_compare_labels(case: tuple[str, dict[str, int], bool]) -> None:
    body, numbers, changes = case
    classes = numbers["classes"]
    graph = graph_of(f"%0: float32[8, {classes}], %1: int32[8]", body.format(**numbers))
    costs = DEFAULT_COSTS._replace(compare_labels=True)
    assert compare_labels(graph, PassContext()) is graph  # only where the backend asks for it
    found = verify(compare_labels(graph, PassContext(costs=costs)))
    names = {node.op.name for node in found.nodes}
    assert ("equal" in names) is changes or numbers.get("start") == 1
    assert ("scatter_elements_add" in names) is (not changes and "start" in numbers)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((8, classes)).astype(np.float32)
    x[0, :2] = np.nan, np.inf  # they stay where they are
    labels = rng.integers(2, classes, 8).astype(np.int32)
    backend = ms.backend.registry.backend("CPU")
    types = [graph.types[i] for i in graph.outputs]
    made = zip(values_of(found, [x, labels]), values_of(graph, [x, labels]), types, strict=True)
    for got, want, type_ in made:
        got, want = (backend.copy_out(h, type_.shape, type_.dtype.np, 0) for h in (got, want))
        np.testing.assert_array_equal(got, want)


D = "float32[4, 8, 6, 6]"
TWO_STEPS = {
    "the last axes and others": (
        "axis=(0, 2, 3)",
        "float32[8]",
        ["[exp neg reduce_sum]", "reduce_sum"],
    ),
    "the last axes alone": ("axis=(2, 3)", "float32[4, 8]", ["[exp neg reduce_sum]"]),
    "all axes": ("axis=(0, 1, 2, 3)", "float32[]", ["[exp neg reduce_sum]"]),
    "other axes": ("axis=(0, 1)", "float32[6, 6]", ["[exp neg reduce_sum]"]),
}


@pytest.mark.parametrize("case", TWO_STEPS.values(), ids=list(TWO_STEPS))
def test_split_reductions(case: tuple[str, str, list[str]]) -> None:
    axis, result, want = case
    graph = graph_of(
        f"%0: {D}",
        f"%1 = exp(%0) : {D}\n%2 = neg(%1) : {D}\n%3 = reduce_sum(%2, {axis}, keepdims=False) : "
        f"{result}\nreturn %3",
    )
    fused = verify(fuse(verify(split_reductions(graph))))
    assert shape_of(fused) == want
    x = np.random.default_rng(0).standard_normal((4, 8, 6, 6)).astype(np.float32)
    device = ms.execution.device.get_current_device()
    backend = ms.backend.registry.backend(device.name)
    type_ = graph.types[graph.outputs[0]]
    found = backend.copy_out(values_of(fused, [x])[0], type_.shape, type_.dtype.np, device.index)
    axes = tuple(int(a) for a in axis[6:-1].split(","))
    np.testing.assert_allclose(found, -np.exp(x.astype(np.float64)).sum(axes), rtol=1e-5)


LEVELS = {
    "a gather waits for the op that reads it": (
        "%0: float32[50, 64], %1: int32[8], %2: float32[8, 8]",
        "%3 = gather(%0, %1, axis=0) : float32[8, 64]\n"
        "%4 = matmul(%2, %3, transpose_a=False, transpose_b=False) : float32[8, 64]\n"
        "%5 = gather(%0, %1, axis=0) : float32[8, 64]\n"
        "%6 = exp(%4) : float32[8, 64]\n%7 = add(%6, %5) : float32[8, 64]\nreturn %7",
        ["gather", "matmul", "[gather exp add]"],
    ),
    "a gather that two regions read is computed once": (
        "%0: float32[50, 64], %1: int32[64]",
        "%2 = gather(%0, %1, axis=0) : float32[64, 64]\n%3 = exp(%2) : float32[64, 64]\n"
        "%4 = matmul(%3, %3, transpose_a=False, transpose_b=False) : float32[64, 64]\n"
        "%5 = add(%4, %2) : float32[64, 64]\n%6 = exp(%5) : float32[64, 64]\nreturn %6",
        ["[gather exp]", "matmul", "[add exp]"],
    ),
    "a number that two regions read is no result of a region with a longer loop": (
        "%0: float32[4], %1: int32[], %2: float32[64], %3: float32[32]",
        "%4 = gather(%0, %1, axis=0) : float32[]\n%5 = div(%4, %2) : float32[64]\n"
        "%6 = exp(%5) : float32[64]\n%7 = div(%4, %3) : float32[32]\n"
        "%8 = exp(%7) : float32[32]\nreturn %6, %8",
        ["gather", "[div exp]", "[div exp]"],
    ),
    "short rows are copied": (
        "%0: float32[50, 8], %1: int32[70]",
        "%2 = gather(%0, %1, axis=0) : float32[70, 8]\n%3 = exp(%2) : float32[70, 8]\nreturn %3",
        ["gather", "exp"],
    ),
    "a column that the region needs is another's": (
        "%0: float32[50, 64]",
        "%1 = reduce_sum(%0, axis=(0,), keepdims=True) : float32[1, 64]\n"
        "%2 = sub(%0, %1) : float32[50, 64]\n%3 = mul(%2, %2) : float32[50, 64]\n"
        "%4 = reduce_sum(%3, axis=(0,), keepdims=False) : float32[64]\nreturn %4",
        ["reduce_sum", "[sub mul reduce_sum]"],
    ),
    "columns of what is read too": (
        "%0: float32[50, 64], %1: float32[50, 64]",
        "%2 = reduce_sum(%0, axis=(0,), keepdims=False) : float32[64]\n%3 = mul(%0, %1) : "
        "float32[50, 64]\n"
        "%4 = reduce_sum(%3, axis=(0,), keepdims=False) : float32[64]\nreturn %2, %4",
        ["[reduce_sum mul reduce_sum]"],
    ),
    "other columns stay apart": (
        "%0: float32[5, 10, 64]",
        "%1 = exp(%0) : float32[5, 10, 64]\n%2 = reduce_sum(%1, axis=(0,), keepdims=False) : "
        "float32[10, 64]\n"
        "%3 = reduce_sum(%1, axis=(0, 1), keepdims=False) : float32[64]\nreturn %2, %3",
        ["[exp reduce_sum]", "reduce_sum"],
    ),
    "a scatter waits for its target": (
        "%0: float32[64, 64], %1: int32[64]",
        "%2 = exp(%0) : float32[64, 64]\n%3 = neg(%2) : float32[64, 64]\n"
        "%4 = matmul(%3, %3, transpose_a=False, transpose_b=False) : float32[64, 64]\n"
        "%5 = scatter_add(%4, %1, %3, axis=0) : float32[64, 64]\nreturn %5",
        ["[exp neg]", "matmul", "scatter_add"],
    ),
    "a scatter into zeros": (
        "%0: float32[70, 64], %1: int32[70]",
        "%2 = fill(shape=(50, 64), value=0.0, dtype=float32) : float32[50, 64]\n"
        "%3 = scatter_add(%2, %1, %0, axis=0) : float32[50, 64]\nreturn %3",
        ["[scatter_add]"],
    ),
}


@pytest.mark.parametrize("case", LEVELS.values(), ids=list(LEVELS))
def test_gathers_columns_and_scatters_of_regions(case: tuple[str, str, list[str]]) -> None:
    head, body, want = case
    assert shape_of(verify(fuse(graph_of(head, body)))) == want
