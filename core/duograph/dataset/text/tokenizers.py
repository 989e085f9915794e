"""Transforms of strings into arrays of tokens.

`dataset.text` exports them for use in `Dataset.map`. With `with_offsets`, a tokenizer also returns
two arrays, uint32 (n,): where each token starts and ends in the UTF-8 bytes of the text.
"""

from __future__ import annotations

import enum
import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from ...call_errors import explain_methods, explaining
from ...errors import ArgumentError, ArgumentValueError
from ..rows import Array
from .vocab import Vocab, strings_of

__all__ = [
    "BasicTokenizer", "BertTokenizer", "NormalizeForm", "PythonTokenizer", "RegexTokenizer",
    "UnicodeCharTokenizer", "UnicodeScriptTokenizer", "WhitespaceTokenizer", "WordpieceTokenizer",
]  # fmt: skip

Token: TypeAlias = tuple[str, int, int]  # a token, its first byte, and the byte after it
Tokens: TypeAlias = Array | tuple[Array, ...]  # the tokens, perhaps with first and last bytes


class NormalizeForm(enum.IntEnum):
    """Normal forms of Unicode text (`mindspore.dataset.text.NormalizeForm`)."""

    NONE = 0
    NFC = 1
    NFKC = 2
    NFD = 3
    NFKD = 4


_FORMS: dict[NormalizeForm, Callable[[str], str]] = {
    NormalizeForm.NONE: lambda s: s,
    NormalizeForm.NFC: lambda s: unicodedata.normalize("NFC", s),
    NormalizeForm.NFKC: lambda s: unicodedata.normalize("NFKC", s),
    NormalizeForm.NFD: lambda s: unicodedata.normalize("NFD", s),
    NormalizeForm.NFKD: lambda s: unicodedata.normalize("NFKD", s),
}


def normal_form(text: str, form: NormalizeForm) -> str:
    """Convert a string to a Unicode normal form, such as NFC."""
    return _FORMS[form](text)


def scalar_text(owner: str, text: object) -> str:
    """Return the string in a 0-d array, or the str itself; bytes are decoded.

    Raises:
        ArgumentError: the value is something else.
    """
    found = text.item() if isinstance(text, (np.ndarray, np.generic)) and not text.ndim else text
    if isinstance(found, bytes):
        return found.decode()
    if not isinstance(found, str):
        raise ArgumentError(f"{owner}: got {type(text).__name__}; wanted a string")
    return found


