"""Frames of functions that are being evaluated, and their names: local, of a function around,
global, built in.
"""

from __future__ import annotations

import builtins
from types import CellType
from typing import Any

from ..errors import UnsupportedSyntaxError
from ..ir.values import kind_of
from ..tensor import Tensor
from .external import taken
from .host import depends_on_graph, note_effect
from .libraries import is_framework
from .source import Source
from .trace import MISSING, Local, Restart, Trace
from .values import Maybe, Undefined, Unjoined

__all__ = ["Frame", "Function", "same_function", "load", "store", "remove"]


class Function:
    """A function that compiled code defines (or that Python made): source, defaults, and where its
    names live.

    It can be called by Python as well: while a graph is being built the call is evaluated like any
    other.
    """

    def __init__(
        self,
        source: Source,
        defaults: tuple[Any, ...],
        kw_defaults: dict[str, Any],
        globals_: dict[str, Any],
        parent: Frame | None = None,
        closure: dict[str, CellType] | None = None,
        original: Any = None,
    ) -> None:
        self.source = source
        self.__name__ = source.name
        self.__qualname__ = source.name
        self.defaults = defaults
        self.kw_defaults = kw_defaults
        self.globals = globals_
        self.parent = parent
        self.closure = closure or {}
        self.original = original

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from .calls import call_now

        return call_now(self, args, kwargs)

    def as_python(self) -> Any:
        """The function for code that runs on the host while the graph runs.

        Raises:
            UnsupportedSyntaxError: it was defined by compiled code.
        """
        if self.original is None:
            raise UnsupportedSyntaxError(
                f"{self.__name__}: got a function that is defined inside jit for Python code that works on data "
                f"that are known only when the function runs; define it outside"
            )
        return self.original

    def __repr__(self) -> str:
        return f"<function {self.__name__}>"


def same_function(a: Any, b: Any) -> bool:
    """Whether both are what one `def` or `lambda` gives, at different turns."""
    return (
        isinstance(a, Function)
        and isinstance(b, Function)
        and a.source.node is b.source.node
        and a.parent is b.parent
        and not depends_on_graph((a.defaults, a.kw_defaults, b.defaults, b.kw_defaults))
    )


class Frame:
    """The names of one call.

    Attributes:
        source: the function's.
        vars: its local names that are bound.
        depth: of the graph in which it began.
        node: the statement or call that is being evaluated.
    """

    __slots__ = (
        "function",
        "source",
        "vars",
        "parent",
        "globals",
        "closure",
        "depth",
        "node",
        "locals",
        "first",
    )

    def __init__(self, function: Function, depth: int) -> None:
        self.function = function
        self.source = function.source
        self.vars = Local(depth)
        self.parent = function.parent
        self.globals = function.globals
        self.closure = function.closure
        self.depth = depth
        self.node: Any = self.source.node
        self.locals: Any = self.source.locals
        self.first: Any = None  # the first argument: what super() is about

    def inner(self, names: frozenset[str], depth: int) -> Frame:
        """The frame of a comprehension."""
        made = Frame(self.function, depth)
        made.parent = self
        made.locals = names
        made.node = self.node
        made.first = self.first
        return made


def load(t: Trace, frame: Frame, name: str) -> Any:
    """The value of a name.

    Raises:
        UnboundLocalError: a local name without a value.
        NameError: no such name.
    """
    found: Frame | None = frame
    while found is not None:
        if name in found.locals:
            value = found.vars.get(name, MISSING)
            if value.__class__ in (Undefined, Maybe, Unjoined) or value is MISSING:
                return _unbound(t, found, name, value)
            return value
        if name in found.source.globals:
            break
        if found.parent is None:
            cell = found.closure.get(name)
            if cell is not None:
                return _load_cell(t, found, cell, name)
        found = found.parent
    return _load_global(t, frame, name)


def _unbound(t: Trace, frame: Frame, name: str, value: Any) -> Any:
    if isinstance(value, Maybe):
        where = name

        def check(bound: Any) -> None:
            if not bound:
                raise UnboundLocalError(
                    f"local variable '{where}' referenced before assignment: what binds it, a loop or a part of a "
                    f"condition, did not run"
                )

        note_effect(t, check, (value.bound,), "check_bound")
        t.set_item(frame.vars, name, value.value)
        return value.value
    if isinstance(value, Unjoined):
        raise value.error
    if isinstance(value, Undefined):
        raise UnboundLocalError(
            f"local variable '{name}' referenced before assignment: it is not bound in the {value.where!r} branch "
            f"of a condition on a Tensor; bind it there, or before the condition"
        )
    raise UnboundLocalError(f"local variable '{name}' referenced before assignment")


