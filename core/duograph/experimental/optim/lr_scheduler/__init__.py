"""Schedules of learning rates for optimisers (`mindspore.experimental.optim.lr_scheduler`).

They serve the optimisers of `experimental.optim` and `mint.optim`. `step()` computes the next rates
from the present ones, so that the effects of several schedules of one optimiser multiply;
`step(epoch)` computes them from the initial rates where a formula exists. Rates and the epoch are
Parameters, so that a compiled training step may contain `step()`.
"""

from __future__ import annotations

from ._base import LRScheduler
from ._cycles import CosineAnnealingWarmRestarts, CyclicLR, ReduceLROnPlateau, SequentialLR
from ._decay import (
    ConstantLR,
    CosineAnnealingLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)

__all__ = [
    "StepLR", "LinearLR", "LRScheduler", "ExponentialLR", "PolynomialLR", "MultiplicativeLR",
    "ConstantLR", "MultiStepLR", "LambdaLR", "SequentialLR", "ReduceLROnPlateau", "CyclicLR",
    "CosineAnnealingWarmRestarts", "CosineAnnealingLR",
]  # fmt: skip
