"""Derivatives of graphs with branches, loops, calls and host numbers: against the tape bit for bit,
and differences.

The tape runs the same graph with Python's own `if` and `while`: what the compiled derivative must
equal.
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
from duograph.ir.control import HostCall, custom_call, host_call, to_host, to_tensor
from duograph.ir.graph import Graph, NamedGraph
from duograph.ir.verify import verify
from duograph.ops.activation import sigmoid, tanhshrink
from duograph.ops.combinations import addcmul, lerp
from duograph.ops.comparison import equal, greater, less
from duograph.ops.elementwise import add, sub
from duograph.ops.exponential import exp, logaddexp
from duograph.ops.hyperbolic import tanh
from duograph.ops.powers import sqrt
from duograph.ops.rounding import remainder
from duograph.ops.shape_primitives import broadcast_to
from duograph.ops.trigonometry import cos, sin
from duograph.types import BOOL, FLOAT, INT, TensorType
from ir.graphs import branch, here, host, invoke, loop, number, run, write

V = TensorType.of((3,), float32)
D = TensorType.of((3,), float64)
S = TensorType.of((), float32)
FLAG = TensorType.of((), bool_)
COUNT = TensorType.of((), int32)


def everything(graph: Graph, seen: set[Any] | None = None) -> None:
    """Verify a graph and all graphs that it runs."""
    seen = set() if seen is None else seen
    if graph in seen:
        return
    seen.add(graph)
    verify(graph)
    for node in graph.nodes:
        for inner in node.graphs:
            everything(inner, seen)
        target = node.attributes.get("target")
        if isinstance(target, NamedGraph):
            assert target.graph is not None
            everything(target.graph, seen)


def derivative(graph: Graph, wanted: list[bool]) -> Graph:
    """(parameters..., cotangents...) -> (results..., cotangents of the wanted parameters...)"""
    n = len(graph.outputs)
    lin = linearize(graph, wanted, [True] * n)
    everything(lin.forward)
    everything(lin.backward)

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
    everything(made)
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


def taped(graph: Graph, values: list[Any], douts: list[Any], places: list[int]) -> list[np.ndarray]:
    """Gradients by the tape."""

    def of(*chosen: Any) -> Any:
        full = list(values)
        for i, x in zip(places, chosen):
            full[i] = x
        found = run(graph, full)
        return found if len(found) > 1 else found[0]

    _, pull = ms.ops.vjp(of, *[values[i] for i in places])[:2]
    found = pull(tuple(douts)) if len(douts) > 1 else pull(douts[0])
    found = found if isinstance(found, tuple) else (found,)
    return [g.asnumpy() for g in found]


def same_bits(got: np.ndarray, want: np.ndarray) -> None:
    """Equal bit for bit, but for what is in a NaN."""
    got, want = (np.where(np.isnan(a), np.float32(np.nan), a) for a in (got, want))
    np.testing.assert_array_equal(got, want)
    assert got.tobytes() == want.tobytes(), (got, want)


# ---- programs -----------------------------------------------------------------------------------


def if_else(x: Any, w: Any, n: Any) -> Any:
    h = x * w + x
    (y,) = branch(
        greater(n, 2), [h, w], lambda h, w: tanh(h * w) * h, lambda h, w: (exp(h) / w) * h + h
    )
    return y * h + x * w


def if_without_else(x: Any, w: Any, n: Any) -> Any:
    h = x * w
    (y,) = branch(greater(n, 2), [h, w], lambda h, w: h, lambda h, w: sin(h) * w * w)
    return y * y


def nested_if(x: Any, w: Any, n: Any) -> Any:
    def inner(x: Any, w: Any, n: Any) -> Any:
        (y,) = branch(equal(n, 3), [x, w], lambda x, w: x + w, lambda x, w: sigmoid(x) * w * x)
        return (y * x,)

    (y,) = branch(greater(n, 1), [x, w, n], lambda x, w, n: w * 2, inner)
    return y + x


def same_operand_twice(x: Any, w: Any, n: Any) -> Any:
    y, z = branch(n, [x, x, w], *[lambda a, b, w: (a * w, b * a)] * 4)
    return y * z + x


def while_count(x: Any, w: Any, n: Any) -> Any:
    i = number(0, int32)

    def body(h: Any, i: Any, w: Any, n: Any) -> Any:
        h = tanh(h * w) + h * w
        i = add(i, 1)
        return less(i, n), h, i

    h, _ = loop(less(i, n), [x * w, i], [w, n], body)
    return h * w + x


def while_from_operand(x: Any, w: Any, n: Any) -> Any:
    """The first turn uses a value that is used elsewhere, before and after the loop."""
    i = number(0, int32)

    def body(h: Any, i: Any, w: Any, n: Any) -> Any:
        h = sin(h) * w + h * h
        i = add(i, 1)
        return less(i, n), h, i

    y = exp(x) * x
    h, _ = loop(less(i, n), [x, i], [w, n], body)
    return h * x + y + x * w


def while_late_result(x: Any, w: Any, n: Any) -> Any:
    """A carry whose result nobody uses, and one that the body only overwrites."""
    i = number(0, int32)

    def body(h: Any, out: Any, i: Any, w: Any, n: Any) -> Any:
        return less(add(i, 1), n), tanh(h * w), h * w + h, add(i, 1)

    _, out, _ = loop(less(i, n), [x, x * 0, i], [w, n], body)
    return out * w


def fibonacci(x: Any, w: Any, n: Any) -> Any:
    i = number(0, int32)

    def body(a: Any, b: Any, i: Any, n: Any) -> Any:
        return less(add(i, 1), n), b, a * b + a, add(i, 1)

    a, b, _ = loop(less(i, n), [x, w, i], [n], body)
    return a * b


def rotated(x: Any, w: Any, n: Any) -> Any:
    """Six carries that change places: the choices of cotangents do not repeat soon."""
    i = number(0, int32)

    def body(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, i: Any, w: Any, n: Any) -> Any:
        return less(add(i, 1), n), b, c, d, e, f, a * w, add(i, 1)

    found = loop(less(i, n), [x, x + w, x * w, w, x - w, exp(x), i], [w, n], body)
    return found[0] * w


def nested_loops(x: Any, w: Any, n: Any) -> Any:
    i = number(0, int32)

    def outer(h: Any, i: Any, w: Any, n: Any) -> Any:
        j = number(0, int32)

        def inner(g: Any, j: Any, w: Any, i: Any) -> Any:
            return less(add(j, 1), i), sin(g * w) + g, add(j, 1)

        g, _ = loop(less(j, i), [h, j], [w, i], inner)
        return less(add(i, 1), n), g * w + h, add(i, 1)

    h, _ = loop(less(i, n), [x, i], [w, n], outer)
    return h * h


def branch_in_loop(x: Any, w: Any, n: Any) -> Any:
    i = number(0, int32)

    def body(h: Any, i: Any, w: Any, n: Any) -> Any:
        (h,) = branch(
            equal(remainder(i, 2), 0), [h, w],
            lambda h, w: exp(-h) * w, lambda h, w: h * w * w + h,
        )  # fmt: skip
        return less(add(i, 1), n), h, add(i, 1)

    h, _ = loop(less(i, n), [x, i], [w, n], body)
    return h + w * x


def loop_in_branch(x: Any, w: Any, n: Any) -> Any:
    (y,) = branch(
        greater(n, 1), [x, w, n], lambda x, w, n: x * w, lambda x, w, n: while_count(x, w, n)
    )
    return y * x + w


def of_host_flag(x: Any, w: Any, n: Any) -> Any:
    k = here().append(to_host, (n,), {"kind": INT})
    (y,) = branch(k > 2, [x, w], lambda x, w: x * w, lambda x, w: tanh(x) * w * x)
    return y * x


def host_count(x: Any, w: Any, n: Any) -> Any:
    k = here().append(to_host, (n,), {"kind": INT})

    def body(h: Any, i: Any, w: Any, k: Any) -> Any:
        scale = here().append(to_tensor, (i,), {"dtype": float32})
        return i + 1 < k, tanh(h * w) + h * scale, i + 1

    zero = host(0)
    h, _ = loop(zero < k, [x, zero], [w, k], body)
    return h * w


def composite_units(x: Any, w: Any, n: Any) -> Any:
    """Composite ops whose bodies use an operand several times."""
    (y,) = branch(
        greater(n, 2),
        [x, w],
        lambda x, w: lerp(x, w, x) * x,
        lambda x, w: logaddexp(x, w) * tanhshrink(x) + lerp(w, w, x),
    )
    return y * logaddexp(x, x) + tanhshrink(x) * x + lerp(x, w, x * y)


def _power(kind: Any) -> NamedGraph:
    target = NamedGraph("power", (kind,))

    def body(x: Any, w: Any, n: Any) -> Any:
        (y,) = branch(
            greater(n, 0),
            [x, w, n],
            lambda x, w, n: w * x,
            lambda x, w, n: invoke(target, sin(x * w), w, sub(n, 1))[0] * w + x,
        )
        return (y * x,)

    target.graph = write([kind, kind, COUNT], body)
    return target


def recursion(x: Any, w: Any, n: Any) -> Any:
    (y,) = invoke(_power(x._type), x * w, w, n)
    return y * x + w


def plain_call(x: Any, w: Any, n: Any) -> Any:
    target = NamedGraph("f", (x._type,))
    target.graph = write([x._type, x._type], lambda x, w: tanh(x * w) * x)
    (y,) = invoke(target, x * w, w)
    (z,) = invoke(target, y, x)
    return y * z + x


def mutual_recursion(x: Any, w: Any, n: Any) -> Any:
    even, odd = NamedGraph("even", (x._type,)), NamedGraph("odd", (x._type,))
    for this, other, f in ((even, odd, tanh), (odd, even, sin)):
        this.graph = write(
            [x._type, x._type, COUNT],
            lambda x, w, n, other=other, f=f: branch(
                greater(n, 0), [x, w, n],
                lambda x, w, n: f(x), lambda x, w, n: invoke(other, f(x) * w + x, w, sub(n, 1)),
            ),
        )  # fmt: skip
    (y,) = invoke(even, x, w, n)
    return y * x


def unused_infinity(x: Any, w: Any, n: Any) -> Any:
    """The slope of the root is infinite; the branch that uses the root is taken for n > 1 alone."""
    root = sqrt((x - x) * w) * w
    (y,) = branch(greater(n, 1), [x, w, root], lambda x, w, r: x * w, lambda x, w, r: r * r + x)
    return y * x + w


def used_in_one_branch(x: Any, w: Any, n: Any) -> Any:
    """Cotangents that are there in some runs pass through calls, sums, branches and loops."""
    a, b = exp(x) * w, tanh(w) * x
    (c,) = branch(equal(n, 1), [x, a], lambda x, a: sin(x), lambda x, a: a * x)
    (d,) = branch(equal(n, 2), [x, a, b], lambda x, a, b: cos(x), lambda x, a, b: a + b)
    i = number(0, int32)

    def body(h: Any, i: Any, a: Any, b: Any, n: Any) -> Any:
        (h,) = branch(equal(i, 1), [h, a, b], lambda h, a, b: h * a, lambda h, a, b: h * b)
        return less(add(i, 1), n), h, add(i, 1)

    e, _ = loop(less(i, n), [x * x, i], [sin(a), cos(b), n], body)
    return c * d + e


def carry_in_one_branch(x: Any, w: Any, n: Any) -> Any:
    """A carry that some turns pass on and others make anew."""
    i = number(0, int32)

    def body(h: Any, g: Any, i: Any, x: Any, w: Any, n: Any) -> Any:
        h, g = branch(
            equal(i, 1), [h, g, x, w],
            lambda h, g, x, w: (h * w + g, sin(g)), lambda h, g, x, w: (exp(x), h),
        )  # fmt: skip
        return less(add(i, 1), n), h, g, add(i, 1)

    h, _, _ = loop(less(i, n), [x, w * x, i], [tanh(x), w, n], body)
    return h * x


PROGRAMS: list[Callable[..., Any]] = [
    unused_infinity,
    used_in_one_branch,
    carry_in_one_branch,
    if_else,
    if_without_else,
    nested_if,
    same_operand_twice,
    while_count,
    while_from_operand,
    while_late_result,
    fibonacci,
    rotated,
    nested_loops,
    branch_in_loop,
    loop_in_branch,
    of_host_flag,
    host_count,
    composite_units,
    recursion,
    plain_call,
    mutual_recursion,
]


@pytest.fixture(params=["Reference", "CPU"])
def backend(request: Any) -> Any:
    before = ms.get_context("device_target")
    ms.set_context(device_target=request.param)
    yield request.param
    ms.set_context(device_target=before)


@pytest.mark.parametrize("n", [0, 1, 2, 3])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_equals_the_tape(program: Callable[..., Any], n: int, backend: str) -> None:
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
def test_second_order(program: Callable[..., Any], n: int) -> None:
    """The derivative of the derivative, against differences of the first one."""
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
def test_second_order_equals_the_tape(program: Callable[..., Any], backend: str) -> None:
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


def test_many_choices_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_numbers(case: tuple[str, Callable[..., Any]]) -> None:
    graph = write([FLOAT, FLOAT], lambda a, b: case[1](a, b))
    lin = linearize(graph, [True, True], [True])
    everything(lin.forward)
    everything(lin.backward)
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


def test_number_in_a_tensor() -> None:
    """A float that scales a tensor has the sum of the products for its cotangent."""
    graph = write([V, FLOAT], lambda x, s: x * (s * s))
    lin = linearize(graph, [False, True], [True])
    x = ms.Tensor(np.array([1, 2, 3], np.float32))
    out = run(lin.forward, [x, 1.5])
    known = {0: x, 1: 1.5, **dict(zip(lin.forward.outputs, out))}
    (got,) = run(lin.backward, [*(known[i] for i in lin.residuals), x])
    assert got == 14 * 3.0


def test_host_values_in_branches() -> None:
    """What a branch keeps on the host travels beside its tensors; the other branch fills the place."""

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
    everything(lin.forward)
    everything(lin.backward)
    x = ms.Tensor(np.array([0.5, -1, 0], np.float32))
    for flag in (False, True):
        out = run(lin.forward, [x, flag, 1.5])
        known = {**dict(enumerate([x, flag, 1.5])), **dict(zip(lin.forward.outputs, out))}
        (got,) = run(lin.backward, [*(known[i] for i in lin.residuals), x])
        (want,) = taped(graph, [x, flag, 1.5], [x], [0])
        same_bits(got.asnumpy(), want)


# ---- effects, own backwards ---------------------------------------------------------------------


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


def test_own_backward() -> None:
    """A custom_call runs the user's backward, once, with the operands, the results and their
    cotangents.
    """

    def of(x: Any, w: Any) -> Any:
        graph = write([V, V], lambda x, w: x * w)
        backward = write([V, V, V, V], lambda x, w, out, dout: dout * 2 + out * w)
        attributes = {"graph": graph, "backward": backward, "n_args": 1}
        (y,) = here().append(custom_call, (x, w), attributes)
        return y * x

    found = derivative(write([V, V], of), [True, True])
    x, w, d = (ms.Tensor(np.array(v, np.float32)) for v in ([1, 2, 3], [2, 3, 4], [1, 1, 1]))
    _, dx, dw = run(found, [x, w, d])
    xs, ws = x.asnumpy(), w.asnumpy()
    np.testing.assert_array_equal(dx.asnumpy(), xs * ws + (2 * xs + xs * ws * ws))
    np.testing.assert_array_equal(dw.asnumpy(), 0)


def test_seeded() -> None:
    """A parameter's cotangent is added to the one that is given."""
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


def test_constants_are_no_residuals() -> None:
    """What is cheap to make again does not cross from the forward to the backward, nor go on a
    stack.
    """
    graph = write([V], lambda x: exp(x) * broadcast_to(number(2.0, float32), (3,)))
    lin = linearize(graph, [True], [True])
    assert len(lin.residuals) == 1
