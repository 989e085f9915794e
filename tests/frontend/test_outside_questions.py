"""Whatever an evaluation asks of an object from outside is asked again at the next call.

The objects here report every question that reaches them. A question that is asked while a function
is compiled, and neither by the guard nor by the program of the next call, would be a constant that
nothing checks.
"""

# ruff: noqa: RUF015, UP031, UP032  (each program asks in its own way)
import operator

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor

ASKED: list[tuple[object, ...]] = []
X = Tensor(np.ones(3, np.float32))


def reporting(name):
    """Return a method that reports the question `name` and answers as a list does."""

    def method(self, *args):
        ASKED.append((name, *[repr(a) for a in args]))
        items = object.__getattribute__(self, "items")
        return getattr(items, name)(*args)

    return method


class Reporter:
    """A sequence of a foreign library that reports every question."""

    def __init__(self, items):
        self.items = items

    def __getattribute__(self, name):
        ASKED.append(("attribute", name))
        return object.__getattribute__(self, name)

    def __bool__(self):
        ASKED.append(("bool",))
        return bool(object.__getattribute__(self, "items"))

    def __hash__(self):
        ASKED.append(("hash",))
        return 7


for _name in (
    "__len__", "__iter__", "__getitem__", "__contains__", "__eq__", "__ne__", "__lt__", "__le__",
    "__gt__", "__ge__", "__add__", "__mul__", "__repr__", "__str__", "__format__", "__reversed__",
):  # fmt: skip
    setattr(Reporter, _name, reporting(_name))
# Classes of the standard library run as they are; those of users are evaluated from source.
Reporter.__module__ = "queue"

REPORTER = Reporter([2.0, 3.0])

PROGRAMS = {
    "if": lambda a: a * (2 if REPORTER else 3),
    "not": lambda a: a * (2 if not REPORTER else 3),
    "and": lambda a: a * (2 if REPORTER and a.ndim else 3),
    "bool": lambda a: a * bool(REPORTER),
    "len": lambda a: a * len(REPORTER),
    "item": lambda a: a * REPORTER[1],
    "negative item": lambda a: a * REPORTER[-1],
    "slice": lambda a: a * REPORTER[0:1][0],
    "in": lambda a: a * (2 if 3.0 in REPORTER else 3),
    "not in": lambda a: a * (2 if 3.0 not in REPORTER else 3),
    "==": lambda a: a * (2 if REPORTER == [2.0, 3.0] else 3),
    "!=": lambda a: a * (2 if REPORTER != [2.0] else 3),
    "<": lambda a: a * (2 if REPORTER < [9.0] else 3),
    ">=": lambda a: a * (2 if REPORTER >= [9.0] else 3),
    "compared on the right": lambda a: a * (2 if [2.0, 3.0] == REPORTER else 3),
    "in a list": lambda a: a * (2 if REPORTER in [[2.0, 3.0]] else 3),
    "for": lambda a: a * sum([v for v in REPORTER]),
    "list": lambda a: a * len(list(REPORTER)),
    "tuple": lambda a: a * tuple(REPORTER)[0],
    "star": lambda a: a * sum([*REPORTER]),
    "unpack": lambda a: (lambda p, q: a * p + q)(*REPORTER),
    "sum": lambda a: a * sum(REPORTER),
    "max": lambda a: a * max(REPORTER),
    "sorted": lambda a: a * sorted(REPORTER)[0],
    "any": lambda a: a * (2 if any(REPORTER) else 3),
    "zip": lambda a: a * sum(v * w for v, w in zip(REPORTER, (1.0, 2.0))),
    "enumerate": lambda a: a * sum(i * v for i, v in enumerate(REPORTER)),
    "map": lambda a: a * sum(map(float, REPORTER)),
    "reversed": lambda a: a * list(reversed(REPORTER))[0],
    "+": lambda a: a * len(REPORTER + [1.0]),
    "*": lambda a: a * len(REPORTER * 2),
    "str": lambda a: a * len(str(REPORTER)),
    "repr": lambda a: a * len(repr(REPORTER)),
    "f-string": lambda a: a * len(f"{REPORTER}"),
    "f-string of repr": lambda a: a * len(f"{REPORTER!r:>30}"),
    "percent": lambda a: a * len("%s" % (REPORTER,)),
    "format": lambda a: a * len("{}".format(REPORTER)),
    "attribute": lambda a: a * REPORTER.items[0],
    "getattr": lambda a: a * len(getattr(REPORTER, "items", ())),
    "hasattr": lambda a: a * (2 if hasattr(REPORTER, "missing") else 3),
    "attrgetter": lambda a: a * operator.attrgetter("items")(REPORTER)[0],
    "itemgetter": lambda a: a * operator.itemgetter(1)(REPORTER),
    "operator.contains": lambda a: a * (2 if operator.contains(REPORTER, 3.0) else 3),
    "hash": lambda a: a * hash(REPORTER),
    "key of a dict": lambda a: a * {REPORTER: 2.0}[REPORTER],
    "numpy": lambda a: a * float(np.sum(np.asarray(list(REPORTER)))),
}


@pytest.fixture(autouse=True)
def default_policy():
    yield
    ms.set_context(stale_captures="warn")


@pytest.mark.parametrize("policy", ["recompile", "warn"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_what_is_asked_while_compiling_is_asked_again(program, policy):
    function = PROGRAMS[program]
    want = function(X)
    ms.set_context(stale_captures=policy)
    compiled = ms.jit(function)
    ASKED.clear()
    first = compiled(X)
    while_compiling = set(ASKED)
    ASKED.clear()
    second = compiled(X)
    again = set(ASKED)
    assert np.array_equal(first.asnumpy(), want.asnumpy())
    assert np.array_equal(second.asnumpy(), want.asnumpy())
    assert compiled.cache_info().misses <= 1
    # finding out what an object is tells nothing about its content
    unguarded = {q for q in while_compiling - again if q[-1] not in ("__class__", "__dict__")}
    assert not unguarded, unguarded
    assert while_compiling
