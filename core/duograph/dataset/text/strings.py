"""Transforms of strings and of arrays of tokens.

`dataset.text` exports them for use in `Dataset.map`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence

import numpy as np

from ...call_errors import explaining
from ...dtype import DTypeLike, as_dtype
from ...errors import ArgumentError, ArgumentValueError
from ..rows import Array, DatasetError
from .tokenizers import NormalizeForm, compiled, normal_form
from .vocab import strings_of

__all__ = [
    "AddToken", "CaseFold", "FilterWikipediaXML", "Ngram", "NormalizeUTF8", "RegexReplace",
    "SlidingWindow", "ToNumber", "Truncate", "TruncateSequencePair", "to_bytes", "to_str",
]  # fmt: skip


def _each(owner: str, text: object, function: Callable[[str], str]) -> Array:
    """Apply a function of one string to each string of an array; return the array of results.

    Raises ArgumentError if the array holds no strings; `owner` is the transform, for the message.
    """
    array = np.asarray(text)
    if array.dtype.kind != "U":
        raise ArgumentError(f"{owner}: got {array.dtype}; wanted strings")
    found = [function(s) for s in array.ravel().tolist()]
    return np.array(found, None if found else array.dtype).reshape(array.shape)


@explaining
class CaseFold:
    """Converts strings to lower case by Unicode case folding (`mindspore.dataset.text.CaseFold`).

    Examples:
        >>> from duograph.dataset import text
        >>> str(text.CaseFold()("Straße"))
        'strasse'
    """

    def __call__(self, text: object) -> Array:
        return _each("CaseFold", text, lambda s: unicodedata.normalize("NFKC", s).casefold())


_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


@explaining
class FilterWikipediaXML:
    """Extracts the words of a line of a Wikipedia dump
    (`mindspore.dataset.text.FilterWikipediaXML`).

    The line is converted to lower case. Everything from the first ``<`` to the last ``>`` is
    removed, digits become words, and everything but the letters a to z becomes single spaces. A
    redirection becomes "".

    Examples:
        >>> from duograph.dataset import text
        >>> str(text.FilterWikipediaXML()("<b>Two</b> [[words]] &amp; 3"))
        'words three'
    """

    def __call__(self, text: object) -> Array:
        return _each("FilterWikipediaXML", text, self._filtered)

    @staticmethod
    def _filtered(line: str) -> str:
        line = line.lower()
        if "#redirect" in line:
            return ""
        line = re.sub(r"&[^;]*;", " ", re.sub(r"<.*>", "", line))
        line = re.sub(r"[0-9]", lambda found: f" {_DIGITS[int(found.group())]} ", line)
        return " ".join(re.findall(r"[a-z]+", line))


@explaining
class NormalizeUTF8:
    """Converts strings to a Unicode normal form (`mindspore.dataset.text.NormalizeUTF8`).

    Args:
        normalize_form: the form, a NormalizeForm.

    Raises:
        TypeError: `normalize_form` is no NormalizeForm.

    Examples:
        >>> from duograph.dataset import text
        >>> str(text.NormalizeUTF8()("①"))
        '1'
    """

    def __init__(self, normalize_form: NormalizeForm = NormalizeForm.NFKC) -> None:
        if not isinstance(normalize_form, NormalizeForm):
            raise ArgumentError(f"NormalizeUTF8: got {normalize_form!r}; wanted a NormalizeForm")
        self.form = normalize_form

    def __call__(self, text: object) -> Array:
        return _each("NormalizeUTF8", text, lambda s: normal_form(s, self.form))


@explaining
class RegexReplace:
    """Replaces the matches of a pattern (`mindspore.dataset.text.RegexReplace`).

    Args:
        pattern: regular expression in Python's syntax.
        replace: the replacement, in which ``$1`` stands for the first group of the match.
        replace_all: replace every match instead of only the first.

    Raises:
        ValueError: the pattern is no valid regular expression.

    Examples:
        >>> from duograph.dataset import text
        >>> str(text.RegexReplace("(a)(b)", "$2$1")("abab"))
        'baba'
    """

    def __init__(self, pattern: str, replace: str, replace_all: bool = True) -> None:
        self.pattern = compiled("RegexReplace", pattern)
        if not isinstance(replace, str):
            raise ArgumentError(f"RegexReplace: got replace={replace!r}; wanted a str")
        self.replace = re.sub(r"\\\\\$|\$(\d)", lambda m: rf"\g<{m[1]}>" if m[1] else "$",
                              replace.replace("\\", r"\\"))  # fmt: skip
        self.count = 0 if replace_all else 1

    def __call__(self, text: object) -> Array:
        return _each(
            "RegexReplace", text, lambda s: self.pattern.sub(self.replace, s, count=self.count)
        )


@explaining
class Ngram:
    """Joins each run of n neighbouring tokens (`mindspore.dataset.text.Ngram`).

    Args:
        n: number of tokens in a run, or a list of such numbers.
        left_pad, right_pad: (token, count): the token to add before or after the others, and how
            often, at most n - 1 times.
        separator: string between joined tokens.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: a number is below 1, or a count is negative.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import text
        >>> text.Ngram(2)(np.array(["a", "b", "c"])).tolist()
        ['a b', 'b c']
    """

    def __init__(
        self,
        n: int | Sequence[int],
        left_pad: tuple[str, int] = ("", 0),
        right_pad: tuple[str, int] = ("", 0),
        separator: str = " ",
    ) -> None:
        self.n = [n] if isinstance(n, int) else list(n)
        if not self.n or any(
            isinstance(i, bool) or not isinstance(i, int) or i < 1 for i in self.n
        ):
            raise ArgumentValueError(f"Ngram: got n={n!r}; wanted 1 or more")
        for pad in (left_pad, right_pad):
            if not isinstance(pad, tuple) or len(pad) != 2 or not isinstance(pad[0], str):
                raise ArgumentError(f"Ngram: got {pad!r}; wanted (token, count)")
            if pad[1] < 0:
                raise ArgumentValueError(f"Ngram: got {pad!r}; wanted a count of 0 or more")
        self.left, self.right, self.separator = left_pad, right_pad, separator

    def __call__(self, text: object) -> Array:
        tokens = [str(t) for t in np.atleast_1d(strings_of("Ngram", text))]
        found = []
        for n in self.n:
            before = [self.left[0]] * min(self.left[1], n - 1)
            after = [self.right[0]] * min(self.right[1], n - 1)
            every = before + tokens + after
            grams = [every[i : i + n] for i in range(len(every) - n + 1)]
            found += [self.separator.join(g) for g in grams] or [""]
        return np.array(found)


@explaining
class SlidingWindow:
    """Returns all runs of `width` neighbouring elements (`mindspore.dataset.text.SlidingWindow`).

    Args:
        width: number of elements in a run.
        axis: must be 0 or -1, since the array has one axis.

    Raises:
        ValueError: `width` is below 1; when called: the array does not have one axis.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import text
        >>> text.SlidingWindow(2)(np.array([1, 2, 3])).tolist()
        [[1, 2], [2, 3]]
    """

    def __init__(self, width: int, axis: int = 0) -> None:
        if isinstance(width, bool) or not isinstance(width, int) or width < 1:
            raise ArgumentValueError(f"SlidingWindow: got width={width!r}; wanted 1 or more")
        if axis not in (0, -1):
            raise ArgumentValueError(f"SlidingWindow: got axis={axis!r}; wanted 0")
        self.width = width

    def __call__(self, text: object) -> Array:
        array = np.asarray(text)
        if array.ndim != 1:
            raise ArgumentValueError(f"SlidingWindow: got shape {array.shape}; wanted one axis")
        count = len(array) - self.width + 1
        if count < 1:
            return array[:0]
        return np.stack([array[i : i + self.width] for i in range(count)])


@explaining
class ToNumber:
    """Converts strings to numbers (`mindspore.dataset.text.ToNumber`).

    Args:
        data_type: dtype of the numbers.

    Raises:
        RuntimeError: when called: a string is no number, or outside the range of the dtype.

    Examples:
        >>> import duograph as ms
        >>> from duograph.dataset import text
        >>> text.ToNumber(ms.int8)(["1", "-5"]).tolist()
        [1, -5]
    """

    def __init__(self, data_type: DTypeLike) -> None:
        self.dtype = as_dtype(data_type).np
        if self.dtype.kind not in "uif":
            raise ArgumentError(f"ToNumber: got {data_type!r}; wanted a dtype of numbers")

    def __call__(self, text: object) -> Array:
        array = strings_of("ToNumber", text)
        try:
            convert = float if self.dtype.kind == "f" else int
            found = [convert(str(s)) for s in array.ravel()]
        except ValueError:
            raise DatasetError(f"ToNumber: got {array.tolist()!r}; wanted numbers") from None
        if self.dtype.kind != "f":
            info = np.iinfo(self.dtype)
            for n in found:
                if not info.min <= n <= info.max:
                    raise DatasetError(f"ToNumber: {n} is out of the range of {self.dtype}")
        return np.array(found).astype(self.dtype).reshape(array.shape)


def _length(owner: str, value: object) -> int:
    """Return a length argument if it is a non-negative int; raise ArgumentValueError otherwise."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ArgumentValueError(f"{owner}: got {value!r}; wanted a length of 0 or more")
    return value


