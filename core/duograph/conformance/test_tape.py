"""Tests of eager gradients: gradient rules, higher derivatives, hooks, and freed graph nodes.

pytest runs them with the conformance suite. A test that replaces a gradient rule must restore it.
"""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import duograph as ms
from duograph import nn, ops
from duograph.op import OPS
from duograph.op_tables import rules_changed
from duograph.ops import bprop_getters

X = np.array([0.5, -1.5, 2.0], np.float32)


def _same(got, want):
    np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-5, atol=1e-6)


@pytest.fixture
def mul_rule():
    """Fixture with the op mul, whose gradient rule is restored after the test."""
    op = OPS["mul"]
    rule = op.bprop_rule
    yield op
    op.bprop_rule = rule
    rules_changed()


@pytest.fixture
def without_checks():
    """Fixture that turns off debug mode, which would check users' gradient rules."""
    before = ms.get_context("debug")
    ms.set_context(debug=False)
    yield
    ms.set_context(debug=before)


def test_a_rule_registered_again_is_in_force_at_once(mul_rule, without_checks):
    def f(x):
        return (x * x).sum()

    _same(ms.grad(f)(ms.Tensor(X)), 2 * X)

    @bprop_getters.register(ops.Mul)
    def get_bprop(self):
        def bprop(x, y, out, dout):
            return y * dout * 100, x * dout

        return bprop

    _same(ms.grad(f)(ms.Tensor(X)), 101 * X)


def test_orders_of_derivative():
    def f(x):
        return x * x * x * x

    order = f
    for want in (4 * X**3, 12 * X**2, 24 * X, np.full(3, 24.0), np.zeros(3)):
        order = ms.grad(order)
        _same(order(ms.Tensor(X)), want)


def test_mixed_derivatives():
    def f(x, y):
        return ops.sin(x) * ops.exp(y)

    x, y = ms.Tensor(X), ms.Tensor(X[::-1].copy())
    of_x = ms.grad(lambda a, b: f(a, b).sum(), 0)
    _same(ms.grad(lambda a, b: of_x(a, b).sum(), 1)(x, y), np.cos(X) * np.exp(X[::-1]))


def test_vjp_and_jvp():
    def f(x):
        return ops.exp(x) * 2

    value, pull = ms.vjp(f, ms.Tensor(X))
    _same(value, 2 * np.exp(X))
    _same(pull(ms.Tensor(np.ones(3, np.float32)))[0], 2 * np.exp(X))
    _, tangent = ms.jvp(f, ms.Tensor(X), ms.Tensor(np.array([1, 0, 2], np.float32)))
    _same(tangent, 2 * np.exp(X) * [1, 0, 2])


def test_a_value_overwritten_after_use():
    """Test that a gradient uses the value that an op has read, even if it is overwritten later."""

    def f(x):
        y = x * 1
        z = y * y
        y += 100
        y[0] = 7.0
        return z.sum() + (y * 0).sum()

    _same(ms.grad(f)(ms.Tensor(X)), 2 * X)


def test_a_parameter_assigned_in_a_loop():
    weight = ms.Parameter(ms.Tensor(np.array([2.0], np.float32)), name="w")

    def f(x):
        out = x * weight
        for _ in range(3):
            ops.assign(weight, weight + 1)
            out = out + x * weight
        return out.sum()

    _same(ms.grad(f)(ms.Tensor(np.array([1.0], np.float32))), [2.0 + 3.0 + 4.0 + 5.0])
    _same(weight, [5.0])


def test_hooks_see_and_change_gradients():
    seen = []

    def hook(grad):
        seen.append(grad.asnumpy().copy())
        return grad * 10

    def f(x):
        y = x * 3
        y.register_hook(hook)
        return (y * y).sum()

    _same(ms.grad(f)(ms.Tensor(X)), 10 * 18 * X)
    np.testing.assert_allclose(seen, [6 * X], rtol=1e-6)


def test_custom_gradient_of_a_cell(without_checks):
    class Twice(nn.Cell):
        def construct(self, x):
            return x * 2

        def bprop(self, x, out, dout):
            return (dout * 50,)

    net = Twice()
    _same(ms.grad(lambda x: net(x).sum())(ms.Tensor(X)), np.full(3, 50.0))


def test_stop_gradient():
    _same(ms.grad(lambda x: (x * ops.stop_gradient(x)).sum())(ms.Tensor(X)), X)


def test_weights_and_inputs_together():
    ms.set_seed(2)
    net = nn.Dense(3, 2)
    net.weight.set_data(ms.Tensor(np.ones((2, 3), np.float32)))
    x = ms.Tensor(X.reshape(1, 3))
    dx, (dw, db) = ms.grad(lambda v: net(v).sum(), 0, net.trainable_params())(x)
    _same(dx, np.full((1, 3), 2.0))
    _same(dw, np.stack([X, X]))
    _same(db, np.ones(2))


def test_integers_and_untouched_inputs_have_zero_gradient():
    def f(x, y):
        return (x * 2).sum()

    dx, dy = ms.grad(f, (0, 1))(ms.Tensor(X), ms.Tensor(X))
    _same(dx, np.full(3, 2.0))
    _same(dy, np.zeros(3))


def test_discarded_results_die():
    """Test that tensors without references are freed while a derivative runs."""
    alive = []

    def f(x):
        for _ in range(200):
            y = x * 2
            alive.append(weakref.ref(y._edge))
        gc.collect()
        assert sum(r() is not None for r in alive) <= 2
        return y.sum()

    _same(ms.grad(f)(ms.Tensor(X)), np.full(3, 2.0))


def test_an_error_in_the_function_leaves_nothing_behind():
    def f(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        ms.grad(f)(ms.Tensor(X))
    x = ms.Tensor(X)
    assert (x * x)._type.level == 0
    _same(ms.grad(lambda v: (v * v).sum())(x), 2 * X)
