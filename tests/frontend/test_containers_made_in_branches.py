"""Lists and dicts that code under two conditions makes of Tensors, in every way that Python has.

Both conditions are Tensors, so that each container is the result of two joins.
"""

from __future__ import annotations

import numpy as np
import pytest
from duograph.conformance.program_runs import Program, disagreement, observe

HEAD = """
import collections, copy, functools, itertools, operator
OUT = [1.0, 2.0]

def named(**k):
    return k

def listed(a, *r):
    return [a, *r]

def rest(a):
    p, *q = a
    return q

def collected(*a):
    r = []
    for t in a:
        r += [t]
    return r
"""

# A container of the Tensors v, of the branch, and x, from before it.
MADE = [
    "[v, x]", "[v, x][:1]", "[v, x][::-1]", "[v] + [x]", "[v] * 2", "[*[v], x]", "[v] + OUT",
    "OUT + [v]", "[v, *OUT]", "list(OUT) + [v]", "list((v, x))", "list([v, x])",
    "[t for t in (v, x)]", "[t * 2 for t in (v, x)]", "list(map(lambda t: t, (v, x)))",
    "[v, x].copy()", "copy.copy([v, x])", "list(zip((v, x), (x, v)))", "list(enumerate((v, x)))",
    "list(reversed([v, x]))", "sorted([v, x], key=lambda t: 0)", "sum([[v], [x]], [])",
    "listed(v, x, x)", "rest((v, v, x))", "collected(v, x)", "(lambda *a: list(a))(v, x)",
    "functools.reduce(lambda p, q: p + [q], (v, x), [])", "operator.add([v], [x])",
    "list(itertools.chain([v], [x]))", "[v, x].__add__([v])", "[v, x].__mul__(2)",
    "[v, x].__getitem__(slice(0, 1))", "max([v], [v], key=len)", "[v] or [x]", "[v, [x]][1]",
    "[v] if x[0] > 9 else [x]", "[[v], [x]]", "[(v, x)]", "([v],)", "[{'k': v}]",
    "dict(a=v, b=x)", "{**{'a': v}, 'b': x}", "{'a': v} | {'b': x}", "{k: v for k in 'ab'}",
    "{'a': v}.copy()", "copy.copy({'a': v})", "dict(zip('ab', (v, x)))", "dict([('a', v)])",
    "dict({'a': v}, b=x)", "dict.fromkeys('ab', v)", "{'a': v}.__or__({'b': x})",
    "named(a=v, b=x)", "(lambda **a: a)(k=v)", "list({'a': v}.values())", "list({'a': v}.items())",
    "{'k': [v]}", "{'a': v} if x[0] > 9 else {'a': x}",
]  # fmt: skip

# The container is returned, kept in a variable, or changed after the inner condition.
USES = {
    "returned": """
        d = {made}
        if x.max() > {p}:
            v = ops.tanh(x)
            if y[0] > {q}:
                return {made}
        return d
    """,
    "kept": """
        c = {made}
        if x.max() > {p}:
            v = ops.tanh(x)
            if y[0] > {q}:
                v = ops.sin(v)
                c = {made}
        return c
    """,
    "changed": """
        d = {made}
        if x.max() > {p}:
            v = ops.tanh(x)
            if y[0] > {q}:
                c = {made}
            else:
                v = ops.sin(v)
                c = {made}
            change(c, y)
            d = c, v
        else:
            change(d, y)
            d = d, v
        return d
    """,
}
CHANGE = """
def change(c, y):
    k = 0 if isinstance(c, (list, tuple)) else list(c)[0]
    if isinstance(c[k], Tensor):
        c[k] = y * 2
    elif isinstance(c[k], list):
        c[k][0] = y * 2
"""
X = np.array([0.5, -0.25, 1.0], np.float32)
Y = np.array([1.0, 2.0, -0.5], np.float32)


@pytest.mark.parametrize("taken", ["both", "outer", "neither"])
@pytest.mark.parametrize("use", USES)
def test_made_under_two_conditions(use: str, taken: str) -> None:
    p, q = {"both": (0, 0), "outer": (0, 3), "neither": (3, 0)}[taken]
    wrong = []
    for made in MADE:
        body = USES[use].format(made=made, p=p, q=q)
        source = f"{HEAD}{CHANGE}\n@jit\ndef f(x, y):\n        v = x{body}"
        program = Program(source, (X, Y), name="made")
        text = disagreement(observe(program, "eager"), observe(program, "jit"))
        if text is not None:
            wrong.append(f"{made}: {text}")
    assert not wrong, "\n".join(wrong)
