"""Evaluates lookup, binding and deletion of local, enclosing, global and built-in names.

If the function reads a name outside itself, the value is recorded as a constant, which is compared
before each later call. An assignment to such a name appends a node that assigns when the graph
runs; nothing may be assigned while compiling. Most modules of the evaluation call this one.
"""

from __future__ import annotations

import ast
import builtins
import functools
from types import CellType, FunctionType

from ...tensor import Tensor
from ..diagnostics import unsupported
from ..libraries import is_framework
from ..state.calls import Frame
from ..state.evaluation import Evaluation
from ..state.journal import MISSING
from ..state.outside import Restart
from ..types import Flag, Value
from ..values.flow import Maybe, Undefined, Unjoined
from .dispatch import syntax
from .host import append_effect


@syntax(ast.Name)
def _name(ev: Evaluation, frame: Frame, node: ast.Name) -> Value:
    return load(ev, frame, node.id)


def load(ev: Evaluation, frame: Frame, name: str) -> Value:
    """Return the value of a variable, by Python's scope rules.

    Raises:
        UnboundLocalError: the name is local and has no value.
        NameError: there is no such name.
    """
    found: Frame | None = frame
    while found is not None:
        if name in found.locals:
            value = found.vars.get(name, MISSING)
            if value.__class__ in (Undefined, Maybe, Unjoined) or value is MISSING:
                return _unbound(ev, found, name, value, found.function is frame.function)
            return value
        if name in found.source.globals:
            break
        if found.parent is None:
            cell = found.closure.get(name)
            if cell is not None:
                return _load_cell(ev, found, cell, name)
        found = found.parent
    return _load_global(ev, frame, name)


def _unbound(ev: Evaluation, frame: Frame, name: str, value: Value, local: bool) -> Value:
    """Return the value of a variable marked `Maybe`, and append a check that it is bound.

    The check raises UnboundLocalError when the graph runs. The variable loses its mark, so that
    later reads need no check. Any other mark raises an error immediately: UnboundLocalError for a
    variable that is certainly unbound, or the error that an `Unjoined` holds.

    Args:
        ev: the evaluation.
        frame: the frame of the function that binds the variable.
        name: the name of the variable.
        value: its mark, or MISSING.
        local: whether that function reads it, not a nested function.
    """
    if isinstance(value, Maybe):
        where = name

        def check(bound: Flag) -> None:
            if not bound:
                raise UnboundLocalError(
                    f"local variable '{where}' referenced before assignment: the loop or the part "
                    "of a condition that binds it did not run"
                )

        append_effect(ev, check, (value.bound,), "check_bound")
        ev.journal.set_item(frame.vars, name, value.value)
        return value.value
    if isinstance(value, Unjoined):
        raise value.error
    if isinstance(value, Undefined):
        if ev.journal.tries:  # code that catches the error would catch it for either branch
            raise unsupported(
                "Try", f"A condition on a Tensor decides whether {name!r} is bound: bind it before"
            )
        raise UnboundLocalError(
            f"local variable '{name}' referenced before assignment: it is not bound in the "
            f"{value.where!r} branch of a condition on a Tensor; bind it there, or before the "
            "condition"
        )
    if local:
        raise UnboundLocalError(f"local variable '{name}' referenced before assignment")
    raise _unbound_free_variable(name)


def _unbound_free_variable(name: str) -> NameError:
    return NameError(
        f"cannot access free variable '{name}' where it is not associated with a value in "
        "enclosing scope"
    )


def _load_cell(ev: Evaluation, frame: Frame, cell: CellType, name: str) -> Value:
    """Return the value of a closure variable of a user's function.

    The value is recorded as a constant, which is compared before each later call, or becomes an
    input of the graph if the function also assigns to the variable.

    Raises:
        NameError: the variable has no value.
    """
    key = ("cell", id(cell), None)
    if key in ev.outside.values:
        ev.journal.note_read("item", ev.outside.values, key)
        return ev.outside.values[key]
    try:
        value = cell.cell_contents
    except ValueError:
        raise _unbound_free_variable(name) from None
    return read_outside(ev, "cell", cell, None, value, name)


def _load_global(ev: Evaluation, frame: Frame, name: str) -> Value:
    """Return the value of a global or built-in name.

    The value of a user's global is recorded as a constant, which is compared before each later
    call, or becomes an input of the graph if the function also assigns to the global.

    Raises:
        NameError: there is no such name.
    """
    values = frame.globals
    key = ("item", id(values), name)
    if key in ev.outside.values:
        ev.journal.note_read("item", ev.outside.values, key)
        value = ev.outside.values[key]
        if value is not MISSING:
            return value
        raise NameError(f"name '{name}' is not defined")
    if name in values:
        if is_framework(values.get("__name__")):
            return ev.copies.imported(
                values[name], None
            )  # tables of the framework change without changing meaning
        return read_outside(ev, "item", values, name, values[name], name)
    if not is_framework(values.get("__name__")):  # a global of this name would be found first
        read_missing(ev, "item", values, name, name)
    found = getattr(builtins, name, MISSING)
    if not is_framework(values.get("__name__")):
        ev.captures.add("item", vars(builtins), name, found, name)
    if found is MISSING:
        raise NameError(f"name '{name}' is not defined")
    return found


