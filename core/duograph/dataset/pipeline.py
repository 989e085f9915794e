"""The base class `Dataset` of all sources and steps of data pipelines.

Its methods look up the steps by name in `STEPS`, where `steps`, `batching` and others register
them, so that those modules can import this one. A row is computed only when it is requested. One
pass over all rows of a pipeline is an *epoch*.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np

from ..call_errors import explain_methods, explaining
from ..errors import ArgumentError, ArgumentValueError
from ..status_line import counted, status_line
from ..tracebacks import user_frame
from .places import Placed, naming_steps
from .rows import (
    BatchSize,
    Columns,
    DatasetError,
    Operation,
    Padding,
    Row,
    RowIterator,
    Value,
)

__all__ = ["Dataset", "STEPS", "listed", "names_of", "step", "zip"]

_zip = builtins.zip  # `zip` below is MindSpore's

Datasets: TypeAlias = "Dataset | Sequence[Dataset]"
F = TypeVar("F", bound=Callable[..., object])

STEPS: dict[str, Callable[..., Any]] = {}  # what the methods of Dataset call, by their names


def step(name: str) -> Callable[[F], F]:
    """Return a decorator that registers a class or function as the step `name` in `STEPS`."""

    def register(made: F) -> F:
        STEPS[name] = made
        return made

    return register


@explaining
class Dataset(Placed):
    """Base class of datasets (`mindspore.dataset.Dataset`).

    Subclasses are sources and steps; methods such as `map` return a dataset with one more step.

    Examples:
        >>> from duograph import dataset
        >>> data = dataset.NumpySlicesDataset([1, 2, 3, 4], ["x"], shuffle=False)
        >>> data = data.map(lambda x: x * 10, "x").batch(2)
        >>> [row["x"].tolist() for row in data.create_dict_iterator(output_numpy=True)]
        [[10, 20], [30, 40]]
    """

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        explain_methods(cls, "__init__")

    def __init__(self, columns: Sequence[str], parents: Sequence[Dataset] = ()) -> None:
        self._columns = list(columns)
        self._parents = tuple(parents)
        self._epoch = 0
        self._start: int | None = None
        self.step_place = user_frame()

    # ---- implemented by each step ---------------------------------------------------------------

    def _generate(self) -> Iterator[Row]:
        """Yield the rows of one pass over the dataset; every subclass overrides this method."""
        raise NotImplementedError(f"{type(self).__name__}: has no rows")

    def _size(self) -> int | None:
        """Return the number of rows in a pass, or None if it is unknown before the pass."""
        return None

    def rows(self) -> Iterator[Row]:
        """Return an iterator over the dataset's rows, tuples of values, for one pass."""
        return self._generate()

    def _pipeline(self) -> list[Dataset]:
        """Return the datasets from which this one takes rows, and this one, each once."""
        found: dict[int, Dataset] = {}
        for p in self._parents:
            found.update((id(d), d) for d in p._pipeline())
        return [*found.values(), self]

    def _begin_epoch(self, number: int) -> None:
        """Begin epoch `number`, from 0, of an iterator, which may make several passes (repeat)."""
        self._epoch = number

    def _end_epoch(self) -> None:
        """End the epoch that `_begin_epoch` began; the iterator has read all its rows."""

    def picked(self, numbers: Sequence[int]) -> Iterator[Row]:
        """Yield the rows with the given numbers, in the given order.

        By default, the numbers count the rows of a new pass from 0, in the order of this pass, and
        the picked rows are all kept in memory. A source that can read a row by its number does so;
        its numbers are those before any shuffling.

        Raises:
            KeyError: by default: the pass has no row with this number.
        """
        wanted = set(numbers)
        kept = {i: row for i, row in enumerate(self.rows()) if i in wanted}
        for i in numbers:
            yield kept[i]

    # ---- reading --------------------------------------------------------------------------------

    def create_tuple_iterator(
        self,
        columns: Sequence[str] | None = None,
        num_epochs: int = -1,
        output_numpy: bool = False,
        do_copy: bool = False,
    ) -> RowIterator:
        """Return an iterator over rows as lists of Tensors, or of arrays with `output_numpy`.

        A list has the values of `columns` in this order; None means all columns. `num_epochs` is
        the number of passes that may be made, -1 for any number. Arrays may share the memory of the
        source, unless `do_copy` is True.

        Raises:
            ValueError: an unknown column, or `num_epochs` is 0 or below -1.
        """
        return RowIterator(self, columns, num_epochs, output_numpy, False, do_copy)

    def create_dict_iterator(
        self, num_epochs: int = -1, output_numpy: bool = False, do_copy: bool = False
    ) -> RowIterator:
        """Return an iterator over rows as dictionaries of Tensors, or of arrays.

        The keys are the names of the columns; with `output_numpy` the values are arrays.
        `num_epochs` is the number of passes that may be made, -1 for any number. Arrays may share
        the memory of the source, unless `do_copy` is True.
        """
        return RowIterator(self, None, num_epochs, output_numpy, True, do_copy)

    def __iter__(self) -> RowIterator:
        return self.create_tuple_iterator(num_epochs=1)

    def __len__(self) -> int:
        return self.get_dataset_size()

    @naming_steps
    def get_dataset_size(self) -> int:
        """Return the number of rows (or batches) in a pass over the dataset.

        If the number is unknown, the rows are counted in a pass.
        """
        known = self._size()
        if known is not None:
            return known
        with status_line("counting the rows of a dataset", None, "rows", False) as line:
            return sum(1 for _ in counted(self.rows_without_callbacks(), line))

    def rows_without_callbacks(self) -> Iterator[Row]:
        """Yield all rows once without calling any callback, for example to count the rows.

        The user's iterators are not affected, even if one is in the middle of an epoch.
        """
        try:
            for each in self._pipeline():
                each._mute(True)
            yield from self.rows()
        finally:
            for each in self._pipeline():
                each._mute(False)

    def _mute(self, muted: bool) -> None:
        """Set whether later passes leave out the callbacks of this step, if it has any."""

    def get_col_names(self) -> list[str]:
        """Return the names of the dataset's columns."""
        return list(self._columns)

    def get_batch_size(self) -> int:
        """Return the number of rows in a batch of the dataset; 1 without `batch`."""
        return self._parents[0].get_batch_size() if self._parents else 1

    def get_repeat_count(self) -> int:
        """Return how many times `repeat` repeats the dataset; 1 without `repeat`."""
        return self._parents[0].get_repeat_count() if self._parents else 1

    def get_class_indexing(self) -> Mapping[str, int | list[int]]:
        """Return the labels of the source's classes by name; empty if the source has no names."""
        return self._parents[0].get_class_indexing() if self._parents else {}

    @naming_steps
    def output_shapes(self, estimate: bool = False) -> list[list[int | None]]:
        """Return the shape of every column in the dataset's first row.

        The shape of a column whose value is a dictionary is given as [0]. With `estimate`, a whole
        pass is read, and a size that differs between rows becomes None.

        Raises:
            RuntimeError: with `estimate`: a column has different numbers of axes in two rows.
        """
        rows = self.rows()
        shapes: list[list[int | None]] = [_shape(a) for a in next(rows)]
        for row in rows if estimate else ():
            for shape, value in _zip(shapes, row):
                other = _shape(value)
                if len(shape) != len(other):
                    raise DatasetError(
                        f"output_shapes: a column has rows of {len(shape)} and {len(other)} axes; "
                        "wanted one number"
                    )
                shape[:] = [n if n == m else None for n, m in _zip(shape, other)]
        return shapes

    @naming_steps
    def output_types(self) -> list[np.dtype[np.generic]]:
        """Return the NumPy dtype of every column of the dataset's first row."""
        return [np.dtype(object) if isinstance(a, dict) else a.dtype for a in next(self.rows())]

    def num_classes(self) -> int | None:
        """Return the dataset's number of classes, or None if the source does not know it."""
        return self._parents[0].num_classes() if self._parents else None

    def is_shuffled(self) -> bool:
        """Return whether the source or a step shuffles the rows."""
        return any(p.is_shuffled() for p in self._parents)

    def is_sharded(self) -> bool:
        """Return whether the source reads only one of several shards of its rows."""
        return any(p.is_sharded() for p in self._parents)

    def reset(self) -> None:
        """Do nothing.

        Accepted for MindSpore scripts, since every pass starts at the first row anyway.
        """

    def set_init_step(self, init_step: int) -> None:
        """Record the step from which training continues after a failure; see `get_init_step`.

        Raises:
            ValueError: the step is below 0.
        """
        if isinstance(init_step, bool) or not isinstance(init_step, int) or init_step < 0:
            raise ArgumentValueError(f"set_init_step: got {init_step!r}; wanted 0 or more")
        self._start = init_step

    def get_init_step(self) -> int:
        """Return the step from which training continues; 0 unless `set_init_step` has set it."""
        if self._start is not None:
            return self._start
        return self._parents[0].get_init_step() if self._parents else 0

    # ---- steps ----------------------------------------------------------------------------------

    def batch(
        self,
        batch_size: BatchSize,
        drop_remainder: bool = False,
        num_parallel_workers: int | None = None,
        **kwargs: object,
    ) -> Dataset:
        """Return a dataset that stacks consecutive rows into batches.

        Args:
            batch_size: number of rows in a batch, or a function that returns it for a BatchInfo.
            drop_remainder: omit a last batch that is smaller.
            num_parallel_workers: number of workers that run `per_batch_map`.
            **kwargs: ``per_batch_map``, a function of the lists of the ``input_columns`` (default:
                all) and BatchInfo; ``output_columns``, the names of its results;
                ``python_multiprocessing``, whether the workers are processes.

        Raises:
            ValueError: `batch_size` is below 1; while reading: rows differ in shape.
        """
        return STEPS["batch"](self, batch_size, drop_remainder, num_parallel_workers, **kwargs)

    def padded_batch(
        self,
        batch_size: BatchSize,
        drop_remainder: bool = False,
        num_parallel_workers: int | None = None,
        pad_info: Mapping[str, Padding] | None = None,
    ) -> Dataset:
        """Return a dataset that pads rows to the same shape and stacks the rows into batches.

        `pad_info` maps columns to (shape, padding value); None in a shape means the largest size in
        the batch. The other arguments are those of `batch`.
        """
        return STEPS["padded_batch"](
            self, batch_size, drop_remainder, num_parallel_workers, pad_info
        )

    def bucket_batch_by_length(
        self,
        column_names: Sequence[str],
        bucket_boundaries: Sequence[int],
        bucket_batch_sizes: Sequence[int],
        element_length_function: Operation | None = None,
        pad_info: Mapping[str, Padding] | None = None,
        pad_to_bucket_boundary: bool = False,
        drop_remainder: bool = False,
    ) -> Dataset:
        """Return a dataset of batches of rows of similar length, padded to the same shape.

        Args:
            column_names: the columns from which the length of a row is computed; a single one
                unless `element_length_function` is given.
            bucket_boundaries: ascending lengths; bucket i takes the lengths from boundary i - 1 up
                to, but not including, boundary i.
            bucket_batch_sizes: the batch size of each bucket; there is one bucket more than
                boundaries.
            element_length_function: function of the columns that returns the length; by default the
                size of the first axis.
            pad_info: see `padded_batch`.
            pad_to_bucket_boundary: pad to the largest length of the bucket; a row of the last
                bucket, which has none, then raises an error.
            drop_remainder: omit the batches that are not full at the end of a pass.

        Raises:
            ValueError: the boundaries do not ascend, or there is not one size for each bucket.
        """
        return STEPS["bucket_batch_by_length"](
            self, column_names, bucket_boundaries, bucket_batch_sizes, element_length_function,
            pad_info, pad_to_bucket_boundary, drop_remainder,
        )  # fmt: skip

    def shuffle(self, buffer_size: int) -> Dataset:
        """Return a dataset that takes each row at random from a buffer of `buffer_size` rows.

        Raises:
            ValueError: `buffer_size` is below 2.
        """
        return STEPS["shuffle"](self, buffer_size)

    def repeat(self, count: int | None = None) -> Dataset:
        """Return a dataset that yields all rows `count` times; None and -1 mean once.

        Raises:
            ValueError: `count` is 0 or below -1.
        """
        return STEPS["repeat"](self, count)

    def map(
        self,
        operations: Operation | Sequence[Operation],
        input_columns: Columns = None,
        output_columns: Columns = None,
        num_parallel_workers: int | None = None,
        **kwargs: object,
    ) -> Dataset:
        """Return a dataset that applies functions to columns of each row.

        Args:
            operations: a function of one array per input column, or a list of functions, each
                applied to the results of the one before it.
            input_columns: name, or list of names; by default the first column.
            output_columns: names of the resulting columns; by default those of the inputs. If there
                are as many results as inputs, they take the places of the inputs; otherwise they
                come first.
            num_parallel_workers: number of workers that run the operations; by default that of
                `config`.
            **kwargs: ``python_multiprocessing``, whether the workers are processes instead of
                threads; ``callbacks``, DSCallbacks.

        Raises:
            TypeError: an operation is not a function.
            ValueError: a column is unknown; while reading: the number of results differs from that
                of `output_columns`.
        """
        return STEPS["map"](
            self, operations, input_columns, output_columns, num_parallel_workers, **kwargs
        )

    def filter(
        self,
        predicate: Operation,
        input_columns: Columns = None,
        num_parallel_workers: int | None = None,
    ) -> Dataset:
        """Return a dataset of the rows for which `predicate` of the input columns returns true."""
        return STEPS["filter"](self, predicate, input_columns, num_parallel_workers)

    def flat_map(self, func: Callable[..., Dataset]) -> Dataset:
        """Return the concatenation of the datasets that `func` returns for the columns of each row.

        Raises:
            TypeError: `func` is not a function, or returns something other than a dataset.
        """
        if not callable(func):
            raise ArgumentError(f"flat_map: got {type(func).__name__}; wanted a function")
        made = [func(*row) for row in self.create_tuple_iterator(num_epochs=1, output_numpy=True)]
        for found in made:
            if not isinstance(found, Dataset):
                raise ArgumentError(
                    f"flat_map: the function returned {type(found).__name__}; wanted a Dataset"
                )
        if not made:
            raise ArgumentValueError("flat_map: the dataset has no rows; wanted at least one")
        return made[0].concat(made[1:]) if len(made) > 1 else made[0]

    def skip(self, count: int) -> Dataset:
        """Return a dataset without the first `count` rows."""
        return STEPS["skip"](self, count)

    def take(self, count: int = -1) -> Dataset:
        """Return a dataset of the first `count` rows; -1 keeps all rows."""
        return self if count == -1 else STEPS["take"](self, count)

    def zip(self, datasets: Datasets) -> Dataset:
        """Return a dataset that combines rows side by side, up to the shortest dataset's length."""
        others = datasets if isinstance(datasets, (tuple, list)) else (datasets,)
        return STEPS["zip"]((self, *others))

    def concat(self, datasets: Datasets) -> Dataset:
        """Return a dataset with the rows of this dataset, then those of other datasets."""
        others = datasets if isinstance(datasets, (tuple, list)) else (datasets,)
        return STEPS["concat"]([self, *others])

    def __add__(self, datasets: Datasets) -> Dataset:
        return self.concat(datasets)

    def project(self, columns: Columns) -> Dataset:
        """Return a dataset with only the listed columns, in the listed order."""
        return STEPS["project"](self, columns)

    def rename(self, input_columns: Columns, output_columns: str | Sequence[str]) -> Dataset:
        """Return a dataset with columns `input_columns` renamed to `output_columns`."""
        return STEPS["rename"](self, input_columns, output_columns)

    def split(
        self, sizes: Sequence[int] | Sequence[float], randomize: bool = True
    ) -> list[Dataset]:
        """Split the dataset's rows into several datasets of the given sizes.

        Args:
            sizes: numbers of rows, or fractions (floats) that sum to 1.
            randomize: shuffle the rows once before splitting; each part is then shuffled again in
                every pass after the first.

        The parts of a source have no row in common, even if it shuffles. The parts of a pipeline
        that shuffles are not the same in every pass; a warning says so.

        Raises:
            ValueError: the sizes do not sum to the number of rows, or to 1.
            RuntimeError: the dataset is a shard.
        """
        return STEPS["split"](self, sizes, randomize)

    def _picks_before_shuffling(self) -> bool:
        """Return whether the numbers of `picked` count the rows before any shuffling."""
        return False

    def _numbers(self) -> Sequence[int]:
        """Return the numbers, for `picked`, of the rows that `split` divides into parts.

        They are in the order of a pass without shuffling.
        """
        return range(self.get_dataset_size())

    def apply(self, apply_func: Callable[[Dataset], Dataset]) -> Dataset:
        """Return the dataset that the function `apply_func` returns for this dataset.

        Raises:
            TypeError: `apply_func` is not a function, or returns something other than a dataset.
        """
        if not callable(apply_func):
            raise ArgumentError(f"apply: got {type(apply_func).__name__}; wanted a function")
        found = apply_func(self)
        if not isinstance(found, Dataset):
            raise ArgumentError(f"apply: the function returned {type(found).__name__}; wanted a "
                                "Dataset")  # fmt: skip
        return found

    def sync_wait(
        self, condition_name: str, num_batch: int = 1, callback: Operation | None = None
    ) -> Dataset:
        """Return a dataset that lets `num_batch` batches pass, then waits for `sync_update`.

        A batch is that of a later `batch` step of the pipeline; without such a step, it is a row.

        Args:
            condition_name: the name to be passed to `sync_update`.
            num_batch: number of batches that pass before the first update.
            callback: function that is called with the ``data`` of each update.

        Raises:
            ValueError: `num_batch` is below 1, or the pipeline already has a `sync_wait` of this
                name.
            RuntimeError: while reading: there was no update within `config.get_callback_timeout`
                seconds.
        """
        return STEPS["sync_wait"](self, condition_name, num_batch, callback)

    def sync_update(
        self, condition_name: str, num_batch: int | None = None, data: object = None
    ) -> None:
        """Call the callback of a `sync_wait` with `data`, then let `num_batch` more batches pass.

        `num_batch` None means as many batches as the `sync_wait` lets pass at first.

        Raises:
            RuntimeError: the pipeline has no `sync_wait` of this name, or `num_batch` is below 1.
        """
        found = self.get_sync_notifiers()
        if condition_name not in found:
            raise DatasetError(
                f"sync_update: got condition_name={condition_name!r}; the pipeline waits for "
                f"{sorted(found) or 'nothing'}"
            )
        found[condition_name](num_batch, data)

    def get_sync_notifiers(self) -> dict[str, Callable[..., None]]:
        """Return a dictionary from the condition names of the pipeline's `sync_wait` to functions.

        A function takes (num_batch, data), with the effect of `sync_update` for this name.
        """
        return {k: f for p in self._parents for k, f in p.get_sync_notifiers().items()}

    def _in_batches(self, size: int) -> None:
        """Tell each earlier `sync_wait` of the pipeline that one batch consists of `size` rows."""
        for p in self._parents:
            p._in_batches(size)

    def disable_sync(self) -> None:
        """Let all rows pass every `sync_wait` of the pipeline from now on."""
        for p in self._parents:
            p.disable_sync()

    @naming_steps
    def save(self, file_name: str, num_files: int = 1, file_type: str = "mindrecord") -> None:
        """Write the rows of one pass into files.

        Args:
            file_name: path of the file; with several files, a number is appended to it.
            num_files: number of files among which the rows are distributed.
            file_type: ``"mindrecord"`` or ``"tfrecord"``.

        Raises:
            ValueError: `file_type` is unknown, or `num_files` is below 1.
            RuntimeError: the format does not support the dtype of a column.
        """
        STEPS["save"](self, file_name, num_files, file_type)


