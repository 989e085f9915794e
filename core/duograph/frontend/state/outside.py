"""Locations outside the function that it reads as constants or writes.

A name or attribute that the function only reads is a constant of the graph. One that it writes must
be fetched at each call, so the evaluation starts over (`Restart`) when it finds out too late.
"""

from __future__ import annotations

from ..types import Value
from .journal import Key

__all__ = ["OutsideLocations", "Restart"]


class Restart(Exception):
    """Start the evaluation over: a location was read as a constant and is written later."""


class OutsideLocations:
    """Names, attributes and cells outside the function that it reads or writes.

    Attributes:
        written: locations that this or an earlier evaluation of the same call writes.
        constants: locations read as constants so far, with their values.
        values: present values of the locations written so far; a dict that branches can undo.
        changed_containers: containers from outside that the function changes, by id.
        has_writes: whether a write happens when the graph runs.
    """

    def __init__(self, written: set[Key]) -> None:
        self.written = written
        self.constants: dict[Key, Value] = {}
        self.values: dict[Key, Value] = {}
        self.changed_containers: dict[int, Value] = {}
        self.has_writes = False
