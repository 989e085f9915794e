"""Metrics: what an evaluation counts. They compute on the host, in NumPy."""

from __future__ import annotations

from .base import EvaluationBase, Metric, rearrange_inputs
from .classification import *  # noqa: F403
from .regression import *  # noqa: F403
from .table import *  # noqa: F403
