"""Probability distributions (`mindspore.nn.probability.distribution`).

Users call them. `location` holds those of the whole real line, `positive` those of a half-line or
an interval, `discrete` those of whole numbers, `transformed` those that a bijector makes.
"""

from __future__ import annotations

from .._bijector import TransformedDistribution
from .._distribution import Distribution
from .discrete import Bernoulli, Categorical, Geometric, Poisson
from .location import Cauchy, Laplace, Logistic, Normal, StudentT
from .positive import Beta, Exponential, Gamma, HalfNormal, Uniform
from .transformed import Gumbel, LogNormal

__all__ = [
    "Bernoulli", "Beta", "Categorical", "Cauchy", "Distribution", "Exponential", "Gamma",
    "Geometric", "Gumbel", "HalfNormal", "Laplace", "LogNormal", "Logistic", "Normal", "Poisson",
    "StudentT", "TransformedDistribution", "Uniform",
]  # fmt: skip
