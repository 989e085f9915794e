"""Copies of the user's lists, dicts and sets, so that compiling a function changes none of them.

The content of a copy is recorded as a constant, which is compared before each later call, only when
traced code reads the content. Writes to a copy are repeated on the original when the graph runs
(`evaluation.containers`).
"""

from __future__ import annotations

import enum

import numpy as np

from ...errors import UnsupportedSyntaxError
from ...ir.values import NeedsValue
from ...nn.cell import Cell
from ..libraries import has_own_hash, is_users_class
from ..types import Value
from .captures import Captures, entries_of
from .inputs import GraphInputs
from .tuples import tuple_like

__all__ = ["AliasedError", "ContainerCopies"]

# Arrays of at most this many bytes are captured by value; larger ones are inputs of each call.
ARRAY_LIMIT = 4096


class AliasedError(UnsupportedSyntaxError):
    """Raised if an argument is an object that the function also reaches in another way.

    For example, a list argument may also be a global. Only this call cannot be compiled; a call
    with other arguments may be.
    """


class ContainerCopies:
    """The copies of the user's lists, dicts and sets on which one evaluation works.

    Attributes:
        originals: id of a copy -> its original container. For a copy of an argument the value is an
            object with a method `value` (see `compiler.results`).
        arguments: id of an argument -> its copy.
        plain_keys: ids of copies whose keys have no `__hash__` or `__eq__` that the user wrote.
        read_only: ids of copies of the `__dict__` of objects, which may not be changed.
    """

    def __init__(self, captures: Captures, inputs: GraphInputs, keep: list[Value]) -> None:
        self._captures = captures
        self._inputs = inputs
        self._keep = keep
        self.originals: dict[int, Value] = {}
        self.arguments: dict[int, Value] = {}
        self._copies: dict[int, tuple[Value, Value]] = {}  # by id of the original
        self.plain_keys: set[int] = set()  # ids of copies whose keys have no hash of the user's
        self.read_only: set[int] = set()  # ids of copies of the `__dict__` of objects
        self._unobserved: dict[int, str] = {}  # labels of copies whose items were not read yet

    def in_order(self, copy: set[Value]) -> Value:
        """Return the items of a set in iteration order; for a copy, in the order of its original.

        A copy of a set may iterate in another order than the original.

        Raises:
            NeedsValue: the function has changed the copy, so that the order is unknown.
        """
        original = self.originals.get(id(copy))
        original = getattr(original, "order", original)
        if original is None:
            return copy
        if len(original) != len(copy) or not copy.issuperset(original):
            raise NeedsValue(
                "iteration: got a set from outside that the function has changed; the order of its "
                "items is known only when the compiled function runs"
            )
        return tuple(original)

    def is_copied(self, value: Value) -> bool:
        """Return whether a value is an outside list, dict or set of which a copy exists.

        Evaluated code works on the copies, which `imported` makes when it reads the originals.
        """
        return id(value) in self._copies

    def outside(self) -> dict[int, Value]:
        """Return, by id, the containers from outside the function of which there is a copy."""
        return {number: value for number, (value, _) in self._copies.items()}

    def copies(self) -> list[Value]:
        """Return all copies of containers from outside the function."""
        return [copy for _, copy in self._copies.values()]

    def imported(self, value: Value, label: str | None) -> Value:
        """Return a value read from outside the function, with lists, dicts and sets in it copied.

        Tuples with such items are rebuilt. A small array and the members of a Cell are recorded as
        constants, which the guard compares before each later call. A large array becomes an input
        of the graph, which is read at each call. Other values are returned unchanged.

        Args:
            value: the value.
            label: the value's name in messages; None if its content must not be recorded.
        """
        kind = type(value)
        if kind in (list, dict, set):
            return self._copy(value, label)
        if isinstance(value, tuple):
            items = [self.imported(v, _item_label(label, i)) for i, v in enumerate(value)]
            if all(a is b for a, b in zip(items, value)):
                return value
            made = tuple_like(value, items)
            self.originals[id(made)] = value
            self._keep.append(made)
            return made
        if label is None:
            return value
        if isinstance(value, Cell):
            self._captures.members(value)
        if isinstance(value, np.ndarray):
            self._keep.append(value)
            if value.nbytes > ARRAY_LIMIT and value.dtype.kind in "biuf":
                self._inputs.large_arrays[id(value)] = value
            elif value.dtype != object:
                self._captures.contents(value, label)
        return value

    def _copy(self, value: Value, label: str | None) -> Value:
        if id(value) in self.originals:
            return value
        if id(value) in self.arguments:
            raise AliasedError(
                f"{type(value).__name__}: got an argument that the function also reaches from "
                f"outside ({label or 'a container'}); compiled code would hold two copies of it",
                construct="argument",
                remedy="Pass a copy, or use it only in one way",
            )
        found = self._copies.get(id(value))
        if found is not None:
            return found[1]
        made: Value = type(value)()
        self._copies[id(value)] = (value, made)
        self.originals[id(made)] = value
        if label is not None:
            self._unobserved[id(made)] = label
        self._keep.append(made)
        if isinstance(value, list):
            made.extend(self.imported(v, _item_label(label, i)) for i, v in enumerate(value))
        elif isinstance(value, dict):
            made.update(value)  # takes the hashes that the original stores
            items = [(k, v, self.imported(v, _item_label(label, k))) for k, v in value.items()]
            for k, v, imported in items:
                if imported is not v:
                    self._check_key(value, k)
                    made[k] = imported
        else:
            made.update(value)
        return made

    def _check_key(self, original: dict[Value, Value], key: Value) -> None:
        """Raise if storing under a key in a copied dict would run code of the user.

        Raises:
            NeedsValue: code of the user decides which keys are equal, or the key's hash changed.
        """
        if has_own_hash(key) or key not in original:
            raise NeedsValue(
                f"dict: got a key of {type(key).__name__}, whose own methods decide which keys are "
                "equal, or which has changed; wanted a key of Python's classes"
            )

    def observe(self, copy: Value) -> None:
        """Record a copied container's items as constants when code first reads them.

        The guard of the compiled function compares them before each call. Other objects are
        ignored, but for enums, whose members are recorded.
        """
        if isinstance(copy, enum.EnumMeta) and is_users_class(copy):
            tables: Value = (copy._member_names_, copy._member_map_, copy._value2member_map_)
            for table in tables:
                what = f"the members of {copy.__name__}"
                self._captures.add("entries", table, None, entries_of(table), what)
        label = self._unobserved.pop(id(copy), None)
        if label is None:
            return
        value = self.originals[id(copy)]
        self._captures.add("entries", value, None, entries_of(value), label)


def _item_label(label: str | None, key: Value) -> str | None:
    return None if label is None else f"{label}[{key!r}]"
