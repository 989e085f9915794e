"""The optimisers of `nn`, re-exported from its modules; `optimizer` has the base class."""

from __future__ import annotations

from .adafactor import AdaFactor
from .adam import *  # noqa: F403
from .adaptive import *  # noqa: F403
from .optimizer import Optimizer
from .sgd import SGD, Momentum
