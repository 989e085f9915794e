"""Gradient accumulation (`mindspore.boost`). User code imports it.

The other names of MindSpore's package tune networks for Ascend devices and have no meaning here.
"""

from .grad_accumulation import GradientAccumulation

__all__ = ["GradientAccumulation"]
