"""The steps of batch normalisation over several processes, with the signatures of `duograph.mint`.

`mint/__init__.py` exports these functions. A program computes the statistics of its batch with
`batch_norm_stats`, combines the statistics of all processes with
`batch_norm_gather_stats_with_counts` and normalises with `batch_norm_elemt`. Every function calls
`duograph.ops`.
"""

from __future__ import annotations

from .. import ops as _ops
from ..errors import ShapeError
from ..tensor import Tensor

__all__ = ["batch_norm_elemt", "batch_norm_gather_stats_with_counts", "batch_norm_stats"]


def _channels(x: Tensor, ndim: int) -> Tensor:
    """Reshape (C,) to (1, C, 1, ...) with `ndim` axes, so that it broadcasts over (N, C, ...)."""
    return _ops.reshape(x, (1, -1, *[1] * (ndim - 2)))


def batch_norm_stats(input: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Return the mean and the inverse standard deviation of every channel
    (`mindspore.mint.batch_norm_stats`).

    Args:
        input: floating Tensor (N, C, ...).
        eps: number that is added to the (uncorrected) variance.

    Returns:
        (mean, invstd), both (C,).

    Raises:
        ValueError: fewer than two axes.

    Examples:
        >>> from duograph import Tensor, mint
        >>> mean, invstd = mint.batch_norm_stats(Tensor([[1.0], [3.0]]), 0.0)
        >>> print(mean, invstd)
        [2.] [1.]
    """
    if input.ndim < 2:
        raise ShapeError(f"batch_norm_stats: got shape {input.shape}; wanted (N, C, ...)")
    axes = tuple(i for i in range(input.ndim) if i != 1)
    return _ops.mean(input, axes), _ops.rsqrt(_ops.var(input, axes, 0) + eps)


def batch_norm_elemt(
    input: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    mean: Tensor | None = None,
    invstd: Tensor | None = None,
    eps: float = 1e-05,
) -> Tensor:
    """Return ``(input - mean) * invstd * weight + bias``, for every channel
    (`mindspore.mint.batch_norm_elemt`).

    Args:
        input: floating Tensor (N, C, ...).
        weight, bias: Tensors (C,); None for 1 and 0.
        mean, invstd: Tensors (C,); None for those of `batch_norm_stats`.
        eps: number that is added to the variance if `invstd` is None.

    Raises:
        ValueError: fewer than two axes, or tensors of other sizes.

    Examples:
        >>> from duograph import Tensor, mint
        >>> x = Tensor([[1.0], [3.0]])
        >>> print(mint.batch_norm_elemt(x, mean=Tensor([1.0]), invstd=Tensor([0.5])))
        [[0.]
         [1.]]
    """
    if mean is None or invstd is None:
        found_mean, found_invstd = batch_norm_stats(input, eps)
        mean = found_mean if mean is None else mean
        invstd = found_invstd if invstd is None else invstd
    out = (input - _channels(mean, input.ndim)) * _channels(invstd, input.ndim)
    if weight is not None:
        out = out * _channels(weight, input.ndim)
    return out if bias is None else out + _channels(bias, input.ndim)


def batch_norm_gather_stats_with_counts(
    input: Tensor,
    mean: Tensor,
    invstd: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    momentum: float = 0.1,
    eps: float = 1e-05,
    counts: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Join the statistics of several batches, and update the running ones
    (`mindspore.mint.batch_norm_gather_stats_with_counts`).

    Args:
        input: floating Tensor (N, C, ...), whose dtype the result has.
        mean, invstd: Tensors (batches, C), each row a result of `batch_norm_stats`.
        running_mean, running_var: Tensors (C,), updated in place; with None, nothing is updated.
        momentum: weight of the joined statistics in the running ones.
        eps: number that was added to the variances from which `invstd` was computed.
        counts: Tensor (batches,), the number of elements per channel in each batch; None if all
            batches are as large as `input`.

    Returns:
        (mean, invstd) of all batches, both (C,).

    Raises:
        ValueError: tensors of other sizes.

    Examples:
        >>> from duograph import Tensor, mint
        >>> means, invstds = Tensor([[1.0], [3.0]]), Tensor([[1.0], [1.0]])
        >>> print(mint.batch_norm_gather_stats_with_counts(mint.ones((2, 1)), means, invstds)[0])
        [2.]
    """
    if mean.ndim != 2 or mean.shape != invstd.shape or mean.shape[1] != input.shape[1]:
        raise ShapeError(
            f"batch_norm_gather_stats_with_counts: got mean of shape {mean.shape} and invstd of "
            f"shape {invstd.shape} for {input.shape[1]} channels; wanted (batches, channels)"
        )
    if counts is None:
        each = float(input.size // input.shape[1])
        share = _ops.full((mean.shape[0], 1), each, dtype=mean.dtype)
    else:
        share = _ops.reshape(counts.astype(mean.dtype), (-1, 1))
    total = _ops.sum(share, 0)
    joined = _ops.sum(mean * share, 0) / total
    squares = (1.0 / (invstd * invstd) - eps + (mean - joined) * (mean - joined)) * share
    squares = _ops.sum(squares, 0)
    if running_mean is not None:
        running_mean.copy_(running_mean * (1 - momentum) + joined * momentum)
    if running_var is not None:
        unbiased = squares / (total - 1.0)
        running_var.copy_(running_var * (1 - momentum) + unbiased * momentum)
    return joined.astype(input.dtype), _ops.rsqrt(squares / total + eps).astype(input.dtype)
