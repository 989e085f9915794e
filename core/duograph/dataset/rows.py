"""Rows of datasets: their conversion to arrays, and the iterator that users read them with.

A row is a tuple of NumPy arrays, one per column. `pipeline` builds on this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..errors import ArgumentValueError, DuographError, ShapeError
from ..tensor import Tensor

if TYPE_CHECKING:
    from .pipeline import Dataset

__all__ = [
    "Array", "BatchInfo", "BatchShapeError", "BatchSize", "Columns", "DatasetError", "Operation",
    "Row", "RowIterator", "as_array", "in_order", "padded",
]  # fmt: skip

Array: TypeAlias = np.ndarray[Any, Any]
Columns: TypeAlias = "str | Sequence[str] | None"
Operation: TypeAlias = Callable[..., Any]  # a user's function of arrays
BatchSize: TypeAlias = "int | Callable[[BatchInfo], int]"
Row: TypeAlias = tuple[Array, ...]


class DatasetError(DuographError, RuntimeError):
    """Error while a dataset produces rows."""


def as_array(value: object) -> Array:
    """Convert a value from a dataset source or a transform to a NumPy array."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, Tensor):
        return value.asnumpy()
    return np.array(value)


class BatchInfo:
    """The last argument of `per_batch_map`: the number of the batch and of the epoch."""

    def __init__(self, batch: int, epoch: int) -> None:
        self._batch, self._epoch = batch, epoch

    def get_batch_num(self) -> int:
        """Return the number of the batch in its epoch, from 0, for `per_batch_map` functions."""
        return self._batch

    def get_epoch_num(self) -> int:
        """Return the number of the epoch, from 0, for `per_batch_map` functions."""
        return self._epoch


class RowIterator:
    """Iterates over rows as lists or dictionaries of Tensors or arrays; each `for` is an epoch."""

    def __init__(
        self,
        dataset: Dataset,
        columns: Sequence[str] | None,
        epochs: int,
        as_numpy: bool,
        as_dict: bool,
        copies: bool = False,
    ) -> None:
        if isinstance(epochs, bool) or not isinstance(epochs, int) or epochs < -1 or epochs == 0:
            raise ArgumentValueError(f"num_epochs: got {epochs!r}; wanted -1, or 1 or more")
        self.dataset = dataset
        names = dataset.get_col_names()
        self._columns = list(names if columns is None else columns)
        for c in self._columns:
            if c not in names:
                raise ArgumentValueError(f"columns: got {c!r}; the dataset has {', '.join(names)}")
        self._picks = [names.index(c) for c in self._columns]
        self._left = epochs
        self._as_numpy, self._as_dict, self._copies = as_numpy, as_dict, copies
        self._rows: Iterator[Row] | None = None

    def __iter__(self) -> RowIterator:
        self._rows = None
        return self

    def __next__(self) -> Any:
        if self._rows is None:
            if self._left == 0:
                raise StopIteration
            self._left -= self._left > 0
            self._rows = self.dataset.rows()
        row = next(self._rows)
        items = [self._converted(row[i]) for i in self._picks]
        return dict(zip(self._columns, items)) if self._as_dict else items

    def _converted(self, array: Array) -> Array | Tensor:
        if self._as_numpy or array.dtype.kind in "SUO":
            return array.copy() if self._copies else array
        return Tensor(array)

    def get_next(self) -> Any:
        """Return the next row of the dataset."""
        return next(self)

    def release(self) -> None:
        """End the iteration over the dataset; later calls find no rows."""
        self._left, self._rows = 0, iter(())


class BatchShapeError(DatasetError, ShapeError):
    """Error for dataset rows of different shapes that cannot be stacked into one batch."""


def padded(
    arrays: Sequence[Array], shape: Sequence[int | None] | None, value: float | None
) -> list[Array]:
    """Pad arrays with `value` to one shape; a size of None means the longest array on that axis."""
    largest = tuple(max(sizes) for sizes in zip(*[a.shape for a in arrays]))
    if shape is not None:
        largest = tuple(big if n is None else n for n, big in zip(shape, largest))
    out = []
    for a in arrays:
        made = np.full(largest, 0 if value is None else value, a.dtype)
        cut = tuple(slice(0, min(n, m)) for n, m in zip(a.shape, largest))
        made[cut] = a[cut]
        out.append(made)
    return out


def in_order(dataset: Dataset) -> Iterator[Row]:
    """Iterate over rows unshuffled by the dataset source, so that split parts never overlap."""
    rows_in_order = getattr(dataset, "rows_in_order", None)
    return rows_in_order() if rows_in_order is not None else dataset.rows()
