"""Measures launch time, bandwidth and a matmul for the conformance report.

pytest runs it with the conformance suite. It must not fail because a device is slow.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

import duograph as ms
from duograph import ops

from .plugin import worker_of


def _seconds(function: Callable[[], object], calls: int) -> float:
    """Return the seconds of one call of `function`: the best of five averages over `calls`."""
    best = float("inf")
    for _ in range(5):
        ms.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            kept = function()
        ms.synchronize()
        best = min(best, (time.perf_counter() - start) / calls)
        del kept
    return best


def test_speed(session, request):
    if worker_of(request.config) is not None:
        pytest.skip("other processes compute meanwhile; run it without -n")
    a, b = ms.Tensor(np.ones(3, np.float32)), ms.Tensor(np.ones(3, np.float32))
    a + b
    session.measured["a + b of 3 floats"] = f"{_seconds(lambda: a + b, 500) * 1e6:.2f} us"
    x, y = (ms.Tensor(np.ones(4_000_000, np.float32)) for _ in range(2))
    x + y
    rate = 3 * x.nbytes / _seconds(lambda: x + y, 2)
    session.measured["adding 4 million"] = f"{rate / 1e9:.1f} GB/s"
    m = ms.Tensor(np.ones((256, 256), np.float32))
    ops.matmul(m, m)
    rate = 2 * 256**3 / _seconds(lambda: ops.matmul(m, m), 2)
    session.measured["matmul of 256"] = f"{rate / 1e9:.1f} GFLOP/s"
