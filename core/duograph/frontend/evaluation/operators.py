"""Evaluates operators, comparisons, `and`, `or`, `not` and conditional expressions.

Statements call `condition` for a test. A test on a graph value becomes a `switch`. It must never be
decided by the data of a tensor, because the graph serves other data as well.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator

import numpy as np

from ...ir.builder import GraphTensor
from ...ir.values import GraphObject, GraphScalar
from ...tensor import Tensor
from ..state.calls import Frame
from ..state.evaluation import Evaluation
from ..types import Flag, Value
from ..values.kinds import CONTAINERS, COPIED
from ..values.nested import depends_on_graph, pairs
from ..values.symbols import without_symbols
from .branches import select
from .containers import plain_index
from .dispatch import call, evaluate, replaces, syntax
from .host import run_on_host
from .identity import compare_all, identical, known_identical, refuse_own_comparisons
from .iteration import iterate
from .keys import look_up
from .laziness import remaining
from .native import native
from .outside import (
    ask,
    defer,
    is_live,
    is_outside,
    owned_result,
    settle,
    special_method,
)  # fmt: skip
from .overloads import overloaded
from .spans import begin_node, note_error_span
from .truth import as_flag, as_python_bool, either, negated, truth

BINARY: dict[type, Callable[..., Value]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow,
    ast.MatMult: operator.matmul, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
    ast.BitXor: operator.xor, ast.LShift: operator.lshift, ast.RShift: operator.rshift,
}  # fmt: skip


IN_PLACE: dict[type, Callable[..., Value]] = {
    ast.Add: operator.iadd, ast.Sub: operator.isub, ast.Mult: operator.imul, ast.Div:
    operator.itruediv, ast.FloorDiv: operator.ifloordiv, ast.Mod: operator.imod, ast.Pow:
    operator.ipow, ast.MatMult: operator.imatmul, ast.BitAnd: operator.iand, ast.BitOr:
    operator.ior, ast.BitXor: operator.ixor, ast.LShift: operator.ilshift, ast.RShift:
    operator.irshift,
}  # fmt: skip


_IN_PLACE = {*IN_PLACE.values()}
_REPEAT = {operator.mul, operator.imul}  # of a sequence by a number


_UNARY: dict[type, Callable[..., Value]] = {
    ast.UAdd: operator.pos, ast.USub: operator.neg, ast.Invert: operator.invert,
}  # fmt: skip


_COMPARE: dict[type, Callable[..., Value]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip


_COMPARISONS = frozenset(_COMPARE.values())


@syntax(ast.BinOp)
def _binary(ev: Evaluation, frame: Frame, node: ast.BinOp) -> Value:
    x = evaluate(ev, frame, node.left)
    y = evaluate(ev, frame, node.right)
    begin_node(ev, frame, node)
    return apply(ev, BINARY[type(node.op)], x, y)


# Frequent classes of operands without operator methods of a user.
_NOT_OVERLOADED = {
    bool, int, float, str, type(None), Tensor, GraphTensor, GraphScalar
}  # fmt: skip


def _formats_object(operands: tuple[Value, ...]) -> bool:
    """Return whether `%` formats a string with an argument that is known only at run time."""
    if not isinstance(operands[0], (str, bytes)) or len(operands) < 2:
        return False
    values = operands[1]
    values = values.values() if isinstance(values, dict) else values
    return depends_on_graph(tuple(values) if isinstance(values, type({}.values())) else values)


def apply(ev: Evaluation, function: Callable[..., Value], *operands: Value) -> Value:
    """Apply an operator to values and return the result.

    An operator method of a user's class is evaluated from source. If an operand is a Python object
    known only at run time, a node applies the operator in Python when the graph runs. In other
    cases the operator is applied at compile time; on graph tensors this appends op nodes.
    """
    if any(isinstance(x, GraphObject) for x in operands) or _formats_object(operands):
        return run_on_host(ev, function, operands, {}, function.__name__)
    found: Value = NotImplemented
    if not all(type(x) in _NOT_OVERLOADED for x in operands):
        if function in (operator.eq, operator.ne):
            for x, y in pairs(*operands):
                known_identical(ev, x, y)
        found = overloaded(ev, function, operands)
        if found is NotImplemented and function in _REPEAT:
            operands = tuple([plain_index(ev, x) for x in operands])
        if found is NotImplemented and function in _COMPARISONS:
            refuse_own_comparisons(ev, function.__name__, operands)
        if found is NotImplemented and any(_may_hold_outside(ev, x) for x in operands):
            return apply_outside(ev, function, operands)
    if found is NotImplemented:
        found = native(ev, function, operands, {})
    if isinstance(found, np.ndarray) or (
        type(found) in (list, dict, set) and not any(found is x for x in operands)
    ):
        ev.owned.add(found, operands)
    return found


def _may_hold_outside(ev: Evaluation, value: Value) -> bool:
    return isinstance(value, (tuple, *COPIED)) or is_outside(ev, value)


def apply_outside(
    ev: Evaluation, function: Callable[..., Value], operands: tuple[Value, ...]
) -> Value:
    """Apply an operator to operands of which some are objects from outside; return the result.

    It is applied at compile time if all operands can be captured as constants, which are compared
    before each call; otherwise by a node that runs Python at run time.
    """
    if function in _IN_PLACE and is_outside(ev, operands[0]):
        return defer(ev, function, operands, {})
    if any(isinstance(x, Tensor) for x in operands) and all(
        isinstance(x, (Tensor, np.ndarray)) for x in operands
    ):
        return native(ev, function, operands, {})
    if function is operator.contains:
        refuse_own_comparisons(ev, "in", operands)
    if settle(ev, operands):
        in_graph = depends_on_graph(operands)
        found = native(ev, function, operands, {}) if in_graph else function(*operands)
        return found if isinstance(found, Tensor) else owned_result(ev, found, operands)
    comparable = any(isinstance(x, (*CONTAINERS, np.ndarray)) for x in operands)
    if comparable and not depends_on_graph(operands):
        return ask(ev, function, *operands)
    found_by_identity = function is operator.contains
    return run_on_host(ev, function, operands, {}, function.__name__, objects=found_by_identity)


def condition(ev: Evaluation, frame: Frame, node: Value) -> Value:
    """Evaluate an expression as a condition; return its truth as a Python or graph bool."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return negated(condition(ev, frame, node.operand))
    if isinstance(node, ast.BoolOp):
        return _conditions(ev, frame, node.values, isinstance(node.op, ast.And))
    if isinstance(node, ast.Compare) and len(node.ops) > 1:
        left = evaluate(ev, frame, node.left)
        return _chained(ev, frame, left, list(zip(node.ops, node.comparators, strict=True)))
    value = evaluate(ev, frame, node)
    try:
        return truth(ev, value)
    except Exception as error:
        note_error_span(ev, error, frame, node)
        raise


