"""Optimisers with parameter groups, and their schedules (`mindspore.experimental.optim`).

An optimiser is a Cell that is called with the gradients; its `param_groups` hold the settings.
`lr_scheduler` has the schedules of learning rates. `mint.optim` derives from the optimisers here.
"""

from __future__ import annotations

from . import lr_scheduler
from .adam import Adam, AdamW
from .adaptive import Adadelta, Adagrad, Adamax, NAdam, RAdam, RMSprop
from .averaging import ASGD, Rprop
from .optimizer import Optimizer
from .sgd import SGD

__all__ = [
    "ASGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "Optimizer", "RAdam",
    "RMSprop", "Rprop", "SGD", "lr_scheduler",
]  # fmt: skip
