"""Captures: values from outside a compiled function that its program treats as constants.

The front end records a capture for each read; `compiler.guards` compares the recorded values with
the present ones before each call. The module never decides whether to compile again.
"""

from __future__ import annotations

from collections.abc import Hashable
from types import FunctionType

import numpy as np

from ...nn.cell import Cell
from ...tensor import Tensor
from ..libraries import is_framework, is_host
from ..types import Value
from .journal import MISSING

__all__ = ["Capture", "Captures", "same", "has_hooks"]

_PLAIN = (bool, int, float, complex, str, bytes, type(None))


class Capture:
    """A value that a compiled function read from outside, and where to read that value again.

    Attributes:
        kind: "item" (of a dict, such as the globals), "index" (of a list), "length", "keys",
            "attribute", "cell" (of a closure), "defaults" (of a function), "method" (of a class),
            "entries" (of any other container), "contents" (of a small array or a tensor),
            "members" and "hooks" (of a Cell), "type" (of a location that the function writes).
        owner: the object that was read.
        name: key, index or attribute; None for kinds that need none.
        value: the value at compile time.
        label: the name for messages.
        exact: whether a change always compiles again, whatever the recompilation policy.
    """

    __slots__ = ("kind", "owner", "name", "value", "label", "exact")

    def __init__(
        self, kind: str, owner: Value, name: Value, value: Value, label: str, exact: bool = False
    ) -> None:
        self.kind = kind
        self.owner = owner
        self.name = name
        self.value = value
        self.label = label
        self.exact = exact

    def now(self) -> Value:
        """Return the present value of the captured location; MISSING if it no longer exists."""
        kind, owner, name = self.kind, self.owner, self.name
        if kind == "item":
            return owner.get(name, MISSING)
        if kind == "attribute":
            try:
                return getattr(owner, name)
            except AttributeError:
                return MISSING
        if kind == "cell":
            try:
                return owner.cell_contents
            except ValueError:
                return MISSING
        if kind == "index":
            try:
                return owner[name]
            except (IndexError, KeyError):
                return MISSING
        if kind == "length":
            return len(owner)
        if kind == "defaults":
            return defaults_of(owner)
        if kind == "method":
            return vars(owner).get(name, MISSING)
        if kind == "entries":
            return entries_of(owner)
        if kind == "contents":
            return owner._buf if isinstance(owner, Tensor) else owner
        if kind == "type":
            where, inside, key = owner
            held = Capture(where, inside, key, None, "").now()
            return held._type.plain if isinstance(held, Tensor) else type(held)
        if kind == "hooks":
            return has_hooks(owner)
        if kind == "members":
            return members_of(owner)
        assert kind == "keys", kind
        return tuple(sorted(owner, key=repr)) if isinstance(owner, set) else tuple(owner)


def same(old: Value, new: Value) -> bool:
    """Return whether a captured value and its present value are identical or equal constants.

    Equality counts for numbers, strings, tuples, frozensets, arrays and bound methods.
    """
    if old is new:
        return True
    if type(old) is not type(new):
        return False
    if isinstance(old, _PLAIN):
        return old == new or (old != old and new != new)
    if isinstance(old, (tuple, frozenset)):
        if isinstance(old, frozenset):
            return old == new
        return len(old) == len(new) and all(map(same, old, new))
    if hasattr(old, "__func__"):  # each access makes a new bound method
        return old.__func__ is new.__func__ and old.__self__ is new.__self__
    if isinstance(old, np.ndarray):
        alike = old.dtype == new.dtype and old.shape == new.shape
        return alike and old.tobytes() == new.tobytes()
    if isinstance(old, np.generic):
        return bool(old == new)
    return False


def has_hooks(cell: Cell) -> bool:
    """Return whether a Cell has any forward or backward hook registered."""
    return bool(
        cell._forward_pre_hooks
        or cell._forward_hooks
        or cell._backward_hooks
        or cell._backward_pre_hooks
    )


def members_of(cell: Cell) -> tuple[Value, ...]:
    """Return a Cell's Parameters and child Cells with their names, as one flat tuple."""
    params, cells = cell._params, cell._cells
    return (*params, *params.values(), cell._float_type, *cells, *cells.values())


def defaults_of(function: FunctionType) -> tuple[Value, ...]:
    """Return the default values of a Python function's parameters, as one flat tuple."""
    named = function.__kwdefaults__ or {}
    return (*(function.__defaults__ or ()), None, *named, *named.values())


def entries_of(container: Value) -> tuple[Value, ...]:
    """Return the items of a container, or the keys and values of a dict, as one flat tuple."""
    if isinstance(container, dict):
        return (*container, *container.values())
    return tuple(container)


class Captures:
    """The values that one compiled function read from outside, in the order of reading.

    Attributes:
        items: the captures, by kind, owner and name.
        cells: Cells of the framework whose attributes are all captured, by id.
    """

    def __init__(self) -> None:
        self.items: dict[Hashable, Capture] = {}
        self.cells: dict[int, Cell] = {}
        self._members: set[int] = set()  # ids of Cells whose members are captured

    def add(
        self, kind: str, owner: Value, name: Value, value: Value, label: str, exact: bool = False
    ) -> None:
        """Record that the function read a value from outside; repeated reads are recorded once.

        With `exact`, a change of the value always recompiles.
        """
        key = (kind, id(owner) if kind != "type" else (owner[0], id(owner[1]), owner[2]), name)
        found = self.items.get(key)
        if found is None:
            self.items[key] = Capture(kind, owner, name, value, label, exact)
        elif exact:
            found.exact = True

    def members(self, cell: Cell) -> None:
        """Record for the guards which Parameters and child Cells a Cell holds, recursively."""
        if id(cell) in self._members or "_cells" not in cell.__dict__:
            return
        self._members.add(id(cell))
        label = f"the members of {type(cell).__name__}"
        self.add("members", cell, None, members_of(cell), label, exact=True)
        for child in cell._cells.values():
            if child is not None:
                self.members(child)

    def method(self, owner: Value, name: str, value: Value) -> None:
        """Record a user's method definition for the guards, because it may be replaced later."""
        label = f"{type(owner).__name__}.{name}"
        for cls in type(owner).__mro__:
            if name in vars(cls):
                if not is_framework(cls.__module__) and not is_host(cls.__module__):
                    self.add("method", cls, name, vars(cls)[name], label)
                    if isinstance(owner, Cell):  # checked when some Cell has changed
                        self.add("attribute", owner, name, value, label)
                return

    def contents(self, owner: Value, label: str = "") -> None:
        """Record for the guards the data of an array or tensor that were read while compiling."""
        value = owner._buf if isinstance(owner, Tensor) else np.array(owner)
        what = label or ("a Tensor" if isinstance(owner, Tensor) else "a NumPy array")
        self.add("contents", owner, None, value, what, exact=isinstance(owner, Tensor))
