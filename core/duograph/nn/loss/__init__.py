"""The losses of `nn`; `base` has the base class."""

from __future__ import annotations

from .base import LossBase
from .classification import *  # noqa: F403
from .regression import *  # noqa: F403
