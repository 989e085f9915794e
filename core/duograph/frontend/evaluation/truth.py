"""Truth values: `bool(x)`, `not`, `and`, `or` on values that the graph may compute.

Conditions of all statements and operators go through `truth`. A flag is a Python bool if it is
known, otherwise a bool of the graph. The module must not read the data of a graph value, which does
not exist at compile time.
"""

from __future__ import annotations

from ...dtype import bool_
from ...errors import ArgumentValueError
from ...ir.builder import GraphTensor
from ...ir.control import HostCall, host_call, to_tensor
from ...ir.values import GraphObject, GraphScalar, number_of
from ...nn.cell import Cell
from ...ops.comparison import not_equal
from ...ops.logic import logical_and, logical_not, logical_or
from ...ops.shape_primitives import reshape_to
from ...runtime_state import thread_state
from ...tensor import Tensor
from ...types import BOOL
from ..state.evaluation import Evaluation
from ..types import Flag, Value
from .dispatch import call
from .outside import ask, is_outside, special_method
from .tensor_methods import given_method


def truth(ev: Evaluation, value: Value) -> Value:
    """Return a value's truth as a Python bool if known, else as a bool of the graph.

    A `__bool__` or `__len__` that the user wrote is evaluated. The truth of an object from outside
    the function is recorded as a constant, which is compared before each later call.
    """
    if value is True or value is False:
        return value
    if isinstance(value, Tensor):
        given = given_method(ev, value, "__bool__")
        if given is not None:
            return truth(ev, call(ev, given, (value,), {}))
        if not isinstance(value, GraphTensor):
            if ev.is_constant(value):
                return bool(value)
            value = ev.builder.present_value(value)
        return single_bool(value)
    if isinstance(value, GraphScalar):
        return value if value._type is BOOL else value.apply("bool", value)
    if isinstance(value, GraphObject):
        return ev.builder.append(
            host_call,
            (ev.builder.bring(value),),
            {"run": HostCall(lambda x: (bool(x),), "bool"), "types": (BOOL,)},
        )[0]
    if type(value).__module__ != "builtins":
        for name in ("__bool__", "__len__"):
            method = special_method(ev, value, name)
            if method is not None:
                return truth(ev, call(ev, method, (value,), {}))
    if isinstance(value, Cell):
        ev.captures.members(value)
    ev.copies.observe(value)
    if is_outside(ev, value):
        return truth(ev, ask(ev, bool, value))
    return bool(value)


def single_bool(x: Value) -> Value:
    """Return the truth of a one-element graph tensor as a 0-d bool graph tensor."""
    if x.size != 1:
        raise ArgumentValueError(
            f"bool: got a tensor of shape {x.shape}; the truth of several elements is "
            "ambiguous, wanted one element (use .any(), .all() or an index)"
        )
    if x.shape:
        x = reshape_to(x, ())
    return x if x.dtype is bool_ else not_equal(x, 0)


def negated(flag: Flag) -> Value:
    """Return the negation of a flag, a Python bool or a bool of the graph."""
    if flag is True or flag is False:
        return not flag
    if isinstance(flag, GraphScalar):
        return flag.apply("not", flag)
    return logical_not(flag)


def either(a: Value, b: Value) -> Value:
    """Return the logical or of two flags, Python bools or bools of the graph."""
    if a is True or b is True:
        return True
    if a is False:
        return b
    if b is False:
        return a
    if isinstance(a, GraphScalar) and isinstance(b, GraphScalar):
        return a.apply("or", a, b)
    return logical_or(as_flag(a), as_flag(b))


def both(a: Value, b: Value) -> Value:
    """Return the logical and of two flags, Python bools or bools of the graph."""
    if a is False or b is False:
        return False
    if a is True:
        return b
    if b is True:
        return a
    if isinstance(a, GraphScalar) and isinstance(b, GraphScalar):
        return a.apply("and", a, b)
    return logical_and(as_flag(a), as_flag(b))


def as_flag(flag: Flag) -> Value:
    """Convert a Python bool or graph bool to a 0-d bool tensor of the current graph."""
    builder: Value = thread_state.builder
    if isinstance(flag, bool):
        return builder.constant(flag, bool_)
    if isinstance(flag, GraphScalar):
        return builder.append(to_tensor, (builder.host(flag),), {"dtype": bool_})
    return builder.bring(flag)


def as_python_bool(ev: Evaluation, flag: Flag) -> Value:
    """Return a flag as a Python operator returns it: a Python bool, or a symbolic Python bool.

    A bool tensor of the graph is converted to a symbolic Python bool; any other flag is returned
    unchanged.
    """
    return number_of(flag, BOOL) if isinstance(flag, GraphTensor) else flag
