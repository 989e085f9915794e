"""Tests of weight decay: with centralised gradients, as a schedule, and by the Parameters' names.

The order of the steps is that of MindSpore 2.10: decay, centralise, scale.
"""

from __future__ import annotations

import duograph as ms
import numpy as np
import pytest
from duograph import nn

rng = np.random.default_rng(0)
WEIGHTS = {"w": rng.normal(size=(3, 4)) + 1, "bias": rng.normal(size=5),
           "bn.beta": rng.normal(size=(2, 3, 2)) + 0.5}  # fmt: skip
STEPS = [[rng.normal(size=w.shape) + 0.3 for w in WEIGHTS.values()] for _ in range(3)]

ADDED = {  # weight decay is a part of the gradient
    "SGD": lambda p, **k: nn.SGD(p, 0.1, **k),
    "SGD, momentum": lambda p, **k: nn.SGD(p, 0.1, momentum=0.9, **k),
    "Momentum": lambda p, **k: nn.Momentum(p, 0.1, 0.9, **k),
    "Momentum, Nesterov": lambda p, **k: nn.Momentum(p, 0.1, 0.9, use_nesterov=True, **k),
    "Adam": lambda p, **k: nn.Adam(p, 0.1, **k),
    "Adam, amsgrad": lambda p, **k: nn.Adam(p, 0.1, use_amsgrad=True, **k),
    "LazyAdam": lambda p, **k: nn.LazyAdam(p, 0.1, **k),
    "AdaMax": lambda p, **k: nn.AdaMax(p, 0.1, **k),
    "RMSProp": lambda p, **k: nn.RMSProp(p, 0.1, **k),
    "Adagrad": lambda p, **k: nn.Adagrad(p, learning_rate=0.1, **k),
    "Adadelta": lambda p, **k: nn.Adadelta(p, 1.0, **k),
    "ProximalAdagrad": lambda p, **k: nn.ProximalAdagrad(p, learning_rate=0.1, **k),
    "FTRL": lambda p, **k: nn.FTRL(p, learning_rate=0.1, **k),
    "Rprop": lambda p, **k: nn.Rprop(p, 0.1, **k),
    "ASGD": lambda p, **k: nn.ASGD(p, 0.1, **k),
}
DECOUPLED = {
    "AdamWeightDecay": lambda p, **k: nn.AdamWeightDecay(p, 0.1, **k),
    "Lamb": lambda p, **k: nn.Lamb(p, 0.1, **k),
}
ALL = {**ADDED, **DECOUPLED}


class Constant(nn.Cell):
    def __init__(self, value):
        super().__init__()
        self.value = value

    def construct(self, step):
        return self.value + 0.0 * step.astype(ms.float32)[0]


def parameters():
    return [ms.Parameter(ms.Tensor(w, ms.float32), name=n) for n, w in WEIGHTS.items()]


def trained(make, gradient=lambda p, g: g, compiled=False):
    """Return the Parameters after three steps of the optimiser that `make` returns for them."""
    params = parameters()
    optimizer = make(params)

    def step(*gradients):
        return optimizer(gradients)

    run = ms.jit(step) if compiled else step
    for gradients in STEPS:
        run(*[ms.Tensor(gradient(p.asnumpy(), g), ms.float32)
              for p, g in zip(params, gradients, strict=True)])  # fmt: skip
    return [p.asnumpy() for p in params]


def close(found, wanted):
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


def centred(g):
    return g - g.mean(tuple(range(1, g.ndim)), keepdims=True) if g.ndim > 1 else g


def grouped(name, decay, centre=True):
    return lambda p: ALL[name]([
        {"params": p, "grad_centralization": centre, "weight_decay": decay}
    ])  # fmt: skip


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", ADDED)
def test_the_decay_is_centralised_with_the_gradient(name, compiled):
    wanted = trained(ADDED[name], lambda p, g: centred(g + 0.2 * p))
    close(trained(grouped(name, 0.2), compiled=compiled), wanted)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", DECOUPLED)
def test_a_decoupled_decay_is_not_centralised(name, compiled):
    wanted = trained(grouped(name, 0.2, False), lambda p, g: centred(g))
    close(trained(grouped(name, 0.2), compiled=compiled), wanted)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("name", ALL)
def test_a_schedule_of_one_value_is_the_same_as_the_number(name, centre, compiled):
    wanted = trained(grouped(name, 0.2, centre))
    close(trained(grouped(name, Constant(0.2), centre), compiled=compiled), wanted)


@pytest.mark.parametrize("decay", [0.2, Constant(0.2)])
@pytest.mark.parametrize("name", ALL)
def test_which_names_are_exempt_without_groups(name, decay):
    plain = trained(ALL[name])
    found = trained(lambda p: ALL[name](p, weight_decay=decay))
    changed = [not np.array_equal(a, b) for a, b in zip(found, plain, strict=True)]
    assert changed == [True, True, name == "FTRL"]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("first", [0.3, Constant(0.3)], ids=["number", "Cell"])
@pytest.mark.parametrize("name", ALL)
def test_groups_may_mix_numbers_and_schedules(name, first, compiled):
    def groups(one, other):
        return lambda p: ALL[name]([
            {"params": p[:1], "weight_decay": one}, {"params": p[1:], "weight_decay": other},
        ])  # fmt: skip

    wanted = trained(groups(0.3, 0.2))
    close(trained(groups(first, 0.2), compiled=compiled), wanted)
    close(trained(groups(first, Constant(0.2)), compiled=compiled), wanted)
