"""Loops whose condition the graph computes: one `while_loop` that carries what an iteration writes.

The body is evaluated several times, until the types of the carried values are stable.
"""

from __future__ import annotations

from collections.abc import Callable

from ...errors import JoinError
from ...ir.builder import GraphTensor
from ...ir.control import while_loop
from ...ir.values import GraphScalar, HostValue, kind_of
from ...tensor import Tensor
from ...types import TensorType
from ..diagnostics import AROUND_A_TURN, join_error
from ..state.builder import StagedBuilder
from ..state.captures import same
from ..state.evaluation import Evaluation
from ..state.journal import MISSING, Location
from ..types import Flag, Value
from ..values.flow import NOTHING, Maybe, Undefined
from ..values.functions import same_function
from ..values.nested import pairs
from .aliasing import note_candidates, tensors_before
from .branches import label_of, run_and_undo, run_branch
from .join import join_side, or_line_by_line, placeholder_value
from .truth import as_flag


class _Carried:
    """A leaf that is carried, of this type."""

    def __init__(self, type_: Value) -> None:
        self.type = type_


class _BoundInside:
    """A name that only the loop binds; its kind."""

    def __init__(self, kind: Value) -> None:
        self.kind = kind


class _Dropped:
    """A name to which every turn gives an object of its own; after the loop it has no value."""


class _Constant:
    """A leaf that the loop does not change."""

    def __init__(self, value: Value) -> None:
        self.value = value


def _plan(old: Value, new: Value, what: str, late: bool = False) -> Value:
    """What is carried under a name that holds `old` before a turn and `new` after it."""
    if old is MISSING or old is NOTHING or isinstance(old, (Undefined, Maybe)):
        if _unbound(new):
            return _Constant(old)
        new = new.value if isinstance(new, Maybe) else new
        return _BoundInside(_plan(new, new, what, late=True))
    if new is NOTHING:
        return _BoundInside(_plan(old, old, what, late=True))
    if what in ("*brk", "*ret"):  # flags: constants and tensors mix
        for flag in (old, new):
            if isinstance(flag, Tensor):
                return _Carried(flag._type.plain)
    if old is new and not late and isinstance(old, (list, dict, set)):
        return _Constant(old)  # what it holds is carried by itself
    if isinstance(old, Tensor) and isinstance(new, Tensor):
        if old._type.plain is not new._type.plain:
            raise _changes_type(what, old, new)
        return _Carried(old._type.plain)
    a, b = kind_of(old), kind_of(new)
    if a is not None and b is not None:
        if a is not b:
            raise _changes_type(what, old, new)
        known = not isinstance(old, GraphScalar) and not isinstance(new, GraphScalar)
        return _Constant(old) if known and repr(old) == repr(new) else _Carried(a)
    if isinstance(old, HostValue) and isinstance(new, HostValue) and old._type is new._type:
        return _Carried(old._type)
    if type(old) is type(new) and isinstance(old, (tuple, list)):
        if len(old) != len(new):
            raise _changes_type(what, old, new)
        items = [_plan(x, y, f"{what}[{i}]", late) for i, (x, y) in enumerate(zip(old, new))]
        if isinstance(old, list):
            return items
        return type(old)(*items) if hasattr(old, "_fields") else tuple(items)
    if isinstance(old, dict) and isinstance(new, dict):
        if list(old) != list(new):
            raise _changes_type(what, old, new)
        return {k: _plan(old[k], new[k], f"{what}[{k!r}]", late) for k in old}
    if same(old, new) or same_function(old, new):
        return _Constant(old)
    raise _changes_type(what, old, new)


def _unbound(value: Value) -> bool:
    return value is MISSING or value is NOTHING or isinstance(value, Undefined)


def _changes_type(what: str, old: Value, new: Value) -> Exception:
    return or_line_by_line(
        join_error(what, join_side(old), join_side(new), where=AROUND_A_TURN), old, new
    )


def _at_entry(kind: Value, builder: StagedBuilder) -> Value:
    """The value of a name at the start of a turn, with new parameters for what is carried."""
    if isinstance(kind, _Carried):
        return builder.parameter(kind.type)
    if isinstance(kind, _BoundInside):
        _at_entry(kind.kind, builder)
        return MISSING
    if isinstance(kind, _Dropped):
        return MISSING
    if isinstance(kind, _Constant):
        return kind.value
    if isinstance(kind, dict):
        return builder.evaluation.owned.add({k: _at_entry(v, builder) for k, v in kind.items()})
    items = [_at_entry(v, builder) for v in kind]
    if isinstance(kind, list):
        return builder.evaluation.owned.add(items)
    return type(kind)(*items) if hasattr(kind, "_fields") else tuple(items)


