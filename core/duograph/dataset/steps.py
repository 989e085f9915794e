"""The steps of data pipelines that do not batch rows: map, filter, shuffle, repeat, zip and others.

`Dataset` finds them by name in `pipeline.STEPS`, where the decorator `step` registers them. A step
is a generator over the rows of its parents. It keeps no state between two passes, except for random
numbers and the counters of `sync_wait`.
"""

from __future__ import annotations

import builtins
import itertools
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from ..errors import ArgumentError, ArgumentValueError
from ..option_checks import check_options
from . import config
from .callbacks import CallbackRunner
from .pipeline import Dataset, listed, names_of, step
from .rows import Columns, DatasetError, Operation, Row, as_value, copied
from .samplers import Sampler, as_sampler, chosen
from .workers import in_order

if TYPE_CHECKING:
    from .callbacks import DSCallback
    from .source import SamplerLike

__all__ = [
    "ConcatDataset", "FilterDataset", "MapDataset", "ProjectDataset", "RenameDataset",
    "RepeatDataset", "ShuffleDataset", "SkipDataset", "SyncWaitDataset", "TakeDataset",
    "ZipDataset", "new_columns",
]  # fmt: skip

_zip = builtins.zip


def new_columns(own: list[str], inputs: list[str], outputs: list[str]) -> list[str]:
    """Return the column names after a step replaced the columns `inputs` by `outputs`.

    If there are as many outputs as inputs, they take the places of the inputs; otherwise they come
    first.

    Raises:
        ArgumentValueError: two columns would have the same name.
    """
    if len(inputs) == len(outputs):
        table = dict(_zip(inputs, outputs))
        found = [table.get(c, c) for c in own]
    else:
        found = [*outputs, *[c for c in own if c not in inputs]]
    if len(set(found)) != len(found):
        raise ArgumentValueError(f"output_columns: got {outputs}; a column of {found} stands twice")
    return found


@step("shuffle")
class ShuffleDataset(Dataset):
    """The step of `Dataset.shuffle`, which takes rows at random from a buffer of rows."""

    def __init__(self, input_dataset: Dataset, buffer_size: int) -> None:
        if isinstance(buffer_size, bool) or not isinstance(buffer_size, int) or buffer_size < 2:
            raise ArgumentValueError(f"shuffle: got buffer_size={buffer_size!r}; wanted 2 or more")
        super().__init__(input_dataset.get_col_names(), (input_dataset,))
        self.buffer_size = buffer_size

    def _size(self) -> int | None:
        return self._parents[0]._size()

    def is_shuffled(self) -> bool:
        return True

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


@step("repeat")
class RepeatDataset(Dataset):
    """The step of `Dataset.repeat`, which runs several passes over its parent dataset."""

    def __init__(self, input_dataset: Dataset, count: int | None) -> None:
        if count in (None, -1):
            count = 1
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ArgumentValueError(f"repeat: got count={count!r}; wanted -1, or 1 or more")
        super().__init__(input_dataset.get_col_names(), (input_dataset,))
        self.count = count

    def _size(self) -> int | None:
        n = self._parents[0]._size()
        return None if n is None else n * self.count

    def get_repeat_count(self) -> int:
        return self.count

    def _generate(self) -> Iterator[Row]:
        for _ in range(self.count):
            yield from self._parents[0].rows()


class _Apply:
    """Callable that applies the operations of `map` to the input columns of one row.

    It returns the output columns. Any worker may call it, because it keeps no state.
    """

    def __init__(self, operations: list[Operation], outputs: int, picks: list[int]) -> None:
        self.operations, self.outputs, self.picks = operations, outputs, picks
        self.hooks = [getattr(h, "compute", h) for h in config.settings.hooks]

    def __call__(self, row: Row) -> Row:
        # Copies, because an operation may change its arrays, and the source has its rows for long.
        values = self._hooked(tuple(copied(row[i]) for i in self.picks))
        for f in self.operations:
            found = f(*values)
            values = self._hooked(found if isinstance(found, tuple) else (found,))
        if len(values) != self.outputs:
            raise DatasetError(
                f"map: the operations returned {len(values)} columns; wanted {self.outputs}"
            )
        return tuple(as_value(v) for v in values)

    def _hooked(self, values: tuple[object, ...]) -> tuple[object, ...]:
        """Pass the values through the debug hooks one after the other.

        Return the last hook's result.
        """
        for hook in self.hooks:
            found = hook(*values)
            values = found if isinstance(found, tuple) else (found,)
        return values


