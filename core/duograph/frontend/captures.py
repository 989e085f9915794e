"""What a compiled function read from outside and took as constant, and the check that it is still
so.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..nn.cell import Cell
from ..tensor import Tensor
from .libraries import is_framework, is_host

__all__ = ["Capture", "Captures", "same", "has_hooks", "MISSING"]


class _Missing:
    def __repr__(self) -> str:
        return "nothing"


MISSING = _Missing()
_PLAIN = (bool, int, float, complex, str, bytes, type(None))


class Capture:
    """One thing that was read.

    Attributes:
        kind: "item" of a dict (a global, a dictionary), "index" of a list, "attribute", "cell" (of
            a closure), "defaults", "method" (of a class), "entries" (of a container of another
            class than list and dict), "contents" (of a small array or a tensor), "members" (of a
            Cell), "exact": a change of it always compiles again.
        owner: the object that it was read from.
        name: key, index or attribute.
        value: what was read.
        label: how a user would call it.
        exact: a change compiles again whatever the policy: the function writes it as well.
    """

    __slots__ = ("kind", "owner", "name", "value", "label", "exact")

    def __init__(
        self, kind: str, owner: Any, name: Any, value: Any, label: str, exact: bool = False
    ) -> None:
        self.kind = kind
        self.owner = owner
        self.name = name
        self.value = value
        self.label = label
        self.exact = exact

    def now(self) -> Any:
        """What it is now."""
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


def same(old: Any, new: Any) -> bool:
    """Whether a captured value is what it was: the same object, or an equal plain value of one
    class.
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
    if hasattr(old, "__func__"):  # bound methods are made anew at each access
        return old.__func__ is new.__func__ and old.__self__ is new.__self__
    if isinstance(old, np.ndarray):
        alike = old.dtype == new.dtype and old.shape == new.shape
        return alike and old.tobytes() == new.tobytes()
    if isinstance(old, np.generic):
        return bool(old == new)
    return False


def has_hooks(cell: Any) -> bool:
    """Whether a Cell has hooks of any kind."""
    return bool(
        cell._forward_pre_hooks
        or cell._forward_hooks
        or cell._backward_hooks
        or cell._backward_pre_hooks
    )


def members_of(cell: Any) -> tuple[Any, ...]:
    """Names and objects of the Parameters and child Cells of a Cell."""
    params, cells = cell._params, cell._cells
    return (*params, *params.values(), cell._float_type, *cells, *cells.values())


def defaults_of(function: Any) -> tuple[Any, ...]:
    """The defaults of a function's parameters."""
    named = function.__kwdefaults__ or {}
    return (*(function.__defaults__ or ()), None, *named, *named.values())


def entries_of(container: Any) -> tuple[Any, ...]:
    """What a container of a library's or of a user's class holds."""
    if isinstance(container, dict):
        return (*container, *container.values())
    return tuple(container)


class Captures:
    """The captures of one compiled function, in the order of reading."""

    def __init__(self) -> None:
        self.items: dict[Any, Capture] = {}
        self.cells: dict[int, Any] = {}  # Cells among the owners
        self._members: set[int] = set()  # Cells whose members are captured

    def add(
        self, kind: str, owner: Any, name: Any, value: Any, label: str, exact: bool = False
    ) -> None:
        key = (kind, id(owner) if kind != "type" else (owner[0], id(owner[1]), owner[2]), name)
        found = self.items.get(key)
        if found is None:
            self.items[key] = Capture(kind, owner, name, value, label, exact)
        elif exact:
            found.exact = True

    def members(self, cell: Any) -> None:
        """A Cell was met: which Parameters and Cells are in it, and in those, is part of the key."""
        if id(cell) in self._members or "_cells" not in cell.__dict__:
            return
        self._members.add(id(cell))
        label = f"the members of {type(cell).__name__}"
        self.add("members", cell, None, members_of(cell), label, exact=True)
        for child in cell._cells.values():
            if child is not None:
                self.members(child)

    def method(self, owner: Any, name: str, value: Any) -> None:
        """A method of the user's was looked up: another one in its place is a change of what was
        read.
        """
        label = f"{type(owner).__name__}.{name}"
        for cls in type(owner).__mro__:
            if name in vars(cls):
                if not is_framework(cls.__module__) and not is_host(cls.__module__):
                    self.add("method", cls, name, vars(cls)[name], label)
                    if isinstance(owner, Cell):  # looked at when some Cell has changed
                        self.add("attribute", owner, name, value, label)
                return

    def contents(self, owner: Any, label: str = "") -> None:
        """The data of a small array or of a tensor were looked at while compiling."""
        value = owner._buf if isinstance(owner, Tensor) else np.array(owner)
        what = label or ("a Tensor" if isinstance(owner, Tensor) else "a NumPy array")
        self.add("contents", owner, None, value, what, exact=isinstance(owner, Tensor))
