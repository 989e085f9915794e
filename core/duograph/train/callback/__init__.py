"""Callbacks: what happens around the epochs and steps of `Model.train`, `fit` and `eval`."""

from __future__ import annotations

from ._callback import Callback, CallbackList, RunContext, RunParameters
from .checkpoint import CheckpointConfig, ModelCheckpoint
from .monitors import (
    EarlyStopping,
    History,
    LambdaCallback,
    LearningRateScheduler,
    LossMonitor,
    ReduceLROnPlateau,
    SummaryCollector,
    TimeMonitor,
)