class _Guarded:
    """Callable that maps a row to the pair (row, result of `function` for it).

    With `catch`, an exception of the function is caught and becomes the result.
    """

    def __init__(self, function: Operation, catch: bool) -> None:
        self.function, self.catch = function, catch

    def __call__(self, row: Row) -> tuple[Row, Row | Exception]:
        if not self.catch:
            return row, cast("Row", self.function(row))
        try:
            return row, cast("Row", self.function(row))
        except Exception as error:  # noqa: BLE001 (the user asked to go on after any error)
            return row, error


class _RowByRow(Dataset):
    """Base class of steps that make a row of each row of their parent, in the same order.

    A subclass implements `_made`. Since the rows have the numbers of the parent's, `split` and
    `picked` ask the parent.
    """

    def _made(self, rows: Iterator[Row]) -> Iterator[Row]:
        """Yield the row that the step makes of each of the parent's rows."""
        raise NotImplementedError

    def _size(self) -> int | None:
        return self._parents[0]._size()

    def _generate(self) -> Iterator[Row]:
        return self._made(self._parents[0].rows())

    def picked(self, numbers: Sequence[int]) -> Iterator[Row]:
        return self._made(self._parents[0].picked(numbers))

    def _numbers(self) -> Sequence[int]:
        return self._parents[0]._numbers()

    def _picks_before_shuffling(self) -> bool:
        return self._parents[0]._picks_before_shuffling()


@step("map")
class MapDataset(_RowByRow):
    """The step of `Dataset.map`, which applies functions to columns of each row."""

    def __init__(
        self,
        input_dataset: Dataset,
        operations: Operation | Sequence[Operation],
        input_columns: Columns = None,
        output_columns: Columns = None,
        num_parallel_workers: int | None = None,
        python_multiprocessing: bool = False,
        callbacks: DSCallback | Sequence[DSCallback] | None = None,
        column_order: Columns = None,
        **other: object,
    ) -> None:
        check_options("dataset.Dataset.map", **other)
        several = operations if isinstance(operations, (list, tuple)) else [operations]
        if not several:
            raise ArgumentValueError("map: got no operations; wanted at least one")
        for f in several:
            if not callable(f):
                raise ArgumentError(
                    f"map: got {type(f).__name__} among the operations; wanted functions"
                )
        self.operations = list(several)
        own = input_dataset.get_col_names()
        self.inputs = names_of(input_dataset, own[:1] if input_columns is None else input_columns)
        self.outputs = self.inputs if output_columns is None else listed(output_columns)
        made = new_columns(own, self.inputs, self.outputs)
        order = made if column_order is None else listed(column_order)
        if not set(order) <= set(made):
            raise ArgumentValueError(f"column_order: got {order}; the columns are {made}")
        super().__init__(order, (input_dataset,))
        config.workers(num_parallel_workers)
        self.workers, self.processes = num_parallel_workers, bool(python_multiprocessing)
        self._callbacks = CallbackRunner(callbacks)

    def _begin_epoch(self, number: int) -> None:
        super()._begin_epoch(number)
        self._callbacks.begin_epoch(number)

    def _end_epoch(self) -> None:
        self._callbacks.end_epoch()

    def _mute(self, muted: bool) -> None:
        self._callbacks.muted = muted

    def _made(self, rows: Iterator[Row]) -> Iterator[Row]:
        own = self._parents[0].get_col_names()
        apply = _Apply(self.operations, len(self.outputs), [own.index(c) for c in self.inputs])
        mode = config.settings.errors
        guarded = _Guarded(apply, mode != config.ErrorSamplesMode.RETURN)
        rows = self._callbacks.before_steps(rows)
        results = in_order(guarded, rows, config.workers(self.workers), self.processes)
        kept: Row | None = None
        for row, found in self._callbacks.after_steps(results):
            if isinstance(found, Exception):
                if mode == config.ErrorSamplesMode.SKIP:
                    continue
                if kept is None:
                    raise found
                yield kept
                continue
            columns = dict(_zip(own, row))
            columns.update(_zip(self.outputs, found))
            kept = tuple(columns[c] for c in self._columns)
            yield kept


