"""Ownership of buffers: which references count as holders of a tensor's handle."""

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor, ops
from duograph.execution.ownership import holders, owns_buffer


@pytest.fixture
def computed():
    x = Tensor(np.arange(6, dtype=np.float32))
    return x + 1


def test_a_computed_tensor_owns_its_buffer(computed):
    assert holders(computed) == 1
    assert owns_buffer(computed)


def test_an_alias_is_a_holder(computed):
    alias = computed.reshape(2, 3)
    assert holders(computed) == holders(alias) == 2
    assert not owns_buffer(computed)
    del alias
    assert owns_buffer(computed)


def test_an_exported_array_is_a_holder(computed):
    array = computed.asnumpy()
    assert not owns_buffer(computed)
    del array
    assert owns_buffer(computed)


def test_a_residual_of_a_tape_is_a_holder():
    w = ms.Parameter(Tensor(np.ones(3, np.float32)), name="w")
    x = Tensor(np.ones(3, np.float32)) + 1
    seen = []

    def forward():
        y = ops.mul(x, w)  # the gradient of w needs x
        seen.append(owns_buffer(x))
        return y

    assert owns_buffer(x)
    ms.grad(forward, grad_position=None, weights=[w])()
    assert seen == [False]
    assert owns_buffer(x)


def test_references_of_the_caller_are_borrowed(computed):
    handles = [computed._buf]
    assert not owns_buffer(computed)
    assert owns_buffer(computed, borrowed=1)
    handles.append(computed._buf)
    assert owns_buffer(computed, borrowed=2)


def test_a_write_gives_the_buffer_up(computed):
    other = Tensor(np.zeros(6, np.float32)) + 2
    computed._rebind(other)
    assert holders(computed) == holders(other) == 2
    del other
    assert owns_buffer(computed)
