"""What a loop whose condition is a tensor becomes: a `while_loop` that carries what a turn writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import JoinError
from ..ir.builder import GraphTensor
from ..ir.control import while_loop
from ..ir.values import GraphScalar, HostValue, kind_of
from ..tensor import Tensor
from ..types import TensorType
from .aliases import note_one_of, older, pairs
from .branches import as_flag, filler, label_of, or_python, side
from .builder import StagedBuilder
from .captures import same
from .diagnostics import AROUND_A_TURN, join_error
from .frames import same_function
from .trace import MISSING, Trace, read_location
from .values import NOTHING, Maybe, Undefined

__all__ = ["graph_loop"]


class _Graph:
    """A leaf that is carried, of this type."""

    def __init__(self, type_: Any) -> None:
        self.type = type_


class _Late:
    """A name that only the loop binds; its kind."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind


class _Lost:
    """A name to which every turn gives an object of its own; after the loop it has no value."""


class _Constant:
    """A leaf that the loop does not change."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _kind(old: Any, new: Any, what: str, late: bool = False) -> Any:
    """What is carried under a name that holds `old` before a turn and `new` after it."""
    if old is MISSING or old is NOTHING or isinstance(old, (Undefined, Maybe)):
        if _nothing(new):
            return _Constant(old)
        new = new.value if isinstance(new, Maybe) else new
        return _Late(_kind(new, new, what, late=True))
    if new is NOTHING:
        return _Late(_kind(old, old, what, late=True))
    if what in ("*brk", "*ret"):  # flags: constants and tensors mix
        for flag in (old, new):
            if isinstance(flag, Tensor):
                return _Graph(flag._type.plain)
    if old is new and not late and isinstance(old, (list, dict, set)):
        return _Constant(old)  # what it holds is carried by itself
    if isinstance(old, Tensor) and isinstance(new, Tensor):
        if old._type.plain is not new._type.plain:
            raise _changed(what, old, new)
        return _Graph(old._type.plain)
    a, b = kind_of(old), kind_of(new)
    if a is not None and b is not None:
        if a is not b:
            raise _changed(what, old, new)
        known = not isinstance(old, GraphScalar) and not isinstance(new, GraphScalar)
        return _Constant(old) if known and repr(old) == repr(new) else _Graph(a)
    if isinstance(old, HostValue) and isinstance(new, HostValue) and old._type is new._type:
        return _Graph(old._type)
    if type(old) is type(new) and isinstance(old, (tuple, list)):
        if len(old) != len(new):
            raise _changed(what, old, new)
        items = [_kind(x, y, f"{what}[{i}]", late) for i, (x, y) in enumerate(zip(old, new))]
        if isinstance(old, list):
            return items
        return type(old)(*items) if hasattr(old, "_fields") else tuple(items)
    if isinstance(old, dict) and isinstance(new, dict):
        if list(old) != list(new):
            raise _changed(what, old, new)
        return {k: _kind(old[k], new[k], f"{what}[{k!r}]", late) for k in old}
    if same(old, new) or same_function(old, new):
        return _Constant(old)
    raise _changed(what, old, new)


def _nothing(value: Any) -> bool:
    return value is MISSING or value is NOTHING or isinstance(value, Undefined)


def _changed(what: str, old: Any, new: Any) -> Exception:
    return or_python(join_error(what, side(old), side(new), where=AROUND_A_TURN), old, new)


def _entering(kind: Any, builder: StagedBuilder) -> Any:
    """The value of a name at the start of a turn, with new parameters for what is carried."""
    if isinstance(kind, _Graph):
        return builder.parameter(kind.type)
    if isinstance(kind, _Late):
        _entering(kind.kind, builder)
        return MISSING
    if isinstance(kind, _Lost):
        return MISSING
    if isinstance(kind, _Constant):
        return kind.value
    if isinstance(kind, dict):
        return builder.trace.note_own({k: _entering(v, builder) for k, v in kind.items()})
    items = [_entering(v, builder) for v in kind]
    if isinstance(kind, list):
        return builder.trace.note_own(items)
    return type(kind)(*items) if hasattr(kind, "_fields") else tuple(items)


def _leaving(kind: Any, value: Any, builder: Any, out: list[Any]) -> None:
    """The carried leaves of a value, as values of `builder`."""
    if isinstance(kind, _Graph):
        if isinstance(kind.type, TensorType):
            known = not isinstance(value, (bool, GraphScalar))
            out.append(builder.operand(value, None) if known else as_flag(value))
        else:
            out.append(builder.host(value))
    elif isinstance(kind, _Late):
        if _nothing(value):
            _fill(kind.kind, builder, out)
        else:
            _leaving(kind.kind, value.value if isinstance(value, Maybe) else value, builder, out)
    elif isinstance(kind, dict):
        for k, v in kind.items():
            _leaving(v, value[k], builder, out)
    elif not isinstance(kind, (_Constant, _Lost)):
        for k, v in zip(kind, value):
            _leaving(k, v, builder, out)


def _fill(kind: Any, builder: Any, out: list[Any]) -> None:
    if isinstance(kind, _Graph):
        out.append(filler(builder, kind.type))
    elif isinstance(kind, dict):
        for v in kind.values():
            _fill(v, builder, out)
    elif isinstance(kind, (tuple, list)):
        for v in kind:
            _fill(v, builder, out)


def _after(t: Trace, kind: Any, results: Any, name: str, ran: Any) -> Any:
    """The value of a name after the loop."""
    if isinstance(kind, _Graph):
        return next(results)
    if isinstance(kind, _Late):
        value = _after(t, kind.kind, results, name, ran)
        return value if ran is True else Maybe(name, value, ran)
    if isinstance(kind, _Lost):
        return Undefined(name, "loop")
    if isinstance(kind, _Constant):
        return kind.value
    if isinstance(kind, dict):
        return t.note_own({k: _after(t, v, results, name, ran) for k, v in kind.items()})
    items = [_after(t, v, results, name, ran) for v in kind]
    if isinstance(kind, list):
        return t.note_own(items)
    return type(kind)(*items) if hasattr(kind, "_fields") else tuple(items)


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, _Constant) and isinstance(b, _Constant):
        return same(a.value, b.value) or same_function(a.value, b.value)
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(_alike(a[k], b[k]) for k in a)
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(_alike, a, b))
    if isinstance(a, _Lost):
        return True
    if isinstance(a, _Late):
        return _alike(a.kind, b.kind)
    return bool(a.type == b.type)


def _kind_at(t: Trace, old: Any, new: Any, what: str) -> Any:
    """As `_kind`; a name to which every turn gives an object that it makes is lost."""
    nothing = old is MISSING or isinstance(old, Undefined)
    if old is not new and _is_object(t, new) and (nothing or _is_object(t, old)):
        return _Lost()
    return _kind(old, new, what)


def _is_object(t: Trace, value: Any) -> bool:
    """Whether a value is an object of a class of the user's, made while compiling."""
    plain = isinstance(value, (Tensor, list, dict, set, tuple)) or callable(value)
    return id(value) in t.own and hasattr(value, "__dict__") and not plain