@step("filter")
class FilterDataset(Dataset):
    """The step of `Dataset.filter`, which keeps the rows that satisfy a predicate."""

    def __init__(
        self,
        input_dataset: Dataset,
        predicate: Operation,
        input_columns: Columns = None,
        num_parallel_workers: int | None = None,
    ) -> None:
        if not callable(predicate):
            raise ArgumentError(f"filter: got {type(predicate).__name__}; wanted a function")
        super().__init__(input_dataset.get_col_names(), (input_dataset,))
        config.workers(num_parallel_workers)
        self.predicate, self.workers = predicate, num_parallel_workers
        self._picks = [self._columns.index(c) for c in names_of(input_dataset, input_columns)]

    def _keeps(self, row: Row) -> tuple[bool, Row]:
        return bool(self.predicate(*[copied(row[i]) for i in self._picks])), row

    def _generate(self) -> Iterator[Row]:
        rows = self._parents[0].rows()
        for keep, row in in_order(self._keeps, rows, config.workers(self.workers), False):
            if keep:
                yield row


class _Slice(Dataset):
    """Dataset step that yields `count` rows of its parent, from row number `start` on.

    Row numbers start at 0. If `count` is None, all rows from `start` on are yielded.
    """

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


@step("skip")
class SkipDataset(_Slice):
    """The step of `Dataset.skip`, which omits the first rows."""

    def __init__(self, input_dataset: Dataset, count: int) -> None:
        super().__init__(input_dataset, count, None)


@step("take")
class TakeDataset(_Slice):
    """The step of `Dataset.take`, which keeps only the first rows."""

    def __init__(self, input_dataset: Dataset, count: int) -> None:
        super().__init__(input_dataset, 0, count)


@step("split")
def split(data: Dataset, sizes: Sequence[int] | Sequence[float], randomize: bool) -> list[Dataset]:
    """Return the parts of a `Dataset.split`, whose arguments and errors these are."""
    if data.is_sharded():
        raise DatasetError(
            "split: the dataset is one of several shards; split it before it is sharded, and give "
            "each part a sampler: part.use_sampler(DistributedSampler(...))"
        )
    rows = np.array(data._numbers(), np.int64)
    counts = _part_sizes(sizes, len(rows))
    if data.is_shuffled() and not data._picks_before_shuffling():
        warnings.warn(
            "split: the rows come in another order in every pass, so the parts share rows and lack "
            "others; split before shuffling, or create the source with shuffle=False",
            RuntimeWarning,
            stacklevel=4,
        )
    order = config.random_numbers().permutation(rows) if randomize else rows
    edges = np.cumsum([0, *counts])
    return [_Pick(data, order[a:b].tolist(), randomize) for a, b in itertools.pairwise(edges)]


def _part_sizes(sizes: Sequence[int] | Sequence[float], n: int) -> list[int]:
    """Return the sizes of the parts of `n` rows, for sizes or shares.

    Raises:
        ArgumentValueError: the sizes do not sum to `n`, or the shares to 1.
    """
    if all(isinstance(s, float) for s in sizes):
        if abs(sum(sizes) - 1) > 1e-6:
            raise ArgumentValueError(f"split: got {sizes}; wanted shares that sum to 1")
        counts = [round(s * n) for s in sizes]
        more = n - sum(counts)
        at = next((i for i, c in enumerate(counts) if c + more > 0), 0)
        counts[at] += more
    else:
        counts = list(cast("Sequence[int]", sizes))
    if sum(counts) != n or min(counts) < 1:
        raise ArgumentValueError(f"split: got {sizes} for {n} rows; wanted sizes that add up")
    return counts


