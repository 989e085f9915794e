"""The journal: locations that each open branch has written, with their earlier content.

`evaluation.branches` opens a branch, evaluates it and undoes its writes, so that the other branch
starts from the same state. The journal must not decide what a value means after a branch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple, TypeAlias

from ...errors import ArgumentError, UnsupportedSyntaxError
from ...ir.builder import GraphTensor
from ...ir.values import HostValue
from ...tensor import Tensor
from ..types import Value

__all__ = ["MISSING", "Changes", "Journal", "Key", "Location", "Scope", "written_for_bprop"]


class _Missing:
    def __repr__(self) -> str:
        return "nothing"


MISSING = _Missing()  # content of a location without a value


class Scope(dict[str, Value]):
    """Variables of a user call or loop, with the nesting depth of the graph in which it began."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.depth = depth


class Location(NamedTuple):
    """A variable, attribute, container or tensor that evaluated code can write.

    Attributes:
        kind: "item" (of a dict), "attribute", "list", "dict" or "set" (the whole content), "tensor"
            (the value of a graph tensor), "slot" (the present value of an eager tensor).
        owner: the object that is written.
        name: key or attribute; None for the other kinds.
    """

    kind: str
    owner: Value
    name: Value

    def read(self) -> Value:
        """Return the present content: a copy of a list, dict or set; MISSING if there is none."""
        kind, owner, name = self
        if kind == "item":
            return owner.get(name, MISSING)
        if kind == "list":
            return list(owner)
        if kind == "dict":
            return dict(owner)
        if kind == "set":
            return set(owner)
        if kind == "attribute":
            return getattr(owner, "__dict__", {}).get(name, MISSING)
        if kind == "tensor":
            return owner._builder.tensor(owner._id)
        assert kind == "slot", kind
        return owner.current

    def write(self, value: Value) -> None:
        """Set the content of the location; MISSING removes a dict item or attribute."""
        kind, owner, name = self
        if kind == "item":
            if value is MISSING:
                owner.pop(name, None)
            else:
                owner[name] = value
        elif kind == "list":
            owner[:] = value
        elif kind in ("dict", "set"):
            owner.clear()
            owner.update(value)
        elif kind == "attribute":
            if value is MISSING:
                owner.__dict__.pop(name, None)
            else:
                owner.__dict__[name] = value
        elif kind == "tensor":
            assert isinstance(owner, GraphTensor), owner
            if not isinstance(value, GraphTensor):
                raise ArgumentError(f"got {value!r} for a tensor")
            owner._builder, owner._id, owner._type = value._builder, value._id, value._type
        else:
            owner.current = value


_CONTAINERS = ("list", "dict", "set")
# Identifies a location: (kind, id of the owner, name).
Key: TypeAlias = tuple[str, int, Hashable]
# Per location that a branch wrote: the location, and its content at the end of the branch.
Changes: TypeAlias = dict[Key, tuple[Location, Value]]


def written_for_bprop(cell: str) -> UnsupportedSyntaxError:
    """Return the error for a write to what a user's `bprop` reads when the derivative is computed.

    `cell` is the name of the class with the `bprop`.
    """
    return UnsupportedSyntaxError(
        f"{cell}: its bprop reads a Parameter or an object that the function writes after the "
        "call; uncompiled code runs the bprop later, with the written value",
        construct="bprop",
        remedy="Pass the value as an input, write after the derivative, or do not compile",
    )


class Journal:
    """Undo log of a trace: earlier contents of what each unfinished branch has changed.

    Attributes:
        branches: for each open branch, the written locations and their earlier content. Appending
            {} opens a branch; `keep` or `roll_back` ends it.
        conditions: number of open branches and loops whose condition the graph computes.
        tries: for each open `try` block with handlers, the value of `conditions` at its start.
        reads: the locations that the `bprop` being traced has read; None outside of a `bprop`.
        late_reads: location that a user's `bprop` reads -> (owner, what reads it). Uncompiled code
            runs a `bprop` when the derivative is computed. A write before that is refused, because
            the graph has the value from the time of the call.
        derivatives: number of derivatives whose function is being traced.
    """

    def __init__(self) -> None:
        self.branches: list[Changes] = [{}]
        self.conditions = 0
        self.tries: list[int] = []
        self.reads: dict[Key, Value] | None = None
        self.late_reads: dict[Key, tuple[Value, str]] = {}
        self.derivatives = 0

    @contextlib.contextmanager
    def catching(self) -> Iterator[None]:
        """Return a context manager for code whose caller catches errors, like the body of a `try`.

        It records in `tries` how many graph conditions are open. An error under no further
        condition is then raised at compile time, where the caller can catch it.
        """
        self.tries.append(self.conditions)
        try:
            yield
        finally:
            self.tries.pop()

    def touch(self, kind: str, owner: Value, name: Value = None) -> None:
        """Save the content of a location before a change, once per unfinished branch.

        The arguments are the parts of a `Location`.
        """
        writes = self.branches[-1]
        key = (kind, id(owner), name)
        if key in self.late_reads:
            raise written_for_bprop(self.late_reads[key][1])
        if key not in writes:
            location = Location(kind, owner, name)
            writes[key] = (location, location.read())

    def note_read(self, kind: str, owner: Value, name: Value = None) -> None:
        """Record a read of a location, if a user's `bprop` is being traced.

        The arguments are the parts of a `Location`. The items of lists, dicts and sets count as
        read with the container.
        """
        if self.reads is None:
            return
        key = (kind, id(owner), name)
        if key in self.reads:
            return
        self.reads[key] = owner
        if kind in _CONTAINERS:
            for item in owner.values() if kind == "dict" else owner:
                self.note_contents(item)

    def note_contents(self, value: Value) -> None:
        """Record a read of everything that a container or an object holds, as `note_read` does."""
        kind = type(value)
        if kind in (list, dict, set):
            self.note_read(kind.__name__, value)
        elif isinstance(value, tuple):
            for item in value:
                self.note_contents(item)
        elif not isinstance(value, (Tensor, HostValue, type)) and hasattr(value, "__dict__"):
            for name in vars(value):
                self.note_read("attribute", value, name)

    @contextlib.contextmanager
    def bprop(self) -> Iterator[dict[Key, Value]]:
        """Return a context manager for tracing a user's `bprop`; it yields the locations read."""
        outer = self.reads
        found: dict[Key, Value] = {}
        self.reads = found
        try:
            yield found
        finally:
            self.reads = outer
            if outer is not None:
                outer.update(found)

    def write(self, location: Location, value: Value) -> None:
        """Set the content of a `Location` after saving its earlier content in the undo log."""
        self.touch(*location)
        location.write(value)

    def set_item(self, owner: dict[Any, Value], name: Hashable, value: Value) -> None:
        """Set a variable of a scope or a key of a dict after saving its earlier content."""
        self.touch("item", owner, name)
        owner[name] = value

    def roll_back(self) -> None:
        """End the innermost unfinished branch and undo its changes, newest first."""
        for location, before in reversed(list(self.branches.pop().values())):
            location.write(before)

    def keep(self) -> None:
        """End the innermost unfinished branch; add its undo log to that of the enclosing branch."""
        writes = self.branches.pop()
        outer = self.branches[-1]
        for key, entry in writes.items():
            outer.setdefault(key, entry)
