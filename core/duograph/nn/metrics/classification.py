"""Metrics over classes: accuracy, precision, recall, F-scores, confusion matrix, ROC, ...

`Model.eval` and user code call them. They compute on the host in NumPy and record no gradient.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...call_errors import explaining
from ...errors import ArgumentValueError
from .. import _check
from .._types import Array
from .base import EvaluationBase, Metric, MetricError, check_labels, wide

__all__ = [
    "Accuracy",
    "Precision",
    "Recall",
    "F1",
    "Fbeta",
    "TopKCategoricalAccuracy",
    "Top1CategoricalAccuracy",
    "Top5CategoricalAccuracy",
    "ConfusionMatrix",
    "Perplexity",
    "ROC",
    "auc",
    "Dice",
]


def no_batches_error(owner: str) -> MetricError:
    """Return the error that `eval` of the metric `owner` raises if `update` was never called."""
    return MetricError(f"{owner}.eval: no batch was counted yet; wanted update() first")


class Accuracy(EvaluationBase):
    """Fraction of correct predictions (`mindspore.train.Accuracy`).

    Args:
        eval_type: ``"classification"``: predictions (N, C, ...), labels (N, ...) or one-hot;
            ``"multilabel"``: zeros and ones of the same shape, correct where a whole row agrees.

    Raises:
        RuntimeError: `eval` before any `update`.

    Examples:
        >>> import numpy as np
        >>> from duograph import nn
        >>> metric = nn.Accuracy()
        >>> metric.update(np.array([[0.1, 0.9], [0.8, 0.2]]), np.array([1, 1]))
        >>> metric.eval()
        0.5
    """

    def __init__(self, eval_type: str = "classification") -> None:
        super().__init__(eval_type)

    def clear(self) -> None:
        self._classes = None
        self._correct = 0
        self._total = 0

    def update(self, *inputs: object) -> None:
        y_pred, y = self._labels(*self._inputs(inputs, 2))
        if self._type == "classification":
            right = y_pred.argmax(1) == y
        else:
            classes = y_pred.shape[1]
            both = [np.moveaxis(a, 1, -1).reshape(-1, classes) for a in (y_pred, y)]
            right = np.all(both[0] == both[1], axis=1)
        self._correct += int(right.sum())
        self._total += int(right.size)

    def eval(self) -> float:
        if not self._total:
            raise no_batches_error("Accuracy")
        return self._correct / self._total


class _Counts(EvaluationBase):
    """Base class of metrics that count the true positives, predictions and labels per class."""

    def clear(self) -> None:
        self._classes = None
        self._true = np.zeros(0)
        self._predicted = np.zeros(0)
        self._actual = np.zeros(0)

    def update(self, *inputs: object) -> None:
        y_pred, y = self._labels(*self._inputs(inputs, 2))
        classes = y_pred.shape[1]
        if self._type == "classification":
            eye = np.eye(classes)
            predicted = eye[y_pred.argmax(1).reshape(-1)]
            actual = eye[y.reshape(-1).astype(np.int64)]
        else:
            predicted, actual = (
                np.moveaxis(a, 1, -1).reshape(-1, classes).astype(np.float64) for a in (y_pred, y)
            )
        if self._true.size != classes:
            self._true, self._predicted, self._actual = (np.zeros(classes) for _ in range(3))
        self._true += (predicted * actual).sum(0)
        self._predicted += predicted.sum(0)
        self._actual += actual.sum(0)

    def _ratio(self, total: Array, average: bool) -> Array | float:
        """Return, for each class, the number of true positives divided by `total`.

        If `average` is True, return the mean of these ratios over the classes instead. Raises
        MetricError if `update` was never called.
        """
        if not self._true.size:
            raise no_batches_error(type(self).__name__)
        found = self._true / np.maximum(total, 1e-20)
        return float(found.mean()) if average else found


class Precision(_Counts):
    """Precision of each class: TP / (TP + FP) (`mindspore.train.Precision`).

    Examples:
        >>> import numpy as np
        >>> from duograph import nn
        >>> metric = nn.Precision()
        >>> metric.update(np.array([[0.1, 0.9], [0.8, 0.2]]), np.array([1, 1]))
        >>> metric.eval()
        array([0., 1.])
    """

    def __init__(self, eval_type: str = "classification") -> None:
        super().__init__(eval_type)

    def eval(self, average: bool = False) -> Array | float:
        return self._ratio(self._predicted, average)


class Recall(_Counts):
    """Recall of each class: TP / (TP + FN) (`mindspore.train.Recall`).

    Examples:
        >>> import duograph as ms
        >>> metric = ms.nn.Recall()
        >>> metric.update(ms.Tensor([[0.25, 0.75], [0.75, 0.25]]), ms.Tensor([1, 1]))
        >>> metric.eval()
        array([0. , 0.5])
    """

    def __init__(self, eval_type: str = "classification") -> None:
        super().__init__(eval_type)

    def eval(self, average: bool = False) -> Array | float:
        return self._ratio(self._actual, average)


class Fbeta(_Counts):
    """Weighted harmonic mean of precision and recall of each class (`mindspore.train.Fbeta`).

    Raises:
        ValueError: `beta` of 0 or less.

    Examples:
        >>> import duograph as ms
        >>> metric = ms.nn.Fbeta(2.0)
        >>> metric.update(ms.Tensor([[0.25, 0.75], [0.75, 0.25]]), ms.Tensor([1, 1]))
        >>> metric.eval()
        array([0.        , 0.55555556])
    """

    def __init__(self, beta: float) -> None:
        super().__init__("classification")
        self._beta = _check.in_range("Fbeta", "beta", beta, 0, open_low=True)

    def eval(self, average: bool = False) -> Array | float:
        if not self._true.size:
            raise no_batches_error(type(self).__name__)
        square = self._beta**2
        found = (1 + square) * self._true / (square * self._actual + self._predicted + 1e-20)
        return float(found.mean()) if average else found


class F1(Fbeta):
    """Harmonic mean of precision and recall of each class (`mindspore.train.F1`).

    Examples:
        >>> import duograph as ms
        >>> metric = ms.nn.F1()
        >>> metric.update(ms.Tensor([[0.25, 0.75], [0.75, 0.25]]), ms.Tensor([1, 1]))
        >>> metric.eval()
        array([0.        , 0.66666667])
    """

    def __init__(self) -> None:
        super().__init__(1.0)


class TopKCategoricalAccuracy(Metric):
    """Fraction of samples whose label is among the k most likely classes
    (`mindspore.train.TopKCategoricalAccuracy`).

    Inputs: predictions (N, C); labels (N,) or one-hot (N, C).

    Raises:
        ValueError: `k` below 1.

    Examples:
        >>> import duograph as ms
        >>> metric = ms.nn.TopKCategoricalAccuracy(1)
        >>> metric.update(ms.Tensor([[0.25, 0.75], [0.75, 0.25]]), ms.Tensor([1, 1]))
        >>> metric.eval()
        0.5
    """

    def __init__(self, k: int) -> None:
        super().__init__()
        self.k = _check.positive_int("TopKCategoricalAccuracy", "k", k)
        self.clear()

    def clear(self) -> None:
        self._correct = 0
        self._total = 0

    def update(self, *inputs: object) -> None:
        y_pred, y = self._inputs(inputs, 2)
        if y_pred.ndim == y.ndim and y_pred.shape == y.shape:
            y = y.argmax(1)
        check_labels(f"{type(self).__name__}.update", y, y_pred.shape[1])
        best = np.argsort(-y_pred, axis=1, kind="stable")[:, : self.k]
        self._correct += int((best == y.reshape(-1, 1)).any(1).sum())
        self._total += y.size

    def eval(self) -> float:
        if not self._total:
            raise no_batches_error(type(self).__name__)
        return self._correct / self._total


class Top1CategoricalAccuracy(TopKCategoricalAccuracy):
    """Top-k accuracy with k = 1 (`mindspore.train.Top1CategoricalAccuracy`).

    Examples:
        >>> import duograph as ms
        >>> metric = ms.nn.Top1CategoricalAccuracy()
        >>> metric.update(ms.Tensor([[0.25, 0.75], [0.75, 0.25]]), ms.Tensor([1, 1]))
        >>> metric.eval()
        0.5
    """

    def __init__(self) -> None:
        super().__init__(1)


class Top5CategoricalAccuracy(TopKCategoricalAccuracy):
    """Top-k accuracy with k = 5 (`mindspore.train.Top5CategoricalAccuracy`).

    Examples:
        >>> import duograph as ms
        >>> metric = ms.nn.Top5CategoricalAccuracy()
        >>> metric.update(ms.Tensor([[0.25, 0.75], [0.75, 0.25]]), ms.Tensor([1, 1]))
        >>> metric.eval()
        1.0
    """

    def __init__(self) -> None:
        super().__init__(5)


class ConfusionMatrix(Metric):
    """Confusion matrix: counts of each (label, prediction) (`mindspore.train.ConfusionMatrix`).

    Args:
        num_classes: number of classes.
        normalize: what counts are divided by: ``"no_norm"`` (nothing), the number of items with
            that label (``"target"``) or prediction (``"prediction"``), or of ``"all"`` items.
        threshold: probability above which a prediction counts as class 1, if predictions are single
            probabilities.

    Raises:
        ValueError: another `normalize`.

    Examples:
        >>> import duograph as ms
        >>> metric = ms.nn.ConfusionMatrix(2)
        >>> metric.update(ms.Tensor([[0.25, 0.75], [0.75, 0.25]]), ms.Tensor([1, 1]))
        >>> metric.eval()
        array([[0., 0.],
               [1., 1.]])
    """

    def __init__(
        self, num_classes: int, normalize: str = "no_norm", threshold: float = 0.5
    ) -> None:
        super().__init__()
        self.num_classes = _check.positive_int("ConfusionMatrix", "num_classes", num_classes)
        self.normalize = _check.one_of(
            "ConfusionMatrix",
            "normalize",
            normalize,
            ("no_norm", "target", "prediction", "all", None),
        )
        self.threshold = threshold
        self.clear()

    def clear(self) -> None:
        self.confusion_matrix = np.zeros((self.num_classes, self.num_classes))
        self._seen = False

    def update(self, *inputs: object) -> None:
        y_pred, y = self._inputs(inputs, 2)
        if y_pred.ndim == y.ndim + 1:
            y_pred = y_pred.argmax(1)
        elif y_pred.dtype.kind == "f":
            y_pred = (y_pred > self.threshold).astype(np.int64)
        if y_pred.shape != y.shape:
            raise ArgumentValueError(
                f"ConfusionMatrix.update: predictions have shape {y_pred.shape} and labels "
                f"{y.shape}; "
                f"wanted (N, C, ...) and (N, ...), or the same"
            )
        pairs = (
            check_labels("ConfusionMatrix.update", y, self.num_classes),
            check_labels("ConfusionMatrix.update", y_pred, self.num_classes, "prediction"),
        )
        np.add.at(self.confusion_matrix, pairs, 1)
        self._seen = True

    def eval(self) -> Array:
        if not self._seen:
            raise no_batches_error("ConfusionMatrix")
        counts = self.confusion_matrix.astype(np.float64)
        if self.normalize in (None, "no_norm"):
            return counts
        totals: dict[str, Array] = {
            "target": counts.sum(1, keepdims=True),
            "prediction": counts.sum(0, keepdims=True),
            "all": np.asarray(counts.sum()),
        }
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.nan_to_num(counts / totals[self.normalize])


class Perplexity(Metric):
    """exp of the mean negative log probability of the labels (`mindspore.train.Perplexity`).

    Args:
        ignore_label: label whose items are left out; None for none.

    Examples:
        >>> import duograph as ms
        >>> metric = ms.nn.Perplexity()
        >>> metric.update(ms.Tensor([[0.25, 0.75], [0.75, 0.25]]), ms.Tensor([1, 1]))
        >>> metric.eval()
        2.309401062653293
    """

    def __init__(self, ignore_label: int | None = None) -> None:
        super().__init__()
        self.ignore_label = ignore_label
        self.clear()

    def clear(self) -> None:
        self._sum = 0.0
        self._count = 0

    def update(self, *inputs: object) -> None:
        preds, labels = (self._convert_data(x) for x in inputs)
        rows = preds.reshape(-1, preds.shape[-1])
        flat = labels.reshape(-1)
        if rows.shape[0] != flat.size:
            raise ArgumentValueError(
                f"Perplexity.update: predictions have shape {preds.shape} and labels "
                f"{labels.shape}; "
                f"wanted (..., C) and (...)"
            )
        keep = np.ones(flat.size, bool) if self.ignore_label is None else flat != self.ignore_label
        own = check_labels("Perplexity.update", flat[keep], rows.shape[1])
        chosen = rows[np.arange(flat.size)[keep], own]
        self._sum -= float(np.log(np.maximum(chosen, 1e-10)).sum())
        self._count += int(keep.sum())

    def eval(self) -> float:
        if not self._count:
            raise no_batches_error("Perplexity")
        return float(np.exp(self._sum / self._count))


class ROC(Metric):
    """Receiver operating characteristic (`mindspore.train.ROC`).

    `eval` returns the false positive rates, the true positive rates and their thresholds: arrays
    for one class (the default), lists of one array per class if `class_num` is greater. With one
    class, items with the label `pos_label` (default 1) are the positive ones.

    Examples:
        >>> import duograph as ms
        >>> metric = ms.nn.ROC()
        >>> metric.update(ms.Tensor([0.2, 0.8]), ms.Tensor([0, 1]))
        >>> metric.eval()[1].tolist()
        [0.0, 1.0, 1.0]
    """

    def __init__(self, class_num: int | None = None, pos_label: int | None = None) -> None:
        super().__init__()
        self.class_num = 1 if class_num is None else class_num
        self.pos_label = 1 if pos_label is None else pos_label
        self.clear()

    def clear(self) -> None:
        self._scores: list[Array] = []
        self._labels_seen: list[Array] = []

    def update(self, *inputs: object) -> None:
        y_pred, y = self._inputs(inputs, 2)
        if self.class_num > 1:
            check_labels("ROC.update", y, self.class_num)
        self._scores.append(y_pred)
        self._labels_seen.append(y)

    def eval(self) -> Any:
        if not self._scores:
            raise no_batches_error("ROC")
        scores, labels = np.concatenate(self._scores), np.concatenate(self._labels_seen)
        if self.class_num == 1:
            return _curve(scores.reshape(-1), labels.reshape(-1) == self.pos_label)
        curves = [_curve(scores[:, c], labels == c) for c in range(self.class_num)]
        return tuple(list(part) for part in zip(*curves, strict=True))


def _curve(scores: Array, positive: Array) -> tuple[Array, Array, Array]:
    """Return (false positive rates, true positive rates, thresholds) of a ROC curve's points.

    `scores` are predictions and `positive` the labels, 1 or 0, both 1-d.
    """
    order = np.argsort(-scores, kind="stable")
    scores, positive = scores[order], positive[order]
    last = np.append(np.nonzero(np.diff(scores))[0], scores.size - 1)
    true = np.cumsum(positive)[last]
    false = 1 + last - true
    thresholds = np.append(scores[last][0] + 1, scores[last])
    true, false = np.append(0, true), np.append(0, false)
    return false / max(false[-1], 1), true / max(true[-1], 1), thresholds


@explaining
def auc(x: ArrayLike, y: ArrayLike, reorder: bool = False) -> float:
    """Return the area under a curve by the trapezoidal rule (`mindspore.train.auc`).

    `x` and `y` are the coordinates of its points; with `reorder`, they are sorted by x first. The
    area is positive for decreasing x, too.

    Raises:
        ValueError: x and y differ in length.

    Examples:
        >>> from duograph import nn
        >>> nn.auc([0.0, 1.0], [0.0, 1.0])
        0.5
    """
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if x.shape != y.shape or x.ndim != 1:
        raise ArgumentValueError(
            f"auc: got shapes {x.shape} and {y.shape}; wanted two equal lengths"
        )
    if reorder:
        order = np.lexsort((y, x))
        x, y = x[order], y[order]
    area = float((np.diff(x) * (y[1:] + y[:-1]) / 2).sum())
    return -area if np.all(np.diff(x) <= 0) else area


class Dice(Metric):
    """Sum of 2 |x y| / (|x|^2 + |y|^2) of all batches, divided by the number of samples
    (`mindspore.train.Dice`).

    Examples:
        >>> import duograph as ms
        >>> metric = ms.nn.Dice()
        >>> metric.update(ms.Tensor([[1.0, 0.0]]), ms.Tensor([[1.0, 0.0]]))
        >>> round(metric.eval(), 3)
        1.0
    """

    def __init__(self, smooth: float = 1e-5) -> None:
        super().__init__()
        self.smooth = _check.in_range("Dice", "smooth", smooth, 0, open_low=True)
        self.clear()

    def clear(self) -> None:
        self._sum = 0.0
        self._samples = 0

    def update(self, *inputs: object) -> None:
        y_pred, y = self._inputs(inputs, 2)
        if y_pred.shape != y.shape:
            raise ArgumentValueError(
                f"Dice.update: predictions have shape {y_pred.shape} and labels {y.shape}; wanted "
                "the same"
            )
        y_pred, y = wide(y_pred), wide(y)
        joint = float((y_pred * y).sum())
        union = float((y_pred**2).sum() + (y**2).sum())
        self._sum += 2 * joint / (union + self.smooth)
        self._samples += y.shape[0] if y.ndim else 1

    def eval(self) -> float:
        if not self._samples:
            raise no_batches_error("Dice")
        return self._sum / self._samples
