"""The dataset base class `Dataset` and all pipeline steps, such as batch, map and shuffle.

Each step is a generator over the rows of its parents; nothing is computed before a row is
requested. One pass over the pipeline is an *epoch*.
"""

from __future__ import annotations

import builtins
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..errors import ArgumentError, ArgumentValueError
from ..option_checks import check_options
from . import config
from .rows import (
    Array,
    BatchInfo,
    BatchShapeError,
    BatchSize,
    Columns,
    DatasetError,
    Operation,
    Row,
    RowIterator,
    as_array,
    in_order,
    padded,
)  # fmt: skip

__all__ = ["Dataset", "zip"]

_zip = builtins.zip  # `zip` below is MindSpore's

Datasets: TypeAlias = "Dataset | Sequence[Dataset]"


class Dataset:
    """Base class of datasets (`mindspore.dataset.Dataset`).

    Subclasses are sources; the methods return datasets with one more step.

    Examples:
        >>> from duograph import dataset
        >>> data = dataset.NumpySlicesDataset([1, 2, 3, 4], ["x"], shuffle=False)
        >>> data = data.map(lambda x: x * 10, "x").batch(2)
        >>> [row["x"].tolist() for row in data.create_dict_iterator(output_numpy=True)]
        [[10, 20], [30, 40]]
    """

    def __init__(self, columns: Sequence[str], parents: Sequence[Dataset] = ()) -> None:
        self._columns = list(columns)
        self._parents = tuple(parents)
        self._epoch = -1

    # ---- implemented by each step ---------------------------------------------------------------

    def _generate(self) -> Iterator[Row]:
        """Yield the rows of one pass over the dataset; every subclass overrides this method."""
        raise NotImplementedError(f"{type(self).__name__}: has no rows")

    def _size(self) -> int | None:
        """Return the number of dataset rows in a pass, or None if it is unknown before the pass."""
        return None

    def rows(self) -> Iterator[Row]:
        """Return an iterator over the dataset's rows, tuples of NumPy arrays, for one pass."""
        self._epoch += 1
        return self._generate()

    # ---- reading --------------------------------------------------------------------------------

    def create_tuple_iterator(
        self,
        columns: Sequence[str] | None = None,
        num_epochs: int = -1,
        output_numpy: bool = False,
        do_copy: bool = False,
    ) -> RowIterator:
        """Iterate over rows as lists of Tensors, or of arrays with `output_numpy`.

        Arrays may share the memory of the source, unless `do_copy` is True.

        Raises:
            ValueError: an unknown column.
        """
        return RowIterator(self, columns, num_epochs, output_numpy, False, do_copy)

    def create_dict_iterator(
        self, num_epochs: int = -1, output_numpy: bool = False, do_copy: bool = False
    ) -> RowIterator:
        """Iterate over rows as dictionaries of Tensors, or of arrays with `output_numpy`.

        Arrays may share the memory of the source, unless `do_copy` is True.
        """
        return RowIterator(self, None, num_epochs, output_numpy, True, do_copy)

    def __iter__(self) -> RowIterator:
        return self.create_tuple_iterator(num_epochs=1)

    def __len__(self) -> int:
        return self.get_dataset_size()

    def get_dataset_size(self) -> int:
        """Return the number of rows (or batches) in a dataset pass.

        Counts them in a pass if it is unknown.
        """
        known = self._size()
        return sum(1 for _ in self.rows()) if known is None else known

    def get_col_names(self) -> list[str]:
        """Return the names of the dataset's columns."""
        return list(self._columns)

    def get_batch_size(self) -> int:
        """Return the number of rows in a batch of the dataset; 1 without `batch`."""
        return self._parents[0].get_batch_size() if self._parents else 1

    def get_repeat_count(self) -> int:
        """Return how often `repeat` repeats the dataset; 1 without `repeat`."""
        return self._parents[0].get_repeat_count() if self._parents else 1

    def output_shapes(self, estimate: bool = False) -> list[list[int | None]]:
        """Return the shape of every column of the dataset's first row.

        With `estimate`, a whole pass is read, and a size that differs between rows is None.
        """
        rows = self.rows()
        shapes: list[list[int | None]] = [list(a.shape) for a in next(rows)]
        for row in rows if estimate else ():
            for shape, array in _zip(shapes, row):
                if len(shape) != array.ndim:
                    raise DatasetError(
                        f"output_shapes: a column has rows of {len(shape)} and {array.ndim} axes; "
                        "wanted one number"
                    )
                shape[:] = [n if n == m else None for n, m in _zip(shape, array.shape)]
        return shapes

    def output_types(self) -> list[np.dtype[Any]]:
        """Return the NumPy dtype of every column of the dataset's first row."""
        return [a.dtype for a in next(self.rows())]

    def num_classes(self) -> int | None:
        """Return the dataset's number of classes, or None if the source does not know it."""
        return self._parents[0].num_classes() if self._parents else None

    def reset(self) -> None:
        """Do nothing: accepted for MindSpore scripts.

        Every dataset pass starts at the first row.
        """

    # ---- steps ----------------------------------------------------------------------------------

    def batch(
        self,
        batch_size: BatchSize,
        drop_remainder: bool = False,
        num_parallel_workers: int | None = None,
        per_batch_map: Callable[..., Any] | None = None,
        input_columns: Columns = None,
        output_columns: Columns = None,
        **kwargs: Any,
    ) -> Dataset:
        """Return a dataset that stacks consecutive rows into batches.

        Args:
            batch_size: number of rows in a batch, or a function from BatchInfo to it.
            drop_remainder: leave out a last, smaller batch.
            per_batch_map: function of the lists of the `input_columns` and BatchInfo.
            output_columns: names of its results.

        Raises:
            ValueError: `batch_size` is below 1; while reading: rows differ in shape.
        """
        check_options("dataset.Dataset.batch", num_parallel_workers=num_parallel_workers, **kwargs)
        return _Batch(
            self, batch_size, drop_remainder, per_batch_map, input_columns, output_columns
        )

    def padded_batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_workers: int | None = None,
        pad_info: dict[str, Any] | None = None,
    ) -> Dataset:
        """Return a dataset that pads rows to one shape and stacks the rows into batches.

        `pad_info` maps columns to (shape, value); None in a shape is the longest of the batch.
        """
        check_options("dataset.Dataset.padded_batch", num_parallel_workers=num_parallel_workers)
        return _Batch(self, batch_size, drop_remainder, None, None, None, pad_info or {})

    def shuffle(self, buffer_size: int) -> Dataset:
        """Return a dataset that draws each row at random from a buffer of `buffer_size` rows.

        Raises:
            ValueError: `buffer_size` is below 2.
        """
        if isinstance(buffer_size, bool) or not isinstance(buffer_size, int) or buffer_size < 2:
            raise ArgumentValueError(f"shuffle: got buffer_size={buffer_size!r}; wanted 2 or more")
        return _Shuffle(self, buffer_size)

    def repeat(self, count: int | None = None) -> Dataset:
        """Repeat the rows `count` times; None or -1 leaves repetition to the number of epochs.

        Raises:
            ValueError: the count is 0 or below -1.
        """
        if count in (None, -1):
            count = 1
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ArgumentValueError(f"repeat: got count={count!r}; wanted -1, or 1 or more")
        return _Repeat(self, count)

    def map(
        self,
        operations: Operation | Sequence[Operation],
        input_columns: Columns = None,
        output_columns: Columns = None,
        num_parallel_workers: int | None = None,
        **kwargs: Any,
    ) -> Dataset:
        """Return a dataset that applies functions to columns of each row.

        Args:
            operations: a function of one array per input column, or a list of functions, each
                applied to the results of the one before it.
            input_columns: name, or list of names; by default the first column.
            output_columns: names of the results, if they differ.

        Raises:
            TypeError: an operation is not a function.
            ValueError: an unknown column; while reading: a number of results other than that of
                `output_columns`.
        """
        check_options("dataset.Dataset.map", num_parallel_workers=num_parallel_workers, **kwargs)
        return _Map(self, operations, input_columns, output_columns)

    def filter(
        self,
        predicate: Operation,
        input_columns: Columns = None,
        num_parallel_workers: int | None = None,
    ) -> Dataset:
        """Return a dataset of the rows for which `predicate` of the input columns is true."""
        check_options("dataset.Dataset.filter", num_parallel_workers=num_parallel_workers)
        return _Filter(self, predicate, _names(self, input_columns))

    def skip(self, count: int) -> Dataset:
        """Return a dataset without the first `count` rows."""
        return _Slice(self, count, None)

    def take(self, count: int = -1) -> Dataset:
        """Return a dataset of the first `count` rows; -1 keeps all rows."""
        return self if count == -1 else _Slice(self, 0, count)

    def zip(self, datasets: Datasets) -> Dataset:
        """Return a dataset that combines rows side by side, up to the shortest dataset's length."""
        others = datasets if isinstance(datasets, (tuple, list)) else (datasets,)
        return _Zip((self, *others))

    def concat(self, datasets: Datasets) -> Dataset:
        """Return a dataset with the rows of this dataset, then those of other datasets."""
        others = datasets if isinstance(datasets, (tuple, list)) else (datasets,)
        return _Concat((self, *others))

    __add__ = concat

    def project(self, columns: Columns) -> Dataset:
        """Return a dataset with only the listed columns, in the listed order."""
        names = _names(self, columns)
        return _Project(self, names, names)

    def rename(self, input_columns: Columns, output_columns: str | Sequence[str]) -> Dataset:
        """Return a dataset with columns `input_columns` renamed to `output_columns`."""
        old, new = _names(self, input_columns), _listed(output_columns)
        if len(old) != len(new):
            raise ArgumentValueError(f"rename: got {len(old)} columns and {len(new)} names")
        table = dict(_zip(old, new))
        return _Project(self, self._columns, [table.get(c, c) for c in self._columns])

    def split(self, sizes: Sequence[Any], randomize: bool = True) -> list[Dataset]:
        """Split the dataset's rows into several datasets of the given sizes.

        Args:
            sizes: numbers of rows, or fractions that sum to 1.
            randomize: shuffle the rows once before splitting.

        Raises:
            ValueError: the sizes do not add up.
        """
        n = self.get_dataset_size()
        if all(isinstance(s, float) for s in sizes):
            if abs(sum(sizes) - 1) > 1e-6:
                raise ArgumentValueError(f"split: got {sizes}; wanted shares that sum to 1")
            counts = [round(s * n) for s in sizes]
            counts[0] += n - sum(counts)
        else:
            counts = list(sizes)
        if sum(counts) != n or min(counts) < 1:
            raise ArgumentValueError(f"split: got {sizes} for {n} rows; wanted sizes that add up")
        order = config.random_numbers().permutation(n) if randomize else np.arange(n)
        edges = np.cumsum([0, *counts])
        return [_Pick(self, order[a:b].tolist()) for a, b in itertools.pairwise(edges)]

    def apply(self, apply_func: Callable[[Dataset], Dataset]) -> Dataset:
        """Return the dataset that the function `apply_func` makes from this dataset."""
        return apply_func(self)


