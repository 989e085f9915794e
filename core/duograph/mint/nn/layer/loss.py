"""Loss layers of `duograph.mint.nn`.

`mint/nn/__init__.py` exports them. Each layer holds its arguments and calls one function of
`functional`; `reduction` is ``"mean"``, ``"sum"`` or ``"none"``.
"""

from __future__ import annotations

from ....nn import _check
from ....nn.cell import Cell
from ....tensor import Tensor
from .. import functional as F

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CosineEmbeddingLoss", "CrossEntropyLoss", "KLDivLoss",
    "L1Loss", "MSELoss", "NLLLoss", "SmoothL1Loss",
]  # fmt: skip

_REDUCTIONS = ("mean", "sum", "none")


class L1Loss(Cell):
    """The absolute difference (`mindspore.mint.nn.L1Loss`).

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Raises:
        ValueError: an unknown reduction, or inputs whose shapes do not match.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.L1Loss()(Tensor([1.0]), Tensor([3.0])))
        2.0
    """

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = _check.one_of("L1Loss", "reduction", reduction, _REDUCTIONS)

    def construct(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, self.reduction)


class MSELoss(Cell):
    """The squared difference (`mindspore.mint.nn.MSELoss`).

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Raises:
        ValueError: an unknown reduction, or inputs whose shapes do not match.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.MSELoss()(Tensor([1.0]), Tensor([3.0])))
        4.0
    """

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = _check.one_of("MSELoss", "reduction", reduction, _REDUCTIONS)

    def construct(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, self.reduction)


class SmoothL1Loss(Cell):
    """The absolute difference, quadratic below `beta` (`mindspore.mint.nn.SmoothL1Loss`).

    Args:
        beta: where the loss changes from quadratic to linear.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Raises:
        ValueError: an unknown reduction, or inputs whose shapes do not match.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.SmoothL1Loss()(Tensor([1.0]), Tensor([3.0])))
        1.5
    """

    def __init__(self, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__()
        self.reduction = _check.one_of("SmoothL1Loss", "reduction", reduction, _REDUCTIONS)
        self.beta = _check.in_range("SmoothL1Loss", "beta", beta, 0)

    def construct(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, self.reduction, self.beta)


class BCELoss(Cell):
    """The cross entropy of probabilities with targets (`mindspore.mint.nn.BCELoss`).

    Args:
        weight: factor that broadcasts to the input.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Raises:
        ValueError: an unknown reduction, or inputs whose shapes do not match.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.BCELoss()(Tensor([0.5]), Tensor([1.0])))
        0.6931472
    """

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean") -> None:
        super().__init__()
        self.weight = weight
        self.reduction = _check.one_of("BCELoss", "reduction", reduction, _REDUCTIONS)

    def construct(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, self.weight, self.reduction)


class BCEWithLogitsLoss(Cell):
    """The binary cross entropy of the sigmoid of logits with targets
    (`mindspore.mint.nn.BCEWithLogitsLoss`).

    Args:
        weight: factor that broadcasts to the input.
        pos_weight: factor of the positive targets.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Raises:
        ValueError: an unknown reduction, or inputs whose shapes do not match.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.BCEWithLogitsLoss()(Tensor([0.0]), Tensor([1.0])))
        0.6931472
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.weight = weight
        self.reduction = _check.one_of("BCEWithLogitsLoss", "reduction", reduction, _REDUCTIONS)
        self.pos_weight = pos_weight

    def construct(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, self.reduction, self.pos_weight
        )


class CrossEntropyLoss(Cell):
    """The cross entropy of logits with classes or probabilities
    (`mindspore.mint.nn.CrossEntropyLoss`).

    Args:
        weight: Tensor (C,), a factor for each class.
        ignore_index: targets of this value do not count.
        label_smoothing: fraction of the targets that is distributed evenly over the classes.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Raises:
        ValueError: an unknown reduction, or inputs whose shapes do not match.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.CrossEntropyLoss()(Tensor([[0.0, 0.0]]), Tensor([1])))
        0.6931472
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__()
        self.weight = weight
        self.ignore_index = ignore_index
        self.reduction = _check.one_of("CrossEntropyLoss", "reduction", reduction, _REDUCTIONS)
        self.label_smoothing = _check.in_range(
            "CrossEntropyLoss", "label_smoothing", label_smoothing, 0, 1
        )

    def construct(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(
            input, target, self.weight, self.ignore_index, self.reduction, self.label_smoothing
        )


class NLLLoss(Cell):
    """The negative log likelihood of log probabilities (`mindspore.mint.nn.NLLLoss`).

    Args:
        weight: Tensor (C,), a factor for each class.
        ignore_index: targets of this value do not count.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Raises:
        ValueError: an unknown reduction, or inputs whose shapes do not match.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.NLLLoss()(Tensor([[-1.0, -2.0]]), Tensor([1])))
        2.0
    """

    def __init__(
        self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean"
    ) -> None:
        super().__init__()
        self.weight = weight
        self.ignore_index = ignore_index
        self.reduction = _check.one_of("NLLLoss", "reduction", reduction, _REDUCTIONS)

    def construct(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(input, target, self.weight, self.ignore_index, self.reduction)


class KLDivLoss(Cell):
    """The Kullback-Leibler divergence of log probabilities from targets
    (`mindspore.mint.nn.KLDivLoss`).

    Args:
        log_target: whether the targets are log probabilities too.
        reduction: ``"mean"``, ``"batchmean"``, ``"sum"`` or ``"none"``.

    Raises:
        ValueError: an unknown reduction, or inputs whose shapes do not match.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.nn.KLDivLoss()(Tensor([0.0]), Tensor([1.0])))
        0.0
    """

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__()
        self.reduction = _check.one_of(
            "KLDivLoss", "reduction", reduction, (*_REDUCTIONS, "batchmean")
        )
        self.log_target = _check.boolean("KLDivLoss", "log_target", log_target)

    def construct(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, self.reduction, self.log_target)


class CosineEmbeddingLoss(Cell):
    """``1 - cos`` for target 1, and ``max(0, cos - margin)`` for target -1
    (`mindspore.mint.nn.CosineEmbeddingLoss`).

    Args:
        margin: a number in [-1, 1].
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Raises:
        ValueError: an unknown reduction, or inputs whose shapes do not match.

    Examples:
        >>> from duograph import Tensor, mint
        >>> x, y = Tensor([[1.0, 0.0]]), Tensor([[0.0, 1.0]])
        >>> print(mint.nn.CosineEmbeddingLoss()(x, y, Tensor([1])))
        1.0
    """

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__()
        self.margin = _check.in_range("CosineEmbeddingLoss", "margin", margin, -1, 1)
        self.reduction = _check.one_of("CosineEmbeddingLoss", "reduction", reduction, _REDUCTIONS)

    def construct(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(input1, input2, target, self.margin, self.reduction)
