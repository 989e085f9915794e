"""A user's `bprop` runs in compiled code when, and only when, it runs line by line.

Where a value has no gradient in some run (a branch that is not taken, an iteration whose result is
overwritten), nothing calls its `bprop`, not even with zeros: it may print, count its calls, or
return something that is not 0 for a `dout` of 0. Each program is differentiated once, where the
bits agree, and twice, where a loop may sum in another order.
"""

import numpy as np
import pytest
from duograph import Tensor, grad, jit, nn, ops

CALLS = []


class Affine(nn.Cell):
    """Doubles its input; its gradient is not 0 where `dout` is 0."""

    def construct(self, x):
        return x * 2.0

    def bprop(self, x, out, dout):
        return (dout * 3 + x * 0.125,)


class Counted(nn.Cell):
    """Doubles its input; every call of its `bprop` is recorded, with the sum of `dout`."""

    def construct(self, x):
        return x * 2.0

    def bprop(self, x, out, dout):
        CALLS.append(float(dout.sum().asnumpy()))
        return (dout * 3 + x * 0.125,)


def branch(layer, a):
    y = layer(a)
    if a.sum() > 0:
        z = y * a
    else:
        z = a * a
    return z.sum()


def both_branches(layer, a):
    y, z = layer(a), layer(a * a)
    if a.sum() > 0:
        return (y * y).sum()
    return (z * y).sum()


def overwritten(layer, a):
    v, k = a, Tensor(0)
    while k < 2:
        k = k + 1
        v = ops.tanh(layer(a))
    return v.sum()


def carried(layer, a):
    v, k = a, Tensor(0)
    while k < 3:
        k = k + 1
        v = ops.tanh(layer(v))
    return v.sum()


def swapped(layer, a):
    u, v, k = a, a * a, Tensor(0)
    while k < 3:
        k = k + 1
        u, v = layer(v), ops.sin(a * u)
    return u.sum()


def no_iteration(layer, a):
    v, k = layer(a), Tensor(5)
    while k < 3:
        k = k + 1
        v = layer(v)
    return (v * v).sum()


def branch_in_loop(layer, a):
    v, k = a, Tensor(0)
    while k < 3:
        k = k + 1
        y = layer(v)
        if k == 2:
            v = ops.tanh(y)
        else:
            v = ops.sin(v)
    return (v * a).sum()


def loop_in_loop(layer, a):
    v, k = a, Tensor(0)
    while k < 2:
        k = k + 1
        w, j = a, Tensor(0)
        while j < 2:
            j = j + 1
            w = ops.tanh(layer(v))
        v = ops.sin(w)
    return v.sum()


def loop_in_branch(layer, a):
    v = layer(a)
    if a.sum() > 0:
        k = Tensor(0)
        while k < 2:
            k = k + 1
            v = ops.tanh(layer(a))
    return (v * v).sum()


def descend(layer, n, a):
    if n < 1:
        return a * a
    return ops.tanh(layer(descend(layer, n - 1, a)))


def recursion(layer, a):
    return descend(layer, Tensor(2), a).sum()


def forget(layer, n, a):
    if n < 1:
        return a * a
    forgotten = layer(forget(layer, n - 1, a))
    if n == 2:
        return ops.sin(layer(a))
    return forgotten * a


def recursion_that_forgets(layer, a):
    return forget(layer, Tensor(3), a).sum()


PROGRAMS = [
    branch, both_branches, overwritten, carried, swapped, no_iteration, branch_in_loop,
    loop_in_loop, loop_in_branch, recursion, recursion_that_forgets,
]  # fmt: skip
INPUTS = ([0.3, 0.7], [-0.3, -0.75])


def derivative(program, layer, order):
    def first(a):
        return grad(lambda t: program(layer, t))(a)

    if order == 1:
        return first
    return lambda a: grad(lambda t: first(t).sum())(a)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_the_gradient_is_that_of_eager_execution(program, order):
    function = derivative(program, Affine(), order)
    compiled = jit(function, jit_level="O0")
    for numbers in INPUTS:
        x = Tensor(np.array(numbers, np.float32))
        got, want = compiled(x).asnumpy(), function(x).asnumpy()
        np.testing.assert_allclose(got, want, rtol=1e-6 * (order - 1), err_msg=str(numbers))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_a_bprop_with_an_effect_runs_as_often_as_in_eager_execution(program):
    function = derivative(program, Counted(), 1)
    compiled = jit(function, jit_level="O0")
    for numbers in INPUTS:
        x = Tensor(np.array(numbers, np.float32))
        CALLS.clear()
        want = function(x).asnumpy()
        eager = list(CALLS)
        for _ in range(3):
            CALLS.clear()
            np.testing.assert_array_equal(compiled(x).asnumpy(), want)
            assert CALLS == eager, numbers


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_a_bprop_that_prints_does_so_as_often_as_in_eager_execution(program, capfd):
    class Printing(Affine):
        def bprop(self, x, out, dout):
            print("called")
            return (dout * 3 + x * 0.125,)

    function = derivative(program, Printing(), 2)
    compiled = jit(function, jit_level="O0")
    for numbers in INPUTS:
        x = Tensor(np.array(numbers, np.float32))
        want = function(x).asnumpy()
        eager = capfd.readouterr().out.count("called")
        for _ in range(2):
            np.testing.assert_allclose(compiled(x).asnumpy(), want, rtol=1e-6)
            assert capfd.readouterr().out.count("called") == eager, numbers
