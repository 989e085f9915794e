"""Distributions on a half-line or an interval: Uniform, Beta, Exponential, Gamma, HalfNormal.

Users call them through the functions of `Distribution`, which resolves the parameters.
"""

from __future__ import annotations

import math

import numpy as np

from .... import ops
from ....dtype import float32
from ....errors import ArgumentValueError
from ....tensor import Tensor
from ..._types import DTypeLike
from .._parameters import Value, values_of
from ._formula import FormulaDistribution, held, log_beta, unit_numbers

__all__ = ["Beta", "Exponential", "Gamma", "HalfNormal", "Uniform"]


class Uniform(FormulaDistribution):
    """Uniform distribution on [low, high] (`mindspore.nn.probability.distribution.Uniform`).

    Args:
        low: number, list, array or Tensor; None if every call gives it.
        high: the same, above `low`.
        seed: non-negative int; None or 0 uses the global seed.
        dtype: floating dtype of the samples.
        name: name used in error messages.

    Raises:
        TypeError: a dtype that is not floating, or a parameter of the wrong kind.
        ValueError: a `low` that is not below `high`.

    Examples:
        >>> import duograph as ms
        >>> uniform = ms.nn.probability.distribution.Uniform(0.0, 2.0)
        >>> print(uniform.prob(ms.Tensor([1.0, 3.0])), uniform.mean())
        [0.5 0. ] 1.0
    """

    low = held("low", "The lower end of the interval of possible numbers.")
    high = held("high", "The upper end of the interval of possible numbers.")

    def __init__(
        self,
        low: Value = None,
        high: Value = None,
        seed: int | None = None,
        dtype: DTypeLike = float32,
        name: str = "Uniform",
    ) -> None:
        super().__init__(seed, dtype, name, {"low": low, "high": high})
        bottom, top = (values_of(p) for p in self.default_parameters)
        if bottom is not None and top is not None and not np.all(bottom < top):
            raise ArgumentValueError("Uniform: got low that is not below high; wanted low < high")

    def _mean(self, low: Tensor, high: Tensor) -> Tensor:
        return (low + high) / 2.0

    def _var(self, low: Tensor, high: Tensor) -> Tensor:
        return ops.square(high - low) / 12.0

    def _entropy(self, low: Tensor, high: Tensor) -> Tensor:
        return ops.log(high - low)

    def _prob(self, value: Tensor, low: Tensor, high: Tensor) -> Tensor:
        inside = ops.logical_and(value >= low, value <= high)
        return ops.where(inside, 1.0 / (high - low), 0.0)

    def _cdf(self, value: Tensor, low: Tensor, high: Tensor) -> Tensor:
        return ops.clamp((value - low) / (high - low), 0.0, 1.0)

    def _kl_loss(
        self, dist: str, low_b: Tensor, high_b: Tensor, low: Tensor, high: Tensor
    ) -> Tensor:
        divergence = ops.log(high_b - low_b) - ops.log(high - low)
        covered = ops.logical_and(low_b <= low, high <= high_b)
        return ops.where(covered, divergence, math.inf)

    def _sample(self, shape: tuple[int, ...], low: Tensor, high: Tensor) -> Tensor:
        return ops.uniform((*shape, *low.shape), low, high, self._draw_seed())


class Exponential(FormulaDistribution):
    """Exponential distribution (`mindspore.nn.probability.distribution.Exponential`).

    Args:
        rate: number, list, array or Tensor, above 0; None if every call gives it.
        seed, dtype, name: as for `Uniform`.

    Raises:
        TypeError, ValueError: as for `Uniform`; ValueError for a rate of 0 or less.

    Examples:
        >>> import duograph as ms
        >>> exponential = ms.nn.probability.distribution.Exponential(0.5)
        >>> print(exponential.mean(), exponential.prob(ms.Tensor([0.0, -1.0])))
        2.0 [0.5 0. ]
    """

    _positive = ("rate",)
    rate = held("rate", "The inverse of the mean of the distribution.")

    def __init__(
        self,
        rate: Value = None,
        seed: int | None = None,
        dtype: DTypeLike = float32,
        name: str = "Exponential",
    ) -> None:
        super().__init__(seed, dtype, name, {"rate": rate})

    def _mean(self, rate: Tensor) -> Tensor:
        return 1.0 / rate

    def _mode(self, rate: Tensor) -> Tensor:
        return ops.zeros_like(rate)

    def _sd(self, rate: Tensor) -> Tensor:
        return 1.0 / rate

    def _entropy(self, rate: Tensor) -> Tensor:
        return 1.0 - ops.log(rate)

    def _log_prob(self, value: Tensor, rate: Tensor) -> Tensor:
        return ops.where(value < 0, -math.inf, ops.log(rate) - rate * value)

    def _log_survival(self, value: Tensor, rate: Tensor) -> Tensor:
        return ops.where(value < 0, 0.0, -rate * value)

    def _kl_loss(self, dist: str, rate_b: Tensor, rate: Tensor) -> Tensor:
        return ops.log(rate) - ops.log(rate_b) + rate_b / rate - 1.0

    def _sample(self, shape: tuple[int, ...], rate: Tensor) -> Tensor:
        return -ops.log(unit_numbers(self, shape, rate)) / rate


