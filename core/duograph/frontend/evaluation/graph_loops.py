"""Loops whose condition the graph computes: each becomes one `while_loop` node.

What an iteration writes becomes a loop variable of the node. For each written variable, attribute
or container a *plan* says how the loop passes its value to the next iteration: as graph values, as
a constant, or not at all. `evaluation.loop_statements` calls `graph_loop`. The body is traced
several times, until the types of the loop variables stay the same. These traces must never change
state outside the loop.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...errors import JoinError, UnsupportedSyntaxError
from ...ir.builder import GraphTensor
from ...ir.control import while_loop
from ...ir.values import GraphScalar, HostValue, kind_of
from ...tensor import Tensor
from ...types import TensorType
from ..diagnostics import AROUND_AN_ITERATION, IN_LOOP, join_error
from ..state.builder import StagedBuilder
from ..state.captures import same
from ..state.evaluation import Evaluation
from ..state.journal import MISSING, Key, Location
from ..types import Flag, Value
from ..values.flow import NOTHING, Maybe, Undefined, Unjoined
from ..values.functions import same_function
from ..values.nested import pairs, sequence_like, tuple_like
from .aliasing import note_candidates, tensor_behind
from .branches import is_outside_location, label_of, run_branch, run_condition
from .join import is_sequence, join_side, line_by_line, or_line_by_line, placeholder_value
from .outside import observe
from .truth import as_flag

# The most evaluations of a loop body until the types of its carries must be stable.
_MAX_EVALUATIONS = 8


class _Carried:
    """Plan of a loop variable that is one graph value, passed from iteration to iteration.

    Attributes:
        type: the type of the graph value.
    """

    def __init__(self, type_: Value) -> None:
        self.type = type_


class _BoundInside:
    """Plan of a loop variable that is unbound before the loop and bound by an iteration.

    Attributes:
        plan: the plan of the bound value.
    """

    def __init__(self, plan: Value) -> None:
        self.plan = plan


class _Dropped:
    """Plan of a loop variable that each iteration binds to a new Python object.

    Neither later iterations nor the code after the loop may read the variable.
    """

    def __init__(self, name: str) -> None:
        self.name = name


class _Constant:
    """Plan of a loop variable whose value the loop does not change."""

    def __init__(self, value: Value) -> None:
        self.value = value


def _plan(old: Value, new: Value, what: str, late: bool = False) -> Value:
    """Return how a graph loop passes on a variable, given its values before and after an iteration.

    Args:
        old: the value before an iteration.
        new: the value after it.
        what: the name of the variable for messages.
        late: whether the variable may be read after the loop, with a check that it is bound.

    Returns:
        a plan: a `_Carried`, `_BoundInside`, `_Dropped` or `_Constant`, or a list, tuple or dict of
            plans.

    Raises:
        JoinError: the types of the two values differ.
    """
    if old is MISSING or old is NOTHING or isinstance(old, (Undefined, Maybe)):
        if _unbound(new):
            return _Constant(old)
        new = new.value if isinstance(new, Maybe) else new
        return _BoundInside(_plan(new, new, what, late=True))
    if new is NOTHING:
        return _BoundInside(_plan(old, old, what, late=True))
    if what in ("*brk", "*ret"):  # flags may be constants or tensors
        for flag in (old, new):
            if isinstance(flag, Tensor):
                return _Carried(flag._type.plain)
    if old is new and not late and isinstance(old, (list, dict, set)):
        return _Constant(old)  # its content has a plan of its own
    if isinstance(old, Tensor) and isinstance(new, Tensor):
        if old._type.plain is not new._type.plain:
            raise _changes_type(what, old, new)
        return _Carried(old._type.plain)
    a, b = kind_of(old), kind_of(new)
    if a is not None and b is not None and not _is_subclassed(old) and not _is_subclassed(new):
        if a is not b:
            raise _changes_type(what, old, new)
        known = not isinstance(old, GraphScalar) and not isinstance(new, GraphScalar)
        return _Constant(old) if known and repr(old) == repr(new) else _Carried(a)
    if isinstance(old, HostValue) and isinstance(new, HostValue) and old._type is new._type:
        return _Carried(old._type)
    if type(old) is type(new) and is_sequence(old):
        if len(old) != len(new):
            raise _changes_type(what, old, new)
        items = [_plan(x, y, f"{what}[{i}]", late) for i, (x, y) in enumerate(zip(old, new))]
        return sequence_like(old, items)
    if type(old) is type(new) is dict:
        if list(old) != list(new):
            raise _changes_type(what, old, new)
        return {k: _plan(old[k], new[k], f"{what}[{k!r}]", late) for k in old}
    if old is new or (same(old, new) and not isinstance(old, np.ndarray)):
        return _Constant(old)
    if same_function(old, new):
        return _Constant(old)
    raise _changes_type(what, old, new)


def _is_subclassed(value: Value) -> bool:
    """Return whether a number is of a subclass of Python's numbers, such as an `IntEnum`."""
    return not isinstance(value, GraphScalar) and type(value) not in (bool, int, float)


