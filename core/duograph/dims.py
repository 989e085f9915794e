"""Symbolic dimensions: sizes of tensors that are known only when a compiled function is called.

The front end evaluates a function once with `Dim` objects in the shapes of its arguments. A Dim is
an integer expression of symbols with a *hint*, its value in the call that is being compiled.
Arithmetic stays symbolic. A question about its value (a comparison, `bool`, use as an index) is
answered for the hint and recorded in the `Scope` as a guard: the finished program may serve exactly
those sizes for which all guards have the same answer. A Dim behaves as an int, also for
`isinstance`; C code, which cannot use a Dim, calls `__index__` and thereby pins the Dim: a guard
then requires the value of the hint.

Symbols are at least 2: sizes 0 and 1, which decide whether an operand broadcasts or is empty, never
become symbolic. The module knows nothing of tensors or graphs.
"""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np

from .polynomials import Atom, Terms, bounds_of, order_of, sum_of, value_of, without

if TYPE_CHECKING:
    from .scopes import Scope

__all__ = [
    "RELATIONS", "Dim", "Real", "as_float", "as_integer", "attribute", "bounds", "concrete",
    "hint_of", "is_symbolic", "linear", "pin", "symbols_in", "text_of",
]  # fmt: skip

Size: TypeAlias = "int | Dim"
Values: TypeAlias = Mapping["Atom", Any]

RELATIONS = {"==": operator.eq, "<": operator.lt, "<=": operator.le}


def _of_hint(function: Callable[..., Any], reflected: bool = False) -> Any:
    """Return a method that pins symbolic numbers and applies `function` to their hints.

    The hint of a symbolic number is its value in the call that is being traced. To pin a number is
    to add a guard: the program then serves only calls in which the number has that value. The
    function receives `self`, then the method's other arguments; with `reflected`, `self` comes
    last.
    """

    def method(self: Any, *args: Any) -> Any:
        values = (*map(pin, args), pin(self)) if reflected else (pin(self), *map(pin, args))
        return function(*values)

    return method


