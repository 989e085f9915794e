"""Records the methods of the Tensor class through which operators and built-in functions work.

A program may replace such a method, `Tensor.__mul__` for example, between two calls of a compiled
function. The guard of the compiled function compares what is recorded here.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from types import FunctionType

from ...parameter import Parameter
from ...tensor import Tensor
from ..libraries import in_classes, is_user_function, is_users_class
from ..state.evaluation import Evaluation
from ..types import Args

# Built-in functions that call a method of the same name, such as `__len__`.
_FUNCTIONS = ("abs", "divmod", "iter", "len", "pow", "reversed", "round")
# What a comparison calls on the right operand if the left one is no Tensor.
_SWAPPED = {"__lt__": "__gt__", "__gt__": "__lt__", "__le__": "__ge__", "__ge__": "__le__"}


def _names() -> dict[Callable[..., object], tuple[tuple[str, ...], str]]:
    """Return function -> (methods of the first operand, method of the second one or "")."""
    found: dict[Callable[..., object], tuple[tuple[str, ...], str]] = {}
    functions = [getattr(operator, n) for n in operator.__all__]
    for f in (*functions, *[getattr(builtins, n) for n in _FUNCTIONS]):
        own = f"__{f.__name__.strip('_')}__"
        if not hasattr(Tensor, own):
            continue
        plain = own.replace("__i", "__", 1)  # Python tries `__add__` after `__iadd__`
        in_place = own != "__invert__" and plain != own and hasattr(Tensor, plain)
        reflected = _SWAPPED.get(own, f"__r{plain[2:] if in_place else own[2:]}")
        found[f] = ((own, plain) if in_place else (own,)), reflected
    return found


_NAMES = _names()


def record_methods(ev: Evaluation, function: Callable[..., object], operands: Args) -> None:
    """Record the methods that a function of `operator` or `builtins` calls on Tensor operands.

    Nothing is recorded for other functions, or if no operand is a Tensor.
    """
    names, reflected = _NAMES.get(function, ((), ""))
    if not names or not operands:
        return
    if isinstance(operands[0], Tensor):
        for name in names:
            ev.captures.class_attribute(_class_of(operands[0]), name)
    elif len(operands) > 1 and isinstance(operands[1], Tensor):
        ev.captures.class_attribute(_class_of(operands[1]), reflected)


def given_method(ev: Evaluation, tensor: Tensor, name: str) -> FunctionType | None:
    """Return the method `name` that a user put into the Tensor class, else None; record which."""
    kind = _class_of(tensor)
    ev.captures.class_attribute(kind, name)
    found = in_classes(kind, name)
    return found if is_user_function(found) else None


def _class_of(tensor: Tensor) -> type:
    """Return the class of the user's object; Parameter or Tensor for a graph tensor."""
    if is_users_class(type(tensor)):
        return type(tensor)
    return Parameter if isinstance(tensor, Parameter) else Tensor