def _load_cell(t: Trace, frame: Frame, cell: CellType, name: str) -> Any:
    key = ("cell", id(cell), None)
    if key in t.overlay:
        return t.overlay[key]
    try:
        value = cell.cell_contents
    except ValueError:
        raise NameError(
            f"cannot access free variable '{name}' where it is not associated with a value in enclosing scope"
        ) from None
    return _outside(t, "cell", cell, None, value, name)


def _load_global(t: Trace, frame: Frame, name: str) -> Any:
    values = frame.globals
    key = ("item", id(values), name)
    if key in t.overlay:
        value = t.overlay[key]
        if value is not MISSING:
            return value
        raise NameError(f"name '{name}' is not defined")
    if name in values:
        if is_framework(values.get("__name__")):
            return taken(t, values[name], None)  # our own tables change, and mean the same
        return _outside(t, "item", values, name, values[name], name)
    found = getattr(builtins, name, MISSING)
    if found is MISSING:
        raise NameError(f"name '{name}' is not defined")
    return found


def _outside(t: Trace, kind: str, owner: Any, name: Any, value: Any, label: str) -> Any:
    """A value read from a place that other code can write as well."""
    place = (kind, id(owner), name)
    if place in t.written:
        if kind_of(value) is not None:
            t.captures.add("type", (kind, owner, name), None, type(value), label, exact=True)
            return t.number_input(kind, owner, name, value)
        if type(value) is Tensor:
            t.captures.add("type", (kind, owner, name), None, value._type.plain, label, exact=True)
            return t.tensor_input(kind, owner, name, value)
        t.captures.add(kind, owner, name, value, label, exact=True)
    else:
        t.captures.add(kind, owner, name, value, label)
        t.read[place] = value
    t.keep.append(owner)
    return taken(t, value, label)


def write_outside(t: Trace, kind: str, owner: Any, name: Any, value: Any, label: str) -> None:
    """Write a place that other code can read: now in this evaluation, and when the graph runs.

    Raises:
        Restart: it was read as a constant before.
    """
    place = (kind, id(owner), name)
    if place in t.read and place not in t.written:
        t.written.add(place)
        t.keep.append(owner)
        raise Restart(label)
    t.keep.append(owner)
    if t.conditions and place not in t.overlay:
        # under a condition: what is there now is what the other branch leaves
        present = _present(kind, owner, name)
        if present is not MISSING:
            if place not in t.written:
                t.written.add(place)
                raise Restart(label)
            t.overlay[place] = _outside(t, kind, owner, name, present, label)
    t.set_item(t.overlay, place, value)
    t.host_writes = True
    if kind == "item":
        note_effect(t, owner.__setitem__, (name, value), f"set {label}", objects=True)
    elif kind == "cell":
        note_effect(
            t, lambda v: setattr(owner, "cell_contents", v), (value,), f"set {label}", objects=True
        )
    else:
        note_effect(t, lambda v: setattr(owner, name, v), (value,), f"set {label}", objects=True)


def _present(kind: str, owner: Any, name: Any) -> Any:
    if kind == "item":
        return owner.get(name, MISSING)
    if kind == "cell":
        try:
            return owner.cell_contents
        except ValueError:
            return MISSING
    return getattr(owner, name, MISSING)


def store(t: Trace, frame: Frame, name: str, value: Any) -> None:
    """Bind a name."""
    source = frame.source
    target: Frame | None
    if name in frame.locals:
        target = frame
    elif name in source.globals:
        write_outside(t, "item", frame.globals, name, value, name)
        return
    else:  # nonlocal, or a walrus in a comprehension
        target = frame.parent
        while target is not None and name not in target.locals:
            if name in target.source.globals:
                write_outside(t, "item", target.globals, name, value, name)
                return
            if target.parent is None:
                break
            target = target.parent
        if target is None or name not in target.locals:
            cell = (target or frame).closure.get(name)
            if cell is None:
                raise NameError(f"no binding for nonlocal '{name}' found")
            write_outside(t, "cell", cell, None, value, name)
            return
    assert target is not None
    t.set_item(target.vars, name, value)


def remove(t: Trace, frame: Frame, name: str) -> None:
    """`del name`."""
    load(t, frame, name)
    if name not in frame.locals:
        write_outside(t, "item", frame.globals, name, MISSING, name)
        return
    t.touch("item", frame.vars, name)
    del frame.vars[name]
