"""Random numbers of less common distributions: Laplace, gamma, Poisson, log-uniform.

Users call these functions; uniform and normal numbers are in other modules.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .. import random_state
from ..dtype import DTypeLike, as_dtype, float32
from ..errors import ArgumentValueError, DTypeError, MissingRuleError, ShapeError
from ..host_arrays import Array
from ..op import op
from ..tensor import Tensor
from ..types import broadcast_shapes, size_of
from .arguments import Number, number_of
from .comparison import equal, less
from .creation import cast_to, fill
from .elementwise import neg
from .exponential import exp, log
from .logic import bitwise_and, logical_and, logical_not, logical_or, select_by
from .movement import slice_by, stop_gradient
from .powers import sqrt
from .random import drawn_shape, fraction, random_bits, random_uniform, shape_of, take_state, u32
from .shape_primitives import broadcast_to, reshape_to
from .trigonometry import cos

__all__ = [
    "standard_laplace", "laplace", "gamma", "random_gamma", "poisson", "random_poisson",
    "log_uniform_candidate_sampler",
]  # fmt: skip


@op(differentiable=False)
def random_laplace(state: Tensor, shape: Sequence[int], dtype: object):
    """Composite op: random Laplace numbers of mean 0 and scale 1.

    Each is an exponential number with a random sign. `state` is the state of a random generator.
    """
    bits = random_bits(state, shape)
    positive = equal(bitwise_and(bits, u32(1)), u32(1))
    size = neg(log(1.0 - fraction(bits)))
    found = select_by(positive, size, neg(size))
    return found if dtype is float32 else cast_to(found, dtype)


def standard_laplace(shape: int | Sequence[int] | Tensor, seed: int | None = None) -> Tensor:
    """Draw random Laplace numbers of mean 0 and scale 1 (`mindspore.ops.standard_laplace`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.standard_laplace((2, 3)).shape
        (2, 3)
    """
    return random_laplace(take_state(seed), shape_of("standard_laplace", shape), float32)


def laplace(
    shape: int | Sequence[int] | Tensor,
    mean: Tensor | Number,
    lambda_param: Tensor | Number,
    seed: int | None = None,
) -> Tensor:
    """Draw random Laplace numbers (`mindspore.ops.laplace`).

    Args:
        shape: shape that is broadcast with the shapes of `mean` and `lambda_param`.
        mean, lambda_param: location and scale, Tensors or numbers.
        seed: int that is combined with the global seed, or None; see `rand`.

    Returns:
        Tensor of float32.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.laplace((2, 3), ms.Tensor([1.0]), ms.Tensor([1.0])).shape
        (2, 3)
    """
    unit = random_laplace(
        take_state(seed), drawn_shape("laplace", shape, mean, lambda_param), float32
    )
    return unit * lambda_param + mean


# Rounds of rejection sampling, after which the mean is used. A round fails with a probability below
# 0.05.
_GAMMA_ROUNDS = 8


@op()
def random_gamma_by(state: Tensor, alpha: Tensor, shape: Sequence[int]):
    """Composite op: random numbers of gamma distributions of scale 1 (Marsaglia, Tsang 2000).

    `alpha` has the shape parameters of the distributions and broadcasts to `shape`, the shape of
    the result. `state` is the state of a random generator. The number of rejection rounds is
    constant, since the op's graph has no loop; an element that no round accepts is set to about the
    mean.
    """
    a = broadcast_to(cast_to(alpha, float32), tuple(shape))
    small = less(a, 1.0)
    lifted = select_by(small, a + 1.0, a)  # below 1: gamma(a + 1) * u^(1/a)
    d = lifted - 1.0 / 3.0
    c = 1.0 / sqrt(d * 9.0)
    count = size_of(shape)
    words = random_uniform(state, (_GAMMA_ROUNDS * 3 + 1, count), float32)

    def row(i: int) -> Tensor:
        return reshape_to(slice_by(words, (i, 0), (i + 1, count), (1, 1)), tuple(shape))

    found, done = d, None
    for i in range(_GAMMA_ROUNDS):
        radius = sqrt(log(1.0 - row(3 * i)) * -2.0)
        x = radius * cos(row(3 * i + 1) * (2.0 * math.pi))
        t = 1.0 + c * x
        v = t * t * t
        positive = less(0.0, v)
        log_v = log(select_by(positive, v, fill((), 1.0, float32)))
        accepted = less(log(1.0 - row(3 * i + 2)), 0.5 * x * x + d - d * v + d * log_v)
        taken = logical_and(positive, accepted)
        if done is not None:
            taken = logical_and(taken, logical_not(done))
        found = select_by(taken, d * v, found)
        done = taken if done is None else logical_or(done, taken)
    boost = exp(log(1.0 - row(3 * _GAMMA_ROUNDS)) / select_by(small, a, fill((), 1.0, float32)))
    return select_by(small, found * boost, found)


@random_gamma_by.bprop
def _(state, alpha, out, dout, shape):
    raise MissingRuleError("random_gamma")


def gamma(
    shape: int | Sequence[int] | Tensor,
    alpha: Tensor | Number,
    beta: Tensor | Number,
    seed: int | None = None,
) -> Tensor:
    """Draw random gamma numbers of shape alpha and rate beta (`mindspore.ops.gamma`).

    Args:
        shape: leading shape; the broadcast shape of alpha and beta is appended.
        alpha, beta: Tensors or numbers, positive.
        seed: int that is combined with the global seed, or None; see `rand`.

    Returns:
        Tensor of float32.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.gamma((3,), ms.Tensor([1.0, 2.0]), ms.Tensor([1.0])).shape
        (3, 2)
    """
    a, b = (
        v if isinstance(v, Tensor) else Tensor(number_of("gamma", what, v))
        for what, v in (("alpha", alpha), ("beta", beta))
    )
    inner = broadcast_shapes(a.shape, b.shape)
    if inner is None:
        raise ShapeError(
            f"gamma: got parameters of shapes {a.shape} and {b.shape}; wanted ones that broadcast"
        )
    return random_gamma_by(take_state(seed), a, (*shape_of("gamma", shape), *inner)) / b


def random_gamma(
    shape: int | Sequence[int] | Tensor, alpha: Tensor | Number, seed: int | None = None
) -> Tensor:
    """Draw random gamma numbers of rate 1 (`mindspore.ops.random_gamma`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.random_gamma((3,), ms.Tensor([1.0, 2.0])).shape
        (3, 2)
    """
    return gamma(shape, alpha, 1.0, seed)


def random_poisson(
    shape: int | Sequence[int] | Tensor,
    rate: Tensor | Number,
    seed: int | None = None,
    dtype: DTypeLike = float32,
) -> Tensor:
    """Draw random Poisson numbers on the host (`mindspore.ops.random_poisson`).

    The numbers are integers; their gradient with respect to `rate` is zero by definition.

    Args:
        shape: leading shape; the shape of `rate` is appended.
        rate: Tensor of means.
        seed: int that is combined with the global seed, or None; see `rand`.
        dtype: dtype of the result.

    Returns:
        Tensor of `dtype`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.random_poisson((3,), ms.Tensor([1.0, 2.0])).shape
        (3, 2)
    """
    mean = stop_gradient(rate if isinstance(rate, Tensor) else Tensor(rate, float32)).asnumpy()
    if (mean < 0).any():
        raise ArgumentValueError(
            f"random_poisson: got a negative rate {mean.min()}; wanted 0 or more"
        )
    drawn = (*shape_of("random_poisson", shape), *mean.shape)
    bits = random_state.philox(random_state.next_state(seed), size_of(drawn)).reshape(drawn)
    return Tensor(_poisson(bits * 2.0**-32, np.broadcast_to(mean, drawn)), as_dtype(dtype))


def _poisson(unit: Array, mean: Array) -> Array:
    """Convert uniform numbers in [0, 1) to Poisson numbers by inverting the distribution function.

    `mean` has a mean for each number `unit`. Means of 500 and more use the normal approximation
    with continuity correction.
    """
    count = np.zeros(unit.shape)
    term = np.exp(-mean.astype(np.float64))
    total = term.copy()
    small = mean < 500
    limit = int(np.ceil(mean[small].max(initial=0) * 2 + 60)) if small.any() else 0
    for k in range(1, limit + 1):
        above = small & (unit > total)
        count[above] += 1
        term = term * mean / k
        total = total + term
    big = ~small
    if big.any():
        from statistics import NormalDist  # only this rare branch needs it

        inverse = NormalDist().inv_cdf
        z = np.array([inverse(min(max(float(u), 1e-12), 1 - 1e-12)) for u in unit[big]])
        count[big] = np.maximum(np.floor(mean[big] + np.sqrt(mean[big]) * z + 0.5), 0)
    return count


def poisson(
    shape: int | Sequence[int] | Tensor, mean: Tensor | Number, seed: int | None = None
) -> Tensor:
    """Draw random Poisson numbers of float32 (`mindspore.ops.poisson` of older releases).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.poisson((3,), ms.Tensor([1.0])).shape
        (3, 1)
    """
    return random_poisson(shape, mean, seed)


def log_uniform_candidate_sampler(
    true_classes: Tensor,
    num_true: int = 1,
    num_sampled: int = 5,
    unique: bool = True,
    range_max: int = 5,
    seed: int = 0,
) -> tuple[Tensor, Tensor, Tensor]:
    """Draw classes with a log-uniform distribution, on the host
    (`mindspore.ops.log_uniform_candidate_sampler`).

    Returns:
        (drawn classes, expected counts of the true classes, expected counts of the drawn classes).
        A count is how often a class is expected in such a draw.

    Raises:
        ValueError: more unique samples than classes, or not `num_true` classes in a row.

    Examples:
        >>> import duograph as ms
        >>> found = ms.ops.log_uniform_candidate_sampler(ms.Tensor([[1], [2]]), 1, 3, True, 5)
        >>> [t.shape for t in found]
        [(3,), (2, 1), (3,)]
    """
    if true_classes.shape[-1:] != (num_true,):
        raise ShapeError(
            f"log_uniform_candidate_sampler: got true_classes of shape {true_classes.shape}; "
            f"wanted num_true={num_true} in the last axis"
        )
    if unique and num_sampled > range_max:
        raise ArgumentValueError(
            f"log_uniform_candidate_sampler: got num_sampled={num_sampled} unique classes of "
            f"{range_max}; "
            f"wanted at most so many"
        )
    logs = np.log(range_max + 1)
    chosen: list[int] = []
    tries = 0
    while len(chosen) < num_sampled:
        unit = (
            random_state.philox(random_state.next_state(seed or None), 4 * num_sampled) * 2.0**-32
        )
        for value in np.minimum(np.floor(np.exp(unit * logs)) - 1, range_max - 1).astype(np.int64):
            if len(chosen) == num_sampled:
                break
            tries += 1
            if not unique or value not in chosen:
                chosen.append(int(value))

    def expected(classes: Array) -> Tensor:
        chance = np.log((classes + 2) / (classes + 1)) / logs
        found = -np.expm1(tries * np.log1p(-chance)) if unique else chance * num_sampled
        return Tensor(found.astype(np.float32))

    true = true_classes.asnumpy()
    if true.dtype.kind not in "iu":
        raise DTypeError(
            f"log_uniform_candidate_sampler: got true_classes of {true.dtype}; wanted integers"
        )
    return (
        Tensor(np.array(chosen), true_classes.dtype),
        expected(true),
        expected(np.array(chosen)),
    )