def _ufunc(self: Any, function: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """Apply a NumPy ufunc's method to its inputs, with each symbolic number pinned to its hint."""
    return getattr(function, method)(*map(pin, inputs), **kwargs)


class Dim:
    """An integer expression of symbols: a polynomial, whose factors may be floor divisions.

    Attributes:
        scope: the `Scope` with the symbols and guards of the program.
        terms: dictionary from products of atoms (symbols and floor divisions) to coefficients.
        hint: the value in the call that is compiled.
    """

    __slots__ = ("scope", "terms", "hint", "low", "high")

    def __init__(self, scope: Scope, terms: Terms) -> None:
        self.scope, self.terms = scope, terms
        self.hint = value_of(terms, lambda atom: atom.hint)
        self.low, self.high = bounds_of(terms)

    @property  # type: ignore[misc]
    def __class__(self) -> type[int]:  # type: ignore[override]
        return int

    # ---- arithmetic -----------------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        terms = _terms(other)
        if terms is None:
            return _as_real("add", self, other)
        return self.scope.of(sum_of(self.terms, terms, 1))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        terms = _terms(other)
        if terms is None:
            return _as_real("sub", self, other)
        return self.scope.of(sum_of(self.terms, terms, -1))

    def __rsub__(self, other: Any) -> Any:
        terms = _terms(other)
        if terms is None:
            return _as_real("sub", other, self)
        return self.scope.of(sum_of(terms, self.terms, -1))

    def __mul__(self, other: Any) -> Any:
        terms = _terms(other)
        if terms is None:
            if type(other) in (str, bytes, list, tuple):
                return self.scope.pin(self) * other
            return _as_real("mul", self, other)
        made: Terms = {}
        for m, c in self.terms.items():
            for n, d in terms.items():
                key = tuple(sorted((*m, *n), key=order_of))
                made[key] = made.get(key, 0) + c * d
        return self.scope.of(made)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        if _terms(other) is None:
            return _as_real("floordiv", self, other)
        return floor_divided(self.scope, self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        if _terms(other) is None:
            return _as_real("floordiv", other, self)
        return floor_divided(self.scope, other, self)

    def __mod__(self, other: Any) -> Any:
        if _terms(other) is None:
            return _as_real("mod", self, other)
        _check_divisor("mod", self, other)
        return self - floor_divided(self.scope, self, other) * other

    def __rmod__(self, other: Any) -> Any:
        if _terms(other) is None:
            return _as_real("mod", other, self)
        _check_divisor("mod", other, self)
        return other - floor_divided(self.scope, other, self) * self

    def __divmod__(self, other: Any) -> Any:
        return _both(self // other, self % other)

    def __rdivmod__(self, other: Any) -> Any:
        return _both(other // self, other % self)

    def __truediv__(self, other: Any) -> Any:
        return _as_real("truediv", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _as_real("truediv", other, self)

    def __pow__(self, other: Any, modulo: Any = None) -> Any:
        if modulo is None and type(other) is int and 0 <= other <= 8:
            found: Any = 1
            for _ in range(other):
                found = found * self
            return found
        if modulo is None and type(other) is int and other < 0:
            return _as_real("pow", self, float(other))
        if modulo is None and type(other) in (float, Real):
            return _as_real("pow", self, other)
        return pow(self.scope.pin(self), pin(other), modulo)

    def __rpow__(self, other: Any, modulo: Any = None) -> Any:
        return pow(other, self.scope.pin(self), modulo)

    def __neg__(self) -> Any:
        return self * -1

    def __pos__(self) -> Dim:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    # ---- questions ------------------------------------------------------------------------------

    def __eq__(self, other: object) -> Any:
        if self is other:
            return True
        terms = _terms(other)
        if terms is None:
            return _compared(self, "==", other)
        low, high = bounds_of(sum_of(self.terms, terms, -1))
        if low > 0 or high < 0:
            return False
        if low == high == 0:
            return True
        return self.scope.ask(self, "==", other)

    def __ne__(self, other: object) -> Any:
        return _compared(self, "!=", other) if _terms(other) is None else not self.__eq__(other)

    def __lt__(self, other: Any) -> Any:
        return _compared(self, "<", other) if _terms(other) is None else self._below(other, "<")

    def __le__(self, other: Any) -> Any:
        return _compared(self, "<=", other) if _terms(other) is None else self._below(other, "<=")

    def __gt__(self, other: Any) -> Any:
        if _terms(other) is None:
            return _compared(self, ">", other)
        return not self._below(other, "<=")

    def __ge__(self, other: Any) -> Any:
        if _terms(other) is None:
            return _compared(self, ">=", other)
        return not self._below(other, "<")

    def _below(self, other: Size, relation: str) -> bool:
        """Return whether the expression is less than `other`, or with relation "<=", not greater.

        If the bounds of the symbols do not decide, the hints do, and a guard is recorded.
        """
        low, high = bounds_of(sum_of(self.terms, _terms(other) or {}, -1))
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

    def __repr__(self) -> str:
        return self.scope.text(self)

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(self.__index__(), spec) if spec else self.scope.text(self)

    __and__, __or__, __xor__ = map(_of_hint, (operator.and_, operator.or_, operator.xor))
    __rand__, __ror__ = _of_hint(operator.and_, True), _of_hint(operator.or_, True)
    __lshift__, __rshift__ = _of_hint(operator.lshift), _of_hint(operator.rshift)
    __rlshift__, __rrshift__ = _of_hint(operator.lshift, True), _of_hint(operator.rshift, True)
    __rxor__, __invert__ = _of_hint(operator.xor, True), _of_hint(operator.invert)
    __round__, __ceil__, __floor__ = _of_hint(round), _of_hint(math.ceil), _of_hint(math.floor)

    __array_ufunc__ = _ufunc

    def __getattr__(self, name: str) -> Any:
        return attribute(self, name)

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
        function, parts: name of the operation (a key of `_ARITHMETIC`), and its operands.
        hint: the value in the call that is compiled.
    """

    __slots__ = ("scope", "function", "parts", "hint")

    def __init__(self, scope: Scope, function: str, parts: tuple[Any, ...]) -> None:
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
        return self.scope.text(self)

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(self.scope.pin(self), spec) if spec else self.scope.text(self)

    def __eq__(self, other: object) -> Any:
        if self is other:
            return True
        if self.function == "float" and type(other) in (int, float) and abs(other) < 2**53:  # type: ignore[arg-type]
            return self.parts[0] == int(other) if other == int(other) else False  # type: ignore[call-overload]
        return _compared(self, "==", other)

    def __ne__(self, other: object) -> Any:
        found = self.__eq__(other)
        return not found if type(found) is bool else _compared(self, "!=", other)

    def __lt__(self, other: Any) -> Any:
        return _compared(self, "<", other)

    def __le__(self, other: Any) -> Any:
        return _compared(self, "<=", other)

    def __gt__(self, other: Any) -> Any:
        return _compared(self, ">", other)

    def __ge__(self, other: Any) -> Any:
        return _compared(self, ">=", other)

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

    __round__, __ceil__, __floor__ = _of_hint(round), _of_hint(math.ceil), _of_hint(math.floor)

    def __divmod__(self, other: Any) -> Any:
        return _both(self // other, self % other)

    def __rdivmod__(self, other: Any) -> Any:
        return _both(other // self, other % self)

    __array_ufunc__ = _ufunc

    def __getattr__(self, name: str) -> Any:
        return attribute(self, name)

    real = property(lambda self: self)
    imag = property(lambda self: 0.0)


_ARITHMETIC: dict[str, Callable[..., Any]] = {
    name: getattr(operator, name)
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "neg", "abs")
}
_ARITHMETIC["float"] = float
_COMPARISONS = {**RELATIONS, "!=": operator.ne, ">": operator.gt, ">=": operator.ge}
_SWAPPED = {">": "<", ">=": "<="}
_PARTS = ("numerator", "denominator")


def _real_method(name: str, reflected: bool) -> Any:
    def method(self: Real, other: Any) -> Any:
        return _as_real(name, other, self) if reflected else _as_real(name, self, other)

    return method


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    setattr(Real, f"__{_name}__", _real_method(_name, False))
    setattr(Real, f"__r{_name}__", _real_method(_name, True))


def _as_real(function: str, x: Any, y: Any) -> Any:
    """Return the result of a float operation; at least one of the operands is symbolic.

    The result is a `Real`, except in two cases in which the symbolic operands are pinned to their
    hints: an operand is neither int nor float (a complex number or an array, for example), or the
    operation is a power whose base is not positive, since the result may then be complex. An
    operand that is no number or array makes the result NotImplemented.

    Raises:
        ZeroDivisionError: the divisor is 0.
    """
    for each in (x, y):
        if type(each) not in _FLOATS:
            if isinstance(each, numbers.Number) or _of_numpy(each):
                return _ARITHMETIC[function](pin(x), pin(y))
            return NotImplemented
    if function == "pow" and not x > 0:
        return pin(x) ** pin(y)
    if function in ("truediv", "floordiv", "mod"):
        _check_divisor(function, x, y)
    return Real((x if is_symbolic(x) else y).scope, function, (x, y))


def _check_divisor(function: str, x: Any, y: Any) -> None:
    """Raise Python's ZeroDivisionError of the division `function` of `x` by `y` if `y` is 0.

    `function` is a name such as "floordiv". The comparison of a symbolic `y` with 0 may record a
    guard.
    """
    if y == 0:
        _ARITHMETIC[function](hint_of(x), hint_of(y))


def _compared(x: Dim | Real, relation: str, y: Any) -> Any:
    """Return the result of a comparison such as ``x < y``; NotImplemented if `y` is no number.

    `relation` is the operator, for example "<"; `x` is symbolic, and `y` need not be an int.
    ``x < y`` is never evaluated as ``not x >= y``, because for NaN both are False; only ``!=`` is
    evaluated as the negation of ``==``.
    """
    if type(y) in _FLOATS:
        if relation == "!=":
            return not x.scope.ask(x, "==", y)
        swapped = _SWAPPED.get(relation)
        return x.scope.ask(x, relation, y) if swapped is None else x.scope.ask(y, swapped, x)
    if isinstance(y, np.integer):
        return np.bool_(_COMPARISONS[relation](x, int(y)))
    if isinstance(y, numbers.Number) or _of_numpy(y):
        return _COMPARISONS[relation](pin(x), y)
    return NotImplemented


def _of_numpy(value: object) -> bool:
    return isinstance(value, (np.generic, np.ndarray))


def _both(quotient: Any, remainder: Any) -> Any:
    """Return (quotient, remainder), or NotImplemented if `quotient` is NotImplemented."""
    return NotImplemented if quotient is NotImplemented else (quotient, remainder)


def attribute(value: Dim | Real, name: str) -> Any:
    """Return attribute `name` of a symbolic number: one that int (for a Dim) or float (Real) has.

    The parts of a number, such as `real`, stay symbolic. Any other attribute is that of the hint,
    and a guard is recorded that requires this value.

    Raises:
        AttributeError: the class int or float has no such attribute.
    """
    kind = value.__class__
    if name in ("real", "imag", "__class__") or (name in _PARTS and kind is int):
        return object.__getattribute__(value, name)
    if not hasattr(kind(), name):
        raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}")
    return getattr(pin(value), name)


def _terms(value: object) -> Terms | None:
    """Return the terms of an int or Dim; None for any other object."""
    kind = type(value)
    if kind is Dim:
        return value.terms  # type: ignore[attr-defined]
    if kind is int or kind is bool:
        number = int(value)  # type: ignore[call-overload]
        return {(): number} if number else {}
    return None


def linear(size: Dim) -> tuple[Atom, int, int]:
    """Return (symbol, factor, constant) of a Dim of the form ``factor * symbol + constant``.

    The caller must know that the Dim has this form.
    """
    ((symbol, factor),) = [(m[0], c) for m, c in size.terms.items() if m]
    return symbol, factor, size.terms.get((), 0)


def bounds(value: Size) -> tuple[float, float]:
    """Return (lower, upper) bounds of the values that an int or a Dim can have.

    For an int, both bounds are the int itself.
    """
    if type(value) is Dim:
        return value.low, value.high
    assert isinstance(value, int)
    return value, value


def hint_of(value: Any) -> Any:
    """Return the hint of a symbolic number, without a guard; any other value is returned itself."""
    return value.hint if type(value) in (Dim, Real) else value


def is_symbolic(value: object) -> bool:
    """Return whether a value is symbolic: a Dim or a Real."""
    return type(value) is Dim or type(value) is Real


def as_float(value: Any) -> Any:
    """Return a symbolic number as a float: a Real itself, or the Real that converts a Dim."""
    return value if type(value) is Real else Real(value.scope, "float", (value,))


def as_integer(value: Any) -> Any:
    """Return a symbolic number as an integer: a Dim itself, or the pinned value of a Real."""
    return value if type(value) is Dim else int(value)


def pin(value: Any) -> Any:
    """Return a symbolic number's hint, and record a guard that requires this value.

    Any other value is returned itself.
    """
    return value.scope.pin(value) if type(value) in (Dim, Real) else value


def floor_divided(scope: Scope, above: Size, below: Size) -> Size:
    """Return `above // below`, with multiples of `below` taken out of the floor division.

    For example, ``(8*s0 + s1) // 8`` is ``s0 + s1 // 8``.

    Raises:
        ZeroDivisionError: `below` is 0.
    """
    _check_divisor("floordiv", above, below)
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
        left = without(m, factors)
        q, r = (0, c) if left is None else divmod(c, k)
        if q and left is not None:
            whole[left] = q
        if r:
            rest[m] = r
    low, high = bounds_of(rest)
    if 0 <= low and high < bounds(below)[0]:  # the remainder alone
        return scope.of(whole)
    return scope.of(whole) + scope.quotient(scope.of(rest), below)


def _atom_value(atom: Atom, values: Values) -> Any:
    if atom.parts is None:
        return values[atom]
    above, below = atom.parts
    return concrete(above, values) // concrete(below, values)


def concrete(value: Any, values: Values) -> Any:
    """Evaluate a symbolic number for given values of the symbols; return other values unchanged.

    The values may be Dims of another scope; the result is then a Dim of that scope.
    """
    if type(value) is Dim:
        return value_of(value.terms, lambda atom: _atom_value(atom, values))
    if type(value) is Real:
        parts = [concrete(p, values) for p in value.parts]
        if value.function == "float" and type(parts[0]) is Dim:
            return Real(parts[0].scope, "float", tuple(parts))
        return _ARITHMETIC[value.function](*parts)
    return value


def text_of(value: Any) -> str:
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


# Classes of operands whose operations with a symbolic number stay symbolic.
_FLOATS = (int, float, bool, Dim, Real)


def scope_of(values: Iterable[Any]) -> Scope | None:
    """Return the scope of the first symbolic number among some numbers, or None."""
    return next((v.scope for v in values if is_symbolic(v)), None)


def symbols_in(values: Iterable[object]) -> bool:
    """Return whether at least one of the numbers is symbolic."""
    return any([type(v) is Dim or type(v) is Real for v in values])
