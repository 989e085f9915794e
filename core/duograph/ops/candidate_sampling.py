"""Sampling of classes for losses over many classes, such as `nn.SampledSoftmaxLoss`.

`ops` exports the functions and primitive classes. The uniform sampler is made of other ops, so
that it can be compiled; the log-uniform one of `distributions` runs on the host.
"""

from __future__ import annotations

from ..dtype import float32, int32, int64
from ..errors import ArgumentError, ArgumentValueError, DTypeError, ShapeError
from ..tensor import Tensor
from .creation import cast_to, fill
from .distributions import log_uniform_candidate_sampler
from .elementwise import minimum
from .gather_scatter import gather
from .logic import where
from .primitive import Primitive
from .random import rand
from .rounding import floor
from .scattering import tensor_scatter_update
from .sorting import argsort

__all__ = ["LogUniformCandidateSampler", "UniformCandidateSampler", "uniform_candidate_sampler"]

Sampled = tuple[Tensor, Tensor, Tensor]


def uniform_candidate_sampler(
    true_classes: Tensor,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int = 0,
    remove_accidental_hits: bool = False,
) -> Sampled:
    """Draw classes at random with equal probability (`mindspore.ops.uniform_candidate_sampler`).

    Args:
        true_classes: int32 or int64 Tensor (N, num_true): the right classes of each row.
        num_true: number of right classes in a row.
        num_sampled: number of classes to draw.
        unique: whether to draw no class twice.
        range_max: the classes are 0 to range_max - 1.
        seed: int that is combined with the global seed; 0 means none. See `rand`.
        remove_accidental_hits: whether to draw no class of `true_classes`, as long as there are
            others.

    Returns:
        (drawn, expected_true, expected_drawn): the drawn classes (num_sampled,), of the dtype of
        `true_classes`; and, in float32, the number of times that each right class (N, num_true) and
        each drawn class (num_sampled,) is expected in a draw. That number is ``num_sampled / n``,
        and at most 1 if `unique`, for n classes to choose from.

    Raises:
        TypeError: `true_classes` is not int32 or int64, or an option has another type.
        ValueError: `true_classes` has another shape, a number is below 1, or more unique classes
            are requested than exist.
        IndexError: with `remove_accidental_hits`, a right class outside the range.

    Examples:
        >>> import duograph as ms
        >>> found = ms.ops.uniform_candidate_sampler(ms.Tensor([[1], [3]]), 1, 3, True, 8)
        >>> [t.shape for t in found], float(found[1][0, 0])
        ([(3,), (2, 1), (3,)], 0.375)
    """
    owner = "uniform_candidate_sampler"
    _check_options(owner, num_true, num_sampled, unique, range_max, seed)
    if not isinstance(true_classes, Tensor) or true_classes.dtype not in (int32, int64):
        got = getattr(true_classes, "dtype", type(true_classes).__name__)
        raise DTypeError(f"{owner}: got true_classes of {got}; wanted an int32 or int64 Tensor")
    if true_classes.ndim != 2 or true_classes.shape[1] != num_true:
        raise ShapeError(
            f"{owner}: got true_classes of shape {true_classes.shape}; wanted (N, {num_true})"
        )
    keys = rand(range_max, seed=seed or None)
    free = fill((), range_max, float32)
    if remove_accidental_hits:
        flat = true_classes.reshape(-1, 1)
        hits = tensor_scatter_update(
            fill((range_max,), 0.0, float32), flat, fill(flat.shape[:1], 1.0, float32)
        )
        left = free - hits.sum()
        keys, free = keys + hits, where(left > 0, left, free)  # classes that were hit come last
    order = argsort(keys)
    if unique:
        chosen = order[:num_sampled]
        expected = minimum(num_sampled / free, fill((), 1.0, float32))
    else:
        places = floor(rand(num_sampled, seed=seed or None) * free)
        chosen = gather(order, cast_to(minimum(places, free - 1), int32), 0)
        expected = num_sampled / free
    return (
        cast_to(chosen, true_classes.dtype),
        fill(true_classes.shape, 1.0, float32) * expected,
        fill((num_sampled,), 1.0, float32) * expected,
    )


