"""Evaluates the statements `raise`, `assert`, `with` and `try`.

An error whose condition is known is raised while compiling, and its handlers run immediately. An
error that depends on graph values becomes a node, which raises it when the graph runs. Compiled
code cannot catch such an error, so programs that try to catch it must be refused.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import sys
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType

from ...errors import JoinError, LabelRangeError, ShapeError, UnsupportedSyntaxError
from ...execution.source_spans import mark_source
from ...ir.builder import expand
from ...ir.liveness import may_raise
from ...ir.values import GraphObject, NeedsValue
from ...tensor import Tensor
from ..diagnostics import unsupported
from ..libraries import is_framework, user_method
from ..source import source_of
from ..state.calls import Frame
from ..state.evaluation import Evaluation
from ..state.journal import Scope
from ..state.outside import Restart
from ..types import Args, Kwargs, Value
from ..values.flow import NORMAL, Flow
from ..values.nested import depends_on_graph, with_subgraphs
from .attributes import get_attribute
from .blocks import evaluate_rest, run_block
from .branches import select
from .dispatch import call, evaluate, syntax
from .host import END_OF_ITERATION, append_effect
from .operators import condition
from .outside import special_method
from .recursion import Recursive
from .spans import error_spans, note_error_span
from .targets import assign
from .truth import truth
from .variables import remove, store

_NO_CAUSE = object()  # of a `raise` without `from`


def raise_error(ev: Evaluation, error: Value, cause: Value = _NO_CAUSE) -> Flow:
    """Trace the statement `raise error from cause`; return the `Flow` of a block that raises.

    The error is raised at compile time if it does not depend on graph values and the graph has no
    effects before it. Otherwise a node raises a new error at each run. `_NO_CAUSE` stands for a
    statement without `from`.
    """
    if isinstance(error, type) and issubclass(error, BaseException):
        error = call(ev, error, (), {})
    if isinstance(cause, type) and issubclass(cause, BaseException):
        cause = call(ev, cause, (), {})
    context = ev.calls.handled[-1] if ev.calls.handled else None
    recipe = _recipe(ev, error, context), _recipe(ev, cause)
    unconditional = ev.journal.conditions == (ev.journal.tries[-1] if ev.journal.tries else 0)
    known = not depends_on_graph([(r.args, r.attributes) for r in recipe if isinstance(r, _Made)])
    known = known and not isinstance(error, GraphObject) and not isinstance(cause, GraphObject)
    if unconditional and known and (ev.journal.tries or not ev.has_effects()):
        if id(error) not in ev.owned.objects:
            ev.calls.raised_outside[id(error)] = error
        if cause is _NO_CAUSE:
            raise error
        raise error from cause

    def run(*given: Value) -> None:
        made, reason = (r.made(v) if isinstance(r, _Made) else v for r, v in zip(recipe, given))
        if reason is _NO_CAUSE:
            raise made
        raise made from reason

    operands = [
        (r.args, r.attributes) if isinstance(r, _Made) else e
        for r, e in zip(recipe, (error, cause))
    ]
    what = END_OF_ITERATION if isinstance(error, StopIteration) else "raise"
    append_effect(ev, run, tuple(operands), what, commit=True)
    return Flow(dead=True)


def raise_when_run(ev: Evaluation, error: Exception) -> None:
    """Append a node that raises an error of evaluated code when the graph runs.

    The effects that precede it in the program, such as writes to tensors, happen first.
    """
    _own(ev, error)
    recipe = _recipe(ev, error)
    spans = tuple(error_spans(ev, error))

    def run(given: Value) -> None:
        made = recipe.made(given) if recipe is not None else given
        mark_source(made, spans)
        raise made

    operand = error if recipe is None else (recipe.args, recipe.attributes)
    append_effect(ev, run, (operand,), "raise", commit=True)


class _Made:
    """The class, arguments and attributes of an exception, to make a new one at each run.

    Attributes:
        kind, args, attributes: its class, arguments and attributes.
        context: how to make the exception that was being handled when it was raised, or that
            exception itself, or None.
    """

    def __init__(self, error: BaseException, context: _Made | BaseException | None) -> None:
        self.kind = type(error)
        self.args = error.args
        self.attributes = dict(vars(error))
        self.context = context

    def made(self, given: tuple[Args, dict[str, Value]]) -> BaseException:
        """Return a new exception of the class, with the given arguments and attributes."""
        args, attributes = given
        found = self.kind.__new__(self.kind, *args)
        found.args = args
        vars(found).update(attributes)
        of = self.context
        found.__context__ = of.made((of.args, of.attributes)) if isinstance(of, _Made) else of
        return found


# Errors that depend on the answers to questions about sizes only.
_DECIDED = (ZeroDivisionError, LookupError, StopIteration, ShapeError)


def _check_caught(ev: Evaluation, error: BaseException) -> None:
    """Raise UnsupportedSyntaxError if `error` may occur only because sizes are symbolic.

    It is called when traced code catches an error raised at compile time. Nothing is raised if all
    sizes are numbers, if the code raised `error` itself, or if `error` is of a class in `_DECIDED`,
    such as IndexError, because a run with numbers as sizes would raise such errors as well.
    """
    own = id(error) in ev.owned.objects or id(error) in ev.calls.raised_outside
    if ev.scope is None or own or isinstance(error, _DECIDED):
        return
    raise unsupported(
        "Try",
        f"The code catches {type(error).__name__}, which symbolic sizes may have caused",
    ) from error


def _own(ev: Evaluation, error: BaseException) -> None:
    """Record that evaluated code made an exception object, so that each run raises a new one.

    An error from outside the function is not recorded: each run raises that object itself.
    """
    if id(error) not in ev.calls.raised_outside:
        ev.owned.add(error)


def _recipe(ev: Evaluation, error: Value, context: BaseException | None = None) -> _Made | None:
    """Return what is needed to make an exception anew at each run, or None.

    The result is None if `error` is from outside the function, because that object itself must be
    raised. `context` is the exception that is being handled; if it is None, the context that the
    error has already is kept.
    """
    if not isinstance(error, BaseException) or id(error) not in ev.owned.objects:
        return None
    context = error.__context__ if context is None else context
    if context is error:
        context = None
    made = _recipe(ev, context)
    if made is None and id(context) in ev.calls.raised_outside:
        return _Made(error, context)
    return _Made(error, made)  # no error of the framework itself


def make_exception(ev: Evaluation, kind: type, args: Args, kwargs: Kwargs) -> Value:
    """Trace a call of an exception class and return the exception.

    An `__init__` that the user wrote is evaluated.
    """
    for name in ("__new__", "__init__"):
        ev.captures.class_attribute(kind, name)
    init = getattr(kind, "__init__")  # noqa: B009  (the function itself is wanted)
    if getattr(kind.__new__, "__code__", None) is not None:
        raise unsupported("Raise", f"Make the {kind.__name__} outside the compiled function")
    if isinstance(init, FunctionType):
        made: Value = kind.__new__(kind, *args, **kwargs)
        ev.owned.add(made)
        call(ev, init, (made, *args), kwargs)
        return made
    return ev.owned.add(kind(*args, **kwargs))


def enter_context(ev: Evaluation, manager: Value) -> tuple[Callable[..., Value], Value]:
    """Trace a context manager's `__enter__`; return (its `__exit__` call, value bound by `as`).

    The first item is a function that takes the three arguments of `__exit__` (exception class,
    exception, traceback) and returns its result.

    Raises:
        UnsupportedSyntaxError: only Python can enter the manager, such as a lock or a file.
    """
    kind = type(manager)
    if isinstance(manager, GraphObject):
        raise _only_python("an object that Python made")
    methods = [special_method(ev, manager, name) for name in ("__enter__", "__exit__")]
    for name in ("__enter__", "__exit__"):
        if not hasattr(kind, name):
            shown = "Tensor" if isinstance(manager, Tensor) else kind.__name__
            # the class that this version of Python raises
            error = TypeError if sys.version_info >= (3, 11) else AttributeError
            raise error(
                f"{shown!r} object does not support the context manager protocol (no {name})"
            )
    if kind is contextlib.nullcontext:
        return lambda *a: None, get_attribute(ev, manager, "enter_result")
    evaluated = None not in methods
    if not evaluated and kind is not contextlib.suppress and not is_framework(kind.__module__):
        raise _only_python(f"a {kind.__name__}")
    if kind is contextlib.suppress:
        return lambda *a: manager.__exit__(*a), None
    leave = functools.partial(call, ev, manager.__exit__)
    return lambda *a: leave(a, {}), call(ev, manager.__enter__, (), {})


def _only_python(what: str) -> UnsupportedSyntaxError:
    """Return the error for a `with` on an object that compiled code cannot enter."""
    return UnsupportedSyntaxError(
        f"with: got {what} inside jit, which only Python can enter and leave",
        construct="With",
        remedy="Move the `with` out of the compiled function",
    )


def _may_suppress(manager: Value) -> bool:
    """Return whether a context manager's `__exit__` may suppress an error by returning true."""
    method = user_method(manager, "__exit__")
    if method is None:
        return type(manager) is contextlib.suppress
    return any(
        isinstance(n, ast.Return)
        and n.value is not None
        and not (isinstance(n.value, ast.Constant) and not n.value.value)
        for n in ast.walk(source_of(method).node)
    )


