"""Layers of older programs that are compared with MindSpore's values."""

from __future__ import annotations

import numpy as np


def _numbers(*shape, low=0.1, high=2.0):
    return np.random.default_rng(sum(shape)).uniform(low, high, shape).astype(np.float32)


UNPOOLED = np.array([[[[5.0, 7.0], [13.0, 15.0]]]], np.float32)
PLACES = np.array([[[[5, 7], [13, 15]]]], np.int64)

# constructor -> inputs
ROWS = [
    ("DiGamma()", [_numbers(5)]), ("LGamma()", [_numbers(5)]),
    ("LBeta()", [_numbers(5), _numbers(5)[::-1].copy()]),
    ("IGamma()", [_numbers(5), _numbers(5)[::-1].copy()]),
    ("MatDet()", [_numbers(2, 3, 3)]),
    ("MatrixDiag()", [_numbers(2, 3)]), ("MatrixDiagPart()", [_numbers(2, 3, 4)]),
    ("MatrixSetDiag()", [_numbers(2, 3, 4), _numbers(2, 3)]),
    ("LRN(2, 1.5, 0.5, 0.75)", [_numbers(2, 5, 3, 3)]),
    ("MaxUnpool1d(2)", [UNPOOLED[0, :, 0], np.array([[1, 3]], np.int64)]),
    ("MaxUnpool2d(2)", [UNPOOLED, PLACES]),
    ("MaxUnpool2d(2, 2, 1)", [UNPOOLED, np.array([[[[0, 1], [2, 3]]]], np.int64)]),
    ("MaxUnpool3d(2)", [UNPOOLED[:, :, None], PLACES[:, :, None]]),
    ("MSSSIM(power_factors=(0.5, 0.3), filter_size=5)",
     [_numbers(2, 3, 20, 20, high=1.0), _numbers(2, 3, 20, 20, low=0.2, high=0.9)]),
    ("MultilabelMarginLoss()",
     [np.array([[0.1, 0.2, 0.4, 0.8]], np.float32), np.array([[3, 0, -1, 1]], np.int32)]),
]  # fmt: skip

# optimisers: three steps
TRAINED = ["ProximalAdagrad(p, 0.1, 0.1, 0.05, 0.02)",
           "ProximalAdagrad(p, 0.2, 0.1, loss_scale=2.0, weight_decay=0.1)"]  # fmt: skip


def computed(ms, source, inputs):
    """Return the output of a layer as nested lists, or the name of its error."""
    try:
        return eval(f"nn.{source}", {"nn": ms.nn})(*map(ms.Tensor, inputs)).asnumpy().tolist()
    except (RuntimeError, ValueError) as error:  # what MindSpore cannot do is not compared
        return f"{type(error).__name__}: {str(error)[:80]}"


def trained(ms, source):
    """Return a Parameter after three steps of an optimiser."""
    p = ms.Parameter(ms.Tensor(np.array([1.0, -2.0, 0.01], np.float32)), name="p")
    optimizer = eval(f"nn.{source}", {"nn": ms.nn, "p": [p]})
    for step in range(3):
        optimizer((ms.Tensor(np.array([1.0, -0.5, 0.2], np.float32) * (step + 1)),))
    return p.asnumpy().tolist()
