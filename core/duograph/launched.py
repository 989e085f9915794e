"""Finds out from the environment whether a launcher started this process as one of several.

`ranks.world` calls it before it assumes that this process runs alone. The module must not
communicate.
"""

from __future__ import annotations

import hashlib
import os
from typing import NamedTuple

__all__ = ["Launched", "launched", "mark_rank", "rank_of_parent"]

# Set by a connected rank for the processes that it starts: its process id, its rank, the number of
# ranks, and `_job`.
_RANK = "DUOGRAPH_RANK_PROCESS"
# Variables that differ between two jobs of a launcher, such as one that a rank has launched.
_JOBS = ("PMIX_NAMESPACE", "PMI_FD", "PMI_PORT", "MASTER_ADDR", "MASTER_PORT", "MS_SCHED_HOST",
         "MS_SCHED_PORT", "SLURM_JOB_ID", "SLURM_STEP_ID", "DUOGRAPH_TCP_TOKEN")  # fmt: skip

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


def _job() -> str:
    """Return a digest of what the launcher has told this process about itself."""
    told = repr((launched(), [os.environ.get(name) for name in _JOBS]))
    return hashlib.blake2b(told.encode(), digest_size=8).hexdigest()


def mark_rank(rank: int, size: int) -> None:
    """Tell processes that this one will start that it is rank `rank` of `size`.

    They inherit the launcher's variables, by which they would take themselves for that rank.
    """
    os.environ[_RANK] = f"{os.getpid()} {rank} {size} {_job()}"


def rank_of_parent() -> tuple[int, int] | None:
    """Return (rank, number of ranks) if a rank has started this process; None if it has not.

    A process that a launcher has started, even one that a rank has called, is a rank itself.
    """
    process, rank, size, job = (os.environ.get(_RANK, "").split() + [""] * 4)[:4]
    if not process or process == str(os.getpid()) or job != _job():
        return None
    return int(rank), int(size)
