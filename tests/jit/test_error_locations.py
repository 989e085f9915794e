"""Errors of compiled code name their source line and hide the frames of duograph."""

from __future__ import annotations

import re
import traceback

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor, nn, ops

X = Tensor(np.ones((2, 3), np.float32))
LEVELS = ("O0", "O1", "O2")


def gathered(x, i):
    y = ops.gather(x * 2, i, 0)  # here
    return y.sum()


def gathered_in_a_loop(x, i):
    n = Tensor(0)
    while n < 3:
        x = x + ops.gather(x, i, 0).sum()  # here
        n = n + 1
    return x


def gathered_alone(x, i):
    return ops.gather(x, i, 0)  # here


def scored(x, i):
    return ops.cross_entropy(x, i)  # here


def misspelt(x, i):
    return x.summ()  # here


def unknown(x, i):
    return x + bias  # noqa: F821  # here


def divided(x, i):
    return x + 1 // (x.shape[0] - 2)  # here


def reshaped(x, i):
    x.shape = (3, 2)  # here
    return x


def multiplied(x, i):
    return ops.matmul(x, x)  # here


CASES = {
    gathered: (IndexError, "gather: index 7 is out of range for axis 0 of size 2"),
    gathered_in_a_loop: (IndexError, "gather: index 7 is out of range"),
    gathered_alone: (IndexError, "gather: index 7 is out of range"),
    scored: (IndexError, "7"),
    misspelt: (AttributeError, "'Tensor' object has no attribute 'summ'"),
    unknown: (NameError, "name 'bias' is not defined"),
    divided: (ZeroDivisionError, "division"),
    reshaped: (AttributeError, "'Tensor'"),
    multiplied: (ValueError, "matmul: got shapes"),
}


def shown(error):
    return "".join(traceback.format_exception(error))


def line_of(function):
    first = function.__code__.co_firstlineno
    with open(__file__, encoding="utf-8") as file:
        lines = file.read().splitlines()
    return next(n for n in range(first, len(lines) + 1) if lines[n - 1].endswith("# here"))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_error_names_its_source_line(function, level):
    kind, words = CASES[function]
    i = Tensor(np.array([7, 7]))
    f = ms.jit(function, jit_config=ms.JitConfig(jit_level=level))
    for _ in range(2):
        with pytest.raises(kind, match=re.escape(words)) as raised:
            f(X, i)
        text = shown(raised.value)
        assert f"test_error_locations.py:{line_of(function)} in {function.__name__}" in text
        assert "compiler/evaluate.py" not in text and "GraphTensor" not in text


@pytest.mark.parametrize("level", LEVELS)
def test_error_on_the_fast_route_names_its_source_line(level):
    f = ms.jit(gathered_alone, jit_config=ms.JitConfig(jit_level=level))
    for _ in range(3):
        f(X, Tensor(np.array([1, 0])))
    with pytest.raises(IndexError) as raised:
        f(X, Tensor(np.array([7, 0])))
    assert f"test_error_locations.py:{line_of(gathered_alone)} in gathered_alone" in shown(
        raised.value
    )


def test_error_of_a_cell_in_graph_mode():
    class Net(nn.Cell):
        def construct(self, x, i):
            return gathered(x, i)

    ms.set_context(mode=ms.GRAPH_MODE)
    with pytest.raises(IndexError) as raised:
        Net()(X, Tensor(np.array([7, 0])))
    assert f"test_error_locations.py:{line_of(gathered)} in gathered" in shown(raised.value)


def test_error_under_a_derivative():
    f = ms.jit(gathered)
    with pytest.raises(IndexError) as raised:
        ms.grad(f)(X, Tensor(np.array([7, 0])))
    assert f"test_error_locations.py:{line_of(gathered)} in gathered" in shown(raised.value)


def test_locating_an_error_does_not_print_twice(capfd):
    def printing(x, i):
        print("once")
        return ops.gather(x, i, 0)

    with pytest.raises(IndexError):
        ms.jit(printing)(X, Tensor(np.array([7, 0])))
    assert capfd.readouterr().out.count("once") == 1


def test_a_failed_step_has_changed_nothing():
    """Neither the call nor the search for its place."""
    w = ms.Parameter(Tensor(np.float32([1, 2])), name="w")

    @ms.jit
    def step(x, i):
        ops.assign_add(w, Tensor(np.float32([1, 1])))
        return ops.gather(x, i, 0)

    with pytest.raises(IndexError):
        step(X, Tensor(np.array([7, 0])))
    assert w.asnumpy().tolist() == [1, 2]
