"""Layers of older programs that are compared with MindSpore's values."""

from __future__ import annotations

import numpy as np


def _numbers(*shape, low=0.1, high=2.0):
    return np.random.default_rng(sum(shape)).uniform(low, high, shape).astype(np.float32)


UNPOOLED = np.array([[[[5.0, 7.0], [13.0, 15.0]]]], np.float32)
PLACES = np.array([[[[5, 7], [13, 15]]]], np.int64)

# classes that a sampler might have drawn, with their expected counts
DRAWN = "(Tensor([6, 2, 0, 3]), Tensor([[0.5], [0.6], [0.7]]), Tensor([0.5, 0.5, 0.4, 0.3]))"
DRAWN_FOR_TWO = DRAWN.replace("[[0.5], [0.6], [0.7]]", "[[0.5, 0.4], [0.6, 0.3], [0.7, 0.2]]")
CLASSES = [_numbers(7, 4), _numbers(7), np.array([0, 1, 2], np.int32), _numbers(3, 4, low=-2.0)]
PAIRS = [*CLASSES[:2], np.array([[0, 1], [2, 3], [4, 5]]), CLASSES[3]]

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
    (f"SampledSoftmaxLoss(4, 7, sampled_values={DRAWN})", CLASSES),
    (f"SampledSoftmaxLoss(4, 7, 2, {DRAWN_FOR_TWO})", PAIRS),
    ("SampledSoftmaxLoss(7, 7)", CLASSES),  # all classes, in any order
    ("SampledSoftmaxLoss(7, 7, num_true=2, remove_accidental_hits=False)", PAIRS),
]  # fmt: skip

# optimisers: three steps
TRAINED = ["ProximalAdagrad(p, 0.1, 0.1, 0.05, 0.02)",
           "ProximalAdagrad(p, 0.2, 0.1, loss_scale=2.0, weight_decay=0.1)",
           "AdaFactor(p)", "AdaFactor(p, beta1=None)", "AdaFactor(p, warmup_init=True)",
           "AdaFactor(p, weight_decay=0.1, decay_rate=0.5)", "AdaFactor(p, eps=(1e-3, 1e-1))",
           "AdaFactor(p, clip_threshold=0.5, compression=True)",
           "AdaFactor(p, 0.1, relative_step=False)",
           "AdaFactor(p, 0.1, relative_step=False, scale_parameter=False, beta1=0.0)",
           "AdaFactor(p, [0.1, 0.2, 0.3], relative_step=False)",
           "AdaFactor(p, loss_scale=2.0)"]  # fmt: skip


def computed(ms, source, inputs):
    """Return the output of a layer as nested lists, or the name of its error."""
    try:
        return (
            eval(f"nn.{source}", {"nn": ms.nn, "Tensor": ms.Tensor})(*map(ms.Tensor, inputs))
            .asnumpy()
            .tolist()
        )
    except (RuntimeError, ValueError) as error:  # what MindSpore cannot do is not compared
        return f"{type(error).__name__}: {str(error)[:80]}"


SHAPES = [(3,), (2, 3), (2, 2, 3)]


def trained(ms, source, decorator=lambda f: f):
    """Return the elements of three Parameters after three steps of an optimiser, one list.

    The function of a step passes through `decorator`.
    """
    params = [
        ms.Parameter(ms.Tensor(np.resize(np.array([1.0, -2.0, 0.01, 0.5], np.float32), s)), name=n)
        for s, n in zip(SHAPES, "abc", strict=True)
    ]
    optimizer = eval(f"nn.{source}", {"nn": ms.nn, "p": params})
    take_step = decorator(lambda a, b, c: optimizer((a, b, c)))
    for step in range(3):
        gradient = np.array([1.0, -0.5, 0.2, 0.7, -0.1], np.float32) * (step + 1)
        take_step(*[ms.Tensor(np.resize(gradient, s)) for s in SHAPES])
    return [x for p in params for x in p.asnumpy().ravel().tolist()]
