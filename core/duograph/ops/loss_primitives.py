"""Primitive classes of the losses, with MindSpore's constructor and call arguments.

Users construct them. They call the functions of `loss.py` and `ctc.py`, which have the formulas.
"""

from __future__ import annotations

import numpy as np

from ..autodiff.transforms import grad, value_and_grad
from ..errors import ArgumentError, ArgumentValueError, DTypeError, ShapeError
from ..tensor import Tensor
from .comparison import not_equal
from .creation import cast_to
from .ctc import ctc_loss
from .elementwise import maximum
from .gather_scatter import gather
from .loss import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    check_reduction,
    cross_entropy,
    nll_loss,
    smooth_l1_loss,
    total_of,
)
from .primitive import Primitive
from .softmax_ops import log_softmax_along

__all__ = [
    "SparseSoftmaxCrossEntropyWithLogits",
    "SigmoidCrossEntropyWithLogits", "BinaryCrossEntropy", "BCEWithLogitsLoss", "NLLLoss",
    "SmoothL1Loss", "L2Loss", "CTCLoss",
]  # fmt: skip


class SparseSoftmaxCrossEntropyWithLogits(Primitive):
    """Mean cross entropy of logits with classes, or its gradient by the logits if `is_grad`."""

    def __init__(self, is_grad: bool = False) -> None:
        super().__init__()
        self.is_grad = is_grad

    def __call__(self, logits: Tensor, labels: Tensor) -> Tensor:
        if not self.is_grad:
            return cross_entropy(logits, labels)
        return grad(cross_entropy)(logits, labels)


class SigmoidCrossEntropyWithLogits(Primitive):
    """Elementwise binary cross entropy of logits, without reduction."""

    def __call__(self, logits: Tensor, label: Tensor) -> Tensor:
        return binary_cross_entropy_with_logits.public(logits, label, None, None, "none")


class BinaryCrossEntropy(Primitive):
    """Primitive form of `binary_cross_entropy`."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = check_reduction("BinaryCrossEntropy", reduction)

    def __call__(self, logits: Tensor, labels: Tensor, weight: Tensor | None = None) -> Tensor:
        return binary_cross_entropy.public(logits, labels, weight, self.reduction)


class BCEWithLogitsLoss(Primitive):
    """Primitive form of `binary_cross_entropy_with_logits`."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = check_reduction("BCEWithLogitsLoss", reduction)

    def __call__(
        self,
        input: Tensor,
        target: Tensor,
        weight: Tensor | None = None,
        pos_weight: Tensor | None = None,
    ) -> Tensor:
        return binary_cross_entropy_with_logits.public(
            input, target, weight, pos_weight, self.reduction
        )


class NLLLoss(Primitive):
    """Negative log likelihood; the result is (loss, total weight).

    The operands are log probabilities, the class of each item, and a weight for each class. The
    total weight is the sum, over all items that are not ignored, of the weight of the item's class.
    """

    def __init__(self, reduction: str = "mean", ignore_index: int = -100) -> None:
        super().__init__()
        self.reduction = check_reduction("NLLLoss", reduction)
        self.ignore_index = ignore_index

    def __call__(self, logits: Tensor, labels: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        loss = nll_loss(logits, labels, weight, self.ignore_index, self.reduction)
        valid = cast_to(not_equal(labels, self.ignore_index), weight.dtype)
        safe = maximum(labels, 0)
        return loss, total_of(gather(weight, safe, 0) * valid)


class SmoothL1Loss(Primitive):
    """Primitive form of `smooth_l1_loss`."""

    def __init__(self, beta: float = 1.0, reduction: str = "none") -> None:
        super().__init__()
        self.beta = beta
        self.reduction = check_reduction("SmoothL1Loss", reduction)

    def __call__(self, logits: Tensor, labels: Tensor) -> Tensor:
        return smooth_l1_loss(logits, labels, self.beta, self.reduction)


class L2Loss(Primitive):
    """Half the sum of the squares of all elements."""

    def __call__(self, input_x: Tensor) -> Tensor:
        if not input_x.dtype.is_floating:
            raise DTypeError(f"L2Loss: got {input_x.dtype.name}; wanted a floating dtype")
        return total_of(input_x * input_x) * 0.5


class CTCLoss(Primitive):
    """CTC loss (N,) of raw scores and sparse labels, and its gradient by the scores.

    It is called as (x (T, N, C), labels_indices (M, 2), labels_values (M,), sequence_length (N,)).
    The blank is the last class. Only `ctc_merge_repeated=True` and
    `preprocess_collapse_repeated=False` are supported.
    """

    def __init__(
        self,
        preprocess_collapse_repeated: bool = False,
        ctc_merge_repeated: bool = True,
        ignore_longer_outputs_than_inputs: bool = False,
    ) -> None:
        super().__init__()
        if preprocess_collapse_repeated or not ctc_merge_repeated:
            raise ArgumentValueError(
                "CTCLoss: wanted preprocess_collapse_repeated=False and ctc_merge_repeated=True, "
                "the published form of the loss"
            )
        self.ignore_longer = ignore_longer_outputs_than_inputs

    def __call__(
        self, x: Tensor, labels_indices: Tensor, labels_values: Tensor, sequence_length: Tensor
    ) -> tuple[Tensor, Tensor]:
        if x.ndim != 3:
            raise ShapeError(f"CTCLoss: x has shape {x.shape}; wanted (T, N, C)")
        batch, classes = x.shape[1], x.shape[2]
        rows = labels_indices.asnumpy()[:, 0]
        lengths = np.bincount(rows, minlength=batch)
        if lengths.size != batch:
            raise ArgumentError(f"CTCLoss: got labels for item {rows.max()}; there are {batch}")

        def total(scores: Tensor) -> tuple[Tensor, Tensor]:
            log_probs = log_softmax_along(scores, 2)
            loss, _ = ctc_loss(
                log_probs, labels_values, sequence_length, lengths, classes - 1, "none",
                self.ignore_longer,
            )  # fmt: skip
            return total_of(loss), loss

        (_, loss), gradient = value_and_grad(total, has_aux=True)(x)
        return loss, gradient
