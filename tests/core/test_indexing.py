"""`x[...]` and `x[...] = v` against NumPy, in every form, and the gradients of both."""

from __future__ import annotations

import duograph as ms
import numpy as np
import pytest

X = np.arange(60, dtype=np.float32).reshape(3, 4, 5) + 1
T = ms.Tensor

# name -> index; arrays stand for Tensors (and are given as arrays and lists as well)
FORMS = {
    "int": 1,
    "negative int": -1,
    "NumPy int": np.int32(2),
    "slice": slice(1, 3),
    "negative step": slice(None, None, -2),
    "out of range slice": slice(-10, 10),
    "empty slice": slice(2, 1),
    "ellipsis": ...,
    "None": None,
    "tuple of ints": (1, 2, -3),
    "empty tuple": (),
    "mixed basic": (slice(None), None, 1, ..., slice(4, None, -2)),
    "ellipsis in the middle": (0, ..., 2),
    "array": np.array([2, 0, 2]),
    "negative array": np.array([-1, 0]),
    "0-d array": np.array(1),
    "2-d array": np.array([[0, 2], [1, 1]]),
    "empty array": np.array([], np.int64),
    "two arrays": (np.array([0, 1]), np.array([3, 2])),
    "arrays that broadcast": (np.array([[0], [1]]), np.array([3, 2])),
    "arrays apart": (np.array([0, 1]), slice(None), np.array([4, 0])),
    "array and int": (np.array([0, 1]), 2),
    "array, slice, None": (slice(None, None, -1), None, np.array([3, 0])),
    "mask": X > 20,
    "mask of one axis": np.array([True, False, True]),
    "mask of two axes": X[:, :, 0] > 20,
    "mask of nothing": np.zeros((3, 4), bool),
    "mask and slice": (slice(None), np.array([True, False, True, True]), slice(1, 3)),
    "mask and int": (2, np.array([True, False, True, True])),
    "True": True,
    "False": False,
}


def as_tensors(index: object) -> object:
    if isinstance(index, tuple):
        return tuple(as_tensors(i) for i in index)
    return T(index) if isinstance(index, np.ndarray) else index


def as_lists(index: object) -> object:
    if isinstance(index, tuple):
        return tuple(as_lists(i) for i in index)
    return index.tolist() if isinstance(index, np.ndarray) and index.size else index


SPELLINGS = {"tensors": as_tensors, "arrays": lambda index: index, "lists": as_lists}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("name", FORMS)
def test_get_and_set(name: str, spelling: str) -> None:
    """B20: Indexing: int, negative, slice, ellipsis, None, tensor, bool mask, list; get and set"""
    index = FORMS[name]
    given = SPELLINGS[spelling](index)
    got = T(X)[given]
    assert got.shape == X[index].shape
    np.testing.assert_array_equal(got.asnumpy(), X[index])

    for value in (7.5, np.arange(X[index].size, dtype=np.float32).reshape(X[index].shape)):
        want = X.copy()
        want[index] = value
        x = T(X)
        before = x * 1
        x[given] = T(value) if isinstance(value, np.ndarray) else value
        np.testing.assert_array_equal(x.asnumpy(), want)
        np.testing.assert_array_equal(before.asnumpy(), X)


@pytest.mark.parametrize("name", FORMS)
def test_gradients_of_get_and_set(name: str) -> None:
    index = FORMS[name]
    given = as_tensors(index)
    weights = np.arange(X[index].size, dtype=np.float32).reshape(X[index].shape) + 1

    want = np.zeros_like(X)
    np.add.at(want, index, weights)
    got = ms.grad(lambda x: x[given] * T(weights))(T(X))
    np.testing.assert_array_equal(got.asnumpy(), want)

    def assign(x, v):
        x = x * 1
        x[given] = v
        return x * x

    gx, gv = ms.grad(assign, (0, 1))(T(X), T(weights))
    written = X.copy()
    written[index] = weights
    kept = np.ones_like(X)
    kept[index] = 0
    np.testing.assert_array_equal(gx.asnumpy(), 2 * written * kept)
    flat = np.arange(X.size).reshape(X.shape)[index]
    last = {int(at): k for k, at in enumerate(flat.reshape(-1))}  # of duplicates the last is kept
    wanted = np.zeros(weights.size, np.float32)
    for at, k in last.items():
        wanted[k] = 2 * written.reshape(-1)[at]
    np.testing.assert_array_equal(gv.asnumpy(), wanted.reshape(weights.shape))


@pytest.mark.parametrize(
    ("index", "kind", "pattern"),
    [
        (3, IndexError, r"3.*3"),
        (-4, IndexError, r"-4.*3"),
        ((0, 0, 0, 0), IndexError, "4.*3"),
        ((..., ...), IndexError, "llipsis"),
        (1.5, (IndexError, TypeError), "got 1.5; wanted an int"),
        ("a", (IndexError, TypeError), "got 'a'"),
        (np.array([5]), IndexError, "5"),
        (np.array([0.5]), (IndexError, TypeError), "float64"),
        (np.array([True, False]), IndexError, r"2.*3"),
        (slice(None, None, 0), ValueError, "step"),
        ((np.array([0, 1]), np.array([0, 1, 2])), (IndexError, ValueError), "broadcast"),
    ],
    ids=repr,
)
def test_refused_indices(index: object, kind: type[Exception], pattern: str) -> None:
    x = T(X)
    with pytest.raises(kind, match=pattern):
        x[as_tensors(index)]
    with pytest.raises(kind, match=pattern):
        x[as_tensors(index)] = 1.0
    np.testing.assert_array_equal(x.asnumpy(), X)