class Gamma(FormulaDistribution):
    """Gamma distribution (`mindspore.nn.probability.distribution.Gamma`).

    Args:
        concentration: number, list, array or Tensor, above 0; None if every call gives it.
        rate: the same: the inverse of the scale, above 0.
        seed, dtype, name: as for `Uniform`.

    Raises:
        TypeError, ValueError: as for `Uniform`; ValueError for a parameter of 0 or less.

    Examples:
        >>> import duograph as ms
        >>> gamma = ms.nn.probability.distribution.Gamma([2.0], [0.5])
        >>> print(gamma.mean(), gamma.mode())
        [4.] [2.]
    """

    _positive = ("concentration", "rate")
    concentration = held(
        "concentration", "The shape parameter alpha: the power of x in the density, plus 1."
    )
    rate = held("rate", "The inverse of the scale parameter.")

    def __init__(
        self,
        concentration: Value = None,
        rate: Value = None,
        seed: int | None = None,
        dtype: DTypeLike = float32,
        name: str = "Gamma",
    ) -> None:
        super().__init__(seed, dtype, name, {"concentration": concentration, "rate": rate})

    def _mean(self, concentration: Tensor, rate: Tensor) -> Tensor:
        return concentration / rate

    def _var(self, concentration: Tensor, rate: Tensor) -> Tensor:
        return concentration / ops.square(rate)

    def _mode(self, concentration: Tensor, rate: Tensor) -> Tensor:
        return ops.where(concentration > 1, (concentration - 1.0) / rate, math.nan)

    def _entropy(self, concentration: Tensor, rate: Tensor) -> Tensor:
        drop = (1.0 - concentration) * ops.digamma(concentration)
        return concentration - ops.log(rate) + ops.lgamma(concentration) + drop

    def _log_prob(self, value: Tensor, concentration: Tensor, rate: Tensor) -> Tensor:
        inside = ops.where(value < 0, 1.0, value)
        free = ops.xlogy(concentration - 1.0, inside) - rate * inside
        found = free - ops.lgamma(concentration) + concentration * ops.log(rate)
        return ops.where(value < 0, -math.inf, found)

    def _cdf(self, value: Tensor, concentration: Tensor, rate: Tensor) -> Tensor:
        return ops.igamma(concentration, ops.where(value < 0, 0.0, rate * value))

    def _kl_loss(
        self,
        dist: str,
        concentration_b: Tensor,
        rate_b: Tensor,
        concentration: Tensor,
        rate: Tensor,
    ) -> Tensor:
        shape = (concentration - concentration_b) * ops.digamma(concentration)
        norms = ops.lgamma(concentration_b) - ops.lgamma(concentration)
        rates = concentration_b * (ops.log(rate) - ops.log(rate_b))
        return shape + norms + rates + concentration * (rate_b / rate - 1.0)

    def _sample(self, shape: tuple[int, ...], concentration: Tensor, rate: Tensor) -> Tensor:
        return ops.gamma(shape, concentration, rate, self._draw_seed())


