"""Finds out from the environment whether a launcher started this process as one of several.

`ranks.world` calls it before it assumes that this process runs alone. The module must not
communicate.
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
    """Description of how a launcher started this process as one of several.

    Attributes:
        launcher: name of the launcher, such as "Open MPI".
        size: number of processes.
        variable: name of the environment variable that holds the number of processes.
        rank: number of this process, from 0; None if the launcher's variable holds no number.
    """

    launcher: str
    size: int
    variable: str
    rank: int | None


def launched() -> Launched | None:
    """Return how a launcher started this process as one of several; None if it runs alone."""
    for launcher, size, rank in _LAUNCHERS:
        number = os.environ.get(size, "").strip()
        if number.isdigit() and int(number) > 1 and os.environ.get(rank):
            text = os.environ[rank].strip()
            return Launched(launcher, int(number), size, int(text) if text.isdigit() else None)
    return None
