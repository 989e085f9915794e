"""Training in float16 and bfloat16 on a scaled loss: the same overflows and scales as on the CPU,
and near losses.
"""

from __future__ import annotations

import os

import duograph as ms
import numpy as np
import pytest
from duograph import nn, ops
from duograph.backend import registry

DEVICE = os.environ.get("DUOGRAPH_CUDA_DEVICE", "CUDA-emulated")  # `make test-gpu` says GPU


def _mixed(dtype, device, level, first_scale):
    """Train a small convolutional net on a scaled loss.

    Returns losses, overflows, scales and weights.
    """
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
    """A first scale that overflows float16: the update is left out, the scale falls, and training
    goes on.
    """
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
    assert any(f[1] for f in there) == (dtype == "float16"), (
        "what was to overflow did not, or all did"
    )
    assert there[-1][0] < there[0][0]
    near = 4e-3 if dtype == "float16" else 3e-2
    np.testing.assert_allclose([f[0] for f in there], [f[0] for f in here], rtol=near)
    for a, b in zip(wanted, got, strict=True):
        np.testing.assert_allclose(b, a, atol=near)
