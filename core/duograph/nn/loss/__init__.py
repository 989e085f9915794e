"""The losses of `nn`, re-exported from its modules; `base` has the base class."""

from __future__ import annotations

from .base import LossBase
from .classification import *  # noqa: F403
from .regression import *  # noqa: F403
from .sampled import SampledSoftmaxLoss
