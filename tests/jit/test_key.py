"""The key of a compiled call: equal for calls that may share a program, else explained."""

import duograph as ms
import numpy as np
from duograph import Tensor
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
