"""The optimisers of `duograph.mint`: SGD, Adam and AdamW with parameter groups.

Users import it as `duograph.mint.optim`. The classes are those of `experimental.optim`.
"""

from __future__ import annotations

from ...experimental.optim.adam import Adam, AdamW
from ...experimental.optim.sgd import SGD
from .fused import FusedAdamW

__all__ = ["Adam", "AdamW", "FusedAdamW", "SGD"]
