"""SequentialCell, CellList and CellDict: Cells that hold other Cells by number or by name.

`nn` exports them. They rename the Parameters of their children when positions change; `_names` has
the rule.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import Any, NoReturn

from ...advice import kind_of
from ...call_names import CONTAINER
from ...errors import ArgumentError, IndexRangeError
from .._names import container_head, renumber
from ..cell import Cell

__all__ = ["SequentialCell", "CellList", "CellDict"]


class _Numbered(Cell):
    """Base class of SequentialCell and CellList, whose child Cells are named 0, 1, 2, ..."""

    def _check_cell(self, cell: object) -> Cell:
        if not isinstance(cell, Cell):
            raise ArgumentError(
                f"{type(self).__name__}: got {kind_of(cell)}; wanted a Cell, such as nn.ReLU()"
            )
        return cell

    def _head(self) -> str:
        """Return what precedes an item's number in the names of the Parameters in this container.

        For the name "layers.0.weight" this is "layers.". The result is "" if the container was made
        with `auto_prefix=False` and therefore does not rename the Parameters of its items.
        """
        return container_head(self._cells.items()) if self._auto_prefix else ""

    def _put(self, name: str, cell: Cell, head: str) -> None:
        """Set the child Cell `name`; rename its Parameters to `head` + name + "." + their path.

        With `auto_prefix=False` they are not renamed.
        """
        if self._auto_prefix:
            cell.update_parameters_name(f"{head}{name}.")
        self._cells[name] = cell

    def _set_order(self, kept: list[Cell], head: str) -> None:
        """Replace the child Cells by `kept`, numbered from 0, and renumber their Parameters' names.

        `head` is what precedes the number in these names. With `auto_prefix=False` the names do not
        change.
        """
        for name in list(self._cells):
            del self._cells[name]
        for i, cell in enumerate(kept):
            if self._auto_prefix:
                renumber(cell, head, str(i))
            self._cells[str(i)] = cell

    def _index(self, index: int) -> int:
        n = len(self._cells)
        if isinstance(index, bool) or not isinstance(index, int):
            raise ArgumentError(f"{type(self).__name__}: got index {index!r}; wanted an int")
        if not -n <= index < n:
            raise IndexRangeError(
                f"{type(self).__name__}: got index {index}; wanted one in [{-n}, {n})"
            )
        return index % n

    def __getitem__(self, index: int | str | slice) -> Any:
        kept = list(self._cells.items())
        if isinstance(index, slice):
            return self._part(kept[index])
        if isinstance(index, str):
            return self._cells[index]
        return kept[self._index(index)][1]

    def _part(self, items: list[tuple[str, Cell]]) -> Any:
        """Return a container of the same class with the children `items`, pairs (name, Cell).

        Names of the children and of their Parameters stay as they are.
        """
        made = type(self).__new__(type(self))
        Cell.__init__(made, auto_prefix=False)
        for name, cell in items:
            made._cells[name] = cell
        made.__dict__["_auto_prefix"] = self._auto_prefix
        return made

    def __setitem__(self, index: int, cell: Cell) -> None:
        self._check_cell(cell)
        name = list(self._cells)[self._index(index)]
        self._put(name, cell, self._head())

    def __delitem__(self, index: int | slice) -> None:
        head = self._head()
        kept = list(self._cells.values())
        if isinstance(index, slice):
            del kept[index]
        else:
            del kept[self._index(index)]
        self._set_order(kept, head)

    def __len__(self) -> int:
        return len(self._cells)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Cell]:
        return iter(list(self._cells.values()))

    def set_grad(self, requires_grad: bool = True) -> Cell:
        """Set the flag `requires_grad` of this container and its child Cells.

        Returns the container.
        """
        self.requires_grad = requires_grad
        for cell in self._cells.values():
            cell.set_grad(requires_grad)
        return self

    def append(self, cell: Cell) -> None:
        """Add a Cell at the end of this container."""
        self._put(str(len(self._cells)), self._check_cell(cell), self._head())


class SequentialCell(_Numbered):
    """Calls its Cells one after the other (`mindspore.nn.SequentialCell`).

    Args:
        args: Cells, or one list of Cells, or one OrderedDict of Cells, whose keys are the names.

    Raises:
        TypeError: an argument is not a Cell.
        IndexError: an index past the end.

    Examples:
        >>> import duograph as ms
        >>> from duograph import nn
        >>> net = nn.SequentialCell(nn.Dense(3, 4), nn.ReLU(), nn.Dense(4, 2))
        >>> net(ms.ops.ones((1, 3), ms.float32)).shape
        (1, 2)
        >>> [p.name for p in net.trainable_params()]
        ['0.weight', '0.bias', '2.weight', '2.bias']
    """

    call_role = CONTAINER

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if (len(args) == 1 and isinstance(args[0], (list, tuple))) or len(args) != 1:
            cells = args[0] if len(args) == 1 else args
            for i, cell in enumerate(cells):
                self._put(str(i), self._check_cell(cell), "")
        elif isinstance(args[0], Mapping):
            for name, cell in args[0].items():
                self._put(name, self._check_cell(cell), "")
        else:
            self._put("0", self._check_cell(args[0]), "")

    @property
    def cell_list(self) -> list[Cell]:
        """Return the Cells in the order in which they are called."""
        return list(self._cells.values())

    def construct(self, input_data: object) -> object:
        for cell in self._cells.values():
            input_data = cell(input_data)
        return input_data


class CellList(_Numbered):
    """A list of Cells; it cannot be called itself (`mindspore.nn.CellList`).

    Args:
        args: one list of Cells, or Cells.
        auto_prefix: whether to prefix the names of the Parameters with the number of their Cell;
            default True.

    Raises:
        TypeError: an argument is not a Cell.
        IndexError: an index past the end.

    Examples:
        >>> from duograph import nn
        >>> layers = nn.CellList([nn.Dense(2, 2), nn.ReLU()])
        >>> layers.append(nn.Dense(2, 1))
        >>> layers
        CellList(
          (0): Dense(input_channels=2, output_channels=2, has_bias=True)
          (1): ReLU()
          (2): Dense(input_channels=2, output_channels=1, has_bias=True)
        )
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        auto_prefix = kwargs.pop("auto_prefix", True)
        if kwargs:
            raise ArgumentError(f"CellList: got the unknown argument {next(iter(kwargs))!r}")
        super().__init__(auto_prefix=auto_prefix)
        cells = args[0] if len(args) == 1 and not isinstance(args[0], Cell) else args
        self.extend(cells)

    def _part(self, items: list[tuple[str, Cell]]) -> Any:
        """Return a CellList of the Cells in the (name, Cell) pairs `items`, numbered from 0."""
        return super()._part([(str(i), cell) for i, (_, cell) in enumerate(items)])

    def insert(self, index: int, cell: Cell) -> None:
        """Insert a Cell before position `index`."""
        self._check_cell(cell)
        kept = list(self._cells.values())
        n = len(kept)
        if not -n <= index <= n:
            raise IndexRangeError(f"CellList: got index {index}; wanted one in [{-n}, {n}]")
        head = self._head()
        position = index % n if index < 0 else index
        self._set_order(kept[:position], head)
        self._put(str(position), cell, head)
        for i, later in enumerate(kept[position:], position + 1):
            if self._auto_prefix:
                renumber(later, head, str(i))
            self._cells[str(i)] = later

    def extend(self, cells: Iterable[Cell]) -> CellList:
        """Add several Cells at the end of this CellList; return the CellList."""
        head = self._head()
        for cell in list(cells):
            self._put(str(len(self._cells)), self._check_cell(cell), head)
        return self

    def pop(self, index: int = -1) -> Cell:
        """Remove the Cell at `index` from this CellList, renumber the rest, and return the Cell."""
        head = self._head()
        kept = list(self._cells.values())
        found = kept.pop(self._index(index))
        self._set_order(kept, head)
        return found

    def construct(self, *inputs: object) -> NoReturn:
        raise NotImplementedError(
            "CellList: cannot be called; loop over it, and call one Cell after the other"
        )


