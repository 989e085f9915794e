"""Plans of loop variables: how a graph loop passes a value from one iteration to the next.

`graph_loops` makes a plan for each variable, attribute or container that an iteration writes, and
widens it until it covers all iterations. A plan is a tree: a `Carried`, `BoundInside`, `Dropped` or
`Constant`, or a list, tuple or dict of plans. Nothing here evaluates source or writes a variable.
"""

from __future__ import annotations

import numpy as np

from ...errors import UnsupportedSyntaxError
from ...ir.values import GraphScalar, HostValue, kind_of
from ...tensor import Tensor
from ...types import TensorType
from ..diagnostics import AROUND_AN_ITERATION, join_error
from ..state.builder import StagedBuilder
from ..state.captures import same
from ..state.evaluation import Evaluation
from ..state.journal import MISSING
from ..types import Flag, Value
from ..values.flow import NOTHING, Maybe, Undefined, Unjoined
from ..values.functions import same_function
from ..values.nested import sequence_like, tuple_like
from .join import is_sequence, join_side, or_line_by_line, placeholder_value
from .truth import as_flag


class Carried:
    """Plan of a loop variable that is one graph value, passed from iteration to iteration.

    Attributes:
        type: the type of the graph value.
    """

    def __init__(self, type_: Value) -> None:
        self.type = type_


class BoundInside:
    """Plan of a loop variable that is unbound before the loop and bound by an iteration.

    Attributes:
        plan: the plan of the bound value.
    """

    def __init__(self, plan: Value) -> None:
        self.plan = plan


class Dropped:
    """Plan of a loop variable that each iteration binds to a new Python object.

    Neither later iterations nor the code after the loop may read the variable.
    """

    def __init__(self, name: str) -> None:
        self.name = name


class Constant:
    """Plan of a loop variable whose value the loop does not change."""

    def __init__(self, value: Value) -> None:
        self.value = value


def plan_of(old: Value, new: Value, what: str, late: bool = False) -> Value:
    """Return how a graph loop passes on a variable, given its values before and after an iteration.

    Args:
        old: the value before an iteration.
        new: the value after it.
        what: the name of the variable for messages.
        late: whether the variable may be read after the loop, with a check that it is bound.

    Returns:
        a plan: a `Carried`, `BoundInside`, `Dropped` or `Constant`, or a list, tuple or dict of
            plans.

    Raises:
        JoinError: the types of the two values differ.
    """
    if old is MISSING or old is NOTHING or isinstance(old, (Undefined, Maybe)):
        if is_unbound(new):
            return Constant(old)
        new = new.value if isinstance(new, Maybe) else new
        return BoundInside(plan_of(new, new, what, late=True))
    if new is NOTHING:
        return BoundInside(plan_of(old, old, what, late=True))
    if what in ("*brk", "*ret"):  # flags may be constants or tensors
        for flag in (old, new):
            if isinstance(flag, Tensor):
                return Carried(flag._type.plain)
    if old is new and not late and isinstance(old, (list, dict, set)):
        return Constant(old)  # its content has a plan of its own
    if isinstance(old, Tensor) and isinstance(new, Tensor):
        if old._type.plain is not new._type.plain:
            raise _changes_type(what, old, new)
        return Carried(old._type.plain)
    a, b = kind_of(old), kind_of(new)
    if a is not None and b is not None and not _is_subclassed(old) and not _is_subclassed(new):
        if a is not b:
            raise _changes_type(what, old, new)
        known = not isinstance(old, GraphScalar) and not isinstance(new, GraphScalar)
        return Constant(old) if known and repr(old) == repr(new) else Carried(a)
    if isinstance(old, HostValue) and isinstance(new, HostValue) and old._type is new._type:
        return Carried(old._type)
    if type(old) is type(new) and is_sequence(old):
        if len(old) != len(new):
            raise _changes_type(what, old, new)
        items = [plan_of(x, y, f"{what}[{i}]", late) for i, (x, y) in enumerate(zip(old, new))]
        return sequence_like(old, items)
    if type(old) is type(new) is dict:
        if list(old) != list(new):
            raise _changes_type(what, old, new)
        return {k: plan_of(old[k], new[k], f"{what}[{k!r}]", late) for k in old}
    if old is new or (same(old, new) and not isinstance(old, np.ndarray)):
        return Constant(old)
    if same_function(old, new):
        return Constant(old)
    raise _changes_type(what, old, new)


def _is_subclassed(value: Value) -> bool:
    """Return whether a number is of a subclass of Python's numbers, such as an `IntEnum`."""
    return not isinstance(value, GraphScalar) and type(value) not in (bool, int, float)


def is_unbound(value: Value) -> bool:
    """Return whether a value marks a variable as unbound, such as MISSING."""
    return value is MISSING or value is NOTHING or isinstance(value, Undefined)


def _changes_type(what: str, old: Value, new: Value) -> Exception:
    """Return the error to raise for a variable whose type differs between loop iterations."""
    return or_line_by_line(
        join_error(what, join_side(old), join_side(new), where=AROUND_AN_ITERATION), old, new
    )


def at_entry(plan: Value, builder: StagedBuilder) -> Value:
    """Return a variable's value at the start of an iteration, as its plan prescribes.

    A plan says how a loop passes a variable on. A parameter is added to the loop body for each
    value that iterations pass on.
    """
    if isinstance(plan, Carried):
        return builder.parameter(plan.type)
    if isinstance(plan, BoundInside):
        at_entry(plan.plan, builder)
        return MISSING
    if isinstance(plan, Dropped):
        return object_of_iteration(plan.name)
    if isinstance(plan, Constant):
        return plan.value
    if isinstance(plan, dict):
        return builder.evaluation.owned.add({k: at_entry(v, builder) for k, v in plan.items()})
    items = [at_entry(v, builder) for v in plan]
    if isinstance(plan, list):
        return builder.evaluation.owned.add(items)
    return tuple_like(plan, items)


