"""Applies operators that a user's class defines, such as `__add__`.

`operators.apply` calls `overloaded` first; the methods are evaluated from source. Operators of
tensors and of other libraries' classes must be left to Python, because their methods cannot be
evaluated.
"""

from __future__ import annotations

import operator
import types
from collections.abc import Callable

from ...ir.builder import GraphTensor
from ...ir.values import GraphScalar
from ..state.evaluation import Evaluation
from ..types import Value
from .dispatch import call
from .functions import enter, evaluated_function
from .identity import identical
from .native import native
from .operator_methods import METHODS
from .outside import special_method
from .truth import as_python_bool, negated, truth

# What Python writes for an operator in its errors.
_SYMBOLS = {
    operator.add: "+", operator.sub: "-", operator.mul: "*", operator.truediv: "/",
    operator.floordiv: "//", operator.mod: "%", operator.pow: "** or pow()",
    operator.matmul: "@", operator.and_: "&", operator.or_: "|", operator.xor: "^",
    operator.lshift: "<<", operator.rshift: ">>", operator.iadd: "+=", operator.isub: "-=",
    operator.imul: "*=", operator.itruediv: "/=", operator.ifloordiv: "//=", operator.imod: "%=",
    operator.ipow: "**=", operator.imatmul: "@=", operator.iand: "&=", operator.ior: "|=",
    operator.ixor: "^=", operator.ilshift: "<<=", operator.irshift: ">>=", operator.lt: "<",
    operator.le: "<=", operator.gt: ">", operator.ge: ">=",
}  # fmt: skip
_COMPARISONS = {operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne}
# Python joins and repeats these only if no operand is a number or has a reflected operator.
_SEQUENCES = (list, tuple, str, bytes, bytearray)
_JOINS = {operator.add: "__add__", operator.iadd: "__iadd__"}
_REPEATS = {operator.mul: "__mul__", operator.imul: "__imul__"}


def overloaded(
    ev: Evaluation, function: Callable[..., Value], operands: tuple[Value, ...]
) -> Value:
    """Apply an operator by calling the operator methods of a user's class, such as `__add__`.

    The methods are tried in Python's order, each once. `function` is the function of the module
    `operator`.

    Returns:
        the result; NotImplemented if no operand is of a user's class that defines the operator.

    Raises:
        TypeError: every method returned NotImplemented.
    """
    names, reflected = METHODS.get(function, ((), None))
    if not names:
        return NotImplemented
    tries = _tries(function, names, reflected, operands)
    if not any([_is_of_user(ev, owner, name) for owner, name, _ in tries]):
        return NotImplemented
    for owner, name, given in tries:
        found = _try(ev, function, owner, name, given)
        if found is not NotImplemented:
            return found
    return _without_method(ev, function, operands)


def _tries(
    function: Callable[..., Value],
    names: tuple[str, ...],
    reflected: str | None,
    operands: tuple[Value, ...],
) -> list[tuple[Value, str, tuple[Value, ...]]]:
    """Return the methods to try as (owner, name, arguments), in the order of Python."""
    x = operands[0]
    tries = [(x, name, operands) for name in names]
    if reflected is None:
        return tries
    y = operands[1]
    other = (y, reflected, (y, x))
    is_sub = type(y) is not type(x) and issubclass(type(y), type(x))
    if function in _COMPARISONS:
        return [other, *tries] if is_sub else [*tries, other]
    if type(y) is type(x):
        return tries
    own = getattr(type(x), reflected, None)
    if is_sub and getattr(type(y), reflected, None) is not own:
        return [*tries[:-1], other, tries[-1]]  # a method in place comes before it
    return [*tries, other]


def _is_of_user(ev: Evaluation, owner: Value, name: str) -> bool:
    """Return whether a method of the user decides what the method `name` of `owner` returns."""
    if special_method(ev, owner, name) is not None or _ordering(owner, name) is not None:
        return True
    return _negates(owner, name) and special_method(ev, owner, "__eq__") is not None


def _ordering(owner: Value, name: str) -> Value:
    """Return a comparison that `functools.total_ordering` has made for a user's class, or None."""
    found = getattr(type(owner), name, None)
    made = isinstance(found, types.FunctionType) and found.__module__ == "functools"
    return found if made else None


def _negates(owner: Value, name: str) -> bool:
    kind: Value = type(owner)
    return name == "__ne__" and kind.__ne__ is object.__ne__


def _try(
    ev: Evaluation,
    function: Callable[..., Value],
    owner: Value,
    name: str,
    given: tuple[Value, ...],
) -> Value:
    """Return what the operator method `name` of `owner` returns; NotImplemented without method."""
    if _negates(owner, name):
        found = _try(ev, function, owner, "__eq__", given)
        return found if found is NotImplemented else as_python_bool(ev, negated(truth(ev, found)))
    method = special_method(ev, owner, name)
    if method is not None:
        return call(ev, method, given, {})
    ordering = _ordering(owner, name)
    if ordering is not None:
        ev.captures.method(owner, name, None)
        return enter(ev, evaluated_function(ev, ordering), given, {})
    if not hasattr(type(owner), name):
        return NotImplemented
    if isinstance(owner, _SEQUENCES) and function in {**_JOINS, **_REPEATS}:
        return NotImplemented
    return native(ev, getattr(type(owner), name), given, {})


def _without_method(
    ev: Evaluation, function: Callable[..., Value], operands: tuple[Value, ...]
) -> Value:
    """Return the result of an operator whose methods all returned NotImplemented.

    Sequences are joined or repeated, and `==` and `!=` compare identities.
    """
    reflected = METHODS[function][1]
    if reflected in ("__eq__", "__ne__"):
        same = identical(ev, *operands)
        return same if reflected == "__eq__" else as_python_bool(ev, negated(same))
    if function in _JOINS and isinstance(operands[0], _SEQUENCES):
        return native(ev, _sequence_method(operands[0], _JOINS[function]), operands, {})
    if function in _REPEATS:
        for owner, given in zip(operands, (operands, operands[::-1])):
            if isinstance(owner, _SEQUENCES):
                return native(ev, _sequence_method(owner, _REPEATS[function]), given, {})
    symbol = _SYMBOLS.get(function)
    shown = [_class_name(x) for x in operands]
    if len(operands) == 1:
        raise TypeError(f"bad operand type for unary operator: {shown[0]!r}")
    if function in _COMPARISONS:
        raise TypeError(
            f"{symbol!r} not supported between instances of {shown[0]!r} and {shown[1]!r}"
        )
    raise TypeError(f"unsupported operand type(s) for {symbol}: {shown[0]!r} and {shown[1]!r}")


def _sequence_method(owner: Value, name: str) -> Value:
    """Return a method of a sequence's class; if it lacks `__iadd__`, say, its `__add__`."""
    return getattr(type(owner), name, None) or getattr(type(owner), name.replace("__i", "__"))


def _class_name(value: Value) -> str:
    if isinstance(value, GraphTensor):
        return "Tensor"
    return str(value._type.name) if isinstance(value, GraphScalar) else type(value).__name__
