"""Iterators: when their items are computed, and how many are left after a use.

Each program of the tables runs line by line and compiled, and must agree. A program in which a
condition on a Tensor decides how many items are left, or whether an effect of an item happens, runs
line by line with a warning.
"""

from __future__ import annotations

import textwrap

import pytest
from frontend.comparison import check_program
from frontend.corpus import f

CALLS = [(f(1), 1), (f(-2), -2), (f(3), 3)]
HELPERS = """
def shown(v):
    print("item", v)
    return v


class Counter:
    def __init__(self):
        self.k = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.k = self.k + 1
        if self.k > 3:
            raise StopIteration
        return self.k


def decided(v, x):
    print("asked", v)
    return x > v
"""


def check(body: str, line_by_line: bool | None = False, helpers: str = HELPERS) -> None:
    body = textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    check_program(f"{helpers}\ndef f(x, n):\n{body}", CALLS, line_by_line)


COMPUTED_LATE = {
    "a variable changes": """
        k = 1
        g = (v * k for v in [1, 2, 3])
        k = 10
        return x, list(g)
        """,
    "a Tensor variable changes": """
        y = x * 1
        g = (y * v for v in [1, 2, 3])
        y = x * 100
        return sum(g)
        """,
    "a Tensor is written in place": """
        y = x * 1
        g = (y * v for v in [1, 2, 3])
        y += 100
        return sum(g)
        """,
    "the list grows": """
        l = [1, 2]
        g = (v for v in l)
        l.append(3)
        l = [7]
        return x, list(g)
        """,
    "an inner iterable is rebound": """
        m = [3]
        g = ((v, w) for v in [1, 2] for w in m)
        m = [7, 8]
        return x, list(g)
        """,
    "map: a variable changes": """
        k = 1
        g = map(lambda v: v * k, [1, 2, 3])
        k = 10
        return x, list(g)
        """,
    "map: the list changes": """
        l = [1, 2]
        g = map(lambda v: v * 2, l)
        l.append(3)
        l[0] = 50
        return x, list(g)
        """,
    "map: the iterator is shared": """
        it = iter([1, 2, 3])
        g = map(lambda v: v * 2, it)
        return x, next(it), list(g), list(it)
        """,
    "filter: a variable changes": """
        k = 1
        g = filter(lambda v: v > k, [1, 2, 3])
        k = 2
        return x, list(g)
        """,
    "filter: the iterator is shared": """
        it = iter([1, 2, 3])
        g = filter(None, it)
        return x, next(it), list(g), list(it)
        """,
    "effects of items": """
        g = (shown(v) for v in [1, 2, 3])
        print("before")
        a = next(g)
        print("between")
        return x, a, list(g)
        """,
    "effects of items of map in a loop": """
        for v in map(shown, [1, 2, 3]):
            print("body", v)
            if v > n:
                break
        return x, v
        """,
    "any stops": """
        return x, any(shown(v) > 1 for v in [1, 2, 3])
        """,
    "an item raises": """
        g = (1 // v for v in [1, 0, 2])
        a = next(g)
        try:
            next(g)
        except ZeroDivisionError:
            print("raised")
        return x, a, list(g)
        """,
    "zip of an iterator with itself": """
        it = iter([1, 2, 3, 4, 5])
        return x, list(zip(it, it)), list(it)
        """,
    "unpacking asks for one more": """
        it = iter([1, 2, 3, 4])
        try:
            a, b = it
        except ValueError:
            print("too many")
        return x, list(it)
        """,
    "unpacking an endless iterator": """
        import itertools
        try:
            a, b = itertools.count()
        except ValueError:
            print("too many")
        return x
        """,
    "an item in an iterator": """
        it = iter([1, 2, 3, 4])
        return x, 2 in it, list(it)
        """,
    "extend": """
        l, k = [1], 2
        g = (v * k for v in [1, 2])
        l.append(5)
        k = 3
        l.extend(g)
        return x, l, list(g)
        """,
}


@pytest.mark.parametrize("name", COMPUTED_LATE)
def test_items_are_computed_when_asked_for(name: str) -> None:
    check(COMPUTED_LATE[name])


ITERATORS = {
    "iter": "iter([1, 2, 3])",
    "generator": "(v for v in [1, 2, 3])",
    "map": "map(abs, [1, 2, 3])",
    "reversed": "reversed([1, 2, 3])",
    "enumerate": "enumerate([1, 2, 3])",
}
USES = {
    "next": "a = next(it)",
    "for": "a = 0\nfor v in it: a = v",
    "list": "a = list(it)[0]",
    "star": "a = [*it][0]",
    "unpack": "a, *_ = it",
    "in": "a = 2 in it",
    "zip": "a = len(list(zip(it, 'ab')))",
    "max": "a = max(it)",
    "extend": "a = []\na.extend(it)\na = len(a)",
}


@pytest.mark.parametrize("iterator", ITERATORS)
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("both", [False, True])
def test_use_in_a_branch(use: str, iterator: str, both: bool) -> None:
    used = textwrap.indent(USES[use], " " * 4)
    other = used if both else "    a = 5"
    body = f"it = {ITERATORS[iterator]}\nif x > 0:\n{used}\n    a = 1\nelse:\n{other}\n    a = 2\n"
    check(f"{body}return x, a, len(list(it))", line_by_line=True)


