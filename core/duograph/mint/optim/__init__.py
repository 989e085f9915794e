"""The optimisers of `duograph.mint`: SGD, Adam and AdamW with parameter groups.

Users import it as `duograph.mint.optim`. An optimiser is a Cell that is called with the gradients;
its `param_groups` hold the settings, with learning rates that a schedule may change.
"""

from __future__ import annotations

from .adam import Adam, AdamW, FusedAdamW
from .sgd import SGD

__all__ = ["Adam", "AdamW", "FusedAdamW", "SGD"]