@syntax(ast.Assert)
def _assert(ev: Evaluation, frame: Frame, node: ast.Assert) -> Flow:
    cond = condition(ev, frame, node.test)

    def fail() -> Flow:
        arguments = () if node.msg is None else (evaluate(ev, frame, node.msg),)
        return raise_error(ev, call(ev, AssertionError, arguments, {}))

    if cond is True:
        return NORMAL
    if cond is False:
        return fail()
    return select(ev, cond, lambda: NORMAL, fail, "assert", own=frame)


@syntax(ast.Raise)
def _raise(ev: Evaluation, frame: Frame, node: ast.Raise) -> Flow:
    if node.exc is None:
        if not ev.calls.handled:
            raise RuntimeError("No active exception to reraise")
        raise ev.calls.handled[-1]
    error = evaluate(ev, frame, node.exc)
    cause = _NO_CAUSE if node.cause is None else evaluate(ev, frame, node.cause)
    return raise_error(ev, error, cause)


@syntax(ast.With)
def _with(ev: Evaluation, frame: Frame, node: ast.With) -> Flow:
    return _with_items(ev, frame, node, 0)


def _with_items(ev: Evaluation, frame: Frame, node: ast.With, i: int) -> Flow:
    """Trace the context managers of a `with` statement from index `i` on, then its body.

    Returns the `Flow` of the statement.
    """
    if i == len(node.items):
        return run_block(ev, frame, node.body)
    item = node.items[i]
    manager = evaluate(ev, frame, item.context_expr)
    try:
        leave, value = enter_context(ev, manager)
    except Exception as error:
        note_error_span(ev, error, frame, item.context_expr)
        raise
    if item.optional_vars is not None:
        assign(ev, frame, item.optional_vars, value)
    start = len(ev.builder.nodes)
    depth = ev.journal.conditions
    ev.journal.tries.append(depth)  # an error that is certain reaches `__exit__` while compiling
    try:
        flow = _with_items(ev, frame, node, i + 1)
    except (Restart, NeedsValue, Recursive, UnsupportedSyntaxError, JoinError):
        raise
    except Exception as error:
        if ev.calls.conditions_of(error, depth) != depth:
            raise _cannot_leave() from error  # raised in one branch of a graph condition
        _check_caught(ev, error)
        _own(ev, error)
        with ev.calls.handling(error):
            ends = truth(ev, leave(type(error), error, None))
        if not isinstance(ends, bool):
            raise _cannot_leave() from error
        if not ends:
            raise
        return NORMAL
    finally:
        ev.journal.tries.pop()
    made = ev.builder.nodes[start:]
    _, acts = _has_effects(ev, lambda: leave(None, None, None))
    if (acts or _may_suppress(manager)) and (flow.dead or _may_fail(made, ev.builder.types)):
        raise _cannot_leave()
    return flow


