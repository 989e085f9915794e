"""The rule by which containers of Cells name Parameters; checkpoints find values by these names.

`CellList`, `SequentialCell` and `CellDict` call it. It reproduces MindSpore's rule, oddities
included. The names of a container must not depend on the Cells that the container is in.

- A Parameter without a name takes the name of its attribute.
- A Cell that becomes a child of another is renamed once: each Parameter below it becomes
  `attribute.` + its path from that child. Parameters that the child gains later get no such prefix.
- If a Cell becomes an item of a container, each Parameter below it becomes `head` + the item's key
  + "." + its path from the item. The `head`, such as "layers.", is what precedes the key in the
  names of the items that the container already has; it is "" for an empty container.
- Deleting or inserting an item changes the number (the key) in the names of the other items.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..parameter import Parameter
    from .cell import Cell

__all__ = ["container_head", "renumber"]


def container_head(items: Iterable[tuple[str, Cell]]) -> str:
    """Return what precedes an item's key in the names of the Parameters of a container's items.

    For the name ``layers.0.weight`` of a Parameter of item "0", the result is ``layers.``; for a
    container without Parameters it is "". The name of only the first Parameter is searched for the
    key of its item. If the key occurs several times, as in ``layers.0.0.weight``, it is ambiguous
    which occurrence is the item's key. The first occurrence is chosen at whose position the next
    item with Parameters has its own key, as in ``layers.0.1.weight``; if there is none, the last
    occurrence.
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
    """Rename the Parameters of an item from ``head + old key + rest`` to ``head + key + rest``.

    `head` is what precedes the key, such as ``layers.``.
    """
    position = head.count(".")
    for parameter in cell.get_parameters():
        rest = parameter.name.split(".")[position + 1 :]
        parameter.name = f"{head}{key}.{'.'.join(rest)}"


def _first_names(items: Iterable[tuple[str, Cell]]) -> Iterator[tuple[str, list[str]]]:
    """Yield (key, name of the first Parameter, split at the dots) for items with Parameters."""
    for key, cell in items:
        parameter: Parameter | None = next(cell.get_parameters(), None)
        if parameter is not None:
            yield key, parameter.name.split(".")
