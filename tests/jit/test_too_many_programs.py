"""A function that one argument makes compile again and again says so once, and what to do."""

from __future__ import annotations

import re
import warnings

import duograph as ms
import numpy as np
import pytest
from duograph.compiler.history import FEW, History


class Scale:
    """An object of the user's, which each call makes anew."""

    def __init__(self, value):
        self.value = value


def by(x, n):
    return x * n


def by_value(x, n):
    return x * n.value


def by_item(x, n):
    return x * n["k"][1]


def by_length(x, n):
    return x * len(n)


def with_array(x, n):
    return x + ms.Tensor(n)


# id: function, its argument in call i, what the warning says varies, the remedy
VARYING = {
    "int": (by, lambda i: i, r"argument n varies \(0, 1, 2, ...\)", r"Tensor or mutable\(\)"),
    "float": (by, float, r"argument n varies \(0.0, 1.0", r"Tensor or mutable\(\)"),
    "item": (by_item, lambda i: {"k": (1, i)}, r"argument n\['k'\]\[1\] varies", r"mutable\(\)"),
    "shape": (by, lambda i: ms.ops.ones((i + 1, 1)), r"n varies \(float32\[1, 1\]", "pad to a few"),
    "rank": (by, lambda i: ms.ops.ones((1,) * (i + 1)), r"n varies \(float32\[1\]", "pad to a few"),
    "text": (by_length, lambda i: "a" * i, r"argument n varies \('', 'a', 'aa'", "fewer values"),
    "list": (by_length, lambda i: [1] * i, r"\(list of 0, list of 1", "pad to a few lengths"),
    "array": (with_array, lambda i: np.array([float(i)]), r"\(ndarray", "pass a Tensor"),
    "object": (by_value, Scale, r"argument n varies \(Scale", "pass the same one"),
}


@pytest.mark.parametrize("how", ["position", "keyword"])
@pytest.mark.parametrize("case", VARYING)
def test_warning_past_a_few_programs(case: str, how: str) -> None:
    function, argument, what, remedy = VARYING[case]
    f = ms.jit(function, jit_level="O0", dynamic=0)
    x = ms.Tensor([1.0])

    def call(i: int) -> None:
        f(x, argument(i)) if how == "position" else f(x, n=argument(i))

    for i in range(FEW):  # the tests turn warnings into errors
        call(i)
    with pytest.warns(RuntimeWarning, match=rf"{function.__name__} is compiled.*{what}") as caught:
        call(FEW)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call(FEW + 1)
    assert f.cache_info().misses == FEW + 2
    (message,) = [str(w.message) for w in caught]
    assert re.search(remedy, message)


def both(x, n, m=None):
    return x * n


def nested(x, n):
    return x * n["a"] * n["b"]


ONE = ms.Tensor([1.0])
# id: function, its arguments in call i past the first warning, what the second one says
SECOND = {
    "a number": (both, lambda i: (ONE, i), r"argument n varies \(.*mutable"),
    "a float": (both, lambda i: (ONE, float(i)), r"argument n varies \(.*mutable"),
    "a text": (both, lambda i: (ONE, 2, "a" * i), r"argument m varies \(.*fewer values"),
    "a shape beside": (both, lambda i: (ONE, ms.ops.ones(i + 1)), "argument n varies .*pad to"),
    "each with its shape": (
        both,
        lambda i: (ms.ops.ones(20 + i), i),
        "argument n varies .*mutable",
    ),
}


