"""FusedAdamW, another name for the optimiser AdamW.

Users import it from `mint.optim`.
"""

from __future__ import annotations

from ...experimental.optim.adam import AdamW

__all__ = ["FusedAdamW"]


class FusedAdamW(AdamW):
    """The same optimiser as `AdamW`, which runs one fused op for each Parameter
    (`mindspore.mint.optim.FusedAdamW`).

    Examples:
        >>> import duograph as ms
        >>> p = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
        >>> ms.mint.optim.FusedAdamW([p])((ms.Tensor([1.0, 1.0]),))
        True
    """
