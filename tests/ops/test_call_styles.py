"""Cached eager calls take arguments by position and by keyword, in every order, at every call."""

from __future__ import annotations

import ast
import contextlib
import doctest
import inspect
import io
import itertools
import re

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


def literal_calls(function, name):
    """Yield the arguments of the calls of a function in the Examples of its docstring."""
    space = {}
    for example in doctest.DocTestParser().get_examples(inspect.getdoc(function) or ""):
        for node in ast.walk(ast.parse(example.source)):
            if not isinstance(node, ast.Call) or name not in ast.unparse(node.func):
                continue
            if any(k.arg is None for k in node.keywords):  # **options
                continue
            try:
                if eval(ast.unparse(node.func), space) is not function:
                    continue
                args = [eval(ast.unparse(a), space) for a in node.args]
                kwargs = {k.arg: eval(ast.unparse(k.value), space) for k in node.keywords}
            except (NameError, SyntaxError):  # inside a lambda or a comprehension, or starred
                continue
            if not any(isinstance(v, ms.Parameter) for v in (*args, *kwargs.values())):
                yield args, kwargs  # ops on Parameters write to them
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(example.source, "<example>", "exec"), space)


def public_functions(module):
    """Yield (name, function) of a module's functions whose result depends on arguments alone."""
    for name in module.__all__:
        function = getattr(module, name)
        drawn = re.search(r"rand|drop|normal|unif|bern|multin|gamma|poiss|shuf|samp|laplace", name)
        if inspect.isfunction(function) and not drawn and not name.endswith("_"):
            yield name, function


def bits(value):
    if isinstance(value, ms.Tensor):
        return str(value.dtype), value.shape, value.asnumpy().tobytes()
    if isinstance(value, (list, tuple)):
        return [bits(v) for v in value]
    return value if isinstance(value, (int, float, str, bool)) else type(value)


BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@pytest.mark.parametrize(
    ("module", "least"), [(ops, 1500), (mint, 250), (mint.nn.functional, 100)],
    ids=["ops", "mint", "functional"],
)  # fmt: skip
def test_examples_take_their_arguments_by_keyword_at_every_call(module, least):
    clear_cached_calls()
    tried = 0
    for name, function in public_functions(module):
        signature = inspect.signature(function)
        for args, kwargs in literal_calls(function, name):
            want = bits(function(*args, **kwargs))
            bound = signature.bind(*args, **kwargs).arguments
            if any(signature.parameters[k].kind not in BY_NAME for k in bound):
                continue
            named = list(bound.items())
            for style in (named, named[::-1]):
                for _ in range(CALLS):
                    assert bits(function(**dict(style))) == want, (name, [k for k, _ in style])
                    tried += 1
    assert tried > least
