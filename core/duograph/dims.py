"""Symbolic dimensions: sizes of tensors that are known only when a compiled function is called.

The front end evaluates a function once with `Dim` objects in the shapes of its arguments. A Dim is
an integer expression of symbols with a *hint*, its value in the call that is being compiled.
Arithmetic stays symbolic. A question about its value (a comparison, `bool`, use as an index) is
answered for the hint and recorded in the `Scope` as a guard: the finished program may serve exactly
those sizes for which all guards have the same answer. A Dim behaves as an int, also for
`isinstance`; C code, which sees no int, asks for `__index__` and thereby pins it to its hint.

Symbols are at least 2: sizes 0 and 1, which decide whether an operand broadcasts or is empty, never
become symbolic. The module knows nothing of tensors or graphs.
"""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

if TYPE_CHECKING:
    from .scopes import Scope

__all__ = [
    "LEAST", "MOST", "RELATIONS", "Atom", "Dim", "Real", "bounds", "concrete", "hint_of",
    "is_symbolic", "linear", "pin", "symbols_in", "text_of",
]  # fmt: skip

# Products of atoms by their coefficients. An atom is a symbol, or an expression that is no
# polynomial, such as a floor division. The empty product is the constant term.
Monomial: TypeAlias = tuple["Atom", ...]
Terms: TypeAlias = dict[Monomial, int]
Size: TypeAlias = "int | Dim"
Values: TypeAlias = Mapping["Atom", Any]

RELATIONS = {"==": operator.eq, "<": operator.lt, "<=": operator.le}
LEAST = 2
MOST = 2**31 - 1


class Atom:
    """A symbol, or a floor division of expressions, as a factor in the terms of a `Dim`.

    Attributes:
        name: for messages; symbols are s0, s1, ...
        order: position among the atoms of the scope.
        hint: value in the call that is compiled.
        low, high: bounds, which hold for all calls that the program serves.
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

    def value(self, values: Values) -> int:
        """Return the atom's value for given values of the symbols."""
        if self.parts is None:
            return values[self]
        above, below = self.parts
        return concrete(above, values) // concrete(below, values)

    def __str__(self) -> str:
        """The symbol with its bounds."""
        if self.high == MOST:
            return f"{self.name} >= {self.low}"
        return f"{self.low} <= {self.name} <= {self.high}"


def _unsupported(name: str) -> Callable[..., Any]:
    """Return a method that pins the receiver to its hint, and applies Python's own method to it."""

    def method(self: Dim | Real, *args: object) -> Any:
        return getattr(self.scope.pin(self), name)(*map(pin, args))

    return method


