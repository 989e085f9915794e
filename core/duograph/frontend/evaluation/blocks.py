"""Evaluates a block of statements in order until a statement leaves the block.

Function bodies, branches and loops call `run_block`. If only the running graph knows whether a
statement left the block, the rest of the block becomes a branch. The module must not decide what a
single statement means.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Sequence

from ...errors import JoinError
from ..diagnostics import unsupported
from ..state.calls import Frame
from ..state.evaluation import Evaluation
from ..values.flow import NORMAL, Flow
from .branches import select
from .dispatch import SYNTAX, Dead
from .spans import begin_node, explain_join, note_error_span
from .truth import either


def run_block(ev: Evaluation, frame: Frame, body: Sequence[ast.stmt]) -> Flow:
    """Trace a block's statements in order; return the block's `Flow`, which says how it ended.

    If a graph condition decides whether a statement leaves the block, the statements after it
    become a branch.
    """
    outer = len(frame.temporaries)  # an enclosing statement may still use these
    for i, node in enumerate(body):
        begin_node(ev, frame, node)
        del frame.temporaries[outer:]
        try:
            run = SYNTAX.get(type(node))
            if run is None:
                raise unsupported(type(node).__name__, _statement_remedy(node))
            flow = run(ev, frame, node)
            if flow is NORMAL or flow.normal:
                continue
            rest = body[i + 1 :]
            if flow.certain or not rest:
                return flow
            return evaluate_rest(ev, frame, flow, functools.partial(run_block, ev, frame, rest))
        except Dead:
            return Flow(dead=True)
        except Exception as error:
            if isinstance(error, JoinError):
                explain_join(error, frame.source, body, i)
            note_error_span(ev, error, frame, node)
            raise
    return NORMAL


def evaluate_rest(ev: Evaluation, frame: Frame, flow: Flow, run: Callable[[], Flow]) -> Flow:
    """Trace the rest of a block as a branch that runs if no earlier statement left the block.

    Args:
        ev: the evaluation.
        frame: the frame of the function that the block is in.
        flow: how the block ended so far, with flags that the graph computes.
        run: function that evaluates the remaining statements.

    Returns:
        the joined `Flow` of the whole block.
    """
    stopped = either(either(flow.ret, flow.brk), flow.cont)
    return select(
        ev,
        stopped,
        lambda: _certain(flow),
        run,
        "the result",
        ("fall-through", "return"),
        frame,
    )


def _certain(flow: Flow) -> Flow:
    """Return a block's `Flow` under the assumption that one of its statements left the block.

    A `Flow` says how a block ended. If only one of return, break and continue is possible, its flag
    becomes True. Otherwise the `Flow` itself is returned.
    """
    flags = [flow.ret is not False, flow.brk is not False, flow.cont is not False]
    if sum(flags) == 1:
        ret, brk, cont = flags
        return Flow(ret, brk, cont, flow.value)
    return flow


def _statement_remedy(node: ast.stmt) -> str:
    """Return advice on what to write instead of a statement that compiled code cannot have."""
    return _STATEMENT_REMEDIES.get(type(node).__name__, "Move it out of the compiled function")


_STATEMENT_REMEDIES = {
    "AsyncFunctionDef": "Wanted a plain function: define it outside and call it line by line",
    "AsyncFor": "Wanted a plain `for`",
    "AsyncWith": "Wanted a plain `with`",
    "ClassDef": "Define the class outside the compiled function",
    "TryStar": "Wanted a plain `try`",
}
