"""Evaluates function calls from source: binds the arguments and evaluates the body.

`calls` and `native` call `enter` for the user's functions, and for functions of the framework that
need a value of the graph. Recursion under a graph condition is left to `recursion`. A function's
bytecode must never run here, because it cannot branch on graph values.
"""

from __future__ import annotations

import typing
from types import FunctionType

from ...context import settings
from ...tensor import Tensor
from ..diagnostics import join_error
from ..libraries import is_framework
from ..source import source_of
from ..state.calls import Frame
from ..state.captures import definition_of
from ..state.evaluation import Evaluation
from ..types import Args, Kwargs, Value
from ..values.flow import Flow
from ..values.functions import Function
from .blocks import run_block
from .dispatch import Dead, evaluate, replaces
from .join import describe
from .recursion import Recursive, call_named_graph, close_call, open_call, with_numbers
from .spans import explain_missing_return, note_error_span


def evaluated_function(ev: Evaluation, f: Value) -> Function:
    """Return a user's Python function as a `Function`, whose calls are evaluated from source.

    The function's code and defaults are recorded as constants, which are compared before each later
    call of the compiled function, because a program may replace them.

    Raises:
        UnsupportedSyntaxError: the source of the function cannot be found.
    """
    closure = f.__closure__ or ()
    if not is_framework(f.__module__):
        record_definition(ev, f, outermost=not ev.calls.frames)
    given = f.__defaults__ or ()
    code = f.__code__
    names = code.co_varnames[code.co_argcount - len(given) : code.co_argcount]
    defaults = tuple(ev.copies.imported(v, name) for v, name in zip(given, names, strict=True))
    return Function(
        source_of(f),
        defaults,
        {k: ev.copies.imported(v, k) for k, v in (f.__kwdefaults__ or {}).items()},
        f.__globals__,
        closure=dict(zip(f.__code__.co_freevars, closure, strict=True)),
        original=f,
    )


def record_definition(ev: Evaluation, f: FunctionType, outermost: bool = False) -> None:
    """Record a function's code and defaults as constants, to compare before each later call.

    Defaults that the outermost function may get later matter to no call that has run: each of these
    passed all arguments.
    """
    label = f"the definition of {f.__name__}"
    if outermost and not (f.__defaults__ or f.__kwdefaults__):
        ev.captures.add("code", f, None, f.__code__, label)
    else:
        ev.captures.add("function", f, None, definition_of(f), label)
    ev.keep.append(f)


def function_from_syntax(ev: Evaluation, frame: Frame, node: Value) -> Function:
    """Return the `Function` for a `def` or `lambda` in evaluated code.

    `frame` is the frame in which the syntax node is evaluated.
    """
    source = frame.source.inner(node)
    a = node.args
    defaults = tuple(evaluate(ev, frame, d) for d in a.defaults)
    named = {
        x.arg: evaluate(ev, frame, d)
        for x, d in zip(a.kwonlyargs, a.kw_defaults, strict=True)
        if d is not None
    }
    return Function(source, defaults, named, frame.globals, parent=frame)


@replaces(typing.cast)
def _cast(ev: Evaluation, typ: Value, val: Value) -> Value:
    """Return `val` unchanged: the replacement of `typing.cast` in compiled code."""
    return val


def enter(ev: Evaluation, f: Function, args: Args, kwargs: Kwargs) -> Value:
    """Evaluate a call of a function from source into the graph and return the call's result.

    A call that is recursive under a graph condition becomes a call of a *named graph*, a separate
    graph that can call itself.

    Raises:
        RecursionError: there are more than `max_call_depth` nested calls.
        TypeError: the arguments do not fit the parameters.
    """
    if len(ev.calls.frames) >= settings.max_call_depth:
        raise RecursionError(
            f"Exceed function call depth limit {settings.max_call_depth}: {f.__name__} calls "
            "itself without end, or too deep (set_context(max_call_depth=))"
        )
    again = open_call(ev, f, args, kwargs)
    if again is not None:
        return again()
    record = ev.calls.open_calls[f.source.node][-1]
    mark = len(ev.builder.nodes), len(ev.builder.types)
    try:
        return _evaluate_body(ev, f, args, kwargs)
    except Recursive as found:
        if found.record is not record:
            raise
        ev.builder.rewind(*mark)
        if found.numbers:
            args, kwargs = with_numbers(ev, args), with_numbers(ev, kwargs)
        ev.calls.open_calls[f.source.node].remove(record)
        try:
            return call_named_graph(ev, f, args, kwargs, lambda a, k: _evaluate_body(ev, f, a, k))
        finally:
            ev.calls.open_calls[f.source.node].append(record)
    finally:
        close_call(ev, f)


