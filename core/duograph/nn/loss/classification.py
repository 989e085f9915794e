"""Losses over classes and probabilities, as layers.

`nn` exports them. Each calls an op or composes public ops; none has a gradient rule of its own.
"""

from __future__ import annotations

import math
from typing import Any

from ... import ops
from ...errors import ArgumentError, ShapeError
from ...ops.gather_scatter import checked_labels
from ...tensor import Tensor
from .. import _check
from .._types import Activation
from ..layer.activation import get_activation
from ..layer.softmax import Softmax
from .base import LossBase, reduce, same_shape

__all__ = [
    "CrossEntropyLoss",
    "NLLLoss",
    "SoftmaxCrossEntropyWithLogits",
    "BCELoss",
    "BCEWithLogitsLoss",
    "KLDivLoss",
    "CTCLoss",
    "DiceLoss",
    "MultiClassDiceLoss",
    "FocalLoss",
    "MultiLabelSoftMarginLoss",
    "MultilabelMarginLoss",
]


def _weight(owner: str, weight: object) -> Tensor | None:
    """Return the `weight` argument of a loss if it is a Tensor or None; raise otherwise."""
    if weight is not None and not isinstance(weight, Tensor):
        raise ArgumentError(
            f"{owner}: got weight of {type(weight).__name__}; wanted a Tensor or None"
        )
    return weight


