"""Finds out from the environment whether a launcher started this process as one of several.

What answers for a single process, such as `communication.init` and `ops.AllReduce`, calls
`refuse_ranks` first: ranks that took themselves to be alone would each train a model of their own,
and say nothing. Nothing here communicates.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from .errors import UnsupportedOpError

__all__ = ["Launched", "launched", "refuse_ranks"]

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
    """How a process was started: the launcher, the number of processes, the variable with it."""

    launcher: str
    size: int
    variable: str


def launched() -> Launched | None:
    """Return the launcher that started this process as one of several, or None."""
    for launcher, size, rank in _LAUNCHERS:
        number = os.environ.get(size, "").strip()
        if number.isdigit() and int(number) > 1 and os.environ.get(rank):
            return Launched(launcher, int(number), size)
    return None


def refuse_ranks(owner: str) -> None:
    """Raise UnsupportedOpError if this process is one of several.

    `owner` is the function that the user called.

    Raises:
        UnsupportedOpError: a launcher started several processes, which do not communicate yet.
    """
    found = launched()
    if found is not None:
        raise UnsupportedOpError(
            f"{owner}: {found.launcher} started this process as one of {found.size} "
            f"({found.variable}={found.size}), and duograph does not communicate between processes "
            f"yet: each would train a model of its own. Start one process, or unset "
            f"{found.variable} to run them as programs of their own"
        )
