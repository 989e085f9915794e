"""Vocabularies and word vectors, and the transforms that look tokens up in them.

`dataset.text` exports them; the transforms are for `Dataset.map`.
"""

from __future__ import annotations

import os
import pathlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np

from ...call_errors import explaining
from ...dtype import DTypeLike, as_dtype, int32
from ...errors import ArgumentError, ArgumentValueError
from ...status_line import counted, status_line
from ..pipeline import Dataset
from ..rows import Array, DatasetError

__all__ = ["CharNGram", "FastText", "GloVe", "Lookup", "ToVectors", "Vectors", "Vocab"]

_Vectors = TypeVar("_Vectors", bound="Vectors")


def _words(owner: str, name: str, words: object) -> list[str]:
    """Return the argument `name` as a list if it is a list of distinct strings; raise otherwise."""
    if not isinstance(words, (list, tuple)) or not all(isinstance(w, str) for w in words):
        raise ArgumentError(f"{owner}: got {name}={words!r}; wanted a list of strings")
    if len(set(words)) != len(words):
        raise ArgumentValueError(f"{owner}: got a word of {name} twice")
    return list(words)


def _lines(owner: str, path: str | os.PathLike[str]) -> list[str]:
    """Return the lines of a UTF-8 file without line ends; `owner` is the caller, for messages.

    Only a line feed, or carriage return and line feed, ends a line: words may have the other
    characters at which `str.splitlines` splits.
    """
    try:
        lines = pathlib.Path(path).read_bytes().decode("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentValueError(f"{owner}: cannot read {path!s} ({error})") from None
    return [line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1])]


def strings_of(owner: str, text: object) -> Array:
    """Return strings, or bytes that are decoded, as an array of strings.

    Raises:
        ArgumentError: the array holds something else; `owner` is the transform, for the message.
        ArgumentValueError: the bytes are not UTF-8.
    """
    array = np.asarray(text)
    if array.dtype.kind == "S":
        try:
            return np.char.decode(array, "utf-8")
        except UnicodeDecodeError as error:
            raise ArgumentValueError(
                f"{owner}: got bytes that are not UTF-8 ({error}); wanted UTF-8, or strings from "
                "text.to_str with their encoding"
            ) from None
    if array.dtype.kind != "U" and array.size:
        raise ArgumentError(f"{owner}: got {array.dtype}; wanted strings")
    return array


