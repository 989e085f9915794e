"""Distributions of whole numbers: Bernoulli, Geometric, Poisson, Categorical.

Users call them through the functions of `Distribution`, which resolves the parameters. Values are
rounded down before a cumulative distribution function is evaluated, because it is a step function.
"""

from __future__ import annotations

import math

import numpy as np

from .... import ops
from ....dtype import float32, int32
from ....errors import ArgumentValueError, ShapeError
from ....tensor import Tensor
from ..._types import DTypeLike
from .._parameters import Value, common_shape, values_of
from ._formula import FormulaDistribution, held, unit_numbers

__all__ = ["Bernoulli", "Categorical", "Geometric", "Poisson"]


class Bernoulli(FormulaDistribution):
    """1 with probability `probs`, else 0 (`mindspore.nn.probability.distribution.Bernoulli`).

    The functions take the parameter as ``probs1``.

    Args:
        probs: number, list, array or Tensor between 0 and 1; None if every call gives it.
        seed: non-negative int; None or 0 uses the global seed.
        dtype: floating or integer dtype of the samples.
        name: name used in error messages.

    Raises:
        TypeError: another dtype, or a parameter of the wrong kind.
        ValueError: a probability that is not between 0 and 1.

    Examples:
        >>> import duograph as ms
        >>> bernoulli = ms.nn.probability.distribution.Bernoulli(0.25)
        >>> print(bernoulli.prob(ms.Tensor([0, 1])), bernoulli.mode())
        [0.75 0.25] 0
    """

    _keywords = ("probs1",)
    _probabilities = ("probs",)
    _whole = _whole_dtypes = True
    probs = held("probs", "The probability of the number 1.")

    def __init__(
        self,
        probs: Value = None,
        seed: int | None = None,
        dtype: DTypeLike = int32,
        name: str = "Bernoulli",
    ) -> None:
        super().__init__(seed, dtype, name, {"probs": probs})

    def _mean(self, probs1: Tensor) -> Tensor:
        return probs1

    def _mode(self, probs1: Tensor) -> Tensor:
        return (probs1 > 0.5).astype(self.dtype)

    def _var(self, probs1: Tensor) -> Tensor:
        return probs1 * (1.0 - probs1)

    def _entropy(self, probs1: Tensor) -> Tensor:
        probs0 = 1.0 - probs1
        return -ops.xlogy(probs0, probs0) - ops.xlogy(probs1, probs1)

    def _log_prob(self, value: Tensor, probs1: Tensor) -> Tensor:
        return ops.xlogy(value, probs1) + ops.xlogy(1.0 - value, 1.0 - probs1)

    def _cdf(self, value: Tensor, probs1: Tensor) -> Tensor:
        return ops.where(value < 0, 0.0, ops.where(value < 1, 1.0 - probs1, 1.0))

    def _kl_loss(self, dist: str, probs1_b: Tensor, probs1: Tensor) -> Tensor:
        probs0, probs0_b = 1.0 - probs1, 1.0 - probs1_b
        return ops.xlogy(probs1, probs1 / probs1_b) + ops.xlogy(probs0, probs0 / probs0_b)

    def _sample(self, shape: tuple[int, ...], probs1: Tensor) -> Tensor:
        return unit_numbers(self, shape, probs1) < probs1


