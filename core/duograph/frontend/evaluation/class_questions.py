"""Replacements of `type`, `isinstance`, `issubclass` and `callable` in compiled code.

The replacements register in `dispatch.REPLACEMENTS`. The class of an object from outside the
function, and the base classes of every class of the user that is asked about, are recorded as
constants, which are compared before each later call.
"""

from __future__ import annotations

import types

from ...dims import is_symbolic
from ...errors import UnsupportedSyntaxError
from ...ir.builder import GraphTensor
from ...ir.values import GraphObject, GraphScalar
from ...nn.cell import Cell
from ...parameter import Parameter
from ...tensor import Tensor
from ...types import BOOL, FLOAT, INT
from ..libraries import is_framework, is_users_class
from ..state.evaluation import Evaluation
from ..types import Value
from ..values.functions import Choice, Function
from ..values.ranges import GraphRange
from .dispatch import replaces
from .host import run_on_host
from .outside import is_outside, special_method

# Type of a number of the graph -> its Python class.
CLASSES = {INT: int, FLOAT: float, BOOL: bool}


def _class_of(ev: Evaluation, x: Value) -> Value:
    """Return the result of `type(x)` in compiled code, such as Tensor for a graph tensor."""
    if isinstance(x, Choice):
        x.as_python()
    if isinstance(x, Function):
        return types.FunctionType
    if isinstance(x, GraphTensor):
        ev.ask_class(x, "type")
        return Tensor
    if isinstance(x, GraphScalar):
        return CLASSES[x._type]
    if isinstance(x, GraphRange):
        return range
    return x.__class__ if is_symbolic(x) else type(x)


@replaces(isinstance)
def is_instance(ev: Evaluation, x: Value, kinds: Value) -> Value:
    """Trace `isinstance(x, kinds)`; return a bool, or a graph bool if unknown at compile time."""
    if isinstance(x, GraphObject):
        return run_on_host(ev, isinstance, (x, kinds), {}, "isinstance", (BOOL,))
    if isinstance(x, (GraphScalar, GraphRange, Function, Choice)):
        return issubclass(_class_of(ev, x), kinds)
    _note_class(ev, x)
    found = isinstance(x, kinds)
    if _decides_itself(kinds, type(x)):
        kind = _class_of(ev, x)
        question = (
            (issubclass, (kind, kinds)) if isinstance(x, GraphTensor) else (isinstance, (x, kinds))
        )
        ev.captures.add("answer", *question, found, "isinstance")
    if not found and isinstance(x, GraphTensor) and issubclass(Parameter, kinds):
        ev.ask_class(x, "isinstance")
    return found


@replaces(issubclass)
def _is_subclass(ev: Evaluation, x: Value, kinds: Value) -> Value:
    if isinstance(x, GraphObject):
        return run_on_host(ev, issubclass, (x, kinds), {}, "issubclass", (BOOL,))
    found = issubclass(x, kinds)
    ev.captures.bases_of(x)
    if _decides_itself(kinds, x):
        ev.captures.add("answer", issubclass, (x, kinds), found, "issubclass")
    return found


def _note_class(ev: Evaluation, x: Value) -> None:
    """Record the class of an object from outside, and the base classes of any object's class."""
    if is_outside(ev, x) or (isinstance(x, Cell) and id(x) not in ev.owned.objects):
        ev.captures.class_of(x)
    ev.captures.bases_of(type(x))


def _decides_itself(kinds: Value, kind: type) -> bool:
    """Return whether a metaclass, such as `ABCMeta`, may change its answer to `isinstance` later.

    `kinds` is the class that is asked, or a tuple of classes; `kind` is the class that is compared
    with them. The answer may change if the asked class has a metaclass other than `type` and is the
    user's, or if it has one, is not duograph's, and `kind` is the user's.
    """
    users = is_users_class(kind)
    return any(
        type(k) is not type
        and isinstance(k, type)
        and (is_users_class(k) or (users and not is_framework(k.__module__)))
        for k in (kinds if isinstance(kinds, tuple) else (kinds,))
    )


@replaces(type)
def _type(ev: Evaluation, x: Value, *rest: Value) -> Value:
    if rest:
        raise UnsupportedSyntaxError(
            "type: got three arguments inside jit",
            construct="type",
            remedy="Define the class outside the compiled function",
        )
    if isinstance(x, GraphObject):
        return run_on_host(ev, type, (x,), {}, "type")
    _note_class(ev, x)
    return _class_of(ev, x)


@replaces(callable)
def _callable(ev: Evaluation, x: Value) -> Value:
    if isinstance(x, GraphObject):
        return run_on_host(ev, callable, (x,), {}, "callable", (BOOL,))
    _note_class(ev, x)
    special_method(ev, x, "__call__")
    return callable(x)
