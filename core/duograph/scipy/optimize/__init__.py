"""Minimisation and assignment with SciPy's signatures (`mindspore.scipy.optimize`).

User code imports it. The loops run in Python on concrete values; `duograph.value_and_grad`
differentiates the user's functions.
"""

from __future__ import annotations

from .line_searching import line_search
from .linear_sum_assignment import linear_sum_assignment
from .minimizing import minimize

__all__ = ["line_search", "linear_sum_assignment", "minimize"]
