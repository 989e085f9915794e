"""Training: Model, callbacks, metrics, mixed precision and checkpoints (`mindspore.train`).

For user code. It is built on `nn`, `amp` and the compiler, which must not import it.
"""

from __future__ import annotations

from .. import amp
from ..amp import DynamicLossScaleManager, FixedLossScaleManager, LossScaleManager
from ..nn.metrics import *  # noqa: F403
from ..nn.metrics.table import names
from . import callback, serialization, summary
from .callback import (
    AnomalyMonitor,
    Callback,
    CheckpointConfig,
    EarlyStopping,
    History,
    LambdaCallback,
    LearningRateScheduler,
    LossMonitor,
    MetricsPlot,
    ModelCheckpoint,
    ProgressMonitor,
    ReduceLROnPlateau,
    RunContext,
    SummaryCollector,
    TimeMonitor,
)
from .dataset_helper import DatasetHelper, connect_network_with_dataset, data_sink
from .model import Model
from .serialization import *  # noqa: F403
from .summary import SummaryRecord