def _shape(value: Value) -> list[int | None]:
    """Return the shape of a column's value, an array, as a list; [0] if it is a dictionary."""
    return [0] if isinstance(value, dict) else list(value.shape)


def listed(names: str | Sequence[str]) -> list[str]:
    """Return a name, or a sequence of names, as a list."""
    return [names] if isinstance(names, str) else list(names)


def names_of(dataset: Dataset, columns: Columns) -> list[str]:
    """Return an argument that names columns of a dataset as a list; None means all columns.

    Raises:
        ArgumentValueError: the dataset has no column of such a name.
    """
    own = dataset.get_col_names()
    if columns is None:
        return own
    found = listed(columns)
    for c in found:
        if c not in own:
            raise ArgumentValueError(f"columns: got {c!r}; the dataset has {', '.join(own)}")
    return found


@explaining
def zip(datasets: Iterable[Dataset]) -> Dataset:
    """Combine the rows of datasets side by side (`mindspore.dataset.zip`).

    Raises:
        ValueError: two columns have the same name.

    Examples:
        >>> from duograph import dataset
        >>> a = dataset.NumpySlicesDataset([1, 2], ["a"], shuffle=False)
        >>> b = dataset.NumpySlicesDataset([3, 4], ["b"], shuffle=False)
        >>> [row["a"] + row["b"] for row in dataset.zip((a, b)).create_dict_iterator(1, True)]
        [np.int64(4), np.int64(6)]
    """
    return STEPS["zip"](tuple(datasets))
