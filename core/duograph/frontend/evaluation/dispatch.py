"""Dispatch tables of the front end: from a syntax node or a called object to its handler.

`SYNTAX` maps the class of a syntax node to its handler, `CALLABLES` the class of a called object,
and `REPLACEMENTS` a built-in function. Modules that import this one fill the tables. Any module can
therefore evaluate an expression or a call without importing the handlers. After the imports the
tables must not change.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable
from typing import TypeAlias, TypeVar

from ...tensor import Tensor
from ..diagnostics import unsupported
from ..libraries import keeps_symbols
from ..state.calls import Frame
from ..state.evaluation import Evaluation
from ..types import Args, Kwargs, Value
from ..values.symbols import refuse_symbols, without_symbols
from .spans import note_error_span

__all__ = [
    "CALLABLES",
    "Dead",
    "REPLACEMENTS",
    "SYNTAX",
    "call",
    "call_object",
    "calls",
    "evaluate",
    "replaces",
    "syntax",
]

Handler: TypeAlias = Callable[[Evaluation, Frame, Value], Value]
CallHandler: TypeAlias = Callable[[Evaluation, Value, Args, Kwargs], Value]
H = TypeVar("H", bound=Callable[..., Value])

# Syntax node class -> function(ev, frame, node). An expression's returns its value, a statement's
# returns a `Flow`.
SYNTAX: dict[type[ast.AST], Handler] = {}
# Class of a called object -> function(ev, object, args, kwargs); base classes count.
CALLABLES: dict[type, CallHandler] = {}
# Function -> what runs instead of it: function(ev, *args, **kwargs).
REPLACEMENTS: dict[Value, Callable[..., Value]] = {}
_REPLACED_KINDS = {
    types.FunctionType, types.BuiltinFunctionType, types.WrapperDescriptorType, type,
    type(Tensor),
}  # fmt: skip


class Dead(Exception):
    """Raised while tracing code that always raises at run time, to skip the rest of that code."""


def syntax(*kinds: type[ast.AST]) -> Callable[[H], H]:
    """Decorator that registers a function to trace syntax nodes of the given classes."""

    def register(function: H) -> H:
        for kind in kinds:
            SYNTAX[kind] = function
        return function

    return register


def calls(*kinds: type) -> Callable[[H], H]:
    """Decorator that registers a function to trace calls of objects of the given classes."""

    def register(function: H) -> H:
        for kind in kinds:
            CALLABLES[kind] = function
        return function

    return register


def replaces(*functions: Value) -> Callable[[H], H]:
    """Decorator that registers a replacement, for compiled code, of the given functions.

    The decorated function receives the evaluation before the arguments of the call.
    """

    def register(function: H) -> H:
        for f in functions:
            REPLACEMENTS[f] = function
        return function

    return register


@syntax(ast.Constant)
def _constant(ev: Evaluation, frame: Frame, node: ast.Constant) -> Value:
    return node.value


_GENERATOR_REMEDY = (
    "A compiled function cannot be a generator: return a list, or leave the function uncompiled"
)
_EXPRESSION_REMEDIES = {
    "Yield": _GENERATOR_REMEDY,
    "YieldFrom": _GENERATOR_REMEDY,
    "Await": "Wanted a plain function: await outside the compiled function",
}


def evaluate(ev: Evaluation, frame: Frame, node: ast.expr) -> Value:
    """Trace the syntax node of an expression into the graph and return the expression's value.

    Raises:
        UnsupportedSyntaxError: compiled functions cannot contain such an expression.
    """
    try:
        run = SYNTAX.get(type(node))
        if run is None:
            name = type(node).__name__
            remedy = _EXPRESSION_REMEDIES.get(name, "Move it out of the compiled function")
            raise unsupported(name, remedy)
        found = run(ev, frame, node)
    except Exception as error:
        note_error_span(ev, error, frame, node)
        raise
    if type(node) is not ast.Name and type(node) is not ast.Constant:
        frame.temporaries.append(found)
    return found


def call(ev: Evaluation, f: Value, args: Args, kwargs: Kwargs) -> Value:
    """Trace a call of any object into the graph and return its result.

    If a replacement of a function is registered, the replacement is called. Otherwise the handler
    of the first class in the object's MRO that has one makes the call.
    """
    kind = type(f)
    if ev.scope is not None and not keeps_symbols(f):
        refuse_symbols(getattr(f, "__self__", None))
        args = tuple([without_symbols(ev.scope, v) for v in args])
        kwargs = {k: without_symbols(ev.scope, v) for k, v in kwargs.items()}
    if kind in _REPLACED_KINDS:  # the hash of any other object may be code of the user
        replaced = REPLACEMENTS.get(f)
        if replaced is not None:
            return replaced(ev, *args, **kwargs)
    if kind is types.MethodWrapperType:  # of super() or an object
        replaced = REPLACEMENTS.get(vars(f.__objclass__)[f.__name__])
        if replaced is not None:
            return replaced(ev, f.__self__, *args, **kwargs)
    return call_object(ev, f, args, kwargs)


def call_object(ev: Evaluation, f: Value, args: Args, kwargs: Kwargs) -> Value:
    """Trace a call of an object by the handler of the first class in its MRO that has one."""
    for base in type(f).__mro__:
        handler = CALLABLES.get(base)
        if handler is not None:
            return handler(ev, f, args, kwargs)
    raise AssertionError(f"no handler for {type(f)}")  # `object` has one
