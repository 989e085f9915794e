"""Writes random expressions for programs that compare compiled code with line-by-line execution.

`random_programs` writes the statements. Every value has a kind, which stands for a dtype and a
shape and is named by one letter: v is a vector, s a scalar, m a matrix, n a Python number.
`program_templates` lists the expressions of each kind.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from .program_templates import (
    CONDITIONS,
    FROM_VECTOR,
    GRADIENTS,
    KNOWN,
    OPS,
    SECOND,
)

__all__ = ["ExpressionWriter", "Scope"]

T = TypeVar("T")

HOLE = re.compile(r"\{(\w)\}")


class Scope:
    """What a block of a generated program may use, such as the visible names.

    Attributes:
        names: kind of value -> visible names of that kind.
        lists: name of a list of vectors -> its length.
        dicts: names of dicts with the keys "a" and "b".
        objects: names of objects that the program creates.
        numbers: names of Python numbers; compiled code may know their values only at run time.
        functions: names of inner functions.
        loop: the innermost enclosing loop, "for" or "while", or "" outside loops.
        staged: whether the block runs only under a condition on a tensor.
        returns: template of the function's result: an expression with placeholders such as ``{v}``.
        main: whether this is the body of the function under test.
    """

    def __init__(self, returns: str) -> None:
        self.names: dict[str, list[str]] = {}
        self.lists: dict[str, int] = {}
        self.dicts: list[str] = []
        self.objects: list[str] = []
        self.numbers: list[str] = []
        self.functions: list[str] = []
        self.loop = ""
        self.staged = False
        self.indent = 1
        self.returns = returns
        self.main = False

    def inner(self, **changes: Any) -> Scope:
        """Return a copy of the scope for an inner block, with the attributes `changes` replaced."""
        made = Scope(self.returns)
        made.__dict__.update(self.__dict__)
        made.names = {k: list(v) for k, v in self.names.items()}
        made.lists, made.dicts = dict(self.lists), list(self.dicts)
        made.objects = list(self.objects)
        made.numbers, made.functions = list(self.numbers), list(self.functions)
        made.indent += 1
        made.__dict__.update(changes)
        return made


class ExpressionWriter:
    """Writes random Python expressions, and collects the lines of a generated test program.

    Every decision is one call of `choose(n)`, which returns a number from 0 to n - 1. The order of
    the calls must depend only on earlier decisions, so that a failing program can be repeated and
    reduced.
    """

    def __init__(self, choose: Callable[[int], int]) -> None:
        self.choose = choose
        self.lines: list[str] = []
        self.count = 0
        self.helpers: list[str] = []
        # a program uses some of these features, so that the smallest failing one has few
        features = ("random", "effects", "raises", "kinds", "items", "gradients", "host", "python")
        self.on = {f for f in features if choose(2)}
        self.second = "gradients" in self.on and choose(3) == 2
        self.cell = choose(5) == 4
        self.budget = 2 + choose(13)
        self.branched = False
        self.gradients = 0

    def pick(self, options: Sequence[T]) -> T:
        return options[self.choose(len(options))]

    def maybe(self) -> bool:
        return bool(self.choose(2))

    def put(self, scope: Scope, text: str, deeper: int = 0) -> None:
        self.lines.append("    " * (scope.indent + deeper) + text)

    def fresh(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def expr(self, kind: str, scope: Scope, depth: int = 2) -> str:
        """Return a random Python expression of a kind, such as "v"; `depth` limits its nesting."""
        if kind == "n":
            return self.number(scope)
        if kind == "q":
            return str(self.pick(("0.25", "-0.75", "1.5", "2")))
        if kind == "j":
            return str(self.pick(("0", "1", "-1")))
        if kind == "p":
            return str(self.pick(("a", "b")))
        if kind == "c":
            return self.condition(scope, 0)
        if kind == "f":
            return (
                str(self.pick(self.helpers))
                if self.helpers
                else "(lambda a, b: ops.tanh(a) * b * net.w)"
            )
        known = scope.names.get(kind, [])
        choice = self.choose(10) if depth > 0 else 0
        if known and choice < 4:
            return str(self.pick(known))
        if depth <= 0 or (kind != "v" and (choice < 7 or "kinds" not in self.on)):
            if kind == "v":
                return str(self.pick(scope.names["v"]))
            return self.fill(self.pick(FROM_VECTOR[kind]), scope, depth - 1)
        if kind == "v":
            special = self.special(scope, depth)
            if special:
                return special
        options = OPS[kind]
        if "kinds" not in self.on:
            options = tuple(o for o in options if not re.search(r"\{[muzhi]\}", o))
        return self.fill(self.pick(options), scope, depth - 1)

    def special(self, scope: Scope, depth: int) -> str:
        """Return a vector expression that uses a less common Python feature, or "" at random."""
        choice = self.choose(9)
        if choice == 0 and (self.helpers or scope.functions):
            f = self.pick([*self.helpers, *scope.functions])
            if self.choose(4) == 0:
                f = self.fill(
                    f"({f} if {{c}} else {self.pick([*self.helpers, *scope.functions])})", scope, 0
                )
            return self.fill(f + "({v}, {v})", scope, depth - 1)
        if choice == 1 and "gradients" in self.on and self.gradients < 3:
            self.gradients += 1
            options = SECOND if self.second and self.maybe() else GRADIENTS
            return self.fill(self.pick(options), scope, depth - 2)
        if choice == 2 and scope.lists:
            name = self.pick(list(scope.lists))
            return f"{name}[{self.choose(scope.lists[name])}]" if scope.lists[name] else ""
        if choice == 3 and scope.dicts:
            return f"{self.pick(scope.dicts)}[{self.pick(('a', 'b'))!r}]"
        if choice == 4 and scope.objects:
            name = self.pick(scope.objects)
            texts = (f"{name}.value", f"({name}.value * {name}.count)", f"{name}.add({{v}})")
            return self.fill(self.pick(texts), scope, 0)
        return ""

    def fill(self, template: str, scope: Scope, depth: int = 1) -> str:
        """Return a template with placeholders such as ``{v}`` replaced by random expressions."""
        text = HOLE.sub(lambda m: self.expr(m[1], scope, depth), template)
        return text.replace("{{", "{").replace("}}", "}")

    def number(self, scope: Scope) -> str:
        options = [
            "2",
            "0.5",
            "net.n",
            "len(net.log)",
            "box.count",
            "net.table['k']",
            *scope.numbers,
            *scope.numbers,
        ]
        return str(self.pick(options))

    def condition(self, scope: Scope, depth: int = 1) -> str:
        if self.choose(4) == 0:
            options = [
                *KNOWN,
                *(f"{n} % 2 == 0" for n in scope.numbers),
                *(f"{n} < 2" for n in scope.numbers),
            ]
            return self.fill(self.pick(options), scope, 0)
        return self.fill(self.pick(CONDITIONS), scope, depth)
