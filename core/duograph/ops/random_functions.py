"""Random functions that fill a tensor in place, or that take probabilities or scores from it.

Users call them as methods or functions. The numbers come from `random`, so that they are the same
on every device.
"""

from __future__ import annotations

import math

from ..dtype import DTypeLike, as_dtype, float32, int64
from ..errors import ArgumentValueError, ShapeError
from ..random_state import Generator
from ..tensor import Tensor
from .arguments import Number
from .creation import cast, iota
from .exponential import log
from .inplace import write
from .logic import where
from .methods import tensor_method
from .movement import stop_gradient
from .random import probability_of, random_normal, random_uniform, take_state
from .random_choices import multinomial
from .rounding import floor
from .softmax_ops import softmax
from .trigonometry import tan

__all__ = [
    "bernoulli_", "exponential_", "gumbel_softmax", "normal_", "random_", "random_categorical",
    "rrelu", "uniform_",
]  # fmt: skip


def _unit(like: Tensor, generator: Generator | None = None, open_: bool = False) -> Tensor:
    """Draw uniform float32 numbers in [0, 1), or in (0, 1) if `open_`, of the shape of `like`.

    `generator` None is the global one.
    """
    drawn = random_uniform(take_state(generator=generator, like=like), like.shape, float32)
    return where(drawn == 0, 2.0**-25, drawn) if open_ else drawn


@tensor_method("uniform_")
def uniform_(
    input: Tensor, from_: Number = 0, to: Number = 1, *, generator: Generator | None = None
) -> Tensor:
    """Fill a floating tensor with uniform numbers in [from_, to) (`mindspore.Tensor.uniform_`).

    Raises:
        TypeError: an integer tensor.
        ValueError: `from_` above `to`.

    Examples:
        >>> import duograph as ms
        >>> x = ms.ops.zeros((3,), ms.float32)
        >>> bool(((x.uniform_(1, 2) >= 1) & (x < 2)).all())
        True
    """
    if not isinstance(from_, Tensor) and not isinstance(to, Tensor) and from_ > to:
        raise ArgumentValueError(f"uniform_: got from_={from_} and to={to}; wanted from_ <= to")
    return write(input, _unit(input, generator) * (to - from_) + from_, "uniform_")


@tensor_method("uniform")
def _tensor_uniform(
    self: Tensor, from_: Number = 0.0, to: Number = 1.0, generator: Generator | None = None
) -> Tensor:
    """Return a new tensor of uniform numbers in [from_, to), of this tensor's shape and dtype."""
    return cast(_unit(self, generator) * (to - from_) + from_, self.dtype)


@tensor_method("normal_")
def normal_(
    input: Tensor, mean: Number = 0, std: Number = 1, *, generator: Generator | None = None
) -> Tensor:
    """Fill a floating tensor with normal numbers (`mindspore.Tensor.normal_`).

    Raises:
        TypeError: an integer tensor.
        ValueError: a negative `std`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.zeros((2, 3), ms.float32).normal_(5.0, 0.0).sum().item()
        30.0
    """
    if not isinstance(std, Tensor) and std < 0:
        raise ArgumentValueError(f"normal_: got std={std}; wanted 0 or more")
    unit = random_normal(take_state(generator=generator, like=input), input.shape, float32)
    return write(input, unit * std + mean, "normal_")


