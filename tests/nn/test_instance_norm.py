"""Tests of instance normalisation: running statistics, both modes, against NumPy.

MindSpore has no kernel for it on the CPU. The rule of the statistics is the one of its
documentation, and what normalises is what its `InstanceNormV2` computes on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import nn, ops

X = np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype(np.float32)
OLD_MEAN, OLD_VARIANCE = np.array([0.5, 0.0, -1.0]), np.array([1.0, 2.0, 0.5])
WAYS: list[Callable[[Any], Any]] = [lambda f: f, ms.jit]
LAYERS = {3: nn.InstanceNorm1d, 4: nn.InstanceNorm2d, 5: nn.InstanceNorm3d}


def moved(x: np.ndarray, keep: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the statistics of each sample mixed with the old ones, (N, C)."""
    rows = x.reshape(*x.shape[:2], -1).astype(np.float64)
    mean, variance = rows.mean(2), rows.var(2, ddof=1)
    return (
        keep * OLD_MEAN + (1 - keep) * mean,
        keep * OLD_VARIANCE + (1 - keep) * variance,
    )


def normal(x: np.ndarray, eps: float) -> np.ndarray:
    axes = tuple(range(2, x.ndim))
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def parameters() -> tuple[ms.Parameter, ms.Parameter]:
    return (
        ms.Parameter(ms.Tensor(OLD_MEAN, ms.float32), name="m"),
        ms.Parameter(ms.Tensor(OLD_VARIANCE, ms.float32), name="v"),
    )


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("momentum", [0.0, 0.1, 0.7, 1.0])
@pytest.mark.parametrize("dtype", [ms.float32, ms.float16])
def test_primitive(way: Any, momentum: float, dtype: Any) -> None:
    mean, variance = parameters()
    primitive = ops.InstanceNorm(1e-3, momentum)
    gamma, beta = ms.Tensor([1.0, 2.0, 3.0]), ms.Tensor([0.0, 1.0, 2.0])
    out, new_mean, new_variance = way(lambda x: primitive(x, gamma, beta, mean, variance))(
        ms.Tensor(X, dtype)
    )
    tolerance = {"rtol": 2e-3, "atol": 2e-3} if dtype is ms.float16 else {"rtol": 1e-5}
    wanted = normal(X, 1e-3) * np.array([1, 2, 3])[:, None, None]
    wanted = wanted + np.array([0, 1, 2])[:, None, None]
    assert out.dtype is dtype and new_mean.shape == new_variance.shape == (6,)
    np.testing.assert_allclose(out.asnumpy(), wanted, **(tolerance | {"atol": 4e-3}))
    for found, parameter, own in zip(
        (new_mean, new_variance), (mean, variance), moved(X, momentum), strict=True
    ):
        np.testing.assert_allclose(found.asnumpy().reshape(2, 3), own, **tolerance)
        np.testing.assert_allclose(parameter.asnumpy(), own.mean(0), **tolerance)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("rank", LAYERS)
def test_layers_move_their_statistics_in_training_only(way: Any, rank: int) -> None:
    layer = LAYERS[rank](3, momentum=0.8)
    x = X.reshape(2, 3, *{3: (20,), 4: (4, 5), 5: (2, 2, 5)}[rank])
    run = way(lambda t: layer(t))
    out = run(ms.Tensor(x)).asnumpy()
    assert not layer.moving_mean.asnumpy().any() and (layer.moving_variance.asnumpy() == 1).all()
    layer.set_train()
    np.testing.assert_array_equal(run(ms.Tensor(x)).asnumpy(), out)
    np.testing.assert_allclose(out, normal(x, 1e-5), rtol=1e-4, atol=1e-5)
    rows = x.reshape(2, 3, -1)
    np.testing.assert_allclose(
        layer.moving_mean.asnumpy(), 0.2 * rows.mean(2).mean(0), rtol=1e-4, atol=1e-6
    )
    np.testing.assert_allclose(
        layer.moving_variance.asnumpy(), 0.8 + 0.2 * rows.var(2, ddof=1).mean(0), rtol=1e-5
    )


@pytest.mark.parametrize("way", WAYS)
def test_function(way: Any) -> None:
    mean, variance = parameters()
    own = moved(X, 0.75)
    out = way(lambda x: ops.instance_norm(x, mean, variance, momentum=0.25))(ms.Tensor(X))
    np.testing.assert_allclose(out.asnumpy(), normal(X, 1e-5), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(mean.asnumpy(), own[0].mean(0), rtol=1e-5)
    np.testing.assert_allclose(variance.asnumpy(), own[1].mean(0), rtol=1e-5)
    by_old = way(lambda x: ops.instance_norm(x, mean, variance, use_input_stats=False))(
        ms.Tensor(X)
    )
    m, v = (t.asnumpy()[:, None, None] for t in (mean, variance))
    np.testing.assert_allclose(by_old.asnumpy(), (X - m) / np.sqrt(v + 1e-5), rtol=1e-4, atol=1e-5)


def test_gradients_do_not_flow_into_the_statistics() -> None:
    mean, variance = parameters()
    weights = ms.Tensor(np.random.default_rng(1).normal(size=X.shape).astype(np.float32))

    def loss(x: ms.Tensor) -> ms.Tensor:
        out, *statistics = ops.InstanceNorm()(x, ops.ones(3), ops.zeros(3), mean, variance)
        return (out * weights).sum() + sum(s.sum() for s in statistics)

    plain = ms.grad(lambda x: (ops.instance_norm(x) * weights).sum())(ms.Tensor(X))
    np.testing.assert_allclose(ms.grad(loss)(ms.Tensor(X)).asnumpy(), plain.asnumpy(), rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: ops.InstanceNorm(momentum=1.5), "momentum=1.5"),
        (lambda: ops.InstanceNorm(momentum=-0.1), "momentum=-0.1"),
        (lambda: ops.InstanceNorm(epsilon=2.0), "epsilon=2.0"),
        (lambda: nn.InstanceNorm2d(3, momentum=1.5), "momentum=1.5"),
        (lambda: ops.instance_norm(ops.ones(3)), r"input of shape \(3,\)"),
        (lambda: ops.instance_norm(ms.Tensor(X), ops.zeros(3)), "got one of running_mean"),
        (lambda: ops.instance_norm(ms.Tensor(X), use_input_stats=False), "no running_mean"),
        (lambda: ops.InstanceNorm()(ms.Tensor(X), *[ops.ones(3)] * 2, *[ops.ones(4)] * 2), "4"),
        (lambda: ops.InstanceNorm()(ms.Tensor(X), *[ops.ones(4)] * 4), "4"),
    ],
)
def test_refusals(call: Callable[[], object], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        call()
