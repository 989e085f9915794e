"""Cached eager calls take arguments by position and by keyword, in every order, at every call."""

from __future__ import annotations

import inspect
import itertools

import duograph as ms
import numpy as np
import pytest
from duograph import mint, ops
from duograph.call_cache import cached_call, clear_cached_calls

CALLS = 5  # the third call of a kind is the first that is prepared


def one_tensor(x, y=2.0):
    return ops.mul(x, y)


def renamed(input, x=2.0):
    return ops.mul(input, x)


def tensor_last(n, x):
    return ops.mul(x, n)


def two_tensors(x, y, z=2.0):
    return ops.sub(x, ops.mul(y, 1.0)) if z is None else ops.sub(x, y)


def crossed(y, x):
    return ops.sub(x, y)


def attributes_named_as_operands(a, b, x=1.0, y=2.0):
    return ops.addcmul(a, a, b, x * y)


def three_tensors(x, y, z):
    return ops.addcmul(x, y, z, 0.5)


def same_twice(x):
    return ops.mul(x, x)


VALUES = [np.arange(1.0, 4.0, dtype=np.float32) + k for k in range(3)]
FUNCTIONS = {
    one_tensor: [VALUES[0], 3.0],
    renamed: [VALUES[0], 3.0],
    tensor_last: [3.0, VALUES[0]],
    two_tensors: [VALUES[0], VALUES[1], 3.0],
    crossed: [VALUES[0], VALUES[1]],
    attributes_named_as_operands: [VALUES[0], VALUES[1], 3.0, 5.0],
    three_tensors: VALUES,
    same_twice: [VALUES[0]],
}


def ways(function, values):
    """Yield (positional arguments, keyword arguments) of all ways to pass all values."""
    names = list(inspect.signature(function).parameters)
    for n in range(len(values) + 1):
        for rest in itertools.permutations(range(n, len(values))):
            yield values[:n], {names[i]: values[i] for i in rest}


def as_tensors(values):
    return [ms.Tensor(v) if isinstance(v, np.ndarray) else v for v in values]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_every_way_to_pass_arguments_gives_the_same_at_every_call(function):
    values = FUNCTIONS[function]
    want = function(*as_tensors(values)).asnumpy()
    cached = cached_call(function)
    count = 0
    for _ in range(CALLS):
        for args, kwargs in ways(function, values):
            named = dict(zip(kwargs, as_tensors(kwargs.values()), strict=True))
            got = cached(*as_tensors(args), **named)
            assert got.asnumpy().tobytes() == want.tobytes(), (args, kwargs)
            count += 1
    assert count >= CALLS * 2


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_other_values_passed_the_same_way_give_other_results(function):
    cached = cached_call(function)
    first = FUNCTIONS[function]
    second = [v[::-1].copy() if isinstance(v, np.ndarray) else v for v in first]
    for args, kwargs in ways(function, first):
        n, order = len(args), list(kwargs)
        names = list(inspect.signature(function).parameters)
        for _ in range(CALLS):
            for values in (first, second):
                want = function(*as_tensors(values)).asnumpy()
                named = {k: as_tensors([values[names.index(k)]])[0] for k in order}
                got = cached(*as_tensors(values[:n]), **named)
                assert got.asnumpy().tobytes() == want.tobytes(), (n, order)


def test_a_wrong_keyword_is_refused_at_every_call():
    cached = cached_call(one_tensor)
    x = ms.Tensor(VALUES[0])
    for _ in range(CALLS):
        assert cached(x=x).shape == (3,)
        with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
            cached(x, z=1.0)
        with pytest.raises(TypeError, match="multiple values"):
            cached(x, x=x)


def named_first(module):
    """Yield the functions of a module that need one argument, with the name of that argument."""
    for name in sorted(n for n in module.__all__ if not n.endswith("_")):
        function = getattr(module, name)
        if not callable(function) or inspect.isclass(function):
            continue
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):
            continue
        required = [p for p in parameters if p.default is p.empty and p.kind < p.VAR_POSITIONAL]
        if len(required) == 1 and required[0].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD:
            yield name, function, required[0].name


@pytest.mark.parametrize("module", [ops, mint, mint.nn.functional], ids=lambda m: m.__name__)
def test_public_functions_take_their_tensor_by_keyword_at_every_call(module):
    x = ms.Tensor(np.linspace(0.1, 0.9, 6, dtype=np.float32).reshape(2, 3))
    clear_cached_calls()
    tried = 0
    for name, function, keyword in named_first(module):
        try:
            want = function(x.copy())
        except (TypeError, ValueError, RuntimeError):  # it takes another kind of argument
            continue
        for _ in range(CALLS):
            got = function(**{keyword: x.copy()})
        if isinstance(want, ms.Tensor):
            assert isinstance(got, ms.Tensor) and got.shape == want.shape, name
            assert got.dtype == want.dtype, name
        tried += 1
    assert tried > 20
