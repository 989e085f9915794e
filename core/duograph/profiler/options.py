"""Options of a profile under MindSpore's names: enumerations and `_ExperimentalConfig`.

Most of them choose counters of Ascend chips; these options have no effect in duograph and warn
once.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

from ..option_checks import check_options

__all__ = [
    "AicoreMetrics", "ExportType", "HostSystem", "ProfilerActivity", "ProfilerLevel",
    "_ExperimentalConfig",
]  # fmt: skip


class ProfilerLevel(enum.Enum):
    """How much MindSpore's profiler collects; in duograph every level collects the same events.

    Examples:
        >>> import duograph as ms
        >>> ms.profiler.ProfilerLevel.Level0.value
        'Level0'
    """

    LevelNone = "LevelNone"
    Level0 = "Level0"
    Level1 = "Level1"
    Level2 = "Level2"


class ProfilerActivity(enum.Enum):
    """What MindSpore's profiler watches: the host (CPU) or a device.

    Duograph always watches both.
    """

    NPU = "NPU"
    GPU = "GPU"
    CPU = "CPU"


class AicoreMetrics(enum.Enum):
    """Names of hardware counters of Ascend chips; no backend of duograph reads them."""

    PipeUtilization = "PipeUtilization"
    ArithmeticUtilization = "ArithmeticUtilization"
    Memory = "Memory"
    MemoryL0 = "MemoryL0"
    MemoryUB = "MemoryUB"
    ResourceConflictRatio = "ResourceConflictRatio"
    L2Cache = "L2Cache"
    MemoryAccess = "MemoryAccess"
    AiCoreNone = "None"


class ExportType(enum.Enum):
    """The file formats of MindSpore's results; duograph writes text and JSON whatever is chosen."""

    Db = "db"
    Text = "text"


class HostSystem(enum.Enum):
    """Operating system counters that MindSpore's profiler reads; duograph does not read them."""

    CPU = "cpu"
    MEM = "mem"
    DISK = "disk"
    NETWORK = "network"
    OSRT = "osrt"


class _ExperimentalConfig:
    """Further options of MindSpore's profiler (`mindspore.profiler._ExperimentalConfig`).

    They choose counters and files of Ascend chips. Each is accepted; one that is not at its default
    warns once that it has no effect.
    """

    def __init__(
        self,
        profiler_level: ProfilerLevel = ProfilerLevel.Level0,
        aic_metrics: AicoreMetrics = AicoreMetrics.AiCoreNone,
        l2_cache: bool = False,
        mstx: bool = False,
        data_simplification: bool = True,
        export_type: Sequence[ExportType] | None = None,
        mstx_domain_include: Sequence[str] | None = None,
        mstx_domain_exclude: Sequence[str] | None = None,
        sys_io: bool = False,
        sys_interconnection: bool = False,
        host_sys: Sequence[HostSystem] | None = None,
    ) -> None:
        check_options(
            "profiler._ExperimentalConfig",
            l2_cache=l2_cache,
            data_simplification=data_simplification,
            export_type=export_type,
            sys_io=sys_io,
            sys_interconnection=sys_interconnection,
            host_sys=host_sys,
        )
        self.profiler_level = profiler_level
        self.aic_metrics = aic_metrics
        self.l2_cache = l2_cache
        self.mstx = mstx
        self.data_simplification = data_simplification
        self.export_type = export_type
        self.mstx_domain_include = mstx_domain_include
        self.mstx_domain_exclude = mstx_domain_exclude
        self.sys_io = sys_io
        self.sys_interconnection = sys_interconnection
        self.host_sys = host_sys