class Dim:
    """An integer expression of symbols: a polynomial, whose factors may be floor divisions.

    Attributes:
        scope: the program's symbols.
        terms: coefficients by product.
        hint: the value in the call that is compiled.
    """

    __slots__ = ("scope", "terms", "hint", "low", "high")

    def __init__(self, scope: Scope, terms: Terms) -> None:
        self.scope, self.terms = scope, terms
        self.hint = _value(terms, lambda atom: atom.hint)
        self.low, self.high = _bounds(terms)

    @property  # type: ignore[misc]
    def __class__(self) -> type[int]:  # type: ignore[override]
        return int

    # ---- arithmetic -----------------------------------------------------------------------------

    def __add__(self, other: object) -> Any:
        terms = _terms(other)
        if terms is None:
            return _as_real("add", self, other)
        return self.scope.of(_sum(self.terms, terms, 1))

    __radd__ = __add__

    def __sub__(self, other: object) -> Any:
        terms = _terms(other)
        if terms is None:
            return _as_real("sub", self, other)
        return self.scope.of(_sum(self.terms, terms, -1))

    def __rsub__(self, other: object) -> Any:
        terms = _terms(other)
        if terms is None:
            return _as_real("sub", other, self)
        return self.scope.of(_sum(terms, self.terms, -1))

    def __mul__(self, other: object) -> Any:
        terms = _terms(other)
        if terms is None:
            if type(other) in (str, bytes, list, tuple):
                return self.scope.pin(self) * other
            return _as_real("mul", self, other)
        made: Terms = {}
        for m, c in self.terms.items():
            for n, d in terms.items():
                key = tuple(sorted((*m, *n), key=_order))
                made[key] = made.get(key, 0) + c * d
        return self.scope.of(made)

    __rmul__ = __mul__

    def __floordiv__(self, other: Size) -> Size:
        if _terms(other) is None:
            return NotImplemented if type(other) is not float else self.scope.pin(self) // other
        return floor_divided(self.scope, self, other)

    def __rfloordiv__(self, other: Size) -> Size:
        if _terms(other) is None:
            return NotImplemented if type(other) is not float else other // self.scope.pin(self)
        return floor_divided(self.scope, other, self)

    def __mod__(self, other: Size) -> Size:
        if _terms(other) is None:
            return NotImplemented if type(other) is not float else self.scope.pin(self) % other
        return self - floor_divided(self.scope, self, other) * other

    def __rmod__(self, other: Size) -> Size:
        if _terms(other) is None:
            return NotImplemented
        return other - floor_divided(self.scope, other, self) * self

    def __divmod__(self, other: Size) -> tuple[Size, Size]:
        return self // other, self % other

    def __rdivmod__(self, other: Size) -> tuple[Size, Size]:
        return other // self, other % self

    def __truediv__(self, other: object) -> Any:
        return _as_real("truediv", self, other)

    def __rtruediv__(self, other: object) -> Any:
        return _as_real("truediv", other, self)

    def __pow__(self, other: float, modulo: int | None = None) -> Any:
        if modulo is None and type(other) is int and 0 <= other <= 8:
            found: Size = 1
            for _ in range(other):
                found = found * self
            return found
        if modulo is None and type(other) in (int, float) and self.low > 0:
            return _as_real("pow", self, float(other))
        return pow(self.scope.pin(self), pin(other), modulo)

    def __rpow__(self, other: float, modulo: None = None) -> Any:
        return pow(other, self.scope.pin(self), modulo)

    def __neg__(self) -> Size:
        return self * -1

    def __pos__(self) -> Dim:
        return self

    def __abs__(self) -> Size:
        return self if self >= 0 else -self

    # ---- questions ------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        terms = _terms(other)
        if terms is None:
            return _compared(self, "==", other)
        low, high = _bounds(_sum(self.terms, terms, -1))
        if low > 0 or high < 0:
            return False
        if low == high == 0:
            return True
        return self.scope.ask(self, "==", other)

    def __ne__(self, other: object) -> bool:
        found = self.__eq__(other)
        return found if found is NotImplemented else not found

    def __lt__(self, other: object) -> bool:
        return self._below(other, "<")

    def __le__(self, other: object) -> bool:
        return self._below(other, "<=")

    def __gt__(self, other: object) -> bool:
        found = self._below(other, "<=")
        return found if found is NotImplemented else not found

    def __ge__(self, other: object) -> bool:
        found = self._below(other, "<")
        return found if found is NotImplemented else not found

    def _below(self, other: object, relation: str) -> bool:
        terms = _terms(other)
        if terms is None:
            return _compared(self, relation, other)
        low, high = _bounds(_sum(self.terms, terms, -1))
        if high < 0 or (high == 0 and relation == "<="):
            return True
        if low > 0 or (low == 0 and relation == "<"):
            return False
        return self.scope.ask(self, relation, other)

    def __bool__(self) -> bool:
        return not self.__eq__(0)

    def __hash__(self) -> int:
        return id(self) >> 4

    def __index__(self) -> int:
        found = self.scope.pin(self)
        assert type(found) is int
        return found

    __int__ = __trunc__ = __index__

    def __float__(self) -> float:
        return float(self.__index__())

    def __complex__(self) -> complex:
        return complex(self.__index__())

    def __repr__(self) -> str:
        return repr(self.__index__())

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(self.__index__(), spec)

    __and__, __or__, __xor__ = map(_unsupported, ("__and__", "__or__", "__xor__"))
    __rand__, __ror__, __rxor__ = map(_unsupported, ("__rand__", "__ror__", "__rxor__"))
    __lshift__, __rshift__ = map(_unsupported, ("__lshift__", "__rshift__"))
    __rlshift__, __rrshift__ = map(_unsupported, ("__rlshift__", "__rrshift__"))
    __invert__, __round__ = map(_unsupported, ("__invert__", "__round__"))
    __ceil__, __floor__ = map(_unsupported, ("__ceil__", "__floor__"))
    bit_length, to_bytes = map(_unsupported, ("bit_length", "to_bytes"))
    bit_count, as_integer_ratio = map(_unsupported, ("bit_count", "as_integer_ratio"))
    is_integer, conjugate = map(_unsupported, ("is_integer", "conjugate"))

    real = numerator = property(lambda self: self)
    imag = property(lambda self: 0)
    denominator = property(lambda self: 1)

    def __copy__(self) -> Dim:
        return self

    def __deepcopy__(self, memo: object) -> Dim:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a symbolic dimension cannot be pickled")


