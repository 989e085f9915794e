"""Primitive classes of random numbers, such as `ops.StandardNormal(seed)(shape)`.

Users construct them. They convert MindSpore's seeds and shapes to a random state. No class may keep
a random state, so that `set_seed` determines all numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .. import random_state
from ..dtype import DTypeLike, as_dtype, bool_, float32, int32, int64
from ..errors import ArgumentError, ArgumentValueError
from ..tensor import Tensor
from . import distributions, dropouts, random, random_choices, random_functions
from .arguments import int_of
from .creation import cast_to, fill
from .movement import concat_by, stop_gradient
from .primitive import Primitive
from .shape_primitives import broadcast_to

__all__ = [
    "Dropout", "Dropout2D", "Dropout3D", "UniformReal", "UniformInt", "StandardNormal",
    "StandardLaplace", "Gamma", "Poisson", "Bernoulli", "Multinomial", "RandomShuffle", "Randperm",
    "RandomChoiceWithMask", "RandomGamma", "RandomPoisson", "RandomCategorical",
    "MultinomialWithReplacement", "multinomial_with_replacement", "choice_with_mask",
]  # fmt: skip


class Dropout(Primitive):
    """Dropout: `Dropout(keep_prob=0.5, Seed0=0, Seed1=0)(x)` -> (result, mask of ones and zeros).

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.Dropout(keep_prob=1.0)(ms.Tensor([1.0, 2.0]))[0])
        [1. 2.]
    """

    op = dropouts.dropout_mask_by

    def __init__(self, keep_prob: float = 0.5, Seed0: int = 0, Seed1: int = 0) -> None:
        super().__init__()
        if isinstance(keep_prob, bool) or not isinstance(keep_prob, (int, float)):
            raise ArgumentError(f"Dropout: got keep_prob={keep_prob!r}; wanted a number")
        if not 0 < keep_prob <= 1:
            raise ArgumentValueError(
                f"Dropout: got keep_prob={keep_prob}; wanted more than 0 and at most 1"
            )
        self.keep_prob = float(keep_prob)
        self.seed0, self.seed1 = Seed0, Seed1

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Set random elements to 0 and divide the others by `keep_prob`; return (result, mask).

        `keep_prob`, an argument of the constructor, is the probability that an element is kept. The
        mask is 1 for kept elements, else 0, in the dtype of `x`.
        """
        state = random.take_state(_seed(self.seed0, self.seed1), like=x)
        return dropouts.dropout_mask_by(x, state, 1.0 - self.keep_prob)


def _seed(seed: int, seed2: int = 0) -> int | None:
    """Combine the two seeds of a random primitive into one; None if both are 0."""
    return None if not seed and not seed2 else (int(seed) << 32) ^ int(seed2)


