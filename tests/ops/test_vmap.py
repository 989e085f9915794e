"""vmap: axes of arguments and of results, nested, and tuples of axes of a wrong length."""

from __future__ import annotations

import collections

import duograph as ms
import numpy as np
import pytest

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def pair(x):
    return x, x * 2


def nested(x):
    return x, (x * 2, x * 3)


RESULTS = {
    "an axis for each": (pair, (0, 1), [X, (X * 2).T]),
    "an axis for all": (pair, 1, [X.T, (X * 2).T]),
    "a list of axes": (pair, [1, 0], [X.T, X * 2]),
    "nested axes": (nested, (0, (1, 0)), [X, (X * 2).T, X * 3]),
    "one axis for a nested result": (nested, (0, 1), [X, (X * 2).T, (X * 3).T]),
    "the first item": (pair, (None, 0), [X[0], X * 2]),
}


def leaves(value):
    return [u for v in value for u in leaves(v)] if isinstance(value, tuple) else [value]


@pytest.mark.parametrize("wrap", [lambda f: f, ms.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("name", RESULTS)
def test_the_mapped_axis_of_results(name, wrap):
    function, axes, want = RESULTS[name]
    found = leaves(wrap(ms.vmap(function, 0, axes))(ms.Tensor(X)))
    assert len(found) == len(want)
    for got, expected in zip(found, want, strict=True):
        np.testing.assert_array_equal(got.asnumpy(), expected)


WRONG = {
    "too few axes of results": (pair, 0, (0,), "out_axes (0,) for a result of 2 items"),
    "too many axes of results": (pair, 0, (0, 1, 1), "out_axes (0, 1, 1) for a result of 2 items"),
    "too few nested axes": (nested, 0, (0, (1,)), "out_axes (1,) for a result of 2 items"),
    "axes for one Tensor": (lambda x: x, 0, (0,), "out_axes (0,) for a result that is one Tensor"),
    "nested axes for Tensors": (pair, 0, (0, (0, 1)), "for a result that is one Tensor"),
}


@pytest.mark.parametrize("wrap", [lambda f: f, ms.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("name", WRONG)
def test_axes_that_do_not_fit_the_results_are_refused(name, wrap):
    function, in_axes, out_axes, text = WRONG[name]
    with pytest.raises(ValueError) as caught:
        wrap(ms.vmap(function, in_axes, out_axes))(ms.Tensor(X))
    assert text in str(caught.value)


def test_axes_that_do_not_fit_a_nested_argument_are_refused():
    x = ms.Tensor(X)
    run = ms.vmap(lambda pair: pair[0] + pair[1], ((0, 0, 0),))
    with pytest.raises(ValueError, match=r"in_axes \(0, 0, 0\) for an argument of 2 items"):
        run((x, x))


@pytest.mark.parametrize("axis", [True, 1.0, "0", (True,), ((0, None),)])
def test_axes_of_arguments_are_ints(axis):
    with pytest.raises((TypeError, ValueError), match=r"vmap: got .* wanted"):
        ms.vmap(lambda x: x * 2, axis)(ms.Tensor(X))


Point = collections.namedtuple("Point", "x y")
MAPPED = {
    "lengths in one argument": (lambda p: p[0], [(X, X[:1])], "2 for argument 0 and 1 for"),
    "lengths in a nested one": (lambda p: p[0], [(X, (X, X[:1]))], "2 for argument 0 and 1 for"),
    "lengths of two arguments": (lambda a, b: a, [X, X.T], "2 for argument 0 and 3 for argument 1"),
}


@pytest.mark.parametrize("wrap", [lambda f: f, ms.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("name", MAPPED)
def test_mapped_axes_of_different_lengths_are_refused(name, wrap):
    function, args, text = MAPPED[name]

    def tensors(v):
        return tuple(map(tensors, v)) if isinstance(v, tuple) else ms.Tensor(v)

    with pytest.raises(ValueError) as caught:
        wrap(ms.vmap(function))(*map(tensors, args))
    assert text in str(caught.value)


@pytest.mark.parametrize("nest", [lambda a, b: (a, b), lambda a, b: [a, b], Point])
def test_containers_of_mapped_tensors(nest):
    found = ms.vmap(lambda p: p[0] + 10 * p[1])(nest(ms.Tensor(X), ms.Tensor(X[:, 0])))
    np.testing.assert_array_equal(found.asnumpy(), X + 10 * X[:, :1])


def test_a_namedtuple_of_results_stays_one():
    pair_of = collections.namedtuple("Pair", "a b")
    got = ms.vmap(lambda t: pair_of(t * 2, t.sum()), 0, (1, 0))(ms.Tensor(X))
    assert type(got) is pair_of
    np.testing.assert_array_equal(got.a.asnumpy(), (X * 2).T)
    np.testing.assert_array_equal(got.b.asnumpy(), X.sum(1))
