"""Transforms of text for `Dataset.map`, and vocabularies (`mindspore.dataset.text`).

Users construct them. The transforms take and return NumPy arrays of strings, except where they
convert strings to numbers.
"""

from __future__ import annotations

from .strings import (
    AddToken,
    CaseFold,
    FilterWikipediaXML,
    Ngram,
    NormalizeUTF8,
    RegexReplace,
    SlidingWindow,
    ToNumber,
    Truncate,
    TruncateSequencePair,
    to_bytes,
    to_str,
)
from .tokenizers import (
    BasicTokenizer,
    BertTokenizer,
    NormalizeForm,
    PythonTokenizer,
    RegexTokenizer,
    UnicodeCharTokenizer,
    UnicodeScriptTokenizer,
    WhitespaceTokenizer,
    WordpieceTokenizer,
)
from .vocab import CharNGram, FastText, GloVe, Lookup, ToVectors, Vectors, Vocab