class _ChannelDropout(Primitive):
    _ndims = (3, 4)

    def __init__(self, keep_prob: float = 0.5) -> None:
        super().__init__()
        self.keep_prob = float(keep_prob)

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Set random channels to 0 and divide the others by `keep_prob`; return (result, mask).

        `keep_prob`, an argument of the constructor, is the probability that a channel is kept. The
        mask is a bool tensor of the shape of `x`, True where the channel is kept.
        """
        shape = (*x.shape[:2], *[1] * (x.ndim - 2))
        kept = dropouts.dropout(
            fill(shape, 1.0, float32), random.take_state(), 1.0 - self.keep_prob, shape
        )
        return x * cast_to(kept, x.dtype), broadcast_to(cast_to(kept, bool_), x.shape)


class Dropout2D(_ChannelDropout):
    """Dropout of whole channels of (N, C, H, W).

    `Dropout2D(keep_prob=0.5)(x)` returns (result, mask).
    """


class Dropout3D(_ChannelDropout):
    """Dropout of whole channels of (N, C, D, H, W).

    `Dropout3D(keep_prob=0.5)(x)` returns (result, mask).
    """


class _Seeded(Primitive):
    """Base class of the random primitives with two seeds: `Op(seed=0, seed2=0)`."""

    def __init__(self, seed: int = 0, seed2: int = 0) -> None:
        super().__init__()
        for what, value in (("seed", seed), ("seed2", seed2)):
            if int_of(self.name, what, value) < 0:
                raise ArgumentValueError(f"{self.name}: got {what}={value}; wanted 0 or more")
        self.seed, self.seed2 = seed, seed2

    @property
    def own_seed(self) -> int | None:
        """Both seeds of the constructor combined to one, or None if both are 0."""
        return _seed(self.seed, self.seed2)


class UniformReal(_Seeded):
    """Uniform numbers in [0, 1): `UniformReal(seed=0, seed2=0)(shape)`."""

    def __call__(self, shape: int | Sequence[int]) -> Tensor:
        """Return random float32 numbers of the given shape, uniform in [0, 1)."""
        return random.rand(shape, seed=self.own_seed)


class UniformInt(_Seeded):
    """Uniform int32 numbers: `UniformInt(seed=0, seed2=0)(shape, minval, maxval)`.

    They are in [minval, maxval).
    """

    def __call__(
        self, shape: int | Sequence[int], minval: Tensor | int, maxval: Tensor | int
    ) -> Tensor:
        """Return random int32 numbers of the given shape, uniform in [minval, maxval)."""
        return random.randint(minval, maxval, shape, self.own_seed, dtype=int32)


class StandardNormal(_Seeded):
    """Standard normal numbers: `StandardNormal(seed=0, seed2=0)(shape)`."""

    def __call__(self, shape: int | Sequence[int]) -> Tensor:
        """Return random float32 numbers of the given shape.

        They are normal with mean 0 and standard deviation 1.
        """
        return random.standard_normal(shape, self.own_seed)


class StandardLaplace(_Seeded):
    """Laplace numbers of mean 0 and scale 1: `StandardLaplace(seed=0, seed2=0)(shape)`."""

    def __call__(self, shape: int | Sequence[int]) -> Tensor:
        """Return random float32 numbers of the given shape, from Laplace(mean 0, scale 1)."""
        return distributions.standard_laplace(shape, self.own_seed)


class Gamma(_Seeded):
    """Gamma numbers: `Gamma(seed=0, seed2=0)(shape, alpha, beta)`."""

    def __call__(
        self, shape: int | Sequence[int], alpha: Tensor | int | float, beta: Tensor | int | float
    ) -> Tensor:
        """Return random gamma numbers with the given shape parameter `alpha` and rate `beta`.

        The result has the shape ``(*shape, *s)``, where s is the broadcast shape of `alpha` and
        `beta`.
        """
        return distributions.gamma(shape, alpha, beta, self.own_seed)


class Poisson(_Seeded):
    """Poisson numbers, int32: `Poisson(seed=0, seed2=0)(shape, mean)`."""

    def __call__(self, shape: int | Sequence[int], mean: Tensor | int | float) -> Tensor:
        """Return random int32 Poisson numbers of the given mean.

        The result has the shape ``(*shape, *s)``, where s is the shape of `mean`.
        """
        return distributions.random_poisson(shape, mean, self.own_seed, int32)


class Bernoulli(Primitive):
    """Random ones with probability p, else zeros: `Bernoulli(seed=-1, offset=0)(x, p=0.5)`."""

    def __init__(self, seed: int = -1, offset: int = 0) -> None:
        super().__init__()
        self.seed, self.offset = seed, offset

    def __call__(self, x: Tensor, p: Tensor | int | float = 0.5) -> Tensor:
        """Return random ones (with probability `p`) and zeros, of the shape and dtype of `x`."""
        return random_choices.bernoulli(x, p, None if self.seed == -1 else self.seed)


class Multinomial(Primitive):
    """Random indices, drawn with replacement.

    `Multinomial(seed=0, seed2=0, dtype=int32)(x, num_samples)`.
    """

    def __init__(self, seed: int = 0, seed2: int = 0, dtype: DTypeLike = int32) -> None:
        super().__init__()
        self.seed, self.seed2, self.dtype = seed, seed2, as_dtype(dtype)

    def __call__(self, x: Tensor, num_samples: int) -> Tensor:
        """Draw `num_samples` indices with replacement for each row of the weights `x`.

        `x` is (k,) or (n, k), the result (num_samples,) or (n, num_samples), in the dtype given to
        the constructor.
        """
        found = random_choices.multinomial(x, num_samples, True, _seed(self.seed, self.seed2))
        return cast_to(found, self.dtype)


class RandomShuffle(_Seeded):
    """Slices along axis 0 in random order: `RandomShuffle(seed=0, seed2=0)(x)`."""

    def __call__(self, x: Tensor) -> Tensor:
        """Return a copy of `x` with its slices along axis 0 in random order."""
        return random.shuffle(x, self.own_seed)


class Randperm(Primitive):
    """Random permutation of 0 to n - 1, padded to `max_length`.

    `Randperm(max_length=1, pad=-1, dtype=int32)(n)`
    """

    def __init__(self, max_length: int = 1, pad: int = -1, dtype: DTypeLike = int32) -> None:
        super().__init__()
        self.max_length = int_of("Randperm", "max_length", max_length)
        self.pad, self.dtype = int_of("Randperm", "pad", pad), as_dtype(dtype)

    def __call__(self, n: Tensor | int) -> Tensor:
        """Return the numbers 0 to n - 1 in random order, padded with `pad` to `max_length`.

        Raises:
            ArgumentValueError: `n` is greater than `max_length`.
        """
        count = int(n.item() if isinstance(n, Tensor) else n)
        if count > self.max_length:
            raise ArgumentValueError(
                f"Randperm: got n={count}; wanted at most max_length={self.max_length}"
            )
        order = random.randperm(count, dtype=self.dtype)
        return concat_by((order, fill((self.max_length - count,), self.pad, self.dtype)), 0)


class RandomChoiceWithMask(Primitive):
    """Coordinates of true elements, drawn at random without replacement, on the host.

    `RandomChoiceWithMask(count=256, seed=0, seed2=0)(x)` returns int32 coordinates (count, ndim)
    and a bool mask (count,). Rows beyond the number of true elements are 0 and False.
    """

    def __init__(self, count: int = 256, seed: int = 0, seed2: int = 0) -> None:
        super().__init__()
        if count < 1:
            raise ArgumentValueError(f"RandomChoiceWithMask: got count={count}; wanted at least 1")
        self.count, self.seed, self.seed2 = count, seed, seed2

    def __call__(self, input_x: Tensor) -> tuple[Tensor, Tensor]:
        """Draw up to `count` True elements of `input_x` at random, without replacement.

        `count` is an argument of the constructor. Returns (int32 coordinates (count, axes), bool
        mask (count,)); if there are fewer True elements, the remaining rows are 0 and their mask is
        False.
        """
        found = np.argwhere(stop_gradient(input_x).asnumpy())
        words = random_state.philox(
            random_state.next_state(_seed(self.seed, self.seed2)), len(found)
        )
        chosen = found[np.argsort(words, kind="stable")][: self.count]
        index = np.zeros((self.count, input_x.ndim), np.int32)
        index[: len(chosen)] = chosen
        mask = np.arange(self.count) < len(chosen)
        return Tensor(index), Tensor(mask)


def choice_with_mask(
    input_x: Tensor, count: int = 256, seed: int | None = None
) -> tuple[Tensor, Tensor]:
    """Draw coordinates of true elements without replacement (`mindspore.ops.choice_with_mask`).

    The results are those of `RandomChoiceWithMask(count, seed)(input_x)`.

    Examples:
        >>> import duograph as ms
        >>> place, mask = ms.ops.choice_with_mask(ms.Tensor([False, True]), 2)
        >>> print(place[0], mask)
        [1] [ True False]
    """
    return RandomChoiceWithMask(count, seed or 0)(input_x)


class RandomGamma(_Seeded):
    """Gamma numbers of rate 1: `RandomGamma(seed=0, seed2=0)(shape, alpha)`."""

    def __call__(self, shape: Tensor | Sequence[int], alpha: Tensor) -> Tensor:
        """Return random gamma numbers with the shape parameter `alpha` and rate 1.

        The result has the shape ``(*shape, *alpha.shape)`` and the dtype of `alpha`.
        """
        return cast_to(distributions.random_gamma(shape, alpha, self.own_seed), alpha.dtype)


class RandomPoisson(_Seeded):
    """Poisson numbers: `RandomPoisson(seed=0, seed2=0, dtype=int64)(shape, rate)`."""

    def __init__(self, seed: int = 0, seed2: int = 0, dtype: DTypeLike = int64) -> None:
        super().__init__(seed, seed2)
        self.dtype = as_dtype(dtype)

    def __call__(self, shape: Tensor | Sequence[int], rate: Tensor) -> Tensor:
        """Return random Poisson numbers of mean `rate`, in the dtype given to the constructor.

        The result has the shape ``(*shape, *rate.shape)``.
        """
        return distributions.random_poisson(shape, rate, self.own_seed, self.dtype)


class RandomCategorical(Primitive):
    """Random class indices: `RandomCategorical(dtype=int64)(logits, num_sample, seed=0)`.

    They are drawn from each row of `logits` with replacement, with the softmax as probabilities.
    """

    def __init__(self, dtype: DTypeLike = int64) -> None:
        super().__init__()
        self.dtype = as_dtype(dtype)

    def __call__(self, logits: Tensor, num_sample: int, seed: int = 0) -> Tensor:
        """Draw `num_sample` class indices for each row of `logits` (n, k), with replacement.

        The probabilities are softmax(logits). Returns (n, num_sample) in the dtype given to the
        constructor. A `seed` other than 0 is combined with the seed given to `set_seed`; with 0,
        the global random generator alone determines the indices.
        """
        return random_functions.random_categorical(logits, num_sample, seed, self.dtype)


class MultinomialWithReplacement(Primitive):
    """Random indices, drawn with given weights.

    `MultinomialWithReplacement(numsamples, replacement=False)(x, seed, offset)`.
    """

    def __init__(self, numsamples: int, replacement: bool = False) -> None:
        super().__init__()
        self.numsamples, self.replacement = numsamples, replacement

    def __call__(self, x: Tensor, seed: Tensor | int, offset: Tensor | int) -> Tensor:
        """Draw `numsamples` indices per row of the weights `x`, (k,) or (n, k).

        `seed` and `offset` are combined into one seed; if both are 0, the global generator
        determines the numbers. An index is drawn repeatedly only if the constructor's
        `replacement` is True. Returns int64 indices (numsamples,) or (n, numsamples).
        """
        own = _seed(int(seed), int(offset))
        return cast_to(random_choices.multinomial(x, self.numsamples, self.replacement, own), int64)


def multinomial_with_replacement(
    x: Tensor, seed: int, offset: int, numsamples: int, replacement: bool = False
) -> Tensor:
    """Draw indices with given weights (`mindspore.ops.multinomial_with_replacement`).

    Args:
        x: Tensor (k,) or (n, k) of weights.
        seed, offset: ints; the numbers depend on both.
        numsamples: number of indices to draw from each row.
        replacement: whether an index may be drawn again.

    Returns:
        int64 Tensor (numsamples,) or (n, numsamples).

    Raises:
        ValueError: more samples than nonzero weights, without replacement.

    Examples:
        >>> import duograph as ms
        >>> x = ms.Tensor([[0.0, 9.0, 0.0]])
        >>> print(ms.ops.multinomial_with_replacement(x, 2, 5, 3, True))
        [[1 1 1]]
    """
    return MultinomialWithReplacement(numsamples, replacement)(x, seed, offset)
