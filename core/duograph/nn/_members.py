"""The dictionaries in which a Cell (network layer) keeps Parameters, child Cells and buffers.

`Cell` creates one per kind. Their only addition to a dictionary is that each entry is mirrored as
a plain attribute of the Cell, so that reading a member costs one dictionary lookup.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..runtime_state import runtime_state

if TYPE_CHECKING:
    from .cell import Cell

__all__ = ["Members"]

Item = TypeVar("Item")


class Members(OrderedDict[str, Any], Generic[Item]):
    """The Parameters, Cells or buffers of a Cell by name; each is also an attribute of the Cell."""

    __slots__ = ("_owner",)
    _owner: Cell

    @classmethod
    def of(cls, owner: Cell, items: Iterable[tuple[str, Item | None]] = ()) -> Members[Item]:
        """Create a dictionary of Parameters, child Cells or buffers of the Cell `owner`.

        `items` are its first entries, pairs (name, value).
        """
        made: Members[Item] = cls()
        made._owner = owner
        for name, value in items:
            made[name] = value
        return made

    def __setitem__(self, name: str, value: Item | None) -> None:
        super().__setitem__(name, value)
        self._owner.__dict__[name] = value
        self._owner.__dict__["_plain"] = False
        runtime_state.cells_version += 1

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        self._owner.__dict__.pop(name, None)
        runtime_state.cells_version += 1

    def add_unnamed(self, name: str, value: Item) -> None:
        """Add an entry to a Cell's member dictionary without setting an attribute on the Cell.

        It is used for names that are no Python identifiers, such as "0".
        """
        super().__setitem__(name, value)
        self._owner.__dict__["_plain"] = False
