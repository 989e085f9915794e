"""Optimisers and schedules of `experimental.optim` that are compared with MindSpore's values.

`record_experimental.py` runs the rows with MindSpore, `test_experimental.py` with duograph.
"""

from __future__ import annotations

import numpy as np

OPTIMIZERS = [
    "ASGD(groups, 0.1, 0.01, 0.5, 1.0)", "ASGD(groups, 0.1, weight_decay=0.1, maximize=True)",
    "Adadelta(groups, 0.5, 0.8, 1e-4)", "Adadelta(groups, weight_decay=0.1, maximize=True)",
    "Adagrad(groups, 0.1, 0.5, 0.1, 0.2)", "Adagrad(groups, maximize=True)",
    "Adam(groups, 0.1, (0.8, 0.9))", "Adam(groups, weight_decay=0.1, maximize=True)",
    "AdamW(groups, 0.1, (0.8, 0.9))", "AdamW(groups, 0.1, amsgrad=True, maximize=True)",
    "Adamax(groups, 0.1, (0.8, 0.9))", "Adamax(groups, weight_decay=0.1, maximize=True)",
    "NAdam(groups, 0.1, (0.8, 0.9))", "NAdam(groups, weight_decay=0.1, momentum_decay=0.1)",
    "RAdam(groups, 0.1, (0.8, 0.9))", "RAdam(groups, 0.1, (0.5, 0.6), weight_decay=0.1)",
    "RMSprop(groups, 0.1, 0.9)",
    "RMSprop(groups, 0.1, momentum=0.5, centered=True, weight_decay=0.1, maximize=True)",
    "Rprop(groups, 0.1)", "Rprop(groups, 0.1, (0.4, 1.5), (0.05, 0.2), maximize=True)",
    "SGD(groups, 0.1)", "SGD(groups, 0.1, 0.9, 0.1, 0.1)",
    "SGD(groups, 0.1, momentum=0.9, nesterov=True, maximize=True)",
]  # fmt: skip

SCHEDULES = [
    "StepLR(o, 2)", "StepLR(o, 3, 0.5)", "LinearLR(o)", "LinearLR(o, 0.5, 0.25, 3)",
    "ExponentialLR(o, 0.5)", "PolynomialLR(o)", "PolynomialLR(o, 4, 2.0)",
    "LambdaLR(o, [lambda n: n * 0.5, lambda n: 0.9**n])",
    "MultiplicativeLR(o, lambda n: 0.95)", "MultiStepLR(o, [2, 4, 4])", "ConstantLR(o, 0.5, 3)",
    "SequentialLR(o, [ConstantLR(o, 0.5, 9), ExponentialLR(o, 0.9)], [3])",
    "CyclicLR(o, 0.1, 0.5, 3, 2)", "CyclicLR(o, 0.1, 0.5, 2, mode='triangular2')",
    "CyclicLR(o, [0.1, 0.2], [0.5, 0.6], 2, mode='exp_range', gamma=0.9)",
    "CyclicLR(o, 0.1, 0.5, 2, scale_fn=lambda x: 0.5**x)",
    "CosineAnnealingWarmRestarts(o, 3)", "CosineAnnealingWarmRestarts(o, 2, 2, 0.01)",
    "CosineAnnealingLR(o, 3)", "CosineAnnealingLR(o, 4, 0.01)",
    "ReduceLROnPlateau(o, factor=0.5, patience=1)",
    "ReduceLROnPlateau(o, 'max', 0.5, 0, 0.1, 'abs', 2, [0.01, 0.2])",
]  # fmt: skip

# schedules with a formula for `step(epoch)`
CLOSED = ["StepLR(o, 3, 0.5)", "ExponentialLR(o, 0.5)", "PolynomialLR(o, 4, 2.0)",
          "ConstantLR(o, 0.5, 3)", "CosineAnnealingLR(o, 4, 0.01)"]  # fmt: skip

METRICS = [3.0, 2.0, 2.5, 2.5, 1.0, 1.0, 0.95, 4.0]


def gradients():
    """Return the gradients of four steps: for `a` (2, 3) and `b` (3,)."""
    rng = np.random.default_rng(3)
    return [(rng.normal(size=(2, 3)).astype("f"), rng.normal(size=3).astype("f")) for _ in range(4)]


def parameters(ms):
    """Return the two Parameters."""
    a = np.linspace(-1, 1, 6).astype("f").reshape(2, 3)
    return (ms.Parameter(ms.Tensor(a), name="a"),
            ms.Parameter(ms.Tensor(np.array([0.5, -2.0, 3.0], "f")), name="b"))  # fmt: skip


def trained(ms, optim, source, steps):
    """Return the Parameters after the steps, of an optimiser whose second group has its own lr."""
    a, b = parameters(ms)
    groups = [{"params": [a]}, {"params": [b], "lr": 0.05}]
    optimizer = eval(source, {**vars(optim), "groups": groups})
    for step in steps:
        optimizer(tuple(ms.Tensor(g) for g in step))
    return [a.asnumpy(), b.asnumpy()]


def rates_of(ms, optim, source, closed=False):
    """Return the rates of two groups, at the start and after each of eight steps."""
    a, b = parameters(ms)
    o = optim.SGD([{"params": [a]}, {"params": [b], "lr": 0.3}], 0.1)
    schedule = eval(source, {**vars(optim.lr_scheduler), "o": o})
    found = [[float(group["lr"].asnumpy()) for group in o.param_groups]]
    for number in range(8):
        if "Plateau" in source:
            schedule.step(ms.Tensor(METRICS[number], ms.float32))
        elif closed:
            schedule.step(ms.Tensor(float(number), ms.float32))
        else:
            schedule.step()
        found.append([float(group["lr"].asnumpy()) for group in o.param_groups])
    return found
