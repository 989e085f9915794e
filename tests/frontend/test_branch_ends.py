"""A tensor that one branch writes in place, and containers that the other branch changes.

The containers hold the tensor; after the condition they must hold it with what was written.
"""

from __future__ import annotations

import linecache
from typing import Any

import duograph as ms
import pytest
from duograph import Tensor

# code before a condition, in its branches, and what follows
PROGRAMS = [
    ("c = [x, x]", "c[0] = y", "x[0] = x[1]", "c[0] * x"),
    ("c = [x, x]", "x[0] = x[1]", "c[0] = y", "c[0] * x"),
    ("c = [x, x]", "c.append(y)", "x[0] = x[1]; c.append(x)", "c[0] * c[2]"),
    ("c = [x, y]", "c.reverse()", "x[0] = x[1]", "c[0] * x"),
    ("v = x * 2; c = [v, x]", "c.reverse()", "v[0] = x[1]", "c[0] * v"),
    ("v = Tensor([1., 2., 3.]); c = [v]", "c[0] = y", "v[0] = x[0]", "c[0] * v * x"),
    ("c = {'a': x}", "c['a'] = y", "x[0] = x[1]", "c['a'] * x"),
    ("c = [[x, y], x]", "c[0][0] = y", "x[0] = x[1]", "c[0][0] * x"),
    ("c = [(x, y), x]", "c[0] = (y, x)", "x[0] = x[1]", "c[0][0] * x"),
    ("c = [[x]]", "c[0] = [y]", "x[0] = x[1]", "c[0][0] * x"),
    ("c = {'a': [x]}", "c['a'] = [y]", "x[0] = x[1]", "c['a'][0] * x"),
    ("c = {'a': {'b': x}}", "c['a'] = {'b': y}", "x[0] = x[1]", "c['a']['b'] * x"),
    ("c = [x]", "c = [y]", "x[0] = x[1]", "c[0] * x"),
    ("c = [[x]]", "c = [[y]]", "x[0] = x[1]", "c[0][0] * x"),
    ("c = [x]; d = (c, 1)", "d = ([y], 1)", "x[0] = x[1]", "d[0][0] * x"),
    ("c = [x]; d = c", "d = [y]", "c[0] = y * 3", "d[0] * x"),
    ("c = [x]; d = c", "d = [y]", "c[0][0] = 5.", "d[0] * x"),
    ("c = [Tensor([1., 2., 3.])]", "c = [y]", "c[0][0] = 5.", "c[0] * x"),
    ("c = [x]", "return x * 7", "x[0] = x[1]; c = [x]", "c[0] * x"),
    ("c = [x]", "x[1] = 4.; return c[0] * 7", "x[0] = x[1]; c[0] = y", "c[0] * x"),
    ("c = [x]", "x[1] = 4.", "pass", "(c if x.sum() > 0 else [y])[0] * x"),
    ("o = Box(x)", "o.v = y", "x[0] = x[1]", "o.v * x"),
    ("o = Box([x])", "o.v = [y]", "x[0] = x[1]", "o.v[0] * x"),
    ("o = Box([x])", "o.v[0] = y", "x[0] = x[1]", "o.v[0] * x"),
]
X, Y = [0.5, 0.75, 0.25], [0.125, -0.25, 0.125]


class Box:
    """An object with one attribute."""

    def __init__(self, v: Any) -> None:
        self.v = v


def results(source: str, compile_it: Any) -> list[Any]:
    """Return values and gradients of a program where each branch is taken, from two calls each."""
    file = f"<branch ends {hash(source)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    space: dict[str, Any] = {"Tensor": Tensor, "Box": Box}
    exec(compile(source, file, "exec"), space)
    f = compile_it(space["f"])
    found = []
    for y in (Y, X, Y, X):
        value, gradients = ms.value_and_grad(lambda *a: f(*a).sum(), (0, 1))(Tensor(X), Tensor(y))
        found.append([value.asnumpy().tolist(), *[g.asnumpy().tolist() for g in gradients]])
    return found


@pytest.mark.parametrize("place", ["a branch", "a nested branch", "a loop"])
@pytest.mark.parametrize("program", PROGRAMS, ids=" | ".join)
def test_as_line_by_line(program: tuple[str, str, str, str], place: str) -> None:
    before, then, orelse, result = program
    if place == "a nested branch" and "return" not in orelse and "append" not in orelse:
        orelse = f"if x[1] > 0: {orelse}"
    if place == "a loop" and "return" not in then and "append" not in then:
        then = f"i = Tensor(0)\n    while i < 3: i = i + 1; {then}"
    source = (
        f"def f(x, y):\n  {before}\n  if y.sum() > 0.5:\n    {then}\n  else:\n    {orelse}\n"
        f"  return {result}\n"
    )
    assert results(source, ms.jit) == results(source, lambda f: f)
