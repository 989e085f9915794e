"""duograph: a deep-learning framework with one programming model, two ways to run it, and devices as plugins."""

from __future__ import annotations

from . import context, dtype, ops
from .context import *  # noqa: F403
from .dtype import *  # noqa: F403
from .parameter import Parameter, ParameterTuple
from .tensor import Tensor, from_numpy, is_tensor, tensor
from .autodiff.transforms import grad, jvp, value_and_grad, vjp

__version__ = "0.1.0"
