"""Dropout of elements and of whole channels, as functions and ops.

Users and layers call them. Without `training` the functions return their input unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..dtype import float32
from ..errors import ShapeError
from ..op import op
from ..option_checks import check_options
from ..tensor import Tensor
from .comparison import less
from .creation import cast_to, fill
from .logic import logical_not, select_by
from .random import probability_of, random_uniform, take_state

__all__ = ["dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout"]


@op()
def dropout(input: Tensor, state: Tensor, p: float, shape: Sequence[int]):
    """Set elements to zero with probability p, and divide the others by 1 - p
    (`mindspore.ops.dropout`).

    Args:
        input: Tensor of any shape, floating.
        p: probability that an element becomes zero.
        training: if False, `input` is returned unchanged.
        seed: int that is combined with the global seed, or None; see `rand`.
        inplace: ignored; the result is always returned.

    Returns:
        Tensor of the shape of `input`; the same elements on every backend for one seed.

    Raises:
        ValueError: p outside [0, 1].
        TypeError: p is not a number.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.dropout(ms.Tensor([1.0, 2.0]), p=0.0))
        [1. 2.]
    """
    kept = logical_not(less(random_uniform(state, shape, float32), fill((), p, float32)))
    scaled = input * (1.0 / (1.0 - p)) if p < 1.0 else input
    return select_by(kept, scaled, fill((), 0, input.dtype))


@dropout.normaliser
def _(
    input: Tensor,
    p: float = 0.5,
    training: bool = True,
    seed: int | None = None,
    inplace: bool = False,
):
    if inplace:
        check_options("ops.dropout", inplace=inplace)
    p = probability_of("dropout", p)
    if not training:
        return input
    return (input, take_state(seed, like=input), p, input.shape)


@op(name="dropout_with_mask")
def dropout_mask_by(input: Tensor, state: Tensor, p: float):
    """Composite op: `dropout` and its mask, which has ones and zeros in the dtype of `input`.

    `state` is the state of a random generator, and `p` the probability of a zero.
    """
    kept = logical_not(less(random_uniform(state, input.shape, float32), fill((), p, float32)))
    mask = cast_to(kept, input.dtype)
    scaled = input * (1.0 / (1.0 - p)) if p < 1.0 else input
    return select_by(kept, scaled, fill((), 0, input.dtype)), mask


def _channels(name: str, input: Tensor, p: float, training: bool, ndims: Sequence[int]) -> Tensor:
    p = probability_of(name, p)
    if input.ndim not in ndims:
        raise ShapeError(
            f"{name}: got input of shape {input.shape}; wanted {' or '.join(map(str, ndims))} axes"
        )
    if not training:
        return input
    batched = input.ndim == ndims[-1]
    lead = input.shape[:2] if batched else input.shape[:1]
    shape = (*lead, *[1] * (input.ndim - len(lead)))
    return dropout(input, take_state(like=input), p, shape)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Set random whole channels of (N, C, L) to zero (`mindspore.ops.dropout1d`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.dropout1d(ms.ops.ones((2, 3, 4))).shape
        (2, 3, 4)
    """
    return _channels("dropout1d", input, p, training, (2, 3))


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Set random whole channels of (N, C, H, W) to zero (`mindspore.ops.dropout2d`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.dropout2d(ms.ops.ones((2, 3, 4, 4))).shape
        (2, 3, 4, 4)
    """
    return _channels("dropout2d", input, p, training, (3, 4))


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Set random whole channels of (N, C, D, H, W) to zero (`mindspore.ops.dropout3d`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.dropout3d(ms.ops.ones((2, 3, 4, 4, 4))).shape
        (2, 3, 4, 4, 4)
    """
    return _channels("dropout3d", input, p, training, (4, 5))


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Set random whole channels to SELU's negative limit, preserving mean and variance.

    Source: Klambauer et al., Self-Normalizing Neural Networks, 2017.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.feature_alpha_dropout(ms.ops.ones((2, 3, 4))).shape
        (2, 3, 4)
    """
    p = probability_of("feature_alpha_dropout", p)
    if not training or p == 0:
        return input
    alpha = -1.7580993408473766
    shape = (*input.shape[:2], *[1] * (input.ndim - 2))
    kept = logical_not(less(random_uniform(take_state(), shape, float32), fill((), p, float32)))
    if p == 1:
        return input * 0
    scale = (1 - p + p * (1 - p) * alpha * alpha) ** -0.5
    out = select_by(kept, input, fill((), alpha, input.dtype))
    return out * scale + (-scale * alpha * p)