class _Pick(Dataset):
    """A part of a `Dataset.split`: the rows of the parent with the given numbers.

    With `again`, every pass after the first yields the rows in a new random order, unless
    `use_sampler` has set a sampler.
    """

    def __init__(self, parent: Dataset, numbers: list[int], again: bool) -> None:
        super().__init__(parent.get_col_names(), (parent,))
        self.numbers, self.again = numbers, again
        self._passes = 0
        self._sampler: Sampler | None = None

    def use_sampler(self, new_sampler: SamplerLike) -> None:
        """Set a sampler that chooses among the rows of this part in all later passes."""
        self._sampler = as_sampler(new_sampler)

    def _size(self) -> int | None:
        n = len(self.numbers)
        return n if self._sampler is None else self._sampler.length(n)

    def is_shuffled(self) -> bool:
        return self.again

    def _generate(self) -> Iterator[Row]:
        numbers = self.numbers
        if self._sampler is not None:
            numbers = [numbers[i] for i in self._sampler.indices(len(numbers))]
        elif self.again and self._passes > 0:
            numbers = config.random_numbers().permutation(numbers).tolist()
        self._passes += 1
        return self._parents[0].picked(numbers)

    def picked(self, numbers: Sequence[int]) -> Iterator[Row]:
        return self._parents[0].picked([self.numbers[i] for i in numbers])

    def _numbers(self) -> Sequence[int]:
        return chosen(self._sampler, len(self.numbers))

    def _picks_before_shuffling(self) -> bool:
        return self._parents[0]._picks_before_shuffling()


@step("zip")
class ZipDataset(Dataset):
    """The step of `Dataset.zip`, which joins the rows of several datasets side by side."""

    def __init__(self, datasets: Sequence[Dataset]) -> None:
        for d in datasets:
            if not isinstance(d, Dataset):
                raise ArgumentError(f"zip: got {type(d).__name__}; wanted datasets")
        if len(datasets) < 2:
            raise ArgumentValueError(f"zip: got {len(datasets)} datasets; wanted two or more")
        columns = [c for p in datasets for c in p.get_col_names()]
        if len(set(columns)) != len(columns):
            raise ArgumentValueError(f"zip: got the columns {columns}; wanted no name twice")
        super().__init__(columns, datasets)

    def _size(self) -> int | None:
        sizes = [p._size() for p in self._parents]
        known = [n for n in sizes if n is not None]
        return min(known) if len(known) == len(sizes) else None

    def _generate(self) -> Iterator[Row]:
        for parts in _zip(*[p.rows() for p in self._parents]):
            yield tuple(a for part in parts for a in part)


@step("concat")
class ConcatDataset(Dataset):
    """The step of `Dataset.concat`, which yields the rows of one dataset after another."""

    def __init__(self, datasets: Sequence[Dataset]) -> None:
        for d in datasets:
            if not isinstance(d, Dataset):
                raise ArgumentError(f"concat: got {type(d).__name__}; wanted datasets")
        columns = datasets[0].get_col_names()
        for p in datasets[1:]:
            if p.get_col_names() != columns:
                raise ArgumentValueError(
                    f"concat: got datasets of the columns {columns} and {p.get_col_names()}; "
                    "wanted the same"
                )
        super().__init__(columns, datasets)
        self._sampler: Sampler | None = None

    def use_sampler(self, sampler: SamplerLike) -> None:
        """Set a sampler that chooses among the rows of all datasets together.

        Raises:
            TypeError: the argument is not a sampler.
        """
        self._sampler = as_sampler(sampler)

    def _size(self) -> int | None:
        sizes = [p._size() for p in self._parents]
        known = [n for n in sizes if n is not None]
        if len(known) != len(sizes):
            return None
        return sum(known) if self._sampler is None else self._sampler.length(sum(known))

    def _generate(self) -> Iterator[Row]:
        if self._sampler is None:
            for p in self._parents:
                yield from p.rows()
            return
        rows = [row for p in self._parents for row in p.rows()]
        for i in self._sampler.indices(len(rows)):
            yield rows[i]