def at_exit(plan: Value, value: Value, builder: StagedBuilder, out: list[Value]) -> None:
    """Append to `out` the graph values of a variable that its plan passes to the next iteration.

    If `value` is the value after an iteration, these become outputs of the loop body; if it is the
    value before the loop, they are the initial values of the loop variables.
    """
    if isinstance(plan, Carried):
        if isinstance(plan.type, TensorType):
            known = not isinstance(value, (bool, GraphScalar))
            out.append(builder.operand(value, None) if known else as_flag(value))
        else:
            out.append(builder.host(value))
    elif isinstance(plan, BoundInside):
        if is_unbound(value):
            _placeholders(plan.plan, builder, out)
        else:
            at_exit(plan.plan, value.value if isinstance(value, Maybe) else value, builder, out)
    elif isinstance(plan, dict):
        for k, v in plan.items():
            at_exit(v, value[k], builder, out)
    elif not isinstance(plan, (Constant, Dropped)):
        for k, v in zip(plan, value):
            at_exit(k, v, builder, out)


def _placeholders(plan: Value, builder: StagedBuilder, out: list[Value]) -> None:
    """Append to `out` a zero for each graph value that a plan passes to the next iteration.

    These zeros are the initial values of a loop variable that is unbound before the loop.
    """
    if isinstance(plan, Carried):
        out.append(placeholder_value(builder, plan.type))
    elif isinstance(plan, dict):
        for v in plan.values():
            _placeholders(v, builder, out)
    elif isinstance(plan, (tuple, list)):
        for v in plan:
            _placeholders(v, builder, out)


def object_of_iteration(name: str) -> Unjoined:
    """Return the marker of a variable whose value is a new object in each loop iteration.

    The loop cannot pass such an object on; reading the variable later raises an error.
    """
    error = UnsupportedSyntaxError(
        f"variable {name!r} is an object that an iteration of the loop makes; compiled code cannot "
        "keep it for what follows",
        construct="While",
        remedy="Keep its Tensors in variables of their own",
    )
    return Unjoined(name, error)


def after_loop(ev: Evaluation, plan: Value, results: Value, name: str, ran: Flag) -> Value:
    """Return a variable's value after a graph loop, taken from the `while_loop` results.

    Args:
        ev: the evaluation.
        plan: how the loop passes the variable on.
        results: an iterator over the results of the node; the next ones belong to the variable.
        name: the name of the variable.
        ran: whether the loop ran at all, a Python bool or a bool of the graph.
    """
    if isinstance(plan, Carried):
        return next(results)
    if isinstance(plan, BoundInside):
        value = after_loop(ev, plan.plan, results, name, ran)
        return value if ran is True else Maybe(name, value, ran)
    if isinstance(plan, Dropped):
        return object_of_iteration(name)
    if isinstance(plan, Constant):
        return plan.value
    if isinstance(plan, dict):
        return ev.owned.add({k: after_loop(ev, v, results, name, ran) for k, v in plan.items()})
    items = [after_loop(ev, v, results, name, ran) for v in plan]
    if isinstance(plan, list):
        return ev.owned.add(items)
    return tuple_like(plan, items)


def same_plan(a: Value, b: Value) -> bool:
    """Return whether two plans pass on graph values of the same types, and equal constants.

    A plan says how a graph loop passes a variable from iteration to iteration.
    """
    if isinstance(a, Constant) and isinstance(b, Constant):
        return same(a.value, b.value) or same_function(a.value, b.value)
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same_plan(a[k], b[k]) for k in a)
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(same_plan, a, b))
    if isinstance(a, Dropped):
        return True
    if isinstance(a, BoundInside):
        return same_plan(a.plan, b.plan)
    return bool(a.type == b.type)


def widened(plan: Value, old: Value, new: Value, what: str) -> Value:
    """Return a plan like `plan` that also covers the value `new` of a variable.

    A plan says how a graph loop passes a variable from iteration to iteration. `old` is the value
    before the loop, and `what` the name of the variable for messages.

    Raises:
        JoinError: the types differ.
    """
    if isinstance(plan, Dropped):
        return plan
    if isinstance(plan, BoundInside):
        if is_unbound(new):
            return plan
        new = new.value if isinstance(new, Maybe) else new
        return BoundInside(widened(plan.plan, new, new, what))
    if isinstance(plan, Carried):
        if what in ("*brk", "*ret"):
            return plan if kind_of(new) is not None else Carried(new._type.plain)
        if isinstance(new, (Tensor, HostValue)):
            if new._type.plain is plan.type:
                return plan
        elif kind_of(new) is plan.type:
            return plan
        raise _changes_type(what, old, new)
    if isinstance(plan, Constant):
        return plan_of(old, new, what)
    if isinstance(plan, dict):
        if not isinstance(new, dict) or list(new) != list(plan):
            raise _changes_type(what, old, new)
        return {k: widened(plan[k], old[k], new[k], f"{what}[{k!r}]") for k in plan}
    if type(new) is not type(plan) or len(new) != len(plan):
        raise _changes_type(what, old, new)
    items = [widened(k, o, n, what) for k, o, n in zip(plan, old, new)]
    return sequence_like(plan, items)
