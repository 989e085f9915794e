"""Finds out from the environment whether a launcher started this process as one of several.

`ranks.world` asks before it takes this process to be alone. Nothing here communicates.
"""

from __future__ import annotations

import os
from typing import NamedTuple

__all__ = ["Launched", "launched"]

# Launcher, the variable with the number of processes, and a variable that only processes started by
# it have.
_LAUNCHERS = (
    ("Open MPI", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
    ("MPICH or Intel MPI", "PMI_SIZE", "PMI_RANK"),
    ("msrun", "MS_WORKER_NUM", "MS_ROLE"),
    ("torchrun", "WORLD_SIZE", "LOCAL_RANK"),
    ("srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"),
    ("the rank table", "RANK_SIZE", "RANK_ID"),
)


class Launched(NamedTuple):
    """How a process was started as one of several.

    Attributes:
        launcher: what started it.
        size: number of processes.
        variable: the variable of the environment that has it.
        rank: number of this process, None if the launcher does not say it.
    """

    launcher: str
    size: int
    variable: str
    rank: int | None


def launched() -> Launched | None:
    """Return the launcher that started this process as one of several, or None."""
    for launcher, size, rank in _LAUNCHERS:
        number = os.environ.get(size, "").strip()
        if number.isdigit() and int(number) > 1 and os.environ.get(rank):
            text = os.environ[rank].strip()
            return Launched(launcher, int(number), size, int(text) if text.isdigit() else None)
    return None