def _at_exit(kind: Value, value: Value, builder: StagedBuilder, out: list[Value]) -> None:
    """The carried leaves of a value, as values of `builder`."""
    if isinstance(kind, _Carried):
        if isinstance(kind.type, TensorType):
            known = not isinstance(value, (bool, GraphScalar))
            out.append(builder.operand(value, None) if known else as_flag(value))
        else:
            out.append(builder.host(value))
    elif isinstance(kind, _BoundInside):
        if _unbound(value):
            _placeholders(kind.kind, builder, out)
        else:
            _at_exit(kind.kind, value.value if isinstance(value, Maybe) else value, builder, out)
    elif isinstance(kind, dict):
        for k, v in kind.items():
            _at_exit(v, value[k], builder, out)
    elif not isinstance(kind, (_Constant, _Dropped)):
        for k, v in zip(kind, value):
            _at_exit(k, v, builder, out)


def _placeholders(kind: Value, builder: StagedBuilder, out: list[Value]) -> None:
    if isinstance(kind, _Carried):
        out.append(placeholder_value(builder, kind.type))
    elif isinstance(kind, dict):
        for v in kind.values():
            _placeholders(v, builder, out)
    elif isinstance(kind, (tuple, list)):
        for v in kind:
            _placeholders(v, builder, out)


def _after_loop(ev: Evaluation, kind: Value, results: Value, name: str, ran: Flag) -> Value:
    """The value of a name after the loop."""
    if isinstance(kind, _Carried):
        return next(results)
    if isinstance(kind, _BoundInside):
        value = _after_loop(ev, kind.kind, results, name, ran)
        return value if ran is True else Maybe(name, value, ran)
    if isinstance(kind, _Dropped):
        return Undefined(name, "loop")
    if isinstance(kind, _Constant):
        return kind.value
    if isinstance(kind, dict):
        return ev.owned.add({k: _after_loop(ev, v, results, name, ran) for k, v in kind.items()})
    items = [_after_loop(ev, v, results, name, ran) for v in kind]
    if isinstance(kind, list):
        return ev.owned.add(items)
    return type(kind)(*items) if hasattr(kind, "_fields") else tuple(items)


def _same_plan(a: Value, b: Value) -> bool:
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
        return _same_plan(a.kind, b.kind)
    return bool(a.type == b.type)


def _plan_for(ev: Evaluation, old: Value, new: Value, what: str) -> Value:
    """As `_kind`; a name to which every turn gives an object that it makes is lost."""
    nothing = old is MISSING or isinstance(old, Undefined)
    if old is not new and _is_object(ev, new) and (nothing or _is_object(ev, old)):
        return _Dropped()
    return _plan(old, new, what)


def _is_object(ev: Evaluation, value: Value) -> bool:
    """Whether a value is an object of a class of the user's, made while compiling."""
    plain = isinstance(value, (Tensor, list, dict, set, tuple)) or callable(value)
    return id(value) in ev.owned.objects and hasattr(value, "__dict__") and not plain


