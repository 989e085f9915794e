"""Evaluates `while` and `for`: unrolled over known values, otherwise as a graph loop.

The functions register in `dispatch.SYNTAX`. A `while` is unrolled until its condition is a graph
value; the remaining iterations become a `while_loop` (`graph_loops`). A `for` becomes a graph loop
only over a range of unknown length. The data of a tensor must never decide how often a loop is
unrolled, because the graph serves other data as well.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Sequence

from ...errors import RefusedError
from ...ir.values import GraphObject, GraphScalar, NeedsValue
from ...tensor import Tensor
from ..state.calls import Frame
from ..state.evaluation import Evaluation
from ..state.journal import Scope
from ..types import Flag, Value
from ..values.flow import NORMAL, NOTHING, Flow, Maybe
from ..values.ranges import GraphRange
from .blocks import run_block
from .branches import select
from .dispatch import evaluate, syntax
from .graph_loops import graph_loop
from .iteration import iterate
from .laziness import ahead
from .operators import condition
from .spans import begin_node
from .targets import assign
from .truth import as_flag, either, negated

# A loop that is unrolled for this many iterations is probably endless.
UNROLL_LIMIT = 200_000


class _LoopState:
    """Hidden variables of a traced loop: whether it ended by `break` or `return`, and its result.

    The result is the value that the `return` statement in the loop returns.
    Branches and graph loops treat the hidden variables like variables of the user.
    """

    def __init__(self, ev: Evaluation) -> None:
        self.vars = Scope(ev.builder.depth)
        self.vars.update({"*brk": False, "*ret": False, "*value": NOTHING})

    def note(self, ev: Evaluation, flow: Flow) -> None:
        """Record in the loop's hidden variables how an iteration ended, as its `Flow` says."""
        ev.journal.set_item(self.vars, "*brk", flow.brk)
        ev.journal.set_item(self.vars, "*ret", flow.ret)
        ev.journal.set_item(self.vars, "*value", flow.value if flow.ret is not False else NOTHING)

    @property
    def stopped(self) -> Value:
        """Whether the loop ended by `break` or `return`, as a Python bool or graph bool."""
        return either(self.vars["*brk"], self.vars["*ret"])


@syntax(ast.While)
def _while(ev: Evaluation, frame: Frame, node: ast.While) -> Flow:
    state = _LoopState(ev)
    first = True
    for _ in range(UNROLL_LIMIT):
        cond = condition(ev, frame, node.test)
        if cond is False:
            return run_block(ev, frame, node.orelse)
        if cond is not True:
            return _graph_while(ev, frame, node, state, cond, cond if first else True)
        flow = run_block(ev, frame, node.body)
        first = False
        if flow.dead or flow.ret is True:
            return flow
        if flow.brk is True:
            return NORMAL
        if flow.ret is not False or flow.brk is not False:
            state.note(ev, flow)
            going = negated(state.stopped)
            cond = _next_iteration(ev, frame, node, going)
            return _graph_while(ev, frame, node, state, cond, True)
    raise RefusedError(
        f"while: the loop was unrolled for {UNROLL_LIMIT} iterations while compiling and has not "
        "ended",
        construct="While",
        remedy="Give it a condition that becomes false, or one that depends on a Tensor",
    )


def _next_iteration(ev: Evaluation, frame: Frame, node: ast.While, going: Flag) -> Value:
    """Return whether a `while` loop has another iteration, as a Python or graph bool.

    Args:
        ev: the evaluation.
        frame: the frame of the function.
        node: the loop.
        going: whether the last iteration reached its end, without `break` or `return`. The test is
            evaluated only in this case.
    """
    if going is True:
        return condition(ev, frame, node.test)

    return _and_also(ev, going, lambda: condition(ev, frame, node.test))


def _and_also(ev: Evaluation, flag: Flag, test: Callable[[], Value]) -> Value:
    """Return `flag and test()`, tracing `test` in a branch of a `switch` on the flag."""
    return select(ev, flag, lambda: as_flag(test()), lambda: as_flag(False), "the condition")


def _graph_while(
    ev: Evaluation, frame: Frame, node: ast.While, state: _LoopState, cond: Flag, ran: Flag
) -> Flow:
    """Trace the remaining iterations of a `while` as a graph loop; return the loop's `Flow`.

    Args:
        ev: the evaluation.
        frame: the frame of the function.
        node: the loop.
        state: the hidden variables of the loop.
        cond: whether there is an iteration, a bool of the graph.
        ran: whether variables that the body binds are bound after the loop.
    """

    def step() -> Value:
        flow = run_block(ev, frame, node.body)
        if flow.dead:
            return False
        state.note(ev, flow)
        going = negated(state.stopped)
        if going is False:
            return False
        return _next_iteration(ev, frame, node, going)

    graph_loop(ev, cond, step, ran)
    return _after_loop(ev, frame, node.orelse, state)


