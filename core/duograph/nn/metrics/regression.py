"""Metrics over distances and similarities, and the mean loss.

`Model.eval` and user code call them. They compute on the host in NumPy and record no gradient.
"""

from __future__ import annotations

import numpy as np

from ...errors import ArgumentValueError, ShapeError
from .._types import Array
from .base import Metric, wide
from .classification import no_batches_error

__all__ = ["Loss", "MAE", "MSE", "CosineSimilarity"]


class Loss(Metric):
    """Mean of the losses of the batches (`mindspore.train.Loss`).

    Raises:
        ValueError: `update` got something other than one number.
        RuntimeError: `eval` before any `update`.

    Examples:
        >>> from duograph import nn
        >>> metric = nn.Loss()
        >>> metric.update(1.0); metric.update(2.0)
        >>> metric.eval()
        1.5
    """

    def __init__(self) -> None:
        super().__init__()
        self.clear()

    def clear(self) -> None:
        self._sum = 0.0
        self._count = 0

    def update(self, *inputs: object) -> None:
        (loss,) = self._inputs(inputs, 1)
        if loss.size != 1:
            raise ArgumentValueError(f"Loss.update: got shape {loss.shape}; wanted one number")
        self._sum += float(loss.reshape(()))
        self._count += 1

    def eval(self) -> float:
        if not self._count:
            raise no_batches_error("Loss")
        return self._sum / self._count


class _Distance(Metric):
    """Base class of metrics that add up an error over all samples.

    A subclass implements `_error`, which returns the error of one batch.
    """

    def __init__(self) -> None:
        super().__init__()
        self.clear()

    def clear(self) -> None:
        self._sum = 0.0
        self._samples = 0

    def _error(self, y_pred: Array, y: Array) -> float:
        raise NotImplementedError

    def update(self, *inputs: object) -> None:
        y_pred, y = map(wide, self._inputs(inputs, 2))
        self._sum += self._error(y_pred, y.reshape(y_pred.shape))
        self._samples += y.shape[0]

    def eval(self) -> float:
        if not self._samples:
            raise no_batches_error(type(self).__name__)
        return self._sum / self._samples


class MAE(_Distance):
    """Sum of absolute errors divided by the number of samples (`mindspore.train.MAE`).

    Examples:
        >>> import numpy as np
        >>> from duograph import nn
        >>> metric = nn.MAE()
        >>> metric.update(np.array([1.0, 2.0]), np.array([2.0, 4.0]))
        >>> metric.eval()
        1.5
    """

    def _error(self, y_pred: Array, y: Array) -> float:
        return float(np.abs(y - y_pred).sum())


class MSE(_Distance):
    """Sum of squared errors divided by the number of samples (`mindspore.train.MSE`).

    Examples:
        >>> import duograph as ms
        >>> metric = ms.nn.MSE()
        >>> metric.update(ms.Tensor([1.0, 2.0]), ms.Tensor([2.0, 4.0]))
        >>> metric.eval()
        2.5
    """

    def _error(self, y_pred: Array, y: Array) -> float:
        return float(((y - y_pred) ** 2).sum())


class CosineSimilarity(Metric):
    """Matrix of cosine (or dot product) similarities between the rows of the last batch
    (`mindspore.train.CosineSimilarity`).

    Args:
        similarity: ``"cosine"``, or ``"dot"`` for the dot product.
        reduction: ``"none"``, or ``"mean"`` or ``"sum"`` over the last axis.
        zero_diagonal: whether to set the similarity of each row with itself to zero.

    Examples:
        >>> import duograph as ms
        >>> metric = ms.nn.CosineSimilarity()
        >>> metric.update(ms.Tensor([[1.0, 0.0], [0.0, 1.0]]))
        >>> metric.eval().tolist()
        [[0.0, 0.0], [0.0, 0.0]]
    """

    def __init__(
        self, similarity: str = "cosine", reduction: str = "none", zero_diagonal: bool = True
    ) -> None:
        super().__init__()
        if similarity not in ("cosine", "dot"):
            raise ArgumentValueError(
                f"CosineSimilarity: got similarity={similarity!r}; wanted 'cosine' or 'dot'"
            )
        if reduction not in ("none", "mean", "sum"):
            raise ArgumentValueError(
                f"CosineSimilarity: got reduction={reduction!r}; wanted 'none', 'mean' or 'sum'"
            )
        self.similarity, self.reduction, self.zero_diagonal = similarity, reduction, zero_diagonal
        self.clear()

    def clear(self) -> None:
        self._matrix: Array | None = None

    def update(self, inputs: object) -> None:
        rows = self._convert_data(inputs)
        if rows.ndim != 2:
            raise ShapeError(f"CosineSimilarity: got shape {rows.shape}; wanted (rows, features)")
        if self.similarity == "cosine":
            rows = rows / np.linalg.norm(rows, ord=2, axis=-1, keepdims=True)
        matrix = rows @ rows.T
        if self.zero_diagonal:
            np.fill_diagonal(matrix, 0)
        if self.reduction == "mean":
            matrix = matrix.mean(-1)
        elif self.reduction == "sum":
            matrix = matrix.sum(-1)
        self._matrix = matrix

    def eval(self) -> Array:
        if self._matrix is None:
            raise no_batches_error("CosineSimilarity")
        return self._matrix
