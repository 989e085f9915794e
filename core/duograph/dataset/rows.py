"""Rows of datasets: their conversion to arrays, and the iterator with which users read them.

A row is a tuple with one value per column: a NumPy array, or a dictionary of such values.
`pipeline`, the sources and the steps build on this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from ..errors import ArgumentValueError, BatchShapeError, ColumnKindError, DatasetError
from ..host_arrays import Array
from ..tensor import Tensor
from . import config
from .places import name_step

if TYPE_CHECKING:
    from .pipeline import Dataset

__all__ = [
    "Array", "BatchInfo", "BatchShapeError", "BatchSize", "Columns", "DatasetError", "Operation",
    "Row", "RowIterator", "Value", "as_array", "as_value", "copied", "padded",
]  # fmt: skip

Columns: TypeAlias = "str | Sequence[str] | None"
Operation: TypeAlias = Callable[..., object]  # a user's function of arrays
BatchSize: TypeAlias = "int | Callable[[BatchInfo], int]"
Value: TypeAlias = "Array | dict[object, object]"  # a dictionary of arrays, lists and dictionaries
Row: TypeAlias = tuple[Value, ...]
Padding: TypeAlias = "tuple[Sequence[int | None] | None, object]"  # shape and value to pad to


# What converting the content of a damaged file raises; JSON that is nested too deeply leads to a
# RecursionError.
DAMAGE = (ValueError, TypeError, LookupError, OverflowError, RecursionError)


def as_array(value: object) -> Array:
    """Convert a value from a dataset source or a transform to a NumPy array.

    Raises:
        ColumnKindError: the value is an object that no array of numbers or strings can hold.
    """
    if isinstance(value, np.ndarray):
        found = value
    elif isinstance(value, Tensor):
        return value.asnumpy()
    else:
        try:
            found = np.array(value)
        except ValueError:  # lists of different lengths
            found = np.array(None)
    if found.dtype.kind != "O":
        return found
    if isinstance(value, np.ndarray):  # strings of a table may come as an array of objects
        try:
            found = np.array(value.tolist())
        except ValueError:
            found = value
        if found.dtype.kind != "O":
            return found
    raise ColumnKindError(
        f"dataset: got {type(value).__name__} {str(value)[:60]!r} in a column; wanted an array, a "
        "number, a string, lists of them of one shape, or a dictionary"
    )


def as_value(value: object) -> Value:
    """Convert a value from a source or a transform to an array, or a dictionary's values to arrays.

    Objects inside a dictionary that cannot become arrays stay as they are.

    Raises:
        ColumnKindError: the value is no dictionary and cannot become an array.
    """
    return cast("Value", _nested(value)) if isinstance(value, dict) else as_array(value)


def _nested(value: object) -> object:
    """Convert a value inside a dictionary to an array; items of lists and dicts one by one.

    An object that cannot become an array is returned unchanged.
    """
    if isinstance(value, dict):
        return {k: _nested(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_nested(v) for v in value]
    try:
        return as_array(value)
    except ColumnKindError:
        return value


def copied(value: object) -> object:
    """Copy an array, and the arrays within lists, tuples and dictionaries of a row."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if value.__class__ in (list, tuple):
        return value.__class__(map(copied, cast("list[object]", value)))
    if value.__class__ is dict:
        return {k: copied(v) for k, v in cast("dict[object, object]", value).items()}
    return value


class BatchInfo:
    """The last argument of a `per_batch_map` function: the numbers of the batch and of the epoch.

    Examples:
        >>> from duograph import dataset
        >>> data = dataset.NumpySlicesDataset([1, 2, 3], ["x"], shuffle=False)
        >>> data = data.batch(lambda info: info.get_batch_num() + 1)
        >>> [row["x"].tolist() for row in data.create_dict_iterator(output_numpy=True)]
        [[1], [2, 3]]
    """

    def __init__(self, batch: int, epoch: int) -> None:
        self._batch, self._epoch = batch, epoch

    def get_batch_num(self) -> int:
        """Return the number of the batch in its epoch, from 0."""
        return self._batch

    def get_epoch_num(self) -> int:
        """Return the number of the epoch, from 0."""
        return self._epoch