def _conditions(ev: Evaluation, frame: Frame, nodes: list[Value], conjunction: bool) -> Value:
    """Evaluate an `and` or `or` as a condition; return its truth as a Python or graph bool.

    Args:
        ev: the evaluation.
        frame: the frame of the function.
        nodes: the operands.
        conjunction: whether the operator is `and`.
    """
    first = condition(ev, frame, nodes[0])
    if len(nodes) == 1:
        return first
    if isinstance(first, bool):
        return _conditions(ev, frame, nodes[1:], conjunction) if first is conjunction else first

    def rest() -> Value:
        return as_flag(_conditions(ev, frame, nodes[1:], conjunction))

    def short() -> Value:
        return as_flag(not conjunction)

    then, orelse = (rest, short) if conjunction else (short, rest)
    return select(ev, first, then, orelse, "the condition", late=True)


def _chained(ev: Evaluation, frame: Frame, left: Value, rest: list[Value]) -> Value:
    """Evaluate a comparison chain, such as `a < b < c`, as a condition; return its truth.

    Args:
        ev: the evaluation.
        frame: the frame of the function.
        left: the value of the left operand.
        rest: the remaining (operator, operand) pairs of syntax nodes.
    """
    op, node = rest[0]
    right = evaluate(ev, frame, node)
    first = truth(ev, _compare_once(ev, op, left, right))
    if len(rest) == 1 or first is False:
        return first
    if first is True:
        return _chained(ev, frame, right, rest[1:])
    return select(
        ev,
        first,
        lambda: as_flag(_chained(ev, frame, right, rest[1:])),
        lambda: as_flag(False),
        "the condition",
        late=True,
    )