def _cannot_leave() -> UnsupportedSyntaxError:
    """Return the error for a `with` block that may raise at run time, too late for `__exit__`."""
    return unsupported(
        "With",
        "The end of a `with` block after an error that depends on a Tensor cannot be compiled: "
        "move the `with` outside",
    )


def _has_effects(ev: Evaluation, run: Callable[[], Value]) -> tuple[Value, bool]:
    """Evaluate `__exit__` or a `finally` block; return (its result, whether it has effects).

    Effects are side effects of nodes, and writes to tensors or to objects from outside the
    function. The caller refuses such effects after code that may raise at run time, because the
    graph ends at the error and the effects would be lost.
    """
    nodes = len(ev.builder.nodes)
    ev.journal.branches.append({})
    try:
        result = run()
    finally:
        written = [location for location, _ in ev.journal.branches[-1].values()]
        ev.journal.keep()
    acts = any(n.effects for n in ev.builder.nodes[nodes:])
    return result, acts or any(
        x.kind in ("tensor", "slot")
        or not (isinstance(x.owner, Scope) or id(x.owner) in ev.owned.objects)
        for x in written
    )


@syntax(ast.Try)
def _try(ev: Evaluation, frame: Frame, node: ast.Try) -> Flow:
    start = len(ev.builder.nodes)
    depth = ev.journal.conditions
    try:
        flow = (
            _guarded(ev, frame, node)
            if node.handlers
            else run_block(ev, frame, [*node.body, *node.orelse])
        )
    except (Restart, NeedsValue, Recursive, UnsupportedSyntaxError, JoinError):
        raise
    except Exception as error:
        if not node.finalbody:
            raise
        if ev.calls.conditions_of(error, depth) != depth:
            raise _unfinished() from error  # raised in one branch of a graph condition
        with ev.calls.handling(error):
            last = run_block(ev, frame, node.finalbody)
        if last.normal:
            raise
        if not last.certain:
            raise _unfinished() from error  # the graph decides whether the error is dropped
        _check_caught(ev, error)
        return last  # the block returned or left a loop, which drops the error
    if not node.finalbody:
        return flow
    return _finally(ev, frame, node, flow, start)