@step("project")
class ProjectDataset(_RowByRow):
    """The step of `Dataset.project`, which selects and reorders columns."""

    def __init__(self, input_dataset: Dataset, columns: Columns) -> None:
        names = names_of(input_dataset, columns)
        if len(set(names)) != len(names):
            raise ArgumentValueError(f"project: got {names}; wanted no column twice")
        super().__init__(names, (input_dataset,))
        own = input_dataset.get_col_names()
        self._picks = [own.index(c) for c in names]

    def _made(self, rows: Iterator[Row]) -> Iterator[Row]:
        return (tuple(row[i] for i in self._picks) for row in rows)


@step("rename")
class RenameDataset(_RowByRow):
    """The step of `Dataset.rename`, which gives columns other names."""

    def __init__(
        self, input_dataset: Dataset, input_columns: Columns, output_columns: str | Sequence[str]
    ) -> None:
        old, new = names_of(input_dataset, input_columns), listed(output_columns)
        if len(old) != len(new):
            raise ArgumentValueError(
                f"rename: got the columns {', '.join(old)} and the names {', '.join(new)}; wanted "
                "one name for each column"
            )
        super().__init__(new_columns(input_dataset.get_col_names(), old, new), (input_dataset,))

    def _made(self, rows: Iterator[Row]) -> Iterator[Row]:
        return rows


@step("sync_wait")
class SyncWaitDataset(Dataset):
    """The step of `Dataset.sync_wait`, which lets rows pass only as `sync_update` permits."""

    def __init__(
        self,
        input_dataset: Dataset,
        condition_name: str,
        num_batch: int,
        callback: Operation | None = None,
    ) -> None:
        if isinstance(num_batch, bool) or not isinstance(num_batch, int) or num_batch < 1:
            raise ArgumentValueError(f"sync_wait: got num_batch={num_batch!r}; wanted 1 or more")
        if condition_name in input_dataset.get_sync_notifiers():
            raise ArgumentValueError(
                f"sync_wait: got condition_name={condition_name!r} twice in a pipeline"
            )
        if callback is not None and not callable(callback):
            raise ArgumentError(f"sync_wait: got {type(callback).__name__}; wanted a function")
        super().__init__(input_dataset.get_col_names(), (input_dataset,))
        self.condition_name, self.num_batch, self.callback = condition_name, num_batch, callback
        self._permitted: float = num_batch
        self._rows_of_batch = 1

    def _size(self) -> int | None:
        return self._parents[0]._size()

    def get_sync_notifiers(self) -> dict[str, Callable[..., None]]:
        return {**super().get_sync_notifiers(), self.condition_name: self._update}

    def _update(self, num_batch: int | None, data: object) -> None:
        """Call the user's callback with `data`, and permit `num_batch` more batches.

        `num_batch` None means the number of batches that pass before the first update.

        Raises:
            DatasetError: `num_batch` is below 1.
        """
        if num_batch is not None and (
            isinstance(num_batch, bool) or not isinstance(num_batch, int) or num_batch < 1
        ):
            raise DatasetError(f"sync_update: got num_batch={num_batch!r}; wanted 1 or more")
        if self.callback is not None:
            self.callback(data)
        batches = self.num_batch if num_batch is None else num_batch
        self._permitted += batches * self._rows_of_batch

    def _in_batches(self, size: int) -> None:
        self._permitted += self.num_batch * (size - self._rows_of_batch)
        self._rows_of_batch = size
        super()._in_batches(size)

    def disable_sync(self) -> None:
        self._permitted = float("inf")
        super().disable_sync()

    def _generate(self) -> Iterator[Row]:
        for row in self._parents[0].rows():
            end = time.monotonic() + config.settings.callback_timeout
            while self._permitted < 1:  # another thread may update
                if time.monotonic() > end:
                    raise DatasetError(
                        f"sync_wait: no sync_update({self.condition_name!r}) came within "
                        f"{config.settings.callback_timeout} s; call it after each "
                        f"{self.num_batch} rows, or disable_sync(), or wait longer with "
                        "dataset.config.set_callback_timeout"
                    )
                time.sleep(0.001)
            self._permitted -= 1
            yield row
