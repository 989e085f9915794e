"""Conformance test cases of optimisers' update steps, against the papers' formulas in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...dtype import FLOATING
from ...ops.optimizer import (
    adadelta_step,
    adagrad_step,
    adam_step,
    adam_weight_decay_step,
    adamax_step,
    adamw_amsgrad_step,
    adamw_step,
    amsgrad_step,
    centered_rmsprop_step,
    ftrl_step,
    momentum_step,
    moving_statistics,
    rmsprop_step,
    sgd_step,
)
from ..case import Array, Bad, Make, OpCase, Oracle, Sample, Samples

WHY = "weights are floating"

ROW, ROWS = np.ones(4, np.float32), np.ones((2, 3), np.float32)


def steps(slots: int, rates: int, positive: tuple[int, ...] = (), **kwargs: object) -> Samples:
    """Return a function that yields test samples of an optimiser step.

    The op is `step(param, *slots, grad, *rates)`. A slot is a tensor of the optimiser's state;
    `slots` and `rates` are the numbers of these arguments. The slots whose indices
    (from 0) are in `positive` hold squares, so their values are positive. `kwargs` are passed to
    every call.
    """

    def samples(make: Make) -> Iterator[Sample]:
        def call(shape: tuple[int, ...], kind: str = "normal", **extra: object) -> Sample:
            held = [make(*shape, low=0.1 if i in positive else -1, high=1) for i in range(slots)]
            values = [make(low=0.1, high=0.6) for _ in range(rates)]
            grad = make(*shape) if kind != "nan" else make.special(*shape)
            if kind == "noncontiguous":
                grad = make.strided(*shape)
            return Sample((make(*shape), *held, grad, *values), {**kwargs, **extra}, kind)

        yield call((3, 4))
        yield call((3, 4), "edge", weight_decay=0.25)
        yield call((3, 4), "edge", scale=0.5)
        yield call((), "zero_d")
        yield call((0, 3), "empty")
        yield call((7, 13), "odd")
        yield call((1031,), "odd")
        yield call((4, 5), "noncontiguous")
        yield call((9,), "nan")

    return samples


def in_numpy(formula: Callable[..., tuple[Array, ...]], slots: int) -> Oracle:
    """Return a test oracle of an optimiser step that computes `formula` in float64.

    The oracle casts each result to the dtype of the operand that it replaces. `slots` is the number
    of tensors of the optimiser's state.
    """

    def oracle(param: Array, *rest: Array, **options: Any) -> tuple[Array, ...]:
        held, (grad, *rates) = rest[:slots], rest[slots:]
        wide = [np.asarray(a, np.float64) for a in (param, *held, grad, *rates)]
        p, g = wide[0], wide[1 + slots]
        g = g * options.pop("scale", 1.0)
        decay = options.pop("weight_decay", 0.0)
        if formula is not adam_weight_decay:
            g = g + p * decay
        else:
            options["decay"] = decay
        found = formula(p, *wide[1 : 1 + slots], g, *wide[2 + slots :], **options)
        return tuple(f.astype(a.dtype) for f, a in zip(found, (param, *held), strict=True))

    return oracle


def sgd(p, a, s, g, lr, momentum=0.0, dampening=0.0, nesterov=False):
    a = a * momentum + g * (1 - dampening + s * dampening)
    return p - lr * (g + momentum * a if nesterov else a), a, s * 0


def momentum(p, a, g, lr, mu, nesterov=False):
    a = mu * a + g
    return p - lr * (g + mu * a if nesterov else a), a


def adam(p, m, v, g, lr, p1, p2, beta1=0.9, beta2=0.999, eps=1e-8, nesterov=False):
    m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
    rate = lr * np.sqrt(1 - p2) / (1 - p1)
    top = beta1 * m + (1 - beta1) * g if nesterov else m
    return p - rate * top / (np.sqrt(v) + eps), m, v


def amsgrad(p, m, v, top, g, lr, p1, p2, beta1=0.9, beta2=0.999, eps=1e-8):
    m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
    top = np.maximum(top, v)
    return p - lr * np.sqrt(1 - p2) / (1 - p1) * m / (np.sqrt(top) + eps), m, v, top


def adamw(p, m, v, g, lr, c1, c2, beta1=0.9, beta2=0.999, eps=1e-8, decoupled=0.0):
    m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
    root = np.sqrt(v) / np.sqrt(c2) + eps
    return p * (1 - lr * decoupled) - lr / c1 * m / root, m, v


def adamw_amsgrad(p, m, v, top, g, lr, c1, c2, beta1=0.9, beta2=0.999, eps=1e-8, decoupled=0.0):
    m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
    top = np.maximum(top, v)
    root = np.sqrt(top) / np.sqrt(c2) + eps
    return p * (1 - lr * decoupled) - lr / c1 * m / root, m, v, top


def adam_weight_decay(p, m, v, g, lr, beta1=0.9, beta2=0.999, eps=1e-6, decay=0.0):
    m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
    return p - lr * (m / (np.sqrt(v) + eps) + decay * p), m, v


def adamax(p, m, v, g, lr, p1, beta1=0.9, beta2=0.999, eps=1e-8):
    m, v = beta1 * m + (1 - beta1) * g, np.maximum(beta2 * v, np.abs(g))
    return p - lr / (1 - p1) * m / (v + eps), m, v


def rmsprop(p, s, mom, g, lr, decay=0.9, momentum=0.0, eps=1e-10):
    s = decay * s + (1 - decay) * g * g
    mom = momentum * mom + lr * g / np.sqrt(s + eps)
    return p - mom, s, mom


def centered_rmsprop(p, mg, s, mom, g, lr, decay=0.9, momentum=0.0, eps=1e-10):
    mg, s = decay * mg + (1 - decay) * g, decay * s + (1 - decay) * g * g
    mom = momentum * mom + lr * g / np.sqrt(s - mg * mg + eps)
    return p - mom, mg, s, mom


def adagrad(p, a, g, lr, update_slots=True):
    a = a + g * g if update_slots else a
    return p - lr * g / np.sqrt(a), a


def adadelta(p, a, u, g, lr, rho=0.9, eps=1e-6):
    a = rho * a + (1 - rho) * g * g
    step = np.sqrt(u + eps) / np.sqrt(a + eps) * g
    return p - lr * step, a, rho * u + (1 - rho) * step * step


def ftrl(p, a, z, g, lr, l1=0.0, l2=0.0, lr_power=-0.5):
    new = a + g * g
    z = z + g - (new**-lr_power - a**-lr_power) / lr * p
    shrunk = np.sign(z) * np.maximum(np.abs(z) - l1, 0)
    return -shrunk / (new**-lr_power / lr + 2 * l2), new, z


def statistics(make: Make) -> Iterator[Sample]:
    """Yield test samples of the update of batch normalisation's moving averages."""

    def call(shape: tuple[int, ...], kind: str = "normal", **kwargs: object) -> Sample:
        return Sample(tuple(make(*shape, low=0.1, high=1) for _ in range(4)), kwargs, kind)

    yield call((6,), keep=0.75, count=8)
    yield call((6,), "edge", count=1)
    yield call((), "zero_d")
    yield call((0,), "empty")
    yield call((37,), "odd", keep=0.5, count=100)
    rows = [make.strided(4, 5, low=0.1, high=1) for _ in range(4)]
    yield Sample(tuple(rows), {"keep": 0.9}, "noncontiguous")
    yield Sample((make(9), make(9), make.special(9), make(9)), {"keep": 0.9}, "nan")