@tensor_method("exponential_")
def exponential_(input: Tensor, lambd: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Fill a floating tensor with exponential numbers of rate `lambd`
    (`mindspore.Tensor.exponential_`).

    Raises:
        TypeError: an integer tensor.
        ValueError: a rate of 0 or less.

    Examples:
        >>> import duograph as ms
        >>> bool((ms.ops.zeros((3,), ms.float32).exponential_(2.0) > 0).all())
        True
    """
    if lambd <= 0:
        raise ArgumentValueError(f"exponential_: got lambd={lambd}; wanted above 0")
    return write(input, -log(_unit(input, generator, True)) / lambd, "exponential_")


@tensor_method("bernoulli_")
def bernoulli_(
    input: Tensor, p: Tensor | float = 0.5, *, generator: Generator | None = None
) -> Tensor:
    """Set each element to 1 with probability p, else to 0 (`mindspore.Tensor.bernoulli_`).

    Raises:
        ValueError: a number p outside [0, 1].

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.zeros((3,), ms.float32).bernoulli_(1.0))
        [1. 1. 1.]
    """
    share = p if isinstance(p, Tensor) else probability_of("bernoulli_", p)
    return write(input, cast(_unit(input, generator) < share, input.dtype), "bernoulli_")


@tensor_method("random_")
def random_(
    input: Tensor, from_: int = 0, to: int | None = None, *, generator: Generator | None = None
) -> Tensor:
    """Fill a tensor with random whole numbers in [from_, to) (`mindspore.Tensor.random_`).

    Without `to`, they are below the power of two up to which the dtype, and float32, can represent
    every whole number.

    Raises:
        ValueError: no number between `from_` and `to`.

    Examples:
        >>> import duograph as ms
        >>> x = ms.ops.zeros((8,), ms.int32).random_(2, 4)
        >>> bool(((x == 2) | (x == 3)).all())
        True
    """
    digits = {"float16": 11, "bfloat16": 8, "int8": 7, "uint8": 8, "int16": 15, "uint16": 16,
              "bool": 1}.get(input.dtype.name, 24)  # fmt: skip
    end = 2**digits if to is None else to
    if from_ >= end:
        raise ArgumentValueError(f"random_: got from_={from_} and to={end}; wanted from_ < to")
    drawn = floor(_unit(input, generator) * (end - from_)) + from_
    return write(input, cast(drawn, input.dtype), "random_")


@tensor_method("cauchy")
def _tensor_cauchy(self: Tensor, median: float = 0.0, sigma: float = 1.0) -> Tensor:
    """Return a new tensor of Cauchy-distributed numbers, of this tensor's shape and dtype."""
    return cast(median + sigma * tan(math.pi * (_unit(self, None, True) - 0.5)), self.dtype)


@tensor_method("log_normal")
def _tensor_log_normal(self: Tensor, mean: float = 1.0, std: float = 2.0) -> Tensor:
    """Return a new tensor of log-normal numbers, of this tensor's shape and dtype.

    `mean` and `std` are those of the numbers' logarithms.
    """
    unit = random_normal(take_state(like=self), self.shape, float32)
    return cast((unit * std + mean).exp(), self.dtype)


@tensor_method("random_categorical")
def random_categorical(
    logits: Tensor, num_sample: int, seed: int = 0, dtype: DTypeLike = int64
) -> Tensor:
    """Draw classes with the probabilities softmax(logits) (`mindspore.ops.random_categorical`).

    Args:
        logits: Tensor (n, k), floating.
        num_sample: number of indices to draw from each row.
        seed: int; 0 uses the global seed.
        dtype: int16, int32 or int64.

    Returns:
        Tensor (n, num_sample) of `dtype`.

    Raises:
        ValueError: another number of axes, or `num_sample` below 1.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.random_categorical(ms.Tensor([[0.0, 100.0]]), 3))
        [[1 1 1]]
    """
    if logits.ndim != 2:
        raise ShapeError(f"random_categorical: got logits of shape {logits.shape}; wanted (n, k)")
    drawn = multinomial(softmax(logits, -1), num_sample, True, seed or None)
    return cast(drawn, as_dtype(dtype))


def gumbel_softmax(logits: Tensor, tau: float = 1.0, hard: bool = False, dim: int = -1) -> Tensor:
    """Compute the softmax of logits with Gumbel noise, a differentiable random category.

    Source: Jang et al., 2017. See `mindspore.ops.gumbel_softmax`.

    Args:
        logits: Tensor, floating.
        tau: temperature, above 0.
        hard: whether to return one-hot vectors, with the gradient of the softmax.
        dim: axis of the categories.

    Raises:
        ValueError: a temperature of 0 or less.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.gumbel_softmax(ms.Tensor([0.0, 100.0]), hard=True))
        [0. 1.]
    """
    if tau <= 0:
        raise ArgumentValueError(f"gumbel_softmax: got tau={tau}; wanted above 0")
    noise = -log(-log(_unit(logits, None, True)))
    soft = softmax((logits + cast(noise, logits.dtype)) / tau, dim)
    if not hard:
        return soft
    axis = dim % logits.ndim
    place = iota(logits.shape, axis, int64)
    chosen = cast(place == soft.argmax(axis).expand_dims(axis), logits.dtype)
    return chosen + (soft - stop_gradient(soft))


def rrelu(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3) -> Tensor:
    """ReLU with a random slope for each negative element (Xu et al., 2015;
    `mindspore.ops.rrelu`).

    Args:
        input: Tensor, floating.
        lower, upper: limits of the slopes.

    Raises:
        ValueError: `lower` above `upper`.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.rrelu(ms.Tensor([-1.0, 2.0]), 0.5, 0.5))
        [-0.5  2. ]
    """
    if lower > upper:
        raise ArgumentValueError(
            f"rrelu: got lower={lower} and upper={upper}; wanted lower <= upper"
        )
    slope = cast(_unit(input) * (upper - lower) + lower, input.dtype)
    return where(input >= 0, input, input * slope)
