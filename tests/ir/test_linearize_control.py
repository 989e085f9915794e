"""Derivatives of graphs with branches, loops, calls and host numbers.

They must equal those of the eager tape bit for bit, and central differences approximately. The tape
runs the same graph with Python's own `if` and `while`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph.autodiff import loops
from duograph.autodiff.linearize import linearize
from duograph.dtype import bool_, float16, float32, float64, int32
from duograph.errors import GradientError
from duograph.ir.control import HostCall, custom_call, host_call
from duograph.ir.graph import Graph, NamedGraph
from duograph.ir.verify import verify
from duograph.ops.combinations import addcmul, lerp
from duograph.ops.comparison import greater, less
from duograph.ops.elementwise import add
from duograph.ops.exponential import exp
from duograph.ops.shape_primitives import broadcast_to
from duograph.types import BOOL, FLOAT, TensorType
from ir.control_programs import (
    PROGRAMS,
    composite_units,
    if_else,
    plain_call,
    rotated,
    unused_infinity,
)
from ir.graphs import branch, here, loop, number, run, write

V = TensorType.of((3,), float32)
D = TensorType.of((3,), float64)
S = TensorType.of((), float32)
FLAG = TensorType.of((), bool_)
COUNT = TensorType.of((), int32)


def verify_all(graph: Graph, seen: set[Any] | None = None) -> None:
    """Verify a graph and all graphs that it runs."""
    seen = set() if seen is None else seen
    if graph in seen:
        return
    seen.add(graph)
    verify(graph)
    for node in graph.nodes:
        for inner in node.graphs:
            verify_all(inner, seen)
        target = node.attributes.get("target")
        if isinstance(target, NamedGraph):
            assert target.graph is not None
            verify_all(target.graph, seen)


def derivative(graph: Graph, wanted: list[bool]) -> Graph:
    """Return the graph (parameters..., cotangents...) -> (results..., cotangents of wanted...)."""
    n = len(graph.outputs)
    lin = linearize(graph, wanted, [True] * n)
    verify_all(lin.forward)
    verify_all(lin.backward)

    def both(*values: Any) -> Any:
        given, douts = values[: graph.n_params], values[graph.n_params :]
        found = here().inline(lin.forward, given)
        known = {**dict(enumerate(given)), **dict(zip(lin.forward.outputs, found))}
        grads = here().inline(lin.backward, [*(known[i] for i in lin.residuals), *douts])
        by_param = dict(zip(lin.wrt, grads))
        zeros = [
            v * 0 if i not in by_param else by_param[i] for i, v in enumerate(given) if wanted[i]
        ]
        return (*found[:n], *zeros)

    types = [graph.types[i] for i in range(graph.n_params)]
    made = write([*types, *(graph.types[i] for i in graph.outputs)], both)
    verify_all(made)
    return made


def values_of(graph: Graph, seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    made: list[Any] = []
    for i in range(graph.n_params):
        t = graph.types[i]
        assert isinstance(t, TensorType)
        if t.dtype.kind == "f":
            made.append(ms.Tensor(rng.uniform(0.5, 1.5, t.shape).astype(t.dtype.np)))
        else:
            made.append(ms.Tensor(np.array(3 if t.dtype.kind == "i" else True).astype(t.dtype.np)))
    return made


def taped(
    graph: Graph, values: list[Any], douts: list[Any], positions: list[int]
) -> list[np.ndarray]:
    """Return the gradients that the eager tape computes."""

    def of(*chosen: Any) -> Any:
        full = list(values)
        for i, x in zip(positions, chosen):
            full[i] = x
        found = run(graph, full)
        return found if len(found) > 1 else found[0]

    _, pull = ms.ops.vjp(of, *[values[i] for i in positions])[:2]
    found = pull(tuple(douts)) if len(douts) > 1 else pull(douts[0])
    return [g.asnumpy() for g in found]


def same_bits(got: np.ndarray, want: np.ndarray) -> None:
    """Assert that arrays are equal bit for bit, except for the payloads of NaNs."""
    got, want = (np.where(np.isnan(a), np.float32(np.nan), a) for a in (got, want))
    np.testing.assert_array_equal(got, want)
    assert got.tobytes() == want.tobytes(), (got, want)


@pytest.fixture(params=["Reference", "CPU"])
def backend(request: Any, restored: None) -> Any:
    ms.set_context(device_target=request.param)
    return request.param


@pytest.mark.parametrize("n", [0, 1, 2, 3])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_derivative_equals_the_tape(program: Callable[..., Any], n: int, backend: str) -> None:
    graph = write([V, V, COUNT], lambda x, w, n: program(x, w, n))
    found = derivative(graph, [True, True, False])
    values = [*values_of(graph)[:2], ms.Tensor(np.int32(n))]
    dout = ms.Tensor(np.array([1.25, -0.75, 0.5], np.float32))
    y, dx, dw = run(found, [*values, dout])
    want = taped(graph, values, [dout], [0, 1])
    same_bits(y.asnumpy(), run(graph, values)[0].asnumpy())
    same_bits(dx.asnumpy(), want[0])
    same_bits(dw.asnumpy(), want[1])


ORDER2 = [p for p in PROGRAMS if p not in (composite_units, unused_infinity)]


@pytest.mark.parametrize("n", [0, 2, 3])
@pytest.mark.parametrize("program", ORDER2, ids=lambda f: f.__name__)
def test_second_derivative_equals_differences_of_the_first(
    program: Callable[..., Any], n: int
) -> None:
    graph = write([D, D, COUNT], lambda x, w, n: program(x, w, n))
    first = derivative(graph, [True, True, False])
    first = write(
        [D, D, COUNT, D],
        lambda x, w, n, d: here().inline(first, (x, w, n, d))[1:],
    )
    second = derivative(first, [True, True, False, False])
    rng = np.random.default_rng(1)
    x, w, d, a, b = rng.uniform(0.5, 1.2, (5, 3))
    tail = [ms.Tensor(np.int32(n)), ms.Tensor(d)]
    found = run(second, [ms.Tensor(x), ms.Tensor(w), *tail, ms.Tensor(a), ms.Tensor(b)])
    for k, got in enumerate(found[2:4]):
        numeric = np.zeros(3)
        for j in range(3):
            ends = []
            for sign in (1, -1):
                point = [x.copy(), w.copy()]
                point[k][j] += sign * 1e-6
                gx, gw = run(first, [*map(ms.Tensor, point), *tail])
                ends.append((gx.asnumpy() * a + gw.asnumpy() * b).sum())
            numeric[j] = (ends[0] - ends[1]) / 2e-6
        np.testing.assert_allclose(got.asnumpy(), numeric, rtol=2e-5, atol=1e-6)


def taped_twice(graph: Graph, values: list[Any], dout: Any, seeds: list[Any]) -> list[np.ndarray]:
    def inner(x: Any, w: Any) -> Any:
        _, pull = ms.ops.vjp(lambda x, w: run(graph, [x, w, values[2]])[0], x, w)[:2]
        return pull(dout)

    _, pull = ms.ops.vjp(inner, values[0], values[1])[:2]
    return [g.asnumpy() for g in pull(tuple(seeds))]


@pytest.mark.parametrize(
    "program", [composite_units, if_else, plain_call], ids=lambda f: f.__name__
)
def test_second_derivative_equals_the_tape(program: Callable[..., Any], backend: str) -> None:
    graph = write([V, V, COUNT], lambda x, w, n: program(x, w, n))
    first = derivative(graph, [True, True, False])
    first = write(
        [V, V, COUNT, V],
        lambda x, w, n, d: here().inline(first, (x, w, n, d))[1:],
    )
    second = derivative(first, [True, True, False, False])
    rng = np.random.default_rng(2)
    x, w, d, a, b = (ms.Tensor(v) for v in rng.uniform(0.5, 1.2, (5, 3)).astype(np.float32))
    for n in (1, 3):
        found = run(second, [x, w, ms.Tensor(np.int32(n)), d, a, b])
        want = taped_twice(graph, [x, w, ms.Tensor(np.int32(n))], d, [a, b])
        for got, by_tape in zip(found[2:], want, strict=True):
            same_bits(got.asnumpy(), by_tape)


HALF = TensorType.of((3,), float16)


def test_promotion_casts_give_cotangents_in_operand_order(backend: str) -> None:
    def of(x: Any, w: Any) -> Any:
        return (addcmul(x, x, w) * x + lerp(x, w, x) * w,)

    graph = write([HALF, V], of)
    found = derivative(graph, [True, True])
    rng = np.random.default_rng(3)
    for _ in range(20):
        x = ms.Tensor(rng.uniform(0.5, 1.5, 3).astype(np.float16))
        w, d = (ms.Tensor(rng.uniform(0.5, 1.5, 3).astype(np.float32)) for _ in range(2))
        _, dx, dw = run(found, [x, w, d])
        want = taped(graph, [x, w], [d], [0, 1])
        same_bits(dx.asnumpy(), want[0])
        same_bits(dw.asnumpy(), want[1])


def test_loop_with_many_patterns_of_cotangents_merges_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "_MAX_PATTERNS", 1)
    graph = write([V, V, COUNT], lambda x, w, n: rotated(x, w, n))
    found = derivative(graph, [True, True, False])
    values = [*values_of(graph)[:2], ms.Tensor(np.int32(4))]
    dout = ms.Tensor(np.array([1.25, -0.75, 0.5], np.float32))
    for got, want in zip(run(found, [*values, dout])[1:], taped(graph, values, [dout], [0, 1])):
        same_bits(got.asnumpy(), want)


# ---- values on the host -------------------------------------------------------------------------

FLOAT_CASES: list[tuple[str, Callable[..., Any]]] = [
    ("add", lambda a, b: a + b),
    ("sub", lambda a, b: a - b),
    ("mul", lambda a, b: a * b),
    ("truediv", lambda a, b: a / b),
    ("neg", lambda a, b: -a * b),
    ("pos", lambda a, b: +a + b),
    ("pow", lambda a, b: a**b),
    ("abs", lambda a, b: abs(a - 2 * b) * b),
    ("square", lambda a, b: a**2 / b),
    ("floor", lambda a, b: a * b + a // b),
    ("float", lambda a, b: a.apply("float", a) * b),
]


@pytest.mark.parametrize("case", FLOAT_CASES, ids=lambda c: c[0])
def test_derivative_of_host_numbers_equals_differences(
    case: tuple[str, Callable[..., Any]],
) -> None:
    graph = write([FLOAT, FLOAT], lambda a, b: case[1](a, b))
    lin = linearize(graph, [True, True], [True])
    verify_all(lin.forward)
    verify_all(lin.backward)
    a, b = 1.3, 0.7
    out = run(lin.forward, [a, b])
    known = {0: a, 1: b, **dict(zip(lin.forward.outputs, out))}
    found = run(lin.backward, [*(known[i] for i in lin.residuals), 1.0])
    for i, got in zip(lin.wrt, found, strict=True):
        assert type(got) is float
        step = [1e-6 * (i == k) for k in (0, 1)]
        up = run(graph, [a + step[0], b + step[1]])[0]
        down = run(graph, [a - step[0], b - step[1]])[0]
        assert got == pytest.approx((up - down) / 2e-6, rel=1e-6)


def test_cotangent_of_a_float_that_scales_a_tensor_is_a_sum() -> None:
    graph = write([V, FLOAT], lambda x, s: x * (s * s))
    lin = linearize(graph, [False, True], [True])
    x = ms.Tensor(np.array([1, 2, 3], np.float32))
    out = run(lin.forward, [x, 1.5])
    known = {0: x, 1: 1.5, **dict(zip(lin.forward.outputs, out))}
    (got,) = run(lin.backward, [*(known[i] for i in lin.residuals), x])
    assert got == 14 * 3.0


def test_host_residuals_of_branches() -> None:
    """A branch may keep host values as residuals; the other branch returns fillers for them."""

    def of(x: Any, flag: Any, s: Any) -> Any:
        first, second = branch(
            flag,
            [x, s],
            lambda x, s: (x * s, s + 1.0),
            lambda x, s: (exp(x) * (s * s) * (s * s - 1.0), s * 2.0),
        )
        return first * second

    graph = write([V, BOOL, FLOAT], of)
    lin = linearize(graph, [True, False, False], [True])
    verify_all(lin.forward)
    verify_all(lin.backward)
    x = ms.Tensor(np.array([0.5, -1, 0], np.float32))
    for flag in (False, True):
        out = run(lin.forward, [x, flag, 1.5])
        known = {**dict(enumerate([x, flag, 1.5])), **dict(zip(lin.forward.outputs, out))}
        (got,) = run(lin.backward, [*(known[i] for i in lin.residuals), x])
        (want,) = taped(graph, [x, flag, 1.5], [x], [0])
        same_bits(got.asnumpy(), want)


# ---- effects, custom backwards -------------------------------------------------------------------


def test_effects_stay_in_the_forward() -> None:
    seen: list[Any] = []
    log = HostCall(lambda x: seen.append(x.asnumpy().tolist()) or (), "log")

    def of(x: Any, n: Any) -> Any:
        def body(h: Any, i: Any, n: Any) -> Any:
            h = exp(h) * h
            here().append(host_call, (h,), {"run": log, "types": ()})
            return less(add(i, 1), n), h, add(i, 1)

        def repeated(x: Any, n: Any) -> Any:
            i = number(0, int32)
            return loop(less(i, n), [x, i], [n], body)[0]

        return branch(greater(n, 0), [x, n], lambda x, n: x, repeated)

    graph = write([V, COUNT], lambda x, n: of(x, n))
    lin = linearize(graph, [True, False], [True])
    assert lin.forward.effects
    assert not lin.backward.effects


def test_custom_call_runs_the_backward_of_the_user() -> None:
    """It runs once, with the operands, the results and their cotangents."""

    def of(x: Any, w: Any) -> Any:
        graph = write([V, V], lambda x, w: x * w)
        backward = write([V, V, V, V], lambda x, w, out, dout: dout * 2 + out * w)
        attributes = {"graph": graph, "backward": backward, "n_args": 1, "name": "own"}
        (y,) = here().append(custom_call, (x, w), attributes)
        return y * x

    graph = write([V, V], of)
    found = derivative(graph, [True, False])
    x, w, d = (ms.Tensor(np.array(v, np.float32)) for v in ([1, 2, 3], [2, 3, 4], [1, 1, 1]))
    _, dx = run(found, [x, w, d])
    xs, ws = x.asnumpy(), w.asnumpy()
    np.testing.assert_array_equal(dx.asnumpy(), xs * ws + (2 * xs + xs * ws * ws))
    with pytest.raises(GradientError, match="has no gradient for it"):  # w is no argument of it
        derivative(graph, [True, True])


def test_cotangent_of_a_parameter_is_added_to_its_seed() -> None:
    graph = write([V, V], lambda x, w: x * w * x)
    lin = linearize(graph, [True, True], [True], [True, False])
    x, w, d, have = (
        ms.Tensor(np.array(v, np.float32)) for v in ([1, 2, 3], [2, 3, 4], [1, 1, 1], [5, 6, 7])
    )
    out = run(lin.forward, [x, w])
    known = {0: x, 1: w, **dict(zip(lin.forward.outputs, out))}
    dx, dw = run(lin.backward, [*(known[i] for i in lin.residuals), d, have])
    np.testing.assert_array_equal(dx.asnumpy(), [9, 18, 31])
    np.testing.assert_array_equal(dw.asnumpy(), [1, 4, 9])


def test_cheap_constants_are_recomputed_in_the_backward() -> None:
    graph = write([V], lambda x: exp(x) * broadcast_to(number(2.0, float32), (3,)))
    lin = linearize(graph, [True], [True])
    assert len(lin.residuals) == 1
