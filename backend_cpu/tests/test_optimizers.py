"""Optimiser step kernels against NumPy."""

import itertools
import platform

import numpy as np
import pytest
from duograph import Tensor
from harness import check, run

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("n", [1, 100, 50001])
def test_optimizer_steps(n):
    p, m, g = (RNG.standard_normal(n).astype(np.float32) for _ in range(3))
    v = RNG.random(n, dtype=np.float32)
    lr, b1p, b2p, momentum = (np.array(x, np.float32) for x in (0.1, 0.9**3, 0.99**3, 0.8))
    for nesterov, decay in itertools.product((False, True), (0.0, 0.1)):
        grad = g * 0.5 + p * decay
        m1, v1 = m * 0.9 + grad * 0.1, v * 0.99 + grad**2 * 0.01
        top = m1 * 0.9 + grad * 0.1 if nesterov else m1
        want = p - lr * np.sqrt(1 - b2p) / (1 - b1p) * top / (np.sqrt(v1) + 1e-8)
        attributes = dict(beta1=0.9, beta2=0.99, eps=1e-8, weight_decay=decay, scale=0.5)
        like = tuple(a.astype(np.float32) for a in (want, m1, v1))
        check("adam_step", [p, m, v, g, lr, b1p, b2p], like, 1e-5, nesterov=nesterov, **attributes)
        a = m * momentum + grad
        like = (p - lr * (grad + a * momentum if nesterov else a), a)
        check(
            "momentum_step",
            [p, m, g, lr, momentum],
            like,
            1e-5,
            nesterov=nesterov,
            weight_decay=decay,
            scale=0.5,
        )
        grad = g * 0.5
        m1, v1 = m * 0.9 + grad * 0.1, v * 0.99 + grad**2 * 0.01
        want = p - lr * (m1 / (np.sqrt(v1) + 1e-8) + p * decay)
        check(
            "adam_weight_decay_step",
            [p, m, v, g, lr],
            tuple(a.astype(np.float32) for a in (want, m1, v1)),
            1e-5,
            **attributes,
        )


@pytest.mark.parametrize("n", [1, 7, 50001])
def test_subnormal_moments_are_flushed(n):
    """Subnormal moments count as zero if eps is large; no other arithmetic flushes subnormals."""
    tiny, one = np.full(n, 4e-45, np.float32), np.ones(n, np.float32)
    zero, lr, power = np.zeros(n, np.float32), np.array(0.1, np.float32), np.array(0.5, np.float32)
    attributes = dict(beta1=0.9, beta2=0.999, weight_decay=0.0, scale=1.0)
    flushed = platform.machine() in ("x86_64", "AMD64")  # other processors are not slow on them
    for m, v, g in [(tiny, tiny, zero), (zero, zero, one * 1e-21), (tiny, tiny, tiny)]:
        p1, m1, v1 = run(
            "adam_step",
            [one, m, v, g, lr, power, power],
            (one, m, v),
            nesterov=False,
            eps=1e-8,
            **attributes,
        )
        assert np.abs(p1 - one).max() < 1e-7
        assert not v1[v1 < np.finfo(np.float32).tiny].any() or not flushed
        assert not m1[np.abs(m1) < np.finfo(np.float32).tiny].any() or not flushed
    # m / sqrt(v) of subnormal v: 1e-20 / sqrt(1e-40), times the corrected rate
    p1, _, v1 = run(
        "adam_step",
        [one, one * 1e-20, one * 1e-40, zero, lr, power, power],
        (one, zero, zero),
        nesterov=False,
        eps=0.0,
        **attributes,
    )
    assert v1.all()
    np.testing.assert_allclose(p1, 1 - 0.1 * np.sqrt(0.5) / 0.5 * 0.9, rtol=1e-4)
    rate = np.array(0.9, np.float32)
    attributes = dict(nesterov=False, weight_decay=0.0, scale=1.0)
    _, a = run("momentum_step", [one, tiny, zero, lr, rate], (one, one), **attributes)
    assert not a.any() or not flushed
    # flushing is off again, on this thread and on those of the pool
    many = np.full(200000, 1e-40, np.float32)
    assert np.array_equal((Tensor(many) * 0.5).asnumpy(), many * np.float32(0.5))
