"""Metrics of one field of application each: translations, segmentations and image classifiers.

BleuScore rates translations, ConfusionMatrixMetric segmentations, and OcclusionSensitivity image
classifiers. `Model.eval` and user code call them. They compute on the host in NumPy.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...errors import ArgumentValueError, ShapeError, UnsupportedOpError
from ...tensor import Tensor
from .. import _check
from .._types import Array
from ..cell import Cell
from .base import Metric, MetricError
from .classification import no_batches_error

__all__ = ["BleuScore", "ConfusionMatrixMetric", "OcclusionSensitivity"]


def _ngrams(words: Sequence[object], longest: int) -> collections.Counter[tuple[object, ...]]:
    """Count each sequence of 1 to `longest` consecutive words; return a Counter of word tuples."""
    return collections.Counter(
        tuple(words[i : i + n]) for n in range(1, longest + 1) for i in range(len(words) - n + 1)
    )


class BleuScore(Metric):
    """Agreement of translations with references by their n-grams (Papineni et al., 2002;
    `mindspore.train.BleuScore`).

    Inputs: a list of translations, each a list of words; a list with the references of each
    translation.

    Args:
        n_gram: number of words in the longest sequences that are compared, 1 to 4.
        smooth: whether to add 1 to the counts (Lin and Och, 2004).

    Raises:
        RuntimeError: `eval` before any `update`.
        TypeError: an argument of the wrong kind.
        ValueError: `n_gram` above 4, or lists of different lengths.

    Examples:
        >>> from duograph import train
        >>> metric = train.BleuScore(n_gram=2)
        >>> metric.update([["a", "b", "c"]], [[["a", "b", "d"], ["a", "b", "c"]]])
        >>> float(metric.eval())
        1.0
    """

    def __init__(self, n_gram: int = 4, smooth: bool = False) -> None:
        super().__init__()
        self.n_gram = _check.positive_int("BleuScore", "n_gram", n_gram)
        if n_gram > 4:
            raise ArgumentValueError(f"BleuScore: got n_gram={n_gram}; wanted 1 to 4")
        self.smooth = _check.boolean("BleuScore", "smooth", smooth)
        self.clear()

    def clear(self) -> None:
        self._matches = np.zeros(self.n_gram)
        self._counts = np.zeros(self.n_gram)
        self._length = 0  # of the translations
        self._wanted = 0  # of the references that are nearest in length
        self._is_update = False

    def update(self, *inputs: Any) -> None:
        chosen = inputs if self.indexes is None else [inputs[i] for i in self.indexes]
        if len(chosen) != 2:
            raise ArgumentValueError(
                f"BleuScore.update: got {len(chosen)} input{'s' * (len(chosen) != 1)}; wanted 2, "
                "as in update(translations, references)"
            )
        translations, references = chosen
        if len(translations) != len(references):
            raise ArgumentValueError(
                f"BleuScore.update: got {len(translations)} translations and references of "
                f"{len(references)}; wanted as many"
            )
        for words, known in zip(translations, references, strict=True):
            self._length += len(words)
            self._wanted += len(min(known, key=lambda ref: abs(len(words) - len(ref))))
            own = _ngrams(words, self.n_gram)
            allowed: collections.Counter[tuple[object, ...]] = collections.Counter()
            for reference in known:
                allowed |= _ngrams(reference, self.n_gram)
            for gram, count in own.items():
                self._counts[len(gram) - 1] += count
                self._matches[len(gram) - 1] += min(count, allowed[gram])
        self._is_update = True

    def eval(self) -> float:
        if not self._is_update:
            raise no_batches_error("BleuScore")
        if not self._matches.all():
            return 0.0
        extra = float(self.smooth)
        precision = np.exp(np.log((self._matches + extra) / (self._counts + extra)).mean())
        short = 1.0 if self._length > self._wanted else np.exp(1 - self._wanted / self._length)
        return float(short * precision)


_Rates = dict[str, Callable[[Array, Array, Array, Array], Array]]


def _share(part: Array, whole: Array | float) -> Array:
    """Return part / whole by element, and NaN where the whole is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.asarray(whole) != 0, part / whole, np.nan)


def _threshold(tp: Array, fp: Array, tn: Array, fn: Array) -> Array:
    hit, pass_ = _share(tp, tp + fn), _share(tn, fp + tn)
    return _share(np.sqrt(hit * (1 - pass_)) + pass_ - 1, hit + pass_ - 1)


def _matthews(tp: Array, fp: Array, tn: Array, fn: Array) -> Array:
    return _share(tp * tn - fp * fn, np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)))


