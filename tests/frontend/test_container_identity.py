"""Lists, dicts, tuples and functions that one of several variables refers to after a condition.

After `o = a if c else b`, Python's `o` is a or b itself: a change of `o` is a change of that
object, and `o is a` tells which one it is. In the graph `o` is a third object. Each program here
must give Python's answer: compiled, or line by line with a warning where only the running graph
could tell.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor, nn

INPUTS = (1.0, 2.0, 5.0)
COMPILED: dict[str, Callable[..., Any]] = {}
LINE_BY_LINE: dict[str, Callable[..., Any]] = {}


def compiled(function):
    """Register a program that is compiled."""
    COMPILED[function.__name__] = function
    return function


def line_by_line(function):
    """Register a program that only Python can run: the graph cannot tell which object it is."""
    LINE_BY_LINE[function.__name__] = function
    return function


class Scale(nn.Cell):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def construct(self, x):
        return x * self.factor


ONE, TWO = Scale(1), Scale(2)


class Holder:
    pass


# ---- identity ------------------------------------------------------------------------------------


@line_by_line
def list_chosen_by_an_expression(x):
    a, b = [x], [x * 2]
    o = a if x == 1.0 else b
    return o is a, o is b, o is not a


@line_by_line
def list_chosen_by_a_statement(x):
    a, b = [x], [x * 2]
    if x == 1.0:
        o = a
    else:
        o = b
    return o is a


@line_by_line
def list_kept_or_chosen(x):
    a, o = [x], [x * 3]
    if x == 1.0:
        o = a
    return o is a


@line_by_line
def two_choices_by_one_condition(x):
    a, b = [x], [x * 2]
    o = a if x == 1.0 else b
    p = a if x == 1.0 else b
    return o is p


@line_by_line
def dict_chosen(x):
    a, b = {"k": x}, {"k": x * 2}
    o = a if x == 1.0 else b
    return o is a


@line_by_line
def tuple_chosen(x):
    a, b = (x, x), (x * 2, x)
    o = a if x == 1.0 else b
    return o is a


@line_by_line
def tuple_and_its_item_chosen(x):
    t = (x, [x])
    u = t if x == 1.0 else (x * 2, [x])
    return u is t, u[1] is t[1]


@line_by_line
def function_chosen(x):
    def a(v):
        return v

    def b(v):
        return v * 2

    o = a if x == 1.0 else b
    return o is a


@line_by_line
def cell_chosen(x):
    o = ONE if x == 1.0 else TWO
    return o is ONE


@line_by_line
def id_of_a_chosen_list(x):
    a, b = [x], [x * 2]
    o = a if x == 1.0 else b
    return id(o) in {id(a): 1}


@line_by_line
def items_compared_with_a_chosen_one(x):
    a, b = [x], [x * 2]
    t = [a, b]
    o = t[0] if x == 1.0 else t[1]
    return [p is o for p in t]


@line_by_line
def list_returned_by_a_branch_of_a_function(x):
    a = [x]

    def chosen(v):
        if v == 1.0:
            return a
        return [v]

    return chosen(x) is a


@line_by_line
def list_rebound_in_a_loop(x):
    a, b = [x], [x]
    m = a
    while x < 3:
        m = b
        x = x + 1
    return m is a


@compiled
def branches_in_an_unrolled_loop(x):
    a = [x]
    for i in range(3):
        if x == float(i):
            a = [x]
            b = a
        else:
            b = a
    return a is b


@compiled
def one_object_in_both_branches(x):
    t, y = (x, x), x
    if x == 1.0:
        y, u = x + 1, t
    else:
        u = t
    return u is t, y


@compiled
def a_chosen_list_and_itself(x):
    a, b = [x], [x * 2]
    o = a if x == 1.0 else b
    p = o
    return p is o, o is not p, o is None


@compiled
def chosen_functions_are_equal(x):
    def a(v):
        return v

    def b(v):
        return v * 2

    o = a if x == 1.0 else b
    return o(x)


# ---- changes -------------------------------------------------------------------------------------


@compiled
def two_names_of_a_list_made_in_the_branches(x):
    if x == 1.0:
        a = [x]
        b = a
    else:
        a = [x * 2]
        b = a
    a.append(x)
    return len(b), a is b


@compiled
def a_dict_in_a_list_made_in_the_branches(x):
    if x == 1.0:
        a = {"k": x}
        b = [a]
    else:
        a = {"k": x * 2}
        b = [a]
    a["k"] = x * 5
    return b[0]["k"], b[0] is a


@compiled
def a_list_in_a_tuple_made_in_the_branches(x):
    if x < 3:
        a = [x]
        t = (a, 1)
    else:
        a = [x * 2]
        t = (a, 1)
    a[0] = a[0] + 5
    return t[0][0], a[0]


@line_by_line
def two_names_in_one_branch_alone(x):
    if x == 1.0:
        a = [x]
        b = a
    else:
        a, b = [x * 2], [x * 2]
    a.append(x)
    return len(b)


@compiled
def a_name_of_one_branch_alone(x):
    if x < 3:
        made = [x]
        made.append(x)
        out = made
    else:
        out = [x, x]
    out.append(x)
    return len(out)


@line_by_line
def attribute_rebound_in_a_branch(x):
    p = Holder()
    p.items = [x]
    q = p.items
    if x < 3:
        p.items = [x * 3]
    p.items.append(x)
    return len(q), len(p.items)


@line_by_line
def lists_swapped_in_branches(x):
    a, b = [x], [x]
    for i in range(3):
        if x > float(i):
            a, b = b, a
        a.append(x)
    return len(a), len(b)


@compiled
def two_names_of_a_list_made_in_a_loop(x):
    a = [x]
    b = a
    while x < 3:
        a = [x]
        b = a
        x = x + 1
    a.append(x)
    return len(b), a is b


@compiled
def a_list_rebound_in_a_loop_and_changed_after_it(x):
    out = [x]
    while x < 3:
        out = [out[0] + 1]
        x = x + 1
    out.append(x)
    return len(out), out[0]


@compiled
def a_list_changed_and_rebound_in_a_loop(x):
    state = [x, x]
    while x < 4:
        state[0] = state[0] + 1
        state = [state[0], state[1] * 2]
        x = x + 1
    return state


@compiled
def two_names_changed_in_a_loop(x):
    a = {"k": x}
    b = a
    while x < 3:
        b = {"k": b["k"] + 1}
        a = b
        a["k"] = a["k"] * 2
        x = x + 1
    return b["k"], a["k"], a is b


@compiled
def names_that_only_a_loop_binds(x):
    y = x - 4
    while y < 3:
        made = [y]
        out = made
        y = y + 2
    out.append(x)
    return len(out), len(made)


@line_by_line
def a_list_from_before_that_a_loop_chooses(x):
    a, b = [x], [x * 2]
    m = a
    while x < 3:
        m = b
        x = x + 1
    m.append(x)
    return len(a), len(b), len(m)


@line_by_line
def another_name_of_a_list_from_before_a_loop(x):
    a = [x]
    b = a
    while x < 3:
        a = [x * 2]
        x = x + 1
    a.append(x)
    return len(a), len(b)


@line_by_line
def one_object_before_a_loop_and_two_after_it(x):
    a = {"k": x}
    b = a
    while x < 3:
        a["k"] = a["k"] + 1
        b = {"k": b["k"] * 2}
        x = x + 1
    return b["k"], a["k"], a is b


@line_by_line
def a_list_in_a_dict_made_in_a_loop(x):
    d = {"s": [x]}
    s = d["s"]
    while x < 3:
        d = {"s": [x]}
        s = d["s"]
        x = x + 1
    s.append(x)
    return len(d["s"]), len(s)


@line_by_line
def two_lists_before_a_loop_and_one_in_a_dict_after_it(x):
    a = [x]
    c = {"a": a}
    while x < 3:
        a = [a[0] + 1]
        c = {"a": a}
        x = x + 1
    a[0] = a[0] * 10
    return c["a"][0], a[0]


def answers(function, jit=None):
    """Return the results of a program for all inputs, with arrays for Tensors."""
    found = []
    for value in INPUTS:
        result = (jit or function)(Tensor(value, ms.float32))
        found.append(_plain(result))
    return found


def _plain(value):
    if isinstance(value, Tensor):
        return float(value.asnumpy())
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value


@pytest.mark.parametrize("level", ["O0", "O1"])
@pytest.mark.parametrize("name", COMPILED)
def test_compiled_programs_give_pythons_answers(name, level):
    function = COMPILED[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        strict = ms.jit(function, jit_level=level, jit_syntax_level="STRICT")
        assert answers(function, strict) == answers(function)


@pytest.mark.parametrize("name", LINE_BY_LINE)
def test_the_rest_runs_line_by_line_and_says_so(name):
    function = LINE_BY_LINE[name]
    with pytest.warns(RuntimeWarning, match="runs line by line"):
        assert answers(function, ms.jit(function)) == answers(function)


@pytest.mark.parametrize("name", LINE_BY_LINE)
def test_strict_refuses_the_rest(name):
    function = LINE_BY_LINE[name]
    strict = ms.jit(function, jit_syntax_level="STRICT")
    with pytest.raises(ms.errors.UnsupportedSyntaxError, match=r"one of (two|several)"):
        strict(Tensor(1.0, ms.float32))


@pytest.mark.parametrize("name", [*COMPILED, *LINE_BY_LINE])
def test_gradients(name):
    """The gradient of a program that returns numbers among other things, both ways."""
    function = COMPILED.get(name) or LINE_BY_LINE[name]

    def total(x):
        return sum([v for v in _leaves(function(x)) if isinstance(v, Tensor)], x * 0)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for value in INPUTS:
            x = Tensor(value, ms.float32)
            np.testing.assert_array_equal(
                ms.grad(ms.jit(total))(x).asnumpy(), ms.grad(total)(x).asnumpy()
            )


def _leaves(value):
    return [w for v in value for w in _leaves(v)] if isinstance(value, (list, tuple)) else [value]
