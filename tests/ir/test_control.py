"""Graphs with control flow, calls and host values, run on backends."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from duograph.dtype import bool_, float32, float64, int8, int32, int64, uint8
from duograph.effects import IO, Random
from duograph.errors import ArgumentValueError, DuographError, GraphError
from duograph.ir.control import (
    HostCall,
    custom_call,
    host_call,
    random_state,
    stack_holds,
    stack_new,
    stack_pop,
    stack_push,
    to_host,
    to_tensor,
)
from duograph.ir.graph import Graph, NamedGraph
from duograph.ops import elementwise
from duograph.ops.comparison import less
from duograph.ops.elementwise import add, mul, neg, sub
from duograph.ops.exponential import exp
from duograph.runtime_state import thread_state
from duograph.tensor import Tensor
from duograph.types import BOOL, FLOAT, INT, OBJECT, TensorType
from ir.graphs import branch, here, host, invoke, loop, number, write
from ir.running import Span, again, append, compare, execute

V = TensorType.of((3,), float32)
N = TensorType.of((), int32)
FLAG = TensorType.of((), bool_)
X = np.array([1.0, 2.0, 3.0], np.float32)

backends = pytest.mark.parametrize("name", ["CPU", "Reference"])


# ---- programs that run --------------------------------------------------------------------------


def pick(c: Any, x: Any) -> Any:
    return branch(c, [x], lambda x: add(x, x), lambda x: mul(x, x), lambda x: x)


def powers(n: Any) -> Any:
    """Return 2 ** n, computed by a graph loop that doubles a tensor."""
    start = [number(0, int32), number(1, int32)]
    return loop(
        less(start[0], n),
        start,
        [n],
        lambda i, x, n: (less(add(i, 1), n), add(i, 1), add(x, x)),
    )[1]


def host_powers(n: Any) -> Any:
    return loop(
        host(0) < n,
        [host(0), host(1)],
        [n],
        lambda i, x, n: (i + 1 < n, i + 1, x * 2),
    )[1]


def reverse(x: Any) -> Any:
    """Push two frames to a stack and pop both; return the values, and what the stacks hold."""
    one = append(stack_push, [append(stack_new), x])
    two = append(stack_push, [one, add(x, 1.0)])
    rest, more, last = append(stack_pop, [two], types=(V,))
    empty, none, first = append(stack_pop, [rest], types=(V,))
    _, _, same = append(stack_pop, [one], types=(V,))  # the push did not change it
    holds = [append(stack_holds, [s]) for s in (empty, one)]
    return [last, more, first, none, same, *holds]


PROGRAMS: dict[str, tuple[Sequence[Any], Callable[..., Any], Sequence[Any], Sequence[Any]]] = {
    "switch on a tensor": ([FLAG, V], lambda c, x: branch(c, [x], exp, neg), [True, X], [-X]),
    "switch on a false tensor": (
        [FLAG, V],
        lambda c, x: branch(c, [x], elementwise.abs, neg),
        [False, X],
        [X],
    ),
    "switch on a host bool": (
        [BOOL, V],
        lambda c, x: branch(c, [x], elementwise.abs, neg),
        [True, X],
        [-X],
    ),
    "switch of three, 0": ([N, V], pick, [np.int32(0), X], [X + X]),
    "switch of three, 1": ([N, V], pick, [np.int32(1), X], [X * X]),
    "switch of three, 2": ([INT, V], pick, [2, X], [X]),
    "switch past its end takes the last": ([INT, V], pick, [7, X], [X]),
    "switch that returns nothing": (
        [BOOL],
        lambda c: branch(c, [], lambda: [], lambda: []),
        [True],
        [],
    ),
    "switch of host values": (
        [BOOL, INT],
        lambda c, n: branch(c, [n], lambda n: n + 1, lambda n: n * 2),
        [True, 5],
        [10],
    ),
    "loop on tensors": ([N], powers, [np.int32(10)], [np.int32(1024)]),
    "loop that does not run": ([N], powers, [np.int32(0)], [np.int32(1)]),
    "loop on host numbers": ([INT], host_powers, [100], [2**100]),
    "loop without carries": (
        [BOOL],
        lambda c: loop(c, [], [], lambda: [host(False)]),
        [True],
        [],
    ),
    "loop in a branch in a loop": (
        [INT],
        lambda n: loop(
            host(0) < n,
            [host(0), host(0)],
            [n],
            lambda i, s, n: (
                i + 1 < n,
                i + 1,
                branch(i < 2, [i, s], lambda i, s: s + host_powers(i), lambda i, s: s - i)[0],
            ),
        )[1],
        [4],
        [4 + 8 - 0 - 1],
    ),
    "stacks": ([V], reverse, [X], [X + 1, True, X, False, X, False, True]),
    "own backward": (
        [V],
        lambda x: append(
            custom_call,
            [x],
            graph=write([V], lambda x: mul(x, x)),
            backward=write([V, V, V], lambda x, y, g: g),
            n_args=1,
            name="own",
        ),
        [X],
        [X * X],
    ),
    "parameters as results": ([V, INT], lambda x, n: [n, x, x], [X, 3], [3, X, X]),
    "constants as results": (
        [],
        lambda: [host(2.5), host("a"), number(1, int32)],
        [],
        [2.5, "a", np.int32(1)],
    ),
}


@backends
@pytest.mark.parametrize("title", PROGRAMS)
def test_programs(title: str, name: str) -> None:
    types, function, values, wanted = PROGRAMS[title]
    compare(write(types, function), values, wanted, name)


HOST: dict[str, tuple[Callable[..., Any], Any]] = {
    "arithmetic": (lambda i, f, b: i + f * b - i / 2, 7 + 0.5 - 3.5),
    "floor and remainder": (lambda i, f, b: -i // 2 + i % 3, -4 + 1),
    "power": (lambda i, f, b: i**3, 343),
    "power of a float": (lambda i, f, b: f**-1, 2.0),
    "bools are ints": (lambda i, f, b: b + b, 2),
    "logic of bools": (lambda i, f, b: b & (i > 3), True),
    "bits": (lambda i, f, b: (i << 70 | 1) ^ 1, 7 << 70),
    "round": (lambda i, f, b: round(f * 5), 2),
    "round to digits": (lambda i, f, b: round(f * 0.3, 1), round(0.15, 1)),
    "abs, neg, invert": (lambda i, f, b: abs(-i) + ~i, -1),
}


@pytest.mark.parametrize("title", HOST)
def test_host_arithmetic_matches_python(title: str) -> None:
    function, wanted = HOST[title]
    graph = write([INT, FLOAT, BOOL], function)
    for each in (graph, again(graph)):
        (found,) = execute(each, [7, 0.5, True])
        assert found == wanted
        assert type(found) is type(wanted)


CROSSINGS = [
    (3, INT, int8, 3), (300, INT, int8, 44), (-1, INT, uint8, 255), (2**70 + 5, INT, int64, 5),
    (True, BOOL, int32, 1), (2.75, FLOAT, float32, 2.75), (1e300, FLOAT, float32, math.inf),
    (-0.0, FLOAT, float64, -0.0), (2**24 + 1, INT, float32, 2.0**24), (2, INT, bool_, True),
    (math.nan, FLOAT, float32, math.nan),
]  # fmt: skip


@backends
@pytest.mark.parametrize(("value", "kind", "dtype", "wanted"), CROSSINGS)
def test_numbers_become_tensors(value: Any, kind: Any, dtype: Any, wanted: Any, name: str) -> None:
    graph = write([kind], lambda n: append(to_tensor, [n], dtype=dtype))
    compare(graph, [value], [np.array(wanted, dtype.np)], name)


@backends
@pytest.mark.parametrize("kind", [INT, FLOAT, BOOL])
@pytest.mark.parametrize("shape", [(), (1, 1)])
def test_tensors_become_numbers(kind: Any, shape: tuple[int, ...], name: str) -> None:
    graph = write([TensorType.of(shape, int64)], lambda x: append(to_host, [x], kind=kind))
    wanted = {INT: 2**40, FLOAT: 2.0**40, BOOL: True}[kind]
    compare(graph, [np.full(shape, 2**40)], [wanted], name)


def test_int_arithmetic_on_the_host_is_exact() -> None:
    graph = write([INT], lambda n: host(2) ** n)
    assert execute(graph, [3]) == (8,)
    with pytest.raises(ArgumentValueError, match="negative exponent"):
        execute(graph, [-1])


def test_errors_of_host_arithmetic_name_the_source_line() -> None:
    def program(n: Any) -> Any:
        here().span = Span
        return host(1) // n

    graph = write([INT], program)
    assert execute(graph, [1]) == (1,)
    with pytest.raises(ZeroDivisionError) as raised:
        execute(graph, [0])
    assert raised.value._duograph_place == (Span,)  # type: ignore[attr-defined]


# ---- calls --------------------------------------------------------------------------------------


def countdown() -> NamedGraph:
    """A named graph that calls itself n times."""
    made = NamedGraph("countdown", (N,))
    made.graph = write(
        [N],
        lambda n: branch(less(n, 1), [n], lambda n: invoke(made, sub(n, 1))[0], lambda n: n),
    )
    return made


@backends
def test_recursive_call(name: str) -> None:
    graph = write([N], lambda n: invoke(countdown(), n))
    compare(graph, [np.int32(20)], [np.int32(0)], name)


def test_mutual_recursion() -> None:
    even, odd = NamedGraph("parity", (BOOL,)), NamedGraph("parity", (BOOL,))
    for own, other, at_zero in ((even, odd, True), (odd, even, False)):
        own.graph = write(
            [INT],
            lambda n, other=other, at_zero=at_zero: branch(
                n > 0, [n], lambda n: host(at_zero), lambda n: invoke(other, n - 1)[0]
            ),
        )
    graph = write([INT], lambda n: invoke(even, n))
    assert "@parity.2 = graph" in str(graph)  # two of one name are told apart
    for n in (6, 7):
        compare(graph, [n], [n % 2 == 0], "Reference")


def test_the_depth_of_calls_has_a_limit() -> None:
    graph = write([N], lambda n: invoke(countdown(), n))
    found: list[Any] = []

    def deep() -> None:
        found.append(execute(graph, [np.int32(990)]))
        with pytest.raises(RecursionError, match="Exceed function call depth limit 1000") as raised:
            execute(graph, [np.int32(1010)])
        assert isinstance(raised.value, DuographError)
        found.append(execute(graph, [np.int32(3)]))  # an error leaves the count where it was

    deep()
    thread = threading.Thread(target=deep)
    thread.start()
    thread.join()
    assert [int(x) for (x,) in found] == [0, 0, 0, 0]


# ---- what Python runs ---------------------------------------------------------------------------


def calling(function: Callable[..., Any], types: Sequence[Any]) -> Graph:
    run = HostCall(function, "own")
    return write([V, OBJECT], lambda x, o: append(host_call, [x, o], run=run, types=tuple(types)))


@backends
def test_host_calls_get_tensors_and_objects(name: str) -> None:
    seen: list[Any] = []

    def own(x: Any, o: Any) -> Any:
        seen.append((x.asnumpy().copy(), o, thread_state.builder, x.device))
        return Tensor(np.float32([5, 6, 7])), x, (o, 1)

    with write_builder():
        found = execute(calling(own, [V, V, OBJECT]), [X, "o"], name)
    np.testing.assert_array_equal(found[0], [5, 6, 7])
    np.testing.assert_array_equal(found[1], X)
    assert found[2] == ("o", 1)
    ((array, o, builder, _),) = seen
    np.testing.assert_array_equal(array, X)
    assert (o, builder) == ("o", None)


def write_builder() -> Any:
    from duograph.ir.builder import GraphBuilder

    return GraphBuilder().current()


@pytest.mark.parametrize(
    ("result", "pattern"),
    [
        (1.0, "returned float; wanted a Tensor"),
        (Tensor(np.zeros(3)), r"returned a Tensor float64\[3\].*wanted float32\[3\]"),
        (Tensor(np.zeros(4, np.float32)), r"returned a Tensor float32\[4\]"),
    ],
)
def test_host_calls_return_what_they_declare(result: Any, pattern: str) -> None:
    with pytest.raises(GraphError, match=pattern):
        execute(calling(lambda x, o: (result,), [V]), [X, None])


def test_host_calls_run_in_order_and_always() -> None:
    seen: list[int] = []
    run = HostCall(lambda n: seen.append(n) or (), "note")
    note = lambda n: append(host_call, [n], run=run, types=())  # noqa: E731
    graph = write(
        [INT],
        lambda n: (
            note(n),
            loop(host(0) < n, [host(0)], [n], lambda i, n: (note(i), (i + 1 < n, i + 1))[1]),
            n,
        )[-1],
    )
    assert graph.effects == {IO()}
    assert execute(graph, [3]) == (3,)
    assert seen == [3, 0, 1, 2]


def test_random_states_are_taken_at_run_time() -> None:
    states = iter(np.arange(20, dtype=np.uint32).reshape(5, 4))
    take = HostCall(lambda: next(states), "take")
    graph = write(
        [BOOL], lambda c: [append(random_state, take=take), append(random_state, take=take)]
    )
    assert graph.effects == {Random()}
    first, second = execute(graph, [True])
    assert (first.tolist(), second.tolist()) == ([0, 1, 2, 3], [4, 5, 6, 7])
    assert execute(graph, [True])[0].tolist() == [8, 9, 10, 11]