class CrossEntropyLoss(LossBase):
    """Cross entropy of logits with classes or probabilities (`mindspore.nn.CrossEntropyLoss`).

    Args:
        weight: Tensor (C,): one factor per class.
        ignore_index: class whose targets are left out.
        reduction: ``"mean"`` (weighted), ``"sum"`` or ``"none"``.
        label_smoothing: fraction of the target distributed evenly over all classes.

    Inputs: logits of (N, C, ...) or (C,), float; target: int32 classes of (N, ...), or
        probabilities like logits.

    Raises:
        TypeError: `weight` is not a Tensor.
        ValueError: `label_smoothing` is outside [0, 1], or the shapes do not match.

    Examples:
        >>> import duograph as ms
        >>> loss = ms.nn.CrossEntropyLoss()
        >>> print(loss(ms.Tensor([[0.0, 0.0]]), ms.Tensor([1], ms.int32)))
        0.6931472
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(reduction)
        self.weight = _weight("CrossEntropyLoss", weight)
        if isinstance(ignore_index, bool) or not isinstance(ignore_index, int):
            raise ArgumentError(
                f"CrossEntropyLoss: got ignore_index={ignore_index!r}; wanted an int"
            )
        self.ignore_index = ignore_index
        self.label_smoothing = _check.in_range(
            "CrossEntropyLoss", "label_smoothing", label_smoothing, 0, 1
        )

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return ops.cross_entropy(
            logits, labels, self.weight, self.ignore_index, self.reduction, self.label_smoothing
        )


class NLLLoss(LossBase):
    """Negative log likelihood of log probabilities (`mindspore.nn.NLLLoss`).

    Inputs: logits: log probabilities of (N, C, ...) ; labels: int32 classes of (N, ...).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.NLLLoss()(ms.Tensor([[-1.0, -2.0]]), ms.Tensor([1], ms.int32)))
        2.0
    """

    def __init__(
        self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction)
        self.weight = _weight("NLLLoss", weight)
        self.ignore_index = ignore_index

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return ops.nll_loss(logits, labels, self.weight, self.ignore_index, self.reduction)


class SoftmaxCrossEntropyWithLogits(LossBase):
    """Cross entropy of each row of logits (`mindspore.nn.SoftmaxCrossEntropyWithLogits`).

    Args:
        sparse: whether labels are class indices rather than one-hot rows.
        reduction: ``"none"`` (the default), ``"mean"`` or ``"sum"``.

    Inputs: logits of (N, C); labels of (N,), integer, when `sparse`, else of (N, C).

    Raises:
        TypeError: class indices that are not integers.
        ValueError: the shapes do not match.

    Examples:
        >>> import duograph as ms
        >>> loss = ms.nn.SoftmaxCrossEntropyWithLogits(sparse=True)
        >>> print(loss(ms.Tensor([[0.0, 0.0]]), ms.Tensor([1], ms.int32)))
        [0.6931472]
    """

    def __init__(self, sparse: bool = False, reduction: str = "none") -> None:
        super().__init__(reduction)
        self.sparse = _check.boolean("SoftmaxCrossEntropyWithLogits", "sparse", sparse)

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        owner = "SoftmaxCrossEntropyWithLogits"
        if self.sparse:
            if not labels.dtype.is_integer:
                raise ArgumentError(
                    f"{owner}: labels have dtype {labels.dtype.name}; wanted integers when "
                    "sparse=True"
                )
            if labels.shape != logits.shape[:-1]:
                raise ShapeError(
                    f"{owner}: logits have shape {logits.shape} and labels {labels.shape}; "
                    f"wanted labels of {logits.shape[:-1]}"
                )
            rows = logits.reshape(-1, logits.shape[-1])
            flat = ops.nll_loss(
                ops.log_softmax(rows, -1), labels.reshape(-1), None, -100, "none"
            ).reshape(labels.shape)
            return reduce(flat, self.reduction)
        integers = labels.dtype.is_integer
        named = "; for class numbers as labels make it with sparse=True"
        same_shape(owner, logits, labels, named if integers else "")
        return reduce(-(ops.log_softmax(logits, -1) * labels).sum(-1), self.reduction)


class BCELoss(LossBase):
    """Binary cross entropy of probabilities (`mindspore.nn.BCELoss`).

    Args:
        weight: Tensor that broadcasts to the input: one factor per element.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Raises:
        ValueError: the shapes differ, or a probability is outside [0, 1].

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.BCELoss()(ms.Tensor([0.5]), ms.Tensor([1.0])))
        0.6931472
    """

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = _weight("BCELoss", weight)

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        same_shape("BCELoss", logits, labels)
        return ops.binary_cross_entropy(logits, labels, self.weight, self.reduction)


class BCEWithLogitsLoss(LossBase):
    """Binary cross entropy of logits (`mindspore.nn.BCEWithLogitsLoss`).

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        weight: Tensor that broadcasts to the input: one factor per element.
        pos_weight: Tensor that broadcasts: factor of positive targets.

    Raises:
        ValueError: the shapes differ.

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.BCEWithLogitsLoss()(ms.Tensor([0.0]), ms.Tensor([1.0])))
        0.6931472
    """

    def __init__(
        self,
        reduction: str = "mean",
        weight: Tensor | None = None,
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(reduction)
        self.weight = _weight("BCEWithLogitsLoss", weight)
        self.pos_weight = _weight("BCEWithLogitsLoss", pos_weight)

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        same_shape("BCEWithLogitsLoss", logits, labels)
        return ops.binary_cross_entropy_with_logits(
            logits, labels, self.weight, self.pos_weight, self.reduction
        )


class KLDivLoss(LossBase):
    """Kullback-Leibler divergence of probabilities (labels) from log probabilities (logits)
    (`mindspore.nn.KLDivLoss`).

    Args:
        reduction: ``"mean"``, ``"batchmean"``, ``"sum"`` or ``"none"``.

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.KLDivLoss("sum")(ms.Tensor([-1.0]), ms.Tensor([1.0])))
        1.0
    """

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__("mean" if reduction == "batchmean" else reduction)
        self.reduction = reduction

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return ops.kl_div(logits, labels, self.reduction)


class CTCLoss(LossBase):
    """Connectionist temporal classification (Graves et al., 2006; `mindspore.nn.CTCLoss`).

    Args:
        blank: number of the class that stands for no label.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        zero_infinity: whether infinite losses and their gradients become 0.

    Inputs: log_probs of (T, N, C), targets of (N, S) or flat, input_lengths and target_lengths of
        (N,).

    Examples:
        >>> import duograph as ms
        >>> log_p = ms.ops.log_softmax(ms.ops.zeros((2, 1, 3), ms.float32), -1)
        >>> one = ms.Tensor([1], ms.int32)
        >>> loss = ms.nn.CTCLoss(reduction="sum")(log_p, ms.Tensor([[1]], ms.int32), one * 2, one)
        >>> print(loss)
        1.0986123
    """

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        super().__init__(reduction)
        self.blank = _check.non_negative_int("CTCLoss", "blank", blank)
        self.zero_infinity = _check.boolean("CTCLoss", "zero_infinity", zero_infinity)

    def construct(
        self, log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor
    ) -> Tensor:
        found = ops.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction,
            self.zero_infinity,
        )  # fmt: skip
        return found[0] if isinstance(found, tuple) else found


class DiceLoss(LossBase):
    """`1 - (2 * |x y| + smooth) / (|x|^2 + |y|^2 + smooth)` of logits x and labels y
    (`mindspore.nn.DiceLoss`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.DiceLoss()(ms.Tensor([1.0, 0.0]), ms.Tensor([1.0, 0.0])))
        0.0
    """

    def __init__(self, smooth: float = 1e-5) -> None:
        super().__init__()
        self.smooth = _check.in_range("DiceLoss", "smooth", smooth, 0, open_low=True)

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        same_shape("DiceLoss", logits, labels)
        labels = ops.cast(labels, logits.dtype)
        joint = (logits * labels).sum()
        union = (logits * logits).sum() + (labels * labels).sum()
        return 1 - (2 * joint + self.smooth) / (union + self.smooth)


class MultiClassDiceLoss(LossBase):
    """Mean of the Dice losses of the classes, on axis 1 (`mindspore.nn.MultiClassDiceLoss`).

    Examples:
        >>> import duograph as ms
        >>> x = ms.Tensor([[1.0, 0.0], [0.0, 1.0]])
        >>> print(ms.nn.MultiClassDiceLoss(activation=None)(x, x))
        0.0
    """

    def __init__(
        self,
        weights: Tensor | None = None,
        ignore_indiex: int | None = None,
        activation: Activation = "softmax",
    ) -> None:
        super().__init__()
        self.weights = _weight("MultiClassDiceLoss", weights)
        self.ignore_indiex = ignore_indiex
        self.activation = get_activation(activation) if isinstance(activation, str) else activation
        if activation == "softmax":
            self.activation = Softmax(1)
        self._dice = DiceLoss()

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        same_shape("MultiClassDiceLoss", logits, labels)
        if self.activation is not None:
            logits = self.activation(logits)
        total: Any = 0.0
        for i in range(labels.shape[1]):
            if i != self.ignore_indiex:
                dice = self._dice(logits[:, i], labels[:, i])
                total = total + (dice if self.weights is None else dice * self.weights[i])
        return total / labels.shape[1]


class FocalLoss(LossBase):
    """Cross entropy times `(1 - p) ** gamma` (Lin et al., 2017; `mindspore.nn.FocalLoss`).

    The factor reduces the weight of confident predictions.

    Args:
        weight: Tensor (C,), one factor per class.
        gamma: exponent in the factor, in which p is the probability of the right class.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Inputs: logits of (N, C), (N, C, H) or (N, C, H, W); labels like them, or with 1 on axis 1
        (classes).

    Raises:
        ValueError: inputs of another rank, or `gamma` below 0.
        IndexError: a class outside 0 .. C - 1.

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.FocalLoss()(ms.Tensor([[0.0, 0.0]]), ms.Tensor([[1]], ms.int32)))
        0.1732868
    """

    def __init__(
        self, weight: Tensor | None = None, gamma: float = 2.0, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction)
        self.gamma = _check.in_range("FocalLoss", "gamma", gamma, 0)
        self.weight = _weight("FocalLoss", weight)

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        _check.rank("FocalLoss", logits, 2, 3, 4)
        if labels.ndim != logits.ndim:
            raise ShapeError(
                f"FocalLoss: logits have shape {logits.shape} and labels {labels.shape}; "
                f"wanted the same number of axes"
            )
        n, classes = logits.shape[:2]
        pixels = math.prod(logits.shape[2:])
        rows = logits.reshape(n, classes, pixels)
        log_p = ops.log_softmax(rows, 1)
        if labels.shape[1] == 1 and classes != 1:
            own = checked_labels("FocalLoss", labels.reshape(n, pixels), classes)
            target = ops.one_hot(own, classes, axis=1).astype(log_p.dtype)
        else:
            target = labels.reshape(n, labels.shape[1], pixels).astype(log_p.dtype)
        terms = target * log_p
        if self.weight is not None:
            terms = terms * self.weight.reshape(1, classes, 1)
        log_p_target = (target * log_p).sum(1)
        focus = ops.pow(1.0 - ops.exp(log_p_target), self.gamma)
        loss = -(focus * terms.sum(1)).mean(1)
        return self.get_loss(loss)


class MultiLabelSoftMarginLoss(LossBase):
    """Mean binary cross entropy of logits over the classes
    (`mindspore.nn.MultiLabelSoftMarginLoss`).

    Examples:
        >>> import duograph as ms
        >>> x, target = ms.Tensor([[0.0, 0.0]]), ms.Tensor([[1.0, 0.0]])
        >>> print(ms.nn.MultiLabelSoftMarginLoss()(x, target))
        0.6931472
    """

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = _weight("MultiLabelSoftMarginLoss", weight)

    def construct(self, x: Tensor, target: Tensor) -> Tensor:
        same_shape("MultiLabelSoftMarginLoss", x, target)
        loss = target * ops.softplus(-x) + (1 - target) * ops.softplus(x)
        if self.weight is not None:
            loss = loss * self.weight
        return reduce(loss.mean(-1), self.reduction)


class MultilabelMarginLoss(LossBase):
    """Hinge loss between the scores of a sample's classes and of all others
    (`mindspore.nn.MultilabelMarginLoss`).

    Inputs: scores (N, C) or (C,); classes of each sample, ended by the first negative one, in the
    same shape.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Examples:
        >>> import duograph as ms
        >>> x, target = ms.Tensor([[0.1, 0.2, 0.4, 0.8]]), ms.Tensor([[3, 0, -1, 1]])
        >>> print(ms.nn.MultilabelMarginLoss()(x, target))
        0.85
    """

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction)

    def construct(self, x: Tensor, target: Tensor) -> Tensor:
        return ops.multilabel_margin_loss(x, target, self.reduction)