def _unbound(value: Value) -> bool:
    """Return whether a value marks a variable as unbound, such as MISSING."""
    return value is MISSING or value is NOTHING or isinstance(value, Undefined)


def _changes_type(what: str, old: Value, new: Value) -> Exception:
    """Return the error to raise for a variable whose type differs between loop iterations."""
    return or_line_by_line(
        join_error(what, join_side(old), join_side(new), where=AROUND_AN_ITERATION), old, new
    )


def _at_entry(plan: Value, builder: StagedBuilder) -> Value:
    """Return a variable's value at the start of an iteration, as its plan prescribes.

    A plan says how a loop passes a variable on. A parameter is added to the loop body for each
    value that iterations pass on.
    """
    if isinstance(plan, _Carried):
        return builder.parameter(plan.type)
    if isinstance(plan, _BoundInside):
        _at_entry(plan.plan, builder)
        return MISSING
    if isinstance(plan, _Dropped):
        return _object_of_iteration(plan.name)
    if isinstance(plan, _Constant):
        return plan.value
    if isinstance(plan, dict):
        return builder.evaluation.owned.add({k: _at_entry(v, builder) for k, v in plan.items()})
    items = [_at_entry(v, builder) for v in plan]
    if isinstance(plan, list):
        return builder.evaluation.owned.add(items)
    return tuple_like(plan, items)


def _at_exit(plan: Value, value: Value, builder: StagedBuilder, out: list[Value]) -> None:
    """Append to `out` the graph values of a variable that its plan passes to the next iteration.

    If `value` is the value after an iteration, these become outputs of the loop body; if it is the
    value before the loop, they are the initial values of the loop variables.
    """
    if isinstance(plan, _Carried):
        if isinstance(plan.type, TensorType):
            known = not isinstance(value, (bool, GraphScalar))
            out.append(builder.operand(value, None) if known else as_flag(value))
        else:
            out.append(builder.host(value))
    elif isinstance(plan, _BoundInside):
        if _unbound(value):
            _placeholders(plan.plan, builder, out)
        else:
            _at_exit(plan.plan, value.value if isinstance(value, Maybe) else value, builder, out)
    elif isinstance(plan, dict):
        for k, v in plan.items():
            _at_exit(v, value[k], builder, out)
    elif not isinstance(plan, (_Constant, _Dropped)):
        for k, v in zip(plan, value):
            _at_exit(k, v, builder, out)


def _placeholders(plan: Value, builder: StagedBuilder, out: list[Value]) -> None:
    """Append to `out` a zero for each graph value that a plan passes to the next iteration.

    These zeros are the initial values of a loop variable that is unbound before the loop.
    """
    if isinstance(plan, _Carried):
        out.append(placeholder_value(builder, plan.type))
    elif isinstance(plan, dict):
        for v in plan.values():
            _placeholders(v, builder, out)
    elif isinstance(plan, (tuple, list)):
        for v in plan:
            _placeholders(v, builder, out)


def _object_of_iteration(name: str) -> Unjoined:
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


