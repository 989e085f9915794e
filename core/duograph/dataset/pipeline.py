"""Dataset: a chain of steps over rows, each a generator over the one before it.

A row is a tuple of NumPy arrays, one per column. A pass over the chain is an *epoch*; nothing is
computed before a row is asked for.
"""

from __future__ import annotations

import builtins
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, ArgumentValueError, DuographError, ShapeError
from ..tensor import Tensor
from . import config

__all__ = ["Dataset", "zip", "BatchInfo", "DatasetError"]

Row = tuple[Any, ...]
_zip = builtins.zip  # `zip` below is MindSpore's


class DatasetError(DuographError, RuntimeError):
    """Something went wrong while rows were made."""


def as_array(value: Any) -> Any:
    """What a source or a transform returned, as a NumPy array."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, Tensor):
        return value.asnumpy()
    return np.array(value)


class BatchInfo:
    """What `per_batch_map` gets last: the number of the batch and of the epoch."""

    def __init__(self, batch: int, epoch: int) -> None:
        self._batch, self._epoch = batch, epoch

    def get_batch_num(self) -> int:
        """Number of the batch in its epoch, from 0."""
        return self._batch

    def get_epoch_num(self) -> int:
        """Number of the epoch, from 0."""
        return self._epoch


class _Iterator:
    """Rows as tuples or dictionaries of Tensors (or arrays); every `for` over it is an epoch."""

    def __init__(
        self,
        dataset: Dataset,
        columns: Sequence[str] | None,
        epochs: int,
        as_numpy: bool,
        as_dict: bool,
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
        self._as_numpy, self._as_dict = as_numpy, as_dict
        self._rows: Iterator[Row] | None = None

    def __iter__(self) -> _Iterator:
        self._rows = None
        return self

    def __next__(self) -> Any:
        if self._rows is None:
            if self._left == 0:
                raise StopIteration
            self._left -= self._left > 0
            self._rows = self.dataset.rows()
        row = next(self._rows)
        items = [self._out(row[i]) for i in self._picks]
        return dict(_zip(self._columns, items)) if self._as_dict else items

    def _out(self, array: Any) -> Any:
        if self._as_numpy or array.dtype.kind in "SUO":
            return array
        return Tensor(array)

    def get_next(self) -> Any:
        """The next row."""
        return next(self)

    def release(self) -> None:
        """Drop what is left."""
        self._left, self._rows = 0, iter(())


class Dataset:
    """Base class of datasets (`mindspore.dataset.Dataset`); made by its subclasses and by its own
    methods.

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

    # ---- what a step writes ---------------------------------------------------------------------

    def _generate(self) -> Iterator[Row]:
        raise NotImplementedError(f"{type(self).__name__}: has no rows")

    def _size(self) -> int | None:
        """Rows of a pass, or None when only counting can tell."""
        return None

    def rows(self) -> Iterator[Row]:
        """One pass over the rows, as tuples of NumPy arrays."""
        self._epoch += 1
        return self._generate()

    # ---- reading --------------------------------------------------------------------------------

    def create_tuple_iterator(
        self,
        columns: Any = None,
        num_epochs: int = -1,
        output_numpy: bool = False,
        do_copy: bool = False,
    ) -> _Iterator:
        """Rows as lists of Tensors, or of arrays with `output_numpy`.

        Raises:
            ValueError: an unknown column.
        """
        del do_copy
        return _Iterator(self, columns, num_epochs, output_numpy, False)

    def create_dict_iterator(
        self, num_epochs: int = -1, output_numpy: bool = False, do_copy: bool = False
    ) -> _Iterator:
        """Rows as dictionaries from column names to Tensors, or arrays with `output_numpy`."""
        del do_copy
        return _Iterator(self, None, num_epochs, output_numpy, True)

    def __iter__(self) -> _Iterator:
        return self.create_tuple_iterator(num_epochs=1)

    def __len__(self) -> int:
        return self.get_dataset_size()

    def get_dataset_size(self) -> int:
        """Rows (batches, after `batch`) of a pass; counted by running one when nothing else tells."""
        known = self._size()
        return sum(1 for _ in self.rows()) if known is None else known

    def get_col_names(self) -> list[str]:
        """Names of the columns."""
        return list(self._columns)

    def get_batch_size(self) -> int:
        """Rows of a batch; 1 without `batch`."""
        return self._parents[0].get_batch_size() if self._parents else 1

    def get_repeat_count(self) -> int:
        """How often `repeat` repeats."""
        return self._parents[0].get_repeat_count() if self._parents else 1

    def output_shapes(self, estimate: bool = False) -> list[list[int]]:
        """Shape of every column of the first row."""
        del estimate
        return [list(a.shape) for a in next(self.rows())]

    def output_types(self) -> list[Any]:
        """NumPy dtype of every column of the first row."""
        return [a.dtype for a in next(self.rows())]

    def num_classes(self) -> int | None:
        """Number of classes, when the source knows."""
        return self._parents[0].num_classes() if self._parents else None

    def reset(self) -> None:
        """Accepted: every pass starts anew."""

    # ---- steps ----------------------------------------------------------------------------------

    def batch(
        self,
        batch_size: Any,
        drop_remainder: bool = False,
        num_parallel_workers: int | None = None,
        per_batch_map: Callable[..., Any] | None = None,
        input_columns: Any = None,
        output_columns: Any = None,
        **kwargs: Any,
    ) -> Dataset:
        """Stack rows.

        Args:
            batch_size: rows of a batch, or a function from BatchInfo to it.
            drop_remainder: leave out a last, smaller batch.
            per_batch_map: function of the lists of the `input_columns` and BatchInfo.
            output_columns: names of what it returns.

        Raises:
            ValueError: `batch_size` below 1; while reading: rows of different shapes.
        """
        del num_parallel_workers, kwargs
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
        """Pad and stack rows; `pad_info` maps columns to (shape, value), None in a shape is the
        longest there is.
        """
        del num_parallel_workers
        return _Batch(self, batch_size, drop_remainder, None, None, None, pad_info or {})

    def shuffle(self, buffer_size: int) -> Dataset:
        """Draw each row from the next `buffer_size` ones.

        Raises:
            ValueError: `buffer_size` below 2.
        """
        if isinstance(buffer_size, bool) or not isinstance(buffer_size, int) or buffer_size < 2:
            raise ArgumentValueError(f"shuffle: got buffer_size={buffer_size!r}; wanted 2 or more")
        return _Shuffle(self, buffer_size)

    def repeat(self, count: int | None = None) -> Dataset:
        """Run through the rows `count` times; None or -1 once more for every epoch asked for.

        Raises:
            ValueError: a count of 0 or below -1.
        """
        if count in (None, -1):
            count = 1
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ArgumentValueError(f"repeat: got count={count!r}; wanted -1, or 1 or more")
        return _Repeat(self, count)

    def map(
        self,
        operations: Any,
        input_columns: Any = None,
        output_columns: Any = None,
        num_parallel_workers: int | None = None,
        **kwargs: Any,
    ) -> Dataset:
        """Apply functions to columns.

        Args:
            operations: a function of one array per input column, or a list of them, each on what
                the last returned.
            input_columns: name, or list of names; the first columns, as many as the function takes,
                by default.
            output_columns: names of what comes out, when they differ.

        Raises:
            TypeError: no functions.
            ValueError: unknown columns; while reading: another number of results than
                `output_columns`.
        """
        del num_parallel_workers, kwargs
        return _Map(self, operations, input_columns, output_columns)

    def filter(
        self,
        predicate: Callable[..., Any],
        input_columns: Any = None,
        num_parallel_workers: int | None = None,
    ) -> Dataset:
        """Keep the rows for which `predicate` of the input columns is true."""
        del num_parallel_workers
        return _Filter(self, predicate, _names(self, input_columns))

    def skip(self, count: int) -> Dataset:
        """Leave out the first rows."""
        return _Slice(self, count, None)

    def take(self, count: int = -1) -> Dataset:
        """Keep the first rows; -1 keeps all."""
        return self if count == -1 else _Slice(self, 0, count)

    def zip(self, datasets: Any) -> Dataset:
        """Rows side by side; as many as the shortest dataset has."""
        others = datasets if isinstance(datasets, (tuple, list)) else (datasets,)
        return _Zip((self, *others))

    def concat(self, datasets: Any) -> Dataset:
        """Rows one after the other."""
        others = datasets if isinstance(datasets, (tuple, list)) else (datasets,)
        return _Concat((self, *others))

    __add__ = concat

    def project(self, columns: Any) -> Dataset:
        """Keep these columns, in this order."""
        names = _names(self, columns)
        return _Project(self, names, names)

    def rename(self, input_columns: Any, output_columns: Any) -> Dataset:
        """Rename columns."""
        old, new = _names(self, input_columns), _listed(output_columns)
        if len(old) != len(new):
            raise ArgumentValueError(f"rename: got {len(old)} columns and {len(new)} names")
        table = dict(_zip(old, new))
        return _Project(self, self._columns, [table.get(c, c) for c in self._columns])

    def split(self, sizes: Sequence[Any], randomize: bool = True) -> list[Dataset]:
        """Parts of given sizes: counts, or shares that sum to 1; `randomize` shuffles first, once.

        Raises:
            ValueError: sizes that do not add up.
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
        """What `apply_func` makes of this dataset."""
        return apply_func(self)


def _listed(names: Any) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _names(dataset: Dataset, columns: Any) -> list[str]:
    """Columns as a checked list; all when None."""
    own = dataset.get_col_names()
    if columns is None:
        return own
    found = _listed(columns)
    for c in found:
        if c not in own:
            raise ArgumentValueError(f"columns: got {c!r}; the dataset has {', '.join(own)}")
    return found


class _Batch(Dataset):
    def __init__(
        self,
        parent: Dataset,
        size: Any,
        drop: bool,
        function: Any,
        inputs: Any,
        outputs: Any,
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
        whole = getattr(parent, "row_groups", None)
        if (
            whole is not None
            and self.function is None
            and self.pad is None
            and not callable(self.batch_size)
        ):
            parent._epoch += 1
            yield from whole(self.batch_size, self.drop)
            return
        rows = parent.rows()
        for number in itertools.count():
            info = BatchInfo(number, self._epoch)
            size = self.batch_size(info) if callable(self.batch_size) else self.batch_size
            group = list(itertools.islice(rows, size))
            if not group or (self.drop and len(group) < size):
                return
            yield self._joined(group, info)

    def _joined(self, group: list[Row], info: BatchInfo) -> Row:
        own = self._parents[0].get_col_names()
        columns: dict[str, Any] = dict(_zip(own, [list(c) for c in _zip(*group)]))
        if self.function is not None:
            found = self.function(*[columns[c] for c in self.inputs], info)
            found = found if isinstance(found, tuple) else (found,)
            if len(found) != len(self.outputs):
                raise DatasetError(
                    f"batch: per_batch_map returned {len(found)} columns; wanted {len(self.outputs)}"
                )
            columns.update(_zip(self.outputs, found))
        return tuple(self._stacked(c, columns[c]) for c in self._columns)

    def _stacked(self, name: str, values: Any) -> Any:
        arrays: Any = values if isinstance(values, np.ndarray) else [as_array(v) for v in values]
        if self.pad is not None and (not self.pad or name in self.pad):
            arrays = _padded(arrays, *self.pad.get(name, (None, 0)))
        try:
            return np.stack(arrays)
        except ValueError:
            shapes = sorted({a.shape for a in arrays})
            raise _BadRows(
                f"batch: column {name!r} has rows of the shapes {shapes}; wanted one shape "
                f"(padded_batch pads them)"
            ) from None


class _BadRows(DatasetError, ShapeError):
    """Rows of different shapes in one batch."""


def _padded(arrays: Sequence[Any], shape: Any, value: Any) -> list[Any]:
    largest = tuple(max(sizes) for sizes in _zip(*[a.shape for a in arrays]))
    if shape is not None:
        largest = tuple(big if n is None else n for n, big in _zip(shape, largest))
    out = []
    for a in arrays:
        made = np.full(largest, 0 if value is None else value, a.dtype)
        cut = tuple(slice(0, min(n, m)) for n, m in _zip(a.shape, largest))
        made[cut] = a[cut]
        out.append(made)
    return out


class _Shuffle(Dataset):
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
    def __init__(self, parent: Dataset, operations: Any, inputs: Any, outputs: Any) -> None:
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
    def __init__(self, parent: Dataset, predicate: Callable[..., Any], inputs: list[str]) -> None:
        super().__init__(parent.get_col_names(), (parent,))
        self.predicate = predicate
        self._picks = [self._columns.index(c) for c in inputs]

    def _generate(self) -> Iterator[Row]:
        for row in self._parents[0].rows():
            if self.predicate(*[row[i] for i in self._picks]):
                yield row


class _Slice(Dataset):
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
    """The rows of another dataset with these numbers, in this order; they are all kept."""

    def __init__(self, parent: Dataset, numbers: list[int]) -> None:
        super().__init__(parent.get_col_names(), (parent,))
        self.numbers = numbers

    def _size(self) -> int | None:
        return len(self.numbers)

    def _generate(self) -> Iterator[Row]:
        wanted = set(self.numbers)
        kept = {i: row for i, row in enumerate(_in_order(self._parents[0])) if i in wanted}
        return iter([kept[i] for i in self.numbers])


def _in_order(dataset: Dataset) -> Iterator[Row]:
    """A pass that does not shuffle at its source, so that parts of a split never overlap."""
    plain = getattr(dataset, "rows_in_order", None)
    return plain() if plain is not None else dataset.rows()


class _Zip(Dataset):
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
    """Datasets side by side (`mindspore.dataset.zip`).

    Raises:
        ValueError: a column name twice.
    """
    return _Zip(tuple(datasets))
