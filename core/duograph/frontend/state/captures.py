"""Captures: values from outside a compiled function that its program contains as constants.

The front end records a capture for each read: what was read (a global, an attribute, the items of a
list), and the value. `compiler.guards` reads the value again before each call and compares it. The
module must not decide whether to compile again; `compiler.guards` does.
"""

from __future__ import annotations

import array
import datetime
import decimal
import fractions
import pathlib
import types
import uuid
from collections.abc import Callable, Hashable, Mapping
from types import FunctionType

import numpy as np

from ...nn.cell import Cell
from ...tensor import Tensor
from ..libraries import is_framework, is_users_class
from ..types import Value
from .journal import MISSING

__all__ = [
    "VALUE_TYPES", "Capture", "Captures", "Raised", "answer", "definition_of", "entries_of",
    "has_hooks", "hooks_of", "same", "same_answer", "tensor_hooks_of",
]  # fmt: skip

_HEAP_TYPE = 1 << 9  # flag of a class that a `class` statement made
_PLAIN = {bool, int, float, complex, str, bytes, type(None)}


class Raised:
    """Wraps the error that `answer` caught when it called a function, in place of a result."""

    __slots__ = ("error",)

    def __init__(self, error: Exception) -> None:
        self.error = error


def answer(function: Callable[..., Value], args: tuple[Value, ...]) -> Value:
    """Return `function(*args)`; if the call raises an error, return it wrapped in `Raised`.

    The function answers a question about an object from outside the compiled function, such as
    `len`.
    """
    try:
        return function(*args)
    except Exception as error:  # noqa: BLE001  (of the user's object: the answer to the question)
        return Raised(error)


def _attribute(owner: Value, name: str) -> Value:
    try:
        return getattr(owner, name)
    except AttributeError:
        return MISSING


def _cell(owner: Value, name: None) -> Value:
    try:
        return owner.cell_contents
    except ValueError:
        return MISSING


def _type_at(owner: tuple[str, Value, Value], name: None) -> Value:
    kind, inside, key = owner
    held = QUESTIONS[kind](inside, key)
    return held._type.plain if type(held) is Tensor else type(held)


# Kind of a capture -> function(owner, name) that reads the present value.
QUESTIONS: dict[str, Callable[[Value, Value], Value]] = {
    "item": lambda owner, name: owner.get(name, MISSING),
    "attribute": _attribute,
    "cell": _cell,
    "function": lambda owner, name: definition_of(owner),
    "code": lambda owner, name: owner.__code__,
    "method": lambda owner, name: vars(owner).get(name, MISSING),
    "class": lambda owner, name: type(owner),
    "bases": lambda owner, name: owner.__mro__,
    "form": lambda owner, name: owner._type.plain,
    "entries": lambda owner, name: entries_of(owner),
    "contents": lambda owner, name: owner._buf if isinstance(owner, Tensor) else owner,
    "type": _type_at,
    "hooks": lambda owner, name: hooks_of(owner),
    "tensor hooks": lambda owner, name: tensor_hooks_of(owner),
    "members": lambda owner, name: members_of(owner),
    "answer": answer,
}


