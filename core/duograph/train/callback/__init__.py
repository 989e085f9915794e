"""Callbacks, which `Model.train`, `fit` and `eval` call before and after epochs and steps.

Users pass them to these methods and derive their own from `Callback`.
"""

from __future__ import annotations

from ._callback import Callback, CallbackList, RunContext, RunParameters
from .anomaly import AnomalyMonitor
from .checkpoint import CheckpointConfig, ModelCheckpoint
from .monitors import (
    EarlyStopping,
    History,
    LambdaCallback,
    LearningRateScheduler,
    LossMonitor,
    ReduceLROnPlateau,
    TimeMonitor,
)
from .progress import MetricsPlot, ProgressMonitor
from .summary import SummaryCollector