@explaining
class Truncate:
    """Keeps the first `max_seq_len` elements of the last axis (`mindspore.dataset.text.Truncate`).

    Raises:
        ValueError: the length is negative.

    Examples:
        >>> from duograph.dataset import text
        >>> text.Truncate(2)(["a", "b", "c"]).tolist()
        ['a', 'b']
    """

    def __init__(self, max_seq_len: int) -> None:
        self.length = _length("Truncate", max_seq_len)

    def __call__(self, text: object) -> Array:
        return np.asarray(text)[..., : self.length]


@explaining
class TruncateSequencePair:
    """Shortens the longer of two arrays until both have `max_length` elements together
    (`mindspore.dataset.text.TruncateSequencePair`).

    Raises:
        ValueError: the length is negative.

    Examples:
        >>> from duograph.dataset import text
        >>> [a.tolist() for a in text.TruncateSequencePair(4)([1, 2, 3], [4, 5, 6, 7])]
        [[1, 2], [4, 5]]
    """

    def __init__(self, max_length: int) -> None:
        self.length = _length("TruncateSequencePair", max_length)

    def __call__(self, first: object, second: object) -> tuple[Array, Array]:
        a, b = np.asarray(first), np.asarray(second)
        n, m = len(a), len(b)
        while n + m > self.length:
            if n > m:
                n -= 1
            else:
                m -= 1
        return a[:n], b[:m]