def _after_loop(
    ev: Evaluation, frame: Frame, orelse: Sequence[ast.stmt], state: _LoopState
) -> Flow:
    """Trace a loop's `else` block, unless the loop stopped; return the statement's `Flow`.

    A `Flow` says how a statement ended. The loop stopped if it ended by `break` or `return`.
    `state` are the hidden variables of the loop, and `orelse` is the block.
    """
    brk, ret = state.vars["*brk"], state.vars["*ret"]
    value = state.vars["*value"]
    value = value.value if isinstance(value, Maybe) else value
    flow = Flow(ret=ret, value=None if value is NOTHING else value)
    if not orelse:
        return flow
    stopped = either(brk, ret)
    if stopped is False:
        return run_block(ev, frame, orelse)
    if stopped is True:
        return flow
    # a loop without `break` stops early only by `return`
    left = Flow(ret=True, value=flow.value) if brk is False else flow
    return select(
        ev,
        stopped,
        lambda: left if ret is not False else NORMAL,
        lambda: run_block(ev, frame, orelse),
        "the result",
        ("loop else", "loop"),
        frame,
    )


@syntax(ast.For)
def _for(ev: Evaluation, frame: Frame, node: ast.For) -> Flow:
    items = evaluate(ev, frame, node.iter)
    if isinstance(items, GraphRange):
        return _graph_for(ev, frame, node, items)
    if isinstance(items, (GraphScalar, GraphObject)):
        raise NeedsValue(
            f"for: got a Python {items._type.name} to iterate over that is known only when the "
            "compiled function runs; wanted something known while compiling"
        )
    if isinstance(items, Tensor):
        rows = items
        if not rows.shape:
            iter(rows)  # raises an error
        items = ev.owned.add(rows[i] for i in range(rows.shape[0]))
    return _unrolled_for(ev, frame, node, iterate(ev, items))


def _unrolled_for(ev: Evaluation, frame: Frame, node: ast.For, items: Value) -> Flow:
    """Trace a `for` loop over known items, its body once per item; return the loop's `Flow`."""
    state = _LoopState(ev)
    uncertain = False
    for count in itertools.count():
        item = next(items, NOTHING)
        if item is NOTHING:
            break
        if count > UNROLL_LIMIT:
            raise RefusedError(
                f"for: the loop was unrolled for {UNROLL_LIMIT} iterations while compiling and "
                "has not ended",
                construct="For",
                remedy="Iterate over something that ends, or write a `while` on a Tensor",
            )

        def iteration(item: Value = item) -> Flow:
            begin_node(ev, frame, node)
            assign(ev, frame, node.target, item)
            flow = run_block(ev, frame, node.body)
            return flow

        if not uncertain:
            flow = iteration()
            if flow.dead or flow.ret is True:
                return flow
            if flow.brk is True:
                return NORMAL
            if flow.ret is not False or flow.brk is not False:
                uncertain = True
                items = ahead(ev, items, "For")
                state.note(ev, flow)
            continue

        def guarded() -> Flow:
            flow = iteration()
            if not flow.dead:
                state.note(ev, Flow(flow.ret, flow.brk, False, flow.value))
            return Flow(dead=flow.dead)

        select(ev, negated(state.stopped), guarded, lambda: NORMAL, "the result")
    if not uncertain:
        return run_block(ev, frame, node.orelse)
    return _after_loop(ev, frame, node.orelse, state)


def _graph_for(ev: Evaluation, frame: Frame, node: ast.For, items: GraphRange) -> Flow:
    """Trace `for i in range(n)` as a graph loop and return its `Flow`.

    At least one bound of the range is known only at run time.
    """
    state = _LoopState(ev)
    counter = Scope(ev.builder.depth)
    counter["next"] = items.start

    def iteration() -> Value:
        assign(ev, frame, node.target, counter["next"])
        ev.journal.set_item(counter, "next", counter["next"] + items.step)
        flow = run_block(ev, frame, node.body)
        if flow.dead:
            return False
        state.note(ev, flow)
        return negated(state.stopped)

    def step() -> Value:
        going = iteration()
        if going is False:
            return False
        more = items.holds(counter["next"])
        return more if going is True else _and_also(ev, going, lambda: more)

    first = items.holds(counter["next"])
    graph_loop(ev, first, step, first)
    return _after_loop(ev, frame, node.orelse, state)
