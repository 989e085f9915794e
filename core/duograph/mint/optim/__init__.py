"""The optimisers of `duograph.mint`: SGD, Adam and AdamW with parameter groups.

Users import it as `duograph.mint.optim`. The optimisers are those of `experimental.optim`;
`FusedAdamW` is another name for AdamW.
"""

from __future__ import annotations

from ...experimental.optim.adam import Adam, AdamW
from .fused import FusedAdamW
from .sgd import SGD

__all__ = ["Adam", "AdamW", "FusedAdamW", "SGD"]
