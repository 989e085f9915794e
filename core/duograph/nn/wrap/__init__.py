"""Cells that wrap a network with a loss, a training step or loss scaling.

`nn` re-exports them.
"""

from __future__ import annotations

from .cell_wrapper import *  # noqa: F403
from .data_parallel import DistributedGradReducer
from .loss_scale import *  # noqa: F403
from .micro_batches import *  # noqa: F403
