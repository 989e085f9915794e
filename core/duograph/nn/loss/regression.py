"""Losses over distances, similarities and likelihoods, as layers.

`nn` exports them. Each composes public ops; none has a gradient rule of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ... import ops
from ...errors import ArgumentError
from ...ops.gather_scatter import checked_labels
from ...tensor import Tensor
from .. import _check
from .base import LossBase, reduce, same_shape

__all__ = [
    "L1Loss", "MSELoss", "MAELoss", "RMSELoss", "SmoothL1Loss", "HuberLoss", "CosineEmbeddingLoss",
    "TripletMarginLoss", "TripletMarginWithDistanceLoss",
    "MarginRankingLoss", "HingeEmbeddingLoss", "SoftMarginLoss", "PoissonNLLLoss",
    "GaussianNLLLoss", "MultiMarginLoss",
]  # fmt: skip


class L1Loss(LossBase):
    """Mean absolute difference (`mindspore.nn.L1Loss`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.L1Loss()(ms.Tensor([1.0, 2.0]), ms.Tensor([2.0, 4.0])))
        1.5
    """

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return self.get_loss(ops.abs(logits - labels))


class MAELoss(L1Loss):
    """Mean absolute difference; the same as `L1Loss` (`mindspore.nn.MAELoss`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.MAELoss()(ms.Tensor([1.0, 2.0]), ms.Tensor([2.0, 4.0])))
        1.5
    """


class MSELoss(LossBase):
    """Mean squared difference (`mindspore.nn.MSELoss`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.MSELoss()(ms.Tensor([1.0, 2.0]), ms.Tensor([2.0, 4.0])))
        2.5
    """

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return reduce(ops.square(logits - labels), self.reduction)


class RMSELoss(LossBase):
    """Root of the mean squared difference (`mindspore.nn.RMSELoss`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.RMSELoss()(ms.Tensor([1.0, 2.0]), ms.Tensor([2.0, 4.0])))
        1.5811388
    """

    def __init__(self) -> None:
        super().__init__()

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return ops.sqrt(ops.square(logits - labels).mean())


class SmoothL1Loss(LossBase):
    """Loss of differences, quadratic below `beta`, linear above (`mindspore.nn.SmoothL1Loss`).

    The reduction is ``"none"`` by default.

    Raises:
        ValueError: `beta` is 0 or less, or the shapes differ.

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.SmoothL1Loss()(ms.Tensor([1.0, 4.0]), ms.Tensor([1.5, 2.0])))
        [0.125 1.5  ]
    """

    def __init__(self, beta: float = 1.0, reduction: str = "none") -> None:
        super().__init__(reduction)
        self.beta = _check.in_range("SmoothL1Loss", "beta", beta, 0, open_low=True)

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        same_shape("SmoothL1Loss", logits, labels)
        return ops.smooth_l1_loss(logits, labels, self.beta, self.reduction)


class HuberLoss(LossBase):
    """`0.5 d^2` where `d = |logits - labels|` is at most `delta`, else `delta (d - 0.5 delta)`
    (`mindspore.nn.HuberLoss`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.HuberLoss()(ms.Tensor([1.0, 2.0]), ms.Tensor([2.0, 4.0])))
        1.0
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = _check.in_range("HuberLoss", "delta", delta, 0, open_low=True)

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        size = ops.abs(logits - labels)
        loss = ops.where(
            size <= self.delta, 0.5 * size * size, self.delta * (size - 0.5 * self.delta)
        )
        return reduce(loss, self.reduction)


class CosineEmbeddingLoss(LossBase):
    """1 - cos for labels 1, max(0, cos - margin) for labels -1
    (`mindspore.nn.CosineEmbeddingLoss`).

    Inputs: logits_x1 and logits_x2 of (N, D) or (D,); labels of (N,) or () with values 1 and -1.

    Examples:
        >>> import duograph as ms
        >>> a, b = ms.Tensor([[1.0, 0.0]]), ms.Tensor([[0.0, 1.0]])
        >>> print(ms.nn.CosineEmbeddingLoss()(a, b, ms.Tensor([1], ms.int32)))
        1.0
    """

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = _check.in_range("CosineEmbeddingLoss", "margin", margin, -1, 1)

    def construct(self, logits_x1: Tensor, logits_x2: Tensor, labels: Tensor) -> Tensor:
        same_shape("CosineEmbeddingLoss", logits_x1, logits_x2)
        axis = 1 if logits_x1.ndim > 1 else 0
        joint = (logits_x1 * logits_x2).sum(axis)
        squares = ops.square(logits_x1).sum(axis) * ops.square(logits_x2).sum(axis)
        cosine = joint / ops.sqrt(squares)
        apart = ops.maximum(cosine - self.margin, 0.0)
        zero = ops.zeros_like(cosine)
        loss = ops.where(labels == 1, 1.0 - cosine, zero) + ops.where(labels == -1, apart, zero)
        return reduce(loss, self.reduction)


