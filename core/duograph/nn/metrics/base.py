"""Metric, the base class of all metrics, and EvaluationBase, the base of metrics over classes.

The modules of this folder and users' own metrics derive from them. They work on NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...call_errors import explain_methods
from ...errors import ArgumentError, ArgumentValueError, LabelRangeError, MetricError
from ...tensor import Tensor
from .._types import Array

__all__ = ["Metric", "EvaluationBase", "rearrange_inputs", "MetricError"]


def check_labels(owner: str, labels: Array, classes: int, what: str = "label") -> Array:
    """Return labels as a flat int64 array, after checking that all are from 0 to `classes` - 1.

    Raises:
        LabelRangeError: a label is out of range. `owner` and `what` name the metric and the label
            in the message.
        ArgumentValueError: a label that is no whole number.
    """
    flat = np.asarray(labels).reshape(-1)
    if flat.dtype.kind not in "biu" and not np.all(flat == np.floor(flat)):
        raise ArgumentValueError(f"{owner}: got labels of dtype {flat.dtype}; wanted whole numbers")
    wrong = (flat < 0) | (flat >= classes)
    if wrong.any():
        raise LabelRangeError.of(owner, flat[wrong][0], classes, what)
    return flat.astype(np.int64)


def wide(values: Array) -> Array:
    """Return an array as float64, unless its own dtype holds differences and squares of values.

    Those of small ints wrap around, and those of float16 become infinite.
    """
    return values if values.dtype.kind in "fc" and values.itemsize > 2 else values.astype(float)


class Metric:
    """Base class (`mindspore.train.Metric`): `clear`, then `update` for every batch, then `eval`.

    Examples:
        >>> from duograph import nn
        >>> class Count(nn.Metric):
        ...     def clear(self): self.n = 0
        ...     def update(self, *inputs): self.n += 1
        ...     def eval(self): return self.n
        >>> metric = Count()
        >>> metric.clear(); metric.update(1); metric.eval()
        1
    """

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        explain_methods(cls, "__init__", "update", "eval")

    def __init__(self) -> None:
        self._indexes: tuple[int, ...] | None = None

    @property
    def indexes(self) -> list[int] | None:
        """The positions of the metric inputs that `update` uses, or None for all inputs."""
        chosen = getattr(self, "_indexes", None)
        return None if chosen is None else list(chosen)

    def set_indexes(self, indexes: Sequence[int]) -> Metric:
        """Select the inputs that the metric's `update` uses, in this order; return the metric.

        Raises:
            ValueError: `indexes` is not a list of ints.
        """
        if not isinstance(indexes, (list, tuple)) or not all(isinstance(i, int) for i in indexes):
            raise ArgumentValueError(f"set_indexes: got {indexes!r}; wanted a list of ints")
        self._indexes = tuple(indexes)
        return self

    def _convert_data(self, data: object) -> Array:
        """Return a metric's input (a Tensor, list, number or array) as a NumPy array."""
        if isinstance(data, Tensor):
            return data.asnumpy()
        if isinstance(data, (list, tuple, np.ndarray, int, float, np.generic)):
            return np.array(data)
        raise ArgumentError(
            f"{type(self).__name__}: got {type(data).__name__}; wanted a Tensor, a list or an array"
        )

    def _inputs(self, inputs: Sequence[object], n: int) -> list[Array]:
        """Return the inputs of `update` that `set_indexes` selected, as `n` NumPy arrays.

        Raises ArgumentValueError if the number of selected inputs is not `n`.
        """
        chosen = inputs if self.indexes is None else [inputs[i] for i in self.indexes]
        if len(chosen) != n:
            raise ArgumentValueError(
                f"{type(self).__name__}.update: got {len(chosen)} "
                f"input{'s' * (len(chosen) != 1)}; wanted {n}, as in "
                + ("update(loss)" if n == 1 else "update(predictions, labels)")
            )
        return [self._convert_data(x) for x in chosen]

    def clear(self) -> None:
        """Reset the metric: discard the values accumulated from all batches."""
        raise NotImplementedError(f"{type(self).__name__}: has no clear()")

    def eval(self) -> object:
        """Return the metric's value over all batches since the last `clear`."""
        raise NotImplementedError(f"{type(self).__name__}: has no eval()")

    def update(self, *inputs: Any) -> None:
        """Add the predictions and labels of one batch to the metric."""
        raise NotImplementedError(f"{type(self).__name__}: has no update(*inputs)")