class RowIterator:
    """Iterator over rows as lists or dictionaries of Tensors or arrays.

    A `for` loop continues where `next` or an earlier loop has stopped, and ends with the pass over
    the dataset; the loop after it makes the next pass. After `epochs` passes (-1 for no limit),
    asking for a row raises an error.
    """

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
        self._epochs = self._left = epochs
        self._as_numpy, self._as_dict = as_numpy, as_dict
        self._copies = copies or config.settings.copies
        self._rows: Iterator[Row] | None = None
        self._number = 0  # of the next pass
        self._released = False

    def __iter__(self) -> RowIterator:
        return self

    def __next__(self) -> Any:
        if self._released:
            raise StopIteration
        if self._rows is None:
            if self._left == 0:
                raise DatasetError(
                    f"dataset: the iterator has made its {self._epochs} "
                    f"pass{'es' * (self._epochs > 1)} over the data; wanted no further row. Create "
                    "another iterator, or this one with a larger num_epochs (-1 has no limit)"
                )
            self._left -= self._left > 0
            for step in self.dataset._pipeline():
                step._begin_epoch(self._number)
            self._number += 1
            self._rows = self.dataset.rows()
        try:
            row = next(self._rows)
        except StopIteration:
            self._rows = None  # what follows is the next pass
            for step in self.dataset._pipeline():
                step._end_epoch()
            raise
        except Exception as error:
            name_step(error)
            raise
        items = [self._converted(row[i]) for i in self._picks]
        return dict(zip(self._columns, items)) if self._as_dict else items

    def _converted(self, value: object) -> object:
        """Convert the value of a column to a Tensor, or to an array if the user asked for arrays.

        In a dictionary, each value is converted. Strings always stay arrays.
        """
        if isinstance(value, dict):
            return {k: self._converted(v) for k, v in value.items()}
        if isinstance(value, list):
            return [self._converted(v) for v in value]
        if not isinstance(value, (np.ndarray, np.generic)):
            return value
        if self._as_numpy or value.dtype.kind in "SUOV":
            return value.copy() if self._copies else value
        return Tensor(value)

    def get_next(self) -> Any:
        """Return the next row of the epoch; raise StopIteration after the last one."""
        return next(self)

    def release(self) -> None:
        """End the iteration over the dataset; later calls find no rows."""
        self._released, self._rows = True, None


def padded(
    arrays: Sequence[Array], shape: Sequence[int | None] | None, value: object
) -> list[Array]:
    """Pad arrays at the end of each axis with `value` to one common shape.

    A size None in `shape`, or the `shape` None, means the largest size of the arrays along the
    axis. An array that is larger than `shape` along an axis is cut. If `value` is None, the padding
    is 0, or "" for strings. Arrays with different numbers of axes are returned unchanged.

    Raises:
        BatchShapeError: `shape` has not one size for each axis.
    """
    if len({a.ndim for a in arrays}) > 1:
        return list(arrays)  # what stacks them reports the shapes
    largest = tuple(max(sizes) for sizes in zip(*[a.shape for a in arrays]))
    if shape is not None:
        if len(shape) != len(largest):
            raise BatchShapeError(
                f"padded_batch: got the shape {list(shape)} for rows of shape {arrays[0].shape}; "
                "wanted a size for each axis"
            )
        largest = tuple(big if n is None else n for n, big in zip(shape, largest))
    text = arrays[0].dtype.kind in "SU"
    fill = np.asarray(("" if text else 0) if value is None else value)
    dtype = np.result_type(fill.astype(arrays[0].dtype.kind), *arrays) if text else arrays[0].dtype
    out = []
    for a in arrays:
        made = np.full(largest, fill, dtype)
        cut = tuple(slice(0, min(n, m)) for n, m in zip(a.shape, largest))
        made[cut] = a[cut]
        out.append(made)
    return out
