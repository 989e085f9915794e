"""Metrics of an evaluation, such as accuracy (`mindspore.train`).

`Model.eval` and user code call them. They compute on the host in NumPy and record no gradient.
"""

from __future__ import annotations

from .base import EvaluationBase, Metric, rearrange_inputs
from .classification import *  # noqa: F403
from .regression import *  # noqa: F403
from .scores import *  # noqa: F403
from .surface_distance import *  # noqa: F403
from .table import *  # noqa: F403