@pytest.mark.parametrize("iterator", [*ITERATORS.values(), "Counter()"])
def test_loop_left_by_a_condition(iterator: str) -> None:
    item = "v[1]" if "enumerate" in iterator else "v"
    body = f"""
        it = {iterator}
        t = 0
        for v in it:
            if {item} > x:
                break
            t = t + {item}
        return x, t, len(list(it))
        """
    check(body, line_by_line=True)
    later = "" if "Counter" in iterator else body.replace(", len(list(it))", "")
    if later:  # the position does not matter
        check(later)


DECIDED = {
    "any": "return x, any(decided(v, x) for v in range(3))",
    "all": "return x, all(decided(v, x) for v in range(3))",
    "any of map": "return x, any(map(lambda v: decided(v, x), range(3)))",
    "a loop": """
        t = 0
        for v in map(shown, [1, 2, 3]):
            if v > x:
                break
            t = t + v
        return x, t
        """,
    "any, and the rest": """
        it = iter([x > 0, x > 1, x > 2])
        return x, any(it), len(list(it))
        """,
    "in, and the rest": """
        it = iter([x * 1, x * 2, x * 3])
        return x, (x * 2) in it, len(list(it))
        """,
}


@pytest.mark.parametrize("name", DECIDED)
def test_condition_decides_about_items(name: str) -> None:
    check(DECIDED[name], line_by_line=True)


FREE_OF_EFFECTS = {
    "any": "return any(x > v for v in range(3))",
    "all of a list": "return all([decided(v, x) for v in range(3)])",
    "in": "return (x * 2) in (v * x for v in range(3))",
    "sum": "return sum(x * v for v in range(3))",
    "max of map": "return max(map(lambda v: x * v, [1, 2, 3]))",
}


@pytest.mark.parametrize("name", FREE_OF_EFFECTS)
def test_items_without_effects_are_compiled(name: str) -> None:
    check(FREE_OF_EFFECTS[name])


REFUSED_BY_PYTHON = {
    "default of max": "return max(1, 2, default=3)",
    "default of max of Tensors": "return max(x, x * 2, default=3)",
    "sum of strings": "return sum(['a', 'b'], '')",
    "an unbound variable of the enclosing function": """
        def read():
            return late
        r = read()
        late = 1
        return r
        """,
}


@pytest.mark.parametrize("name", REFUSED_BY_PYTHON)
def test_errors(name: str) -> None:
    check(REFUSED_BY_PYTHON[name], line_by_line=None)


# An iterator that another one draws from, which a condition on a Tensor stops early.
DRAWN_FROM = {
    "enumerate": "for i, v in enumerate(it):\n    s = s + v\n    if x > 0:\n        break",
    "zip": "for v, w in zip(it, [5, 6, 7, 8]):\n    s = s + v * w\n    if x > 0:\n        break",
    "zip, second": "for v, w in zip([5, 6], it):\n    s = s + v * w\n    if x > 0:\n        break",
    "generator": "for v in (k * 2 for k in it):\n    s = s + v\n    if x > 0:\n        break",
    "map": "for v in map(abs, it):\n    s = s + v\n    if x > 0:\n        break",
    "filter": "for v in filter(None, it):\n    s = s + v\n    if x > 0:\n        break",
    "nested": "for i, v in enumerate(k for k in it):\n    s = s + v\n    if x > 0:\n        break",
    "any": "s = any(map(lambda k: x * k > 0, it))",
    "all": "s = all(x * k > 0 for k in it)",
    "in": "s = x in (k for k in it)",
}


@pytest.mark.parametrize("use", DRAWN_FROM.values(), ids=DRAWN_FROM)
def test_what_is_left_of_an_iterator_below_another(use: str) -> None:
    check(f"it = iter([1, 2, 3, 4])\ns = x * 0\n{use}\nreturn s, sum(it)", True)


STOPPED = {
    "a condition of a list": "len([k for k in [1, 2, 3] if next(it)])",
    "an element of a list": "len([next(it) for k in [1, 2, 3]])",
    "an inner iterable": "len([k for j in [1, 2, 3] for k in [next(it)]])",
    "a set": "len({k * next(it) for k in [1, 2, 3]})",
    "a dict": "len({k: next(it) for k in [1, 2, 3]})",
    "a generator": "len(list(next(it) for k in [1, 2, 3]))",
    "a condition of a generator": "len(list(k for k in [1, 2, 3] if next(it)))",
}


@pytest.mark.parametrize("expression", STOPPED.values(), ids=STOPPED)
def test_a_stop_iteration_inside_a_comprehension(expression: str) -> None:
    check(
        f"""
        it = iter([1, 1])
        try:
            return x, {expression}
        except StopIteration:
            return x, -1
        except RuntimeError as error:
            return x, str(error), type(error.__cause__).__name__
        """,
        None,
    )


def test_a_generator_expression_reads_what_is_written_after_it() -> None:
    check_program(
        """
        def inner(x, out):
            y = x * 1
            out.append(y * i for i in range(2))
            if x > 0:
                y = x * 10
                return y
            return x

        def f(x, n):
            out = []
            inner(x, out)
            return list(out[0])
        """,
        CALLS,
    )
