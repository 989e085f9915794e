"""Evaluates simple statements, function definitions and `if`.

The functions register in `dispatch.SYNTAX` and are reached through `blocks.run_block`. Each returns
a `Flow`, which says whether control goes on to the next statement. The module must not decide what
an assignment or a call does to a value; `targets` and `calls` do.
"""

from __future__ import annotations

import ast

from ..state.calls import Frame
from ..state.evaluation import Evaluation
from ..types import Value
from ..values.flow import NORMAL, Flow
from .blocks import run_block
from .branches import select
from .dispatch import call, evaluate, syntax
from .functions import function_from_syntax
from .operators import condition
from .targets import assign, delete, evaluate_in_place
from .variables import store


@syntax(ast.Expr)
def _expression(ev: Evaluation, frame: Frame, node: ast.Expr) -> Flow:
    if not isinstance(node.value, ast.Constant):  # not a docstring
        evaluate(ev, frame, node.value)
    return NORMAL


@syntax(ast.Pass, ast.Global, ast.Nonlocal)
def _no_operation(ev: Evaluation, frame: Frame, node: ast.stmt) -> Flow:
    return NORMAL


@syntax(ast.Assign)
def _assign(ev: Evaluation, frame: Frame, node: ast.Assign) -> Flow:
    value = evaluate(ev, frame, node.value)
    for target in node.targets:
        assign(ev, frame, target, value)
    return NORMAL


@syntax(ast.AnnAssign)
def _annotated(ev: Evaluation, frame: Frame, node: ast.AnnAssign) -> Flow:
    if node.value is not None:
        assign(ev, frame, node.target, evaluate(ev, frame, node.value))
    return NORMAL


@syntax(ast.AugAssign)
def _augmented(ev: Evaluation, frame: Frame, node: ast.AugAssign) -> Flow:
    evaluate_in_place(ev, frame, node)
    return NORMAL


@syntax(ast.Delete)
def _delete(ev: Evaluation, frame: Frame, node: ast.Delete) -> Flow:
    for target in node.targets:
        delete(ev, frame, target)
    return NORMAL


@syntax(ast.FunctionDef)
def _define(ev: Evaluation, frame: Frame, node: ast.FunctionDef) -> Flow:
    made: Value = function_from_syntax(ev, frame, node)
    for decorator in reversed(node.decorator_list):
        made = call(ev, evaluate(ev, frame, decorator), (made,), {})
    store(ev, frame, node.name, made)
    return NORMAL


@syntax(ast.Return)
def _return(ev: Evaluation, frame: Frame, node: ast.Return) -> Flow:
    return Flow(ret=True, value=None if node.value is None else evaluate(ev, frame, node.value))


@syntax(ast.Break)
def _break(ev: Evaluation, frame: Frame, node: ast.Break) -> Flow:
    return Flow(brk=True)


@syntax(ast.Continue)
def _continue(ev: Evaluation, frame: Frame, node: ast.Continue) -> Flow:
    return Flow(cont=True)


@syntax(ast.If)
def _if(ev: Evaluation, frame: Frame, node: ast.If) -> Flow:
    cond = condition(ev, frame, node.test)
    if cond is True:
        return run_block(ev, frame, node.body)
    if cond is False:
        return run_block(ev, frame, node.orelse)
    return select(
        ev,
        cond,
        lambda: run_block(ev, frame, node.body),
        lambda: run_block(ev, frame, node.orelse),
        "the result",
        own=frame,
    )