def rearrange_inputs(func: Callable[..., object]) -> Callable[..., object]:
    """Decorate a metric's `update`, so that it receives the inputs that `set_indexes` selected."""

    def update(self: Metric, *inputs: object) -> object:
        chosen = self.indexes
        return func(self, *(inputs if chosen is None else [inputs[i] for i in chosen]))

    return update


class EvaluationBase(Metric):
    """Base class of classification metrics.

    `eval_type` is ``"classification"`` or ``"multilabel"``.

    Raises:
        ValueError: another `eval_type`.
    """

    def __init__(self, eval_type: str) -> None:
        super().__init__()
        if eval_type not in ("classification", "multilabel"):
            raise ArgumentValueError(
                f"{type(self).__name__}: got eval_type={eval_type!r}; "
                f"wanted 'classification' or 'multilabel'"
            )
        self._type = eval_type
        self._classes: int | None = None  # of the batches since the last `clear`
        self.clear()

    def _labels(self, y_pred: Array, y: Array) -> tuple[Array, Array]:
        """Check a metric's predictions and labels; return them with class numbers as labels.

        Predictions (N, C, ...) go with labels (N, ...). One-hot labels of the predictions' shape
        are converted to class numbers. Multilabel inputs, zeros and ones, are returned unchanged.

        Raises:
            ValueError: shapes that do not fit, multilabel inputs that are not 0 or 1, or another
                number of classes than in the batches before.
            IndexError: a label that is no class.
        """
        owner = type(self).__name__
        if self._type == "multilabel":
            if y_pred.shape != y.shape:
                raise ArgumentValueError(
                    f"{owner}.update: predictions have shape {y_pred.shape} and labels {y.shape}; "
                    f"wanted the same"
                )
            for what, values in (("predictions", y_pred), ("labels", y)):
                wrong = values[(values != 0) & (values != 1)]
                if wrong.size:
                    raise ArgumentValueError(
                        f"{owner}.update: got {wrong[0]} in the {what} with "
                        "eval_type='multilabel'; wanted 0 or 1, such as (probabilities > 0.5)"
                    )
            self._check_classes(y_pred)
            return y_pred, y
        if y_pred.ndim == y.ndim and y_pred.shape == y.shape and y.ndim > 1:
            y = y.argmax(1)
        if y_pred.ndim != y.ndim + 1:
            raise ArgumentValueError(
                f"{owner}.update: predictions have shape {y_pred.shape} and labels {y.shape}; "
                f"wanted (N, C, ...) and (N, ...), or the same"
            )
        if y_pred.shape[:1] + y_pred.shape[2:] != y.shape:
            raise ArgumentValueError(
                f"{owner}.update: predictions have shape {y_pred.shape} and labels {y.shape}; "
                f"wanted labels of shape {y_pred.shape[:1] + y_pred.shape[2:]}, one for each row "
                "of the predictions"
            )
        check_labels(f"{owner}.update", y, y_pred.shape[1])
        self._check_classes(y_pred)
        return y_pred, y

    def _check_classes(self, y_pred: Array) -> None:
        """Raise unless predictions (N, C, ...) have as many classes as those of earlier batches."""
        classes = y_pred.shape[1]
        if self._classes not in (None, classes):
            raise ArgumentValueError(
                f"{type(self).__name__}.update: predictions have shape {y_pred.shape}, that is "
                f"{classes} classes, after batches of {self._classes}; wanted the same number, or "
                "clear() first"
            )
        self._classes = classes
