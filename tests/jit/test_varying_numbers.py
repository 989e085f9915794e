"""Compiled functions whose Python number arguments vary: they become inputs, and nothing differs.

Every function is called with many values of a number, one of another class among them, and compared
with its line-by-line execution bit for bit at O0.
"""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Callable
from typing import Any

import duograph as ms
import numpy as np
import pytest
from amount import spread
from duograph import Tensor, nn, ops

INTS = (3, 4, 5, 6, -1, 0, 1, 2, 7, 2.5, True, 10**6, -(2**31), 2**40, 2**63, 2**70, 5, 3)
FLOATS = (
    0.5,
    0.25,
    -0.75,
    1.5,
    -0.0,
    0.0,
    1.0,
    2,
    1e-30,
    1e30,
    math.inf,
    -math.inf,
    math.nan,
    0.1,
    True,
)
WORLD: dict[str, Any] = {}


class Scaled(nn.Cell):
    """A layer that is called with a number."""

    def __init__(self) -> None:
        super().__init__()
        self.w = ms.Parameter(Tensor([0.5, -1.0, 2.0]), name="w")

    def construct(self, x: Tensor, k: Any) -> Tensor:
        return x * self.w * k


def step_of(net: nn.Cell) -> Callable[..., Any]:
    """Return a training step that takes the learning rate as a number."""
    gradient = ms.value_and_grad(lambda x: (net(x, 1) ** 2).sum(), None, net.trainable_params())

    def step(x: Tensor, lr: Any) -> Any:
        loss, gradients = gradient(x)
        for p, g in zip(net.trainable_params(), gradients):
            ops.assign_sub(p, g * lr)
        return loss

    return step