@explaining
class Vocab:
    """A map from tokens to ids (`mindspore.dataset.text.Vocab`).

    Create one by `from_list`, `from_dict`, `from_file` or `from_dataset`.

    Examples:
        >>> from duograph.dataset import text
        >>> vocab = text.Vocab.from_list(["a", "b"], special_tokens=["<pad>"])
        >>> vocab.tokens_to_ids(["b", "<pad>"])
        [2, 0]
    """

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._tokens: dict[int, str] = {}

    @classmethod
    def _made(cls, ids: dict[str, int]) -> Vocab:
        """Create a vocabulary from a dictionary token -> id."""
        found = cls()
        found._ids = ids
        found._tokens = {i: w for w, i in ids.items()}
        return found

    @classmethod
    def from_list(
        cls,
        word_list: Sequence[str],
        special_tokens: Sequence[str] | None = None,
        special_first: bool = True,
    ) -> Vocab:
        """Return a vocabulary of words, which are numbered in their order.

        Args:
            word_list: distinct words.
            special_tokens: further distinct words, such as ``"[UNK]"``.
            special_first: number the special tokens before the words instead of after them.

        Raises:
            TypeError: an argument is no list of strings.
            ValueError: a word is given twice.
        """
        words = _words("Vocab.from_list", "word_list", word_list)
        special = _words("Vocab.from_list", "special_tokens", list(special_tokens or ()))
        if not isinstance(special_first, bool):
            raise ArgumentError(f"Vocab: got special_first={special_first!r}; wanted a bool")
        if set(words) & set(special):
            raise ArgumentValueError("Vocab.from_list: a special token is among the words")
        every = special + words if special_first else words + special
        return cls._made({w: i for i, w in enumerate(every)})

    @classmethod
    def from_dict(cls, word_dict: dict[str, int]) -> Vocab:
        """Return a vocabulary with the ids of a dictionary.

        Raises:
            TypeError: `word_dict` is no dictionary from strings to ints.
            ValueError: an id is negative.
        """
        if not isinstance(word_dict, dict) or not all(
            isinstance(w, str) and type(i) is int for w, i in word_dict.items()
        ):
            raise ArgumentError("Vocab.from_dict: wanted a dictionary from strings to ints")
        if any(i < 0 for i in word_dict.values()):
            raise ArgumentValueError("Vocab.from_dict: got a negative id")
        return cls._made(dict(word_dict))

    @classmethod
    def from_file(
        cls,
        file_path: str | os.PathLike[str],
        delimiter: str = "",
        vocab_size: int | None = None,
        special_tokens: Sequence[str] | None = None,
        special_first: bool = True,
    ) -> Vocab:
        """Return a vocabulary of the words of a file, one at the beginning of each line.

        An empty line is the word "", so that the ids are the numbers of the lines.

        Args:
            file_path: path of a UTF-8 text file.
            delimiter: string that ends the word in a line; by default the word is the whole line.
            vocab_size: number of lines to read; by default all.
            special_tokens, special_first: see `from_list`.

        Raises:
            ValueError: the file cannot be read, a word occurs twice, or `vocab_size` is below 1.
        """
        if vocab_size is not None and (not isinstance(vocab_size, int) or vocab_size < 1):
            raise ArgumentValueError(f"Vocab.from_file: got vocab_size={vocab_size!r}; wanted >= 1")
        lines = _lines("Vocab.from_file", file_path)[:vocab_size]
        words = [line.split(delimiter)[0] if delimiter else line for line in lines]
        try:
            return cls.from_list(words, special_tokens, special_first)
        except ArgumentValueError as error:
            raise ArgumentValueError(f"Vocab.from_file: {file_path!s}: {error}") from None

    @classmethod
    def from_dataset(
        cls,
        dataset: Dataset,
        columns: str | Sequence[str] | None = None,
        freq_range: tuple[int | None, int | None] | None = None,
        top_k: int | None = None,
        special_tokens: Sequence[str] | None = None,
        special_first: bool = True,
    ) -> Vocab:
        """Return a vocabulary of the words of a dataset, the most frequent first.

        Args:
            dataset: a dataset with columns of strings.
            columns: the columns to read; by default all.
            freq_range: (smallest, largest) frequency of the words to keep; None means no limit.
            top_k: number of words to keep; by default all.
            special_tokens, special_first: see `from_list`.

        Raises:
            TypeError: `dataset` is no Dataset, or a column does not hold strings.
            ValueError: a column is unknown, `freq_range` is not ascending, or `top_k` is below 1.
        """
        if not isinstance(dataset, Dataset):
            raise ArgumentError(f"Vocab.from_dataset: got {type(dataset).__name__}")
        low, high = freq_range or (None, None)
        if low is not None and high is not None and low > high:
            raise ArgumentValueError(f"Vocab.from_dataset: got freq_range={freq_range!r}")
        if top_k is not None and top_k < 1:
            raise ArgumentValueError(f"Vocab.from_dataset: got top_k={top_k}; wanted 1 or more")
        names = [columns] if isinstance(columns, str) else columns
        counts: Counter[str] = Counter()
        with status_line("counting words", None, "rows", False) as line:
            for row in counted(dataset.create_tuple_iterator(names, 1, True), line):
                for value in row:
                    if value.dtype.kind != "U":
                        raise ArgumentError(f"Vocab.from_dataset: got a column of {value.dtype}")
                    counts.update(np.ravel(value).tolist())
        kept = [
            w for w, n in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
            if n >= (low or 0) and (high is None or n <= high)
        ]  # fmt: skip
        return cls.from_list(kept[:top_k], special_tokens, special_first)

    def vocab(self) -> dict[str, int]:
        """Return a dictionary token -> id."""
        return dict(self._ids)

    def tokens_to_ids(self, tokens: str | Iterable[object]) -> int | list[int]:
        """Return the id of a token, or a list of ids for a list; -1 for an unknown token."""
        if isinstance(tokens, str):
            return self._ids.get(tokens, -1)
        return [self._ids.get(str(t), -1) for t in tokens]

    def ids_to_tokens(self, ids: int | Iterable[int]) -> str | list[str]:
        """Return the token of an id, or a list of tokens for a list; "" for an unknown id."""
        if isinstance(ids, (int, np.integer)):
            return self._tokens.get(int(ids), "")
        return [self._tokens.get(int(i), "") for i in ids]


@explaining
class Lookup:
    """Replaces tokens by their ids (`mindspore.dataset.text.Lookup`).

    Args:
        vocab: the Vocab with the ids.
        unknown_token: a token of the vocabulary whose id replaces unknown tokens; by default an
            unknown token raises an error.
        data_type: dtype of the ids.

    Raises:
        TypeError: `vocab` is no Vocab.
        ValueError: the vocabulary does not have `unknown_token`.
        RuntimeError: when called: a token is unknown, and there is no `unknown_token`.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import text
        >>> vocab = text.Vocab.from_list(["a", "b"])
        >>> text.Lookup(vocab, "b")(np.array(["a", "zz"])).tolist()
        [0, 1]
    """

    def __init__(
        self, vocab: Vocab, unknown_token: str | None = None, data_type: DTypeLike = int32
    ) -> None:
        if not isinstance(vocab, Vocab):
            raise ArgumentError(f"Lookup: got {type(vocab).__name__}; wanted a Vocab")
        self.ids = vocab.vocab()
        self.unknown = None
        if unknown_token is not None:
            if unknown_token not in self.ids:
                raise ArgumentValueError(f"Lookup: the vocabulary lacks {unknown_token!r}")
            self.unknown = self.ids[unknown_token]
        self.dtype = as_dtype(data_type).np

    def __call__(self, text: object) -> Array:
        array = strings_of("Lookup", text)
        found = []
        for token in array.ravel().tolist():
            i = self.ids.get(token, self.unknown)
            if i is None:
                raise DatasetError(f"Lookup: got the unknown token {token!r}; give unknown_token")
            found.append(i)
        return np.array(found, self.dtype).reshape(array.shape)