def graph_loop(t: Trace, predicate: Any, step: Callable[[], Any], ran: Any) -> None:
    """Run `step` while the predicate holds.

    Args:
        predicate: a bool of the graph: whether there is a first turn.
        step: evaluates one turn, returns whether there is another: a bool of the graph, or a Python
            one.
        ran: whether names that only the loop binds are bound after it: True, or a bool of the
            graph.
    """
    _, _, changes = t.apart(step)
    locations = {key: location for key, (location, _) in changes.items()}
    before = {key: read_location(*location) for key, location in locations.items()}
    kinds = {
        key: _kind_at(t, before[key], changes[key][1], label_of(t, locations[key]))
        for key in locations
    }
    for _ in range(8):
        child = StagedBuilder(t, t.builder)
        first: dict[int, Any] = {}  # per parameter of a turn: what it is at the first one

        def turn(child: StagedBuilder = child, first: dict[int, Any] = first) -> Any:
            for key, location in locations.items():
                entered = _entering(kinds[key], child)
                for made, old in pairs(entered, before[key]):
                    if (
                        isinstance(made, GraphTensor)
                        and isinstance(old, Tensor)
                        and _named(location)
                    ):
                        first[made._id] = old
                        note_one_of(t, made, [old])
                t.put(location, entered)
            return step()

        t.conditions += 1
        try:
            following, written = t.undone(child, turn)
        finally:
            t.conditions -= 1
        ends = {key: value for key, (_, value) in written.items()}
        stable = True
        for key, (location, _) in written.items():
            if key not in locations:
                locations[key] = location
                before[key] = read_location(*location)
                kinds[key] = _kind_at(t, before[key], ends[key], label_of(t, location))
                stable = False
            else:
                wider = _wider(kinds[key], before[key], ends[key], label_of(t, location))
                if not _alike(wider, kinds[key]):
                    kinds[key] = wider
                    stable = False
        if stable:
            break
    else:
        raise JoinError(
            "Cannot join the return values of different branches: a loop whose condition is a Tensor "
            "changes the types of its variables at every turn; wanted fixed types"
        )
    outputs: list[Any] = []
    with child.current():
        for key in locations:
            _leaving(kinds[key], ends[key], child, outputs)
        host = isinstance(predicate, GraphScalar) and isinstance(following, (bool, GraphScalar))
        last = child.host(following) if host else as_flag(following)
    parent = t.builder
    begins = parent.host(predicate) if host else as_flag(predicate)
    inits: list[Any] = []
    for key in locations:
        _leaving(kinds[key], before[key], parent, inits)
    outer = list(child.outer)
    body = child.closed([last, *outputs], outer)
    operands = (begins, *inits, *(parent.tensor(i) for i in outer))
    found = parent.append(while_loop, operands, {"body": body, "n_carry": len(inits)})
    results = iter(found)
    for key, location in locations.items():
        value = _after(t, kinds[key], results, label_of(t, location), ran)
        if _named(location):
            _note_origins(t, value, before[key], ends[key], child, first)
        t.put(location, value)


