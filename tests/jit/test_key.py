"""The key of a compiled call: equal for calls that may share a program, else explained."""

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor, nn
from duograph.compiler.key import bind_call


def key(*args, **kwargs):
    bound = bind_call(args, kwargs)
    return (bound or bind_call(args, kwargs))[0]


def ones(*shape):
    return Tensor(np.ones(shape, np.float32))


def test_values_of_tensors_are_no_part_of_the_key():
    assert key(ones(2), 3) == key(ones(2) * 5, 3)
    assert hash(key(ones(2), 3)) == hash(key(ones(2) * 5, 3))


def test_the_differing_field_is_named():
    old = key(ones(2), scale=1)
    assert key(ones(3), scale=1).difference_from(old).startswith("argument 0 was float32[2]")
    assert key(ones(2), scale=2).difference_from(old).startswith("keyword arguments were")
    assert "nothing differs" in key(ones(2), scale=1).difference_from(old)


NAMED = {
    "a tensor": (lambda x: x, (1,), {}, ["x"]),
    "behind a constant": (lambda n, x: x * n, (3, 1), {}, ["x"]),
    "between constants": (lambda n, x, m, y: x * n + y * m, ("", 1, None, 1), {}, ["x", "y"]),
    "in a list": (lambda n, xs: xs[0] + xs[2], (2, [1, 5, 1]), {}, ["xs[0]", "xs[2]"]),
    "in a dict of tuples": (lambda d: d, ({"a": (5, 1), 3: 1},), {}, ["d['a'][1]", "d[3]"]),
    "by keyword": (lambda n, *, p: p, (2,), {"p": 1}, ["p"]),
    "of a star": (lambda x, *rest: x, (1, 2, 1), {}, ["x", "2"]),
    "in a set, as a constant": (lambda s, x: x, ({4}, 1), {}, ["x"]),
}


@pytest.mark.parametrize("name", NAMED)
def test_tensors_are_named_beside_constants(name):
    """Each 1 of a row stands for a Tensor; messages and `explain` call it by its parameter."""

    def given(value):
        if type(value) in (list, tuple):
            return type(value)(map(given, value))
        if type(value) is dict:
            return {k: given(v) for k, v in value.items()}
        return ones(2) if value == 1 else value

    function, args, kwargs, wanted = NAMED[name]
    f = ms.jit(function)
    made = key(*given(args), **given(kwargs))
    assert made.tensor_names(f.parameter_names(0)) == [f"argument {w}" for w in wanted]


def test_reports_name_the_argument_that_is_written():
    class Holder:
        @ms.jit
        def method(self, n, x):
            x.add_(n)
            return x

    class Net(nn.Cell):
        def construct(self, n, x):
            x.add_(n)
            return x

    function = ms.jit(lambda n, x: x.add_(n))
    x = ones(2)
    assert function.explain(2, x).writes == ["argument x"]
    assert Holder.method.explain(Holder(), 2, x).writes == ["argument x"]
    report = Net().explain(2, x)
    assert report.writes == ["argument x"]
    assert "%0: float32[2] = arg x" in report.details()


def test_the_differing_setting_is_named():
    before = ms.get_context("jit_level")
    old = key(ones(2))
    ms.set_context(jit_level="O2")
    try:
        assert key(ones(2)).difference_from(old) == f"jit_level was {before!r} and is 'O2'"
    finally:
        ms.set_context(jit_level=before)


def test_shared_tensors_are_part_of_the_key():
    x = ones(2)
    k, slots = bind_call((x, x), {}) or bind_call((x, x), {})
    shared = k.sharing_tensors({1: 0}, slots)
    assert shared != k and shared == k.sharing_tensors({1: 0}, slots)
    assert "one Tensor" in shared.difference_from(k)


def test_objects_in_the_key_are_held_and_compared_by_identity():
    class Option:
        def __eq__(self, other):
            return True

        __hash__ = None

    one, two = Option(), Option()
    assert key(one) == key(one) != key(two)
