"""Records which names and attributes outside a function its code reads or writes.

A name or attribute that the function only reads is a constant of the graph. A location that the
function writes must be fetched at each call. A write to a location that was already read as a
constant therefore starts the evaluation again (`Restart`). `evaluation.variables` uses the record;
the module itself must not write to any location.
"""

from __future__ import annotations

from ..types import Value
from .journal import Key

__all__ = ["OutsideLocations", "Restart"]


class Restart(Exception):
    """Raised to evaluate the function again: it writes a location that it read as a constant."""


class OutsideLocations:
    """Names, attributes and closure cells from outside that the function reads or writes.

    Attributes:
        written: locations that this or an earlier evaluation of the same call writes.
        constants: locations read as constants so far, with their values.
        values: present values of the locations written so far; a branch undoes its changes of this
            dict.
        changed_containers: containers from outside the function that the function changes, by id.
        has_writes: whether a write happens when the graph runs.
        targets: objects from outside that the function changes, or consumes as an iterator, by id.
        given: objects from outside that Python code receives when the graph runs, by id.
    """

    def __init__(self, written: set[Key]) -> None:
        self.written = written
        self.constants: dict[Key, Value] = {}
        self.values: dict[Key, Value] = {}
        self.changed_containers: dict[int, Value] = {}
        self.has_writes = False
        self.targets: dict[int, Value] = {}
        self.given: dict[int, Value] = {}

    def writes_to(self, owner: Value) -> bool:
        """Return whether this or an earlier evaluation assigns an attribute of `owner`."""
        number = id(owner)
        return any(kind == "attribute" and where == number for kind, where, _ in self.written)
