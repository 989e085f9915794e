"""`typing.cast` in compiled code: it returns its value, of whatever kind, and nothing else happens.

D16: a function of Python's library that compiled code may call
"""

from __future__ import annotations

import typing
import warnings
from typing import cast

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor, ops

ARRAY = np.array([1.0, 2.0], np.float32)
LIST = [1.0, 2.0]


def tensor(x):
    return cast("Tensor", x) * 2


def class_as_type(x):
    return cast(Tensor, x) + cast(list[float], LIST)[1]


def by_module_and_keywords(x):
    return typing.cast(val=x, typ="Tensor") + 1


def array(x):
    found = cast("np.ndarray", ARRAY)
    return x + Tensor(found) if isinstance(found, np.ndarray) else x


def numbers(x):
    return x * cast(int, 2) + cast("float", 0.5) - cast("bool", True)


def number_of_the_graph(x):
    return x * cast("float", x.sum().item())


def containers(x):
    first, second = cast("tuple[Tensor, Tensor]", (x, x + 1))
    named = cast("dict[str, Tensor]", {"a": first})
    return named["a"] * second


def the_same_object(x):
    values = [x]
    cast("list[Tensor]", values).append(x + 1)
    return ops.stack(values) if cast("list[Tensor]", values) is values else x


def absent(x):
    return x if cast("Tensor | None", None) is None else x + 1


def function(x):
    return cast("typing.Callable[[Tensor], Tensor]", tensor)(x)


def size(x):
    return x.reshape(cast("int", x.shape[0]), 1) + cast("int", x.shape[0])


def in_a_branch(x):
    if x.sum() > 0:
        y = cast("Tensor", x) + 1
    else:
        y = cast("Tensor", -x)
    return y


def in_a_loop(x):
    i = Tensor(0)
    while i < 3:
        x, i = cast("tuple[Tensor, Tensor]", (x * 2, i + 1))
    return x


PROGRAMS = [
    tensor, class_as_type, by_module_and_keywords, array, numbers, number_of_the_graph, containers,
    the_same_object, absent, function, size, in_a_branch, in_a_loop,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("x", [[1.0, 2.0], [-3.0, 0.5], [4.0]], ids=str)
def test_a_cast_returns_its_value(program, x):
    given = np.array(x, np.float32)
    if program is array and given.size == 1:
        given = given.repeat(2)
    expected = program(Tensor(given))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing may run line by line
        compiled = ms.jit(program)
        found = compiled(Tensor(given))
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found.asnumpy(), expected.asnumpy())


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_cast_passes_an_open_size_on(n):
    compiled = ms.jit(size, dynamic=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = [compiled(Tensor(np.ones(k, np.float32))).asnumpy() for k in (3, n)]
    np.testing.assert_array_equal(found[1], np.full((n, 1), 1.0 + n))


@pytest.mark.parametrize("program", [tensor, numbers, containers, function, in_a_branch])
def test_gradients_pass_through_a_cast(program):
    x = Tensor(np.array([1.0, 2.0], np.float32))
    eager = ms.grad(lambda v: program(v).sum())(x)
    compiled = ms.jit(ms.grad(lambda v: program(v).sum()))(x)
    np.testing.assert_array_equal(compiled.asnumpy(), eager.asnumpy())


@pytest.mark.parametrize(
    "call", [lambda x: cast("Tensor"), lambda x: cast(), lambda x: cast("Tensor", x, x)]
)
def test_a_wrong_call_raises_as_in_python(call):
    x = Tensor(np.ones(2, np.float32))
    with pytest.raises(TypeError):
        call(x)
    with pytest.raises(TypeError):
        ms.jit(call)(x)
