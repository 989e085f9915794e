"""Invertible functions of random numbers (`mindspore.nn.probability.bijector`).

Users and `TransformedDistribution` call them. They hold formulas; checks are in the base class.
"""

from __future__ import annotations

from .._bijector import Bijector
from .functions import Exp, GumbelCDF, Invert, PowerTransform, ScalarAffine, Softplus

__all__ = ["Bijector", "Exp", "GumbelCDF", "Invert", "PowerTransform", "ScalarAffine", "Softplus"]
