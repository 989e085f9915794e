"""A program that resumes from its last complete checkpoint, for `test_sharded_checkpoints`.

`python resuming_ranks.py FOLDER STEPS KILL` trains to step STEPS and saves each step. Rank 1 is
killed while it saves step KILL: its file is written, and the layout is not.
"""

from __future__ import annotations

import os
import pathlib
import signal
import sys

import numpy as np
from duograph.communication import get_rank, init
from duograph.train import (
    _checkpoint_file,
    latest_sharded_checkpoint,
    load_sharded_checkpoint,
    save_sharded_checkpoint,
)
from test_sharded_checkpoints import make, steps, whole_state


def main(folder: pathlib.Path, last: int, kill: int) -> None:
    """Train from the last complete checkpoint; rank 0 writes what was trained."""
    init()
    write = _checkpoint_file.write

    def killed(path: str, *rest: object) -> None:
        write(path, *rest)
        if get_rank() == 1 and os.path.basename(path).startswith(f"step-{kill}."):
            os.kill(os.getpid(), signal.SIGKILL)

    _checkpoint_file.write = killed
    step = make()
    begin = latest_sharded_checkpoint(folder) or 0
    if begin:
        load_sharded_checkpoint(folder, step)
    else:
        save_sharded_checkpoint(step, folder, 0)
        load_sharded_checkpoint(folder, step)
    for i in range(begin, last):
        steps(step, i, i + 1)
        save_sharded_checkpoint(step, folder, i + 1)
    found = whole_state(step)
    if get_rank() == 0:
        np.savez(folder / "trained.npz", begin=begin, **found)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