def _distance(x: Tensor, y: Tensor, p: float, eps: float) -> Tensor:
    """Return the p-norm of ``|x - y| + eps`` along the last axis."""
    size = ops.abs(x - y) + eps
    if p == 1:
        return size.sum(-1)
    if p == 2:
        return ops.sqrt(ops.square(size).sum(-1))
    return ops.pow(ops.pow(size, float(p)).sum(-1), 1.0 / p)


class TripletMarginLoss(LossBase):
    """max(d(anchor, positive) - d(anchor, negative) + margin, 0)
    (`mindspore.nn.TripletMarginLoss`).

    Args:
        p: order of the norm that is the distance d.
        swap: whether to replace d(anchor, negative) by d(positive, negative) where that is smaller
            (Balntas et al., 2016).
        eps: number that is added to the differences.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        margin: default of the input of this name.

    Examples:
        >>> import duograph as ms
        >>> a, b, c = (ms.Tensor([[v]]) for v in (0.0, 2.0, 3.0))
        >>> print(ms.nn.TripletMarginLoss(eps=0.0)(a, b, c))
        0.0
    """

    def __init__(
        self,
        p: int = 2,
        swap: bool = False,
        eps: float = 1e-6,
        reduction: str = "mean",
        margin: float = 1.0,
    ) -> None:
        super().__init__(reduction)
        self.p = _check.in_range("TripletMarginLoss", "p", p, 0, open_low=True)
        self.swap = _check.boolean("TripletMarginLoss", "swap", swap)
        self.eps = _check.real("TripletMarginLoss", "eps", eps)
        self.margin = margin

    def construct(
        self, x: Tensor, positive: Tensor, negative: Tensor, margin: float | Tensor | None = None
    ) -> Tensor:
        near = _distance(x, positive, self.p, self.eps)
        far = _distance(x, negative, self.p, self.eps)
        if self.swap:
            far = ops.minimum(far, _distance(positive, negative, self.p, self.eps))
        gap = self.margin if margin is None else margin
        return reduce(ops.relu(near - far + gap), self.reduction)


