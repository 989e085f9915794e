"""Gradient rules: equal on tape and graph, equal to differences; stop_gradient, requires_grad."""

from __future__ import annotations

import itertools

import duograph as ms
import numpy as np
import pytest
from duograph import nn, ops
from duograph.autodiff.linearize import linearize
from duograph.autodiff.replay import replay
from duograph.ir.builder import trace


def rand(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.5, 2, shape)


def differences(f, arrays: list[np.ndarray], i: int, step: float = 1e-6) -> np.ndarray:
    """Return the derivative of the sum of f with respect to array i, by central differences."""
    out = np.zeros_like(arrays[i])
    for at in np.ndindex(*arrays[i].shape):
        values = []
        for sign in (1, -1):
            moved = [a.copy() for a in arrays]
            moved[i][at] += sign * step
            values.append(float(f(*map(ms.Tensor, moved)).sum()))
        out[at] = (values[0] - values[1]) / (2 * step)
    return out


FLAGS = list(itertools.product([False, True], [False, True]))


@pytest.mark.parametrize(("ta", "tb"), FLAGS)
@pytest.mark.parametrize("batch", [(), (2,)])
def test_gradients_of_matmul_equal_differences(ta: bool, tb: bool, batch: tuple[int, ...]) -> None:
    """C22: Rule of MatMul, incl. transpose flags, and rule for the second input"""
    a = rand(*batch, *((4, 3) if ta else (3, 4)))
    b = rand(*batch, *((2, 4) if tb else (4, 2)), seed=1)
    op = ops.BatchMatMul(ta, tb) if batch else ops.MatMul(ta, tb)
    weight = ms.Tensor(rand(*batch, 3, 2, seed=2))
    f = lambda x, y: op(x, y) * weight  # noqa: E731
    found = ms.grad(f, (0, 1))(ms.Tensor(a), ms.Tensor(b))
    for i in (0, 1):
        np.testing.assert_allclose(found[i].asnumpy(), differences(f, [a, b], i), rtol=1e-7)


FUNCTIONS = {
    "chain": lambda x, y: ops.exp(ops.sin(x)) * ops.log(y),
    "broadcast": lambda x, y: (x + y[0]) / y,
    "used twice": lambda x, y: x * y + x * x - y / x,
    "reductions": lambda x, y: x.sum(0) * y.max() + ops.softmax(x * y),
    "movement": lambda x, y: ops.concat([x.T, y.T], 1)[1:, ::2],
    "matmul": lambda x, y: ops.tanh(x @ y.T),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_graph_and_tape_gradients_are_equal(name: str) -> None:
    """C21: One rule serves eager tape and graph AD alike"""
    f = FUNCTIONS[name]
    x, y = (ms.Tensor(rand(2, 3, seed=s)) for s in (0, 1))
    by_tape = ms.grad(f, (0, 1))(x, y)
    both = linearize(trace(f, [x._type, y._type]), (True, True), (True,))
    values = replay(both.forward, (x, y))
    env = dict(enumerate([x, y])) | dict(zip(both.forward.outputs, values, strict=True))
    residuals = [env[i] for i in both.residuals]
    by_graph = replay(both.backward, [*residuals, ops.ones_like(values[0])])
    assert both.wrt == (0, 1)
    for a, b in zip(by_tape, by_graph, strict=True):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-12)


def test_reverse_sweep_visits_nodes_in_reverse_order() -> None:
    """C01: Forward ops on tensors are recorded, each op's backward found, chained in reverse, then
    run on the device
    """
    order: list[str] = []

    def f(x):
        steps = {"first": ops.sin(x)}
        steps["second"] = ops.exp(steps["first"])
        steps["third"] = steps["second"] * 2
        for name, step in steps.items():
            step.register_hook(lambda g, name=name: order.append(name))
        return steps["third"]

    x = rand(3)
    g = ms.grad(f)(ms.Tensor(x))
    assert order == ["third", "second", "first"]
    assert g.device == ms.Tensor(x).device
    np.testing.assert_allclose(g.asnumpy(), 2 * np.exp(np.sin(x)) * np.cos(x))


class TestStopping:
    """C32: `stop_gradient`, `requires_grad=False`, `set_grad`"""

    def test_stop_gradient(self) -> None:
        x = ms.Tensor([3.0])
        assert float(ms.grad(lambda x: x * ops.stop_gradient(x))(x)) == 3
        assert float(ms.grad(lambda x: ops.stop_gradient(x * x))(x)) == 0
        assert float(ms.grad(ms.grad(lambda x: x * ops.stop_gradient(x)))(x)) == 0
        assert ops.stop_gradient(x).asnumpy() == 3

    def test_requires_grad(self) -> None:
        net = nn.Dense(2, 2)
        net.bias.requires_grad = False
        assert [p.name for p in net.trainable_params()] == ["weight"]
        assert [p.name for p in net.untrainable_params()] == ["bias"]
        (g,) = ops.GradOperation(get_by_list=True)(net)(ms.Tensor([[1.0, 2.0]]))
        assert g.asnumpy().tolist() == [[1, 2], [1, 2]]

    def test_set_grad(self) -> None:
        net = nn.Dense(2, 2)
        assert net.set_grad() is net
        assert net.requires_grad
        assert not net.set_grad(False).requires_grad
        (g,) = ms.grad(net, None, net.trainable_params()[:1])(ms.Tensor([[1.0, 2.0]]))
        assert g.asnumpy().tolist() == [[1, 2], [1, 2]]