class Real:
    """A float that a program computes from sizes, such as ``1 / n``; it behaves as a float.

    Attributes:
        function, parts: name of the operation of `_ARITHMETIC`, and its operands.
        hint: the value in the call that is compiled.
    """

    __slots__ = ("scope", "function", "parts", "hint")

    def __init__(self, scope: Scope, function: str, parts: tuple[object, ...]) -> None:
        self.scope, self.function, self.parts = scope, function, parts
        self.hint: Any = _ARITHMETIC[function](*map(hint_of, parts))

    @property  # type: ignore[misc]
    def __class__(self) -> type[float]:  # type: ignore[override]
        return float

    def __float__(self) -> float:
        return float(self.scope.pin(self))

    def __int__(self) -> int:
        return int(self.scope.pin(self))

    __trunc__ = __int__

    def __bool__(self) -> bool:
        return not self.__eq__(0)

    def __hash__(self) -> int:
        return id(self) >> 4

    def __repr__(self) -> str:
        return repr(self.scope.pin(self))

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(self.scope.pin(self), spec)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if self.function == "float" and type(other) in (int, float) and other == int(other):  # type: ignore[call-overload]
            return self.parts[0] == int(other)  # type: ignore[call-overload]
        return _compared(self, "==", other)

    def __ne__(self, other: object) -> bool:
        found = self.__eq__(other)
        return found if found is NotImplemented else not found

    def __lt__(self, other: object) -> bool:
        return _compared(self, "<", other)

    def __le__(self, other: object) -> bool:
        return _compared(self, "<=", other)

    def __gt__(self, other: object) -> bool:
        return _compared(self, "<", other, True)

    def __ge__(self, other: object) -> bool:
        return _compared(self, "<=", other, True)

    def __copy__(self) -> Real:
        return self

    def __deepcopy__(self, memo: object) -> Real:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a symbolic number cannot be pickled")

    def __neg__(self) -> Real:
        return Real(self.scope, "neg", (self,))

    def __abs__(self) -> Real:
        return Real(self.scope, "abs", (self,))

    def __pos__(self) -> Real:
        return self

    __round__, __ceil__, __floor__ = map(_unsupported, ("__round__", "__ceil__", "__floor__"))
    is_integer, hex, conjugate = map(_unsupported, ("is_integer", "hex", "conjugate"))
    as_integer_ratio = _unsupported("as_integer_ratio")


_ARITHMETIC: dict[str, Callable[..., Any]] = {
    name: getattr(operator, name)
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "neg", "abs")
}
_ARITHMETIC["float"] = float


def _real_method(name: str, reflected: bool) -> Callable[[Real, object], Any]:
    def method(self: Real, other: object) -> Any:
        return _as_real(name, other, self) if reflected else _as_real(name, self, other)

    return method


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    setattr(Real, f"__{_name}__", _real_method(_name, False))
    setattr(Real, f"__r{_name}__", _real_method(_name, True))


def _as_real(function: str, x: Any, y: Any) -> Any:
    """Return the result of an operation of floats, of which one operand is symbolic.

    With a number of another class, such as a complex one, the symbolic operand is pinned.
    """
    for each in (x, y):
        if type(each) not in (int, float, bool, Dim, Real):
            if isinstance(each, numbers.Number):
                return _ARITHMETIC[function](pin(x), pin(y))
            return NotImplemented
    if function in ("truediv", "floordiv", "mod") and y == 0:
        raise ZeroDivisionError("division by zero")
    return Real((x if is_symbolic(x) else y).scope, function, (x, y))


def _compared(x: Dim | Real, relation: str, y: object, swapped: bool = False) -> bool:
    """Compare a symbolic number with another number, which need not be an int."""
    if type(y) not in (int, float, bool, Dim, Real):
        if not isinstance(y, numbers.Number):
            return NotImplemented
        return RELATIONS[relation](*((y, pin(x)) if swapped else (pin(x), y)))
    return x.scope.ask(y, relation, x) if swapped else x.scope.ask(x, relation, y)


def _order(atom: Atom) -> int:
    return atom.order


