"""Passes on graphs that run graphs: before and after as text, and the same bits."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import passes
from duograph.dtype import bool_, float32, float64, int32
from duograph.ir.control import HostCall, custom_call, host_call, to_host, to_tensor
from duograph.ir.graph import FrozenArray, Graph, GraphNode, NamedGraph
from duograph.ir.verify import verify
from duograph.op import OPS
from duograph.ops.comparison import greater, less
from duograph.ops.creation import cast_to
from duograph.ops.elementwise import add, mul, neg, sub
from duograph.ops.exponential import exp
from duograph.ops.logic import logical_and, select_by
from duograph.ops.movement import concat_by, identity
from duograph.ops.shape_primitives import broadcast_to, reduce_sum, reshape_to, transpose_by
from duograph.ops.trigonometry import cos, sin
from duograph.passes.common_subexpressions import merge_common_subexpressions
from duograph.passes.dead_code import remove_dead_code
from duograph.passes.simplify import simplify
from duograph.types import BOOL, FLOAT, INT, TensorType
from ir.control_programs import COUNT, PROGRAMS, V
from ir.graphs import branch, here, host, invoke, loop, number, run, show, write
from ir.test_linearize_control import derivative, verify_all

FLAG = TensorType.of((), bool_)


def clean(step: Callable[[Graph], Graph]) -> Callable[[Graph], Graph]:
    """Return a pass that runs `step` and then removes dead code."""
    return lambda graph: remove_dead_code(step(graph))


def check(step: Callable[[Graph], Graph], types: Any, before: Any, after: str) -> None:
    graph = verify(write(types, before))
    text = show(graph)
    found = step(graph)
    verify_all(found)
    assert show(found) == textwrap.dedent(after).strip()
    assert show(graph) == text  # the graph that went in is as it was


# ---- inlining -----------------------------------------------------------------------------------


def test_switch_on_a_number() -> None:
    check(
        clean(simplify),
        [V],
        lambda x: branch(host(True), [x], lambda x: sin(x), lambda x: exp(x)),
        """
        graph(%0: float32[3])
          %1 = exp(%0)
          return %1
        """,
    )


def test_switch_on_a_tensor_that_is_known() -> None:
    check(
        clean(simplify),
        [V],
        lambda x: branch(less(number(3, int32), 2), [x], lambda x: sin(x), lambda x: exp(x)),
        """
        graph(%0: float32[3])
          %1 = sin(%0)
          return %1
        """,
    )


def test_loop_that_never_runs() -> None:
    check(
        clean(simplify),
        [V],
        lambda x: loop(host(False), [x], [], lambda x: (host(True), exp(x))),
        """
        graph(%0: float32[3])
          return %0
        """,
    )


def test_calls() -> None:
    inner = NamedGraph("inner", (V,))
    inner.graph = write([V], lambda x: exp(x))
    outer = NamedGraph("outer", (V,))
    outer.graph = write([V], lambda x: sin(invoke(inner, x)[0]))
    check(
        clean(simplify),
        [V],
        lambda x: invoke(outer, x),
        """
        graph(%0: float32[3])
          %1 = exp(%0)
          %2 = sin(%1)
          return %2
        """,
    )


def test_recursive_calls_stay_and_their_graphs_are_simplified() -> None:
    target = NamedGraph("f", (V,))
    target.graph = write(
        [V, COUNT],
        lambda x, n: branch(
            greater(n, 0),
            [x, n],
            lambda x, n: neg(neg(x)),
            lambda x, n: invoke(target, identity(exp(x)), sub(n, 1)),
        ),
    )
    graph = write([V, COUNT], lambda x, n: invoke(target, x, n))
    found = passes.run(graph)
    verify_all(found)
    (node,) = found.nodes
    made = node.attributes["target"]
    assert made is not target and made.name == "f"
    assert "neg" in show(target.graph)
    assert (
        show(made.graph)
        == textwrap.dedent("""
        graph(%0: float32[3], %1: int32[])
          %2 = fill(shape=(), value=0, dtype=duograph.int32)
          %3 = greater(%1, %2)
          %4 = switch(%3, %0, %1)
            0(%0: float32[3], %1: int32[])
              return %0
            1(%0: float32[3], %1: int32[])
              %2 = exp(%0)
              %3 = fill(shape=(), value=1, dtype=duograph.int32)
              %4 = sub(%1, %3)
              %5 = call(%2, %4, target=@f)
              return %5
          return %4
        """).strip()
    )
    (inner,) = (
        n for n in made.graph.nodes[-1].attributes["branches"][1].nodes if n.op.name == "call"
    )
    assert inner.attributes["target"] is made


def test_custom_call_is_inlined() -> None:
    graph = write([V], lambda x: exp(x))
    backward = write([V, V, V], lambda x, out, dout: dout)
    check(
        simplify,
        [V],
        lambda x: here().append(
            custom_call,
            (x,),
            {"graph": graph, "backward": backward, "n_args": 1, "name": "own"},
        ),
        """
        graph(%0: float32[3])
          %1 = exp(%0)
          return %1
        """,
    )


# ---- folding ------------------------------------------------------------------------------------


def constant(values: Any, dtype: Any) -> Any:
    return here().append(OPS["constant"], (), {"value": FrozenArray(np.array(values, dtype.np))})


I4 = TensorType.of((4,), int32)
FOLDED: list[tuple[str, Callable[[], Any], str]] = [
    (
        "integers",
        lambda: mul(constant([1, 2], int32), add(number(3, int32), number(4, int32))),
        "[7, 14]",
    ),
    (
        "bools",
        lambda: logical_and(constant([True, False], bool_), number(True, bool_)),
        "[True, False]",
    ),
    (
        "compare",
        lambda: less(constant([1.0, 3.0], float32), number(2.0, float32)),
        "[True, False]",
    ),
    ("cast", lambda: cast_to(constant([1, 0], int32), float32), "[1.0, 0.0]"),
    ("cast to int", lambda: cast_to(constant([1.75, -2.5], float32), int32), "[1, -2]"),
    ("reshape", lambda: reshape_to(constant([[1, 2]], float32), (2,)), "[1.0, 2.0]"),
    ("transpose", lambda: transpose_by(constant([[1, 2]], float32), (1, 0)), "[[1.0], [2.0]]"),
    (
        "broadcast",
        lambda: broadcast_to(constant([1, 2], float32), (2, 2)),
        "[[1.0, 2.0], [1.0, 2.0]]",
    ),
    (
        "concat",
        lambda: concat_by([constant([1], float32), constant([2], float32)], 0),
        "[1.0, 2.0]",
    ),
    ("sum", lambda: reduce_sum(constant([1, 2], int32), (0,), False), "3"),
    (
        "select",
        lambda: select_by(
            constant([True, False], bool_), constant([1, 2], float32), constant([3, 4], float32)
        ),
        "[1.0, 4.0]",
    ),
]


@pytest.mark.parametrize("case", FOLDED, ids=lambda c: c[0])
def test_constants_are_folded(case: tuple[str, Callable[[], Any], str]) -> None:
    graph = write([], lambda: case[1]())
    found = passes.run(graph)
    verify_all(found)
    (node,) = found.nodes
    assert node.op.name in ("constant", "fill")
    (value,) = run(found, [])
    assert str(value.asnumpy().tolist()) == case[2]
    (before,) = run(graph, [])
    assert before.asnumpy().tobytes() == value.asnumpy().tobytes()


@pytest.mark.parametrize(
    "program",
    [
        lambda: exp(number(1.0, float32)),  # a kernel may round otherwise than NumPy
        lambda: reduce_sum(constant([0.1, 0.2], float32), (0,), False),
        lambda: cast_to(
            constant([1e10, 0], float32), int32
        ),  # what comes of it is the device's affair
        lambda: cast_to(constant([0.1, 0.2], float64), float32),
        lambda: broadcast_to(constant([1, 2], float32), (1000, 2)),
    ],
)
def test_inexact_folds_are_declined(program: Callable[[], Any]) -> None:
    assert len(passes.run(write([], program)).nodes) == 2


NUMBERS: list[tuple[Callable[..., Any], str]] = [
    (lambda: host(2) + 3, "host(5)"),
    (lambda: host(7) // 2 < 4, "host(True)"),
    (lambda: host(1.5) ** 2, "host(2.25)"),
    (lambda: here().append(to_host, (number(2.5, float32),), {"kind": INT}), "host(2)"),
    (
        lambda: here().append(to_host, (number(0.1, float32),), {"kind": FLOAT}),
        "host(0.10000000149011612)",
    ),
    (lambda: here().append(to_host, (number(3, int32),), {"kind": BOOL}), "host(True)"),
]


@pytest.mark.parametrize("case", NUMBERS, ids=lambda c: c[1])
def test_host_numbers_are_folded(case: tuple[Callable[..., Any], str]) -> None:
    found = passes.run(write([], lambda: case[0]()))
    (node,) = found.nodes
    assert repr(node.attributes["value"]) == case[1]


@pytest.mark.parametrize(
    "program", [lambda: host(1) // 0, lambda: host(0) ** -1, lambda: host(2) ** 100000]
)
def test_raising_or_large_host_arithmetic_is_not_folded(program: Callable[[], Any]) -> None:
    assert passes.run(write([], lambda: program())).nodes[-1].op.name == "scalar"


def test_host_number_in_a_tensor() -> None:
    check(
        clean(simplify),
        [V],
        lambda x: x * here().append(to_tensor, (host(2) * 1.5,), {"dtype": float32}),
        """
        graph(%0: float32[3])
          %1 = fill(shape=(), value=3.0, dtype=duograph.float32)
          %2 = mul(%0, %1)
          return %2
        """,
    )


@pytest.mark.parametrize("value", [0.0, -0.0])
def test_only_adding_negative_zero_is_dropped(value: float) -> None:
    zero = {"shape": (3,), "value": value, "dtype": float32}
    found = passes.run(write([V], lambda x: add(here().append(OPS["fill"], (), zero), exp(x))))
    assert [n.op.name for n in found.nodes] == (
        ["exp"] if str(value) == "-0.0" else ["fill", "exp", "add"]
    )


# ---- dead code ----------------------------------------------------------------------------------


def test_dead_results_and_operands_of_a_switch() -> None:
    check(
        remove_dead_code,
        [FLAG, V, V],
        lambda c, x, w: branch(c, [x, w], lambda x, w: (exp(w), sin(x)), lambda x, w: (w, cos(x)))[
            1
        ],
        """
        graph(%0: bool[], %1: float32[3], %2: float32[3])
          %3 = switch(%0, %1)
            0(%0: float32[3])
              %1 = sin(%0)
              return %1
            1(%0: float32[3])
              %1 = cos(%0)
              return %1
          return %3
        """,
    )


def test_dead_carries() -> None:
    """A carry that no result and no other carry needs goes, with invariants only it used."""
    check(
        remove_dead_code,
        [FLAG, V, V, V],
        lambda c, x, y, w: loop(
            c, [x, y, x], [w, c], lambda a, b, d, w, c: (c, a * d, b * w, exp(d))
        )[0],
        """
        graph(%0: bool[], %1: float32[3], %2: float32[3], %3: float32[3])
          %4, %5 = while_loop(%0, %1, %1, %0, n_carry=2)
            body(%0: float32[3], %1: float32[3], %2: bool[])
              %3 = mul(%0, %1)
              %4 = exp(%1)
              return %2, %3, %4
          return %4
        """,
    )


def test_dead_nodes_with_effects_stay() -> None:
    log = HostCall(lambda x: (), "log")

    def effect(c: Any, x: Any) -> Any:
        here().append(host_call, (x,), {"run": log, "types": ()})
        return c, exp(x)

    check(
        remove_dead_code,
        [FLAG, V],
        lambda c, x: (loop(c, [x, c], [], lambda x, c: (c, effect(c, x)[1], c)), x)[1],
        """
        graph(%0: bool[], %1: float32[3])
          %2, %3 = while_loop(%0, %1, %0, n_carry=2)
            body(%0: float32[3], %1: bool[])
               = host_call(%0, run=host.log, types=())
              %2 = exp(%0)
              return %1, %2, %1
          return %1
        """,
    )


def test_unused_loop_is_removed() -> None:
    check(
        remove_dead_code,
        [FLAG, V],
        lambda c, x: (loop(c, [x, c], [], lambda x, c: (c, exp(x), c)), x)[1],
        """
        graph(%0: bool[], %1: float32[3])
          return %1
        """,
    )


# ---- merging ------------------------------------------------------------------------------------


def test_common_subexpressions_in_sub_graphs_are_merged() -> None:
    check(
        merge_common_subexpressions,
        [FLAG, V],
        lambda c, x: branch(c, [x], lambda x: exp(x) * exp(x), lambda x: x),
        """
        graph(%0: bool[], %1: float32[3])
          %2 = switch(%0, %1)
            0(%0: float32[3])
              %1 = exp(%0)
              %2 = mul(%1, %1)
              return %2
            1(%0: float32[3])
              return %0
          return %2
        """,
    )


def test_effects_are_not_merged() -> None:
    log = HostCall(lambda x: (x,), "log")
    body = write([V], lambda x: here().append(host_call, (x,), {"run": log, "types": (V,)}))

    def twice(c: Any, x: Any) -> Any:
        attributes = {"branches": (body, body)}
        return [here().append(OPS["switch"], (c, x), attributes)[0] for _ in range(2)]

    found = merge_common_subexpressions(write([FLAG, V], twice))
    assert [n.op.name for n in found.nodes] == ["switch", "switch"]


# ---- all passes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_cleaned_up_graph_is_bit_equal(program: Callable[..., Any]) -> None:
    graph = derivative(write([V, V, COUNT], lambda x, w, n: program(x, w, n)), [True, True, False])
    found = passes.run(graph)
    verify_all(found)
    rng = np.random.default_rng(0)
    x, w, d = (ms.Tensor(v) for v in rng.uniform(0.5, 1.5, (3, 3)).astype(np.float32))
    for n in range(4):
        values = [x, w, ms.Tensor(np.int32(n)), d]
        for got, want in zip(run(found, values), run(graph, values), strict=True):
            assert got.asnumpy().tobytes() == want.asnumpy().tobytes()


def test_source_spans_are_kept() -> None:
    """A node knows its source location, also after it was rewritten or replaced."""
    builder_graph = write([V], lambda x: exp(identity(x)))
    nodes = [
        GraphNode(n.op, n.operands, n.attributes, n.results, n.single, f"line {k}")
        for k, n in enumerate(builder_graph.nodes)
    ]
    inner = NamedGraph("inner", (V,))
    inner.graph = Graph(1, builder_graph.types, nodes, builder_graph.outputs, False)
    graph = write([V], lambda x: sin(invoke(inner, x)[0]))
    outer = [
        GraphNode(n.op, n.operands, n.attributes, n.results, n.single, f"outer {k}")
        for k, n in enumerate(graph.nodes)
    ]
    found = passes.run(Graph(1, graph.types, outer, graph.outputs, False))
    assert [(n.op.name, n.span) for n in found.nodes] == [("exp", "line 1"), ("sin", "outer 1")]


def test_shared_sub_graphs_are_rewritten_once() -> None:
    """Thirty levels, each with the one below as both branches, are thirty graphs."""
    graph = write([FLAG, V], lambda c, x: identity(exp(x)))
    for _ in range(30):
        below = graph

        def level(c: Any, x: Any, below: Graph = below) -> Any:
            return here().append(OPS["switch"], (c, c, x), {"branches": (below, below)})

        graph = write([FLAG, V], level)
    found = passes.run(graph)
    for _ in range(30):
        (node,) = found.nodes
        first, second = node.attributes["branches"]
        assert first is second
        found = first
    assert [n.op.name for n in found.nodes] == ["exp"]