class CellDict(Cell):
    """A dictionary of Cells, made of a mapping or (name, Cell) pairs (`mindspore.nn.CellDict`).

    It cannot be called itself.

    Raises:
        TypeError: a value is not a Cell.
        KeyError: the key does not exist.

    Examples:
        >>> from duograph import nn
        >>> cells = nn.CellDict({"fc": nn.Dense(2, 2), "act": nn.ReLU()})
        >>> list(cells.keys())
        ['fc', 'act']
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        auto_prefix = kwargs.pop("auto_prefix", True)
        super().__init__(auto_prefix=auto_prefix)
        if len(args) > 1 or kwargs:
            raise ArgumentError("CellDict: wanted one mapping, or one list of (name, Cell)")
        if args and args[0] is not None:
            self.update(args[0])

    def __getitem__(self, key: str) -> Cell:
        return self._cells[key]

    def __setitem__(self, key: str, cell: Cell) -> None:
        if not isinstance(key, str) or not key or "." in key:
            raise ArgumentError(f"CellDict: got key {key!r}; wanted a name without a dot")
        if not isinstance(cell, Cell):
            raise ArgumentError(f"CellDict: got {type(cell).__name__}; wanted a Cell")
        if (key in self.__dict__ and key not in self._cells) or hasattr(type(self), key):
            raise KeyError(
                f"CellDict: the key {key!r} is an attribute of the CellDict; wanted another"
            )
        if self._auto_prefix:
            cell.update_parameters_name(f"{container_head(self._cells.items())}{key}.")
        self._cells[key] = cell

    def __delitem__(self, key: str) -> None:
        del self._cells[key]

    def __len__(self) -> int:
        return len(self._cells)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._cells))

    def __contains__(self, key: object) -> bool:
        return key in self._cells

    def keys(self) -> KeysView[str]:
        """Return a view of the names in this CellDict."""
        return self._cells.keys()

    def values(self) -> ValuesView[Cell]:
        """Return a view of the Cells in this CellDict."""
        return self._cells.values()

    def items(self) -> ItemsView[str, Cell]:
        """Return a view of the (name, Cell) pairs in this CellDict."""
        return self._cells.items()

    def clear(self) -> None:
        """Remove all Cells from this CellDict."""
        for key in list(self._cells):
            del self._cells[key]

    def pop(self, key: str) -> Cell:
        """Remove the Cell named `key` from this CellDict and return the Cell."""
        found = self._cells[key]
        del self._cells[key]
        return found

    def update(self, cells: Mapping[str, Cell] | CellDict | Iterable[tuple[str, Cell]]) -> None:
        """Add or replace Cells of this CellDict from a mapping or a list of (name, Cell)."""
        pairs = cells.items() if isinstance(cells, (Mapping, CellDict, OrderedDict)) else cells
        for key, cell in pairs:
            self[key] = cell

    def construct(self, *inputs: object) -> NoReturn:
        raise NotImplementedError(
            "CellDict: cannot be called; index it with a key, and call that Cell"
        )
