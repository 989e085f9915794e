"""The profiler: what ran, for how long, from which line of the program (`mindspore.profiler`).

`profile` records; `schedule` chooses which steps are recorded; `tensorboard_trace_handler` writes
files; `mstx` names parts of a program. docs/profiler.md shows examples of the results.
"""

from .options import (
    AicoreMetrics,
    ExportType,
    HostSystem,
    ProfilerActivity,
    ProfilerLevel,
    _ExperimentalConfig,
)
from .profiles import profile
from .ranges import mstx
from .result_folders import Profiler, tensorboard_trace_handler
from .schedules import ProfilerAction, schedule

__all__ = [
    "AicoreMetrics",
    "ExportType",
    "HostSystem",
    "Profiler",
    "ProfilerAction",
    "ProfilerActivity",
    "ProfilerLevel",
    "_ExperimentalConfig",
    "mstx",
    "profile",
    "schedule",
    "tensorboard_trace_handler",
]