def _after_loop(ev: Evaluation, plan: Value, results: Value, name: str, ran: Flag) -> Value:
    """Return a variable's value after a graph loop, taken from the `while_loop` results.

    Args:
        ev: the evaluation.
        plan: how the loop passes the variable on.
        results: an iterator over the results of the node; the next ones belong to the variable.
        name: the name of the variable.
        ran: whether the loop ran at all, a Python bool or a bool of the graph.
    """
    if isinstance(plan, _Carried):
        return next(results)
    if isinstance(plan, _BoundInside):
        value = _after_loop(ev, plan.plan, results, name, ran)
        return value if ran is True else Maybe(name, value, ran)
    if isinstance(plan, _Dropped):
        return _object_of_iteration(name)
    if isinstance(plan, _Constant):
        return plan.value
    if isinstance(plan, dict):
        return ev.owned.add({k: _after_loop(ev, v, results, name, ran) for k, v in plan.items()})
    items = [_after_loop(ev, v, results, name, ran) for v in plan]
    if isinstance(plan, list):
        return ev.owned.add(items)
    return tuple_like(plan, items)


def _same_plan(a: Value, b: Value) -> bool:
    """Return whether two plans pass on graph values of the same types, and equal constants.

    A plan says how a graph loop passes a variable from iteration to iteration.
    """
    if isinstance(a, _Constant) and isinstance(b, _Constant):
        return same(a.value, b.value) or same_function(a.value, b.value)
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(_same_plan(a[k], b[k]) for k in a)
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(_same_plan, a, b))
    if isinstance(a, _Dropped):
        return True
    if isinstance(a, _BoundInside):
        return _same_plan(a.plan, b.plan)
    return bool(a.type == b.type)


def _plan_for(ev: Evaluation, location: Location, old: Value, new: Value) -> Value:
    """Return the plan, which says how a graph loop passes a variable from iteration to iteration.

    It is `_Dropped` (the loop does not pass it on) if each iteration binds the variable to a new
    object of a user's class.

    Args:
        ev: the evaluation.
        location: the variable, attribute, container or tensor.
        old: its value before the loop.
        new: its value after an iteration.
    """
    nothing = old is MISSING or isinstance(old, Undefined)
    if old is not new and _is_object(ev, new) and (nothing or _is_object(ev, old)):
        name = label_of(ev, location)
        if any(location.owner is frame.vars for frame in ev.calls.frames):
            return _Dropped(name)
        raise _object_of_iteration(name).error
    try:
        return _plan(old, new, label_of(ev, location))
    except JoinError as error:
        if is_outside_location(ev, location):
            raise line_by_line(error) from None
        raise


def _shared(ev: Evaluation, location: Location, old: Value, new: Value) -> list[Value]:
    """Return the outside lists and dicts to which a variable may refer after a loop.

    Since it is unknown to which of them the variable refers, a change could not be repeated on the
    right one. They are therefore marked as ambiguous, and evaluated code may no longer change them.

    Args:
        ev: the evaluation.
        location: the variable or attribute.
        old: its value before an iteration.
        new: its value after the iteration.
    """
    if old is new or location.kind not in ("item", "attribute"):
        return []
    originals = ev.copies.originals
    found = [v for v in (old, new) if type(v) in (list, dict) and id(v) in originals]
    for v in found:
        observe(ev, v)
        ev.owned.ambiguous[id(v)] = v
    return found


def _is_object(ev: Evaluation, value: Value) -> bool:
    """Return whether a value is an object of a user class that the evaluated code made."""
    plain = isinstance(value, (Tensor, list, dict, set, tuple)) or callable(value)
    return id(value) in ev.owned.objects and hasattr(value, "__dict__") and not plain


@dataclass
class _Body:
    """One trace of a graph loop's body, with the loop plans of the variables that it assigns.

    Attributes:
        builder: the builder of the body's graph.
        following: whether there is another iteration, as computed at the end of the body.
        locations: the variables, attributes, containers and tensors that an iteration writes.
        before: for each location, its content before the loop.
        ends: for each location, its content after an iteration.
        plans: for each location, its loop plan.
        entered: the tensors with which an iteration starts, by id.
        first: the tensors with which the first iteration starts.
        shared: for each variable, the outside lists and dicts to which it may refer after the loop.
    """

    builder: StagedBuilder
    following: Flag
    locations: dict[Key, Location]
    before: dict[Key, Value]
    ends: dict[Key, Value]
    plans: dict[Key, Value]
    entered: dict[int, Tensor]
    first: list[Tensor]
    shared: dict[Key, list[Value]]


