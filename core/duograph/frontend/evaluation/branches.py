"""Evaluates both branches of a graph condition, undoes their writes and joins the results.

`select` implements `if`, conditional expressions, `and`, `or` and comparison chains on a condition
that the graph computes; it appends one `switch`. Statements, operators and loops call it. The
writes of each branch must be undone before the other branch is traced. `select` then writes the
joined values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from ...errors import JoinError, UnsupportedSyntaxError
from ...ir.control import switch
from ...ir.liveness import may_raise
from ..state.builder import StagedBuilder
from ..state.calls import Frame
from ..state.evaluation import Evaluation
from ..state.journal import Changes, Key, Location, Scope
from ..types import Flag, Value
from ..values.flow import Flow, Maybe, Unjoined
from .branch_ends import content_at_end, value_at_end
from .dispatch import Dead
from .host import write_through
from .join import Join, line_by_line
from .joined_values import with_results

Branch: TypeAlias = tuple[StagedBuilder, Value, Changes]


def run_branch(ev: Evaluation, run: Callable[[], Value]) -> Branch:
    """Trace a branch by calling `run`, into a new sub-graph; then undo what the branch wrote.

    Variables and objects that existed before the branch get their earlier content back.

    Returns:
        the sub-graph's builder, the branch's result, and the written locations with their content
            at the end of the branch.
    """
    child = StagedBuilder(ev, ev.builder)
    result, changes = run_condition(ev, child, run)
    return child, result, changes


def run_condition(
    ev: Evaluation, child: StagedBuilder, run: Callable[[], Value]
) -> tuple[Value, Changes]:
    """Trace code under a graph condition into the sub-graph of `child`, then undo its changes.

    Returns the result and the written locations with their final content, like `run_and_undo`. It
    also counts the code as conditional, so that an error in it is raised only if the condition
    holds at run time.
    """
    ev.journal.conditions += 1
    try:
        return run_and_undo(ev, child, run)
    finally:
        ev.journal.conditions -= 1


def run_and_undo(
    ev: Evaluation, child: StagedBuilder, run: Callable[[], Value]
) -> tuple[Value, Changes]:
    """Trace code by calling `run`, into the graph of `child`; then undo its changes.

    Changes of variables and objects that existed before are undone, so that the code of the other
    branch starts from the same state.

    Returns:
        the result, and for each written location its content at the end of the code.
    """
    journal = ev.journal
    journal.branches.append({})
    result: Value = None
    changes: Changes = {}
    outer: Changes = {}  # writes to what existed before the branch
    try:
        with child.current():
            try:
                result = run()
            finally:
                writes = journal.branches[-1]
                outer = {k: e for k, e in writes.items() if not _inside(ev, *e, child.depth)}
            for key, (location, _) in outer.items():
                changes[key] = (location, location.read())
            result = value_at_end(ev, changes, result, child.depth)
            for key, (location, value) in changes.items():
                changes[key] = (location, content_at_end(ev, changes, location, value, child))
    finally:
        journal.branches.pop()
        for location, before in reversed(list(outer.values())):
            location.write(before)
    return result, changes


def _inside(ev: Evaluation, location: Location, before: Value, depth: int) -> bool:
    """Return whether a changed location belongs to an object that the branch itself made.

    No code after the branch can reach such an object, so its changes need no join.

    Args:
        ev: the evaluation.
        location: the variable, attribute, container or tensor that was changed.
        before: its earlier content.
        depth: the nesting depth of the branch's graph.
    """
    owner = location.owner
    if isinstance(owner, Scope):
        return owner.depth >= depth
    if location.kind == "tensor":
        return bool(before._builder.depth >= depth)
    return ev.owned.depths.get(id(owner), 0) >= depth


def select(
    ev: Evaluation,
    cond: Flag,
    then: Callable[[], Value],
    orelse: Callable[[], Value],
    what: str,
    names: tuple[str, str] = ("else", "if"),
    own: Frame | None = None,
    late: bool = False,
) -> Value:
    """Trace both branches of a condition, append a `switch`, and return the joined result.

    Variables and objects that the branches wrote receive the joined values.

    Args:
        ev: the evaluation.
        cond: a 0-d bool tensor, or a symbolic Python bool.
        then, orelse: functions that evaluate a branch; both return a value, or both a `Flow`.
        what: the name of the result in messages.
        names: the names of the branches in messages; that of `orelse` is first.
        own: the frame of the function being evaluated. Its local variables are not joined if a
            branch returns from the function, unless code may read them afterwards.
        late: whether code may read a variable that only one branch binds; if so, a node checks at
            run time that the variable is bound.
    """
    known = set(ev.host_objects)
    branches = [run_branch(ev, lambda: _reached(orelse)), run_branch(ev, lambda: _reached(then))]
    builders = [b[0] for b in branches]
    results = [b[1] for b in branches]
    changes = [b[2] for b in branches]
    join = Join(ev, cond, builders, names, late, changes)
    template = _joined_result(join, results, what)
    written: list[tuple[Location, Value]] = []
    for key in {**changes[0], **changes[1]}:
        location = (changes[0].get(key) or changes[1][key])[0]
        dropped = [_drops(r, location, own) for r in results]
        if not all(dropped):
            ended = own is not None and any(map(_returns, results)) and _is_local(location, own)
            made = _joined_location(ev, join, key, location, dropped, ended)
            written.append((location, made))
    found = _append(ev, cond, builders, join.exports.columns)
    join.note_candidates(found)
    for location, made in written:
        ev.journal.write(location, with_results(made, found))
        tensor = location.owner.tensor if location.kind == "slot" else location.owner
        if location.kind in ("slot", "tensor") and id(tensor) in ev.host_objects.keys() - known:
            write_through(ev, tensor)  # a branch made its Tensor object
    return with_results(template, found)


def _joined_result(join: Join, results: Sequence[Value], what: str) -> Value:
    """Return the joined result of two branches, or one branch's if the other always raises.

    If both always raise, the result is a `Flow` marked `dead`. `what` names the result in messages.
    """
    dead = [isinstance(r, Flow) and r.dead for r in results]
    if all(dead):
        return results[0]
    if any(dead):
        k = dead.index(False)
        r = results[k]
        if isinstance(r, Flow):
            return Flow(*(join.from_branch(v, k) for v in (r.ret, r.brk, r.cont, r.value)))
        return join.from_branch(r, k)
    if isinstance(results[0], Flow):
        return join.flow(results[0], results[1], what)
    return join.value(results[0], results[1], what)


def _drops(result: Value, location: Location, own: Frame | None) -> bool:
    """Return whether no code after a branch can read what the branch assigned to a location.

    True if the branch raises an error, or if it returns and the location is a local variable that
    neither a `finally` block nor a nested function reads.

    Args:
        result: the result of evaluating the branch.
        location: the location.
        own: the frame of the function that the branch is in.
    """
    if not isinstance(result, Flow):
        return False
    if result.dead or own is None or not _returns(result):
        return result.dead
    return _is_local(location, own) and location.name not in own.source.read_after_return


def _returns(result: Value) -> bool:
    return isinstance(result, Flow) and result.ret is True


def _is_local(location: Location, frame: Frame) -> bool:
    return location.kind == "item" and location.owner is frame.vars


def _joined_location(
    ev: Evaluation,
    join: Join,
    key: Key,
    location: Location,
    dropped: Sequence[bool],
    ended: bool,
) -> Value:
    """Return the content, after both branches, of a location that one or both of them changed.

    Args:
        ev: the evaluation.
        join: joins the values of the branches.
        key: key of the location in the changes of a branch.
        location: the location.
        dropped: for each branch, whether no code reads its content after the branch.
        ended: whether the location is a local variable, and a branch returned from its function.
            Few variables are read then, so that only reading one is an error if the values of the
            branches differ in kind.
    """
    before = location.read()
    values = [
        c[key][1] if key in c else content_at_end(ev, c, location, before, b)
        for c, b in zip(join.changes, join.exports.builders)
    ]
    if any(dropped):
        k = dropped.index(False)
        return join.content_from_branch(location, values[k], k)
    label = label_of(ev, location)
    try:
        return join.value(values[0], values[1], label)
    except (JoinError, UnsupportedSyntaxError) as error:
        frames = ev.calls.frames
        local = location.kind == "item" and any(location.owner is f.vars for f in frames)
        if local and _same_kind_of_object(ev, values[0], values[1]):
            return Unjoined(label, error)
        if ended:
            return Unjoined(label, line_by_line(error) if isinstance(error, JoinError) else error)
        if isinstance(error, JoinError) and is_outside_location(ev, location):
            raise line_by_line(error) from None
        raise


def is_outside_location(ev: Evaluation, location: Location) -> bool:
    """Return whether a location is outside the function, or the copy of an outside container.

    Outside locations are global names, and attributes of objects that the function did not make.
    The evaluation works on copies of the lists, dicts and sets from outside.
    """
    owner = location.owner
    return owner is ev.outside.values or id(owner) in ev.copies.originals


def _same_kind_of_object(ev: Evaluation, a: Value, b: Value) -> bool:
    """Return whether evaluated code made both values, and both are instances of the same class.

    The result is False for instances without a `__dict__`.
    """
    a, b = (x.value if isinstance(x, Maybe) else x for x in (a, b))
    return (
        type(a) is type(b)
        and id(a) in ev.owned.objects
        and id(b) in ev.owned.objects
        and hasattr(a, "__dict__")
    )


def _reached(run: Callable[[], Value]) -> Value:
    """Trace a branch; return its result, or a `Flow` marked `dead` if the branch always raises."""
    try:
        return run()
    except Dead:
        return Flow(dead=True)


def _append(
    ev: Evaluation, cond: Flag, builders: list[StagedBuilder], columns: list[list[Value]]
) -> Value:
    """Append a `switch` node that runs one of two sub-graphs, and return the node's results.

    If the sub-graphs have no outputs and no effects, and cannot raise an error, no node is
    appended, and the result is an empty tuple.

    Args:
        ev: the evaluation.
        cond: the condition.
        builders: the builders of the sub-graphs.
        columns: for each sub-graph, the values that are its outputs.
    """
    outer = list(dict.fromkeys([i for b in builders for i in b.outer]))
    if not columns[0] and not any([b.nodes for b in builders]):
        return ()
    graphs = tuple([b.closed(c, outer) for b, c in zip(builders, columns, strict=True)])
    parent = ev.builder
    if not columns[0] and not any(g.effects or any(map(may_raise, g.nodes)) for g in graphs):
        return ()
    assert not isinstance(cond, bool)
    index = parent.bring(cond)
    operands = (index, *map(parent.tensor, outer))
    return parent.append(switch, operands, {"branches": graphs})


def label_of(ev: Evaluation, location: Location) -> str:
    """Return the name of a variable, attribute, container or tensor location for messages."""
    kind, owner, name = location
    if kind in ("item", "attribute"):
        label = str(name[2] if isinstance(name, tuple) else name)
        return "the result of the loop" if label == "*value" else label
    if kind == "slot":
        return str(getattr(owner.tensor, "name", "a Tensor"))
    for variable, value in ev.calls.frames[-1].vars.items() if ev.calls.frames else ():
        if value is owner:
            return str(variable)
    return {"tensor": "the Tensor", "list": "the list", "dict": "the dict", "set": "the set"}[kind]