def _flag(owner: str, name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ArgumentError(f"{owner}: got {name}={value!r}; wanted True or False")
    return value


class _Tokenizer:
    """Base class of tokenizers of one string; a subclass implements `_tokens`.

    A call returns the array of tokens, and with `with_offsets` also their offsets. A string without
    tokens gives one empty token.
    """

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        explain_methods(cls, "__init__")

    def __init__(self, with_offsets: bool = False) -> None:
        self.with_offsets = _flag(type(self).__name__, "with_offsets", with_offsets)

    def _tokens(self, text: str) -> Iterator[Token]:
        raise NotImplementedError

    def __call__(self, text: object) -> Tokens:
        found = list(self._tokens(scalar_text(type(self).__name__, text)))
        return made(found or [("", 0, 0)], self.with_offsets)


def made(found: list[Token], with_offsets: bool) -> Tokens:
    """Return the tokens as an array and, with `with_offsets`, two arrays of their offsets."""
    tokens = np.array([t[0] for t in found])
    if not with_offsets:
        return tokens
    return tokens, *(np.array([t[i] for t in found], np.uint32) for i in (1, 2))


def _spans(text: str, spans: Iterator[tuple[int, int]]) -> Iterator[Token]:
    """Yield (token, start, end) for each (begin, end) range of characters of a text.

    Start and end are offsets in the UTF-8 bytes of the text.
    """
    at = place = 0
    for begin, end in spans:
        place += len(text[at:begin].encode())
        token = text[begin:end]
        size = len(token.encode())
        yield token, place, place + size
        at, place = end, place + size


class UnicodeCharTokenizer(_Tokenizer):
    """Splits a string into characters (`mindspore.dataset.text.UnicodeCharTokenizer`).

    Examples:
        >>> from duograph.dataset import text
        >>> text.UnicodeCharTokenizer()("ab").tolist()
        ['a', 'b']
    """

    def _tokens(self, text: str) -> Iterator[Token]:
        return _spans(text, ((i, i + 1) for i in range(len(text))))


class WhitespaceTokenizer(_Tokenizer):
    """Splits a string at whitespace (`mindspore.dataset.text.WhitespaceTokenizer`).

    Examples:
        >>> from duograph.dataset import text
        >>> text.WhitespaceTokenizer()("a  bc").tolist()
        ['a', 'bc']
    """

    def _tokens(self, text: str) -> Iterator[Token]:
        return _spans(text, (m.span() for m in re.finditer(r"\S+", text)))


def _script(char: str) -> str:
    """Return the script of a character, the first word of its Unicode name, such as "LATIN".

    The words "IDEOGRAPHIC" and "KANGXI" become "CJK". Characters that are no letters or marks, such
    as digits, have the script "COMMON".
    """
    if unicodedata.category(char)[0] not in "LM":
        return "COMMON"
    name = unicodedata.name(char, "COMMON").split()[0]
    return "CJK" if name in ("IDEOGRAPHIC", "KANGXI") else name


class UnicodeScriptTokenizer(_Tokenizer):
    """Splits a string where the script changes (`mindspore.dataset.text.UnicodeScriptTokenizer`).

    Digits and signs count as one script. Spaces are omitted unless `keep_whitespace`.

    Args:
        keep_whitespace: return runs of spaces as tokens.
        with_offsets: also return the offsets of the tokens.

    Examples:
        >>> from duograph.dataset import text
        >>> text.UnicodeScriptTokenizer()("ab 12!").tolist()
        ['ab', '12!']
    """

    def __init__(self, keep_whitespace: bool = False, with_offsets: bool = False) -> None:
        super().__init__(with_offsets)
        self.keep_whitespace = _flag("UnicodeScriptTokenizer", "keep_whitespace", keep_whitespace)

    def _runs(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield (begin, end) of each longest run of characters of the same script.

        A combining mark belongs to the script of the character before it. Runs of spaces are
        omitted unless `self.keep_whitespace` is set.
        """
        begin, last = 0, ""
        for i, char in enumerate([*text, ""]):
            kind = "" if not char else "SPACE" if char.isspace() else _script(char)
            if kind == "COMBINING" and last:
                kind = last  # a mark belongs to the letter before it
            if i and kind != last:
                if last != "SPACE" or self.keep_whitespace:
                    yield begin, i
                begin = i
            last = kind

    def _tokens(self, text: str) -> Iterator[Token]:
        return _spans(text, self._runs(text))


class RegexTokenizer(_Tokenizer):
    """Splits a string at the matches of a pattern (`mindspore.dataset.text.RegexTokenizer`).

    Args:
        delim_pattern: regular expression of the delimiters, in Python's syntax.
        keep_delim_pattern: regular expression; a delimiter that it matches completely becomes a
            token.
        with_offsets: also return the offsets of the tokens.

    Raises:
        ValueError: the pattern is no valid regular expression.

    Examples:
        >>> from duograph.dataset import text
        >>> text.RegexTokenizer(r"\\s+")("a  bc").tolist()
        ['a', 'bc']
    """

    def __init__(
        self, delim_pattern: str, keep_delim_pattern: str = "", with_offsets: bool = False
    ) -> None:
        super().__init__(with_offsets)
        self.delim = compiled("RegexTokenizer", delim_pattern)
        self.keep = compiled("RegexTokenizer", keep_delim_pattern) if keep_delim_pattern else None

    def _parts(self, text: str) -> Iterator[tuple[int, int]]:
        at = 0
        for m in self.delim.finditer(text):
            if m.start() > at:
                yield at, m.start()
            if m.end() > m.start() and self.keep is not None and self.keep.fullmatch(m.group()):
                yield m.span()
            at = m.end()
        if at < len(text):
            yield at, len(text)

    def _tokens(self, text: str) -> Iterator[Token]:
        return _spans(text, self._parts(text))


def compiled(owner: str, pattern: object) -> re.Pattern[str]:
    """Return a compiled regular expression; `owner` is the transform, for messages.

    Raises:
        ArgumentError: the pattern is no string.
        ArgumentValueError: the pattern is no valid regular expression.
    """
    if not isinstance(pattern, str):
        raise ArgumentError(f"{owner}: got the pattern {pattern!r}; wanted a str")
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ArgumentValueError(f"{owner}: got the pattern {pattern!r} ({error})") from None


def _is_cjk(char: str) -> bool:
    """Return whether a character is a Chinese ideograph."""
    n = ord(char)
    return (
        0x4E00 <= n <= 0x9FFF or 0x3400 <= n <= 0x4DBF or 0x20000 <= n <= 0x2CEAF
        or 0xF900 <= n <= 0xFAFF or 0x2F800 <= n <= 0x2FA1F
    )  # fmt: skip


def _is_punctuation(char: str) -> bool:
    """Return whether BERT treats a character as a separate token: ASCII symbols and punctuation."""
    n = ord(char)
    return 33 <= n <= 47 or 58 <= n <= 64 or 91 <= n <= 96 or 123 <= n <= 126 or (
        unicodedata.category(char)[0] == "P"
    )  # fmt: skip


_UNUSED = re.compile(r"\[CLS\]|\[SEP\]|\[UNK\]|\[PAD\]|\[MASK\]|\[unused\d+\]")


class BasicTokenizer(_Tokenizer):
    """Splits a string as BERT does: at spaces, signs and ideographs
    (`mindspore.dataset.text.BasicTokenizer`).

    Args:
        lower_case: fold the case, decompose characters and remove accents.
        keep_whitespace: return runs of spaces as tokens.
        normalization_form: the NormalizeForm that is used without `lower_case`.
        preserve_unused_token: keep special tokens such as ``[CLS]``, ``[SEP]``, ``[UNK]``,
            ``[PAD]`` and ``[MASK]`` whole.
        with_offsets: also return the offsets of the tokens, in the normalised text.

    Raises:
        TypeError: an argument has a wrong type.

    Examples:
        >>> from duograph.dataset import text
        >>> text.BasicTokenizer(lower_case=True)("Don't!").tolist()
        ['don', "'", 't', '!']
    """

    def __init__(
        self,
        lower_case: bool = False,
        keep_whitespace: bool = False,
        normalization_form: NormalizeForm = NormalizeForm.NONE,
        preserve_unused_token: bool = True,
        with_offsets: bool = False,
    ) -> None:
        super().__init__(with_offsets)
        owner = type(self).__name__
        self.lower_case = _flag(owner, "lower_case", lower_case)
        self.keep_whitespace = _flag(owner, "keep_whitespace", keep_whitespace)
        self.preserve = _flag(owner, "preserve_unused_token", preserve_unused_token)
        if not isinstance(normalization_form, NormalizeForm):
            raise ArgumentError(f"{owner}: got normalization_form={normalization_form!r}")
        self.form = normalization_form

    def _normalised(self, text: str) -> str:
        """Return the text in lower case if `self.lower_case` is set, else in normal form.

        Lower case includes the removal of accents; special tokens such as [CLS] keep their case if
        `self.preserve` is set. The normal form is `self.form`. Control characters are removed.
        """
        if self.lower_case:
            kept = _UNUSED.finditer(text) if self.preserve else iter(())
            parts, at = [], 0
            for m in kept:
                parts += [_folded(text[at : m.start()]), m.group()]
                at = m.end()
            text = "".join([*parts, _folded(text[at:])])
        elif self.form != NormalizeForm.NONE:
            text = normal_form(text, self.form)
        return "".join(c for c in text if c in "\t\n\r" or unicodedata.category(c)[0] != "C")

    def _pieces(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield (begin, end) of each token.

        Special tokens such as [CLS] stay whole if `self.preserve` is set.
        """
        at = 0
        for m in _UNUSED.finditer(text) if self.preserve else ():
            yield from self._words(text, at, m.start())
            yield m.span()
            at = m.end()
        yield from self._words(text, at, len(text))

    def _words(self, text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield (begin, end) of each token in a range of characters that has no special tokens.

        Words are separated by spaces; punctuation signs and Chinese ideographs are separate tokens.
        """
        i = begin
        while i < end:
            char, j = text[i], i + 1
            if char.isspace():
                while j < end and text[j].isspace():
                    j += 1
                if self.keep_whitespace:
                    yield i, j
            elif _is_punctuation(char) or _is_cjk(char):
                yield i, j
            else:
                while j < end and not (
                    text[j].isspace() or _is_punctuation(text[j]) or _is_cjk(text[j])
                ):
                    j += 1
                yield i, j
            i = j

    def _tokens(self, text: str) -> Iterator[Token]:
        text = self._normalised(text)
        return _spans(text, self._pieces(text))


def _folded(text: str) -> str:
    """Fold the case of a text, remove accents, and replace wide characters by narrow ones."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    apart = unicodedata.normalize("NFD", folded)
    return "".join(c for c in apart if unicodedata.category(c) != "Mn")


@explaining
class WordpieceTokenizer:
    """Splits words into the longest pieces of a vocabulary
    (`mindspore.dataset.text.WordpieceTokenizer`).

    Args:
        vocab: the Vocab of the pieces.
        suffix_indicator: prefix of the pieces that do not begin a word.
        max_bytes_per_token: words that are longer than this count as unknown.
        unknown_token: token for words that cannot be split into pieces; ``""`` keeps such words
            unchanged.
        with_offsets: also return the offsets of the pieces in their word.

    Raises:
        TypeError: `vocab` is no Vocab.
        ValueError: `max_bytes_per_token` is below 0.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import text
        >>> vocab = text.Vocab.from_list(["wor", "##ld"])
        >>> text.WordpieceTokenizer(vocab)(np.array(["world", "x"])).tolist()
        ['wor', '##ld', '[UNK]']
    """

    def __init__(
        self,
        vocab: Vocab,
        suffix_indicator: str = "##",
        max_bytes_per_token: int = 100,
        unknown_token: str = "[UNK]",
        with_offsets: bool = False,
    ) -> None:
        owner = type(self).__name__
        if not isinstance(vocab, Vocab):
            raise ArgumentError(f"{owner}: got {type(vocab).__name__}; wanted a Vocab")
        if not isinstance(max_bytes_per_token, int) or max_bytes_per_token < 0:
            raise ArgumentValueError(f"{owner}: got max_bytes_per_token={max_bytes_per_token!r}")
        self.ids, self.suffix = vocab.vocab(), suffix_indicator
        self.longest, self.unknown = max_bytes_per_token, unknown_token
        self.with_offsets = _flag(owner, "with_offsets", with_offsets)

    def pieces(self, word: str) -> list[Token]:
        """Split a word greedily into the longest pieces in the vocabulary.

        Returns (piece, start, end) for each piece; start and end are offsets in the word's UTF-8
        bytes. A word that cannot be split, or that is too long, is returned as one piece: the token
        for unknown words if there is one, else the word itself. An empty word is one empty piece.
        """
        whole = [(self.unknown or word if word else "", 0, len(word.encode()))]
        if len(word.encode()) > self.longest:
            return whole
        found: list[Token] = []
        at = place = 0
        while at < len(word):
            for end in range(len(word), at, -1):
                piece = (self.suffix if at else "") + word[at:end]
                if piece in self.ids:
                    size = len(word[at:end].encode())
                    found.append((piece, place, place + size))
                    at, place = end, place + size
                    break
            else:
                return whole
        return found or whole

    def __call__(self, text: object) -> Tokens:
        words = [str(w) for w in np.atleast_1d(strings_of("WordpieceTokenizer", text))]
        return made([p for w in words for p in self.pieces(w)], self.with_offsets)


@explaining
class BertTokenizer:
    """Applies `BasicTokenizer`, then `WordpieceTokenizer` (`mindspore.dataset.text.BertTokenizer`).

    The arguments are those of these two classes; offsets are positions in the normalised text.

    Examples:
        >>> from duograph.dataset import text
        >>> vocab = text.Vocab.from_list(["wor", "##ld", "!"])
        >>> text.BertTokenizer(vocab, lower_case=True)("World!").tolist()
        ['wor', '##ld', '!']
    """

    def __init__(
        self,
        vocab: Vocab,
        suffix_indicator: str = "##",
        max_bytes_per_token: int = 100,
        unknown_token: str = "[UNK]",
        lower_case: bool = False,
        keep_whitespace: bool = False,
        normalization_form: NormalizeForm = NormalizeForm.NONE,
        preserve_unused_token: bool = True,
        with_offsets: bool = False,
    ) -> None:
        self.basic = BasicTokenizer(
            lower_case, keep_whitespace, normalization_form, preserve_unused_token
        )
        self.wordpiece = WordpieceTokenizer(
            vocab, suffix_indicator, max_bytes_per_token, unknown_token
        )
        self.with_offsets = _flag("BertTokenizer", "with_offsets", with_offsets)

    def __call__(self, text: object) -> Tokens:
        words = self.basic._tokens(scalar_text("BertTokenizer", text))
        found = [
            (piece, begin + a, begin + b)
            for word, begin, _ in words
            for piece, a, b in self.wordpiece.pieces(word)
        ]
        return made(found or [("", 0, 0)], self.with_offsets)


@explaining
class PythonTokenizer:
    """Calls a tokenizer that the user has written (`mindspore.dataset.text.PythonTokenizer`).

    Args:
        tokenizer: function from a str to a list of tokens.

    Raises:
        TypeError: the argument is no function.

    Examples:
        >>> import numpy as np
        >>> from duograph.dataset import text
        >>> text.PythonTokenizer(str.split)(np.array("a b")).tolist()
        ['a', 'b']
    """

    def __init__(self, tokenizer: Callable[[str], object]) -> None:
        if not callable(tokenizer):
            raise ArgumentError(f"PythonTokenizer: got {type(tokenizer).__name__}")
        self.tokenizer = tokenizer

    def __call__(self, in_array: object) -> Array:
        return np.array(self.tokenizer(scalar_text("PythonTokenizer", in_array)))