@pytest.mark.parametrize("case", SECOND)
def test_a_second_cause_is_said_once_too(case: str) -> None:
    function, arguments, what = SECOND[case]
    f = ms.jit(function, jit_level="O0", dynamic=0)
    with pytest.warns(RuntimeWarning, match="argument x varies .*pad to a few shapes"):
        for i in range(FEW + 1):
            f(ms.ops.ones(i + 1), 2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for i in range(2 * FEW + 2):
            f(*arguments(i))
    (message,) = [str(w.message) for w in caught]
    assert re.search(rf"{function.__name__} is compiled for .*{what}", message)


def test_the_second_item_of_one_argument_is_a_second_cause() -> None:
    f = ms.jit(nested, jit_level="O0")
    with pytest.warns(RuntimeWarning, match=r"argument n\['a'\] varies"):
        for i in range(FEW + 1):
            f(ONE, {"a": i, "b": 0})
    with pytest.warns(RuntimeWarning, match=r"argument n\['b'\] varies"):
        for i in range(FEW + 1):
            f(ONE, {"a": 0, "b": i})


def test_shapes_that_vary_together_are_one_cause() -> None:
    f = ms.jit(both, jit_level="O0", dynamic=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for i in range(3 * FEW):
            f(ms.ops.ones(i + 1), ms.ops.ones(i + 1))
    assert len(caught) == 1


def summed(*xs):
    return sum(xs)


def written(x, y, z, u):
    for i, a in enumerate((x, y, z, u)):
        a[0] = float(i)
    return x + y + z + u


def test_what_is_no_argument_is_named_too() -> None:
    f = ms.jit(summed, jit_level="O0")
    for n in range(1, FEW + 1):
        f(*[ms.Tensor([1.0])] * n)
    with pytest.warns(RuntimeWarning, match="the number of arguments varies; .*keep it the same"):
        f(*[ms.Tensor([1.0])] * (FEW + 1))
    g = ms.jit(written, jit_level="O0")
    patterns = ("xyzu", "xxzu", "xyxu", "xyzx", "xyyu", "xyzy", "xyzz", "xxxu", "xyyy")
    with pytest.warns(RuntimeWarning, match="which arguments are one object varies"):
        for pattern in patterns:
            tensors = {k: ms.Tensor([1.0, 2.0]) for k in "xyzu"}
            g(*[tensors[k] for k in pattern])


def test_remedies_work() -> None:
    f = ms.jit(by, jit_level="O0")
    for i in range(2 * FEW):
        f(ms.Tensor([1.0]), ms.mutable(i))
        f(ms.Tensor([1.0]), ms.Tensor(float(i)))
    assert f.cache_info().misses == 2


class Net(ms.nn.Cell):
    """A Cell whose method takes a number, which is a size."""

    def construct(self, x, n):
        return ms.ops.broadcast_to(x, (n + 1,))


@pytest.mark.parametrize("form", ["jit", "GRAPH_MODE", "method"])
def test_cells_name_their_argument(form: str) -> None:
    net = Net()
    call = ms.jit(net) if form == "jit" else ms.jit(net.construct) if form == "method" else net
    if form == "GRAPH_MODE":
        ms.set_context(mode=ms.GRAPH_MODE)
    for i in range(FEW):
        call(ms.Tensor([1.0]), i)
    with pytest.warns(RuntimeWarning, match="Net.construct is compiled .* argument n varies"):
        call(ms.Tensor([1.0]), FEW)


def test_one_program_for_each_of_many_receivers_is_silent() -> None:
    class Held(ms.nn.Cell):
        @ms.jit
        def construct(self, x):
            return x * 2

    for _ in range(2 * FEW):
        Held()(ms.Tensor([1.0]))


def test_captured_value_that_varies() -> None:
    ms.set_context(stale_captures="recompile")
    factors = [0]

    @ms.jit(jit_level="O0")
    def f(x):
        return x * factors[0]

    x = ms.Tensor([1.0])
    for i in range(FEW):
        factors[0] = i
        f(x)
    factors[0] = FEW
    with pytest.warns(RuntimeWarning, match="f is compiled for the 9th time .*factors.* varies"):
        assert f(x).asnumpy().tolist() == [FEW]


def test_history_is_bounded() -> None:
    history = History()
    for i in range(1000):
        history.add(f"{i}" * 1000)
    lines = list(history)
    assert len(lines) == 32
    assert max(map(len, lines)) == 400
    assert lines[-1].startswith("999")


def test_statistics_of_a_function_are_bounded() -> None:
    f = ms.jit(with_array, jit_level="O0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for i in range(40):
            f(ms.Tensor([1.0]), np.full(10_000, i))
    reasons = ms.jit_stats()["reasons"]["with_array"]
    own = [r for r in reasons if "ndarray" in r]
    assert sum(map(len, own)) <= 32 * 400