# metric -> formula of true positives, false positives, true negatives and false negatives
_RATES: _Rates = {
    "tpr": lambda tp, fp, tn, fn: _share(tp, tp + fn),
    "tnr": lambda tp, fp, tn, fn: _share(tn, fp + tn),
    "ppv": lambda tp, fp, tn, fn: _share(tp, tp + fp),
    "npv": lambda tp, fp, tn, fn: _share(tn, tn + fn),
    "fnr": lambda tp, fp, tn, fn: _share(fn, tp + fn),
    "fpr": lambda tp, fp, tn, fn: _share(fp, fp + tn),
    "fdr": lambda tp, fp, tn, fn: _share(fp, fp + tp),
    "for": lambda tp, fp, tn, fn: _share(fn, fn + tn),
    "pt": _threshold,
    "ts": lambda tp, fp, tn, fn: _share(tp, tp + fn + fp),
    "acc": lambda tp, fp, tn, fn: _share(tp + tn, tp + fp + tn + fn),
    "ba": lambda tp, fp, tn, fn: (_share(tp, tp + fn) + _share(tn, fp + tn)) / 2,
    "f1": lambda tp, fp, tn, fn: _share(2 * tp, 2 * tp + fn + fp),
    "mcc": _matthews,
    "fm": lambda tp, fp, tn, fn: np.sqrt(_share(tp, tp + fp) * _share(tp, tp + fn)),
    "bm": lambda tp, fp, tn, fn: _share(tp, tp + fn) + _share(tn, fp + tn) - 1,
    "mk": lambda tp, fp, tn, fn: _share(tp, tp + fp) + _share(tn, tn + fn) - 1,
}
# metric -> its other names
_OTHER_NAMES = {
    "tpr": "sensitivity recall hit_rate true_positive_rate",
    "tnr": "specificity selectivity true_negative_rate",
    "ppv": "precision positive_predictive_value",
    "npv": "negative_predictive_value",
    "fnr": "miss_rate false_negative_rate",
    "fpr": "fall_out false_positive_rate",
    "fdr": "false_discovery_rate",
    "for": "false_omission_rate",
    "pt": "prevalence_threshold",
    "ts": "threat_score critical_success_index csi",
    "acc": "accuracy",
    "ba": "balanced_accuracy",
    "f1": "f1_score",
    "mcc": "matthews_correlation_coefficient",
    "fm": "fowlkes_mallows_index",
    "bm": "informedness bookmaker_informedness",
    "mk": "markedness deltap",
}
_RATE_NAMES = {
    other: name for name, others in _OTHER_NAMES.items() for other in (name, *others.split())
}
_DECREASES = ("none", "mean", "sum", "mean_batch", "sum_batch", "mean_channel", "sum_channel")


