"""LossBase, the base class of losses, and the reductions and checks that losses share.

The losses in this folder and users' own losses derive from LossBase.
"""

from __future__ import annotations

from ... import ops
from ...dtype import float32, float64
from ...errors import ShapeError
from ...tensor import Tensor
from .. import _check
from .._operators import Operator
from ..cell import Cell

__all__ = ["LossBase", "REDUCTIONS", "reduce", "same_shape"]

REDUCTIONS = ("mean", "sum", "none")


def reduce(x: Tensor, reduction: str) -> Tensor:
    """Reduce a tensor to its mean or sum over all axes; "none" returns the tensor unchanged."""
    if reduction == "mean":
        return x.mean()
    if reduction == "sum":
        return x.sum()
    return x


def same_shape(owner: str, x: Tensor, y: Tensor, remark: str = "") -> None:
    """Raise ShapeError if a loss's prediction `x` and target `y` differ in shape.

    `owner` is the loss's name in the message, and `remark` is appended to the message.
    """
    if x.shape != y.shape:
        raise ShapeError(
            f"{owner}: logits have shape {x.shape} and labels {y.shape}; wanted the same "
            f"shape{remark}"
        )


class LossBase(Cell):
    """Base class of losses (`mindspore.nn.LossBase`).

    A subclass calls `get_loss` in its `construct`.

    Args:
        reduction: ``"mean"`` (the default), ``"sum"`` or ``"none"``.

    Raises:
        ValueError: another reduction.

    Examples:
        >>> import duograph as ms
        >>> from duograph import nn, ops
        >>> class Distance(nn.LossBase):
        ...     def construct(self, logits, labels):
        ...         return self.get_loss(ops.abs(logits - labels))
        >>> print(Distance()(ms.Tensor([1.0, 2.0]), ms.Tensor([2.0, 4.0])))
        1.5
    """

    reduce_mean = Operator("ReduceMean")
    reduce_sum = Operator("ReduceSum")
    mul = Operator("Mul")
    cast = Operator("Cast")

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        if reduction is None:
            reduction = "none"
        self.reduction = _check.one_of(type(self).__name__, "reduction", reduction, REDUCTIONS)
        self.average = self.reduction != "sum"
        self.reduce = self.reduction != "none"

    def get_axis(self, x: Tensor) -> tuple[int, ...]:
        """Return the numbers of all axes of tensor `x` as a tuple."""
        return tuple(range(x.ndim))

    def get_loss(self, x: Tensor, weights: float | Tensor = 1.0) -> Tensor:
        """Return `x * weights`, reduced by the loss's `reduction`, in the dtype of `x`.

        The product is computed in float64 if `x` is float64, else in float32.
        """
        dtype = x.dtype
        wide = x if dtype is float64 else ops.cast(x, float32)
        if not (isinstance(weights, (int, float)) and weights == 1):
            if isinstance(weights, Tensor):
                weights = ops.cast(weights, wide.dtype)
            wide = wide * weights
        return ops.cast(reduce(wide, self.reduction), dtype)