def _listed(names: str | Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _names(dataset: Dataset, columns: Columns) -> list[str]:
    """Return a `columns` argument as a list of existing dataset columns; None means all columns."""
    own = dataset.get_col_names()
    if columns is None:
        return own
    found = _listed(columns)
    for c in found:
        if c not in own:
            raise ArgumentValueError(f"columns: got {c!r}; the dataset has {', '.join(own)}")
    return found


class _Batch(Dataset):
    """Dataset step that stacks rows into batches, padded to one shape if `pad` is set."""

    def __init__(
        self,
        parent: Dataset,
        size: BatchSize,
        drop: bool,
        function: Callable[..., Any] | None,
        inputs: Columns,
        outputs: Columns,
        pad: dict[str, Any] | None = None,
    ) -> None:
        if not callable(size) and (isinstance(size, bool) or not isinstance(size, int)):
            raise ArgumentError(f"batch: got batch_size={size!r}; wanted an int or a function")
        if not callable(size) and size < 1:
            raise ArgumentValueError(f"batch: got batch_size={size}; wanted 1 or more")
        self.batch_size, self.drop, self.function, self.pad = size, drop, function, pad
        self.inputs = _names(parent, inputs)
        outs = self.inputs if outputs is None else _listed(outputs)
        own = parent.get_col_names()
        columns = own
        if function is not None and outputs is not None:
            first = own.index(self.inputs[0])
            rest = [c for c in own if c not in self.inputs]
            columns = rest[:first] + outs + rest[first:]
        self.outputs = outs
        super().__init__(columns, (parent,))

    def _size(self) -> int | None:
        n = self._parents[0]._size()
        if n is None or callable(self.batch_size):
            return None
        return n // self.batch_size if self.drop else -(-n // self.batch_size)

    def get_batch_size(self) -> int:
        return 1 if callable(self.batch_size) else self.batch_size

    def _generate(self) -> Iterator[Row]:
        parent = self._parents[0]
        row_groups = getattr(parent, "row_groups", None)  # a source that gathers batches itself
        if (
            row_groups is not None
            and self.function is None
            and self.pad is None
            and not callable(self.batch_size)
        ):
            parent._epoch += 1
            yield from row_groups(self.batch_size, self.drop)
            return
        rows = parent.rows()
        for number in itertools.count():
            info = BatchInfo(number, self._epoch)
            size = self.batch_size(info) if callable(self.batch_size) else self.batch_size
            group = list(itertools.islice(rows, size))
            if not group or (self.drop and len(group) < size):
                return
            yield self._batched(group, info)

    def _batched(self, group: list[Row], info: BatchInfo) -> Row:
        """Return one batch: apply `per_batch_map` to its rows and stack each column."""
        own = self._parents[0].get_col_names()
        columns: dict[str, Any] = dict(_zip(own, [list(c) for c in _zip(*group)]))
        if self.function is not None:
            found = self.function(*[columns[c] for c in self.inputs], info)
            found = found if isinstance(found, tuple) else (found,)
            if len(found) != len(self.outputs):
                raise DatasetError(
                    f"batch: per_batch_map returned {len(found)} columns; wanted "
                    f"{len(self.outputs)}"
                )
            columns.update(_zip(self.outputs, found))
        return tuple(self._stacked(c, columns[c]) for c in self._columns)

    def _stacked(self, name: str, values: Array | Sequence[object]) -> Array:
        """Stack the values of a dataset column into one array, padded if `pad_info` asks for it."""
        arrays = list(values) if isinstance(values, np.ndarray) else [as_array(v) for v in values]
        if self.pad is not None and (not self.pad or name in self.pad):
            arrays = padded(arrays, *self.pad.get(name, (None, 0)))
        try:
            return np.stack(arrays)
        except ValueError:
            shapes = sorted({a.shape for a in arrays})
            raise BatchShapeError(
                f"batch: column {name!r} has rows of the shapes {shapes}; wanted one shape "
                f"(padded_batch pads them)"
            ) from None


class _Shuffle(Dataset):
    """Dataset step that draws rows at random from a buffer of rows."""

    def __init__(self, parent: Dataset, size: int) -> None:
        super().__init__(parent.get_col_names(), (parent,))
        self.buffer_size = size

    def _size(self) -> int | None:
        return self._parents[0]._size()

    def _generate(self) -> Iterator[Row]:
        random = config.random_numbers()
        rows = self._parents[0].rows()
        buffer = list(itertools.islice(rows, self.buffer_size))
        for row in rows:
            i = int(random.integers(len(buffer)))
            yield buffer[i]
            buffer[i] = row
        for i in random.permutation(len(buffer)):
            yield buffer[i]


class _Repeat(Dataset):
    """Dataset step that runs several passes over its parent dataset."""

    def __init__(self, parent: Dataset, count: int) -> None:
        super().__init__(parent.get_col_names(), (parent,))
        self.count = count

    def _size(self) -> int | None:
        n = self._parents[0]._size()
        return None if n is None else n * self.count

    def get_repeat_count(self) -> int:
        return self.count

    def _generate(self) -> Iterator[Row]:
        for _ in range(self.count):
            yield from self._parents[0].rows()


class _Map(Dataset):
    """Dataset step that applies functions to columns of each row."""

    def __init__(
        self,
        parent: Dataset,
        operations: Operation | Sequence[Operation],
        inputs: Columns,
        outputs: Columns,
    ) -> None:
        several = operations if isinstance(operations, (list, tuple)) else [operations]
        for f in several:
            if not callable(f):
                raise ArgumentError(
                    f"map: got {type(f).__name__} among the operations; wanted functions"
                )
        self.operations = list(several)
        own = parent.get_col_names()
        self.inputs = _names(parent, own[:1] if inputs is None else inputs)
        self.outputs = self.inputs if outputs is None else _listed(outputs)
        first = own.index(self.inputs[0])
        before = [c for c in own[:first] if c not in self.inputs]
        after = [c for c in own[first:] if c not in self.inputs]
        super().__init__(
            [*before, *self.outputs, *after] if outputs is not None else own, (parent,)
        )

    def _size(self) -> int | None:
        return self._parents[0]._size()

    def _generate(self) -> Iterator[Row]:
        own = self._parents[0].get_col_names()
        for row in self._parents[0].rows():
            columns = dict(_zip(own, row))
            values: tuple[Any, ...] = tuple(columns[c] for c in self.inputs)
            for f in self.operations:
                found = f(*values)
                values = found if isinstance(found, tuple) else (found,)
            if len(values) != len(self.outputs):
                raise DatasetError(
                    f"map: the operations returned {len(values)} columns; "
                    f"wanted {len(self.outputs)}: {', '.join(self.outputs)}"
                )
            columns.update(_zip(self.outputs, [as_array(v) for v in values]))
            yield tuple(columns[c] for c in self._columns)


class _Filter(Dataset):
    """Dataset step that keeps the rows that satisfy a predicate."""

    def __init__(self, parent: Dataset, predicate: Operation, inputs: list[str]) -> None:
        super().__init__(parent.get_col_names(), (parent,))
        self.predicate = predicate
        self._picks = [self._columns.index(c) for c in inputs]

    def _generate(self) -> Iterator[Row]:
        for row in self._parents[0].rows():
            if self.predicate(*[row[i] for i in self._picks]):
                yield row


class _Slice(Dataset):
    """Dataset step that keeps `count` rows from row number `start`."""

    def __init__(self, parent: Dataset, start: int, count: int | None) -> None:
        super().__init__(parent.get_col_names(), (parent,))
        for n in (start, count):
            if n is not None and (isinstance(n, bool) or not isinstance(n, int) or n < 0):
                raise ArgumentValueError(f"skip, take: got {n!r}; wanted an int of 0 or more")
        self.start, self.count = start, count

    def _size(self) -> int | None:
        n = self._parents[0]._size()
        if n is None:
            return None
        left = max(n - self.start, 0)
        return left if self.count is None else min(left, self.count)

    def _generate(self) -> Iterator[Row]:
        stop = None if self.count is None else self.start + self.count
        return itertools.islice(self._parents[0].rows(), self.start, stop)


class _Pick(Dataset):
    """Dataset step that yields the rows of its parent with the listed numbers.

    It keeps all rows in memory.
    """

    def __init__(self, parent: Dataset, numbers: list[int]) -> None:
        super().__init__(parent.get_col_names(), (parent,))
        self.numbers = numbers

    def _size(self) -> int | None:
        return len(self.numbers)

    def _generate(self) -> Iterator[Row]:
        wanted = set(self.numbers)
        kept = {i: row for i, row in enumerate(in_order(self._parents[0])) if i in wanted}
        return iter([kept[i] for i in self.numbers])


class _Zip(Dataset):
    """Dataset step that joins the rows of several datasets side by side."""

    def __init__(self, parents: Sequence[Dataset]) -> None:
        columns = [c for p in parents for c in p.get_col_names()]
        if len(set(columns)) != len(columns):
            raise ArgumentValueError(f"zip: got the columns {columns}; wanted no name twice")
        super().__init__(columns, parents)

    def _size(self) -> int | None:
        sizes = [p._size() for p in self._parents]
        known = [n for n in sizes if n is not None]
        return min(known) if len(known) == len(sizes) else None

    def _generate(self) -> Iterator[Row]:
        for parts in _zip(*[p.rows() for p in self._parents]):
            yield tuple(a for part in parts for a in part)


class _Concat(Dataset):
    """Dataset step that yields the rows of several datasets one after the other."""

    def __init__(self, parents: Sequence[Dataset]) -> None:
        for p in parents[1:]:
            if len(p.get_col_names()) != len(parents[0].get_col_names()):
                raise ArgumentValueError("concat: the datasets have different numbers of columns")
        super().__init__(parents[0].get_col_names(), parents)

    def _size(self) -> int | None:
        sizes = [p._size() for p in self._parents]
        known = [n for n in sizes if n is not None]
        return sum(known) if len(known) == len(sizes) else None

    def _generate(self) -> Iterator[Row]:
        for p in self._parents:
            yield from p.rows()


class _Project(Dataset):
    """Dataset step that selects, reorders and renames columns."""

    def __init__(self, parent: Dataset, old: list[str], new: list[str]) -> None:
        super().__init__(new, (parent,))
        own = parent.get_col_names()
        self._picks = [own.index(c) for c in old]

    def _size(self) -> int | None:
        return self._parents[0]._size()

    def _generate(self) -> Iterator[Row]:
        for row in self._parents[0].rows():
            yield tuple(row[i] for i in self._picks)


def zip(datasets: Iterable[Dataset]) -> Dataset:
    """Combine the rows of datasets side by side (`mindspore.dataset.zip`).

    Raises:
        ValueError: two columns have the same name.
    """
    return _Zip(tuple(datasets))