class ConfusionMatrixMetric(Metric):
    """A rate of the confusion matrix, such as sensitivity
    (`mindspore.train.ConfusionMatrixMetric`).

    Inputs: predictions and labels (N, C, ...) of zeros and ones, one-hot in the second axis.

    Args:
        skip_channel: whether to leave out the first class, if there are several.
        metric_name: one of ``"sensitivity"``, ``"specificity"``, ``"precision"``,
            ``"negative predictive value"``, ``"miss rate"``, ``"fall out"``,
            ``"false discovery rate"``, ``"false omission rate"``, ``"prevalence threshold"``,
            ``"threat score"``, ``"accuracy"``, ``"balanced accuracy"``, ``"f1 score"``,
            ``"matthews correlation coefficient"``, ``"fowlkes mallows index"``,
            ``"informedness"``, ``"markedness"``, or one of their usual abbreviations.
        calculation_method: whether to compute the rate of every sample and class, then the mean of
            these rates; otherwise the rate is that of the summed counts.
        decrease: how the rates of a batch are reduced: ``"mean"``, over the classes of each sample
            first, or ``"sum"``. With MindSpore's other values, `update` raises ValueError, because
            they leave arrays, which `eval` cannot add up.

    Raises:
        RuntimeError: `eval` before any `update`.
        NotImplementedError: another metric name.
        TypeError: an argument of the wrong kind.
        ValueError: another reduction, shapes that differ, less than two axes, or a label that is
            not 0 or 1.

    Examples:
        >>> import numpy as np
        >>> from duograph import train
        >>> metric = train.ConfusionMatrixMetric(metric_name="tpr")
        >>> x, y = np.array([[[0], [1]], [[1], [0]]]), np.array([[[0], [1]], [[0], [1]]])
        >>> metric.update(x, y)
        >>> print(metric.eval())
        [0.5]
    """

    def __init__(
        self,
        skip_channel: bool = True,
        metric_name: str = "sensitivity",
        calculation_method: bool = False,
        decrease: str = "mean",
    ) -> None:
        super().__init__()
        owner = "ConfusionMatrixMetric"
        self.skip_channel = _check.boolean(owner, "skip_channel", skip_channel)
        self.calculation_method = _check.boolean(owner, "calculation_method", calculation_method)
        self.metric_name = _check.instance(owner, "metric_name", metric_name, str)
        self.decrease = _check.one_of(owner, "decrease", decrease, _DECREASES)
        short = _RATE_NAMES.get(metric_name.lower().replace(" ", "_"))
        if short is None:
            raise UnsupportedOpError(
                f"{owner}: got metric_name={metric_name!r}; wanted one of {', '.join(_RATE_NAMES)}"
            )
        self._rate = _RATES[short]
        self.clear()

    def clear(self) -> None:
        self._totals = np.zeros(4)
        self._sum, self._count = 0.0, 0
        self._is_update = False

    def _confusion(self, y_pred: Array, y: Array) -> Array:
        """Count per sample and class; return the counts as one array of shape (4, N, C).

        Its four parts are true positives, false positives, true negatives and false negatives.
        """
        owner = "ConfusionMatrixMetric.update"
        if y_pred.ndim < 2 or y_pred.shape != y.shape:
            raise ShapeError(
                f"{owner}: got shapes {y_pred.shape} and {y.shape}; wanted the same, (N, C, ...)"
            )
        if not np.isin(y, (0, 1)).all():
            raise ArgumentValueError(f"{owner}: got labels that are not 0 or 1")
        if self.skip_channel and y.shape[1] > 1:
            y_pred, y = y_pred[:, 1:], y[:, 1:]
        flat = [v.astype(np.float64).reshape(*v.shape[:2], -1) for v in (y_pred, y)]
        positive = flat[1].sum(2)
        hits, passed = ((flat[0] + flat[1] == wanted).sum(2) for wanted in (2, 0))
        return np.stack(
            [hits, flat[1].shape[2] - positive - passed, passed, positive - hits]
        ).astype(np.float64)

    def update(self, *inputs: Any) -> None:
        found = self._confusion(*self._inputs(inputs, 2))
        self._is_update = True
        self._totals += found.sum((1, 2))
        if self.calculation_method and len(inputs[0].shape) > 2:
            score, weight = self._reduced(self._rate(*found))
            self._sum += score * weight
            self._count += weight

    def _reduced(self, rates: Array) -> tuple[float, int]:
        """Reduce the metric of one batch (N, C) to (number, weight of the batch).

        NaN entries are left out. If `decrease` of the constructor is "sum", the number is the sum
        of the others and the weight their count. If it is "mean", each sample's mean over its
        classes is taken; the number is the mean of these over the samples, and the weight the
        number of samples. Samples that have only NaN do not count.

        Raises:
            ValueError: another `decrease`, which would leave an array.
        """
        known = ~np.isnan(rates)
        rates = np.where(known, rates, 0.0)
        if self.decrease == "sum":
            return float(rates.sum()), int(known.sum())
        if self.decrease != "mean":
            raise ArgumentValueError(
                f"ConfusionMatrixMetric: got decrease={self.decrease!r}, which leaves an array; "
                "wanted 'mean' or 'sum' to add batches up"
            )
        counts = known.sum(1)
        classes = np.where(counts > 0, rates.sum(1) / np.maximum(counts, 1), 0.0)
        samples = int((counts > 0).sum())
        return float(classes.sum() / max(samples, 1)), samples

    def eval(self) -> Any:
        if not self._is_update:
            raise no_batches_error("ConfusionMatrixMetric")
        if not self.calculation_method:
            return self._rate(*self._totals[:, None])
        if not self._count:
            raise MetricError("ConfusionMatrixMetric.eval: no sample has that rate")
        return self._sum / self._count


