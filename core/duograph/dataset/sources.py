"""Dataset sources of rows that are in memory: Python objects, arrays and random numbers.

For users. Sources that read files are in other modules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from typing import TYPE_CHECKING, cast

import numpy as np

from ..advice import kind_of
from ..dtype import DTypeLike, as_dtype
from ..errors import ArgumentError, ArgumentValueError
from ..option_checks import check_options
from . import config
from .batching import stacked
from .rows import Array, Columns, DatasetError, Row, as_array, as_value
from .schema import Schema, schema_of
from .source import SamplerLike, Source, UnionBaseDataset, checked_counts
from .steps import ShuffleDataset
from .workers import in_order

if TYPE_CHECKING:
    from .schema import SchemaLike

__all__ = ["GeneratorDataset", "NumpySlicesDataset", "PaddedDataset", "RandomDataset"]

_BUFFER = 10_000  # rows among which `shuffle=True` draws where a source has no numbered rows


class GeneratorDataset(Source, UnionBaseDataset):
    """Rows from any Python source (`mindspore.dataset.GeneratorDataset`).

    Args:
        source: object with `__getitem__` and `__len__`, an iterable, or a function that returns an
            iterator; a row is a tuple or list of arrays, numbers, strings or dictionaries, or one
            of these for a single column.
        column_names: name of the column, or list of names.
        column_types: list of dtypes to check the rows against.
        schema: a Schema, or the path of its file, instead of `column_names` and `column_types`.
        num_samples: largest number of rows in a pass.
        num_parallel_workers: number of workers that read numbered rows.
        shuffle: whether to shuffle the rows; by default only a source with numbered rows, one with
            `__getitem__` and `__len__`, is shuffled. Another source is shuffled in a buffer of
            10,000 rows.
        sampler: Sampler, list of row numbers, or another iterable of them.
        num_shards, shard_id: number of equal shards, and the shard to read.
        python_multiprocessing: whether more than one worker means processes instead of threads.
        batch_sampler: iterable of lists of row numbers, each of which makes a batch.
        collate_fn: function that turns one list of values per column into the columns of a batch.

    Raises:
        TypeError: the source is not iterable.
        ValueError: there are no column names, or a source without numbered rows is to be sampled.
        RuntimeError: while reading: a row has another number of columns.

    Examples:
        >>> from duograph import dataset
        >>> data = dataset.GeneratorDataset(lambda: ((i, i * i) for i in range(3)), ["x", "y"])
        >>> [(int(x), int(y)) for x, y in data]
        [(0, 0), (1, 1), (2, 4)]
    """

    def __init__(
        self,
        source: object,
        column_names: Columns = None,
        column_types: Sequence[DTypeLike] | None = None,
        schema: SchemaLike = None,
        num_samples: int | None = None,
        num_parallel_workers: int = 1,
        shuffle: bool | None = None,
        sampler: SamplerLike = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        python_multiprocessing: bool = True,
        max_rowsize: object = None,
        batch_sampler: Iterable[Sequence[int]] | None = None,
        collate_fn: Callable[..., object] | None = None,
    ) -> None:
        check_options("dataset.GeneratorDataset", max_rowsize=max_rowsize)
        names, types = _columns_and_types(column_names, column_types, schema_of(schema))
        super().__init__(names)
        self.source, self._types = source, types
        self._numbered = hasattr(source, "__getitem__") and hasattr(source, "__len__")
        self._processes = bool(python_multiprocessing)
        self._batches = self._batch_sampler(
            batch_sampler, collate_fn, num_samples, shuffle, sampler, num_shards
        )
        self._collate = collate_fn
        if self._numbered:
            self._setup(sampler, shuffle, num_samples, num_shards, shard_id, num_parallel_workers)
            return
        if not (callable(source) or any(hasattr(source, n) for n in _ITERATES)):
            raise ArgumentError(
                f"GeneratorDataset: got {kind_of(source)}; wanted a generator function, an "
                "iterable, or an object with __getitem__ and __len__"
            )
        if sampler is not None or num_shards is not None or batch_sampler is not None:
            raise ArgumentValueError(
                "GeneratorDataset: got a sampler or shards for a source without numbered rows; "
                "wanted __getitem__ and __len__"
            )
        self._limit = checked_counts("GeneratorDataset", num_samples, None, None)
        self._shuffles = bool(shuffle)
        config.workers(num_parallel_workers)

    def _batch_sampler(
        self, batches: object, collate: object, *excluded: object
    ) -> Iterable[Sequence[int]] | None:
        """Check the arguments `batch_sampler` and `collate_fn`; return the batch sampler or None.

        `excluded` are the values of the arguments that may not be combined with `batch_sampler`.
        """
        if collate is not None and not callable(collate):
            raise ArgumentError(
                f"GeneratorDataset: got {type(collate).__name__} for collate_fn; wanted a function"
            )
        if batches is None:
            if collate is not None:
                raise ArgumentValueError(
                    "GeneratorDataset: got collate_fn without batch_sampler; use batch with "
                    "per_batch_map"
                )
            return None
        if any(v is not None for v in excluded):
            raise ArgumentValueError(
                "GeneratorDataset: got batch_sampler with num_samples, shuffle, sampler or "
                "num_shards; wanted none of them"
            )
        if not hasattr(batches, "__iter__") and not hasattr(batches, "__getitem__"):
            raise ArgumentError(
                f"GeneratorDataset: got {type(batches).__name__} for batch_sampler; wanted lists "
                "of row numbers"
            )
        return cast("Iterable[Sequence[int]]", batches)

    def _size(self) -> int | None:
        if self._batches is not None:
            return len(cast("Sized", self._batches)) if hasattr(self._batches, "__len__") else None
        if self._numbered:
            return super()._size()
        if hasattr(self.source, "__len__"):
            n = len(cast("Sized", self.source))
            return n if self._limit is None else min(n, self._limit)
        return None

    def is_shuffled(self) -> bool:
        return super().is_shuffled() if self._numbered else self._shuffles

    def is_sharded(self) -> bool:
        return super().is_sharded() if self._numbered else False

    def get_batch_size(self) -> int:
        return 1 if self._batches is None else -1

    def _numbers(self) -> Sequence[int]:
        return super()._numbers() if self._numbered else UnionBaseDataset._numbers(self)

    def picked(self, numbers: Sequence[int]) -> Iterator[Row]:
        if self._numbered:
            return super().picked(numbers)
        return UnionBaseDataset.picked(self, numbers)

    def _picks_before_shuffling(self) -> bool:
        return self._numbered

    def _count(self) -> int:
        return len(cast("Sized", self.source))

    def _row(self, index: int) -> Row:
        return self._checked(cast("Sequence[object]", self.source)[index])

    def _batch(self, numbers: Sequence[int]) -> Row:
        """Return one batch made of the rows with the given numbers, by `collate_fn` if given."""
        rows = [self._row(int(i)) for i in numbers]
        columns = [list(c) for c in zip(*rows)]
        if self._collate is None:
            return tuple(stacked(n, c, None) for n, c in zip(self._columns, columns))
        found = self._collate(*columns)
        found = found if isinstance(found, tuple) else (found,)
        if len(found) != len(self._columns):
            raise DatasetError(
                f"GeneratorDataset: collate_fn returned {len(found)} columns; "
                f"wanted {len(self._columns)}"
            )
        return tuple(as_value(v) for v in found)

    def _generate(self) -> Iterator[Row]:
        if self._batches is not None:
            workers = config.workers(self._workers)
            return in_order(self._batch, iter(self._batches), workers, self._processes)
        if self._numbered:
            return super()._generate()
        return self._mixed() if self._shuffles else self._stream()

    def _mixed(self) -> Iterator[Row]:
        """Yield the rows of a source without row numbers in random order, from a buffer."""
        return ShuffleDataset(_Rows(self._columns, self._stream), _BUFFER).rows()

    def _stream(self) -> Iterator[Row]:
        """Yield the rows of a source without row numbers, at most `num_samples` of them."""
        rows = (
            self.source() if callable(self.source) else iter(cast("Iterable[object]", self.source))
        )
        for done, row in enumerate(rows):
            if self._limit is not None and done >= self._limit:
                return
            yield self._checked(row)

    def _checked(self, row: object) -> Row:
        """Convert a row of the user's source to arrays; return them.

        Raises:
            DatasetError: the number of columns or the dtype of one is not as declared.
        """
        items = row if isinstance(row, (tuple, list)) else (row,)
        if len(items) != len(self._columns):
            raise DatasetError(
                f"GeneratorDataset: the source gave a row of {len(items)} columns; "
                f"wanted {len(self._columns)}: {', '.join(self._columns)}. A row is a tuple with a "
                "value for each column"
            )
        values = tuple(as_value(x) for x in items)
        if self._types is not None:
            for name, a, t in zip(self._columns, values, self._types):
                if t is not None and getattr(a, "dtype", None) != t:
                    raise DatasetError(
                        f"GeneratorDataset: column {name!r} has dtype "
                        f"{getattr(a, 'dtype', 'of a dictionary')}; wanted {t.name}"
                    )
        return values


_ITERATES = ("__iter__", "__next__", "__getitem__")


def _columns_and_types(
    names: Columns, types: Sequence[DTypeLike] | None, schema: Schema | None
) -> tuple[list[str], list[np.dtype[np.generic] | None] | None]:
    """Return (column names, their NumPy dtypes) from the arguments of GeneratorDataset.

    The list of dtypes, or one of its items, is None where the user declared none.
    """
    if schema is not None:
        if names is not None or types is not None:
            raise ArgumentValueError(
                "GeneratorDataset: got schema and column_names; wanted one of them"
            )
        found = [c["name"] for c in schema.columns]
        return found, [None if t is None else t.np for t in schema.dtypes()]
    if names is None:
        raise ArgumentValueError(
            "GeneratorDataset: got no column_names; wanted a name for each column"
        )
    found = [names] if isinstance(names, str) else list(names)
    if types is None:
        return found, None
    if len(types) != len(found):
        raise ArgumentValueError(
            f"GeneratorDataset: got {len(types)} column_types for {len(found)} columns"
        )
    return found, [as_dtype(t).np for t in types]


class _Rows(UnionBaseDataset):
    """Dataset of the rows of an iterator; in each pass a function returns a new iterator."""

    def __init__(self, columns: Sequence[str], generate: Callable[[], Iterator[Row]]) -> None:
        super().__init__(columns)
        self._make = generate

    def _generate(self) -> Iterator[Row]:
        return self._make()


class NumpySlicesDataset(Source, UnionBaseDataset):
    """Rows that are slices of arrays along their first axis
    (`mindspore.dataset.NumpySlicesDataset`).

    Args:
        data: list or array (one column), tuple of them, or dictionary of columns. The elements of a
            list may differ in shape.
        column_names: names of the columns; by default ``column_0``, ... or the keys of the
            dictionary.
        num_samples, shuffle, sampler, num_shards, shard_id: see `GeneratorDataset`; shuffled by
            default.

    Raises:
        ValueError: the columns differ in length, or in number from the names.

    Examples:
        >>> from duograph import dataset
        >>> data = dataset.NumpySlicesDataset({"a": [1, 2], "b": [3, 4]}, shuffle=False)
        >>> data.get_col_names(), data.get_dataset_size()
        (['a', 'b'], 2)
    """

    def __init__(
        self,
        data: object,
        column_names: Columns = None,
        num_samples: int | None = None,
        num_parallel_workers: int = 1,
        shuffle: bool | None = None,
        sampler: SamplerLike = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
    ) -> None:
        if isinstance(data, dict):
            found, names = [_column(v) for v in data.values()], list(data)
        elif isinstance(data, tuple):
            found = [_column(v) for v in data]
            names = [f"column_{i}" for i in range(len(found))]
        else:
            found, names = [_column(data)], ["column_0"]
        if column_names is not None:
            names = [column_names] if isinstance(column_names, str) else list(column_names)
        if len(names) != len(found):
            raise ArgumentValueError(
                f"NumpySlicesDataset: got {len(found)} column{'s' * (len(found) != 1)} and "
                f"{len(names)} name{'s' * (len(names) != 1)} ({', '.join(map(repr, names))}); "
                "wanted one name for each column (a tuple has several columns: (a, b))"
            )
        if len({len(a) for a in found}) != 1:
            rows = ", ".join(f"{len(a)} in {name!r}" for name, a in zip(names, found, strict=True))
            raise ArgumentValueError(
                f"NumpySlicesDataset: got columns of different numbers of rows, {rows}; wanted as "
                "many rows in each"
            )
        super().__init__(names)
        self._arrays = found
        self._setup(sampler, shuffle, num_samples, num_shards, shard_id, num_parallel_workers)

    def _count(self) -> int:
        return len(self._arrays[0])

    def _row(self, index: int) -> Row:
        return tuple(as_value(a[index]) for a in self._arrays)

    def _labels(self, column: str) -> Sequence[object] | None:
        return list(self._arrays[self._columns.index(column)]) if column in self._columns else None

    def row_groups(self, size: int, drop: bool) -> Iterator[Row]:
        """Yield batches of `size` rows, each gathered from the source arrays in one step.

        `drop` says whether a smaller last batch is omitted.
        """
        order = self._sampler.indices(self._count(), self._labels_for(self._sampler))
        end = len(order) - len(order) % size if drop else len(order)
        for first in range(0, end, size):
            picked = np.asarray(order[first : first + size], np.int64)
            yield tuple(
                a[picked] if isinstance(a, np.ndarray) else stacked(c, [a[i] for i in picked], None)
                for c, a in zip(self._columns, self._arrays)
            )


def _column(values: object) -> Array | list[object]:
    """Convert the data of a column to one array, or to a list if its elements cannot be stacked."""
    if isinstance(values, (list, tuple)):
        try:
            found = np.array(values)
        except ValueError:  # elements of different shapes
            return list(values)
        return list(values) if found.dtype.kind == "O" else found
    found = as_array(values)
    if not found.ndim:
        raise ArgumentError(
            f"NumpySlicesDataset: got {values!r} as a column; wanted a list or an array"
        )
    return found


class PaddedDataset(Source, UnionBaseDataset):
    """Rows given as a list of dictionaries (`mindspore.dataset.PaddedDataset`).

    Args:
        padded_samples: dictionaries from columns to values, all with the same keys.

    Raises:
        TypeError: `padded_samples` is not a list of dictionaries.
        ValueError: the list is empty, or the dictionaries have different keys.

    Examples:
        >>> import numpy as np
        >>> from duograph import dataset
        >>> data = dataset.PaddedDataset([{"x": np.zeros(2)}])
        >>> data.get_col_names(), len(data)
        (['x'], 1)
    """

    def __init__(self, padded_samples: Sequence[Mapping[str, object]]) -> None:
        found = list(padded_samples)
        if not all(isinstance(row, dict) for row in found):
            raise ArgumentError("PaddedDataset: wanted a list of dictionaries")
        if not found or any(set(row) != set(found[0]) for row in found):
            raise ArgumentValueError(
                "PaddedDataset: wanted at least one row, and the same keys in all rows"
            )
        super().__init__(list(found[0]))
        self.padded_samples = found
        self._setup(None, False, None, None, None)

    def _count(self) -> int:
        return len(self.padded_samples)

    def _row(self, index: int) -> Row:
        return tuple(as_value(self.padded_samples[index][c]) for c in self._columns)


class RandomDataset(Source, UnionBaseDataset):
    """Rows of random numbers, for tests (`mindspore.dataset.RandomDataset`).

    Args:
        total_rows: number of rows; by default a random number from 1 to 1000.
        schema: Schema of the columns, or the path of its file; by default a few random columns.
        columns_list: without a schema: names of columns of one int8 number.
        num_samples, shuffle, num_shards, shard_id, cache: see `MnistDataset`.

    Raises:
        ValueError: `total_rows` is below 1.

    Examples:
        >>> from duograph import dataset
        >>> len(dataset.RandomDataset(4, columns_list=["a"]))
        4
    """

    def __init__(
        self,
        total_rows: int | None = None,
        schema: SchemaLike = None,
        columns_list: Columns = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        cache: object = None,
        shuffle: bool | None = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
    ) -> None:
        self._key = config.new_key()
        random = config.generator(self._key)
        if total_rows is None:
            total_rows = int(random.integers(1, 1001))
        if isinstance(total_rows, bool) or not isinstance(total_rows, int) or total_rows < 1:
            raise ArgumentValueError(f"RandomDataset: got total_rows={total_rows!r}; wanted >= 1")
        found = schema_of(schema)
        if found is None:
            found = Schema()
            names = ["c0", "c1", "c2"] if columns_list is None else columns_list
            for name in [names] if isinstance(names, str) else names:
                found.add_column(name, "int8", [1])
        kept = [c["name"] for c in found.columns]
        if schema is not None and columns_list is not None:
            wanted = [columns_list] if isinstance(columns_list, str) else list(columns_list)
            if not set(wanted) <= set(kept):
                raise ArgumentValueError(f"RandomDataset: got {wanted}; the schema has {kept}")
            kept = wanted
        super().__init__(kept)
        by_name = {c["name"]: (c, t) for c, t in zip(found.columns, found.dtypes())}
        self._made = [by_name[name] for name in kept]
        self.total_rows = total_rows
        self._setup(
            None, bool(shuffle), num_samples, num_shards, shard_id, num_parallel_workers, cache
        )

    def _count(self) -> int:
        return self.total_rows

    def _row(self, index: int) -> Row:
        random = config.generator(self._key, index + 1)
        row = []
        for column, dtype in self._made:
            shape = [int(random.integers(1, 5)) if n < 0 else n for n in column.get("shape", [1])]
            if dtype is None:
                text = "".join(map(chr, random.integers(97, 123, 8)))
                row.append(np.full(shape, text))
                continue
            raw = random.integers(0, 128, (math.prod(shape),), np.int64)
            row.append(raw.reshape(shape).astype(dtype.np))
        return tuple(row)