def graph_loop(ev: Evaluation, predicate: Flag, step: Callable[[], Value], ran: Flag) -> None:
    """Trace a loop into a `while_loop` node, and write the results into the loop's variables.

    Args:
        ev: the evaluation.
        predicate: whether there is a first iteration, a bool of the graph.
        step: function that evaluates one iteration and returns whether there is another.
        ran: whether variables that only the loop binds are bound after the loop.
    """
    body = _evaluate_until_stable(ev, step)
    child, parent = body.builder, ev.builder
    outputs: list[Value] = []
    with child.current():
        for key in body.locations:
            _at_exit(body.plans[key], body.ends[key], child, outputs)
        host = isinstance(predicate, GraphScalar) and isinstance(
            body.following, (bool, GraphScalar)
        )
        last = child.host(body.following) if host else as_flag(body.following)
    begins = parent.host(predicate) if host else as_flag(predicate)
    inits: list[Value] = []
    for key in body.locations:
        _at_exit(body.plans[key], body.before[key], parent, inits)
    outer = list(child.outer)
    graph = child.closed([last, *outputs], outer)
    operands = (begins, *inits, *(parent.tensor(i) for i in outer))
    results = iter(parent.append(while_loop, operands, {"body": graph, "n_carry": len(inits)}))
    for key, location in body.locations.items():
        value = _after_loop(ev, body.plans[key], results, label_of(ev, location), ran)
        if _holds_tensors(location):
            _note_origins(ev, value, body, key)
        if body.shared[key]:
            ev.owned.ambiguous[id(value)] = value
            ev.owned.chosen[id(value)] = body.shared[key]
        ev.journal.write(location, value)


def _evaluate_until_stable(ev: Evaluation, step: Callable[[], Value]) -> _Body:
    """Trace a loop body until the plans of its variables stay the same; return the last trace.

    A plan says how the loop passes a variable from iteration to iteration. `step` evaluates one
    iteration and returns whether there is another.

    Raises:
        JoinError: the types of the variables keep changing.
    """
    builder, _, changes = run_branch(ev, step)
    locations = {key: location for key, (location, _) in changes.items()}
    before = {key: location.read() for key, location in locations.items()}
    plans = {
        key: _plan_for(ev, location, before[key], changes[key][1])
        for key, location in locations.items()
    }
    shared = {
        key: _shared(ev, location, before[key], changes[key][1])
        for key, location in locations.items()
    }
    first = [x for held in before.values() for x, _ in pairs(held, held) if isinstance(x, Tensor)]
    entered = {id(x): x for x in first}
    ends = {key: value for key, (_, value) in changes.items()}
    body = _Body(builder, False, locations, before, ends, plans, entered, first, shared)
    for _ in range(_MAX_EVALUATIONS):
        earlier = body
        child = StagedBuilder(ev, ev.builder)
        body = _Body(child, False, locations, before, {}, plans, {}, [], shared)
        following, written = run_condition(
            ev, body.builder, functools.partial(_iteration, ev, body, step, earlier)
        )
        body.following = following
        body.ends = {key: value for key, (_, value) in written.items()}
        stable = True
        for key, (location, _) in written.items():
            if key not in locations:
                locations[key] = location
                before[key] = location.read()
                plans[key] = _plan_for(ev, location, before[key], body.ends[key])
                shared[key] = _shared(ev, location, before[key], body.ends[key])
                stable = False
            else:
                wider = _wider_plan(ev, location, plans[key], before[key], body.ends[key])
                if not _same_plan(wider, plans[key]):
                    plans[key] = wider
                    stable = False
        if stable:
            return body
    raise JoinError(
        f"{IN_LOOP}: a loop whose condition is a Tensor "
        "changes the types of its variables in every iteration; wanted fixed types"
    )


