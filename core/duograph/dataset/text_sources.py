"""Dataset sources of text: lines, CSV, CLUE, and well-known datasets in these formats.

For users. Files may be malicious: every defect raises DatasetError with the path.
"""

from __future__ import annotations

import csv
import json
import os
import pathlib
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import TYPE_CHECKING, cast

import numpy as np

from ..errors import ArgumentError, ArgumentValueError
from .rows import DAMAGE, Array, DatasetError, Row
from .samplers import Shuffle
from .source import (
    SamplerLike,
    Source,
    Stream,
    TextBaseDataset,
    damaged,
    files_of,
    folder_of,
)

if TYPE_CHECKING:
    from .source import Paths

__all__ = [
    "AGNewsDataset", "AmazonReviewDataset", "CLUEDataset", "CSVDataset", "DBpediaDataset",
    "EnWik9Dataset", "IMDBDataset", "PennTreebankDataset", "SogouNewsDataset", "TextFileDataset",
    "WikiTextDataset", "YahooAnswersDataset", "YelpReviewDataset",
]  # fmt: skip

PathLike = str | os.PathLike[str]


def _lines(owner: str, path: pathlib.Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file without line ends; `owner` is the source, for messages."""
    try:
        with open(path, encoding="utf-8", newline="\n") as file:
            for line in file:
                yield line.removesuffix("\n").removesuffix("\r")
    except (OSError, UnicodeDecodeError) as error:
        raise damaged(owner, path, error) from None


class TextFileDataset(Stream, TextBaseDataset):
    """The lines of text files (`mindspore.dataset.TextFileDataset`); empty lines are left out.

    Column: text, str ().

    Args:
        dataset_files: path or glob pattern, or a list of these.
        shuffle: whether to shuffle, or a Shuffle that says how.
        num_samples, num_shards, shard_id, cache: see `MnistDataset`.

    Raises:
        ValueError: a file does not exist.
        RuntimeError: while reading: a file is no UTF-8 text.

    Examples:
        >>> import pathlib, tempfile
        >>> from duograph import dataset
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "text"
        >>> _ = path.write_text("one\\ntwo\\n")
        >>> [str(text) for text, in dataset.TextFileDataset(str(path), shuffle=False)]
        ['one', 'two']
    """

    def __init__(
        self,
        dataset_files: Paths,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle = Shuffle.GLOBAL,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: object = None,
    ) -> None:
        super().__init__(["text"])
        files = sorted(files_of("TextFileDataset", dataset_files))
        self._setup(files, shuffle, num_samples, num_shards, shard_id, num_parallel_workers, cache)

    def _read(self, path: pathlib.Path) -> Iterator[str]:
        return (line for line in _lines(type(self).__name__, path) if line)

    def _decode(self, raw: object) -> Row:
        return (np.array(raw),)


class CSVDataset(Stream, TextBaseDataset):
    """The rows of CSV files (`mindspore.dataset.CSVDataset`).

    Args:
        dataset_files: path or glob pattern, or a list of these.
        field_delim: the character that separates fields.
        column_defaults: one value per column, an int, float or str. It determines the dtype of the
            column (int32, float32 or str) and replaces empty fields. By default all columns are
            str.
        column_names: names of the columns; by default the first line of the first file has them.
        shuffle: whether to shuffle, or a Shuffle that says how.
        num_samples, num_shards, shard_id, cache: see `MnistDataset`.

    Raises:
        TypeError: a default has another type.
        ValueError: a file does not exist, or the numbers of names and defaults differ.
        RuntimeError: while reading: a row has another length, or a field is no number.

    Examples:
        >>> import pathlib, tempfile
        >>> from duograph import dataset
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.csv"
        >>> _ = path.write_text("a,b\\n1,x\\n")
        >>> data = dataset.CSVDataset(str(path), column_defaults=[0, ""], shuffle=False)
        >>> [(int(row["a"]), str(row["b"])) for row in data.create_dict_iterator(1, True)]
        [(1, 'x')]
    """

    def __init__(
        self,
        dataset_files: Paths,
        field_delim: str = ",",
        column_defaults: Sequence[object] | None = None,
        column_names: Sequence[str] | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle = Shuffle.GLOBAL,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: object = None,
    ) -> None:
        files = sorted(files_of("CSVDataset", dataset_files))
        self._open_csv(files, field_delim, column_defaults, column_names)
        self._setup(files, shuffle, num_samples, num_shards, shard_id, num_parallel_workers, cache)

    def _open_csv(
        self,
        files: Sequence[pathlib.Path],
        delimiter: str,
        defaults: Sequence[object] | None,
        names: Sequence[str] | None,
    ) -> None:
        """Check and set delimiter, column names and defaults from the arguments.

        Without `names`, the first line of the first file has the column names.
        """
        owner = type(self).__name__
        if not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n':
            raise ArgumentValueError(f"{owner}: got field_delim={delimiter!r}; wanted a character")
        self._delimiter, self._skip = delimiter, names is None
        if names is None:
            first = next(self._fields_of(files[0], False), None)
            if not first:
                raise DatasetError(f"{owner}: {files[0]} has no line of column names")
            names = first
        super().__init__(list(names))
        for value in defaults or ():
            if not isinstance(value, (int, float, str)) or isinstance(value, bool):
                raise ArgumentError(f"{owner}: got {value!r} in column_defaults; wanted int, float "
                                    "or str")  # fmt: skip
        if defaults is not None and len(defaults) != len(self._columns):
            raise ArgumentValueError(
                f"{owner}: got {len(defaults)} column_defaults for {len(self._columns)} columns of "
                f"{files[0]}"
            )
        self._defaults = list(defaults) if defaults is not None else [""] * len(self._columns)

    def _fields_of(self, path: pathlib.Path, skip: bool) -> Iterator[list[str]]:
        """Yield the fields of each non-empty line of a CSV file; with `skip`, omit the first line.

        Raises:
            DatasetError: the file cannot be read, or is not valid CSV text in UTF-8.
        """
        try:
            with open(path, encoding="utf-8", newline="") as file:
                for number, fields in enumerate(csv.reader(file, delimiter=self._delimiter)):
                    if fields and not (skip and number == 0):
                        yield fields
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise damaged(type(self).__name__, path, error) from None

    def _read(self, path: pathlib.Path) -> Iterator[object]:
        return (tuple(fields) for fields in self._fields_of(path, self._skip))

    def _decode(self, raw: object) -> Row:
        if len(cast("Sized", raw)) != len(self._columns):
            raise ValueError(
                f"a row has {len(cast('Sized', raw))} fields; wanted {len(self._columns)}: "
                f"{', '.join(self._columns)}"
            )
        return tuple(
            self._value(*pair)
            for pair in zip(self._columns, cast("Iterable[str]", raw), self._defaults)
        )

    def _value(self, name: str, text: str, default: object) -> Array:
        """Convert the text of a field to a 0-d array of the type of `default`.

        The array holds a str, int32 or float32. An empty field takes the value `default`; `name` is
        the column, for messages.

        Raises:
            ValueError: the field is not the text of a number of this type.
        """
        if isinstance(default, str):
            return np.array(text or default)
        dtype = np.int32 if isinstance(default, int) else np.float32
        try:
            return np.array(text or default).astype(dtype)
        except (ValueError, OverflowError):
            raise ValueError(f"column {name!r} has the field {text!r}; wanted a number") from None


class _FolderCSV(CSVDataset):
    """Base class of datasets whose CSV files lie in one folder, one file per usage.

    A subclass sets `_names`, the columns; `_usages`, the allowed usages; and `_pattern`, which
    makes the file name of a usage.
    """

    _names: tuple[str, ...] = ()
    _usages = ("train", "test", "all")
    _pattern = "{}.csv"

    def __init__(
        self,
        dataset_dir: PathLike,
        usage: str | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle = Shuffle.GLOBAL,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: object = None,
    ) -> None:
        files = _usage_files(type(self).__name__, dataset_dir, usage, self._usages, self._pattern)
        self._open_csv(files, ",", None, self._names)
        self._setup(files, shuffle, num_samples, num_shards, shard_id, num_parallel_workers, cache)


def _usage_files(
    owner: str, folder: PathLike, usage: str | None, known: Sequence[str], pattern: str
) -> list[pathlib.Path]:
    """Return the existing files of a usage, such as "train", in a folder; raise if there are none.

    "all" or None means every usage in `known` but the last, which is "all" itself. `pattern` is a
    format string: its braces are replaced by the usage to give the file name.
    """
    if usage not in (None, *known):
        raise ArgumentValueError(f"{owner}: got usage={usage!r}; wanted one of {list(known)}")
    parts = known[:-1] if usage in (None, "all") else [usage]
    root = folder_of(owner, folder)
    files = [root / pattern.format(part) for part in parts]
    found = [f for f in files if f.is_file()]
    if not found:
        raise DatasetError(f"{owner}: {root} has no file {' or '.join(f.name for f in files)}")
    return found


class AGNewsDataset(_FolderCSV):
    """News in four classes (`mindspore.dataset.AGNewsDataset`), from ``train.csv`` and
    ``test.csv``.

    Columns: index, title, description, str ().
    """

    _names = ("index", "title", "description")


class AmazonReviewDataset(_FolderCSV):
    """Reviews with labels (`mindspore.dataset.AmazonReviewDataset`), from ``train.csv`` and
    ``test.csv``.

    Columns: label, title, content, str ().
    """

    _names = ("label", "title", "content")


class DBpediaDataset(_FolderCSV):
    """Articles in 14 classes (`mindspore.dataset.DBpediaDataset`), from ``train.csv`` and
    ``test.csv``.

    Columns: class, title, content, str ().
    """

    _names = ("class", "title", "content")


class SogouNewsDataset(_FolderCSV):
    """Chinese news in five classes (`mindspore.dataset.SogouNewsDataset`), from ``train.csv`` and
    ``test.csv``.

    Columns: index, title, content, str ().
    """

    _names = ("index", "title", "content")


class YahooAnswersDataset(_FolderCSV):
    """Questions in ten classes (`mindspore.dataset.YahooAnswersDataset`), from ``train.csv`` and
    ``test.csv``.

    Columns: class, title, content, answer, str ().
    """

    _names = ("class", "title", "content", "answer")


class YelpReviewDataset(_FolderCSV):
    """Reviews with labels (`mindspore.dataset.YelpReviewDataset`), from ``train.csv`` and
    ``test.csv``.

    Columns: label, text, str ().
    """

    _names = ("label", "text")


class _FolderLines(TextFileDataset):
    """Base class of datasets whose rows are lines of text, with one file per usage in a folder.

    A subclass sets `_usages`, the allowed usages, and `_pattern`, which makes the file name of a
    usage.
    """

    _usages: tuple[str, ...] = ()
    _pattern = ""

    def __init__(
        self,
        dataset_dir: PathLike,
        usage: str | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle = Shuffle.GLOBAL,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: object = None,
    ) -> None:
        TextBaseDataset.__init__(self, ["text"])
        files = _usage_files(type(self).__name__, dataset_dir, usage, self._usages, self._pattern)
        self._setup(files, shuffle, num_samples, num_shards, shard_id, num_parallel_workers, cache)


class PennTreebankDataset(_FolderLines):
    """The lines of ``ptb.train.txt``, ``ptb.valid.txt`` and ``ptb.test.txt``
    (`mindspore.dataset.PennTreebankDataset`).

    Column: text, str ().
    """

    _usages = ("train", "test", "valid", "all")
    _pattern = "ptb.{}.txt"


class WikiTextDataset(_FolderLines):
    """The lines of ``wiki.train.tokens``, ``wiki.valid.tokens`` and ``wiki.test.tokens``
    (`mindspore.dataset.WikiTextDataset`).

    Column: text, str ().
    """

    _usages = ("train", "test", "valid", "all")
    _pattern = "wiki.{}.tokens"


class EnWik9Dataset(TextFileDataset):
    """The lines of the file ``enwik9`` (`mindspore.dataset.EnWik9Dataset`).

    Column: text, str ().
    """

    def __init__(
        self,
        dataset_dir: PathLike,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle = True,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: object = None,
    ) -> None:
        path = folder_of("EnWik9Dataset", dataset_dir) / "enwik9"
        super().__init__(
            path, num_samples, num_parallel_workers, shuffle, num_shards, shard_id, cache
        )


class IMDBDataset(Source, TextBaseDataset):
    """Reviews of films (`mindspore.dataset.IMDBDataset`), one file each in ``train/pos``,
    ``train/neg``, ``test/pos`` and ``test/neg``.

    Columns: text, str (); label, uint32 (): 1 for positive reviews.

    Args:
        dataset_dir: folder with these subfolders.
        usage: ``"train"``, ``"test"`` or ``"all"`` (the default).
        num_samples, shuffle, sampler, num_shards, shard_id, cache: see `MnistDataset`.

    Raises:
        ValueError: the folder does not exist, or `usage` is unknown.
        RuntimeError: the folder has no reviews.
    """

    def __init__(
        self,
        dataset_dir: PathLike,
        usage: str | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | None = None,
        sampler: SamplerLike = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: object = None,
    ) -> None:
        super().__init__(["text", "label"])
        folder = folder_of("IMDBDataset", dataset_dir)
        if usage not in (None, "train", "test", "all"):
            raise ArgumentValueError(f"IMDBDataset: got usage={usage!r}; wanted train, test, all")
        parts = ("train", "test") if usage in (None, "all") else (usage,)
        self._items = [
            (path, label)
            for part in parts
            for label, name in ((1, "pos"), (0, "neg"))
            for path in sorted((folder / str(part) / name).glob("*.txt"))
        ]
        if not self._items:
            raise DatasetError(f"IMDBDataset: {folder} has no reviews of usage {usage or 'all'!r}")
        self._setup(
            sampler, shuffle, num_samples, num_shards, shard_id, num_parallel_workers, cache
        )

    def _count(self) -> int:
        return len(self._items)

    def _row(self, index: int) -> Row:
        path, label = self._items[index]
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise damaged("IMDBDataset", path, error) from None
        return np.array(text), np.array(label, np.uint32)

    def num_classes(self) -> int | None:
        return 2


_CLUE: dict[str, dict[str, dict[str, str]]] = {  # task -> usage -> column -> key in the JSON line
    "AFQMC": {
        "train": {"sentence1": "sentence1", "sentence2": "sentence2", "label": "label"},
        "test": {"id": "id", "sentence1": "sentence1", "sentence2": "sentence2"},
    },
    "TNEWS": {
        "train": {"label": "label", "label_desc": "label_desc", "sentence": "sentence",
                  "keywords": "keywords"},
        "test": {"id": "id", "sentence": "sentence", "keywords": "keywords"},
    },
    "IFLYTEK": {
        "train": {"label": "label", "label_des": "label_des", "sentence": "sentence"},
        "test": {"id": "id", "sentence": "sentence"},
    },
    "CMNLI": {
        "train": {"sentence1": "sentence1", "sentence2": "sentence2", "label": "label"},
        "test": {"id": "id", "sentence1": "sentence1", "sentence2": "sentence2"},
    },
    "WSC": {
        "train": {"span1_index": "target/span1_index", "span2_index": "target/span2_index",
                  "span1_text": "target/span1_text", "span2_text": "target/span2_text",
                  "idx": "idx", "label": "label", "text": "text"},
        "test": {"span1_index": "target/span1_index", "span2_index": "target/span2_index",
                 "span1_text": "target/span1_text", "span2_text": "target/span2_text",
                 "idx": "idx", "text": "text"},
    },
    "CSL": {
        "train": {"id": "id", "abst": "abst", "keyword": "keyword", "label": "label"},
        "test": {"id": "id", "abst": "abst", "keyword": "keyword"},
    },
}  # fmt: skip


class CLUEDataset(Stream, TextBaseDataset):
    """A task of the CLUE benchmark, with one JSON object per line
    (`mindspore.dataset.CLUEDataset`).

    The columns are those of the task: str () for strings, uint32 () for integers, and arrays for
    lists.

    Args:
        dataset_files: path or glob pattern, or a list of these.
        task: ``"AFQMC"``, ``"TNEWS"``, ``"IFLYTEK"``, ``"CMNLI"``, ``"WSC"`` or ``"CSL"``.
        usage: ``"train"``, ``"eval"`` or ``"test"``.
        shuffle: whether to shuffle, or a Shuffle that says how.
        num_samples, num_shards, shard_id, cache: see `MnistDataset`.

    Raises:
        ValueError: a file does not exist, or `task` or `usage` is unknown.
        RuntimeError: while reading: a line is no such object.
    """

    def __init__(
        self,
        dataset_files: Paths,
        task: str = "AFQMC",
        usage: str = "train",
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle = Shuffle.GLOBAL,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: object = None,
    ) -> None:
        if task not in _CLUE or usage not in ("train", "eval", "test"):
            raise ArgumentValueError(
                f"CLUEDataset: got task={task!r} and usage={usage!r}; wanted one of {list(_CLUE)}, "
                "and train, eval or test"
            )
        self._keys = _CLUE[task]["train" if usage == "eval" else usage]
        super().__init__(list(self._keys))
        files = sorted(files_of("CLUEDataset", dataset_files))
        self._setup(files, shuffle, num_samples, num_shards, shard_id, num_parallel_workers, cache)

    def _read(self, path: pathlib.Path) -> Iterator[object]:
        return (line for line in _lines("CLUEDataset", path) if line)

    def _decode(self, raw: object) -> Row:
        try:
            found = json.loads(cast("str", raw))
            row = []
            for key in self._keys.values():
                value = found
                for part in key.split("/"):
                    value = value[part]
                row.append(np.array(value, np.uint32) if type(value) is int else np.array(value))
        except DAMAGE as error:
            raise ValueError(f"got the line {cast('str', raw)[:60]!r} ({error!r})") from None
        return tuple(row)