class OcclusionSensitivity(Metric):
    """Decrease of the score of a class while a part of the image is covered
    (`mindspore.train.OcclusionSensitivity`).

    A box of elements with the value `pad_val` covers a part of the image and moves over it (Zeiler
    and Fergus, 2014). Inputs: the network, a Cell; one image (1, ...), and its class. `eval`
    returns, for each position of the box, by how much the score falls.

    Args:
        pad_val: float, the value of covered elements.
        margin: int, or a list with one int for each axis of the image: number of elements from the
            middle of the box to its edge.
        n_batch: number of covered images that the network gets in one call.
        b_box: list ``[min, max, min, max, ...]`` of the first and last position of the box's middle
            along each axis; a negative max stands for the end of the axis. None for all positions.

    Raises:
        RuntimeError: `eval` before any `update`, several images, or several classes.
        TypeError: an argument of the wrong kind.
        ValueError: a box that does not fit the image.

    Examples:
        >>> import numpy as np
        >>> import duograph as ms
        >>> class Sum(ms.nn.Cell):
        ...     def construct(self, x):
        ...         return ms.ops.stack([x.sum(axis=1), -x.sum(axis=1)], 1)
        >>> metric = ms.train.OcclusionSensitivity(margin=1)
        >>> metric.update(Sum(), np.array([[1.0, 2.0, 4.0]], np.float32), 0)
        >>> print(metric.eval())
        [1. 3. 6.]
    """

    def __init__(
        self,
        pad_val: float = 0.0,
        margin: int | list[int] = 2,
        n_batch: int = 128,
        b_box: list[int] | None = None,
    ) -> None:
        super().__init__()
        owner = "OcclusionSensitivity"
        self.pad_val = _check.real(owner, "pad_val", pad_val)
        self.margin = _check.instance(owner, "margin", margin, (int, list))
        self.n_batch = _check.positive_int(owner, "n_batch", n_batch)
        self.b_box = None if b_box is None else _check.instance(owner, "b_box", b_box, list)
        self.clear()

    def clear(self) -> None:
        self._falls: Array | None = None

    def _ranges(self, shape: tuple[int, ...]) -> list[range]:
        """Return, for each axis of an image, the range of positions of the occluding box's centre.

        `shape` is the image's shape without the batch axis. The constructor's `b_box` has the first
        and the last position for each axis, both included; a negative first position means 0, and a
        negative last position means the last index of the axis. Without `b_box`, all positions are
        used.

        Raises:
            ValueError: `b_box` does not have two numbers for each axis, or positions outside the
                axis.
        """
        if self.b_box is None:
            return [range(n) for n in shape]
        box = self.b_box
        if len(box) != 2 * len(shape):
            raise ArgumentValueError(
                f"OcclusionSensitivity: got {len(box)} numbers in b_box for {len(shape)} axes; "
                "wanted two for each"
            )
        found = []
        for low, high, n in zip(box[::2], box[1::2], shape, strict=True):
            first, last = max(low, 0), n - 1 if high < 0 else high
            if last >= n or first > last:
                raise ArgumentValueError(
                    f"OcclusionSensitivity: got b_box from {low} to {high}; wanted positions in "
                    f"an axis of length {n}"
                )
            found.append(range(first, last + 1))
        return found

    def _covered(self, image: Array, ranges: list[range]) -> Iterator[Array]:
        """Yield copies of the image, each with a box of `pad_val` around one of the positions.

        `image` has a batch axis of size 1. `ranges` has the positions along each other axis; all
        their combinations are visited, the last axis fastest.
        """
        shape = image.shape[1:]
        margins = self.margin if isinstance(self.margin, list) else [self.margin] * len(shape)
        if len(margins) != len(shape):
            raise ArgumentValueError(
                f"OcclusionSensitivity: got {len(margins)} margins; wanted {len(shape)}"
            )
        for index in np.ndindex(*[len(r) for r in ranges]):
            made = image.copy()
            middle = [r[i] for r, i in zip(ranges, index, strict=True)]
            box = [slice(max(0, c - m), c + m) for c, m in zip(middle, margins, strict=True)]
            made[(slice(None), *box)] = self.pad_val
            yield made

    def update(self, *inputs: Any) -> None:
        owner = "OcclusionSensitivity.update"
        chosen = inputs if self.indexes is None else [inputs[i] for i in self.indexes]
        if len(chosen) != 3:
            raise ArgumentValueError(
                f"{owner}: got {len(chosen)} input{'s' * (len(chosen) != 1)}; wanted 3, as in "
                "update(model, image, label)"
            )
        model = _check.instance(owner, "model", chosen[0], Cell)
        image, label = self._convert_data(chosen[1]), self._convert_data(chosen[2])
        if image.ndim < 2 or image.shape[0] != 1:
            raise MetricError(f"{owner}: got an image of shape {image.shape}; wanted (1, ...)")
        if label.size != 1:
            raise MetricError(f"{owner}: got {label.size} classes; wanted one")
        wanted = int(label.reshape(()))
        ranges = self._ranges(image.shape[1:])

        def scores(images: list[Array]) -> Array:
            found: Array = model(Tensor(np.concatenate(images))).asnumpy()[:, wanted]
            return found

        base = scores([image])[0]
        found: list[Array] = []
        batch: list[Array] = []
        for covered in self._covered(image, ranges):
            batch.append(covered)
            if len(batch) == self.n_batch:
                found.append(scores(batch))
                batch = []
        if batch:
            found.append(scores(batch))
        self._falls = base - np.concatenate(found).reshape([len(r) for r in ranges])

    def eval(self) -> Array:
        if self._falls is None:
            raise no_batches_error("OcclusionSensitivity")
        return np.squeeze(self._falls)
