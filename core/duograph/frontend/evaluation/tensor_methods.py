"""Records the methods of the Tensor class through which operators and built-in functions work.

A program may replace such a method, `Tensor.__mul__` for example, between two calls of a compiled
function. The guard of the compiled function compares what is recorded here.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType

from ...parameter import Parameter
from ...tensor import Tensor
from ..libraries import in_classes, is_user_function, is_users_class
from ..state.evaluation import Evaluation
from ..types import Args
from .operator_methods import METHODS, OF_FIRST


def record_methods(ev: Evaluation, function: Callable[..., object], operands: Args) -> None:
    """Record the methods that a function of `operator` or `builtins` calls on Tensor operands.

    Nothing is recorded for other functions, or if no operand is a Tensor.
    """
    if function in METHODS:
        names, reflected = METHODS[function]
    elif function in OF_FIRST:
        names, reflected = (OF_FIRST[function],), None
    else:
        return
    if operands and isinstance(operands[0], Tensor):
        for name in names:
            ev.captures.class_attribute(_class_of(operands[0]), name)
    elif reflected is not None and len(operands) > 1 and isinstance(operands[1], Tensor):
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
