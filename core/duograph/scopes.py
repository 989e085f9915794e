"""The symbols and guards of one compiled program with symbolic sizes, which serves many sizes.

`compiler.symbolic` makes a `Scope` for each evaluation of a function with symbolic sizes. A size
(`dims.Dim`) reports every comparison of its value to its scope. The scope answers for the sizes of
the call that is being compiled and records the answer as a guard: the program may serve only calls
for which all answers are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .dims import (
    RELATIONS,
    Dim,
    Real,
    Size,
    Values,
    bounds,
    hint_of,
    is_symbolic,
    text_of,
)
from .errors import DuographError
from .polynomials import LEAST, MOST, Atom, Monomial, Terms
from .size_code import checker

__all__ = ["Guard", "Scope", "SizeNeeded"]

_OPPOSITE = {"==": "!=", "<": ">=", "<=": ">"}


class SizeNeeded(DuographError):
    """Raised by lowering for many sizes if something needs the number for which a size stands."""


class Guard:
    """A question about sizes that the evaluation asked, with its answer, such as ``s0 > 4``.

    Attributes:
        left, relation, right: the question; `relation` is a key of `dims.RELATIONS`.
        answer: the answer for the sizes with which the function was evaluated.
        where: source location of the question, or "".
    """

    __slots__ = ("left", "relation", "right", "answer", "where")

    def __init__(
        self, left: object, relation: str, right: object, answer: bool, where: str
    ) -> None:
        self.left, self.relation, self.right = left, relation, right
        self.answer, self.where = answer, where

    def __str__(self) -> str:
        relation = self.relation if self.answer else _OPPOSITE[self.relation]
        text = f"{text_of(self.left)} {relation} {text_of(self.right)}"
        return f"{text} ({self.where})" if self.where else text


class Scope:
    """The symbols of one symbolic program, the guards on them, and all `Dim`s made of them.

    Attributes:
        symbols: list of the symbols, in the order in which they were made.
        guards: dictionary from questions to guards; `holds` checks all of them.
        pinned: list of the guards that fix a symbol to one value, in the order of their recording.
        locate: function that returns the source location of what is being evaluated, or "".
        closed: whether the program is finished; a new question then raises RuntimeError.
        write: function that returns the text of a symbolic number in generated source, while a
            code generator prints; None otherwise, when to print a number pins it.
        refuses: whether an attempt to pin a symbol raises SizeNeeded.
    """

    def __init__(self) -> None:
        self.symbols: list[Atom] = []
        self.guards: dict[tuple[object, ...], Guard] = {}
        self.pinned: list[Guard] = []
        self.locate: Callable[[], str] = str
        self.closed = False
        self.refuses = False
        self.write: Callable[[Dim | Real], str] | None = None
        self._check: tuple[int, Callable[..., bool]] | None = None
        self._dims: dict[frozenset[tuple[Monomial, int]], Dim] = {}
        self._quotients: dict[tuple[object, object], Atom] = {}

    def symbol(
        self,
        hint: int,
        low: int = LEAST,
        high: int | None = None,
        divisor: int = 1,
        remainder: int = 0,
    ) -> Dim:
        """Return a new size ``divisor * symbol + remainder`` between `low` and `high`.

        `hint` is the size in the call that is being compiled. Both bounds are included; None is no
        upper bound. Sizes below 2 are excluded even if `low` allows them.
        """
        low, high = max(low, LEAST) - remainder, (MOST if high is None else high) - remainder
        order = len(self.symbols)
        value = (hint - remainder) // divisor
        made = Atom(f"s{order}", order, value, -(-low // divisor), high // divisor)
        self.symbols.append(made)
        found = self.of({(made,): divisor, (): remainder})
        assert isinstance(found, Dim)
        return found

    def of(self, terms: Terms) -> Size:
        """Return the interned expression with these terms (coefficients by product of symbols).

        The result is an int if the expression is constant.
        """
        terms = {m: c for m, c in terms.items() if c}
        if not terms:
            return 0
        if len(terms) == 1 and () in terms:
            return terms[()]
        key = frozenset(terms.items())
        found = self._dims.get(key)
        if found is None:
            found = self._dims[key] = Dim(self, terms)
        return found

    def quotient(self, above: Size, below: Size) -> Size:
        """Return ``above // below`` as an expression that holds the floor division as an `Atom`.

        Equal arguments give the same `Atom`.
        """
        key = (_identity(above), _identity(below))
        found = self._quotients.get(key)
        if found is None:
            (a, b), (c, d) = bounds(above), bounds(below)
            low, high = -math.inf, math.inf
            if a >= 0 and c > 0:
                low, high = (0 if d == math.inf else a // d), b if b == math.inf else b // c
            name = f"({text_of(above)} // {text_of(below)})"
            order = 10**6 + len(self._quotients)
            hint = hint_of(above) // hint_of(below)
            parts = (above, below)
            found = self._quotients[key] = Atom(name, order, hint, low, high, parts)
        return self.of({(found,): 1})

    def ask(self, left: object, relation: str, right: object) -> bool:
        """Return whether ``left relation right`` holds for the hints, and record it as a guard.

        The hints are the sizes in the call that is being compiled.

        Raises:
            RuntimeError: the question is new and the program is finished.
        """
        key = (_identity(left), relation, _identity(right))
        found = self.guards.get(key)
        if found is None:
            if self.closed:
                raise RuntimeError(
                    f"compiler: {text_of(left)} {relation} {text_of(right)} was asked after the "
                    "program was finished; please report this with the function"
                )
            answer = bool(RELATIONS[relation](hint_of(left), hint_of(right)))
            found = self.guards[key] = Guard(left, relation, right, answer, self.locate())
            if answer and relation == "==" and _has_one_value(left) and not is_symbolic(right):
                self.pinned.append(found)
        return found.answer

    def of_copy(self, values: Values) -> dict[Atom, Dim]:
        """Copy the symbols to a new scope; return a dict from each symbol to its copy.

        The copies have the bounds of the originals, and the hints (sizes of the call that is being
        compiled) in `values`.
        """
        scope = Scope()
        made: dict[Atom, Dim] = {}
        for s in self.symbols:
            copy = Atom(s.name, s.order, values[s], s.low, s.high)
            scope.symbols.append(copy)
            found = scope.of({(copy,): 1})
            assert isinstance(found, Dim)
            made[s] = found
        return made

    def pin(self, value: Dim | Real) -> Any:
        """Return the hint of an expression, and record as a guard that it must have this value.

        The hint is the expression's value in the call that is being compiled.

        Raises:
            SizeNeeded: the guard fixes a symbol, and the scope `refuses` that.
        """
        self.ask(value, "==", value.hint)
        if self.refuses and self.pinned:
            raise SizeNeeded(f"the number {text_of(value)} is needed")
        return value.hint

    def holds(self, values: Values) -> bool:
        """Return whether the program may serve a call with these values of the symbols.

        The values must be within the symbols' bounds, and every guard must hold.
        """
        if self._check is None or self._check[0] != len(self.guards):
            questions = [(g.left, g.relation, g.right, g.answer) for g in self.guards.values()]
            self._check = len(questions), checker(self.symbols, questions)
        return self._check[1](*[values[symbol] for symbol in self.symbols])

    def text(self, value: Dim | Real) -> str:
        """Return the text of a symbolic number: its hint, which is pinned, or a name for it.

        A code generator sets `write` to get names, so that the generated source serves all sizes.
        """
        return repr(self.pin(value)) if self.write is None else self.write(value)


def _has_one_value(value: object) -> bool:
    """Return whether a symbolic number contains no floor division.

    Only then does a known value of the number leave few possible values of its symbols. A floor
    division has the same value for many values of its symbols.
    """
    if type(value) is Real:
        return all(map(_has_one_value, value.parts))
    return type(value) is not Dim or all([a.parts is None for m in value.terms for a in m])


def _identity(value: object) -> object:
    """Return a key that compares symbolic numbers by identity, because `==` would add a guard."""
    return (id(value),) if is_symbolic(value) else value
