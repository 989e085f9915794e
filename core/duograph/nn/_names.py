"""The rule by which containers of Cells name Parameters; checkpoints find values by these names.

`CellList`, `SequentialCell` and `CellDict` call it. It reproduces MindSpore's rule, oddities
included, and must never ask which Cells hold a container.

- A Parameter without a name takes the name of its attribute.
- A Cell that becomes a child of another is renamed once: each Parameter below it becomes
  `attribute.` + its path from that child. Parameters that the child gains later get no such prefix.
- A Cell that becomes an item of a container becomes `head` + key + "." + its path. The head is read
  off the names of the items that are there already; an empty container has none.
- Deleting or inserting an item exchanges the number in the names of the other items.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..parameter import Parameter
    from .cell import Cell

__all__ = ["container_head", "renumber"]


def container_head(items: Iterable[tuple[str, Cell]]) -> str:
    """Return what stands before the key of an item in the names of a container's Parameters.

    For names such as ``layers.0.weight``, it is ``layers.``. The key of the first item that has
    Parameters may occur several times, as in ``layers.0.0.weight``. Then the second such item
    decides: the position is the first at which it has its own key; without one, it is the last.
    """
    named = _first_names(items)
    first = next(named, None)
    if first is None:
        return ""
    second = next(named, None)
    key, parts = first
    found = 0
    for position, part in enumerate(parts):
        if part == key:
            found = position
            if second is not None and second[1][position : position + 1] == [second[0]]:
                break
    return "".join(f"{part}." for part in parts[:found])


def renumber(cell: Cell, head: str, key: str) -> None:
    """Replace the key in the names of an item's Parameters, ``head + old key + rest``, by `key`."""
    position = head.count(".")
    for parameter in cell.get_parameters():
        rest = parameter.name.split(".")[position + 1 :]
        parameter.name = f"{head}{key}.{'.'.join(rest)}"


def _first_names(items: Iterable[tuple[str, Cell]]) -> Iterator[tuple[str, list[str]]]:
    """Yield (key, name of the first Parameter, split at the dots) for each item with Parameters."""
    for key, cell in items:
        parameter: Parameter | None = next(cell.get_parameters(), None)
        if parameter is not None:
            yield key, parameter.name.split(".")
