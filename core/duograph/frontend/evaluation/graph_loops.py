"""Loops whose condition the graph computes: each becomes one `while_loop` node.

What an iteration writes becomes a loop variable of the node. For each written variable, attribute
or container a *plan* says how the loop passes its value to the next iteration: as graph values, as
a constant, or not at all. `evaluation.loop_statements` calls `graph_loop`. The body is traced
several times, until the types of the loop variables stay the same. These traces must never change
state outside the loop.
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from ...errors import JoinError
from ...ir.builder import GraphTensor
from ...ir.control import while_loop
from ...ir.values import GraphScalar
from ...tensor import Tensor
from ..diagnostics import IN_LOOP
from ..state.builder import StagedBuilder
from ..state.evaluation import Evaluation
from ..state.journal import MISSING, Key, Location
from ..types import Flag, Value
from ..values.flow import Maybe, Undefined
from ..values.nested import pairs
from .aliasing import note_candidates, tensor_behind, visible_containers
from .branches import is_outside_location, label_of, run_branch, run_condition
from .join import line_by_line
from .loop_plans import (
    Dropped,
    after_loop,
    at_entry,
    at_exit,
    is_unbound,
    object_of_iteration,
    plan_of,
    same_plan,
    widened,
)
from .outside import observe
from .truth import as_flag

# The lists or dicts that one of a loop may stand for, each with the time at which it does: "before"
# the loop, or at the "end" of an iteration.
Candidates: TypeAlias = list[tuple[str, Value]]
# The most evaluations of a loop body until the types of its carries must be stable.
_MAX_EVALUATIONS = 8


def _plan_for(ev: Evaluation, location: Location, old: Value, new: Value) -> Value:
    """Return the plan, which says how a graph loop passes a variable from iteration to iteration.

    It is `Dropped` (the loop does not pass it on) if each iteration binds the variable to a new
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
            return Dropped(name)
        raise object_of_iteration(name).error
    try:
        return plan_of(old, new, label_of(ev, location))
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
            at_exit(body.plans[key], body.ends[key], child, outputs)
        host = isinstance(predicate, GraphScalar) and isinstance(
            body.following, (bool, GraphScalar)
        )
        last = child.host(body.following) if host else as_flag(body.following)
    begins = parent.host(predicate) if host else as_flag(predicate)
    inits: list[Value] = []
    for key in body.locations:
        at_exit(body.plans[key], body.before[key], parent, inits)
    outer = list(child.outer)
    graph = child.closed([last, *outputs], outer)
    operands = (begins, *inits, *(parent.tensor(i) for i in outer))
    results = iter(parent.append(while_loop, operands, {"body": graph, "n_carry": len(inits)}))
    values = {
        key: after_loop(ev, body.plans[key], results, label_of(ev, location), ran)
        for key, location in body.locations.items()
    }
    for key, location in body.locations.items():
        if _holds_tensors(location):
            _note_origins(ev, values[key], body, key)
        if body.shared[key]:
            ev.owned.represent(values[key], body.shared[key])
    _write_loop_values(ev, body, values, body.ends)


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
                if not same_plan(wider, plans[key]):
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
    values = {key: at_entry(body.plans[key], body.builder) for key in body.locations}
    for key, location in body.locations.items():
        entered = values[key]
        if body.shared[key]:
            ev.owned.represent(entered, body.shared[key])
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
    _write_loop_values(ev, body, values, earlier.ends)
    return step()


def _write_loop_values(
    ev: Evaluation, body: _Body, values: dict[Key, Value], ends: dict[Key, Value]
) -> None:
    """Write the loop values of all variables, at the start of an iteration or after the loop.

    A list or dict in them stands for the one from before the loop, or for the one at the end of an
    iteration. Variables that refer to one object at both times get one object. If variables refer
    to one object at one of the two times only, or something else can reach one of the two objects,
    a change could not be repeated on the right one: evaluated code may then not change the list or
    dict. Variables that exchange their objects refer to different ones at both times.

    Args:
        ev: the evaluation.
        body: the trace of the body, with the values from before the loop.
        values: the loop values of the variables.
        ends: the values of the variables at the end of an iteration.
    """
    _unify(body, values, ends)
    for key, location in body.locations.items():
        ev.journal.write(location, values[key])
    parts: dict[int, tuple[Value, Candidates]] = {}
    for key, value in values.items():
        for part, candidates in _parts(value, body.before[key], ends.get(key)):
            parts[id(part)] = part, candidates
    if not parts:
        return
    visible = visible_containers(ev)
    uses = collections.Counter(
        (time, id(c)) for _, candidates in parts.values() for time, c in candidates
    )
    for part, candidates in parts.values():
        shared = any(uses[time, id(c)] > 1 or id(c) in visible for time, c in candidates)
        if shared and id(part) not in ev.owned.chosen:
            ev.owned.represent(part)


def _unify(body: _Body, values: dict[Key, Value], ends: dict[Key, Value]) -> None:
    """Give variables that refer to one list or dict before the loop and after an iteration one.

    A variable that is unbound before the loop is bound only where an iteration has run.
    """
    known: dict[tuple[int | None, int], Value] = {}
    for unbound in (False, True):
        for key, value in values.items():
            before, end = body.before[key], _bound(ends.get(key))
            made = _bound(value)
            if type(made) not in (list, dict) or made is end or unbound is not is_unbound(before):
                continue
            pair = (None if unbound else id(_bound(before)), id(end))
            found = [v for p, v in known.items() if p == pair or (unbound and p[1] == pair[1])]
            if len(found) != 1:
                known.setdefault(pair, made)
            elif isinstance(value, Maybe):
                values[key] = Maybe(value.name, found[0], value.bound)
            else:
                values[key] = found[0]


def _bound(value: Value) -> Value:
    """Return the value of a variable that may be unbound, where it is bound."""
    return value.value if isinstance(value, Maybe) else value


def _parts(value: Value, before: Value, end: Value) -> Iterator[tuple[Value, Candidates]]:
    """Yield the lists and dicts in a loop value, each with those that it may stand for."""
    value, before, end = _bound(value), _bound(before), _bound(end)
    if not isinstance(value, (list, tuple, dict)) or value is end or value is before:
        return
    if not isinstance(value, tuple):
        found = (("before", before), ("end", end))
        yield value, [(time, c) for time, c in found if type(c) is type(value)]
    for k in value if isinstance(value, dict) else range(len(value)):
        yield from _parts(value[k], _item(before, k, value), _item(end, k, value))


def _item(container: Value, k: Value, like: Value) -> Value:
    """Return item `k` of a container; None if it lacks it or is of another class than `like`."""
    if type(container) is not type(like):
        return None
    if isinstance(container, dict):
        return container.get(k)
    return container[k] if k < len(container) else None


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
        return widened(plan, old, new, label_of(ev, location))
    except JoinError as error:
        if is_outside_location(ev, location):
            raise line_by_line(error) from None
        raise