def _finally(ev: Evaluation, frame: Frame, node: ast.Try, flow: Flow, start: int) -> Flow:
    """Trace the `finally` block of a `try` and return the `Flow` of the whole `try` statement.

    Args:
        ev: the evaluation.
        frame: the frame of the function.
        node: the statement.
        flow: the `Flow` of the statement before `finally`.
        start: the number of graph nodes before the `try`.
    """
    made = ev.builder.nodes[start:]
    last, acts = _has_effects(ev, lambda: run_block(ev, frame, node.finalbody))
    if (acts or not last.normal) and (flow.dead or _may_fail(made, ev.builder.types)):
        raise _unfinished()
    if flow.dead or last.normal:
        return flow
    return last if last.certain else evaluate_rest(ev, frame, last, lambda: flow)


def _unfinished() -> UnsupportedSyntaxError:
    """Return the error for a `try` with `finally` whose block may raise when the graph runs.

    The graph ends at such an error, so that the `finally` block would not run.
    """
    return unsupported(
        "Try",
        "A `finally` block after an error that depends on a Tensor cannot be compiled: move the "
        "`try` outside",
    )


def _guarded(ev: Evaluation, frame: Frame, node: ast.Try) -> Flow:
    """Trace a `try` with `except` clauses and return its `Flow`, without its `finally` block.

    An error that is raised at compile time is handled immediately.
    """
    nodes = len(ev.builder.nodes)
    depth = ev.journal.conditions
    ev.journal.tries.append(depth)
    try:
        flow = run_block(ev, frame, node.body)
    except (Restart, NeedsValue, Recursive, UnsupportedSyntaxError, JoinError):
        ev.journal.tries.pop()
        raise
    except Exception as error:
        ev.journal.tries.pop()
        for handler in node.handlers:
            if handler.type is not None:
                kinds = evaluate(ev, frame, handler.type)
                ev.captures.bases_of(type(error))
                if not isinstance(error, kinds):
                    continue
            if ev.calls.conditions_of(error, depth) != depth:
                raise _uncaught() from error  # raised in one branch of a graph condition
            _check_caught(ev, error)
            ev.calls.trails.pop(id(error), None)  # it may be raised again elsewhere
            _own(ev, error)
            if handler.name:
                store(ev, frame, handler.name, error)
            try:
                with ev.calls.handling(error):
                    return run_block(ev, frame, handler.body)
            finally:
                if handler.name and handler.name in frame.vars:  # Python unbinds the name
                    remove(ev, frame, handler.name)
        raise
    ev.journal.tries.pop()
    made = ev.builder.nodes[nodes:]
    if not frame.source.internal and (
        _may_raise(made)
        or (_checks_indices(made, ev.builder.types) and _catches_index(ev, frame, node))
    ):
        raise _uncaught()  # handlers in the framework expect errors at compile time
    if flow.certain or not node.orelse:
        return flow
    run = functools.partial(run_block, ev, frame, node.orelse)
    return run() if flow.normal else evaluate_rest(ev, frame, flow, run)


