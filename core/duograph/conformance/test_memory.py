"""Tests of memory: buffers are freed with their tensors, and training does not leak.

pytest runs them with the conformance suite; a test is skipped if the backend does not report the
statistics that it needs.
"""

from __future__ import annotations

import gc

import numpy as np
import pytest

import duograph as ms
from duograph import nn, ops
from duograph.tensor import Tensor


def _live() -> int:
    gc.collect()
    # `isinstance` would run code of objects that stand for others
    return sum(issubclass(type(o), Tensor) for o in gc.get_objects())


def _in_use(session) -> int:
    """Return the bytes of device memory in use; 0 if the backend does not count them."""
    gc.collect()
    ms.synchronize()
    return int(session.backend.memory_stats(session.device.index).get("in_use", 0))


def test_results_are_freed(session):
    x = ms.Tensor(np.ones((256, 256), np.float32))
    y = x * 2
    if "in_use" not in session.backend.memory_stats(session.device.index):
        pytest.skip(f"{session.name} does not count memory")
    before = _in_use(session)
    for _ in range(50):
        y = (x * 2 + y).sum(axis=0) + x
    y = x * 2
    assert _in_use(session) <= before + 2 * x.nbytes


def test_statistics_follow_the_memory(session):
    """Test the names that `Backend.memory_stats` documents against a result of known size."""
    x = ms.Tensor(np.ones((512, 512), np.float32))
    y = x * 2
    if "in_use" not in session.backend.memory_stats(session.device.index):
        pytest.skip(f"{session.name} does not count memory")
    before = _in_use(session)
    z = y * 3
    during = _in_use(session)
    stats = ms.memory_stats(str(session.device))
    assert during >= before + z.nbytes, f"in_use: {before}, then {during} with {z.nbytes} more"
    if "peak" in stats:
        assert stats["peak"] >= during, f"peak {stats['peak']} is below in_use {during}"
    if stats.get("limit"):
        assert stats["limit"] >= during, f"limit {stats['limit']} is below in_use {during}"
    del z
    after = _in_use(session)
    assert after < during, f"in_use: {during}, and {after} when a result of it is gone"
    if "peak" in stats:
        peak = ms.max_memory_allocated(str(session.device))
        assert peak >= stats["peak"], f"the peak fell from {stats['peak']} to {peak}"


def test_training_stays_flat(session):
    ms.set_seed(0)
    net = nn.SequentialCell(nn.Dense(64, 64), nn.ReLU(), nn.Dense(64, 8))
    loss_fn = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss_fn), nn.Adam(net.trainable_params(), 1e-3))
    x = ms.Tensor(np.ones((64, 64), np.float32))
    y = ms.Tensor(np.zeros(64, np.int32))
    for _ in range(5):
        step(x, y)
    tensors, used = _live(), _in_use(session)
    for _ in range(60):
        step(x, y)
    assert _live() <= tensors + 5
    assert _in_use(session) <= used + 64 * 1024


def test_an_array_outlives_its_tensor():
    made = (ms.Tensor(np.arange(1000, dtype=np.float32)) + 1).asnumpy()
    gc.collect()
    for _ in range(20):
        ms.Tensor(np.zeros(1000, np.float32)) + 5
    np.testing.assert_array_equal(made, np.arange(1000, dtype=np.float32) + 1)


def test_a_tensor_outlives_its_array():
    source = np.arange(1000, dtype=np.float32)
    t = ms.Tensor(source)
    source[:] = -1
    del source
    gc.collect()
    np.testing.assert_array_equal((t + 1).asnumpy(), np.arange(1000, dtype=np.float32) + 1)


def test_an_array_that_is_written_to_later():
    """Test that writing to the `asnumpy` array of an operand does not change an earlier result."""
    x = ms.Tensor(np.ones(100, np.float32))
    y = x + 1
    z = y * 3
    y.asnumpy()[:] = 50
    np.testing.assert_array_equal(z.asnumpy(), np.full(100, 6.0))


def test_errors_free_what_they_held(session):
    before = _live()
    for _ in range(20):
        with pytest.raises(ValueError, match="add"):
            ops.add(ms.Tensor(np.ones((2, 3), np.float32)), ms.Tensor(np.ones(4, np.float32)))
    assert _live() <= before + 3
