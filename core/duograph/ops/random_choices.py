"""Random draws with given probabilities: `bernoulli` for each element, `multinomial` for rows.

Users and `random_functions` call them. The uniform numbers come from `random`, so the module must
not keep a random state.
"""

from __future__ import annotations

from ..dtype import float32, int32, int64
from ..errors import ArgumentValueError, ShapeError
from ..op import op
from ..random_state import Generator
from ..tensor import Tensor
from .comparison import less
from .creation import cast_to, fill, iota
from .elementwise import minimum, mul, neg
from .exponential import log
from .logic import logical_not
from .methods import tensor_method
from .movement import slice_by
from .random import Number, probability_of, random_uniform, take_state
from .reduction import argmax_along
from .scan import scan_sum
from .shape_primitives import reduce_sum, reshape_to
from .sorting import topk_by

__all__ = ["bernoulli", "multinomial"]


def bernoulli(input: Tensor, p: Number = 0.5, seed: object = None) -> Tensor:
    """Draw 1 with probability p, else 0 (`mindspore.ops.bernoulli`).

    Args:
        input: Tensor whose shape and dtype the result has.
        p: number, or Tensor that broadcasts to `input`, in [0, 1].
        seed: int that is combined with the global seed, or None; see `rand`.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        ValueError: a number p outside [0, 1].

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.bernoulli(ms.ops.ones((3,)), 1.0))
        [1. 1. 1.]
    """
    if not isinstance(p, Tensor):
        p = probability_of("bernoulli", p)
    unit = random_uniform(take_state(seed, like=input), input.shape, float32)
    return cast_to(less(unit, p if isinstance(p, Tensor) else fill((), p, float32)), input.dtype)


@tensor_method("bernoulli")
def _tensor_bernoulli(
    self: Tensor,
    p: Number | None = None,
    seed: object = None,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Draw 1 with the probability that is in each element of this tensor, else 0.

    With `p`, the probabilities are those of `p`, as in `ops.bernoulli`.

    Examples:
        >>> import duograph as ms
        >>> print(ms.Tensor([0.0, 1.0, 1.0]).bernoulli())
        [0. 1. 1.]
    """
    return bernoulli(self, self if p is None else p, seed if generator is None else generator)


@op(name="multinomial", differentiable=False)
def multinomial_by(input: Tensor, state: Tensor, num_samples: int, replacement: bool):
    """Composite op: draw `num_samples` indices in [0, k) for each row of weights `input` (n, k).

    The result is int64 (n, num_samples). `state` is the state of a random generator, uint32 (4,).
    With `replacement`, an index may be drawn again.
    """
    n, k = input.shape
    x = cast_to(input, float32)
    if replacement:
        total = scan_sum(x, 1, False, False)
        last = slice_by(total, (0, k - 1), (n, k), (1, 1))
        draw = random_uniform(state, (n, num_samples), float32) * last
        below = logical_not(
            less(reshape_to(draw, (n, num_samples, 1)), reshape_to(total, (n, 1, k)))
        )
        # a draw that rounds up to the total takes the last index of nonzero probability
        allowed = argmax_along(mul(iota((n, k), 1, float32), cast_to(less(0.0, x), float32)), 1)
        found = reduce_sum(cast_to(below, int64), (2,), False)
        return minimum(found, reshape_to(allowed, (n, 1)))
    # the top elements of log(p) + Gumbel noise are a sample without replacement (Efraimidis and
    # Spirakis, 2006)
    unit = random_uniform(state, (n, k), float32)
    noise = log(x) - log(neg(log(1.0 - unit)))
    return topk_by(noise, num_samples, 1, True)[1]


@tensor_method("multinomial")
def multinomial(
    input: Tensor, num_samples: int, replacement: bool = True, seed: object = None
) -> Tensor:
    """Draw indices with given probabilities (`mindspore.ops.multinomial`).

    Args:
        input: Tensor (k,) or (n, k) of weights, not negative; they need not sum to 1.
        num_samples: number of indices to draw from each row.
        replacement: whether an index may be drawn again.
        seed: int that is combined with the global seed, or None; see `rand`.

    Returns:
        Tensor of int32, (num_samples,) or (n, num_samples).

    Raises:
        ValueError: another number of axes; more samples than indices without replacement.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.multinomial(ms.Tensor([0.0, 1.0]), 3))
        [1 1 1]
    """
    if input.ndim not in (1, 2):
        raise ShapeError(f"multinomial: got input of shape {input.shape}; wanted one or two axes")
    if num_samples < 1 or (not replacement and num_samples > input.shape[-1]):
        raise ArgumentValueError(
            f"multinomial: got num_samples={num_samples} of {input.shape[-1]} with replacement="
            f"{replacement}; wanted at least 1, and without replacement at most the number of "
            "indices"
        )
    x = reshape_to(input, (1, input.shape[0])) if input.ndim == 1 else input
    found = cast_to(
        multinomial_by(x, take_state(seed, like=x), int(num_samples), bool(replacement)), int32
    )
    return reshape_to(found, found.shape[1:]) if input.ndim == 1 else found
