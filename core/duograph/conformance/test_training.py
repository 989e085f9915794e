"""Tests that training small networks is reproducible and agrees with the oracle.

pytest runs them with the conformance suite. The oracle is a backend in NumPy that gives the
expected results.
"""

from __future__ import annotations

import numpy as np
import pytest

import duograph as ms
from duograph import nn, ops

from .oracle import on_oracle

STEPS = 12


def _digits(seed: int, shape: tuple[int, ...], classes: int):
    """Return 32 noisy images of one random pattern per class, and their labels."""
    rng = np.random.default_rng(seed)
    patterns = rng.normal(size=(classes, *shape))
    labels = rng.integers(0, classes, 32)
    images = patterns[labels] + 0.3 * rng.normal(size=(32, *shape))
    return images.astype(np.float32), labels.astype(np.int32)


class MLP(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first = nn.Dense(12, 24)
        self.second = nn.Dense(24, 4)

    def construct(self, x):
        return self.second(ops.tanh(self.first(x)))


class LeNet(nn.Cell):
    """Small test network: LeNet-5 (LeCun et al., 1998) with a third of its channels."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, pad_mode="same")
        self.norm = nn.BatchNorm2d(4)
        self.conv2 = nn.Conv2d(4, 6, 3, pad_mode="valid", has_bias=True)
        self.pool = nn.MaxPool2d(kernel_size=2, stride=2)
        self.flatten = nn.Flatten()
        self.out = nn.Dense(6 * 2 * 2, 4)

    def construct(self, x):
        x = self.pool(ops.relu(self.norm(self.conv1(x))))
        return self.out(self.flatten(self.pool(ops.relu(self.conv2(x)))))


class Attention(nn.Cell):
    """Small test network: an attention block on short sequences."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Dense(8, 24)
        self.norm = nn.LayerNorm((8,))
        self.softmax = nn.Softmax()
        self.out = nn.Dense(8, 4)

    def construct(self, x):
        q, k, v = ops.split(self.qkv(x), 8, axis=-1)
        weights = self.softmax(ops.matmul(q, k.swapaxes(-1, -2)) / 8**0.5)
        return self.out(self.norm(x + ops.matmul(weights, v)).mean(axis=1))


NETWORKS = {
    "mlp": (MLP, (12,)),
    "lenet": (LeNet, (1, 12, 12)),
    "attention": (Attention, (5, 8)),
}
OPTIMISERS = {
    "momentum": lambda params: nn.Momentum(params, 0.05, 0.9),
    "adam": lambda params: nn.Adam(params, 0.01),
}


def train(network: str, optimiser: str) -> tuple[list[float], list[np.ndarray]]:
    """Train a small network and return the loss of each step and the final weights."""
    cls, shape = NETWORKS[network]
    ms.set_seed(3)
    net = cls()
    net.set_train()
    images, labels = _digits(1, shape, 4)
    loss_fn = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    step = nn.TrainOneStepCell(
        nn.WithLossCell(net, loss_fn), OPTIMISERS[optimiser](net.trainable_params())
    )
    x, y = ms.Tensor(images), ms.Tensor(labels)
    losses = [float(step(x, y)) for _ in range(STEPS)]
    return losses, [p.asnumpy() for p in net.trainable_params()]


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_training(network, optimiser, session):
    if session.quick and optimiser != "momentum":
        pytest.skip("with momentum only")
    losses, weights = train(network, optimiser)
    again, _ = train(network, optimiser)
    assert losses == again, "two runs from one seed differ"
    assert losses[-1] < 0.7 * losses[0], f"the loss did not fall: {losses}"
    with on_oracle():
        right, right_weights = train(network, optimiser)
    np.testing.assert_allclose(losses, right, rtol=2e-3, atol=1e-4)
    for got, want in zip(weights, right_weights, strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-2, atol=5e-3)


def test_training_by_hand(session):
    """Test that a training loop written with value_and_grad gives the losses of the oracle."""

    def run() -> list[float]:
        ms.set_seed(5)
        net = MLP()
        optimizer = nn.SGD(net.trainable_params(), 0.1)
        images, labels = _digits(2, (12,), 4)

        def forward(x, y):
            logits = net(x)
            return ops.cross_entropy(logits, y), logits

        step = ms.value_and_grad(forward, None, optimizer.parameters, has_aux=True)
        losses = []
        for _ in range(STEPS):
            (loss, _), grads = step(ms.Tensor(images), ms.Tensor(labels))
            optimizer(grads)
            losses.append(float(loss))
        return losses

    losses = run()
    with on_oracle():
        right = run()
    np.testing.assert_allclose(losses, right, rtol=1e-3, atol=1e-4)
    assert losses[-1] < 0.5 * losses[0]
