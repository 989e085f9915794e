"""Polynomials with integer coefficients: the values of symbolic sizes of axes (`dims.Dim`)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from .dims import Size

__all__ = [
    "LEAST", "MOST", "Atom", "Monomial", "Terms", "bounds_of", "order_of", "sum_of", "value_of",
    "without",
]  # fmt: skip

LEAST = 2
MOST = 2**31 - 1
# Products of atoms by their coefficients. An atom is a symbol, or an expression that is no
# polynomial, such as a floor division. The empty product is the constant term.
Monomial: TypeAlias = tuple["Atom", ...]
Terms: TypeAlias = dict[Monomial, int]


class Atom:
    """A symbol, or a floor division of expressions, as a factor in the terms of a `Dim`.

    Attributes:
        name: for messages; symbols are s0, s1, ...
        order: number of the atom in the compilation that created it, for sorting.
        hint: value in the call for which the function is being compiled.
        low, high: inclusive bounds of the value in all calls that the compiled program accepts.
        parts: (numerator, denominator) of a floor division; None for a symbol.
    """

    __slots__ = ("name", "order", "hint", "low", "high", "parts")

    def __init__(
        self,
        name: str,
        order: int,
        hint: int,
        low: float,
        high: float,
        parts: tuple[Size, Size] | None = None,
    ) -> None:
        self.name, self.order, self.hint = name, order, hint
        self.low, self.high, self.parts = low, high, parts

    def __str__(self) -> str:
        """The symbol with its bounds."""
        if self.high == MOST:
            return f"{self.name} >= {self.low}"
        return f"{self.low} <= {self.name} <= {self.high}"


def order_of(atom: Atom) -> int:
    """Return the key by which the atoms of a product are sorted."""
    return atom.order


def sum_of(x: Terms, y: Terms, sign: int) -> Terms:
    """Return ``x + sign * y``."""
    made = dict(x)
    for m, c in y.items():
        made[m] = made.get(m, 0) + sign * c
    return {m: c for m, c in made.items() if c}


def value_of(terms: Terms, of: Callable[[Atom], int]) -> int:
    """Return the value of a polynomial for given values of its atoms."""
    return sum([c * math.prod([of(a) for a in m]) for m, c in terms.items()])


def bounds_of(terms: Terms) -> tuple[float, float]:
    """Return (low, high), inclusive bounds of a polynomial's value: the sums of its terms' bounds.

    They follow from the bounds of the atoms and need not be tight. If an atom may be negative, the
    result is (-inf, inf).
    """
    low: float = 0
    high: float = 0
    for m, c in terms.items():
        a: float = 1
        b: float = 1
        for atom in m:
            if atom.low < 0:
                return -math.inf, math.inf
            a, b = a * atom.low, b * atom.high if b and atom.high else 0
        low, high = (low + c * a, high + c * b) if c > 0 else (low + c * b, high + c * a)
    return low, high


def without(m: Monomial, factors: Monomial) -> Monomial | None:
    """Return the product `m` without the atoms in `factors`; None if `m` lacks one of them."""
    left = list(m)
    for atom in factors:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)
