"""Distributions that a bijector derives from another distribution: LogNormal and Gumbel.

Users call them. Where the formulas that follow from the bijector are less accurate, or where there
are none, the classes define their own.
"""

from __future__ import annotations

import math

import numpy as np

from .... import ops
from ....dtype import float32
from ....tensor import Tensor
from ..._types import DTypeLike
from .._bijector import TransformedDistribution
from .._parameters import Value
from ..bijector import Exp, GumbelCDF, Invert
from ._formula import dtype_of, held, unit_numbers
from .location import Normal
from .positive import Uniform

__all__ = ["Gumbel", "LogNormal"]


class LogNormal(TransformedDistribution):
    """Distribution of ``exp(x)`` of normal numbers x
    (`mindspore.nn.probability.distribution.LogNormal`).

    Args:
        loc: number, list, array or Tensor: the mean of x; None if every call gives it.
        scale: the same: the standard deviation of x, above 0.
        seed: non-negative int; None or 0 uses the global seed.
        dtype: floating dtype of the samples.
        name: name used in error messages.

    Raises:
        TypeError: a dtype that is not floating, or a parameter of the wrong kind.
        ValueError: a scale of 0 or less.

    Examples:
        >>> import duograph as ms
        >>> lognormal = ms.nn.probability.distribution.LogNormal(0.0, 1.0)
        >>> print(lognormal.cdf(ms.Tensor([1.0, -1.0])))
        [0.5 0. ]
    """

    loc = held("loc", "The mean of the logarithm of the numbers.")
    scale = held("scale", "The standard deviation of the logarithm of the numbers.")

    def __init__(
        self,
        loc: Value = None,
        scale: Value = None,
        seed: int | None = 0,
        dtype: DTypeLike = float32,
        name: str = "LogNormal",
    ) -> None:
        super().__init__(Exp(), Normal(loc, scale, seed, dtype), seed, name)
        self._hold({"loc": loc, "scale": scale})

    def _mean(self, loc: Tensor, scale: Tensor) -> Tensor:
        return ops.exp(loc + 0.5 * ops.square(scale))

    def _mode(self, loc: Tensor, scale: Tensor) -> Tensor:
        return ops.exp(loc - ops.square(scale))

    def _var(self, loc: Tensor, scale: Tensor) -> Tensor:
        var = ops.square(scale)
        return ops.expm1(var) * ops.exp(2.0 * loc + var)

    def _entropy(self, loc: Tensor, scale: Tensor) -> Tensor:
        return loc + ops.log(scale) + 0.5 * (1.0 + math.log(2 * math.pi))

    def _log_prob(self, value: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
        inside = ops.where(value > 0, value, 1.0)
        return ops.where(value > 0, super()._log_prob(inside, loc, scale), -math.inf)

    def _cdf(self, value: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
        inside = ops.where(value > 0, value, 1.0)
        return ops.where(value > 0, super()._cdf(inside, loc, scale), 0.0)

    def _kl_loss(
        self, dist: str, loc_b: Tensor, scale_b: Tensor, loc: Tensor, scale: Tensor
    ) -> Tensor:
        return self.distribution.kl_loss("Normal", loc_b, scale_b, loc, scale)


class Gumbel(TransformedDistribution):
    """Gumbel distribution of the largest of many numbers
    (`mindspore.nn.probability.distribution.Gumbel`).

    Args:
        loc: floating number, list, array or Tensor: the location.
        scale: the same, above 0.
        seed: non-negative int; None or 0 uses the global seed.
        dtype: floating dtype of the samples.
        name: name used in error messages.

    Raises:
        TypeError: a dtype or a parameter that is not floating.
        ValueError: a scale of 0 or less.

    Examples:
        >>> import duograph as ms
        >>> gumbel = ms.nn.probability.distribution.Gumbel(1.0, 2.0)
        >>> print(gumbel.mode(), gumbel.cdf(ms.Tensor([1.0])))
        1.0 [0.36787945]
    """

    loc = held("loc", "The location: the mode of the distribution.")
    scale = held("scale", "The factor by which the standard distribution is stretched.")

    def __init__(
        self,
        loc: Value,
        scale: Value,
        seed: int | None = 0,
        dtype: DTypeLike = float32,
        name: str = "Gumbel",
    ) -> None:
        dtype = dtype_of("Gumbel", dtype)
        unit = Uniform(0.0, 1.0, seed, dtype)
        super().__init__(Invert(GumbelCDF(loc, scale)), unit, seed, name)
        self._hold({"loc": loc, "scale": scale})

    def _mean(self, loc: Tensor, scale: Tensor) -> Tensor:
        return loc + scale * np.euler_gamma

    def _mode(self, loc: Tensor, scale: Tensor) -> Tensor:
        return loc

    def _sd(self, loc: Tensor, scale: Tensor) -> Tensor:
        return scale * (math.pi / math.sqrt(6))

    def _entropy(self, loc: Tensor, scale: Tensor) -> Tensor:
        return ops.log(scale) + (1.0 + np.euler_gamma)

    def _log_prob(self, value: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
        z = (value - loc) / scale
        return -(z + ops.exp(-z)) - ops.log(scale)

    def _log_cdf(self, value: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
        return -ops.exp((loc - value) / scale)

    def _cdf(self, value: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
        return ops.exp(self._log_cdf(value, loc, scale))

    def _kl_loss(
        self, dist: str, loc_b: Tensor, scale_b: Tensor, loc: Tensor, scale: Tensor
    ) -> Tensor:
        ratio = scale / scale_b
        moved = (loc_b - loc) / scale_b
        tail = ops.expm1(moved + ops.lgamma(ratio + 1.0))
        return -ops.log(ratio) + np.euler_gamma * (ratio - 1.0) - moved + tail

    def _sample(self, shape: tuple[int, ...], loc: Tensor, scale: Tensor) -> Tensor:
        return loc - scale * ops.log(-ops.log(unit_numbers(self, shape, loc)))
