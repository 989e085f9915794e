"""The digits of the demo, a few steps with one seed: the same numbers as on the CPU."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import types

import duograph as ms
import numpy as np
import pytest
from duograph import nn, ops
from duograph.backend import registry

DEVICE = os.environ.get("DUOGRAPH_CUDA_DEVICE", "CUDA-emulated")  # `make test-gpu` says GPU
STEPS, BATCH = 3, 8
EXAMPLE = pathlib.Path(__file__).parents[2] / "examples/digits.py"


def _example() -> types.ModuleType:
    spec = importlib.util.spec_from_file_location("digits_example", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _train(example, device, compiled):
    """Initial weights, a dropout mask, the losses, and the weights after some steps of Adam."""
    ms.set_context(device_target=device)
    ms.set_seed(7)
    net = example.Net()
    first = [p.asnumpy() for p in net.get_parameters()]
    mask = ops.dropout(ms.Tensor(np.ones((16, 33), np.float32)), 0.25, training=True).asnumpy()
    images, labels, _, _ = example.load(0)
    optimizer = nn.Adam(net.trainable_params(), 1e-3)
    loss_fn = nn.CrossEntropyLoss()
    grad_fn = ms.value_and_grad(lambda x, y: loss_fn(net(x), y), None, optimizer.parameters)

    def step(x, y):
        loss, grads = grad_fn(x, y)
        optimizer(grads)
        return loss

    step = ms.jit(step, jit_level=compiled) if compiled else step
    net.set_train()
    losses = []
    for k in range(STEPS):
        rows = slice(k * BATCH, (k + 1) * BATCH)
        losses.append(float(step(ms.Tensor(images[rows]), ms.Tensor(labels[rows]))))
    return first, mask, losses, [p.asnumpy() for p in net.get_parameters()]


@pytest.mark.parametrize("compiled", [None, "O1", "O2"], ids=["pynative", "O1", "O2"])
def test_digits(compiled):
    pytest.importorskip("sklearn", reason="the digits come with scikit-learn")
    pytest.importorskip("tqdm")
    problem = registry.problem_of(registry.entries()[DEVICE])
    if problem is not None:
        pytest.skip(problem)
    example = _example()
    before = ms.get_context("device_target")
    try:
        here = _train(example, "CPU", compiled)
        there = _train(example, DEVICE, compiled)
    finally:
        ms.set_context(device_target=before)
    for want, got in zip(here[0], there[0], strict=True):
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(there[1], here[1])
    np.testing.assert_allclose(there[2], here[2], rtol=2e-5)
    for want, got in zip(here[3], there[3], strict=True):
        # Adam's first steps are of the learning rate's size whatever the size of a gradient, its rounding included
        np.testing.assert_allclose(got, want, atol=2.1e-3 * STEPS)
    print("losses", here[2], there[2])


def _mixed(dtype, device, level, first_scale):
    """Losses, overflows, scales and weights of a small convolutional net that trains on a scaled loss."""
    ms.set_context(device_target=device)
    ms.set_seed(3)
    rng = np.random.default_rng(1)
    images = ms.Tensor(rng.normal(size=(6, 1, 8, 8)).astype(np.float32))
    labels = ms.Tensor(np.arange(6) % 3, ms.int32)

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(1, 5, 3, stride=2).to_float(dtype)
            self.dense = nn.Dense(80, 3).to_float(dtype)

        def construct(self, x):
            h = ops.relu(self.conv(x)).reshape((x.shape[0], -1))
            return ops.cast(self.dense(h), ms.float32)

    net = Net()
    step = nn.TrainOneStepWithLossScaleCell(
        nn.WithLossCell(net, nn.CrossEntropyLoss()), nn.SGD(net.trainable_params(), 0.1),
        nn.DynamicLossScaleUpdateCell(first_scale, 2, 3),
    )  # fmt: skip
    step.set_train()
    run = ms.jit(step, jit_level=level) if level else step
    found = []
    for _ in range(6):
        loss, overflow, scale = run(images, labels)
        found.append((float(loss), bool(overflow), float(scale)))
    return found, [p.asnumpy().astype(np.float64) for p in net.trainable_params()]


@pytest.mark.parametrize("level", [None, "O1", "O2"], ids=["pynative", "O1", "O2"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_scaled_losses(dtype, level):
    """A first scale that overflows float16: the update is left out, the scale falls, and training goes on."""
    problem = registry.problem_of(registry.entries()[DEVICE])
    if problem is not None:
        pytest.skip(problem)
    first = 2.0**22 if dtype == "float16" else 2.0**10
    before = ms.get_context("device_target")
    try:
        here, wanted = _mixed(getattr(ms, dtype), "CPU", level, first)
        there, got = _mixed(getattr(ms, dtype), DEVICE, level, first)
    finally:
        ms.set_context(device_target=before)
    assert [f[1:] for f in there] == [f[1:] for f in here]
    assert any(f[1] for f in there) == (dtype == "float16"), "what was to overflow did not, or all did"
    assert there[-1][0] < there[0][0]
    near = 4e-3 if dtype == "float16" else 3e-2
    np.testing.assert_allclose([f[0] for f in there], [f[0] for f in here], rtol=near)
    for a, b in zip(wanted, got, strict=True):
        np.testing.assert_allclose(b, a, atol=near)