class TripletMarginWithDistanceLoss(LossBase):
    """`TripletMarginLoss` with a distance function of the user
    (`mindspore.nn.TripletMarginWithDistanceLoss`).

    Examples:
        >>> import duograph as ms
        >>> a, b, c = (ms.Tensor([v]) for v in (0.0, 2.0, 3.0))
        >>> print(ms.nn.TripletMarginWithDistanceLoss(lambda x, y: abs(x - y))(a, b, c))
        0.0
    """

    def __init__(
        self,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        swap: bool = False,
        reduction: str = "mean",
        margin: float = 1.0,
    ) -> None:
        super().__init__(reduction)
        self.distance = distance_function or (lambda x, y: _distance(x, y, 2, 1e-6))
        self.swap = _check.boolean("TripletMarginWithDistanceLoss", "swap", swap)
        self.margin = _check.real("TripletMarginWithDistanceLoss", "margin", margin)

    def construct(self, x: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        near, far = self.distance(x, positive), self.distance(x, negative)
        if self.swap:
            far = ops.minimum(far, self.distance(positive, negative))
        return reduce(ops.relu(near - far + self.margin), self.reduction)


class MarginRankingLoss(LossBase):
    """max(0, -target * (input1 - input2) + margin) (`mindspore.nn.MarginRankingLoss`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.MarginRankingLoss()(ms.Tensor([1.0]), ms.Tensor([3.0]), ms.Tensor([1.0])))
        2.0
    """

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = _check.real("MarginRankingLoss", "margin", margin)

    def construct(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return reduce(ops.relu(-target * (input1 - input2) + self.margin), self.reduction)


class HingeEmbeddingLoss(LossBase):
    """x for labels 1, max(0, margin - x) for labels -1 (`mindspore.nn.HingeEmbeddingLoss`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.HingeEmbeddingLoss()(ms.Tensor([1.0, 2.0]), ms.Tensor([1.0, -1.0])))
        0.5
    """

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = _check.real("HingeEmbeddingLoss", "margin", margin)

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        loss = ops.where(labels > 0, logits, ops.relu(self.margin - logits))
        return reduce(loss, self.reduction)


class SoftMarginLoss(LossBase):
    """log(1 + exp(-y x)) of logits x and labels y of 1 or -1 (`mindspore.nn.SoftMarginLoss`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.SoftMarginLoss()(ms.Tensor([1.0, 2.0]), ms.Tensor([1.0, -1.0])))
        1.2200949
    """

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        same_shape("SoftMarginLoss", logits, labels)
        return reduce(ops.softplus(-labels * logits), self.reduction)


class PoissonNLLLoss(LossBase):
    """Negative log likelihood of counts of given rates (`mindspore.nn.PoissonNLLLoss`).

    Args:
        log_input: whether the input is the logarithm of the rates rather than the rates.
        full: whether to add Stirling's approximation of the term that depends on the counts alone.
        eps: number that is added to rates before their logarithm is taken.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.PoissonNLLLoss()(ms.Tensor([0.0]), ms.Tensor([1.0])))
        1.0
    """

    def __init__(
        self, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction)
        self.log_input = _check.boolean("PoissonNLLLoss", "log_input", log_input)
        self.full = _check.boolean("PoissonNLLLoss", "full", full)
        self.eps = _check.in_range("PoissonNLLLoss", "eps", eps, 0)

    def construct(self, input: Tensor, target: Tensor) -> Tensor:
        if not isinstance(input, Tensor) or not isinstance(target, Tensor):
            raise ArgumentError("PoissonNLLLoss: wanted two Tensors")
        if self.log_input:
            loss = ops.exp(input) - target * input
        else:
            loss = input - target * ops.log(input + self.eps)
        if self.full:
            safe = ops.where(target > 1, target, ops.ones_like(target))
            stirling = safe * ops.log(safe) - safe + 0.5 * ops.log(2 * math.pi * safe)
            loss = loss + ops.where(target > 1, stirling, ops.zeros_like(loss))
        return reduce(loss, self.reduction)


class GaussianNLLLoss(LossBase):
    """Negative log likelihood under a normal distribution (`mindspore.nn.GaussianNLLLoss`).

    `full` adds the constant term, and `eps` is the least variance. Inputs: the means, the targets
    and the variances.

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.GaussianNLLLoss()(ms.Tensor([1.0]), ms.Tensor([3.0]), ms.Tensor([1.0])))
        2.0
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.full = _check.boolean("GaussianNLLLoss", "full", full)
        self.eps = _check.in_range("GaussianNLLLoss", "eps", eps, 0, open_low=True)

    def construct(self, logits: Tensor, labels: Tensor, var: Tensor) -> Tensor:
        if var.ndim == logits.ndim - 1:
            var = var.expand_dims(-1)
        safe = ops.maximum(var, self.eps)
        loss = 0.5 * (ops.log(safe) + ops.square(logits - labels) / safe)
        if self.full:
            loss = loss + 0.5 * math.log(2 * math.pi)
        return reduce(loss, self.reduction)


class MultiMarginLoss(LossBase):
    """Hinge loss: mean over classes i of max(0, margin - x[y] + x[i]) ** p, y the target
    (`mindspore.nn.MultiMarginLoss`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.MultiMarginLoss()(ms.Tensor([[0.0, 0.5]]), ms.Tensor([1], ms.int32)))
        0.25
    """

    def __init__(
        self, p: int = 1, margin: float = 1.0, reduction: str = "mean", weight: Tensor | None = None
    ) -> None:
        super().__init__(reduction)
        self.p = _check.one_of("MultiMarginLoss", "p", p, (1, 2))
        self.margin = _check.real("MultiMarginLoss", "margin", margin)
        self.weight = weight

    def construct(self, x: Tensor, target: Tensor) -> Tensor:
        _check.rank("MultiMarginLoss", x, 2)
        target = checked_labels("MultiMarginLoss", target, x.shape[1])
        right = ops.gather_elements(x, 1, target.astype("int64").expand_dims(1))
        loss = ops.relu(self.margin - right + x)
        if self.p == 2:
            loss = loss * loss
        if self.weight is not None:
            loss = loss * ops.gather(self.weight, target, 0).expand_dims(1)
        mask = ops.one_hot(target, x.shape[1]).astype(x.dtype)
        loss = (loss * (1 - mask)).sum(1) / x.shape[1]
        return reduce(loss, self.reduction)
