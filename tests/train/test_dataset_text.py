"""Tests of text transforms. Expected values are those of MindSpore 2.10."""

from __future__ import annotations

import duograph as ms
import numpy as np
import pytest
from duograph import dataset as ds
from duograph.dataset import text

S = "Hello World 你好，ab12!  é Ünï don't 中b"
WORDS = ["hel", "##lo", "##w", "wor", "##ld", "[UNK]", "你", "ab", "##1", "!", "hello"]
V = text.Vocab.from_list(WORDS, ["<pad>"], True)

TOKENS = {
    "UnicodeCharTokenizer()('Hé 你')": ["H", "é", " ", "你"],
    "WhitespaceTokenizer()(S)": ["Hello", "World", "你好，ab12!", "é", "Ünï", "don't", "中b"],
    "UnicodeScriptTokenizer()(S)": [
        "Hello", "World", "你好", "，", "ab", "12!", "é", "Ünï", "don", "'", "t", "中", "b"],
    "UnicodeScriptTokenizer(True)(S)": [
        "Hello", " ", "World", " ", "你好", "，", "ab", "12!", "  ", "é", " ", "Ünï", " ", "don",
        "'", "t", " ", "中", "b"],
    "RegexTokenizer('[\\\\s,]+', '[,]+')('a b ,c')": ["a", "b", "c"],
    "RegexTokenizer('[,]+', '[,]+')('a,b')": ["a", ",", "b"],
    "BasicTokenizer()(S + '[CLS] x[UNK]')": [
        "Hello", "World", "你", "好", "，", "ab12", "!", "é", "Ünï", "don", "'", "t", "中", "b",
        "[CLS]", "x", "[UNK]"],
    "BasicTokenizer(True)(S)": [
        "hello", "world", "你", "好", ",", "ab12", "!", "e", "uni", "don", "'", "t", "中", "b"],
    "BasicTokenizer(True, True)('A b  c')": ["a", " ", "b", "  ", "c"],
    "WordpieceTokenizer(V)(['hello', 'world', '你好', 'ab1'])": [
        "hello", "wor", "##ld", "[UNK]", "ab", "##1"],
    "WordpieceTokenizer(V, unknown_token='')(['hellox', 'world'])": ["hellox", "wor", "##ld"],
    "WordpieceTokenizer(V)('')": [""],
    "WordpieceTokenizer(V, max_bytes_per_token=3)(['hello', 'wor'])": ["[UNK]", "wor"],
    "BertTokenizer(V, lower_case=True)('Hello World ab1! 你')": [
        "hello", "wor", "##ld", "ab", "##1", "!", "你"],
    "Ngram([2, 3], ('_', 1), ('*', 2))(['a', 'b', 'c'])": [
        "_ a", "a b", "b c", "c *", "_ a b", "a b c", "b c *", "c * *"],
    "Ngram(5)(['a', 'b'])": [""],
    "SlidingWindow(2)([1, 2, 3])": [[1, 2], [2, 3]],
    "SlidingWindow(5)([1, 2])": [],
    "ToNumber(ms.float32)('1.5e3')": 1500.0,
    "Truncate(2)(['a', 'b', 'c'])": ["a", "b"],
    "CaseFold()('Hello ÄẞİÇ')": "hello ässi̇ç",
    "NormalizeUTF8()('ṩﬁ①')": "ṩfi1",
    "RegexReplace('\\\\s+', '_')('a b  c')": "a_b_c",
    "RegexReplace('\\\\s+', '_', False)('a b  c')": "a_b  c",
    "RegexReplace('(a)(b)', '$2$1')('ab ab')": "ba ba",
    "AddToken('T', False)([['a'], ['b']])": [["a", "T"], ["b", "T"]],
    "Lookup(V, '[UNK]')(['hel', 'zz'])": [1, 6],
    "to_str(text.to_bytes(np.array(['é'])))": ["é"],
}  # fmt: skip


@pytest.mark.parametrize("call", TOKENS)
def test_values_of_mindspore(call):
    assert eval(f"text.{call}").tolist() == TOKENS[call]


OFFSETS = {
    "WhitespaceTokenizer(True)(S)": ([0, 6, 12, 28, 31, 37, 43], [5, 11, 26, 30, 36, 42, 47]),
    "UnicodeScriptTokenizer(False, True)(S)": (
        [0, 6, 12, 18, 21, 23, 28, 31, 37, 40, 41, 43, 46],
        [5, 11, 18, 21, 23, 26, 30, 36, 40, 41, 42, 46, 47]),
    "BasicTokenizer(with_offsets=True)(S)": (
        [0, 6, 12, 15, 18, 21, 25, 28, 31, 37, 40, 41, 43, 46],
        [5, 11, 15, 18, 21, 25, 26, 30, 36, 40, 41, 42, 46, 47]),
    "WordpieceTokenizer(V, with_offsets=True)(['hello', 'world', '你好', 'ab1'])": (
        [0, 0, 3, 0, 0, 2], [5, 3, 5, 6, 2, 3]),
}  # fmt: skip


@pytest.mark.parametrize("call", OFFSETS)
def test_offsets(call):
    tokens, begin, end = eval(f"text.{call}")
    assert (begin.tolist(), end.tolist()) == OFFSETS[call] and len(tokens) == len(begin)
    assert begin.dtype == end.dtype == np.uint32