def moving(mean: Array, variance: Array, new_mean: Array, new_variance: Array, keep=0.9, count=1):
    wide = [np.asarray(a, np.float64) for a in (mean, variance, new_mean, new_variance)]
    unbiased = wide[3] * (count / (count - 1) if count > 1 else 1)
    found = keep * wide[0] + (1 - keep) * wide[2], keep * wide[1] + (1 - keep) * unbiased
    return tuple(f.astype(a.dtype) for f, a in zip(found, (mean, variance), strict=True))


def _case(
    op: Any,
    formula: Callable[..., tuple[Array, ...]],
    slots: int,
    rates: int,
    positive: tuple[int, ...] = (),
    **kwargs: object,
) -> OpCase:
    bad = (ROWS, *[ROWS] * slots, ROW, *[np.float32(0.1).reshape(())] * rates)
    return OpCase(
        op, steps(slots, rates, positive, **kwargs), FLOATING, in_numpy(formula, slots),
        errors=[Bad(bad, ValueError, r"\(2, 3\).*\(4,\)|\(4,\).*\(2, 3\)")], why=WHY,
        name=op.name + "".join(f" {k}" for k, v in kwargs.items() if v is True),
    )  # fmt: skip


CASES = [
    _case(sgd_step, sgd, 2, 1, momentum=0.5, dampening=0.25),
    _case(sgd_step, sgd, 2, 1, momentum=0.5, nesterov=True),
    _case(momentum_step, momentum, 1, 2),
    _case(momentum_step, momentum, 1, 2, nesterov=True),
    _case(adam_step, adam, 2, 3, (1,)),
    _case(adam_step, adam, 2, 3, (1,), nesterov=True),
    _case(amsgrad_step, amsgrad, 3, 3, (1, 2)),
    _case(adamw_step, adamw, 2, 3, (1,), decoupled=0.25),
    _case(adamw_amsgrad_step, adamw_amsgrad, 3, 3, (1, 2), eps=0.125),
    _case(adam_weight_decay_step, adam_weight_decay, 2, 1, (1,)),
    _case(adamax_step, adamax, 2, 2, (1,)),
    _case(rmsprop_step, rmsprop, 2, 1, (0,), momentum=0.5),
    _case(centered_rmsprop_step, centered_rmsprop, 3, 1, (1,), momentum=0.5, eps=4.0),
    _case(adagrad_step, adagrad, 1, 1, (0,)),
    _case(adadelta_step, adadelta, 2, 1, (0, 1)),
    _case(ftrl_step, ftrl, 2, 1, (0,), l1=0.125, l2=0.25),
    OpCase(
        moving_statistics, statistics, FLOATING, moving, why=WHY,
        errors=[Bad((ROWS, ROWS, ROW, ROWS), ValueError, r"\(2, 3\).*\(4,\)")],
    ),
]  # fmt: skip