def _check_options(
    owner: str, num_true: object, num_sampled: int, unique: bool, range_max: int, seed: object
) -> None:
    numbers = {"num_true": num_true, "num_sampled": num_sampled, "range_max": range_max}
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, int):
            raise ArgumentError(f"{owner}: got {name}={value!r}; wanted an int")
        if value < 1:
            raise ArgumentValueError(f"{owner}: got {name}={value}; wanted 1 or more")
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise ArgumentError(f"{owner}: got seed={seed!r}; wanted an int")
    if seed < 0:
        raise ArgumentValueError(f"{owner}: got seed={seed}; wanted 0 or more")
    if unique and num_sampled > range_max:
        raise ArgumentValueError(
            f"{owner}: got num_sampled={num_sampled} unique classes of {range_max}; wanted at most "
            f"so many"
        )


class UniformCandidateSampler(Primitive):
    """`UniformCandidateSampler(num_true, num_sampled, unique, range_max, seed=0,
    remove_accidental_hits=False)(true_classes)`: see `ops.uniform_candidate_sampler`.

    Examples:
        >>> import duograph as ms
        >>> found = ms.ops.UniformCandidateSampler(1, 3, True, 8)(ms.Tensor([[1], [3]]))
        >>> [t.shape for t in found]
        [(3,), (2, 1), (3,)]
    """

    def __init__(
        self,
        num_true: int,
        num_sampled: int,
        unique: bool,
        range_max: int,
        seed: int = 0,
        remove_accidental_hits: bool = False,
    ) -> None:
        super().__init__()
        _check_options(self.name, num_true, num_sampled, unique, range_max, seed)
        self.num_true, self.num_sampled, self.unique = num_true, num_sampled, unique
        self.range_max, self.seed = range_max, seed
        self.remove_accidental_hits = remove_accidental_hits

    def __call__(self, true_classes: Tensor) -> Sampled:
        """Draw classes at random; return them and expected counts.

        The three results are the drawn classes, and how often each class of `true_classes` and each
        drawn class is expected in a draw; see `ops.uniform_candidate_sampler`.
        """
        return uniform_candidate_sampler(
            true_classes, self.num_true, self.num_sampled, self.unique, self.range_max, self.seed,
            self.remove_accidental_hits,
        )  # fmt: skip


class LogUniformCandidateSampler(Primitive):
    """`LogUniformCandidateSampler(num_true=1, num_sampled=5, unique=True, range_max=5,
    seed=0)(true_classes)`: see `ops.log_uniform_candidate_sampler`.

    Examples:
        >>> import duograph as ms
        >>> found = ms.ops.LogUniformCandidateSampler(1, 3, True, 8)(ms.Tensor([[1], [3]]))
        >>> [t.shape for t in found]
        [(3,), (2, 1), (3,)]
    """

    def __init__(
        self,
        num_true: int = 1,
        num_sampled: int = 5,
        unique: bool = True,
        range_max: int = 5,
        seed: int = 0,
    ) -> None:
        super().__init__()
        _check_options(self.name, num_true, num_sampled, unique, range_max, seed)
        self.num_true, self.num_sampled, self.unique = num_true, num_sampled, unique
        self.range_max, self.seed = range_max, seed

    def __call__(self, true_classes: Tensor) -> Sampled:
        """Draw classes at random; return them and expected counts.

        The three results are the drawn classes, and how often each class of `true_classes` and each
        drawn class is expected in a draw; see `ops.log_uniform_candidate_sampler`.
        """
        return log_uniform_candidate_sampler(
            true_classes, self.num_true, self.num_sampled, self.unique, self.range_max, self.seed
        )