def _evaluate_body(ev: Evaluation, f: Function, args: Args, kwargs: Kwargs) -> Value:
    """Evaluate a function's body into the graph, in a new frame; return the function's result."""
    frame = Frame(f, ev.builder.depth)
    _bind_arguments(ev, f, frame, args, kwargs)
    ev.calls.frames.append(frame)
    span = ev.builder.span
    try:
        flow = run_block(ev, frame, f.source.body)
        found = _result_of(ev, frame, flow)
    except Exception as error:
        note_error_span(ev, error, frame, f.source.node)
        raise
    finally:
        ev.calls.frames.pop()
    ev.builder.span = span
    return found


def _result_of(ev: Evaluation, frame: Frame, flow: Flow) -> Value:
    """Return the result of a call, given the `Flow` with which the function's body ended.

    Raises:
        Dead: the body always raises.
        JoinError: only some graph branches return a value; the error's location is the last
            statement that has a `return`.
    """
    if flow.dead:
        raise Dead
    if flow.ret is False:
        return None
    if flow.ret is True or flow.value is None:
        return flow.value
    error = join_error(
        "the result",
        flow.value if isinstance(flow.value, Tensor) else describe(flow.value),
        "None",
        where=("where it returns", "where it ends without `return`"),
    )
    explain_missing_return(ev, error, frame)
    raise error


def _bind_arguments(ev: Evaluation, f: Function, frame: Frame, args: Args, kwargs: Kwargs) -> None:
    """Bind call arguments to parameter names in `frame`, by Python's rules.

    Arguments that Python would refuse cause Python's TypeError.
    """
    a = f.source.node.args
    positional = [x.arg for x in (*a.posonlyargs, *a.args)]
    names = frame.vars
    given = dict(zip(positional, args))
    names.update(given)
    if len(args) > len(positional) and a.vararg is None:
        least = len(positional) - len(f.defaults)
        wanted = f"from {least} to {len(positional)}" if f.defaults else str(len(positional))
        raise TypeError(
            f"{f.__name__}() takes {wanted} positional argument{'s' if wanted != '1' else ''} but "
            f"{len(args)} {'was' if len(args) == 1 else 'were'} given"
        )
    if a.vararg is not None:
        names[a.vararg.arg] = tuple(args[len(positional) :])
    only_positional = {x.arg for x in a.posonlyargs}
    named_only = [x.arg for x in a.kwonlyargs]
    extra: dict[str, Value] = {}
    for k, v in kwargs.items():
        if k in named_only or (k in positional and k not in only_positional):
            if k in names:
                raise TypeError(f"{f.__name__}() got multiple values for argument {k!r}")
            names[k] = v
        elif a.kwarg is not None:
            extra[k] = v
        elif k in only_positional:
            misplaced = [x for x in positional if x in only_positional and x in kwargs]
            raise TypeError(
                f"{f.__name__}() got some positional-only arguments passed as keyword arguments: "
                f"'{', '.join(misplaced)}'"
            )
        else:
            raise TypeError(f"{f.__name__}() got an unexpected keyword argument {k!r}")
    if a.kwarg is not None:
        names[a.kwarg.arg] = ev.owned.add(extra)
    first = len(positional) - len(f.defaults)
    missing = []
    for i, k in enumerate(positional):
        if k not in names:
            if i >= first:
                names[k] = f.defaults[i - first]
            else:
                missing.append(k)
    if missing:
        raise TypeError(
            f"{f.__name__}() missing {len(missing)} required positional "
            f"argument{'s' if len(missing) > 1 else ''}: {' and '.join(map(repr, missing))}"
        )
    for k in named_only:
        if k not in names:
            if k not in f.kw_defaults:
                raise TypeError(f"{f.__name__}() missing 1 required keyword-only argument: {k!r}")
            names[k] = f.kw_defaults[k]
    if positional and positional[0] in names:
        frame.first = names[positional[0]]