class Geometric(FormulaDistribution):
    """Number of failures before the first success
    (`mindspore.nn.probability.distribution.Geometric`).

    The functions take the parameter as ``probs1``.

    Args:
        probs: number, list, array or Tensor between 0 and 1: the probability of a success; None if
            every call gives it.
        seed, dtype, name: as for `Bernoulli`.

    Raises:
        TypeError, ValueError: as for `Bernoulli`.

    Examples:
        >>> import duograph as ms
        >>> geometric = ms.nn.probability.distribution.Geometric(0.5)
        >>> print(geometric.prob(ms.Tensor([0, 1, -1])), geometric.mean())
        [0.5  0.25 0.  ] 1.0
    """

    _keywords = ("probs1",)
    _probabilities = ("probs",)
    _whole = _whole_dtypes = True
    probs = held("probs", "The probability that a trial succeeds.")

    def __init__(
        self,
        probs: Value = None,
        seed: int | None = None,
        dtype: DTypeLike = int32,
        name: str = "Geometric",
    ) -> None:
        super().__init__(seed, dtype, name, {"probs": probs})

    def _mean(self, probs1: Tensor) -> Tensor:
        return (1.0 - probs1) / probs1

    def _mode(self, probs1: Tensor) -> Tensor:
        return ops.zeros_like(probs1).astype(self.dtype)

    def _var(self, probs1: Tensor) -> Tensor:
        return (1.0 - probs1) / ops.square(probs1)

    def _entropy(self, probs1: Tensor) -> Tensor:
        probs0 = 1.0 - probs1
        return (-ops.xlogy(probs0, probs0) - ops.xlogy(probs1, probs1)) / probs1

    def _prob(self, value: Tensor, probs1: Tensor) -> Tensor:
        failures = ops.maximum(ops.floor(value), 0.0)
        found = ops.exp(ops.log1p(-probs1) * failures) * probs1
        return ops.where(value < 0, 0.0, found)

    def _log_survival(self, value: Tensor, probs1: Tensor) -> Tensor:
        return ops.where(value < 0, 0.0, ops.log1p(-probs1) * (ops.floor(value) + 1.0))

    def _kl_loss(self, dist: str, probs1_b: Tensor, probs1: Tensor) -> Tensor:
        failures = ops.log1p(-probs1) - ops.log1p(-probs1_b)
        return ops.log(probs1 / probs1_b) + (1.0 - probs1) / probs1 * failures

    def _sample(self, shape: tuple[int, ...], probs1: Tensor) -> Tensor:
        return ops.floor(ops.log(unit_numbers(self, shape, probs1)) / ops.log1p(-probs1))


class Poisson(FormulaDistribution):
    """Poisson distribution (`mindspore.nn.probability.distribution.Poisson`).

    Args:
        rate: number, list, array or Tensor, above 0: the mean; None if every call gives it.
        seed, dtype, name: as for `Bernoulli`.

    Raises:
        TypeError: as for `Bernoulli`.
        ValueError: a rate of 0 or less.

    Examples:
        >>> import duograph as ms
        >>> poisson = ms.nn.probability.distribution.Poisson([2.5])
        >>> print(poisson.mode(), poisson.var())
        [2.] [2.5]
    """

    _positive = ("rate",)
    _whole = _whole_dtypes = True
    rate = held("rate", "The mean of the distribution.")

    def __init__(
        self,
        rate: Value = None,
        seed: int | None = None,
        dtype: DTypeLike = float32,
        name: str = "Poisson",
    ) -> None:
        super().__init__(seed, dtype, name, {"rate": rate})

    def _mean(self, rate: Tensor) -> Tensor:
        return rate

    def _mode(self, rate: Tensor) -> Tensor:
        return ops.floor(rate)

    def _var(self, rate: Tensor) -> Tensor:
        return rate

    def _log_prob(self, value: Tensor, rate: Tensor) -> Tensor:
        count = ops.maximum(value, 0.0)
        found = ops.xlogy(count, rate) - rate - ops.lgamma(count + 1.0)
        return ops.where(value < 0, -math.inf, found)

    def _cdf(self, value: Tensor, rate: Tensor) -> Tensor:
        count = ops.maximum(ops.floor(value), 0.0)
        return ops.where(value < 0, 0.0, ops.igammac(count + 1.0, rate))

    def _sample(self, shape: tuple[int, ...], rate: Tensor) -> Tensor:
        return ops.random_poisson(shape, rate, self._draw_seed())