# Functions of a float32 Tensor (2, 3) and a number. Those in `INPUTS` need one program for all
# values of a class once three have come; the others are compiled for each value.
INPUTS: dict[str, Callable[[Tensor, Any], Any]] = {
    "mul": lambda x, k: x * k,
    "add": lambda x, k: k + x,
    "sub": lambda x, k: (x - k, k - x),
    "div": lambda x, k: x / (k + 0.5),
    "twice": lambda x, k: x * (k * 2 + 1) - k,
    "maximum": lambda x, k: ops.maximum(x, k),
    "where": lambda x, k: ops.where(x > k, x, k * 0.5),
    "compare": lambda x, k: (x > k, x == k, x <= k),
    "int tensor": lambda x, k: ops.arange(3) * k,
    "gradient": lambda x, k: ms.grad(lambda t: (t * t * k).sum())(x),
    "returned": lambda x, k: (x, k * 2, k),
    "unused": lambda x, k: x + 1,
    "clip": lambda x, k: ops.clamp(x, -1.0, 1.0) * k,
    "float16": lambda x, k: x.astype(ms.float16) * k,
}
OTHERS: dict[str, Callable[[Tensor, Any], Any]] = {
    "branch": lambda x, k: x * 2 if k > 3 else x + k,
    "string": lambda x, k: x * len(f"{k}"),
    "stored": lambda x, k: (WORLD.setdefault("seen", []).append(k), x * k)[1],
    "attribute": lambda x, k: ops.softmax(x, int(k) % 2 if k == k and abs(k) < 1e9 else 0) * k,
    "shape": lambda x, k: ops.ones((3, 2)) * k if isinstance(k, int) else x.reshape(3, -1) * k,
    "class": lambda x, k: x * 2 if type(k) is int else x * 3,
    "range": lambda x, k: sum([x * i for i in range(3 if k != k or k < 2 else 2)], x) * k,
    "item": lambda x, k: [x, x * 2, x * 3][1 if k == 1 else 0] + k,
    "math": lambda x, k: x * math.tanh(k),
    "power": lambda x, k: x * k**2,
    "dict": lambda x, k: x * {3: 5.0, 4: 6.0}.get(k, 1.0),
    "and or": lambda x, k: x * (k or 7) + (k and 2),
    "bool": lambda x, k: x * bool(k),
    "int of": lambda x, k: x * int(k) if k == k and abs(k) < 1e9 else x,
    "same": lambda x, k: x + (k == k) + (k is k),
    "print": lambda x, k: (print(k, type(k).__name__), x)[1],
    "numpy": lambda x, k: x * float(np.float32(k)),
    "floor": lambda x, k: x * (k // 2) + k % 3 if k == k and abs(k) < 1e9 else x,
    "negated": lambda x, k: x * -k + abs(k),
    "raises": lambda x, k: x / (1 / k),
}


def outcome(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Return what a call returns or raises, and what the world is after it, as `plain` values."""
    try:
        found = function(*arguments, **named)
    except Exception as error:  # noqa: BLE001 (compared with the other way to run)
        found = type(error)
    return plain(found), plain(WORLD.get("seen", []))


def plain(value: Any) -> Any:
    """Return a value as nested tuples that compare bit for bit and class for class."""
    if isinstance(value, Tensor):
        # the bits of a NaN are not defined
        data = np.nan_to_num(value.asnumpy(), nan=123.0, posinf=math.inf, neginf=-math.inf)
        return "Tensor", str(value.dtype), value.shape, data.tobytes()
    if isinstance(value, (tuple, list)):
        return type(value).__name__, *map(plain, value)
    return type(value).__name__, repr(value)


def agree(eager: Callable[..., Any], compiled: Any, values: Any, name: str = "") -> None:
    """Call two forms of a function with all values of a number; compare the outcomes."""
    x = Tensor(np.array([[1.5, -2.0, 0.25], [3.0, 0.0, -7.5]], np.float32))
    results = []
    for function in (eager, compiled):
        WORLD.clear()
        named = [{name: v} if name else {} for v in values]
        results.append(
            [outcome(function, x, *(() if n else (v,)), **n) for v, n in zip(values, named)]
        )
    for value, want, got in zip(values, *results, strict=True):
        assert got == want, (value, got, want)


@pytest.mark.parametrize("values", (INTS, FLOATS), ids=("ints", "floats"))
@pytest.mark.parametrize("name", (*INPUTS, *OTHERS))
def test_results_are_those_of_line_by_line(name, values):
    function = {**INPUTS, **OTHERS}[name]
    compiled = ms.jit(function, jit_level="O0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # overflows, casts of NaN, code that runs line by line
        agree(function, compiled, values)
    if name in INPUTS:
        # two constants, then an input, of each class; another one for bool each
        assert compiled.cache_info().misses <= 6


@pytest.mark.parametrize(("name", "level"), spread(INPUTS, ["O1", "O2"], 5))
def test_levels(name, level):
    function = INPUTS[name]
    compiled = ms.jit(function, jit_level=level)
    x = Tensor(np.array([[1.5, -2.0, 0.25], [3.0, 0.0, -7.5]], np.float32))
    for k in (3, 4, 5, 6, -1, 0, 0.5, 0.25, 0.75, 1.5):
        got, want = compiled(x, k), function(x, k)
        for a, b in zip(*[v if isinstance(v, tuple) else (v,) for v in (got, want)], strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-6)
    assert compiled.cache_info().misses <= 6


def test_keywords_and_shapes():
    def function(x, k=1, *, scale=2.0):
        return x * k + scale

    compiled = ms.jit(function)
    for n in (2, 3, 4, 5):
        for k in (1, 2, 3, 4, 5):
            x = ops.ones((n, 2))
            assert (compiled(x, k, scale=k / 2) == function(x, k, scale=k / 2)).all()
    assert compiled.cache_info().misses <= 8


def test_a_new_condition_makes_them_constants_again():
    def function(x, k):
        return x * k if x.ndim == 1 else x * ops.ones((k, 2))[0]

    compiled = ms.jit(function)
    for k in (1, 2, 3, 4):
        assert (compiled(Tensor([1.0, 2.0]), k) == Tensor([1.0, 2.0]) * k).all()
    for k in (1, 2, 3, 4):
        x = Tensor([[1.0, 2.0]])
        assert (compiled(x, k) == function(x, k)).all()
    assert compiled.cache_info().fallbacks == 0


def test_methods_and_cells():
    class Model:
        @ms.jit
        def scaled(self, x, k):
            return x * k

    model, net = Model(), Scaled()
    x = Tensor([1.0, 2.0, 3.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for k in range(12):
            assert (model.scaled(x, k) == x * k).all()
        ms.set_context(mode=ms.GRAPH_MODE)
        try:
            for k in range(12):
                assert (net(x, k) == x * net.w * k).all()
        finally:
            ms.set_context(mode=ms.PYNATIVE_MODE)


def test_learning_rates_of_a_training_step():
    a, b = Scaled(), Scaled()
    x = Tensor([1.0, 2.0, 3.0])
    eager, compiled = step_of(a), ms.jit(step_of(b), jit_level="O0")
    for k in range(20):
        assert compiled(x, 0.01 / (k + 1)) == eager(x, 0.01 / (k + 1))
        assert (a.w == b.w).all()
    assert compiled.cache_info().misses <= 3


def test_gradients_of_a_compiled_function():
    compiled = ms.jit(lambda x, k: (x * x * k).sum())
    for k in (1, 2, 3, 4, 5, 2.5):
        assert (ms.grad(compiled)(Tensor([1.0, 2.0]), k) == Tensor([2.0, 4.0]) * k).all()


def test_not_if_told_so():
    compiled = ms.jit(lambda x, k: x * k, dynamic=0)
    for k in range(6):
        compiled(Tensor([1.0]), k)
    assert compiled.cache_info().misses == 6


def written(a, b, k):
    """Write a number into an argument, which may be the other one as well."""
    a[0] = k
    return a + b * k


@pytest.mark.parametrize("same", ([False, True], [True, False], [True, True]))
def test_arguments_that_are_one_tensor(same):
    compiled = ms.jit(written)
    for k in (1, 2, 3, 4, 5, 2.5):
        for one in same:
            results = []
            for function in (written, compiled):
                a, b = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
                found = function(a, a if one else b, k)
                results.append([v.asnumpy().tolist() for v in (found, a, b)])
            assert results[0] == results[1], (k, one)


def test_containers_and_arrays_beside_numbers():
    def function(x, items, array, k):
        items.append(x * k)
        array[0] = 7.0
        return x * k + items[0] + float(array[1])

    compiled = ms.jit(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k in (1, 2, 3, 4, 5, 3):
            results = []
            for form in (function, compiled):
                items, array = [Tensor([1.0])], np.array([1.0, k])
                found = form(Tensor([2.0]), items, array, k)
                results.append(plain((found, items, array.tolist())))
            assert results[0] == results[1], k


def test_captured_values_that_change_beside_numbers():
    factor = [2.0]

    def function(x, k):
        return x * k * factor[0]

    compiled = ms.jit(function)
    before = ms.get_context("stale_captures")
    ms.set_context(stale_captures="recompile")
    try:
        for k in range(12):
            factor[0] = float(k // 3)
            assert (compiled(Tensor([1.0]), k) == function(Tensor([1.0]), k)).all(), k
    finally:
        ms.set_context(stale_captures=before)


def test_threads():
    compiled = ms.jit(lambda x, k: x * k + k)
    wrong = []

    def work(first):
        x = Tensor([1.0, 2.0])
        for k in range(first, first + 40):
            if not (compiled(x, k) == x * k + k).all():
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(100 * i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
