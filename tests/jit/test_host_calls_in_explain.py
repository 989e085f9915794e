"""`explain` names every call of Python code that a program makes, with its line."""

import pathlib
import re

import duograph as ms
import numpy as np
import pytest

seen = []


def straight(x):
    seen.append(x.sum())
    print("sum", x.sum())
    return x * 2


def in_a_branch(x):
    if x.sum() > 100:
        print("large")
    return x * 2


def in_a_loop(x):
    while x.sum() < 0:
        print("negative")
        x = x + 1
    return x


def helper(x):
    seen.append(x)


def in_a_helper(x):
    helper(x.sum())
    return x


def numpy_function(x):
    return x + float(np.sqrt(x.asnumpy()).sum())


def nothing(x):
    return x * 2


# (function, [(call, function of the line)]), in program order
CASES = [
    (straight, [("list.append", "straight"), ("print", "straight")]),
    (in_a_branch, [("print", "in_a_branch")]),
    (in_a_loop, [("print", "in_a_loop")]),
    (in_a_helper, [("list.append", "helper")]),
    (numpy_function, [("asnumpy", "numpy_function"), ("sqrt", "numpy_function")]),
    (nothing, []),
]


@pytest.mark.parametrize("level", ["O0", "O1", "O2"])
@pytest.mark.parametrize(("function", "wanted"), CASES, ids=[f.__name__ for f, _ in CASES])
def test_each_call_of_python_is_named_with_its_line(function, wanted, level):
    said = ms.jit(function, jit_level=level).explain(ms.Tensor([1.0, 2.0]))
    shown = [
        re.fullmatch(r"(\S+) \(.*test_host_calls_in_explain\.py:(\d+) in (\w+)\)", c).groups()
        for c in said.host_calls
    ]
    assert [(name, where) for name, _, where in shown][: len(wanted)] == wanted
    assert bool(shown) == bool(wanted)
    lines = pathlib.Path(__file__).read_text().splitlines()
    for name, line, _ in shown[: len(wanted)]:
        assert name.rpartition(".")[2] in lines[int(line) - 1]
    text = ", ".join(said.host_calls) or "nothing"
    assert f"  calls of Python: {text}\n" in str(said)
