"""Steps of optimiser primitives write what MindSpore 2.10 writes, eagerly and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import ops

T = ms.Tensor


def parameter(seed: int) -> ms.Parameter:
    values = np.random.RandomState(seed).uniform(0.2, 1.0, (4, 3))
    return ms.Parameter(T(values.astype(np.float32)), name=f"p{seed}")


def constant(value: float) -> ms.Parameter:
    return ms.Parameter(T(np.full((4, 3), value, np.float32)), name="stat")


def gradient(seed: int, rows: int) -> Any:
    values = np.random.RandomState(seed).uniform(-1, 1.0, (rows, 3))
    return T(values.astype(np.float32))


G, SPARSE, AT = gradient(9, 4), gradient(5, 2), T([2, 0], ms.int32)
MOMENTS = (0.9, 0.99, 0.1, 0.9, 0.99, 1e-3)  # powers, rate, betas, epsilon
P = parameter
Case = tuple[Any, Callable[[], tuple[Any, ...]], list[float]]
# class, arguments, and the weighted sum of each Parameter after the step, as MindSpore computes it
CASES: dict[str, Case] = {
    "Adam": (ops.Adam(), lambda: (P(1), P(2), P(3), *MOMENTS, G), [34.263, 35.237, 37.863]),
    "Adam nesterov": (
        ops.Adam(use_nesterov=True),
        lambda: (P(1), P(2), P(3), *MOMENTS, G),
        [35.25, 35.237, 37.863],
    ),
    "AdamWeightDecay": (
        ops.AdamWeightDecay(),
        lambda: (P(1), P(2), P(3), 0.1, 0.9, 0.99, 1e-3, 0.2, G),
        [33.467, 35.237, 37.863],
    ),
    "AdaMax": (
        ops.ApplyAdaMax(),
        lambda: (P(1), P(2), P(3), 0.9, 0.1, 0.9, 0.99, 1e-3, G),
        [-17.453, 35.237, 52.172],
    ),
    "Adadelta": (
        ops.ApplyAdadelta(),
        lambda: (P(1), P(2), P(3), 0.1, 0.9, 1e-3, G),
        [42.013, 40.598, 36.714],
    ),
    "Adagrad": (ops.ApplyAdagrad(), lambda: (P(1), P(2), 0.1, G), [42.456, 70.648]),
    "AdagradV2": (ops.ApplyAdagradV2(1e-2), lambda: (P(1), P(2), 0.1, G), [42.427, 70.648]),
    "Amsgrad": (
        ops.ApplyAdamWithAmsgrad(),
        lambda: (P(1), P(2), P(3), P(4), 0.9, 0.99, 0.1, G),
        [35.301, 35.237, 37.946, 53.376],
    ),
    "AmsgradV2": (
        ops.ApplyAdamWithAmsgradV2(),
        lambda: (P(1), P(2), P(3), P(4), *MOMENTS, G),
        [35.303, 35.237, 37.863, 53.263],
    ),
    "AddSign": (
        ops.ApplyAddSign(),
        lambda: (P(1), P(2), 0.1, 1.0, 0.9, 0.8, G),
        [38.385, 28.558],
    ),
    "PowerSign": (
        ops.ApplyPowerSign(),
        lambda: (P(1), P(2), 0.1, 1.0, 0.9, 0.8, G),
        [38.918, 28.558],
    ),
    "CenteredRMSProp": (
        ops.ApplyCenteredRMSProp(),
        lambda: (P(1), P(12), P(3), P(4), G, 0.1, 0.1, 0.8, 0.1),
        [7.746, -17.861, 29.654, 32.027],
    ),
    "GradientDescent": (ops.ApplyGradientDescent(), lambda: (P(1), 0.1, G), [42.261]),
    "ProximalGradientDescent": (
        ops.ApplyProximalGradientDescent(),
        lambda: (P(1), 0.1, 0.2, 0.3, G),
        [39.515],
    ),
    "ProximalAdagrad": (
        ops.ApplyProximalAdagrad(),
        lambda: (P(1), P(2), 0.1, 0.2, 0.3, G),
        [39.395, 70.648],
    ),
    "Momentum": (ops.ApplyMomentum(), lambda: (P(1), P(2), 0.1, G, 0.9), [38.488, 12.849]),
    "SGD, first step": (
        ops.SGD(0.1, 0.2),
        lambda: (P(1), G, 0.1, P(2), 0.9, constant(1)),
        [41.465, -16.922, 0.0],
    ),
    "SGD": (
        ops.SGD(0.1, 0.2),
        lambda: (P(1), G, 0.1, P(2), 0.9, constant(0)),
        [37.523, 22.496, 0.0],
    ),
    "SparseApplyAdagrad": (
        ops.SparseApplyAdagrad(0.1),
        lambda: (P(1), P(2), SPARSE, AT),
        [40.166, 52.427],
    ),
    "SparseApplyFtrl": (
        ops.SparseApplyFtrl(0.1, 0.2, 0.3, -0.5),
        lambda: (P(1), P(2), P(3), SPARSE, AT),
        [27.772, 52.427, 7.572],
    ),
    "FusedSparseAdam": (
        ops.FusedSparseAdam(),
        lambda: (P(1), P(2), P(3), *MOMENTS, SPARSE, AT),
        [33.865, 37.547, 37.681],
    ),
    "FusedSparseLazyAdam": (
        ops.FusedSparseLazyAdam(),
        lambda: (P(1), P(2), P(3), *MOMENTS, SPARSE, AT),
        [37.499, 40.241, 37.954],
    ),
    "FusedSparseProximalAdagrad": (
        ops.FusedSparseProximalAdagrad(),
        lambda: (P(1), P(2), 0.1, 0.2, 0.3, SPARSE, AT),
        [39.014, 52.427],
    ),
}


def written(args: tuple[Any, ...]) -> list[Any]:
    return [x.asnumpy() for x in args if isinstance(x, ms.Parameter)]


@pytest.mark.parametrize("name", CASES)
def test_step(name: str) -> None:
    step, make, want = CASES[name]
    args = make()
    found = step(*args)
    weights = np.arange(1, 13).reshape(4, 3)
    sums = [float((x * weights).sum()) for x in written(args)]
    np.testing.assert_allclose(sums, want, atol=2e-3)
    first = found[0] if isinstance(found, tuple) else found
    np.testing.assert_array_equal(first.asnumpy(), args[0].asnumpy())


@pytest.mark.parametrize("name", ["Adam", "Momentum", "SGD", "SparseApplyFtrl"])
def test_compiled_step(name: str) -> None:
    step, make, _ = CASES[name]
    eager, compiled = make(), make()
    step(*eager)
    places = [i for i, x in enumerate(compiled) if isinstance(x, ms.Parameter)]

    class Net(ms.nn.Cell):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.kept = ms.ParameterTuple([compiled[i] for i in places])

        def construct(self, g: Any) -> Any:
            args = list(compiled)
            for i, x in zip(places, self.kept):
                args[i] = x
            step(*args)
            return g

    net = Net()
    ms.jit(net)(G)
    for a, b in zip(written(eager), written(compiled), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def formula_ftrl(v: Any, a: Any, z: Any, g: Any, lr: float, l1: float, l2: float) -> Any:
    new = a + g * g
    z = z + g - (np.sqrt(new) - np.sqrt(a)) / lr * v
    return -np.sign(z) * np.maximum(abs(z) - l1, 0) / (np.sqrt(new) / lr + 2 * l2)


def test_steps_where_mindspore_errs() -> None:
    """MindSpore shrinks negative sums in the wrong direction."""
    args = (P(1), P(2), P(3), G, 0.1, 0.2, 0.3, -0.5)
    want = formula_ftrl(*written(args), G.asnumpy(), 0.1, 0.2, 0.3)
    np.testing.assert_allclose(ops.ApplyFtrl()(*args).asnumpy(), want, rtol=1e-4)
    dual = (P(1), P(2), P(3), G, 0.1, 0.2, 0.3, T(2, ms.int32))
    _, total, squares = written(dual)
    total, squares = total + G.asnumpy(), squares + G.asnumpy() ** 2
    top = np.sign(total) * np.maximum(abs(total) - 0.4, 0)
    want = -0.1 * top / (0.3 * 2 * 0.1 + np.sqrt(squares))
    np.testing.assert_allclose(ops.ApplyAdagradDA()(*dual).asnumpy(), want, rtol=1e-5, atol=1e-6)


def test_rows_that_occur_twice_are_added() -> None:
    var, accum = P(1), P(2)
    before = var.asnumpy().copy()
    ops.SparseApplyAdagrad(0.1)(var, accum, SPARSE, T([1, 1], ms.int32))
    total = SPARSE.asnumpy().sum(0)
    want = before[1] - 0.1 * total / np.sqrt(P(2).asnumpy()[1] + total**2)
    np.testing.assert_allclose(var.asnumpy()[1], want, rtol=1e-5)
    np.testing.assert_array_equal(var.asnumpy()[[0, 2, 3]], before[[0, 2, 3]])


WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "shapes": (lambda: ops.ApplyMomentum()(P(1), P(2), 0.1, SPARSE, 0.9), ValueError, "shapes"),
    "kind": (lambda: ops.ApplyAdagrad()(P(1), 3.0, 0.1, G), TypeError, "float"),
    "rows": (
        lambda: ops.SparseApplyAdagrad(0.1)(P(1), P(2), SPARSE, T([1])),
        ValueError,
        "indices",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors(name: str) -> None:
    call, kind, text = WRONG[name]
    with pytest.raises(kind, match=text):
        call()