def _terms(value: object) -> Terms | None:
    """Return the terms of an int or Dim; None for any other object."""
    kind = type(value)
    if kind is Dim:
        return value.terms  # type: ignore[attr-defined]
    if kind is int or kind is bool or (kind.__module__ == "numpy" and hasattr(kind, "__index__")):
        number = operator.index(value)  # type: ignore[arg-type]
        return {(): number} if number else {}
    return None


def _sum(x: Terms, y: Terms, sign: int) -> Terms:
    made = dict(x)
    for m, c in y.items():
        made[m] = made.get(m, 0) + sign * c
    return {m: c for m, c in made.items() if c}


def _value(terms: Terms, of: Callable[[Atom], int]) -> int:
    return sum([c * math.prod([of(a) for a in m]) for m, c in terms.items()])


def _bounds(terms: Terms) -> tuple[float, float]:
    """Return bounds of a polynomial, term by term."""
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


def linear(size: Dim) -> tuple[Atom, int, int]:
    """Return (symbol, factor, rest) of ``factor * symbol + rest``, made by `Scope.symbol`."""
    ((symbol, factor),) = [(m[0], c) for m, c in size.terms.items() if m]
    return symbol, factor, size.terms.get((), 0)


def bounds(value: Size) -> tuple[float, float]:
    """Return the lower and upper bound of an int or a Dim."""
    if type(value) is Dim:
        return value.low, value.high
    assert isinstance(value, int)
    return value, value


def hint_of(value: Any) -> Any:
    """Return a number's value in the call that is compiled."""
    return value.hint if type(value) in (Dim, Real) else value


def is_symbolic(value: object) -> bool:
    """Return whether a number is a symbolic one."""
    return type(value) is Dim or type(value) is Real


def pin(value: Any) -> Any:
    """Return the value of a number; a symbolic one is pinned to its hint by a guard."""
    return value.scope.pin(value) if type(value) in (Dim, Real) else value


def floor_divided(scope: Scope, above: Size, below: Size) -> Size:
    """Return `above // below`, as a polynomial if the division allows it.

    Raises:
        ZeroDivisionError: `below` is 0.
    """
    if below == 0:
        raise ZeroDivisionError("integer division or modulo by zero")
    terms, by = _terms(above), _terms(below)
    assert terms is not None and by is not None
    if terms == by:
        return 1
    if len(by) != 1:
        return scope.quotient(above, below)
    ((factors, k),) = by.items()
    whole: Terms = {}
    rest: Terms = {}
    for m, c in terms.items():
        left = _without(m, factors)
        q, r = (0, c) if left is None else divmod(c, k)
        if q and left is not None:
            whole[left] = q
        if r:
            rest[m] = r
    low, high = _bounds(rest)
    if 0 <= low and high < bounds(below)[0]:  # the remainder alone
        return scope.of(whole)
    return scope.of(whole) + scope.quotient(scope.of(rest), below)


def _without(m: Monomial, factors: Monomial) -> Monomial | None:
    """Return a product divided by some of its factors; None if it lacks one of them."""
    left = list(m)
    for atom in factors:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)


def concrete(value: object, values: Values) -> Any:
    """Return a number for given values of the symbols; numbers that are not symbolic stay.

    The values may be sizes of another scope, of which the result is then made.
    """
    if type(value) is Dim:
        return _value(value.terms, lambda atom: atom.value(values))
    if type(value) is Real:
        parts = [concrete(p, values) for p in value.parts]
        if value.function == "float" and type(parts[0]) is Dim:
            return Real(parts[0].scope, "float", tuple(parts))
        return _ARITHMETIC[value.function](*parts)
    return value


def text_of(value: object) -> str:
    """Return the text of a number, such as ``8*s0 + 1``, without pinning it."""
    if type(value) is Real:
        return f"{value.function}({', '.join(map(text_of, value.parts))})"
    if type(value) is not Dim:
        return repr(value)
    parts = []
    for m, c in value.terms.items():
        factors = [a.name for a in m]
        parts.append("*".join([str(c), *factors] if c != 1 or not m else factors))
    return " + ".join(parts).replace("+ -", "- ")


def scope_of(values: Iterable[Any]) -> Scope | None:
    """Return the scope of the first symbolic number among some numbers, or None."""
    return next((v.scope for v in values if is_symbolic(v)), None)


def symbols_in(values: Iterable[object]) -> bool:
    """Return whether one of some numbers is symbolic."""
    return any([type(v) is Dim or type(v) is Real for v in values])