@syntax(ast.UnaryOp)
def _unary(ev: Evaluation, frame: Frame, node: ast.UnaryOp) -> Value:
    if isinstance(node.op, ast.Not):
        return as_python_bool(ev, negated(condition(ev, frame, node.operand)))
    x = evaluate(ev, frame, node.operand)
    return apply(ev, _UNARY[type(node.op)], x)


@syntax(ast.BoolOp)
def _bool(ev: Evaluation, frame: Frame, node: ast.BoolOp) -> Value:
    return _chain(ev, frame, node.values, isinstance(node.op, ast.And))


def _chain(ev: Evaluation, frame: Frame, nodes: list[Value], conjunction: bool) -> Value:
    """Trace an `and` or `or` expression; return its value, which is one of the operands.

    `conjunction` says whether the operator is `and`.
    """
    value = evaluate(ev, frame, nodes[0])
    if len(nodes) == 1:
        return value
    cond = truth(ev, value)
    if isinstance(cond, bool):
        return _chain(ev, frame, nodes[1:], conjunction) if cond is conjunction else value

    def rest() -> Value:
        return _chain(ev, frame, nodes[1:], conjunction)

    def short() -> Value:
        return value

    what = "the value of `and`" if conjunction else "the value of `or`"
    names = ("left", "right") if conjunction else ("right", "left")
    then, orelse = (rest, short) if conjunction else (short, rest)
    return select(ev, cond, then, orelse, what, names, late=True)


@syntax(ast.IfExp)
def _if_expression(ev: Evaluation, frame: Frame, node: ast.IfExp) -> Value:
    cond = condition(ev, frame, node.test)
    if isinstance(cond, bool):
        return evaluate(ev, frame, node.body if cond else node.orelse)
    return select(
        ev,
        cond,
        lambda: evaluate(ev, frame, node.body),
        lambda: evaluate(ev, frame, node.orelse),
        "the value",
    )


@syntax(ast.Compare)
def _compare(ev: Evaluation, frame: Frame, node: ast.Compare) -> Value:
    left = evaluate(ev, frame, node.left)
    return _comparisons(ev, frame, left, list(zip(node.ops, node.comparators, strict=True)))


def _comparisons(ev: Evaluation, frame: Frame, left: Value, rest: list[Value]) -> Value:
    """Trace a comparison chain, such as `a < b < c`, and return its value.

    `left` is the value of the left operand; `rest` are the remaining (operator, operand) pairs of
    syntax nodes.
    """
    op, node = rest[0]
    right = evaluate(ev, frame, node)
    found = _compare_once(ev, op, left, right)
    if len(rest) == 1:
        return found
    cond = truth(ev, found)
    if isinstance(cond, bool):
        return _comparisons(ev, frame, right, rest[1:]) if cond else found
    return select(
        ev, cond, lambda: _comparisons(ev, frame, right, rest[1:]), lambda: found, "the comparison"
    )