@explaining
class Vectors:
    """Word vectors by token (`mindspore.dataset.text.Vectors`), created by `from_file`.

    Examples:
        >>> import pathlib, tempfile
        >>> from duograph.dataset import text
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "vectors"
        >>> _ = path.write_text("a 1 2\\nb 3 4\\n")
        >>> text.ToVectors(text.Vectors.from_file(path))(["b", "zz"]).tolist()
        [[3.0, 4.0], [0.0, 0.0]]
    """

    def __init__(self) -> None:
        self._vectors: dict[str, Array] = {}
        self.size = 0

    @classmethod
    def from_file(
        cls: type[_Vectors], file_path: str | os.PathLike[str], max_vectors: int | None = None
    ) -> _Vectors:
        """Read the vectors of a text file; each line has a token and the numbers of its vector.

        Args:
            file_path: path of the file; a first line of only two numbers is skipped.
            max_vectors: number of vectors to read; None and 0 mean all.

        Raises:
            ValueError: the file cannot be read, a line has no numbers, two vectors differ in size,
                or `max_vectors` is below 0.
        """
        if max_vectors is not None and (not isinstance(max_vectors, int) or max_vectors < 0):
            raise ArgumentValueError(f"{cls.__name__}: got max_vectors={max_vectors!r}")
        made = cls()
        lines = _lines(cls.__name__, file_path)
        if lines and len(lines[0].split()) == 2:
            lines = lines[1:]
        for line in lines[:max_vectors]:
            token, *numbers = line.rstrip().split(" ")
            try:
                vector = np.array([float(n) for n in numbers if n], np.float32)
            except ValueError:
                raise ArgumentValueError(
                    f"{cls.__name__}: {file_path!s} has the line {line[:60]!r}"
                ) from None
            made.size = made.size or len(vector)
            if len(vector) != made.size or not made.size:
                raise ArgumentValueError(f"{cls.__name__}: {file_path!s} has vectors of several "
                                         "sizes")  # fmt: skip
            made._vectors.setdefault(token, vector)
        return made

    def lookup(self, token: str, unknown: Array) -> Array:
        """Return the vector of a token, or `unknown` if the token has none."""
        return self._vectors.get(token, unknown)


class GloVe(Vectors):
    """GloVe word vectors (`mindspore.dataset.text.GloVe`), with the interface of `Vectors`."""


class FastText(Vectors):
    """FastText word vectors
    (`mindspore.dataset.text.FastText`), with the interface of `Vectors`.
    """


class CharNGram(Vectors):
    """Vectors of character n-grams (`mindspore.dataset.text.CharNGram`).

    The vector of a token is the mean of the vectors of its 2-, 3- and 4-grams, which have names
    such as ``"3gram-abc"`` in the file.
    """

    def lookup(self, token: str, unknown: Array) -> Array:
        chars = ["#BEGIN#", *token, "#END#"]
        grams = [
            f"{n}gram-{''.join(chars[i : i + n])}" for n in (2, 3, 4)
            for i in range(len(chars) - n + 1)
        ]  # fmt: skip
        found = [self._vectors[g] for g in grams if g in self._vectors]
        return np.asarray(np.mean(found, axis=0, dtype=np.float32)) if found else unknown


@explaining
class ToVectors:
    """Replaces tokens by their vectors (`mindspore.dataset.text.ToVectors`).

    Args:
        vectors: a `Vectors` object, or one of a subclass.
        unk_init: the vector of unknown tokens; by default zeros.
        lower_case_backup: look an unknown token up in lower case as well.

    Raises:
        TypeError: `vectors` is no Vectors object.
        ValueError: `unk_init` has another size.

    Examples:
        >>> from duograph.dataset import text
        >>> text.ToVectors(text.Vectors(), [])(["a"]).shape
        (1, 0)
    """

    def __init__(
        self,
        vectors: Vectors,
        unk_init: Sequence[float] | None = None,
        lower_case_backup: bool = False,
    ) -> None:
        if not isinstance(vectors, Vectors):
            raise ArgumentError(f"ToVectors: got {type(vectors).__name__}; wanted Vectors")
        self.vectors, self.lower = vectors, bool(lower_case_backup)
        unknown = np.zeros(vectors.size) if unk_init is None else unk_init
        self.unknown = np.array(unknown, np.float32)
        if self.unknown.shape != (vectors.size,):
            raise ArgumentValueError(
                f"ToVectors: got unk_init of shape {self.unknown.shape}; wanted ({vectors.size},)"
            )

    def __call__(self, text: object) -> Array:
        array = strings_of("ToVectors", text)
        found = [self._vector(str(token)) for token in array.ravel()]
        return np.array(found, np.float32).reshape(*array.shape, self.vectors.size)

    def _vector(self, token: str) -> Array:
        lowered = self.vectors.lookup(token.lower(), self.unknown) if self.lower else self.unknown
        return self.vectors.lookup(token, lowered)
