"""The public namespace `nn` (`mindspore.nn`): Cells, layers, losses, metrics and optimisers.

User code imports it. Its modules use `ops` for all computation and must not import the front end
or the compiler, which are built on Cells.
"""

from __future__ import annotations

from . import dynamic_lr, learning_rate_schedule
from .cell import Cell
from .dynamic_lr import *  # noqa: F403
from .graph_cell import *  # noqa: F403
from .layer import *  # noqa: F403
from .learning_rate_schedule import *  # noqa: F403
from .loss import *  # noqa: F403
from .metrics import *  # type: ignore[assignment]  # noqa: F403  (CosineSimilarity is the metric)
from .optim import *  # noqa: F403
from .wrap import *  # noqa: F403
