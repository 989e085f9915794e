"""Profiles whose results go to a folder: `Profiler` and `tensorboard_trace_handler`.

For users; both names are MindSpore's. Each result is a trace and a file of tables, whose names have
the time and the process, so that ranks may share a folder. Recording belongs to `profiles`; nothing
here may record.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import Any

from ..errors import ArgumentError
from ..option_checks import check_options
from .profiles import profile

__all__ = ["Profiler", "tensorboard_trace_handler"]


class Profiler(profile):
    """MindSpore's older profiler (`mindspore.Profiler`): `profile` with a folder for results.

    Args:
        output_path: folder of the results; default ``"./data"``.
        profiler_level, activities, schedule, on_trace_ready, start_profile, ...: see `profile`.
        Options that choose counters of Ascend chips have no effect.

    Raises:
        TypeError: an option is unknown.

    Examples:
        >>> import duograph as ms
        >>> profiler = ms.Profiler(start_profile=False)
        >>> profiler.start()
        >>> y = ms.Tensor([1.0]) + 1
        >>> profiler.stop()
    """

    _OWN = ("with_stack", "profile_memory", "start_profile", "record_shapes", "schedule",
            "on_trace_ready", "activities", "data_process", "parallel_strategy", "hbm_ddr", "pcie",
            "sync_enable", "experimental_config")  # fmt: skip
    _MOOT = ("profiler_level", "aic_metrics", "l2_cache", "data_simplification", "mstx",
             "export_type", "op_time", "profile_communication", "profile_framework",
             "host_stack", "timeline_limit", "env_enable", "ascend_job_id",
             "mstx_domain_include", "mstx_domain_exclude", "sys_io", "sys_interconnection",
             "host_sys")  # fmt: skip

    def __init__(self, **kwargs: Any) -> None:
        self._folder = kwargs.pop("output_path", None) or "./data"
        unknown = [name for name in kwargs if name not in (*self._OWN, *self._MOOT)]
        if unknown:
            raise ArgumentError(
                f"Profiler: got the unknown options {', '.join(unknown)}; wanted output_path, "
                f"{', '.join(self._OWN)}"
            )
        super().__init__(**{k: v for k, v in kwargs.items() if k in self._OWN})

    def analyse(
        self,
        offline_path: str | None = None,
        pretty: bool = False,
        step_list: list[int] | None = None,
        mode: str = "sync",
    ) -> None:
        """Stop the profile if it runs.

        Write the trace and the tables into the folder `output_path`.

        Args:
            offline_path: folder to write to instead of `output_path`.
            pretty, step_list, mode: accepted and ignored; setting one warns once.
        """
        check_options("Profiler.analyse", pretty=pretty, step_list=step_list, mode=mode)
        if self._running:
            self.stop()
        _written(self, offline_path or self._folder, None)

    def op_analyse(self, op_name: str | list[str], device_id: int | None = None) -> str:
        """Return the totals of the named ops as JSON text: name -> calls, seconds and bytes.

        Args:
            op_name: name of an op, or a list of names, in upper or lower case.
            device_id: an option without effect.

        Raises:
            TypeError: `op_name` is no string or list of strings.
        """
        check_options("Profiler.op_analyse", device_id=device_id)
        names = [op_name] if isinstance(op_name, str) else op_name
        if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
            raise ArgumentError(f"op_analyse: got {op_name!r}; wanted a name or a list of names")
        wanted = {name.lower() for name in names}
        found = [r for r in self.rows() if r.name.lower() in wanted]
        return json.dumps(
            {r.name: {"calls": r.calls, "seconds": r.seconds, "bytes": r.nbytes} for r in found}
        )


def tensorboard_trace_handler(
    dir_name: str | None = None,
    worker_name: str | None = None,
    analyse_flag: bool = True,
    async_mode: bool = False,
) -> Callable[[profile], None]:
    """Return a function for `on_trace_ready` that writes results into a folder.

    Each call writes ``WORKER_TIME.pt.trace.json``, which TensorBoard and Perfetto read, and
    ``WORKER_TIME.txt`` with the tables.

    Args:
        dir_name: the folder, created if necessary; default ``"./data"``.
        worker_name: the first part of the file names; by default the names of host and process.
        analyse_flag: accepted and ignored; the files are always complete.
        async_mode: accepted and ignored; the files are written when the call returns.

    Raises:
        TypeError: a name is no string.

    Examples:
        >>> import os, tempfile, duograph as ms
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ready = ms.profiler.tensorboard_trace_handler(folder, "w")
        ...     with ms.profile(on_trace_ready=ready):
        ...         y = ms.Tensor([1.0]) + 1
        ...     print(len(list(os.scandir(folder))))
        2
    """
    check_options(
        "profiler.tensorboard_trace_handler", analyse_flag=analyse_flag, async_mode=async_mode
    )
    for name, value in (("dir_name", dir_name), ("worker_name", worker_name)):
        if value is not None and not isinstance(value, str):
            raise ArgumentError(
                f"tensorboard_trace_handler: got {type(value).__name__} for {name}; wanted a str"
            )

    def write(finished: profile) -> None:
        _written(finished, dir_name or "./data", worker_name)

    return write


def _written(finished: profile, folder: str, worker: str | None) -> None:
    """Write the trace and the tables of a profile into a folder.

    `worker` is the first part of the file names; None means the names of host and process.
    """
    os.makedirs(folder, exist_ok=True)
    if worker is None:
        worker = f"{os.uname().nodename if hasattr(os, 'uname') else 'host'}_{os.getpid()}"
    base = os.path.join(
        folder, f"{worker}_{time.strftime('%Y%m%d%H%M%S')}_{time.time_ns() % 10**9:09d}"
    )
    finished.export_chrome_trace(f"{base}.pt.trace.json")
    texts = [finished.table(by=by, rows=None) for by in ("op", "line", "kernel")]
    with open(f"{base}.txt", "w", encoding="utf-8") as file:
        file.write("\n\n".join(texts) + "\n")
