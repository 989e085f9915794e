"""Tests that several threads can use a device concurrently, and that calls are re-entrant.

pytest runs them with the conformance suite, on the device under test.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

import duograph as ms
from duograph import ops

THREADS = 4


def _together(function):
    with ThreadPoolExecutor(THREADS) as pool:
        return [f.result() for f in [pool.submit(function, i) for i in range(4 * THREADS)]]


def test_ops_in_threads():
    def work(i: int) -> float:
        x = ms.Tensor(np.full((37, 11 + i), i, np.float32))
        for _ in range(20):
            x = ops.tanh(x * 0.5 + 1)
        return float(x.sum())

    assert _together(work) == [work(i) for i in range(4 * THREADS)]


def test_gradients_in_threads():
    def work(i: int) -> list[float]:
        x = ms.Tensor(np.arange(1, 6, dtype=np.float32) * (i + 1))
        return ms.grad(lambda v: (ops.exp(-v) * v).sum())(x).asnumpy().tolist()

    assert _together(work) == [work(i) for i in range(4 * THREADS)]


def test_one_tensor_used_by_all():
    shared = ms.Tensor(np.arange(100, dtype=np.float32))  # the first thread copies it to the device

    def work(i: int) -> float:
        return float((shared * i).sum())

    assert _together(work) == [4950.0 * i for i in range(4 * THREADS)]


def test_a_gradient_inside_a_hook():
    """Test that a hook of a backward pass can start another backward pass."""
    inner = []

    def hook(grad):
        inner.append(ms.grad(lambda v: (v * v).sum())(grad).asnumpy().tolist())

    def f(x):
        y = x * 2
        y.register_hook(hook)
        return (y * 3).sum()

    found = ms.grad(f)(ms.Tensor([1.0, 2.0]))
    assert found.asnumpy().tolist() == [6.0, 6.0]
    assert inner == [[6.0, 6.0]]
