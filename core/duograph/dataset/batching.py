"""The steps of data pipelines that stack rows: batch, padded_batch and bucket_batch_by_length.

`Dataset` finds them by name in `pipeline.STEPS`, where the decorator `step` registers them.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, SupportsInt, cast

import numpy as np

from ..errors import ArgumentError, ArgumentValueError
from ..option_checks import check_options
from . import config
from .pipeline import Dataset, listed, names_of, step
from .rows import (
    Array,
    BatchInfo,
    BatchShapeError,
    BatchSize,
    Columns,
    DatasetError,
    Operation,
    Padding,
    Row,
    Value,
    as_array,
    as_value,
    copied,
    padded,
)
from .steps import new_columns
from .workers import in_order

__all__ = ["BatchDataset", "BucketBatchByLengthDataset", "PaddedBatchDataset"]


def stacked(name: str, values: Array | Iterable[object], pad: Padding | None) -> Value:
    """Stack the values of a column along a new first axis; dictionaries key by key.

    Args:
        name: the column, for messages.
        values: the values, or an array that is the batch already.
        pad: (shape, value) to pad arrays to, or None.

    Raises:
        BatchShapeError: the shapes or the keys differ.
        DatasetError: the dtypes differ; strings of any lengths have one dtype here.
    """
    if isinstance(values, np.ndarray):
        return values
    found = [as_value(v) for v in values]
    if isinstance(found[0], dict):
        return _stacked_dicts(name, found, pad)
    dtypes = {v.dtype for v in found if isinstance(v, np.ndarray)}
    if len(dtypes) > 1:  # strings of other lengths have other dtypes
        kinds = {"text" if d.kind in "SU" else str(d) for d in dtypes}
        if len(kinds) > 1:
            raise DatasetError(
                f"batch: column {name!r} has rows of the dtypes {', '.join(sorted(kinds))}; "
                "wanted one dtype (transforms.TypeCast in a map before the batch casts them)"
            )
    if pad is not None:
        found = cast("list[Value]", padded(cast("list[Array]", found), *pad))
    try:
        return np.stack(cast("list[Array]", found))
    except (ValueError, TypeError, AttributeError):
        shapes = sorted({a.shape for a in found if isinstance(a, np.ndarray)})
        raise BatchShapeError(
            f"batch: column {name!r} has rows of the shapes {shapes}; wanted one shape "
            f"(padded_batch pads them)"
        ) from None


def _stacked_dicts(name: str, values: list[Value], pad: Padding | None) -> Value:
    """Stack dictionaries with the same keys into one dictionary of stacked values.

    `name` is the column in errors; `pad` is (shape, value) for padding, or None.
    """
    keys = list(values[0])
    for v in values:
        if not isinstance(v, dict) or set(v) != set(keys):
            raise BatchShapeError(
                f"batch: column {name!r} has dictionaries with the keys {sorted(map(str, keys))} "
                f"and {sorted(map(str, v)) if isinstance(v, dict) else type(v).__name__}; wanted "
                "the same keys"
            )
    return {k: stacked(f"{name}[{k!r}]", [v[k] for v in values], pad) for k in keys}


def _checked_size(owner: str, size: object) -> None:
    """Raise unless a batch size is a function or an int of 1 or more.

    `owner` is the user's function in errors.

    Raises:
        TypeError: neither a function nor an int.
        ValueError: an int below 1.
    """
    if callable(size):
        return
    if isinstance(size, bool) or not isinstance(size, int):
        raise ArgumentError(f"{owner}: got batch_size={size!r}; wanted an int or a function")
    if size < 1:
        raise ArgumentValueError(f"{owner}: got batch_size={size}; wanted 1 or more")


@step("batch")
class BatchDataset(Dataset):
    """The step of `Dataset.batch`, which stacks successive rows into batches, column by column."""

    _pad: Mapping[str, Padding] | None = None

    def __init__(
        self,
        input_dataset: Dataset,
        batch_size: BatchSize,
        drop_remainder: bool = False,
        num_parallel_workers: int | None = None,
        per_batch_map: Callable[..., object] | None = None,
        input_columns: Columns = None,
        output_columns: Columns = None,
        python_multiprocessing: bool = False,
        **other: object,
    ) -> None:
        check_options("dataset.Dataset.batch", **other)
        _checked_size("batch", batch_size)
        if per_batch_map is None and output_columns is not None:
            raise ArgumentValueError("batch: got output_columns without per_batch_map")
        self.batch_size, self.drop, self.function = batch_size, drop_remainder, per_batch_map
        self.inputs = names_of(input_dataset, input_columns)
        self.outputs = self.inputs if output_columns is None else listed(output_columns)
        columns = input_dataset.get_col_names()
        if per_batch_map is not None:
            columns = new_columns(columns, self.inputs, self.outputs)
        super().__init__(columns, (input_dataset,))
        if not callable(batch_size):
            input_dataset._in_batches(batch_size)
        config.workers(num_parallel_workers)
        self.workers, self.processes = num_parallel_workers, bool(python_multiprocessing)

    def _size(self) -> int | None:
        n = self._parents[0]._size()
        if n is None or callable(self.batch_size):
            return None
        return n // self.batch_size if self.drop else -(-n // self.batch_size)

    def get_batch_size(self) -> int:
        return -1 if callable(self.batch_size) else self.batch_size

    def _generate(self) -> Iterator[Row]:
        parent = self._parents[0]
        row_groups = getattr(parent, "row_groups", None)  # a source that gathers batches itself
        if (
            row_groups is not None
            and self.function is None
            and self._pad is None
            and not callable(self.batch_size)
        ):
            return row_groups(self.batch_size, self.drop)
        workers = config.workers(self.workers) if self.function is not None else 1
        return in_order(self._batched, self._groups(), workers, self.processes)

    def _groups(self) -> Iterator[tuple[list[Row], BatchInfo]]:
        """Yield the rows and the BatchInfo of each batch; the rows are not stacked yet."""
        rows = self._parents[0].rows()
        for number in itertools.count():
            info = BatchInfo(number, self._epoch)
            size = self.batch_size(info) if callable(self.batch_size) else self.batch_size
            _checked_size("batch", size)
            group = list(itertools.islice(rows, size))
            if not group or (self.drop and len(group) < size):
                return
            yield group, info

    def _batched(self, task: tuple[list[Row], BatchInfo]) -> Row:
        """Return one batch: apply `per_batch_map` to its rows and stack each column."""
        group, info = task
        own = self._parents[0].get_col_names()
        columns: dict[str, Any] = dict(zip(own, [list(c) for c in zip(*group)]))
        if self.function is not None:
            # Copies, because the function may change the arrays, and the source has its rows long.
            found = self.function(*[copied(columns[c]) for c in self.inputs], info)
            found = found if isinstance(found, tuple) else (found,)
            if len(found) != len(self.outputs):
                raise DatasetError(
                    f"batch: per_batch_map returned {len(found)} columns; wanted "
                    f"{len(self.outputs)}"
                )
            self._check_rows(found, len(group))
            columns.update(zip(self.outputs, found))
        return tuple(stacked(c, columns[c], self._padding(c)) for c in self._columns)

    def _check_rows(self, found: tuple[object, ...], count: int) -> None:
        """Raise if a list that `per_batch_map` returned has not `count` values, one for each row.

        Results that are all arrays are batches already, of any size.
        """
        if not any(isinstance(values, (list, tuple)) for values in found):
            return
        for name, values in zip(self.outputs, found):
            if isinstance(values, (list, tuple)):
                size = len(values)
            elif isinstance(values, dict):
                continue
            else:
                size = (as_array(values).shape or (1,))[0]
            if size != count:
                raise DatasetError(
                    f"batch: per_batch_map returned {size} values of {name!r} for {count} rows; "
                    "wanted one for each row, or arrays only, which are batches as they are"
                )

    def _padding(self, column: str) -> Padding | None:
        """Return the (shape, value) to which the column is padded, or None for no padding.

        Shape and value are None if the user gave none: then the shape is the largest in the batch,
        and the value is 0, or "" for strings.
        """
        if self._pad is None or (self._pad and column not in self._pad):
            return None
        shape, value = self._pad.get(column, (None, None))
        return shape, value


def _pad_info(dataset: Dataset, pad_info: Mapping[str, Padding] | None) -> dict[str, Padding]:
    """Return a copy of an argument `pad_info`, a dictionary column -> (shape, value).

    None becomes an empty dictionary.

    Raises:
        ArgumentValueError: the dataset has no such column.
        ArgumentError: an item is not a tuple of two.
    """
    found = {} if pad_info is None else dict(pad_info)
    names_of(dataset, list(found))
    for column, pair in found.items():
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise ArgumentError(
                f"pad_info: got {pair!r} for {column!r}; wanted a tuple (shape, value)"
            )
    return found


@step("padded_batch")
class PaddedBatchDataset(BatchDataset):
    """The step of `Dataset.padded_batch`, which pads rows to the same shape and stacks them."""

    def __init__(
        self,
        input_dataset: Dataset,
        batch_size: BatchSize,
        drop_remainder: bool = False,
        num_parallel_workers: int | None = None,
        pad_info: Mapping[str, Padding] | None = None,
    ) -> None:
        super().__init__(input_dataset, batch_size, drop_remainder, num_parallel_workers)
        self._pad = _pad_info(input_dataset, pad_info)

    def _generate(self) -> Iterator[Row]:
        return in_order(self._batched, self._groups(), config.workers(self.workers), False)


@step("bucket_batch_by_length")
class BucketBatchByLengthDataset(Dataset):
    """The step `bucket_batch_by_length`: pads rows of similar length alike and stacks them."""

    def __init__(
        self,
        input_dataset: Dataset,
        column_names: Sequence[str],
        bucket_boundaries: Sequence[int],
        bucket_batch_sizes: Sequence[int],
        element_length_function: Operation | None,
        pad_info: Mapping[str, Padding] | None,
        pad_to_bucket_boundary: bool,
        drop_remainder: bool,
    ) -> None:
        self.columns = names_of(input_dataset, column_names)
        self.boundaries, self.sizes = list(bucket_boundaries), list(bucket_batch_sizes)
        owner = "bucket_batch_by_length"
        if element_length_function is None and len(self.columns) != 1:
            raise ArgumentValueError(
                f"{owner}: got the columns {self.columns}; wanted one, or element_length_function"
            )
        if not self.boundaries or any(
            isinstance(n, bool) or not isinstance(n, int) or n < 1 for n in self.boundaries
        ) or any(a >= b for a, b in itertools.pairwise(self.boundaries)):  # fmt: skip
            raise ArgumentValueError(
                f"{owner}: got bucket_boundaries={self.boundaries}; wanted ascending ints above 0"
            )
        if len(self.sizes) != len(self.boundaries) + 1:
            raise ArgumentValueError(
                f"{owner}: got {len(self.sizes)} bucket_batch_sizes for {len(self.boundaries)} "
                f"boundaries; wanted {len(self.boundaries) + 1}"
            )
        for size in self.sizes:
            if callable(size):
                raise ArgumentError(
                    f"{owner}: got a function for one of bucket_batch_sizes; wanted an int"
                )
            _checked_size(owner, size)
        super().__init__(input_dataset.get_col_names(), (input_dataset,))
        self.function, self.pad = element_length_function, _pad_info(input_dataset, pad_info)
        self.to_boundary, self.drop = bool(pad_to_bucket_boundary), bool(drop_remainder)

    def _length(self, row: Row) -> int:
        """Return the length of a row, which selects its bucket.

        The length is the result of the user's function, or, if there is none, the size of the first
        axis of the first of the step's columns (1 for a scalar).
        """
        values = cast("list[Array]", [row[self._columns.index(c)] for c in self.columns])
        if self.function is not None:
            return int(cast("SupportsInt", self.function(*values)))
        return values[0].shape[0] if values[0].ndim else 1

    def _generate(self) -> Iterator[Row]:
        buckets: list[list[Row]] = [[] for _ in self.sizes]
        for row in self._parents[0].rows():
            length = self._length(row)
            at = bisect_right(self.boundaries, length)
            if self.to_boundary and at == len(self.boundaries):
                raise DatasetError(
                    f"bucket_batch_by_length: got a row of length {length} with "
                    f"pad_to_bucket_boundary; wanted less than {self.boundaries[-1]}"
                )
            buckets[at].append(row)
            if len(buckets[at]) == self.sizes[at]:
                yield self._batch(at, buckets[at])
                buckets[at] = []
        for at, rows in enumerate(buckets):
            if rows and not self.drop:
                yield self._batch(at, rows)

    def _batch(self, at: int, rows: list[Row]) -> Row:
        """Stack the rows of bucket number `at` into one batch, with the bucket's padding."""
        return tuple(
            stacked(c, list(values), self._padding(c, at))
            for c, values in zip(self._columns, zip(*rows))
        )

    def _padding(self, column: str, at: int) -> Padding | None:
        """Return the (shape, value) to which bucket `at` pads a column, or None for no padding.

        Shape and value are None if the user gave none: then the shape is the largest in the batch,
        and the value is 0, or "" for strings. With `pad_to_bucket_boundary`, a size None in the
        user's shape becomes the largest length of the bucket.
        """
        if self.pad and column not in self.pad:
            return None
        shape, value = self.pad.get(column, (None, None))
        if self.to_boundary and shape is not None:
            shape = [self.boundaries[at] - 1 if n is None else n for n in shape]
        return shape, value