@explaining
class AddToken:
    """Adds a token before or after the tokens (`mindspore.dataset.text.AddToken`).

    Args:
        token: the token to add.
        begin: add it before the others instead of after them.

    Raises:
        TypeError: an argument has a wrong type.

    Examples:
        >>> from duograph.dataset import text
        >>> text.AddToken("T")(["a"]).tolist()
        ['T', 'a']
    """

    def __init__(self, token: str, begin: bool = True) -> None:
        if not isinstance(token, str) or not isinstance(begin, bool):
            raise ArgumentError(f"AddToken: got {token!r}, {begin!r}; wanted a str and a bool")
        self.token, self.begin = token, begin

    def __call__(self, text: object) -> Array:
        array = np.asarray(text)
        added = np.full((*array.shape[:-1], 1), self.token)
        return np.concatenate([added, array] if self.begin else [array, added], -1)


@explaining
def to_bytes(array: object, encoding: str = "utf8") -> Array:
    """Encode an array of strings to bytes (`mindspore.dataset.text.to_bytes`).

    Raises:
        TypeError: the argument is no array.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import text
        >>> text.to_bytes(np.array(["é"])).tolist()
        [b'\\xc3\\xa9']
    """
    if not isinstance(array, np.ndarray):
        raise ArgumentError(f"to_bytes: got {type(array).__name__}; wanted an array")
    return np.char.encode(array, encoding)


@explaining
def to_str(array: object, encoding: str = "utf8") -> Array:
    """Decode an array of bytes to strings (`mindspore.dataset.text.to_str`).

    Raises:
        TypeError: the argument is no array.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import text
        >>> text.to_str(np.array([b"ab"])).tolist()
        ['ab']
    """
    if not isinstance(array, np.ndarray):
        raise ArgumentError(f"to_str: got {type(array).__name__}; wanted an array")
    return np.char.decode(array, encoding)