def _iteration(ev: Evaluation, body: _Body, step: Callable[[], Value], earlier: _Body) -> Value:
    """Trace one more iteration, with a parameter of the loop body for each loop-carried value.

    Args:
        ev: the evaluation.
        body: the trace to which the parameters belong.
        step: function that evaluates the body.
        earlier: the previous trace of the body, whose results are compared with the parameters.

    Returns:
        whether there is another iteration, as a Python bool or a bool of the graph.
    """
    for key, location in body.locations.items():
        entered = _at_entry(body.plans[key], body.builder)
        if body.shared[key]:
            ev.owned.ambiguous[id(entered)] = entered
        for made, old in pairs(entered, body.before[key]):
            if (
                isinstance(made, GraphTensor)
                and isinstance(old, Tensor)
                and _holds_tensors(location)
            ):
                body.entered[id(made)] = made
                body.first.append(old)
                note_candidates(ev, made, [old])
        for made, last in pairs(entered, earlier.ends.get(key)):
            if isinstance(made, GraphTensor) and isinstance(last, Tensor):
                note_candidates(ev, made, _after_an_iteration(ev, last, earlier))
        ev.journal.write(location, entered)
    return step()


def _holds_tensors(location: Location) -> bool:
    """Return whether a location may hold tensors: a variable, attribute, list or dict."""
    return location.kind in ("item", "attribute", "list", "dict")


def _note_origins(ev: Evaluation, after: Value, body: _Body, key: Key) -> None:
    """Record the older tensors to which a variable may refer after a graph loop.

    An older tensor is one made before the loop. The variable may still refer to its tensor from
    before the loop, or to another older tensor that an iteration assigned to it.

    Args:
        ev: the evaluation.
        after: the value of the variable after the loop.
        body: the last trace of the loop body.
        key: identifies the variable in `body`.
    """
    for made, old in pairs(after, body.before[key]):
        if isinstance(old, Tensor) and made is not old:
            note_candidates(ev, made, [old])
    for made, last in pairs(after, body.ends[key]):
        if made is not last and isinstance(last, Tensor):
            note_candidates(ev, made, _after_an_iteration(ev, last, body))


def _after_an_iteration(ev: Evaluation, last: Tensor, body: _Body) -> list[Value]:
    """Return the tensors made before a graph loop that a variable may refer to after an iteration.

    `last` is the variable's value at the end of the iteration. It may itself be the value of some
    loop variable at the start of the iteration. Since iterations may exchange variables, the result
    then has all tensors with which loop variables start. `body` is the trace of the iteration.
    """
    found: list[Value] = [tensor_behind(ev, last)]
    if id(last) in body.entered:  # iterations may swap values between names
        found += body.first
    return found


def _wider_plan(ev: Evaluation, location: Location, plan: Value, old: Value, new: Value) -> Value:
    """Return a plan that also covers the value of a variable after one more iteration.

    A plan says how a graph loop passes a variable from iteration to iteration.

    Args:
        ev: the evaluation.
        location: the variable.
        plan: the plan so far.
        old: the value before the loop.
        new: the value after that iteration.
    """
    try:
        return _widened(plan, old, new, label_of(ev, location))
    except JoinError as error:
        if is_outside_location(ev, location):
            raise line_by_line(error) from None
        raise


def _widened(plan: Value, old: Value, new: Value, what: str) -> Value:
    """Return a plan like `plan` that also covers the value `new` of a variable.

    A plan says how a graph loop passes a variable from iteration to iteration. `old` is the value
    before the loop, and `what` the name of the variable for messages.

    Raises:
        JoinError: the types differ.
    """
    if isinstance(plan, _Dropped):
        return plan
    if isinstance(plan, _BoundInside):
        if _unbound(new):
            return plan
        new = new.value if isinstance(new, Maybe) else new
        return _BoundInside(_widened(plan.plan, new, new, what))
    if isinstance(plan, _Carried):
        if what in ("*brk", "*ret"):
            return plan if kind_of(new) is not None else _Carried(new._type.plain)
        if isinstance(new, (Tensor, HostValue)):
            if new._type.plain is plan.type:
                return plan
        elif kind_of(new) is plan.type:
            return plan
        raise _changes_type(what, old, new)
    if isinstance(plan, _Constant):
        return _plan(old, new, what)
    if isinstance(plan, dict):
        if not isinstance(new, dict) or list(new) != list(plan):
            raise _changes_type(what, old, new)
        return {k: _widened(plan[k], old[k], new[k], f"{what}[{k!r}]") for k in plan}
    if type(new) is not type(plan) or len(new) != len(plan):
        raise _changes_type(what, old, new)
    items = [_widened(k, o, n, what) for k, o, n in zip(plan, old, new)]
    return sequence_like(plan, items)