class Beta(FormulaDistribution):
    """Beta distribution on [0, 1] (`mindspore.nn.probability.distribution.Beta`).

    Args:
        concentration1: number, list, array or Tensor, above 0: alpha; None if every call gives it.
        concentration0: the same: beta.
        seed, dtype, name: as for `Uniform`.

    Raises:
        TypeError, ValueError: as for `Uniform`; ValueError for a parameter of 0 or less.

    Examples:
        >>> import duograph as ms
        >>> beta = ms.nn.probability.distribution.Beta([3.0], [1.0])
        >>> print(beta.mean(), beta.prob(ms.Tensor([2.0])))
        [0.75] [0.]
    """

    _positive = ("concentration1", "concentration0")
    concentration1 = held(
        "concentration1", "The parameter alpha: the power of x in the density, plus 1."
    )
    concentration0 = held(
        "concentration0", "The parameter beta: the power of 1 - x in the density, plus 1."
    )

    def __init__(
        self,
        concentration1: Value = None,
        concentration0: Value = None,
        seed: int | None = None,
        dtype: DTypeLike = float32,
        name: str = "Beta",
    ) -> None:
        values = {"concentration1": concentration1, "concentration0": concentration0}
        super().__init__(seed, dtype, name, values)

    # a stands for concentration1 and b for concentration0
    def _mean(self, a: Tensor, b: Tensor) -> Tensor:
        return a / (a + b)

    def _var(self, a: Tensor, b: Tensor) -> Tensor:
        total = a + b
        return a * b / (ops.square(total) * (total + 1.0))

    def _mode(self, a: Tensor, b: Tensor) -> Tensor:
        inside = ops.logical_and(a > 1, b > 1)
        return ops.where(inside, (a - 1.0) / (a + b - 2.0), math.nan)

    def _entropy(self, a: Tensor, b: Tensor) -> Tensor:
        total = a + b
        ends = (a - 1.0) * ops.digamma(a) + (b - 1.0) * ops.digamma(b)
        return log_beta(a, b) - ends + (total - 2.0) * ops.digamma(total)

    def _log_prob(self, value: Tensor, a: Tensor, b: Tensor) -> Tensor:
        outside = ops.logical_or(value < 0, value > 1)
        inside = ops.where(outside, 0.5, value)
        free = ops.xlogy(a - 1.0, inside) + ops.xlogy(b - 1.0, 1.0 - inside)
        return ops.where(outside, -math.inf, free - log_beta(a, b))

    def _cdf(self, value: Tensor, a: Tensor, b: Tensor) -> Tensor:
        return ops.betainc(a, b, ops.clamp(value, 0.0, 1.0))

    def _kl_loss(self, dist: str, a_b: Tensor, b_b: Tensor, a: Tensor, b: Tensor) -> Tensor:
        ends = ops.digamma(a) * (a_b - a) + ops.digamma(b) * (b_b - b)
        total = ops.digamma(a + b) * (a_b + b_b - a - b)
        return log_beta(a_b, b_b) - log_beta(a, b) - ends + total

    def _sample(self, shape: tuple[int, ...], a: Tensor, b: Tensor) -> Tensor:
        first = ops.gamma(shape, a, 1.0, self._draw_seed())
        return first / (first + ops.gamma(shape, b, 1.0, self._draw_seed()))


class HalfNormal(FormulaDistribution):
    """Upper half of a normal distribution: `prob` and `log_prob`
    (`mindspore.nn.probability.distribution.HalfNormal`).

    Args:
        mean: number, list, array or Tensor: the lower end; None if every call gives it.
        sd: the same: the standard deviation of the whole normal distribution, above 0.
        seed, dtype, name: as for `Uniform`.

    Raises:
        TypeError, ValueError: as for `Uniform`; ValueError for an sd of 0 or less.

    Examples:
        >>> import duograph as ms
        >>> half = ms.nn.probability.distribution.HalfNormal(0.0, 1.0)
        >>> print(half.prob(ms.Tensor([-1.0, 0.0])))
        [0.        0.7978846]
    """

    _positive = ("sd",)
    _labels = {"sd": "standard deviation"}

    def __init__(
        self,
        mean: Value = None,
        sd: Value = None,
        seed: int | None = None,
        dtype: DTypeLike = float32,
        name: str = "HalfNormal",
    ) -> None:
        super().__init__(seed, dtype, name, {"mean": mean, "sd": sd})

    def _log_prob(self, value: Tensor, mean: Tensor, sd: Tensor) -> Tensor:
        z = (value - mean) / sd
        found = 0.5 * math.log(2 / math.pi) - ops.log(sd) - 0.5 * ops.square(z)
        return ops.where(value < mean, -math.inf, found)