class Categorical(FormulaDistribution):
    """Index of a class, drawn with the probabilities in the last axis of `probs`
    (`mindspore.nn.probability.distribution.Categorical`).

    `mean`, `var` and `sd` keep that axis with length 1, as MindSpore's do.

    Args:
        probs: list, array or Tensor of (..., classes) between 0 and 1, with the sum 1 in the last
            axis; None if every call gives it.
        seed, dtype, name: as for `Bernoulli`.

    Raises:
        TypeError: as for `Bernoulli`.
        ValueError: a number, a probability that is not between 0 and 1, or another sum.

    Examples:
        >>> import duograph as ms
        >>> categorical = ms.nn.probability.distribution.Categorical([0.25, 0.25, 0.5])
        >>> print(categorical.prob(ms.Tensor([0, 2])), categorical.mode())
        [0.25 0.5 ] 2
    """

    _probabilities = ("probs",)
    _whole = _whole_dtypes = True
    probs = held("probs", "The probabilities of the classes, along the last axis.")

    def __init__(
        self,
        probs: Value = None,
        seed: int | None = None,
        dtype: DTypeLike = int32,
        name: str = "Categorical",
    ) -> None:
        super().__init__(seed, dtype, name, {"probs": probs})
        given = values_of(self.default_parameters[0])
        if given is None:
            return
        if given.ndim == 0:
            raise ShapeError("Categorical: got a number for probs; wanted at least one axis")
        eps = float(np.finfo(given.dtype).eps)
        if not np.allclose(given.sum(-1), 1, rtol=eps * 10, atol=eps):
            raise ArgumentValueError("Categorical: got probs with another sum; wanted the sum 1")
        self._is_scalar_batch = given.ndim == 1
        self._broadcast_shape = given.shape[:-1]

    def _moment(self, probs: Tensor, power: int) -> Tensor:
        """Return the expected value of (class index) ** power, with a last axis of length 1.

        `probs` (..., classes) has the probabilities.
        """
        index = ops.arange(probs.shape[-1]).astype(probs.dtype)
        return (index**power * probs).sum(-1, keepdims=True)

    def _mean(self, probs: Tensor) -> Tensor:
        return self._moment(probs, 1)

    def _var(self, probs: Tensor) -> Tensor:
        return self._moment(probs, 2) - ops.square(self._moment(probs, 1))

    def _mode(self, probs: Tensor) -> Tensor:
        return ops.argmax(probs, -1).astype(self.dtype)

    def _entropy(self, probs: Tensor) -> Tensor:
        return -ops.xlogy(probs, probs).sum(-1)

    def _choose(self, table: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Look up the entries of `table` (..., classes) at the class numbers `value`.

        `value` and the leading axes of `table` broadcast to one shape. Returns (entries, class
        numbers as int32), both of this shape. For a class number out of range the entry is that of
        the nearest class; the number is returned unchanged.
        """
        index = value.astype(int32)  # towards zero
        shape = common_shape("Categorical", [index.shape, table.shape[:-1]])
        index = ops.broadcast_to(index, shape)
        classes = table.shape[-1]
        table = ops.broadcast_to(table, (*shape, classes))
        place = ops.expand_dims(ops.clamp(index, 0, classes - 1), -1)
        return ops.gather_elements(table, -1, place).squeeze(-1), index

    def _log_prob(self, value: Tensor, probs: Tensor) -> Tensor:
        found, index = self._choose(ops.log(probs), value)
        inside = ops.logical_and(index >= 0, index < probs.shape[-1])
        return ops.where(inside, found, -math.inf)

    def _cdf(self, value: Tensor, probs: Tensor) -> Tensor:
        found, index = self._choose(ops.cumsum(probs, -1), value)
        return ops.where(index < 0, 0.0, ops.where(index < probs.shape[-1] - 1, found, 1.0))

    def _kl_loss(self, dist: str, probs_b: Tensor, probs: Tensor) -> Tensor:
        log_b = ops.log(probs_b / probs_b.sum(-1, keepdims=True))
        share = probs / probs.sum(-1, keepdims=True)
        return (ops.xlogy(share, share) - share * log_b).sum(-1)

    def _sample(self, shape: tuple[int, ...], probs: Tensor) -> Tensor:
        # the index is the number of cumulative probabilities that the uniform number has passed
        bounds = ops.cumsum(probs, -1)[..., :-1]
        unit = unit_numbers(self, shape, probs[..., :1])
        return (unit >= bounds).astype(int32).sum(-1)