def graph_loop(ev: Evaluation, predicate: Flag, step: Callable[[], Value], ran: Flag) -> None:
    """Run `step` while the predicate holds.

    Args:
        predicate: a bool of the graph: whether there is a first turn.
        step: evaluates one turn, returns whether there is another: a bool of the graph, or a Python one.
        ran: whether names that only the loop binds are bound after it: True, or a bool of the graph.
    """
    _, _, changes = run_branch(ev, step)
    locations = {key: location for key, (location, _) in changes.items()}
    before = {key: location.read() for key, location in locations.items()}
    kinds = {
        key: _plan_for(ev, before[key], changes[key][1], label_of(ev, locations[key]))
        for key in locations
    }
    for _ in range(8):
        child = StagedBuilder(ev, ev.builder)
        first: dict[int, Value] = {}  # per parameter of a turn: what it is at the first one

        def turn(child: StagedBuilder = child, first: dict[int, Value] = first) -> Value:
            for key, location in locations.items():
                entered = _at_entry(kinds[key], child)
                for made, old in pairs(entered, before[key]):
                    if (
                        isinstance(made, GraphTensor)
                        and isinstance(old, Tensor)
                        and _holds_tensors(location)
                    ):
                        first[made._id] = old
                        note_candidates(ev, made, [old])
                ev.journal.write(location, entered)
            return step()

        ev.journal.conditions += 1
        try:
            following, written = run_and_undo(ev, child, turn)
        finally:
            ev.journal.conditions -= 1
        ends = {key: value for key, (_, value) in written.items()}
        stable = True
        for key, (location, _) in written.items():
            if key not in locations:
                locations[key] = location
                before[key] = location.read()
                kinds[key] = _plan_for(ev, before[key], ends[key], label_of(ev, location))
                stable = False
            else:
                wider = _widened(kinds[key], before[key], ends[key], label_of(ev, location))
                if not _same_plan(wider, kinds[key]):
                    kinds[key] = wider
                    stable = False
        if stable:
            break
    else:
        raise JoinError(
            "Cannot join the return values of different branches: a loop whose condition is a Tensor "
            "changes the types of its variables at every turn; wanted fixed types"
        )
    outputs: list[Value] = []
    with child.current():
        for key in locations:
            _at_exit(kinds[key], ends[key], child, outputs)
        host = isinstance(predicate, GraphScalar) and isinstance(following, (bool, GraphScalar))
        last = child.host(following) if host else as_flag(following)
    parent = ev.builder
    begins = parent.host(predicate) if host else as_flag(predicate)
    inits: list[Value] = []
    for key in locations:
        _at_exit(kinds[key], before[key], parent, inits)
    outer = list(child.outer)
    body = child.closed([last, *outputs], outer)
    operands = (begins, *inits, *(parent.tensor(i) for i in outer))
    found = parent.append(while_loop, operands, {"body": body, "n_carry": len(inits)})
    results = iter(found)
    for key, location in locations.items():
        value = _after_loop(ev, kinds[key], results, label_of(ev, location), ran)
        if _holds_tensors(location):
            _note_origins(ev, value, before[key], ends[key], child, first)
        ev.journal.write(location, value)


def _holds_tensors(location: Location) -> bool:
    """Whether a location holds tensors, rather than being one."""
    return location.kind in ("item", "attribute", "list", "dict")


def _note_origins(
    ev: Evaluation,
    after: Value,
    before: Value,
    end: Value,
    child: StagedBuilder,
    first: dict[int, Value],
) -> None:
    """What a name holds after a loop may be what it held before, or what a turn gave it of older tensors."""
    for made, old in pairs(after, before):
        if isinstance(old, Tensor) and made is not old:
            note_candidates(ev, made, [old])
    for made, last in pairs(after, end):
        if made is last or not isinstance(last, Tensor):
            continue
        note_candidates(ev, made, tensors_before(ev, last, child))
        if isinstance(last, GraphTensor) and last._builder is child and last._id in first:
            # names may go round: any of those that a turn starts with
            note_candidates(ev, made, list(first.values()))


def _widened(kind: Value, old: Value, new: Value, what: str) -> Value:
    """The kind that also holds `new`, which a turn that started from `kind` ended with."""
    if isinstance(kind, _Dropped):
        return kind
    if isinstance(kind, _BoundInside):
        if _unbound(new):
            return kind
        new = new.value if isinstance(new, Maybe) else new
        return _BoundInside(_widened(kind.kind, new, new, what))
    if isinstance(kind, _Carried):
        if what in ("*brk", "*ret"):
            return kind if kind_of(new) is not None else _Carried(new._type.plain)
        if isinstance(new, (Tensor, HostValue)):
            if new._type.plain is kind.type:
                return kind
        elif kind_of(new) is kind.type:
            return kind
        raise _changes_type(what, old, new)
    if isinstance(kind, _Constant):
        return _plan(old, new, what)
    if isinstance(kind, dict):
        if not isinstance(new, dict) or list(new) != list(kind):
            raise _changes_type(what, old, new)
        return {k: _widened(kind[k], old[k], new[k], f"{what}[{k!r}]") for k in kind}
    if type(new) is not type(kind) or len(new) != len(kind):
        raise _changes_type(what, old, new)
    items = [_widened(k, o, n, what) for k, o, n in zip(kind, old, new)]
    if isinstance(kind, list):
        return items
    return type(kind)(*items) if hasattr(kind, "_fields") else tuple(items)
