"""Distributions on the whole real line: Normal, Laplace, Logistic, Cauchy, StudentT.

Users call them through the functions of `Distribution`, which resolves the parameters.
"""

from __future__ import annotations

import math
from typing import NoReturn

from .... import ops
from ....dtype import float32
from ....errors import ArgumentValueError
from ....tensor import Tensor
from ..._types import DTypeLike
from .._parameters import Value
from ._formula import FormulaDistribution, held, softplus, unit_numbers

__all__ = ["Cauchy", "Laplace", "Logistic", "Normal", "StudentT"]


class Normal(FormulaDistribution):
    """Normal distribution (`mindspore.nn.probability.distribution.Normal`).

    Args:
        mean: number, list, array or Tensor; None if every call gives it.
        sd: the same: the standard deviation, above 0.
        seed: non-negative int; None or 0 uses the global seed.
        dtype: floating dtype of the samples.
        name: name used in error messages.

    Raises:
        TypeError: a dtype that is not floating, or a parameter of the wrong kind.
        ValueError: an sd of 0 or less.

    Examples:
        >>> import duograph as ms
        >>> normal = ms.nn.probability.distribution.Normal(0.0, 2.0)
        >>> print(normal.cdf(ms.Tensor([0.0])), normal.var())
        [0.5] 4.0
        >>> print(normal.kl_loss("Normal", ms.Tensor(0.0), ms.Tensor(2.0)))
        0.0
        >>> normal.sample((2, 3)).shape
        (2, 3)
    """

    _positive = ("sd",)
    _labels = {"sd": "standard deviation"}

    def __init__(
        self,
        mean: Value = None,
        sd: Value = None,
        seed: int | None = None,
        dtype: DTypeLike = float32,
        name: str = "Normal",
    ) -> None:
        super().__init__(seed, dtype, name, {"mean": mean, "sd": sd})

    def _mean(self, mean: Tensor, sd: Tensor) -> Tensor:
        return mean

    def _mode(self, mean: Tensor, sd: Tensor) -> Tensor:
        return mean

    def _sd(self, mean: Tensor, sd: Tensor) -> Tensor:
        return sd

    def _entropy(self, mean: Tensor, sd: Tensor) -> Tensor:
        return 0.5 * math.log(2 * math.pi * math.e) + ops.log(sd)

    def _log_prob(self, value: Tensor, mean: Tensor, sd: Tensor) -> Tensor:
        z = (value - mean) / sd
        return -0.5 * ops.square(z) - ops.log(sd) - 0.5 * math.log(2 * math.pi)

    def _cdf(self, value: Tensor, mean: Tensor, sd: Tensor) -> Tensor:
        return 0.5 * ops.erfc((mean - value) / (sd * math.sqrt(2)))

    def _survival_function(self, value: Tensor, mean: Tensor, sd: Tensor) -> Tensor:
        return 0.5 * ops.erfc((value - mean) / (sd * math.sqrt(2)))

    def _kl_loss(self, dist: str, mean_b: Tensor, sd_b: Tensor, mean: Tensor, sd: Tensor) -> Tensor:
        log_ratio = ops.log(sd) - ops.log(sd_b)
        shift = ops.square((mean - mean_b) / sd_b)
        return 0.5 * shift + 0.5 * ops.expm1(2 * log_ratio) - log_ratio

    def _sample(self, shape: tuple[int, ...], mean: Tensor, sd: Tensor) -> Tensor:
        return ops.normal((*shape, *mean.shape), mean, sd, self._draw_seed())


class Laplace(FormulaDistribution):
    """Laplace distribution: `prob` and `log_prob`
    (`mindspore.nn.probability.distribution.Laplace`).

    Args:
        mean: number, list, array or Tensor: the location; None if every call gives it.
        sd: the same: the scale, above 0. The standard deviation is its product with sqrt(2).
        seed, dtype, name: as for `Normal`.

    Raises:
        TypeError, ValueError: as for `Normal`.

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.probability.distribution.Laplace(0.0, 0.5).prob(ms.Tensor([0.0])))
        [1.]
    """

    _positive = ("sd",)
    _labels = {"sd": "standard deviation"}

    def __init__(
        self,
        mean: Value = None,
        sd: Value = None,
        seed: int | None = None,
        dtype: DTypeLike = float32,
        name: str = "Laplace",
    ) -> None:
        super().__init__(seed, dtype, name, {"mean": mean, "sd": sd})

    def _log_prob(self, value: Tensor, mean: Tensor, sd: Tensor) -> Tensor:
        return -ops.abs(value - mean) / sd - ops.log(2.0 * sd)


class StudentT(FormulaDistribution):
    """Student's t-distribution: `prob` and `log_prob`
    (`mindspore.nn.probability.distribution.StudentT`).

    Args:
        df: number, list, array or Tensor: the degrees of freedom, above 0; None if every call
            gives them.
        mean: the same: the location.
        sd: the same: the scale, above 0.
        seed, dtype, name: as for `Normal`.

    Raises:
        TypeError, ValueError: as for `Normal`.

    Examples:
        >>> import duograph as ms
        >>> t = ms.nn.probability.distribution.StudentT(2.0, 0.0, 1.0)
        >>> print(t.prob(ms.Tensor([0.0])))
        [0.35355338]
    """

    _positive = ("df", "sd")
    _labels = {"df": "degrees of freedom", "sd": "standard deviation"}

    def __init__(
        self,
        df: Value = None,
        mean: Value = None,
        sd: Value = None,
        seed: int | None = None,
        dtype: DTypeLike = float32,
        name: str = "StudentT",
    ) -> None:
        super().__init__(seed, dtype, name, {"df": df, "mean": mean, "sd": sd})

    def _log_prob(self, value: Tensor, df: Tensor, mean: Tensor, sd: Tensor) -> Tensor:
        z = (value - mean) / sd
        constant = ops.lgamma(0.5 * (df + 1.0)) - ops.lgamma(0.5 * df) - 0.5 * math.log(math.pi)
        scale = 0.5 * ops.log(df) + ops.log(sd)
        return constant - scale - 0.5 * (df + 1.0) * ops.log1p(ops.square(z) / df)


