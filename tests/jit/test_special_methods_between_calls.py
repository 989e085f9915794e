"""Methods of a user's class that are added, replaced or removed between calls."""

from __future__ import annotations

import itertools
import textwrap

import pytest
from amount import spread
from jit.changed import check

# What a function asks of the object `{o}`: (name of the method, the method with {n}, the body).
QUESTIONS = {
    "len": ("__len__", "lambda self: {n}", "return x * len({o})"),
    "truth": ("__bool__", "lambda self: {n} < 4", "return x * (2 if {o} else 1)"),
    "length as truth": ("__len__", "lambda self: 5 - {n}", "return x * (2 if {o} else 1)"),
    "for": ("__iter__", "lambda self: iter([{n}])", "for v in {o}:\n    x = x * v\nreturn x"),
    "list": ("__iter__", "lambda self: iter([{n}, 1])", "return x * list({o})[0]"),
    "unpack": ("__iter__", "lambda self: iter([{n}, 1])", "a, b = {o}\nreturn x * a"),
    "star": ("__iter__", "lambda self: iter([{n}, 1])", "return x * max(*{o})"),
    "sum": ("__iter__", "lambda self: iter([{n}, 1])", "return x * sum({o})"),
    "in": ("__contains__", "lambda self, v: {n} > 4", "return x * (2 if 3 in {o} else 1)"),
    "item": ("__getitem__", "lambda self, i: {n} + i", "return x * {o}[1]"),
    "equal": ("__eq__", "lambda self, v: {n} > 4", "return x * (2 if {o} == 7 else 1)"),
    "less": ("__lt__", "lambda self, v: {n} > 4", "return x * (2 if {o} < 3 else 1)"),
    "add": ("__add__", "lambda self, v: {n} + v", "return x * ({o} + 1)"),
    "add to": ("__radd__", "lambda self, v: {n} + v", "return x * (1 + {o})"),
    "add in place": ("__iadd__", "lambda self, v: {n} + v", "v = {o}\nv += 1\nreturn x * v"),
    "times": ("__mul__", "lambda self, v: {n} * v", "return {o} * x"),
    "negative": ("__neg__", "lambda self: {n}", "return x * (-{o})"),
    "abs": ("__abs__", "lambda self: {n}", "return x * abs({o})"),
    "int": ("__int__", "lambda self: {n}", "return x * int({o})"),
    "float": ("__float__", "lambda self: {n}.5", "return x * float({o})"),
    "range": ("__index__", "lambda self: {n}", "return x * len(range({o}))"),
    "round": ("__round__", "lambda self, n=0: {n}", "return x * round({o})"),
    "divmod": ("__divmod__", "lambda self, v: ({n}, 1)", "return x * divmod({o}, 3)[0]"),
    "call": ("__call__", "lambda self, v: v * {n}", "return {o}(x)"),
    "callable": ("__call__", "lambda self: {n}", "return x * ({o}() if callable({o}) else 2)"),
    "str": ("__str__", "lambda self: 'a' * {n}", "return x * len(str({o}))"),
    "repr": ("__repr__", "lambda self: 'a' * {n}", "return x * len(repr({o}))"),
    "format": ("__format__", "lambda self, s: 'a' * {n}", "return x * len(format({o}, 'q'))"),
    "bytes": ("__bytes__", "lambda self: b'a' * {n}", "return x * len(bytes({o}))"),
    "copy": ("__copy__", "lambda self: [1] * {n}", "return x * len(copy.copy({o}))"),
    "enter": ("__enter__", "lambda self: {n}", "with {o} as v:\n    return x * v"),
    "reversed": ("__reversed__", "lambda self: iter([{n}])", "return x * list(reversed({o}))[0]"),
    "missing attribute": ("__getattr__", "lambda self, name: {n}", "return x * {o}.other"),
    "any attribute": (
        "__getattribute__",
        "lambda self, name: {n} if name == 'other' else object.__getattribute__(self, name)",
        "return x * {o}.other",
    ),
    "attribute": ("other", "{n}", "return x * {o}.other"),
    "method": ("go", "lambda self, x: x * {n}", "return {o}.go(x)"),
    "property": ("other", "property(lambda self: {n})", "return x * {o}.other"),
    "static method": ("go", "staticmethod(lambda: {n})", "return x * {o}.go()"),
    "class method": ("go", "classmethod(lambda cls: {n})", "return x * {o}.go()"),
}
PLAIN = "class D:\n    def __exit__(self, *error):\n        pass\n"
# Where the object comes from: (program, the object, its class, the base that gets the method).
KINDS = {
    "object": (PLAIN + "o = D()\n", "o", "D"),
    "object of a derived class": (PLAIN + "class E(D):\n    pass\no = E()\n", "o", "D"),
    "object made in the function": (PLAIN, "D()", "D"),
    "Cell": (PLAIN.replace("D:", "D(nn.Cell):") + "o = D()\n", "o", "D"),
    "class": (PLAIN.replace("D:", "M(type):") + "class D(metaclass=M):\n    pass\n", "D", "M"),
    "list": (PLAIN.replace("D:", "D(list):") + "o = D([1, 2])\n", "o", "D"),
    "tuple": (PLAIN.replace("D:", "D(tuple):") + "o = D([1, 2])\n", "o", "D"),
    "dict": (PLAIN.replace("D:", "D(dict):") + "o = D(a=1)\n", "o", "D"),
    "number": (PLAIN.replace("D:", "D(float):") + "o = D(3.25)\n", "o", "D"),
}
CHANGES = ("added", "replaced", "removed")
# What the built-in class, or every class, answers by itself.
ANSWERED = {
    ("number", "length as truth"), ("class", "callable"), ("Cell", "callable"), ("class", "copy"),
}  # fmt: skip
ROWS = [
    (kind, question, change)
    for (question, change), kind in spread(list(itertools.product(QUESTIONS, CHANGES)), KINDS, 9)
    if (kind, question) not in ANSWERED
]


@pytest.mark.parametrize(("kind", "question", "change"), ROWS)
def test_method_of_a_class(kind: str, question: str, change: str) -> None:
    setup, owner, cls = KINDS[kind]
    name, method, body = QUESTIONS[question]
    text = textwrap.indent(body.replace("{o}", owner), " " * 8)
    earlier = method.replace("{n}", "3" if change == "replaced" else "5")
    given = "" if change == "added" else f"{cls}.{name} = {earlier}\n"
    program = (
        f"import copy\n{setup}{given}@jit\ndef f(x):\n    try:\n{text}\n"
        "    except (AttributeError, TypeError, ValueError):\n        return x * 100\n"
    )
    later = method.replace("{n}", "5")
    check(program, f"del {cls}.{name}" if change == "removed" else f"{cls}.{name} = {later}")