def test_vocabularies(tmp_path):
    assert V.vocab()["<pad>"] == 0 and V.tokens_to_ids(["hel", "zz"]) == [1, -1]
    assert V.ids_to_tokens(1) == "hel" and V.ids_to_tokens([1, 99]) == ["hel", ""]
    assert text.Vocab.from_list(["a", "b"], ["x"], False).vocab() == {"a": 0, "b": 1, "x": 2}
    assert text.Vocab.from_dict({"a": 3}).vocab() == {"a": 3}
    path = tmp_path / "v"
    path.write_text("a,1\nb,2\n")
    assert text.Vocab.from_file(path, ",", None, ["<p>"], False).vocab() == {
        "a": 0,
        "b": 1,
        "<p>": 2,
    }
    assert text.Vocab.from_file(path, "", 1).vocab() == {"a,1": 0}
    data = ds.NumpySlicesDataset(["b", "a", "b", "c", "c", "c"], ["text"])
    made = text.Vocab.from_dataset(data, "text", None, None, ["<p>"])
    assert made.vocab() == {"<p>": 0, "c": 1, "b": 2, "a": 3}
    assert text.Vocab.from_dataset(data, ["text"], (2, None), 1).vocab() == {"c": 0}


# file content: the words, with their line numbers as ids
WORD_FILES = {
    "line feeds": ("a\nb\n", ["a", "b"]),
    "no line feed at the end": ("a\nb", ["a", "b"]),
    "carriage returns": ("a\r\nb\r\n", ["a", "b"]),
    "an empty line": ("a\n\nb\n", ["a", "", "b"]),
    "an empty first line": ("\na\n", ["", "a"]),
    "spaces": (" a \nb\t\n", [" a ", "b\t"]),
    "no lines": ("", []),
    **{f"{ord(c):#x} in a word": (f"a{c}b\n{c}\nc\n", [f"a{c}b", c, "c"])
       for c in "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"},
    "carriage return in a word": ("a\rb\nc\n", ["a\rb", "c"]),
}  # fmt: skip


@pytest.mark.parametrize("name", WORD_FILES)
def test_ids_are_the_numbers_of_the_lines(tmp_path, name):
    content, words = WORD_FILES[name]
    (tmp_path / "words").write_bytes(content.encode())
    assert text.Vocab.from_file(tmp_path / "words").vocab() == {w: i for i, w in enumerate(words)}


def test_vectors_of_tokens_with_odd_characters(tmp_path):
    (tmp_path / "v").write_text("a\x85 1 2\n\u2028 3 4\n", encoding="utf-8")
    found = text.ToVectors(text.Vectors.from_file(tmp_path / "v"))(["\u2028", "a\x85"])
    assert found.tolist() == [[3, 4], [1, 2]]


def test_words_in_bytes_are_words():
    words = np.array(["hello", "world"])
    for call in (text.Ngram(2), text.WordpieceTokenizer(V), text.Lookup(V, "[UNK]")):
        assert call(np.char.encode(words)).tolist() == call(words).tolist()
    assert text.ToNumber(ms.int32)(np.array([b"12"])).tolist() == [12]


@pytest.mark.parametrize("wrong", [np.array([1, 2]), np.array([0.5]), np.array([True])])
def test_numbers_are_no_words(wrong):
    for call in (text.Lookup(V, "[UNK]"), text.Ngram(1), text.WordpieceTokenizer(V)):
        with pytest.raises(TypeError, match=f"got {wrong.dtype}; wanted strings"):
            call(wrong)


def test_vectors(tmp_path):
    path = tmp_path / "vectors"
    path.write_text("a 1 2\nb 3 4\n")
    vectors = text.GloVe.from_file(path)
    assert text.ToVectors(vectors)(["a", "B"]).tolist() == [[1, 2], [0, 0]]
    lower = text.ToVectors(vectors, [7, 7], True)(["B", "zz"])
    assert lower.tolist() == [[3, 4], [7, 7]] and lower.dtype == np.float32
    path.write_text("2gram-ab 1 2\n3gram-ab#END# 3 4\n")
    assert text.ToVectors(text.CharNGram.from_file(path))(["ab"]).tolist() == [[2, 3]]


def test_a_pipeline_of_text():
    data = ds.NumpySlicesDataset(["Hello world!", "你 ab1"], ["text"], shuffle=False)
    data = data.map([text.BertTokenizer(V, lower_case=True), text.Lookup(V)], "text")
    data = data.padded_batch(2, pad_info={"text": ([None], 0)})
    (ids,) = next(iter(data))
    assert ids.asnumpy().tolist() == [[11, 4, 5, 10], [7, 8, 9, 0]] and ids.dtype is ms.int32


ERRORS = {
    "text.Lookup(V)('zzz')": (RuntimeError, "unknown token 'zzz'"),
    "text.Lookup(V, 'zzz')": (ValueError, "lacks 'zzz'"),
    "text.Vocab.from_list(['a', 'a'])": (ValueError, "twice"),
    "text.Vocab.from_dict({'a': -1})": (ValueError, "negative"),
    "text.Vocab.from_file('nowhere')": (ValueError, "cannot read nowhere"),
    "text.ToNumber(ms.int8)('300')": (RuntimeError, "300 is out of the range"),
    "text.ToNumber(ms.int32)('a')": (RuntimeError, "wanted numbers"),
    "text.SlidingWindow(2)([[1, 2]])": (ValueError, "one axis"),
    "text.Ngram(0)": (ValueError, "n=0"),
    "text.RegexTokenizer('(')": (ValueError, "pattern"),
    "text.WordpieceTokenizer({})": (TypeError, "wanted a Vocab"),
    "text.WhitespaceTokenizer()(3)": (TypeError, "wanted a string"),
    "text.ToVectors(text.Vectors(), [1.0])": (ValueError, "unk_init"),
}


@pytest.mark.parametrize("call", ERRORS)
def test_errors(call):
    kind, pattern = ERRORS[call]
    with pytest.raises(kind, match=pattern):
        eval(call)
