"""Applies operators that a user's class defines, such as `__add__`.

`operators.apply` calls `overloaded` first; the methods are evaluated from source. Operators of
tensors and of other libraries' classes must be left to Python, because their methods cannot be
evaluated.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from ..state.evaluation import Evaluation
from ..types import Value
from .dispatch import call
from .native import native
from .outside import special_method

_BINARY_NAMES = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor",
    "lshift", "rshift",
)  # fmt: skip


# Per operator: the methods of the left operand in order, and the reflected one of the right.
_METHODS: dict[Value, tuple[tuple[str, ...], str | None]] = {
    operator.lt: (("__lt__",), "__gt__"), operator.gt: (("__gt__",), "__lt__"), operator.le:
    (("__le__",), "__ge__"), operator.ge: (("__ge__",), "__le__"), operator.eq: (("__eq__",),
    "__eq__"), operator.ne: (("__ne__",), "__ne__"), operator.neg: (("__neg__",), None),
    operator.pos: (("__pos__",), None), operator.invert: (("__invert__",), None),
}  # fmt: skip


for _name in _BINARY_NAMES:
    _own, _reflected, _in_place = f"__{_name}__", f"__r{_name}__", f"__i{_name}__"
    _METHODS[getattr(operator, _own)] = ((_own,), _reflected)
    _METHODS[getattr(operator, _in_place)] = ((_in_place, _own), _reflected)


def overloaded(
    ev: Evaluation, function: Callable[..., Value], operands: tuple[Value, ...]
) -> Value:
    """Apply an operator by calling the operator methods of a user's class, such as `__add__`.

    `function` is the function of the module `operator`.

    Returns:
        the result; NotImplemented if no operand is of a user's class that defines the operator.
    """
    names, reflected = _METHODS.get(function, ((), None))
    if not names:
        return NotImplemented
    x = operands[0]
    tries = [(x, name, operands) for name in names]
    if reflected is not None:
        y = operands[1]
        other = (y, reflected, (y, x))
        if type(y) is not type(x):
            first = issubclass(type(y), type(x))
            tries = [other, *tries] if first else [*tries, other]
    if not any([special_method(ev, owner, name) for owner, name, _ in tries]):
        return NotImplemented
    for owner, name, given in tries:
        method = special_method(ev, owner, name)
        if method is not None:
            found = call(ev, method, given, {})
        elif hasattr(type(owner), name):
            found = native(ev, getattr(type(owner), name), given, {})
        else:
            continue
        if found is not NotImplemented:
            return found
    return NotImplemented
