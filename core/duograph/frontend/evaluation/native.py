"""Runs Python code at compile time on graph values, with a fallback if the code needs data.

Ops that the code calls append graph nodes. If the code needs a value that is known only when the
graph runs, its effects are undone. The call then becomes a node that runs Python (LAX), or an error
(STRICT). The user's functions must not run here; `functions` evaluates their source.
"""

from __future__ import annotations

import decimal
import operator
import types
from collections.abc import Callable

from ...call_names import FUNCTION, Link, call_name_of
from ...errors import JoinError, UnsupportedSyntaxError
from ...ir.builder import GraphTensor
from ...ir.values import NeedsValue
from ...tracebacks import is_internal
from ..libraries import is_framework, is_host, is_users_class
from ..state.evaluation import Evaluation
from ..types import Args, Kwargs, Value
from ..values.functions import Choice
from .functions import enter, evaluated_function
from .host import run_on_host, with_item
from .outside import observe
from .spans import error_spans, inside_call
from .tensor_methods import record_methods


def native(ev: Evaluation, f: Callable[..., Value], args: Args, kwargs: Kwargs) -> Value:
    """Call a Python function at compile time, on graph values or constants; return its result.

    If it needs a value that is known only when the graph runs, its effects are undone. A framework
    function is then evaluated from source. Any other call becomes a node that runs Python (LAX), or
    an error (STRICT).
    """
    for x in args:
        if isinstance(x, Choice):
            x.as_python()
        observe(ev, x)
    if isinstance(f, types.BuiltinFunctionType):
        record_methods(ev, f, args)
        if type(f.__self__) is decimal.Decimal:
            ev.captures.decimal_context()
    builder, journal = ev.builder, ev.journal
    mark = len(builder.nodes), len(builder.types)
    journal.branches.append({})
    users = isinstance(f, type) and is_users_class(f)  # its metaclass may answer any question
    name = "" if users else call_name_of(f)
    try:
        if not name:
            found = f(*args, **kwargs)
        else:
            with inside_call(ev, Link(name, FUNCTION)):
                found = f(*args, **kwargs)
    except (NeedsValue, TypeError, ValueError, AttributeError) as error:
        if not _needed_a_value(error):
            journal.keep()
            raise
        journal.roll_back()
        if any(hasattr(type(x), "__next__") and id(x) in ev.owned.objects for x in args):
            raise _used_up(f) from None
        function: Value = getattr(f, "__func__", f)
        evaluable = _has_evaluable_source(function)
        if ev.strict and not evaluable:
            raise _unknown_argument(f, error) from None
        builder.rewind(*mark)
        if evaluable:
            given = (f.__self__, *args) if isinstance(f, types.MethodType) else args
            return _enter_framework_function(ev, f, function, given, kwargs)
        if f is operator.setitem and isinstance(args[0], GraphTensor):
            target = args[0]
            made = run_on_host(ev, with_item, args, kwargs, "setitem", (target._type.plain,))
            builder.rebind(target, made)
            return None
        return run_on_host(ev, f, args, kwargs, callable_name(f))
    except BaseException:
        journal.keep()
        raise
    if journal.branches[-1]:
        journal.keep()
    else:
        journal.branches.pop()
    return found


def _enter_framework_function(
    ev: Evaluation, f: Value, function: types.FunctionType, args: Args, kwargs: Kwargs
) -> Value:
    """Evaluate a framework function from source, after a direct call needed run-time values.

    Args:
        ev: the evaluation.
        f: the callable, for messages.
        function: the Python function of `f`.
        args: the positional arguments, with the receiver of a method first.
        kwargs: the keyword arguments.
    """
    try:
        return enter(ev, evaluated_function(ev, function), args, kwargs)
    except (TypeError, ValueError, AttributeError) as error:
        # a graph value was used as a Python number, or a shape depends on a graph value
        if isinstance(error, NeedsValue) or not (
            _needed_a_value(error) or _is_join_in_framework(ev, error)
        ):
            raise
        if ev.strict:
            raise _unknown_argument(f, error) from None
        raise NeedsValue(f"{callable_name(f)}: {UNKNOWN_NUMBER}") from None


UNKNOWN_NUMBER = (
    "got a number that is known only when the compiled function runs, where one is needed while "
    "compiling"
)


def _needed_a_value(error: Exception) -> bool:
    """Return whether an error was raised because a call needed a value known only at run time."""
    text = str(error)
    return isinstance(error, NeedsValue) or "GraphScalar" in text or "GraphObject" in text


def _used_up(f: Value) -> UnsupportedSyntaxError:
    """Return the error for a call that took items of an iterator before it needed a value."""
    return UnsupportedSyntaxError(
        f"{callable_name(f)}: got an iterator over values that are known only when the compiled "
        "function runs",
        construct=callable_name(f),
        remedy="Pass a list",
    )


def _has_evaluable_source(function: Value) -> bool:
    """Return whether the source of a framework function may be traced into the graph.

    False for public functions of a single op (these have an attribute `op`), because an op's
    attributes must be known at compile time.
    """
    return (
        isinstance(function, types.FunctionType)
        and is_framework(function.__module__)
        and not hasattr(function, "op")
    )


def _is_join_in_framework(ev: Evaluation, error: Exception) -> bool:
    """Return whether an error is about branches in framework code that end with different types."""
    return isinstance(error, JoinError) and is_internal(error_spans(ev, error)[-1].file)


def _unknown_argument(f: Value, error: Exception) -> UnsupportedSyntaxError:
    """Return the STRICT error for a call that needs a value known only at run time."""
    why = str(error) if isinstance(error, NeedsValue) else UNKNOWN_NUMBER
    return UnsupportedSyntaxError(
        why if why.startswith(f"{callable_name(f)}: ") else f"{callable_name(f)}: {why}",
        construct=callable_name(f),
        remedy="Compute it with Tensors, move the call out of the compiled function, or use LAX",
    )


def evaluable(ev: Evaluation, value: Value) -> Value:
    """Return a callable that traces a user's function whenever Python code calls it.

    For example, `functools.reduce(f, xs)` runs at compile time but calls f. Functions and methods
    of the user, and methods of lists, dicts and sets, are wrapped in this way. Any other value is
    returned unchanged.
    """
    if isinstance(value, types.MethodType) and isinstance(value.__func__, types.FunctionType):
        module = value.__func__.__module__
    elif isinstance(value, types.FunctionType):
        module = value.__module__
    elif isinstance(getattr(value, "__self__", None), (list, dict, set)):
        return lambda *args, **kwargs: ev.call(value, args, kwargs)
    else:
        return value
    if is_framework(module) or is_host(module):
        return value
    return lambda *args, **kwargs: ev.call(value, args, kwargs)


def callable_name(f: Value) -> str:
    """Return the name of a callable for messages."""
    return str(getattr(f, "__qualname__", None) or getattr(f, "__name__", type(f).__name__))