def _compare_once(ev: Evaluation, op: Value, x: Value, y: Value) -> Value:
    """Trace a single comparison `x op y` and return its value."""
    if isinstance(op, ast.Is):
        return identical(ev, x, y)
    if isinstance(op, ast.IsNot):
        return negated(identical(ev, x, y))
    if isinstance(op, (ast.In, ast.NotIn)):
        found = _contained(ev, x, y)
        return as_python_bool(ev, negated(found) if isinstance(op, ast.NotIn) else found)
    return apply(ev, _COMPARE[type(op)], x, y)


@replaces(operator.is_)
def _is(ev: Evaluation, x: Value, y: Value) -> Value:
    return identical(ev, x, y)


@replaces(operator.is_not)
def _is_not(ev: Evaluation, x: Value, y: Value) -> Value:
    return as_python_bool(ev, negated(identical(ev, x, y)))


for _comparison in _COMPARE.values():
    replaces(_comparison)(lambda ev, x, y, f=_comparison: apply(ev, f, x, y))


@replaces(operator.contains)
def _contains(ev: Evaluation, y: Value, x: Value) -> Value:
    return as_python_bool(ev, _contained(ev, x, y))


def _found_among(ev: Evaluation, x: Value, items: Iterator[Value]) -> Value:
    """Return whether one of the items is `x` or equals it, as a Python bool or graph bool.

    Items are compared in order up to the first that is found, as Python does.
    """
    found: Value = False
    while True:
        item = next(items, _END)
        if item is _END:
            return found
        if known_identical(ev, x, item):
            return True
        equal = truth(ev, apply(ev, operator.eq, item, x))
        if found is False and not isinstance(equal, bool):
            rest = remaining(ev, items, "in")
            if not all(type(v) in _NOT_OVERLOADED for v in (x, *rest)):  # it may have effects
                return _true_or_among(ev, equal, x, rest)
            items = iter(rest)
        found = either(found, equal)
        if found is True:
            return True


def _true_or_among(ev: Evaluation, flag: Flag, x: Value, items: list[Value]) -> Value:
    """Return whether `flag` is true or one of the items is `x`; a branch compares the items."""
    return select(
        ev,
        flag,
        lambda: as_flag(True),
        lambda: as_flag(_found_among(ev, x, iter(items))),
        "in",
    )


_END = object()


def _contained(ev: Evaluation, x: Value, y: Value) -> Value:
    """Trace the membership test `x in y`; return a Python bool or a bool of the graph."""
    if isinstance(y, GraphObject) or isinstance(x, GraphObject):
        return truth(ev, run_on_host(ev, operator.contains, (y, x), {}, "contains"))
    ev.copies.observe(y)
    if hasattr(type(y), "__next__") and id(y) in ev.owned.objects:
        return _found_among(ev, x, iterate(ev, y))
    sequence = isinstance(y, tuple) or (isinstance(y, list) and not is_outside(ev, y))
    own = sequence and not all(type(v) in _NOT_OVERLOADED for v in (x, *y))
    if sequence and (own or depends_on_graph(x) or depends_on_graph(y)):
        return _found_among(ev, x, iter(tuple(y)))
    method = special_method(ev, y, "__contains__")
    if method is not None:
        return truth(ev, call(ev, method, (y, x), {}))
    if special_method(ev, y, "__iter__") is not None:
        return _contained(ev, x, list(iterate(ev, y)))
    if type(y) in (dict, set, frozenset):
        x = look_up(ev, y, x)
    elif not isinstance(y, (tuple, list)):
        x = without_symbols(ev.scope, x)
    compare_all(ev, (x, y))
    library = is_outside(ev, y) and not isinstance(y, (*CONTAINERS, tuple, np.ndarray))
    if library and not is_live(ev, y) and not is_outside(ev, x) and not depends_on_graph(x):
        return truth(ev, ask(ev, operator.contains, y, x))
    if is_outside(ev, y) or is_outside(ev, x):
        return truth(ev, apply_outside(ev, operator.contains, (y, x)))
    refuse_own_comparisons(ev, "in", (y, x))
    return native(ev, operator.contains, (y, x), {})
