"""Metrics of the distance between the surfaces of two segmentations.

They are the Hausdorff, the mean and the root mean square distance. `Model.eval` and user code call
them. Distances are computed between all pairs of surface points.
"""

from __future__ import annotations

import numpy as np

from ...errors import ArgumentError, ArgumentValueError, ShapeError
from .. import _check
from .._types import Array
from .base import Metric
from .classification import no_batches_error

__all__ = ["HausdorffDistance", "MeanSurfaceDistance", "RootMeanSquareDistance"]

_PAIRS = 1 << 20  # distances that are held in memory at once


def surface(mask: Array) -> Array:
    """Return a mask of the points of `mask` that lie on its surface.

    A point is on the surface if one of its two neighbours along some axis is outside the mask or
    outside the array.
    """
    inner = mask.copy()
    padded = np.pad(mask, 1)
    middle = (slice(1, -1),) * mask.ndim
    for axis in range(mask.ndim):
        for start, stop in ((None, -2), (2, None)):
            moved = (*middle[:axis], slice(start, stop), *middle[axis + 1 :])
            inner &= padded[moved]
    return mask & ~inner


def nearest(points: Array, others: Array, kind: str) -> Array:
    """Return the distance of each of the `points` (n, axes) to the nearest of `others` (m, axes).

    `kind` is the distance: "euclidean", "chessboard" or "taxicab". Distances are infinite if
    `others` is empty.
    """
    if not len(others):
        return np.full(len(points), np.inf)
    found = []
    rows = max(1, _PAIRS // (len(others) * points.shape[1]))
    for first in range(0, len(points), rows):
        apart = np.abs(points[first : first + rows, None] - others[None]).astype(np.float64)
        if kind == "euclidean":
            size = np.sqrt((apart**2).sum(-1))
        else:
            size = apart.max(-1) if kind == "chessboard" else apart.sum(-1)
        found.append(size.min(1))
    return np.concatenate(found) if found else np.zeros(0)


class _SurfaceMetric(Metric):
    """Base class of surface metrics; stores surface points of the last prediction and label."""

    def __init__(self, distance_metric: str) -> None:
        super().__init__()
        kinds = ("euclidean", "chessboard", "taxicab")
        owner = type(self).__name__
        self.distance_metric = _check.one_of(owner, "distance_metric", distance_metric, kinds)
        self.clear()

    def clear(self) -> None:
        self._points: tuple[Array, Array] | None = None

    def update(self, *inputs: object) -> None:
        """Replace the stored surfaces by those of one class in a prediction and a label.

        The inputs are (prediction, label, class number).

        Raises:
            TypeError: the class is not a number.
            ValueError: the number of inputs is not three, prediction and label are empty or have
                different shapes, or the class occurs in neither.
        """
        owner = type(self).__name__
        chosen = inputs if self.indexes is None else [inputs[i] for i in self.indexes]
        if len(chosen) != 3:
            raise ArgumentValueError(
                f"{owner}.update: got {len(chosen)} input{'s' * (len(chosen) != 1)}; wanted 3, as "
                "in update(predictions, labels, label_idx)"
            )
        y_pred, y = self._convert_data(chosen[0]), self._convert_data(chosen[1])
        label = chosen[2]
        if not isinstance(label, (int, float)):
            raise ArgumentError(f"{owner}.update: got the class {label!r}; wanted a number")
        if not y_pred.size or not y_pred.ndim or y_pred.shape != y.shape:
            raise ShapeError(
                f"{owner}.update: got shapes {y_pred.shape} and {y.shape}; wanted the same, with "
                "at least one element"
            )
        masks = [np.asarray(v == label) for v in (y_pred, y)]
        if not any(mask.any() for mask in masks):
            raise ArgumentValueError(
                f"{owner}.update: got the class {label}, which occurs in neither input"
            )
        self._points = tuple(np.argwhere(edge) for edge in self._surfaces(*masks))  # type: ignore[assignment]

    def _surfaces(self, y_pred: Array, y: Array) -> tuple[Array, Array]:
        return surface(y_pred), surface(y)

    def _distances(self, back: bool = False) -> Array:
        """Return the distance of each point of the prediction's surface to the label's surface.

        With `back`, return the distance of each point of the label's surface to the prediction's
        surface.
        """
        if self._points is None:
            raise no_batches_error(type(self).__name__)
        points, others = self._points[::-1] if back else self._points
        return nearest(points, others, self.distance_metric)


class HausdorffDistance(_SurfaceMetric):
    """Largest distance of a surface point from the other surface
    (`mindspore.train.HausdorffDistance`).

    Inputs: prediction and label of the same shape, and the class to compare; `eval` uses the last
    update only. If the class does not occur in one of the two, the distance is infinite.

    Args:
        distance_metric: ``"euclidean"``, ``"chessboard"`` or ``"taxicab"``.
        percentile: float from 0 to 100: which percentile of the distances to return; None for the
            largest distance.
        directed: whether to measure only from the prediction to the label; otherwise the result is
            the larger one of both directions.
        crop: whether to cut both inputs to the box around the class, so that points at the border
            of the box count as surface.

    Raises:
        RuntimeError: `eval` before any `update`.
        TypeError: an argument of the wrong kind.
        ValueError: another distance metric, or a percentile out of range.

    Examples:
        >>> import numpy as np
        >>> from duograph import train
        >>> metric = train.HausdorffDistance()
        >>> x = np.array([[3, 0, 1], [1, 3, 0], [1, 0, 2]])
        >>> y = np.array([[0, 2, 1], [1, 2, 1], [0, 0, 1]])
        >>> metric.update(x, y, 0)
        >>> float(metric.eval())
        1.4142135623730951
    """

    def __init__(
        self,
        distance_metric: str = "euclidean",
        percentile: float | None = None,
        directed: bool = False,
        crop: bool = True,
    ) -> None:
        super().__init__(distance_metric)
        owner = "HausdorffDistance"
        self.percentile = (
            None if percentile is None else _check.in_range(owner, "percentile", percentile, 0, 100)
        )
        self.directed = _check.boolean(owner, "directed", directed)
        self.crop = _check.boolean(owner, "crop", crop)

    def _surfaces(self, y_pred: Array, y: Array) -> tuple[Array, Array]:
        if self.crop:
            held = np.argwhere(y_pred | y)
            box = tuple(slice(a, b + 1) for a, b in zip(held.min(0), held.max(0), strict=True))
            y_pred, y = y_pred[box], y[box]
        return surface(y_pred), surface(y)

    def _directed(self, back: bool) -> float:
        distances = self._distances(back)
        if not distances.size:
            return float("inf")
        if not self.percentile:
            return float(distances.max())
        return float(np.percentile(distances, self.percentile))

    def eval(self) -> float:
        return self._directed(False) if self.directed else max(map(self._directed, (False, True)))


class MeanSurfaceDistance(_SurfaceMetric):
    """Mean distance of the surface points from the other surface
    (`mindspore.train.MeanSurfaceDistance`).

    Inputs: as for `HausdorffDistance`.

    Args:
        symmetric: whether to average both directions, instead of measuring from prediction to label
            only.
        distance_metric: as for `HausdorffDistance`.

    Raises:
        RuntimeError, TypeError, ValueError: as for `HausdorffDistance`.

    Examples:
        >>> import numpy as np
        >>> from duograph import train
        >>> metric = train.MeanSurfaceDistance(distance_metric="euclidean")
        >>> x = np.array([[3, 0, 1], [1, 3, 0], [1, 0, 2]])
        >>> y = np.array([[0, 2, 1], [1, 2, 1], [0, 0, 1]])
        >>> metric.update(x, y, 0)
        >>> float(metric.eval())
        0.8047378541243649
    """

    def __init__(self, symmetric: bool = False, distance_metric: str = "euclidean") -> None:
        super().__init__(distance_metric)
        self.symmetric = _check.boolean(type(self).__name__, "symmetric", symmetric)

    def _mean(self, power: int) -> float:
        """Return the mean of distance ** power over the surface points of the prediction.

        A metric constructed with `symmetric` averages this mean and the mean over the surface
        points of the label. The result is infinite if a surface has no points.
        """
        found = [self._distances(back) for back in ((False, True) if self.symmetric else (False,))]
        if not all(d.size for d in found):
            return float("inf")
        return float(np.mean([(d**power).mean() for d in found]))

    def eval(self) -> float:
        return self._mean(1)


class RootMeanSquareDistance(MeanSurfaceDistance):
    """Root of the mean square distance of the surface points from the other surface
    (`mindspore.train.RootMeanSquareDistance`).

    Inputs, arguments and errors: as for `MeanSurfaceDistance`.

    Examples:
        >>> import numpy as np
        >>> from duograph import train
        >>> metric = train.RootMeanSquareDistance(distance_metric="taxicab")
        >>> metric.update(np.array([[1, 0, 0, 0]]), np.array([[0, 0, 1, 0]]), 1)
        >>> metric.eval()
        2.0
    """

    def eval(self) -> float:
        return float(np.sqrt(self._mean(2)))