def read_outside(
    ev: Evaluation, kind: str, owner: Value, name: Value, value: Value, label: str
) -> Value:
    """Record the value of an outside name or attribute as a constant to check; return it.

    Lists, dicts and sets are returned as copies. A number or tensor at a location that the function
    also writes becomes a graph input instead of a constant.

    Args:
        ev: the evaluation.
        kind, owner, name: the location: how it is read, such as "attribute", from which object, and
            under which name or key.
        value: the value that the location holds now.
        label: the name for messages.
    """
    key = (kind, id(owner), name)
    ev.journal.note_read("item", ev.outside.values, key)
    if key in ev.outside.written:
        if type(value) in (bool, int, float):
            ev.captures.add("type", (kind, owner, name), None, type(value), label, exact=True)
            return ev.inputs.number(kind, owner, name, value)
        if type(value) is Tensor and ("aliased", id(value), None) not in ev.outside.written:
            ev.captures.add("type", (kind, owner, name), None, value._type.plain, label, exact=True)
            return ev.inputs.tensor(kind, owner, name, value)
        ev.captures.add(kind, owner, name, value, label, exact=True)
    else:
        ev.captures.add(kind, owner, name, value, label)
        ev.outside.constants[key] = value
    ev.keep.append(owner)
    copy = ev.copies.imported(value, label)
    if copy is not value:
        ev.journal.note_read(type(copy).__name__, copy)
    return copy


def read_missing(ev: Evaluation, kind: str, owner: Value, name: Value, label: str) -> None:
    """Record that a name or attribute outside the function does not exist.

    If it exists at a later call, the function is compiled again.

    Args:
        ev: the evaluation.
        kind, owner, name: the location: how it is read, such as "attribute", from which object, and
            under which name or key.
        label: the name for messages.
    """
    key = (kind, id(owner), name)
    ev.journal.note_read("item", ev.outside.values, key)
    ev.captures.add(kind, owner, name, MISSING, label, exact=key in ev.outside.written)
    ev.outside.constants[key] = MISSING
    ev.keep.append(owner)


def write_outside(
    ev: Evaluation, kind: str, owner: Value, name: Value, value: Value, label: str
) -> None:
    """Trace an assignment to a name or attribute outside the function.

    Evaluated code that reads the location later gets `value`. A node stores the value at the
    location when the graph runs.

    Args:
        ev: the evaluation.
        kind, owner, name: the location: how it is accessed, such as "attribute", in which object,
            and under which name or key.
        value: the value.
        label: the name for messages.

    Raises:
        Restart: the location was already read as a constant.
    """
    key = (kind, id(owner), name)
    ev.keep.append(owner)
    if key not in ev.outside.written:
        read: dict[int, Value] = {id(owner): owner} if kind == "attribute" else {}
        whole = (c for c in ev.captures.items.values() if c.kind in ("answer", "entries"))
        if key in ev.outside.constants or any(c.concerns(read) for c in whole):
            ev.outside.written.add(key)
            raise Restart(label)
    if ev.journal.conditions and key not in ev.outside.values:
        # under a condition: the other branch leaves the present value
        present = _outside_now(kind, owner, name)
        if present is not MISSING:
            if key not in ev.outside.written:
                ev.outside.written.add(key)
                raise Restart(label)
            ev.outside.values[key] = read_outside(ev, kind, owner, name, present, label)
    ev.journal.set_item(ev.outside.values, key, value)
    ev.outside.has_writes = True
    if kind == "attribute":
        ev.outside.targets[id(owner)] = owner
    if kind == "item":
        append_effect(ev, owner.__setitem__, (name, value), f"set {label}", objects=True)
    elif kind == "cell":
        append_effect(
            ev, lambda v: setattr(owner, "cell_contents", v), (value,), f"set {label}", objects=True
        )
    else:  # a `__setattr__` of the user has been evaluated, down to `object.__setattr__`
        setter: Value = type(owner).__setattr__
        own = isinstance(setter, FunctionType) and not is_framework(setter.__module__)
        run = functools.partial(object.__setattr__ if own else setattr, owner, name)
        append_effect(ev, run, (value,), f"set {label}", objects=True)


def _outside_now(kind: str, owner: Value, name: Value) -> Value:
    """Return what a global, closure or attribute location holds at present, or MISSING."""
    if kind == "item":
        return owner.get(name, MISSING)
    if kind == "cell":
        try:
            return owner.cell_contents
        except ValueError:
            return MISSING
    return getattr(owner, name, MISSING)


def store(ev: Evaluation, frame: Frame, name: str, value: Value) -> None:
    """Bind a value to a variable while tracing.

    If the variable is outside the compiled function, such as a global, a node is appended that
    assigns the value when the graph runs.
    """
    source = frame.source
    target: Frame | None
    if name in frame.locals:
        target = frame
    elif name in source.globals:
        write_outside(ev, "item", frame.globals, name, value, name)
        return
    else:  # nonlocal, or a walrus in a comprehension
        target = frame.parent
        while target is not None and name not in target.locals:
            if name in target.source.globals:
                write_outside(ev, "item", target.globals, name, value, name)
                return
            if target.parent is None:
                break
            target = target.parent
        if target is None or name not in target.locals:
            cell = (target or frame).closure.get(name)
            if cell is None:
                raise NameError(f"no binding for nonlocal '{name}' found")
            write_outside(ev, "cell", cell, None, value, name)
            return
    assert target is not None
    ev.journal.set_item(target.vars, name, value)


def remove(ev: Evaluation, frame: Frame, name: str) -> None:
    """Trace the statement `del name` for a local name.

    Raises:
        UnsupportedSyntaxError: the name is global or nonlocal.
    """
    load(ev, frame, name)
    if name not in frame.locals:
        raise unsupported(
            "Delete",
            f"The statement `del {name}` of a global or nonlocal name cannot be compiled: delete "
            "it outside of the function",
        )
    ev.journal.touch("item", frame.vars, name)
    del frame.vars[name]