def _named(location: Any) -> bool:
    """Whether a location holds tensors, rather than being one."""
    return location[0] in ("item", "attribute", "list", "dict")


def _note_origins(
    t: Trace, after: Any, before: Any, end: Any, child: StagedBuilder, first: dict[int, Any]
) -> None:
    """What a name holds after a loop may be what it held before, or what a turn gave it of older
    tensors.
    """
    for made, old in pairs(after, before):
        if isinstance(old, Tensor) and made is not old:
            note_one_of(t, made, [old])
    for made, last in pairs(after, end):
        if made is last or not isinstance(last, Tensor):
            continue
        note_one_of(t, made, older(t, last, child))
        if isinstance(last, GraphTensor) and last._builder is child and last._id in first:
            # names may go round: any of those that a turn starts with
            note_one_of(t, made, list(first.values()))


def _wider(kind: Any, old: Any, new: Any, what: str) -> Any:
    """The kind that also holds `new`, which a turn that started from `kind` ended with."""
    if isinstance(kind, _Lost):
        return kind
    if isinstance(kind, _Late):
        if _nothing(new):
            return kind
        new = new.value if isinstance(new, Maybe) else new
        return _Late(_wider(kind.kind, new, new, what))
    if isinstance(kind, _Graph):
        if what in ("*brk", "*ret"):
            return kind if kind_of(new) is not None else _Graph(new._type.plain)
        if isinstance(new, (Tensor, HostValue)):
            if new._type.plain is kind.type:
                return kind
        elif kind_of(new) is kind.type:
            return kind
        raise _changed(what, old, new)
    if isinstance(kind, _Constant):
        return _kind(old, new, what)
    if isinstance(kind, dict):
        if not isinstance(new, dict) or list(new) != list(kind):
            raise _changed(what, old, new)
        return {k: _wider(kind[k], old[k], new[k], f"{what}[{k!r}]") for k in kind}
    if type(new) is not type(kind) or len(new) != len(kind):
        raise _changed(what, old, new)
    items = [_wider(k, o, n, what) for k, o, n in zip(kind, old, new)]
    if isinstance(kind, list):
        return items
    return type(kind)(*items) if hasattr(kind, "_fields") else tuple(items)
