"""The table of evaluation metrics by name.

`get_metric_fn` and `Model` look metrics up here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...advice import kind_of, meant
from ...call_errors import explaining
from ...errors import ArgumentError, UnknownNameError
from . import classification, regression, scores, surface_distance
from .base import Metric

__all__ = ["get_metric_fn", "get_metrics"]

_BY_NAME: dict[str, Callable[..., Any]] = {
    "accuracy": classification.Accuracy, "acc": classification.Accuracy,
    "precision": classification.Precision, "recall": classification.Recall, "F1": classification.F1,
    "topk": classification.TopKCategoricalAccuracy,
    "top_1_accuracy": classification.Top1CategoricalAccuracy,
    "top_5_accuracy": classification.Top5CategoricalAccuracy, "dice": classification.Dice,
    "roc": classification.ROC, "confusion_matrix": classification.ConfusionMatrix,
    "perplexity": classification.Perplexity, "mae": regression.MAE, "mse": regression.MSE,
    "hausdorff_distance": surface_distance.HausdorffDistance,
    "mean_surface_distance": surface_distance.MeanSurfaceDistance,
    "root_mean_square_distance": surface_distance.RootMeanSquareDistance,
    "bleu_score": scores.BleuScore, "confusion_matrix_metric": scores.ConfusionMatrixMetric,
    "occlusion_sensitivity": scores.OcclusionSensitivity,
    "loss": regression.Loss, "cosine_similarity": regression.CosineSimilarity,
    "auc": classification.auc,  # a function of points: `get_metric_fn` calls it at once
}  # fmt: skip


def names() -> list[str]:
    """Return the names that `get_metric_fn` accepts, in alphabetical order."""
    return sorted(_BY_NAME)


@explaining
def get_metric_fn(name: str, *args: object, **kwargs: object) -> Metric:
    """Return a new metric, made by its name (`mindspore.train.get_metric_fn`).

    Raises:
        KeyError: no metric has that name.

    Examples:
        >>> from duograph import train
        >>> type(train.get_metric_fn("accuracy")).__name__
        'Accuracy'
    """
    if name not in _BY_NAME:
        raise UnknownNameError(
            f"get_metric_fn: got the metric {name!r}; {meant(name, [*_BY_NAME])}"
        )
    return _BY_NAME[name](*args, **kwargs)


def get_metrics(metrics: object) -> dict[str, Metric]:
    """Return the metrics of a Model, given as a dictionary by name or as a set of known names
    (`mindspore.train.get_metrics`).

    Raises:
        TypeError: `metrics` has another type.

    Examples:
        >>> from duograph import train
        >>> sorted(train.get_metrics({"acc", "loss"}))
        ['acc', 'loss']
    """
    if metrics is None:
        return {}
    if isinstance(metrics, dict):
        for name, metric in metrics.items():
            if not isinstance(name, str) or not isinstance(metric, Metric):
                raise ArgumentError(
                    f"metrics: got {{{name!r}: {metric!r}}}, whose value is {kind_of(metric)}; "
                    f"wanted names with Metric objects, such as {{{str(name)!r}: nn.Accuracy()}}"
                )
        return metrics
    if isinstance(metrics, set):
        return {
            (m if isinstance(m, str) else type(m).__name__): (
                m if isinstance(m, Metric) else get_metric_fn(m)
            )
            for m in sorted(metrics, key=str)
        }
    raise ArgumentError(
        f"metrics: got {type(metrics).__name__}; wanted a dictionary of metrics or a set of names"
    )