def _catches_index(ev: Evaluation, frame: Frame, node: ast.Try) -> bool:
    """Return whether a handler of a `try` catches the error for an index that is out of range."""
    for handler in node.handlers:
        if handler.type is None or issubclass(LabelRangeError, evaluate(ev, frame, handler.type)):
            return True
    return False


def _uncaught() -> UnsupportedSyntaxError:
    """Return the error for an `except` clause around code that may raise at run time.

    The clause is evaluated at compile time and cannot catch what the running graph raises.
    """
    return unsupported(
        "Try",
        "An error that depends on a Tensor cannot be caught in compiled code: move the `try` "
        "outside",
    )


# Names of host calls that cannot fail.
_CANNOT_FAIL = {
    "print", "bool", "object", "tensor object", "is_", "isinstance", "type", "hasattr",
    "list.append", "list.clear", "list.reverse", "dict.clear", "dict.__setitem__", "set.add",
}  # fmt: skip


def _may_fail(nodes: Sequence[Value], types: Sequence[Value]) -> bool:
    """Return whether Python code or a kernel may raise an error when the given nodes run.

    Args:
        nodes: nodes of one graph.
        types: the types of that graph's values.
    """
    return _may_raise(nodes) or _checks_indices(nodes, types)


def _checks_indices(nodes: Iterable[Value], types: Sequence[Value]) -> bool:
    """Return whether a node may raise the error for an index or a label that is out of range.

    Args:
        nodes: nodes of one graph.
        types: the types of that graph's values.
    """
    for n in nodes:
        if n.op.traits.checks:
            return True
        inner = [*n.graphs]
        if n.op.is_composite:
            operands = tuple([None if i is None else types[i] for i in n.operands])
            inner.append(expand(n.op, operands, n.attributes))
        if any(_checks_indices(g.nodes, g.types) for g in inner):
            return True
    return False


def _may_raise(nodes: Sequence[Value]) -> bool:
    """Return whether one of the given nodes runs Python code that may raise an error."""
    if any(map(may_raise, nodes)):
        return True
    calls = (n.attributes["run"].name for n in with_subgraphs(nodes) if n.op.name == "host_call")
    return any(name not in _CANNOT_FAIL and not name.startswith("set ") for name in calls)
