"""Statements: one function per kind."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..errors import JoinError, RefusedError, UnsupportedSyntaxError
from ..ir.values import GraphObject, GraphScalar, NeedsValue
from ..runtime.control import may_raise
from ..tensor import Tensor
from ..types import INT
from .branches import as_flag, either, negated, select
from .calls import Dead, call, enter_context, function_of, raise_now
from .diagnostics import unsupported
from .expressions import assign, condition, delete, evaluate, evaluate_in_place
from .external import seen
from .frames import Frame, remove, store
from .loops import graph_loop
from .ranges import GraphRange
from .recursion import Recursive
from .spans import begin, explain_join, note_place
from .trace import Local, Restart, Trace
from .values import NORMAL, NOTHING, Flow, Maybe

__all__ = ["run_block"]

Run = Callable[[Trace, Frame, Any], Flow]
STATEMENTS: dict[type, Run] = {}
# A loop that is unrolled for this many turns is likely to be endless.
UNROLL_LIMIT = 200_000


def statement(*kinds: type) -> Callable[[Run], Run]:
    def enter(function: Run) -> Run:
        for kind in kinds:
            STATEMENTS[kind] = function
        return function

    return enter


def run_block(t: Trace, frame: Frame, body: Sequence[ast.stmt]) -> Flow:
    """Evaluate statements in order, until one ends the block."""
    for i, node in enumerate(body):
        begin(t, frame, node)
        try:
            run = STATEMENTS.get(type(node))
            if run is None:
                raise refused(type(node).__name__, _remedy(node))
            flow = run(t, frame, node)
            if flow.normal:
                continue
            rest = body[i + 1 :]
            if flow.certain or not rest:
                return flow
            return _rest(t, frame, flow, functools.partial(run_block, t, frame, rest))
        except Dead:
            return Flow(dead=True)
        except Exception as error:
            if isinstance(error, JoinError):
                explain_join(error, frame.source, body, i)
            note_place(t, error, frame, node)
            raise
    return NORMAL


def _rest(t: Trace, frame: Frame, flow: Flow, run: Callable[[], Flow]) -> Flow:
    """Go on only where `flow`, of which not all is known, went through."""
    stopped = either(either(flow.ret, flow.brk), flow.cont)
    return select(
        t,
        stopped,
        lambda: _settled(flow),
        run,
        "the result",
        ("fall-through", "return"),
        frame.vars,
    )


def _settled(flow: Flow) -> Flow:
    """`flow` where it is known that it did not go through: a single flag is certain then."""
    flags = [flow.ret is not False, flow.brk is not False, flow.cont is not False]
    if sum(flags) == 1:
        ret, brk, cont = flags
        return Flow(ret, brk, cont, flow.value)
    return flow


def refused(construct: str, remedy: str) -> UnsupportedSyntaxError:
    return unsupported(construct, None, remedy)


def _remedy(node: ast.stmt) -> str:
    return _REMEDIES.get(type(node).__name__, "Move it out of the compiled function")


_REMEDIES = {
    "AsyncFunctionDef": "Wanted a plain function: define it outside and call it line by line",
    "AsyncFor": "Wanted a plain `for`",
    "AsyncWith": "Wanted a plain `with`",
    "ClassDef": "Define the class outside the compiled function",
    "TryStar": "Wanted a plain `try`",
}


# ---- simple statements --------------------------------------------------------------------------


@statement(ast.Expr)
def _expression(t: Trace, frame: Frame, node: ast.Expr) -> Flow:
    if not isinstance(node.value, ast.Constant):  # a docstring
        evaluate(t, frame, node.value)
    return NORMAL


@statement(ast.Pass, ast.Global, ast.Nonlocal)
def _nothing(t: Trace, frame: Frame, node: ast.stmt) -> Flow:
    return NORMAL


@statement(ast.Assign)
def _assign(t: Trace, frame: Frame, node: ast.Assign) -> Flow:
    value = evaluate(t, frame, node.value)
    for target in node.targets:
        assign(t, frame, target, value)
    return NORMAL


@statement(ast.AnnAssign)
def _annotated(t: Trace, frame: Frame, node: ast.AnnAssign) -> Flow:
    if node.value is not None:
        assign(t, frame, node.target, evaluate(t, frame, node.value))
    return NORMAL


@statement(ast.AugAssign)
def _augmented(t: Trace, frame: Frame, node: ast.AugAssign) -> Flow:
    evaluate_in_place(t, frame, node)
    return NORMAL


@statement(ast.Delete)
def _delete(t: Trace, frame: Frame, node: ast.Delete) -> Flow:
    for target in node.targets:
        delete(t, frame, target)
    return NORMAL


@statement(ast.FunctionDef)
def _define(t: Trace, frame: Frame, node: ast.FunctionDef) -> Flow:
    made: Any = function_of(t, frame, node)
    for decorator in reversed(node.decorator_list):
        made = call(t, evaluate(t, frame, decorator), (made,), {})
    store(t, frame, node.name, made)
    return NORMAL


@statement(ast.Return)
def _return(t: Trace, frame: Frame, node: ast.Return) -> Flow:
    return Flow(ret=True, value=None if node.value is None else evaluate(t, frame, node.value))


@statement(ast.Break)
def _break(t: Trace, frame: Frame, node: ast.Break) -> Flow:
    return Flow(brk=True)


@statement(ast.Continue)
def _continue(t: Trace, frame: Frame, node: ast.Continue) -> Flow:
    return Flow(cont=True)


@statement(ast.Import)
def _import(t: Trace, frame: Frame, node: ast.Import) -> Flow:
    import importlib

    for a in node.names:
        module = importlib.import_module(a.name)
        if a.asname is None:
            module = importlib.import_module(a.name.split(".")[0])
        store(t, frame, (a.asname or a.name).split(".")[0], module)
    return NORMAL


@statement(ast.ImportFrom)
def _import_from(t: Trace, frame: Frame, node: ast.ImportFrom) -> Flow:
    import importlib

    package = frame.globals.get("__package__")
    module = importlib.import_module("." * node.level + (node.module or ""), package)
    for a in node.names:
        if a.name == "*":
            raise refused("import *", "Name what is imported")
        if hasattr(module, a.name):
            value = getattr(module, a.name)
        else:
            try:
                value = importlib.import_module(f"{module.__name__}.{a.name}")
            except ModuleNotFoundError:
                raise ImportError(
                    f"cannot import name {a.name!r} from {module.__name__!r}"
                ) from None
        store(t, frame, a.asname or a.name, value)
    return NORMAL


@statement(ast.Assert)
def _assert(t: Trace, frame: Frame, node: ast.Assert) -> Flow:
    cond = condition(t, frame, node.test)

    def fail() -> Flow:
        arguments = () if node.msg is None else (evaluate(t, frame, node.msg),)
        return raise_now(t, AssertionError, arguments)

    if cond is True:
        return NORMAL
    if cond is False:
        return fail()
    return select(t, cond, lambda: NORMAL, fail, "assert", own=frame.vars)


@statement(ast.Raise)
def _raise(t: Trace, frame: Frame, node: ast.Raise) -> Flow:
    if node.exc is None:
        current = frame.vars.get("*error")
        if current is None:
            raise RuntimeError("No active exception to reraise")
        raise current
    error = node.exc
    if isinstance(error, ast.Call):  # its arguments may be values of the graph
        kind = evaluate(t, frame, error.func)
        if isinstance(kind, type) and issubclass(kind, BaseException):
            arguments = tuple(evaluate(t, frame, a) for a in error.args)
            return raise_now(t, kind, arguments)
    return raise_now(t, evaluate(t, frame, error), None)


# ---- conditions ---------------------------------------------------------------------------------


@statement(ast.If)
def _if(t: Trace, frame: Frame, node: ast.If) -> Flow:
    cond = condition(t, frame, node.test)
    if cond is True:
        return run_block(t, frame, node.body)
    if cond is False:
        return run_block(t, frame, node.orelse)
    return select(
        t,
        cond,
        lambda: run_block(t, frame, node.body),
        lambda: run_block(t, frame, node.orelse),
        "the result",
        own=frame.vars,
    )


@statement(ast.With)
def _with(t: Trace, frame: Frame, node: ast.With) -> Flow:
    return _with_items(t, frame, node, 0)


def _with_items(t: Trace, frame: Frame, node: ast.With, i: int) -> Flow:
    if i == len(node.items):
        return run_block(t, frame, node.body)
    item = node.items[i]
    manager = evaluate(t, frame, item.context_expr)
    try:
        leave, value = enter_context(t, manager)
    except Exception as error:
        note_place(t, error, frame, item.context_expr)
        raise
    if item.optional_vars is not None:
        assign(t, frame, item.optional_vars, value)
    start = len(t.builder.nodes)
    depth = t.conditions
    try:
        flow = _with_items(t, frame, node, i + 1)
    except (Restart, NeedsValue, Recursive, UnsupportedSyntaxError, JoinError):
        raise
    except Exception as error:
        if leave(type(error), error, None) is not True:
            raise
        if getattr(error, "_duograph_conditions", depth) != depth:
            raise _unleft() from error  # only one branch on a tensor has this error
        return NORMAL
    uncertain = flow.dead or _may_raise(t.builder.nodes[start:])
    _, acts = _acting(t, lambda: leave(None, None, None))
    if uncertain and acts:
        raise _unleft()
    return flow


def _unleft() -> UnsupportedSyntaxError:
    return refused(
        "With",
        "What a `with` does after an error that depends on a Tensor cannot be compiled: move the `with` outside",
    )


def _acting(t: Trace, run: Callable[[], Any]) -> tuple[Any, bool]:
    """What `run` returns, and whether it does something that stays when the graph fails afterwards."""
    nodes = len(t.builder.nodes)
    state = {id(s): s.current for s in t.slots.values()}
    result = run()
    acts = any(n.effects for n in t.builder.nodes[nodes:])
    return result, acts or any(
        s.current is not state.get(id(s), s.incoming) for s in t.slots.values()
    )


@statement(ast.Try)
def _try(t: Trace, frame: Frame, node: ast.Try) -> Flow:
    start = len(t.builder.nodes)
    depth = t.conditions
    try:
        flow = (
            _guarded(t, frame, node)
            if node.handlers
            else run_block(t, frame, [*node.body, *node.orelse])
        )
    except (Restart, NeedsValue, Recursive, UnsupportedSyntaxError, JoinError):
        raise
    except Exception as error:
        if not node.finalbody:
            raise
        if getattr(error, "_duograph_conditions", depth) != depth:
            raise _unfinished() from error  # only one branch on a tensor has this error
        last = run_block(t, frame, node.finalbody)
        if last.normal:
            raise
        return last  # it returned, or left a loop: the error is gone
    if not node.finalbody:
        return flow
    return _finally(t, frame, node, flow, start)


def _finally(t: Trace, frame: Frame, node: ast.Try, flow: Flow, start: int) -> Flow:
    """What stands under `finally`; what came before is the nodes from `start` on."""
    uncertain = flow.dead or _may_raise(t.builder.nodes[start:])
    last, acts = _acting(t, lambda: run_block(t, frame, node.finalbody))
    if uncertain and (acts or not last.normal):
        raise _unfinished()
    return flow if flow.dead or last.normal else last


def _unfinished() -> UnsupportedSyntaxError:
    return refused(
        "Try",
        "What `finally` does after an error that depends on a Tensor cannot be compiled: move the `try` outside",
    )


def _guarded(t: Trace, frame: Frame, node: ast.Try) -> Flow:
    """A `try` with handlers: an error that arises while compiling is handled there and then."""
    nodes = len(t.builder.nodes)
    depth = t.conditions
    t.tries.append(depth)
    try:
        flow = run_block(t, frame, node.body)
    except (Restart, NeedsValue, Recursive, UnsupportedSyntaxError, JoinError):
        t.tries.pop()
        raise
    except Exception as error:
        t.tries.pop()
        for handler in node.handlers:
            if handler.type is not None:
                kinds = evaluate(t, frame, handler.type)
                if not isinstance(error, kinds):
                    continue
            if getattr(error, "_duograph_conditions", depth) != depth:
                raise _uncaught() from error  # only one branch on a tensor has this error
            if handler.name:
                store(t, frame, handler.name, error)
            frame.vars["*error"] = error
            try:
                return run_block(t, frame, handler.body)
            finally:
                frame.vars.pop("*error", None)
                if handler.name and handler.name in frame.vars:  # Python unbinds it
                    remove(t, frame, handler.name)
        raise
    t.tries.pop()
    if not frame.source.internal and _may_raise(t.builder.nodes[nodes:]):
        raise _uncaught()  # (ours catch what arises while compiling)
    if flow.normal and node.orelse:
        return run_block(t, frame, node.orelse)
    return flow


def _uncaught() -> UnsupportedSyntaxError:
    return refused(
        "Try",
        "An error that depends on a Tensor cannot be caught in compiled code: move the `try` outside",
    )


# Calls of Python that cannot fail.
_SAFE = {"print", "bool", "object", "tensor object", "is_", "isinstance", "type", "hasattr"}


def _may_raise(nodes: Iterable[Any]) -> bool:
    """Whether some of these nodes may raise an error when the graph runs."""
    for n in _with_graphs(nodes):
        name = n.op.name
        if name == "host_call":
            what = n.attributes["run"].name
            if what not in _SAFE and not what.startswith("set "):
                return True
        elif (name == "scalar" and may_raise(name, n.attributes)) or (
            name == "to_host" and n.attributes["kind"] is INT
        ):
            return True
    return False


def _with_graphs(nodes: Iterable[Any]) -> Iterable[Any]:
    for n in nodes:
        yield n
        for g in n.graphs:
            yield from _with_graphs(g.nodes)


# ---- loops --------------------------------------------------------------------------------------


class _LoopState:
    """How a loop stands, as places that branches and loops can write: broke, returned, with what."""

    def __init__(self, t: Trace) -> None:
        self.vars = Local(t.builder.depth)
        self.vars.update({"*brk": False, "*ret": False, "*value": NOTHING})

    def note(self, t: Trace, flow: Flow) -> None:
        """A turn ended with `flow`."""
        t.set_item(self.vars, "*brk", flow.brk)
        t.set_item(self.vars, "*ret", flow.ret)
        t.set_item(self.vars, "*value", flow.value if flow.ret is not False else NOTHING)

    @property
    def stopped(self) -> Any:
        return either(self.vars["*brk"], self.vars["*ret"])


@statement(ast.While)
def _while(t: Trace, frame: Frame, node: ast.While) -> Flow:
    state = _LoopState(t)
    first = True
    for _ in range(UNROLL_LIMIT):
        cond = condition(t, frame, node.test)
        if cond is False:
            return run_block(t, frame, node.orelse)
        if cond is not True:
            return _graph_while(t, frame, node, state, cond, cond if first else True)
        flow = run_block(t, frame, node.body)
        first = False
        if flow.dead or flow.ret is True:
            return flow
        if flow.brk is True:
            return NORMAL
        if flow.ret is not False or flow.brk is not False:
            state.note(t, flow)
            going = negated(state.stopped)
            cond = _next(t, frame, node, going)
            return _graph_while(t, frame, node, state, cond, True)
    raise RefusedError(
        f"while: the loop was unrolled for {UNROLL_LIMIT} turns while compiling and goes on",
        construct="While",
        remedy="Give it a condition that becomes false, or one that depends on a Tensor",
    )


def _next(t: Trace, frame: Frame, node: ast.While, going: Any) -> Any:
    """Whether there is another turn, where the last one did not stop the loop for certain."""
    if going is True:
        return condition(t, frame, node.test)

    return _both(t, going, lambda: condition(t, frame, node.test))


def _both(t: Trace, flag: Any, test: Callable[[], Any]) -> Any:
    """`flag and test()`."""
    return select(t, flag, lambda: as_flag(test()), lambda: as_flag(False), "the condition")


def _graph_while(
    t: Trace, frame: Frame, node: ast.While, state: _LoopState, cond: Any, ran: Any
) -> Flow:
    def step() -> Any:
        flow = run_block(t, frame, node.body)
        if flow.dead:
            return False
        state.note(t, flow)
        going = negated(state.stopped)
        if going is False:
            return False
        return _next(t, frame, node, going)

    graph_loop(t, cond, step, ran)
    return _end(t, frame, node.orelse, state)


def _end(t: Trace, frame: Frame, orelse: Sequence[ast.stmt], state: _LoopState) -> Flow:
    """After a loop of the graph: its `else`, and the return that happened in it."""
    brk, ret = state.vars["*brk"], state.vars["*ret"]
    value = state.vars["*value"]
    value = value.value if isinstance(value, Maybe) else value
    flow = Flow(ret=ret, value=None if value is NOTHING else value)
    if not orelse:
        return flow
    stopped = either(brk, ret)
    if stopped is False:
        return run_block(t, frame, orelse)
    if stopped is True:
        return flow
    # when it cannot have been a `break`, a loop that stopped has returned
    left = Flow(ret=True, value=flow.value) if brk is False else flow
    return select(
        t,
        stopped,
        lambda: left if ret is not False else NORMAL,
        lambda: run_block(t, frame, orelse),
        "the result",
        ("loop else", "loop"),
        frame.vars,
    )


@statement(ast.For)
def _for(t: Trace, frame: Frame, node: ast.For) -> Flow:
    items = evaluate(t, frame, node.iter)
    if isinstance(items, GraphRange):
        return _graph_for(t, frame, node, items)
    if isinstance(items, (GraphScalar, GraphObject)):
        raise NeedsValue(
            f"for: got a Python {items._type.name} to iterate over that is known only when the compiled function "
            f"runs; wanted something known while compiling"
        )
    if isinstance(items, Tensor):
        rows = items
        if not rows.shape:
            iter(rows)  # raises
        items = (rows[i] for i in range(rows.shape[0]))
    return _unrolled(t, frame, node, iterate(t, items))


def iterate(t: Trace, items: Any) -> Any:
    """An iterator over an object of the evaluation."""
    seen(t, items)
    kind = type(items)
    found = getattr(kind, "__iter__", None)
    if (
        found is not None
        and hasattr(found, "__code__")
        and not kind.__module__.startswith("duograph")
    ):
        items = call(t, items.__iter__, (), {})
        if hasattr(type(items), "__next__") and hasattr(type(items).__next__, "__code__"):
            return _staged_iterator(t, items)
    return iter(items)


def _staged_iterator(t: Trace, items: Any) -> Any:
    while True:
        try:
            yield call(t, items.__next__, (), {})
        except StopIteration:
            return


def _unrolled(t: Trace, frame: Frame, node: ast.For, items: Any) -> Flow:
    state = _LoopState(t)
    uncertain = False
    for count, item in enumerate(items):
        if count > UNROLL_LIMIT:
            raise RefusedError(
                f"for: the loop was unrolled for {UNROLL_LIMIT} turns while compiling and goes on",
                construct="For",
                remedy="Iterate over something that ends, or write a `while` on a Tensor",
            )

        def turn(item: Any = item) -> Flow:
            begin(t, frame, node)
            assign(t, frame, node.target, item)
            flow = run_block(t, frame, node.body)
            return flow

        if not uncertain:
            flow = turn()
            if flow.dead or flow.ret is True:
                return flow
            if flow.brk is True:
                return NORMAL
            if flow.ret is not False or flow.brk is not False:
                uncertain = True
                state.note(t, flow)
            continue

        def guarded() -> Flow:
            flow = turn()
            if not flow.dead:
                state.note(t, Flow(flow.ret, flow.brk, False, flow.value))
            return Flow(dead=flow.dead)

        select(t, negated(state.stopped), guarded, lambda: NORMAL, "the result")
    if not uncertain:
        return run_block(t, frame, node.orelse)
    return _end(t, frame, node.orelse, state)


def _graph_for(t: Trace, frame: Frame, node: ast.For, items: GraphRange) -> Flow:
    """`for i in range(n)` with an n that is known only when the graph runs."""
    state = _LoopState(t)
    counter = Local(t.builder.depth)
    counter["next"] = items.start

    def turn() -> Any:
        assign(t, frame, node.target, counter["next"])
        t.set_item(counter, "next", counter["next"] + items.step)
        flow = run_block(t, frame, node.body)
        if flow.dead:
            return False
        state.note(t, flow)
        return negated(state.stopped)

    def step() -> Any:
        going = turn()
        if going is False:
            return False
        more = items.holds(counter["next"])
        return more if going is True else _both(t, going, lambda: more)

    first = items.holds(counter["next"])
    graph_loop(t, first, step, first)
    return _end(t, frame, node.orelse, state)


# ---- match --------------------------------------------------------------------------------------


def _match(t: Trace, frame: Frame, node: Any) -> Flow:
    from .patterns import matches

    subject = evaluate(t, frame, node.subject)
    return _cases(t, frame, subject, node.cases, matches)


def _cases(t: Trace, frame: Frame, subject: Any, cases: Sequence[Any], matches: Any) -> Flow:
    if not cases:
        return NORMAL
    case = cases[0]
    found = matches(t, frame, subject, case.pattern)
    if found is True and case.guard is not None:
        found = condition(t, frame, case.guard)
    if found is True:
        return run_block(t, frame, case.body)
    if found is False:
        return _cases(t, frame, subject, cases[1:], matches)
    return select(
        t,
        found,
        lambda: run_block(t, frame, case.body),
        lambda: _cases(t, frame, subject, cases[1:], matches),
        "the result",
        ("next case", "case"),
        frame.vars,
    )


STATEMENTS[ast.Match] = _match
