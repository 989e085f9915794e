"""Which special methods Python calls for each operator and for some built-in functions.

The module holds tables alone; `overloads` and `tensor_methods` read them.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable

__all__ = ["METHODS", "OF_FIRST"]

Function = Callable[..., object]

# Operator, as a function -> the methods of its first operand, in the order in which Python tries
# them, and the reflected method of the second operand; None if there is no such method.
METHODS: dict[Function, tuple[tuple[str, ...], str | None]] = {
    operator.lt: (("__lt__",), "__gt__"),
    operator.gt: (("__gt__",), "__lt__"),
    operator.le: (("__le__",), "__ge__"),
    operator.ge: (("__ge__",), "__le__"),
    operator.eq: (("__eq__",), "__eq__"),
    operator.ne: (("__ne__",), "__ne__"),
    operator.neg: (("__neg__",), None),
    operator.pos: (("__pos__",), None),
    operator.invert: (("__invert__",), None),
    builtins.pow: (("__pow__",), "__rpow__"),
    builtins.divmod: (("__divmod__",), "__rdivmod__"),
}
for _name in (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor",
    "lshift", "rshift",
):  # fmt: skip
    _own, _reflected, _in_place = f"__{_name}__", f"__r{_name}__", f"__i{_name}__"
    METHODS[getattr(operator, _own)] = ((_own,), _reflected)
    METHODS[getattr(operator, _in_place)] = ((_in_place, _own), _reflected)

# Function -> the method of its first argument that it calls; no method of another argument.
OF_FIRST: dict[Function, str] = {
    f: f"__{f.__name__}__"
    for f in (operator.contains, operator.getitem, operator.setitem, operator.delitem,
              builtins.abs, builtins.iter, builtins.len, builtins.reversed, builtins.round)
}  # fmt: skip
