"""Losses of `duograph.mint.nn.functional` whose signatures differ from those of `duograph.ops`.

`functional/__init__.py` exports them, and the loss layers call them. Every function calls
`duograph.ops`.
"""

from __future__ import annotations

from .... import ops as _ops
from ....errors import ArgumentValueError
from ....tensor import Tensor

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div", "nll_loss",
    "smooth_l1_loss",
]  # fmt: skip


def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """Return the cross entropy of probabilities with targets
    (`mindspore.mint.nn.functional.binary_cross_entropy`).

    Args:
        input: floating Tensor of probabilities.
        target: Tensor of the same shape.
        weight: factor of each element's loss; its shape broadcasts to that of `input`.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Raises:
        ValueError: a probability outside [0, 1], other shapes, or an unknown reduction.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.functional.binary_cross_entropy(Tensor([0.5]), Tensor([1.0])))
        0.6931472
    """
    return _ops.binary_cross_entropy(input, target, weight, reduction)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Return the binary cross entropy of the sigmoid of logits with targets
    (`mindspore.mint.nn.functional.binary_cross_entropy_with_logits`).

    Args:
        input: floating Tensor of logits.
        target: Tensor of the same shape.
        weight: factor of each element's loss; its shape broadcasts to that of `input`.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        pos_weight: factor of the positive targets.

    Raises:
        ValueError: other shapes, or an unknown reduction.

    Examples:
        >>> from duograph import Tensor, mint
        >>> F = mint.nn.functional
        >>> print(F.binary_cross_entropy_with_logits(Tensor([0.0]), Tensor([1.0])))
        0.6931472
    """
    return _ops.binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction)


def kl_div(
    input: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False
) -> Tensor:
    """Return the Kullback-Leibler divergence of log probabilities from targets
    (`mindspore.mint.nn.functional.kl_div`).

    Args:
        input: floating Tensor of log probabilities.
        target: Tensor of probabilities, whose shape broadcasts.
        reduction: ``"mean"``, ``"batchmean"`` (the sum over the length of axis 0), ``"sum"`` or
            ``"none"``.
        log_target: whether `target` holds log probabilities too.

    Raises:
        ValueError: other shapes, or an unknown reduction.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.functional.kl_div(Tensor([0.0]), Tensor([0.0]), log_target=True))
        0.0
    """
    shape = (input + target).shape if input.shape != target.shape else input.shape
    x = _ops.broadcast_to(input, shape) if input.shape != shape else input
    y = _ops.broadcast_to(target, shape) if target.shape != shape else target
    if not log_target:
        return _ops.kl_div(x, y, reduction)
    found = _ops.exp(y) * (y - x)
    if reduction == "batchmean":
        return _ops.sum(found) / (shape[0] if shape else 1)
    if reduction == "none":
        return found
    if reduction not in ("mean", "sum"):
        raise ArgumentValueError(
            f"kl_div: got reduction={reduction!r}; wanted 'mean', 'batchmean', 'sum' or 'none'"
        )
    return _ops.mean(found) if reduction == "mean" else _ops.sum(found)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """Return the negative log likelihood of log probabilities
    (`mindspore.mint.nn.functional.nll_loss`).

    Args:
        input: floating Tensor of log probabilities (N, C, ...) or (C,).
        target: integer Tensor of classes (N, ...) or ().
        weight: Tensor (C,), a factor for each class.
        ignore_index: targets of this value do not count.
        reduction: ``"mean"`` (divided by the sum of the factors), ``"sum"`` or ``"none"``.

    Raises:
        TypeError: the target is not integer.
        ValueError: other shapes, or an unknown reduction.
        IndexError: a target that is no class.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.functional.nll_loss(Tensor([[-1.0, -2.0]]), Tensor([1])))
        2.0
    """
    return _ops.nll_loss(input, target, weight, ignore_index, reduction)


def smooth_l1_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", beta: float = 1.0
) -> Tensor:
    """Return the absolute difference, quadratic below `beta`
    (`mindspore.mint.nn.functional.smooth_l1_loss`).

    Args:
        input, target: Tensors of the same shape.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        beta: where the loss changes from quadratic to linear; 0 makes it `l1_loss`.

    Raises:
        ValueError: a negative `beta`, other shapes, or an unknown reduction.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.functional.smooth_l1_loss(Tensor([3.0]), Tensor([1.0])))
        1.5
    """
    if beta == 0:
        return _ops.l1_loss(input, target, reduction)
    return _ops.smooth_l1_loss(input, target, beta, reduction)