class Logistic(FormulaDistribution):
    """Logistic distribution (`mindspore.nn.probability.distribution.Logistic`).

    Args:
        loc: number, list, array or Tensor: the location; None if every call gives it.
        scale: the same, above 0.
        seed, dtype, name: as for `Normal`.

    Raises:
        TypeError, ValueError: as for `Normal`.

    Examples:
        >>> import duograph as ms
        >>> logistic = ms.nn.probability.distribution.Logistic(0.0, 1.0)
        >>> print(logistic.prob(ms.Tensor([0.0])), logistic.entropy())
        [0.25] 2.0
    """

    _positive = ("scale",)
    _labels = {"loc": "location"}
    loc = held("loc", "The location: the median of the distribution.")
    scale = held("scale", "The factor by which the standard distribution is stretched.")

    def __init__(
        self,
        loc: Value = None,
        scale: Value = None,
        seed: int | None = None,
        dtype: DTypeLike = float32,
        name: str = "Logistic",
    ) -> None:
        super().__init__(seed, dtype, name, {"loc": loc, "scale": scale})

    def _mean(self, loc: Tensor, scale: Tensor) -> Tensor:
        return loc

    def _mode(self, loc: Tensor, scale: Tensor) -> Tensor:
        return loc

    def _sd(self, loc: Tensor, scale: Tensor) -> Tensor:
        return scale * (math.pi / math.sqrt(3))

    def _entropy(self, loc: Tensor, scale: Tensor) -> Tensor:
        return ops.log(scale) + 2.0

    def _log_prob(self, value: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
        z = (value - loc) / scale
        return -z - 2.0 * softplus(-z) - ops.log(scale)

    def _cdf(self, value: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
        return ops.sigmoid((value - loc) / scale)

    def _log_cdf(self, value: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
        return ops.logsigmoid((value - loc) / scale)

    def _survival_function(self, value: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
        return ops.sigmoid((loc - value) / scale)

    def _log_survival(self, value: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
        return ops.logsigmoid((loc - value) / scale)

    def _sample(self, shape: tuple[int, ...], loc: Tensor, scale: Tensor) -> Tensor:
        unit = unit_numbers(self, shape, loc)
        return (ops.log(unit) - ops.log1p(-unit)) * scale + loc


class Cauchy(FormulaDistribution):
    """Cauchy distribution, which has neither mean nor variance
    (`mindspore.nn.probability.distribution.Cauchy`).

    Args:
        loc: number, list, array or Tensor: the location; None if every call gives it.
        scale: the same, above 0.
        seed, dtype, name: as for `Normal`.

    Raises:
        TypeError, ValueError: as for `Normal`; ValueError also by `mean`, `sd` and `var`.

    Examples:
        >>> import duograph as ms
        >>> cauchy = ms.nn.probability.distribution.Cauchy(0.0, 1.0)
        >>> print(cauchy.cdf(ms.Tensor([0.0, 1.0])))
        [0.5  0.75]
    """

    _positive = ("scale",)
    _labels = {"loc": "location"}
    loc = held("loc", "The location: the median of the distribution.")
    scale = held("scale", "The factor by which the standard distribution is stretched.")

    def __init__(
        self,
        loc: Value = None,
        scale: Value = None,
        seed: int | None = None,
        dtype: DTypeLike = float32,
        name: str = "Cauchy",
    ) -> None:
        super().__init__(seed, dtype, name, {"loc": loc, "scale": scale})

    def _undefined(self, what: str) -> NoReturn:
        raise ArgumentValueError(f"{what} is undefined for Cauchy distribution.")

    def _mean(self, *_: object) -> NoReturn:
        self._undefined("mean")

    def _sd(self, *_: object) -> NoReturn:
        self._undefined("standard deviation")

    def _var(self, *_: object) -> NoReturn:
        self._undefined("variance")

    def _mode(self, loc: Tensor, scale: Tensor) -> Tensor:
        return loc

    def _entropy(self, loc: Tensor, scale: Tensor) -> Tensor:
        return ops.log(scale) + math.log(4 * math.pi)

    def _log_prob(self, value: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
        return -ops.log1p(ops.square((value - loc) / scale)) - ops.log(math.pi * scale)

    def _cdf(self, value: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
        return ops.atan((value - loc) / scale) / math.pi + 0.5

    def _survival_function(self, value: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
        return ops.atan((loc - value) / scale) / math.pi + 0.5

    def _kl_loss(
        self, dist: str, loc_b: Tensor, scale_b: Tensor, loc: Tensor, scale: Tensor
    ) -> Tensor:
        # Chyzak and Nielsen, "A closed-form formula for the Kullback-Leibler divergence between
        # Cauchy distributions", 2019
        total = ops.square(scale + scale_b) + ops.square(loc - loc_b)
        return ops.log(total) - math.log(4.0) - ops.log(scale) - ops.log(scale_b)

    def _sample(self, shape: tuple[int, ...], loc: Tensor, scale: Tensor) -> Tensor:
        return loc + scale * ops.tan(math.pi * (unit_numbers(self, shape, loc) - 0.5))