class Capture:
    """A value that a compiled function read from outside and contains as a constant.

    Attributes:
        kind: how the value was read, one of `QUESTIONS`: "item" (of a dict, such as the globals),
            "attribute", "cell" (of a closure), "function" (code and defaults), "code" (of a
            function without defaults), "method" (in the dict of a class), "class" (of an object),
            "bases" (of a class: its MRO), "entries" (of a list, dict or set), "contents" (of an
            array or a tensor), "form" (shape and dtype of a tensor), "members" and "hooks" (of a
            Cell), "tensor hooks" (of a Tensor), "type" (of a location that the function writes),
            "answer" (of calling `owner` with the arguments `name`).
        owner: the object that was read.
        name: key or attribute; None for kinds that need none.
        value: the value at compile time.
        label: the name for messages.
        exact: whether a changed value always compiles the function again, whatever the user's
            setting `stale_captures` says.
        by_identity: whether another array with equal contents counts as a change.
    """

    __slots__ = ("kind", "owner", "name", "value", "label", "exact", "by_identity")

    def __init__(
        self, kind: str, owner: Value, name: Value, value: Value, label: str, exact: bool = False
    ) -> None:
        self.kind = kind
        self.owner = owner
        self.name = name
        self.value = value
        self.label = label
        self.exact = exact
        self.by_identity = False

    def now(self) -> Value:
        """Return the present value of the captured location; MISSING if it no longer exists."""
        return QUESTIONS[self.kind](self.owner, self.name)

    def agrees(self, now: Value, was: Value = MISSING) -> bool:
        """Return whether the value `now` counts as equal to the captured value, or to `was`.

        Constants and arrays are compared by value, other objects, such as tensors, by identity;
        for the kind "answer", lists, dicts and sets by content. If `was` is passed, it takes the
        place of the captured value; if not, and `by_identity` is set, arrays must be identical.
        """
        compare = same_answer if self.kind == "answer" else same
        if self.by_identity and was is MISSING and not _same_arrays(self.value, now):
            return False
        return compare(self.value if was is MISSING else was, now)

    def concerns(self, changed: Mapping[int, Value]) -> bool:
        """Return whether the capture was read from one of the objects `changed`, given by id."""
        if self.kind == "answer":
            return any(id(x) in changed for x in self.name)
        return id(self.owner) in changed

    def difference(self, now: Value) -> tuple[str, Value, Value]:
        """Return (name, earlier value, present value) of what changed, for a message.

        `now` is the present value. For a container the result is about the first item that differs,
        or about its keys or length.
        """
        if self.kind != "entries":
            return self.label, self.value, now
        owner, was = self.owner, self.value
        if isinstance(owner, dict):
            keys, keys_now = was[: len(was) // 2], now[: len(now) // 2]
            if not same(keys, keys_now):
                return f"keys of {self.label}", keys, keys_now
            was, now = was[len(keys) :], now[len(keys) :]
        elif not isinstance(owner, list):
            return f"items of {self.label}", was, now
        else:
            keys = tuple(range(len(was)))
            if len(was) != len(now):
                return f"len({self.label})", len(was), len(now)
        for key, a, b in zip(keys, was, now):
            if not same(a, b):
                return f"{self.label}[{key!r}]", a, b
        return self.label, was, now


# Classes of the standard library whose objects nothing can change, compared by `==`.
VALUE_TYPES: tuple[type, ...] = (
    datetime.date, datetime.time, datetime.timedelta, datetime.tzinfo, decimal.Decimal,
    fractions.Fraction, pathlib.PurePath, range, slice, uuid.UUID, np.dtype,
)  # fmt: skip


def same(old: Value, new: Value) -> bool:
    """Return whether a captured value and its present value are identical or equal constants.

    Equality counts for numbers, strings, tuples, frozensets, arrays, bound methods and the
    immutable values of the standard library, such as dates. Two other values are the same only if
    they are identical.
    """
    if old is new:
        return True
    if type(old) is not type(new):
        return False
    if type(old) in _PLAIN:
        if isinstance(old, (float, complex)):
            return repr(old) == repr(new)  # distinguishes -0.0 from 0.0; NaN equals NaN
        return bool(old == new)
    if isinstance(old, tuple):
        return len(old) == len(new) and all(map(same, old, new))
    if isinstance(old, frozenset):
        return old == new and same(tuple(old), tuple(new))
    if isinstance(old, types.MethodType):  # each access makes a new bound method
        return old.__func__ is new.__func__ and old.__self__ is new.__self__
    if isinstance(old, (types.BuiltinMethodType, types.MethodWrapperType)):
        return old.__self__ is new.__self__ and old.__name__ == new.__name__
    if isinstance(old, np.ndarray):
        alike = old.dtype == new.dtype and old.shape == new.shape and not old.dtype.hasobject
        return alike and old.tobytes() == new.tobytes()
    if isinstance(old, np.generic):
        return old.dtype == new.dtype and old.tobytes() == new.tobytes()
    if isinstance(old, Raised):
        return type(old.error) is type(new.error) and same(old.error.args, new.error.args)
    return isinstance(old, VALUE_TYPES) and bool(old == new)


def _same_arrays(old: Value, new: Value) -> bool:
    """Return whether all arrays in the first value are the identical objects in the second one.

    Tuples are compared position by position. Values other than arrays are not compared.
    """
    if isinstance(old, tuple) and isinstance(new, tuple):
        return len(old) == len(new) and all(map(_same_arrays, old, new))
    return old is new or not isinstance(old, np.ndarray)


def same_answer(old: Value, new: Value) -> bool:
    """Return whether two results of a call agree; lists, dicts and sets are compared by content."""
    kind = type(old)
    if kind is type(new):
        if kind in (list, tuple):
            return len(old) == len(new) and all(map(same_answer, old, new))
        if kind is dict:
            return same_answer(entries_of(old), entries_of(new))
        if kind is set:
            return old == new and same_answer(tuple(old), tuple(new))
    return same(old, new)


def has_hooks(cell: Cell) -> bool:
    """Return whether a Cell has any forward or backward hook registered."""
    return bool(
        cell._forward_pre_hooks
        or cell._forward_hooks
        or cell._backward_hooks
        or cell._backward_pre_hooks
    )


def hooks_of(cell: Cell) -> tuple[Value, ...]:
    """Return the forward and backward hooks of a Cell with their handle ids, as one flat tuple."""
    found: list[Value] = []
    for hooks in (cell._forward_pre_hooks, cell._forward_hooks):
        for number, (hook, with_kwargs) in hooks.items():
            found += (number, hook, with_kwargs)
        found.append("end")
    for backward in (cell._backward_hooks, cell._backward_pre_hooks):
        for number, hook in backward.items():
            found += (number, hook)
        found.append("end")
    return (*found, *sorted(cell._forward_hooks_always))


def tensor_hooks_of(tensor: Tensor) -> tuple[Value, ...]:
    """Return the gradient hooks that are registered on a tensor."""
    return tuple(getattr(tensor, "_hooks", ()))


def members_of(cell: Cell) -> tuple[Value, ...]:
    """Return a Cell's Parameters and child Cells with their names, and options, as a flat tuple.

    The options are its class, the dtype of `to_float` and whether `recompute` is set.
    """
    params, cells = cell._params, cell._cells
    options = (type(cell), cell._float_type, cell._recompute, cell._pipeline_stage)
    return (*params, *params.values(), *options, *cells, *cells.values())


def definition_of(function: FunctionType) -> tuple[Value, ...]:
    """Return the code object and the default values of a Python function, as one flat tuple."""
    named = function.__kwdefaults__
    code, defaults = function.__code__, function.__defaults__
    return (code, defaults) if not named else (code, defaults, *named, *named.values())


def entries_of(container: Value) -> tuple[Value, ...]:
    """Return the items of a container, or the keys and values of a dict, as one flat tuple."""
    if isinstance(container, (dict, types.MappingProxyType)):
        return (*container, *container.values())
    if isinstance(container, (array.array, bytearray, memoryview)):
        return (getattr(container, "typecode", ""), bytes(container))
    return tuple(container)


def _decimal_context() -> tuple[Value, ...]:
    """Return what decides the results of Decimals: all of their context but its flags."""
    now = decimal.getcontext()
    limits = (now.prec, now.rounding, now.Emin, now.Emax, now.capitals, now.clamp)
    return (*limits, *now.traps.values())


class Captures:
    """The values that one compiled function read from outside itself, in the order of reading.

    Attributes:
        items: (kind, owner, name) -> the capture; owners count by id.
        cells: the framework's Cells whose attributes are all captured, by id.
        arrays: arrays from outside whose identity the function uses, by id.
        all_exact: whether a change of anything that is read while this is set always compiles the
            function again.
    """

    def __init__(self) -> None:
        self.items: dict[Hashable, Capture] = {}
        self.cells: dict[int, Cell] = {}
        self.arrays: dict[int, np.ndarray] = {}
        self.all_exact = False
        self._members: set[int] = set()  # ids of Cells whose members are captured
        # (id of a class, name) -> the class, and what `class_attribute` returned for it
        self._looked_up: dict[tuple[int, str], tuple[type, bool]] = {}

    def add(
        self, kind: str, owner: Value, name: Value, value: Value, label: str, exact: bool = False
    ) -> None:
        """Record a value read from outside the function, for the guard to compare before each call.

        If the same location was read before, nothing new is recorded.

        Args:
            kind, owner, name, value, label: see `Capture`.
            exact: whether a changed value always compiles the function again, whatever the user's
                setting `stale_captures` says. Iterators, which change when they are used, are
                always exact.
        """
        key: Hashable = (kind, id(owner), name)
        if kind == "type":
            key = (kind, owner[0], id(owner[1]), owner[2])
        elif kind == "answer":
            key = (kind, owner, *map(id, name))
        found = self.items.get(key)
        if found is None:
            held = value if isinstance(value, tuple) else (value,)
            exact = exact or self.all_exact or any(hasattr(type(v), "__next__") for v in held)
            self.items[key] = Capture(kind, owner, name, value, label, exact)
        elif exact or self.all_exact:
            found.exact = True

    def members(self, cell: Cell) -> None:
        """Record which Parameters and child Cells a Cell and its descendants hold.

        The guard compares the record before each later call of the compiled function.
        """
        if id(cell) in self._members or "_cells" not in cell.__dict__:
            return
        self._members.add(id(cell))
        label = f"the members of {type(cell).__name__}"
        self.add("members", cell, None, members_of(cell), label, exact=True)
        for child in cell._cells.values():
            if child is not None:
                self.members(child)

    def method(self, owner: Value, name: str, value: Value) -> None:
        """Record how a method was found, so that the guard notices if another would be found.

        For each of the user's classes that the lookup visits, its attribute `name` or the absence
        of one is recorded. If one of them defines the method, or the owner is a Cell, the class of
        `owner` and the attribute of `owner` that could hide the method are recorded as well.

        Args:
            owner: the object.
            name: the name of the method.
            value: the bound method; None for a special method, which no attribute can hide.
        """
        if self.class_attribute(type(owner), name) or isinstance(owner, Cell):
            self.class_of(owner)
            label = f"{type(owner).__name__}.{name}"
            held = getattr(owner, "__dict__", None)
            if value is None:
                return
            if isinstance(held, dict) and not isinstance(owner, Cell):
                self.add("item", held, name, held.get(name, MISSING), label)
            else:  # guards of Cells compare attributes only after one was set
                self.add("attribute", owner, name, value, label)

    def class_attribute(self, kind: type, name: str) -> bool:
        """Record the attribute `name` of class `kind`; return whether a user's class defines it.

        For each class in the MRO of `kind` that the user or this framework wrote, up to the first
        class that defines the attribute, the attribute or its absence is recorded and compared
        before each later call. So are the MRO, and the attribute where another library's class,
        written in Python, defines it.
        """
        key = id(kind), name
        known = self._looked_up.get(key)
        if known is None:
            known = self._looked_up[key] = (kind, self._look_up(kind, name))
        return known[1]

    def _look_up(self, kind: type, name: str) -> bool:
        """Record what a search for `name` finds in the classes of `kind`; see `class_attribute`."""
        self.bases_of(kind)
        for cls in kind.__mro__:
            found = vars(cls).get(name, MISSING)
            user = is_users_class(cls)
            ours = is_framework(cls.__module__)
            if user or ours or (found is not MISSING and cls.__flags__ & _HEAP_TYPE):
                self.add("method", cls, name, found, f"{cls.__name__}.{name}")
            if found is not MISSING:
                return user
        return False

    def bases_of(self, kind: type) -> None:
        """Record the MRO of a class that the user wrote, to compare before each later call."""
        if is_users_class(kind):
            label = f"the base classes of {kind.__name__}"
            self.add("bases", kind, None, kind.__mro__, label, exact=True)

    def class_of(self, owner: Value) -> None:
        """Record the class of an object, for the guard to compare before each later call.

        The MRO is recorded too if the user wrote the class. Does nothing for objects whose
        `__class__` cannot be assigned.
        """
        kind = type(owner)
        if kind.__flags__ & _HEAP_TYPE:
            label = f"the class of a {kind.__name__}"
            self.add("class", owner, None, kind, label, exact=True)
            self.bases_of(kind)

    def decimal_context(self) -> None:
        """Record the precision, rounding and traps with which Decimals are computed."""
        self.add("answer", _decimal_context, (), _decimal_context(), "the decimal context")

    def form_of(self, tensor: Tensor, label: str) -> None:
        """Record the shape and dtype of a tensor from outside, which `set_data` may change."""
        self.add("form", tensor, None, tensor._type.plain, label, exact=True)

    def contents(self, owner: Value, label: str = "") -> None:
        """Record the data of an array or tensor that compile-time code read, as a constant.

        The guard compares the data before each later call of the compiled function.
        """
        if ("contents", id(owner), None) in self.items:
            return
        value = owner._buf if isinstance(owner, Tensor) else np.array(owner, subok=True)
        what = label or ("a Tensor" if isinstance(owner, Tensor) else "a NumPy array")
        self.add("contents", owner, None, value, what, exact=isinstance(owner, Tensor))
